#include "workspace/git_config_edit.h"

#include "base/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void git_edit_begin(struct git_edit *edit, struct arena *arena, struct git_document *document)
{
	struct git_text text = document->text;
	const char *line = text.length ? memchr(text.bytes, '\n', text.length) : NULL;

	*edit = (struct git_edit){
		.arena = arena,
		.document = document,
		.line_end = line && line > text.bytes && line[-1] == '\r' ? "\r\n" : "\n",
		.sections.arena = arena,
	};
}

static void change(struct git_edit *edit, enum git_change_kind kind, size_t begin, size_t end,
		   const struct buffer *text)
{
	edit->changes = arena_push(edit->arena, edit->changes, edit->count, sizeof(*edit->changes));
	if (!edit->changes || (text && text->failed)) {
		edit->failed = true;
		return;
	}
	edit->changes[edit->count] = (struct git_change){
		.kind = kind,
		.begin = begin,
		.end = end,
		.text = text ? git_config_text(text) : "",
		.length = text ? text->length : 0,
		.order = (uint32_t)edit->count,
	};
	edit->count++;
}

/* Quoted where git quotes, or it would read something else again. */
static void write_value(struct buffer *buffer, const char *value)
{
	size_t length = strlen(value);
	bool quoted = length &&
		      (value[0] == ' ' || value[length - 1] == ' ' || strpbrk(value, "#;\r"));

	buffer_text(buffer, quoted ? " = \"" : " = ");
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			buffer_byte(buffer, '\\');
		if (*value == '\n')
			buffer_text(buffer, "\\n");
		else if (*value == '\t')
			buffer_text(buffer, "\\t");
		else if (*value == '\b')
			buffer_text(buffer, "\\b");
		else
			buffer_byte(buffer, *value);
	}
	if (quoted)
		buffer_byte(buffer, '"');
}

static void write_line(struct git_edit *edit, struct buffer *buffer, const struct git_entry *entry)
{
	buffer_byte(buffer, '\t');
	buffer_append(buffer, entry->spelled.bytes, entry->spelled.length);
	if (entry->value)
		write_value(buffer, entry->value);
	buffer_text(buffer, edit->line_end);
}

static void write_header(struct git_edit *edit, const char *section)
{
	const char *dot = strchr(section, '.');
	struct buffer *buffer = &edit->sections;

	buffer_byte(buffer, '[');
	buffer_append(buffer, section, dot ? (size_t)(dot - section) : strlen(section));
	if (dot) {
		buffer_text(buffer, " \"");
		for (dot++; *dot; dot++) {
			if (*dot == '"' || *dot == '\\')
				buffer_byte(buffer, '\\');
			buffer_byte(buffer, *dot);
		}
		buffer_byte(buffer, '"');
	}
	buffer_byte(buffer, ']');
	buffer_text(buffer, edit->line_end);
}

static void replace(struct git_edit *edit, const struct git_entry *now,
		    const struct git_entry *after)
{
	struct buffer text = { .arena = edit->arena };

	if (git_value_is_equal(now->value, after->value))
		return;
	if (after->value)
		write_value(&text, after->value);
	change(edit, GIT_CHANGE_VALUE, now->key_end, now->value_end, &text);
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Behind the header's line; false where something else stands in that, which has to make room. */
static bool find_line_below(struct git_text text, size_t at, size_t *ret_at)
{
	while (at < text.length && is_blank(text.bytes[at]))
		at++;
	if (at < text.length && (text.bytes[at] == '#' || text.bytes[at] == ';'))
		while (at < text.length && text.bytes[at] != '\n')
			at++;
	if (at < text.length && text.bytes[at] != '\n')
		return false;
	*ret_at = at < text.length ? at + 1 : at;
	return true;
}

static void insert(struct git_edit *edit, size_t at, struct buffer *text, struct git_values entries)
{
	for (size_t i = 0; i < entries.count; i++)
		write_line(edit, text, entries.items[i]);
	change(edit, GIT_CHANGE_ADDITION, at, at, text);
}

/* The block of a section that comes last: what is added there comes after all that is there. */
static struct git_block *last_block(const struct git_edit *edit, uint32_t section_id)
{
	for (size_t i = edit->document->block_count; i > 1; i--)
		if (edit->document->blocks[i - 1].section_id == section_id)
			return &edit->document->blocks[i - 1];
	return NULL;
}

static void add_section(struct git_edit *edit, struct git_values entries)
{
	const char *section = entries.items[0]->section;

	if (!edit->last_section || strcmp(edit->last_section, section) != 0)
		write_header(edit, section);
	edit->last_section = section;
	for (size_t i = 0; i < entries.count; i++)
		write_line(edit, &edit->sections, entries.items[i]);
}

/* Values of a key that the document has none of. */
static void add(struct git_edit *edit, struct git_values entries)
{
	struct git_block *block = last_block(edit, entries.items[0]->section_id);
	struct buffer text = { .arena = edit->arena };
	size_t at;

	if (!block) {
		add_section(edit, entries);
		return;
	}
	block->has_addition = true;
	at = block->end;
	if (block->count)
		at = edit->document->entries[block->first + block->count - 1].end;
	else if (!find_line_below(edit->document->text, block->end, &at))
		buffer_text(&text, edit->line_end);
	insert(edit, at, &text, entries);
}

static struct git_values from(struct git_values values, size_t first, size_t count)
{
	return (struct git_values){ values.items + first, count };
}

void git_edit_set(struct git_edit *edit, struct git_values now, struct git_values after)
{
	struct git_difference difference = git_values_differ(now, after);
	struct buffer text = { .arena = edit->arena };
	size_t both, first = difference.first;

	if (now.count == 0) {
		if (after.count)
			add(edit, after);
		return;
	}
	/* what is to be the first has nothing to be put behind: all are written anew */
	if (first == 0 && difference.left == 0)
		difference = (struct git_difference){ 0, now.count, after.count };
	both = difference.left < difference.right ? difference.left : difference.right;
	for (size_t i = 0; i < both; i++)
		replace(edit, now.items[first + i], after.items[first + i]);
	for (size_t i = both; i < difference.left; i++)
		now.items[first + i]->is_removed = true;
	if (both < difference.right)
		insert(edit, now.items[first + both - 1]->end, &text,
		       from(after, first + both, difference.right - both));
	if (both < difference.right)
		edit->document->blocks[now.items[first + both - 1]->block].has_addition = true;
}

/* Where a line begins, if there are only blanks from there to what stands at `at`. */
static bool find_line(struct git_text text, size_t at, size_t *ret_begin)
{
	while (at && is_blank(text.bytes[at - 1]))
		at--;
	*ret_begin = at;
	return at == 0 || text.bytes[at - 1] == '\n';
}

/* An entry goes with its line; one in a header's line leaves the end of that. */
static void remove_entry(struct git_edit *edit, const struct git_entry *entry)
{
	struct git_text text = edit->document->text;
	size_t begin, end = entry->end;

	if (!find_line(text, entry->begin, &begin)) {
		if (end && text.bytes[end - 1] == '\n')
			end -= end > 1 && text.bytes[end - 2] == '\r' ? 2 : 1;
		if (end < begin)
			end = begin;
	}
	change(edit, GIT_CHANGE_REMOVAL, begin, end, NULL);
}

static bool is_emptied(const struct git_edit *edit, const struct git_block *block)
{
	if (!block->section[0] || !block->count || block->has_comment || block->has_addition)
		return false;
	for (size_t i = 0; i < block->count; i++)
		if (!edit->document->entries[block->first + i].is_removed)
			return false;
	return true;
}

static void remove_section(struct git_edit *edit, size_t number)
{
	struct git_document *document = edit->document;
	const struct git_block *block = &document->blocks[number];
	size_t begin, end = document->text.length;

	if (number + 1 < document->block_count)
		end = document->blocks[number + 1].begin;
	/* with the blank lines before it, but not with the line of another header */
	if (!find_line(document->text, block->begin, &begin))
		begin = block->begin;
	else if (document->blocks[number - 1].count)
		begin = block->gap;
	change(edit, GIT_CHANGE_REMOVAL, begin, end, NULL);
}

static void remove_all(struct git_edit *edit)
{
	for (size_t i = 0; i < edit->document->block_count; i++) {
		const struct git_block *block = &edit->document->blocks[i];

		if (is_emptied(edit, block)) {
			remove_section(edit, i);
			continue;
		}
		for (size_t j = 0; j < block->count; j++)
			if (edit->document->entries[block->first + j].is_removed)
				remove_entry(edit, &edit->document->entries[block->first + j]);
	}
}

static int compare_changes(const void *left, const void *right)
{
	const struct git_change *a = left, *b = right;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* Ends the last line, and the value that goes on in a next line that is not there. */
static void close_text(const struct git_edit *edit, struct buffer *buffer)
{
	for (unsigned int i = 0; i < edit->document->closing; i++)
		buffer_text(buffer, edit->line_end);
}

static void write_all(const struct git_edit *edit, struct buffer *buffer)
{
	struct git_text text = edit->document->text;
	bool is_open = edit->document->closing > 0;
	size_t at = 0;

	for (size_t i = 0; i < edit->count; i++) {
		const struct git_change *next = &edit->changes[i];

		if (next->begin > at)
			buffer_append(buffer, text.bytes + at, next->begin - at);
		if (is_open && next->kind == GIT_CHANGE_ADDITION && next->begin == text.length) {
			close_text(edit, buffer);
			is_open = false;
		}
		buffer_append(buffer, next->text, next->length);
		at = next->end > at ? next->end : at;
		is_open = is_open && (next->end < text.length || next->length);
	}
	if (at < text.length)
		buffer_append(buffer, text.bytes + at, text.length - at);
	if (is_open && edit->sections.length)
		close_text(edit, buffer);
	buffer_append(buffer, git_config_text(&edit->sections), edit->sections.length);
}

int git_edit_end(struct git_edit *edit, struct git_text *ret)
{
	struct buffer buffer = { .arena = edit->arena };

	remove_all(edit);
	if (edit->count)
		qsort(edit->changes, edit->count, sizeof(*edit->changes), compare_changes);
	if (!edit->failed)
		write_all(edit, &buffer);
	if (edit->failed || edit->sections.failed || buffer.failed)
		return -ENOMEM;
	*ret = (struct git_text){ git_config_text(&buffer), buffer.length };
	return 0;
}
