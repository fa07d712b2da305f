#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/utf8.h"

static void buffer_grows(void **state)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };

	(void)state;
	buffer_append(&buffer, NULL, 0);
	assert_string_equal(buffer.data, "");
	for (int i = 0; i < 10000; i++) {
		buffer_append(&buffer, "\0x", 2);
		buffer_format(&buffer, "%d", i % 10);
	}
	assert_false(buffer.failed);
	assert_int_equal(buffer.length, 30000);
	assert_true(buffer.capacity > buffer.length);
	for (size_t i = 0; i < buffer.length; i++)
		assert_int_equal(buffer.data[i],
				 "\0x0"[i % 3] + (i % 3 == 2 ? (int)(i / 3 % 10) : 0));
	assert_int_equal(buffer.data[buffer.length], 0);
}

static void buffer_latches(void **state)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };

	(void)state;
	buffer_text(&buffer, "kept");
	buffer_append(&buffer, "x", SIZE_MAX);
	assert_true(buffer.failed);
	buffer_text(&buffer, "more");
	buffer_format(&buffer, "%s", "more");
	buffer_visible(&buffer, "more\x1b");
	buffer_visible_bytes(&buffer, "\0", 1);
	assert_true(buffer.failed);
	assert_string_equal(buffer.data, "kept");
	buffer_free(&buffer);
	assert_false(buffer.failed);
	assert_null(buffer.data);
	buffer_free(&buffer);
}

static void buffer_limit(void **state)
{
	CLEANUP_BUFFER struct buffer buffer = { 0 };
	char *bytes = calloc(1, BUFFER_LIMIT_BYTES);

	(void)state;
	assert_non_null(bytes);
	buffer_append(&buffer, bytes, BUFFER_LIMIT_BYTES - 1);
	assert_false(buffer.failed);
	assert_int_equal(buffer.data[buffer.length], 0);
	buffer_append(&buffer, bytes, 1);
	assert_true(buffer.failed);
	assert_int_equal(buffer.length, BUFFER_LIMIT_BYTES - 1);
	/* a text of which only a part would fit leaves nothing of itself */
	buffer.failed = false;
	buffer.length -= 5;
	buffer.data[buffer.length] = '\0';
	buffer_format(&buffer, "%s", "0123456789");
	assert_true(buffer.failed);
	assert_int_equal(buffer.length, BUFFER_LIMIT_BYTES - 6);
	assert_int_equal(buffer.data[buffer.length], 0);
	free(bytes);
}

static void visible(void **state)
{
	static const struct {
		const char *text, *wanted;
	} rows[] = {
		{ "plain \xc3\xa4\xe2\x82\xac", "plain \xc3\xa4\xe2\x82\xac" },
		{ "a\nb\tc\r", "a\\x0ab\\x09c\\x0d" },
		{ "\x1b[2J\x7f", "\\x1b[2J\\x7f" },
		{ "\x1b]52;c;x\x07", "\\x1b]52;c;x\\x07" },
		{ "\xc2\x9b", "\\xc2\\x9b" },
		{ "\xe2\x80\xae", "\\xe2\\x80\\xae" },
		{ "\xff\xc3", "\\xff\\xc3" },
		{ "\xe2\x82", "\\xe2\\x82" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP_BUFFER struct buffer buffer = { 0 };

		buffer_visible(&buffer, rows[i].text);
		assert_string_equal(buffer.data, rows[i].wanted);
	}
}

static void arena_memory(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };

	(void)state;
	for (size_t bytes = 0; bytes < 3000; bytes = bytes * 2 + 1) {
		unsigned char *memory = arena_allocate(&arena, bytes);

		assert_non_null(memory);
		assert_int_equal((uintptr_t)memory % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < bytes; i++)
			assert_int_equal(memory[i], 0);
		memset(memory, 0xff, bytes); /* the next one must not see it */
	}
	assert_non_null(arena_allocate(&arena, 1 << 20));
	assert_string_equal(arena_copy(&arena, "text"), "text");
	assert_memory_equal(arena_copy_bytes(&arena, "a\0b", 3), "a\0b\0", 4);
	assert_string_equal(arena_copy_bytes(&arena, NULL, 0), "");
	assert_string_equal(arena_format(&arena, "%s-%d", "x", 7), "x-7");
	assert_false(arena_failed(&arena));
}

/* What was given back comes again, with nothing in it of who had it. */
static void small_blocks_come_again(void **state)
{
	struct arena first = { .first_bytes = 1 }, other = { .first_bytes = ARENA_SMALL_BYTES };
	unsigned char *memory = arena_allocate(&first, 3000), *others;

	(void)state;
	assert_non_null(memory);
	memset(memory, 0xff, 3000);
	others = arena_allocate(&other, 100);
	assert_non_null(others);
	assert_true(others + 100 <= memory || others >= memory + 3000);
	arena_free(&first);
	first.first_bytes = 1;
	assert_ptr_equal(arena_allocate(&first, 3000), memory);
	for (size_t i = 0; i < 3000; i++)
		assert_int_equal(memory[i], 0);
	/* more than one holds: the next is none of them */
	assert_non_null(arena_allocate(&first, ARENA_SMALL_BYTES));
	arena_reset(&first);
	assert_ptr_equal(arena_allocate(&first, 1), memory);
	arena_free(&first);
	arena_free(&other);
}

static void arena_limits(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };

	(void)state;
	assert_null(arena_array(&arena, SIZE_MAX / 2, 3));
	assert_true(arena_failed(&arena));
	/* latched, yet what fits still comes */
	assert_non_null(arena_allocate(&arena, 1));
	assert_true(arena_failed(&arena));
	arena_free(&arena);
	assert_false(arena_failed(&arena));

	assert_null(arena_allocate(&arena, SIZE_MAX));
	assert_null(arena_copy_bytes(&arena, "x", SIZE_MAX));
	assert_null(arena_allocate(&arena, ARENA_LIMIT_BYTES + 1));
	arena_free(&arena);
	assert_non_null(arena_allocate(&arena, ARENA_LIMIT_BYTES));
	assert_null(arena_allocate(&arena, 1));
	assert_true(arena_failed(&arena));
	assert_null(arena_format(&arena, "%s", "x"));
	arena_free(&arena);
	arena_free(&arena);
}

static void arena_pushes(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	uint64_t *items = NULL;

	(void)state;
	for (size_t count = 0; count < 5000; count++) {
		items = arena_push(&arena, items, count, sizeof(*items));
		assert_non_null(items);
		assert_int_equal(items[count], 0);
		items[count] = count + 1;
	}
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(items[i], i + 1);
	assert_false(arena_failed(&arena));
}

static void errors(void **state)
{
	struct error error = ERROR_NONE;

	(void)state;
	assert_int_equal(error_set(&error, ENOENT, "no '%s'", "x"), -ENOENT);
	assert_int_equal(error.code, -ENOENT);
	assert_string_equal(error.message, "no 'x'");
	assert_int_equal(error_errno(&error, -EACCES, "open %s", "/a"), -EACCES);
	assert_string_equal(error.message, "open /a: Permission denied");
	assert_int_equal(error_context(&error, "step %d", 3), -EACCES);
	assert_string_equal(error.message, "step 3: open /a: Permission denied");
	assert_string_equal(error_text(ENOSYS), "Function not implemented");
	assert_string_equal(error_text(-ENOSYS), "Function not implemented");
	assert_string_equal(error_text(123456), "unknown error");
	assert_string_equal(error_text(INT32_MIN), "unknown error");
}

/* Every length of context and message around the room: ended, cut, and nothing beyond. */
static void errors_cut(void **state)
{
	char text[2 * ERROR_MESSAGE_BYTES] = "";
	struct {
		struct error error;
		char guard[16];
	} held;

	(void)state;
	for (size_t length = 0; length < sizeof(text) - 1; length++) {
		memset(&held, 'G', sizeof(held));
		error_errno(&held.error, EIO, "%s", text);
		assert_true(strlen(held.error.message) < ERROR_MESSAGE_BYTES);
		error_context(&held.error, "%s", text);
		assert_true(strlen(held.error.message) < ERROR_MESSAGE_BYTES);
		assert_memory_equal(held.error.message, text,
				    length < ERROR_MESSAGE_BYTES ? length :
								   ERROR_MESSAGE_BYTES - 1);
		assert_int_equal(error_context(&held.error, "again"), -EIO);
		assert_memory_equal(held.error.message, "again: ", 7);
		assert_true(strlen(held.error.message) < ERROR_MESSAGE_BYTES);
		assert_memory_equal(held.guard, "GGGGGGGGGGGGGGGG", 16);
		text[length] = 'a';
		text[length + 1] = '\0';
	}
}

/* Against the definition: a decoded point encodes back to the same bytes, and only those. */
static void utf8_all_points(void **state)
{
	size_t valid = 0;

	(void)state;
	for (uint32_t point = 0; point <= 0x10ffff; point++) {
		char text[4];
		size_t length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
		uint32_t decoded = 0xdeadbeef;
		bool surrogate = point >= 0xd800 && point <= 0xdfff;

		for (size_t i = 0; i < length; i++)
			text[i] = (char)(0x80 | (point >> 6 * (length - 1 - i) & 0x3f));
		if (length == 1)
			text[0] = (char)point;
		else
			text[0] = (char)(0xf00 >> length | point >> 6 * (length - 1));
		if (utf8_decode(text, length, &decoded) != (surrogate ? 0 : length) ||
		    decoded != (surrogate ? 0xdeadbeef : point))
			fail_msg("U+%04x", point);
		if (utf8_decode(text, length - 1, &decoded) != 0)
			fail_msg("U+%04x, cut", point);
		valid += !surrogate;
	}
	assert_int_equal(valid, 0x110000 - 0x800);
}

static void utf8_invalid(void **state)
{
	static const char *const texts[] = {
		"\x80",
		"\xbf",
		"\xc0\x80",
		"\xc1\xbf",
		"\xe0\x9f\xbf",
		"\xed\xa0\x80",
		"\xed\xbf\xbf",
		"\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80",
		"\xff",
		"\xc2\x41",
		"\xe2\x82\x41",
		"\xf8\x88\x80\x80\x80",
	};
	uint32_t point;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (utf8_decode(texts[i], strlen(texts[i]), &point) != 0)
			fail_msg("row %zu", i);
	assert_int_equal(utf8_decode(NULL, 0, &point), 0);
	assert_int_equal(utf8_decode("\0", 1, &point), 1);
	assert_int_equal(point, 0);
}

static void utf8_hidden(void **state)
{
	static const uint32_t hidden[] = {
		0,	0x1b,	0x1f,	 0x7f,	  0x80,	   0x9b,    0x9f,    0xad,   0x61c,
		0x200b, 0x200d, 0x200e,	 0x2028,  0x2029,  0x202a,  0x202e,  0x2066, 0x2069,
		0xfeff, 0xfff9, 0x13430, 0x1bca0, 0x1d173, 0xe0001, 0xe007f,
	};
	static const uint32_t shown[] = { ' ', '~', 0xa0, 0xe4, 0x20ac, 0x4e2d, 0x1f600 };

	(void)state;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (utf8_is_visible(hidden[i]))
			fail_msg("U+%04x is shown", hidden[i]);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (!utf8_is_visible(shown[i]))
			fail_msg("U+%04x is hidden", shown[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffer_grows),	   cmocka_unit_test(buffer_latches),
		cmocka_unit_test(buffer_limit),	   cmocka_unit_test(visible),
		cmocka_unit_test(arena_memory),	   cmocka_unit_test(small_blocks_come_again),
		cmocka_unit_test(arena_limits),	   cmocka_unit_test(arena_pushes),
		cmocka_unit_test(errors),	   cmocka_unit_test(errors_cut),
		cmocka_unit_test(utf8_all_points), cmocka_unit_test(utf8_invalid),
		cmocka_unit_test(utf8_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
