/* Programs: whatever a file says, what it needs is text that ends, within the limits. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "policy/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static int read_input(void *context, uint64_t offset, void *bytes, size_t length)
{
	const struct input *input = context;

	if (offset > input->size || length > input->size - offset)
		return -1;
	memcpy(bytes, input->data + offset, length);
	return 0;
}

static void require_text(const char *text)
{
	if (text && strlen(text) >= ELF_LIMIT_TEXT)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct input input = { data, size };
	const struct elf_source source = { read_input, &input };
	struct elf_needs needs = { 0 };

	if (elf_read(&source, &arena, &needs) < 0)
		return 0;
	if (needs.count > ELF_LIMIT_NAMES || (needs.width != 32 && needs.width != 64))
		abort();
	require_text(needs.interpreter);
	require_text(needs.rpath);
	require_text(needs.runpath);
	for (size_t i = 0; i < needs.count; i++)
		require_text(needs.names[i]);
	return 0;
}
