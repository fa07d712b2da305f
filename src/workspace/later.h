/*
 * Files of a project that programs of the host execute, or take commands from, without being asked
 * again: git, editors, agents, build tools, services that watch the repository. Pure; the table is
 * later.def. A name counts in any case, since a directory may ignore it.
 */
#pragma once

#include <stdbool.h>

/*
 * Who executes the file at the path (clean, relative to the project), in words; NULL for the rest.
 */
const char *later_of_path(const char *path);

/* The same by its last names alone, for a walk that knows the directories above. */
const char *later_of_last(const char *path, bool is_directory);
