#include "policy/document_internal.h"

#include "base/arena.h"
#include "base/nearest.h"

#include <string.h>

const char *document_hint(const struct document_reading *reading, const char *word,
			  const char *const *words, size_t count)
{
	const char *nearest = nearest_word(word, words, count);
	const char *hint =
		nearest ? arena_format(reading->arena, "; the nearest is \"%s\"", nearest) : NULL;

	return hint ? hint : "";
}
