/*
 * Theory of operation: braces are the first thing that the shell expands, by their text alone. The
 * first pair that has a comma of its own makes a word of each of its parts; these take the place of
 * the word and are looked at again, until none has such a pair.
 */
#include "policy/shell_internal.h"

#include "base/arena.h"

#include <string.h>

/* A word, and which of its bytes mean something; both `length` long. */
struct braced {
	const char *text, *plain;
	size_t length;
};

static bool is_plain(const struct braced *word, size_t i, char c)
{
	return word->plain[i] && word->text[i] == c;
}

/* Where the brace at `from` closes; 0: it does not, or has no comma of its own. */
static size_t closing(const struct braced *word, size_t from)
{
	size_t depth = 0;
	bool comma = false;

	for (size_t i = from; i < word->length; i++) {
		if (is_plain(word, i, '{'))
			depth++;
		else if (is_plain(word, i, '}') && --depth == 0)
			return comma ? i : 0;
		else if (is_plain(word, i, ',') && depth == 1)
			comma = true;
	}
	return 0;
}

static bool find(const struct braced *word, size_t *ret_open, size_t *ret_close)
{
	for (size_t i = 0; i < word->length; i++) {
		size_t close = is_plain(word, i, '{') ? closing(word, i) : 0;

		if (!close)
			continue;
		*ret_open = i;
		*ret_close = close;
		return true;
	}
	return false;
}

/* What stands before the braces, the part [from, to) of them, and what stands behind. */
static bool join(struct arena *arena, const struct braced *word, size_t open, size_t from,
		 size_t to, size_t close, struct braced *ret_word)
{
	size_t behind = word->length - close - 1, length = open + (to - from) + behind;
	char *text = arena_allocate(arena, length + 1), *plain = arena_allocate(arena, length + 1);

	if (!text || !plain)
		return false;
	memcpy(text, word->text, open);
	memcpy(plain, word->plain, open);
	memcpy(text + open, word->text + from, to - from);
	memcpy(plain + open, word->plain + from, to - from);
	memcpy(text + open + (to - from), word->text + close + 1, behind);
	memcpy(plain + open + (to - from), word->plain + close + 1, behind);
	text[length] = '\0';
	*ret_word = (struct braced){ text, plain, length };
	return true;
}

/* The words that the braces make of one; 0 where they are more than there is room for. */
static size_t part(struct arena *arena, const struct braced *word, size_t open, size_t close,
		   struct braced *ret_words, size_t room)
{
	size_t count = 0, depth = 0, from = open + 1;

	for (size_t i = open; i <= close; i++) {
		depth += is_plain(word, i, '{');
		if ((depth == 1 && is_plain(word, i, ',')) || i == close) {
			if (count == room ||
			    !join(arena, word, open, from, i, close, &ret_words[count]))
				return 0;
			count++;
			from = i + 1;
		}
		depth -= is_plain(word, i, '}');
	}
	return count;
}

size_t shell_braces(struct arena *arena, const char *text, const char *plain,
		    struct classify_word *ret_words, size_t room)
{
	struct braced words[SHELL_LIMIT_WORDS] = { { text, plain, strlen(text) } };
	size_t count = 1, at = 0;

	if (room > SHELL_LIMIT_WORDS)
		room = SHELL_LIMIT_WORDS;
	while (at < count) {
		struct braced parts[SHELL_LIMIT_WORDS];
		size_t open = 0, close = 0, more;

		if (!words[at].length)
			return 0;
		if (!find(&words[at], &open, &close)) {
			ret_words[at].text = words[at].text;
			at++;
			continue;
		}
		more = part(arena, &words[at], open, close, parts, room - count + 1);
		if (!more)
			return 0;
		memmove(&words[at + more], &words[at + 1], (count - at - 1) * sizeof(words[0]));
		memcpy(&words[at], parts, more * sizeof(words[0]));
		count += more - 1;
	}
	return count;
}
