/*
 * Addresses that a task gets for names: each name that it asks for has one of version 4 and one of
 * version 6 that exist in its box alone, so that a connection to one is judged by its name.
 *
 * An address once given is never given to another name: a program may have kept it, and a
 * connection to it would be judged by the wrong one. So the table only grows, and is full at its
 * limit. Names that no rule opens get one too, for the words of the refusal, but of a share of
 * their own: however many are asked for, there is room for those that are allowed. The pages of the
 * table are used as it fills. The ranges are those of policy/place.h. Pure; nothing allocates.
 */
#pragma once

#include "policy/address.h"
#include "policy/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names of a task. Agents ask for some dozens; a full table is an attempt to use up memory. */
#define NAMES_LIMIT 16384u
/* Their bytes: 64 for each. */
#define NAMES_LIMIT_BYTES (1024u * 1024)

/* Names that no rule opens, and their bytes; those beyond are not answered. */
#define NAMES_LIMIT_CLOSED 4096u
#define NAMES_LIMIT_CLOSED_BYTES (NAMES_LIMIT_BYTES / 2)

/* Twice the names, so that a look takes few steps. */
#define NAMES_SLOTS (NAMES_LIMIT * 2)

/* Zero is an empty one, but for the key, which is random: no task can aim at one slot. */
struct names {
	uint64_t key;
	uint32_t count, bytes, closed_count, closed_bytes;
	uint32_t begin[NAMES_LIMIT]; /* of the name's text, with its NUL */
	uint16_t slots[NAMES_SLOTS]; /* index + 1; 0: free */
	char text[NAMES_LIMIT_BYTES];
};

enum names_place {
	NAMES_OUTSIDE, /* an address of the world */
	NAMES_NAME,    /* given to a name */
	NAMES_FREE,    /* of our ranges, and nobody's */
	NAMES_SERVER,  /* the name server that resolv.conf has */
	NAMES_DOOR,    /* the door for programs that like proxies */
	NAMES_BOX,     /* the box's own */
};

/* The number of a name, which is canonical text. -ENOENT: it has none. */
int names_find(const struct names *names, const char *name, uint32_t *ret_index);

/* The same; given to it now where it has none. -ENOSPC. */
int names_give(struct names *names, const char *name, uint32_t *ret_index);

/* The same of a name that no rule opens. */
int names_give_closed(struct names *names, const char *name, uint32_t *ret_index);

/* Its addresses. */
void names_address(uint32_t index, enum address_family family, struct address *ret_address);

/* What an address is; the name of NAMES_NAME, which stays where it is. */
enum names_place names_look(const struct names *names, const struct address *address,
			    const char **ret_name);
