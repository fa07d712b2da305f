#include "ipc/dbus.h"

#include "base/buffer.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORDER 'l'
#else
#define ORDER 'B'
#endif

#define PROTOCOL 1
#define SIGNATURE_LIMIT_BYTES 255u

enum field {
	FIELD_PATH = 1,
	FIELD_INTERFACE,
	FIELD_MEMBER,
	FIELD_ERROR,
	FIELD_REPLY_SERIAL,
	FIELD_DESTINATION,
	FIELD_SENDER,
	FIELD_SIGNATURE,
	FIELD_DESCRIPTORS,
};

static uint32_t number_at(const unsigned char *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static void fail(struct dbus_cursor *cursor)
{
	cursor->failure = -EBADMSG;
}

/* The one door to the bytes: `length` of them, or NULL. */
static const unsigned char *take(struct dbus_cursor *cursor, size_t length)
{
	const unsigned char *taken = cursor->bytes + cursor->at;

	if (!cursor->failure && cursor->end - cursor->at < length)
		fail(cursor);
	if (cursor->failure)
		return NULL;
	cursor->at += length;
	return taken;
}

static void align(struct dbus_cursor *cursor, size_t alignment)
{
	size_t padding = -cursor->at & (alignment - 1);
	const unsigned char *bytes = take(cursor, padding);

	for (size_t i = 0; bytes && i < padding; i++)
		if (bytes[i])
			fail(cursor);
}

static unsigned char take_byte(struct dbus_cursor *cursor)
{
	const unsigned char *bytes = take(cursor, 1);

	return bytes ? bytes[0] : 0;
}

/* Text of that length, with its NUL behind it and none within. */
static const char *take_text(struct dbus_cursor *cursor, size_t length)
{
	const unsigned char *bytes = length < SIZE_MAX ? take(cursor, length + 1) : NULL;

	if (!bytes)
		fail(cursor);
	else if (memchr(bytes, '\0', length + 1) != bytes + length)
		fail(cursor);
	return cursor->failure ? "" : (const char *)bytes;
}

uint32_t dbus_u32(struct dbus_cursor *cursor)
{
	const unsigned char *bytes;

	align(cursor, sizeof(uint32_t));
	bytes = take(cursor, sizeof(uint32_t));
	return bytes ? number_at(bytes) : 0;
}

const char *dbus_string(struct dbus_cursor *cursor)
{
	return take_text(cursor, dbus_u32(cursor));
}

static const char *take_signature(struct dbus_cursor *cursor)
{
	return take_text(cursor, take_byte(cursor));
}

void dbus_begin(struct dbus_cursor *cursor, const struct dbus_message *message)
{
	*cursor = (struct dbus_cursor){ .bytes = message->body, .end = message->body_bytes };
}

int dbus_end(const struct dbus_cursor *cursor)
{
	return cursor->failure ? cursor->failure : cursor->at != cursor->end ? -EBADMSG : 0;
}

int dbus_length(const unsigned char *bytes, size_t *ret_length)
{
	uint32_t body = number_at(bytes + 4), fields = number_at(bytes + 12);

	if (bytes[0] != ORDER || bytes[3] != PROTOCOL)
		return -EBADMSG;
	/* each on its own first: their sum cannot overflow then */
	if (body > DBUS_LIMIT_BYTES || fields > DBUS_LIMIT_BYTES)
		return -EMSGSIZE;
	*ret_length = DBUS_FIXED_BYTES + ((fields + 7u) & ~7u) + body;
	return *ret_length > DBUS_LIMIT_BYTES ? -EMSGSIZE : 0;
}

/* A field that stands twice is refused: two readers might take different ones. */
static void set_once(struct dbus_cursor *cursor, const char **field, const char *value)
{
	if ((*field)[0])
		fail(cursor);
	*field = value;
}

static void read_text_field(struct dbus_cursor *cursor, unsigned char code, char type,
			    struct dbus_message *message)
{
	const struct {
		unsigned char code;
		char type;
		const char **text;
	} fields[] = {
		{ FIELD_PATH, 'o', &message->path },
		{ FIELD_INTERFACE, 's', &message->interface },
		{ FIELD_MEMBER, 's', &message->member },
		{ FIELD_ERROR, 's', &message->error },
		{ FIELD_SIGNATURE, 'g', &message->signature },
	};
	const char *text = type == 'g' ? take_signature(cursor) : dbus_string(cursor);

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (fields[i].code != code)
			continue;
		/* of these a signature alone may be empty */
		if (fields[i].type != type || (!text[0] && type != 'g'))
			fail(cursor);
		set_once(cursor, fields[i].text, text);
		return;
	}
	if (code == 0 || code == FIELD_REPLY_SERIAL || code == FIELD_DESCRIPTORS ||
	    ((code == FIELD_DESTINATION || code == FIELD_SENDER) && type != 's'))
		fail(cursor);
}

/* A structure of a code and a variant of one basic type. */
static void read_field(struct dbus_cursor *cursor, struct dbus_message *message)
{
	unsigned char code;
	const char *type;
	uint32_t number;

	align(cursor, 8);
	code = take_byte(cursor);
	type = take_signature(cursor);
	if (cursor->failure)
		return;
	if (strcmp(type, "s") == 0 || strcmp(type, "o") == 0 || strcmp(type, "g") == 0) {
		read_text_field(cursor, code, type[0], message);
		return;
	}
	if (strcmp(type, "u") != 0 || code <= FIELD_ERROR ||
	    (code >= FIELD_DESTINATION && code <= FIELD_SIGNATURE)) {
		fail(cursor);
		return;
	}
	number = dbus_u32(cursor);
	if (code == FIELD_REPLY_SERIAL) {
		if (message->reply_serial || !number)
			fail(cursor);
		message->reply_serial = number;
	}
}

/* What each type must have. */
static bool is_complete(const struct dbus_message *message)
{
	bool called = message->path[0] && message->member[0];

	switch (message->type) {
	case DBUS_CALL:
		return called;
	case DBUS_SIGNAL:
		return called && message->interface[0];
	case DBUS_RETURN:
		return message->reply_serial != 0;
	case DBUS_ERROR:
		return message->reply_serial != 0 && message->error[0];
	}
	return false;
}

int dbus_read(const unsigned char *bytes, size_t length, struct dbus_message *ret_message)
{
	struct dbus_cursor cursor = { .bytes = bytes, .at = DBUS_FIXED_BYTES };
	struct dbus_message message = {
		.path = "", .interface = "", .member = "", .error = "", .signature = ""
	};
	size_t whole;
	int result;

	if (length < DBUS_FIXED_BYTES)
		return -EBADMSG;
	result = dbus_length(bytes, &whole);
	if (result < 0)
		return result;
	if (whole != length || bytes[1] < DBUS_CALL || bytes[1] > DBUS_SIGNAL)
		return -EBADMSG;
	message.type = (enum dbus_type)bytes[1];
	message.body_bytes = number_at(bytes + 4);
	message.serial = number_at(bytes + 8);
	cursor.end = DBUS_FIXED_BYTES + number_at(bytes + 12);
	while (!cursor.failure && cursor.at < cursor.end)
		read_field(&cursor, &message);
	cursor.end = length - message.body_bytes;
	align(&cursor, 8);
	if (cursor.failure || !message.serial || !is_complete(&message) ||
	    (message.body_bytes && !message.signature[0]))
		return -EBADMSG;
	message.body = bytes + cursor.end;
	*ret_message = message;
	return 0;
}

static void put_padding(struct buffer *buffer, size_t alignment)
{
	static const char zeros[8];

	buffer_append(buffer, zeros, -buffer->length & (alignment - 1));
}

static void put_byte(struct buffer *buffer, unsigned char value)
{
	buffer_append(buffer, &value, 1);
}

void dbus_put_u32(struct buffer *buffer, uint32_t value)
{
	put_padding(buffer, sizeof(value));
	buffer_append(buffer, &value, sizeof(value));
}

/* No text of ours has 2^32 bytes: a buffer ends before. */
void dbus_put_string(struct buffer *buffer, const char *text)
{
	dbus_put_u32(buffer, (uint32_t)strlen(text));
	buffer_append(buffer, text, strlen(text) + 1);
}

void dbus_put_signature(struct buffer *buffer, const char *text)
{
	size_t length = strlen(text);

	if (length > SIGNATURE_LIMIT_BYTES)
		buffer->failed = true;
	put_byte(buffer, (unsigned char)length);
	buffer_append(buffer, text, length + 1);
}

void dbus_put_structure(struct buffer *buffer)
{
	put_padding(buffer, 8);
}

size_t dbus_put_array(struct buffer *buffer, size_t alignment)
{
	size_t at;

	dbus_put_u32(buffer, 0);
	at = buffer->length - sizeof(uint32_t);
	put_padding(buffer, alignment);
	return at;
}

/* The padding before the first item does not count as the array's. */
void dbus_put_array_end(struct buffer *buffer, size_t array, size_t alignment)
{
	size_t first = (array + sizeof(uint32_t) + alignment - 1) & ~(alignment - 1);
	uint32_t length = (uint32_t)(buffer->length - first);

	if (!buffer->failed)
		memcpy(buffer->data + array, &length, sizeof(length));
}

static void put_field(struct buffer *buffer, enum field code, const char *type, const char *text)
{
	dbus_put_structure(buffer);
	put_byte(buffer, (unsigned char)code);
	dbus_put_signature(buffer, type);
	if (type[0] == 'g')
		dbus_put_signature(buffer, text);
	else
		dbus_put_string(buffer, text);
}

void dbus_put_call(struct buffer *buffer, const struct dbus_call *call, const struct buffer *body)
{
	const unsigned char fixed[] = { ORDER, DBUS_CALL, 0, PROTOCOL };
	size_t fields;

	buffer_append(buffer, fixed, sizeof(fixed));
	dbus_put_u32(buffer, (uint32_t)body->length);
	dbus_put_u32(buffer, call->serial);
	fields = dbus_put_array(buffer, 8);
	put_field(buffer, FIELD_PATH, "o", call->path);
	put_field(buffer, FIELD_DESTINATION, "s", call->destination);
	put_field(buffer, FIELD_INTERFACE, "s", call->interface);
	put_field(buffer, FIELD_MEMBER, "s", call->member);
	put_field(buffer, FIELD_SIGNATURE, "g", call->signature);
	dbus_put_array_end(buffer, fields, 8);
	dbus_put_structure(buffer);
	buffer_append(buffer, body->data ? body->data : "", body->length);
	buffer->failed |= body->failed;
}
