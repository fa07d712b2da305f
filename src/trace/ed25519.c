#include "trace/ed25519.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define SEED_BYTES 32
/* PrivateKeyInfo of RFC 8410 up to the seed. */
static const unsigned char prefix[16] = { 0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
					  0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20 };
static const char pem_begin[] = "-----BEGIN PRIVATE KEY-----\n";
static const char pem_end[] = "\n-----END PRIVATE KEY-----\n";
#define DER_BYTES (sizeof(prefix) + SEED_BYTES)
#define BASE64_BYTES (DER_BYTES / 3 * 4) /* without a rest, so without padding */
#define BASE64_AT (sizeof(pem_begin) - 1)
#define END_AT (BASE64_AT + BASE64_BYTES)

_Static_assert(DER_BYTES % 3 == 0, "no padding");
_Static_assert(END_AT + sizeof(pem_end) - 1 == ED25519_PEM_BYTES, "the length of the file");

struct ed25519_secret {
	unsigned char der[DER_BYTES];
	char pem[ED25519_PEM_BYTES + 1];
};

/* The library's own heap for secrets: a few copies of a seed. */
#define HEAP_BYTES 16384
#define HEAP_LEAST_BYTES 32
/* What of the stack signing reaches below its caller's frame. */
#define STACK_BYTES 32768

/*
 * libcrypto 3.0 takes a raw private key over into its ordinary heap (ecx_key_fromdata() of its
 * providers). While `is_secret` is set, what has the size of one comes from the heap for secrets;
 * whoever frees it need not know.
 */
static bool is_secret;

static void *give(size_t size, const char *file, int line)
{
	return is_secret && size == SEED_BYTES ? CRYPTO_secure_malloc(size, file, line) :
						 malloc(size);
}

static void take_back(void *memory, const char *file, int line)
{
	if (CRYPTO_secure_allocated(memory))
		CRYPTO_secure_free(memory, file, line);
	else
		free(memory);
}

static void *give_more(void *memory, size_t size, const char *file, int line)
{
	(void)file, (void)line;
	return CRYPTO_secure_allocated(memory) ? NULL : realloc(memory, size);
}

/* A key of nobody's: what the library allocates with its first one is not to look like a secret. */
static bool warm_up(void)
{
	static const unsigned char nobody[ED25519_PUBLIC_BYTES] = { 1 };
	EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, nobody, sizeof(nobody));

	EVP_PKEY_free(key);
	return key != NULL;
}

int ed25519_begin(struct ed25519_secret **ret_secret)
{
	unsigned char *here = __builtin_frame_address(0);

	/* no configuration file is read, which could load other code; nothing runs at the end */
	if (CRYPTO_set_mem_functions(give, give_more, take_back) != 1 ||
	    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
		return -ENOSYS;
	/* 2: done, but not locked */
	if (CRYPTO_secure_malloc_init(HEAP_BYTES, HEAP_LEAST_BYTES) != 1 ||
	    mlock(here - STACK_BYTES, STACK_BYTES) < 0)
		return -ENOMEM;
	if (!warm_up())
		return -ENOSYS;
	*ret_secret = OPENSSL_secure_zalloc(sizeof(**ret_secret));
	return *ret_secret ? 0 : -ENOMEM;
}

int ed25519_make(struct ed25519_secret *secret, const char **ret_pem)
{
	if (getrandom(secret->der + sizeof(prefix), SEED_BYTES, 0) != SEED_BYTES)
		return -EIO;
	memcpy(secret->der, prefix, sizeof(prefix));
	memcpy(secret->pem, pem_begin, BASE64_AT);
	/* it writes a NUL behind, whose place the end takes */
	(void)EVP_EncodeBlock((unsigned char *)secret->pem + BASE64_AT, secret->der, DER_BYTES);
	memcpy(secret->pem + END_AT, pem_end, sizeof(pem_end));
	*ret_pem = secret->pem;
	return 0;
}

char *ed25519_room(struct ed25519_secret *secret)
{
	return secret->pem;
}

int ed25519_take(struct ed25519_secret *secret, size_t length)
{
	char *text = secret->pem + BASE64_AT;

	if (length != ED25519_PEM_BYTES || memcmp(secret->pem, pem_begin, BASE64_AT) != 0 ||
	    memcmp(secret->pem + END_AT, pem_end, sizeof(pem_end) - 1) != 0)
		return -EBADMSG;
	/* the decoder is lenient about blanks and padding: both make another length of it */
	if (memchr(text, '=', BASE64_BYTES) ||
	    EVP_DecodeBlock(secret->der, (unsigned char *)text, BASE64_BYTES) != (int)DER_BYTES ||
	    memcmp(secret->der, prefix, sizeof(prefix)) != 0)
		return -EBADMSG;
	return 0;
}

EVP_PKEY *ed25519_load(struct ed25519_secret *secret,
		       unsigned char ret_public[static ED25519_PUBLIC_BYTES])
{
	size_t length = ED25519_PUBLIC_BYTES;
	EVP_PKEY *key;

	is_secret = true;
	key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret->der + sizeof(prefix),
					   SEED_BYTES);
	is_secret = false;
	OPENSSL_cleanse(secret, sizeof(*secret));
	if (key && (EVP_PKEY_get_raw_public_key(key, ret_public, &length) != 1 ||
		    length != ED25519_PUBLIC_BYTES)) {
		EVP_PKEY_free(key);
		return NULL;
	}
	return key;
}

bool ed25519_sign(EVP_PKEY *key, const char *text, size_t length,
		  unsigned char ret_signature[static ED25519_SIGNATURE_BYTES])
{
	size_t size = ED25519_SIGNATURE_BYTES;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool is_done = context && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
		       EVP_DigestSign(context, ret_signature, &size, (const unsigned char *)text,
				      length) == 1 &&
		       size == ED25519_SIGNATURE_BYTES;

	EVP_MD_CTX_free(context);
	return is_done;
}

void ed25519_unload(EVP_PKEY *key)
{
	EVP_PKEY_free(key);
}

bool ed25519_is_good(const unsigned char public[static ED25519_PUBLIC_BYTES], const char *text,
		     size_t length, const unsigned char signature[static ED25519_SIGNATURE_BYTES])
{
	EVP_PKEY *key =
		EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public, ED25519_PUBLIC_BYTES);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool is_good = key && context &&
		       EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
		       EVP_DigestVerify(context, signature, ED25519_SIGNATURE_BYTES,
					(const unsigned char *)text, length) == 1;

	EVP_MD_CTX_free(context);
	EVP_PKEY_free(key);
	return is_good;
}
