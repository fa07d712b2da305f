/* Blobs that records refer to: whether they are there, and their bytes. */
#include "cli/trace_dossier.h"

#include "base/error.h"
#include "base/fd.h"
#include "trace/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *trace_blob_state_name(enum trace_blob_state state)
{
	static const char *const names[] = { [TRACE_BLOB_KEPT] = "kept",
					     [TRACE_BLOB_REMOVED] = "removed, on record",
					     [TRACE_BLOB_MISSING] = "missing" };

	return names[state];
}

/* A regular file of the blobs' directory, or a negative errno. */
static int open_file(struct trace_place *place, const char *task, const char *name,
		     const char *suffix)
{
	char path[sizeof(TRACE_BLOBS) + ACTION_ID_BYTES + SHA256_HEX_BYTES + 8];
	struct stat status;
	int CLEANUP_FD fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s/%s%s", TRACE_BLOBS, task, name, suffix);
	fd = fd_open_beneath(place->store.fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	return S_ISREG(status.st_mode) ? TAKE_FD(fd) : -EINVAL;
}

static bool is_removed(struct trace_place *place, const char *task, const char *name)
{
	static const char type[] = "\"type\":\"blob.removed\"";
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	struct scan_needles needles = { .count = 0 };
	const struct json_node *body;
	struct scan_line found;
	struct trace_line line;
	int CLEANUP_FD fd = -1;

	fd = trace_place_ledger(place);
	if (fd < 0)
		return false;
	(void)scan_add(&needles, name, strlen(name), 0);
	(void)scan_add(&needles, type, sizeof(type) - 1, 1);
	scan_begin(&scan, fd, &needles, 0, 1);
	while (scan_next(&scan, &found) > 0) {
		const char *blob;

		if (!trace_place_line(place, &found, &line, &body) ||
		    !json_view_is(line.type, "blob.removed") || !line.task.bytes ||
		    !json_view_is(line.task, task))
			continue;
		blob = json_tree_text(body, "blob");
		if (blob && strcmp(blob, name) == 0)
			return true;
	}
	return false;
}

enum trace_blob_state trace_blob_find(struct trace_place *place, const char *task, const char *name)
{
	struct trace_file file = place->file;
	int CLEANUP_FD fd = -1;
	bool was_removed;

	if (!blob_is_name(name))
		return TRACE_BLOB_MISSING;
	fd = open_file(place, task, name, "");
	if (fd < 0)
		fd = open_file(place, task, name, ".zst");
	if (fd >= 0)
		return TRACE_BLOB_KEPT;
	was_removed = is_removed(place, task, name);
	/* the caller goes on with its own file */
	place->file = file;
	return was_removed ? TRACE_BLOB_REMOVED : TRACE_BLOB_MISSING;
}

int trace_blob_open(struct trace_place *place, const char *task, const char *name,
		    struct blob_reader *ret_reader, struct error *error)
{
	int CLEANUP_FD directory = -1;
	int result;

	if (!blob_is_name(name))
		return error_set(error, EINVAL, "%.70s is no name of a blob", name);
	result = blob_directory(&place->store, task, false, &directory, error);
	if (result < 0)
		return result;
	return blob_open(directory, name, BLOB_LIMIT_BYTES, ret_reader, error);
}
