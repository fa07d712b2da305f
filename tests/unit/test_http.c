/*
 * Heads of HTTP: what two programs could understand in two ways is refused, and what is understood
 * is written in one way.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/http.h"

#define HOST_LINE "Host: a.example\r\n"

static struct http_request request;
static struct http_response response;
static char room[2 * HTTP_LIMIT_HEAD_BYTES];
static char *copy;

/* As long as it is, so that a read beyond it is seen by ASan; kept, as spans lie in it. */
static const char *keep(const char *bytes, size_t length)
{
	free(copy);
	copy = malloc(length ? length : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, length);
	return copy;
}

static int parse_bytes(const char *bytes, size_t length)
{
	const char *at = keep(bytes, length), *why = NULL;
	size_t scanned = 0;
	int result = http_head_end(at, length, &scanned, &why);

	if (result > 0) {
		assert_int_equal(result, length);
		result = http_parse_request(at, length, &request, &why);
	}
	assert_int_equal(result < 0, why != NULL);
	return result;
}

static int parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

static int parse_response(const char *text, enum http_method method, uint8_t minor, bool upgrade)
{
	const struct http_asked asked = { method, minor, upgrade };
	const char *at = keep(text, strlen(text)), *why = NULL;
	size_t scanned = 0;
	int result = http_head_end(at, strlen(text), &scanned, &why);

	if (result > 0) {
		assert_int_equal(result, strlen(text));
		result = http_parse_response(at, strlen(text), &asked, &response, &why);
	}
	assert_int_equal(result < 0, why != NULL);
	return result;
}

static void expect_span(struct span span, const char *text)
{
	assert_int_equal(span.length, strlen(text));
	assert_memory_equal(span.bytes, text, span.length);
}

static void expect_request(const char *text, unsigned flags, const char *written)
{
	static const struct span as_it_is;
	int length;

	assert_int_equal(parse(text), 0);
	length = http_write_request(&request, &request.host, request.port, as_it_is, flags, room,
				    strlen(text) + HTTP_HEAD_GROWTH_BYTES);
	assert_true(length > 0);
	room[length] = '\0';
	assert_string_equal(room, written);
	/* what is written is itself taken, and written the same */
	assert_int_equal(parse(written), 0);
	length = http_write_request(&request, &request.host, request.port, as_it_is, flags, room,
				    sizeof(room));
	room[length] = '\0';
	assert_string_equal(room, written);
}

static void expect_response(const char *text, enum http_method method, unsigned flags,
			    const char *written)
{
	const struct http_asked asked = { method, 1, flags & HTTP_WRITE_UPGRADE };
	int length;

	assert_int_equal(parse_response(text, method, 1, asked.upgrade), 0);
	length = http_write_response(&response, &asked, flags, room,
				     strlen(text) + HTTP_HEAD_GROWTH_BYTES);
	assert_true(length > 0);
	room[length] = '\0';
	assert_string_equal(room, written);
}

static void a_head_is_found_in_any_pieces(void **state)
{
	static const char head[] = "GET / HTTP/1.1\r\n" HOST_LINE "\r\nGET";
	const char *why = NULL;
	size_t scanned = 0, whole = sizeof(head) - 4;

	(void)state;
	for (size_t length = 0; length < whole; length++) {
		assert_int_equal(http_head_end(keep(head, length), length, &scanned, &why), 0);
		assert_true(scanned <= length);
	}
	assert_int_equal(http_head_end(head, whole, &scanned, &why), whole);
	scanned = 0;
	assert_int_equal(http_head_end(head, sizeof(head) - 1, &scanned, &why), whole);
	assert_null(why);
}

static void the_end_of_a_line_is_crlf(void **state)
{
	static const char *const heads[] = {
		"GET / HTTP/1.1\nHost: a\n\n",	   "GET / HTTP/1.1\r\nHost: a\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\n", "\r\nGET / HTTP/1.1\r\n\r\n",
		"\nGET / HTTP/1.1\r\n\r\n",
	};
	const char *why = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		size_t scanned = 0;

		assert_int_equal(http_head_end(heads[i], strlen(heads[i]), &scanned, &why),
				 -EBADMSG);
	}
	assert_int_equal(parse("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"), -EBADMSG);
	assert_int_equal(parse("GET /\r HTTP/1.1\r\nHost: a\r\n\r\n"), -EBADMSG);
	assert_int_equal(parse("GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"), -EBADMSG);
}

static void a_request_is_read(void **state)
{
	(void)state;
	assert_int_equal(parse("POST /a/b?c=d HTTP/1.1\r\nHOST:\tA.Example.:8080 \r\n"
			       "X-Y:  a, b \r\nContent-Length: 12\r\nExpect: 100-Continue\r\n\r\n"),
			 0);
	expect_span(request.method, "POST");
	assert_int_equal(request.asked.method, HTTP_POST);
	assert_int_equal(request.form, HTTP_ORIGIN);
	expect_span(request.path, "/a/b?c=d");
	assert_true(request.has_host);
	assert_string_equal(request.host.name, "a.example");
	assert_int_equal(request.port, 8080);
	assert_int_equal(request.head.minor, 1);
	assert_int_equal(request.head.framing, HTTP_LENGTH);
	assert_int_equal(request.head.content_length, 12);
	assert_true(request.head.keep_alive);
	assert_true(request.expects_continue);
	assert_false(request.ends_connection || request.overrides || request.asked.upgrade);
	assert_int_equal(request.head.field_count, 4);
	expect_span(http_find(&request.head, "x-y")->value, "a, b");
	assert_null(http_find(&request.head, "x"));
}

static void targets_have_their_forms(void **state)
{
	static const struct {
		const char *line, *path, *host;
		uint16_t port;
		enum http_form form;
	} rows[] = {
		{ "GET / HTTP/1.1\r\n" HOST_LINE, "/", "a.example", 80, HTTP_ORIGIN },
		{ "GET http://A.example HTTP/1.1\r\n" HOST_LINE, "/", "a.example", 80,
		  HTTP_ABSOLUTE },
		{ "GET HTTP://a.example:80/x?y HTTP/1.1\r\n" HOST_LINE, "/x?y", "a.example", 80,
		  HTTP_ABSOLUTE },
		{ "GET http://[::1]:8080/ HTTP/1.1\r\nHost: [::1]:8080\r\n", "/", "::1", 8080,
		  HTTP_ABSOLUTE },
		{ "OPTIONS * HTTP/1.1\r\n" HOST_LINE, "*", "a.example", 80, HTTP_ASTERISK },
		{ "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n", "", "a.example", 443,
		  HTTP_AUTHORITY },
		{ "CONNECT a.example:443 HTTP/1.1\r\n" HOST_LINE, "", "a.example", 443,
		  HTTP_AUTHORITY },
		{ "CONNECT a.example:443 HTTP/1.0\r\n", "", "a.example", 443, HTTP_AUTHORITY },
		{ "CONNECT [2001:db8::1]:443 HTTP/1.0\r\n", "", "2001:db8::1", 443,
		  HTTP_AUTHORITY },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(text, sizeof(text), "%s\r\n", rows[i].line);
		if (parse(text) != 0)
			fail_msg("refused: %s", text);
		assert_int_equal(request.form, rows[i].form);
		expect_span(request.path, rows[i].path);
		assert_string_equal(request.host.name, rows[i].host);
		assert_int_equal(request.port, rows[i].port);
	}
	assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n"), 0);
	assert_false(request.has_host || request.head.keep_alive);
	assert_int_equal(parse("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), 0);
	assert_true(request.head.keep_alive);
	assert_int_equal(parse("GET / HTTP/1.7\r\n" HOST_LINE "\r\n"), 0);
	assert_int_equal(request.head.minor, 1);
}

static void first_lines_that_are_refused(void **state)
{
	static const struct {
		const char *line;
		int refusal;
	} rows[] = {
		{ "GET  / HTTP/1.1", -EBADMSG },
		{ "GET /  HTTP/1.1", -EBADMSG },
		{ " GET / HTTP/1.1", -EBADMSG },
		{ "GET\t/ HTTP/1.1", -EBADMSG },
		{ "GET / HTTP/1.1 ", -EBADMSG },
		{ "GET /", -EBADMSG },
		{ "GET", -EBADMSG },
		{ "GET / HTTP/1", -EBADMSG },
		{ "GET / http/1.1", -EBADMSG },
		{ "GET / HTTP/1.10", -EBADMSG },
		{ "GET / HTTP/11", -EBADMSG },
		{ "GET / HTTP/2.0", -EPROTONOSUPPORT },
		{ "PRI * HTTP/2.0", -EPROTONOSUPPORT },
		{ "GET / HTTP/0.9", -EPROTONOSUPPORT },
		{ "get / HTTP/1.1", -EBADMSG },
		{ "Get / HTTP/1.1", -EBADMSG },
		{ "G@T / HTTP/1.1", -EBADMSG },
		{ "AMETHODOFMORETHANTHIRTYONEBYTESX / HTTP/1.1", -EBADMSG },
		{ "GET a HTTP/1.1", -EBADMSG },
		{ "GET * HTTP/1.1", -EBADMSG },
		{ "GET /a#b HTTP/1.1", -EBADMSG },
		{ "GET /\x01 HTTP/1.1", -EBADMSG },
		{ "GET /\x7f HTTP/1.1", -EBADMSG },
		{ "GET /\xc3\xa9 HTTP/1.1", -EBADMSG },
		{ "GET https://a.example/ HTTP/1.1", -EBADMSG },
		{ "GET ftp://a.example/ HTTP/1.1", -EBADMSG },
		{ "GET http:/a.example/ HTTP/1.1", -EBADMSG },
		{ "GET http:///a HTTP/1.1", -EBADMSG },
		{ "GET http:// HTTP/1.1", -EBADMSG },
		{ "GET http://a.example?x HTTP/1.1", -EBADMSG },
		{ "GET http://a.example@b.example/ HTTP/1.1", -EBADMSG },
		{ "GET http://u:p@a.example/ HTTP/1.1", -EBADMSG },
		{ "GET http://b.example\\@a.example/ HTTP/1.1", -EBADMSG },
		{ "GET http://a.example%00.b/ HTTP/1.1", -EBADMSG },
		{ "GET http://b.example/ HTTP/1.1", -EBADMSG },
		{ "GET http://a.example:81/ HTTP/1.1", -EBADMSG },
		{ "GET http://a.example:0/ HTTP/1.1", -EBADMSG },
		{ "CONNECT a.example HTTP/1.1", -EBADMSG },
		{ "CONNECT a.example: HTTP/1.1", -EBADMSG },
		{ "CONNECT a.example:0 HTTP/1.1", -EBADMSG },
		{ "CONNECT a.example:65536 HTTP/1.1", -EBADMSG },
		{ "CONNECT http://a.example:443 HTTP/1.1", -EBADMSG },
		{ "CONNECT a.example:443/ HTTP/1.1", -EBADMSG },
		{ "CONNECT / HTTP/1.1", -EBADMSG },
		{ "CONNECT b.example:443 HTTP/1.1", -EBADMSG },
		{ "CONNECT u@a.example:443 HTTP/1.1", -EBADMSG },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(text, sizeof(text), "%s\r\n" HOST_LINE "\r\n", rows[i].line);
		if (parse(text) != rows[i].refusal)
			fail_msg("not refused as it should be: %s", rows[i].line);
	}
	assert_int_equal(parse_bytes("GET /\0 HTTP/1.1\r\n" HOST_LINE "\r\n", 36), -EBADMSG);
}

static void fields_that_are_refused(void **state)
{
	static const struct {
		const char *fields;
		int refusal;
	} rows[] = {
		{ "", -EBADMSG },
		{ HOST_LINE HOST_LINE, -EBADMSG },
		{ HOST_LINE "host: b.example\r\n", -EBADMSG },
		{ "Host:\r\n", -EBADMSG },
		{ "Host: a.example, b.example\r\n", -EBADMSG },
		{ "Host: u@a.example\r\n", -EBADMSG },
		{ "Host: a.example/\r\n", -EBADMSG },
		{ "Host: a b\r\n", -EBADMSG },
		{ "Host: 2130706433\r\n", -EBADMSG },
		{ "Host : a.example\r\n", -EBADMSG },
		{ " " HOST_LINE, -EBADMSG },
		{ HOST_LINE " folded\r\n", -EBADMSG },
		{ HOST_LINE "X: a\r\n\tfolded\r\n", -EBADMSG },
		{ HOST_LINE "X\r\n", -EBADMSG },
		{ HOST_LINE ": a\r\n", -EBADMSG },
		{ HOST_LINE "X : a\r\n", -EBADMSG },
		{ HOST_LINE "X\t: a\r\n", -EBADMSG },
		{ HOST_LINE "X(: a\r\n", -EBADMSG },
		{ HOST_LINE "X\x80: a\r\n", -EBADMSG },
		{ HOST_LINE "X: a\x01\r\n", -EBADMSG },
		{ HOST_LINE "X: a\x7f\r\n", -EBADMSG },
		{ HOST_LINE "Content-Length: 1\r\nContent-Length: 1\r\n", -EBADMSG },
		{ HOST_LINE "Content-Length: 1\r\nContent-Length: 2\r\n", -EBADMSG },
		{ HOST_LINE "Content-Length: 1, 1\r\n", -EBADMSG },
		{ HOST_LINE "Content-Length:\r\n", -EBADMSG },
		{ HOST_LINE "Content-Length: +1\r\n", -EBADMSG },
		{ HOST_LINE "Content-Length: -1\r\n", -EBADMSG },
		{ HOST_LINE "Content-Length: 0x1\r\n", -EBADMSG },
		{ HOST_LINE "Content-Length: 1a\r\n", -EBADMSG },
		{ HOST_LINE "Content-Length: 1 1\r\n", -EBADMSG },
		{ HOST_LINE "Content-Length: 18446744073709551616\r\n", -EBADMSG },
		{ HOST_LINE "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", -EBADMSG },
		{ HOST_LINE "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", -EBADMSG },
		{ HOST_LINE "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		  -EBADMSG },
		{ HOST_LINE "Transfer-Encoding: identity\r\n", -EOPNOTSUPP },
		{ HOST_LINE "Transfer-Encoding: gzip, chunked\r\n", -EOPNOTSUPP },
		{ HOST_LINE "Transfer-Encoding: chunked, chunked\r\n", -EOPNOTSUPP },
		{ HOST_LINE "Transfer-Encoding: chunked;q=1\r\n", -EOPNOTSUPP },
		{ HOST_LINE "Transfer-Encoding: xchunked\r\n", -EOPNOTSUPP },
		{ HOST_LINE "Transfer-Encoding: \"chunked\"\r\n", -EOPNOTSUPP },
		{ HOST_LINE "Transfer-Encoding: \v chunked\r\n", -EBADMSG },
		{ HOST_LINE "Transfer-Encoding:\r\n", -EOPNOTSUPP },
		{ HOST_LINE "Transfer_Encoding: chunked\r\n", -EBADMSG },
		{ HOST_LINE "Content_Length: 1\r\n", -EBADMSG },
		{ HOST_LINE "X_HTTP_Method_Override: PUT\r\n", -EBADMSG },
		{ HOST_LINE "Expect: 200-ok\r\n", -EBADMSG },
		{ HOST_LINE "Upgrade: a\r\nUpgrade: b\r\n", -EBADMSG },
		{ HOST_LINE "Connection: a b\r\n", -EBADMSG },
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(text, sizeof(text), "POST / HTTP/1.1\r\n%s\r\n", rows[i].fields);
		if (parse(text) != rows[i].refusal)
			fail_msg("not refused as it should be: %s", rows[i].fields);
	}
	assert_int_equal(parse_bytes("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 29), -EBADMSG);
	assert_int_equal(parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), -EBADMSG);
	assert_int_equal(parse("CONNECT a:1 HTTP/1.0\r\nContent-Length: 1\r\n\r\n"), -EBADMSG);
	assert_int_equal(parse("TRACE / HTTP/1.0\r\nContent-Length: 1\r\n\r\n"), -EBADMSG);
	assert_int_equal(parse("CONNECT a:1 HTTP/1.0\r\nContent-Length: 0\r\n\r\n"), 0);
	assert_int_equal(request.head.framing, HTTP_NO_BODY);
}

static int parse_many(size_t fields, size_t value_bytes)
{
	static char text[HTTP_LIMIT_HEAD_BYTES + 4096];
	size_t length = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" HOST_LINE);

	for (size_t i = 1; i < fields; i++) {
		memcpy(text + length, "X: ", 3);
		memset(text + length + 3, 'v', value_bytes);
		memcpy(text + length + 3 + value_bytes, "\r\n", 2);
		length += 5 + value_bytes;
	}
	memcpy(text + length, "\r\n", 2);
	return parse_bytes(text, length + 2);
}

static void limits_hold(void **state)
{
	/* before the one value: first line, Host, "X: ", and two line ends */
	size_t rest = sizeof("GET / HTTP/1.1\r\n" HOST_LINE "X: \r\n\r\n") - 1;
	char text[HTTP_LIMIT_NAME_BYTES + 128], list[512] = "";

	(void)state;
	assert_int_equal(parse_many(HTTP_LIMIT_FIELDS, 1), 0);
	assert_int_equal(parse_many(HTTP_LIMIT_FIELDS + 1, 1), -E2BIG);
	assert_int_equal(parse_many(2, HTTP_LIMIT_HEAD_BYTES - rest), 0);
	assert_int_equal(parse_many(2, HTTP_LIMIT_HEAD_BYTES - rest + 1), -E2BIG);
	(void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" HOST_LINE "%0*d: x\r\n\r\n",
		       (int)HTTP_LIMIT_NAME_BYTES, 0);
	assert_int_equal(parse(text), 0);
	(void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" HOST_LINE "%0*d: x\r\n\r\n",
		       (int)HTTP_LIMIT_NAME_BYTES + 1, 0);
	assert_int_equal(parse(text), -E2BIG);
	(void)snprintf(list, sizeof(list), "GET / HTTP/1.1\r\n" HOST_LINE "Connection: ");
	for (int i = 0; i < 33; i++)
		(void)snprintf(list + strlen(list), sizeof(list) - strlen(list), "a,");
	(void)snprintf(list + strlen(list), sizeof(list) - strlen(list), "\r\n\r\n");
	assert_int_equal(parse(list), -E2BIG);
	assert_int_equal(http_status(-E2BIG), 431);
	assert_int_equal(http_status(-EOPNOTSUPP), 501);
	assert_int_equal(http_status(-EPROTONOSUPPORT), 505);
	assert_int_equal(http_status(-EBADMSG), 400);
}

static void no_room_is_no_head(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\n" HOST_LINE "Accept: */*\r\n\r\n";
	static const struct span as_it_is;
	int whole;

	(void)state;
	assert_int_equal(parse(text), 0);
	whole = http_write_request(&request, &request.host, 80, as_it_is, 0, room, sizeof(room));
	assert_int_equal(whole, strlen(text));
	for (int length = 0; length < whole; length++) {
		char *small = malloc((size_t)length + 1);

		assert_non_null(small);
		assert_int_equal(http_write_request(&request, &request.host, 80, as_it_is, 0, small,
						    (size_t)length),
				 -ENOBUFS);
		free(small);
	}
}

static void requests_are_written_anew(void **state)
{
	(void)state;
	/* absolute form, the order of Host, blanks, capital letters */
	expect_request(
		"GET http://A.EXAMPLE:80/x?y HTTP/1.1\r\nX:   b\t\r\nhost: a.example\r\n\r\n", 0,
		"GET /x?y HTTP/1.1\r\nHost: a.example\r\nX: b\r\n\r\n");
}

static void what_ends_here_is_left_out(void **state)
{
	(void)state;
	expect_request("GET / HTTP/1.1\r\n" HOST_LINE
		       "Connection: keep-alive, X-Mine\r\nx-mine: 1\r\nX-Other: 2\r\n"
		       "Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n"
		       "Proxy-Authorization: Basic eA==\r\nProxy-Foo: x\r\nTE: gzip\r\n"
		       "Upgrade: websocket\r\nHTTP2-Settings: AA\r\n\r\n",
		       0, "GET / HTTP/1.1\r\n" HOST_LINE "X-Other: 2\r\n\r\n");
	/* to name what frames and routes does not take it away */
	expect_request("POST / HTTP/1.1\r\n" HOST_LINE
		       "Connection: close, host, content-length\r\nContent-Length: 3\r\n\r\n",
		       0, "POST / HTTP/1.1\r\n" HOST_LINE "Content-Length: 3\r\n\r\n");
	assert_int_equal(parse("POST / HTTP/1.1\r\n" HOST_LINE "Connection: close\r\n\r\n"), 0);
	assert_false(request.head.keep_alive);
}

static void what_goes_on_by_permission(void **state)
{
	(void)state;
	expect_request(
		"GET / HTTP/1.1\r\n" HOST_LINE "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		HTTP_WRITE_UPGRADE,
		"GET / HTTP/1.1\r\n" HOST_LINE "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
	assert_true(request.asked.upgrade);
	/* without Connection it is nobody's wish, and in 1.0 neither */
	assert_int_equal(parse("GET / HTTP/1.1\r\n" HOST_LINE "Upgrade: websocket\r\n\r\n"), 0);
	assert_false(request.asked.upgrade);
	assert_int_equal(
		parse("GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"), 0);
	assert_false(request.asked.upgrade);
	expect_request("POST / HTTP/1.1\r\n" HOST_LINE "X-HTTP-Method-Override: PUT\r\n\r\n", 0,
		       "POST / HTTP/1.1\r\n" HOST_LINE "\r\n");
	assert_int_equal(parse("POST / HTTP/1.1\r\n" HOST_LINE "X-Original-URL: /x\r\n\r\n"), 0);
	assert_true(request.overrides);
	expect_request("GET / HTTP/1.1\r\n" HOST_LINE
		       "X-Forwarded-Host: b\r\nForwarded: host=b\r\nX-Host: b\r\n"
		       "X-Forwarded-Server: b\r\nX-Original-Host: b\r\nX-Http-Host-Override: b\r\n"
		       "X-Forwarded-Uri: /b\r\nX-Override-Url: /b\r\nX-Forwarded-Method: PUT\r\n"
		       "X-Forwarded-For: 1.2.3.4\r\n\r\n",
		       0, "GET / HTTP/1.1\r\n" HOST_LINE "X-Forwarded-For: 1.2.3.4\r\n\r\n");
	expect_request("POST / HTTP/1.1\r\n" HOST_LINE "X-HTTP-Method-Override: PUT\r\n\r\n",
		       HTTP_WRITE_OVERRIDES,
		       "POST / HTTP/1.1\r\n" HOST_LINE "X-HTTP-Method-Override: PUT\r\n\r\n");
	expect_request(
		"PUT / HTTP/1.1\r\n" HOST_LINE "Content-Length: 1\r\nExpect: 100-continue\r\n\r\n",
		HTTP_WRITE_EXPECT,
		"PUT / HTTP/1.1\r\n" HOST_LINE "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n");
	expect_request(
		"GET / HTTP/1.1\r\n" HOST_LINE "TE: trailers, deflate\r\n\r\n", HTTP_WRITE_CLOSE,
		"GET / HTTP/1.1\r\n" HOST_LINE "TE: trailers\r\nConnection: close, TE\r\n\r\n");
}

static void framings_are_written(void **state)
{
	(void)state;
	expect_request("POST / HTTP/1.1\r\n" HOST_LINE "transfer-encoding:  CHUNKED \r\n\r\n", 0,
		       "POST / HTTP/1.1\r\n" HOST_LINE "Transfer-Encoding: chunked\r\n\r\n");
	expect_request("POST / HTTP/1.1\r\n" HOST_LINE "Content-Length: 0007\r\n\r\n", 0,
		       "POST / HTTP/1.1\r\n" HOST_LINE "Content-Length: 7\r\n\r\n");
	expect_request("POST / HTTP/1.1\r\n" HOST_LINE "Content-Length: 0\r\n\r\n", 0,
		       "POST / HTTP/1.1\r\n" HOST_LINE "Content-Length: 0\r\n\r\n");
	/* a body that a server may take for the next request */
	expect_request("GET / HTTP/1.1\r\n" HOST_LINE "Content-Length: 7\r\n\r\n", 0,
		       "GET / HTTP/1.1\r\n" HOST_LINE
		       "Content-Length: 7\r\nConnection: close\r\n\r\n");
	assert_true(request.ends_connection);
	expect_request("GET / HTTP/1.0\r\n" HOST_LINE "Connection: keep-alive\r\n\r\n", 0,
		       "GET / HTTP/1.0\r\n" HOST_LINE "Connection: keep-alive\r\n\r\n");
}

static void hosts_are_written(void **state)
{
	static const struct span path = { "/else", 5 };
	int length;

	(void)state;
	expect_request("GET / HTTP/1.1\r\nHost: [0:0::1]:8080\r\n\r\n", 0,
		       "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n");
	expect_request("GET / HTTP/1.1\r\nHost: 10.0.0.1:80\r\n\r\n", 0,
		       "GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
	assert_int_equal(parse("GET /x HTTP/1.1\r\n" HOST_LINE "\r\n"), 0);
	length = http_write_request(&request, &request.host, 443, path, 0, room, sizeof(room));
	room[length] = '\0';
	assert_string_equal(room, "GET /else HTTP/1.1\r\nHost: a.example:443\r\n\r\n");
	assert_int_equal(parse("CONNECT a:1 HTTP/1.0\r\n\r\n"), 0);
	assert_int_equal(
		http_write_request(&request, &request.host, 1, path, 0, room, sizeof(room)),
		-EINVAL);
}

static void responses_have_their_framing(void **state)
{
	static const struct {
		const char *text;
		enum http_method method;
		int result;
		enum http_framing framing;
		uint64_t length;
		bool keep_alive;
	} rows[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP_GET, 0, HTTP_LENGTH, 5,
		  true },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_GET, 0,
		  HTTP_CHUNKED, 0, true },
		{ "HTTP/1.1 200 OK\r\n\r\n", HTTP_GET, 0, HTTP_UNTIL_CLOSE, 0, false },
		{ "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP_GET, 0, HTTP_LENGTH, 5,
		  false },
		{ "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n", HTTP_GET, 0,
		  HTTP_LENGTH, 5, false },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP_HEAD, 0, HTTP_NO_BODY, 5,
		  true },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_HEAD, 0,
		  HTTP_NO_BODY, 0, true },
		{ "HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n", HTTP_GET, 0, HTTP_NO_BODY, 5,
		  true },
		{ "HTTP/1.1 204 x\r\n\r\n", HTTP_GET, 0, HTTP_NO_BODY, 0, true },
		{ "HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n", HTTP_GET, 0, HTTP_NO_BODY, 0,
		  true },
		{ "HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0,
		  0 },
		{ "HTTP/1.1 100 Continue\r\n\r\n", HTTP_POST, 0, HTTP_NO_BODY, 0, true },
		{ "HTTP/1.1 103 x\r\nContent-Length: 5\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", HTTP_CONNECT, 0, HTTP_NO_BODY, 5,
		  true },
		{ "HTTP/1.1 403 x\r\nContent-Length: 5\r\n\r\n", HTTP_CONNECT, 0, HTTP_LENGTH, 5,
		  true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		  HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", HTTP_GET,
		  -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", HTTP_GET, -EOPNOTSUPP, 0, 0,
		  0 },
		{ "HTTP/1.1 200\r\n\r\n", HTTP_GET, 0, HTTP_UNTIL_CLOSE, 0, false },
		{ "HTTP/1.1 200 \r\n\r\n", HTTP_GET, 0, HTTP_UNTIL_CLOSE, 0, false },
		{ "HTTP/1.1 200OK\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1  200 OK\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1 20 OK\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1 2000 OK\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1 099 x\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1 600 x\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1 2x0 x\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1 200 \x01\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/2.0 200 x\r\n\r\n", HTTP_GET, -EPROTONOSUPPORT, 0, 0, 0 },
		{ "ICY 200 OK\r\n\r\n", HTTP_GET, -EBADMSG, 0, 0, 0 },
		{ "HTTP/1.1 101 x\r\nUpgrade: a\r\nConnection: Upgrade\r\n\r\n", HTTP_GET, -EBADMSG,
		  0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int result = parse_response(rows[i].text, rows[i].method, 1, false);

		if (result != rows[i].result)
			fail_msg("%d: %s", result, rows[i].text);
		if (result < 0)
			continue;
		assert_int_equal(response.head.framing, rows[i].framing);
		assert_int_equal(response.head.content_length, rows[i].length);
		assert_int_equal(response.head.keep_alive, rows[i].keep_alive);
	}
	assert_int_equal(parse_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
					HTTP_GET, 0, false),
			 -EBADMSG);
	assert_int_equal(
		parse_response("HTTP/1.1 101 x\r\nUpgrade: a\r\nConnection: Upgrade\r\n\r\n",
			       HTTP_GET, 1, true),
		0);
	assert_int_equal(parse_response("HTTP/1.1 101 x\r\n\r\n", HTTP_GET, 1, true), -EBADMSG);
}

static void responses_are_written_anew(void **state)
{
	(void)state;
	expect_response("HTTP/1.0 200 Fine\r\nServer: x\r\nKeep-Alive: 5\r\nSet-Cookie: a\r\n"
			"Set-Cookie: b\r\nProxy-Authenticate: Basic\r\n\r\n",
			HTTP_GET, 0,
			"HTTP/1.1 200 Fine\r\nServer: x\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
			"Connection: close\r\n\r\n");
	expect_response("HTTP/1.1 200\r\nContent-Length: 05\r\n\r\n", HTTP_HEAD, 0,
			"HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\n");
	expect_response("HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n", HTTP_GET, 0,
			"HTTP/1.1 204 x\r\n\r\n");
	expect_response("HTTP/1.1 100 Continue\r\n\r\n", HTTP_POST, HTTP_WRITE_CLOSE,
			"HTTP/1.1 100 Continue\r\n\r\n");
	expect_response("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n",
			HTTP_GET, HTTP_WRITE_CLOSE,
			"HTTP/1.1 200 x\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n"
			"Connection: close\r\n\r\n");
	expect_response("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
			"Sec-WebSocket-Accept: x\r\n\r\n",
			HTTP_GET, HTTP_WRITE_UPGRADE,
			"HTTP/1.1 101 x\r\nSec-WebSocket-Accept: x\r\nUpgrade: websocket\r\n"
			"Connection: Upgrade\r\n\r\n");
}

static void lists_are_read(void **state)
{
	(void)state;
	assert_true(http_lists((struct span){ "a, WebSocket ,b", 15 }, "websocket"));
	assert_true(http_lists((struct span){ ",,a", 3 }, "a"));
	assert_false(http_lists((struct span){ "websockets", 10 }, "websocket"));
	assert_false(http_lists((struct span){ "", 0 }, "a"));
}

static int end(void **state)
{
	(void)state;
	free(copy);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_is_found_in_any_pieces),
		cmocka_unit_test(the_end_of_a_line_is_crlf),
		cmocka_unit_test(a_request_is_read),
		cmocka_unit_test(targets_have_their_forms),
		cmocka_unit_test(first_lines_that_are_refused),
		cmocka_unit_test(fields_that_are_refused),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(no_room_is_no_head),
		cmocka_unit_test(requests_are_written_anew),
		cmocka_unit_test(what_ends_here_is_left_out),
		cmocka_unit_test(what_goes_on_by_permission),
		cmocka_unit_test(framings_are_written),
		cmocka_unit_test(hosts_are_written),
		cmocka_unit_test(responses_have_their_framing),
		cmocka_unit_test(responses_are_written_anew),
		cmocka_unit_test(lists_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
