/*
 * ClientHellos: with more bytes what was needed becomes a verdict, which stays; a name is a host's;
 * and the same message in other records is the same.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADER_BYTES 5u

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* The message of these records in records of `step` bytes; their bytes. */
static size_t cut_again(const uint8_t *data, size_t length, size_t step, uint8_t *out)
{
	static uint8_t message[HELLO_LIMIT_BYTES];
	size_t bytes = 0, written = 0;

	for (size_t at = 0; at < length;) {
		size_t part = (size_t)data[at + 3] << 8 | data[at + 4];

		memcpy(message + bytes, data + at + HEADER_BYTES, part);
		bytes += part;
		at += HEADER_BYTES + part;
	}
	for (size_t at = 0; at < bytes; at += step) {
		size_t part = bytes - at < step ? bytes - at : step;
		const uint8_t header[HEADER_BYTES] = { 22, 3, 3, (uint8_t)(part >> 8),
						       (uint8_t)part };

		memcpy(out + written, header, sizeof(header));
		memcpy(out + written + sizeof(header), message + at, part);
		written += sizeof(header) + part;
	}
	return written;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t other[HELLO_LIMIT_BUFFER_BYTES];
	struct hello hello = { 0 }, again = { 0 };
	const char *why = NULL;
	int used = hello_parse(data, size, &hello, &why);
	size_t length;

	require(used <= (int)size && (used < 0) == (why != NULL));
	require(used <= 0 || hello_begins(data, size) == 1);
	if (used < 0 && size)
		/* what is refused early is not taken with less */
		require(hello_parse(data, size - 1, &again, &why) <= 0 || size > 1);
	if (used <= 0)
		return 0;
	require(hello_parse(data, (size_t)used - 1, &again, &why) == 0);
	if (hello.has_name) {
		struct host host;

		require(hello.host.kind == HOST_NAME);
		require(host_parse(hello.host.name, strlen(hello.host.name), &host, &why) == 0);
		require(host_equal(&host, &hello.host));
	}
	length = cut_again(data, (size_t)used, (size_t)used / 32 + 1, other);
	require(hello_parse(other, length, &again, &why) == (int)length);
	require(again.has_name == hello.has_name && again.has_ech == hello.has_ech);
	require(again.alpn == hello.alpn && again.has_early_data == hello.has_early_data);
	require(!hello.has_name || host_equal(&hello.host, &again.host));
	return 0;
}
