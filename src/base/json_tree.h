/*
 * A JSON value as a tree, read by base/json_read.h: for whoever looks at many members of a value
 * that is small enough to be held. Strictness and faults are the reader's. Nodes and their texts
 * are the arena's, whose limit bounds what a hostile value can make us hold; no recursion. Pure.
 */
#pragma once

#include "base/json_read.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buffer;

struct json_node {
	enum json_type type;
	bool is_true;
	/* name: of a member, else NULL; text: of a string its bytes, of a number its digits. Both
	 * end with a NUL that is not counted; a string may hold NULs of its own. */
	const char *name, *text;
	size_t length;
	const struct json_node *first, *next; /* the items of an object or array; the next beside */
};

/*
 * Reads the value that the bytes begin with; what stands behind it is not looked at. depth_limit is
 * that of json_read_begin(). ret_length: where the value ends. Returns 0; -EBADMSG with the
 * reader's fault, and in ret_length the byte where it is; -ENOMEM where the arena's limit does not
 * hold it.
 */
int json_tree_read(const void *bytes, size_t length, unsigned depth_limit, struct arena *arena,
		   const struct json_node **ret_root, size_t *ret_length,
		   enum json_fault *ret_fault) __attribute__((warn_unused_result));

/*
 * The member of members that a path names: "rule.id". NULL where there is none, for NULL too, so
 * that looks can be chained.
 */
const struct json_node *json_tree_get(const struct json_node *node, const char *path);

/* A string's text; NULL for everything else. */
const char *json_tree_text(const struct json_node *node, const char *path);

/* A number that is an unsigned integer; otherwise what is given for it. */
uint64_t json_tree_unsigned(const struct json_node *node, const char *path, uint64_t otherwise);

size_t json_tree_count(const struct json_node *node);

/* Appends a string's or number's bytes for a person: nothing that is not visible, NULs as \x00. */
void json_tree_visible(const struct json_node *node, struct buffer *buffer);
