/*
 * Whether a repository has an object: a loose file of its name, or an entry in the index of a pack.
 * It is not read. For references that are about to be set to it: a task's commits may have been
 * pruned by a gc of another task, or of the host, which does not see the task's references.
 *
 * Owns the descriptors of the indexes. What they hold may be hostile: nothing is mapped, and what
 * cannot be told (alternates, a partial clone, more packs than GIT_OBJECT_LIMIT_PACKS, an index of
 * an old version) counts as there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define GIT_OBJECT_LIMIT_PACKS 64

struct git_objects {
	int fd; /* of the objects directory; -1: not known */
	int packs[GIT_OBJECT_LIMIT_PACKS];
	size_t count;
	size_t id_bytes;
	bool is_open, is_partly_known;
};

#define GIT_OBJECTS_NONE ((struct git_objects){ .fd = -1 })

/* directory_fd: of the repository that has objects/. */
void git_objects_open(struct git_objects *objects, int directory_fd, size_t id_bytes);

/* id: its digits, in lower case. */
bool git_objects_may_have(const struct git_objects *objects, const char *id);

/* Only what is seen to be there: loose, or in one of the packs that were opened. */
bool git_objects_has(const struct git_objects *objects, const unsigned char *id);

/*
 * The same for many, sorted, each id_bytes long and one behind the other: sets is_there of those.
 * -ENOMEM.
 */
int git_objects_mark(const struct git_objects *objects, const unsigned char *ids, size_t count,
		     bool *is_there) __attribute__((warn_unused_result));

/* "12/34..." below the directory of objects, with a NUL. */
#define GIT_OBJECT_PATH_BYTES (2 * 32 + 2)
void git_object_path(const unsigned char *id, size_t id_bytes,
		     char path[static GIT_OBJECT_PATH_BYTES]);
/* The other way; false where the path is no such. */
bool git_object_id(const char *path, size_t id_bytes, unsigned char *ret_id);

void git_objects_close(struct git_objects *objects);
