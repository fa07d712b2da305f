#include "policy/suffix.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* tools/suffixes: rules in the order of their bytes, each NUL-ended, and where each begins. */
extern const char suffix_text[];
extern const uint32_t suffix_begins[];
extern const size_t suffix_count;

/* Of many owners, too, and not on the list: what lies below is named by region and service. */
static const char *const others[] = { "amazonaws.com", "googleapis.com", "windows.net" };

static bool is_listed(const char *rule)
{
	size_t low = 0, high = suffix_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(rule, suffix_text + suffix_begins[middle]);

		if (order == 0)
			return true;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

bool suffix_is_public(const char *name)
{
	const char *dot = strchr(name, '.');
	char rule[256 + 2];

	/* the list's own rule for what it does not know: "*" */
	if (!dot)
		return true;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(name, others[i]) == 0)
			return true;
	if (strlen(name) >= 256)
		return false;
	snprintf(rule, sizeof(rule), "!%s", name);
	if (is_listed(rule))
		return false;
	snprintf(rule, sizeof(rule), "*%s", dot);
	return is_listed(name) || is_listed(rule);
}
