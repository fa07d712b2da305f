/*
 * Verdicts: what a policy makes of the requests of a command (policy/classify.h), each with the
 * rule that says so. Pure: what the host knows of programs is asked back by functions.
 *
 * Without a policy it is the table of policy/wanted.def: reads alone are allowed. That is the
 * answer where no wall is. Behind the wall of a policy (its view, its network) every request is
 * allowed by the wall itself, unless a rule speaks of it:
 *
 *   denied      a program that exec.deny or exec.sets name, or that exec.allow does not; what is
 *               hidden or protected; an exception that has expired; ruin, and the way out
 *   asked for   what approvals.ask, ask-methods and targets name; what cannot be told from the
 *               text; with "approval: always" everything but reads inside of the view
 *
 * Deny beats ask, which beats allow. An exception lifts what its own file, a preset or a built-in
 * rule says of its command, but neither ruin nor the way out. With "approval: never" what would be
 * asked for is denied.
 */
#pragma once

#include "policy/classify.h"

struct arena;
struct policy;

/* Requests times rulings; who needs more of a look than that is asked about. */
#define VERDICT_LIMIT_STEPS (1u << 18)

struct verdict_facts {
	const struct policy *policy; /* NULL: none, and no wall */
	const char *text; /* what a shell would get, where that is all there is; else NULL */
	uint64_t day;	  /* today, as days since 1970 */
	/*
	 * Whether the first word of a command is the program that a rule names. `surely`: by the
	 * file that it leads to; else by its name, too. NULL: names are compared.
	 */
	bool (*is_program)(void *context, const char *named, const char *word, bool surely);
	/* Of the file that the word leads to; NULL: not known. */
	const char *(*digest)(void *context, const char *word);
	void *context;
};

struct verdict {
	enum wanted_judgement judgement;
	struct rule_ref rule;
	const char *reason; /* a sentence; the arena's, or static */
};

struct verdict_list {
	struct verdict *rows; /* one for each request of the classification */
	struct verdict whole;
	size_t request; /* which one decided; wanted_count: none */
	/*
	 * What is in no request was left unread: a yes to each request that asks is then none to
	 * the command. WANTED_ALLOWS: all of it was read.
	 */
	struct verdict unread;
};

/* Cannot fail: what goes wrong asks. The rows are the classification's arena's. */
void verdict_make(const struct classify *classify, const struct verdict_facts *facts,
		  struct verdict_list *ret_list);

/* The class of approvals.ask that requests of the verb are of; NULL: none. */
const char *verdict_class(enum wanted_verb verb);

/* All of them; NULL behind the last. */
const char *verdict_class_at(size_t index);

/* "allow", "ask", "deny" */
const char *verdict_word(enum wanted_judgement judgement);
