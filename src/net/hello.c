#include "net/hello.h"

#include "net/span.h"

#include <errno.h>

enum {
	RECORD_HEADER_BYTES = 5,
	RECORD_HANDSHAKE = 22,
	RECORD_ALERT = 21,
	RECORD_LIMIT_BYTES = 16384,
	MESSAGE_HEADER_BYTES = 4,
	MESSAGE_CLIENT_HELLO = 1,
	EXTENSION_SERVER_NAME = 0,
	EXTENSION_ALPN = 16,
	EXTENSION_EARLY_DATA = 42,
	EXTENSION_ECH = 0xfe0d,
	NAME_HOST = 0,
};

/*
 * The message across its records. Views are possible where a field lies in one record alone; so
 * fields are copied byte for byte where they are kept, and counted where they are not.
 */
struct reader {
	const unsigned char *at; /* in the record */
	size_t in_record;	 /* of it that are left */
	size_t left;		 /* of the message, or of the part of it that is read */
	bool failed;
};

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EBADMSG;
}

int hello_begins(const unsigned char *bytes, size_t length)
{
	/* handshake, version 3.x, and a length that records have */
	if (length >= 1 && bytes[0] != RECORD_HANDSHAKE)
		return -EBADMSG;
	if (length >= 2 && bytes[1] != 3)
		return -EBADMSG;
	if (length >= 6 && bytes[5] != MESSAGE_CLIENT_HELLO)
		return -EBADMSG;
	return length >= 6;
}

/*
 * The records that the message lies in: their bytes, 0 where more are needed. All of their headers
 * are checked here, so that the reader below only steps over them.
 */
static int measure(const unsigned char *bytes, size_t length, size_t *ret_message,
		   const char **ret_why)
{
	size_t at = 0, have = 0, message = SIZE_MAX;
	unsigned char header[MESSAGE_HEADER_BYTES];

	for (unsigned records = 0; have < message; records++) {
		struct cursor cursor = cursor_of(bytes + at, length - at);
		uint8_t type = cursor_u8(&cursor), major = cursor_u8(&cursor);
		size_t size;

		(void)cursor_u8(&cursor);
		size = cursor_u16(&cursor);
		if (records == HELLO_LIMIT_RECORDS)
			return refuse(ret_why, "the ClientHello is in too many records");
		if (length > at && (type != RECORD_HANDSHAKE || (length > at + 1 && major != 3)))
			return refuse(ret_why, "not a record of a TLS handshake");
		if (cursor.failed)
			return 0;
		if (size == 0 || size > RECORD_LIMIT_BYTES)
			return refuse(ret_why, "a TLS record has an impossible length");
		for (size_t i = 0; i < size && have + i < sizeof(header) && i < cursor.left; i++)
			header[have + i] = cursor.at[i];
		if (have == 0 && cursor.left && header[0] != MESSAGE_CLIENT_HELLO)
			return refuse(ret_why, "the first message of TLS is no ClientHello");
		if (have < sizeof(header) && have + size >= sizeof(header) &&
		    have + cursor.left >= sizeof(header)) {
			message = sizeof(header) +
				  ((size_t)header[1] << 16 | (size_t)header[2] << 8 | header[3]);
			if (message > HELLO_LIMIT_BYTES)
				return refuse(ret_why, "the ClientHello has more than 64 KiB");
		}
		if (cursor.left < size)
			return 0;
		have += size;
		at += RECORD_HEADER_BYTES + size;
	}
	/* one message alone: what follows it in its record would be read by nobody */
	if (have != message)
		return refuse(ret_why, "something follows the ClientHello in its record");
	*ret_message = message;
	return (int)at;
}

static uint8_t get_u8(struct reader *reader)
{
	if (reader->failed || reader->left == 0) {
		reader->failed = true;
		return 0;
	}
	if (reader->in_record == 0) {
		/* measure() has seen this header and all that it says */
		reader->in_record = (size_t)reader->at[3] << 8 | reader->at[4];
		reader->at += RECORD_HEADER_BYTES;
	}
	reader->left--;
	reader->in_record--;
	return *reader->at++;
}

static uint16_t get_u16(struct reader *reader)
{
	uint16_t high = get_u8(reader);

	return (uint16_t)(high << 8 | get_u8(reader));
}

static void skip(struct reader *reader, size_t length)
{
	while (length-- && !reader->failed)
		(void)get_u8(reader);
}

/* The part of this length: what is left is kept, and given back by leave(). */
static size_t enter(struct reader *reader, size_t length)
{
	size_t outside = reader->left;

	if (length > reader->left)
		reader->failed = true;
	else
		reader->left = length;
	return outside - reader->left;
}

/* All of the part has to be read. */
static void leave(struct reader *reader, size_t outside)
{
	if (reader->left)
		reader->failed = true;
	reader->left = outside;
}

/* RFC 6066, 3: a list, in which there may be one name of each type, and is one type. */
static int read_server_name(struct reader *reader, struct hello *hello, const char **ret_why)
{
	char name[HOST_NAME_BYTES + 1];
	size_t list = enter(reader, get_u16(reader)), length;
	const char *why;

	if (get_u8(reader) != NAME_HOST)
		reader->failed = true;
	length = get_u16(reader);
	if (length > sizeof(name))
		return refuse(ret_why, "the name of the ClientHello is too long");
	for (size_t i = 0; i < length; i++)
		name[i] = (char)get_u8(reader);
	if (!reader->failed && reader->left)
		return refuse(ret_why, "the ClientHello has two names");
	leave(reader, list);
	if (reader->failed)
		return refuse(ret_why, "the name of the ClientHello is malformed");
	if (host_parse(name, length, &hello->host, &why) < 0 || hello->host.kind != HOST_NAME)
		return refuse(ret_why, "the name of the ClientHello is no host name");
	hello->has_name = true;
	return 0;
}

static uint32_t protocol_of(const char *name, size_t length)
{
	static const struct {
		const char *name;
		uint32_t protocol;
	} known[] = {
		{ "http/1.1", HELLO_ALPN_HTTP1 },
		{ "http/1.0", HELLO_ALPN_HTTP1 },
		{ "h2", HELLO_ALPN_H2 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (span_is((struct span){ name, length }, known[i].name))
			return known[i].protocol;
	/* RFC 8701: two equal bytes of the form ?A are there to be passed over */
	if (length == 2 && name[0] == name[1] && (name[0] & 0x0f) == 0x0a)
		return 0;
	return HELLO_ALPN_OTHER;
}

static int read_alpn(struct reader *reader, struct hello *hello, const char **ret_why)
{
	size_t list = enter(reader, get_u16(reader));
	char name[256];

	if (reader->left == 0)
		reader->failed = true;
	while (reader->left && !reader->failed) {
		size_t length = get_u8(reader);

		if (length == 0)
			reader->failed = true;
		for (size_t i = 0; i < length; i++)
			name[i] = (char)get_u8(reader);
		if (!reader->failed)
			hello->alpn |= protocol_of(name, length);
	}
	leave(reader, list);
	return reader->failed ? refuse(ret_why, "the protocols of the ClientHello are malformed") :
				0;
}

static int read_nothing(struct reader *reader, const char **ret_why)
{
	return reader->left ? refuse(ret_why, "an extension of the ClientHello is malformed") : 0;
}

static int read_extension(struct reader *reader, uint16_t type, struct hello *hello,
			  const char **ret_why)
{
	switch (type) {
	case EXTENSION_SERVER_NAME:
		return read_server_name(reader, hello, ret_why);
	case EXTENSION_ALPN:
		return read_alpn(reader, hello, ret_why);
	case EXTENSION_EARLY_DATA:
		hello->has_early_data = true;
		return read_nothing(reader, ret_why);
	case EXTENSION_ECH:
		hello->has_ech = true;
		break;
	default:
		break;
	}
	skip(reader, reader->left);
	return 0;
}

/* Those that are looked into may be there once (RFC 8446, 4.2). */
static int read_extensions(struct reader *reader, struct hello *hello, const char **ret_why)
{
	uint16_t seen[HELLO_LIMIT_EXTENSIONS];
	size_t all = enter(reader, get_u16(reader));

	for (unsigned count = 0; reader->left && !reader->failed; count++) {
		uint16_t type = get_u16(reader);
		size_t outside = enter(reader, get_u16(reader));
		int result;

		if (count == HELLO_LIMIT_EXTENSIONS)
			return refuse(ret_why, "the ClientHello has too many extensions");
		for (unsigned i = 0; i < count; i++)
			if (seen[i] == type)
				return refuse(ret_why, "the ClientHello has an extension twice");
		seen[count] = type;
		if (reader->failed)
			break;
		result = read_extension(reader, type, hello, ret_why);
		if (result < 0)
			return result;
		leave(reader, outside);
	}
	leave(reader, all);
	return 0;
}

/* RFC 8446, 4.1.2; 1.2 and before have the same form. */
static int read_hello(struct reader *reader, struct hello *hello, const char **ret_why)
{
	size_t length;
	int result = 0;

	skip(reader, MESSAGE_HEADER_BYTES);
	if (get_u16(reader) >> 8 != 3)
		return refuse(ret_why, "the ClientHello is of no version of TLS");
	skip(reader, 32);
	length = get_u8(reader);
	if (length > 32)
		return refuse(ret_why, "the session of the ClientHello is too long");
	skip(reader, length);
	length = get_u16(reader);
	if (length == 0 || length % 2)
		return refuse(ret_why, "the ciphers of the ClientHello are malformed");
	skip(reader, length);
	length = get_u8(reader);
	if (length == 0)
		return refuse(ret_why, "the compressions of the ClientHello are malformed");
	skip(reader, length);
	/* without any extension it ends here */
	if (reader->left)
		result = read_extensions(reader, hello, ret_why);
	if (result == 0 && (reader->failed || reader->left))
		return refuse(ret_why, "the ClientHello is malformed");
	return result;
}

int hello_parse(const unsigned char *bytes, size_t length, struct hello *ret_hello,
		const char **ret_why)
{
	struct reader reader = { .at = bytes };
	int used = measure(bytes, length, &reader.left, ret_why), result;

	if (used <= 0)
		return used;
	*ret_hello = (struct hello){ .has_name = false };
	result = read_hello(&reader, ret_hello, ret_why);
	return result < 0 ? result : used;
}

void hello_write_alert(enum hello_alert alert, unsigned char bytes[static HELLO_ALERT_BYTES])
{
	enum { WARNING = 1, FATAL = 2 };
	const unsigned char record[HELLO_ALERT_BYTES] = {
		RECORD_ALERT,	      3, 3, 0, 2, alert == HELLO_CLOSE_NOTIFY ? WARNING : FATAL,
		(unsigned char)alert,
	};

	memcpy(bytes, record, sizeof(record));
}
