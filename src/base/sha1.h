/*
 * SHA-1 (FIPS 180-4) without a library, for git's own checksums and for nothing that must resist
 * anybody. Pure.
 */
#pragma once

#include <stddef.h>

#define SHA1_BYTES 20

void sha1(const void *bytes, size_t length, unsigned char digest[static SHA1_BYTES]);
