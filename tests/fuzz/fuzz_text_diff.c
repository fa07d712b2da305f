/*
 * Two texts, parted by the first 0xff of the input, and their difference applied to the first one
 * by a patch of this file's that believes nothing: numbers of lines, contexts and removed lines
 * must be those of the text before; what comes out must be the text after. The first byte of the
 * input limits the work.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "workspace/text_diff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct patch {
	struct text before;
	size_t at, line;    /* of the text before: the next byte, the lines that are used */
	struct buffer made; /* the text after, so far */
	size_t made_lines;
	unsigned left[2]; /* lines of the hunk that are to come, before and after */
	bool ends_before, ends_after, may_end_before, may_end_after;
	size_t added, removed;
};

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* The next line of the text before, without its newline. */
static struct text next(struct patch *patch, bool *ret_has_newline)
{
	const char *begin = patch->before.bytes + patch->at, *newline;
	size_t left = patch->before.length - patch->at;
	struct text line;

	require(left > 0);
	newline = memchr(begin, '\n', left);
	line = (struct text){ begin, newline ? (size_t)(newline - begin) : left };
	*ret_has_newline = newline;
	patch->at += line.length + *ret_has_newline;
	patch->line++;
	return line;
}

static void keep(struct patch *patch)
{
	bool has_newline;
	struct text line = next(patch, &has_newline);

	buffer_append(&patch->made, line.bytes, line.length);
	if (has_newline)
		buffer_byte(&patch->made, '\n');
	patch->made_lines++;
}

static unsigned number(const char **at)
{
	char *end;
	unsigned long value = strtoul(*at, &end, 10);

	require(end != *at);
	*at = end;
	return (unsigned)value;
}

static unsigned range(const char **at, unsigned *ret_count)
{
	unsigned begin = number(at);

	*ret_count = 1;
	if (**at == ',') {
		++*at;
		*ret_count = number(at);
		require(*ret_count != 1);
	}
	return *ret_count ? begin - 1 : begin;
}

static void begin_hunk(struct patch *patch, const char *bytes, size_t length)
{
	char text[96] = "";
	const char *at = text + 4;
	unsigned before, after;

	require(!patch->left[0] && !patch->left[1] && length < sizeof(text));
	memcpy(text, bytes, length);
	require(strncmp(text, "@@ -", 4) == 0);
	before = range(&at, &patch->left[0]);
	require(strncmp(at, " +", 2) == 0);
	at += 2;
	after = range(&at, &patch->left[1]);
	require(strcmp(at, " @@") == 0 && before >= patch->line);
	while (patch->line < before)
		keep(patch);
	require(patch->made_lines == after);
}

static void expect(struct patch *patch, const char *bytes, size_t length)
{
	bool has_newline;
	struct text line = next(patch, &has_newline);

	require(patch->left[0]-- && line.length == length &&
		memcmp(line.bytes, bytes, length) == 0 && !patch->ends_before);
	patch->may_end_before = !has_newline;
}

static void add(struct patch *patch, const char *bytes, size_t length)
{
	require(patch->left[1]-- && !patch->ends_after);
	buffer_append(&patch->made, bytes, length);
	buffer_byte(&patch->made, '\n');
	patch->made_lines++;
}

static int take(void *context, enum text_diff_line kind, const char *bytes, size_t length)
{
	struct patch *patch = context;

	require(kind == TEXT_DIFF_NO_NEWLINE || !patch->may_end_before);
	require(!length || !memchr(bytes, '\n', length));
	if (kind == TEXT_DIFF_NO_NEWLINE) {
		/* of the line before: a removed one's or an added one's */
		require(patch->may_end_before || patch->may_end_after);
		if (patch->may_end_after) {
			patch->made.length--;
			patch->ends_after = true;
		}
		if (patch->may_end_before)
			patch->ends_before = true;
	}
	patch->may_end_before = patch->may_end_after = false;
	if (kind == TEXT_DIFF_HUNK)
		begin_hunk(patch, bytes, length);
	if (kind == TEXT_DIFF_SAME || kind == TEXT_DIFF_REMOVED)
		expect(patch, bytes, length);
	if (kind == TEXT_DIFF_SAME || kind == TEXT_DIFF_ADDED)
		add(patch, bytes, length);
	patch->may_end_after = kind == TEXT_DIFF_ADDED ||
			       (kind == TEXT_DIFF_SAME && patch->may_end_before);
	patch->added += kind == TEXT_DIFF_ADDED;
	patch->removed += kind == TEXT_DIFF_REMOVED;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1, *parting;
	struct patch patch = { 0 };
	struct text_diff diff = { .take = take, .context = &patch };
	struct text_diff_count count;
	struct text after = { 0 };

	if (!size)
		return 0;
	size--;
	parting = memchr(text, 0xff, size);
	if (!parting)
		return 0;
	patch.before = (struct text){ text, (size_t)(parting - text) };
	after = (struct text){ parting + 1, size - patch.before.length - 1 };
	diff.work = data[0];
	require(text_diff(patch.before, after, &diff, &count) == 0);
	require(!patch.left[0] && !patch.left[1] && !patch.may_end_before);
	while (patch.at < patch.before.length)
		keep(&patch);
	require(!patch.made.failed && patch.made.length == after.length &&
		(!after.length || memcmp(patch.made.data, after.bytes, after.length) == 0));
	require(count.added == patch.added && count.removed == patch.removed);
	buffer_free(&patch.made);
	return 0;
}
