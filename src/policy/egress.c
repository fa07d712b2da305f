#include "policy/egress.h"

#include "policy/glob.h"

#include <string.h>

const char *egress_protocol_name(enum egress_protocol protocol)
{
	switch (protocol) {
	case EGRESS_HTTP:
		return "http";
	case EGRESS_HTTPS:
		return "https";
	case EGRESS_TLS:
		return "tls";
	case EGRESS_SSH:
		return "ssh";
	case EGRESS_TCP:
		return "tcp";
	default:
		return "unknown";
	}
}

/* A denial of addresses is one of version 6 that leads to them, too. */
static bool in_network(const struct egress_rule *rule, const struct address *address)
{
	struct address inside;

	if (address_within(address, &rule->network, rule->prefix_bits))
		return true;
	return rule->verdict == EGRESS_DENY && address_embedded(address, &inside) &&
	       address_within(&inside, &rule->network, rule->prefix_bits);
}

static bool is_below(const char *name, size_t length, const char *top)
{
	size_t bytes = strlen(top);

	return length > bytes && name[length - bytes - 1] == '.' &&
	       memcmp(name + length - bytes, top, bytes) == 0;
}

static bool matches_host(const struct egress_rule *rule, const struct host *host, size_t length)
{
	switch (rule->kind) {
	case EGRESS_EXACT:
		return host->kind == HOST_NAME && strcmp(rule->name, host->name) == 0;
	case EGRESS_BELOW:
		return host->kind == HOST_NAME && is_below(host->name, length, rule->name);
	case EGRESS_NETWORK:
		return host->kind == HOST_ADDRESS && in_network(rule, &host->address);
	case EGRESS_ANY:
		return host->kind == HOST_NAME || rule->verdict == EGRESS_DENY;
	default:
		return false;
	}
}

static bool has_port(const struct egress_rule *rule, uint16_t port)
{
	for (size_t i = 0; i < rule->port_count; i++)
		if (port >= rule->ports[i].first && port <= rule->ports[i].last)
			return true;
	return false;
}

bool egress_names(const struct egress_rule *rule, const struct host *host, uint16_t port)
{
	return matches_host(rule, host, strlen(host->name)) && has_port(rule, port);
}

static bool has_word(const char *const *words, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i], word) == 0)
			return true;
	return false;
}

/* Patterns and paths are relative and clean for globs, without the slashes at both ends. */
static bool has_path(const struct egress_rule *rule, const char *path)
{
	char trimmed[EGRESS_LIMIT_PATH];
	size_t length = strlen(path);

	if (length >= sizeof(trimmed))
		return rule->verdict != EGRESS_ALLOW;
	/* "*", the server as a whole: no path that is allowed, and what is denied is part of it */
	if (path[0] != '/')
		return rule->verdict != EGRESS_ALLOW;
	memcpy(trimmed, path + 1, length);
	length--;
	if (length && trimmed[length - 1] == '/')
		trimmed[--length] = '\0';
	for (size_t i = 0; i < rule->path_count; i++) {
		const char *pattern = rule->paths[i] + 1;

		if (pattern[0] ? glob_match(pattern, trimmed) : length == 0)
			return true;
	}
	return false;
}

static bool matches_request(const struct egress_rule *rule, const struct egress_question *question)
{
	if (rule->method_count &&
	    !has_word(rule->methods, rule->method_count, question->method ? question->method : ""))
		return false;
	if (rule->path_count &&
	    (question->path ? !has_path(rule, question->path) : rule->verdict == EGRESS_ALLOW))
		return false;
	return rule->verdict == EGRESS_DENY || !question->upgrade || rule->flags & EGRESS_UPGRADE;
}

static bool matches_tool(const struct egress_rule *rule, const struct egress_tool *tool)
{
	if (!tool)
		return rule->verdict == EGRESS_DENY;
	return (rule->tool_device || rule->tool_inode) && tool->device == rule->tool_device &&
	       tool->inode == rule->tool_inode;
}

/* Whether a rule looks at the request: an upgrade is one that not every rule allows. */
static bool needs_request(const struct egress_rule *rule, const struct egress_question *question)
{
	if (rule->method_count || rule->path_count)
		return true;
	if (rule->verdict == EGRESS_DENY || rule->flags & EGRESS_UPGRADE)
		return false;
	return question->known & EGRESS_FACT_PROTOCOL && question->protocol == EGRESS_HTTP;
}

/*
 * A denial is not gone around by not looking like what it names: TLS that says nothing of the web
 * may be the web's, and bytes that are told by nothing may be anything.
 */
static uint32_t protocols_of(const struct egress_rule *rule)
{
	uint32_t set = rule->protocols;

	if (rule->verdict != EGRESS_DENY)
		return set;
	if (set & (EGRESS_HTTPS | EGRESS_TLS))
		set |= EGRESS_HTTPS | EGRESS_TLS;
	return set | EGRESS_TCP;
}

/* Everything but the host; ret_needs: the facts without which it is not sure. */
static bool matches_rest(const struct egress_policy *policy, const struct egress_rule *rule,
			 const struct egress_question *question, uint32_t *ret_needs)
{
	*ret_needs = 0;
	if (!has_port(rule, question->port))
		return false;
	if (rule->purpose[0] && strcmp(rule->purpose, policy->purpose) != 0)
		return false;
	if ((rule->from_wall_s && question->wall_s < rule->from_wall_s) ||
	    (rule->until_wall_s && question->wall_s >= rule->until_wall_s))
		return false;
	if (!(rule->protocols & EGRESS_TCP)) {
		if (!(question->known & EGRESS_FACT_PROTOCOL))
			*ret_needs |= EGRESS_FACT_PROTOCOL;
		else if (!(protocols_of(rule) & question->protocol))
			return false;
		if (question->known & EGRESS_FACT_REQUEST) {
			if (!matches_request(rule, question))
				return false;
		} else if (needs_request(rule, question)) {
			*ret_needs |= EGRESS_FACT_REQUEST;
		}
	}
	if (rule->tool[0]) {
		if (!(question->known & EGRESS_FACT_TOOL))
			*ret_needs |= EGRESS_FACT_TOOL;
		else if (!matches_tool(rule, question->tool))
			return false;
	}
	return true;
}

/* Whether a rule that matches a special host means it. */
static bool names_special(const struct egress_rule *rule, const struct host *host)
{
	struct address_class class;
	struct host top = { .kind = HOST_NAME };

	if (rule->kind == EGRESS_EXACT)
		return true;
	if (rule->kind == EGRESS_BELOW) {
		memcpy(top.name, rule->name, strlen(rule->name) + 1);
		return host_special(&top) != NULL;
	}
	if (rule->kind != EGRESS_NETWORK)
		return false;
	address_classify(&host->address, &class);
	return rule->prefix_bits >= class.bits;
}

/* Denials that need to know more of one question; what more of them close is seen later. */
#define DENIALS_LIMIT 32

struct denials {
	const struct egress_rule *rules[DENIALS_LIMIT];
	size_t count;
};

/* One way that a rule leaves; method and path NULL: any. */
struct way {
	uint32_t protocol;
	const char *method, *path;
};

static bool is_closed(const struct denials *denials, const struct way *way)
{
	for (size_t i = 0; i < denials->count; i++) {
		const struct egress_rule *rule = denials->rules[i];

		if (!(protocols_of(rule) & way->protocol))
			continue;
		if (rule->method_count &&
		    (!way->method || !has_word(rule->methods, rule->method_count, way->method)))
			continue;
		if (rule->path_count &&
		    (!way->path || !has_word(rule->paths, rule->path_count, way->path)))
			continue;
		return true;
	}
	return false;
}

/* Whether something can be sent by this rule that none of the denials is about. */
static bool has_way(const struct egress_rule *rule, const struct egress_question *question,
		    const struct denials *denials)
{
	uint32_t protocols = rule->protocols & EGRESS_TCP ? EGRESS_PROTOCOLS_ALL : rule->protocols;
	struct way way;

	if (question->known & EGRESS_FACT_PROTOCOL)
		protocols &= question->protocol;
	for (way.protocol = 1; way.protocol <= protocols; way.protocol <<= 1)
		for (size_t i = 0; protocols & way.protocol && i <= rule->method_count; i++)
			for (size_t j = 0; j <= rule->path_count; j++) {
				way.method = i < rule->method_count ? rule->methods[i] : NULL;
				way.path = j < rule->path_count ? rule->paths[j] : NULL;
				/* any, only where the rule names none */
				if ((way.method || !rule->method_count) &&
				    (way.path || !rule->path_count) && !is_closed(denials, &way))
					return true;
			}
	return false;
}

/* Of the rules with one verdict: the first that matches, and the first that may. */
struct found {
	const struct egress_rule *sure, *maybe;
	uint32_t needs;
	bool is_private;
};

static void find(struct found *found, const struct egress_rule *rule, uint32_t needs)
{
	if (needs && !found->maybe)
		found->maybe = rule;
	if (!needs && !found->sure)
		found->sure = rule;
	found->needs |= needs;
	found->is_private |= (rule->flags & EGRESS_PRIVATE) != 0;
}

static void combine(const struct found found[static EGRESS_VERDICT_COUNT],
		    struct egress_answer *answer)
{
	const struct found *ask = &found[EGRESS_ASK], *allow = &found[EGRESS_ALLOW];

	answer->needs = found[EGRESS_DENY].needs;
	answer->verdict = EGRESS_ASK;
	answer->rule = ask->sure;
	answer->is_private = ask->is_private || allow->is_private;
	if (answer->rule)
		return;
	answer->needs |= ask->needs;
	answer->verdict = EGRESS_ALLOW;
	answer->rule = allow->sure;
	if (answer->rule)
		return;
	answer->needs |= allow->needs;
	answer->rule = allow->maybe;
	if (answer->rule)
		return;
	answer->verdict = EGRESS_ASK;
	answer->rule = ask->maybe;
	if (!answer->rule)
		*answer = (struct egress_answer){ .verdict = EGRESS_DENY };
}

/* Every rule that matches, or may; the last one that decides by itself, or NULL. */
static const struct egress_rule *find_all(const struct egress_policy *policy,
					  const struct egress_question *question,
					  const struct denials *denials, struct denials *maybe,
					  struct found found[static EGRESS_VERDICT_COUNT])
{
	const char *special = host_special(question->host);
	size_t length = strlen(question->host->name);

	memset(found, 0, EGRESS_VERDICT_COUNT * sizeof(*found));
	for (size_t i = 0; policy->mode == EGRESS_POLICY && i < policy->rule_count; i++) {
		const struct egress_rule *rule = &policy->rules[i];
		uint32_t needs;

		if (!matches_host(rule, question->host, length) ||
		    !matches_rest(policy, rule, question, &needs))
			continue;
		if (rule->verdict == EGRESS_DENY && !needs)
			return rule;
		if (rule->verdict == EGRESS_DENY && maybe->count < DENIALS_LIMIT)
			maybe->rules[maybe->count++] = rule;
		if (rule->verdict != EGRESS_DENY &&
		    ((special && !names_special(rule, question->host)) ||
		     !has_way(rule, question, denials)))
			continue;
		find(&found[rule->verdict], rule, needs);
	}
	return NULL;
}

void egress_decide(const struct egress_policy *policy, const struct egress_question *question,
		   struct egress_answer *ret_answer)
{
	struct denials none = { .count = 0 }, maybe = { .count = 0 };

	struct found found[EGRESS_VERDICT_COUNT];

	*ret_answer = (struct egress_answer){ .verdict = EGRESS_DENY };
	ret_answer->rule = find_all(policy, question, &none, &maybe, found);
	if (ret_answer->rule)
		return;
	combine(found, ret_answer);
	if (ret_answer->verdict == EGRESS_DENY)
		ret_answer->special = host_special(question->host);
	if (ret_answer->verdict == EGRESS_DENY || !maybe.count)
		return;
	/* what nothing that is sent can open is closed now: before a name is resolved for it */
	(void)find_all(policy, question, &maybe, &none, found);
	combine(found, ret_answer);
	if (ret_answer->verdict == EGRESS_DENY)
		ret_answer->rule = maybe.rules[0];
}

/* Whether what a rule says is counted, which it is where the rule itself decides. */
static bool is_counted(const struct egress_rule *rule)
{
	return rule->bytes_up || rule->bytes_down || rule->bytes_per_second || rule->connections ||
	       rule->requests_per_minute || rule->flags & EGRESS_ONCE;
}

/* Whether a rule that matches lets the host lead there. */
static bool opens(const struct egress_rule *rule, const struct host *host,
		  const struct address_class *class)
{
	if (rule->kind == EGRESS_NETWORK)
		return rule->prefix_bits >= class->bits &&
		       (host->kind == HOST_ADDRESS || !is_counted(rule));
	if (!(rule->flags & EGRESS_PRIVATE))
		return false;
	if (rule->kind == EGRESS_EXACT)
		return class->kind == ADDRESS_PRIVATE || class->kind == ADDRESS_LOOPBACK;
	return rule->kind == EGRESS_BELOW && class->kind == ADDRESS_PRIVATE;
}

static const char *fault_of_network(const struct egress_rule *rule,
				    const struct egress_answer *answer)
{
	if (rule->verdict == EGRESS_DENY)
		return "a rule denies this address";
	if (rule->verdict == EGRESS_ASK && answer->verdict == EGRESS_ALLOW)
		return "a rule asks about this address";
	return NULL;
}

const char *egress_check_address(const struct egress_policy *policy,
				 const struct egress_question *question,
				 const struct egress_answer *answer, const struct address *address,
				 struct egress_opening *ret_opening)
{
	size_t length = strlen(question->host->name);
	struct egress_opening opening = { .needs = 0 };
	struct address_class class;
	bool is_open;

	*ret_opening = opening;
	address_classify(address, &class);
	is_open = class.kind == ADDRESS_PUBLIC;
	if (answer->verdict == EGRESS_DENY)
		return "it is denied";
	for (size_t i = 0; policy->mode == EGRESS_POLICY && i < policy->rule_count; i++) {
		const struct egress_rule *rule = &policy->rules[i];
		bool is_network = rule->kind == EGRESS_NETWORK;
		uint32_t needs;

		if (!(is_network ? in_network(rule, address) :
				   matches_host(rule, question->host, length)) ||
		    !matches_rest(policy, rule, question, &needs))
			continue;
		if (is_network && fault_of_network(rule, answer))
			return fault_of_network(rule, answer);
		if (rule->verdict == EGRESS_DENY || !opens(rule, question->host, &class))
			continue;
		opening.needs |= needs;
		is_open |= !needs;
		if (!needs && !is_network && (!opening.rule || rule == answer->rule))
			opening.rule = rule;
	}
	if (!is_open && !opening.needs)
		return class.text;
	if (is_open)
		opening.needs = 0;
	if (class.kind != ADDRESS_PUBLIC)
		*ret_opening = opening;
	return NULL;
}

struct rule_ref egress_answer_rule(const struct egress_answer *answer)
{
	if (answer->rule)
		return answer->rule->ref;
	return rule_builtin(answer->special ? RULE_EGRESS_SPECIAL : RULE_EGRESS_DEFAULT);
}
