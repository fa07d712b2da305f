#include "net/socks.h"

#include "net/span.h"

#include <errno.h>

enum {
	VERSION_5 = 5,
	VERSION_4 = 4,
	COMMAND_CONNECT = 1,
	TYPE_V4 = 1,
	TYPE_NAME = 3,
	TYPE_V6 = 4,
	NO_AUTHENTICATION = 0,
	NO_METHOD = 0xff,
};

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EBADMSG;
}

/* Version 4's own words: "request rejected or failed" (SOCKS 4, CONNECT). */
static void answer_version_4(struct socks_reply *reply)
{
	*reply = (struct socks_reply){ .bytes = { 0, 0x5b }, .length = 8 };
}

int socks_parse_greeting(const unsigned char *bytes, size_t length, struct socks_reply *ret_reply,
			 const char **ret_why)
{
	struct cursor cursor = cursor_of(bytes, length);
	const unsigned char *methods;
	uint8_t version = cursor_u8(&cursor), count;

	ret_reply->length = 0;
	if (length == 0)
		return 0;
	if (version == VERSION_4) {
		answer_version_4(ret_reply);
		return refuse(ret_why, "version 4 of SOCKS");
	}
	if (version != VERSION_5)
		return refuse(ret_why, "not version 5 of SOCKS");
	count = cursor_u8(&cursor);
	methods = cursor_take(&cursor, count);
	if (cursor.failed)
		return 0;
	*ret_reply = (struct socks_reply){ .bytes = { VERSION_5, NO_METHOD }, .length = 2 };
	if (count == 0 || !memchr(methods, NO_AUTHENTICATION, count))
		return refuse(ret_why, "SOCKS with authentication alone");
	ret_reply->bytes[1] = NO_AUTHENTICATION;
	return 2 + count;
}

void socks_answer(enum socks_code code, struct socks_reply *ret_reply)
{
	*ret_reply = (struct socks_reply){ .bytes = { VERSION_5, (unsigned char)code, 0, TYPE_V4 },
					   .length = 10 };
}

/* The host of the request; false where more bytes are needed. */
static bool read_host(struct cursor *cursor, uint8_t type, struct span *name,
		      struct address *address)
{
	size_t bytes = type == TYPE_NAME ? cursor_u8(cursor) : type == TYPE_V4 ? 4 : 16;
	const unsigned char *at = cursor_take(cursor, bytes);

	if (!at)
		return false;
	if (type == TYPE_NAME) {
		*name = (struct span){ (const char *)at, bytes };
		return true;
	}
	address->family = type == TYPE_V4 ? ADDRESS_V4 : ADDRESS_V6;
	memcpy(address->bytes, at, bytes);
	return true;
}

static int refuse_request(enum socks_code code, struct socks_reply *reply, const char **ret_why,
			  const char *why)
{
	socks_answer(code, reply);
	return refuse(ret_why, why);
}

int socks_parse_request(const unsigned char *bytes, size_t length,
			struct socks_request *ret_request, struct socks_reply *ret_reply,
			const char **ret_why)
{
	struct cursor cursor = cursor_of(bytes, length);
	uint8_t version = cursor_u8(&cursor), command = cursor_u8(&cursor);
	uint8_t reserved = cursor_u8(&cursor), type = cursor_u8(&cursor);
	struct address address = { .family = ADDRESS_NONE };
	struct span name = { NULL, 0 };
	const char *why;
	bool has_host;

	ret_reply->length = 0;
	/* what is wrong already is said at once */
	if (length >= 1 && version != VERSION_5)
		return refuse_request(SOCKS_FAILED, ret_reply, ret_why, "not version 5 of SOCKS");
	if (length >= 2 && command != COMMAND_CONNECT)
		return refuse_request(SOCKS_NOT_SUPPORTED, ret_reply, ret_why,
				      "SOCKS has CONNECT alone here");
	if (cursor.failed)
		return 0;
	if (reserved || (type != TYPE_V4 && type != TYPE_V6 && type != TYPE_NAME))
		return refuse_request(SOCKS_NO_ADDRESS, ret_reply, ret_why,
				      "an address of a kind that SOCKS has not");
	has_host = read_host(&cursor, type, &name, &address);
	ret_request->port = cursor_u16(&cursor);
	if (!has_host || cursor.failed)
		return 0;
	if (address.family != ADDRESS_NONE)
		host_of_address(&address, &ret_request->host);
	else if (host_parse(name.bytes, name.length, &ret_request->host, &why) < 0)
		return refuse_request(SOCKS_NOT_ALLOWED, ret_reply, ret_why,
				      "the host is neither a name nor an address");
	if (ret_request->port == 0)
		return refuse_request(SOCKS_NOT_ALLOWED, ret_reply, ret_why, "there is no port 0");
	return (int)(length - cursor.left);
}
