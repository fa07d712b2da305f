/*
 * The builder's part in a network that is the policy's: what kernel/capture.h makes, in the box's
 * network namespace, whose owner is the outer user namespace: nothing that runs in the box later
 * has a right over it. The sockets go to the supervisor, and nothing of them stays in the box.
 */
#include "isolate/build_internal.h"

#include "base/fd.h"
#include "ipc/message.h"
#include "kernel/capture.h"
#include "kernel/netlink.h"
#include "policy/place.h"

#include <errno.h>
#include <linux/netlink.h>

int catch_routes(struct build *build, const struct plan_op *op, struct error *error)
{
	int result = capture_routes(&build->v6);

	(void)op;
	if (result < 0)
		return error_errno(error, result, "making every address the box's own");
	result = capture_refuse_each(build->box->proc_fd);
	/* a container's /proc is read-only: some refusals then come late, and no packet goes out */
	if (result < 0 && result != -EROFS && result != -ENOENT)
		return error_errno(error, result, "setting how the kernel refuses datagrams");
	return 0;
}

/* Adds a port, once. False: there are more than BOX_LIMIT_PORTS. */
static bool add_port(uint16_t ports[static BOX_LIMIT_PORTS], unsigned *count, unsigned port)
{
	for (unsigned i = 0; i < *count; i++)
		if (ports[i] == port)
			return true;
	if (*count == BOX_LIMIT_PORTS)
		return false;
	ports[(*count)++] = (uint16_t)port;
	return true;
}

static bool add_rule(uint16_t ports[static BOX_LIMIT_PORTS], unsigned *count,
		     const struct egress_rule *rule)
{
	for (size_t i = 0; i < rule->port_count; i++)
		for (unsigned port = rule->ports[i].first; port <= rule->ports[i].last; port++)
			if (!add_port(ports, count, port))
				return false;
	return true;
}

static int send_port(struct build *build, uint16_t port)
{
	int CLEANUP_FD fd = -1;
	int result = capture_port_listener(port, &fd);

	return result < 0 ? result : message_send(build->control, BOX_PORT, NULL, 0, &fd, 1);
}

/* Where the kernel has no rules to give: a listener for each port that a rule names. */
static int catch_ports(struct build *build, struct error *error)
{
	const struct egress_policy *egress = &build->options->policy->egress;
	uint16_t ports[BOX_LIMIT_PORTS] = { PLACE_NAMESERVER_PORT, PLACE_DOOR_PORT };
	unsigned count = 2;
	int result = 0;

	for (size_t i = 0; i < egress->rule_count; i++)
		if (egress->rules[i].verdict != EGRESS_DENY &&
		    !add_rule(ports, &count, &egress->rules[i]))
			return error_set(error, EOPNOTSUPP,
					 "this kernel has no nft with tproxy, without which no "
					 "more than %u ports can be captured, and the rules name "
					 "more; name fewer, or load the kernel's nft_tproxy",
					 BOX_LIMIT_PORTS);
	for (unsigned i = 0; i < count && result == 0; i++) {
		result = send_port(build, ports[i]);
		if (result < 0)
			error_errno(error, result, "listening on port %u of every address",
				    ports[i]);
	}
	return result;
}

int catch_connections(struct build *build, const struct plan_op *op, struct error *error)
{
	const struct box_captured captured = { .v6 = build->v6 };
	int CLEANUP_FD udp = -1, tcp = -1;
	int CLEANUP_FD diag = netlink_open(NETLINK_SOCK_DIAG);
	int result = capture_datagrams(&udp), rules;

	if (result < 0)
		return error_errno(error, result, "listening for names that are asked for");
	if (diag < 0)
		return error_errno(error, diag, "opening the kernel's diagnosis of sockets");
	rules = capture_rules();
	if (rules < 0 && rules != -EOPNOTSUPP)
		return error_errno(error, rules, "setting the rules that capture connections");
	if (rules < 0 && !(op->flags & PLAN_OPTIONAL))
		return error_set(
			error, EOPNOTSUPP,
			"network.capture is all, and this kernel has no nft with tproxy, "
			"without which ports that no rule names are not captured; load the "
			"kernel's nft_tproxy, or let the policy say network.capture: ports");
	if (rules == 0)
		result = capture_listener(&tcp);
	if (result == 0)
		result = message_send(build->control, BOX_CAPTURE, &captured, sizeof(captured),
				      (const int[]){ udp, diag, tcp }, rules == 0 ? 3 : 2);
	if (result < 0)
		return error_errno(error, result, "listening for connections");
	return rules == 0 ? 0 : catch_ports(build, error);
}
