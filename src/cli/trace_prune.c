/*
 * `bawn trace prune`: removes the records of tasks that have ended, which the ledger still proves.
 */
#include "cli/trace_verbs.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/quantity.h"
#include "broker/holder.h"
#include "cli/confirm.h"
#include "cli/trace_place.h"
#include "trace/retain.h"
#include "trace/when.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	OPTION_OLDER_THAN,
	OPTION_KEEP_SIZE,
	OPTION_REASON,
	OPTION_DRY_RUN,
	OPTION_YES,
	OPTION_STATE_DIR,
};

static const struct option options[] = {
	{ "--older-than", "DURATION", "tasks that ended longer ago than this: 12h, 30d", false,
	  false, OPTION_OLDER_THAN },
	{ "--keep-size", "SIZE",
	  "the oldest tasks, until what is left takes no more than this: 500M, 2G", false, false,
	  OPTION_KEEP_SIZE },
	{ "--reason", "TEXT", "why, for the ledger; default: what was asked for", false, false,
	  OPTION_REASON },
	{ "--dry-run", NULL, "say what would be removed, and remove nothing", false, false,
	  OPTION_DRY_RUN },
	{ "--yes", NULL, "do not ask", false, false, OPTION_YES },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct prune {
	const char *state_path, *reason, *older_text, *size_text;
	uint64_t older_ns, keep_bytes, now_ns;
	bool dry_run, yes;
	struct trace_place place;
	struct retain_task *tasks; /* in the place's arena */
	uint64_t *sizes;
	size_t count;
	uint64_t bytes;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct prune *prune = context;

	switch (option->id) {
	case OPTION_OLDER_THAN:
		prune->older_text = value;
		if (quantity_duration(value, &prune->older_ns) < 0)
			return error_set(error, EINVAL,
					 "option --older-than %.40s: not a duration; a number with "
					 "s, m, h or d, as in 30d",
					 value);
		return 0;
	case OPTION_KEEP_SIZE:
		prune->size_text = value;
		if (quantity_size(value, &prune->keep_bytes) < 0)
			return error_set(error, EINVAL,
					 "option --keep-size %.40s: not a size; a number of bytes, "
					 "or with K, M, G or T, as in 2G",
					 value);
		return 0;
	case OPTION_REASON:
		if (!value[0])
			return error_set(error, EINVAL, "option --reason has an empty value");
		prune->reason = value;
		return 0;
	case OPTION_DRY_RUN:
		prune->dry_run = true;
		return 0;
	case OPTION_YES:
		prune->yes = true;
		return 0;
	default:
		return trace_state_option(option, value, &prune->state_path, error);
	}
}

static int parse(int argc, char **argv, struct prune *prune)
{
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_trace_prune, argc, argv, take, prune, &error);
	bool by_rule = prune->older_text || prune->size_text;

	if (first >= 0 && by_rule == (first < argc))
		first = error_set(&error, EINVAL,
				  "bawn trace prune takes tasks, or --older-than and --keep-size");
	if (first < 0)
		complain(error.message);
	return first;
}

static bool is_live(const struct prune *prune, const char *id)
{
	return holder_exists(prune->place.state.tasks_fd, id) ||
	       retain_is_live(&prune->place.store, id);
}

/* What is over and done with: its end is on record, and nobody writes to it. */
static bool may_go(const struct prune *prune, const struct catalogue_task *task)
{
	bool is_over = task->state == CATALOGUE_ENDED || task->state == CATALOGUE_LOST ||
		       task->state == CATALOGUE_REMOVED;

	return is_over && retain_exists(&prune->place.store, task->id) && !is_live(prune, task->id);
}

static int add(struct prune *prune, const struct catalogue_task *task)
{
	struct arena *arena = &prune->place.arena;
	struct retain_task *tasks = arena_push(arena, prune->tasks, prune->count, sizeof(*tasks));
	uint64_t *sizes = arena_push(arena, prune->sizes, prune->count, sizeof(*sizes));
	struct retain_task *added;

	if (!tasks || !sizes)
		return -ENOMEM;
	prune->tasks = tasks;
	prune->sizes = sizes;
	added = &tasks[prune->count];
	*added = (struct retain_task){ .records = task->records,
				       .is_recorded = task->state == CATALOGUE_REMOVED };
	memcpy(added->id, task->id, sizeof(added->id));
	memcpy(added->last, task->last, sizeof(added->last));
	sizes[prune->count] = retain_size(&prune->place.store, task->id);
	prune->bytes += sizes[prune->count++];
	return 0;
}

static const char *why_not(const struct prune *prune, const struct catalogue_task *task)
{
	switch (task->state) {
	case CATALOGUE_REMOVED:
		return "is removed already";
	case CATALOGUE_MISSING:
		return "is missing: there is nothing to remove; `bawn trace verify` tells more";
	case CATALOGUE_FOREIGN:
		return "is not in this ledger, which therefore cannot say that it was removed";
	default:
		return is_live(prune, task->id) ?
			       "lives; `bawn stop` ends it" :
			       "has no end on record yet; the next start of bawn writes it";
	}
}

/* The tasks that were named. 0 or the exit status. */
static int choose_named(struct prune *prune, const struct catalogue *catalogue, char **words)
{
	int status = 0;

	for (; *words; words++) {
		struct trace_found found;
		const struct catalogue_task *task;
		bool is_twice = false;

		status = trace_place_find(&prune->place, *words, false, &found);
		if (status)
			return status;
		task = catalogue_find(catalogue, found.task);
		if (!task || !may_go(prune, task)) {
			trace_complain("task %s %s", found.task,
				       task ? why_not(prune, task) : "has just begun");
			return 1;
		}
		for (size_t i = 0; i < prune->count; i++)
			is_twice |= strcmp(prune->tasks[i].id, found.task) == 0;
		if (!is_twice && add(prune, task) < 0)
			return 125;
	}
	return 0;
}

/* By age and by size, and what an earlier removal did not finish. */
static int choose_by_rule(struct prune *prune, const struct catalogue *catalogue)
{
	uint64_t left = 0;

	for (size_t i = 0; prune->size_text && i < catalogue->count; i++)
		left += retain_size(&prune->place.store, catalogue->tasks[i].id);
	/* oldest first */
	for (size_t i = 0; i < catalogue->count; i++) {
		const struct catalogue_task *task = &catalogue->tasks[i];
		uint64_t ended = task->ended_ns ? task->ended_ns : task->started_ns;
		bool is_old = prune->older_text && ended + prune->older_ns < prune->now_ns;
		bool is_much = prune->size_text && left > prune->keep_bytes;

		if (!(is_old || is_much || task->state == CATALOGUE_REMOVED) ||
		    !may_go(prune, task))
			continue;
		if (add(prune, task) < 0)
			return 125;
		if (prune->size_text)
			left -= prune->sizes[prune->count - 1] < left ?
					prune->sizes[prune->count - 1] :
					left;
	}
	return 0;
}

static void list(const struct prune *prune)
{
	char size[QUANTITY_TEXT_BYTES];

	for (size_t i = 0; i < prune->count; i++) {
		quantity_tell_size(size, prune->sizes[i]);
		printf("%s  %s%s\n", prune->tasks[i].id, size,
		       prune->tasks[i].is_recorded ? "  (the rest of one that was removed)" : "");
	}
	(void)fflush(stdout);
}

/* What was asked for, in the ledger's words. */
static const char *reason_of(const struct prune *prune, char text[static 128])
{
	if (prune->reason)
		return prune->reason;
	if (!prune->older_text && !prune->size_text)
		return "asked for by name";
	(void)snprintf(text, 128, "%s%.20s%s%s%.20s", prune->older_text ? "older than " : "",
		       prune->older_text ? prune->older_text : "",
		       prune->older_text && prune->size_text ? ", " : "",
		       prune->size_text ? "more than " : "",
		       prune->size_text ? prune->size_text : "");
	return text;
}

static int remove_all(struct prune *prune)
{
	struct error error = ERROR_NONE;
	struct chain_origin origin;
	size_t removed = 0, policies = 0;
	char text[128], size[QUANTITY_TEXT_BYTES];
	int result;

	chain_origin_gather(&prune->place.arena, &origin);
	result = retain_remove(&prune->place.store, &origin, prune->tasks, prune->count,
			       reason_of(prune, text), &removed, &error);
	if (result == 0)
		result = retain_policies(&prune->place.store, &policies, &error);
	quantity_tell_size(size, prune->bytes);
	if (result < 0)
		complain(error.message);
	else
		printf("%zu task%s removed, %s\n", removed, removed == 1 ? "" : "s", size);
	(void)fflush(stdout);
	return result < 0 ? 125 : 0;
}

static int prune_tasks(struct prune *prune, char **words)
{
	struct catalogue CLEANUP_CATALOGUE catalogue = { 0 };
	char question[128], size[QUANTITY_TEXT_BYTES];
	int status = trace_place_catalogue(&prune->place, &catalogue);

	if (status == 0)
		status = *words ? choose_named(prune, &catalogue, words) :
				  choose_by_rule(prune, &catalogue);
	if (status)
		return status;
	if (!prune->count || prune->dry_run || !prune->yes)
		list(prune);
	if (prune->dry_run)
		return 0;
	if (!prune->count)
		return remove_all(prune); /* policies that no task has */
	quantity_tell_size(size, prune->bytes);
	(void)snprintf(question, sizeof(question), "Remove the trace of %s%zu task%s, %s?",
		       prune->count == 1 ? "this " : "these ", prune->count,
		       prune->count == 1 ? "" : "s", size);
	return confirm(question, prune->yes, &status) ? remove_all(prune) : status;
}

static int prune_verb(int argc, char **argv)
{
	struct prune prune = { .now_ns = clock_wall_ns() };
	int first = parse(argc, argv, &prune), status;

	if (first < 0)
		return 2;
	status = trace_place_open(&prune.place, prune.state_path);
	if (status)
		return status;
	if (prune.place.is_empty) {
		if (first < argc)
			complain("there is no trace yet");
		status = first < argc;
	} else {
		status = prune_tasks(&prune, argv + first);
	}
	trace_place_close(&prune.place);
	return status;
}

const struct verb verb_trace_prune = {
	.name = "trace prune",
	.synopsis = "TASK... | --older-than DURATION | --keep-size SIZE",
	.summary = "Remove the records of tasks that have ended; the ledger still proves them.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status =
		"0 done; 1 no such task, it cannot go, or the answer was no; 2 wrong use, or "
		"nobody to ask; 125 bawn itself failed",
	.run = prune_verb,
};
