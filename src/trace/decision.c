#include "trace/decision.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "trace/ledger.h"
#include "trace/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void decision_list_tally(struct decision_list *list, const char *outcome)
{
	for (size_t i = 0; i < DECISION_LIMIT_OUTCOMES; i++) {
		struct decision_tally *row = &list->tallies[i];

		if (row->outcome && strcmp(row->outcome, outcome) != 0)
			continue;
		row->outcome = outcome;
		row->count++;
		return;
	}
}

int decision_list_add(struct decision_list *list, struct arena *arena,
		      const struct decision_item *item)
{
	struct decision_item *items;

	list->total++;
	decision_list_tally(list, item->outcome);
	if (list->count == DECISION_LIMIT_ITEMS)
		return 0;
	items = arena_push(arena, list->items, list->count, sizeof(*items));
	if (!items)
		return -ENOMEM;
	list->items = items;
	items[list->count++] = *item;
	return 0;
}

int decision_open(int state_fd, const struct decision_asked *asked, struct decision *ret_decision,
		  struct error *error)
{
	struct decision *decision = ret_decision;
	int result;

	*decision = DECISION_NONE;
	decision->asked = *asked;
	chain_origin_gather(NULL, &decision->origin);
	result = trace_store_open(state_fd, &decision->store, error);
	if (result == 0)
		result = secrets_begin(&decision->store, environ, &decision->mask, error);
	return result;
}

void decision_close(struct decision *decision)
{
	mask_end(&decision->mask);
	trace_store_close(&decision->store);
	*decision = DECISION_NONE;
}

/* ---- who ---- */

/* Who logged in, which sudo(8) and su(1) leave as it is; -1: not known. */
static int64_t login_uid(void)
{
	int CLEANUP_FD fd = open("/proc/self/loginuid", O_RDONLY | O_CLOEXEC);
	char text[24];
	ssize_t length = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text) - 1);
	unsigned long value;

	if (length <= 0)
		return -1;
	text[length] = '\0';
	value = strtoul(text, NULL, 10);
	return value < UINT32_MAX ? (int64_t)value : -1;
}

/* As /etc/passwd has it: getpwuid(3) loads libraries, or asks a network. */
static void put_user(struct json *json, const char *name, uint32_t uid)
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *entry = NULL;

	while (file && (entry = fgetpwent(file)) && entry->pw_uid != uid)
		;
	json_string(json, name, entry ? entry->pw_name : NULL);
	if (file)
		(void)fclose(file);
}

static void put_by(struct json *json)
{
	int64_t login = login_uid();

	json_object(json, "by");
	json_unsigned(json, "uid", getuid());
	put_user(json, "user", getuid());
	if (login < 0) {
		json_null(json, "login_uid");
		json_null(json, "login_user");
	} else {
		json_unsigned(json, "login_uid", (uint64_t)login);
		put_user(json, "login_user", (uint32_t)login);
	}
	json_object_end(json);
}

/* ---- what ---- */

static void put_hash(struct json *json, const char *name, const char *hash)
{
	json_string(json, name, hash[0] ? hash : NULL);
}

static void put_item(struct json *json, const struct decision_item *item)
{
	json_object(json, NULL);
	json_string(json, "path", item->path);
	json_string(json, "key", item->key);
	json_string(json, "kind", item->kind);
	json_string(json, "outcome", item->outcome);
	json_string(json, "reason", item->reason);
	json_string(json, "review", item->review);
	put_hash(json, "before", item->before);
	put_hash(json, "after", item->after);
	json_object_end(json);
}

static void put_list(struct json *json, const struct decision_list *list)
{
	size_t start = json->buffer->length, i;

	json_object(json, "outcomes");
	for (i = 0; i < DECISION_LIMIT_OUTCOMES && list->tallies[i].outcome; i++)
		json_unsigned(json, list->tallies[i].outcome, list->tallies[i].count);
	json_object_end(json);
	json_array(json, "items");
	for (i = 0; i < list->count && json->buffer->length - start < DECISION_LIMIT_BYTES; i++)
		put_item(json, &list->items[i]);
	json_array_end(json);
	json_unsigned(json, "unlisted", list->total - i);
}

static void put_asked(struct json *json, const struct decision_asked *asked)
{
	size_t start = json->buffer->length, i;

	json_string(json, "workspace", asked->workspace);
	json_bool(json, "overwrite", asked->overwrites);
	json_bool(json, "resumed", asked->is_resumed);
	json_array(json, "asked");
	for (i = 0; i < asked->path_count && i < DECISION_LIMIT_ITEMS &&
		    json->buffer->length - start < DECISION_LIMIT_BYTES;
	     i++)
		json_string(json, NULL, asked->paths[i]);
	json_array_end(json);
	json_unsigned(json, "asked_unlisted", asked->path_count - i);
}

/* ---- the records ---- */

/* The head of a record; its body is ended by write_record(). */
static struct json *begin_record(const struct decision *decision, const char *type,
				 struct chain *ledger)
{
	const struct chain_record record = { .task = decision->asked.task,
					     .layer = "ledger",
					     .type = type };
	struct json *json;

	ledger->mask = &decision->mask;
	json = chain_begin(ledger, &record);
	json_string(json, "verb", decision->asked.verb);
	put_by(json);
	return json;
}

static int write_record(struct chain *ledger, struct error *error)
{
	int result = chain_end(ledger);

	if (result == 0)
		result = chain_flush(ledger, true);
	return result < 0 ? error_errno(error, result, "the trace's ledger cannot be written") : 0;
}

int decision_intend(struct decision *decision, const struct decision_list *list,
		    struct error *error)
{
	struct chain CLEANUP_CHAIN ledger = CHAIN_NONE;
	int result = ledger_open(&decision->store, &decision->origin, &ledger, error);
	struct json *json;

	if (result < 0)
		return result;
	json = begin_record(decision, "decision", &ledger);
	put_asked(json, &decision->asked);
	put_list(json, list);
	result = write_record(&ledger, error);
	if (result == 0)
		memcpy(decision->intent, ledger.last, sizeof(decision->intent));
	return result;
}

int decision_settle(const struct decision *decision, const struct decision_list *list,
		    const char *failure, struct error *error)
{
	struct chain CLEANUP_CHAIN ledger = CHAIN_NONE;
	int result = ledger_open(&decision->store, &decision->origin, &ledger, error);
	struct json *json;

	if (result < 0)
		return result;
	json = begin_record(decision, "decision.end", &ledger);
	json_string(json, "intent", decision->intent);
	json_string(json, "failure", failure);
	put_list(json, list);
	return write_record(&ledger, error);
}
