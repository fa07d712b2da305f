/*
 * `bawn trace replay`: the recorded requests of one task, or of all since a time, decided again
 * under another policy (broker/replay.h), and what would change. In one pass over each chain, a
 * record at a time, so that memory does not grow with the trace.
 *
 * A verdict on a whole action stands before its intent where the action passed the gate, and
 * behind it where it was refused before; either waits for the other.
 */
#include "cli/trace_verbs.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "broker/replay.h"
#include "cli/page.h"
#include "cli/policy_name.h"
#include "cli/trace_place.h"
#include "trace/scan.h"
#include "trace/when.h"

#include <errno.h>
#include <string.h>

enum {
	OPTION_POLICY,
	OPTION_PRESET,
	OPTION_PURPOSE,
	OPTION_SINCE,
	OPTION_JSON,
	OPTION_STATE_DIR,
};

static const struct option options[] = {
	{ "--policy", "FILE", "the policy file to decide by", false, false, OPTION_POLICY },
	{ "--preset", "NAME",
	  "the built-in policy to decide by: review, develop, ci, browse or quarantine", false,
	  false, OPTION_PRESET },
	{ "--purpose", "WORD", "what the tasks are for: rules with this purpose count, too", false,
	  false, OPTION_PURPOSE },
	{ "--since", "TIME",
	  "requests of all tasks at or after this time: RFC 3339, a day, or how long ago", false,
	  false, OPTION_SINCE },
	{ "--json", NULL, "print JSON, a line for each request that would change, and the counts",
	  false, false, OPTION_JSON },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

/* Of an action, one of the two that belong together, until the other comes. */
struct waiting {
	char action[ACTION_ID_BYTES]; /* "": none */
	struct arena arena;
	const char *verdict, *rule;	/* of the verdict */
	const struct json_node *intent; /* of the intent */
	char time[CLOCK_TEXT_BYTES];
};

struct replaying {
	struct replay replay;
	const char *state_path;
	uint64_t now_ns, since_ns;
	bool has_since, json;
	struct page page;
	struct trace_place *place;
	const char *task;
	char *workspace; /* of the task; in `task_arena` */
	struct arena task_arena;
	struct waiting verdict, intent;
	uint64_t requests, changes, undecided, gone;
};

/* What is told of one request. */
struct told {
	const char *time, *action, *kind, *subject;
	const char *before, *before_rule;
	struct replay_answer *answer;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct replaying *replaying = context;
	struct request *request = &replaying->replay.request;

	switch (option->id) {
	case OPTION_POLICY:
		request->policy_path = value;
		return 0;
	case OPTION_PRESET:
		request->preset = value;
		return 0;
	case OPTION_PURPOSE:
		if (!egress_purpose_check(value))
			return error_set(error, EINVAL, "option --purpose %.40s: not a word",
					 value);
		request->purpose = value;
		return 0;
	case OPTION_SINCE:
		replaying->has_since = true;
		return trace_time_option(option, value, replaying->now_ns, &replaying->since_ns,
					 error);
	case OPTION_JSON:
		replaying->json = true;
		return 0;
	default:
		return trace_state_option(option, value, &replaying->state_path, error);
	}
}

static void put_json(const struct replaying *replaying, const struct told *told,
		     struct buffer *text)
{
	const struct replay_answer *answer = told->answer;
	struct json json;

	json_begin(&json, text);
	json_object(&json, NULL);
	json_string(&json, "time", told->time);
	json_string(&json, "task", replaying->task);
	json_string(&json, "action", told->action);
	json_string(&json, "kind", told->kind);
	json_string(&json, "subject", told->subject);
	json_string(&json, "before", told->before);
	json_string(&json, "before_rule", told->before_rule);
	json_string(&json, "after", answer->verdict);
	json_string(&json, "reason", answer->reason);
	if (answer->verdict)
		rule_json(&answer->rule, "rule", &json);
	else
		json_null(&json, "rule");
	json_object_end(&json);
	buffer_text(text, "\n");
}

/* "2026-11-30T12:00:00" */
#define SECONDS_LENGTH 19

/* "2026-... t-... a-...  allow -> deny  git push", and by what */
static void put_text(const struct replaying *replaying, const struct told *told,
		     struct buffer *text)
{
	const struct replay_answer *answer = told->answer;

	/* the file may be anybody's */
	buffer_visible_bytes(text, told->time, strnlen(told->time, SECONDS_LENGTH));
	buffer_byte(text, ' ');
	buffer_visible(text, replaying->task);
	if (told->action[0]) {
		buffer_byte(text, ' ');
		buffer_visible(text, told->action);
	}
	buffer_text(text, "  ");
	buffer_visible(text, told->before ? told->before : "?");
	buffer_format(text, " -> %s  ",
		      answer->verdict ? answer->verdict : "cannot be decided again");
	buffer_visible(text, told->subject);
	buffer_text(text, "\n    ");
	if (answer->verdict) {
		buffer_text(text, "by ");
		rule_print(&answer->rule, text);
		buffer_text(text, answer->reason[0] ? ": " : "");
	}
	buffer_visible(text, answer->reason);
	if (told->before_rule) {
		buffer_text(text, "; before by ");
		buffer_visible(text, told->before_rule);
	}
	buffer_text(text, "\n");
}

/* What a flag of the task's start decided: flags are not among what is decided by again. */
static void leave_to_flag(const struct told *told)
{
	if (told->before_rule && strncmp(told->before_rule, "flag.", 5) == 0)
		*told->answer = (struct replay_answer){
			.reason = "a flag of the task's start decided, and it is none of a policy's"
		};
}

/* Counts it, and tells what is not as it was. */
static void settle(struct replaying *replaying, const struct told *told)
{
	struct buffer *text = &replaying->page.text;

	leave_to_flag(told);

	replaying->requests++;
	if (told->answer->verdict && told->before &&
	    strcmp(told->answer->verdict, told->before) == 0)
		return;
	if (told->answer->verdict)
		replaying->changes++;
	else
		replaying->undecided++;
	if (replaying->json)
		put_json(replaying, told, text);
	else
		put_text(replaying, told, text);
}

static void forget(struct waiting *waiting)
{
	arena_reset(&waiting->arena);
	waiting->action[0] = '\0';
	waiting->verdict = waiting->rule = NULL;
	waiting->intent = NULL;
}

/* Longer commands are told by their beginning. */
#define SUBJECT_LIMIT_BYTES 400

static const char *command_text(const struct json_node *intent, struct arena *arena)
{
	const struct json_node *list = json_tree_get(intent, "argv");
	struct buffer text = { .arena = arena };

	for (const struct json_node *word = list ? list->first : NULL;
	     word && text.length < SUBJECT_LIMIT_BYTES; word = word->next) {
		size_t room = SUBJECT_LIMIT_BYTES - text.length;
		const char *bytes = word->type == JSON_STRING ? word->text : "?";
		size_t length = strlen(bytes);

		if (text.length)
			buffer_byte(&text, ' ');
		buffer_append(&text, bytes, length < room ? length : room);
	}
	buffer_byte(&text, '\0');
	return text.failed ? "" : text.data;
}

/* before: NULL: nothing on record says what became of the command as a whole. */
static void decide_intent(struct replaying *replaying, struct waiting *intent, const char *before,
			  const char *rule)
{
	struct replay_answer answer;
	struct told told = { .time = intent->time,
			     .action = intent->action,
			     .kind = "command",
			     .before = before,
			     .before_rule = rule,
			     .answer = &answer };

	told.subject = command_text(intent->intent, &intent->arena);
	if (before)
		replay_command(&replaying->replay, replaying->workspace, intent->intent,
			       &intent->arena, &answer);
	else
		answer = (struct replay_answer){
			.reason = "it was refused before its command was looked at"
		};
	settle(replaying, &told);
}

/* An intent whose verdict never came. */
static void flush_intent(struct replaying *replaying)
{
	if (replaying->intent.action[0])
		decide_intent(replaying, &replaying->intent, NULL, NULL);
	forget(&replaying->intent);
}

static void name_of(struct json_view view, char *ret, size_t bytes)
{
	size_t length = view.bytes && view.length < bytes ? view.length : 0;

	memcpy(ret, view.bytes ? view.bytes : "", length);
	ret[length] = '\0';
}

/*
 * Takes the record into what waits: its body as a tree of that arena, which lives longer than the
 * line. False: it is no line.
 */
static bool hold(struct replaying *replaying, const struct trace_line *line,
		 struct waiting *waiting)
{
	struct trace_line again;

	(void)replaying;
	forget(waiting);
	if (trace_line_read(line->raw.bytes, line->raw.length, &waiting->arena, &again,
			    &waiting->intent) < 0)
		return false;
	name_of(line->action, waiting->action, sizeof(waiting->action));
	name_of(line->time, waiting->time, sizeof(waiting->time));
	return waiting->action[0];
}

static void take_verdict(struct replaying *replaying, const struct trace_line *line,
			 const struct json_node *body)
{
	const char *verb = json_tree_text(body, "verb");
	struct waiting *waiting = &replaying->verdict;

	/* those of single requests follow that of the whole */
	if (!verb || strcmp(verb, "process.exec") != 0 || !hold(replaying, line, waiting))
		return;
	waiting->verdict = json_tree_text(waiting->intent, "verdict");
	waiting->rule = json_tree_text(waiting->intent, "rule.id");
	if (!waiting->verdict || strcmp(waiting->action, replaying->intent.action) != 0)
		return;
	decide_intent(replaying, &replaying->intent, waiting->verdict, waiting->rule);
	forget(&replaying->intent);
	forget(waiting);
}

static void take_intent(struct replaying *replaying, const struct trace_line *line)
{
	struct waiting *verdict = &replaying->verdict;

	flush_intent(replaying);
	if (!hold(replaying, line, &replaying->intent))
		return;
	if (!verdict->verdict || strcmp(verdict->action, replaying->intent.action) != 0)
		return;
	decide_intent(replaying, &replaying->intent, verdict->verdict, verdict->rule);
	forget(&replaying->intent);
	forget(verdict);
}

/* Where it began or was stopped; what was told of its end is told of the same. */
static void take_flow(struct replaying *replaying, const struct trace_line *line,
		      const struct json_node *body)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	const char *phase = json_tree_text(body, "phase");
	char action[ACTION_ID_BYTES], time[CLOCK_TEXT_BYTES];
	struct replay_answer answer;
	struct told told = { .time = time,
			     .action = action,
			     .kind = "connection",
			     .before = json_tree_text(body, "verdict"),
			     .before_rule = json_tree_text(body, "rule.id"),
			     .answer = &answer };
	const char *target = json_tree_text(body, "target"), *method, *path;

	if (!phase || strcmp(phase, "closed") == 0)
		return;
	name_of(line->action, action, sizeof(action));
	name_of(line->time, time, sizeof(time));
	method = json_tree_text(body, "method");
	path = json_tree_text(body, "path");
	told.subject = arena_format(&arena, "%s%s%s%s%s", target ? target : "", method ? " " : "",
				    method ? method : "", method && path ? " " : "",
				    method && path ? path : "");
	if (!told.subject)
		told.subject = "";
	replay_flow(&replaying->replay, replaying->workspace, body, &arena, &answer);
	settle(replaying, &told);
}

static void take_line(struct replaying *replaying, const struct trace_line *line,
		      const struct json_node *body)
{
	const char *workspace =
		json_view_is(line->type, "task.start") ? json_tree_text(body, "workspace") : NULL;
	uint64_t at = 0;

	if (workspace)
		replaying->workspace = arena_copy(&replaying->task_arena, workspace);
	if (replaying->has_since && when_parse(line->time.bytes, line->time.length, &at) &&
	    at < replaying->since_ns)
		return;
	if (json_view_is(line->type, "verdict"))
		take_verdict(replaying, line, body);
	else if (json_view_is(line->type, "action.intent"))
		take_intent(replaying, line);
	else if (json_view_is(line->type, "net.flow"))
		take_flow(replaying, line, body);
}

/* 0, or a negative errno of the output or of reading. */
static int replay_chain(struct replaying *replaying, const char *task, int fd)
{
	static const char *const types[] = { "\"type\":\"task.start\"", "\"type\":\"verdict\"",
					     "\"type\":\"action.intent\"",
					     "\"type\":\"net.flow\"" };
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	struct scan_needles needles = { .count = 0 };
	const struct json_node *body;
	struct scan_line found;
	struct trace_line line;
	int result = 0, got;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		(void)scan_add(&needles, types[i], strlen(types[i]), 0);
	arena_reset(&replaying->task_arena);
	replaying->task = task;
	replaying->workspace = NULL;
	forget(&replaying->verdict);
	scan_begin(&scan, fd, &needles, 0, 1);
	while (result == 0 && (got = scan_next(&scan, &found)) != 0) {
		if (got < 0) {
			trace_complain("%s: %s", replaying->place->file.name, error_text(got));
			return got;
		}
		if (!trace_place_line(replaying->place, &found, &line, &body))
			continue;
		take_line(replaying, &line, body);
		result = page_put(&replaying->page);
	}
	flush_intent(replaying);
	trace_place_told(replaying->place);
	return result;
}

static int replay_tasks(struct replaying *replaying, const struct catalogue *catalogue,
			const char *only)
{
	int result = 0;

	for (size_t i = 0; i < catalogue->count && result == 0; i++) {
		const struct catalogue_task *task = &catalogue->tasks[i];
		int CLEANUP_FD fd = -1;

		if (only ? strcmp(task->id, only) != 0 :
			   task->ended_ns && task->ended_ns < replaying->since_ns)
			continue;
		if (!task->has_chain || trace_place_chain(replaying->place, task->id, &fd) < 0) {
			replaying->gone++;
			trace_complain("task %s: its records are not there (%s), so nothing of it "
				       "can be decided again",
				       task->id, trace_place_state(replaying->place, task));
			continue;
		}
		result = replay_chain(replaying, task->id, fd);
	}
	return result;
}

static void put_counts(struct replaying *replaying)
{
	struct buffer *text = &replaying->page.text;
	struct json json;

	if (replaying->json) {
		json_begin(&json, text);
		json_object(&json, NULL);
		json_unsigned(&json, "version", 1);
		json_unsigned(&json, "requests", replaying->requests);
		json_unsigned(&json, "changes", replaying->changes);
		json_unsigned(&json, "undecided", replaying->undecided);
		json_unsigned(&json, "tasks_gone", replaying->gone);
		json_object_end(&json);
		buffer_text(text, "\n");
		return;
	}
	buffer_format(text, "%llu of %llu requests would change",
		      (unsigned long long)replaying->changes,
		      (unsigned long long)replaying->requests);
	if (replaying->undecided)
		buffer_format(text, "; %llu cannot be decided again",
			      (unsigned long long)replaying->undecided);
	if (replaying->gone)
		buffer_format(text, "; of %llu tasks the records are gone",
			      (unsigned long long)replaying->gone);
	buffer_text(text, "\n");
}

/* Told once, and not as that of each request. */
static int check_policy(const struct replaying *replaying)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	const struct request *request = &replaying->replay.request;
	struct policy_stack stack;
	int status = policy_name_load(request->policy_path ? request->policy_path : request->preset,
				      &arena, &stack);

	return status == 1 ? 2 : status;
}

static int run(struct replaying *replaying, struct trace_place *place, const char *word)
{
	struct catalogue CLEANUP_CATALOGUE catalogue = { 0 };
	struct trace_found found = { .task = "" };
	int status = check_policy(replaying), result;

	if (status == 0)
		status = trace_place_open(place, replaying->state_path);
	if (status == 0 && word)
		status = trace_place_find(place, word, false, &found);
	if (status == 0)
		status = trace_place_catalogue(place, &catalogue);
	if (status)
		return status == 1 ? 2 : status;
	replaying->place = place;
	replaying->replay.request.state_path = replaying->state_path;
	replaying->replay.request.only_decides = true;
	page_open(&replaying->page, !replaying->json);
	result = replay_tasks(replaying, &catalogue, word ? found.task : NULL);
	put_counts(replaying);
	result = page_close(&replaying->page, result);
	if (result < 0) {
		trace_complain("what would change could not be printed: %s", error_text(result));
		return 125;
	}
	return replaying->changes || replaying->undecided || replaying->gone;
}

static int replay_verb(int argc, char **argv)
{
	struct replaying replaying = { .replay = REPLAY_NONE,
				       .now_ns = clock_wall_ns(),
				       .page = PAGE_NONE };
	struct trace_place CLEANUP_TRACE_PLACE place = TRACE_PLACE_NONE;
	const struct request *request = &replaying.replay.request;
	struct error error = ERROR_NONE;
	int first, status;

	first = options_parse(&verb_trace_replay, argc, argv, take, &replaying, &error);
	if (first < 0) {
		complain(error.message);
		return 2;
	}
	if (argc - first > 1 || (argc - first == 1) == replaying.has_since ||
	    !request->policy_path == !request->preset) {
		complain("usage: bawn trace replay TASK|--since TIME --policy FILE|--preset NAME");
		return 2;
	}
	status = run(&replaying, &place, first < argc ? argv[first] : NULL);
	replay_end(&replaying.replay);
	arena_free(&replaying.verdict.arena);
	arena_free(&replaying.intent.arena);
	arena_free(&replaying.task_arena);
	return status;
}

const struct verb verb_trace_replay = {
	.name = "trace replay",
	.synopsis = "[TASK]",
	.summary = "Decide recorded commands and connections again under another policy, and tell "
		   "what would change; runs nothing.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 nothing would change; 1 something would, or cannot be decided again; 2 "
		       "wrong use, no such task or no policy; 125 bawn itself failed",
	.run = replay_verb,
};
