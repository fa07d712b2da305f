/*
 * How much a task has added to its writable places since it began, by bytes and by files.
 *
 * Nothing on a host counts that for one task. What is cheap to ask is how much room the file
 * systems have lost, which others may have caused; only when that is as much as a limit are the
 * places walked, and what changed there since the start is added up, with files that have no name
 * any more but are still open in the task. A tree that is too large or too deep
 * to be walked counts with all that was lost: whoever hides in it gains nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct plan;
struct usage;
struct view;

/* A view's writable rows; what is added to more of them is not seen. */
#define GROWTH_LIMIT_PLACES 32
#define GROWTH_LIMIT_DEPTH 64
/* Some 2 s of walking with a warm cache. */
#define GROWTH_LIMIT_ENTRIES 500000

struct growth_place {
	int fd; /* owned */
	uint64_t device;
	uint64_t free_bytes, free_files; /* of its file system at the start */
};

struct growth {
	struct growth_place places[GROWTH_LIMIT_PLACES];
	size_t count;
	struct timespec started;	 /* CLOCK_REALTIME_COARSE, as file systems stamp */
	uint64_t lost_bytes, lost_files; /* at the last walk, which counted: */
	uint64_t bytes, files;
};

/*
 * Notes what is free now: in the view's writable rows, and in the layers of the task's git
 * directories, which exist already. Places that cannot be opened are left out.
 */
void growth_begin(struct growth *growth, const struct view *view, const struct plan *plan);

/*
 * What was added, at most; walks only where the file systems lost as much as a limit, and a
 * sixteenth of it more than at the last walk.
 */
void growth_look(struct growth *growth, const struct usage *usage, uint64_t limit_bytes,
		 uint64_t limit_files, uint64_t *ret_bytes, uint64_t *ret_files);

void growth_end(struct growth *growth);
