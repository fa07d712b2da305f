/*
 * What `bawn review show` has of something that was taken out of a work tree
 * (workspace/git_held_tree.h): the names in it and the text of small files. Bounded, nothing
 * followed, nothing opened but regular files.
 */
#pragma once

#include "workspace/git_config.h"
#include "workspace/git_held_tree.h"

struct arena;
struct buffer;
struct error;
struct json;

/* Names of one thing that are shown. */
#define REVIEW_TREE_LIMIT_NAMES 1000u
/* Of one file, and of all of one thing. */
#define REVIEW_TREE_LIMIT_FILE_BYTES (64u * 1024)
#define REVIEW_TREE_LIMIT_BYTES (256u * 1024)

/* A content for people, line by line with a mark (review.c). */
void review_content(struct buffer *text, const char *name, char mark, struct git_text bytes);

/* Appends it; all memory is the arena's. */
int review_tree_text(int state_fd, const struct git_held_tree *held, struct arena *arena,
		     struct buffer *text, struct error *error);
/* The member "entries". */
int review_tree_json(int state_fd, const struct git_held_tree *held, struct arena *arena,
		     struct json *json, struct error *error);
