/*
 * Paths that would undo the wall if a flag or a policy showed them: refused by the built-in rule
 * "dangerous.path". Pure: paths as text, resolved by the caller beforehand.
 */
#pragma once

#include "policy/view.h"

/*
 * Why the clean path must not be shown in the class, in words; NULL where it may. home and state
 * (the state directory) may be NULL.
 */
const char *danger_of_path(const char *path, enum path_class class, const char *home,
			   const char *state);
