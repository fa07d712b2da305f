/* What the files of the document loader share; document.h is for everybody else. */
#pragma once

#include "policy/document.h"
#include "policy/outline.h"

struct document_reading {
	const struct outline *outline;
	const struct document_facts *facts;
	struct arena *arena;
	struct document *document;
	struct document_faults *faults;
};

/* What one value is, whatever key it stands at. */
enum document_value {
	VALUE_TEXT,
	VALUE_WORD,
	VALUE_BOOL,
	VALUE_COUNT,
	VALUE_DURATION,
	VALUE_SIZE,
	VALUE_DATE,
	VALUE_ID,
	VALUE_NAME, /* of a variable */
	VALUE_PATH,
	VALUE_PATTERN,
	VALUE_DEVICE,
	VALUE_PROGRAM,
	VALUE_HOST,
	VALUE_NETWORK, /* a host, an address, a network */
	VALUE_PORT,
	VALUE_URL_PATH,
	VALUE_LOCK,
};

/* A field of a rule. The first one of a table is what the rule speaks of, and must be there. */
struct document_field {
	const char *name;
	enum document_value value;
	bool many, needed;
	const char *words; /* of VALUE_WORD */
	const char *help;
};

struct document_fields {
	const struct document_field *rows;
	size_t count;
	bool has_short_form; /* the value alone stands for the rule */
};

/* The fields of the shape's rules; count 0 where it has no rules. */
const struct document_fields *document_fields(enum document_shape shape);

/* What each value of a list of the shape is. */
enum document_value document_item(enum document_shape shape);

/* What may stand behind "lock": keys that say what is allowed, and their sections. */
const char *document_lockable(struct arena *arena);

/* False once so much is wrong that nobody reads on. */
bool document_goes_on(const struct document_reading *reading);

void document_fault(struct document_reading *reading, uint32_t line, uint32_t column,
		    const char *format, ...) __attribute__((format(printf, 4, 5)));
void document_fault_at(struct document_reading *reading, const struct outline_node *node,
		       const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "; the nearest is "word"" for what was not found, or "" where none is near. */
const char *document_hint(const struct document_reading *reading, const char *word,
			  const char *const *words, size_t count);

/*
 * The value of a node as it is meant (paths clean, "~" filled in), or NULL with a fault. ret_number
 * (not NULL) is set for BOOL, COUNT, DURATION and SIZE.
 */
const char *document_take(struct document_reading *reading, const struct outline_node *node,
			  enum document_value value, const char *words, const char *key,
			  uint64_t *ret_number);

/* Adds a statement; NULL when there are too many (a fault) or memory ran out. */
struct document_statement *document_add(struct document_reading *reading, enum document_key key,
					const struct outline_node *node, const char *text);

/* Lists of values and rules. */
void document_read_list(struct document_reading *reading, enum document_key key,
			const struct outline_node *node);

/* Rules about requests that decide too much, or nothing. */
void document_check_decisions(struct document_reading *reading);

/* Rules that contradict their own examples, or can never decide anything. */
void document_check_rules(struct document_reading *reading);

/* Whether the pattern of hosts covers the host, which may be a pattern itself. */
bool document_host_covers(const char *pattern, const char *host);
