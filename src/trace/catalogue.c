#include "trace/catalogue.h"

#include "base/directory.h"
#include "base/error.h"
#include "trace/read.h"
#include "trace/store.h"
#include "trace/when.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_TASKS 256

static const char *const states[CATALOGUE_STATE_COUNT] = { "open",    "ended",	 "lost",
							   "removed", "missing", "foreign" };

const char *catalogue_state_name(enum catalogue_state state)
{
	return states[state];
}

struct catalogue_task *catalogue_find(const struct catalogue *catalogue, const char *id)
{
	size_t found =
		id_table_find(&catalogue->by_id, catalogue->tasks, sizeof(*catalogue->tasks), id);

	return found == SIZE_MAX ? NULL : &catalogue->tasks[found];
}

/* Room for one more: twice as many, or without the older half. */
static int make_room(struct catalogue *catalogue)
{
	size_t wanted = catalogue->capacity ? catalogue->capacity * 2 : FIRST_TASKS;
	struct catalogue_task *tasks;

	if (catalogue->count == CATALOGUE_LIMIT_TASKS) {
		catalogue->is_cut = true;
		catalogue->count /= 2;
		memmove(catalogue->tasks, catalogue->tasks + catalogue->count,
			catalogue->count * sizeof(*catalogue->tasks));
		id_table_rebuild(&catalogue->by_id, catalogue->tasks, sizeof(*tasks),
				 catalogue->count);
		return 0;
	}
	if (catalogue->count < catalogue->capacity)
		return 0;
	tasks = realloc(catalogue->tasks, wanted * sizeof(*tasks));
	if (!tasks)
		return -ENOMEM;
	catalogue->tasks = tasks;
	catalogue->capacity = wanted;
	return 0;
}

static int add(struct catalogue *catalogue, const char *id, enum catalogue_state state,
	       struct catalogue_task **ret_task)
{
	struct catalogue_task *task = catalogue_find(catalogue, id);

	if (!task) {
		int result = make_room(catalogue);

		if (result < 0)
			return result;
		task = &catalogue->tasks[catalogue->count];
		*task = (struct catalogue_task){ .state = state };
		memcpy(task->id, id, strnlen(id, sizeof(task->id) - 1));
		result = id_table_add(&catalogue->by_id, catalogue->tasks, sizeof(*task),
				      catalogue->count + 1);
		if (result < 0)
			return result;
		catalogue->count++;
	}
	*ret_task = task;
	return 0;
}

/* What is a file's name of a task, or a task of a line: letters and digits behind "t-". */
static bool is_id(const char *bytes, size_t length)
{
	if (length < 3 || length >= ACTION_ID_BYTES || memcmp(bytes, "t-", 2) != 0)
		return false;
	for (size_t i = 2; i < length; i++)
		if (!((bytes[i] >= 'a' && bytes[i] <= 'z') || (bytes[i] >= '0' && bytes[i] <= '9')))
			return false;
	return true;
}

static uint64_t time_of(const struct trace_line *line)
{
	uint64_t ns;

	return when_parse(line->time.bytes, line->time.length, &ns) ? ns : 0;
}

/* What the body of an end says of its chain. */
static void take_end(struct catalogue_task *task, const struct trace_line *line)
{
	static const char *const names[] = { "records", "last" };
	struct json_view values[2], last;
	struct json_reader reader;
	uint64_t records = 0;

	json_read_begin(&reader, line->body.bytes, line->body.length, TRACE_READ_DEPTH);
	(void)json_read_members(&reader, names, 2, values);
	if (!json_read_end(&reader))
		return;
	if (values[0].bytes && json_view_unsigned(values[0], &records))
		task->records = records;
	if (!values[1].bytes)
		return;
	json_read_begin(&reader, values[1].bytes, values[1].length, TRACE_READ_DEPTH);
	last = json_read_optional_string(&reader);
	if (json_read_end(&reader) && last.bytes && last.length < sizeof(task->last)) {
		memcpy(task->last, last.bytes, last.length);
		task->last[last.length] = '\0';
	}
}

static int take_line(struct catalogue *catalogue, const struct trace_line *line)
{
	char id[ACTION_ID_BYTES] = { 0 };
	struct catalogue_task *task;
	int result;

	if (!line->task.bytes || !is_id(line->task.bytes, line->task.length))
		return 0;
	memcpy(id, line->task.bytes, line->task.length);
	result = add(catalogue, id, CATALOGUE_OPEN, &task);
	if (result < 0)
		return result;
	if (json_view_is(line->type, "task.start")) {
		task->started_ns = time_of(line);
		return 0;
	}
	if (json_view_is(line->type, "task.removed"))
		task->state = CATALOGUE_REMOVED;
	else if (json_view_is(line->type, "task.lost"))
		task->state = CATALOGUE_LOST;
	else if (json_view_is(line->type, "task.end"))
		task->state = CATALOGUE_ENDED;
	else
		return 0;
	if (task->state != CATALOGUE_REMOVED)
		task->ended_ns = time_of(line);
	take_end(task, line);
	return 0;
}

static int read_ledger(const struct trace_store *store, struct catalogue *catalogue,
		       void (*told)(void *, const struct trace_line *), void *context,
		       struct error *error)
{
	struct trace_reader CLEANUP_TRACE_READER reader = TRACE_READER_NONE;
	struct trace_line line;
	int result = trace_read_open(&reader, store->fd, TRACE_LEDGER, error);

	if (result == -ENOENT)
		return 0;
	if (result < 0)
		return result;
	while ((result = trace_read_next(&reader, &line)) > 0) {
		if (line.fault) {
			if (told)
				told(context, &line);
		} else if (take_line(catalogue, &line) < 0) {
			return error_errno(error, ENOMEM, "listing the tasks of the ledger");
		}
	}
	return result < 0 ? error_errno(error, result, "reading the ledger") : 0;
}

/* Which chains there are. */
static int read_directory(const struct trace_store *store, struct catalogue *catalogue,
			  struct error *error)
{
	const size_t suffix = strlen(TRACE_SUFFIX);
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;

	(void)directory_open(&directory, store->tasks_fd, ".", 0);
	while ((name = directory_next(&directory))) {
		size_t length = strlen(name);
		char id[ACTION_ID_BYTES] = { 0 };
		struct catalogue_task *task;

		if (length <= suffix || strcmp(name + length - suffix, TRACE_SUFFIX) != 0 ||
		    !is_id(name, length - suffix))
			continue;
		memcpy(id, name, length - suffix);
		/* older than all that are kept */
		if (catalogue->is_cut && !catalogue_find(catalogue, id))
			continue;
		if (add(catalogue, id, CATALOGUE_FOREIGN, &task) < 0)
			return error_errno(error, ENOMEM, "listing the chains of tasks");
		task->has_chain = true;
	}
	return directory.code < 0 ? error_errno(error, directory.code, "listing trace/tasks") : 0;
}

int catalogue_read(const struct trace_store *store, struct catalogue *ret_catalogue,
		   void (*told)(void *context, const struct trace_line *fault), void *context,
		   struct error *error)
{
	struct catalogue CLEANUP_CATALOGUE catalogue = { 0 };
	int result = read_ledger(store, &catalogue, told, context, error);

	if (result == 0)
		result = read_directory(store, &catalogue, error);
	if (result < 0)
		return result;
	for (size_t i = 0; i < catalogue.count; i++) {
		struct catalogue_task *task = &catalogue.tasks[i];

		if (!task->has_chain && task->state != CATALOGUE_REMOVED &&
		    !(task->state == CATALOGUE_LOST && !task->records))
			task->state = CATALOGUE_MISSING;
	}
	*ret_catalogue = catalogue;
	catalogue = (struct catalogue){ 0 };
	return 0;
}

void catalogue_free(struct catalogue *catalogue)
{
	free(catalogue->tasks);
	id_table_free(&catalogue->by_id);
	*catalogue = (struct catalogue){ 0 };
}
