/*
 * Commands as argv, one word a line: whatever the words are, requests point into them, limits hold,
 * a wrapper that leaves the wall is never lost, and no verdict of a policy is milder than the worst
 * of its requests'. A word that begins with '?' is not known.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "policy/classify.h"
#include "policy/policy.h"
#include "policy/verdict.h"

#define WORDS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct classify_facts facts = { .cwd = "/w/p", .home = "/h/u", .user = "u" };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static size_t split(char *text, size_t size, struct classify_word *words)
{
	size_t count = 0;

	for (char *at = text, *end = text + size; at < end && count < WORDS;) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = newline ? (size_t)(newline - at) : (size_t)(end - at);

		at[length] = '\0';
		words[count].kind = at[0] == '?' ? CLASSIFY_UNKNOWN : CLASSIFY_LITERAL;
		words[count].text = at;
		words[count].position = (uint32_t)count;
		count++;
		at += length + 1;
	}
	return count;
}

static void check(const struct classify *classify, size_t count)
{
	require(classify->segment_count <= CLASSIFY_LIMIT_SEGMENTS);
	require(classify->wanted_count <= CLASSIFY_LIMIT_WANTED);
	require(classify->wanted_count > 0 || classify->failed);
	for (size_t i = 0; i < classify->wanted_count; i++) {
		const struct wanted *wanted = &classify->wanted[i];

		require(wanted->target && wanted->why && wanted->position < count);
		require(wanted->segment < classify->segment_count);
		require(wanted->verb < WANTED_COUNT);
	}
	for (size_t i = 0; i < classify->text_count; i++)
		require(classify->texts[i].depth <= CLASSIFY_LIMIT_DEPTH + 1);
}

static void judge(const struct classify *classify)
{
	static struct rule_ref rules[] = { { "zero", NULL, 0 }, { "one", "/p.yaml", 1 } };
	static struct ruling rulings[] = {
		{ .kind = RULING_EXEC_DENY, .text = "curl", .rule = 1 },
		{ .kind = RULING_EXEC_SET, .text = "no-mounts", .rule = 1 },
		{ .kind = RULING_ASK, .text = "destructive", .rule = 1 },
		{ .kind = RULING_ASK_METHOD, .text = "PUT", .rule = 1 },
		{ .kind = RULING_TARGET_PATH, .text = "a/**", .label = "x", .rule = 1 },
		{ .kind = RULING_TARGET_HOST, .text = "*.b.org", .label = "x", .rule = 1 },
		{ .kind = RULING_HIDE, .text = "**/*.key", .rule = 1 },
		{ .kind = RULING_EXCEPTION,
		  .text = "rm *",
		  .label = "o",
		  .note = "r",
		  .rule = 1,
		  .until = 9 },
	};
	static struct view_path shown = { .class = PATH_WRITE, .source = "/w/p", .target = "/w/p" };

	for (enum ruling_approval approval = 0; approval < RULING_APPROVAL_COUNT; approval++) {
		const struct policy policy = { .home = "/h/u",
					       .workspace = "/w/p",
					       .cwd = "/w/p",
					       .rules = rules,
					       .rule_count = 2,
					       .view = { &shown, 1 },
					       .approval = approval,
					       .approval_rule = 1,
					       .rulings = rulings,
					       .ruling_count =
						       sizeof(rulings) / sizeof(rulings[0]) };
		const struct verdict_facts judging = { .policy = &policy, .day = 9 };
		struct verdict_list list;

		verdict_make(classify, &judging, &list);
		require(list.whole.reason && list.whole.rule.id);
		require(list.request <= classify->wanted_count);
		require(!classify->failed || list.whole.judgement != WANTED_ALLOWS);
		for (size_t i = 0; list.rows && i < classify->wanted_count; i++)
			require(list.rows[i].reason && list.rows[i].rule.id &&
				list.rows[i].judgement <= list.whole.judgement);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct classify_word words[WORDS + 1];
	struct arena arena = { 0 };
	struct classify classify = { .arena = &arena, .facts = &facts };
	char *text = malloc(size + 1);
	size_t count;

	require(text);
	if (size)
		memcpy(text, data, size);
	words[0] = (struct classify_word){ "sudo", CLASSIFY_LITERAL, 0 };
	count = split(text, size, words + 1);
	if (count) {
		struct classify outer = { .arena = &arena, .facts = &facts };

		classify_words(&classify, words + 1, count);
		check(&classify, count);
		judge(&classify);
		classify_words(&outer, words, count + 1);
		/* "sudo --help" alone is a question */
		require(count == 1 || classify_judge(&outer) != WANTED_ALLOWS);
	}
	arena_free(&arena);
	free(text);
	return 0;
}
