/*
 * `bawn trace tail`: the newest records of all tasks, and with -f those that come.
 *
 * Following: the directory of chains is looked at when inotify says that something was written
 * there, and every LOOK_NS in any case; where no inotify instance is to be had (they are few for
 * each user), every POLL_NS. A chain is read from where it was read last, and open only meanwhile.
 */
#include "cli/trace_verbs.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/quantity.h"
#include "cli/page.h"
#include "cli/trace_place.h"
#include "trace/gist.h"
#include "trace/id_table.h"
#include "trace/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MS (1000ull * 1000)
/* As often as a person would notice. */
#define POLL_NS (250 * MS)
/* What inotify does not tell: other file systems' ways, a queue that ran over. */
#define LOOK_NS (2000 * MS)
/* A task that writes without end is read some times a second, not for each of its lines. */
#define CALM_NS (50 * MS)
/* At the start so much of each chain's end is looked at. */
#define END_BYTES (256u * 1024)
#define LINES 10
#define LIMIT_LINES 10000
/* Chains that are known; of more the rest is not followed, and that is said. */
#define LIMIT_CHAINS 65536u
#define NAME_BYTES (ACTION_ID_BYTES + 8)

enum { OPTION_FOLLOW, OPTION_LINES, OPTION_JSON, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "-f", NULL, "go on with records as they come, until interrupted", false, false,
	  OPTION_FOLLOW },
	{ "--lines", "N", "begin with the last N records; default 10", false, false, OPTION_LINES },
	{ "--json", NULL, "print the records as they are, a line each", false, false, OPTION_JSON },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct chain_end {
	char name[NAME_BYTES]; /* of the file; first: trace/id_table.h */
	uint64_t offset;       /* read up to here */
	uint64_t number;       /* of the line there, from where we began to count */
};

/* A record that waits to be printed in the order of time. */
struct waiting {
	char time[CLOCK_TEXT_BYTES];
	uint64_t order;
	char *text; /* owned */
};

struct tail {
	const char *state_path;
	bool is_following, json, is_over, has_told_limit;
	uint64_t lines;
	struct trace_place place;
	struct chain_end *ends;
	size_t end_count;
	struct id_table by_name; /* owned */
	struct waiting *waiting; /* owned */
	size_t waiting_count, waiting_capacity;
	struct page page;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct tail *tail = context;

	switch (option->id) {
	case OPTION_FOLLOW:
		tail->is_following = true;
		return 0;
	case OPTION_LINES:
		if (quantity_count(value, &tail->lines) < 0 || tail->lines > LIMIT_LINES)
			return error_set(error, EINVAL,
					 "option --lines %.40s: a count of at most 10000", value);
		return 0;
	case OPTION_JSON:
		tail->json = true;
		return 0;
	default:
		return trace_state_option(option, value, &tail->state_path, error);
	}
}

static int compare(const void *first, const void *second)
{
	const struct waiting *one = first, *other = second;
	int order = strcmp(one->time, other->time);

	if (order)
		return order;
	return one->order < other->order ? -1 : one->order > other->order;
}

/* In the order of time; all but the last `most` are thrown away. */
static void order_waiting(struct tail *tail, size_t most)
{
	size_t excess = tail->waiting_count > most ? tail->waiting_count - most : 0;

	if (tail->waiting_count)
		qsort(tail->waiting, tail->waiting_count, sizeof(*tail->waiting), compare);
	for (size_t i = 0; i < excess; i++)
		free(tail->waiting[i].text);
	if (excess)
		memmove(tail->waiting, tail->waiting + excess, most * sizeof(*tail->waiting));
	tail->waiting_count -= excess;
}

static void wait_with(struct tail *tail, const struct trace_line *line,
		      const struct json_node *body)
{
	size_t wanted = tail->waiting_capacity ? tail->waiting_capacity * 2 : 64;
	struct buffer text = { 0 };
	struct waiting *one;

	if (tail->waiting_count == tail->waiting_capacity) {
		struct waiting *grown = realloc(tail->waiting, wanted * sizeof(*grown));

		if (!grown)
			return;
		tail->waiting = grown;
		tail->waiting_capacity = wanted;
	}
	if (!tail->json)
		gist_line(line, body, &text);
	else
		trace_raw_line(line, tail->page.is_terminal, &text);
	buffer_text(&text, "\n");
	if (text.failed) {
		buffer_free(&text);
		return;
	}
	one = &tail->waiting[tail->waiting_count];
	*one = (struct waiting){ .order = tail->waiting_count, .text = text.data };
	memcpy(one->time, line->time.bytes,
	       line->time.length < sizeof(one->time) ? line->time.length : sizeof(one->time) - 1);
	tail->waiting_count++;
}

static struct chain_end *end_of(struct tail *tail, const char *name)
{
	struct chain_end made = { .number = 1 }, *grown;
	size_t found = id_table_find(&tail->by_name, tail->ends, sizeof(*tail->ends), name);

	if (found != SIZE_MAX)
		return &tail->ends[found];
	if (tail->end_count == LIMIT_CHAINS) {
		if (!tail->has_told_limit)
			trace_complain("more than %u chains: what is in the others is not shown; "
				       "`bawn trace query` looks into all",
				       LIMIT_CHAINS);
		tail->has_told_limit = true;
		return NULL;
	}
	grown = arena_push(&tail->place.arena, tail->ends, tail->end_count, sizeof(*grown));
	if (!grown)
		return NULL;
	(void)snprintf(made.name, sizeof(made.name), "%s", name);
	tail->ends = grown;
	grown[tail->end_count] = made;
	if (id_table_add(&tail->by_name, grown, sizeof(*grown), tail->end_count + 1) < 0)
		return NULL;
	return &grown[tail->end_count++];
}

/* Where the first line begins behind an offset: at the offset, or behind the next newline. */
static uint64_t line_behind(int fd, uint64_t offset)
{
	char bytes[4096];

	while (offset) {
		ssize_t count = pread(fd, bytes, sizeof(bytes), (off_t)offset - 1);
		const char *newline = count > 0 ? memchr(bytes, '\n', (size_t)count) : NULL;

		if (newline)
			return offset + (uint64_t)(newline - bytes);
		if (count <= 0)
			break;
		offset += (uint64_t)count;
	}
	return offset;
}

/* Reads what a chain has more than it had. */
static void read_more(struct tail *tail, int directory_fd, struct chain_end *end, bool is_first)
{
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	const struct json_node *body;
	struct scan_line found;
	struct trace_line line;
	int CLEANUP_FD fd = -1;
	struct stat status;

	fd = fd_open_beneath(directory_fd, end->name,
			     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return;
	if (is_first && (uint64_t)status.st_size > END_BYTES)
		end->offset = line_behind(fd, (uint64_t)status.st_size - END_BYTES);
	if ((uint64_t)status.st_size < end->offset) {
		trace_complain("%s has become shorter; `bawn trace verify` tells more", end->name);
		end->offset = (uint64_t)status.st_size;
	}
	(void)snprintf(tail->place.file.name, sizeof(tail->place.file.name), "%s, from byte %llu",
		       end->name, (unsigned long long)end->offset);
	scan_begin(&scan, fd, NULL, end->offset, 1);
	while (scan_next(&scan, &found) > 0) {
		end->offset = found.offset + found.length + 1;
		if (trace_place_line(&tail->place, &found, &line, &body))
			wait_with(tail, &line, body);
		if (is_first && tail->waiting_count >= 2 * LIMIT_LINES)
			order_waiting(tail, LIMIT_LINES);
	}
	trace_place_told(&tail->place);
}

static void look_at(struct tail *tail, int directory_fd, const char *name, bool is_first)
{
	struct chain_end *end = end_of(tail, name);
	struct stat status;

	if (end && fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (uint64_t)status.st_size != end->offset)
		read_more(tail, directory_fd, end, is_first);
}

static void look(struct tail *tail, bool is_first)
{
	const size_t suffix = strlen(TRACE_SUFFIX);
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;

	look_at(tail, tail->place.store.fd, TRACE_LEDGER, is_first);
	(void)directory_open(&directory, tail->place.store.tasks_fd, ".", 0);
	while ((name = directory_next(&directory))) {
		size_t length = strlen(name);

		if (length > suffix && length < NAME_BYTES &&
		    strcmp(name + length - suffix, TRACE_SUFFIX) == 0)
			look_at(tail, tail->place.store.tasks_fd, name, is_first);
	}
}

static int print_waiting(struct tail *tail, size_t most)
{
	order_waiting(tail, most);
	for (size_t i = 0; i < tail->waiting_count; i++) {
		buffer_text(&tail->page.text, tail->waiting[i].text);
		free(tail->waiting[i].text);
	}
	tail->waiting_count = 0;
	return page_flush(&tail->page);
}

/* Signals as a descriptor: an end is no interruption of a line. */
static int open_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* -1 where there is none: then it is looked at more often. */
static int open_watch(const struct trace_store *store)
{
	int CLEANUP_FD fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	static const char *const names[] = { ".", "tasks" };
	char path[64];

	for (size_t i = 0; fd >= 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", store->fd, names[i]);
		if (inotify_add_watch(fd, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
			return -1;
	}
	return TAKE_FD(fd);
}

static void nap(uint64_t ns)
{
	const struct timespec pause = { .tv_nsec = (long)ns };

	(void)nanosleep(&pause, NULL);
}

static int follow(struct tail *tail)
{
	int CLEANUP_FD signals = open_signals();
	int CLEANUP_FD watch = open_watch(&tail->place.store);
	uint64_t most_ns = watch >= 0 ? LOOK_NS : POLL_NS;
	int result = 0;

	while (result == 0) {
		/* who reads us may go: a pipe tells that by POLLERR */
		struct pollfd fds[] = { { .fd = signals, .events = POLLIN },
					{ .fd = watch, .events = POLLIN },
					{ .fd = tail->page.fd, .events = 0 } };
		char events[4096];

		look(tail, false);
		result = print_waiting(tail, SIZE_MAX);
		if (result < 0 || poll(fds, 3, (int)(most_ns / MS)) < 0)
			continue;
		if (fds[0].revents || fds[2].revents & (POLLERR | POLLHUP))
			break;
		if (fds[1].revents) {
			nap(CALM_NS);
			while (read(watch, events, sizeof(events)) > 0)
				;
		}
	}
	return result;
}

static int run(struct tail *tail)
{
	int status = trace_place_open(&tail->place, tail->state_path);
	int result;

	if (status)
		return status;
	if (tail->place.is_empty) {
		trace_complain("there is no trace yet; `bawn run` records one");
		return 1;
	}
	page_open(&tail->page, false);
	look(tail, true);
	result = print_waiting(tail, tail->lines);
	if (result == 0 && tail->is_following)
		result = follow(tail);
	result = page_close(&tail->page, result);
	if (result < 0)
		trace_complain("the records could not be printed: %s", error_text(result));
	return result < 0 ? 125 : 0;
}

static int tail_verb(int argc, char **argv)
{
	struct tail tail = { .lines = LINES, .place = TRACE_PLACE_NONE, .page = PAGE_NONE };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_trace_tail, argc, argv, take, &tail, &error);
	int status;

	if (first >= 0 && first < argc)
		first = error_set(
			&error, EINVAL,
			"bawn trace tail takes no words; `bawn logs -f %.40s` follows the "
			"output of a task",
			argv[first]);
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	status = run(&tail);
	order_waiting(&tail, 0);
	free(tail.waiting);
	id_table_free(&tail.by_name);
	trace_place_close(&tail.place);
	return status;
}

const struct verb verb_trace_tail = {
	.name = "trace tail",
	.synopsis = "",
	.summary = "Print the newest records of all tasks, and those that come.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status =
		"0 printed, or interrupted; 1 there is no trace; 2 wrong use; 125 bawn itself "
		"failed",
	.run = tail_verb,
};
