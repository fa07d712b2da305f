/*
 * Fails one system call of a program, or of a process that it makes, chosen by number.
 *
 *   inject list FILE -- COMMAND...                    writes "process nth call" for each call
 *   inject fail PROCESS NTH CALL ERRNO FILE -- COMMAND...
 *                                                     fails that one; writes "hit" when it was met;
 *                                                     ERRNO 0 kills the process there instead
 *   inject slow CALL FILE -- COMMAND...               each such call waits first; "hit" as above
 *   inject refuse TYPE FILE -- COMMAND...             the kernel has no such file system (ENODEV);
 *                                                     "hit" as above; nothing but fsopen stops, to
 *                                                     the command's end, after which it is ENOSYS
 *   inject of PID list|fail|slow...                   those of another program that runs already,
 *                                                     while the command does, which is not traced
 *
 * Processes are numbered in the order in which they were made; a call is the nth of its kind in its
 * process, from 0 on: how often a loop polls on a busy host does not number the others anew.
 * Everything ends with the second exec of a process (the first is the program's own, or that of
 * process 1 of a box, which goes on): from then on nothing is traced any more. The exit status is
 * the command's own, or 128 + signal.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* linux/ptrace.h, which cannot be included beside sys/ptrace.h */
struct call_info {
	uint8_t op;
	uint8_t pad[3];
	uint32_t arch;
	uint64_t instruction_pointer, stack_pointer;
	uint64_t number, arguments[6];
};
enum { INFO_ENTRY = 1, GET_SYSCALL_INFO = 0x420e };

/* A start makes five or six; a command is no longer traced when it runs. */
#define PROCESS_LIMIT 64

/* Above those of all architectures. */
#define CALL_LIMIT 1024

struct tracee {
	pid_t pid;
	long calls[CALL_LIMIT]; /* so far, of each kind */
	bool failing;		/* the result of the call that it is in is ours */
};

/* Long enough for whoever looks again and again to look between two calls. */
#define SLOW_US 100000

struct wanted {
	bool fail, slow;
	const char *refuse; /* NULL: nothing */
	long process, nth, call, code;
};

static struct tracee tracees[PROCESS_LIMIT];
static int tracee_count;
static bool begun;  /* the program has been exec'd: what came before is ours */
static pid_t other; /* runs already; 0: the command itself */

static int find(pid_t pid)
{
	for (int i = 0; i < tracee_count; i++)
		if (tracees[i].pid == pid)
			return i;
	if (tracee_count == PROCESS_LIMIT)
		exit(99);
	tracees[tracee_count] = (struct tracee){ .pid = pid };
	return tracee_count++;
}

static void set_word(pid_t pid, size_t offset, long value)
{
	(void)ptrace(PTRACE_POKEUSER, pid, (void *)offset, (void *)value);
}

static bool is_text(pid_t pid, uint64_t address, const char *text)
{
	char there[32] = "";
	size_t length = strlen(text) + 1;
	struct iovec local = { .iov_base = there, .iov_len = length };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = length };

	return length <= sizeof(there) &&
	       process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)length &&
	       memcmp(there, text, length) == 0;
}

/* Before the call is entered: the way that it goes on shows when it is left, too. */
static void refuse(struct tracee *tracee, const struct wanted *wanted, FILE *out)
{
	struct call_info info = { 0 };

	if (syscall(SYS_ptrace, GET_SYSCALL_INFO, tracee->pid, sizeof(info), &info) <= 0 ||
	    !is_text(tracee->pid, info.arguments[0], wanted->refuse))
		return;
	(void)fprintf(out, "hit\n");
	tracee->failing = true;
	set_word(tracee->pid, offsetof(struct user_regs_struct, orig_rax), SYS_getpid);
}

/* The kernel has released the descriptor whatever close(2) says: that one is really done. */
static void enter_call(int number, long call, const struct wanted *wanted, FILE *out)
{
	struct tracee *tracee = &tracees[number];
	long nth;

	if (!begun || call < 0 || call >= CALL_LIMIT)
		return;
	nth = tracee->calls[call]++;
	if (wanted->slow) {
		if (call != wanted->call)
			return;
		(void)fprintf(out, "hit\n");
		(void)usleep(SLOW_US);
		return;
	}
	if (!wanted->fail) {
		(void)fprintf(out, "%d %ld %ld\n", number, nth, call);
		return;
	}
	if (number != wanted->process || nth != wanted->nth || call != wanted->call)
		return;
	(void)fprintf(out, "hit\n");
	if (!wanted->code) {
		(void)kill(tracee->pid, SIGKILL);
		return;
	}
	tracee->failing = true;
	if (call != SYS_close)
		set_word(tracee->pid, offsetof(struct user_regs_struct, orig_rax), SYS_getpid);
}

static void leave_call(struct tracee *tracee, const struct wanted *wanted)
{
	if (!tracee->failing)
		return;
	tracee->failing = false;
	set_word(tracee->pid, offsetof(struct user_regs_struct, rax), -wanted->code);
}

static void call_stop(int number, const struct wanted *wanted, FILE *out)
{
	struct call_info info = { 0 };

	if (syscall(SYS_ptrace, GET_SYSCALL_INFO, tracees[number].pid, sizeof(info), &info) <= 0)
		return;
	if (info.op == INFO_ENTRY && !wanted->refuse)
		enter_call(number, (long)info.number, wanted, out);
	else if (info.op != INFO_ENTRY)
		leave_call(&tracees[number], wanted);
}

/* The name of process 1's image; everything else that is exec'd is the command. */
static bool is_init(pid_t pid)
{
	char path[64], name[32] = "";
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = '\0';
	(void)fclose(file);
	/* exec'd by descriptor: the kernel names it after the descriptor, or the memfd */
	return (name[0] >= '0' && name[0] <= '9') || strstr(name, "bawn") || strstr(name, "memfd");
}

/* A child has its number from its parent's event: it may die before it was ever seen to stop. */
static void note_child(pid_t parent, int event)
{
	unsigned long child = 0;

	if (event != PTRACE_EVENT_FORK && event != PTRACE_EVENT_VFORK &&
	    event != PTRACE_EVENT_CLONE)
		return;
	if (ptrace(PTRACE_GETEVENTMSG, parent, NULL, &child) == 0)
		(void)find((pid_t)child);
}

static void note_exec(int number, bool *released)
{
	if (number == 0 && !other)
		begun = true;
	else if (!is_init(tracees[number].pid))
		*released = true;
}

/* Only whose calls are counted stops at each; of the others it matters only what they make. */
static enum __ptrace_request how_to_go_on(int number, bool released, const struct wanted *wanted)
{
	if (tracees[number].failing)
		return PTRACE_SYSCALL;
	if (wanted->refuse)
		return PTRACE_CONT;
	if (released)
		return PTRACE_DETACH;
	if (wanted->fail && (number != wanted->process ||
			     tracees[number].calls[wanted->call % CALL_LIMIT] > wanted->nth))
		return PTRACE_CONT;
	return PTRACE_SYSCALL;
}

static int trace(pid_t main_pid, const struct wanted *wanted, FILE *out)
{
	bool released = false;

	for (;;) {
		int status, number, signal = 0;
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return 99;
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (pid == main_pid)
				return WIFEXITED(status) ? WEXITSTATUS(status) :
							   128 + WTERMSIG(status);
			continue;
		}
		note_child(pid, status >> 16);
		number = find(pid);
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			call_stop(number, wanted, out);
		else if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8))
			refuse(&tracees[number], wanted, out);
		else if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			note_exec(number, &released);
		else if (status >> 16 == 0)
			signal = WSTOPSIG(status);
		(void)ptrace(how_to_go_on(number, released, wanted), pid, NULL,
			     (void *)(long)signal);
	}
}

static int usage(void)
{
	(void)fprintf(stderr, "usage: inject list FILE -- COMMAND...\n"
			      "       inject fail PROCESS NTH CALL ERRNO FILE -- COMMAND...\n"
			      "       inject slow CALL FILE -- COMMAND...\n"
			      "       inject refuse TYPE FILE -- COMMAND...\n"
			      "       inject of PID list|fail|slow...\n");
	return 99;
}

static bool stop_at_fsopen(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsopen, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Waits for the byte that says that it is traced. */
static pid_t begin_command(char **argv, const int ready[static 2], bool stops_at_fsopen)
{
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) != 1 || (stops_at_fsopen && !stop_at_fsopen()))
		_exit(99);
	(void)execv(argv[0], argv);
	_exit(99);
}

/* Seized, unlike what asks to be traced, it and its children go on when we have ended. */
static bool seize(pid_t pid)
{
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
		       PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP;
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) < 0 ||
	    ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0 || waitpid(pid, &status, __WALL) != pid)
		return false;
	(void)find(pid);
	return ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0;
}

int main(int argc, char **argv)
{
	struct wanted wanted = { 0 };
	int at, status, ready[2];
	FILE *out;
	pid_t pid;

	if (argc > 3 && strcmp(argv[1], "of") == 0) {
		other = (pid_t)strtol(argv[2], NULL, 10);
		begun = true;
		argc -= 2;
		argv += 2;
	}
	wanted.fail = argc > 7 && strcmp(argv[1], "fail") == 0;
	wanted.slow = argc > 4 && strcmp(argv[1], "slow") == 0;
	if (argc > 4 && strcmp(argv[1], "refuse") == 0)
		wanted.refuse = argv[2];
	at = wanted.fail ? 6 : wanted.slow || wanted.refuse ? 3 : 2;
	if (argc < at + 3 || strcmp(argv[at + 1], "--") != 0)
		return usage();
	if (wanted.fail) {
		wanted.process = strtol(argv[2], NULL, 10);
		wanted.nth = strtol(argv[3], NULL, 10);
		wanted.call = strtol(argv[4], NULL, 10);
		wanted.code = strtol(argv[5], NULL, 10);
	}
	if (wanted.refuse)
		wanted.code = ENODEV;
	if (wanted.slow)
		wanted.call = strtol(argv[2], NULL, 10);
	out = fopen(argv[at], "we");
	if (!out)
		return usage();
	if (pipe2(ready, O_CLOEXEC) < 0)
		return 99;
	pid = begin_command(argv + at + 2, ready, wanted.refuse);
	if (pid < 0 || !seize(other ? other : pid))
		return 99;
	(void)!write(ready[1], "", 1);
	status = trace(pid, &wanted, out);
	(void)fclose(out);
	return status;
}
