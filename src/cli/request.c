#include "cli/request.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/quantity.h"
#include "ipc/control.h"
#include "policy/egress_compile.h"
#include "policy/input.h"
#include "trace/hook.h"
#include "trace/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Each flag costs memory and, for paths, a mount: nobody types a thousand. */
#define REQUEST_LIMIT_PATHS 1024
#define REQUEST_LIMIT_VARIABLES 1024

static int add_path(struct request *request, struct arena *arena, enum path_class class,
		    const char *flag, const char *path, struct error *error)
{
	struct request_path *grown;

	if (!path[0])
		return error_set(error, EINVAL, "option %s has an empty value", flag);
	if (strlen(path) >= PATH_LIMIT_BYTES)
		return error_set(error, ENAMETOOLONG, "option %s: the path is longer than %d bytes",
				 flag, PATH_LIMIT_BYTES - 1);
	if (request->path_count >= REQUEST_LIMIT_PATHS)
		return error_set(error, E2BIG, "more than %d paths by flags", REQUEST_LIMIT_PATHS);
	grown = arena_push(arena, request->paths, request->path_count, sizeof(*grown));
	if (!grown)
		return error_errno(error, ENOMEM, "option %s", flag);
	request->paths = grown;
	grown[request->path_count] = (struct request_path){
		.class = class,
		.path = path,
		.flag = flag,
		.position = (uint32_t)request->path_count + 1,
	};
	request->path_count++;
	return 0;
}

static int add_input(struct request *request, struct arena *arena, const struct option *option,
		     const char *value, struct error *error)
{
	const char *path, *name;
	int result = input_split(value, arena, &path, &name, error);

	if (result == 0)
		result = add_path(request, arena, PATH_READ, option->name, path, error);
	if (result == 0)
		request->paths[request->path_count - 1].name = name;
	return result;
}

static int add_variable(struct request *request, struct arena *arena, const char *value,
			struct error *error)
{
	const char **grown;

	if (request->environment_count >= REQUEST_LIMIT_VARIABLES)
		return error_set(error, E2BIG, "more than %d variables by --env",
				 REQUEST_LIMIT_VARIABLES);
	grown = arena_push(arena, request->environment, request->environment_count, sizeof(*grown));
	if (!grown)
		return error_errno(error, ENOMEM, "option --env");
	request->environment = grown;
	grown[request->environment_count++] = value;
	return 0;
}

static int add_meta(struct request *request, struct arena *arena, const char *value,
		    struct error *error)
{
	size_t key = strcspn(value, "=");
	const char **grown;

	if (!key || !value[key] || key > CONTROL_LIMIT_META_KEY_BYTES)
		return error_set(
			error, EINVAL,
			"option --meta %.40s: it takes KEY=VALUE, with a key of at most %u "
			"bytes",
			value, CONTROL_LIMIT_META_KEY_BYTES);
	if (request->meta_count >= CONTROL_LIMIT_META || strlen(value) > CONTROL_LIMIT_META_BYTES)
		return error_set(error, E2BIG, "option --meta: more than %u of them, or %u bytes",
				 CONTROL_LIMIT_META, CONTROL_LIMIT_META_BYTES);
	for (size_t i = 0; i < request->meta_count; i++)
		if (strncmp(request->meta[i], value, key + 1) == 0)
			return error_set(error, EINVAL, "option --meta: %.*s is given twice",
					 (int)key, value);
	/* two: the list is NULL-ended */
	grown = arena_array(arena, request->meta_count + 2, sizeof(*grown));
	if (!grown)
		return error_errno(error, ENOMEM, "option --meta");
	for (size_t i = 0; i < request->meta_count; i++)
		grown[i] = request->meta[i];
	grown[request->meta_count++] = value;
	request->meta = grown;
	return 0;
}

static int add_host(struct request *request, struct arena *arena, const char *value,
		    struct error *error)
{
	struct rule_ref ref = { .id = "flag.allow-host",
				.file = "--allow-host",
				.line = (uint32_t)request->host_count + 1 };
	struct egress_rule rule, *grown;
	int result = egress_compile_host(value, &ref, arena, &rule, error);

	if (result < 0)
		return result;
	if (request->host_count >= EGRESS_LIMIT_RULES)
		return error_set(error, E2BIG, "more than %u hosts by --allow-host",
				 EGRESS_LIMIT_RULES);
	grown = arena_push(arena, request->hosts, request->host_count, sizeof(*grown));
	if (!grown)
		return error_errno(error, ENOMEM, "option --allow-host");
	request->hosts = grown;
	grown[request->host_count++] = rule;
	return 0;
}

static int set_network(struct request *request, const char *value, struct error *error)
{
	if (strcmp(value, "none") == 0)
		request->network = REQUEST_NETWORK_NONE;
	else if (strcmp(value, "policy") == 0)
		request->network = REQUEST_NETWORK_POLICY;
	else
		return error_set(error, EINVAL, "option --network %.40s: none or policy", value);
	return 0;
}

static int set_purpose(struct request *request, const char *value, struct error *error)
{
	if (!egress_purpose_check(value))
		return error_set(error, EINVAL,
				 "option --purpose %.40s: a word of a to z, digits, '-', '_' and "
				 "'.'",
				 value);
	request->purpose = value;
	return 0;
}

static int set_text(const char **place, const struct option *option, const char *value,
		    struct error *error)
{
	if (!value[0])
		return error_set(error, EINVAL, "option %s has an empty value", option->name);
	*place = value;
	return 0;
}

static int set_timeout(struct request *request, const char *value, struct error *error)
{
	int result = quantity_duration(value, &request->timeout_ns);

	if (result < 0)
		return error_set(error, EINVAL,
				 "option --timeout %.40s: not a duration; a number with ms, s, m, "
				 "h or d, as in 30s",
				 value);
	return 0;
}

/* Checked at once, so that what is wrong is told before anything else. */
static int add_limit(struct request *request, const struct option *option, const char *value,
		     struct error *error)
{
	uint64_t checked;
	int result = limit_parse(limit_of_option(option->name), value, &checked, error);

	if (result == 0)
		request->limits[request->limit_count++] =
			(struct request_limit){ .option = option->name, .value = value };
	return result;
}

int request_take(struct request *request, struct arena *arena, const struct option *option,
		 const char *value, struct error *error)
{
	if (option->widens && !request->widening)
		request->widening = option->name;
	switch (option->id) {
	case OPTION_WORKSPACE:
		return set_text(&request->workspace, option, value, error);
	case OPTION_CWD:
		return set_text(&request->cwd, option, value, error);
	case OPTION_STATE_DIR:
		return set_text(&request->state_path, option, value, error);
	case OPTION_POLICY:
		return set_text(&request->policy_path, option, value, error);
	case OPTION_PRESET:
		return set_text(&request->preset, option, value, error);
	case OPTION_READ:
		return add_path(request, arena, PATH_READ, option->name, value, error);
	case OPTION_INPUT:
		return add_input(request, arena, option, value, error);
	case OPTION_WRITE:
		return add_path(request, arena, PATH_WRITE, option->name, value, error);
	case OPTION_HIDE:
		return add_path(request, arena, PATH_HIDE, option->name, value, error);
	case OPTION_PROTECT:
		return add_path(request, arena, PATH_PROTECT, option->name, value, error);
	case OPTION_DEVICES:
		return add_path(request, arena, PATH_DEVICE, option->name, value, error);
	case OPTION_NETWORK:
		return set_network(request, value, error);
	case OPTION_ALLOW_HOST:
		return add_host(request, arena, value, error);
	case OPTION_PURPOSE:
		return set_purpose(request, value, error);
	case OPTION_ENV:
		return add_variable(request, arena, value, error);
	case OPTION_META:
		return add_meta(request, arena, value, error);
	case OPTION_NO_TRACE:
		request->unrecorded = true;
		return 0;
	case OPTION_TIMEOUT:
		return set_timeout(request, value, error);
	case OPTION_STDIN:
		request->input = true;
		return 0;
	case OPTION_CPU_TIME:
	case OPTION_CPUS:
	case OPTION_MEMORY:
	case OPTION_PIDS:
	case OPTION_FILES:
	case OPTION_DISK:
	case OPTION_INODES:
	case OPTION_IO:
	case OPTION_OUTPUT_CAP:
	case OPTION_GRACE:
		return add_limit(request, option, value, error);
	case OPTION_TTY:
		request->flags |= POLICY_TTY;
		request->tty = true;
		return 0;
	case OPTION_STAGE:
		request->flags |= POLICY_STAGE;
		return 0;
	case OPTION_EPHEMERAL:
		request->flags |= POLICY_EPHEMERAL;
		return 0;
	case OPTION_EPHEMERAL_EMPTY:
		request->flags |= POLICY_EPHEMERAL | POLICY_EMPTY;
		return 0;
	case OPTION_READ_ONLY:
		request->flags |= POLICY_READ_ONLY;
		return 0;
	case OPTION_HIDE_STRICT:
		request->flags |= POLICY_HIDE_STRICT;
		return 0;
	case OPTION_SHOW_SECRETS:
		request->flags |= POLICY_SHOW_SECRETS;
		return 0;
	case OPTION_NESTED_USERNS:
		request->flags |= POLICY_NESTED_USERNS;
		return 0;
	case OPTION_ALLOW_PTRACE:
		request->flags |= POLICY_ALLOW_PTRACE;
		return 0;
	default:
		return error_set(error, EINVAL, "option %s does not belong here", option->name);
	}
}

static const char *const *environment_of(const struct policy *policy, struct arena *arena)
{
	const char **variables = arena_array(arena, policy->variable_count + 1, sizeof(char *));

	for (size_t i = 0; variables && i < policy->variable_count; i++)
		variables[i] = arena_format(arena, "%s=%s", policy->variables[i].name,
					    policy->variables[i].value);
	return variables;
}

int request_action(const struct request *request, const struct effective *effective,
		   struct arena *arena, char **argv, int argc, struct action *ret_action,
		   struct error *error)
{
	struct action action = {
		.argv = (const char *const *)argv,
		.argc = (size_t)argc,
		.cwd = effective->policy.cwd,
		.environ = environment_of(&effective->policy, arena),
		.input = request->tty	? ACTION_INPUT_TTY :
			 request->input ? ACTION_INPUT_PIPE :
					  ACTION_INPUT_NULL,
		.timeout_ns = effective->policy.timeout_ns,
		.meta = request->meta,
	};

	if (argc >= ACTION_ARGUMENTS_LIMIT)
		return error_set(error, E2BIG, "more than %d arguments", ACTION_ARGUMENTS_LIMIT);
	if (!action.environ || arena_failed(arena))
		return error_errno(error, ENOMEM, "making the action");
	(void)snprintf(action.task, sizeof(action.task), "%s", effective->task);
	/* the first action of a task: its id is the task's, with its own letter */
	(void)snprintf(action.id, sizeof(action.id), "a-%s", effective->task + 2);
	*ret_action = action;
	return 0;
}

int request_record(const struct effective *effective, struct arena *arena,
		   struct recorder *recorder, struct event_sink **ret_sink, struct error *error)
{
	if (effective->unrecorded) {
		*ret_sink = &event_null_sink;
		return 0;
	}
	if (recorder_begin(recorder,
			   &(struct recorder_options){ .state_fd = effective->state.fd,
						       .task = effective->task,
						       .environment = environ,
						       .arena = arena },
			   error) < 0)
		return error_context(error,
				     "the trace in %s cannot be written, so nothing was started",
				     effective->state.path);
	*ret_sink = &recorder->sink;
	return 0;
}

void request_sign(const struct effective *effective, const struct recorder *recorder)
{
	struct error error = ERROR_NONE;

	if (recorder->store.fd >= 0 && hook_sign_when_due(&recorder->store, &recorder->origin,
							  effective->host.home, &error) < 0)
		complain(error.message);
}

void request_tell_unlanded(const struct effective *effective)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	if (effective->unlanded.code == 0)
		return;
	buffer_text(&text, "bawn: ");
	buffer_visible(&text, effective->unlanded.message);
	buffer_text(&text, "\n");
	if (!text.failed)
		(void)fd_write_all(STDERR_FILENO, text.data, text.length);
}

void request_tell_more(const struct effective *effective)
{
	if (effective->secrets.is_cut)
		complain("the workspace is larger than a start looks through for secrets (.env, "
			 "keys): such files deep in it can be read; --hide GLOB looks everywhere");
	if (effective->proposal == ADOPT_NEW)
		complain(ADOPT_NAME
			 " proposes a policy, which is not in force; `bawn policy adopt` "
			 "shows it");
	else if (effective->proposal == ADOPT_CHANGED)
		complain(ADOPT_NAME
			 " is not what was adopted, and that goes on; `bawn policy adopt` "
			 "shows what is new");
}
