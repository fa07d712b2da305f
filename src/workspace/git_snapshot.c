#include "workspace/git_snapshot.h"

#include "base/clock.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/content.h"
#include "base/fd.h"
#include "ipc/codec.h"
#include "workspace/git_file.h"
#include "workspace/git_ref.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME "git-snapshot"
#define FILE_VERSION 2u
/* Some 16,384 references, each with a path and a value. */
#define FILE_LIMIT_BYTES (48u * 1024 * 1024)
/* Areas beyond this keep no descriptors: a process has some thousand. */
#define DESCRIPTOR_AREAS 64u

struct take {
	struct arena *arena;
	int root_fd;
	struct git_snapshot_part *part;
	size_t refs, areas;
	/* directories of references, modules and areas that are to be looked at */
	struct pending {
		const char *path; /* "" or with a slash at its end */
		enum { PENDING_AREA, PENDING_REFS, PENDING_FILES, PENDING_MODULES } kind;
		unsigned depth;
	} * pending;
	size_t pending_count;
};

static int64_t ns_of(struct timespec time)
{
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int push(struct take *take, const char *path, int kind, unsigned depth)
{
	struct pending *pending =
		arena_push(take->arena, take->pending, take->pending_count, sizeof(*pending));

	if (!pending || !path)
		return -ENOMEM;
	take->pending = pending;
	pending[take->pending_count++] =
		(struct pending){ .path = path, .kind = kind, .depth = depth };
	return 0;
}

static struct git_state *add(struct take *take, const char *path, const struct stat *status)
{
	struct git_state *states =
		arena_push(take->arena, take->part->states, take->part->count, sizeof(*states));

	if (!states || !path)
		return NULL;
	take->part->states = states;
	states[take->part->count] = (struct git_state){
		.path = path,
		.inode = status->st_ino,
		.size = (uint64_t)status->st_size,
		.changed_ns = ns_of(status->st_ctim),
		.modified_ns = ns_of(status->st_mtim),
		.fd = -1,
	};
	return &states[take->part->count++];
}

/* What is kept is what was there when it was looked at: one descriptor for both. */
static int add_content(struct take *take, int directory_fd, const char *name, const char *path,
		       size_t limit_bytes)
{
	struct git_text text = { 0 };
	struct stat status;
	struct git_state *state;
	int result = git_file_read(directory_fd, name, limit_bytes, take->arena, &text, &status);

	/* gone meanwhile, or nothing that git reads */
	if (result < 0)
		return result == -ENOMEM ? result : 0;
	state = add(take, path, &status);
	if (!state)
		return -ENOMEM;
	state->text = text.bytes;
	state->length = text.length;
	return 0;
}

static int add_descriptor(struct take *take, int directory_fd, const char *name, const char *path)
{
	int CLEANUP_FD fd = fd_open_beneath(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	struct git_state *state;
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return 0;
	state = add(take, path, &status);
	if (!state)
		return -ENOMEM;
	if (take->areas <= DESCRIPTOR_AREAS)
		state->fd = TAKE_FD(fd);
	return 0;
}

static int add_file(struct take *take, int directory_fd, const char *name, const char *path)
{
	struct stat status;

	if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return add(take, path, &status) ? 0 : -ENOMEM;
}

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), other = strlen(end);

	return length >= other && strcmp(name + length - other, end) == 0;
}

/* What git replaces whole. */
static bool has_descriptor(const char *name)
{
	return strcmp(name, "index") == 0 || strcmp(name, "packed-refs") == 0;
}

static int add_top(struct take *take, int directory_fd, const char *name, const char *path)
{
	if (ends_with(name, ".lock"))
		return 0;
	if (strcmp(name, "HEAD") == 0)
		return add_content(take, directory_fd, name, path, GIT_REF_LIMIT_BYTES);
	if (strcmp(name, "config") == 0 || strcmp(name, "config.worktree") == 0)
		return add_content(take, directory_fd, name, path, GIT_SNAPSHOT_LIMIT_CONFIG_BYTES);
	if (has_descriptor(name))
		return add_descriptor(take, directory_fd, name, path);
	return add_file(take, directory_fd, name, path);
}

/* A directory in an area that matters. */
static int push_top(struct take *take, const struct pending *area, const char *name)
{
	static const struct {
		const char *name;
		int kind;
	} rows[] = {
		{ "refs", PENDING_REFS },	   { "info", PENDING_FILES },
		{ "rebase-merge", PENDING_FILES }, { "rebase-apply", PENDING_FILES },
		{ "sequencer", PENDING_FILES },	   { "hooks", PENDING_FILES },
		{ "worktrees", PENDING_MODULES },  { "modules", PENDING_MODULES },
	};

	if (strcmp(name, "reftable") == 0 && !*area->path)
		take->part->fault = "it keeps its references in a reftable";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(name, rows[i].name) == 0)
			return push(take, arena_format(take->arena, "%s%s/", area->path, name),
				    rows[i].kind, area->depth + 1);
	return 0;
}

static bool is_area(int directory_fd, const char *name)
{
	char path[NAME_MAX + 8];
	struct stat status;

	(void)snprintf(path, sizeof(path), "%s/HEAD", name);
	return fstatat(directory_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static int take_name(struct take *take, const struct pending *pending, struct directory *directory,
		     const char *name)
{
	const char *path = arena_format(take->arena, "%s%s", pending->path, name);
	bool is_directory = directory->type == DT_DIR;

	if (!path)
		return -ENOMEM;
	switch (pending->kind) {
	case PENDING_AREA:
		return is_directory ? push_top(take, pending, name) :
				      add_top(take, directory->fd, name, path);
	case PENDING_REFS:
		if (is_directory)
			return push(take, arena_format(take->arena, "%s/", path), PENDING_REFS,
				    pending->depth + 1);
		if (take->refs++ == GIT_SNAPSHOT_LIMIT_REFS)
			take->part->fault = "it has too many loose references; `git pack-refs "
					    "--all` packs them";
		if (take->refs > GIT_SNAPSHOT_LIMIT_REFS || ends_with(name, ".lock"))
			return 0;
		return add_content(take, directory->fd, name, path, GIT_REF_LIMIT_BYTES);
	case PENDING_FILES:
		return is_directory ? 0 : add_file(take, directory->fd, name, path);
	default:
		if (!is_directory)
			return 0;
		return push(take, arena_format(take->arena, "%s/", path),
			    is_area(directory->fd, name) ? PENDING_AREA : PENDING_MODULES,
			    pending->depth + 1);
	}
}

static int take_directory(struct take *take, struct pending pending)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	int result = 0;

	if (pending.depth > GIT_SNAPSHOT_LIMIT_DEPTH) {
		take->part->fault = "its directories are nested too deep";
		return 0;
	}
	if (pending.kind == PENDING_AREA && ++take->areas > GIT_SNAPSHOT_LIMIT_AREAS) {
		take->part->fault = "it has too many worktrees and modules";
		return 0;
	}
	directory_begin(&directory,
			fd_open_beneath(take->root_fd, *pending.path ? pending.path : ".",
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
	while (result == 0 && (name = directory_next(&directory)))
		result = take_name(take, &pending, &directory, name);
	return result;
}

static int by_path(const void *a, const void *b)
{
	const struct git_state *left = a, *right = b;

	return strcmp(left->path, right->path);
}

static int take_part(const struct git_cover *cover, struct arena *arena,
		     struct git_snapshot_part *part, struct error *error)
{
	struct take take = { .arena = arena, .root_fd = cover->fd, .part = part };
	int result = push(&take, "", PENDING_AREA, 0);

	/* the clock that stamps files has steps of some milliseconds */
	part->taken_ns = (int64_t)clock_of_ns(CLOCK_REALTIME_COARSE);
	while (result == 0 && take.pending_count)
		result = take_directory(&take, take.pending[--take.pending_count]);
	if (part->count)
		qsort(part->states, part->count, sizeof(part->states[0]), by_path);
	return result < 0 ? error_errno(error, result, "%s", cover->path) : 0;
}

int git_snapshot_take(const struct git_cover *covers, size_t count, struct arena *arena,
		      struct git_snapshot *ret_snapshot, struct error *error)
{
	struct git_snapshot CLEANUP_GIT_SNAPSHOT snapshot = GIT_SNAPSHOT_NONE;
	int result = 0;

	snapshot.parts = arena_array(arena, count, sizeof(*snapshot.parts));
	if (count && !snapshot.parts)
		return error_errno(error, ENOMEM, "git directories");
	snapshot.count = count;
	for (size_t i = 0; result == 0 && i < count; i++)
		result = take_part(&covers[i], arena, &snapshot.parts[i], error);
	if (result < 0)
		return result;
	*ret_snapshot = snapshot;
	snapshot = GIT_SNAPSHOT_NONE; /* NOLINT(clang-analyzer-deadcode.DeadStores): cleaned up */
	return 0;
}

static void put_state(struct buffer *buffer, const struct git_state *state)
{
	codec_put_string(buffer, state->path);
	codec_put_u64(buffer, state->inode);
	codec_put_u64(buffer, state->size);
	codec_put_u64(buffer, (uint64_t)state->changed_ns);
	codec_put_u64(buffer, (uint64_t)state->modified_ns);
	codec_put_u32(buffer, state->is_diverged);
	codec_put_u32(buffer, state->text != NULL);
	if (state->text) {
		codec_put_u32(buffer, (uint32_t)state->length);
		buffer_append(buffer, state->text, state->length);
	}
}

int git_snapshot_save(const struct git_snapshot *snapshot, int task_fd, struct error *error)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	int result;

	codec_put_u32(&buffer, FILE_VERSION);
	codec_put_u32(&buffer, (uint32_t)snapshot->count);
	for (size_t i = 0; i < snapshot->count; i++) {
		const struct git_snapshot_part *part = &snapshot->parts[i];

		codec_put_u64(&buffer, (uint64_t)part->taken_ns);
		codec_put_string(&buffer, part->fault);
		codec_put_u32(&buffer, (uint32_t)part->count);
		for (size_t j = 0; j < part->count; j++)
			put_state(&buffer, &part->states[j]);
		codec_put_u32(&buffer, (uint32_t)part->seen_count);
		for (size_t j = 0; j < part->seen_count; j++) {
			codec_put_string(&buffer, part->seen[j].path);
			codec_put_u64(&buffer, part->seen[j].inode);
			codec_put_u64(&buffer, (uint64_t)part->seen[j].changed_ns);
		}
	}
	if (buffer.failed)
		return error_errno(error, ENOMEM, FILE_NAME);
	/* whole or not at all: an earlier one is still good */
	result = fd_replace(task_fd, FILE_NAME, FILE_NAME ".new", buffer.data, buffer.length);
	return result < 0 ? error_errno(error, result, FILE_NAME) : 0;
}

static void get_text(struct codec_cursor *cursor, struct git_state *state)
{
	size_t length = codec_u32(cursor);

	if (cursor->failure || length > (size_t)(cursor->end - cursor->at)) {
		codec_fail(cursor, -EBADMSG);
		return;
	}
	state->text = arena_copy_bytes(cursor->arena, cursor->at, length);
	state->length = length;
	cursor->at += length;
	if (!state->text)
		codec_fail(cursor, -ENOMEM);
}

/* ---- copies of what descriptors lead to ---- */

#define COPY_BYTES 48

static void copy_name(size_t part, size_t state, char ret_name[static COPY_BYTES])
{
	(void)snprintf(ret_name, COPY_BYTES, "start-%zu-%zu", part, state);
}

static int keep_copy(const struct git_state *state, int task_fd, const char *name)
{
	int CLEANUP_FD fd = -1;

	if (unlinkat(task_fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(task_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : content_copy(state->fd, fd, (off_t)state->size);
}

int git_snapshot_keep(const struct git_snapshot *snapshot, int task_fd)
{
	char name[COPY_BYTES];
	int result = 0;

	for (size_t i = 0; i < snapshot->count; i++) {
		const struct git_snapshot_part *part = &snapshot->parts[i];

		for (size_t j = 0; j < part->count && result == 0; j++) {
			copy_name(i, j, name);
			if (part->states[j].fd >= 0 &&
			    part->states[j].size <= GIT_SNAPSHOT_LIMIT_COPY_BYTES)
				result = keep_copy(&part->states[j], task_fd, name);
		}
	}
	return result;
}

/* One that was not written whole is none. */
static int open_copy(int task_fd, const char *name, uint64_t size)
{
	int CLEANUP_FD fd = openat(task_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    (uint64_t)status.st_size != size)
		return -1;
	return TAKE_FD(fd);
}

static void open_copies(const struct git_snapshot *snapshot, int task_fd)
{
	char name[COPY_BYTES];

	for (size_t i = 0; snapshot->parts && i < snapshot->count; i++)
		for (size_t j = 0; j < snapshot->parts[i].count; j++) {
			struct git_state *state = &snapshot->parts[i].states[j];
			const char *last = strrchr(state->path, '/');

			last = last ? last + 1 : state->path;
			copy_name(i, j, name);
			if (has_descriptor(last))
				state->fd = open_copy(task_fd, name, state->size);
		}
}

/* ---- reading ---- */

static void get_state(struct codec_cursor *cursor, struct git_state *state)
{
	state->path = codec_string(cursor, PATH_MAX);
	state->inode = codec_u64(cursor);
	state->size = codec_u64(cursor);
	state->changed_ns = (int64_t)codec_u64(cursor);
	state->modified_ns = (int64_t)codec_u64(cursor);
	state->fd = -1;
	state->is_diverged = codec_u32(cursor) != 0;
	if (codec_u32(cursor))
		get_text(cursor, state);
}

static void get_seen(struct codec_cursor *cursor, struct git_snapshot_part *part)
{
	part->seen_count = codec_count(cursor, UINT32_MAX, 20);
	part->seen = codec_array(cursor, part->seen_count, sizeof(part->seen[0]));
	if (!part->seen)
		part->seen_count = 0;
	for (size_t i = 0; i < part->seen_count && !cursor->failure; i++) {
		part->seen[i].path = codec_string(cursor, PATH_MAX);
		part->seen[i].inode = codec_u64(cursor);
		part->seen[i].changed_ns = (int64_t)codec_u64(cursor);
	}
}

static void get_part(struct codec_cursor *cursor, struct git_snapshot_part *part)
{
	const char *fault;

	part->taken_ns = (int64_t)codec_u64(cursor);
	fault = codec_string(cursor, 256);
	part->fault = fault && *fault ? fault : NULL;
	part->count = codec_count(cursor, UINT32_MAX, 40);
	part->states = codec_array(cursor, part->count, sizeof(part->states[0]));
	if (!part->states)
		part->count = 0;
	for (size_t i = 0; i < part->count && !cursor->failure; i++)
		get_state(cursor, &part->states[i]);
	get_seen(cursor, part);
}

int git_snapshot_load(int task_fd, struct arena *arena, struct git_snapshot *ret_snapshot,
		      struct error *error)
{
	struct git_snapshot snapshot = GIT_SNAPSHOT_NONE;
	struct codec_cursor cursor;
	struct git_text text;
	int result = git_file_read(task_fd, FILE_NAME, FILE_LIMIT_BYTES, arena, &text, NULL);

	/* it is no file */
	if (result == -EINVAL)
		result = -EBADMSG;
	if (result < 0)
		return error_errno(error, result, FILE_NAME);
	codec_begin(&cursor, text.bytes, text.length, arena);
	if (codec_u32(&cursor) != FILE_VERSION)
		codec_fail(&cursor, -EBADMSG);
	snapshot.count = codec_count(&cursor, 4096, 16);
	snapshot.parts = codec_array(&cursor, snapshot.count, sizeof(snapshot.parts[0]));
	for (size_t i = 0; snapshot.parts && i < snapshot.count; i++)
		get_part(&cursor, &snapshot.parts[i]);
	result = codec_end(&cursor);
	if (result < 0)
		return error_errno(error, result, FILE_NAME);
	open_copies(&snapshot, task_fd);
	*ret_snapshot = snapshot;
	return 0;
}

size_t git_snapshot_first(const struct git_snapshot_part *part, const char *path)
{
	size_t low = 0, high = part->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(part->states[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct git_state *git_snapshot_find(const struct git_snapshot_part *part, const char *path)
{
	size_t first = git_snapshot_first(part, path);

	return first < part->count && strcmp(part->states[first].path, path) == 0 ?
		       &part->states[first] :
		       NULL;
}

static int compare_seen(const void *a, const void *b)
{
	const struct git_seen *left = a, *right = b;

	return strcmp(left->path, right->path);
}

bool git_snapshot_saw(const struct git_snapshot_part *part, const struct git_upper_entry *entry)
{
	struct git_seen key = { .path = entry->path };
	const struct git_seen *seen = part->seen_count ? bsearch(&key, part->seen, part->seen_count,
								 sizeof(key), compare_seen) :
							 NULL;

	/* whiteouts share an inode, whose times change with each of them */
	return seen &&
	       (entry->kind == GIT_UPPER_GONE ?
			seen->inode == 0 :
			seen->inode == entry->inode && seen->changed_ns == entry->changed_ns);
}

bool git_state_is(const struct git_state *state, const struct stat *status)
{
	return !state->is_diverged && state->inode == status->st_ino &&
	       state->size == (uint64_t)status->st_size &&
	       state->changed_ns == ns_of(status->st_ctim) &&
	       state->modified_ns == ns_of(status->st_mtim);
}

void git_snapshot_close(struct git_snapshot *snapshot)
{
	for (size_t i = 0; snapshot->parts && i < snapshot->count; i++)
		for (size_t j = 0; j < snapshot->parts[i].count; j++)
			fd_close(&snapshot->parts[i].states[j].fd);
	*snapshot = GIT_SNAPSHOT_NONE;
}
