/*
 * References of a git repository as bytes: values, names, and the file packed-refs. Pure; for bytes
 * that a task wrote and that the host's git will read.
 *
 * Texts point into the bytes that were given, or into the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* A loose reference is an id, or "ref: " and a name; git reads no longer ones. */
#define GIT_REF_LIMIT_BYTES 1024
/* Some hundred thousand references; what is larger is not taken apart. */
#define GIT_PACKED_LIMIT_BYTES (16u * 1024 * 1024)

/* 40 or 64 lower-case digits at the beginning that no further digit follows; 0: there is no id. */
size_t git_ref_id_length(const char *bytes, size_t length);

/* A name below refs/ by the rules of git-check-ref-format(1). */
bool git_ref_is_name(const char *name, size_t length);

/*
 * The value of a loose reference, or of HEAD: an id, or where that may be "ref: refs/...", without
 * what stands behind it (only white space may). NULL where it is neither, or memory ran out.
 */
const char *git_ref_value(struct arena *arena, const char *bytes, size_t length,
			  bool may_be_symbolic);

/* Each line begins with an id, and has text behind it only where that may be. */
bool git_ref_is_list(const char *bytes, size_t length, bool may_have_text);

/* Lines of a reference's log: two ids, who and when, a tab and a message. */
bool git_ref_is_log(const char *bytes, size_t length);

struct git_packed_ref {
	const char *name, *id; /* name: NUL-ended, of the arena; id: of the bytes */
	size_t id_length;
	size_t begin, end; /* its lines in the bytes */
};

struct git_packed {
	const char *bytes;
	size_t length;
	struct git_packed_ref *refs; /* sorted by name */
	size_t count;
};

/* -EBADMSG for what git would not have written; -ENOMEM. Empty bytes have no references. */
int git_packed_parse(struct arena *arena, const char *bytes, size_t length,
		     struct git_packed *ret_packed);

/* NULL where there is none. */
const struct git_packed_ref *git_packed_find(const struct git_packed *packed, const char *name);
