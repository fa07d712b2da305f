/* The area that is shown read-only: the evidence of being inside, masks, places of inputs. */
#include "plan/builder.h"

#include <string.h>

/* What inputs are mounted on: the area that they lie in is shown read-only afterwards. */
static void emit_inputs(struct builder *builder)
{
	const char *names = &VIEW_INPUTS[sizeof("/run/") - 1];

	for (size_t i = 0; i < builder->row_count; i++) {
		const struct view_path *row = builder->rows[i];
		bool is_file = row->kind == PATH_KIND_FILE;
		struct plan_op *op;

		if (!view_is_input(row))
			continue;
		if (!builder_was_made(builder, VIEW_INPUTS)) {
			builder_emit_at(builder, PLAN_AREA_DIRECTORY, LAYER_MOUNT, names)->number =
				0755;
			builder_note_made(builder, VIEW_INPUTS);
		}
		op = builder_emit_at(builder, is_file ? PLAN_AREA_FILE : PLAN_AREA_DIRECTORY,
				     LAYER_MOUNT, row->target + sizeof("/run/") - 1);
		op->source = is_file ? "" : NULL;
		op->number = is_file ? 0444 : 0755;
		builder_note_made(builder, row->target);
	}
}

/* Only where it is used: each new inode costs. */
static void emit_mask_link(struct builder *builder)
{
	const struct view *view = &builder->policy->view;

	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class == PATH_HIDE && view->paths[i].kind == PATH_KIND_LINK) {
			builder_emit_at(builder, PLAN_AREA_LINK, LAYER_HIDE,
					&PLAN_MASK_LINK[sizeof("/run/") - 1])
				->source = PLAN_MASK_LINK_TEXT;
			return;
		}
}

/* The evidence of being inside, and what masks are made of: in an area shown read-only. */
void builder_emit_evidence(struct builder *builder)
{
	const struct {
		const char *path, *content;
		unsigned mode;
	} files[] = {
		{ PLAN_EVIDENCE "/policy.txt", builder->facts->summary_text, 0444 },
		{ PLAN_EVIDENCE "/policy.json", builder->facts->summary_json, 0444 },
		{ PLAN_CANARY, "readable only without Landlock\n", 0444 },
		{ PLAN_MASK_FILE, "", 0 },
		{ PLAN_MASK_EMPTY, "", 0444 },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct plan_op *op = builder_emit_at(builder, PLAN_AREA_FILE, LAYER_MOUNT,
						     files[i].path + sizeof("/run/") - 1);

		op->source = files[i].content;
		op->number = files[i].mode;
	}
	builder_emit_at(builder, PLAN_AREA_DIRECTORY, LAYER_MOUNT,
			&PLAN_MASK_DIRECTORY[sizeof("/run/") - 1]);
	emit_inputs(builder);
	emit_mask_link(builder);
}
