/*
 * Control groups: what this process may use of them, and one group per task. Both versions
 * (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/; cgroups(7)); Linux 5.15 and later.
 *
 * Groups are made below our own place in each hierarchy, so that limits around us go on holding:
 *   v2 delegated  our group's directory and cgroup.procs are ours to write, and its controllers can
 *                 be given to children. A group with processes may not give controllers away, so
 *                 the supervisor moves into a child `bawn-supervisors` first; only where it is the
 *                 group's one process. Others are not moved. (A hierarchy's root needs no move.)
 *   v1            each hierarchy that is ours to write: as a rule, by root.
 *   hybrid        a v2 mount without controllers: killing, freezing and the account work there.
 * A controller is in one hierarchy only, so there is never a choice but for FREEZE and ACCOUNT,
 * where v2 is taken.
 *
 * A task's group is `bawn-<task id>` in each hierarchy that one of its needs lies in, and no other.
 * Costs (6.18, 2 processors in a virtual machine, median / 90th percentile): looking for what is
 * usable 0.4 / 0.7 ms; per hierarchy: create 0.18 / 0.4 ms, destroy 0.16 / 0.5 ms; attach 25 us
 * right after another one, 0.9 / 3 ms on its own (the kernel waits for RCU before it takes
 * cgroup_threadgroup_rwsem), up to 12 ms in the cpu hierarchy. CLONE_INTO_CGROUP does not wait.
 * Processes inside cannot write cgroupfs.
 *
 * Functions return 0 or a negative errno with the error set, unless said otherwise. A group that is
 * gone, removed by whoever owns the host, is -ESTALE everywhere. Owned descriptors: `struct
 * cgroup_host` (must outlive its groups) and `struct cgroup`. Sizes in bytes, times in ns.
 *
 * An out-of-memory kill takes one process, not the whole task (memory.oom.group stays 0): a test
 * runner that loses a worker can still say so. The count is in the events.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;

enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPU,
	CGROUP_IO,
	CGROUP_ACCOUNT, /* processor time; every v2 group has it */
	CGROUP_FREEZE,
	CGROUP_KILL, /* all at once; without it cgroup_kill() repeats itself */
	CGROUP_CONTROLLERS,
};

#define CGROUP_BIT(controller) (UINT32_C(1) << (controller))

/* v2, and memory, pids, cpu, cpuacct, blkio, freezer of v1 each on its own. */
#define CGROUP_HIERARCHIES_LIMIT 8
/* "bawn-" and a task's id (policy/action.h: 23 letters). */
#define CGROUP_NAME_BYTES 64
/* Groups below a task's group when it is removed: nobody makes them on purpose. */
#define CGROUP_SUBGROUPS_LIMIT 4096
#define CGROUP_DEPTH_LIMIT 32
/* Where supervisors go so that their group can give controllers to its children. */
#define CGROUP_SUPERVISORS "bawn-supervisors"

/* Where to look; tests give a tree of their own. */
struct cgroup_source {
	int root_fd;	     /* directory that mount points are below: "/" */
	int self_fd;	     /* directory with `mountinfo` and `cgroup`: /proc/self */
	pid_t self;	     /* as cgroup.procs names us */
	bool any_filesystem; /* do not insist on cgroupfs */
};

struct cgroup_hierarchy {
	int fd;		      /* owned: where tasks' groups are made */
	int version;	      /* 1 or 2 */
	uint32_t controllers; /* CGROUP_BIT()s that a task's group has here */
	uint32_t pending;     /* v2: of these, still to be given to children */
	bool move;	      /* v2: and for that we must leave the group */
};

struct cgroup_host {
	struct cgroup_hierarchy hierarchies[CGROUP_HIERARCHIES_LIMIT]; /* v2 first */
	size_t count;
	const char *reason; /* why v2 controllers cannot be used; "" where they can */
};

struct cgroup {
	char name[CGROUP_NAME_BYTES];
	struct cgroup_part {
		int fd; /* owned */
		const struct cgroup_hierarchy *hierarchy;
	} parts[CGROUP_HIERARCHIES_LIMIT];
	size_t count;
};

#define CGROUP_NONE ((struct cgroup){ .count = 0 })
#define CGROUP_UNLIMITED UINT64_MAX

struct cgroup_limits {
	uint64_t memory_bytes; /* swap included: none in v2, within the same sum in v1 */
	uint64_t pids;
	uint64_t cpu_thousandths;     /* of a processor, per 100 ms */
	uint64_t io_bytes_per_second; /* reads, and writes, for each of the devices */
	const dev_t *devices;	      /* whole disks; the kernel refuses partitions */
	size_t device_count;
};

#define CGROUP_NO_LIMITS                                                               \
	((struct cgroup_limits){ CGROUP_UNLIMITED, CGROUP_UNLIMITED, CGROUP_UNLIMITED, \
				 CGROUP_UNLIMITED, NULL, 0 })

/* CGROUP_UNLIMITED for what no hierarchy of the group tells. */
struct cgroup_usage {
	uint64_t memory_bytes, memory_peak_bytes; /* page cache included; peak: v1, v2 of 5.19 */
	uint64_t cpu_ns;			  /* ended processes included */
	uint64_t pids;				  /* processes and threads */
};

/* Since the group was made; 0 for what no hierarchy tells. */
struct cgroup_events {
	uint64_t oom_kills; /* processes that the kernel killed for the memory limit */
	uint64_t pids_hits; /* forks that were refused */
};

/* /proc/self and "/" of this process; the caller closes both descriptors. */
int cgroup_source_open(struct cgroup_source *ret_source, struct error *error);

/*
 * Finds what is usable, by reading alone. A host without any is count 0 and no error; an error is a
 * /proc that cannot be read.
 */
int cgroup_host_open(const struct cgroup_source *source, struct cgroup_host *ret_host,
		     struct error *error);

void cgroup_host_close(struct cgroup_host *host);

/* The version (1, 2) whose groups have the controller; 0 for none. */
int cgroup_host_version(const struct cgroup_host *host, enum cgroup_controller controller);

/*
 * The controllers (CGROUP_BIT()s) that another v2 group, named as in cgroups(7), could give to
 * groups made in it; 0 where there is no such group, or no mount that shows it.
 */
uint32_t cgroup_offered(const struct cgroup_source *source, const char *path);

/* True where our own v2 group is the one of this name, whatever it lies in. */
bool cgroup_is_in(const struct cgroup_source *source, const char *name);

/*
 * Makes the task's groups for the needs (CGROUP_BIT()s, each one that cgroup_host_version() knows);
 * gives controllers to children and moves us out of the way where that is still to be done. Nothing
 * is left of it on failure. The id is letters, digits and '-'.
 */
int cgroup_create(struct cgroup_host *host, const char *task, uint32_t needs,
		  struct cgroup *ret_cgroup, struct error *error);

/* Opens the groups of a dead task, for cgroup_destroy(). No group is left: count 0, no error. */
int cgroup_open(const struct cgroup_host *host, const char *task, struct cgroup *ret_cgroup,
		struct error *error);

/* One of its hierarchies has the controller. */
bool cgroup_has(const struct cgroup *cgroup, enum cgroup_controller controller);

/* Sets what is not CGROUP_UNLIMITED; -EOPNOTSUPP where no hierarchy of the group has it. */
int cgroup_limit(const struct cgroup *cgroup, const struct cgroup_limits *limits,
		 struct error *error);

/* True when one of its groups was removed: what it held is not held any more. */
bool cgroup_is_gone(const struct cgroup *cgroup);

/*
 * Moves a process with its threads into all the groups. The caller holds the pid (its own child,
 * not waited for). -ESRCH when it has ended.
 */
int cgroup_attach(const struct cgroup *cgroup, pid_t pid, struct error *error);

/* The v2 group for CLONE_INTO_CGROUP (clone(2)), borrowed; -1 where there is none. */
int cgroup_clone_fd(const struct cgroup *cgroup);

/* For a poll: 25 to 60 us where nothing is cached (v1 memory sums up per processor). */
int cgroup_read_usage(const struct cgroup *cgroup, struct cgroup_usage *ret_usage);
int cgroup_read_events(const struct cgroup *cgroup, struct cgroup_events *ret_events);

/*
 * Stops, or lets go on, every process, and waits until the kernel confirms it. -ETIMEDOUT: some
 * process sleeps uninterruptibly, the others stand; -EOPNOTSUPP without FREEZE.
 */
int cgroup_freeze(const struct cgroup *cgroup, uint64_t timeout_ns, struct error *error);
int cgroup_thaw(const struct cgroup *cgroup, uint64_t timeout_ns, struct error *error);

/*
 * Kills every process and waits until none is left. By cgroup.kill (5.14), which no fork escapes;
 * otherwise forks are ended by pids.max where the group has it, and the kill is repeated. Processes
 * of groups below are reached by cgroup.kill and by cgroup_destroy(). -ETIMEDOUT: some remain.
 */
int cgroup_kill(const struct cgroup *cgroup, uint64_t timeout_ns, struct error *error);

/*
 * Kills what is left, removes the groups and what is below them, and closes. A group that is gone
 * is success. On -ETIMEDOUT or another failure all is closed too, and cgroup_open() finds the rest.
 */
int cgroup_destroy(struct cgroup *cgroup, uint64_t timeout_ns, struct error *error);

/* Closes only: the groups stay. */
void cgroup_close(struct cgroup *cgroup);
