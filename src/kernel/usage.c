#include "kernel/usage.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A line of stat is some 350 bytes; the name in it is at most 64. */
#define STAT_BYTES 1024
/* A list of children is read in pieces of this size. */
#define LIST_BYTES 16384
/* Where nobody seems to have forked, new processes are looked for all the same so often. */
#define QUIET_ROUNDS 8

struct stat_fields {
	pid_t parent;
	uint64_t start, resident_pages, own_ticks, ended_ticks, threads;
};

static uint64_t thread_time_ns(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* proc_pid_stat(5). The name is the task's own words and may hold anything but NUL. */
static int parse_stat(const char *text, struct stat_fields *ret_fields)
{
	/* by their numbers in the manual, from 3, which follows the name */
	uint64_t fields[25] = { 0 };
	const char *at = strrchr(text, ')');

	if (!at || at[1] != ' ' || !at[2])
		return -EPROTO;
	at += 3; /* the state, a letter */
	for (size_t i = 4; i <= 24; i++) {
		char *end;

		errno = 0;
		fields[i] = strtoull(at, &end, 10);
		if (end == at || errno)
			return -EPROTO;
		at = end;
	}
	*ret_fields = (struct stat_fields){
		.parent = (pid_t)fields[4],
		.own_ticks = fields[14] + fields[15],
		.ended_ticks = fields[16] + fields[17],
		.threads = fields[20],
		.start = fields[22],
		.resident_pages = fields[24],
	};
	return 0;
}

/* -ESRCH for a process that has ended. */
static int read_stat(int fd, struct stat_fields *ret_fields)
{
	char text[STAT_BYTES];
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

	if (length < 0)
		return -errno;
	if (length == 0)
		return -ESRCH;
	text[length] = '\0';
	return parse_stat(text, ret_fields);
}

__attribute__((format(printf, 2, 3))) static int open_of(const struct usage *usage,
							 const char *format, ...)
{
	va_list arguments;
	char path[64];
	int fd;

	va_start(arguments, format);
	(void)vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	fd = openat(usage->proc_fd, path, O_RDONLY | O_CLOEXEC);
	/* the directory of a process that has ended is not there */
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

static int read_process(const struct usage *usage, const struct usage_process *process,
			struct stat_fields *ret_fields)
{
	struct stat_fields fields;
	CLEANUP_FD int fd = -1;
	int result;

	if (process->stat_fd >= 0)
		return read_stat(process->stat_fd, ret_fields);
	fd = open_of(usage, "%d/stat", process->pid);
	result = fd < 0 ? fd : read_stat(fd, &fields);
	if (result == 0 && fields.start != process->start)
		result = -ESRCH;
	if (result == 0)
		*ret_fields = fields;
	return result;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t first = ((const struct usage_process *)a)->pid;
	pid_t second = ((const struct usage_process *)b)->pid;

	return first < second ? -1 : first > second;
}

static struct usage_process *find(struct usage *usage, pid_t pid)
{
	struct usage_process key = { .pid = pid };
	struct usage_process *found = NULL;

	if (usage->sorted)
		found = bsearch(&key, usage->processes, usage->sorted, sizeof(key), compare_pids);
	if (found && !found->gone)
		return found;
	for (size_t i = usage->sorted; i < usage->count; i++)
		if (usage->processes[i].pid == pid && !usage->processes[i].gone)
			return &usage->processes[i];
	return NULL;
}

static int reserve(struct usage *usage)
{
	size_t capacity = usage->capacity ? usage->capacity * 2 : 32;
	struct usage_process *grown;

	if (usage->count < usage->capacity)
		return 0;
	grown = reallocarray(usage->processes, capacity, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	usage->processes = grown;
	usage->capacity = capacity;
	return 0;
}

static void let_go(struct usage *usage, struct usage_process *process)
{
	if (process->stat_fd >= 0)
		usage->kept--;
	fd_close(&process->stat_fd);
	fd_close(&process->children_fd);
}

static void take_fields(struct usage_process *process, const struct stat_fields *fields)
{
	process->parent = fields->parent;
	process->resident_pages = fields->resident_pages;
	process->own_ticks = fields->own_ticks;
	process->ended_ticks = fields->ended_ticks;
	process->threads = fields->threads;
}

/* Those that have gone leave the array, and the rest is in order again. */
static void settle(struct usage *usage)
{
	size_t kept = 0;

	for (size_t i = 0; i < usage->count; i++)
		if (!usage->processes[i].gone)
			usage->processes[kept++] = usage->processes[i];
	usage->count = usage->sorted = kept;
	if (kept > 1)
		qsort(usage->processes, kept, sizeof(*usage->processes), compare_pids);
}

/* Appends; stat_fd is consumed: kept where there is room, closed otherwise. */
static int append(struct usage *usage, pid_t pid, int stat_fd, const struct stat_fields *fields,
		  bool root)
{
	struct usage_process process = { .pid = pid,
					 .stat_fd = stat_fd,
					 .children_fd = -1,
					 .root = root,
					 .start = fields->start };
	int result;

	usage->kept++;
	if (usage->kept > USAGE_KEPT_LIMIT)
		let_go(usage, &process);
	else if (!usage->scan)
		process.children_fd = open_of(usage, "%d/task/%d/children", pid, pid);
	if (process.children_fd < 0)
		process.children_fd = -1;
	result = reserve(usage);
	if (result < 0) {
		let_go(usage, &process);
		return result;
	}
	take_fields(&process, fields);
	usage->processes[usage->count++] = process;
	return 0;
}

/*
 * Takes a process in that was named as a child, unless it is known, has ended, or is none of ours:
 * its parent must be ours, and must live after the child was read, so that the number that the
 * child names is the parent's.
 */
static int admit(struct usage *usage, pid_t pid)
{
	struct stat_fields fields, parent_fields;
	struct usage_process *parent;
	int fd, result;

	if (find(usage, pid))
		return 0;
	if (usage->count >= USAGE_PROCESSES_LIMIT) {
		usage->truncated = true;
		return 0;
	}
	fd = open_of(usage, "%d/stat", pid);
	if (fd < 0)
		return fd == -ESRCH ? 0 : fd;
	result = read_stat(fd, &fields);
	parent = result == 0 ? find(usage, fields.parent) : NULL;
	if (!parent || read_process(usage, parent, &parent_fields) < 0) {
		fd_close(&fd);
		return result == -ESRCH ? 0 : result;
	}
	return append(usage, pid, fd, &fields, false);
}

/* Admits every number of one list; blanks part them, and a piece may end inside of one. */
static int read_list(struct usage *usage, int fd)
{
	pid_t pid = 0;
	off_t offset = 0;
	ssize_t length;
	int result = 0;

	while (result == 0 && (length = pread(fd, usage->text, LIST_BYTES, offset)) > 0) {
		for (ssize_t i = 0; result == 0 && i < length; i++) {
			char letter = usage->text[i];

			if (letter >= '0' && letter <= '9' && pid < 100000000) {
				pid = pid * 10 + (letter - '0');
			} else {
				result = pid ? admit(usage, pid) : 0;
				pid = 0;
			}
		}
		offset += length;
	}
	return result == 0 && pid ? admit(usage, pid) : result;
}

static bool parse_number(const char *text, pid_t *ret_pid)
{
	char *end;
	long value;

	if (text[0] < '1' || text[0] > '9')
		return false;
	value = strtol(text, &end, 10);
	*ret_pid = (pid_t)value;
	return *end == '\0' && value <= INT32_MAX;
}

/* A child hangs on the thread that made it. */
static int read_threads(struct usage *usage, pid_t pid)
{
	CLEANUP_FD int fd = open_of(usage, "%d/task", pid);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int result = 0;
	pid_t thread;

	if (!directory)
		return fd == -ESRCH ? 0 : fd < 0 ? fd : -errno;
	(void)TAKE_FD(fd);
	while (result == 0 && (entry = readdir(directory))) {
		CLEANUP_FD int list = -1;

		if (!parse_number(entry->d_name, &thread) || thread == pid)
			continue;
		list = open_of(usage, "%d/task/%d/children", pid, thread);
		result = list >= 0 ? read_list(usage, list) : list == -ESRCH ? 0 : list;
	}
	(void)closedir(directory);
	return result;
}

static int read_children(struct usage *usage, size_t index)
{
	/* the array may move while children are taken in */
	struct usage_process process = usage->processes[index];
	CLEANUP_FD int opened = -1;
	int fd = process.children_fd, result;

	if (fd < 0) {
		fd = opened = open_of(usage, "%d/task/%d/children", process.pid, process.pid);
		if (fd < 0)
			return fd == -ESRCH ? 0 : fd;
	}
	result = read_list(usage, fd);
	if (result == 0 && process.threads > 1)
		result = read_threads(usage, process.pid);
	return result;
}

/* Without lists of children: all of /proc, until nothing new is found. */
static int scan_all(struct usage *usage)
{
	CLEANUP_FD int fd = openat(usage->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t before;
	int result = 0;
	pid_t pid;

	if (!directory)
		return -errno;
	(void)TAKE_FD(fd);
	do {
		before = usage->count;
		rewinddir(directory);
		while (result == 0 && (entry = readdir(directory)))
			if (parse_number(entry->d_name, &pid))
				result = admit(usage, pid);
	} while (result == 0 && usage->count > before);
	(void)closedir(directory);
	return result;
}

/*
 * The number that was given last, to any process or thread of our namespace and those below it, is
 * the last field of loadavg (fs/proc/loadavg.c): while it stays, nothing is new. A fork takes its
 * number a moment before it shows, so the poll after a change looks too, and so does every eighth.
 */
static bool is_quiet(struct usage *usage)
{
	bool was_changed = usage->changed;
	char text[128] = "";
	const char *last;
	uint64_t number;

	if (usage->loadavg_fd < 0 || pread(usage->loadavg_fd, text, sizeof(text) - 1, 0) <= 0)
		return false;
	last = strrchr(text, ' ');
	if (!last)
		return false;
	number = strtoull(last, NULL, 10);
	usage->changed = number != usage->last_number;
	usage->last_number = number;
	return !usage->changed && !was_changed && usage->round % QUIET_ROUNDS != 0;
}

static int discover(struct usage *usage)
{
	int result = 0;

	if (usage->scan)
		return usage->count ? scan_all(usage) : 0;
	/* the array grows while it is walked: children of children are found at once */
	for (size_t i = 0; result == 0 && i < usage->count; i++)
		result = read_children(usage, i);
	return result;
}

static int refresh(struct usage *usage)
{
	for (size_t i = 0; i < usage->count; i++) {
		struct usage_process *process = &usage->processes[i];
		struct stat_fields fields;
		int result = read_process(usage, process, &fields);

		if (result == 0) {
			take_fields(process, &fields);
			continue;
		}
		if (result != -ESRCH)
			return result;
		process->gone = true;
		usage->gone_ticks += process->own_ticks;
		if (process->root)
			usage->gone_roots_ticks += process->own_ticks + process->ended_ticks;
		let_go(usage, process);
	}
	return 0;
}

int usage_begin(struct usage *ret_usage, int proc_fd, struct error *error)
{
	struct usage usage = {
		.proc_fd = proc_fd,
		.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
		.tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK),
		.changed = true,
	};
	struct statfs status;

	usage.text = malloc(LIST_BYTES);
	if (!usage.text)
		return error_errno(error, ENOMEM, "watching the processes of the box");
	usage.loadavg_fd = openat(proc_fd, "loadavg", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	/* lxcfs mounts one of its own making over the kernel's */
	if (usage.loadavg_fd >= 0 &&
	    (fstatfs(usage.loadavg_fd, &status) < 0 || (long)status.f_type != PROC_SUPER_MAGIC))
		fd_close(&usage.loadavg_fd);
	*ret_usage = usage;
	return 0;
}

int usage_add_root(struct usage *usage, pid_t pid, int pidfd, struct error *error)
{
	CLEANUP_FD int fd = open_of(usage, "%d/stat", pid);
	struct stat_fields fields;
	size_t roots = 0;
	char path[64];
	int result = fd < 0 ? fd : read_stat(fd, &fields);

	for (size_t i = 0; i < usage->count; i++)
		roots += usage->processes[i].root;
	if (roots >= USAGE_ROOTS_LIMIT)
		return error_errno(error, E2BIG, "watching process %d", pid);
	/* alive now: then the number was its own when it was opened */
	if (result == 0 && syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0)
		result = -errno;
	if (result < 0)
		return error_errno(error, result, "watching process %d", pid);
	(void)snprintf(path, sizeof(path), "%d/task/%d/children", pid, pid);
	if (faccessat(usage->proc_fd, path, F_OK, 0) < 0)
		usage->scan = true;
	usage->changed = true;
	result = append(usage, pid, TAKE_FD(fd), &fields, true);
	return result < 0 ? error_errno(error, result, "watching process %d", pid) : 0;
}

/* Both ways of counting miss something, and neither counts anything twice: the larger one. */
static uint64_t cpu_of(const struct usage *usage)
{
	uint64_t waited = usage->gone_roots_ticks, seen = usage->gone_ticks, ns;

	for (size_t i = 0; i < usage->count; i++) {
		waited += usage->processes[i].own_ticks + usage->processes[i].ended_ticks;
		seen += usage->processes[i].own_ticks;
	}
	ns = (waited > seen ? waited : seen) * usage->tick_ns;
	return ns > usage->cpu_ns ? ns : usage->cpu_ns;
}

int usage_poll(struct usage *usage, struct usage_sample *ret_sample)
{
	uint64_t began_ns = thread_time_ns();
	struct usage_sample sample = { 0 };
	int result;

	usage->round++;
	result = refresh(usage);
	/* gone ones make room before new ones are taken in */
	settle(usage);
	if (result == 0 && !is_quiet(usage)) {
		usage->truncated = false;
		result = discover(usage);
		/* what failed is done again */
		usage->changed |= result < 0;
	}
	settle(usage);
	if (result < 0)
		return result;
	for (size_t i = 0; i < usage->count; i++) {
		sample.resident_bytes += usage->processes[i].resident_pages * usage->page_bytes;
		sample.threads += usage->processes[i].threads;
	}
	sample.processes = usage->count;
	sample.cpu_ns = usage->cpu_ns = cpu_of(usage);
	sample.truncated = usage->truncated;
	sample.cost_ns = thread_time_ns() - began_ns;
	*ret_sample = sample;
	return 0;
}

/* The sum of the lines that are the process's own memory; false where the file cannot be read. */
static bool read_parts(const struct usage *usage, pid_t pid, uint64_t *ret_bytes)
{
	static const char *const names[] = { "\nPss_Anon:", "\nPss_Shmem:", "\nSwapPss:" };
	CLEANUP_FD int fd = open_of(usage, "%d/smaps_rollup", pid);
	char text[4096];
	uint64_t kib = 0;
	ssize_t length = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text) - 1);

	if (length <= 0)
		return false;
	text[length] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *line = strstr(text, names[i]);

		if (!line)
			return false;
		kib += strtoull(line + strlen(names[i]), NULL, 10);
	}
	*ret_bytes = kib * 1024;
	return true;
}

static uint64_t measure_all(const struct usage *usage)
{
	uint64_t total = 0;

	for (size_t i = 0; i < usage->count; i++) {
		const struct usage_process *process = &usage->processes[i];
		uint64_t bytes = process->resident_pages * usage->page_bytes;
		uint64_t parts = 0;
		struct stat_fields fields;
		bool known = read_parts(usage, process->pid, &parts);

		/* what was read was its own if it still lives; if not, it uses nothing any more */
		if (read_process(usage, process, &fields) == 0)
			total += known ? parts : bytes;
	}
	return total;
}

int usage_measure(const struct usage *usage, uint64_t timeout_ns, uint64_t *ret_bytes)
{
	CLEANUP_FD int pidfd = -1, reading = -1, writing = -1;
	/* without a signal at its end, nobody else's wait is disturbed */
	struct clone_args arguments = {
		.flags = CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = 0,
	};
	uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns, bytes = 0;
	struct pollfd poll_fd;
	ssize_t length = -1;
	int ends[2];
	long pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	reading = ends[0];
	writing = ends[1];
	pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		bytes = measure_all(usage);
		_exit(write(writing, &bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes) ? 0 : 1);
	}
	fd_close(&writing);
	poll_fd = (struct pollfd){ .fd = reading, .events = POLLIN };
	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		int left_ms = now_ns >= deadline_ns ?
				      0 :
				      (int)((deadline_ns - now_ns) / 1000000 % INT32_MAX) + 1;
		int ready = poll(&poll_fd, 1, left_ms);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready > 0)
			length = read(reading, &bytes, sizeof(bytes));
		break;
	}
	/* the lock that it may wait for is a killable wait (fs/proc/task_mmu.c) */
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	while (waitpid((pid_t)pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	if (length != (ssize_t)sizeof(bytes))
		return length < 0 ? -ETIMEDOUT : -EIO;
	*ret_bytes = bytes;
	return 0;
}

void usage_each(const struct usage *usage,
		void (*function)(void *context, const struct usage_process *process), void *context)
{
	for (size_t i = 0; i < usage->count; i++)
		function(context, &usage->processes[i]);
}

void usage_end(struct usage *usage)
{
	for (size_t i = 0; i < usage->count; i++)
		let_go(usage, &usage->processes[i]);
	free(usage->processes);
	free(usage->text);
	fd_close(&usage->loadavg_fd);
	*usage = (struct usage){ .proc_fd = -1, .loadavg_fd = -1 };
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t left(uint64_t limit, uint64_t used)
{
	return used < limit ? limit - used : 0;
}

uint64_t usage_interval(const struct usage_bounds *bounds, uint64_t memory_bytes, uint64_t cpu_ns,
			uint64_t cost_ns)
{
	uint64_t interval_ns = USAGE_INTERVAL_MAX_NS, share = USAGE_SHARE_FAR, floor_ns;

	if (bounds->memory_bytes != USAGE_UNLIMITED) {
		uint64_t bytes = left(bounds->memory_bytes, memory_bytes);

		/* less than 2^32 times less than 2^21; what takes longer does not matter */
		if (bytes < USAGE_GROWTH_BYTES_PER_SECOND)
			interval_ns =
				least(interval_ns, bytes * (1000000000 >> 9) /
							   (USAGE_GROWTH_BYTES_PER_SECOND >> 9));
		if (bytes <= bounds->memory_bytes / 4)
			share = USAGE_SHARE_NEAR;
	}
	if (bounds->cpu_ns != USAGE_UNLIMITED) {
		uint64_t ns = left(bounds->cpu_ns, cpu_ns);

		interval_ns =
			least(interval_ns, ns / (bounds->processors ? bounds->processors : 1));
		if (ns <= bounds->cpu_ns / 4)
			share = USAGE_SHARE_NEAR;
	}
	if (__builtin_mul_overflow(cost_ns, share, &floor_ns))
		floor_ns = USAGE_INTERVAL_MAX_NS;
	if (floor_ns < USAGE_INTERVAL_MIN_NS)
		floor_ns = USAGE_INTERVAL_MIN_NS;
	if (interval_ns < floor_ns)
		interval_ns = floor_ns;
	return least(interval_ns, USAGE_INTERVAL_MAX_NS);
}
