/*
 * Codex's rules of commands. A policy denies programs and asks by what a command does, so a rule
 * that forbids a program is exec.deny, one that asks is the class of approvals.ask in which the
 * commands that begin so fall, and examples are held against what came of it; all else is a note.
 */
#include "policy/import_internal.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/json.h"
#include "policy/classify.h"
#include "policy/program.h"
#include "policy/verdict.h"

#include <errno.h>
#include <string.h>

/* Commands that a pattern with alternatives stands for, as far as they are looked at. */
#define COMMANDS_LIMIT 64u
#define WORDS_LIMIT 16u

struct rule {
	struct importing *importing;
	const struct outline_node *node, *map, *pattern;
	const char *text; /* the pattern, for people */
};

static const struct outline_node *argument(const struct rule *rule, const char *name)
{
	return outline_find(rule->importing->outline, rule->map, name);
}

static bool is_text(const struct outline_node *node)
{
	return node && node->kind == OUTLINE_TEXT && !node->is_plain;
}

static bool says(const struct outline_node *node, const char *text)
{
	return is_text(node) && strcmp(node->text, text) == 0;
}

/* Not one that is left out: None says as much. */
static bool is_given(const struct outline_node *node)
{
	return node &&
	       !(node->kind == OUTLINE_TEXT && node->is_plain && strcmp(node->text, "None") == 0);
}

static void remark(const struct rule *rule, const char *why)
{
	import_remark(rule->importing, rule->node, rule->text, why);
}

/* ---- patterns ---- */

/* Every element a text, or a list of texts with at least one. */
static bool is_pattern(const struct outline *outline, const struct outline_node *list)
{
	size_t count = 0;

	if (!list || list->kind != OUTLINE_LIST)
		return false;
	for (const struct outline_node *at = outline_first(outline, list); at;
	     at = outline_next(outline, list, at), count++) {
		const struct outline_node *word =
			at->kind == OUTLINE_LIST ? outline_first(outline, at) : NULL;

		if (at->kind == OUTLINE_LIST ? !word : !is_text(at))
			return false;
		for (; word; word = outline_next(outline, at, word))
			if (!is_text(word))
				return false;
	}
	return count > 0 && count < WORDS_LIMIT;
}

static size_t element_count(const struct outline *outline, const struct outline_node *list)
{
	size_t count = 0;

	for (const struct outline_node *at = outline_first(outline, list); at;
	     at = outline_next(outline, list, at))
		count++;
	return count;
}

/* The pattern as one would write it: "git push|fetch". */
static const char *pattern_text(const struct rule *rule)
{
	const struct outline *outline = rule->importing->outline;
	struct buffer text = { .arena = rule->importing->arena };

	for (const struct outline_node *at = outline_first(outline, rule->pattern); at;
	     at = outline_next(outline, rule->pattern, at)) {
		const struct outline_node *word =
			at->kind == OUTLINE_LIST ? outline_first(outline, at) : at;

		buffer_text(&text, text.length ? " " : "");
		while (word) {
			buffer_text(&text, word->text);
			word = at->kind == OUTLINE_LIST ? outline_next(outline, at, word) : NULL;
			buffer_text(&text, word ? "|" : "");
		}
	}
	return text.failed ? "" : text.data;
}

/*
 * The words of the index-th command that the pattern stands for; 0 behind the last one. The first
 * element changes fastest.
 */
static size_t command_words(const struct rule *rule, size_t index, const char **ret_words)
{
	const struct outline *outline = rule->importing->outline;
	size_t count = 0;

	for (const struct outline_node *at = outline_first(outline, rule->pattern); at;
	     at = outline_next(outline, rule->pattern, at)) {
		const struct outline_node *word =
			at->kind == OUTLINE_LIST ? outline_first(outline, at) : at;
		size_t choices = at->kind == OUTLINE_LIST ? element_count(outline, at) : 1;
		size_t choice = index % choices;

		index /= choices;
		while (choice--)
			word = outline_next(outline, at, word);
		ret_words[count++] = word->text;
	}
	return index ? 0 : count;
}

/* ---- what becomes of a rule ---- */

/* Words of an example: a list of them, or a text that a shell would split. */
static const char *first_word(const struct rule *rule, const struct outline_node *example)
{
	const struct outline_node *word = example->kind == OUTLINE_LIST ?
						  outline_first(rule->importing->outline, example) :
						  example;

	if (!is_text(word))
		return "";
	return arena_copy_bytes(rule->importing->arena, word->text,
				example == word ? strcspn(word->text, " \t") : strlen(word->text));
}

static const char *example_text(const struct rule *rule, const struct outline_node *example)
{
	const struct outline *outline = rule->importing->outline;
	struct buffer text = { .arena = rule->importing->arena };

	if (example->kind == OUTLINE_TEXT)
		return example->text;
	for (const struct outline_node *word = outline_first(outline, example); word;
	     word = outline_next(outline, example, word)) {
		buffer_text(&text, text.length ? " " : "");
		buffer_text(&text, word->text);
	}
	return text.failed || !text.data ? "" : text.data;
}

/* Those that say something of the program: the loader holds them against the rule. */
static void put_examples(const struct rule *rule, const char *key, const char *program,
			 bool covered, struct buffer *buffer)
{
	const struct outline *outline = rule->importing->outline;
	const struct outline_node *list = argument(rule, key);
	struct json json;
	bool any = false;

	if (!list || list->kind != OUTLINE_LIST)
		return;
	for (const struct outline_node *at = outline_first(outline, list); at;
	     at = outline_next(outline, list, at)) {
		const char *word = first_word(rule, at);

		if (!word || !word[0] || (strcmp(program_name(word), program) == 0) != covered)
			continue;
		buffer_text(buffer, ", ");
		if (!any)
			buffer_format(buffer, "%s: [", key);
		any = true;
		json_begin(&json, buffer);
		json_string(&json, NULL, example_text(rule, at));
	}
	buffer_text(buffer, any ? "]" : "");
}

/* Each of its examples, for `bawn policy test`. */
static void add_tests(const struct rule *rule, const char *verdict)
{
	struct importing *importing = rule->importing;
	const struct outline *outline = importing->outline;
	const struct outline_node *list = argument(rule, "match");

	if (!list || list->kind != OUTLINE_LIST)
		return;
	/* where nobody is asked an ask is a denial */
	for (size_t i = 0; i < importing->import->row_count; i++)
		if (importing->import->rows[i].slot == IMPORT_APPROVAL &&
		    strcmp(importing->import->rows[i].value, "never") == 0)
			verdict = "deny";
	for (const struct outline_node *at = outline_first(outline, list); at;
	     at = outline_next(outline, list, at)) {
		struct buffer text = { .arena = importing->arena };
		struct json json;

		if (!first_word(rule, at)[0])
			continue;
		json_begin(&json, &text);
		if (at->kind == OUTLINE_TEXT) {
			buffer_text(&text, "command: ");
			json_string(&json, NULL, at->text);
		} else {
			buffer_text(&text, "argv: ");
			json_array(&json, NULL);
			for (const struct outline_node *word = outline_first(outline, at); word;
			     word = outline_next(outline, at, word))
				json_string(&json, NULL, word->text);
			json_array_end(&json);
		}
		buffer_format(&text, ", verdict: %s", verdict);
		if (!text.failed)
			import_add(importing, IMPORT_TEST, at, text.data);
	}
}

static void forbid(const struct rule *rule)
{
	struct importing *importing = rule->importing;
	const struct outline *outline = importing->outline;
	const struct outline_node *at = outline_first(outline, rule->pattern);
	const struct outline_node *word = at->kind == OUTLINE_LIST ? outline_first(outline, at) :
								     at;

	if (outline_next(outline, rule->pattern, at)) {
		remark(rule, "a denial for some arguments of a program: a policy denies programs, "
			     "asks by what a command does (approvals.ask)");
		return;
	}
	for (; word; word = at->kind == OUTLINE_LIST ? outline_next(outline, at, word) : NULL) {
		struct buffer more = { .arena = importing->arena };

		put_examples(rule, "match", word->text, true, &more);
		put_examples(rule, "not_match", word->text, false, &more);
		import_add_more(importing, IMPORT_EXEC_DENY, rule->node, word->text,
				more.failed ? NULL : more.data);
	}
	add_tests(rule, "deny");
}

/* A bit for each class of approvals.ask that the command falls in, whatever follows it. */
static uint32_t classes_of(const char **words, size_t count)
{
	static const struct classify_facts facts = { 0 };
	struct arena CLEANUP_ARENA arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };
	uint32_t classes = 0;

	words[count] = "x";
	classify_argv(&classify, words, count + 1);
	for (size_t i = 0; i < classify.wanted_count; i++) {
		const char *name = verdict_class(classify.wanted[i].verb);

		for (uint32_t j = 0; name && verdict_class_at(j); j++)
			if (strcmp(verdict_class_at(j), name) == 0)
				classes |= UINT32_C(1) << j;
	}
	return classes;
}

static void ask(const struct rule *rule)
{
	const char *words[WORDS_LIMIT + 1];
	uint32_t all = 0;
	bool any_without = false;
	size_t index = 0, count;

	for (; (count = command_words(rule, index, words)) && index < COMMANDS_LIMIT; index++) {
		uint32_t classes = classes_of(words, count);

		all |= classes;
		any_without |= !classes;
	}
	for (uint32_t i = 0; verdict_class_at(i); i++)
		if (all & UINT32_C(1) << i)
			import_add_more(rule->importing, IMPORT_ASK, rule->node,
					verdict_class_at(i), rule->text);
	if (any_without || count)
		remark(rule,
		       "a question about some commands: approvals.ask has classes of them, and "
		       "these fall in none");
	else
		add_tests(rule, "ask");
}

static void take_prefix_rule(struct rule *rule)
{
	const struct outline_node *decision = argument(rule, "decision");

	rule->pattern = argument(rule, "pattern");
	if (!is_pattern(rule->importing->outline, rule->pattern)) {
		remark(rule, "a rule whose pattern is not words");
		return;
	}
	rule->text = pattern_text(rule);
	if (!is_given(decision) || says(decision, "allow"))
		remark(rule, "nothing is needed: a command inside of the wall runs unless it is "
			     "denied");
	else if (says(decision, "forbidden"))
		forbid(rule);
	else if (says(decision, "prompt"))
		ask(rule);
	else
		remark(rule, "a decision that is not known here");
}

static void take_network_rule(struct rule *rule)
{
	struct importing *importing = rule->importing;
	const struct outline_node *host = argument(rule, "host"), *protocol, *decision;

	protocol = argument(rule, "protocol");
	decision = argument(rule, "decision");
	if (!is_text(host) || !is_text(decision)) {
		remark(rule, "a rule without a host or a decision");
		return;
	}
	rule->text = host->text;
	if (says(decision, "deny") || says(decision, "forbidden"))
		import_deny_host(importing, host, host->text);
	else if (!says(protocol, "https"))
		remark(rule, "another protocol than https: network.allow has ports and protocols");
	else if (says(decision, "allow"))
		import_allow_host(importing, host, host->text);
	else if (says(decision, "prompt"))
		import_add(importing, IMPORT_NET_ASK, host, host->text);
	else
		remark(rule, "a decision that is not known here");
}

static void take_call(struct rule *rule)
{
	const char *name = rule->text;

	if (!name[0]) {
		const struct outline_node *key =
			outline_first(rule->importing->outline, rule->node);

		rule->text = "a statement that is not read";
		remark(rule, outline_next(rule->importing->outline, rule->node, key)->text);
	} else if (rule->map->kind != OUTLINE_MAP) {
		remark(rule, "not a call");
	} else if (strcmp(name, "prefix_rule") == 0) {
		take_prefix_rule(rule);
	} else if (strcmp(name, "network_rule") == 0) {
		take_network_rule(rule);
	} else if (strcmp(name, "host_executable") == 0) {
		remark(rule, "nothing is needed: programs go by their files");
	} else {
		remark(rule, "a function that is not known here");
	}
}

int import_rules(const struct outline *outline, const char *file, struct arena *arena,
		 struct import *import)
{
	struct importing importing = {
		.outline = outline, .arena = arena, .import = import, .file = file
	};
	const struct outline_node *list = outline->nodes;

	if (!outline->count || list->kind != OUTLINE_LIST)
		return -EINVAL;
	for (const struct outline_node *node = outline_first(outline, list); node;
	     node = outline_next(outline, list, node)) {
		const struct outline_node *key =
			node->kind == OUTLINE_MAP ? outline_first(outline, node) : NULL;
		struct rule rule = { .importing = &importing, .node = node };

		if (!key)
			return -EINVAL;
		rule.text = key->text;
		rule.map = outline_next(outline, node, key);
		take_call(&rule);
	}
	return arena_failed(arena) ? -ENOMEM : 0;
}
