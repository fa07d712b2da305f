/* SOCKS5: what is taken is complete, and a name of it is one; what is refused says why. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct socks_request request;
	struct socks_reply reply;
	const char *why = NULL;
	struct host host;
	int used = socks_parse_greeting(data, size, &reply, &why);

	require(used <= (int)size && (used >= 0 || why) && reply.length <= SOCKS_REPLY_BYTES);
	require(used <= 0 || (reply.length == 2 && reply.bytes[1] == 0));
	why = NULL;
	used = socks_parse_request(data, size, &request, &reply, &why);
	require(used <= (int)size && used <= (int)SOCKS_LIMIT_BYTES);
	require((used < 0) == (why != NULL) && (used < 0) == (reply.length == 10));
	require(used != 0 || size < SOCKS_LIMIT_BYTES);
	if (used <= 0)
		return 0;
	require(request.port);
	require(host_parse(request.host.name, strlen(request.host.name), &host, &why) == 0);
	require(host_equal(&host, &request.host));
	/* and not before all of it is there */
	require(socks_parse_request(data, (size_t)used - 1, &request, &reply, &why) == 0);
	return 0;
}
