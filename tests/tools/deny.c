/*
 * Runs a command under a filter that answers chosen system calls with an errno, as the filters of
 * containers do; and nothing else is changed. Never installed.
 *
 *	deny ERRNO CALL[,CALL...] COMMAND [ARGUMENT...]
 *
 * ERRNO and CALL are names; "unshare:user" and "clone:user" are the calls with CLONE_NEWUSER,
 * "clone:pidfd" the one with CLONE_PIDFD, "socket:netfilter" what makes a socket of that protocol.
 */
#include "kernel/compat.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const struct {
	const char *name;
	int number;
	unsigned bits;	   /* of the first argument; 0: whatever it is */
	unsigned protocol; /* the third argument; 0: whatever it is */
} calls[] = {
	{ "socket:netfilter", SYS_socket, 0, 12 }, /* NETLINK_NETFILTER */
	{ "unshare", SYS_unshare, 0, 0 },
	{ "unshare:user", SYS_unshare, CLONE_NEWUSER, 0 },
	{ "clone:user", SYS_clone, CLONE_NEWUSER, 0 },
	{ "clone:pidfd", SYS_clone, CLONE_PIDFD, 0 },
	{ "clone3", SYS_clone3, 0, 0 },
	{ "setns", SYS_setns, 0, 0 },
	{ "mount", SYS_mount, 0, 0 },
	{ "pivot_root", SYS_pivot_root, 0, 0 },
	{ "fsopen", SYS_fsopen, 0, 0 },
	{ "open_tree", SYS_open_tree, 0, 0 },
	{ "move_mount", SYS_move_mount, 0, 0 },
	{ "mount_setattr", SYS_mount_setattr, 0, 0 },
	{ "openat2", SYS_openat2, 0, 0 },
	{ "landlock_create_ruleset", SYS_landlock_create_ruleset, 0, 0 },
	{ "landlock_restrict_self", SYS_landlock_restrict_self, 0, 0 },
	{ "seccomp", SYS_seccomp, 0, 0 },
	{ "execveat", SYS_execveat, 0, 0 },
	{ "memfd_create", SYS_memfd_create, 0, 0 },
	{ "close_range", SYS_close_range, 0, 0 },
};

static const struct {
	const char *name;
	int number;
} errnos[] = {
	{ "EPERM", EPERM },
	{ "ENOSYS", ENOSYS },
	{ "EACCES", EACCES },
	{ "ENOSPC", ENOSPC },
	{ "EOPNOTSUPP", EOPNOTSUPP },
	{ "EINVAL", EINVAL },
	{ "EPROTONOSUPPORT", EPROTONOSUPPORT },
};

#define LIMIT 256

struct program {
	struct sock_filter lines[LIMIT];
	unsigned short length;
};

static void add(struct program *program, struct sock_filter line)
{
	if (program->length < LIMIT)
		program->lines[program->length++] = line;
}

static int add_call(struct program *program, const char *name, size_t length, unsigned answer)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strlen(calls[i].name) != length || strncmp(calls[i].name, name, length) != 0)
			continue;
		add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							  offsetof(struct seccomp_data, nr)));
		add(program, (struct sock_filter)BPF_JUMP(
				     BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, 0,
				     calls[i].bits || calls[i].protocol ? 3 : 1));
		if (calls[i].bits) {
			add(program,
			    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							 offsetof(struct seccomp_data, args)));
			add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
								  calls[i].bits, 0, 1));
		}
		if (calls[i].protocol) {
			add(program,
			    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							 offsetof(struct seccomp_data, args[2])));
			add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								  calls[i].protocol, 0, 1));
		}
		add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
		return 0;
	}
	return -1;
}

static int errno_of(const char *name)
{
	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++)
		if (strcmp(errnos[i].name, name) == 0)
			return errnos[i].number;
	return -1;
}

int main(int argc, char **argv)
{
	struct program program = { .length = 0 };
	struct sock_fprog filter = { .filter = program.lines };
	int number = argc > 3 ? errno_of(argv[1]) : -1;

	if (number < 0) {
		fprintf(stderr, "usage: deny ERRNO CALL[,CALL...] COMMAND [ARGUMENT...]\n");
		return 99;
	}
	for (const char *at = argv[2]; *at;) {
		size_t length = strcspn(at, ",");

		if (add_call(&program, at, length, SECCOMP_RET_ERRNO | (unsigned)number) < 0) {
			fprintf(stderr, "deny: unknown call %s\n", at);
			return 99;
		}
		at += length;
		at += *at == ',';
	}
	add(&program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	filter.len = program.length;
	/* not by seccomp(2), which may be among the calls that are denied */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
		perror("deny: installing the filter");
		return 99;
	}
	(void)execv(argv[3], argv + 3);
	perror("deny: execv");
	return 99;
}
