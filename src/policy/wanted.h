/*
 * Requests: verb + target, that a rule or a person can decide, as a command wants them
 * (wanted.def). Made by policy/classify and policy/shell. Pure.
 *
 * The words of a target are the command's own: a path as it was written or cleaned, a host as
 * "name:port", a program's name. They live as long as the arena and the command do.
 */
#pragma once

#include "policy/rule.h"

#include <stdbool.h>
#include <stdint.h>

struct buffer;

enum wanted_verb {
#define WANTED(name, ...) WANTED_##name,
#include "policy/wanted.def"
#undef WANTED
	WANTED_COUNT,
};

enum wanted_judgement {
	WANTED_ALLOWS,
	WANTED_ASKS,
	WANTED_DENIES,
};

struct wanted {
	enum wanted_verb verb;
	const char *target;
	const char *why;   /* static text: what in the command says so; "" where the verb does */
	uint32_t segment;  /* which command of the whole, from 0 */
	uint32_t position; /* index in argv, or offset in the shell text */
	bool exact;	   /* false: the target is known only when the command runs */
};

const char *wanted_verb_name(enum wanted_verb verb);
const char *wanted_verb_meaning(enum wanted_verb verb);

/* The built-in rule that decides such requests: "command.fs.write". */
struct rule_ref wanted_rule(enum wanted_verb verb);

/* What becomes of it where no rule speaks. A read whose target is not known asks. */
enum wanted_judgement wanted_judge(const struct wanted *wanted);

/* "fs.read ~/.npmrc", shown safely; "fs.read $X (known only at run time)". */
void wanted_print(const struct wanted *wanted, struct buffer *buffer);
