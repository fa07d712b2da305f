/*
 * The filters come from tools/seccomp-gen and not from libseccomp, because installing one is a
 * part of every start. Installed 200 times in forked children, Linux 6.18, min / median in
 * microseconds, same table: ours (179 instructions) 53 / 54-95; libseccomp 2.5.4 as binary tree
 * (536) 104 / 107-166, as list (442) 302 / 333-400, and 0.9-1.5 ms more to compile it at run
 * time. The kernel walks the program once for each number when it is installed, to find the calls
 * that are always allowed and skip the filter for those ever after; short paths are what counts.
 */
#include "kernel/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp_filters.inc"

#define MAX_ERRNO 4095

#define PROGRAM(array)                                      \
	{                                                   \
		(array), sizeof(array) / sizeof((array)[0]) \
	}

static const struct seccomp_program programs[SECCOMP_VARIANT_COUNT] = {
	[SECCOMP_VARIANT_DEFAULT] = PROGRAM(filter_default),
	[SECCOMP_VARIANT_PTRACE] = PROGRAM(filter_trace),
	[SECCOMP_VARIANT_NESTED] = PROGRAM(filter_nested),
	[SECCOMP_VARIANT_NESTED_PTRACE] = PROGRAM(filter_nested_trace),
	[SECCOMP_VARIANT_STRICT] = PROGRAM(filter_strict),
	[SECCOMP_VARIANT_INIT] = PROGRAM(filter_init),
	[SECCOMP_VARIANT_PARSE] = PROGRAM(filter_parse),
	[SECCOMP_VARIANT_SCOPE] = PROGRAM(filter_scope),
	[SECCOMP_VARIANT_PACK] = PROGRAM(filter_pack),
	[SECCOMP_VARIANT_SIGN] = PROGRAM(filter_sign),
	[SECCOMP_VARIANT_DIALER] = PROGRAM(filter_dialer),
	[SECCOMP_VARIANT_PROXY] = PROGRAM(filter_proxy),
};

/* The generator knows no third architecture, and fails the build there. */
#if defined(__aarch64__)
#define NATIVE_NUMBER(x86_64, aarch64) aarch64
#else
#define NATIVE_NUMBER(x86_64, aarch64) x86_64
#endif

/* Names in place: pointers would be relocated at each start of a position-independent program. */
static const struct call {
	short nr;
	unsigned char report;
	char name[25];
} calls[] = {
#define CALL(name, x86_64, aarch64, outcome, group) \
	{ NATIVE_NUMBER(x86_64, aarch64), SECCOMP_REPORT_##group, #name },
#include "kernel/seccomp_calls.def"
#undef CALL
};

static const char *const report_codes[SECCOMP_REPORT_COUNT] = {
#define REPORT_CODE(name, code) [SECCOMP_REPORT_##name] = (code),
	SECCOMP_REPORT_TABLE(REPORT_CODE)
#undef REPORT_CODE
};

const struct seccomp_program *seccomp_filter(enum seccomp_variant variant)
{
	return (unsigned int)variant < SECCOMP_VARIANT_COUNT ? &programs[variant] : NULL;
}

bool seccomp_notifies(enum seccomp_variant variant)
{
	return variant == SECCOMP_VARIANT_DEFAULT || variant == SECCOMP_VARIANT_PTRACE ||
	       variant == SECCOMP_VARIANT_STRICT;
}

static int load(const struct sock_fprog *program, unsigned long flags)
{
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);

	return r < 0 ? -errno : (int)r;
}

int seccomp_install(enum seccomp_variant variant, int *ret_listener_fd)
{
	const struct seccomp_program *compiled = seccomp_filter(variant);
	struct sock_fprog program;
	int r;

	if (compiled == NULL)
		return -EINVAL;
	/* The kernel only reads it; its structure has no const. */
	program = (struct sock_fprog){ compiled->length, (struct sock_filter *)compiled->filter };
	if (ret_listener_fd == NULL)
		return load(&program, 0);

	/*
	 * Waiting callers are left alone by all but deadly signals once the supervisor has the
	 * call: a restart would be a second notification of the same denial (runtimes send
	 * themselves signals).
	 */
	r = load(&program,
		 SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	if (r == -EINVAL) /* Linux before 5.19 */
		r = load(&program, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (r < 0)
		return r;
	*ret_listener_fd = r;
	return 0;
}

/*
 * A newer kernel may exchange larger structures than these headers know, so the buffers are
 * larger. What comes first in them is fixed.
 */
union notif_buffer {
	struct seccomp_notif notif;
	struct seccomp_notif_resp resp;
	unsigned char bytes[512];
};

static int check_sizes(void)
{
	struct seccomp_notif_sizes sizes = { 0 };

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return -errno;
	if (sizes.seccomp_notif > sizeof(union notif_buffer) ||
	    sizes.seccomp_notif_resp > sizeof(union notif_buffer) ||
	    sizes.seccomp_data < sizeof(struct seccomp_data))
		return -EOVERFLOW;
	return 0;
}

int seccomp_notif_receive(int fd, struct seccomp_notif_view *ret)
{
	union notif_buffer buffer;
	int r = check_sizes();

	if (r < 0)
		return r;
	memset(&buffer, 0, sizeof(buffer)); /* the kernel insists */
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &buffer) < 0)
		return -errno;

	ret->id = buffer.notif.id;
	ret->pid = (int)buffer.notif.pid;
	ret->nr = buffer.notif.data.nr;
	for (size_t i = 0; i < sizeof(ret->args) / sizeof(ret->args[0]); i++)
		ret->args[i] = buffer.notif.data.args[i];
	return 0;
}

int seccomp_notif_deny(int fd, uint64_t id, int err)
{
	union notif_buffer buffer;
	int r = check_sizes();

	if (r < 0)
		return r;
	memset(&buffer, 0, sizeof(buffer));
	buffer.resp.id = id;
	buffer.resp.error = err > 0 && err <= MAX_ERRNO ? -err : -EPERM;
	return ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &buffer) < 0 ? -errno : 0;
}

static const struct call *find_call(int nr)
{
	for (size_t i = 0; nr >= 0 && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

const char *seccomp_syscall_name(int nr)
{
	const struct call *call = find_call(nr);

	return call != NULL ? call->name : NULL;
}

enum seccomp_report seccomp_report_group(int nr)
{
	const struct call *call = find_call(nr);

	if (call == NULL || call->report == SECCOMP_REPORT_NONE)
		return SECCOMP_REPORT_OTHER;
	return (enum seccomp_report)call->report;
}

const char *seccomp_report_code(enum seccomp_report group)
{
	return (unsigned int)group < SECCOMP_REPORT_COUNT ? report_codes[group] : "";
}
