/*
 * Policy files and presets, from the disk to a document (policy/document.h).
 *
 * A file must be nobody else's to change: a regular file of the caller's or root's, written by no
 * other user, reached by directories and links that others cannot change (policy_way.h). Where it
 * may not lie (in what a task can write) is judged by whoever knows the view. The text is read by
 * bawn-parse; what it says is kept by the text's hash, in the state directory, and of managed
 * policies where only root can write: what binds somebody is not believed from a place of theirs.
 */
#pragma once

#include "ipc/parse.h"
#include "policy/document.h"

struct arena;
struct error;
struct caller;

struct policy_file {
	struct document document;
	const char *text; /* as it was read; NULL: kept of the same file, so it was not read */
	size_t length;
	const char *path;   /* without links; NULL: a preset */
	const char **links; /* on the way to it, each in a directory without links */
	size_t link_count;
};

/*
 * state_fd -1: nothing is kept. -EINVAL with faults where the text is wrong: then the error has the
 * first one. -EPERM for a file of somebody else, -ENOENT and so on.
 */
int policy_file_load(const struct caller *host, const char *path, int state_fd, struct arena *arena,
		     struct policy_file *ret_file, struct document_faults *faults,
		     struct error *error);

/*
 * The same of a file that is open already, whose place and owner the caller has judged; the path
 * is for rules and messages, and borrowed.
 */
int policy_file_take(const struct caller *host, int fd, const char *path, int state_fd,
		     struct arena *arena, struct policy_file *ret_file,
		     struct document_faults *faults, struct error *error);

/* A file or preset with what it goes on from. */
struct policy_stack {
	struct policy_file files[2]; /* in the order in which they count */
	size_t count;
	struct document document; /* all of it */
};

/*
 * The file (path; NULL: none) on the preset (NULL: the one that the file names, if any). -EINVAL
 * also where both name a preset, and not the same.
 */
int policy_stack_load(const struct caller *host, const char *path, const char *preset, int state_fd,
		      struct arena *arena, struct policy_stack *ret_stack,
		      struct document_faults *faults, struct error *error);

/* The same of a file that is loaded already; NULL: the preset alone. */
int policy_stack_make(const struct caller *host, const struct policy_file *file, const char *preset,
		      int state_fd, struct arena *arena, struct policy_stack *ret_stack,
		      struct error *error);

/*
 * The outline of any text of YAML or JSON (PARSE_OUTLINE), of TOML (PARSE_TOML) or of Codex's rules
 * (PARSE_RULES), by the role; a fault of it stands in the outline.
 */
int policy_outline(enum parse_kind kind, const char *text, size_t length, struct arena *arena,
		   struct outline *ret_outline, struct error *error);

/* A built-in one; -EINVAL where there is none of the name. */
int policy_file_preset(const struct caller *host, const char *name, int state_fd,
		       struct arena *arena, struct policy_file *ret_file, struct error *error);
