/*
 * The text of a repository's git configuration as three: `before` at the start of a task, `after`
 * what the task made of it, `now` what the host has meanwhile. What the task changed is applied to
 * `now` key by key where git_key.def allows it; the rest of the host's text stays byte for byte.
 * Everything else is held. Pure; memory comes from the arena, texts are borrowed.
 *
 * Keys are compared as git does: by name, each with the list of its values in order. Held are:
 *   - a key that is not on the list, or a value that its check refuses;
 *   - a key that the host changed too, to something else;
 *   - what leads a push or fetch of the user's elsewhere: another or further URL of a remote that
 *     has one, another remote of a branch that has one (its new name, after a rename, is the same);
 *   - a URL that is a path, of a remote: pushing there runs the hooks of whoever made it. One that
 *     the user's configuration has already may be repeated;
 *   - what would leave a remote without a URL in use, for git then takes its name for a path in the
 *     work tree.
 * A remote that was removed may be made anew with another URL only by another task: `before` has to
 * be the text at the start of the task for as long as it lives, or what was applied to it.
 */
#pragma once

#include "workspace/git_config_read.h"

struct arena;
struct error;

/* Some thousand branches with all that git notes about each; what is larger is held as a whole. */
#define GIT_CONFIG_LIMIT_BYTES (1024u * 1024)
/* Of one text; each costs some hundred bytes of memory. */
#define GIT_CONFIG_LIMIT_ENTRIES 20000u

enum git_config_reason {
	GIT_CONFIG_KEY,	      /* the key is not on the list */
	GIT_CONFIG_VALUE,     /* the value, or the name of the subsection, is not safe */
	GIT_CONFIG_REDIRECT,  /* leads what the user has elsewhere */
	GIT_CONFIG_DEPENDENT, /* is of no use, or harms, without something that is held or in use */
	GIT_CONFIG_CONFLICT,  /* changed on the host meanwhile */
};

/*
 * One difference of one value; a key with several comes several times, in order. Texts are what
 * the task or the user wrote: with control bytes, for whoever shows them. A key without '=' comes
 * as "true", which it is to git.
 */
struct git_config_held {
	const char *key;	    /* "core.fsmonitor", "remote.x.url" */
	const char *before, *after; /* NULL: absent */
	enum git_config_reason reason;
};

struct git_config_merge {
	const char *text; /* the host's new text; NULL: nothing to write */
	size_t length;
	struct git_config_held *held;
	size_t held_count;
};

/*
 * -EFBIG above a limit, -EBADMSG when git could not read one of the texts (the message says which,
 * and the line): the whole file is to be held. -ENOMEM.
 */
int git_config_merge(struct arena *arena, struct git_text before, struct git_text after,
		     struct git_text now, struct git_config_merge *ret, struct error *error);

/* What to tell a person: "changed on the host meanwhile". */
const char *git_config_reason_text(enum git_config_reason reason);

/* True for a key that a task may change at all; names as in struct git_config_reader. */
bool git_config_allows(const char *section, const char *key);
