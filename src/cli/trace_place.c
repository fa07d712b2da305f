#include "cli/trace_place.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/holder.h"
#include "cli/options.h"
#include "trace/chain.h"
#include "trace/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of a word in a complaint: ids have 22 characters. */
#define WORD "%.40s"

void trace_complain(const char *format, ...)
{
	char text[ERROR_MESSAGE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	complain(text);
}

int trace_place_open(struct trace_place *place, const char *state_path)
{
	struct error error = ERROR_NONE;
	int result;

	*place = TRACE_PLACE_NONE;
	result = host_gather(&place->arena, &place->host, &error);
	if (result == 0 && place->host.inside)
		result = error_set(&error, EPERM,
				   "inside of a box no trace is seen; use this verb on the host");
	if (result == 0)
		result = state_open(&place->host, state_path, &place->arena, &place->state, &error);
	if (result == 0) {
		/* looking is no reason to leave something behind */
		state_unmake(&place->state);
		result = trace_store_open_read(place->state.fd, &place->store, &error);
		place->is_empty = result == -ENOENT;
	}
	if (result == 0 || place->is_empty)
		return 0;
	complain(error.message);
	trace_place_close(place);
	return result == -EPERM ? 1 : 125;
}

void trace_place_close(struct trace_place *place)
{
	trace_store_close(&place->store);
	state_close(&place->state);
	arena_free(&place->scratch);
	arena_free(&place->arena);
}

static void complain_of(struct trace_place *place, uint64_t number, const char *what)
{
	if (++place->file.bad <= TRACE_PLACE_LIMIT_TOLD)
		trace_complain("%s:%llu: %s; the line is passed over, `bawn trace verify` tells "
			       "more",
			       place->file.name, (unsigned long long)number, what);
}

void trace_place_told(struct trace_place *place)
{
	if (place->file.bad > TRACE_PLACE_LIMIT_TOLD)
		trace_complain("%s: %llu more bad lines", place->file.name,
			       (unsigned long long)(place->file.bad - TRACE_PLACE_LIMIT_TOLD));
	place->file.bad = 0;
}

static void tell_fault(void *context, const struct trace_line *fault)
{
	complain_of(context, fault->number, fault->what);
}

static void name_file(struct trace_place *place, const char *name)
{
	(void)snprintf(place->file.name, sizeof(place->file.name), "trace/%s", name);
	place->file.bad = 0;
}

int trace_place_catalogue(struct trace_place *place, struct catalogue *ret_catalogue)
{
	struct error error = ERROR_NONE;
	int result;

	*ret_catalogue = (struct catalogue){ 0 };
	if (place->is_empty)
		return 0;
	name_file(place, TRACE_LEDGER);
	result = catalogue_read(&place->store, ret_catalogue, tell_fault, place, &error);
	trace_place_told(place);
	if (result < 0)
		complain(error.message);
	return result < 0 ? 125 : 0;
}

const char *trace_place_state(const struct trace_place *place, const struct catalogue_task *task)
{
	if (task->state != CATALOGUE_OPEN)
		return catalogue_state_name(task->state);
	return holder_exists(place->state.tasks_fd, task->id) ? "live" : "unfinished";
}

/* By the reader's rules of what is a chain: a regular file, no link. */
static int open_file(int directory_fd, const char *name, struct error *error)
{
	struct trace_reader CLEANUP_TRACE_READER reader = TRACE_READER_NONE;
	int result = trace_read_open(&reader, directory_fd, name, error);

	return result < 0 ? result : TAKE_FD(reader.fd);
}

int trace_place_chain(struct trace_place *place, const char *id, int *ret_fd)
{
	struct error error = ERROR_NONE;
	char name[ACTION_ID_BYTES + 16];
	int fd;

	(void)snprintf(name, sizeof(name), "tasks/%s" TRACE_SUFFIX, id);
	name_file(place, name);
	fd = open_file(place->store.tasks_fd, name + strlen("tasks/"), &error);
	if (fd < 0) {
		complain(error.message);
		return fd;
	}
	*ret_fd = fd;
	return 0;
}

int trace_place_ledger(struct trace_place *place)
{
	struct error error = ERROR_NONE;
	int fd = place->is_empty ? -ENOENT : open_file(place->store.fd, TRACE_LEDGER, &error);

	name_file(place, TRACE_LEDGER);
	if (fd < 0 && fd != -ENOENT)
		complain(error.message);
	return fd;
}

/* What the reader said of a line: 0, or a complaint. */
static bool is_line(struct trace_place *place, const struct scan_line *found,
		    struct trace_line *line, int result)
{
	if (result < 0) {
		complain_of(place, found->number,
			    result == -ENOMEM ? "too large to look into" :
			    line->what	      ? line->what :
						"no record");
		return false;
	}
	line->number = found->number;
	line->offset = found->offset;
	return true;
}

static bool is_short(struct trace_place *place, const struct scan_line *found)
{
	if (found->is_long)
		complain_of(place, found->number, "longer than a line may be");
	return !found->is_long;
}

bool trace_place_envelope(struct trace_place *place, const struct scan_line *found,
			  struct trace_line *ret_line)
{
	return is_short(place, found) &&
	       is_line(place, found, ret_line,
		       trace_line_parse(found->bytes, found->length, ret_line) ? 0 : -EBADMSG);
}

bool trace_place_line(struct trace_place *place, const struct scan_line *found,
		      struct trace_line *ret_line, const struct json_node **ret_body)
{
	if (!is_short(place, found))
		return false;
	arena_reset(&place->scratch);
	return is_line(
		place, found, ret_line,
		trace_line_read(found->bytes, found->length, &place->scratch, ret_line, ret_body));
}

void trace_raw_line(const struct trace_line *line, bool is_terminal, struct buffer *buffer)
{
	struct buffer CLEANUP_BUFFER raw = { 0 };

	if (!is_terminal) {
		buffer_append(buffer, line->raw.bytes, line->raw.length);
		return;
	}
	buffer_append(&raw, line->raw.bytes, line->raw.length);
	buffer_visible(buffer, raw.data ? raw.data : "");
}

/* Adds a candidate; true when it is another one than the first. */
static bool is_second(struct trace_found *found, const char *task, const char *action, bool *is_any)
{
	if (*is_any)
		return strcmp(found->task, task) != 0 || strcmp(found->action, action) != 0;
	*is_any = true;
	(void)snprintf(found->task, sizeof(found->task), "%s", task);
	(void)snprintf(found->action, sizeof(found->action), "%s", action);
	return false;
}

static int complain_several(const char *word, const char *one, const char *other)
{
	trace_complain(WORD " is the beginning of several: %s, %s; give more of it", word, one,
		       other);
	return 1;
}

/* Looks for actions of a task whose id begins so. Returns the exit status of an ambiguity, or 0. */
static int find_action(struct trace_place *place, const char *task, const char *word,
		       const char *letters, struct trace_found *found, bool *is_any)
{
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	struct scan_needles needles = { .count = 0 };
	static const char intent[] = "\"type\":\"action.intent\"";
	char wanted[ACTION_ID_BYTES + 32];
	struct scan_line candidate;
	struct trace_line line;
	int CLEANUP_FD fd = -1;

	(void)snprintf(wanted, sizeof(wanted), "\"action\":\"a-%s", letters);
	(void)scan_add(&needles, wanted, strlen(wanted), 0);
	(void)scan_add(&needles, intent, sizeof(intent) - 1, 1);
	if (trace_place_chain(place, task, &fd) < 0)
		return 0;
	scan_begin(&scan, fd, &needles, 0, 1);
	while (scan_next(&scan, &candidate) > 0) {
		char id[ACTION_ID_BYTES] = { 0 };

		if (candidate.is_long ||
		    !trace_line_parse(candidate.bytes, candidate.length, &line) ||
		    !json_view_is(line.type, "action.intent") || !line.action.bytes ||
		    line.action.length >= sizeof(id))
			continue;
		memcpy(id, line.action.bytes, line.action.length);
		if (strncmp(id, "a-", 2) == 0 && strncmp(id + 2, letters, strlen(letters)) == 0 &&
		    is_second(found, task, id, is_any))
			return complain_several(word,
						found->action[0] ? found->action : found->task, id);
	}
	return 0;
}

static int find_task(const struct catalogue *catalogue, const char *word, const char *letters,
		     struct trace_found *found, bool *is_any)
{
	for (size_t i = 0; i < catalogue->count; i++)
		if (strncmp(catalogue->tasks[i].id + 2, letters, strlen(letters)) == 0 &&
		    is_second(found, catalogue->tasks[i].id, "", is_any))
			return complain_several(word, found->task, catalogue->tasks[i].id);
	return 0;
}

int trace_place_find(struct trace_place *place, const char *word, bool wants_actions,
		     struct trace_found *ret_found)
{
	bool is_task = strncmp(word, "t-", 2) == 0, is_action = strncmp(word, "a-", 2) == 0;
	const char *letters = is_task || is_action ? word + 2 : word;
	struct catalogue CLEANUP_CATALOGUE catalogue = { 0 };
	struct trace_found found = { .task = "" };
	bool is_any = false;
	int status;

	if (!letters[0] || strlen(letters) > ACTION_ID_BYTES - 3 ||
	    letters[strspn(letters, "abcdefghijklmnopqrstuvwxyz0123456789")] ||
	    (is_action && !wants_actions)) {
		trace_complain(WORD " is no id of a task%s; `bawn trace ls` lists them", word,
			       wants_actions ? " or an action" : "");
		return 2;
	}
	status = trace_place_catalogue(place, &catalogue);
	if (status == 0 && !is_action)
		status = find_task(&catalogue, word, letters, &found, &is_any);
	/* letters that begin a task's id mean the task: an action's may be the same */
	wants_actions &= !is_task && !is_any;
	for (size_t i = catalogue.count; i && status == 0 && wants_actions; i--)
		if (catalogue.tasks[i - 1].has_chain)
			status = find_action(place, catalogue.tasks[i - 1].id, word, letters,
					     &found, &is_any);
	if (status == 0 && !is_any) {
		trace_complain("no task or action " WORD
			       " in the trace; `bawn trace ls` lists them",
			       word);
		status = 1;
	}
	if (status == 0)
		*ret_found = found;
	return status;
}
