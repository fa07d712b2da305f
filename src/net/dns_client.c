#include "net/dns.h"

#include "net/dns_internal.h"

#include <errno.h>

/* The name that addresses are looked for at, and where it leads. */
struct chain {
	struct host name;
	bool is_led; /* this name has an alias, which is in `next` */
	struct host next;
};

size_t dns_write_query(uint16_t id, const struct host *host, enum dns_type type,
		       unsigned char room[static DNS_LIMIT_QUERY_BYTES])
{
	struct dns_writer writer = { .at = room, .left = DNS_LIMIT_QUERY_BYTES };
	const struct dns_header header = {
		.id = id,
		.flags = DNS_FLAG_RECURSION_DESIRED,
		.questions = 1,
		.additional = 1,
	};
	static const unsigned char root;

	dns_put_header(&writer, &header);
	for (const char *label = host->name; *label;) {
		size_t length = strcspn(label, ".");
		unsigned char size = (unsigned char)length;

		dns_put(&writer, &size, 1);
		dns_put(&writer, label, length);
		label += length + (label[length] == '.');
	}
	dns_put(&writer, &root, 1);
	dns_put_u16(&writer, type);
	dns_put_u16(&writer, DNS_CLASS_IN);
	dns_put_opt(&writer);
	return writer.failed ? 0 : (size_t)(writer.at - room);
}

/* A name of the packet as a host; false for what is none, or no name at all. */
static bool get_host(struct cursor *cursor, const unsigned char *packet, struct host *ret_host)
{
	char text[HOST_NAME_BYTES];
	size_t length = 0;
	const char *why;

	return dns_get_name(cursor, packet, text, &length) && length &&
	       host_parse(text, length, ret_host, &why) == 0 && ret_host->kind == HOST_NAME;
}

struct record {
	bool has_owner; /* of what is no host, nothing is wanted */
	struct host owner;
	uint16_t type, class;
	struct cursor data;
};

static void get_record(struct cursor *cursor, const unsigned char *packet, struct record *record)
{
	record->has_owner = get_host(cursor, packet, &record->owner);
	record->type = cursor_u16(cursor);
	record->class = cursor_u16(cursor);
	(void)cursor_u32(cursor);
	record->data = cursor_part(cursor, cursor_u16(cursor));
}

/* An address of a record; false where its data is none. */
static bool get_address(struct cursor *data, enum dns_type type, struct address *ret_address)
{
	size_t bytes = type == DNS_A ? 4 : 16;
	const unsigned char *at = cursor_take(data, bytes);

	if (!at || !cursor_end(data))
		return false;
	*ret_address = (struct address){ .family = type == DNS_A ? ADDRESS_V4 : ADDRESS_V6 };
	memcpy(ret_address->bytes, at, bytes);
	return true;
}

/* One alias of the name, or none; a second one that is another makes it no answer. */
static bool note_alias(struct record *record, const unsigned char *packet, struct chain *chain)
{
	struct host next;

	if (!get_host(&record->data, packet, &next) || !cursor_end(&record->data))
		return false;
	if (chain->is_led && !host_equal(&next, &chain->next))
		return false;
	chain->next = next;
	chain->is_led = true;
	return true;
}

static bool note_address(struct record *record, enum dns_type type, struct dns_result *result)
{
	struct address address;

	if (!get_address(&record->data, type, &address))
		return false;
	for (size_t i = 0; i < result->address_count; i++)
		if (address_equal(&address, &result->addresses[i]))
			return true;
	if (result->address_count == EGRESS_LIMIT_ADDRESSES)
		result->too_many = true;
	else
		result->addresses[result->address_count++] = address;
	return true;
}

/* All records of the answer, for what they say of one name. Owner names are compared as hosts. */
static bool look(struct cursor answers, unsigned count, const unsigned char *packet,
		 enum dns_type type, struct chain *chain, struct dns_result *result)
{
	struct record record;

	chain->is_led = false;
	for (unsigned i = 0; i < count; i++) {
		get_record(&answers, packet, &record);
		if (answers.failed)
			return false;
		if (!record.has_owner || record.class != DNS_CLASS_IN ||
		    !host_equal(&record.owner, &chain->name))
			continue;
		if (record.type == DNS_CNAME && !note_alias(&record, packet, chain))
			return false;
		if (record.type == type && !note_address(&record, type, result))
			return false;
	}
	/* a name has an alias or addresses (RFC 1034, 3.6.2) */
	return !chain->is_led || result->address_count == 0;
}

/* From the name along its aliases; each look begins with the first record, in any order. */
static int follow(struct cursor answers, unsigned count, const unsigned char *packet,
		  const struct host *host, enum dns_type type, struct dns_result *result)
{
	struct chain chain = { .name = *host };

	for (;;) {
		if (!look(answers, count, packet, type, &chain, result))
			return -EBADMSG;
		if (!chain.is_led)
			return 0;
		if (result->alias_count++ == DNS_LIMIT_ALIASES)
			return -EBADMSG;
		chain.name = chain.next;
	}
}

/* The rest of the packet is records, and as many as it says. */
static bool is_whole(struct cursor cursor, const struct dns_header *header,
		     const unsigned char *packet)
{
	unsigned count = (unsigned)header->answers + header->authorities + header->additional;
	struct record record;

	if (count > DNS_LIMIT_RECORDS)
		return false;
	for (unsigned i = 0; i < count && !cursor.failed; i++)
		get_record(&cursor, packet, &record);
	return cursor_end(&cursor);
}

int dns_parse_answer(const unsigned char *bytes, size_t length, uint16_t id,
		     const struct host *host, enum dns_type type, struct dns_result *ret_result)
{
	struct cursor cursor = cursor_of(bytes, length);
	struct dns_header header = dns_get_header(&cursor);
	struct host asked;

	if (cursor.failed || header.id != id || !(header.flags & DNS_FLAG_RESPONSE) ||
	    (header.flags & DNS_FLAG_OPCODE) || header.questions != 1)
		return -ENOMSG;
	if (!get_host(&cursor, bytes, &asked) || !host_equal(&asked, host) ||
	    cursor_u16(&cursor) != type || cursor_u16(&cursor) != DNS_CLASS_IN || cursor.failed)
		return -ENOMSG;
	*ret_result = (struct dns_result){
		.code = (enum dns_code)(header.flags & DNS_FLAG_CODE),
		.truncated = header.flags & DNS_FLAG_TRUNCATED,
	};
	/* what is there of a cut packet may be cut anywhere */
	if (ret_result->truncated)
		return 0;
	if (!is_whole(cursor, &header, bytes))
		return -EBADMSG;
	if (ret_result->code != DNS_NOERROR)
		return 0;
	return follow(cursor, header.answers, bytes, host, type, ret_result);
}
