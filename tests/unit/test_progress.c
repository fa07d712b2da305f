/* The status line: its text by width, and what a terminal gets of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "broker/progress.h"

#define SECOND UINT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)

static const struct progress_facts busy = {
	.state = "running",
	.elapsed_ns = 12 * SECOND + 900000000,
	.is_measured = true,
	.cpu_ns = 8 * SECOND + 190000000,
	.memory_bytes = 310 * MIB,
	.processes = 14,
	.elapsed_limit_ns = LIMIT_NONE,
	.cpu_limit_ns = LIMIT_NONE,
	.memory_limit_bytes = 2048 * MIB,
	.process_limit = LIMIT_NONE,
};

static void assert_line(const struct progress_facts *facts, unsigned columns, const char *expected)
{
	char text[PROGRESS_TEXT_BYTES];

	memset(text, 'x', sizeof(text));
	assert_int_equal(progress_format(facts, columns, text), strlen(expected));
	assert_string_equal(text, expected);
}

static void the_line_as_people_read_it(void **state)
{
	struct progress_facts facts = busy;

	(void)state;
	assert_line(&facts, 80, "running 12s, cpu 8.1s, memory 310M of 2G, 14 processes");
	facts.processes = 1;
	facts.cpu_ns = 3661 * SECOND;
	facts.memory_bytes = 3 * 512 * MIB;
	facts.memory_limit_bytes = LIMIT_NONE;
	assert_line(&facts, 80, "running 12s, cpu 1h01m, memory 1.5G, 1 process");
	facts.is_measured = false;
	facts.state = "frozen";
	facts.elapsed_ns = 90061 * SECOND;
	assert_line(&facts, 80, "frozen 1d01h");
}

static void limits_that_were_asked_for(void **state)
{
	struct progress_facts facts = busy;

	(void)state;
	facts.elapsed_limit_ns = 90 * SECOND;
	facts.cpu_limit_ns = 30 * SECOND;
	facts.process_limit = 64;
	assert_line(&facts, 100,
		    "running 12s of 1m30s, cpu 8.1s of 30s, memory 310M of 2G, "
		    "14 of 64 processes");
}

/* Parts are left out whole, from the right; never more than the columns. */
static void a_narrow_window(void **state)
{
	char text[PROGRESS_TEXT_BYTES];

	(void)state;
	assert_line(&busy, 54, "running 12s, cpu 8.1s, memory 310M of 2G, 14 processes");
	assert_line(&busy, 53, "running 12s, cpu 8.1s, memory 310M of 2G");
	assert_line(&busy, 39, "running 12s, cpu 8.1s");
	assert_line(&busy, 11, "running 12s");
	assert_line(&busy, 10, "");
	for (unsigned columns = 0; columns < 300; columns++)
		assert_true(progress_format(&busy, columns, text) <= columns);
}

static void the_largest_numbers_fit(void **state)
{
	struct progress_facts facts = {
		.state = "a state that is longer than any of ours would ever be",
		.elapsed_ns = UINT64_MAX,
		.is_measured = true,
		.cpu_ns = UINT64_MAX,
		.memory_bytes = UINT64_MAX,
		.processes = UINT64_MAX,
		.elapsed_limit_ns = UINT64_MAX - 1,
		.cpu_limit_ns = UINT64_MAX - 1,
		.memory_limit_bytes = UINT64_MAX - 1,
		.process_limit = UINT64_MAX - 1,
	};
	char text[PROGRESS_TEXT_BYTES];
	size_t length = progress_format(&facts, 100000, text);

	(void)state;
	assert_true(length > 0 && length < PROGRESS_TEXT_BYTES);
	assert_int_equal(text[length], '\0');
}

/* What a child that has the terminal shows there, as the other side reads it. */
static size_t on_a_terminal(void (*draw)(int), unsigned columns, char *ret_bytes, size_t room)
{
	struct winsize window = { .ws_row = 24, .ws_col = (unsigned short)columns };
	size_t length = 0;
	ssize_t count;
	int master, status;
	pid_t child = forkpty(&master, NULL, NULL, &window);

	assert_true(child >= 0);
	if (child == 0) {
		struct termios modes;

		alarm(10);
		(void)tcgetattr(2, &modes);
		cfmakeraw(&modes);
		(void)tcsetattr(2, TCSANOW, &modes);
		draw(2);
		_exit(0);
	}
	while (length < room && (count = read(master, ret_bytes + length, room - length)) > 0)
		length += (size_t)count;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	(void)close(master);
	ret_bytes[length < room ? length : room - 1] = '\0';
	return length;
}

static void draw_twice(int terminal)
{
	struct progress_facts facts = busy;
	struct progress progress;

	progress_begin(&progress, terminal, "xterm", 0);
	progress_wipe(&progress); /* nothing is there yet: no byte */
	progress_show(&progress, &facts);
	facts.elapsed_ns += SECOND;
	progress_show(&progress, &facts);
	progress_wipe(&progress);
	progress_wipe(&progress);
	progress_end(&progress);
}

static void it_is_drawn_in_place_and_wiped(void **state)
{
	char bytes[1024];

	(void)state;
	on_a_terminal(draw_twice, 40, bytes, sizeof(bytes));
	assert_string_equal(bytes, "\r\0337\033[0mrunning 12s, cpu 8.1s\033[K\0338"
				   "\r\0337\033[0mrunning 13s, cpu 8.1s\033[K\0338"
				   "\r\0337\033[0m\033[K\0338");
}

static void draw_and_narrow(int terminal)
{
	struct winsize window = { .ws_row = 24, .ws_col = 30 };
	struct progress progress;

	progress_begin(&progress, terminal, "xterm", 0);
	progress_show(&progress, &busy);
	(void)ioctl(terminal, TIOCSWINSZ, &window);
	progress_show(&progress, &busy);
	window.ws_col = 8;
	(void)ioctl(terminal, TIOCSWINSZ, &window);
	progress_show(&progress, &busy);
	progress_end(&progress);
}

static void what_a_narrower_window_broke_is_wiped(void **state)
{
	char bytes[1024];

	(void)state;
	on_a_terminal(draw_and_narrow, 80, bytes, sizeof(bytes));
	assert_string_equal(
		bytes,
		"\r\0337\033[0mrunning 12s, cpu 8.1s, memory 310M of 2G, 14 processes\033[K\0338"
		"\r\0337\033[0m\033[J\0338"
		"\r\0337\033[0mrunning 12s, cpu 8.1s\033[K\0338"
		"\r\0337\033[0m\033[J\0338");
}

static void draw_in_the_background(int terminal)
{
	struct progress progress;
	pid_t child = fork();

	if (child == 0) {
		(void)setpgid(0, 0);
		progress_begin(&progress, terminal, "xterm", 0);
		progress_show(&progress, &busy);
		_exit(0);
	}
	(void)waitpid(child, NULL, 0);
	progress_begin(&progress, terminal, "dumb", 0);
	progress_show(&progress, &busy);
	progress_begin(&progress, terminal, NULL, 0);
	progress_show(&progress, &busy);
}

static void nothing_in_the_background_or_where_nothing_can_be_wiped(void **state)
{
	char bytes[1024];

	(void)state;
	assert_int_equal(on_a_terminal(draw_in_the_background, 80, bytes, sizeof(bytes)), 0);
}

/* As a live task's supervisor does: from a session of its own, for a client of this terminal. */
static void draw_for(int terminal, pid_t client)
{
	struct progress progress;
	pid_t child = fork();

	if (child == 0) {
		alarm(10);
		(void)setsid();
		progress_begin(&progress, terminal, "xterm", client);
		progress_show(&progress, &busy);
		progress_end(&progress);
		_exit(0);
	}
	(void)waitpid(child, NULL, 0);
}

static void draw_for_a_client(int terminal)
{
	draw_for(terminal, getpid());
}

static void a_client_in_the_foreground_has_it(void **state)
{
	char bytes[1024];

	(void)state;
	on_a_terminal(draw_for_a_client, 15, bytes, sizeof(bytes));
	assert_string_equal(bytes, "\r\0337\033[0mrunning 12s\033[K\0338"
				   "\r\0337\033[0m\033[K\0338");
}

static void draw_for_others(int terminal)
{
	pid_t background = fork();
	int other, status, there[2];
	pid_t elsewhere;
	char word;

	if (background == 0) {
		alarm(10);
		(void)pause();
	}
	(void)setpgid(background, 0);
	draw_for(terminal, background);
	(void)kill(background, SIGKILL);
	(void)waitpid(background, &status, 0);
	/* no process of that number any more */
	draw_for(terminal, background);
	/* in the foreground, but of a terminal of its own */
	assert_int_equal(pipe(there), 0);
	elsewhere = forkpty(&other, NULL, NULL, NULL);
	if (elsewhere == 0) {
		alarm(10);
		(void)!write(there[1], "x", 1);
		(void)pause();
	}
	/* until it has that terminal it is in the foreground of ours */
	assert_int_equal(read(there[0], &word, 1), 1);
	draw_for(terminal, elsewhere);
	(void)kill(elsewhere, SIGKILL);
	(void)waitpid(elsewhere, &status, 0);
	(void)close(there[0]);
	(void)close(there[1]);
	/* ours, whose session is another one: not even this process's own terminal counts */
	draw_for(terminal, 0);
}

static void any_other_client_has_none(void **state)
{
	char bytes[1024];

	(void)state;
	assert_int_equal(on_a_terminal(draw_for_others, 80, bytes, sizeof(bytes)), 0);
}

/* A terminal that nobody reads: it must not hold up whoever draws. */
static void draw_until_full(int terminal)
{
	struct progress progress;

	progress_begin(&progress, terminal, "xterm", 0);
	for (int i = 0; i < 20000; i++)
		progress_show(&progress, &busy);
}

static void a_full_terminal_does_not_hold(void **state)
{
	int master, status;
	pid_t child = forkpty(&master, NULL, NULL, NULL);

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		alarm(10);
		draw_until_full(2);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	(void)close(master);
}

static void nothing_but_a_terminal_has_a_line(void **state)
{
	struct progress progress;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	progress_begin(&progress, ends[1], "xterm", 0);
	assert_int_equal(progress.fd, -1);
	progress_show(&progress, &busy);
	progress_end(&progress);
	progress_begin(&progress, -1, "xterm", 0);
	assert_int_equal(progress.fd, -1);
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &(char){ 0 }, 1), 0);
	(void)close(ends[0]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_as_people_read_it),
		cmocka_unit_test(limits_that_were_asked_for),
		cmocka_unit_test(a_narrow_window),
		cmocka_unit_test(the_largest_numbers_fit),
		cmocka_unit_test(it_is_drawn_in_place_and_wiped),
		cmocka_unit_test(what_a_narrower_window_broke_is_wiped),
		cmocka_unit_test(nothing_in_the_background_or_where_nothing_can_be_wiped),
		cmocka_unit_test(a_client_in_the_foreground_has_it),
		cmocka_unit_test(any_other_client_has_none),
		cmocka_unit_test(a_full_terminal_does_not_hold),
		cmocka_unit_test(nothing_but_a_terminal_has_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
