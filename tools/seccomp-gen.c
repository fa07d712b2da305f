/*
 * seccomp-gen ARCHITECTURE: prints the compiled system call filters as C arrays, from the tables
 * src/kernel/seccomp_{calls,rules,roles}.def. It runs on the build machine for any target.
 *
 * Form of a filter: check the architecture; a binary decision tree over ranges of numbers with
 * equal outcome; the rules' steps; the return instructions. It is emitted backwards, from the end
 * to the start, so that every jump goes to something whose place is known. BPF's conditional
 * jumps reach 255 instructions: what is farther gets a return of its own, or an unconditional
 * jump, nearby.
 *
 * Why not libseccomp: its tree has no ranges (one comparison per listed call, so that "refused" and
 * "unknown" cost one leaf per number), and it does not know the calls of the last years. Measured:
 * see the comment at the head of src/kernel/seccomp.c.
 */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The upper half of an argument, in the tables of rules. */
#define HIGH(argument) ((argument) | 8)

enum outcome {
	OUT_ALLOW,
	OUT_REFUSE,
	OUT_ABSENT,
	OUT_KILL,
	OUT_NOTIFY,
	OUT_NO_FAMILY,
	OUT_NO_PROTOCOL,
	OUT_NO_TYPE,
	OUT_DONE,
	OUT_ACTION_COUNT,
	/* These depend on the variant and are resolved to one of the above. */
	OUT_REPORT = OUT_ACTION_COUNT,
	OUT_NEST,
	OUT_NEST_QUIET,
	OUT_TRACE,
	OUT_TRACE_QUIET,
	OUT_MEMORY_FILE,
	OUT_EXEC_BY_HAND,
	/* From here on: rules, in the order of their table. */
	OUT_RULES,
	OUT_BEFORE_RULES = OUT_RULES - 1,
#define WHEN(rule, argument, mask, value, outcome)
#define BITS(rule, argument, bits, outcome)
#define ELSE(rule, outcome) OUT_##rule,
#include "kernel/seccomp_rules.def"
#undef WHEN
#undef BITS
#undef ELSE
	OUT_COUNT,
};

static const uint32_t action_values[OUT_ACTION_COUNT] = {
	[OUT_ALLOW] = SECCOMP_RET_ALLOW,
	[OUT_REFUSE] = SECCOMP_RET_ERRNO | EPERM,
	[OUT_ABSENT] = SECCOMP_RET_ERRNO | ENOSYS,
	[OUT_KILL] = SECCOMP_RET_KILL_PROCESS,
	[OUT_NOTIFY] = SECCOMP_RET_USER_NOTIF,
	[OUT_NO_FAMILY] = SECCOMP_RET_ERRNO | EAFNOSUPPORT,
	[OUT_NO_PROTOCOL] = SECCOMP_RET_ERRNO | EPROTONOSUPPORT,
	[OUT_NO_TYPE] = SECCOMP_RET_ERRNO | ESOCKTNOSUPPORT,
	[OUT_DONE] = SECCOMP_RET_ERRNO, /* not done, and said to have succeeded */
};

enum step_kind { STEP_WHEN, STEP_BITS, STEP_ELSE };

struct step {
	enum outcome rule;
	enum step_kind kind;
	unsigned int argument;
	uint32_t mask;
	uint32_t value;
	enum outcome outcome;
};

static const struct step steps[] = {
#define WHEN(rule, argument, mask, value, outcome) \
	{ OUT_##rule, STEP_WHEN, argument, (uint32_t)(mask), value, OUT_##outcome },
#define BITS(rule, argument, bits, outcome) \
	{ OUT_##rule, STEP_BITS, argument, UINT32_MAX, bits, OUT_##outcome },
#define ELSE(rule, outcome) { OUT_##rule, STEP_ELSE, 0, 0, 0, OUT_##outcome },
#include "kernel/seccomp_rules.def"
#undef WHEN
#undef BITS
#undef ELSE
};
#define STEP_COUNT (sizeof(steps) / sizeof(steps[0]))

struct call {
	const char *name;
	int numbers[2]; /* by index of the architecture */
	enum outcome outcome;
};

static const struct call calls[] = {
#define CALL(name, x86_64, aarch64, outcome, group) { #name, { x86_64, aarch64 }, OUT_##outcome },
#include "kernel/seccomp_calls.def"
#undef CALL
};
#define CALL_COUNT (sizeof(calls) / sizeof(calls[0]))

enum variant {
	VARIANT_TASK,
	VARIANT_INIT,
	VARIANT_PARSE,
	VARIANT_SCOPE,
	VARIANT_PACK,
	VARIANT_SIGN,
	VARIANT_DIALER,
	VARIANT_PROXY,
};

struct role {
	enum variant variant;
	const char *name;
	enum outcome outcome;
};

static const struct role roles[] = {
#define ROLE(variant, name, outcome) { VARIANT_##variant, #name, OUT_##outcome },
#include "kernel/seccomp_roles.def"
#undef ROLE
};
#define ROLE_COUNT (sizeof(roles) / sizeof(roles[0]))

static const struct architecture {
	const char *name;
	uint32_t audit;
} architectures[] = {
	{ "x86_64", AUDIT_ARCH_X86_64 },
	{ "aarch64", AUDIT_ARCH_AARCH64 },
};

/* What is made: the name of the array and what the variant permits. */
static const struct recipe {
	const char *name;
	enum variant variant;
	bool nest;
	bool trace;
	bool strict;
	enum outcome unknown;
} recipes[] = {
	{ "default", VARIANT_TASK, false, false, false, OUT_ABSENT },
	{ "trace", VARIANT_TASK, false, true, false, OUT_ABSENT },
	{ "nested", VARIANT_TASK, true, false, false, OUT_ABSENT },
	{ "nested_trace", VARIANT_TASK, true, true, false, OUT_ABSENT },
	{ "strict", VARIANT_TASK, false, false, true, OUT_ABSENT },
	{ "init", VARIANT_INIT, false, false, false, OUT_KILL },
	{ "parse", VARIANT_PARSE, false, false, false, OUT_KILL },
	{ "scope", VARIANT_SCOPE, false, false, false, OUT_KILL },
	{ "proxy", VARIANT_PROXY, false, false, false, OUT_KILL },
	{ "pack", VARIANT_PACK, false, false, false, OUT_KILL },
	{ "sign", VARIANT_SIGN, false, false, false, OUT_KILL },
	{ "dialer", VARIANT_DIALER, false, false, false, OUT_KILL },
};

/* No number at or above this is listed; all that are get the recipe's outcome for the unknown. */
#define NUMBER_LIMIT 1024
#define CODE_LIMIT BPF_MAXINSNS
#define UNPLACED CODE_LIMIT
/* Less than the 255 of BPF: up to four instructions can come between the check and the jump. */
#define REACH 250

struct range {
	uint32_t first;
	enum outcome outcome;
};

struct program {
	const struct recipe *recipe;
	struct sock_filter code[CODE_LIMIT];
	unsigned int start; /* what was emitted last; the program is code[start..CODE_LIMIT) */
	unsigned int labels[OUT_COUNT]; /* where each outcome is decided */
};

static void fail(const char *what)
{
	fprintf(stderr, "seccomp-gen: %s\n", what);
	exit(1);
}

/* Removes what depends on the variant, and rules that decide nothing in it. */
static enum outcome resolve(const struct recipe *recipe, enum outcome outcome)
{
	enum outcome report = recipe->nest ? OUT_REFUSE : OUT_NOTIFY;
	enum outcome only = OUT_COUNT;

	switch (outcome) {
	case OUT_REPORT:
		return report;
	case OUT_NEST:
		return recipe->nest ? OUT_ALLOW : report;
	case OUT_NEST_QUIET:
		return recipe->nest ? OUT_ALLOW : OUT_REFUSE;
	case OUT_TRACE:
		return recipe->trace ? OUT_ALLOW : report;
	case OUT_TRACE_QUIET:
		return recipe->trace ? OUT_ALLOW : OUT_REFUSE;
	case OUT_MEMORY_FILE:
		return recipe->strict ? OUT_ABSENT : OUT_ALLOW;
	case OUT_EXEC_BY_HAND:
		return recipe->strict ? OUT_REFUSE : OUT_ALLOW;
	default:
		break;
	}
	if (outcome < OUT_RULES)
		return outcome;

	for (size_t i = 0; i < STEP_COUNT; i++) {
		enum outcome one;

		if (steps[i].rule != outcome)
			continue;
		if (steps[i].outcome >= OUT_RULES && steps[i].outcome <= outcome)
			fail("a rule names one that does not stand below it");
		one = resolve(recipe, steps[i].outcome);
		if (only != OUT_COUNT && only != one)
			return outcome;
		only = one;
	}
	return only;
}

static unsigned int emit(struct program *program, struct sock_filter instruction)
{
	if (program->start == 0)
		fail("the program is too long");
	program->code[--program->start] = instruction;
	return program->start;
}

static uint8_t distance(const struct program *program, unsigned int label)
{
	unsigned int offset = label - program->start;

	if (label < program->start || offset > UINT8_MAX)
		fail("a jump is too long");
	return (uint8_t)offset;
}

static unsigned int emit_branch(struct program *program, uint16_t test, uint32_t value,
				unsigned int yes, unsigned int no)
{
	uint8_t jt = distance(program, yes), jf = distance(program, no);

	return emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, jt, jf));
}

static unsigned int emit_load(struct program *program, size_t offset)
{
	return emit(program,
		    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* A label near enough for a conditional jump, by way of an unconditional one if need be. */
static unsigned int bring_near(struct program *program, unsigned int label)
{
	if (label - program->start <= REACH)
		return label;
	return emit(program,
		    (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, label - program->start));
}

/* The same for an outcome; an action far away is repeated. */
static unsigned int outcome_label(struct program *program, enum outcome outcome)
{
	unsigned int label = program->labels[outcome];

	if (label != UNPLACED && label - program->start <= REACH)
		return label;
	if (outcome < OUT_ACTION_COUNT)
		label = emit(program,
			     (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action_values[outcome]));
	else if (label != UNPLACED)
		label = bring_near(program, label);
	else
		fail("a rule is used before it is placed");
	return program->labels[outcome] = label;
}

static bool same_operand(const struct step *a, const struct step *b)
{
	return a->rule == b->rule && a->argument == b->argument && a->mask == b->mask;
}

/* The steps of the rules that these ranges lead to, last first. */
static void emit_rules(struct program *program, const struct range *ranges, size_t count)
{
	bool used[OUT_COUNT] = { false };
	unsigned int next = UNPLACED;

	for (size_t i = 0; i < count; i++)
		used[ranges[i].outcome] = true;
	for (size_t i = 0; i < STEP_COUNT; i++) /* one pass: rules name only those below them */
		if (used[steps[i].rule])
			used[resolve(program->recipe, steps[i].outcome)] = true;

	for (size_t i = STEP_COUNT; i-- > 0;) {
		const struct step *step = &steps[i];
		enum outcome outcome = resolve(program->recipe, step->outcome);
		unsigned int yes;

		if (!used[step->rule])
			continue;
		if (step->kind == STEP_ELSE) {
			next = outcome_label(program, outcome);
			continue;
		}
		yes = outcome_label(program, outcome);
		next = emit_branch(program, step->kind == STEP_BITS ? BPF_JSET : BPF_JEQ,
				   step->value, yes, bring_near(program, next));
		if (i == 0 || !same_operand(step, &steps[i - 1])) {
			if (step->mask != UINT32_MAX)
				emit(program, (struct sock_filter)BPF_STMT(
						      BPF_ALU | BPF_AND | BPF_K, step->mask));
			/* The lower half comes first: both targets are little-endian. */
			next = emit_load(program, offsetof(struct seccomp_data, args) +
							  (step->argument & 7) * sizeof(uint64_t) +
							  (step->argument & 8) / 2);
		}
		program->labels[step->rule] = next;
	}
}

/* A binary tree over the numbers of ranges[0..count); the number is in the accumulator. */
static unsigned int emit_tree(struct program *program, const struct range *ranges, size_t count)
{
	size_t half = count / 2;
	unsigned int low, high;

	if (count == 1)
		return outcome_label(program, ranges[0].outcome);
	if (count == 3 && ranges[0].outcome == ranges[2].outcome &&
	    ranges[2].first == ranges[1].first + 1) {
		low = outcome_label(program, ranges[0].outcome);
		high = outcome_label(program, ranges[1].outcome);
		return emit_branch(program, BPF_JEQ, ranges[1].first, high, low);
	}
	high = emit_tree(program, ranges + half, count - half);
	low = emit_tree(program, ranges, half);
	high = bring_near(program, high);
	low = bring_near(program, low);
	return emit_branch(program, BPF_JGE, ranges[half].first, high, low);
}

static int call_number(const char *name, size_t architecture)
{
	for (size_t i = 0; i < CALL_COUNT; i++)
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].numbers[architecture];
	fail("a role names a call that is not listed");
	return -1;
}

static void set_outcome(enum outcome *table, const struct recipe *recipe, int number,
			enum outcome outcome)
{
	if (number < 0)
		return;
	if (number >= NUMBER_LIMIT)
		fail("a number is out of range");
	if (table[number] != OUT_COUNT)
		fail("a number is listed twice");
	table[number] = resolve(recipe, outcome);
}

/* Fills ranges[] (NUMBER_LIMIT + 1 entries are enough); returns how many. */
static size_t find_ranges(const struct recipe *recipe, size_t architecture, struct range *ranges)
{
	enum outcome table[NUMBER_LIMIT + 1];
	size_t count = 0;

	for (size_t i = 0; i <= NUMBER_LIMIT; i++)
		table[i] = OUT_COUNT;
	if (recipe->variant == VARIANT_TASK)
		for (size_t i = 0; i < CALL_COUNT; i++)
			set_outcome(table, recipe, calls[i].numbers[architecture],
				    calls[i].outcome);
	else
		for (size_t i = 0; i < ROLE_COUNT; i++)
			if (roles[i].variant == recipe->variant)
				set_outcome(table, recipe, call_number(roles[i].name, architecture),
					    roles[i].outcome);

	for (size_t i = 0; i <= NUMBER_LIMIT; i++) {
		enum outcome outcome = table[i] == OUT_COUNT ? recipe->unknown : table[i];

		if (count == 0 || ranges[count - 1].outcome != outcome)
			ranges[count++] = (struct range){ (uint32_t)i, outcome };
	}
	return count;
}

static void generate(const struct recipe *recipe, size_t architecture)
{
	static struct program program;
	struct range ranges[NUMBER_LIMIT + 1];
	size_t count = find_ranges(recipe, architecture, ranges);
	unsigned int tree, other;

	program.recipe = recipe;
	program.start = CODE_LIMIT;
	for (size_t i = 0; i < OUT_COUNT; i++)
		program.labels[i] = UNPLACED;

	emit_rules(&program, ranges, count);
	emit_tree(&program, ranges, count);
	tree = emit_load(&program, offsetof(struct seccomp_data, nr));
	other = outcome_label(&program, recipe->unknown);
	emit_branch(&program, BPF_JEQ, architectures[architecture].audit, tree, other);
	emit_load(&program, offsetof(struct seccomp_data, arch));

	printf("\nstatic const struct sock_filter filter_%s[] = {\n", recipe->name);
	for (unsigned int i = program.start; i < CODE_LIMIT; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", program.code[i].code, program.code[i].jt,
		       program.code[i].jf, program.code[i].k);
	printf("};\n");
}

int main(int argc, char **argv)
{
	size_t architecture = 0;

	while (argc == 2 && architecture < sizeof(architectures) / sizeof(architectures[0]) &&
	       strcmp(argv[1], architectures[architecture].name) != 0)
		architecture++;
	if (argc != 2 || architecture == sizeof(architectures) / sizeof(architectures[0]))
		fail("usage: seccomp-gen x86_64|aarch64");

	printf("/* Made by tools/seccomp-gen for %s from src/kernel/seccomp_*.def. */\n",
	       architectures[architecture].name);
	for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++)
		generate(&recipes[i], architecture);
	if (fflush(stdout) != 0 || ferror(stdout))
		fail("cannot write");
	return 0;
}
