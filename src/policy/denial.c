#include "policy/denial.h"

#include "base/buffer.h"
#include "base/json.h"
#include "policy/danger.h"
#include "policy/host.h"

#include <stdio.h>
#include <string.h>

static const struct denial_text texts[DENIAL_KIND_COUNT] = {
#define DENIAL(name, code, layer, verb, message, remedy) { code, layer, verb, message, remedy },
#include "policy/denial.def"
#undef DENIAL
};

const struct denial_text *denial_text(enum denial_kind kind)
{
	return &texts[kind];
}

bool denial_add(struct denial_list *list, enum denial_kind kind, struct rule_ref rule,
		const char *object, bool measured)
{
	struct denial *denial;

	for (uint32_t i = 0; i < list->count; i++) {
		denial = &list->items[i];
		if (denial->kind == kind &&
		    strncmp(denial->object, object, sizeof(denial->object) - 1) == 0) {
			denial->count += denial->count < UINT32_MAX;
			return false;
		}
	}
	if (list->count == DENIAL_LIMIT) {
		list->dropped++;
		return false;
	}
	denial = &list->items[list->count++];
	*denial = (struct denial){ .kind = kind, .rule = rule, .count = 1, .measured = measured };
	(void)snprintf(denial->object, sizeof(denial->object), "%s", object);
	return true;
}

/* What a shell takes as it is; bytes of UTF-8 too. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x80 &&
		    !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			    "/._-+,:@%=",
			    *text))
			return false;
	return true;
}

/* A remedy is there to be pasted: a task that names `/x;reboot` must not get it run. */
static void print_quoted(const char *object, struct buffer *buffer)
{
	if (is_plain(object)) {
		buffer_visible(buffer, object);
		return;
	}
	buffer_text(buffer, "'");
	for (const char *at = object; *at; at += strcspn(at, "'")) {
		char part[DENIAL_OBJECT_BYTES];

		if (*at == '\'') {
			buffer_text(buffer, "'\\''");
			at++;
		}
		(void)snprintf(part, sizeof(part), "%.*s", (int)strcspn(at, "'"), at);
		buffer_visible(buffer, part);
	}
	buffer_text(buffer, "'");
}

/* Why no option would ever show the object, or NULL: a remedy that is refused helps nobody. */
static const char *why_never(const struct denial *denial)
{
	const char *object = denial->grant[0] ? denial->grant : denial->object;

	if (object[0] != '/')
		return NULL;
	if (denial->kind == DENIAL_FS_READ)
		return danger_of_path(object, PATH_READ, NULL, NULL);
	if (denial->kind == DENIAL_FS_WRITE)
		return danger_of_path(object, PATH_WRITE, NULL, NULL);
	return NULL;
}

/* What the remedy names; of a connection that is not known, how it is named. */
static const char *remedy_object(const struct denial *denial)
{
	const char *object = denial->grant[0] ? denial->grant : denial->object, *why;
	struct host host;
	uint16_t port;

	if (strcmp(texts[denial->kind].verb, "net.connect") == 0 &&
	    host_parse_port(object, strlen(object), 443, &host, &port, &why) < 0)
		return "NAME:PORT";
	return object;
}

/* Splits the remedy at its %s, so that no text of a task is ever a format. */
static void print_remedy(const struct denial *denial, struct buffer *buffer)
{
	const char *remedy = texts[denial->kind].remedy;
	const char *hole = strstr(remedy, "%s");

	if (!hole) {
		buffer_text(buffer, remedy);
		return;
	}
	buffer_append(buffer, remedy, (size_t)(hole - remedy));
	print_quoted(remedy_object(denial), buffer);
	buffer_text(buffer, hole + 2);
}

void denial_print(const struct denial *denial, struct buffer *buffer)
{
	const struct denial_text *text = &texts[denial->kind];
	const char *never = why_never(denial);

	buffer_format(buffer, "denied: %s ", text->code);
	buffer_visible(buffer, denial->object);
	buffer_text(buffer, denial->object[0] ? " (" : "(");
	rule_print(&denial->rule, buffer);
	buffer_format(buffer, ", %s): %s", denial->measured ? "measured" : "inferred",
		      text->message);
	if (denial->reason)
		buffer_format(buffer, " (%s)", denial->reason);
	if (never) {
		buffer_format(buffer, "; no option allows it: %s", never);
	} else if (text->remedy[0]) {
		buffer_text(buffer, "; to allow: ");
		print_remedy(denial, buffer);
	}
}

void denial_members(const struct denial *denial, struct json *json)
{
	const struct denial_text *text = &texts[denial->kind];
	struct buffer CLEANUP_BUFFER remedy = { 0 };

	json_string(json, "code", text->code);
	json_string(json, "layer", text->layer);
	json_string(json, "verb", text->verb);
	json_string(json, "object", denial->object);
	rule_json(&denial->rule, "rule", json);
	json_string(json, "message", text->message);
	if (!why_never(denial))
		print_remedy(denial, &remedy);
	json_string(json, "remedy", remedy.length ? remedy.data : NULL);
	json_string(json, "evidence", denial->measured ? "measured" : "inferred");
	json_unsigned(json, "count", denial->count);
}

void denial_json(const struct denial *denial, struct json *json)
{
	json_object(json, NULL);
	denial_members(denial, json);
	json_object_end(json);
}
