#include "cli/decide.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (64u * 1024)

/* "" where it is no file, is larger than there is room for, or cannot be read. */
static void digest_file(struct decide_digests *digests, int root_fd, const char *path,
			const struct stage_side *side, char ret_hash[static SHA256_HEX_BYTES])
{
	unsigned char bytes[PIECE_BYTES], digest[SHA256_BYTES];
	int CLEANUP_FD fd = -1;
	struct sha256 hash;
	struct stat status;
	uint64_t read_bytes = 0;
	ssize_t length;

	ret_hash[0] = '\0';
	if (root_fd < 0 || side->type != STAGE_FILE || side->size > digests->left)
		return;
	fd = fd_open_beneath(root_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return;
	sha256_begin(&hash);
	while ((length = read(fd, bytes, sizeof(bytes))) > 0) {
		if ((uint64_t)length > digests->left)
			return;
		digests->left -= (uint64_t)length;
		read_bytes += (uint64_t)length;
		sha256_update(&hash, bytes, (size_t)length);
	}
	if (length < 0 || read_bytes != side->size)
		return;
	sha256_end(&hash, digest);
	sha256_hex(digest, ret_hash);
}

void decide_digest(struct decide_digests *digests, const char *path,
		   const struct stage_side *before, const struct stage_side *after,
		   struct decision_item *item)
{
	digest_file(digests, digests->kept->workspace_fd, path, before, item->before);
	digest_file(digests, digests->kept->upper_fd, path, after, item->after);
}

static const char *host_path(const struct stage_kept *kept, struct arena *arena, const char *path)
{
	return arena_format(arena, "%s/%s", kept->about.workspace, path);
}

/* ---- apply ---- */

static int add_all(const struct stage_kept *kept, const struct stage_applied *applied,
		   const struct decision_list *plan, struct arena *arena,
		   struct decision_list *list)
{
	struct decide_digests digests = { .kept = kept, .left = DECIDE_LIMIT_DIGEST_BYTES };
	int result = 0;

	*list = (struct decision_list){ 0 };
	for (size_t i = 0; i < applied->count && result == 0; i++) {
		const struct stage_item *from = &applied->items[i];
		struct decision_item item = { .kind = stage_kind_name(from->kind),
					      .outcome = stage_outcome_name(from->outcome),
					      .reason = from->reason };

		if (from->outcome == STAGE_WAITING)
			continue;
		if (list->count < DECISION_LIMIT_ITEMS) {
			item.path = host_path(kept, arena, from->path);
			if (!item.path)
				return -ENOMEM;
			if (!plan) {
				decide_digest(&digests, from->path, &from->before, &from->after,
					      &item);
			} else if (list->count < plan->count) {
				memcpy(item.before, plan->items[list->count].before,
				       sizeof(item.before));
				memcpy(item.after, plan->items[list->count].after,
				       sizeof(item.after));
			}
		}
		result = decision_list_add(list, arena, &item);
	}
	return result;
}

int decide_plan(const struct stage_kept *kept, const struct stage_applied *applied,
		struct arena *arena, struct decision_list *ret_list)
{
	return add_all(kept, applied, NULL, arena, ret_list);
}

int decide_done(const struct stage_kept *kept, const struct stage_applied *applied,
		const struct decision_list *plan, struct arena *arena,
		struct decision_list *ret_list)
{
	return add_all(kept, applied, plan, arena, ret_list);
}

/* ---- discard ---- */

struct dropping {
	const struct stage_kept *kept;
	struct decide_digests digests;
	struct arena *arena;
	struct decision_list *list;
};

static int take_dropped(void *context, const struct stage_change *change)
{
	struct dropping *dropping = context;
	struct decision_item item = { .kind = stage_kind_name(change->kind), .outcome = "ready" };

	if (dropping->list->count < DECISION_LIMIT_ITEMS) {
		item.path = host_path(dropping->kept, dropping->arena, change->path);
		if (!item.path)
			return -ENOMEM;
		decide_digest(&dropping->digests, change->path, &change->before, &change->after,
			      &item);
	}
	return decision_list_add(dropping->list, dropping->arena, &item);
}

int decide_drop(const struct stage_kept *kept, struct arena *arena, struct decision_list *ret_list)
{
	struct dropping dropping = { .kept = kept,
				     .digests = { kept, DECIDE_LIMIT_DIGEST_BYTES },
				     .arena = arena,
				     .list = ret_list };
	const struct stage stage = { .upper_fd = kept->upper_fd,
				     .lower_fd = kept->workspace_fd,
				     .is_names_only = true,
				     .hidden = kept->about.hidden,
				     .hidden_count = kept->about.hidden_count,
				     .take = take_dropped,
				     .context = &dropping };
	const struct decision_item git = { .path = kept->about.workspace,
					   .kind = "git",
					   .outcome = "ready" };
	struct error ignored = ERROR_NONE;
	int result = 0;

	*ret_list = (struct decision_list){ 0 };
	if (kept->upper_fd >= 0 && kept->workspace_fd >= 0)
		result = stage_walk(&stage, &ignored);
	if (result != -ENOMEM)
		result = 0;
	if (result == 0 && kept->fd >= 0 && kept->about.workspace && stage_store_has_git(kept->fd))
		result = decision_list_add(ret_list, arena, &git);
	return result;
}

void decide_outcome(struct decision_list *list, const char *outcome)
{
	for (size_t i = 0; i < list->count; i++)
		list->items[i].outcome = outcome;
	memset(list->tallies, 0, sizeof(list->tallies));
	if (list->total)
		list->tallies[0] = (struct decision_tally){ outcome, list->total };
}
