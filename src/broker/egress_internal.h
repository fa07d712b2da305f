/* Between egress.c (the roles' lives) and egress_record.c (what they say). */
#pragma once

#include "ipc/message.h"

struct task;

/*
 * One message of a role. 0, or -EBADMSG with what is wrong with it, a constant text: the role has
 * failed then.
 */
int egress_hear_proxy(struct task *task, const struct message *message, const char **ret_why);
int egress_hear_dialer(struct task *task, const struct message *message, const char **ret_why);

/* What failed, on record and in the denials of what runs. */
void egress_tell_alarm(struct task *task, const char *role, const char *what);
