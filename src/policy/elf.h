/*
 * What a program of the ELF form (elf(5)) needs in order to run: its interpreter, the names of its
 * libraries and where it says that these lie. Of little-endian files, of both widths.
 *
 * The bytes are foreign: every offset and count is checked, and what is read is bounded by the
 * limits below, whatever the file says. Pure: the caller reads.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;

#define ELF_LIMIT_SEGMENTS 128u
#define ELF_LIMIT_TAGS 4096u
#define ELF_LIMIT_NAMES 1024u
#define ELF_LIMIT_TEXT 4096u

struct elf_source {
	/* exactly `length` bytes from `offset` on: 0, or a negative errno where there are fewer */
	int (*read)(void *context, uint64_t offset, void *bytes, size_t length);
	void *context;
};

/* Texts are the arena's; NULL: it says nothing. */
struct elf_needs {
	const char *interpreter;
	const char *rpath, *runpath; /* directories, separated by ':' */
	const char **names;	     /* of libraries */
	size_t count;
	uint16_t machine;
	uint8_t width; /* 32 or 64 */
};

/* -ENOEXEC: not of this form; -EBADMSG: it contradicts itself or a limit; -ENOMEM. */
int elf_read(const struct elf_source *source, struct arena *arena, struct elf_needs *ret_needs);
