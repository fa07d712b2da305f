#include "trace/scan.h"

#include "base/bytes.h"
#include "trace/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Of the order of a processor's second cache, so that what was read is still there to be searched.
 */
#define BLOCK_BYTES (512u * 1024)
#define NOT_LOOKED_FOR SIZE_MAX

/* How rare a byte is in the lines of a chain. */
static unsigned rarity(unsigned char byte)
{
	if (byte >= 'A' && byte <= 'Z')
		return 4;
	if (byte >= 'a' && byte <= 'z')
		return strchr("bfjkqvwxyz", byte) ? 2 : 1;
	if (byte >= '0' && byte <= '9')
		return 1;
	return strchr("\":,{}", byte) ? 0 : 3;
}

/* Its two rarest bytes; of a needle of one byte that one. */
static void choose(struct scan_needle *needle)
{
	for (size_t i = 1; i < needle->length; i++) {
		unsigned rare = rarity((unsigned char)needle->bytes[i]);

		if (rare > rarity((unsigned char)needle->bytes[needle->rarest])) {
			needle->rare = needle->rarest;
			needle->rarest = i;
		} else if (needle->rare == needle->rarest ||
			   rare > rarity((unsigned char)needle->bytes[needle->rare])) {
			needle->rare = i;
		}
	}
}

bool scan_add(struct scan_needles *needles, const char *bytes, size_t length, unsigned group)
{
	if (!length || needles->count == SCAN_LIMIT_NEEDLES)
		return false;
	needles->items[needles->count] =
		(struct scan_needle){ .bytes = bytes, .length = length, .group = group };
	choose(&needles->items[needles->count++]);
	return true;
}

void scan_begin(struct trace_scan *scan, int fd, const struct scan_needles *needles,
		uint64_t offset, uint64_t number)
{
	*scan = (struct trace_scan){
		.fd = fd, .needles = needles, .offset = offset, .number = number - 1
	};
}

void scan_end(struct trace_scan *scan)
{
	free(scan->buffer);
	scan->buffer = NULL;
}

/* Room for at least one more byte; what was looked at goes. */
static int make_room(struct trace_scan *scan)
{
	size_t left = scan->end - scan->start;
	size_t wanted = scan->capacity;
	char *grown;

	if (scan->start) {
		memmove(scan->buffer, scan->buffer + scan->start, left);
		scan->offset += scan->start;
		scan->start = 0;
		scan->end = left;
	}
	scan->whole = 0;
	if (left < scan->capacity)
		return 0;
	wanted = wanted ? wanted * 2 : BLOCK_BYTES;
	/* one more for its newline */
	if (wanted > CHAIN_LIMIT_LINE_BYTES + 1)
		wanted = CHAIN_LIMIT_LINE_BYTES + 1;
	grown = realloc(scan->buffer, wanted);
	if (!grown)
		return -ENOMEM;
	scan->buffer = grown;
	scan->capacity = wanted;
	return 0;
}

static ssize_t fill(struct trace_scan *scan)
{
	int result = make_room(scan);
	ssize_t count;

	if (result < 0)
		return result;
	do
		count = pread(scan->fd, scan->buffer + scan->end, scan->capacity - scan->end,
			      (off_t)(scan->offset + scan->end));
	while (count < 0 && errno == EINTR);
	if (count < 0)
		return -errno;
	scan->end += (size_t)count;
	return count;
}

/* Reads until there is a whole line. 1: there is; 0: the end of the file. */
static int read_block(struct trace_scan *scan)
{
	for (;;) {
		size_t looked_at = scan->end - scan->start;
		ssize_t count = fill(scan);
		const char *newline;

		if (count <= 0)
			return (int)count;
		newline = memrchr(scan->buffer + looked_at, '\n', (size_t)count);
		if (newline) {
			scan->whole = (size_t)(newline - scan->buffer) + 1;
			break;
		}
		if (scan->end - scan->start > CHAIN_LIMIT_LINE_BYTES) {
			scan->is_skipping = true;
			scan->start = scan->end;
		}
	}
	for (size_t i = 0; i < SCAN_LIMIT_NEEDLES; i++)
		scan->hits[i] = NOT_LOOKED_FOR;
	return 1;
}

/* What looking at places in vain may cost, in bytes, beyond one for each byte gone through. */
#define IN_VAIN_BYTES 4096u

/*
 * memmem(3), sixteen places at once: where the two rarest bytes of the needle are right, the rest
 * is looked at. Where that is in vain too often, as in text that repeats itself, memmem() goes on.
 */
static const char *search(const char *bytes, size_t length, const struct scan_needle *needle)
{
	const signed char rarest = (signed char)needle->bytes[needle->rarest];
	const signed char rare = (signed char)needle->bytes[needle->rare];
	size_t at = 0, in_vain = 0;

	for (; length - at >= needle->length + sizeof(bytes16) && in_vain <= at + IN_VAIN_BYTES;
	     at += sizeof(bytes16)) {
		bytes16 found = (bytes16_load(bytes + at + needle->rarest) == rarest) &
				(bytes16_load(bytes + at + needle->rare) == rare);

		for (unsigned mask = bytes16_mask(found); mask; mask &= mask - 1) {
			const char *place = bytes + at + (unsigned)__builtin_ctz(mask);

			if (bytes_same(place, needle->bytes, needle->length))
				return place;
			in_vain += needle->length;
		}
	}
	return memmem(bytes + at, length - at, needle->bytes, needle->length);
}

/*
 * Where the needle stands next at or behind `from`; the end of the whole lines where it does not.
 */
static size_t find(struct trace_scan *scan, size_t index, size_t from)
{
	const struct scan_needle *needle = &scan->needles->items[index];
	const char *found;

	if (scan->hits[index] != NOT_LOOKED_FOR && scan->hits[index] >= from)
		return scan->hits[index];
	found = search(scan->buffer + from, scan->whole - from, needle);
	scan->hits[index] = found ? (size_t)(found - scan->buffer) : scan->whole;
	return scan->hits[index];
}

/* Where the first line may be that holds all groups: the farthest of each group's next. */
static size_t candidate(struct trace_scan *scan, size_t from)
{
	size_t count = scan->needles ? scan->needles->count : 0, farthest = from;

	for (size_t i = 0; i < count;) {
		unsigned group = scan->needles->items[i].group;
		size_t nearest = scan->whole;

		for (; i < count && scan->needles->items[i].group == group; i++) {
			size_t at = find(scan, i, from);

			if (at < nearest)
				nearest = at;
		}
		if (nearest > farthest)
			farthest = nearest;
	}
	return farthest;
}

/*
 * The line at `start` holds one needle of each group: none of them stands behind its end, where
 * there is no needle's first byte but the newline, which none has.
 */
static bool holds_all(struct trace_scan *scan, size_t line_end)
{
	return candidate(scan, scan->start) <= line_end;
}

static size_t line_end(const struct trace_scan *scan, size_t from)
{
	return from + bytes_find(scan->buffer + from, scan->whole - from, '\n');
}

/* Goes to the line in which `at` is, counting those before it. Returns where it ends. */
static size_t go_to(struct trace_scan *scan, size_t at)
{
	size_t end = at;

	while (scan->start < scan->whole && (end = line_end(scan, scan->start)) < at) {
		scan->start = end + 1;
		scan->number++;
	}
	return end;
}

int scan_next(struct trace_scan *scan, struct scan_line *ret_line)
{
	for (;;) {
		size_t end;

		if (scan->start >= scan->whole) {
			int result = read_block(scan);

			if (result <= 0)
				return result;
		}
		if (scan->is_skipping) {
			end = line_end(scan, scan->start);
			scan->is_skipping = false;
			scan->number++;
			*ret_line = (struct scan_line){ .offset = scan->offset + end,
							.number = scan->number,
							.is_long = true };
			scan->start = end + 1;
			return 1;
		}
		end = go_to(scan, candidate(scan, scan->start));
		if (scan->start >= scan->whole)
			continue;
		if (!holds_all(scan, end)) {
			scan->start = end + 1;
			scan->number++;
			continue;
		}
		*ret_line = (struct scan_line){ .bytes = scan->buffer + scan->start,
						.length = end - scan->start,
						.offset = scan->offset + scan->start,
						.number = ++scan->number };
		scan->start = end + 1;
		return 1;
	}
}

uint64_t scan_rest(const struct trace_scan *scan)
{
	return scan->end - scan->start;
}
