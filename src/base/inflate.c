#include "base/inflate.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define INPUT_BYTES 16384
#define WINDOW_BYTES 32768u
#define CODE_BITS 15
#define FAST_BITS 9
#define LITERALS 288
#define DISTANCES 32

/* A canonical code: how many codes each length has, and the symbols in the order of their codes. */
struct code {
	uint16_t counts[CODE_BITS + 1], symbols[LITERALS];
	uint16_t fast[1 << FAST_BITS]; /* symbol << 4 | length, by the next bits; 0: a longer one */
};

struct inflate {
	int fd, failure;
	uint64_t offset; /* of the file, behind what is in `input` */
	size_t at, end;
	uint64_t bits; /* read and not used, the next one lowest */
	unsigned bit_count;
	size_t filled; /* of the window, not given to the sink yet */
	uint64_t total, limit;
	uint32_t adler;
	inflate_sink *sink;
	void *context;
	struct code literals, distances;
	unsigned char input[INPUT_BYTES], window[WINDOW_BYTES];
};

uint32_t inflate_adler(uint32_t sum, const unsigned char *bytes, size_t length)
{
	uint32_t a = sum & 0xffff, b = sum >> 16;

	while (length) {
		/* as many as 32 bits hold without a division */
		size_t step = length < 5552 ? length : 5552;

		length -= step;
		while (step--) {
			a += *bytes++;
			b += a;
		}
		a %= 65521;
		b %= 65521;
	}
	return b << 16 | a;
}

static void fail(struct inflate *inflate, int code)
{
	if (!inflate->failure)
		inflate->failure = code;
}

static void read_more(struct inflate *inflate)
{
	ssize_t length;

	do
		length = pread(inflate->fd, inflate->input, INPUT_BYTES, (off_t)inflate->offset);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		fail(inflate, -errno);
	inflate->at = 0;
	inflate->end = length > 0 ? (size_t)length : 0;
	inflate->offset += inflate->end;
}

/* As many as there are, up to 56 at least; at the end of the file fewer. */
static void fill(struct inflate *inflate)
{
	while (inflate->bit_count <= 56) {
		if (inflate->at == inflate->end)
			read_more(inflate);
		if (inflate->at == inflate->end)
			return;
		inflate->bits |= (uint64_t)inflate->input[inflate->at++] << inflate->bit_count;
		inflate->bit_count += 8;
	}
}

static void drop(struct inflate *inflate, unsigned count)
{
	if (count > inflate->bit_count) {
		fail(inflate, -EBADMSG);
		return;
	}
	inflate->bits >>= count;
	inflate->bit_count -= count;
}

/* Up to 32 bits. */
static uint32_t take(struct inflate *inflate, unsigned count)
{
	uint32_t value;

	if (inflate->bit_count < count)
		fill(inflate);
	value = (uint32_t)(inflate->bits & ((1ull << count) - 1));
	drop(inflate, count);
	return inflate->failure ? 0 : value;
}

static void flush(struct inflate *inflate)
{
	int result;

	if (!inflate->filled || inflate->failure)
		return;
	inflate->adler = inflate_adler(inflate->adler, inflate->window, inflate->filled);
	result = inflate->sink(inflate->context, inflate->window, inflate->filled);
	if (result < 0)
		fail(inflate, result);
	inflate->filled = 0;
}

static void put(struct inflate *inflate, unsigned char byte)
{
	inflate->window[inflate->filled++] = byte;
	inflate->total++;
	if (inflate->total > inflate->limit)
		fail(inflate, -EFBIG);
	if (inflate->filled == WINDOW_BYTES)
		flush(inflate);
}

/* The window is a ring: what was given to the sink is still there behind `filled`. */
static void copy(struct inflate *inflate, uint32_t distance, uint32_t length)
{
	if (distance > inflate->total || distance > WINDOW_BYTES) {
		fail(inflate, -EBADMSG);
		return;
	}
	while (length-- && !inflate->failure)
		put(inflate,
		    inflate->window[(inflate->filled + WINDOW_BYTES - distance) % WINDOW_BYTES]);
}

static void make_fast(struct code *code)
{
	unsigned next = 0, index = 0;

	memset(code->fast, 0, sizeof(code->fast));
	for (unsigned length = 1; length <= FAST_BITS; length++, next <<= 1)
		for (unsigned i = 0; i < code->counts[length]; i++, next++, index++) {
			unsigned reversed = 0;

			for (unsigned bit = 0; bit < length; bit++)
				reversed |= (next >> bit & 1) << (length - 1 - bit);
			for (; reversed < 1 << FAST_BITS; reversed += 1u << length)
				code->fast[reversed] =
					(uint16_t)(code->symbols[index] << 4 | length);
		}
}

/* False where more codes are given than there are, or fewer; of one symbol alone one is enough. */
static bool make_code(struct code *code, const unsigned char *lengths, unsigned count)
{
	unsigned offsets[CODE_BITS + 1] = { 0 }, used;
	int left = 1;

	memset(code->counts, 0, sizeof(code->counts));
	for (unsigned i = 0; i < count; i++)
		code->counts[lengths[i]]++;
	used = count - code->counts[0];
	code->counts[0] = 0;
	for (unsigned length = 1; length <= CODE_BITS; length++) {
		left = (left << 1) - code->counts[length];
		if (left < 0)
			return false;
	}
	for (unsigned length = 1; length < CODE_BITS; length++)
		offsets[length + 1] = offsets[length] + code->counts[length];
	for (unsigned i = 0; i < count; i++)
		if (lengths[i])
			code->symbols[offsets[lengths[i]]++] = (uint16_t)i;
	make_fast(code);
	return left == 0 || used <= 1;
}

static unsigned decode(struct inflate *inflate, const struct code *code)
{
	unsigned value = 0, first = 0, index = 0;
	uint16_t fast;

	if (inflate->bit_count < CODE_BITS)
		fill(inflate);
	fast = code->fast[inflate->bits & ((1 << FAST_BITS) - 1)];
	if (fast) {
		drop(inflate, fast & 15);
		return fast >> 4;
	}
	for (unsigned length = 1; length <= CODE_BITS; length++) {
		value |= inflate->bits >> (length - 1) & 1;
		if (value - first < code->counts[length]) {
			drop(inflate, length);
			return code->symbols[index + value - first];
		}
		index += code->counts[length];
		first = (first + code->counts[length]) << 1;
		value <<= 1;
	}
	fail(inflate, -EBADMSG);
	return 0;
}

/* RFC 1951, 3.2.5. */
static void take_copy(struct inflate *inflate, unsigned symbol)
{
	static const uint16_t lengths[] = { 3,	4,  5,	6,   7,	  8,   9,   10,	 11, 13,
					    15, 17, 19, 23,  27,  31,  35,  43,	 51, 59,
					    67, 83, 99, 115, 131, 163, 195, 227, 258 };
	static const unsigned char length_bits[] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
						     2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };
	static const uint16_t distances[] = { 1,    2,	  3,	4,     5,     7,    9,	  13,
					      17,   25,	  33,	49,    65,    97,   129,  193,
					      257,  385,  513,	769,   1025,  1537, 2049, 3073,
					      4097, 6145, 8193, 12289, 16385, 24577 };
	uint32_t length, distance;

	if (symbol >= sizeof(length_bits)) {
		fail(inflate, -EBADMSG);
		return;
	}
	length = lengths[symbol] + take(inflate, length_bits[symbol]);
	symbol = decode(inflate, &inflate->distances);
	if (symbol >= sizeof(distances) / sizeof(distances[0])) {
		fail(inflate, -EBADMSG);
		return;
	}
	distance = distances[symbol] + take(inflate, symbol < 2 ? 0 : symbol / 2 - 1);
	copy(inflate, distance, length);
}

static void take_coded(struct inflate *inflate)
{
	while (!inflate->failure) {
		unsigned symbol = decode(inflate, &inflate->literals);

		if (inflate->failure || symbol == 256)
			return;
		if (symbol < 256)
			put(inflate, (unsigned char)symbol);
		else
			take_copy(inflate, symbol - 257);
	}
}

static void take_stored(struct inflate *inflate)
{
	uint32_t length;

	drop(inflate, inflate->bit_count % 8);
	length = take(inflate, 16);
	if (take(inflate, 16) != (length ^ 0xffff))
		fail(inflate, -EBADMSG);
	while (length-- && !inflate->failure) {
		unsigned char byte = (unsigned char)take(inflate, 8);

		if (!inflate->failure)
			put(inflate, byte);
	}
}

static void make_fixed(struct inflate *inflate)
{
	unsigned char lengths[LITERALS];

	for (unsigned i = 0; i < LITERALS; i++)
		lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
	(void)make_code(&inflate->literals, lengths, LITERALS);
	memset(lengths, 5, DISTANCES);
	(void)make_code(&inflate->distances, lengths, DISTANCES);
}

/* The lengths of both codes, themselves coded: 16 repeats the last one, 17 and 18 are zeros. */
static bool take_lengths(struct inflate *inflate, unsigned char *lengths, unsigned count)
{
	unsigned at = 0;

	while (at < count && !inflate->failure) {
		unsigned symbol = decode(inflate, &inflate->literals), times;
		unsigned char value = 0;

		if (symbol < 16) {
			lengths[at++] = (unsigned char)symbol;
			continue;
		}
		if (symbol == 16 && !at)
			return false;
		if (symbol == 16)
			value = lengths[at - 1];
		times = symbol == 16 ? 3 + take(inflate, 2) :
			symbol == 17 ? 3 + take(inflate, 3) :
				       11 + take(inflate, 7);
		if (times > count - at)
			return false;
		memset(lengths + at, value, times);
		at += times;
	}
	return !inflate->failure;
}

static bool take_codes(struct inflate *inflate)
{
	static const unsigned char order[] = { 16, 17, 18, 0, 8,  7, 9,	 6, 10, 5,
					       11, 4,  12, 3, 13, 2, 14, 1, 15 };
	unsigned char lengths[LITERALS + DISTANCES] = { 0 };
	unsigned literals = take(inflate, 5) + 257, distances = take(inflate, 5) + 1;
	unsigned count = take(inflate, 4) + 4;

	if (literals > 286 || distances > 30)
		return false;
	for (unsigned i = 0; i < count; i++)
		lengths[order[i]] = (unsigned char)take(inflate, 3);
	if (!make_code(&inflate->literals, lengths, 19))
		return false;
	memset(lengths, 0, sizeof(lengths));
	if (!take_lengths(inflate, lengths, literals + distances))
		return false;
	/* without an end it would have none */
	return lengths[256] && make_code(&inflate->literals, lengths, literals) &&
	       make_code(&inflate->distances, lengths + literals, distances);
}

static void take_blocks(struct inflate *inflate)
{
	bool is_last = false;

	while (!is_last && !inflate->failure) {
		is_last = take(inflate, 1);
		switch (take(inflate, 2)) {
		case 0:
			take_stored(inflate);
			break;
		case 1:
			make_fixed(inflate);
			take_coded(inflate);
			break;
		case 2:
			if (!take_codes(inflate))
				fail(inflate, -EBADMSG);
			take_coded(inflate);
			break;
		default:
			fail(inflate, -EBADMSG);
		}
	}
}

static uint32_t swapped(uint32_t value)
{
	return value << 24 | (value & 0xff00) << 8 | (value >> 8 & 0xff00) | value >> 24;
}

int inflate_file(int fd, uint64_t *offset, uint64_t limit_bytes, inflate_sink *sink, void *context)
{
	struct inflate inflate;
	uint32_t header;

	memset(&inflate, 0, offsetof(struct inflate, literals));
	inflate.fd = fd;
	inflate.offset = *offset;
	inflate.limit = limit_bytes;
	inflate.adler = 1;
	inflate.sink = sink;
	inflate.context = context;
	header = take(&inflate, 8) << 8;
	header |= take(&inflate, 8);
	/* deflate, a window that may be, no dictionary of somebody's own */
	if ((header >> 8 & 15) != 8 || header >> 12 > 7 || header & 0x20 || header % 31)
		fail(&inflate, -EBADMSG);
	take_blocks(&inflate);
	flush(&inflate);
	drop(&inflate, inflate.bit_count % 8);
	if (take(&inflate, 32) != swapped(inflate.adler))
		fail(&inflate, -EBADMSG);
	if (inflate.failure)
		return inflate.failure;
	*offset = inflate.offset - (inflate.end - inflate.at) - inflate.bit_count / 8;
	return 0;
}
