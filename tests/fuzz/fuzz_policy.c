/*
 * The compiled policy's reader. What it accepts keeps the promises of policy.h and encodes to the
 * very bytes that were read; a sanitizer sees reads beyond the input. Input: the blob. The length
 * field is set right, so that the fuzzer need not guess it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "policy/policy.h"

#define LENGTH_AT 12

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_rows(const struct policy *policy)
{
	for (size_t i = 0; i < policy->rule_count; i++)
		require(policy->rules[i].id != NULL);
	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *row = &policy->view.paths[i];

		require(row->class < PATH_CLASS_COUNT && row->kind < PATH_KIND_COUNT);
		require(row->rule < policy->rule_count && row->source);
		require(path_is_clean(row->target));
		require((row->upper != NULL) == (row->class == PATH_CACHE));
		require((row->state != 0) == (row->class == PATH_COPY));
		if (row->class == PATH_GIT || row->class == PATH_OBJECTS)
			require(row->kind == PATH_KIND_DIRECTORY &&
				strcmp(row->source, row->target) == 0);
		require(row->kind != PATH_KIND_LINK || row->class == PATH_PROTECT);
		require(view_lookup(&policy->view, row->target) != NULL);
	}
	for (size_t i = 0; i < policy->variable_count; i++) {
		const struct policy_variable *variable = &policy->variables[i];

		require(variable->name[0] && !strchr(variable->name, '=') && variable->value);
		require(variable->rule < policy->rule_count);
	}
	for (size_t i = 0; i < policy->listener_count; i++)
		require(policy->listeners[i].port <= 65535);
	for (size_t i = 0; i < policy->ruling_count; i++)
		require(ruling_is_valid(&policy->rulings[i]) &&
			policy->rulings[i].rule < policy->rule_count);
	require(policy->approval < RULING_APPROVAL_COUNT);
	require(!policy->approval || policy->approval_rule < policy->rule_count);
}

static void check(const struct policy *policy)
{
	require((policy->flags & ~(uint32_t)POLICY_FLAGS_ALL) == 0);
	require(policy->user && path_is_clean(policy->home) && path_is_clean(policy->shell));
	require(path_is_clean(policy->workspace) && path_is_clean(policy->cwd));
	require(policy->rule_count <= POLICY_LIMIT_RULES);
	require(policy->view.count <= VIEW_LIMIT_PATHS);
	require(policy->variable_count <= POLICY_LIMIT_VARIABLES);
	require(policy->listener_count <= POLICY_LIMIT_LISTENERS);
	check_rows(policy);
}

static void check_blob(const uint8_t *blob, size_t size)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct error error = ERROR_NONE;
	struct policy policy;
	const unsigned char *again;
	size_t length;
	int r = policy_decode(blob, size, &arena, &policy, &error);

	if (r < 0) {
		require(r == -EBADMSG && error.code == r && error.message[0]);
		return;
	}
	check(&policy);
	require(policy_encode(&policy, &arena, &again, &length) == 0);
	require(length == size && memcmp(blob, again, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *blob = calloc(1, size ? size : 1);

	require(blob);
	if (size)
		memcpy(blob, data, size);
	check_blob(blob, size);
	if (size >= LENGTH_AT + 4) {
		for (unsigned i = 0; i < 4; i++)
			blob[LENGTH_AT + i] = (uint8_t)(size >> (8 * i));
		check_blob(blob, size);
	}
	free(blob);
	return 0;
}
