/*
 * A policy file as typed statements: what stands where, checked. Pure; all memory is the arena's.
 *
 * document_read() holds an outline (outline.h) against the keys of document.def and is strict: what
 * it does not know, or understands in part, is a fault with its line and column, the reason and,
 * where there is one, the nearest right word. A document with a fault is not to be used.
 *
 * What a document says is a list of statements in the order of the file. A statement whose key
 * needs what this build lacks is valid all the same; document_missing() tells, and who enforces
 * refuses.
 */
#pragma once

#include "policy/limit.h"
#include "policy/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buffer;
struct json;
struct outline;

#define DOCUMENT_FORM 1u
/* More than that are not read by the one who has to mend the file. */
#define DOCUMENT_LIMIT_FAULTS 20u
/* A start shows at most VIEW_LIMIT_PATHS of them. */
#define DOCUMENT_LIMIT_STATEMENTS 8192u

enum document_key {
#define KEY(id, ...) DOCUMENT_##id,
#include "policy/document.def"
#undef KEY
	DOCUMENT_KEY_COUNT,
};

enum document_shape {
	/* one value */
	DOCUMENT_SHAPE_TEXT,
	DOCUMENT_SHAPE_WORD,
	DOCUMENT_SHAPE_BOOL,
	DOCUMENT_SHAPE_COUNT,
	DOCUMENT_SHAPE_DURATION,
	DOCUMENT_SHAPE_LIMIT,
	/* a list of values */
	DOCUMENT_SHAPE_TEXTS,
	DOCUMENT_SHAPE_WORDS,
	DOCUMENT_SHAPE_NAMES,
	DOCUMENT_SHAPE_LOCKS, /* of keys and sections */
	/* a list of values, or of rules: {path: or name: value, id, reason, match, not_match} */
	DOCUMENT_SHAPE_PATHS,
	DOCUMENT_SHAPE_PATTERNS,
	DOCUMENT_SHAPE_DEVICES,
	DOCUMENT_SHAPE_PROGRAMS,
	/* a map of names and values */
	DOCUMENT_SHAPE_SET,
	/* a list of rules with fields of their own */
	DOCUMENT_SHAPE_NETWORK,
	DOCUMENT_SHAPE_CREDENTIAL,
	DOCUMENT_SHAPE_TARGET,
	DOCUMENT_SHAPE_EXCEPTION,
	DOCUMENT_SHAPE_TEST,
	DOCUMENT_SHAPES,
};

struct document_key_text {
	const char *path, *words, *missing, *help;
	enum document_shape shape;
};

/* A field of a rule, as it stands: "ports" and "443"; one for each value of a list. */
struct document_detail {
	const char *field, *text;
};

struct document_statement {
	enum document_key key;
	const char *text;     /* the value; paths clean and absolute, "~" filled in */
	const char *name;     /* SET: the variable; else NULL */
	uint64_t value;	      /* BOOL, COUNT, DURATION (ns), LIMIT */
	struct rule_ref rule; /* id as written, or made of key and position; file; line */
	uint32_t column;
	const struct document_detail *details;
	size_t detail_count;
};

struct document {
	const char *file; /* as it stands in rules: a path, or "preset NAME" */
	struct document_statement *statements;
	size_t count;
};

struct document_fault {
	uint32_t line, column;
	const char *text;
};

struct document_faults {
	struct document_fault rows[DOCUMENT_LIMIT_FAULTS];
	size_t count; /* of all; rows has the first */
};

struct document_facts {
	const char *file; /* for rules */
	const char *home; /* of the caller; NULL: "~" means nothing */
};

/* 0, -EINVAL with faults in the order of the file, or -ENOMEM. */
int document_read(const struct outline *outline, const struct document_facts *facts,
		  struct arena *arena, struct document *ret_document,
		  struct document_faults *faults);

/* The value of the rule's first field of that name; NULL where it has none. */
const char *document_detail(const struct document_statement *statement, const char *field);

/* What a run would need for the statement and this build lacks; NULL where nothing is. */
const char *document_missing(const struct document_statement *statement, struct arena *arena);

/* The same in words behind the key, and of network rules, too: "needs ..."; or NULL. */
const char *document_unbuilt(const struct document_statement *statement, struct arena *arena);

/* Several documents as one: of single values the last document's count. -ENOMEM. */
int document_join(const struct document *const *documents, size_t count, struct arena *arena,
		  struct document *ret_document);

/* The statement by which the document locks the key, by its name or its section's; NULL. */
const struct document_statement *document_lock(const struct document *document,
					       enum document_key key);

/* The last statement of the key, which is the one that counts; NULL. */
const struct document_statement *document_find(const struct document *document,
					       enum document_key key);

const struct document_key_text *document_key(enum document_key key);
/* The limit that a key of shape LIMIT sets. */
enum limit document_limit(enum document_key key);

/* "FILE:LINE:COLUMN: text" and a newline for each, and how many more there are. */
void document_print_faults(const struct document_faults *faults, const char *file,
			   struct buffer *buffer);

/* The JSON schema of a policy file, for editors. */
void document_schema(struct json *json);

/* Blank-separated words as an array of the arena. */
const char *const *document_split(struct arena *arena, const char *words, size_t *ret_count);
