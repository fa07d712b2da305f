/*
 * The caller's git identity: what of ~/.gitconfig goes into the box's private home. Only keys on
 * an allowlist (name, e-mail, and settings that run nothing, include nothing and hold no secret).
 *
 * The text is foreign: it is read by a role of its own (bawn-parse), which gives back the new
 * text in a sealed memfd. The answer is kept in the state directory under a name made of the
 * files' identities, so that a start spawns the role only after the configuration has changed.
 */
#pragma once

#include <stdbool.h>

struct arena;
struct error;
struct caller;

/* A git configuration is some kilobytes; what is larger is refused. */
#define IDENTITY_LIMIT_BYTES (256u * 1024)
/* Less than four times the source: `a=` with its newline becomes `<TAB>a = ""` with it. */
#define IDENTITY_LIMIT_RESULT_BYTES (1024u * 1024)

/* What bawn-parse sends: the result is in the one descriptor that comes with it. */
enum identity_message { IDENTITY_RESULT = 1 };

/*
 * Pure: takes the text of a git configuration file and gives the text of a new one with the
 * allowed keys; "" when nothing is left, and for text that git itself would refuse. NULL when
 * memory ran out. Includes are not followed. Keys come out in lower case and values quoted;
 * a value with control bytes is left out. Applied to its own result it changes nothing.
 */
char *identity_filter(struct arena *arena, const char *text);

/* True for a key (both parts in lower case; subsection NULL for none) on the allowlist. */
bool identity_allows(const char *section, const char *subsection, const char *key);

/*
 * Gives the filtered text of ~/.config/git/config and ~/.gitconfig, in this order (git-config(1):
 * the later one wins); "" where there is none. Files are followed through links, and must be
 * regular ones of the caller's or root's: -EPERM otherwise, -EFBIG above the limit. Whatever goes
 * wrong with the role is an error that names the step; text that was not filtered is never given.
 */
int identity_load(const struct caller *host, int state_fd, struct arena *arena, char **ret_text,
		  struct error *error);
