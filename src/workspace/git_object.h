/*
 * Whether a repository has an object: a loose file of its name, or an entry in the index of a pack.
 * It is not read. For references that are about to be set to it: a task's commits may have been
 * pruned by a gc of another task, or of the host, which does not see the task's references.
 *
 * Owns the descriptors of the indexes. What they hold may be hostile: nothing is mapped, and what
 * cannot be told (alternates, more packs than GIT_OBJECT_LIMIT_PACKS, an index of an old version)
 * counts as there.
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

void git_objects_close(struct git_objects *objects);
