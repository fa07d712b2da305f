#include "net/dns.h"

#include "net/dns_internal.h"

size_t dns_frame(const unsigned char *bytes, size_t length)
{
	size_t frame = length < 2 ? 0 : 2 + ((size_t)bytes[0] << 8 | bytes[1]);

	return frame > length ? 0 : frame;
}

struct dns_header dns_get_header(struct cursor *cursor)
{
	struct dns_header header;

	header.id = cursor_u16(cursor);
	header.flags = cursor_u16(cursor);
	header.questions = cursor_u16(cursor);
	header.answers = cursor_u16(cursor);
	header.authorities = cursor_u16(cursor);
	header.additional = cursor_u16(cursor);
	return header;
}

/* A label at the cursor, with a dot in front where it is not the first. False: no such name. */
static bool get_label(struct cursor *cursor, size_t size, char *text, size_t *length)
{
	const unsigned char *label = cursor_take(cursor, size);
	size_t dot = *length > 0;

	if (!label || *length + dot + size >= HOST_NAME_BYTES || memchr(label, '.', size))
		return false;
	if (dot)
		text[*length] = '.';
	memcpy(text + *length + dot, label, size);
	*length += dot + size;
	return true;
}

bool dns_get_name(struct cursor *cursor, const unsigned char *packet,
		  char text[static HOST_NAME_BYTES], size_t *ret_length)
{
	struct cursor *reader = cursor, elsewhere;
	const unsigned char *before = cursor->at;
	size_t length = 0;
	unsigned pointers = 0;
	uint8_t size;

	while ((size = cursor_u8(reader)) != 0) {
		const unsigned char *to;

		if (size < 0x40) {
			if (!get_label(reader, size, text, &length))
				break;
			continue;
		}
		/* each leads to before where the last one was followed from: there is no loop */
		to = packet + ((size_t)(size & 0x3f) << 8 | cursor_u8(reader));
		if (size < 0xc0 || reader->failed || to >= before ||
		    pointers++ == DNS_LIMIT_POINTERS)
			break;
		elsewhere = cursor_of(to, (size_t)(before - to));
		before = to;
		reader = &elsewhere;
	}
	if (size || reader->failed || cursor->failed) {
		cursor->failed = true;
		return false;
	}
	text[length] = '\0';
	*ret_length = length;
	return true;
}

void dns_put(struct dns_writer *writer, const void *bytes, size_t length)
{
	if (writer->failed || length > writer->left) {
		writer->failed = true;
		return;
	}
	if (length == 0)
		return; /* `bytes` may be NULL */
	memcpy(writer->at, bytes, length);
	writer->at += length;
	writer->left -= length;
}

void dns_put_u16(struct dns_writer *writer, unsigned value)
{
	const unsigned char bytes[2] = { (unsigned char)(value >> 8), (unsigned char)value };

	dns_put(writer, bytes, sizeof(bytes));
}

void dns_put_u32(struct dns_writer *writer, uint32_t value)
{
	dns_put_u16(writer, value >> 16);
	dns_put_u16(writer, value & 0xffff);
}

void dns_put_header(struct dns_writer *writer, const struct dns_header *header)
{
	const uint16_t numbers[] = { header->id,      header->flags,	   header->questions,
				     header->answers, header->authorities, header->additional };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		dns_put_u16(writer, numbers[i]);
}

void dns_put_opt(struct dns_writer *writer)
{
	static const unsigned char root;

	dns_put(writer, &root, 1);
	dns_put_u16(writer, DNS_OPT);
	dns_put_u16(writer, DNS_LIMIT_UDP_BYTES);
	dns_put_u32(writer, 0);
	dns_put_u16(writer, 0);
}
