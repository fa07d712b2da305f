#include "policy/elf.h"

#include "base/arena.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum segment_type { SEGMENT_LOAD = 1, SEGMENT_DYNAMIC = 2, SEGMENT_INTERPRETER = 3 };
enum tag { TAG_END = 0, TAG_NEEDED = 1, TAG_TEXTS = 5, TAG_RPATH = 15, TAG_RUNPATH = 29 };

struct segment {
	uint32_t type;
	uint64_t offset, address, length;
};

struct image {
	const struct elf_source *source;
	struct arena *arena;
	bool wide;
	struct segment segments[ELF_LIMIT_SEGMENTS];
	size_t segment_count;
};

static uint64_t number(const unsigned char *bytes, size_t length)
{
	uint64_t value = 0;

	for (size_t i = length; i-- > 0;)
		value = value << 8 | bytes[i];
	return value;
}

static int fetch(const struct image *image, uint64_t offset, void *bytes, size_t length)
{
	return image->source->read(image->source->context, offset, bytes, length) < 0 ? -EBADMSG :
											0;
}

/* A number as wide as the file's addresses. */
static uint64_t word(const struct image *image, const unsigned char *narrow,
		     const unsigned char *wide)
{
	return image->wide ? number(wide, 8) : number(narrow, 4);
}

static int read_segments(struct image *image, const unsigned char *head)
{
	uint64_t table = word(image, head + 28, head + 32);
	size_t entry = (size_t)number(head + (image->wide ? 54 : 42), 2);
	size_t count = (size_t)number(head + (image->wide ? 56 : 44), 2);
	unsigned char bytes[56];
	size_t length = image->wide ? 56 : 32;
	int result = 0;

	if (count > ELF_LIMIT_SEGMENTS || (count && entry < length))
		return -EBADMSG;
	for (size_t i = 0; i < count && result == 0; i++) {
		uint64_t at;

		if (__builtin_add_overflow(table, (uint64_t)i * entry, &at))
			return -EBADMSG;
		result = fetch(image, at, bytes, length);
		image->segments[image->segment_count++] = (struct segment){
			.type = (uint32_t)number(bytes, 4),
			.offset = word(image, bytes + 4, bytes + 8),
			.address = word(image, bytes + 8, bytes + 16),
			.length = word(image, bytes + 16, bytes + 32),
		};
	}
	return result;
}

static const struct segment *find_segment(const struct image *image, uint32_t type)
{
	for (size_t i = 0; i < image->segment_count; i++)
		if (image->segments[i].type == type)
			return &image->segments[i];
	return NULL;
}

/* Up to its NUL, which must be among the first `most` bytes. */
static int read_text(const struct image *image, uint64_t offset, size_t most, const char **ret)
{
	char text[ELF_LIMIT_TEXT];
	size_t length = 0;
	char *copy;

	for (; length < most && length < sizeof(text); length++) {
		int result = fetch(image, offset + length, text + length, 1);

		if (result < 0 || !text[length])
			break;
	}
	if (length == most || length == sizeof(text) || text[length])
		return -EBADMSG;
	copy = arena_copy_bytes(image->arena, text, length);
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

/* Where an address lies in the file. */
static int place_of(const struct image *image, uint64_t address, uint64_t *ret_offset)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct segment *segment = &image->segments[i];

		if (segment->type != SEGMENT_LOAD || address < segment->address ||
		    address - segment->address >= segment->length)
			continue;
		if (__builtin_add_overflow(segment->offset, address - segment->address, ret_offset))
			return -EBADMSG;
		return 0;
	}
	return -EBADMSG;
}

static int add_name(struct image *image, struct elf_needs *needs, const char *name)
{
	const char **grown;

	if (needs->count == ELF_LIMIT_NAMES)
		return -EBADMSG;
	grown = arena_push(image->arena, needs->names, needs->count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	needs->names = grown;
	grown[needs->count++] = name;
	return 0;
}

struct entry {
	uint64_t tag, value;
};

static int read_entry(const struct image *image, const struct segment *dynamic, size_t index,
		      struct entry *ret)
{
	size_t length = image->wide ? 16 : 8;
	unsigned char bytes[16];
	uint64_t at;

	*ret = (struct entry){ .tag = TAG_END };
	if ((index + 1) * length > dynamic->length)
		return 0;
	if (index == ELF_LIMIT_TAGS ||
	    __builtin_add_overflow(dynamic->offset, (uint64_t)index * length, &at) ||
	    fetch(image, at, bytes, length) < 0)
		return -EBADMSG;
	ret->tag = word(image, bytes, bytes);
	ret->value = word(image, bytes + 4, bytes + 8);
	return 0;
}

static int find_texts(const struct image *image, const struct segment *dynamic, uint64_t *ret)
{
	struct entry entry = { .tag = TAG_NEEDED };
	int result = 0;

	for (size_t i = 0; result == 0 && entry.tag != TAG_END; i++) {
		result = read_entry(image, dynamic, i, &entry);
		if (result == 0 && entry.tag == TAG_TEXTS)
			return place_of(image, entry.value, ret);
	}
	/* what names nothing needs no texts */
	*ret = UINT64_MAX;
	return result;
}

static int take_entry(struct image *image, const struct entry *entry, uint64_t texts,
		      struct elf_needs *needs)
{
	const char *text = NULL;
	uint64_t at;
	int result;

	if (entry->tag != TAG_NEEDED && entry->tag != TAG_RPATH && entry->tag != TAG_RUNPATH)
		return 0;
	if (__builtin_add_overflow(texts, entry->value, &at))
		return -EBADMSG;
	result = read_text(image, at, ELF_LIMIT_TEXT, &text);
	if (result < 0)
		return result;
	if (entry->tag == TAG_NEEDED)
		return add_name(image, needs, text);
	if (entry->tag == TAG_RPATH)
		needs->rpath = text;
	else
		needs->runpath = text;
	return 0;
}

static int read_dynamic(struct image *image, const struct segment *dynamic, struct elf_needs *needs)
{
	struct entry entry = { .tag = TAG_NEEDED };
	uint64_t texts = 0;
	int result = find_texts(image, dynamic, &texts);

	for (size_t i = 0; result == 0 && entry.tag != TAG_END; i++) {
		result = read_entry(image, dynamic, i, &entry);
		if (result == 0)
			result = take_entry(image, &entry, texts, needs);
	}
	return result;
}

int elf_read(const struct elf_source *source, struct arena *arena, struct elf_needs *ret_needs)
{
	struct image image = { .source = source, .arena = arena };
	struct elf_needs needs = { 0 };
	const struct segment *segment;
	unsigned char head[64] = { 0 };
	int result;

	/* class, data: 32 or 64 bits, the lowest byte first (elf(5), e_ident) */
	if (source->read(source->context, 0, head, 52) < 0 || memcmp(head, "\177ELF", 4) != 0 ||
	    (head[4] != 1 && head[4] != 2) || head[5] != 1)
		return -ENOEXEC;
	image.wide = head[4] == 2;
	if (image.wide && fetch(&image, 0, head, sizeof(head)) < 0)
		return -EBADMSG;
	needs.machine = (uint16_t)number(head + 18, 2);
	needs.width = image.wide ? 64 : 32;
	result = read_segments(&image, head);
	segment = result == 0 ? find_segment(&image, SEGMENT_INTERPRETER) : NULL;
	if (segment)
		result = read_text(&image, segment->offset,
				   segment->length < ELF_LIMIT_TEXT ? (size_t)segment->length :
								      ELF_LIMIT_TEXT,
				   &needs.interpreter);
	segment = result == 0 ? find_segment(&image, SEGMENT_DYNAMIC) : NULL;
	if (segment)
		result = read_dynamic(&image, segment, &needs);
	if (result < 0)
		return result;
	*ret_needs = needs;
	return 0;
}
