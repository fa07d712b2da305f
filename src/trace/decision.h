/*
 * What a person does with a task's change after its end (`bawn apply`, `discard`, `review accept`
 * and `reject`), on record: two records of the ledger (docs/TRACE.md), "decision" before anything
 * is done and "decision.end" after it, which names the first by its hash. Both are on the disk
 * when the call returns. A decision without an outcome was killed in the middle.
 *
 * Errors: negative errno with a message. Where the first cannot be written nothing may be done.
 */
#pragma once

#include "base/sha256.h"
#include "trace/chain.h"
#include "trace/mask.h"
#include "trace/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

/* Of one record; what is beyond is counted. A path may be 64 KiB, six bytes each in JSON. */
#define DECISION_LIMIT_ITEMS 1024u
#define DECISION_LIMIT_BYTES (4u * 1024 * 1024)
#define DECISION_LIMIT_OUTCOMES 16u

/* One thing that is decided about. Words are the caller's; strings are borrowed. */
struct decision_item {
	const char *path; /* of the host */
	const char *kind, *outcome;
	const char *reason; /* NULL: none */
	const char *review; /* the id of `bawn review`; NULL: none */
	const char *key;    /* of a configuration file; NULL: none */
	/* SHA-256 of a file's bytes; "": no file, or not known */
	char before[SHA256_HEX_BYTES], after[SHA256_HEX_BYTES];
};

struct decision_list {
	struct decision_item *items; /* in the caller's arena */
	size_t count, total;	     /* total: with those that are only counted */
	struct decision_tally {
		const char *outcome;
		size_t count;
	} tallies[DECISION_LIMIT_OUTCOMES];
};

/* Adds it, or only counts it where there are too many. 0 or -ENOMEM. */
int decision_list_add(struct decision_list *list, struct arena *arena,
		      const struct decision_item *item) __attribute__((warn_unused_result));

/* Counts one of the outcome, a word that lasts as long as the list. */
void decision_list_tally(struct decision_list *list, const char *outcome);

/* What was asked for; strings are borrowed as long as the decision is. */
struct decision_asked {
	const char *task, *verb;
	const char *workspace;	  /* NULL: of no single one */
	const char *const *paths; /* those that were named */
	size_t path_count;
	bool overwrites, is_resumed;
};

struct decision {
	struct trace_store store;
	struct mask mask;
	struct chain_origin origin;
	struct decision_asked asked;
	char intent[SHA256_HEX_BYTES]; /* "": nothing is on record yet */
};

#define DECISION_NONE ((struct decision){ .store = TRACE_STORE_NONE })

/* Opens the trace below the state directory, made where there is none. */
int decision_open(int state_fd, const struct decision_asked *asked, struct decision *ret_decision,
		  struct error *error) __attribute__((warn_unused_result));

/* Before anything is done: what is to be. */
int decision_intend(struct decision *decision, const struct decision_list *list,
		    struct error *error) __attribute__((warn_unused_result));

/* Behind it: what was done, and what ended it before its end (failure; NULL: nothing). */
int decision_settle(const struct decision *decision, const struct decision_list *list,
		    const char *failure, struct error *error) __attribute__((warn_unused_result));

void decision_close(struct decision *decision);

#define CLEANUP_DECISION __attribute__((cleanup(decision_close)))
