/*
 * A control group of systemd's for a limit that needs one, where none is delegated to us directly:
 * this process is moved into a transient scope "bawn-<task id>.scope", whose group is ours to
 * divide (ipc/systemd.h; the talking is bawn-scope's, a role of its own). From there on all is as
 * if somebody had started bawn with `systemd-run --scope -p Delegate=yes`.
 *
 * Who is asked: the user's manager at /run/user/UID/systemd/private, or for uid 0 the system's at
 * /run/systemd/private. The uid is the kernel's and no variable is looked at. Each directory on the
 * way, and the socket, must belong to the caller and be nobody else's to write, and who listens
 * must be the caller too. A group that a manager made is believed when the kernel says so: our own
 * membership, a group of the caller's, with the controllers that were asked for.
 *
 * Nothing is to be undone: the manager removes the scope as soon as it is empty, and it is empty
 * when this process and its box are gone, however they went. A process that is refused after all
 * may find itself in the scope already, and ends there. If it is killed before it was moved, the
 * role lives on for long enough to stop the scope.
 *
 * Costs (systemd 252, 2 busy processors, 30 times): 47 ms at the median, 74 at the 90th percentile.
 * After SCOPE_TIME_NS without an answer the start is refused, and the scope is to be stopped as
 * soon as the manager has made it.
 */
#pragma once

#include "kernel/cgroup.h"

#include <stdint.h>
#include <sys/types.h>

struct error;

/* The controllers (CGROUP_BIT()s) that the manager could give; 0 where there is none to ask. */
uint32_t scope_offered(const struct cgroup_source *source, uid_t uid);

/*
 * Moves this process, and puts what it then may use in the place of *host. needs: CGROUP_BIT()s, of
 * v2 all of them. On failure *host is as it was, and the message names the manager's socket.
 */
int scope_join(const struct cgroup_source *source, uid_t uid, const char *task, uint32_t needs,
	       struct cgroup_host *host, struct error *error) __attribute__((warn_unused_result));
