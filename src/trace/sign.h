/*
 * Signed heads of the ledger (docs/TRACE.md): whoever has one can tell that nothing before it was
 * changed since. The key is bawn-sign's alone (ipc/sign.h); here are only public things.
 *
 * A head is signed at the end of a task when the last one is older than SIGN_AGE_NS, and by
 * `bawn trace head`. A failure is no failure of the task: the ledger goes on without.
 */
#pragma once

#include "ipc/role.h"
#include "ipc/sign.h"
#include "trace/ledger.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct trace_store;

#define SIGN_AGE_NS (60ull * 1000 * 1000 * 1000)
/* A signature takes milliseconds; on a host that is too busy for it nobody waits on. */
#define SIGN_WAIT_MS 5000

/* A signature and what it is over. */
struct sign_claim {
	unsigned char public[SIGN_PUBLIC_BYTES];
	char installation[SIGN_INSTALLATION_BYTES + 1];
	uint64_t seq;
	char hash[SIGN_HASH_BYTES + 1];
	unsigned char signature[SIGN_SIGNATURE_BYTES];
};

/* True when trace/head is missing, or not of the last minute. One fstatat(2). */
bool sign_is_due(const struct trace_store *store);

/*
 * Has the ledger's last record signed, puts that on record and into trace/head. Makes the key where
 * there is none. The ledger is locked for the time of one request to bawn-sign, or some
 * milliseconds where a key is made. Errors name the file and the remedy.
 */
int sign_head(const struct trace_store *store, const struct chain_origin *origin,
	      struct sign_claim *ret_claim, struct error *error)
	__attribute__((warn_unused_result));

/*
 * The same in two steps: most of its time is bawn-sign's start, in which the caller can do what
 * else there is to do at a task's end. Between the two nothing is locked.
 */
struct signing {
	int keys_fd;
	struct role role;
};

#define SIGNING_NONE ((struct signing){ -1, ROLE_NONE })

int sign_start(const struct trace_store *store, const struct chain_origin *origin,
	       struct signing *ret_signing, struct error *error)
	__attribute__((warn_unused_result));

int sign_finish(const struct trace_store *store, const struct chain_origin *origin,
		struct signing *signing, struct sign_claim *ret_claim, struct error *error)
	__attribute__((warn_unused_result));

/* Ends bawn-sign, whatever it does. Accepts SIGNING_NONE. */
void sign_drop(struct signing *signing);

#define CLEANUP_SIGNING __attribute__((cleanup(sign_drop)))

/* The one line of a head, without a newline. */
#define SIGN_LINE_BYTES 400
void sign_line(const struct sign_claim *claim, char ret_line[static SIGN_LINE_BYTES]);

/* Reads such a line; -EBADMSG for anything else. What it says is only claimed. */
int sign_line_read(const char *line, size_t length, struct sign_claim *ret_claim)
	__attribute__((warn_unused_result));

/* The public key as PEM text (RFC 8410), and back: -EBADMSG for anything else. */
#define SIGN_PEM_BYTES 120
void sign_pem(const unsigned char public[static SIGN_PUBLIC_BYTES],
	      char ret_pem[static SIGN_PEM_BYTES]);
int sign_pem_read(const char *text, size_t length,
		  unsigned char ret_public[static SIGN_PUBLIC_BYTES])
	__attribute__((warn_unused_result));

/* The public key of the store. -ENOENT: there is none yet, as in TRACE_STORE_NONE. */
int sign_public(const struct trace_store *store, unsigned char ret_public[static SIGN_PUBLIC_BYTES],
		struct error *error) __attribute__((warn_unused_result));

/* One process that checks any number of signatures; it has no key but those of the claims. */
struct sign_checker {
	struct role role;
};

#define SIGN_CHECKER_NONE ((struct sign_checker){ ROLE_NONE })

int sign_check_begin(struct sign_checker *ret_checker, struct error *error)
	__attribute__((warn_unused_result));

/* ret_good[i]: the signature of claims[i] is its key's, over its head. 0 or a negative errno. */
int sign_check(struct sign_checker *checker, const struct sign_claim *claims, size_t count,
	       bool *ret_good, struct error *error) __attribute__((warn_unused_result));

void sign_check_end(struct sign_checker *checker);

#define CLEANUP_SIGN_CHECKER __attribute__((cleanup(sign_check_end)))
