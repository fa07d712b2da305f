#include "broker/decide.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/policy.h"
#include "policy/sensitive.h"
#include "policy/shell.h"
#include "workspace/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Where the kernel leads to; NULL where that cannot be told. Opens nothing, not even a FIFO. */
static const char *real_path(struct arena *arena, const char *path)
{
	char link[64], target[SENSITIVE_LIMIT_BYTES];
	int CLEANUP_FD fd = open(path, O_PATH | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return NULL;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, target, sizeof(target));
	if (length <= 0 || (size_t)length == sizeof(target))
		return NULL;
	return arena_copy_bytes(arena, target, (size_t)length);
}

/* Where a name of the box is the same name of the host's. */
static bool is_shown_as_it_is(const struct policy *policy, const char *path)
{
	const struct view_path *row = path_is_clean(path) ? view_lookup(&policy->view, path) : NULL;

	return row &&
	       (row->class == PATH_READ || row->class == PATH_PROGRAM || row->class == PATH_WRITE ||
		row->class == PATH_STAGE || row->class == PATH_PROTECT) &&
	       strcmp(row->source, row->target) == 0;
}

/* A file that is not there yet is where its directory leads to. */
static const char *resolve(void *context, const char *path)
{
	const struct decision_links *links = context;
	struct arena *arena = links->arena;
	const char *slash = strrchr(path, '/'), *real;

	/* nothing is told of what the box does not show */
	if (links->policy && !is_shown_as_it_is(links->policy, path))
		return NULL;
	real = real_path(arena, path);
	if (real || !slash || slash == path)
		return real;
	real = arena_copy_bytes(arena, path, (size_t)(slash - path));
	real = real ? real_path(arena, real) : NULL;
	return real ? arena_format(arena, "%s%s", real, slash) : NULL;
}

static void begin(struct decision *decision, struct arena *arena, const struct decide_place *place)
{
	const struct policy *policy = place->policy;
	const struct caller *host = place->host;

	decision->links.arena = arena;
	decision->links.policy = policy;
	decision->judging = (struct verdict_facts){ .policy = policy };
	if (policy) {
		program_files_begin(&decision->files, policy, place->environ,
				    place->cwd ? place->cwd : policy->cwd, arena);
		decision->files.classify = &decision->classify;
		decision->judging.day = (uint64_t)(time(NULL) / (24 * 60 * 60));
		decision->judging.is_program = program_files_match;
		decision->judging.digest = program_files_digest;
		decision->judging.context = &decision->files;
	}
	decision->facts = (struct classify_facts){
		.cwd = place->cwd,
		.home = policy ? policy->home : host->home,
		.user = policy	    ? policy->user :
			host->known ? host->user :
				      NULL,
		.resolve = resolve,
		.context = &decision->links,
	};
	decision->classify = (struct classify){ .arena = arena, .facts = &decision->facts };
}

/* Static text: it stays with the request. */
static const char *why_unread(int code)
{
	switch (code) {
	case -EFBIG:
		return "too long to be parsed";
	case -ETIMEDOUT:
		return "takes too long to parse";
	case -ENOSYS:
		return "not parsed: this build has no parser for shell strings";
	default:
		return "not parsed: bawn-parse could not be started or gave no good answer";
	}
}

/* A text, or classify->texts[index] where `index` is not that of none. */
static void read_text(struct decision *decision, struct parser *parser, const char *text,
		      size_t length, size_t index)
{
	struct classify *classify = &decision->classify;
	struct error error = ERROR_NONE;
	struct shell_tree tree;
	int result = parser_read(parser, classify->arena, text, length, &tree, &error);

	if (result < 0)
		shell_refuse(classify, why_unread(result));
	else if (index == SIZE_MAX)
		shell_classify(classify, &tree);
	else
		shell_classify_text(classify, index, &tree);
}

/* What stands in quotes for a shell may hand on more of it. */
static void read_texts(struct decision *decision, struct parser *parser)
{
	struct classify *classify = &decision->classify;

	while (classify->texts_read < classify->text_count && !classify->failed) {
		const char *text = classify->texts[classify->texts_read].text;

		read_text(decision, parser, text, strlen(text), classify->texts_read);
	}
}

void decide_argv(struct decision *decision, struct arena *arena, struct parser *parser,
		 const struct decide_place *place, const char *const *argv, size_t argc)
{
	begin(decision, arena, place);
	if (argc > DECIDE_LIMIT_WORDS)
		decision->classify.failed = true;
	else
		classify_argv(&decision->classify, argv, argc);
	read_texts(decision, parser);
	verdict_make(&decision->classify, &decision->judging, &decision->verdicts);
}

void decide_shell(struct decision *decision, struct arena *arena, struct parser *parser,
		  const struct decide_place *place, const char *text, size_t length)
{
	begin(decision, arena, place);
	/* for exceptions: what holds a NUL is none that could be one */
	decision->judging.text = memchr(text, '\0', length) ? "'" :
							      arena_copy_bytes(arena, text, length);
	if (!decision->judging.text)
		decision->classify.failed = true;
	read_text(decision, parser, text, length, SIZE_MAX);
	read_texts(decision, parser);
	verdict_make(&decision->classify, &decision->judging, &decision->verdicts);
}

void decide_as_gate(struct decision *decision)
{
	const struct policy *policy = decision->judging.policy;
	const struct verdict allowed = {
		WANTED_ALLOWS, rule_builtin(RULE_RUN_ALLOWED),
		"no rule of the policy speaks of requests: the wall decides"
	};

	if (!policy || ruling_decides(policy))
		return;
	for (size_t i = 0; decision->verdicts.rows && i < decision->classify.wanted_count; i++)
		decision->verdicts.rows[i] = allowed;
	decision->verdicts.whole = allowed;
	decision->verdicts.request = decision->classify.wanted_count;
}
