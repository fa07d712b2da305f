/*
 * The outline of a TOML text: its syntax by tree-sitter, whose tree is walked in the order of the
 * text, and what the lines come to by toml_tree.h. Linked into bawn-parse alone, and into tests.
 */
#include "policy/outline.h"

#include "base/arena.h"
#include "base/utf8.h"
#include "policy/toml_string.h"
#include "policy/toml_tree.h"

#include <errno.h>
#include <string.h>

#include <tree_sitter/api.h>

/* The parser's own recursion is not bounded: what is deeper than this it does not get to see. */
#define NESTING_LIMIT 64u

/* Of npm's @tree-sitter-grammars/tree-sitter-toml (tools/grammar). */
const TSLanguage *tree_sitter_toml(void);

struct reading {
	const char *text;
	size_t length;
	struct arena *arena;
	struct toml_tree tree;
	struct outline_fault fault;
	size_t entry; /* where the line's key or header begins */
	/* where lines and columns have been counted to: what is asked for comes in order */
	size_t counted;
	struct toml_place place;
};

static struct toml_place place_of(struct reading *reading, size_t offset)
{
	if (offset < reading->counted) {
		reading->counted = 0;
		reading->place = (struct toml_place){ 1, 1 };
	}
	for (; reading->counted < offset && reading->counted < reading->length;
	     reading->counted++) {
		unsigned char c = (unsigned char)reading->text[reading->counted];

		if (c == '\n')
			reading->place = (struct toml_place){ reading->place.line + 1, 1 };
		else if ((reading->text[reading->counted] & 0xc0) != 0x80)
			reading->place.column++;
	}
	return reading->place;
}

/* The first fault counts. */
static void complain(struct reading *reading, size_t offset, const char *text)
{
	struct toml_place place = place_of(reading, offset);

	if (!reading->fault.line)
		reading->fault = (struct outline_fault){ place.line, place.column, text };
}

/* Text that a person sees as it is: what else there is would be a matter of the parser's. */
static void check_bytes(struct reading *reading)
{
	for (size_t at = 0; at < reading->length && !reading->fault.line;) {
		uint32_t point = 0;
		size_t bytes = utf8_decode(reading->text + at, reading->length - at, &point);

		if (!bytes)
			complain(reading, at, "not text in UTF-8");
		else if ((point < ' ' && point != '\n' && point != '\t' && point != '\r') ||
			 point == 0x7f)
			complain(reading, at, "a control character");
		at += bytes;
	}
}

static bool are_three(const struct reading *reading, size_t at, char quote)
{
	return reading->length - at >= 3 && reading->text[at] == quote &&
	       reading->text[at + 1] == quote && reading->text[at + 2] == quote;
}

/* Behind the string that begins there; one of a single quote ends with its line at the latest. */
static size_t string_end(const struct reading *reading, size_t at)
{
	char quote = reading->text[at];
	bool threes = are_three(reading, at, quote);

	for (at += threes ? 3 : 1; at < reading->length; at++) {
		if (reading->text[at] == '\\' && quote == '"')
			at++;
		else if (threes && are_three(reading, at, quote))
			return at + 3;
		else if (!threes && (reading->text[at] == quote || reading->text[at] == '\n'))
			return at + 1;
	}
	return reading->length;
}

static size_t line_end(const struct reading *reading, size_t at)
{
	const char *newline = memchr(reading->text + at, '\n', reading->length - at);

	return newline ? (size_t)(newline - reading->text) : reading->length;
}

/* Brackets in brackets and dots in keys, by the characters alone. */
static void check_nesting(struct reading *reading)
{
	size_t depth = 0, dots = 0, at = 0;

	while (at < reading->length && depth <= NESTING_LIMIT && dots <= NESTING_LIMIT) {
		char c = reading->text[at];

		if (c == '"' || c == '\'') {
			at = string_end(reading, at);
			continue;
		}
		if (c == '#') {
			at = line_end(reading, at);
			continue;
		}
		depth += c == '[' || c == '{';
		depth -= (c == ']' || c == '}') && depth;
		dots = c == '.' ? dots + 1 : strchr("=,\n[]{}", c) ? 0 : dots;
		at++;
	}
	if (depth > NESTING_LIMIT)
		complain(reading, at - 1, "nested deeper than any setting");
	if (dots > NESTING_LIMIT)
		complain(reading, at - 1, "a key with more parts than any setting has");
}

/* What the parser could not place, or put in itself. */
static bool is_error(TSNode node)
{
	return ts_node_symbol(node) == (TSSymbol)-1 || ts_node_is_missing(node);
}

static bool is_kind(TSNode node, const char *kind)
{
	return strcmp(ts_node_type(node), kind) == 0;
}

static char *copy(struct reading *reading, TSNode node)
{
	uint32_t start = ts_node_start_byte(node);

	return arena_copy_bytes(reading->arena, reading->text + start,
				ts_node_end_byte(node) - start);
}

static char *unquote(struct reading *reading, TSNode node)
{
	uint32_t start = ts_node_start_byte(node);
	const char *fault;
	char *text = toml_string(reading->arena, reading->text + start,
				 ts_node_end_byte(node) - start, &fault);

	if (!text && fault)
		complain(reading, start, fault);
	return text;
}

static void take_key(struct reading *reading, TSNode node, const char *part)
{
	uint32_t start = ts_node_start_byte(node);
	const char *why = part ? toml_key(&reading->tree, part, place_of(reading, start)) : NULL;

	if (why)
		complain(reading, start, why);
}

/* "]", "]]", "=": what the key before it is for. */
static void take_mark(struct reading *reading, TSNode node)
{
	struct toml_tree *tree = &reading->tree;
	const char *why = NULL;

	if (is_kind(node, "]") && tree->inside->kind == OUTLINE_MAP)
		why = toml_open_table(tree);
	else if (is_kind(node, "]]"))
		why = toml_open_entry(tree);
	else if (is_kind(node, "="))
		why = toml_assign(tree);
	if (why)
		complain(reading, reading->entry, why);
}

static bool is_plain_value(TSNode node)
{
	static const char *const kinds[] = {
		"integer",	   "float",	 "boolean",    "offset_date_time",
		"local_date_time", "local_date", "local_time",
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (is_kind(node, kinds[i]))
			return true;
	return false;
}

static void take_value(struct reading *reading, TSNode node)
{
	uint32_t start = ts_node_start_byte(node);
	struct toml_place place = place_of(reading, start);
	struct toml_tree *tree = &reading->tree;
	const char *why = NULL, *text;

	if (is_kind(node, "array")) {
		why = toml_open(tree, OUTLINE_LIST, place);
	} else if (is_kind(node, "inline_table")) {
		why = toml_open(tree, OUTLINE_MAP, place);
	} else if (is_kind(node, "string")) {
		text = unquote(reading, node);
		why = text ? toml_text(tree, text, false, place) : NULL;
	} else if (is_plain_value(node)) {
		text = copy(reading, node);
		why = text ? toml_text(tree, text, true, place) : NULL;
	}
	if (why)
		complain(reading, start, why);
}

static bool is_entry(TSNode node)
{
	return is_kind(node, "pair") || is_kind(node, "table") ||
	       is_kind(node, "table_array_element");
}

/* A node when it begins. True where what is below it is looked at. */
static bool enter(struct reading *reading, TSNode node)
{
	if (is_entry(node))
		reading->entry = ts_node_start_byte(node);
	if (is_error(node)) {
		complain(reading, ts_node_start_byte(node), "not TOML");
		return false;
	}
	if (!ts_node_is_named(node)) {
		take_mark(reading, node);
		return false;
	}
	if (is_kind(node, "bare_key")) {
		take_key(reading, node, copy(reading, node));
		return false;
	}
	if (is_kind(node, "quoted_key")) {
		take_key(reading, node, unquote(reading, node));
		return false;
	}
	take_value(reading, node);
	return !is_kind(node, "string") && !is_plain_value(node);
}

static bool is_container(TSNode node)
{
	return is_kind(node, "array") || is_kind(node, "inline_table");
}

/* Ends what ended with the node before: false at the end of all. */
static bool climb(struct reading *reading, TSTreeCursor *cursor)
{
	while (!ts_tree_cursor_goto_next_sibling(cursor)) {
		if (!ts_tree_cursor_goto_parent(cursor))
			return false;
		if (is_container(ts_tree_cursor_current_node(cursor)))
			toml_close(&reading->tree);
	}
	return true;
}

/* All nodes in the order of the text, without recursion. */
static void walk(struct reading *reading, TSTreeCursor *cursor)
{
	bool more = ts_tree_cursor_goto_first_child(cursor);

	while (more && !reading->fault.line && !arena_failed(reading->arena))
		/* of a container there is always the bracket that opens it */
		more = (enter(reading, ts_tree_cursor_current_node(cursor)) &&
			ts_tree_cursor_goto_first_child(cursor)) ||
		       climb(reading, cursor);
}

/* Where the parser gave up, if it did; the walk would find it, but later than a fault of it. */
static void find_error(struct reading *reading, TSTreeCursor *cursor)
{
	TSNode node = ts_tree_cursor_current_node(cursor);

	if (!ts_node_has_error(node))
		return;
	while (!is_error(node)) {
		bool more = ts_tree_cursor_goto_first_child(cursor);

		while (more && !ts_node_has_error(ts_tree_cursor_current_node(cursor)) &&
		       !is_error(ts_tree_cursor_current_node(cursor)))
			more = ts_tree_cursor_goto_next_sibling(cursor);
		if (!more)
			break;
		node = ts_tree_cursor_current_node(cursor);
	}
	complain(reading, ts_node_start_byte(node), "not TOML");
}

static void read_tree(struct reading *reading, const TSTree *tree)
{
	TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));

	find_error(reading, &cursor);
	ts_tree_cursor_reset(&cursor, ts_tree_root_node(tree));
	if (!reading->fault.line)
		walk(reading, &cursor);
	ts_tree_cursor_delete(&cursor);
}

/* False without memory. */
static bool parse(struct reading *reading)
{
	TSParser *parser = ts_parser_new();
	TSTree *tree = NULL;

	if (!parser || !ts_parser_set_language(parser, tree_sitter_toml())) {
		ts_parser_delete(parser);
		return false;
	}
	ts_parser_set_timeout_micros(parser, OUTLINE_PARSE_LIMIT_US);
	tree = ts_parser_parse_string(parser, NULL, reading->text, (uint32_t)reading->length);
	if (tree)
		read_tree(reading, tree);
	else
		complain(reading, 0, "takes too long to parse");
	ts_tree_delete(tree);
	ts_parser_delete(parser);
	return true;
}

int outline_parse_toml(const char *text, size_t length, struct buffer *buffer)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct reading reading = {
		.text = text, .length = length, .arena = &arena, .place = { 1, 1 }
	};
	struct outline outline = { 0 };

	if (length > OUTLINE_LIMIT_TOML_BYTES)
		complain(&reading, 0, "larger than 256 KiB");
	else
		check_bytes(&reading);
	if (!reading.fault.line)
		check_nesting(&reading);
	if (toml_begin(&reading.tree, &arena) < 0)
		return -ENOMEM;
	if (!reading.fault.line && !parse(&reading))
		return -ENOMEM;
	if (!reading.fault.line && toml_outline(&reading.tree, &outline) < 0)
		return -ENOMEM;
	if (arena_failed(&arena))
		return -ENOMEM;
	outline.fault = reading.fault;
	return outline_write(&outline, buffer);
}
