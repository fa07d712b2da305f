#include "workspace/git_commit_internal.h"

#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_sequence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What belongs to one unfinished operation: "rebase-merge". */
struct sequence {
	const char *name;
	struct git_piece *first;
	size_t count;
	struct git_piece *self; /* the directory itself: removed or replaced */
};

static size_t name_length(const char *path)
{
	return strcspn(path, "/");
}

static int hold_all(struct git_run *run, struct git_area *area, const struct sequence *sequence,
		    const char *reason)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < sequence->count; i++)
		if (sequence->first[i].entry->kind != GIT_UPPER_OPAQUE)
			result = git_run_hold(run, area, &sequence->first[i], reason);
	return result;
}

static const char *fault_of(struct git_run *run, struct git_area *area,
			    const struct sequence *sequence)
{
	for (size_t i = 0; i < sequence->count; i++) {
		const struct git_piece *item = &sequence->first[i];
		const char *fault = NULL;
		struct git_text text;
		int result;

		if (item->entry->kind == GIT_UPPER_OPAQUE || item->entry->kind == GIT_UPPER_GONE)
			continue;
		if (item->entry->kind != GIT_UPPER_FILE)
			return "it is no plain file";
		result = git_run_read(run, area, item, GIT_SEQUENCE_LIMIT_BYTES, &text);
		if (result < 0)
			return git_run_reason(result);
		fault = git_sequence_fault(item->path, text.bytes, text.length);
		if (fault)
			return fault;
	}
	return NULL;
}

/* The host's file is the one of the start, or has what the task made of it. */
static bool is_settled_file(struct git_run *run, struct git_area *area, int directory_fd,
			    const char *folder, const char *name)
{
	const char *path = arena_format(run->arena, "%s/%s", folder, name);
	struct git_piece *item = path ? git_run_item(area, path) : NULL;
	struct git_text text, now;
	struct stat status;

	if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (!path)
		return false;
	if (git_run_is_unchanged(run, area, path, &status))
		return true;
	return item && item->entry->kind == GIT_UPPER_FILE &&
	       git_run_read(run, area, item, GIT_SEQUENCE_LIMIT_BYTES, &text) == 0 &&
	       git_file_read(directory_fd, name, text.length, &run->scratch, &now, NULL) == 0 &&
	       now.length == text.length && memcmp(now.bytes, text.bytes, now.length) == 0;
}

static bool is_settled(struct git_run *run, struct git_area *area, int fd, const char *folder)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;

	if (directory_open(&directory, fd, ".", 0) < 0)
		return false;
	while ((name = directory_next(&directory)))
		if (!is_settled_file(run, area, directory.fd, folder, name))
			return false;
	return true;
}

static int remove_host(struct git_run *run, struct git_area *area, const struct sequence *sequence)
{
	const char *aside_name;
	int CLEANUP_FD aside = git_run_aside(run, "gone", &aside_name);

	int result;

	if (aside < 0)
		return aside;
	result = git_file_move(area->target.fd, sequence->name, aside, "sequence");
	directory_remove_tree(run->cover->fd, aside_name);
	return result == -ENOENT ? 0 : result;
}

static int copy_all(struct git_run *run, struct git_area *area, const struct sequence *sequence,
		    int aside)
{
	struct git_target target = { .fd = aside, .journal_fd = -1 };
	int result = 0;

	for (size_t i = 0; result == 0 && i < sequence->count; i++) {
		struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
		const struct git_piece *item = &sequence->first[i];
		struct git_text text;

		if (item->entry->kind != GIT_UPPER_FILE)
			continue;
		result = git_run_read(run, area, item, GIT_SEQUENCE_LIMIT_BYTES, &text);
		if (result == 0)
			result = git_file_lock(&target, item->path + strlen(sequence->name) + 1,
					       false, &lock);
		if (result == 0)
			result = git_lock_write(&lock, text.bytes, text.length);
		if (result == 0)
			result = git_lock_commit(&lock);
	}
	return result;
}

/* Made aside, so that no git of the host ever sees a half of it. */
static int make_anew(struct git_run *run, struct git_area *area, const struct sequence *sequence)
{
	const char *aside_name;
	int CLEANUP_FD aside = git_run_aside(run, "made", &aside_name);
	int result = aside < 0 ? aside : copy_all(run, area, sequence, aside);

	if (result == 0)
		result = git_file_move(run->cover->fd, aside_name, area->target.fd, sequence->name);
	if (result < 0) {
		directory_remove_tree(run->cover->fd, aside_name);
		return result;
	}
	return git_run_applied(run, area, sequence->name, CHANGE_CREATED);
}

static int update(struct git_run *run, struct git_area *area, const struct sequence *sequence)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < sequence->count; i++) {
		struct git_piece *item = &sequence->first[i];
		struct git_text text;

		if (item->entry->kind == GIT_UPPER_GONE)
			result = git_run_remove(run, area, item);
		if (item->entry->kind != GIT_UPPER_FILE)
			continue;
		result = git_run_read(run, area, item, GIT_SEQUENCE_LIMIT_BYTES, &text);
		result = result < 0 ? git_run_failed(run, area, item, result) :
				      git_run_put(run, area, item, text);
	}
	return result;
}

static bool has_files(const struct sequence *sequence)
{
	for (size_t i = 0; i < sequence->count; i++)
		if (sequence->first[i].entry->kind == GIT_UPPER_FILE)
			return true;
	return false;
}

/* fd: the host's directory, or none. */
static int apply(struct git_run *run, struct git_area *area, const struct sequence *sequence,
		 int fd)
{
	bool is_replaced = sequence->self != NULL;
	int result = 0;

	if (fd >= 0 && !is_replaced)
		return update(run, area, sequence);
	if (fd >= 0)
		result = remove_host(run, area, sequence);
	if (result == 0 && has_files(sequence))
		return make_anew(run, area, sequence);
	if (result == 0 && fd >= 0)
		result = git_run_applied(run, area, sequence->name, CHANGE_REMOVED);
	return result;
}

/* True where the host has all of it already: a run that was interrupted behind it. */
static bool is_applied(struct git_run *run, struct git_area *area, const struct sequence *sequence,
		       int fd)
{
	for (size_t i = 0; i < sequence->count; i++) {
		const struct git_piece *item = &sequence->first[i];
		struct git_text text, now;

		if (item->entry->kind != GIT_UPPER_FILE)
			continue;
		if (git_run_read(run, area, item, GIT_SEQUENCE_LIMIT_BYTES, &text) < 0 ||
		    git_file_read(fd, item->path + strlen(sequence->name) + 1, text.length,
				  &run->scratch, &now, NULL) < 0 ||
		    now.length != text.length || memcmp(now.bytes, text.bytes, now.length) != 0)
			return false;
	}
	return has_files(sequence);
}

static int take_sequence(struct git_run *run, struct git_area *area,
			 const struct sequence *sequence)
{
	const char *fault = fault_of(run, area, sequence);
	int CLEANUP_FD fd = -1;
	int result;

	if (fault)
		return hold_all(run, area, sequence, fault);
	fd = fd_open_beneath(area->target.fd, sequence->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (fd < 0 && fd != -ENOENT)
		return hold_all(run, area, sequence, git_run_reason(fd));
	if (fd >= 0 && sequence->self && is_applied(run, area, sequence, fd))
		return 0;
	if (fd >= 0 && !is_settled(run, area, fd, sequence->name))
		return hold_all(run, area, sequence, GIT_RUN_CHANGED);
	result = apply(run, area, sequence, fd);
	if (result < 0 && !run->error->code && git_run_reason(result))
		return hold_all(run, area, sequence, git_run_reason(result));
	return result;
}

static bool is_folder(const char *name)
{
	return name && (strcmp(name, "rebase-merge") == 0 || strcmp(name, "rebase-apply") == 0 ||
			strcmp(name, "sequencer") == 0);
}

/* A bisection's, which has no directory of its own. */
static int take_file(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	const char *fault;
	struct git_text text;
	int result;

	if (item->entry->kind == GIT_UPPER_GONE)
		return git_run_remove(run, area, item);
	if (item->entry->kind != GIT_UPPER_FILE)
		return git_run_hold(run, area, item, "it is no plain file");
	result = git_run_read(run, area, item, GIT_SEQUENCE_LIMIT_BYTES, &text);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	fault = git_sequence_fault(item->path, text.bytes, text.length);
	return fault ? git_run_hold(run, area, item, fault) : git_run_put(run, area, item, text);
}

/* What lies in one directory stands together, as it is sorted by path. */
int git_run_sequences(struct git_run *run, struct git_area *area)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < area->count;) {
		struct git_piece *item = &area->items[i];
		size_t length = name_length(item->path);
		struct sequence sequence = {
			.name = arena_copy_bytes(run->arena, item->path, length),
			.first = item,
		};

		if (item->class != GIT_SEQUENCE || !is_folder(sequence.name)) {
			if (item->class == GIT_SEQUENCE)
				result = take_file(run, area, item);
			i++;
			continue;
		}
		for (; i < area->count && area->items[i].class == GIT_SEQUENCE &&
		       name_length(area->items[i].path) == length &&
		       memcmp(area->items[i].path, item->path, length) == 0;
		     i++) {
			if (!area->items[i].path[length])
				sequence.self = &area->items[i];
			area->items[i].is_done = true;
			sequence.count++;
		}
		result = sequence.name ? take_sequence(run, area, &sequence) : -ENOMEM;
	}
	return result;
}
