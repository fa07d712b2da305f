#include "tally.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int count_word(struct tally *tally, const char *word)
{
	size_t i;

	for (i = 0; i < tally->used; i++) {
		if (strcmp(tally->entries[i].word, word) == 0) {
			tally->entries[i].count++;
			return 0;
		}
	}
	if (tally->used == TALLY_WORDS)
		return -1;
	memcpy(tally->entries[i].word, word, strlen(word) + 1);
	tally->entries[i].count = 1;
	tally->used++;
	return 0;
}

int tally_add(struct tally *tally, const char *text, size_t length)
{
	char word[TALLY_WORD_BYTES];
	size_t used = 0;

	for (size_t i = 0; i <= length; i++) {
		if (i < length && isalnum((unsigned char)text[i])) {
			if (used < sizeof(word) - 1)
				word[used++] = (char)tolower((unsigned char)text[i]);
			continue;
		}
		word[used] = '\0';
		if (used > 0 && count_word(tally, word) < 0)
			return -1;
		used = 0;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct tally_entry *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return strcmp(x->word, y->word);
}

void tally_sort(struct tally *tally)
{
	qsort(tally->entries, tally->used, sizeof(tally->entries[0]), compare);
}
