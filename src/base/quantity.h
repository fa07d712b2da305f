/*
 * Option values with units, strictly: digits, one unit, nothing else. No sign, no blank, no
 * exponent, no leading zero, no overflow. Pure. All return 0 or -EINVAL (form) or -ERANGE (too
 * large); the form is judged first. And the other way: rounded, for people to read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * "250ms", "30s", "5m", "2h", "1d"; a bare number is refused (which unit?); 0 is refused.
 * At most INT64_MAX ns (292 years), so that a deadline computed from it cannot overflow.
 */
int quantity_duration(const char *text, uint64_t *ret_ns);

/* "0", "17": decimal, no leading zeros; for counts, descriptors and the like. */
int quantity_count(const char *text, uint64_t *ret_count);

/* "512", "64K", "10M", "2G", "1T": bytes, powers of 1024. */
int quantity_size(const char *text, uint64_t *ret_bytes);

#define QUANTITY_TEXT_BYTES 64

/* "3.4ms", "270ms", "8.1s" (without tenths "0s", "8s"), "12s", "3m20s", "2h05m", "4d02h" */
void quantity_tell_duration(char text[static QUANTITY_TEXT_BYTES], uint64_t ns, bool with_tenths);

/* "310M", "2G", "1.5G" */
void quantity_tell_size(char text[static QUANTITY_TEXT_BYTES], uint64_t bytes);
