#include "policy/shell_internal.h"

#include "base/arena.h"

#include <string.h>

/* Longer words of a loop are not taken for its variable: each use makes room for one. */
#define LOOP_VALUE_LIMIT_BYTES 256u

/* Every use of a variable looks through the whole tree: in longer texts it stays unknown. */
#define LOOP_LIMIT_NODES 1024u

/* A word that is being put together. */
struct build {
	struct shell_walk *walk;
	char *text;
	char *plain; /* where it is not NULL: which bytes are braces and commas without quotes */
	size_t length, room, braces;
	bool lists; /* braces with a comma: "{a,b}" */
	enum classify_word_kind kind;
	bool names; /* a part of it stands for names with any number of directories in them */
};

static void append(struct build *build, const char *bytes, size_t length)
{
	if (length > build->room - build->length) {
		shell_wrong(build->walk, 0, "a word that grows beyond its text");
		return;
	}
	memcpy(build->text + build->length, bytes, length);
	build->length += length;
}

static void raise_kind(struct build *build, enum classify_word_kind kind)
{
	if (kind > build->kind)
		build->kind = kind;
}

/* "{a,b}" and "{1..3}" become several words; "@{u}" and "{}" do not. */
static void note_brace(struct build *build, char c)
{
	char before = build->length ? build->text[build->length - 1] : '\0';

	if (c == '{')
		build->braces++;
	else if (c == '}' && build->braces)
		build->braces--;
	else if (build->braces && c == ',')
		build->lists = true;
	else if (build->braces && c == '.' && before == '.')
		raise_kind(build, CLASSIFY_UNKNOWN);
	if (build->plain && build->length < build->room)
		build->plain[build->length] = c == '{' || c == '}' || c == ',';
}

/* Unquoted text: backslashes go, patterns stay and count, braces make several words. */
static void append_plain(struct build *build, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\\' && i + 1 < length) {
			i++;
			if (text[i] != '\n')
				append(build, &text[i], 1);
			continue;
		}
		if (strchr("*?[", text[i]))
			raise_kind(build, CLASSIFY_GLOB);
		note_brace(build, text[i]);
		append(build, &text[i], 1);
	}
}

/* In double quotes a backslash hides only what would mean something there. */
static void append_quoted(struct build *build, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\\' && i + 1 < length && strchr("$`\"\\\n", text[i + 1])) {
			i++;
			if (text[i] == '\n')
				continue;
		}
		append(build, &text[i], 1);
	}
}

/* "$'a\tb'": with the few escapes that everybody writes it is known, with others it is not. */
static void append_ansi(struct build *build, const char *text, size_t length)
{
	static const char escapes[] = "n\nt\t\\\\''\"\"";

	for (size_t i = 2; i < length - 1; i++) {
		const char *found = NULL;

		if (text[i] != '\\') {
			append(build, &text[i], 1);
			continue;
		}
		for (size_t j = 0; escapes[j] && !found && i + 2 < length; j += 2)
			if (escapes[j] == text[i + 1])
				found = &escapes[j + 1];
		if (!found) {
			raise_kind(build, CLASSIFY_ONE);
			append(build, text + i, length - i);
			return;
		}
		append(build, found, 1);
		i++;
	}
}

/* Variables whose value is known: a text that sets one of them asks for that alone. */
static const char *known_value(const struct shell_walk *walk, const char *name, size_t length)
{
	const struct classify_facts *facts = walk->classify->facts;
	const struct {
		const char *name, *value;
	} known[] = {
		{ "HOME", facts->home },
		{ "USER", facts->user },
		{ "LOGNAME", facts->user },
		{ "PWD", walk->classify->cwd_count <= 1 && !walk->classify->cwd_unknown ?
				 facts->cwd :
				 NULL },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i].name) == length && memcmp(known[i].name, name, length) == 0)
			return known[i].value;
	return NULL;
}

/* "$NAME" and "${NAME}" alone; the name's node, or 0. */
static uint32_t name_in(const struct shell_walk *walk, uint32_t node)
{
	uint32_t found = 0;

	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child]) {
		uint32_t kind = walk->tree->nodes[child].kind;

		if (kind == SHELL_VARIABLE && !found)
			found = child;
		else if (kind != SHELL_TOKEN ||
			 (!shell_is(walk, child, "$") && !shell_is(walk, child, "${") &&
			  !shell_is(walk, child, "}")))
			return 0;
	}
	return found;
}

static bool same_text(const struct shell_walk *walk, uint32_t a, uint32_t b)
{
	const struct shell_node *nodes = walk->tree->nodes;
	size_t length = nodes[a].end - nodes[a].start;

	return nodes[b].end - nodes[b].start == length &&
	       memcmp(walk->tree->text + nodes[a].start, walk->tree->text + nodes[b].start,
		      length) == 0;
}

static bool is_in_body(const struct shell_walk *walk, uint32_t loop, uint32_t node)
{
	while (node > loop && walk->tree->nodes[node].parent != loop)
		node = walk->tree->nodes[node].parent;
	return node > loop && walk->tree->nodes[node].kind == SHELL_DO_GROUP;
}

/*
 * The one loop over words that gives the name its value, with the node in its body: in the words
 * themselves it is what it was before. 0 where the name stands anywhere else than behind a '$':
 * "read f" and "f=x" may change it.
 */
static uint32_t loop_of(const struct shell_walk *walk, uint32_t node, uint32_t name)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t loop = 0;

	if (walk->tree->count > LOOP_LIMIT_NODES)
		return 0;
	for (uint32_t i = 1; i < walk->tree->count; i++) {
		uint32_t parent = nodes[i].parent, kind = nodes[parent].kind;

		if (walk->after[i] != i + 1 || !same_text(walk, i, name) ||
		    kind == SHELL_SIMPLE_EXPANSION || kind == SHELL_EXPANSION)
			continue;
		if (kind != SHELL_FOR || nodes[i].kind != SHELL_VARIABLE || loop)
			return 0;
		loop = parent;
	}
	return loop && is_in_body(walk, loop, node) ? loop : 0;
}

/* A value of a loop that can be taken for the variable: plain text, or a pattern without blanks. */
static bool is_plain_value(const struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *at = &walk->tree->nodes[node];
	const char *text = walk->tree->text + at->start;
	size_t length = at->end - at->start;

	return (at->kind == SHELL_WORD || at->kind == SHELL_NUMBER) && length &&
	       !memchr(text, '\\', length) && !memchr(text, '{', length) && text[0] != '~';
}

static bool is_pattern(const char *text, size_t length)
{
	return memchr(text, '*', length) || memchr(text, '?', length) || memchr(text, '[', length);
}

/* The largest of the loop's values, where all are numbers: a descriptor counts from three on. */
static uint32_t largest_number(const struct shell_walk *walk, uint32_t loop)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t found = 0;

	for (uint32_t child = loop + 1; child < walk->after[loop]; child = walk->after[child]) {
		size_t length = nodes[child].end - nodes[child].start;
		const char *text = walk->tree->text + nodes[child].start;
		size_t best = found ? nodes[found].end - nodes[found].start : 0;

		if (nodes[child].kind == SHELL_TOKEN || nodes[child].kind == SHELL_VARIABLE ||
		    nodes[child].kind == SHELL_DO_GROUP)
			continue;
		for (size_t i = 0; i < length; i++)
			if (text[i] < '0' || text[i] > '9')
				return 0;
		if (length > best ||
		    (length == best &&
		     memcmp(text, walk->tree->text + nodes[found].start, best) > 0))
			found = child;
	}
	return found;
}

/*
 * What the variable of a loop stands for: its only value, or where it has several names without a
 * '/' (each of them is looked at where the loop is) "*", or "[!-]*" where none can be an option.
 * NULL where that cannot be told.
 */
static const char *loop_value(struct shell_walk *walk, uint32_t node, uint32_t name, bool quoted,
			      size_t *length, bool *is_names)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t loop = loop_of(walk, node, name), only = 0;
	size_t values = 0;
	bool slash = false, pattern = false, option = false;
	const char *names = NULL;

	if (!loop || walk->setters)
		return NULL;
	for (uint32_t child = loop + 1; child < walk->after[loop]; child = walk->after[child]) {
		if (nodes[child].kind == SHELL_TOKEN || nodes[child].kind == SHELL_VARIABLE ||
		    nodes[child].kind == SHELL_DO_GROUP)
			continue;
		if (shell_names_of(walk, child)) {
			names = shell_names_of(walk, child);
			values++;
			continue;
		}
		if (!is_plain_value(walk, child))
			return NULL;
		slash |= memchr(walk->tree->text + nodes[child].start, '/',
				nodes[child].end - nodes[child].start) != NULL;
		option |= memchr("-*?[", walk->tree->text[nodes[child].start], 4) != NULL;
		pattern |= is_pattern(walk->tree->text + nodes[child].start,
				      nodes[child].end - nodes[child].start);
		only = child;
		values++;
	}
	if (names) {
		*is_names = true;
		*length = strlen(names);
		return values == 1 ? names : NULL;
	}
	/* names that a pattern gives may have blanks in them: only quotes keep them one word */
	if (!values || (values > 1 && slash) || (pattern && !quoted) ||
	    nodes[only].end - nodes[only].start > LOOP_VALUE_LIMIT_BYTES)
		return NULL;
	if (values > 1 && largest_number(walk, loop)) {
		only = largest_number(walk, loop);
	} else if (values > 1) {
		*length = option ? 1 : 5;
		return option ? "*" : "[!-]*";
	}
	*length = nodes[only].end - nodes[only].start;
	return walk->tree->text + nodes[only].start;
}

/* A word of a command that sets no variable: "-type f". Who may set one is a setter. */
static bool is_mere_word(const struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t at = nodes[node].parent + 1;

	if (nodes[node].kind != SHELL_WORD || nodes[at - 1].kind != SHELL_COMMAND)
		return false;
	while (at < node && nodes[at].kind != SHELL_COMMAND_NAME)
		at = walk->after[at];
	return at < node && !shell_is(walk, at, "read");
}

/* The one place but behind a '$' where the name stands; 0: none, or several. */
static uint32_t only_place_of(const struct shell_walk *walk, uint32_t name)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t found = 0;

	if (walk->tree->count > LOOP_LIMIT_NODES)
		return 0;
	for (uint32_t i = 1; i < walk->tree->count; i++) {
		uint32_t kind = nodes[nodes[i].parent].kind;

		if (walk->after[i] != i + 1 || !same_text(walk, i, name) ||
		    kind == SHELL_SIMPLE_EXPANSION || kind == SHELL_EXPANSION ||
		    is_mere_word(walk, i))
			continue;
		if (found)
			return 0;
		found = i;
	}
	return found;
}

/*
 * The text that the node is, whatever the variable that has it is used in: without quotes a blank
 * would make several words of it, and a pattern names.
 */
static const char *plain_text(const struct shell_walk *walk, uint32_t node, bool quoted,
			      size_t *length)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "_./:=,@%+-";
	const struct shell_node *at = &walk->tree->nodes[node];
	const char *text = walk->tree->text + at->start;
	bool in_quotes = at->kind == SHELL_RAW_STRING || at->kind == SHELL_STRING;

	*length = at->end - at->start;
	if (in_quotes) {
		*length -= 2;
		text++;
	} else if (at->kind != SHELL_WORD && at->kind != SHELL_NUMBER) {
		return NULL;
	}
	if (*length > LOOP_VALUE_LIMIT_BYTES)
		return NULL;
	for (size_t i = 0; i < *length; i++)
		if (!memchr(safe, text[i], sizeof(safe) - 1) &&
		    (!in_quotes || !quoted || strchr("\\$`\"\n", text[i])))
			return NULL;
	/* nothing is no word, where no quotes make it one */
	return *length || quoted ? text : NULL;
}

/* "f=src/a.c; head $f": set once and before, and nothing else in the text can change it. */
static bool append_assigned(struct build *build, uint32_t node, uint32_t name, bool quoted)
{
	const struct shell_walk *walk = build->walk;
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t place = walk->setters ? 0 : only_place_of(walk, name);
	uint32_t assignment = place ? nodes[place].parent : 0, value = place + 2;
	const char *text;
	size_t length;

	if (!place || nodes[assignment].kind != SHELL_ASSIGNMENT || place != assignment + 1 ||
	    !shell_is(walk, place + 1, "=") || value >= walk->after[assignment] ||
	    walk->after[value] != walk->after[assignment] ||
	    !shell_is_set_before(walk, assignment, node))
		return false;
	text = plain_text(walk, value, quoted, &length);
	if (text)
		append(build, text, length);
	return text;
}

/* The loop whose condition is "read -r NAME" alone, of which the place is the name; 0: none. */
static uint32_t reading_loop(struct shell_walk *walk, uint32_t place)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t command = nodes[place].parent, loop = nodes[command].parent, at = command + 1;

	if (nodes[place].kind != SHELL_WORD || nodes[command].kind != SHELL_COMMAND ||
	    nodes[loop].kind != SHELL_WHILE || !shell_is(walk, loop + 1, "while") ||
	    command != loop + 2 || walk->after[place] != walk->after[command])
		return 0;
	if (shell_is(walk, at, "IFS="))
		at = walk->after[at];
	if (nodes[at].kind != SHELL_COMMAND_NAME || !shell_is(walk, at, "read"))
		return 0;
	at = walk->after[at];
	if (shell_is(walk, at, "-r"))
		at = walk->after[at];
	return at == place ? loop : 0;
}

/* "find . | while read -r f; do cat "$f"; done": as for xargs, a pattern stands for each line. */
static bool append_line(struct build *build, uint32_t node, uint32_t name)
{
	struct shell_walk *walk = build->walk;
	uint32_t place = walk->setters == 1 ? only_place_of(walk, name) : 0;
	uint32_t loop = place ? reading_loop(walk, place) : 0;

	if (!loop || !is_in_body(walk, loop, node) || !shell_names_for_loop(walk, loop))
		return false;
	raise_kind(build, CLASSIFY_GLOB);
	append(build, "*", 1);
	build->names = true;
	return true;
}

static bool append_loop_value(struct build *build, uint32_t node, uint32_t name, bool quoted)
{
	size_t length = 0;
	const char *value = loop_value(build->walk, node, name, quoted, &length, &build->names);

	if (!value)
		return false;
	if (is_pattern(value, length))
		raise_kind(build, CLASSIFY_GLOB);
	append(build, value, length);
	return true;
}

/* "$@" is several words in quotes, too. */
static bool is_list(const struct shell_walk *walk, uint32_t node)
{
	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child])
		if (walk->tree->nodes[child].kind == SHELL_SPECIAL && shell_is(walk, child, "@"))
			return true;
	return false;
}

static void append_expansion(struct build *build, uint32_t node, bool quoted)
{
	const struct shell_tree *tree = build->walk->tree;
	const struct shell_node *at = &tree->nodes[node];
	uint32_t name = name_in(build->walk, node);
	const char *value = NULL;

	if (name)
		value = known_value(build->walk, tree->text + tree->nodes[name].start,
				    tree->nodes[name].end - tree->nodes[name].start);
	if (value && !strpbrk(value, " \t\n*?[")) {
		append(build, value, strlen(value));
		return;
	}
	if (name && (append_assigned(build, node, name, quoted) || append_line(build, node, name) ||
		     append_loop_value(build, node, name, quoted)))
		return;
	raise_kind(build, quoted && !is_list(build->walk, node) ? CLASSIFY_ONE : CLASSIFY_UNKNOWN);
	append(build, tree->text + at->start, at->end - at->start);
}

/* "$(pwd)" is "$PWD". */
static bool append_here(struct build *build, uint32_t node, bool quoted)
{
	const char *here = known_value(build->walk, "PWD", 3);

	if (!here || !shell_is(build->walk, node, "$(pwd)") ||
	    (!quoted && strpbrk(here, " \t\n*?[")))
		return false;
	append(build, here, strlen(here));
	return true;
}

static void append_node(struct build *build, uint32_t node, bool quoted)
{
	const struct shell_tree *tree = build->walk->tree;
	const struct shell_node *at = &tree->nodes[node];
	const char *text = tree->text + at->start;
	size_t length = at->end - at->start;

	switch (at->kind) {
	case SHELL_WORD:
	case SHELL_NUMBER:
	case SHELL_PATTERN:
	case SHELL_VARIABLE:
	case SHELL_TEST_OPERATOR:
		append_plain(build, text, length);
		break;
	case SHELL_RAW_STRING:
		append(build, text + 1, length - 2);
		break;
	case SHELL_STRING_CONTENT:
		append_quoted(build, text, length);
		break;
	case SHELL_ANSI_STRING:
		append_ansi(build, text, length);
		break;
	case SHELL_SIMPLE_EXPANSION:
	case SHELL_EXPANSION:
		append_expansion(build, node, quoted);
		break;
	case SHELL_TOKEN: /* the quotes of a string; "=" of an assignment; "$" of what is no name */
		if (shell_is(build->walk, node, "\""))
			break;
		if (!shell_is(build->walk, node, "=") && !shell_is(build->walk, node, "+="))
			raise_kind(build, CLASSIFY_ONE);
		append(build, text, length);
		break;
	case SHELL_PROCESS_SUBSTITUTION:
		/* one word, and what is read of it is looked at where its commands are */
		if (text[0] == '<') {
			append(build, "/dev/fd/0", 9);
			break;
		}
		raise_kind(build, quoted ? CLASSIFY_ONE : CLASSIFY_UNKNOWN);
		append(build, text, length);
		break;
	case SHELL_COMMAND_SUBSTITUTION:
		if (append_here(build, node, quoted))
			break;
		/* fall through */
	default:
		raise_kind(build, quoted ? CLASSIFY_ONE : CLASSIFY_UNKNOWN);
		append(build, text, length);
	}
}

/* A string's parts, with the blanks between them that are no node of their own. */
static void append_string(struct build *build, uint32_t node)
{
	const struct shell_walk *walk = build->walk;
	const struct shell_tree *tree = walk->tree;
	size_t at = tree->nodes[node].start;

	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child]) {
		append(build, tree->text + at, tree->nodes[child].start - at);
		append_node(build, child, true);
		at = tree->nodes[child].end;
	}
}

static bool is_compound(uint32_t kind)
{
	return kind == SHELL_CONCATENATION || kind == SHELL_COMMAND_NAME ||
	       kind == SHELL_ASSIGNMENT;
}

/*
 * Compounds hold compounds (the name of a command, a value of an assignment), so all below is
 * gone through in order, and what is no compound is taken whole.
 */
static void append_all(struct build *build, uint32_t node)
{
	const struct shell_walk *walk = build->walk;

	for (uint32_t at = node; at < walk->after[node];) {
		uint32_t kind = walk->tree->nodes[at].kind;

		if (is_compound(kind)) {
			at++;
			continue;
		}
		if (kind == SHELL_STRING)
			append_string(build, at);
		else
			append_node(build, at, false);
		at = walk->after[at];
	}
}

/* What known values can make a word grow by; the longest of a loop is bounded here. */
static size_t room_for(const struct shell_walk *walk, uint32_t node)
{
	const struct classify_facts *facts = walk->classify->facts;
	size_t longest = LOOP_VALUE_LIMIT_BYTES, names = walk->after[node] - node;

	if (facts->home && strlen(facts->home) > longest)
		longest = strlen(facts->home);
	if (facts->cwd && strlen(facts->cwd) > longest)
		longest = strlen(facts->cwd);
	if (facts->user && strlen(facts->user) > longest)
		longest = strlen(facts->user);
	return walk->tree->nodes[node].end - walk->tree->nodes[node].start + names * longest;
}

/* False where memory ran out. */
static bool build_word(struct build *build, uint32_t node)
{
	struct arena *arena = build->walk->classify->arena;

	build->room = room_for(build->walk, node);
	build->text = arena_allocate(arena, build->room + 1);
	if (shell_has_braces(build->walk, node))
		build->plain = arena_array(arena, build->room + 1, 1);
	if (!build->text || (shell_has_braces(build->walk, node) && !build->plain)) {
		build->walk->classify->failed = true;
		return false;
	}
	append_all(build, node);
	build->text[build->length] = '\0';
	if (build->names && strcmp(build->text, "*") != 0)
		build->kind = CLASSIFY_UNKNOWN;
	return true;
}

struct classify_word shell_word(struct shell_walk *walk, uint32_t node)
{
	struct build build = { .walk = walk };
	const char *names = shell_names_of(walk, node);

	if (names)
		return (struct classify_word){ names, CLASSIFY_GLOB,
					       walk->tree->nodes[node].start };
	if (!build_word(&build, node))
		return (struct classify_word){ "", CLASSIFY_UNKNOWN, 0 };
	return (struct classify_word){ build.text, build.lists ? CLASSIFY_UNKNOWN : build.kind,
				       walk->tree->nodes[node].start };
}

bool shell_has_braces(const struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *at = &walk->tree->nodes[node];

	return memchr(walk->tree->text + at->start, '{', at->end - at->start);
}

size_t shell_words(struct shell_walk *walk, uint32_t node, struct classify_word *ret_words,
		   size_t room)
{
	struct build build = { .walk = walk };
	struct classify_word unknown = { .position = walk->tree->nodes[node].start };
	size_t count;

	ret_words[0] = unknown;
	if (!shell_has_braces(walk, node)) {
		ret_words[0] = shell_word(walk, node);
		return 1;
	}
	unknown.kind = CLASSIFY_UNKNOWN;
	unknown.text = "";
	if (!build_word(&build, node)) {
		ret_words[0] = unknown;
		return 1;
	}
	unknown.text = build.text;
	if (!build.lists || build.kind > CLASSIFY_GLOB) {
		ret_words[0] = shell_word(walk, node);
		return 1;
	}
	count = shell_braces(walk->classify->arena, build.text, build.plain, ret_words, room);
	for (size_t i = 0; i < count; i++) {
		ret_words[i].kind = build.kind;
		ret_words[i].position = unknown.position;
	}
	if (!count)
		ret_words[0] = unknown;
	return count ? count : 1;
}
