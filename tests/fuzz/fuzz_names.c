/* The table of names, given one after the other: the same name, the same address, and back. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check(struct names *names, const char *name)
{
	uint32_t index = 0, again = 0, before = names->count;
	struct address address;
	const char *found = NULL;

	if (names_give(names, name, &index) < 0) {
		require(names->count == before);
		return;
	}
	require(index < names->count && names->count - before <= 1);
	require(names_give(names, name, &again) == 0 && again == index);
	for (int family = ADDRESS_V4; family <= ADDRESS_V6; family++) {
		names_address(index, (enum address_family)family, &address);
		require(names_look(names, &address, &found) == NAMES_NAME);
		require(strcmp(found, name) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct names *names = calloc(1, sizeof(*names));
	struct address address = { .family = ADDRESS_V4 };
	const char *found = NULL;
	char name[HOST_NAME_BYTES + 2];
	size_t length = 0;

	require(names);
	for (size_t i = 0; i < size; i++) {
		name[length++] = (char)data[i];
		if (data[i] && data[i] != '\n' && length < sizeof(name))
			continue;
		name[length - 1] = '\0';
		check(names, name);
		length = 0;
	}
	if (size >= 4) {
		memcpy(address.bytes, data, 4);
		require(names_look(names, &address, &found) != NAMES_NAME || found);
	}
	free(names);
	return 0;
}
