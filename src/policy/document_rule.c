/* Lists of a policy file: values, and rules with fields; rules held against each other. */
#include "policy/document_index.h"
#include "policy/document_internal.h"

#include "base/arena.h"
#include "base/path.h"
#include "policy/danger.h"
#include "policy/egress_compile.h"
#include "policy/glob.h"

#include <string.h>

/* Of one rule, all lists together. */
#define DETAIL_LIMIT 256

#define COMMON                                                                   \
	{ "id", VALUE_ID, false, false, "", "what explanations call the rule" }, \
	{                                                                        \
		"reason", VALUE_TEXT, false, false, "", "why, for people"        \
	}

static const struct document_field path_fields[] = {
	{ "path", VALUE_PATH, false, true, "", "from / or ~/ on, without wildcards" },
	{ "match", VALUE_PATH, true, false, "", "paths that the rule must cover" },
	{ "not_match", VALUE_PATH, true, false, "", "paths that it must not cover" },
	COMMON,
};
static const struct document_field pattern_fields[] = {
	{ "name", VALUE_PATTERN, false, true, "",
	  "a path, a name below the workspace, or a glob: ? * ** [set]" },
	{ "match", VALUE_PATTERN, true, false, "", "paths that the rule must cover" },
	{ "not_match", VALUE_PATTERN, true, false, "", "paths that it must not cover" },
	COMMON,
};
static const struct document_field device_fields[] = {
	{ "path", VALUE_DEVICE, false, true, "", "below /dev" },
	COMMON,
};
static const struct document_field program_fields[] = {
	{ "program", VALUE_PROGRAM, false, true, "", "a name, or a path from / on" },
	{ "match", VALUE_TEXT, true, false, "", "commands that the rule must cover" },
	{ "not_match", VALUE_TEXT, true, false, "", "commands that it must not cover" },
	COMMON,
};
static const struct document_field network_fields[] = {
	{ "host", VALUE_NETWORK, false, true, "",
	  "a name, *.name, an address, or a network as 10.0.0.0/8" },
	{ "ports", VALUE_PORT, true, false, "",
	  "default: those of its protocols (http 80, https and tls 443, ssh 22, git 9418), or 443; "
	  "of a denial: all" },
	{ "protocol", VALUE_WORD, false, false, "tcp udp tls http https ssh git",
	  "what is spoken; tcp: anything" },
	{ "protocols", VALUE_WORD, true, false, "tcp tls http https ssh",
	  "default: http, https, tls and ssh; of a denial: all" },
	{ "methods", VALUE_WORD, true, false, "GET HEAD OPTIONS POST PUT PATCH DELETE",
	  "HTTP methods" },
	{ "paths", VALUE_URL_PATH, true, false, "",
	  "HTTP paths; * stands for a run without '/', ** for any components" },
	{ "tool", VALUE_PROGRAM, false, false, "", "the program that may connect" },
	{ "purpose", VALUE_TEXT, false, false, "", "only for tasks with this --purpose" },
	{ "from", VALUE_DATE, false, false, "", "the first day, UTC" },
	{ "until", VALUE_DATE, false, false, "", "the last day, UTC" },
	{ "max-bytes", VALUE_SIZE, false, false, "", "bytes of a task, each way" },
	{ "max-bytes-up", VALUE_SIZE, false, false, "", "bytes that a task may send" },
	{ "max-bytes-down", VALUE_SIZE, false, false, "", "bytes that a task may get" },
	{ "bytes-per-second", VALUE_SIZE, false, false, "", "of a task, both ways together" },
	{ "connections", VALUE_COUNT, false, false, "", "of a task" },
	{ "requests-per-minute", VALUE_COUNT, false, false, "", "of a task" },
	{ "max-requests", VALUE_COUNT, false, false, "", "requests of a task" },
	{ "private", VALUE_BOOL, false, false, "", "the name may lead to private addresses" },
	{ "upgrade", VALUE_BOOL, false, false, "", "WebSocket and its like, too" },
	{ "once", VALUE_BOOL, false, false, "", "for one action: the first that uses it" },
	{ "dangerous", VALUE_BOOL, false, false, "", "marks what is over-broad as meant" },
	{ "inspect", VALUE_BOOL, false, false, "", "look into TLS" },
	{ "match", VALUE_TEXT, true, false, "", "HOST:PORT that the rule must cover" },
	{ "not_match", VALUE_TEXT, true, false, "", "HOST:PORT that it must not cover" },
	COMMON,
};
static const struct document_field credential_fields[] = {
	{ "name", VALUE_TEXT, false, true, "", "what it is called in the store" },
	{ "host", VALUE_HOST, false, true, "", "where it may be used" },
	{ "ports", VALUE_PORT, true, false, "", "default: 443" },
	{ "methods", VALUE_WORD, true, false, "GET HEAD OPTIONS POST PUT PATCH DELETE",
	  "HTTP methods" },
	{ "paths", VALUE_URL_PATH, true, false, "", "HTTP paths" },
	{ "tool", VALUE_PROGRAM, false, false, "", "the program that may use it" },
	{ "scopes", VALUE_TEXT, true, false, "", "what it may be used for" },
	{ "until", VALUE_DATE, false, false, "", "the last day, UTC" },
	COMMON,
};
static const struct document_field target_fields[] = {
	{ "label", VALUE_TEXT, false, true, "", "such as production or customer-data" },
	{ "hosts", VALUE_HOST, true, false, "", "names, *.name" },
	{ "paths", VALUE_PATTERN, true, false, "", "paths and globs" },
	COMMON,
};
static const struct document_field exception_fields[] = {
	{ "command", VALUE_TEXT, false, true, "",
	  "the command, word for word; a * behind the first stands for one word" },
	{ "owner", VALUE_TEXT, false, true, "", "who answers for it" },
	{ "reason", VALUE_TEXT, false, true, "", "why" },
	{ "expires", VALUE_DATE, false, true, "", "the last day, UTC" },
	{ "sha256", VALUE_TEXT, false, false, "", "of the program's file; default: any file" },
	{ "id", VALUE_ID, false, false, "", "what explanations call the rule" },
};

static const struct document_field test_fields[] = {
	{ "verdict", VALUE_WORD, false, true, "allow ask deny", "what has to become of it" },
	{ "command", VALUE_TEXT, false, false, "", "a text that a shell would get" },
	{ "argv", VALUE_TEXT, true, false, "", "the words of a command" },
	{ "host", VALUE_TEXT, false, false, "", "NAME:PORT that is connected to" },
	{ "url", VALUE_TEXT, false, false, "", "what is asked for by GET: http:// or https://" },
	{ "path", VALUE_TEXT, false, false, "",
	  "from / or ~/ on, or below the directory that the test is made in" },
	{ "access", VALUE_WORD, false, false, "read write",
	  "what is done with the path; default: read" },
	{ "rule", VALUE_TEXT, false, false, "", "the id of the rule that has to decide" },
	COMMON,
};

static const struct {
	enum document_value item;
	struct document_fields fields;
} shapes[DOCUMENT_SHAPES] = {
#define ROWS(array) array, sizeof(array) / sizeof((array)[0])
	[DOCUMENT_SHAPE_TEXTS] = { VALUE_TEXT, { 0 } },
	[DOCUMENT_SHAPE_WORDS] = { VALUE_WORD, { 0 } },
	[DOCUMENT_SHAPE_NAMES] = { VALUE_NAME, { 0 } },
	[DOCUMENT_SHAPE_LOCKS] = { VALUE_LOCK, { 0 } },
	[DOCUMENT_SHAPE_PATHS] = { VALUE_PATH, { ROWS(path_fields), true } },
	[DOCUMENT_SHAPE_PATTERNS] = { VALUE_PATTERN, { ROWS(pattern_fields), true } },
	[DOCUMENT_SHAPE_DEVICES] = { VALUE_DEVICE, { ROWS(device_fields), true } },
	[DOCUMENT_SHAPE_PROGRAMS] = { VALUE_PROGRAM, { ROWS(program_fields), true } },
	[DOCUMENT_SHAPE_NETWORK] = { VALUE_NETWORK, { ROWS(network_fields), true } },
	[DOCUMENT_SHAPE_CREDENTIAL] = { VALUE_TEXT, { ROWS(credential_fields), false } },
	[DOCUMENT_SHAPE_TARGET] = { VALUE_TEXT, { ROWS(target_fields), false } },
	[DOCUMENT_SHAPE_EXCEPTION] = { VALUE_TEXT, { ROWS(exception_fields), false } },
	[DOCUMENT_SHAPE_TEST] = { VALUE_WORD, { ROWS(test_fields), false } },
#undef ROWS
};

const struct document_fields *document_fields(enum document_shape shape)
{
	return &shapes[shape].fields;
}

enum document_value document_item(enum document_shape shape)
{
	return shapes[shape].item;
}

static const struct document_field *find_field(const struct document_fields *fields,
					       const char *name)
{
	for (size_t i = 0; i < fields->count; i++)
		if (strcmp(fields->rows[i].name, name) == 0)
			return &fields->rows[i];
	return NULL;
}

static void add_detail(struct document_reading *reading, struct document_statement *statement,
		       const struct document_field *field, const struct outline_node *node)
{
	const char *text =
		document_take(reading, node, field->value, field->words, field->name, NULL);
	struct document_detail *grown;

	if (!text)
		return;
	if (statement->detail_count >= DETAIL_LIMIT) {
		document_fault_at(reading, node, "more than %d values in one rule", DETAIL_LIMIT);
		return;
	}
	grown = arena_push(reading->arena, (void *)(uintptr_t)statement->details,
			   statement->detail_count, sizeof(*grown));
	if (!grown)
		return;
	grown[statement->detail_count++] = (struct document_detail){ field->name, text };
	statement->details = grown;
}

static void read_field(struct document_reading *reading, struct document_statement *statement,
		       const struct document_field *field, const struct outline_node *value)
{
	const struct outline *outline = reading->outline;

	if (!field->many) {
		add_detail(reading, statement, field, value);
		return;
	}
	if (value->kind != OUTLINE_LIST) {
		document_fault_at(reading, value, "%s takes a list: [...]", field->name);
		return;
	}
	for (const struct outline_node *node = outline_first(outline, value);
	     node && document_goes_on(reading); node = outline_next(outline, value, node))
		add_detail(reading, statement, field, node);
}

static void refuse_field(struct document_reading *reading, enum document_key key,
			 const struct outline_node *node, const struct document_fields *fields)
{
	const char *names[32];
	size_t count = 0;

	for (size_t i = 0; i < fields->count && count < sizeof(names) / sizeof(names[0]); i++)
		names[count++] = fields->rows[i].name;
	document_fault_at(reading, node, "unknown key \"%.64s\" in a rule of %s%s", node->text,
			  document_key(key)->path,
			  document_hint(reading, node->text, names, count));
}

/* Where a rule names its first field twice, the rule has it twice. */
static bool has_before(const struct outline *outline, const struct outline_node *map,
		       const struct outline_node *key)
{
	for (const struct outline_node *node = outline_first(outline, map); node != key;
	     node = outline_next(outline, map, outline_next(outline, map, node)))
		if (strcmp(node->text, key->text) == 0)
			return true;
	return false;
}

static void read_rule(struct document_reading *reading, enum document_key key,
		      const struct outline_node *map, const struct document_fields *fields)
{
	const struct outline *outline = reading->outline;
	struct document_statement made = { 0 }, *statement;
	const char *subject = NULL;

	for (size_t i = 0; i < fields->count; i++)
		if (fields->rows[i].needed && !outline_find(outline, map, fields->rows[i].name))
			document_fault_at(reading, map, "a rule of %s lacks \"%s\": %s",
					  document_key(key)->path, fields->rows[i].name,
					  fields->rows[i].help);
	for (const struct outline_node *node = outline_first(outline, map), *value;
	     node && document_goes_on(reading); node = outline_next(outline, map, value)) {
		const struct document_field *field = find_field(fields, node->text);

		value = outline_next(outline, map, node);
		if (!field)
			refuse_field(reading, key, node, fields);
		else if (has_before(outline, map, node))
			document_fault_at(reading, node, "\"%s\" stands twice in one rule",
					  node->text);
		else if (field == fields->rows)
			subject = document_take(reading, value, field->value, field->words,
						field->name, NULL);
		else
			read_field(reading, &made, field, value);
	}
	statement = subject ? document_add(reading, key, map, subject) : NULL;
	if (!statement)
		return;
	statement->details = made.details;
	statement->detail_count = made.detail_count;
	for (size_t i = 0; i < made.detail_count; i++)
		if (strcmp(made.details[i].field, "id") == 0)
			statement->rule.id = made.details[i].text;
}

void document_read_list(struct document_reading *reading, enum document_key key,
			const struct outline_node *list)
{
	const struct outline *outline = reading->outline;
	const struct document_key_text *text = document_key(key);
	const struct document_fields *fields = document_fields(text->shape);

	for (const struct outline_node *node = outline_first(outline, list);
	     node && document_goes_on(reading); node = outline_next(outline, list, node)) {
		const char *value;

		if (fields->count && node->kind == OUTLINE_MAP) {
			read_rule(reading, key, node, fields);
			continue;
		}
		if (fields->count && !fields->has_short_form) {
			document_fault_at(reading, node, "a rule of %s is a map, as in {%s: ...}",
					  text->path, fields->rows[0].name);
			continue;
		}
		value = document_take(reading, node, document_item(text->shape), text->words,
				      text->path, NULL);
		if (value)
			(void)document_add(reading, key, node, value);
	}
}

/* What narrows a rule, beside what only people read. */
static bool is_narrowing(const struct document_detail *detail)
{
	static const char *const words[] = { "id",	"reason",  "match",   "not_match",
					     "inspect", "private", "upgrade", "dangerous" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(detail->field, words[i]) == 0)
			return false;
	return true;
}

static bool is_narrowed(const struct document_statement *statement)
{
	for (size_t i = 0; i < statement->detail_count; i++)
		if (is_narrowing(&statement->details[i]))
			return true;
	return false;
}

static void unreachable(struct document_reading *reading,
			const struct document_statement *statement,
			const struct document_statement *by, const char *why)
{
	document_fault(reading, statement->rule.line, statement->column,
		       "unreachable: %s %.200s never decides anything: line %u %s",
		       document_key(statement->key)->path,
		       statement->name ? statement->name : statement->text, by->rule.line, why);
}

bool document_host_covers(const char *pattern, const char *host)
{
	size_t length, suffix;

	if (strcmp(pattern, host) == 0)
		return true;
	if (strncmp(pattern, "*.", 2) != 0)
		return false;
	if (strncmp(host, "*.", 2) == 0)
		host++;
	length = strlen(host);
	suffix = strlen(pattern + 1);
	return length > suffix && strcmp(host + length - suffix, pattern + 1) == 0;
}

static bool name_covers(const char *name, const char *path)
{
	/* a relative example stands in a workspace */
	if (name[0] == '/')
		return path[0] == '/' && glob_covers(name + 1, path + 1);
	return path[0] != '/' && glob_covers(name, path);
}

static bool program_covers(const char *program, const char *command)
{
	size_t length = strcspn(command, " \t");
	const char *word = command;

	if (program[0] != '/')
		for (size_t i = 0; i < length; i++)
			if (command[i] == '/')
				word = command + i + 1;
	length -= (size_t)(word - command);
	return strlen(program) == length && strncmp(program, word, length) == 0;
}

/* By what connections are matched with. False where the example has no proper form: a fault. */
static bool network_example(struct document_reading *reading, const struct document_statement *rule,
			    const char *example, bool *ret_covers)
{
	struct egress_rule compiled;
	struct host host;
	uint16_t port;
	const char *why;

	if (host_parse_port(example, strlen(example), 0, &host, &port, &why) < 0) {
		document_fault(reading, rule->rule.line, rule->column,
			       "example %.200s: HOST:PORT, as in example.org:443", example);
		return false;
	}
	*ret_covers = egress_compile_statement(rule, reading->arena, &compiled) &&
		      egress_names(&compiled, &host, port);
	return true;
}

static void check_example(struct document_reading *reading, const struct document_statement *rule,
			  const struct document_detail *example)
{
	bool wanted = strcmp(example->field, "match") == 0, covers = false;

	if (!wanted && strcmp(example->field, "not_match") != 0)
		return;
	switch (document_key(rule->key)->shape) {
	case DOCUMENT_SHAPE_PATHS:
		covers = path_is_under(example->text, rule->text);
		break;
	case DOCUMENT_SHAPE_PATTERNS:
		covers = name_covers(rule->text, example->text);
		break;
	case DOCUMENT_SHAPE_PROGRAMS:
		covers = program_covers(rule->text, example->text);
		break;
	default:
		if (!network_example(reading, rule, example->text, &covers))
			return;
	}
	if (covers != wanted)
		document_fault(reading, rule->rule.line, rule->column,
			       "the rule's example does not hold: %s %.120s %s %.200s",
			       document_key(rule->key)->path, rule->text,
			       covers ? "covers" : "does not cover", example->text);
}

static void check_danger(struct document_reading *reading, const struct document_statement *rule)
{
	const char *danger = danger_of_path(rule->text,
					    rule->key == DOCUMENT_WRITE ? PATH_WRITE : PATH_READ,
					    reading->facts->home, NULL);

	if (danger)
		document_fault(reading, rule->rule.line, rule->column, "%s %.200s: over-broad: %s",
			       document_key(rule->key)->path, rule->text, danger);
}

static bool hides(const struct document_statement *by, const struct document_statement *rule)
{
	return by->text[0] == '/' && name_covers(by->text, rule->text);
}

static bool names_host(const struct document_statement *by, const struct document_statement *rule)
{
	return document_host_covers(by->text, rule->text);
}

static bool names_more_hosts(const struct document_statement *by,
			     const struct document_statement *rule)
{
	static const char *const more[] = { "ports", "protocol", "protocols", "private",
					    "upgrade" };

	if (strcmp(by->text, rule->text) == 0 || !document_host_covers(by->text, rule->text))
		return false;
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		const char *said = document_detail(rule, more[i]);

		/* the port that `by` has, which says nothing of ports */
		if (said && strcmp(said, "443") != 0)
			return false;
	}
	return true;
}

static bool names_it(const struct document_statement *by, const struct document_statement *rule)
{
	return strcmp(by->text, rule->text) == 0;
}

static bool passes_it(const struct document_statement *by, const struct document_statement *rule)
{
	return strcmp(by->text, rule->name) == 0;
}

/* What beats a rule wherever it speaks. */
static const struct beating {
	enum document_key by, rule;
	bool (*beats)(const struct document_statement *by, const struct document_statement *rule);
	bool is_by_text; /* what it beats can be found by its text */
	const char *why;
} beatings[] = {
	{ DOCUMENT_HIDE, DOCUMENT_READ, hides, false, "hides it, and hiding beats showing" },
	{ DOCUMENT_HIDE, DOCUMENT_WRITE, hides, false, "hides it, and hiding beats showing" },
	{ DOCUMENT_NET_DENY, DOCUMENT_NET_ALLOW, names_host, true,
	  "denies it, and deny beats allow" },
	{ DOCUMENT_NET_DENY, DOCUMENT_NET_ASK, names_host, true, "denies it, and deny beats ask" },
	{ DOCUMENT_NET_ALLOW, DOCUMENT_NET_ALLOW, names_more_hosts, true, "allows all of it" },
	{ DOCUMENT_EXEC_DENY, DOCUMENT_EXEC_ALLOW, names_it, true,
	  "denies it, and deny beats allow" },
	{ DOCUMENT_PASS, DOCUMENT_SET, passes_it, false, "passes the caller's value" },
};

static bool has_same_details(const struct document_statement *a, const struct document_statement *b)
{
	for (size_t i = 0; i < a->detail_count && i < b->detail_count; i++)
		if (strcmp(a->details[i].field, b->details[i].field) != 0 ||
		    strcmp(a->details[i].text, b->details[i].text) != 0)
			return false;
	return a->detail_count == b->detail_count;
}

static bool says_the_same(const struct document_statement *a, const struct document_statement *b)
{
	if (a->key != b->key || strcmp(a->text, b->text) != 0 ||
	    document_key(a->key)->shape == DOCUMENT_SHAPE_SET)
		return false;
	return document_key(a->key)->shape < DOCUMENT_SHAPE_NETWORK || has_same_details(a, b);
}

static uint32_t hash_of_all(const struct document_statement *statement)
{
	uint32_t hash = document_index_hash(DOCUMENT_INDEX_SEED ^ statement->key, statement->text);

	if (document_key(statement->key)->shape >= DOCUMENT_SHAPE_NETWORK)
		for (size_t i = 0; i < statement->detail_count; i++)
			hash = document_index_hash(hash, statement->details[i].text);
	return hash;
}

/* An id that somebody wrote, not one made of the key. */
static bool has_own_id(const struct document_statement *statement)
{
	return statement->rule.id != document_key(statement->key)->path;
}

static bool has_same_id(const struct document_statement *a, const struct document_statement *b)
{
	return strcmp(a->rule.id, b->rule.id) == 0;
}

/* The latest statement before it that is the same. */
static const struct document_statement *find_same(const struct document_index *index, uint32_t hash,
						  const struct document_statement *statement,
						  bool (*same)(const struct document_statement *a,
							       const struct document_statement *b))
{
	const struct document_index_row *row = NULL;

	do
		row = document_index_find(index, hash, row);
	while (row && !same(row->statement, statement));
	return row ? row->statement : NULL;
}

static void check_repeated(struct document_reading *reading)
{
	const struct document *document = reading->document;
	struct document_index index;

	if (document_index_begin(&index, document->count, reading->arena) < 0)
		return;
	for (size_t i = 0; i < document->count && document_goes_on(reading); i++) {
		const struct document_statement *statement = &document->statements[i], *before;
		uint32_t hash = hash_of_all(statement);

		if (document_key(statement->key)->shape == DOCUMENT_SHAPE_SET)
			continue;
		before = find_same(&index, hash, statement, says_the_same);
		if (before)
			unreachable(reading, statement, before, "says the same");
		document_index_add(&index, hash, statement);
	}
}

static void check_ids(struct document_reading *reading)
{
	const struct document *document = reading->document;
	struct document_index index;

	if (document_index_begin(&index, document->count, reading->arena) < 0)
		return;
	for (size_t i = 0; i < document->count && document_goes_on(reading); i++) {
		const struct document_statement *statement = &document->statements[i];
		uint32_t hash = document_index_hash(DOCUMENT_INDEX_SEED, statement->rule.id);
		const struct document_statement *before =
			find_same(&index, hash, statement, has_same_id);

		if (before && has_own_id(statement))
			document_fault(reading, statement->rule.line, statement->column,
				       "id \"%s\" is that of line %u too", statement->rule.id,
				       before->rule.line);
		/* of those that have the same one, one is enough */
		if (!before || has_own_id(statement))
			document_index_add(&index, hash, statement);
	}
}

/* The rules of the key, in an array of the arena; NULL where there is none. */
static const struct document_statement **rules_of(struct document_reading *reading,
						  enum document_key key, size_t *ret_count)
{
	const struct document *document = reading->document;
	const struct document_statement **rules = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < document->count; i++)
		if (document->statements[i].key == key)
			++*ret_count;
	if (*ret_count)
		rules = arena_array(reading->arena, *ret_count, sizeof(*rules));
	*ret_count = 0;
	for (size_t i = 0; rules && i < document->count; i++)
		if (document->statements[i].key == key)
			rules[(*ret_count)++] = &document->statements[i];
	return rules;
}

struct beaten {
	struct document_reading *reading;
	const struct beating *beating;
	const struct document_statement *by;
};

static void check_pair(const struct beaten *beaten, const struct document_statement *rule)
{
	if (beaten->by != rule && beaten->beating->beats(beaten->by, rule) &&
	    document_goes_on(beaten->reading))
		unreachable(beaten->reading, rule, beaten->by, beaten->beating->why);
}

static void check_those_of(const struct beaten *beaten, const struct document_index *index,
			   const char *text)
{
	uint32_t hash = document_index_hash(DOCUMENT_INDEX_SEED, text);
	const struct document_index_row *row = NULL;

	while ((row = document_index_find(index, hash, row)))
		check_pair(beaten, row->statement);
}

/* A text speaks of itself alone, and "*.org" of what ends so. */
static void check_by_text(const struct beaten *beaten, const struct document_index *index)
{
	const char *text = beaten->by->text;

	check_those_of(beaten, index, text);
	if (strncmp(text, "*.", 2) == 0)
		check_those_of(beaten, index, text + 1);
}

static int index_hosts(struct document_reading *reading,
		       const struct document_statement *const *rules, size_t count,
		       struct document_index *index)
{
	size_t rows = 0;
	int result;

	for (size_t i = 0; i < count; i++)
		rows += document_index_host_rows(rules[i]);
	result = document_index_begin(index, rows, reading->arena);
	for (size_t i = 0; i < count && result == 0; i++)
		document_index_add_host(index, rules[i]);
	return result;
}

static void check_beating(struct document_reading *reading, const struct beating *beating)
{
	struct beaten beaten = { reading, beating, NULL };
	struct document_index index;
	size_t by_count, count;
	const struct document_statement **by = rules_of(reading, beating->by, &by_count);
	const struct document_statement **rules =
		by_count ? rules_of(reading, beating->rule, &count) : NULL;

	if (!rules || (beating->is_by_text && index_hosts(reading, rules, count, &index) < 0))
		return;
	for (size_t i = 0; i < by_count; i++) {
		beaten.by = by[i];
		if (is_narrowed(by[i]))
			continue;
		if (beating->is_by_text)
			check_by_text(&beaten, &index);
		else
			for (size_t j = 0; j < count; j++)
				check_pair(&beaten, rules[j]);
	}
}

static void check_beaten(struct document_reading *reading)
{
	for (size_t row = 0; row < sizeof(beatings) / sizeof(beatings[0]); row++)
		check_beating(reading, &beatings[row]);
}

static void check_network(struct document_reading *reading, const struct document_statement *rule)
{
	const char *why = egress_compile_fault(rule, reading->arena);

	if (why)
		document_fault(reading, rule->rule.line, rule->column, "%s %.200s: %s",
			       document_key(rule->key)->path, rule->text, why);
}

/* A window of time that is over before it opens. */
static void check_window(struct document_reading *reading, const struct document_statement *rule)
{
	const char *from = document_detail(rule, "from"), *until = document_detail(rule, "until");

	if (from && until && strcmp(from, until) > 0)
		document_fault(reading, rule->rule.line, rule->column,
			       "unreachable: it ends on %s, before it begins on %s", until, from);
}

/* How long a live task lives means nothing where there is none. */
static void check_tasks(struct document_reading *reading)
{
	static const enum document_key keys[] = { DOCUMENT_TASKS_IDLE, DOCUMENT_TASKS_LIFETIME };
	const struct document_statement *live =
		document_find(reading->document, DOCUMENT_TASKS_LIVE);

	for (size_t i = 0; live && !live->value && i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct document_statement *rule = document_find(reading->document, keys[i]);

		if (rule)
			unreachable(reading, rule, live, "allows no live task");
	}
}

void document_check_rules(struct document_reading *reading)
{
	const struct document *document = reading->document;

	for (size_t i = 0; i < document->count && document_goes_on(reading); i++) {
		const struct document_statement *rule = &document->statements[i];

		if (rule->key == DOCUMENT_READ || rule->key == DOCUMENT_WRITE)
			check_danger(reading, rule);
		check_network(reading, rule);
		for (size_t j = 0; j < rule->detail_count; j++)
			check_example(reading, rule, &rule->details[j]);
		check_window(reading, rule);
	}
	document_check_decisions(reading);
	check_tasks(reading);
	check_repeated(reading);
	check_ids(reading);
	check_beaten(reading);
}
