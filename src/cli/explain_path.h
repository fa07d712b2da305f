/* `bawn explain --path`: what a task may do with a path, and by which rule. */
#pragma once

#include <stdbool.h>

struct arena;
struct buffer;
struct effective;
struct error;

/*
 * Appends the answer (broker/path_access.h). 0: it can be read or written, 1: neither, negative:
 * the path is none (-EINVAL).
 */
int explain_path(const struct effective *effective, const char *path, bool as_json,
		 struct arena *arena, struct buffer *text, struct error *error);
