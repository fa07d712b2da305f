/*
 * Where a decision comes from. Every verdict, denial and line of `explain` names one rule.
 *
 * Built-in defaults have ids too (RULE_* below, table in rule.c); a flag's rule has the flag as
 * its file and the position in argv as its line; a policy file's has path and line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buffer;
struct json;

struct rule_ref {
	const char *id;	  /* "home.private", "flag.read"; borrowed */
	const char *file; /* NULL for built-in defaults */
	uint32_t line;	  /* 0 where there is none */
};

enum rule_builtin {
	RULE_SYSTEM_READ_ONLY,
	RULE_SYSTEM_ABSENT,
	RULE_HOME_PRIVATE,
	RULE_WORKSPACE_WRITE,
	RULE_PRIVATE_AREA,
	RULE_TOOLCHAIN_READ,
	RULE_TOOLCHAIN_CREDENTIAL,
	RULE_CACHE_OVERLAY,
	RULE_GIT_OVERLAY,
	RULE_GIT_OBJECTS,
	RULE_WORKSPACE_PROTECT,
	RULE_WORKSPACE_SECRET,
	RULE_NETWORK_LOOPBACK,
	RULE_EGRESS_DEFAULT,
	RULE_EGRESS_SPECIAL,
	RULE_ENVIRONMENT_ALLOWLIST,
	RULE_SYSCALL_ALLOWLIST,
	RULE_SYSCALL_NAMESPACE,
	RULE_SYSCALL_PTRACE,
	RULE_DEVICES_NONE,
	RULE_DANGEROUS_PATH,
	RULE_NARROW_ONLY,
	RULE_RUN_ALLOWED,
	RULE_LIMIT_DEFAULT,
	RULE_TIER_DEFAULT,
	RULE_BUILTIN_COUNT,
};

struct rule_ref rule_builtin(enum rule_builtin rule);

bool rule_is(const struct rule_ref *rule, enum rule_builtin builtin);

/* One sentence on what the built-in rule says, for explain and the documents. */
const char *rule_builtin_text(enum rule_builtin rule);

/* Whether explanations tell of both at once: of flags the position does not matter. */
bool rule_is_same(const struct rule_ref *a, const struct rule_ref *b);

/* {id, file, line} */
void rule_json(const struct rule_ref *rule, const char *name, struct json *json);

/* Appends `built-in "home.private"`, `flag --read` or `"id" file:line`. */
void rule_print(const struct rule_ref *rule, struct buffer *buffer);
