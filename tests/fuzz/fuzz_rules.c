/*
 * Codex's rules through the real parser, and as a policy: whatever the text is, nothing beyond it
 * is read, its outline reads back, and what is made of it can be printed.
 * Input: the text.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "policy/import.h"
#include "policy/outline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void import(const struct outline *outline, struct arena *arena)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct import import = { 0 };

	require(import_rules(outline, "rules/x.rules", arena, &import) == 0);
	import_print(&import, "rules", &text, NULL);
	require(!text.failed && text.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER bytes = { 0 };
	struct outline outline;
	char *text = malloc(size ? size : 1);

	require(text);
	if (size)
		memcpy(text, data, size);
	require(outline_parse_rules(text, size, &bytes) == 0);
	require(outline_read(bytes.data, bytes.length, &arena, &outline) == 0);
	if (outline.count)
		import(&outline, &arena);
	else
		require(outline.fault.line && outline.fault.column && outline.fault.text[0]);
	free(text);
	return 0;
}
