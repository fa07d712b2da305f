/*
 * Theory of operation: Codex's rules are a program in Starlark, and nearly all of them nothing but
 * calls with everything written out. Just these are read: a name from the first column on, "(",
 * NAME = VALUE with strings and lists of them, ")", and the end of the line. Any other statement is
 * passed over as a whole (its lines, strings and brackets are followed), and told with the reason.
 * What stands in a block may never run, or often: it begins with a blank, and so is such a one.
 */
#include "policy/outline.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/utf8.h"

#include <errno.h>
#include <string.h>

/* Lists in lists: a pattern has two. */
#define LIMIT_DEPTH 4u

struct place {
	size_t at;
	uint32_t line, column;
};

struct reading {
	const char *text;
	size_t length, at;
	struct place seen; /* of the last node, or before it */
	struct arena *arena;
	struct outline_node *nodes;
	size_t count;
	const char *reason; /* why the statement is not taken; NULL: it is, so far */
	struct outline_fault fault;
};

/* Places are asked for in the order of the text. */
static void move_to(struct reading *reading, size_t at)
{
	struct place *seen = &reading->seen;

	for (; seen->at < at; seen->at++) {
		unsigned char c = (unsigned char)reading->text[seen->at];

		if (c == '\n') {
			seen->line++;
			seen->column = 1;
		} else if ((c & 0xc0) != 0x80) {
			seen->column++;
		}
	}
}

static void complain(struct reading *reading, size_t at, const char *text)
{
	if (reading->fault.line)
		return;
	move_to(reading, at);
	reading->fault = (struct outline_fault){ reading->seen.line, reading->seen.column, text };
}

static bool is_open(const struct reading *reading)
{
	return !reading->reason && !reading->fault.line && !arena_failed(reading->arena);
}

static void give_up(struct reading *reading, const char *reason)
{
	if (!reading->reason)
		reading->reason = reason;
}

/* Returns the index of the node; its end is set by close_node(). */
static size_t open_node(struct reading *reading, enum outline_kind kind, size_t at,
			const char *text, bool is_plain)
{
	struct outline_node *grown;

	if (reading->count == OUTLINE_LIMIT_NODES) {
		complain(reading, at, "more rules than anybody reads");
		return 0;
	}
	grown = arena_push(reading->arena, reading->nodes, reading->count, sizeof(*grown));
	if (!grown)
		return 0;
	move_to(reading, at);
	reading->nodes = grown;
	grown[reading->count] = (struct outline_node){
		.kind = kind,
		.is_plain = is_plain,
		.line = reading->seen.line,
		.column = reading->seen.column,
		.end = (uint32_t)reading->count + 1,
		.text = text,
	};
	return reading->count++;
}

static void close_node(struct reading *reading, size_t node)
{
	if (node < reading->count)
		reading->nodes[node].end = (uint32_t)reading->count;
}

static char peek(const struct reading *reading)
{
	return reading->at < reading->length ? reading->text[reading->at] : '\0';
}

static bool take(struct reading *reading, char c)
{
	if (reading->at >= reading->length || reading->text[reading->at] != c)
		return false;
	reading->at++;
	return true;
}

/* Within brackets a newline is a blank, and so is a comment. */
static void skip_blanks(struct reading *reading)
{
	for (; reading->at < reading->length; reading->at++) {
		char c = peek(reading);

		if (c == '#')
			while (reading->at + 1 < reading->length &&
			       reading->text[reading->at + 1] != '\n')
				reading->at++;
		else if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
			return;
	}
}

static bool is_letter(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (!first && c >= '0' && c <= '9');
}

/* NULL where none stands here. */
static const char *take_name(struct reading *reading)
{
	size_t from = reading->at;

	while (is_letter(peek(reading), reading->at == from))
		reading->at++;
	return reading->at > from ?
		       arena_copy_bytes(reading->arena, reading->text + from, reading->at - from) :
		       NULL;
}

/* ---- strings ---- */

/* The quotes that begin here: how many, 0 where none do. */
static size_t quotes_at(const struct reading *reading, size_t at)
{
	char c = at < reading->length ? reading->text[at] : '\0';

	if (c != '"' && c != '\'')
		return 0;
	return at + 2 < reading->length && reading->text[at + 1] == c &&
			       reading->text[at + 2] == c ?
		       3 :
		       1;
}

/* Behind the closing quotes; a string that is not closed ends with its line, or the text. */
static size_t string_end(const struct reading *reading, size_t from, size_t quotes,
			 bool *ret_closed)
{
	char c = reading->text[from];
	size_t at = from + quotes;

	*ret_closed = false;
	for (; at < reading->length; at++) {
		if (reading->text[at] == '\\') {
			at++;
		} else if (quotes == 1 && reading->text[at] == '\n') {
			return at;
		} else if (reading->text[at] == c && (quotes == 1 || quotes_at(reading, at) == 3)) {
			*ret_closed = true;
			return at + quotes;
		}
	}
	return reading->length;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "\xNN" of ASCII: what is beyond is bytes in one dialect and characters in another. */
static size_t hex_escape(const char *text, size_t left, char *ret_byte)
{
	int high = left > 2 ? hex_digit(text[1]) : -1, low = left > 2 ? hex_digit(text[2]) : -1;

	if (high < 0 || high > 7 || low < 0 || high + low == 0)
		return 0;
	*ret_byte = (char)(high * 16 + low);
	return 3;
}

/* What stands behind a backslash; returns its length, 0 where it is none that is read here. */
static size_t escape(const char *text, size_t left, char *ret_byte)
{
	static const char plain[] = "n\nt\tr\r\\\\''\"\"";

	if (left && text[0] == 'x')
		return hex_escape(text, left, ret_byte);
	for (size_t i = 0; left && plain[i]; i += 2)
		if (plain[i] == text[0]) {
			*ret_byte = plain[i + 1];
			return 1;
		}
	return 0;
}

static const char *unescape(struct reading *reading, const char *text, size_t length, bool raw)
{
	char *copy = arena_allocate(reading->arena, length + 1);
	size_t to = 0;

	if (!copy)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		size_t taken;

		copy[to] = text[i];
		if (text[i] != '\\' || raw) {
			to++;
			continue;
		}
		if (i + 1 < length && text[i + 1] == '\n') {
			i++;
			continue;
		}
		taken = escape(text + i + 1, length - i - 1, &copy[to]);
		if (!taken) {
			give_up(reading, "an escape in a string that is not read here");
			return NULL;
		}
		to++;
		i += taken;
	}
	copy[to] = '\0';
	return copy;
}

static void take_string(struct reading *reading)
{
	size_t start = reading->at, quotes, end;
	bool raw = peek(reading) == 'r', closed;
	const char *text;

	reading->at += raw;
	quotes = quotes_at(reading, reading->at);
	end = string_end(reading, reading->at, quotes, &closed);
	if (!closed) {
		give_up(reading, "a string that is not closed");
		return;
	}
	text = unescape(reading, reading->text + reading->at + quotes,
			end - reading->at - 2 * quotes, raw);
	reading->at = end;
	if (text)
		open_node(reading, OUTLINE_TEXT, start, text, false);
}

/* ---- values ---- */

static bool begins_string(const struct reading *reading)
{
	return quotes_at(reading, reading->at) ||
	       (peek(reading) == 'r' && quotes_at(reading, reading->at + 1));
}

/* "None" and its kin; any other name is a value that has to be computed. */
static void take_word(struct reading *reading)
{
	size_t start = reading->at;
	const char *name = take_name(reading);

	if (name &&
	    (strcmp(name, "None") == 0 || strcmp(name, "True") == 0 || strcmp(name, "False") == 0))
		open_node(reading, OUTLINE_TEXT, start, name, true);
	else
		give_up(reading, "a value that is not written out");
}

/* A string, a list of values, or a word; lists are followed by a stack, not by calls. */
static void take_value(struct reading *reading)
{
	size_t lists[LIMIT_DEPTH], depth = 0;

	for (;;) {
		skip_blanks(reading);
		if (depth && take(reading, ']')) {
			close_node(reading, lists[--depth]);
		} else if (peek(reading) == '[') {
			if (depth == LIMIT_DEPTH) {
				give_up(reading, "lists in lists in lists");
				return;
			}
			lists[depth++] = open_node(reading, OUTLINE_LIST, reading->at, "", false);
			reading->at++;
			if (is_open(reading))
				continue;
		} else if (begins_string(reading)) {
			take_string(reading);
		} else {
			take_word(reading);
		}
		if (!is_open(reading) || !depth)
			return;
		skip_blanks(reading);
		if (!take(reading, ',') && peek(reading) != ']') {
			give_up(reading, "a value that is not written out");
			return;
		}
	}
}

static void take_arguments(struct reading *reading)
{
	for (;;) {
		const char *name;
		size_t start;

		skip_blanks(reading);
		if (take(reading, ')'))
			return;
		start = reading->at;
		name = take_name(reading);
		skip_blanks(reading);
		if (!name || !take(reading, '=') || peek(reading) == '=') {
			give_up(reading, "an argument without a name");
			return;
		}
		open_node(reading, OUTLINE_TEXT, start, name, true);
		if (is_open(reading))
			take_value(reading);
		skip_blanks(reading);
		if (is_open(reading) && !take(reading, ',') && peek(reading) != ')')
			give_up(reading, "a value that is not written out");
		if (!is_open(reading))
			return;
	}
}

/* ---- statements ---- */

/* Nothing but a comment may stand behind a call on its line. */
static void take_line_end(struct reading *reading)
{
	while (peek(reading) == ' ' || peek(reading) == '\t' || peek(reading) == '\r')
		reading->at++;
	if (reading->at < reading->length && peek(reading) != '\n' && peek(reading) != '#')
		give_up(reading, "more than a call in one statement");
}

static void take_call(struct reading *reading)
{
	size_t start = reading->at, arguments;
	const char *name;

	open_node(reading, OUTLINE_MAP, start, "", false);
	name = take_name(reading);
	if (!name) {
		give_up(reading, "not a call");
		return;
	}
	open_node(reading, OUTLINE_TEXT, start, name, true);
	while (peek(reading) == ' ')
		reading->at++;
	if (!take(reading, '(')) {
		give_up(reading, "not a call");
		return;
	}
	arguments = open_node(reading, OUTLINE_MAP, start, "", false);
	if (is_open(reading))
		take_arguments(reading);
	close_node(reading, arguments);
	if (is_open(reading))
		take_line_end(reading);
}

/* To the newline that ends the statement: none in brackets, in a string or behind a backslash. */
static void skip_statement(struct reading *reading, size_t start)
{
	size_t depth = 0;

	for (reading->at = start; reading->at < reading->length; reading->at++) {
		size_t quotes = quotes_at(reading, reading->at);
		char c = peek(reading);
		bool closed;

		if (quotes) {
			reading->at = string_end(reading, reading->at, quotes, &closed) - 1;
		} else if (c == '#') {
			while (reading->at + 1 < reading->length &&
			       reading->text[reading->at + 1] != '\n')
				reading->at++;
		} else if (c == '\\') {
			reading->at++;
		} else if (strchr("([{", c)) {
			depth++;
		} else if (strchr(")]}", c)) {
			depth -= depth > 0;
		} else if (c == '\n' && !depth) {
			return;
		}
	}
}

static void take_statement(struct reading *reading)
{
	size_t start = reading->at, first = reading->count;
	struct place place;

	move_to(reading, start);
	place = reading->seen;
	reading->reason = place.column > 1 ? "a part of a block" : NULL;
	if (is_open(reading))
		take_call(reading);
	if (reading->reason && !reading->fault.line) {
		const char *reason = reading->reason;

		reading->reason = NULL;
		reading->count = first;
		reading->seen = place;
		skip_statement(reading, start);
		open_node(reading, OUTLINE_MAP, start, "", false);
		open_node(reading, OUTLINE_TEXT, start, "", true);
		open_node(reading, OUTLINE_TEXT, start, reason, false);
	}
	close_node(reading, first);
}

/* Bytes that no text has: what is made of them is shown to a person. */
static void check_bytes(struct reading *reading)
{
	for (size_t i = 0; i < reading->length;) {
		uint32_t point;
		size_t n = utf8_decode(reading->text + i, reading->length - i, &point);

		if (!n || (point < ' ' && !strchr("\t\n\r", (int)point)) || point == 0x7f ||
		    !point) {
			complain(reading, i, "a byte that is no text");
			return;
		}
		i += n;
	}
}

int outline_parse_rules(const char *text, size_t length, struct buffer *buffer)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct reading reading = {
		.text = text, .length = length, .arena = &arena, .seen = { 0, 1, 1 }
	};
	struct outline outline;

	if (length > OUTLINE_LIMIT_RULES_BYTES)
		complain(&reading, 0, "larger than 256 KiB");
	else
		check_bytes(&reading);
	open_node(&reading, OUTLINE_LIST, 0, "", false);
	while (!reading.fault.line && !arena_failed(&arena)) {
		skip_blanks(&reading);
		if (reading.at >= length)
			break;
		take_statement(&reading);
	}
	close_node(&reading, 0);
	if (arena_failed(&arena))
		return -ENOMEM;
	outline = (struct outline){ reading.nodes, reading.count, reading.fault };
	return outline_write(&outline, buffer);
}
