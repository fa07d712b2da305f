/*
 * What the processes of a box use, for a watchdog where no control group tells: from /proc alone
 * (proc(5); /proc/PID/task/TID/children needs CONFIG_PROC_CHILDREN, otherwise all of /proc is
 * read), without any right. Linux 5.15.
 *
 * Who belongs to a box: its roots, process 1 and each action (which is the supervisor's own child),
 * and all that descends from them. Who loses a parent is given to process 1, or to process 1 of a
 * namespace inside, or to a subreaper, and these descend too. Once seen a process belongs until it
 * is gone, so one that is missed while it changes parents is found by the next poll.
 * A process is held by an open /proc/PID/stat, which answers ESRCH for ever once it has ended,
 * whoever has its number now; beyond USAGE_KEPT_LIMIT, by number and start time. A new one is taken
 * only while its parent is one of ours and still lives. New ones are looked for only when the
 * kernel has given a number to anybody since (loadavg).
 *
 * Memory has two measures. *Resident* is the sum of what each process has in memory: one read per
 * process, no lock, never less than the truth for mapped memory, but pages that processes share
 * count once for each. While it is below the limit nothing more is needed. Only when it is not,
 * usage_measure() adds up anonymous and shared memory and swap by parts (Pss_Anon, Pss_Shmem,
 * SwapPss of smaps_rollup, 5.4), without files, which the kernel can drop. That walks page tables
 * and waits for the task's own lock, so a child of ours does it and is killed when it takes long.
 * Neither sees memory that is not mapped: files of a tmpfs (bounded by its size), memfds (each by
 * RLIMIT_FSIZE), buffers of pipes and sockets. Only a control group does.
 *
 * Processor time is what the kernel has charged: of living processes, of ended ones that were
 * waited for, and the last seen of others. In 10 ms ticks. What processes that nobody waits for
 * (SIGCHLD ignored) use between two polls is lost; a control group's account loses nothing.
 *
 * Costs (6.18, 2 processors in a virtual machine with other load; processor time of a poll that
 * comes 20 ms after the last, so with cold caches, median / 90th percentile; in parentheses when
 * somebody has forked since):
 *   2 idle processes            0.07 / 0.10 ms (0.18 / 0.38)   0.007 % of a processor at 1 a second
 *   2, one with 11 threads      0.23 / 0.33 ms (0.43 / 0.59)
 *   100 sleeping processes      1.04 / 1.24 ms (1.27 / 1.63)   first poll 4 ms
 *   50, one of which computes   0.52 / 0.70 ms (0.52 / 0.82)
 *   1,000 sleeping                            (25 / 28)        128 kept, the rest opened anew
 * Most of it is the kernel's own work on cold memory: a stat that is read in a loop takes 2.5 us.
 * usage_measure(): 3 to 7 ms for 2 processes, 10 to 15 ms for 100 small ones, 0.15 s for 1,000.
 * Descriptors: 2 per process that is kept, and one. Errors are negative errno. Memory is allocated
 * when the number of processes grows, and for a directory's names, not otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

/* Processes with descriptors of their own: 256 of the 1,024 that a process has as a rule. */
#define USAGE_KEPT_LIMIT 128
/* More are counted as `truncated`: far above every sensible limit of processes. */
#define USAGE_PROCESSES_LIMIT 16384
/* Roots: process 1 and the actions of a live box. */
#define USAGE_ROOTS_LIMIT 256

struct usage_process {
	pid_t pid, parent;
	int stat_fd, children_fd; /* owned; -1: not kept */
	bool root, gone;
	uint64_t start; /* ticks since boot: with the pid, who it is */
	uint64_t resident_pages;
	uint64_t own_ticks, ended_ticks; /* its own time; that of children it waited for */
	uint64_t threads;
};

struct usage {
	int proc_fd;			 /* borrowed */
	struct usage_process *processes; /* owned; sorted by pid between polls */
	size_t count, sorted, capacity, kept;
	char *text; /* owned: room for one list of children */
	uint64_t page_bytes, tick_ns;
	uint64_t gone_ticks;	   /* last seen own time of processes that ended */
	uint64_t gone_roots_ticks; /* last seen time of roots that ended, children included */
	uint64_t cpu_ns;	   /* of the last poll: time never goes back */
	uint32_t round;
	bool scan;	/* no lists of children here */
	bool changed;	/* somebody forked before the last poll */
	int loadavg_fd; /* owned; -1: not the kernel's */
	uint64_t last_number;
	bool truncated;
};

struct usage_sample {
	uint64_t resident_bytes; /* upper bound of mapped memory */
	uint64_t cpu_ns;
	uint64_t processes, threads; /* zombies included, as limits count them */
	uint64_t cost_ns;	     /* our own processor time for this poll */
	bool truncated;		     /* there are more: take it for a limit that was hit */
};

/* proc_fd: a directory descriptor of a /proc that shows the box's processes; borrowed. */
int usage_begin(struct usage *ret_usage, int proc_fd, struct error *error);

/*
 * Adds a root that is our child or otherwise held by the pidfd. -ESRCH when it has ended,
 * -E2BIG beyond USAGE_ROOTS_LIMIT.
 */
int usage_add_root(struct usage *usage, pid_t pid, int pidfd, struct error *error);

/*
 * Looks at all processes and finds new ones. No process left is a sample of zeros (but for time).
 * An error, of memory or descriptors, means that nothing is known: the caller ends the task.
 */
int usage_poll(struct usage *usage, struct usage_sample *ret_sample);

/*
 * The exact memory of the processes of the last poll, bytes. Processes that cannot be read count
 * with all that is resident. -ETIMEDOUT when the child had to be killed: take the sample's bound.
 * Raises no SIGCHLD; the caller sleeps until then.
 */
int usage_measure(const struct usage *usage, uint64_t timeout_ns, uint64_t *ret_bytes);

/* Calls function(context, process) for each living process of the last poll, by pid. */
void usage_each(const struct usage *usage,
		void (*function)(void *context, const struct usage_process *process),
		void *context);

void usage_end(struct usage *usage);

#define USAGE_INTERVAL_MIN_NS UINT64_C(10000000)
#define USAGE_INTERVAL_MAX_NS UINT64_C(1000000000)
/* What two processors take from the kernel at most: a page fault clears some 2 GB/s each. */
#define USAGE_GROWTH_BYTES_PER_SECOND (UINT64_C(4) << 30)
/* A poll may cost 1/400 of a processor, and where a quarter of a limit or less is left, 1/50. */
#define USAGE_SHARE_FAR 400
#define USAGE_SHARE_NEAR 50
#define USAGE_UNLIMITED UINT64_MAX

struct usage_bounds {
	uint64_t memory_bytes, cpu_ns; /* USAGE_UNLIMITED: none */
	uint32_t processors;	       /* that the task may use at once; at least 1 */
};

/*
 * Time until the next poll: as long as the task needs, at its fastest, to reach the nearer limit,
 * and no more often than the share above allows; from USAGE_INTERVAL_MIN_NS to
 * USAGE_INTERVAL_MAX_NS, the grain that is told to people. Without limits the maximum. Pure.
 */
uint64_t usage_interval(const struct usage_bounds *bounds, uint64_t memory_bytes, uint64_t cpu_ns,
			uint64_t cost_ns);
