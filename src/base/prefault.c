#include "base/prefault.h"

#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Of every architecture of ours, or a divisor of it: then the kernel refuses (EINVAL). */
#define PAGE_BYTES 4096u

/* Where the linker put the program, from its first page to the end of its tables. */
extern const char __executable_start[], edata[];

static void populate(uintptr_t start, uintptr_t end, int advice)
{
	start = (start + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
	end &= ~(uintptr_t)(PAGE_BYTES - 1);
	if (start < end)
		(void)madvise((void *)start, end - start, advice);
}

void prefault_stack(size_t bytes)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	populate(here - bytes, here, MADV_POPULATE_WRITE);
}

void prefault_writes(void *start, size_t bytes)
{
	populate((uintptr_t)start, (uintptr_t)start + bytes, MADV_POPULATE_WRITE);
}

void prefault_program(void)
{
	populate((uintptr_t)__executable_start, (uintptr_t)edata, MADV_POPULATE_READ);
}
