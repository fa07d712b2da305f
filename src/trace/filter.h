/*
 * Which records a question is about: all that is given must hold of a record. Needles for
 * trace/scan.h first, so that most lines are never taken apart, then the record itself. Pure.
 *
 * Results repeat what records of denials, limits and changes have said already. So they are found
 * by rule, host, path or limit only where results are asked for (an exit status, their type).
 */
#pragma once

#include "base/json_tree.h"
#include "trace/scan.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct trace_line;

enum filter_exit {
	FILTER_EXIT_ANY,
	FILTER_EXIT_STATUS, /* that status */
	FILTER_EXIT_FAILED, /* another than 0 */
	FILTER_EXIT_KIND,   /* how it ended, as in the result: "timed-out" */
};

struct filter {
	uint64_t since_ns, until_ns; /* wall clock; from, and before */
	const char *task, *action;   /* ids, whole */
	const char *verdict;	     /* "deny" is said of denials, too */
	const char *rule;	     /* its id, or the flag or file it comes from */
	const char *host;	     /* of the network: exactly, or ".example.com" for all below */
	const char *path;	     /* of a denial, verdict, change or executable, or above it */
	const char *limit;	     /* its word; "any" */
	const char *type;
	const char *text; /* in any string of the body */
	enum filter_exit exit;
	uint64_t exit_status;
	const char *exit_kind;
};

/* Everything holds of the empty filter. */
#define FILTER_NONE ((struct filter){ .until_ns = UINT64_MAX })

/* Texts of needles are the arena's. False: no memory. */
bool filter_needles(const struct filter *filter, struct arena *arena, struct scan_needles *needles);

/*
 * What can be said of the raw line alone: false for one whose time is certainly outside. Spares a
 * question about the last hour to take a year of lines apart.
 */
bool filter_may_match(const struct filter *filter, const char *bytes, size_t length);

bool filter_matches(const struct filter *filter, const struct trace_line *line,
		    const struct json_node *body);
