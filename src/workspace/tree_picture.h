/*
 * A picture of a directory tree: what each name in it was when it was looked at. Two of them tell
 * what changed between (workspace/tree.h). It is flat: folders in the order of a walk, parents
 * first, the names of each together.
 *
 * Kept between runs in the state directory, as a cache: losing one loses what was before a change,
 * and nothing else. What is read there is ours, but a power cut may have torn it, so that it has a
 * digest and every number in it is checked.
 *
 * Memory is its own and bounded; what does not fit sets `code`, and the picture is no good then.
 * Who may use it: workspace/tree.
 */
#pragma once

#include "base/buffer.h"
#include "base/path.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Some 70 bytes each: a tree that has more has no picture, and its changes say less. */
#define TREE_LIMIT_NAMES 400000u
#define TREE_LIMIT_FOLDERS 100000u
/* Of names and paths together. */
#define TREE_LIMIT_TEXT_BYTES (32u * 1024 * 1024)
/* What tasks changed, and small files that were hashed while an action ran. */
#define TREE_LIMIT_DIGESTS 20000u

enum tree_flag {
	TREE_BORN = 1u << 0,  /* the object was made since */
	TREE_VAGUE = 1u << 1, /* it had changed already when it was looked at */
	TREE_SORTED = 1u << 2,
};

struct tree_entry {
	uint64_t inode, size;
	int64_t changed_ns, modified_ns;
	uint32_t mode;
	uint32_t name;	 /* in the text */
	uint32_t digest; /* its number and one; 0: none */
	uint32_t flags;
};

struct tree_folder {
	uint64_t device, inode;
	int64_t changed_ns;
	uint32_t path; /* in the text; "" for the top */
	uint32_t first, count;
	uint32_t flags;
};

struct tree_picture {
	struct tree_folder *folders;
	struct tree_entry *entries;
	unsigned char (*digests)[SHA256_BYTES];
	size_t folder_count, folder_room, entry_count, entry_room, digest_count, digest_room;
	struct buffer text;
	uint32_t *index; /* of folders, by inode and by path */
	size_t index_size;
	uint64_t sum; /* of what stands in it */
	int code;     /* -E2BIG, -ENOMEM */
};

#define TREE_NONE UINT32_MAX

/* A folder, whose names follow. */
void tree_picture_enter(struct tree_picture *picture, const char *path, const struct stat *status,
			uint32_t flags);
/* A name in it. */
void tree_picture_add(struct tree_picture *picture, const char *name, const struct stat *status,
		      uint32_t flags);
/* The names of the last folder come again. */
void tree_picture_again(struct tree_picture *picture);

static inline const char *tree_text(const struct tree_picture *picture, uint32_t at)
{
	return picture->text.data + at;
}

/* TREE_NONE where there is none. From the first of them on no folder comes any more. */
uint32_t tree_picture_by_inode(struct tree_picture *picture, uint64_t device, uint64_t inode);
uint32_t tree_picture_by_path(struct tree_picture *picture, const char *path);
/* The names of a folder in order: their numbers are others afterwards, and stay. */
void tree_picture_sort(struct tree_picture *picture, uint32_t folder);
/* The number of the entry, TREE_NONE where there is none. Sorts the folder. */
uint32_t tree_picture_find(struct tree_picture *picture, uint32_t folder, const char *name);

void tree_picture_set_digest(struct tree_picture *picture, uint32_t entry,
			     const unsigned char digest[static SHA256_BYTES]);

/* NULL where it has none. */
const unsigned char *tree_picture_digest(const struct tree_picture *picture, uint32_t entry);

/* Nothing of it was touched between the two. */
bool tree_entry_is_same(const struct tree_entry *a, const struct tree_entry *b);

/* What a name in the directory begins with while it is being written. */
#define TREE_TEMPORARY ".new-"
/* Under a name in an open directory; the old one or the new one stands there, whole. */
int tree_picture_save(const struct tree_picture *picture, const char *workspace, int fd,
		      const char *name);
/* Whose it is, from an open file that was written whole; false where it does not say. */
bool tree_picture_workspace(int fd, char ret_workspace[static PATH_LIMIT_BYTES]);
/* True where the open file has this picture, with as many digests. */
bool tree_picture_is_kept(const struct tree_picture *picture, int fd, bool with_digests);
/* From an open file: -EBADMSG where it is none that was written whole. */
int tree_picture_load(int fd, struct tree_picture *ret_picture) __attribute__((warn_unused_result));

void tree_picture_free(struct tree_picture *picture);
