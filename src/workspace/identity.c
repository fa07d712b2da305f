#include "workspace/identity.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "ipc/message.h"
#include "ipc/role.h"
#include "workspace/host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Raised when the filter gives another result for the same text. */
#define FILTER_VERSION 2u
/* The role takes about 1 ms; on a machine that swaps it may take a thousand times that. */
#define ANSWER_TIMEOUT_MS 10000
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* git reads both, the second one last. */
static const char *const names[] = { ".config/git/config", ".gitconfig" };

#define NAMES (sizeof(names) / sizeof(names[0]))

struct source {
	const char *path;
	bool exists;
	struct stat status;
};

/* What changes when a file is changed in place, replaced, or led elsewhere by a link. */
static void name_answer(const struct source sources[static NAMES],
			char name[static SHA256_HEX_BYTES])
{
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	for (size_t i = 0; i < NAMES; i++) {
		const struct stat *status = &sources[i].status;
		const uint64_t facts[] = {
			FILTER_VERSION,
			sources[i].exists,
			status->st_dev,
			status->st_ino,
			(uint64_t)status->st_size,
			(uint64_t)status->st_ctim.tv_sec,
			(uint64_t)status->st_ctim.tv_nsec,
			(uint64_t)status->st_mtim.tv_sec,
			(uint64_t)status->st_mtim.tv_nsec,
		};

		sha256_update(&hash, sources[i].path, strlen(sources[i].path) + 1);
		sha256_update(&hash, facts, sizeof(facts));
	}
	sha256_end(&hash, digest);
	sha256_hex(digest, name);
}

/* Looks without opening; a file that cannot be looked at is met again when it is opened. */
static int find_sources(const struct host *host, struct arena *arena,
			struct source sources[static NAMES])
{
	for (size_t i = 0; i < NAMES; i++) {
		sources[i].path = path_clean(arena, host->home, names[i]);
		if (!sources[i].path)
			return -ENOMEM;
		sources[i].exists = stat(sources[i].path, &sources[i].status) == 0;
		if (!sources[i].exists)
			sources[i].status = (struct stat){ 0 };
	}
	return 0;
}

/* An answer that is kept; NULL when there is none, or none that can be ours. */
static char *read_answer(int directory_fd, const char *name, struct arena *arena)
{
	int CLEANUP_FD fd =
		openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;
	char *text;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    status.st_uid != geteuid() || status.st_size > (off_t)IDENTITY_LIMIT_RESULT_BYTES)
		return NULL;
	text = arena_allocate(arena, (size_t)status.st_size + 1);
	if (!text || fd_read_all(fd, text, (size_t)status.st_size) != status.st_size)
		return NULL;
	return text;
}

static void remove_others(int directory_fd, const char *name)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *entry;

	(void)directory_open(&directory, directory_fd, ".", 0);
	while ((entry = directory_next(&directory)))
		if (entry[0] != '.' && strcmp(entry, name) != 0)
			(void)unlinkat(directory_fd, entry, 0);
}

/*
 * Keeps an answer, and it alone. Failing (a full disk, another start that does the same) costs
 * the next start a role and nothing else.
 */
static void keep_answer(int directory_fd, const char *name, const char *text)
{
	char draft[SHA256_HEX_BYTES + 16];
	int CLEANUP_FD fd = -1;

	remove_others(directory_fd, name);
	(void)snprintf(draft, sizeof(draft), "%s.%d", name, (int)getpid());
	fd = openat(directory_fd, draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return;
	if (fd_write_all(fd, text, strlen(text)) < 0 ||
	    renameat(directory_fd, draft, directory_fd, name) < 0)
		(void)unlinkat(directory_fd, draft, 0);
}

static int open_directory(int state_fd)
{
	int fd;

	if (mkdirat(state_fd, "identity", 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(state_fd, "identity", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The text of a file in a sealed memfd, for the role; what it was read from in `source`. */
static int seal_source(const struct host *host, struct source *source, struct arena *arena,
		       struct error *error)
{
	int CLEANUP_FD fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t length;
	char *text;
	int config;

	source->exists = false;
	source->status = (struct stat){ 0 };
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return -ENOENT;
	if (fd < 0 || fstat(fd, &source->status) < 0)
		return error_errno(error, errno, "reading %s", source->path);
	source->exists = true;
	if (!S_ISREG(source->status.st_mode) ||
	    (source->status.st_uid != host->uid && source->status.st_uid != 0))
		return error_set(error, EPERM, "%s is not a file of the caller's or root's",
				 source->path);
	if (source->status.st_size > (off_t)IDENTITY_LIMIT_BYTES)
		return error_set(error, EFBIG, "%s is larger than %u bytes", source->path,
				 IDENTITY_LIMIT_BYTES);
	text = arena_allocate(arena, IDENTITY_LIMIT_BYTES);
	length = text ? fd_read_all(fd, text, IDENTITY_LIMIT_BYTES) : -ENOMEM;
	config = length < 0 ? (int)length : role_config(text, (size_t)length);
	if (config < 0)
		return error_errno(error, config, "reading %s", source->path);
	return config;
}

static int bad_answer(struct role *role, const char *what, struct error *error)
{
	int status;

	/* it has ended already, or must not go on */
	(void)kill(role->pid, SIGKILL);
	status = role_wait(role);
	if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status))
		return error_set(error, EBADMSG, "bawn-parse failed in its step %d",
				 WEXITSTATUS(status));
	return error_set(error, EBADMSG, "bawn-parse gave no good answer: %s", what);
}

/* The memfd that came: sealed, small, text. */
static int read_result(int fd, struct arena *arena, char **ret_text)
{
	struct stat status;
	char *text;

	if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &status) < 0 ||
	    status.st_size > (off_t)IDENTITY_LIMIT_RESULT_BYTES)
		return -EBADMSG;
	text = arena_allocate(arena, (size_t)status.st_size + 1);
	if (!text)
		return -ENOMEM;
	if (pread(fd, text, (size_t)status.st_size, 0) != status.st_size ||
	    memchr(text, '\0', (size_t)status.st_size))
		return -EBADMSG;
	*ret_text = text;
	return 0;
}

static int ask(int config_fd, struct arena *arena, char **ret_text, struct error *error)
{
	struct role CLEANUP_ROLE role = ROLE_NONE;
	struct pollfd answer = { .events = POLLIN };
	struct message message;
	int result = role_spawn(EDGE_SUPERVISOR_PARSE, config_fd, NULL, 0, &role, error);

	if (result < 0)
		return result;
	answer.fd = role.channel;
	do
		result = poll(&answer, 1, ANSWER_TIMEOUT_MS);
	while (result < 0 && errno == EINTR);
	if (result <= 0)
		return bad_answer(&role, "time is up", error);
	result = message_receive(role.channel, &message);
	if (result < 0)
		return bad_answer(&role, error_text(result), error);
	result = message.type == IDENTITY_RESULT && message.length == 0 && message.fd_count == 1 ?
			 read_result(message.fds[0], arena, ret_text) :
			 -EBADMSG;
	message_close_fds(&message);
	return result < 0 ? bad_answer(&role, error_text(result), error) : 0;
}

/* Asks for each file and puts the answers together. */
static int make_answer(const struct host *host, struct source sources[static NAMES],
		       struct arena *arena, char **ret_text, struct error *error)
{
	char *text = arena_copy(arena, "");

	for (size_t i = 0; i < NAMES; i++) {
		int CLEANUP_FD config_fd = seal_source(host, &sources[i], arena, error);
		char *part = NULL;
		int result;

		if (config_fd == -ENOENT)
			continue;
		result = config_fd < 0 ? config_fd : ask(config_fd, arena, &part, error);
		if (result < 0)
			return result;
		text = text ? arena_format(arena, "%s%s", text, part) : NULL;
	}
	if (!text)
		return error_errno(error, ENOMEM, "the git configuration");
	*ret_text = text;
	return 0;
}

int identity_load(const struct host *host, int state_fd, struct arena *arena, char **ret_text,
		  struct error *error)
{
	struct source sources[NAMES] = { 0 };
	char name[SHA256_HEX_BYTES];
	int CLEANUP_FD directory_fd = -1;
	char *text;
	int result;

	if (host->home && find_sources(host, arena, sources) < 0)
		return error_errno(error, ENOMEM, "the git configuration");
	if (!sources[0].exists && !sources[1].exists) {
		*ret_text = arena_copy(arena, "");
		return *ret_text ? 0 : error_errno(error, ENOMEM, "the git configuration");
	}
	directory_fd = open_directory(state_fd);
	if (directory_fd < 0)
		return error_errno(error, directory_fd, "opening identity in the state directory");
	name_answer(sources, name);
	text = read_answer(directory_fd, name, arena);
	if (!text) {
		result = make_answer(host, sources, arena, &text, error);
		if (result < 0)
			return result;
		/* by what was read, which may have changed since it was looked at */
		name_answer(sources, name);
		keep_answer(directory_fd, name, text);
	}
	*ret_text = text;
	return 0;
}
