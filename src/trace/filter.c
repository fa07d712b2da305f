#include "trace/filter.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "trace/read.h"
#include "trace/when.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct maker {
	struct scan_needles *needles;
	struct arena *arena;
	unsigned group;
};

/* Text as it stands in a line: before, the text with its escapes, behind. */
static void add(struct maker *maker, const char *before, const char *text, const char *behind)
{
	struct buffer CLEANUP_BUFFER quoted = { 0 };
	struct json json;
	char *needle;

	json_begin(&json, &quoted);
	json_string(&json, NULL, text);
	if (quoted.failed || quoted.length < 2)
		return;
	quoted.data[quoted.length - 1] = '\0';
	needle = arena_format(maker->arena, "%s%s%s", before, quoted.data + 1, behind);
	if (needle)
		(void)scan_add(maker->needles, needle, strlen(needle), maker->group);
}

static void add_type(struct maker *maker, const char *type)
{
	add(maker, "\"type\":\"", type, "\"");
}

static bool wants_results(const struct filter *filter)
{
	return filter->exit != FILTER_EXIT_ANY ||
	       (filter->type && strcmp(filter->type, "action.result") == 0);
}

static bool is_any(const char *word)
{
	return strcmp(word, "any") == 0;
}

bool filter_needles(const struct filter *filter, struct arena *arena, struct scan_needles *needles)
{
	struct maker maker = { .needles = needles, .arena = arena };

	if (filter->action) {
		add(&maker, "\"action\":\"", filter->action, "\"");
		maker.group++;
	}
	if (filter->type) {
		add_type(&maker, filter->type);
		maker.group++;
	}
	if (filter->exit != FILTER_EXIT_ANY) {
		add_type(&maker, "action.result");
		maker.group++;
	}
	if (filter->verdict) {
		add(&maker, "\"verdict\":\"", filter->verdict, "\"");
		if (strcmp(filter->verdict, "deny") == 0)
			add_type(&maker, "denial");
		maker.group++;
	}
	if (filter->rule) {
		add(&maker, "\"id\":\"", filter->rule, "\"");
		add(&maker, "\"file\":\"", filter->rule, "\"");
		maker.group++;
	}
	if (filter->host) {
		add(&maker, "\"verb\":\"net.", "", "");
		maker.group++;
	}
	if (filter->path) {
		add(&maker, "", filter->path, "");
		maker.group++;
	}
	if (filter->limit) {
		if (is_any(filter->limit))
			add(&maker, "\"limit\":\"", "", "");
		else
			add(&maker, "\"limit\":\"", filter->limit, "\"");
		maker.group++;
	}
	if (filter->text && filter->text[0])
		add(&maker, "", filter->text, "");
	return !arena_failed(arena);
}

bool filter_may_match(const struct filter *filter, const char *bytes, size_t length)
{
	static const char before[] = ",\"time\":\"";
	char since[CLOCK_TEXT_BYTES], until[CLOCK_TEXT_BYTES];
	const size_t time_length = sizeof(since) - 1;
	const char *time;

	if (!filter->since_ns && filter->until_ns == UINT64_MAX)
		return true;
	time = memmem(bytes, length < 64 ? length : 64, before, sizeof(before) - 1);
	if (!time || (size_t)(bytes + length - time) < sizeof(before) - 1 + time_length)
		return true;
	time += sizeof(before) - 1;
	/* times of one form are in the order of their bytes */
	if (time[time_length - 1] != 'Z')
		return true;
	clock_text(filter->since_ns, since);
	clock_text(filter->until_ns, until);
	return memcmp(time, since, time_length) >= 0 &&
	       (filter->until_ns == UINT64_MAX || memcmp(time, until, time_length) < 0);
}

static bool is_type(const struct trace_line *line, const char *type)
{
	return json_view_is(line->type, type);
}

static bool is_text(const struct json_node *body, const char *path, const char *text)
{
	const char *found = json_tree_text(body, path);

	return found && strcmp(found, text) == 0;
}

static bool matches_exit(const struct filter *filter, const struct json_node *body)
{
	uint64_t status = json_tree_unsigned(body, "status", UINT64_MAX);

	switch (filter->exit) {
	case FILTER_EXIT_STATUS:
		return status == filter->exit_status;
	case FILTER_EXIT_FAILED:
		return status != 0;
	case FILTER_EXIT_KIND:
		return is_text(body, "end.kind", filter->exit_kind);
	default:
		return true;
	}
}

static bool matches_rule(const struct json_node *item, const char *rule)
{
	return is_text(item, "rule.id", rule) || is_text(item, "rule.file", rule);
}

static bool host_matches(const char *object, const char *wanted)
{
	const char *begin = object, *scheme = strstr(object, "://"), *at;
	size_t length, wanted_length = strlen(wanted);

	if (scheme)
		begin = scheme + 3;
	length = strcspn(begin, "/?#");
	at = memchr(begin, '@', length);
	if (at) {
		length -= (size_t)(at + 1 - begin);
		begin = at + 1;
	}
	/* "[::1]:443", "example.com:443", "::1" */
	if (length && begin[0] == '[') {
		begin++;
		length = strcspn(begin, "]");
	} else if (memchr(begin, ':', length) == memrchr(begin, ':', length)) {
		length = length < strcspn(begin, ":") ? length : strcspn(begin, ":");
	}
	if (wanted[0] == '.')
		return length > wanted_length &&
		       strncasecmp(begin + length - wanted_length, wanted, wanted_length) == 0;
	return length == wanted_length && strncasecmp(begin, wanted, length) == 0;
}

/* What an item of any kind is about: a denial's object, a verdict's or approval's target. */
static const char *object_of(const struct json_node *item)
{
	const char *object = json_tree_text(item, "object");

	return object ? object : json_tree_text(item, "target");
}

static bool matches_host(const struct json_node *item, const char *host)
{
	const char *verb = json_tree_text(item, "verb"), *object = object_of(item);

	return verb && object && strncmp(verb, "net.", 4) == 0 && host_matches(object, host);
}

static bool path_matches(const char *found, const char *wanted)
{
	size_t length = strlen(wanted);

	while (length > 1 && wanted[length - 1] == '/')
		length--;
	return found && strncmp(found, wanted, length) == 0 &&
	       (found[length] == '\0' || found[length] == '/' || wanted[length - 1] == '/');
}

static bool matches_path(const struct json_node *item, const char *path)
{
	const char *verb = json_tree_text(item, "verb");

	if (verb && strncmp(verb, "net.", 4) != 0 && path_matches(object_of(item), path))
		return true;
	/* of a request: not of this host's files */
	if (verb && strncmp(verb, "net.", 4) == 0)
		return false;
	return path_matches(json_tree_text(item, "path"), path) ||
	       path_matches(json_tree_text(item, "executable.path"), path);
}

static bool matches_limit(const struct json_node *item, const char *limit)
{
	return is_any(limit) ? json_tree_text(item, "limit") != NULL :
			       is_text(item, "limit", limit);
}

static bool is_decision(const struct trace_line *line)
{
	return is_type(line, "decision") || is_type(line, "decision.end");
}

/* True where the record itself, or of a result or decision one of a list, is what is wanted. */
static bool matches_any(const struct filter *filter, const struct trace_line *line,
			const struct json_node *body, const char *const *lists,
			bool (*matches)(const struct json_node *, const char *), const char *wanted)
{
	if (!wanted)
		return true;
	if (!is_type(line, "action.result") && !is_decision(line))
		return matches(body, wanted);
	for (; (is_decision(line) || wants_results(filter)) && *lists; lists++) {
		const struct json_node *list = json_tree_get(body, *lists);

		for (const struct json_node *item = list ? list->first : NULL; item;
		     item = item->next)
			if (matches(item, wanted))
				return true;
	}
	return false;
}

static bool matches_verdict(const struct filter *filter, const struct trace_line *line,
			    const struct json_node *body)
{
	if (!filter->verdict)
		return true;
	if (is_type(line, "denial"))
		return strcmp(filter->verdict, "deny") == 0;
	return is_text(body, "verdict", filter->verdict);
}

static bool node_holds(const struct json_node *node, const char *text)
{
	return node->type == JSON_STRING && node->text &&
	       memmem(node->text, node->length, text, strlen(text)) != NULL;
}

/* Goes through all strings without recursion: a stack of where to go on. */
static bool holds_text(const struct json_node *root, const char *text)
{
	const struct json_node *stack[JSON_READ_LIMIT_DEPTH + 1];
	unsigned depth = 0;

	stack[0] = root ? root->first : NULL;
	for (;;) {
		const struct json_node *node = stack[depth];

		if (!node) {
			if (!depth)
				return false;
			depth--;
			continue;
		}
		stack[depth] = node->next;
		if (node_holds(node, text) || (node->name && strstr(node->name, text)))
			return true;
		if (node->first && depth < JSON_READ_LIMIT_DEPTH)
			stack[++depth] = node->first;
	}
}

static bool matches_envelope(const struct filter *filter, const struct trace_line *line)
{
	uint64_t wall_ns;

	if (filter->since_ns || filter->until_ns != UINT64_MAX)
		if (!when_parse(line->time.bytes, line->time.length, &wall_ns) ||
		    wall_ns < filter->since_ns || wall_ns >= filter->until_ns)
			return false;
	return (!filter->task || (line->task.bytes && json_view_is(line->task, filter->task))) &&
	       (!filter->action ||
		(line->action.bytes && json_view_is(line->action, filter->action))) &&
	       (!filter->type || is_type(line, filter->type));
}

bool filter_matches(const struct filter *filter, const struct trace_line *line,
		    const struct json_node *body)
{
	static const char *const of_rules[] = { "denials", NULL };
	static const char *const of_paths[] = { "denials", "changes", "items", NULL };
	static const char *const of_limits[] = { "limits_reached", NULL };

	return matches_envelope(filter, line) &&
	       (filter->exit == FILTER_EXIT_ANY ||
		(is_type(line, "action.result") && matches_exit(filter, body))) &&
	       matches_verdict(filter, line, body) &&
	       matches_any(filter, line, body, of_rules, matches_rule, filter->rule) &&
	       matches_any(filter, line, body, of_rules, matches_host, filter->host) &&
	       matches_any(filter, line, body, of_paths, matches_path, filter->path) &&
	       matches_any(filter, line, body, of_limits, matches_limit, filter->limit) &&
	       (!filter->text || !filter->text[0] || holds_text(body, filter->text));
}
