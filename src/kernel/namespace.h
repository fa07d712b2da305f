/*
 * Namespaces (namespaces(7)): clone3(2) with a pidfd, id maps, joining. Negative errno.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* A process that we started: the pid is valid until it is waited for, the pidfd always. */
struct process {
	pid_t pid;
	int pidfd; /* owned; -1 when unset */
};

#define PROCESS_NONE ((struct process){ .pid = -1, .pidfd = -1 })

/*
 * fork()-like clone3(2) with CLONE_NEW* and other clone flags. Returns 0 in the child, 1 in the
 * parent with ret_process set (not for CLONE_PARENT: the pidfd is the caller's all the same).
 */
int namespace_clone(uint64_t flags, struct process *ret_process);

/* Enough for every child of ours: paths of 4 KiB, a message, no recursion. */
#define NAMESPACE_STACK_BYTES (128u * 1024)

struct namespace_stack {
	/* whole pages, so that all that are used are taken at one blow (base/prefault.h) */
	_Alignas(4096) char bytes[NAMESPACE_STACK_BYTES];
};

/*
 * Runs function(argument) in a child that shares our memory, while we sleep until it execs or
 * ends (vfork(2) semantics, on the stack given, which no other child may be using). Nothing is
 * copied, so that it costs the same from a large process. flags as for namespace_clone(); the
 * function must not return. With CLONE_PARENT no pidfd is given (-1): the child is our parent's;
 * ret_process then has the pid before the child runs.
 */
int namespace_vfork(uint64_t flags, int (*function)(void *argument), void *argument,
		    struct namespace_stack *stack, struct process *ret_process);

/*
 * Writes setgroups=deny and one-id maps of /proc/<pid> ("self" for 0) below the descriptor of a
 * proc mount: inside id -> outside id.
 */
int namespace_map(int proc_fd, pid_t pid, uint32_t inside_uid, uint32_t outside_uid,
		  uint32_t inside_gid, uint32_t outside_gid, int deny_setgroups);

/* Waits for a child, whatever signals come; what fails otherwise is tried again, for no zombie. */
void process_wait(pid_t pid, int *ret_status);

/* Joins namespaces (CLONE_NEW*) of the process behind the pidfd, all or none. */
int namespace_join(int pidfd, int flags);

/* Opens /proc/<pid>/ns/<name> of a child of ours. */
int namespace_open(int proc_fd, pid_t pid, const char *name);
