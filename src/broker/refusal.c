#include "broker/refusal.h"

#include "base/error.h"
#include "broker/effective.h"
#include "trace/recorder.h"

#include <string.h>
#include <unistd.h>

static int emit(struct recorder *recorder, struct event *event, const char *action)
{
	event->task = recorder->task;
	event->action = action;
	return event_emit(&recorder->sink, event);
}

static int emit_request(struct recorder *recorder, const struct effective *effective,
			const struct request *request, const struct action *action)
{
	struct event start = { .type = EVENT_TASK_START,
			       .body.task_start = { .kind = action->argc ? "run" : "live",
						    .workspace = effective->workspace,
						    .tier = tier_name(effective->tier.tier),
						    .reason = "refused before the start",
						    .uid = effective->host.uid,
						    .gid = effective->host.gid,
						    .host_root = effective->host.root,
						    .meta = request->meta } };
	bool has_policy = effective->blob && effective->policy.cwd;
	struct event intent = { .type = EVENT_ACTION_INTENT,
				.body.intent = { .action = action, .meta = request->meta } };
	int result;

	if (has_policy) {
		start.body.task_start.policy_hash = effective->hash;
		start.body.task_start.policy = &effective->policy;
		start.body.task_start.policy_blob = effective->blob;
		start.body.task_start.policy_bytes = effective->blob_length;
		start.body.task_start.withheld = effective->withheld;
		start.body.task_start.withheld_count = effective->withheld_count;
	}
	result = emit(recorder, &start, "");
	return result < 0 || !action->argc ? result : emit(recorder, &intent, action->id);
}

/* Of the gate (broker/gate.h). */
static int emit_verdicts(struct recorder *recorder, const struct result *result, const char *action)
{
	int outcome = 0;

	for (size_t i = 0; i < result->verdict_count && outcome == 0; i++) {
		struct event event = { .type = EVENT_VERDICT, .body.verdict = result->verdicts[i] };

		outcome = emit(recorder, &event, action);
	}
	return outcome;
}

static int emit_denials(struct recorder *recorder, const struct denial_list *denials,
			const char *action)
{
	int result = 0;

	for (uint32_t i = 0; i < denials->count && result == 0; i++) {
		const struct denial *denial = &denials->items[i];
		const struct denial_text *text = denial_text(denial->kind);
		struct event verdict = { .type = EVENT_VERDICT,
					 .body.verdict = { .verdict = "deny",
							   .verb = text->verb,
							   .target = denial->object,
							   .reason = text->message,
							   .rule = denial->rule } };
		struct event event = { .type = EVENT_DENIAL, .body.denial = denial };
		bool is_told = denial->kind == DENIAL_COMMAND_DENIED ||
			       denial->kind == DENIAL_ISOLATION_TIER;
		bool was_judged = is_told || denial->kind == DENIAL_COMMAND_ASKED ||
				  denial->kind == DENIAL_ISOLATION_ASKED;
		/* each of these was asked about (approval_ask()), and nobody is there to answer */
		struct event approval = { .type = EVENT_APPROVAL,
					  .body.approval = { .verb = text->verb,
							     .target = denial->object,
							     .shown = "",
							     .answer = "deny" } };

		if (!is_told)
			result = emit(recorder, &approval, action);
		if (result == 0 && !was_judged)
			result = emit(recorder, &verdict, action);
		if (result == 0)
			result = emit(recorder, &event, action);
	}
	return result;
}

void refusal_record(const struct effective *effective, const struct request *request,
		    const char *const *argv, const struct denial_list *denials,
		    const struct result *result, struct arena *arena)
{
	static const char *const none[] = { NULL };
	struct recorder CLEANUP_RECORDER recorder = RECORDER_NONE;
	/* where the policy stood already the environment is known, and what in it is secret */
	struct action action = { .argv = argv ? argv : none,
				 .cwd = effective->cwd ? effective->cwd : request->cwd,
				 .environ = result->action ? result->action->environ : none };
	struct error ignored = ERROR_NONE;
	struct event final = { .type = EVENT_ACTION_RESULT, .body.result = result };
	int outcome;

	if (request->unrecorded || effective->unrecorded || effective->state.fd < 0 ||
	    (!result->action && effective_make_id('t', action.task) < 0))
		return;
	if (result->action)
		memcpy(action.task, result->action->task, sizeof(action.task));
	/* of a task of one action: the same letters */
	memcpy(action.id, action.task, sizeof(action.id));
	action.id[0] = 'a';
	while (action.argv[action.argc])
		action.argc++;
	outcome = recorder_begin(&recorder,
				 &(struct recorder_options){ .state_fd = effective->state.fd,
							     .task = action.task,
							     .environment = environ,
							     .arena = arena },
				 &ignored);
	if (outcome == 0)
		outcome = emit_request(&recorder, effective, request, &action);
	if (outcome == 0)
		outcome = emit_verdicts(&recorder, result, action.id);
	if (outcome == 0)
		outcome = emit_denials(&recorder, denials, action.argc ? action.id : "");
	if (outcome == 0 && action.argc)
		outcome = emit(&recorder, &final, action.id);
	(void)!event_end(&recorder.sink, "refused", &ignored);
}
