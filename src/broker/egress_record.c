/*
 * What the roles of a task's network say: checked, since both have to do with what the task sends,
 * and made into records, rows of the result and denials.
 */
#include "broker/egress_internal.h"

#include "base/clock.h"
#include "broker/connector.h"
#include "broker/egress.h"
#include "broker/egress_whose.h"
#include "broker/task.h"
#include "net/edge.h"
#include "net/http_path.h"
#include "policy/egress.h"
#include "policy/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TARGET_BYTES EGRESS_TARGET_BYTES

/* Between a decision of the dialer's and our look at it. */
#define CLOCK_SLACK_S 5

static const char *const phases[EGRESS_PHASE_COUNT] = { "opened", "closed", "stopped" };
static const char *const doors[EGRESS_DOOR_COUNT] = { "captured", "connect", "absolute", "socks",
						      "lookup" };
static const char *const verdicts[EGRESS_VERDICT_COUNT] = { "deny", "ask", "allow" };
static const char *const outcomes[EGRESS_OUTCOME_COUNT] = {
	"done",	   "denied",	  "special", "no-name", "no-resolver",
	"refused", "unreachable", "timeout", "busy",	"cancelled",
};

static const struct egress_policy *policy_of(const struct task *task)
{
	return &task->options.effective->policy.egress;
}

/* Text of ours or canonical text: printable, with its NUL inside of the room. */
static bool is_text(const char *room, size_t bytes)
{
	const char *end = memchr(room, '\0', bytes);

	for (; end && room < end; room++)
		if (*room < 0x20 || *room > 0x7e)
			return false;
	return end != NULL;
}

/* "", or exactly what host_parse() makes of it. */
static bool is_host(const char *text, size_t bytes, struct host *ret_host)
{
	const char *why;

	*ret_host = (struct host){ .kind = HOST_NAME };
	if (!is_text(text, bytes))
		return false;
	return !text[0] || (host_parse(text, strlen(text), ret_host, &why) == 0 &&
			    strcmp(ret_host->name, text) == 0);
}

static bool is_address(const struct address *address)
{
	return address->family <= ADDRESS_V6;
}

static bool is_protocol(uint32_t protocol)
{
	return protocol == 0 || (protocol <= EGRESS_PROTOCOLS_ALL && !(protocol & (protocol - 1)));
}

static bool is_rule(const struct task *task, uint32_t rule)
{
	return rule == EGRESS_NO_RULE || rule < policy_of(task)->rule_count;
}

static void print_target(const struct host *host, uint16_t port, char text[static TARGET_BYTES])
{
	bool is_v6 = host->kind == HOST_ADDRESS && host->address.family == ADDRESS_V6;

	text[0] = '\0';
	if (host->name[0])
		(void)snprintf(text, TARGET_BYTES, is_v6 ? "[%s]:%u" : "%s:%u", host->name, port);
}

/* Of what no connection is known for. */
static struct job *only_job(struct task *task)
{
	bool is_several;

	return egress_whose(task, 0, NULL, NULL, &is_several);
}

/* To whoever it was for; where that cannot be told, to all. */
static void deny(struct task *task, struct job *job, bool is_several, enum denial_kind kind,
		 struct rule_ref rule, const char *target)
{
	if (job)
		job_deny(job, kind, rule, target);
	for (struct job *each = task->jobs; is_several && each; each = each->next)
		if (each != job && (each->state == JOB_RUNNING || each->state == JOB_ENDED))
			job_deny_perhaps(each, kind, rule, target);
}

static struct job *job_numbered(struct task *task, unsigned number)
{
	struct job *job = task->jobs;

	while (job && job->number != number)
		job = job->next;
	return job;
}

/* What there is no room for now is told soon. */
static bool has_room(struct egress *egress, enum egress_told told)
{
	uint64_t now = clock_monotonic_ns();

	if (egress_flood_room(&egress->flood, told, now))
		return true;
	if (!egress->telling.at_ns)
		egress->telling.at_ns = now + EGRESS_FLOOD_NS;
	return false;
}

static void tell(struct task *task, struct job *job, enum event_type type, struct event *event)
{
	event->type = type;
	if (job) {
		job_tell(job, type, event);
		return;
	}
	event->action = "";
	/* what cannot be recorded must not go on */
	if (task_emit(task, event) < 0)
		task_kill(task);
}

static struct rule_ref rule_of(const struct task *task, uint32_t rule, const struct host *host,
			       uint16_t port)
{
	struct egress_question question = { .host = host, .port = port };
	struct egress_answer answer;

	if (rule != EGRESS_NO_RULE)
		return policy_of(task)->rules[rule].ref;
	if (!host->name[0])
		return rule_builtin(RULE_EGRESS_DEFAULT);
	question.wall_s = clock_wall_ns() / 1000000000u;
	egress_decide(policy_of(task), &question, &answer);
	/* it did not decide, as far as its proxy says */
	answer.rule = NULL;
	return egress_answer_rule(&answer);
}

/* By our own copy of the rules: nothing more has to be known for this no. */
static bool is_forbidden(const struct task *task, const struct host *host, uint16_t port,
			 uint64_t wall_s)
{
	const struct egress_question question = { .host = host, .port = port, .wall_s = wall_s };
	struct egress_answer answer;

	egress_decide(policy_of(task), &question, &answer);
	return answer.verdict == EGRESS_DENY && !answer.needs;
}

static enum denial_kind kind_of(const struct task *task, const struct egress_flow *flow,
				const struct host *host, const struct rule_ref *rule)
{
	if (flow->outcome == EGRESS_SPECIAL || rule_is(rule, RULE_EGRESS_SPECIAL))
		return DENIAL_NET_SPECIAL;
	/* at the ports of the web other bytes are more likely an attempt than a protocol */
	if (flow->rule == EGRESS_NO_RULE && flow->host[0] && flow->protocol == EGRESS_TCP &&
	    flow->port != 80 && flow->port != 443)
		return DENIAL_NET_BYTES;
	/* where a rule may allow the place, it was not for that that it was refused */
	if (flow->rule == EGRESS_NO_RULE)
		return flow->host[0] && is_forbidden(task, host, flow->port,
						     clock_wall_ns() / 1000000000u) ?
			       DENIAL_NET_HOST :
			       DENIAL_NET_CONTENT;
	return policy_of(task)->rules[flow->rule].verdict == EGRESS_ALLOW ? DENIAL_NET_CONTENT :
									    DENIAL_NET_RULE;
}

/* Whether it was refused; what was allowed and could not be reached was not. */
static bool is_denied(const struct egress_flow *flow)
{
	if (flow->phase == EGRESS_OPENED || flow->door == EGRESS_LOOKUP)
		return false;
	/* it was open, until a quota or what it sent ended it */
	if (flow->phase == EGRESS_CLOSED)
		return flow->verdict == EGRESS_DENY;
	return flow->verdict != EGRESS_ALLOW || flow->outcome == EGRESS_DENIED ||
	       flow->outcome == EGRESS_SPECIAL;
}

/* What passed did so by what opened it, whatever ended it. */
static void add_passed(struct job *job, const struct egress_flow *flow,
		       const struct rule_ref *opened)
{
	struct network_target *target =
		job_target(job, flow->host, flow->port, verdicts[flow->opened_verdict], opened);

	if (!target)
		return;
	target->bytes_up += flow->bytes_up;
	target->bytes_down += flow->bytes_down;
	if (flow->protocol && !target->protocol)
		target->protocol = egress_protocol_name(flow->protocol);
}

static void add_to_result(struct job *job, const struct egress_flow *flow,
			  const struct rule_ref *rule, const struct rule_ref *opened)
{
	const char *verdict = is_denied(flow) ? "deny" : verdicts[flow->verdict];
	uint64_t count = flow->repeated ? flow->repeated : 1;
	bool is_new = flow->phase != EGRESS_CLOSED || is_denied(flow);
	struct network_target *target =
		is_new ? job_target(job, flow->host, flow->port, verdict, rule) : NULL;

	if (flow->phase == EGRESS_CLOSED)
		add_passed(job, flow, opened);
	if (!target)
		return;
	if (flow->protocol && !target->protocol)
		target->protocol = egress_protocol_name(flow->protocol);
	if (flow->phase != EGRESS_CLOSED) {
		target->bytes_up += flow->bytes_up;
		target->bytes_down += flow->bytes_down;
	}
	target->count += count;
	if (flow->phase == EGRESS_STOPPED && !is_denied(flow) && flow->door != EGRESS_LOOKUP)
		target->failed += count;
}

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

/* Whether it only has to be counted, or added to others like it. */
static bool is_put_off(struct egress *egress, const struct egress_row *row)
{
	if (has_room(egress, row->told))
		return false;
	if (row->told != EGRESS_TOLD_REFUSED)
		return egress_flood_add(&egress->flood, row);
	egress->flood.left_out += row->count;
	return true;
}

static bool is_flow_put_off(struct egress *egress, const struct job *job,
			    const struct egress_flow *flow)
{
	/* the end of what was open is never only counted */
	bool is_refused = flow->phase != EGRESS_CLOSED &&
			  (is_denied(flow) || flow->door == EGRESS_LOOKUP);
	struct egress_row row = { .told = is_refused ? EGRESS_TOLD_REFUSED : EGRESS_TOLD_ALLOWED,
				  .phase = (uint8_t)flow->phase,
				  .door = (uint8_t)flow->door,
				  .verdict = (uint8_t)flow->verdict,
				  .outcome = (uint8_t)flow->outcome,
				  .address = flow->address,
				  .port = flow->port,
				  .protocol = flow->protocol,
				  .rule = flow->rule,
				  .job = job ? job->number : 0,
				  .count = flow->repeated ? flow->repeated : 1,
				  .bytes_up = flow->bytes_up,
				  .bytes_down = flow->bytes_down,
				  .longest_ns = flow->duration_ns };

	egress_text(row.host, sizeof(row.host), flow->host);
	egress_text(row.reason, sizeof(row.reason), flow->reason);
	return is_put_off(egress, &row);
}

static void record_flow(struct task *task, struct job *job, const struct egress_flow *flow,
			const struct rule_ref *rule, const char *target)
{
	struct egress *egress = &task->egress;
	char address[ADDRESS_TEXT_BYTES] = "";
	struct event event = {
		.body.flow = { .phase = phases[flow->phase],
			       .door = doors[flow->door],
			       .verdict = is_denied(flow) ? "deny" : verdicts[flow->verdict],
			       .protocol = flow->protocol ? egress_protocol_name(flow->protocol) :
							    NULL,
			       .outcome = flow->phase == EGRESS_STOPPED ? outcomes[flow->outcome] :
									  NULL,
			       .target = target,
			       .host = or_null(flow->host),
			       .method = or_null(flow->method),
			       .path = or_null(flow->path),
			       .reason = or_null(flow->reason),
			       .rule = *rule,
			       .port = flow->port,
			       .status = flow->status,
			       .upgrade = flow->upgrade,
			       .connection = flow->id,
			       .request = flow->request,
			       .bytes_up = flow->bytes_up,
			       .bytes_down = flow->bytes_down,
			       .duration_ns = flow->duration_ns,
			       .repeated = flow->repeated,
			       .left_out = egress->flood.left_out }
	};

	egress->flood.left_out = 0;
	if (flow->address.family != ADDRESS_NONE)
		address_print(&flow->address, address);
	event.body.flow.address = or_null(address);
	tell(task, job, EVENT_NET_FLOW, &event);
}

static int hear_flow(struct task *task, const unsigned char *bytes, const char **ret_why)
{
	struct egress *egress = &task->egress;
	struct egress_flow flow;
	char target[TARGET_BYTES];
	struct rule_ref rule, opened;
	struct sockets_end here, there;
	struct host host;
	struct job *job;
	bool is_several, is_counted;

	*ret_why = "it told of a connection in no form that there is";
	memcpy(&flow, bytes, sizeof(flow));
	if (flow.phase >= EGRESS_PHASE_COUNT || flow.door >= EGRESS_DOOR_COUNT ||
	    flow.verdict >= EGRESS_VERDICT_COUNT || flow.outcome >= EGRESS_OUTCOME_COUNT ||
	    flow.upgrade > 1 || flow.opened_verdict >= EGRESS_VERDICT_COUNT ||
	    !is_rule(task, flow.opened_rule) || !is_rule(task, flow.rule) ||
	    !is_protocol(flow.protocol) || !is_address(&flow.address) || !is_address(&flow.peer) ||
	    !is_address(&flow.local) || !is_host(flow.host, sizeof(flow.host), &host) ||
	    !is_text(flow.method, sizeof(flow.method)) || !is_text(flow.path, sizeof(flow.path)) ||
	    !is_text(flow.reason, sizeof(flow.reason)))
		return -EBADMSG;
	*ret_why = "it told of the end of a connection that had not begun";
	if (flow.phase == EGRESS_CLOSED && !egress->open)
		return -EBADMSG;
	/* whoever of its actions it was, and by whatever rule */
	task->has_received |= flow.phase == EGRESS_OPENED;
	egress->open += flow.phase == EGRESS_OPENED;
	egress->open -= flow.phase == EGRESS_CLOSED;
	rule = rule_of(task, flow.rule, &host, flow.port);
	opened = flow.opened_rule == flow.rule ? rule :
						 rule_of(task, flow.opened_rule, &host, flow.port);
	here = (struct sockets_end){ flow.peer, flow.peer_port };
	there = (struct sockets_end){ flow.local, flow.local_port };
	job = egress_whose(task, flow.id, &here, &there, &is_several);
	is_counted = is_flow_put_off(egress, job, &flow);
	if (!is_counted || is_denied(&flow))
		print_target(&host, flow.port, target);
	if (!is_counted)
		record_flow(task, job, &flow, &rule, target);
	if (job)
		add_to_result(job, &flow, &rule, &opened);
	/* what was counted as one may be of several */
	is_several |= flow.repeated && egress_is_shared(task);
	if (is_denied(&flow))
		deny(task, job, is_several, kind_of(task, &flow, &host, &rule), rule, target);
	return 0;
}

static int hear_flows(struct task *task, const struct message *message, const char **ret_why)
{
	const size_t bytes = sizeof(struct egress_flow);
	int result = 0;

	*ret_why = "it told of a connection in no form that there is";
	if (message->length == 0 || message->length % bytes ||
	    message->length / bytes > EGRESS_LIMIT_FLOWS)
		return -EBADMSG;
	/* what was heard may have ended the task's network */
	for (size_t at = 0; result == 0 && task->egress.is_on && at < message->length; at += bytes)
		result = hear_flow(task, message->bytes + at, ret_why);
	return result;
}

static int reply(struct task *task, const struct egress_reply *answer, const char **ret_why)
{
	int result = message_send(task->egress.proxy.channel, EGRESS_REPLY, answer, sizeof(*answer),
				  NULL, 0);

	*ret_why = "it does not read its answers";
	/* one that has just ended is heard of by its channel */
	return result == -EPIPE ? 0 : result < 0 ? -EBADMSG : 0;
}

static void answer_who(struct task *task, const struct egress_question_message *question,
		       struct egress_reply *answer)
{
	const struct sockets_end here = { question->peer, question->peer_port };
	const struct sockets_end there = { question->local, question->local_port };
	struct connector connector;
	unsigned action;

	/* the box is over: nobody in it can be told apart any more */
	int result = task->egress.is_ending ? -ESRCH :
					      connector_find(&task->box, &here, &there, &connector);

	if (result < 0) {
		answer->yes = result == -E2BIG ? EGRESS_WHO_TOO_MANY : EGRESS_WHO_UNCLEAR;
		return;
	}
	action = task->options.live ? egress_action_of(task, connector.family) :
		 task->jobs	    ? task->jobs->number :
				      0;
	egress_note_owner(task, question->id, action);
	if (!connector.inode)
		return;
	answer->yes = EGRESS_WHO_KNOWN;
	answer->tool_device = connector.device;
	answer->tool_inode = connector.inode;
	answer->action = action;
}

static struct event event_of_answer(const char *target, const char *shown, bool yes,
				    uint64_t asked_ns)
{
	return (struct event){ .body.approval = { .verb = "net.connect",
						  .target = target,
						  .shown = shown,
						  .answer = yes ? "allow" : "deny",
						  .asked_ns = asked_ns } };
}

static void record_answer(struct task *task, const struct egress_asked *asked, bool yes)
{
	struct egress_row row = { .told = EGRESS_TOLD_ASKED,
				  .port = asked->port,
				  .rule = asked->rule,
				  .job = asked->job,
				  .verdict = yes ? EGRESS_ALLOW : EGRESS_DENY,
				  .longest_ns = clock_monotonic_ns() - asked->asked_ns,
				  .count = 1 };
	struct event event = event_of_answer(asked->target, asked->shown, yes, row.longest_ns);

	egress_text(row.host, sizeof(row.host), asked->host);
	if (!is_put_off(&task->egress, &row))
		tell(task, job_numbered(task, asked->job), EVENT_APPROVAL, &event);
}

void egress_answer(const struct egress_asked *asked, bool yes, void *context)
{
	struct task *task = context;
	const struct egress_reply answer = { .id = asked->id, .kind = EGRESS_MAY, .yes = yes };
	const char *why;

	record_answer(task, asked, yes);
	if (reply(task, &answer, &why) < 0)
		egress_fail(task, "bawn-proxy", why);
}

/* "GET http://example.org:80/a/../b": as it came, which is printable text (is_text()). */
static void show_request(const struct egress_question_message *question, struct egress_asked *asked)
{
	char path[3 * EGRESS_PATH_BYTES + 4];
	const char *why;

	egress_text(asked->shown, sizeof(asked->shown), asked->target);
	if (!question->method[0])
		return;
	asked->is_unclear = http_path_normalise(question->path, strlen(question->path), path,
						sizeof(path), &why) < 0;
	(void)snprintf(asked->shown, sizeof(asked->shown), "%s http://%s%s%s", question->method,
		       asked->target, question->path,
		       strlen(question->path) == sizeof(question->path) - 1 ? "..." : "");
}

/* A person's word on a connection, which may take its time. Nobody can be asked: no. */
static void ask_person(struct task *task, const struct egress_question_message *question,
		       const struct host *host)
{
	const struct sockets_end here = { question->peer, question->peer_port };
	const struct sockets_end there = { question->local, question->local_port };
	bool is_several;
	const struct job *job = egress_whose(task, question->id, &here, &there, &is_several);
	struct egress_asked asked = { .id = question->id,
				      .rule = question->rule,
				      .port = question->port,
				      .job = job ? job->number : 0,
				      .asked_ns = clock_monotonic_ns() };

	egress_text(asked.host, sizeof(asked.host), host->name);
	print_target(host, question->port, asked.target);
	show_request(question, &asked);
	if (!egress_ask(&task->egress.asks, &asked, &policy_of(task)->rules[question->rule].ref))
		egress_answer(&asked, false, task);
}

static int hear_question(struct task *task, const struct message *message, const char **ret_why)
{
	struct egress_question_message question;
	struct egress_reply answer = { 0 };
	struct host host;

	*ret_why = "it asked in no form that there is";
	if (message->length != sizeof(question))
		return -EBADMSG;
	task->egress.has_asked = true;
	memcpy(&question, message->bytes, sizeof(question));
	if (question.kind >= EGRESS_QUESTION_KIND_COUNT || !is_rule(task, question.rule) ||
	    !is_protocol(question.protocol) || !is_address(&question.peer) ||
	    !is_address(&question.local) || !is_host(question.host, sizeof(question.host), &host) ||
	    (!host.name[0] && question.kind != EGRESS_HEARD) ||
	    !is_text(question.method, sizeof(question.method)) ||
	    !is_text(question.path, sizeof(question.path)))
		return -EBADMSG;
	*ret_why = "it asked about a rule that does not ask";
	if (question.kind == EGRESS_MAY &&
	    (question.rule == EGRESS_NO_RULE ||
	     policy_of(task)->rules[question.rule].verdict != EGRESS_ASK))
		return -EBADMSG;
	answer.id = question.id;
	answer.kind = question.kind;
	task->egress.has_searched = question.kind == EGRESS_WHO && !task->egress.is_ending;
	if (question.kind == EGRESS_MAY) {
		ask_person(task, &question, &host);
		return 0;
	}
	if (question.kind == EGRESS_WHO)
		answer_who(task, &question, &answer);
	else
		answer.yes = 1;
	return reply(task, &answer, ret_why);
}

static int hear_ready(bool *is_ready, const struct message *message, const char **ret_why)
{
	*ret_why = "it said twice that it is ready";
	if (*is_ready || message->length != 0)
		return -EBADMSG;
	*is_ready = true;
	return 0;
}

/* One that comes too late is of an earlier end of an action. */
static int hear_marked(struct egress *egress, const struct message *message, const char **ret_why)
{
	struct egress_mark mark;

	*ret_why = "it answered what it was not asked";
	if (message->length != sizeof(mark))
		return -EBADMSG;
	memcpy(&mark, message->bytes, sizeof(mark));
	if (!mark.number || mark.number > egress->mark)
		return -EBADMSG;
	egress->is_marked |= mark.number == egress->mark;
	return 0;
}

int egress_hear_proxy(struct task *task, const struct message *message, const char **ret_why)
{
	struct egress *egress = &task->egress;

	if (message->type == EGRESS_READY)
		return hear_ready(&egress->is_ready[0], message, ret_why);
	*ret_why = "it spoke before it was in its jail";
	if (!egress->is_ready[0])
		return -EBADMSG;
	if (message->type == EGRESS_FLOW)
		return hear_flows(task, message, ret_why);
	if (message->type == EGRESS_QUESTION)
		return hear_question(task, message, ret_why);
	if (message->type == EGRESS_MARKED)
		return hear_marked(egress, message, ret_why);
	*ret_why = "it sent a message that is not its own";
	return -EBADMSG;
}

static bool is_dial_put_off(struct egress *egress, const struct job *job,
			    const struct egress_tried *tried)
{
	struct egress_row row = { .told = EGRESS_TOLD_DIALED,
				  .outcome = (uint8_t)tried->outcome,
				  .port = tried->port,
				  .rule = EGRESS_NO_RULE,
				  .job = job ? job->number : 0,
				  .count = 1,
				  .longest_ns = tried->resolve_ns,
				  .second_ns = tried->connect_ns,
				  .addresses = tried->address_count };

	egress_text(row.host, sizeof(row.host), tried->host);
	if (tried->tried_count)
		row.address = tried->addresses[tried->tried_count - 1];
	return is_put_off(egress, &row);
}

static void record_dial(struct task *task, const struct egress_tried *tried,
			const struct host *host)
{
	struct job *job = only_job(task);
	char texts[EGRESS_LIMIT_ADDRESSES][ADDRESS_TEXT_BYTES], target[TARGET_BYTES];
	const char *addresses[EGRESS_LIMIT_ADDRESSES + 1] = { NULL };
	struct event event = { .body.dial = { .target = target,
					      .host = host->name,
					      .outcome = outcomes[tried->outcome],
					      .port = tried->port,
					      .address_count = tried->address_count,
					      .addresses = addresses,
					      .resolve_ns = tried->resolve_ns,
					      .connect_ns = tried->connect_ns } };

	if (is_dial_put_off(&task->egress, job, tried))
		return;
	print_target(host, tried->port, target);
	for (uint32_t i = 0; i < tried->tried_count; i++) {
		address_print(&tried->addresses[i], texts[i]);
		addresses[i] = texts[i];
	}
	tell(task, job, EVENT_NET_DIAL, &event);
}

/* --- what was put off */

static void tell_flows(struct task *task, const struct egress_row *row, const struct host *host,
		       const char *target)
{
	struct egress_flow flow = { .phase = row->phase,
				    .door = row->door,
				    .verdict = row->verdict,
				    .outcome = row->outcome,
				    .address = row->address,
				    .port = row->port,
				    .protocol = row->protocol,
				    .rule = row->rule,
				    .bytes_up = row->bytes_up,
				    .bytes_down = row->bytes_down,
				    .duration_ns = row->longest_ns,
				    .repeated = row->count > 1 ? row->count : 0 };
	struct rule_ref rule = rule_of(task, row->rule, host, row->port);

	egress_text(flow.host, sizeof(flow.host), row->host);
	egress_text(flow.reason, sizeof(flow.reason), row->reason);
	record_flow(task, job_numbered(task, row->job), &flow, &rule, target);
}

static void tell_dials(struct task *task, const struct egress_row *row, const char *target)
{
	char address[ADDRESS_TEXT_BYTES] = "";
	const char *addresses[] = { address, NULL };
	struct event event = { .body.dial = { .target = target,
					      .host = row->host,
					      .outcome = outcomes[row->outcome],
					      .port = row->port,
					      .address_count = row->addresses,
					      .addresses = addresses,
					      .resolve_ns = row->longest_ns,
					      .connect_ns = row->second_ns,
					      .repeated = row->count > 1 ? row->count : 0 } };

	if (row->address.family == ADDRESS_NONE)
		addresses[0] = NULL;
	else
		address_print(&row->address, address);
	tell(task, job_numbered(task, row->job), EVENT_NET_DIAL, &event);
}

static void tell_answers(struct task *task, const struct egress_row *row, const char *target)
{
	struct event event =
		event_of_answer(target, target, row->verdict == EGRESS_ALLOW, row->longest_ns);

	event.body.approval.repeated = row->count > 1 ? row->count : 0;
	tell(task, job_numbered(task, row->job), EVENT_APPROVAL, &event);
}

static void tell_row(struct task *task, const struct egress_row *row)
{
	char target[TARGET_BYTES];
	struct host host;

	/* it was one when it came */
	(void)is_host(row->host, sizeof(row->host), &host);
	print_target(&host, row->port, target);
	if (row->told == EGRESS_TOLD_DIALED)
		tell_dials(task, row, target);
	else if (row->told == EGRESS_TOLD_ASKED)
		tell_answers(task, row, target);
	else
		tell_flows(task, row, &host, target);
}

void egress_tell(struct task *task)
{
	struct egress_flood *flood = &task->egress.flood;
	struct host none = { .kind = HOST_NAME };
	struct egress_flow flow = { .phase = EGRESS_STOPPED,
				    .verdict = EGRESS_DENY,
				    .rule = EGRESS_NO_RULE,
				    .reason = "more was refused than has room in the record" };

	for (size_t i = 0; i < flood->row_count; i++)
		tell_row(task, &flood->rows[i]);
	flood->row_count = 0;
	if (flood->left_out > 0) {
		struct rule_ref rule = rule_of(task, EGRESS_NO_RULE, &none, 0);

		flow.repeated = flood->left_out > 1 ? flood->left_out : 0;
		flood->left_out = 0;
		record_flow(task, only_job(task), &flow, &rule, "");
	}
}

static int hear_tried(struct task *task, const struct message *message, const char **ret_why)
{
	struct egress_tried tried;
	uint64_t now_s, then_s;
	struct host host;

	*ret_why = "it told of a dial in no form that there is";
	if (message->length != sizeof(tried))
		return -EBADMSG;
	memcpy(&tried, message->bytes, sizeof(tried));
	if (tried.outcome >= EGRESS_OUTCOME_COUNT || tried.tried_count > EGRESS_LIMIT_ADDRESSES ||
	    !is_host(tried.host, sizeof(tried.host), &host) || !host.name[0])
		return -EBADMSG;
	for (uint32_t i = 0; i < tried.tried_count; i++)
		if (!is_address(&tried.addresses[i]) || tried.addresses[i].family == ADDRESS_NONE)
			return -EBADMSG;
	*ret_why = "it dialled what no rule allows";
	now_s = clock_wall_ns() / 1000000000u;
	/* a rule may have ended, or begun, since the dialer asked */
	then_s = now_s - (tried.resolve_ns + tried.connect_ns) / 1000000000u - CLOCK_SLACK_S;
	if (tried.outcome != EGRESS_DENIED && is_forbidden(task, &host, tried.port, now_s) &&
	    is_forbidden(task, &host, tried.port, then_s))
		return -EBADMSG;
	record_dial(task, &tried, &host);
	return 0;
}

int egress_hear_dialer(struct task *task, const struct message *message, const char **ret_why)
{
	struct egress *egress = &task->egress;

	if (message->type == EGRESS_READY)
		return hear_ready(&egress->is_ready[1], message, ret_why);
	*ret_why = "it spoke before it was in its jail";
	if (!egress->is_ready[1])
		return -EBADMSG;
	if (message->type == EGRESS_TRIED)
		return hear_tried(task, message, ret_why);
	*ret_why = "it sent a message that is not its own";
	return -EBADMSG;
}

void egress_tell_alarm(struct task *task, const char *role, const char *what)
{
	struct event event = { .type = EVENT_NET_ALARM,
			       .action = "",
			       .body.alarm = { .role = role,
					       .what = what,
					       .done = "the task has no network any more" } };

	if (task_emit(task, &event) < 0)
		task_kill(task);
	for (struct job *job = task->jobs; job; job = job->next)
		if (job->state == JOB_RUNNING || job->state == JOB_ENDED)
			job_deny(job, DENIAL_NET_DOWN, rule_builtin(RULE_EGRESS_DEFAULT), role);
}
