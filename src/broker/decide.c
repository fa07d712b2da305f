#include "broker/decide.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "policy/sensitive.h"
#include "policy/shell.h"
#include "workspace/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *decide_word(enum wanted_judgement verdict)
{
	return verdict == WANTED_ALLOWS ? "allow" : verdict == WANTED_DENIES ? "deny" : "ask";
}

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

/* A file that is not there yet is where its directory leads to. */
static const char *resolve(void *context, const char *path)
{
	struct arena *arena = ((struct decision_links *)context)->arena;
	const char *slash = strrchr(path, '/'), *real = real_path(arena, path);

	if (real || !slash || slash == path)
		return real;
	real = arena_copy_bytes(arena, path, (size_t)(slash - path));
	real = real ? real_path(arena, real) : NULL;
	return real ? arena_format(arena, "%s%s", real, slash) : NULL;
}

static void begin(struct decision *decision, struct arena *arena, const struct caller *host,
		  const char *cwd)
{
	decision->links.arena = arena;
	decision->facts = (struct classify_facts){
		.cwd = cwd,
		.home = host->home,
		.user = host->known ? host->user : NULL,
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

static void conclude(struct decision *decision)
{
	const struct classify *classify = &decision->classify;
	size_t i = 0;

	decision->verdict = classify_judge(classify);
	while (i < classify->wanted_count &&
	       wanted_judge(&classify->wanted[i]) != decision->verdict)
		i++;
	decision->request = i;
	if (i < classify->wanted_count) {
		const struct wanted *wanted = &classify->wanted[i];

		decision->rule = wanted_rule(wanted->verb);
		decision->reason = wanted->why[0] ? wanted->why : wanted_verb_meaning(wanted->verb);
		return;
	}
	decision->rule = wanted_rule(WANTED_UNCLEAR);
	decision->reason = "more commands, words or nesting than are looked through";
}

void decide_argv(struct decision *decision, struct arena *arena, struct parser *parser,
		 const struct caller *host, const char *cwd, const char *const *argv, size_t argc)
{
	begin(decision, arena, host, cwd);
	if (argc > DECIDE_LIMIT_WORDS)
		decision->classify.failed = true;
	else
		classify_argv(&decision->classify, argv, argc);
	read_texts(decision, parser);
	conclude(decision);
}

void decide_shell(struct decision *decision, struct arena *arena, struct parser *parser,
		  const struct caller *host, const char *cwd, const char *text, size_t length)
{
	begin(decision, arena, host, cwd);
	read_text(decision, parser, text, length, SIZE_MAX);
	read_texts(decision, parser);
	conclude(decision);
}
