/*
 * The edge supervisor-parse: what bawn-parse is asked, and what it answers.
 *
 * Its configuration begins with a struct parse_order; a text follows. PARSE_IDENTITY: of a git
 * configuration; one IDENTITY_RESULT comes back (workspace/identity.h). PARSE_OUTLINE: of a policy
 * file, or other text in YAML, PARSE_TOML: in TOML, PARSE_RULES: of Codex's rules; one
 * PARSE_OUTLINE_RESULT comes back. A result's bytes are in the one sealed memfd with it.
 *
 * PARSE_SHELL: nothing follows, and texts of shells come over the channel, one after the other,
 * until it closes:
 *
 *     PARSE_TEXT  {u32 length} and its first bytes      PARSE_TREE  {u32 code, u32 count}, nodes
 *     PARSE_MORE  the next bytes, until all are there   PARSE_MORE  the next nodes
 *
 * Numbers are the host's, nodes as policy/shell.h has them; policy/shell_wire.h reads both sides.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;
struct error;

enum parse_kind {
	PARSE_IDENTITY = 1,
	PARSE_SHELL = 2,
	PARSE_OUTLINE = 3,
	PARSE_TOML = 4,
	PARSE_RULES = 5
};

struct parse_order {
	uint32_t kind;
};

enum { PARSE_OUTLINE_RESULT = 2, PARSE_TEXT = 16, PARSE_MORE, PARSE_TREE };

/* What came of a shell's text; without a tree `count` is 0. */
enum parse_code {
	PARSE_DONE,
	PARSE_TOO_LARGE, /* more nodes than the limit */
	PARSE_TOO_LONG,	 /* took too long */
	PARSE_NOT_BUILT, /* this build has no grammar */
	PARSE_CODE_COUNT,
};

/*
 * Starts the role with this configuration and waits for its one answer: the bytes of the memfd that
 * comes with a message of this type, at most limit_bytes of them, the arena's, a NUL behind them.
 * Anything else is -EBADMSG, with the step that failed where the role told it.
 */
int parse_ask(int config_fd, uint32_t type, size_t limit_bytes, struct arena *arena,
	      char **ret_bytes, size_t *ret_length, struct error *error);
