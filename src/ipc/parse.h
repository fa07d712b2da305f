/*
 * The edge supervisor-parse: what bawn-parse is asked, and what it answers.
 *
 * Its configuration begins with a struct parse_order; a text follows. PARSE_IDENTITY: of a git
 * configuration; one IDENTITY_RESULT comes back (workspace/identity.h). PARSE_OUTLINE: of a policy
 * file; one PARSE_OUTLINE_RESULT comes back. A result's bytes are in the one sealed memfd with it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

enum parse_kind { PARSE_IDENTITY = 1, PARSE_OUTLINE = 3 };

struct parse_order {
	uint32_t kind;
};

enum { PARSE_OUTLINE_RESULT = 2 };

/*
 * Starts the role with this configuration and waits for its one answer: the bytes of the memfd that
 * comes with a message of this type, at most limit_bytes of them, the arena's, a NUL behind them.
 * Anything else is -EBADMSG, with the step that failed where the role told it.
 */
int parse_ask(int config_fd, uint32_t type, size_t limit_bytes, struct arena *arena,
	      char **ret_bytes, size_t *ret_length, struct error *error);
