#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "isolate/diagnosis.h"

#include <errno.h>
#include <stdbool.h>

/* A host on which everything works. */
static struct probe_report good(void)
{
	struct probe_report report = {
		.subject = { .uid = 1000, .gid = 1000, .directory = "/work" },
		.landlock_abi = 7,
		.host = { .apparmor_restricts = -1,
			  .userns_clone = -1,
			  .max_user_namespaces = 15000,
			  .max_namespaces = 15000,
			  .memfd_noexec = 0,
			  .major = 6,
			  .minor = 12,
			  .release = "6.12.0",
			  .lsm = "capability,landlock,yama",
			  .root_type = "ext4" },
	};

	report.results[PROBE_IDMAP].code = -ETIME;
	return report;
}

struct situation {
	const char *name;
	enum probe probe;
	int code;
	void (*change)(struct probe_host *host);
	const char *reason, *remedy;
};

static void apparmor(struct probe_host *host)
{
	host->apparmor_restricts = 1;
}

static void debian(struct probe_host *host)
{
	host->userns_clone = 0;
}

static void no_user_namespaces(struct probe_host *host)
{
	host->max_user_namespaces = 0;
}

static void no_namespaces(struct probe_host *host)
{
	host->max_namespaces = 0;
}

static void docker(struct probe_host *host)
{
	host->container = true;
	host->seccomp = 2;
}

static void docker_apparmor(struct probe_host *host)
{
	host->container = true;
}

static void masked(struct probe_host *host)
{
	host->container = true;
	host->proc_masked = true;
}

static void filtered(struct probe_host *host)
{
	host->seccomp = 2;
}

static void without_landlock(struct probe_host *host)
{
	memcpy(host->lsm, "capability,yama", sizeof("capability,yama"));
}

static void unknown_modules(struct probe_host *host)
{
	memcpy(host->lsm, "", sizeof(""));
}

static void wsl1(struct probe_host *host)
{
	host->wsl = 1;
}

static void wsl2(struct probe_host *host)
{
	host->wsl = 2;
	memcpy(host->lsm, "", sizeof(""));
}

static void ramdisk(struct probe_host *host)
{
	host->initramfs = true;
}

static void chrooted(struct probe_host *host)
{
	host->chrooted = true;
}

static void memfd(struct probe_host *host)
{
	host->memfd_noexec = 2;
}

static void unchanged(struct probe_host *host)
{
	(void)host;
}

static const struct situation situations[] = {
	{ "Ubuntu's AppArmor", PROBE_PRIVATE_MOUNTS, EACCES, apparmor,
	  "apparmor_restrict_unprivileged_userns", "docs/apparmor/bawn" },
	{ "Ubuntu's AppArmor, early", PROBE_MAPS, EPERM, apparmor,
	  "apparmor_restrict_unprivileged_userns", "sysctl" },
	{ "Debian's switch", PROBE_USER, EPERM, debian, "unprivileged_userns_clone is 0",
	  "sudo sysctl -w kernel.unprivileged_userns_clone=1" },
	{ "no user namespaces", PROBE_USER, ENOSPC, no_user_namespaces,
	  "user.max_user_namespaces is 0", "sudo sysctl -w user.max_user_namespaces=15000" },
	{ "no other namespaces", PROBE_NEW_NETWORK, ENOSPC, no_namespaces, "user.max_*_namespaces",
	  "15000" },
	{ "outer limit", PROBE_USER, ENOSPC, unchanged, "outer user namespace", "raise" },
	{ "nested too deep", PROBE_NESTED, EUSERS, unchanged, "32 deep", "raise" },
	{ "Docker's filter", PROBE_USER, EPERM, docker, "filter of this container",
	  "seccomp=unconfined" },
	{ "Docker's AppArmor", PROBE_PRIVATE_MOUNTS, EACCES, docker_apparmor, "container",
	  "apparmor=unconfined" },
	{ "covered /proc", PROBE_PROC, EPERM, masked, "parts of /proc are covered",
	  "systempaths=unconfined" },
	{ "another sandbox", PROBE_USER, EPERM, filtered, "filter around bawn", "outside" },
	{ "Landlock not started", PROBE_LANDLOCK, EOPNOTSUPP, without_landlock, "not started",
	  "lsm=" },
	{ "Landlock not listed", PROBE_LANDLOCK, ENOSYS, without_landlock, "not started", "lsm=" },
	{ "Landlock not built", PROBE_LANDLOCK, ENOSYS, unknown_modules, "built without Landlock",
	  "CONFIG_SECURITY_LANDLOCK" },
	{ "WSL 1", PROBE_USER, EINVAL, wsl1, "WSL 1", "--set-version" },
	{ "WSL 2 without Landlock", PROBE_LANDLOCK, ENOSYS, wsl2, "WSL", "wsl --update" },
	{ "initial ramdisk", PROBE_PIVOT, EINVAL, ramdisk, "initial ramdisk", "switch_root" },
	{ "chroot", PROBE_USER, EPERM, chrooted, "chroot", "outside of the chroot" },
	{ "memfd", PROBE_MEMFD, EACCES, memfd, "vm.memfd_noexec is 2", "vm.memfd_noexec=1" },
	{ "old kernel", PROBE_KERNEL, EOPNOTSUPP, unchanged, "older than Linux 5.15", "5.15" },
	{ "no /proc", PROBE_PROC_MOUNTED, ENOENT, unchanged, "/proc is not mounted", "mount -t" },
	{ "no overlay", PROBE_OVERLAY, ENODEV, unchanged, "no overlay", "modprobe overlay" },
	{ "kernel without user namespaces", PROBE_USER, EINVAL, unchanged, "built without",
	  "CONFIG_USER_NS" },
	{ "unknown call", PROBE_CLONE, ENOSYS, unchanged, "lacks the system call", "kernel" },
};

static void each_cause_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(situations) / sizeof(situations[0]); i++) {
		const struct situation *situation = &situations[i];
		struct probe_report report = good();
		struct error refusal = ERROR_NONE;

		report.results[situation->probe].code = -situation->code;
		situation->change(&report.host);
		if (diagnosis_refusal(&report, &refusal) != -situation->code)
			fail_msg("%s: no refusal", situation->name);
		if (!strstr(refusal.message, situation->reason) ||
		    !strstr(refusal.message, situation->remedy) ||
		    !strstr(refusal.message, probe_name(situation->probe)))
			fail_msg("%s: %s", situation->name, refusal.message);
		assert_int_equal(diagnosis_layer(&report, probe_layer(situation->probe)),
				 ENFORCEMENT_ABSENT);
		/* nothing was cut */
		assert_true(strlen(refusal.message) < ERROR_MESSAGE_BYTES - 1);
	}
}

static void a_good_host_is_not_refused(void **state)
{
	struct probe_report report = good();
	struct error refusal = ERROR_NONE;

	(void)state;
	assert_int_equal(diagnosis_refusal(&report, &refusal), 0);
	assert_int_equal(diagnosis_first(&report), PROBE_COUNT);
	for (unsigned layer = 0; layer < LAYER_COUNT; layer++)
		assert_int_equal(diagnosis_layer(&report, layer), ENFORCEMENT_EXACT);
}

static void what_is_reported_only_does_not_refuse(void **state)
{
	struct probe_report report = good();
	struct error refusal = ERROR_NONE;
	struct diagnosis diagnosis;

	(void)state;
	report.landlock_abi = 1;
	report.results[PROBE_LANDLOCK_SCOPES].code = -EOPNOTSUPP;
	report.results[PROBE_CGROUPS].code = -EACCES;
	assert_int_equal(diagnosis_refusal(&report, &refusal), 0);
	diagnosis_make(&report, PROBE_LANDLOCK_SCOPES, &diagnosis);
	assert_non_null(strstr(diagnosis.reason, "ABI 6"));
}

static void the_first_step_is_named(void **state)
{
	struct probe_report report = good();
	struct error refusal = ERROR_NONE;

	(void)state;
	report.results[PROBE_SECCOMP].code = -EINVAL;
	report.results[PROBE_USER].code = -EPERM;
	report.results[PROBE_PIVOT].code = -EPERM;
	assert_int_equal(diagnosis_first(&report), PROBE_USER);
	assert_int_equal(diagnosis_refusal(&report, &refusal), -EPERM);
}

static void a_killing_filter_is_told(void **state)
{
	struct probe_report report = good();
	struct error refusal = ERROR_NONE;

	(void)state;
	report.results[PROBE_USER] = (struct probe_result){ .code = -ECHILD, .signal = 31 };
	assert_int_equal(diagnosis_refusal(&report, &refusal), -ECHILD);
	assert_non_null(strstr(refusal.message, "killed by signal 31"));
	assert_non_null(strstr(refusal.message, "filter"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_cause_is_told),
		cmocka_unit_test(a_good_host_is_not_refused),
		cmocka_unit_test(what_is_reported_only_does_not_refuse),
		cmocka_unit_test(the_first_step_is_named),
		cmocka_unit_test(a_killing_filter_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
