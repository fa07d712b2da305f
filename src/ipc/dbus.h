/*
 * Messages of D-Bus (D-Bus Specification, "Message Protocol"; sd-bus is what speaks at the far
 * end), as far as asking systemd's manager for one thing needs. Pure: bytes in, views out.
 *
 * A client of our own and not libsystemd's: the program is linked statically with musl and loads
 * nothing, and one call, its answer and one signal are some 300 lines that a fuzzer covers, where
 * sd-bus is 20,000 that speak of matches, tracking and object trees.
 *
 * The bytes are foreign. A message is taken only where all of its header is as the specification
 * has it: our own byte order (both ends are on one host), protocol 1, a serial, each field with its
 * type, strings that end where they say, paddings of zeros, nothing above DBUS_LIMIT_BYTES. Fields
 * that are not known are passed over where they are of a known type, else the message is refused.
 * Errors are -EBADMSG, or -EMSGSIZE for what is too long.
 *
 * Numbers lie at multiples of their size, counted from the start of the message; a body starts at a
 * multiple of 8, so that a buffer of its own counts the same.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buffer;

/* systemd's signals about other units come by as well; the largest has some kilobytes. */
#define DBUS_LIMIT_BYTES (64u * 1024)
/* What has to be read to know how long a message is. */
#define DBUS_FIXED_BYTES 16u

enum dbus_type {
	DBUS_CALL = 1,
	DBUS_RETURN = 2,
	DBUS_ERROR = 3,
	DBUS_SIGNAL = 4,
};

/* Borrowed from the bytes; "" for a field that is not there, 0 for reply_serial. */
struct dbus_message {
	enum dbus_type type;
	uint32_t serial, reply_serial;
	const char *path, *interface, *member, *error, *signature;
	const unsigned char *body;
	size_t body_bytes;
};

/* The whole length of the message that begins with these DBUS_FIXED_BYTES. */
int dbus_length(const unsigned char *bytes, size_t *ret_length);

/* Reads one whole message. */
int dbus_read(const unsigned char *bytes, size_t length, struct dbus_message *ret_message);

/* Reads a body; latches its first failure, and gives 0 and "" from then on. */
struct dbus_cursor {
	const unsigned char *bytes;
	size_t at, end;
	int failure;
};

void dbus_begin(struct dbus_cursor *cursor, const struct dbus_message *message);
uint32_t dbus_u32(struct dbus_cursor *cursor);
/* For the types s and o. */
const char *dbus_string(struct dbus_cursor *cursor);
/* The failure, or -EBADMSG where bytes are left over, or 0. */
int dbus_end(const struct dbus_cursor *cursor);

void dbus_put_u32(struct buffer *buffer, uint32_t value);
void dbus_put_string(struct buffer *buffer, const char *text);
void dbus_put_signature(struct buffer *buffer, const char *text);
/* Structures and dictionary entries begin at a multiple of 8. */
void dbus_put_structure(struct buffer *buffer);
/* An array whose items lie at multiples of `alignment`; gives its place, for its end. */
size_t dbus_put_array(struct buffer *buffer, size_t alignment);
void dbus_put_array_end(struct buffer *buffer, size_t array, size_t alignment);

struct dbus_call {
	uint32_t serial;
	const char *destination, *path, *interface, *member, *signature;
};

/* A whole method call with this body. */
void dbus_put_call(struct buffer *buffer, const struct dbus_call *call, const struct buffer *body);
