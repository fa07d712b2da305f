#include "workspace/git_content_internal.h"

#include "base/fd.h"
#include "base/inflate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* gitformat-pack(5) */
#define PACK_HEADER_BYTES 12
#define INDEX_IDS_AT (8 + 256 * 4)
#define OFFSET_IS_LONG 0x80000000u

enum entry_type {
	ENTRY_COMMIT = 1,
	ENTRY_TREE = 2,
	ENTRY_BLOB = 3,
	ENTRY_TAG = 4,
	ENTRY_BY_OFFSET = 6,
	ENTRY_BY_ID = 7,
};

static const char *const names[] = {
	[ENTRY_COMMIT] = "commit", [ENTRY_TREE] = "tree", [ENTRY_BLOB] = "blob", [ENTRY_TAG] = "tag"
};

struct place {
	uint64_t offset;
	uint32_t index;
};

struct content {
	unsigned char *bytes; /* owned where it is in the cache, else by who asked */
	size_t length;
	enum entry_type type;
};

struct git_pack {
	int fd;
	size_t id_bytes, count;
	uint64_t end; /* of the entries; the trailer follows */
	unsigned char *index;
	size_t index_length;
	struct place *places;  /* by offset */
	uint64_t *work;	       /* left; the caller's */
	struct content *cache; /* one for each place; bytes NULL: not kept */
	size_t cache_bytes, evict;
};

/* An entry's head. */
struct entry {
	enum entry_type type;
	uint64_t size, data; /* of the content or the delta; where its stream begins */
	size_t base;	     /* place, of a delta */
};

static uint32_t word(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int read_at(int fd, uint64_t offset, void *bytes, size_t length)
{
	size_t got = 0;

	while (got < length) {
		ssize_t step = pread(fd, (char *)bytes + got, length - got, (off_t)(offset + got));

		if (step < 0 && errno != EINTR)
			return -errno;
		if (step == 0)
			return -EBADMSG;
		got += step > 0 ? (size_t)step : 0;
	}
	return 0;
}

size_t git_pack_count(const struct git_pack *pack)
{
	return pack->count;
}

const unsigned char *git_pack_id(const struct git_pack *pack, size_t index)
{
	return pack->index + INDEX_IDS_AT + index * pack->id_bytes;
}

/* ---- the index ---- */

static int read_index(struct git_pack *pack, int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (status.st_size < INDEX_IDS_AT)
		return -EBADMSG;
	if (status.st_size > GIT_CONTENT_LIMIT_INDEX_BYTES)
		return -EFBIG;
	pack->index_length = (size_t)status.st_size;
	pack->index = malloc(pack->index_length);
	if (!pack->index)
		return -ENOMEM;
	return read_at(fd, 0, pack->index, pack->index_length);
}

/* The sums by first byte, and ids that rise. */
static bool has_order(const struct git_pack *pack)
{
	size_t at = 0;

	for (unsigned first = 0; first < 256; first++) {
		uint32_t sum = word(pack->index + 8 + (size_t)first * 4);

		if (sum > pack->count || sum < at)
			return false;
		for (; at < sum; at++)
			if (git_pack_id(pack, at)[0] != first ||
			    (at && memcmp(git_pack_id(pack, at - 1), git_pack_id(pack, at),
					  pack->id_bytes) >= 0))
				return false;
	}
	return at == pack->count;
}

static bool has_checksum(const struct git_pack *pack)
{
	struct git_hash hash;
	size_t length = pack->index_length - pack->id_bytes;

	git_hash_begin(&hash, pack->id_bytes);
	git_hash_update(&hash, pack->index, length);
	return git_hash_is(&hash, pack->index + length);
}

static int check_index(struct git_pack *pack)
{
	static const unsigned char magic[8] = { 0xff, 't', 'O', 'c', 0, 0, 0, 2 };
	size_t fixed, each = pack->id_bytes + 8;

	if (!pack->index || memcmp(pack->index, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	pack->count = word(pack->index + INDEX_IDS_AT - 4);
	if (pack->count > pack->index_length / each)
		return -EBADMSG;
	fixed = INDEX_IDS_AT + pack->count * each + 2 * pack->id_bytes;
	if (pack->index_length < fixed || (pack->index_length - fixed) % 8)
		return -EBADMSG;
	return has_order(pack) && has_checksum(pack) ? 0 : -EBADMSG;
}

static bool take_offset(const struct git_pack *pack, size_t index, uint64_t *ret_offset)
{
	size_t short_at = INDEX_IDS_AT + pack->count * (pack->id_bytes + 4);
	size_t long_at = short_at + pack->count * 4;
	size_t longs = (pack->index_length - long_at - 2 * pack->id_bytes) / 8;
	uint32_t offset = word(pack->index + short_at + index * 4);

	*ret_offset = offset;
	if (offset & OFFSET_IS_LONG) {
		const unsigned char *at = pack->index + long_at;

		offset &= ~OFFSET_IS_LONG;
		if (offset >= longs)
			return false;
		*ret_offset = (uint64_t)word(at + (size_t)offset * 8) << 32 |
			      word(at + (size_t)offset * 8 + 4);
	}
	return *ret_offset >= PACK_HEADER_BYTES && *ret_offset < pack->end;
}

static int by_offset(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	return (left->offset > right->offset) - (left->offset < right->offset);
}

static int make_places(struct git_pack *pack)
{
	pack->places = calloc(pack->count + 1, sizeof(*pack->places));
	pack->cache = calloc(pack->count + 1, sizeof(*pack->cache));
	if (!pack->places || !pack->cache)
		return -ENOMEM;
	for (size_t i = 0; i < pack->count; i++) {
		pack->places[i].index = (uint32_t)i;
		if (!take_offset(pack, i, &pack->places[i].offset))
			return -EBADMSG;
	}
	qsort(pack->places, pack->count, sizeof(*pack->places), by_offset);
	for (size_t i = 1; i < pack->count; i++)
		if (pack->places[i].offset == pack->places[i - 1].offset)
			return -EBADMSG;
	pack->places[pack->count].offset = pack->end;
	return pack->count && pack->places[0].offset != PACK_HEADER_BYTES ? -EBADMSG : 0;
}

/* The index is this pack's: git asks for no more than this. */
static int check_ends(struct git_pack *pack)
{
	unsigned char header[PACK_HEADER_BYTES], trailer[GIT_CONTENT_ID_BYTES];
	const unsigned char *wanted = pack->index + pack->index_length - 2 * pack->id_bytes;
	struct stat status;
	int result;

	if (fstat(pack->fd, &status) < 0)
		return -errno;
	if ((uint64_t)status.st_size < PACK_HEADER_BYTES + pack->id_bytes)
		return -EBADMSG;
	pack->end = (uint64_t)status.st_size - pack->id_bytes;
	result = read_at(pack->fd, 0, header, sizeof(header));
	if (result == 0)
		result = read_at(pack->fd, pack->end, trailer, pack->id_bytes);
	if (result < 0)
		return result;
	return memcmp(header, "PACK\0\0\0\2", 8) == 0 && word(header + 8) == pack->count &&
			       memcmp(trailer, wanted, pack->id_bytes) == 0 ?
		       0 :
		       -EBADMSG;
}

int git_pack_open(int pack_fd, int index_fd, size_t id_bytes, struct git_pack **ret_pack)
{
	struct git_pack *pack = calloc(1, sizeof(*pack));
	int result;

	if (!pack)
		return -ENOMEM;
	pack->fd = pack_fd;
	pack->id_bytes = id_bytes;
	result = read_index(pack, index_fd);
	if (result == 0)
		result = check_index(pack);
	if (result == 0)
		result = check_ends(pack);
	if (result == 0)
		result = make_places(pack);
	if (result == 0)
		*ret_pack = pack;
	else
		git_pack_close(pack);
	return result;
}

void git_pack_close(struct git_pack *pack)
{
	if (!pack)
		return;
	for (size_t i = 0; pack->cache && i < pack->count; i++)
		free(pack->cache[i].bytes);
	free(pack->cache);
	free(pack->places);
	free(pack->index);
	free(pack);
}

void git_pack_close_p(struct git_pack **pack)
{
	git_pack_close(*pack);
}

/* ---- entries ---- */

static bool find_place(const struct git_pack *pack, uint64_t offset, size_t *ret_place)
{
	struct place key = { .offset = offset };
	const struct place *found =
		bsearch(&key, pack->places, pack->count, sizeof(key), by_offset);

	if (found)
		*ret_place = (size_t)(found - pack->places);
	return found;
}

static bool find_id(const struct git_pack *pack, const unsigned char *id, size_t *ret_place)
{
	size_t low = 0, high = pack->count;
	uint64_t offset;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = memcmp(git_pack_id(pack, middle), id, pack->id_bytes);

		if (order == 0)
			return take_offset(pack, middle, &offset) &&
			       find_place(pack, offset, ret_place);
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* How far before the entry its base begins. */
static bool take_distance(const unsigned char *bytes, size_t *at, size_t length, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned count = 0; *at < length && count < 9; count++) {
		unsigned char byte = bytes[(*at)++];

		value = (count ? (value + 1) << 7 : 0) | (byte & 0x7f);
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

static bool take_base(const struct git_pack *pack, size_t place, const unsigned char *bytes,
		      size_t *at, size_t length, struct entry *entry)
{
	uint64_t offset = pack->places[place].offset, distance;

	if (entry->type == ENTRY_BY_ID) {
		if (length - *at < pack->id_bytes || !find_id(pack, bytes + *at, &entry->base))
			return false;
		*at += pack->id_bytes;
		return true;
	}
	return take_distance(bytes, at, length, &distance) && distance && distance < offset &&
	       find_place(pack, offset - distance, &entry->base);
}

static int read_entry(const struct git_pack *pack, size_t place, struct entry *ret_entry)
{
	unsigned char bytes[16 + GIT_CONTENT_ID_BYTES];
	uint64_t offset = pack->places[place].offset,
		 room = pack->places[place + 1].offset - offset;
	size_t length = room < sizeof(bytes) ? (size_t)room : sizeof(bytes), at = 1;
	struct entry entry = { 0 };
	unsigned shift = 4;
	int result = read_at(pack->fd, offset, bytes, length);

	if (result < 0)
		return result;
	entry.type = bytes[0] >> 4 & 7;
	entry.size = bytes[0] & 15;
	while (bytes[at - 1] & 0x80) {
		if (at == length || shift > 53)
			return -EBADMSG;
		entry.size |= (uint64_t)(bytes[at++] & 0x7f) << shift;
		shift += 7;
	}
	if (entry.type == ENTRY_BY_OFFSET || entry.type == ENTRY_BY_ID) {
		if (!take_base(pack, place, bytes, &at, length, &entry))
			return -EBADMSG;
	} else if (entry.type < ENTRY_COMMIT || entry.type > ENTRY_TAG) {
		return -EBADMSG;
	}
	entry.data = offset + at;
	*ret_entry = entry;
	return 0;
}

static bool is_delta(const struct entry *entry)
{
	return entry->type > ENTRY_TAG;
}

/* The stream is as long as the entry says, and ends where the next one begins. */
static int inflate_entry(struct git_pack *pack, size_t place, const struct entry *entry,
			 inflate_sink *sink, void *context)
{
	uint64_t offset = entry->data;
	int result;

	if (entry->size > *pack->work)
		return -EFBIG;
	*pack->work -= entry->size;
	result = inflate_file(pack->fd, &offset, entry->size, sink, context);
	if (result == -EFBIG)
		return -EBADMSG;
	if (result == 0 && offset != pack->places[place + 1].offset)
		return -EBADMSG;
	return result;
}

struct fill {
	unsigned char *bytes;
	size_t length, used;
};

static int take_fill(void *context, const unsigned char *bytes, size_t length)
{
	struct fill *fill = context;

	if (length > fill->length - fill->used)
		return -EBADMSG;
	memcpy(fill->bytes + fill->used, bytes, length);
	fill->used += length;
	return 0;
}

/* All of an entry's stream, in memory of the caller's. */
static int load_entry(struct git_pack *pack, size_t place, const struct entry *entry,
		      struct content *ret)
{
	struct fill fill = { .length = (size_t)entry->size };
	int result;

	if (entry->size > GIT_CONTENT_LIMIT_DELTA_BYTES)
		return -EFBIG;
	fill.bytes = malloc(fill.length + 1);
	if (!fill.bytes)
		return -ENOMEM;
	result = inflate_entry(pack, place, entry, take_fill, &fill);
	if (result == 0 && fill.used != fill.length)
		result = -EBADMSG;
	if (result < 0) {
		free(fill.bytes);
		return result;
	}
	*ret = (struct content){ .bytes = fill.bytes, .length = fill.length, .type = entry->type };
	return 0;
}

/* ---- deltas ---- */

static bool take_size(const unsigned char **at, const unsigned char *end, uint64_t *ret_size)
{
	uint64_t size = 0;

	for (unsigned shift = 0; *at < end && shift < 56; shift += 7) {
		unsigned char byte = *(*at)++;

		size |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_size = size;
			return true;
		}
	}
	return false;
}

/* As many bytes as the low `count` bits of the instruction have set. */
static bool take_number(const unsigned char **at, const unsigned char *end, unsigned bits,
			unsigned count, size_t *ret_number)
{
	size_t number = 0;

	for (unsigned i = 0; i < count; i++)
		if (bits >> i & 1) {
			if (*at == end)
				return false;
			number |= (size_t) * (*at)++ << (8 * i);
		}
	*ret_number = number;
	return true;
}

/* One instruction: what is to be appended. */
static bool take_piece(const unsigned char **at, const unsigned char *end,
		       const struct content *base, const unsigned char **ret_from,
		       size_t *ret_length)
{
	unsigned char code = *(*at)++;
	size_t offset, length;

	if (code & 0x80) {
		if (!take_number(at, end, code, 4, &offset) ||
		    !take_number(at, end, code >> 4 & 7, 3, &length))
			return false;
		length = length ? length : 0x10000;
		if (offset > base->length || length > base->length - offset)
			return false;
		*ret_from = base->bytes + offset;
	} else {
		length = code;
		/* 0 is reserved */
		if (!length || length > (size_t)(end - *at))
			return false;
		*ret_from = *at;
		*at += length;
	}
	*ret_length = length;
	return true;
}

static int apply_delta(struct git_pack *pack, const struct content *base,
		       const struct content *delta, struct content *ret)
{
	const unsigned char *at = delta->bytes, *end = at + delta->length, *from = NULL;
	uint64_t base_size, size;
	size_t used = 0, length;
	unsigned char *bytes;

	if (!take_size(&at, end, &base_size) || !take_size(&at, end, &size) ||
	    base_size != base->length)
		return -EBADMSG;
	if (size > GIT_CONTENT_LIMIT_DELTA_BYTES || size > *pack->work)
		return -EFBIG;
	*pack->work -= size;
	bytes = malloc((size_t)size + 1);
	if (!bytes)
		return -ENOMEM;
	while (at < end && take_piece(&at, end, base, &from, &length) && length <= size - used) {
		memcpy(bytes + used, from, length);
		used += length;
		from = NULL;
	}
	if (at < end || from || used != size) {
		free(bytes);
		return -EBADMSG;
	}
	*ret = (struct content){ .bytes = bytes, .length = (size_t)size, .type = base->type };
	return 0;
}

/* Keeps a content for those that are made from it; what came first goes first. */
static void keep(struct git_pack *pack, size_t place, const struct content *content)
{
	if (pack->cache[place].bytes || content->length > GIT_CONTENT_CACHE_BYTES / 2)
		return;
	while (pack->cache_bytes + content->length > GIT_CONTENT_CACHE_BYTES) {
		struct content *old = &pack->cache[pack->evict];

		pack->evict = (pack->evict + 1) % pack->count;
		if (!old->bytes)
			continue;
		pack->cache_bytes -= old->length;
		free(old->bytes);
		*old = (struct content){ 0 };
	}
	pack->cache[place].bytes = malloc(content->length + 1);
	if (!pack->cache[place].bytes)
		return;
	memcpy(pack->cache[place].bytes, content->bytes, content->length);
	pack->cache[place].length = content->length;
	pack->cache[place].type = content->type;
	pack->cache_bytes += content->length;
}

static int copy_content(const struct content *from, struct content *ret)
{
	unsigned char *bytes = malloc(from->length + 1);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, from->bytes, from->length);
	*ret = *from;
	ret->bytes = bytes;
	return 0;
}

/* The places from an entry to the one that is no delta, or is kept. */
static int follow(struct git_pack *pack, size_t place, struct entry *entry, size_t *chain,
		  size_t *ret_length)
{
	size_t length = 0;
	int result = 0;

	for (;; place = entry->base) {
		/* a ring ends here, too */
		if (length == GIT_CONTENT_LIMIT_CHAIN)
			return -EBADMSG;
		chain[length++] = place;
		if (pack->cache[place].bytes)
			break;
		result = read_entry(pack, place, entry);
		if (result < 0)
			return result;
		if (!is_delta(entry))
			break;
	}
	*ret_length = length;
	return 0;
}

/* One step up the chain: *content, which is freed, and the delta at `place` make the next one. */
static int climb(struct git_pack *pack, size_t place, struct content *content)
{
	struct content delta = { 0 }, next = { 0 };
	struct entry entry;
	int result = read_entry(pack, place, &entry);

	if (result == 0)
		result = load_entry(pack, place, &entry, &delta);
	if (result == 0)
		result = apply_delta(pack, content, &delta, &next);
	free(delta.bytes);
	free(content->bytes);
	*content = next;
	return result;
}

/* The content of an object that a delta makes, in memory of the caller's. */
static int resolve(struct git_pack *pack, size_t place, struct content *ret)
{
	size_t *chain = malloc(GIT_CONTENT_LIMIT_CHAIN * sizeof(*chain)), length = 0;
	struct content content = { 0 };
	struct entry entry;
	int result = chain ? follow(pack, place, &entry, chain, &length) : -ENOMEM;

	if (result == 0) {
		size_t base = chain[length - 1];

		result = pack->cache[base].bytes ? copy_content(&pack->cache[base], &content) :
						   load_entry(pack, base, &entry, &content);
		if (result == 0)
			keep(pack, base, &content);
	}
	for (size_t i = length; result == 0 && i > 1; i--) {
		result = climb(pack, chain[i - 2], &content);
		if (result == 0)
			keep(pack, chain[i - 2], &content);
	}
	free(chain);
	if (result < 0)
		free(content.bytes);
	else
		*ret = content;
	return result;
}

/* ---- one object after the other ---- */

/* Where an object goes: its name is made, and a loose object may be written. */
struct output {
	struct git_hash hash;
	int fd; /* -1: none */
	uint32_t adler;
	uint64_t left; /* of the content */
};

/* RFC 1951, 3.2.4: a block that is not compressed. */
static int write_stored(struct output *output, const unsigned char *bytes, size_t length)
{
	int result = 0;

	output->adler = inflate_adler(output->adler, bytes, length);
	while (result == 0 && length) {
		size_t step = length < 0xffff ? length : 0xffff;
		unsigned char head[5] = { 0, (unsigned char)step, (unsigned char)(step >> 8),
					  (unsigned char)~step, (unsigned char)(~step >> 8) };

		result = fd_write_all(output->fd, head, sizeof(head));
		if (result == 0)
			result = fd_write_all(output->fd, bytes, step);
		bytes += step;
		length -= step;
	}
	return result;
}

static int put(void *context, const unsigned char *bytes, size_t length)
{
	struct output *output = context;

	if (length > output->left)
		return -EBADMSG;
	output->left -= length;
	git_hash_update(&output->hash, bytes, length);
	return output->fd < 0 ? 0 : write_stored(output, bytes, length);
}

static int begin(struct output *output, const char *type, uint64_t size)
{
	/* a zlib stream of the lowest level */
	static const unsigned char start[] = { 0x78, 0x01 };
	char header[40];
	int length = snprintf(header, sizeof(header), "%s %llu", type, (unsigned long long)size);
	int result = output->fd < 0 ? 0 : fd_write_all(output->fd, start, sizeof(start));

	output->left = size + (size_t)length + 1;
	return result < 0 ? result : put(output, (const unsigned char *)header, (size_t)length + 1);
}

static int end(struct output *output)
{
	const unsigned char last[] = { 1,
				       0,
				       0,
				       0xff,
				       0xff,
				       (unsigned char)(output->adler >> 24),
				       (unsigned char)(output->adler >> 16),
				       (unsigned char)(output->adler >> 8),
				       (unsigned char)output->adler };

	return output->fd < 0 ? 0 : fd_write_all(output->fd, last, sizeof(last));
}

/* What is larger, and made by no delta, goes by in pieces; deltas are seldom made from it. */
#define WHOLE_BYTES (1024u * 1024)

static int pass(struct git_pack *pack, size_t place, const struct entry *entry,
		struct output *output)
{
	struct content content;
	int result;

	if (!is_delta(entry) && entry->size > WHOLE_BYTES) {
		result = begin(output, names[entry->type], entry->size);
		return result < 0 ? result : inflate_entry(pack, place, entry, put, output);
	}
	result = resolve(pack, place, &content);
	if (result < 0)
		return result;
	result = begin(output, names[content.type], content.length);
	if (result == 0)
		result = put(output, content.bytes, content.length);
	free(content.bytes);
	return result;
}

static int look(struct git_pack *pack, size_t place, int fd)
{
	struct output output = { .fd = fd, .adler = 1 };
	struct entry entry;
	int result = read_entry(pack, place, &entry);

	git_hash_begin(&output.hash, pack->id_bytes);
	if (result == 0)
		result = pass(pack, place, &entry, &output);
	if (result == 0)
		result = end(&output);
	if (result == 0 &&
	    (output.left ||
	     !git_hash_is(&output.hash, git_pack_id(pack, pack->places[place].index))))
		result = -EBADMSG;
	return result;
}

/* As `git fsck` does: bits between two streams are in no object, and in no sum but this. */
static int check_sum(const struct git_pack *pack)
{
	/* a sum is made four times as fast as a stream is read */
	uint64_t work_bytes = pack->end / 4;
	unsigned char bytes[16384];
	struct git_hash hash;
	int result = *pack->work < work_bytes ? -EFBIG : 0;

	git_hash_begin(&hash, pack->id_bytes);
	for (uint64_t at = 0; result == 0 && at < pack->end; at += sizeof(bytes)) {
		uint64_t left = pack->end - at;
		size_t length = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);

		result = read_at(pack->fd, at, bytes, length);
		if (result == 0)
			git_hash_update(&hash, bytes, length);
	}
	if (result < 0)
		return result;
	*pack->work -= work_bytes;
	return git_hash_is(&hash, pack->index + pack->index_length - 2 * pack->id_bytes) ? 0 :
											   -EBADMSG;
}

int git_pack_check(struct git_pack *pack, uint64_t *work_bytes)
{
	int result = 0;

	pack->work = work_bytes;
	for (size_t i = 0; result == 0 && i < pack->count; i++)
		result = look(pack, i, -1);
	return result < 0 ? result : check_sum(pack);
}

int git_pack_save(struct git_pack *pack, size_t index, int fd, uint64_t *work_bytes)
{
	uint64_t offset;
	size_t place;

	pack->work = work_bytes;
	if (!take_offset(pack, index, &offset) || !find_place(pack, offset, &place))
		return -EBADMSG;
	return look(pack, place, fd);
}
