/*
 * A view: which paths of the host a box shows, and how. The rows are gathered by src/workspace
 * (facts about the host), carried in the compiled policy and turned into mounts by src/plan.
 *
 * Rows are by class. A later, deeper path overrides a shallower one, except that *hide* beats
 * everything below it. Sources carry the {device, inode} seen when the row was made: the executor
 * refuses a source that has become another object meanwhile.
 *
 * A git directory is two kinds of rows: PATH_GIT, an overlay whose upper layer is the task's own,
 * and PATH_OBJECTS in it, an object store. Its large packs are bound read-only over the overlay's:
 * git freshens packs by their times, for which an overlay would copy them whole; where it cannot,
 * it writes the object anew. Both are shown where they lie on the host.
 *
 * A staged or ephemeral workspace is one PATH_STAGE row: the same kind of overlay, over all of it.
 * A git directory in it keeps its own. The policy's flag says whether the layer stays at the end.
 *
 * PATH_COPY differs from PATH_READ in its cost alone: the copy is part of the root that many
 * starts have in common. Where other rows speak of the same path, or of one above or below it, the
 * planner binds the host's own object instead.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum path_class {
	PATH_READ,    /* the host's, read-only */
	PATH_WRITE,   /* the host's, writable in place */
	PATH_HIDE,    /* absent by name */
	PATH_PROTECT, /* visible, not changeable, inside of a writable path */
	PATH_CACHE,   /* overlay: the host's (source, may be "") below, `upper` above */
	PATH_DEVICE,  /* a device node of the host */
	PATH_LINK,    /* a symbolic link made in the box: source is its text */
	PATH_FILE,    /* a small file made in the box: source is its content */
	PATH_COPY,    /* the host's small file or tree as it is at the start, read-only */
	PATH_GIT,     /* overlay: the host's git directory below, the task's own layer above */
	PATH_OBJECTS, /* in such a one: a store of objects; it is no mount of its own */
	PATH_STAGE,   /* overlay: the host's tree below, the task's layer above */
	PATH_PROGRAM, /* the host's, read-only, in a policy that executes nothing else */
	PATH_CLASS_COUNT,
};

enum path_kind {
	PATH_KIND_DIRECTORY,
	PATH_KIND_FILE,
	PATH_KIND_MISSING, /* hide: no such name now; covered where the mechanism is by name */
	PATH_KIND_LINK,	   /* protect: a symbolic link, whose name keeps leading where it leads;
			    * hide: a file, covered by a link that leads nowhere */
	PATH_KIND_COUNT,
};

struct view_path {
	enum path_class class;
	enum path_kind kind;
	const char *source; /* clean host path, or as said at the class */
	const char *target; /* clean path inside of the box */
	const char *upper;  /* PATH_CACHE: directory of the project's own layer, else NULL */
	uint64_t device, inode;
	uint64_t state; /* PATH_COPY: of what is copied (base/copy.h), else 0 */
	uint32_t rule;	/* index into the policy's rules */
};

struct view {
	struct view_path *paths;
	size_t count;
};

/* A home with every toolchain, its caches and some hundred hidden files stays far below. */
#define VIEW_LIMIT_PATHS 4096

/*
 * Where inputs are shown: rows of PATH_READ whose place is not that of the host, because the caller
 * gave them a name (`--input PATH:NAME`).
 */
#define VIEW_INPUTS "/run/bawn/input"

bool view_is_input(const struct view_path *row);

/* Appends a copy of the row (its strings are borrowed). False when memory or the limit ran out. */
bool view_add(struct view *view, struct arena *arena, struct view_path path);

/*
 * The row that decides about a path inside of the box: the deepest one at or above it, where any
 * PATH_HIDE at or above it wins; NULL when none applies (absent or private area).
 */
const struct view_path *view_lookup(const struct view *view, const char *path);

/* Whether a device of it is a graphics card or its compute interface. */
bool view_has_gpu(const struct view *view);

const char *path_class_name(enum path_class class);
