/* `bawn explain --host` and `--url`: the matcher's answer about a connection, and why. */
#pragma once

#include <stdbool.h>

struct arena;
struct buffer;
struct effective;
struct error;

/* One of host (NAME:PORT) and url is NULL. */
struct explain_target {
	const char *host, *url;
	bool json;
};

/*
 * Appends what egress_decide() answers now; nothing is resolved or sent. 0: it is allowed or may
 * be, 1: it is denied, negative: the target is none (-EINVAL).
 */
int explain_host(const struct effective *effective, const struct explain_target *target,
		 struct arena *arena, struct buffer *text, struct error *error);
