#include "broker/replay.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/json_tree.h"
#include "base/path.h"
#include "broker/decide.h"
#include "broker/isolation.h"
#include "net/edge.h"
#include "net/http_path.h"
#include "policy/host.h"

#include <stdlib.h>
#include <string.h>

#define NS_PER_SECOND 1000000000u

bool replay_is_masked(const char *text)
{
	return text && strstr(text, "[masked:") != NULL;
}

static void close_place(struct replay_place *place)
{
	effective_free(&place->effective);
	arena_free(&place->arena);
	free(place->workspace);
	*place = (struct replay_place){ .effective = EFFECTIVE_NONE };
}

static void make_place(struct replay *replay, struct replay_place *place, const char *workspace)
{
	struct error error = ERROR_NONE;
	enum effective_failure failure;

	*place = (struct replay_place){ .effective = EFFECTIVE_NONE,
					.workspace = strdup(workspace) };
	if (!place->workspace) {
		place->why = "out of memory";
		return;
	}
	replay->request.workspace = replay->request.cwd = place->workspace;
	if (effective_make(&replay->request, &place->arena, &place->effective, &failure, NULL,
			   &error) < 0) {
		place->why = arena_format(&place->arena, "no policy for its workspace: %s",
					  error.message);
		if (!place->why)
			place->why = "out of memory";
	}
}

static struct replay_place *find_place(struct replay *replay, const char *workspace)
{
	struct replay_place *place;

	for (size_t i = 0; i < REPLAY_LIMIT_PLACES; i++)
		if (replay->places[i].workspace &&
		    strcmp(replay->places[i].workspace, workspace) == 0)
			return &replay->places[i];
	place = &replay->places[replay->next];
	replay->next = (replay->next + 1) % REPLAY_LIMIT_PLACES;
	if (place->workspace)
		close_place(place);
	make_place(replay, place, workspace);
	return place;
}

/* NULL: there is none, and ret says why. */
static const struct effective *policy_for(struct replay *replay, const char *workspace,
					  struct replay_answer *ret)
{
	struct replay_place *place;

	*ret = (struct replay_answer){ .reason = "the record does not say of which workspace" };
	if (!workspace || !path_is_clean(workspace))
		return NULL;
	place = find_place(replay, workspace);
	ret->reason = place->why;
	return place->why ? NULL : &place->effective;
}

/* The words, and whether all of them are what they were. */
static const char **take_argv(const struct json_node *intent, struct arena *arena,
			      size_t *ret_count, const char **ret_why)
{
	const struct json_node *list = json_tree_get(intent, "argv");
	size_t count = list && list->type == JSON_ARRAY ? json_tree_count(list) : 0, at = 0;
	const char **argv = arena_array(arena, count + 1, sizeof(*argv));

	*ret_why = !argv ? "out of memory" : !count ? "its words are not on record" : NULL;
	for (const struct json_node *word = count && argv ? list->first : NULL; word;
	     word = word->next) {
		if (word->type != JSON_STRING || strlen(word->text) != word->length)
			*ret_why = "one of its words is none";
		else if (replay_is_masked(word->text))
			*ret_why = "one of its words was masked";
		else
			argv[at++] = word->text;
	}
	*ret_count = at;
	return *ret_why ? NULL : argv;
}

/* Of the environment PATH alone decides: which files the words are names of. */
static const char *const *take_environment(const struct json_node *intent, struct arena *arena)
{
	const char *path = json_tree_text(json_tree_get(intent, "environment"), "PATH");
	bool is_known = path && !replay_is_masked(path);
	const char **list = is_known ? arena_array(arena, 2, sizeof(*list)) : NULL;

	if (list)
		list[0] = arena_format(arena, "PATH=%s", path);
	return list && list[0] ? list : NULL;
}

void replay_command(struct replay *replay, const char *workspace, const struct json_node *intent,
		    struct arena *arena, struct replay_answer *ret)
{
	const struct effective *effective = policy_for(replay, workspace, ret);
	struct decision *decision = arena_allocate(arena, sizeof(*decision));
	const char *cwd = json_tree_text(intent, "cwd"), *why = NULL;
	struct decide_place place = { 0 };
	const char **argv;
	size_t argc = 0;

	if (!effective)
		return;
	argv = take_argv(intent, arena, &argc, &why);
	if (!argv || !decision) {
		ret->reason = why ? why : "out of memory";
		return;
	}
	place.host = &effective->host;
	place.policy = &effective->policy;
	place.cwd = cwd && path_is_clean(cwd) && !replay_is_masked(cwd) ? cwd : NULL;
	place.environ = take_environment(intent, arena);
	if (!place.cwd || !place.environ) {
		ret->reason = !place.cwd ? "where it began is not on record" :
					   "the PATH that it began with is not on record";
		return;
	}
	decide_argv(decision, arena, &replay->parser, &place, argv, argc);
	decide_as_gate(decision);
	isolation_decide(effective, decision);
	*ret = (struct replay_answer){
		.verdict = verdict_word(decision->verdicts.whole.judgement),
		.reason = decision->verdicts.whole.reason,
		.rule = decision->verdicts.whole.rule,
	};
}

static enum egress_protocol protocol_of(const char *name)
{
	for (uint32_t bit = 1; name && bit <= EGRESS_PROTOCOLS_ALL; bit <<= 1)
		if (strcmp(egress_protocol_name(bit), name) == 0)
			return bit;
	return 0;
}

/* What is counted in a task is over: whether there was room left is nothing that a rule says. */
static bool counts(const struct egress_rule *rule)
{
	return rule && (rule->flags & EGRESS_ONCE || rule->bytes_up || rule->bytes_down ||
			rule->connections || rule->requests_per_minute);
}

static bool is_true(const struct json_node *node)
{
	return node && node->type == JSON_BOOL && node->is_true;
}

/* Records of older versions do not say whether a request asked for another protocol. */
static bool is_upgrade_open(const struct egress_policy *policy, const struct json_node *flow,
			    const struct egress_question *question,
			    const struct egress_answer *answer)
{
	struct egress_question other = *question;
	struct egress_answer otherwise;

	if (!(question->known & EGRESS_FACT_REQUEST) || json_tree_get(flow, "upgrade"))
		return false;
	other.upgrade = true;
	egress_decide(policy, &other, &otherwise);
	return otherwise.verdict != answer->verdict || otherwise.rule != answer->rule;
}

/* The request as the proxy asks about it; a sentence where that cannot be told. */
static const char *take_request(const struct json_node *flow, struct arena *arena,
				struct egress_question *question)
{
	const char *path = json_tree_text(flow, "path"), *why;
	size_t length = path ? strlen(path) : 0;
	char *text;

	question->method = json_tree_text(flow, "method");
	if (!question->method || !path)
		return NULL;
	if (replay_is_masked(path))
		return "its path was masked";
	if (length >= EGRESS_PATH_BYTES - 1)
		return "its path is not on record as a whole";
	/* each byte may become an escape */
	text = arena_allocate(arena, 3 * length + 4);
	if (!text)
		return "out of memory";
	question->known |= EGRESS_FACT_REQUEST;
	question->upgrade = is_true(json_tree_get(flow, "upgrade"));
	if (http_path_normalise(path, length, text, 3 * length + 4, &why) >= 0)
		question->path = text;
	return NULL;
}

/* Fills the question in from the record; a sentence where that cannot be. */
static const char *take_question(const struct json_node *flow, struct host *host,
				 struct arena *arena, struct egress_question *question)
{
	const char *name = json_tree_text(flow, "host"), *why = "";
	const char *door = json_tree_text(flow, "door"), *outcome = json_tree_text(flow, "outcome");
	const char *verdict = json_tree_text(flow, "verdict");
	uint64_t port = json_tree_unsigned(flow, "port", 0);

	if (!name || host_parse(name, strlen(name), host, &why) < 0)
		return "what it named is no host";
	if (!door || strcmp(door, "lookup") == 0)
		return "it was a lookup of a name: no connection is known of";
	if (!port || port > UINT16_MAX)
		return "its port is not on record";
	if (verdict && strcmp(verdict, "deny") == 0 && outcome &&
	    (strcmp(outcome, "denied") == 0 || strcmp(outcome, "special") == 0))
		return "what its name resolved to decided, and is resolved anew each time";
	question->host = host;
	question->port = (uint16_t)port;
	question->wall_s = clock_wall_ns() / NS_PER_SECOND;
	question->protocol = protocol_of(json_tree_text(flow, "protocol"));
	if (replay_is_masked(name))
		return "its host was masked";
	question->known = question->protocol ? EGRESS_FACT_PROTOCOL : 0;
	return take_request(flow, arena, question);
}

static const char *why_open(const struct egress_answer *answer)
{
	if (answer->needs & EGRESS_FACT_TOOL)
		return "which program connected is not on record";
	if (answer->needs & EGRESS_FACT_PROTOCOL)
		return "what was spoken is not on record";
	return answer->needs ? "what was requested is not on record" : NULL;
}

void replay_flow(struct replay *replay, const char *workspace, const struct json_node *flow,
		 struct arena *arena, struct replay_answer *ret)
{
	const struct effective *effective = policy_for(replay, workspace, ret);
	static const char *const words[EGRESS_VERDICT_COUNT] = {
		[EGRESS_DENY] = "deny", [EGRESS_ASK] = "ask", [EGRESS_ALLOW] = "allow"
	};
	struct egress_question question = { 0 };
	struct egress_answer answer;
	struct host *host = arena_allocate(arena, sizeof(*host));
	const char *why;

	if (!effective)
		return;
	why = host ? take_question(flow, host, arena, &question) : "out of memory";
	ret->reason = why;
	if (why)
		return;
	egress_decide(&effective->policy.egress, &question, &answer);
	ret->reason = why_open(&answer);
	if (!ret->reason && is_upgrade_open(&effective->policy.egress, flow, &question, &answer))
		ret->reason = "whether it asked for another protocol is not on record";
	if (!ret->reason && counts(answer.rule))
		ret->reason = "the rule counts what a task has used, and that is over";
	if (ret->reason)
		return;
	ret->verdict = words[answer.verdict];
	ret->reason = answer.special ? answer.special : "";
	ret->rule = egress_answer_rule(&answer);
}

void replay_end(struct replay *replay)
{
	for (size_t i = 0; i < REPLAY_LIMIT_PLACES; i++)
		if (replay->places[i].workspace)
			close_place(&replay->places[i]);
	parser_end(&replay->parser);
}
