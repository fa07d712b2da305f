/*
 * Changes a text of git configuration around the entries that change: every other byte stays. What
 * is to be done is collected first and written in one pass. Pure; memory comes from the arena.
 *
 * A section that loses its last entry goes with its header, unless a comment stands in it or before
 * it: git does the same.
 */
#pragma once

#include "workspace/git_config_list.h"

/* In the order in which those at one place are done. */
enum git_change_kind { GIT_CHANGE_VALUE, GIT_CHANGE_ADDITION, GIT_CHANGE_REMOVAL };

struct git_change {
	enum git_change_kind kind;
	size_t begin, end; /* what is replaced; begin == end: nothing */
	const char *text;
	size_t length;
	uint32_t order;
};

struct git_edit {
	struct arena *arena;
	struct git_document *document;
	const char *line_end;
	struct git_change *changes;
	size_t count;
	struct buffer sections; /* the text of those */
	const char *last_section;
	bool failed; /* no memory */
};

void git_edit_begin(struct git_edit *edit, struct arena *arena, struct git_document *document);

/* Makes the values of a key what another document has; `now` are entries of the edited one. */
void git_edit_set(struct git_edit *edit, struct git_values now, struct git_values after);

/* -ENOMEM. */
int git_edit_end(struct git_edit *edit, struct git_text *ret);
