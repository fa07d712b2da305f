/*
 * Classification: what a command wants (policy/wanted.h), told from its words alone. Knowledge of
 * programs is data (program*.def); what no table knows is EXEC_UNKNOWN, what cannot be told is
 * UNCLEAR: both ask. Wrappers are looked into, each command found being a *segment* of its own.
 *
 * UX, not a boundary: a program can be other than its name, a file change behind a check. What it
 * must never do is to take for a read what is more. Pure; facts about the caller are input, memory
 * is the arena's, and words are borrowed as long as the result is used.
 *
 *     struct classify classify = { .arena = &arena, .facts = &facts };
 *     classify_argv(&classify, argv, argc);
 *     if (classify_judge(&classify) == WANTED_ALLOWS) ...
 *
 * Strings that a command hands to a shell are left in `texts`: who has a parser (policy/shell.h)
 * reads them into the same struct; until then they ask.
 */
#pragma once

#include "policy/wanted.h"

#include <stddef.h>

struct arena;

/* More commands than a person could look through; a longer list once made rules be skipped. */
#define CLASSIFY_LIMIT_SEGMENTS 64u
/* Wrappers in wrappers: nobody needs more, and each makes a list of words. */
#define CLASSIFY_LIMIT_DEPTH 8u
/* Directories of one decision; who changes more often is anywhere. */
#define CLASSIFY_LIMIT_CWDS 4u
/* Requests of one decision; what is beyond is one UNCLEAR. */
#define CLASSIFY_LIMIT_WANTED 4096u

struct classify_facts {
	const char *cwd;  /* folded; NULL: not known */
	const char *home; /* of the person; NULL: not known */
	const char *user;
	/* What the path (from sensitive_fold()) leads to by links; NULL: itself, or nothing. */
	const char *(*resolve)(void *context, const char *path);
	void *context;
};

enum classify_word_kind {
	CLASSIFY_LITERAL,
	CLASSIFY_GLOB,	  /* literal but for '*', '?' and "[...]" of the shell's */
	CLASSIFY_ONE,	  /* one word, text is its source with a part that is not known */
	CLASSIFY_UNKNOWN, /* text is its source: any number of words, options too */
};

struct classify_word {
	const char *text;
	enum classify_word_kind kind;
	uint32_t position;
};

/* A string for a shell. */
struct classify_text {
	const char *text;
	uint32_t segment, position, depth;
};

struct classify_segment; /* internal: a command that waits to be looked at */

struct classify {
	struct arena *arena;
	const struct classify_facts *facts;
	/* Where relative paths may stand: facts->cwd, and where a "cd" before leads to. */
	const char *cwds[CLASSIFY_LIMIT_CWDS];
	size_t cwd_count;
	bool cwd_unknown; /* anywhere else as well */
	bool moved;	  /* one of them is not below facts->cwd */

	struct wanted *wanted;
	size_t wanted_count;
	struct classify_text *texts;
	size_t text_count, texts_read;
	struct classify_segment *segments;
	size_t segment_count, segments_done;
	uint32_t segment, depth; /* of the command that is being looked at */
	bool failed;		 /* memory or a limit ran out: asks, whatever else was found */
	/* the pattern that stands for the names that are the next command's input, or NULL */
	const char *names;
	uint32_t names_for; /* and the segment that this command is */
	bool in_shell;	    /* words of a shell's: its built-ins are meant */
};

/* Adds what the command wants. */
void classify_argv(struct classify *classify, const char *const *argv, size_t argc);

/* As classify_argv(), for words of which not all are known. */
void classify_words(struct classify *classify, const struct classify_word *words, size_t count);

/* The worst of all, and ASKS while there are texts nobody read or something went wrong. */
enum wanted_judgement classify_judge(const struct classify *classify);

/* What becomes of one of its requests where no rule speaks: who one is may be asked by itself. */
enum wanted_judgement classify_judge_request(const struct classify *classify, size_t index);

/* How many commands the segment was handed on by. */
uint32_t classify_segment_depth(const struct classify *classify, size_t index);

/* The words of a segment; 0 where there is none of that index. */
size_t classify_segment(const struct classify *classify, size_t index,
			const struct classify_word **ret_words);

/*
 * The pattern that stands for what the command prints, where that is names of files below where we
 * are: a star behind "./", or alone where a name may begin with a dash. NULL: it is other text.
 * `nul`: each ends with a NUL, so that no other character in it makes two of it.
 */
const char *classify_names(const struct classify *classify, const struct classify_word *words,
			   size_t count, bool *ret_nul);

/* Whether the command is xargs with its input for words of another, and with names as they are. */
bool classify_takes_names(const struct classify_word *words, size_t count, bool *ret_nul);

/* Whether the command hands on lines of its input unchanged, and nothing else. */
bool classify_passes(const struct classify_word *words, size_t count);

/* A request of the segment that is being looked at, where a walk of a shell's text finds one. */
void classify_add(struct classify *classify, enum wanted_verb verb,
		  const struct classify_word *word, const char *why);

/* A file that is read or written: secrets, persistent places and streams are told apart. */
void classify_read(struct classify *classify, const struct classify_word *word);
void classify_write(struct classify *classify, const struct classify_word *word);

/* NAME=VALUE, or NAME, that later programs see. */
void classify_variable(struct classify *classify, const struct classify_word *word);

/* NAME or NAME=VALUE that the shell alone sees, unless the name is the environment's already. */
void classify_shell_variable(struct classify *classify, const struct classify_word *word);
