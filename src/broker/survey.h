/*
 * A look at a task for `bawn ps`: its actions and processes with what they use, from /proc.
 */
#pragma once

#include "ipc/info.h"

struct arena;
struct error;
struct task;

/*
 * Fills what the task itself knows; the caller adds modes and deadlines. Strings are the arena's or
 * the task's. -ENOMEM.
 */
int survey_task(const struct task *task, struct arena *arena, struct info *ret_info,
		struct error *error);
