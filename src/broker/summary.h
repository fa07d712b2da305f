/* The policy as a task may read it, in /run/bawn/policy.txt and policy.json. Pure. */
#pragma once

struct arena;
struct effective;

/* NULL when memory ran out. */
const char *summary_text(const struct effective *effective, struct arena *arena);
const char *summary_json(const struct effective *effective, struct arena *arena);
