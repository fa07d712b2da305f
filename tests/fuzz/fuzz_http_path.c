/* Paths: the text is its own normal form, has no segment that leads elsewhere, and fits. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/http_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[HTTP_PATH_LIMIT_BYTES + 1], again[sizeof(text)];
	const char *why = NULL;
	int length, second;

	length = http_path_normalise((const char *)data, size, text, sizeof(text), &why);
	if (length < 0) {
		require(why);
		return 0;
	}
	require(length <= (int)HTTP_PATH_LIMIT_BYTES && strlen(text) == (size_t)length);
	require(text[0] == '/' || strcmp(text, "*") == 0);
	require(!strstr(text, "//") && !strstr(text, "/./") && !strstr(text, "/../"));
	require(!strpbrk(text, "\\;?# \"") && !strstr(text, "%2F") && !strstr(text, "%00"));
	for (const char *at = text; *at; at++)
		require(*at > 0x20 && *at < 0x7f);
	second = http_path_normalise(text, (size_t)length, again, sizeof(again), &why);
	/* at the very end of the room there is none for an escape */
	require(second == length || (second == -7 && length + 3 >= (int)sizeof(again)));
	require(second < 0 || strcmp(text, again) == 0);
	return 0;
}
