#include "workspace/git_index.h"

#include "base/sha1.h"
#include "base/sha256.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define HEADER_BYTES 12
/* of an entry: times, device, inode, mode, owner, size; then the id and the flags */
#define STAT_BYTES 40
#define MODE_AT 24
#define FLAG_EXTENDED 0x4000u
#define FLAG_NAME 0x0fffu
#define PATH_BYTES 4096

struct cursor {
	const unsigned char *bytes;
	size_t at, end; /* end: without the checksum */
	size_t id_bytes;
	uint32_t version, left;
	const char *fault;
	/* the entry */
	uint32_t mode, flags, extended;
	const unsigned char *id;
	char path[PATH_BYTES];
	size_t path_length;
};

static uint32_t word(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool begin(struct cursor *cursor, const void *bytes, size_t length, size_t id_bytes)
{
	*cursor = (struct cursor){ .bytes = bytes, .id_bytes = id_bytes };
	if (length < HEADER_BYTES + id_bytes || memcmp(bytes, "DIRC", 4) != 0) {
		cursor->fault = "it is no index";
		return false;
	}
	cursor->version = word(cursor->bytes + 4);
	cursor->left = word(cursor->bytes + 8);
	cursor->at = HEADER_BYTES;
	cursor->end = length - id_bytes;
	if (cursor->version < 2 || cursor->version > 4)
		cursor->fault = "its version is not known";
	return !cursor->fault;
}

static size_t room(const struct cursor *cursor)
{
	return cursor->end - cursor->at;
}

/* Version 4: how many bytes of the path before are not this one's, as a pack's offsets are. */
static bool take_strip(struct cursor *cursor, size_t *ret_strip)
{
	size_t value = 0;

	for (unsigned count = 0; count < 4 && room(cursor); count++) {
		unsigned char byte = cursor->bytes[cursor->at++];

		value = (count ? (value + 1) << 7 : 0) | (byte & 0x7f);
		if (!(byte & 0x80)) {
			*ret_strip = value;
			return value <= cursor->path_length;
		}
	}
	return false;
}

/* The path, NUL-ended in the bytes; `entry` is where the entry began. */
static bool take_path(struct cursor *cursor, size_t entry)
{
	size_t keep = 0, strip = 0, length, fixed;
	const unsigned char *end;

	if (cursor->version == 4) {
		if (!take_strip(cursor, &strip))
			return false;
		keep = cursor->path_length - strip;
	}
	end = memchr(cursor->bytes + cursor->at, '\0', room(cursor));
	if (!end)
		return false;
	length = (size_t)(end - cursor->bytes) - cursor->at;
	if (keep + length >= sizeof(cursor->path))
		return false;
	memcpy(cursor->path + keep, cursor->bytes + cursor->at, length);
	cursor->path_length = keep + length;
	cursor->path[cursor->path_length] = '\0';
	if (cursor->version == 4) {
		cursor->at += length + 1;
		return true;
	}
	/* one to eight NULs, up to a multiple of eight bytes */
	fixed = cursor->at - entry + length;
	cursor->at = entry + ((fixed + 8) & ~(size_t)7);
	return cursor->at <= cursor->end;
}

static bool take_entry(struct cursor *cursor)
{
	size_t entry = cursor->at, flags_at = STAT_BYTES + cursor->id_bytes;
	const unsigned char *at = cursor->bytes + entry;

	if (room(cursor) < flags_at + 2)
		return false;
	cursor->mode = word(at + MODE_AT);
	cursor->id = at + STAT_BYTES;
	cursor->flags = (uint32_t)at[flags_at] << 8 | at[flags_at + 1];
	cursor->extended = 0;
	cursor->at += flags_at + 2;
	if (cursor->flags & FLAG_EXTENDED) {
		if (cursor->version < 3 || room(cursor) < 2)
			return false;
		cursor->extended = (uint32_t)at[flags_at + 2] << 8 | at[flags_at + 3];
		cursor->at += 2;
	}
	if (!take_path(cursor, entry))
		return false;
	if ((cursor->flags & FLAG_NAME) != FLAG_NAME &&
	    (cursor->flags & FLAG_NAME) != cursor->path_length)
		return false;
	return true;
}

static bool next(struct cursor *cursor)
{
	if (cursor->fault || !cursor->left)
		return false;
	cursor->left--;
	if (!take_entry(cursor))
		cursor->fault = "an entry is cut off";
	return !cursor->fault;
}

/* Code points that HFS+ leaves out of names: 200c-200f, 202a-202e, 206a-206f, feff. */
static size_t ignored(const char *at, size_t length)
{
	const unsigned char *c = (const unsigned char *)at;

	if (length < 3)
		return 0;
	if (c[0] == 0xe2 && c[1] == 0x80 &&
	    ((c[2] >= 0x8c && c[2] <= 0x8f) || (c[2] >= 0xaa && c[2] <= 0xae)))
		return 3;
	if (c[0] == 0xe2 && c[1] == 0x81 && c[2] >= 0xaa && c[2] <= 0xaf)
		return 3;
	return c[0] == 0xef && c[1] == 0xbb && c[2] == 0xbf ? 3 : 0;
}

/* ".git" as any file system may understand it: case, ignored code points, dots, short names. */
static bool is_git(const char *name, size_t length)
{
	char plain[8];
	size_t used = 0, at = 0;

	while (at < length && used < sizeof(plain) - 1) {
		size_t skip = ignored(name + at, length - at);

		if (!skip)
			plain[used++] = name[at];
		at += skip ? skip : 1;
	}
	plain[used] = '\0';
	if (strncasecmp(plain, "git~1", 5) == 0)
		return plain[5] == '\0' || strchr(" .:", plain[5]);
	return strncasecmp(plain, ".git", 4) == 0 &&
	       (plain[4] == '\0' || strchr(" .:\\", plain[4]));
}

static bool is_path(const char *path, size_t length)
{
	size_t at = 0;

	/* a directory of a sparse index ends with a slash */
	if (length && path[length - 1] == '/')
		length--;
	while (at <= length) {
		const char *slash = memchr(path + at, '/', length - at);
		size_t size = (slash ? (size_t)(slash - path) : length) - at;

		if (!size || (size == 1 && path[at] == '.') ||
		    (size == 2 && path[at] == '.' && path[at + 1] == '.') ||
		    is_git(path + at, size))
			return false;
		at += size + 1;
	}
	return true;
}

static bool is_mode(uint32_t mode)
{
	return mode == 0100644 || mode == 0100755 || mode == 0100664 || mode == 0120000 ||
	       mode == 0160000 || mode == 0040000;
}

/* Behind the entries; NULL at their end. */
static const char *next_extension(struct cursor *cursor, size_t *ret_length)
{
	const unsigned char *at = cursor->bytes + cursor->at;

	if (cursor->fault || !room(cursor))
		return NULL;
	if (room(cursor) < 8 || word(at + 4) > room(cursor) - 8) {
		cursor->fault = "an extension is cut off";
		return NULL;
	}
	*ret_length = word(at + 4);
	cursor->at += 8 + *ret_length;
	return (const char *)at;
}

static bool is_known(const char *extension)
{
	static const char *const names[] = {
		"TREE", "REUC", "UNTR", "FSMN", "EOIE", "IEOT", "sdir"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (memcmp(extension, names[i], 4) == 0)
			return true;
	return false;
}

/* index.skipHash leaves zeros (git 2.40). */
static bool has_checksum(const struct cursor *cursor)
{
	static const unsigned char zeros[SHA256_BYTES];
	const unsigned char *stored = cursor->bytes + cursor->end;
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;

	if (memcmp(stored, zeros, cursor->id_bytes) == 0)
		return true;
	if (cursor->id_bytes == SHA1_BYTES) {
		sha1(cursor->bytes, cursor->end, digest);
	} else {
		sha256_begin(&hash);
		sha256_update(&hash, cursor->bytes, cursor->end);
		sha256_end(&hash, digest);
	}
	return memcmp(stored, digest, cursor->id_bytes) == 0;
}

const char *git_index_fault(const void *bytes, size_t length, size_t id_bytes)
{
	struct cursor cursor;
	const char *extension;
	size_t size;

	if (!begin(&cursor, bytes, length, id_bytes))
		return cursor.fault;
	while (next(&cursor)) {
		if (!is_path(cursor.path, cursor.path_length))
			return "an entry leads into a git directory or out of the tree";
		if (!is_mode(cursor.mode))
			return "an entry has a mode that is none";
	}
	while ((extension = next_extension(&cursor, &size)))
		if (memcmp(extension, "link", 4) == 0)
			return "it is split (core.splitIndex)";
		else if (!is_known(extension))
			return "it has an extension that is not known";
	if (cursor.fault)
		return cursor.fault;
	return has_checksum(&cursor) ? NULL : "its checksum does not hold";
}

bool git_index_has(const void *bytes, size_t length, size_t id_bytes, const char *extension)
{
	struct cursor cursor;
	const char *found;
	size_t size;

	if (!begin(&cursor, bytes, length, id_bytes))
		return false;
	while (next(&cursor))
		;
	while ((found = next_extension(&cursor, &size)))
		if (memcmp(found, extension, 4) == 0)
			return true;
	return false;
}

bool git_index_is_same(const void *a, size_t a_length, const void *b, size_t b_length,
		       size_t id_bytes)
{
	struct cursor left, right;

	if (!begin(&left, a, a_length, id_bytes) || !begin(&right, b, b_length, id_bytes) ||
	    left.left != right.left)
		return false;
	while (next(&left)) {
		if (!next(&right) || left.mode != right.mode || left.flags != right.flags ||
		    left.extended != right.extended || left.path_length != right.path_length ||
		    memcmp(left.id, right.id, id_bytes) != 0 ||
		    memcmp(left.path, right.path, left.path_length) != 0)
			return false;
	}
	return !left.fault && !right.fault;
}

int git_index_lookup(const void *bytes, size_t length, size_t id_bytes, const char *path,
		     const unsigned char **ret_id)
{
	struct cursor cursor;

	if (!begin(&cursor, bytes, length, id_bytes))
		return -EBADMSG;
	while (next(&cursor))
		if (strcmp(cursor.path, path) == 0) {
			*ret_id = cursor.id;
			return 1;
		}
	return cursor.fault ? -EBADMSG : 0;
}

/* git's order of paths: by bytes, then the shorter one. */
static int order_of(const struct cursor *a, const struct cursor *b)
{
	size_t shorter = a->path_length < b->path_length ? a->path_length : b->path_length;
	int order = memcmp(a->path, b->path, shorter);

	return order ? order :
		       (a->path_length > b->path_length) - (a->path_length < b->path_length);
}

/* Of one that is only announced (git add -N) there is no content: git knows that object itself. */
static bool is_empty_blob(const struct cursor *cursor)
{
	static const unsigned char sha1_id[] = { 0xe6, 0x9d, 0xe2, 0x9b, 0xb2, 0xd1, 0xd6,
						 0x43, 0x4b, 0x8b, 0x29, 0xae, 0x77, 0x5a,
						 0xd8, 0xc2, 0xe4, 0x8c, 0x53, 0x91 };
	static const unsigned char sha256_id[] = { 0x47, 0x3a, 0x0f, 0x4c, 0x3b, 0xe8, 0xa9, 0x36,
						   0x81, 0xa2, 0x67, 0xe3, 0xb1, 0xe9, 0xa7, 0xdc,
						   0xda, 0x11, 0x85, 0x43, 0x6f, 0xe1, 0x41, 0xf7,
						   0x74, 0x91, 0x20, 0xa3, 0x03, 0x72, 0x18, 0x13 };

	return memcmp(cursor->id, cursor->id_bytes == SHA1_BYTES ? sha1_id : sha256_id,
		      cursor->id_bytes) == 0;
}

bool git_index_has_all(const void *bytes, size_t length, const void *known, size_t known_length,
		       size_t id_bytes, git_index_ask *ask, void *context)
{
	struct cursor cursor, other;
	bool has_other;

	if (!begin(&cursor, bytes, length, id_bytes))
		return false;
	has_other = known && begin(&other, known, known_length, id_bytes) && next(&other);
	while (next(&cursor)) {
		while (has_other && order_of(&other, &cursor) < 0)
			has_other = next(&other);
		if (has_other && order_of(&other, &cursor) == 0 &&
		    memcmp(other.id, cursor.id, id_bytes) == 0)
			continue;
		if ((cursor.mode & 0170000) == 0160000 || is_empty_blob(&cursor))
			continue;
		if (!ask(context, cursor.id))
			return false;
	}
	return !cursor.fault;
}
