/* What the making of a copied workspace leaves for its settling. For these two alone. */
#pragma once

#include "workspace/stage_copy.h"

/* Of <task>/stage, in the arena. -ENOENT, -EBADMSG: it was not kept whole. */
int stage_copy_parts(int stage_fd, struct arena *arena, struct stage_part **ret_parts,
		     size_t *ret_count);
