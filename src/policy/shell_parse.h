/*
 * The parser behind policy/shell: libtree-sitter with the grammar of Bash. It works on hostile text
 * in a large library, so it is linked into bawn-parse alone; a build without the grammar has
 * shell_parse_none.c in its place. Memory is the library's own, and where there is none left it
 * ends the process.
 */
#pragma once

#include "policy/shell_wire.h"

#include <stddef.h>

/*
 * Of the wall's clock, for one text: one at its limit takes some 20 ms, and what the grammar cannot
 * make sense of some hundred.
 */
#define SHELL_PARSE_LIMIT_US 2000000u

struct shell_parser;

/* One for the process; NULL where there is no memory, no grammar, or one of another version. */
struct shell_parser *shell_parser_get(void);

/* The tree of the text, or why there is none. The nodes stay the parser's, until the next text. */
struct shell_answer shell_parse(struct shell_parser *parser, const char *text, size_t length);
