/*
 * Rulings: what a policy file says of the requests of an action (exec, approvals, exceptions), as
 * rows of the compiled policy. policy/verdict.h decides by them. Pure.
 *
 * Text about commands is for people and for agents that mean well; the wall is the kernel's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct document;
struct policy;

/* As statements of a document. */
#define RULING_LIMIT 8192u
/* A SHA-256 in hexadecimal. */
#define RULING_DIGEST_LENGTH 64u

enum ruling_kind {
#define RULING(name, ...) RULING_##name,
#include "policy/ruling.def"
#undef RULING
	RULING_KIND_COUNT,
};

/* What becomes of a request that a rule marks to be asked for. */
enum ruling_approval {
	RULING_ON_REQUEST, /* a person is asked; nothing else is said, too */
	RULING_NEVER,	   /* it is denied */
	RULING_ALWAYS,	   /* a person is asked, for everything but reads inside of the view */
	RULING_APPROVAL_COUNT,
};

struct ruling {
	enum ruling_kind kind;
	const char *text, *label, *note; /* see ruling.def; label and note may be NULL */
	const char *digest; /* EXCEPTION: of the program's file, in small letters; NULL: any */
	uint32_t rule;	    /* index into the policy's rules */
	uint64_t until;	    /* EXCEPTION: the last day, as days since 1970; else 0 */
};

/*
 * The rows that the document's statements make, added to the policy with their rules, and its
 * approval. -ENOMEM or -E2BIG.
 */
int ruling_compile(const struct document *document, struct policy *policy, struct arena *arena);

/* False for a row that ruling_compile() does not make. */
bool ruling_is_valid(const struct ruling *ruling);

/* Whether requests have to be looked at: a start by a policy without costs nothing. */
bool ruling_decides(const struct policy *policy);

/* "never", "on-request", "always" */
const char *ruling_approval_word(enum ruling_approval approval);

/* Days since 1970 of "YYYY-MM-DD", as VALUE_DATE has it. */
uint64_t ruling_day(const char *date);

/* Whether the command of an exception, split at its blanks, is these words. */
bool ruling_covers(const char *command, const char *const *words, size_t count);
