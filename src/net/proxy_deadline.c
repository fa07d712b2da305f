/*
 * Time: each deadline has its length and a list of those that wait for it, in the order of their
 * ends, and here is what becomes of a connection whose deadline is over.
 */
#include "net/proxy_internal.h"

static const uint64_t deadline_ns[DEADLINE_COUNT] = {
	[DEADLINE_SILENT] = 300 * MILLISECOND_NS,
	[DEADLINE_FIRST] = 30 * SECOND_NS,
	[DEADLINE_HEAD] = 15 * SECOND_NS,
	[DEADLINE_DIAL] = 30 * SECOND_NS,
	[DEADLINE_WHO] = EGRESS_LIMIT_ASK_S * SECOND_NS,
	[DEADLINE_ASK] = EGRESS_LIMIT_ASK_S * SECOND_NS,
	[DEADLINE_ASK_LEFT] = 60 * SECOND_NS,
	[DEADLINE_ANSWER] = 900 * SECOND_NS,
	[DEADLINE_KEEP] = 75 * SECOND_NS,
	[DEADLINE_IDLE] = 7200 * SECOND_NS,
	[DEADLINE_DRAIN] = 2 * SECOND_NS,
	[DEADLINE_PACE] = 50 * MILLISECOND_NS,
	/* and _ASK_LEFT: as long as the kernel keeps what a program closed (tcp_fin_timeout) */
	[DEADLINE_LEFT] = 60 * SECOND_NS,
};

void deadline_unlink(struct proxy *proxy, struct connection *connection)
{
	struct deadline_list *list = &proxy->deadlines[connection->deadline];

	if (connection->deadline == DEADLINE_NONE)
		return;
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		list->first = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	else
		list->last = connection->previous;
	list->count--;
	connection->previous = connection->next = NULL;
	connection->deadline = DEADLINE_NONE;
}

void connection_wait(struct proxy *proxy, struct connection *connection, enum deadline deadline)
{
	struct deadline_list *list = &proxy->deadlines[deadline];

	deadline_unlink(proxy, connection);
	if (deadline == DEADLINE_NONE)
		return;
	connection->deadline = (uint8_t)deadline;
	connection->deadline_ns = proxy->now_ns + deadline_ns[deadline];
	connection->previous = list->last;
	if (list->last)
		list->last->next = connection;
	else
		list->first = connection;
	list->last = connection;
	list->count++;
}

/* What was asked of the supervisor is not answered, or not in time. */
void connection_give_up(struct connection *connection)
{
	if (connection->who == LEAVE_ASKED) {
		connection->who = LEAVE_NO;
		connection->known |= EGRESS_FACT_TOOL;
	}
	if (connection->may == LEAVE_ASKED)
		connection->may = LEAVE_NO;
}

static enum step refuse_head(struct proxy *proxy, struct connection *connection, unsigned status,
			     const char *reason)
{
	return connection->state == STATE_HTTP ? refuse_http(proxy, connection, status, reason) :
						 refuse_reset(proxy, connection, reason);
}

static enum step expire_head(struct proxy *proxy, struct connection *connection,
			     enum deadline deadline)
{
	if (connection->is_starved)
		return refuse_head(proxy, connection, 503, "there was no memory for it in time");
	if (deadline == DEADLINE_FIRST && connection_note_silence(connection))
		return refuse_reset(proxy, connection, connection->reason);
	return refuse_head(proxy, connection, 408, "nothing came in time");
}

static enum step expire_state(struct proxy *proxy, struct connection *connection,
			      enum deadline deadline)
{
	switch (deadline) {
	case DEADLINE_SILENT:
		connection->is_silent = true;
		break;
	case DEADLINE_DIAL:
		connection_forget_dial(connection);
		connection->dial = DIAL_FAILED;
		connection->outcome = EGRESS_TIMEOUT;
		break;
	case DEADLINE_ASK_LEFT:
		return refuse_reset(proxy, connection, "its client left before the answer");
	case DEADLINE_WHO:
	case DEADLINE_ASK:
		connection_give_up(connection);
		break;
	case DEADLINE_PACE:
		break;
	case DEADLINE_FIRST:
	case DEADLINE_HEAD:
		return expire_head(proxy, connection, deadline);
	case DEADLINE_ANSWER:
	case DEADLINE_LEFT:
		return refuse_http(proxy, connection, 504, "the server did not answer in time");
	case DEADLINE_IDLE:
		return refuse_reset(proxy, connection, "nothing moved for too long");
	case DEADLINE_KEEP:
	case DEADLINE_DRAIN:
		connection_close(proxy, connection);
		return STEP_END;
	case DEADLINE_NONE:
	case DEADLINE_COUNT:
		break;
	}
	return STEP_NEXT;
}

static void expire(struct proxy *proxy, struct connection *connection)
{
	enum deadline deadline = connection->deadline;

	deadline_unlink(proxy, connection);
	if (expire_state(proxy, connection, deadline) == STEP_NEXT)
		connection_step(proxy, connection);
}

void deadline_expire_all(struct proxy *proxy)
{
	for (int i = DEADLINE_NONE + 1; i < DEADLINE_COUNT; i++) {
		struct deadline_list *list = &proxy->deadlines[i];

		while (list->first && list->first->deadline_ns <= proxy->now_ns)
			expire(proxy, list->first);
	}
}

/* Whoever begins to say something and does not go on must not keep others from it. */
void deadline_trim_heads(struct proxy *proxy)
{
	const struct deadline_list *heads = &proxy->deadlines[DEADLINE_HEAD];

	while (heads->count > PROXY_LIMIT_HEADS) {
		struct connection *oldest = heads->first;

		deadline_unlink(proxy, oldest);
		if (refuse_head(proxy, oldest, 503,
				"too many requests are unfinished at once, and it is the oldest") ==
		    STEP_NEXT)
			connection_step(proxy, oldest);
	}
}

/* Something is open that a date may end. */
static bool has_dates(const struct proxy *proxy)
{
	return proxy->dates_ns && proxy->free_count < proxy->limit_connections;
}

/* What is looked at each second where there is something. */
static bool proxy_is_restless(const struct proxy *proxy)
{
	return has_dates(proxy) || report_is_due(proxy) || proxy->is_held ||
	       relay_is_warm(&proxy->relay);
}

int deadline_timeout_ms(const struct proxy *proxy)
{
	uint64_t until = proxy->now_ns + SECOND_NS;

	if (proxy->ready)
		return 0;
	for (int i = DEADLINE_NONE + 1; i < DEADLINE_COUNT; i++)
		if (proxy->deadlines[i].first && proxy->deadlines[i].first->deadline_ns < until)
			until = proxy->deadlines[i].first->deadline_ns;
	if (has_dates(proxy) && proxy->dates_ns < until)
		until = proxy->dates_ns;
	if (until <= proxy->now_ns)
		return 0;
	if (until == proxy->now_ns + SECOND_NS && !proxy_is_restless(proxy))
		/* the next deadline is farther than a second: one look a minute costs nothing */
		return 60 * 1000;
	return (int)((until - proxy->now_ns + MILLISECOND_NS - 1) / MILLISECOND_NS);
}
