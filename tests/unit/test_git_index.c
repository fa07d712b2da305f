#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/sha1.h"
#include "workspace/git_index.h"

/* An index that is built up: version, then entries, extensions and the checksum. */
struct made {
	unsigned char bytes[4096];
	size_t length;
	unsigned version;
};

static void put32(struct made *made, uint32_t value)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		made->bytes[made->length++] = (unsigned char)(value >> shift);
}

static void put(struct made *made, const void *bytes, size_t length)
{
	memcpy(made->bytes + made->length, bytes, length);
	made->length += length;
}

static struct made begin(unsigned version, uint32_t count)
{
	struct made made = { .version = version };

	put(&made, "DIRC", 4);
	put32(&made, version);
	put32(&made, count);
	return made;
}

/* strip: of version 4, how much of the path before is left out. */
static void entry(struct made *made, uint32_t mode, const char *path, unsigned char strip,
		  size_t whole)
{
	size_t first = made->length;

	for (int i = 0; i < 6; i++)
		put32(made, 1000u + (uint32_t)i);
	put32(made, mode);
	for (int i = 0; i < 3; i++)
		put32(made, 5);
	memset(made->bytes + made->length, 0xab, 20);
	made->length += 20;
	made->bytes[made->length++] = 0;
	made->bytes[made->length++] = (unsigned char)whole;
	if (made->version == 4)
		made->bytes[made->length++] = strip;
	put(made, path, strlen(path) + 1);
	while (made->version != 4 && (made->length - first) % 8)
		made->bytes[made->length++] = 0;
}

static void extension(struct made *made, const char *name, uint32_t length)
{
	put(made, name, 4);
	put32(made, length);
	memset(made->bytes + made->length, 0, length);
	made->length += length;
}

static void end(struct made *made)
{
	unsigned char digest[SHA1_BYTES];

	sha1(made->bytes, made->length, digest);
	put(made, digest, sizeof(digest));
}

static const char *fault(const struct made *made)
{
	return git_index_fault(made->bytes, made->length, 20);
}

static struct made of_path(uint32_t mode, const char *path)
{
	struct made made = begin(2, 1);

	entry(&made, mode, path, 0, strlen(path));
	end(&made);
	return made;
}

static void whole(void **state)
{
	struct made made = begin(2, 3);

	(void)state;
	entry(&made, 0100644, "a", 0, 1);
	entry(&made, 0120000, "d/link", 0, 6);
	entry(&made, 0160000, "module", 0, 6);
	extension(&made, "TREE", 30);
	extension(&made, "FSMN", 8);
	end(&made);
	assert_null(fault(&made));
	assert_true(git_index_has(made.bytes, made.length, 20, "FSMN"));
	assert_false(git_index_has(made.bytes, made.length, 20, "UNTR"));
}

/* Each byte that is missing is noticed, and nothing is read behind the end. */
static void cut_off(void **state)
{
	struct made made = of_path(0100644, "some/path");

	(void)state;
	for (size_t length = 0; length < made.length; length++) {
		unsigned char *exact = malloc(length ? length : 1);

		memcpy(exact, made.bytes, length);
		assert_non_null(git_index_fault(exact, length, 20));
		free(exact);
	}
}

static void paths(void **state)
{
	static const char *const good[] = { "a",	   ".gitignore", ".gitmodules",
					    "a/.github/x", ".giT2",	 "git/x",
					    "..a",	   "a/...",	 "git~2" };
	static const char *const bad[] = {
		".git/hooks/x",
		".git",
		"a/.git/x",
		".GIT/x",
		".git./x",
		"../x",
		"a/../b",
		"./a",
		"/a",
		"a//b",
		"git~1/x",
		"GIT~1/x",
		".git /x",
		".git::$x/y",
		".g\xe2\x80\x8cit/x",
		"\xef\xbb\xbf.git/x",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct made made = of_path(0100644, good[i]);

		if (fault(&made))
			fail_msg("%s: %s", good[i], fault(&made));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct made made = of_path(0100644, bad[i]);

		if (!fault(&made))
			fail_msg("%s", bad[i]);
	}
}

static void modes_and_extensions(void **state)
{
	struct made made = of_path(0104755, "a");

	(void)state;
	assert_non_null(fault(&made));
	made = begin(2, 0);
	extension(&made, "link", 20);
	end(&made);
	assert_string_equal(fault(&made), "it is split (core.splitIndex)");
	made = begin(2, 0);
	extension(&made, "evil", 0);
	end(&made);
	assert_non_null(fault(&made));
	made = begin(2, 0);
	put(&made, "TREE\xff\xff\xff\xff", 8);
	end(&made);
	assert_non_null(fault(&made));
	made = begin(5, 0);
	end(&made);
	assert_non_null(fault(&made));
	made = begin(2, 0xffffffff);
	end(&made);
	assert_non_null(fault(&made));
}

static void checksum(void **state)
{
	struct made made = of_path(0100644, "a");

	(void)state;
	made.bytes[made.length - 1] ^= 1;
	assert_string_equal(fault(&made), "its checksum does not hold");
	memset(made.bytes + made.length - 20, 0, 20);
	assert_null(fault(&made));
}

static void version_four(void **state)
{
	struct made made = begin(4, 2), evil = begin(4, 2), beyond = begin(4, 1);

	(void)state;
	entry(&made, 0100644, "dir/one", 0, 7);
	entry(&made, 0100644, "two", 3, 7);
	end(&made);
	assert_null(fault(&made));
	/* ".g" and "it/x": only together what they are */
	entry(&evil, 0100644, ".gx", 0, 3);
	entry(&evil, 0100644, "it/x", 1, 6);
	end(&evil);
	assert_non_null(fault(&evil));
	entry(&beyond, 0100644, "a", 9, 1);
	end(&beyond);
	assert_non_null(fault(&beyond));
}

static bool is_same(const struct made *a, const struct made *b)
{
	return git_index_is_same(a->bytes, a->length, b->bytes, b->length, 20);
}

static void same_entries(void **state)
{
	struct made one = of_path(0100644, "a"), other = one, longer = begin(2, 1);

	(void)state;
	/* times are no difference, nor are extensions and checksum */
	other.bytes[12] ^= 0xff;
	assert_true(is_same(&one, &other));
	entry(&longer, 0100644, "a", 0, 1);
	extension(&longer, "TREE", 4);
	end(&longer);
	assert_true(is_same(&one, &longer));
	other = one;
	other.bytes[12 + 40] ^= 1;
	assert_false(is_same(&one, &other));
	other = of_path(0100755, "a");
	assert_false(is_same(&one, &other));
	other = of_path(0100644, "b");
	assert_false(is_same(&one, &other));
	other = begin(2, 0);
	end(&other);
	assert_false(is_same(&one, &other));
	assert_false(git_index_is_same(one.bytes, 8, one.bytes, 8, 20));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),	cmocka_unit_test(cut_off),
		cmocka_unit_test(paths),	cmocka_unit_test(modes_and_extensions),
		cmocka_unit_test(checksum),	cmocka_unit_test(version_four),
		cmocka_unit_test(same_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
