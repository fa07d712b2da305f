/*
 * The client's side of the control protocol (ipc/control.h): which tasks there are, and asking
 * their supervisors. For the verbs of a person; nothing here runs inside of a box, where no task is
 * seen.
 *
 * The list of tasks is the state directory: every <state>/tasks/<id> that is locked. A supervisor
 * makes its socket late, so a young task has none yet; one that runs without a runtime directory
 * has none at all. Its process is told by broker/holder.h then.
 *
 * All memory is the arena's. Errors: negative errno with a message for the person: -ENOENT no such
 * task, -EEXIST an abbreviation of several, -ENOTCONN no socket, -ETIMEDOUT no answer in time,
 * -EPROTO an answer that is none of ours, -ECONNRESET the supervisor has gone; else what the
 * supervisor said.
 */
#pragma once

#include "broker/runtime.h"
#include "broker/state.h"
#include "ipc/control.h"
#include "workspace/host.h"

#include <stdint.h>
#include <sys/types.h>

struct arena;
struct error;
struct info;
struct message;

/* More tasks than a host has memory for. */
#define CLIENT_LIMIT_TASKS 16384
/* A supervisor that has not answered by then hangs: a freeze takes it a second at most. */
#define CLIENT_ANSWER_NS (3000ull * 1000 * 1000)
/* A socket is made about 100 ms after the start of a task. */
#define CLIENT_YOUNG_NS (1000ull * 1000 * 1000)

struct client {
	struct caller host;
	struct state state; /* owned */
	/* owned; where sockets may lie: of the session, and of the state directory */
	struct runtime runtimes[2];
};

#define CLIENT_NONE \
	((struct client){ .state = STATE_NONE, .runtimes = { RUNTIME_NONE, RUNTIME_NONE } })

/* state_path NULL: the default. -EPERM inside of a box. */
int client_open(const char *state_path, struct arena *arena, struct client *ret_client,
		struct error *error) __attribute__((warn_unused_result));

void client_close(struct client *client);

#define CLEANUP_CLIENT __attribute__((cleanup(client_close)))

/* The ids of live tasks, sorted. */
int client_tasks(const struct client *client, struct arena *arena, const char ***ret_ids,
		 size_t *ret_count, struct error *error);

/* The live task that `word` names: its id, or a beginning of it that no other has ("t-" or not). */
int client_find(const struct client *client, const char *word, struct arena *arena,
		const char **ret_id, struct error *error);

/* Removes sockets of tasks that have gone. */
void client_reap(const struct client *client);

/* A connection. ret_pid: the supervisor's process, as the kernel says; may be NULL. */
int client_connect(const struct client *client, const char *id, int *ret_fd, pid_t *ret_pid,
		   struct error *error) __attribute__((warn_unused_result));

/* The same, and waits for a young task's socket, at most until the deadline (monotonic). */
int client_connect_patiently(const struct client *client, const char *id, uint64_t deadline_ns,
			     int *ret_fd, pid_t *ret_pid, struct error *error)
	__attribute__((warn_unused_result));

/*
 * Sends a request. Descriptors stay the caller's. A connection that the supervisor has closed is no
 * error here: the next receive tells it, and first what was said before.
 */
int client_send(int fd, enum control_type type, const void *bytes, size_t length, const int *fds,
		unsigned fd_count, struct error *error);

/* The next message, whatever it is; its descriptors are the caller's. */
int client_receive(int fd, uint64_t deadline_ns, struct message *ret_message, struct error *error);

/* The text of a REPLY becomes the error; 0 where its code is. */
int client_reply(const struct message *message, struct error *error);

/* Sends a request without descriptors and waits for its REPLY. */
int client_ask(int fd, enum control_type type, const void *bytes, size_t length,
	       uint64_t deadline_ns, struct error *error);

/* The REPLY to a STATUS that was sent. */
int client_info(int fd, uint64_t deadline_ns, struct arena *arena, struct info *ret_info,
		struct error *error);
