/*
 * The door for programs that like proxies: CONNECT, SOCKS5, and requests with an absolute target,
 * which go on in proxy_http.c. What is behind its yes is judged like a captured connection, for the
 * host that was named here.
 */
#include "net/http.h"
#include "net/proxy_internal.h"
#include "net/socks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

/* What was asked for has its upstream: the answer, and then whatever comes. */
static enum step open_door(struct proxy *proxy, struct connection *connection)
{
	struct socks_reply reply;
	bool is_said;

	if (!relay_has_room(&proxy->relay, &connection->down))
		return connection_starve(proxy, connection);
	if (connection->door == EGRESS_SOCKS) {
		socks_answer(SOCKS_DONE, &reply);
		is_said = relay_put(&proxy->relay, &connection->down, reply.bytes, reply.length);
	} else {
		is_said = relay_put(&proxy->relay, &connection->down, established,
				    sizeof(established) - 1);
	}
	if (!is_said || relay_flush(&proxy->relay, &connection->down) == RELAY_LOST)
		return refuse_reset(proxy, connection, "its connection was lost");
	/* of our own words nothing counts as the upstream's */
	connection->down.passed = connection->charged_down = 0;
	connection->state = STATE_SNIFF;
	connection->is_silent = false;
	connection_wait(proxy, connection, DEADLINE_SILENT);
	return STEP_NEXT;
}

/* The host is known: a verdict on it, the upstream, and then the answer. */
static enum step enter(struct proxy *proxy, struct connection *connection)
{
	switch (connection_judge(proxy, connection)) {
	case JUDGE_WAIT:
		return STEP_WAIT;
	case JUDGE_DENY:
		return refuse(proxy, connection, connection->reason);
	case JUDGE_MORE:
	case JUDGE_ALLOW:
		break;
	}
	/* where a person may still be asked, nothing is dialled before the answer */
	if (connection->answer.verdict == EGRESS_ALLOW || connection->may == LEAVE_YES)
		connection_dial(proxy, connection);
	if (connection_is_dialing(connection)) {
		if (connection->deadline != DEADLINE_DIAL)
			connection_wait(proxy, connection, DEADLINE_DIAL);
		return STEP_WAIT;
	}
	if (connection->dial == DIAL_FAILED)
		return refuse_dial(proxy, connection);
	return open_door(proxy, connection);
}

static enum step want_more(struct proxy *proxy, struct connection *connection)
{
	if (connection->client.is_done) {
		connection_close(proxy, connection);
		return STEP_END;
	}
	if (connection->deadline != DEADLINE_HEAD)
		connection_wait(proxy, connection, DEADLINE_HEAD);
	return STEP_WAIT;
}

static enum step refuse_words(struct proxy *proxy, struct connection *connection,
			      const struct socks_reply *reply, const char *why)
{
	connection->reason = why;
	connection->answer = (struct egress_answer){ .verdict = EGRESS_DENY };
	report_stopped(proxy, connection, NULL, NULL);
	if (reply->length == 0 ||
	    !relay_put(&proxy->relay, &connection->down, reply->bytes, reply->length)) {
		connection_reset(proxy, connection);
		return STEP_END;
	}
	pool_give(&proxy->relay.pool, &connection->up.in);
	connection->state = STATE_FLUSH;
	return STEP_NEXT;
}

static enum step socks(struct proxy *proxy, struct connection *connection)
{
	struct chunk *in = connection->up.in;
	struct socks_request request;
	struct socks_reply reply = { 0 };
	const char *why;
	int used;

	connection->door = EGRESS_SOCKS;
	if (!connection->is_greeted) {
		used = socks_parse_greeting(in->bytes + in->start, chunk_length(in), &reply, &why);
		if (used < 0)
			return refuse_words(proxy, connection, &reply, why);
		if (used == 0)
			return want_more(proxy, connection);
		if (!relay_has_room(&proxy->relay, &connection->down))
			return connection_starve(proxy, connection);
		stream_skip(&proxy->relay, &connection->up, (size_t)used);
		connection->is_greeted = true;
		if (!relay_put(&proxy->relay, &connection->down, reply.bytes, reply.length) ||
		    relay_flush(&proxy->relay, &connection->down) == RELAY_LOST)
			return refuse_reset(proxy, connection, "its connection was lost");
		return STEP_NEXT;
	}
	used = socks_parse_request(in->bytes + in->start, chunk_length(in), &request, &reply, &why);
	if (used < 0)
		return refuse_words(proxy, connection, &reply, why);
	if (used == 0)
		return want_more(proxy, connection);
	stream_skip(&proxy->relay, &connection->up, (size_t)used);
	connection->host = request.host;
	host_of_given(proxy, &connection->host);
	connection->port = request.port;
	connection->is_named = true;
	return STEP_NEXT;
}

static enum step http(struct proxy *proxy, struct connection *connection)
{
	static struct http_request request;
	struct chunk *in = connection->up.in;
	const char *head = (const char *)in->bytes + in->start, *why;
	int length = http_head_end(head, chunk_length(in), &connection->scanned, &why);
	int result;

	connection->door = EGRESS_CONNECT;
	if (length == 0)
		return want_more(proxy, connection);
	result = length < 0 ? length : http_parse_request(head, (size_t)length, &request, &why);
	if (result < 0) {
		connection->answer = (struct egress_answer){ .verdict = EGRESS_DENY };
		return refuse_http(proxy, connection, http_status(result), why);
	}
	if (request.asked.method != HTTP_CONNECT) {
		connection->door = EGRESS_ABSOLUTE;
		return http_begin(proxy, connection);
	}
	if (request.head.framing != HTTP_NO_BODY)
		return refuse_http(proxy, connection, 400, "a CONNECT has no body");
	stream_skip(&proxy->relay, &connection->up, (size_t)length);
	connection->scanned = 0;
	connection->host = request.host;
	host_of_given(proxy, &connection->host);
	connection->port = request.port;
	connection->is_named = true;
	return STEP_NEXT;
}

enum step step_door(struct proxy *proxy, struct connection *connection)
{
	struct chunk *in;
	int count;

	if (connection->is_named)
		return enter(proxy, connection);
	count = relay_fill(&proxy->relay, &connection->up);
	if (count == -ENOMEM)
		return connection_starve(proxy, connection);
	if (count < 0 && chunk_length(connection->up.in) == 0) {
		connection_close(proxy, connection);
		return STEP_END;
	}
	in = connection->up.in;
	if (in == NULL) {
		if (connection->client.is_done) {
			connection_close(proxy, connection);
			return STEP_END;
		}
		if (connection->deadline != DEADLINE_FIRST && !connection->is_greeted)
			connection_wait(proxy, connection, DEADLINE_FIRST);
		return STEP_WAIT;
	}
	/* 4 and 5 are versions of SOCKS; no method begins so */
	return connection->is_greeted || in->bytes[in->start] < 0x20 ? socks(proxy, connection) :
								       http(proxy, connection);
}
