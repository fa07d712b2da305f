#include "workspace/tree_picture.h"

#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)
#define FIRST_ROOM 32u
#define MAGIC "bawntree"

struct head {
	char magic[8];
	uint32_t version, entry_bytes, folder_bytes, workspace_bytes;
	uint64_t folders, entries, digests, text_bytes, sum;
};

#define VERSION 2u

static int64_t nanoseconds(struct timespec time)
{
	return time.tv_sec * SECOND_NS + time.tv_nsec;
}

/* Room for one more. */
static bool grow(struct tree_picture *picture, void **items, size_t count, size_t *room,
		 size_t item_bytes, size_t limit)
{
	size_t wanted = *room ? *room * 2 : FIRST_ROOM;
	void *grown;

	if (picture->code)
		return false;
	if (count < *room)
		return true;
	grown = count < limit ? reallocarray(*items, wanted, item_bytes) : NULL;
	if (!grown) {
		picture->code = count < limit ? -ENOMEM : -E2BIG;
		return false;
	}
	*items = grown;
	*room = wanted;
	return true;
}

static uint32_t add_text(struct tree_picture *picture, const char *text)
{
	size_t at = picture->text.length, length = strlen(text) + 1;

	if (at + length > TREE_LIMIT_TEXT_BYTES) {
		picture->code = -E2BIG;
		return 0;
	}
	buffer_append(&picture->text, text, length);
	if (picture->text.failed)
		picture->code = -ENOMEM;
	return (uint32_t)at;
}

static void mix(struct tree_picture *picture, uint64_t value)
{
	picture->sum = (picture->sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	picture->sum ^= picture->sum >> 29;
}

void tree_picture_enter(struct tree_picture *picture, const char *path, const struct stat *status,
			uint32_t flags)
{
	struct tree_folder folder = { .device = status->st_dev,
				      .inode = status->st_ino,
				      .changed_ns = nanoseconds(status->st_ctim),
				      .path = add_text(picture, path),
				      .first = (uint32_t)picture->entry_count,
				      .flags = flags };
	void *items = picture->folders;

	if (!grow(picture, &items, picture->folder_count, &picture->folder_room, sizeof(folder),
		  TREE_LIMIT_FOLDERS))
		return;
	picture->folders = items;
	picture->folders[picture->folder_count++] = folder;
	mix(picture, folder.inode);
	mix(picture, (uint64_t)folder.changed_ns);
}

void tree_picture_add(struct tree_picture *picture, const char *name, const struct stat *status,
		      uint32_t flags)
{
	struct tree_entry entry = { .inode = status->st_ino,
				    .size = (uint64_t)status->st_size,
				    .changed_ns = nanoseconds(status->st_ctim),
				    .modified_ns = nanoseconds(status->st_mtim),
				    .mode = status->st_mode,
				    .flags = flags };
	void *items = picture->entries;

	if (!picture->folder_count || !grow(picture, &items, picture->entry_count,
					    &picture->entry_room, sizeof(entry), TREE_LIMIT_NAMES))
		return;
	entry.name = add_text(picture, name);
	picture->entries = items;
	picture->entries[picture->entry_count++] = entry;
	picture->folders[picture->folder_count - 1].count++;
	mix(picture, entry.inode);
	mix(picture, (uint64_t)entry.changed_ns);
}

void tree_picture_again(struct tree_picture *picture)
{
	struct tree_folder *folder;

	if (picture->code || !picture->folder_count)
		return;
	folder = &picture->folders[picture->folder_count - 1];
	picture->entry_count = folder->first;
	folder->count = 0;
}

/* ---- finding ---- */

static uint64_t hash_inode(uint64_t device, uint64_t inode)
{
	uint64_t hash = (device * UINT64_C(0x9e3779b97f4a7c15)) ^ inode;

	hash *= UINT64_C(0xbf58476d1ce4e5b9);
	return hash ^ hash >> 32;
}

static uint64_t hash_path(const char *path)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

static void put(struct tree_picture *picture, uint64_t hash, uint32_t folder)
{
	size_t at = hash & (picture->index_size - 1);

	while (picture->index[at])
		at = (at + 1) & (picture->index_size - 1);
	picture->index[at] = folder + 1;
}

/* At most half full, with two places for each folder. */
static bool make_index(struct tree_picture *picture)
{
	size_t size = 16;

	if (picture->index)
		return true;
	while (size < picture->folder_count * 4)
		size *= 2;
	picture->index = calloc(size, sizeof(*picture->index));
	if (!picture->index)
		return false;
	picture->index_size = size;
	for (uint32_t i = 0; i < picture->folder_count; i++) {
		const struct tree_folder *folder = &picture->folders[i];

		put(picture, hash_inode(folder->device, folder->inode), i);
		put(picture, hash_path(tree_text(picture, folder->path)), i);
	}
	return true;
}

uint32_t tree_picture_by_inode(struct tree_picture *picture, uint64_t device, uint64_t inode)
{
	if (!make_index(picture))
		return TREE_NONE;
	for (size_t at = hash_inode(device, inode) & (picture->index_size - 1); picture->index[at];
	     at = (at + 1) & (picture->index_size - 1)) {
		const struct tree_folder *folder = &picture->folders[picture->index[at] - 1];

		if (folder->device == device && folder->inode == inode)
			return picture->index[at] - 1;
	}
	return TREE_NONE;
}

uint32_t tree_picture_by_path(struct tree_picture *picture, const char *path)
{
	if (!make_index(picture))
		return TREE_NONE;
	for (size_t at = hash_path(path) & (picture->index_size - 1); picture->index[at];
	     at = (at + 1) & (picture->index_size - 1)) {
		uint32_t folder = picture->index[at] - 1;

		if (strcmp(tree_text(picture, picture->folders[folder].path), path) == 0)
			return folder;
	}
	return TREE_NONE;
}

static int by_name(const void *a, const void *b, void *context)
{
	const struct tree_picture *picture = context;
	const struct tree_entry *left = a, *right = b;

	return strcmp(tree_text(picture, left->name), tree_text(picture, right->name));
}

void tree_picture_sort(struct tree_picture *picture, uint32_t number)
{
	struct tree_folder *folder = &picture->folders[number];

	if (!(folder->flags & TREE_SORTED) && folder->count)
		qsort_r(picture->entries + folder->first, folder->count, sizeof(struct tree_entry),
			by_name, picture);
	folder->flags |= TREE_SORTED;
}

uint32_t tree_picture_find(struct tree_picture *picture, uint32_t number, const char *name)
{
	struct tree_folder *folder = &picture->folders[number];
	size_t low = 0, high = folder->count;

	tree_picture_sort(picture, number);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint32_t entry = folder->first + (uint32_t)middle;
		int order = strcmp(name, tree_text(picture, picture->entries[entry].name));

		if (order == 0)
			return entry;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return TREE_NONE;
}

void tree_picture_set_digest(struct tree_picture *picture, uint32_t entry,
			     const unsigned char digest[static SHA256_BYTES])
{
	void *items = picture->digests;

	/* one more that is not remembered is no fault of the picture's */
	if (picture->digest_count >= TREE_LIMIT_DIGESTS ||
	    !grow(picture, &items, picture->digest_count, &picture->digest_room, SHA256_BYTES,
		  TREE_LIMIT_DIGESTS))
		return;
	picture->digests = items;
	memcpy(picture->digests[picture->digest_count], digest, SHA256_BYTES);
	picture->entries[entry].digest = (uint32_t)++picture->digest_count;
}

const unsigned char *tree_picture_digest(const struct tree_picture *picture, uint32_t entry)
{
	uint32_t digest = picture->entries[entry].digest;

	return digest ? picture->digests[digest - 1] : NULL;
}

bool tree_entry_is_same(const struct tree_entry *a, const struct tree_entry *b)
{
	return a->inode == b->inode && a->size == b->size && a->changed_ns == b->changed_ns &&
	       a->modified_ns == b->modified_ns && a->mode == b->mode;
}

/* ---- kept ---- */

static int put_all(const struct tree_picture *picture, const char *workspace, int fd)
{
	struct head head = { .version = VERSION,
			     .entry_bytes = sizeof(struct tree_entry),
			     .folder_bytes = sizeof(struct tree_folder),
			     .workspace_bytes = (uint32_t)strlen(workspace),
			     .folders = picture->folder_count,
			     .entries = picture->entry_count,
			     .digests = picture->digest_count,
			     .text_bytes = picture->text.length,
			     .sum = picture->sum };
	const struct {
		const void *bytes;
		size_t length;
	} parts[] = {
		{ &head, sizeof(head) },
		{ workspace, head.workspace_bytes },
		{ picture->folders, picture->folder_count * sizeof(*picture->folders) },
		{ picture->entries, picture->entry_count * sizeof(*picture->entries) },
		{ picture->digests, picture->digest_count * SHA256_BYTES },
		{ picture->text.data, picture->text.length },
	};
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;
	int result = 0;

	memcpy(head.magic, MAGIC, sizeof(head.magic));
	sha256_begin(&hash);
	for (size_t i = 0; result == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!parts[i].length)
			continue;
		sha256_update(&hash, parts[i].bytes, parts[i].length);
		result = fd_write_all(fd, parts[i].bytes, parts[i].length);
	}
	sha256_end(&hash, digest);
	return result < 0 ? result : fd_write_all(fd, digest, sizeof(digest));
}

int tree_picture_save(const struct tree_picture *picture, const char *workspace, int directory_fd,
		      const char *name)
{
	char temporary[sizeof(TREE_TEMPORARY) + 16];
	int CLEANUP_FD fd = -1;
	int result;

	(void)snprintf(temporary, sizeof(temporary), TREE_TEMPORARY "%d", (int)getpid());
	fd = fd_open_own(directory_fd, temporary, O_WRONLY | O_TRUNC);
	if (fd < 0)
		return fd;
	result = put_all(picture, workspace, fd);
	if (result == 0 && renameat(directory_fd, temporary, directory_fd, name) < 0)
		result = -errno;
	if (result < 0)
		(void)unlinkat(directory_fd, temporary, 0);
	return result;
}

static bool is_head(const struct head *head)
{
	return memcmp(head->magic, MAGIC, sizeof(head->magic)) == 0 && head->version == VERSION &&
	       head->entry_bytes == sizeof(struct tree_entry) &&
	       head->folder_bytes == sizeof(struct tree_folder) &&
	       head->workspace_bytes < PATH_LIMIT_BYTES && head->folders <= TREE_LIMIT_FOLDERS &&
	       head->entries <= TREE_LIMIT_NAMES && head->digests <= TREE_LIMIT_DIGESTS &&
	       head->text_bytes <= TREE_LIMIT_TEXT_BYTES;
}

bool tree_picture_is_kept(const struct tree_picture *picture, int fd, bool with_digests)
{
	struct head head;

	return fd_read_all(fd, &head, sizeof(head)) == sizeof(head) && is_head(&head) &&
	       head.sum == picture->sum && head.entries == picture->entry_count &&
	       (!with_digests || head.digests == picture->digest_count);
}

bool tree_picture_workspace(int fd, char ret_workspace[static PATH_LIMIT_BYTES])
{
	struct head head;

	if (fd_read_all(fd, &head, sizeof(head)) != sizeof(head) || !is_head(&head) ||
	    fd_read_all(fd, ret_workspace, head.workspace_bytes) != (ssize_t)head.workspace_bytes)
		return false;
	ret_workspace[head.workspace_bytes] = '\0';
	return path_is_clean(ret_workspace);
}

static void *read_part(int fd, size_t count, size_t item_bytes, struct sha256 *hash)
{
	size_t bytes = count * item_bytes;
	void *items = malloc(bytes + 1);

	if (items && fd_read_all(fd, items, bytes) != (ssize_t)bytes) {
		free(items);
		return NULL;
	}
	if (items)
		sha256_update(hash, items, bytes);
	return items;
}

static bool is_sound(const struct tree_picture *picture)
{
	size_t text = picture->text.length;

	if (text && picture->text.data[text - 1])
		return false;
	for (size_t i = 0; i < picture->folder_count; i++) {
		const struct tree_folder *folder = &picture->folders[i];

		if (folder->path >= text || folder->first > picture->entry_count ||
		    folder->count > picture->entry_count - folder->first)
			return false;
	}
	for (size_t i = 0; i < picture->entry_count; i++)
		if (picture->entries[i].name >= text ||
		    picture->entries[i].digest > picture->digest_count)
			return false;
	return true;
}

static int load(int fd, struct tree_picture *picture)
{
	unsigned char digest[SHA256_BYTES], stored[SHA256_BYTES];
	char workspace[PATH_LIMIT_BYTES];
	struct sha256 hash;
	struct head head;

	if (fd_read_all(fd, &head, sizeof(head)) != sizeof(head) || !is_head(&head))
		return -EBADMSG;
	sha256_begin(&hash);
	sha256_update(&hash, &head, sizeof(head));
	if (fd_read_all(fd, workspace, head.workspace_bytes) != (ssize_t)head.workspace_bytes)
		return -EBADMSG;
	sha256_update(&hash, workspace, head.workspace_bytes);
	picture->folders = read_part(fd, head.folders, sizeof(*picture->folders), &hash);
	picture->entries = read_part(fd, head.entries, sizeof(*picture->entries), &hash);
	picture->digests = read_part(fd, head.digests, SHA256_BYTES, &hash);
	picture->text.data = read_part(fd, head.text_bytes, 1, &hash);
	sha256_end(&hash, digest);
	if (!picture->folders || !picture->entries || !picture->digests || !picture->text.data)
		return -EBADMSG;
	picture->folder_count = picture->folder_room = head.folders;
	picture->entry_count = picture->entry_room = head.entries;
	picture->digest_count = picture->digest_room = head.digests;
	picture->text.length = picture->text.capacity = head.text_bytes;
	picture->sum = head.sum;
	if (fd_read_all(fd, stored, sizeof(stored)) != sizeof(stored) ||
	    memcmp(stored, digest, sizeof(digest)) != 0)
		return -EBADMSG;
	return is_sound(picture) ? 0 : -EBADMSG;
}

int tree_picture_load(int fd, struct tree_picture *ret_picture)
{
	struct tree_picture picture = { 0 };
	int result = load(fd, &picture);

	if (result < 0)
		tree_picture_free(&picture);
	else
		*ret_picture = picture;
	return result;
}

void tree_picture_free(struct tree_picture *picture)
{
	free(picture->folders);
	free(picture->entries);
	free(picture->digests);
	free(picture->index);
	buffer_free(&picture->text);
	*picture = (struct tree_picture){ 0 };
}
