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

	/* what was found of the names that substitutions print, a byte for each node */
	uint8_t *names;
	uint32_t names_depth, names_state;
};

enum shell_part shell_part(uint32_t kind);

/* Checks the tree against its text: order, nesting, and that nothing in the text is left out. */
bool shell_check(struct shell_walk *walk);

/* Children of a node: for (c = node + 1; c < walk->after[node]; c = walk->after[c]). */
bool shell_is(const struct shell_walk *walk, uint32_t node, const char *text);

/* Marks the tree as not to be believed, for the first reason. */
void shell_wrong(struct shell_walk *walk, uint32_t node, const char *why);

/* The words of a command's node; NULL where it is not only words, or memory ran out. */
const struct classify_word *shell_plain_words(struct shell_walk *walk, uint32_t node,
					      size_t *ret_count);

/*
 * The pattern that stands for the names that the command of the node, in a pipeline, is given
 * (classify_names()), or that the substitution of the node prints. NULL: something else, too.
 */
const char *shell_names_for(struct shell_walk *walk, uint32_t command);
const char *shell_names_of(struct shell_walk *walk, uint32_t substitution);

/* The word that the node becomes, its quotes taken away. */
struct classify_word shell_word(struct shell_walk *walk, uint32_t node);
