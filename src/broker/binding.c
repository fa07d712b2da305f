#include "broker/binding.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/path.h"
#include "policy/compare.h"
#include "policy/egress_compile.h"
#include "workspace/policy_way.h"

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

/* From what shows most of the workspace to what shows least. */
static const struct way {
	const char *word, *option, *is;
	uint32_t flags;
} ways[] = {
	{ "staged", "--stage", "is staged", POLICY_STAGE },
	{ "ephemeral", "--ephemeral", "is ephemeral", POLICY_EPHEMERAL },
	{ "read-only", "--read-only", "is read-only", POLICY_READ_ONLY },
	{ "empty", "--ephemeral=empty", "is empty", POLICY_EPHEMERAL | POLICY_EMPTY },
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* A flag that shows less of it counts; one that shows more does not. */
static int set_workspace(struct binder *binder, const struct document_statement *statement)
{
	struct request *request = binder->request;
	uint32_t given = binder->given->flags & (POLICY_WORKSPACE | POLICY_EMPTY);
	size_t said = 0;

	while (said < WAYS && strcmp(statement->text, ways[said].word) != 0)
		said++;
	if (said == WAYS)
		return 0;
	for (size_t i = 0; i < said; i++)
		if (given == ways[i].flags)
			return refuse(binder, statement, ways[i].option, ways[said].is);
	if (given)
		return 0;
	request->flags |= ways[said].flags;
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
	case DOCUMENT_FLOOR:
		binding->floor = tier_find(statement->text);
		binding->floor_rule = statement->rule;
		return 0;
	case DOCUMENT_ON_CHANGE:
		binding->change = tier_change_find(statement->text);
		binding->change_rule = statement->rule;
		return 0;
	case DOCUMENT_EXEC_STRICT:
		binder->request->flags |= statement->value ? POLICY_EXEC_STRICT : 0;
		return 0;
	case DOCUMENT_NET_CAPTURE:
		binder->request->flags |= strcmp(statement->text, "all") == 0 ? POLICY_CAPTURE_ALL :
										0;
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

static int refuse_locked(struct binder *binder, const char *flag,
			 const struct document_statement *lock)
{
	*binder->refusal = (struct binding_refusal){ .target = flag, .rule = lock->rule };
	return error_set(binder->error, EPERM, "%s: %s:%u:%u: %s is locked", flag, lock->rule.file,
			 lock->rule.line, lock->column, lock->text);
}

/* The key that a path's option adds to; DOCUMENT_KEY_COUNT where it adds nothing. */
static enum document_key key_of_path(const struct request_path *path)
{
	switch (path->class) {
	case PATH_READ:
		return DOCUMENT_READ;
	case PATH_WRITE:
		return DOCUMENT_WRITE;
	case PATH_DEVICE:
		return DOCUMENT_DEVICES;
	default:
		return DOCUMENT_KEY_COUNT;
	}
}

/* The values of limits that are built in are those that a lock without a value keeps. */
static int check_locked_limits(struct binder *binder, const struct document *document)
{
	const struct request *given = binder->given;

	for (enum document_key key = 0; key < DOCUMENT_KEY_COUNT; key++) {
		const struct document_statement *lock;
		struct document_statement asked = { .key = key };

		if (document_key(key)->shape != DOCUMENT_SHAPE_LIMIT)
			continue;
		lock = document_lock(document, key);
		if (!lock || document_find(document, key))
			continue;
		for (size_t i = 0; i < given->limit_count; i++) {
			if (strcmp(given->limits[i].option, document_key(key)->words) != 0)
				continue;
			if (limit_parse(document_limit(key), given->limits[i].value, &asked.value,
					binder->error) < 0)
				return binder->error->code;
			if (compare_widens(document, &asked))
				return refuse_locked(binder, given->limits[i].option, lock);
		}
	}
	return 0;
}

/* Flags that add to what is locked. Those that a policy's own value forbids are told by that. */
static int check_locks(struct binder *binder)
{
	const struct document *document = &binder->binding->layers.document;
	const struct request *given = binder->given;
	const struct document_statement *lock;
	const struct {
		enum document_key key;
		const char *flag;
		bool given;
	} switches[] = {
		{ DOCUMENT_USERNS, "--nested-userns", given->flags & POLICY_NESTED_USERNS },
		{ DOCUMENT_PTRACE, "--allow-ptrace", given->flags & POLICY_ALLOW_PTRACE },
		{ DOCUMENT_HIDE, "--show-secrets", given->flags & POLICY_SHOW_SECRETS },
		{ DOCUMENT_RECORD, "--no-trace", given->unrecorded },
	};

	/* usually there is none */
	if (!document_find(document, DOCUMENT_LOCK))
		return 0;
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
		const struct document_statement *said = document_find(document, switches[i].key);

		lock = switches[i].given ? document_lock(document, switches[i].key) : NULL;
		if (lock && (!said || document_key(switches[i].key)->shape != DOCUMENT_SHAPE_BOOL))
			return refuse_locked(binder, switches[i].flag, lock);
	}
	for (size_t i = 0; i < given->path_count; i++) {
		enum document_key key = key_of_path(&given->paths[i]);

		lock = key < DOCUMENT_KEY_COUNT ? document_lock(document, key) : NULL;
		if (lock)
			return refuse_locked(binder, given->paths[i].flag, lock);
	}
	lock = given->host_count ? document_lock(document, DOCUMENT_NET_ALLOW) : NULL;
	if (lock)
		return refuse_locked(binder, "--allow-host", lock);
	for (size_t i = 0; i < given->environment_count; i++) {
		lock = document_lock(document, strchr(given->environment[i], '=') ? DOCUMENT_SET :
										    DOCUMENT_PASS);
		if (lock)
			return refuse_locked(binder, "--env", lock);
	}
	return check_locked_limits(binder, document);
}

static int apply_all(struct binder *binder)
{
	const struct document *document = &binder->binding->layers.document;
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

int binding_make(const struct caller *host, int state_fd, const struct request *request,
		 const char *workspace, struct arena *arena, struct binding *ret_binding,
		 struct binding_refusal *refusal, struct error *error)
{
	const struct policy_asked asked = { request->policy_path, request->preset, workspace };
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
		result = policy_layers_load(host, &asked, state_fd, arena, &ret_binding->layers,
					    &faults, error);
	if (result == 0)
		result = check_locks(&binder);
	if (result == 0)
		result = apply_all(&binder);
	if (result == 0)
		result = egress_compile(&ret_binding->layers.document, arena,
					&ret_binding->request.egress, error);
	return result;
}

static int refuse_file(const struct policy_file *file, const char *found, const char *where,
		       struct error *error)
{
	return found == file->path ?
		       error_set(error, EPERM,
				 "the policy file %s lies in %s, where a task could have written "
				 "it; move it, for instance to ~/.config/bawn",
				 file->path, where) :
		       error_set(error, EPERM,
				 "the policy file %s is reached by the link %s, which lies in %s, "
				 "where a task could have made it; name the file itself",
				 file->path, found, where);
}

static int check_file(const struct policy_file *file, const struct policy *policy,
		      struct arena *arena, struct error *error)
{
	const char *found =
		policy_way_lies_in(file->path, file->links, file->link_count, policy->workspace);

	if (found)
		return refuse_file(file, found,
				   arena_format(arena, "the workspace %s", policy->workspace),
				   error);
	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *row = &policy->view.paths[i];

		found = row->class == PATH_WRITE ?
				policy_way_lies_in(file->path, file->links, file->link_count,
						   row->source) :
				NULL;
		if (found)
			return refuse_file(file, found, row->source, error);
	}
	return 0;
}

static int check_files(const struct policy_stack *stack, const struct policy *policy,
		       struct arena *arena, struct error *error)
{
	int result = 0;

	for (size_t i = 0; i < stack->count && result == 0; i++)
		if (stack->files[i].path)
			result = check_file(&stack->files[i], policy, arena, error);
	return result;
}

static bool shows_written(const struct view_path *row)
{
	return row->class == PATH_WRITE || row->class == PATH_STAGE;
}

/* Whether what a task writes can be a policy, or the way to one. */
static int check_store(const struct policy_layers *layers, const struct policy *policy,
		       struct error *error)
{
	const char *store = layers->store;

	for (size_t i = 0; store && i < policy->view.count; i++) {
		const struct view_path *row = &policy->view.paths[i];

		if (shows_written(row) &&
		    (policy_way_lies_in(store, layers->store_links, layers->store_link_count,
					row->source) ||
		     path_is_under(row->source, store)))
			return error_set(error, EPERM,
					 "the task could write in %s, and so a policy in %s, which "
					 "later starts would read; show it read-only, or enter "
					 "another directory",
					 row->source, store);
	}
	return 0;
}

int binding_check_place(const struct binding *binding, const struct policy *policy,
			struct arena *arena, struct error *error)
{
	int result = check_store(&binding->layers, policy, error);

	for (size_t i = 0; i < binding->layers.count && result == 0; i++)
		result = check_files(&binding->layers.rows[i].stack, policy, arena, error);
	return result;
}
