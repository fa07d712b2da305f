#include "trace/executable.h"

#include "base/clock.h"
#include "base/fd.h"
#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES (64u * 1024)
#define SECOND_NS 1000000000

/* Entries that a file may be in: those of one set. */
#define SET 4u

/* On disk, in the host's order: it never leaves the host. */
struct entry {
	uint64_t device, inode, size;
	int64_t mtime_ns, ctime_ns;
	unsigned char sha256[SHA256_BYTES];
	unsigned char sum[24]; /* of all before, with what tells this version from others */
};

_Static_assert(sizeof(struct entry) == 96, "one form on disk");

#define FILE_BYTES ((off_t)(EXECUTABLE_ENTRIES * sizeof(struct entry)))

static int64_t time_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * SECOND_NS + time->tv_nsec;
}

static struct entry key_of(const struct stat *status)
{
	return (struct entry){
		.device = status->st_dev,
		.inode = status->st_ino,
		.size = (uint64_t)status->st_size,
		.mtime_ns = time_ns(&status->st_mtim),
		.ctime_ns = time_ns(&status->st_ctim),
	};
}

static bool is_same(const struct entry *a, const struct entry *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static void sum_up(const struct entry *entry, unsigned char sum[static sizeof(entry->sum)])
{
	static const char version[] = "bawn executables 1";
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_update(&hash, version, sizeof(version));
	sha256_update(&hash, entry, offsetof(struct entry, sum));
	sha256_end(&hash, digest);
	memcpy(sum, digest, sizeof(entry->sum));
}

static bool is_whole(const struct entry *entry)
{
	unsigned char sum[sizeof(entry->sum)];

	sum_up(entry, sum);
	return memcmp(sum, entry->sum, sizeof(sum)) == 0;
}

static off_t set_of(const struct entry *key)
{
	uint64_t mixed = (key->inode ^ key->device << 32) * 0x9e3779b97f4a7c15ull;

	return (off_t)((mixed >> 32) % (EXECUTABLE_ENTRIES / SET) * SET * sizeof(struct entry));
}

/* ---- the cache ---- */

void executable_cache_open(const struct trace_store *store, struct executable_cache *ret_cache)
{
	const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int CLEANUP_FD fd = openat(store->fd, TRACE_EXECUTABLES, flags, 0600);
	struct stat status;

	*ret_cache = EXECUTABLE_CACHE_NONE;
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    status.st_uid != geteuid() || (status.st_mode & 022))
		return;
	/* a hole reads as zeros, which have no sum; what is behind the end is not ours */
	if (status.st_size != FILE_BYTES && ftruncate(fd, FILE_BYTES) < 0)
		return;
	ret_cache->fd = TAKE_FD(fd);
}

void executable_cache_close(struct executable_cache *cache)
{
	fd_close(&cache->fd);
}

/* The set's entries, zeros for what cannot be read. */
static void read_set(const struct executable_cache *cache, off_t place,
		     struct entry set[static SET])
{
	ssize_t count;

	memset(set, 0, SET * sizeof(*set));
	do
		count = pread(cache->fd, set, SET * sizeof(*set), place);
	while (count < 0 && errno == EINTR);
}

bool executable_lookup(const struct executable_cache *cache, const struct stat *status,
		       char ret_sha256[static SHA256_HEX_BYTES])
{
	struct entry key = key_of(status), set[SET];

	if (cache->fd < 0 || !S_ISREG(status->st_mode))
		return false;
	read_set(cache, set_of(&key), set);
	for (unsigned i = 0; i < SET; i++)
		if (is_same(&set[i], &key) && is_whole(&set[i])) {
			sha256_hex(set[i].sha256, ret_sha256);
			return true;
		}
	return false;
}

/* Which entry goes: one of the same inode, one that is none, or any. */
static unsigned victim(const struct entry *key, const struct entry set[static SET])
{
	for (unsigned i = 0; i < SET; i++)
		if (set[i].inode == key->inode && set[i].device == key->device)
			return i;
	for (unsigned i = 0; i < SET; i++)
		if (!is_whole(&set[i]))
			return i;
	return (unsigned)key->ctime_ns / 1024 % SET;
}

static void remember(const struct executable_cache *cache, const struct entry *entry)
{
	off_t place = set_of(entry);
	struct entry set[SET];
	unsigned i;

	if (cache->fd < 0)
		return;
	read_set(cache, place, set);
	i = victim(entry, set);
	/* one that is not written, or not whole, is a miss later */
	if (pwrite(cache->fd, entry, sizeof(*entry), place + (off_t)(i * sizeof(*entry))) < 0)
		return;
}

/* ---- computing ---- */

static const char *why_not(int code)
{
	return code == EACCES ? "it cannot be read" :
	       code == ENOENT ? "it is not there any more" :
				"it could not be opened";
}

void executable_begin(int fd, struct executable *ret_executable)
{
	struct executable executable = EXECUTABLE_NONE;
	char path[32];
	struct stat status;

	*ret_executable = executable;
	executable.begun_wall_ns = clock_wall_ns();
	if (fstat(fd, &status) < 0) {
		ret_executable->unhashed = why_not(errno);
		return;
	}
	if (!S_ISREG(status.st_mode)) {
		ret_executable->unhashed = "it is no regular file";
		return;
	}
	if ((uint64_t)status.st_size > EXECUTABLE_LIMIT_BYTES) {
		ret_executable->unhashed = "it is too large";
		return;
	}
	/* a regular file: neither a FIFO nor a device is behind it, whatever its name is now */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	executable.fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (executable.fd < 0) {
		ret_executable->unhashed = why_not(errno);
		return;
	}
	executable.device = status.st_dev;
	executable.inode = status.st_ino;
	executable.size = (uint64_t)status.st_size;
	executable.mtime_ns = time_ns(&status.st_mtim);
	executable.ctime_ns = time_ns(&status.st_ctim);
	sha256_begin(&executable.hash);
	*ret_executable = executable;
}

static bool is_as_begun(const struct executable *executable)
{
	struct stat status;

	return fstat(executable->fd, &status) == 0 && status.st_dev == executable->device &&
	       status.st_ino == executable->inode && (uint64_t)status.st_size == executable->size &&
	       time_ns(&status.st_mtim) == executable->mtime_ns &&
	       time_ns(&status.st_ctim) == executable->ctime_ns;
}

static void settle(struct executable *executable, const struct executable_cache *cache,
		   char ret_sha256[static SHA256_HEX_BYTES])
{
	struct entry entry = { .device = executable->device,
			       .inode = executable->inode,
			       .size = executable->size,
			       .mtime_ns = executable->mtime_ns,
			       .ctime_ns = executable->ctime_ns };
	int64_t settled = (int64_t)(executable->begun_wall_ns - EXECUTABLE_SETTLED_NS);

	sha256_end(&executable->hash, entry.sha256);
	if (!is_as_begun(executable)) {
		executable->unhashed = "it changed while it was read";
		return;
	}
	sha256_hex(entry.sha256, ret_sha256);
	if (entry.mtime_ns > settled || entry.ctime_ns > settled)
		return;
	sum_up(&entry, entry.sum);
	remember(cache, &entry);
}

bool executable_step(struct executable *executable, uint64_t bytes,
		     const struct executable_cache *cache, char ret_sha256[static SHA256_HEX_BYTES])
{
	unsigned char chunk[CHUNK_BYTES];
	uint64_t until = executable->at + bytes;

	while (!executable->unhashed && executable->at < executable->size) {
		ssize_t count;

		if (executable->at >= until)
			return true;
		count = pread(executable->fd, chunk, sizeof(chunk), (off_t)executable->at);
		if (count < 0 && errno == EINTR)
			continue;
		/* more than there was when it was begun is never read */
		if (count <= 0)
			executable->unhashed = count < 0 ? "it could not be read" :
							   "it changed while it was read";
		else if ((uint64_t)count > executable->size - executable->at)
			executable->unhashed = "it changed while it was read";
		else
			sha256_update(&executable->hash, chunk, (size_t)count);
		executable->at += count > 0 ? (uint64_t)count : 0;
	}
	if (!executable->unhashed)
		settle(executable, cache, ret_sha256);
	return false;
}

void executable_end(struct executable *executable)
{
	fd_close(&executable->fd);
}

const char *executable_compute(int fd, const struct executable_cache *cache,
			       char ret_sha256[static SHA256_HEX_BYTES])
{
	struct executable CLEANUP_EXECUTABLE executable;

	executable_begin(fd, &executable);
	while (executable_step(&executable, EXECUTABLE_LIMIT_BYTES, cache, ret_sha256))
		;
	return executable.unhashed;
}
