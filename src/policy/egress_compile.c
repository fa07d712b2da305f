#include "policy/egress_compile.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/quantity.h"
#include "policy/document.h"
#include "policy/suffix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_OF_DAY 86400u

/* One rule on its way; what stands in its fields but not in struct egress_rule. */
struct compiling {
	struct egress_rule *rule;
	struct arena *arena;
	bool inspects, is_dangerous, is_git;
	const char *why; /* what is wrong */
	int code;
};

static void refuse(struct compiling *compiling, int code, const char *why)
{
	if (compiling->why)
		return;
	compiling->why = why;
	compiling->code = code;
}

int egress_add(struct egress_policy *policy, const struct egress_rule *rule, struct arena *arena)
{
	struct egress_rule *grown;

	if (policy->rule_count >= EGRESS_LIMIT_RULES)
		return -E2BIG;
	grown = arena_push(arena, policy->rules, policy->rule_count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	policy->rules = grown;
	grown[policy->rule_count++] = *rule;
	return 0;
}

static void set_address(struct egress_rule *rule, const struct address *address, uint32_t bits)
{
	rule->kind = EGRESS_NETWORK;
	rule->network = *address;
	rule->prefix_bits = bits;
}

static bool has_host_bits(const struct address *address, uint64_t bits)
{
	for (uint64_t bit = bits; bit < 128; bit++)
		if (address->bytes[bit / 8] & (0x80 >> bit % 8))
			return true;
	return false;
}

/* ADDRESS/BITS */
static void set_network(struct compiling *compiling, const char *text, size_t length,
			const char *slash)
{
	const char *number =
		arena_copy_bytes(compiling->arena, slash + 1, length - (size_t)(slash + 1 - text));
	struct address address;
	uint64_t bits = 0;

	if (address_parse(text, (size_t)(slash - text), &address) < 0 || !number ||
	    quantity_count(number, &bits) < 0 || bits > (address.family == ADDRESS_V4 ? 32 : 128))
		refuse(compiling, EINVAL, "is no network: ADDRESS/BITS, as in 10.0.0.0/8");
	else if (has_host_bits(&address, bits))
		refuse(compiling, EINVAL, "has bits of an address behind its prefix");
	else
		set_address(compiling->rule, &address, (uint32_t)bits);
}

static void set_host(struct compiling *compiling, const char *text, size_t length)
{
	struct egress_rule *rule = compiling->rule;
	bool is_below = length > 2 && strncmp(text, "*.", 2) == 0;
	const char *slash = memchr(text, '/', length), *why = NULL;
	struct host host;

	rule->name = "";
	if (length == 1 && text[0] == '*') {
		rule->kind = EGRESS_ANY;
	} else if (slash) {
		set_network(compiling, text, length, slash);
	} else if (host_parse(text + 2 * is_below, length - 2 * is_below, &host, &why) < 0) {
		refuse(compiling, EINVAL, why);
	} else if (host.kind == HOST_ADDRESS && is_below) {
		refuse(compiling, EINVAL, "is an address: nothing is below it");
	} else if (host.kind == HOST_ADDRESS) {
		set_address(rule, &host.address, host.address.family == ADDRESS_V4 ? 32 : 128);
	} else {
		rule->kind = is_below ? EGRESS_BELOW : EGRESS_EXACT;
		rule->name = arena_copy(compiling->arena, host.name);
	}
}

/* A number, or two with a dash. */
static void add_ports(struct compiling *compiling, const char *text, size_t length)
{
	struct egress_rule *rule = compiling->rule;
	const char *dash = memchr(text, '-', length);
	const char *first =
		arena_copy_bytes(compiling->arena, text, dash ? (size_t)(dash - text) : length);
	const char *last = dash ? arena_copy_bytes(compiling->arena, dash + 1,
						   length - (size_t)(dash + 1 - text)) :
				  first;
	uint64_t from = 0, to = 0;
	struct egress_ports *grown;

	if (!first || !last || quantity_count(first, &from) < 0 || quantity_count(last, &to) < 0 ||
	    from < 1 || from > to || to > UINT16_MAX) {
		refuse(compiling, EINVAL, "has ports that are none: 443, or 8000-8010");
		return;
	}
	if (rule->port_count >= EGRESS_LIMIT_PORTS) {
		refuse(compiling, EINVAL, "has more than 32 ranges of ports");
		return;
	}
	grown = arena_push(compiling->arena, rule->ports, rule->port_count, sizeof(*grown));
	if (!grown)
		return;
	rule->ports = grown;
	grown[rule->port_count++] = (struct egress_ports){ (uint16_t)from, (uint16_t)to };
}

static const char *const *add_word(struct compiling *compiling, const char *const *words,
				   size_t *count, const char *word)
{
	const char **grown;

	if (*count >= EGRESS_LIMIT_PATHS) {
		refuse(compiling, EINVAL, "has more than 64 methods or paths");
		return words;
	}
	grown = arena_push(compiling->arena, (void *)(uintptr_t)words, *count, sizeof(*grown));
	if (!grown)
		return words;
	grown[(*count)++] = word;
	return grown;
}

static void add_protocol(struct compiling *compiling, const char *word)
{
	if (strcmp(word, "udp") == 0)
		refuse(compiling, EOPNOTSUPP,
		       "is about UDP, which no task gets: names are answered by bawn itself");
	/* git:// has no form of its own that could be told from others */
	if (strcmp(word, "git") == 0) {
		compiling->is_git = true;
		word = "tcp";
	}
	for (uint32_t bit = 1; bit <= EGRESS_PROTOCOLS_ALL; bit <<= 1)
		if (strcmp(word, egress_protocol_name(bit)) == 0)
			compiling->rule->protocols |= bit;
}

/* Days since 1970 of a day that the loader has checked. */
static uint64_t day_of(const char *text)
{
	uint64_t year = strtoull(text, NULL, 10), month = strtoull(text + 5, NULL, 10);
	uint64_t day = strtoull(text + 8, NULL, 10), days = 0;
	static const unsigned short before[] = { 0,   31,  59,	90,  120, 151,
						 181, 212, 243, 273, 304, 334 };

	for (uint64_t y = 1970; y < year; y++)
		days += 365 + ((y % 4 == 0 && y % 100 != 0) || y % 400 == 0);
	days += before[month - 1] + day - 1;
	return days + (month > 2 && ((year % 4 == 0 && year % 100 != 0) || year % 400 == 0));
}

static uint64_t number_of(struct compiling *compiling, const char *text)
{
	uint64_t value = 0;

	if ((quantity_count(text, &value) < 0 && quantity_size(text, &value) < 0) || !value)
		refuse(compiling, EINVAL, "has a quota that is no number above 0");
	return value;
}

static void take_flag(struct compiling *compiling, const struct document_detail *detail,
		      uint32_t flag)
{
	if (strcmp(detail->text, "true") == 0)
		compiling->rule->flags |= flag;
}

static void take_numbers(struct compiling *compiling, const struct document_detail *detail)
{
	struct egress_rule *rule = compiling->rule;
	const struct {
		const char *field;
		uint64_t *number;
	} rows[] = {
		{ "max-bytes-up", &rule->bytes_up },
		{ "max-bytes-down", &rule->bytes_down },
		{ "bytes-per-second", &rule->bytes_per_second },
		{ "connections", &rule->connections },
		{ "requests-per-minute", &rule->requests_per_minute },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(detail->field, rows[i].field) == 0)
			*rows[i].number = number_of(compiling, detail->text);
}

static void take_detail(struct compiling *compiling, const struct document_detail *detail)
{
	struct egress_rule *rule = compiling->rule;
	const char *field = detail->field, *text = detail->text;
	bool is_true = strcmp(text, "true") == 0;

	if (strcmp(field, "ports") == 0)
		add_ports(compiling, text, strlen(text));
	else if (strcmp(field, "protocol") == 0 || strcmp(field, "protocols") == 0)
		add_protocol(compiling, text);
	else if (strcmp(field, "methods") == 0)
		rule->methods = add_word(compiling, rule->methods, &rule->method_count, text);
	else if (strcmp(field, "paths") == 0)
		rule->paths = add_word(compiling, rule->paths, &rule->path_count, text);
	else if (strcmp(field, "tool") == 0)
		rule->tool = text;
	else if (strcmp(field, "purpose") == 0)
		rule->purpose = text;
	else if (strcmp(field, "from") == 0)
		rule->from_wall_s = day_of(text) * SECONDS_OF_DAY;
	else if (strcmp(field, "until") == 0)
		rule->until_wall_s = (day_of(text) + 1) * SECONDS_OF_DAY;
	else if (strcmp(field, "private") == 0)
		take_flag(compiling, detail, EGRESS_PRIVATE);
	else if (strcmp(field, "upgrade") == 0)
		take_flag(compiling, detail, EGRESS_UPGRADE);
	else if (strcmp(field, "once") == 0)
		take_flag(compiling, detail, EGRESS_ONCE);
	else if (strcmp(field, "inspect") == 0)
		compiling->inspects = is_true;
	else if (strcmp(field, "dangerous") == 0)
		compiling->is_dangerous = is_true;
	else if (strcmp(field, "max-bytes") == 0)
		rule->bytes_up = rule->bytes_down = number_of(compiling, text);
	else if (strcmp(field, "max-requests") == 0)
		refuse(compiling, EOPNOTSUPP,
		       "counts all requests of a task, which nothing does; requests-per-minute and "
		       "connections are counted");
	else
		take_numbers(compiling, detail);
}

static void check_request(struct compiling *compiling)
{
	const struct egress_rule *rule = compiling->rule;

	if (compiling->inspects)
		refuse(compiling, EOPNOTSUPP, "needs inspection of TLS, which this build lacks");
	if ((rule->method_count || rule->path_count) && rule->protocols != EGRESS_HTTP)
		refuse(compiling, EOPNOTSUPP,
		       "has methods or paths, which can be seen of `protocol: http` alone; of "
		       "others they need inspection of TLS, which this build lacks");
	if (rule->requests_per_minute && rule->protocols != EGRESS_HTTP)
		refuse(compiling, EOPNOTSUPP,
		       "counts requests, which can be seen of `protocol: http` alone; of others "
		       "`connections` and bytes are counted");
	if (rule->flags & EGRESS_UPGRADE && !(rule->protocols & EGRESS_HTTP) && rule->protocols)
		refuse(compiling, EINVAL,
		       "has `upgrade`, which is of HTTP: of other protocols nothing of it is seen");
	for (size_t i = 0; i < rule->path_count; i++)
		if (!egress_path_check(rule->paths[i]))
			refuse(compiling, EINVAL,
			       "has a path that is no pattern: /a/*, /a/**, without a '/' at its "
			       "end");
}

/* What takes in hosts of many owners; a denial may do that. */
static void check_breadth(struct compiling *compiling)
{
	const struct egress_rule *rule = compiling->rule;
	unsigned least = rule->network.family == ADDRESS_V4 ? 8 : 16;

	if (rule->verdict == EGRESS_DENY || compiling->is_dangerous)
		return;
	if (rule->kind == EGRESS_ANY)
		refuse(compiling, EINVAL,
		       "is over-broad: it takes in every host there is; `dangerous: true` marks "
		       "that as meant");
	if (rule->kind == EGRESS_BELOW && suffix_is_public(rule->name))
		refuse(compiling, EINVAL,
		       "is over-broad: names below it belong to many; `dangerous: true` marks that "
		       "as meant");
	if (rule->kind == EGRESS_NETWORK && rule->prefix_bits < least)
		refuse(compiling, EINVAL,
		       "is over-broad: addresses of many networks; `dangerous: true` marks that "
		       "as meant");
}

/* How much of it is allowed, or in which way, is nothing that a denial could say. */
static void check_denial(struct compiling *compiling)
{
	const struct egress_rule *rule = compiling->rule;

	if (rule->verdict == EGRESS_DENY &&
	    (rule->flags || rule->bytes_up || rule->bytes_down || rule->bytes_per_second ||
	     rule->connections || rule->requests_per_minute))
		refuse(compiling, EINVAL,
		       "denies, all of it: quotas, once, private and upgrade are of what is "
		       "allowed");
}

static void check_rule(struct compiling *compiling)
{
	const struct egress_rule *rule = compiling->rule;

	check_request(compiling);
	check_denial(compiling);
	check_breadth(compiling);
	if (rule->purpose[0] && !egress_purpose_check(rule->purpose))
		refuse(compiling, EINVAL,
		       "has a purpose that is no word of a to z, digits, '-', '_' and '.'");
	if (rule->tool[0] && rule->verdict == EGRESS_DENY)
		refuse(compiling, EINVAL,
		       "denies by tool, which holds nothing back: a task can copy a program; deny "
		       "the host and allow it for other tools");
	if (rule->flags & EGRESS_PRIVATE &&
	    (rule->kind == EGRESS_NETWORK || rule->kind == EGRESS_ANY))
		refuse(compiling, EINVAL,
		       "is private, which is for names: a rule of an address means just that one");
}

/* Where protocols are named and no ports: those that these have. */
static void add_usual_ports(struct compiling *compiling)
{
	static const struct {
		uint32_t protocols;
		const char *port;
	} rows[] = { { EGRESS_HTTP, "80" },
		     { EGRESS_HTTPS | EGRESS_TLS, "443" },
		     { EGRESS_SSH, "22" } };
	const struct egress_rule *rule = compiling->rule;

	if (rule->port_count || rule->verdict == EGRESS_DENY)
		return;
	if (rule->protocols == EGRESS_TCP && compiling->is_git)
		add_ports(compiling, "9418", 4);
	for (size_t i = 0; !(rule->protocols & EGRESS_TCP) && i < sizeof(rows) / sizeof(rows[0]);
	     i++)
		if (rule->protocols & rows[i].protocols)
			add_ports(compiling, rows[i].port, strlen(rows[i].port));
}

/* Where nothing is said. */
static void fill(struct compiling *compiling, const struct egress_ports *ports, size_t count)
{
	struct egress_rule *rule = compiling->rule;

	add_usual_ports(compiling);
	if (!rule->protocols)
		rule->protocols = EGRESS_PROTOCOLS_DEFAULT;
	if (rule->verdict == EGRESS_DENY && rule->protocols == EGRESS_PROTOCOLS_DEFAULT)
		rule->protocols = EGRESS_PROTOCOLS_ALL;
	if (!rule->port_count) {
		rule->ports = (struct egress_ports *)(uintptr_t)ports;
		rule->port_count = count;
	}
}

static const struct {
	enum document_key key;
	enum egress_verdict verdict;
} lists[] = {
	{ DOCUMENT_NET_DENY, EGRESS_DENY },
	{ DOCUMENT_NET_ASK, EGRESS_ASK },
	{ DOCUMENT_NET_ALLOW, EGRESS_ALLOW },
};

/* False where the statement is of another key. */
static bool compile_statement(const struct document_statement *statement,
			      struct compiling *compiling)
{
	static const struct egress_ports web[] = { { 443, 443 } }, all[] = { { 1, UINT16_MAX } };
	struct egress_rule *rule = compiling->rule;
	size_t list = 0;

	while (list < sizeof(lists) / sizeof(lists[0]) && lists[list].key != statement->key)
		list++;
	if (list == sizeof(lists) / sizeof(lists[0]))
		return false;
	*rule = (struct egress_rule){
		.ref = statement->rule, .verdict = lists[list].verdict, .tool = "", .purpose = ""
	};
	set_host(compiling, statement->text, strlen(statement->text));
	for (size_t i = 0; i < statement->detail_count; i++)
		take_detail(compiling, &statement->details[i]);
	check_rule(compiling);
	fill(compiling, rule->verdict == EGRESS_DENY ? all : web, 1);
	return true;
}

static const char *why_not(const struct document_statement *statement, int code,
			   struct arena *arena)
{
	struct egress_rule rule;
	struct compiling compiling = { .rule = &rule, .arena = arena };

	if (!compile_statement(statement, &compiling) || compiling.code != code)
		return NULL;
	return compiling.why;
}

bool egress_compile_statement(const struct document_statement *statement, struct arena *arena,
			      struct egress_rule *ret_rule)
{
	struct compiling compiling = { .rule = ret_rule, .arena = arena };

	return compile_statement(statement, &compiling) && !arena_failed(arena);
}

const char *egress_compile_fault(const struct document_statement *statement, struct arena *arena)
{
	return why_not(statement, EINVAL, arena);
}

const char *egress_compile_missing(const struct document_statement *statement, struct arena *arena)
{
	return why_not(statement, EOPNOTSUPP, arena);
}

int egress_compile(const struct document *document, struct arena *arena,
		   struct egress_policy *ret_policy, struct error *error)
{
	struct egress_policy policy = { .purpose = "" };
	int result = 0;

	for (size_t i = 0; i < document->count && result == 0; i++) {
		const struct document_statement *statement = &document->statements[i];
		struct egress_rule rule;
		struct compiling compiling = { .rule = &rule, .arena = arena };

		if (!compile_statement(statement, &compiling))
			continue;
		if (compiling.why)
			return error_set(error, compiling.code, "%s:%u:%u: %s: %.200s %s",
					 statement->rule.file, statement->rule.line,
					 statement->column, document_key(statement->key)->path,
					 statement->text, compiling.why);
		if (rule.verdict != EGRESS_DENY)
			policy.mode = EGRESS_POLICY;
		result = egress_add(&policy, &rule, arena);
	}
	if (result < 0 || arena_failed(arena))
		return error_errno(error, result < 0 ? result : ENOMEM,
				   "compiling the network rules");
	*ret_policy = policy;
	return 0;
}

int egress_compile_host(const char *text, const struct rule_ref *ref, struct arena *arena,
			struct egress_rule *ret_rule, struct error *error)
{
	static const struct egress_ports web[] = { { 80, 80 }, { 443, 443 } };
	struct egress_rule rule = {
		.ref = *ref, .verdict = EGRESS_ALLOW, .tool = "", .purpose = ""
	};
	struct compiling compiling = { .rule = &rule, .arena = arena };
	size_t length = strlen(text);
	bool is_any = length > 4 && strcmp(text + length - 4, "/tcp") == 0;
	const char *whole = text, *bracket, *colon;

	if (strstr(text, "://"))
		return error_set(
			error, EINVAL,
			"option --allow-host %.200s: it is a URL: name the host alone, and "
			"ports where they are others than 80 and 443, as in example.com:8443",
			whole);
	if (is_any) {
		rule.protocols = EGRESS_TCP;
		text = arena_copy_bytes(arena, text, length - 4);
		if (!text)
			return error_errno(error, ENOMEM, "option --allow-host");
	}
	bracket = strrchr(text, ']');
	colon = strchr(bracket ? bracket : text, ':');
	if (is_any && !colon)
		refuse(&compiling, EINVAL,
		       "is for any bytes, whose ports have to be named: NAME:5432/tcp");
	set_host(&compiling, text, colon ? (size_t)(colon - text) : strlen(text));
	while (colon) {
		size_t bytes = strcspn(colon + 1, ",");

		add_ports(&compiling, colon + 1, bytes);
		colon = colon[1 + bytes] ? colon + 1 + bytes : NULL;
	}
	check_rule(&compiling);
	fill(&compiling, web, 2);
	if (compiling.why)
		return error_set(error, EINVAL, "option --allow-host %.200s: it %s", whole,
				 compiling.why);
	if (arena_failed(arena))
		return error_errno(error, ENOMEM, "option --allow-host");
	*ret_rule = rule;
	return 0;
}
