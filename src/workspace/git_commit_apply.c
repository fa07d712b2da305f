/* An area is applied: class by class, in the order that git needs; what is new is made aside. */
#include "workspace/git_commit_internal.h"

#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXT_LIMIT_BYTES (1024u * 1024)

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
	char name[GIT_REF_LIMIT_BYTES];

	if (git_ref_is_list(text.bytes, text.length, strcmp(path, "FETCH_HEAD") == 0))
		return true;
	if (text.length <= begin + 1 || memcmp(text.bytes, symbolic, begin) != 0 ||
	    text.bytes[text.length - 1] != '\n' ||
	    !git_ref_is_name(text.bytes + begin, text.length - begin - 1))
		return false;
	(void)snprintf(name, sizeof(name), "%.*s", (int)(text.length - begin - 1),
		       text.bytes + begin);
	return git_value_is_ref(name);
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

int git_run_apply(struct git_run *run, struct git_area *area)
{
	if (area->fault)
		return hold_rest(run, area, area->fault);
	return area->is_new ? apply_new(run, area) : apply_area(run, area);
}
