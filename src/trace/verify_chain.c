#include "trace/verify_internal.h"

#include "base/error.h"
#include "base/fd.h"
#include "trace/blob.h"
#include "trace/chain.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads a record again that was good before; the file is not ours, so that is asked anew. */
static int read_again(struct verify *verify, struct roster_place place, struct trace_line *ret_line)
{
	trace_read_seek(&verify->ledger, place.offset, place.line);
	if (trace_read_next(&verify->ledger, ret_line) != 1 || ret_line->fault ||
	    !trace_line_is_intact(ret_line))
		return error_set(verify->error, EIO, "%s changed while it was read",
				 verify->ledger_name);
	return 0;
}

int verify_next_task(struct verify *verify, size_t *index, char ret_task[static 64])
{
	struct trace_line line;
	int result;

	if (*index >= verify->tasks.count)
		return 0;
	result = read_again(verify, verify->tasks.rows[*index].start, &line);
	if (result < 0)
		return result;
	verify_copy_text(line.task, ret_task);
	++*index;
	return 1;
}

bool verify_knows(struct verify *verify, const char *task)
{
	return roster_find(&verify->tasks, task, strlen(task)) != NULL;
}

/* 1 when the ledger was told of a removal since it was read; blob NULL: of the task. */
static int was_removed_since(struct verify *verify, struct json_view task, const char *blob)
{
	static const char *const names[] = { "blob" };
	struct json_view value;
	struct trace_line line;
	int result;

	if (!verify->has_ledger || verify->ledger_limit == UINT64_MAX)
		return 0;
	trace_read_seek(&verify->ledger, verify->ledger_limit, 1);
	while ((result = trace_read_next(&verify->ledger, &line)) > 0 && !line.fault)
		if (line.task.bytes && verify_same(line.task, task) &&
		    (json_view_is(line.type, "task.removed") ||
		     (blob && json_view_is(line.type, "blob.removed") &&
		      verify_members(&line, names, 1, 1, &value) &&
		      verify_plain_name(verify_inside(value)).bytes &&
		      json_view_is(verify_plain_name(verify_inside(value)), blob))))
			return 1;
	return result < 0 ? error_errno(verify->error, result, "reading %s", verify->ledger_name) :
			    0;
}

/* Chains of tasks */

struct chain_check {
	struct verify *verify;
	struct follow follow;
	const char *name;
	char task[VERIFY_TASK_LIMIT_BYTES + 1]; /* "": not known yet */
	struct roster_row *row;			/* NULL: the ledger has no word on it */
	struct verify_ending ending;		/* of the ledger */
	char begin[SHA256_HEX_BYTES];		/* what the first record follows; "": not known */
	bool has_ended;				/* its own last record has been read */
	struct verify_blobs blobs;
	int blobs_fd; /* owned: the task's own directory; -1: there is none, or none is wanted */
};

/* What the ledger says of the task. */
static int consult(struct chain_check *check)
{
	struct verify *verify = check->verify;
	struct trace_line line;
	int result;

	check->row = verify->has_ledger ?
			     roster_find(&verify->tasks, check->task, strlen(check->task)) :
			     NULL;
	if (!check->row)
		return 0;
	check->row->is_seen = true;
	result = read_again(verify, check->row->start, &line);
	if (result < 0)
		return result;
	verify_copy_text(line.hash, check->begin);
	if (!check->row->end.line)
		return 0;
	result = read_again(verify, check->row->end, &line);
	if (result == 0 && !verify_read_ending(&line, &check->ending))
		result = error_set(verify->error, EIO, "%s changed while it was read",
				   verify->ledger_name);
	return result;
}

static int begin_task(struct chain_check *check, const char *task, size_t length)
{
	if (length > VERIFY_TASK_LIMIT_BYTES)
		return 0;
	memcpy(check->task, task, length);
	check->task[length] = '\0';
	if (check->blobs.blobs_fd >= 0)
		check->blobs_fd = openat(check->blobs.blobs_fd, check->task,
					 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return consult(check);
}

/* A blob that is not there: 1 when its removal is on record. */
static int was_blob_removed(struct verify *verify, struct json_view task, struct json_view blob,
			    const char *name)
{
	char text[VERIFY_BLOB_NAME_BYTES];
	struct json_view whole = verify_blob_name(task, blob, text, sizeof(text));

	if (roster_find(&verify->removed_blobs, whole.bytes, whole.length))
		return 1;
	return was_removed_since(verify, task, name);
}

/* One blob that a record names; directory_fd -1: it cannot be there. */
static int check_blob(struct chain_check *check, const struct trace_line *line, int directory_fd,
		      struct json_view blob, uint64_t limit_bytes)
{
	struct verify *verify = check->verify;
	enum blob_state state = BLOB_MISSING;
	char name[SHA256_HEX_BYTES];
	int removed;

	verify_copy_text((struct json_view){ blob.bytes, VERIFY_HEX_BYTES }, name);
	if (directory_fd >= 0)
		state = blob_check(directory_fd, name, limit_bytes, verify->error);
	switch (state) {
	case BLOB_WHOLE:
		verify->counts.blobs++;
		return 0;
	case BLOB_MISSING:
		removed = was_blob_removed(verify, line->task, blob, name);
		if (removed == 0)
			follow_refuse(&check->follow, VERIFY_BLOB_MISSING, line->number, "%s",
				      name);
		verify->counts.blobs_removed += removed > 0;
		return removed < 0 ? removed : 0;
	case BLOB_CHANGED:
		follow_refuse(&check->follow, VERIFY_BLOB_CHANGED, line->number, "%s", name);
		return 0;
	default:
		return verify->error->code ? verify->error->code : -EIO;
	}
}

/* The blobs of a record: of a stream its bytes and their index, of a task its policy. */
static int check_blobs(struct chain_check *check, const struct trace_line *line)
{
	static const char *const of_stream[] = { "blob", "index", "blob_bytes" };
	static const char *const of_start[] = { "policy_kept" };
	bool is_start = json_view_is(line->type, "task.start");
	struct json_view values[3];
	int result = 0;

	if (!check->blobs.are_wanted || (!is_start && !json_view_is(line->type, "stream")))
		return 0;
	if (!verify_members(line, is_start ? of_start : of_stream, is_start ? 1 : 3,
			    is_start ? 1 : 2, values)) {
		follow_refuse(&check->follow, VERIFY_FORM, line->number,
			      "its body is none of its type");
		return 0;
	}
	for (size_t i = 0; i < (is_start ? 1 : 2) && result == 0 && !check->follow.finding.kind;
	     i++) {
		struct json_view name = verify_plain_name(verify_inside(values[i]));
		uint64_t bytes = BLOB_LIMIT_BYTES;

		if (verify_is_null(values[i]))
			continue;
		if (!is_start && !i && !json_view_unsigned(values[2], &bytes))
			name = (struct json_view){ 0 };
		if (!name.bytes)
			follow_refuse(&check->follow, VERIFY_FORM, line->number,
				      "what it refers to is no blob");
		else
			result = check_blob(check, line,
					    is_start ? check->blobs.policies_fd : check->blobs_fd,
					    name, bytes);
	}
	return result;
}

/* The first record decides whose chain it is, and whether it goes on from the ledger. */
static int take_first_line(struct chain_check *check, const struct trace_line *line)
{
	struct verify *verify = check->verify;
	int result = 0;

	if (!check->task[0] && line->task.bytes)
		result = begin_task(check, line->task.bytes, line->task.length);
	if (result < 0)
		return result;
	if (verify->has_ledger && verify->is_ledger_good && !check->row)
		follow_refuse(&check->follow, VERIFY_UNKNOWN, line->number, "%s", "");
	else if (check->begin[0] && !json_view_is(line->prev, check->begin))
		follow_refuse(&check->follow, VERIFY_REWRITTEN, line->number,
			      "it does not begin from the ledger's record of its start");
	else if (!json_view_is(line->type, "task.start"))
		verify_misplaced(&check->follow, line, "a chain begins with task.start");
	return 0;
}

static int take_chain_line(struct chain_check *check, const struct trace_line *line)
{
	struct follow *follow = &check->follow;
	int result = line->number == 1 ? take_first_line(check, line) : 0;

	if (result < 0 || follow->finding.kind)
		return result;
	if (json_view_is(line->layer, "ledger"))
		verify_misplaced(follow, line, "it is of a ledger");
	else if (!line->task.bytes ||
		 !verify_same(line->task, (struct json_view){ check->task, strlen(check->task) }))
		verify_misplaced(follow, line, "it is of another task");
	else if (check->has_ended)
		verify_misplaced(follow, line, "the chain has ended before");
	else if (line->number > 1 && json_view_is(line->type, "task.start"))
		verify_misplaced(follow, line, "the task has begun before");
	if (follow->finding.kind)
		return 0;
	check->has_ended = json_view_is(line->type, "task.end") ||
			   json_view_is(line->type, "task.lost");
	return check_blobs(check, line);
}

/* Where the ledger has the chain's end: what stands behind it is bad whatever it is. */
static bool is_at_end(const struct chain_check *check)
{
	return check->row && check->ending.has_records &&
	       check->follow.records == check->ending.records;
}

static void compare_end(struct chain_check *check)
{
	const struct verify_ending *ending = &check->ending;

	if (is_at_end(check) && ending->has_last && ending->records &&
	    strcmp(check->follow.last, ending->last) != 0)
		follow_refuse(&check->follow, VERIFY_REWRITTEN, ending->records,
			      "the ledger has another hash of the chain's last record");
}

static void refuse_behind_end(struct chain_check *check)
{
	check->follow.finding.kind = VERIFY_GOOD;
	follow_refuse(&check->follow, VERIFY_INSERTED, check->ending.records + 1,
		      "the ledger ends the chain with %" PRIu64 " records", check->ending.records);
}

static int read_chain(struct chain_check *check)
{
	struct follow *follow = &check->follow;
	struct trace_line line;
	int result = 0;

	while (!follow->finding.kind) {
		bool was_end = is_at_end(check);

		if (was_end)
			compare_end(check);
		if (follow->finding.kind)
			break;
		result = follow_next(follow, &line);
		if (was_end && (result > 0 || follow->finding.kind))
			refuse_behind_end(check);
		if (result <= 0 || follow->finding.kind)
			break;
		result = take_chain_line(check, &line);
		if (result < 0)
			return result;
		check->verify->counts.records++;
	}
	return result < 0 ? error_errno(check->verify->error, result, "reading %s", check->name) :
			    0;
}

/* A chain without an end in a good ledger is unfinished; so may its last line be. */
static void judge_unfinished(struct chain_check *check)
{
	struct verify *verify = check->verify;
	struct follow *follow = &check->follow;
	uint64_t torn = follow->reader.end - follow->reader.start;

	if (follow->finding.kind == VERIFY_TORN)
		follow->finding.kind = VERIFY_GOOD;
	else
		torn = 0;
	if (follow->finding.kind)
		return;
	verify->counts.unfinished++;
	verify->hooks->unfinished(verify->hooks->context, check->task, follow->records, torn);
}

static void judge_chain_end(struct chain_check *check)
{
	struct verify *verify = check->verify;
	struct follow *follow = &check->follow;

	if (check->row && !check->row->end.line && verify->is_ledger_good) {
		judge_unfinished(check);
	} else if (check->row && check->ending.has_records) {
		if (follow->records < check->ending.records)
			follow_refuse(follow, VERIFY_TRUNCATED, follow->records + 1,
				      "the ledger ends the chain with %" PRIu64 " records",
				      check->ending.records);
		verify->counts.ended += !follow->finding.kind;
	} else {
		/* a start that died before the ledger knew of it leaves an empty file */
		if (!follow->records && !check->row && !verify->is_ledger_good)
			follow_refuse(follow, VERIFY_EMPTY, 1, "%s", "");
		verify->counts.alone++;
		if (!check->has_ended && !follow->finding.kind) {
			verify->counts.unfinished++;
			verify->hooks->unfinished(verify->hooks->context, check->task,
						  follow->records, 0);
		}
	}
}

static int check_chain(struct chain_check *check, const char *task)
{
	int result = task ? begin_task(check, task, strlen(task)) : 0;

	if (result == 0)
		result = read_chain(check);
	if (result < 0)
		return result;
	judge_chain_end(check);
	check->verify->counts.tasks++;
	if (check->follow.finding.kind)
		verify_tell(check->verify, check->name, &check->follow.finding);
	return 0;
}

int verify_chain(struct verify *verify, int directory_fd, const char *path, const char *name,
		 const char *task, struct verify_blobs blobs)
{
	struct chain_check check = {
		.verify = verify, .name = name, .blobs = blobs, .blobs_fd = -1
	};
	int result = follow_open(&check.follow, directory_fd, path, "", verify->error);

	if (result < 0)
		return result;
	result = check_chain(&check, task);
	fd_close(&check.blobs_fd);
	follow_close(&check.follow);
	return result;
}

/* A task of the ledger that no chain was given of. */
static int judge_absent(struct verify *verify, struct roster_row *row)
{
	struct finding finding = { .kind = VERIFY_MISSING, .line = row->start.line };
	struct verify_ending ending = { .has_records = false };
	char task[VERIFY_WORD_BYTES];
	struct trace_line line;
	int result = read_again(verify, row->start, &line);

	if (result < 0)
		return result;
	(void)verify_word_of(line.task, task);
	if (!row->end.line) {
		if (verify->is_ledger_good) {
			verify->counts.unfinished++;
			verify->hooks->unfinished(verify->hooks->context, task, 0, 0);
		}
		return 0;
	}
	result = read_again(verify, row->end, &line);
	if (result < 0)
		return result;
	if (verify_read_ending(&line, &ending) && ending.has_records && !ending.records)
		return 0;
	result = was_removed_since(verify, (struct json_view){ task, strlen(task) }, NULL);
	if (result)
		return result < 0 ? result : 0;
	(void)snprintf(finding.detail, sizeof(finding.detail), "task %s", task);
	verify_tell(verify, verify->ledger_name, &finding);
	return 0;
}

int verify_rest(struct verify *verify)
{
	int result = 0;

	for (size_t i = 0; i < verify->tasks.count && result == 0; i++)
		if (!verify->tasks.rows[i].is_seen && !verify->tasks.rows[i].is_removed)
			result = judge_absent(verify, &verify->tasks.rows[i]);
	return result;
}
