/*
 * What the verbs about stages share (diff, apply, discard): the state directory, which stages there
 * are, and which one is meant.
 */
#pragma once

#include "base/arena.h"
#include "broker/effective.h"
#include "workspace/stage_store.h"

#include <stddef.h>

struct error;
struct option;

struct stages {
	const char *state_path; /* --state-dir; NULL: the default */
	struct arena arena;
	struct effective effective;    /* its host and state */
	const char **tasks, **applied; /* what waits; what an undo could take back */
	size_t count, applied_count;
};

#define STAGES_NONE ((struct stages){ .effective = EFFECTIVE_NONE })

#define STAGES_STATE_DIR_ROW(id)                                                                 \
	{                                                                                        \
		"--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", \
			false, false, id                                                         \
	}

int stages_take_state(struct stages *stages, const struct option *option, const char *value,
		      struct error *error);

/* Opens the state directory; stages of dead supervisors become ready. -EPERM: inside of a box. */
int stages_begin(struct stages *stages, struct error *error);

/* Whether a word on the command line is meant as a task, and not as a path. */
bool stages_is_task(const char *word);

/*
 * The stage that a word means (an id, or the beginning of one), or without a word the only one of a
 * workspace around the current directory; opened for the use. -ENOENT, -EBUSY, -EBADMSG, with the
 * error set; a damaged one is open where ret_kept->fd is not negative.
 */
int stages_open(struct stages *stages, const char *word, enum stage_store_use use,
		struct stage_kept *ret_kept, const char **ret_task, struct error *error);

/* Whether a word means one of which all was applied. */
bool stages_is_applied(const struct stages *stages, const char *word);

/* That one, opened for a change. */
int stages_open_applied(struct stages *stages, const char *word, struct stage_kept *ret_kept,
			const char **ret_task, struct error *error);

/*
 * The one whose apply is to be taken back, as a word means it, or the only one of a workspace
 * around the current directory: it waits again afterwards, with nothing in it first.
 */
int stages_open_undo(struct stages *stages, const char *word, struct stage_kept *ret_kept,
		     const char **ret_task, struct error *error);

/* The exit status for a failure of these: 1 for what is the person's to settle, else 125. */
int stages_status(int code);

void stages_end(struct stages *stages);
