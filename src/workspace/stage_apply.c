#include "workspace/stage_apply.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "ipc/codec.h"
#include "workspace/stage_apply_internal.h"
#include "workspace/stage_merge.h"
#include "workspace/stage_undo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASKED "asked"
#define ASKED_VERSION 3u
#define ASKED_LIMIT_BYTES (32u * 1024 * 1024)

const char *stage_outcome_name(enum stage_outcome outcome)
{
	static const char *const names[STAGE_OUTCOME_COUNT] = { "waiting",  "ready", "applied",
								"conflict", "held",  "refused",
								"failed" };

	return names[outcome];
}

/* ---- what was asked for ---- */

int stage_asked_keep(int stage_fd, const struct stage_asked *asked)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	int CLEANUP_FD fd = fd_open_own(stage_fd, ASKED, O_WRONLY | O_TRUNC);

	if (fd < 0)
		return fd;
	codec_put_u32(&buffer, ASKED_VERSION);
	codec_put_u32(&buffer, asked->overwrites);
	codec_put_u32(&buffer, asked->merges);
	codec_put_u32(&buffer, asked->drops);
	codec_put_u32(&buffer, asked->is_undo);
	codec_put_u32(&buffer, (uint32_t)asked->path_count);
	for (size_t i = 0; i < asked->path_count; i++)
		codec_put_string(&buffer, asked->paths[i]);
	codec_put_u32(&buffer, ASKED_VERSION);
	return buffer.failed ? -ENOMEM : fd_write_all(fd, buffer.data, buffer.length);
}

void stage_asked_forget(int stage_fd)
{
	(void)unlinkat(stage_fd, ASKED, 0);
}

int stage_apply_asked(const struct stage_kept *kept, struct arena *arena,
		      struct stage_asked *ret_asked)
{
	int CLEANUP_FD fd = openat(kept->fd, ASKED, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stage_asked asked = { 0 };
	struct codec_cursor cursor;
	struct stat status;
	ssize_t length;
	char *bytes;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size > ASKED_LIMIT_BYTES)
		return -ENOENT;
	bytes = arena_allocate(arena, (size_t)status.st_size + 1);
	length = bytes ? fd_read_all(fd, bytes, (size_t)status.st_size) : -ENOMEM;
	if (length < 0)
		return (int)length;
	codec_begin(&cursor, bytes, (size_t)length, arena);
	if (codec_u32(&cursor) != ASKED_VERSION)
		codec_fail(&cursor, -EBADMSG);
	asked.overwrites = codec_u32(&cursor);
	asked.merges = codec_u32(&cursor);
	asked.drops = codec_u32(&cursor);
	asked.is_undo = codec_u32(&cursor);
	asked.path_count = codec_count(&cursor, STAGE_APPLY_LIMIT_PATHS, 4);
	asked.paths = codec_strings(&cursor, asked.path_count, PATH_MAX);
	if (codec_u32(&cursor) != ASKED_VERSION)
		codec_fail(&cursor, -EBADMSG);
	/* torn: killed before anything was done */
	if (codec_end(&cursor) < 0)
		return -ENOENT;
	*ret_asked = asked;
	return 0;
}

/* ---- the work ---- */

static bool is_directory(const struct stage_side *side)
{
	return side->type == STAGE_DIRECTORY;
}

/* What is new or changed, but where a directory has to be emptied first. */
static int put_most(struct stage_writer *writer, struct stage_applied *applied)
{
	int result = 0;

	for (size_t i = 0; i < applied->count && result == 0; i++) {
		struct stage_item *item = &applied->items[i];

		if (item->outcome != STAGE_READY || item->after.type == STAGE_NONE ||
		    is_directory(&item->before))
			continue;
		result = item->kind == STAGE_MODE ? stage_writer_set_mode(writer, item) :
						    stage_writer_put(writer, item);
		if (item->outcome == STAGE_APPLIED)
			stage_prune(writer, item);
	}
	return result;
}

/* What a directory holds goes before it. */
static int remove_all(struct stage_writer *writer, struct stage_applied *applied)
{
	int result = 0;

	for (size_t i = applied->count; i-- > 0 && result == 0;) {
		struct stage_item *item = &applied->items[i];

		if (item->outcome != STAGE_READY || item->after.type != STAGE_NONE)
			continue;
		result = stage_writer_remove(writer, item);
		if (item->outcome == STAGE_APPLIED)
			stage_prune(writer, item);
	}
	return result;
}

static int put_in_place_of_directories(struct stage_writer *writer, struct stage_applied *applied)
{
	int result = 0;

	for (size_t i = 0; i < applied->count && result == 0; i++) {
		struct stage_item *item = &applied->items[i];

		if (item->outcome != STAGE_READY || item->after.type == STAGE_NONE ||
		    is_directory(&item->after))
			continue;
		result = stage_writer_put(writer, item);
		if (item->outcome == STAGE_APPLIED)
			stage_prune(writer, item);
	}
	return result;
}

/* Last, from below: one that takes the right to write keeps nothing from coming. */
static int set_modes(struct stage_writer *writer, struct stage_applied *applied)
{
	int result = 0;

	for (size_t i = applied->count; i-- > 0 && result == 0;) {
		struct stage_item *item = &applied->items[i];
		bool is_new = item->outcome == STAGE_APPLIED && !is_directory(&item->before);

		if (is_directory(&item->after) && (is_new || item->outcome == STAGE_READY))
			result = stage_writer_set_mode(writer, item);
	}
	return result;
}

static int work(const struct stage_apply *apply, struct stage_applied *applied, struct error *error)
{
	struct stage_writer writer;
	int ended;
	int result = stage_writer_begin(&writer, apply->kept, !apply->drops, error);

	if (result == 0) {
		result = put_most(&writer, applied);
		if (result == 0)
			result = remove_all(&writer, applied);
		if (result == 0)
			result = put_in_place_of_directories(&writer, applied);
		if (result == 0)
			result = set_modes(&writer, applied);
		if (result < 0)
			error_errno(error, result, "applying the stage; what is left of it waits");
	}
	ended = stage_writer_end(&writer);
	return result == 0 && ended < 0 ?
		       error_errno(error, ended,
				   "removing a directory of bawn's own from the workspace") :
		       result;
}

static int stop_at_one(void *context, const struct stage_change *change)
{
	(void)change;
	*(bool *)context = true;
	return -ECANCELED;
}

bool stage_has_more(const struct stage_kept *kept)
{
	bool is_left = false;
	const struct stage stage = { .upper_fd = kept->upper_fd,
				     .lower_fd = kept->workspace_fd,
				     .hidden = kept->about.hidden,
				     .hidden_count = kept->about.hidden_count,
				     .take = stop_at_one,
				     .context = &is_left };
	struct error ignored = ERROR_NONE;

	return stage_walk(&stage, &ignored) < 0 || is_left;
}

static void count(struct stage_applied *applied)
{
	for (size_t i = 0; i < applied->count; i++)
		applied->outcomes[applied->items[i].outcome]++;
}

/* What is kept by copying, since it cannot be moved to the state's file system. */
static int check_room(const struct stage_apply *apply, const struct stage_applied *applied,
		      struct error *error)
{
	uint64_t bytes = 0;
	struct stat stage, workspace;

	if (apply->drops || fstat(apply->kept->fd, &stage) < 0 ||
	    fstat(apply->kept->workspace_fd, &workspace) < 0 || stage.st_dev == workspace.st_dev)
		return 0;
	for (size_t i = 0; i < applied->count; i++) {
		const struct stage_item *item = &applied->items[i];

		if (item->outcome == STAGE_READY && item->before.type == STAGE_FILE &&
		    item->kind != STAGE_MODE)
			bytes += item->before.size;
	}
	if (bytes <= STAGE_UNDO_LIMIT_COPY_BYTES)
		return 0;
	return error_set(error, EFBIG,
			 "what would be replaced is kept for --undo, by copying, since the state "
			 "lies on another file system; these %llu MiB are more than the %llu MiB "
			 "that are kept: apply in parts, or with --no-undo",
			 (unsigned long long)(bytes >> 20),
			 (unsigned long long)(STAGE_UNDO_LIMIT_COPY_BYTES >> 20));
}

/* What is asked for is kept when whoever wants to know it first agreed. */
static int begin(const struct stage_apply *apply, const struct stage_applied *applied,
		 struct error *error)
{
	const struct stage_asked asked = { .paths = apply->paths,
					   .path_count = apply->path_count,
					   .overwrites = apply->overwrites,
					   .merges = apply->merges,
					   .drops = apply->drops };
	int result = check_room(apply, applied, error);

	if (result == 0 && apply->begin)
		result = apply->begin(apply->context, applied, error);
	if (result < 0)
		return result;
	result = stage_asked_keep(apply->kept->fd, &asked);
	return result < 0 ? error_errno(error, result, "writing to the stage") : 0;
}

int stage_apply(const struct stage_apply *apply, struct arena *arena,
		struct stage_applied *ret_applied, struct error *error)
{
	int result;

	*ret_applied = (struct stage_applied){ .is_left = true };
	if (!apply->is_dry) {
		result = stage_apply_recover(apply->kept, error);
		if (result < 0)
			return error->code ? result :
					     error_errno(error, result, "writing to the stage");
	}
	result = stage_apply_judge(apply, arena, ret_applied, error);
	ret_applied->is_left = true;
	if (result == 0 && apply->merges)
		result = stage_merge_all(apply->kept, ret_applied, error);
	if (result == 0 && !apply->is_dry)
		result = begin(apply, ret_applied, error);
	if (result == 0 && !apply->is_dry) {
		result = work(apply, ret_applied, error);
		ret_applied->is_left = stage_has_more(apply->kept);
	}
	if (result == 0 && !apply->is_dry)
		stage_asked_forget(apply->kept->fd);
	if (apply->merges)
		stage_merge_end(apply->kept);
	count(ret_applied);
	return result;
}
