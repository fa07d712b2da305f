/* What the importers of import.h share. */
#pragma once

#include "policy/import.h"

struct importing {
	const struct outline *outline;
	struct arena *arena;
	struct import *import;
	bool writes_workspace; /* of srt's rules: "." is among what may be written */
	const char *file;      /* of rules: which one; NULL: the settings */
	const char *no_hosts;  /* of Codex's rules: why none of those that they list is allowed */
};

typedef void import_item(struct importing *importing, const struct outline_node *node,
			 const char *text);

/* A key of settings, and what becomes of it: lists by take(), all others by a note. */
struct import_key {
	const char *path;
	import_item *take;
	const char *why; /* take NULL */
};

#define IMPORT_OUTSIDE "commands outside of the wall: there are none"
#define IMPORT_SOCKETS "sockets of the host are never shown"
#define IMPORT_LOOPBACK "nothing is needed: a box has a loopback of its own"
#define IMPORT_OWN_PROXY "the proxy is bawn's own"
#define IMPORT_LISTED "nothing is needed: variables are passed only if they are listed"
#define IMPORT_OWN_TMP "nothing is needed: each task has one of its own"

/* A note that `what` was not taken over, and why. */
void import_remark(struct importing *importing, const struct outline_node *node, const char *what,
		   const char *why);
void import_add(struct importing *importing, enum import_slot slot, const struct outline_node *node,
		const char *value);

/* With more of the statement, as it is printed. */
void import_add_more(struct importing *importing, enum import_slot slot,
		     const struct outline_node *node, const char *value, const char *more);

/* Settings are maps in maps; the table's paths go three deep. */
void import_keys(struct importing *importing, const struct outline_node *map, const char *above,
		 const struct import_key *keys, size_t count);

/* Names and values of variables; those named like secrets are left out. map may be NULL. */
void import_variables(struct importing *importing, const struct outline_node *map);
bool import_is_secret(const char *name);

/* "/x" and "~/x", not "x". */
bool import_is_from_root(const char *path);

import_item import_deny_read, import_deny_write, import_allow_write, import_allow_read,
	import_allow_host, import_deny_host;

/* Codex's config.toml (import_codex.c). */
void import_codex(struct importing *importing);
