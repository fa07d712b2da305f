#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/danger.h"

#define HOME "/home/u"
#define STATE "/home/u/.local/state/bawn"

static void check(const char *path, enum path_class class, bool dangerous)
{
	const char *why = danger_of_path(path, class, HOME, STATE);

	if ((why != NULL) != dangerous)
		fail_msg("%s as %s: %s", path, path_class_name(class), why ? why : "allowed");
	if (why)
		assert_true(why[0] && why[strlen(why) - 1] != '.');
}

/* HC11: a bind of /, the home, /proc, /sys, /dev, the docker socket, and of what holds them. */
static void never_shown(void **state)
{
	static const char *const paths[] = {
		"/",
		"/home",
		HOME,
		"/home/u/.local",
		"/home/u/.local/state",
		STATE,
		STATE "/run",
		"/root",
		"/var",
		"/proc",
		"/proc/1/root",
		"/proc/self/fd/3",
		"/sys",
		"/sys/fs/cgroup",
		"/sys/kernel/debug",
		"/dev",
		"/dev/mem",
		"/dev/shm",
		"/run",
		"/run/docker.sock",
		"/run/user/1000",
		"/run/user/1000/bus",
		"/var/run",
		"/var/run/docker.sock",
		"/boot",
		"/boot/vmlinuz",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		check(paths[i], PATH_READ, true);
		check(paths[i], PATH_WRITE, true);
	}
}

static void read_only(void **state)
{
	static const char *const paths[] = { "/usr",	    "/usr/local", "/etc",
					     "/etc/passwd", "/bin",	  "/sbin",
					     "/lib",	    "/lib64/x",	  "/lib32" };

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		check(paths[i], PATH_READ, false);
		check(paths[i], PATH_WRITE, true);
	}
}

static void ordinary(void **state)
{
	static const char *const paths[] = {
		"/home/u/src",	     "/home/u/.aws", "/home/u/.local/share",
		"/home/u2",	     "/home/u2/src", "/opt",
		"/opt/tool",	     "/srv/data",    "/var/lib/x",
		"/var/cache",	     "/tmp/x",	     "/process",
		"/system",	     "/device",	     "/runner",
		"/bootstrap",	     "/usr2",	     "/etcetera",
		"/library",	     "/rooted",	     STATE "2",
		"/home/u/.local/st",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		check(paths[i], PATH_READ, false);
		check(paths[i], PATH_WRITE, false);
	}
}

/* To hide or protect takes away only; a device is below /dev and nothing else. */
static void by_class(void **state)
{
	static const char *const paths[] = { "/", HOME, STATE, "/proc", "/dev", "/usr", "/opt" };

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		check(paths[i], PATH_HIDE, false);
		check(paths[i], PATH_PROTECT, false);
		check(paths[i], PATH_DEVICE, true);
	}
	check("/dev/dri", PATH_DEVICE, false);
	check("/dev/nvidia0", PATH_DEVICE, false);
	check("/device", PATH_DEVICE, true);
	check("/proc/driver", PATH_DEVICE, true);
}

static void without_home_or_state(void **state)
{
	(void)state;
	assert_null(danger_of_path(HOME, PATH_WRITE, NULL, NULL));
	assert_null(danger_of_path(STATE, PATH_WRITE, HOME, NULL));
	assert_non_null(danger_of_path("/", PATH_READ, NULL, NULL));
	assert_non_null(danger_of_path("/srv", PATH_READ, "/srv/u", NULL));
	assert_non_null(danger_of_path("/srv", PATH_READ, NULL, "/srv/state"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_shown),
		cmocka_unit_test(read_only),
		cmocka_unit_test(ordinary),
		cmocka_unit_test(by_class),
		cmocka_unit_test(without_home_or_state),
	};

	return cmocka_run_group_tests_name("danger", tests, NULL, NULL);
}
