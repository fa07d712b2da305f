#include "workspace/git_config_read.h"

#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* git's own character classes: ASCII whatever the locale, and no vertical tab or form feed. */
static bool is_space(int byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static bool is_letter(int byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_name(int byte)
{
	return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '-';
}

static char lower(int byte)
{
	return (char)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
}

static void clear(struct buffer *buffer)
{
	buffer->length = 0;
	if (buffer->data)
		buffer->data[0] = '\0';
}

/* The next byte: CR LF is one end of line, and so is the end of the text, any number of times. */
static int next(struct git_config_reader *reader)
{
	unsigned char byte;

	if (reader->at == reader->text.length) {
		reader->closing++;
		return '\n';
	}
	byte = (unsigned char)reader->text.bytes[reader->at++];
	if (byte == '\r' && reader->at < reader->text.length &&
	    reader->text.bytes[reader->at] == '\n') {
		reader->at++;
		return '\n';
	}
	return byte;
}

/* `"name"]`, after the blanks that follow the section's name. */
static bool read_subsection(struct git_config_reader *reader)
{
	int byte;

	while ((byte = next(reader)) != '"') {
		if (byte == '\\')
			byte = next(reader);
		if (byte == '\n')
			return false;
		buffer_byte(&reader->section, (char)byte);
	}
	return next(reader) == ']';
}

/* `[name]`, `[name "sub"]` or the old `[name.sub]`; git knows them by one name with dots. */
static bool read_section(struct git_config_reader *reader)
{
	int byte;

	clear(&reader->section);
	while ((byte = next(reader)) != ']') {
		if (is_space(byte)) {
			while (is_space(byte) && byte != '\n')
				byte = next(reader);
			buffer_byte(&reader->section, '.');
			return byte == '"' && read_subsection(reader);
		}
		if (!is_name(byte) && byte != '.')
			return false;
		buffer_byte(&reader->section, lower(byte));
	}
	return reader->section.length > 0;
}

/* What a backslash and this byte stand for; '\0' where git would stop. */
static char escaped(int byte)
{
	switch (byte) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case '"':
	case '\\':
		return (char)byte;
	default:
		return '\0';
	}
}

static bool read_escape(struct git_config_reader *reader)
{
	int byte = next(reader);
	char meant = escaped(byte);

	if (byte == '\n') /* the value goes on in the next line */
		return true;
	if (meant)
		buffer_byte(&reader->value, meant);
	return meant;
}

/*
 * Blanks at the ends do not count, each of those in the middle is a space (newer versions keep a
 * tab), but in quotes, where both count as they are.
 */
static bool read_value(struct git_config_reader *reader)
{
	bool quoted = false, comment = false;
	size_t blanks = 0;
	int byte;

	while ((byte = next(reader)) != '\n') {
		if (comment)
			continue;
		if (!quoted && is_space(byte)) {
			blanks += reader->value.length > 0;
			continue;
		}
		if (!quoted && (byte == '#' || byte == ';')) {
			comment = true;
			continue;
		}
		for (; blanks; blanks--)
			buffer_byte(&reader->value, ' ');
		if (byte == '"')
			quoted = !quoted;
		else if (byte != '\\')
			buffer_byte(&reader->value, (char)byte);
		else if (!read_escape(reader))
			return false;
		reader->value_end = reader->at;
	}
	return !quoted;
}

static bool read_entry(struct git_config_reader *reader, int byte)
{
	clear(&reader->key);
	clear(&reader->value);
	for (; is_name(byte); byte = next(reader)) {
		buffer_byte(&reader->key, lower(byte));
		reader->key_end = reader->value_end = reader->at;
	}
	while (byte == ' ' || byte == '\t')
		byte = next(reader);
	reader->has_value = byte == '=';
	if (!reader->has_value)
		return byte == '\n';
	reader->value_end = reader->at;
	return read_value(reader);
}

static void skip_line(struct git_config_reader *reader)
{
	while (next(reader) != '\n')
		continue;
}

static enum git_item read_item(struct git_config_reader *reader)
{
	int byte;

	do {
		reader->begin = reader->at;
		if (reader->at == reader->text.length)
			return GIT_ITEM_END;
		byte = next(reader);
		if (byte == '\n' || !is_space(byte))
			reader->closing = 0;
	} while (is_space(byte));
	if (byte == '#' || byte == ';') {
		skip_line(reader);
		return GIT_ITEM_COMMENT;
	}
	if (byte == '[') {
		reader->closing = 1; /* the rest of its line is not looked at yet */
		return read_section(reader) ? GIT_ITEM_SECTION : GIT_ITEM_BAD;
	}
	return is_letter(byte) && read_entry(reader, byte) ? GIT_ITEM_ENTRY : GIT_ITEM_BAD;
}

void git_config_begin(struct git_config_reader *reader, struct git_text text, struct arena *arena)
{
	*reader = (struct git_config_reader){
		.text = text,
		.section.arena = arena,
		.key.arena = arena,
		.value.arena = arena,
	};
	reader->is_bad = text.length && memchr(text.bytes, '\0', text.length);
	if (text.length >= 3 && memcmp(text.bytes, BYTE_ORDER_MARK, 3) == 0)
		reader->at = 3;
}

enum git_item git_config_next(struct git_config_reader *reader)
{
	enum git_item item = reader->is_bad ? GIT_ITEM_BAD : read_item(reader);

	reader->end = reader->at;
	if (reader->section.failed || reader->key.failed || reader->value.failed)
		item = GIT_ITEM_BAD;
	reader->is_bad = item == GIT_ITEM_BAD;
	return item;
}

const char *git_config_text(const struct buffer *buffer)
{
	return buffer->data ? buffer->data : "";
}

void git_config_end(struct git_config_reader *reader)
{
	buffer_free(&reader->section);
	buffer_free(&reader->key);
	buffer_free(&reader->value);
}
