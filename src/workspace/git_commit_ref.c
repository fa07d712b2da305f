#include "workspace/git_commit_ref.h"

#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

bool git_run_is_same_value(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

const char *git_run_state_value(struct git_run *run, const struct git_state *state)
{
	return state && state->text ? git_ref_value(run->arena, state->text, state->length, true) :
				      NULL;
}

const char *git_run_packed_value(struct git_run *run, const struct git_packed *packed,
				 const char *name)
{
	const struct git_packed_ref *ref = git_packed_find(packed, name);

	return ref ? arena_copy_bytes(run->arena, ref->id, ref->id_length) : NULL;
}

/* The host's value now: under its lock it stays. */
int git_run_host_value(struct git_run *run, struct git_area *area, const char *name,
		       const char **ret_value)
{
	const struct git_packed *packed;
	struct git_text text;
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
	result = git_run_host_packed(run, area, &packed);
	if (result == 0)
		*ret_value = git_run_packed_value(run, packed, name);
	return result;
}

int git_run_hold_ref(struct git_run *run, struct git_area *area, struct ref_change *change,
		     const char *reason)
{
	const char **refs =
		arena_push(run->arena, run->held_refs, run->held_ref_count, sizeof(*refs));
	const char *now = NULL;

	change->is_over = true;
	(void)git_run_host_value(run, area, change->name, &now);
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

int git_run_ref_failed(struct git_run *run, struct git_area *area, struct ref_change *change,
		       int code)
{
	const char *reason = git_run_reason(code);

	if (!reason)
		return error_errno(run->error, code, "%s/%s%s", run->cover->path, area->prefix,
				   change->name);
	return git_run_hold_ref(run, area, change, reason);
}

bool git_run_is_ref_held(const struct git_run *run, const char *prefix, const char *name)
{
	size_t length = strlen(prefix);

	for (size_t i = 0; i < run->held_ref_count; i++)
		if (strncmp(run->held_refs[i], prefix, length) == 0 &&
		    strcmp(run->held_refs[i] + length, name) == 0)
			return true;
	return false;
}

int git_run_write_value(struct git_run *run, struct git_area *area, const char *name,
			const char *value, struct git_lock *lock)
{
	struct git_piece *log = git_run_log_of(run, area, name);
	int result = log ? git_run_take_log(run, area, log) : 0;

	if (result == 0)
		result = git_lock_write(lock, value, strlen(value));
	if (result == 0)
		result = git_lock_write(lock, "\n", 1);
	return result < 0 ? result : git_lock_commit(lock);
}

/* True where the host has what the task started from; otherwise the change is over. */
int git_run_may_change(struct git_run *run, struct git_area *area,
		       const struct git_ref_changes *changes, struct ref_change *change,
		       bool *ret_may)
{
	const char *now;
	int result = git_run_host_value(run, area, change->name, &now);
	bool is_known = changes->is_start_known || change->old;

	*ret_may = false;
	if (result < 0)
		return git_run_ref_failed(run, area, change, result);
	if (git_run_is_same_value(now, change->new)) {
		change->is_over = true;
		return 0;
	}
	if (!is_known || !git_run_is_same_value(now, change->old))
		return git_run_hold_ref(run, area, change,
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

static bool has_place(struct git_run *run, struct git_area *area, const struct ref_change *change)
{
	const struct git_packed *packed;

	/* it is on the list, or what cannot be read has nothing */
	return change->old || git_run_host_packed(run, area, &packed) < 0 ||
	       git_run_has_room(packed, change->name);
}

static int set_ref(struct git_run *run, struct git_area *area,
		   const struct git_ref_changes *changes, struct ref_change *change)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	bool may = false;
	int result;

	/* one that was packed only has not been asked about yet */
	if (git_name_class(change->name, !area->is_worktree) != GIT_REF)
		return git_run_hold_ref(run, area, change, "not known as harmless");
	if (!git_run_has_object(run, area, change->new))
		return git_run_hold_ref(run, area, change, GIT_RUN_MISSING);
	result = git_file_lock(&area->target, change->name, true, &lock);
	if (result == 0)
		result = git_run_may_change(run, area, changes, change, &may);
	else if (result != -ENOTDIR || change->is_late)
		result = git_run_ref_failed(run, area, change, result);
	else {
		change->is_late = true;
		result = 0;
	}
	if (may && !has_place(run, area, change)) {
		may = false;
		if (change->is_late)
			result = git_run_hold_ref(run, area, change,
						  "a reference of the host's is in its place");
		change->is_late = true;
	}
	if (!may) {
		git_lock_drop(&lock);
		git_file_prune(area->target.fd, change->name, 2);
		return result;
	}
	result = git_run_write_value(run, area, change->name, change->new, &lock);
	if ((result == -EISDIR || result == -ENOTEMPTY) && !change->is_late) {
		change->is_late = true;
		return 0;
	}
	if (result < 0)
		return git_run_ref_failed(run, area, change, result);
	change->is_over = true;
	return git_run_applied(run, area, change->name,
			       change->old ? CHANGE_MODIFIED : CHANGE_CREATED);
}

int git_run_set_refs(struct git_run *run, struct git_area *area, struct git_ref_changes *changes)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < changes->count; i++)
		if (!changes->changes[i].is_over && changes->changes[i].new)
			result = set_ref(run, area, changes, &changes->changes[i]);
	return result;
}

int git_run_refs(struct git_run *run, struct git_area *area, struct git_ref_changes **ret_changes)
{
	struct git_ref_changes *changes = arena_allocate(run->arena, sizeof(*changes));
	int result = changes ? git_run_collect_refs(run, area, changes) : -ENOMEM;

	if (result < 0)
		return result;
	*ret_changes = changes;
	result = git_run_set_packed(run, area, changes);
	return result < 0 ? result : git_run_set_refs(run, area, changes);
}
