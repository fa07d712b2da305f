/*
 * Who holds a task: the supervisor's process behind the lock on <state>/tasks/<id>, told by the
 * kernel (/proc/locks, proc(5)), for a supervisor that has no socket or does not answer. And its
 * end without its help: SIGKILL by pidfd, and a look whether everything of it is gone.
 *
 * A pid from a list may be another's when it is used. So the process is pinned by a pidfd first and
 * the list is read again: who still holds the lock then is who was pinned. On file systems whose
 * stat(2) shows another device than the locks' list (btrfs, overlayfs) the inode must do, and the
 * process must be the caller's own and called bawn.
 */
#pragma once

#include "kernel/namespace.h"

#include <stdbool.h>
#include <stdint.h>

struct error;

/* More children than a supervisor has at a time: its process 1 and one for each action. */
#define HOLDER_LIMIT_CHILDREN 1024

/*
 * Somebody holds the task's directory. Takes no lock that others would wait for; false also where
 * there is no such task.
 */
bool holder_exists(int tasks_fd, const char *id);

/* -ESRCH: nobody holds it; -ENOENT: somebody does whom /proc/locks does not show. */
int holder_find(int tasks_fd, const char *id, struct process *ret_process, struct error *error)
	__attribute__((warn_unused_result));

/*
 * Kills the supervisor and waits, at most until the deadline (monotonic), for it and its children:
 * process 1, with which the kernel ends everything in the box, and the actions. -EBUSY with a
 * message that names a process that is still there.
 */
int holder_kill(const struct process *process, uint64_t deadline_ns, struct error *error)
	__attribute__((warn_unused_result));

/* Sends a signal to the pinned process. Negative errno. */
int holder_signal(const struct process *process, int number);

/* Waits until a process has ended, or a socket can be read; 0, or -ETIMEDOUT. */
int holder_wait(int fd, uint64_t deadline_ns);

void holder_close(struct process *process);

#define CLEANUP_HOLDER __attribute__((cleanup(holder_close)))
