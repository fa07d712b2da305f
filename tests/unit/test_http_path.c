/* One spelling of a path for rules to match, and none for what could be read in two ways. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/http_path.h"

static char room[HTTP_PATH_LIMIT_BYTES + 1];

static int normalise(const char *path, size_t length)
{
	/* as long as it is, so that a read beyond it is seen by ASan */
	char *copy = malloc(length ? length : 1);
	const char *why = NULL;
	int result;

	assert_non_null(copy);
	memcpy(copy, path, length);
	result = http_path_normalise(copy, length, room, sizeof(room), &why);
	free(copy);
	assert_int_equal(result < 0, why != NULL);
	return result;
}

static void one_spelling(void **state)
{
	static const struct {
		const char *path, *text;
	} rows[] = {
		{ "/", "/" },
		{ "*", "*" },
		{ "/a/b/", "/a/b/" },
		{ "/a?x=/../b", "/a" },
		{ "/a?", "/a" },
		{ "/%61%2Db", "/a-b" },
		{ "/%41%2e%2D%5f%7E", "/A.-_~" },
		{ "/a%3ab%40c", "/a:b@c" },
		{ "/a%20b", "/a%20b" },
		{ "/a%3fb", "/a%3Fb" },
		{ "/a%23b", "/a%23b" },
		{ "/%c3%a9", "/%C3%A9" },
		{ "/100%25", "/100%25" },
		{ "/100%25/a", "/100%25/a" },
		{ "/100%25g1", "/100%25g1" },
		{ "/a|b[c]{d}^`\"<>", "/a%7Cb%5Bc%5D%7Bd%7D%5E%60%22%3C%3E" },
		{ "/...", "/..." },
		{ "/.a/..b/c..", "/.a/..b/c.." },
		{ "/!$&'()*+,=:@", "/!$&'()*+,=:@" },
		{ "/.", "/" },
		{ "/./", "/" },
		{ "/a/.", "/a/" },
		{ "/./a/././b", "/a/b" },
		{ "/a/%2e/b", "/a/b" },
		{ "/.a./b.", "/.a./b." },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int length = normalise(rows[i].path, strlen(rows[i].path));

		assert_int_equal(length, strlen(rows[i].text));
		assert_string_equal(room, rows[i].text);
		/* its own normal form */
		if (rows[i].text[0] == '/') {
			assert_int_equal(normalise(rows[i].text, strlen(rows[i].text)), length);
			assert_string_equal(room, rows[i].text);
		}
	}
}

static void what_servers_differ_about_is_refused(void **state)
{
	static const char *const paths[] = {
		"",
		"a",
		"?a",
		"**",
		"//",
		"//a",
		"/a//b",
		"/a//",
		"/..",
		"/a/../b",
		"/a/..",
		"/a/.//b",
		"/./../a",
		"/%2e%2e/a",
		"/%2E./a",
		"/.%2e",
		"/a%2fb",
		"/a%2Fb",
		"/a\\b",
		"/a%5cb",
		"/a;b",
		"/a;/../b",
		"/a%3bb",
		"/a%00",
		"/a%0ab",
		"/a%7f",
		"/a%",
		"/a%2",
		"/a%2g",
		"/a%g2",
		"/a%u002f",
		"/a%252f",
		"/a%252e%252e",
		"/a%25%32%66", /* read twice, too: %2f */
		"/a%2%66",
		"/a b",
		"/a\tb",
		"/a\x7f",
		"/a\xc3\xa9",
		"/%c0%af",
		"/%C0%AE%C0%AE",
		"/%c1%9c",
		"/%e0%80%af",
		"/%f0%80%80%af",
		"/%f8%80%80%80%af",
		"/%ff",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (normalise(paths[i], strlen(paths[i])) != -EINVAL)
			fail_msg("taken: %s as %s", paths[i], room);
	assert_int_equal(normalise("/a\0b", 4), -EINVAL);
}

static void the_text_fits(void **state)
{
	static char path[HTTP_PATH_LIMIT_BYTES + 2];
	char small[8];
	const char *why;

	(void)state;
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	assert_int_equal(normalise(path, HTTP_PATH_LIMIT_BYTES - 2), HTTP_PATH_LIMIT_BYTES - 2);
	assert_int_equal(normalise(path, HTTP_PATH_LIMIT_BYTES + 1), -E2BIG);
	path[HTTP_PATH_LIMIT_BYTES - 2] = '?';
	assert_int_equal(normalise(path, sizeof(path)), HTTP_PATH_LIMIT_BYTES - 2);
	assert_int_equal(http_path_normalise("/a\"\"", 4, small, sizeof(small), &why), -E2BIG);
	assert_int_equal(http_path_normalise("/a\"", 3, small, sizeof(small), &why), 5);
	assert_string_equal(small, "/a%22");
	assert_int_equal(http_path_normalise("*", 1, small, 1, &why), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_spelling),
		cmocka_unit_test(what_servers_differ_about_is_refused),
		cmocka_unit_test(the_text_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
