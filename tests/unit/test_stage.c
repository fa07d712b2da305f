#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "home.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "workspace/stage_changes.h"
#include "workspace/stage_look.h"

/* Larger than the disk of any host that runs this. */
#define SPARSE_BYTES (1ll << 40)
#define DEEP 5000
/* Every so many levels there is another directory beside the next one. */
#define SIBLING 50
/* More than a level's share of the pool. */
#define WIDE 14000
#define WIDE_NAME 250

static int make_place(void **state)
{
	struct fixture *fixture = fixture_new();

	(void)umask(022);
	make(fixture, "lower", NULL);
	make(fixture, "upper", NULL);
	*state = fixture;
	return 0;
}

static int remove_place(void **state)
{
	if (seteuid(getuid()) < 0)
		return -1;
	fixture_free(*state);
	return 0;
}

static int open_in(const struct fixture *fixture, const char *name)
{
	char path[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", fixture->root, name);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void whiteout(const struct fixture *fixture, const char *path)
{
	char name[4096];

	make_way(fixture, path, name);
	assert_int_equal(mknod(name, S_IFCHR, makedev(0, 0)), 0);
}

static bool attribute(const struct fixture *fixture, const char *path, const char *key,
		      const char *value)
{
	char name[4096];

	(void)snprintf(name, sizeof(name), "%s/%s", fixture->root, path);
	return lsetxattr(name, key, value, strlen(value), 0) == 0;
}

/* "modified src/a file>file executable,\n" for each row */
static int note(void *context, const struct stage_change *change)
{
	struct buffer *text = context;

	buffer_format(text, "%s %s", stage_kind_name(change->kind), change->path);
	if (change->from)
		buffer_format(text, " from %s", change->from);
	buffer_format(text, " %s>%s", stage_type_name(change->before.type),
		      stage_type_name(change->after.type));
	for (unsigned i = 0; i < STAGE_MARK_COUNT; i++)
		if (change->marks & 1u << i)
			buffer_format(text, " +%s", stage_mark_name(i));
	if (change->unread)
		buffer_format(text, " (%s)", change->unread);
	buffer_byte(text, '\n');
	return 0;
}

static int list(const struct fixture *fixture, struct buffer *text)
{
	int CLEANUP_FD upper = open_in(fixture, "upper");
	int CLEANUP_FD lower = open_in(fixture, "lower");
	struct stage stage = {
		.upper_fd = upper, .lower_fd = lower, .take = note, .context = text
	};
	struct error error = ERROR_NONE;

	return stage_changes(&stage, &error);
}

static void changes_are(const struct fixture *fixture, const char *expected)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	assert_int_equal(list(fixture, &text), 0);
	assert_string_equal(text.data ? text.data : "", expected);
}

static void each_kind(void **state)
{
	struct fixture *fixture = *state;

	changes_are(fixture, "");
	make(fixture, "lower/same", "same");
	make(fixture, "upper/same", "same");
	make(fixture, "lower/longer", "text");
	make(fixture, "upper/longer", "text and more");
	make(fixture, "lower/other", "text");
	make(fixture, "upper/other", "TEXT");
	make(fixture, "lower/gone", "x");
	whiteout(fixture, "upper/gone");
	whiteout(fixture, "upper/never-was");
	make(fixture, "upper/new", "y");
	make(fixture, "lower/untouched/x", "x");
	make(fixture, "lower/dir/x", "x");
	make(fixture, "upper/dir/y/z", "z");
	make_link(fixture, "lower/link", "a");
	make_link(fixture, "upper/link", "b");
	make_link(fixture, "lower/same-link", "a");
	make_link(fixture, "upper/same-link", "a");
	make(fixture, "lower/was-file", "x");
	make_link(fixture, "upper/was-file", "a");
	changes_are(fixture, "created dir/y none>directory\n"
			     "created dir/y/z none>file\n"
			     "removed gone file>none\n"
			     "modified link link>link\n"
			     "modified longer file>file\n"
			     "created new none>file\n"
			     "modified other file>file\n"
			     "replaced was-file file>link\n");
}

static void whole_directories(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "lower/gone/a", "1");
	make(fixture, "lower/gone/b/c", "2");
	whiteout(fixture, "upper/gone");
	make(fixture, "lower/to-file/x", "3");
	make(fixture, "upper/to-file", "4");
	make(fixture, "lower/to-directory", "5");
	make(fixture, "upper/to-directory/y", "6");
	make(fixture, "lower/pure/kept", "7");
	make(fixture, "lower/pure/left", "8");
	make(fixture, "upper/pure/kept", "7");
	make(fixture, "upper/pure/more", "9");
	whiteout(fixture, "upper/pure/left");
	assert_true(attribute(fixture, "upper/pure", "user.overlay.opaque", "y"));
	/* marks of the kernel's own say nothing */
	assert_true(attribute(fixture, "upper/pure", "user.overlay.impure", "y"));
	assert_true(attribute(fixture, "upper/pure/kept", "user.overlay.origin", "xyz"));
	changes_are(fixture, "removed gone directory>none\n"
			     "removed gone/a file>none\n"
			     "removed gone/b directory>none\n"
			     "removed gone/b/c file>none\n"
			     "created pure/more none>file\n"
			     "removed pure/left file>none\n"
			     "replaced to-directory file>directory\n"
			     "created to-directory/y none>file\n"
			     "replaced to-file directory>file\n"
			     "removed to-file/x file>none\n");
}

static void marked_whiteouts(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "lower/dir/gone", "1");
	make(fixture, "lower/dir/emptied", "2");
	make(fixture, "upper/dir/gone", "");
	make(fixture, "upper/dir/emptied", "");
	assert_true(attribute(fixture, "upper/dir/gone", "user.overlay.whiteout", "y"));
	/* without the directory's mark it is a file */
	changes_are(fixture, "modified dir/emptied file>file\n"
			     "modified dir/gone file>file\n");
	assert_true(attribute(fixture, "upper/dir", "user.overlay.opaque", "x"));
	changes_are(fixture, "modified dir/emptied file>file\n"
			     "removed dir/gone file>none\n");
}

static void foreign_marks(void **state)
{
	static const char *const keys[] = { "user.overlay.redirect", "user.overlay.metacopy" };
	struct fixture *fixture = *state;

	for (size_t i = 0; i < 2; i++) {
		struct buffer CLEANUP_BUFFER text = { 0 };
		const char *path = i ? "upper/file" : "upper/dir";
		char name[4096];

		make(fixture, path, i ? "x" : NULL);
		assert_true(attribute(fixture, path, keys[i], "/elsewhere"));
		assert_int_equal(list(fixture, &text), -EUCLEAN);
		(void)snprintf(name, sizeof(name), "%s/%s", fixture->root, path);
		assert_int_equal(remove(name), 0);
	}
}

static void set_mode(const struct fixture *fixture, const char *path, mode_t mode)
{
	char name[4096];

	(void)snprintf(name, sizeof(name), "%s/%s", fixture->root, path);
	assert_int_equal(chmod(name, mode), 0);
}

static void modes_and_marks(void **state)
{
	struct fixture *fixture = *state;
	char from[4096], to[4096];

	make(fixture, "lower/x", "x");
	make(fixture, "upper/x", "x");
	set_mode(fixture, "upper/x", 0755);
	make(fixture, "lower/dir/y", "y");
	make(fixture, "upper/dir", NULL);
	set_mode(fixture, "upper/dir", 0700);
	make(fixture, "upper/s", "s");
	set_mode(fixture, "upper/s", 04755);
	make(fixture, "lower/a", "a");
	make(fixture, "upper/a", "a");
	assert_true(attribute(fixture, "upper/a", "user.note", "n"));
	make(fixture, "lower/b", "b");
	make(fixture, "upper/b", "b");
	assert_true(attribute(fixture, "upper/b", "user.note", "n"));
	assert_true(attribute(fixture, "lower/b", "user.note", "n"));
	make(fixture, "upper/l1", "l");
	(void)snprintf(from, sizeof(from), "%s/upper/l1", fixture->root);
	(void)snprintf(to, sizeof(to), "%s/upper/l2", fixture->root);
	assert_int_equal(link(from, to), 0);
	make(fixture, "upper/.envrc", "e");
	changes_are(fixture, "created .envrc none>file +executed-later\n"
			     "mode a file>file +attributes\n"
			     "mode dir directory>directory\n"
			     "created l1 none>file +hard-linked\n"
			     "created l2 none>file +hard-linked\n"
			     "created s none>file +executable +set-id\n"
			     "mode x file>file +executable\n");
}

static void renames(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "lower/dir/one", "first");
	make(fixture, "lower/dir/two", "second");
	make(fixture, "lower/dir/empty", "");
	make(fixture, "lower/kept", "third");
	make(fixture, "lower/twin-a", "twins");
	make(fixture, "lower/twin-b", "twins");
	whiteout(fixture, "upper/dir");
	whiteout(fixture, "upper/twin-a");
	whiteout(fixture, "upper/twin-b");
	make(fixture, "upper/moved/one", "first");
	make(fixture, "upper/moved/TWO", "second");
	make(fixture, "upper/moved/empty", "");
	make(fixture, "upper/moved/other", "FIRST");
	make(fixture, "upper/copy-of-kept", "third");
	make(fixture, "upper/in/twin-b", "twins");
	changes_are(fixture, "created copy-of-kept none>file\n"
			     "removed dir directory>none\n"
			     "removed dir/empty file>none\n"
			     "created in none>directory\n"
			     "renamed in/twin-b from twin-b file>file\n"
			     "created moved none>directory\n"
			     "renamed moved/TWO from dir/two file>file\n"
			     "created moved/empty none>file\n"
			     "renamed moved/one from dir/one file>file\n"
			     "created moved/other none>file\n"
			     "removed twin-a file>none\n");
}

/* Neither a link of the lower nor one of the upper tree leads anywhere. */
static void links_lead_nowhere(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "outside/secret", "secret");
	make_link(fixture, "lower/dir", "../outside");
	make(fixture, "upper/dir/secret", "secret");
	make(fixture, "lower/sub/x", "x");
	make_link(fixture, "upper/sub", "../outside");
	changes_are(fixture, "replaced dir link>directory\n"
			     "created dir/secret none>file\n"
			     "replaced sub directory>link\n"
			     "removed sub/x file>none\n");
}

static void special_files(void **state)
{
	struct fixture *fixture = *state;
	char name[4096];

	make(fixture, "lower/file", "x");
	make_way(fixture, "upper/file", name);
	assert_int_equal(mkfifo(name, 0644), 0);
	make_way(fixture, "lower/pipe", name);
	assert_int_equal(mkfifo(name, 0644), 0);
	make(fixture, "upper/pipe", "y");
	make_way(fixture, "upper/socket", name);
	assert_int_equal(mknod(name, S_IFSOCK | 0644, 0), 0);
	changes_are(fixture, "replaced file file>fifo\n"
			     "replaced pipe fifo>file\n"
			     "created socket none>socket\n");
}

static void sparse(const struct fixture *fixture, const char *path, const char *tail)
{
	char name[4096];
	int fd;

	make(fixture, path, "head");
	(void)snprintf(name, sizeof(name), "%s/%s", fixture->root, path);
	fd = open(name, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, tail, 4, SPARSE_BYTES), 4);
	assert_int_equal(close(fd), 0);
}

static int look(void *context, const struct stage_change *change)
{
	char sha256[SHA256_HEX_BYTES];

	assert_string_equal(stage_hash(change, STAGE_AFTER, sha256), "it is too large");
	*(unsigned *)context |= stage_look(change);
	return 0;
}

static void sparse_giants(void **state)
{
	struct fixture *fixture = *state;
	unsigned marks = 0;
	int CLEANUP_FD upper = -1;
	int CLEANUP_FD lower = -1;
	struct stage stage = { .take = look, .context = &marks };

	sparse(fixture, "lower/same", "tail");
	sparse(fixture, "upper/same", "tail");
	sparse(fixture, "lower/other", "tail");
	sparse(fixture, "upper/other", "TAIL");
	changes_are(fixture, "modified other file>file\n");
	upper = stage.upper_fd = open_in(fixture, "upper");
	lower = stage.lower_fd = open_in(fixture, "lower");
	assert_int_equal(stage_walk(&stage, NULL), 0);
	assert_int_equal(marks, STAGE_MARK_BINARY);
}

/* Nested deeper than any path that one system call takes; siblings make the walk come back. */
static void deep_trees(void **state)
{
	struct fixture *fixture = *state;
	struct buffer CLEANUP_BUFFER text = { 0 };
	int CLEANUP_FD here = open_in(fixture, "upper");
	size_t rows = 0;

	for (int i = 0; i < DEEP; i++) {
		int next;

		assert_int_equal(mkdirat(here, "d", 0755), 0);
		if (i % SIBLING == 0)
			assert_int_equal(mkdirat(here, "e", 0755), 0);
		next = openat(here, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		fd_close(&here);
		here = next;
	}
	assert_int_equal(list(fixture, &text), 0);
	for (const char *at = text.data; (at = strchr(at, '\n')); at++)
		rows++;
	assert_int_equal(rows, DEEP + DEEP / SIBLING);
	/* nftw(3) of the fixture needs paths: from the bottom, by what leads back */
	for (int i = DEEP - 1; i >= 0; i--) {
		int next = openat(here, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_true(next >= 0);
		assert_int_equal(unlinkat(next, "d", AT_REMOVEDIR), 0);
		if (i % SIBLING == 0)
			assert_int_equal(unlinkat(next, "e", AT_REMOVEDIR), 0);
		fd_close(&here);
		here = next;
	}
}

/* Directories whose names do not fit into a level's share any more, one below the other. */
static void wide_trees(void **state)
{
	struct fixture *fixture = *state;
	struct buffer CLEANUP_BUFFER text = { 0 };
	char path[512], name[4096], suffix[WIDE_NAME - 4];
	size_t rows = 0;

	memset(suffix, 'x', sizeof(suffix) - 1);
	suffix[sizeof(suffix) - 1] = '\0';
	for (int i = 0; i < WIDE; i++) {
		(void)snprintf(path, sizeof(path), "upper/%05d%s", i, suffix);
		make_way(fixture, path, name);
		assert_int_equal(close(creat(name, 0644)), 0);
	}
	assert_int_equal(list(fixture, &text), 0);
	for (const char *at = text.data; (at = strchr(at, '\n')); at++)
		rows++;
	assert_int_equal(rows, WIDE);
	for (int i = 0; i < WIDE; i += 997) {
		(void)snprintf(path, sizeof(path), "created %05d%s none", i, suffix);
		assert_non_null(strstr(text.data, path));
	}
}

/* Root may read all: its tree is given to somebody, who then looks at it. */
#define SOMEBODY 65534

static int give_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status, (void)type, (void)place;
	return lchown(path, SOMEBODY, SOMEBODY);
}

static void not_for_us(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "upper/closed/x", "x");
	set_mode(fixture, "upper/closed", 0);
	make(fixture, "lower/blind/x", "x");
	make(fixture, "upper/blind/x", "y");
	set_mode(fixture, "upper/blind", 0600);
	set_mode(fixture, "lower/blind", 0600);
	make(fixture, "lower/file", "x");
	make(fixture, "upper/file", "x");
	set_mode(fixture, "upper/file", 0);
	set_mode(fixture, "lower/file", 0);
	if (geteuid() == 0) {
		assert_int_equal(nftw(fixture->root, give_one, 32, FTW_PHYS), 0);
		assert_int_equal(seteuid(SOMEBODY), 0);
	}
	changes_are(fixture, "unread blind/x none>none (it cannot be read)\n"
			     "created closed none>directory (it cannot be read)\n"
			     "modified file file>file (it cannot be read)\n");
}

static int first_marks(void *context, const struct stage_change *change)
{
	*(unsigned *)context = stage_look(change);
	return 0;
}

static unsigned marks_of(const struct fixture *fixture, const char *content)
{
	unsigned marks = 0;
	int CLEANUP_FD upper = -1;
	int CLEANUP_FD lower = -1;
	struct stage stage = { .take = first_marks, .context = &marks };

	make(fixture, "upper/file", content);
	upper = stage.upper_fd = open_in(fixture, "upper");
	lower = stage.lower_fd = open_in(fixture, "lower");
	assert_int_equal(stage_walk(&stage, NULL), 0);
	return marks;
}

static void contents(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(marks_of(fixture, "nothing\n"), 0);
	assert_int_equal(marks_of(fixture, ""), 0);
	assert_int_equal(marks_of(fixture, "t = ghp_012345678901234567890123456789abcdef\n"),
			 STAGE_MARK_CREDENTIAL);
}

static int stop(void *context, const struct stage_change *change)
{
	(void)change;
	++*(int *)context;
	return -ECANCELED;
}

static void ends_when_told(void **state)
{
	struct fixture *fixture = *state;
	int calls = 0;
	int CLEANUP_FD upper = open_in(fixture, "upper");
	int CLEANUP_FD lower = open_in(fixture, "lower");
	struct stage stage = {
		.upper_fd = upper, .lower_fd = lower, .take = stop, .context = &calls
	};

	make(fixture, "upper/a/b", "x");
	assert_int_equal(stage_changes(&stage, NULL), -ECANCELED);
	assert_int_equal(calls, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)
	const struct CMUnitTest tests[] = {
		CASE(each_kind),	  CASE(whole_directories), CASE(marked_whiteouts),
		CASE(foreign_marks),	  CASE(modes_and_marks),   CASE(renames),
		CASE(links_lead_nowhere), CASE(special_files),	   CASE(sparse_giants),
		CASE(deep_trees),	  CASE(wide_trees),	   CASE(not_for_us),
		CASE(contents),		  CASE(ends_when_told),
	};

	return cmocka_run_group_tests_name("stage", tests, NULL, NULL);
}
