/* What the parts of applying a stage share. For them alone. */
#pragma once

#include "workspace/stage_apply.h"
#include "workspace/stage_internal.h"

/* Whether a path is another one, or lies below it; both below the workspace. */
bool stage_is_under(const char *path, const char *root);

/* All changes, each with what is to become of it. */
int stage_apply_judge(const struct stage_apply *apply, struct arena *arena,
		      struct stage_applied *ret_applied, struct error *error);

/* Writes to the host. */
struct stage_writer {
	const struct stage_kept *kept;
	int temporary_fd; /* the directory of its own; -1: not yet */
	int pending_fd;	  /* the journal */
	char *parent;	  /* STAGE_LIMIT_PATH_BYTES */
};

#define STAGE_WRITER_NONE ((struct stage_writer){ .temporary_fd = -1, .pending_fd = -1 })

int stage_writer_begin(struct stage_writer *writer, const struct stage_kept *kept,
		       struct error *error);

/*
 * One item: a directory is made, everything else is made or replaced, or removed. 0 with the
 * item's outcome set, or what ends the work: -ENOSPC, -EDQUOT, -EROFS, -EIO, -ENOMEM.
 */
int stage_writer_put(struct stage_writer *writer, struct stage_item *item);
int stage_writer_remove(struct stage_writer *writer, struct stage_item *item);

/* A directory's permissions, when all that is in it is done. */
int stage_writer_set_mode(struct stage_writer *writer, struct stage_item *item);

void stage_writer_end(struct stage_writer *writer);

/* Takes what was applied out of the stage; what cannot go is the host's already. */
void stage_prune(const struct stage_kept *kept, const struct stage_item *item, char *parent);

/* The directory of a path, opened beneath the root; the path's last name. */
int stage_open_parent(int root_fd, const char *path, char *parent, const char **ret_name);
