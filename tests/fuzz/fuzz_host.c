/*
 * Hosts and HOST:PORT. What is accepted is canonical: of the few bytes that names have, the same
 * when it is read again, and no number that other programs would take for an address. Input: the
 * text.
 */
#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "policy/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check(const struct host *host)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
	struct host again;
	struct in_addr number;
	const char *why = NULL;
	size_t length = strlen(host->name);

	require(length > 0 && length < sizeof(host->name));
	require(host_parse(host->name, length, &again, &why) == 0 && host_equal(host, &again));
	require(strcmp(host->name, again.name) == 0);
	host_special(host);
	if (host->kind == HOST_ADDRESS)
		return;
	require(strspn(host->name, allowed) == length);
	require(host->name[0] != '.' && host->name[length - 1] != '.');
	require(!strstr(host->name, ".."));
	require(!inet_aton(host->name, &number));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *why = NULL;
	struct host host;
	uint16_t port = 0;

	if (host_parse(text, size, &host, &why) == 0)
		check(&host);
	else
		require(why != NULL);
	why = NULL;
	if (host_parse_port(text, size, 0, &host, &port, &why) == 0) {
		require(port != 0);
		check(&host);
	} else {
		require(why != NULL);
	}
	return 0;
}
