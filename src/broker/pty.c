#include "broker/pty.h"

#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

/* Enough for a handler of ours with the registers of the largest processors saved. */
#define HANDLER_STACK_BYTES (64u * 1024)

/*
 * What exit(3) and a signal's handler must reach without an argument: the only state of the process
 * in this module. Written while is_raw is 0, read while it is 1.
 */
static struct {
	volatile sig_atomic_t is_raw;
	int terminal;	      /* ours */
	pid_t owner;	      /* children that share our memory do not touch it */
	struct termios modes; /* as they were at first: what a shell sets later is not the user's */
} saved = { .terminal = -1 };

static const int fatal[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGILL,	 SIGTRAP,  SIGABRT,
			     SIGBUS,  SIGFPE,  SIGSEGV, SIGTERM, SIGALRM,  SIGUSR1,
			     SIGUSR2, SIGXCPU, SIGXFSZ, SIGSYS,	 SIGVTALRM };

/* Without job control (no controlling terminal) whoever has the terminal is in the foreground. */
static bool is_foreground(int terminal)
{
	pid_t group = tcgetpgrp(terminal);

	return group < 0 || group == getpgrp();
}

/* tcsetattr(3) would stop a process in the background, or be refused to it. */
static int set_modes(int terminal, const struct termios *modes)
{
	sigset_t set, before;
	int result;

	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &set, &before);
	do
		result = tcsetattr(terminal, TCSANOW, modes) < 0 ? -errno : 0;
	while (result == -EINTR);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return result;
}

void pty_restore(void)
{
	int code = errno;

	if (saved.is_raw && saved.owner == getpid()) {
		saved.is_raw = 0;
		if (is_foreground(saved.terminal))
			(void)set_modes(saved.terminal, &saved.modes);
	}
	errno = code;
}

/* The handler is gone (SA_RESETHAND): raised again, or by the same fault, the signal ends us. */
static void restore_and_end(int number)
{
	pty_restore();
	(void)raise(number);
}

static void catch_fatal(void)
{
	static char stack[HANDLER_STACK_BYTES];
	static bool is_registered;
	const stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = restore_and_end,
				    .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK) },
			 before;
	stack_t other;

	if (!is_registered)
		(void)atexit(pty_restore);
	is_registered = true;
	/* a stack that is used up is a fault as well */
	if (sigaltstack(NULL, &other) == 0 && (other.ss_flags & SS_DISABLE))
		(void)sigaltstack(&own, NULL);
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		if (sigaction(fatal[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
			(void)sigaction(fatal[i], &action, NULL);
}

static int make_raw(int terminal)
{
	struct termios raw;

	if (saved.terminal < 0) {
		int CLEANUP_FD own = fcntl(terminal, F_DUPFD_CLOEXEC, 3);

		if (own < 0 || tcgetattr(own, &saved.modes) < 0)
			return -errno;
		saved.terminal = TAKE_FD(own);
	}
	saved.owner = getpid();
	catch_fatal();
	raw = saved.modes;
	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	/* before the change: set back too often does no harm */
	saved.is_raw = 1;
	return set_modes(terminal, &raw);
}

static int check_devpts(int devpts_fd)
{
	struct statfs status;

	if (fstatfs(devpts_fd, &status) < 0)
		return -errno;
	return status.f_type == DEVPTS_SUPER_MAGIC ? 0 : -EPROTO;
}

static int open_slave(int master, uid_t owner)
{
	int CLEANUP_FD slave = -1;
	int unlock = 0;

	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	if (owner != (uid_t)-1 && fchown(slave, owner, (gid_t)-1) < 0)
		return -errno;
	return TAKE_FD(slave);
}

int pty_open(int devpts_fd, uid_t owner, struct pty_pair *ret_pair, struct error *error)
{
	int CLEANUP_FD master = -1;
	int CLEANUP_FD slave = -1;
	struct stat status;
	int result = check_devpts(devpts_fd);

	if (result < 0)
		return error_errno(error, result, "the box's /dev/pts");
	master = fd_open_resolved(devpts_fd, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK,
				  RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	if (master == -ENOSPC)
		return error_set(error, ENOSPC,
				 "no pseudo terminal is left (kernel.pty.max); "
				 "end what uses them, or run without --tty");
	if (master < 0)
		return error_errno(error, master, "opening a pseudo terminal");
	if (fstat(master, &status) < 0 || !S_ISCHR(status.st_mode) ||
	    status.st_rdev != makedev(5, 2))
		return error_set(error, EPROTO, "the box's /dev/pts/ptmx is no terminal");
	slave = open_slave(master, owner);
	if (slave < 0)
		return error_errno(error, slave, "opening the task's side of a pseudo terminal");
	ret_pair->master = TAKE_FD(master);
	ret_pair->slave = TAKE_FD(slave);
	return 0;
}

/* A description of its own, so that O_NONBLOCK is not the caller's shell's to stumble over. */
static int open_input(int input)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", input);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd >= 0 ? fd : fcntl(input, F_DUPFD_CLOEXEC, 3);
}

/* Begins (anew) to read the caller's input. */
void pty_feed(struct pump *pump)
{
	/* bytes are exact in this direction, and the master does not block */
	pump->is_terminal = false;
	pump->can_splice = false;
	pump->target = PUMP_FILE;
}

static int begin_in(struct pty *pty)
{
	int CLEANUP_FD from = open_input(pty->input);
	int result;

	if (from < 0)
		return -errno;
	result = pump_begin(&pty->in, from, pty->master);
	if (result < 0)
		return result;
	(void)TAKE_FD(from);
	pty_feed(&pty->in);
	return 0;
}

static int begin_out(struct pty *pty, int output)
{
	int CLEANUP_FD from = fcntl(pty->master, F_DUPFD_CLOEXEC, 3);
	int result;

	if (from < 0)
		return -errno;
	result = pump_begin(&pty->out, from, output);
	if (result < 0)
		return result;
	(void)TAKE_FD(from);
	pty->out.is_screen = pty->out.is_terminal;
	pty->out.is_terminal = false;
	return 0;
}

/* The master's modes are the slave's: what the user is used to (erase, UTF-8) holds there too. */
static void copy_modes(const struct pty *pty)
{
	struct termios modes;

	if (pty->has_job && tcgetattr(pty->input, &modes) == 0)
		(void)set_modes(pty->master, &modes);
}

void pty_resize(const struct pty *pty)
{
	struct winsize size;

	if (pty->has_job && ioctl(pty->input, TIOCGWINSZ, &size) == 0)
		(void)ioctl(pty->master, TIOCSWINSZ, &size);
}

int pty_begin(struct pty *pty, int master, int input, int output, struct error *error)
{
	struct pty made = PTY_NONE;
	int result;

	made.master = master;
	made.input = input;
	made.has_job = isatty(input);
	made.is_foreground = !made.has_job || is_foreground(input);
	result = begin_in(&made);
	if (result == 0)
		result = begin_out(&made, output);
	if (result == 0) {
		copy_modes(&made);
		pty_resize(&made);
	}
	if (result == 0 && made.has_job && made.is_foreground)
		result = make_raw(input);
	if (result < 0) {
		pty_restore();
		pump_end(&made.in);
		pump_end(&made.out);
		return error_errno(error, result, "taking the terminal over");
	}
	*pty = made;
	return 0;
}

int pty_begin_remote(struct pty *pty, int master, int input, int output,
		     const struct winsize *window, struct error *error)
{
	struct pty made = PTY_NONE;
	int result;

	made.master = master;
	made.input = input;
	made.is_foreground = true;
	result = input < 0 ? 0 : begin_in(&made);
	if (result == 0)
		result = begin_out(&made, output);
	if (result < 0) {
		pump_end(&made.in);
		pump_end(&made.out);
		return error_errno(error, result, "taking the client's terminal over");
	}
	(void)ioctl(master, TIOCSWINSZ, window);
	*pty = made;
	return 0;
}

void pty_set_window(const struct pty *pty, const struct winsize *window)
{
	if (pty->master >= 0)
		(void)ioctl(pty->master, TIOCSWINSZ, window);
}

bool pty_poll(const struct pty *pty, struct pollfd entries[static PTY_POLLS])
{
	bool is_any = false;

	for (unsigned i = 0; i < PTY_POLLS; i++)
		entries[i] = (struct pollfd){ .fd = -1 };
	if (pty->is_foreground && !pty->is_lost)
		is_any = pump_poll(&pty->in, &entries[PTY_IN]);
	return pump_poll(&pty->out, &entries[PTY_OUT]) || is_any;
}

/* End of file for one who reads lines: VEOF, twice where a line is begun. */
static void end_input(struct pty *pty)
{
	struct termios modes;
	size_t length = pty->in.bytes && pty->in.last != '\n' ? 2 : 1;

	pty->is_over = true;
	if (pty->in.broken || tcgetattr(pty->master, &modes) < 0 || !(modes.c_lflag & ICANON))
		return;
	pty->end_of_input[0] = pty->end_of_input[1] = (char)modes.c_cc[VEOF];
	pty->in.pending = pty->end_of_input;
	pty->in.pending_start = 0;
	pty->in.pending_end = length;
}

/* The pump of the input has ended by itself. */
static void lose_input(struct pty *pty)
{
	if (pty->in.broken || !pty->has_job) {
		/* nobody reads there any longer, or nothing more comes */
		end_input(pty);
		return;
	}
	pty->is_foreground = is_foreground(pty->input);
	if (!pty->is_foreground) {
		/* EIO, since we ignore SIGTTIN: pty_continue() begins anew */
		pty_restore();
		return;
	}
	pty->is_lost = true;
}

void pty_step(struct pty *pty, const struct pollfd entries[static PTY_POLLS])
{
	/* the task may print without end: what is typed comes first */
	if (entries[PTY_IN].revents) {
		pump_step(&pty->in, &entries[PTY_IN]);
		if (pty->in.from < 0 && !pty->is_over && !pty->is_lost)
			lose_input(pty);
	}
	if (entries[PTY_OUT].revents)
		pump_step(&pty->out, &entries[PTY_OUT]);
}

void pty_suspend(struct pty *pty)
{
	pty_restore();
	pty->is_foreground = !pty->has_job;
}

void pty_continue(struct pty *pty)
{
	if (!pty->has_job || pty->is_lost)
		return;
	pty->is_foreground = is_foreground(pty->input);
	if (!pty->is_foreground) {
		/* whoever has it set its modes; ours are to be taken anew then */
		saved.is_raw = 0;
		return;
	}
	if (pty->in.from < 0) {
		pump_end(&pty->in);
		if (begin_in(pty) < 0)
			pty->is_lost = true;
	}
	/* stopped by SIGSTOP, the shell has changed what we set */
	if (make_raw(pty->input) < 0)
		pty->is_lost = true;
	pty_resize(pty);
}

void pty_drain(struct pty *pty)
{
	pump_drain(&pty->out);
}

bool pty_done(const struct pty *pty)
{
	return pump_done(&pty->out);
}

/* A session that ends early leaves the terminal as one that ends by itself. Does not wait. */
static void end_screen(struct pty *pty)
{
	char text[SCREEN_END_BYTES];
	struct pollfd ready = { .fd = pty->out.to, .events = POLLOUT };
	size_t length;

	if (!pty->out.held || !pty->out.is_screen || pty->out.broken || pty->out.from < 0)
		return;
	length = screen_filter_end(&pty->out.screen, text);
	if (length && poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT))
		(void)!write(pty->out.to, text, length);
}

void pty_end(struct pty *pty)
{
	end_screen(pty);
	pty_restore();
	pump_end(&pty->in);
	pump_end(&pty->out);
	fd_close(&pty->master);
	fd_close(&saved.terminal);
}
