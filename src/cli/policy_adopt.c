/*
 * `bawn policy adopt`: shows in words what a project's .bawn.yaml would change, and takes it over
 * into the user's store when the user says so. Nothing inside of a box can.
 */
#include "cli/policy_verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/state.h"
#include "cli/confirm.h"
#include "cli/policy_tell.h"
#include "policy/compare.h"
#include "trace/decision.h"
#include "workspace/host.h"
#include "workspace/policy_adopt.h"
#include "workspace/policy_layers.h"
#include "workspace/root.h"

#include <errno.h>
#include <stdio.h>

enum { OPTION_YES, OPTION_DROP, OPTION_WORKSPACE, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--yes", NULL, "do not ask", false, false, OPTION_YES },
	{ "--drop", NULL, "let go of what was adopted for this workspace", false, false,
	  OPTION_DROP },
	{ "--workspace", "DIR",
	  "the project; default: the git root around the current directory, or that directory",
	  false, false, OPTION_WORKSPACE },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct adopting {
	struct arena *arena;
	const char *workspace_option, *state_path;
	bool is_yes, drops;
	struct caller host;
	struct state state; /* owned */
	struct root root;
	struct policy_layers layers; /* as they are now */
	struct policy_file proposal;
	struct document_faults faults;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct adopting *adopting = context;

	(void)error;
	switch (option->id) {
	case OPTION_YES:
		adopting->is_yes = true;
		break;
	case OPTION_DROP:
		adopting->drops = true;
		break;
	case OPTION_WORKSPACE:
		adopting->workspace_option = value;
		break;
	default:
		adopting->state_path = value;
	}
	return 0;
}

static int find(struct adopting *adopting, struct error *error)
{
	struct policy_asked asked = { 0 };
	int result = host_gather(adopting->arena, &adopting->host, error);

	if (result == 0 && adopting->host.inside)
		return error_set(error, EPERM,
				 "inside of a box no policy is adopted; use this verb on the host");
	if (result == 0)
		result = root_find(&adopting->host, adopting->workspace_option, NULL,
				   adopting->arena, &adopting->root, error);
	asked.workspace = adopting->root.path;
	if (result == 0)
		result = policy_layers_load(&adopting->host, &asked, -1, adopting->arena,
					    &adopting->layers, &adopting->faults, error);
	if (result == 0 && !adopting->layers.store)
		return error_set(error, EOPNOTSUPP,
				 "the caller has no home, and so no place for a policy of its own");
	if (result == 0)
		result = state_open(&adopting->host, adopting->state_path, adopting->arena,
				    &adopting->state, error);
	return result;
}

/* The layers without what is adopted, and with the proposal where one is given. */
static int layers_with(const struct adopting *adopting, const struct policy_stack *stack,
		       struct policy_layers *ret_layers, struct error *error)
{
	struct policy_layers layers = { .store = adopting->layers.store };
	int result = 0;

	for (size_t i = 0; i < adopting->layers.count && result == 0; i++)
		if (adopting->layers.rows[i].authority != AUTHORITY_PROJECT)
			result = policy_layers_add(&layers, adopting->layers.rows[i].authority,
						   &adopting->layers.rows[i].stack, adopting->arena,
						   error);
	if (result == 0 && stack)
		result = policy_layers_add(&layers, AUTHORITY_PROJECT, stack, adopting->arena,
					   error);
	if (result == 0)
		result = policy_layers_join(&layers, adopting->arena, error);
	*ret_layers = layers;
	return result;
}

/* What needs something that this build lacks would end every start here. */
static int check_built(const struct adopting *adopting, struct error *error)
{
	const struct document *document = &adopting->proposal.document;

	for (size_t i = 0; i < document->count; i++) {
		const struct document_statement *statement = &document->statements[i];
		const char *missing = document_missing(statement, adopting->arena);

		if (missing)
			return error_set(error, EOPNOTSUPP,
					 "%s:%u:%u: %s needs %s, which this build lacks: nothing "
					 "would start here, so it is not adopted",
					 statement->rule.file, statement->rule.line,
					 statement->column, document_key(statement->key)->path,
					 missing);
		missing = document_unbuilt(statement, adopting->arena);
		if (missing)
			return error_set(error, EOPNOTSUPP,
					 "%s:%u:%u: %s %s: nothing would start here, so it is not "
					 "adopted",
					 statement->rule.file, statement->rule.line,
					 statement->column, document_key(statement->key)->path,
					 missing);
	}
	return 0;
}

static int show(const struct adopting *adopting, const struct policy_layers *after,
		struct error *error)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct differences differences;
	const char *name = adopting->drops ? "without what was adopted, a start here" :
					     adopting->proposal.path;

	if (compare_documents(&adopting->layers.document, &after->document, adopting->arena,
			      &differences) < 0)
		return error_errno(error, ENOMEM, "comparing the policies");
	policy_tell(&differences, name, &text);
	if (!differences.count) {
		buffer_visible(&text, name);
		buffer_text(&text, " changes nothing of what is allowed here\n");
	}
	if (text.failed || fd_write_all(1, text.data, text.length) < 0)
		return error_set(error, EIO, "the difference could not be printed");
	return 0;
}

static int change(const struct adopting *adopting, struct error *error)
{
	return adopting->drops ? adopt_drop(adopting->layers.store, adopting->root.path,
					    adopting->arena, error) :
				 adopt_keep(adopting->layers.store, adopting->root.path,
					    &adopting->proposal, adopting->arena, error);
}

/* On record before and after: it decides about every later start here. */
static int change_recorded(const struct adopting *adopting, struct error *error)
{
	const struct decision_asked asked = { .verb = adopting->drops ? "policy adopt --drop" :
									"policy adopt",
					      .workspace = adopting->root.path };
	struct decision_item item = { .kind = "policy", .outcome = "ready" };
	struct decision CLEANUP_DECISION decision = DECISION_NONE;
	struct decision_list before = { 0 }, after = { 0 };
	struct error own = ERROR_NONE;
	int result, told;

	item.path = arena_format(adopting->arena, "%s/" ADOPT_NAME, adopting->root.path);
	if (!item.path)
		return error_errno(error, ENOMEM, "adopting the policy");
	if (!adopting->drops)
		sha256_text(adopting->proposal.text, adopting->proposal.length, item.after);
	result = decision_list_add(&before, adopting->arena, &item);
	if (result == 0)
		result = decision_open(adopting->state.fd, &asked, &decision, error);
	if (result == 0)
		result = decision_intend(&decision, &before, error);
	if (result < 0)
		return result;
	result = change(adopting, error);
	item.outcome = result < 0 ? "failed" : adopting->drops ? "dropped" : "applied";
	told = decision_list_add(&after, adopting->arena, &item);
	if (told == 0)
		told = decision_settle(&decision, &after, result < 0 ? error->message : NULL, &own);
	if (told < 0 && result == 0)
		return error_set(error, -told, "it is done, but that is not on record: %s",
				 own.message);
	return result;
}

static int prepare(struct adopting *adopting, struct policy_layers *ret_after, struct error *error)
{
	struct policy_stack stack;
	int result;

	if (adopting->drops) {
		if (!adopt_is_kept(adopting->layers.store, adopting->root.path, adopting->arena))
			return error_set(error, ENOENT, "nothing is adopted for %s",
					 adopting->root.path);
		return layers_with(adopting, NULL, ret_after, error);
	}
	result = adopt_read(&adopting->host, adopting->root.path, adopting->arena,
			    &adopting->proposal, &adopting->faults, error);
	if (result == 0)
		result = check_built(adopting, error);
	if (result == 0)
		result = policy_stack_make(&adopting->host, &adopting->proposal, NULL, -1,
					   adopting->arena, &stack, error);
	return result == 0 ? layers_with(adopting, &stack, ret_after, error) : result;
}

static int adopt(struct adopting *adopting, int *ret_status, struct error *error)
{
	struct policy_layers after;
	int result = find(adopting, error);

	if (result == 0)
		result = prepare(adopting, &after, error);
	if (result == 0)
		result = show(adopting, &after, error);
	if (result < 0)
		return result;
	if (!confirm(adopting->drops ? "Let go of it?" : "Adopt it for every later start here?",
		     adopting->is_yes, ret_status))
		return 0;
	result = change_recorded(adopting, error);
	if (result == 0)
		(void)printf("%s\n", adopting->drops ? "dropped" : "adopted");
	return result;
}

static void complain_of_faults(const struct adopting *adopting)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	document_print_faults(&adopting->faults, ADOPT_NAME, &text);
	print_buffer(&text);
}

static int adopt_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct adopting adopting = { .arena = &arena, .state = STATE_NONE };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_policy_adopt, argc, argv, take, &adopting, &error);
	int status = 0, result;

	if (first < 0 || first < argc) {
		complain(first < 0 ? error.message : "usage: bawn policy adopt [--yes] [--drop]");
		return 2;
	}
	result = adopt(&adopting, &status, &error);
	if (result == -EINVAL && adopting.faults.count && adopting.state.fd >= 0)
		complain_of_faults(&adopting);
	else if (result < 0)
		complain(error.message);
	state_close(&adopting.state);
	return result == 0						 ? status :
	       result == -ENOMEM || result == -EBADMSG || result == -EIO ? 125 :
									   1;
}

const struct verb verb_policy_adopt = {
	.name = "policy adopt",
	.synopsis = "",
	.summary =
		"Show what a project's .bawn.yaml would change, and take it over for later starts.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 done; 1 not done: there is none, it is no policy, it is not to be, or "
		       "this is inside of a box; 2 wrong use; 125 bawn itself failed",
	.run = adopt_verb,
};
