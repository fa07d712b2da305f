#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/arena.h"
#include "policy/elf.h"

struct file {
	unsigned char bytes[2048];
	size_t length;
};

static int read_file(void *context, uint64_t offset, void *bytes, size_t length)
{
	const struct file *file = context;

	if (offset > file->length || length > file->length - offset)
		return -EIO;
	memcpy(bytes, file->bytes + offset, length);
	return 0;
}

static void put(struct file *file, size_t at, uint64_t value, size_t length)
{
	for (size_t i = 0; i < length; i++)
		file->bytes[at + i] = (unsigned char)(value >> (8 * i));
}

/* Where the parts of a file are. */
enum { TABLE = 64, INTERPRETER = 256, DYNAMIC = 320, TEXTS = 512, ADDRESS = 0x10000 };

static void put_segment(struct file *file, unsigned index, bool wide, uint32_t type, size_t offset,
			size_t length)
{
	size_t at = TABLE + index * (wide ? 56 : 32), width = wide ? 8 : 4;

	put(file, at, type, 4);
	put(file, at + (wide ? 8 : 4), offset, width);
	put(file, at + (wide ? 16 : 8), ADDRESS + offset, width);
	put(file, at + (wide ? 32 : 16), length, width);
}

static void put_tag(struct file *file, unsigned index, bool wide, uint64_t tag, uint64_t value)
{
	size_t width = wide ? 8 : 4, at = DYNAMIC + index * 2 * width;

	put(file, at, tag, width);
	put(file, at + width, value, width);
}

static struct file sample(bool wide)
{
	static const char texts[] = "\0libc.so.6\0libm.so.6\0$ORIGIN/../lib:/opt/x\0/old";
	static const char interpreter[] = "/lib64/ld.so";
	struct file file = { .bytes = { 0x7f, 'E', 'L', 'F', wide ? 2 : 1, 1, 1 }, .length = 1024 };

	put(&file, 18, 62, 2);
	put(&file, wide ? 32 : 28, TABLE, wide ? 8 : 4);
	put(&file, wide ? 54 : 42, wide ? 56 : 32, 2);
	put(&file, wide ? 56 : 44, 3, 2);
	memcpy(file.bytes + INTERPRETER, interpreter, sizeof(interpreter));
	memcpy(file.bytes + TEXTS, texts, sizeof(texts));
	put_segment(&file, 0, wide, 1, 0, file.length);
	put_segment(&file, 1, wide, 3, INTERPRETER, sizeof(interpreter));
	put_segment(&file, 2, wide, 2, DYNAMIC, 128);
	put_tag(&file, 0, wide, 1, 1);
	put_tag(&file, 1, wide, 1, 11);
	put_tag(&file, 2, wide, 5, ADDRESS + TEXTS);
	put_tag(&file, 3, wide, 29, 21);
	put_tag(&file, 4, wide, 15, 43);
	put_tag(&file, 5, wide, 0, 0);
	/* behind the end nothing counts */
	put_tag(&file, 6, wide, 1, 1);
	return file;
}

static int parse(struct file *file, struct arena *arena, struct elf_needs *needs)
{
	const struct elf_source source = { read_file, file };

	return elf_read(&source, arena, needs);
}

static void what_a_program_needs(void **state)
{
	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		CLEANUP_ARENA struct arena arena = { 0 };
		struct file file = sample(wide);
		struct elf_needs needs;

		assert_int_equal(parse(&file, &arena, &needs), 0);
		assert_string_equal(needs.interpreter, "/lib64/ld.so");
		assert_int_equal(needs.count, 2);
		assert_string_equal(needs.names[0], "libc.so.6");
		assert_string_equal(needs.names[1], "libm.so.6");
		assert_string_equal(needs.runpath, "$ORIGIN/../lib:/opt/x");
		assert_string_equal(needs.rpath, "/old");
		assert_int_equal(needs.machine, 62);
		assert_int_equal(needs.width, wide ? 64 : 32);
	}
}

static void a_static_program_needs_nothing(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct file file = sample(true);
	struct elf_needs needs;

	(void)state;
	put(&file, 56, 1, 2);
	assert_int_equal(parse(&file, &arena, &needs), 0);
	assert_null(needs.interpreter);
	assert_int_equal(needs.count, 0);
}

static void what_is_none_or_broken(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t length;
		int code;
	} rows[] = {
		{ 0, 0, 1, -ENOEXEC },
		{ 4, 3, 1, -ENOEXEC },
		{ 5, 2, 1, -ENOEXEC }, /* the highest byte first */
		{ 32, UINT64_MAX, 8, -EBADMSG },
		{ 32, 1024, 8, -EBADMSG },
		{ 54, 55, 2, -EBADMSG },
		{ 56, ELF_LIMIT_SEGMENTS + 1, 2, -EBADMSG },
		{ TABLE + 56 + 8, 4096, 8, -EBADMSG },	/* the interpreter is not there */
		{ TABLE + 56 + 32, 5, 8, -EBADMSG },	/* has no end */
		{ TABLE + 112 + 8, 1020, 8, -EBADMSG }, /* nor has the list */
		{ DYNAMIC + 8, UINT64_MAX, 8, -EBADMSG },
		{ DYNAMIC + 8, 1024, 8, -EBADMSG },
		{ DYNAMIC + 32 + 8, ADDRESS + 4096, 8, -EBADMSG }, /* in no segment */
		{ DYNAMIC + 32 + 8, 0, 8, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CLEANUP_ARENA struct arena arena = { 0 };
		struct file file = sample(true);
		struct elf_needs needs;
		int result;

		put(&file, rows[i].at, rows[i].value, rows[i].length);
		result = parse(&file, &arena, &needs);
		if (result != rows[i].code)
			fail_msg("row %zu: %d", i, result);
	}
}

/* Cut anywhere it is no program or a broken one, and nothing behind the end is read. */
static void cut(void **state)
{
	struct file whole = sample(true);

	(void)state;
	for (size_t length = 0; length < TEXTS + 48; length++) {
		CLEANUP_ARENA struct arena arena = { 0 };
		struct file file = whole;
		struct elf_needs needs;

		file.length = length;
		assert_true(parse(&file, &arena, &needs) < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_program_needs),
		cmocka_unit_test(a_static_program_needs_nothing),
		cmocka_unit_test(what_is_none_or_broken),
		cmocka_unit_test(cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
