/*
 * Verifying a trace (docs/TRACE.md): that a ledger and chains are what was written, as far as can
 * be told from them, from a public key and from a head that was kept elsewhere. All files are
 * foreign; of each the first bad line is told.
 *
 *	verify_begin, verify_use_key / verify_pin, verify_ledger (where there is one),
 *	verify_chain for each chain, verify_rest (where all chains were given)
 *
 * What proves what: each line the ones before it; a task's last line, the ledger's task.end; the
 * ledger up to a head, that head's signature; the ledger's own end, only a head that was pinned.
 * What a supervisor has not ended yet is unfinished, and no finding.
 *
 * Memory: that of one line, and 64 bytes for each task of the ledger (trace/roster.h).
 */
#pragma once

#include "trace/follow.h"
#include "trace/roster.h"
#include "trace/sign.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/* A pinned head, and the installation's own newest. */
#define VERIFY_LIMIT_PINNED 2

struct verify_hooks {
	void *context;
	/* the first bad line of a file */
	void (*found)(void *context, const char *file, const struct finding *finding);
	/* a task that has no end yet; torn_bytes: of a last line that is not whole */
	void (*unfinished)(void *context, const char *task, uint64_t records, uint64_t torn_bytes);
	/* ret_good[i]: the signature of claims[i] is good. 0 or a negative errno. */
	int (*check)(void *context, const struct sign_claim *claims, size_t count, bool *ret_good,
		     struct error *error);
};

struct verify_counts {
	uint64_t findings;
	uint64_t records; /* of chains */
	uint64_t ledger_records;
	uint64_t heads; /* whose signatures are good */
	uint64_t tasks; /* chains that were looked at */
	uint64_t ended; /* of these: their end is the one that the ledger has */
	uint64_t unfinished;
	uint64_t removed; /* tasks whose removal is on record */
	uint64_t alone;	  /* chains that were looked at without a (good) ledger's word on them */
	uint64_t blobs, blobs_removed;
};

struct verify_pin {
	struct sign_claim claim;
	const char *name; /* borrowed: where it is from */
	bool is_foreign;  /* of another installation */
};

struct verify {
	const struct verify_hooks *hooks; /* borrowed */
	struct error *error;		  /* borrowed: of what keeps us from going on */
	struct verify_counts counts;
	struct verify_pin pins[VERIFY_LIMIT_PINNED];
	size_t pin_count;
	bool has_key;
	unsigned char key[SIGN_PUBLIC_BYTES];
	/* of the ledger */
	bool has_ledger, is_ledger_good;
	struct trace_reader ledger; /* reads records again */
	uint64_t ledger_limit;	    /* where reading it ended: what stands behind came later */
	char ledger_name[256];
	char installation[SIGN_INSTALLATION_BYTES + 1];
	char ledger_last[SHA256_HEX_BYTES];
	struct roster tasks, removed_blobs, decisions;
};

#define VERIFY_NONE ((struct verify){ .ledger = TRACE_READER_NONE })

/* Where the bytes lie that records refer to; -1: there is no such directory. Borrowed. */
struct verify_blobs {
	bool are_wanted; /* else none is looked for */
	int blobs_fd, policies_fd;
};

/* Failures of all below: a negative errno, and the message in `error`, which is borrowed. */
int verify_begin(struct verify *ret_verify, const struct verify_hooks *hooks, struct error *error)
	__attribute__((warn_unused_result));

/* The key that all heads must be signed with; without, it is that of the first head. */
void verify_use_key(struct verify *verify, const unsigned char key[static SIGN_PUBLIC_BYTES]);

/* A head that the ledger must reach, if its signature is good; name: where it is from. */
int verify_pin(struct verify *verify, const struct sign_claim *claim, const char *name)
	__attribute__((warn_unused_result));

/*
 * The ledger, up to limit_bytes (UINT64_MAX: all of it): one that grows is read as it was. name:
 * for findings.
 */
int verify_ledger(struct verify *verify, int directory_fd, const char *path, const char *name,
		  uint64_t limit_bytes) __attribute__((warn_unused_result));

/* The chain of a task; task NULL: whose its first record says. */
int verify_chain(struct verify *verify, int directory_fd, const char *path, const char *name,
		 const char *task, struct verify_blobs blobs) __attribute__((warn_unused_result));

/* After all chains: what the ledger has beyond them is missing, if its removal is not on record. */
int verify_rest(struct verify *verify) __attribute__((warn_unused_result));

/*
 * The tasks of the ledger, in its order: 1 and the id, 0 behind the last. For verifying each by its
 * name; *index begins as 0.
 */
int verify_next_task(struct verify *verify, size_t *index, char ret_task[static 64])
	__attribute__((warn_unused_result));

/* True when the ledger has begun such a task. */
bool verify_knows(struct verify *verify, const char *task);

void verify_end(struct verify *verify);

#define CLEANUP_VERIFY __attribute__((cleanup(verify_end)))
