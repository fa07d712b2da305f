#include "policy/shell_internal.h"

#include "base/arena.h"

#include <string.h>

/* A word that is being put together. */
struct build {
	struct shell_walk *walk;
	char *text;
	size_t length, room, braces;
	enum classify_word_kind kind;
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
	else if (build->braces && (c == ',' || (c == '.' && before == '.')))
		raise_kind(build, CLASSIFY_UNKNOWN);
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
	raise_kind(build, quoted ? CLASSIFY_ONE : CLASSIFY_UNKNOWN);
	append(build, tree->text + at->start, at->end - at->start);
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
		raise_kind(build, CLASSIFY_ONE);
		append(build, text, length);
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

/* What known values can make a word grow by. */
static size_t room_for(const struct shell_walk *walk, uint32_t node)
{
	const struct classify_facts *facts = walk->classify->facts;
	size_t longest = 0, names = walk->after[node] - node;

	if (facts->home)
		longest = strlen(facts->home);
	if (facts->cwd && strlen(facts->cwd) > longest)
		longest = strlen(facts->cwd);
	if (facts->user && strlen(facts->user) > longest)
		longest = strlen(facts->user);
	return walk->tree->nodes[node].end - walk->tree->nodes[node].start + names * longest;
}

struct classify_word shell_word(struct shell_walk *walk, uint32_t node)
{
	struct build build = { .walk = walk, .room = room_for(walk, node) };

	build.text = arena_allocate(walk->classify->arena, build.room + 1);
	if (!build.text) {
		walk->classify->failed = true;
		return (struct classify_word){ "", CLASSIFY_UNKNOWN, 0 };
	}
	append_all(&build, node);
	build.text[build.length] = '\0';
	return (struct classify_word){ build.text, build.kind, walk->tree->nodes[node].start };
}
