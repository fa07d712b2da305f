/* What both sides of DNS share; for dns*.c alone. */
#pragma once

#include "net/dns.h"
#include "net/span.h"

#define DNS_HEADER_BYTES 12u
#define DNS_CLASS_IN 1u

enum dns_flag {
	DNS_FLAG_RESPONSE = 0x8000,
	DNS_FLAG_OPCODE = 0x7800,
	DNS_FLAG_TRUNCATED = 0x0200,
	DNS_FLAG_RECURSION_DESIRED = 0x0100,
	DNS_FLAG_RECURSION = 0x0080,
	DNS_FLAG_CODE = 0x000f,
};

struct dns_header {
	uint16_t id, flags, questions, answers, authorities, additional;
};

struct dns_header dns_get_header(struct cursor *cursor);

/*
 * A name at the cursor as text with dots, without one at its end; "" is the root. Its bytes are as
 * they are: host_parse() judges them; a dot inside of a label fails here, since the text would not
 * tell it from one between labels. Pointers lead into `packet`, backwards only.
 */
bool dns_get_name(struct cursor *cursor, const unsigned char *packet,
		  char text[static HOST_NAME_BYTES], size_t *ret_length);

/* Writing; it latches when there is no room. */
struct dns_writer {
	unsigned char *at;
	size_t left;
	bool failed;
};

void dns_put(struct dns_writer *writer, const void *bytes, size_t length);
void dns_put_u16(struct dns_writer *writer, unsigned value);
void dns_put_u32(struct dns_writer *writer, uint32_t value);
void dns_put_header(struct dns_writer *writer, const struct dns_header *header);
/* The empty OPT of RFC 6891 that says how long datagrams may be. */
void dns_put_opt(struct dns_writer *writer);
