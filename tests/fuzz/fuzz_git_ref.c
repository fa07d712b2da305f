/*
 * References as a task wrote them: values, lists, logs and packed-refs. What is parsed is found
 * again, lies within the bytes, and is what git would take.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "workspace/git_ref.h"
#include "workspace/git_sequence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_packed(struct arena *arena, const char *bytes, size_t size)
{
	struct git_packed packed;

	if (git_packed_parse(arena, bytes, size, &packed) < 0)
		return;
	for (size_t i = 0; i < packed.count; i++) {
		const struct git_packed_ref *ref = &packed.refs[i];

		require(ref->begin < ref->end && ref->end <= size && bytes[ref->end - 1] == '\n');
		require(git_ref_is_name(ref->name, strlen(ref->name)));
		require(git_packed_find(&packed, ref->name) == ref);
	}
}

static void check_value(struct arena *arena, const char *bytes, size_t size)
{
	const char *value = git_ref_value(arena, bytes, size, true);

	/* a value is its own value, and has one line */
	require(!value || !strpbrk(value, "\r\n"));
	if (value)
		require(strcmp(git_ref_value(arena, value, strlen(value), true), value) == 0);
	require(!git_ref_value(arena, bytes, size, false) || value);
}

/* Input: which file of an unfinished operation, then its content. */
static void check_sequence(const char *bytes, size_t size)
{
	static const char *const names[] = {
		"rebase-merge/git-rebase-todo",
		"rebase-merge/author-script",
		"rebase-merge/onto",
		"rebase-merge/strategy_opts",
		"sequencer/opts",
		"BISECT_LOG",
		"rebase-apply/0001",
		"rebase-merge/update-refs",
	};
	size_t which = size ? (unsigned char)bytes[0] % (sizeof(names) / sizeof(names[0])) : 0;

	if (!size)
		return;
	if (!git_sequence_fault(names[which], bytes + 1, size - 1) && which == 0)
		require(!memmem(bytes + 1, size - 1, "\nexec ", 6) &&
			!memmem(bytes + 1, size - 1, "\nx ", 3));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	char *bytes = malloc(size ? size : 1);

	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	check_packed(&arena, bytes, size);
	check_value(&arena, bytes, size);
	if (git_ref_is_log(bytes, size))
		require(!memchr(bytes, '\0', size) && (!size || bytes[size - 1] == '\n'));
	(void)git_ref_is_list(bytes, size, true);
	check_sequence(bytes, size);
	free(bytes);
	return 0;
}
