/*
 * The options that say what a box shows and allows: one table (request.def), shared by run, plan,
 * explain and verify. A verb's own table begins with its rows and continues with ids from
 * OPTION_OWN on.
 */
#pragma once

#include "broker/effective.h"
#include "cli/options.h"
#include "policy/action.h"

struct arena;
struct error;
struct event_sink;
struct recorder;

enum request_option {
#define REQUEST_OPTION(id, name, argument, many, widens, help) OPTION_##id,
#include "cli/request.def"
#undef REQUEST_OPTION
	OPTION_OWN, /* first id of a verb's own options */
};

/* A row of a verb's table, from a row of request.def. */
#define REQUEST_ROW(id, name, argument, many, widens, help) \
	{ name, argument, help, many, widens, OPTION_##id },

/* Takes one of those options. */
int request_take(struct request *request, struct arena *arena, const struct option *option,
		 const char *value, struct error *error);

/* The action for the effective policy; argv as given behind the options. */
int request_action(const struct request *request, const struct effective *effective,
		   struct arena *arena, char **argv, int argc, struct action *ret_action,
		   struct error *error);

/*
 * Where the task's events go: to the recorder, which has begun its chain then, or nowhere
 * (--no-trace, or by a policy). The recorder must be RECORDER_NONE before, and is the caller's to
 * close.
 */
int request_record(const struct effective *effective, struct arena *arena,
		   struct recorder *recorder, struct event_sink **ret_sink, struct error *error);

/* On standard error: what an earlier task's git did, and why it is not on the host. */
void request_tell_unlanded(const struct effective *effective);

/*
 * On standard error: that the workspace proposes a policy which is not adopted, and that it was not
 * looked through for secrets to its end.
 */
void request_tell_more(const struct effective *effective);

/* After the result was delivered: has the ledger's head signed where it is due; tells a failure. */
void request_sign(const struct effective *effective, const struct recorder *recorder);
