/* What the two halves of verifying share: the ledger (verify.c) and the chains (verify_chain.c). */
#pragma once

#include "trace/verify.h"

#include "base/json_read.h"
#include "trace/read.h"

#define VERIFY_HEX_BYTES (SHA256_HEX_BYTES - 1)
/* Of a word of a file in a message: ids have 22 characters. */
#define VERIFY_WORD_BYTES 64
/* Longer ids are none of ours. */
#define VERIFY_TASK_LIMIT_BYTES 63
#define VERIFY_BLOB_NAME_BYTES (VERIFY_TASK_LIMIT_BYTES + 1 + SHA256_HEX_BYTES)

/* What the ledger says of a chain's end. */
struct verify_ending {
	bool has_records, has_last;
	uint64_t records;
	char last[SHA256_HEX_BYTES];
};

void verify_tell(struct verify *verify, const char *file, const struct finding *finding);

/* Words of a file, for messages: what is no plain character is left out. */
const char *verify_word_of(struct json_view view, char text[static VERIFY_WORD_BYTES]);

bool verify_same(struct json_view one, struct json_view other);

void verify_copy_text(struct json_view view, char *text);

/* The members of a body by their names, as text; false when one of the first `needed` lacks. */
bool verify_members(const struct trace_line *line, const char *const *names, size_t count,
		    size_t needed, struct json_view *values);

/* The inside of a string's text; NULL for any other value. */
struct json_view verify_inside(struct json_view value);

bool verify_is_null(struct json_view value);

void verify_misplaced(struct follow *follow, const struct trace_line *line, const char *why);

/* What task.end, task.lost and task.removed say of a chain. */
bool verify_read_ending(const struct trace_line *line, struct verify_ending *ret_ending);

/* "<task>/<blob>" as one name. */
struct json_view verify_blob_name(struct json_view task, struct json_view blob, char *text,
				  size_t size);

/* A blob's name without the suffix that says it is packed; NULL: no name of a blob. */
struct json_view verify_plain_name(struct json_view blob);
