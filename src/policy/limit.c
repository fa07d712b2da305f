#include "policy/limit.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/quantity.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Room for a number with its unit: 20 digits, a point, "/s". */
#define VALUE_BYTES 32
/* Longer texts are no value; also bounds what a message repeats of it. */
#define SHOWN_BYTES 40

static const struct limit_text limit_texts[LIMIT_COUNT] = {
#define LIMIT(name, word, option, unit, value, least, most, help) \
	{ word, option, help, LIMIT_UNIT_##unit, value, least, most },
#include "policy/limit.def"
#undef LIMIT
};

_Static_assert(LIMIT_COUNT <= 32, "one bit of `asked` per limit");

struct factor {
	uint64_t factor;
	const char *name;
};

/* Largest first: the first that divides a value prints it. */
static const struct factor durations[] = {
	{ 86400 * LIMIT_SECOND, "d" }, { 3600 * LIMIT_SECOND, "h" }, { 60 * LIMIT_SECOND, "m" },
	{ LIMIT_SECOND, "s" },	       { LIMIT_MS, "ms" },	     { 1, "ns" },
};
static const struct factor sizes[] = {
	{ LIMIT_GIB << 10, "T" }, { LIMIT_GIB, "G" }, { LIMIT_MIB, "M" },
	{ LIMIT_KIB, "K" },	  { 1, "" },
};
static const struct factor rates[] = {
	{ LIMIT_GIB << 10, "T/s" }, { LIMIT_GIB, "G/s" }, { LIMIT_MIB, "M/s" },
	{ LIMIT_KIB, "K/s" },	    { 1, "/s" },
};

const struct limit_text *limit_text(enum limit limit)
{
	return &limit_texts[limit];
}

enum limit limit_of_option(const char *option)
{
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++)
		if (limit_texts[limit].option && strcmp(limit_texts[limit].option, option) == 0)
			return limit;
	return LIMIT_COUNT;
}

bool limits_is_asked(const struct limits *limits, enum limit limit)
{
	return limits->asked >> limit & 1;
}

/* "2", "0.5", "1.25": at most three decimals. */
static int parse_cpus(const char *text, uint64_t *ret_thousandths)
{
	size_t digits = strspn(text, "0123456789"), decimals;
	char whole_text[VALUE_BYTES];
	uint64_t whole, part = 0;
	int result;

	if (digits >= sizeof(whole_text))
		return -ERANGE;
	memcpy(whole_text, text, digits);
	whole_text[digits] = '\0';
	result = quantity_count(whole_text, &whole);
	if (result < 0)
		return result;
	if (text[digits]) {
		const char *point = text + digits;

		decimals = strspn(point + 1, "0123456789");
		if (point[0] != '.' || decimals < 1 || decimals > 3 || point[1 + decimals])
			return -EINVAL;
		for (size_t i = 1; i <= 3; i++)
			part = part * 10 + (i <= decimals ? (uint64_t)(point[i] - '0') : 0);
	}
	if (__builtin_mul_overflow(whole, UINT64_C(1000), &whole) ||
	    __builtin_add_overflow(whole, part, ret_thousandths))
		return -ERANGE;
	return 0;
}

static int parse_rate(const char *text, uint64_t *ret_bytes)
{
	size_t length = strlen(text);
	char size[VALUE_BYTES];

	if (length < 3 || strcmp(text + length - 2, "/s") != 0)
		return -EINVAL;
	if (length - 2 >= sizeof(size))
		return -ERANGE;
	memcpy(size, text, length - 2);
	size[length - 2] = '\0';
	return quantity_size(size, ret_bytes);
}

static const struct {
	int (*parse)(const char *text, uint64_t *ret_value);
	const char *form;
} units[LIMIT_UNITS] = {
	[LIMIT_UNIT_DURATION] = { quantity_duration,
				  "not a duration; a number with ms, s, m, h or d, as in 30s" },
	[LIMIT_UNIT_CPUS] = { parse_cpus, "not a number of processors, as in 2 or 0.5" },
	[LIMIT_UNIT_COUNT] = { quantity_count, "not a count; digits alone, as in 64" },
	[LIMIT_UNIT_SIZE] = { quantity_size,
			      "not a size; bytes, or a number with K, M, G or T, as in 512M" },
	[LIMIT_UNIT_RATE] = { parse_rate, "not a rate; a size with /s, as in 50M/s" },
};

static void format_value(enum limit limit, uint64_t value, char text[static VALUE_BYTES])
{
	static const struct factor one[] = { { 1, "" } };
	static const struct factor *const factors[LIMIT_UNITS] = {
		[LIMIT_UNIT_DURATION] = durations,
		[LIMIT_UNIT_COUNT] = one,
		[LIMIT_UNIT_SIZE] = sizes,
		[LIMIT_UNIT_RATE] = rates,
	};
	enum limit_unit unit = limit_texts[limit].unit;
	const struct factor *factor = factors[unit];

	if (value == LIMIT_NONE) {
		(void)snprintf(text, VALUE_BYTES, "none");
	} else if (unit == LIMIT_UNIT_CPUS) {
		int length = snprintf(text, VALUE_BYTES, "%" PRIu64 ".%03u", value / 1000,
				      (unsigned)(value % 1000));

		while (length > 1 && text[length - 1] == '0')
			text[--length] = '\0';
		if (length > 1 && text[length - 1] == '.')
			text[length - 1] = '\0';
	} else {
		/* the last of each table divides everything; 0 is 0 of the smallest */
		while (factor->factor > 1 && (value == 0 || value % factor->factor))
			factor++;
		(void)snprintf(text, VALUE_BYTES, "%" PRIu64 "%s", value / factor->factor,
			       factor->name);
	}
}

void limit_print(enum limit limit, uint64_t value, struct buffer *buffer)
{
	char text[VALUE_BYTES];

	format_value(limit, value, text);
	buffer_text(buffer, text);
}

int limit_parse(enum limit limit, const char *text, uint64_t *ret_value, struct error *error)
{
	const struct limit_text *row = &limit_texts[limit];
	const char *kind = row->option ? "option" : "limit";
	const char *name = row->option ? row->option : row->word;
	char least[VALUE_BYTES], most[VALUE_BYTES];
	uint64_t value = 0;
	int result = units[row->unit].parse(text, &value);

	if (result == -EINVAL)
		return error_set(error, EINVAL, "%s %s %.*s: %s", kind, name, SHOWN_BYTES, text,
				 units[row->unit].form);
	if (result == 0 && value >= row->least && value <= row->most) {
		*ret_value = value;
		return 0;
	}
	format_value(limit, row->least, least);
	if (row->most == INT64_MAX && !(result == 0 && value < row->least))
		return error_set(error, ERANGE, "%s %s %.*s: too large; leave it out for no limit",
				 kind, name, SHOWN_BYTES, text);
	if (row->most == INT64_MAX)
		return error_set(error, ERANGE, "%s %s %.*s: too small; at least %s", kind, name,
				 SHOWN_BYTES, text, least);
	format_value(limit, row->most, most);
	return error_set(error, ERANGE, "%s %s %.*s: out of range; from %s to %s", kind, name,
			 SHOWN_BYTES, text, least, most);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void limits_init(const struct limit_facts *facts, struct limits *ret_limits)
{
	struct limits limits = { .asked = 0 };
	uint64_t *memory = &limits.values[LIMIT_MEMORY];

	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++)
		limits.values[limit] = limit_texts[limit].value;
	if (facts->memory_bytes) {
		*memory = larger(*memory, facts->memory_bytes / 2);
		*memory = smaller(*memory, facts->memory_bytes / 4 * 3);
		*memory = larger(*memory, limit_texts[LIMIT_MEMORY].least);
		/* a number that people can read */
		*memory -= *memory % LIMIT_MIB;
	}
	if (facts->files)
		limits.values[LIMIT_FILES] = smaller(limits.values[LIMIT_FILES], facts->files);
	limits_settle(&limits);
	*ret_limits = limits;
}

int limits_take(struct limits *limits, const char *option, const char *value, struct error *error)
{
	enum limit limit = limit_of_option(option);
	int result;

	if (limit == LIMIT_COUNT)
		return error_set(error, EINVAL, "option %.*s sets no limit", SHOWN_BYTES, option);
	result = limit_parse(limit, value, &limits->values[limit], error);
	if (result == 0)
		limits->asked |= UINT32_C(1) << limit;
	return result;
}

void limits_narrow(struct limits *limits, const struct limits *bound)
{
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		uint32_t bit = UINT32_C(1) << limit;

		if (bound->values[limit] > limits->values[limit])
			continue;
		/* equal values: asked for by either is asked for */
		if (bound->values[limit] < limits->values[limit])
			limits->asked &= ~bit;
		limits->values[limit] = bound->values[limit];
		limits->asked |= bound->asked & bit;
	}
}

void limits_settle(struct limits *limits)
{
	static const struct {
		enum limit limit, source;
	} derived[] = {
		{ LIMIT_AREA_SIZE, LIMIT_DISK },
		{ LIMIT_AREA_INODES, LIMIT_INODES },
	};
	uint64_t *size = &limits->values[LIMIT_AREA_SIZE];

	for (size_t i = 0; i < sizeof(derived) / sizeof(derived[0]); i++) {
		enum limit limit = derived[i].limit, source = derived[i].source;
		uint32_t bit = UINT32_C(1) << limit;
		uint64_t value = limits->values[source];

		if (limits_is_asked(limits, source)) {
			limits->asked |= bit;
		} else {
			limits->asked &= ~bit;
			value = smaller(value, limit_texts[limit].value);
		}
		limits->values[limit] = value;
	}
	*size = smaller(*size, limits->values[LIMIT_MEMORY]);
}

#define DELEGATE                                                                                \
	"let systemd have its cgroup v2 controller to give (as root: Delegate=cpu io memory "   \
	"pids under [Service] in `systemctl edit user@.service`), run bawn in a control group " \
	"that is delegated to it, or leave the option out"
/* Behind what the kernel's file is called: the supervisor is where it was asked to be. */
#define SCOPE ", in a scope asked of systemd"

static struct limit_means exact(const char *mechanism)
{
	return (struct limit_means){ ENFORCEMENT_EXACT, 0, mechanism, "" };
}

static struct limit_means absent(const char *reason, const char *remedy)
{
	return (struct limit_means){ ENFORCEMENT_ABSENT, 0, reason, remedy };
}

static struct limit_means polled(uint64_t grain_ns, const char *mechanism)
{
	return (struct limit_means){ ENFORCEMENT_POLLED, grain_ns, mechanism, "" };
}

static struct limit_means memory_means(const struct limit_facts *facts)
{
	if (facts->cgroup[LIMIT_MEMORY] == LIMIT_GROUP_SCOPE)
		return exact("cgroup v2 memory.max" SCOPE);
	if (facts->cgroup[LIMIT_MEMORY] == LIMIT_GROUP_V2)
		return exact("cgroup v2 memory.max");
	if (facts->cgroup[LIMIT_MEMORY] == LIMIT_GROUP_V1)
		return exact("cgroup v1 memory.limit_in_bytes");
	if (facts->watchdog_grain_ns)
		return polled(facts->watchdog_grain_ns, "watchdog over the task's processes");
	return absent("no control group for memory can be made and /proc cannot be read", DELEGATE);
}

static struct limit_means pids_means(const struct limit_facts *facts)
{
	if (facts->cgroup[LIMIT_PIDS] == LIMIT_GROUP_SCOPE)
		return exact("cgroup v2 pids.max" SCOPE);
	if (facts->cgroup[LIMIT_PIDS] == LIMIT_GROUP_V2)
		return exact("cgroup v2 pids.max");
	if (facts->cgroup[LIMIT_PIDS] == LIMIT_GROUP_V1)
		return exact("cgroup v1 pids.max");
	if (facts->rlimit_processes)
		return exact("RLIMIT_NPROC of the box's user namespace");
	/* a watchdog is no answer to a fork bomb: it is over before the first look */
	return absent(
		"no control group for processes can be made, and RLIMIT_NPROC counts those of "
		"the whole host",
		DELEGATE);
}

static struct limit_means cpus_means(const struct limit_facts *facts)
{
	if (facts->cgroup[LIMIT_CPUS] == LIMIT_GROUP_SCOPE)
		return exact("cgroup v2 cpu.max" SCOPE);
	if (facts->cgroup[LIMIT_CPUS] == LIMIT_GROUP_V2)
		return exact("cgroup v2 cpu.max");
	if (facts->cgroup[LIMIT_CPUS] == LIMIT_GROUP_V1)
		return exact("cgroup v1 cpu.cfs_quota_us");
	return absent("no control group for processors can be made", DELEGATE);
}

static struct limit_means cpu_time_means(const struct limit_facts *facts)
{
	uint64_t grain = facts->watchdog_grain_ns;

	if (grain && facts->cgroup[LIMIT_CPU_TIME] == LIMIT_GROUP_SCOPE)
		return polled(grain, "cgroup v2 cpu.stat" SCOPE);
	if (grain && facts->cgroup[LIMIT_CPU_TIME] == LIMIT_GROUP_V2)
		return polled(grain, "cgroup v2 cpu.stat");
	if (grain && facts->cgroup[LIMIT_CPU_TIME] == LIMIT_GROUP_V1)
		return polled(grain, "cgroup v1 cpuacct.usage");
	if (grain)
		return polled(grain, "watchdog over the task's processes");
	return absent("nothing on this host accounts for a task's processor time", DELEGATE);
}

static struct limit_means io_means(const struct limit_facts *facts)
{
	if (facts->cgroup[LIMIT_IO] == LIMIT_GROUP_SCOPE)
		return exact("cgroup v2 io.max" SCOPE);
	if (facts->cgroup[LIMIT_IO] == LIMIT_GROUP_V2)
		return exact("cgroup v2 io.max");
	/* what most programs write goes through the page cache, and version 1 does not see whose
	 * it is (Documentation/admin-guide/cgroup-v1/blkio-controller.rst) */
	if (facts->cgroup[LIMIT_IO] == LIMIT_GROUP_V1)
		return absent("cgroup v1 throttles reads and direct writes only", DELEGATE);
	return absent("no control group for disks can be made", DELEGATE);
}

/*
 * dmem (Linux 6.14, Documentation/admin-guide/cgroup-v2.rst) is the only controller that knows of
 * GPUs; their time is shared out by each driver's own scheduler, between clients and not tasks.
 */
static struct limit_means gpu_means(void)
{
	return absent("Linux has no controller for a GPU's time; cgroup v2 dmem bounds device "
		      "memory alone",
		      "leave the device out of --devices, or show one that nothing else needs (a "
		      "GPU, or a partition that its hardware makes)");
}

static struct limit_means area_means(const struct limit_facts *facts, const char *mechanism)
{
	return facts->sized_areas ?
		       exact(mechanism) :
		       absent("the private areas cannot be given a size", "leave the option out");
}

static struct limit_means workspace_means(const struct limit_facts *facts, const char *mechanism)
{
	return facts->workspace_grain_ns ? polled(facts->workspace_grain_ns, mechanism) :
					   absent("nothing looks at what is added to the workspace",
						  "leave the option out");
}

void limits_means(const struct limit_facts *facts, struct limit_means ret_means[LIMIT_COUNT])
{
	ret_means[LIMIT_WALL_CLOCK] = exact("timer of the supervisor");
	ret_means[LIMIT_CPU_TIME] = cpu_time_means(facts);
	ret_means[LIMIT_CPUS] = cpus_means(facts);
	ret_means[LIMIT_GPU] = gpu_means();
	ret_means[LIMIT_MEMORY] = memory_means(facts);
	ret_means[LIMIT_PIDS] = pids_means(facts);
	ret_means[LIMIT_FILES] = exact("RLIMIT_NOFILE of each process");
	ret_means[LIMIT_WATCHERS] = exact("max_inotify_instances of the box's user namespace");
	ret_means[LIMIT_WATCHES] = exact("max_inotify_watches of the box's user namespace");
	ret_means[LIMIT_TERMINALS] = exact("devpts max=");
	ret_means[LIMIT_SIGNALS] = exact("RLIMIT_SIGPENDING of the box's user namespace");
	ret_means[LIMIT_NAMESPACES] = exact("max_*_namespaces of the box's user namespace");
	ret_means[LIMIT_AREA_SIZE] = area_means(facts, "tmpfs size=");
	ret_means[LIMIT_AREA_INODES] = area_means(facts, "tmpfs nr_inodes=");
	ret_means[LIMIT_DISK] = workspace_means(facts, "bytes added to the workspace");
	ret_means[LIMIT_INODES] = workspace_means(facts, "files added to the workspace");
	ret_means[LIMIT_IO] = io_means(facts);
	ret_means[LIMIT_OUTPUT] = exact("pump of the supervisor");
	ret_means[LIMIT_CORE] = exact("RLIMIT_CORE of each process");
	ret_means[LIMIT_GRACE] = exact("timer of the supervisor");
}

void limits_offer(struct limit_facts *facts, uint32_t offered)
{
	struct limit_means without[LIMIT_COUNT], with[LIMIT_COUNT];
	struct limit_facts all = *facts;

	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++)
		if (offered >> limit & 1)
			all.cgroup[limit] = LIMIT_GROUP_SCOPE;
	limits_means(facts, without);
	limits_means(&all, with);
	/* a grade is the better the greater it is */
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++)
		if (with[limit].grade > without[limit].grade)
			facts->cgroup[limit] = LIMIT_GROUP_SCOPE;
}

int limits_check(const struct limits *limits, const struct limit_facts *facts,
		 const struct limit_means means[LIMIT_COUNT], struct error *error)
{
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		const struct limit_text *row = &limit_texts[limit];

		if (!limits_is_asked(limits, limit) || means[limit].grade != ENFORCEMENT_ABSENT)
			continue;
		return error_set(error, EOPNOTSUPP, "limit %s%s%s%s cannot be held here: %s; %s",
				 row->word, row->option ? " (" : "", row->option ? row->option : "",
				 row->option ? ")" : "", means[limit].mechanism,
				 means[limit].remedy);
	}
	if (facts->files && limits->values[LIMIT_FILES] > facts->files)
		return error_set(error, EPERM,
				 "limit open files (--files): %" PRIu64
				 " is above the caller's own hard limit of %" PRIu64
				 " (ulimit -Hn); ask for less",
				 limits->values[LIMIT_FILES], facts->files);
	return 0;
}

void limit_means_print(const struct limit_means *means, struct buffer *buffer)
{
	buffer_text(buffer, enforcement_name(means->grade));
	buffer_text(buffer, " (");
	if (means->grade == ENFORCEMENT_POLLED) {
		limit_print(LIMIT_WALL_CLOCK, means->grain_ns, buffer);
		buffer_text(buffer, "; ");
	}
	buffer_text(buffer, means->mechanism);
	buffer_text(buffer, ")");
}
