/*
 * A name server that lies: the dialer of verify's task asks it in place of the host's, so that no
 * question leaves the host, and it leads each name to the address that the name itself spells out:
 * 7f000001.BATTERY_NAMES to 127.0.0.1.
 */
#include "broker/battery_internal.h"

#include "base/arena.h"
#include "base/fd.h"
#include "kernel/network.h"
#include "net/dns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int digit_of(char digit)
{
	return digit >= '0' && digit <= '9' ? digit - '0' :
	       digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 :
					      -1;
}

/* A label of 8 or 32 digits. */
static bool take_label(const char *label, size_t length, struct address *ret_address)
{
	*ret_address = (struct address){ .family = length == 8 ? ADDRESS_V4 : ADDRESS_V6 };
	if (length != 8 && length != 32)
		return false;
	for (size_t i = 0; i < length; i++) {
		int digit = digit_of(label[i]);

		if (digit < 0)
			return false;
		ret_address->bytes[i / 2] =
			(uint8_t)(ret_address->bytes[i / 2] << 4 | (unsigned)digit);
	}
	return true;
}

static bool take_name(const char *name, struct address *ret_address)
{
	size_t length = strcspn(name, ".");

	return name[length] && strcmp(name + length + 1, BATTERY_NAMES) == 0 &&
	       take_label(name, length, ret_address);
}

static void answer(struct task *task, struct task_watch *watch, short events)
{
	unsigned char question[DNS_LIMIT_UDP_BYTES], room[DNS_LIMIT_ANSWER_BYTES];
	struct address address;
	struct sockaddr_in from;
	socklen_t from_length = sizeof(from);
	struct dns_query query;
	size_t length;
	bool leads;
	ssize_t got = recvfrom(watch->fd, question, sizeof(question), MSG_DONTWAIT,
			       (struct sockaddr *)&from, &from_length);

	(void)task;
	(void)events;
	if (got < 0 || dns_parse_query(question, (size_t)got, &query) < 0)
		return;
	leads = query.has_host && take_name(query.host.name, &address);
	length = dns_write_answer(&query, leads ? DNS_NOERROR : DNS_NXDOMAIN, &address, leads, 0,
				  room);
	(void)sendto(watch->fd, room, length, MSG_DONTWAIT, (struct sockaddr *)&from, from_length);
}

int battery_names_plant(struct battery_decoys *decoys)
{
	struct sockaddr_in address = { 0 };
	socklen_t length = sizeof(address);
	int result = network_listener(AF_INET, SOCK_DGRAM, 0, &decoys->names_fd);

	if (result < 0)
		return result;
	if (getsockname(decoys->names_fd, (struct sockaddr *)&address, &length) < 0)
		return -errno;
	decoys->names_port = ntohs(address.sin_port);
	decoys->names = (struct task_watch){ .fd = decoys->names_fd, .ready = answer };
	return 0;
}

const char *battery_name_of(const char *text, struct arena *arena)
{
	char digits[32 + 1];
	struct address address;

	if (address_parse(text, strlen(text), &address) < 0)
		return NULL;
	for (size_t i = 0; i < (address.family == ADDRESS_V4 ? 4u : 16u); i++)
		(void)snprintf(digits + 2 * i, 3, "%02x", address.bytes[i]);
	return arena_format(arena, "%s." BATTERY_NAMES, digits);
}
