#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/prefault.h"

#define PAGE 4096u
#define PAGES 16u

static long faults(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_minflt;
}

static char *map(void)
{
	char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	return pages;
}

static long touch(volatile char *pages, size_t first, size_t last)
{
	long before = faults();

	for (size_t i = first; i < last; i++)
		pages[i * PAGE] = 1;
	return faults() - before;
}

static void writes_take_no_fault(void **state)
{
	char *pages = map(), *others = map();

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	/* each write looks at shadow memory, which has faults of its own */
	skip();
#endif
	/* rounded inwards: the first and the last page are none of it */
	prefault_writes(pages + 1, PAGES * PAGE - 2);
	/* the counters are read once before, so that this takes no fault of its own */
	(void)touch(others, 0, 1);
	assert_int_equal(touch(pages, 1, PAGES - 1), 0);
	assert_true(touch(pages, 0, 1) > 0);
	assert_true(touch(others, 1, PAGES) > 0);
	(void)munmap(pages, PAGES * PAGE);
	(void)munmap(others, PAGES * PAGE);
}

static void less_than_a_page_is_nothing(void **state)
{
	char *pages = map();

	(void)state;
	prefault_writes(pages + 1, PAGE - 1);
	prefault_writes(pages, 0);
	assert_true(touch(pages, 0, 1) > 0);
	(void)munmap(pages, PAGES * PAGE);
}

static long deep(void)
{
	volatile char room[8 * PAGE];

	return touch(room, 0, 8);
}

static void stack_is_there(void **state)
{
	(void)state;
	prefault_stack(64 * 1024);
	assert_int_equal(deep(), 0);
}

extern const char __executable_start[], edata[];

static void program_is_there(void **state)
{
	long before;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip();
#endif
	prefault_program();
	before = faults();
	for (const volatile char *at = __executable_start; at < edata; at += PAGE)
		(void)*at;
	assert_int_equal(faults() - before, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_take_no_fault),
		cmocka_unit_test(less_than_a_page_is_nothing),
		cmocka_unit_test(stack_is_there),
		cmocka_unit_test(program_is_there),
	};

	return cmocka_run_group_tests_name("prefault", tests, NULL, NULL);
}
