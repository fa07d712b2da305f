/*
 * The recorder: the sink that writes the events of one task to its chain (docs/TRACE.md). It has
 * the chain's file, the digest of the last record and what is to be masked; one thread, one task.
 *
 * recorder_begin() comes before anything of the task: the chain's file, and the ledger's record
 * that there is a task. Where that cannot be written, nothing may start. event_end() comes last:
 * the record task.end, and the ledger's. In between the file is locked (flock(2)), which tells a
 * task that lives from one whose supervisor died.
 *
 * A record that could not be written (a full disk) is lost, counted and told in `task.end`; what
 * was acknowledged before stays, and the chain goes on behind it.
 */
#pragma once

#include "trace/chain.h"
#include "trace/event.h"
#include "trace/identify.h"
#include "trace/mask.h"
#include "trace/store.h"

#include <stdbool.h>
#include <stdint.h>

struct error;

struct recorder {
	struct event_sink sink; /* hand this on */
	struct trace_store store;
	struct chain_origin origin;
	struct chain chain;
	struct mask mask;
	const char *task; /* borrowed */
	char policy_kept[SHA256_HEX_BYTES];
	struct identify identify;
	int blobs_fd;	 /* of the task; -1: nothing was kept yet */
	int prepared_fd; /* for the next blob; -1: none yet; below: none can be had */
	uint64_t seen_ns, seen_wall_ns; /* both clocks at the last look at them */
	uint64_t actions, lost, held;	/* held: not written yet */
	bool is_begun;
	bool has_spare; /* one was left for the next task */
};

#define RECORDER_NONE                                  \
	((struct recorder){ .store = TRACE_STORE_NONE, \
			    .chain = CHAIN_NONE,       \
			    .identify = IDENTIFY_NONE, \
			    .blobs_fd = -1,            \
			    .prepared_fd = -1 })

struct recorder_options {
	int state_fd;
	const char *task; /* borrowed until recorder_close() */
	char *const
		*environment; /* the caller's: values of secret variables are masked everywhere */
	struct arena *arena;  /* borrowed as well: the memory of lines; NULL: the heap */
};

/* Leaves nothing when it fails. The recorder must not move any more. */
int recorder_begin(struct recorder *recorder, const struct recorder_options *options,
		   struct error *error) __attribute__((warn_unused_result));

/*
 * For a task whose supervisor died: cuts off what it left torn, marks the end, in its chain and in
 * the ledger. A task that has no chain, or one that has ended, stays as it is; -EBUSY: it lives.
 */
int recorder_bury(int state_fd, const char *task, struct error *error);

void recorder_close(struct recorder *recorder);

#define CLEANUP_RECORDER __attribute__((cleanup(recorder_close)))
