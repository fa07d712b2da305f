/*
 * Private to infer*.c: what a line of standard error says, its words, and what is searched in it.
 * Strings are a line of the tail, NUL-ended, hostile; what is found points into it.
 */
#pragma once

#include "base/path.h"

#include <stdbool.h>
#include <stddef.h>

struct denial_list;
struct policy;

/* What a tail and a command line are searched for at most: hostile ones cost no more than this. */
#define INFER_LIMIT_WORDS 512
#define INFER_LIMIT_OPERANDS 512

enum says {
	SAYS_ABSENT = 1u << 0,
	SAYS_REFUSED = 1u << 1,
	SAYS_READ_ONLY = 1u << 2,
	SAYS_BUSY = 1u << 3,
	SAYS_ERRNO = 1u << 4, /* an errno's text: certain even where no path is named */
	SAYS_WRITING = 1u << 5,
	SAYS_UNRESOLVED = 1u << 6,
	SAYS_UNREACHABLE = 1u << 7,
	SAYS_BESIDE = 1u << 8, /* absence, of the word right before it alone */
	SAYS_PATH = SAYS_ABSENT | SAYS_REFUSED | SAYS_READ_ONLY | SAYS_BUSY,
	SAYS_NETWORK = SAYS_UNRESOLVED | SAYS_UNREACHABLE,
};

struct infer_search {
	const struct policy *policy;
	const char *cwd;
	const char *const *argv;
	struct denial_list *list;
	size_t words;	    /* looked at so far */
	unsigned anonymous; /* what lines said that named no object */
	unsigned named;	    /* what network lines said that named a host */
	bool path_named;    /* some line said which path it means */
	bool pip_failed;    /* pip found nothing, which without a network it says of all */
};

struct infer_word {
	const char *start;
	size_t length;
	bool quoted;
	const char *after; /* behind the word and its closing quote */
};

struct infer_path {
	char text[PATH_LIMIT_BYTES];
	bool absolute; /* named as such, or by "~" or ".." */
};

/* infer_text.c */

bool infer_is_space(char c);
bool infer_is_alnum(char c); /* or a byte of a longer character */

/* The says of a whole line; of the text that begins at this place. */
unsigned infer_line_says(const char *line);
unsigned infer_says_at(const char *at);

/* Bytes of the quote at this place, 0 where there is none. */
size_t infer_quote(const char *at);

bool infer_starts_path(const char *at);

/* The next word at or behind `at`, which is moved behind it; false at the end of the line. */
bool infer_next_word(const char **at, struct infer_word *ret_word);

/* `: No such file`, `: Cannot open: No such file` or ` (No such file` behind a word. */
bool infer_refusal_follows(const char *after);

/* infer_path.c */

/* Of a clean path: the length of the directory that it is in. */
size_t infer_parent_length(const char *path);

/* The path that is meant, clean; false where it is none or none that can be told. */
bool infer_path(const struct infer_search *search, const char *text, size_t length,
		struct infer_path *ret_path);

/* Reports the path where the view agrees that this may have been said of it. */
void infer_decide(struct infer_search *search, const struct infer_path *path, unsigned says);

void infer_search_paths(struct infer_search *search, const char *line, unsigned says);

/* infer_host.c */

void infer_search_hosts(struct infer_search *search, const char *line, unsigned says);

/* curl says nothing more exact of an unreachable address: `to HOST port N after 0 ms: ...` */
void infer_search_curl(struct infer_search *search, const char *line);

/* A line that named no host: the command line may, and if not the network as a whole is meant. */
void infer_search_anonymous(struct infer_search *search);

/* pip's last words, which are all that it says of a missing network. */
void infer_search_pip(struct infer_search *search, const char *line);

/* infer_mode.c */

void infer_search_set_id(struct infer_search *search, const char *line, unsigned says);
