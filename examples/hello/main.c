/* Reads a text, prints one line "count<TAB>word" for each word. */
#include <stdio.h>

#include "tally.h"

int main(void)
{
	static struct tally tally;
	char line[4096];

	while (fgets(line, sizeof(line), stdin)) {
		size_t length = 0;

		while (line[length])
			length++;
		if (tally_add(&tally, line, length) < 0) {
			fprintf(stderr, "tally: more than %d different words\n", TALLY_WORDS);
			return 1;
		}
	}
	tally_sort(&tally);
	for (size_t i = 0; i < tally.used; i++)
		printf("%lu\t%s\n", tally.entries[i].count, tally.entries[i].word);
	return 0;
}
