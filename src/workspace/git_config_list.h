/*
 * Texts of git configuration as lists: what is in one (struct git_document), and what several have
 * under the same name (struct git_index). Pure; everything lives in the arena and borrows from it.
 */
#pragma once

#include "workspace/git_config_read.h"

#include <stdint.h>

struct arena;
struct error;

struct git_entry {
	const char *section, *key; /* as in struct git_config_reader */
	const char *value;	   /* NULL: without '=' */
	struct git_text spelled;   /* the key as it stands in the text */
	size_t begin, key_end, value_end, end;
	uint32_t document, order; /* which text, and where in its order */
	uint32_t block;		  /* in the document */
	uint32_t section_id;	  /* set by git_index_make(); sorts as the names do */
	bool is_removed;	  /* set by who edits */
};

/* What is from one header to the next; block 0 is before the first and has none. */
struct git_block {
	const char *section;
	size_t gap;	   /* where what came before the header, blank lines not counted, ends */
	size_t begin, end; /* of the header */
	uint32_t first, count; /* entries */
	uint32_t section_id;
	bool has_comment;  /* in it, or before its header */
	bool has_addition; /* set by who edits */
};

struct git_document {
	struct git_text text;
	struct git_entry *entries;
	size_t count;
	struct git_block *blocks;
	size_t block_count;
	unsigned int closing; /* as in struct git_config_reader */
};

/* The values of one key in one document, in their order. */
struct git_values {
	struct git_entry **items;
	size_t count;
};

struct git_index {
	struct git_entry **entries; /* sorted by section, key, document, order */
	size_t count;
	struct git_block **blocks; /* sorted by section */
	size_t block_count;
};

/*
 * -EBADMSG for what git could not read, -EFBIG above the limits of git_config.h; both name the text
 * (`what`). `number` becomes the entries' document.
 */
int git_document_read(struct arena *arena, struct git_text text, uint32_t number, const char *what,
		      struct git_document *ret, struct error *error);

/* -ENOMEM. Entries and blocks of the documents get their section's id. */
int git_index_make(struct arena *arena, struct git_document *documents, size_t count,
		   struct git_index *ret);

struct git_values git_index_find(const struct git_index *index, const char *section,
				 const char *key, uint32_t document);

/* The next of the values that begin at `at`: those of one section, key and document. */
struct git_values git_index_next(const struct git_index *index, size_t at);

bool git_values_are_equal(struct git_values left, struct git_values right);

/* Where two lists differ: behind what they have in common first, before what they have last. */
struct git_difference {
	size_t first;
	size_t left, right; /* how many of each */
};

struct git_difference git_values_differ(struct git_values left, struct git_values right);

bool git_value_is_equal(const char *left, const char *right);
