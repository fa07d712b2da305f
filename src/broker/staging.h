/*
 * Staging: what a task changed in a workspace that was staged for it (PATH_STAGE) stays when the
 * task has ended, as a stage in the state directory (workspace/stage_store.h), until a person
 * applies or drops it. Nothing of it is brought to the host here, and nothing of what its git did.
 */
#pragma once

#include "trace/change.h"
#include "trace/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct effective;
struct error;
struct plan_op;
struct state;

/* Of an ephemeral one nothing stays: it has the same layers, and no stage. */
bool staging_is_on(const struct effective *effective);

/* What the task writes in its workspace goes to a layer: it is staged, or ephemeral. */
bool staging_is_layered(const struct effective *effective);

/*
 * A workspace that can have no layer, or a git directory of it that lies elsewhere, is copied as
 * the operation says (workspace/stage_copy.h); its target is there, and empty. -EFBIG where it is
 * too large for that, and the error names the limit.
 */
int staging_copy(const struct effective *effective, const struct plan_op *op, struct arena *arena,
		 struct result_copied *copied, struct error *error)
	__attribute__((warn_unused_result));

/* Deeply, in the arena; NULL without memory, and where the workspace was not copied after all. */
const struct result_copied *staging_tell(const struct result_copied *copied, struct arena *arena);

/* The box is made and nothing of the task has run in it. copied: started_ns 0 where it was not. */
int staging_begin(const struct effective *effective, int task_fd,
		  const struct result_copied *copied, struct error *error)
	__attribute__((warn_unused_result));

/*
 * Of a copied workspace: what the task changed so far becomes its layer's. Before whatever follows
 * is asked, and best while nothing of the task runs.
 */
int staging_settle(const struct effective *effective, int task_fd, struct error *error)
	__attribute__((warn_unused_result));

/* Whether there will be a stage. */
bool staging_has_news(const struct effective *effective, int task_fd);

/* Whether the task changed something, its git included, that is gone with it. */
bool staging_has_ephemeral(const struct effective *effective, int task_fd);

/* The layer over the workspace that the task writes to; a descriptor. -1 where there is none. */
int staging_open(const struct effective *effective, int task_fd);

/* Of changed files that are read for their digests, together: a third of a second of work. */
#define STAGING_LIMIT_READ_BYTES (512ull * 1024 * 1024)

struct staging_list {
	struct change *changes; /* the arena's; at most CHANGE_LIMIT */
	size_t count;
	uint64_t unlisted; /* more of them */
	const char *cut;   /* static: why none is listed, though all is kept; NULL: they are */
};

/*
 * What the task changed since then by the clock that stamps files (0: so far), of an ephemeral
 * workspace too. None of its processes runs meanwhile.
 */
int staging_list(const struct effective *effective, int task_fd, int64_t since_ns,
		 struct arena *arena, struct staging_list *ret_list, struct error *error)
	__attribute__((warn_unused_result));

/* The box is gone: 1 where the task's directory became a stage, 0 where there was nothing. */
int staging_keep(const struct effective *effective, int task_fd)
	__attribute__((warn_unused_result));

/* The same for the directory of a task whose supervisor died; the caller holds its lock. */
int staging_resume(const struct state *state, const char *task) __attribute__((warn_unused_result));
