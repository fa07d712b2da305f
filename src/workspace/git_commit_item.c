/* An item of an area: its content, what was there at the start, and whether the host changed it. */
#include "workspace/git_commit_internal.h"

#include <stdlib.h>
#include <string.h>

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
