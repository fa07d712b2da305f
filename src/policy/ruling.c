#include "policy/ruling.h"

#include "base/arena.h"
#include "policy/document.h"
#include "policy/policy.h"

#include <errno.h>
#include <string.h>

static const struct {
	enum document_key key;
	const char *words;
	bool has_label, has_note;
} kinds[RULING_KIND_COUNT] = {
#define RULING(name, key, text, label, note, words) \
	[RULING_##name] = { DOCUMENT_##key, words, sizeof(label) > 1, sizeof(note) > 1 },
#include "policy/ruling.def"
#undef RULING
};

static const char *const approvals[RULING_APPROVAL_COUNT] = { "on-request", "never", "always" };

const char *ruling_approval_word(enum ruling_approval approval)
{
	return approval < RULING_APPROVAL_COUNT ? approvals[approval] : "?";
}

uint64_t ruling_day(const char *date)
{
	unsigned numbers[3] = { 0 }, at = 0;
	uint64_t year, month, day;

	for (; *date && at < 3; date++)
		if (*date == '-')
			at++;
		else
			numbers[at] = numbers[at] * 10 + (unsigned)(*date - '0');
	if (numbers[0] < 1970)
		return 0;
	/* years that begin in March end with the day that comes and goes */
	year = (uint64_t)numbers[0] - (numbers[1] <= 2);
	month = (numbers[1] + 9) % 12;
	day = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + numbers[2] -
	      1;
	/* of 1970-01-01, counted so */
	return day > 719468 ? day - 719468 : 0;
}

static const char *next_word(const char *at, size_t *ret_length)
{
	at += strspn(at, " \t");
	*ret_length = strcspn(at, " \t");
	return at;
}

bool ruling_covers(const char *command, const char *const *words, size_t count)
{
	size_t length, i = 0;

	for (const char *at = next_word(command, &length); length;
	     at = next_word(at + length, &length), i++) {
		if (i == count)
			return false;
		/* which program it is has to be said */
		if (i && length == 1 && at[0] == '*')
			continue;
		if (strlen(words[i]) != length || memcmp(words[i], at, length) != 0)
			return false;
	}
	return i && i == count;
}

static bool is_among(const char *words, const char *word)
{
	size_t length;

	for (const char *at = next_word(words, &length); length;
	     at = next_word(at + length, &length))
		if (strlen(word) == length && memcmp(at, word, length) == 0)
			return true;
	return false;
}

static bool is_digest(const char *text)
{
	return strlen(text) == RULING_DIGEST_LENGTH &&
	       strspn(text, "0123456789abcdef") == RULING_DIGEST_LENGTH;
}

bool ruling_is_valid(const struct ruling *ruling)
{
	enum ruling_kind kind = ruling->kind;

	return kind < RULING_KIND_COUNT && ruling->text[0] &&
	       (!kinds[kind].words[0] || is_among(kinds[kind].words, ruling->text)) &&
	       (ruling->label != NULL) == kinds[kind].has_label &&
	       (ruling->note != NULL) == kinds[kind].has_note &&
	       (ruling->until != 0) == (kind == RULING_EXCEPTION) &&
	       (!ruling->digest || (kind == RULING_EXCEPTION && is_digest(ruling->digest)));
}

bool ruling_decides(const struct policy *policy)
{
	return policy->approval == RULING_ALWAYS || policy->ruling_count;
}

static int add(struct policy *policy, struct arena *arena, struct ruling row)
{
	struct ruling *grown;

	if (policy->ruling_count == RULING_LIMIT)
		return -E2BIG;
	grown = arena_push(arena, policy->rulings, policy->ruling_count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	policy->rulings = grown;
	grown[policy->ruling_count++] = row;
	return 0;
}

static const char *detail(const struct document_statement *statement, const char *field)
{
	for (size_t i = 0; i < statement->detail_count; i++)
		if (strcmp(statement->details[i].field, field) == 0)
			return statement->details[i].text;
	return NULL;
}

/* One row for each thing that a label is given to. */
static int add_targets(const struct document_statement *statement, struct policy *policy,
		       struct arena *arena, uint32_t rule)
{
	int result = 0;

	for (size_t i = 0; i < statement->detail_count && result == 0; i++) {
		const struct document_detail *row = &statement->details[i];
		bool is_host = strcmp(row->field, "hosts") == 0;

		if (is_host || strcmp(row->field, "paths") == 0)
			result = add(policy, arena,
				     (struct ruling){ .kind = is_host ? RULING_TARGET_HOST :
									RULING_TARGET_PATH,
						      .text = row->text,
						      .label = statement->text,
						      .rule = rule });
	}
	return result;
}

static int add_exception(const struct document_statement *statement, struct policy *policy,
			 struct arena *arena, uint32_t rule)
{
	return add(policy, arena,
		   (struct ruling){ .kind = RULING_EXCEPTION,
				    .text = statement->text,
				    .label = detail(statement, "owner"),
				    .note = detail(statement, "reason"),
				    .digest = detail(statement, "sha256"),
				    .rule = rule,
				    .until = ruling_day(detail(statement, "expires")) });
}

static int add_statement(const struct document_statement *statement, struct policy *policy,
			 struct arena *arena)
{
	enum ruling_kind kind = 0;
	uint32_t rule;

	while (kind < RULING_KIND_COUNT && kinds[kind].key != statement->key)
		kind++;
	if (kind == RULING_KIND_COUNT)
		return 0;
	rule = policy_rule(policy, arena, statement->rule);
	if (kind == RULING_TARGET_HOST)
		return add_targets(statement, policy, arena, rule);
	if (kind == RULING_EXCEPTION)
		return add_exception(statement, policy, arena, rule);
	return add(policy, arena,
		   (struct ruling){ .kind = kind, .text = statement->text, .rule = rule });
}

static bool decides(const struct document *document)
{
	const struct document_statement *approval = document_find(document, DOCUMENT_APPROVAL);

	if (approval && strcmp(approval->text, approvals[RULING_ALWAYS]) == 0)
		return true;
	for (size_t i = 0; i < document->count; i++)
		for (enum ruling_kind kind = 0; kind < RULING_KIND_COUNT; kind++)
			if (kinds[kind].key == document->statements[i].key && kind != RULING_HIDE &&
			    kind != RULING_PROTECT)
				return true;
	return false;
}

int ruling_compile(const struct document *document, struct policy *policy, struct arena *arena)
{
	const struct document_statement *approval = document_find(document, DOCUMENT_APPROVAL);
	int result = 0;

	/* the first one is what holds where nothing is said */
	for (enum ruling_approval i = RULING_ON_REQUEST + 1; approval && i < RULING_APPROVAL_COUNT;
	     i++)
		if (strcmp(approval->text, approvals[i]) == 0) {
			policy->approval = i;
			policy->approval_rule = policy_rule(policy, arena, approval->rule);
		}
	/* what is hidden and protected is the wall's, unless requests are looked at anyway */
	if (!decides(document))
		return 0;
	for (size_t i = 0; i < document->count && result == 0; i++)
		result = add_statement(&document->statements[i], policy, arena);
	return result;
}
