/*
 * A plan: the ordered set-up operations of one box and of the actions in it. Pure.
 *
 * plan_build() turns a decoded policy and facts about the host into the list; src/isolate
 * executes exactly that list; explain, doctor, verify and the result read it. An operation is
 * data: its kind (plan.def), its arguments, the layer it belongs to, the rule it came from and how
 * it is undone. Strings are borrowed from the policy or live in the arena.
 *
 * The directories, links, small files and copies of the root that do not depend on the task
 * (PLAN_KEPT) make up its skeleton: a directory on the host named by their SHA-256, which takes in
 * the state of what is copied, made by the first start that needs it and mounted read-only by all
 * others.
 *
 * Leaving an operation out makes the box weaker in that one layer and is possible on purpose: the
 * attack tests run reduced plans. The product never does it.
 */
#pragma once

#include "policy/layer.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buffer;
struct error;
struct json;

enum plan_phase { PLAN_HOST, PLAN_BOX, PLAN_ENTER };
enum plan_undo { PLAN_UNDO_NONE, PLAN_UNDO_BOX, PLAN_UNDO_REMOVE, PLAN_UNDO_RELEASE };

enum plan_kind {
#define PLAN_OP(name, word, phase, undo) PLAN_##name,
#include "plan/plan.def"
#undef PLAN_OP
	PLAN_KIND_COUNT,
};

enum plan_flag {
	PLAN_READ_ONLY = 1u << 0,
	PLAN_NO_EXEC = 1u << 1,
	PLAN_DEVICE = 1u << 2,	  /* device nodes work (all other mounts are nodev) */
	PLAN_IDMAP = 1u << 3,	  /* the caller's files appear as the task's (host root only) */
	PLAN_OPTIONAL = 1u << 4,  /* a missing target is no error; overlay: nor is it one without
				   * what lies below, the upper layer alone; capture: without
				   * rules of the kernel's, listeners on ports instead */
	PLAN_EMPTY = 1u << 5,	  /* mask: readable and empty instead of unreadable */
	PLAN_FILE_KIND = 1u << 6, /* the source is no directory */
	PLAN_KEPT = 1u << 7,	  /* part of the skeleton: made once, not per start */
	PLAN_HANDED = 1u << 8,	  /* its descriptor is handed to the supervisor */
	PLAN_LINK_KIND = 1u << 9, /* pin: the target is a symbolic link */
};

enum plan_access {
	PLAN_ACCESS_LIST,	/* list directories */
	PLAN_ACCESS_READ,	/* read, list, execute */
	PLAN_ACCESS_WRITE,	/* everything */
	PLAN_ACCESS_DEVICE,	/* read, write and ioctl, nothing made */
	PLAN_ACCESS_READ_DATA,	/* read, list */
	PLAN_ACCESS_WRITE_DATA, /* everything but execute */
	PLAN_ACCESS_COUNT,
};

enum plan_filter {
	PLAN_FILTER_DEFAULT = 0,
	PLAN_FILTER_PTRACE = 1,
	PLAN_FILTER_NESTED = 2,
	PLAN_FILTER_NESTED_PTRACE = 3,
	PLAN_FILTER_STRICT = 4, /* nothing is executed that is no file of a mount */
	PLAN_FILTER_COUNT,
};

struct plan_op {
	enum plan_kind kind;
	enum layer layer;
	const char *target, *source, *upper, *shade;
	uint64_t number;
	uint64_t flags;
	uint64_t device, inode; /* identity of the source, 0 = not checked */
	uint64_t state;		/* COPY: of the source (base/copy.h) */
	uint32_t rule;		/* index into the policy's rules */
};

struct plan {
	struct plan_op *ops;
	size_t count;
};

/* What the planner must know of the host; gathered by the caller, never by the planner. */
struct plan_facts {
	bool host_root;	       /* the caller is root of the host's user namespace */
	bool copies;	       /* the workspace cannot have a layer, and is copied instead */
	bool owns_cgroup;      /* the task's id may write to a cgroup that the caller is in */
	uint32_t landlock_abi; /* at most this one is used */
	const char *task_directory;
	const char *spares;	  /* directory of empty directories for tasks to come */
	const char *skeletons;	  /* directory of the skeletons */
	const char *summary_text; /* content of /run/bawn/policy.txt */
	const char *summary_json;
};

/* Where in a task's directory the layers of the view's n-th git directory lie. */
#define PLAN_GIT_LAYERS "git"
/* Where in it the layers of a staged workspace lie. */
#define PLAN_STAGE_LAYERS "stage"
/* Beside these the copy that it is where it cannot have a layer, and what that was like. */
#define PLAN_STAGE_COPY "copy"
#define PLAN_STAGE_SEEN "seen"
#define PLAN_STAGE_PARTS "parts"
/* And what it is a stage of (workspace/stage_store.h). */
#define PLAN_STAGE_ABOUT "about"
/* And what the task renamed in it (workspace/stage_origin.h). */
#define PLAN_STAGE_RENAMED "renamed"

/* The name of every box: neutral, and never resolved outside. */
#define PLAN_BOX_HOSTNAME "bawn"
/* The identity of a task whose caller is the host's root, as seen inside. */
#define PLAN_ROOT_CALLER_ID 1000u
/*
 * The host's id behind it. 0x70000000 and above is set aside by no distribution (systemd's
 * UIDS-GIDS, section "Summary").
 */
#define PLAN_ROOT_HOST_ID 1879100000u
/* The read-only mount that is the evidence of being inside, and the canary in it. */
#define PLAN_EVIDENCE "/run/bawn"
#define PLAN_CANARY PLAN_EVIDENCE "/canary"
/* Mask sources, never shown by a rule of Landlock. */
#define PLAN_MASK_FILE PLAN_EVIDENCE "/mask-file"
#define PLAN_MASK_DIRECTORY PLAN_EVIDENCE "/mask-directory"
#define PLAN_MASK_EMPTY PLAN_EVIDENCE "/empty"
/* A symbolic link, made where the plan has such masks, and what it names, which never exists. */
#define PLAN_MASK_LINK PLAN_EVIDENCE "/mask-link"
#define PLAN_MASK_LINK_TEXT PLAN_EVIDENCE "/hidden"

int plan_build(const struct policy *policy, const struct plan_facts *facts, struct arena *arena,
	       struct plan *ret_plan, struct error *error);

/* True for what belongs to the skeleton; the flags of other kinds may be numbers. */
bool plan_is_kept(const struct plan_op *op);

const char *plan_kind_name(enum plan_kind kind);
enum plan_phase plan_kind_phase(enum plan_kind kind);
enum plan_undo plan_kind_undo(enum plan_kind kind);
const char *plan_phase_name(enum plan_phase phase);

/* One line per operation, numbered; the JSON is an array of objects. */
void plan_print(const struct plan *plan, const struct policy *policy, struct buffer *buffer);
void plan_op_print(const struct plan_op *op, struct buffer *buffer);
void plan_json(const struct plan *plan, const struct policy *policy, struct json *json,
	       const char *name);
