/*
 * The jail of a small role (ipc/role.h): what each of them does to itself before it looks at the
 * first foreign byte, in this order, each step one that can fail:
 *
 *   1  descriptors  all but its edge are closed
 *   2  parent       nothing of the caller's looks into it, and it dies with its supervisor
 *   3  limits       no core, processor time, memory
 *   4  privileges   no_new_privs, no capability
 *   5  landlock     no file, no abstract socket, no signal to outside
 *   6  seccomp      the calls of its variant, anything else kills it
 *
 * Where the kernel has no Landlock the filter alone holds: no variant of a role has a call that
 * opens a file. Called once, by a process with one thread that was exec'd for this.
 */
#pragma once

#include "kernel/seccomp.h"

#include <stdbool.h>
#include <stdint.h>

struct jail {
	unsigned keep; /* descriptors below this number stay */
	unsigned cpu_seconds;
	uint64_t memory_bytes;
	enum seccomp_variant filter;
	bool outlives; /* it has something to undo when its supervisor dies, and ends after that */
};

/* The steps above; a role numbers its own from JAIL_STEPS on. */
#define JAIL_STEPS 7

/* 0, or the number of the step that failed: nothing foreign may be looked at then. */
int jail_enter(const struct jail *jail) __attribute__((warn_unused_result));

/*
 * Ends the process with this status; not by way of the C library, which has other calls. Does not
 * return, but does not say so to the compiler: a sanitizer would have calls of its own before it.
 */
void jail_leave(int status);
