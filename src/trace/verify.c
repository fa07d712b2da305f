#include "trace/verify.h"

#include "base/error.h"
#include "base/fd.h"
#include "trace/blob.h"
#include "trace/chain.h"
#include "trace/verify_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int verify_begin(struct verify *ret_verify, const struct verify_hooks *hooks, struct error *error)
{
	struct verify verify = VERIFY_NONE;
	int result = roster_begin(&verify.tasks);

	if (result == 0)
		result = roster_begin(&verify.removed_blobs);
	if (result == 0)
		result = roster_begin(&verify.decisions);
	if (result < 0)
		return error_errno(error, result, "random bytes for a table");
	verify.hooks = hooks;
	verify.error = error;
	*ret_verify = verify;
	return 0;
}

void verify_end(struct verify *verify)
{
	trace_read_close(&verify->ledger);
	roster_free(&verify->tasks);
	roster_free(&verify->removed_blobs);
	roster_free(&verify->decisions);
}

void verify_tell(struct verify *verify, const char *file, const struct finding *finding)
{
	verify->counts.findings++;
	verify->hooks->found(verify->hooks->context, file, finding);
}

/* Words of a file, for messages: what is no plain character is left out. */
const char *verify_word_of(struct json_view view, char text[static VERIFY_WORD_BYTES])
{
	size_t length = 0;

	for (size_t i = 0; i < view.length && length < VERIFY_WORD_BYTES - 1; i++)
		if (view.bytes[i] > ' ' && view.bytes[i] < 0x7f)
			text[length++] = view.bytes[i];
	text[length] = '\0';
	return text;
}

bool verify_same(struct json_view one, struct json_view other)
{
	return one.length == other.length && memcmp(one.bytes, other.bytes, one.length) == 0;
}

static bool is_hex(struct json_view view, size_t length)
{
	if (view.length != length)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!((view.bytes[i] >= '0' && view.bytes[i] <= '9') ||
		      (view.bytes[i] >= 'a' && view.bytes[i] <= 'f')))
			return false;
	return true;
}

static bool read_hex(struct json_view view, unsigned char *bytes, size_t count)
{
	if (!is_hex(view, 2 * count))
		return false;
	for (size_t i = 0; i < count; i++) {
		unsigned value = 0;

		for (size_t j = 0; j < 2; j++) {
			char digit = view.bytes[2 * i + j];

			value = value << 4 |
				(unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
		}
		bytes[i] = (unsigned char)value;
	}
	return true;
}

void verify_copy_text(struct json_view view, char *text)
{
	memcpy(text, view.bytes, view.length);
	text[view.length] = '\0';
}

/* The members of a body by their names, as text; false when one of the first `needed` lacks. */
bool verify_members(const struct trace_line *line, const char *const *names, size_t count,
		    size_t needed, struct json_view *values)
{
	struct json_reader reader;

	json_read_begin(&reader, line->body.bytes, line->body.length, TRACE_READ_DEPTH);
	(void)json_read_members(&reader, names, count, values);
	if (!json_read_end(&reader))
		return false;
	for (size_t i = 0; i < needed; i++)
		if (!values[i].bytes)
			return false;
	return true;
}

/* The inside of a string's text; NULL for any other value. */
struct json_view verify_inside(struct json_view value)
{
	if (value.length < 2 || value.bytes[0] != '"')
		return (struct json_view){ 0 };
	return (struct json_view){ value.bytes + 1, value.length - 2 };
}

bool verify_is_null(struct json_view value)
{
	return value.length == 4 && memcmp(value.bytes, "null", 4) == 0;
}

/* Signatures */

void verify_use_key(struct verify *verify, const unsigned char key[static SIGN_PUBLIC_BYTES])
{
	memcpy(verify->key, key, SIGN_PUBLIC_BYTES);
	verify->has_key = true;
}

/* The key of a claim is the one; the first that is seen becomes it. */
static bool is_our_key(struct verify *verify, const struct sign_claim *claim)
{
	if (!verify->has_key)
		verify_use_key(verify, claim->public);
	return memcmp(claim->public, verify->key, SIGN_PUBLIC_BYTES) == 0;
}

int verify_pin(struct verify *verify, const struct sign_claim *claim, const char *name)
{
	struct finding finding = { .kind = VERIFY_GOOD };
	bool is_good = false;
	int result =
		verify->hooks->check(verify->hooks->context, claim, 1, &is_good, verify->error);

	if (result < 0)
		return result;
	if (verify->pin_count == VERIFY_LIMIT_PINNED)
		return error_set(verify->error, E2BIG, "too many pinned heads");
	if (!is_good)
		finding.kind = VERIFY_SIGNATURE;
	else if (!is_our_key(verify, claim))
		finding.kind = VERIFY_KEY;
	if (finding.kind) {
		verify_tell(verify, name, &finding);
		return 0;
	}
	verify->pins[verify->pin_count++] = (struct verify_pin){ .claim = *claim, .name = name };
	return 0;
}

/* Heads of the ledger that wait for being checked together. */
struct heads {
	struct sign_claim claims[SIGN_LIMIT_CLAIMS];
	uint64_t lines[SIGN_LIMIT_CLAIMS];
	size_t count;
};

/* A bad one stands before any other finding. */
static int check_heads(struct verify *verify, struct heads *heads, struct follow *follow)
{
	bool is_good[SIGN_LIMIT_CLAIMS] = { false };
	int result;

	if (!heads->count)
		return 0;
	result = verify->hooks->check(verify->hooks->context, heads->claims, heads->count, is_good,
				      verify->error);
	if (result < 0)
		return result;
	for (size_t i = 0; i < heads->count; i++) {
		if (!is_good[i]) {
			follow->finding.kind = VERIFY_GOOD;
			follow_refuse(follow, VERIFY_SIGNATURE, heads->lines[i], "%s", "");
			break;
		}
		verify->counts.heads++;
	}
	heads->count = 0;
	return 0;
}

static bool read_claim(const struct verify *verify, const struct trace_line *line,
		       unsigned char ret_name[static SHA256_BYTES], struct sign_claim *ret_claim)
{
	static const char *const names[] = { "key", "public", "signed_seq", "signed_hash",
					     "signature" };
	struct json_view values[5];

	if (!verify_members(line, names, 5, 5, values) ||
	    !read_hex(verify_inside(values[0]), ret_name, SHA256_BYTES) ||
	    !read_hex(verify_inside(values[1]), ret_claim->public, SIGN_PUBLIC_BYTES) ||
	    !json_view_unsigned(values[2], &ret_claim->seq) ||
	    !is_hex(verify_inside(values[3]), SIGN_HASH_BYTES) ||
	    !read_hex(verify_inside(values[4]), ret_claim->signature, SIGN_SIGNATURE_BYTES))
		return false;
	verify_copy_text(verify_inside(values[3]), ret_claim->hash);
	memcpy(ret_claim->installation, verify->installation, sizeof(ret_claim->installation));
	return true;
}

static int take_head(struct verify *verify, struct heads *heads, struct follow *follow,
		     const struct trace_line *line)
{
	unsigned char name[SHA256_BYTES], digest[SHA256_BYTES];
	struct sign_claim claim = { .seq = 0 };
	struct sha256 hash;

	if (!read_claim(verify, line, name, &claim)) {
		follow_refuse(follow, VERIFY_FORM, line->number, "its body is none of a head");
		return 0;
	}
	sha256_begin(&hash);
	sha256_update(&hash, claim.public, SIGN_PUBLIC_BYTES);
	sha256_end(&hash, digest);
	if (memcmp(digest, name, SHA256_BYTES) != 0 || claim.seq + 1 != line->seq ||
	    !json_view_is(line->prev, claim.hash)) {
		follow_refuse(follow, VERIFY_MISPLACED, line->number,
			      "it signs another record than the one before it");
		return 0;
	}
	if (!is_our_key(verify, &claim)) {
		follow_refuse(follow, VERIFY_KEY, line->number, "%s", "");
		return 0;
	}
	heads->claims[heads->count] = claim;
	heads->lines[heads->count++] = line->number;
	return heads->count == SIGN_LIMIT_CLAIMS ? check_heads(verify, heads, follow) : 0;
}

/* The ledger */

void verify_misplaced(struct follow *follow, const struct trace_line *line, const char *why)
{
	char type[VERIFY_WORD_BYTES];

	follow_refuse(follow, VERIFY_MISPLACED, line->number, "%s: %s",
		      verify_word_of(line->type, type), why);
}

static int take_start(struct verify *verify, struct follow *follow, const struct trace_line *line)
{
	struct roster_row *row;
	int result;

	if (memchr(line->task.bytes, '/', line->task.length)) {
		verify_misplaced(follow, line, "this is no id of a task");
		return 0;
	}
	if (roster_find(&verify->tasks, line->task.bytes, line->task.length)) {
		verify_misplaced(follow, line, "the task has begun before");
		return 0;
	}
	result = roster_add(&verify->tasks, line->task.bytes, line->task.length, &row);
	if (result < 0)
		return error_errno(verify->error, result, "the table of tasks");
	row->start = (struct roster_place){ line->offset, line->number };
	return 0;
}

/* What task.end, task.lost and task.removed say of a chain. */
bool verify_read_ending(const struct trace_line *line, struct verify_ending *ret_ending)
{
	static const char *const names[] = { "records", "last" };
	struct json_view values[2];
	struct verify_ending ending = { .records = 0 };

	if (!verify_members(line, names, 2, 2, values))
		return false;
	ending.has_records = json_view_unsigned(values[0], &ending.records);
	ending.has_last = is_hex(verify_inside(values[1]), VERIFY_HEX_BYTES);
	if ((!ending.has_records && !verify_is_null(values[0])) ||
	    (!ending.has_last && !verify_is_null(values[1])))
		return false;
	if (ending.has_last)
		verify_copy_text(verify_inside(values[1]), ending.last);
	*ret_ending = ending;
	return true;
}

static void take_end(struct verify *verify, struct follow *follow, const struct trace_line *line,
		     bool is_removal)
{
	struct roster_row *row = roster_find(&verify->tasks, line->task.bytes, line->task.length);
	struct verify_ending ending;

	if (!verify_read_ending(line, &ending))
		follow_refuse(follow, VERIFY_FORM, line->number, "its body is none of its type");
	else if (!row)
		verify_misplaced(follow, line, "no such task has begun");
	else if (row->is_removed || (row->end.line && !is_removal))
		verify_misplaced(follow, line, "the task has ended before");
	if (follow->finding.kind)
		return;
	verify->counts.removed += is_removal;
	row->is_removed = is_removal;
	row->end = (struct roster_place){ line->offset, line->number };
}

/* "<task>/<blob>" as one name. */
struct json_view verify_blob_name(struct json_view task, struct json_view blob, char *text,
				  size_t size)
{
	int length = snprintf(text, size, "%.*s/%.*s", (int)task.length, task.bytes,
			      (int)VERIFY_HEX_BYTES, blob.bytes);

	return (struct json_view){ text, (size_t)length < size ? (size_t)length : size - 1 };
}

/* A blob's name without the suffix that says it is packed; NULL: no name of a blob. */
struct json_view verify_plain_name(struct json_view blob)
{
	static const char packed[] = ".zst";
	size_t suffix = sizeof(packed) - 1;

	if (blob.length == VERIFY_HEX_BYTES + suffix &&
	    memcmp(blob.bytes + VERIFY_HEX_BYTES, packed, suffix) == 0)
		blob.length = VERIFY_HEX_BYTES;
	return is_hex(blob, VERIFY_HEX_BYTES) ? blob : (struct json_view){ 0 };
}

static int take_removed_blob(struct verify *verify, struct follow *follow,
			     const struct trace_line *line)
{
	static const char *const names[] = { "blob" };
	char text[VERIFY_BLOB_NAME_BYTES];
	struct json_view value, name;
	struct roster_row *row;
	int result;

	if (!verify_members(line, names, 1, 1, &value) ||
	    !verify_plain_name(verify_inside(value)).bytes) {
		follow_refuse(follow, VERIFY_FORM, line->number, "its body is none of its type");
		return 0;
	}
	name = verify_blob_name(line->task, verify_inside(value), text, sizeof(text));
	if (roster_find(&verify->removed_blobs, name.bytes, name.length))
		return 0;
	result = roster_add(&verify->removed_blobs, name.bytes, name.length, &row);
	return result < 0 ? error_errno(verify->error, result, "the table of removed blobs") : 0;
}

/* A decision is known by its hash, for the one record that tells how it came out. */
static int take_decision(struct verify *verify, const struct trace_line *line)
{
	char text[VERIFY_BLOB_NAME_BYTES];
	struct json_view name = verify_blob_name(line->task, line->hash, text, sizeof(text));
	struct roster_row *row;
	int result = roster_add(&verify->decisions, name.bytes, name.length, &row);

	return result < 0 ? error_errno(verify->error, result, "the table of decisions") : 0;
}

static void take_decision_end(struct verify *verify, struct follow *follow,
			      const struct trace_line *line)
{
	static const char *const names[] = { "intent" };
	char text[VERIFY_BLOB_NAME_BYTES];
	struct json_view value, name;
	struct roster_row *row;

	if (!verify_members(line, names, 1, 1, &value) ||
	    !is_hex(verify_inside(value), VERIFY_HEX_BYTES)) {
		follow_refuse(follow, VERIFY_FORM, line->number, "its body is none of its type");
		return;
	}
	name = verify_blob_name(line->task, verify_inside(value), text, sizeof(text));
	row = roster_find(&verify->decisions, name.bytes, name.length);
	if (!row)
		verify_misplaced(follow, line, "no such decision has been made");
	else if (row->is_seen)
		verify_misplaced(follow, line, "the decision has an outcome already");
	else
		row->is_seen = true;
}

static void take_first(struct verify *verify, struct follow *follow, const struct trace_line *line)
{
	static const char *const names[] = { "installation" };
	struct json_view value;

	if (!json_view_is(line->type, "ledger.start") || line->task.bytes) {
		verify_misplaced(follow, line, "a ledger begins with ledger.start");
		return;
	}
	if (!verify_members(line, names, 1, 1, &value) ||
	    !is_hex(verify_inside(value), SIGN_INSTALLATION_BYTES)) {
		follow_refuse(follow, VERIFY_FORM, line->number, "its body is none of its type");
		return;
	}
	verify_copy_text(verify_inside(value), verify->installation);
	for (size_t i = 0; i < verify->pin_count; i++)
		if (strcmp(verify->pins[i].claim.installation, verify->installation) != 0)
			follow_refuse(follow, VERIFY_FOREIGN, line->number,
				      "the ledger is of another installation than the head of %s",
				      verify->pins[i].name);
}

static int take_typed(struct verify *verify, struct heads *heads, struct follow *follow,
		      const struct trace_line *line)
{
	struct json_view type = line->type;

	if (json_view_is(type, "ledger.start")) {
		verify_misplaced(follow, line, "the ledger has begun before");
		return 0;
	}
	if (json_view_is(type, "head"))
		return take_head(verify, heads, follow, line);
	if (!line->task.bytes || line->task.length > VERIFY_TASK_LIMIT_BYTES) {
		if (strncmp(type.bytes, "task.", 5) == 0)
			verify_misplaced(follow, line, "it is of no task");
		return 0;
	}
	if (json_view_is(type, "task.start"))
		return take_start(verify, follow, line);
	if (json_view_is(type, "task.end") || json_view_is(type, "task.lost"))
		take_end(verify, follow, line, false);
	else if (json_view_is(type, "task.removed"))
		take_end(verify, follow, line, true);
	else if (json_view_is(type, "blob.removed"))
		return take_removed_blob(verify, follow, line);
	else if (json_view_is(type, "decision"))
		return take_decision(verify, line);
	else if (json_view_is(type, "decision.end"))
		take_decision_end(verify, follow, line);
	return 0;
}

static void compare_pins(const struct verify *verify, struct follow *follow,
			 const struct trace_line *line)
{
	for (size_t i = 0; i < verify->pin_count; i++)
		if (verify->pins[i].claim.seq == line->seq &&
		    !json_view_is(line->hash, verify->pins[i].claim.hash))
			follow_refuse(follow, VERIFY_REWRITTEN, line->number,
				      "it is not the record that the head of %s signed",
				      verify->pins[i].name);
}

static int take_ledger_line(struct verify *verify, struct heads *heads, struct follow *follow,
			    const struct trace_line *line)
{
	if (!json_view_is(line->layer, "ledger")) {
		verify_misplaced(follow, line, "it is of a task's chain");
		return 0;
	}
	compare_pins(verify, follow, line);
	if (follow->finding.kind)
		return 0;
	if (line->number == 1) {
		take_first(verify, follow, line);
		return 0;
	}
	return take_typed(verify, heads, follow, line);
}

/* What the ledger's end says, against the heads that are known from elsewhere. */
static void judge_ledger_end(struct verify *verify, struct follow *follow)
{
	if (!follow->records)
		follow_refuse(follow, VERIFY_EMPTY, 1, "%s", "");
	for (size_t i = 0; i < verify->pin_count; i++)
		if (verify->pins[i].claim.seq >= follow->records)
			follow_refuse(follow, VERIFY_TRUNCATED, follow->records + 1,
				      "the head of %s signed record %" PRIu64
				      ", and the last one here is %" PRIu64,
				      verify->pins[i].name, verify->pins[i].claim.seq,
				      follow->records - 1);
}

static int read_ledger(struct verify *verify, struct follow *follow)
{
	struct heads heads = { .count = 0 };
	struct trace_line line;
	int result, checked;

	while ((result = follow_next(follow, &line)) > 0) {
		result = take_ledger_line(verify, &heads, follow, &line);
		if (result < 0)
			return result;
		/* what is bad for what it says has no word in the rest */
		if (follow->finding.kind)
			break;
		verify->counts.ledger_records++;
	}
	if (result < 0)
		return error_errno(verify->error, result, "reading %s", verify->ledger_name);
	checked = check_heads(verify, &heads, follow);
	if (checked == 0)
		judge_ledger_end(verify, follow);
	return checked;
}

int verify_ledger(struct verify *verify, int directory_fd, const char *path, const char *name,
		  uint64_t limit_bytes)
{
	struct follow CLEANUP_FOLLOW follow = FOLLOW_NONE;
	int result = follow_open(&follow, directory_fd, path, CHAIN_NO_HASH, verify->error);

	if (result == 0)
		result = trace_read_open(&verify->ledger, directory_fd, path, verify->error);
	if (result < 0)
		return result;
	follow.reader.limit = verify->ledger_limit = limit_bytes;
	(void)snprintf(verify->ledger_name, sizeof(verify->ledger_name), "%s", name);
	result = read_ledger(verify, &follow);
	if (result < 0)
		return result;
	verify->has_ledger = true;
	verify->is_ledger_good = follow.finding.kind == VERIFY_GOOD;
	memcpy(verify->ledger_last, follow.last, sizeof(verify->ledger_last));
	if (!verify->is_ledger_good)
		verify_tell(verify, verify->ledger_name, &follow.finding);
	return 0;
}
