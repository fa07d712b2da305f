/*
 * Whether git's objects are what their names say: for those that a task made and that come to the
 * host's store, where git believes a name without asking. The bytes may be hostile: memory and work
 * are bounded, nothing is executed, no link followed.
 *
 * Loose objects, and packs with the index that the task wrote for them. What is read may be written
 * anew by git_content_save() or taken as it is, if nobody can change the file any more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An object of a pack that a delta makes, or that one is made from: git makes none of larger ones
 * by default (core.bigFileThreshold is 512 MiB, but such files seldom have deltas). */
#define GIT_CONTENT_LIMIT_DELTA_BYTES (128u * 1024 * 1024)
/* Contents that are kept for the next deltas. */
#define GIT_CONTENT_CACHE_BYTES (64u * 1024 * 1024)
/* What one look takes apart, with all contents on the way: about a minute. */
#define GIT_CONTENT_LIMIT_WORK_BYTES (16ull * 1024 * 1024 * 1024)
/* git itself makes chains of 50, at most of 4095. */
#define GIT_CONTENT_LIMIT_CHAIN 4096
/* Some two million objects. */
#define GIT_CONTENT_LIMIT_INDEX_BYTES (96u * 1024 * 1024)

#define GIT_CONTENT_ID_BYTES 32

/*
 * A loose object. 0: its content has this id, of id_bytes bytes. -EBADMSG: it has not, or is none;
 * -EFBIG: it takes too long to tell; or the read's error. Takes its work from *work_bytes.
 */
int git_content_check(int fd, const unsigned char *id, size_t id_bytes, uint64_t *work_bytes)
	__attribute__((warn_unused_result));

struct git_pack;

/*
 * A pack by its index, of which only that is believed which the pack itself shows. -EBADMSG,
 * -EFBIG, -ENOMEM; ret_pack is the caller's. The descriptors are borrowed while it lives.
 */
int git_pack_open(int pack_fd, int index_fd, size_t id_bytes, struct git_pack **ret_pack)
	__attribute__((warn_unused_result));
void git_pack_close(struct git_pack *pack);

#define CLEANUP_GIT_PACK __attribute__((cleanup(git_pack_close_p)))
void git_pack_close_p(struct git_pack **pack);

size_t git_pack_count(const struct git_pack *pack);
/* Sorted. */
const unsigned char *git_pack_id(const struct git_pack *pack, size_t index);

/* All of it is there and has the names that the index gives. Errors as git_content_check(). */
int git_pack_check(struct git_pack *pack, uint64_t *work_bytes) __attribute__((warn_unused_result));

/*
 * Writes one object into an empty file, as a loose one (not compressed), with its name checked.
 * Errors as git_content_check(), or the write's.
 */
int git_pack_save(struct git_pack *pack, size_t index, int fd, uint64_t *work_bytes)
	__attribute__((warn_unused_result));
