/*
 * The commit engine without a box, for tests/run/test_git_commit.py. Never installed.
 *
 *	run WORKSPACE TASK STATE GITDIR UPPER -- COMMAND...	snapshot, the command, commit
 *	snapshot TASK GITDIR			takes and keeps one
 *	commit WORKSPACE TASK STATE GITDIR UPPER	from the kept one, as after a kill
 *	unlooked WORKSPACE TASK STATE GITDIR UPPER	the same, where the work tree was not
 *						looked through
 *	live WORKSPACE TASK STATE GITDIR UPPER	the same, where the task goes on afterwards: then
 *						a new snapshot is taken and kept
 *	held STATE				what is held, one line each: id kind path key reason
 *	accept STATE ID | reject STATE ID
 *	time GITDIR N				microseconds of each snapshot
 *	pack PACK INDEX [N]			looks a pack through; with N writes that one of its
 *						objects to standard output, as a loose one
 *	loose FILE ID				looks a loose object through
 *
 * TASK and STATE are directories. Outcomes are printed one a line: kind, path, key, reason; then
 * "us N", how long the engine took. Exit 0; 1 with the error on standard error.
 */
#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/git_commit.h"
#include "workspace/git_content.h"
#include "workspace/git_object.h"
#include "workspace/git_renew.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct arena arena;
static struct error error;

static int open_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		error_set(&error, 2, "%s cannot be opened", path);
	return fd;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Bytes of a task, in one visible line. */
static const char *visible(const char *text)
{
	struct buffer buffer = { .arena = &arena };

	buffer_visible(&buffer, text ? text : "");
	return buffer.data ? buffer.data : "";
}

static int report(const struct git_commit_result *result, uint64_t start_ns)
{
	static const char *const kinds[] = { "applied", "held", "deferred", "unfinished" };
	uint64_t us = (clock_monotonic_ns() - start_ns) / 1000;

	for (size_t i = 0; i < result->count; i++) {
		const struct git_outcome *outcome = &result->outcomes[i];

		printf("%s\t%s\t%s\t%s\n", kinds[outcome->kind], visible(outcome->path),
		       visible(outcome->key), visible(outcome->reason));
	}
	printf("us %" PRIu64 "\n", us);
	return 0;
}

enum moment { LAST, LAST_UNLOOKED, BETWEEN };

static int commit(char **words, struct git_snapshot *snapshot, enum moment moment)
{
	int task_fd = open_directory(words[1]), state_fd = open_directory(words[2]);
	struct git_cover cover = { .path = words[3],
				   .fd = open_directory(words[3]),
				   .upper_fd = open_directory(words[4]) };
	struct git_snapshot loaded = GIT_SNAPSHOT_NONE;
	struct git_snapshot CLEANUP_GIT_SNAPSHOT next = GIT_SNAPSHOT_NONE;
	struct git_commit commit = { .covers = &cover,
				     .count = 1,
				     .snapshot = snapshot,
				     .workspace = words[0],
				     .task = base_name(words[1]),
				     .task_fd = task_fd,
				     .state_fd = state_fd,
				     .is_final = moment != BETWEEN,
				     .holds_index = moment == LAST_UNLOOKED };
	struct git_commit_result result;
	uint64_t start_ns;

	if (error.code)
		return -1;
	if (!snapshot) {
		if (git_snapshot_load(task_fd, &arena, &loaded, &error) < 0)
			return -1;
		commit.snapshot = &loaded;
	}
	start_ns = clock_monotonic_ns();
	if (git_commit_run(&commit, &arena, &result, &error) < 0)
		return -1;
	(void)report(&result, start_ns);
	if (moment != BETWEEN)
		return 0;
	if (git_renew(&cover, 1, snapshot ? snapshot : &loaded, result.deferred, &arena, &next,
		      &error) < 0)
		return -1;
	return git_snapshot_save(&next, task_fd, &error);
}

static int run_command(char **argv)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return error_set(&error, 5, "%s failed", argv[0]);
	return 0;
}

static int take(const char *path, struct git_snapshot *ret_snapshot)
{
	struct git_cover cover = { .path = path, .fd = open_directory(path), .upper_fd = -1 };

	return error.code ? -1 : git_snapshot_take(&cover, 1, &arena, ret_snapshot, &error);
}

static int run(char **words)
{
	struct git_snapshot CLEANUP_GIT_SNAPSHOT snapshot = GIT_SNAPSHOT_NONE;

	if (take(words[3], &snapshot) < 0 || run_command(words + 6) < 0)
		return -1;
	return commit(words, &snapshot, LAST);
}

static int keep(char **words)
{
	struct git_snapshot CLEANUP_GIT_SNAPSHOT snapshot = GIT_SNAPSHOT_NONE;

	if (take(words[1], &snapshot) < 0)
		return -1;
	return git_snapshot_save(&snapshot, open_directory(words[0]), &error);
}

static int time_snapshots(char **words)
{
	for (long i = strtol(words[1], NULL, 10); i > 0; i--) {
		struct git_snapshot CLEANUP_GIT_SNAPSHOT snapshot = GIT_SNAPSHOT_NONE;
		uint64_t start_ns = clock_monotonic_ns();

		arena_reset(&arena);
		if (take(words[0], &snapshot) < 0)
			return -1;
		printf("%" PRIu64 "\n", (clock_monotonic_ns() - start_ns) / 1000);
	}
	return 0;
}

static int look_at_pack(char **words, int count)
{
	int CLEANUP_FD pack_fd = open(words[0], O_RDONLY | O_CLOEXEC);
	int CLEANUP_FD index_fd = open(words[1], O_RDONLY | O_CLOEXEC);
	struct git_pack CLEANUP_GIT_PACK *pack = NULL;
	uint64_t work_bytes = GIT_CONTENT_LIMIT_WORK_BYTES;
	int result = git_pack_open(pack_fd, index_fd, 20, &pack);

	if (result == 0 && count > 2)
		result = git_pack_save(pack, strtoul(words[2], NULL, 10), STDOUT_FILENO,
				       &work_bytes);
	else if (result == 0)
		result = git_pack_check(pack, &work_bytes);
	return result < 0 ? error_errno(&error, result, "the pack") : 0;
}

static int look_at_loose(char **words)
{
	int CLEANUP_FD fd = open(words[0], O_RDONLY | O_CLOEXEC);
	size_t id_bytes = strlen(words[1]) / 2;
	char path[GIT_OBJECT_PATH_BYTES];
	unsigned char id[GIT_CONTENT_ID_BYTES];
	uint64_t work_bytes = GIT_CONTENT_LIMIT_WORK_BYTES;
	int result = -EINVAL;

	(void)snprintf(path, sizeof(path), "%.2s/%s", words[1], words[1] + 2);
	if (git_object_id(path, id_bytes, id))
		result = git_content_check(fd, id, id_bytes, &work_bytes);
	return result < 0 ? error_errno(&error, result, "the object") : 0;
}

static int held(const char *word, char **words)
{
	int state_fd = open_directory(words[0]), result = 0;
	struct git_held *items;
	size_t count, bad;

	if (error.code || git_held_list(state_fd, &arena, &items, &count, &bad, &error) < 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		struct git_held item;

		if (strcmp(word, "held") == 0)
			printf("%s\t%s\t%s\t%s\t%s\n", items[i].id,
			       git_held_kind_name(items[i].kind), visible(items[i].path),
			       visible(items[i].key), items[i].reason);
		else if (strcmp(items[i].id, words[1]) != 0)
			continue;
		else if (strcmp(word, "reject") == 0)
			result = git_held_remove(state_fd, &items[i], &error);
		else if ((result = git_held_read(state_fd, &items[i], &arena, &item, &error)) == 0)
			result = git_held_accept(&item, &arena, &error);
	}
	if (bad)
		printf("bad %zu\n", bad);
	return result;
}

int main(int argc, char **argv)
{
	const char *word = argc > 2 ? argv[1] : "";
	int result = -1;

	if (strcmp(word, "run") == 0 && argc > 8)
		result = run(argv + 2);
	else if (strcmp(word, "snapshot") == 0 && argc == 4)
		result = keep(argv + 2);
	else if (strcmp(word, "commit") == 0 && argc == 7)
		result = commit(argv + 2, NULL, LAST);
	else if (strcmp(word, "unlooked") == 0 && argc == 7)
		result = commit(argv + 2, NULL, LAST_UNLOOKED);
	else if (strcmp(word, "live") == 0 && argc == 7)
		result = commit(argv + 2, NULL, BETWEEN);
	else if (strcmp(word, "time") == 0 && argc == 4)
		result = time_snapshots(argv + 2);
	else if (strcmp(word, "pack") == 0 && argc >= 4)
		result = look_at_pack(argv + 2, argc - 2);
	else if (strcmp(word, "loose") == 0 && argc == 4)
		result = look_at_loose(argv + 2);
	else
		result = held(word, argv + 2);
	if (result < 0)
		(void)fprintf(stderr, "%s\n", error.message);
	(void)fflush(stdout);
	return result < 0;
}
