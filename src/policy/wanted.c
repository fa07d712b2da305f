#include "policy/wanted.h"

#include "base/buffer.h"

static const struct {
	const char *name, *meaning, *rule;
	enum wanted_judgement judgement;
} verbs[] = {
#define WANTED(name, verb, judgement, meaning) \
	{ verb, meaning, "command." verb, WANTED_##judgement },
#include "policy/wanted.def"
#undef WANTED
};

const char *wanted_verb_name(enum wanted_verb verb)
{
	return verb < WANTED_COUNT ? verbs[verb].name : "?";
}

const char *wanted_verb_meaning(enum wanted_verb verb)
{
	return verb < WANTED_COUNT ? verbs[verb].meaning : "?";
}

struct rule_ref wanted_rule(enum wanted_verb verb)
{
	return (struct rule_ref){ .id = verb < WANTED_COUNT ? verbs[verb].rule : "command" };
}

enum wanted_judgement wanted_judge(const struct wanted *wanted)
{
	if (wanted->verb >= WANTED_COUNT)
		return WANTED_ASKS;
	if (wanted->verb == WANTED_FS_READ && !wanted->exact)
		return WANTED_ASKS;
	return verbs[wanted->verb].judgement;
}

void wanted_print(const struct wanted *wanted, struct buffer *buffer)
{
	buffer_text(buffer, wanted_verb_name(wanted->verb));
	buffer_byte(buffer, ' ');
	buffer_visible(buffer, wanted->target);
	if (!wanted->exact)
		buffer_text(buffer, " (known only at run time)");
	if (wanted->why[0])
		buffer_format(buffer, ": %s", wanted->why);
}
