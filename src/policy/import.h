/*
 * Settings of other sandboxes and agents as a policy of ours, as far as they say the same. Pure.
 *
 * The settings come as an outline (policy/outline.h), of TOML, of JSON, or of Codex's rules. What
 * they say and a policy does not is a note, with the line that says so; nothing is dropped in
 * silence, and where the two differ the policy allows less. The result is for a person to look
 * through.
 */
#pragma once

#include "policy/outline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buffer;

enum import_from {
	IMPORT_CLAUDE, /* settings.json */
	IMPORT_CODEX,  /* config.toml */
	IMPORT_GEMINI, /* settings.json */
	IMPORT_SRT,    /* .srt-settings.json */
	IMPORT_COUNT,
};

enum import_slot {
	IMPORT_WORKSPACE,
	IMPORT_APPROVAL,
	IMPORT_READ,
	IMPORT_WRITE,
	IMPORT_HIDE,
	IMPORT_PROTECT,
	IMPORT_EXEC_DENY,
	IMPORT_ASK,
	IMPORT_NET_ALLOW,
	IMPORT_NET_ASK,
	IMPORT_NET_DENY,
	IMPORT_PASS,
	IMPORT_SET, /* "NAME=value" */
	IMPORT_TEST,
	IMPORT_SLOTS,
};

/* Of one line of settings; more of them are noted as left out. */
#define IMPORT_LIMIT_ROWS 4096u

struct import_row {
	enum import_slot slot;
	const char *value;
	uint32_t line;	     /* of the settings */
	const char *file;    /* of rules: which one; NULL: the settings */
	const char *more;    /* of the statement; NULL: nothing */
	const char *refusal; /* why the loader would not have it; NULL: it does */
};

struct import_note {
	uint32_t line; /* 0: of no line */
	const char *text, *file;
};

struct import {
	struct import_row *rows;
	size_t row_count;
	struct import_note *notes;
	size_t note_count;
};

/* "claude codex gemini srt" */
const char *import_names(void);
/* IMPORT_COUNT where there is none of the name. */
enum import_from import_find(const char *name);
/* Where it keeps its settings, below the home. */
const char *import_place(enum import_from from);

/* Whether its settings are TOML; else they are JSON. */
bool import_is_toml(enum import_from from);

/* -EINVAL where the outline is no map, -ENOMEM. */
int import_read(enum import_from from, const struct outline *outline, struct arena *arena,
		struct import *ret_import);

/* Adds what the rules of one file say (outline_parse_rules()); the name stays the caller's. */
int import_rules(const struct outline *outline, const char *file, struct arena *arena,
		 struct import *import);

/* A note of the caller's; -E2BIG, -ENOMEM. The text stays the caller's. */
int import_leave(struct import *import, struct arena *arena, uint32_t line, const char *text);

/*
 * Prints the policy and the notes. ret_lines[i] is the line of row i, 0 of one that is not printed
 * as a statement (refused, or said before); an array of row_count numbers, or NULL.
 */
void import_print(const struct import *import, const char *title, struct buffer *buffer,
		  uint32_t *ret_lines);
