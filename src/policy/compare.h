/*
 * Two policies side by side: what the second newly allows and newly denies, in words. Pure.
 *
 * Compared is what the documents say, with the built-in values for what they leave out, not what a
 * host makes of it: a path below one that is allowed already is nothing new, and a link that leads
 * elsewhere is not looked at.
 */
#pragma once

#include "policy/document.h"

struct arena;

/*
 * Whether the statement allows what the document does not: a single value that allows more than the
 * document's (or the built-in one), or an item of a list that allows which the document lacks.
 */
bool compare_widens(const struct document *document, const struct document_statement *statement);

/* Whether a single value allows less than another of its key; NULL is the built-in value. */
bool compare_is_narrower(enum document_key key, const struct document_statement *one,
			 const struct document_statement *than);

struct difference {
	bool allows; /* else it denies */
	const char *text;
	struct rule_ref
		rule; /* of the document that says so; id NULL: where nothing does any more */
};

struct differences {
	struct difference *rows; /* in the order of the keys */
	size_t count;
};

/* -ENOMEM. */
int compare_documents(const struct document *before, const struct document *after,
		      struct arena *arena, struct differences *ret_differences);
