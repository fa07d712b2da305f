/*
 * Paths of requests as rules see them: one spelling for each, or a refusal.
 *
 * The text is what patterns of rules are held against: escapes of what may stand for itself in a
 * path are undone, all other bytes are escaped with capital digits; segments that are '.' and the
 * query are left out. Refused is what servers differ about, so that a rule about paths could be
 * gone around: empty segments, '..' in any spelling, an escaped '/' or control byte, '\',
 * parameters after ';', escapes that are none, escapes of escapes, and UTF-8 that is longer than it
 * has to be. What passes may be sent as it came: it means the same. What does not may be sent where
 * no rule about paths has a say. Pure.
 */
#pragma once

#include <stddef.h>

/* Of the text; servers take 8 KiB. */
#define HTTP_PATH_LIMIT_BYTES 8192u

/*
 * `path` begins with '/', with or without a query; "*" is itself. Writes the text with its NUL. Its
 * length, or -EINVAL with the reason, -E2BIG for a text longer than the limit or the room (which
 * has to be three bytes larger than the text).
 */
int http_path_normalise(const char *path, size_t length, char *room, size_t room_bytes,
			const char **ret_why);
