#include "plan/builder.h"

#include <string.h>

/* Whether the policy lists what the operation shows, or it belongs to what is listed. */
static bool is_program(const struct builder *builder, const struct plan_op *op)
{
	const struct view *view = &builder->policy->view;

	for (size_t i = 0; i < view->count && op->kind == PLAN_BIND; i++)
		if (view->paths[i].class == PATH_PROGRAM &&
		    strcmp(view->paths[i].target, op->target) == 0)
			return true;
	return false;
}

/*
 * Also the root and what is read-only: a loader maps what it is told to, and needs no mode bit for
 * that, so that a program which is not listed must lie on no mount that lets it be mapped as code.
 */
void builder_make_strict(struct builder *builder)
{
	for (size_t i = 0; i < builder->plan.count; i++) {
		struct plan_op *op = &builder->plan.ops[i];

		switch (op->kind) {
		case PLAN_ROOT:
		case PLAN_BIND:
		case PLAN_AREA:
		case PLAN_OVERLAY:
		case PLAN_OBJECTS:
		case PLAN_PIN:
			if (!is_program(builder, op))
				op->flags |= PLAN_NO_EXEC;
			break;
		default:
			break;
		}
	}
}
