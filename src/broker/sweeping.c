#include "broker/sweeping.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "broker/effective.h"
#include "broker/state.h"
#include "broker/sweeping_file.h"
#include "workspace/sweep_name.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A start notes a few names, as a rule. */
#define ROUND_BYTES 4096

/* --- what is looked through, and what not */

/* An option named settings or a repository as such: they are the task's to write. */
static bool is_lifted(const struct view_path *row, const char *workspace)
{
	const struct sweep_name *name = NULL;

	if (path_is_under(row->target, workspace) && strcmp(row->target, workspace) != 0)
		name = sweep_name_of_path(row->target + strlen(workspace) + 1);
	return name && name->class <= SWEEP_SETTINGS;
}

/* Of a workspace for which a layer or a copy stands, only what is shown in it may be. */
static bool is_in_place(const struct policy *policy)
{
	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *row = &policy->view.paths[i];

		if (row->class == PATH_WRITE && strcmp(row->source, row->target) == 0 &&
		    path_is_under(row->target, policy->workspace) &&
		    !is_lifted(row, policy->workspace))
			return true;
	}
	return false;
}

/* No task writes there in place, or it is meant to. */
static bool is_kept_away(const struct view_path *row, const char *workspace)
{
	switch (row->class) {
	case PATH_GIT:
	case PATH_PROTECT:
	case PATH_HIDE:
		break;
	case PATH_READ:
		/* something in it may be written all the same */
		return false;
	case PATH_WRITE:
		if (!is_lifted(row, workspace))
			return false;
		break;
	default:
		return false;
	}
	return row->inode && path_is_under(row->target, workspace);
}

static int find_covered(struct sweeping *sweeping)
{
	const struct effective *effective = sweeping->effective;
	const struct view *view = &effective->policy.view;
	struct stat status;

	sweeping->covered =
		arena_array(&sweeping->arena, view->count + 1, sizeof(*sweeping->covered));
	for (size_t i = 0; sweeping->covered && i < view->count; i++)
		if (is_kept_away(&view->paths[i], effective->policy.workspace))
			sweeping->covered[sweeping->covered_count++] =
				(struct sweep_known){ .device = view->paths[i].device,
						      .inode = view->paths[i].inode };
	if (sweeping->covered && fstat(effective->state.fd, &status) == 0)
		sweeping->covered[sweeping->covered_count++] =
			(struct sweep_known){ .device = status.st_dev, .inode = status.st_ino };
	return sweeping->covered ? 0 : -ENOMEM;
}

static int find_gits(struct sweeping *sweeping)
{
	const struct git_found *git = &sweeping->effective->git;

	sweeping->gits = arena_array(&sweeping->arena, git->count + 1, sizeof(*sweeping->gits));
	for (size_t i = 0; sweeping->gits && i < git->count; i++)
		if (!git->items[i].below[0])
			sweeping->gits[sweeping->git_count++] = git->items[i].path;
	return sweeping->gits ? 0 : -ENOMEM;
}

bool sweeping_work(struct sweeping *sweeping)
{
	return (sweeping->is_begun && tree_work(&sweeping->tree)) ||
	       written_work(&sweeping->written);
}

static int prepare(struct sweeping *sweeping, const struct effective *effective)
{
	int result;

	sweeping->effective = effective;
	sweeping->arena.first_bytes = ROUND_BYTES;
	result = find_covered(sweeping);
	if (result == 0)
		sweep_sort(sweeping->covered, sweeping->covered_count);
	return result < 0 ? result : find_gits(sweeping);
}

/* --- from when on */

static int copy_links(struct arena *arena, const struct sweep_link *links, size_t count,
		      struct sweep_link **ret_links)
{
	struct sweep_link *copies = arena_array(arena, count + 1, sizeof(*copies));

	for (size_t i = 0; copies && i < count; i++) {
		copies[i].path = arena_copy(arena, links[i].path);
		if (!copies[i].path)
			return -ENOMEM;
	}
	*ret_links = copies;
	return copies ? 0 : -ENOMEM;
}

static void begin_tree(struct sweeping *sweeping, enum tree_beginning beginning)
{
	const struct effective *effective = sweeping->effective;

	tree_begin(
		&sweeping->tree,
		&(struct tree_place){ .root_fd = sweeping->sweep.root_fd,
				      .state_fd = effective->state.fd,
				      .workspace = effective->policy.workspace,
				      .kept = effective->policy.workspace,
				      .covered = sweeping->covered,
				      .covered_count = sweeping->covered_count,
				      .is_stamped = sweeping->sweep.clock == SWEEP_CLOCK_KERNEL },
		sweeping->sweep.begin_ns, beginning);
}

/* From now on, knowing what was seen; what waits is what waits now. */
static int begin_anew(struct sweeping *sweeping, const struct sweep_result *seen,
		      const struct sweep_link *links, size_t link_count, struct error *error)
{
	const struct sweep_start start = { .workspace = sweeping->effective->policy.workspace,
					   .seen = seen->seen,
					   .seen_count = seen->seen_count };
	struct sweep CLEANUP_SWEEP sweep = SWEEP_NONE;
	struct arena CLEANUP_ARENA round = { .first_bytes = ROUND_BYTES };
	struct sweep_link *copies;
	int result = copy_links(&round, links, link_count, &copies);

	if (result < 0)
		return error_errno(error, result, "the workspace");
	result = sweep_begin(&start, &round, &sweep, error);
	if (result < 0)
		return result;
	sweep_close(&sweeping->sweep);
	arena_free(&sweeping->round);
	sweeping->round = round;
	sweeping->sweep = sweep;
	sweeping->links = copies;
	sweeping->link_count = link_count;
	sweeping->is_kept = false;
	sweeping->is_begun = true;
	sweep.root_fd = -1;
	round = (struct arena){ 0 };
	begin_tree(sweeping, TREE_BEGIN_BARE);
	return 0;
}

int sweeping_begin(struct sweeping *sweeping, const struct effective *effective,
		   struct error *error)
{
	struct sweep_result seen = { .seen = sweeping->sweep.known,
				     .seen_count = sweeping->sweep.known_count };
	bool is_idle = sweeping->is_idle;
	int result = 0;

	if ((!sweeping->is_writing || is_idle) && written_begin(&sweeping->written, effective) < 0)
		return error_errno(error, ENOMEM, "the list of changes");
	sweeping->is_writing = true;
	sweeping->is_idle = false;
	if (!is_in_place(&effective->policy))
		return 0;
	if (!sweeping->effective)
		result = prepare(sweeping, effective);
	if (result < 0)
		return error_errno(error, result, "the workspace");
	if (sweeping->is_begun && !(is_idle && sweeping->is_clean))
		return 0;
	result = begin_anew(sweeping, &seen, sweeping->links, sweeping->link_count, error);
	if (result == 0)
		begin_tree(sweeping, TREE_BEGIN_SURVEY);
	return result;
}

int sweeping_keep(struct sweeping *sweeping, int task_fd)
{
	const struct effective *effective = sweeping->effective;
	struct sweeping_kept kept;

	if (!sweeping->is_begun || sweeping->is_kept)
		return 0;
	sweeping->is_kept = true;
	kept = (struct sweeping_kept){ .task = effective->task,
				       .workspace = effective->policy.workspace,
				       .sweep = sweeping->sweep,
				       .covered = sweeping->covered,
				       .covered_count = sweeping->covered_count,
				       .absent = effective->git.absent,
				       .absent_count = effective->git.absent_count,
				       .gits = sweeping->gits,
				       .git_count = sweeping->git_count,
				       .links = sweeping->links,
				       .link_count = sweeping->link_count };
	sweeping_file_boot(kept.boot);
	return sweeping_file_write(task_fd, &kept);
}

/* --- looking */

static struct sweep_order order_of(const struct sweeping *sweeping)
{
	const struct effective *effective = sweeping->effective;

	return (struct sweep_order){ .sweep = &sweeping->sweep,
				     .workspace = effective->policy.workspace,
				     .task = effective->task,
				     .state_fd = effective->state.fd,
				     .covered = sweeping->covered,
				     .covered_count = sweeping->covered_count,
				     .absent = effective->git.absent,
				     .absent_count = effective->git.absent_count,
				     .gits = sweeping->gits,
				     .git_count = sweeping->git_count,
				     .host = &effective->host };
}

/* The change as it is told: why, and what became of it where that is not the usual. */
static struct change change_of(const struct sweep_found *found, struct arena *arena)
{
	struct change change = found->change;
	const char *restored = found->is_restored ? "; what was there before is there again" : "";

	if (found->fate == SWEEP_HELD)
		change.review = arena_copy(arena, found->id);
	if (found->fate == SWEEP_DISARMED)
		change.reason = arena_format(arena,
					     "%s; it cannot be kept (%s), and is called %s now%s",
					     found->reason, found->fault, found->now, restored);
	else if (found->fate == SWEEP_LEFT)
		change.reason = arena_format(arena, "%s; it cannot be taken out: %s", found->reason,
					     found->fault);
	else
		change.reason = arena_format(arena, "%s%s", found->reason, restored);
	return change;
}

static const char *fault_of(const struct sweep_result *found, const char *workspace,
			    struct arena *arena)
{
	if (found->unfinished)
		return arena_format(arena,
				    "the workspace %s was not looked through to its end (%s): what "
				    "programs outside of the box run or obey may lie there",
				    workspace, found->unfinished);
	if (found->left)
		return arena_format(arena,
				    "in the workspace %s lies what programs outside of the box run "
				    "or obey, and it cannot be taken out: look at it first",
				    workspace);
	return NULL;
}

static int add_found(const struct sweep_result *found, const char *workspace, struct arena *arena,
		     struct sweeping_list *list)
{
	struct change *all = arena_array(arena, list->count + found->count + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	if (list->count)
		memcpy(all, list->changes, list->count * sizeof(*all));
	for (size_t i = 0; i < found->count; i++)
		all[list->count + i] = change_of(&found->items[i], arena);
	list->changes = all;
	list->count += found->count;
	if (!list->fault)
		list->fault = fault_of(found, workspace, arena);
	return arena_failed(arena) ? -ENOMEM : 0;
}

/* What the task could not write there is another's work. */
static void drop_others(const struct view *view, struct tree_list *tree)
{
	size_t kept = 0;

	for (size_t i = 0; i < tree->count; i++) {
		const struct view_path *row = view_lookup(view, tree->changes[i].path);

		if (tree->changes[i].below || (row && row->class == PATH_WRITE))
			tree->changes[kept++] = tree->changes[i];
	}
	tree->count = kept;
}

static int look_elsewhere(struct sweeping *sweeping, enum landing_moment moment,
			  struct arena *arena, struct sweeping_list *list, struct error *error)
{
	int result = written_look(&sweeping->written, moment == LANDING_LAST, arena, &list->tree);

	return result < 0 ? error_errno(error, result, "what changed outside of the workspace") : 0;
}

int sweeping_look(struct sweeping *sweeping, enum landing_moment moment, struct arena *arena,
		  struct sweeping_list *list, struct error *error)
{
	struct sweep_order order;
	int64_t next_ns;
	int result;

	if (!sweeping->is_begun)
		return look_elsewhere(sweeping, moment, arena, list, error);
	sweeping->is_clean = false;
	order = order_of(sweeping);
	order.tree = &sweeping->tree;
	tree_stop(&sweeping->tree);
	/* the next look tells what changes from here on, while something of the task goes on */
	next_ns = moment == LANDING_NOT_NOW ? sweep_stamp_now_ns() : sweeping->tree.since_ns;
	sweeping->found = (struct sweep_result){ 0 };
	result = sweep_end(&order, arena, &sweeping->found, error);
	if (result < 0)
		return error_context(error, "what programs outside of the box run or obey may lie "
					    "there");
	list->looked = moment != LANDING_NOT_NOW;
	if (add_found(&sweeping->found, order.workspace, arena, list) < 0)
		return error_errno(error, ENOMEM, "what was found in the workspace");
	/* what changed is a list for people, and keeps nothing from being done */
	if (tree_tell(&sweeping->tree, arena, &list->tree) < 0)
		list->tree = (struct tree_list){ .cut = "there was no memory for it" };
	drop_others(&sweeping->effective->policy.view, &list->tree);
	sweeping->tree.since_ns = next_ns;
	if (moment == LANDING_LAST)
		tree_keep(&sweeping->tree);
	return look_elsewhere(sweeping, moment, arena, list, error);
}

/* Those of this look, and those of earlier ones. */
static int join_links(const struct sweeping *sweeping, struct arena *arena,
		      struct sweep_link **ret_links, size_t *ret_count)
{
	size_t count = sweeping->found.link_count, more = sweeping->link_count;
	struct sweep_link *links = arena_array(arena, count + more + 1, sizeof(*links));

	if (!links)
		return -ENOMEM;
	if (count)
		memcpy(links, sweeping->found.links, count * sizeof(*links));
	if (more)
		memcpy(links + count, sweeping->links, more * sizeof(*links));
	*ret_links = links;
	*ret_count = count + more;
	return 0;
}

int sweeping_settle(struct sweeping *sweeping, enum landing_moment moment, struct arena *arena,
		    struct sweeping_list *list, struct error *error)
{
	const struct sweep_order order = order_of(sweeping);
	struct sweep_result settled = { 0 };
	struct sweep_link *links;
	size_t count;
	int result = join_links(sweeping, arena, &links, &count);

	if (result < 0)
		return error_errno(error, result, "what was found in the workspace");
	if (count)
		result = sweep_settle(&order, links, count,
				      moment == LANDING_LAST ? SWEEP_SETTLED : SWEEP_WAITING, arena,
				      &settled, error);
	if (result == 0 && add_found(&settled, order.workspace, arena, list) < 0)
		result = error_errno(error, ENOMEM, "what was found in the workspace");
	/* else it is looked through from the same moment on */
	sweeping->is_clean = result == 0 && !list->fault;
	if (sweeping->is_clean && moment == LANDING_BETWEEN)
		result = begin_anew(sweeping, &sweeping->found, settled.links, settled.link_count,
				    error);
	if (result == 0 && moment == LANDING_LAST)
		sweeping->is_begun = false;
	return result;
}

void sweeping_forget(const struct sweeping *sweeping, int task_fd)
{
	if (sweeping->effective)
		(void)unlinkat(task_fd, SWEEPING_FILE, 0);
}

void sweeping_end(struct sweeping *sweeping)
{
	tree_end(&sweeping->tree);
	written_end(&sweeping->written);
	sweep_close(&sweeping->sweep);
	arena_free(&sweeping->round);
	arena_free(&sweeping->arena);
	*sweeping = SWEEPING_NONE;
}

/* --- going on with what a dead supervisor left */

/*
 * A task of an earlier boot ended with it: what has a later stamp is the caller's work, perhaps of
 * days. A clock that was set back meanwhile tells nothing.
 */
static void find_end(struct sweeping_kept *kept)
{
	char boot[SWEEPING_BOOT_BYTES];
	int64_t booted_ns = sweep_booted_ns();

	sweeping_file_boot(boot);
	if (boot[0] && kept->boot[0] && strcmp(boot, kept->boot) != 0 &&
	    booted_ns > kept->sweep.begin_ns)
		kept->sweep.until_ns = booted_ns;
}

/* Nobody else tells it: there is no result any more. */
static void tell_held(const char *task, uint64_t count, struct error *error)
{
	if (count && error->code)
		(void)error_context(error,
				    "%llu thing(s) that %s left in the workspace are held, "
				    "`bawn review` shows them",
				    (unsigned long long)count, task);
	else if (count)
		(void)error_set(
			error, ESTALE,
			"%llu thing(s) that %s, which was killed, or somebody else after it, "
			"made in the workspace are held; `bawn review` shows them",
			(unsigned long long)count, task);
}

/* Looks, lands, settles, as at the end of a task. */
static int take_over(const struct caller *host, const struct state *state, int task_fd,
		     struct sweeping_kept *kept, struct arena *arena, struct error *error)
{
	struct sweep_order order = { .sweep = &kept->sweep,
				     .workspace = kept->workspace,
				     .task = kept->task,
				     .state_fd = state->fd,
				     .covered = kept->covered,
				     .covered_count = kept->covered_count,
				     .absent = kept->absent,
				     .absent_count = kept->absent_count,
				     .gits = kept->gits,
				     .git_count = kept->git_count,
				     .host = host };
	struct sweep_result found, settled = { 0 };
	struct error second = ERROR_NONE;
	const char *fault;
	int result = sweep_end(&order, arena, &found, error), settling = 0;

	if (result < 0)
		return result;
	/* what is made from now on is the caller's */
	(void)unlinkat(task_fd, SWEEPING_FILE, 0);
	fault = fault_of(&found, kept->workspace, arena);
	result = landing_resume(state, kept->task, fault, error);
	for (int i = 0; i < 2 && settling == 0; i++) {
		settling = sweep_settle(&order, i ? kept->links : found.links,
					i ? kept->link_count : found.link_count, SWEEP_SETTLED,
					arena, &settled, &second);
		found.found += settled.found;
	}
	if (!error->code && (settling < 0 || fault))
		(void)error_set(error, EUCLEAN, "%s", settling < 0 ? second.message : fault);
	tell_held(kept->task, found.found, error);
	return result;
}

/* A power cut, or a full disk: what was to be looked through is not known. */
static int go_without(const struct state *state, const char *task, int task_fd, int code,
		      struct error *error)
{
	int result = landing_resume(state, task, true, error);

	(void)unlinkat(task_fd, SWEEPING_FILE, 0);
	if (!error->code)
		(void)error_errno(error, code,
				  "the workspace of %s, which was killed, was not looked through",
				  task);
	return result;
}

int sweeping_resume(const struct caller *host, const struct state *state, const char *task,
		    struct error *error)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct sweeping_kept kept = { 0 };
	int CLEANUP_FD task_fd =
		openat(state->tasks_fd, task, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int result = task_fd < 0 ? -ENOENT : sweeping_file_read(task_fd, &arena, &kept);

	/* killed before anything of it could run, or looked through by itself */
	if (result == -ENOENT || (result == 0 && strcmp(kept.task, task) != 0))
		return landing_resume(state, task, false, error);
	if (result < 0)
		return go_without(state, task, task_fd, result, error);
	find_end(&kept);
	kept.sweep.root_fd = sweep_open_root(kept.workspace);
	/* the workspace went meanwhile */
	if (kept.sweep.root_fd < 0)
		return landing_resume(state, task, true, error);
	result = take_over(host, state, task_fd, &kept, &arena, error);
	sweep_close(&kept.sweep);
	return result;
}
