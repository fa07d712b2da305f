/*
 * bawn-sweep-lab: the look through a work tree without a task, for tests/run/test_sweep.py. Never
 * installed.
 *
 *   sweep WORKSPACE STATE TASK [covered PATH | absent PATH | limit N | clock other]...
 *          begins, prints "ready", waits for a line, ends; then again, with what was seen, for each
 *          further line. Prints one line of JSON for each.
 *   list STATE            what is held, a line of JSON each
 *   accept STATE ID
 *   reject STATE ID
 *
 * Exit 0; 1: refused, in words on standard error.
 */
#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "workspace/git_held_tree.h"
#include "workspace/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT 64

static const char *const fates[] = { "held", "disarmed", "left" };

static int fail(const struct error *error)
{
	(void)fprintf(stderr, "%s\n", error->message);
	return 1;
}

static void print(struct buffer *buffer)
{
	buffer_byte(buffer, '\n');
	(void)fwrite(buffer->data, 1, buffer->length, stdout);
	(void)fflush(stdout);
}

static void tell_item(const struct sweep_found *found, struct json *json)
{
	json_object(json, NULL);
	change_members(&found->change, json);
	json_string(json, "fate", fates[found->fate]);
	json_string(json, "reason", found->reason);
	json_string(json, "fault", found->fault);
	json_string(json, "now", found->now);
	json_bool(json, "restored", found->is_restored);
	json_string(json, "id", found->id);
	json_object_end(json);
}

static void tell(const struct sweep_result *result, uint64_t begin_ns, uint64_t end_ns)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct json json;

	json_begin(&json, &buffer);
	json_object(&json, NULL);
	json_array(&json, "items");
	for (size_t i = 0; i < result->count; i++)
		tell_item(&result->items[i], &json);
	json_array_end(&json);
	json_unsigned(&json, "found", result->found);
	json_unsigned(&json, "left", result->left);
	json_string(&json, "unfinished", result->unfinished);
	json_unsigned(&json, "names", result->names);
	json_unsigned(&json, "directories", result->directories);
	json_unsigned(&json, "begin_ns", begin_ns);
	json_unsigned(&json, "end_ns", end_ns);
	json_object_end(&json);
	print(&buffer);
}

struct lab {
	struct sweep_order order;
	struct sweep_known covered[LIMIT];
	const char *absent[LIMIT];
	struct sweep_known *seen;
	size_t seen_count;
	enum sweep_clock clock;
};

static bool take_words(struct lab *lab, char **words)
{
	for (; words[0] && words[1]; words += 2) {
		struct stat status;

		if (strcmp(words[0], "limit") == 0) {
			lab->order.limit_names = strtoull(words[1], NULL, 10);
		} else if (strcmp(words[0], "clock") == 0) {
			lab->clock = strcmp(words[1], "other") == 0 ? SWEEP_CLOCK_OTHER :
								      SWEEP_CLOCK_KERNEL;
		} else if (strcmp(words[0], "absent") == 0 && lab->order.absent_count < LIMIT) {
			lab->absent[lab->order.absent_count++] = words[1];
		} else if (strcmp(words[0], "covered") == 0 && lab->order.covered_count < LIMIT &&
			   lstat(words[1], &status) == 0) {
			lab->covered[lab->order.covered_count++] =
				(struct sweep_known){ .device = status.st_dev,
						      .inode = status.st_ino };
		} else {
			return false;
		}
	}
	lab->order.covered = lab->covered;
	lab->order.absent = lab->absent;
	return !words[0];
}

/* What was seen outlives the memory of one round. */
static bool keep_seen(struct lab *lab, const struct sweep_result *result)
{
	free(lab->seen);
	lab->seen = calloc(result->seen_count + 1, sizeof(*lab->seen));
	lab->seen_count = lab->seen ? result->seen_count : 0;
	for (size_t i = 0; i < lab->seen_count; i++)
		lab->seen[i] = result->seen[i];
	return lab->seen;
}

static int run_round(struct lab *lab, bool *ret_is_end, struct error *error)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct sweep CLEANUP_SWEEP sweep = SWEEP_NONE;
	struct sweep_result found;
	uint64_t begin = clock_monotonic_ns(), end;
	const struct sweep_start start = { .workspace = lab->order.workspace,
					   .seen = lab->seen,
					   .seen_count = lab->seen_count,
					   .clock = lab->clock };
	int result = sweep_begin(&start, &arena, &sweep, error);
	int byte;

	begin = clock_monotonic_ns() - begin;
	if (result < 0)
		return result;
	(void)puts("ready");
	(void)fflush(stdout);
	while ((byte = getchar()) != '\n' && byte != EOF)
		;
	*ret_is_end = byte == EOF;
	if (*ret_is_end)
		return 0;
	lab->order.sweep = &sweep;
	end = clock_monotonic_ns();
	result = sweep_end(&lab->order, &arena, &found, error);
	end = clock_monotonic_ns() - end;
	if (result < 0)
		return result;
	tell(&found, begin, end);
	return keep_seen(lab, &found) ? 0 : -ENOMEM;
}

static int run(const char *workspace, int state_fd, const char *task, char **words)
{
	struct lab lab = { .order = {
				   .workspace = workspace, .task = task, .state_fd = state_fd } };
	struct error error = ERROR_NONE;
	bool is_end = false;
	int result = take_words(&lab, words) ? 0 : 2;

	while (result == 0 && !is_end)
		result = run_round(&lab, &is_end, &error);
	free(lab.seen);
	return result < 0 ? fail(&error) : result;
}

static void tell_held(const struct git_held_tree *held)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct json json;

	json_begin(&json, &buffer);
	json_object(&json, NULL);
	json_string(&json, "id", held->id);
	json_string(&json, "task", held->task);
	json_string(&json, "path", held->path);
	json_string(&json, "kind", git_held_tree_kind_name(held->kind));
	json_string(&json, "reason", held->reason);
	json_object_end(&json);
	print(&buffer);
}

/* id NULL: lists all. */
static int review(int state_fd, const char *verb, const char *id)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct error error = ERROR_NONE;
	struct git_held_tree *items;
	size_t count, bad;
	int result = git_held_tree_list(state_fd, &arena, &items, &count, &bad, &error);

	for (size_t i = 0; i < count && result == 0; i++) {
		if (!id)
			tell_held(&items[i]);
		else if (strcmp(items[i].id, id) == 0)
			return (strcmp(verb, "accept") == 0 ?
					git_held_tree_accept :
					git_held_tree_reject)(state_fd, &items[i], &error) < 0 ?
				       fail(&error) :
				       0;
	}
	if (result < 0)
		return fail(&error);
	return id || bad ? 1 : 0;
}

int main(int argc, char **argv)
{
	int CLEANUP_FD state = -1;

	if (argc < 3)
		return 2;
	state = open(argv[argc > 4 ? 3 : 2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state < 0)
		return 2;
	if (strcmp(argv[1], "sweep") == 0 && argc > 4)
		return run(argv[2], state, argv[4], argv + 5);
	if (strcmp(argv[1], "list") == 0)
		return review(state, argv[1], NULL);
	return argc == 4 ? review(state, argv[1], argv[3]) : 2;
}
