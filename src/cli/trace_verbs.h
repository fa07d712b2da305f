/*
 * The words of `bawn trace` that read: each is a verb of its own table, in a file of its name. What
 * their options have in common.
 */
#pragma once

#include "cli/options.h"

#include <stdint.h>

extern const struct verb verb_trace_ls;
extern const struct verb verb_trace_show;
extern const struct verb verb_trace_query;
extern const struct verb verb_trace_replay;
extern const struct verb verb_trace_stats;
extern const struct verb verb_trace_tail;
extern const struct verb verb_trace_export;
extern const struct verb verb_trace_note;
extern const struct verb verb_trace_prune;
extern const struct verb verb_trace_redact;
/* cli/trace_head.c */
extern const struct verb verb_trace_head;
extern const struct verb verb_trace_key;

/* --since and --until: a point in time, or how long ago. */
int trace_time_option(const struct option *option, const char *value, uint64_t now_ns,
		      uint64_t *ret_ns, struct error *error);

/* --state-dir */
int trace_state_option(const struct option *option, const char *value, const char **ret_path,
		       struct error *error);
