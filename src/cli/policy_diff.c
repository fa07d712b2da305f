/* `bawn policy diff`: in words what one policy allows and denies that another does not. */
#include "cli/policy_verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/policy_name.h"
#include "cli/policy_tell.h"
#include "policy/compare.h"

enum { OPTION_JSON };

static const struct option options[] = {
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	(void)option;
	(void)value;
	(void)error;
	*(bool *)context = true;
	return 0;
}

static void print_text(const struct differences *differences, char **names, struct buffer *buffer)
{
	policy_tell(differences, names[1], buffer);
	if (differences->count)
		return;
	buffer_visible(buffer, names[1]);
	buffer_text(buffer, " allows and denies what ");
	buffer_visible(buffer, names[0]);
	buffer_text(buffer, " does\n");
}

static void json_half(const struct differences *differences, const char *name, bool allows,
		      struct json *json)
{
	json_array(json, name);
	for (size_t i = 0; i < differences->count; i++) {
		const struct difference *row = &differences->rows[i];

		if (row->allows != allows)
			continue;
		json_object(json, NULL);
		json_string(json, "text", row->text);
		if (row->rule.id)
			rule_json(&row->rule, "rule", json);
		json_object_end(json);
	}
	json_array_end(json);
}

static void print_json(const struct differences *differences, struct buffer *buffer)
{
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_half(differences, "allows", true, &json);
	json_half(differences, "denies", false, &json);
	json_object_end(&json);
	buffer_text(buffer, "\n");
}

static int diff_verb(int argc, char **argv)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct differences differences;
	struct policy_stack stacks[2];
	struct error error = ERROR_NONE;
	bool json = false;
	int first = options_parse(&verb_policy_diff, argc, argv, take, &json, &error);
	int status = 0;

	if (first < 0 || argc - first != 2) {
		complain(first < 0 ? error.message : "usage: bawn policy diff [--json] A B");
		return 2;
	}
	for (int i = 0; i < 2 && status == 0; i++)
		status = policy_name_load(argv[first + i], &arena, &stacks[i]);
	/* 1 is a difference here */
	if (status)
		return status == 1 ? 2 : status;
	if (compare_documents(&stacks[0].document, &stacks[1].document, &arena, &differences) < 0) {
		complain("out of memory");
		return 125;
	}
	if (json)
		print_json(&differences, &text);
	else
		print_text(&differences, argv + first, &text);
	if (text.failed || fd_write_all(1, text.data, text.length) < 0) {
		complain("the difference could not be printed");
		return 125;
	}
	return differences.count ? 1 : 0;
}

const struct verb verb_policy_diff = {
	.name = "policy diff",
	.synopsis = "A B",
	.summary =
		"Tell in words what policy B allows and denies that A does not; files or presets.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status =
		"0 no difference; 1 there is one; 2 wrong use, or one that is no policy; 125 "
		"bawn itself failed",
	.run = diff_verb,
};
