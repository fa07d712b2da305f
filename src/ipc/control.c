#include "ipc/control.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "ipc/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A length and a NUL: what a string takes at the least. */
#define STRING_BYTES 5

static int check_strings(const char *const *strings, size_t count, const char *what,
			 struct error *error)
{
	for (size_t i = 0; i < count; i++)
		if (strnlen(strings[i], CONTROL_LIMIT_STRING_BYTES) >= CONTROL_LIMIT_STRING_BYTES)
			return error_set(error, E2BIG, "%s %zu is longer than %u bytes", what,
					 i + 1, CONTROL_LIMIT_STRING_BYTES - 1);
	return 0;
}

/* Of the variables as a supervisor takes them: a name, "=" and a value. */
static bool is_variable(const char *text)
{
	return text[0] && text[0] != '=' && strchr(text, '=');
}

/* Of the meta: a short key and a value. */
static bool is_meta(const char *text)
{
	size_t key = strcspn(text, "=");

	return key && text[key] && key <= CONTROL_LIMIT_META_KEY_BYTES;
}

/* In the record it is an object, whose members have different names. */
static bool is_repeated(const char *const *meta, size_t number)
{
	size_t length = strcspn(meta[number], "=") + 1;

	for (size_t i = 0; i < number; i++)
		if (strncmp(meta[i], meta[number], length) == 0)
			return true;
	return false;
}

static int check_meta(const char *const *meta, size_t count, struct error *error)
{
	if (count > CONTROL_LIMIT_META)
		return error_set(error, E2BIG, "more than %u meta", CONTROL_LIMIT_META);
	for (size_t i = 0; i < count; i++)
		if (strnlen(meta[i], CONTROL_LIMIT_META_BYTES + 1) > CONTROL_LIMIT_META_BYTES)
			return error_set(error, E2BIG, "meta %zu is longer than %u bytes", i + 1,
					 CONTROL_LIMIT_META_BYTES);
	return 0;
}

static int check_artifacts(const struct control_request *request, struct error *error)
{
	if (request->artifact_count > CONTROL_LIMIT_ARTIFACTS)
		return error_set(error, E2BIG, "more than %u patterns", CONTROL_LIMIT_ARTIFACTS);
	for (size_t i = 0; i < request->artifact_count; i++)
		if (strnlen(request->artifacts[i], PATH_LIMIT_BYTES) >= PATH_LIMIT_BYTES)
			return error_set(error, E2BIG, "pattern %zu is longer than %d bytes", i + 1,
					 PATH_LIMIT_BYTES - 1);
	return 0;
}

static void put_strings(struct buffer *buffer, const char *const *strings, size_t count)
{
	codec_put_u32(buffer, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		codec_put_string(buffer, strings[i]);
}

static const char *const *decode_meta(struct codec_cursor *cursor, size_t *ret_count)
{
	const char *const *meta;

	*ret_count = codec_count(cursor, CONTROL_LIMIT_META, STRING_BYTES);
	meta = codec_strings(cursor, *ret_count, CONTROL_LIMIT_META_BYTES + 1);
	for (size_t i = 0; meta && i < *ret_count; i++)
		if (!is_meta(meta[i]) || is_repeated(meta, i))
			codec_fail(cursor, -EBADMSG);
	return meta;
}

int control_encode(const struct control_request *request, struct buffer *buffer,
		   struct error *error)
{
	size_t start = buffer->length;
	int result;

	if (request->argc == 0)
		return error_set(error, EINVAL, "no command");
	if (request->argc > CONTROL_LIMIT_ARGUMENTS)
		return error_set(error, E2BIG, "more than %u arguments", CONTROL_LIMIT_ARGUMENTS);
	if (request->variable_count > CONTROL_LIMIT_VARIABLES)
		return error_set(error, E2BIG, "more than %u variables", CONTROL_LIMIT_VARIABLES);
	if (strnlen(request->cwd, PATH_LIMIT_BYTES) >= PATH_LIMIT_BYTES)
		return error_set(error, ENAMETOOLONG,
				 "the directory's path is longer than %d bytes",
				 PATH_LIMIT_BYTES - 1);
	result = check_strings(request->argv, request->argc, "argument", error);
	if (result == 0)
		result = check_strings(request->variables, request->variable_count, "variable",
				       error);
	if (result == 0)
		result = check_meta(request->meta, request->meta_count, error);
	if (result == 0)
		result = check_artifacts(request, error);
	if (result < 0)
		return result;
	codec_put_u32(buffer, CONTROL_VERSION);
	codec_put_u32(buffer, request->flags);
	codec_put_u64(buffer, request->timeout_ns);
	codec_put_u32(buffer, request->window.ws_row);
	codec_put_u32(buffer, request->window.ws_col);
	codec_put_u32(buffer, request->window.ws_xpixel);
	codec_put_u32(buffer, request->window.ws_ypixel);
	codec_put_string(buffer, request->cwd);
	put_strings(buffer, request->argv, request->argc);
	put_strings(buffer, request->variables, request->variable_count);
	put_strings(buffer, request->meta, request->meta_count);
	put_strings(buffer, request->artifacts, request->artifact_count);
	codec_put_string(buffer, request->artifact_path ? request->artifact_path : "");
	if (buffer->failed)
		return error_errno(error, ENOMEM, "making the request");
	if (buffer->length - start > CONTROL_LIMIT_REQUEST_BYTES)
		return error_set(error, E2BIG,
				 "the command and its variables are longer than %u bytes",
				 CONTROL_LIMIT_REQUEST_BYTES);
	return 0;
}

static void decode_window(struct codec_cursor *cursor, struct winsize *ret_window)
{
	ret_window->ws_row = (unsigned short)codec_enum(cursor, UINT16_MAX + 1u);
	ret_window->ws_col = (unsigned short)codec_enum(cursor, UINT16_MAX + 1u);
	ret_window->ws_xpixel = (unsigned short)codec_enum(cursor, UINT16_MAX + 1u);
	ret_window->ws_ypixel = (unsigned short)codec_enum(cursor, UINT16_MAX + 1u);
}

int control_decode(const void *bytes, size_t length, struct arena *arena,
		   struct control_request *ret_request)
{
	struct control_request request = { 0 };
	struct codec_cursor cursor;
	int result;

	if (length > CONTROL_LIMIT_REQUEST_BYTES)
		return -E2BIG;
	codec_begin(&cursor, bytes, length, arena);
	if (codec_u32(&cursor) != CONTROL_VERSION)
		codec_fail(&cursor, -EPROTONOSUPPORT);
	request.flags = codec_u32(&cursor);
	request.timeout_ns = codec_u64(&cursor);
	/* a deadline is computed from it (base/quantity.h) */
	if ((request.flags & ~(uint32_t)CONTROL_FLAGS) || request.timeout_ns > INT64_MAX)
		codec_fail(&cursor, -EBADMSG);
	decode_window(&cursor, &request.window);
	request.cwd = codec_string(&cursor, PATH_LIMIT_BYTES);
	request.argc = codec_count(&cursor, CONTROL_LIMIT_ARGUMENTS, STRING_BYTES);
	if (request.argc == 0)
		codec_fail(&cursor, -EBADMSG);
	request.argv = codec_strings(&cursor, request.argc, CONTROL_LIMIT_STRING_BYTES);
	request.variable_count = codec_count(&cursor, CONTROL_LIMIT_VARIABLES, STRING_BYTES);
	request.variables =
		codec_strings(&cursor, request.variable_count, CONTROL_LIMIT_STRING_BYTES);
	for (size_t i = 0; request.variables && i < request.variable_count; i++)
		if (!is_variable(request.variables[i]))
			codec_fail(&cursor, -EBADMSG);
	request.meta = decode_meta(&cursor, &request.meta_count);
	request.artifact_count = codec_count(&cursor, CONTROL_LIMIT_ARTIFACTS, STRING_BYTES);
	request.artifacts = codec_strings(&cursor, request.artifact_count, PATH_LIMIT_BYTES);
	request.artifact_path = codec_string(&cursor, PATH_LIMIT_BYTES);
	if (request.artifact_path && request.artifact_path[0] &&
	    !path_is_clean(request.artifact_path))
		codec_fail(&cursor, -EBADMSG);
	result = codec_end(&cursor);
	if (result == 0)
		*ret_request = request;
	return result;
}

int control_encode_note(const struct control_note *note, struct buffer *buffer, struct error *error)
{
	size_t start = buffer->length;

	if (!note->text[0])
		return error_set(error, EINVAL, "the note is empty");
	if (strnlen(note->text, CONTROL_LIMIT_NOTE_BYTES + 1) > CONTROL_LIMIT_NOTE_BYTES)
		return error_set(error, E2BIG, "the note is longer than %u bytes",
				 CONTROL_LIMIT_NOTE_BYTES);
	if (check_meta(note->meta, note->meta_count, error) < 0)
		return error->code;
	codec_put_u32(buffer, CONTROL_VERSION);
	codec_put_string(buffer, note->text);
	put_strings(buffer, note->meta, note->meta_count);
	if (buffer->failed)
		return error_errno(error, ENOMEM, "making the note");
	if (buffer->length - start > CONTROL_LIMIT_NOTE_BLOB_BYTES)
		return error_set(error, E2BIG, "the note and its meta are longer than %u bytes",
				 CONTROL_LIMIT_NOTE_BLOB_BYTES);
	return 0;
}

int control_decode_note(const void *bytes, size_t length, struct arena *arena,
			struct control_note *ret_note)
{
	struct control_note note = { 0 };
	struct codec_cursor cursor;
	int result;

	if (length > CONTROL_LIMIT_NOTE_BLOB_BYTES)
		return -E2BIG;
	codec_begin(&cursor, bytes, length, arena);
	if (codec_u32(&cursor) != CONTROL_VERSION)
		codec_fail(&cursor, -EPROTONOSUPPORT);
	note.text = codec_string(&cursor, CONTROL_LIMIT_NOTE_BYTES + 1);
	if (!note.text[0])
		codec_fail(&cursor, -EBADMSG);
	note.meta = decode_meta(&cursor, &note.meta_count);
	result = codec_end(&cursor);
	if (result == 0)
		*ret_note = note;
	return result;
}

int control_read_sealed(int fd, size_t limit_bytes, struct arena *arena, const char **ret_bytes,
			size_t *ret_length)
{
	const int wanted = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;
	size_t used = 0;
	char *bytes;

	/* what is no memfd has no seals */
	if (seals < 0 || (seals & wanted) != wanted)
		return -EBADMSG;
	if (fstat(fd, &status) < 0)
		return -errno;
	if ((uint64_t)status.st_size > limit_bytes)
		return -E2BIG;
	bytes = arena_allocate(arena, (size_t)status.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	/* by position: the other end may share the description, and move it */
	while (used < (size_t)status.st_size) {
		ssize_t count = pread(fd, bytes + used, (size_t)status.st_size - used, (off_t)used);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			return -EBADMSG;
		used += (size_t)count;
	}
	*ret_bytes = bytes;
	*ret_length = used;
	return 0;
}

bool control_is_id(const char *text, char kind)
{
	size_t length = strnlen(text, CONTROL_ID_BYTES);

	if (length < 3 || length >= CONTROL_ID_BYTES || text[0] != kind || text[1] != '-')
		return false;
	return strspn(text + 2, "abcdefghijklmnopqrstuvwxyz0123456789") == length - 2;
}
