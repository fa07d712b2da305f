#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "workspace/text_diff.h"

static int take(void *context, enum text_diff_line kind, const char *bytes, size_t length)
{
	static const char signs[] = { '@', ' ', '-', '+', '\\' };

	if (kind != TEXT_DIFF_HUNK)
		buffer_byte(context, signs[kind]);
	buffer_append(context, bytes, length);
	buffer_byte(context, '\n');
	return 0;
}

static struct text of(const char *text)
{
	return (struct text){ text, strlen(text) };
}

static void differ(const char *before, const char *after, const char *expected)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	const struct text_diff diff = { .take = take, .context = &buffer };
	struct text_diff_count count;

	assert_int_equal(text_diff(of(before), of(after), &diff, &count), 0);
	assert_false(count.is_coarse);
	assert_string_equal(buffer.data ? buffer.data : "", expected);
}

static void hunks(void **state)
{
	(void)state;
	differ("", "", "");
	differ("a\n", "a\n", "");
	differ("", "a\n", "@@ -0,0 +1 @@\n+a\n");
	differ("a\n", "", "@@ -1 +0,0 @@\n-a\n");
	differ("a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
	differ("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\nx\n",
	       "@@ -7,3 +7,4 @@\n 7\n 8\n 9\n+x\n");
	differ("\n\n", "\n\n\n", "@@ -1,2 +1,3 @@\n \n \n+\n");
}

static void no_newline(void **state)
{
	(void)state;
	differ("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
	differ("a\n", "a", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
	differ("a\nb", "A\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n");
	differ("", "a", "@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n");
}

/* Six unchanged lines lie between two changes of one hunk, seven between those of two. */
static void contexts(void **state)
{
	(void)state;
	differ("x\n1\n2\n3\n4\n5\n6\ny\n", "X\n1\n2\n3\n4\n5\n6\nY\n",
	       "@@ -1,8 +1,8 @@\n-x\n+X\n 1\n 2\n 3\n 4\n 5\n 6\n-y\n+Y\n");
	differ("x\n1\n2\n3\n4\n5\n6\n7\ny\n", "X\n1\n2\n3\n4\n5\n6\n7\nY\n",
	       "@@ -1,4 +1,4 @@\n-x\n+X\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-y\n+Y\n");
}

/* The example of Myers' paper: five changes are the fewest. */
static void shortest(void **state)
{
	const struct text_diff diff = { 0 };
	struct text_diff_count count;

	(void)state;
	assert_int_equal(
		text_diff(of("A\nB\nC\nA\nB\nB\nA\n"), of("C\nB\nA\nB\nA\nC\n"), &diff, &count), 0);
	assert_int_equal(count.added + count.removed, 5);
}

/* The longest common subsequence by the plain table. */
static size_t fewest(const char *before, size_t rows, const char *after, size_t columns)
{
	size_t table[33][33] = { 0 };

	for (size_t i = 1; i <= rows; i++)
		for (size_t k = 1; k <= columns; k++)
			table[i][k] = before[2 * i - 2] == after[2 * k - 2] ?
					      table[i - 1][k - 1] + 1 :
				      table[i - 1][k] > table[i][k - 1] ? table[i - 1][k] :
									  table[i][k - 1];
	return rows + columns - 2 * table[rows][columns];
}

static size_t random_text(char *text)
{
	size_t lines = (size_t)(rand() % 33);

	for (size_t i = 0; i < lines; i++) {
		text[2 * i] = (char)('a' + rand() % 4);
		text[2 * i + 1] = '\n';
	}
	text[2 * lines] = '\0';
	return lines;
}

static void always_shortest(void **state)
{
	const struct text_diff diff = { 0 };
	struct text_diff_count count;
	char before[67], after[67];

	(void)state;
	srand(7);
	for (int i = 0; i < 3000; i++) {
		size_t rows = random_text(before), columns = random_text(after);

		assert_int_equal(text_diff(of(before), of(after), &diff, &count), 0);
		assert_int_equal(count.added + count.removed, fewest(before, rows, after, columns));
	}
}

/* Without work to spend the script is longer, and says so. */
static void used_up(void **state)
{
	const struct text_diff diff = { .work = 1 };
	struct text_diff_count count;

	(void)state;
	assert_int_equal(
		text_diff(of("x\na\nb\nc\ny\nz\n"), of("x\nb\na\ny\nc\nz\n"), &diff, &count), 0);
	assert_true(count.is_coarse);
	assert_int_equal(count.removed, 4);
	assert_int_equal(count.added, 4);
}

static void limits(void **state)
{
	const struct text_diff diff = { 0 };
	char *bytes = malloc(TEXT_DIFF_LIMIT_BYTES + 1);
	struct text_diff_count count = { .added = 7 };

	(void)state;
	assert_non_null(bytes);
	memset(bytes, 'x', TEXT_DIFF_LIMIT_BYTES + 1);
	assert_int_equal(
		text_diff((struct text){ bytes, TEXT_DIFF_LIMIT_BYTES + 1 }, of(""), &diff, &count),
		-EFBIG);
	assert_int_equal(
		text_diff((struct text){ bytes, TEXT_DIFF_LIMIT_BYTES }, of(""), &diff, &count), 0);
	assert_int_equal(count.removed, 1);
	memset(bytes, '\n', TEXT_DIFF_LIMIT_LINES + 1);
	assert_int_equal(
		text_diff(of(""), (struct text){ bytes, TEXT_DIFF_LIMIT_LINES + 1 }, &diff, &count),
		-EFBIG);
	assert_int_equal(
		text_diff(of(""), (struct text){ bytes, TEXT_DIFF_LIMIT_LINES }, &diff, &count), 0);
	assert_int_equal(count.added, TEXT_DIFF_LIMIT_LINES);
	free(bytes);
}

static int refuse(void *context, enum text_diff_line kind, const char *bytes, size_t length)
{
	(void)kind, (void)bytes, (void)length;
	return ++*(int *)context == 2 ? -EPIPE : 0;
}

static void ends_when_told(void **state)
{
	int calls = 0;
	const struct text_diff diff = { .take = refuse, .context = &calls };
	struct text_diff_count count;

	(void)state;
	assert_int_equal(text_diff(of("a\n"), of("b\n"), &diff, &count), -EPIPE);
	assert_int_equal(calls, 2);
}

static void binary(void **state)
{
	(void)state;
	assert_true(text_is_binary((struct text){ "a\0b", 3 }));
	assert_false(text_is_binary(of("a\033\xff\n")));
	assert_false(text_is_binary((struct text){ NULL, 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hunks),	   cmocka_unit_test(no_newline),
		cmocka_unit_test(contexts),	   cmocka_unit_test(shortest),
		cmocka_unit_test(always_shortest), cmocka_unit_test(used_up),
		cmocka_unit_test(limits),	   cmocka_unit_test(ends_when_told),
		cmocka_unit_test(binary),
	};

	return cmocka_run_group_tests_name("text_diff", tests, NULL, NULL);
}
