/* `bawn policy schema`: what editors check and complete policy files by. */
#include "cli/policy_verbs.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "policy/document.h"

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	(void)context;
	(void)option;
	(void)value;
	(void)error;
	return 0;
}

static int schema_verb(int argc, char **argv)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct error error = ERROR_NONE;
	struct json json;
	int first = options_parse(&verb_policy_schema, argc, argv, take, NULL, &error);

	if (first < 0 || first < argc) {
		complain(first < 0 ? error.message : "usage: bawn policy schema");
		return 2;
	}
	json_begin(&json, &text);
	document_schema(&json);
	buffer_text(&text, "\n");
	if (text.failed || fd_write_all(1, text.data, text.length) < 0) {
		complain("the schema could not be printed");
		return 125;
	}
	return 0;
}

const struct verb verb_policy_schema = {
	.name = "policy schema",
	.synopsis = "",
	.summary = "Print the JSON schema of policy files, for editors.",
	.exit_status = "0 printed; 2 wrong use; 125 bawn itself failed",
	.run = schema_verb,
};
