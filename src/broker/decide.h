/*
 * What becomes of a command line before it runs: classification (policy/classify.h), its shell
 * strings read by bawn-parse (broker/parser.h), and the verdict of the policy in force, which today
 * is the built-in one (policy/wanted.def). Runs nothing and asks nobody. UX, not a boundary.
 */
#pragma once

#include "broker/parser.h"
#include "policy/classify.h"
#include "policy/rule.h"

#include <stddef.h>

struct arena;
struct caller;

/* More words than a person could look through are not looked at. */
#define DECIDE_LIMIT_WORDS 65536u

struct decision {
	enum wanted_judgement verdict;
	struct rule_ref rule; /* that decided, of the request that it is about */
	const char *reason;   /* a sentence; borrowed */
	size_t request;	      /* index of that request in classify.wanted; wanted_count: none */
	struct classify classify;
	struct classify_facts facts;
	struct decision_links {
		struct arena *arena;
	} links;
};

/*
 * Both fill a zeroed decision, which must stay where it is, and cannot fail: whatever goes wrong
 * asks. Words and text are borrowed. cwd is clean and real, or NULL: not known. Paths are resolved
 * by the file system as it is now.
 */
void decide_argv(struct decision *decision, struct arena *arena, struct parser *parser,
		 const struct caller *host, const char *cwd, const char *const *argv, size_t argc);
void decide_shell(struct decision *decision, struct arena *arena, struct parser *parser,
		  const struct caller *host, const char *cwd, const char *text, size_t length);

/* "allow", "ask", "deny" */
const char *decide_word(enum wanted_judgement verdict);
