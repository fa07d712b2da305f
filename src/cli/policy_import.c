/*
 * `bawn policy import`: settings of another agent or sandbox as a policy, on standard output, with
 * what could not be taken over as comments. The text is read by bawn-parse; what comes of it is
 * held against the loader of policies, and what that would not have becomes a comment, too.
 */
#include "cli/policy_verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "policy/document.h"
#include "policy/import.h"
#include "workspace/host.h"
#include "workspace/policy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Each look finds at least one row that the loader would not have. */
#define LOOKS_LIMIT (IMPORT_LIMIT_ROWS + 1)

/* Codex has one file of rules that it writes itself; a person adds a few. */
#define RULES_LIMIT_FILES 64u

enum { OPTION_FROM };

static const struct option options[] = {
	{ "--from", "NAME", "whose settings they are: claude, codex, gemini or srt", false, false,
	  OPTION_FROM },
};

struct importing {
	struct arena *arena;
	const char *from_name, *path;
	enum import_from from;
	struct caller host;
	struct import import;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct importing *importing = context;

	(void)option;
	(void)error;
	importing->from_name = value;
	return 0;
}

/* Reads all of the file, of which the name is for people. */
static int read_text(struct importing *importing, int fd, const char *name, char **ret_text,
		     size_t *ret_length, struct error *error)
{
	char *text = arena_allocate(importing->arena, OUTLINE_LIMIT_BYTES + 2);
	ssize_t length;

	length = text ? fd_read_all(fd, text, OUTLINE_LIMIT_BYTES + 1) : -ENOMEM;
	if (length < 0)
		return error_errno(error, (int)length, "the settings %s", name);
	if (length > (ssize_t)OUTLINE_LIMIT_BYTES)
		return error_set(error, EFBIG, "the settings %s are larger than %u bytes", name,
				 OUTLINE_LIMIT_BYTES);
	*ret_text = text;
	*ret_length = (size_t)length;
	return 0;
}

/* Not a policy: it may be anybody's and lie anywhere. */
static int read_settings(struct importing *importing, char **ret_text, size_t *ret_length,
			 struct error *error)
{
	int CLEANUP_FD fd = strcmp(importing->path, "-") == 0 ?
				    fcntl(0, F_DUPFD_CLOEXEC, 3) :
				    open(importing->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return error_errno(error, errno, "the settings %s", importing->path);
	return read_text(importing, fd, importing->path, ret_text, ret_length, error);
}

/* The length of a comment that begins here; 0: none does. */
static size_t comment_length(const char *text, size_t length)
{
	const char *end;

	if (length < 2 || text[0] != '/' || (text[1] != '/' && text[1] != '*'))
		return 0;
	if (text[1] == '/')
		end = memchr(text, '\n', length);
	else
		end = memmem(text + 2, length - 2, "*/", 2);
	return !end ? length : (size_t)(end - text) + (text[1] == '*' ? 2 : 0);
}

/* Settings in JSON may have comments, which YAML has not: blanks, so that places stay. */
static void blank_comments(char *text, size_t length)
{
	bool is_string = false;

	for (size_t at = 0; at < length; at++) {
		size_t comment = is_string ? 0 : comment_length(text + at, length - at);

		for (size_t i = 0; i < comment; i++)
			if (text[at + i] != '\n')
				text[at + i] = ' ';
		if (is_string && text[at] == '\\')
			at++;
		else if (text[at] == '"')
			is_string = !is_string;
	}
}

/* Only another row makes one unreachable, and that one may be what is left out. */
static bool is_of_another(const struct document_fault *fault)
{
	return strncmp(fault->text, "unreachable", 11) == 0;
}

/* The row that "line N" is about instead: lines of a text on its way are nobody's. */
static const char *without_line(const struct importing *importing, const char *text,
				const uint32_t *lines)
{
	const struct import *import = &importing->import;
	const char *at = strstr(text, ": line ");
	char *rest = NULL;
	unsigned long line = at ? strtoul(at + 7, &rest, 10) : 0;

	for (size_t i = 0; line && i < import->row_count; i++)
		if (lines[i] == line)
			return arena_format(importing->arena, "%.*s: %s%s", (int)(at - text), text,
					    import->rows[i].value, rest);
	return text;
}

/* What the loader says of a line is said of the row that stands there. */
static bool refuse_rows(struct importing *importing, const struct document_faults *faults,
			const uint32_t *lines, bool of_another)
{
	struct import *import = &importing->import;
	bool any = false;

	for (size_t i = 0; i < faults->count && i < DOCUMENT_LIMIT_FAULTS; i++) {
		const struct document_fault *fault = &faults->rows[i];
		const char *text = without_line(importing, fault->text, lines);

		for (size_t j = 0; text && j < import->row_count; j++) {
			if (!lines[j] || lines[j] != fault->line || import->rows[j].refusal ||
			    is_of_another(fault) != of_another)
				continue;
			import->rows[j].refusal = arena_format(importing->arena, "%s: %s",
							       import->rows[j].value, text);
			any |= import->rows[j].refusal != NULL;
		}
	}
	return any;
}

/* Prints until what is printed is a policy. */
static int settle(struct importing *importing, struct buffer *text, struct error *error)
{
	const struct document_facts facts = { .file = "the policy", .home = importing->host.home };
	uint32_t *lines =
		arena_array(importing->arena, importing->import.row_count + 1, sizeof(*lines));

	for (unsigned look = 0; lines && look < LOOKS_LIMIT; look++) {
		struct arena CLEANUP_ARENA scratch = { 0 };
		struct document_faults faults = { .count = 0 };
		struct outline outline;
		struct document document;
		int result;

		text->length = 0;
		memset(lines, 0, importing->import.row_count * sizeof(*lines));
		import_print(&importing->import, importing->path, text, lines);
		if (text->failed)
			break;
		result = policy_outline(PARSE_OUTLINE, text->data, text->length, &scratch, &outline,
					error);
		if (result < 0)
			return result;
		result = document_read(&outline, &facts, &scratch, &document, &faults);
		if (result == 0)
			return 0;
		if (result != -EINVAL || (!refuse_rows(importing, &faults, lines, false) &&
					  !refuse_rows(importing, &faults, lines, true)))
			return error_set(error, EBADMSG, "what came of it is no policy: %s",
					 faults.count ? faults.rows[0].text : "out of memory");
	}
	return error_errno(error, ENOMEM, "making the policy");
}

static bool ends_as_rules(const char *name)
{
	size_t length = strlen(name);

	return length > 6 && strcmp(name + length - 6, ".rules") == 0;
}

/* What a file of rules says; one that cannot be read is told, and the rest is taken. */
static int take_rules(struct importing *importing, int fd, const char *name, struct error *error)
{
	struct outline outline = { 0 };
	struct error fault = ERROR_NONE;
	const char *note = NULL;
	char *text = NULL;
	size_t length = 0;
	int result = read_text(importing, fd, name, &text, &length, &fault);

	if (result < 0)
		note = arena_copy(importing->arena, fault.message);
	else
		result = policy_outline(PARSE_RULES, text, length, importing->arena, &outline,
					error);
	if (result < 0 && !note)
		return result;
	if (!note && !outline.count)
		note = arena_format(importing->arena, "%s:%u:%u: %s", name, outline.fault.line,
				    outline.fault.column, outline.fault.text);
	result = note ? import_leave(&importing->import, importing->arena, 0, note) :
			import_rules(&outline, name, importing->arena, &importing->import);
	return result < 0 && result != -E2BIG ? error_errno(error, result, "the rules %s", name) :
						0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of the files of rules, as Codex takes them: sorted. */
static size_t list_rules(struct importing *importing, int folder_fd, const char **names)
{
	struct directory CLEANUP_DIRECTORY folder;
	const char *name;
	size_t count = 0;

	(void)directory_open(&folder, folder_fd, ".", 0);
	while ((name = directory_next(&folder)) && count <= RULES_LIMIT_FILES)
		if (ends_as_rules(name)) {
			names[count] = arena_copy(importing->arena, name);
			count += names[count] != NULL;
		}
	qsort(names, count, sizeof(names[0]), by_name);
	return count;
}

/* Codex keeps rules of commands beside its settings, in a language of their own. */
static int look_for_rules(struct importing *importing, struct error *error)
{
	const char *slash = strrchr(importing->path, '/');
	const char *place = arena_format(importing->arena, "%.*srules",
					 slash ? (int)(slash + 1 - importing->path) : 0,
					 importing->path);
	const char *names[RULES_LIMIT_FILES + 1];
	int CLEANUP_FD folder_fd = -1;
	size_t count;
	int result = 0;

	if (importing->from != IMPORT_CODEX || strcmp(importing->path, "-") == 0 || !place)
		return 0;
	folder_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder_fd < 0)
		return 0;
	count = list_rules(importing, folder_fd, names);
	for (size_t i = 0; i < count && i < RULES_LIMIT_FILES && result == 0; i++) {
		const char *name = arena_format(importing->arena, "rules/%s", names[i]);
		/* a pipe would be waited for */
		int CLEANUP_FD fd =
			openat(folder_fd, names[i], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		struct stat status;

		if (!name)
			result = error_errno(error, ENOMEM, "the rules");
		else if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
			(void)import_leave(&importing->import, importing->arena, 0,
					   arena_format(importing->arena,
							"%s: no file that can be read", name));
		else
			result = take_rules(importing, fd, name, error);
	}
	if (count > RULES_LIMIT_FILES)
		(void)import_leave(&importing->import, importing->arena, 0,
				   "rules: more files than are read");
	return result;
}

/* A file of rules by itself: what is no text is refused, as settings are. */
static int import_rules_alone(struct importing *importing, const char *settings, size_t length,
			      struct buffer *text, struct error *error)
{
	struct outline outline = { 0 };
	int result =
		policy_outline(PARSE_RULES, settings, length, importing->arena, &outline, error);

	if (result < 0)
		return result;
	if (!outline.count)
		return error_set(error, EINVAL, "%s:%u:%u: %s", importing->path, outline.fault.line,
				 outline.fault.column, outline.fault.text);
	result = import_rules(&outline, NULL, importing->arena, &importing->import);
	if (result < 0)
		return error_set(error, -result, "%s: these are no rules of %s", importing->path,
				 importing->from_name);
	return settle(importing, text, error);
}

static int import_settings(struct importing *importing, struct buffer *text, struct error *error)
{
	struct outline outline = { 0 };
	char *settings = NULL;
	size_t length = 0;
	int result = host_gather(importing->arena, &importing->host, error);

	if (result == 0 && !importing->path && !importing->host.home)
		return error_set(error, ENOENT, "the caller has no home; name the settings");
	if (result == 0 && !importing->path)
		importing->path = arena_format(importing->arena, "%s/%s", importing->host.home,
					       import_place(importing->from));
	if (result == 0 && !importing->path)
		result = error_errno(error, ENOMEM, "the settings");
	if (result == 0)
		result = read_settings(importing, &settings, &length, error);
	if (result == 0 && importing->from == IMPORT_CODEX && ends_as_rules(importing->path))
		return import_rules_alone(importing, settings, length, text, error);
	if (result == 0 && !import_is_toml(importing->from))
		blank_comments(settings, length);
	if (result == 0)
		result =
			policy_outline(import_is_toml(importing->from) ? PARSE_TOML : PARSE_OUTLINE,
				       settings, length, importing->arena, &outline, error);
	if (result < 0)
		return result;
	if (!outline.count)
		return error_set(error, EINVAL, "%s:%u:%u: %s", importing->path, outline.fault.line,
				 outline.fault.column, outline.fault.text);
	result = import_read(importing->from, &outline, importing->arena, &importing->import);
	if (result < 0)
		return error_set(error, -result, "%s: these are no settings of %s", importing->path,
				 importing->from_name);
	result = look_for_rules(importing, error);
	return result < 0 ? result : settle(importing, text, error);
}

static int import_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct importing importing = { .arena = &arena };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_policy_import, argc, argv, take, &importing, &error);
	int result;

	if (first < 0 || argc - first > 1 || !importing.from_name) {
		complain(first < 0 ?
				 error.message :
				 "usage: bawn policy import --from claude|codex|gemini|srt [FILE]");
		return 2;
	}
	importing.from = import_find(importing.from_name);
	if (importing.from == IMPORT_COUNT) {
		(void)error_set(&error, EINVAL, "--from %.40s: it is one of: %s",
				importing.from_name, import_names());
		complain(error.message);
		return 2;
	}
	importing.path = first < argc ? argv[first] : NULL;
	result = import_settings(&importing, &text, &error);
	if (result < 0) {
		complain(error.message);
		return result == -EBADMSG || result == -ENOMEM ? 125 : 1;
	}
	if (text.failed || fd_write_all(1, text.data, text.length) < 0) {
		complain("the policy could not be printed");
		return 125;
	}
	return 0;
}

const struct verb verb_policy_import = {
	.name = "policy import",
	.synopsis = "--from NAME [FILE]",
	.summary =
		"Print settings of another agent or sandbox as a policy, and what it cannot say.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 printed; 1 no settings; 2 wrong use; 125 bawn itself failed",
	.run = import_verb,
};
