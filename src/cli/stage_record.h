/*
 * What the record of a task says about its workspace, for those who ask for a stage that there is
 * not.
 */
#pragma once

#include <stdbool.h>

/*
 * True where the record says so; false also where there is none, or it cannot be read. The task's
 * whole id.
 */
bool stage_record_is_ephemeral(int state_fd, const char *task);
