#include "broker/binding.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/path.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct binder {
	struct binding *binding;
	struct request *request;
	const struct request *given;
	struct arena *arena;
	struct binding_refusal *refusal;
	struct error *error;
};

/* "FILE:LINE:COLUMN: key", as messages of the loader begin. */
static const char *place(struct binder *binder, const struct document_statement *statement)
{
	const char *text = arena_format(binder->arena, "%s:%u:%u: %s", statement->rule.file,
					statement->rule.line, statement->column,
					document_key(statement->key)->path);

	return text ? text : document_key(statement->key)->path;
}

static int refuse(struct binder *binder, const struct document_statement *statement,
		  const char *flag, const char *why)
{
	*binder->refusal = (struct binding_refusal){ .target = flag, .rule = statement->rule };
	return error_set(binder->error, EPERM, "%s: %s %s", flag, place(binder, statement), why);
}

static int no_memory(struct binder *binder)
{
	return error_errno(binder->error, ENOMEM, "taking the policy in");
}

static int add_path(struct binder *binder, const struct document_statement *statement,
		    enum path_class class)
{
	struct request *request = binder->request;
	struct request_path *grown =
		arena_push(binder->arena, request->paths, request->path_count, sizeof(*grown));

	if (!grown)
		return no_memory(binder);
	request->paths = grown;
	grown[request->path_count++] = (struct request_path){
		.class = class,
		.path = statement->text,
		.flag = place(binder, statement),
		.rule = statement->rule,
	};
	return 0;
}

static int add_variable(struct binder *binder, const struct document_statement *statement,
			const char *name, const char *value)
{
	struct request *request = binder->request;
	struct request_variable *grown = arena_push(binder->arena, request->variables,
						    request->variable_count, sizeof(*grown));

	if (!grown)
		return no_memory(binder);
	request->variables = grown;
	grown[request->variable_count++] =
		(struct request_variable){ name, value, statement->rule };
	return 0;
}

/* The caller's value, where there is one: a policy is for many callers. */
static int pass_variable(struct binder *binder, const struct document_statement *statement)
{
	size_t length = strlen(statement->text);

	for (char **at = environ; at && *at; at++)
		if (strncmp(*at, statement->text, length) == 0 && (*at)[length] == '=')
			return add_variable(binder, statement, statement->text, *at + length + 1);
	return 0;
}

static int set_timeout(struct binder *binder, const struct document_statement *statement)
{
	struct request *request = binder->request;

	if (!binder->given->timeout_ns) {
		request->timeout_ns = statement->value;
		binder->binding->limit_rules[LIMIT_WALL_CLOCK] = statement->rule;
	} else if (binder->given->timeout_ns > statement->value) {
		return refuse(binder, statement, "--timeout",
			      "is less; a flag narrows it, no more");
	}
	return 0;
}

static int set_limit(struct binder *binder, const struct document_statement *statement)
{
	enum limit limit = document_limit(statement->key);
	const char *option = limit_text(limit)->option;
	struct request *request = binder->request;

	if (limit == LIMIT_WALL_CLOCK)
		return set_timeout(binder, statement);
	for (size_t i = 0; i < request->limit_count; i++) {
		uint64_t value = 0;

		if (strcmp(request->limits[i].option, option) != 0)
			continue;
		if (limit_parse(limit, request->limits[i].value, &value, binder->error) < 0)
			return binder->error->code;
		return value > statement->value ? refuse(binder, statement, option,
							 "is less; a flag narrows it, no more") :
						  0;
	}
	request->limits[request->limit_count++] =
		(struct request_limit){ .option = option, .value = statement->text };
	binder->binding->limit_rules[limit] = statement->rule;
	return 0;
}

/* "true" allows; "false" forbids the flag that would. */
static int set_flag(struct binder *binder, const struct document_statement *statement,
		    uint32_t flag, const char *option)
{
	if (statement->value)
		binder->request->flags |= flag;
	else if (binder->given->flags & flag)
		return refuse(binder, statement, option, "is false");
	return 0;
}

/* A flag that shows less of it counts; one that shows more does not. */
static int set_workspace(struct binder *binder, const struct document_statement *statement)
{
	/* from what shows most of it to what shows least */
	static const struct {
		const char *word, *option, *is;
		uint32_t flag;
	} ways[] = {
		{ "staged", "--stage", "is staged", POLICY_STAGE },
		{ "ephemeral", "--ephemeral", "is ephemeral", POLICY_EPHEMERAL },
		{ "read-only", "--read-only", "is read-only", POLICY_READ_ONLY },
	};
	struct request *request = binder->request;
	size_t said = 0;

	while (said < sizeof(ways) / sizeof(ways[0]) &&
	       strcmp(statement->text, ways[said].word) != 0)
		said++;
	if (said == sizeof(ways) / sizeof(ways[0]))
		return 0;
	for (size_t i = 0; i < said; i++)
		if (binder->given->flags & ways[i].flag)
			return refuse(binder, statement, ways[i].option, ways[said].is);
	if (binder->given->flags & POLICY_WORKSPACE)
		return 0;
	request->flags |= ways[said].flag;
	request->workspace_rule = statement->rule;
	return 0;
}

static int set_terminal(struct binder *binder, const struct document_statement *statement)
{
	if (statement->value)
		return 0;
	if (binder->given->tty)
		return refuse(binder, statement, "--tty", "is false");
	binder->request->flags &= ~(uint32_t)POLICY_TTY;
	return 0;
}

static int set_record(struct binder *binder, const struct document_statement *statement)
{
	if (statement->value && binder->given->unrecorded)
		return refuse(binder, statement, "--no-trace", "is true");
	binder->request->unrecorded = !statement->value;
	return 0;
}

static int apply(struct binder *binder, const struct document_statement *statement)
{
	struct binding *binding = binder->binding;

	switch (statement->key) {
	case DOCUMENT_WORKSPACE:
		return set_workspace(binder, statement);
	case DOCUMENT_READ:
		return add_path(binder, statement, PATH_READ);
	case DOCUMENT_WRITE:
		return add_path(binder, statement, PATH_WRITE);
	case DOCUMENT_HIDE:
		return add_path(binder, statement, PATH_HIDE);
	case DOCUMENT_PROTECT:
		return add_path(binder, statement, PATH_PROTECT);
	case DOCUMENT_DEVICES:
		return add_path(binder, statement, PATH_DEVICE);
	case DOCUMENT_PASS:
		return pass_variable(binder, statement);
	case DOCUMENT_SET:
		return add_variable(binder, statement, statement->name, statement->text);
	case DOCUMENT_HIDE_STRICT:
		/* more of it narrows */
		binder->request->flags |= statement->value ? POLICY_HIDE_STRICT : 0;
		return 0;
	case DOCUMENT_USERNS:
		return set_flag(binder, statement, POLICY_NESTED_USERNS, "--nested-userns");
	case DOCUMENT_PTRACE:
		return set_flag(binder, statement, POLICY_ALLOW_PTRACE, "--allow-ptrace");
	case DOCUMENT_TTY:
		return set_terminal(binder, statement);
	case DOCUMENT_RECORD:
		return set_record(binder, statement);
	case DOCUMENT_TASKS_LIVE:
		binding->live_rule = statement->rule;
		if (statement->value)
			binding->live_rule.id = NULL;
		return 0;
	case DOCUMENT_TASKS_IDLE:
		binding->idle_ns = statement->value;
		return 0;
	case DOCUMENT_TASKS_LIFETIME:
		binding->lifetime_ns = statement->value;
		return 0;
	default:
		if (document_key(statement->key)->shape == DOCUMENT_SHAPE_LIMIT)
			return set_limit(binder, statement);
		/* says what is so in any case, or needs nothing: document_missing() */
		return 0;
	}
}

static int apply_all(struct binder *binder)
{
	const struct document *document = &binder->binding->stack.document;
	int result = 0;

	for (size_t i = 0; i < document->count && result == 0; i++) {
		const struct document_statement *statement = &document->statements[i];
		bool is_word = document_key(statement->key)->shape == DOCUMENT_SHAPE_WORD;
		const char *missing = document_missing(statement, binder->arena);

		if (missing)
			return error_set(binder->error, EOPNOTSUPP,
					 "%s%s%s needs %s, which this build lacks, so nothing was "
					 "started",
					 place(binder, statement), is_word ? ": " : "",
					 is_word ? statement->text : "", missing);
		result = apply(binder, statement);
	}
	return result;
}

/* What flags gave stands in arrays of the caller's. */
static int copy_request(struct binder *binder)
{
	struct request *request = binder->request;
	struct request_path *paths =
		arena_array(binder->arena, request->path_count + 1, sizeof(*paths));

	if (!paths)
		return no_memory(binder);
	if (request->path_count)
		memcpy(paths, request->paths, request->path_count * sizeof(*paths));
	request->paths = paths;
	return 0;
}

int binding_make(const struct host *host, int state_fd, const struct request *request,
		 struct arena *arena, struct binding *ret_binding, struct binding_refusal *refusal,
		 struct error *error)
{
	struct binder binder = { .binding = ret_binding,
				 .request = &ret_binding->request,
				 .given = request,
				 .arena = arena,
				 .refusal = refusal,
				 .error = error };
	struct document_faults faults;
	int result;

	*ret_binding = (struct binding){ .request = *request };
	result = copy_request(&binder);
	if (result == 0)
		result = policy_stack_load(host, request->policy_path, request->preset, state_fd,
					   arena, &ret_binding->stack, &faults, error);
	return result == 0 ? apply_all(&binder) : result;
}

static bool lies_in(const struct policy_file *file, const char *path)
{
	return path_is_under(file->path, path) || (file->given && path_is_under(file->given, path));
}

int binding_check_place(const struct binding *binding, const struct policy *policy,
			struct error *error)
{
	for (size_t i = 0; i < binding->stack.count; i++) {
		const struct policy_file *file = &binding->stack.files[i];

		if (!file->path)
			continue;
		if (lies_in(file, policy->workspace))
			return error_set(
				error, EPERM,
				"the policy file %s lies in the workspace %s, where a task "
				"could have written it; move it, for instance to "
				"~/.config/bawn",
				file->path, policy->workspace);
		for (size_t j = 0; j < policy->view.count; j++)
			if (policy->view.paths[j].class == PATH_WRITE &&
			    lies_in(file, policy->view.paths[j].source))
				return error_set(
					error, EPERM,
					"the policy file %s lies in %s, which the task can "
					"write; move it, for instance to ~/.config/bawn",
					file->path, policy->view.paths[j].source);
	}
	return 0;
}
