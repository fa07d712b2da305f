/*
 * What leaves the filter is text and colours and nothing else, does not depend on where the
 * stream was cut, and passes the filter a second time unchanged. The first byte of the input
 * chooses the cuts.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "broker/terminal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Every chunk goes in by a copy and comes out into a block of exactly the promised size. */
static char *filter(const char *text, size_t size, unsigned cut, size_t *ret_length)
{
	struct terminal_filter filter = { 0 };
	char *all = malloc(TERMINAL_GROWTH * (size + TERMINAL_SEQUENCE_BYTES));
	size_t used = 0, room, length;
	char *out;

	require(all);
	for (size_t at = 0; at < size;) {
		size_t part = cut ? 1 + (at * 7 + cut) % cut : size;
		char *copy;

		part = part < size - at ? part : size - at;
		room = TERMINAL_GROWTH * (part + TERMINAL_SEQUENCE_BYTES);
		copy = malloc(part);
		out = malloc(room);
		require(copy && out);
		memcpy(copy, text + at, part);
		length = terminal_filter(&filter, copy, part, out);
		require(length <= room && filter.held_length <= TERMINAL_SEQUENCE_BYTES);
		memcpy(all + used, out, length);
		used += length;
		at += part;
		free(copy);
		free(out);
	}
	room = TERMINAL_GROWTH * TERMINAL_SEQUENCE_BYTES;
	out = malloc(room);
	require(out);
	length = terminal_filter_end(&filter, out);
	require(length <= room && filter.held_length == 0);
	memcpy(all + used, out, length);
	free(out);
	*ret_length = used + length;
	return all;
}

/* Length of the colour at text; 0 for anything else. */
static size_t colour(const char *text, size_t left)
{
	size_t length = 2;

	if (left < 3 || text[0] != 0x1b || text[1] != '[')
		return 0;
	while (length < left && strchr("0123456789;", text[length]) && text[length])
		length++;
	return length < left && text[length] == 'm' ? length + 1 : 0;
}

static void check_output(const char *text, size_t length)
{
	while (length) {
		size_t step = colour(text, length);

		if (!step) {
			uint32_t point = 0;

			step = utf8_decode(text, length, &point);
			require(step);
			require(point == '\r' || point == '\n' || point == '\t' ||
				(point >= 0x20 && point != 0x7f && (point < 0x80 || point > 0x9f)));
			require(point < 0x202a || point > 0x202e);
			require(point < 0x2066 || point > 0x2069);
		}
		text += step;
		length -= step;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	char *whole, *bytes, *cut, *again;
	size_t length, other;

	if (!size--)
		return 0;
	whole = filter(text, size, 0, &length);
	check_output(whole, length);

	bytes = filter(text, size, 1, &other);
	require(other == length && memcmp(whole, bytes, length) == 0);
	cut = filter(text, size, data[0], &other);
	require(other == length && memcmp(whole, cut, length) == 0);
	again = filter(whole, length, data[0], &other);
	require(other == length && memcmp(whole, again, length) == 0);
	free(whole);
	free(bytes);
	free(cut);
	free(again);
	return 0;
}
