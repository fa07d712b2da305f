/* Commands of a shell's text that are given names of files: see classify_list.c. */
#include "policy/shell_internal.h"

#include "base/arena.h"

#include <string.h>

/* Each command before one in a pipeline is looked at for it again: longer texts are not. */
#define NAMES_LIMIT_NODES 1024u

/* Names that are made of names that are made of names: what is deeper stays unknown. */
#define NAMES_LIMIT_DEPTH 8u

const struct classify_word *shell_plain_words(struct shell_walk *walk, uint32_t node,
					      size_t *ret_count)
{
	const struct shell_node *nodes = walk->tree->nodes;
	struct classify_word *words =
		arena_array(walk->classify->arena, walk->after[node] - node + 1, sizeof(*words));
	size_t count = 0;

	if (!words || nodes[node].kind != SHELL_COMMAND)
		return NULL;
	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child]) {
		if (shell_part(nodes[child].kind) != SHELL_PART_WORD)
			return NULL;
		words[count++] = shell_word(walk, child);
	}
	*ret_count = count;
	return words;
}

/* "2>/dev/null" takes nothing from what is printed. */
static bool is_quiet(const struct shell_walk *walk, uint32_t node)
{
	return shell_is(walk, node, "2>/dev/null") || shell_is(walk, node, "2> /dev/null");
}

/* The command itself, of one whose errors are thrown away; 0: it is something else. */
static uint32_t command_in(const struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;

	if (nodes[node].kind == SHELL_COMMAND)
		return node;
	if (nodes[node].kind != SHELL_REDIRECTED || nodes[node + 1].kind != SHELL_COMMAND)
		return 0;
	for (uint32_t child = walk->after[node + 1]; child < walk->after[node];
	     child = walk->after[child])
		if (!is_quiet(walk, child))
			return 0;
	return node + 1;
}

/* What the commands of the pipeline before `end` print, the first being `from`. */
static const char *names_before(struct shell_walk *walk, uint32_t from, uint32_t end)
{
	const char *names = NULL;
	bool nul = false;

	if (walk->tree->count > NAMES_LIMIT_NODES)
		return NULL;
	for (uint32_t child = from; child < end; child = walk->after[child]) {
		const struct classify_word *words;
		uint32_t command;
		size_t count;

		if (walk->tree->nodes[child].kind == SHELL_TOKEN && shell_is(walk, child, "|"))
			continue;
		command = command_in(walk, child);
		words = command ? shell_plain_words(walk, command, &count) : NULL;
		if (!words)
			return NULL;
		if (!names)
			names = classify_names(walk->classify, words, count, &nul);
		else if (!classify_passes(words, count))
			return NULL;
		else
			nul = false;
		if (!names)
			return NULL;
	}
	/* a newline in a name, or a line that is taken from one, makes a name of its own */
	return nul || !names ? names : "*";
}

/* "a | b < file": the redirection is of the whole pipeline in the tree, and of "b" in the shell. */
static bool has_other_input(const struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;

	if (nodes[node].kind != SHELL_REDIRECTED)
		return false;
	for (uint32_t child = walk->after[node + 1]; child < walk->after[node];
	     child = walk->after[child]) {
		char c = walk->tree->text[nodes[child].start];

		if (nodes[child].kind != SHELL_FILE_REDIRECT || (c != '>' && c != '1' && c != '2'))
			return true;
	}
	return false;
}

/* "xargs cat <<< name": with a redirection of its own the pipe may not be what it reads. */
static bool has_own_input(const struct shell_walk *walk, uint32_t command)
{
	const struct shell_node *nodes = walk->tree->nodes;

	for (uint32_t child = command + 1; child < walk->after[command];
	     child = walk->after[child]) {
		enum shell_part part = shell_part(nodes[child].kind);

		if (part == SHELL_PART_REDIRECT || part == SHELL_PART_HEREDOC ||
		    part == SHELL_PART_HERESTRING)
			return true;
	}
	return false;
}

const char *shell_names_for(struct shell_walk *walk, uint32_t command)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t at = command, above = nodes[command].parent;

	if (has_own_input(walk, command))
		return NULL;
	if (nodes[above].kind == SHELL_REDIRECTED && command_in(walk, above) == command) {
		at = above;
		above = nodes[above].parent;
	}
	return nodes[above].kind == SHELL_PIPELINE && !has_other_input(walk, nodes[above].parent) ?
		       names_before(walk, above + 1, at) :
		       NULL;
}

const char *shell_names_for_loop(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t above = nodes[node].parent;

	return nodes[above].kind == SHELL_PIPELINE && !has_other_input(walk, nodes[above].parent) ?
		       names_before(walk, above + 1, node) :
		       NULL;
}

/* What is known of each node: where we are may be another place later on, and it is none then. */
static uint8_t *known_names(struct shell_walk *walk)
{
	const struct classify *classify = walk->classify;
	uint32_t state = (uint32_t)classify->cwd_count << 3 | (uint32_t)classify->cwd_unknown << 2 |
			 (uint32_t)classify->moved << 1 | (uint32_t)(walk->setters != 0);

	if (!walk->names)
		walk->names = arena_array(classify->arena, walk->tree->count, 1);
	else if (walk->names_state != state)
		memset(walk->names, 0, walk->tree->count);
	walk->names_state = state;
	return walk->names;
}

/* Each is looked at once: the words in it may have others of whose names they are made. */
static bool prints_names(struct shell_walk *walk, uint32_t substitution, uint32_t from,
			 uint32_t end)
{
	enum { NEW, NONE, NAMES };
	uint8_t *known = known_names(walk);

	if (!known || walk->names_depth >= NAMES_LIMIT_DEPTH)
		return false;
	if (known[substitution] == NEW) {
		/* of its own names it can have none */
		known[substitution] = NONE;
		walk->names_depth++;
		if (names_before(walk, from, end))
			known[substitution] = NAMES;
		walk->names_depth--;
	}
	return known[substitution] == NAMES;
}

const char *shell_names_of(struct shell_walk *walk, uint32_t substitution)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t inner = substitution + 2, last = walk->after[substitution] - 1;

	/* "$(", one command or pipeline, ")" */
	if (nodes[substitution].kind != SHELL_COMMAND_SUBSTITUTION ||
	    !shell_is(walk, substitution + 1, "$(") || inner >= last || walk->after[inner] != last)
		return NULL;
	/* the shell splits them at blanks */
	return prints_names(walk, substitution,
			    nodes[inner].kind == SHELL_PIPELINE ? inner + 1 : inner, last) ?
		       "*" :
		       NULL;
}
