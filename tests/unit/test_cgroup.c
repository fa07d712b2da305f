/*
 * Discovery and values against a tree of plain files that looks like cgroupfs; killing, freezing
 * and removing against the host's own groups, where it lets us make some.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "home.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "kernel/cgroup.h"

#define SECOND_NS UINT64_C(1000000000)
#define OURSELVES 4242

static int setup(void **state)
{
	*state = fixture_new();
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

static int open_at(const struct fixture *fixture, const char *path)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s/%s", fixture->root, path);
	return open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The fake tree: fixture/self is /proc/self, fixture is "/". */
static void look(struct fixture *fixture, const char *mountinfo, const char *membership,
		 struct cgroup_host *host)
{
	struct cgroup_source source = { .self = OURSELVES, .any_filesystem = true };
	struct error error = ERROR_NONE;

	make(fixture, "self/mountinfo", mountinfo);
	make(fixture, "self/cgroup", membership);
	source.root_fd = open_at(fixture, ".");
	source.self_fd = open_at(fixture, "self");
	if (cgroup_host_open(&source, host, &error) < 0)
		fail_msg("%s", error.message);
	close(source.root_fd);
	close(source.self_fd);
}

static void assert_file(const struct fixture *fixture, const char *path, const char *text)
{
	char name[4096], found[4096] = "";
	CLEANUP_FD int fd = -1;

	snprintf(name, sizeof(name), "%s/%s", fixture->root, path);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, found, sizeof(found) - 1) < 0 || strcmp(found, text) != 0)
		fail_msg("%s is \"%s\", not \"%s\"", path, found, text);
}

static bool is_there(const struct fixture *fixture, const char *path)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s/%s", fixture->root, path);
	return access(name, F_OK) == 0;
}

#define V2_MOUNT "30 22 0:26 / /cg rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

/* A group of v2 as the kernel shows it. */
static void make_v2(struct fixture *fixture, const char *path, const char *controllers,
		    const char *given, const char *procs)
{
	const struct {
		const char *name, *text;
	} files[] = {
		{ "cgroup.controllers", controllers },
		{ "cgroup.subtree_control", given },
		{ "cgroup.procs", procs },
		{ "cgroup.type", "domain\n" },
	};
	char name[256];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(name, sizeof(name), "%s/%s", path, files[i].name);
		make(fixture, name, files[i].text);
	}
}

static void v2_delegated_and_ours_alone(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_host host;
	struct cgroup cgroup;
	struct error error = ERROR_NONE;

	make_v2(fixture, "cg/user.slice/run-1.scope", "cpu memory pids\n", "\n", "4242\n");
	look(fixture, V2_MOUNT, "0::/user.slice/run-1.scope\n", &host);
	assert_int_equal(host.count, 1);
	assert_string_equal(host.reason, "");
	assert_int_equal(cgroup_host_version(&host, CGROUP_MEMORY), 2);
	assert_int_equal(cgroup_host_version(&host, CGROUP_PIDS), 2);
	assert_int_equal(cgroup_host_version(&host, CGROUP_CPU), 2);
	assert_int_equal(cgroup_host_version(&host, CGROUP_IO), 0);
	assert_int_equal(cgroup_host_version(&host, CGROUP_KILL), 2);
	/* looking changes nothing */
	assert_false(is_there(fixture, "cg/user.slice/run-1.scope/bawn-supervisors"));

	make(fixture, "cg/user.slice/run-1.scope/bawn-supervisors/cgroup.procs", "");
	if (cgroup_create(&host, "t-1", CGROUP_BIT(CGROUP_MEMORY) | CGROUP_BIT(CGROUP_KILL),
			  &cgroup, &error) < 0)
		fail_msg("%s", error.message);
	assert_file(fixture, "cg/user.slice/run-1.scope/bawn-supervisors/cgroup.procs", "0");
	/* only what is needed is given away */
	assert_file(fixture, "cg/user.slice/run-1.scope/cgroup.subtree_control", "+memory");
	assert_true(is_there(fixture, "cg/user.slice/run-1.scope/bawn-t-1"));
	assert_true(cgroup_clone_fd(&cgroup) >= 0);
	cgroup_close(&cgroup);
	assert_int_equal(cgroup_clone_fd(&cgroup), -1);

	/* the id is new, or something is wrong */
	assert_int_equal(cgroup_create(&host, "t-1", CGROUP_BIT(CGROUP_KILL), &cgroup, &error),
			 -EEXIST);
	assert_true(is_there(fixture, "cg/user.slice/run-1.scope/bawn-t-1"));
	cgroup_host_close(&host);
}

static void v2_shared_with_others(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_host host;

	make_v2(fixture, "cg/session", "memory pids\n", "\n", "17\n4242\n");
	look(fixture, V2_MOUNT, "0::/session\n", &host);
	assert_string_equal(host.reason, "other processes are in this control group");
	assert_int_equal(cgroup_host_version(&host, CGROUP_MEMORY), 0);
	/* what needs no controller is there all the same */
	assert_int_equal(cgroup_host_version(&host, CGROUP_FREEZE), 2);
	assert_int_equal(cgroup_host_version(&host, CGROUP_ACCOUNT), 2);
	cgroup_host_close(&host);
}

static void v2_supervisors_are_beside(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_host host;
	struct cgroup cgroup;
	struct error error = ERROR_NONE;

	make_v2(fixture, "cg/job", "memory pids\n", "memory pids\n", "");
	make_v2(fixture, "cg/job/bawn-supervisors", "\n", "\n", "4242\n99\n");
	look(fixture, V2_MOUNT, "0::/job/bawn-supervisors\n", &host);
	assert_int_equal(cgroup_host_version(&host, CGROUP_MEMORY), 2);
	assert_int_equal(cgroup_create(&host, "t-2", CGROUP_BIT(CGROUP_MEMORY), &cgroup, &error),
			 0);
	assert_true(is_there(fixture, "cg/job/bawn-t-2"));
	assert_file(fixture, "cg/job/cgroup.subtree_control", "memory pids\n");
	cgroup_close(&cgroup);
	cgroup_host_close(&host);
}

static void v2_root_moves_nobody(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_host host;
	struct cgroup cgroup;
	struct error error = ERROR_NONE;

	make(fixture, "cg/cgroup.controllers", "cpu io memory pids\n");
	make(fixture, "cg/cgroup.subtree_control", "\n");
	make(fixture, "cg/cgroup.procs", "1\n2\n4242\n");
	look(fixture, V2_MOUNT, "0::/\n", &host);
	assert_int_equal(cgroup_host_version(&host, CGROUP_IO), 2);
	assert_int_equal(cgroup_create(&host, "t-3", CGROUP_BIT(CGROUP_PIDS), &cgroup, &error), 0);
	assert_false(is_there(fixture, "cg/bawn-supervisors"));
	assert_file(fixture, "cg/cgroup.subtree_control", "+pids");
	cgroup_close(&cgroup);
	cgroup_host_close(&host);
}

static void v2_not_ours(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_host host;

	/* outside of the namespace, below another root, not there, no file of the kernel's */
	make_v2(fixture, "cg/a", "memory\n", "\n", "4242\n");
	make(fixture, "cg/b", NULL);
	look(fixture, V2_MOUNT, "0::/../a\n", &host);
	assert_int_equal(host.count, 0);
	assert_string_equal(host.reason, "no cgroup v2 is mounted");
	look(fixture, "30 22 0:26 /b /cg rw - cgroup2 cgroup2 rw\n", "0::/a\n", &host);
	assert_int_equal(host.count, 0);
	look(fixture, V2_MOUNT, "0::/gone\n", &host);
	assert_int_equal(host.count, 0);
	assert_string_equal(host.reason, "this control group cannot be opened");
	look(fixture, V2_MOUNT, "0::/b\n", &host);
	assert_int_equal(host.count, 0);
	assert_string_equal(host.reason, "this control group is not delegated to the caller");
	look(fixture, "", "", &host);
	assert_int_equal(host.count, 0);
	look(fixture, "nonsense\n1 2 3\n30 22 0:26 / /cg rw\n30 22 0:26 / /cg rw - cgroup2\n",
	     "nonsense\n0:\n0::/a\n", &host);
	assert_int_equal(host.count, 0);
}

static void v2_of_another(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_source source = { .self = OURSELVES, .any_filesystem = true };

	make_v2(fixture, "cg/user.slice/user@7.service", "cpuset cpu memory\n", "\n", "");
	make(fixture, "cg/cgroup.controllers", "cpu io memory pids\n");
	make(fixture, "self/mountinfo", "29 22 0:26 /x /other rw - cgroup2 cgroup2 rw\n" V2_MOUNT);
	make(fixture, "self/cgroup", "1:name=systemd:/a/b.scope\n0::/c/d.scope\n");
	source.root_fd = open_at(fixture, ".");
	source.self_fd = open_at(fixture, "self");
	assert_int_equal(cgroup_offered(&source, "/user.slice/user@7.service"),
			 CGROUP_BIT(CGROUP_CPU) | CGROUP_BIT(CGROUP_MEMORY));
	assert_int_equal(cgroup_offered(&source, ""),
			 CGROUP_BIT(CGROUP_CPU) | CGROUP_BIT(CGROUP_MEMORY) |
				 CGROUP_BIT(CGROUP_IO) | CGROUP_BIT(CGROUP_PIDS));
	assert_int_equal(cgroup_offered(&source, "/user.slice/user@8.service"), 0);
	assert_true(cgroup_is_in(&source, "d.scope"));
	/* of another hierarchy, a part of the name, what it lies in */
	assert_false(cgroup_is_in(&source, "b.scope"));
	assert_false(cgroup_is_in(&source, ".scope"));
	assert_false(cgroup_is_in(&source, "c"));
	make(fixture, "self/cgroup", "0::/c/d.scope (deleted)\n");
	assert_false(cgroup_is_in(&source, "d.scope"));
	/* a part of the hierarchy alone is mounted: its paths are not the manager's */
	make(fixture, "self/mountinfo", "29 22 0:26 /x /cg rw - cgroup2 cgroup2 rw\n");
	assert_int_equal(cgroup_offered(&source, "/user.slice/user@7.service"), 0);
	make(fixture, "self/mountinfo", "29 22 0:26 / /cg rw - tmpfs cgroup2 rw\n");
	assert_int_equal(cgroup_offered(&source, "/user.slice/user@7.service"), 0);
	close(source.root_fd);
	close(source.self_fd);
}

static void a_link_is_not_followed(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_host host;

	make_v2(fixture, "elsewhere", "memory\n", "\n", "4242\n");
	make(fixture, "cg", NULL);
	make_link(fixture, "cg/link", "../elsewhere");
	look(fixture, V2_MOUNT, "0::/link\n", &host);
	assert_int_equal(host.count, 0);
}

static void plain_files_are_not_cgroupfs(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_source source = { .self = OURSELVES };
	struct cgroup_host host;
	struct error error = ERROR_NONE;

	make_v2(fixture, "cg/a", "memory\n", "\n", "4242\n");
	make(fixture, "self/mountinfo", V2_MOUNT);
	make(fixture, "self/cgroup", "0::/a\n");
	source.root_fd = open_at(fixture, ".");
	source.self_fd = open_at(fixture, "self");
	assert_int_equal(cgroup_host_open(&source, &host, &error), 0);
	assert_int_equal(host.count, 0);
	close(source.self_fd);
	source.self_fd = open_at(fixture, "work");
	assert_int_equal(cgroup_host_open(&source, &host, &error), -ENOENT);
	close(source.self_fd);
	close(source.root_fd);
}

static const char *const v1_mounts =
	"40 22 0:30 / /v1/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	"41 22 0:31 /docker/x /v1/mem\\040ory rw - cgroup cgroup rw,memory\n"
	"42 22 0:32 / /v1/pids rw - cgroup cgroup rw,pids\n"
	"43 22 0:33 / /v1/blkio rw - cgroup cgroup rw,blkio\n"
	"44 22 0:34 / /v1/freezer rw - cgroup cgroup rw,freezer\n"
	"45 22 0:35 / /v1/systemd rw - cgroup cgroup rw,name=systemd\n"
	"46 22 0:32 / /again/pids rw - cgroup cgroup rw,pids\n";
static const char *const v1_membership = "9:name=systemd:/\n5:freezer:/\n4:blkio:/\n3:pids:/\n"
					 "2:memory:/docker/x/y\n1:cpu,cpuacct:/job\n";

static void make_v1(struct fixture *fixture)
{
	static const char *const groups[] = { "v1/cpu,cpuacct/job", "v1/mem ory/y", "v1/pids",
					      "v1/blkio",	    "v1/freezer",   "v1/systemd",
					      "again/pids" };
	char name[256];

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		snprintf(name, sizeof(name), "%s/cgroup.procs", groups[i]);
		make(fixture, name, "1\n4242\n");
	}
	make(fixture, "v1/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
}

static void v1_hierarchies(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_host host;

	make_v1(fixture);
	look(fixture, v1_mounts, v1_membership, &host);
	assert_int_equal(host.count, 5);
	for (enum cgroup_controller i = 0; i < CGROUP_CONTROLLERS; i++)
		assert_int_equal(cgroup_host_version(&host, i), i == CGROUP_KILL ? 0 : 1);
	cgroup_host_close(&host);
}

static void hybrid(void **state)
{
	struct fixture *fixture = *state;
	char mounts[2048], membership[1024];
	struct cgroup_host host;

	make_v1(fixture);
	make(fixture, "cg/cgroup.controllers", "\n");
	make(fixture, "cg/cgroup.subtree_control", "\n");
	make(fixture, "cg/cgroup.procs", "1\n4242\n");
	snprintf(mounts, sizeof(mounts), "%s%s", v1_mounts, V2_MOUNT);
	snprintf(membership, sizeof(membership), "%s0::/\n", v1_membership);
	look(fixture, mounts, membership, &host);
	assert_string_equal(host.reason, "no controller is delegated to this control group");
	assert_int_equal(host.hierarchies[0].version, 2);
	assert_int_equal(cgroup_host_version(&host, CGROUP_MEMORY), 1);
	assert_int_equal(cgroup_host_version(&host, CGROUP_CPU), 1);
	assert_int_equal(cgroup_host_version(&host, CGROUP_ACCOUNT), 2);
	assert_int_equal(cgroup_host_version(&host, CGROUP_FREEZE), 2);
	assert_int_equal(cgroup_host_version(&host, CGROUP_KILL), 2);
	cgroup_host_close(&host);
}

/* Groups in every hierarchy, with files like the kernel's. */
static struct cgroup created(struct fixture *fixture, struct cgroup_host *host, bool v2)
{
	struct error error = ERROR_NONE;
	struct cgroup cgroup;
	uint32_t needs = CGROUP_BIT(CGROUP_CONTROLLERS) - 1;

	if (v2) {
		make(fixture, "cg/cgroup.controllers", "cpu io memory pids\n");
		make(fixture, "cg/cgroup.subtree_control", "cpu io memory pids\n");
		make(fixture, "cg/cgroup.procs", "");
		look(fixture, V2_MOUNT, "0::/\n", host);
	} else {
		make_v1(fixture);
		look(fixture, v1_mounts, v1_membership, host);
		needs &= ~CGROUP_BIT(CGROUP_KILL);
	}
	if (cgroup_create(host, "t-x", needs, &cgroup, &error) < 0)
		fail_msg("%s", error.message);
	return cgroup;
}

static const struct cgroup_limits *all_limits(void)
{
	static dev_t devices[2];
	static struct cgroup_limits limits = { .memory_bytes = 1 << 30,
					       .pids = 64,
					       .cpu_thousandths = 1500,
					       .io_bytes_per_second = 1 << 20,
					       .devices = devices,
					       .device_count = 1 };

	devices[0] = makedev(8, 16);
	return &limits;
}

static void v2_values(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_host host;
	struct cgroup cgroup = created(fixture, &host, true);
	struct cgroup_usage usage;
	struct cgroup_events events;
	struct error error = ERROR_NONE;

	make(fixture, "cg/bawn-t-x/cgroup.procs", "");
	make(fixture, "cg/bawn-t-x/memory.max", "");
	make(fixture, "cg/bawn-t-x/memory.swap.max", "");
	make(fixture, "cg/bawn-t-x/pids.max", "");
	make(fixture, "cg/bawn-t-x/cpu.max", "");
	make(fixture, "cg/bawn-t-x/io.max", "");
	make(fixture, "cg/bawn-t-x/memory.current", "4096\n");
	make(fixture, "cg/bawn-t-x/pids.current", "3\n");
	make(fixture, "cg/bawn-t-x/cpu.stat", "usage_usec 1500\nuser_usec 1000\n");
	make(fixture, "cg/bawn-t-x/memory.events", "low 0\nmax 7\noom 2\noom_kill 1\n");
	make(fixture, "cg/bawn-t-x/pids.events", "max 12\n");
	if (cgroup_limit(&cgroup, all_limits(), &error) < 0)
		fail_msg("%s", error.message);
	assert_file(fixture, "cg/bawn-t-x/memory.max", "1073741824");
	assert_file(fixture, "cg/bawn-t-x/memory.swap.max", "0");
	assert_file(fixture, "cg/bawn-t-x/pids.max", "64");
	assert_file(fixture, "cg/bawn-t-x/cpu.max", "150000 100000");
	assert_file(fixture, "cg/bawn-t-x/io.max", "8:16 rbps=1048576 wbps=1048576");
	assert_int_equal(cgroup_attach(&cgroup, 77, &error), 0);
	assert_file(fixture, "cg/bawn-t-x/cgroup.procs", "77");

	assert_int_equal(cgroup_read_usage(&cgroup, &usage), 0);
	assert_int_equal(usage.memory_bytes, 4096);
	assert_int_equal(usage.memory_peak_bytes, CGROUP_UNLIMITED); /* before 5.19 */
	assert_int_equal(usage.pids, 3);
	assert_int_equal(usage.cpu_ns, 1500000);
	assert_int_equal(cgroup_read_events(&cgroup, &events), 0);
	assert_int_equal(events.oom_kills, 1);
	assert_int_equal(events.pids_hits, 12);

	/* what the kernel would not write */
	make(fixture, "cg/bawn-t-x/memory.current", "-1\n");
	assert_int_equal(cgroup_read_usage(&cgroup, &usage), -EPROTO);
	make(fixture, "cg/bawn-t-x/memory.current", "99999999999999999999999\n");
	assert_int_equal(cgroup_read_usage(&cgroup, &usage), -EPROTO);
	make(fixture, "cg/bawn-t-x/memory.current", "1 2\n");
	assert_int_equal(cgroup_read_usage(&cgroup, &usage), -EPROTO);
	cgroup_close(&cgroup);
	cgroup_host_close(&host);
}

static void v2_kill_and_freeze(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_host host;
	struct cgroup cgroup = created(fixture, &host, true);
	struct error error = ERROR_NONE;

	make(fixture, "cg/bawn-t-x/cgroup.procs", "");
	make(fixture, "cg/bawn-t-x/cgroup.kill", "");
	make(fixture, "cg/bawn-t-x/cgroup.freeze", "");
	make(fixture, "cg/bawn-t-x/cgroup.events", "populated 0\nfrozen 1\n");
	assert_int_equal(cgroup_freeze(&cgroup, SECOND_NS, &error), 0);
	assert_file(fixture, "cg/bawn-t-x/cgroup.freeze", "1");
	/* not confirmed is not done */
	assert_int_equal(cgroup_thaw(&cgroup, SECOND_NS / 50, &error), -ETIMEDOUT);
	assert_file(fixture, "cg/bawn-t-x/cgroup.freeze", "0");
	assert_int_equal(cgroup_kill(&cgroup, SECOND_NS, &error), 0);
	assert_file(fixture, "cg/bawn-t-x/cgroup.kill", "1");
	make(fixture, "cg/bawn-t-x/cgroup.events", "populated 1\nfrozen 0\n");
	assert_int_equal(cgroup_kill(&cgroup, SECOND_NS / 50, &error), -ETIMEDOUT);
	assert_non_null(strstr(error.message, "bawn-t-x"));
	cgroup_close(&cgroup);
	cgroup_host_close(&host);
}

static void v1_values(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_host host;
	struct cgroup cgroup = created(fixture, &host, false);
	struct cgroup_usage usage;
	struct cgroup_events events;
	struct error error = ERROR_NONE;

	assert_int_equal(cgroup.count, 5);
	assert_int_equal(cgroup_clone_fd(&cgroup), -1);
	make(fixture, "v1/mem ory/y/bawn-t-x/memory.limit_in_bytes", "");
	make(fixture, "v1/mem ory/y/bawn-t-x/memory.memsw.limit_in_bytes", "");
	make(fixture, "v1/mem ory/y/bawn-t-x/memory.usage_in_bytes", "8192\n");
	make(fixture, "v1/mem ory/y/bawn-t-x/memory.max_usage_in_bytes", "16384\n");
	make(fixture, "v1/mem ory/y/bawn-t-x/memory.oom_control",
	     "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	make(fixture, "v1/pids/bawn-t-x/pids.max", "");
	make(fixture, "v1/pids/bawn-t-x/pids.current", "9\n");
	make(fixture, "v1/pids/bawn-t-x/pids.events", "max 5\n");
	make(fixture, "v1/cpu,cpuacct/job/bawn-t-x/cpu.cfs_period_us", "");
	make(fixture, "v1/cpu,cpuacct/job/bawn-t-x/cpu.cfs_quota_us", "");
	make(fixture, "v1/cpu,cpuacct/job/bawn-t-x/cpuacct.usage", "123456789\n");
	make(fixture, "v1/blkio/bawn-t-x/blkio.throttle.read_bps_device", "");
	make(fixture, "v1/blkio/bawn-t-x/blkio.throttle.write_bps_device", "");
	make(fixture, "v1/pids/bawn-t-x/cgroup.procs", "");
	make(fixture, "v1/mem ory/y/bawn-t-x/cgroup.procs", "");
	make(fixture, "v1/cpu,cpuacct/job/bawn-t-x/cgroup.procs", "");
	if (cgroup_limit(&cgroup, all_limits(), &error) < 0)
		fail_msg("%s", error.message);
	assert_file(fixture, "v1/mem ory/y/bawn-t-x/memory.limit_in_bytes", "1073741824");
	assert_file(fixture, "v1/mem ory/y/bawn-t-x/memory.memsw.limit_in_bytes", "1073741824");
	assert_file(fixture, "v1/pids/bawn-t-x/pids.max", "64");
	assert_file(fixture, "v1/cpu,cpuacct/job/bawn-t-x/cpu.cfs_period_us", "100000");
	assert_file(fixture, "v1/cpu,cpuacct/job/bawn-t-x/cpu.cfs_quota_us", "150000");
	assert_file(fixture, "v1/blkio/bawn-t-x/blkio.throttle.read_bps_device", "8:16 1048576");
	assert_file(fixture, "v1/blkio/bawn-t-x/blkio.throttle.write_bps_device", "8:16 1048576");
	assert_int_equal(cgroup_read_usage(&cgroup, &usage), 0);
	assert_int_equal(usage.memory_bytes, 8192);
	assert_int_equal(usage.memory_peak_bytes, 16384);
	assert_int_equal(usage.cpu_ns, 123456789);
	assert_int_equal(usage.pids, 9);
	assert_int_equal(cgroup_read_events(&cgroup, &events), 0);
	assert_int_equal(events.oom_kills, 3);
	assert_int_equal(events.pids_hits, 5);
	cgroup_close(&cgroup);
	cgroup_host_close(&host);
}

static void what_is_missing_is_named(void **state)
{
	struct fixture *fixture = *state;
	struct cgroup_host host;
	struct cgroup cgroup = created(fixture, &host, true);
	struct cgroup_limits limits = CGROUP_NO_LIMITS;
	struct cgroup_usage usage;
	struct error error = ERROR_NONE;

	make(fixture, "cg/bawn-t-x/cgroup.procs", "");
	assert_int_equal(cgroup_limit(&cgroup, &limits, &error), 0);
	limits.pids = 10;
	assert_int_equal(cgroup_limit(&cgroup, &limits, &error), -EOPNOTSUPP);
	assert_non_null(strstr(error.message, "processes"));
	assert_non_null(strstr(error.message, "bawn-t-x"));
	/* the group is gone: its files are */
	char name[4096];

	snprintf(name, sizeof(name), "%s/cg/bawn-t-x/cgroup.procs", fixture->root);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(cgroup_limit(&cgroup, &limits, &error), -ESTALE);
	assert_non_null(strstr(error.message, "it is gone"));
	assert_int_equal(cgroup_attach(&cgroup, 77, &error), -ESTALE);
	assert_int_equal(cgroup_read_usage(&cgroup, &usage), -ESTALE);
	assert_int_equal(cgroup_freeze(&cgroup, SECOND_NS, &error), -ESTALE);
	/* removing what is gone is success */
	snprintf(name, sizeof(name), "%s/cg/bawn-t-x", fixture->root);
	assert_int_equal(rmdir(name), 0);
	assert_int_equal(cgroup_destroy(&cgroup, SECOND_NS, &error), 0);
	assert_int_equal(cgroup.count, 0);
	cgroup_host_close(&host);
}

static void names_of_tasks(void **state)
{
	static const char *const bad[] = {
		"",
		"../x",
		"a/b",
		".",
		"a b",
		"a\n",
		"0123456789012345678901234567890123456789012345678901234567890123456789"
	};
	struct fixture *fixture = *state;
	struct cgroup_host host;
	struct cgroup cgroup;
	struct error error = ERROR_NONE;

	make_v1(fixture);
	look(fixture, v1_mounts, v1_membership, &host);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(cgroup_create(&host, bad[i], 0, &cgroup, &error), -EINVAL);
		assert_int_equal(cgroup_open(&host, bad[i], &cgroup, &error), -EINVAL);
	}
	/* a need that nothing meets leaves nothing */
	assert_int_equal(cgroup_create(&host, "t-1",
				       CGROUP_BIT(CGROUP_PIDS) | CGROUP_BIT(CGROUP_KILL), &cgroup,
				       &error),
			 -EOPNOTSUPP);
	assert_false(is_there(fixture, "v1/pids/bawn-t-1"));
	assert_int_equal(cgroup_open(&host, "t-1", &cgroup, &error), 0);
	assert_int_equal(cgroup.count, 0);
	cgroup_host_close(&host);
}

/* The host's own: skipped where nothing can be made. */
static void open_host(struct cgroup_host *host, uint32_t needs)
{
	struct cgroup_source source;
	struct error error = ERROR_NONE;

	assert_int_equal(cgroup_source_open(&source, &error), 0);
	if (cgroup_host_open(&source, host, &error) < 0)
		fail_msg("%s", error.message);
	close(source.root_fd);
	close(source.self_fd);
	for (enum cgroup_controller i = 0; i < CGROUP_CONTROLLERS; i++)
		if (needs & CGROUP_BIT(i) && !cgroup_host_version(host, i)) {
			print_message("# no control group for this can be made: %s\n",
				      host->reason);
			cgroup_host_close(host);
			skip();
		}
	/* a test is not to move the test runner */
	if (host->count && host->hierarchies[0].move) {
		cgroup_host_close(host);
		skip();
	}
}

static const char *task_of_test(void)
{
	static char task[32];

	snprintf(task, sizeof(task), "t-test-%d", (int)getpid());
	return task;
}

/* Children that sleep; their parent kills them at the latest. */
static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	return pid;
}

static void assert_killed(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void kill_everything(uint32_t needs)
{
	struct cgroup_host host;
	struct cgroup cgroup;
	struct error error = ERROR_NONE;
	pid_t pids[20];

	open_host(&host, needs);
	if (cgroup_create(&host, task_of_test(), needs, &cgroup, &error) < 0)
		fail_msg("%s", error.message);
	for (size_t i = 0; i < 20; i++) {
		pids[i] = sleeper();
		if (cgroup_attach(&cgroup, pids[i], &error) < 0)
			fail_msg("%s", error.message);
	}
	assert_int_equal(cgroup_kill(&cgroup, 5 * SECOND_NS, &error), 0);
	for (size_t i = 0; i < 20; i++)
		assert_killed(pids[i]);
	/* an ended process cannot be attached */
	assert_int_equal(cgroup_attach(&cgroup, pids[0], &error), -ESRCH);
	assert_int_equal(cgroup_destroy(&cgroup, 5 * SECOND_NS, &error), 0);
	assert_int_equal(cgroup_open(&host, task_of_test(), &cgroup, &error), 0);
	assert_int_equal(cgroup.count, 0);
	cgroup_host_close(&host);
}

static void real_kill_at_once(void **state)
{
	(void)state;
	kill_everything(CGROUP_BIT(CGROUP_KILL));
}

static void real_kill_by_rounds(void **state)
{
	(void)state;
	kill_everything(CGROUP_BIT(CGROUP_PIDS));
}

static void real_pids_and_events(void **state)
{
	struct cgroup_limits limits = CGROUP_NO_LIMITS;
	struct cgroup_host host;
	struct cgroup cgroup;
	struct cgroup_usage usage;
	struct cgroup_events events;
	struct error error = ERROR_NONE;
	int status;
	pid_t pid;

	(void)state;
	open_host(&host, CGROUP_BIT(CGROUP_PIDS));
	assert_int_equal(
		cgroup_create(&host, task_of_test(), CGROUP_BIT(CGROUP_PIDS), &cgroup, &error), 0);
	limits.pids = 1;
	if (cgroup_limit(&cgroup, &limits, &error) < 0)
		fail_msg("%s", error.message);
	pid = fork();
	if (pid == 0) {
		if (cgroup_attach(&cgroup, getpid(), &error) < 0)
			_exit(2);
		_exit(fork() < 0 && errno == EAGAIN ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(cgroup_read_events(&cgroup, &events), 0);
	assert_int_equal(events.pids_hits, 1);
	assert_int_equal(cgroup_read_usage(&cgroup, &usage), 0);
	assert_int_equal(usage.pids, 0);
	assert_int_equal(cgroup_destroy(&cgroup, 5 * SECOND_NS, &error), 0);
	cgroup_host_close(&host);
}

static void real_memory_and_oom(void **state)
{
	struct cgroup_limits limits = CGROUP_NO_LIMITS;
	struct cgroup_host host;
	struct cgroup cgroup;
	struct cgroup_usage usage;
	struct cgroup_events events;
	struct error error = ERROR_NONE;
	int status;
	pid_t pid;

	(void)state;
	open_host(&host, CGROUP_BIT(CGROUP_MEMORY));
	assert_int_equal(
		cgroup_create(&host, task_of_test(), CGROUP_BIT(CGROUP_MEMORY), &cgroup, &error),
		0);
	limits.memory_bytes = 16 << 20;
	if (cgroup_limit(&cgroup, &limits, &error) < 0)
		fail_msg("%s", error.message);
	/* again, up and down: v1 wants another order each time */
	limits.memory_bytes = 32 << 20;
	assert_int_equal(cgroup_limit(&cgroup, &limits, &error), 0);
	limits.memory_bytes = 16 << 20;
	assert_int_equal(cgroup_limit(&cgroup, &limits, &error), 0);
	pid = fork();
	if (pid == 0) {
		/* not malloc(), which may write to it before we are in the group */
		char *bytes = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (bytes == MAP_FAILED || cgroup_attach(&cgroup, getpid(), &error) < 0)
			_exit(2);
		for (size_t i = 0; i < 64 << 20; i += 4096)
			((volatile char *)bytes)[i] = 1;
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(cgroup_read_events(&cgroup, &events), 0);
	assert_int_equal(events.oom_kills, 1);
	assert_int_equal(cgroup_read_usage(&cgroup, &usage), 0);
	assert_true(usage.memory_bytes <= 16 << 20);
	if (usage.memory_peak_bytes != CGROUP_UNLIMITED)
		assert_true(usage.memory_peak_bytes > 15 << 20);
	assert_int_equal(cgroup_destroy(&cgroup, 5 * SECOND_NS, &error), 0);
	cgroup_host_close(&host);
}

/* Runs a child for 60 ms of processor time and gives what the group says of it. */
static void real_account(void **state)
{
	struct cgroup_host host;
	struct cgroup cgroup;
	struct cgroup_usage usage;
	struct error error = ERROR_NONE;
	int status;
	pid_t pid;

	(void)state;
	open_host(&host, CGROUP_BIT(CGROUP_ACCOUNT));
	assert_int_equal(
		cgroup_create(&host, task_of_test(), CGROUP_BIT(CGROUP_ACCOUNT), &cgroup, &error),
		0);
	pid = fork();
	if (pid == 0) {
		struct timespec used = { 0 };

		if (cgroup_attach(&cgroup, getpid(), &error) < 0)
			_exit(2);
		while (used.tv_nsec < 60000000 && used.tv_sec == 0)
			(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(cgroup_read_usage(&cgroup, &usage), 0);
	assert_in_range(usage.cpu_ns, 30000000, 600000000);
	assert_int_equal(cgroup_destroy(&cgroup, 5 * SECOND_NS, &error), 0);
	cgroup_host_close(&host);
}

/* The counter of a child that counts, as long as it runs. */
static void real_freeze(void **state)
{
	struct cgroup_host host;
	struct cgroup cgroup;
	struct error error = ERROR_NONE;
	uint64_t before, after = 0, deadline;
	char byte;
	int ends[2];
	pid_t pid;

	(void)state;
	open_host(&host, CGROUP_BIT(CGROUP_FREEZE));
	assert_int_equal(
		cgroup_create(&host, task_of_test(), CGROUP_BIT(CGROUP_FREEZE), &cgroup, &error),
		0);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	pid = fork();
	if (pid == 0) {
		for (;;) {
			(void)!write(ends[1], "x", 1);
			(void)usleep(1000);
		}
	}
	if (cgroup_attach(&cgroup, pid, &error) < 0 ||
	    cgroup_freeze(&cgroup, 5 * SECOND_NS, &error) < 0)
		fail_msg("%s", error.message);
	while (read(ends[0], &byte, 1) == 1)
		;
	(void)usleep(30000);
	before = (uint64_t)(read(ends[0], &byte, 1) == 1);
	assert_int_equal(before, 0);
	assert_int_equal(cgroup_thaw(&cgroup, 5 * SECOND_NS, &error), 0);
	deadline = clock_monotonic_ns() + 5 * SECOND_NS;
	while (!after && clock_monotonic_ns() < deadline)
		after = (uint64_t)(read(ends[0], &byte, 1) == 1);
	assert_int_equal(after, 1);
	/* frozen ones die too */
	assert_int_equal(cgroup_freeze(&cgroup, 5 * SECOND_NS, &error), 0);
	assert_int_equal(cgroup_destroy(&cgroup, 5 * SECOND_NS, &error), 0);
	assert_killed(pid);
	close(ends[0]);
	close(ends[1]);
	cgroup_host_close(&host);
}

/* What a supervisor that was killed leaves: processes, also in groups below. */
static void real_leftover(void **state)
{
	static const uint32_t kinds[] = { CGROUP_BIT(CGROUP_KILL), CGROUP_BIT(CGROUP_PIDS) };
	struct cgroup_host host;
	struct cgroup cgroup;
	struct error error = ERROR_NONE;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		pid_t here = sleeper(), below = sleeper();
		CLEANUP_FD int procs = -1;
		char text[16];

		open_host(&host, kinds[i]);
		if (cgroup_create(&host, task_of_test(), kinds[i], &cgroup, &error) < 0 ||
		    cgroup_attach(&cgroup, here, &error) < 0)
			fail_msg("%s", error.message);
		assert_int_equal(mkdirat(cgroup.parts[0].fd, "a", 0755), 0);
		assert_int_equal(mkdirat(cgroup.parts[0].fd, "a/b", 0755), 0);
		assert_int_equal(mkdirat(cgroup.parts[0].fd, "c", 0755), 0);
		procs = openat(cgroup.parts[0].fd, "a/b/cgroup.procs", O_WRONLY | O_CLOEXEC);
		snprintf(text, sizeof(text), "%d", below);
		assert_true(write(procs, text, strlen(text)) > 0);
		cgroup_close(&cgroup);

		assert_int_equal(cgroup_open(&host, task_of_test(), &cgroup, &error), 0);
		assert_int_equal(cgroup.count, 1);
		if (cgroup_destroy(&cgroup, 5 * SECOND_NS, &error) < 0)
			fail_msg("%s", error.message);
		assert_killed(here);
		assert_killed(below);
		assert_int_equal(cgroup_open(&host, task_of_test(), &cgroup, &error), 0);
		assert_int_equal(cgroup.count, 0);
		cgroup_host_close(&host);
	}
}

static void real_group_removed_by_others(void **state)
{
	struct cgroup_limits limits = CGROUP_NO_LIMITS;
	struct cgroup_host host;
	struct cgroup cgroup;
	struct cgroup_usage usage;
	struct error error = ERROR_NONE;

	(void)state;
	open_host(&host, CGROUP_BIT(CGROUP_PIDS));
	assert_int_equal(
		cgroup_create(&host, task_of_test(), CGROUP_BIT(CGROUP_PIDS), &cgroup, &error), 0);
	assert_int_equal(unlinkat(cgroup.parts[0].hierarchy->fd, cgroup.name, AT_REMOVEDIR), 0);
	limits.pids = 5;
	assert_int_equal(cgroup_limit(&cgroup, &limits, &error), -ESTALE);
	assert_int_equal(cgroup_attach(&cgroup, getpid(), &error), -ESTALE);
	assert_int_equal(cgroup_read_usage(&cgroup, &usage), -ESTALE);
	assert_int_equal(cgroup_kill(&cgroup, SECOND_NS, &error), 0);
	assert_int_equal(cgroup_destroy(&cgroup, SECOND_NS, &error), 0);
	cgroup_host_close(&host);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(v2_delegated_and_ours_alone),
		TEST(v2_shared_with_others),
		TEST(v2_supervisors_are_beside),
		TEST(v2_root_moves_nobody),
		TEST(v2_not_ours),
		TEST(v2_of_another),
		TEST(a_link_is_not_followed),
		TEST(plain_files_are_not_cgroupfs),
		TEST(v1_hierarchies),
		TEST(hybrid),
		TEST(v2_values),
		TEST(v2_kill_and_freeze),
		TEST(v1_values),
		TEST(what_is_missing_is_named),
		TEST(names_of_tasks),
		cmocka_unit_test(real_kill_at_once),
		cmocka_unit_test(real_kill_by_rounds),
		cmocka_unit_test(real_pids_and_events),
		cmocka_unit_test(real_memory_and_oom),
		cmocka_unit_test(real_account),
		cmocka_unit_test(real_freeze),
		cmocka_unit_test(real_leftover),
		cmocka_unit_test(real_group_removed_by_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
