#include "base/quantity.h"

#include <errno.h>
#include <stdio.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit duration_units[] = {
	{ "ms", UINT64_C(1000000) },	   { "s", UINT64_C(1000000000) },
	{ "m", UINT64_C(60000000000) },	   { "h", UINT64_C(3600000000000) },
	{ "d", UINT64_C(86400000000000) }, { NULL, 0 },
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "K", UINT64_C(1) << 10 },
	{ "M", UINT64_C(1) << 20 },
	{ "G", UINT64_C(1) << 30 },
	{ "T", UINT64_C(1) << 40 },
	{ NULL, 0 },
};

static const struct unit count_units[] = { { "", 1 }, { NULL, 0 } };

static int parse(const char *text, const struct unit *units, uint64_t limit, uint64_t *ret_value)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t value = 0;
	bool large = false;

	if (!digits || (text[0] == '0' && digits > 1))
		return -EINVAL;
	while (units->name && strcmp(units->name, text + digits) != 0)
		units++;
	if (!units->name)
		return -EINVAL;
	for (size_t i = 0; i < digits; i++) {
		large |= __builtin_mul_overflow(value, UINT64_C(10), &value);
		large |= __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value);
	}
	large |= __builtin_mul_overflow(value, units->factor, &value);
	if (large || value > limit)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int quantity_duration(const char *text, uint64_t *ret_ns)
{
	uint64_t ns;
	int r = parse(text, duration_units, INT64_MAX, &ns);

	if (r < 0)
		return r;
	if (ns == 0)
		return -EINVAL;
	*ret_ns = ns;
	return 0;
}

int quantity_count(const char *text, uint64_t *ret_count)
{
	return parse(text, count_units, UINT64_MAX, ret_count);
}

int quantity_size(const char *text, uint64_t *ret_bytes)
{
	return parse(text, size_units, UINT64_MAX, ret_bytes);
}

void quantity_tell_duration(char text[static QUANTITY_TEXT_BYTES], uint64_t ns, bool with_tenths)
{
	unsigned long long seconds = ns / 1000000000u, us = (unsigned long long)ns / 1000;

	if (with_tenths && us >= 100 && us < 10000)
		(void)snprintf(text, QUANTITY_TEXT_BYTES, "%llu.%llums", us / 1000, us / 100 % 10);
	else if (with_tenths && us >= 100 && us < 1000000)
		(void)snprintf(text, QUANTITY_TEXT_BYTES, "%llums", us / 1000);
	else if (seconds < 10 && with_tenths)
		(void)snprintf(text, QUANTITY_TEXT_BYTES, "%llu.%llus", seconds,
			       (unsigned long long)ns / 100000000 % 10);
	else if (seconds < 60)
		(void)snprintf(text, QUANTITY_TEXT_BYTES, "%llus", seconds);
	else if (seconds < 3600)
		(void)snprintf(text, QUANTITY_TEXT_BYTES, "%llum%02llus", seconds / 60,
			       seconds % 60);
	else if (seconds < 86400)
		(void)snprintf(text, QUANTITY_TEXT_BYTES, "%lluh%02llum", seconds / 3600,
			       seconds / 60 % 60);
	else
		(void)snprintf(text, QUANTITY_TEXT_BYTES, "%llud%02lluh", seconds / 86400,
			       seconds / 3600 % 24);
}

void quantity_tell_size(char text[static QUANTITY_TEXT_BYTES], uint64_t bytes)
{
	static const char units[] = { 'B', 'K', 'M', 'G', 'T' };
	unsigned unit = 0;
	uint64_t rest = 0;

	while (bytes >= 1024 && unit + 1 < sizeof(units)) {
		rest = bytes % 1024 * 10 / 1024;
		bytes /= 1024;
		unit++;
	}
	if (bytes < 10 && rest)
		(void)snprintf(text, QUANTITY_TEXT_BYTES, "%llu.%llu%c", (unsigned long long)bytes,
			       (unsigned long long)rest, units[unit]);
	else
		(void)snprintf(text, QUANTITY_TEXT_BYTES, "%llu%c", (unsigned long long)bytes,
			       units[unit]);
}
