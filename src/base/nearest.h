/*
 * The right word that a wrong one was meant to be: the beginning of one, or one that a few slips of
 * typing lead to (letters left out, doubled, changed or swapped). Pure.
 */
#pragma once

#include <stddef.h>

/* The word of the list nearest to `word`, or NULL where none is near. */
const char *nearest_word(const char *word, const char *const *words, size_t count);
