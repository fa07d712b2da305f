#include "workspace/git_commit_internal.h"

#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Megabytes of it are ten thousand commits. */
#define LOG_LIMIT_BYTES (16u * 1024 * 1024)
/* Locks that are held at once, two descriptors each. */
#define GONE_BATCH 64

enum loose { LOOSE_SAME, LOOSE_VALUE, LOOSE_GONE };

/* A reference whose value the task may have changed. Values NULL: it does not exist. */
struct ref_change {
	const char *name;
	enum loose loose;
	const char *value;	/* of LOOSE_VALUE */
	struct git_piece *item; /* NULL: of packed-refs */
	const char *old, *new;
	bool is_late; /* something else of its name must go first */
	bool is_over;
};

struct git_ref_changes {
	struct ref_change *changes;
	size_t count;
	struct git_packed start, task;
	bool has_packed_item; /* the task changed packed-refs */
	bool is_start_known;
};

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static int add(struct git_run *run, struct git_ref_changes *changes, struct ref_change change)
{
	struct ref_change *items =
		arena_push(run->arena, changes->changes, changes->count, sizeof(*items));

	if (!items || !change.name)
		return -ENOMEM;
	changes->changes = items;
	items[changes->count++] = change;
	return 0;
}

static const char *state_value(struct git_run *run, const struct git_state *state)
{
	return state && state->text ? git_ref_value(run->arena, state->text, state->length, true) :
				      NULL;
}

static bool is_head(const char *name)
{
	size_t length = strlen(name);

	return length > 5 && strcmp(name + length - 5, "/HEAD") == 0;
}

static int add_value(struct git_run *run, struct git_area *area, struct git_piece *item,
		     struct git_ref_changes *changes)
{
	struct git_text text;
	const char *value;
	int result = git_run_read(run, area, item, GIT_REF_LIMIT_BYTES, &text);

	if (result < 0)
		return git_run_failed(run, area, item, result);
	value = git_ref_value(run->arena, text.bytes, text.length, is_head(item->path));
	if (!value || !git_ref_is_name(item->path, strlen(item->path)))
		return git_run_hold(run, area, item, "it is no reference");
	return add(
		run, changes,
		(struct ref_change){
			.name = item->path, .loose = LOOSE_VALUE, .value = value, .item = item });
}

/* A reference of the start, or all below a directory, that the task does not see any more. */
static int add_gone(struct git_run *run, struct git_area *area, struct git_piece *item,
		    struct git_ref_changes *changes)
{
	const char *path = arena_format(run->arena, "%s%s", area->prefix, item->path);
	size_t length = path ? strlen(path) : 0, skip = strlen(area->prefix);
	int result = path ? 0 : -ENOMEM;

	for (size_t i = path ? git_snapshot_first(run->before, path) : 0;
	     result == 0 && i < run->before->count && !area->is_new; i++) {
		const char *found = run->before->states[i].path;
		const struct git_upper_entry *entry;

		if (strncmp(found, path, length) != 0)
			break;
		if (found[length] != '/' && found[length])
			continue;
		/* what the task made anew in the place of the directory speaks for itself */
		entry = item->entry->kind == GIT_UPPER_OPAQUE ? git_upper_find(&run->upper, found) :
								NULL;
		if (entry && entry != item->entry)
			continue;
		result = add(run, changes,
			     (struct ref_change){
				     .name = found + skip, .loose = LOOSE_GONE, .item = item });
	}
	return result;
}

static int collect(struct git_run *run, struct git_area *area, struct git_ref_changes *changes)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < area->count; i++) {
		struct git_piece *item = &area->items[i];

		if (item->class != GIT_REF || item->is_done)
			continue;
		item->is_done = true;
		if (item->entry->kind == GIT_UPPER_FILE)
			result = add_value(run, area, item, changes);
		else
			result = add_gone(run, area, item, changes);
	}
	return result;
}

/*
 * Without the descriptor of the start: where the task had changed it before and has not since, what
 * it left; otherwise the host's, if that is still the same.
 */
static int read_kept(struct git_run *run, struct git_area *area, const struct git_state *state,
		     struct git_text *ret_text)
{
	struct git_piece *item = git_run_item(area, "packed-refs");
	struct stat status;
	int result;

	if (item && item->entry->kind == GIT_UPPER_FILE &&
	    git_snapshot_saw(run->before, item->entry))
		return git_file_read(run->cover->upper_fd, item->entry->path,
				     GIT_PACKED_LIMIT_BYTES, run->arena, ret_text, NULL);
	result = git_file_read(area->target.fd, "packed-refs", GIT_PACKED_LIMIT_BYTES, run->arena,
			       ret_text, &status);
	return result == 0 && !git_state_is(state, &status) ? -ESTALE : result;
}

static int read_start(struct git_run *run, struct git_area *area, struct git_text *ret_text)
{
	const struct git_state *state = git_run_state(run, area, "packed-refs");
	char *bytes;
	ssize_t length;

	*ret_text = (struct git_text){ 0 };
	if (!state)
		return 0;
	if (state->size > GIT_PACKED_LIMIT_BYTES)
		return -EFBIG;
	if (state->fd < 0)
		return read_kept(run, area, state, ret_text);
	bytes = arena_allocate(run->arena, state->size + 1);
	length = bytes ? pread(state->fd, bytes, state->size, 0) : -1;
	if (length < 0)
		return bytes ? -errno : -ENOMEM;
	*ret_text = (struct git_text){ .bytes = bytes, .length = (size_t)length };
	return 0;
}

/* What was packed at the start; unknown where the supervisor died and the host packed anew. */
static int parse_start(struct git_run *run, struct git_area *area, struct git_ref_changes *changes)
{
	struct git_text text;
	int result = read_start(run, area, &text);

	if (result == 0)
		result = git_packed_parse(run->arena, text.bytes, text.length, &changes->start);
	changes->is_start_known = result == 0;
	return result == -ENOMEM ? result : 0;
}

static int parse_task(struct git_run *run, struct git_area *area, struct git_ref_changes *changes)
{
	struct git_piece *item = git_run_item(area, "packed-refs");
	struct git_text text = { 0 };
	int result = 0;

	changes->task = changes->start;
	if (!item || item->is_done)
		return 0;
	item->is_done = true;
	if (item->entry->kind == GIT_UPPER_FILE)
		result = git_file_read(run->cover->upper_fd, item->entry->path,
				       GIT_PACKED_LIMIT_BYTES, run->arena, &text, NULL);
	if (result == 0)
		result = git_packed_parse(run->arena, text.bytes, text.length, &changes->task);
	if (result == -EBADMSG)
		return git_run_hold(run, area, item, "it is no list of references");
	if (result < 0)
		return git_run_failed(run, area, item, result);
	changes->has_packed_item = true;
	return 0;
}

static const char *packed_value(struct git_run *run, const struct git_packed *packed,
				const char *name)
{
	const struct git_packed_ref *ref = git_packed_find(packed, name);

	return ref ? arena_copy_bytes(run->arena, ref->id, ref->id_length) : NULL;
}

static int by_name(const void *a, const void *b)
{
	const struct ref_change *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static bool is_listed(const struct ref_change *changes, size_t count, const char *name)
{
	struct ref_change key = { .name = name };

	return count && bsearch(&key, changes, count, sizeof(key), by_name);
}

/* What is packed in one and not, or otherwise, in the other. */
static int add_packed(struct git_run *run, struct git_ref_changes *changes,
		      const struct git_packed *from, const struct git_packed *other, size_t listed)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < from->count; i++) {
		const struct git_packed_ref *ref = &from->refs[i];
		const struct git_packed_ref *found = git_packed_find(other, ref->name);

		if (found && found->id_length == ref->id_length &&
		    memcmp(found->id, ref->id, ref->id_length) == 0)
			continue;
		/* what differs is added by the first of the two passes */
		if ((found && other == &changes->task) ||
		    is_listed(changes->changes, listed, ref->name))
			continue;
		result = add(run, changes, (struct ref_change){ .name = ref->name });
	}
	return result;
}

static void evaluate(struct git_run *run, struct git_area *area, struct git_ref_changes *changes,
		     struct ref_change *change)
{
	const char *loose = state_value(run, git_run_state(run, area, change->name));
	const char *packed = packed_value(run, &changes->task, change->name);

	change->old = loose ? loose : packed_value(run, &changes->start, change->name);
	switch (change->loose) {
	case LOOSE_VALUE:
		change->new = change->value;
		break;
	case LOOSE_GONE:
		change->new = packed;
		break;
	default:
		change->new = loose ? loose : packed;
	}
	change->is_over = is_same(change->old, change->new);
}

/* The host's value now: under its lock it stays. */
static int host_value(struct git_run *run, struct git_area *area, const char *name,
		      const char **ret_value)
{
	struct git_text text;
	struct git_packed packed = { 0 };
	int result =
		git_file_read(area->target.fd, name, GIT_REF_LIMIT_BYTES, run->arena, &text, NULL);

	*ret_value = NULL;
	if (result == 0) {
		*ret_value = git_ref_value(run->arena, text.bytes, text.length, true);
		return *ret_value ? 0 : -EBADMSG;
	}
	/* a directory of references may stand there */
	if (result != -ENOENT && result != -EINVAL && result != -ENOTDIR)
		return result;
	arena_reset(&run->scratch);
	result = git_file_read(area->target.fd, "packed-refs", GIT_PACKED_LIMIT_BYTES,
			       &run->scratch, &text, NULL);
	if (result == -ENOENT)
		return 0;
	if (result == 0)
		result = git_packed_parse(&run->scratch, text.bytes, text.length, &packed);
	if (result == 0)
		*ret_value = packed_value(run, &packed, name);
	return result;
}

static int hold_change(struct git_run *run, struct git_area *area, struct ref_change *change,
		       const char *reason)
{
	const char **refs =
		arena_push(run->arena, run->held_refs, run->held_ref_count, sizeof(*refs));
	const char *now = NULL;

	change->is_over = true;
	(void)host_value(run, area, change->name, &now);
	if (!refs)
		return -ENOMEM;
	run->held_refs = refs;
	refs[run->held_ref_count] = arena_format(run->arena, "%s%s", area->prefix, change->name);
	if (!refs[run->held_ref_count++])
		return -ENOMEM;
	return git_run_hold_value(
		run, area,
		(struct git_held){
			.path = change->name,
			.kind = GIT_HELD_REF,
			.reason = reason,
			.before = { now, now ? strlen(now) : 0 },
			.after = { change->new, change->new ? strlen(change->new) : 0 },
		});
}

static int change_failed(struct git_run *run, struct git_area *area, struct ref_change *change,
			 int code)
{
	const char *reason = git_run_reason(code);

	if (!reason)
		return error_errno(run->error, code, "%s/%s%s", run->cover->path, area->prefix,
				   change->name);
	return hold_change(run, area, change, reason);
}

static bool is_held(const struct git_run *run, const char *prefix, const char *name)
{
	size_t length = strlen(prefix);

	for (size_t i = 0; i < run->held_ref_count; i++)
		if (strncmp(run->held_refs[i], prefix, length) == 0 &&
		    strcmp(run->held_refs[i] + length, name) == 0)
			return true;
	return false;
}

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
static int take_log(struct git_run *run, struct git_area *area, struct git_piece *item)
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

static struct git_piece *log_of(struct git_run *run, const struct git_area *area, const char *name)
{
	const char *path = arena_format(run->arena, "logs/%s", name);
	struct git_piece *item = path ? git_run_item(area, path) : NULL;

	return item && !item->is_done ? item : NULL;
}

static int write_value(struct git_run *run, struct git_area *area, const char *name,
		       const char *value, struct git_lock *lock)
{
	struct git_piece *log = log_of(run, area, name);
	int result = log ? take_log(run, area, log) : 0;

	if (result == 0)
		result = git_lock_write(lock, value, strlen(value));
	if (result == 0)
		result = git_lock_write(lock, "\n", 1);
	return result < 0 ? result : git_lock_commit(lock);
}

/* True where the host has what the task started from; otherwise the change is over. */
static int may_change(struct git_run *run, struct git_area *area,
		      const struct git_ref_changes *changes, struct ref_change *change,
		      bool *ret_may)
{
	const char *now;
	int result = host_value(run, area, change->name, &now);
	bool is_known = changes->is_start_known || change->old;

	*ret_may = false;
	if (result < 0)
		return change_failed(run, area, change, result);
	if (is_same(now, change->new)) {
		change->is_over = true;
		return 0;
	}
	if (!is_known || !is_same(now, change->old))
		return hold_change(run, area, change,
				   is_known ? GIT_RUN_CHANGED :
					      "what it was at the start is not known");
	*ret_may = true;
	return 0;
}

/* Of a linked worktree it is the repository that it belongs to: -1 where that is not covered. */
static int open_repository(struct git_run *run, struct git_area *area)
{
	const char *inner = area->is_worktree ? strstr(area->prefix, "worktrees/") : NULL;
	const char *path;

	if (!area->is_worktree)
		return fd_open_beneath(area->target.fd, ".", O_PATH | O_DIRECTORY);
	/* the last one: a module may be named so */
	for (const char *next = inner; next; next = strstr(next + 1, "worktrees/"))
		inner = next;
	path = inner ? arena_copy_bytes(run->arena, area->prefix, (size_t)(inner - area->prefix)) :
		       NULL;
	return path ? fd_open_beneath(run->cover->fd, *path ? path : ".", O_PATH | O_DIRECTORY) :
		      -1;
}

bool git_run_has_object(struct git_run *run, struct git_area *area, const char *value)
{
	if (!git_ref_id_length(value, strlen(value)))
		return true;
	if (!area->objects.is_open) {
		int CLEANUP_FD fd = open_repository(run, area);

		git_objects_open(&area->objects, fd, run->id_bytes);
	}
	return git_objects_may_have(&area->objects, value);
}

static int set_ref(struct git_run *run, struct git_area *area,
		   const struct git_ref_changes *changes, struct ref_change *change)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	bool may = false;
	int result;

	/* one that was packed only has not been asked about yet */
	if (git_name_class(change->name, !area->is_worktree) != GIT_REF)
		return hold_change(run, area, change, "not known as harmless");
	if (!git_run_has_object(run, area, change->new))
		return hold_change(run, area, change, GIT_RUN_MISSING);
	result = git_file_lock(&area->target, change->name, true, &lock);
	if (result == 0)
		result = may_change(run, area, changes, change, &may);
	else if (result != -ENOTDIR || change->is_late)
		result = change_failed(run, area, change, result);
	else {
		change->is_late = true;
		result = 0;
	}
	if (!may) {
		git_lock_drop(&lock);
		git_file_prune(area->target.fd, change->name, 2);
		return result;
	}
	result = write_value(run, area, change->name, change->new, &lock);
	if ((result == -EISDIR || result == -ENOTEMPTY) && !change->is_late) {
		change->is_late = true;
		return 0;
	}
	if (result < 0)
		return change_failed(run, area, change, result);
	change->is_over = true;
	return git_run_applied(run, area, change->name,
			       change->old ? CHANGE_MODIFIED : CHANGE_CREATED);
}

static int set_all(struct git_run *run, struct git_area *area, struct git_ref_changes *changes)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < changes->count; i++)
		if (!changes->changes[i].is_over && changes->changes[i].new)
			result = set_ref(run, area, changes, &changes->changes[i]);
	return result;
}

/* A reference that was not loose at the start, or a new packed-refs, asks what was packed then. */
static bool needs_start(const struct git_run *run, const struct git_area *area,
			const struct git_ref_changes *changes)
{
	if (git_run_item(area, "packed-refs"))
		return true;
	for (size_t i = 0; i < changes->count; i++)
		if (changes->changes[i].loose == LOOSE_GONE ||
		    !git_run_state(run, area, changes->changes[i].name))
			return true;
	return false;
}

int git_run_refs(struct git_run *run, struct git_area *area, struct git_ref_changes **ret_changes)
{
	struct git_ref_changes *changes = arena_allocate(run->arena, sizeof(*changes));
	size_t listed;
	int result = changes ? collect(run, area, changes) : -ENOMEM;

	if (result == 0 && needs_start(run, area, changes)) {
		result = parse_start(run, area, changes);
		if (result == 0)
			result = parse_task(run, area, changes);
	}
	if (result < 0)
		return result;
	listed = changes->count;
	if (listed)
		qsort(changes->changes, listed, sizeof(changes->changes[0]), by_name);
	if (changes->has_packed_item)
		result = add_packed(run, changes, &changes->task, &changes->start, listed);
	if (result == 0 && changes->has_packed_item)
		result = add_packed(run, changes, &changes->start, &changes->task, listed);
	for (size_t i = 0; result == 0 && i < changes->count; i++)
		evaluate(run, area, changes, &changes->changes[i]);
	*ret_changes = changes;
	return result < 0 ? result : set_all(run, area, changes);
}

static int hold_head(struct git_run *run, struct git_area *area, struct git_piece *item,
		     const char *reason)
{
	area->is_head_held = true;
	return git_run_hold(run, area, item, reason);
}

static int set_head(struct git_run *run, struct git_area *area, struct git_piece *item,
		    const char *value)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	const char *old = state_value(run, git_run_state(run, area, "HEAD"));
	struct git_text text = { 0 };
	const char *now;
	int result = git_file_lock(&area->target, "HEAD", false, &lock);

	if (result == 0)
		result = git_file_read(area->target.fd, "HEAD", GIT_REF_LIMIT_BYTES, run->arena,
				       &text, NULL);
	if (result < 0 && !(result == -ENOENT && area->is_new))
		return git_run_failed(run, area, item, result);
	now = text.bytes ? git_ref_value(run->arena, text.bytes, text.length, true) : NULL;
	if (is_same(now, value))
		return 0;
	if (!is_same(now, old))
		return hold_head(run, area, item, GIT_RUN_CHANGED);
	if (strncmp(value, "ref: ", 5) == 0 && is_held(run, "", value + 5))
		return hold_head(run, area, item, "the branch that it names is held");
	if (!git_run_has_object(run, area, value))
		return hold_head(run, area, item, GIT_RUN_MISSING);
	result = write_value(run, area, "HEAD", value, &lock);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	return git_run_applied(run, area, "HEAD", CHANGE_MODIFIED);
}

int git_run_head(struct git_run *run, struct git_area *area)
{
	struct git_piece *item = git_run_item(area, "HEAD");
	const char *value;
	struct git_text text;
	int result;

	if (!item || item->is_done)
		return 0;
	item->is_done = true;
	if (item->entry->kind != GIT_UPPER_FILE)
		return git_run_hold(run, area, item, "a repository is none without it");
	result = git_run_read(run, area, item, GIT_REF_LIMIT_BYTES, &text);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	value = git_ref_value(run->arena, text.bytes, text.length, true);
	return value ? set_head(run, area, item, value) :
		       hold_head(run, area, item, "it is no reference");
}

/* The host's HEAD, or that of one of its worktrees, names the branch. */
static bool is_checked_out(struct git_run *run, struct git_area *area, const char *name)
{
	size_t length = strlen(area->prefix);

	for (size_t i = git_snapshot_first(run->before, area->prefix); i < run->before->count;
	     i++) {
		const char *path = run->before->states[i].path, *value;
		struct git_text text;

		if (strncmp(path, area->prefix, length) != 0)
			break;
		path += length;
		if (strcmp(path, "HEAD") != 0 &&
		    (strncmp(path, "worktrees/", 10) != 0 || !is_head(path)))
			continue;
		if (git_file_read(area->target.fd, path, GIT_REF_LIMIT_BYTES, run->arena, &text,
				  NULL) < 0)
			continue;
		value = git_ref_value(run->arena, text.bytes, text.length, true);
		if (value && strncmp(value, "ref: ", 5) == 0 && strcmp(value + 5, name) == 0)
			return true;
	}
	return false;
}

struct gone {
	struct ref_change *change;
	struct git_lock lock;
};

static int lock_gone(struct git_run *run, struct git_area *area,
		     const struct git_ref_changes *changes, struct ref_change *change,
		     struct gone *ret_gone, bool *ret_may)
{
	int result;

	*ret_may = false;
	ret_gone->change = change;
	ret_gone->lock = GIT_LOCK_NONE;
	if (is_checked_out(run, area, change->name))
		return hold_change(run, area, change, "it is checked out");
	result = git_file_lock(&area->target, change->name, true, &ret_gone->lock);
	if (result < 0)
		return change_failed(run, area, change, result);
	result = may_change(run, area, changes, change, ret_may);
	if (*ret_may)
		return result;
	git_lock_drop(&ret_gone->lock);
	git_file_prune(area->target.fd, change->name, 2);
	return result;
}

static bool is_among(const struct gone *gone, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(gone[i].change->name, name) == 0)
			return true;
	return false;
}

/* The text without the lines of those; all else stays byte for byte. */
static int write_packed(struct git_lock *lock, const struct git_packed *packed,
			const struct gone *gone, size_t count, struct arena *scratch)
{
	char *text = arena_copy_bytes(scratch, packed->bytes, packed->length);
	size_t used = 0;

	if (!text)
		return -ENOMEM;
	/* the header says that the rest is sorted, which it stays */
	if (packed->length && text[0] == '#')
		used = (size_t)((const char *)memchr(text, '\n', packed->length) - text) + 1;
	for (size_t i = 0; i < packed->count; i++) {
		const struct git_packed_ref *ref = &packed->refs[i];

		if (is_among(gone, count, ref->name))
			continue;
		memcpy(text + used, packed->bytes + ref->begin, ref->end - ref->begin);
		used += ref->end - ref->begin;
	}
	return git_lock_write(lock, text, used);
}

static int unpack_gone(struct git_run *run, struct git_area *area, const struct gone *gone,
		       size_t count)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	struct git_packed packed = { 0 };
	struct git_text text = { 0 };
	bool is_needed = false;
	int result = git_file_lock(&area->target, "packed-refs", false, &lock);

	arena_reset(&run->scratch);
	if (result == 0)
		result = git_file_read(area->target.fd, "packed-refs", GIT_PACKED_LIMIT_BYTES,
				       &run->scratch, &text, NULL);
	if (result == -ENOENT)
		return 0;
	if (result == 0)
		result = git_packed_parse(&run->scratch, text.bytes, text.length, &packed);
	for (size_t i = 0; result == 0 && i < count; i++)
		is_needed |= git_packed_find(&packed, gone[i].change->name) != NULL;
	if (result < 0 || !is_needed)
		return result;
	result = write_packed(&lock, &packed, gone, count, &run->scratch);
	return result < 0 ? result : git_lock_commit(&lock);
}

static int remove_log(struct git_run *run, struct git_area *area, const char *name)
{
	const char *path = arena_format(run->arena, "logs/%s", name);
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	struct git_piece *item = path ? git_run_item(area, path) : NULL;
	struct stat status;
	int result;

	if (!path)
		return -ENOMEM;
	if (item)
		item->is_done = true;
	if (git_file_status(area->target.fd, path, &status) < 0)
		return 0;
	result = git_file_lock(&area->target, path, false, &lock);
	if (result == 0)
		result = git_lock_remove(&lock);
	git_file_prune(area->target.fd, path, 3);
	return result;
}

static int remove_gone(struct git_run *run, struct git_area *area, struct gone *gone)
{
	const char *name = gone->change->name;
	int result = remove_log(run, area, name);

	if (result == 0)
		result = git_lock_remove(&gone->lock);
	git_lock_drop(&gone->lock);
	if (result < 0)
		return change_failed(run, area, gone->change, result);
	git_file_prune(area->target.fd, name, 2);
	gone->change->is_over = true;
	return git_run_applied(run, area, name, CHANGE_REMOVED);
}

/* As git does: out of packed-refs first, lest an old value come back. */
static int remove_batch(struct git_run *run, struct git_area *area, struct gone *gone, size_t count)
{
	int packed = count ? unpack_gone(run, area, gone, count) : 0, result = 0;

	for (size_t i = 0; i < count; i++) {
		if (packed == 0 && result == 0) {
			result = remove_gone(run, area, &gone[i]);
			continue;
		}
		git_lock_drop(&gone[i].lock);
		if (result == 0)
			result = change_failed(run, area, gone[i].change, packed);
	}
	return result;
}

int git_run_gone_refs(struct git_run *run, struct git_area *area, struct git_ref_changes *changes)
{
	struct gone gone[GONE_BATCH];
	size_t count = 0;
	int result = 0;

	for (size_t i = 0; result == 0 && i < changes->count; i++) {
		struct ref_change *change = &changes->changes[i];
		bool may;

		if (change->is_over || change->new)
			continue;
		result = lock_gone(run, area, changes, change, &gone[count], &may);
		count += may;
		if (count == GONE_BATCH && result == 0) {
			result = remove_batch(run, area, gone, count);
			count = 0;
		}
	}
	if (result < 0)
		for (size_t i = 0; i < count; i++)
			git_lock_drop(&gone[i].lock);
	else
		result = remove_batch(run, area, gone, count);
	/* what had to wait for the name of one that is gone now */
	return result < 0 ? result : set_all(run, area, changes);
}

bool git_run_is_head_held(struct git_run *run, struct git_area *area)
{
	struct git_text text;
	const char *value;

	if (area->is_head_held)
		return true;
	if (git_file_read(area->target.fd, "HEAD", GIT_REF_LIMIT_BYTES, run->arena, &text, NULL) <
	    0)
		return false;
	value = git_ref_value(run->arena, text.bytes, text.length, true);
	if (!value || strncmp(value, "ref: ", 5) != 0)
		return false;
	/* a linked worktree's branches are the repository's */
	return is_held(run, area->is_worktree ? "" : area->prefix, value + 5);
}

/* A log follows its reference: HEAD's that of the branch which it names. */
static bool is_log_held(struct git_run *run, struct git_area *area, const char *name)
{
	return is_held(run, area->prefix, name) || is_held(run, "", name) ||
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
	result = take_log(run, area, item);
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
