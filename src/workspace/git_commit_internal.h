/* What the parts of the commit engine, git_commit*.c, share. */
#pragma once

#include "base/arena.h"
#include "workspace/git_commit.h"
#include "workspace/git_file.h"
#include "workspace/git_name.h"
#include "workspace/git_object.h"
#include "workspace/git_ref.h"
#include "workspace/git_upper.h"

#define GIT_RUN_CHANGED "the host changed it meanwhile"
#define GIT_RUN_MISSING "the object that it names is missing"

struct git_piece {
	const struct git_upper_entry *entry;
	const char *path; /* below the area */
	enum git_class class;
	bool is_done;
};

/* The covered directory itself, or a worktree's or module's git directory in it. */
struct git_area {
	const char *prefix; /* "" or "worktrees/x/" */
	bool is_worktree, is_new;
	bool is_head_held;
	const char *fault; /* nothing of it is applied */
	struct git_target target;
	int fd;			 /* owned; of target */
	struct git_piece *items; /* sorted by path */
	size_t count;
	struct git_objects objects; /* of its repository; opened by git_run_has_object() */
	bool has_host_packed;	    /* of the host's packed-refs, as it was then */
	struct git_packed host_packed;
	struct stat host_packed_status;
};

struct git_run {
	const struct git_commit *commit;
	struct arena *arena;
	struct arena scratch; /* of one file */
	struct git_commit_result *result;
	struct error *error;
	int journal_fd;
	/* of the cover at hand */
	const struct git_cover *cover;
	unsigned number;
	const struct git_snapshot_part *before;
	struct git_upper upper;
	struct git_area **areas;
	size_t area_count;
	const char **held_refs; /* with the area's prefix */
	size_t held_ref_count;
	size_t id_bytes;
	const bool *is_whole; /* of each cover: its layer is held as it is */
	uint64_t work_bytes;  /* left for looking through objects */
};

/* The content of an item's file, in the scratch arena. */
int git_run_read(struct git_run *run, const struct git_area *area, const struct git_piece *item,
		 size_t limit_bytes, struct git_text *ret_text);

/* The area's item of this path; NULL where the task left it alone. */
struct git_piece *git_run_item(const struct git_area *area, const char *path);

/* What was there at the start; NULL: nothing. */
const struct git_state *git_run_state(const struct git_run *run, const struct git_area *area,
				      const char *path);

/* True when the host's file is the one of the start. status NULL: there is none now. */
bool git_run_is_unchanged(const struct git_run *run, const struct git_area *area, const char *path,
			  const struct stat *status);

/* True when the host has not touched this since before the start. */
bool git_run_is_settled(const struct git_run *run, const struct stat *status);

/*
 * Holds an item, or a reference's change (item NULL). Its content and the host's are kept with it.
 * Silent where the host has the same content, or removes what is not there.
 */
int git_run_hold(struct git_run *run, struct git_area *area, struct git_piece *item,
		 const char *reason);
int git_run_hold_value(struct git_run *run, struct git_area *area, struct git_held held);

/* Holds it for a failure that is the item's; gives back one that is the system's (a full disk). */
int git_run_failed(struct git_run *run, struct git_area *area, struct git_piece *item, int code);

/* What a failure means for one item, in words; NULL: it is the system's. */
const char *git_run_reason(int code);

/* An outcome of the cover at hand; its texts have to live as long as the run. */
int git_run_add_outcome(struct git_run *run, struct git_outcome outcome);
int git_run_applied(struct git_run *run, const struct git_area *area, const char *path,
		    enum change_kind kind);

/* Makes the host's file this text, if it is the one of the start. */
int git_run_put(struct git_run *run, struct git_area *area, struct git_piece *item,
		struct git_text text);
/* Removes the host's file, if it is the one of the start. */
int git_run_remove(struct git_run *run, struct git_area *area, struct git_piece *item);

/* Of the cover at hand: its areas, each with what was changed in it. */
int git_run_place(struct git_run *run);

/* Applies or holds all of an area. */
int git_run_apply(struct git_run *run, struct git_area *area);

/* Makes an empty directory in the covered directory, out of git's sight. */
int git_run_aside(struct git_run *run, const char *what, const char **ret_name);

/* References (git_commit_ref.c): new values, then HEAD, then what is gone, then other logs. */
struct git_ref_changes;
int git_run_refs(struct git_run *run, struct git_area *area, struct git_ref_changes **ret_changes);
/* value: an id or "ref: ..."; an id names an object that may be there. */
bool git_run_has_object(struct git_run *run, struct git_area *area, const char *value);
int git_run_head(struct git_run *run, struct git_area *area);
/* HEAD, or the branch that the host's names, is held. */
bool git_run_is_head_held(struct git_run *run, struct git_area *area);
/* Or the branch that the task's names. */
bool git_run_is_commit_held(struct git_run *run, struct git_area *area);
int git_run_gone_refs(struct git_run *run, struct git_area *area, struct git_ref_changes *changes);
int git_run_logs(struct git_run *run, struct git_area *area);

/* The others, each in a file of its name. */
int git_run_index(struct git_run *run, struct git_area *area, struct git_piece *item);
int git_run_config(struct git_run *run, struct git_area *area, struct git_piece *item);
int git_run_sequences(struct git_run *run, struct git_area *area);
int git_run_objects(struct git_run *run, struct git_area *area);
int git_run_worktrees_gone(struct git_run *run, struct git_area *area);
/* Says why a new worktree or module may not be made; NULL: it may. */
const char *git_run_area_fault(struct git_run *run, struct git_area *area);
/* Of its links alone, where the task wrote them. */
const char *git_run_commondir_fault(struct git_run *run, struct git_area *area);
const char *git_run_gitdir_fault(struct git_run *run, struct git_area *area);
/* The work tree that a link (gitdir, core.worktree) of an area names lies in the workspace. */
bool git_run_is_inside(struct git_run *run, const struct git_area *area, const char *path);
