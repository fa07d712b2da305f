/*
 * What the lines of a TOML text (toml.io, version 1.0) come to: tables that are opened by headers
 * and by keys with dots, keys that are given once. Pure; all memory is the arena's. Linked into
 * bawn-parse alone.
 *
 * Who reads the text says what stands there, in its order: toml_key() for each part of a key, then
 * what the key is for. A function that returns a text refuses, and that is why.
 */
#pragma once

#include "policy/outline.h"

struct arena;

/* How a map or a list came to be, which says what may be added to it. */
enum toml_made {
	TOML_VALUE,   /* written as a value: {...}, [...] */
	TOML_HEADER,  /* [it] */
	TOML_ABOVE,   /* [it.other], so far */
	TOML_DOTS,    /* it.other = ... */
	TOML_ENTRIES, /* [[it]]: a list */
};

struct toml_item {
	enum outline_kind kind;
	enum toml_made made;
	bool is_plain;
	uint32_t line, column, hash;
	const char *key, *text; /* key: NULL in a list */
	struct toml_item *first, *last, *next, *parent;
};

struct toml_place {
	uint32_t line, column;
};

struct toml_tree {
	struct arena *arena;
	struct toml_item *root;
	struct toml_item *table;     /* of the last header */
	struct toml_item *inside;    /* the value, or the table, that is being read */
	struct toml_item *keyed;     /* the map that the next value's key is for */
	struct toml_place key_place; /* of the key's first part */
	const char *key;	     /* the next value's; NULL: none */
	const char *parts[OUTLINE_LIMIT_DEPTH];
	struct toml_place places[OUTLINE_LIMIT_DEPTH];
	size_t part_count, node_count;
};

/* -ENOMEM. */
int toml_begin(struct toml_tree *tree, struct arena *arena);

const char *toml_key(struct toml_tree *tree, const char *part, struct toml_place place);

/* "[key]" and "[[key]]". */
const char *toml_open_table(struct toml_tree *tree);
const char *toml_open_entry(struct toml_tree *tree);

/* "key =" */
const char *toml_assign(struct toml_tree *tree);

const char *toml_text(struct toml_tree *tree, const char *text, bool is_plain,
		      struct toml_place place);

/* "{" and "[" of a value, and their ends. */
const char *toml_open(struct toml_tree *tree, enum outline_kind kind, struct toml_place place);
void toml_close(struct toml_tree *tree);

/* The tree as an outline's nodes; -ENOMEM. */
int toml_outline(const struct toml_tree *tree, struct outline *ret_outline);
