/*
 * What the two halves of the stage's reader share: the walk (stage_walk.c) and what compares two
 * objects (stage_compare.c). For them alone.
 */
#pragma once

#include "workspace/stage.h"

struct statx;

/* One object beneath a directory's descriptor; the descriptor is -1 where there is none. */
struct stage_object {
	int directory_fd;
	const char *name;
	struct stage_side side;
	uint64_t links;
	uint32_t major, minor; /* of a device */
	bool is_mount;
	bool is_whiteout; /* in the upper directory only */
};

/* 0, with type STAGE_NONE where nothing stands there, or a negative errno. */
int stage_object_at(int directory_fd, const char *name, struct stage_object *ret_object);

/* As fd_open_beneath(), and no mount entered. */
int stage_open_beneath(int directory_fd, const char *path, int flags);

/* The same for a path of any length. */
int stage_open_path(int root_fd, const char *path, int flags);

/* Opens a regular file for reading, without waiting. -ESTALE where it is none. */
int stage_open_file(int root_fd, const char *path);

/* A directory's mark of the overlay: 'y', 'x', or 0. */
char stage_opaque(int directory_fd);

/* The mark on an empty file that makes it a whiteout where the directory's mark is 'x'. */
bool stage_is_marked_whiteout(const struct stage_object *object);

/*
 * True where the contents (of files, targets of links) are the same. ret_unread is set where that
 * could not be found out; they count as different then.
 */
bool stage_is_same_content(const struct stage_object *before, const struct stage_object *after,
			   const char **ret_unread);

/*
 * Marks for capabilities, ACLs and attributes that `after` has in another way than `before`, which
 * may be of type NONE. -EUCLEAN for marks of an overlay that are none of ours. buffer: of
 * STAGE_ATTRIBUTE_BYTES.
 */
#define STAGE_NAMES_BYTES 65536u /* XATTR_LIST_MAX */
#define STAGE_VALUE_BYTES 4096u
#define STAGE_ATTRIBUTE_BYTES (2 * (STAGE_NAMES_BYTES + STAGE_VALUE_BYTES))
int stage_compare_attributes(const struct stage_object *before, const struct stage_object *after,
			     char *buffer, unsigned *ret_marks);

/* Why an object could not be looked at, static words; NULL for errors that end the walk. */
const char *stage_reason(int code);
