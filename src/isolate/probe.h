/*
 * What this host's kernel permits, found out by doing it: each probe (probe.def) runs in a forked
 * child and does what a start does, so that the answer holds under whatever filter, security
 * module or container is around us. Nothing outlives a probe but, if one is killed, an empty
 * directory in /tmp.
 *
 * For doctor, and for the refusal after a start that failed; never on the way of a good start.
 * The words for people are diagnosis.h's.
 */
#pragma once

#include "policy/layer.h"

#include <stdbool.h>
#include <stdint.h>

enum probe {
#define PROBE(name, word, layer, need, function) PROBE_##name,
#include "isolate/probe.def"
#undef PROBE
	PROBE_COUNT,
};

enum probe_need { PROBE_ALWAYS, PROBE_ROOT, PROBE_REPORT };

#define PROBE_EVIDENCE_BYTES 160

struct probe_result {
	int code;   /* 0: it works; negative errno; -ETIME: not tried */
	int signal; /* that killed the probe, 0 = none */
	char evidence[PROBE_EVIDENCE_BYTES];
};

/* Settings and signs of the surroundings, from which a cause is told. -1: there is no such. */
struct probe_host {
	long apparmor_restricts;  /* kernel.apparmor_restrict_unprivileged_userns */
	long userns_clone;	  /* kernel.unprivileged_userns_clone */
	long max_user_namespaces; /* user.max_user_namespaces */
	long max_namespaces;	  /* the least of user.max_*_namespaces */
	long memfd_noexec;	  /* vm.memfd_noexec */
	int seccomp;		  /* of ourselves: 2 is a filter */
	bool container;		  /* /.dockerenv, /run/.containerenv, names in /proc/1/cgroup */
	bool proc_masked;	  /* something is mounted below /proc */
	bool initramfs;		  /* / is the initial root file system */
	bool chrooted;		  /* / is no mount point */
	int wsl;		  /* 0, 1 or 2 */
	unsigned major, minor;	  /* of the kernel */
	char release[66];
	char lsm[128];	    /* active security modules, "" where unknown */
	char root_type[32]; /* type of the file system at / */
};

struct probe_subject {
	bool host_root;
	uint32_t uid, gid;
	const char *directory; /* whose file system a root caller's run maps */
};

struct probe_report {
	struct probe_subject subject;
	struct probe_host host;
	uint32_t landlock_abi;
	struct probe_result results[PROBE_COUNT];
};

/* Tries everything; takes some 20 ms. */
void probe_run(const struct probe_subject *subject, struct probe_report *ret_report);

const char *probe_name(enum probe probe);
enum layer probe_layer(enum probe probe);
enum probe_need probe_need(enum probe probe);

/* Failed, and needed for rung full by this caller. */
bool probe_is_missing(const struct probe_report *report, enum probe probe);
