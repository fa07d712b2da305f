/* Reading a text by units and classes of bytes: what every form of a secret is told by. */
#include "trace/token_internal.h"

#include <string.h>

const uint8_t token_classes[256] = {
	['0' ... '9'] = DIGIT, ['A' ... 'Z'] = UPPER, ['a' ... 'z'] = LOWER, ['_'] = UNDERLINE,
	['-'] = DASH,	       ['.'] = DOT,	      ['+'] = BASE64,	     ['/'] = BASE64,
	['='] = BASE64,	       ['~'] = TILDE,
};

static int hex_value(unsigned char digit)
{
	return digit >= '0' && digit <= '9' ? digit - '0' :
	       digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 :
	       digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 :
					      -1;
}

size_t token_unit(const struct token_text *text, size_t at, uint32_t *ret_value)
{
	static const char letters[] = "bfnrt\"\\/", values[] = "\b\f\n\r\t\"\\/";
	unsigned char byte = byte_at(text, at), next;
	const char *letter;
	uint32_t value = 0;

	*ret_value = byte;
	if (at >= text->length || (text->is_json && byte == '"'))
		return 0;
	if (!text->is_json || byte != '\\')
		return 1;
	next = byte_at(text, at + 1);
	letter = next ? strchr(letters, next) : NULL;
	if (letter) {
		*ret_value = (unsigned char)values[letter - letters];
		return 2;
	}
	if (next != 'u' || text->length - at < 6)
		return 0;
	for (size_t i = 2; i < 6; i++) {
		int digit = hex_value((unsigned char)text->bytes[at + i]);

		if (digit < 0)
			return 0;
		value = value << 4 | (uint32_t)digit;
	}
	*ret_value = value;
	return 6;
}

/* ESC [ ... m, which a terminal's colours end with; the escape may itself be escaped. */
static bool is_colour_before(const struct token_text *text, size_t at)
{
	size_t back = at - 1;

	if (text->bytes[back] != 'm')
		return false;
	for (size_t i = 0; i < 16 && back; i++) {
		back--;
		if (text->bytes[back] == '[')
			return (back >= 1 && text->bytes[back - 1] == 0x1b) ||
			       (back >= 4 && (memcmp(text->bytes + back - 4, "\\x1b", 4) == 0 ||
					      memcmp(text->bytes + back - 4, "\\033", 4) == 0)) ||
			       (back >= 6 && memcmp(text->bytes + back - 6, "\\u001b", 6) == 0);
		if (!is_of(text, back, DIGIT) && text->bytes[back] != ';')
			return false;
	}
	return false;
}

/* A letter or digit that belongs to an escape (\n, \u0009, %20) and not to a word. */
bool token_is_escape_before(const struct token_text *text, size_t at)
{
	const char *bytes = text->bytes;

	if (at >= 2 && bytes[at - 2] == '\\' && strchr("abefnrtv0", bytes[at - 1]))
		return true;
	if (at >= 3 && bytes[at - 3] == '%')
		return hex_value((unsigned char)bytes[at - 1]) >= 0 &&
		       hex_value((unsigned char)bytes[at - 2]) >= 0;
	if (at < 6 || bytes[at - 6] != '\\' || bytes[at - 5] != 'u')
		return false;
	for (size_t i = at - 4; i < at; i++)
		if (hex_value((unsigned char)bytes[i]) < 0)
			return false;
	return true;
}

/* No token of the class begins in the middle of a word. */
bool token_begins_word(const struct token_text *text, size_t at, unsigned class)
{
	if (!at || !(token_classes[(unsigned char)text->bytes[at - 1]] & (class | WORD)))
		return true;
	return token_is_escape_before(text, at) || is_colour_before(text, at);
}

struct look token_look(const struct token_text *text, size_t from, size_t to)
{
	struct look look = { 0 };
	size_t row = 0;

	for (size_t i = from; i < to; i++) {
		unsigned class = token_classes[(unsigned char)text->bytes[i]];

		look.digits += (class & DIGIT) != 0;
		look.uppers += (class & UPPER) != 0;
		look.lowers += (class & LOWER) != 0;
		row = class & ALNUM ? row + 1 : 0;
		look.longest = row > look.longest ? row : look.longest;
	}
	return look;
}

bool token_has(const struct look *look, unsigned needs)
{
	bool both = look->uppers && look->lowers;

	return (!(needs & A_DIGIT) || look->digits) && (!(needs & BOTH_CASES) || both) &&
	       (!(needs & A_FIGURE) || look->digits || both) &&
	       (!(needs & A_LONG_PART) || look->longest >= 20);
}

/* Skips what may stand between a name, its sign and a value; at most `limit` units. */
size_t token_skip(const struct token_text *text, size_t at, const char *of, unsigned limit)
{
	uint32_t value;
	size_t step;

	while (limit-- && (step = token_unit(text, at, &value)) && value && value < 0x80 &&
	       strchr(of, (int)value))
		at += step;
	return at;
}
