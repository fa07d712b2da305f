/*
 * The reader of D-Bus: what it takes lies within the bytes, is complete for its type, and its body
 * is read without a step beyond, whatever the signature says it is.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/dbus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* "", or a text with its end within the bytes. */
static void check_text(const uint8_t *data, size_t size, const char *text)
{
	const uint8_t *at = (const uint8_t *)text;

	if (at >= data && at < data + size)
		require(memchr(at, '\0', (size_t)(data + size - at)));
	else
		require(text[0] == '\0');
}

static void check_body(const struct dbus_message *message)
{
	struct dbus_cursor cursor;

	dbus_begin(&cursor, message);
	for (const char *type = message->signature; *type && !cursor.failure; type++) {
		if (*type == 's' || *type == 'o')
			check_text(message->body, message->body_bytes, dbus_string(&cursor));
		else
			(void)dbus_u32(&cursor);
		require(cursor.at <= message->body_bytes);
	}
	if (dbus_end(&cursor) == 0)
		require(cursor.at == message->body_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dbus_message message;
	size_t length;

	if (size < DBUS_FIXED_BYTES || dbus_length(data, &length) < 0)
		return 0;
	require(length >= DBUS_FIXED_BYTES && length <= DBUS_LIMIT_BYTES);
	if (dbus_read(data, size, &message) < 0)
		return 0;
	require(length == size && message.serial);
	require(message.type >= DBUS_CALL && message.type <= DBUS_SIGNAL);
	require(message.type == DBUS_CALL || message.type == DBUS_SIGNAL || message.reply_serial);
	require(message.type != DBUS_ERROR || message.error[0]);
	require(message.type != DBUS_SIGNAL || (message.path[0] && message.interface[0]));
	require(message.body + message.body_bytes == data + size);
	check_text(data, size, message.path);
	check_text(data, size, message.interface);
	check_text(data, size, message.member);
	check_text(data, size, message.error);
	check_text(data, size, message.signature);
	check_body(&message);
	return 0;
}
