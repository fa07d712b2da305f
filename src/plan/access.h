/*
 * What a box shows at a path of its own, by policy and plan: read, written, hidden, and whose rule
 * says so. Pure: whether there is anything at the path, and where links lead, is the host's to
 * tell (broker/path_access.h). Links that the view itself makes are told here.
 *
 * `bawn explain --path` and the paths among a policy's tests are answered from it.
 */
#pragma once

#include "policy/layer.h"
#include "policy/rule.h"

#include <stdbool.h>

struct plan;
struct policy;
struct view_path;

enum access_way {
#define ACCESS_WAY(id, word, read, write, text) ACCESS_##id,
#include "plan/access.def"
#undef ACCESS_WAY
	ACCESS_WAY_COUNT,
};

struct access {
	enum access_way way;
	struct rule_ref rule;
	enum enforcement enforcement;
	const struct view_path *row; /* of the view, where one decides; else NULL */
};

/* path: clean, as the box has it, its links followed. */
struct access access_find(const struct policy *policy, const struct plan *plan, const char *path);

/* "read-only", "hidden" ... */
const char *access_word(enum access_way way);
/* One sentence on it. */
const char *access_text(enum access_way way);
bool access_reads(enum access_way way);
bool access_writes(enum access_way way);
