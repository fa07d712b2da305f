/*
 * Addresses of hosts, and which of them are not of the public network.
 *
 * Only the forms of inet_pton(3) are addresses: four decimal numbers, or RFC 4291 text without a
 * zone. What glibc's getaddrinfo() would take besides (2130706433, 0x7f.1, 0177.0.0.1, 127.1) is
 * none, and is no name either (policy/host.h). Pure; nothing allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest text of one, with its NUL (INET6_ADDRSTRLEN). */
#define ADDRESS_TEXT_BYTES 46

enum address_family { ADDRESS_NONE, ADDRESS_V4, ADDRESS_V6 };

struct address {
	uint8_t family;	   /* enum address_family */
	uint8_t bytes[16]; /* network order; of v4 the first four, the others 0 */
};

/* -EINVAL for everything that is not exactly one; no brackets, no blanks. */
int address_parse(const char *text, size_t length, struct address *ret_address);

/* The canonical text: dotted decimals, or RFC 5952. */
void address_print(const struct address *address, char text[static ADDRESS_TEXT_BYTES]);

bool address_equal(const struct address *a, const struct address *b);

/* Whether the first `bits` are those of the prefix; families have to be the same. */
bool address_within(const struct address *address, const struct address *prefix, unsigned bits);

/*
 * The address of version 4 that one of version 6 leads to by itself: mapped, compatible, translated
 * (::ffff:0:0:0/96), NAT64 (64:ff9b::/96 and :1::/48), 6to4, Teredo, ISATAP. False where there is
 * none.
 */
bool address_embedded(const struct address *address, struct address *ret_inside);

/* What kind of special address it is: how much a rule has to say to open it (policy/egress.c). */
enum address_kind {
	ADDRESS_PUBLIC,
	ADDRESS_PRIVATE,  /* of a private network */
	ADDRESS_LOOPBACK, /* of the host itself */
	ADDRESS_RESERVED, /* link-local, multicast, documentation, unassigned, tunnels... */
	ADDRESS_METADATA, /* of a cloud: whoever asks there is the machine */
};

struct address_class {
	enum address_kind kind;
	unsigned bits;	  /* of the range that makes it so: who names as many means this range */
	const char *text; /* what it is, for people; "" of a public one */
};

/*
 * Of the IANA special-purpose registries (RFC 6890 and its updates) and the metadata services of
 * clouds the most specific range. Version 4 of a special kind inside of version 6 has its kind and
 * all 128 bits.
 */
void address_classify(const struct address *address, struct address_class *ret_class);

/*
 * Why an address is not to be dialled unless a rule names it: the text of its class. NULL: it is of
 * the public network.
 */
const char *address_special(const struct address *address);
