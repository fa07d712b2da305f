#include "workspace/stage_merge.h"

#include "base/buffer.h"
#include "base/content.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/host_program.h"
#include "workspace/stage_apply_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "merged"
#define GIT "/usr/bin/git"
#define SIDES 3
#define NANOSECONDS 1000000000ull

enum side { SIDE_HOST, SIDE_BASE, SIDE_TASK };

static const char *const side_names[SIDES] = { "host", "base", "task" };

struct merging {
	const struct stage_kept *kept;
	int directory_fd;
	char *git_directory; /* --git-dir=... */
	bool is_stuck;	     /* git did not come to an end */
	bool is_asked;	     /* whether there is a log of HEAD */
	bool has_log;
};

/* ---- git ---- */

/* Runs it with output into one file; its exit status, or a negative errno. -EFBIG, -ETIME. */
static int run_git(struct merging *merging, char *const *argv, const int *sides, int out_fd,
		   bool *ret_said)
{
	/* nothing of the caller's: no configuration but the repository's own */
	char *environment[] = { (char *)"PATH=/usr/bin:/bin",
				(char *)"GIT_CONFIG_NOSYSTEM=1",
				(char *)"GIT_CONFIG_GLOBAL=/dev/null",
				(char *)"GIT_NO_REPLACE_OBJECTS=1",
				(char *)"GIT_NO_LAZY_FETCH=1",
				(char *)"GIT_ALLOW_PROTOCOL=none",
				(char *)"GIT_TERMINAL_PROMPT=0",
				(char *)"GIT_OPTIONAL_LOCKS=0",
				(char *)"LC_ALL=C",
				NULL };
	const struct host_program git = { .path = GIT,
					  .argv = argv,
					  .environment = environment,
					  .fds = sides,
					  .fd_count = sides ? SIDES : 0,
					  .out_fd = out_fd,
					  .limit_bytes = sides ? SIDES * STAGE_MERGE_LIMIT_BYTES :
								 STAGE_MERGE_LIMIT_BYTES,
					  .limit_ns = STAGE_MERGE_LIMIT_NS };
	int result = host_program_run(&git, ret_said);

	/* what is stuck once is so for each file */
	merging->is_stuck |= result == -ETIME;
	return result;
}

/*
 * Whether HEAD has a log. Where it has none, git answers a question about an earlier moment with
 * what is there now, and without a word.
 */
static int look_for_log(struct merging *merging)
{
	char *argv[] = { (char *)"git",	   merging->git_directory, (char *)"reflog",
			 (char *)"exists", (char *)"HEAD",	   NULL };
	int CLEANUP_FD nothing =
		fd_open_own(merging->directory_fd, side_names[SIDE_BASE], O_RDWR | O_TRUNC);
	bool has_said = false;
	int result = nothing < 0 ? nothing : run_git(merging, argv, NULL, nothing, &has_said);

	merging->has_log = result == 0 && !has_said;
	merging->is_asked = true;
	return result < 0 ? result : 0;
}

/* What git has of it from the second before the start on. A word on stderr: that is not sure. */
static int get_base(struct merging *merging, const char *path)
{
	uint64_t start_s = merging->kept->about.wall_ns / NANOSECONDS;
	char *object = NULL;
	bool has_object = asprintf(&object, "HEAD@{%llu +0000}:%s",
				   (unsigned long long)(start_s - 1), path) >= 0;
	char *argv[] = { (char *)"git", merging->git_directory, (char *)"-c",
			 (char *)"core.fsmonitor=false", (char *)"-c",
			 (char *)"core.hooksPath=/dev/null", (char *)"-c",
			 (char *)"protocol.allow=never",
			 /* what is too large is written piece by piece, and ends at the limit */
			 (char *)"-c", (char *)"core.bigFileThreshold=1m", (char *)"cat-file",
			 (char *)"blob", object, NULL };
	int CLEANUP_FD base =
		fd_open_own(merging->directory_fd, side_names[SIDE_BASE], O_RDWR | O_TRUNC);
	bool has_said = false;
	int result;

	if (!has_object)
		return -ENOMEM;
	result = base < 0 ? base : run_git(merging, argv, NULL, base, &has_said);
	free(object);
	return result < 0 ? result : result || has_said ? -ENOENT : 0;
}

/* A copy that nobody changes meanwhile. */
static int copy_side(const struct merging *merging, enum side side, int root_fd, const char *path)
{
	int CLEANUP_FD from = stage_open_file(root_fd, path);
	int CLEANUP_FD to = fd_open_own(merging->directory_fd, side_names[side], O_RDWR | O_TRUNC);
	struct stat status;

	if (from < 0 || to < 0)
		return from < 0 ? from : to;
	if (fstat(from, &status) < 0)
		return -errno;
	return status.st_size > STAGE_MERGE_LIMIT_BYTES ? -EFBIG :
							  content_copy(from, to, status.st_size);
}

static void name_merged(unsigned number, char name[static 16])
{
	(void)snprintf(name, 16, "%u", number);
}

/* 0: merged; -EUCLEAN: both changed the same lines, or it is no text. */
static int merge_sides(struct merging *merging, unsigned number)
{
	char *argv[] = { (char *)"git",	       merging->git_directory, (char *)"merge-file",
			 (char *)"-p",	       (char *)"-q",	       (char *)"/dev/fd/10",
			 (char *)"/dev/fd/11", (char *)"/dev/fd/12",   NULL };
	int sides[SIDES] = { -1, -1, -1 };
	int CLEANUP_FD merged = -1;
	bool has_said = false;
	int result = 0;
	char name[16];

	name_merged(number, name);
	merged = fd_open_own(merging->directory_fd, name, O_RDWR | O_TRUNC);
	for (int i = 0; i < SIDES && result == 0; i++) {
		sides[i] = openat(merging->directory_fd, side_names[i],
				  O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		result = sides[i] < 0 ? -errno : 0;
	}
	if (result == 0)
		result = merged < 0 ? merged : run_git(merging, argv, sides, merged, &has_said);
	for (int i = 0; i < SIDES; i++)
		fd_close(&sides[i]);
	if (result != 0)
		(void)unlinkat(merging->directory_fd, name, 0);
	return result > 0 ? -EUCLEAN : result;
}

/* ---- the conflicts ---- */

static bool can_be_merged(const struct stage_item *item)
{
	return item->outcome == STAGE_CONFLICT && item->kind == STAGE_MODIFIED &&
	       item->before.type == STAGE_FILE && item->after.type == STAGE_FILE && item->inode;
}

/* Why it was not merged; by the error. */
static const char *reason_of(int code)
{
	static const struct {
		int code;
		const char *text;
	} reasons[] = {
		{ -EUCLEAN, "the host changed the same lines, or it is no text" },
		{ -EFBIG, "the host changed it, and it is too large to be merged" },
		{ -ETIME,
		  "the host changed it, and git took too long to say what was there before" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].code == code)
			return reasons[i].text;
	return "the host changed it, and git has no version to merge by";
}

static int merge_one(struct merging *merging, struct stage_item *item, unsigned number)
{
	int result = merging->is_stuck ? -ETIME : 0;

	if (result == 0)
		result = copy_side(merging, SIDE_HOST, merging->kept->workspace_fd, item->path);
	if (result == 0)
		result = copy_side(merging, SIDE_TASK, merging->kept->upper_fd, item->path);
	if (result == 0 && !merging->is_asked)
		result = look_for_log(merging);
	if (result == 0)
		result = merging->has_log ? get_base(merging, item->path) : -ENOENT;
	if (result == 0)
		result = merge_sides(merging, number);
	if (result == 0) {
		item->outcome = STAGE_READY;
		item->reason = "merged with what the host changed";
		item->merged = number;
		return 0;
	}
	if (result == -ENOSPC || result == -EDQUOT || result == -ENOMEM || result == -EIO)
		return result;
	item->reason = reason_of(result);
	return 0;
}

int stage_merge_all(const struct stage_kept *kept, struct stage_applied *applied,
		    struct error *error)
{
	struct merging merging = { .kept = kept, .directory_fd = -1 };
	unsigned tried = 0;
	int result = 0;

	stage_merge_end(kept);
	if (mkdirat(kept->fd, DIRECTORY, 0700) < 0)
		return error_errno(error, errno, "merging in the stage");
	merging.directory_fd =
		openat(kept->fd, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (merging.directory_fd < 0 ||
	    asprintf(&merging.git_directory, "--git-dir=%s/.git", kept->about.workspace) < 0)
		result = -ENOMEM;
	for (size_t i = 0; i < applied->count && result == 0; i++)
		if (can_be_merged(&applied->items[i]) && tried++ < STAGE_MERGE_LIMIT_FILES)
			result = merge_one(&merging, &applied->items[i], tried);
	free(merging.git_directory);
	fd_close(&merging.directory_fd);
	return result < 0 ? error_errno(error, result, "merging in the stage") : 0;
}

int stage_merge_open(const struct stage_kept *kept, const struct stage_item *item)
{
	int CLEANUP_FD directory =
		openat(kept->fd, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char name[16];

	name_merged(item->merged, name);
	return directory < 0 ? -errno : stage_open_file(directory, name);
}

void stage_merge_end(const struct stage_kept *kept)
{
	directory_remove_tree(kept->fd, DIRECTORY);
}
