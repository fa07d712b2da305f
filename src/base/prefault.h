/*
 * Memory that is about to be used, taken at one blow: a fault for each page of it is a trap, which
 * in a virtual machine without hardware support costs as much as ten system calls. Only speed
 * depends on it: a kernel before Linux 5.14 (MADV_POPULATE_WRITE, madvise(2)) takes the faults.
 */
#pragma once

#include <stddef.h>

/* So much of the stack below the caller's frame, within what the kernel gives at the exec. */
void prefault_stack(size_t bytes);

/* Pages that will be written; the range is rounded inwards to whole ones. */
void prefault_writes(void *start, size_t bytes);

/*
 * The program's code and tables; the first start after a boot reads all of them. Without it the
 * kernel maps sixteen pages of a file at each fault, and a start's way leads through most such
 * pieces.
 */
void prefault_program(void);
