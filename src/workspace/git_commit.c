#include "workspace/git_commit.h"

#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_commit_internal.h"
#include "workspace/git_content.h"
#include "workspace/git_held_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL "git-commit"
/* A line for each file that one run writes. */
#define JOURNAL_LIMIT_BYTES (32u * 1024 * 1024)
/* Of outcomes, and of their paths, those that are told. */
#define TOLD_LIMIT 50000u
#define TOLD_LIMIT_BYTES (8u * 1024 * 1024)
#define TEXT_LIMIT_BYTES (1024u * 1024)

/* What went wrong with one thing alone; all else is the system's, and ends the run. */
static const struct {
	int code;
	const char *reason;
} reasons[] = {
	{ ENOENT, "its place is not there" },
	{ ENOTDIR, "something else stands in its place" },
	{ EISDIR, "a directory stands in its place" },
	{ ENOTEMPTY, "a directory stands in its place" },
	{ EEXIST, "the host made one of its name meanwhile" },
	{ ELOOP, "a link stands on the way to it" },
	{ EXDEV, "it lies elsewhere" },
	{ EINVAL, "it is no plain file" },
	{ EFBIG, "it is too large" },
	{ EACCES, "it may not be read or written" },
	{ EPERM, "it may not be written" },
	{ ENAMETOOLONG, "its name is too long" },
	{ EBADMSG, "what the host has there is not git's" },
	{ ESTALE, "the host changed it meanwhile" },
	{ EBUSY, "a git of the host is at work on it" },
};

const char *git_run_reason(int code)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].code == -code)
			return reasons[i].reason;
	return NULL;
}

int git_run_read(struct git_run *run, const struct git_area *area, const struct git_piece *item,
		 size_t limit_bytes, struct git_text *ret_text)
{
	(void)area;
	arena_reset(&run->scratch);
	return git_file_read(run->cover->upper_fd, item->entry->path, limit_bytes, &run->scratch,
			     ret_text, NULL);
}

static int compare_item(const void *a, const void *b)
{
	const struct git_piece *left = a, *right = b;

	return strcmp(left->path, right->path);
}

struct git_piece *git_run_item(const struct git_area *area, const char *path)
{
	struct git_piece key = { .path = path };

	return area->count ? bsearch(&key, area->items, area->count, sizeof(key), compare_item) :
			     NULL;
}

const struct git_state *git_run_state(const struct git_run *run, const struct git_area *area,
				      const char *path)
{
	const char *whole;

	if (area->is_new)
		return NULL;
	if (!*area->prefix)
		return git_snapshot_find(run->before, path);
	whole = arena_format(run->arena, "%s%s", area->prefix, path);
	return whole ? git_snapshot_find(run->before, whole) : NULL;
}

bool git_run_is_settled(const struct git_run *run, const struct stat *status)
{
	return (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec <
	       run->before->taken_ns;
}

/* Paths that the snapshot has, if they were there. */
static bool is_recorded(const char *path)
{
	static const char *const folders[] = { "info/", "hooks/", "rebase-merge/", "rebase-apply/",
					       "sequencer/" };

	if (!strchr(path, '/') || strncmp(path, "refs/", 5) == 0)
		return true;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t length = strlen(folders[i]);

		if (strncmp(path, folders[i], length) == 0 && !strchr(path + length, '/'))
			return true;
	}
	return false;
}

bool git_run_is_unchanged(const struct git_run *run, const struct git_area *area, const char *path,
			  const struct stat *status)
{
	const struct git_state *state;

	if (!is_recorded(path))
		return !status || git_run_is_settled(run, status);
	state = git_run_state(run, area, path);
	return state && status ? git_state_is(state, status) : !state == !status;
}

static int add_outcome(struct git_run *run, struct git_outcome outcome)
{
	struct git_commit_result *result = run->result;
	struct git_outcome *outcomes =
		arena_push(run->arena, result->outcomes, result->count, sizeof(*outcomes));

	if (!outcomes || !outcome.path)
		return error_errno(run->error, ENOMEM, "%s", run->cover->path);
	outcome.directory = run->cover->path;
	result->outcomes = outcomes;
	outcomes[result->count++] = outcome;
	result->held += outcome.kind == GIT_OUTCOME_HELD;
	return 0;
}

int git_run_applied(struct git_run *run, const struct git_area *area, const char *path,
		    enum change_kind kind)
{
	/* a new directory counts as one */
	if (area->is_new)
		return 0;
	return add_outcome(run, (struct git_outcome){ .kind = GIT_OUTCOME_APPLIED,
						      .path = arena_format(run->arena, "%s%s",
									   area->prefix, path),
						      .change = kind });
}

int git_run_hold_value(struct git_run *run, struct git_area *area, struct git_held held)
{
	struct git_outcome outcome = { .kind = GIT_OUTCOME_HELD, .reason = held.reason };
	int result = 0;

	held.task = run->commit->task;
	held.directory = run->cover->path;
	held.path = arena_format(run->arena, "%s%s", area->prefix, held.path);
	outcome.path = held.path;
	if (held.key) {
		held.is_cut |= strlen(held.key) > GIT_HELD_LIMIT_KEY_BYTES;
		held.key = outcome.key =
			arena_format(run->arena, "%.*s", (int)GIT_HELD_LIMIT_KEY_BYTES, held.key);
	}
	outcome.change = held.after.bytes ? held.before.bytes ? CHANGE_MODIFIED : CHANGE_CREATED :
					    CHANGE_REMOVED;
	if (arena_failed(run->arena))
		return error_errno(run->error, ENOMEM, "%s", run->cover->path);
	if (run->result->held < GIT_HELD_LIMIT_ITEMS) {
		git_held_name(&held, outcome.id);
		result = git_held_put(run->commit->state_fd, &held, run->error);
	}
	return result < 0 ? result : add_outcome(run, outcome);
}

/* What the host has in its place; too large, or no file: nothing is kept of it. */
static struct git_text host_text(struct git_run *run, const struct git_area *area, const char *path)
{
	struct git_text text = { 0 };

	if (git_file_read(area->target.fd, path, GIT_HELD_LIMIT_BYTES, &run->scratch, &text, NULL) <
	    0)
		return (struct git_text){ 0 };
	return text;
}

static struct git_text task_text(struct git_run *run, const struct git_area *area,
				 const struct git_piece *item, struct git_held *held)
{
	struct git_text text = { 0 };
	int result = git_run_read(run, area, item, GIT_HELD_LIMIT_BYTES, &text);

	held->is_cut = result < 0;
	held->is_executable = item->entry->mode & 0111;
	/* removal is what has no text; this is one that could not be kept */
	if (result < 0)
		text.bytes = "";
	return text;
}

static bool is_there(const struct git_area *area, const char *path)
{
	struct stat status;

	return git_file_status(area->target.fd, path, &status) == 0;
}

int git_run_hold(struct git_run *run, struct git_area *area, struct git_piece *item,
		 const char *reason)
{
	struct git_held held = { .path = item->path, .kind = GIT_HELD_FILE, .reason = reason };
	enum git_upper_kind kind = item->entry->kind;

	item->is_done = true;
	arena_reset(&run->scratch);
	if (kind == GIT_UPPER_FILE)
		held.after = task_text(run, area, item, &held);
	else if (kind != GIT_UPPER_GONE)
		held.kind = GIT_HELD_OTHER;
	/* what the host never had, or has anew, the task cannot take away */
	if ((kind == GIT_UPPER_GONE || kind == GIT_UPPER_OPAQUE) && !is_there(area, item->path))
		return 0;
	held.before = host_text(run, area, item->path);
	if (kind == GIT_UPPER_GONE && !held.before.bytes)
		held.kind = GIT_HELD_OTHER;
	if (kind == GIT_UPPER_FILE && !held.is_cut && held.before.bytes &&
	    held.before.length == held.after.length &&
	    memcmp(held.before.bytes, held.after.bytes, held.after.length) == 0)
		return 0;
	return git_run_hold_value(run, area, held);
}

int git_run_failed(struct git_run *run, struct git_area *area, struct git_piece *item, int code)
{
	const char *reason = git_run_reason(code);

	item->is_done = true;
	if (run->error->code)
		return run->error->code;
	if (!reason)
		return error_errno(run->error, code, "%s/%s%s", run->cover->path, area->prefix,
				   item->path);
	return git_run_hold(run, area, item, reason);
}

int git_run_aside(struct git_run *run, const char *what, const char **ret_name)
{
	struct git_target target = { .fd = run->cover->fd,
				     .journal_fd = run->journal_fd,
				     .number = run->number,
				     .prefix = "" };
	char *name = arena_format(run->arena, "bawn-%s-%s", run->commit->task, what);

	if (!name)
		return -ENOMEM;
	*ret_name = name;
	return git_file_aside(&target, name);
}

typedef int apply_item(struct git_run *run, struct git_area *area, struct git_piece *item);

/* A small file that nobody executes, where its content is what `check` says. */
static int put_checked(struct git_run *run, struct git_area *area, struct git_piece *item,
		       bool (*check)(const char *path, struct git_text text))
{
	struct git_text text;
	int result;

	item->is_done = true;
	if (item->entry->kind == GIT_UPPER_GONE)
		return git_run_remove(run, area, item);
	if (item->entry->kind != GIT_UPPER_FILE)
		return 0;
	result = git_run_read(run, area, item, TEXT_LIMIT_BYTES, &text);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	return check(item->path, text) ? git_run_put(run, area, item, text) :
					 git_run_hold(run, area, item, "its content is not git's");
}

static bool is_any(const char *path, struct git_text text)
{
	(void)path;
	(void)text;
	return true;
}

static bool is_shallow(const char *path, struct git_text text)
{
	(void)path;
	return git_ref_is_list(text.bytes, text.length, false);
}

/* MERGE_HEAD and its like: ids; FETCH_HEAD with text behind them; some may name a branch. */
static bool is_pseudo(const char *path, struct git_text text)
{
	static const char symbolic[] = "ref: ";
	size_t begin = sizeof(symbolic) - 1;

	if (git_ref_is_list(text.bytes, text.length, strcmp(path, "FETCH_HEAD") == 0))
		return true;
	return text.length > begin + 1 && memcmp(text.bytes, symbolic, begin) == 0 &&
	       text.bytes[text.length - 1] == '\n' &&
	       git_ref_is_name(text.bytes + begin, text.length - begin - 1);
}

static int apply_shallow(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	return put_checked(run, area, item, is_shallow);
}

/* git stops at one of these whose object is missing; the others it only tells. */
static bool is_needed(const char *path)
{
	return strcmp(path, "MERGE_HEAD") == 0 || strcmp(path, "CHERRY_PICK_HEAD") == 0 ||
	       strcmp(path, "REVERT_HEAD") == 0;
}

static bool has_all_objects(struct git_run *run, struct git_area *area, struct git_text text)
{
	bool has_all = true;

	for (size_t at = 0; has_all && at < text.length;) {
		size_t length = git_ref_id_length(text.bytes + at, text.length - at);
		const char *end = memchr(text.bytes + at, '\n', text.length - at);
		char *id = arena_copy_bytes(run->arena, text.bytes + at, length);

		has_all = id && (!length || git_run_has_object(run, area, id));
		at = end ? (size_t)(end - text.bytes) + 1 : text.length;
	}
	return has_all;
}

static int apply_pseudo(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	struct git_text text;

	if (item->entry->kind == GIT_UPPER_FILE && is_needed(item->path) &&
	    git_run_read(run, area, item, TEXT_LIMIT_BYTES, &text) == 0 &&
	    !has_all_objects(run, area, text))
		return git_run_hold(run, area, item, GIT_RUN_MISSING);
	return put_checked(run, area, item, is_pseudo);
}

static int apply_text(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	return put_checked(run, area, item, is_any);
}

/* The links of a worktree: what they were, or git's own. */
static int apply_link(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	const char *fault;
	struct git_text text;
	int result;

	if (!area->is_worktree || !*area->prefix || item->entry->kind != GIT_UPPER_FILE)
		return git_run_hold(run, area, item, "it says where git finds the rest");
	fault = item->class == GIT_COMMONDIR ? git_run_commondir_fault(run, area) :
					       git_run_gitdir_fault(run, area);
	result = git_run_read(run, area, item, TEXT_LIMIT_BYTES, &text);
	if (result < 0)
		return git_run_failed(run, area, item, result);
	return fault ? git_run_hold(run, area, item, fault) : git_run_put(run, area, item, text);
}

/* git's own templates, which nothing runs. */
static int apply_sample(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	return put_checked(run, area, item, is_any);
}

static int hold_hook(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	return git_run_hold(run, area, item, "git runs it");
}

static int hold_other(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	return git_run_hold(run, area, item, "not known as harmless");
}

static int hold_module(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	return git_run_hold(run, area, item, "it is a repository of its own");
}

/* What is applied item by item, in this order; what has no row by then is held. */
static const struct step {
	enum git_class class;
	apply_item *apply;
} steps[] = {
	{ GIT_INDEX, git_run_index },	 { GIT_HEAD, apply_pseudo },
	{ GIT_MESSAGE, apply_text },	 { GIT_INFO_SAFE, apply_text },
	{ GIT_CONFIG, git_run_config },	 { GIT_COMMONDIR, apply_link },
	{ GIT_GITDIR_LINK, apply_link }, { GIT_HOOK_SAMPLE, apply_sample },
	{ GIT_HOOK, hold_hook },	 { GIT_MODULE, hold_module },
	{ GIT_WORKTREE, hold_module },
};

static int apply_class(struct git_run *run, struct git_area *area, enum git_class class,
		       apply_item *apply)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < area->count; i++)
		if (area->items[i].class == class && !area->items[i].is_done)
			result = apply(run, area, &area->items[i]);
	return result;
}

/* Links, devices and what could not be read reach no host, whatever their name. */
static int hold_strange(struct git_run *run, struct git_area *area)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < area->count; i++) {
		struct git_piece *item = &area->items[i];

		if (item->is_done)
			continue;
		if (item->entry->kind == GIT_UPPER_LINK)
			result = git_run_hold(run, area, item, "it is a link");
		else if (item->entry->kind == GIT_UPPER_SPECIAL)
			result = git_run_hold(run, area, item, "it is no plain file");
		else if (item->entry->kind == GIT_UPPER_UNREAD)
			result = git_run_hold(run, area, item, "it cannot be read");
	}
	return result;
}

static int hold_rest(struct git_run *run, struct git_area *area, const char *reason)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < area->count; i++)
		if (!area->items[i].is_done && area->items[i].class != GIT_LOCK)
			result = reason ? git_run_hold(run, area, &area->items[i], reason) :
					  hold_other(run, area, &area->items[i]);
	return result;
}

static int apply_area(struct git_run *run, struct git_area *area)
{
	struct git_ref_changes *changes = NULL;
	int result = hold_strange(run, area);

	if (result == 0)
		result = git_run_objects(run, area);
	if (result == 0)
		result = apply_class(run, area, GIT_SHALLOW, apply_shallow);
	if (result == 0)
		result = git_run_refs(run, area, &changes);
	if (result == 0)
		result = git_run_head(run, area);
	if (result == 0)
		result = git_run_worktrees_gone(run, area);
	if (result == 0)
		result = git_run_gone_refs(run, area, changes);
	if (result == 0)
		result = git_run_logs(run, area);
	for (size_t i = 0; result == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
		result = apply_class(run, area, steps[i].class, steps[i].apply);
	if (result == 0)
		result = git_run_sequences(run, area);
	return result < 0 ? result : hold_rest(run, area, NULL);
}

/* git takes a directory for a repository only with these. */
static int make_frame(struct git_area *area)
{
	static const char *const names[] = { "objects/info", "objects/pack", "refs/heads",
					     "refs/tags" };
	int result = 0;

	for (size_t i = 0; result >= 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		int CLEANUP_FD fd = git_file_directory(&area->target, names[i]);

		result = fd;
	}
	return result < 0 ? result : 0;
}

/* "worktrees/x" for "worktrees/x/", made at its place; -EEXIST where the host was quicker. */
static int move_in(struct git_run *run, struct git_area *area, const char *aside)
{
	struct git_target target = { .fd = run->cover->fd, .journal_fd = -1 };
	char *path = arena_copy_bytes(run->arena, area->prefix, strlen(area->prefix) - 1);
	char *slash = path ? strrchr(path, '/') : NULL;
	int CLEANUP_FD parent = -1;

	if (!slash)
		return -ENOMEM;
	*slash = '\0';
	parent = git_file_directory(&target, path);
	if (parent < 0)
		return parent;
	return git_file_move(run->cover->fd, aside, parent, slash + 1);
}

/* A whole new git directory: none of the host's sees it before it is complete. */
static int apply_new(struct git_run *run, struct git_area *area)
{
	const char *fault = git_run_area_fault(run, area);
	const char *aside = NULL;
	int result;

	if (fault)
		return hold_rest(run, area, fault);
	area->fd = git_run_aside(run, "new", &aside);
	area->target = (struct git_target){ .fd = area->fd, .journal_fd = -1, .prefix = "" };
	result = area->fd < 0 ? area->fd : 0;
	if (result == 0 && !area->is_worktree)
		result = make_frame(area);
	if (result == 0)
		result = apply_area(run, area);
	if (result == 0)
		result = move_in(run, area, aside);
	if (result < 0 && aside)
		directory_remove_tree(run->cover->fd, aside);
	if (result == -EEXIST || result == -ENOTEMPTY)
		return git_run_hold_value(run, area,
					  (struct git_held){ .path = "",
							     .kind = GIT_HELD_OTHER,
							     .reason = git_run_reason(-EEXIST) });
	if (result < 0)
		return run->error->code ? result :
					  error_errno(run->error, result, "%s/%s", run->cover->path,
						      area->prefix);
	area->is_new = false;
	return git_run_applied(run, area, "", CHANGE_CREATED);
}

static int apply_one(struct git_run *run, struct git_area *area)
{
	if (area->fault)
		return hold_rest(run, area, area->fault);
	return area->is_new ? apply_new(run, area) : apply_area(run, area);
}

static bool host_has(const struct git_run *run, const char *prefix)
{
	const char *head = arena_format(run->arena, "%sHEAD", prefix);
	struct stat status;

	return head && git_file_status(run->cover->fd, head, &status) == 0;
}

static bool task_has(const struct git_run *run, const char *prefix)
{
	const char *head = arena_format(run->arena, "%sHEAD", prefix);
	const struct git_upper_entry *entry = head ? git_upper_find(&run->upper, head) : NULL;

	return entry && entry->kind == GIT_UPPER_FILE;
}

static struct git_area *find_area(const struct git_run *run, const char *prefix)
{
	/* most often the last one */
	for (size_t i = run->area_count; i > 0; i--)
		if (strcmp(run->areas[i - 1]->prefix, prefix) == 0)
			return run->areas[i - 1];
	return NULL;
}

/* NULL: no memory. */
static struct git_area *add_area(struct git_run *run, const char *prefix, bool is_worktree)
{
	struct git_area **areas =
		arena_push(run->arena, run->areas, run->area_count, sizeof(struct git_area *));
	struct git_area *area = arena_allocate(run->arena, sizeof(*area));

	if (!areas || !area)
		return NULL;
	run->areas = areas;
	areas[run->area_count++] = area;
	*area = (struct git_area){ .prefix = prefix, .is_worktree = is_worktree, .fd = -1 };
	area->is_new = *prefix && !host_has(run, prefix);
	if (!area->is_new)
		area->fd = fd_open_beneath(run->cover->fd, *prefix ? prefix : ".",
					   O_PATH | O_DIRECTORY | O_NOFOLLOW);
	if (!area->is_new && area->fd < 0)
		area->fault = "the host's directory cannot be opened";
	area->target = (struct git_target){ .fd = area->fd,
					    .journal_fd = run->journal_fd,
					    .number = run->number,
					    .prefix = prefix };
	return area;
}

/*
 * The git directory below `area` that a path lies in: worktrees/X/..., or modules/... up to the
 * first directory with a HEAD (names of modules have slashes). NULL: it is the area's own.
 */
static int inner_area(struct git_run *run, struct git_area *area, const char *path,
		      struct git_area **ret_area)
{
	bool is_worktree = strncmp(path, "worktrees/", 10) == 0;
	const char *slash = strchr(path, '/');

	*ret_area = NULL;
	if (!is_worktree && strncmp(path, "modules/", 8) != 0)
		return 0;
	while ((slash = strchr(slash + 1, '/'))) {
		char *prefix = arena_format(run->arena, "%s%.*s", area->prefix,
					    (int)(slash + 1 - path), path);
		struct git_area *found = prefix ? find_area(run, prefix) : NULL;

		if (!prefix)
			return -ENOMEM;
		if (!found && (is_worktree || host_has(run, prefix) || task_has(run, prefix))) {
			if (run->area_count == GIT_SNAPSHOT_LIMIT_AREAS)
				return 0;
			found = add_area(run, prefix, is_worktree);
			if (!found)
				return -ENOMEM;
		}
		if (found || is_worktree) {
			*ret_area = found;
			return 0;
		}
	}
	return 0;
}

/* A directory that is gone or replaced has the class of what lay in it. */
static enum git_class class_of(const struct git_area *area, const char *path,
			       enum git_upper_kind kind)
{
	static const struct {
		const char *name;
		enum git_class class;
	} rows[] = {
		{ "refs", GIT_REF },
		{ "logs", GIT_LOG },
		{ "objects", GIT_OBJECT },
		{ "rebase-merge", GIT_SEQUENCE },
		{ "rebase-apply", GIT_SEQUENCE },
		{ "sequencer", GIT_SEQUENCE },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t length = strlen(rows[i].name);

		if ((kind == GIT_UPPER_GONE || kind == GIT_UPPER_OPAQUE) &&
		    strncmp(path, rows[i].name, length) == 0 &&
		    (path[length] == '/' || !path[length]))
			return rows[i].class;
	}
	return git_name_class(path, !area->is_worktree);
}

static int place_entry(struct git_run *run, const struct git_upper_entry *entry,
		       struct git_area **last)
{
	struct git_area *area = run->areas[0], *inner = NULL;
	size_t length = strlen((*last)->prefix);
	struct git_piece *items;
	int result = 0;

	if (length && strncmp(entry->path, (*last)->prefix, length) == 0)
		area = *last;
	do {
		area = inner ? inner : area;
		result = inner_area(run, area, entry->path + strlen(area->prefix), &inner);
	} while (result == 0 && inner);
	if (result < 0)
		return result;
	*last = area;
	items = arena_push(run->arena, area->items, area->count, sizeof(*items));
	if (!items)
		return -ENOMEM;
	area->items = items;
	items[area->count] =
		(struct git_piece){ .entry = entry, .path = entry->path + strlen(area->prefix) };
	items[area->count].class = class_of(area, items[area->count].path, entry->kind);
	/* of an unfinished operation all is looked at together */
	items[area->count].is_done = items[area->count].class != GIT_SEQUENCE &&
				     items[area->count].class != GIT_LOCK &&
				     git_snapshot_saw(run->before, entry);
	area->count++;
	return 0;
}

static int place_all(struct git_run *run)
{
	struct git_area *last = add_area(run, "", run->cover->is_worktree);
	int result = last ? 0 : -ENOMEM;

	for (size_t i = 0; result == 0 && i < run->upper.count; i++)
		result = place_entry(run, &run->upper.entries[i], &last);
	return result < 0 ? error_errno(run->error, result, "%s", run->cover->path) : 0;
}

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
				result = add_outcome(
					run, (struct git_outcome){
						     .kind = GIT_OUTCOME_UNFINISHED,
						     .path = item->entry->path,
						     .reason = "a git ended in the middle of it" });
		}
	if (result == 0 && *ret_is_deferred) {
		run->result->is_deferred = run->result->deferred[run->number] = true;
		result = add_outcome(
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
	return add_outcome(run, outcome);
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
		result = place_all(run);
	if (result == 0)
		result = take_locks(run, &is_deferred);
	for (size_t i = 0; result == 0 && !is_deferred && i < run->area_count; i++) {
		if (run->before->fault)
			run->areas[i]->fault = run->before->fault;
		result = apply_one(run, run->areas[i]);
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
