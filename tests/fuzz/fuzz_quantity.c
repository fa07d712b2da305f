/* Option values against a second reading of the same grammar, with 128 bits instead of checks. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"

#define MARK UINT64_C(0xfeedfacecafebeef)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static uint64_t duration_factor(const char *unit)
{
	if (strcmp(unit, "ms") == 0)
		return 1000000;
	if (strlen(unit) != 1)
		return 0;
	switch (unit[0]) {
	case 's':
		return UINT64_C(1000000000);
	case 'm':
		return UINT64_C(1000000000) * 60;
	case 'h':
		return UINT64_C(1000000000) * 60 * 60;
	case 'd':
		return UINT64_C(1000000000) * 60 * 60 * 24;
	default:
		return 0;
	}
}

static uint64_t size_factor(const char *unit)
{
	static const char letters[] = "KMGT";
	const char *letter;

	if (!unit[0])
		return 1;
	letter = strchr(letters, unit[0]);
	return letter && !unit[1] ? UINT64_C(1024) << 10 * (letter - letters) : 0;
}

/* Reads the digits, up to a value far above every limit. */
static bool read_digits(const char *text, unsigned __int128 *ret_value, const char **ret_unit)
{
	unsigned __int128 value = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++)
		if (value < (unsigned __int128)1 << 70)
			value = value * 10 + (unsigned)(*at - '0');
	*ret_value = value;
	*ret_unit = at;
	return at > text && (text[0] != '0' || at == text + 1);
}

static void check(int r, uint64_t value, bool form, unsigned __int128 wanted, uint64_t limit)
{
	if (!form)
		require(r == -EINVAL && value == MARK);
	else if (wanted > limit)
		require(r == -ERANGE && value == MARK);
	else
		require(r == 0 && value == wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint64_t duration = MARK, count = MARK, bytes = MARK;
	unsigned __int128 value;
	const char *unit;
	uint64_t factor;
	bool form;
	int r;

	require(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	form = read_digits(text, &value, &unit);

	factor = duration_factor(unit);
	r = quantity_duration(text, &duration);
	check(r, duration, form && factor && value, value * factor, INT64_MAX);
	r = quantity_count(text, &count);
	check(r, count, form && !*unit, value, UINT64_MAX);
	factor = size_factor(unit);
	r = quantity_size(text, &bytes);
	check(r, bytes, form && factor, value * factor, UINT64_MAX);
	free(text);
	return 0;
}
