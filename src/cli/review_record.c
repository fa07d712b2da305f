#include "cli/review_record.h"

#include "base/arena.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>

static void digest(struct git_text text, char ret_hash[static SHA256_HEX_BYTES])
{
	if (text.bytes)
		sha256_text(text.bytes, text.length, ret_hash);
}

/* Of the whole contents alone: what was cut says nothing, and one value is no file. */
static void digest_git(int state_fd, const struct git_held *listed, struct arena *scratch,
		       struct decision_item *item)
{
	struct error ignored = ERROR_NONE;
	struct git_held held;

	arena_reset(scratch);
	if (listed->is_cut || listed->kind != GIT_HELD_FILE ||
	    git_held_read(state_fd, listed, scratch, &held, &ignored) < 0)
		return;
	digest(held.before, item->before);
	digest(held.after, item->after);
}

int review_record_add(struct decision_list *list, int state_fd, const struct git_held *git,
		      const struct git_held_tree *tree, struct arena *arena, struct arena *scratch)
{
	struct decision_item item = { .outcome = "ready" };
	const char *path = git ? git->path : tree->path ? tree->path : "(too long)";

	item.path = arena_format(arena, "%s/%s", git ? git->directory : tree->directory, path);
	if (!item.path)
		return -ENOMEM;
	item.kind = git ? git_held_kind_name(git->kind) : git_held_tree_kind_name(tree->kind);
	item.review = git ? git->id : tree->id;
	item.key = git ? git->key : NULL;
	if (git)
		digest_git(state_fd, git, scratch, &item);
	return decision_list_add(list, arena, &item);
}

void review_record_outcome(struct decision_list *list, size_t number, const char *outcome,
			   const char *reason)
{
	if (number < list->count) {
		list->items[number].outcome = outcome;
		list->items[number].reason = reason;
	}
	decision_list_tally(list, outcome);
}
