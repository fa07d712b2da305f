#include "workspace/git_commit_ref.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Megabytes of it are ten thousand commits. */
#define LOG_LIMIT_BYTES (16u * 1024 * 1024)

/* Appends; what could not be written whole is cut off again. */
static int append_log(struct git_area *area, const char *path, const char *bytes, size_t length)
{
	int CLEANUP_FD fd = -1;
	struct stat status;
	int result;

	if (!length)
		return 0;
	fd = fd_open_beneath(area->target.fd, path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return -EINVAL;
	result = fd_write_all(fd, bytes, length);
	if (result < 0)
		(void)!ftruncate(fd, status.st_size);
	return result;
}

static int replace_log(struct git_area *area, const char *path, struct git_text text)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	int result = git_file_lock(&area->target, path, true, &lock);

	if (result == 0)
		result = git_lock_write(&lock, text.bytes, text.length);
	return result < 0 ? result : git_lock_commit(&lock);
}

/* Where both have the same whole lines. */
static size_t common_length(struct git_text a, struct git_text b)
{
	size_t shorter = a.length < b.length ? a.length : b.length, at = 0, line = 0;

	for (; at < shorter && a.bytes[at] == b.bytes[at]; at++)
		if (a.bytes[at] == '\n')
			line = at + 1;
	return line;
}

/* Both appended: the host's lines, then the task's, once. -ESTALE where the task took some away. */
static int merge_log(struct git_area *area, const char *path, struct git_text host,
		     struct git_text task)
{
	size_t common = common_length(host, task), length = task.length - common;

	if (!length)
		return -ESTALE;
	if (host.length >= length &&
	    memcmp(host.bytes + host.length - length, task.bytes + common, length) == 0)
		return 0;
	return append_log(area, path, task.bytes + common, length);
}

static int apply_log(struct git_run *run, struct git_area *area, struct git_piece *item,
		     struct git_text task)
{
	struct git_text host;
	struct stat status;
	int result = git_file_read(area->target.fd, item->path, LOG_LIMIT_BYTES, &run->scratch,
				   &host, &status);

	if (result == -ENOENT)
		return replace_log(area, item->path, task);
	if (result < 0)
		return result;
	if (task.length >= host.length && memcmp(task.bytes, host.bytes, host.length) == 0)
		return append_log(area, item->path, task.bytes + host.length,
				  task.length - host.length);
	if (git_run_is_settled(run, &status))
		return replace_log(area, item->path, task);
	return merge_log(area, item->path, host, task);
}

/* The log of a reference whose lock is held. */
int git_run_take_log(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	struct git_text text;
	int result;

	item->is_done = true;
	if (item->entry->kind != GIT_UPPER_FILE)
		return 0;
	result = git_run_read(run, area, item, LOG_LIMIT_BYTES, &text);
	if (result == 0 && !git_ref_is_log(text.bytes, text.length))
		return git_run_hold(run, area, item, "it is no log of a reference");
	if (result == 0)
		result = apply_log(run, area, item, text);
	return result < 0 ? git_run_failed(run, area, item, result) : 0;
}

struct git_piece *git_run_log_of(struct git_run *run, const struct git_area *area, const char *name)
{
	const char *path = arena_format(run->arena, "logs/%s", name);
	struct git_piece *item = path ? git_run_item(area, path) : NULL;

	return item && !item->is_done ? item : NULL;
}

/* A log follows its reference: HEAD's that of the branch which it names. */
static bool is_log_held(struct git_run *run, struct git_area *area, const char *name)
{
	return git_run_is_ref_held(run, area->prefix, name) || git_run_is_ref_held(run, "", name) ||
	       (strcmp(name, "HEAD") == 0 && git_run_is_head_held(run, area));
}

static int other_log(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	const char *name = item->path + strlen("logs/");
	int result;

	if (item->entry->kind == GIT_UPPER_OPAQUE) {
		item->is_done = true;
		return 0;
	}
	if (item->entry->kind == GIT_UPPER_FILE && is_log_held(run, area, name))
		return git_run_hold(run, area, item, "its reference is held");
	result = git_file_lock(&area->target, name, true, &lock);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	result = git_run_take_log(run, area, item);
	git_lock_drop(&lock);
	git_file_prune(area->target.fd, name, 2);
	return result;
}

int git_run_logs(struct git_run *run, struct git_area *area)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < area->count; i++) {
		struct git_piece *item = &area->items[i];
		const char *name = item->path + strlen("logs/");

		if (item->class != GIT_LOG || item->is_done)
			continue;
		if (strncmp(item->path, "logs/", 5) == 0 &&
		    (strcmp(name, "HEAD") == 0 || git_ref_is_name(name, strlen(name))))
			result = other_log(run, area, item);
	}
	return result;
}
