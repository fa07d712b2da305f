#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/pty.h"

#define PATIENCE_NS (10ull * 1000 * 1000 * 1000)

/* The caller's terminal: the user is at `user`, bawn has `terminal`. And the task's. */
static int user = -1, terminal = -1, devpts = -1;
static struct pty_pair pair = { -1, -1 };

/* The host's own "ptmx" is often closed to ordinary users, whom /dev/ptmx serves. */
static int open_pair(struct pty_pair *ret_pair)
{
	struct error error = ERROR_NONE;
	int result = pty_open(devpts, (uid_t)-1, ret_pair, &error);

	if (result != -EACCES)
		return result;
	ret_pair->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (ret_pair->master < 0 || unlockpt(ret_pair->master) < 0)
		return -1;
	ret_pair->slave = ioctl(ret_pair->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return ret_pair->slave < 0 ? -1 : 0;
}

static int open_terminal(void **state)
{
	(void)state;
	(void)alarm(60);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTTIN, SIG_IGN);
	(void)signal(SIGTTOU, SIG_IGN);
	devpts = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (devpts < 0 || open_pair(&pair) < 0)
		return -1;
	user = pair.master;
	terminal = pair.slave;
	return open_pair(&pair);
}

static int close_terminal(void **state)
{
	(void)state;
	fd_close(&user);
	fd_close(&terminal);
	fd_close(&devpts);
	fd_close(&pair.master);
	fd_close(&pair.slave);
	return 0;
}

static struct pty begin(int input, int output)
{
	struct error error = ERROR_NONE;
	struct pty pty;

	if (pty_begin(&pty, TAKE_FD(pair.master), input, output, &error) < 0)
		fail_msg("%s", error.message);
	return pty;
}

static void step(struct pty *pty, int timeout_ms)
{
	struct pollfd entries[PTY_POLLS];

	if (pty_poll(pty, entries) && poll(entries, PTY_POLLS, timeout_ms) > 0)
		pty_step(pty, entries);
}

static size_t read_for(int fd, char *bytes, size_t used, size_t room)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN };
	ssize_t count = 0;

	if (used < room && poll(&entry, 1, 5) == 1)
		count = read(fd, bytes + used, room - used);
	return count > 0 ? used + (size_t)count : used;
}

/* Pumps until `wanted` was read from fd. */
static void expect_at(struct pty *pty, int fd, const char *wanted)
{
	uint64_t end = clock_monotonic_ns() + PATIENCE_NS;
	size_t used = 0, length = strlen(wanted);
	char bytes[8192];

	while (used < length && clock_monotonic_ns() < end) {
		step(pty, 5);
		used = read_for(fd, bytes, used, sizeof(bytes));
	}
	if (used != length || memcmp(bytes, wanted, length) != 0)
		fail_msg("'%.*s' instead of '%s'", (int)used, bytes, wanted);
}

static void give(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static struct termios modes_of(int fd)
{
	struct termios modes;

	assert_int_equal(tcgetattr(fd, &modes), 0);
	return modes;
}

static void expect_modes(int fd, const struct termios *wanted)
{
	struct termios modes = modes_of(fd);

	assert_int_equal(modes.c_lflag, wanted->c_lflag);
	assert_int_equal(modes.c_iflag, wanted->c_iflag);
	assert_int_equal(modes.c_oflag, wanted->c_oflag);
	assert_memory_equal(modes.c_cc, wanted->c_cc, sizeof(modes.c_cc));
}

static void a_pair_is_of_that_instance(void **state)
{
	char name[64];
	struct stat status, directory;
	struct pty_pair none = { -1, -1 };
	struct error error = ERROR_NONE;
	int CLEANUP_FD other = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(ttyname_r(pair.slave, name, sizeof(name)), 0);
	assert_int_equal(strncmp(name, "/dev/pts/", 9), 0);
	assert_int_equal(fstat(pair.slave, &status), 0);
	assert_int_equal(fstat(devpts, &directory), 0);
	assert_int_equal(status.st_dev, directory.st_dev);
	assert_true(fcntl(pair.master, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(pair.master, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(pair.slave, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(pty_open(other, (uid_t)-1, &none, &error), -EPROTO);
	assert_int_equal(none.master, -1);
}

static void bytes_go_both_ways(void **state)
{
	struct pty pty = begin(terminal, terminal);

	(void)state;
	give(user, "hello\r");
	/* the task's line discipline echoes and translates, as the caller's did */
	expect_at(&pty, user, "hello\r\n");
	expect_at(&pty, pair.slave, "hello\n");
	give(pair.slave, "\033[31mred\n");
	expect_at(&pty, user, "\033[31mred\r\n");
	/* no control is the caller's terminal's: ^C comes to the task's */
	assert_false(modes_of(terminal).c_lflag & ISIG);
	assert_true(modes_of(pair.slave).c_lflag & ISIG);
	pty_end(&pty);
}

static void the_screen_is_filtered_the_spool_is_not(void **state)
{
	static const char text[] = "a\033]52;c;YQ==\ab";
	char path[] = "/tmp/bawn-pty-XXXXXX", command[64], bytes[64];
	struct error error = ERROR_NONE;
	struct spool spool;
	struct pty pty;
	int CLEANUP_FD directory = -1;

	(void)state;
	assert_non_null(mkdtemp(path));
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(spool_begin(directory, "a", &spool, &error), 0);
	pty = begin(terminal, terminal);
	pump_spool(&pty.out, &spool, SPOOL_OUT);
	give(pair.slave, text);
	expect_at(&pty, user, "ab");
	{
		int CLEANUP_FD file = openat(directory, "a/out", O_RDONLY | O_CLOEXEC);

		assert_int_equal(fd_read_all(file, bytes, sizeof(bytes)), sizeof(text) - 1);
		assert_memory_equal(bytes, text, sizeof(text) - 1);
	}
	pty_end(&pty);
	spool_close(&spool);
	(void)snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
}

/* Where the output is no terminal it is exact. */
static void a_pipe_gets_all(void **state)
{
	int ends[2];
	struct pty pty;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pty = begin(terminal, ends[1]);
	give(pair.slave, "a\033]52;c;YQ==\ab");
	expect_at(&pty, ends[0], "a\033]52;c;YQ==\ab");
	pty_end(&pty);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

static void modes_are_copied_and_restored(void **state)
{
	struct termios before;
	struct pty pty;

	(void)state;
	before = modes_of(terminal);
	before.c_cc[VERASE] = 'E';
	before.c_iflag |= IUTF8;
	assert_int_equal(tcsetattr(terminal, TCSANOW, &before), 0);
	pty = begin(terminal, terminal);
	expect_modes(pair.slave, &before);
	assert_false(modes_of(terminal).c_lflag & (ICANON | ECHO | ISIG));
	pty_suspend(&pty);
	expect_modes(terminal, &before);
	pty_continue(&pty);
	assert_false(modes_of(terminal).c_lflag & (ICANON | ECHO | ISIG));
	pty_end(&pty);
	expect_modes(terminal, &before);
	/* once: what is set later is the caller's */
	before.c_lflag ^= ECHO;
	assert_int_equal(tcsetattr(terminal, TCSANOW, &before), 0);
	pty_restore();
	expect_modes(terminal, &before);
}

enum way { WAY_EXIT, WAY_END, WAY_FAULT, WAY_OVERFLOW, WAY_SIGNAL };

__attribute__((noinline)) static int overflow(volatile char *above)
{
	volatile char block[65536];

	/* never, but the compiler does not know */
	if (above && above[0] == 7)
		return 0;
	block[0] = above ? above[0] : 0;
	return overflow(block) + block[0];
}

static void die(enum way way, int number)
{
	struct rlimit none = { 0, 0 };
	struct rlimit small = { 1024 * 1024, 1024 * 1024 };

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)setrlimit(RLIMIT_STACK, &small);
	(void)begin(terminal, terminal);
	if (modes_of(terminal).c_lflag & ICANON)
		_exit(99);
	switch (way) {
	case WAY_EXIT:
		exit(3);
	case WAY_END:
		_exit(4);
	case WAY_FAULT:
		(void)kill(getpid(), SIGSEGV);
		break;
	case WAY_OVERFLOW:
		_exit(overflow(NULL));
	case WAY_SIGNAL:
		(void)raise(number);
	}
	_exit(98);
}

static int end_of(enum way way, int number)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		for (int i = 1; i < 32; i++)
			if (i != SIGTTIN && i != SIGTTOU)
				(void)signal(i, SIG_DFL);
		die(way, number);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void every_end_restores_the_modes(void **state)
{
	static const int signals[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS,
		SIGILL, SIGFPE, SIGALRM, SIGUSR1, SIGXCPU, SIGSYS,  SIGTRAP
	};
	struct termios before = modes_of(terminal);
	int status;

	(void)state;
	status = end_of(WAY_EXIT, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	expect_modes(terminal, &before);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		status = end_of(WAY_SIGNAL, signals[i]);
		/* it still ends by that signal: the caller's shell shall see it */
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[i]);
		expect_modes(terminal, &before);
	}
#if !defined(__SANITIZE_ADDRESS__)
	status = end_of(WAY_OVERFLOW, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	expect_modes(terminal, &before);
#endif
	/* the test can fail: this one does not restore */
	status = end_of(WAY_END, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
	assert_false(modes_of(terminal).c_lflag & ICANON);
	assert_int_equal(tcsetattr(terminal, TCSANOW, &before), 0);
}

static void the_window_is_the_callers(void **state)
{
	struct winsize size = { .ws_row = 33, .ws_col = 77 }, seen;
	struct pty pty;

	(void)state;
	assert_int_equal(ioctl(user, TIOCSWINSZ, &size), 0);
	pty = begin(terminal, terminal);
	assert_int_equal(ioctl(pair.slave, TIOCGWINSZ, &seen), 0);
	assert_true(seen.ws_row == 33 && seen.ws_col == 77);
	size.ws_col = 120;
	assert_int_equal(ioctl(user, TIOCSWINSZ, &size), 0);
	pty_resize(&pty);
	assert_int_equal(ioctl(pair.slave, TIOCGWINSZ, &seen), 0);
	assert_true(seen.ws_row == 33 && seen.ws_col == 120);
	pty_end(&pty);
}

/* A task that does not read holds up what is typed, and nothing else. */
static void a_full_slave_holds_up_input_alone(void **state)
{
	struct pty pty = begin(terminal, terminal);
	struct termios modes = modes_of(pair.slave);
	char block[1024];

	(void)state;
	cfmakeraw(&modes);
	assert_int_equal(tcsetattr(pair.slave, TCSANOW, &modes), 0);
	memset(block, 'x', sizeof(block));
	for (unsigned i = 0; i < 400; i++) {
		(void)!write(user, block, sizeof(block));
		step(&pty, 0);
	}
	/* it is held up, or this shows nothing */
	assert_true(pty.in.bytes < 400 * sizeof(block));
	give(pair.slave, "still here");
	expect_at(&pty, user, "still here");
	pty_end(&pty);
}

static void the_last_close_is_the_end(void **state)
{
	struct pty pty = begin(terminal, terminal);
	uint64_t end = clock_monotonic_ns() + PATIENCE_NS;

	(void)state;
	give(pair.slave, "last\033[?25l");
	fd_close(&pair.slave);
	/* what it left on is undone */
	expect_at(&pty, user, "last\033[?25l\033[?25h\033[0m\033(B\017");
	while (!pty_done(&pty) && clock_monotonic_ns() < end)
		step(&pty, 5);
	assert_true(pty_done(&pty));
	assert_false(pty.is_lost);
	pty_end(&pty);
}

/* Another process of the task keeps the terminal open, and even writes on. */
static void a_drained_session_ends(void **state)
{
	struct pty pty = begin(terminal, terminal);
	uint64_t end = clock_monotonic_ns() + PATIENCE_NS;

	(void)state;
	give(pair.slave, "last");
	pty_drain(&pty);
	expect_at(&pty, user, "last");
	while (!pty_done(&pty) && clock_monotonic_ns() < end)
		step(&pty, 5);
	assert_true(pty_done(&pty));
	pty_end(&pty);
}

static void an_early_end_undoes_what_was_left(void **state)
{
	struct pty pty = begin(terminal, terminal);
	char bytes[64];
	size_t used = 0;

	(void)state;
	give(pair.slave, "\033[?1049h");
	expect_at(&pty, user, "\033[?1049h");
	pty_end(&pty);
	used = read_for(user, bytes, used, sizeof(bytes));
	assert_int_equal(used, 16);
	assert_memory_equal(bytes, "\033[?1049l\033[0m\033(B\017", 16);
	/* and hangs up who is left */
	assert_int_equal(read(pair.slave, bytes, 1), 0);
}

static void a_terminal_that_disappears_is_lost(void **state)
{
	struct pty pty = begin(terminal, terminal);
	uint64_t end = clock_monotonic_ns() + PATIENCE_NS;
	struct pollfd entries[PTY_POLLS];

	(void)state;
	fd_close(&user);
	while (!pty.is_lost && clock_monotonic_ns() < end)
		step(&pty, 5);
	assert_true(pty.is_lost);
	/* no busy loop: what remains to wait for is not ready */
	if (pty_poll(&pty, entries))
		assert_int_equal(poll(entries, PTY_POLLS, 0), 0);
	give(pair.slave, "to nobody");
	while (!pty_done(&pty) && clock_monotonic_ns() < end)
		step(&pty, 5);
	assert_true(pty.out.broken);
	assert_int_equal(pty.out.failure, EIO);
	pty_end(&pty);
}

static void the_end_of_a_file_is_the_end_of_input(void **state)
{
	int ends[2];
	char bytes[64];
	uint64_t end = clock_monotonic_ns() + PATIENCE_NS;
	struct pty pty;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pty = begin(ends[0], terminal);
	assert_false(pty.has_job);
	give(ends[1], "no newline");
	fd_close(&ends[1]);
	while (!(pty.is_over && pty.in.pending_start == pty.in.pending_end) &&
	       clock_monotonic_ns() < end)
		step(&pty, 5);
	assert_true(pty.is_over);
	assert_int_equal(read(pair.slave, bytes, sizeof(bytes)), 10);
	assert_int_equal(read(pair.slave, bytes, sizeof(bytes)), 0);
	pty_end(&pty);
	fd_close(&ends[0]);
}

/* In a group that has not the foreground; gate: the leader gives it. Returns what failed, or 0. */
static int in_the_background(int asks, int gate)
{
	struct pollfd entries[PTY_POLLS];
	struct termios before;
	struct error error = ERROR_NONE;
	struct pty pty;
	char byte;

	(void)setpgid(0, 0);
	if (tcgetattr(terminal, &before) < 0)
		return 2;
	if (pty_begin(&pty, pair.master, terminal, terminal, &error) < 0)
		return 3;
	if (pty.is_foreground || !(modes_of(terminal).c_lflag & ICANON))
		return 4;
	give(user, "not for us\n");
	(void)pty_poll(&pty, entries);
	if (entries[PTY_IN].fd >= 0 || entries[PTY_OUT].fd < 0)
		return 5;
	/* as if it had been in the foreground just before */
	pty.is_foreground = true;
	step(&pty, 1000);
	if (pty.is_lost || pty.is_foreground || pty.in.bytes)
		return 6;
	if (write(asks, "", 1) != 1 || read(gate, &byte, 1) != 1)
		return 7;
	pty_continue(&pty);
	if (pty.is_lost || !pty.is_foreground || (modes_of(terminal).c_lflag & ICANON))
		return 8;
	for (unsigned i = 0; i < 1000 && !pty.in.bytes; i++)
		step(&pty, 5);
	if (pty.in.bytes != 11)
		return 9;
	pty_end(&pty);
	return modes_of(terminal).c_lflag & ICANON ? 0 : 10;
}

static int lead_a_session(void)
{
	int asks[2], gate[2], status = 0;
	pid_t child;
	char byte;

	if (setsid() < 0 || ioctl(terminal, TIOCSCTTY, 0) < 0)
		return 11;
	if (pipe2(asks, O_CLOEXEC) < 0 || pipe2(gate, O_CLOEXEC) < 0)
		return 12;
	child = fork();
	if (child == 0) {
		(void)close(gate[1]);
		_exit(in_the_background(asks[1], gate[0]));
	}
	(void)close(asks[1]);
	if (read(asks[0], &byte, 1) == 1 &&
	    (tcsetpgrp(terminal, child) < 0 || write(gate[1], "", 1) != 1))
		status = 13;
	(void)close(gate[1]);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 14;
	return WEXITSTATUS(status);
}

static void the_background_reads_nothing(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGHUP, SIG_IGN);
		_exit(lead_a_session());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A devpts as in a box: in a user and a mount namespace of its own, as the root there. */
static int make_instance(int ready, int mapped)
{
	char byte;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || write(ready, "", 1) != 1 ||
	    read(mapped, &byte, 1) != 1 || setresuid(0, 0, 0) < 0 ||
	    mount("devpts", "/tmp", "devpts", MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620") <
		    0 ||
	    write(ready, "", 1) != 1)
		return 1;
	(void)pause();
	return 0;
}

static int write_file(pid_t pid, const char *name, const char *text)
{
	char path[64];
	int CLEANUP_FD fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static void another_namespaces_instance_is_used(void **state)
{
	unsigned outside = geteuid() ? geteuid() : 100000;
	struct error error = ERROR_NONE;
	struct pty_pair inside = { -1, -1 };
	int CLEANUP_FD root = -1;
	struct stat status, directory;
	char map[64], path[64], byte;
	int ready[2], mapped[2], number = -1, is_made;
	pid_t child;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(mapped, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)close(ready[0]);
		(void)close(mapped[1]);
		_exit(make_instance(ready[1], mapped[0]));
	}
	fd_close(&ready[1]);
	fd_close(&mapped[0]);
	(void)snprintf(map, sizeof(map), "0 %u 1", outside);
	is_made = read(ready[0], &byte, 1) == 1 && write_file(child, "setgroups", "deny") == 0 &&
		  write_file(child, "uid_map", map) == 0;
	is_made = is_made && write(mapped[1], "", 1) == 1 && read(ready[0], &byte, 1) == 1;
	(void)snprintf(path, sizeof(path), "/proc/%d/root/tmp", (int)child);
	root = is_made ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (root >= 0 && pty_open(root, outside, &inside, &error) < 0)
		fail_msg("%s", error.message);
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	fd_close(&ready[0]);
	fd_close(&mapped[1]);
	if (root < 0)
		skip();
	assert_int_equal(fstat(inside.slave, &status), 0);
	assert_int_equal(fstat(root, &directory), 0);
	/* the first of its own instance, and the task's own */
	assert_int_equal(status.st_dev, directory.st_dev);
	assert_int_equal(status.st_uid, outside);
	assert_int_equal(ioctl(inside.master, TIOCGPTN, &number), 0);
	assert_int_equal(number, 0);
	assert_int_equal(fstatat(root, "0", &directory, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(status.st_ino, directory.st_ino);
	give(inside.slave, "through\n");
	assert_int_equal(read(inside.master, path, sizeof(path)), 9);
	fd_close(&inside.master);
	fd_close(&inside.slave);
}

/* A client's terminal: its modes are the client's, the size is told. */
static void a_clients_terminal_is_left_alone(void **state)
{
	const struct winsize size = { .ws_row = 5, .ws_col = 6 },
			     other = { .ws_row = 7, .ws_col = 8 };
	struct termios before = modes_of(terminal);
	struct error error = ERROR_NONE;
	struct winsize seen;
	struct pty pty;

	(void)state;
	assert_int_equal(
		pty_begin_remote(&pty, TAKE_FD(pair.master), terminal, terminal, &size, &error), 0);
	expect_modes(terminal, &before);
	assert_int_equal(ioctl(pair.slave, TIOCGWINSZ, &seen), 0);
	assert_true(seen.ws_row == 5 && seen.ws_col == 6);
	pty_set_window(&pty, &other);
	assert_int_equal(ioctl(pair.slave, TIOCGWINSZ, &seen), 0);
	assert_true(seen.ws_row == 7 && seen.ws_col == 8);
	give(pair.slave, "a\033]52;c;YQ==\ab");
	expect_at(&pty, user, "ab");
	pty_end(&pty);
	expect_modes(terminal, &before);
}

static void one_that_never_began_ends(void **state)
{
	struct pty pty = PTY_NONE;

	(void)state;
	pty_end(&pty);
	assert_true(fcntl(0, F_GETFD) >= 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_terminal, close_terminal)
	const struct CMUnitTest tests[] = {
		CASE(a_pair_is_of_that_instance),
		CASE(bytes_go_both_ways),
		CASE(the_screen_is_filtered_the_spool_is_not),
		CASE(a_pipe_gets_all),
		CASE(modes_are_copied_and_restored),
		CASE(every_end_restores_the_modes),
		CASE(the_window_is_the_callers),
		CASE(a_full_slave_holds_up_input_alone),
		CASE(the_last_close_is_the_end),
		CASE(a_drained_session_ends),
		CASE(an_early_end_undoes_what_was_left),
		CASE(a_terminal_that_disappears_is_lost),
		CASE(the_end_of_a_file_is_the_end_of_input),
		CASE(the_background_reads_nothing),
		CASE(another_namespaces_instance_is_used),
		CASE(a_clients_terminal_is_left_alone),
		CASE(one_that_never_began_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
