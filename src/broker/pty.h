/*
 * A pseudo terminal of bawn's for an action with --tty: the action's session gets the slave, bawn
 * keeps the master and stands between it and the caller's terminal (pty(7), ioctl_tty(2)).
 *
 * **Which devpts.** The box has an instance of its own (PLAN_DEVPTS), and the slave must exist by
 * name in its /dev/pts, or ttyname(3), tmux and sudo fail. So the master is opened from that
 * instance: pty_open() takes a descriptor of its root, opens "ptmx" beneath it, and the slave by
 * TIOCGPTPEER (Linux 4.13), which needs no path. The instance may be that of another mount and user
 * namespace; no namespace is entered, and nothing that the task can name is followed. What isolate
 * must give: the descriptor of the devpts mount that the builder made (passed over the control
 * pair), and in the action's process, after setsid(2) and once the slave is 0, 1 and 2,
 * ioctl(0, TIOCSCTTY, 0). The master never enters the box. Whoever is in the box may open the slave
 * by its name: processes of one task are not kept from each other.
 *
 * The caller closes its slave once the action runs (not before: the master's end of file is the
 * last slave's close). TIOCSTI and TIOCSETD are refused by the box's filter (seccomp_rules.def).
 *
 * **The caller's terminal** is set raw as long as the session is in the foreground, and back: by
 * pty_end(), at exit(3), by fatal signals (handlers are set where the default stands; the signal is
 * then raised again) and for a suspension. SIGKILL cannot be caught: `stty sane` helps. It is not
 * set back while another group has the foreground: the shell keeps its own modes then.
 *
 * **Signals.** ^C, ^Z and ^\ are bytes that the slave's line discipline turns into signals for the
 * foreground of the box. SIGWINCH: pty_resize(). SIGCONT: pty_continue(). Before the supervisor
 * stops itself (SIGTSTP): pty_suspend(). SIGTTIN and SIGTTOU must be ignored, SIGPIPE too.
 *
 * **Output** passes screen_filter() where the target is a terminal (what remains a risk is told
 * there), byte for byte otherwise; the spool gets what the task wrote, exactly. **Input** is read
 * only in the foreground. The end of an input that is no terminal becomes the slave's VEOF; a
 * terminal that disappears is `is_lost`: the caller ends the session, and the kernel hangs it up.
 * Neither direction waits for the other: a full slave holds up input alone.
 *
 * One session per process (the saved modes are the process's). Errors: negative errno.
 */
#pragma once

#include "broker/pump.h"

#include <stdbool.h>
#include <sys/types.h>

struct error;
struct winsize;

struct pty_pair {
	int master; /* does not block */
	int slave;
};

/*
 * Opens a pair in the devpts instance whose root devpts_fd is. owner: who shall own the slave, or
 * (uid_t)-1. -EPROTO: not a devpts; -ENOSPC: no more of them (kernel.pty.max).
 */
int pty_open(int devpts_fd, uid_t owner, struct pty_pair *ret_pair, struct error *error)
	__attribute__((warn_unused_result));

enum { PTY_IN, PTY_OUT, PTY_POLLS };

struct pty {
	int master;   /* owned */
	int input;    /* borrowed: the caller's */
	bool has_job; /* input is a terminal */
	bool is_foreground;
	bool is_lost; /* the caller's terminal has gone */
	bool is_over; /* the end of the input was passed on */
	char end_of_input[2];
	struct pump in, out; /* out: pump_spool(), pump_cap() and so on are the caller's to call */
};

#define PTY_NONE                                       \
	((struct pty){ .master = -1,                   \
		       .input = -1,                    \
		       .in = { .from = -1, .to = -1 }, \
		       .out = { .from = -1, .to = -1 } })

/*
 * Takes the master on success. Copies modes and window size of the caller's terminal to it and
 * sets that one raw.
 */
int pty_begin(struct pty *pty, int master, int input, int output, struct error *error)
	__attribute__((warn_unused_result));

/*
 * The same for the terminal of a client, in another session: the client sets it raw and back, and
 * tells of its size. input -1: none.
 */
int pty_begin_remote(struct pty *pty, int master, int input, int output,
		     const struct winsize *window, struct error *error)
	__attribute__((warn_unused_result));

/* Fills what there is to wait for (fd -1: nothing). False when there is nothing at all. */
bool pty_poll(const struct pty *pty, struct pollfd entries[static PTY_POLLS]);

/* Moves what can be moved, as pump_step(). */
void pty_step(struct pty *pty, const struct pollfd entries[static PTY_POLLS]);

/* The caller's window has another size: the slave gets it, and the box's foreground a SIGWINCH. */
void pty_resize(const struct pty *pty);

/* Makes a pump whose target is a master pass on what is typed, exactly. Before its first step. */
void pty_feed(struct pump *pump);

/* The client's window has another size. */
void pty_set_window(const struct pty *pty, const struct winsize *window);

/* Before the supervisor stops itself: the terminal is the shell's. */
void pty_suspend(struct pty *pty);

/* After SIGCONT: in the foreground raw again, with the size of now; otherwise without input. */
void pty_continue(struct pty *pty);

/* The action's process has ended: what it wrote is still shown, whoever holds the slave. */
void pty_drain(struct pty *pty);

/* Nobody in the box has the terminal any longer, and everything is shown (or cannot be). */
bool pty_done(const struct pty *pty);

/*
 * Restores the terminal, and undoes on it what the task left on; closes the master, which hangs up
 * those who still have the slave. Accepts PTY_NONE.
 */
void pty_end(struct pty *pty);

/* Sets the saved modes back, once. Async-signal-safe; for paths that end the process at once. */
void pty_restore(void);
