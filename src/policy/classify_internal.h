/* What the files of policy/classify share. */
#pragma once

#include "policy/classify.h"

struct program;

struct classify_segment {
	const struct classify_word *words;
	size_t count;
	uint32_t depth;
};

/* One command while its words are looked at. */
struct command {
	struct classify *classify;
	const struct program *program;
	const struct classify_word *words;
	size_t count;
	uint32_t *operands; /* indices into words */
	size_t operand_count;
	size_t skipped; /* operands whose role an option took over */
	uint32_t flags; /* enum command_flag */
};

enum command_flag {
	COMMAND_REMOVES = 1u << 0,   /* operands are removed */
	COMMAND_WRITES = 1u << 1,    /* operands are written in place */
	COMMAND_RECURSES = 1u << 2,  /* operands are read with all that is below them */
	COMMAND_HAS_INNER = 1u << 3, /* an option gave the command to run */
	COMMAND_IS_QUIET = 1u << 4,  /* an option made it a plain question */
	COMMAND_HAS_TEXT = 1u << 5,  /* the first operand is text for a shell */
	COMMAND_HAS_CODE = 1u << 6,  /* an option gave the code to run */
	COMMAND_IS_LISTED = 1u << 7, /* a file or the input names the operands */
	COMMAND_CHECKS = 1u << 8,    /* the first operand is code that is read and not run */
};

/* Splits words[from...] into options, whose effects are applied, and operands. */
void command_options(struct command *command, size_t from);

/* Gives operands their roles. */
void command_operands(struct command *command);

/* The words from the operand on as a command of their own; `more`: others come at run time. */
void command_inner(struct command *command, size_t from, size_t to, bool more);

/* Words of a command joined by blanks, for programs that hand them to a shell. */
void command_joined(struct command *command, size_t from);

void command_text(struct command *command, const struct classify_word *word);

/* A word of our own making at the place of another. */
struct classify_word command_word(const struct classify_word *like, const char *text);

/* Requests of the command itself, with the program's name as target. */
void command_wants(struct command *command, enum wanted_verb verb, const char *why);

/* Programs with a language of their own (classify_script.c). */
void command_sed(struct command *command, const struct classify_word *script);
void command_awk(struct command *command, const struct classify_word *script);
void command_jq(struct command *command, const struct classify_word *script);

/* The effect of one letter (program.h) on the word; `word` is the option itself for capitals. */
void command_effect(struct command *command, char letter, const struct classify_word *word);
