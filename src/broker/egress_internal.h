/* Between egress.c (the roles' lives) and egress_record.c (what they say). */
#pragma once

#include "broker/egress_ask.h"
#include "ipc/message.h"

struct task;

/*
 * One message of a role. 0, or -EBADMSG with what is wrong with it, a constant text: the role has
 * failed then.
 */
int egress_hear_proxy(struct task *task, const struct message *message, const char **ret_why);
int egress_hear_dialer(struct task *task, const struct message *message, const char **ret_why);

/* A person's answer, for the proxy: egress_ask(); context: the task. */
void egress_answer(const struct egress_asked *asked, bool yes, void *context);

/* A role has failed: both end, and the task has no network any more. */
void egress_fail(struct task *task, const char *role, const char *what);

/* What failed, on record and in the denials of what runs. */
void egress_tell_alarm(struct task *task, const char *role, const char *what);
