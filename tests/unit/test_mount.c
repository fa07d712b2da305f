#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "kernel/mount.h"

static char place[] = "/tmp/bawn-mount.XXXXXX";
static char one[64], link_to_one[64], by_link[64], other[64];

static int make_place(void **state)
{
	(void)state;
	if (!mkdtemp(place))
		return -1;
	(void)snprintf(one, sizeof(one), "%s/one", place);
	(void)snprintf(other, sizeof(other), "%s/other", place);
	(void)snprintf(link_to_one, sizeof(link_to_one), "%s/link", place);
	(void)snprintf(by_link, sizeof(by_link), "%s/link/inner", place);
	if (mkdir(one, 0755) < 0 || mkdir(other, 0755) < 0 || symlink("one", link_to_one) < 0)
		return -1;
	return mkdir(by_link, 0755);
}

static int remove_place(void **state)
{
	(void)state;
	(void)rmdir(by_link);
	(void)unlink(link_to_one);
	(void)rmdir(one);
	(void)rmdir(other);
	return rmdir(place);
}

static struct stat status_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status;
}

static void sources(void **state)
{
	struct stat status = status_of(one);
	int fd = mount_source(one, status.st_dev, status.st_ino);

	(void)state;
	assert_true(fd >= 0);
	fd_close(&fd);
	assert_int_equal(mount_source(one, status.st_dev, status.st_ino + 1), -ESTALE);
	assert_int_equal(mount_source(one, status.st_dev + 1, status.st_ino), -ESTALE);
	assert_int_equal(mount_source(link_to_one, status.st_dev, status.st_ino), -ELOOP);
	assert_int_equal(mount_source(by_link, 0, 0), -ELOOP);
}

/* In a mount namespace of its own; the number of the first expectation that fails, or 0. */
static int clone_and_attach(void)
{
	struct stat status = { 0 }, inner = { 0 };
	int CLEANUP_FD root = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int CLEANUP_FD free_before = -1;
	int CLEANUP_FD free_after = -1;
	int tree = -7;

	if (stat(one, &status) < 0 || stat(by_link, &inner) < 0 || root < 0)
		return 1;
	free_before = open("/", O_PATH | O_CLOEXEC);
	if (mount_clone_path(AT_FDCWD, one, status.st_dev, status.st_ino + 1, &tree) != -ESTALE ||
	    mount_clone_path(AT_FDCWD, one, status.st_dev + 1, status.st_ino, &tree) != -ESTALE)
		return 2;
	/* the last component is the link itself */
	if (mount_clone_path(AT_FDCWD, link_to_one, status.st_dev, status.st_ino, &tree) != -ESTALE)
		return 3;
	if (mount_clone_path(AT_FDCWD, "/nowhere", 0, 0, &tree) != -ENOENT || tree != -7)
		return 4;
	/* no descriptor was left behind by a refusal */
	free_after = open("/", O_PATH | O_CLOEXEC);
	if (free_after != free_before + 1)
		return 5;
	if (mount_clone_path(AT_FDCWD, one, status.st_dev, status.st_ino, &tree) < 0)
		return 6;
	if (mount_restrict(tree, MOUNT_READ_ONLY) < 0 || mount_attach_path(tree, root, "other") < 0)
		return 7;
	fd_close(&tree);
	if (stat(other, &status) < 0 || faccessat(root, "other/inner", F_OK, 0) < 0)
		return 8;
	if (mkdirat(root, "other/new", 0755) == 0 || errno != EROFS)
		return 9;
	if (mount_clone_path(root, "one/inner", 0, 0, &tree) < 0 ||
	    mount_attach_path(tree, root, "absent") != -ENOENT)
		return 10;
	fd_close(&tree);
	return 0;
}

static void paths(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(99);
		_exit(clone_and_attach());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	/* a host without user namespaces; bawn does not run there either */
	if (WEXITSTATUS(status) == 99)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sources),
		cmocka_unit_test(paths),
	};

	return cmocka_run_group_tests_name("mount", tests, make_place, remove_place);
}
