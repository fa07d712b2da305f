/*
 * A snapshot for the next action of a task whose box lives on. Its overlays stay, and with them
 * what the task sees, whatever the host did since; so what the next changes start from is the
 * task's view: the values of references and HEAD in the upper directory, where they are there.
 * Files on which task and host went apart stay so until the task ends. What lies in the upper
 * directory was looked at, applied or held, and is passed over as long as nobody touches it.
 *
 * Configuration goes on from the text that the task began with: what was held of it is not the
 * host's.
 */
#pragma once

#include "workspace/git_snapshot.h"

/*
 * For use right after git_commit_run(), with the box still frozen. previous: the snapshot of that
 * run, which may be closed afterwards, and its memory freed. deferred: that run's; of such a
 * directory nothing was applied, and the previous snapshot of it goes on.
 */
int git_renew(const struct git_cover *covers, size_t count, struct git_snapshot *previous,
	      const bool *deferred, struct arena *arena, struct git_snapshot *ret_snapshot,
	      struct error *error);
