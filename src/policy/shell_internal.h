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
	uint32_t setters; /* how many commands may change a variable of any name */

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

/* Whether the assignment is always made before the use, and in its shell. */
bool shell_is_set_before(const struct shell_walk *walk, uint32_t assignment, uint32_t use);

/* The pattern for the lines that "while read" is given, as shell_names_for(); of the loop. */
const char *shell_names_for_loop(struct shell_walk *walk, uint32_t node);

/* The word that the node becomes, its quotes taken away. */
struct classify_word shell_word(struct shell_walk *walk, uint32_t node);

/* Words that one with braces may become; what would be more is one that is not known. */
#define SHELL_LIMIT_WORDS 16u

bool shell_has_braces(const struct shell_walk *walk, uint32_t node);

/*
 * The words that braces make of the text; `plain` tells which of its bytes are braces and commas
 * without quotes. 0 where they are more than `room`, or one of them is empty, or memory ran out.
 */
size_t shell_braces(struct arena *arena, const char *text, const char *plain,
		    struct classify_word *ret_words, size_t room);

/* As shell_word(), of "a{b,c}" both words. Returns how many there are, 1 to `room`. */
size_t shell_words(struct shell_walk *walk, uint32_t node, struct classify_word *ret_words,
		   size_t room);
