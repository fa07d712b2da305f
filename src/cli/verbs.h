/* All verbs; each is defined in a file of its name, small ones of a kind in one. */
#pragma once

#include "cli/options.h"

extern const struct verb verb_run;
extern const struct verb verb_shell;
extern const struct verb verb_task;
extern const struct verb verb_ps;
extern const struct verb verb_logs;
extern const struct verb verb_attach;
extern const struct verb verb_freeze;
extern const struct verb verb_thaw;
extern const struct verb verb_stop;
extern const struct verb verb_kill;
extern const struct verb verb_plan;
extern const struct verb verb_explain;
extern const struct verb verb_policy;
extern const struct verb verb_verify;
extern const struct verb verb_doctor;
extern const struct verb verb_trace;
extern const struct verb verb_trace_verify;
extern const struct verb verb_review;
extern const struct verb verb_review_ls;
extern const struct verb verb_review_show;
extern const struct verb verb_review_accept;
extern const struct verb verb_review_reject;
extern const struct verb verb_cache;
extern const struct verb verb_cache_ls;
extern const struct verb verb_cache_rm;
extern const struct verb verb_apply;
extern const struct verb verb_diff;
extern const struct verb verb_discard;
extern const struct verb verb_completion;
extern const struct verb verb_help;
