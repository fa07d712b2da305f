/*
 * The dates of rules. When one begins or ends, by the wall clock, each connection that is open is
 * judged again by what is known of it, and what may not go on ends at that moment. What is not open
 * yet is judged before its first byte anyway (proxy_open.c, proxy_http.c).
 *
 * A clock that is set is seen within a second, in both directions.
 */
#include "net/proxy_internal.h"

/* The dates around now, of all rules. */
static void find_dates(struct proxy *proxy)
{
	uint64_t since_s = 0, until_s = 0;

	for (size_t i = 0; i < proxy->policy.rule_count; i++) {
		const struct egress_rule *rule = &proxy->policy.rules[i];
		const uint64_t dates[] = { rule->from_wall_s, rule->until_wall_s };

		for (size_t j = 0; j < sizeof(dates) / sizeof(dates[0]); j++) {
			if (dates[j] <= proxy->wall_s && dates[j] > since_s)
				since_s = dates[j];
			if (dates[j] > proxy->wall_s && (until_s == 0 || dates[j] < until_s))
				until_s = dates[j];
		}
	}
	proxy->dates_since_s = since_s;
	proxy->dates_until_s = until_s;
}

static bool is_within(const struct proxy *proxy)
{
	return proxy->wall_s >= proxy->dates_since_s &&
	       (proxy->dates_until_s == 0 || proxy->wall_s < proxy->dates_until_s);
}

/* At the next date; before it once a second, since somebody may set the clock. */
static void set_alarm(struct proxy *proxy)
{
	if (!proxy->dates_until_s && !proxy->dates_since_s)
		return;
	proxy->dates_ns = proxy->now_ns + SECOND_NS;
	if (proxy->dates_until_s == proxy->wall_s + 1)
		proxy->dates_ns -= proxy->wall_part_ns;
}

void dates_begin(struct proxy *proxy)
{
	find_dates(proxy);
	set_alarm(proxy);
}

static void look_again(struct proxy *proxy, struct connection *connection)
{
	if (connection->state == STATE_HTTP) {
		http_look_again(proxy, connection);
		return;
	}
	if (connection->state != STATE_TUNNEL)
		return;
	if (!(connection->has_http ? http_may_go_on(proxy, connection) :
				     connection_may_go_on(proxy, connection, NULL, NULL, false)))
		(void)tunnel_end(proxy, connection, connection->reason);
}

void dates_look(struct proxy *proxy)
{
	if (proxy->dates_ns == 0)
		return;
	if (!is_within(proxy)) {
		find_dates(proxy);
		for (uint32_t i = 0; i < proxy->limit_connections; i++)
			look_again(proxy, &proxy->connections[i]);
	}
	set_alarm(proxy);
}
