/* Rules about the requests of an action: what of them can never decide, or decides too much. */
#include "policy/document_internal.h"

#include "policy/ruling.h"

#include <string.h>

static void check_exception(struct document_reading *reading, const struct document_statement *rule)
{
	const char *digest = document_detail(rule, "sha256");

	if (memchr(rule->text, '*', strcspn(rule->text, " \t")))
		document_fault(reading, rule->rule.line, rule->column,
			       "exceptions %.200s: over-broad: which program it is has to be said",
			       rule->text);
	if (!rule->text[strspn(rule->text, " \t")])
		document_fault(reading, rule->rule.line, rule->column, "exceptions: no command");
	if (digest && (strlen(digest) != RULING_DIGEST_LENGTH ||
		       strspn(digest, "0123456789abcdef") != RULING_DIGEST_LENGTH))
		document_fault(reading, rule->rule.line, rule->column,
			       "sha256 %.80s: 64 digits of sha256sum, in small letters", digest);
}

/* What is tested is one thing; a path can be asked about by what is done with it. */
static void check_test(struct document_reading *reading, const struct document_statement *rule)
{
	static const char *const subjects[] = { "command", "argv", "host", "url", "path" };
	bool has_path = document_detail(rule, "path");
	size_t count = 0;

	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
		count += document_detail(rule, subjects[i]) != NULL;
	if (count != 1)
		document_fault(reading, rule->rule.line, rule->column,
			       "a rule of tests has one of: command, argv, host, url, path");
	else if (document_detail(rule, "access") && !has_path)
		document_fault(reading, rule->rule.line, rule->column,
			       "tests: access says what is done with a path, and there is none");
	else if (has_path && strcmp(rule->text, "ask") == 0)
		document_fault(reading, rule->rule.line, rule->column,
			       "tests: nobody is asked about a path: it is there or not");
}

void document_check_decisions(struct document_reading *reading)
{
	const struct document *document = reading->document;

	for (size_t i = 0; i < document->count && document_goes_on(reading); i++) {
		const struct document_statement *rule = &document->statements[i];

		if (rule->key == DOCUMENT_EXCEPTIONS)
			check_exception(reading, rule);
		if (rule->key == DOCUMENT_TESTS)
			check_test(reading, rule);
		if (rule->key == DOCUMENT_TARGETS && !document_detail(rule, "hosts") &&
		    !document_detail(rule, "paths"))
			document_fault(
				reading, rule->rule.line, rule->column,
				"unreachable: approvals.targets %.200s has neither hosts nor "
				"paths",
				rule->text);
	}
}
