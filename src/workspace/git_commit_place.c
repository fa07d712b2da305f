/* The areas of a cover (its own, of worktrees, of modules), and in which of them a change lies. */
#include "workspace/git_commit_internal.h"

#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

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

int git_run_place(struct git_run *run)
{
	struct git_area *last = add_area(run, "", run->cover->is_worktree);
	int result = last ? 0 : -ENOMEM;

	for (size_t i = 0; result == 0 && i < run->upper.count; i++)
		result = place_entry(run, &run->upper.entries[i], &last);
	return result < 0 ? error_errno(run->error, result, "%s", run->cover->path) : 0;
}
