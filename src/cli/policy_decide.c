/* `bawn policy decide`: what a command line wants and what becomes of it. Runs nothing. */
#include "cli/policy_verbs.h"
#include "cli/verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "broker/decide.h"
#include "policy/shell.h"
#include "workspace/host.h"
#include "workspace/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_JSON, OPTION_SHELL, OPTION_SHELL_FILE };

static const struct option options[] = {
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
	{ "--shell", "STRING", "decide about a string that a shell would get", false, false,
	  OPTION_SHELL },
	{ "--shell-file", "FILE", "decide about the text in a file, or of standard input: -", false,
	  false, OPTION_SHELL_FILE },
};

struct deciding {
	const char *shell, *file;
	bool json;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct deciding *deciding = context;

	(void)error;
	if (option->id == OPTION_JSON)
		deciding->json = true;
	else if (option->id == OPTION_SHELL)
		deciding->shell = value;
	else
		deciding->file = value;
	return 0;
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

static void request_json(const struct decision *decision, size_t index, struct json *json)
{
	const struct wanted *wanted = &decision->classify.wanted[index];
	const struct rule_ref rule = wanted_rule(wanted->verb);

	json_object(json, NULL);
	json_string(json, "verdict", decide_word(wanted_judge(wanted)));
	json_string(json, "verb", wanted_verb_name(wanted->verb));
	json_string(json, "target", wanted->target);
	json_bool(json, "exact", wanted->exact);
	json_unsigned(json, "segment", wanted->segment);
	json_unsigned(json, "position", wanted->position);
	json_string(json, "reason",
		    wanted->why[0] ? wanted->why : wanted_verb_meaning(wanted->verb));
	rule_json(&rule, "rule", json);
	json_object_end(json);
}

static void segment_json(const struct decision *decision, size_t index, struct json *json)
{
	const struct classify_word *words = NULL;
	size_t count = classify_segment(&decision->classify, index, &words);

	json_array(json, NULL);
	for (size_t i = 0; i < count; i++)
		json_string(json, NULL, words[i].text);
	json_array_end(json);
}

static void print_json(const struct decision *decision, struct buffer *buffer)
{
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_string(&json, "verdict", decide_word(decision->verdict));
	json_string(&json, "reason", decision->reason);
	rule_json(&decision->rule, "rule", &json);
	if (decision->request < decision->classify.wanted_count)
		json_unsigned(&json, "request", decision->request);
	else
		json_null(&json, "request");
	json_array(&json, "segments");
	for (size_t i = 0; i < decision->classify.segment_count; i++)
		segment_json(decision, i, &json);
	json_array_end(&json);
	json_array(&json, "requests");
	for (size_t i = 0; i < decision->classify.wanted_count; i++)
		request_json(decision, i, &json);
	json_array_end(&json);
	json_object_end(&json);
	buffer_text(buffer, "\n");
}

static void print_segment(const struct decision *decision, size_t index, struct buffer *buffer)
{
	const struct classify_word *words = NULL;
	size_t count = classify_segment(&decision->classify, index, &words);

	buffer_format(buffer, "  %zu:", index + 1);
	for (size_t i = 0; i < count; i++) {
		buffer_byte(buffer, ' ');
		buffer_visible(buffer, words[i].text);
	}
	buffer_byte(buffer, '\n');
}

static void print_request(const struct wanted *wanted, struct buffer *buffer)
{
	const struct rule_ref rule = wanted_rule(wanted->verb);

	buffer_format(buffer, "    %-5s  %s ", decide_word(wanted_judge(wanted)),
		      wanted_verb_name(wanted->verb));
	buffer_visible(buffer, wanted->target);
	if (!wanted->exact)
		buffer_text(buffer, " (known only at run time)");
	buffer_text(buffer, "  (");
	rule_print(&rule, buffer);
	buffer_format(buffer, ": %s)\n",
		      wanted->why[0] ? wanted->why : wanted_verb_meaning(wanted->verb));
}

/* "ask: fs.write x (built-in "command.fs.write": makes or changes a file)", then all of it. */
static void print_text(const struct decision *decision, struct buffer *buffer)
{
	const struct classify *classify = &decision->classify;

	buffer_text(buffer, decide_word(decision->verdict));
	if (decision->verdict != WANTED_ALLOWS) {
		buffer_text(buffer, ": ");
		if (decision->request < classify->wanted_count) {
			const struct wanted *wanted = &classify->wanted[decision->request];

			buffer_format(buffer, "%s ", wanted_verb_name(wanted->verb));
			buffer_visible(buffer, wanted->target);
			buffer_byte(buffer, ' ');
		}
		buffer_byte(buffer, '(');
		rule_print(&decision->rule, buffer);
		buffer_format(buffer, ": %s)", decision->reason);
	}
	buffer_byte(buffer, '\n');
	/* what is no command's, as a redirection alone, is told as the first one's */
	for (size_t i = 0; i < classify->segment_count || i == 0; i++) {
		if (i < classify->segment_count)
			print_segment(decision, i, buffer);
		for (size_t j = 0; j < classify->wanted_count; j++)
			if (classify->wanted[j].segment == i)
				print_request(&classify->wanted[j], buffer);
	}
}

static int say(const struct decision *decision, bool as_json)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	if (as_json)
		print_json(decision, &text);
	else
		print_text(decision, &text);
	if (text.failed || fd_write_all(1, text.data, text.length) < 0) {
		complain("the decision could not be printed");
		return 125;
	}
	return decision->verdict == WANTED_ALLOWS ? 0 : 1;
}

static int decide(const struct deciding *deciding, struct arena *arena, const char *const *argv,
		  size_t argc)
{
	struct parser CLEANUP_PARSER parser = PARSER_NONE;
	struct error error = ERROR_NONE;
	struct decision decision = { 0 };
	struct caller host;
	const char *cwd = NULL;
	char *text = NULL;
	size_t length = 0;
	int result = host_gather(arena, &host, &error);

	if (result == 0 && deciding->file)
		result = read_file(deciding->file, arena, &text, &length, &error);
	if (result < 0) {
		complain(error.message);
		return 125;
	}
	/* a directory that is gone, or cannot be reached, is one that is not known */
	if (root_resolve(".", arena, &cwd, &error) < 0)
		cwd = NULL;
	if (deciding->file)
		decide_shell(&decision, arena, &parser, &host, cwd, text, length);
	else if (deciding->shell)
		decide_shell(&decision, arena, &parser, &host, cwd, deciding->shell,
			     strlen(deciding->shell));
	else
		decide_argv(&decision, arena, &parser, &host, cwd, argv, argc);
	return say(&decision, deciding->json);
}

static int policy_decide_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct deciding deciding = { 0 };
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
	return decide(&deciding, &arena, (const char *const *)argv + first, (size_t)(argc - first));
}

const struct verb verb_policy_decide = {
	.name = "policy decide",
	.synopsis = "[-- COMMAND [ARGUMENT...]]",
	.summary =
		"Tell what a command line wants, and whether it is allowed, asked about or denied.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status =
		"0 allow; 1 ask or deny, as the first word of the output tells; 2 wrong use; "
		"125 bawn itself failed",
	.run = policy_decide_verb,
};
