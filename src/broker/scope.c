#include "broker/scope.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "ipc/codec.h"
#include "ipc/message.h"
#include "ipc/role.h"
#include "ipc/scope.h"
#include "ipc/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* "bawn-" and ".scope" around a task's id. */
#define UNIT_BYTES 96
/* The role has its own deadline; this is for one that does not keep it. */
#define ANSWER_TIMEOUT_MS ((int)(SCOPE_TIME_NS / 1000000) + 1000)
/* What follows each refusal. */
#define REMEDY "; `systemctl %sstatus` tells how it is, or leave the option out"

/* Where a manager is: names to open one after the other, and its group's path. */
struct place {
	char names[4][16];
	size_t count;
	char socket[64]; /* for messages */
	char group[96];
	uid_t uid;
};

static void find_place(uid_t uid, struct place *ret_place)
{
	struct place place = { .names = { "run", "systemd" }, .count = 2, .uid = uid };

	(void)snprintf(place.socket, sizeof(place.socket), "/run/systemd/private");
	if (uid != 0) {
		(void)snprintf(place.names[1], sizeof(place.names[1]), "user");
		(void)snprintf(place.names[2], sizeof(place.names[2]), "%u", uid);
		(void)snprintf(place.names[3], sizeof(place.names[3]), "systemd");
		place.count = 4;
		(void)snprintf(place.socket, sizeof(place.socket), "/run/user/%u/systemd/private",
			       uid);
		(void)snprintf(place.group, sizeof(place.group),
			       "/user.slice/user-%u.slice/user@%u.service", uid, uid);
	}
	*ret_place = place;
}

/* Nobody but root and the user may put something else there. */
static int check_directory(int fd, uid_t uid)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	return (status.st_uid == 0 || status.st_uid == uid) && (status.st_mode & 022) == 0 ? 0 :
											     -EPERM;
}

/* The directory of the manager's socket, which is there and the user's own. Owned. */
static int open_place(const struct cgroup_source *source, const struct place *place)
{
	int CLEANUP_FD fd = openat(source->root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat status;
	int result = fd < 0 ? -errno : 0;

	for (size_t i = 0; result == 0 && i < place->count; i++) {
		int next =
			openat(fd, place->names[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (next < 0)
			return -errno;
		fd_close(&fd);
		fd = next;
		result = check_directory(fd, place->uid);
	}
	if (result < 0)
		return result;
	if (fstatat(fd, "private", &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISSOCK(status.st_mode))
		return -ENOTSOCK;
	return status.st_uid == place->uid ? TAKE_FD(fd) : -EPERM;
}

uint32_t scope_offered(const struct cgroup_source *source, uid_t uid)
{
	struct place place;
	int CLEANUP_FD fd = -1;

	find_place(uid, &place);
	fd = open_place(source, &place);
	return fd < 0 ? 0 : cgroup_offered(source, place.group);
}

/* Connected, and to the user's own process. Owned. */
static int connect_place(const struct cgroup_source *source, const struct place *place)
{
	int CLEANUP_FD directory = open_place(source, place);
	int CLEANUP_FD fd = -1;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (directory < 0)
		return directory;
	/* a queue that is full is a manager that hangs: no waiting for it */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/private",
		       directory);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return -errno;
	return peer.uid == place->uid ? TAKE_FD(fd) : -EPERM;
}

static int make_request(const struct place *place, const char *unit, const char *task)
{
	struct buffer CLEANUP_BUFFER bytes = { 0 };
	char description[UNIT_BYTES];

	(void)snprintf(description, sizeof(description), "bawn task %s", task);
	codec_put_u32(&bytes, place->uid);
	codec_put_string(&bytes, unit);
	codec_put_string(&bytes, description);
	return bytes.failed ? -ENOMEM : role_config(bytes.data, bytes.length);
}

static int bad_answer(struct role *role, const char *what, struct error *error)
{
	int status;

	/* it has ended already, or must not go on */
	(void)kill(role->pid, SIGKILL);
	status = role_wait(role);
	if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status))
		return error_set(error, EBADMSG, "bawn-scope failed in its step %d",
				 WEXITSTATUS(status));
	return error_set(error, EBADMSG, "bawn-scope gave no good answer: %s", what);
}

static int read_answer(const struct message *message, struct systemd_answer *ret_answer)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct codec_cursor cursor;

	if (message->type != SCOPE_ANSWER || message->fd_count)
		return -EBADMSG;
	codec_begin(&cursor, message->bytes, message->length, &arena);
	ret_answer->outcome = (enum systemd_outcome)codec_enum(&cursor, SYSTEMD_OUTCOMES);
	/* again: the role has read what is foreign, and is not believed */
	systemd_copy_text(ret_answer->text, codec_string(&cursor, SYSTEMD_TEXT_BYTES));
	return codec_end(&cursor);
}

static int talk(int config_fd, int socket_fd, struct systemd_answer *ret_answer,
		struct error *error)
{
	struct role CLEANUP_ROLE role = ROLE_NONE;
	struct pollfd ready = { .events = POLLIN };
	struct message message;
	int result = role_spawn(EDGE_SUPERVISOR_SCOPE, config_fd, &socket_fd, 1, &role, error);

	if (result < 0)
		return result;
	ready.fd = role.channel;
	do
		result = poll(&ready, 1, ANSWER_TIMEOUT_MS);
	while (result < 0 && errno == EINTR);
	if (result <= 0) {
		ret_answer->outcome = SYSTEMD_LATE;
		return 0;
	}
	result = message_receive(role.channel, &message);
	if (result < 0)
		return bad_answer(&role, error_text(result), error);
	result = read_answer(&message, ret_answer);
	message_close_fds(&message);
	/* we live, and are moved: from here on the scope is never left empty unseen */
	if (result == 0)
		(void)message_send(role.channel, SCOPE_TAKEN, NULL, 0, NULL, 0);
	return result < 0 ? bad_answer(&role, error_text(result), error) : 0;
}

static int ask(const struct cgroup_source *source, const struct place *place, const char *unit,
	       const char *task, struct error *error)
{
	const char *whose = place->uid ? "--user " : "";
	int CLEANUP_FD socket_fd = connect_place(source, place);
	int CLEANUP_FD config_fd = -1;
	struct systemd_answer answer = { .text = "" };
	int result;

	if (socket_fd < 0)
		return error_set(error, socket_fd,
				 "systemd (%s) cannot be asked for a control group: %s" REMEDY,
				 place->socket, error_text(socket_fd), whose);
	config_fd = make_request(place, unit, task);
	if (config_fd < 0)
		return error_errno(error, config_fd, "asking systemd for a control group");
	result = talk(config_fd, socket_fd, &answer, error);
	if (result < 0)
		return error_context(error, "asking systemd (%s) for a control group",
				     place->socket);
	if (answer.outcome != SYSTEMD_DONE)
		return error_set(error, EOPNOTSUPP,
				 "systemd (%s) was asked for a control group and %s%s%s%s" REMEDY,
				 place->socket, systemd_outcome_text(answer.outcome),
				 answer.text[0] ? " (" : "", answer.text, answer.text[0] ? ")" : "",
				 whose);
	return 0;
}

/* NULL, or what is not as it was asked for. */
static const char *judge(const struct cgroup_host *host, uint32_t needs, uid_t uid)
{
	const struct cgroup_hierarchy *own = host->count ? &host->hierarchies[0] : NULL;
	struct stat status;

	if (!own || own->version != 2)
		return host->reason;
	if (fstat(own->fd, &status) < 0 || status.st_uid != uid || (status.st_mode & 022))
		return "its control group is not the caller's own";
	for (unsigned i = 0; i < CGROUP_CONTROLLERS; i++)
		if ((needs & CGROUP_BIT(i)) &&
		    cgroup_host_version(host, (enum cgroup_controller)i) != 2)
			return host->reason[0] ? host->reason :
						 "its control group lacks the controller";
	return NULL;
}

int scope_join(const struct cgroup_source *source, uid_t uid, const char *task, uint32_t needs,
	       struct cgroup_host *host, struct error *error)
{
	struct cgroup_host found = { .count = 0 };
	char unit[UNIT_BYTES];
	struct place place;
	const char *wrong;
	int result;

	find_place(uid, &place);
	(void)snprintf(unit, sizeof(unit), "bawn-%s.scope", task);
	result = ask(source, &place, unit, task, error);
	if (result < 0)
		return result;
	if (!cgroup_is_in(source, unit))
		return error_set(error, EOPNOTSUPP,
				 "systemd (%s) says that bawn is in %s, and the kernel that it is "
				 "not" REMEDY,
				 place.socket, unit, uid ? "--user " : "");
	result = cgroup_host_open(source, &found, error);
	if (result < 0)
		return result;
	wrong = judge(&found, needs, uid);
	if (wrong) {
		cgroup_host_close(&found);
		return error_set(error, EOPNOTSUPP,
				 "systemd (%s) gave %s, but %s; leave the option out", place.socket,
				 unit, wrong);
	}
	cgroup_host_close(host);
	*host = found;
	return 0;
}
