#include "policy/shell_parse.h"

#include <string.h>

#include <tree_sitter/api.h>

/* The grammar has some 280; what is beyond the table is looked up each time. */
#define SYMBOLS 512
#define NOT_KNOWN 0xff

/* Of npm's tree-sitter-bash (tools/grammar). */
const TSLanguage *tree_sitter_bash(void);

struct shell_parser {
	TSParser *parser;
	const TSLanguage *language;
	unsigned char kinds[SYMBOLS]; /* by the grammar's symbol; NOT_KNOWN: not met so far */
	struct shell_node nodes[SHELL_LIMIT_NODES];
};

static struct shell_parser the_parser;

struct shell_parser *shell_parser_get(void)
{
	struct shell_parser *parser = &the_parser;

	if (parser->parser)
		return parser;
	parser->language = tree_sitter_bash();
	parser->parser = ts_parser_new();
	if (!parser->parser || !ts_parser_set_language(parser->parser, parser->language)) {
		if (parser->parser)
			ts_parser_delete(parser->parser);
		parser->parser = NULL;
		return NULL;
	}
	ts_parser_set_timeout_micros(parser->parser, SHELL_PARSE_LIMIT_US);
	memset(parser->kinds, NOT_KNOWN, sizeof(parser->kinds));
	return parser;
}

static uint32_t kind_of(struct shell_parser *parser, TSNode node)
{
	TSSymbol symbol = ts_node_symbol(node);
	uint32_t kind;

	/* what the parser put in itself, and what it could not place */
	if (ts_node_is_missing(node) || symbol == (TSSymbol)-1)
		return SHELL_UNKNOWN;
	if (symbol < SYMBOLS && parser->kinds[symbol] != NOT_KNOWN)
		return parser->kinds[symbol];
	kind = shell_kind(ts_node_type(node), ts_node_is_named(node));
	if (symbol < SYMBOLS)
		parser->kinds[symbol] = (unsigned char)kind;
	return kind;
}

/* Adds the cursor's node; false where there is no room. */
static bool add(struct shell_parser *parser, struct shell_answer *answer, uint32_t parent,
		const TSTreeCursor *cursor)
{
	TSNode node = ts_tree_cursor_current_node(cursor);

	if (answer->count == SHELL_LIMIT_NODES)
		return false;
	parser->nodes[answer->count++] = (struct shell_node){
		.kind = kind_of(parser, node),
		.start = ts_node_start_byte(node),
		.end = ts_node_end_byte(node),
		.parent = parent,
	};
	return true;
}

/* Parents first, without recursion: on the way up a node's parent is in the list already. */
static bool flatten(struct shell_parser *parser, struct shell_answer *answer, TSTreeCursor *cursor)
{
	uint32_t at = 0;

	if (!add(parser, answer, 0, cursor))
		return false;
	for (;;) {
		if (ts_tree_cursor_goto_first_child(cursor)) {
			if (!add(parser, answer, at, cursor))
				return false;
		} else {
			while (!ts_tree_cursor_goto_next_sibling(cursor)) {
				if (!ts_tree_cursor_goto_parent(cursor))
					return true;
				at = parser->nodes[at].parent;
			}
			if (!add(parser, answer, parser->nodes[at].parent, cursor))
				return false;
		}
		at = (uint32_t)answer->count - 1;
	}
}

struct shell_answer shell_parse(struct shell_parser *parser, const char *text, size_t length)
{
	struct shell_answer answer = { .nodes = parser->nodes };
	TSTreeCursor cursor;
	TSTree *tree;

	if (length > SHELL_LIMIT_BYTES)
		return (struct shell_answer){ .code = PARSE_TOO_LARGE };
	tree = ts_parser_parse_string(parser->parser, NULL, text, (uint32_t)length);
	if (!tree) {
		ts_parser_reset(parser->parser);
		return (struct shell_answer){ .code = PARSE_TOO_LONG };
	}
	cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
	if (!flatten(parser, &answer, &cursor))
		answer = (struct shell_answer){ .code = PARSE_TOO_LARGE };
	ts_tree_cursor_delete(&cursor);
	ts_tree_delete(tree);
	return answer;
}
