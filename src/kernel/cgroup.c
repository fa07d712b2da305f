#include "kernel/cgroup.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* The kernel's default period of the scheduler's bandwidth control. */
#define PERIOD_US 100000
/* Between looks where the kernel has no event to wait for. */
#define PAUSE_NS 1000000
/* Process ids of one round of a kill: 32 KiB of text, and one descriptor each for this many. */
#define ROUND_BYTES 32768
#define ROUND_PROCESSES 128

static void pause_shortly(void)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

static uint64_t deadline_after(uint64_t timeout_ns)
{
	uint64_t deadline;

	return __builtin_add_overflow(clock_monotonic_ns(), timeout_ns, &deadline) ? UINT64_MAX :
										     deadline;
}

/* A file that is not there: does the kernel not have it, or is the group gone? */
static int missing(int fd)
{
	return faccessat(fd, "cgroup.procs", F_OK, 0) == 0 ? -EOPNOTSUPP : -ESTALE;
}

static int open_file(int fd, const char *name, int flags)
{
	int file = openat(fd, name, flags | O_CLOEXEC | O_NOFOLLOW);

	if (file >= 0)
		return file;
	return errno == ENOENT || errno == ENODEV ? missing(fd) : -errno;
}

/* One write: the kernel takes a value only whole. */
static int write_text(int fd, const char *name, const char *text)
{
	CLEANUP_FD int file = open_file(fd, name, O_WRONLY);

	if (file < 0)
		return file;
	if (write(file, text, strlen(text)) >= 0)
		return 0;
	return errno == ENODEV ? -ESTALE : -errno;
}

static int write_number(int fd, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	return write_text(fd, name, text);
}

/* The length, NUL-ended and cut at size; or a negative errno. */
static ssize_t read_text(int fd, const char *name, char *text, size_t size)
{
	CLEANUP_FD int file = open_file(fd, name, O_RDONLY);
	ssize_t length = file < 0 ? file : fd_read_all(file, text, size - 1);

	if (length < 0)
		return length == -ENODEV ? -ESTALE : length;
	text[length] = '\0';
	return length;
}

/* The value of a file with one number, or behind a key; "max" is CGROUP_UNLIMITED. */
static int read_number(int fd, const char *name, const char *key, uint64_t *ret_value)
{
	size_t key_length = key ? strlen(key) : 0;
	char text[4096], *at = text, *end;
	ssize_t length = read_text(fd, name, text, sizeof(text));
	uint64_t value;

	if (length < 0)
		return (int)length;
	while (key && !(strncmp(at, key, key_length) == 0 && at[key_length] == ' ')) {
		at = strchr(at, '\n');
		if (!at)
			return -EOPNOTSUPP;
		at++;
	}
	at += key ? key_length + 1 : 0;
	if (strncmp(at, "max", 3) == 0) {
		*ret_value = CGROUP_UNLIMITED;
		return 0;
	}
	if (!isdigit((unsigned char)*at))
		return -EPROTO;
	errno = 0;
	value = strtoull(at, &end, 10);
	if (errno || (*end != '\n' && *end != '\0'))
		return -EPROTO;
	*ret_value = value;
	return 0;
}

static const struct cgroup_part *part_with(const struct cgroup *cgroup,
					   enum cgroup_controller controller)
{
	for (size_t i = 0; i < cgroup->count; i++)
		if (cgroup->parts[i].hierarchy->controllers & CGROUP_BIT(controller))
			return &cgroup->parts[i];
	return NULL;
}

static const char *version_word(const struct cgroup_part *part)
{
	return part->hierarchy->version == 2 ? "v2" : "v1";
}

static int complain(const struct cgroup *cgroup, int code, const char *doing, struct error *error)
{
	if (code == -ESTALE)
		return error_set(error, ESTALE, "%s control group %s: it is gone", doing,
				 cgroup->name);
	return error_errno(error, code, "%s control group %s", doing, cgroup->name);
}

static int name_group(const char *task, char name[static CGROUP_NAME_BYTES], struct error *error)
{
	size_t length = strlen(task);

	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)task[i]) && task[i] != '-')
			length = 0;
	if (length == 0 || length + sizeof("bawn-") > CGROUP_NAME_BYTES)
		return error_set(error, EINVAL, "the task's id is no name for a control group");
	(void)snprintf(name, CGROUP_NAME_BYTES, "bawn-%s", task);
	return 0;
}

/* v2: we go into a child, and the controllers to all children. */
static int prepare(struct cgroup_hierarchy *hierarchy, uint32_t needs, struct error *error)
{
	static const struct {
		enum cgroup_controller controller;
		const char *text;
	} given[] = {
		{ CGROUP_MEMORY, "+memory" },
		{ CGROUP_PIDS, "+pids" },
		{ CGROUP_CPU, "+cpu" },
		{ CGROUP_IO, "+io" },
	};
	CLEANUP_FD int aside = -1;
	int result;

	/* io.max counts what is written back only where memory says whose page it is */
	if (needs & CGROUP_BIT(CGROUP_IO))
		needs |= CGROUP_BIT(CGROUP_MEMORY);
	if (!(hierarchy->pending & needs))
		return 0;
	if (hierarchy->move) {
		if (mkdirat(hierarchy->fd, CGROUP_SUPERVISORS, 0755) < 0 && errno != EEXIST)
			return error_errno(error, errno,
					   "making control group " CGROUP_SUPERVISORS);
		aside = openat(hierarchy->fd, CGROUP_SUPERVISORS,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		result = aside < 0 ? -errno : write_text(aside, "cgroup.procs", "0");
		if (result < 0)
			return error_errno(error, result,
					   "moving bawn to control group " CGROUP_SUPERVISORS);
		hierarchy->move = false;
	}
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		uint32_t bit = CGROUP_BIT(given[i].controller);

		if (!(hierarchy->pending & needs & bit))
			continue;
		result = write_text(hierarchy->fd, "cgroup.subtree_control", given[i].text);
		if (result < 0)
			return error_errno(error, result, "giving %s to control groups of tasks",
					   given[i].text + 1);
		hierarchy->pending &= ~bit;
	}
	return 0;
}

static int open_part(struct cgroup *cgroup, const struct cgroup_hierarchy *hierarchy)
{
	int fd = fd_open_beneath(hierarchy->fd, cgroup->name, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	cgroup->parts[cgroup->count++] = (struct cgroup_part){ fd, hierarchy };
	return 0;
}

static void remove_new(struct cgroup *cgroup)
{
	for (size_t i = 0; i < cgroup->count; i++)
		(void)unlinkat(cgroup->parts[i].hierarchy->fd, cgroup->name, AT_REMOVEDIR);
	cgroup_close(cgroup);
}

int cgroup_create(struct cgroup_host *host, const char *task, uint32_t needs,
		  struct cgroup *ret_cgroup, struct error *error)
{
	struct cgroup cgroup = CGROUP_NONE;
	int result = name_group(task, cgroup.name, error);

	for (size_t i = 0; result == 0 && i < host->count; i++) {
		struct cgroup_hierarchy *hierarchy = &host->hierarchies[i];

		if (!(hierarchy->controllers & needs))
			continue;
		result = prepare(hierarchy, needs, error);
		if (result < 0)
			break;
		if (mkdirat(hierarchy->fd, cgroup.name, 0755) < 0) {
			result = error_errno(error, errno, "making control group %s (v%d)",
					     cgroup.name, hierarchy->version);
			break;
		}
		result = open_part(&cgroup, hierarchy);
		if (result < 0) {
			(void)error_errno(error, result, "opening control group %s", cgroup.name);
			(void)unlinkat(hierarchy->fd, cgroup.name, AT_REMOVEDIR);
		}
		needs &= ~hierarchy->controllers;
	}
	if (result == 0 && needs)
		result = error_set(error, EOPNOTSUPP,
				   "control group %s: no usable hierarchy has all that it needs",
				   cgroup.name);
	if (result < 0) {
		remove_new(&cgroup);
		return result;
	}
	*ret_cgroup = cgroup;
	return 0;
}

int cgroup_open(const struct cgroup_host *host, const char *task, struct cgroup *ret_cgroup,
		struct error *error)
{
	struct cgroup cgroup = CGROUP_NONE;
	int result = name_group(task, cgroup.name, error);

	for (size_t i = 0; result == 0 && i < host->count; i++) {
		result = open_part(&cgroup, &host->hierarchies[i]);
		if (result == -ENOENT)
			result = 0;
		else if (result < 0)
			(void)error_errno(error, result, "opening control group %s", cgroup.name);
	}
	if (result < 0) {
		cgroup_close(&cgroup);
		return result;
	}
	*ret_cgroup = cgroup;
	return 0;
}

static int limit_memory(const struct cgroup_part *part, uint64_t bytes)
{
	int result;

	if (part->hierarchy->version == 2) {
		result = write_number(part->fd, "memory.max", bytes);
		if (result == 0)
			result = write_number(part->fd, "memory.swap.max", 0);
		/* a kernel without swap */
		return result == -EOPNOTSUPP ? 0 : result;
	}
	result = write_number(part->fd, "memory.limit_in_bytes", bytes);
	/* the sum with swap may never be below: it goes first when the limit grows */
	if (result == -EINVAL && write_number(part->fd, "memory.memsw.limit_in_bytes", bytes) == 0)
		result = write_number(part->fd, "memory.limit_in_bytes", bytes);
	if (result == 0) {
		result = write_number(part->fd, "memory.memsw.limit_in_bytes", bytes);
		result = result == -EOPNOTSUPP ? 0 : result;
	}
	return result;
}

static int limit_pids(const struct cgroup_part *part, uint64_t count)
{
	return write_number(part->fd, "pids.max", count);
}

static int limit_cpu(const struct cgroup_part *part, uint64_t thousandths)
{
	char text[64];
	uint64_t quota_us;
	int result;

	if (__builtin_mul_overflow(thousandths, (uint64_t)PERIOD_US / 1000, &quota_us))
		return -ERANGE;
	if (part->hierarchy->version == 2) {
		(void)snprintf(text, sizeof(text), "%" PRIu64 " %d", quota_us, PERIOD_US);
		return write_text(part->fd, "cpu.max", text);
	}
	result = write_number(part->fd, "cpu.cfs_period_us", PERIOD_US);
	return result < 0 ? result : write_number(part->fd, "cpu.cfs_quota_us", quota_us);
}

static int limit_io(const struct cgroup_part *part, const struct cgroup_limits *limits)
{
	uint64_t rate = limits->io_bytes_per_second;
	int result = 0;

	for (size_t i = 0; result == 0 && i < limits->device_count; i++) {
		unsigned major = major(limits->devices[i]), minor = minor(limits->devices[i]);
		char text[128];

		if (part->hierarchy->version == 2) {
			(void)snprintf(text, sizeof(text), "%u:%u rbps=%" PRIu64 " wbps=%" PRIu64,
				       major, minor, rate, rate);
			result = write_text(part->fd, "io.max", text);
			continue;
		}
		(void)snprintf(text, sizeof(text), "%u:%u %" PRIu64, major, minor, rate);
		result = write_text(part->fd, "blkio.throttle.read_bps_device", text);
		if (result == 0)
			result = write_text(part->fd, "blkio.throttle.write_bps_device", text);
	}
	return result;
}

int cgroup_limit(const struct cgroup *cgroup, const struct cgroup_limits *limits,
		 struct error *error)
{
	static const char *const words[] = {
		[CGROUP_MEMORY] = "memory",
		[CGROUP_PIDS] = "processes",
		[CGROUP_CPU] = "processors",
		[CGROUP_IO] = "disks",
	};
	const uint64_t values[] = {
		[CGROUP_MEMORY] = limits->memory_bytes,
		[CGROUP_PIDS] = limits->pids,
		[CGROUP_CPU] = limits->cpu_thousandths,
		[CGROUP_IO] = limits->io_bytes_per_second,
	};

	for (enum cgroup_controller i = CGROUP_MEMORY; i <= CGROUP_IO; i++) {
		const struct cgroup_part *part = part_with(cgroup, i);
		int result;

		if (values[i] == CGROUP_UNLIMITED)
			continue;
		if (!part)
			return error_set(error, EOPNOTSUPP,
					 "control group %s has no controller for %s", cgroup->name,
					 words[i]);
		result = i == CGROUP_MEMORY ? limit_memory(part, values[i]) :
			 i == CGROUP_PIDS   ? limit_pids(part, values[i]) :
			 i == CGROUP_CPU    ? limit_cpu(part, values[i]) :
					      limit_io(part, limits);
		if (result < 0) {
			(void)complain(cgroup, result, "limiting", error);
			return error_context(error, "limit of %s, %" PRIu64 " (cgroup %s)",
					     words[i], values[i], version_word(part));
		}
	}
	return 0;
}

bool cgroup_has(const struct cgroup *cgroup, enum cgroup_controller controller)
{
	for (size_t i = 0; i < cgroup->count; i++)
		if (cgroup->parts[i].hierarchy->controllers & CGROUP_BIT(controller))
			return true;
	return false;
}

bool cgroup_is_gone(const struct cgroup *cgroup)
{
	for (size_t i = 0; i < cgroup->count; i++)
		if (missing(cgroup->parts[i].fd) == -ESTALE)
			return true;
	return false;
}

int cgroup_attach(const struct cgroup *cgroup, pid_t pid, struct error *error)
{
	for (size_t i = 0; i < cgroup->count; i++) {
		int result = write_number(cgroup->parts[i].fd, "cgroup.procs", (uint64_t)pid);

		/* no such file here means that the group is gone */
		if (result == -EOPNOTSUPP)
			result = -ESTALE;
		if (result < 0) {
			(void)complain(cgroup, result, "attaching to", error);
			return error_context(error, "process %d (cgroup %s)", pid,
					     version_word(&cgroup->parts[i]));
		}
	}
	return 0;
}

int cgroup_clone_fd(const struct cgroup *cgroup)
{
	for (size_t i = 0; i < cgroup->count; i++)
		if (cgroup->parts[i].hierarchy->version == 2)
			return cgroup->parts[i].fd;
	return -1;
}

/* Leaves the value alone where the group or the kernel does not have it. */
static int read_known(const struct cgroup *cgroup, enum cgroup_controller controller,
		      const char *const files[2], const char *key, uint64_t *value)
{
	const struct cgroup_part *part = part_with(cgroup, controller);
	const char *file = part ? files[part->hierarchy->version - 1] : NULL;
	int result = file ? read_number(part->fd, file, key, value) : -EOPNOTSUPP;

	return result == -EOPNOTSUPP ? 0 : result;
}

int cgroup_read_usage(const struct cgroup *cgroup, struct cgroup_usage *ret_usage)
{
	static const char *const memory[] = { "memory.usage_in_bytes", "memory.current" };
	static const char *const peak[] = { "memory.max_usage_in_bytes", "memory.peak" };
	static const char *const pids[] = { "pids.current", "pids.current" };
	static const char *const cpu_v1[] = { "cpuacct.usage", NULL };
	static const char *const cpu_v2[] = { NULL, "cpu.stat" };
	struct cgroup_usage usage = { CGROUP_UNLIMITED, CGROUP_UNLIMITED, CGROUP_UNLIMITED,
				      CGROUP_UNLIMITED };
	uint64_t cpu_us = CGROUP_UNLIMITED;
	int result;

	result = read_known(cgroup, CGROUP_MEMORY, memory, NULL, &usage.memory_bytes);
	if (result == 0)
		result = read_known(cgroup, CGROUP_MEMORY, peak, NULL, &usage.memory_peak_bytes);
	if (result == 0)
		result = read_known(cgroup, CGROUP_PIDS, pids, NULL, &usage.pids);
	if (result == 0)
		result = read_known(cgroup, CGROUP_ACCOUNT, cpu_v1, NULL, &usage.cpu_ns);
	if (result == 0)
		result = read_known(cgroup, CGROUP_ACCOUNT, cpu_v2, "usage_usec", &cpu_us);
	if (result < 0)
		return result;
	if (cpu_us != CGROUP_UNLIMITED &&
	    __builtin_mul_overflow(cpu_us, UINT64_C(1000), &usage.cpu_ns))
		return -EPROTO;
	*ret_usage = usage;
	return 0;
}

int cgroup_read_events(const struct cgroup *cgroup, struct cgroup_events *ret_events)
{
	static const char *const memory[] = { "memory.oom_control", "memory.events" };
	static const char *const pids[] = { "pids.events", "pids.events" };
	struct cgroup_events events = { 0 };
	int result = read_known(cgroup, CGROUP_MEMORY, memory, "oom_kill", &events.oom_kills);

	if (result == 0)
		result = read_known(cgroup, CGROUP_PIDS, pids, "max", &events.pids_hits);
	if (result == 0)
		*ret_events = events;
	return result;
}

/* Waits for a line of cgroup.events, which poll(2) tells of; -ETIMEDOUT. */
static int await_event(int fd, const char *key, uint64_t wanted, uint64_t deadline_ns)
{
	CLEANUP_FD int events = open_file(fd, "cgroup.events", O_RDONLY);
	uint64_t value, now;
	char text[512];

	if (events < 0)
		return events;
	for (;;) {
		struct pollfd poll_fd = { .fd = events, .events = POLLPRI };
		/* reading through this descriptor is what arms the next event */
		ssize_t length = pread(events, text, sizeof(text), 0);
		int result = length < 0 ? (errno == ENODEV ? -ESTALE : -errno) :
					  read_number(fd, "cgroup.events", key, &value);

		if (result < 0)
			return result;
		if (value == wanted)
			return 0;
		now = clock_monotonic_ns();
		if (now >= deadline_ns)
			return -ETIMEDOUT;
		now = (deadline_ns - now) / 1000000 + 1;
		(void)poll(&poll_fd, 1, now > 50 ? 50 : (int)now);
	}
}

/* v1 has no event, and a freeze may need to be asked for again (freezer-subsystem.rst). */
static int await_state(int fd, const char *state, uint64_t deadline_ns)
{
	size_t length = strlen(state);
	char text[32];

	for (;;) {
		int result = write_text(fd, "freezer.state", state);
		ssize_t count;

		if (result < 0)
			return result;
		count = read_text(fd, "freezer.state", text, sizeof(text));
		if (count < 0)
			return (int)count;
		if (strncmp(text, state, length) == 0)
			return 0;
		if (clock_monotonic_ns() >= deadline_ns)
			return -ETIMEDOUT;
		pause_shortly();
	}
}

static int set_frozen(const struct cgroup *cgroup, uint64_t frozen, uint64_t timeout_ns)
{
	const struct cgroup_part *part = part_with(cgroup, CGROUP_FREEZE);
	uint64_t deadline_ns = deadline_after(timeout_ns);
	int result;

	if (!part)
		return -EOPNOTSUPP;
	if (part->hierarchy->version == 1)
		return await_state(part->fd, frozen ? "FROZEN" : "THAWED", deadline_ns);
	result = write_number(part->fd, "cgroup.freeze", frozen);
	return result < 0 ? result : await_event(part->fd, "frozen", frozen, deadline_ns);
}

int cgroup_freeze(const struct cgroup *cgroup, uint64_t timeout_ns, struct error *error)
{
	int result = set_frozen(cgroup, 1, timeout_ns);

	return result < 0 ? complain(cgroup, result, "freezing", error) : 0;
}

int cgroup_thaw(const struct cgroup *cgroup, uint64_t timeout_ns, struct error *error)
{
	int result = set_frozen(cgroup, 0, timeout_ns);

	return result < 0 ? complain(cgroup, result, "thawing", error) : 0;
}

/* The pids of a cgroup.procs text; 0 at its end. Processes out of our pid namespace are "0". */
static pid_t next_pid(const char **text)
{
	char *end;
	long pid;

	do {
		pid = strtol(*text, &end, 10);
		if (end == *text || *end != '\n')
			return 0;
		*text = end + 1;
	} while (pid <= 0 || pid > INT32_MAX);
	return (pid_t)pid;
}

static bool is_listed(const char *text, pid_t pid)
{
	for (pid_t other = next_pid(&text); other; other = next_pid(&text))
		if (other == pid)
			return true;
	return false;
}

/*
 * Kills some of a group's processes. A pid is listed, opened, and listed again: were it given to
 * another process in between, that one would have to be of the group too. Gives whether there were
 * any, or a negative errno.
 */
static int kill_round(int fd)
{
	pid_t pids[ROUND_PROCESSES];
	int pidfds[ROUND_PROCESSES];
	size_t count = 0;
	char *text = malloc(ROUND_BYTES);
	const char *at = text;
	ssize_t length = text ? read_text(fd, "cgroup.procs", text, ROUND_BYTES) : -ENOMEM;
	bool any = length > 0;

	for (pid_t pid = any ? next_pid(&at) : 0; pid && count < ROUND_PROCESSES;
	     pid = next_pid(&at)) {
		pids[count] = pid;
		pidfds[count] = (int)syscall(SYS_pidfd_open, pid, 0);
		count++;
	}
	if (count)
		length = read_text(fd, "cgroup.procs", text, ROUND_BYTES);
	for (size_t i = 0; i < count; i++) {
		if (length > 0 && pidfds[i] >= 0 && is_listed(text, pids[i]))
			(void)syscall(SYS_pidfd_send_signal, pidfds[i], SIGKILL, NULL, 0);
		fd_close(&pidfds[i]);
	}
	free(text);
	return length < 0 ? (int)length : any;
}

/* Until the group itself has no process. */
static int kill_repeatedly(int fd, uint64_t deadline_ns)
{
	for (;;) {
		int result = kill_round(fd);

		if (result <= 0)
			return result;
		if (clock_monotonic_ns() >= deadline_ns)
			return -ETIMEDOUT;
		pause_shortly();
	}
}

static int kill_part(const struct cgroup_part *part, uint64_t deadline_ns)
{
	uint32_t controllers = part->hierarchy->controllers;

	if (controllers & CGROUP_BIT(CGROUP_KILL)) {
		int result = write_text(part->fd, "cgroup.kill", "1");

		if (result == 0)
			return await_event(part->fd, "populated", 0, deadline_ns);
		if (result != -EOPNOTSUPP)
			return result;
	}
	return kill_repeatedly(part->fd, deadline_ns);
}

static int kill_all(const struct cgroup *cgroup, uint64_t deadline_ns)
{
	const struct cgroup_part *pids = part_with(cgroup, CGROUP_PIDS);
	const struct cgroup_part *freeze = part_with(cgroup, CGROUP_FREEZE);
	int first = 0;

	if (!part_with(cgroup, CGROUP_KILL)) {
		/* who cannot fork cannot outrun the rounds; a frozen v1 group would not die */
		if (pids)
			(void)write_number(pids->fd, "pids.max", 0);
		if (freeze && freeze->hierarchy->version == 1)
			(void)write_text(freeze->fd, "freezer.state", "THAWED");
	}
	/* a process that could not be attached everywhere is in some of them only; v2 is first */
	for (size_t i = 0; i < cgroup->count; i++) {
		int result = kill_part(&cgroup->parts[i], deadline_ns);

		if (result < 0 && result != -ESTALE && first == 0)
			first = result;
	}
	return first;
}

int cgroup_kill(const struct cgroup *cgroup, uint64_t timeout_ns, struct error *error)
{
	int result = kill_all(cgroup, deadline_after(timeout_ns));

	return result < 0 ? complain(cgroup, result, "killing", error) : 0;
}

/* The name of the first group below; false where there is none. */
static bool first_below(int fd, char name[static NAME_MAX + 1])
{
	CLEANUP_FD int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	bool found = false;

	if (!directory)
		return false;
	(void)TAKE_FD(copy);
	while (!found && (entry = readdir(directory))) {
		found = entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 &&
			strcmp(entry->d_name, "..") != 0;
		if (found)
			(void)snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
	}
	(void)closedir(directory);
	return found;
}

/* Kills what is in it and removes one group that has none below it. */
static int remove_one(int parent_fd, const char *name, uint64_t deadline_ns)
{
	for (;;) {
		CLEANUP_FD int fd = -1;
		int result;

		if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY && errno != ENOTEMPTY)
			return -errno;
		fd = fd_open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY);
		result = fd < 0 ? fd : kill_round(fd);
		if (result < 0 && result != -ENOENT && result != -ESTALE)
			return result;
		if (clock_monotonic_ns() >= deadline_ns)
			return -ETIMEDOUT;
		/* a process that was killed leaves its group a moment later */
		pause_shortly();
	}
}

/* Removes the first group that has none below it, at or below `name`. */
static int remove_deepest(int top_fd, const char *top, uint64_t deadline_ns, bool *ret_top)
{
	char name[NAME_MAX + 1], below[NAME_MAX + 1];
	CLEANUP_FD int parent_fd = openat(top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int depth = 0;

	if (parent_fd < 0)
		return -errno;
	(void)snprintf(name, sizeof(name), "%s", top);
	for (;; depth++) {
		CLEANUP_FD int fd = fd_open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY);

		if (fd < 0 && fd != -ENOENT)
			return fd;
		if (fd < 0 || !first_below(fd, below))
			break;
		if (depth >= CGROUP_DEPTH_LIMIT)
			return -ELOOP;
		fd_close(&parent_fd);
		parent_fd = TAKE_FD(fd);
		memcpy(name, below, sizeof(name));
	}
	*ret_top = depth == 0;
	return remove_one(parent_fd, name, deadline_ns);
}

static int remove_part(const struct cgroup *cgroup, const struct cgroup_part *part,
		       uint64_t deadline_ns)
{
	bool top = false;

	for (int i = 0; !top; i++) {
		int result = i < CGROUP_SUBGROUPS_LIMIT ?
				     remove_deepest(part->hierarchy->fd, cgroup->name, deadline_ns,
						    &top) :
				     -E2BIG;

		if (result < 0)
			return result;
	}
	return 0;
}

int cgroup_destroy(struct cgroup *cgroup, uint64_t timeout_ns, struct error *error)
{
	uint64_t deadline_ns = deadline_after(timeout_ns);
	int first = kill_all(cgroup, deadline_ns);

	for (size_t i = 0; i < cgroup->count; i++) {
		int result = remove_part(cgroup, &cgroup->parts[i], deadline_ns);

		if (result < 0 && first == 0)
			first = result;
	}
	if (first < 0)
		(void)complain(cgroup, first, "removing", error);
	cgroup_close(cgroup);
	return first;
}

void cgroup_close(struct cgroup *cgroup)
{
	for (size_t i = 0; i < cgroup->count; i++)
		fd_close(&cgroup->parts[i].fd);
	cgroup->count = 0;
}
