#include "workspace/git_sequence.h"

#include "workspace/git_ref.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

typedef const char *check_line(const char *line, size_t length);

enum check {
	CHECK_TEXT,
	CHECK_STEPS,
	CHECK_IDS,
	CHECK_ID_PAIRS,
	CHECK_REFS,
	CHECK_HEAD_NAME,
	CHECK_WORD,
	CHECK_EMPTY,
	CHECK_AUTHOR,
	CHECK_STRATEGY,
	CHECK_STRATEGY_OPTIONS,
	CHECK_OPTIONS,
	CHECK_BISECT,
	CHECK_PATHS,
};

static const struct row {
	const char *name;
	enum check check;
} rows[] = {
#define SEQUENCE(name, check) { name, CHECK_##check },
#include "workspace/git_sequence.def"
#undef SEQUENCE
};

static bool is_text(const char *line, size_t length, const char *text)
{
	return length == strlen(text) && memcmp(line, text, length) == 0;
}

static bool is_one_of(const char *line, size_t length, const char *const *texts)
{
	for (; *texts; texts++)
		if (is_text(line, length, *texts))
			return true;
	return false;
}

/* All of them are letters, digits or in `others`. */
static bool has_only(const char *line, size_t length, const char *others)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)line[i]) &&
		    (!line[i] || !strchr(others, (unsigned char)line[i])))
			return false;
	return true;
}

/* As sequencer.c parses a line: white space, a word or its letter, white space. */
static const char *check_steps(const char *line, size_t length)
{
	static const char *const commands[] = {
		"pick",	      "p",     "reword", "r",	  "edit", "e",	   "squash",
		"s",	      "fixup", "f",	 "label", "l",	  "reset", "t",
		"merge",      "m",     "drop",	 "d",	  "noop", "break", "b",
		"update-ref", "u",     "revert", NULL,
	};
	size_t begin = 0, end;

	while (begin < length && (line[begin] == ' ' || line[begin] == '\t'))
		begin++;
	if (begin == length || line[begin] == '#' || line[begin] == '\r')
		return NULL;
	for (end = begin; end < length && !strchr(" \t\r", line[end]); end++)
		;
	if (is_one_of(line + begin, end - begin, commands))
		return NULL;
	return "a line of it is a command that runs something, or is not known";
}

static const char *check_ids(const char *line, size_t length)
{
	return git_ref_id_length(line, length) == length || !length ? NULL : "it is no object's id";
}

static const char *check_pair(const char *line, size_t length)
{
	size_t digits = git_ref_id_length(line, length);

	if (digits && digits + 1 < length && line[digits] == ' ' &&
	    git_ref_id_length(line + digits + 1, length - digits - 1) == length - digits - 1)
		return NULL;
	return "a line of it is no pair of objects' ids";
}

static const char *check_refs(const char *line, size_t length)
{
	return git_ref_is_name(line, length) ? NULL : check_ids(line, length);
}

static const char *check_head_name(const char *line, size_t length)
{
	if (is_text(line, length, "detached HEAD") || git_ref_is_name(line, length))
		return NULL;
	return "it names no branch";
}

static const char *check_word(const char *line, size_t length)
{
	return has_only(line, length, " -_./<>@+") ? NULL : "its content is not expected there";
}

static const char *check_empty(const char *line, size_t length)
{
	(void)line;
	return length ? "it has options for another program" : NULL;
}

/* git-<strategy> is executed. */
static const char *check_strategy(const char *line, size_t length)
{
	static const char *const names[] = { "ort",  "recursive", "resolve", "octopus",
					     "ours", "subtree",	  NULL };

	return is_one_of(line, length, names) ? NULL : "it names a program as merge strategy";
}

static const char *check_strategy_options(const char *line, size_t length)
{
	return has_only(line, length, " '-=_%") ? NULL : "its options are not expected there";
}

/* NAME='...', where a quote inside is '\'' or '\!'. */
static const char *check_author(const char *line, size_t length)
{
	static const char *const names[] = { "GIT_AUTHOR_NAME=", "GIT_AUTHOR_EMAIL=",
					     "GIT_AUTHOR_DATE=", NULL };
	static const char fault[] = "it is no author of a commit";
	size_t at = 0;

	for (size_t i = 0; names[i]; i++)
		if (length > strlen(names[i]) && memcmp(line, names[i], strlen(names[i])) == 0)
			at = strlen(names[i]);
	if (!at || line[at] != '\'')
		return fault;
	for (at++; at < length && line[at]; at++) {
		bool is_escape = at + 3 < length && line[at + 1] == '\\' &&
				 (line[at + 2] == '\'' || line[at + 2] == '!') &&
				 line[at + 3] == '\'';

		if (line[at] == '\'' && !is_escape)
			break;
		at += line[at] == '\'' ? 3 : 0;
	}
	return at + 1 == length && line[at] == '\'' ? NULL : fault;
}

/* Configuration of the section options; strategy and gpg-sign run programs. */
static const char *check_options(const char *line, size_t length)
{
	static const char *const keys[] = {
		"no-commit",
		"edit",
		"allow-empty",
		"allow-empty-message",
		"signoff",
		"drop-redundant-commits",
		"keep-redundant-commits",
		"record-origin",
		"allow-ff",
		"mainline",
		"allow-rerere-auto",
		"default-msg-cleanup",
		NULL,
	};
	const char *equals = memchr(line, '=', length);
	size_t key;

	if (!length || is_text(line, length, "[options]"))
		return NULL;
	if (equals && line[0] == '\t' && equals > line + 2 && equals[-1] == ' ') {
		key = (size_t)(equals - line) - 2;
		if (is_one_of(line + 1, key, keys) && has_only(equals + 1, length - key - 3, " -"))
			return NULL;
	}
	return "it has an option that is not known, or runs something";
}

/* Comments, and commands that git itself would have written: `git bisect replay` takes them up. */
static const char *check_bisect(const char *line, size_t length)
{
	static const char command[] = "git bisect ";
	size_t begin = sizeof(command) - 1;

	if (!length || line[0] == '#')
		return NULL;
	if (length > begin && memcmp(line, command, begin) == 0 &&
	    has_only(line + begin, length - begin, " '-_./^~@"))
		return NULL;
	return "a line of it is no step of a bisection";
}

static const char *check_paths(const char *line, size_t length)
{
	return has_only(line, length, " '-_./") ? NULL : "it has more than paths";
}

static check_line *const checks[] = {
	[CHECK_STEPS] = check_steps,	     [CHECK_IDS] = check_ids,
	[CHECK_ID_PAIRS] = check_pair,	     [CHECK_REFS] = check_refs,
	[CHECK_HEAD_NAME] = check_head_name, [CHECK_WORD] = check_word,
	[CHECK_EMPTY] = check_empty,	     [CHECK_AUTHOR] = check_author,
	[CHECK_STRATEGY] = check_strategy,   [CHECK_STRATEGY_OPTIONS] = check_strategy_options,
	[CHECK_OPTIONS] = check_options,     [CHECK_BISECT] = check_bisect,
	[CHECK_PATHS] = check_paths,
};

static const char *check_lines(check_line *check, const char *bytes, size_t length)
{
	const char *fault = NULL;

	if (memchr(bytes, '\0', length))
		return "it has NUL bytes";
	for (size_t at = 0; !fault && check && at < length;) {
		const char *end = memchr(bytes + at, '\n', length - at);
		size_t size = end ? (size_t)(end - bytes) - at : length - at;

		fault = check(bytes + at, size);
		at += size + 1;
	}
	return fault;
}

/* rebase-apply/0001 and so on: the mails that are left. */
static bool is_mail(const char *path)
{
	static const char folder[] = "rebase-apply/";
	const char *name = path + sizeof(folder) - 1;

	return strncmp(path, folder, sizeof(folder) - 1) == 0 && strlen(name) >= 4 &&
	       strspn(name, "0123456789") == strlen(name);
}

const char *git_sequence_fault(const char *path, const char *bytes, size_t length)
{
	if (is_mail(path))
		return NULL;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, path) != 0)
			continue;
		/* a patch may have any byte */
		return rows[i].check == CHECK_TEXT ?
			       NULL :
			       check_lines(checks[rows[i].check], bytes, length);
	}
	return "git has no such file there";
}
