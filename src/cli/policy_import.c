/*
 * `bawn policy import`: settings of another agent or sandbox as a policy, on standard output, with
 * what could not be taken over as comments. The text is read by bawn-parse; what comes of it is
 * held against the loader of policies, and what that would not have becomes a comment, too.
 */
#include "cli/policy_verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "policy/document.h"
#include "policy/import.h"
#include "workspace/host.h"
#include "workspace/policy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Each look finds at least one row that the loader would not have. */
#define LOOKS_LIMIT (IMPORT_LIMIT_ROWS + 1)

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

/* Not a policy: it may be anybody's and lie anywhere. */
static int read_settings(struct importing *importing, char **ret_text, size_t *ret_length,
			 struct error *error)
{
	int CLEANUP_FD fd = strcmp(importing->path, "-") == 0 ?
				    fcntl(0, F_DUPFD_CLOEXEC, 3) :
				    open(importing->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char *text = arena_allocate(importing->arena, OUTLINE_LIMIT_BYTES + 2);
	ssize_t length;

	if (fd < 0)
		return error_errno(error, errno, "the settings %s", importing->path);
	length = text ? fd_read_all(fd, text, OUTLINE_LIMIT_BYTES + 1) : -ENOMEM;
	if (length < 0)
		return error_errno(error, (int)length, "the settings %s", importing->path);
	if (length > (ssize_t)OUTLINE_LIMIT_BYTES)
		return error_set(error, EFBIG, "the settings %s are larger than %u bytes",
				 importing->path, OUTLINE_LIMIT_BYTES);
	*ret_text = text;
	*ret_length = (size_t)length;
	return 0;
}

/* What the loader says of line `at` is said of the row that stands there. */
static bool refuse_rows(struct importing *importing, const struct document_faults *faults,
			const uint32_t *lines)
{
	struct import *import = &importing->import;
	bool any = false;

	for (size_t i = 0; i < faults->count && i < DOCUMENT_LIMIT_FAULTS; i++)
		for (size_t j = 0; j < import->row_count; j++) {
			if (!lines[j] || lines[j] != faults->rows[i].line ||
			    import->rows[j].refusal)
				continue;
			import->rows[j].refusal = arena_format(importing->arena, "%s: %s",
							       import->rows[j].value,
							       faults->rows[i].text);
			any |= import->rows[j].refusal != NULL;
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
		if (result != -EINVAL || !refuse_rows(importing, &faults, lines))
			return error_set(error, EBADMSG, "what came of it is no policy: %s",
					 faults.count ? faults.rows[0].text : "out of memory");
	}
	return error_errno(error, ENOMEM, "making the policy");
}

/* Codex keeps rules of commands beside its settings, in a language of their own. */
static void look_for_rules(struct importing *importing)
{
	const char *slash = strrchr(importing->path, '/');
	const char *rules = arena_format(importing->arena, "%.*srules",
					 slash ? (int)(slash + 1 - importing->path) : 0,
					 importing->path);
	struct stat status;

	if (importing->from != IMPORT_CODEX || strcmp(importing->path, "-") == 0 || !rules ||
	    stat(rules, &status) < 0)
		return;
	(void)import_leave(&importing->import, importing->arena, 0,
			   arena_format(importing->arena,
					"%s: rules of commands (prefix_rule) are not read; what "
					"they forbid is exec.deny, what they ask for approvals.ask",
					rules));
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
	look_for_rules(importing);
	return settle(importing, text, error);
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
