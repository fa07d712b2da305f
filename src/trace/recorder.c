#include "trace/recorder.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "policy/policy.h"
#include "trace/blob.h"
#include "trace/ledger.h"
#include "trace/record.h"
#include "trace/secrets.h"
#include "trace/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* trace/tasks/<task>.jsonl */
#define NAME_BYTES (ACTION_ID_BYTES + sizeof(TRACE_SUFFIX))
/* Some hundred records at one write. */
#define HELD_LIMIT_BYTES (64u * 1024)
/* In which part of the ledger's end the beginning of a task that died is looked for. */
#define LEDGER_LOOK_BYTES (4u * 1024 * 1024)

static void name_of(const char *task, char ret_name[static NAME_BYTES])
{
	(void)snprintf(ret_name, NAME_BYTES, "%s%s", task, TRACE_SUFFIX);
}

/* True where nothing of all the values is to be masked, as in most policies: seen at one look. */
static bool has_no_secret(const struct recorder *recorder, const struct policy *policy,
			  struct buffer *text)
{
	struct json json;

	json_begin(&json, text);
	json_array(&json, NULL);
	for (size_t i = 0; i < policy->variable_count; i++) {
		if (mask_is_secret_name(policy->variables[i].name) && policy->variables[i].value[0])
			return false;
		json_string(&json, NULL, policy->variables[i].value);
	}
	json_array_end(&json);
	return !mask_buffer(&recorder->mask, text, 0) && !text->failed;
}

/* True where the value is not to be written. text: room for it. */
static bool is_secret(const struct recorder *recorder, const struct policy_variable *variable,
		      struct buffer *text)
{
	struct json json;

	if (mask_is_secret_name(variable->name) && variable->value[0])
		return true;
	/* as it would stand in a record */
	text->length = 0;
	json_begin(&json, text);
	json_string(&json, NULL, variable->value);
	return mask_buffer(&recorder->mask, text, 0) || text->failed;
}

/* The policy without the secrets among its variables; blob and length stay where there is none. */
static int without_secrets(struct recorder *recorder, const struct policy *policy,
			   struct arena *arena, const unsigned char **blob, size_t *length)
{
	struct policy copy = *policy;
	struct buffer text = { .arena = arena };
	bool has_secrets = false;

	if (has_no_secret(recorder, policy, &text))
		return 0;
	copy.variables = arena_array(arena, policy->variable_count, sizeof(copy.variables[0]));
	for (size_t i = 0; copy.variables && i < policy->variable_count; i++) {
		copy.variables[i] = policy->variables[i];
		if (secrets_add(&recorder->mask, policy->variables[i].name,
				policy->variables[i].value) < 0)
			return -ENOMEM;
		if (is_secret(recorder, &policy->variables[i], &text)) {
			copy.variables[i].value = "[masked]";
			has_secrets = true;
		}
	}
	if (arena_failed(arena))
		return -ENOMEM;
	return has_secrets ? policy_encode(&copy, arena, blob, length) : 0;
}

/* The policy itself, once for all tasks that have the same. */
static int put_policy(const struct recorder *recorder, const unsigned char *blob, size_t length)
{
	char path[sizeof(TRACE_POLICIES) + SHA256_HEX_BYTES];
	int CLEANUP_FD directory = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", TRACE_POLICIES, recorder->policy_kept);
	if (faccessat(recorder->store.fd, path, F_OK, 0) == 0)
		return 0;
	directory = trace_store_below(&recorder->store, TRACE_POLICIES);
	if (directory < 0)
		return directory;
	return trace_store_put(directory, recorder->policy_kept, blob, length);
}

/* For who asks why (event_why()). Returns the code. */
static int explain(struct recorder *recorder, int code, const char *folder, const char *name,
		   const char *suffix)
{
	error_errno(&recorder->sink.why, code, "trace/%s/%s%s", folder, name, suffix);
	return error_append(&recorder->sink.why, trace_store_remedy(code));
}

static int explain_chain(struct recorder *recorder, int code)
{
	return explain(recorder, code, "tasks", recorder->task, TRACE_SUFFIX);
}

/* What fails now was lost with all that was held. */
static int write_held(struct recorder *recorder, bool durable)
{
	int result = chain_flush(&recorder->chain, durable);

	if (result < 0)
		recorder->lost += recorder->held;
	recorder->held = 0;
	return result;
}

static int flush(struct event_sink *sink)
{
	struct recorder *recorder = (struct recorder *)sink;

	int result = recorder->held ? write_held(recorder, false) : 0;

	return result < 0 ? explain_chain(recorder, result) : 0;
}

static int put_record(struct recorder *recorder, const struct event *event)
{
	const struct chain_record record = { .task = recorder->task,
					     .action = event->action,
					     .parent = event->parent,
					     .layer = event_type_layer(event->type),
					     .type = event_type_name(event->type),
					     .wall_ns = event->wall_ns,
					     .monotonic_ns = event->monotonic_ns };
	enum event_urgency urgency = event_type_urgency(event->type);
	int result;

	record_body(event, chain_begin(&recorder->chain, &record));
	result = chain_end(&recorder->chain);
	if (result == 0)
		recorder->held++;
	if (result == 0 &&
	    (urgency != EVENT_HELD || recorder->chain.buffer.length > HELD_LIMIT_BYTES))
		result = write_held(recorder, urgency == EVENT_DURABLE);
	else if (result < 0)
		recorder->lost++;
	return result;
}

static int write_record(struct recorder *recorder, const struct event *event)
{
	const struct error *why = &recorder->sink.why;
	int result;

	/* a chain begins with task.start: where that was lost there is none, whatever follows */
	if (!recorder->chain.next_seq && event->type != EVENT_TASK_START) {
		recorder->lost++;
		return why->code ? why->code : -EIO;
	}
	result = put_record(recorder, event);
	return result < 0 ? explain_chain(recorder, result) : 0;
}

/*
 * Where the policy cannot be kept, the record says that there is no copy of it, and its failure
 * that nothing may start. Without the memory to know its secrets there is no record.
 */
static int take_start(struct recorder *recorder, struct event *event)
{
	struct event_task *task = &event->body.task_start;
	const unsigned char *blob = task->policy_blob;
	size_t length = task->policy_bytes;
	struct arena CLEANUP_ARENA own = { 0 };
	struct arena *arena = recorder->origin.arena ? recorder->origin.arena : &own;
	int kept = without_secrets(recorder, task->policy, arena, &blob, &length), result;

	if (kept < 0) {
		recorder->lost++;
		return error_errno(&recorder->sink.why, kept, "the policy without its secrets");
	}
	if (blob == task->policy_blob)
		(void)snprintf(recorder->policy_kept, SHA256_HEX_BYTES, "%s", task->policy_hash);
	else
		sha256_text(blob, length, recorder->policy_kept);
	kept = put_policy(recorder, blob, length);
	if (kept == 0)
		task->policy_kept = recorder->policy_kept;
	else
		explain(recorder, kept, TRACE_POLICIES, recorder->policy_kept, "");
	result = write_record(recorder, event);
	return result < 0 ? result : kept;
}

/* What comes within a millisecond is not worth another look at the clock. */
#define CLOCK_GRAIN_NS 1000000u

static uint64_t wall_of(struct recorder *recorder, uint64_t monotonic_ns)
{
	if (monotonic_ns - recorder->seen_ns >= CLOCK_GRAIN_NS) {
		recorder->seen_ns = monotonic_ns;
		recorder->seen_wall_ns = clock_wall_ns();
	}
	return recorder->seen_wall_ns + (monotonic_ns - recorder->seen_ns);
}

static int take(struct event_sink *sink, const struct event *event)
{
	struct recorder *recorder = (struct recorder *)sink;
	struct event own = *event;
	struct identity identity;
	int result = 0;

	if (!own.wall_ns)
		own.wall_ns = wall_of(recorder, own.monotonic_ns);
	if (event->type == EVENT_TASK_START && event->body.task_start.policy)
		return take_start(recorder, &own);
	if (event->type == EVENT_ACTION_INTENT) {
		recorder->actions++;
		/* an action of a live task brings variables of its own */
		result = secrets_add_all(&recorder->mask, event->body.intent.action->environ);
	}
	if (event->type == EVENT_ACTION_START &&
	    identify(&recorder->identify, &recorder->store, event, &identity))
		own.body.start.executable = &identity.event;
	if (result < 0)
		recorder->lost++;
	return result < 0 ? result : write_record(recorder, &own);
}

static bool work(struct event_sink *sink)
{
	struct recorder *recorder = (struct recorder *)sink;
	char action[ACTION_ID_BYTES], parent[ACTION_ID_BYTES];
	struct identity identity;
	struct event event = { .type = EVENT_EXECUTABLE,
			       .action = action,
			       .parent = parent,
			       .body.executable = &identity.event };

	/* while the action runs: the next task is not to wait for a new file (trace/spare.h) */
	if (!recorder->has_spare) {
		recorder->has_spare = true;
		spare_make(&recorder->store);
		return true;
	}
	/* the same for the output of this action */
	if (recorder->blobs_fd >= 0 && recorder->prepared_fd == -1) {
		recorder->prepared_fd = blob_prepare(recorder->blobs_fd);
		return true;
	}
	/* one that is lost is counted */
	if (identify_step(&recorder->identify, &identity, action, parent))
		(void)!event_emit(sink, &event);
	return identify_has_work(&recorder->identify);
}

static int end(struct event_sink *sink, const char *cause, struct error *error)
{
	struct recorder *recorder = (struct recorder *)sink;
	struct event last = {
		.type = EVENT_TASK_END,
		.body.end = { .actions = recorder->actions, .lost = recorder->lost, .cause = cause }
	};
	struct error second = ERROR_NONE;
	int recorded, listed;

	if (!recorder->is_begun)
		return 0;
	/* nobody waits for them any more */
	recorder->has_spare = true;
	if (recorder->prepared_fd == -1)
		recorder->prepared_fd = -ECANCELED;
	while (work(sink))
		;
	recorder->is_begun = false;
	last.body.end.lost = recorder->lost;
	recorded = event_emit(sink, &last);
	if (recorded < 0)
		event_why(sink, recorded, error);
	/* the ledger tells even then how far it came */
	listed = ledger_task_end(&recorder->store, &recorder->origin, recorder->task, "task.end",
				 recorder->chain.records, recorder->chain.last,
				 recorded < 0 ? &second : error);
	return recorded < 0 ? recorded : listed;
}

static int open_blobs(struct recorder *recorder, struct error *error)
{
	if (recorder->blobs_fd >= 0)
		return 0;
	return blob_directory(&recorder->store, recorder->task, true, &recorder->blobs_fd, error);
}

/* The times: no secret is in them, and without them the bytes are still whole. */
static const char *keep_index(struct recorder *recorder, int index_fd, struct blob *blob)
{
	struct error ignored = ERROR_NONE;

	if (index_fd < 0 || blob_seal(recorder->blobs_fd, NULL, NULL, index_fd, blob, &ignored) < 0)
		return NULL;
	return blob->name;
}

/* What cannot be kept is on record all the same, with the reason. */
static int keep(struct event_sink *sink, const struct event_bytes *bytes)
{
	struct recorder *recorder = (struct recorder *)sink;
	struct blob blob, index;
	struct error error = ERROR_NONE;
	struct event event = { .type = EVENT_STREAM,
			       .action = bytes->action,
			       .parent = bytes->parent,
			       .body.stream = { .name = bytes->name,
						.bytes = bytes->bytes,
						.sha256 = bytes->sha256,
						.reason = bytes->reason,
						.dropped = bytes->dropped } };
	struct event_stream *stream = &event.body.stream;
	int result = bytes->fd < 0 ? -ENOENT : open_blobs(recorder, &error);

	if (result == 0)
		result = blob_seal(recorder->blobs_fd, &recorder->prepared_fd, &recorder->mask,
				   bytes->fd, &blob, &error);
	if (result == 0) {
		/* a digest of what is masked could be found by trying */
		stream->sha256 = blob.masked ? NULL : blob.sha256;
		stream->blob = blob.name;
		stream->blob_bytes = blob.kept_bytes;
		stream->masked = blob.masked;
		stream->index = keep_index(recorder, bytes->index_fd, &index);
	} else if (bytes->fd >= 0) {
		stream->reason = error.message;
	}
	return event_emit(sink, &event);
}

static int begin(struct recorder *recorder, const struct recorder_options *options,
		 struct error *error)
{
	char name[NAME_BYTES], first[SHA256_HEX_BYTES];
	int result;

	*recorder = RECORDER_NONE;
	recorder->sink = (struct event_sink){
		.take = take, .keep = keep, .flush = flush, .work = work, .end = end
	};
	recorder->task = options->task;
	chain_origin_gather(options->arena, &recorder->origin);
	result = trace_store_open(options->state_fd, &recorder->store, error);
	if (result == 0)
		result = secrets_begin(&recorder->store, options->environment, &recorder->mask,
				       error);
	if (result < 0)
		return result;
	name_of(options->task, name);
	result = spare_take(&recorder->store, name);
	if (result < 0)
		return error_errno(error, result, "trace/tasks/%s", name);
	chain_create(result, CHAIN_NO_HASH, &recorder->origin, &recorder->chain);
	recorder->chain.mask = &recorder->mask;
	/* as long as it is held, the task lives */
	if (flock(recorder->chain.fd, LOCK_EX | LOCK_NB) < 0)
		return error_errno(error, errno, "locking trace/tasks/%s", name);
	result =
		ledger_task_start(&recorder->store, &recorder->origin, options->task, first, error);
	if (result < 0) {
		(void)unlinkat(recorder->store.tasks_fd, name, 0);
		return result;
	}
	chain_follow(&recorder->chain, first);
	recorder->is_begun = true;
	return 0;
}

int recorder_begin(struct recorder *recorder, const struct recorder_options *options,
		   struct error *error)
{
	int result = begin(recorder, options, error);

	return result < 0 ? error_append(error, trace_store_remedy(result)) : 0;
}

/* True where the end of the ledger has a record of the task, of that type (NULL: of any). */
static bool is_listed(const struct trace_store *store, const char *task, const char *type)
{
	int CLEANUP_FD fd = openat(store->fd, TRACE_LEDGER, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char wanted[ACTION_ID_BYTES + 96];
	struct stat status;
	bool found = false;
	uint64_t length;
	char *bytes;

	if (fd < 0 || fstat(fd, &status) < 0)
		return false;
	length = (uint64_t)status.st_size < LEDGER_LOOK_BYTES ? (uint64_t)status.st_size :
								LEDGER_LOOK_BYTES;
	bytes = malloc(length ? length : 1);
	(void)snprintf(wanted, sizeof(wanted), "\"task\":\"%s\"", task);
	if (type)
		(void)snprintf(
			wanted, sizeof(wanted),
			"\"task\":\"%s\",\"action\":null,\"parent\":null,\"layer\":\"ledger\","
			"\"type\":\"%s\"",
			task, type);
	if (bytes && pread(fd, bytes, length, status.st_size - (off_t)length) == (ssize_t)length)
		found = memmem(bytes, length, wanted, strlen(wanted)) != NULL;
	free(bytes);
	return found;
}

/* The last records of a chain that nobody writes any more. */
static int end_chain(struct chain *chain, const char *task, const struct chain_torn *torn)
{
	struct chain_record record = { .task = task, .layer = "result" };
	struct json *json;
	int result = 0;

	if (torn->bytes) {
		record.type = "resumed";
		json = chain_begin(chain, &record);
		json_unsigned(json, "torn_bytes", torn->bytes);
		json_string(json, "torn_sha256", torn->sha256);
		result = chain_end(chain);
	}
	record.type = "task.lost";
	if (result == 0) {
		json_string(chain_begin(chain, &record), "cause", "its supervisor died");
		result = chain_end(chain);
	}
	return result < 0 ? result : chain_flush(chain, false);
}

/*
 * Who buried it before may have died in between, and a full disk may have taken the chain's own
 * last record, but not the ledger's.
 */
static bool is_over(const struct trace_store *store, const char *task)
{
	return is_listed(store, task, "task.end") || is_listed(store, task, "task.lost");
}

/* An empty chain is one only where the ledger knows it: else its supervisor died in between. */
static int bury(const struct trace_store *store, const char *name, const char *task, int fd,
		struct error *error)
{
	struct chain CLEANUP_CHAIN chain = CHAIN_NONE;
	struct chain_origin origin;
	struct chain_torn torn;
	int result;

	chain_origin_gather(NULL, &origin);
	result = chain_resume(fd, CHAIN_NO_HASH, &origin, &chain, &torn);
	if (result == 0 && !chain.records && !is_listed(store, task, NULL))
		return unlinkat(store->tasks_fd, name, 0) < 0 ? -errno : 0;
	if (result == 0 && is_over(store, task))
		return 0;
	if (result == 0 && chain.records && !chain.is_ended && !chain.is_lost)
		result = end_chain(&chain, task, &torn);
	if (result < 0)
		return error_errno(error, result, "trace/tasks/%s", name);
	return ledger_task_end(store, &origin, task, chain.is_ended ? "task.end" : "task.lost",
			       chain.records, chain.last, error);
}

int recorder_bury(int state_fd, const char *task, struct error *error)
{
	struct trace_store CLEANUP_TRACE_STORE store = TRACE_STORE_NONE;
	char name[NAME_BYTES];
	int fd, result = trace_store_open_read(state_fd, &store, error);

	if (result < 0 || strlen(task) >= ACTION_ID_BYTES)
		return result == -ENOENT ? 0 : result;
	name_of(task, name);
	fd = openat(store.tasks_fd, name, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : error_errno(error, errno, "trace/tasks/%s", name);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		result = -errno;
		fd_close(&fd);
		return result == -EWOULDBLOCK ? -EBUSY : result;
	}
	return bury(&store, name, task, fd, error);
}

void recorder_close(struct recorder *recorder)
{
	mask_end(&recorder->mask);
	identify_end(&recorder->identify);
	fd_close(&recorder->blobs_fd);
	if (recorder->prepared_fd >= 0)
		fd_close(&recorder->prepared_fd);
	chain_close(&recorder->chain);
	trace_store_close(&recorder->store);
}
