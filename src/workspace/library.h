/*
 * Which files of the host a program loads before it runs: its interpreter and, as ld.so(8) looks
 * for them, its libraries and theirs. What programs load by themselves later (dlopen(3)) no file
 * tells, but for what the C library itself loads.
 *
 * Where the look-up leaves a choice (an architecture's variants of a library), all of them count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* More files than this one program is not made of. */
#define LIBRARY_LIMIT_FILES 2048u

struct library_set {
	struct arena *arena;
	struct library_file *files; /* what was read, by path */
	size_t count;
	unsigned round;
	const unsigned char *cache; /* ld.so.cache */
	size_t cache_bytes;
	bool has_cache;
};

/* A file that is needed; path is real. 0, or a negative errno that ends the search. */
typedef int library_visit(void *context, const char *path);

/*
 * Visits what the file needs, each once, itself excepted. Returns what visit returned, -ENOMEM,
 * or 0, also for what is no program of this form, or a broken one: that runs nowhere.
 */
int library_find(struct library_set *set, const char *path, library_visit *visit, void *context);

/*
 * The interpreter that a script's first line names, into ret (the arena's); false where the file is
 * no script.
 */
bool library_script(const char *path, struct arena *arena, const char **ret_interpreter);
