/*
 * Texts as addresses: what inet_pton(3) says, we say; the text that is printed of one is read as
 * the same address, and is short enough. Input: the text.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check(const struct address *address)
{
	char text[ADDRESS_TEXT_BYTES];
	struct address again, inside;
	struct address_class class;
	unsigned bits = address->family == ADDRESS_V4 ? 32 : 128;

	address_print(address, text);
	require(memchr(text, '\0', sizeof(text)) != NULL);
	require(address_parse(text, strlen(text), &again) == 0 && address_equal(address, &again));
	require(address_within(address, &again, bits) &&
		!address_within(address, &again, bits + 1));
	address_classify(address, &class);
	require(class.bits <= bits && class.text != NULL);
	require((address_special(address) == NULL) == (class.kind == ADDRESS_PUBLIC));
	if (address_embedded(address, &inside)) {
		require(inside.family == ADDRESS_V4);
		if (address_special(&inside))
			require(address_special(address) && class.bits == 128);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct address address;
	unsigned char bytes[16] = { 0 };
	char *text = strndup((const char *)data, size);
	bool whole = text && strlen(text) == size;
	int r = address_parse((const char *)data, size, &address);
	int family = ADDRESS_NONE;

	require(text != NULL);
	if (whole && inet_pton(AF_INET, text, bytes) == 1)
		family = ADDRESS_V4;
	else if (whole && inet_pton(AF_INET6, text, bytes) == 1)
		family = ADDRESS_V6;
	free(text);
	require((r == 0) == (family != ADDRESS_NONE));
	if (r == 0) {
		require(address.family == family);
		require(memcmp(address.bytes, bytes, sizeof(bytes)) == 0);
		check(&address);
	}
	/* any sixteen bytes are one, too */
	if (size >= 16) {
		address = (struct address){ .family = ADDRESS_V6 };
		memcpy(address.bytes, data, 16);
		check(&address);
	}
	return 0;
}
