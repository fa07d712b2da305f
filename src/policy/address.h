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
 * The address of version 4 that one of version 6 leads to by itself: mapped, compatible, NAT64
 * (64:ff9b::/96 and :1::/48), 6to4, Teredo, ISATAP. False where there is none.
 */
bool address_embedded(const struct address *address, struct address *ret_inside);

/*
 * Why an address is not to be dialled unless a rule names it: loopback, private, link-local,
 * metadata, multicast, reserved, or version 4 of such a kind inside of version 6
 * (IANA special-purpose registries, RFC 6890 and its updates). NULL: it is of the public network.
 */
const char *address_special(const struct address *address);
