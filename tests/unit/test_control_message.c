/* The blobs of the control protocol against every truncation and changed byte, and ids of tasks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "home.h"

#include <sys/mman.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "ipc/codec.h"
#include "ipc/role.h"

#include "control_sample.h"

static void encode_request(struct buffer *buffer)
{
	struct control_request request = some_request();
	struct error error = ERROR_NONE;

	assert_int_equal(control_encode(&request, buffer, &error), 0);
}

static void test_request(void **state)
{
	struct buffer CLEANUP_BUFFER blob = { 0 };
	struct arena CLEANUP_ARENA arena = { 0 };
	struct control_request back;

	(void)state;
	encode_request(&blob);
	assert_int_equal(control_decode(blob.data, blob.length, &arena, &back), 0);
	/* nothing of the blob is borrowed */
	memset(blob.data, 0xee, blob.length);
	assert_int_equal(back.argc, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(back.argv[i], some_argv[i]);
	assert_null(back.argv[3]);
	assert_int_equal(back.variable_count, 2);
	assert_string_equal(back.variables[1], "B=c=d");
	assert_null(back.variables[2]);
	assert_int_equal(back.meta_count, 2);
	assert_string_equal(back.meta[0], "turn=3");
	assert_string_equal(back.meta[1], "goal=");
	assert_null(back.meta[2]);
	assert_int_equal(back.artifact_count, 2);
	assert_string_equal(back.artifacts[0], "dist/**");
	assert_string_equal(back.artifacts[1], "*.log");
	assert_string_equal(back.artifact_path, "/out");
	assert_string_equal(back.cwd, "/work/dir");
	assert_int_equal(back.timeout_ns, 77);
	assert_int_equal(back.flags, CONTROL_INPUT | CONTROL_TTY);
	assert_int_equal(back.window.ws_row, 24);
	assert_int_equal(back.window.ws_col, 65535);
}

/* Decodes a copy of exactly that length, so that a sanitizer sees each byte beyond. */
static int decode(int (*decoder)(const void *, size_t, struct arena *), const char *bytes,
		  size_t length)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	char *copy = malloc(length ? length : 1);
	int result;

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	result = decoder(copy, length, &arena);
	free(copy);
	return result;
}

static int decode_request(const void *bytes, size_t length, struct arena *arena)
{
	struct control_request request;
	int result = control_decode(bytes, length, arena, &request);

	if (result == 0) {
		assert_true(request.argc > 0);
		for (size_t i = 0; i < request.argc; i++)
			assert_non_null(request.argv[i]);
		assert_null(request.argv[request.argc]);
		assert_true((request.flags & ~(uint32_t)CONTROL_FLAGS) == 0);
	}
	return result;
}

static int decode_info(const void *bytes, size_t length, struct arena *arena)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct info info;
	struct json json;
	int result = info_decode(bytes, length, arena, &info);

	if (result < 0)
		return result;
	json_begin(&json, &text);
	info_json(&info, &json, NULL);
	assert_false(text.failed);
	return 0;
}

/*
 * Any part is refused, and so is a byte more; any changed byte is refused or means another value.
 */
static void mistreat(int (*decoder)(const void *, size_t, struct arena *), struct buffer *blob)
{
	size_t length = blob->length;

	assert_int_equal(decode(decoder, blob->data, length), 0);
	for (size_t i = 0; i < length; i++)
		assert_true(decode(decoder, blob->data, i) < 0);
	for (size_t i = 0; i < length; i++) {
		char before = blob->data[i];

		for (unsigned bit = 0; bit < 8; bit++) {
			blob->data[i] = (char)(before ^ (1 << bit));
			(void)decode(decoder, blob->data, length);
		}
		blob->data[i] = (char)0xff;
		(void)decode(decoder, blob->data, length);
		blob->data[i] = before;
	}
	buffer_append(blob, "", 1);
	assert_int_equal(decode(decoder, blob->data, length + 1), -EBADMSG);
}

static void test_request_mistreated(void **state)
{
	struct buffer CLEANUP_BUFFER blob = { 0 };

	(void)state;
	encode_request(&blob);
	mistreat(decode_request, &blob);
}

static void test_request_limits(void **state)
{
	struct control_request request = some_request();
	struct buffer CLEANUP_BUFFER blob = { 0 }, text = { 0 };
	struct error error = ERROR_NONE;
	const char *argv[2] = { NULL, NULL };

	(void)state;
	for (unsigned i = 0; i < CONTROL_LIMIT_STRING_BYTES - 1; i++)
		buffer_append(&text, "x", 1);
	argv[0] = text.data;
	request.argv = argv;
	request.argc = 1;
	assert_int_equal(control_encode(&request, &blob, &error), 0);
	assert_int_equal(decode(decode_request, blob.data, blob.length), 0);
	buffer_append(&text, "x", 1);
	argv[0] = text.data;
	assert_int_equal(control_encode(&request, &blob, &error), -E2BIG);
	assert_non_null(strstr(error.message, "argument 1"));
	request.argc = 0;
	assert_int_equal(control_encode(&request, &blob, &error), -EINVAL);
	request.argc = CONTROL_LIMIT_ARGUMENTS + 1;
	assert_int_equal(control_encode(&request, &blob, &error), -E2BIG);
}

static void test_request_rules(void **state)
{
	static const char *const nameless[] = { "=b", NULL };
	static const char *const valueless[] = { "b", NULL };
	struct control_request request = some_request();
	struct buffer CLEANUP_BUFFER blob = { 0 };
	struct error error = ERROR_NONE;

	(void)state;
	request.variable_count = 1;
	request.variables = nameless;
	assert_int_equal(control_encode(&request, &blob, &error), 0);
	assert_int_equal(decode(decode_request, blob.data, blob.length), -EBADMSG);
	blob.length = 0;
	request.variables = valueless;
	assert_int_equal(control_encode(&request, &blob, &error), 0);
	assert_int_equal(decode(decode_request, blob.data, blob.length), -EBADMSG);
	/* of another build */
	blob.length = 0;
	encode_request(&blob);
	blob.data[0]++;
	assert_int_equal(decode(decode_request, blob.data, blob.length), -EPROTONOSUPPORT);
}

/* What the record would have twice, or under no name, is refused. */
static void test_meta_rules(void **state)
{
	static const char *const bad[][3] = { { "=b" }, { "b" }, { "a=1", "a=2" } };
	struct control_request request = some_request();
	struct buffer CLEANUP_BUFFER blob = { 0 };
	struct error error = ERROR_NONE;
	const char *many[CONTROL_LIMIT_META + 2] = { NULL };
	char key[CONTROL_LIMIT_META_KEY_BYTES + 3] = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		blob.length = 0;
		request.meta = bad[i];
		request.meta_count = bad[i][1] ? 2 : 1;
		assert_int_equal(control_encode(&request, &blob, &error), 0);
		assert_int_equal(decode(decode_request, blob.data, blob.length), -EBADMSG);
	}
	for (size_t length = sizeof(key) - 3; length < sizeof(key) - 1; length++) {
		memset(key, 'k', length);
		key[length] = '=';
		many[0] = key;
		blob.length = 0;
		request.meta = many;
		request.meta_count = 1;
		assert_int_equal(control_encode(&request, &blob, &error), 0);
		assert_int_equal(decode(decode_request, blob.data, blob.length),
				 length > CONTROL_LIMIT_META_KEY_BYTES ? -EBADMSG : 0);
	}
	for (size_t i = 0; i <= CONTROL_LIMIT_META; i++)
		many[i] = "a=b";
	request.meta_count = CONTROL_LIMIT_META + 1;
	assert_int_equal(control_encode(&request, &blob, &error), -E2BIG);
}

static int decode_note(const void *bytes, size_t length, struct arena *arena)
{
	struct control_note note;
	int result = control_decode_note(bytes, length, arena, &note);

	if (result == 0) {
		assert_true(note.text[0] && !note.meta[note.meta_count]);
		for (size_t i = 0; i < note.meta_count; i++)
			assert_non_null(strchr(note.meta[i], '='));
	}
	return result;
}

static void test_note_blob(void **state)
{
	struct control_note note = { .text = "odd\n\xff", .meta = some_meta, .meta_count = 2 };
	struct buffer CLEANUP_BUFFER blob = { 0 };
	struct arena CLEANUP_ARENA arena = { 0 };
	struct control_note back;
	struct error error = ERROR_NONE;

	(void)state;
	assert_int_equal(control_encode_note(&note, &blob, &error), 0);
	mistreat(decode_note, &blob);
	blob.length--;
	assert_int_equal(control_decode_note(blob.data, blob.length, &arena, &back), 0);
	memset(blob.data, 0xee, blob.length);
	assert_string_equal(back.text, "odd\n\xff");
	assert_string_equal(back.meta[1], "goal=");
	assert_null(back.meta[2]);
	blob.length = 0;
	note.text = "";
	assert_int_equal(control_encode_note(&note, &blob, &error), -EINVAL);
}

static void test_note_limits(void **state)
{
	struct buffer CLEANUP_BUFFER blob = { 0 }, text = { 0 };
	const char *meta[CONTROL_LIMIT_META];
	struct control_note note = { .meta = meta };
	struct error error = ERROR_NONE;
	char *values[CONTROL_LIMIT_META];

	(void)state;
	for (unsigned i = 0; i < CONTROL_LIMIT_NOTE_BYTES; i++)
		buffer_append(&text, "x", 1);
	note.text = text.data;
	assert_int_equal(control_encode_note(&note, &blob, &error), 0);
	assert_int_equal(decode(decode_note, blob.data, blob.length), 0);
	/* one by one they are allowed, together they are not */
	for (unsigned i = 0; i < CONTROL_LIMIT_META; i++) {
		values[i] = malloc(CONTROL_LIMIT_META_BYTES + 1);
		assert_non_null(values[i]);
		memset(values[i], 'v', CONTROL_LIMIT_META_BYTES);
		values[i][CONTROL_LIMIT_META_BYTES] = '\0';
		memcpy(values[i], (char[]){ 'k', (char)('A' + i / 8), (char)('A' + i % 8), '=' },
		       4);
		meta[i] = values[i];
	}
	blob.length = 0;
	note.meta_count = CONTROL_LIMIT_META;
	assert_int_equal(control_encode_note(&note, &blob, &error), -E2BIG);
	assert_non_null(strstr(error.message, "1048576"));
	assert_int_equal(decode(decode_note, blob.data, blob.length), -E2BIG);
	for (unsigned i = 0; i < CONTROL_LIMIT_META; i++)
		free(values[i]);
	buffer_append(&text, "x", 1);
	note.text = text.data;
	note.meta_count = 0;
	assert_int_equal(control_encode_note(&note, &blob, &error), -E2BIG);
	assert_non_null(strstr(error.message, "65536"));
}

static void test_count_takes_no_memory(void **state)
{
	struct buffer CLEANUP_BUFFER blob = { 0 };
	struct arena CLEANUP_ARENA arena = { 0 };
	struct codec_cursor cursor;

	(void)state;
	codec_put_u32(&blob, 65000);
	codec_begin(&cursor, blob.data, blob.length, &arena);
	assert_int_equal(codec_count(&cursor, 65536, 5), 0);
	assert_int_equal(codec_end(&cursor), -EBADMSG);
	assert_int_equal(arena.used_bytes, 0);
}

static void test_info(void **state)
{
	struct buffer CLEANUP_BUFFER blob = { 0 }, text = { 0 };
	struct arena CLEANUP_ARENA arena = { 0 };
	struct info back;
	struct json json;

	(void)state;
	info_encode(&some_info, &blob);
	assert_int_equal(info_decode(blob.data, blob.length, &arena, &back), 0);
	json_begin(&json, &text);
	info_json(&back, &json, NULL);
	assert_false(text.failed);
	assert_non_null(strstr(text.data, "\"frozen_by\":\"signals\""));
	assert_non_null(strstr(text.data, "\"idle_left_ns\":null"));
	assert_non_null(strstr(text.data, "\"disk\":{\"value\":null,\"usage\":null,"));
	assert_non_null(strstr(text.data, "\"command\":\"sh\\u001b[m\""));
	assert_non_null(strstr(text.data, "\"exit\":143"));
	assert_non_null(strstr(text.data, "\"process_total\":9"));
	assert_null(strstr(text.data, "\x1b"));
	mistreat(decode_info, &blob);
}

/* What a supervisor has more of than is told is left out, not refused. */
static void test_info_limits(void **state)
{
	struct buffer CLEANUP_BUFFER blob = { 0 };
	struct arena CLEANUP_ARENA arena = { 0 };
	struct info_process *many = calloc(INFO_LIMIT_PROCESSES + 1, sizeof(*many));
	struct info info = some_info, back;

	(void)state;
	assert_non_null(many);
	info.processes = many;
	info.process_count = INFO_LIMIT_PROCESSES + 1;
	info.process_total = info.process_count;
	info_encode(&info, &blob);
	assert_int_equal(info_decode(blob.data, blob.length, &arena, &back), 0);
	assert_int_equal(back.process_count, INFO_LIMIT_PROCESSES);
	assert_int_equal(back.process_total, INFO_LIMIT_PROCESSES + 1);
	free(many);
}

static void test_sealed(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	int CLEANUP_FD sealed = role_config("abc", 3);
	int CLEANUP_FD open_one = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int CLEANUP_FD file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const char *bytes;
	size_t length;
	int ends[2];

	(void)state;
	assert_int_equal(control_read_sealed(sealed, 3, &arena, &bytes, &length), 0);
	assert_int_equal(length, 3);
	assert_string_equal(bytes, "abc");
	assert_int_equal(control_read_sealed(sealed, 2, &arena, &bytes, &length), -E2BIG);
	assert_int_equal(control_read_sealed(open_one, 3, &arena, &bytes, &length), -EBADMSG);
	assert_int_equal(fcntl(open_one, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(control_read_sealed(open_one, 3, &arena, &bytes, &length), -EBADMSG);
	assert_int_equal(control_read_sealed(file, 1 << 30, &arena, &bytes, &length), -EBADMSG);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(control_read_sealed(ends[0], 3, &arena, &bytes, &length), -EBADMSG);
	close(ends[0]);
	close(ends[1]);
}

static void test_ids(void **state)
{
	(void)state;
	assert_true(control_is_id(ID, 't'));
	assert_false(control_is_id(ID, 'a'));
	assert_false(control_is_id("t-", 't'));
	assert_false(control_is_id("t-../x", 't'));
	assert_false(control_is_id("t-A", 't'));
	assert_false(control_is_id("t-aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 't'));
}

/* The runtime directory */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),	       cmocka_unit_test(test_request_mistreated),
		cmocka_unit_test(test_request_limits), cmocka_unit_test(test_request_rules),
		cmocka_unit_test(test_meta_rules),     cmocka_unit_test(test_note_blob),
		cmocka_unit_test(test_note_limits),    cmocka_unit_test(test_count_takes_no_memory),
		cmocka_unit_test(test_info),	       cmocka_unit_test(test_info_limits),
		cmocka_unit_test(test_sealed),	       cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests_name("control messages", tests, NULL, NULL);
}
