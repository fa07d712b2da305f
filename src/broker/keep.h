/*
 * What an action read and wrote goes into the record: digests, and the output itself as blobs.
 *
 * After its result stands, since much output takes its time (0.4 GB/s at the least). In a live task
 * others wait meanwhile: there an output of more than KEEP_NOW_BYTES stays in its spool until the
 * task's end.
 */
#pragma once

#include <stdint.h>

struct job;
struct task;

/* Some milliseconds. */
#define KEEP_NOW_BYTES (1024u * 1024)

/* Output that is kept at the end of its task. */
struct keep_later;

/*
 * All of the job's streams, now. After job_conclude(). Each of these: 0 or a negative errno; what
 * was lost is counted in the record as well.
 */
int keep_streams(struct job *job);

/* As above; what is long is added to the list. */
int keep_or_defer(struct job *job, struct keep_later **list);

/* What was deferred, from the spools; empties the list. Before the task's directory goes. */
int keep_deferred(struct task *task, struct keep_later **list);
