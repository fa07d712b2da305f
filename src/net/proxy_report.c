/* What the supervisor is told and asked. */
#include "ipc/message.h"
#include "ipc/role.h"
#include "net/proxy_internal.h"

#include <errno.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

static bool send_record(struct proxy *proxy, uint32_t type, const void *bytes, size_t length)
{
	int result = message_send(ROLE_CHANNEL, type, bytes, length, NULL, 0);

	if (result == -EAGAIN || result == -ENOBUFS || result == -ENOMEM)
		proxy_hold(proxy);
	return result >= 0;
}

static uint32_t rule_number(const struct proxy *proxy, const struct egress_answer *answer)
{
	return answer->rule ? (uint32_t)(answer->rule - proxy->policy.rules) : EGRESS_NO_RULE;
}

static struct egress_flow flow_of(const struct proxy *proxy, const struct connection *connection,
				  enum egress_phase phase, const char *method, const char *path)
{
	struct egress_flow flow = {
		.id = connection->id,
		.request = connection->request,
		.phase = phase,
		.door = connection->door,
		.verdict = connection->answer.verdict,
		.rule = rule_number(proxy, &connection->answer),
		.protocol = connection->protocol,
		.outcome = connection->outcome,
		.port = connection->port,
		.peer_port = connection->peer_port,
		.peer = connection->peer,
		.address = connection->address,
		.bytes_up = connection->up.passed - connection->told_up,
		.bytes_down = connection->down.passed - connection->told_down,
		.duration_ns = proxy->now_ns - connection->started_ns,
	};

	flow.opened_verdict =
		(uint8_t)(phase == EGRESS_CLOSED ? connection->opened_verdict : flow.verdict);
	flow.opened_rule = phase == EGRESS_CLOSED ? connection->opened_rule : flow.rule;
	egress_text(flow.host, sizeof(flow.host), connection->host.name);
	egress_text(flow.method, sizeof(flow.method), method);
	egress_text(flow.path, sizeof(flow.path), path);
	egress_text(flow.reason, sizeof(flow.reason), connection->reason);
	return flow;
}

bool report_opened(struct proxy *proxy, struct connection *connection)
{
	const struct http_state *http = http_of(proxy, connection);
	bool is_http = connection->state == STATE_HTTP;
	struct egress_flow flow = flow_of(proxy, connection, EGRESS_OPENED,
					  is_http ? http->method : NULL,
					  is_http ? http->path : NULL);

	connection->opened_verdict = flow.verdict;
	connection->opened_rule = flow.rule;
	return !proxy->is_held && send_record(proxy, EGRESS_FLOW, &flow, sizeof(flow));
}

/* The end of what is on record as begun: where it cannot be told now, it is counted. */
void report_closed(struct proxy *proxy, struct connection *connection, unsigned status,
		   const char *method, const char *path)
{
	struct egress_flow flow = flow_of(proxy, connection, EGRESS_CLOSED, method, path);

	flow.status = (uint16_t)status;
	connection->told_up = connection->up.passed;
	connection->told_down = connection->down.passed;
	if (!send_record(proxy, EGRESS_FLOW, &flow, sizeof(flow)))
		proxy->lost_ends++;
}

static bool is_alike(const struct egress_flow *a, const struct egress_flow *b)
{
	return a->port == b->port && a->door == b->door && a->rule == b->rule &&
	       strcmp(a->host, b->host) == 0 && strcmp(a->reason, b->reason) == 0 &&
	       strcmp(a->method, b->method) == 0 && strcmp(a->path, b->path) == 0;
}

/*
 * The first of its kind is told at once; others within a second are counted, and told as one. When
 * there are more kinds than are remembered, the oldest is told and makes room.
 */
static void tell_stopped(struct proxy *proxy, const struct egress_flow *flow)
{
	struct repeated *place = &proxy->repeated[0];

	for (size_t i = 0; i < PROXY_LIMIT_KINDS; i++) {
		struct repeated *repeated = &proxy->repeated[i];

		if (repeated->first_ns != 0 && is_alike(&repeated->flow, flow)) {
			repeated->count++;
			return;
		}
		if (repeated->first_ns < place->first_ns)
			place = repeated;
	}
	if (place->count > 0) {
		place->flow.repeated = place->count;
		(void)send_record(proxy, EGRESS_FLOW, &place->flow, sizeof(place->flow));
	}
	*place = (struct repeated){ .first_ns = proxy->now_ns, .flow = *flow };
	/* one that cannot be told now is one that is told later */
	if (!send_record(proxy, EGRESS_FLOW, flow, sizeof(*flow)))
		place->count = 1;
}

void report_stopped(struct proxy *proxy, struct connection *connection, const char *method,
		    const char *path)
{
	struct egress_flow flow;

	if (connection->is_opened) {
		report_closed(proxy, connection, 0, method, path);
		return;
	}
	flow = flow_of(proxy, connection, EGRESS_STOPPED, method, path);
	tell_stopped(proxy, &flow);
}

void report_lookup(struct proxy *proxy, const struct host *host, const struct egress_answer *answer,
		   const struct address *peer, uint16_t peer_port)
{
	struct egress_flow flow = {
		.phase = EGRESS_STOPPED,
		.door = EGRESS_LOOKUP,
		.verdict = EGRESS_DENY,
		.rule = rule_number(proxy, answer),
		.peer = *peer,
		.peer_port = peer_port,
	};

	egress_text(flow.host, sizeof(flow.host), host->name);
	egress_text(flow.reason, sizeof(flow.reason), "asked for a name that no rule opens");
	tell_stopped(proxy, &flow);
}

bool report_is_due(const struct proxy *proxy)
{
	if (proxy->refused_accepts > 0 || proxy->lost_ends > 0)
		return true;
	for (size_t i = 0; i < PROXY_LIMIT_KINDS; i++)
		if (proxy->repeated[i].first_ns != 0)
			return true;
	return false;
}

static void tell_count(struct proxy *proxy, uint64_t *count, enum egress_verdict verdict,
		       const char *reason)
{
	struct egress_flow flow = { .phase = EGRESS_STOPPED,
				    .verdict = verdict,
				    .rule = EGRESS_NO_RULE,
				    .repeated = *count > 1 ? *count : 0 };

	egress_text(flow.reason, sizeof(flow.reason), reason);
	if (send_record(proxy, EGRESS_FLOW, &flow, sizeof(flow)))
		*count = 0;
}

void report_repeated(struct proxy *proxy)
{
	if (proxy->is_held || proxy->now_ns - proxy->told_ns < SECOND_NS)
		return;
	proxy->told_ns = proxy->now_ns;
	for (size_t i = 0; i < PROXY_LIMIT_KINDS; i++) {
		struct repeated *repeated = &proxy->repeated[i];

		if (repeated->first_ns == 0 || proxy->now_ns - repeated->first_ns < SECOND_NS)
			continue;
		repeated->flow.repeated = repeated->count;
		if (repeated->count > 0 &&
		    !send_record(proxy, EGRESS_FLOW, &repeated->flow, sizeof(repeated->flow)))
			return;
		repeated->first_ns = repeated->count = 0;
	}
	if (proxy->refused_accepts > 0)
		tell_count(proxy, &proxy->refused_accepts, EGRESS_DENY,
			   "too many connections at once");
	if (proxy->lost_ends > 0)
		tell_count(proxy, &proxy->lost_ends, EGRESS_ALLOW,
			   "ends of connections that could not be told");
}

bool report_question(struct proxy *proxy, struct connection *connection,
		     enum egress_question_kind kind, const char *method, const char *path)
{
	struct egress_question_message question = {
		.id = connection->id,
		.kind = kind,
		.rule = rule_number(proxy, &connection->answer),
		.protocol = connection->protocol,
		.port = connection->port,
		.peer_port = connection->peer_port,
		.peer = connection->peer,
		.local = connection->local,
		.local_port = connection->local_port,
	};

	egress_text(question.host, sizeof(question.host), connection->host.name);
	egress_text(question.method, sizeof(question.method), method);
	egress_text(question.path, sizeof(question.path), path);
	return !proxy->is_held && send_record(proxy, EGRESS_QUESTION, &question, sizeof(question));
}
