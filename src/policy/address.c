#include "policy/address.h"

#include <errno.h>
#include <string.h>

enum { V4_BYTES = 4, V6_BYTES = 16, V6_GROUPS = 8 };

static int digit(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	return -1;
}

/* Four decimals without leading zeros: 010 is eight to some programs. */
static bool parse_v4(const char *text, size_t length, uint8_t bytes[static V4_BYTES])
{
	size_t at = 0;

	for (unsigned i = 0; i < V4_BYTES; i++) {
		unsigned value = 0;
		size_t begin = at;

		while (at < length && at - begin < 3 && text[at] >= '0' && text[at] <= '9')
			value = value * 10 + (unsigned)(text[at++] - '0');
		if (at == begin || value > 255 || (text[begin] == '0' && at - begin > 1))
			return false;
		bytes[i] = (uint8_t)value;
		if (i < V4_BYTES - 1 && (at == length || text[at++] != '.'))
			return false;
	}
	return at == length;
}

/* The groups before or behind a "::"; the last may be version 4. Returns their bytes, or -1. */
static int parse_groups(const char *text, size_t length, uint8_t bytes[static V6_BYTES])
{
	unsigned used = 0;
	size_t at = 0;

	while (at < length) {
		size_t begin = at;
		unsigned value = 0;

		while (at < length && at - begin < 4 && digit(text[at]) >= 0)
			value = value * 16 + (unsigned)digit(text[at++]);
		if (at < length && text[at] == '.') {
			if (used > V6_BYTES - V4_BYTES ||
			    !parse_v4(text + begin, length - begin, bytes + used))
				return -1;
			return (int)used + V4_BYTES;
		}
		if (at == begin || used > V6_BYTES - 2)
			return -1;
		bytes[used++] = (uint8_t)(value >> 8);
		bytes[used++] = (uint8_t)value;
		if (at == length)
			break;
		/* a colon, and something behind it */
		if (text[at++] != ':' || at == length)
			return -1;
	}
	return (int)used;
}

static bool parse_v6(const char *text, size_t length, uint8_t bytes[static V6_BYTES])
{
	uint8_t head[V6_BYTES] = { 0 }, tail[V6_BYTES] = { 0 };
	size_t gap = 0;
	int before, behind;

	while (gap + 1 < length && (text[gap] != ':' || text[gap + 1] != ':'))
		gap++;
	if (gap + 1 >= length) {
		before = parse_groups(text, length, head);
		memcpy(bytes, head, V6_BYTES);
		return before == V6_BYTES;
	}
	before = parse_groups(text, gap, head);
	behind = parse_groups(text + gap + 2, length - gap - 2, tail);
	/* "::" stands for one group or more; version 4 only at the end of all */
	if (before < 0 || behind < 0 || before + behind > V6_BYTES - 2 ||
	    memchr(text, '.', gap) != NULL)
		return false;
	memcpy(bytes, head, (size_t)before);
	memset(bytes + before, 0, (size_t)(V6_BYTES - before - behind));
	memcpy(bytes + V6_BYTES - behind, tail, (size_t)behind);
	return true;
}

int address_parse(const char *text, size_t length, struct address *ret_address)
{
	struct address address = { 0 };

	if (length >= ADDRESS_TEXT_BYTES)
		return -EINVAL;
	if (memchr(text, ':', length)) {
		address.family = ADDRESS_V6;
		if (!parse_v6(text, length, address.bytes))
			return -EINVAL;
	} else {
		address.family = ADDRESS_V4;
		if (!parse_v4(text, length, address.bytes))
			return -EINVAL;
	}
	*ret_address = address;
	return 0;
}

static char *print_number(char *out, unsigned value, unsigned base)
{
	char digits[8];
	unsigned n = 0;

	do {
		digits[n++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	while (n)
		*out++ = digits[--n];
	return out;
}

static char *print_v4(char *out, const uint8_t *bytes)
{
	for (unsigned i = 0; i < V4_BYTES; i++) {
		if (i)
			*out++ = '.';
		out = print_number(out, bytes[i], 10);
	}
	return out;
}

/* The first of the longest runs of at least two groups of 0 (RFC 5952, 4.2); its length. */
static unsigned longest_gap(const unsigned groups[static V6_GROUPS], unsigned *ret_begin)
{
	unsigned best = 1, run = 0;

	*ret_begin = V6_GROUPS;
	for (unsigned i = 0; i < V6_GROUPS; i++) {
		run = groups[i] ? 0 : run + 1;
		if (run > best) {
			best = run;
			*ret_begin = i + 1 - run;
		}
	}
	return best > 1 ? best : 0;
}

static bool is_mapped(const struct address *address)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return address->family == ADDRESS_V6 && memcmp(address->bytes, mapped, 12) == 0;
}

static char *print_v6(char *out, const struct address *address)
{
	unsigned groups[V6_GROUPS], begin, gap, end = is_mapped(address) ? 6 : V6_GROUPS;

	for (unsigned i = 0; i < V6_GROUPS; i++)
		groups[i] = (unsigned)address->bytes[2 * i] << 8 | address->bytes[2 * i + 1];
	gap = longest_gap(groups, &begin);
	for (unsigned i = 0; i < end; i++) {
		if (i == begin) {
			*out++ = ':';
			i += gap - 1;
			if (i == V6_GROUPS - 1)
				*out++ = ':';
			continue;
		}
		if (i)
			*out++ = ':';
		out = print_number(out, groups[i], 16);
	}
	if (end == V6_GROUPS)
		return out;
	*out++ = ':';
	return print_v4(out, address->bytes + 12);
}

void address_print(const struct address *address, char text[static ADDRESS_TEXT_BYTES])
{
	char *end = text;

	if (address->family == ADDRESS_V4)
		end = print_v4(text, address->bytes);
	else if (address->family == ADDRESS_V6)
		end = print_v6(text, address);
	*end = '\0';
}

bool address_equal(const struct address *a, const struct address *b)
{
	return a->family == b->family &&
	       memcmp(a->bytes, b->bytes, a->family == ADDRESS_V4 ? V4_BYTES : V6_BYTES) == 0;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;

	if (memcmp(a, b, bytes) != 0)
		return false;
	return !rest || (a[bytes] ^ b[bytes]) >> (8 - rest) == 0;
}

bool address_within(const struct address *address, const struct address *prefix, unsigned bits)
{
	unsigned most = address->family == ADDRESS_V4 ? 8 * V4_BYTES : 8 * V6_BYTES;

	if (address->family != prefix->family || address->family == ADDRESS_NONE || bits > most)
		return false;
	return same_bits(address->bytes, prefix->bytes, bits);
}

/* Where version 4 stands in version 6: the bits of a prefix, and the bytes behind it. */
struct embedding {
	uint8_t prefix[V6_BYTES];
	unsigned bits;
	uint8_t at[V4_BYTES];
	uint8_t mask; /* the bytes are written with it (RFC 4380) */
};

static const struct embedding embeddings[] = {
	/* mapped (RFC 4291, 2.5.5.2); compatible (2.5.5.1); translated (RFC 2765) */
	{ { [10] = 0xff, [11] = 0xff }, 96, { 12, 13, 14, 15 }, 0 },
	{ { 0 }, 96, { 12, 13, 14, 15 }, 0 },
	{ { [8] = 0xff, [9] = 0xff }, 96, { 12, 13, 14, 15 }, 0 },
	/* NAT64 (RFC 6052, 2.2: a prefix of 48 bits leaves byte 8 out); local NAT64 (RFC 8215) */
	{ { 0x00, 0x64, 0xff, 0x9b }, 96, { 12, 13, 14, 15 }, 0 },
	{ { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, { 6, 7, 9, 10 }, 0 },
	/* 6to4 (RFC 3056); Teredo, the client (RFC 4380) */
	{ { 0x20, 0x02 }, 16, { 2, 3, 4, 5 }, 0 },
	{ { 0x20, 0x01 }, 32, { 12, 13, 14, 15 }, 0xff },
};

/* An interface id of 0000:5efe or 0200:5efe under any prefix (RFC 5214, 6.1). */
static bool is_isatap(const uint8_t bytes[static V6_BYTES])
{
	return (bytes[8] & 0xfd) == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe;
}

static void take_v4(const uint8_t *bytes, const uint8_t at[static V4_BYTES], uint8_t mask,
		    struct address *ret_inside)
{
	*ret_inside = (struct address){ .family = ADDRESS_V4 };
	for (unsigned i = 0; i < V4_BYTES; i++)
		ret_inside->bytes[i] = bytes[at[i]] ^ mask;
}

bool address_embedded(const struct address *address, struct address *ret_inside)
{
	static const uint8_t tail[V4_BYTES] = { 12, 13, 14, 15 }, nothing[V6_BYTES - 1];

	if (address->family != ADDRESS_V6)
		return false;
	/* :: and ::1 are themselves */
	if (memcmp(address->bytes, nothing, sizeof(nothing)) == 0 && address->bytes[15] < 2)
		return false;
	for (size_t i = 0; i < sizeof(embeddings) / sizeof(embeddings[0]); i++) {
		const struct embedding *row = &embeddings[i];

		if (same_bits(address->bytes, row->prefix, row->bits)) {
			take_v4(address->bytes, row->at, row->mask, ret_inside);
			return true;
		}
	}
	if (!is_isatap(address->bytes))
		return false;
	take_v4(address->bytes, tail, 0, ret_inside);
	return true;
}

struct range {
	uint8_t prefix[V6_BYTES];
	uint8_t bits;
	enum address_kind kind;
	const char *text;
};

/*
 * The first row that fits counts: single services come before the range that they lie in, and what
 * is globally reachable before what is not. Sources: IANA IPv4 Special-Purpose Address Registry,
 * IPv4 Multicast, and the clouds' manuals.
 */
static const struct range ranges_v4[] = {
	{ { 169, 254, 169, 254 }, 32, ADDRESS_METADATA, "the metadata service of clouds" },
	{ { 169, 254, 170, 2 }, 32, ADDRESS_METADATA, "the credentials of AWS ECS tasks" },
	{ { 169, 254, 170, 23 }, 32, ADDRESS_METADATA, "the credentials of AWS EKS pods" },
	{ { 169, 254, 0, 23 }, 32, ADDRESS_METADATA, "the metadata service of Tencent Cloud" },
	{ { 169, 254, 42, 42 }, 32, ADDRESS_METADATA, "the metadata service of Scaleway" },
	{ { 100, 100, 100, 200 }, 32, ADDRESS_METADATA, "the metadata service of Alibaba Cloud" },
	{ { 168, 63, 129, 16 }, 32, ADDRESS_METADATA, "the host of Azure virtual machines" },
	{ { 192, 0, 0, 192 }, 32, ADDRESS_METADATA, "the metadata service of Oracle Cloud" },
	{ { 0 }, 8, ADDRESS_LOOPBACK, "this host (0.0.0.0/8)" },
	{ { 10 }, 8, ADDRESS_PRIVATE, "a private network (10.0.0.0/8)" },
	{ { 100, 64 }, 10, ADDRESS_PRIVATE, "a carrier's or cluster's network (100.64.0.0/10)" },
	{ { 127 }, 8, ADDRESS_LOOPBACK, "the host's own loopback (127.0.0.0/8)" },
	{ { 169, 254 }, 16, ADDRESS_RESERVED, "link-local (169.254.0.0/16)" },
	{ { 172, 16 }, 12, ADDRESS_PRIVATE, "a private network (172.16.0.0/12)" },
	{ { 192, 0, 0 }, 24, ADDRESS_RESERVED, "reserved for protocols (192.0.0.0/24)" },
	{ { 192, 0, 2 }, 24, ADDRESS_RESERVED, "for documentation (192.0.2.0/24)" },
	{ { 192, 88, 99 }, 24, ADDRESS_RESERVED, "relays of 6to4 (192.88.99.0/24)" },
	{ { 192, 168 }, 16, ADDRESS_PRIVATE, "a private network (192.168.0.0/16)" },
	{ { 198, 18 }, 15, ADDRESS_RESERVED, "for benchmarks (198.18.0.0/15)" },
	{ { 198, 51, 100 }, 24, ADDRESS_RESERVED, "for documentation (198.51.100.0/24)" },
	{ { 203, 0, 113 }, 24, ADDRESS_RESERVED, "for documentation (203.0.113.0/24)" },
	{ { 224 }, 4, ADDRESS_RESERVED, "multicast (224.0.0.0/4)" },
	{ { 240 }, 4, ADDRESS_RESERVED, "reserved (240.0.0.0/4)" },
};

/* IANA IPv6 Special-Purpose Address Registry; what is not of 2000::/3 is no unicast of the net. */
static const struct range ranges_v6[] = {
	{ { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54 },
	  128,
	  ADDRESS_METADATA,
	  "the metadata service of AWS" },
	{ { 0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23 },
	  128,
	  ADDRESS_METADATA,
	  "the credentials of AWS EKS pods" },
	{ { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54 },
	  128,
	  ADDRESS_METADATA,
	  "the metadata service of Google Cloud" },
	{ { 0xfd, 0x00, 0x00, 0x42, [15] = 0x42 },
	  128,
	  ADDRESS_METADATA,
	  "the metadata service of Scaleway" },
	{ { 0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe },
	  128,
	  ADDRESS_METADATA,
	  "the metadata service of Oracle Cloud" },
	{ { 0xfd, 0x00, 0xa9, 0xfe, 0xa9, 0xfe, [15] = 1 },
	  128,
	  ADDRESS_METADATA,
	  "the metadata service of Linode" },
	{ { 0 }, 128, ADDRESS_LOOPBACK, "this host (::)" },
	{ { [15] = 1 }, 128, ADDRESS_LOOPBACK, "the host's own loopback (::1)" },
	{ { [10] = 0xff, 0xff }, 96, ADDRESS_RESERVED, "version 4 in version 6 (::ffff:0:0/96)" },
	{ { 0 }, 96, ADDRESS_RESERVED, "version 4 in version 6 (::/96)" },
	{ { [8] = 0xff, 0xff }, 96, ADDRESS_RESERVED, "version 4 in version 6 (::ffff:0:0:0/96)" },
	{ { 0x00, 0x64, 0xff, 0x9b }, 96, ADDRESS_PUBLIC, "" },
	{ { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 },
	  48,
	  ADDRESS_RESERVED,
	  "NAT64 of a local network (64:ff9b:1::/48)" },
	{ { 0x01, 0x00 }, 64, ADDRESS_RESERVED, "to be discarded (100::/64)" },
	{ { 0x20, 0x01 }, 32, ADDRESS_RESERVED, "Teredo (2001::/32)" },
	{ { 0x20, 0x01, 0x00, 0x01, [15] = 1 }, 128, ADDRESS_PUBLIC, "" },
	{ { 0x20, 0x01, 0x00, 0x01, [15] = 2 }, 128, ADDRESS_PUBLIC, "" },
	{ { 0x20, 0x01, 0x00, 0x01, [15] = 3 }, 128, ADDRESS_PUBLIC, "" },
	{ { 0x20, 0x01, 0x00, 0x03 }, 32, ADDRESS_PUBLIC, "" },
	{ { 0x20, 0x01, 0x00, 0x04, 0x01, 0x12 }, 48, ADDRESS_PUBLIC, "" },
	{ { 0x20, 0x01, 0x00, 0x20 }, 28, ADDRESS_PUBLIC, "" },
	{ { 0x20, 0x01, 0x00, 0x30 }, 28, ADDRESS_PUBLIC, "" },
	{ { 0x20, 0x01 }, 23, ADDRESS_RESERVED, "reserved for protocols (2001::/23)" },
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, ADDRESS_RESERVED, "for documentation (2001:db8::/32)" },
	{ { 0x3f, 0xff }, 20, ADDRESS_RESERVED, "for documentation (3fff::/20)" },
	{ { 0x20 }, 3, ADDRESS_PUBLIC, "" },
	{ { 0x5f, 0x00 }, 16, ADDRESS_RESERVED, "segment routing (5f00::/16)" },
	{ { 0xfc }, 7, ADDRESS_PRIVATE, "a private network (fc00::/7)" },
	{ { 0xfe, 0x80 }, 10, ADDRESS_RESERVED, "link-local (fe80::/10)" },
	{ { 0xfe, 0xc0 }, 10, ADDRESS_RESERVED, "site-local (fec0::/10)" },
	{ { 0xff }, 8, ADDRESS_RESERVED, "multicast (ff00::/8)" },
};

static const struct range *find_range(const struct range *ranges, size_t count,
				      const uint8_t *bytes)
{
	for (size_t i = 0; i < count; i++)
		if (same_bits(bytes, ranges[i].prefix, ranges[i].bits))
			return &ranges[i];
	return NULL;
}

static struct address_class class_of(const struct range *range)
{
	return (struct address_class){
		.kind = range->kind,
		.bits = range->kind == ADDRESS_PUBLIC ? 0 : range->bits,
		.text = range->text,
	};
}

static struct address_class classify_v4(const uint8_t *bytes)
{
	const struct range *range =
		find_range(ranges_v4, sizeof(ranges_v4) / sizeof(ranges_v4[0]), bytes);

	return range ? class_of(range) : (struct address_class){ .text = "" };
}

void address_classify(const struct address *address, struct address_class *ret_class)
{
	static const struct address_class unassigned = { ADDRESS_RESERVED, 128, "unassigned" };
	const struct range *range;
	struct address inside;

	if (address->family == ADDRESS_V4) {
		*ret_class = classify_v4(address->bytes);
		return;
	}
	*ret_class = unassigned;
	if (address->family != ADDRESS_V6)
		return;
	if (address_embedded(address, &inside)) {
		*ret_class = classify_v4(inside.bytes);
		if (ret_class->kind != ADDRESS_PUBLIC) {
			ret_class->bits = 128;
			return;
		}
		*ret_class = unassigned;
	}
	range = find_range(ranges_v6, sizeof(ranges_v6) / sizeof(ranges_v6[0]), address->bytes);
	if (range)
		*ret_class = class_of(range);
}

const char *address_special(const struct address *address)
{
	struct address_class class;

	address_classify(address, &class);
	return class.kind == ADDRESS_PUBLIC ? NULL : class.text;
}
