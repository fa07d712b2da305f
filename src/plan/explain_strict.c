#include "plan/explainer.h"

#include "base/path.h"
#include "policy/program.h"

#include <string.h>

/* Whether the program of a row of exec.allow is in the view. */
static bool is_shown(const struct policy *policy, const struct ruling *ruling)
{
	const char *name = program_name(ruling->text);

	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *row = &policy->view.paths[i];

		if (row->kind == PATH_KIND_FILE &&
		    (row->class == PATH_PROGRAM || row->class == PATH_LINK) &&
		    strcmp(path_name(row->target), name) == 0)
			return true;
	}
	return false;
}

static void say_natures(struct maker *maker, enum program_nature nature, const char *text)
{
	const struct policy *policy = maker->policy;
	struct explain_answer *line = NULL;

	for (size_t i = 0; i < policy->ruling_count; i++) {
		const struct ruling *ruling = &policy->rulings[i];

		if (ruling->kind != RULING_EXEC_ALLOW || !is_shown(policy, ruling) ||
		    program_nature(ruling->text) != nature)
			continue;
		if (!line) {
			line = explainer_answer(maker, EXPLAIN_COMMAND, ENFORCEMENT_ABSENT,
						LAYER_MOUNT, policy->rules[ruling->rule]);
			line->text = text;
		}
		explain_item(maker, line, ruling->text);
	}
}

void explainer_strict(struct maker *maker)
{
	if (!(maker->policy->flags & POLICY_EXEC_STRICT))
		return;
	explain_rows(maker, EXPLAIN_COMMAND, PATH_PROGRAM, ROW_EXACT, ENFORCEMENT_EXACT,
		     LAYER_MOUNT,
		     "exec.strict: listed programs and what they load. These files can be "
		     "executed or loaded as code, and nothing else: all other mounts are noexec, "
		     "and there are no files in memory and no execution by descriptor");
	say_natures(maker, PROGRAM_TAKES_CODE,
		    "exec.strict does not hold what an interpreter is given: it runs anything, as "
		    "if nothing were strict");
	say_natures(maker, PROGRAM_IS_NOT_KNOWN,
		    "exec.strict: of these it is not known whether they run what they are given; "
		    "if so, nothing is strict");
	explainer_answer(maker, EXPLAIN_READ, ENFORCEMENT_EXACT, LAYER_MOUNT,
			 rule_builtin(RULE_SYSTEM_READ_ONLY))
		->text =
		"the listed programs and what they load, read-only; other programs of the "
		"system's directories (/usr/bin) are absent, elsewhere (/usr/lib) they are "
		"data";
}
