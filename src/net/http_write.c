#include "net/http.h"

#include "base/bytes.h"

#include <errno.h>
#include <stdio.h>

/* What is written so far; it latches when there is no room. */
struct writer {
	char *at;
	size_t left;
	bool full;
};

static void put(struct writer *writer, const char *bytes, size_t length)
{
	if (writer->full || length > writer->left) {
		writer->full = true;
		return;
	}
	bytes_copy(writer->at, bytes, length);
	writer->at += length;
	writer->left -= length;
}

static void put_text(struct writer *writer, const char *text)
{
	put(writer, text, strlen(text));
}

static void put_span(struct writer *writer, struct span span)
{
	put(writer, span.bytes, span.length);
}

static void put_number(struct writer *writer, uint64_t number)
{
	char text[24];

	put(writer, text, (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)number));
}

static void put_field(struct writer *writer, struct span name, struct span value)
{
	put_span(writer, name);
	put(writer, ": ", 2);
	put_span(writer, value);
	put(writer, "\r\n", 2);
}

static void put_fields(struct writer *writer, const struct http_head *head, unsigned flags)
{
	for (size_t i = 0; i < head->field_count; i++) {
		const struct http_field *field = &head->fields[i];

		if (field->kind == HTTP_FIELD_END_TO_END ||
		    (field->kind == HTTP_FIELD_OVERRIDE && (flags & HTTP_WRITE_OVERRIDES)))
			put_field(writer, field->name, field->value);
	}
}

static void put_framing(struct writer *writer, enum http_framing framing, uint64_t length)
{
	if (framing == HTTP_CHUNKED)
		put_text(writer, "Transfer-Encoding: chunked\r\n");
	if (framing != HTTP_LENGTH)
		return;
	put_text(writer, "Content-Length: ");
	put_number(writer, length);
	put_text(writer, "\r\n");
}

/* Connection with all that ends at the next hop, and these fields. */
static void put_connection(struct writer *writer, const struct http_head *head, bool keeps,
			   unsigned flags)
{
	const struct {
		bool is_said;
		const char *word;
	} words[] = {
		{ flags & HTTP_WRITE_CLOSE, "close" },
		{ keeps && !(flags & HTTP_WRITE_CLOSE), "keep-alive" },
		{ head->upgrade.length && (flags & HTTP_WRITE_UPGRADE), "Upgrade" },
		{ head->trailers, "TE" },
	};
	const char *before = "Connection: ";

	if (words[2].is_said)
		put_field(writer, (struct span){ "Upgrade", 7 }, head->upgrade);
	if (head->trailers)
		put_text(writer, "TE: trailers\r\n");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!words[i].is_said)
			continue;
		put_text(writer, before);
		put_text(writer, words[i].word);
		before = ", ";
	}
	if (before[0] == ',')
		put_text(writer, "\r\n");
}

static int end(struct writer *writer, const char *room)
{
	put(writer, "\r\n", 2);
	return writer->full ? -ENOBUFS : (int)(writer->at - room);
}

static void put_host(struct writer *writer, const struct host *host, uint16_t port)
{
	bool brackets = host->kind == HOST_ADDRESS && host->address.family == ADDRESS_V6;

	put_text(writer, brackets ? "Host: [" : "Host: ");
	put_text(writer, host->name);
	put_text(writer, brackets ? "]" : "");
	if (port != 80) {
		put(writer, ":", 1);
		put_number(writer, port);
	}
	put(writer, "\r\n", 2);
}

int http_write_request(const struct http_request *request, const struct host *host, uint16_t port,
		       struct span path, unsigned flags, char *room, size_t room_bytes)
{
	const struct http_head *head = &request->head;
	struct writer writer = { .at = room, .left = room_bytes };

	if (request->form == HTTP_AUTHORITY)
		return -EINVAL;
	if (request->ends_connection)
		flags |= HTTP_WRITE_CLOSE;
	put_span(&writer, request->method);
	put(&writer, " ", 1);
	put_span(&writer, path.bytes ? path : request->path);
	put_text(&writer, head->minor ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
	put_host(&writer, host, port);
	put_fields(&writer, head, flags);
	if (request->expects_continue && (flags & HTTP_WRITE_EXPECT))
		put_text(&writer, "Expect: 100-continue\r\n");
	put_framing(&writer, head->framing, head->content_length);
	put_connection(&writer, head, !head->minor, flags);
	return end(&writer, room);
}

int http_write_response(const struct http_response *response, const struct http_asked *asked,
			unsigned flags, char *room, size_t room_bytes)
{
	const struct http_head *head = &response->head;
	struct writer writer = { .at = room, .left = room_bytes };
	bool interim = response->status / 100 == 1;

	if (head->framing == HTTP_UNTIL_CLOSE)
		flags |= HTTP_WRITE_CLOSE;
	if (interim)
		flags &= ~(unsigned)HTTP_WRITE_CLOSE;
	put_text(&writer, "HTTP/1.1 ");
	put_number(&writer, response->status);
	put(&writer, " ", 1);
	put_span(&writer, response->reason);
	put(&writer, "\r\n", 2);
	put_fields(&writer, head, flags);
	put_framing(&writer, response->has_length ? HTTP_LENGTH : head->framing,
		    head->content_length);
	put_connection(&writer, head, !asked->minor && !interim, flags);
	return end(&writer, room);
}
