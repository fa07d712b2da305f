#include "policy/secret.h"

#include <string.h>

static const struct {
	const char *parent, *start, *end;
	enum secret_content content;
} names[] = {
#define SECRET(parent, start, end, content) { parent, start, end, SECRET_##content },
#define SAMPLE(end)
#define SKIP(name)
#include "policy/secret.def"
#undef SECRET
#undef SAMPLE
#undef SKIP
};

static const char *const samples[] = {
#define SECRET(parent, start, end, content)
#define SAMPLE(end) end,
#define SKIP(name)
#include "policy/secret.def"
#undef SECRET
#undef SAMPLE
#undef SKIP
};

static const char *const skipped[] = {
#define SECRET(parent, start, end, content)
#define SAMPLE(end)
#define SKIP(name) name,
#include "policy/secret.def"
#undef SECRET
#undef SAMPLE
#undef SKIP
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool ends_with(const char *name, size_t length, const char *end)
{
	size_t size = strlen(end);

	return length >= size && memcmp(name + length - size, end, size) == 0;
}

static bool matches(size_t row, const char *parent, const char *name, size_t length)
{
	const char *start = names[row].start, *end = names[row].end;
	size_t size = strlen(start);

	if (names[row].parent && strcmp(names[row].parent, parent) != 0)
		return false;
	if (!end)
		return strcmp(name, start) == 0;
	return length > size && strncmp(name, start, size) == 0 &&
	       ends_with(name + size, length - size, end);
}

enum secret_content secret_of_name(const char *parent, const char *name)
{
	enum secret_content content = SECRET_NONE;
	size_t length = strlen(name);

	for (size_t i = 0; i < COUNT(names) && content == SECRET_NONE; i++) {
		char first = names[i].start[0];

		/* most names are told apart by one byte */
		if ((!first || first == name[0]) && matches(i, parent, name, length))
			content = names[i].content;
	}
	for (size_t i = 0; i < COUNT(samples) && content != SECRET_NONE; i++)
		if (ends_with(name, length, samples[i]))
			content = SECRET_NONE;
	return content;
}

static const char *find(const char *bytes, size_t length, const char *text)
{
	return memmem(bytes, length, text, strlen(text));
}

static bool has_any(const char *bytes, size_t length, const char *const *texts)
{
	for (; *texts; texts++)
		if (find(bytes, length, *texts))
			return true;
	return false;
}

/* "//host/:_authToken=VALUE", where VALUE is no variable's name */
static bool has_registry_token(const char *bytes, size_t length)
{
	static const char *const keys[] = { "_authToken", "_auth", "_password", "npmAuthToken",
					    "npmAuthIdent" };
	const char *end = bytes + length;

	for (size_t i = 0; i < COUNT(keys); i++) {
		const char *at = bytes;

		while ((at = find(at, (size_t)(end - at), keys[i]))) {
			const char *value = at += strlen(keys[i]);

			while (value < end && *value && strchr(" \t\"'=:", *value))
				value++;
			/* a longer key, nothing, or a variable */
			if (value > at && value < end && !strchr("$\r\n", *value))
				return true;
		}
	}
	return false;
}

bool secret_is_in(enum secret_content content, const char *bytes, size_t length)
{
	static const char *const private_keys[] = { "PRIVATE KEY-----", "PRIVATE KEY BLOCK-----",
						    NULL };
	static const char *const accounts[] = { "\"private_key\"",   "\"client_secret\"",
						"\"refresh_token\"", "\"access_token\"",
						"\"auth\"",	     NULL };

	switch (content) {
	case SECRET_ANY:
		return true;
	case SECRET_PRIVATE_KEY:
		return has_any(bytes, length, private_keys);
	case SECRET_REGISTRY:
		return has_registry_token(bytes, length);
	case SECRET_ACCOUNT:
		return has_any(bytes, length, accounts);
	default:
		return false;
	}
}

bool secret_is_skipped(const char *directory)
{
	for (size_t i = 0; i < COUNT(skipped); i++)
		if (directory[0] == skipped[i][0] && strcmp(directory, skipped[i]) == 0)
			return true;
	return false;
}
