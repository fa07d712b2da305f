/* The policy as a task may read it, in /run/bawn/policy.txt and policy.json. Pure. */
#pragma once

struct arena;
struct policy;

/* NULL when memory ran out. */
const char *summary_text(const struct policy *policy, const char *hash, struct arena *arena);
const char *summary_json(const struct policy *policy, const char *hash, struct arena *arena);
