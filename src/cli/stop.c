/*
 * The verbs that take a task over from another terminal: freeze, thaw, stop, kill.
 */
#include "cli/takeover.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/quantity.h"
#include "broker/client.h"
#include "broker/ending.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Who starts tasks while all are being stopped is not chased for ever. */
#define ROUNDS 5

enum { OPTION_ALL, OPTION_GRACE, OPTION_STATE_DIR };

#define STATE_DIR_ROW                                                                            \
	{                                                                                        \
		"--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", \
			false, false, OPTION_STATE_DIR                                           \
	}

static const struct option all_options[] = {
	{ "--all", NULL, "every task of this user", false, false, OPTION_ALL },
	STATE_DIR_ROW,
};

static const struct option stop_options[] = {
	{ "--all", NULL, "every task of this user, also where a supervisor does not answer", false,
	  false, OPTION_ALL },
	{ "--grace", "DURATION", "time between the request to end and the kill: 500ms, 10s", false,
	  false, OPTION_GRACE },
	STATE_DIR_ROW,
};

struct takeover {
	struct arena *arena;
	const char *state_path;
	bool is_all;
	uint64_t grace_ns;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct takeover *takeover = context;

	switch (option->id) {
	case OPTION_ALL:
		takeover->is_all = true;
		return 0;
	case OPTION_GRACE:
		if (quantity_duration(value, &takeover->grace_ns) < 0)
			return error_set(error, EINVAL,
					 "option --grace %.40s: not a duration; a number with ms, "
					 "s, m, h or d, as in 10s",
					 value);
		return 0;
	default:
		if (!value[0])
			return error_set(error, EINVAL, "option %s has an empty value",
					 option->name);
		takeover->state_path = value;
		return 0;
	}
}

static int parse(const struct verb *verb, int argc, char **argv, struct takeover *takeover)
{
	struct error error = ERROR_NONE;
	int first = options_parse(verb, argc, argv, take, takeover, &error);

	if (first >= 0 && takeover->is_all != (first == argc))
		first = error_set(&error, EINVAL, "bawn %s takes tasks, or --all", verb->name);
	if (first < 0)
		complain(error.message);
	return first;
}

/* The tasks that were named, or all there are. Returns 0 or the exit status. */
static int find(const struct takeover *takeover, const struct client *client, char **words,
		const char ***ret_ids, size_t *ret_count)
{
	struct error error = ERROR_NONE;
	const char **ids = NULL;
	size_t count = 0;
	int result = 0;

	if (takeover->is_all)
		result = client_tasks(client, takeover->arena, &ids, &count, &error);
	for (; result == 0 && !takeover->is_all && *words; words++) {
		const char **grown = arena_push(takeover->arena, ids, count, sizeof(*ids));

		if (!grown)
			return 125;
		ids = grown;
		result = client_find(client, *words, takeover->arena, &ids[count], &error);
		count += result == 0;
	}
	if (result < 0) {
		complain(error.message);
		return result == -ENOENT || result == -EEXIST ? 1 : 125;
	}
	*ret_ids = ids;
	*ret_count = count;
	return 0;
}

static int open_client(const struct takeover *takeover, struct client *client)
{
	struct error error = ERROR_NONE;
	int result = client_open(takeover->state_path, takeover->arena, client, &error);

	if (result < 0)
		complain(error.message);
	return result == 0 ? 0 : result == -EPERM ? 1 : 125;
}

static int end_round(const struct takeover *takeover, const struct client *client, char **words,
		     enum ending_how how, size_t *ret_count)
{
	struct ending_options options = { .how = how,
					  .grace_ns = takeover->grace_ns,
					  .is_forced = takeover->is_all };
	const char **ids;
	int status = find(takeover, client, words, &ids, ret_count);

	return status ? status : takeover_end(client, ids, *ret_count, &options);
}

/* All: also those that were started meanwhile. */
static int end_tasks(const struct takeover *takeover, char **words, enum ending_how how)
{
	struct client CLEANUP_CLIENT client = CLIENT_NONE;
	int status = open_client(takeover, &client);
	size_t count = 1;

	for (int round = 0; status == 0 && count; round++) {
		if (round == ROUNDS) {
			complain("tasks are started faster than they end; end what starts them");
			return 1;
		}
		status = end_round(takeover, &client, words, how, &count);
		if (!takeover->is_all)
			break;
	}
	return status;
}

static int end_verb(const struct verb *verb, int argc, char **argv, enum ending_how how)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct takeover takeover = { .arena = &arena };
	int first = parse(verb, argc, argv, &takeover);

	return first < 0 ? 2 : end_tasks(&takeover, argv + first, how);
}

static int stop_verb(int argc, char **argv)
{
	return end_verb(&verb_stop, argc, argv, ENDING_STOP);
}

static int kill_verb(int argc, char **argv)
{
	return end_verb(&verb_kill, argc, argv, ENDING_KILL);
}

static int ask(const struct client *client, const char *id, enum control_type type)
{
	struct error error = ERROR_NONE;
	int CLEANUP_FD fd = -1;
	uint64_t now = clock_monotonic_ns();
	int result = client_connect_patiently(client, id, now + CLIENT_YOUNG_NS, &fd, NULL, &error);

	if (result == 0)
		result = client_ask(fd, type, NULL, 0, clock_monotonic_ns() + CLIENT_ANSWER_NS,
				    &error);
	if (result < 0) {
		char text[ERROR_MESSAGE_BYTES + 64];

		(void)snprintf(text, sizeof(text), "%s: %s", id, error.message);
		complain(text);
		return 1;
	}
	printf("%s %s\n", id, type == CONTROL_FREEZE ? "is frozen" : "goes on");
	return 0;
}

static int freeze_tasks(const struct verb *verb, int argc, char **argv, enum control_type type)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct client CLEANUP_CLIENT client = CLIENT_NONE;
	struct takeover takeover = { .arena = &arena };
	int first = parse(verb, argc, argv, &takeover);
	int status = first < 0 ? 2 : open_client(&takeover, &client);
	const char **ids;
	size_t count;

	if (status == 0)
		status = find(&takeover, &client, argv + first, &ids, &count);
	if (status)
		return status;
	for (size_t i = 0; i < count; i++)
		status |= ask(&client, ids[i], type);
	(void)fflush(stdout);
	return status;
}

static int freeze_verb(int argc, char **argv)
{
	return freeze_tasks(&verb_freeze, argc, argv, CONTROL_FREEZE);
}

static int thaw_verb(int argc, char **argv)
{
	return freeze_tasks(&verb_thaw, argc, argv, CONTROL_THAW);
}

#define VERB(word, line, table, function)                                                       \
	{                                                                                       \
		.name = word, .synopsis = "TASK... | --all", .summary = line, .options = table, \
		.option_count = sizeof(table) / sizeof((table)[0]),                             \
		.exit_status = "0 done; 1 no such task, or it could not be done; 2 wrong use; " \
			       "125 bawn itself failed",                                        \
		.run = function,                                                                \
	}

const struct verb verb_freeze = VERB("freeze", "Stop everything in a task where it is, until thaw.",
				     all_options, freeze_verb);
const struct verb verb_thaw = VERB("thaw", "Let a frozen task go on.", all_options, thaw_verb);
const struct verb verb_stop =
	VERB("stop", "End a task: SIGTERM to everything in it, and after a grace the kill.",
	     stop_options, stop_verb);
const struct verb verb_kill =
	VERB("kill", "Kill a task at once, also where its supervisor does not answer.", all_options,
	     kill_verb);
