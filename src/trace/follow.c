#include "trace/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *word, *text;
} kinds[VERIFY_KIND_COUNT] = {
#define VERIFY(name, word, text) [VERIFY_##name] = { word, text },
#include "trace/verify.def"
#undef VERIFY
};

const char *verify_kind_word(enum verify_kind kind)
{
	return kinds[kind].word;
}

const char *verify_kind_text(enum verify_kind kind)
{
	return kinds[kind].text;
}

int follow_open(struct follow *ret_follow, int directory_fd, const char *path, const char *prev,
		struct error *error)
{
	struct follow follow = FOLLOW_NONE;
	int result = trace_read_open(&follow.reader, directory_fd, path, error);

	if (result < 0)
		return result;
	(void)snprintf(follow.last, sizeof(follow.last), "%s", prev);
	*ret_follow = follow;
	return 0;
}

void follow_close(struct follow *follow)
{
	trace_read_close(&follow->reader);
}

void follow_refuse(struct follow *follow, enum verify_kind kind, uint64_t line, const char *format,
		   ...)
{
	struct finding *finding = &follow->finding;
	va_list arguments;

	if (finding->kind)
		return;
	finding->kind = kind;
	finding->line = line;
	va_start(arguments, format);
	(void)vsnprintf(finding->detail, sizeof(finding->detail), format, arguments);
	va_end(arguments);
}

static enum verify_kind kind_of(enum trace_fault fault)
{
	static const enum verify_kind kinds_of[TRACE_FAULT_COUNT] = {
		[TRACE_TORN] = VERIFY_TORN,	  [TRACE_LONG] = VERIFY_LONG,
		[TRACE_FOREIGN] = VERIFY_FOREIGN, [TRACE_VERSION] = VERIFY_VERSION,
		[TRACE_FORM] = VERIFY_FORM,
	};

	return kinds_of[fault];
}

/* Where a number is missing: 1 when the record that belongs here stands further on, else 0. */
static int stands_later(struct follow *follow)
{
	struct trace_line line;
	int result;

	while ((result = trace_read_next(&follow->reader, &line)) > 0)
		if (!line.fault && line.seq == follow->records && trace_line_is_intact(&line) &&
		    (!follow->last[0] ||
		     memcmp(line.prev.bytes, follow->last, sizeof(follow->last) - 1) == 0))
			return 1;
	return result;
}

/* What was read before: the hash of a good line; 0 when it cannot be read again. */
static int hash_at(struct follow *follow, uint64_t number, char ret_hash[static SHA256_HEX_BYTES])
{
	struct trace_line line = { .fault = TRACE_FINE };
	int result = 1;

	trace_read_seek(&follow->reader, 0, 1);
	for (uint64_t i = 0; i < number && result > 0; i++)
		result = trace_read_next(&follow->reader, &line);
	if (result <= 0 || line.fault)
		return result < 0 ? result : 0;
	memcpy(ret_hash, line.hash.bytes, SHA256_HEX_BYTES - 1);
	return 1;
}

/*
 * A number that was there before: the same record, or another one. Where that goes on from the
 * line before its like, the lines in between are those that were put in.
 */
static int tell_earlier(struct follow *follow, uint64_t number, uint64_t seq, const char *prev,
			const char *hash)
{
	char like[SHA256_HEX_BYTES] = "", before[SHA256_HEX_BYTES] = "";
	int result = hash_at(follow, seq + 1, like);

	if (result > 0 && seq)
		result = hash_at(follow, seq, before);
	if (result < 0)
		return result;
	if (strcmp(like, hash) == 0)
		follow_refuse(follow, VERIFY_DUPLICATED, number, "it is line %" PRIu64, seq + 1);
	else if (strcmp(before, prev) == 0)
		follow_refuse(follow, VERIFY_INSERTED, seq + 1,
			      "line %" PRIu64 " goes on from the line before it", number);
	else
		follow_refuse(follow, VERIFY_INSERTED, number,
			      "record %" PRIu64 " stands where %" PRIu64 " belongs", seq,
			      follow->records);
	return 0;
}

/* The record's number is not the next one. */
static int tell_place(struct follow *follow, const struct trace_line *line)
{
	char hash[SHA256_HEX_BYTES] = "", prev[SHA256_HEX_BYTES] = "";
	uint64_t seq = line->seq, number = line->number;
	int found;

	memcpy(hash, line->hash.bytes, sizeof(hash) - 1);
	memcpy(prev, line->prev.bytes, sizeof(prev) - 1);
	if (seq < follow->records)
		return tell_earlier(follow, number, seq, prev, hash);
	found = stands_later(follow);
	if (found < 0)
		return found;
	follow_refuse(follow, found ? VERIFY_REORDERED : VERIFY_REMOVED, number,
		      "record %" PRIu64 " stands where %" PRIu64 " belongs", seq, follow->records);
	return 0;
}

/*
 * Its number is right, and it does not go on from the line before. One of the two is another than
 * it was; when what follows goes on from this one, it is the one before.
 */
static int tell_break(struct follow *follow, const struct trace_line *line)
{
	uint64_t number = line->number;
	char hash[SHA256_HEX_BYTES] = "";
	struct trace_line next;
	int result;

	if (number == 1) {
		follow_refuse(follow, VERIFY_REWRITTEN, number, "it begins from elsewhere");
		return 0;
	}
	memcpy(hash, line->hash.bytes, sizeof(hash) - 1);
	result = trace_read_next(&follow->reader, &next);
	if (result < 0)
		return result;
	if (result > 0 && !next.fault && memcmp(next.prev.bytes, hash, sizeof(hash) - 1) != 0)
		follow_refuse(follow, VERIFY_REWRITTEN, number,
			      "it does not go on from the line before");
	else
		follow_refuse(follow, VERIFY_REWRITTEN, number - 1,
			      "the next line does not go on from it");
	return 0;
}

int follow_next(struct follow *follow, struct trace_line *ret_line)
{
	struct trace_line line;
	int result;

	if (follow->finding.kind)
		return 0;
	result = trace_read_next(&follow->reader, &line);
	if (result <= 0)
		return result;
	if (line.fault) {
		follow_refuse(follow, kind_of(line.fault), line.number, "%s, byte %zu", line.what,
			      line.fault_at + 1);
		return 0;
	}
	if (!trace_line_is_intact(&line)) {
		follow_refuse(follow, VERIFY_CHANGED, line.number, "%s", "");
		return 0;
	}
	if (line.seq != follow->records)
		return tell_place(follow, &line);
	if (follow->last[0] && memcmp(line.prev.bytes, follow->last, sizeof(follow->last) - 1) != 0)
		return tell_break(follow, &line);
	memcpy(follow->last, line.hash.bytes, sizeof(follow->last) - 1);
	follow->records++;
	*ret_line = line;
	return 1;
}
