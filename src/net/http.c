#include "net/http.h"

#include "base/bytes.h"
#include "net/http_internal.h"

#include <errno.h>
#include <strings.h>

/* More names in Connection are no connection's: each is looked for in all fields. */
#define LIMIT_CONNECTION_NAMES 32u
/* The digits of what fits into 63 bits. */
#define LIMIT_LENGTH_DIGITS 18u

static const struct {
	const char *name;
	enum http_field_kind kind;
} known[] = {
	{ "host", HTTP_FIELD_HOST },
	{ "content-length", HTTP_FIELD_FRAMING },
	{ "transfer-encoding", HTTP_FIELD_FRAMING },
	{ "connection", HTTP_FIELD_HOP },
	{ "keep-alive", HTTP_FIELD_HOP },
	{ "te", HTTP_FIELD_HOP },
	{ "expect", HTTP_FIELD_HOP }, /* written anew */
	{ "http2-settings", HTTP_FIELD_HOP },
	{ "upgrade", HTTP_FIELD_UPGRADE },
	{ "x-http-method-override", HTTP_FIELD_OVERRIDE },
	{ "x-http-method", HTTP_FIELD_OVERRIDE },
	{ "x-method-override", HTTP_FIELD_OVERRIDE },
	{ "x-original-method", HTTP_FIELD_OVERRIDE },
	{ "x-original-url", HTTP_FIELD_OVERRIDE },
	{ "x-original-uri", HTTP_FIELD_OVERRIDE },
	{ "x-rewrite-url", HTTP_FIELD_OVERRIDE },
	{ "x-override-url", HTTP_FIELD_OVERRIDE },
	{ "x-forwarded-uri", HTTP_FIELD_OVERRIDE },
	{ "x-forwarded-method", HTTP_FIELD_OVERRIDE },
	/* gateways there are that choose the server by these, and not by Host */
	{ "forwarded", HTTP_FIELD_OVERRIDE },
	{ "x-forwarded-host", HTTP_FIELD_OVERRIDE },
	{ "x-forwarded-server", HTTP_FIELD_OVERRIDE },
	{ "x-original-host", HTTP_FIELD_OVERRIDE },
	{ "x-http-host-override", HTTP_FIELD_OVERRIDE },
	{ "x-host", HTTP_FIELD_OVERRIDE },
};

void http_clear(struct http_head *head)
{
	head->minor = 0;
	head->framing = HTTP_NO_BODY;
	head->content_length = 0;
	head->keep_alive = head->trailers = false;
	head->upgrade = (struct span){ "", 0 };
	head->field_count = 0;
}

int http_refuse(struct http_reader *reader, int refusal, const char *why)
{
	reader->why = why;
	return refusal;
}

int http_head_end(const char *bytes, size_t length, size_t *scanned, const char **ret_why)
{
	size_t limit = length < HTTP_LIMIT_HEAD_BYTES ? length : HTTP_LIMIT_HEAD_BYTES;
	size_t at = *scanned;

	for (; at < limit; at++) {
		at += bytes_find(bytes + at, limit - at, '\n');
		if (at == limit)
			break;
		if (at == 0 || bytes[at - 1] != '\r') {
			*ret_why = "a line of the head ends with a bare LF";
			return -EBADMSG;
		}
		if (at == 1) {
			*ret_why = "the head begins with an empty line";
			return -EBADMSG;
		}
		if (bytes[at - 2] == '\n')
			return (int)(at + 1);
	}
	*scanned = limit;
	if (limit < HTTP_LIMIT_HEAD_BYTES)
		return 0;
	*ret_why = "the head has more than 64 KiB";
	return -E2BIG;
}

struct span http_first_line(const char *bytes, size_t length, size_t *ret_next)
{
	size_t end = bytes_find(bytes, length, '\n');

	/* http_head_end() has seen a CR before each LF; any other CR is a control byte in a line */
	*ret_next = end < length ? end + 1 : length;
	return (struct span){ bytes, end && end < length ? end - 1 : end };
}

int http_read_version(struct http_reader *reader, struct span text)
{
	static const char form[] = "HTTP/";
	const char *at = text.bytes;

	if (text.length != sizeof(form) + 2 || memcmp(at, form, sizeof(form) - 1) != 0 ||
	    at[5] < '0' || at[5] > '9' || at[6] != '.' || at[7] < '0' || at[7] > '9')
		return http_refuse(reader, -EBADMSG, "the first line has no version of HTTP");
	if (at[5] != '1')
		return http_refuse(reader, -EPROTONOSUPPORT, "not a version 1 of HTTP");
	reader->head->minor = at[7] != '0';
	return 0;
}

bool http_is_text(struct span text)
{
	for (size_t i = 0; i < text.length; i++)
		if (!http_is_text_byte(text.bytes[i]))
			return false;
	return true;
}

static struct span trim(struct span text)
{
	while (text.length && (text.bytes[0] == ' ' || text.bytes[0] == '\t')) {
		text.bytes++;
		text.length--;
	}
	while (text.length &&
	       (text.bytes[text.length - 1] == ' ' || text.bytes[text.length - 1] == '\t'))
		text.length--;
	return text;
}

/* Takes the first element off a list; false at its end. Empty elements are passed over. */
static bool next_element(struct span *list, struct span *ret_element)
{
	while (list->length) {
		size_t end = bytes_find(list->bytes, list->length, ',');

		*ret_element = trim((struct span){ list->bytes, end });
		end += end < list->length;
		list->bytes += end;
		list->length -= end;
		if (ret_element->length)
			return true;
	}
	return false;
}

bool http_lists(struct span value, const char *word)
{
	struct span element;

	while (next_element(&value, &element))
		if (span_is_word(element, word))
			return true;
	return false;
}

const struct http_field *http_find(const struct http_head *head, const char *name)
{
	for (size_t i = 0; i < head->field_count; i++)
		if (span_is_word(head->fields[i].name, name))
			return &head->fields[i];
	return NULL;
}

/* As programs behind a gateway see it, to which '_' and '-' are the same (RFC 3875, 4.1.18). */
static bool is_like(struct span name, const char *word)
{
	if (name.length != strlen(word))
		return false;
	for (size_t i = 0; i < name.length; i++) {
		char byte = name.bytes[i] == '_' ? '-' : span_lower(name.bytes[i]);

		if (byte != word[i])
			return false;
	}
	return true;
}

enum http_field_kind http_kind(struct span name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (is_like(name, known[i].name))
			return known[i].kind;
	/* of hops, as all of that name that there are (RFC 9110, 11.7) */
	return name.length > 6 && is_like((struct span){ name.bytes, 6 }, "proxy-") ?
		       HTTP_FIELD_HOP :
		       HTTP_FIELD_END_TO_END;
}

/* -EBADMSG for what only looks like a name that matters. */
static int classify(struct http_reader *reader, struct http_field *field)
{
	field->kind = http_kind(field->name);
	if (field->kind != HTTP_FIELD_END_TO_END &&
	    memchr(field->name.bytes, '_', field->name.length))
		return http_refuse(reader, -EBADMSG,
				   "the name of a field is written with '_' for '-'");
	return 0;
}

static int read_field(struct http_reader *reader, struct span line)
{
	struct http_head *head = reader->head;
	struct http_field *field;
	size_t colon = 0;

	if (head->field_count == HTTP_LIMIT_FIELDS)
		return http_refuse(reader, -E2BIG, "the head has more than 100 fields");
	if (line.bytes[0] == ' ' || line.bytes[0] == '\t')
		return http_refuse(reader, -EBADMSG, "a line of the head is folded");
	while (colon < line.length && http_is_token_byte(line.bytes[colon]))
		colon++;
	if (colon == 0 || colon == line.length || line.bytes[colon] != ':')
		return http_refuse(reader, -EBADMSG, "a field has no proper name");
	if (colon > HTTP_LIMIT_NAME_BYTES)
		return http_refuse(reader, -E2BIG, "the name of a field is too long");
	field = &head->fields[head->field_count];
	field->name = (struct span){ line.bytes, colon };
	field->value = trim((struct span){ line.bytes + colon + 1, line.length - colon - 1 });
	if (!http_is_text(field->value))
		return http_refuse(reader, -EBADMSG, "a field has control bytes");
	head->field_count++;
	return classify(reader, field);
}

/* Puts down the field where it is the only one of its name. */
static int note_only(struct http_reader *reader, const struct http_field *field, const char *name,
		     const struct http_field **note)
{
	if (!span_is_word(field->name, name))
		return 0;
	if (*note)
		return http_refuse(reader, -EBADMSG,
				   "a field that frames or routes a message is there twice");
	*note = field;
	return 0;
}

/* What a Connection field lists ends here, but for what is written anew anyway. */
static int drop_listed(struct http_reader *reader, struct span list, size_t *count)
{
	struct http_head *head = reader->head;
	struct span name;

	while (next_element(&list, &name)) {
		if (++*count > LIMIT_CONNECTION_NAMES)
			return http_refuse(reader, -E2BIG, "Connection has too many names");
		for (size_t i = 0; i < name.length; i++)
			if (!http_is_token_byte(name.bytes[i]))
				return http_refuse(reader, -EBADMSG,
						   "Connection has what is no name");
		for (size_t i = 0; i < head->field_count; i++) {
			struct http_field *field = &head->fields[i];

			if (field->kind == HTTP_FIELD_END_TO_END &&
			    field->name.length == name.length &&
			    strncasecmp(field->name.bytes, name.bytes, name.length) == 0)
				field->kind = HTTP_FIELD_HOP;
		}
	}
	return 0;
}

/* Connection, Upgrade and TE, of which a head has several fields at times. */
static int read_connection(struct http_reader *reader)
{
	struct http_head *head = reader->head;
	const struct http_field *upgrade = NULL;
	bool close = false, keep = false, upgrades = false;
	size_t count = 0;
	int result;

	for (size_t i = 0; i < head->field_count; i++) {
		const struct http_field *field = &head->fields[i];

		if (field->kind == HTTP_FIELD_END_TO_END)
			continue;
		result = note_only(reader, field, "upgrade", &upgrade);
		if (result == 0 && span_is_word(field->name, "connection")) {
			close = close || http_lists(field->value, "close");
			keep = keep || http_lists(field->value, "keep-alive");
			upgrades = upgrades || http_lists(field->value, "upgrade");
			result = drop_listed(reader, field->value, &count);
		}
		if (result < 0)
			return result;
		if (span_is_word(field->name, "te"))
			head->trailers = head->trailers || http_lists(field->value, "trailers");
	}
	head->keep_alive = !close && (head->minor || keep);
	/* a server must not heed it from a client of 1.0 (RFC 9110, 7.8) */
	if (upgrade && upgrades && head->minor)
		head->upgrade = upgrade->value;
	return 0;
}

static int read_length(struct http_reader *reader)
{
	struct span value = reader->length->value;
	uint64_t number = 0;

	if (value.length == 0 || value.length > LIMIT_LENGTH_DIGITS)
		return http_refuse(reader, -EBADMSG, "Content-Length is no number");
	for (size_t i = 0; i < value.length; i++) {
		if (value.bytes[i] < '0' || value.bytes[i] > '9')
			return http_refuse(reader, -EBADMSG, "Content-Length is no number");
		number = number * 10 + (uint64_t)(value.bytes[i] - '0');
	}
	reader->head->content_length = number;
	reader->head->framing = HTTP_LENGTH;
	return 0;
}

/* As the fields have it; what the message is changes that later. */
static int read_framing(struct http_reader *reader)
{
	if (reader->coding && reader->length)
		return http_refuse(reader, -EBADMSG,
				   "Transfer-Encoding and Content-Length are both there");
	if (reader->length)
		return read_length(reader);
	if (!reader->coding)
		return 0;
	if (!reader->head->minor)
		return http_refuse(reader, -EBADMSG, "HTTP/1.0 has no Transfer-Encoding");
	if (!span_is_word(reader->coding->value, "chunked"))
		return http_refuse(reader, -EOPNOTSUPP,
				   "Transfer-Encoding is another than chunked");
	reader->head->framing = HTTP_CHUNKED;
	return 0;
}

int http_read_fields(struct http_reader *reader, const char *bytes, size_t length)
{
	const struct http_head *head = reader->head;
	size_t next = 0;
	int result = 0;

	while (result == 0 && length) {
		struct span line = http_first_line(bytes, length, &next);

		bytes += next;
		length -= next;
		if (line.length == 0)
			break;
		result = read_field(reader, line);
	}
	if (result == 0 && length)
		result = http_refuse(reader, -EBADMSG, "the head has an empty line");
	for (size_t i = 0; result == 0 && i < head->field_count; i++) {
		const struct http_field *field = &head->fields[i];

		if (field->kind == HTTP_FIELD_END_TO_END)
			continue;
		result = note_only(reader, field, "host", &reader->host);
		if (result == 0)
			result = note_only(reader, field, "content-length", &reader->length);
		if (result == 0)
			result = note_only(reader, field, "transfer-encoding", &reader->coding);
		if (result == 0)
			result = note_only(reader, field, "expect", &reader->expect);
	}
	if (result == 0)
		result = read_framing(reader);
	return result == 0 ? read_connection(reader) : result;
}

unsigned http_status(int refusal)
{
	static const struct {
		int refusal;
		unsigned status;
	} table[] = {
		{ -E2BIG, 431 },
		{ -EOPNOTSUPP, 501 },
		{ -EPROTONOSUPPORT, 505 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].refusal == refusal)
			return table[i].status;
	return 400;
}
