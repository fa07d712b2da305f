/*
 * Inferred denials: whatever a command line and a tail say, only what they named is told. Input:
 * cwd, newline, operands up to an empty line, tail.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "broker/infer.h"
#include "policy/denial.h"
#include "policy/policy.h"

#define OPERANDS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rule_ref rules[] = { { .id = "read" }, { .id = "write" }, { .id = "hide" } };

static struct view_path paths[] = {
	{ .class = PATH_READ, .source = "/usr", .target = "/usr", .rule = 0 },
	{ .class = PATH_WRITE, .source = "/h/ws", .target = "/h/ws", .rule = 1 },
	{ .class = PATH_HIDE, .source = "", .target = "/h/ws/.env", .rule = 2 },
	{ .class = PATH_PROTECT, .source = "", .target = "/h/ws/ci", .rule = 2 },
};

static const struct policy policy = {
	.home = "/h",
	.cwd = "/h/ws",
	.workspace = "/h/ws",
	.rules = rules,
	.rule_count = 3,
	.view = { .paths = paths, .count = 4 },
};

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool is_network(enum denial_kind kind)
{
	return kind == DENIAL_NET_CONNECT || kind == DENIAL_NET_RESOLVE;
}

static bool said(const char *word, size_t length, char *const *argv, const char *tail, size_t size)
{
	if (memmem(tail, size, word, length))
		return true;
	for (size_t i = 0; argv[i]; i++)
		if (memmem(argv[i], strlen(argv[i]), word, length))
			return true;
	return false;
}

/* Every component comes from the command line, the tail, the home or the working directory. */
static void check_path(const char *object, const char *cwd, char *const *argv, const char *tail,
		       size_t size)
{
	require(object[0] == '/');
	if (strlen(object) < DENIAL_OBJECT_BYTES - 1)
		require(path_is_clean(object));
	for (const char *at = object + 1; *at;) {
		size_t length = strcspn(at, "/");

		require(said(at, length, argv, tail, size) ||
			memmem(cwd, strlen(cwd), at, length) || memmem("/h", 2, at, length));
		at += length;
		at += *at == '/';
	}
}

/* The host and, behind the last colon, the port. */
static void check_host(const char *object, char *const *argv, const char *tail, size_t size)
{
	const char *colon = strrchr(object, ':');
	size_t host = colon ? (size_t)(colon - object) : strlen(object);

	require(said(object, host, argv, tail, size));
	require(!colon || said(colon + 1, strlen(colon + 1), argv, tail, size));
	require(!strpbrk(object, " /@'\"\n\x1b"));
}

static void check(const struct denial_list *list, const char *cwd, char *const *argv,
		  const char *tail, size_t size)
{
	require(list->count <= DENIAL_LIMIT);
	for (uint32_t i = 0; i < list->count; i++) {
		const struct denial *denial = &list->items[i];

		require(!denial->measured && denial->count && denial->rule.id);
		require(memchr(denial->object, 0, sizeof(denial->object)));
		if (is_network(denial->kind))
			check_host(denial->object, argv, tail, size);
		else
			check_path(denial->object, cwd, argv, tail, size);
	}
}

/* One line of the input as a string of its own; NULL for an empty one or at the end. */
static char *take_line(const uint8_t **data, size_t *size)
{
	const uint8_t *newline = *size ? memchr(*data, '\n', *size) : NULL;
	size_t length = newline ? (size_t)(newline - *data) : *size;
	char *line = length ? strndup((const char *)*data, length) : NULL;

	*data += length + (newline != NULL);
	*size -= length + (newline != NULL);
	return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct denial_list list;
	char *argv[OPERANDS + 1] = { NULL }, *line = take_line(&data, &size), *tail;
	const char *cwd = line && path_is_clean(line) ? line : "/h/ws";

	for (size_t i = 0; i < OPERANDS; i++)
		if (!(argv[i] = take_line(&data, &size)))
			break;
	size = size < INFER_TAIL_BYTES ? size : INFER_TAIL_BYTES;
	tail = malloc(size ? size : 1);
	require(tail);
	if (size)
		memcpy(tail, data, size);
	memset(&list, 0, sizeof(list));
	infer_denials(&policy, (const char *const *)argv, cwd, tail, size, &list);
	check(&list, cwd, argv, tail, size);
	free(tail);
	for (size_t i = 0; argv[i]; i++)
		free(argv[i]);
	free(line);
	return 0;
}
