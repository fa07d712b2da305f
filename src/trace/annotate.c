#include "trace/annotate.h"

#include "base/error.h"
#include "base/fd.h"
#include "trace/ledger.h"
#include "trace/record.h"
#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Held until the note is written: nobody removes the task meanwhile (trace/retain.h). The
 * descriptor, or a negative errno.
 */
static int hold_chain(const struct trace_store *store, const char *task)
{
	char name[ACTION_ID_BYTES + sizeof(TRACE_SUFFIX)];
	int CLEANUP_FD fd = -1;
	struct stat status;

	(void)snprintf(name, sizeof(name), "%s%s", task, TRACE_SUFFIX);
	fd = openat(store->tasks_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	/* removed between the two */
	if (fstat(fd, &status) < 0 || !status.st_nlink)
		return -ENOENT;
	return TAKE_FD(fd);
}

int annotate(const struct trace_store *store, const struct chain_origin *origin,
	     const struct annotation *annotation, const struct mask *mask, struct error *error)
{
	const struct chain_record record = { .task = annotation->task,
					     .layer = "ledger",
					     .type = "note" };
	struct chain CLEANUP_CHAIN ledger = CHAIN_NONE;
	int CLEANUP_FD chain = hold_chain(store, annotation->task);
	struct json *json;
	int result;

	if (chain == -EBUSY)
		return error_set(error, EBUSY, "the task %s lives", annotation->task);
	if (chain == -ENOENT)
		return error_set(error, ENOENT, "the record of task %s is not there",
				 annotation->task);
	if (chain < 0)
		return error_errno(error, chain, "the chain of task %s", annotation->task);
	result = ledger_open(store, origin, &ledger, error);
	if (result < 0)
		return result;
	ledger.mask = mask;
	json = chain_begin(&ledger, &record);
	json_string(json, "text", annotation->text);
	record_meta(annotation->meta, json);
	result = chain_end(&ledger);
	if (result == 0)
		result = chain_flush(&ledger, true);
	return result < 0 ? error_errno(error, result, "the trace's ledger cannot be written") : 0;
}
