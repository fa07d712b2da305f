/*
 * What of a git configuration a box may have, by a list of keys; what git refuses gives nothing.
 */
#include "workspace/identity.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "workspace/git_config_read.h"

#include <string.h>

/* Names are short; a longer one is on no list, and git has none. */
#define NAME_LIMIT_BYTES 64u
/* Values that are allowed are names, addresses and words. */
#define VALUE_LIMIT_BYTES 1024u
/* A section, a dot, a subsection. */
#define SECTION_BYTES (2 * NAME_LIMIT_BYTES + 2)

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

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

/* The section's name as the two parts that the list is about; false when it is too long for it. */
static bool split_section(const char *name, char section[static SECTION_BYTES],
			  const char **ret_subsection)
{
	char *dot;

	if (strlen(name) >= SECTION_BYTES)
		return false;
	(void)memcpy(section, name, strlen(name) + 1);
	dot = strchr(section, '.');
	*ret_subsection = dot ? dot + 1 : NULL;
	if (dot)
		*dot = '\0';
	return true;
}

static void write_head(const char *section, const char *subsection, struct buffer *buffer)
{
	if (subsection)
		buffer_format(buffer, "[%s \"%s\"]\n", section, subsection);
	else
		buffer_format(buffer, "[%s]\n", section);
}

static void write_entry(const struct git_config_reader *reader, struct buffer *buffer)
{
	buffer_format(buffer, "\t%s", git_config_text(&reader->key));
	if (reader->has_value) {
		buffer_text(buffer, " = \"");
		for (const char *at = git_config_text(&reader->value); *at; at++) {
			if (*at == '"' || *at == '\\')
				buffer_text(buffer, "\\");
			buffer_append(buffer, at, 1);
		}
		buffer_text(buffer, "\"");
	}
	buffer_text(buffer, "\n");
}

/* An entry goes into the result under the head of its section, which stands there once in a row. */
static void filter_entry(const struct git_config_reader *reader, char last[static SECTION_BYTES],
			 struct buffer *buffer)
{
	const char *name = git_config_text(&reader->section), *subsection;
	char section[SECTION_BYTES];

	if (reader->key.length > NAME_LIMIT_BYTES || reader->value.length > VALUE_LIMIT_BYTES ||
	    has_control(git_config_text(&reader->value)) ||
	    !split_section(name, section, &subsection) ||
	    !identity_allows(section, subsection, git_config_text(&reader->key)))
		return;
	if (strcmp(last, name) != 0) {
		(void)memcpy(last, name, strlen(name) + 1);
		write_head(section, subsection, buffer);
	}
	write_entry(reader, buffer);
}

char *identity_filter(struct arena *arena, const char *text)
{
	struct git_config_reader CLEANUP_GIT_CONFIG reader;
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	char last[SECTION_BYTES] = "";
	enum git_item item;

	git_config_begin(&reader, (struct git_text){ text, strlen(text) }, NULL);
	while ((item = git_config_next(&reader)) != GIT_ITEM_END) {
		if (item == GIT_ITEM_BAD)
			return arena_copy(arena, "");
		if (item == GIT_ITEM_ENTRY)
			filter_entry(&reader, last, &buffer);
	}
	if (buffer.failed)
		return NULL;
	return arena_copy(arena, buffer.length ? buffer.data : "");
}
