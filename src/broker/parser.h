/*
 * The supervisor's side of bawn-parse for shell strings (ipc/parse.h): the role is started with the
 * first text and stays for the next ones. What comes back is foreign: policy/shell checks each tree
 * against its text before it believes it.
 */
#pragma once

#include "ipc/role.h"
#include "policy/shell.h"

#include <stddef.h>

struct arena;
struct error;

struct parser {
	struct role role;
	unsigned texts; /* that this role had */
};

#define PARSER_NONE ((struct parser){ .role = ROLE_NONE })

/*
 * Gives the tree of a text of at most SHELL_LIMIT_BYTES; its nodes are the arena's, the text is
 * borrowed. On failure a negative errno, with a sentence for people in the error: -ENOSYS where the
 * build has no parser, -EFBIG for too many nodes, -ETIMEDOUT, and -EBADMSG for a role that died or
 * is not to be believed, which is ended then.
 */
int parser_read(struct parser *parser, struct arena *arena, const char *text, size_t length,
		struct shell_tree *ret_tree, struct error *error);

/* Ends the role. Accepts PARSER_NONE. */
void parser_end(struct parser *parser);

#define CLEANUP_PARSER __attribute__((cleanup(parser_end)))
