#include <stdio.h>
#include <string.h>

#include "tally.h"

static int failures;

static void check(int ok, const char *what)
{
	printf("%s %s\n", ok ? "ok  " : "FAIL", what);
	failures += !ok;
}

int main(void)
{
	static struct tally tally;
	const char text[] = "The wall, the tower; THE end. a1 a1";

	check(tally_add(&tally, text, strlen(text)) == 0, "a text is accepted");
	check(tally.used == 5, "five different words");
	tally_sort(&tally);
	check(strcmp(tally.entries[0].word, "the") == 0, "the most frequent word is first");
	check(tally.entries[0].count == 3, "case does not matter");
	check(strcmp(tally.entries[2].word, "end") == 0, "equal counts go by the alphabet");
	return failures != 0;
}
