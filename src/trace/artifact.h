/*
 * A file that a task made and its caller asked for: copied out of the workspace, with the digest of
 * what was copied. Or why it was not.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct json;

#define ARTIFACT_DIGEST_BYTES 65 /* hexadecimal, with its NUL */

struct artifact {
	const char *path;   /* below the workspace; or the pattern that nothing matched */
	const char *reason; /* why there is no copy; NULL: there is one */
	uint64_t bytes;
	char sha256[ARTIFACT_DIGEST_BYTES];
};

struct artifact_list {
	const char *directory; /* where the copies are, by their paths; NULL: none was asked for */
	struct artifact *items;
	size_t count;
	size_t dropped; /* that matched beyond the limit */
};

/* The object `artifacts`, null where none was asked for. */
void artifact_json(const struct artifact_list *list, struct json *json);
