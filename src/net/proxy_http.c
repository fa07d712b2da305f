/*
 * HTTP/1 in the clear, one request and its response at a time. Each request is read whole, judged
 * by itself (a kept connection is no reason to trust the next one), and written anew; so is each
 * response. Bodies go through as they come, in both directions at once.
 *
 * On a captured connection the host is the one that was connected to, and every request has to name
 * it. At the door each request names its own; the upstream is kept as long as that stays the same.
 */
#include "net/http.h"
#include "net/http_body.h"
#include "net/http_path.h"
#include "net/proxy_internal.h"

#include <errno.h>
#include <string.h>

/* Payload from which on it is worth passing it by without a look into it. */
#define RUN_BYTES (16u * 1024)
/* What may wait to be sent before more is read. */
#define WAITING_BYTES (32u * 1024)

/* One head at a time, so that connections need not hold the places of a hundred fields each. */
static struct http_request request_room;
static struct http_response response_room;

static void put(char *room, size_t room_bytes, struct span text)
{
	size_t length = text.length < room_bytes - 1 ? text.length : room_bytes - 1;

	memcpy(room, text.bytes, length);
	room[length] = '\0';
}

/* --- the end of a request, and of the connection */

static enum step end_connection(struct proxy *proxy, struct connection *connection)
{
	connection_drop_upstream(proxy, connection);
	pool_give(&proxy->relay.pool, &connection->up.in);
	connection->state = STATE_FLUSH;
	connection_wait(proxy, connection, DEADLINE_NONE);
	return STEP_NEXT;
}

static void forget_request(struct proxy *proxy, struct connection *connection)
{
	*http_of(proxy, connection) = (struct http_state){ 0 };
	connection->request++;
	connection->is_opened = false;
	connection->up.is_modest = true;
	connection->may = LEAVE_NONE;
	connection->reason = NULL;
	connection->started_ns = proxy->now_ns;
}

/* The next request, on the same connections where both sides keep them. */
static enum step next_request(struct proxy *proxy, struct connection *connection)
{
	struct http_state *http = http_of(proxy, connection);
	bool keeps_upstream = http->keeps_upstream;

	report_closed(proxy, connection, http->status, http->method, http->path);
	if (!http->keeps_client)
		return end_connection(proxy, connection);
	forget_request(proxy, connection);
	if (!keeps_upstream || connection->upstream.is_ending)
		connection_drop_upstream(proxy, connection);
	connection_wait(proxy, connection, DEADLINE_KEEP);
	return STEP_NEXT;
}

/*
 * The upstream failed. A response that has begun ends cut; one that did not is our word, but on a
 * kept connection that the server closed just now the client is left to try again, as without us.
 */
static enum step lose_upstream(struct proxy *proxy, struct connection *connection,
			       const char *reason)
{
	struct http_state *http = http_of(proxy, connection);

	if (http->has_response || (!http->is_fresh && connection->upstream.is_done))
		return refuse_reset(proxy, connection, reason);
	return refuse_http(proxy, connection, 502, reason);
}

/* --- the request */

enum step http_begin(struct proxy *proxy, struct connection *connection)
{
	connection->known |= EGRESS_FACT_PROTOCOL;
	connection->protocol = EGRESS_HTTP;
	*http_of(proxy, connection) = (struct http_state){ 0 };
	connection->has_http = true;
	connection->scanned = 0;
	connection->state = STATE_HTTP;
	return STEP_NEXT;
}

/* Where a copy or a move goes to (RFC 4918, 10.3) is a path that no rule has looked at. */
static bool has_other_path(const struct proxy *proxy, const struct http_request *request)
{
	if (!http_find(&request->head, "destination"))
		return false;
	for (size_t i = 0; i < proxy->policy.rule_count; i++)
		if (proxy->policy.rules[i].path_count)
			return true;
	return false;
}

/* A constant where the request may not even be judged; *ret_status is its answer. */
static const char *fault_of_request(const struct proxy *proxy, const struct connection *connection,
				    const struct http_request *request, unsigned *ret_status)
{
	*ret_status = 400;
	if (request->form == HTTP_AUTHORITY)
		return "CONNECT is for the door for proxies alone";
	if (request->head.upgrade.length > 0 && http_lists(request->head.upgrade, "h2c"))
		return "HTTP/2 in the clear is not spoken here";
	*ret_status = 403;
	if (has_other_path(proxy, request))
		return "its Destination is a path that the rules would not see";
	*ret_status = 400;
	if (connection->door == EGRESS_ABSOLUTE)
		return request->form == HTTP_ABSOLUTE ? NULL : "a proxy needs an absolute target";
	if (!request->has_host)
		return NULL; /* HTTP/1.0: the host connected to is the only one */
	*ret_status = 403;
	if (!host_equal(&request->host, &connection->host) || request->port != connection->port)
		return "its Host is not the one that was connected to";
	return NULL;
}

/* True when it is there and whole; else *ret_step says what now. */
static bool read_request(struct proxy *proxy, struct connection *connection, size_t *ret_length,
			 enum step *ret_step)
{
	struct chunk *in = connection->up.in;
	const char *head = in ? (const char *)in->bytes + in->start : "", *why = NULL;
	int length = http_head_end(head, chunk_length(in), &connection->scanned, &why);
	int result;

	if (length == 0) {
		if (connection->client.is_done || connection->client.is_lost) {
			if (chunk_length(in) > 0) {
				connection->reason = "closed within the head of a request";
				report_stopped(proxy, connection, NULL, NULL);
			}
			connection_close(proxy, connection);
			*ret_step = STEP_END;
			return false;
		}
		/* one deadline for a whole head: it is not put off by a byte now and then */
		if (chunk_length(in) > 0 && connection->deadline != DEADLINE_HEAD)
			connection_wait(proxy, connection, DEADLINE_HEAD);
		*ret_step = STEP_WAIT;
		return false;
	}
	result = length < 0 ? length :
			      http_parse_request(head, (size_t)length, &request_room, &why);
	if (result < 0) {
		connection->answer = (struct egress_answer){ .verdict = EGRESS_DENY };
		*ret_step = refuse_http(proxy, connection, http_status(result), why);
		return false;
	}
	*ret_length = (size_t)length;
	return true;
}

/* At the door each request has its own host; an upstream is of use for the same one only. */
static void turn_to(struct proxy *proxy, struct connection *connection,
		    const struct http_request *request)
{
	if (connection->port == request->port && host_equal(&connection->host, &request->host))
		return;
	if (connection->dial != DIAL_NONE)
		connection_drop_upstream(proxy, connection);
	connection->host = request->host;
	connection->port = request->port;
	connection->is_counted = connection->is_opener = false;
}

/* The whole of a request's verdict; STEP_NEXT: allowed. */
static enum step judge_request(struct proxy *proxy, struct connection *connection,
			       const struct http_request *request)
{
	static char path[HTTP_PATH_LIMIT_BYTES + 1];
	struct http_state *http = http_of(proxy, connection);
	const char *why, *unclear = NULL;
	unsigned status;

	http->asked = request->asked;
	put(http->method, sizeof(http->method), request->method);
	put(http->path, sizeof(http->path), request->path);
	if (connection->door == EGRESS_ABSOLUTE && request->has_host)
		turn_to(proxy, connection, request);
	why = fault_of_request(proxy, connection, request, &status);
	if (why == NULL && connection->is_refused)
		return refuse_http(proxy, connection, 403, connection->reason);
	if (why) {
		connection->answer = (struct egress_answer){ .verdict = EGRESS_DENY };
		return refuse_http(proxy, connection, status, why);
	}
	if (http_path_normalise(request->path.bytes, request->path.length, path, sizeof(path),
				&why) < 0)
		unclear = why;
	switch (connection_judge_request(proxy, connection, http->method, unclear ? NULL : path,
					 request->asked.upgrade)) {
	case JUDGE_WAIT:
		return STEP_WAIT;
	case JUDGE_MORE:
		return refuse_http(proxy, connection, 403, "the rule needs more than a request");
	case JUDGE_DENY:
		return unclear ? refuse_http(proxy, connection, 400, unclear) :
				 refuse_http(proxy, connection, 403, connection->reason);
	case JUDGE_ALLOW:
		break;
	}
	return STEP_NEXT;
}

/* As its request was judged; a path that is not kept whole is one that is not clear. */
bool http_may_go_on(struct proxy *proxy, struct connection *connection)
{
	static char path[HTTP_PATH_LIMIT_BYTES + 1];
	const struct http_state *http = http_of(proxy, connection);
	size_t length = strlen(http->path);
	const char *why;
	bool is_clear = length < sizeof(http->path) - 1 &&
			http_path_normalise(http->path, length, path, sizeof(path), &why) >= 0;

	return connection_may_go_on(proxy, connection, http->method, is_clear ? path : NULL,
				    http->asked.upgrade);
}

void http_look_again(struct proxy *proxy, struct connection *connection)
{
	const struct http_state *http = http_of(proxy, connection);

	/* kept, and not in use: the next request is judged, and dialled for, as it comes */
	if (!http->is_sent && connection->dial == DIAL_DONE && !connection->is_opened) {
		connection_drop_upstream(proxy, connection);
		return;
	}
	if (!http->is_sent || http_may_go_on(proxy, connection))
		return;
	if (http->has_response)
		(void)refuse_reset(proxy, connection, connection->reason);
	else if (refuse_http(proxy, connection, 403, connection->reason) == STEP_NEXT)
		connection_ready(proxy, connection);
}

/* An upstream for it; STEP_NEXT: there is one. */
static enum step have_upstream(struct proxy *proxy, struct connection *connection)
{
	connection_dial(proxy, connection);
	if (connection_is_dialing(connection)) {
		if (connection->deadline != DEADLINE_DIAL)
			connection_wait(proxy, connection, DEADLINE_DIAL);
		return STEP_WAIT;
	}
	return connection->dial == DIAL_FAILED ? refuse_dial(proxy, connection) : STEP_NEXT;
}

static bool write_request(struct proxy *proxy, struct connection *connection,
			  const struct http_request *request)
{
	struct stream *up = &connection->up;
	const struct egress_rule *rule = connection->answer.rule;
	unsigned flags = HTTP_WRITE_EXPECT;
	int length;

	if (up->out == NULL)
		up->out = pool_take(&proxy->relay.pool);
	/* nothing may stand between what the upstream has and this */
	if (up->out == NULL || stream_waiting(up) > 0)
		return false;
	if (request->ends_connection)
		flags |= HTTP_WRITE_CLOSE;
	if (rule && rule->flags & EGRESS_UPGRADE)
		flags |= HTTP_WRITE_UPGRADE;
	chunk_compact(up->out, sizeof(up->out->bytes));
	length = http_write_request(request, &connection->host, connection->port,
				    (struct span){ NULL, 0 }, flags,
				    (char *)up->out->bytes + up->out->end, chunk_room(up->out));
	if (length < 0)
		return false;
	up->out->end += (uint32_t)length;
	return true;
}

static enum step step_request(struct proxy *proxy, struct connection *connection)
{
	struct http_state *http = http_of(proxy, connection);
	const struct http_request *request = &request_room;
	enum step step = STEP_WAIT;
	uint64_t left;
	size_t length;
	bool is_paced;

	/* the last response is sent before the next request is looked at */
	if (relay_flush(&proxy->relay, &connection->down) == RELAY_WAIT)
		return STEP_WAIT;
	if (connection->who == LEAVE_ASKED || connection->may == LEAVE_ASKED)
		return STEP_WAIT;
	if (relay_fill(&proxy->relay, &connection->up) == -ENOMEM)
		return connection_starve(proxy, connection);
	if (!read_request(proxy, connection, &length, &step))
		return step;
	step = judge_request(proxy, connection, request);
	if (step == STEP_NEXT && connection->state == STATE_HTTP)
		step = have_upstream(proxy, connection);
	if (step != STEP_NEXT || connection->state != STATE_HTTP)
		return step;
	if (!relay_has_room(&proxy->relay, &connection->up))
		return connection_starve(proxy, connection);
	if (!http->is_counted && !quota_request(proxy, connection))
		return refuse_http(proxy, connection, 429, "the quota of requests is used up");
	http->is_counted = true;
	left = quota_left(proxy, connection, true, &is_paced);
	if (is_paced) {
		connection_wait(proxy, connection, DEADLINE_PACE);
		return STEP_WAIT;
	}
	/* a head carries bytes out, too */
	if (quota_up(proxy, connection) < length || left == 0)
		return refuse_http(proxy, connection, 429, "the quota of bytes is used up");
	if (!connection_begin(proxy, connection))
		return STEP_WAIT;
	if (!write_request(proxy, connection, request))
		return refuse_http(proxy, connection, 503, "no memory for another request");
	quota_charge(proxy, connection);
	http->is_sent = true;
	connection->scanned = 0;
	http->is_fresh = connection->upstream_requests++ == 0;
	http->keeps_client = request->head.keep_alive;
	http->keeps_upstream = !request->ends_connection;
	http->has_upgrade = request->asked.upgrade && connection->answer.rule &&
			    connection->answer.rule->flags & EGRESS_UPGRADE;
	http_body_begin(&http->up, request->head.framing, request->head.content_length);
	stream_skip(&proxy->relay, &connection->up, length);
	connection_wait(proxy, connection, DEADLINE_ANSWER);
	return STEP_NEXT;
}

/* --- bodies */

enum flow { FLOW_WAIT, FLOW_AGAIN, FLOW_DONE, FLOW_BROKEN, FLOW_LOST, FLOW_QUOTA };

/* What has come is taken apart, and what is to be written put behind what waits. */
static enum flow take_pieces(struct proxy *proxy, struct stream *stream, struct http_body *body,
			     uint64_t limit)
{
	while (!http_body_is_done(body) && chunk_length(stream->in) > 0 &&
	       chunk_length(stream->out) < WAITING_BYTES) {
		const char *bytes = (const char *)stream->in->bytes + stream->in->start;
		size_t length = chunk_length(stream->in);
		struct http_piece piece;
		const char *why;
		int result;

		/* so that one piece is never more than there is room for */
		if (length > WAITING_BYTES)
			length = WAITING_BYTES;
		if (length > limit)
			length = (size_t)limit;
		if (length == 0)
			break;
		result = http_body_next(body, bytes, length, &piece, &why);
		if (result < 0)
			return FLOW_BROKEN;
		if (!relay_put(&proxy->relay, stream, piece.out.bytes, piece.out.length))
			return FLOW_LOST;
		chunk_skip(stream->in, piece.used);
		limit -= piece.used < limit ? piece.used : limit;
		if (result == 0)
			break;
	}
	if (chunk_length(stream->in) == 0)
		pool_give(&proxy->relay.pool, &stream->in);
	return http_body_is_done(body) ? FLOW_DONE : FLOW_AGAIN;
}

/* Bare payload goes by without being looked at. */
static enum flow pass_run(struct proxy *proxy, struct stream *stream, struct http_body *body,
			  uint64_t limit)
{
	uint64_t run = http_body_payload(body);
	enum relay_result result;

	stream->run = run;
	result = relay_move(&proxy->relay, stream, limit);
	if (run != RELAY_ENDLESS)
		http_body_passed(body, run - stream->run);
	stream->run = 0;
	switch (result) {
	case RELAY_RAN:
		return FLOW_DONE;
	case RELAY_AGAIN:
		return FLOW_AGAIN;
	case RELAY_WAIT:
		return FLOW_WAIT;
	case RELAY_ENDED:
		return http_body_close(body) == 0 ? FLOW_DONE : FLOW_BROKEN;
	case RELAY_LOST:
		break;
	}
	return FLOW_LOST;
}

static enum flow send_waiting(struct proxy *proxy, struct connection *connection,
			      struct stream *stream)
{
	enum relay_result result = relay_flush(&proxy->relay, stream);

	quota_charge(proxy, connection);
	return result == RELAY_LOST ? FLOW_LOST : result == RELAY_RAN ? FLOW_DONE : FLOW_WAIT;
}

/* One direction, as far as it goes in one turn. FLOW_DONE: all of the body is on its way. */
static enum flow pass_body(struct proxy *proxy, struct connection *connection,
			   struct stream *stream, struct http_body *body)
{
	for (uint64_t turn = 0; turn < RELAY_TURN_BYTES;) {
		uint64_t limit;
		enum flow flow;
		bool is_paced;
		int count;

		if (http_body_is_done(body))
			return send_waiting(proxy, connection, stream);
		if (chunk_length(stream->out) >= WAITING_BYTES) {
			flow = send_waiting(proxy, connection, stream);
			if (flow != FLOW_DONE)
				return flow;
		}
		limit = quota_left(proxy, connection, stream == &connection->up, &is_paced);
		if (limit == 0) {
			if (!is_paced)
				return FLOW_QUOTA;
			connection_wait(proxy, connection, DEADLINE_PACE);
			return FLOW_WAIT;
		}
		if (chunk_length(stream->in) == 0 && http_body_payload(body) >= RUN_BYTES) {
			flow = pass_run(proxy, stream, body, limit);
			quota_charge(proxy, connection);
			/* at the limit, and not for want of bytes: its turn above says which */
			if (flow == FLOW_WAIT && stream_waiting(stream) == 0 &&
			    stream->from->readable &&
			    quota_left(proxy, connection, stream == &connection->up, &is_paced) ==
				    0)
				continue;
			if (flow != FLOW_DONE)
				return flow;
			turn += RUN_BYTES;
			continue;
		}
		count = chunk_length(stream->in) > 0 ? 0 : relay_fill(&proxy->relay, stream);
		if (count == -ENOMEM || !relay_has_room(&proxy->relay, stream)) {
			(void)connection_starve(proxy, connection);
			return FLOW_WAIT;
		}
		if (count < 0)
			return FLOW_LOST;
		flow = take_pieces(proxy, stream, body, limit);
		/* now, or the next look at what is left would give it once more */
		quota_charge(proxy, connection);
		if (flow == FLOW_BROKEN || flow == FLOW_LOST)
			return flow;
		if (flow == FLOW_AGAIN && chunk_length(stream->in) == 0) {
			if (stream->from->is_done && http_body_close(body) < 0)
				return FLOW_BROKEN;
			if (!stream->from->is_done && !stream->from->readable) {
				flow = send_waiting(proxy, connection, stream);
				return flow == FLOW_DONE ? FLOW_WAIT : flow;
			}
		}
		turn += (uint64_t)count + 1;
	}
	return FLOW_AGAIN;
}

/* --- the response */

static enum step become_tunnel(struct connection *connection)
{
	connection->up.run = connection->down.run = RELAY_ENDLESS;
	connection->state = STATE_TUNNEL;
	return STEP_NEXT;
}

static bool write_response(struct proxy *proxy, struct connection *connection)
{
	struct http_state *http = http_of(proxy, connection);
	struct stream *down = &connection->down;
	unsigned flags = 0;
	int length;

	if (down->out == NULL)
		down->out = pool_take(&proxy->relay.pool);
	if (down->out == NULL)
		return false;
	if (!http->keeps_client && response_room.status >= 200)
		flags |= HTTP_WRITE_CLOSE;
	if (http->has_upgrade)
		flags |= HTTP_WRITE_UPGRADE;
	chunk_compact(down->out, sizeof(down->out->bytes));
	length = http_write_response(&response_room, &http->asked, flags,
				     (char *)down->out->bytes + down->out->end,
				     chunk_room(down->out));
	if (length < 0)
		return false;
	down->out->end += (uint32_t)length;
	return true;
}

/* STEP_NEXT: a head was taken (perhaps of an interim response), look again. */
static enum step read_response(struct proxy *proxy, struct connection *connection)
{
	struct http_state *http = http_of(proxy, connection);
	struct stream *down = &connection->down;
	const char *head, *why = NULL;
	int length, result, count;

	/* interim responses that nobody reads must not pile up */
	if (chunk_length(down->out) >= WAITING_BYTES)
		switch (relay_flush(&proxy->relay, down)) {
		case RELAY_RAN:
			break;
		case RELAY_LOST:
			return refuse_reset(proxy, connection, "the client was lost");
		case RELAY_WAIT:
		case RELAY_AGAIN:
		case RELAY_ENDED:
			return STEP_WAIT;
		}
	count = relay_fill(&proxy->relay, down);
	if (count == -ENOMEM || !relay_has_room(&proxy->relay, down))
		return connection_starve(proxy, connection);
	if (count < 0 && chunk_length(down->in) == 0)
		return lose_upstream(proxy, connection, "the server's connection was lost");
	head = down->in ? (const char *)down->in->bytes + down->in->start : "";
	length = http_head_end(head, chunk_length(down->in), &http->scanned_down, &why);
	if (length == 0) {
		if (connection->upstream.is_done)
			return lose_upstream(proxy, connection,
					     "the server closed without an answer");
		return STEP_WAIT;
	}
	result = length < 0 ? length :
			      http_parse_response(head, (size_t)length, &http->asked,
						  &response_room, &why);
	if (result < 0)
		return lose_upstream(proxy, connection, why);
	http->status = response_room.status;
	if (response_room.status == 101 && !http->has_upgrade)
		return lose_upstream(proxy, connection, "the server changed the protocol unasked");
	if (response_room.status >= 200) {
		http->keeps_upstream = http->keeps_upstream && response_room.head.keep_alive &&
				       response_room.head.framing != HTTP_UNTIL_CLOSE;
		/* what says its own end needs no close; what does not ends with the connection */
		http->keeps_client = http->keeps_client &&
				     response_room.head.framing != HTTP_UNTIL_CLOSE &&
				     http_body_is_done(&http->up);
	}
	if (!write_response(proxy, connection))
		return lose_upstream(proxy, connection, "no memory for its answer");
	stream_skip(&proxy->relay, down, (size_t)length);
	http->scanned_down = 0;
	if (response_room.status == 101)
		return become_tunnel(connection);
	if (response_room.status >= 200) {
		http->has_response = true;
		http_body_begin(&http->down, response_room.head.framing,
				response_room.head.content_length);
	}
	return STEP_NEXT;
}

static enum step pass_response(struct proxy *proxy, struct connection *connection)
{
	struct http_state *http = http_of(proxy, connection);

	while (!http->has_response) {
		enum step step = read_response(proxy, connection);

		if (step == STEP_WAIT && connection->state == STATE_HTTP)
			/* an interim one, and what the client has to know before it goes on */
			if (relay_flush(&proxy->relay, &connection->down) == RELAY_LOST)
				return refuse_reset(proxy, connection, "the client was lost");
		if (step != STEP_NEXT || connection->state != STATE_HTTP)
			return step;
	}
	switch (pass_body(proxy, connection, &connection->down, &http->down)) {
	case FLOW_DONE:
		/* a server that answers before it has read all does not want the rest */
		if (!http_body_is_done(&http->up))
			http->keeps_client = http->keeps_upstream = false;
		/* what it was not given yet would come behind the next head, and be read as one */
		if (stream_waiting(&connection->up) > 0)
			http->keeps_upstream = false;
		return next_request(proxy, connection);
	case FLOW_BROKEN:
		return lose_upstream(proxy, connection, "the server's answer is cut or malformed");
	case FLOW_LOST:
		return refuse_reset(proxy, connection, "a connection was lost");
	case FLOW_QUOTA:
		connection->answer.verdict = EGRESS_DENY;
		return refuse_reset(proxy, connection, "the quota of bytes is used up");
	case FLOW_AGAIN:
		return STEP_AGAIN;
	case FLOW_WAIT:
		break;
	}
	return STEP_WAIT;
}

static enum step pass_request(struct proxy *proxy, struct connection *connection)
{
	struct http_state *http = http_of(proxy, connection);

	switch (pass_body(proxy, connection, &connection->up, &http->up)) {
	case FLOW_AGAIN:
		return STEP_AGAIN;
	case FLOW_BROKEN:
		/* the upstream must not take what came for a whole request */
		if (!http->has_response && !connection->client.is_done)
			return refuse_http(proxy, connection, 400, "the body is malformed");
		return refuse_reset(proxy, connection, "the body is cut or malformed");
	case FLOW_LOST:
		/* a server that has said no may have closed: its answer is still to be read */
		if (!connection->upstream.is_lost)
			return refuse_reset(proxy, connection,
					    connection->client.is_lost ? "the client was lost" :
									 "no memory for its body");
		http->keeps_upstream = false;
		return STEP_WAIT;
	case FLOW_QUOTA:
		return refuse_http(proxy, connection, 429, "the quota of bytes is used up");
	case FLOW_DONE:
	case FLOW_WAIT:
		break;
	}
	return STEP_WAIT;
}

enum step step_http(struct proxy *proxy, struct connection *connection)
{
	struct http_state *http = http_of(proxy, connection);
	uint64_t before = connection->up.passed + connection->down.passed;
	enum deadline deadline;
	enum step up, down;
	bool is_moving;

	if (!http->is_sent)
		return step_request(proxy, connection);
	/* its request is with the server, and nobody is there for the answer */
	if (connection->client.is_gone && http_body_is_done(&http->up) &&
	    stream_waiting(&connection->up) == 0)
		return refuse_reset(proxy, connection, "the client was lost");
	up = pass_request(proxy, connection);
	if (up == STEP_END || connection->state != STATE_HTTP)
		return up;
	down = pass_response(proxy, connection);
	if (down == STEP_END || down == STEP_NEXT || connection->state != STATE_HTTP)
		return down;
	is_moving = connection->up.passed + connection->down.passed != before;
	deadline = http->has_response		? DEADLINE_IDLE :
		   connection->client.is_ending ? DEADLINE_LEFT :
						  DEADLINE_ANSWER;
	if (connection->deadline != DEADLINE_PACE &&
	    (connection->deadline != deadline || is_moving))
		connection_wait(proxy, connection, deadline);
	return up == STEP_AGAIN ? STEP_AGAIN : down;
}
