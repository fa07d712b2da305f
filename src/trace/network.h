/*
 * What an action connected to, or tried to: one row for each host, port and verdict. Filled by the
 * supervisor from what the proxy tells (broker/egress.h), told in the result.
 */
#pragma once

#include "policy/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;

/* A name with its NUL, or an address (policy/host.h). */
#define NETWORK_HOST_BYTES 256
/* Different ones in one result; more are counted only. */
#define NETWORK_LIMIT 128
/* Of those what was refused may take so many: a flood of it hides nothing that was allowed. */
#define NETWORK_LIMIT_REFUSED 64

struct network_target {
	char host[NETWORK_HOST_BYTES];
	uint16_t port;
	const char *verdict;  /* "allow", "deny", "ask"; constant */
	const char *protocol; /* of the first of them; constant, NULL: not seen */
	struct rule_ref rule;
	uint64_t count;	 /* connections, requests of a kept one, lookups */
	uint64_t failed; /* of those that were allowed: did not come about */
	uint64_t bytes_up, bytes_down;
};

struct network_list {
	struct network_target items[NETWORK_LIMIT];
	size_t count, refused;
	bool by_ports;	  /* the kernel could not capture every port, only those that rules name */
	uint64_t dropped; /* different ones beyond the limit */
};

/* The row, made where it is new; NULL: beyond the limit, and counted so. */
struct network_target *network_find(struct network_list *list, const char *host, uint16_t port,
				    const char *verdict, const struct rule_ref *rule);

/* The object `network`. */
void network_json(const struct network_list *list, struct json *json);
