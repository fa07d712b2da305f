/*
 * A command of the caller's that gets each signed head, to keep it where the trace's owner alone
 * cannot change it: the executable file trace/head-hook. It lies in the state directory since no
 * box can see that; nothing makes it but a person.
 */
#pragma once

struct chain_origin;
struct error;
struct trace_store;

#define HOOK_NAME "head-hook"
/* It is waited for at the end of a task, once a minute at the most. */
#define HOOK_WAIT_MS 5000

/*
 * Runs it with the line (and a newline) as its input, in the directory of the trace, with PATH and
 * HOME (NULL: without) as its whole environment, and in a process group of its own, which is killed
 * when the time is up. output_fd: where both of its outputs go; -1: nowhere. Returns 1 when it
 * ended with status 0, 0 when there is none; -EPERM for one that is a link, foreign or can be
 * written by others; -ETIMEDOUT; -ECANCELED: it failed.
 */
int hook_run(const struct trace_store *store, const char *line, const char *home, int output_fd,
	     struct error *error) __attribute__((warn_unused_result));

/*
 * For the end of a task, after its result was delivered: where a head is due (trace/sign.h), signs
 * and runs the hook. 0, or a negative errno with a text that is to be told once; the task is not
 * concerned.
 */
int hook_sign_when_due(const struct trace_store *store, const struct chain_origin *origin,
		       const char *home, struct error *error) __attribute__((warn_unused_result));
