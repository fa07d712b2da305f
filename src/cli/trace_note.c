/*
 * `bawn trace note`: a person's or an agent's word, on record with a task. That of one that lives
 * is written to its chain by its supervisor, that of one that has ended to the ledger.
 */
#include "cli/trace_verbs.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "broker/client.h"
#include "cli/request.h"
#include "cli/trace_place.h"
#include "ipc/message.h"
#include "ipc/role.h"
#include "trace/annotate.h"
#include "trace/chain.h"
#include "trace/secrets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A supervisor that goes has its chain open until the head's hook (trace/hook.h) is done. */
#define ENDING_NS (10ull * 1000 * 1000 * 1000)
#define ENDING_LOOK_NS (5ull * 1000 * 1000)

static const struct option options[] = {
	{ "--meta", "KEY=VALUE", "put this on record with the note: by, model, ticket", true, false,
	  OPTION_META },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct note {
	struct arena arena;
	struct request request; /* --meta and --state-dir */
	const char *words[2];	/* the task, the text */
	size_t word_count;
	struct trace_place place;
	struct client client;
	struct mask mask;
	char task[ACTION_ID_BYTES];
	bool is_live;
	enum catalogue_state state; /* of one that does not live */
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct note *note = context;

	if (option->id == OPTION_STATE_DIR)
		return trace_state_option(option, value, &note->request.state_path, error);
	return request_take(&note->request, &note->arena, option, value, error);
}

/* Options may stand before, between and behind the two words; behind "--" everything is a word. */
static int parse(struct note *note, int argc, char **argv, struct error *error)
{
	bool is_plain = false;
	int at = 0;

	while (at < argc) {
		int next = is_plain || (argv[at + 1] && strcmp(argv[at + 1], "-") == 0) ?
				   1 :
				   options_parse(&verb_trace_note, argc - at, argv + at, take, note,
						 error);

		if (next < 0)
			return next;
		at += next;
		is_plain = is_plain || (next > 1 && strcmp(argv[at - 1], "--") == 0);
		if (at >= argc)
			break;
		if (note->word_count < 2)
			note->words[note->word_count] = argv[at];
		note->word_count++;
	}
	if (note->word_count != 2)
		return error_set(error, EINVAL,
				 "bawn trace note takes a task and one text; \"-\" is standard "
				 "input");
	return 0;
}

/* What standard input has, without the newline that ends its last line. */
static int read_text(struct note *note, struct error *error)
{
	char *bytes;
	ssize_t length;

	if (strcmp(note->words[1], "-") != 0)
		return 0;
	/* as much more as is needed to see that it is too long */
	bytes = arena_allocate(&note->arena, CONTROL_LIMIT_NOTE_BYTES + 3);
	if (!bytes)
		return error_errno(error, ENOMEM, "the text");
	length = fd_read_all(0, bytes, CONTROL_LIMIT_NOTE_BYTES + 2);
	if (length < 0)
		return error_errno(error, (int)length, "reading standard input");
	if (length && bytes[length - 1] == '\n')
		length--;
	bytes[length] = '\0';
	if (strlen(bytes) != (size_t)length)
		return error_set(error, EINVAL, "standard input has a NUL byte; a note is a text");
	note->words[1] = bytes;
	return 0;
}

/* Takes a task into account; false where it is a second one that the word may mean. */
static bool consider(struct note *note, const char *word, const char *letters, const char *id)
{
	if (strncmp(id + 2, letters, strlen(letters)) != 0 || strcmp(id, note->task) == 0)
		return true;
	if (note->task[0]) {
		trace_complain("%.40s is the beginning of several: %s, %s; give more of it", word,
			       note->task, id);
		return false;
	}
	(void)snprintf(note->task, sizeof(note->task), "%s", id);
	return true;
}

/* Of all tasks: those that live, on record or not, and those on record. 0 or the exit status. */
static int choose(struct note *note)
{
	const char *word = note->words[0];
	const char *letters = strncmp(word, "t-", 2) == 0 ? word + 2 : word;
	struct catalogue CLEANUP_CATALOGUE catalogue = { 0 };
	const struct catalogue_task *task;
	struct error error = ERROR_NONE;
	const char **live;
	size_t count;
	int status;

	if (!letters[0] ||
	    letters[strspn(letters, "abcdefghijklmnopqrstuvwxyz0123456789")] != '\0') {
		trace_complain("%.40s is no id of a task; `bawn trace ls` lists them", word);
		return 2;
	}
	if (client_tasks(&note->client, &note->arena, &live, &count, &error) < 0) {
		complain(error.message);
		return 125;
	}
	status = trace_place_catalogue(&note->place, &catalogue);
	if (status)
		return status;
	for (size_t i = 0; i < count; i++)
		if (!consider(note, word, letters, live[i]))
			return 1;
	note->is_live = note->task[0] != '\0';
	for (size_t i = 0; i < catalogue.count; i++)
		if (!consider(note, word, letters, catalogue.tasks[i].id))
			return 1;
	if (!note->task[0]) {
		trace_complain("no task %.40s; `bawn trace ls` and `bawn ps` list them", word);
		return 1;
	}
	task = catalogue_find(&catalogue, note->task);
	note->state = task ? task->state : CATALOGUE_OPEN;
	return 0;
}

static int keep_text(void *context, const void *bytes, size_t length)
{
	struct buffer *buffer = context;

	buffer_append(buffer, bytes, length);
	return buffer->failed ? -ENOMEM : 0;
}

/* The text without secrets of the caller's, which the supervisor may not know; NULL: no memory. */
static const char *without_secrets(struct note *note, const char *text)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	struct mask_stream CLEANUP_MASK_STREAM stream = { 0 };

	if (mask_stream_begin(&stream, &note->mask, keep_text, &buffer) < 0 ||
	    mask_stream_feed(&stream, text, strlen(text)) < 0 || mask_stream_finish(&stream) < 0)
		return NULL;
	return arena_copy_bytes(&note->arena, buffer.data ? buffer.data : "", buffer.length);
}

static int hide_secrets(struct note *note, struct error *error)
{
	size_t count = note->request.meta_count;
	const char **meta = arena_array(&note->arena, count + 1, sizeof(*meta));
	int result = secrets_begin(&note->place.store, environ, &note->mask, error);
	bool is_done = meta != NULL;

	if (result < 0)
		return result;
	note->words[1] = without_secrets(note, note->words[1]);
	for (size_t i = 0; is_done && i < count; i++) {
		meta[i] = without_secrets(note, note->request.meta[i]);
		is_done = meta[i] != NULL;
	}
	if (!is_done || !note->words[1])
		return error_errno(error, ENOMEM, "masking what is secret");
	note->request.meta = meta;
	return 0;
}

/* The supervisor's answer, or why there is none. */
static int ask(const struct note *note, const struct buffer *blob, struct error *error)
{
	uint64_t now = clock_monotonic_ns();
	int CLEANUP_FD config = role_config(blob->data, blob->length);
	int CLEANUP_FD fd = -1;
	struct message message;
	int result;

	if (config < 0)
		return error_errno(error, config, "making the request");
	result = client_connect_patiently(&note->client, note->task, now + CLIENT_YOUNG_NS, &fd,
					  NULL, error);
	if (result == -ENOTCONN)
		return error_set(error, ENOTCONN,
				 "it has no control socket; a note can be added when it has ended");
	if (result == 0)
		result = client_send(fd, CONTROL_NOTE, NULL, 0, &config, 1, error);
	if (result == 0)
		result = client_receive(fd, clock_monotonic_ns() + CLIENT_ANSWER_NS, &message,
					error);
	if (result < 0)
		return result;
	result = client_reply(&message, error);
	message_close_fds(&message);
	return result;
}

/* Into the ledger, as soon as nobody writes the chain any more. */
static int add_behind(struct note *note, struct error *error)
{
	const struct timespec pause = { .tv_nsec = ENDING_LOOK_NS };
	const struct annotation annotation = { .task = note->task,
					       .text = note->words[1],
					       .meta = note->request.meta };
	uint64_t until = clock_monotonic_ns() + ENDING_NS;
	struct chain_origin origin;
	int result;

	chain_origin_gather(&note->arena, &origin);
	while ((result = annotate(&note->place.store, &origin, &annotation, &note->mask, error)) ==
		       -EBUSY &&
	       clock_monotonic_ns() < until)
		(void)nanosleep(&pause, NULL);
	return result == -EBUSY ? error_set(error, EBUSY, "it is about to end; try again") : result;
}

static int add(struct note *note, const struct buffer *blob, struct error *error)
{
	int result = -ECONNRESET;

	if (note->is_live)
		result = ask(note, blob, error);
	/*
	 * It has ended meanwhile: then the ledger has the note, and perhaps the chain too, of a
	 * supervisor that died before it could say so.
	 */
	if (result == -ECONNRESET || result == -ENOENT)
		result = note->place.is_empty ?
				 error_set(error, ENOENT, "the task %s has ended without a record",
					   note->task) :
				 add_behind(note, error);
	return result;
}

/* Whether a note has a place; 0 or the exit status. */
static int judge(const struct note *note)
{
	if (note->is_live || note->state == CATALOGUE_OPEN || note->state == CATALOGUE_ENDED ||
	    note->state == CATALOGUE_LOST)
		return 0;
	trace_complain(note->state == CATALOGUE_REMOVED ?
			       "the record of %s was removed; a note has no place any more" :
		       note->state == CATALOGUE_MISSING ?
			       "the record of %s is not there; `bawn trace verify` tells more" :
			       "the ledger does not know %s; `bawn trace verify` tells more",
		       note->task);
	return 1;
}

static int write_note(struct note *note, struct error *error)
{
	struct buffer CLEANUP_BUFFER blob = { 0 };
	struct control_note wanted;
	int result = note->place.is_empty ? 0 : hide_secrets(note, error);

	wanted = (struct control_note){ .text = note->words[1],
					.meta = note->request.meta,
					.meta_count = note->request.meta_count };
	if (result == 0)
		result = control_encode_note(&wanted, &blob, error);
	return result == 0 ? add(note, &blob, error) : result;
}

static int run(struct note *note)
{
	struct error error = ERROR_NONE;
	int status = trace_place_open(&note->place, note->request.state_path), result;

	if (status)
		return status;
	result = client_open(note->request.state_path, &note->arena, &note->client, &error);
	if (result < 0) {
		complain(error.message);
		return result == -EPERM ? 1 : 125;
	}
	status = choose(note);
	if (status == 0)
		status = judge(note);
	if (status)
		return status;
	result = write_note(note, &error);
	if (result < 0)
		trace_complain("%s: %s", note->task, error.message);
	else
		printf("%s has the note\n", note->task);
	(void)fflush(stdout);
	return result < 0 ? 1 : 0;
}

/* What is wrong with the note itself is told before a task is looked for. */
static int check(struct note *note, struct error *error)
{
	struct buffer CLEANUP_BUFFER blob = { 0 };
	struct control_note wanted;
	int result = read_text(note, error);

	wanted = (struct control_note){ .text = note->words[1],
					.meta = note->request.meta,
					.meta_count = note->request.meta_count };
	return result < 0 ? result : control_encode_note(&wanted, &blob, error);
}

static int note_verb(int argc, char **argv)
{
	struct note note = { .place = TRACE_PLACE_NONE, .client = CLIENT_NONE };
	struct error error = ERROR_NONE;
	int result = parse(&note, argc, argv, &error), status = 2;

	if (result == 0)
		result = check(&note, &error);
	if (result < 0)
		complain(error.message);
	else
		status = run(&note);
	mask_end(&note.mask);
	client_close(&note.client);
	trace_place_close(&note.place);
	arena_free(&note.arena);
	return status;
}

const struct verb verb_trace_note = {
	.name = "trace note",
	.synopsis = "TASK TEXT",
	.summary = "Put a note on record with a task, whether it lives or has ended.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status =
		"0 it is on record; 1 no such task, its record was removed, it keeps none or its "
		"supervisor does not answer; 2 wrong use; 125 bawn itself failed",
	.run = note_verb,
};
