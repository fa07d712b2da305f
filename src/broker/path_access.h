/*
 * What a task may do with one path: the plan's answer (plan/access.h) for where the path leads in
 * the box, links and ".." followed as the kernel would in the box, by the files that the host has
 * now. Starts nothing and opens no file for reading; what a task makes is not known here.
 *
 * Names below a workspace are anybody's: each is opened by O_PATH beneath what stands before it,
 * no link followed by the kernel, so that neither FIFOs nor links to elsewhere matter.
 */
#pragma once

#include "plan/access.h"

#include <stddef.h>

struct arena;
struct effective;
struct error;

enum path_presence { PATH_NOT_THERE, PATH_THERE, PATH_NOT_KNOWN };

struct path_access {
	const char *asked; /* as given */
	const char *path;  /* in the box, links followed; clean */
	/* what was followed, each "/a/link -> text" */
	const char **links;
	size_t link_count;
	struct access access;
	enum path_presence presence; /* at the start of a task */
	const char *kind;    /* "file", "directory" ...; NULL: nothing is there, or unknown */
	const char *source;  /* on the host; NULL: not the host's */
	bool reads, writes;  /* the wall and, of an ordinary caller, the modes of the file */
	const char *refusal; /* which of the two modes are against, in words; NULL: neither */
};

/* Relative paths begin in the policy's directory, "~/" in the box's home. -EINVAL, -ELOOP. */
int path_access_find(const struct effective *effective, const char *asked, struct arena *arena,
		     struct path_access *ret, struct error *error);

/*
 * What "root" and "cwd" of a process in /proc lead to: where the processes of a box are, its root
 * and that directory. NULL: the path is none of them.
 */
const char *path_process_link(const char *path, const char *cwd);

/* "there", "not there", "not known" */
const char *path_presence_word(enum path_presence presence);
