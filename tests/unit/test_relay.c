#include "net/relay.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct relay relay;

/* What a test holds of a stream: the far sides of both its ends. */
struct bench {
	struct end from, to;
	struct stream stream;
	int source, sink;
};

static void begin(struct bench *bench)
{
	int in[2], out[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, in), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, out), 0);
	*bench = (struct bench){
		.from = { .fd = in[0], .readable = true, .writable = true },
		.to = { .fd = out[0], .readable = true, .writable = true },
		.stream = STREAM_NONE,
		.source = in[1],
		.sink = out[1],
	};
	bench->stream.from = &bench->from;
	bench->stream.to = &bench->to;
}

static void end(struct bench *bench)
{
	relay_release(&relay, &bench->stream);
	end_close(&bench->from);
	end_close(&bench->to);
	(void)close(bench->source);
	(void)close(bench->sink);
}

static void put(const struct bench *bench, const char *text)
{
	assert_int_equal(write(bench->source, text, strlen(text)), strlen(text));
}

static void expect(const struct bench *bench, const char *text)
{
	char room[256] = "";
	ssize_t count = read(bench->sink, room, sizeof(room) - 1);

	assert_int_equal(count, strlen(text));
	assert_string_equal(room, text);
}

static void test_run_and_no_more(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	put(&bench, "abcdef");
	bench.stream.run = 4;
	assert_int_equal(relay_move(&relay, &bench.stream, UINT64_MAX), RELAY_RAN);
	expect(&bench, "abcd");
	assert_int_equal(bench.stream.passed, 4);
	assert_int_equal(relay_move(&relay, &bench.stream, UINT64_MAX), RELAY_RAN);
	assert_int_equal(bench.stream.passed, 4);
	end(&bench);
}

static void test_what_came_first_goes_first(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	put(&bench, "head body");
	assert_int_equal(relay_fill(&relay, &bench.stream), 9);
	chunk_skip(bench.stream.in, 5);
	assert_true(relay_put(&relay, &bench.stream, "HEAD ", 5));
	put(&bench, " more");
	bench.from.readable = true;
	bench.stream.run = RELAY_ENDLESS;
	assert_int_equal(relay_move(&relay, &bench.stream, UINT64_MAX), RELAY_WAIT);
	expect(&bench, "HEAD body more");
	assert_null(bench.stream.in);
	assert_null(bench.stream.out);
	end(&bench);
}

static void test_limit(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	put(&bench, "abcdef");
	bench.stream.run = RELAY_ENDLESS;
	assert_int_equal(relay_move(&relay, &bench.stream, 0), RELAY_WAIT);
	assert_int_equal(bench.stream.passed, 0);
	assert_int_equal(relay_move(&relay, &bench.stream, 2), RELAY_WAIT);
	expect(&bench, "ab");
	end(&bench);
}

static void test_end_of_file_and_loss(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	put(&bench, "x");
	assert_int_equal(shutdown(bench.source, SHUT_WR), 0);
	bench.from.is_ending = true;
	bench.stream.run = RELAY_ENDLESS;
	assert_int_equal(relay_move(&relay, &bench.stream, UINT64_MAX), RELAY_ENDED);
	assert_true(bench.from.is_done);
	expect(&bench, "x");
	end(&bench);

	begin(&bench);
	put(&bench, "x");
	(void)close(bench.sink);
	bench.stream.run = RELAY_ENDLESS;
	assert_int_equal(relay_move(&relay, &bench.stream, UINT64_MAX), RELAY_LOST);
	assert_true(bench.to.is_lost);
	bench.sink = dup(0);
	end(&bench);
}

/* Far more than a socket takes, so that bytes wait in chunks and, later, where they came. */
static void test_much_comes_as_it_went(void **state)
{
	enum { SIZE = 8 * 1024 * 1024, PIECE = 60000 };
	unsigned char *sent = malloc(SIZE), *got = malloc(SIZE + 1);
	size_t in = 0, out = 0;
	struct bench bench;
	bool was_bulk = false, is_full = false;

	(void)state;
	assert_non_null(sent);
	assert_non_null(got);
	for (size_t i = 0; i < SIZE; i++)
		sent[i] = (unsigned char)(i * 2654435761u >> 13);
	begin(&bench);
	bench.stream.run = RELAY_ENDLESS;
	while (out < SIZE) {
		ssize_t count = in < SIZE ? write(bench.source, sent + in,
						  SIZE - in < PIECE ? SIZE - in : PIECE) :
					    0;

		in += count > 0 ? (size_t)count : 0;
		bench.from.readable = true;
		assert_int_not_equal(relay_move(&relay, &bench.stream, UINT64_MAX), RELAY_LOST);
		was_bulk |= bench.stream.is_bulk && bench.stream.out == NULL && !bench.to.writable;
		/* the reader begins when nothing more fits anywhere */
		is_full |= count <= 0;
		if (!is_full)
			continue;
		count = read(bench.sink, got + out, SIZE + 1 - out);
		out += count > 0 ? (size_t)count : 0;
		bench.to.writable = true;
		if (in == SIZE && bench.stream.passed == SIZE && count <= 0)
			break;
	}
	assert_int_equal(out, SIZE);
	assert_memory_equal(sent, got, SIZE);
	assert_true(was_bulk);
	end(&bench);
	free(sent);
	free(got);
}

static void test_pool_has_an_end(void **state)
{
	static struct chunk *chunks[POOL_LIMIT_CHUNKS];
	struct pool pool;

	(void)state;
	assert_int_equal(pool_make(&pool), 0);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < POOL_LIMIT_CHUNKS; i++) {
			chunks[i] = pool_take(&pool);
			assert_non_null(chunks[i]);
			assert_true(chunk_add(chunks[i], &i, sizeof(i)));
		}
		assert_null(pool_take(&pool));
		for (unsigned i = 0; i < POOL_LIMIT_CHUNKS; i++) {
			assert_memory_equal(chunks[i]->bytes, &i, sizeof(i));
			pool_give(&pool, &chunks[i]);
			assert_null(chunks[i]);
		}
	}
}

static void take_all(struct chunk **chunks, uint32_t left)
{
	for (uint32_t i = 0; pool_left(&relay.pool) > left; i++) {
		chunks[i] = pool_take(&relay.pool);
		assert_non_null(chunks[i]);
	}
}

static void give_all(struct chunk **chunks)
{
	for (uint32_t i = 0; i < POOL_LIMIT_CHUNKS; i++)
		pool_give(&relay.pool, &chunks[i]);
}

/* What is not open yet leaves the reserve alone, an open one a chunk for what it makes of it. */
static void test_the_last_chunks_are_for_open_ones(void **state)
{
	static struct chunk *chunks[POOL_LIMIT_CHUNKS];
	struct bench bench;

	(void)state;
	begin(&bench);
	put(&bench, "abc");
	bench.stream.is_modest = true;
	take_all(chunks, POOL_LIMIT_RESERVED);
	assert_int_equal(relay_fill(&relay, &bench.stream), -ENOMEM);
	bench.stream.is_modest = false;
	assert_int_equal(relay_fill(&relay, &bench.stream), 3);
	stream_skip(&relay, &bench.stream, 3);
	put(&bench, "def");
	bench.from.readable = true;
	give_all(chunks);
	take_all(chunks, 1);
	assert_int_equal(relay_fill(&relay, &bench.stream), -ENOMEM);
	give_all(chunks);
	relay.pool.is_given = false;
	assert_int_equal(relay_fill(&relay, &bench.stream), 3);
	end(&bench);
	assert_true(relay.pool.is_given);
}

/* Without a single chunk all arrives, its end too, however little the other end takes at once. */
static void test_what_goes_by_needs_no_memory(void **state)
{
	static struct chunk *chunks[POOL_LIMIT_CHUNKS];
	static unsigned char sent[300000], got[sizeof(sent) + 1];
	enum relay_result result = RELAY_WAIT;
	size_t in = 0, out = 0;
	struct bench bench;

	(void)state;
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (unsigned char)(i * 2654435761u >> 13);
	begin(&bench);
	/* some of it came while there was memory */
	assert_int_equal(write(bench.source, sent, 1000), 1000);
	in = 1000;
	assert_int_equal(relay_fill(&relay, &bench.stream), 1000);
	take_all(chunks, 0);
	bench.stream.run = sizeof(sent) - 1;
	while (result == RELAY_WAIT) {
		ssize_t count =
			in < sizeof(sent) ? write(bench.source, sent + in, sizeof(sent) - in) : 0;

		in += count > 0 ? (size_t)count : 0;
		bench.from.readable = true;
		result = relay_move(&relay, &bench.stream, UINT64_MAX);
		assert_null(bench.stream.out);
		/* the one that was given back is not there for it, either */
		if (!chunks[POOL_LIMIT_CHUNKS - 1])
			chunks[POOL_LIMIT_CHUNKS - 1] = pool_take(&relay.pool);
		if (result == RELAY_WAIT || result == RELAY_RAN) {
			count = read(bench.sink, got + out, 7000);
			out += count > 0 ? (size_t)count : 0;
			bench.to.writable = true;
		}
	}
	assert_int_equal(result, RELAY_RAN);
	for (ssize_t count = 1; count > 0; out += count > 0 ? (size_t)count : 0)
		count = read(bench.sink, got + out, sizeof(got) - out);
	/* and not the byte behind the run */
	assert_int_equal(out, sizeof(sent) - 1);
	assert_memory_equal(sent, got, out);
	bench.stream.run = RELAY_ENDLESS;
	assert_int_equal(shutdown(bench.source, SHUT_WR), 0);
	bench.from.readable = bench.from.is_ending = true;
	assert_int_equal(relay_move(&relay, &bench.stream, UINT64_MAX), RELAY_ENDED);
	assert_int_equal(bench.stream.passed, sizeof(sent));
	give_all(chunks);
	end(&bench);
}

static int make(void **state)
{
	(void)state;
	return relay_make(&relay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run_and_no_more),
		cmocka_unit_test(test_what_came_first_goes_first),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_end_of_file_and_loss),
		cmocka_unit_test(test_much_comes_as_it_went),
		cmocka_unit_test(test_pool_has_an_end),
		cmocka_unit_test(test_the_last_chunks_are_for_open_ones),
		cmocka_unit_test(test_what_goes_by_needs_no_memory),
	};

	return cmocka_run_group_tests(tests, make, NULL);
}
