/*
 * A reader of git's configuration syntax, as git-config(1) "Syntax" has it and git 2.39 reads it:
 * one position in the text, which only moves forward, and one item after the other with its place
 * in the text, so that the text can be edited around it. Pure.
 *
 * The text is foreign. It is borrowed, read within its bounds and never changed; a NUL anywhere in
 * it, or what git itself would stop at, is GIT_ITEM_BAD, and then nothing of the text counts. The
 * reader has no limit of its own: it takes memory in proportion to the longest name and value.
 */
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

struct git_text {
	const char *bytes;
	size_t length; /* 0: absent or empty */
};

enum git_item {
	GIT_ITEM_END,
	GIT_ITEM_SECTION,
	GIT_ITEM_ENTRY,
	GIT_ITEM_COMMENT, /* of a line of its own; one behind a value belongs to the entry */
	GIT_ITEM_BAD,
};

/*
 * Names are as git compares them. Section: "remote.origin" for [remote "origin"], the part before
 * the first dot in lower case; "" before any header. Key: in lower case, without a dot.
 */
struct git_config_reader {
	struct git_text text;
	size_t at;
	struct buffer section, key, value; /* .data is NULL as long as nothing was put in */
	bool has_value;			   /* false: a key without '=' */
	bool is_bad;
	/* Of the last item: offsets in the text. Of an entry: key [begin, key_end), then up to
	 * value_end what makes the value, then blanks and a comment, then the end of the line. */
	size_t begin, key_end, value_end, end;
	/* Line ends to be added at the end of the text before anything else can follow it. */
	unsigned int closing;
};

/* Begins at the start of a text; buffers that live in an arena, or NULL for memory of their own. */
void git_config_begin(struct git_config_reader *reader, struct git_text text, struct arena *arena);

/* GIT_ITEM_BAD when memory ran out, too. */
enum git_item git_config_next(struct git_config_reader *reader);

/* The content of one of the reader's buffers as a text. */
const char *git_config_text(const struct buffer *buffer);

void git_config_end(struct git_config_reader *reader);

#define CLEANUP_GIT_CONFIG __attribute__((cleanup(git_config_end)))
