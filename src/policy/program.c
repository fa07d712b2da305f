#include "policy/program.h"

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
