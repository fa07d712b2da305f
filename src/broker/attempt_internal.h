/* What the attempts share. Not for others. */
#pragma once

#include "broker/attempt.h"

/* As attempt_make(). */
typedef int attempt_function(char *const *arguments);

/* Runs a part in a child of its own, which it may change beyond repair. */
int attempt_in_child(attempt_function *function, char *const *arguments);

/* How long an answer may take where nothing has to be at once: a busy machine takes its time. */
#define ATTEMPT_PATIENCE_MS 5000

/* Connects in that time; -ETIMEDOUT beyond it. The descriptor is the caller's. */
int attempt_connect_to(const char *text, const char *port, int type, int *ret_fd);

/* Of a network that is the policy's, attempt_network.c. */
attempt_function attempt_captured, attempt_door, attempt_name, attempt_rebound, attempt_nameserver,
	attempt_nameserver_stream, attempt_change_network;

/* Of a policy that executes listed programs alone, attempt_exec.c. */
attempt_function attempt_run_copy, attempt_map_copy, attempt_map_code, attempt_memory_file,
	attempt_run_open;

/* Limits, attempt_limit.c. */
attempt_function attempt_files, attempt_pids, attempt_area;

/* Calls of the kernel, attempt_kernel.c. */
attempt_function attempt_io_uring, attempt_bpf, attempt_perf, attempt_userfaultfd, attempt_keyctl,
	attempt_socket, attempt_ptrace, attempt_unshare, attempt_mount, attempt_setns, attempt_x32,
	attempt_int80, attempt_tiocsti, attempt_set_id, attempt_device_node, attempt_handle,
	attempt_clone3, attempt_openat2;
