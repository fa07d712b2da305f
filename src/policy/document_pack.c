#include "policy/document_pack.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "policy/document_internal.h"

#include <errno.h>
#include <string.h>

#define MAGIC 0x44574142u
#define NO_STRING UINT32_MAX
/* Names of fields, of all shapes. */
#define FIELDS 64

struct header {
	uint32_t magic, keys, statements, details, string_bytes, unused;
};

struct packed {
	uint32_t key, text, name, id, line, column, detail, detail_count;
	uint64_t value;
};

struct packed_detail {
	uint32_t field, text;
};

/* Eight bytes at a time: each load hashes some thousands. */
static uint64_t add_text(uint64_t hash, const char *text)
{
	size_t length = strlen(text);
	uint64_t word = 0;

	for (; length >= sizeof(word); text += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	word = length;
	for (; length; text++, length--)
		word = word << 8 | (unsigned char)*text;
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

/* Of the keys as this build has them: bytes of another build are none of ours. */
static uint32_t hash_keys(void)
{
	uint64_t hash = DOCUMENT_PACK_VERSION;

	for (enum document_key key = 0; key < DOCUMENT_KEY_COUNT; key++) {
		const struct document_key_text *text = document_key(key);

		hash = add_text(add_text(hash ^ (uint64_t)text->shape, text->path), text->words);
	}
	return (uint32_t)hash;
}

struct packing {
	struct buffer *strings;
	/* names of fields are the tables' own: each is put once */
	struct {
		const char *name;
		uint32_t offset;
	} fields[FIELDS];
	size_t field_count;
};

static uint32_t put_string(struct packing *packing, const char *text)
{
	uint32_t offset = (uint32_t)packing->strings->length;

	if (!text)
		return NO_STRING;
	buffer_append(packing->strings, text, strlen(text) + 1);
	return offset;
}

static uint32_t put_field(struct packing *packing, const char *name)
{
	for (size_t i = 0; i < packing->field_count; i++)
		if (packing->fields[i].name == name)
			return packing->fields[i].offset;
	if (packing->field_count == FIELDS)
		return put_string(packing, name);
	packing->fields[packing->field_count].name = name;
	packing->fields[packing->field_count].offset = put_string(packing, name);
	return packing->fields[packing->field_count++].offset;
}

static void put_details(struct packing *packing, const struct document_statement *statement,
			struct buffer *details)
{
	for (size_t i = 0; i < statement->detail_count; i++) {
		const struct packed_detail detail = {
			put_field(packing, statement->details[i].field),
			put_string(packing, statement->details[i].text),
		};

		buffer_append(details, (const char *)&detail, sizeof(detail));
	}
}

int document_pack(const struct document *document, struct buffer *buffer)
{
	struct buffer CLEANUP_BUFFER rows = { 0 }, details = { 0 }, strings = { 0 };
	struct packing packing = { .strings = &strings };
	struct header header = { .magic = MAGIC, .keys = hash_keys() };

	for (size_t i = 0; i < document->count; i++) {
		const struct document_statement *statement = &document->statements[i];
		bool has_own_id = strcmp(statement->rule.id, document_key(statement->key)->path) !=
				  0;
		const struct packed row = {
			.key = statement->key,
			.text = put_string(&packing, statement->text),
			.name = put_string(&packing, statement->name),
			.id = put_string(&packing, has_own_id ? statement->rule.id : NULL),
			.line = statement->rule.line,
			.column = statement->column,
			.detail = (uint32_t)(details.length / sizeof(struct packed_detail)),
			.detail_count = (uint32_t)statement->detail_count,
			.value = statement->value,
		};

		put_details(&packing, statement, &details);
		buffer_append(&rows, (const char *)&row, sizeof(row));
	}
	header.statements = (uint32_t)document->count;
	header.details = (uint32_t)(details.length / sizeof(struct packed_detail));
	header.string_bytes = (uint32_t)strings.length;
	buffer_append(buffer, (const char *)&header, sizeof(header));
	buffer_append(buffer, rows.data, rows.length);
	buffer_append(buffer, details.data, details.length);
	buffer_append(buffer, strings.data, strings.length);
	return rows.failed || details.failed || strings.failed || buffer->failed ? -ENOMEM : 0;
}

struct unpacking {
	const unsigned char *rows, *details;
	const char *strings;
	struct header header;
	struct document *document;
	struct document_detail *made;
};

/* The run ends with a NUL, and so does each string that begins in it. */
static bool get_string(const struct unpacking *unpacking, uint32_t offset, const char **ret_text)
{
	*ret_text = unpacking->strings + offset;
	return offset < unpacking->header.string_bytes;
}

static bool get_row(const struct unpacking *unpacking, size_t index)
{
	struct document_statement *statement = &unpacking->document->statements[index];
	struct packed row;
	bool is_set;

	memcpy(&row, unpacking->rows + index * sizeof(row), sizeof(row));
	if (row.key >= DOCUMENT_KEY_COUNT || !row.line || !row.column ||
	    row.detail > unpacking->header.details ||
	    row.detail_count > unpacking->header.details - row.detail)
		return false;
	is_set = document_key(row.key)->shape == DOCUMENT_SHAPE_SET;
	*statement = (struct document_statement){
		.key = row.key,
		.value = row.value,
		.rule = { .id = document_key(row.key)->path,
			  .file = unpacking->document->file,
			  .line = row.line },
		.column = row.column,
		.details = row.detail_count ? unpacking->made + row.detail : NULL,
		.detail_count = row.detail_count,
	};
	if (!get_string(unpacking, row.text, &statement->text) ||
	    (row.name != NO_STRING) != is_set ||
	    (is_set && !get_string(unpacking, row.name, &statement->name)))
		return false;
	return row.id == NO_STRING || get_string(unpacking, row.id, &statement->rule.id);
}

static bool get_details(const struct unpacking *unpacking)
{
	for (size_t i = 0; i < unpacking->header.details; i++) {
		struct packed_detail detail;

		memcpy(&detail, unpacking->details + i * sizeof(detail), sizeof(detail));
		if (!get_string(unpacking, detail.field, &unpacking->made[i].field) ||
		    !get_string(unpacking, detail.text, &unpacking->made[i].text))
			return false;
	}
	return true;
}

int document_unpack(const void *bytes, size_t length, const char *file, struct arena *arena,
		    struct document *ret_document)
{
	struct document document = { .file = file };
	struct unpacking unpacking = { .document = &document };
	struct header *header = &unpacking.header;
	size_t row_bytes, detail_bytes, made_bytes;

	if (length < sizeof(*header) || length > DOCUMENT_PACK_LIMIT_BYTES)
		return -EBADMSG;
	memcpy(header, bytes, sizeof(*header));
	/* products of numbers that are no larger than the length fit */
	if (header->magic != MAGIC || header->keys != hash_keys() || header->unused ||
	    header->statements > DOCUMENT_LIMIT_STATEMENTS || header->details > length ||
	    header->string_bytes > length || !header->string_bytes)
		return -EBADMSG;
	row_bytes = header->statements * sizeof(struct packed);
	detail_bytes = header->details * sizeof(struct packed_detail);
	if (length != sizeof(*header) + row_bytes + detail_bytes + header->string_bytes)
		return -EBADMSG;
	unpacking.rows = (const unsigned char *)bytes + sizeof(*header);
	unpacking.details = unpacking.rows + row_bytes;
	unpacking.strings = (const char *)unpacking.details + detail_bytes;
	if (unpacking.strings[header->string_bytes - 1])
		return -EBADMSG;
	/* in one piece: a piece of its own costs an arena more pages than it has */
	made_bytes = (header->details + 1u) * sizeof(*unpacking.made);
	unpacking.made = arena_allocate(arena, made_bytes + header->statements *
								    sizeof(*document.statements));
	if (!unpacking.made)
		return -ENOMEM;
	document.statements = (struct document_statement *)(unpacking.made + header->details + 1);
	document.count = header->statements;
	if (!get_details(&unpacking))
		return -EBADMSG;
	for (size_t i = 0; i < document.count; i++)
		if (!get_row(&unpacking, i))
			return -EBADMSG;
	*ret_document = document;
	return 0;
}
