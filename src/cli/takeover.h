/* What the verbs that look at live tasks and end them share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct client;
struct ending_options;

/*
 * Opens the client and finds the one task that `word` names; complains where that fails. Returns 0,
 * or the exit status: 1 for no such task, 125. state_path NULL: the default.
 */
int takeover_open(const char *state_path, const char *word, struct arena *arena,
		  struct client *ret_client, const char **ret_id);

/* Ends live tasks and says of each whether it has. Returns the exit status. */
int takeover_end(const struct client *client, const char *const *ids, size_t count,
		 struct ending_options *options);

/* `bawn ps`, also as `bawn task list`. Returns the exit status. */
int ps_print(const char *state_path, bool has_json);
