#include "workspace/git_commit.h"

#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_commit_internal.h"
#include "workspace/git_content.h"
#include "workspace/git_held_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL "git-commit"

/* A line for each file that one run writes. */
#define JOURNAL_LIMIT_BYTES (32u * 1024 * 1024)

/* Of outcomes, and of their paths, those that are told. */
#define TOLD_LIMIT 50000u

#define TOLD_LIMIT_BYTES (8u * 1024 * 1024)

/* A git that was killed, or is frozen, in the middle of something. */
static int take_locks(struct git_run *run, bool *ret_is_deferred)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < run->area_count; i++)
		for (size_t j = 0; result == 0 && j < run->areas[i]->count; j++) {
			struct git_piece *item = &run->areas[i]->items[j];

			if (item->class != GIT_LOCK || item->entry->kind != GIT_UPPER_FILE)
				continue;
			*ret_is_deferred |= !run->commit->is_final;
			if (run->commit->is_final)
				result = git_run_add_outcome(
					run, (struct git_outcome){
						     .kind = GIT_OUTCOME_UNFINISHED,
						     .path = item->entry->path,
						     .reason = "a git ended in the middle of it" });
		}
	if (result == 0 && *ret_is_deferred) {
		run->result->is_deferred = run->result->deferred[run->number] = true;
		result = git_run_add_outcome(
			run,
			(struct git_outcome){ .kind = GIT_OUTCOME_DEFERRED,
					      .path = "",
					      .reason = "a git is in the middle of something" });
	}
	return result;
}

/* SHA-256 repositories have ids of 64 digits. */
static size_t id_bytes_of(const struct git_snapshot_part *part)
{
	for (size_t i = 0; i < part->count; i++) {
		const struct git_state *state = &part->states[i];
		size_t digits = state->text ? git_ref_id_length(state->text, state->length) : 0;

		if (digits)
			return digits / 2;
		if (state->text && strcmp(state->path, "config") == 0 &&
		    memmem(state->text, state->length, "sha256", 6))
			return 32;
	}
	return 20;
}

/*
 * A layer of more changes than are looked through would be too large at each attempt: it is held as
 * it is, for a person to look into or drop.
 */
static int hold_layer(struct git_run *run)
{
	static const char reason[] = "the task left more changes than are looked through";
	struct git_held_tree held = { .task = run->commit->task,
				      .directory = run->cover->path,
				      .path = "",
				      .reason = reason };
	struct git_outcome outcome = {
		.kind = GIT_OUTCOME_HELD, .path = "", .reason = reason, .change = CHANGE_MODIFIED
	};
	int CLEANUP_FD parent =
		openat(run->cover->upper_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int CLEANUP_FD store = git_held_tree_open(run->commit->state_fd, held.task, true);
	struct stat status;
	int result;

	*run->error = ERROR_NONE;
	if (store < 0)
		return error_errno(run->error, store, "what is held of %s", held.task);
	if (parent < 0 || fstat(run->cover->upper_fd, &status) < 0)
		return error_errno(run->error, errno, "%s", run->cover->path);
	result = git_held_tree_take(store, parent, "upper", &status, &held, run->error);
	if (result < 0)
		return result;
	memcpy(outcome.id, held.id, sizeof(outcome.id));
	return git_run_add_outcome(run, outcome);
}

static int run_cover(struct git_run *run)
{
	bool is_deferred = false;
	int result;

	if (run->is_whole[run->number])
		return hold_layer(run);
	result = git_upper_read(run->cover->upper_fd, run->arena, &run->upper, run->error);
	if (result == -E2BIG && run->commit->is_final)
		return hold_layer(run);
	if (result == 0)
		result = git_run_place(run);
	if (result == 0)
		result = take_locks(run, &is_deferred);
	for (size_t i = 0; result == 0 && !is_deferred && i < run->area_count; i++) {
		if (run->before->fault)
			run->areas[i]->fault = run->before->fault;
		result = git_run_apply(run, run->areas[i]);
	}
	for (size_t i = 0; i < run->area_count; i++) {
		git_objects_close(&run->areas[i]->objects);
		fd_close(&run->areas[i]->fd);
	}
	return result;
}

static int recover(struct git_run *run)
{
	const struct git_commit *commit = run->commit;
	struct git_text text;
	int result = git_file_read(commit->task_fd, JOURNAL, JOURNAL_LIMIT_BYTES, &run->scratch,
				   &text, NULL);

	if (result < 0)
		return result == -ENOENT ? 0 : result;
	for (size_t i = 0; i < commit->count; i++)
		if (commit->covers[i].fd >= 0)
			git_file_recover(text.bytes, text.length, (unsigned)i,
					 commit->covers[i].fd);
	return 0;
}

static int open_journal(struct git_run *run)
{
	int result = recover(run);

	if (result == 0)
		run->journal_fd = openat(run->commit->task_fd, JOURNAL,
					 O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NONBLOCK |
						 O_NOFOLLOW | O_CLOEXEC,
					 0600);
	if (result == 0 && run->journal_fd < 0)
		result = -errno;
	return result < 0 ? error_errno(run->error, result, JOURNAL) : 0;
}

static int run_all(struct git_run *run)
{
	const struct git_commit *commit = run->commit;
	int result = 0;

	for (size_t i = 0; result == 0 && i < commit->count; i++) {
		if (commit->covers[i].fd < 0)
			continue;
		run->cover = &commit->covers[i];
		run->number = (unsigned)i;
		run->before = &commit->snapshot->parts[i];
		run->upper = (struct git_upper){ 0 };
		run->areas = NULL;
		run->area_count = run->held_ref_count = 0;
		run->held_refs = NULL;
		run->id_bytes = id_bytes_of(run->before);
		result = run_cover(run);
	}
	return result;
}

/* What is not applied comes first, where there is more than a person reads. */
static int tell(const struct git_commit *commit, const struct git_commit_result *from,
		struct arena *arena, struct git_commit_result *ret_result)
{
	struct git_commit_result result = *from;
	const size_t count = from->count, limit = count < TOLD_LIMIT ? count : TOLD_LIMIT;
	size_t bytes = 0;

	result.count = 0;
	result.outcomes = arena_array(arena, limit + 1, sizeof(*result.outcomes));
	result.deferred = arena_array(arena, commit->count + 1, sizeof(*result.deferred));
	for (size_t i = 0; result.outcomes && count && i < 2 * count; i++) {
		struct git_outcome outcome = from->outcomes[i % count];

		if ((outcome.kind == GIT_OUTCOME_APPLIED) != (i >= count))
			continue;
		bytes += strlen(outcome.path) + (outcome.key ? strlen(outcome.key) : 0);
		if (result.count == limit || bytes > TOLD_LIMIT_BYTES)
			break;
		outcome.path = arena_copy(arena, outcome.path);
		outcome.key = outcome.key ? arena_copy(arena, outcome.key) : NULL;
		outcome.reason = outcome.reason ? arena_copy(arena, outcome.reason) : NULL;
		result.outcomes[result.count++] = outcome;
	}
	for (size_t i = 0; result.deferred && i < commit->count; i++)
		result.deferred[i] = from->deferred[i];
	if (!result.outcomes || arena_failed(arena))
		return -ENOMEM;
	*ret_result = result;
	return 0;
}

/* From the beginning: what has come to the host already is left as it is. */
static int run_once(struct git_run *run)
{
	const struct git_commit *commit = run->commit;

	*run->result = (struct git_commit_result){
		.deferred = arena_array(run->arena, commit->count + 1, sizeof(bool))
	};
	return run->result->deferred ? run_all(run) : -ENOMEM;
}

/* A layer that needs more memory than there is would need it at each attempt. */
static int run_within_memory(struct git_run *run, bool *is_whole)
{
	int result = run_once(run);

	for (size_t i = 0; i < run->commit->count && run->commit->is_final; i++) {
		if (result != -ENOMEM || !arena_failed(run->arena) || is_whole[run->number])
			break;
		is_whole[run->number] = true;
		arena_free(run->arena);
		*run->arena = (struct arena){ 0 };
		*run->error = ERROR_NONE;
		result = run_once(run);
	}
	return result;
}

int git_commit_run(const struct git_commit *commit, struct arena *arena,
		   struct git_commit_result *ret_result, struct error *error)
{
	struct git_commit_result outcome = { 0 };
	struct arena CLEANUP_ARENA work = { 0 };
	bool *is_whole = arena_array(arena, commit->count + 1, sizeof(*is_whole));
	struct git_run run = { .commit = commit,
			       .arena = &work,
			       .result = &outcome,
			       .error = error,
			       .journal_fd = -1,
			       .is_whole = is_whole,
			       .work_bytes = GIT_CONTENT_LIMIT_WORK_BYTES };
	int result;

	if (commit->snapshot->count != commit->count)
		return error_set(error, EINVAL, "the snapshot is of other git directories");
	result = is_whole ? open_journal(&run) : -ENOMEM;
	if (result == 0)
		result = run_within_memory(&run, is_whole);
	fd_close(&run.journal_fd);
	arena_free(&run.scratch);
	if (result == 0)
		result = tell(commit, &outcome, arena, ret_result);
	if (result < 0 && !error->code)
		return error_errno(error, result, "git directories");
	if (result == 0)
		(void)unlinkat(commit->task_fd, JOURNAL, 0);
	return result;
}
