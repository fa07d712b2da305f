/* What the files of policy/shell share: a tree that was checked, and its words. */
#pragma once

#include "policy/shell.h"

enum shell_part {
	SHELL_PART_STRUCTURE,
	SHELL_PART_COMMAND,
	SHELL_PART_DECLARATION,
	SHELL_PART_TEST,
	SHELL_PART_FUNCTION,
	SHELL_PART_ASSIGNMENT,
	SHELL_PART_REDIRECT,
	SHELL_PART_HEREDOC,
	SHELL_PART_HERESTRING,
	SHELL_PART_WORD,
	SHELL_PART_EXPANSION,
	SHELL_PART_SUBSTITUTION,
	SHELL_PART_EXPRESSION,
	SHELL_PART_ARITHMETIC,
	SHELL_PART_LEAF,
	SHELL_PART_IGNORED,
	SHELL_PART_REFUSED,
	SHELL_PART_TOKEN,
};

struct shell_walk {
	struct classify *classify;
	const struct shell_tree *tree;
	uint32_t *after;   /* index behind the last node below each */
	const char *wrong; /* why the tree is not believed; NULL while it is */
	uint32_t wrong_at;
	bool sets_variables; /* some command may change a variable of any name */
};

enum shell_part shell_part(uint32_t kind);

/* Checks the tree against its text: order, nesting, and that nothing in the text is left out. */
bool shell_check(struct shell_walk *walk);

/* Children of a node: for (c = node + 1; c < walk->after[node]; c = walk->after[c]). */
bool shell_is(const struct shell_walk *walk, uint32_t node, const char *text);

/* Marks the tree as not to be believed, for the first reason. */
void shell_wrong(struct shell_walk *walk, uint32_t node, const char *why);

/* The word that the node becomes, its quotes taken away. */
struct classify_word shell_word(struct shell_walk *walk, uint32_t node);
