/*
 * What leaves the filter of a task's own terminal is read by a terminal of this file's, much
 * stricter than any: it knows text, and the sequences that screen.h lets pass, in their one form.
 * It keeps the modes, the stacks of keyboard flags and the pending string, and finds nothing of
 * them changed after the end. The output does not depend on where the stream was cut, and passes a
 * second time unchanged. The first byte of the input chooses the cuts.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "broker/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a program leaves on and a shell suffers from; and how it is at rest. */
static const struct rest {
	unsigned number;
	bool is_on;
} rests[] = { { 1, false },    { 7, true },	{ 9, false },	 { 25, true },	  { 47, false },
	      { 1000, false }, { 1002, false }, { 1003, false }, { 1004, false }, { 1006, false },
	      { 1047, false }, { 1049, false }, { 2004, false }, { 2026, false } };

#define REST_COUNT (sizeof(rests) / sizeof(rests[0]))

struct screen {
	bool is_on[REST_COUNT], saved[REST_COUNT];
	unsigned pushed[2]; /* keyboard flags of the main screen and the other */
	bool has_flags[2];
};

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Every chunk goes in by a copy and comes out into a block of exactly the promised size. */
static char *filter(const char *text, size_t size, unsigned cut, bool has_end, size_t *ret_length)
{
	struct screen_filter filter = { 0 };
	char *all = malloc(SCREEN_GROWTH * (size + SCREEN_SEQUENCE_BYTES) + SCREEN_END_BYTES);
	size_t used = 0, room, length;
	char *out;

	require(all);
	for (size_t at = 0; at < size;) {
		size_t part = cut ? 1 + (at * 7 + cut) % cut : size;
		char *copy;

		part = part < size - at ? part : size - at;
		room = SCREEN_GROWTH * (part + SCREEN_SEQUENCE_BYTES);
		copy = malloc(part);
		out = malloc(room);
		require(copy && out);
		memcpy(copy, text + at, part);
		length = screen_filter(&filter, copy, part, out);
		require(length <= room && filter.held_length <= SCREEN_SEQUENCE_BYTES &&
			filter.point_length <= sizeof(filter.point));
		memcpy(all + used, out, length);
		used += length;
		at += part;
		free(copy);
		free(out);
	}
	if (has_end) {
		out = malloc(SCREEN_END_BYTES);
		require(out);
		length = screen_filter_end(&filter, out);
		require(length <= SCREEN_END_BYTES);
		memcpy(all + used, out, length);
		free(out);
		used += length;
	}
	*ret_length = used;
	return all;
}

static unsigned number_at(const char *text, size_t left)
{
	unsigned long long number = 0;

	for (size_t i = 0; i < left && text[i] >= '0' && text[i] <= '9' && number < 1u << 20; i++)
		number = number * 10 + (unsigned)(text[i] - '0');
	return (unsigned)number;
}

static bool is_one_of(unsigned number, const unsigned *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == number)
			return true;
	return false;
}

static bool is_alternate(const struct screen *screen)
{
	for (size_t i = 0; i < REST_COUNT; i++)
		if ((rests[i].number == 47 || rests[i].number == 1047 || rests[i].number == 1049) &&
		    screen->is_on[i])
			return true;
	return false;
}

/* h and l set and reset a private mode, s and r save and restore it. */
static void play_mode(struct screen *screen, unsigned number, char final)
{
	for (size_t i = 0; i < REST_COUNT; i++) {
		if (rests[i].number != number)
			continue;
		if (final == 's')
			screen->saved[i] = screen->is_on[i];
		else
			screen->is_on[i] = final == 'r' ? screen->saved[i] : final == 'h';
	}
}

static void play_control(struct screen *screen, const char *parameters, size_t length, char final)
{
	char prefix = '\0';
	unsigned which = is_alternate(screen), count;

	if (length && parameters[0] >= '<' && parameters[0] <= '?')
		prefix = parameters[0];
	if (length && (unsigned char)parameters[length - 1] < 0x30)
		return; /* with an intermediate: none of what is kept here */
	if (prefix == '?' && strchr("hlsr", final))
		for (size_t i = 1; i <= length; i++) {
			play_mode(screen, number_at(parameters + i, length - i), final);
			while (i < length && parameters[i] != ';')
				i++;
		}
	if (final != 'u')
		return;
	count = prefix ? number_at(parameters + 1, length - 1) : 0;
	if (prefix == '>') {
		screen->pushed[which] += screen->pushed[which] < 99;
	} else if (prefix == '<') {
		count = count ? count : 1;
		screen->pushed[which] -= count < screen->pushed[which] ? count :
									 screen->pushed[which];
	} else if (prefix == '=' && !screen->pushed[which]) {
		screen->has_flags[which] = count != 0 || memchr(parameters, ';', length);
	}
}

/* The length of the CSI sequence at text, behind its two first bytes. */
static size_t control(struct screen *screen, const char *text, size_t left)
{
	static const unsigned sizes[] = { 14, 15, 16, 18, 19, 22, 23 };
	size_t length = 0;
	char final;

	while (length < left && text[length] >= 0x20 && text[length] <= 0x3f)
		length++;
	require(length < left && text[length] >= 0x40 && text[length] <= 0x7e);
	final = text[length];
	if (!length || (unsigned char)text[length - 1] >= 0x30) {
		require(!strchr("iy", final));
		require(final != 't' || is_one_of(number_at(text, length), sizes,
						  sizeof(sizes) / sizeof(sizes[0])));
		require(final != 'T' || !length || text[0] != '>');
	} else {
		/* checksums, presentation reports, macros; 8-bit answers */
		require(!(text[length - 1] == '*') && !(text[length - 1] == '&'));
		require(!(text[length - 1] == '$' && final == 'w'));
		require(!(text[length - 1] == '"' && final == 'p'));
	}
	play_control(screen, text, length, final);
	return length + 1;
}

/* The length of the OSC string at text, behind its two first bytes. */
static size_t string(const char *text, size_t left)
{
	static const unsigned harmless[] = { 0,	 1,   2,   4,	8,   10,  11,  12,  13,	 14, 17,
					     19, 104, 110, 111, 112, 113, 114, 117, 119, 133 };
	size_t length = strspn(text, "0123456789");

	require(length &&
		is_one_of(number_at(text, left), harmless, sizeof(harmless) / sizeof(harmless[0])));
	require(text[length] == ';' || text[length] == '\a' || text[length] == '\033');
	while (length < left && text[length] != '\a' && text[length] != '\033') {
		uint32_t point = 0;
		size_t step = utf8_decode(text + length, left - length, &point);

		require(step && point >= 0x20 && (point < 0x7f || point > 0x9f));
		length += step;
	}
	require(length < left);
	if (text[length] == '\a')
		return length + 1;
	require(length + 1 < left && text[length + 1] == '\\');
	return length + 2;
}

static size_t escape(struct screen *screen, const char *text, size_t left)
{
	require(left >= 2);
	if (text[1] == '[')
		return 2 + control(screen, text + 2, left - 2);
	if (text[1] == ']')
		return 2 + string(text + 2, left - 2);
	if (strchr("()*+-./", text[1]) && text[1]) {
		size_t length = 2;

		while (length < left && text[length] >= 0x20 && text[length] <= 0x2f)
			length++;
		require(length < left && text[length] >= 0x30 && text[length] <= 0x7e);
		return length + 1;
	}
	if (text[1] == '#') {
		require(left >= 3 && text[2] >= 0x30 && text[2] <= 0x7e);
		return 3;
	}
	require(text[1] >= 0x30 && text[1] <= 0x7e && !strchr("PX^_k\\", text[1]));
	return 2;
}

/* text is NUL-ended behind its end. */
static void play(struct screen *screen, const char *text, size_t length)
{
	while (length) {
		uint32_t point = 0;
		size_t step = utf8_decode(text, length, &point);

		if (text[0] == '\033') {
			step = escape(screen, text, length);
		} else if (step) {
			require(point != 0x05 && (point < 0x80 || point > 0x9f));
		} else {
			/* noise of other encodings, and no C1 control of theirs */
			require((unsigned char)text[0] >= 0xa0 || length < 4);
			step = 1;
		}
		text += step;
		length -= step;
	}
}

static void check(const char *bytes, size_t length)
{
	char *text = malloc(length + 1);
	struct screen screen = { 0 };

	require(text);
	memcpy(text, bytes, length);
	text[length] = '\0';
	for (size_t i = 0; i < REST_COUNT; i++)
		screen.is_on[i] = screen.saved[i] = rests[i].is_on;
	play(&screen, text, length);
	free(text);
	for (size_t i = 0; i < REST_COUNT; i++)
		require(screen.is_on[i] == rests[i].is_on);
	/* those of the alternate screen went with it */
	require(!screen.has_flags[0] && !screen.pushed[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	char *whole, *other;
	size_t length, other_length;

	if (!size--)
		return 0;
	whole = filter(text, size, 0, true, &length);
	check(whole, length);
	for (unsigned i = 0; i < 2; i++) {
		other = filter(text, size, i ? data[0] : 1, true, &other_length);
		require(other_length == length && memcmp(whole, other, length) == 0);
		free(other);
	}
	free(whole);
	whole = filter(text, size, 0, false, &length);
	other = filter(whole, length, data[0], false, &other_length);
	require(other_length <= length && memcmp(whole, other, other_length) == 0);
	free(whole);
	free(other);
	return 0;
}
