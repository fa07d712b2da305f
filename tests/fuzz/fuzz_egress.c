/*
 * The reader of compiled network rules, and decisions by what it read. What it accepts encodes to
 * the very bytes that were read; no decision by it breaks the laws of policy/egress.h. Input: the
 * rules. The length field is set right, so that the fuzzer need not guess it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/egress.h"

#define LENGTH_AT 12

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_answer(const struct egress_policy *policy, const struct egress_question *question)
{
	struct address metadata = { .family = ADDRESS_V4, .bytes = { 169, 254, 169, 254 } };
	struct egress_opening opening;
	struct egress_answer answer;
	bool names_it = false;

	egress_decide(policy, question, &answer);
	require(answer.verdict < EGRESS_VERDICT_COUNT);
	require(!(answer.needs & question->known));
	require(egress_answer_rule(&answer).id != NULL);
	if (answer.verdict != EGRESS_DENY)
		require(policy->mode == EGRESS_POLICY && answer.rule &&
			answer.rule->verdict == answer.verdict);
	for (size_t i = 0; i < policy->rule_count; i++)
		names_it |= policy->rules[i].kind == EGRESS_NETWORK &&
			    policy->rules[i].prefix_bits == 32;
	if (!names_it || answer.verdict == EGRESS_DENY)
		require(egress_check_address(policy, question, &answer, &metadata, &opening));
}

static void check(const struct egress_policy *policy)
{
	static const char *const texts[] = { "a.example", "localhost", "10.0.0.1", "8.8.8.8",
					     "::ffff:10.0.0.1" };
	struct egress_tool tool = { 1, 2, "/usr/bin/git" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct host host;
		const char *why;

		require(host_parse(texts[i], strlen(texts[i]), &host, &why) == 0);
		for (uint32_t known = 0; known < 8; known++) {
			struct egress_question question = {
				.host = &host,
				.port = 443,
				.wall_s = 1000,
				.known = known,
				.protocol = EGRESS_HTTP,
				.method = "GET",
				.path = "/a/b",
				.upgrade = i & 1,
				.tool = i & 2 ? &tool : NULL,
			};

			check_answer(policy, &question);
		}
	}
}

static void check_bytes(const uint8_t *bytes, size_t size)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct error error = ERROR_NONE;
	struct egress_policy policy;
	const unsigned char *again;
	size_t length;
	int r = egress_decode(bytes, size, &arena, &policy, &error);

	if (r < 0) {
		require(r == -EBADMSG && error.code == r && error.message[0]);
		return;
	}
	check(&policy);
	require(egress_encode(&policy, &arena, &again, &length) == 0);
	require(length == size && memcmp(bytes, again, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = calloc(1, size ? size : 1);

	require(bytes);
	if (size)
		memcpy(bytes, data, size);
	check_bytes(bytes, size);
	if (size >= LENGTH_AT + 4) {
		for (unsigned i = 0; i < 4; i++)
			bytes[LENGTH_AT + i] = (uint8_t)(size >> (8 * i));
		check_bytes(bytes, size);
	}
	free(bytes);
	return 0;
}
