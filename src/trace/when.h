/*
 * Points in time of the trace: RFC 3339 in UTC, as its records have them, and as a person gives and
 * reads them. Nanoseconds since 1970, to the year 2262 (INT64_MAX); the proleptic Gregorian
 * calendar without leap seconds. Pure: what the time is now is the caller's to say.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHEN_TEXT_BYTES 24 /* "2026-11-30 12:00:00Z" and a NUL */

/*
 * Reads "2026-11-30T12:00:00Z", with a fraction of up to nine digits, with an offset ("+02:00")
 * instead of the Z, and "t", "z" or a blank as RFC 3339 allows. False for anything else.
 */
bool when_parse(const char *text, size_t length, uint64_t *ret_ns);

/*
 * What a person says: the above, "2026-11-30" (its first moment), or how long before now: "90s",
 * "2h", "3d". -EINVAL: none of these; -ERANGE: longer ago than 1970.
 */
int when_parse_said(const char *text, uint64_t now_ns, uint64_t *ret_ns);

/* "2026-11-30 12:00:00Z": for lists; clock_text() has all of it. */
void when_tell(uint64_t ns, char text[static WHEN_TEXT_BYTES]);
