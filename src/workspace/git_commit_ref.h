/*
 * What the commit engine's parts for references share: git_commit_collect.c finds what the task
 * changed, _ref.c sets new values, one by one, _packed.c many at once, _gone.c removes, _head.c and
 * _log.c are for HEAD and the logs. For them alone.
 */
#pragma once

#include "workspace/git_commit_internal.h"

/* What the task did to the file of a reference: nothing, a value, or it is gone. */
enum loose { LOOSE_SAME, LOOSE_VALUE, LOOSE_GONE };

/* A reference whose value the task may have changed. Values NULL: it does not exist. */
struct ref_change {
	const char *name;
	enum loose loose;
	const char *value;	/* of LOOSE_VALUE */
	struct git_piece *item; /* NULL: of packed-refs */
	const char *old, *new;
	bool is_late; /* something else of its name must go first */
	bool is_over;
};

struct git_ref_changes {
	struct ref_change *changes;
	size_t count;
	struct git_packed start, task;
	bool has_packed_item; /* the task changed packed-refs */
	bool is_start_known;
};

/* Finds what changed, with the values of the start and the task's. */
int git_run_collect_refs(struct git_run *run, struct git_area *area,
			 struct git_ref_changes *changes);

/* Two values, of which either may be NULL. */
bool git_run_is_same_value(const char *a, const char *b);
/* "refs/remotes/x/HEAD", which may be symbolic. */
bool git_run_is_head(const char *name);
const char *git_run_state_value(struct git_run *run, const struct git_state *state);
const char *git_run_packed_value(struct git_run *run, const struct git_packed *packed,
				 const char *name);
/* What the host has packed, until it packs anew; valid until the run's end. */
int git_run_host_packed(struct git_run *run, struct git_area *area,
			const struct git_packed **ret_packed);
/* The host's value now: under its lock it stays. */
int git_run_host_value(struct git_run *run, struct git_area *area, const char *name,
		       const char **ret_value);

/* A reference and one below it cannot both be: of packed ones no file system says so. */
bool git_run_has_room(const struct git_packed *packed, const char *name);

/* Holds a change, or for a failure that is its own; gives back one that is the system's. */
int git_run_hold_ref(struct git_run *run, struct git_area *area, struct ref_change *change,
		     const char *reason);
int git_run_ref_failed(struct git_run *run, struct git_area *area, struct ref_change *change,
		       int code);
bool git_run_is_ref_held(const struct git_run *run, const char *prefix, const char *name);

/* True where the host has what the task started from; otherwise the change is over. */
int git_run_may_change(struct git_run *run, struct git_area *area,
		       const struct git_ref_changes *changes, struct ref_change *change,
		       bool *ret_may);
/* The log first, then the value, by the lock that is held. */
int git_run_write_value(struct git_run *run, struct git_area *area, const char *name,
			const char *value, struct git_lock *lock);
/* What is not over yet and has a new value. */
int git_run_set_refs(struct git_run *run, struct git_area *area, struct git_ref_changes *changes);
/* The same for many that the host has in no file of their own; what it leaves is set one by one. */
int git_run_set_packed(struct git_run *run, struct git_area *area, struct git_ref_changes *changes);

/* The log of a reference whose lock is held. */
int git_run_take_log(struct git_run *run, struct git_area *area, struct git_piece *item);
/* NULL where there is none, or it was taken. */
struct git_piece *git_run_log_of(struct git_run *run, const struct git_area *area,
				 const char *name);
