/*
 * bawn-seal-lab: blobs without a task, for tests/run/test_trace_seal.py and tests/bench; beside
 * bawn-pack.
 *
 *   seal STATE TASK FILE         keeps a file, prints what was kept and how long that took
 *   read STATE TASK BLOB LIMIT   prints the plain bytes
 *   check STATE TASK BLOB LIMIT  prints whole, missing, changed or unreadable
 *   executable STATE FILE        prints the digest and whether it was known, or why there is none
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "trace/blob.h"
#include "trace/executable.h"
#include "trace/mask.h"
#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const struct error *error)
{
	(void)fprintf(stderr, "%s\n", error->message);
	return 1;
}

static int seal(int directory, const char *path)
{
	static const unsigned char key[MASK_KEY_BYTES] = "a key for tests";
	struct mask CLEANUP_MASK mask = MASK_NONE;
	int CLEANUP_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	struct error error = ERROR_NONE;
	uint64_t begin = clock_monotonic_ns();
	struct blob blob;

	mask_begin(&mask, key);
	if (blob_seal(directory, NULL, &mask, fd, &blob, &error) < 0)
		return fail(&error);
	printf("{\"sha256\":\"%s\",\"bytes\":%" PRIu64 ",\"name\":\"%s\",\"kept\":%" PRIu64
	       ",\"masked\":%" PRIu64 ",\"stored\":%" PRIu64
	       ",\"packed\":%s,\"unpacked\":%d,\"ns\":%" PRIu64 "}\n",
	       blob.sha256, blob.bytes, blob.name, blob.kept_bytes, blob.masked, blob.stored_bytes,
	       blob.is_packed ? "true" : "false", blob.unpacked.code, clock_monotonic_ns() - begin);
	return 0;
}

static int print(int directory, const char *name, uint64_t limit)
{
	struct blob_reader CLEANUP_BLOB_READER reader = BLOB_READER_NONE;
	static unsigned char bytes[65536];
	struct error error = ERROR_NONE;
	ssize_t count;

	if (blob_open(directory, name, limit, &reader, &error) < 0)
		return fail(&error);
	while ((count = blob_read(&reader, bytes, sizeof(bytes))) > 0)
		if (fd_write_all(STDOUT_FILENO, bytes, (size_t)count) < 0)
			return 1;
	if (count < 0) {
		(void)error_errno(&error, (int)count, "blob");
		return fail(&error);
	}
	return 0;
}

static int check(int directory, const char *name, uint64_t limit)
{
	static const char *const words[] = { [BLOB_WHOLE] = "whole",
					     [BLOB_MISSING] = "missing",
					     [BLOB_CHANGED] = "changed",
					     [BLOB_UNREADABLE] = "unreadable" };
	struct error error = ERROR_NONE;

	printf("%s\n", words[blob_check(directory, name, limit, &error)]);
	return 0;
}

static int tell_executable(const struct trace_store *store, const char *path)
{
	struct executable_cache CLEANUP_EXECUTABLE_CACHE cache = EXECUTABLE_CACHE_NONE;
	int CLEANUP_FD fd = open(path, O_PATH | O_CLOEXEC);
	char sha256[SHA256_HEX_BYTES] = "";
	const char *why = NULL;
	struct stat status;
	bool is_known;

	executable_cache_open(store, &cache);
	if (fd < 0 || fstat(fd, &status) < 0)
		return 1;
	is_known = executable_lookup(&cache, &status, sha256);
	if (!is_known)
		why = executable_compute(fd, &cache, sha256);
	printf("%s\n", why ? why : sha256);
	printf("%s\n", is_known ? "known" : "computed");
	return 0;
}

int main(int argc, char **argv)
{
	struct trace_store CLEANUP_TRACE_STORE store = TRACE_STORE_NONE;
	int CLEANUP_FD state = -1, CLEANUP_FD directory = -1;
	struct error error = ERROR_NONE;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	if (argc < 4)
		return 2;
	state = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (trace_store_open(state, &store, &error) < 0)
		return fail(&error);
	if (strcmp(argv[1], "executable") == 0)
		return tell_executable(&store, argv[3]);
	if (argc < 5 || blob_directory(&store, argv[3], true, &directory, &error) < 0)
		return fail(&error);
	if (strcmp(argv[1], "seal") == 0)
		return seal(directory, argv[4]);
	if (argc < 6)
		return 2;
	return strcmp(argv[1], "read") == 0 ?
		       print(directory, argv[4], strtoull(argv[5], NULL, 10)) :
		       check(directory, argv[4], strtoull(argv[5], NULL, 10));
}
