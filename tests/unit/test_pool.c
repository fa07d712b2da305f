#include "net/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define PAGE_BYTES 4096u
#define BURST 64u

/* How many of them have the page in their middle. */
static unsigned warm_ones(struct chunk *const *chunks)
{
	unsigned count = 0;

	for (unsigned i = 0; i < BURST; i++) {
		uintptr_t middle = (uintptr_t)chunks[i]->bytes + CHUNK_BYTES / 2;
		unsigned char is_there = 0;

		assert_int_equal(mincore((void *)(middle & ~(uintptr_t)(PAGE_BYTES - 1)),
					 PAGE_BYTES, &is_there),
				 0);
		count += is_there & 1;
	}
	return count;
}

static void burst(struct pool *pool, struct chunk **chunks)
{
	struct chunk *taken[BURST];

	for (unsigned i = 0; i < BURST; i++) {
		taken[i] = chunks[i] = pool_take(pool);
		assert_non_null(taken[i]);
		memset(taken[i]->bytes, 1, sizeof(taken[i]->bytes));
	}
	for (unsigned i = 0; i < BURST; i++)
		pool_give(pool, &taken[i]);
}

static void what_is_needed_again_keeps_its_pages(void **state)
{
	struct chunk *chunks[BURST];
	struct pool pool;

	(void)state;
	assert_int_equal(pool_make(&pool), 0);
	for (unsigned turn = 0; turn < 4; turn++) {
		burst(&pool, chunks);
		assert_int_equal(warm_ones(chunks), BURST);
		pool_rest(&pool);
		assert_int_equal(warm_ones(chunks), BURST);
	}
}

static void what_a_burst_took_is_given_back(void **state)
{
	struct chunk *chunks[BURST], *one;
	struct pool pool;
	unsigned kept;

	(void)state;
	assert_int_equal(pool_make(&pool), 0);
	burst(&pool, chunks);
	assert_true(pool_is_warm(&pool));
	pool_rest(&pool);
	one = pool_take(&pool);
	pool_give(&pool, &one);
	pool_rest(&pool);
	kept = warm_ones(chunks);
	assert_in_range(kept, 1, BURST / 4 + 1);
	pool_rest(&pool);
	assert_false(pool_is_warm(&pool));
	/* cold ones are as good as new, and none is given out twice */
	burst(&pool, chunks);
	for (unsigned i = 1; i < BURST; i++)
		assert_ptr_not_equal(chunks[i], chunks[0]);
	assert_int_equal(warm_ones(chunks), BURST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_needed_again_keeps_its_pages),
		cmocka_unit_test(what_a_burst_took_is_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
