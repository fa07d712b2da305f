/* The two clocks: monotonic for limits and durations, wall for the record only. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

uint64_t clock_monotonic_ns(void);
uint64_t clock_wall_ns(void);
/* Another one, by its id (clock_gettime(2)). */
uint64_t clock_of_ns(clockid_t id);

/*
 * The kernel's boot id (random(4)), or "" where it does not tell. Read once, since opening it costs
 * more than a record; static.
 */
#define CLOCK_BOOT_BYTES 37
const char *clock_boot_id(void);

/* "2026-11-30T12:00:00.123456789Z" and a NUL (RFC 3339, UTC), of the years 1970 to 2554. */
#define CLOCK_TEXT_BYTES 31
void clock_text(uint64_t wall_ns, char ret_text[static CLOCK_TEXT_BYTES]);
