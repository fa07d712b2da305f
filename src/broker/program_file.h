/*
 * Which file the first word of a command leads to in a box, told from outside by its view: rules
 * about programs (policy/verdict.h) go by the file and not by the name alone. Links, ".." and what
 * /proc has of processes are followed as the box has them: each name is looked up in the view.
 *
 * Looked at before the start, so it is UX and no boundary: what a task has made since, or in a
 * layer of its own, is not seen, and then nothing is known of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct classify;
struct policy;

struct program_file {
	const char *word, *cwd; /* looked up there */
	bool found;
	uint64_t device, inode;
	const char *place; /* on the host, without links */
};

struct program_files {
	const struct policy *policy;
	const char *path; /* PATH of the action */
	const char *cwd;
	const struct classify
		*classify; /* where a "cd" before may have led; NULL: only cwd counts */
	struct arena *arena;
	struct program_file *rows;
	size_t count;
};

/* environ: of the action; NULL: the policy's. */
void program_files_begin(struct program_files *files, const struct policy *policy,
			 const char *const *environ, const char *cwd, struct arena *arena);

/*
 * As verdict_facts.is_program and digest: a path that may stand in several directories is denied
 * for any of them, and allowed for all; context is a struct program_files.
 */
bool program_files_match(void *context, const char *named, const char *word, bool surely);
const char *program_files_digest(void *context, const char *word);
