/*
 * New objects of a task come to the host's store: each is copied to where no task can change it,
 * looked through (git_content.h), and linked to its name where that is free. Nothing of the host's
 * is written or removed. What git makes again by itself, and believes (commit graphs, bitmaps,
 * reverse and multi-pack indexes), does not come; alternates are held as any unknown name is.
 *
 * Of a pack that has mostly what the host has (a gc in the box) the new objects come one by one;
 * another one comes whole.
 */
#include "workspace/git_commit_internal.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/sha256.h"
#include "workspace/git_content.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_STEP_BYTES (16u * 1024 * 1024)
#define STORE "objects/"
#define LFS_STORE "lfs/objects/"
#define PACKS "objects/pack/"
/* Of a pack: as many, where they are less than a part of it, come one by one. */
#define SINGLE_LIMIT 10000u
#define SINGLE_PART 4u

#define REASON_NAME "its content is not what its name says"
#define REASON_WORK "it takes too long to look through"

/* A file without a name yet, in the directory where it is to have one. */
struct fresh {
	int directory_fd, fd; /* owned */
};

#define FRESH_NONE ((struct fresh){ .directory_fd = -1, .fd = -1 })

static void fresh_drop(struct fresh *fresh)
{
	fd_close(&fresh->fd);
	fd_close(&fresh->directory_fd);
}

#define CLEANUP_FRESH __attribute__((cleanup(fresh_drop)))

/* git makes objects read-only, for whoever may read the directory. */
static int fresh_begin(const struct git_area *area, const char *path, struct fresh *ret_fresh)
{
	struct fresh CLEANUP_FRESH fresh = FRESH_NONE;
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX];
	struct stat status;

	if (snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path), path) >=
	    (int)sizeof(directory))
		return -ENAMETOOLONG;
	fresh.directory_fd = git_file_directory(&area->target, directory);
	if (fresh.directory_fd < 0)
		return fresh.directory_fd;
	fresh.fd = openat(fresh.directory_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fresh.fd < 0 || fstat(fresh.directory_fd, &status) < 0)
		return -errno;
	if (geteuid() == 0 && fchown(fresh.fd, status.st_uid, status.st_gid) < 0)
		return -errno;
	if (fchmod(fresh.fd, status.st_mode & 0444) < 0)
		return -errno;
	*ret_fresh = fresh;
	fresh = FRESH_NONE;
	return 0;
}

/* Where something has the name meanwhile it stays. */
static int fresh_name(const struct fresh *fresh, const char *path)
{
	char self[40];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fresh->fd);
	if (linkat(AT_FDCWD, self, fresh->directory_fd, strrchr(path, '/') + 1, AT_SYMLINK_FOLLOW) <
		    0 &&
	    errno != EEXIST)
		return -errno;
	return 0;
}

static int copy_range(int from_fd, int to_fd, uint64_t size)
{
	char bytes[16384];
	ssize_t length;

	while (size) {
		size_t step = size < COPY_STEP_BYTES ? (size_t)size : COPY_STEP_BYTES;

		length = copy_file_range(from_fd, NULL, to_fd, NULL, step, 0);
		if (length <= 0)
			break;
		size -= (uint64_t)length;
	}
	/* where the file systems cannot do it between them */
	while (size && (length = fd_read_all(from_fd, bytes, sizeof(bytes))) > 0) {
		int result = fd_write_all(to_fd, bytes, (size_t)length);

		if (result < 0)
			return result;
		size -= (uint64_t)length < size ? (uint64_t)length : size;
	}
	return size ? -EIO : 0;
}

static const char *file_fault(const struct stat *status)
{
	if (!S_ISREG(status->st_mode))
		return "it is no file";
	if ((uint64_t)status->st_size > GIT_COMMIT_LIMIT_OBJECT_BYTES)
		return "it is too large";
	if (status->st_size > (1 << 20) && status->st_blocks * 512 < status->st_size / 2)
		return "it has holes";
	return NULL;
}

/* The task's file; -EFBIG and ret_fault: it is not taken. */
static int open_item(const struct git_run *run, const struct git_piece *item, int *ret_fd,
		     uint64_t *ret_size, const char **ret_fault)
{
	int CLEANUP_FD fd = fd_open_beneath(run->cover->upper_fd, item->entry->path,
					    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return fd < 0 ? fd : -errno;
	*ret_fault = file_fault(&status);
	if (*ret_fault)
		return -EFBIG;
	*ret_size = (uint64_t)status.st_size;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Its bytes, where the task cannot change them any more. */
static int copy_item(struct git_run *run, struct git_area *area, const struct git_piece *item,
		     struct fresh *ret_fresh, const char **ret_fault)
{
	struct fresh CLEANUP_FRESH fresh = FRESH_NONE;
	int CLEANUP_FD from = -1;
	uint64_t size = 0;
	int result = open_item(run, item, &from, &size, ret_fault);

	if (result == 0)
		result = fresh_begin(area, item->path, &fresh);
	if (result == 0)
		result = copy_range(from, fresh.fd, size);
	if (result < 0)
		return result;
	*ret_fresh = fresh;
	fresh = FRESH_NONE;
	return 0;
}

static int object_failed(struct git_run *run, struct git_area *area, struct git_piece *item,
			 const char *fault, int code)
{
	if (fault)
		return git_run_hold(run, area, item, fault);
	if (code == -EBADMSG)
		return git_run_hold(run, area, item, REASON_NAME);
	if (code == -EFBIG)
		return git_run_hold(run, area, item, REASON_WORK);
	return git_run_failed(run, area, item, code);
}

/* ---- one by one ---- */

static int take_loose(struct git_run *run, struct git_area *area, struct git_piece *item,
		      const struct git_objects *there, const unsigned char *id)
{
	struct fresh CLEANUP_FRESH fresh = FRESH_NONE;
	const char *fault = NULL;
	int result;

	if (git_objects_has(there, id)) {
		/* as git does: lest a gc take it for forgotten */
		(void)utimensat(there->fd, item->path + strlen(STORE), NULL, AT_SYMLINK_NOFOLLOW);
		return 0;
	}
	result = copy_item(run, area, item, &fresh, &fault);
	if (result == 0)
		result = git_content_check(fresh.fd, id, run->id_bytes, &run->work_bytes);
	if (result == 0)
		result = fresh_name(&fresh, item->path);
	return result < 0 ? object_failed(run, area, item, fault, result) : 0;
}

static int hash_file(int fd, unsigned char digest[static SHA256_BYTES])
{
	char bytes[16384];
	struct sha256 hash;
	ssize_t length;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	sha256_begin(&hash);
	while ((length = fd_read_all(fd, bytes, sizeof(bytes))) > 0)
		sha256_update(&hash, bytes, (size_t)length);
	sha256_end(&hash, digest);
	return length < 0 ? (int)length : 0;
}

/* "12/34/1234..." by git-lfs: the file's own hash. */
static bool is_lfs_name(const char *name, const char **ret_digits)
{
	static const char digits[] = "0123456789abcdef";

	if (strlen(name) != 6 + 64 || name[2] != '/' || name[5] != '/' ||
	    strspn(name + 6, digits) != 64)
		return false;
	*ret_digits = name + 6;
	return memcmp(name, name + 6, 2) == 0 && memcmp(name + 3, name + 8, 2) == 0;
}

static int take_lfs(struct git_run *run, struct git_area *area, struct git_piece *item)
{
	struct fresh CLEANUP_FRESH fresh = FRESH_NONE;
	unsigned char digest[SHA256_BYTES];
	char text[SHA256_HEX_BYTES];
	const char *digits, *fault = NULL;
	struct stat status;
	int result;

	if (!is_lfs_name(item->path + strlen(LFS_STORE), &digits))
		return git_run_hold(run, area, item, "it is no object");
	if (git_file_status(area->target.fd, item->path, &status) == 0)
		return 0;
	result = copy_item(run, area, item, &fresh, &fault);
	if (result == 0)
		result = hash_file(fresh.fd, digest);
	if (result == 0) {
		sha256_hex(digest, text);
		result = strcmp(text, digits) == 0 ? fresh_name(&fresh, item->path) : -EBADMSG;
	}
	return result < 0 ? object_failed(run, area, item, fault, result) : 0;
}

/* ---- packs ---- */

/* The files of a pack, as the task left them. */
struct bundle {
	const char *stem;			   /* "objects/pack/pack-..." */
	struct git_piece *index, *pack, *promisor; /* the last may be NULL */
	const char *fault;
};

static struct git_piece *part_of(struct git_run *run, const struct git_area *area, const char *stem,
				 const char *end)
{
	const char *path = arena_format(run->arena, "%s%s", stem, end);
	struct git_piece *item = path ? git_run_item(area, path) : NULL;

	return item && item->entry->kind == GIT_UPPER_FILE ? item : NULL;
}

static int save_single(struct git_run *run, struct git_area *area, struct git_pack *pack, size_t at)
{
	struct fresh CLEANUP_FRESH fresh = FRESH_NONE;
	char name[GIT_OBJECT_PATH_BYTES], path[sizeof(STORE) + GIT_OBJECT_PATH_BYTES];
	int result;

	git_object_path(git_pack_id(pack, at), run->id_bytes, name);
	(void)snprintf(path, sizeof(path), STORE "%s", name);
	result = fresh_begin(area, path, &fresh);
	if (result == 0)
		result = git_pack_save(pack, at, fresh.fd, &run->work_bytes);
	return result < 0 ? result : fresh_name(&fresh, path);
}

static int save_singles(struct git_run *run, struct git_area *area, struct git_pack *pack,
			const bool *is_there)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < git_pack_count(pack); i++)
		if (!is_there[i])
			result = save_single(run, area, pack, i);
	return result;
}

/* What says that a server has the rest: git asks whether there is one, not what is in it. */
static int save_promisor(struct git_area *area, const struct bundle *bundle)
{
	struct fresh CLEANUP_FRESH fresh = FRESH_NONE;
	int result;

	if (!bundle->promisor)
		return 0;
	result = fresh_begin(area, bundle->promisor->path, &fresh);
	return result < 0 ? result : fresh_name(&fresh, bundle->promisor->path);
}

/* The index last: git finds a pack by that. */
static int save_whole(struct git_run *run, struct git_area *area, struct bundle *bundle)
{
	struct fresh CLEANUP_FRESH pack_file = FRESH_NONE;
	struct fresh CLEANUP_FRESH index_file = FRESH_NONE;
	struct git_pack CLEANUP_GIT_PACK *pack = NULL;
	int result = copy_item(run, area, bundle->pack, &pack_file, &bundle->fault);

	if (result == 0)
		result = copy_item(run, area, bundle->index, &index_file, &bundle->fault);
	if (result == 0)
		result = git_pack_open(pack_file.fd, index_file.fd, run->id_bytes, &pack);
	if (result == 0)
		result = git_pack_check(pack, &run->work_bytes);
	if (result == 0)
		result = save_promisor(area, bundle);
	if (result == 0)
		result = fresh_name(&pack_file, bundle->pack->path);
	return result < 0 ? result : fresh_name(&index_file, bundle->index->path);
}

static size_t count_new(const bool *is_there, size_t count)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		found += !is_there[i];
	return found;
}

static int save_pack(struct git_run *run, struct git_area *area, struct bundle *bundle,
		     const struct git_objects *there)
{
	struct git_pack CLEANUP_GIT_PACK *pack = NULL;
	int CLEANUP_FD pack_fd = -1;
	int CLEANUP_FD index_fd = -1;
	bool *is_there;
	size_t count, new;
	uint64_t size;
	int result = open_item(run, bundle->pack, &pack_fd, &size, &bundle->fault);

	if (result == 0)
		result = open_item(run, bundle->index, &index_fd, &size, &bundle->fault);
	if (result == 0)
		result = git_pack_open(pack_fd, index_fd, run->id_bytes, &pack);
	if (result < 0)
		return result;
	count = git_pack_count(pack);
	is_there = arena_array(run->arena, count + 1, sizeof(*is_there));
	if (!is_there)
		return -ENOMEM;
	result = git_objects_mark(there, git_pack_id(pack, 0), count, is_there);
	new = count_new(is_there, count);
	if (result < 0 || !new)
		return result;
	if (new <= SINGLE_LIMIT &&new < count / SINGLE_PART && !bundle->promisor)
		return save_singles(run, area, pack, is_there);
	return save_whole(run, area, bundle);
}

static int take_pack(struct git_run *run, struct git_area *area, struct git_piece *index,
		     const struct git_objects *there)
{
	struct bundle bundle = { .index = index };
	struct stat status;
	int result;

	bundle.stem = arena_copy_bytes(run->arena, index->path, strlen(index->path) - 4);
	if (!bundle.stem)
		return -ENOMEM;
	bundle.pack = part_of(run, area, bundle.stem, ".pack");
	bundle.promisor = part_of(run, area, bundle.stem, ".promisor");
	/* the host's own: git touched its times; or what is left of one that was removed */
	if (!bundle.pack || git_file_status(area->target.fd, bundle.pack->path, &status) == 0)
		return 0;
	result = save_pack(run, area, &bundle, there);
	return result < 0 ? object_failed(run, area, bundle.pack, bundle.fault, result) : 0;
}

/* ---- all of them ---- */

static bool begins_with(const char *path, const char *start)
{
	return strncmp(path, start, strlen(start)) == 0;
}

static bool is_index(const char *path)
{
	size_t length = strlen(path);

	return begins_with(path, PACKS "pack-") && length > 4 &&
	       strcmp(path + length - 4, ".idx") == 0 && !strchr(path + strlen(PACKS), '/');
}

/* What git is at work on, or makes again. */
static bool is_passing(const char *path)
{
	const char *name = strrchr(path, '/') + 1;

	return begins_with(path, "objects/info/") || begins_with(path, PACKS) ||
	       begins_with(path, STORE "incoming-") || begins_with(path, STORE "tmp_objdir-") ||
	       begins_with(name, "tmp_");
}

static int take_object(struct git_run *run, struct git_area *area, struct git_piece *item,
		       const struct git_objects *there)
{
	unsigned char id[GIT_CONTENT_ID_BYTES];

	if (begins_with(item->path, LFS_STORE))
		return take_lfs(run, area, item);
	if (is_index(item->path))
		return take_pack(run, area, item, there);
	if (git_object_id(item->path + strlen(STORE), run->id_bytes, id))
		return take_loose(run, area, item, there, id);
	return is_passing(item->path) ? 0 : git_run_hold(run, area, item, "it is no object");
}

int git_run_objects(struct git_run *run, struct git_area *area)
{
	struct git_objects there = GIT_OBJECTS_NONE;
	int result = 0;

	for (size_t i = 0; result == 0 && i < area->count; i++) {
		struct git_piece *item = &area->items[i];

		if (item->class != GIT_OBJECT || item->is_done)
			continue;
		item->is_done = true;
		/* what is gone for the task stays for the host */
		if (item->entry->kind != GIT_UPPER_FILE)
			continue;
		if (!there.is_open)
			git_objects_open(&there, area->target.fd, run->id_bytes);
		result = take_object(run, area, item, &there);
	}
	git_objects_close(&there);
	return result;
}
