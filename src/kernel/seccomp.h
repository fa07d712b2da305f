/*
 * System call filters: which calls a process in a box, or one of our own small roles, may make.
 *
 * The filters are compiled when the project is built (tools/seccomp-gen) from three tables:
 * seccomp_calls.def (the calls as named sets), seccomp_rules.def (what depends on arguments)
 * and seccomp_roles.def (the tiny sets of our own processes). At run time a filter is a constant
 * array.
 *
 * Answers of the task filters: allowed; EPERM; ENOSYS for what is absent, unknown, or made by
 * another ABI (i386, x32); and for the *report class* a notification, so that the supervisor,
 * which holds the listener, can say exactly what was denied. It must answer each with
 * seccomp_notif_deny() and never lets a call continue: arguments in memory may change after they
 * were looked at. While no one answers, the caller waits; when the listener is closed, such calls
 * give ENOSYS. The nested variants never notify: a sandbox made inside needs the one listener
 * that the kernel permits per process.
 *
 * A filter binds the calling thread and what it starts afterwards: install it in a process with one
 * thread, as the last step before exec. Filters add up and cannot be removed.
 *
 * No function allocates, and all may be called between vfork and exec. Errors are negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sock_filter;

enum seccomp_variant {
	SECCOMP_VARIANT_DEFAULT,
	SECCOMP_VARIANT_PTRACE, /* tracing inside of the box; fixed addresses for debuggers */
	SECCOMP_VARIANT_NESTED, /* sandboxes inside of the box; no notifications */
	SECCOMP_VARIANT_NESTED_PTRACE,
	SECCOMP_VARIANT_STRICT, /* no file in memory, no execution by descriptor */
	SECCOMP_VARIANT_INIT,	/* pid 1 of a box; anything else kills it */
	SECCOMP_VARIANT_PARSE,	/* a reader of foreign text; anything else kills it */
	SECCOMP_VARIANT_SCOPE,	/* who talks with systemd's manager; anything else kills it */
	SECCOMP_VARIANT_PACK,	/* who compresses what a task wrote; anything else kills it */
	SECCOMP_VARIANT_SIGN,	/* who has the trace's key open; anything else kills it */
	SECCOMP_VARIANT_DIALER, /* who connects for a task's proxy; anything else kills it */
	SECCOMP_VARIANT_PROXY,	/* who takes a task's connections; anything else kills it */
	SECCOMP_VARIANT_COUNT,
};

/*
 * The groups of the report class: enumerator and name. PTRACE is what the ptrace variants permit,
 * and MOUNT and NAMESPACE what the nested ones permit: a denial's remedy follows from the group
 * alone. Nothing opens the others.
 */
#define SECCOMP_REPORT_TABLE(X)       \
	X(NONE, "")                   \
	X(MOUNT, "sys.mount")         \
	X(NAMESPACE, "sys.namespace") \
	X(PTRACE, "sys.ptrace")       \
	X(BPF, "sys.bpf")             \
	X(PERF, "sys.perf")           \
	X(KEYS, "sys.keys")           \
	X(HANDLE, "sys.handle")       \
	X(MODULE, "sys.module")       \
	X(CLOCK, "sys.clock")         \
	X(DEVICE, "sys.device")       \
	X(SCHED, "sys.sched")         \
	X(ADMIN, "sys.admin")         \
	X(OTHER, "sys.other")

enum seccomp_report {
#define SECCOMP_REPORT_ENUMERATOR(name, code) SECCOMP_REPORT_##name,
	SECCOMP_REPORT_TABLE(SECCOMP_REPORT_ENUMERATOR)
#undef SECCOMP_REPORT_ENUMERATOR
		SECCOMP_REPORT_COUNT,
};

struct seccomp_program {
	const struct sock_filter *filter;
	unsigned short length; /* instructions */
};

/* One waiting call. The pid is a thread's, in the reader's pid namespace; it may be gone. */
struct seccomp_notif_view {
	uint64_t id;
	int pid;
	int nr;
	uint64_t args[6]; /* as passed; the kernel may look at less of each */
};

/* The compiled filter; NULL for a number that is no variant. */
const struct seccomp_program *seccomp_filter(enum seccomp_variant variant);

/* True if the variant has a report class, so that its user needs a listener. */
bool seccomp_notifies(enum seccomp_variant variant);

/*
 * Installs a filter on the calling thread, which must have set no_new_privs (-EACCES otherwise).
 * ret_listener_fd: where to put the close-on-exec descriptor of notifications, or NULL for none
 * (the report class then gives ENOSYS). -EBUSY: there is a listener already. seccomp(2).
 */
int seccomp_install(enum seccomp_variant variant, int *ret_listener_fd)
	__attribute__((warn_unused_result));

/*
 * Takes the next waiting call; blocks unless poll(2) said POLLIN. -ENOENT: the caller was killed
 * meanwhile; go on. -EINTR: a signal. POLLHUP on the descriptor: nobody uses the filter any more.
 * seccomp_unotify(2).
 */
int seccomp_notif_receive(int fd, struct seccomp_notif_view *ret)
	__attribute__((warn_unused_result));

/*
 * Answers a call with an error (a positive errno; 0 and what is no errno become EPERM, so that
 * nothing can be told that it succeeded). -ENOENT: the caller is gone, which is no failure of the
 * supervisor.
 */
int seccomp_notif_deny(int fd, uint64_t id, int err) __attribute__((warn_unused_result));

/* The name of a call of this architecture, or NULL. */
const char *seccomp_syscall_name(int nr);

/* The group under which a call is reported; SECCOMP_REPORT_OTHER for one that is never reported. */
enum seccomp_report seccomp_report_group(int nr);

/* "sys.mount" and so on; never NULL. */
const char *seccomp_report_code(enum seccomp_report group);
