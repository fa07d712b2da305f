/*
 * The edge supervisor-sign. What bawn-sign is for stands in its sealed memfd, one byte; each kind
 * is a process of its own, and none does what is another's:
 *
 *   make   the key directory is its first further descriptor. It makes SIGN_KEY_NEW there, which
 *          its caller gives its name: SIGN_MADE {public key}
 *   head   the same descriptor; it opens SIGN_KEY in it. SIGN_READY, then one request:
 *          SIGN_HEAD {installation, seq, hash} -> SIGN_SIGNATURE {public key, signature}
 *   check  nothing further. Any number of SIGN_CLAIMS {claim...} -> SIGN_VERDICTS {byte...}, 1 for
 *          a signature that is good, 0 for any other
 *
 * SIGN_FAILED {text} in the place of an answer says why there is none; nothing follows it.
 *
 * Fields have fixed places and lengths and no NUL; numbers are in the host's order, as both ends
 * are on one host. What is signed is made by bawn-sign from the fields (docs/TRACE.md), so that
 * nothing but a ledger's head can be.
 */
#pragma once

enum sign_kind { SIGN_KIND_MAKE = 'm', SIGN_KIND_HEAD = 'h', SIGN_KIND_CHECK = 'c' };

enum {
	SIGN_MADE = 1,
	SIGN_READY,
	SIGN_HEAD,
	SIGN_SIGNATURE,
	SIGN_CLAIMS,
	SIGN_VERDICTS,
	SIGN_FAILED,
};

/* Names in the key directory. */
#define SIGN_KEY "sign"
#define SIGN_KEY_NEW "sign.new"

#define SIGN_PUBLIC_BYTES 32 /* Ed25519, RFC 8032 */
#define SIGN_SIGNATURE_BYTES 64
#define SIGN_INSTALLATION_BYTES 32 /* digits */
#define SIGN_HASH_BYTES 64	   /* digits */

/* A head, and a claim: the public key, the head and the signature. */
#define SIGN_AT_SEQ SIGN_INSTALLATION_BYTES
#define SIGN_AT_HASH (SIGN_AT_SEQ + 8)
#define SIGN_HEAD_BYTES (SIGN_AT_HASH + SIGN_HASH_BYTES)
#define SIGN_CLAIM_BYTES (SIGN_PUBLIC_BYTES + SIGN_HEAD_BYTES + SIGN_SIGNATURE_BYTES)
/* As many as a message takes. */
#define SIGN_LIMIT_CLAIMS (4096 / SIGN_CLAIM_BYTES)
