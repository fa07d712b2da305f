#include "net/http.h"

#include "base/bytes.h"
#include "net/http_internal.h"

#include <errno.h>

#define DEFAULT_PORT 80u

static const char *const methods[HTTP_METHOD_COUNT] = {
	[HTTP_GET] = "GET",	[HTTP_HEAD] = "HEAD",	    [HTTP_POST] = "POST",
	[HTTP_PUT] = "PUT",	[HTTP_DELETE] = "DELETE",   [HTTP_OPTIONS] = "OPTIONS",
	[HTTP_TRACE] = "TRACE", [HTTP_CONNECT] = "CONNECT",
};

/*
 * Methods are of capital letters: servers there are that take `get` for GET, and rules that name
 * methods would be gone around.
 */
static bool is_method(struct span text)
{
	if (text.length == 0 || text.length > HTTP_LIMIT_METHOD_BYTES || text.bytes[0] < 'A' ||
	    text.bytes[0] > 'Z')
		return false;
	for (size_t i = 1; i < text.length; i++) {
		char byte = text.bytes[i];

		if (!(byte >= 'A' && byte <= 'Z') && !(byte >= '0' && byte <= '9') && byte != '-' &&
		    byte != '_')
			return false;
	}
	return true;
}

static enum http_method find_method(struct span text)
{
	for (int i = HTTP_OTHER + 1; i < HTTP_METHOD_COUNT; i++)
		if (span_is(text, methods[i]))
			return (enum http_method)i;
	return HTTP_OTHER;
}

/* No blank, control or foreign byte, and no fragment, which never is sent. */
static bool is_target(struct span text)
{
	for (size_t i = 0; i < text.length; i++)
		if (text.bytes[i] <= 0x20 || text.bytes[i] >= 0x7f || text.bytes[i] == '#')
			return false;
	return text.length > 0;
}

static int read_authority(struct http_reader *reader, struct span text, uint16_t default_port,
			  struct http_request *request)
{
	const char *why;

	if (host_parse_port(text.bytes, text.length, default_port, &request->host, &request->port,
			    &why) < 0)
		return http_refuse(reader, -EBADMSG,
				   default_port ? "the host is neither a name nor an address" :
						  "CONNECT is not to a host and a port");
	request->has_host = true;
	return 0;
}

/* http://authority/path */
static int read_absolute(struct http_reader *reader, struct span target,
			 struct http_request *request)
{
	static const char scheme[] = "http://";
	size_t begin = sizeof(scheme) - 1, end;

	if (target.length <= begin || !span_is_word((struct span){ target.bytes, begin }, scheme))
		return http_refuse(reader, -EBADMSG,
				   "the target is neither a path nor an http:// URL");
	end = begin + bytes_find(target.bytes + begin, target.length - begin, '/');
	request->form = HTTP_ABSOLUTE;
	request->path = (struct span){ target.bytes + end, target.length - end };
	if (end == target.length) {
		if (memchr(target.bytes, '?', target.length))
			return http_refuse(reader, -EBADMSG, "the URL has a query and no path");
		request->path = (struct span){ "/", 1 };
	}
	return read_authority(reader, (struct span){ target.bytes + begin, end - begin },
			      DEFAULT_PORT, request);
}

static int read_target(struct http_reader *reader, struct span target, struct http_request *request)
{
	if (!is_target(target))
		return http_refuse(reader, -EBADMSG, "the target has bytes that no target has");
	request->path = target;
	if (request->asked.method == HTTP_CONNECT) {
		request->form = HTTP_AUTHORITY;
		request->path.length = 0;
		return read_authority(reader, target, 0, request);
	}
	if (target.bytes[0] == '/') {
		request->form = HTTP_ORIGIN;
		return 0;
	}
	if (span_is(target, "*")) {
		request->form = HTTP_ASTERISK;
		return request->asked.method == HTTP_OPTIONS ?
			       0 :
			       http_refuse(reader, -EBADMSG, "only OPTIONS has the target *");
	}
	return read_absolute(reader, target, request);
}

/* METHOD SP target SP version, with exactly these blanks. */
static int read_line(struct http_reader *reader, struct span line, struct http_request *request)
{
	size_t first = bytes_find(line.bytes, line.length, ' ');
	size_t rest = first < line.length ? first + 1 : first;
	size_t second = rest + bytes_find(line.bytes + rest, line.length - rest, ' ');
	int result;

	request->method = (struct span){ line.bytes, first };
	if (!is_method(request->method))
		return http_refuse(reader, -EBADMSG, "the method is not one of capital letters");
	if (second == line.length)
		return http_refuse(reader, -EBADMSG, "the first line has no version of HTTP");
	result = http_read_version(
		reader, (struct span){ line.bytes + second + 1, line.length - second - 1 });
	if (result < 0)
		return result;
	request->asked.method = find_method(request->method);
	request->asked.minor = reader->head->minor;
	return read_target(reader, (struct span){ line.bytes + rest, second - rest }, request);
}

/* Host is there once, and the same as the target's. */
static int read_host(struct http_reader *reader, struct http_request *request)
{
	struct http_request said = { .has_host = false };
	/* clients there are that leave the port of CONNECT out here */
	uint16_t default_port = request->form == HTTP_AUTHORITY ? request->port : DEFAULT_PORT;
	int result;

	if (!reader->host)
		return reader->head->minor == 0 ?
			       0 :
			       http_refuse(reader, -EBADMSG, "the request has no Host");
	result = read_authority(reader, reader->host->value, default_port, &said);
	if (result < 0)
		return result;
	if (request->has_host &&
	    (!host_equal(&request->host, &said.host) || request->port != said.port))
		return http_refuse(reader, -EBADMSG, "Host is not the host of the target");
	request->host = said.host;
	request->port = said.port;
	request->has_host = true;
	return 0;
}

static int read_expect(struct http_reader *reader, struct http_request *request)
{
	/* of a client of 1.0 it is not heeded (RFC 9110, 10.1.1) */
	if (!reader->expect || reader->head->minor == 0)
		return 0;
	if (!span_is_word(reader->expect->value, "100-continue"))
		return http_refuse(reader, -EBADMSG, "Expect is another than 100-continue");
	request->expects_continue = true;
	return 0;
}

static int judge_body(struct http_reader *reader, struct http_request *request)
{
	struct http_head *head = reader->head;
	bool has_body = head->framing == HTTP_CHUNKED ||
			(head->framing == HTTP_LENGTH && head->content_length);

	switch (request->asked.method) {
	case HTTP_CONNECT:
		if (has_body)
			return http_refuse(reader, -EBADMSG, "CONNECT has a body");
		head->framing = HTTP_NO_BODY;
		break;
	case HTTP_TRACE:
		if (has_body)
			return http_refuse(reader, -EBADMSG, "TRACE has a body");
		break;
	case HTTP_GET:
	case HTTP_HEAD:
	case HTTP_OPTIONS:
	case HTTP_DELETE:
		request->ends_connection = has_body;
		break;
	default:
		break;
	}
	return 0;
}

static int read_request(struct http_reader *reader, const char *bytes, size_t length,
			struct http_request *request)
{
	size_t next = 0;
	struct span line = http_first_line(bytes, length, &next);
	int result = read_line(reader, line, request);

	if (result == 0)
		result = http_read_fields(reader, bytes + next, length - next);
	if (result == 0)
		result = read_host(reader, request);
	if (result == 0)
		result = read_expect(reader, request);
	if (result == 0)
		result = judge_body(reader, request);
	if (result < 0)
		return result;
	request->asked.upgrade = request->head.upgrade.length > 0;
	for (size_t i = 0; i < request->head.field_count; i++)
		if (request->head.fields[i].kind == HTTP_FIELD_OVERRIDE)
			request->overrides = true;
	return 0;
}

/* All but the fields, which are many and counted. */
static void clear(struct http_request *request)
{
	static const struct http_asked nothing;

	http_clear(&request->head);
	request->asked = nothing;
	request->has_host = request->expects_continue = request->overrides = false;
	request->ends_connection = false;
	request->host.name[0] = '\0';
	request->port = 0;
}

int http_parse_request(const char *bytes, size_t length, struct http_request *ret_request,
		       const char **ret_why)
{
	struct http_reader reader = { .head = &ret_request->head };
	int result;

	clear(ret_request);
	result = read_request(&reader, bytes, length, ret_request);
	if (result < 0)
		*ret_why = reader.why;
	return result;
}
