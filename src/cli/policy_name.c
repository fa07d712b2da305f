#include "cli/policy_name.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "cli/options.h"
#include "policy/preset.h"
#include "workspace/host.h"

#include <errno.h>

bool policy_name_is_preset(const char *word)
{
	struct preset preset;

	return preset_find(word, &preset);
}

static void print_faults(const struct document_faults *faults, const char *word)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	document_print_faults(faults, word, &text);
	print_buffer(&text);
}

int policy_name_load(const char *word, struct arena *arena, struct policy_stack *ret_stack)
{
	bool is_preset = policy_name_is_preset(word);
	struct error error = ERROR_NONE;
	struct document_faults faults = { .count = 0 };
	struct caller host;
	int result = host_gather(arena, &host, &error);

	if (result == 0)
		result = policy_stack_load(&host, is_preset ? NULL : word, is_preset ? word : NULL,
					   -1, arena, ret_stack, &faults, &error);
	if (result == 0)
		return 0;
	if (faults.count)
		print_faults(&faults, word);
	else
		complain(error.message);
	return result == -EBADMSG || result == -ENOMEM ? 125 : 1;
}
