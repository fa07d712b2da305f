/*
 * bawn-git-lab: git's configuration as this project reads and merges it, to be held against git
 * itself by tests/run/test_git_config.py.
 *
 *   list FILE               prints what `git config --list -z -f FILE` prints
 *   merge BEFORE AFTER NOW  prints the new text of NOW, or NOW itself where nothing is to be
 *                           written; on standard error each key that is held, one a line
 */
#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *message)
{
	(void)fprintf(stderr, "%s\n", message);
	return 1;
}

static struct git_text read_file(struct arena *arena, const char *path)
{
	int CLEANUP_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	char *bytes = arena_allocate(arena, GIT_CONFIG_LIMIT_BYTES + 1);
	ssize_t length = fd < 0 || !bytes ? 0 : fd_read_all(fd, bytes, GIT_CONFIG_LIMIT_BYTES + 1);

	return (struct git_text){ bytes, length > 0 ? (size_t)length : 0 };
}

static int list(struct git_text text)
{
	struct git_config_reader CLEANUP_GIT_CONFIG reader;
	enum git_item item;

	git_config_begin(&reader, text, NULL);
	while ((item = git_config_next(&reader)) != GIT_ITEM_END) {
		if (item == GIT_ITEM_BAD)
			return fail("bad");
		if (item != GIT_ITEM_ENTRY)
			continue;
		(void)printf("%s%s%s", git_config_text(&reader.section),
			     reader.section.length ? "." : "", git_config_text(&reader.key));
		if (reader.has_value)
			(void)printf("\n%s", git_config_text(&reader.value));
		(void)putchar('\0');
	}
	return fflush(stdout) == 0 ? 0 : 1;
}

static int merge(struct arena *arena, char **paths)
{
	struct git_text texts[3];
	struct git_config_merge result;
	struct error error = ERROR_NONE;

	for (size_t i = 0; i < 3; i++)
		texts[i] = read_file(arena, paths[i]);
	if (git_config_merge(arena, texts[0], texts[1], texts[2], &result, &error) < 0)
		return fail(error.message);
	for (size_t i = 0; i < result.held_count; i++)
		(void)fprintf(stderr, "%s\n", result.held[i].key);
	if (result.text)
		texts[2] = (struct git_text){ result.text, result.length };
	return fd_write_all(STDOUT_FILENO, texts[2].bytes, texts[2].length) < 0;
}

int main(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };

	if (argc == 3 && strcmp(argv[1], "list") == 0)
		return list(read_file(&arena, argv[2]));
	if (argc == 5 && strcmp(argv[1], "merge") == 0)
		return merge(&arena, argv + 2);
	return fail("usage: bawn-git-lab list FILE | merge BEFORE AFTER NOW");
}
