#include "broker/keep.h"

#include "base/fd.h"
#include "broker/job.h"
#include "broker/task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const names[SPOOL_STREAM_COUNT] = {
	[SPOOL_OUT] = "stdout", [SPOOL_ERR] = "stderr"
};
static const char *const files[SPOOL_STREAM_COUNT] = { [SPOOL_OUT] = "out", [SPOOL_ERR] = "err" };

struct keep_later {
	struct keep_later *next;
	char action[ACTION_ID_BYTES], parent[ACTION_ID_BYTES];
	uint64_t bytes[SPOOL_STREAM_COUNT], dropped[SPOOL_STREAM_COUNT];
};

static struct event_bytes describe(const char *action, const char *parent, const char *name)
{
	return (struct event_bytes){
		.action = action, .parent = parent, .name = name, .fd = -1, .index_fd = -1
	};
}

/* With a terminal of its own all output is in one stream. */
static const struct pump *pump_of(const struct job *job, enum spool_stream stream)
{
	const struct pump *out = streams_out(&job->streams), *err = streams_err(&job->streams);

	if (stream == SPOOL_OUT)
		return out;
	return err == out ? NULL : err;
}

/* Of what a person types on a terminal there is nothing but its echo. */
static int keep_input(struct job *job)
{
	const struct action *action = job->options.action;
	struct event_bytes bytes = describe(action->id, action->parent, "stdin");
	unsigned char digest[SHA256_BYTES];
	char hex[SHA256_HEX_BYTES];

	if (!job->streams.in.tee)
		return 0;
	sha256_end(&job->input, digest);
	sha256_hex(digest, hex);
	bytes.sha256 = hex;
	bytes.bytes = job->streams.in.bytes;
	bytes.reason = "input is not kept";
	return event_keep(job->task->options.sink, &bytes);
}

static int keep_output(struct job *job, enum spool_stream stream)
{
	const struct action *action = job->options.action;
	const struct streams *streams = &job->streams;
	const struct pump *pump = pump_of(job, stream);
	struct event_bytes bytes = describe(action->id, action->parent, names[stream]);

	if (!pump || !pump->bytes)
		return 0;
	bytes.bytes = pump->bytes;
	bytes.dropped = pump->dropped;
	if (streams->has_spool) {
		bytes.fd = streams->spool.files[stream];
		bytes.index_fd = spool_has_times(streams->spool.index) ? streams->spool.index : -1;
	} else {
		bytes.reason = streams->is_unkept ? "--no-spool" : "it could not be spooled";
	}
	return event_keep(job->task->options.sink, &bytes);
}

int keep_streams(struct job *job)
{
	int result = keep_input(job);

	for (unsigned stream = 0; stream < SPOOL_STREAM_COUNT && result == 0; stream++)
		result = keep_output(job, stream);
	return result;
}

int keep_or_defer(struct job *job, struct keep_later **list)
{
	const struct action *action = job->options.action;
	struct keep_later *later;
	uint64_t bytes = 0;
	int result;

	for (unsigned stream = 0; stream < SPOOL_STREAM_COUNT; stream++)
		bytes += pump_of(job, stream) ? pump_of(job, stream)->bytes : 0;
	/* one in memory has no name to find it by later */
	if (bytes <= KEEP_NOW_BYTES || !job->streams.has_spool || job->streams.spool.is_early)
		return keep_streams(job);
	result = keep_input(job);
	later = result == 0 ? calloc(1, sizeof(*later)) : NULL;
	if (!later)
		return result < 0 ? result : -ENOMEM;
	(void)snprintf(later->action, sizeof(later->action), "%s", action->id);
	(void)snprintf(later->parent, sizeof(later->parent), "%s", action->parent);
	for (unsigned stream = 0; stream < SPOOL_STREAM_COUNT; stream++) {
		const struct pump *pump = pump_of(job, stream);

		later->bytes[stream] = pump ? pump->bytes : 0;
		later->dropped[stream] = pump ? pump->dropped : 0;
	}
	later->next = *list;
	*list = later;
	return 0;
}

static int keep_one(struct task *task, const struct keep_later *later)
{
	int CLEANUP_FD directory =
		fd_open_beneath(task->box.task_fd, later->action, O_RDONLY | O_DIRECTORY);
	int CLEANUP_FD index = fd_open_beneath(directory, "index", O_RDONLY);
	int result = 0;

	for (unsigned stream = 0; stream < SPOOL_STREAM_COUNT && result == 0; stream++) {
		int CLEANUP_FD fd = fd_open_beneath(directory, files[stream], O_RDONLY);
		struct event_bytes bytes = describe(later->action, later->parent, names[stream]);

		bytes.fd = fd;
		bytes.index_fd = spool_has_times(index) ? index : -1;
		bytes.bytes = later->bytes[stream];
		bytes.dropped = later->dropped[stream];
		bytes.reason = "its spool is gone";
		if (bytes.bytes)
			result = event_keep(task->options.sink, &bytes);
	}
	return result;
}

int keep_deferred(struct task *task, struct keep_later **list)
{
	int result = 0;

	while (*list) {
		struct keep_later *later = *list;
		int outcome = keep_one(task, later);

		if (result == 0)
			result = outcome;
		*list = later->next;
		free(later);
	}
	return result;
}
