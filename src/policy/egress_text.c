#include "policy/egress_text.h"

#include "base/buffer.h"
#include "base/json.h"
#include "base/quantity.h"

const char *egress_verdict_word(enum egress_verdict verdict)
{
	static const char *const words[EGRESS_VERDICT_COUNT] = {
		[EGRESS_DENY] = "deny", [EGRESS_ASK] = "ask", [EGRESS_ALLOW] = "allow"
	};

	return words[verdict];
}

static void print_host(const struct egress_rule *rule, struct buffer *buffer)
{
	char text[ADDRESS_TEXT_BYTES];

	switch (rule->kind) {
	case EGRESS_NETWORK:
		address_print(&rule->network, text);
		buffer_format(buffer, "%s/%u", text, rule->prefix_bits);
		break;
	case EGRESS_ANY:
		buffer_text(buffer, "every name");
		break;
	default:
		buffer_format(buffer, "%s%s", rule->kind == EGRESS_BELOW ? "*." : "", rule->name);
	}
}

static void print_ports(const struct egress_rule *rule, struct buffer *buffer)
{
	for (size_t i = 0; i < rule->port_count; i++) {
		buffer_format(buffer, "%s%u", i ? ", " : ", ports ", rule->ports[i].first);
		if (rule->ports[i].last != rule->ports[i].first)
			buffer_format(buffer, "-%u", rule->ports[i].last);
	}
}

static void print_words(const char *const *words, size_t count, const char *before,
			struct buffer *buffer)
{
	for (size_t i = 0; i < count; i++) {
		buffer_text(buffer, i ? ", " : before);
		buffer_visible(buffer, words[i]);
	}
}

static void print_quotas(const struct egress_rule *rule, struct buffer *buffer)
{
	const struct {
		uint64_t value;
		const char *text;
		bool is_size;
	} rows[] = {
		{ rule->bytes_up, "sent", true },
		{ rule->bytes_down, "received", true },
		{ rule->bytes_per_second, "a second", true },
		{ rule->connections, "connections", false },
		{ rule->requests_per_minute, "requests a minute", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[QUANTITY_TEXT_BYTES];

		if (!rows[i].value)
			continue;
		quantity_tell_size(text, rows[i].value);
		if (rows[i].is_size)
			buffer_format(buffer, "; at most %s %s", text, rows[i].text);
		else
			buffer_format(buffer, "; at most %llu %s",
				      (unsigned long long)rows[i].value, rows[i].text);
	}
}

void egress_rule_print(const struct egress_rule *rule, struct buffer *buffer)
{
	static const struct {
		uint32_t flag;
		const char *text;
	} flags[] = { { EGRESS_PRIVATE, "; private addresses, too" },
		      { EGRESS_UPGRADE, "; WebSocket and the like, too" },
		      { EGRESS_ONCE, "; for one action" } };

	print_host(rule, buffer);
	print_ports(rule, buffer);
	for (uint32_t bit = 1; bit <= EGRESS_PROTOCOLS_ALL; bit <<= 1)
		if (rule->protocols & bit && !(rule->protocols & EGRESS_TCP))
			buffer_format(buffer, ", %s", egress_protocol_name(bit));
	if (rule->protocols & EGRESS_TCP)
		buffer_text(buffer, ", any bytes");
	print_words(rule->methods, rule->method_count, "; by ", buffer);
	print_words(rule->paths, rule->path_count, "; of ", buffer);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (rule->flags & flags[i].flag)
			buffer_text(buffer, flags[i].text);
	if (rule->tool[0])
		print_words(&rule->tool, 1, "; by the program ", buffer);
	if (rule->purpose[0])
		print_words(&rule->purpose, 1, "; for the purpose ", buffer);
	if (rule->from_wall_s || rule->until_wall_s)
		buffer_text(buffer, "; in a window of time");
	print_quotas(rule, buffer);
}

void egress_rules_json(const struct egress_policy *policy, enum egress_verdict least,
		       struct json *json)
{
	json_array(json, "network_rules");
	for (size_t i = 0; policy->mode == EGRESS_POLICY && i < policy->rule_count; i++) {
		const struct egress_rule *rule = &policy->rules[i];
		struct buffer CLEANUP_BUFFER text = { 0 };

		if (rule->verdict < least)
			continue;
		egress_rule_print(rule, &text);
		json_object(json, NULL);
		json_string(json, "verdict", egress_verdict_word(rule->verdict));
		json_string(json, "text", text.failed ? NULL : text.data);
		json_string(json, "rule", rule->ref.id);
		json_object_end(json);
	}
	json_array_end(json);
}
