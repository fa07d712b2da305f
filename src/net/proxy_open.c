/* From a connection that came in to a verdict: which host, which protocol, what the rules say. */
#include "ipc/message.h"
#include "net/hello.h"
#include "net/proxy_internal.h"
#include "policy/place.h"

#include <errno.h>
#include <string.h>

/* A method and its blank: what the first bytes of a request are told by. */
#define METHOD_BYTES (HTTP_LIMIT_METHOD_BYTES + 1)

void connection_open(struct proxy *proxy, struct connection *connection)
{
	const char *name, *why;

	connection->state = STATE_SNIFF;
	connection->port = connection->local_port;
	connection_wait(proxy, connection, DEADLINE_SILENT);
	if (connection->local.family == ADDRESS_NONE) {
		connection->state = STATE_DOOR;
		return;
	}
	if (connection->local_port == PLACE_NAMESERVER_PORT) {
		connection->state = STATE_LOOKUP;
		return;
	}
	switch (names_look(proxy->names, &connection->local, &name)) {
	case NAMES_NAME:
		/* it was one when its address was given */
		if (host_parse(name, strlen(name), &connection->host, &why) == 0)
			return;
		break;
	case NAMES_DOOR:
		if (connection->local_port != PLACE_DOOR_PORT)
			break;
		/* its own address is none that anybody wants to reach */
		connection->state = STATE_DOOR;
		return;
	case NAMES_OUTSIDE:
	case NAMES_FREE:
	case NAMES_SERVER:
	case NAMES_BOX:
		break;
	}
	host_of_address(&connection->local, &connection->host);
}

void host_of_given(const struct proxy *proxy, struct host *host)
{
	const char *name, *why;
	struct host named;

	if (host->kind == HOST_ADDRESS &&
	    names_look(proxy->names, &host->address, &name) == NAMES_NAME &&
	    host_parse(name, strlen(name), &named, &why) == 0)
		*host = named;
}

/* --- quotas */

static struct usage *usage_of(struct proxy *proxy, const struct connection *connection)
{
	const struct egress_rule *rule = connection->answer.rule;

	/* what no rule decides has one of its own, which nobody reads */
	return &proxy->usage[rule ? (size_t)(rule - proxy->policy.rules) :
				    proxy->policy.rule_count];
}

static uint64_t rest(uint64_t quota, uint64_t used)
{
	return quota == 0 ? UINT64_MAX : quota > used ? quota - used : 0;
}

uint64_t quota_left(struct proxy *proxy, struct connection *connection, bool is_up, bool *ret_pace)
{
	const struct egress_rule *rule = connection->answer.rule;
	struct usage *usage = usage_of(proxy, connection);
	uint64_t left, pace;

	*ret_pace = false;
	if (rule == NULL)
		return UINT64_MAX;
	left = is_up ? rest(rule->bytes_up, usage->bytes_up) :
		       rest(rule->bytes_down, usage->bytes_down);
	if (rule->bytes_per_second == 0 || left == 0)
		return left;
	if (proxy->now_ns - usage->second_ns >= SECOND_NS) {
		usage->second_ns = proxy->now_ns;
		usage->second_bytes = 0;
	}
	pace = rest(rule->bytes_per_second, usage->second_bytes);
	*ret_pace = pace == 0;
	return left < pace ? left : pace;
}

uint64_t quota_up(struct proxy *proxy, struct connection *connection)
{
	const struct egress_rule *rule = connection->answer.rule;

	return rule ? rest(rule->bytes_up, usage_of(proxy, connection)->bytes_up) : UINT64_MAX;
}

/* Bytes count when they are taken: what waits for a slow end has been said already. */
static uint64_t newly_taken(const struct stream *stream, uint64_t *charged)
{
	uint64_t taken = stream->passed + stream_waiting(stream);
	uint64_t more = taken > *charged ? taken - *charged : 0;

	*charged += more;
	return more;
}

void quota_charge(struct proxy *proxy, struct connection *connection)
{
	struct usage *usage = usage_of(proxy, connection);
	uint64_t up = newly_taken(&connection->up, &connection->charged_up);
	uint64_t down = newly_taken(&connection->down, &connection->charged_down);

	usage->bytes_up += up;
	usage->bytes_down += down;
	usage->second_bytes += up + down;
}

bool quota_connection(struct proxy *proxy, struct connection *connection)
{
	struct usage *usage = usage_of(proxy, connection);

	if (connection->is_counted || connection->answer.rule == NULL)
		return true;
	if (rest(connection->answer.rule->connections, usage->connections) == 0)
		return false;
	usage->connections++;
	connection->is_counted = true;
	return true;
}

bool quota_request(struct proxy *proxy, struct connection *connection)
{
	struct usage *usage = usage_of(proxy, connection);
	uint64_t minute = proxy->now_ns / (60 * SECOND_NS);

	if (connection->answer.rule == NULL)
		return true;
	if (usage->minute != minute) {
		usage->minute = minute;
		usage->requests = 0;
	}
	if (rest(connection->answer.rule->requests_per_minute, usage->requests) == 0)
		return false;
	usage->requests++;
	return true;
}

/* --- the verdict */

void connection_dial(struct proxy *proxy, struct connection *connection)
{
	struct egress_dial dial = { .port = connection->port };

	int result;

	if (connection->dial != DIAL_NONE && connection->dial != DIAL_QUEUED)
		return;
	connection->dial_id = (++proxy->dial_count << CONNECTION_BITS) |
			      (connection->id & ((1u << CONNECTION_BITS) - 1));
	dial.id = connection->dial_id;
	dial.host_bytes = (uint32_t)strlen(connection->host.name);
	egress_text(dial.host, sizeof(dial.host), connection->host.name);
	connection->dial = DIAL_ASKED;
	connection->outcome = EGRESS_DONE;
	result = message_send(EGRESS_FD_PEER, EGRESS_DIAL, &dial, sizeof(dial), NULL, 0);
	if (result == -EAGAIN) {
		connection->dial = DIAL_QUEUED;
		proxy->is_peer_full = true;
	} else if (result < 0) {
		connection->dial = DIAL_FAILED;
		connection->outcome = EGRESS_BUSY;
	}
}

bool connection_is_dialing(const struct connection *connection)
{
	return connection->dial == DIAL_ASKED || connection->dial == DIAL_QUEUED;
}

const char *connection_trouble(const struct connection *connection)
{
	static const char *const texts[EGRESS_OUTCOME_COUNT] = {
		[EGRESS_DONE] = "it was connected",
		[EGRESS_DENIED] = "no rule allows it",
		[EGRESS_SPECIAL] =
			"an address of this name is not of the public network, or a rule denies it",
		[EGRESS_NO_NAME] = "there is no such name",
		[EGRESS_NO_RESOLVER] = "the name could not be resolved: no answer in time",
		[EGRESS_REFUSED] = "the server refused the connection",
		[EGRESS_UNREACHABLE] = "the server cannot be reached",
		[EGRESS_TIMEOUT] = "the server did not answer in time",
		[EGRESS_BUSY] = "too many connections are being made at once",
		[EGRESS_CANCELLED] = "it was given up",
	};

	return texts[connection->outcome];
}

static enum judgement deny(struct connection *connection, const char *reason)
{
	connection->answer.verdict = EGRESS_DENY;
	connection->reason = reason;
	return JUDGE_DENY;
}

/* The first action that uses such a rule is the one that it is for. */
static bool is_for_its_action(struct proxy *proxy, struct connection *connection)
{
	struct usage *usage = usage_of(proxy, connection);

	if (!connection->answer.rule || !(connection->answer.rule->flags & EGRESS_ONCE))
		return true;
	if (connection->action == 0)
		return false;
	if (usage->action == 0)
		usage->action = connection->action;
	return usage->action == connection->action;
}

static enum judgement ask(struct proxy *proxy, struct connection *connection,
			  enum egress_question_kind kind, enum leave *leave, const char *method,
			  const char *path)
{
	/* who could answer has no ear for it any more */
	if (proxy->is_ending)
		return deny(connection, "nobody can be asked: its task has ended");
	if (kind == EGRESS_WHO)
		connection_wait(proxy, connection, DEADLINE_WHO);
	else if (!connection_hold(proxy, connection))
		return deny(connection, "too many connections wait for a person's answer");
	if (!report_question(proxy, connection, kind, method, path)) {
		connection_wait(proxy, connection, DEADLINE_NONE);
		return proxy->is_held ? JUDGE_WAIT : deny(connection, "nobody can be asked");
	}
	*leave = LEAVE_ASKED;
	return JUDGE_WAIT;
}

/* The task waits for a person, of whose answers each is for one rule. */
static enum judgement ask_person(struct proxy *proxy, struct connection *connection,
				 const struct egress_question *question)
{
	uint32_t rule = (uint32_t)(connection->answer.rule - proxy->policy.rules);
	const char *path;

	if (connection->may != LEAVE_NONE && connection->may_rule != rule)
		connection->may = LEAVE_NONE;
	connection->may_rule = rule;
	/* a person sees the path as it came, clear or not */
	path = question->method ? http_of(proxy, connection)->path : NULL;
	switch (connection->may) {
	case LEAVE_NONE:
		return ask(proxy, connection, EGRESS_MAY, &connection->may, question->method, path);
	case LEAVE_ASKED:
		return JUDGE_WAIT;
	case LEAVE_YES:
		return JUDGE_ALLOW;
	case LEAVE_NO:
		break;
	}
	return deny(connection, "it has to be asked for, and nobody said yes");
}

/* Such a rule is for one action, which is known with the program that connects. */
static bool wants_action(const struct connection *connection, const struct egress_rule *rule)
{
	return rule && rule->flags & EGRESS_ONCE && !(connection->known & EGRESS_FACT_TOOL);
}

/*
 * The dialer has looked at host and port alone: whether all that is known now leads to the address
 * that it has connected to. True while there is none.
 */
static bool may_reach(struct proxy *proxy, struct connection *connection,
		      const struct egress_question *question, struct egress_opening *ret_opening)
{
	*ret_opening = (struct egress_opening){ .needs = 0 };
	if (connection->dial != DIAL_DONE)
		return true;
	connection->outcome = EGRESS_DONE;
	if (egress_check_address(&proxy->policy, question, &connection->answer,
				 &connection->address, ret_opening))
		connection->outcome = EGRESS_SPECIAL;
	connection->answer.needs |= ret_opening->needs;
	return connection->outcome == EGRESS_DONE;
}

/* Where a wider rule allows the name, the one that opens a private service is what counts. */
static void turn_to_opener(struct connection *connection, const struct egress_rule *opener)
{
	if (!opener || opener == connection->answer.rule)
		return;
	connection->answer.rule = opener;
	if (!connection->is_opener)
		connection->is_counted = false;
	connection->is_opener = true;
}

static const char crowded[] = "the task has too many open files to find the program that connects";

/* Whether less of the question would have another answer. */
static bool is_open_without(const struct proxy *proxy, struct egress_question question,
			    uint32_t facts)
{
	struct egress_answer answer;

	question.known &= ~facts;
	egress_decide(&proxy->policy, &question, &answer);
	return answer.verdict != EGRESS_DENY;
}

/* What no rule allows, where one allows something of the host: a place to look in the policy. */
static const char *fault_of_part(const struct proxy *proxy, struct connection *connection,
				 const struct egress_question *question)
{
	uint32_t known = EGRESS_FACT_REQUEST;

	connection->is_partly = is_open_without(proxy, *question, UINT32_MAX);
	if (!connection->is_partly)
		return "no rule allows it";
	if (question->known & known && is_open_without(proxy, *question, known))
		return question->upgrade ? "no rule allows to change the protocol there (upgrade)" :
					   "no rule allows this method or path there";
	known |= EGRESS_FACT_PROTOCOL;
	if (question->known & known && is_open_without(proxy, *question, known))
		return "no rule allows this protocol there";
	return "no rule allows this program there";
}

static const char *fault_of_answer(const struct proxy *proxy, struct connection *connection,
				   const struct egress_question *question)
{
	connection->is_partly = false;
	if (connection->answer.special)
		return connection->answer.special;
	if (connection->answer.rule)
		return "a rule denies it";
	if (connection->is_crowded)
		return crowded;
	return connection->who == LEAVE_NO ? "no rule allows it, and its program cannot be told" :
					     fault_of_part(proxy, connection, question);
}

static struct egress_question question_about(const struct proxy *proxy,
					     const struct connection *connection,
					     const char *method, const char *path, bool upgrade)
{
	return (struct egress_question){
		.host = &connection->host,
		.port = connection->port,
		.wall_s = proxy->wall_s,
		.known = connection->known | (method ? EGRESS_FACT_REQUEST : 0u),
		.protocol = connection->protocol,
		.method = method,
		.path = path,
		.upgrade = upgrade,
		.tool = connection->has_tool ? &connection->tool : NULL,
	};
}

enum judgement connection_judge_request(struct proxy *proxy, struct connection *connection,
					const char *method, const char *path, bool upgrade)
{
	const struct egress_question question =
		question_about(proxy, connection, method, path, upgrade);
	struct egress_answer *answer = &connection->answer;
	struct egress_opening opening;

	egress_decide(&proxy->policy, &question, answer);
	if (answer->verdict == EGRESS_DENY)
		return deny(connection, fault_of_answer(proxy, connection, &question));
	if (!may_reach(proxy, connection, &question, &opening))
		return deny(connection, connection_trouble(connection));
	if (answer->needs & EGRESS_FACT_TOOL || wants_action(connection, answer->rule) ||
	    wants_action(connection, opening.rule)) {
		if (connection->who == LEAVE_NONE)
			return ask(proxy, connection, EGRESS_WHO, &connection->who, NULL, NULL);
		return JUDGE_WAIT;
	}
	if (answer->needs)
		return JUDGE_MORE;
	if (answer->verdict == EGRESS_ASK) {
		enum judgement judgement = ask_person(proxy, connection, &question);

		if (judgement != JUDGE_ALLOW)
			return judgement;
	}
	turn_to_opener(connection, opening.rule);
	if (!is_for_its_action(proxy, connection))
		return deny(connection, connection->is_crowded ?
						crowded :
						"the rule is for one action, and this is another");
	if (!quota_connection(proxy, connection))
		return deny(connection, "the quota of connections is used up");
	return JUDGE_ALLOW;
}

static const char is_over[] = "the time of the rule that allowed it is over";

/* NULL: it may go on by the answer that the connection has now. */
static const char *fault_of_time(struct proxy *proxy, struct connection *connection,
				 const struct egress_question *question,
				 const struct egress_rule *before)
{
	struct egress_answer *answer = &connection->answer;
	struct egress_opening opening;

	if (answer->verdict == EGRESS_DENY)
		return answer->rule ? "the time of a rule that denies it has begun" : is_over;
	if (!may_reach(proxy, connection, question, &opening))
		return "the time has come of a rule about its address, or is over";
	/* what another rule would have to know first is for another connection */
	if (answer->needs || (answer->rule != before && wants_action(connection, answer->rule)))
		return is_over;
	if (answer->verdict == EGRESS_ASK &&
	    (connection->may != LEAVE_YES ||
	     connection->may_rule != (uint32_t)(answer->rule - proxy->policy.rules)))
		return "the time of a rule that asks about it has begun";
	turn_to_opener(connection, opening.rule);
	if (answer->rule == before)
		return NULL;
	connection->is_counted = false;
	return is_for_its_action(proxy, connection) && quota_connection(proxy, connection) ?
		       NULL :
		       is_over;
}

bool connection_may_go_on(struct proxy *proxy, struct connection *connection, const char *method,
			  const char *path, bool upgrade)
{
	const struct egress_rule *before = connection->answer.rule;
	const struct egress_question question =
		question_about(proxy, connection, method, path, upgrade);
	struct egress_answer *answer = &connection->answer;

	egress_decide(&proxy->policy, &question, answer);
	connection->reason = fault_of_time(proxy, connection, &question, before);
	if (connection->reason == NULL)
		return true;
	/* unless one denies it, the rule that it was open by is what the denial is about */
	if (answer->verdict != EGRESS_DENY || !answer->rule)
		*answer = (struct egress_answer){ .rule = before };
	answer->verdict = EGRESS_DENY;
	return false;
}

enum judgement connection_judge(struct proxy *proxy, struct connection *connection)
{
	return connection_judge_request(proxy, connection, NULL, NULL, false);
}

static void know_protocol(struct connection *connection, enum egress_protocol protocol)
{
	connection->protocol = protocol;
	connection->known |= EGRESS_FACT_PROTOCOL;
}

bool connection_begin(struct proxy *proxy, struct connection *connection)
{
	if (!connection->is_opened)
		connection->is_opened = report_opened(proxy, connection);
	connection->up.is_modest = !connection->is_opened;
	return connection->is_opened;
}

/* --- the first bytes */

enum kind { KIND_MORE, KIND_TLS, KIND_SSH, KIND_HTTP, KIND_OTHER };

/* A line that is whole and has no version is none of a request: other protocols have words, too. */
static enum kind kind_of_line(const unsigned char *bytes, size_t length)
{
	const unsigned char *end = memchr(bytes, '\n', length);

	return end && !memmem(bytes, (size_t)(end - bytes), " HTTP/", 6) ? KIND_OTHER : KIND_HTTP;
}

static enum kind kind_of(const unsigned char *bytes, size_t length)
{
	size_t i = 0;
	int tls = hello_begins(bytes, length);

	if (tls > 0)
		return KIND_TLS;
	if (length >= 4 && memcmp(bytes, "SSH-", 4) == 0)
		return KIND_SSH;
	while (i < length && i < METHOD_BYTES && bytes[i] >= 'A' && bytes[i] <= 'Z')
		i++;
	if (i > 0 && i < length && bytes[i] == ' ')
		return kind_of_line(bytes, length);
	/* a name of a method may have these, too, behind its first letter */
	while (i > 0 && i < length && i < METHOD_BYTES &&
	       (bytes[i] == '-' || bytes[i] == '_' || (bytes[i] >= '0' && bytes[i] <= '9') ||
		(bytes[i] >= 'A' && bytes[i] <= 'Z')))
		i++;
	if (i > 0 && i < length && bytes[i] == ' ')
		return kind_of_line(bytes, length);
	if (tls == 0 || (i == length && i < METHOD_BYTES))
		return KIND_MORE;
	return KIND_OTHER;
}

/* A verdict on what is known now; then the upstream; then the bytes. */
static enum step pass_or_refuse(struct proxy *proxy, struct connection *connection)
{
	switch (connection_judge(proxy, connection)) {
	case JUDGE_WAIT:
		return STEP_WAIT;
	case JUDGE_MORE: /* what only a request could tell is not told by these bytes */
		return refuse(proxy, connection,
			      "the rule needs to see the request, which these bytes do not show");
	case JUDGE_DENY:
		return refuse(proxy, connection, connection->reason);
	case JUDGE_ALLOW:
		break;
	}
	connection_dial(proxy, connection);
	if (connection_is_dialing(connection)) {
		if (connection->deadline != DEADLINE_DIAL)
			connection_wait(proxy, connection, DEADLINE_DIAL);
		return STEP_WAIT;
	}
	if (connection->dial == DIAL_FAILED)
		return refuse_dial(proxy, connection);
	if (!connection_begin(proxy, connection))
		return STEP_WAIT;
	connection->up.run = connection->down.run = RELAY_ENDLESS;
	connection->state = STATE_TUNNEL;
	return STEP_NEXT;
}

/*
 * Whether a rule takes any bytes, these among them, and no other one has to look at what they say:
 * neither a denial, nor one that opens the address.
 */
static bool takes_bytes(const struct proxy *proxy, const struct connection *connection)
{
	const struct egress_question question = {
		.host = &connection->host,
		.port = connection->port,
		.wall_s = proxy->wall_s,
		.known = connection->known,
		.protocol = connection->protocol,
		.tool = connection->has_tool ? &connection->tool : NULL,
	};
	struct egress_opening opening = { .needs = 0 };
	struct egress_answer answer;

	if (connection->is_refused)
		return false;
	egress_decide(&proxy->policy, &question, &answer);
	if (answer.verdict == EGRESS_DENY || !answer.rule || !(answer.rule->protocols & EGRESS_TCP))
		return false;
	if (connection->dial == DIAL_DONE)
		(void)egress_check_address(&proxy->policy, &question, &answer, &connection->address,
					   &opening);
	return !((answer.needs | opening.needs) & ~(uint32_t)EGRESS_FACT_TOOL);
}

/* Where nothing looks: a name that a rule denies is none of the host connected to, all the same. */
static const char *fault_of_name(const struct proxy *proxy, const struct connection *connection,
				 const struct hello *hello)
{
	const struct egress_question question = { .host = &hello->host,
						  .port = connection->port,
						  .wall_s = proxy->wall_s,
						  .known = EGRESS_FACT_PROTOCOL,
						  .protocol = connection->protocol };
	struct egress_answer answer;

	if (!hello->has_name)
		return NULL;
	egress_decide(&proxy->policy, &question, &answer);
	return answer.verdict == EGRESS_DENY && answer.rule ?
		       "its ClientHello names a server that a rule denies" :
		       NULL;
}

/* A name inside of TLS that is not the one connected to would make another server answer. */
static const char *fault_of_hello(struct proxy *proxy, struct connection *connection,
				  const struct hello *hello)
{
	struct egress_question question = {
		.host = &hello->host,
		.port = connection->port,
		.wall_s = proxy->wall_s,
		.known = connection->known | EGRESS_FACT_PROTOCOL,
		.protocol = connection->protocol,
		.tool = connection->has_tool ? &connection->tool : NULL,
	};
	struct egress_answer answer;

	if (takes_bytes(proxy, connection))
		return fault_of_name(proxy, connection, hello);
	if (hello->has_ech)
		return "its ClientHello hides the server's name (ECH)";
	if (connection->host.kind == HOST_NAME) {
		if (!hello->has_name)
			return "its ClientHello names no server";
		return host_equal(&hello->host, &connection->host) ?
			       NULL :
			       "its ClientHello names another server than was connected to";
	}
	if (!hello->has_name)
		return NULL;
	egress_decide(&proxy->policy, &question, &answer);
	return answer.verdict == EGRESS_ALLOW && answer.needs == 0 ?
		       NULL :
		       "its ClientHello names a server that no rule allows";
}

/* Without a list of protocols it may be the web's or any other: either rule is right. */
static void know_tls(struct proxy *proxy, struct connection *connection, const struct hello *hello)
{
	bool is_web = hello->alpn & (HELLO_ALPN_HTTP1 | HELLO_ALPN_H2);

	know_protocol(connection, hello->alpn == 0 || is_web ? EGRESS_HTTPS : EGRESS_TLS);
	if (hello->alpn == 0 && connection->may == LEAVE_NONE &&
	    connection_judge(proxy, connection) == JUDGE_DENY)
		know_protocol(connection, EGRESS_TLS);
}

static enum step sniff_tls(struct proxy *proxy, struct connection *connection)
{
	struct chunk *in = connection->up.in;
	struct hello hello;
	const char *why;
	int result = hello_parse(in->bytes + in->start, chunk_length(in), &hello, &why);

	if (result == 0)
		return STEP_WAIT;
	if (connection->who == LEAVE_ASKED || connection->may == LEAVE_ASKED)
		return STEP_WAIT;
	if (!(connection->known & EGRESS_FACT_PROTOCOL)) {
		if (result > 0)
			know_tls(proxy, connection, &hello);
		else
			know_protocol(connection, EGRESS_TLS);
		if (connection->who == LEAVE_ASKED || connection->may == LEAVE_ASKED)
			return STEP_WAIT;
	}
	if (connection->is_refused)
		return refuse(proxy, connection, connection->reason);
	if (result > 0)
		why = fault_of_hello(proxy, connection, &hello);
	if (why == NULL || (result < 0 && takes_bytes(proxy, connection)))
		return pass_or_refuse(proxy, connection);
	return refuse_tls(proxy, connection, why);
}

/* A no, and a failure, are told in its own words. */
static enum step sniff_http(struct proxy *proxy, struct connection *connection)
{
	if (!takes_bytes(proxy, connection) || connection->dial == DIAL_FAILED)
		return http_begin(proxy, connection);
	switch (connection_judge(proxy, connection)) {
	case JUDGE_WAIT:
		return STEP_WAIT;
	case JUDGE_ALLOW:
		return pass_or_refuse(proxy, connection);
	case JUDGE_MORE:
	case JUDGE_DENY:
		break;
	}
	return http_begin(proxy, connection);
}

bool connection_note_silence(struct connection *connection)
{
	if (connection->state != STATE_SNIFF || connection->dial != DIAL_DONE ||
	    !connection->upstream.readable || connection->is_refused)
		return false;
	know_protocol(connection, EGRESS_TCP);
	connection->answer = (struct egress_answer){ .verdict = EGRESS_DENY };
	connection->reason = "its server speaks first, which only a rule for any bytes lets it";
	return true;
}

/*
 * Nobody has said a word. Where the rules allow any bytes the server may be the one to begin;
 * where nothing is allowed there is no need to wait for the words to say no in.
 */
static enum step sniff_silence(struct proxy *proxy, struct connection *connection)
{
	struct egress_answer before;
	enum judgement judgement;

	if (connection->client.is_done) {
		connection->reason = "closed before it said anything";
		(void)connection_note_silence(connection);
		report_stopped(proxy, connection, NULL, NULL);
		connection_close(proxy, connection);
		return STEP_END;
	}
	if (!connection->is_silent)
		return STEP_WAIT;
	if (connection->is_refused)
		return refuse_reset(proxy, connection, connection->reason);
	if (connection->known & EGRESS_FACT_PROTOCOL)
		return pass_or_refuse(proxy, connection);
	before = connection->answer;
	know_protocol(connection, EGRESS_TCP);
	judgement = connection_judge(proxy, connection);
	if (judgement == JUDGE_ALLOW || judgement == JUDGE_WAIT)
		return pass_or_refuse(proxy, connection);
	/* that was a guess: silence itself is no reason to deny anything */
	connection->answer = before;
	connection->reason = NULL;
	connection->protocol = 0;
	connection->known &= ~(uint32_t)EGRESS_FACT_PROTOCOL;
	if (connection->deadline == DEADLINE_NONE)
		connection_wait(proxy, connection, DEADLINE_FIRST);
	return STEP_WAIT;
}

/* By host and port alone; the dialer begins while the first bytes are still on their way. */
static enum step look_first(struct proxy *proxy, struct connection *connection)
{
	if (connection->is_refused || connection->dial != DIAL_NONE)
		return STEP_NEXT;
	switch (connection_judge(proxy, connection)) {
	case JUDGE_WAIT:
		return STEP_WAIT;
	case JUDGE_DENY:
		if (connection->host.kind == HOST_ADDRESS && connection->door == EGRESS_CAPTURED)
			return refuse_reset(proxy, connection, connection->reason);
		connection->is_refused = true;
		return STEP_NEXT;
	case JUDGE_MORE:
	case JUDGE_ALLOW:
		/* a person's yes comes before anything leaves, and may need the request */
		if (connection->answer.verdict == EGRESS_ALLOW || connection->may == LEAVE_YES)
			connection_dial(proxy, connection);
		return STEP_NEXT;
	}
	return STEP_NEXT;
}

enum step step_sniff(struct proxy *proxy, struct connection *connection)
{
	enum step step = look_first(proxy, connection);
	struct chunk *in;
	int count;

	if (step != STEP_NEXT)
		return step;
	count = relay_fill(&proxy->relay, &connection->up);
	if (count == -ENOMEM)
		return connection_starve(proxy, connection);
	if (count < 0 && count != -ENOBUFS)
		return refuse_reset(proxy, connection, "its connection was lost");
	in = connection->up.in;
	if (in == NULL)
		return sniff_silence(proxy, connection);
	if (connection->deadline == DEADLINE_SILENT || connection->deadline == DEADLINE_FIRST)
		connection_wait(proxy, connection, DEADLINE_HEAD);
	switch (kind_of(in->bytes + in->start, chunk_length(in))) {
	case KIND_MORE:
		if (connection->client.is_done)
			break;
		return STEP_WAIT;
	case KIND_TLS:
		step = sniff_tls(proxy, connection);
		if (step == STEP_WAIT && connection->client.is_done &&
		    !(connection->known & EGRESS_FACT_PROTOCOL))
			return refuse_reset(proxy, connection, "closed within its ClientHello");
		return step;
	case KIND_SSH:
		know_protocol(connection, EGRESS_SSH);
		break;
	case KIND_HTTP:
		know_protocol(connection, EGRESS_HTTP);
		return sniff_http(proxy, connection);
	case KIND_OTHER:
		break;
	}
	if (!(connection->known & EGRESS_FACT_PROTOCOL))
		know_protocol(connection, EGRESS_TCP);
	if (connection->is_refused)
		return refuse(proxy, connection, connection->reason);
	return pass_or_refuse(proxy, connection);
}
