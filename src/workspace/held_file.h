/*
 * Folders and descriptions of what is held (git_held.h, git_held_tree.h): each description is one
 * JSON object in a file of its own, in a folder of the caller's alone. For those two.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct buffer;
struct json_node;

/* The folder of all that is held, in the state directory. */
#define HELD_FILE_FOLDER "held"

/* Opens a folder, 0700; made where that is wanted. */
int held_file_folder(int parent_fd, const char *name, bool makes);

/* Whole or not at all: written beside, as ".<name>", then renamed. */
int held_file_write(int folder_fd, const char *name, const struct buffer *buffer);

/* The object, in the arena. -EBADMSG for what is none; -ENOENT. */
int held_file_read(int folder_fd, const char *name, size_t limit_bytes, struct arena *arena,
		   const struct json_node **ret_root);
