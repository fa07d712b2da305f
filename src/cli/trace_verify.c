/*
 * `bawn trace verify`: whether a trace is what was written. Of the installation, by its state
 * directory; or of files that were copied elsewhere, with nothing of bawn's but this program.
 */
#include "cli/verbs.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/trace_place.h"
#include "policy/action.h"
#include "trace/sign.h"
#include "trace/verify_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each is one file's first bad line; more are counted, and the first ones are those that matter. */
#define LIMIT_TOLD 100u
/* A public key, a head: one small file. */
#define SMALL_BYTES 4096

enum { OPTION_KEY, OPTION_HEAD, OPTION_JSON, OPTION_STATE_DIR };

static const struct option options[] = {
	{ "--key", "FILE",
	  "the public key that heads must be signed with (PEM, or 64 hex digits), from elsewhere "
	  "than the trace",
	  false, false, OPTION_KEY },
	{ "--head", "HEAD",
	  "a head that was kept elsewhere, as `bawn trace head` printed it: the line, or a file "
	  "that has it",
	  false, false, OPTION_HEAD },
	{ "--json", NULL, "print the verdict as JSON", false, false, OPTION_JSON },
	{ "--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", false,
	  false, OPTION_STATE_DIR },
};

struct told {
	const char *file;
	struct finding finding;
};

struct told_task {
	const char *task;
	uint64_t records, torn_bytes;
};

struct verifying {
	/* what was asked */
	const char *key_path, *head, *state_path;
	bool json;
	/* what is verified */
	struct arena arena;
	struct verify verify;
	bool is_store;	     /* the installation's own */
	bool are_all_there;  /* a whole trace, and not some files of one */
	bool has_pin;	     /* --head */
	bool is_key_its_own; /* the key is from the trace itself */
	uint64_t files;	     /* chains that were given */
	/* what became of it */
	struct told told[LIMIT_TOLD];
	struct told_task unfinished[LIMIT_TOLD];
	size_t told_count, unfinished_count;
	struct sign_checker checker;
	bool is_checking;
	char unchecked[ERROR_MESSAGE_BYTES]; /* why signatures were not checked; "": they were */
};

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct verifying *verifying = context;

	if (value && !value[0])
		return error_set(error, EINVAL, "option %s has an empty value", option->name);
	switch (option->id) {
	case OPTION_KEY:
		verifying->key_path = value;
		return 0;
	case OPTION_HEAD:
		verifying->head = value;
		return 0;
	case OPTION_JSON:
		verifying->json = true;
		return 0;
	default:
		verifying->state_path = value;
		return 0;
	}
}

/* What verifying asks for */

static void found(void *context, const char *file, const struct finding *finding)
{
	struct verifying *verifying = context;

	if (verifying->told_count < LIMIT_TOLD)
		verifying->told[verifying->told_count++] =
			(struct told){ arena_copy(&verifying->arena, file), *finding };
}

static void unfinished(void *context, const char *task, uint64_t records, uint64_t torn_bytes)
{
	struct verifying *verifying = context;

	if (verifying->unfinished_count < LIMIT_TOLD)
		verifying->unfinished[verifying->unfinished_count++] =
			(struct told_task){ arena_copy(&verifying->arena, task), records,
					    torn_bytes };
}

/* Without the program for it nothing is said of signatures, and all the rest is. */
static int check(void *context, const struct sign_claim *claims, size_t count, bool *ret_good,
		 struct error *error)
{
	struct verifying *verifying = context;
	int result = 0;

	if (!verifying->unchecked[0] && !verifying->is_checking) {
		result = sign_check_begin(&verifying->checker, error);
		verifying->is_checking = result == 0;
	}
	if (!verifying->unchecked[0] && result == 0)
		result = sign_check(&verifying->checker, claims, count, ret_good, error);
	if (result < 0)
		(void)snprintf(verifying->unchecked, sizeof(verifying->unchecked), "%s",
			       error->message);
	if (verifying->unchecked[0])
		for (size_t i = 0; i < count; i++)
			ret_good[i] = true;
	return 0;
}

/* Small files */

static ssize_t read_small(int directory_fd, const char *path, char bytes[static SMALL_BYTES],
			  struct error *error)
{
	int CLEANUP_FD fd =
		openat(directory_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status;
	ssize_t length;

	if (fd < 0 || fstat(fd, &status) < 0)
		return error_errno(error, errno, "%s", path);
	if (!S_ISREG(status.st_mode))
		return error_set(error, EINVAL, "%s: no regular file", path);
	length = fd_read_all(fd, bytes, SMALL_BYTES);
	if (length < 0)
		return error_errno(error, (int)length, "%s", path);
	return length < SMALL_BYTES ? length : error_set(error, EFBIG, "%s: too long", path);
}

static size_t without_newline(const char *text, size_t length)
{
	while (length && (text[length - 1] == '\n' || text[length - 1] == '\r'))
		length--;
	return length;
}

static bool read_digits(const char *text, size_t length, unsigned char *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";

	if (length != 2 * count)
		return false;
	for (size_t i = 0; i < length; i++) {
		const char *digit = text[i] ? strchr(digits, text[i] | 0x20) : NULL;

		if (!digit)
			return false;
		bytes[i / 2] = (unsigned char)(bytes[i / 2] << 4 | (digit - digits));
	}
	return true;
}

static int use_key(struct verifying *verifying, struct error *error)
{
	unsigned char key[SIGN_PUBLIC_BYTES] = { 0 };
	char text[SMALL_BYTES];
	ssize_t length = read_small(AT_FDCWD, verifying->key_path, text, error);

	if (length < 0)
		return (int)length;
	if (!read_digits(text, without_newline(text, (size_t)length), key, sizeof(key)) &&
	    sign_pem_read(text, (size_t)length, key) < 0)
		return error_set(error, EINVAL,
				 "%s: no public key for Ed25519 (PEM, or 64 hex digits)",
				 verifying->key_path);
	verify_use_key(&verifying->verify, key);
	return 0;
}

static int use_head(struct verifying *verifying, struct error *error)
{
	static const char begin[] = "bawn-head-";
	struct sign_claim claim;
	char text[SMALL_BYTES];
	const char *line = verifying->head;
	ssize_t length = (ssize_t)strlen(line);

	if (strncmp(line, begin, sizeof(begin) - 1) != 0) {
		length = read_small(AT_FDCWD, line, text, error);
		line = text;
	}
	if (length < 0)
		return (int)length;
	if (sign_line_read(line, without_newline(line, (size_t)length), &claim) < 0)
		return error_set(error, EINVAL, "--head: no line as `bawn trace head` prints it");
	verifying->has_pin = true;
	return verify_pin(&verifying->verify, &claim, "--head");
}

/* What the trace itself says of its key and its newest head: no proof, but they must agree. */
static int use_own(struct verifying *verifying, int trace_fd, const char *prefix,
		   struct error *error)
{
	unsigned char key[SIGN_PUBLIC_BYTES];
	const char *name = arena_format(&verifying->arena, "%s/" TRACE_HEAD, prefix);
	struct finding finding = { .kind = VERIFY_FORM };
	struct error ignored = ERROR_NONE;
	struct sign_claim claim;
	char text[SMALL_BYTES];
	ssize_t length = read_small(trace_fd, TRACE_KEY "/public", text, &ignored);

	if (!verifying->verify.has_key && length >= 0 &&
	    sign_pem_read(text, (size_t)length, key) == 0) {
		verify_use_key(&verifying->verify, key);
		verifying->is_key_its_own = true;
	}
	length = read_small(trace_fd, TRACE_HEAD, text, error);
	if (length == -ENOENT)
		return 0;
	if (length < 0)
		return (int)length;
	if (sign_line_read(text, without_newline(text, (size_t)length), &claim) == 0)
		return verify_pin(&verifying->verify, &claim, name);
	verifying->verify.counts.findings++;
	found(verifying, name, &finding);
	return 0;
}

/* The installation's own trace, or a whole copy of one. */
static int verify_directory(struct verifying *verifying, int trace_fd, const char *prefix,
			    const char *const *tasks, size_t task_count, struct error *error)
{
	int result = use_own(verifying, trace_fd, prefix, error);

	verifying->are_all_there = !task_count;
	if (result == 0)
		result = verify_store(&verifying->verify,
				      &(struct verify_store){ .fd = trace_fd,
							      .prefix = prefix,
							      .tasks = tasks,
							      .task_count = task_count });
	return result;
}

/* Files that were copied */

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* By its name; one with another name by what it begins with. */
static bool is_ledger(const char *path)
{
	struct trace_reader CLEANUP_TRACE_READER reader = TRACE_READER_NONE;
	struct error ignored = ERROR_NONE;
	struct trace_line line;

	if (strcmp(last_part(path), TRACE_LEDGER) == 0)
		return true;
	if (ends_with(path, TRACE_SUFFIX) || trace_read_open(&reader, AT_FDCWD, path, &ignored) < 0)
		return false;
	return trace_read_next(&reader, &line) > 0 && !line.fault &&
	       json_view_is(line.layer, "ledger");
}

/* The task that a chain's file is named after; NULL when it was renamed. */
static const char *task_of_name(struct verifying *verifying, const char *path)
{
	const char *name = last_part(path);
	size_t length = strlen(name) - (ends_with(name, TRACE_SUFFIX) ? strlen(TRACE_SUFFIX) : 0);

	if (!name[length] || length != ACTION_ID_BYTES - 2 || strncmp(name, "t-", 2) != 0)
		return NULL;
	return arena_copy_bytes(&verifying->arena, name, length);
}

static int verify_files(struct verifying *verifying, int count, char **paths, struct error *error)
{
	const struct verify_blobs none = { .are_wanted = false };
	int ledger = -1, result = 0;

	for (int i = 0; i < count; i++) {
		if (!is_ledger(paths[i]))
			continue;
		if (ledger >= 0)
			return error_set(error, EINVAL, "%s and %s: one ledger at a time",
					 paths[ledger], paths[i]);
		ledger = i;
	}
	if (ledger >= 0)
		result = verify_ledger(&verifying->verify, AT_FDCWD, paths[ledger], paths[ledger],
				       UINT64_MAX);
	for (int i = 0; i < count && result == 0; i++) {
		if (i == ledger)
			continue;
		verifying->files++;
		result = verify_chain(&verifying->verify, AT_FDCWD, paths[i], paths[i],
				      task_of_name(verifying, paths[i]), none);
	}
	return result;
}

static bool is_directory(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* A word of the command line that names no file. */
static bool is_task_word(const char *word)
{
	return !strpbrk(word, "/.") && access(word, F_OK) < 0;
}

static int verify_copies(struct verifying *verifying, int count, char **paths, struct error *error)
{
	int CLEANUP_FD fd = -1;
	char ledger[SMALL_BYTES];

	if (count > 1 || !is_directory(paths[0]))
		return verify_files(verifying, count, paths, error);
	if ((size_t)snprintf(ledger, sizeof(ledger), "%s/" TRACE_LEDGER, paths[0]) >=
		    sizeof(ledger) ||
	    access(ledger, F_OK) < 0)
		return error_set(error, EINVAL, "%s: no directory of a trace: it has no ledger",
				 paths[0]);
	fd = open(paths[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(error, errno, "%s", paths[0]);
	return verify_directory(verifying, fd, paths[0], NULL, 0, error);
}

/* The installation's. Returns an exit status, or -1 when it was verified. */
static int verify_own(struct verifying *verifying, int count, char **words, struct error *error)
{
	struct trace_place CLEANUP_TRACE_PLACE place = { .state = STATE_NONE,
							 .store = TRACE_STORE_NONE };
	const char **tasks = arena_array(&verifying->arena, (size_t)count + 1, sizeof(*tasks));
	int status = tasks ? trace_place_open(&place, verifying->state_path) : 125;
	int result;

	for (int i = 0; i < count && status == 0; i++) {
		struct trace_found one;

		status = trace_place_find(&place, words[i], false, &one);
		if (status == 0)
			tasks[i] = arena_copy(&verifying->arena, one.task);
	}
	if (status)
		return status;
	verifying->is_store = true;
	if (place.is_empty) {
		verifying->are_all_there = true;
		return -1;
	}
	result = verify_directory(verifying, place.store.fd, "trace", tasks, (size_t)count, error);
	/* nothing was recorded yet */
	if (result == 0 || result == -ENOENT)
		return -1;
	complain(error->message);
	return 125;
}

/* The verdict */

static const char *key_text(const struct verifying *verifying, char text[static SHA256_HEX_BYTES])
{
	unsigned char whole[SHA256_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_update(&hash, verifying->verify.key, SIGN_PUBLIC_BYTES);
	sha256_end(&hash, whole);
	sha256_hex(whole, text);
	return text;
}

struct note {
	bool holds;
	const char *text;
};

#define NOTES 9

/* What was not shown, and what would. */
static void gather_notes(const struct verifying *verifying, struct note notes[static NOTES])
{
	const struct verify *verify = &verifying->verify;
	const struct verify_counts *counts = &verify->counts;
	bool has_heads = verify->has_key;
	const struct note all[NOTES] = {
		{ !verify->has_ledger && !verifying->is_store,
		  "no ledger was given: that a chain is whole, and whose it is, was not shown" },
		{ verify->has_ledger && !verify->is_ledger_good,
		  "behind the ledger's bad line nothing of it counts: chains that it proves there "
		  "were looked at by themselves" },
		{ verify->has_ledger && !has_heads,
		  "the ledger has no signed head: who can write its files can write all of it anew "
		  "(`bawn trace head`)" },
		{ verify->has_ledger && !verifying->has_pin,
		  "no head was pinned (--head): a tail of the ledger that the key's owner cut off "
		  "or wrote anew would not show" },
		{ has_heads && !verifying->key_path && verifying->is_key_its_own,
		  "the key is the trace's own: who changed both would not show (--key)" },
		{ has_heads && !verifying->key_path && !verifying->is_key_its_own &&
			  !verifying->has_pin,
		  "no key was given (--key): heads show only that one key signed them all" },
		{ verifying->files && verify->has_ledger && verify->is_ledger_good &&
			  verify->tasks.count > counts->tasks + counts->removed,
		  "not all tasks of the ledger were given" },
		{ !verifying->is_store && !verifying->are_all_there,
		  "blobs (output, policies) were not looked at: give the directory of the trace" },
		{ verifying->is_store && !verifying->are_all_there,
		  "only the tasks that were named were looked at" },
	};

	memcpy(notes, all, sizeof(all));
}

static void put_finding(const struct told *told, struct buffer *out)
{
	const struct finding *finding = &told->finding;

	buffer_visible(out, told->file ? told->file : "?");
	if (finding->line)
		buffer_format(out, ":%" PRIu64, finding->line);
	buffer_format(out, ": %s: %s", verify_kind_word(finding->kind),
		      verify_kind_text(finding->kind));
	if (finding->detail[0]) {
		buffer_text(out, " (");
		buffer_visible(out, finding->detail);
		buffer_text(out, ")");
	}
	buffer_text(out, "\n");
}

static void put_counts(const struct verifying *verifying, struct buffer *out)
{
	const struct verify *verify = &verifying->verify;
	const struct verify_counts *counts = &verify->counts;
	char key[SHA256_HEX_BYTES];

	if (verify->has_ledger) {
		buffer_format(out, "ledger: %" PRIu64 " records, %zu tasks", counts->ledger_records,
			      verify->tasks.count);
		if (counts->removed)
			buffer_format(out, ", of these %" PRIu64 " removed on record",
				      counts->removed);
		if (verify->has_key && !verifying->unchecked[0])
			buffer_format(out, "; %" PRIu64 " signed heads, key %.16s", counts->heads,
				      key_text(verifying, key));
		buffer_text(out, "\n");
	}
	if (counts->tasks || !verify->has_ledger)
		buffer_format(out,
			      "chains: %" PRIu64 " with %" PRIu64 " records; %" PRIu64
			      " end as the ledger has it, %" PRIu64 " unfinished\n",
			      counts->tasks, counts->records, counts->ended, counts->unfinished);
	if (counts->blobs || counts->blobs_removed)
		buffer_format(out,
			      "blobs: %" PRIu64 " are what was recorded, %" PRIu64
			      " removed on record\n",
			      counts->blobs, counts->blobs_removed);
}

static void put_unfinished(const struct verifying *verifying, struct buffer *out)
{
	const struct verify_counts *counts = &verifying->verify.counts;

	for (size_t i = 0; i < verifying->unfinished_count; i++) {
		const struct told_task *one = &verifying->unfinished[i];

		buffer_text(out, "unfinished: ");
		buffer_visible(out, one->task && one->task[0] ? one->task : "a task");
		buffer_format(out, ", %" PRIu64 " records so far", one->records);
		if (one->torn_bytes)
			buffer_format(out, " and %" PRIu64 " bytes of one that is not whole",
				      one->torn_bytes);
		buffer_text(out, ": it lives, or its supervisor died and bawn was not started "
				 "since\n");
	}
	if (counts->unfinished > verifying->unfinished_count)
		buffer_format(out, "unfinished: %" PRIu64 " more\n",
			      counts->unfinished - verifying->unfinished_count);
}

static void put_text(const struct verifying *verifying, struct buffer *out)
{
	const struct verify_counts *counts = &verifying->verify.counts;
	struct note notes[NOTES];

	for (size_t i = 0; i < verifying->told_count; i++)
		put_finding(&verifying->told[i], out);
	if (counts->findings > verifying->told_count)
		buffer_format(out, "%" PRIu64 " more files have a bad line\n",
			      counts->findings - verifying->told_count);
	put_unfinished(verifying, out);
	if (!verifying->verify.has_ledger && !counts->tasks && !counts->findings) {
		buffer_text(out, "nothing was recorded yet\n");
		return;
	}
	put_counts(verifying, out);
	gather_notes(verifying, notes);
	for (size_t i = 0; i < NOTES; i++)
		if (notes[i].holds)
			buffer_format(out, "not shown: %s\n", notes[i].text);
	if (verifying->unchecked[0])
		buffer_format(out, "not shown: signatures were not checked: %s\n",
			      verifying->unchecked);
	buffer_text(out, counts->findings	 ? "bad\n" :
			 verifying->unchecked[0] ? "no verdict\n" :
						   "good\n");
}

static void put_json_ledger(const struct verifying *verifying, struct json *json)
{
	const struct verify *verify = &verifying->verify;
	char key[SHA256_HEX_BYTES];

	if (!verify->has_ledger) {
		json_null(json, "ledger");
		return;
	}
	json_object(json, "ledger");
	json_bool(json, "good", verify->is_ledger_good);
	json_string(json, "installation", verify->installation);
	json_unsigned(json, "records", verify->counts.ledger_records);
	json_unsigned(json, "tasks", verify->tasks.count);
	json_unsigned(json, "removed_tasks", verify->counts.removed);
	json_unsigned(json, "heads", verifying->unchecked[0] ? 0 : verify->counts.heads);
	json_string(json, "key", verify->has_key ? key_text(verifying, key) : NULL);
	json_bool(json, "pinned", verifying->has_pin);
	json_string(json, "last", verify->ledger_last);
	json_object_end(json);
}

static void put_json(const struct verifying *verifying, struct buffer *out)
{
	const struct verify_counts *counts = &verifying->verify.counts;
	struct note notes[NOTES];
	struct json json;

	json_begin(&json, out);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_string(&json, "verdict",
		    counts->findings	    ? "bad" :
		    verifying->unchecked[0] ? "none" :
					      "good");
	json_unsigned(&json, "finding_count", counts->findings);
	json_array(&json, "findings");
	for (size_t i = 0; i < verifying->told_count; i++) {
		const struct told *told = &verifying->told[i];

		json_object(&json, NULL);
		json_string(&json, "file", told->file);
		json_unsigned(&json, "line", told->finding.line);
		json_string(&json, "kind", verify_kind_word(told->finding.kind));
		json_string(&json, "text", verify_kind_text(told->finding.kind));
		json_string(&json, "detail", told->finding.detail);
		json_object_end(&json);
	}
	json_array_end(&json);
	put_json_ledger(verifying, &json);
	json_object(&json, "chains");
	json_unsigned(&json, "count", counts->tasks);
	json_unsigned(&json, "records", counts->records);
	json_unsigned(&json, "ended", counts->ended);
	json_unsigned(&json, "unfinished", counts->unfinished);
	json_unsigned(&json, "alone", counts->alone);
	json_object_end(&json);
	json_object(&json, "blobs");
	json_unsigned(&json, "good", counts->blobs);
	json_unsigned(&json, "removed", counts->blobs_removed);
	json_object_end(&json);
	json_array(&json, "unfinished");
	for (size_t i = 0; i < verifying->unfinished_count; i++) {
		json_object(&json, NULL);
		json_string(&json, "task", verifying->unfinished[i].task);
		json_unsigned(&json, "records", verifying->unfinished[i].records);
		json_unsigned(&json, "torn_bytes", verifying->unfinished[i].torn_bytes);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_array(&json, "not_shown");
	gather_notes(verifying, notes);
	for (size_t i = 0; i < NOTES; i++)
		if (notes[i].holds)
			json_string(&json, NULL, notes[i].text);
	if (verifying->unchecked[0])
		json_string(&json, NULL, verifying->unchecked);
	json_array_end(&json);
	json_object_end(&json);
	buffer_text(out, "\n");
}

static int print_verdict(const struct verifying *verifying)
{
	struct buffer CLEANUP_BUFFER out = { 0 };

	if (verifying->json)
		put_json(verifying, &out);
	else
		put_text(verifying, &out);
	if (out.failed || arena_failed(&verifying->arena) ||
	    fd_write_all(1, out.data, out.length) < 0) {
		complain("the verdict could not be printed");
		return 125;
	}
	if (verifying->verify.counts.findings)
		return 1;
	return verifying->unchecked[0] ? 125 : 0;
}

static int run_verify(struct verifying *verifying, int count, char **words, struct error *error)
{
	const struct verify_hooks hooks = {
		.context = verifying, .found = found, .unfinished = unfinished, .check = check
	};
	bool is_own = !count || is_task_word(words[0]);
	int result = verify_begin(&verifying->verify, &hooks, error);

	if (result == 0 && verifying->key_path)
		result = use_key(verifying, error);
	if (result == 0 && verifying->head)
		result = use_head(verifying, error);
	if (result == 0 && is_own) {
		int status = verify_own(verifying, count, words, error);

		return status < 0 ? print_verdict(verifying) : status;
	}
	if (result == 0)
		result = verify_copies(verifying, count, words, error);
	if (result < 0) {
		complain(error->message);
		return result == -EINVAL ? 2 : 125;
	}
	return print_verdict(verifying);
}

static int trace_verify(int argc, char **argv)
{
	struct verifying verifying = { .verify = VERIFY_NONE, .checker = SIGN_CHECKER_NONE };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_trace_verify, argc, argv, take, &verifying, &error);
	int status;

	if (first < 0) {
		complain(error.message);
		return 2;
	}
	status = run_verify(&verifying, argc - first, argv + first, &error);
	sign_check_end(&verifying.checker);
	verify_end(&verifying.verify);
	arena_free(&verifying.arena);
	return status;
}

const struct verb verb_trace_verify = {
	.name = "trace verify",
	.synopsis = "[TASK... | FILE... | DIR]",
	.summary = "Tell whether the record is what was written: the first bad line of each file.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.exit_status = "0 all that could be verified is good; 1 something is not, or not possible "
		       "here (inside of a box); 2 wrong use; 125 bawn itself failed, or signatures "
		       "could not be checked",
	.run = trace_verify,
};
