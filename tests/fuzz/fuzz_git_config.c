/*
 * The merge of git configuration: `before`, `after` and `now`, each but the last ended by NUL. What
 * it writes can be read again, has no key from the task that is not on the list, keeps every
 * comment, and merged once more gives nothing new; where the task changed nothing, nothing is
 * written or held.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "workspace/git_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static struct git_text take(const uint8_t **data, size_t *size)
{
	const uint8_t *end = *size ? memchr(*data, '\0', *size) : NULL;
	struct git_text text = { (const char *)*data, end ? (size_t)(end - *data) : *size };

	*data += text.length + (end ? 1 : 0);
	*size -= text.length + (end ? 1 : 0);
	return text;
}

static bool has_entry(struct git_text text, const struct git_config_reader *wanted)
{
	struct git_config_reader CLEANUP_GIT_CONFIG reader;
	bool found = false;
	enum git_item item;

	git_config_begin(&reader, text, NULL);
	while (!found && (item = git_config_next(&reader)) != GIT_ITEM_END) {
		require(item != GIT_ITEM_BAD && reader.begin <= reader.end &&
			reader.end <= text.length);
		found = item == GIT_ITEM_ENTRY && reader.has_value == wanted->has_value &&
			strcmp(git_config_text(&reader.section),
			       git_config_text(&wanted->section)) == 0 &&
			strcmp(git_config_text(&reader.key), git_config_text(&wanted->key)) == 0 &&
			strcmp(git_config_text(&reader.value), git_config_text(&wanted->value)) ==
				0;
	}
	return found;
}

/* Counts the comments of a text whose entries are in one of the others, or on the list. */
static size_t check_text(struct git_text text, struct git_text now)
{
	struct git_config_reader CLEANUP_GIT_CONFIG reader;
	size_t comments = 0;
	enum git_item item;

	git_config_begin(&reader, text, NULL);
	while ((item = git_config_next(&reader)) != GIT_ITEM_END) {
		require(item != GIT_ITEM_BAD);
		comments += item == GIT_ITEM_COMMENT;
		if (item == GIT_ITEM_ENTRY && !has_entry(now, &reader))
			require(git_config_allows(git_config_text(&reader.section),
						  git_config_text(&reader.key)));
	}
	return comments;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct git_text before = take(&data, &size), after = take(&data, &size);
	struct git_text now = { (const char *)data, size };
	struct arena CLEANUP_ARENA arena = { 0 };
	struct git_config_merge merged, again;
	struct error error = ERROR_NONE;
	int result = git_config_merge(&arena, before, after, now, &merged, &error);

	if (result < 0) {
		require(result == -error.code || result == error.code);
		/* what can be read can be merged */
		require(!strstr(error.message, "merged") && !strstr(error.message, "changed"));
		return 0;
	}
	if (merged.text) {
		struct git_text text = { merged.text, merged.length };

		require(check_text(text, now) == check_text(now, now));
		require(git_config_merge(&arena, before, after, text, &again, &error) == 0);
		require(!again.text && again.held_count == merged.held_count);
	}
	require(git_config_merge(&arena, before, before, now, &again, &error) == 0);
	require(!again.text && again.held_count == 0);
	return 0;
}
