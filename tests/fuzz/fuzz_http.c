/*
 * Heads of HTTP: what is taken is written, what is written is taken again and means the same, and
 * the second time is written as it is.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REQUEST, RESPONSE };

static struct http_request request;
static struct http_response response;
static char first[HTTP_LIMIT_HEAD_BYTES + HTTP_HEAD_GROWTH_BYTES], second[sizeof(first)];

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_head(const struct http_head *head, const char *bytes, size_t length)
{
	require(head->field_count <= HTTP_LIMIT_FIELDS && head->minor <= 1);
	for (size_t i = 0; i < head->field_count; i++) {
		const struct http_field *field = &head->fields[i];

		require(field->name.bytes >= bytes && field->name.length);
		require(field->value.bytes + field->value.length <= bytes + length);
		require(!memchr(field->value.bytes, '\n', field->value.length));
		require(!memchr(field->value.bytes, '\r', field->value.length));
		require(!memchr(field->value.bytes, '\0', field->value.length));
	}
}

static int find(const char *bytes, size_t length)
{
	const char *why = NULL;
	size_t scanned = 0;
	int result = http_head_end(bytes, length, &scanned, &why);

	require(result <= (int)length && (result >= 0 || why));
	return result;
}

/* Writes what was read; its length, 0 for what is never written. */
static int write_again(int kind, const struct http_asked *asked, unsigned flags, char *room,
		       size_t room_bytes)
{
	static const struct span as_it_is;
	int length;

	if (kind == RESPONSE)
		length = http_write_response(&response, asked, flags, room, room_bytes);
	else if (request.form == HTTP_AUTHORITY || !request.has_host)
		return 0;
	else
		length = http_write_request(&request, &request.host, request.port, as_it_is, flags,
					    room, room_bytes);
	require(length > 0);
	return length;
}

static bool read_again(int kind, const char *bytes, size_t length, const struct http_asked *asked)
{
	const char *why = NULL;
	int result;

	if (kind == REQUEST)
		result = http_parse_request(bytes, length, &request, &why);
	else
		result = http_parse_response(bytes, length, asked, &response, &why);
	require(result == 0 || why);
	return result == 0;
}

static void check(int kind, const char *bytes, size_t length, const struct http_asked *asked,
		  unsigned flags)
{
	struct http_head *head = kind == REQUEST ? &request.head : &response.head;
	enum http_framing framing;
	uint64_t content_length;
	int one, two;

	if (!read_again(kind, bytes, length, asked))
		return;
	check_head(head, bytes, length);
	framing = head->framing;
	content_length = head->content_length;
	one = write_again(kind, asked, flags, first, length + HTTP_HEAD_GROWTH_BYTES);
	if (one == 0)
		return;
	require(find(first, (size_t)one) == one);
	require(read_again(kind, first, (size_t)one, asked));
	require(head->framing == framing);
	require(framing != HTTP_LENGTH || head->content_length == content_length);
	two = write_again(kind, asked, flags, second, sizeof(second));
	require(two == one && memcmp(first, second, (size_t)one) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_asked asked = { .minor = 1 };
	const char *bytes = (const char *)data + 1;
	unsigned flags;
	int end;

	if (size < 2)
		return 0;
	asked.method = data[0] & 0x80 ? HTTP_HEAD : HTTP_GET;
	asked.upgrade = data[0] & 0x40;
	flags = data[0] & 0x0f;
	/* also what http_head_end() would not have given */
	if (data[0] & 0x10) {
		(void)read_again(REQUEST, bytes, size - 1, &asked);
		(void)read_again(RESPONSE, bytes, size - 1, &asked);
		return 0;
	}
	end = find(bytes, size - 1);
	if (end <= 0)
		return 0;
	check(data[0] & 0x20 ? RESPONSE : REQUEST, bytes, (size_t)end, &asked, flags);
	return 0;
}
