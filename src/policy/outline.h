/*
 * A YAML or TOML text as flat nodes: what a policy file, or settings of others, say before anybody
 * asks what they mean. Pure.
 *
 * outline_parse() reads YAML by libyaml and outline_parse_toml() TOML by tree-sitter, in bawn-parse
 * alone (main/bawn-parse.c), and write the nodes as bytes; outline_read() reads those back where
 * they are used, as foreign as the text. Of YAML only the plain part is taken: a document of maps,
 * lists and text. Anchors, aliases, tags, directives, merge keys and keys that are no words are
 * faults, with their place. Of TOML all is taken; numbers, booleans and times are texts without
 * quotes, as they stand. Of Codex's rules (outline_parse_rules()) a call with its arguments written
 * out is a map with the map of these by the call's name; any other statement is a map with the
 * reason why it is not read, by the name "". All of them are a list.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buffer;

/* A policy of a thousand rules has 100 KB; nobody reads a larger one. */
#define OUTLINE_LIMIT_BYTES (1024u * 1024)
#define OUTLINE_LIMIT_NODES 65536u
/* A rule's examples lie at depth 5. */
#define OUTLINE_LIMIT_DEPTH 16u
/* Settings in TOML: a parser's tree takes hundreds of times the text. */
#define OUTLINE_LIMIT_TOML_BYTES (256u * 1024)
#define OUTLINE_LIMIT_TOML_NODES 16384u
#define OUTLINE_LIMIT_RULES_BYTES (256u * 1024)
#define OUTLINE_PARSE_LIMIT_US 2000000u
/* Of the bytes that come back: each node's numbers, and all text once more. */
#define OUTLINE_LIMIT_RESULT_BYTES (8u * 1024 * 1024)

enum outline_kind {
	OUTLINE_TEXT,
	OUTLINE_MAP, /* its children: a key (OUTLINE_TEXT), its value, a key, ... */
	OUTLINE_LIST,
	OUTLINE_KIND_COUNT,
};

/* In the order of the text: behind a node come those below it, up to `end`. */
struct outline_node {
	enum outline_kind kind;
	bool is_plain;	       /* OUTLINE_TEXT: it stands without quotes */
	uint32_t line, column; /* from 1; columns in characters */
	uint32_t end;	       /* index of the first node that is not below it */
	const char *text;      /* OUTLINE_TEXT; else "" */
};

struct outline_fault {
	uint32_t line, column;
	const char *text; /* NULL: none */
};

struct outline {
	struct outline_node *nodes; /* nodes[0] is the whole */
	size_t count;		    /* 0: there is a fault */
	struct outline_fault fault;
};

/*
 * Appends the bytes of the text's outline, or of its first fault. Only what was built without
 * memory is negative: -ENOMEM.
 */
int outline_parse(const char *text, size_t length, struct buffer *buffer);

/* The same of a TOML text; where this build has no grammar of it that is the fault. */
int outline_parse_toml(const char *text, size_t length, struct buffer *buffer);

/* The same of rules in Starlark. */
int outline_parse_rules(const char *text, size_t length, struct buffer *buffer);

/* Appends the bytes of an outline: the fault, where it has one, or the nodes. */
int outline_write(const struct outline *outline, struct buffer *buffer);

/* -EBADMSG for bytes that outline_parse() would not have written, -ENOMEM. */
int outline_read(const void *bytes, size_t length, struct arena *arena,
		 struct outline *ret_outline);

/* The value of the map's key, or NULL. */
const struct outline_node *outline_find(const struct outline *outline,
					const struct outline_node *map, const char *key);

/* The first node below a map or list, and the one behind it; NULL at the end of `parent`. */
const struct outline_node *outline_first(const struct outline *outline,
					 const struct outline_node *parent);
const struct outline_node *outline_next(const struct outline *outline,
					const struct outline_node *parent,
					const struct outline_node *node);
