/*
 * A reader of git's configuration syntax as git-config(1), "Syntax", and git's config.c have it,
 * with one position in the text that only moves forward; what git refuses gives nothing.
 */
#include "workspace/identity.h"

#include "base/arena.h"
#include "base/buffer.h"

#include <ctype.h>
#include <string.h>

/* Names are short; a longer one is on no list, and git has none. */
#define NAME_LIMIT_BYTES 64u
/* Values that are allowed are names, addresses and words. */
#define VALUE_LIMIT_BYTES 1024u

/* "*": every key of the section. Nothing here names a program, a path, a URL or a key. */
static const struct {
	const char *section, *key;
} allowed[] = {
	{ "user", "name" },
	{ "user", "email" },
	{ "init", "defaultbranch" },
	{ "core", "autocrlf" },
	{ "core", "eol" },
	{ "core", "quotepath" },
	{ "core", "abbrev" },
	{ "pull", "rebase" },
	{ "pull", "ff" },
	{ "push", "default" },
	{ "push", "autosetupremote" },
	{ "fetch", "prune" },
	{ "rebase", "autostash" },
	{ "rebase", "autosquash" },
	{ "rebase", "updaterefs" },
	{ "merge", "conflictstyle" },
	{ "merge", "ff" },
	{ "diff", "algorithm" },
	{ "diff", "renames" },
	{ "diff", "colormoved" },
	{ "color", "*" },
	{ "branch", "sort" },
	{ "tag", "sort" },
	{ "column", "ui" },
	{ "commit", "verbose" },
	{ "rerere", "enabled" },
	{ "advice", "*" },
	{ "log", "date" },
	{ "help", "autocorrect" },
};

/* Sections of color that git has: color.<these>.<slot>. */
static const char *const color_parts[] = { "advice", "blame",  "branch",      "decorate",
					   "diff",   "grep",   "interactive", "push",
					   "remote", "status", "transport" };

struct reader {
	const char *at;
	char section[NAME_LIMIT_BYTES + 1];
	char subsection[NAME_LIMIT_BYTES + 1];
	bool has_subsection;
	bool known; /* section and subsection fit: they may be on the list */
	char key[NAME_LIMIT_BYTES + 1];
	char value[VALUE_LIMIT_BYTES + 1];
	bool has_value;
	bool usable; /* key and value fit, and no control byte is in the value */
};

bool identity_allows(const char *section, const char *subsection, const char *key)
{
	if (subsection) {
		if (strcmp(section, "color") != 0)
			return false;
		for (size_t i = 0; i < sizeof(color_parts) / sizeof(color_parts[0]); i++)
			if (strcmp(subsection, color_parts[i]) == 0)
				return true;
		return false;
	}
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (strcmp(section, allowed[i].section) == 0 &&
		    (allowed[i].key[0] == '*' || strcmp(key, allowed[i].key) == 0))
			return true;
	return false;
}

/* Appends to a text of fixed size; false when it is full. */
static bool put(char *text, size_t limit, size_t *length, char byte)
{
	if (*length >= limit)
		return false;
	text[(*length)++] = byte;
	text[*length] = '\0';
	return true;
}

/* git takes CR LF for an end of line, and a lone CR for a byte like others. */
static bool is_newline(const char *at)
{
	return at[0] == '\n' || (at[0] == '\r' && at[1] == '\n');
}

static bool is_blank(const char *at)
{
	return (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\v' || *at == '\f') &&
	       !is_newline(at);
}

static void skip_line(struct reader *reader)
{
	reader->at += strcspn(reader->at, "\n");
}

static bool read_subsection(struct reader *reader)
{
	size_t length = 0;

	for (reader->at++; *reader->at != '"'; reader->at++) {
		if (*reader->at == '\\')
			reader->at++;
		if (*reader->at == '\0' || *reader->at == '\n')
			return false;
		if (!put(reader->subsection, NAME_LIMIT_BYTES, &length, *reader->at))
			reader->known = false;
	}
	reader->at++;
	return true;
}

/* "[name]", "[name "sub"]" or the old "[name.sub]"; false where git would stop. */
static bool read_section(struct reader *reader)
{
	size_t length = 0;
	char *dot;

	reader->known = true;
	reader->has_subsection = false;
	reader->section[0] = reader->subsection[0] = '\0';
	for (reader->at++;
	     isalnum((unsigned char)*reader->at) || *reader->at == '-' || *reader->at == '.';
	     reader->at++)
		if (!put(reader->section, NAME_LIMIT_BYTES, &length,
			 (char)tolower((unsigned char)*reader->at)))
			reader->known = false;
	if (is_blank(reader->at)) {
		while (is_blank(reader->at))
			reader->at++;
		if (*reader->at != '"' || !read_subsection(reader))
			return false;
		reader->has_subsection = true;
	}
	if (*reader->at != ']')
		return false;
	reader->at++;
	dot = strchr(reader->section, '.');
	if (dot && !reader->has_subsection) {
		*dot = '\0';
		memcpy(reader->subsection, dot + 1, strlen(dot + 1) + 1);
		reader->has_subsection = true;
	}
	return true;
}

/* One escape in a value; '\0' where git would stop. */
static char escaped(char byte)
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
		return byte;
	default:
		return '\0';
	}
}

static void put_value(struct reader *reader, size_t *length, char byte)
{
	if (!put(reader->value, VALUE_LIMIT_BYTES, length, byte))
		reader->usable = false;
}

static bool read_value(struct reader *reader)
{
	size_t length = 0, kept = 0;
	bool quoted = false;

	reader->value[0] = '\0';
	while (is_blank(reader->at))
		reader->at++;
	for (;; reader->at++) {
		char byte = *reader->at;

		if (byte == '\0' || is_newline(reader->at)) {
			if (quoted)
				return false;
			break;
		}
		if (!quoted && (byte == '#' || byte == ';')) {
			skip_line(reader);
			break;
		}
		if (byte == '"') {
			quoted = !quoted;
			kept = length;
			continue;
		}
		if (byte == '\\') {
			reader->at++;
			if (is_newline(reader->at)) {
				reader->at += *reader->at == '\r';
				continue;
			}
			byte = escaped(*reader->at);
			if (!byte)
				return false;
			put_value(reader, &length, byte);
			kept = length;
			continue;
		}
		put_value(reader, &length, byte);
		/* blanks at the end count only inside of quotes */
		if (quoted || !is_blank(reader->at))
			kept = length;
	}
	reader->value[kept] = '\0';
	return true;
}

static bool read_key(struct reader *reader)
{
	size_t length = 0;

	reader->usable = true;
	reader->key[0] = '\0';
	if (!isalpha((unsigned char)*reader->at))
		return false;
	for (; isalnum((unsigned char)*reader->at) || *reader->at == '-'; reader->at++)
		if (!put(reader->key, NAME_LIMIT_BYTES, &length,
			 (char)tolower((unsigned char)*reader->at)))
			reader->usable = false;
	while (is_blank(reader->at))
		reader->at++;
	reader->value[0] = '\0';
	reader->has_value = *reader->at == '=';
	if (reader->has_value) {
		reader->at++;
		return read_value(reader);
	}
	if (*reader->at == '#' || *reader->at == ';')
		skip_line(reader);
	return *reader->at == '\0' || is_newline(reader->at);
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

static void write_entry(const struct reader *reader, char last[static 2 * NAME_LIMIT_BYTES + 8],
			struct buffer *buffer)
{
	struct buffer CLEANUP_BUFFER head = { 0 };

	if (reader->has_subsection)
		buffer_format(&head, "[%s \"%s\"]\n", reader->section, reader->subsection);
	else
		buffer_format(&head, "[%s]\n", reader->section);
	if (head.failed || head.length >= 2 * NAME_LIMIT_BYTES + 8) {
		buffer->failed = true;
		return;
	}
	if (strcmp(last, head.data) != 0) {
		memcpy(last, head.data, head.length + 1);
		buffer_text(buffer, head.data);
	}
	buffer_format(buffer, "\t%s", reader->key);
	if (reader->has_value) {
		buffer_text(buffer, " = \"");
		for (const char *at = reader->value; *at; at++) {
			if (*at == '"' || *at == '\\')
				buffer_text(buffer, "\\");
			buffer_append(buffer, at, 1);
		}
		buffer_text(buffer, "\"");
	}
	buffer_text(buffer, "\n");
}

/* False where git would stop: then nothing of the file counts. */
static bool filter(struct reader *reader, struct buffer *buffer)
{
	char last[2 * NAME_LIMIT_BYTES + 8] = "";

	/* a byte order mark; git skips it */
	if (strncmp(reader->at, "\xef\xbb\xbf", 3) == 0)
		reader->at += 3;
	while (*reader->at) {
		if (is_newline(reader->at) || is_blank(reader->at)) {
			reader->at++;
		} else if (*reader->at == '#' || *reader->at == ';') {
			skip_line(reader);
		} else if (*reader->at == '[') {
			if (!read_section(reader))
				return false;
		} else {
			if (!reader->section[0] || !read_key(reader))
				return false;
			if (reader->known && reader->usable && !has_control(reader->value) &&
			    identity_allows(reader->section,
					    reader->has_subsection ? reader->subsection : NULL,
					    reader->key))
				write_entry(reader, last, buffer);
		}
	}
	return true;
}

char *identity_filter(struct arena *arena, const char *text)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct reader reader = { .at = text };

	if (!filter(&reader, &buffer))
		return arena_copy(arena, "");
	if (buffer.failed)
		return NULL;
	return arena_copy(arena, buffer.length ? buffer.data : "");
}
