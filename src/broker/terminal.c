#include "broker/terminal.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum token_kind { KIND_WAIT, KIND_PASS, KIND_ESCAPE };

struct token {
	enum token_kind kind;
	size_t length;
};

/* ESC [ digits and semicolons m passes whole; of anything else the ESC alone is escaped. */
static struct token token_escape(const unsigned char *bytes, size_t length)
{
	size_t i = 2;

	if (length > 1 && bytes[1] != '[')
		return (struct token){ KIND_ESCAPE, 1 };
	while (i < length && ((bytes[i] >= '0' && bytes[i] <= '9') || bytes[i] == ';'))
		i++;
	if (i < length && bytes[i] == 'm')
		return (struct token){ KIND_PASS, i + 1 };
	if (i < length || length >= TERMINAL_SEQUENCE_BYTES)
		return (struct token){ KIND_ESCAPE, 1 };
	return (struct token){ KIND_WAIT, 0 };
}

static struct token token_next(const unsigned char *bytes, size_t length)
{
	uint32_t point;
	size_t step;

	if (bytes[0] == 0x1b)
		return token_escape(bytes, length);
	step = utf8_decode((const char *)bytes, length, &point);
	if (step) {
		bool pass = utf8_is_visible(point) || point == '\r' || point == '\n' ||
			    point == '\t';

		return (struct token){ pass ? KIND_PASS : KIND_ESCAPE, step };
	}
	if (utf8_is_cut(bytes, length))
		return (struct token){ KIND_WAIT, 0 };
	return (struct token){ KIND_ESCAPE, 1 };
}

static char *write_escaped(const unsigned char *bytes, size_t length, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < length; i++) {
		*out++ = '\\';
		*out++ = 'x';
		*out++ = digits[bytes[i] >> 4];
		*out++ = digits[bytes[i] & 15];
	}
	return out;
}

/* Writes what is decided of the held bytes; at the end of the stream nothing waits any longer. */
static char *drain(struct terminal_filter *filter, bool end, char *out)
{
	size_t used = 0;

	while (used < filter->held_length) {
		const unsigned char *bytes = filter->held + used;
		struct token token = token_next(bytes, filter->held_length - used);

		if (token.kind == KIND_WAIT) {
			if (!end)
				break;
			token = (struct token){ KIND_ESCAPE, 1 };
		}
		if (token.kind == KIND_PASS) {
			memcpy(out, bytes, token.length);
			out += token.length;
		} else {
			out = write_escaped(bytes, token.length, out);
		}
		used += token.length;
	}
	filter->held_length -= used;
	memmove(filter->held, filter->held + used, filter->held_length);
	return out;
}

static bool is_plain(unsigned char byte)
{
	return byte >= 0x20 && byte < 0x7f;
}

size_t terminal_filter(struct terminal_filter *filter, const void *bytes, size_t length, char *out)
{
	const unsigned char *at = bytes, *end = at + length;
	char *start = out;

	while (at < end) {
		if (!filter->held_length && is_plain(*at)) {
			*out++ = (char)*at++;
			continue;
		}
		filter->held[filter->held_length++] = *at++;
		out = drain(filter, false, out);
	}
	return (size_t)(out - start);
}

size_t terminal_filter_end(struct terminal_filter *filter, char *out)
{
	return (size_t)(drain(filter, true, out) - out);
}
