/*
 * One request to a manager of systemd's (org.freedesktop.systemd1(5)) over its private socket,
 * which is connected already: make a scope, with our own control group delegated, of the process
 * that connected the socket, and wait until that is done.
 *
 * The private socket and not a bus: it is there without a bus daemon, the far end is the manager
 * itself (SO_PEERCRED), it needs no name and no match, and signals come to every client. The
 * process is told as pid 0, which to the manager is who connected (dbus-scope.c, "PIDs"): the
 * kernel's word, right in any pid namespace.
 *
 * Delegate=yes and CollectMode=inactive-or-failed: the group's tree is the caller's, and the
 * manager removes all of it, and forgets the unit, as soon as no process is in it any more, however
 * its processes ended. Only a process that dies before the manager has moved it leaves a scope that
 * was never anything but empty, which the manager does not notice (systemd 252: the kernel takes
 * the number of a process that is ending, and moves nothing): such a scope is to be stopped.
 *
 * The manager's bytes are foreign (ipc/dbus.h). Who asks is confined (main/bawn-scope.c): nothing
 * here opens, and only read(2), write(2), poll(2) and the clock are called. read(2) and not
 * recvmsg(2), so that descriptors which come along are dropped by the kernel.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Of what the manager says about a refusal, for people. */
#define SYSTEMD_TEXT_BYTES 256

/* What becomes of a request; the words are systemd_outcome_text()'s. */
enum systemd_outcome {
	SYSTEMD_DONE,
	SYSTEMD_REFUSED, /* an error came back: its name and text */
	SYSTEMD_FAILED,	 /* the job ended in another way: how */
	SYSTEMD_LATE,	 /* no answer in time */
	SYSTEMD_CLOSED,	 /* the manager hung up */
	SYSTEMD_GARBLED, /* it said what is no answer */
	SYSTEMD_OUTCOMES,
};

struct systemd_answer {
	enum systemd_outcome outcome;
	char text[SYSTEMD_TEXT_BYTES]; /* printable ASCII; "" where there is none */
};

/* "refused it", "did not answer in time": what goes behind "systemd". */
const char *systemd_outcome_text(enum systemd_outcome outcome);

/* Copies what may be shown: other bytes than printable ASCII become '?'. */
void systemd_copy_text(char text[static SYSTEMD_TEXT_BYTES], const char *from);

struct systemd_scope {
	const char *unit; /* "NAME.scope"; nothing else has this name */
	const char *description;
	uid_t uid; /* who asks: EXTERNAL, the peer compares it with SO_PEERCRED */
};

/*
 * Asks and waits, until deadline_ns of the monotonic clock. fd is nonblocking and stays the
 * caller's. After SYSTEMD_DONE the scope can be stopped by it; it is of no other use afterwards.
 * What comes too late is stopped already, as soon as the manager comes to it.
 */
void systemd_start_scope(int fd, const struct systemd_scope *scope, uint64_t deadline_ns,
			 struct systemd_answer *ret_answer);

/* Stops the scope of a process that has died, and waits for the manager's word until then. */
void systemd_stop_scope(int fd, const struct systemd_scope *scope, uint64_t deadline_ns);
