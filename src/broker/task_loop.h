/* What the loop of a task waits for besides the task's own (task.h). */
#pragma once

#include <stdint.h>

struct task;

/* A descriptor that the loop waits for besides the task's own. */
struct task_watch {
	struct task_watch *next;
	int fd;		/* borrowed; -1: not now */
	short events;	/* 0: POLLIN */
	short happened; /* the loop's own */
	/* sets fd and events anew for each round; NULL: they stay */
	void (*prepare)(struct task_watch *watch);
	void (*ready)(struct task *task, struct task_watch *watch, short events);
};

/* A moment of the monotonic clock. */
struct task_timer {
	struct task_timer *next;
	uint64_t at_ns; /* 0: off; set anew by whoever wants it again */
	void (*fire)(struct task *task, struct task_timer *timer);
};
