/*
 * The time of one turn of a role's loop: both clocks, read once and believed until the next turn.
 *
 * By the C library, which asks the kernel's page of time (vdso(7)) where there is one: three page
 * faults the first time, and no system call from then on. A role lives as long as its task; for a
 * process that asks the time twice base/clock.h is cheaper.
 */
#pragma once

#include <stdint.h>
#include <time.h>

struct moment {
	uint64_t now_ns; /* monotonic */
	uint64_t wall_s;
	uint32_t wall_part_ns; /* of its second */
};

static inline struct moment moment_now(void)
{
	struct timespec now = { 0 }, wall = { 0 };

	/* cannot fail for clocks that there are (clock_gettime(2)) */
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)clock_gettime(CLOCK_REALTIME, &wall);
	return (struct moment){
		.now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
		.wall_s = (uint64_t)wall.tv_sec,
		.wall_part_ns = (uint32_t)wall.tv_nsec,
	};
}
