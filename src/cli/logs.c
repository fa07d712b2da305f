#include "cli/takeover.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/client.h"
#include "broker/holder.h"
#include "broker/spool.h"
#include "broker/terminal.h"
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_BYTES 16384
/* How long we sleep at the most: the end of a task is no news of its files. */
#define LOOK_MS 250
/* "12:34:56.789 " */
#define TIME_BYTES 32

enum { OPTION_FOLLOW, OPTION_TIMES, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "-f", NULL, "go on with what comes, until the action has ended", false, false,
	  OPTION_FOLLOW },
	{ "--times", NULL, "put the time before each line", false, false, OPTION_TIMES },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct sink {
	int fd;
	bool is_terminal;
	bool is_inside; /* of a line */
	struct terminal_filter filter;
};

struct logs {
	const char *state_path;
	bool is_following, has_times;
	struct sink sinks[SPOOL_STREAM_COUNT];
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct logs *logs = context;

	switch (option->id) {
	case OPTION_FOLLOW:
		logs->is_following = true;
		return 0;
	case OPTION_TIMES:
		logs->has_times = true;
		return 0;
	default:
		if (!value[0])
			return error_set(error, EINVAL, "option %s has an empty value",
					 option->name);
		logs->state_path = value;
		return 0;
	}
}

static int put(struct sink *sink, const char *bytes, size_t length)
{
	char shown[TERMINAL_GROWTH * (CHUNK_BYTES + TERMINAL_SEQUENCE_BYTES)];

	if (!sink->is_terminal)
		return fd_write_all(sink->fd, bytes, length);
	length = terminal_filter(&sink->filter, bytes, length, shown);
	return fd_write_all(sink->fd, shown, length);
}

static int put_time(struct sink *sink, uint64_t wall_ns)
{
	char text[TIME_BYTES];
	time_t seconds = (time_t)(wall_ns / 1000000000u);
	struct tm local;
	size_t length;

	if (!localtime_r(&seconds, &local))
		return -EOVERFLOW;
	length = strftime(text, sizeof(text), "%H:%M:%S", &local);
	length += (size_t)snprintf(text + length, sizeof(text) - length, ".%03u ",
				   (unsigned)(wall_ns / 1000000u % 1000u));
	return put(sink, text, length);
}

/* A line gets the time at which its first byte came. */
static int put_lines(struct sink *sink, const char *bytes, size_t length, uint64_t wall_ns)
{
	int result = 0;

	while (length && result == 0) {
		const char *end = memchr(bytes, '\n', length);
		size_t part = end ? (size_t)(end - bytes) + 1 : length;

		if (!sink->is_inside)
			result = put_time(sink, wall_ns);
		if (result == 0)
			result = put(sink, bytes, part);
		sink->is_inside = !end;
		bytes += part;
		length -= part;
	}
	return result;
}

static int put_chunk(struct logs *logs, const struct spool_reader *reader,
		     const struct spool_chunk *chunk)
{
	struct sink *sink = &logs->sinks[chunk->stream];
	char bytes[CHUNK_BYTES];
	uint64_t from = 0;

	for (;;) {
		ssize_t count = spool_read(reader, chunk, from, bytes, sizeof(bytes));
		int result;

		if (count <= 0)
			return (int)count;
		result = logs->has_times ? put_lines(sink, bytes, (size_t)count,
						     reader->start_wall_ns + chunk->time_ns) :
					   put(sink, bytes, (size_t)count);
		if (result < 0)
			return result;
		from += (uint64_t)count;
	}
}

/* Prints what there is. A positive number: something came. */
static int put_all(struct logs *logs, struct spool_reader *reader)
{
	struct spool_chunk chunk;
	int result, any = 0;

	while ((result = spool_next(reader, &chunk)) > 0) {
		any = 1;
		if (chunk.kind == SPOOL_BYTES)
			result = put_chunk(logs, reader, &chunk);
		else if (chunk.kind == SPOOL_CUT)
			complain(chunk.stream == SPOOL_OUT ?
					 "standard output was cut here: the limit (--output-cap) "
					 "was reached" :
					 "standard error was cut here: the limit (--output-cap) "
					 "was reached");
		if (result < 0)
			return result;
	}
	return result < 0 ? result : any;
}

static void finish_sinks(struct logs *logs)
{
	static const char reset[] = "\033[0m";

	for (unsigned i = 0; i < SPOOL_STREAM_COUNT; i++) {
		struct sink *sink = &logs->sinks[i];
		char shown[TERMINAL_GROWTH * TERMINAL_SEQUENCE_BYTES];

		if (!sink->is_terminal)
			continue;
		(void)fd_write_all(sink->fd, shown, terminal_filter_end(&sink->filter, shown));
		(void)fd_write_all(sink->fd, reset, sizeof(reset) - 1);
	}
}

/* News of the action's files; without inotify we look as often as we look for the task's end. */
static int open_watch(int task_fd, const char *action)
{
	int CLEANUP_FD fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", task_fd, action);
	if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY | IN_ONLYDIR | IN_DONT_FOLLOW) < 0)
		return -1;
	return TAKE_FD(fd);
}

static void wait_for_news(int watch_fd)
{
	struct pollfd entry = { .fd = watch_fd, .events = POLLIN };
	char events[4096];

	if (poll(&entry, 1, LOOK_MS) > 0)
		(void)!read(watch_fd, events, sizeof(events));
}

static int follow(struct logs *logs, const struct client *client, const char *id, int task_fd,
		  const char *action, struct spool_reader *reader)
{
	int CLEANUP_FD watch = open_watch(task_fd, action);

	for (;;) {
		/* looked at before: what is written until the end is still printed */
		bool is_live = holder_exists(client->state.tasks_fd, id);
		int result = put_all(logs, reader);

		if (result < 0 || (result == 0 && (spool_is_over(reader) || !is_live)))
			return result;
		if (result == 0)
			wait_for_news(watch);
	}
}

/* The action that was started last. "": none has written yet, or none is kept. */
static void find_newest(int task_fd, char action[static CONTROL_ID_BYTES])
{
	struct directory CLEANUP_DIRECTORY directory;
	uint64_t newest = 0;
	const char *name;

	action[0] = '\0';
	(void)directory_open(&directory, task_fd, ".", 0);
	while ((name = directory_next(&directory))) {
		struct spool_reader reader = SPOOL_READER_NONE;
		struct error error;

		if (!control_is_id(name, 'a') ||
		    spool_open_read(task_fd, name, &reader, &error) < 0)
			continue;
		if (reader.start_wall_ns >= newest) {
			newest = reader.start_wall_ns;
			(void)snprintf(action, CONTROL_ID_BYTES, "%s", name);
		}
		spool_reader_close(&reader);
	}
}

static int print_logs(struct logs *logs, const struct client *client, const char *id, int task_fd,
		      const char *action)
{
	struct spool_reader reader = SPOOL_READER_NONE;
	struct error error = ERROR_NONE;
	int result = spool_open_read(task_fd, action, &reader, &error);

	if (result < 0) {
		complain(result == -ENOENT ? "that action has written nothing, or is no longer "
					     "kept; `bawn ps` lists actions" :
					     error.message);
		return result == -ENOENT ? 1 : 125;
	}
	result = logs->is_following ? follow(logs, client, id, task_fd, action, &reader) :
				      put_all(logs, &reader);
	finish_sinks(logs);
	spool_reader_close(&reader);
	if (result >= 0 || result == -EPIPE)
		return 0;
	(void)error_errno(&error, result, "the output of %s", action);
	complain(error.message);
	return 125;
}

static int show(struct logs *logs, const char *word, const char *wanted)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct client CLEANUP_CLIENT client = CLIENT_NONE;
	char newest[CONTROL_ID_BYTES];
	int CLEANUP_FD task_fd = -1;
	const char *id;
	int status = takeover_open(logs->state_path, word, &arena, &client, &id);

	if (status)
		return status;
	task_fd = fd_open_beneath(client.state.tasks_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	for (;;) {
		find_newest(task_fd, newest);
		if (wanted || newest[0] || !logs->is_following ||
		    !holder_exists(client.state.tasks_fd, id))
			break;
		wait_for_news(-1);
	}
	if (!wanted && !newest[0]) {
		complain(
			"the task has written nothing yet, or its output is not kept (--no-spool)");
		return 1;
	}
	return print_logs(logs, &client, id, task_fd, wanted ? wanted : newest);
}

static int logs_verb(int argc, char **argv)
{
	struct logs logs = { .sinks = { { .fd = 1, .is_terminal = isatty(1) },
					{ .fd = 2, .is_terminal = isatty(2) } } };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_logs, argc, argv, take, &logs, &error);

	if (first >= 0 && (argc - first < 1 || argc - first > 2))
		first = error_set(&error, EINVAL,
				  "bawn logs takes a task, and one of its actions where it has "
				  "several; `bawn ps` lists them");
	if (first >= 0 && argc - first == 2 && !control_is_id(argv[first + 1], 'a'))
		first = error_set(&error, EINVAL, "%.40s is no action's id, as in a-...",
				  argv[first + 1]);
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	return show(&logs, argv[first], argc - first == 2 ? argv[first + 1] : NULL);
}

const struct verb verb_logs = {
	.name = "logs",
	.synopsis = "TASK [ACTION]",
	.summary = "Print what an action of a live task has written, by default its newest.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 printed; 1 no such task or action; 2 wrong use; 125 bawn itself failed",
	.run = logs_verb,
};
