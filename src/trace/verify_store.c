/*
 * The names of chains are read before the ledger: a chain is made behind its record there, so that
 * one that the ledger does not know is none of it. The other way is not so: what is removed
 * meanwhile is gone before verify.c looks for it, which then reads what the ledger was told since.
 */
#include "trace/verify_store.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TASK_BYTES 64
#define TASKS "tasks"
#define PATH_BYTES 128
/* For findings: cut where the prefix is long. */
#define NAME_BYTES 512
/* The ledger is locked for some milliseconds at the most; who holds it longer hangs. */
#define LOCK_WAIT_NS (2ull * 1000 * 1000 * 1000)

bool verify_is_task(const char *name, size_t length)
{
	if (!length || length >= TASK_BYTES || name[0] == '.' || name[0] == '-')
		return false;
	for (size_t i = 0; i < length; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.",
			    name[i]))
			return false;
	return true;
}

/* The ids of the chains that are there. */
struct names {
	char (*items)[TASK_BYTES]; /* owned */
	size_t count, capacity;
};

static void free_names(struct names *names)
{
	free(names->items);
}

static int add_name(struct names *names, const char *name, size_t length)
{
	if (names->count == names->capacity) {
		size_t capacity = names->capacity ? 2 * names->capacity : 64;
		void *items = realloc(names->items, capacity * sizeof(names->items[0]));

		if (!items)
			return -ENOMEM;
		names->items = items;
		names->capacity = capacity;
	}
	memcpy(names->items[names->count], name, length);
	names->items[names->count++][length] = '\0';
	return 0;
}

static int compare(const void *first, const void *second)
{
	return strcmp(first, second);
}

static void tell_file(struct verify *verify, const struct verify_store *store, const char *name,
		      const char *why)
{
	struct finding finding = { .kind = VERIFY_FOREIGN };
	char file[NAME_BYTES];

	(void)snprintf(finding.detail, sizeof(finding.detail), "%.200s", why);
	(void)snprintf(file, sizeof(file), "%.200s/%.300s", store->prefix, name);
	verify->counts.findings++;
	verify->hooks->found(verify->hooks->context, file, &finding);
}

static int list_chains(struct verify *verify, const struct verify_store *store, struct names *names)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	int result = directory_open(&directory, store->fd, TASKS, O_NOFOLLOW);

	if (result == -ENOENT)
		return 0;
	while (result == 0 && (name = directory_next(&directory)) != NULL) {
		size_t length = strlen(name), suffix = sizeof(TRACE_SUFFIX) - 1;
		char file[PATH_BYTES];

		if (length > suffix && strcmp(name + length - suffix, TRACE_SUFFIX) == 0 &&
		    verify_is_task(name, length - suffix)) {
			result = add_name(names, name, length - suffix);
			continue;
		}
		(void)snprintf(file, sizeof(file), TASKS "/%.100s", name);
		tell_file(verify, store, file, "no chain of a task has such a name");
	}
	if (result == 0)
		result = directory.code;
	if (result < 0)
		return error_errno(verify->error, result, "%s/" TASKS, store->prefix);
	if (names->count)
		qsort(names->items, names->count, sizeof(names->items[0]), compare);
	return 0;
}

/* How long the ledger is while nobody writes to it. */
static uint64_t settled_size(int fd)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t until = clock_monotonic_ns() + LOCK_WAIT_NS;
	struct stat status;

	while (flock(fd, LOCK_SH | LOCK_NB) < 0 && (errno == EWOULDBLOCK || errno == EINTR) &&
	       clock_monotonic_ns() < until)
		(void)nanosleep(&pause, NULL);
	/* without the lock: the last line may be half of one, which is told */
	return fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static int verify_its_ledger(struct verify *verify, const struct verify_store *store)
{
	int CLEANUP_FD fd = openat(store->fd, TRACE_LEDGER,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	uint64_t size = fd >= 0 ? settled_size(fd) : 0;
	char name[NAME_BYTES];
	int result;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	fd_close(&fd);
	(void)snprintf(name, sizeof(name), "%.300s/" TRACE_LEDGER, store->prefix);
	result = verify_ledger(verify, store->fd, TRACE_LEDGER, name, size);
	if (result == -ELOOP || result == -EISDIR || result == -EINVAL) {
		tell_file(verify, store, TRACE_LEDGER, verify->error->message);
		return 0;
	}
	return result;
}

/* 0 also where there is none. */
static int verify_one(struct verify *verify, const struct verify_store *store,
		      struct verify_blobs blobs, const char *task)
{
	char path[PATH_BYTES], name[NAME_BYTES];
	int result;

	(void)snprintf(path, sizeof(path), TASKS "/%s" TRACE_SUFFIX, task);
	(void)snprintf(name, sizeof(name), "%.300s/%s", store->prefix, path);
	result = verify_chain(verify, store->fd, path, name, task, blobs);
	if (result == -ELOOP || result == -EISDIR || result == -EINVAL) {
		tell_file(verify, store, path, verify->error->message);
		return 0;
	}
	return result == -ENOENT ? 0 : result;
}

/* In the order of the ledger; what it does not know behind. */
static int verify_all(struct verify *verify, const struct verify_store *store,
		      struct verify_blobs blobs, const struct names *names)
{
	char task[TASK_BYTES];
	size_t index = 0;
	int result;

	while ((result = verify_next_task(verify, &index, task)) > 0) {
		result = verify_is_task(task, strlen(task)) ?
				 verify_one(verify, store, blobs, task) :
				 0;
		if (result < 0)
			return result;
	}
	for (size_t i = 0; i < names->count && result == 0; i++)
		if (!verify_knows(verify, names->items[i]))
			result = verify_one(verify, store, blobs, names->items[i]);
	return result == 0 ? verify_rest(verify) : result;
}

static int open_directory(int parent_fd, const char *name)
{
	return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int verify_opened(struct verify *verify, const struct verify_store *store,
			 struct verify_blobs blobs, const struct names *names)
{
	int result = verify_its_ledger(verify, store);

	if (result == -ENOENT && (names->count || verify->pin_count)) {
		tell_file(verify, store, TRACE_LEDGER, "there is none");
		result = 0;
	}
	if (result < 0)
		return result;
	for (size_t i = 0; i < store->task_count && result == 0; i++)
		result = verify_one(verify, store, blobs, store->tasks[i]);
	if (!store->task_count && result == 0)
		result = verify_all(verify, store, blobs, names);
	return result;
}

int verify_store(struct verify *verify, const struct verify_store *store)
{
	int blobs_fd = open_directory(store->fd, TRACE_BLOBS);
	int policies_fd = open_directory(store->fd, TRACE_POLICIES);
	struct names names = { .items = NULL };
	int result = list_chains(verify, store, &names);

	if (result == 0)
		result = verify_opened(verify, store,
				       (struct verify_blobs){ .are_wanted = true,
							      .blobs_fd = blobs_fd,
							      .policies_fd = policies_fd },
				       &names);
	free_names(&names);
	fd_close(&blobs_fd);
	fd_close(&policies_fd);
	return result;
}
