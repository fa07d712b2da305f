/*
 * Paths of requests as rules see them: one spelling for each, or a refusal.
 *
 * The text is what policy patterns are held against: escapes of what may stand for itself in a path
 * are undone, others have capital digits; the query is left out. Refused is what servers differ
 * about, so that a rule could be gone around: empty segments, '.' and '..' in any spelling, an
 * escaped '/', '\' or NUL and other control bytes, parameters after ';', escapes that are none, and
 * escapes of escapes. What passes may be sent as it came: it means the same. Pure.
 */
#pragma once

#include <stddef.h>

/* Longer ones are for no rule to judge; room for the longest target that a head has is too much. */
#define HTTP_PATH_LIMIT_BYTES 8192u

/*
 * `path` begins with '/', with or without a query; "*" is itself. Writes the text with its NUL,
 * which is never longer than the path. Its length, or -EINVAL with the reason, -E2BIG for what is
 * longer than the limit or the room.
 */
int http_path_normalise(const char *path, size_t length, char *room, size_t room_bytes,
			const char **ret_why);
