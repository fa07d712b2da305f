/*
 * Chunked bodies: whatever the pieces, the same verdict and the same bytes written; what is written
 * is taken again, and written as it is.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/http_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sizes become shorter by being written anew, nothing becomes longer but a missing leading zero. */
#define ROOM (1u << 20)

struct outcome {
	char *bytes;
	size_t length, used;
	int result;
	bool done;
};

static void require(bool condition)
{
	if (!condition)
		abort();
}

static struct outcome pass(const char *bytes, size_t length, size_t step)
{
	struct outcome outcome = { .bytes = malloc(ROOM), .result = 0 };
	struct http_body body;
	const char *why = NULL;

	require(outcome.bytes);
	http_body_begin(&body, HTTP_CHUNKED, 0);
	while (outcome.used < length && outcome.result >= 0 && !http_body_is_done(&body)) {
		size_t left = length - outcome.used, part = left < step ? left : step;
		struct http_piece piece;
		uint64_t payload = http_body_payload(&body);

		outcome.result = http_body_next(&body, bytes + outcome.used, part, &piece, &why);
		require(piece.used <= part && (outcome.result >= 0 || (why && !piece.used)));
		require(!payload || (piece.used && piece.used <= payload));
		require(outcome.result != 0 || piece.used == part);
		require(outcome.length + piece.out.length <= ROOM);
		memcpy(outcome.bytes + outcome.length, piece.out.bytes, piece.out.length);
		outcome.length += piece.out.length;
		outcome.used += piece.used;
	}
	outcome.done = http_body_is_done(&body);
	require((http_body_close(&body) == 0) == outcome.done);
	return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct outcome whole, pieces, again;

	if (size < 1 || size > ROOM / 2)
		return 0;
	whole = pass(bytes + 1, size - 1, size);
	pieces = pass(bytes + 1, size - 1, (size_t)data[0] % 16 + 1);
	require(whole.done == pieces.done && (whole.result < 0) == (pieces.result < 0));
	if (whole.result >= 0) {
		require(whole.used == pieces.used && whole.length == pieces.length);
		require(memcmp(whole.bytes, pieces.bytes, whole.length) == 0);
	}
	if (whole.done) {
		again = pass(whole.bytes, whole.length, whole.length);
		require(again.done && again.used == whole.length && again.length == whole.length);
		require(memcmp(again.bytes, whole.bytes, whole.length) == 0);
		free(again.bytes);
	}
	free(whole.bytes);
	free(pieces.bytes);
	return 0;
}
