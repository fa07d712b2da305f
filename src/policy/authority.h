/*
 * Policies of several authorities as one: the managed ones of the host, those of the user's store,
 * an adopted project's, and what the command line names, in this order. Pure.
 *
 * Deny beats allow: lists are put together (what is said twice is the first one's), and those that
 * deny beat those that allow wherever they are used; of a single value the one that allows less
 * counts, and of equal ones the first. What a document locks (its "lock") no later one widens: that
 * is refused, not dropped.
 *
 * A document here is a whole policy: a file with the preset that it goes on from.
 */
#pragma once

#include "policy/document.h"

struct arena;

enum authority {
	AUTHORITY_MANAGED, /* /etc/bawn/policy.d */
	AUTHORITY_USER,	   /* the user's store */
	AUTHORITY_PROJECT, /* adopted, in the store */
	AUTHORITY_CALLER,  /* --policy and --preset */
	AUTHORITY_COUNT,
};

/* "managed", "user", "project", "command line" */
const char *authority_name(enum authority authority);

/* What would widen, and what locks it. */
struct authority_conflict {
	const struct document_statement *statement, *lock;
};

/* 0, -EPERM with the conflict, or -ENOMEM. Statements are copied, their strings are not. */
int authority_join(const struct document *const *documents, size_t count, struct arena *arena,
		   struct document *ret_document, struct authority_conflict *ret_conflict);
