#include "net/http.h"

#include "net/http_internal.h"

#include <errno.h>

#define STATUS_SWITCHING 101u
#define STATUS_NO_CONTENT 204u
#define STATUS_NOT_MODIFIED 304u

/* version SP 3DIGIT [SP reason]: the blank before an empty reason is left out by some. */
static int read_line(struct http_reader *reader, struct span line, struct http_response *response)
{
	enum { VERSION = 8, CODE = VERSION + 1, REASON = CODE + 4 };
	const char *at = line.bytes;
	int result;

	if (line.length < REASON - 1 || at[VERSION] != ' ' ||
	    (line.length >= REASON && at[REASON - 1] != ' '))
		return http_refuse(reader, -EBADMSG, "the status line is malformed");
	result = http_read_version(reader, (struct span){ at, VERSION });
	if (result < 0)
		return result;
	for (int i = CODE; i < REASON - 1; i++) {
		if (at[i] < '0' || at[i] > '9')
			return http_refuse(reader, -EBADMSG, "the status is no number");
		response->status = (uint16_t)(response->status * 10 + (at[i] - '0'));
	}
	if (response->status < 100 || response->status > 599)
		return http_refuse(reader, -EBADMSG, "the status is none of HTTP");
	response->reason = (struct span){ "", 0 };
	if (line.length > REASON)
		response->reason = (struct span){ at + REASON, line.length - REASON };
	return http_is_text(response->reason) ?
		       0 :
		       http_refuse(reader, -EBADMSG, "the reason has control bytes");
}

static int read_switching(struct http_reader *reader, const struct http_asked *asked)
{
	if (!asked->upgrade || reader->head->upgrade.length == 0)
		return http_refuse(reader, -EBADMSG, "101 without an upgrade that was asked for");
	return reader->head->framing == HTTP_NO_BODY ?
		       0 :
		       http_refuse(reader, -EBADMSG, "101 has a body");
}

/* Responses that never have a body: what their fields say of one is another's, or wrong. */
static int read_bodiless(struct http_reader *reader, struct http_response *response, bool speaks)
{
	struct http_head *head = reader->head;

	if (!speaks && (head->framing == HTTP_CHUNKED || head->content_length))
		return http_refuse(reader, -EBADMSG,
				   "a response that has no body says that it has one");
	response->has_length = speaks && head->framing == HTTP_LENGTH;
	head->framing = HTTP_NO_BODY;
	return 0;
}

/* RFC 9112, 6.3. */
static int judge_body(struct http_reader *reader, const struct http_asked *asked,
		      struct http_response *response)
{
	struct http_head *head = reader->head;
	uint16_t status = response->status;

	if (status == STATUS_SWITCHING)
		return read_switching(reader, asked);
	if (asked->method == HTTP_CONNECT && status / 100 == 2) {
		head->framing = HTTP_NO_BODY;
		return 0;
	}
	if (status / 100 == 1 || status == STATUS_NO_CONTENT)
		return read_bodiless(reader, response, false);
	if (asked->method == HTTP_HEAD || status == STATUS_NOT_MODIFIED)
		return read_bodiless(reader, response, true);
	if (head->framing == HTTP_CHUNKED && asked->minor == 0)
		return http_refuse(reader, -EBADMSG, "chunks for a request of HTTP/1.0");
	if (head->framing == HTTP_NO_BODY) {
		head->framing = HTTP_UNTIL_CLOSE;
		head->keep_alive = false;
	}
	return 0;
}

int http_parse_response(const char *bytes, size_t length, const struct http_asked *asked,
			struct http_response *ret_response, const char **ret_why)
{
	struct http_reader reader = { .head = &ret_response->head };
	size_t next = 0;
	struct span line = http_first_line(bytes, length, &next);
	int result;

	http_clear(&ret_response->head);
	ret_response->status = 0;
	ret_response->has_length = false;
	result = read_line(&reader, line, ret_response);
	if (result == 0)
		result = http_read_fields(&reader, bytes + next, length - next);
	if (result == 0)
		result = judge_body(&reader, asked, ret_response);
	if (result < 0)
		*ret_why = reader.why;
	/* of requests alone */
	ret_response->head.trailers = false;
	return result;
}
