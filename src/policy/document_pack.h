/*
 * A document as bytes that are read back without looking at what they mean: what a start keeps of
 * a policy that it has read (workspace/policy_file.h). Pure.
 *
 * Tables of numbers and one run of strings, by offsets. document_unpack() checks every number of
 * them, so that bytes of anybody's do no harm; that they are what a text says is the word of
 * whoever kept them. The file's name is not among them.
 */
#pragma once

#include "policy/document.h"

#include <stddef.h>

struct arena;
struct buffer;

/* Raised when the loader makes something else of the same text. */
#define DOCUMENT_PACK_VERSION 1u
/* Of a text at its limit: all of it once more, and each statement's numbers. */
#define DOCUMENT_PACK_LIMIT_BYTES (8u * 1024 * 1024)

/* Appends the bytes. -ENOMEM. */
int document_pack(const struct document *document, struct buffer *buffer);

/*
 * Strings of the document are those of the bytes, which must outlast it. -EBADMSG for what this
 * build would not have written.
 */
int document_unpack(const void *bytes, size_t length, const char *file, struct arena *arena,
		    struct document *ret_document);
