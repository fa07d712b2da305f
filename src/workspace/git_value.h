/*
 * What a value of git's configuration, a name in it or a reference may look like to be harmless to
 * the git of the host. Pure predicates over texts that a task may have written; what is not known
 * to be harmless is false.
 */
#pragma once

#include <stdbool.h>

/* Of a git URL: where it leads. */
enum git_url {
	GIT_URL_BAD,
	GIT_URL_NETWORK,
	GIT_URL_LOCAL, /* a path: its repository may be whoever's, whose hooks run at a push */
};

/*
 * One line without control bytes that is no option, no `!command` and no path of home. Bytes that
 * are not ASCII pass as they are: whoever shows a value has to see to them.
 */
bool git_value_is_plain(const char *text);

/* As git_value_is_plain, with line ends and tabs. */
bool git_value_is_lines(const char *text);

/* What git takes for true or false; NULL is a key without '='. */
bool git_value_is_bool(const char *text);

/* A decimal number, perhaps with sign and k, m or g. */
bool git_value_is_number(const char *text);

/* Colours and attributes of text: words, numbers, #rrggbb. */
bool git_value_is_color(const char *text);

/* A key to sort by, or several: `-committerdate`. */
bool git_value_is_sort(const char *text);

/* A path below the work tree. */
bool git_value_is_below(const char *text);

/* One of the words, which are separated by '|'. */
bool git_value_is_word(const char *text, const char *words);

/*
 * git-check-ref-format(1), of one or more components, and nothing that a file system or a shell
 * would take for something else: no "." or ".." anywhere as a component, no "-" at the start.
 */
bool git_value_is_ref(const char *name);

/*
 * A name that a remote of a new section may have. No '/' or ':', for git looks a path or URL that
 * a person types up among the names of remotes first.
 */
bool git_value_is_remote(const char *name);

/* A submodule's name: git makes a path below modules/ of it. */
bool git_value_is_module(const char *name);

/* Fetches into refs/remotes/, and nowhere where the user's own branches and tags are. */
bool git_value_is_fetch(const char *refspec);

/* Pushes something to a reference, and deletes none. */
bool git_value_is_push(const char *refspec);

/* Remote helpers (`x::y`, `x://`) are programs; only the protocols that git has built in are no. */
enum git_url git_value_url(const char *url);
