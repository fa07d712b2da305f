#include "policy/program.h"

#include <stdbool.h>
#include <string.h>

static const struct program programs[] = {
#define PROGRAM(name, way, base, operands, options) { name, WAY_##way, base, operands, options },
#include "policy/program.def"
#undef PROGRAM
};

#define COUNT (sizeof(programs) / sizeof(programs[0]))

const struct program *program_find_bytes(const char *name, size_t length)
{
	for (size_t i = 0; i < COUNT; i++) {
		const char *candidate = programs[i].name;

		/* most differ in the first bytes: cheaper than a call */
		if (length && candidate[0] == name[0] && strncmp(candidate, name, length) == 0 &&
		    !candidate[length])
			return &programs[i];
	}
	return NULL;
}

const struct program *program_find(const char *name)
{
	return program_find_bytes(name, strlen(name));
}

const struct program *program_at(size_t index)
{
	return index < COUNT ? &programs[index] : NULL;
}

const char *program_name(const char *word)
{
	const char *slash = strrchr(word, '/');

	return slash ? slash + 1 : word;
}

/* Any argument's letters that say: code. */
static bool option_takes_code(const char *options)
{
	for (const char *at = options; *at; at++) {
		size_t length;

		if (*at != ':' && *at != '?')
			continue;
		length = strcspn(at + 1, " !,");
		for (size_t i = 1; i <= length; i++)
			if (at[i] == 'q' || at[i] == 'A')
				return true;
		at += length;
	}
	return false;
}

static const struct program *find_versioned(const char *name)
{
	const struct program *program = program_find(name);
	size_t length = strlen(name);

	while (!program && length > 1 && strchr("0123456789.-", name[length - 1]))
		program = program_find_bytes(name, --length);
	while (program && program->way == WAY_ALIAS)
		program = program_find(program->base);
	return program;
}

enum program_nature program_nature(const char *word)
{
	const struct program *program = find_versioned(program_name(word));

	if (!program)
		return PROGRAM_IS_NOT_KNOWN;
	return strchr(program->base, 'X') || strpbrk(program->operands, "qA") ||
			       option_takes_code(program->options) ?
		       PROGRAM_TAKES_CODE :
		       PROGRAM_TAKES_DATA;
}
