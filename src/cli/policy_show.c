/* `bawn policy show`: what a policy says, and what a start here would make of it. */
#include "cli/policy_verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/binding.h"
#include "broker/effective.h"
#include "cli/policy_name.h"

enum { OPTION_EFFECTIVE, OPTION_SOURCE, OPTION_WORKSPACE, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--effective", NULL,
	  "what a start here would have: built-in defaults and facts of this host included", false,
	  false, OPTION_EFFECTIVE },
	{ "--source", NULL, "print the text itself, as of a preset to go on from", false, false,
	  OPTION_SOURCE },
	{ "--workspace", "DIR",
	  "the writable directory; default: the git root around the current directory, or that "
	  "directory",
	  false, false, OPTION_WORKSPACE },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct showing {
	struct arena *arena;
	struct request request;
	bool effective, source;
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct showing *showing = context;

	(void)error;
	switch (option->id) {
	case OPTION_EFFECTIVE:
		showing->effective = true;
		break;
	case OPTION_SOURCE:
		showing->source = true;
		break;
	case OPTION_WORKSPACE:
		showing->request.workspace = value;
		break;
	default:
		showing->request.state_path = value;
	}
	return 0;
}

/* layers NULL: which layer says so is not of interest. */
static void end_line(const struct rule_ref *rule, const struct policy_layers *layers,
		     struct buffer *buffer)
{
	enum authority authority = layers ? policy_layers_of(layers, rule->file) : AUTHORITY_COUNT;

	buffer_text(buffer, "  [");
	rule_print(rule, buffer);
	if (authority < AUTHORITY_COUNT)
		buffer_format(buffer, ", %s", authority_name(authority));
	buffer_text(buffer, "]\n");
}

/* "filesystem.hide: **\/.env  ["filesystem.hide" policy.yaml:4]" for each statement. */
static void print_said(const struct showing *showing, const struct document *document,
		       const struct policy_layers *layers, struct buffer *buffer)
{
	for (size_t i = 0; i < document->count; i++) {
		const struct document_statement *statement = &document->statements[i];
		const char *unbuilt = document_unbuilt(statement, showing->arena);

		if (layers)
			buffer_format(buffer, "%-9s", "says");
		buffer_format(buffer, "%s: ", document_key(statement->key)->path);
		if (statement->name)
			buffer_format(buffer, "%s=", statement->name);
		/* the value of a variable may be a secret */
		buffer_visible(buffer, layers && statement->name ? "..." : statement->text);
		for (size_t j = 0; j < statement->detail_count; j++) {
			buffer_format(buffer, ", %s ", statement->details[j].field);
			buffer_visible(buffer, statement->details[j].text);
		}
		if (unbuilt) {
			buffer_text(buffer, " (not built: ");
			buffer_visible(buffer, unbuilt);
			buffer_text(buffer, ")");
		}
		end_line(&statement->rule, layers, buffer);
	}
}

/* "layer    managed       /etc/bawn/policy.d/10-site.yaml" */
static void print_layers(const struct policy_layers *layers, struct buffer *buffer)
{
	for (size_t i = 0; i < layers->count; i++) {
		const struct policy_stack *stack = &layers->rows[i].stack;

		for (size_t j = 0; j < stack->count; j++) {
			buffer_format(buffer, "%-9s%-14s", "layer",
				      authority_name(layers->rows[i].authority));
			buffer_visible(buffer, stack->files[j].document.file);
			buffer_text(buffer, "\n");
		}
	}
}

static void print_limits(const struct policy *policy, const struct policy_layers *layers,
			 struct buffer *buffer)
{
	const struct rule_ref builtin = rule_builtin(RULE_LIMIT_DEFAULT);

	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
		uint32_t rule = policy->limit_rules[limit];

		buffer_format(buffer, "%-9s%s: ", "limit", limit_text(limit)->word);
		limit_print(limit, policy->limits.values[limit], buffer);
		end_line(rule ? &policy->rules[rule] : &builtin, layers, buffer);
	}
}

static void print_effective(const struct showing *showing, const struct effective *effective,
			    struct buffer *buffer)
{
	const struct policy *policy = &effective->policy;
	const struct policy_layers *layers = &effective->binding->layers;

	buffer_format(buffer, "policy   %s\n", effective->hash);
	print_layers(layers, buffer);
	print_said(showing, &layers->document, layers, buffer);
	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *row = &policy->view.paths[i];

		buffer_format(buffer, "%-9s", path_class_name(row->class));
		buffer_visible(buffer, row->target);
		end_line(&policy->rules[row->rule], layers, buffer);
	}
	/* their values may be secrets */
	for (size_t i = 0; i < policy->variable_count; i++) {
		buffer_format(buffer, "%-9s%s", "variable", policy->variables[i].name);
		end_line(&policy->rules[policy->variables[i].rule], layers, buffer);
	}
	print_limits(policy, layers, buffer);
}

static int show_effective(struct showing *showing, const char *word, struct buffer *text)
{
	struct effective CLEANUP_EFFECTIVE effective = EFFECTIVE_NONE;
	struct error error = ERROR_NONE;
	enum effective_failure failure = EFFECTIVE_BROKEN;

	if (word && policy_name_is_preset(word))
		showing->request.preset = word;
	else
		showing->request.policy_path = word;
	if (effective_make(&showing->request, showing->arena, &effective, &failure, NULL, &error) <
	    0) {
		complain(error.message);
		return failure == EFFECTIVE_DENIED ? 1 : 125;
	}
	print_effective(showing, &effective, text);
	return 0;
}

static int show(struct showing *showing, const char *word, struct buffer *text)
{
	struct policy_stack stack;
	int status;

	if (showing->effective)
		return show_effective(showing, word, text);
	status = policy_name_load(word, showing->arena, &stack);
	if (status)
		return status;
	if (showing->source)
		buffer_append(text, stack.files[stack.count - 1].text,
			      stack.files[stack.count - 1].length);
	else
		print_said(showing, &stack.document, NULL, text);
	return 0;
}

static int show_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct showing showing = { .arena = &arena };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_policy_show, argc, argv, take, &showing, &error);
	int status;

	/* what holds here without any that is named */
	if (first < 0 || argc - first > 1 || (argc == first && !showing.effective)) {
		complain(first < 0 ? error.message :
				     "usage: bawn policy show [options] FILE|PRESET, or "
				     "--effective alone");
		return 2;
	}
	status = show(&showing, first < argc ? argv[first] : NULL, &text);
	if (status == 0 && (text.failed || fd_write_all(1, text.data, text.length) < 0)) {
		complain("the policy could not be printed");
		return 125;
	}
	return status;
}

const struct verb verb_policy_show = {
	.name = "policy show",
	.synopsis = "[FILE|PRESET]",
	.summary = "Show what a policy says, or what holds for a start here, layer by layer.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 printed; 1 no policy, or not one to be used here; 2 wrong use; 125 bawn "
		       "itself failed, or a layer is missing",
	.run = show_verb,
};
