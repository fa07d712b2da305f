/*
 * Limits: what a task may use up, how well this host can hold it, and the words for both. Pure.
 *
 * limit.def is the table. `struct limits` is one value per limit and a bit for each that was asked
 * for by a flag or a policy; the others are built in. Values: nanoseconds, thousandths of a
 * processor, counts, bytes, bytes a second, by the limit's unit; LIMIT_NONE is "no limit"; 0 only
 * stands in CORE. Order of use:
 *
 *     limits_init(&facts, &limits);          built-in values, fitted to the host
 *     limits_take(&limits, "--memory", "2G", &error);
 *     limits_narrow(&limits, &managed);      layers of policy, or a box's own
 *     limits_settle(&limits);                the derived ones
 *     limits_means(&facts, means);           what holds each here
 *     limits_check(&limits, &facts, means, &error);
 *
 * What was asked for and would be absent is refused; what is built in may be held by a weaker
 * mechanism, which doctor, explain and the result then name in the words of limit_means_print():
 * exact, polled (grain), absent. *Exact* means that the kernel, or the supervisor on the task's
 * only way out, refuses the first unit beyond the limit; *polled* means that the task is ended when
 * a look finds it beyond, up to one grain late.
 */
#pragma once

#include "policy/layer.h"

#include <stdbool.h>
#include <stdint.h>

struct buffer;
struct error;

#define LIMIT_NONE UINT64_MAX
#define LIMIT_KIB (UINT64_C(1) << 10)
#define LIMIT_MIB (UINT64_C(1) << 20)
#define LIMIT_GIB (UINT64_C(1) << 30)
#define LIMIT_MS UINT64_C(1000000)
#define LIMIT_SECOND UINT64_C(1000000000)

enum limit {
#define LIMIT(name, ...) LIMIT_##name,
#include "policy/limit.def"
#undef LIMIT
	LIMIT_COUNT,
};

enum limit_unit {
	LIMIT_UNIT_DURATION,
	LIMIT_UNIT_CPUS,
	LIMIT_UNIT_COUNT,
	LIMIT_UNIT_SIZE,
	LIMIT_UNIT_RATE,
	LIMIT_UNITS,
};

struct limit_text {
	const char *word, *option, *help; /* option may be NULL */
	enum limit_unit unit;
	uint64_t value, least, most; /* value: the table's default */
};

struct limits {
	uint64_t values[LIMIT_COUNT];
	uint32_t asked; /* 1 << enum limit */
};

/* The control groups that would hold a limit. */
enum limit_group {
	LIMIT_GROUP_NONE,
	LIMIT_GROUP_V1,
	LIMIT_GROUP_V2,
	LIMIT_GROUP_SCOPE, /* v2, in a scope that systemd's manager is asked for at the start */
};

/* What the host offers, found out by others (kernel/cgroup, kernel/usage, broker/scope). */
struct limit_facts {
	/* enum limit_group: those that can be made. For CPU_TIME it is the account, which every
	 * version 2 group has. */
	uint8_t cgroup[LIMIT_COUNT];
	/* RLIMIT_NPROC counts the box's processes alone: Linux 5.14, a user namespace of its own,
	 * and an id inside that is not the host's uid 0, which the kernel exempts (fork.c) */
	bool rlimit_processes;
	bool sized_areas;	     /* tmpfs with size= and nr_inodes= in a box */
	uint64_t watchdog_grain_ns;  /* longest interval of kernel/usage; 0: it cannot be used */
	uint64_t workspace_grain_ns; /* longest interval between looks at the workspace; 0: none */
	uint64_t memory_bytes;	     /* of the host or the container around us; 0: unknown */
	uint64_t files;		     /* the caller's hard RLIMIT_NOFILE; 0: unknown */
};

struct limit_means {
	enum enforcement grade; /* EXACT, POLLED or ABSENT */
	uint64_t grain_ns;	/* POLLED: the longest delay; 0 otherwise */
	const char *mechanism;	/* what holds it, or why nothing does */
	const char *remedy;	/* ABSENT: what would help; "" otherwise */
};

const struct limit_text *limit_text(enum limit limit);

/* The limit that the option sets; LIMIT_COUNT where it sets none. */
enum limit limit_of_option(const char *option);

/*
 * Parses a value of the limit: "30s", "1.5", "64", "512M", "50M/s" by its unit. 0, signs, blanks,
 * other units, less than `least` and more than `most` are -EINVAL or -ERANGE, with a message that
 * names the option (or the word), the value and the form.
 */
int limit_parse(enum limit limit, const char *text, uint64_t *ret_value, struct error *error);

/* Built-in values, fitted to the host's memory and the caller's own bounds. */
void limits_init(const struct limit_facts *facts, struct limits *ret_limits);

/* Parses and marks as asked for. The last one wins. -EINVAL also where no limit has the option. */
int limits_take(struct limits *limits, const char *option, const char *value, struct error *error);

/* Makes each value at most the bound's; whether it was asked for comes from who decides. */
void limits_narrow(struct limits *limits, const struct limits *bound);

/*
 * Computes what has no option. The private areas follow --disk and --inodes up and down where these
 * were asked for, never beyond the task's memory, since that is what they are made of.
 */
void limits_settle(struct limits *limits);

bool limits_is_asked(const struct limits *limits, enum limit limit);

/*
 * Takes in what systemd's manager could give (a bit, 1 << enum limit, for each limit) where a scope
 * would hold the limit better than all else here. A scope costs a start some 50 ms, and moves bawn:
 * it is nothing to ask for without need.
 */
void limits_offer(struct limit_facts *facts, uint32_t offered);

/* What the host has for each limit, whatever its value. */
void limits_means(const struct limit_facts *facts, struct limit_means ret_means[LIMIT_COUNT]);

/*
 * -EOPNOTSUPP where one that was asked for would be absent, -EPERM where it is above the caller's
 * own bound; the message names the limit and the remedy.
 */
int limits_check(const struct limits *limits, const struct limit_facts *facts,
		 const struct limit_means means[LIMIT_COUNT], struct error *error);

/* The value as its option takes it: "90s", "1.5", "2G", "50M/s"; "none". */
void limit_print(enum limit limit, uint64_t value, struct buffer *buffer);

/* "exact (cgroup v2 memory.max)", "polled (500ms; ...)", "absent (...)": everywhere the same. */
void limit_means_print(const struct limit_means *means, struct buffer *buffer);
