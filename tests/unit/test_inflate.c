#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/inflate.h"

/* by zlib: of make_text(), with codes of its own; of a short text, with the fixed ones */
static const unsigned char dynamic[] = {
	0x78, 0xda, 0xe5, 0xcd, 0xb1, 0x0d, 0x00, 0x31, 0x08, 0x43, 0xd1, 0x59, 0x41, 0xa4, 0x01,
	0x91, 0x28, 0x69, 0x40, 0x4c, 0x7f, 0x7f, 0x8f, 0xeb, 0x10, 0xf2, 0xb3, 0x45, 0x75, 0xad,
	0xe5, 0xf7, 0xce, 0x4c, 0x74, 0x67, 0xa6, 0x55, 0xbd, 0xf7, 0xce, 0xde, 0xe7, 0x9c, 0x57,
	0x65, 0x66, 0xd9, 0x1d, 0x11, 0x73, 0xaf, 0xbb, 0x2f, 0x55, 0x11, 0xc1, 0x70, 0x63, 0xf8,
	0x63, 0xc8, 0x60, 0xc8, 0x63, 0xb0, 0x18, 0x7a, 0x30, 0x74, 0x62, 0xe8, 0xc7, 0x28, 0x43,
	0x10, 0x86, 0x20, 0xdd, 0xf2, 0xb3, 0xdd, 0x0f, 0x2c, 0xee, 0x99, 0x55,
};

static const unsigned char fixed[] = {
	0x78, 0x01, 0x4b, 0x54, 0x48, 0xcb, 0xac, 0x48, 0x4d, 0x51, 0x48, 0xce, 0x4f,
	0x49, 0xd5, 0x51, 0x48, 0x44, 0xe2, 0x01, 0x00, 0x76, 0x7e, 0x08, 0xe5,
};

struct output {
	unsigned char bytes[1 << 20];
	size_t length;
	int refuses;
};

static struct output output;

static int take(void *context, const unsigned char *bytes, size_t length)
{
	struct output *out = context;

	if (out->refuses)
		return out->refuses;
	assert_true(length <= sizeof(out->bytes) - out->length);
	memcpy(out->bytes + out->length, bytes, length);
	out->length += length;
	return 0;
}

static int run(const void *bytes, size_t length, uint64_t *offset, uint64_t limit)
{
	int fd = memfd_create("stream", MFD_CLOEXEC), result;

	output.length = 0;
	assert_int_equal(write(fd, bytes, length), length);
	result = inflate_file(fd, offset, limit, take, &output);
	close(fd);
	return result;
}

static size_t make_text(unsigned char *text)
{
	size_t length = 0;

	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < 60; i++)
			for (unsigned j = 0; j < 1 + i % 3; j++)
				text[length++] = (unsigned char)('a' + i * i % 26);
	return length;
}

static void streams_of_zlib(void **state)
{
	unsigned char text[1024];
	size_t length = make_text(text);
	uint64_t offset = 0;

	(void)state;
	assert_int_equal(run(dynamic, sizeof(dynamic), &offset, 1 << 20), 0);
	assert_int_equal(offset, sizeof(dynamic));
	assert_int_equal(output.length, length);
	assert_memory_equal(output.bytes, text, length);
	offset = 0;
	assert_int_equal(run(fixed, sizeof(fixed), &offset, 1 << 20), 0);
	assert_int_equal(output.length, strlen("a fixed code, a fixed code"));
	assert_memory_equal(output.bytes, "a fixed code, a fixed code", output.length);
}

/* In a pack one stands behind the other. */
static void one_behind_the_other(void **state)
{
	unsigned char both[sizeof(fixed) + sizeof(dynamic) + 3];
	uint64_t offset = 1;

	(void)state;
	memset(both, 0xff, sizeof(both));
	memcpy(both + 1, fixed, sizeof(fixed));
	memcpy(both + 1 + sizeof(fixed), dynamic, sizeof(dynamic));
	assert_int_equal(run(both, sizeof(both), &offset, 1 << 20), 0);
	assert_int_equal(offset, 1 + sizeof(fixed));
	assert_int_equal(run(both, sizeof(both), &offset, 1 << 20), 0);
	assert_int_equal(offset, sizeof(both) - 2);
}

static void what_is_cut_off_or_changed(void **state)
{
	unsigned char bytes[sizeof(dynamic)], text[1024];
	size_t length = make_text(text), accepted = 0;
	uint64_t offset = 0;

	(void)state;
	for (size_t cut = 0; cut < sizeof(dynamic); cut++)
		assert_int_equal(run(dynamic, cut, &offset, 1 << 20), -EBADMSG);
	for (size_t i = 0; i < 8 * sizeof(dynamic); i++) {
		int result;

		memcpy(bytes, dynamic, sizeof(bytes));
		bytes[i / 8] ^= (unsigned char)(1u << i % 8);
		offset = 0;
		result = run(bytes, sizeof(bytes), &offset, 1 << 20);
		/* the head says how hard zlib tried, and bits in front of the checksum nothing */
		if (result < 0) {
			assert_int_equal(result, -EBADMSG);
			continue;
		}
		accepted++;
		assert_int_equal(output.length, length);
		assert_memory_equal(output.bytes, text, length);
	}
	assert_true(accepted < 16);
}

static void limits(void **state)
{
	unsigned char text[1024];
	size_t length = make_text(text);
	uint64_t offset = 0;

	(void)state;
	assert_int_equal(run(dynamic, sizeof(dynamic), &offset, length), 0);
	offset = 0;
	assert_int_equal(run(dynamic, sizeof(dynamic), &offset, length - 1), -EFBIG);
	assert_int_equal(offset, 0);
	output.refuses = -ENOSPC;
	assert_int_equal(run(dynamic, sizeof(dynamic), &offset, length), -ENOSPC);
	output.refuses = 0;
}

/* A run of zeros as long as the window, and more: the ring is right at its end. */
static void over_the_window(void **state)
{
	/* stored "ab", then copies of 258 bytes from 2 back */
	static unsigned char bytes[4096] = { 0x78, 0x01, 0x00, 2, 0, 0xfd, 0xff, 'a', 'b' };
	uint64_t bits = 0, offset = 0;
	unsigned count = 0, copies = 300;
	size_t length = 9;
	uint32_t adler;

	(void)state;
	/* last block, fixed code; length 258 is 11000101, distance 2 is 00001 */
	bits = 0x3;
	count = 3;
	for (unsigned i = 0; i < copies; i++) {
		bits |= (uint64_t)0xa3 << count;
		bits |= (uint64_t)0x10 << (count + 8);
		for (count += 13; count >= 8; count -= 8, bits >>= 8)
			bytes[length++] = (unsigned char)bits;
	}
	/* the end is 0000000 */
	for (count += 7; count > 0; count = count > 8 ? count - 8 : 0, bits >>= 8)
		bytes[length++] = (unsigned char)bits;
	for (size_t i = 0; i < 2 + 258 * (size_t)copies; i++)
		output.bytes[i] = i % 2 ? 'b' : 'a';
	adler = inflate_adler(1, output.bytes, 2 + 258 * (size_t)copies);
	for (unsigned i = 0; i < 4; i++)
		bytes[length++] = (unsigned char)(adler >> (24 - 8 * i));
	memset(output.bytes, 0, sizeof(output.bytes));
	assert_int_equal(run(bytes, length, &offset, 1 << 20), 0);
	assert_int_equal(output.length, 2 + 258 * (size_t)copies);
	for (size_t i = 0; i < output.length; i++)
		assert_int_equal(output.bytes[i], i % 2 ? 'b' : 'a');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_of_zlib),
		cmocka_unit_test(one_behind_the_other),
		cmocka_unit_test(what_is_cut_off_or_changed),
		cmocka_unit_test(limits),
		cmocka_unit_test(over_the_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
