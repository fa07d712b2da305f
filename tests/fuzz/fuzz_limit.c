/*
 * Values of limits: what is taken is within the limit's bounds, and printed it is taken again as
 * the same value; what is refused leaves the value alone and says why. The first byte is the limit.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "policy/limit.h"

#define MARK UINT64_C(0xfeedfacecafebeef)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_printed(enum limit limit, uint64_t value)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct error error = ERROR_NONE;
	uint64_t again = MARK;

	limit_print(limit, value, &text);
	require(!text.failed);
	/* nanoseconds have no unit that an option takes */
	if (limit_text(limit)->unit == LIMIT_UNIT_DURATION && value % LIMIT_MS)
		return;
	require(limit_parse(limit, text.data, &again, &error) == 0 && again == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error error = ERROR_NONE;
	uint64_t value = MARK;
	enum limit limit;
	char *text;
	int result;

	if (size == 0)
		return 0;
	limit = (enum limit)(data[0] % LIMIT_COUNT);
	text = strndup((const char *)data + 1, size - 1);
	require(text);
	result = limit_parse(limit, text, &value, &error);
	if (result == 0) {
		require(value >= limit_text(limit)->least && value <= limit_text(limit)->most);
		check_printed(limit, value);
	} else {
		require(result == -EINVAL || result == -ERANGE);
		require(value == MARK && error.code == result && error.message[0]);
	}
	free(text);
	return 0;
}
