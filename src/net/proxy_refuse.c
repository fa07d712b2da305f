/*
 * A no in the words of whoever asked: a reset, an alert of TLS, a response. An agent that reads it
 * has to see that it is a policy's and not a fault of the network, and how to ask.
 */
#include "base/arena.h"
#include "base/buffer.h"
#include "base/json.h"
#include "net/hello.h"
#include "net/http.h"
#include "net/proxy_internal.h"
#include "net/socks.h"

#include <stdio.h>
#include <string.h>

/* A refusal's body: texts of ours, a rule's id and place, a host. */
#define BODY_BYTES 2048

static const char *phrase(unsigned status)
{
	static const struct {
		unsigned status;
		const char *phrase;
	} phrases[] = {
		{ 400, "Bad Request" },
		{ 403, "Forbidden" },
		{ 408, "Request Timeout" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return "Refused";
}

/* What is left to say goes to the client; then it ends. */
static enum step say(struct proxy *proxy, struct connection *connection, const void *bytes,
		     size_t length)
{
	connection_drop_upstream(proxy, connection);
	pool_give(&proxy->relay.pool, &connection->up.in);
	if (!relay_put(&proxy->relay, &connection->down, bytes, length)) {
		connection_reset(proxy, connection);
		return STEP_END;
	}
	connection->state = STATE_FLUSH;
	connection_wait(proxy, connection, DEADLINE_NONE);
	return STEP_NEXT;
}

enum step refuse_reset(struct proxy *proxy, struct connection *connection, const char *reason)
{
	const struct http_state *http = http_of(proxy, connection);
	/* the end of a request that was told to have begun */
	bool is_http = connection->is_opened && connection->state == STATE_HTTP;

	connection->reason = reason;
	report_stopped(proxy, connection, is_http ? http->method : NULL,
		       is_http ? http->path : NULL);
	if (connection->answer.verdict == EGRESS_DENY) {
		connection->is_reset = true;
		connection->state = STATE_FLUSH;
		return step_flush(proxy, connection);
	}
	connection_reset(proxy, connection);
	return STEP_END;
}

enum step refuse_tls(struct proxy *proxy, struct connection *connection, const char *reason)
{
	unsigned char alert[HELLO_ALERT_BYTES];

	connection->answer.verdict = EGRESS_DENY;
	connection->reason = reason;
	report_stopped(proxy, connection, NULL, NULL);
	hello_write_alert(HELLO_ACCESS_DENIED, alert);
	return say(proxy, connection, alert, sizeof(alert));
}

/* What would change the answer, as far as the rule that gave it can be changed by an option. */
static const char *remedy_of(const struct connection *connection)
{
	const struct egress_rule *rule = connection->answer.rule;

	if (rule && rule->verdict == EGRESS_DENY)
		return "a rule of the policy denies this, which no option changes: ask whoever "
		       "owns the policy";
	if (rule && rule->verdict == EGRESS_ASK)
		return "a rule of the policy asks a person about this, and nobody allowed it";
	if (rule || connection->is_partly)
		return "the rule allows the host and not this: ask whoever owns the policy";
	return "whoever started the task can allow it: --allow-host NAME:PORT, or network.allow in "
	       "a policy file";
}

static void body_text(const struct connection *connection, unsigned status, struct buffer *body)
{
	struct rule_ref rule = egress_answer_rule(&connection->answer);
	bool is_denial = status == 403 || status == 429;
	char target[HOST_NAME_BYTES + 8];
	struct json json;

	(void)snprintf(target, sizeof(target), "%s:%u", connection->host.name, connection->port);
	json_begin(&json, body);
	json_object(&json, NULL);
	json_string(&json, "error",
		    is_denial				      ? "denied" :
		    connection->answer.verdict == EGRESS_DENY ? "refused" :
								"failed");
	json_string(&json, "by", "bawn");
	json_string(&json, "verb", "net.connect");
	/* at the door, before a host was named, there is none */
	json_string(&json, "target", connection->host.name[0] ? target : NULL);
	json_string(&json, "reason", connection->reason);
	if (is_denial) {
		rule_json(&rule, "rule", &json);
		json_string(
			&json, "message",
			"a policy denies this; it is no fault of the network, and other ways are "
			"denied as well");
		json_string(&json, "remedy", remedy_of(connection));
	} else if (connection->answer.verdict == EGRESS_DENY) {
		json_string(&json, "message", "no server gets to see such a request");
	}
	json_object_end(&json);
	buffer_byte(body, '\n');
}

enum step refuse_http(struct proxy *proxy, struct connection *connection, unsigned status,
		      const char *reason)
{
	const struct http_state *http = http_of(proxy, connection);
	char text[BODY_BYTES + 512];
	struct buffer body = { .arena = &proxy->scratch };
	int length;

	connection->reason = reason;
	/* what is no request that a rule could be for is denied as well; the rest is a failure */
	if (status < 500 ? status != 408 : status == 501 || status == 505)
		connection->answer.verdict = EGRESS_DENY;
	report_stopped(proxy, connection, http->method, http->path);
	arena_reset(&proxy->scratch);
	body_text(connection, status, &body);
	/* a response that has begun cannot become another one: it ends cut, and is seen to be */
	if (http->has_response || body.failed || body.length > BODY_BYTES) {
		connection_reset(proxy, connection);
		return STEP_END;
	}
	length = snprintf(text, sizeof(text),
			  "HTTP/1.1 %u %s\r\n"
			  "Content-Type: application/json\r\n"
			  "Content-Length: %zu\r\n"
			  "Connection: close\r\n"
			  "Cache-Control: no-store\r\n"
			  "Proxy-Status: bawn; error=%s; details=\"%s\"\r\n"
			  "\r\n%s",
			  status, phrase(status), http->asked.method == HTTP_HEAD ? 0 : body.length,
			  status == 403 || status == 429 ? "http_request_denied" :
			  status >= 500			 ? "destination_unavailable" :
							   "http_request_error",
			  reason, http->asked.method == HTTP_HEAD ? "" : body.data);
	return say(proxy, connection, text, (size_t)length);
}

static enum step refuse_socks(struct proxy *proxy, struct connection *connection,
			      enum socks_code code)
{
	struct socks_reply reply;

	report_stopped(proxy, connection, NULL, NULL);
	socks_answer(code, &reply);
	return say(proxy, connection, reply.bytes, reply.length);
}

/* Behind a door's yes the words are those of what is inside. */
static bool is_at_door(const struct connection *connection)
{
	return connection->state == STATE_DOOR;
}

enum step refuse(struct proxy *proxy, struct connection *connection, const char *reason)
{
	const struct chunk *in = connection->up.in;
	const unsigned char *first = in && chunk_length(in) ? in->bytes + in->start : NULL;

	connection->reason = reason;
	connection->answer.verdict = EGRESS_DENY;
	if (is_at_door(connection) && connection->door == EGRESS_SOCKS)
		return refuse_socks(proxy, connection, SOCKS_NOT_ALLOWED);
	if (connection->state == STATE_HTTP ||
	    (is_at_door(connection) && connection->door != EGRESS_CAPTURED))
		return refuse_http(proxy, connection, 403, reason);
	if (connection->state == STATE_SNIFF && first && first[0] == 0x16)
		return refuse_tls(proxy, connection, reason);
	return refuse_reset(proxy, connection, reason);
}

enum step refuse_dial(struct proxy *proxy, struct connection *connection)
{
	static const struct {
		uint16_t status;
		uint8_t socks;
	} words[EGRESS_OUTCOME_COUNT] = {
		[EGRESS_DONE] = { 502, SOCKS_FAILED },
		[EGRESS_DENIED] = { 403, SOCKS_NOT_ALLOWED },
		[EGRESS_SPECIAL] = { 403, SOCKS_NOT_ALLOWED },
		[EGRESS_NO_NAME] = { 502, SOCKS_HOST_UNREACHABLE },
		[EGRESS_NO_RESOLVER] = { 504, SOCKS_HOST_UNREACHABLE },
		[EGRESS_REFUSED] = { 502, SOCKS_REFUSED },
		[EGRESS_UNREACHABLE] = { 502, SOCKS_NETWORK_UNREACHABLE },
		[EGRESS_TIMEOUT] = { 504, SOCKS_HOST_UNREACHABLE },
		[EGRESS_BUSY] = { 503, SOCKS_FAILED },
		[EGRESS_CANCELLED] = { 503, SOCKS_FAILED },
	};
	uint32_t outcome = connection->outcome;

	connection->reason = connection_trouble(connection);
	/* the dialer has the last word on what may be dialled */
	if (outcome == EGRESS_DENIED || outcome == EGRESS_SPECIAL)
		connection->answer.verdict = EGRESS_DENY;
	if (is_at_door(connection) && connection->door == EGRESS_SOCKS)
		return refuse_socks(proxy, connection, words[outcome].socks);
	if (connection->state == STATE_HTTP || is_at_door(connection))
		return refuse_http(proxy, connection, words[outcome].status, connection->reason);
	/* an alert would be taken for the server's own */
	return connection->answer.verdict == EGRESS_DENY ?
		       refuse(proxy, connection, connection->reason) :
		       refuse_reset(proxy, connection, connection->reason);
}
