/* `bawn policy decide`: what a command line wants and what becomes of it. Runs nothing. */
#include "cli/policy_verbs.h"
#include "cli/verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "broker/decide.h"
#include "broker/effective.h"
#include "broker/isolation.h"
#include "cli/decision_text.h"
#include "cli/request.h"
#include "policy/shell.h"
#include "workspace/host.h"
#include "workspace/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_JSON = OPTION_OWN, OPTION_SHELL, OPTION_SHELL_FILE };

static const struct option options[] = {
#define REQUEST_OPTION REQUEST_ROW
#include "cli/request.def"
#undef REQUEST_OPTION
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
	{ "--shell", "STRING", "decide about a string that a shell would get", false, false,
	  OPTION_SHELL },
	{ "--shell-file", "FILE", "decide about the text in a file, or of standard input: -", false,
	  false, OPTION_SHELL_FILE },
};

struct deciding {
	struct request request;
	struct arena *arena;
	const char *shell, *file;
	bool json, has_policy;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct deciding *deciding = context;

	switch (option->id) {
	case OPTION_JSON:
		deciding->json = true;
		return 0;
	case OPTION_SHELL:
		deciding->shell = value;
		return 0;
	case OPTION_SHELL_FILE:
		deciding->file = value;
		return 0;
	case OPTION_POLICY:
	case OPTION_PRESET:
		deciding->has_policy = true;
		break;
	default:
		break;
	}
	return request_take(&deciding->request, deciding->arena, option, value, error);
}

/* One byte more than the limit: what is longer asks unparsed, and is not read to its end. */
static int read_file(const char *path, struct arena *arena, char **ret_text, size_t *ret_length,
		     struct error *error)
{
	int CLEANUP_FD fd = strcmp(path, "-") == 0 ? fcntl(0, F_DUPFD_CLOEXEC, 3) :
						     open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char *text = arena_allocate(arena, SHELL_LIMIT_BYTES + 2);
	ssize_t length;

	if (fd < 0)
		return error_errno(error, errno, "opening %s", path);
	if (!text)
		return error_errno(error, ENOMEM, "reading %s", path);
	length = fd_read_all(fd, text, SHELL_LIMIT_BYTES + 1);
	if (length < 0)
		return error_errno(error, (int)length, "reading %s", path);
	*ret_text = text;
	*ret_length = (size_t)length;
	return 0;
}

static int say(const struct decision *decision, bool as_json)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct json json;

	if (as_json) {
		json_begin(&json, &text);
		json_object(&json, NULL);
		json_unsigned(&json, "version", 1);
		decision_json(decision, &json);
		json_object_end(&json);
		buffer_text(&text, "\n");
	} else {
		decision_print(decision, &text);
	}
	if (text.failed || fd_write_all(1, text.data, text.length) < 0) {
		complain("the decision could not be printed");
		return 125;
	}
	return decision->verdicts.whole.judgement == WANTED_ALLOWS ? 0 : 1;
}

/* Without a policy there is no box: what is meant is where the caller stands. */
static int find_place(struct deciding *deciding, struct effective *effective, struct caller *host,
		      struct decide_place *ret_place, enum effective_failure *failure,
		      struct error *error)
{
	int result;

	*failure = EFFECTIVE_BROKEN;
	ret_place->host = host;
	if (!deciding->has_policy) {
		result = host_gather(deciding->arena, host, error);
		/* a directory that is gone, or cannot be reached, is one that is not known */
		if (result == 0 && root_resolve(".", deciding->arena, &ret_place->cwd, error) < 0)
			ret_place->cwd = NULL;
		return result;
	}
	result = effective_make(&deciding->request, deciding->arena, effective, failure, NULL,
				error);
	if (result == 0) {
		*host = effective->host;
		ret_place->cwd = effective->policy.cwd;
		ret_place->policy = &effective->policy;
	}
	return result;
}

static int decide(struct deciding *deciding, const char *const *argv, size_t argc)
{
	struct effective CLEANUP_EFFECTIVE effective = EFFECTIVE_NONE;
	struct parser CLEANUP_PARSER parser = PARSER_NONE;
	struct error error = ERROR_NONE;
	struct decision decision = { 0 };
	struct decide_place place = { 0 };
	enum effective_failure failure;
	struct caller host;
	char *text = NULL;
	size_t length = 0;
	int result = find_place(deciding, &effective, &host, &place, &failure, &error);

	if (result == 0 && deciding->file)
		result = read_file(deciding->file, deciding->arena, &text, &length, &error);
	if (result < 0) {
		complain(error.message);
		return failure == EFFECTIVE_DENIED ? 1 : 125;
	}
	if (deciding->file)
		decide_shell(&decision, deciding->arena, &parser, &place, text, length);
	else if (deciding->shell)
		decide_shell(&decision, deciding->arena, &parser, &place, deciding->shell,
			     strlen(deciding->shell));
	else
		decide_argv(&decision, deciding->arena, &parser, &place, argv, argc);
	if (place.policy)
		isolation_decide(&effective, &decision);
	return say(&decision, deciding->json);
}

static int policy_decide_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct deciding deciding = { .arena = &arena };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_policy_decide, argc, argv, take, &deciding, &error);

	if (first < 0) {
		complain(error.message);
		return 2;
	}
	if ((deciding.shell != NULL) + (deciding.file != NULL) + (first < argc) != 1) {
		complain("decide about what? One of --shell STRING, --shell-file FILE, "
			 "-- COMMAND [ARGUMENT...]");
		return 2;
	}
	return decide(&deciding, (const char *const *)argv + first, (size_t)(argc - first));
}

const struct verb verb_policy_decide = {
	.name = "policy decide",
	.synopsis = "[-- COMMAND [ARGUMENT...]]",
	.summary =
		"Tell what a command line wants, and if it is allowed, asked about or denied: by "
		"--policy or --preset in their box, else outside of any, where reads alone are "
		"allowed.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status =
		"0 allow; 1 ask or deny, as the first word of the output tells; 2 wrong use; "
		"125 bawn itself failed",
	.run = policy_decide_verb,
};
