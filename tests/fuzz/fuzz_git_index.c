/*
 * An index that a task wrote, for repositories of both kinds of ids. One without a fault has the
 * same entries as itself, and no part of it is whole.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha1.h"
#include "workspace/git_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void look(const void *bytes, size_t length, size_t id_bytes)
{
	if (git_index_fault(bytes, length, id_bytes)) {
		(void)git_index_has(bytes, length, id_bytes, "FSMN");
		(void)git_index_is_same(bytes, length, bytes, length, id_bytes);
		return;
	}
	require(git_index_is_same(bytes, length, bytes, length, id_bytes));
	require(!git_index_has(bytes, length, id_bytes, "link"));
}

/* With a checksum that holds: otherwise no input would come far. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size + SHA1_BYTES);

	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	sha1(bytes, size, bytes + size);
	look(bytes, size + SHA1_BYTES, SHA1_BYTES);
	look(bytes, size, 32);
	free(bytes);
	return 0;
}
