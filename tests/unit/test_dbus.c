/*
 * What is written is what the specification has, byte for byte; what is read is taken only where
 * all of it is so. Conversations are in tests/run/test_scope.py, with sd-bus and systemd.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "ipc/dbus.h"

static const char id_signal[] = "l\4\1\1"
				"\14\0\0\0"
				"\11\0\0\0"
				"\67\0\0\0"
				"\1\1o\0\2\0\0\0/a\0\0\0\0\0\0"
				"\2\1s\0\1\0\0\0i\0\0\0\0\0\0\0"
				"\3\1s\0\1\0\0\0m\0\0\0\0\0\0\0"
				"\10\1g\0\1s\0\0"
				/* the body: "x", and what is left over */
				"\1\0\0\0x\0\0\0\7\0\0";

#define SIGNAL_BYTES (sizeof(id_signal))

static int read_copy(const char *bytes, size_t length, struct dbus_message *message)
{
	/* as long as it is, so that a read beyond it is seen by ASan */
	static unsigned char *copy;

	free(copy);
	copy = malloc(length ? length : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, length);
	return dbus_read(copy, length, message);
}

static void a_message_is_read(void **state)
{
	struct dbus_message message;
	struct dbus_cursor cursor;
	size_t length = 0;

	(void)state;
	assert_int_equal(dbus_length((const unsigned char *)id_signal, &length), 0);
	assert_int_equal(length, SIGNAL_BYTES);
	assert_int_equal(read_copy(id_signal, SIGNAL_BYTES, &message), 0);
	assert_int_equal(message.type, DBUS_SIGNAL);
	assert_int_equal(message.serial, 9);
	assert_int_equal(message.reply_serial, 0);
	assert_string_equal(message.path, "/a");
	assert_string_equal(message.interface, "i");
	assert_string_equal(message.member, "m");
	assert_string_equal(message.error, "");
	assert_string_equal(message.signature, "s");
	assert_int_equal(message.body_bytes, 12);
	dbus_begin(&cursor, &message);
	assert_string_equal(dbus_string(&cursor), "x");
	assert_int_equal(dbus_end(&cursor), -EBADMSG);
	assert_int_equal(dbus_u32(&cursor), 7);
	assert_int_equal(dbus_end(&cursor), 0);
	/* beyond the end: latched */
	assert_int_equal(dbus_u32(&cursor), 0);
	assert_string_equal(dbus_string(&cursor), "");
	assert_int_equal(dbus_end(&cursor), -EBADMSG);
}

static void each_prefix_is_refused(void **state)
{
	struct dbus_message message;

	(void)state;
	for (size_t length = 0; length < SIGNAL_BYTES; length++)
		assert_int_equal(read_copy(id_signal, length, &message), -EBADMSG);
}

/* One byte of the signal changed: where, to what, and what becomes of it. */
static const struct change {
	size_t at;
	unsigned char value;
	int result;
} changes[] = {
	{ 0, 'B', -EBADMSG }, /* the other byte order */
	{ 1, 0, -EBADMSG },   /* no type */
	{ 1, 5, -EBADMSG },   /* an unknown one */
	{ 1, 3, -EBADMSG },   /* an error without a name, and an answer to nothing */
	{ 2, 0xff, 0 },	      /* flags are hints */
	{ 3, 2, -EBADMSG },   /* another protocol */
	{ 4, 13, -EBADMSG },  /* lengths that do not fit */
	{ 5, 1, -EBADMSG },	 { 7, 0xff, -EMSGSIZE },
	{ 8, 0, -EBADMSG }, /* no serial */
	{ 12, 0x34, -EBADMSG },	 { 12, 0x39, -EBADMSG },
	{ 15, 0xff, -EMSGSIZE }, { 16, 0, -EBADMSG }, /* the field that must never be */
	{ 16, 2, -EBADMSG },			      /* an interface that is an object path */
	{ 16, 4, -EBADMSG },			      /* the path is missing */
	{ 16, 9, -EBADMSG },			      /* descriptors by text */
	{ 16, 200, -EBADMSG },			      /* a field that nobody knows, and no path */
	{ 17, 2, -EBADMSG },	 { 18, 's', -EBADMSG },
	{ 18, 'v', -EBADMSG }, /* a variant within a variant */
	{ 18, 'u', -EBADMSG },	 { 19, 'x', -EBADMSG },
	{ 20, 1, -EBADMSG }, /* a text that does not end where it says */
	{ 20, 3, -EBADMSG },	 { 20, 0, -EBADMSG },
	{ 23, 0x80, -EBADMSG },	 { 24, 0, -EBADMSG },
	{ 27, 1, -EBADMSG },			      /* padding that is not zero */
	{ 32, 1, -EBADMSG },	 { 32, 3, -EBADMSG }, /* twice the same field */
	{ 64, 5, -EBADMSG },	 { 67, 1, -EBADMSG },
	{ 68, 2, -EBADMSG },	 { 69, 0, -EBADMSG },
	{ 71, 1, -EBADMSG },
};

static void one_byte_makes_it_none(void **state)
{
	struct dbus_message message;
	char bytes[SIGNAL_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const struct change *change = &changes[i];
		int result;

		memcpy(bytes, id_signal, sizeof(bytes));
		bytes[change->at] = (char)change->value;
		result = read_copy(bytes, sizeof(bytes), &message);
		if (result != change->result)
			fail_msg("byte %zu as %#x: %d, not %d", change->at, change->value, result,
				 change->result);
	}
}

static void sizes_are_bounded(void **state)
{
	unsigned char bytes[DBUS_FIXED_BYTES] = { 'l', 2, 0, 1 };
	size_t length = 7;
	uint32_t most = DBUS_LIMIT_BYTES - DBUS_FIXED_BYTES, more = UINT32_MAX - 15;

	(void)state;
	memcpy(bytes + 4, &most, 4);
	assert_int_equal(dbus_length(bytes, &length), 0);
	assert_int_equal(length, DBUS_LIMIT_BYTES);
	most++;
	memcpy(bytes + 4, &most, 4);
	assert_int_equal(dbus_length(bytes, &length), -EMSGSIZE);
	/* a sum that would be small again */
	most = 8;
	memcpy(bytes + 4, &most, 4);
	memcpy(bytes + 12, &more, 4);
	assert_int_equal(dbus_length(bytes, &length), -EMSGSIZE);
}

static void arrays_count_without_their_padding(void **state)
{
	/* "a", an array of one structure behind four bytes of padding, an empty one behind none */
	static const char expected[] = "\1\0\0\0a\0\0\0"
				       "\20\0\0\0\0\0\0\0"
				       "\1\0\0\0n\0\1u\0\0\0\0\5\0\0\0"
				       "\0\0\0\0\0\0\0";
	CLEANUP_BUFFER struct buffer buffer = { 0 };
	size_t array;

	(void)state;
	dbus_put_string(&buffer, "a");
	array = dbus_put_array(&buffer, 8);
	dbus_put_structure(&buffer);
	dbus_put_string(&buffer, "n");
	dbus_put_signature(&buffer, "u");
	dbus_put_u32(&buffer, 5);
	dbus_put_array_end(&buffer, array, 8);
	array = dbus_put_array(&buffer, 8);
	dbus_put_array_end(&buffer, array, 8);
	assert_false(buffer.failed);
	assert_int_equal(buffer.length, sizeof(expected));
	assert_memory_equal(buffer.data, expected, sizeof(expected));
}

static void what_is_written_is_read(void **state)
{
	const struct dbus_call call = { 5, "d.e", "/p", "i.f", "M", "su" };
	CLEANUP_BUFFER struct buffer body = { 0 }, bytes = { 0 };
	struct dbus_message message;
	struct dbus_cursor cursor;

	(void)state;
	dbus_put_string(&body, "text");
	dbus_put_u32(&body, 77);
	dbus_put_call(&bytes, &call, &body);
	assert_false(bytes.failed);
	assert_int_equal(read_copy(bytes.data, bytes.length, &message), 0);
	assert_int_equal(message.type, DBUS_CALL);
	assert_int_equal(message.serial, 5);
	assert_string_equal(message.path, "/p");
	assert_string_equal(message.interface, "i.f");
	assert_string_equal(message.member, "M");
	assert_string_equal(message.signature, "su");
	dbus_begin(&cursor, &message);
	assert_string_equal(dbus_string(&cursor), "text");
	assert_int_equal(dbus_u32(&cursor), 77);
	assert_int_equal(dbus_end(&cursor), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_read),
		cmocka_unit_test(each_prefix_is_refused),
		cmocka_unit_test(one_byte_makes_it_none),
		cmocka_unit_test(sizes_are_bounded),
		cmocka_unit_test(arrays_count_without_their_padding),
		cmocka_unit_test(what_is_written_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
