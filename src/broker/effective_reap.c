/* What dead supervisors left: it is landed, recorded and removed. */
#include "broker/effective_internal.h"

#include "base/arena.h"
#include "base/error.h"
#include "broker/runtime.h"
#include "broker/staging.h"
#include "broker/sweeping.h"
#include "trace/recorder.h"

#include <errno.h>

/* False: to be tried again by the next start, for want of room or rights now. */
static bool bury(void *context, const struct state *state, const char *task)
{
	struct effective *effective = context;
	struct error ignored = ERROR_NONE, unlanded = ERROR_NONE;
	int result = staging_resume(state, task);

	/* what its git did waits in the stage, too */
	if (result == 0)
		result = sweeping_resume(&effective->host, state, task, &unlanded);

	if (unlanded.code < 0)
		effective->unlanded = unlanded;
	if (result < 0)
		return false;
	result = recorder_bury(state->fd, task, &ignored);
	capacity_reap(task);
	/* a chain that is damaged stays so; `bawn trace verify` tells */
	return result == 0 || result == -EBADMSG;
}

/* Their sockets lie elsewhere, and are looked for only then. */
void effective_reap(struct effective *effective, struct arena *arena)
{
	struct runtime CLEANUP_RUNTIME runtime = RUNTIME_NONE;
	struct error ignored = ERROR_NONE;

	if (state_reap(&effective->state, bury, effective) &&
	    runtime_open(&effective->host, &effective->state, effective->state_is_default,
			 RUNTIME_LOOK, arena, &runtime, &ignored) == 0)
		runtime_reap(&runtime, &effective->state);
}
