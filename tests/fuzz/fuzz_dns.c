/*
 * DNS packets of both sides: what is written about any question is read by the client; an answer
 * that is taken has addresses of the type that was asked for, within the limits.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_query(const uint8_t *data, size_t size)
{
	static const struct address addresses[] = { { ADDRESS_V4, { 198, 18, 0, 1 } },
						    { ADDRESS_V6, { 0xfd, 0x77 } } };
	unsigned char answer[DNS_LIMIT_ANSWER_BYTES];
	struct dns_result result;
	struct dns_query query;
	size_t length;
	int parsed;

	if (dns_parse_query(data, size, &query) < 0)
		return;
	require(!query.question_bytes ||
		(query.question >= data && query.question + query.question_bytes <= data + size));
	require(!query.has_host || query.code == DNS_NOERROR);
	length = dns_write_answer(&query, query.code, addresses, 2, 60, answer);
	require(length >= 12);
	if (!query.has_host || (query.type != DNS_A && query.type != DNS_AAAA))
		return;
	parsed = dns_parse_answer(answer, length, query.id, &query.host, (enum dns_type)query.type,
				  &result);
	require(parsed == 0 && result.address_count == 1);
	require(result.addresses[0].family == (query.type == DNS_A ? ADDRESS_V4 : ADDRESS_V6));
}

static void check_answer(const uint8_t *data, size_t size, enum dns_type type)
{
	const uint16_t id = size < 2 ? 0 : (uint16_t)(data[0] << 8 | data[1]);
	struct dns_result result;
	struct host host;
	const char *why;

	require(host_parse("a.example", 9, &host, &why) == 0);
	if (dns_parse_answer(data, size, id, &host, type, &result) < 0)
		return;
	require(result.address_count <= EGRESS_LIMIT_ADDRESSES);
	require(result.alias_count <= DNS_LIMIT_ALIASES);
	require(!result.address_count || (result.code == DNS_NOERROR && !result.truncated));
	for (size_t i = 0; i < result.address_count; i++)
		require(result.addresses[i].family == (type == DNS_A ? ADDRESS_V4 : ADDRESS_V6));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	require(dns_frame(data, size) <= size);
	check_query(data, size);
	check_answer(data, size, DNS_A);
	check_answer(data, size, DNS_AAAA);
	return 0;
}
