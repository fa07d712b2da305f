#include "isolate/diagnosis.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* One cause: when it applies to a failed probe, in words, and the remedy. */
struct cause {
	bool (*applies)(const struct probe_report *report, enum probe probe, int code);
	const char *reason, *remedy;
};

static bool is_namespace(enum probe probe)
{
	return probe == PROBE_USER || probe == PROBE_NESTED || probe == PROBE_SETNS ||
	       (probe >= PROBE_NEW_MOUNT && probe <= PROBE_NEW_CGROUP) || probe == PROBE_MAPS;
}

/* What needs capabilities in a user namespace of one's own. */
static bool is_inside(enum probe probe)
{
	return is_namespace(probe) || (probe >= PROBE_PRIVATE_MOUNTS && probe <= PROBE_BOUNDING);
}

static bool is_landlock(enum probe probe)
{
	return probe == PROBE_LANDLOCK || probe == PROBE_LANDLOCK_RIGHTS ||
	       probe == PROBE_LANDLOCK_SCOPES;
}

static bool is_refusal(int code)
{
	return code == -EPERM || code == -EACCES;
}

static bool is_wsl1(const struct probe_report *report, enum probe probe, int code)
{
	(void)probe;
	(void)code;
	return report->host.wsl == 1;
}

static bool is_old(const struct probe_report *report, enum probe probe, int code)
{
	(void)code;
	return probe == PROBE_KERNEL ||
	       (report->results[PROBE_KERNEL].code < 0 && probe != PROBE_PROC_MOUNTED);
}

static bool is_without_proc(const struct probe_report *report, enum probe probe, int code)
{
	(void)report;
	(void)code;
	return probe == PROBE_PROC_MOUNTED;
}

static bool is_killed(const struct probe_report *report, enum probe probe, int code)
{
	(void)code;
	return report->results[probe].signal == 31; /* SIGSYS on x86 and arm */
}

static bool is_userns_off(const struct probe_report *report, enum probe probe, int code)
{
	return report->host.userns_clone == 0 && is_inside(probe) && is_refusal(code);
}

static bool is_userns_limited(const struct probe_report *report, enum probe probe, int code)
{
	return report->host.max_user_namespaces == 0 && is_inside(probe) &&
	       (code == -ENOSPC || code == -EUSERS);
}

static bool is_namespace_limited(const struct probe_report *report, enum probe probe, int code)
{
	return report->host.max_namespaces == 0 && is_inside(probe) && code == -ENOSPC;
}

static bool is_outer_limit(const struct probe_report *report, enum probe probe, int code)
{
	(void)report;
	return is_inside(probe) && (code == -ENOSPC || code == -EUSERS);
}

static bool is_apparmor(const struct probe_report *report, enum probe probe, int code)
{
	return report->host.apparmor_restricts > 0 && is_inside(probe) && is_refusal(code);
}

static bool is_masked(const struct probe_report *report, enum probe probe, int code)
{
	return report->host.proc_masked && probe == PROBE_PROC && is_refusal(code);
}

static bool is_container_filter(const struct probe_report *report, enum probe probe, int code)
{
	(void)probe;
	return report->host.container && report->host.seccomp == 2 &&
	       (is_refusal(code) || code == -ENOSYS);
}

static bool is_filter(const struct probe_report *report, enum probe probe, int code)
{
	(void)probe;
	return report->host.seccomp == 2 && (is_refusal(code) || code == -ENOSYS);
}

static bool is_container(const struct probe_report *report, enum probe probe, int code)
{
	return report->host.container && is_inside(probe) && is_refusal(code);
}

static bool is_ramdisk(const struct probe_report *report, enum probe probe, int code)
{
	return report->host.initramfs && probe == PROBE_PIVOT && code == -EINVAL;
}

static bool is_chrooted(const struct probe_report *report, enum probe probe, int code)
{
	return report->host.chrooted && is_inside(probe) && (is_refusal(code) || code == -EINVAL);
}

static bool is_landlock_off(const struct probe_report *report, enum probe probe, int code)
{
	return is_landlock(probe) && probe != PROBE_LANDLOCK_SCOPES &&
	       (code == -EOPNOTSUPP ||
		(code == -ENOSYS && report->host.lsm[0] && !strstr(report->host.lsm, "landlock")));
}

static bool is_landlock_wsl(const struct probe_report *report, enum probe probe, int code)
{
	(void)code;
	return is_landlock(probe) && probe != PROBE_LANDLOCK_SCOPES && report->host.wsl == 2;
}

static bool is_landlock_unbuilt(const struct probe_report *report, enum probe probe, int code)
{
	(void)report;
	return is_landlock(probe) && code == -ENOSYS;
}

static bool is_without_scopes(const struct probe_report *report, enum probe probe, int code)
{
	(void)code;
	return probe == PROBE_LANDLOCK_SCOPES && report->landlock_abi && report->landlock_abi < 6;
}

static bool is_memfd(const struct probe_report *report, enum probe probe, int code)
{
	return report->host.memfd_noexec >= 2 && probe == PROBE_MEMFD && is_refusal(code);
}

static bool is_idmap(const struct probe_report *report, enum probe probe, int code)
{
	(void)report;
	return probe == PROBE_IDMAP && (code == -EINVAL || code == -EOPNOTSUPP || code == -EPERM);
}

static bool is_overlay(const struct probe_report *report, enum probe probe, int code)
{
	(void)report;
	return probe == PROBE_OVERLAY && (code == -ENODEV || code == -EINVAL);
}

static bool is_cgroup(const struct probe_report *report, enum probe probe, int code)
{
	(void)report;
	(void)code;
	return probe == PROBE_CGROUPS;
}

static bool is_no_userns(const struct probe_report *report, enum probe probe, int code)
{
	(void)report;
	return is_namespace(probe) && code == -EINVAL;
}

static bool is_absent_call(const struct probe_report *report, enum probe probe, int code)
{
	(void)report;
	(void)probe;
	return code == -ENOSYS;
}

/* The first that applies; the most special ones stand first. */
static const struct cause causes[] = {
	{ is_wsl1, "this is WSL 1, whose kernel has no namespaces",
	  "use WSL 2: wsl --set-version DISTRIBUTION 2" },
	{ is_without_proc, "/proc is not mounted or not readable here",
	  "mount it: mount -t proc proc /proc" },
	{ is_old, "the kernel is older than Linux 5.15", "run Linux 5.15 or newer" },
	{ is_killed, "a system call filter around bawn kills for it",
	  "start bawn outside of that filter" },
	{ is_userns_off, "kernel.unprivileged_userns_clone is 0 (a setting of Debian kernels)",
	  "sudo sysctl -w kernel.unprivileged_userns_clone=1" },
	{ is_userns_limited, "user.max_user_namespaces is 0",
	  "sudo sysctl -w user.max_user_namespaces=15000" },
	{ is_namespace_limited, "one of the settings user.max_*_namespaces is 0",
	  "set each of /proc/sys/user/max_*_namespaces to 15000, as root" },
	{ is_outer_limit,
	  "the limit of namespaces is reached, here or in an outer user namespace (they nest "
	  "32 deep)",
	  "raise user.max_user_namespaces outside, as root" },
	{ is_apparmor,
	  "kernel.apparmor_restrict_unprivileged_userns is on (Ubuntu 23.10 and later)",
	  "install the AppArmor profile docs/apparmor/bawn (its head says how), or: "
	  "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" },
	{ is_masked,
	  "parts of /proc are covered in this container, and a new one would uncover them",
	  "docker run --security-opt systempaths=unconfined; podman run --security-opt unmask=ALL; "
	  "Kubernetes: procMount: Unmasked" },
	{ is_landlock_off, "Landlock is built in but not started",
	  "add landlock to the boot parameter lsm=, as in lsm=landlock,yama,apparmor" },
	{ is_landlock_wsl, "this WSL kernel has no Landlock", "wsl --update" },
	{ is_container_filter,
	  "the system call filter of this container refuses it (Docker's default one does)",
	  "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
	  "--security-opt systempaths=unconfined" },
	{ is_filter, "a system call filter around bawn refuses it, or the kernel lacks it",
	  "start bawn outside of that filter (of a container, a service or another sandbox)" },
	{ is_landlock_unbuilt, "the kernel is built without Landlock",
	  "use a kernel with CONFIG_SECURITY_LANDLOCK=y" },
	{ is_without_scopes,
	  "Landlock's scopes come with ABI 6 (Linux 6.12); the network and pid namespaces hold "
	  "what they would hold",
	  "" },
	{ is_container, "this container or its security module refuses it",
	  "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
	  "--security-opt systempaths=unconfined" },
	{ is_ramdisk, "/ is the initial ramdisk, which pivot_root cannot leave",
	  "start bawn after switch_root, or in a chroot on a mounted file system" },
	{ is_chrooted, "/ is no mount point (a chroot), where no namespaces are made",
	  "start bawn outside of the chroot" },
	{ is_memfd, "vm.memfd_noexec is 2, which forbids to execute a memfd",
	  "sudo sysctl -w vm.memfd_noexec=1" },
	{ is_idmap, "the file system of this directory cannot map ids, which a run as root needs",
	  "use a workspace on ext4, xfs, btrfs or tmpfs, or run as an ordinary user" },
	{ is_overlay, "the kernel has no overlay file system, or one without userxattr",
	  "sudo modprobe overlay" },
	{ is_cgroup,
	  "no control group is delegated to the caller; for limits that need one systemd is asked, "
	  "where its manager has controllers to give",
	  "" },
	{ is_no_userns, "the kernel is built without this namespace",
	  "use a kernel with CONFIG_USER_NS and its kin" },
	{ is_absent_call, "the kernel lacks the system call, or a filter hides it",
	  "use a kernel that has it, and no filter around bawn" },
};

void diagnosis_make(const struct probe_report *report, enum probe probe,
		    struct diagnosis *ret_diagnosis)
{
	const struct probe_result *result = &report->results[probe];
	const char *cause = "no cause is known", *remedy = "";

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (causes[i].applies(report, probe, result->code)) {
			cause = causes[i].reason;
			remedy = causes[i].remedy;
			break;
		}
	if (result->signal)
		(void)snprintf(ret_diagnosis->met, sizeof(ret_diagnosis->met),
			       "%s: killed by signal %d", probe_name(probe), result->signal);
	else
		(void)snprintf(ret_diagnosis->met, sizeof(ret_diagnosis->met), "%s: %s",
			       probe_name(probe), error_text(result->code));
	(void)snprintf(ret_diagnosis->reason, sizeof(ret_diagnosis->reason), "%s: %s",
		       ret_diagnosis->met, cause);
	ret_diagnosis->cause = cause;
	ret_diagnosis->remedy = remedy;
}

enum enforcement diagnosis_layer(const struct probe_report *report, enum layer layer)
{
	for (unsigned probe = 0; probe < PROBE_COUNT; probe++)
		if (probe_layer(probe) == layer && probe_is_missing(report, probe))
			return ENFORCEMENT_ABSENT;
	return ENFORCEMENT_EXACT;
}

enum probe diagnosis_first(const struct probe_report *report)
{
	for (unsigned probe = 0; probe < PROBE_COUNT; probe++)
		if (probe_is_missing(report, probe))
			return probe;
	return PROBE_COUNT;
}

int diagnosis_refusal(const struct probe_report *report, struct error *error)
{
	enum probe probe = diagnosis_first(report);
	struct diagnosis diagnosis;

	if (probe == PROBE_COUNT)
		return 0;
	diagnosis_make(report, probe, &diagnosis);
	return error_set(error, report->results[probe].code,
			 "rung \"full\" is not possible here: %s%s%s", diagnosis.reason,
			 diagnosis.remedy[0] ? "; remedy: " : "", diagnosis.remedy);
}

/* What a host that lacks something answers; the rest is about paths, memory and the like. */
static bool is_suspect(int code)
{
	static const int codes[] = { EPERM,	 EACCES, ENOSYS, EINVAL, ENOSPC,  EUSERS, ENODEV,
				     EOPNOTSUPP, EPROTO, EPIPE,	 ENOENT, EBADMSG, ESRCH };

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (code == -codes[i])
			return true;
	return false;
}

void diagnosis_explain(const struct probe_subject *subject, struct error *error)
{
	struct error refusal = ERROR_NONE;
	struct probe_report report;

	if (!is_suspect(error->code))
		return;
	probe_run(subject, &report);
	if (diagnosis_refusal(&report, &refusal) < 0)
		(void)error_set(error, error->code, "%s", refusal.message);
}
