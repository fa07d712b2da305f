/* `bawn trace head` and `bawn trace key`: what to keep elsewhere, so that others can check. */
#include "cli/trace_verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "broker/state.h"
#include "trace/hook.h"
#include "trace/sign.h"
#include "trace/store.h"
#include "workspace/host.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_JSON, OPTION_STATE_DIR };

static const struct option head_options[] = {
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

static const struct option key_options[] = {
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct asked {
	const char *state_path;
	bool json;
};

/* The store and what leads to it. */
struct place {
	struct arena arena;
	struct caller host;
	struct state state;
	struct trace_store store;
};

#define PLACE_NONE ((struct place){ .state = STATE_NONE, .store = TRACE_STORE_NONE })

static void place_close(struct place *place)
{
	trace_store_close(&place->store);
	state_close(&place->state);
	arena_free(&place->arena);
}

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct asked *asked = context;

	if (option->id == OPTION_JSON) {
		asked->json = true;
		return 0;
	}
	return trace_state_option(option, value, &asked->state_path, error);
}

/* 0, or 2 after a complaint. */
static int parse(const struct verb *verb, int argc, char **argv, struct asked *ret_asked)
{
	struct error error = ERROR_NONE;
	int first = options_parse(verb, argc, argv, take, ret_asked, &error);

	if (first >= 0 && first < argc)
		first = error_set(&error, EINVAL, "bawn %s takes no words: %.40s", verb->name,
				  argv[first]);
	if (first < 0)
		complain(error.message);
	return first < 0 ? 2 : 0;
}

static int open_place(struct place *place, const struct asked *asked, struct error *error)
{
	int result = host_gather(&place->arena, &place->host, error);

	if (result == 0 && place->host.inside)
		result = error_set(error, EPERM,
				   "inside of a box no trace is seen; use this verb on the host");
	if (result == 0)
		result = state_open(&place->host, asked->state_path, &place->arena, &place->state,
				    error);
	return result;
}

static void put_hex(struct json *json, const char *name, const unsigned char *bytes, size_t length)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	for (size_t i = 0; i < length; i++)
		buffer_format(&text, "%02x", bytes[i]);
	json_string(json, name, text.data);
	json->buffer->failed |= text.failed;
}

static void put_claim(struct buffer *buffer, const struct sign_claim *claim, const char *line)
{
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_string(&json, "installation", claim->installation);
	json_unsigned(&json, "signed_seq", claim->seq);
	json_string(&json, "signed_hash", claim->hash);
	put_hex(&json, "public", claim->public, sizeof(claim->public));
	put_hex(&json, "signature", claim->signature, sizeof(claim->signature));
	json_string(&json, "line", line);
	json_object_end(&json);
}

static int print(const struct buffer *buffer)
{
	int result = buffer->failed ? -ENOMEM :
				      fd_write_all(STDOUT_FILENO, buffer->data, buffer->length);
	struct error error = ERROR_NONE;

	if (result < 0) {
		(void)error_errno(&error, result, "printing");
		complain(error.message);
	}
	return result < 0 ? 125 : 0;
}

static int sign_and_print(struct place *place, const struct asked *asked, struct error *error)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct chain_origin origin;
	char line[SIGN_LINE_BYTES];
	struct sign_claim claim;
	int result = trace_store_open(place->state.fd, &place->store, error), status;

	chain_origin_gather(&place->arena, &origin);
	if (result == 0)
		result = sign_head(&place->store, &origin, &claim, error);
	if (result < 0)
		return result;
	sign_line(&claim, line);
	if (asked->json)
		put_claim(&text, &claim, line);
	else
		buffer_text(&text, line);
	buffer_text(&text, "\n");
	status = print(&text);
	if (hook_run(&place->store, line, place->host.home, STDERR_FILENO, error) < 0) {
		complain(error->message);
		return status ? status : 1;
	}
	return status;
}

static int head_verb(int argc, char **argv)
{
	struct place __attribute__((cleanup(place_close))) place = PLACE_NONE;
	struct error error = ERROR_NONE;
	struct asked asked = { 0 };
	int status = parse(&verb_trace_head, argc, argv, &asked);

	if (status)
		return status;
	status = open_place(&place, &asked, &error);
	if (status == 0)
		status = sign_and_print(&place, &asked, &error);
	if (status < 0)
		complain(error.message);
	return status < 0 ? 125 : status;
}

static int key_verb(int argc, char **argv)
{
	struct place __attribute__((cleanup(place_close))) place = PLACE_NONE;
	struct buffer CLEANUP_BUFFER text = { 0 };
	unsigned char public[SIGN_PUBLIC_BYTES];
	struct error error = ERROR_NONE;
	struct asked asked = { 0 };
	char pem[SIGN_PEM_BYTES];
	int status = parse(&verb_trace_key, argc, argv, &asked);

	if (status)
		return status;
	status = open_place(&place, &asked, &error);
	if (status == 0) {
		/* looking is no reason to leave something behind */
		state_unmake(&place.state);
		status = trace_store_open_read(place.state.fd, &place.store, &error);
	}
	if (status == 0 || status == -ENOENT)
		status = sign_public(&place.store, public, &error);
	if (status < 0) {
		complain(error.message);
		return status == -ENOENT ? 1 : 125;
	}
	sign_pem(public, pem);
	buffer_text(&text, pem);
	return print(&text);
}

const struct verb verb_trace_head = {
	.name = "trace head",
	.synopsis = "",
	.summary = "Sign the trace as it is now, and print the line to keep elsewhere.",
	.options = head_options,
	.option_count = sizeof(head_options) / sizeof(head_options[0]),
	.exit_status = "0 signed; 1 signed, but the hook failed; 2 wrong use; 125 it could not be "
		       "signed",
	.run = head_verb,
};

const struct verb verb_trace_key = {
	.name = "trace key",
	.synopsis = "",
	.summary = "Print the public key of the trace, for `bawn trace verify --key`.",
	.options = key_options,
	.option_count = sizeof(key_options) / sizeof(key_options[0]),
	.exit_status = "0 printed; 1 there is none yet; 2 wrong use; 125 bawn itself failed",
	.run = key_verb,
};
