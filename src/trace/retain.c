#include "trace/retain.h"

#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "trace/blob.h"
#include "trace/ledger.h"
#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAYER "ledger"
#define NAME_BYTES (ACTION_ID_BYTES + sizeof(TRACE_SUFFIX))
/* Of a chain, to find its first record's policy: long arguments come later. */
#define FIRST_BYTES (1024u * 1024)
/* A policy that is about to go; one that is wanted after all gets its name back. */
#define GOING ".going"
#define POLICY_BYTES (SHA256_HEX_BYTES + sizeof(GOING))

static void name_of(const char *task, char name[static NAME_BYTES])
{
	(void)snprintf(name, NAME_BYTES, "%s%s", task, TRACE_SUFFIX);
}

static int open_chain(const struct trace_store *store, const char *task)
{
	char name[NAME_BYTES];
	int fd;

	name_of(task, name);
	fd = openat(store->tasks_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Takes the chain's lock, which the caller holds by the descriptor. -ENOENT: there is no chain. */
static int lock_chain(const struct trace_store *store, const char *task)
{
	int CLEANUP_FD fd = open_chain(store, task);

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return TAKE_FD(fd);
}

bool retain_is_live(const struct trace_store *store, const char *task)
{
	int CLEANUP_FD fd = lock_chain(store, task);

	return fd == -EBUSY;
}

static int open_blobs(const struct trace_store *store, const char *task)
{
	struct error ignored = ERROR_NONE;
	int fd, result = blob_directory(store, task, false, &fd, &ignored);

	return result < 0 ? result : fd;
}

bool retain_exists(const struct trace_store *store, const char *task)
{
	int CLEANUP_FD chain = open_chain(store, task);
	int CLEANUP_FD blobs = open_blobs(store, task);

	return chain >= 0 || blobs >= 0;
}

uint64_t retain_size(const struct trace_store *store, const char *task)
{
	struct directory CLEANUP_DIRECTORY directory;
	char chain[NAME_BYTES];
	struct stat status;
	const char *name;
	uint64_t bytes = 0;

	name_of(task, chain);
	if (fstatat(store->tasks_fd, chain, &status, AT_SYMLINK_NOFOLLOW) == 0)
		bytes += (uint64_t)status.st_size;
	directory_begin(&directory, open_blobs(store, task));
	while ((name = directory_next(&directory)))
		if (fstatat(directory.fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			bytes += (uint64_t)status.st_size;
	return bytes;
}

/* ---- tasks ---- */

static int record_removal(struct chain *ledger, const struct retain_task *task, const char *reason)
{
	const struct chain_record record = { .task = task->id,
					     .layer = LAYER,
					     .type = "task.removed" };
	struct json *json = chain_begin(ledger, &record);

	json_unsigned(json, "records", task->records);
	json_string(json, "last", task->last[0] ? task->last : NULL);
	json_string(json, "reason", reason);
	return chain_end(ledger);
}

static int remove_files(const struct trace_store *store, const char *task)
{
	int CLEANUP_FD blobs =
		openat(store->fd, TRACE_BLOBS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char name[NAME_BYTES];

	if (blobs >= 0)
		directory_remove_tree(blobs, task);
	if (blobs >= 0 && faccessat(blobs, task, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EACCES;
	name_of(task, name);
	return unlinkat(store->tasks_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* As many in one go as there may be descriptors for their locks. */
#define BATCH 64

struct batch {
	const struct retain_task *tasks[BATCH];
	int locks[BATCH];
	size_t count;
};

static void unlock(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		fd_close(&batch->locks[i]);
	batch->count = 0;
}

static int record_batch(const struct trace_store *store, const struct chain_origin *origin,
			const struct batch *batch, const char *reason, struct error *error)
{
	struct chain CLEANUP_CHAIN ledger = CHAIN_NONE;
	int result = ledger_open(store, origin, &ledger, error);

	if (result < 0)
		return result;
	for (size_t i = 0; i < batch->count && result == 0; i++)
		if (!batch->tasks[i]->is_recorded)
			result = record_removal(&ledger, batch->tasks[i], reason);
	if (result == 0)
		result = chain_flush(&ledger, true);
	return result < 0 ?
		       error_errno(error, result,
				   "the trace's ledger cannot be written; nothing was removed") :
		       0;
}

static int remove_batch(const struct trace_store *store, const struct chain_origin *origin,
			const struct batch *batch, const char *reason, size_t *removed,
			struct error *error)
{
	int result = record_batch(store, origin, batch, reason, error);

	for (size_t i = 0; i < batch->count && result == 0; i++) {
		result = remove_files(store, batch->tasks[i]->id);
		if (result < 0)
			return error_errno(
				error, result,
				"removing the trace of task %s (its removal is on record)",
				batch->tasks[i]->id);
		(*removed)++;
	}
	return result;
}

int retain_remove(const struct trace_store *store, const struct chain_origin *origin,
		  const struct retain_task *tasks, size_t count, const char *reason,
		  size_t *ret_removed, struct error *error)
{
	struct batch batch = { .count = 0 };
	int result = 0;

	*ret_removed = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		int lock = lock_chain(store, tasks[i].id);

		if (lock == -EBUSY)
			continue;
		if (lock < 0 && lock != -ENOENT) {
			result = error_errno(error, lock, "the chain of task %s", tasks[i].id);
			break;
		}
		batch.tasks[batch.count] = &tasks[i];
		batch.locks[batch.count++] = lock;
		if (batch.count == BATCH) {
			result = remove_batch(store, origin, &batch, reason, ret_removed, error);
			unlock(&batch);
		}
	}
	if (result == 0 && batch.count)
		result = remove_batch(store, origin, &batch, reason, ret_removed, error);
	unlock(&batch);
	return result;
}

/* ---- blobs ---- */

static bool has_blob(int directory_fd, const char *blob)
{
	char packed[SHA256_HEX_BYTES + sizeof(BLOB_SUFFIX)];

	(void)snprintf(packed, sizeof(packed), "%s" BLOB_SUFFIX, blob);
	return faccessat(directory_fd, blob, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       faccessat(directory_fd, packed, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int retain_remove_blob(const struct trace_store *store, const struct chain_origin *origin,
		       const char *task, const char *blob, const char *reason, struct error *error)
{
	const struct chain_record record = { .task = task, .layer = LAYER, .type = "blob.removed" };
	struct chain CLEANUP_CHAIN ledger = CHAIN_NONE;
	int CLEANUP_FD directory = open_blobs(store, task);
	struct json *json;
	int result;

	if (!blob_is_name(blob))
		return error_set(error, EINVAL, "%.70s is no name of a blob", blob);
	if (directory == -ENOENT || (directory >= 0 && !has_blob(directory, blob)))
		return error_set(error, ENOENT, "task %s has no blob %s", task, blob);
	if (directory < 0)
		return error_errno(error, directory, "the blobs of task %s", task);
	result = ledger_open(store, origin, &ledger, error);
	if (result < 0)
		return result;
	json = chain_begin(&ledger, &record);
	json_string(json, "blob", blob);
	json_string(json, "reason", reason);
	result = chain_end(&ledger);
	if (result == 0)
		result = chain_flush(&ledger, true);
	if (result < 0)
		return error_errno(error, result,
				   "the trace's ledger cannot be written; nothing was removed");
	result = blob_remove(directory, blob);
	return result < 0 && result != -ENOENT ?
		       error_errno(error, result, "removing blob %s (which is on record)", blob) :
		       0;
}

/* ---- policies ---- */

/* Names of policies, sorted by whoever asks; a set that only grows. */
struct names {
	char (*items)[SHA256_HEX_BYTES]; /* owned */
	size_t count, capacity;
};

static void names_free(struct names *names)
{
	free(names->items);
}

#define CLEANUP_NAMES __attribute__((cleanup(names_free)))

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int names_add(struct names *names, const char *name)
{
	if (names->count == names->capacity) {
		size_t capacity = names->capacity ? 2 * names->capacity : 256;
		void *grown = reallocarray(names->items, capacity, sizeof(names->items[0]));

		if (!grown)
			return -ENOMEM;
		names->items = grown;
		names->capacity = capacity;
	}
	memcpy(names->items[names->count], name, SHA256_HEX_BYTES - 1);
	names->items[names->count++][SHA256_HEX_BYTES - 1] = '\0';
	return 0;
}

static bool names_has(const struct names *names, const char *name)
{
	return names->count &&
	       bsearch(name, names->items, names->count, sizeof(names->items[0]), compare);
}

/* The policy that a chain's first record names. -EAGAIN: it has none yet, its task just begins. */
static int read_policy(const struct trace_store *store, const char *chain, char *bytes,
		       struct names *names)
{
	static const char member[] = "\"policy_kept\":\"";
	int CLEANUP_FD fd =
		openat(store->tasks_fd, chain, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t length = fd < 0 ? -errno : fd_read_all(fd, bytes, FIRST_BYTES - 1);
	const char *end, *at;

	if (length < 0)
		return length == -ENOENT ? 0 : (int)length;
	end = memchr(bytes, '\n', (size_t)length);
	if (!end)
		return -EAGAIN;
	at = memmem(bytes, (size_t)(end - bytes), member, sizeof(member) - 1);
	if (!at || end - at < (ssize_t)(sizeof(member) + SHA256_HEX_BYTES))
		return 0;
	return names_add(names, at + sizeof(member) - 1);
}

/* All policies that chains refer to, sorted. */
static int gather(const struct trace_store *store, struct names *names)
{
	struct directory CLEANUP_DIRECTORY directory;
	char *bytes = malloc(FIRST_BYTES);
	int result = bytes ? directory_open(&directory, store->tasks_fd, ".", 0) : -ENOMEM;
	const char *name;

	if (!bytes)
		directory_begin(&directory, -1);
	names->count = 0;
	while (result == 0 && (name = directory_next(&directory))) {
		const char *suffix = strstr(name, TRACE_SUFFIX);

		if (suffix && !suffix[sizeof(TRACE_SUFFIX) - 1])
			result = read_policy(store, name, bytes, names);
	}
	if (result == 0 && bytes)
		result = directory.code;
	free(bytes);
	if (result == 0 && names->count)
		qsort(names->items, names->count, sizeof(names->items[0]), compare);
	return result;
}

/* A policy's file, whether it is going or not; anything else is none of ours. */
static bool is_policy(const char *name, char ret_sha256[static SHA256_HEX_BYTES])
{
	size_t length = strlen(name);

	if (length != SHA256_HEX_BYTES - 1 && (length != SHA256_HEX_BYTES - 1 + sizeof(GOING) - 1 ||
					       strcmp(name + SHA256_HEX_BYTES - 1, GOING) != 0))
		return false;
	memcpy(ret_sha256, name, SHA256_HEX_BYTES - 1);
	ret_sha256[SHA256_HEX_BYTES - 1] = '\0';
	return blob_is_name(ret_sha256);
}

static int rename_policy(int policies_fd, const char *sha256, bool is_going)
{
	char going[POLICY_BYTES];
	const char *from = is_going ? sha256 : going, *to = is_going ? going : sha256;

	(void)snprintf(going, sizeof(going), "%s" GOING, sha256);
	/* one of the same name has the same bytes */
	return renameat(policies_fd, from, policies_fd, to) < 0 && errno != ENOENT ? -errno : 0;
}

/* Puts aside what nobody refers to, and gives back the name of what somebody does. */
static int set_aside(int policies_fd, const struct names *wanted, struct names *ret_going)
{
	struct directory CLEANUP_DIRECTORY directory;
	int result = directory_open(&directory, policies_fd, ".", 0);
	char sha256[SHA256_HEX_BYTES];
	const char *name;

	ret_going->count = 0;
	while (result == 0 && (name = directory_next(&directory))) {
		if (!is_policy(name, sha256))
			continue;
		if (!names_has(wanted, sha256))
			result = names_add(ret_going, sha256);
		else if (strcmp(name, sha256) != 0)
			result = rename_policy(policies_fd, sha256, false);
	}
	for (size_t i = 0; i < ret_going->count && result == 0; i++)
		result = rename_policy(policies_fd, ret_going->items[i], true);
	return result;
}

int retain_policies(const struct trace_store *store, size_t *ret_removed, struct error *error)
{
	int CLEANUP_FD policies =
		openat(store->fd, TRACE_POLICIES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct names CLEANUP_NAMES wanted = { 0 }, CLEANUP_NAMES going = { 0 };
	int result;

	*ret_removed = 0;
	if (policies < 0)
		return errno == ENOENT ? 0 : error_errno(error, errno, "trace/" TRACE_POLICIES);
	result = gather(store, &wanted);
	if (result == 0)
		result = set_aside(policies, &wanted, &going);
	/*
	 * A task that began meanwhile has found its policy there, and then its chain is there too;
	 * or it did not, and has written it again.
	 */
	if (result == 0)
		result = gather(store, &wanted);
	for (size_t i = 0; i < going.count; i++) {
		char name[POLICY_BYTES];

		(void)snprintf(name, sizeof(name), "%s" GOING, going.items[i]);
		if (result != 0 || names_has(&wanted, going.items[i]))
			(void)rename_policy(policies, going.items[i], false);
		else if (unlinkat(policies, name, 0) == 0)
			(*ret_removed)++;
	}
	return result < 0 && result != -EAGAIN ?
		       error_errno(error, result, "looking for policies that no task has") :
		       0;
}
