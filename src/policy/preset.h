/*
 * The built-in policies, as texts of the same form as a policy file (presets/): `bawn policy show
 * NAME` prints them. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct preset {
	const char *name;
	const char *text; /* not ended by NUL */
	size_t length;
};

/* False where there is no preset of the name. */
bool preset_find(const char *name, struct preset *ret_preset);
