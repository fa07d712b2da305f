#include "cli/stages.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "cli/options.h"
#include "cli/stage_record.h"
#include "workspace/host.h"
#include "workspace/stage_undo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Beginnings of ids that are shorter say nothing. */
#define LIMIT_WORD 4
/* Ids in one message. */
#define LIMIT_LISTED 8

int stages_take_state(struct stages *stages, const struct option *option, const char *value,
		      struct error *error)
{
	if (!value[0])
		return error_set(error, EINVAL, "option %s has an empty value", option->name);
	stages->state_path = value;
	return 0;
}

int stages_begin(struct stages *stages, struct error *error)
{
	struct effective *effective = &stages->effective;
	int result = host_gather(&stages->arena, &effective->host, error);

	if (result == 0 && effective->host.inside)
		result =
			error_set(error, EPERM,
				  "inside of a box there are no stages; use this verb on the host");
	if (result == 0)
		result = state_open(&effective->host, stages->state_path, &stages->arena,
				    &effective->state, error);
	if (result < 0)
		return result;
	effective->state_is_default = !stages->state_path;
	effective_reap(effective, &stages->arena);
	state_unmake(&effective->state);
	result = stage_store_list(effective->state.fd, STAGE_STORE_DIRECTORY, &stages->arena,
				  &stages->tasks, &stages->count);
	if (result == 0)
		result = stage_store_list(effective->state.fd, STAGE_STORE_APPLIED, &stages->arena,
					  &stages->applied, &stages->applied_count);
	return result < 0 ? error_errno(error, result, "what is staged") : 0;
}

bool stages_is_task(const char *word)
{
	return strncmp(word, "t-", 2) == 0 && !strchr(word, '/');
}

/* Of a task that has not ended yet. */
static bool is_running(const struct stages *stages, const char *word)
{
	struct stat status;

	return stages_is_task(word) &&
	       fstatat(stages->effective.state.tasks_fd, word, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static int find_word(const struct stages *stages, const char *word, const char **ret_task,
		     struct error *error)
{
	size_t found = 0;

	if (!stages_is_task(word) || strlen(word) < LIMIT_WORD)
		return error_set(error, ENOENT,
				 "%.100s is no task's id; `bawn diff --list` lists what is staged",
				 word);
	for (size_t i = 0; i < stages->count; i++)
		if (strncmp(stages->tasks[i], word, strlen(word)) == 0) {
			*ret_task = stages->tasks[i];
			found++;
		}
	if (found == 1)
		return 0;
	if (found)
		return error_set(error, ENOENT,
				 "%.100s is the beginning of more than one id; type more of it",
				 word);
	if (stage_record_is_ephemeral(stages->effective.state.fd, word))
		return error_set(error, ENOENT,
				 "the workspace of %.100s is ephemeral: what the task changed is "
				 "gone when it ends, and there is nothing to show or apply",
				 word);
	if (is_running(stages, word))
		return error_set(error, EBUSY,
				 "the task %.100s has not ended; what it changed can be looked at "
				 "and applied then (`bawn task end`)",
				 word);
	return error_set(error, ENOENT,
			 "%.100s has no stage; `bawn diff --list` lists what is staged", word);
}

/* The only one of a workspace around the current directory. */
static int find_here(struct stages *stages, const char **ret_task, struct error *error)
{
	char here[PATH_LIMIT_BYTES];
	size_t found = 0;

	if (!getcwd(here, sizeof(here)) || here[0] != '/')
		return error_set(error, ENOENT, "name a task; the current directory has no path");
	for (size_t i = 0; i < stages->count; i++) {
		struct stage_kept CLEANUP_STAGE_KEPT kept = STAGE_KEPT_NONE;

		if (stage_store_open(stages->effective.state.fd, STAGE_STORE_DIRECTORY,
				     stages->tasks[i], STAGE_STORE_PEEK, &stages->arena,
				     &kept) < 0 ||
		    !path_is_under(here, kept.about.workspace))
			continue;
		*ret_task = stages->tasks[i];
		found++;
	}
	if (found == 1)
		return 0;
	return found ? error_set(error, ENOENT,
				 "%zu tasks have a stage of this workspace; name one (`bawn diff "
				 "--list` lists them)",
				 found) :
		       error_set(error, ENOENT,
				 "nothing is staged for a workspace around the current directory; "
				 "`bawn diff --list` lists what is staged elsewhere");
}

static int open_on(struct stages *stages, const char *shelf, const char *task,
		   enum stage_store_use use, struct stage_kept *ret_kept, struct error *error)
{
	int result = stage_store_open(stages->effective.state.fd, shelf, task, use, &stages->arena,
				      ret_kept);

	if (result == -EBUSY)
		return error_set(error, EBUSY,
				 "the stage of %s is being applied, looked at or dropped by "
				 "another process; try again when that has ended",
				 task);
	if (result == -EBADMSG)
		return error_set(error, EBADMSG,
				 "the stage of %s is damaged and cannot be read; `bawn discard %s` "
				 "drops it, its files lie in %s/%s/%s",
				 task, task, stages->effective.state.path, shelf, task);
	return result < 0 ? error_errno(error, result, "the stage of %s", task) : 0;
}

int stages_open(struct stages *stages, const char *word, enum stage_store_use use,
		struct stage_kept *ret_kept, const char **ret_task, struct error *error)
{
	int result = word ? find_word(stages, word, ret_task, error) :
			    find_here(stages, ret_task, error);

	return result < 0 ? result :
			    open_on(stages, STAGE_STORE_DIRECTORY, *ret_task, use, ret_kept, error);
}

/* ---- what was applied ---- */

/* A task of the shelf that the word means; NULL: none, or more than one. */
static const char *find_applied(const struct stages *stages, const char *word)
{
	const char *found = NULL;

	if (!stages_is_task(word) || strlen(word) < LIMIT_WORD)
		return NULL;
	for (size_t i = 0; i < stages->applied_count; i++)
		if (strncmp(stages->applied[i], word, strlen(word)) == 0) {
			if (found)
				return NULL;
			found = stages->applied[i];
		}
	return found;
}

bool stages_is_applied(const struct stages *stages, const char *word)
{
	return find_applied(stages, word);
}

int stages_open_applied(struct stages *stages, const char *word, struct stage_kept *ret_kept,
			const char **ret_task, struct error *error)
{
	*ret_task = find_applied(stages, word);
	if (!*ret_task)
		return error_set(error, ENOENT, "%.100s was not applied", word);
	return open_on(stages, STAGE_STORE_APPLIED, *ret_task, STAGE_STORE_CHANGE, ret_kept, error);
}

/* Of a workspace around the current directory, with something that can be taken back. */
static bool can_undo_here(struct stages *stages, const char *shelf, const char *task,
			  const char *here)
{
	struct stage_kept CLEANUP_STAGE_KEPT kept = STAGE_KEPT_NONE;

	return stage_store_open(stages->effective.state.fd, shelf, task, STAGE_STORE_PEEK,
				&stages->arena, &kept) == 0 &&
	       path_is_under(here, kept.about.workspace) && stage_undo_is_possible(&kept);
}

/* Those that are meant, and the last of them; a list for people where there are more. */
static size_t find_undo_here(struct stages *stages, const char *here, struct buffer *list,
			     const char **ret_task)
{
	size_t found = 0;

	for (size_t i = 0; i < stages->count + stages->applied_count; i++) {
		bool is_waiting = i < stages->count;
		const char *task = is_waiting ? stages->tasks[i] :
						stages->applied[i - stages->count];

		if (!can_undo_here(stages, is_waiting ? STAGE_STORE_DIRECTORY : STAGE_STORE_APPLIED,
				   task, here))
			continue;
		*ret_task = task;
		if (found < LIMIT_LISTED)
			buffer_format(list, "%s%s", found ? ", " : "", task);
		found++;
	}
	return found;
}

static int find_undo(struct stages *stages, const char **ret_task, struct error *error)
{
	struct buffer CLEANUP_BUFFER list = { 0 };
	char here[PATH_LIMIT_BYTES];
	size_t found;

	if (!getcwd(here, sizeof(here)) || here[0] != '/')
		return error_set(error, ENOENT, "name a task; the current directory has no path");
	found = find_undo_here(stages, here, &list, ret_task);
	if (found == 1)
		return 0;
	buffer_byte(&list, '\0');
	return found ? error_set(error, ENOENT, "%zu tasks were applied here; name one: %s%s",
				 found, list.failed ? "" : list.data,
				 found > LIMIT_LISTED ? ", ..." : "") :
		       error_set(error, ENOENT,
				 "nothing that could be taken back was applied to a workspace "
				 "around the current directory");
}

int stages_open_undo(struct stages *stages, const char *word, struct stage_kept *ret_kept,
		     const char **ret_task, struct error *error)
{
	const char *task = word;
	int result = word ? 0 : find_undo(stages, &task, error);

	if (result < 0)
		return result;
	if (!stages_is_applied(stages, task))
		return stages_open(stages, task, STAGE_STORE_CHANGE, ret_kept, ret_task, error);
	result = stages_open_applied(stages, task, ret_kept, ret_task, error);
	if (result < 0)
		return result;
	result = stage_store_return(stages->effective.state.fd, *ret_task);
	return result < 0 ? error_errno(error, result, "the stage of %s", *ret_task) : 0;
}

int stages_status(int code)
{
	return code == -ENOENT || code == -EBUSY || code == -EPERM || code == -EBADMSG ||
			       code == -ESTALE || code == -EFBIG ?
		       1 :
		       125;
}

void stages_end(struct stages *stages)
{
	effective_free(&stages->effective);
	arena_free(&stages->arena);
}
