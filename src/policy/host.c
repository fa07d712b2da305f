#include "policy/host.h"

#include <errno.h>
#include <string.h>

#define LABEL_LIMIT_BYTES 63

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EINVAL;
}

/* The byte of a canonical name that this one stands for; 0: none. */
static char canonical(char byte)
{
	if (byte >= 'A' && byte <= 'Z')
		return (char)(byte - 'A' + 'a');
	if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
	    byte == '_' || byte == '.')
		return byte;
	return 0;
}

static const char *why_not_byte(char byte)
{
	if ((unsigned char)byte > 0x7e)
		return "is not of ASCII: write its A-labels (xn--...)";
	if (byte == '*')
		return "has a '*', which stands for labels in rules alone, and at their front";
	if (byte == '@')
		return "has a '@': no user is part of it";
	if (byte == '%')
		return "has a '%': it has no zone, and nothing in it is encoded";
	if (byte == '[' || byte == ']' || byte == ':')
		return "is no address of version 6, nor a name";
	return "has a byte that no name has";
}

/* All digits, or 0x and what may follow: inet_aton(3) and its kin read a number. */
static bool is_number(const char *label, size_t length)
{
	size_t at = 0;
	bool hex = length >= 2 && label[0] == '0' && label[1] == 'x';

	if (hex)
		at = 2;
	for (; at < length; at++) {
		bool is_digit = label[at] >= '0' && label[at] <= '9';

		if (!is_digit && !(hex && label[at] >= 'a' && label[at] <= 'f'))
			return false;
	}
	return true;
}

static const char *why_not_label(const char *label, size_t length)
{
	if (length == 0)
		return "has an empty label";
	if (length > LABEL_LIMIT_BYTES)
		return "has a label of more than 63 bytes";
	if (label[0] == '-' || label[length - 1] == '-')
		return "has a label that begins or ends with '-'";
	return NULL;
}

/* Of a canonical text. */
static const char *why_not_name(const char *name, size_t length)
{
	const char *end = name + length, *label = name;

	while (true) {
		const char *dot = memchr(label, '.', (size_t)(end - label));
		size_t bytes = (size_t)((dot ? dot : end) - label);
		const char *why = why_not_label(label, bytes);

		if (why)
			return why;
		if (!dot)
			return is_number(label, bytes) ?
				       "ends with a number, and is no address of four decimals" :
				       NULL;
		label = dot + 1;
	}
}

static int parse_name(const char *text, size_t length, struct host *host, const char **ret_why)
{
	const char *why;

	for (size_t i = 0; i < length; i++)
		if (!canonical(text[i]))
			return refuse(ret_why, why_not_byte(text[i]));
	if (length > 1 && text[length - 1] == '.')
		length--; /* the root, which every name ends with */
	if (length >= HOST_NAME_BYTES)
		return refuse(ret_why, "has more than 253 bytes");
	host->kind = HOST_NAME;
	for (size_t i = 0; i < length; i++)
		host->name[i] = canonical(text[i]);
	why = why_not_name(host->name, length);
	return why ? refuse(ret_why, why) : 0;
}

void host_of_address(const struct address *address, struct host *ret_host)
{
	memset(ret_host, 0, sizeof(*ret_host));
	ret_host->kind = HOST_ADDRESS;
	ret_host->address = *address;
	address_print(address, ret_host->name);
}

int host_parse(const char *text, size_t length, struct host *ret_host, const char **ret_why)
{
	bool brackets = length >= 2 && text[0] == '[' && text[length - 1] == ']';
	struct host host = { 0 };
	struct address address;
	int r;

	if (length == 0)
		return refuse(ret_why, "is empty");
	if (brackets) {
		text++;
		length -= 2;
	}
	if (address_parse(text, length, &address) == 0) {
		if (brackets && address.family != ADDRESS_V6)
			return refuse(ret_why, "has brackets around what is not of version 6");
		host_of_address(&address, ret_host);
		return 0;
	}
	if (brackets)
		return refuse(ret_why, memchr(text, '%', length) ?
					       "has a zone, which is of no use to anybody else" :
					       "is no address of version 6");
	r = parse_name(text, length, &host, ret_why);
	if (r < 0)
		return r;
	*ret_host = host;
	return 0;
}

static bool parse_port(const char *text, size_t length, uint16_t *ret_port)
{
	unsigned value = 0;

	if (length == 0 || length > 5 || text[0] == '0')
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	if (value > UINT16_MAX)
		return false;
	*ret_port = (uint16_t)value;
	return true;
}

int host_parse_port(const char *text, size_t length, uint16_t default_port, struct host *ret_host,
		    uint16_t *ret_port, const char **ret_why)
{
	size_t host_length = length;
	uint16_t port = default_port;
	struct host host;
	int r;

	/* the last colon, but not one of an address in brackets */
	while (host_length && text[host_length - 1] != ':' && text[host_length - 1] != ']')
		host_length--;
	if (host_length && text[host_length - 1] == ':')
		host_length--;
	else
		host_length = length;
	if (host_length < length &&
	    !parse_port(text + host_length + 1, length - host_length - 1, &port))
		return refuse(ret_why, "has a port that is no number from 1 to 65535");
	if (memchr(text, ':', host_length) && text[0] != '[')
		return refuse(ret_why, "has several ':': version 6 is written in brackets here");
	r = host_parse(text, host_length, &host, ret_why);
	if (r < 0)
		return r;
	if (!port)
		return refuse(ret_why, "has no port, as in example.com:443");
	*ret_host = host;
	*ret_port = port;
	return 0;
}

bool host_equal(const struct host *a, const struct host *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == HOST_ADDRESS ? address_equal(&a->address, &b->address) :
					 strcmp(a->name, b->name) == 0;
}

/*
 * Names and what is below them, from the IANA Special-Use Domain Names (RFC 6761 and others), the
 * clouds' manuals and what engines of containers put into /etc/hosts.
 */
static const struct {
	const char *name, *text;
} specials[] = {
	{ "localhost", "the host itself" },
	{ "localdomain", "the host itself" },
	{ "localhost6", "the host itself" },
	{ "localdomain6", "the host itself" },
	{ "ip6-localhost", "the host itself" },
	{ "ip6-loopback", "the host itself" },
	{ "metadata.google.internal", "the metadata service of Google Cloud" },
	{ "metadata.goog", "the metadata service of Google Cloud" },
	{ "metadata", "a metadata service" },
	{ "instance-data", "the metadata service of AWS" },
	{ "instance-data.ec2.internal", "the metadata service of AWS" },
	{ "metadata.azure.com", "the metadata service of Azure" },
	{ "metadata.tencentyun.com", "the metadata service of Tencent Cloud" },
	{ "metadata.packet.net", "the metadata service of Equinix Metal" },
	{ "metadata.platformequinix.com", "the metadata service of Equinix Metal" },
	{ "kubernetes", "the Kubernetes API" },
	{ "kubernetes.default", "the Kubernetes API" },
	{ "kubernetes.default.svc", "the Kubernetes API" },
	{ "svc", "a service of a Kubernetes cluster" },
	{ "cluster.local", "a service of a Kubernetes cluster" },
	{ "host.docker.internal", "the host itself" },
	{ "gateway.docker.internal", "the host itself" },
	{ "host.containers.internal", "the host itself" },
	{ "internal", "a private network's name" },
	{ "local", "a name of the local network" },
	{ "home.arpa", "a name of the local network" },
	{ "onion", "a name that is never resolved" },
	{ "invalid", "a name that is never resolved" },
	{ "test", "a name for tests" },
};

const char *host_special(const struct host *host)
{
	size_t length = strlen(host->name);

	if (host->kind == HOST_ADDRESS)
		return address_special(&host->address);
	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
		size_t bytes = strlen(specials[i].name);

		if (length < bytes || strcmp(host->name + length - bytes, specials[i].name) != 0)
			continue;
		if (length == bytes || host->name[length - bytes - 1] == '.')
			return specials[i].text;
	}
	return NULL;
}
