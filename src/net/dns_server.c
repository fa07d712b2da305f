#include "net/dns.h"

#include "net/dns_internal.h"

#include <errno.h>

/* Names of the SOA: nobody is asked for them, they only have to be there (RFC 2308, 3). */
static const unsigned char soa_names[] = "\x02ns\x07invalid\0\x04root\x07invalid";

/* Additional records: at most one OPT, of version 0; anything else has no place in a question. */
static bool read_additional(struct cursor *cursor, struct dns_query *query)
{
	uint32_t extended;

	if (cursor_u8(cursor) != 0 || cursor_u16(cursor) != DNS_OPT)
		return false;
	(void)cursor_u16(cursor); /* how much it takes: our answers are below any */
	extended = cursor_u32(cursor);
	(void)cursor_take(cursor, cursor_u16(cursor));
	query->has_edns = true;
	return !cursor->failed && (extended >> 16 & 0xff) == 0;
}

/* What the question deserves by itself. */
static enum dns_code read_question(struct cursor *cursor, const unsigned char *packet,
				   const struct dns_header *header, struct dns_query *query)
{
	char name[HOST_NAME_BYTES];
	size_t length = 0;
	const char *why;

	if (header->flags & DNS_FLAG_OPCODE)
		return DNS_NOTIMP;
	if (header->questions != 1 || header->answers || header->authorities ||
	    header->additional > 1 || (header->flags & DNS_FLAG_TRUNCATED))
		return DNS_FORMERR;
	query->question = cursor->at;
	if (!dns_get_name(cursor, packet, name, &length))
		return DNS_FORMERR;
	query->type = cursor_u16(cursor);
	query->class = cursor_u16(cursor);
	if (cursor->failed)
		return DNS_FORMERR;
	query->question_bytes = (size_t)(cursor->at - query->question);
	if (header->additional && !read_additional(cursor, query))
		return DNS_FORMERR;
	if (!cursor_end(cursor))
		return DNS_FORMERR;
	if (query->class != DNS_CLASS_IN)
		return DNS_REFUSED;
	query->has_host = length && host_parse(name, length, &query->host, &why) == 0 &&
			  query->host.kind == HOST_NAME;
	return DNS_NOERROR;
}

int dns_parse_query(const unsigned char *bytes, size_t length, struct dns_query *ret_query)
{
	struct cursor cursor = cursor_of(bytes, length);
	struct dns_header header = dns_get_header(&cursor);

	/* an answer to an answer is how two servers talk for ever */
	if (cursor.failed || (header.flags & DNS_FLAG_RESPONSE))
		return -EBADMSG;
	*ret_query = (struct dns_query){
		.id = header.id,
		.recursion = header.flags & DNS_FLAG_RECURSION_DESIRED,
	};
	ret_query->code = read_question(&cursor, bytes, &header, ret_query);
	if (ret_query->code == DNS_FORMERR)
		ret_query->has_edns = false;
	return 0;
}

static bool is_of_type(const struct address *address, uint16_t type)
{
	return (address->family == ADDRESS_V4 && type == DNS_A) ||
	       (address->family == ADDRESS_V6 && type == DNS_AAAA);
}

/* A record of the question's own name, which the packet has at its header's end. */
static void put_record(struct dns_writer *writer, unsigned type, uint32_t ttl_s)
{
	dns_put_u16(writer, 0xc000 | DNS_HEADER_BYTES);
	dns_put_u16(writer, type);
	dns_put_u16(writer, DNS_CLASS_IN);
	dns_put_u32(writer, ttl_s);
}

static void put_soa(struct dns_writer *writer, uint32_t ttl_s)
{
	put_record(writer, DNS_SOA, ttl_s);
	dns_put_u16(writer, sizeof(soa_names) + 5 * 4);
	dns_put(writer, soa_names, sizeof(soa_names));
	/* serial, refresh, retry, expire, and for how long a "no" is good */
	for (int i = 0; i < 4; i++)
		dns_put_u32(writer, 1);
	dns_put_u32(writer, ttl_s);
}

size_t dns_write_answer(const struct dns_query *query, enum dns_code code,
			const struct address *addresses, size_t address_count, uint32_t ttl_s,
			unsigned char room[static DNS_LIMIT_ANSWER_BYTES])
{
	struct dns_writer writer = { .at = room, .left = DNS_LIMIT_ANSWER_BYTES };
	struct dns_header header = {
		.id = query->id,
		.flags = (uint16_t)(DNS_FLAG_RESPONSE | DNS_FLAG_RECURSION | code |
				    (query->recursion ? DNS_FLAG_RECURSION_DESIRED : 0)),
		.questions = query->question_bytes > 0,
		.additional = query->has_edns,
	};

	for (size_t i = 0; i < address_count; i++)
		header.answers += code == DNS_NOERROR && is_of_type(&addresses[i], query->type);
	header.authorities = query->question_bytes && !header.answers &&
			     (code == DNS_NOERROR || code == DNS_NXDOMAIN);
	dns_put_header(&writer, &header);
	dns_put(&writer, query->question, query->question_bytes);
	for (size_t i = 0; header.answers && i < address_count; i++) {
		size_t bytes = addresses[i].family == ADDRESS_V4 ? 4 : 16;

		if (!is_of_type(&addresses[i], query->type))
			continue;
		put_record(&writer, query->type, ttl_s);
		dns_put_u16(&writer, (unsigned)bytes);
		dns_put(&writer, addresses[i].bytes, bytes);
	}
	if (header.authorities)
		put_soa(&writer, ttl_s);
	if (header.additional)
		dns_put_opt(&writer);
	return writer.failed ? 0 : (size_t)(writer.at - room);
}
