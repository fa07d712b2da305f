/*
 * Ed25519 (RFC 8032) by libcrypto, for bawn-sign alone: nothing else of bawn links that library.
 *
 * A private key is a file of one fixed form, PEM around PKCS #8 (RFC 8410), not encrypted: what
 * `openssl genpkey -algorithm ed25519` writes too. It is read and written here byte by byte, so
 * that no parser of a library looks at it. What passes through a struct ed25519_secret stays in
 * locked memory, out of core dumps, and is wiped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define ED25519_PUBLIC_BYTES 32
#define ED25519_SIGNATURE_BYTES 64
#define ED25519_PEM_BYTES 119 /* of the private key's file */

struct ed25519_secret;
struct evp_pkey_st;

/*
 * Once, before a key is there: locks some of the stack and a small heap (64 KiB in all). 0, or
 * -ENOMEM where the caller's limit does not allow that; -ENOSYS: libcrypto does not begin.
 */
int ed25519_begin(struct ed25519_secret **ret_secret) __attribute__((warn_unused_result));

/* A new key, as the text of its file. 0 or a negative errno. */
int ed25519_make(struct ed25519_secret *secret, const char **ret_pem)
	__attribute__((warn_unused_result));

/* Where the text of a file can be read to: ED25519_PEM_BYTES and one more, to see that it ends. */
char *ed25519_room(struct ed25519_secret *secret);

/* The key of the text that is there. -EBADMSG for any other form or algorithm. */
int ed25519_take(struct ed25519_secret *secret, size_t length) __attribute__((warn_unused_result));

/* Hands the key over to the library and wipes the secret. NULL: libcrypto does not take it. */
struct evp_pkey_st *ed25519_load(struct ed25519_secret *secret,
				 unsigned char ret_public[static ED25519_PUBLIC_BYTES]);

bool ed25519_sign(struct evp_pkey_st *key, const char *text, size_t length,
		  unsigned char ret_signature[static ED25519_SIGNATURE_BYTES])
	__attribute__((warn_unused_result));

/* Wipes it. Accepts NULL. */
void ed25519_unload(struct evp_pkey_st *key);

bool ed25519_is_good(const unsigned char public[static ED25519_PUBLIC_BYTES], const char *text,
		     size_t length, const unsigned char signature[static ED25519_SIGNATURE_BYTES]);
