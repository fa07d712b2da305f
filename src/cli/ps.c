#include "cli/takeover.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/quantity.h"
#include "broker/client.h"
#include "broker/holder.h"
#include "cli/verbs.h"
#include "ipc/info.h"
#include "policy/limit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define WATCH_NS (1000ull * 1000 * 1000)
/* Where nobody says how wide the terminal is, or what is printed is no terminal. */
#define WIDTH 100
#define SECOND (1000ull * 1000 * 1000)

enum { OPTION_WATCH, OPTION_JSON, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--watch", NULL, "print anew every second, until interrupted", false, false,
	  OPTION_WATCH },
	{ "--json", NULL, "print JSON; with --watch one line each time", false, false,
	  OPTION_JSON },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct listing {
	const char *state_path;
	bool json, watch;
};

/* A task as far as it can be told. */
struct entry {
	const char *id;
	int fd;	   /* owned; -1: no socket */
	pid_t pid; /* 0: not known */
	bool is_known;
	const char *trouble; /* why it is not */
	struct info info;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct listing *listing = context;

	switch (option->id) {
	case OPTION_WATCH:
		listing->watch = true;
		return 0;
	case OPTION_JSON:
		listing->json = true;
		return 0;
	default:
		if (!value[0])
			return error_set(error, EINVAL, "option %s has an empty value",
					 option->name);
		listing->state_path = value;
		return 0;
	}
}

static void find_process(const struct client *client, struct entry *entry)
{
	struct process CLEANUP_HOLDER process = PROCESS_NONE;
	struct error error = ERROR_NONE;

	if (!entry->pid && holder_find(client->state.tasks_fd, entry->id, &process, &error) == 0)
		entry->pid = process.pid;
}

/* All are asked before any is waited for: a hundred that hang cost as much as one. */
static void ask_all(const struct client *client, struct entry *entries, size_t count,
		    struct arena *arena)
{
	struct error error = ERROR_NONE;
	uint64_t deadline;

	for (size_t i = 0; i < count; i++) {
		struct entry *entry = &entries[i];
		int result = client_connect(client, entry->id, &entry->fd, &entry->pid, &error);

		if (result == 0)
			result = client_send(entry->fd, CONTROL_STATUS, NULL, 0, NULL, 0, &error);
		entry->trouble = result == -ENOTCONN  ? "no control socket (yet)" :
				 result == -ETIMEDOUT ? "does not answer" :
				 result < 0	      ? arena_copy(arena, error.message) :
							NULL;
	}
	deadline = clock_monotonic_ns() + CLIENT_ANSWER_NS;
	for (size_t i = 0; i < count; i++) {
		struct entry *entry = &entries[i];
		int result = entry->trouble ?
				     -1 :
				     client_info(entry->fd, deadline, arena, &entry->info, &error);

		entry->is_known = result == 0;
		if (result < 0 && !entry->trouble)
			entry->trouble = result == -ETIMEDOUT ? "does not answer" :
								arena_copy(arena, error.message);
		if (!entry->is_known)
			find_process(client, entry);
		fd_close(&entry->fd);
	}
}

static void print_json(const struct entry *entries, size_t count, struct buffer *buffer)
{
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_array(&json, "tasks");
	for (size_t i = 0; i < count; i++) {
		if (entries[i].is_known) {
			info_json(&entries[i].info, &json, NULL);
			continue;
		}
		json_object(&json, NULL);
		json_string(&json, "task", entries[i].id);
		if (entries[i].pid)
			json_integer(&json, "pid", entries[i].pid);
		else
			json_null(&json, "pid");
		json_string(&json, "state", "unknown");
		json_string(&json, "trouble", entries[i].trouble);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	buffer_text(buffer, "\n");
}

static void put_duration(uint64_t ns, struct buffer *buffer)
{
	char text[QUANTITY_TEXT_BYTES];

	quantity_tell_duration(text, ns, true);
	buffer_text(buffer, text);
}

static void put_size(uint64_t bytes, struct buffer *buffer)
{
	char text[QUANTITY_TEXT_BYTES];

	quantity_tell_size(text, bytes);
	buffer_text(buffer, text);
}

static const struct info_limit *limit_of(const struct info *info, enum limit limit)
{
	for (size_t i = 0; i < info->limit_count; i++)
		if (strcmp(info->limits[i].word, limit_text(limit)->word) == 0)
			return &info->limits[i];
	return NULL;
}

/* Pads what was appended since `start` to the width of its column. */
static void pad(struct buffer *line, size_t start, size_t width)
{
	size_t length = line->length - start;

	buffer_format(line, "%*s", length < width ? (int)(width - length) : 1, "");
}

static void put_against(const struct info *info, enum limit limit,
			void (*put)(uint64_t, struct buffer *), struct buffer *line)
{
	const struct info_limit *bound = limit_of(info, limit);

	if (!bound || bound->value == INFO_UNKNOWN)
		return;
	buffer_text(line, "/");
	put(bound->value, line);
}

static void put_count(uint64_t count, struct buffer *buffer)
{
	buffer_format(buffer, "%llu", (unsigned long long)count);
}

/* Age, CPU time, memory, processes: the columns that tasks and actions share. */
enum {
	NAME_WIDTH = 26,
	STATE_WIDTH = 9,
	AGE_WIDTH = 8,
	CPU_WIDTH = 9,
	MEMORY_WIDTH = 12,
	COUNT_WIDTH = 10
};

static void put_numbers(uint64_t age_ns, uint64_t cpu_ns, uint64_t memory, uint64_t processes,
			const struct info *against, struct buffer *line)
{
	size_t start = line->length;

	put_duration(age_ns, line);
	pad(line, start, AGE_WIDTH);
	start = line->length;
	put_duration(cpu_ns, line);
	if (against)
		put_against(against, LIMIT_CPU_TIME, put_duration, line);
	pad(line, start, CPU_WIDTH);
	start = line->length;
	put_size(memory, line);
	if (against)
		put_against(against, LIMIT_MEMORY, put_size, line);
	pad(line, start, MEMORY_WIDTH);
	start = line->length;
	put_count(processes, line);
	if (against)
		put_against(against, LIMIT_PIDS, put_count, line);
	pad(line, start, COUNT_WIDTH);
}

/* Ends the line, cut to the terminal: at a byte of ASCII, as a code point must not be cut. */
static void end_line(struct buffer *buffer, struct buffer *line, size_t width)
{
	size_t length = line->length, seen = 0, i;

	while (length && line->data[length - 1] == ' ')
		length--;
	for (i = 0; i < length && seen < width; i++)
		/* a continuation byte of UTF-8 takes no place of its own */
		seen += ((unsigned char)line->data[i] & 0xc0) != 0x80;
	while (i < length && ((unsigned char)line->data[i] & 0xc0) == 0x80)
		i++;
	buffer_append(buffer, line->data, i);
	buffer_text(buffer, "\n");
	line->length = 0;
}

static void put_cell(const char *text, size_t width, struct buffer *line)
{
	size_t start = line->length;

	buffer_text(line, text);
	pad(line, start, width);
}

static void put_state(const struct info *info, struct buffer *line)
{
	put_cell(info_state_name(info->state), STATE_WIDTH, line);
}

static void put_action(const struct info_action *action, struct buffer *line)
{
	buffer_text(line, "  ");
	put_cell(action->action, NAME_WIDTH - 2, line);
	put_cell(info_state_name(action->state), STATE_WIDTH, line);
	put_numbers(action->age_ns, action->cpu_ns, action->memory_bytes, action->processes, NULL,
		    line);
	for (size_t i = 0; i < action->argc; i++) {
		buffer_text(line, i ? " " : "");
		buffer_visible(line, action->argv[i]);
	}
	if (action->exit >= 0)
		buffer_format(line, " (%d)", action->exit);
}

static void put_task(const struct entry *entry, struct buffer *line)
{
	const struct info *info = &entry->info;

	put_cell(entry->id, NAME_WIDTH, line);
	if (!entry->is_known) {
		put_cell("unknown", STATE_WIDTH, line);
		buffer_visible(line, entry->trouble);
		if (entry->pid)
			buffer_format(line, ", process %d", entry->pid);
		return;
	}
	put_state(info, line);
	put_numbers(info->age_ns, info->cpu_ns, info->memory_bytes, info->process_total, info,
		    line);
	if (info->freezer == INFO_BY_SIGNALS)
		buffer_text(line, "(frozen by signals) ");
	buffer_visible(line, info->workspace);
}

/* Runs out when nothing happens, on a live task without actions: a person will want to know. */
static void put_ends(const struct info *info, struct buffer *line)
{
	if (info->idle_left_ns != INFO_UNKNOWN) {
		buffer_text(line, "  ends idle in ");
		put_duration(info->idle_left_ns, line);
	}
	if (info->lifetime_left_ns != INFO_UNKNOWN) {
		buffer_text(line, "  ends in ");
		put_duration(info->lifetime_left_ns, line);
	}
}

static void print_tree(const struct entry *entries, size_t count, size_t width,
		       struct buffer *buffer)
{
	struct buffer CLEANUP_BUFFER line = { 0 };

	if (!count)
		return;
	put_cell("TASK", NAME_WIDTH, &line);
	put_cell("STATE", STATE_WIDTH, &line);
	put_cell("AGE", AGE_WIDTH, &line);
	put_cell("CPU", CPU_WIDTH, &line);
	put_cell("MEMORY", MEMORY_WIDTH, &line);
	put_cell("PROCESSES", COUNT_WIDTH, &line);
	buffer_text(&line, "WORKSPACE, COMMAND");
	end_line(buffer, &line, width);
	for (size_t i = 0; i < count && !line.failed; i++) {
		const struct info *info = &entries[i].info;

		put_task(&entries[i], &line);
		end_line(buffer, &line, width);
		for (size_t j = 0; entries[i].is_known && j < info->action_count; j++) {
			put_action(&info->actions[j], &line);
			end_line(buffer, &line, width);
		}
		if (entries[i].is_known)
			put_ends(info, &line);
		if (line.length)
			end_line(buffer, &line, width);
	}
	buffer->failed |= line.failed;
}

/* Cut only for a terminal: who reads a pipe wants all of it. */
static size_t width_of_output(void)
{
	struct winsize size;

	if (!isatty(1))
		return SIZE_MAX;
	return ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : WIDTH;
}

static int compare(const void *first, const void *second)
{
	const struct entry *one = first, *other = second;

	/* the oldest first; those of unknown age behind */
	if (one->is_known != other->is_known)
		return one->is_known ? -1 : 1;
	if (one->is_known && one->info.started_wall_ns != other->info.started_wall_ns)
		return one->info.started_wall_ns < other->info.started_wall_ns ? -1 : 1;
	return strcmp(one->id, other->id);
}

static int make_entries(const struct client *client, struct arena *arena,
			struct entry **ret_entries, size_t *ret_count, struct error *error)
{
	const char **ids;
	size_t count, kept = 0;
	struct entry *entries;
	int result = client_tasks(client, arena, &ids, &count, error);

	if (result < 0)
		return result;
	entries = arena_array(arena, count + 1, sizeof(*entries));
	if (!entries)
		return error_errno(error, ENOMEM, "listing the tasks");
	for (size_t i = 0; i < count; i++)
		entries[i] = (struct entry){ .id = ids[i], .fd = -1 };
	ask_all(client, entries, count, arena);
	/* what ended while it was asked is not there */
	for (size_t i = 0; i < count; i++)
		if (entries[i].is_known || holder_exists(client->state.tasks_fd, entries[i].id))
			entries[kept++] = entries[i];
	qsort(entries, kept, sizeof(*entries), compare);
	*ret_entries = entries;
	*ret_count = kept;
	return 0;
}

static int print_once(const struct listing *listing)
{
	/* to the first place of a cleared screen */
	static const char home[] = "\033[H\033[2J";
	struct arena CLEANUP_ARENA arena = { 0 };
	struct client CLEANUP_CLIENT client = CLIENT_NONE;
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct error error = ERROR_NONE;
	struct entry *entries = NULL;
	size_t count = 0;
	int result = client_open(listing->state_path, &arena, &client, &error);

	if (result == 0) {
		client_reap(&client);
		result = make_entries(&client, &arena, &entries, &count, &error);
	}
	if (result < 0) {
		complain(error.message);
		return result == -EPERM ? 1 : 125;
	}
	if (listing->watch && !listing->json && isatty(1))
		buffer_text(&text, home);
	if (listing->json)
		print_json(entries, count, &text);
	else
		print_tree(entries, count, width_of_output(), &text);
	if (listing->watch && !listing->json && !isatty(1))
		buffer_text(&text, "\n");
	if (text.failed || (text.length && fd_write_all(1, text.data, text.length) < 0)) {
		complain("the list could not be printed");
		return 125;
	}
	return 0;
}

int ps_print(const char *state_path, bool has_json)
{
	return print_once(&(struct listing){ .state_path = state_path, .json = has_json });
}

static int ps_verb(int argc, char **argv)
{
	const struct timespec pause = { .tv_sec = WATCH_NS / SECOND };
	struct listing listing = { .state_path = NULL };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_ps, argc, argv, take, &listing, &error);
	int status;

	if (first >= 0 && first < argc)
		first = error_set(&error, EINVAL, "bawn ps takes no words, only options");
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	status = print_once(&listing);
	while (listing.watch && status == 0) {
		(void)nanosleep(&pause, NULL);
		status = print_once(&listing);
	}
	return status;
}

const struct verb verb_ps = {
	.name = "ps",
	.synopsis = "",
	.summary = "List live tasks and their actions: age, CPU, memory against limits, state.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 printed; 1 not possible here (inside of a box, or a directory that is "
		       "another's); 2 wrong use; 125 bawn itself failed",
	.run = ps_verb,
};
