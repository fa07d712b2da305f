/* What the supervisor is told and asked. */
#include "ipc/message.h"
#include "ipc/role.h"
#include "net/proxy_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* From so many on the pages that they waited in are given back. */
#define WARM_UNTOLD 64u

static bool send_record(struct proxy *proxy, uint32_t type, const void *bytes, size_t length)
{
	int result = message_send(ROLE_CHANNEL, type, bytes, length, NULL, 0);

	if (result == -EAGAIN || result == -ENOBUFS || result == -ENOMEM)
		proxy_hold(proxy);
	return result >= 0;
}

/*
 * A record that is never lost: it is told with the next ones, at the end of the turn (net/proxy.c)
 * at the latest, or as soon as there is room for it.
 */
static void tell(struct proxy *proxy, const struct egress_flow *flow)
{
	if (proxy->untold_end < PROXY_LIMIT_UNTOLD)
		proxy->untold[proxy->untold_end++] = *flow;
	else
		proxy->is_over_full = true;
	if (!proxy->is_held && proxy->untold_end - proxy->untold_first >= EGRESS_LIMIT_FLOWS)
		(void)report_untold(proxy);
}

bool report_untold(struct proxy *proxy)
{
	while (proxy->untold_first < proxy->untold_end) {
		uint32_t count = proxy->untold_end - proxy->untold_first;

		if (count > EGRESS_LIMIT_FLOWS)
			count = EGRESS_LIMIT_FLOWS;
		if (!send_record(proxy, EGRESS_FLOW, &proxy->untold[proxy->untold_first],
				 count * sizeof(*proxy->untold)))
			return false;
		proxy->untold_first += count;
	}
	if (proxy->untold_end >= WARM_UNTOLD)
		(void)madvise(proxy->untold, proxy->untold_end * sizeof(*proxy->untold),
			      MADV_DONTNEED);
	proxy->untold_first = proxy->untold_end = 0;
	return true;
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
		.local = connection->local,
		.local_port = connection->local_port,
		.address = connection->address,
		.bytes_up = connection->up.passed - connection->told_up,
		.bytes_down = connection->down.passed - connection->told_down,
		.duration_ns = proxy->now_ns - connection->started_ns,
	};

	flow.opened_verdict =
		(uint8_t)(phase == EGRESS_CLOSED ? connection->opened_verdict : flow.verdict);
	flow.opened_rule = phase == EGRESS_CLOSED ? connection->opened_rule : flow.rule;
	flow.upgrade = connection->has_http && http_of(proxy, connection)->asked.upgrade;
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
	if (proxy->is_held || proxy->untold_end == PROXY_LIMIT_UNTOLD)
		return false;
	/* behind what was told before it in this turn, and with that */
	tell(proxy, &flow);
	if (report_untold(proxy))
		return true;
	/* it is the last one, and none that was begun */
	proxy->untold_end--;
	return false;
}

/* The end of what is on record as begun. */
void report_closed(struct proxy *proxy, struct connection *connection, unsigned status,
		   const char *method, const char *path)
{
	struct egress_flow flow = flow_of(proxy, connection, EGRESS_CLOSED, method, path);

	flow.status = (uint16_t)status;
	connection->told_up = connection->up.passed;
	connection->told_down = connection->down.passed;
	tell(proxy, &flow);
}

static bool is_alike(const struct egress_flow *a, const struct egress_flow *b)
{
	return a->port == b->port && a->door == b->door && a->rule == b->rule &&
	       a->upgrade == b->upgrade && strcmp(a->host, b->host) == 0 &&
	       strcmp(a->reason, b->reason) == 0 && strcmp(a->method, b->method) == 0 &&
	       strcmp(a->path, b->path) == 0;
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
		tell(proxy, &place->flow);
	}
	*place = (struct repeated){ .first_ns = proxy->now_ns, .flow = *flow };
	tell(proxy, flow);
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
		   const struct address *peer, uint16_t peer_port, const char *reason)
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
	egress_text(flow.reason, sizeof(flow.reason), reason);
	tell_stopped(proxy, &flow);
}

bool report_is_due(const struct proxy *proxy)
{
	if (proxy->refused_accepts > 0)
		return true;
	for (size_t i = 0; i < PROXY_LIMIT_KINDS; i++)
		if (proxy->repeated[i].first_ns != 0)
			return true;
	return false;
}

static void tell_refused_accepts(struct proxy *proxy)
{
	struct egress_flow flow = { .phase = EGRESS_STOPPED,
				    .verdict = EGRESS_DENY,
				    .rule = EGRESS_NO_RULE,
				    .repeated = proxy->refused_accepts > 1 ?
							proxy->refused_accepts :
							0 };

	if (proxy->refused_accepts == 0)
		return;
	egress_text(flow.reason, sizeof(flow.reason), "too many connections at once");
	tell(proxy, &flow);
	proxy->refused_accepts = 0;
}

/* Of those that are so old. */
static void tell_repeated(struct proxy *proxy, uint64_t age_ns)
{
	for (size_t i = 0; i < PROXY_LIMIT_KINDS; i++) {
		struct repeated *repeated = &proxy->repeated[i];

		if (repeated->first_ns == 0 || proxy->now_ns - repeated->first_ns < age_ns)
			continue;
		repeated->flow.repeated = repeated->count;
		if (repeated->count > 0)
			tell(proxy, &repeated->flow);
		repeated->first_ns = repeated->count = 0;
	}
	tell_refused_accepts(proxy);
}

void report_repeated(struct proxy *proxy)
{
	if (proxy->is_held || proxy->now_ns - proxy->told_ns < SECOND_NS)
		return;
	proxy->told_ns = proxy->now_ns;
	tell_repeated(proxy, SECOND_NS);
}

/* What others do meanwhile does not put it off for longer. */
#define MARK_TURNS 64u

/* A turn without events shows that what was there when it came is done. */
void report_mark(struct proxy *proxy, bool has_events)
{
	const struct egress_mark mark = { proxy->mark };

	if (!proxy->mark || proxy->is_held)
		return;
	if ((has_events || proxy->ready) && proxy->mark_turns++ < MARK_TURNS)
		return;
	tell_repeated(proxy, 0);
	if (report_untold(proxy) && send_record(proxy, EGRESS_MARKED, &mark, sizeof(mark)))
		proxy->mark = 0;
}

/* Something was asked for that is not on record yet. */
static bool is_undecided(const struct connection *connection)
{
	return connection->state == STATE_SNIFF ||
	       (connection->state == STATE_DOOR && connection->is_named) ||
	       (connection->state == STATE_HTTP && chunk_length(connection->up.in) > 0);
}

static void end_with_task(struct proxy *proxy, struct connection *connection)
{
	const struct http_state *http = http_of(proxy, connection);
	bool is_http = connection->has_http;

	/* what became of it is told already */
	if (connection->state == STATE_FLUSH || connection->state == STATE_DRAIN)
		return;
	if (!connection->is_refused)
		connection->reason = "its task has ended";
	if (connection->is_opened)
		report_closed(proxy, connection, is_http ? http->status : 0,
			      is_http ? http->method : NULL, is_http ? http->path : NULL);
	else if (is_undecided(connection))
		report_stopped(proxy, connection, NULL, NULL);
}

void report_last(struct proxy *proxy)
{
	(void)report_untold(proxy);
	proxy->is_held = false;
	for (uint32_t i = 0; i < proxy->limit_connections; i++)
		if (proxy->connections[i].state != STATE_FREE)
			end_with_task(proxy, &proxy->connections[i]);
	tell_repeated(proxy, 0);
	(void)report_untold(proxy);
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
	/* what was told before it is heard before it */
	return !proxy->is_held && report_untold(proxy) &&
	       send_record(proxy, EGRESS_QUESTION, &question, sizeof(question));
}
