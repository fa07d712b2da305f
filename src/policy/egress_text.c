#include "policy/egress_text.h"

#include "base/buffer.h"
#include "base/quantity.h"
#include "policy/egress.h"

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
