#include "policy/shell.h"

#include "base/arena.h"
#include "base/utf8.h"
#include "policy/shell_internal.h"

#include <string.h>

/* Each name in arithmetic is looked for in the whole tree. */
#define ARITHMETIC_LIMIT_NODES 1024u

static void ask(struct shell_walk *walk, uint32_t node, enum wanted_verb verb, const char *why)
{
	const struct shell_node *at = &walk->tree->nodes[node];
	struct classify_word word = { "", CLASSIFY_LITERAL, at->start };

	word.text = arena_copy_bytes(walk->classify->arena, walk->tree->text + at->start,
				     at->end - at->start);
	if (!word.text) {
		walk->classify->failed = true;
		return;
	}
	classify_add(walk->classify, verb, &word, why);
}

/* "a=<(b)" is two words of the tree, and one of the shell's. */
static void check_apart(struct shell_walk *walk, uint32_t node, uint32_t child)
{
	const struct shell_node *nodes = walk->tree->nodes;

	if (walk->after[child] < walk->after[node] &&
	    nodes[walk->after[child]].start == nodes[child].end &&
	    nodes[walk->after[child]].kind == SHELL_PROCESS_SUBSTITUTION)
		ask(walk, node, WANTED_UNCLEAR, "words with nothing between them");
}

/* Each word may have braces, and becomes several. */
static size_t room_for_words(const struct shell_walk *walk, uint32_t node)
{
	size_t room = 1;

	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child])
		room += shell_has_braces(walk, child) ? SHELL_LIMIT_WORDS : 1;
	return room;
}

/* Children that are words become those of one command. */
static struct classify_word *gather(struct shell_walk *walk, uint32_t node, size_t *count)
{
	const struct shell_node *nodes = walk->tree->nodes;
	struct classify_word *words =
		arena_array(walk->classify->arena, room_for_words(walk, node), sizeof(*words));

	if (!words) {
		walk->classify->failed = true;
		return NULL;
	}
	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child]) {
		enum shell_part part = shell_part(nodes[child].kind);

		check_apart(walk, node, child);
		if (part == SHELL_PART_WORD || part == SHELL_PART_EXPANSION ||
		    part == SHELL_PART_SUBSTITUTION || part == SHELL_PART_ARITHMETIC)
			*count += shell_words(walk, child, words + *count, SHELL_LIMIT_WORDS);
		else if (part != SHELL_PART_ASSIGNMENT && part != SHELL_PART_REDIRECT &&
			 part != SHELL_PART_HERESTRING)
			shell_wrong(walk, child,
				    "a command with a part that is none of a command's");
	}
	return words;
}

static bool is_in(const char *text, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(text, list[i]) == 0)
			return true;
	return false;
}

/*
 * "test -n X" and "test X = Y": by the number of its words no other of them is an operator, so
 * what is not known is text, as long as it is one word.
 */
static bool is_plain_test(const struct classify_word *words, size_t count)
{
	static const char *const unary[] = { "-n", "-z", "-f", "-d", "-e", "-r",
					     "-w", "-x", "-s", "-L", "-h" };
	static const char *const binary[] = { "=",   "==",  "!=",  "-eq", "-ne", "-lt",
					      "-le", "-gt", "-ge", "-nt", "-ot", "-ef" };

	for (size_t i = 0; i < count; i++)
		if (words[i].kind != CLASSIFY_LITERAL && words[i].kind != CLASSIFY_ONE)
			return false;
	if (words[0].kind != CLASSIFY_LITERAL || strcmp(words[0].text, "test") != 0)
		return false;
	if (count == 3)
		return words[1].kind == CLASSIFY_LITERAL &&
		       is_in(words[1].text, unary, sizeof(unary) / sizeof(unary[0]));
	return count == 4 && words[2].kind == CLASSIFY_LITERAL &&
	       is_in(words[2].text, binary, sizeof(binary) / sizeof(binary[0]));
}

static void look_at_command(struct shell_walk *walk, uint32_t node)
{
	size_t count = 0;
	struct classify_word *words = gather(walk, node, &count);

	if (!words || !count)
		return;
	if (is_plain_test(words, count))
		count = 1;
	if (classify_takes_names(words, count, &(bool){ false })) {
		walk->classify->names = shell_names_for(walk, node);
		walk->classify->names_for = (uint32_t)walk->classify->segment_count;
	}
	classify_words(walk->classify, words, count);
	walk->classify->names = NULL;
}

/* "export A=1": the keyword and what follows as the words of a built-in command. */
static void look_at_declaration(struct shell_walk *walk, uint32_t node)
{
	struct classify_word *words =
		arena_array(walk->classify->arena, walk->after[node] - node + 1, sizeof(*words));
	size_t count = 0;

	if (!words) {
		walk->classify->failed = true;
		return;
	}
	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child]) {
		words[count] = shell_word(walk, child);
		/* a value is one word, however it comes about */
		if (walk->tree->nodes[child].kind == SHELL_ASSIGNMENT &&
		    words[count].kind == CLASSIFY_UNKNOWN)
			words[count].kind = CLASSIFY_ONE;
		count++;
	}
	if (!count)
		return;
	words[0].text = arena_copy_bytes(
		walk->classify->arena, walk->tree->text + walk->tree->nodes[node + 1].start,
		walk->tree->nodes[node + 1].end - walk->tree->nodes[node + 1].start);
	words[0].kind = CLASSIFY_LITERAL;
	if (!words[0].text)
		walk->classify->failed = true;
	else
		classify_words(walk->classify, words, count);
}

/* "IFS= read": of the shell's own, for that one command. */
static bool is_for_read(const struct shell_walk *walk, uint32_t node, uint32_t parent)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t name = walk->after[node];

	return nodes[parent].kind == SHELL_COMMAND && shell_is(walk, node + 1, "IFS") &&
	       name < walk->after[parent] && nodes[name].kind == SHELL_COMMAND_NAME &&
	       shell_is(walk, name, "read");
}

/* An assignment in front of a command is in its environment; alone it may be of the shell only. */
static void look_at_assignment(struct shell_walk *walk, uint32_t node)
{
	uint32_t parent = walk->tree->nodes[node].parent;
	enum shell_part part = shell_part(walk->tree->nodes[parent].kind);
	struct classify_word word;

	if (part == SHELL_PART_DECLARATION || is_for_read(walk, node, parent))
		return;
	word = shell_word(walk, node);
	if (word.kind == CLASSIFY_UNKNOWN)
		word.kind = CLASSIFY_ONE;
	if (part == SHELL_PART_COMMAND)
		classify_variable(walk->classify, &word);
	else
		classify_shell_variable(walk->classify, &word);
}

static bool is_one_of(const struct shell_walk *walk, uint32_t node, const char *const *list,
		      size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (shell_is(walk, node, list[i]))
			return true;
	return false;
}

static bool is_descriptor(const char *text)
{
	return text[0] && text[strspn(text, "0123456789")] == '\0';
}

/* "2>&1" and "<&3": the three streams are everybody's, others came from somebody. */
static void duplicate(struct shell_walk *walk, const struct classify_word *word, bool reads)
{
	if (strcmp(word->text, "-") == 0)
		return;
	if (!reads && !is_descriptor(word->text))
		classify_write(walk->classify, word);
	else if (word->kind != CLASSIFY_LITERAL || !is_descriptor(word->text) || word->text[1] ||
		 word->text[0] > '2')
		classify_add(walk->classify, WANTED_UNCLEAR, word,
			     "a descriptor of somebody else's");
}

static bool is_network(const struct classify_word *word)
{
	return strncmp(word->text, "/dev/tcp/", 9) == 0 || strncmp(word->text, "/dev/udp/", 9) == 0;
}

static void redirect(struct shell_walk *walk, uint32_t operator, uint32_t destination)
{
	static const char *const writes[] = { ">", ">>", ">|", "&>", "&>>", "<>" };
	static const char *const duplicates[] = { ">&", "<&", ">&-", "<&-" };
	struct classify_word word;

	if (!destination) {
		if (!is_one_of(walk, operator, duplicates, 4))
			shell_wrong(walk, operator, "a redirection to nowhere");
		return;
	}
	word = shell_word(walk, destination);
	if (is_network(&word))
		classify_add(walk->classify, WANTED_NET_CONNECT, &word,
			     "a connection of the shell's");
	else if (is_one_of(walk, operator, duplicates, 2))
		duplicate(walk, &word, shell_is(walk, operator, "<&"));
	else if (shell_is(walk, operator, "<"))
		classify_read(walk->classify, &word);
	else if (is_one_of(walk, operator, writes, sizeof(writes) / sizeof(writes[0])))
		classify_write(walk->classify, &word);
	else
		shell_wrong(walk, operator, "a redirection that is not known");
}

static void look_at_redirect(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t operator= 0, destination = 0;

	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child]) {
		if (nodes[child].kind == SHELL_TOKEN && !operator)
			operator= child;
		else if (nodes[child].kind == SHELL_DESCRIPTOR)
			continue;
		else if (!destination && operator)
			destination = child;
		else
			shell_wrong(walk, node, "a redirection with more than one end");
	}
	if (operator)
		redirect(walk, operator, destination);
	else
		shell_wrong(walk, node, "a redirection that is not known");
}

/*
 * Inside of [[ ]] numbers are evaluated as arithmetic, with the commands that subscripts can hold;
 * "-v" and "-R" evaluate a name in both forms.
 */
static void look_at_operator(struct shell_walk *walk, uint32_t node)
{
	static const char *const evaluating[] = { "-v",	 "-R",	"-eq", "-ne",
						  "-lt", "-le", "-gt", "-ge" };
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t test = node;

	while (test && nodes[test].kind != SHELL_TEST)
		test = nodes[test].parent;
	if (!test && nodes[test].kind != SHELL_TEST) {
		shell_wrong(walk, node, "an operator outside of a test");
		return;
	}
	if (is_one_of(walk, node, evaluating, 2) ||
	    (shell_is(walk, test + 1, "[[") && is_one_of(walk, node, evaluating, 8)))
		ask(walk, test, WANTED_UNCLEAR, "evaluates its operands");
}

static bool is_in_arithmetic(const struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;

	while (node && nodes[node].kind != SHELL_ARITHMETIC)
		node = nodes[node].parent;
	return node;
}

static bool is_within(const struct shell_walk *walk, uint32_t node, uint32_t inner)
{
	return node < inner && inner < walk->after[node];
}

/* The value of the assignment: a number as it stands, or arithmetic that is looked at by itself. */
static bool is_set_to_number(const struct shell_walk *walk, uint32_t name)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t assignment = nodes[name].parent, value = name + 2;

	return nodes[assignment].kind == SHELL_ASSIGNMENT && name == assignment + 1 &&
	       shell_is(walk, name + 1, "=") && value < walk->after[assignment] &&
	       walk->after[value] == walk->after[assignment] &&
	       (nodes[value].kind == SHELL_NUMBER || nodes[value].kind == SHELL_ARITHMETIC);
}

/* "i=1 &" sets it for another shell. */
static bool is_in_background(const struct shell_walk *walk, uint32_t node, uint32_t parent)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t next = walk->after[node];

	return next < walk->after[parent] && nodes[next].kind == SHELL_TOKEN &&
	       shell_is(walk, next, "&");
}

/* Whoever comes to the use was at the assignment before, in the same shell or one around it. */
bool shell_is_set_before(const struct shell_walk *walk, uint32_t assignment, uint32_t use)
{
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t at = assignment, parent = nodes[at].parent;

	/* what is first in "a && b" is run as the whole is */
	while (nodes[parent].kind == SHELL_LIST && at == parent + 1 &&
	       !is_within(walk, parent, use)) {
		at = parent;
		parent = nodes[at].parent;
	}
	switch (nodes[parent].kind) {
	case SHELL_LIST:
		if (at != parent + 1)
			return false;
		break;
	case SHELL_PROGRAM:
	case SHELL_COMPOUND:
	case SHELL_SUBSHELL:
	case SHELL_DO_GROUP:
	case SHELL_COMMAND_SUBSTITUTION:
		break;
	default:
		return false;
	}
	return walk->after[assignment] <= use && is_within(walk, parent, use) &&
	       !is_in_background(walk, at, parent);
}

/*
 * What a name holds is evaluated, too: wherever the text sets it, it must make it a number, and one
 * of these places must be before the use, lest it be what the environment says.
 */
static bool is_number_variable(const struct shell_walk *walk, uint32_t name)
{
	const struct shell_node *nodes = walk->tree->nodes;
	size_t length = nodes[name].end - nodes[name].start;
	bool set = false;

	if (walk->setters || walk->tree->count > ARITHMETIC_LIMIT_NODES)
		return false;
	for (uint32_t i = 1; i < walk->tree->count; i++) {
		uint32_t above = nodes[nodes[i].parent].kind;

		if (walk->after[i] != i + 1 || nodes[i].end - nodes[i].start != length ||
		    memcmp(walk->tree->text + nodes[i].start, walk->tree->text + nodes[name].start,
			   length) != 0 ||
		    above == SHELL_SIMPLE_EXPANSION || is_in_arithmetic(walk, i))
			continue;
		if (!is_set_to_number(walk, i))
			return false;
		set |= shell_is_set_before(walk, nodes[i].parent, name);
	}
	return set;
}

/* "$?" and its kin are one number each, and so is "$i" where the text says so. */
static bool is_number(const struct shell_walk *walk, uint32_t node)
{
	static const char *const numbers[] = { "$?", "$#", "$$", "$!" };
	const struct shell_node *nodes = walk->tree->nodes;

	if (nodes[node].kind == SHELL_SIMPLE_EXPANSION && walk->after[node] == node + 3 &&
	    nodes[node + 2].kind == SHELL_VARIABLE)
		return is_number_variable(walk, node + 2);
	return is_one_of(walk, node, numbers, sizeof(numbers) / sizeof(numbers[0]));
}

/*
 * A word of "[" that becomes several, or a pattern that stands for a name like "-v", brings
 * operators of its own, and "-v" evaluates. In "[[" nothing does.
 */
static void look_at_operands(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;

	for (uint32_t i = node + 1; i < walk->after[node]; i++) {
		enum shell_part part = shell_part(nodes[i].kind),
				above = shell_part(nodes[nodes[i].parent].kind);
		struct classify_word word;

		if ((above != SHELL_PART_TEST && above != SHELL_PART_EXPRESSION) ||
		    (part != SHELL_PART_WORD && part != SHELL_PART_EXPANSION &&
		     part != SHELL_PART_SUBSTITUTION) ||
		    is_number(walk, i))
			continue;
		word = shell_word(walk, i);
		if (word.kind == CLASSIFY_UNKNOWN ||
		    (nodes[i].kind != SHELL_TEST_OPERATOR && word.text[0] == '-' &&
		     strchr("vR", word.text[1])) ||
		    (word.kind == CLASSIFY_GLOB && !word.text[strspn(word.text, "*?[]-vRao")]))
			classify_add(walk->classify, WANTED_UNCLEAR, &word,
				     "may become several words, and operators of the test");
	}
}

/* "[", "[[" and "((": the last is arithmetic. */
static void look_at_test(struct shell_walk *walk, uint32_t node)
{
	struct classify_word *word;

	if (shell_is(walk, node + 1, "["))
		look_at_operands(walk, node);
	if (!shell_is(walk, node + 1, "[") && !shell_is(walk, node + 1, "[[")) {
		ask(walk, node, WANTED_UNCLEAR, "arithmetic can run commands");
		return;
	}
	/* words stay with their segment */
	word = arena_array(walk->classify->arena, 1, sizeof(*word));
	if (!word) {
		walk->classify->failed = true;
		return;
	}
	*word = (struct classify_word){ "test", CLASSIFY_LITERAL, walk->tree->nodes[node].start };
	classify_words(walk->classify, word, 1);
}

/*
 * What may stand in "${...}": defaults, lengths and the cutting of text. Not "${x:=y}", which sets
 * a variable, nor "${!x}" and "${x@P}", which evaluate; offsets are arithmetic, so numbers alone.
 */
static bool is_plain_part(const struct shell_walk *walk, uint32_t child, bool *is_offset)
{
	static const char *const plain[] = { "$",  "${", "}",  ":-", "-",  ":+", "+",  ":?",
					     "?",  "#",	 "##", "%",  "%%", "/",	 "//", "/#",
					     "/%", "^",	 "^^", ",",  ",,", ":" };
	uint32_t kind = walk->tree->nodes[child].kind;

	if (kind == SHELL_TOKEN) {
		*is_offset |= shell_is(walk, child, ":");
		return is_one_of(walk, child, plain, sizeof(plain) / sizeof(plain[0]));
	}
	if (*is_offset)
		return kind == SHELL_NUMBER;
	return kind == SHELL_VARIABLE || kind == SHELL_SPECIAL || kind == SHELL_REGEX ||
	       shell_part(kind) == SHELL_PART_WORD || shell_part(kind) == SHELL_PART_EXPANSION ||
	       shell_part(kind) == SHELL_PART_SUBSTITUTION;
}

static void look_at_expansion(struct shell_walk *walk, uint32_t node)
{
	bool is_plain = true, is_offset = false;

	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child])
		is_plain = is_plain && is_plain_part(walk, child, &is_offset);
	if (!is_plain)
		ask(walk, node, WANTED_UNCLEAR, "an expansion that does more than to give a value");
}

/* "a=([x]=1)": the subscript is arithmetic, with all that names in it hold. */
static void look_at_array(struct shell_walk *walk, uint32_t node)
{
	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child])
		if (walk->tree->text[walk->tree->nodes[child].start] == '[')
			ask(walk, node, WANTED_UNCLEAR, "subscripts are evaluated");
}

/* A second round begins where the first one went to, and the body is judged where it stands. */
static void look_for_moves(struct shell_walk *walk, uint32_t loop)
{
	static const char *const names[] = { "cd", "pushd", "popd" };
	const struct shell_node *nodes = walk->tree->nodes;

	for (uint32_t i = loop + 1; i < walk->after[loop]; i++) {
		uint32_t above = i;

		if (nodes[i].kind != SHELL_COMMAND_NAME)
			continue;
		while (above > loop && nodes[above].kind != SHELL_SUBSHELL &&
		       nodes[above].kind != SHELL_COMMAND_SUBSTITUTION)
			above = nodes[above].parent;
		for (size_t j = 0; above == loop && j < 3; j++)
			if (strcmp(shell_word(walk, i).text, names[j]) == 0)
				ask(walk, i, WANTED_UNCLEAR,
				    "a loop that changes its directory goes on elsewhere");
	}
}

/* The commands in it are looked at as all are, and its output is a word that is not known. */
static void look_at_substitution(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *at = &walk->tree->nodes[node];
	const char *text = walk->tree->text + at->start;

	/* a backslash between backticks makes other text of what is behind it */
	if (text[0] == '`' && memchr(text, '\\', at->end - at->start))
		ask(walk, node, WANTED_UNCLEAR, "backslashes between backticks");
}

static bool is_reserved_value(const struct shell_walk *walk, uint32_t node)
{
	return shell_is(walk, node, "BASH_ENV") || shell_is(walk, node, "IFS");
}

/* The values stand for the variable later on (shell_word.c), so they are looked at here. */
static void look_at_values(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;

	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child]) {
		struct classify_word word;

		if (shell_part(nodes[child].kind) != SHELL_PART_WORD)
			continue;
		word = shell_word(walk, child);
		if (word.kind == CLASSIFY_LITERAL || word.kind == CLASSIFY_GLOB)
			classify_read(walk->classify, &word);
	}
}

/* The name that a loop sets. */
static void look_at_loop(struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;

	for (uint32_t child = node + 1; child < walk->after[node]; child = walk->after[child]) {
		struct classify_word word;

		if (nodes[child].kind != SHELL_VARIABLE)
			continue;
		word = shell_word(walk, child);
		if (is_reserved_value(walk, child))
			classify_variable(walk->classify, &word);
		else
			classify_shell_variable(walk->classify, &word);
		return;
	}
}

/* "$((1 + 2))": without a name there is nothing that could hold more than a number. */
static bool is_of_numbers(const struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *at = &walk->tree->nodes[node];
	const char *text = walk->tree->text + at->start;
	size_t length = at->end - at->start;

	if (length < 5 || memcmp(text, "$((", 3) != 0 || memcmp(text + length - 2, "))", 2) != 0)
		return false;
	for (size_t i = 3; i < length - 2; i++)
		if (!memchr("0123456789 +-*/%", text[i], 16))
			return false;
	return true;
}

/* Numbers, and names that the text gives nothing but numbers. */
static bool is_plain_arithmetic(const struct shell_walk *walk, uint32_t node)
{
	const struct shell_node *nodes = walk->tree->nodes;

	if (!shell_is(walk, node + 1, "$(("))
		return false;
	for (uint32_t i = node + 1; i < walk->after[node]; i++) {
		uint32_t kind = nodes[i].kind;

		if (kind == SHELL_VARIABLE ?
			    !is_number_variable(walk, i) :
			    kind != SHELL_TOKEN && kind != SHELL_NUMBER &&
				    kind != SHELL_SIMPLE_EXPANSION && kind != SHELL_BINARY &&
				    kind != SHELL_UNARY && kind != SHELL_PARENTHESES)
			return false;
	}
	return true;
}

static void look_at(struct shell_walk *walk, uint32_t node)
{
	uint32_t kind = walk->tree->nodes[node].kind;

	switch (shell_part(kind)) {
	case SHELL_PART_COMMAND:
		look_at_command(walk, node);
		break;
	case SHELL_PART_DECLARATION:
		look_at_declaration(walk, node);
		break;
	case SHELL_PART_ASSIGNMENT:
		look_at_assignment(walk, node);
		break;
	case SHELL_PART_REDIRECT:
		look_at_redirect(walk, node);
		break;
	case SHELL_PART_TEST:
		look_at_test(walk, node);
		break;
	case SHELL_PART_FUNCTION:
		ask(walk, node, WANTED_UNCLEAR,
		    "defines a function: a name then means another thing");
		break;
	case SHELL_PART_SUBSTITUTION:
		look_at_substitution(walk, node);
		break;
	case SHELL_PART_ARITHMETIC:
		if (!is_of_numbers(walk, node) && !is_plain_arithmetic(walk, node))
			ask(walk, node, WANTED_UNCLEAR, "arithmetic can run commands");
		break;
	case SHELL_PART_EXPANSION:
		look_at_expansion(walk, node);
		break;
	case SHELL_PART_WORD:
		if (kind == SHELL_ARRAY)
			look_at_array(walk, node);
		break;
	default:
		if (kind == SHELL_TEST_OPERATOR)
			look_at_operator(walk, node);
		else if (kind == SHELL_FOR) {
			look_at_loop(walk, node);
			look_at_values(walk, node);
		}
		if (kind == SHELL_FOR || kind == SHELL_WHILE)
			look_for_moves(walk, node);
	}
}

/* "read", by "command read" too, and declarations: how they quote names is not looked into. */
static uint32_t count_setters(struct shell_walk *walk)
{
	static const char *const names[] = { "read", "command", "builtin" };
	const struct shell_node *nodes = walk->tree->nodes;
	uint32_t count = 0;

	for (uint32_t i = 1; i < walk->tree->count; i++) {
		if (shell_part(nodes[i].kind) == SHELL_PART_DECLARATION)
			count++;
		for (size_t j = 0; nodes[i].kind == SHELL_COMMAND_NAME && j < 3; j++)
			if (strcmp(shell_word(walk, i).text, names[j]) == 0)
				count++;
	}
	return count;
}

/* What is shown to a person must be what runs. */
static bool is_visible(const char *text, size_t length)
{
	for (size_t i = 0; i < length;) {
		uint32_t point;
		size_t n = utf8_decode(text + i, length - i, &point);

		if (!n || (!utf8_is_visible(point) && point != '\n' && point != '\t'))
			return false;
		i += n;
	}
	return true;
}

void shell_refuse(struct classify *classify, const char *why)
{
	struct classify_word word = { "(shell text)", CLASSIFY_LITERAL, 0 };

	classify->failed = true;
	classify_add(classify, WANTED_UNCLEAR, &word, why);
}

static void refuse_at(struct shell_walk *walk)
{
	struct classify_word word = { "(shell text)", CLASSIFY_LITERAL, walk->wrong_at };

	walk->classify->failed = true;
	classify_add(walk->classify, WANTED_UNCLEAR, &word, walk->wrong);
}

void shell_classify(struct classify *classify, const struct shell_tree *tree)
{
	struct shell_walk walk = { .classify = classify, .tree = tree };
	size_t segments = classify->segment_count;

	if (tree->length > SHELL_LIMIT_BYTES || tree->count > SHELL_LIMIT_NODES) {
		shell_refuse(classify, "too long");
		return;
	}
	if (!is_visible(tree->text, tree->length)) {
		shell_refuse(classify, "has characters that are not shown as they are");
		return;
	}
	classify->in_shell = true;
	if (shell_check(&walk)) {
		/* while they are counted no variable is known */
		walk.setters = 1;
		walk.setters = count_setters(&walk);
		for (uint32_t i = 0; i < tree->count && !walk.wrong && !classify->failed; i++)
			look_at(&walk, i);
	}
	if (walk.wrong)
		refuse_at(&walk);
	classify->in_shell = false;
	/* nothing to run but assignments and redirections: those were looked at */
	if (classify->segment_count == segments && !classify->wanted_count)
		shell_refuse(classify, "no command");
}

void shell_classify_text(struct classify *classify, size_t index, const struct shell_tree *tree)
{
	uint32_t depth = classify->depth;

	classify->depth = classify->texts[index].depth;
	classify->texts_read++;
	shell_classify(classify, tree);
	classify->depth = depth;
}
