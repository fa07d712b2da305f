#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

static void closes(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int old = fd, taken;

	(void)state;
	assert_true(fd > 2);
	taken = TAKE_FD(fd);
	assert_int_equal(taken, old);
	assert_int_equal(fd, -1);
	errno = EXDEV;
	fd_close(&fd); /* not open: nothing happens */
	fd_close(&taken);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(taken, -1);
	assert_int_equal(fcntl(old, F_GETFD), -1);
}

static void opens_what_is_its_own(void **state)
{
	char path[] = "/tmp/bawn-fd.XXXXXX";
	int CLEANUP_FD directory = -1, fd = -1;
	struct stat status;

	(void)state;
	assert_non_null(mkdtemp(path));
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = fd_open_own(directory, "file", O_WRONLY);
	assert_int_equal(fd_write_all(fd, "abc", 3), 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	fd_close(&fd);
	/* as it is, then emptied */
	fd = fd_open_own(directory, "file", O_WRONLY);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_size, 3);
	fd_close(&fd);
	fd = fd_open_own(directory, "file", O_RDWR | O_TRUNC);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_size, 0);
	assert_int_equal(fd_write_all(fd, "abc", 3), 0);
	fd_close(&fd);

	/* neither followed nor waited for */
	assert_int_equal(symlinkat("file", directory, "link"), 0);
	fd = fd_open_own(directory, "link", O_WRONLY | O_TRUNC);
	assert_true(fd >= 0);
	assert_int_equal(fstatat(directory, "file", &status, 0), 0);
	assert_int_equal(status.st_size, 3);
	fd_close(&fd);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(unlinkat(directory, "link", 0), 0);
		assert_int_equal(mkfifoat(directory, "link", 0600), 0);
		fd = fd_open_own(directory, "link", i ? O_WRONLY : O_RDWR);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &status), 0);
		assert_true(S_ISREG(status.st_mode));
		fd_close(&fd);
	}
	assert_int_equal(mkdirat(directory, "directory", 0700), 0);
	assert_int_equal(fd_open_own(directory, "directory", O_WRONLY), -EISDIR);
	assert_int_equal(fd_open_own(directory, "none/file", O_WRONLY), -ENOENT);

	/* whole or not at all */
	assert_int_equal(fd_replace(directory, "link", "beside", "xy", 2), 0);
	assert_int_equal(fstatat(directory, "link", &status, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(status.st_size, 2);
	assert_int_equal(fd_replace(directory, "directory", "beside", "xy", 2), -EISDIR);
	assert_int_equal(faccessat(directory, "beside", F_OK, 0), -1);

	assert_int_equal(unlinkat(directory, "directory", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(directory, "link", 0), 0);
	assert_int_equal(unlinkat(directory, "file", 0), 0);
	assert_int_equal(rmdir(path), 0);
}

static void writes_and_reads(void **state)
{
	char bytes[10] = "";
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fd_write_all(ends[1], "abc", 3), 0);
	assert_int_equal(fd_write_all(ends[1], "", 0), 0);
	assert_int_equal(fd_read_all(ends[0], bytes, 2), 2);
	assert_string_equal(bytes, "ab");
	fd_close(&ends[1]);
	assert_int_equal(fd_read_all(ends[0], bytes, sizeof(bytes)), 1);
	assert_int_equal(fd_read_all(ends[0], bytes, sizeof(bytes)), 0);
	fd_close(&ends[0]);
}

static void failures(void **state)
{
	char byte;
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	int ends[2];

	(void)state;
	assert_true(full >= 0);
	assert_int_equal(fd_write_all(full, "a", 1), -ENOSPC);
	assert_int_equal(fd_read_all(full, &byte, 1), -EBADF); /* opened for writing */
	fd_close(&full);
	assert_int_equal(fd_write_all(-1, "a", 1), -EBADF);

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(fd_read_all(ends[0], &byte, 1), -EAGAIN);
	fd_close(&ends[0]);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(fd_write_all(ends[1], "a", 1), -EPIPE);
	fd_close(&ends[1]);
}

/* More than a pipe holds, read by a child in small parts. */
static void long_write(void **state)
{
	size_t length = 1 << 20;
	char *bytes = calloc(1, length);
	int ends[2], status;
	pid_t child;

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(ends[1]);
		_exit(fd_read_all(ends[0], bytes, length) == (ssize_t)length &&
				      read(ends[0], bytes, 1) == 0 ?
			      0 :
			      1);
	}
	fd_close(&ends[0]);
	assert_int_equal(fd_write_all(ends[1], bytes, length), 0);
	fd_close(&ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	free(bytes);
}

/* In a child: each pattern of closed standard descriptors is filled, what is open stays. */
static void reserves(void **state)
{
	(void)state;
	for (int closed = 0; closed < 8; closed++) {
		int status;
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0) {
			int next;

			for (int fd = 0; fd <= 2; fd++)
				if (closed >> fd & 1)
					close(fd);
			if (fd_reserve_standard() < 0)
				_exit(1);
			for (int fd = 0; fd <= 2; fd++)
				if (fcntl(fd, F_GETFD) != 0)
					_exit(2);
			next = open("/dev/null", O_RDONLY | O_CLOEXEC);
			_exit(next > 2 ? 0 : 3);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closes),	    cmocka_unit_test(opens_what_is_its_own),
		cmocka_unit_test(writes_and_reads), cmocka_unit_test(failures),
		cmocka_unit_test(long_write),	    cmocka_unit_test(reserves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
