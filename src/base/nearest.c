#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

/* Longer words are no slips of ours. */
#define WORD_BYTES 40

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static char lower(char byte)
{
	if (byte >= 'A' && byte <= 'Z')
		return (char)(byte - 'A' + 'a');
	return byte == '_' ? '-' : byte;
}

/* Insertions, deletions, changes and swaps of neighbours (optimal string alignment). */
static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][WORD_BYTES + 1];
	size_t length = strlen(b);

	for (unsigned j = 0; j <= length; j++)
		rows[0][j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned *row = rows[i % 3];
		const unsigned *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];

		row[0] = i;
		for (unsigned j = 1; j <= length; j++) {
			char x = lower(a[i - 1]), y = lower(b[j - 1]);

			row[j] =
				least(least(above[j] + 1, row[j - 1] + 1), above[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y)
				row[j] = least(row[j], second[j - 2] + 1);
		}
	}
	return rows[strlen(a) % 3][length];
}

const char *nearest_word(const char *word, const char *const *words, size_t count)
{
	size_t length = strlen(word);
	unsigned best = (unsigned)(length / 3) + 1;
	const char *nearest = NULL;

	if (!length || length > WORD_BYTES)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		/* the beginning of one is all that was typed of it */
		bool begins = length >= 3 && strncmp(words[i], word, length) == 0;
		unsigned found = begins			       ? 0 :
				 strlen(words[i]) > WORD_BYTES ? best :
								 distance(word, words[i]);

		/* "networks" is nearer to network than anything else is */
		if (found < best || (found == best && !nearest && found <= length / 3)) {
			best = found;
			nearest = words[i];
		}
	}
	return nearest;
}
