#include "workspace/git_ref.h"

#include "base/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "refs/"
#define PREFIX_LENGTH 5
#define SYMBOLIC "ref:"
#define SYMBOLIC_LENGTH 4

static bool is_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

size_t git_ref_id_length(const char *bytes, size_t length)
{
	size_t digits = 0;

	while (digits < length && digits <= 64 && is_digit(bytes[digits]))
		digits++;
	return digits == 40 || digits == 64 ? digits : 0;
}

static bool is_component(const char *at, size_t length)
{
	static const char lock[] = ".lock";

	if (!length || at[0] == '.' || at[length - 1] == '.')
		return false;
	if (length >= 5 && memcmp(at + length - 5, lock, 5) == 0)
		return false;
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)at[i];

		if (c <= ' ' || c == 0x7f || strchr("~^:?*[\\", c))
			return false;
		if (i + 1 < length &&
		    ((c == '.' && at[i + 1] == '.') || (c == '@' && at[i + 1] == '{')))
			return false;
	}
	return true;
}

bool git_ref_is_name(const char *name, size_t length)
{
	size_t at = PREFIX_LENGTH;

	if (length <= PREFIX_LENGTH || length >= GIT_REF_LIMIT_BYTES ||
	    memcmp(name, PREFIX, PREFIX_LENGTH) != 0)
		return false;
	while (at <= length) {
		const char *slash = memchr(name + at, '/', length - at);
		size_t end = slash ? (size_t)(slash - name) : length;

		if (!is_component(name + at, end - at))
			return false;
		at = end + 1;
	}
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

const char *git_ref_value(struct arena *arena, const char *bytes, size_t length,
			  bool may_be_symbolic)
{
	size_t digits, at = SYMBOLIC_LENGTH;

	if (length > GIT_REF_LIMIT_BYTES)
		return NULL;
	while (length && is_space(bytes[length - 1]))
		length--;
	digits = git_ref_id_length(bytes, length);
	if (digits)
		return digits == length ? arena_copy_bytes(arena, bytes, length) : NULL;
	if (!may_be_symbolic || length < SYMBOLIC_LENGTH ||
	    memcmp(bytes, SYMBOLIC, SYMBOLIC_LENGTH) != 0)
		return NULL;
	while (at < length && is_space(bytes[at]))
		at++;
	if (!git_ref_is_name(bytes + at, length - at))
		return NULL;
	return arena_format(arena, "ref: %.*s", (int)(length - at), bytes + at);
}

/* The line that begins at `at`, without its end; the next one begins behind that. */
static size_t line_length(const char *bytes, size_t length, size_t at)
{
	const char *end = memchr(bytes + at, '\n', length - at);

	return end ? (size_t)(end - bytes) - at : length - at;
}

bool git_ref_is_list(const char *bytes, size_t length, bool may_have_text)
{
	for (size_t at = 0; at < length;) {
		size_t line = line_length(bytes, length, at);
		size_t digits = git_ref_id_length(bytes + at, line);

		if (!digits || memchr(bytes + at, '\0', line))
			return false;
		if (digits < line && !(may_have_text && is_space(bytes[at + digits])))
			return false;
		at += line + 1;
	}
	return true;
}

bool git_ref_is_log(const char *bytes, size_t length)
{
	for (size_t at = 0; at < length;) {
		size_t line = line_length(bytes, length, at);
		size_t digits = git_ref_id_length(bytes + at, line);

		if (!digits || line < 2 * digits + 2 || bytes[at + digits] != ' ' ||
		    git_ref_id_length(bytes + at + digits + 1, line - digits - 1) != digits ||
		    bytes[at + 2 * digits + 1] != ' ' || memchr(bytes + at, '\0', line) ||
		    at + line == length)
			return false;
		at += line + 1;
	}
	return true;
}

static int add_ref(struct arena *arena, struct git_packed *packed, size_t at, size_t line)
{
	const char *bytes = packed->bytes + at;
	size_t digits = git_ref_id_length(bytes, line);
	struct git_packed_ref *ref;

	if (!digits || line < digits + 2 || bytes[digits] != ' ' ||
	    !git_ref_is_name(bytes + digits + 1, line - digits - 1))
		return -EBADMSG;
	ref = arena_push(arena, packed->refs, packed->count, sizeof(*ref));
	if (!ref)
		return -ENOMEM;
	packed->refs = ref;
	ref += packed->count++;
	*ref = (struct git_packed_ref){
		.name = arena_copy_bytes(arena, bytes + digits + 1, line - digits - 1),
		.id = bytes,
		.id_length = digits,
		.begin = at,
		.end = at + line + 1,
	};
	return ref->name ? 0 : -ENOMEM;
}

static int by_name(const void *a, const void *b)
{
	const struct git_packed_ref *left = a, *right = b;

	return strcmp(left->name, right->name);
}

/* git writes them sorted; what is not is made so, and a name twice is nobody's. */
static int sort(struct git_packed *packed)
{
	bool is_sorted = true;

	for (size_t i = 1; i < packed->count; i++)
		is_sorted &= by_name(&packed->refs[i - 1], &packed->refs[i]) < 0;
	if (is_sorted)
		return 0;
	qsort(packed->refs, packed->count, sizeof(packed->refs[0]), by_name);
	for (size_t i = 1; i < packed->count; i++)
		if (by_name(&packed->refs[i - 1], &packed->refs[i]) == 0)
			return -EBADMSG;
	return 0;
}

/* "^" and an id: what the tag on the line before leads to. */
static int add_peeled(struct git_packed *packed, size_t at, size_t line)
{
	if (!packed->count || line < 2 ||
	    git_ref_id_length(packed->bytes + at + 1, line - 1) != line - 1)
		return -EBADMSG;
	packed->refs[packed->count - 1].end = at + line + 1;
	return 0;
}

int git_packed_parse(struct arena *arena, const char *bytes, size_t length,
		     struct git_packed *ret_packed)
{
	struct git_packed packed = { .bytes = bytes, .length = length };
	int result = 0;

	if (length && bytes[length - 1] != '\n')
		return -EBADMSG;
	for (size_t at = 0; result == 0 && at < length;) {
		size_t line = line_length(bytes, length, at);

		if (bytes[at] == '^')
			result = add_peeled(&packed, at, line);
		else if (bytes[at] != '#')
			result = add_ref(arena, &packed, at, line);
		else if (at || memchr(bytes, '\0', line))
			result = -EBADMSG;
		at += line + 1;
	}
	if (result == 0)
		result = sort(&packed);
	if (result == 0)
		*ret_packed = packed;
	return result;
}

const struct git_packed_ref *git_packed_find(const struct git_packed *packed, const char *name)
{
	struct git_packed_ref key = { .name = name };

	return packed->count ? bsearch(&key, packed->refs, packed->count, sizeof(key), by_name) :
			       NULL;
}
