/*
 * The inside of `bawn verify`: attempts (battery.def), made by bawn-probe as an ordinary action
 * of a real box. Nothing here is privileged or trusted: what it reports is compared with the
 * claims by the supervisor's side (battery.h), and what it does not report counts against the box.
 *
 * Standard input: one attempt per line, words separated by tabs: its word and its arguments.
 * Standard output: one line per attempt: number, "done" or "failed", errno, microseconds.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum attempt {
#define ATTEMPT(name, word, layer, claim, answers) ATTEMPT_##name,
#include "broker/battery.def"
#undef ATTEMPT
	ATTEMPT_COUNT,
};

/* A variable's or device's name each; both have limits below this. */
#define ATTEMPT_LIMIT_ARGUMENTS 4200

/*
 * Makes one attempt. arguments: NULL-ended, as many as its row tells (others fail with EINVAL).
 * Returns 0 when it succeeded or what it checks holds, else a negative errno (-ENOMSG: what it
 * checks does not hold).
 */
int attempt_make(enum attempt attempt, char *const *arguments);

/* ATTEMPT_COUNT for an unknown word. */
enum attempt attempt_find(const char *word);
const char *attempt_word(enum attempt attempt);
