/* The words of `bawn policy`: each is a verb of its own table, in a file of its name. */
#pragma once

#include "cli/options.h"

extern const struct verb verb_policy_adopt;
extern const struct verb verb_policy_check;
extern const struct verb verb_policy_show;
extern const struct verb verb_policy_diff;
extern const struct verb verb_policy_schema;
extern const struct verb verb_policy_import;
extern const struct verb verb_policy_decide;
extern const struct verb verb_policy_test;
extern const struct verb verb_policy_exceptions;
