/*
 * The loader of policy files. An input that begins with 'p' is bytes for document_unpack(), as a
 * hostile cache could hold them; one with 'b' is bytes for outline_read(), as a
 * broken bawn-parse could send them; another is a YAML text. A text always has an outline that
 * reads back; and whatever an outline says, it is a document without a fault, or has faults with
 * a place in order and a reason.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "policy/document_pack.h"
#include "policy/outline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_faults(const struct document_faults *faults)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	require(faults->count > 0);
	for (size_t i = 0; i < faults->count && i < DOCUMENT_LIMIT_FAULTS; i++) {
		const struct document_fault *fault = &faults->rows[i];

		require(fault->line && fault->column && fault->text && fault->text[0]);
		require(i == 0 || faults->rows[i - 1].line <= fault->line);
	}
	document_print_faults(faults, "policy.yaml", &text);
	require(!text.failed && text.length);
}

static void check_document(const struct document *document, struct arena *arena)
{
	bool has_version = false;

	for (size_t i = 0; i < document->count; i++) {
		const struct document_statement *statement = &document->statements[i];

		require(statement->text && statement->rule.id && statement->rule.line &&
			statement->column);
		require(statement->key < DOCUMENT_KEY_COUNT);
		if (statement->key == DOCUMENT_READ || statement->key == DOCUMENT_WRITE)
			require(statement->text[0] == '/' && statement->text[1]);
		has_version |= statement->key == DOCUMENT_VERSION && statement->value == 1;
		(void)document_missing(statement, arena);
	}
	require(has_version);
}

/* Whatever the bytes are: every string can be read to its end. */
static void check_packed(const struct document *document)
{
	size_t bytes = 0;

	for (size_t i = 0; i < document->count; i++) {
		const struct document_statement *statement = &document->statements[i];

		require(statement->key < DOCUMENT_KEY_COUNT);
		bytes += strlen(statement->text) + strlen(statement->rule.id) +
			 (statement->name ? strlen(statement->name) : 0);
		for (size_t j = 0; j < statement->detail_count; j++)
			bytes += strlen(statement->details[j].field) +
				 strlen(statement->details[j].text);
	}
	require(bytes < SIZE_MAX);
}

/* What was read packs, and reads back as long as it was. */
static void check_pack(const struct document *document, struct arena *arena)
{
	struct buffer CLEANUP_BUFFER packed = { 0 };
	struct document back;

	require(document_pack(document, &packed) == 0);
	require(document_unpack(packed.data, packed.length, document->file, arena, &back) == 0);
	require(back.count == document->count);
	check_packed(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct document_facts facts = { .file = "/p.yaml", .home = "/home/user" };
	static struct document_faults faults;
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER bytes = { 0 };
	struct document document;
	struct outline outline;
	int result;

	if (size && data[0] == 'p') {
		result = document_unpack(data + 1, size - 1, "/p.yaml", &arena, &document);
		require(result == 0 || result == -EBADMSG || result == -ENOMEM);
		if (result == 0)
			check_packed(&document);
		return 0;
	}
	if (size && data[0] == 'b') {
		result = outline_read(data + 1, size - 1, &arena, &outline);
		if (result < 0) {
			require(result == -EBADMSG || result == -ENOMEM);
			return 0;
		}
	} else {
		require(outline_parse((const char *)data, size, &bytes) == 0);
		require(outline_read(bytes.data, bytes.length, &arena, &outline) == 0);
	}
	result = document_read(&outline, &facts, &arena, &document, &faults);
	if (result == 0) {
		check_document(&document, &arena);
		check_pack(&document, &arena);
	} else if (result == -EINVAL) {
		check_faults(&faults);
	} else {
		require(result == -ENOMEM);
	}
	return 0;
}
