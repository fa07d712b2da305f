#include "broker/egress_request.h"

#include "base/arena.h"
#include "base/error.h"
#include "broker/battery.h"
#include "broker/effective.h"
#include "policy/egress.h"
#include "policy/egress_compile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Where a program without a path is looked for, as in a box. */
static const char *const places[] = { "/usr/local/bin", "/usr/bin", "/bin" };

static bool take_file(struct egress_rule *rule, const char *path)
{
	struct stat status;

	if (!path || stat(path, &status) < 0 || !S_ISREG(status.st_mode))
		return false;
	rule->tool_device = status.st_dev;
	rule->tool_inode = status.st_ino;
	return true;
}

static void resolve_tool(struct egress_rule *rule, struct arena *arena)
{
	if (rule->tool[0] == '/') {
		(void)take_file(rule, rule->tool);
		return;
	}
	for (size_t i = 0; rule->tool[0] && i < sizeof(places) / sizeof(places[0]); i++)
		if (take_file(rule, arena_format(arena, "%s/%s", places[i], rule->tool)))
			return;
}

/* For verify's attempts by names of its own; a policy's denials hold for them as well. */
static int add_probes(struct egress_policy *policy, struct arena *arena)
{
	static struct egress_ports port = { BATTERY_NAMES_PORT, BATTERY_NAMES_PORT };
	const struct egress_rule rule = { .ref = { .id = "verify" },
					  .verdict = EGRESS_ALLOW,
					  .kind = EGRESS_BELOW,
					  .name = BATTERY_NAMES,
					  .ports = &port,
					  .port_count = 1,
					  .protocols = EGRESS_HTTP,
					  .tool = "",
					  .purpose = "" };

	return egress_add(policy, &rule, arena);
}

int egress_request(const struct request *request, struct arena *arena,
		   struct egress_policy *ret_policy, struct error *error)
{
	struct egress_policy policy = request->egress;
	int result = 0;

	if (request->network == REQUEST_NETWORK_NONE && request->host_count)
		return error_set(error, EINVAL,
				 "--network none and --allow-host exclude each other");
	if (!policy.purpose || request->purpose)
		policy.purpose = request->purpose ? request->purpose : "";
	for (size_t i = 0; i < request->host_count && result == 0; i++)
		result = egress_add(&policy, &request->hosts[i], arena);
	if (result < 0)
		return error_errno(error, result, "option --allow-host");
	if (request->host_count || request->network == REQUEST_NETWORK_POLICY)
		policy.mode = EGRESS_POLICY;
	if (request->network == REQUEST_NETWORK_NONE)
		policy.mode = EGRESS_NONE;
	if (request->probe && policy.mode == EGRESS_POLICY)
		result = add_probes(&policy, arena);
	if (result < 0)
		return error_errno(error, result, "adding what the battery tries");
	for (size_t i = 0; i < policy.rule_count; i++)
		resolve_tool(&policy.rules[i], arena);
	*ret_policy = policy;
	return 0;
}
