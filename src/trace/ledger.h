/*
 * The ledger of the installation: which tasks there were, where their chains ended, signed heads,
 * what was removed (docs/TRACE.md). Whoever has something to add opens it, which takes its lock,
 * appends and closes it. The lock is held for some system calls, so waiting for it has a bound:
 * a process that was stopped while it held it must not stop all others without a word.
 */
#pragma once

#include "trace/chain.h"

struct error;
struct trace_store;

/* Whoever holds the lock for longer has been stopped. */
#define LEDGER_WAIT_NS (10ull * 1000 * 1000 * 1000)

#define LEDGER_INSTALLATION_BYTES 33 /* 32 digits and a NUL */

/*
 * Opens and locks it; makes it with its first record where there is none, and cuts off what is
 * torn, on record. Appended to by chain_begin(), chain_end() and chain_flush(). -ETIMEDOUT names
 * who holds the lock. origin is borrowed until ledger_close().
 */
int ledger_open(const struct trace_store *store, const struct chain_origin *origin,
		struct chain *ret_ledger, struct error *error) __attribute__((warn_unused_result));

/* The record that a task has begun; ret_hash: what its chain begins with. */
int ledger_task_start(const struct trace_store *store, const struct chain_origin *origin,
		      const char *task, char ret_hash[static SHA256_HEX_BYTES], struct error *error)
	__attribute__((warn_unused_result));

/* The record that a task's chain has ended; type: "task.end" or "task.lost". */
int ledger_task_end(const struct trace_store *store, const struct chain_origin *origin,
		    const char *task, const char *type, uint64_t records, const char *last,
		    struct error *error) __attribute__((warn_unused_result));

/* The installation's id, from the ledger's first record. */
int ledger_installation(const struct trace_store *store,
			char ret_id[static LEDGER_INSTALLATION_BYTES], struct error *error)
	__attribute__((warn_unused_result));
