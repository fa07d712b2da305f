#include "base/hmac.h"

#include <string.h>

#define BLOCK_BYTES 64

static void begin_padded(struct sha256 *hash, const unsigned char key[static BLOCK_BYTES],
			 unsigned char pad)
{
	unsigned char block[BLOCK_BYTES];

	for (size_t i = 0; i < BLOCK_BYTES; i++)
		block[i] = key[i] ^ pad;
	sha256_begin(hash);
	sha256_update(hash, block, sizeof(block));
	explicit_bzero(block, sizeof(block));
}

void hmac_key_set(struct hmac_key *key, const void *bytes, size_t length)
{
	unsigned char block[BLOCK_BYTES] = { 0 };

	if (length > BLOCK_BYTES) {
		struct sha256 hash;

		sha256_begin(&hash);
		sha256_update(&hash, bytes, length);
		sha256_end(&hash, block);
		explicit_bzero(&hash, sizeof(hash));
	} else if (length) {
		memcpy(block, bytes, length);
	}
	begin_padded(&key->inner, block, 0x36);
	begin_padded(&key->outer, block, 0x5c);
	explicit_bzero(block, sizeof(block));
}

void hmac_begin(const struct hmac_key *key, struct sha256 *ret_hash)
{
	*ret_hash = key->inner;
}

void hmac_end(const struct hmac_key *key, struct sha256 *hash,
	      unsigned char digest[static SHA256_BYTES])
{
	unsigned char inner[SHA256_BYTES];

	sha256_end(hash, inner);
	*hash = key->outer;
	sha256_update(hash, inner, sizeof(inner));
	sha256_end(hash, digest);
}
