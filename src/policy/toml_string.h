/*
 * Strings of TOML (toml.io, version 1.0), as they stand in a text: with their quotes. Pure. Linked
 * into bawn-parse alone.
 */
#pragma once

#include <stddef.h>

struct arena;

/*
 * What the string of `length` bytes says, in quotes of either kind, or in three of them. NULL with
 * *ret_fault (static) where it says nothing that can be kept: a NUL, no code point, quotes that do
 * not fit; or without one where memory ran out.
 */
char *toml_string(struct arena *arena, const char *bytes, size_t length, const char **ret_fault);
