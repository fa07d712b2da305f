#include "policy/toolset.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *word, *programs;
} sets[] = {
#define TOOLSET(word, programs) { word, programs },
#include "policy/toolset.def"
#undef TOOLSET
};

const char *toolset_programs(const char *word)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (strcmp(sets[i].word, word) == 0)
			return sets[i].programs;
	return "";
}
