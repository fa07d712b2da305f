/* `bawn policy check`: whether a file is a policy, and what of it this build does not do. */
#include "cli/policy_verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "workspace/host.h"
#include "workspace/policy_file.h"
#include "workspace/policy_way.h"
#include "workspace/root.h"

#include <errno.h>

enum { OPTION_JSON };

static const struct option options[] = {
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
};

struct checking {
	struct arena *arena;
	const char *path;
	struct policy_file file;
	struct document_faults faults;
	const char *workspace; /* in which it lies, seen from here; NULL: in none */
	bool json;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct checking *checking = context;

	(void)option;
	(void)value;
	(void)error;
	checking->json = true;
	return 0;
}

static void print_missing(const struct checking *checking, struct buffer *buffer)
{
	const struct document *document = &checking->file.document;

	for (size_t i = 0; i < document->count; i++) {
		const struct document_statement *statement = &document->statements[i];
		const char *unbuilt = document_unbuilt(statement, checking->arena);

		if (!unbuilt)
			continue;
		buffer_visible(buffer, checking->path);
		buffer_format(buffer, ":%u:%u: not built: %s ", statement->rule.line,
			      statement->column, document_key(statement->key)->path);
		buffer_visible(buffer, unbuilt);
		buffer_text(buffer, "; a run refuses it\n");
	}
}

static void print_text(const struct checking *checking, struct buffer *buffer)
{
	if (checking->faults.count) {
		document_print_faults(&checking->faults, checking->path, buffer);
		return;
	}
	print_missing(checking, buffer);
	if (checking->workspace) {
		buffer_visible(buffer, checking->path);
		buffer_text(buffer, ": not to be used from here: it lies in the workspace ");
		buffer_visible(buffer, checking->workspace);
		buffer_text(buffer, ", where a task could have written it\n");
	}
	buffer_visible(buffer, checking->path);
	buffer_format(buffer, ": a policy with %zu statements\n", checking->file.document.count);
}

static void json_place(struct json *json, uint32_t line, uint32_t column)
{
	json_object(json, NULL);
	json_unsigned(json, "line", line);
	json_unsigned(json, "column", column);
}

static void print_json(const struct checking *checking, struct buffer *buffer)
{
	const struct document *document = &checking->file.document;
	const struct document_faults *faults = &checking->faults;
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_string(&json, "file", checking->path);
	json_bool(&json, "valid", !faults->count);
	json_string(&json, "in_workspace", checking->workspace);
	json_array(&json, "faults");
	for (size_t i = 0; i < faults->count && i < DOCUMENT_LIMIT_FAULTS; i++) {
		json_place(&json, faults->rows[i].line, faults->rows[i].column);
		json_string(&json, "text", faults->rows[i].text);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_array(&json, "not_built");
	for (size_t i = 0; !faults->count && i < document->count; i++) {
		const struct document_statement *statement = &document->statements[i];
		const char *missing = document_missing(statement, checking->arena);

		if (!missing)
			missing = document_unbuilt(statement, checking->arena);
		if (!missing)
			continue;
		json_place(&json, statement->rule.line, statement->column);
		json_string(&json, "key", document_key(statement->key)->path);
		json_string(&json, "needs", missing);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	buffer_text(buffer, "\n");
}

/* Whether a run from here would refuse it for its place. */
static void look_at_place(struct checking *checking, const struct caller *host)
{
	struct error ignored = ERROR_NONE;
	struct root root;

	if (root_find(host, NULL, NULL, checking->arena, &root, &ignored) == 0 &&
	    policy_way_lies_in(checking->file.path, checking->file.links, checking->file.link_count,
			       root.path))
		checking->workspace = root.path;
}

/* What is said of the text goes to standard output: it is the answer, right or wrong. */
static int check(struct checking *checking, struct buffer *text)
{
	struct error error = ERROR_NONE;
	struct caller host;
	int result = host_gather(checking->arena, &host, &error);

	if (result == 0)
		result = policy_file_load(&host, checking->path, -1, checking->arena,
					  &checking->file, &checking->faults, &error);
	if (result < 0 && !checking->faults.count) {
		complain(error.message);
		return result == -EBADMSG || result == -ENOMEM ? 125 : 1;
	}
	if (!checking->faults.count)
		look_at_place(checking, &host);
	if (checking->json)
		print_json(checking, text);
	else
		print_text(checking, text);
	return checking->faults.count ? 1 : 0;
}

static int check_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct checking checking = { .arena = &arena };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_policy_check, argc, argv, take, &checking, &error);
	int status;

	if (first < 0 || argc - first != 1) {
		complain(first < 0 ? error.message : "usage: bawn policy check [--json] FILE");
		return 2;
	}
	checking.path = argv[first];
	status = check(&checking, &text);
	if (text.failed || fd_write_all(1, text.data, text.length) < 0) {
		complain("the answer could not be printed");
		return 125;
	}
	return status;
}

const struct verb verb_policy_check = {
	.name = "policy check",
	.synopsis = "FILE",
	.summary = "Tell whether a file is a policy, and what is wrong where.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 a policy; 1 it is none, or not one to be used; 2 wrong use; 125 bawn "
		       "itself failed",
	.run = check_verb,
};
