/*
 * Keeping hidden and protected names covered in trees that are written in place, while a task runs:
 * the host may put another object under such a name at any moment.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct box;
struct error;
struct policy;
struct watch;
struct watch_change;

/* Told of each name that was found open and is covered now; negative ends it all. */
typedef int cover_told(void *context, const struct watch_change *seen, uint64_t window_ns,
		       struct error *error);

/*
 * Covers again what the watch has seen. `started` is false before the first action: nothing can
 * have seen what lay open then. Negative where a name may lie open; the box must end then.
 */
int cover_names(struct watch *names, struct box *box, const struct policy *policy, int started,
		cover_told *told, void *context, struct error *error);
