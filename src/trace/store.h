/*
 * Where the trace lies below the state directory (docs/TRACE.md has the layout), reached by
 * descriptors, never through links. All of it is the caller's own, directories 0700, files 0600.
 */
#pragma once

#include <stddef.h>

struct error;

struct trace_store {
	int fd;	      /* <state>/trace, owned */
	int tasks_fd; /* <state>/trace/tasks, owned */
};

#define TRACE_STORE_NONE ((struct trace_store){ .fd = -1, .tasks_fd = -1 })

/* Names below trace_store.fd. */
#define TRACE_LEDGER "ledger"
#define TRACE_BLOBS "blobs"
#define TRACE_POLICIES "policies"
#define TRACE_EXECUTABLES "executables"
#define TRACE_HEAD "head"
#define TRACE_KEY "key"
#define TRACE_SUFFIX ".jsonl"

/*
 * Opens the store below the state directory and makes what is missing. -EPERM for one that is not
 * the caller's own or open to others.
 */
int trace_store_open(int state_fd, struct trace_store *ret_store, struct error *error)
	__attribute__((warn_unused_result));

/* As above, only to read: -ENOENT where there is none yet. */
int trace_store_open_read(int state_fd, struct trace_store *ret_store, struct error *error)
	__attribute__((warn_unused_result));

/* A directory below the store, made where it is missing: its descriptor, or a negative errno. */
int trace_store_below(const struct trace_store *store, const char *name);

/*
 * Writes a new file of ours whole, or not at all; one that is there already is as good. 0 or a
 * negative errno.
 */
int trace_store_put(int directory_fd, const char *name, const void *bytes, size_t length);

/* What to do about a failed write, to be put behind the reason: "; ..."; "" where nobody knows. */
const char *trace_store_remedy(int code);

void trace_store_close(struct trace_store *store);

#define CLEANUP_TRACE_STORE __attribute__((cleanup(trace_store_close)))
