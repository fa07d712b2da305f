#include "broker/progress.h"

#include "base/fd.h"
#include "base/quantity.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Of a terminal that does not say. */
#define WIDTH 80
/* A window narrower than that has no room for a word. */
#define WIDTH_LEAST 12
#define PART_BYTES QUANTITY_TEXT_BYTES

/* To the line's beginning, with cursor and colours saved there and the colours off. */
#define HEAD "\r\0337\033[0m"
/* To the line's end, and back to what was saved. */
#define ERASE_LINE "\033[K\0338"
/* A window that became narrower may have broken the line in several. */
#define ERASE_BELOW "\033[J\0338"

struct line {
	char *text; /* PROGRESS_TEXT_BYTES */
	size_t length, room;
	bool is_full; /* what comes behind a part that did not fit is left out too */
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...)
{
	char part[3 * PART_BYTES];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(part, sizeof(part), format, arguments);
	va_end(arguments);
	line->is_full = line->is_full || length < 0 || (size_t)length >= sizeof(part) ||
			line->length + (size_t)length > line->room;
	if (line->is_full)
		return;
	memcpy(line->text + line->length, part, (size_t)length + 1);
	line->length += (size_t)length;
}

static void add_measured(struct line *line, const struct progress_facts *facts)
{
	char used[PART_BYTES], limit[PART_BYTES];

	quantity_tell_duration(used, facts->cpu_ns, true);
	quantity_tell_duration(limit, facts->cpu_limit_ns, false);
	if (facts->cpu_limit_ns == LIMIT_NONE)
		add(line, ", cpu %s", used);
	else
		add(line, ", cpu %s of %s", used, limit);
	quantity_tell_size(used, facts->memory_bytes);
	quantity_tell_size(limit, facts->memory_limit_bytes);
	if (facts->memory_limit_bytes == LIMIT_NONE)
		add(line, ", memory %s", used);
	else
		add(line, ", memory %s of %s", used, limit);
	if (facts->process_limit != LIMIT_NONE)
		add(line, ", %llu of %llu processes", (unsigned long long)facts->processes,
		    (unsigned long long)facts->process_limit);
	else if (facts->processes == 1)
		add(line, ", 1 process");
	else
		add(line, ", %llu processes", (unsigned long long)facts->processes);
}

size_t progress_format(const struct progress_facts *facts, unsigned columns,
		       char ret_text[static PROGRESS_TEXT_BYTES])
{
	struct line line = { .text = ret_text,
			     .room = columns < PROGRESS_TEXT_BYTES ? columns :
								     PROGRESS_TEXT_BYTES - 1 };
	char elapsed[PART_BYTES], limit[PART_BYTES];

	ret_text[0] = '\0';
	quantity_tell_duration(elapsed, facts->elapsed_ns, false);
	add(&line, "%.20s %s", facts->state, elapsed);
	quantity_tell_duration(limit, facts->elapsed_limit_ns, false);
	if (facts->elapsed_limit_ns != LIMIT_NONE)
		add(&line, " of %s", limit);
	if (facts->is_measured)
		add_measured(&line, facts);
	return line.length;
}

void progress_begin(struct progress *progress, int terminal, const char *term, pid_t client)
{
	char path[32];

	*progress = PROGRESS_NONE;
	progress->client = client;
	if (!term || !term[0] || strcmp(term, "dumb") == 0 || !isatty(terminal))
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", terminal);
	progress->fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/*
 * Of another process: whether the terminal controls it and its group is in front, by
 * proc_pid_stat(5). The kernel tells nobody but its session who is in a terminal's foreground.
 */
static bool is_client_in_foreground(const struct progress *progress)
{
	char path[32], text[512], *at;
	int CLEANUP_FD fd = -1;
	unsigned terminal_number;
	int group, foreground;
	struct stat status;
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", progress->client);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (length <= 0 || fstat(progress->fd, &status) < 0)
		return false;
	text[length] = '\0';
	/* the name in parentheses is anybody's word */
	at = strrchr(text, ')');
	if (!at || sscanf(at, ") %*c %*d %d %*d %u %d", &group, &terminal_number, &foreground) != 3)
		return false;
	/* as the kernel packs it (new_encode_dev()) */
	return group == foreground &&
	       terminal_number == ((minor(status.st_rdev) & 0xff) | major(status.st_rdev) << 8 |
				   (minor(status.st_rdev) & ~0xffu) << 12);
}

/* Of another session's terminal we know nothing: false. */
static bool is_in_foreground(const struct progress *progress)
{
	if (progress->client)
		return is_client_in_foreground(progress);
	return tcgetpgrp(progress->fd) == getpgrp();
}

/* What the terminal took of it; a part of a sequence is followed by a whole one the next time. */
static bool put(const struct progress *progress, const char *text, size_t length)
{
	struct pollfd room = { .fd = progress->fd, .events = POLLOUT };

	return poll(&room, 1, 0) == 1 && room.revents == POLLOUT &&
	       write(progress->fd, text, length) == (ssize_t)length;
}

/* One less than the window has: at its edge terminals differ. */
static unsigned columns_of(const struct progress *progress)
{
	struct winsize window;

	if (ioctl(progress->fd, TIOCGWINSZ, &window) < 0 || window.ws_col == 0)
		return WIDTH - 1;
	return window.ws_col < WIDTH_LEAST ? 0 : window.ws_col - 1u;
}

void progress_wipe(struct progress *progress)
{
	bool is_broken;

	if (progress->fd < 0 || !progress->length)
		return;
	/* whoever is in the foreground meanwhile has his own lines there */
	if (!is_in_foreground(progress)) {
		progress->length = 0;
		return;
	}
	is_broken = columns_of(progress) < progress->length;
	if (put(progress, is_broken ? HEAD ERASE_BELOW : HEAD ERASE_LINE,
		sizeof(HEAD ERASE_LINE) - 1))
		progress->length = 0;
}

void progress_show(struct progress *progress, const struct progress_facts *facts)
{
	char text[PROGRESS_TEXT_BYTES], bytes[PROGRESS_TEXT_BYTES + sizeof(HEAD ERASE_LINE)];
	unsigned columns;
	size_t length;
	int total;

	if (progress->fd < 0 || !is_in_foreground(progress))
		return;
	columns = columns_of(progress);
	if (columns < progress->length)
		progress_wipe(progress);
	length = progress_format(facts, columns, text);
	if (!length) {
		progress_wipe(progress);
		return;
	}
	total = snprintf(bytes, sizeof(bytes), HEAD "%s" ERASE_LINE, text);
	/* written in part it is there all the same, to be wiped */
	if (total > 0 && (size_t)total < sizeof(bytes)) {
		(void)put(progress, bytes, (size_t)total);
		progress->length = (unsigned)length;
	}
}

void progress_end(struct progress *progress)
{
	progress_wipe(progress);
	fd_close(&progress->fd);
}
