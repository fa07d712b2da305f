/* Counts words. A word is a run of letters and digits; case does not matter. */
#pragma once

#include <stddef.h>

#define TALLY_WORDS 1024
#define TALLY_WORD_BYTES 32

struct tally_entry {
	char word[TALLY_WORD_BYTES];
	unsigned long count;
};

struct tally {
	struct tally_entry entries[TALLY_WORDS];
	size_t used;
};

/* Adds the words of a text. Returns 0, or -1 when there are too many different words. */
int tally_add(struct tally *tally, const char *text, size_t length);

/* Most frequent first; equal counts by the alphabet. */
void tally_sort(struct tally *tally);
