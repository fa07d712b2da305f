/* Rules about the requests of an action: what of them can never decide, or decides too much. */
#include "policy/document_internal.h"

#include "policy/ruling.h"

#include <string.h>

static const char *detail(const struct document_statement *rule, const char *field)
{
	for (size_t i = 0; i < rule->detail_count; i++)
		if (strcmp(rule->details[i].field, field) == 0)
			return rule->details[i].text;
	return NULL;
}

static void check_exception(struct document_reading *reading, const struct document_statement *rule)
{
	const char *digest = detail(rule, "sha256");

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

void document_check_decisions(struct document_reading *reading)
{
	const struct document *document = reading->document;

	for (size_t i = 0; i < document->count && document_goes_on(reading); i++) {
		const struct document_statement *rule = &document->statements[i];

		if (rule->key == DOCUMENT_EXCEPTIONS)
			check_exception(reading, rule);
		if (rule->key == DOCUMENT_TARGETS && !detail(rule, "hosts") &&
		    !detail(rule, "paths"))
			document_fault(
				reading, rule->rule.line, rule->column,
				"unreachable: approvals.targets %.200s has neither hosts nor "
				"paths",
				rule->text);
	}
}
