/* What the files of workspace/tree share. */
#pragma once

#include "workspace/tree.h"

/* A change, and where in the pictures its two sides stand. */
struct tree_row {
	struct change change;
	const char *path; /* below the workspace */
	struct tree_picture *picture;
	uint32_t before, after; /* TREE_NONE */
	bool is_done;		/* told by another */
};

struct tree_rows {
	struct arena *arena;
	struct tree_row *items;
	size_t count, room;
	uint64_t unlisted;
};

bool tree_is_since(const struct tree *tree, int64_t changed_ns);

/* By what the pictures say, in the order of the walk. -ENOMEM. */
int tree_compare(struct tree *tree, struct tree_rows *rows);

/* Sorts them by path; directories in which much changed become one row. */
void tree_group(struct tree_rows *rows);

/* SHA-256 of a file, or of a link's target, if it is the object of the entry still. */
bool tree_digest(int root_fd, const char *path, const struct tree_entry *entry,
		 unsigned char ret_digest[static SHA256_BYTES]);
