/*
 * The filter of git's configuration: its result has allowed keys only, as a reader of its own
 * sees them, and is its own result.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "workspace/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* `[name]` or `[name "sub"]`, with nothing in them that would need an escape. */
static char *check_head(char *line, char **ret_subsection)
{
	char *close = strchr(line, ']'), *quote = strchr(line, '"');

	require(close && close[1] == '\0');
	*ret_subsection = NULL;
	if (quote) {
		require(quote[-1] == ' ' && close[-1] == '"' && close - 1 > quote);
		close[-1] = '\0';
		quote[-1] = '\0';
		require(!strpbrk(quote + 1, "\"\\"));
		*ret_subsection = quote + 1;
	}
	*close = '\0';
	return line + 1;
}

/* `<TAB>key` or `<TAB>key = "value"`. */
static void check_entry(char *line, const char *section, const char *subsection)
{
	char *key = line + 1, *value = strchr(line, ' ');

	require(section && line[0] == '\t');
	if (value) {
		*value = '\0';
		require(strncmp(value + 1, "= \"", 3) == 0);
		for (value += 4; *value != '"'; value++) {
			require((unsigned char)*value >= ' ' && *value != 0x7f);
			if (*value == '\\') {
				value++;
				require(*value == '"' || *value == '\\');
			}
		}
		require(value[1] == '\0');
	}
	require(identity_allows(section, subsection, key));
}

static void check_text(char *text)
{
	char *section = NULL, *subsection = NULL;

	while (*text) {
		char *end = strchr(text, '\n');

		require(end);
		*end = '\0';
		if (text[0] == '[')
			section = check_head(text, &subsection);
		else
			check_entry(text, section, subsection);
		text = end + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct arena arena = { 0 };
	char *once, *twice;

	require(text);
	once = identity_filter(&arena, text);
	require(once && strlen(once) <= 4 * size);
	twice = identity_filter(&arena, once);
	require(twice && strcmp(once, twice) == 0);
	check_text(once);
	arena_free(&arena);
	free(text);
	return 0;
}
