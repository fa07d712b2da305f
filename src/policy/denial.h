/*
 * Denials: what was refused to a task, by which layer and rule, and how to ask for it. One table
 * (denial.def) gives the line for people, the JSON and the documents.
 *
 * `measured` means that the layer itself reported the refusal; otherwise it was inferred from the
 * command's arguments and its standard error. The object is only ever text that the task itself
 * named: a denial must not tell what is hidden.
 */
#pragma once

#include "policy/rule.h"

#include <stdbool.h>
#include <stdint.h>

struct buffer;
struct json;

enum denial_kind {
#define DENIAL(name, code, layer, verb, message, remedy) DENIAL_##name,
#include "policy/denial.def"
#undef DENIAL
	DENIAL_KIND_COUNT,
};

struct denial_text {
	const char *code, *layer, *verb, *message, *remedy;
};

/* Objects longer than this are cut: they are the task's own words, not evidence. */
#define DENIAL_OBJECT_BYTES 256
/* One result lists at most this many different denials; more are counted only. */
#define DENIAL_LIMIT 64

struct denial {
	enum denial_kind kind;
	struct rule_ref rule;
	char object[DENIAL_OBJECT_BYTES];
	char grant[DENIAL_OBJECT_BYTES]; /* what the remedy names where it is not the object */
	const char *reason; /* in this case, for people; borrowed; NULL: nothing beyond the kind */
	uint32_t count;
	bool measured;
};

struct denial_list {
	struct denial items[DENIAL_LIMIT];
	uint32_t count;
	uint64_t dropped; /* beyond the limit; one that comes again counts again */
};

const struct denial_text *denial_text(enum denial_kind kind);

/* Adds, or counts up an equal {kind, object}. Returns true when it is a new one. */
bool denial_add(struct denial_list *list, enum denial_kind kind, struct rule_ref rule,
		const char *object, bool measured);

/*
 * The line for people, without newline:
 *   denied: fs.read ~/.aws (built-in "home.private", inferred): <message>; to allow: --read ~/.aws
 */
void denial_print(const struct denial *denial, struct buffer *buffer);

/* The members of the object, and the object. */
void denial_members(const struct denial *denial, struct json *json);
void denial_json(const struct denial *denial, struct json *json);
