/*
 * Hosts as rules and requests name them, in one canonical form: lower case, no dot at the end.
 *
 * A name has labels of [a-z0-9_-], 1 to 63 bytes each that neither begin nor end with '-', at most
 * 253 bytes, and a last label that is neither all digits nor hexadecimal as 0x1f: such things are
 * addresses to some programs, and refused here. Any other byte is refused before anything is
 * matched: NUL, CR, LF, blanks, '%', '@', '\', bytes above 0x7e. U-labels have their A-label form
 * only (RFC 5890). Pure.
 */
#pragma once

#include "policy/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A name with its NUL (RFC 1035: 253 bytes of text). */
#define HOST_NAME_BYTES 254

enum host_kind { HOST_NAME, HOST_ADDRESS };

struct host {
	enum host_kind kind;
	struct address address;	    /* of HOST_ADDRESS */
	char name[HOST_NAME_BYTES]; /* canonical text of either; addresses without brackets */
};

/*
 * A host as a client gives it; an address of version 6 may be in brackets. -EINVAL with the reason,
 * a constant text that goes on from "the host ".
 */
int host_parse(const char *text, size_t length, struct host *ret_host, const char **ret_why);

/*
 * HOST:PORT, or HOST where default_port is not 0. Version 6 has to be in brackets there.
 * Ports are 1 to 65535 in plain decimals.
 */
int host_parse_port(const char *text, size_t length, uint16_t default_port, struct host *ret_host,
		    uint16_t *ret_port, const char **ret_why);

/* The host of an address. */
void host_of_address(const struct address *address, struct host *ret_host);

bool host_equal(const struct host *a, const struct host *b);

/*
 * A name that leads to what is never public: localhost and what is below it, metadata services of
 * clouds, Kubernetes' own. NULL: none. Denied like special addresses, unless a rule names it.
 */
const char *host_special(const struct host *host);
