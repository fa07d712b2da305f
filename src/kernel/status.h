/*
 * What the kernel says about a process (/proc/PID/status, /proc/PID/ns; proc(5)): the measured
 * side of the layers. Negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct status {
	int seccomp;		  /* 0 off, 2 filter */
	int no_new_privs;	  /* 0 or 1 */
	uint64_t capabilities[5]; /* inheritable, permitted, effective, bounding, ambient */
};

int status_read(int proc_fd, pid_t pid, struct status *ret_status);

/* The signals that the calling process ignores: bit n - 1 is signal n (sigset_t's layout). */
int status_ignored_signals(int proc_fd, uint64_t *ret_signals);

/*
 * True where the process is in another namespace of the kind ("user", "mnt", ...) than we;
 * ret_inode (NULL: not wanted): which one it is in, 0 where the kernel does not tell.
 */
bool status_is_other_namespace(int proc_fd, pid_t pid, const char *kind, uint64_t *ret_inode);
