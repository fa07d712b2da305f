/*
 * The blobs of the control protocol. What is decoded is within its limits, and encoded again it is
 * the input, byte for byte: no blob has two meanings. What is refused is refused by a known code
 * and leaves the result alone. The first byte of the input chooses the request of an EXEC, the
 * answer to a STATUS (whose JSON is read too), a list of names as the codec has them, or a note.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/path.h"
#include "base/utf8.h"
#include "ipc/codec.h"
#include "ipc/control.h"
#include "ipc/info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAMES_LIMIT 64
#define NAME_BYTES 256

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool is_known(int code)
{
	return code == -EBADMSG || code == -EPROTONOSUPPORT || code == -E2BIG || code == -ENOMEM;
}

static void require_same(const struct buffer *buffer, const uint8_t *data, size_t size)
{
	require(!buffer->failed && buffer->length == size &&
		(!size || memcmp(buffer->data, data, size) == 0));
}

/* Each has a key, and no other of the list has the same. */
static void require_meta(const char *const *meta, size_t count)
{
	require(count <= CONTROL_LIMIT_META && !meta[count]);
	for (size_t i = 0; i < count; i++) {
		size_t key = strcspn(meta[i], "=");

		require(key && key <= CONTROL_LIMIT_META_KEY_BYTES && meta[i][key] == '=' &&
			strlen(meta[i]) <= CONTROL_LIMIT_META_BYTES);
		for (size_t j = 0; j < i; j++)
			require(strncmp(meta[i], meta[j], key + 1) != 0);
	}
}

static void check_note(const uint8_t *data, size_t size)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER again = { 0 };
	struct control_note note, untouched;
	struct error error = ERROR_NONE;
	int result;

	memset(&note, 0x5a, sizeof(note));
	memcpy(&untouched, &note, sizeof(note));
	result = control_decode_note(data, size, &arena, &note);
	if (result < 0) {
		require(is_known(result) && memcmp(&note, &untouched, sizeof(note)) == 0);
		return;
	}
	require(note.text[0] && strlen(note.text) <= CONTROL_LIMIT_NOTE_BYTES);
	require_meta(note.meta, note.meta_count);
	require(control_encode_note(&note, &again, &error) == 0);
	require_same(&again, data, size);
}

static void check_request(const uint8_t *data, size_t size)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER again = { 0 };
	struct control_request request, untouched;
	struct error error = ERROR_NONE;
	int result;

	memset(&request, 0x5a, sizeof(request));
	memcpy(&untouched, &request, sizeof(request));
	result = control_decode(data, size, &arena, &request);
	if (result < 0) {
		require(is_known(result) && memcmp(&request, &untouched, sizeof(request)) == 0);
		return;
	}
	require(request.argc && request.argc <= CONTROL_LIMIT_ARGUMENTS &&
		!request.argv[request.argc]);
	require(request.variable_count <= CONTROL_LIMIT_VARIABLES &&
		!request.variables[request.variable_count]);
	require(strlen(request.cwd) < PATH_LIMIT_BYTES);
	require(!(request.flags & ~(uint32_t)CONTROL_FLAGS) && request.timeout_ns <= INT64_MAX);
	for (size_t i = 0; i < request.argc; i++)
		require(strlen(request.argv[i]) < CONTROL_LIMIT_STRING_BYTES);
	for (size_t i = 0; i < request.variable_count; i++)
		require(strchr(request.variables[i], '=') > request.variables[i]);
	require_meta(request.meta, request.meta_count);
	require(control_encode(&request, &again, &error) == 0);
	require_same(&again, data, size);
}

/* The whole text is UTF-8 without a control, as a person's terminal or another program gets it. */
static void check_json(const struct info *info)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct json writer;

	json_begin(&writer, &text);
	info_json(info, &writer, NULL);
	require(!text.failed && text.length && text.data[0] == '{');
	for (size_t at = 0; at < text.length;) {
		uint32_t point = 0;
		size_t step = utf8_decode(text.data + at, text.length - at, &point);

		require(step && point >= 0x20 && point != 0x7f);
		at += step;
	}
}

static void check_info(const uint8_t *data, size_t size)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER again = { 0 };
	struct info info, untouched;
	int result;

	memset(&info, 0x5a, sizeof(info));
	memcpy(&untouched, &info, sizeof(info));
	result = info_decode(data, size, &arena, &info);
	if (result < 0) {
		require(is_known(result) && memcmp(&info, &untouched, sizeof(info)) == 0);
		return;
	}
	require(info.limit_count <= INFO_LIMIT_LIMITS &&
		info.process_count <= INFO_LIMIT_PROCESSES &&
		info.action_count <= INFO_LIMIT_ACTIONS);
	require(info_mode_name(info.mode) && info_state_name(info.state));
	for (size_t i = 0; i < info.action_count; i++)
		require(info.actions[i].argc <= INFO_LIMIT_ARGUMENTS &&
			!info.actions[i].argv[info.actions[i].argc]);
	check_json(&info);
	info_encode(&info, &again);
	require_same(&again, data, size);
}

/* A failure stays the first one, and nothing is read after it. */
static void check_cursor(const uint8_t *data, size_t size)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER again = { 0 };
	struct codec_cursor cursor;
	const char *const *names;
	size_t count;
	uint64_t number;
	uint32_t word;
	int result;

	codec_begin(&cursor, data, size, &arena);
	number = codec_u64(&cursor);
	word = codec_enum(&cursor, 3);
	require(word < 3);
	count = codec_count(&cursor, NAMES_LIMIT, 5);
	require(count <= NAMES_LIMIT && count * 5 <= size);
	names = codec_strings(&cursor, count, NAME_BYTES);
	require((names != NULL) == !cursor.failure);
	result = cursor.failure;
	if (!result)
		result = codec_end(&cursor);
	if (result < 0) {
		require(is_known(result) && codec_u32(&cursor) == 0 && codec_u64(&cursor) == 0);
		require(!codec_string(&cursor, NAME_BYTES)[0] && !codec_count(&cursor, 1, 1));
		require(!codec_array(&cursor, 1, 1) && codec_end(&cursor) == result);
		return;
	}
	codec_put_u64(&again, number);
	codec_put_u32(&again, word);
	codec_put_u32(&again, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		require(strlen(names[i]) < NAME_BYTES);
		codec_put_string(&again, names[i]);
	}
	require_same(&again, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 4) {
	case 0:
		check_request(data + 1, size - 1);
		break;
	case 1:
		check_info(data + 1, size - 1);
		break;
	case 2:
		check_cursor(data + 1, size - 1);
		break;
	default:
		check_note(data + 1, size - 1);
	}
	return 0;
}
