/*
 * The sealed configuration of bawn-proxy and bawn-dialer, without a policy file: each argument is a
 * rule, and the order with the encoded rules goes to standard output. Never installed.
 *
 *	egress-lab [resolver=ADDRESS:PORT] [door] RULE...
 *
 * A RULE is words with commas between: a verdict (allow, ask, deny), HOST (a name, *.name, *, or
 * ADDRESS/BITS), and of port=N, ports=N-M, protocol=http|https|tls|ssh|tcp, method=M, path=P,
 * private, upgrade, once, tool=DEVICE:INODE, up=N, down=N, pace=N, connections=N, requests=N,
 * from=N, until=N (seconds of the epoch).
 */
#include "base/arena.h"
#include "net/edge.h"
#include "policy/egress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_ROWS 32

static void fail(const char *what)
{
	fprintf(stderr, "egress-lab: %s\n", what);
	exit(2);
}

static uint32_t protocol_of(const char *word)
{
	for (uint32_t bit = 1; bit <= EGRESS_TCP; bit <<= 1)
		if (strcmp(egress_protocol_name(bit), word) == 0)
			return bit;
	fail(word);
	return 0;
}

static void take_host(struct egress_rule *rule, char *word)
{
	char *slash = strchr(word, '/');
	struct host host;
	const char *why;

	rule->name = "";
	if (strcmp(word, "*") == 0) {
		rule->kind = EGRESS_ANY;
	} else if (slash) {
		rule->kind = EGRESS_NETWORK;
		if (address_parse(word, (size_t)(slash - word), &rule->network) < 0)
			fail(word);
		rule->prefix_bits = (uint32_t)strtoul(slash + 1, NULL, 10);
	} else {
		bool is_below = strncmp(word, "*.", 2) == 0;

		word += is_below ? 2 : 0;
		if (host_parse(word, strlen(word), &host, &why) < 0)
			fail(word);
		rule->kind = is_below ? EGRESS_BELOW : EGRESS_EXACT;
		rule->name = strdup(host.name);
	}
}

static void take_ports(struct egress_rule *rule, const char *value)
{
	char *end;
	unsigned long first = strtoul(value, &end, 10);
	unsigned long last = *end == '-' ? strtoul(end + 1, NULL, 10) : first;

	if (rule->port_count == LIMIT_ROWS)
		fail("too many ports");
	rule->ports[rule->port_count++] = (struct egress_ports){ (uint16_t)first, (uint16_t)last };
}

static void take_number(struct egress_rule *rule, const char *key, uint64_t value)
{
	const struct {
		const char *key;
		uint64_t *place;
	} numbers[] = {
		{ "up", &rule->bytes_up },
		{ "down", &rule->bytes_down },
		{ "pace", &rule->bytes_per_second },
		{ "connections", &rule->connections },
		{ "requests", &rule->requests_per_minute },
		{ "from", &rule->from_wall_s },
		{ "until", &rule->until_wall_s },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(numbers[i].key, key) == 0) {
			*numbers[i].place = value;
			return;
		}
	fail(key);
}

static void take_pair(struct egress_rule *rule, const char *key, char *value)
{
	if (strcmp(key, "port") == 0 || strcmp(key, "ports") == 0) {
		take_ports(rule, value);
	} else if (strcmp(key, "protocol") == 0) {
		rule->protocols |= protocol_of(value);
	} else if (strcmp(key, "method") == 0) {
		((const char **)(uintptr_t)rule->methods)[rule->method_count++] = value;
	} else if (strcmp(key, "path") == 0) {
		((const char **)(uintptr_t)rule->paths)[rule->path_count++] = value;
	} else if (strcmp(key, "tool") == 0) {
		char *colon = strchr(value, ':');

		rule->tool = "tool";
		rule->tool_device = strtoull(value, NULL, 10);
		rule->tool_inode = colon ? strtoull(colon + 1, NULL, 10) : 0;
	} else {
		take_number(rule, key, strtoull(value, NULL, 10));
	}
}

static void take_rule(struct egress_rule *rule, uint32_t line, char *text)
{
	char *save = NULL, *word = strtok_r(text, ",", &save);

	*rule = (struct egress_rule){
		.ref = { .id = "lab", .file = "lab.yaml", .line = line },
		.tool = "",
		.purpose = "",
		.ports = calloc(LIMIT_ROWS, sizeof(*rule->ports)),
		.methods = calloc(LIMIT_ROWS, sizeof(char *)),
		.paths = calloc(LIMIT_ROWS, sizeof(char *)),
	};
	if (word == NULL || !rule->ports || !rule->methods || !rule->paths)
		fail("no verdict");
	rule->verdict = strcmp(word, "allow") == 0 ? EGRESS_ALLOW :
			strcmp(word, "ask") == 0   ? EGRESS_ASK :
						     EGRESS_DENY;
	word = strtok_r(NULL, ",", &save);
	if (word == NULL)
		fail("no host");
	take_host(rule, word);
	while ((word = strtok_r(NULL, ",", &save))) {
		char *equals = strchr(word, '=');

		if (equals) {
			*equals = '\0';
			take_pair(rule, word, equals + 1);
		} else if (strcmp(word, "private") == 0) {
			rule->flags |= EGRESS_PRIVATE;
		} else if (strcmp(word, "upgrade") == 0) {
			rule->flags |= EGRESS_UPGRADE;
		} else if (strcmp(word, "once") == 0) {
			rule->flags |= EGRESS_ONCE;
		} else {
			fail(word);
		}
	}
	if (rule->port_count == 0)
		take_ports(rule, "1-65535");
	if (rule->protocols == 0)
		rule->protocols = EGRESS_PROTOCOLS_DEFAULT;
}

static void take_resolver(struct egress_order *order, const char *text)
{
	struct host host;
	uint16_t port = 0;
	const char *why;

	if (order->resolver_count == EGRESS_LIMIT_RESOLVERS ||
	    host_parse_port(text, strlen(text), 53, &host, &port, &why) < 0 ||
	    host.kind != HOST_ADDRESS)
		fail(text);
	order->resolvers[order->resolver_count].address = host.address;
	order->resolvers[order->resolver_count++].port = port;
}

int main(int count, char **arguments)
{
	static struct egress_rule rules[EGRESS_LIMIT_RULES];
	struct egress_order order = { .version = EGRESS_ORDER_VERSION, .flags = EGRESS_ORDER_V6 };
	struct egress_policy policy = { .mode = EGRESS_POLICY, .purpose = "", .rules = rules };
	struct arena arena = { 0 };
	const unsigned char *bytes;
	size_t length;

	for (int i = 1; i < count; i++) {
		if (strncmp(arguments[i], "resolver=", 9) == 0)
			take_resolver(&order, arguments[i] + 9);
		else if (strcmp(arguments[i], "door") == 0)
			order.flags |= EGRESS_ORDER_DOOR;
		else
			take_rule(&rules[policy.rule_count++], (uint32_t)i, arguments[i]);
	}
	if (egress_encode(&policy, &arena, &bytes, &length) < 0)
		fail("these rules cannot be encoded");
	order.rules_bytes = (uint32_t)length;
	if (fwrite(&order, sizeof(order), 1, stdout) != 1 ||
	    fwrite(bytes, length, 1, stdout) != 1 || fflush(stdout) != 0)
		fail("cannot write");
	return 0;
}
