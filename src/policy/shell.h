/*
 * A shell's text as the requests of its commands. The tree comes from elsewhere (a parser in a
 * jail) in a flat form, as foreign as the text: it is checked against the text before it is
 * believed, and only kinds of nodes on a list (shell.def) are. Whatever is not understood asks.
 * Pure.
 *
 * Each command is a segment of the classification, and so is each one inside of a substitution, a
 * loop or a condition. Redirections and assignments are requests of their own.
 */
#pragma once

#include "policy/classify.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/* Agents send some hundred bytes; what nobody would read to its end is not worth parsing. */
#define SHELL_LIMIT_BYTES (64u * 1024)
/* A text at its limit made of ordinary commands has some thousands. */
#define SHELL_LIMIT_NODES 16384u
/* Loops in functions in substitutions: more is a text made to be hard to see through. */
#define SHELL_LIMIT_NESTING 64u

enum shell_kind {
	SHELL_UNKNOWN, /* not on the list, an error, or what the parser put in itself */
	SHELL_TOKEN,   /* a keyword or an operator: its text says which */
#define NODE(name, grammar, part) SHELL_##name,
#include "policy/shell.def"
#undef NODE
	SHELL_KIND_COUNT,
};

/* In the order of the text, parents first; the first one is the whole and its own parent. */
struct shell_node {
	uint32_t kind;	     /* enum shell_kind */
	uint32_t start, end; /* bytes of the text */
	uint32_t parent;
};

struct shell_tree {
	const char *text; /* not ended by NUL */
	size_t length;
	const struct shell_node *nodes;
	size_t count;
};

/* The kind by the grammar's name. */
enum shell_kind shell_kind(const char *name, bool named);

/* Adds what the text wants. Anything wrong with the tree is a request that asks. */
void shell_classify(struct classify *classify, const struct shell_tree *tree);

/* As shell_classify(), for classify->texts[index], which then counts as read. */
void shell_classify_text(struct classify *classify, size_t index, const struct shell_tree *tree);

/* A text that nobody could parse. */
void shell_refuse(struct classify *classify, const char *why);
