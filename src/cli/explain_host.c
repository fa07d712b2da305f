#include "cli/explain_host.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "broker/effective.h"
#include "net/http_path.h"
#include "policy/egress.h"
#include "policy/host.h"

#include <errno.h>
#include <string.h>

#define NS_PER_SECOND 1000000000u

const char *explain_host_verdict(enum egress_verdict verdict)
{
	static const char *const words[EGRESS_VERDICT_COUNT] = {
		[EGRESS_DENY] = "deny", [EGRESS_ASK] = "ask", [EGRESS_ALLOW] = "allow"
	};

	return words[verdict];
}

static int wrong(struct error *error, const char *option, const char *value, const char *why)
{
	return error_set(error, EINVAL, "option %s %.200s: the host %s", option, value, why);
}

/* http://HOST[:PORT][/PATH], or https; the path of https is not seen, so it is not asked about. */
static int take_url(struct explain_asking *asking, struct error *error)
{
	const char *url = asking->target->url, *why = "is empty";
	bool is_http = strncmp(url, "http://", 7) == 0;
	const char *host = url + (is_http ? 7 : 8);
	size_t length = strcspn(host, "/?#");
	char *path = arena_allocate(asking->arena, HTTP_PATH_LIMIT_BYTES + 4);
	const char *rest = host + length;
	int result;

	if (!is_http && strncmp(url, "https://", 8) != 0)
		return error_set(error, EINVAL, "option --url %.200s: http:// or https://", url);
	if (!path)
		return error_errno(error, ENOMEM, "option --url");
	if (host_parse_port(host, length, is_http ? 80 : 443, &asking->host, &asking->question.port,
			    &why) < 0)
		return wrong(error, "--url", url, why);
	/* the proxy takes no such target */
	for (const char *at = url; *at; at++)
		if ((unsigned char)*at <= 0x20 || (unsigned char)*at >= 0x7f)
			return error_set(error, EINVAL,
					 "option --url %.200s: a byte in it has to be escaped",
					 url);
	asking->question.known = EGRESS_FACT_PROTOCOL;
	asking->question.protocol = is_http ? EGRESS_HTTP : EGRESS_HTTPS;
	if (!is_http)
		return 0;
	if (rest[0] != '/')
		rest = "/";
	result = http_path_normalise(rest, strcspn(rest, "#"), path, HTTP_PATH_LIMIT_BYTES + 4,
				     &why);
	asking->unclear = result < 0 ? why : NULL;
	asking->question.known |= EGRESS_FACT_REQUEST;
	asking->question.method = "GET";
	asking->question.path = result < 0 ? NULL : path;
	return 0;
}

static int take_target(struct explain_asking *asking, struct error *error)
{
	const char *text = asking->target->host, *why = "is empty";

	asking->question.host = &asking->host;
	asking->question.wall_s = clock_wall_ns() / NS_PER_SECOND;
	if (!text)
		return take_url(asking, error);
	if (strstr(text, "://"))
		return error_set(error, EINVAL,
				 "option --host %.200s: it is a URL, which --url asks about", text);
	if (host_parse_port(text, strlen(text), 0, &asking->host, &asking->question.port, &why) < 0)
		return wrong(error, "--host", text, why);
	return 0;
}

static const struct {
	uint32_t fact;
	const char *word, *text;
} facts[] = {
	{ EGRESS_FACT_PROTOCOL, "protocol", "what is spoken, seen in the first bytes" },
	{ EGRESS_FACT_REQUEST, "request", "the method and the path of each request" },
	{ EGRESS_FACT_TOOL, "tool", "which program connects" },
};

static void print_protocols(const struct egress_rule *rule, struct buffer *text)
{
	bool is_first = true;

	if (rule->protocols & EGRESS_TCP) {
		buffer_text(text, "  any bytes may be sent\n");
		return;
	}
	for (uint32_t bit = 1; bit <= EGRESS_PROTOCOLS_ALL; bit <<= 1) {
		if (!(rule->protocols & bit))
			continue;
		buffer_format(text, "%s%s", is_first ? "  spoken may be: " : ", ",
			      egress_protocol_name(bit));
		is_first = false;
	}
	buffer_text(text, "\n");
}

static void print_text(const struct explain_asking *asking, const struct egress_policy *policy,
		       struct buffer *text)
{
	static const char *const words[EGRESS_VERDICT_COUNT] = {
		[EGRESS_DENY] = "denied", [EGRESS_ASK] = "asked about", [EGRESS_ALLOW] = "allowed"
	};
	const struct egress_answer *answer = &asking->answer;
	bool is_v6 = asking->host.kind == HOST_ADDRESS && asking->host.address.family == ADDRESS_V6;
	struct rule_ref rule = egress_answer_rule(answer);

	buffer_format(text, is_v6 ? "[%s]:%u: %s%s by " : "%s:%u: %s%s by ", asking->host.name,
		      asking->question.port, answer->needs ? "may be " : "",
		      words[answer->verdict]);
	rule_print(&rule, text);
	buffer_text(text, "\n");
	if (policy->mode == EGRESS_NONE)
		buffer_text(text,
			    "  there is no network: no rule allows anything, or --network none\n");
	if (answer->special)
		buffer_format(text, "  it is special: %s; a rule has to name it\n",
			      answer->special);
	if (asking->question.known & EGRESS_FACT_REQUEST)
		buffer_text(text, "  asked for by GET; other methods may be answered otherwise\n");
	if (asking->unclear)
		buffer_format(text,
			      "  %s: servers differ about what that names, so no rule allows it by "
			      "its path\n",
			      asking->unclear);
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if (answer->needs & facts[i].fact)
			buffer_format(text, "  not known yet: %s\n", facts[i].text);
	if (answer->verdict == EGRESS_DENY)
		return;
	print_protocols(answer->rule, text);
	if (asking->host.kind == HOST_NAME)
		buffer_format(text, "  the name is resolved later, and each address checked: %s\n",
			      answer->is_private ? "private ones are allowed, metadata services "
						   "are not" :
						   "special ones are not dialled");
}

static void print_json(const struct explain_asking *asking, const struct effective *effective,
		       struct buffer *text)
{
	const struct egress_answer *answer = &asking->answer;
	struct rule_ref rule = egress_answer_rule(answer);
	struct json json;

	json_begin(&json, text);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_string(&json, "policy", effective->hash);
	json_string(&json, "network",
		    effective->policy.egress.mode == EGRESS_NONE ? "none" : "policy");
	json_string(&json, "host", asking->host.name);
	json_unsigned(&json, "port", asking->question.port);
	json_string(&json, "method", asking->question.method);
	json_string(&json, "path", asking->question.path);
	json_string(&json, "path_unclear", asking->unclear);
	json_string(&json, "verdict", explain_host_verdict(answer->verdict));
	json_array(&json, "needs");
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if (answer->needs & facts[i].fact)
			json_string(&json, NULL, facts[i].word);
	json_array_end(&json);
	rule_json(&rule, "rule", &json);
	json_string(&json, "special", answer->special);
	json_bool(&json, "private", answer->is_private);
	json_object_end(&json);
	buffer_text(text, "\n");
}

int explain_host_decide(const struct egress_policy *policy, struct explain_asking *asking,
			struct error *error)
{
	int result = take_target(asking, error);

	if (result == 0)
		egress_decide(policy, &asking->question, &asking->answer);
	return result;
}

int explain_host(const struct effective *effective, const struct explain_target *target,
		 struct arena *arena, struct buffer *text, struct error *error)
{
	struct explain_asking asking = { .target = target, .arena = arena };
	int result = explain_host_decide(&effective->policy.egress, &asking, error);

	if (result < 0)
		return result;
	if (target->json)
		print_json(&asking, effective, text);
	else
		print_text(&asking, &effective->policy.egress, text);
	return asking.answer.verdict == EGRESS_DENY;
}
