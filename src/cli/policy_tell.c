#include "cli/policy_tell.h"

#include "base/buffer.h"
#include "policy/compare.h"

static void print_half(const struct differences *differences, const char *name, bool allows,
		       struct buffer *buffer)
{
	bool any = false;

	for (size_t i = 0; i < differences->count; i++) {
		const struct difference *row = &differences->rows[i];

		if (row->allows != allows)
			continue;
		if (!any) {
			buffer_visible(buffer, name);
			buffer_text(buffer, allows ? " newly allows:\n" : " newly denies:\n");
		}
		any = true;
		buffer_text(buffer, "  ");
		buffer_visible(buffer, row->text);
		if (row->rule.id) {
			buffer_text(buffer, " [");
			rule_print(&row->rule, buffer);
			buffer_text(buffer, "]");
		}
		buffer_text(buffer, "\n");
	}
}

void policy_tell(const struct differences *differences, const char *name, struct buffer *buffer)
{
	print_half(differences, name, true, buffer);
	print_half(differences, name, false, buffer);
}
