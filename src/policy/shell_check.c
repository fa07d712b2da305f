/*
 * Theory of operation: the parser guesses where text is not quite a shell's, and guesses wrong
 * where its grammar is. So the tree must account for every byte: what no leaf covers is blank, a
 * line ends only where a command may, and each leaf's text is one that can be what the leaf says. A
 * tree that is wrong in another way would have to be made of the right words in the right order.
 */
#include "policy/shell_internal.h"

#include "base/arena.h"

#include <ctype.h>
#include <string.h>

/* Words and operators of the language; an operator of arithmetic is in what is refused anyway. */
static const char *const tokens[] = {
	";",	   "&",	       "|",	"||",	 "&&",	     "|&",   ";;",     ";&",
	"(",	   ")",	       "{",	"}",	 "[",	     "]",    "[[",     "]]",
	"((",	   "))",       "$(",	"`",	 "<(",	     ">(",   "$",      "${",
	"=",	   "+=",       "if",	"then",	 "fi",	     "else", "elif",   "for",
	"in",	   "do",       "done",	"while", "until",    "case", "esac",   "!",
	"<",	   ">",	       ">>",	">|",	 "&>",	     "&>>",  ">&",     "<&",
	"<>",	   "<<",       "<<-",	"<<<",	 "\"",	     "\n",   "export", "declare",
	"typeset", "readonly", "local", "unset", "unsetenv", "==",   "!=",     "=~",
	"$((",	   "$[",       "+",	"-",	 "*",	     "/",    "%",      ":",
	"#",	   "^",	       "~",	"?",	 "-a",	     "-o",   ",",      "function",
	";;&",	   "<=",       ">=",	"++",	 "--",	     "-=",   "*=",     "**",
	">&-",	   "<&-",      ":-",	":=",	 ":+",	     ":?",   "@",      "'",
	"..",	   "##",       "%%",	"//",	 "|=",	     "&=",   "^=",     "<<=",
	">>=",	   "^^",       ",,",	"/#",	 "/%",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void shell_wrong(struct shell_walk *walk, uint32_t node, const char *why)
{
	if (walk->wrong)
		return;
	walk->wrong = why;
	walk->wrong_at = walk->tree->nodes[node].start;
}

static size_t length_of(const struct shell_walk *walk, uint32_t node)
{
	return walk->tree->nodes[node].end - walk->tree->nodes[node].start;
}

bool shell_is(const struct shell_walk *walk, uint32_t node, const char *text)
{
	const struct shell_node *at = &walk->tree->nodes[node];

	return strlen(text) == at->end - at->start &&
	       memcmp(walk->tree->text + at->start, text, strlen(text)) == 0;
}

static bool is_token(const struct shell_walk *walk, uint32_t node)
{
	for (size_t i = 0; i < COUNT(tokens); i++)
		if (shell_is(walk, node, tokens[i]))
			return true;
	return false;
}

/* Parents first, inside of their parent, behind their elder. */
static bool check_order(struct shell_walk *walk)
{
	const struct shell_node *nodes = walk->tree->nodes;

	if (!walk->tree->count || nodes[0].start > nodes[0].end ||
	    nodes[0].end > walk->tree->length || nodes[0].kind != SHELL_PROGRAM)
		return false;
	for (uint32_t i = 1; i < walk->tree->count; i++) {
		uint32_t parent = nodes[i].parent, elder = i - 1;

		if (parent >= i || nodes[i].start > nodes[i].end ||
		    nodes[i].start < nodes[parent].start || nodes[i].end > nodes[parent].end)
			return false;
		/* up from the one before: each that is left ends before this one begins */
		while (elder != parent) {
			if (elder == 0 || nodes[elder].end > nodes[i].start)
				return false;
			elder = nodes[elder].parent;
		}
	}
	return true;
}

static bool check_nesting(struct shell_walk *walk)
{
	size_t count = walk->tree->count;
	uint32_t *depth = arena_array(walk->classify->arena, count, sizeof(*depth));

	walk->after = arena_array(walk->classify->arena, count, sizeof(*walk->after));
	if (!depth || !walk->after)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		walk->after[i] = i + 1;
		depth[i] = i ? depth[walk->tree->nodes[i].parent] + 1 : 0;
		if (depth[i] > SHELL_LIMIT_NESTING)
			return false;
	}
	for (uint32_t i = (uint32_t)count - 1; i > 0; i--) {
		uint32_t parent = walk->tree->nodes[i].parent;

		if (walk->after[parent] < walk->after[i])
			walk->after[parent] = walk->after[i];
	}
	return true;
}

/* Blanks, and lines that go on, between from and to; newlines too where `lines`. */
static bool is_blank(const struct shell_walk *walk, size_t from, size_t to, bool lines)
{
	const char *text = walk->tree->text;

	for (size_t i = from; i < to; i++) {
		if (text[i] == '\\' && i + 1 < to && text[i + 1] == '\n')
			i++;
		else if (text[i] != ' ' && text[i] != '\t' && !(lines && text[i] == '\n'))
			return false;
	}
	return true;
}

static bool is_operator(char c)
{
	return strchr(";&|<>()", c) != NULL && c;
}

/*
 * A line that goes on without a blank: to the parser that ends a word, to a shell it is nothing, so
 * "w\" and "c" are "wc", and "&\" and "&" are "&&". Where a word meets an operator they stay two,
 * but for what would be "2>" and "$(".
 */
static bool is_joined(const struct shell_walk *walk, size_t from, size_t to)
{
	const char *text = walk->tree->text;
	char left, right;

	if (!from || to >= walk->tree->length || memchr(text + from, ' ', to - from) ||
	    memchr(text + from, '\t', to - from))
		return false;
	/* a newline that ends a line does end what is before it */
	for (size_t i = from; i < to; i++)
		if (text[i] == '\n' && (i == from || text[i - 1] != '\\'))
			return false;
	left = text[from - 1];
	right = text[to];
	if (strchr(" \t\n", left) || strchr(" \t\n", right))
		return false;
	if (is_operator(left) == is_operator(right))
		return true;
	return right == '(' || ((right == '<' || right == '>') && isdigit((unsigned char)left));
}

/* Within these a line may not end between two children. */
static bool is_one_line(uint32_t kind)
{
	return kind == SHELL_COMMAND || kind == SHELL_DECLARATION || kind == SHELL_UNSET ||
	       kind == SHELL_FILE_REDIRECT || kind == SHELL_ASSIGNMENT || kind == SHELL_TEST ||
	       kind == SHELL_UNARY || kind == SHELL_BINARY || kind == SHELL_HERESTRING;
}

/* Within these nothing may be between two children. */
static bool is_one_word(uint32_t kind)
{
	return kind == SHELL_CONCATENATION || kind == SHELL_SIMPLE_EXPANSION ||
	       kind == SHELL_ASSIGNMENT || kind == SHELL_COMMAND_NAME || kind == SHELL_EXPANSION ||
	       kind == SHELL_STRING;
}

static void check_gap(struct shell_walk *walk, uint32_t node, size_t from, size_t to)
{
	uint32_t kind = walk->tree->nodes[node].kind;

	if (from == to)
		return;
	if (kind == SHELL_STRING && !is_blank(walk, from, to, true))
		shell_wrong(walk, node, "a string that is not understood");
	else if (kind != SHELL_STRING && is_one_word(kind))
		shell_wrong(walk, node, "a word with a gap");
	else if (!is_blank(walk, from, to, !is_one_line(kind)))
		shell_wrong(walk, node, "text that the parser left out");
	else if (kind != SHELL_STRING && is_joined(walk, from, to))
		shell_wrong(walk, node, "a word that goes on in the next line");
}

static void check_gaps(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;
	size_t at = nodes[node].start;

	if (walk->after[node] == node + 1)
		return;
	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child]) {
		check_gap(walk, node, at, nodes[child].start);
		at = nodes[child].end;
	}
	check_gap(walk, node, at, nodes[node].end);
}

/* A character that means something to a shell outside of quotes. */
static bool is_special(char c)
{
	return strchr(" \t\n;&|<>()$`\"'", c) != NULL || c == '\0';
}

static void check_word(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *at = &walk->tree->nodes[node];
	const char *text = walk->tree->text;

	for (size_t i = at->start; i < at->end; i++) {
		if (text[i] == '\\' && i + 1 < at->end && text[i + 1] != '\0')
			i++;
		else if (text[i] == '\\' || is_special(text[i]))
			shell_wrong(walk, node, "a word with characters that are none of a word's");
	}
	if (at->start < at->end && text[at->start] == '#')
		shell_wrong(walk, node, "a word that may be a comment");
}

static void check_raw(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *at = &walk->tree->nodes[node];
	const char *text = walk->tree->text + at->start;
	size_t length = length_of(walk, node);

	if (length < 2 || text[0] != '\'' || text[length - 1] != '\'' ||
	    memchr(text + 1, '\'', length - 2) || memchr(text, '\0', length))
		shell_wrong(walk, node, "a string that is not understood");
}

/* What stands in double quotes or an unquoted here-document, without anything that expands. */
static void check_content(struct shell_walk *walk, uint32_t node, bool quoted)
{
	const struct shell_node *at = &walk->tree->nodes[node];
	const char *text = walk->tree->text;

	for (size_t i = at->start; i < at->end; i++) {
		char next = i + 1 < at->end ? text[i + 1] : ' ';

		if (text[i] == '\\' && i + 1 < at->end)
			i++;
		else if (text[i] == '`' || text[i] == '\0' || (quoted && text[i] == '"') ||
			 (text[i] == '$' && (i + 1 == at->end || isalnum((unsigned char)next) ||
					     strchr("_{([*@#?$!-'\"", next))))
			shell_wrong(walk, node, "a string that is not understood");
	}
}

static void check_name(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *at = &walk->tree->nodes[node];

	for (size_t i = at->start; i < at->end; i++)
		if (!isalnum((unsigned char)walk->tree->text[i]) && walk->tree->text[i] != '_')
			shell_wrong(walk, node, "a name that is none");
}

/* A pattern that is all text: quotes and what expands have nodes of their own. */
static void check_pattern(struct shell_walk *walk, uint32_t node)
{
	static const char plain[] = "._-/*?[]:^+@%=,~!# ";
	const struct shell_node *at = &walk->tree->nodes[node];
	const char *text = walk->tree->text;
	bool is_in_test = walk->tree->nodes[at->parent].kind == SHELL_BINARY;
	size_t end = at->end;

	/* "[[ $x =~ ^a$ ]]" */
	if (is_in_test && end > at->start && text[end - 1] == '$')
		end--;
	for (size_t i = at->start; i < end; i++)
		if (!isalnum((unsigned char)text[i]) && !memchr(plain, text[i], sizeof(plain) - 1))
			shell_wrong(walk, node, "a pattern that is not understood");
}

static void check_comment(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *at = &walk->tree->nodes[node];
	const char *text = walk->tree->text;
	bool begins = at->start == 0 || strchr(" \t\n;&|()", text[at->start - 1]);

	if (!begins || at->start == at->end || text[at->start] != '#' ||
	    memchr(text + at->start, '\n', at->end - at->start))
		shell_wrong(walk, node, "a comment that is none");
	if (at->end < walk->tree->length && text[at->end] != '\n')
		shell_wrong(walk, node, "a comment that does not end its line");
}

static bool is_start_quoted(const char *start, size_t length)
{
	return memchr(start, '\'', length) || memchr(start, '"', length) ||
	       memchr(start, '\\', length);
}

/* The next line at `at`; *ret_length without its newline. Returns where the one after it begins. */
static size_t line_at(const char *text, size_t at, size_t end, size_t *ret_length)
{
	const char *newline = memchr(text + at, '\n', end - at);

	*ret_length = newline ? (size_t)(newline - (text + at)) : end - at;
	return at + *ret_length + (newline != NULL);
}

/* The body ends at the first line that is the delimiter, and there alone. */
static void check_heredoc(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes, *start = NULL, *body = NULL,
				*last = NULL;
	const char *text = walk->tree->text;
	char delimiter[64];
	size_t length = 0, n;

	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child]) {
		start = nodes[child].kind == SHELL_HEREDOC_START ? &nodes[child] : start;
		body = nodes[child].kind == SHELL_HEREDOC_BODY ? &nodes[child] : body;
		last = nodes[child].kind == SHELL_HEREDOC_END ? &nodes[child] : last;
	}
	if (!start || !last || start->end - start->start >= sizeof(delimiter)) {
		shell_wrong(walk, node, "a here-document that is not understood");
		return;
	}
	for (size_t i = start->start; i < start->end; i++)
		if (!strchr("'\"\\", text[i]))
			delimiter[length++] = text[i];
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)delimiter[i]) && delimiter[i] != '_')
			shell_wrong(walk, node, "a here-document with an unusual end");
	for (size_t at = body ? body->start : last->start, next; body && at < body->end;
	     at = next) {
		next = line_at(text, at, body->end, &n);
		while (n && text[at] == '\t') {
			at++;
			n--;
		}
		if (n == length && memcmp(text + at, delimiter, n) == 0)
			shell_wrong(walk, node, "a here-document that ends before its end");
	}
	if (last->end - last->start != length ||
	    memcmp(text + last->start, delimiter, length) != 0 || !length ||
	    (last->end < walk->tree->length && text[last->end] != '\n'))
		shell_wrong(walk, node, "a here-document without its end");
}

/* True when the delimiter of the here-document that the body is of was quoted. */
static bool is_quoted_heredoc(const struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;

	while (node && nodes[node].kind != SHELL_HEREDOC_REDIRECT)
		node = nodes[node].parent;
	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child])
		if (nodes[child].kind == SHELL_HEREDOC_START)
			return is_start_quoted(walk->tree->text + nodes[child].start,
					       length_of(walk, child));
	return false;
}

/* "heredoc_body" has no children where its delimiter is quoted. */
static void check_body(struct shell_walk *walk, uint32_t node)
{
	if (!is_quoted_heredoc(walk, node))
		check_content(walk, node, false);
}

static void check_leaf(struct shell_walk *walk, uint32_t node)
{
	switch (walk->tree->nodes[node].kind) {
	case SHELL_WORD:
	case SHELL_NUMBER:
	case SHELL_PATTERN:
	case SHELL_TEST_OPERATOR:
	case SHELL_BRACES:
		check_word(walk, node);
		break;
	case SHELL_RAW_STRING:
		check_raw(walk, node);
		break;
	case SHELL_STRING_CONTENT:
		check_content(walk, node, true);
		break;
	case SHELL_HEREDOC_CONTENT:
	case SHELL_HEREDOC_BODY:
		check_body(walk, node);
		break;
	case SHELL_REGEX:
		check_pattern(walk, node);
		break;
	case SHELL_VARIABLE:
	case SHELL_DESCRIPTOR:
		check_name(walk, node);
		break;
	case SHELL_COMMENT:
		check_comment(walk, node);
		break;
	case SHELL_TOKEN:
		if (!is_token(walk, node))
			shell_wrong(walk, node, "a token that is not known");
		break;
	case SHELL_ANSI_STRING:
	case SHELL_HEREDOC_START:
	case SHELL_HEREDOC_END:
	case SHELL_SPECIAL:
	case SHELL_STRING:
	case SHELL_PROGRAM:
		break;
	default: /* what should hold something and does not */
		shell_wrong(walk, node, "a part of the text that is not understood");
	}
}

bool shell_check(struct shell_walk *walk)
{
	const struct shell_node *nodes = walk->tree->nodes;

	if (!check_order(walk) || !check_nesting(walk)) {
		walk->wrong = "too deep, or no tree at all";
		return false;
	}
	if (!is_blank(walk, 0, nodes[0].start, true) ||
	    !is_blank(walk, nodes[0].end, walk->tree->length, true))
		shell_wrong(walk, 0, "text that the parser left out");
	for (uint32_t i = 0; i < walk->tree->count && !walk->wrong; i++) {
		if (shell_part(nodes[i].kind) == SHELL_PART_REFUSED)
			shell_wrong(walk, i, "a part of the language that is not looked into");
		else if (walk->after[i] == i + 1)
			check_leaf(walk, i);
		else
			check_gaps(walk, i);
		if (nodes[i].kind == SHELL_HEREDOC_REDIRECT)
			check_heredoc(walk, i);
	}
	return !walk->wrong;
}
