/*
 * `bawn verify` against boxes that lack something: claims the whole plan, sets up a reduced one,
 * and prints what differs. Shows that the battery fails when a layer is missing. Never installed.
 *
 *	verify-lab WITHOUT STATE-DIRECTORY [POLICY]
 *
 * WITHOUT is a layer's name, "read-only" (binds of the host are writable), "execution" (anything
 * can be executed), "areas" (these are larger), "view" (it shows more than is claimed), "engine"
 * (it shows the directory that ENGINE names), "addresses" (names may lead to special ones), "probe"
 * (the probe dies at once) or "nothing". "hidden" and "protected" are names in the current
 * directory. One line per difference: layer, attempt with its arguments, outcome, between tabs.
 * Exit 0: nothing differs; 1: something does; 125: failure.
 */
#include "base/arena.h"
#include "base/error.h"
#include "broker/battery.h"
#include "cli/request.h"
#include "policy/egress_compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_left_out(const struct plan_op *op, const char *without)
{
	/* the listener stays: in the host's own network it is made all the same */
	return strcmp(layer_name(op->layer), without) == 0 && op->kind != PLAN_LISTENER;
}

/* What a policy with exec.strict adds to mounts and to Landlock's rules. */
static void let_execute(struct plan_op *op)
{
	if (op->kind == PLAN_ROOT || op->kind == PLAN_BIND || op->kind == PLAN_AREA ||
	    op->kind == PLAN_OVERLAY)
		op->flags &= ~(uint64_t)PLAN_NO_EXEC;
	if (op->kind == PLAN_LANDLOCK_ALLOW && op->number == PLAN_ACCESS_READ_DATA)
		op->number = PLAN_ACCESS_READ;
	if (op->kind == PLAN_LANDLOCK_ALLOW && op->number == PLAN_ACCESS_WRITE_DATA)
		op->number = PLAN_ACCESS_WRITE;
}

static void reduce(struct plan *plan, const char *without, struct arena *arena)
{
	struct plan_op *ops = arena_array(arena, plan->count, sizeof(*ops));
	size_t count = 0;

	for (size_t i = 0; ops && i < plan->count; i++) {
		struct plan_op op = plan->ops[i];

		if (strcmp(without, "environment") != 0 && is_left_out(&op, without))
			continue;
		if (strcmp(without, "read-only") == 0 && op.kind == PLAN_BIND)
			op.flags &= ~(uint64_t)PLAN_READ_ONLY;
		if (strcmp(without, "execution") == 0)
			let_execute(&op);
		if (strcmp(without, "areas") == 0 && op.kind == PLAN_AREAS)
			op.number *= 2;
		ops[count++] = op;
	}
	plan->ops = ops;
	plan->count = count;
}

static void print(const struct battery *battery)
{
	for (size_t i = 0; i < battery->count; i++) {
		const struct battery_row *row = &battery->rows[i];

		if (row->passed)
			continue;
		printf("%s\t%s", layer_name(row->layer), battery_name(row));
		for (size_t j = 0; j < row->shown; j++)
			printf(" %s", row->arguments[j]);
		printf("\t%s\n", row->outcome);
	}
}

/* As rules that name them would. */
static void open_addresses(struct egress_policy *egress, struct arena *arena)
{
	static const char *const addresses[] = {
		"127.0.0.1",	 "169.254.169.254",	   "10.0.0.1", "192.168.0.1", "::1",
		"fd00:ec2::254", "::ffff:169.254.169.254",
	};
	static struct egress_ports web = { 80, 80 };

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct egress_rule rule = { .ref = { .id = "lab" },
					    .verdict = EGRESS_ALLOW,
					    .kind = EGRESS_NETWORK,
					    .name = "",
					    .ports = &web,
					    .port_count = 1,
					    .protocols = EGRESS_PROTOCOLS_DEFAULT,
					    .tool = "",
					    .purpose = "" };

		(void)address_parse(addresses[i], strlen(addresses[i]), &rule.network);
		rule.prefix_bits = rule.network.family == ADDRESS_V4 ? 32 : 128;
		(void)egress_add(egress, &rule, arena);
	}
}

/* What the box is made from; with "view" it shows more than is claimed. */
static int make(const struct request *request, const char *without, struct arena *arena,
		struct effective *ret_enforced, struct error *error)
{
	bool shows_engine = strcmp(without, "engine") == 0;
	struct request more = *request;
	struct request_path paths[8];
	enum effective_failure failure;
	int result;

	if (strcmp(without, "view") == 0 || shows_engine) {
		memcpy(paths, request->paths, request->path_count * sizeof(paths[0]));
		paths[more.path_count++] =
			(struct request_path){ .class = PATH_READ,
					       .path = shows_engine ? getenv("ENGINE") : "/var/log",
					       .flag = "--read",
					       .position = 9 };
		more.paths = paths;
	}
	result = effective_make(&more, arena, ret_enforced, &failure, NULL, error);
	if (result == 0 && strcmp(without, "addresses") == 0)
		open_addresses(&ret_enforced->policy.egress, arena);
	if (result == 0)
		reduce(&ret_enforced->plan, without, arena);
	return result;
}

static int verify(char **argv, struct arena *arena, struct battery *ret_battery,
		  struct error *error)
{
	struct effective CLEANUP_EFFECTIVE claimed = EFFECTIVE_NONE;
	struct effective CLEANUP_EFFECTIVE enforced = EFFECTIVE_NONE;
	const char *without = argv[1];
	bool dies = strcmp(without, "probe") == 0;
	char *command[] = { (char *)(uintptr_t)(dies ? "/usr/bin/false" : BATTERY_PROGRAM), NULL };
	struct request_path paths[] = {
		{ .class = PATH_HIDE, .path = "hidden", .flag = "--hide", .position = 1 },
		{ .class = PATH_PROTECT, .path = "protected", .flag = "--protect", .position = 2 },
	};
	struct request request = {
		.state_path = argv[2], .policy_path = argv[3], .paths = paths, .path_count = 2
	};
	enum effective_failure failure;
	struct action action;
	int result = battery_prepare(&request, false, arena, error);

	if (result == 0)
		result = effective_make(&request, arena, &claimed, &failure, NULL, error);
	if (result == 0)
		result = make(&request, without, arena, &enforced, error);
	if (result == 0)
		result = request_action(&request, &enforced, arena, command, 1, &action, error);
	if (result < 0)
		return result;
	if (strcmp(without, "environment") == 0)
		action.environ = (const char *const *)environ;
	return battery_run(&claimed, &enforced, &action, arena, ret_battery, error);
}

int main(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct battery battery = { 0 };
	struct error error = ERROR_NONE;

	if (argc != 3 && argc != 4)
		return 99;
	if (verify(argv, &arena, &battery, &error) < 0) {
		(void)fprintf(stderr, "verify-lab: %s\n", error.message);
		return 125;
	}
	print(&battery);
	return battery.failed ? 1 : 0;
}
