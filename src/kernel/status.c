#include "kernel/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool field(const char *text, const char *name, int base, uint64_t *ret_value)
{
	const char *at = strstr(text, name);

	if (!at)
		return false;
	*ret_value = strtoull(at + strlen(name), NULL, base);
	return true;
}

/* One read gives the whole of it. */
static int read_status(int proc_fd, const char *path, char *text, size_t size)
{
	int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -errno;
	length = read(fd, text, size - 1);
	(void)close(fd);
	if (length <= 0)
		return -EIO;
	text[length] = '\0';
	return 0;
}

int status_ignored_signals(int proc_fd, uint64_t *ret_signals)
{
	char text[4096];
	int result = read_status(proc_fd, "self/status", text, sizeof(text));

	if (result < 0)
		return result;
	return field(text, "\nSigIgn:", 16, ret_signals) ? 0 : -EPROTO;
}

int status_read(int proc_fd, pid_t pid, struct status *ret_status)
{
	static const char *const capability_names[] = { "\nCapInh:", "\nCapPrm:", "\nCapEff:",
							"\nCapBnd:", "\nCapAmb:" };
	struct status status = { 0 };
	char path[32], text[4096];
	uint64_t seccomp, privileges;
	int result;

	(void)snprintf(path, sizeof(path), "%d/status", pid);
	result = read_status(proc_fd, path, text, sizeof(text));
	if (result < 0)
		return result;
	for (unsigned i = 0; i < 5; i++)
		if (!field(text, capability_names[i], 16, &status.capabilities[i]))
			return -EPROTO;
	if (!field(text, "\nSeccomp:", 10, &seccomp) ||
	    !field(text, "\nNoNewPrivs:", 10, &privileges))
		return -EPROTO;
	status.seccomp = (int)seccomp;
	status.no_new_privs = (int)privileges;
	*ret_status = status;
	return 0;
}

/* The link says "user:[4026531837]" (namespaces(7)); 0 where it cannot be read. */
static uint64_t namespace_of(int proc_fd, const char *process, const char *kind)
{
	char path[48], text[64];
	const char *number;
	ssize_t length;

	(void)snprintf(path, sizeof(path), "%s/ns/%s", process, kind);
	length = readlinkat(proc_fd, path, text, sizeof(text) - 1);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	number = strchr(text, '[');
	return number ? strtoull(number + 1, NULL, 10) : 0;
}

bool status_is_other_namespace(int proc_fd, pid_t pid, const char *kind, uint64_t *ret_inode)
{
	char process[16];
	uint64_t theirs, ours;

	(void)snprintf(process, sizeof(process), "%d", pid);
	theirs = namespace_of(proc_fd, process, kind);
	ours = namespace_of(proc_fd, "self", kind);
	if (ret_inode)
		*ret_inode = theirs;
	return theirs && ours && theirs != ours;
}
