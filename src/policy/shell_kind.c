#include "policy/shell_internal.h"

#include <string.h>

static const struct {
	const char *grammar;
	enum shell_part part;
} kinds[SHELL_KIND_COUNT] = {
	[SHELL_UNKNOWN] = { "", SHELL_PART_REFUSED },
	[SHELL_TOKEN] = { "", SHELL_PART_TOKEN },
#define NODE(name, grammar, part) [SHELL_##name] = { grammar, SHELL_PART_##part },
#include "policy/shell.def"
#undef NODE
};

enum shell_kind shell_kind(const char *name, bool named)
{
	if (!named)
		return SHELL_TOKEN;
	for (size_t i = SHELL_TOKEN + 1; i < SHELL_KIND_COUNT; i++)
		if (strcmp(kinds[i].grammar, name) == 0)
			return (enum shell_kind)i;
	return SHELL_UNKNOWN;
}

enum shell_part shell_part(uint32_t kind)
{
	return kind < SHELL_KIND_COUNT ? kinds[kind].part : SHELL_PART_REFUSED;
}
