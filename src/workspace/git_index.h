/*
 * The index of a git repository as bytes (gitformat-index(5)): what a task left is looked through
 * before the host's git reads it. Versions 2 to 4. Pure.
 *
 * Not looked at: whether the cached trees and the untracked cache (extensions TREE, UNTR) tell the
 * truth. They make git slow or blind, and execute nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* About 200,000 files; three of them are looked at side by side. */
#define GIT_INDEX_LIMIT_BYTES (20u * 1024 * 1024)

/*
 * id_bytes: 20, or 32 in a repository of SHA-256. Says what is wrong with it, or NULL: cut off, a
 * checksum that does not hold, an entry whose path git would never have added (.git or .. in it),
 * a mode that is none, an extension that is not known, one that names another file (a split index).
 */
const char *git_index_fault(const void *bytes, size_t length, size_t id_bytes);

/* True when it has the extension; the index has no fault. */
bool git_index_has(const void *bytes, size_t length, size_t id_bytes, const char *extension);

/*
 * Looks for the entry of a path. 1, and ret_id: its id, in the index; 0: there is none; -EBADMSG:
 * the index cannot be read so far, or has ids of another size. Checksum and order are not checked.
 */
int git_index_lookup(const void *bytes, size_t length, size_t id_bytes, const char *path,
		     const unsigned char **ret_id);

/*
 * True when both have the same entries: path, mode, id and flags. What `git status` refreshes
 * (times, sizes, extensions) may differ. False for one that has a fault.
 */
bool git_index_is_same(const void *a, size_t a_length, const void *b, size_t b_length,
		       size_t id_bytes);

/*
 * Asks about the object of each entry that the known index (NULL: none) has not under the same
 * path; what lies in another repository has none here. True where each answer was. For indexes
 * without a fault.
 */
typedef bool git_index_ask(void *context, const unsigned char *id);
bool git_index_has_all(const void *bytes, size_t length, const void *known, size_t known_length,
		       size_t id_bytes, git_index_ask *ask, void *context);
