#include "broker/landing.h"

#include "base/buffer.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/effective.h"
#include "broker/staging.h"
#include "ipc/codec.h"
#include "isolate/box.h"
#include "plan/plan.h"
#include "workspace/git_commit.h"
#include "workspace/git_find.h"
#include "workspace/git_renew.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "covers"
#define FILE_VERSION 1u
#define FILE_LIMIT_BYTES (16u * 1024 * 1024)
/* Of the arena: what a repository of some branches takes. */
#define FIRST_BYTES (16u * 1024)

/* A cover is opened at the start, or by who goes on. */
static int open_cover(const struct landing_place *place, int git_fd, struct git_cover *cover)
{
	struct stat status;
	char upper[32];

	*cover = (struct git_cover){
		.path = place->path, .is_worktree = place->is_worktree, .fd = -1, .upper_fd = -1
	};
	cover->fd = open(place->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cover->fd < 0 || fstat(cover->fd, &status) < 0)
		return -errno;
	/* another one by now: it is not the one whose state the task changed */
	if (status.st_dev != place->device || status.st_ino != place->inode)
		return -ESTALE;
	(void)snprintf(upper, sizeof(upper), "%u/upper", place->layer);
	cover->upper_fd = git_upper_open(git_fd, upper);
	return cover->upper_fd < 0 ? cover->upper_fd : 0;
}

static int open_git(int task_fd)
{
	int fd = openat(task_fd, PLAN_GIT_LAYERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Of what lies in another one the overlay is that one's. */
static size_t count_covers(const struct git_found *found)
{
	size_t count = 0;

	for (size_t i = 0; i < found->count; i++)
		count += !found->items[i].below[0];
	return count;
}

static int open_covers(struct landing *landing, const struct git_found *found, struct error *error)
{
	int result = 0;

	landing->covers =
		arena_array(&landing->arena, count_covers(found), sizeof(*landing->covers));
	if (!landing->covers)
		return error_errno(error, ENOMEM, "git directories");
	for (size_t i = 0; result == 0 && i < found->count; i++) {
		const struct git_directory *item = &found->items[i];
		const struct landing_place place = { .path = item->path,
						     .layer = item->layer,
						     .is_worktree = item->kind ==
								    GIT_DIRECTORY_WORKTREE,
						     .device = item->device,
						     .inode = item->inode };

		if (item->below[0])
			continue;
		result = open_cover(&place, landing->git_fd, &landing->covers[landing->count++]);
		if (result < 0)
			error_errno(error, result, "the git directory %s", item->path);
	}
	return result;
}

/* Reduced plans alone are without, by which the attack tests show what one layer does. */
static bool has_layers(const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].kind == PLAN_LAYERS)
			return true;
	return false;
}

/* Directories in which git makes a file, or renames one, for most of what it does. */
static int64_t stamp_of(int fd)
{
	static const char *const names[] = { ".",	   "objects",	"objects/pack",
					     "refs/heads", "refs/tags", "refs/remotes/origin" };
	int64_t newest = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct stat status;
		int64_t changed_ns;

		if (fstatat(fd, names[i], &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		changed_ns = (int64_t)status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec;
		newest = changed_ns > newest ? changed_ns : newest;
	}
	return newest;
}

/* True where one is another than at the last time. */
static bool take_stamps(struct landing *landing)
{
	bool is_changed = false;

	if (!landing->stamps)
		landing->stamps =
			arena_array(&landing->arena, landing->count, sizeof(*landing->stamps));
	for (size_t i = 0; landing->stamps && i < landing->count; i++) {
		int64_t stamp = stamp_of(landing->covers[i].fd);

		is_changed |= stamp != landing->stamps[i];
		landing->stamps[i] = stamp;
	}
	return is_changed;
}

int landing_begin(struct landing *landing, const struct effective *effective, int task_fd,
		  struct error *error)
{
	const struct git_found *found = &effective->git;
	int result;

	*landing = LANDING_NONE;
	landing->effective = effective;
	landing->arena.first_bytes = FIRST_BYTES;
	/* nothing of an ephemeral workspace lands, and nothing is kept for who would go on */
	if ((effective->policy.flags & POLICY_EPHEMERAL) || !count_covers(found) ||
	    !has_layers(&effective->plan))
		return 0;
	landing->git_fd = open_git(task_fd);
	if (landing->git_fd < 0)
		return error_errno(error, landing->git_fd, "the task's git directories");
	result = open_covers(landing, found, error);
	if (result == 0)
		result = git_snapshot_take(landing->covers, landing->count,
					   &landing->snapshot_arena, &landing->snapshot, error);
	if (result == 0)
		(void)take_stamps(landing);
	/* nothing of the task has run: there is nothing to land */
	if (result < 0)
		landing_end(landing);
	return result;
}

/* ---- kept for who goes on ---- */

/* Whole or not at all: an earlier one is still good. */
static int write_file(int directory_fd, const struct buffer *buffer)
{
	return fd_replace(directory_fd, FILE_NAME, FILE_NAME ".new", buffer->data, buffer->length);
}

/* The task's id last: without it, or with another's, all of this is an earlier task's. */
static int save_covers(const struct landing *landing)
{
	const struct git_found *found = &landing->effective->git;
	struct buffer CLEANUP_BUFFER buffer = { 0 };

	codec_put_u32(&buffer, FILE_VERSION);
	codec_put_string(&buffer, landing->effective->policy.workspace);
	codec_put_u32(&buffer, (uint32_t)landing->count);
	for (size_t i = 0; i < found->count; i++) {
		const struct git_directory *item = &found->items[i];

		if (item->below[0])
			continue;
		codec_put_string(&buffer, item->path);
		codec_put_u32(&buffer, item->layer);
		codec_put_u32(&buffer, item->kind == GIT_DIRECTORY_WORKTREE);
		codec_put_u64(&buffer, item->device);
		codec_put_u64(&buffer, item->inode);
	}
	codec_put_string(&buffer, landing->effective->task);
	return buffer.failed ? -ENOMEM : write_file(landing->git_fd, &buffer);
}

bool landing_work(struct landing *landing)
{
	struct error ignored = ERROR_NONE;

	if (landing->git_fd < 0 || landing->is_kept)
		return false;
	landing->is_kept = true;
	/* that it cannot be kept matters to nobody but who would have to go on */
	if (git_snapshot_save(&landing->snapshot, landing->git_fd, &ignored) == 0)
		(void)save_covers(landing);
	return false;
}

void landing_keep(struct landing *landing)
{
	(void)landing_work(landing);
	/* without them an index that the host wrote anew is taken for another */
	if (landing->git_fd >= 0)
		(void)git_snapshot_keep(&landing->snapshot, landing->git_fd);
}

/* ---- bringing it over ---- */

bool landing_has_news(struct landing *landing)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct error ignored = ERROR_NONE;

	/* of a staged workspace it comes with the rest (landing_apply()) */
	if (landing->git_fd < 0 || staging_is_on(landing->effective))
		return false;
	for (size_t i = 0; i < landing->count; i++) {
		struct git_upper upper;

		if (git_upper_read(landing->covers[i].upper_fd, &arena, &upper, &ignored) < 0)
			return true;
		for (size_t j = 0; j < upper.count; j++)
			if (!git_snapshot_saw(&landing->snapshot.parts[i], &upper.entries[j]))
				return true;
	}
	return false;
}

static const enum change_state states[] = {
	[GIT_OUTCOME_APPLIED] = CHANGE_APPLIED,
	[GIT_OUTCOME_HELD] = CHANGE_HELD,
	[GIT_OUTCOME_DEFERRED] = CHANGE_DEFERRED,
	[GIT_OUTCOME_UNFINISHED] = CHANGE_HELD,
};

static int tell(const struct git_commit_result *landed, struct arena *arena,
		struct change **ret_changes, size_t *ret_count)
{
	struct change *changes = arena_array(arena, landed->count + 1, sizeof(*changes));
	size_t told = 0;

	/* lists end somewhere: what is not applied comes first */
	for (size_t i = 0; changes && i < 2 * landed->count; i++) {
		const struct git_outcome *outcome = &landed->outcomes[i % landed->count];

		if ((outcome->kind == GIT_OUTCOME_APPLIED) != (i >= landed->count))
			continue;
		changes[told++] = (struct change){
			.path = arena_format(arena, "%s%s%s", outcome->directory,
					     outcome->path[0] ? "/" : "", outcome->path),
			.kind = outcome->change,
			.state = states[outcome->kind],
			.key = outcome->key,
			.reason = outcome->reason,
			.review = outcome->id[0] ? arena_copy(arena, outcome->id) : NULL,
		};
	}
	if (!changes || arena_failed(arena))
		return -ENOMEM;
	*ret_changes = changes;
	*ret_count = landed->count;
	return 0;
}

/* The task goes on, from what it sees now. */
static void go_on(struct landing *landing, struct git_snapshot next, struct arena arena)
{
	git_snapshot_close(&landing->snapshot);
	arena_free(&landing->snapshot_arena);
	landing->snapshot_arena = arena;
	landing->snapshot = next;
	landing->is_kept = false;
	(void)landing_work(landing);
}

static int renew(struct landing *landing, const bool *deferred, struct error *error)
{
	struct arena arena = { 0 };
	struct git_snapshot next;
	int result;

	(void)take_stamps(landing);
	result = git_renew(landing->covers, landing->count, &landing->snapshot, deferred, &arena,
			   &next, error);
	if (result < 0)
		arena_free(&arena);
	else
		go_on(landing, next, arena);
	return result;
}

static int look_anew(const struct landing *landing, struct box *box, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < landing->count; i++) {
		struct box_cover cover = { .class = PATH_OBJECTS,
					   .target = landing->covers[i].path };

		result = box_mask(box, &cover, 1, error);
	}
	return result;
}

/*
 * The snapshot first: what the host does between the two is then seen as done meanwhile. With the
 * old view and a new snapshot, a commit of the host's would be lost.
 */
void landing_look_again(struct landing *landing, struct box *box)
{
	bool *deferred = NULL;
	struct arena arena = { 0 };
	struct git_snapshot next;
	struct error ignored = ERROR_NONE;

	if (landing->git_fd < 0 || staging_is_on(landing->effective) || !take_stamps(landing) ||
	    landing_has_news(landing))
		return;
	deferred = arena_array(&arena, landing->count, sizeof(*deferred));
	if (!deferred || git_renew(landing->covers, landing->count, &landing->snapshot, deferred,
				   &arena, &next, &ignored) < 0) {
		arena_free(&arena);
		return;
	}
	for (size_t i = 0; i < landing->count; i++)
		(void)git_upper_show_objects(landing->covers[i].upper_fd, &arena, &ignored);
	if (look_anew(landing, box, &ignored) == 0) {
		go_on(landing, next, arena);
		return;
	}
	git_snapshot_close(&next);
	arena_free(&arena);
}

static int commit(struct landing *landing, bool is_final, struct arena *arena,
		  struct git_commit_result *ret_landed, struct error *error)
{
	const struct effective *effective = landing->effective;
	const struct git_commit commit = { .covers = landing->covers,
					   .count = landing->count,
					   .snapshot = &landing->snapshot,
					   .workspace = effective->policy.workspace,
					   .task = effective->task,
					   .task_fd = landing->git_fd,
					   .state_fd = effective->state.fd,
					   .is_final = is_final,
					   .holds_index = landing->holds_index };

	return git_commit_run(&commit, arena, ret_landed, error);
}

int landing_run(struct landing *landing, enum landing_moment moment, struct arena *arena,
		struct change **ret_changes, size_t *ret_count, struct error *error)
{
	struct git_commit_result landed = { 0 };
	int result = 0;

	*ret_changes = NULL;
	*ret_count = 0;
	/* there is none, or the start failed before, or it waits in the stage */
	if (landing->git_fd < 0 || staging_is_on(landing->effective))
		return 0;
	result = commit(landing, moment == LANDING_LAST, arena, &landed, error);
	if (result == 0 && moment == LANDING_BETWEEN)
		result = renew(landing, landed.deferred, error);
	if (result == 0 && tell(&landed, arena, ret_changes, ret_count) < 0)
		result = error_errno(error, ENOMEM, "git directories");
	return result;
}

static void close_covers(struct git_cover *covers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		fd_close(&covers[i].fd);
		fd_close(&covers[i].upper_fd);
	}
}

void landing_end(struct landing *landing)
{
	if (!landing->effective)
		return;
	git_snapshot_close(&landing->snapshot);
	close_covers(landing->covers, landing->count);
	fd_close(&landing->git_fd);
	arena_free(&landing->snapshot_arena);
	arena_free(&landing->arena);
	*landing = LANDING_NONE;
}

/* ---- going on with what a dead supervisor left ---- */

/* Bytes of ours, but a power cut may have torn them. */
static int read_file(int git_fd, struct arena *arena, const char **ret_bytes, size_t *ret_length)
{
	int CLEANUP_FD fd =
		openat(git_fd, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	ssize_t length;
	char *bytes;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size > FILE_LIMIT_BYTES)
		return -EBADMSG;
	bytes = arena_allocate(arena, (size_t)status.st_size + 1);
	length = bytes ? fd_read_all(fd, bytes, (size_t)status.st_size) : -ENOMEM;
	if (length < 0)
		return (int)length;
	*ret_bytes = bytes;
	*ret_length = (size_t)length;
	return 0;
}

static int load_covers(int git_fd, struct arena *arena, struct landing_left *ret_left)
{
	struct codec_cursor cursor;
	struct landing_left left = { 0 };
	const char *bytes = NULL;
	size_t length = 0;
	int result = read_file(git_fd, arena, &bytes, &length);

	if (result < 0)
		return result;
	codec_begin(&cursor, bytes, length, arena);
	if (codec_u32(&cursor) != FILE_VERSION)
		codec_fail(&cursor, -EBADMSG);
	left.workspace = codec_string(&cursor, PATH_MAX);
	left.count = codec_count(&cursor, GIT_FIND_LIMIT, 4);
	left.places = codec_array(&cursor, left.count, sizeof(*left.places));
	for (size_t i = 0; left.places && i < left.count; i++) {
		left.places[i].path = codec_string(&cursor, PATH_MAX);
		left.places[i].layer = codec_u32(&cursor);
		left.places[i].is_worktree = codec_u32(&cursor);
		left.places[i].device = codec_u64(&cursor);
		left.places[i].inode = codec_u64(&cursor);
	}
	left.task = codec_string(&cursor, ACTION_ID_BYTES);
	result = codec_end(&cursor);
	if (result == 0)
		*ret_left = left;
	return result;
}

/* What will not be otherwise at the next attempt: a torn file, a git directory that is gone. */
static bool is_for_good(int code)
{
	return code == -EBADMSG || code == -ENOENT || code == -ENOTDIR || code == -ESTALE ||
	       code == -ELOOP;
}

/* One that is gone, or another one by now, takes no other with it: it is left out and named. */
static int open_left(const struct landing_left *left, int git_fd, struct git_cover *covers,
		     struct buffer *lost, struct error *error)
{
	for (size_t i = 0; i < left->count; i++) {
		const char *path = left->places[i].path;
		int result = open_cover(&left->places[i], git_fd, &covers[i]);

		if (result == 0)
			continue;
		close_covers(&covers[i], 1);
		if (!is_for_good(result))
			return error_errno(error, result, "%s", path);
		buffer_format(lost, "%s%s", lost->length ? ", " : "", path);
		if (result == -ESTALE)
			buffer_text(lost, " (another git directory by now)");
		else
			buffer_format(lost, " (%s)", strerror(-result));
	}
	return 0;
}

static int commit_left(const struct state *state, const struct landing_left *left, int git_fd,
		       bool holds_index, struct arena *arena, struct git_commit_result *ret_landed,
		       struct buffer *lost, struct error *error)
{
	struct git_snapshot CLEANUP_GIT_SNAPSHOT snapshot = GIT_SNAPSHOT_NONE;
	struct git_cover *covers = arena_array(arena, left->count + 1, sizeof(*covers));
	struct git_commit commit = { .covers = covers,
				     .count = left->count,
				     .snapshot = &snapshot,
				     .workspace = left->workspace,
				     .task = left->task,
				     .task_fd = git_fd,
				     .state_fd = state->fd,
				     .is_final = true,
				     .holds_index = holds_index };
	int result = git_snapshot_load(git_fd, arena, &snapshot, error);

	if (!covers)
		return error_errno(error, ENOMEM, "git directories");
	for (size_t i = 0; i < left->count; i++)
		covers[i] = (struct git_cover){ .fd = -1, .upper_fd = -1 };
	if (result == 0)
		result = open_left(left, git_fd, covers, lost, error);
	if (result == 0 && snapshot.count != left->count)
		result = -EBADMSG;
	if (result == 0)
		result = git_commit_run(&commit, arena, ret_landed, error);
	close_covers(covers, left->count);
	return result;
}

/* Of all of it, or of those that are lost. */
static void say_left(const char *task, int result, const struct buffer *lost, struct error *error)
{
	if (result == 0 && lost->length)
		error_set(error, ESTALE, "%s", lost->data ? lost->data : "a git directory");
	if (result < 0 && result != -ENOENT && !error->code)
		error_errno(error, result, FILE_NAME);
	if (error->code >= 0)
		return;
	error_context(error,
		      result == 0 || is_for_good(result) ?
			      "what git did in %s, which was killed, cannot come to the host" :
			      "what git did in %s, which was killed, has not come to the host yet; "
			      "the next start tries again",
		      task);
}

int landing_resume(const struct state *state, const char *task, bool holds_index,
		   struct error *error)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	int CLEANUP_FD task_fd =
		openat(state->tasks_fd, task, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int CLEANUP_FD git_fd = task_fd < 0 ? -1 : open_git(task_fd);
	struct buffer CLEANUP_BUFFER lost = { 0 };
	struct landing_left left = { 0 };
	struct git_commit_result landed = { 0 };
	int result;

	/* killed before anything of it could run */
	if (git_fd < 0)
		return 0;
	result = load_covers(git_fd, &arena, &left);
	if (result == 0 && strcmp(left.task, task) == 0)
		result = commit_left(state, &left, git_fd, holds_index, &arena, &landed, &lost,
				     error);
	say_left(task, result, &lost, error);
	return is_for_good(result) ? 0 : result;
}

/* ---- a stage's ---- */

int landing_load(int task_fd, const char *task, struct arena *arena, struct landing_left *ret_left)
{
	int CLEANUP_FD git_fd = open_git(task_fd);
	struct landing_left left = { 0 };
	int result = git_fd < 0 ? git_fd : load_covers(git_fd, arena, &left);

	if (result < 0)
		return result;
	if (strcmp(left.task, task) != 0)
		return -ENOENT;
	*ret_left = left;
	return 0;
}

/* A git directory that is gone, or another one by now, is told of; the others have landed. */
static int add_lost(const struct buffer *lost, struct arena *arena, struct change *changes,
		    size_t *count)
{
	if (!lost->length)
		return 0;
	changes[(*count)++] = (struct change){ .path = arena_copy(arena, lost->data),
					       .kind = CHANGE_MODIFIED,
					       .state = CHANGE_DEFERRED,
					       .reason = "it cannot be reached any more" };
	return arena_failed(arena) ? -ENOMEM : 0;
}

int landing_apply(const struct state *state, int task_fd, const char *task, struct arena *arena,
		  struct change **ret_changes, size_t *ret_count, struct error *error)
{
	int CLEANUP_FD git_fd = open_git(task_fd);
	struct buffer CLEANUP_BUFFER lost = { 0 };
	struct git_commit_result landed = { 0 };
	struct landing_left left = { 0 };
	int result = landing_load(task_fd, task, arena, &left);

	*ret_changes = NULL;
	*ret_count = 0;
	/* all of it landed, and whoever brought it was killed as it removed the layers */
	if (git_fd >= 0 && result == -ENOENT &&
	    faccessat(git_fd, FILE_NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		directory_remove_tree(task_fd, PLAN_GIT_LAYERS);
	if (git_fd < 0 || result == -ENOENT)
		return 0;
	if (result == 0)
		result = commit_left(state, &left, git_fd, false, arena, &landed, &lost, error);
	if (result == 0)
		result = tell(&landed, arena, ret_changes, ret_count);
	if (result == 0)
		result = add_lost(&lost, arena, *ret_changes, ret_count);
	if (result < 0) {
		if (!error->code)
			error_errno(error, result, FILE_NAME);
		return error_context(error, "what git did has not come to the host");
	}
	/* first what says that there is something to land */
	if (unlinkat(git_fd, FILE_NAME, 0) == 0)
		directory_remove_tree(task_fd, PLAN_GIT_LAYERS);
	return 0;
}
