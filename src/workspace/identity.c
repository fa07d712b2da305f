#include "workspace/identity.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "ipc/parse.h"
#include "ipc/role.h"
#include "workspace/host.h"
#include "workspace/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Raised when the filter gives another result for the same text. */
#define FILTER_VERSION 2u

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
		const uint64_t facts[] = { FILTER_VERSION, sources[i].exists };

		sha256_update(&hash, sources[i].path, strlen(sources[i].path) + 1);
		sha256_update(&hash, facts, sizeof(facts));
		kept_hash_file(&hash, &sources[i].status);
	}
	sha256_end(&hash, digest);
	sha256_hex(digest, name);
}

/* Looks without opening; a file that cannot be looked at is met again when it is opened. */
static int find_sources(const struct caller *host, struct arena *arena,
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

/* The text of a file in a sealed memfd, for the role; what it was read from in `source`. */
static int seal_source(const struct caller *host, struct source *source, struct arena *arena,
		       struct error *error)
{
	static const struct parse_order order = { PARSE_IDENTITY };
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
	text = arena_allocate(arena, sizeof(order) + IDENTITY_LIMIT_BYTES);
	length = text ? fd_read_all(fd, text + sizeof(order), IDENTITY_LIMIT_BYTES) : -ENOMEM;
	if (text)
		memcpy(text, &order, sizeof(order));
	config = length < 0 ? (int)length : role_config(text, sizeof(order) + (size_t)length);
	if (config < 0)
		return error_errno(error, config, "reading %s", source->path);
	return config;
}

static int ask(int config_fd, struct arena *arena, char **ret_text, struct error *error)
{
	size_t length;
	int result = parse_ask(config_fd, IDENTITY_RESULT, IDENTITY_LIMIT_RESULT_BYTES, arena,
			       ret_text, &length, error);

	if (result == 0 && strlen(*ret_text) != length)
		return error_set(error, EBADMSG, "bawn-parse gave no good answer: no text");
	return result;
}

/* Asks for each file and puts the answers together. */
static int make_answer(const struct caller *host, struct source sources[static NAMES],
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

int identity_load(const struct caller *host, int state_fd, struct arena *arena, char **ret_text,
		  struct error *error)
{
	struct source sources[NAMES] = { 0 };
	char name[SHA256_HEX_BYTES];
	int CLEANUP_FD directory_fd = -1;
	size_t length;
	char *text;
	int result;

	if (host->home && find_sources(host, arena, sources) < 0)
		return error_errno(error, ENOMEM, "the git configuration");
	if (!sources[0].exists && !sources[1].exists) {
		*ret_text = arena_copy(arena, "");
		return *ret_text ? 0 : error_errno(error, ENOMEM, "the git configuration");
	}
	directory_fd = kept_open(state_fd, "identity");
	if (directory_fd < 0)
		return error_errno(error, directory_fd, "opening identity in the state directory");
	name_answer(sources, name);
	text = kept_read(directory_fd, name, IDENTITY_LIMIT_RESULT_BYTES, arena, &length);
	if (!text) {
		result = make_answer(host, sources, arena, &text, error);
		if (result < 0)
			return result;
		/* by what was read, which may have changed since it was looked at */
		name_answer(sources, name);
		kept_write(directory_fd, name, text, strlen(text), 0);
	}
	*ret_text = text;
	return 0;
}
