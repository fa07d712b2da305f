#include "broker/battery.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "broker/battery_internal.h"
#include "broker/supervise.h"
#include "ipc/role.h"
#include "isolate/box.h"
#include "kernel/network.h"
#include "policy/place.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the script and its answers */

static int write_script(const struct battery *battery)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	int CLEANUP_FD fd = -1;

	for (size_t i = 0; i < battery->count; i++) {
		buffer_text(&text, attempt_word(battery->rows[i].attempt));
		for (size_t j = 0; j < battery->rows[i].argument_count; j++)
			buffer_format(&text, "\t%s", battery->rows[i].arguments[j]);
		buffer_text(&text, "\n");
	}
	if (text.failed || !text.data)
		return -ENOMEM;
	fd = role_config(text.data, text.length);
	if (fd < 0)
		return fd;
	return dup2(fd, 0) < 0 ? -errno : 0;
}

static const char *read_back(int fd, struct arena *arena)
{
	struct stat status;
	char *text;
	ssize_t length;

	if (fstat(fd, &status) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return NULL;
	text = arena_allocate(arena, (size_t)status.st_size + 1);
	length = text ? fd_read_all(fd, text, (size_t)status.st_size) : -1;
	return length < 0 ? NULL : text;
}

/* Lines that are not of the form, or speak of no row, answer nothing. */
static void take_answers(struct battery *battery, const char *text)
{
	while (text && *text) {
		const char *end = strchr(text, '\n');
		unsigned long long index, duration;
		char word[8];
		int code;

		if (!end)
			return;
		if (sscanf(text, "%llu\t%7[a-z]\t%d\t%llu", &index, word, &code, &duration) == 4 &&
		    index < battery->count && code >= 0 &&
		    (strcmp(word, "done") == 0) == (code == 0)) {
			battery->rows[index].answered = true;
			battery->rows[index].code = -code;
			battery->rows[index].duration_us = duration;
		}
		text = end + 1;
	}
}

static bool is_answer(enum battery_answers answers, int code)
{
	static const int table[][12] = {
		[ANSWERS_NONE] = { 0 },
		[ANSWERS_ABSENT] = { ENOENT, ENOTDIR },
		[ANSWERS_CLOSED] = { ENOENT, ENOTDIR, EACCES, EPERM, EROFS, ENXIO, EBUSY, ESRCH,
				     ENOSYS },
		[ANSWERS_CALL] = { EPERM, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT },
		[ANSWERS_NETWORK] = { ENETUNREACH, EHOSTUNREACH, ECONNREFUSED, EADDRNOTAVAIL, EPERM,
				      EACCES },
		[ANSWERS_CAPTURED] = { ECONNRESET, ECONNREFUSED, EPIPE, ECONNABORTED },
		[ANSWERS_LANDLOCK] = { EACCES, EPERM },
		[ANSWERS_EXECUTION] = { EACCES, EPERM },
	};

	for (size_t i = 0; i < sizeof(table[0]) / sizeof(table[0][0]); i++)
		if (code && table[answers][i] == -code)
			return true;
	return false;
}

static void judge(struct battery_row *row, struct arena *arena)
{
	enum battery_answers answers = battery_answers(row->attempt);
	bool refused = is_answer(answers, row->code);

	if (!row->answered) {
		row->passed = false;
		row->outcome = "no answer from the probe";
		return;
	}
	row->passed = !row->works ? refused : answers != ANSWERS_NONE ? !refused : row->code == 0;
	/* an errno of Landlock or of modes, where a read-only mount would have said EROFS */
	if (row->passed && row->code == -EACCES &&
	    (row->attempt == ATTEMPT_READ_ONLY || row->attempt == ATTEMPT_OUTSIDE))
		row->layer = LAYER_LANDLOCK;
	row->outcome = row->code == 0	     ? (row->works ? "holds" : "it worked") :
		       row->code == -ENOMSG  ? "does not hold" :
		       row->code == -EBADMSG ? "could not be tried" :
		       refused		     ? error_text(row->code) :
				 arena_format(arena, "got through: %s", error_text(row->code));
}

/* The supervisor's side of the listener: a connection waits there, with the token. */
static void judge_listeners(struct battery *battery, const int *listeners, size_t count,
			    const char *token)
{
	size_t at = 0;

	for (size_t i = 0; i < battery->count; i++) {
		struct battery_row *row = &battery->rows[i];
		struct pollfd ready = { .fd = -1, .events = POLLIN };
		char word[BATTERY_TOKEN_BYTES] = "";
		int CLEANUP_FD fd = -1;

		if (row->attempt != ATTEMPT_LISTENER)
			continue;
		if (at < count)
			fd = accept4(listeners[at++], NULL, NULL, SOCK_CLOEXEC);
		ready.fd = fd;
		if (fd >= 0 && poll(&ready, 1, 0) == 1 &&
		    recv(fd, word, sizeof(word) - 1, MSG_DONTWAIT) > 0 && strcmp(word, token) == 0)
			continue;
		row->passed = false;
		row->outcome = "nothing arrived outside";
	}
}

/* Nobody may have come to the listener that stands on the host's own loopback. */
static void judge_decoy(struct battery *battery, const struct battery_decoys *decoys)
{
	struct pollfd visitor = { .fd = decoys->listener_fd, .events = POLLIN };
	bool was_reached = poll(&visitor, 1, 0) == 1;

	for (size_t i = 0; i < battery->count && was_reached; i++) {
		struct battery_row *row = &battery->rows[i];

		if (row->attempt != ATTEMPT_DOOR && row->attempt != ATTEMPT_CONNECT)
			continue;
		row->passed = false;
		row->outcome = "somebody came to the host's loopback";
	}
}

/* --- the run */

struct kept {
	int listeners[POLICY_LIMIT_LISTENERS];
	size_t count;
};

static void keep_listeners(void *context, const struct box *box)
{
	struct kept *kept = context;

	for (size_t i = 0; i < box->listener_count; i++)
		kept->listeners[kept->count++] = fcntl(box->listeners[i], F_DUPFD_CLOEXEC, 3);
}

int battery_prepare(struct request *request, bool quick, struct arena *arena, struct error *error)
{
	uint64_t limit_ns = quick ? BATTERY_QUICK_TIME_NS : BATTERY_TIME_NS;
	char link[40], path[PATH_LIMIT_BYTES];
	int CLEANUP_FD fd = -1;
	ssize_t length;
	int result = role_open_program("bawn-probe", &fd, error);

	if (result < 0)
		return result;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path));
	if (length <= 0 || length == (ssize_t)sizeof(path))
		return error_set(error, ENAMETOOLONG, "finding the program bawn-probe");
	request->probe = arena_copy_bytes(arena, path, (size_t)length);
	if (!request->probe)
		return error_errno(error, ENOMEM, "preparing the battery");
	request->input = true;
	request->probe_timeout_ns = limit_ns;
	request->listeners[request->listener_count++] = (struct policy_listener){
		.family = AF_INET, .type = SOCK_STREAM, .port = BATTERY_LISTENER_PORT
	};
	request->listeners[request->listener_count++] = (struct policy_listener){
		.family = AF_INET6, .type = SOCK_STREAM, .port = BATTERY_LISTENER_PORT
	};
	return 0;
}

static struct task_watch *names_of(struct battery_decoys *decoys)
{
	return decoys->names_port ? &decoys->names : NULL;
}

static int attempt_all(struct battery_maker *maker, const struct effective *enforced,
		       const struct action *action, struct error *error)
{
	struct denial_list denials = { 0 };
	struct result result = { 0 };
	struct kept kept = { 0 };
	int CLEANUP_FD out = memfd_create("bawn-verify", MFD_CLOEXEC);
	int CLEANUP_FD err = memfd_create("bawn-verify", MFD_CLOEXEC);
	int outcome = out < 0 || err < 0 ? -errno : write_script(&maker->battery);

	if (outcome < 0)
		return error_errno(error, outcome, "preparing the battery");
	outcome = supervise(&(struct supervise_options){ .effective = enforced,
							 .action = action,
							 .sink = &event_null_sink,
							 .evidence = true,
							 .out = out,
							 .err = err,
							 .watch = names_of(maker->decoys),
							 .names_port = maker->decoys->names_port,
							 .started = keep_listeners,
							 .context = &kept },
			    &denials, &result, error);
	if (outcome == 0) {
		take_answers(&maker->battery, read_back(out, maker->arena));
		for (size_t i = 0; i < maker->battery.count; i++)
			judge(&maker->battery.rows[i], maker->arena);
		judge_listeners(&maker->battery, kept.listeners, kept.count, maker->decoys->token);
		judge_decoy(&maker->battery, maker->decoys);
		battery_list_layers(maker, &result);
	}
	for (size_t i = 0; i < kept.count; i++)
		fd_close(&kept.listeners[i]);
	return outcome;
}

int battery_run(const struct effective *claimed, const struct effective *enforced,
		const struct action *action, struct arena *arena, struct battery *ret_battery,
		struct error *error)
{
	struct battery_decoys decoys = {
		.path_fd = -1,
		.abstract_fd = -1,
		.listener_fd = -1,
		.names_fd = -1,
		.shared_memory = -1,
	};
	struct battery_maker maker = { .effective = claimed,
				       .decoys = &decoys,
				       .arena = arena,
				       .quick = claimed->policy.timeout_ns <=
						BATTERY_QUICK_TIME_NS };
	int result = battery_plant(claimed, arena, &decoys, error);

	if (result == 0) {
		battery_list(&maker);
		result = arena_failed(arena) ? error_errno(error, ENOMEM, "preparing the battery") :
					       attempt_all(&maker, enforced, action, error);
	}
	battery_unplant(&decoys);
	if (result < 0)
		return result;
	for (size_t i = 0; i < maker.battery.count; i++)
		maker.battery.failed += !maker.battery.rows[i].passed;
	*ret_battery = maker.battery;
	return 0;
}

const char *battery_name(const struct battery_row *row)
{
	return row->attempt == ATTEMPT_COUNT ? "read back from outside" :
					       attempt_word(row->attempt);
}
