/* What the readers and writers of heads share; for http*.c alone. */
#pragma once

#include "net/http.h"

/* The fields, and what is looked for while they are read. */
struct http_reader {
	struct http_head *head;
	const struct http_field *host, *length, *coding, *expect; /* the only one of each */
	const char *why;
};

/* All but the fields, which are many and counted. */
void http_clear(struct http_head *head);

/* Refuses with a reason. */
int http_refuse(struct http_reader *reader, int refusal, const char *why);

/* HTTP/1.x with nothing else. */
int http_read_version(struct http_reader *reader, struct span text);

/* All lines after the first, with the empty one. */
int http_read_fields(struct http_reader *reader, const char *bytes, size_t length);

/* The first line of a head, and where the fields begin. */
struct span http_first_line(const char *bytes, size_t length, size_t *ret_next);

/* Bytes of a field's value or of a reason. */
static inline bool http_is_text_byte(char byte)
{
	return ((unsigned char)byte >= 0x20 || byte == '\t') && byte != 0x7f;
}

bool http_is_text(struct span text);

/* RFC 9110, 5.6.2. */
static inline bool http_is_token_byte(char byte)
{
	static const uint32_t set[4] = { 0, 0x03FF6CFA, 0xC7FFFFFE, 0x57FFFFFF };
	unsigned char value = (unsigned char)byte;

	return value < 128 && (set[value / 32] >> value % 32 & 1);
}

/* The kind of a name, in which '_' counts as '-': so programs behind gateways see it. */
enum http_field_kind http_kind(struct span name);
