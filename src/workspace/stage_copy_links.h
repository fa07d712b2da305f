/*
 * Files with more than one name, while a tree is copied: where the copy of each stands. Owns its
 * memory. What it has no room for is copied once more, as a file of its own.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct stage_copy_links {
	struct stage_copy_link {
		uint64_t device, inode;
		char *path; /* NULL: free */
	} * items;
	size_t count, bytes;
};

/* NULL where it was not seen, or is too deep for a path. */
const char *stage_copy_links_find(const struct stage_copy_links *links, uint64_t device,
				  uint64_t inode);

/* Of one that is known the newer place counts. -ENOMEM, also where path is NULL. */
int stage_copy_links_add(struct stage_copy_links *links, uint64_t device, uint64_t inode,
			 const char *path);

void stage_copy_links_free(struct stage_copy_links *links);
