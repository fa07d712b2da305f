#include "workspace/planted.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/fd.h"
#include "base/sha256.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory of hooks, or a workspace's top, with more entries is looked at no further. */
#define ENTRIES_LIMIT 256
/* Configuration that is larger is compared by its change time. */
#define CONTENT_LIMIT_BYTES 16384

static const char *const names[PLANTED_NAMES] = {
	".git",		  ".git/config",    ".git/config.worktree",
	".git/commondir", ".git/hooks",	    ".git/info/attributes",
	".git/modules",	  ".git/worktrees", ".gitmodules",
	".gitattributes", ".envrc",	    ".vscode",
	".idea",	  ".claude",	    ".codex",
	".cursor",	  ".mcp.json",	    ".devcontainer",
};

/* Order does not matter, which readdir(3) does not promise. */
static uint64_t mix(const struct stat *status)
{
	uint64_t value = status->st_ino * 0x9e3779b97f4a7c15u;

	value ^= (uint64_t)status->st_ctim.tv_sec * 0xff51afd7ed558ccdu;
	value ^= (uint64_t)status->st_ctim.tv_nsec * 0xc4ceb9fe1a85ec53u;
	return value ^ value >> 29;
}

/* Templates that git itself puts there and never runs. */
static bool is_sample(const char *name)
{
	size_t length = strlen(name);

	return length > 7 && strcmp(name + length - 7, ".sample") == 0;
}

static uint64_t entries_of(int fd)
{
	struct directory CLEANUP_DIRECTORY directory;
	uint64_t sum = 0;
	const char *name;
	int count = 0;

	directory_begin(&directory, fd);
	while (count++ < ENTRIES_LIMIT && (name = directory_next(&directory))) {
		struct stat status;

		if (name[0] != '.' && !is_sample(name) &&
		    fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			sum += mix(&status);
	}
	return sum;
}

/* 0 where it cannot be read or is too large; then its change time alone counts. */
static uint64_t content_of(int root_fd, const char *name)
{
	int CLEANUP_FD fd = fd_open_beneath(root_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	unsigned char bytes[CONTENT_LIMIT_BYTES], digest[SHA256_BYTES];
	struct sha256 hash;
	struct stat status;
	uint64_t content;
	ssize_t length;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return 0;
	length = fd_read_all(fd, bytes, sizeof(bytes));
	if (length < 0 || (size_t)length == sizeof(bytes))
		return 0;
	sha256_begin(&hash);
	sha256_update(&hash, bytes, (size_t)length);
	sha256_end(&hash, digest);
	memcpy(&content, digest, sizeof(content));
	return content;
}

static bool is_same(const struct planted_state *before, const struct planted_state *after)
{
	return memcmp(before, after, sizeof(*after)) == 0 ||
	       (after->content && before->content == after->content);
}

static struct planted_state look(int root_fd, const char *name)
{
	struct planted_state state = { 0 };
	int CLEANUP_FD fd = fd_open_beneath(root_fd, name, O_PATH | O_NOFOLLOW);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return state;
	state.device = status.st_dev;
	state.inode = status.st_ino;
	if (S_ISDIR(status.st_mode)) {
		/* its own times change with every lock file in it; what counts is what is in it */
		int inner = -1;

		if (strcmp(name, ".git") != 0)
			inner = fd_open_beneath(root_fd, name, O_RDONLY | O_DIRECTORY);
		state.entries = inner < 0 ? 0 : entries_of(inner);
	} else {
		state.changed_s = status.st_ctim.tv_sec;
		state.changed_ns = status.st_ctim.tv_nsec;
		state.content = S_ISREG(status.st_mode) ? content_of(root_fd, name) : 0;
	}
	return state;
}

/* A directory may ignore case ("casefold", ext4(5)), by Unicode's rules where it is not ASCII. */
static void note_name(const char *name, bool may_be[static PLANTED_NAMES])
{
	bool is_ascii = true;

	for (const char *at = name; *at; at++)
		is_ascii &= (unsigned char)*at < 0x80;
	for (size_t i = 0; i < PLANTED_NAMES; i++)
		may_be[i] |= !is_ascii || strcasecmp(name, names[i]) == 0;
}

/*
 * One listing tells which names are there, most often none. All may be where it cannot be read, and
 * in a directory with more names than it is worth while to read.
 */
static void list(int root_fd, bool may_be[static PLANTED_NAMES])
{
	struct directory CLEANUP_DIRECTORY directory;
	int result = directory_open(&directory, root_fd, ".", 0);
	const char *name;
	int count = 0;

	while (count++ < ENTRIES_LIMIT && (name = directory_next(&directory)))
		note_name(name, may_be);
	if (result < 0 || directory.code < 0 || count > ENTRIES_LIMIT)
		memset(may_be, true, PLANTED_NAMES * sizeof(may_be[0]));
}

/* Names in a .git that is not there are not looked for. */
static void look_at_all(const struct planted *planted,
			struct planted_state states[static PLANTED_NAMES])
{
	bool may_be[PLANTED_NAMES] = { false };

	if (planted->root_fd >= 0)
		list(planted->root_fd, may_be);
	for (size_t i = 0; i < PLANTED_NAMES && planted->root_fd >= 0; i++) {
		bool is_git = strncmp(names[i], ".git/", 5) == 0;

		if (is_git ? states[0].inode && !planted->git_is_covered : may_be[i])
			states[i] = look(planted->root_fd, names[i]);
	}
}

void planted_begin(const char *workspace, bool git_is_covered, struct planted *ret_planted)
{
	*ret_planted = (struct planted){ .root_fd = -1, .git_is_covered = git_is_covered };
	ret_planted->root_fd = open(workspace, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	look_at_all(ret_planted, ret_planted->states);
}

static enum change_kind kind_of(const struct planted_state *before,
				const struct planted_state *after)
{
	if (!before->inode)
		return CHANGE_CREATED;
	if (!after->inode)
		return CHANGE_REMOVED;
	return before->inode != after->inode || before->device != after->device ? CHANGE_REPLACED :
										  CHANGE_MODIFIED;
}

size_t planted_end(struct planted *planted, const char *workspace, struct arena *arena,
		   struct change **ret_changes)
{
	struct change *changes = arena_array(arena, PLANTED_NAMES, sizeof(*changes));
	struct planted_state after[PLANTED_NAMES] = { 0 };
	size_t count = 0;

	look_at_all(planted, after);
	for (size_t i = 0; changes && i < PLANTED_NAMES && planted->root_fd >= 0; i++) {
		if (is_same(&planted->states[i], &after[i]))
			continue;
		changes[count++] = (struct change){
			.path = arena_format(arena, "%s/%s", workspace, names[i]),
			.kind = kind_of(&planted->states[i], &after[i]),
			.state = CHANGE_APPLIED,
			.reason = "programs outside of the box run or obey what stands there",
		};
	}
	fd_close(&planted->root_fd);
	*ret_changes = changes;
	return count;
}
