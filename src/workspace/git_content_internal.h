/* The name of an object while its bytes go by: loose and packed ones alike. */
#pragma once

#include "base/sha1.h"
#include "base/sha256.h"
#include "workspace/git_content.h"

struct git_hash {
	size_t id_bytes;
	struct sha1 sha1;
	struct sha256 sha256;
};

void git_hash_begin(struct git_hash *hash, size_t id_bytes);
void git_hash_update(struct git_hash *hash, const void *bytes, size_t length);
bool git_hash_is(struct git_hash *hash, const unsigned char *id);
