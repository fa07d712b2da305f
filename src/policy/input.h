/*
 * Inputs: what a caller hands to a task, read-only and under a name of the caller's choice, at one
 * place of the box (VIEW_INPUTS), wherever on the host it lies (`--input PATH[:NAME]`). Pure.
 */
#pragma once

#include <stdbool.h>

struct arena;
struct error;
struct view;

/* A name as a file system takes it, that shows as what it is: no control or hidden characters. */
bool input_is_name(const char *name);

/*
 * Splits what the option was given: what follows the last colon is the name, unless there is a
 * slash in it or nothing. ret_name: "" where none was given. -EINVAL for a name that is none, or
 * where there is no path; a path whose own last name has a colon is given with a name.
 */
int input_split(const char *given, struct arena *arena, const char **ret_path,
		const char **ret_name, struct error *error);

/*
 * Where it is shown: under the name, or where that is "" under the last one of its real path.
 * -EEXIST where another input is shown there, -EINVAL where that is no name.
 */
int input_place(const struct view *view, const char *real, const char *name, struct arena *arena,
		const char **ret_target, struct error *error);
