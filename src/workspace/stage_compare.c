#include "workspace/stage_internal.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BLOCK_BYTES 65536u
/* Finding a hole costs about as much as reading as many bytes. */
#define SEEK_COST_BYTES 4096u

#define OVERLAY_PREFIX "user.overlay."
/* What a task sets on names of that prefix itself, the kernel keeps behind it (Linux 6.7). */
#define OVERLAY_ESCAPED "user.overlay.overlay."

const char *stage_reason(int code)
{
	switch (-code) {
	case EACCES:
	case EPERM:
		return "it cannot be read";
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case ESTALE:
	case EAGAIN:
		return "it changed meanwhile";
	case EXDEV:
		return "a mount of the host stands there";
	default:
		return NULL;
	}
}

int stage_open_beneath(int directory_fd, const char *path, int flags)
{
	return fd_open_resolved(directory_fd, path, flags | O_NOFOLLOW,
				RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

/* In steps that fit a system call. */
int stage_open_path(int root_fd, const char *path, int flags)
{
	int CLEANUP_FD here = -1;
	char part[PATH_MAX];

	while (strlen(path) >= sizeof(part)) {
		size_t length = sizeof(part) - 1;
		int next;

		while (length && path[length] != '/')
			length--;
		if (!length)
			return -ENAMETOOLONG;
		memcpy(part, path, length);
		part[length] = '\0';
		next = stage_open_beneath(here < 0 ? root_fd : here, part, O_PATH | O_DIRECTORY);
		if (next < 0)
			return next;
		fd_close(&here);
		here = next;
		path += length + 1;
	}
	return stage_open_beneath(here < 0 ? root_fd : here, path[0] ? path : ".", flags);
}

static enum stage_type type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return STAGE_FILE;
	case S_IFLNK:
		return STAGE_LINK;
	case S_IFDIR:
		return STAGE_DIRECTORY;
	case S_IFIFO:
		return STAGE_FIFO;
	case S_IFSOCK:
		return STAGE_SOCKET;
	case S_IFCHR:
		return STAGE_CHARACTER;
	default:
		return STAGE_BLOCK;
	}
}

int stage_object_at(int directory_fd, const char *name, struct stage_object *ret_object)
{
	struct stage_object object = { .directory_fd = directory_fd, .name = name };
	struct statx status;

	if (directory_fd >= 0 && statx(directory_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
				       STATX_BASIC_STATS, &status) == 0) {
		object.side = (struct stage_side){ .type = type_of(status.stx_mode),
						   .mode = status.stx_mode & 07777,
						   .size = status.stx_size };
		object.links = status.stx_nlink;
		object.major = status.stx_rdev_major;
		object.minor = status.stx_rdev_minor;
		object.is_mount = status.stx_attributes & STATX_ATTR_MOUNT_ROOT;
		object.is_whiteout = object.side.type == STAGE_CHARACTER && !object.major &&
				     !object.minor;
	} else if (directory_fd >= 0 && errno != ENOENT) {
		return -errno;
	}
	*ret_object = object;
	return 0;
}

/*
 * Attributes are read by name through our own descriptor's link in /proc, so that nothing need be
 * opened: an object without rights, a FIFO.
 */
static void attribute_path(const struct stage_object *object, char path[static PATH_MAX])
{
	(void)snprintf(path, PATH_MAX, "/proc/self/fd/%d/%s", object->directory_fd, object->name);
}

char stage_opaque(int directory_fd)
{
	char value[2] = "";

	return fgetxattr(directory_fd, OVERLAY_PREFIX "opaque", value, sizeof(value)) == 1 ?
		       value[0] :
		       '\0';
}

bool stage_is_marked_whiteout(const struct stage_object *object)
{
	char path[PATH_MAX];

	attribute_path(object, path);
	return object->side.type == STAGE_FILE && !object->side.size &&
	       lgetxattr(path, OVERLAY_PREFIX "whiteout", NULL, 0) >= 0;
}

/* ---- contents ---- */

static int open_object(int directory_fd, const char *name)
{
	int CLEANUP_FD fd =
		stage_open_beneath(directory_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd < 0)
		return fd == -ENXIO ? -ESTALE : fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	return S_ISREG(status.st_mode) ? TAKE_FD(fd) : -ESTALE;
}

/* Where data begins and ends from here on: all of it, where the file system knows no holes. */
static void next_data(int fd, uint64_t at, uint64_t size, uint64_t *ret_start, uint64_t *ret_end)
{
	off_t start = lseek(fd, (off_t)at, SEEK_DATA), end;

	*ret_start = start < 0 ? (errno == ENXIO ? size : at) : (uint64_t)start;
	end = lseek(fd, (off_t)*ret_start, SEEK_HOLE);
	*ret_end = end < 0 || (uint64_t)end > size ? size : (uint64_t)end;
}

static ssize_t read_at(int fd, char *block, size_t length, uint64_t at)
{
	ssize_t count;

	do
		count = pread(fd, block, length, (off_t)at);
	while (count < 0 && errno == EINTR);
	return count < 0 ? -errno : count;
}

/* 1: the same; 0: not; negative errno: not known. */
static int compare_files(int before_fd, int after_fd, uint64_t size)
{
	char before[BLOCK_BYTES], after[BLOCK_BYTES];
	uint64_t at = 0, spent = 0;

	while (at < size) {
		uint64_t start[2], end[2], stop;
		ssize_t count[2];
		size_t length;

		next_data(before_fd, at, size, &start[0], &end[0]);
		next_data(after_fd, at, size, &start[1], &end[1]);
		at = start[0] < start[1] ? start[0] : start[1];
		/* the longer of two data ranges that overlap, the first of two that do not */
		stop = start[0] == start[1] ? (end[0] > end[1] ? end[0] : end[1]) :
					      (start[0] < start[1] ? end[0] : end[1]);
		length = stop - at < BLOCK_BYTES ? (size_t)(stop - at) : BLOCK_BYTES;
		if (!length)
			break;
		spent += length + SEEK_COST_BYTES;
		if (spent > STAGE_LIMIT_COMPARE_BYTES)
			return -EFBIG;
		count[0] = read_at(before_fd, before, length, at);
		count[1] = read_at(after_fd, after, length, at);
		if (count[0] < 0 || count[1] < 0)
			return count[0] < 0 ? (int)count[0] : (int)count[1];
		if (count[0] != count[1] || memcmp(before, after, (size_t)count[0]) != 0)
			return 0;
		if (!count[0])
			return -ESTALE;
		at += (uint64_t)count[0];
	}
	return 1;
}

static bool is_same_file(const struct stage_object *before, const struct stage_object *after,
			 const char **ret_unread)
{
	int CLEANUP_FD before_fd = -1;
	int CLEANUP_FD after_fd = -1;
	int result;

	if (before->side.size != after->side.size)
		return false;
	before_fd = open_object(before->directory_fd, before->name);
	after_fd = open_object(after->directory_fd, after->name);
	if (before_fd < 0 || after_fd < 0)
		result = before_fd < 0 ? before_fd : after_fd;
	else
		result = compare_files(before_fd, after_fd, after->side.size);
	if (result < 0) {
		const char *reason = stage_reason(result);

		*ret_unread = result == -EFBIG ? "it is too large to be compared" :
			      reason	       ? reason :
						 "reading it failed";
	}
	return result == 1;
}

static int read_link(int directory_fd, const char *name, char target[static PATH_MAX])
{
	ssize_t length = readlinkat(directory_fd, name, target, PATH_MAX - 1);

	if (length < 0)
		return -errno;
	target[length] = '\0';
	return (int)length;
}

bool stage_is_same_content(const struct stage_object *before, const struct stage_object *after,
			   const char **ret_unread)
{
	char old[PATH_MAX], new[PATH_MAX];

	if (after->side.type == STAGE_FILE)
		return is_same_file(before, after, ret_unread);
	if (after->side.type != STAGE_LINK)
		return before->major == after->major && before->minor == after->minor;
	if (read_link(before->directory_fd, before->name, old) < 0 ||
	    read_link(after->directory_fd, after->name, new) < 0) {
		*ret_unread = "it changed meanwhile";
		return false;
	}
	return strcmp(old, new) == 0;
}

int stage_open_file(int root_fd, const char *path)
{
	const char *slash = strrchr(path, '/');
	int CLEANUP_FD parent = -1;
	char *directory;

	if (!slash)
		return open_object(root_fd, path);
	directory = strndup(path, (size_t)(slash - path));
	if (!directory)
		return -ENOMEM;
	parent = stage_open_path(root_fd, directory, O_PATH | O_DIRECTORY);
	free(directory);
	return parent < 0 ? parent : open_object(parent, slash + 1);
}

int stage_open(const struct stage_change *change, enum stage_which which)
{
	const struct stage_side *side = which == STAGE_BEFORE ? &change->before : &change->after;

	if (side->type != STAGE_FILE)
		return -EINVAL;
	if (which == STAGE_AFTER)
		return open_object(change->after_fd, change->name);
	return change->from ? stage_open_file(change->lower_fd, change->from) :
			      open_object(change->before_fd, change->name);
}

int stage_link(const struct stage_change *change, enum stage_which which,
	       char ret_target[static PATH_MAX])
{
	const struct stage_side *side = which == STAGE_BEFORE ? &change->before : &change->after;

	if (side->type != STAGE_LINK)
		return -EINVAL;
	return read_link(which == STAGE_BEFORE ? change->before_fd : change->after_fd, change->name,
			 ret_target);
}

/* ---- attributes ---- */

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Labels are the host's policy's and follow from where a file lies. */
static bool is_ignored(const char *name)
{
	static const char *const labels[] = { "security.selinux", "security.ima", "security.evm",
					      "security.SMACK64" };

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (strcmp(name, labels[i]) == 0)
			return true;
	return begins_with(name, OVERLAY_PREFIX) && !begins_with(name, OVERLAY_ESCAPED);
}

static unsigned mark_of(const char *name)
{
	if (strcmp(name, "security.capability") == 0)
		return STAGE_MARK_CAPABILITY;
	return begins_with(name, "system.posix_acl_") ? STAGE_MARK_ACL : STAGE_MARK_ATTRIBUTE;
}

struct attributes {
	char path[PATH_MAX];
	char *names, *value; /* of STAGE_NAMES_BYTES and STAGE_VALUE_BYTES */
	ssize_t length;
	bool is_there;
};

static int list_attributes(const struct stage_object *object, char *memory,
			   struct attributes *attributes)
{
	attributes->names = memory;
	attributes->value = memory + STAGE_NAMES_BYTES;
	attributes->length = 0;
	attributes->is_there = object->side.type != STAGE_NONE && !object->is_mount;
	if (!attributes->is_there)
		return 0;
	attribute_path(object, attributes->path);
	attributes->length = llistxattr(attributes->path, attributes->names, STAGE_NAMES_BYTES - 1);
	if (attributes->length >= 0)
		return 0;
	attributes->length = 0;
	return errno == ENOTSUP || errno == ENOENT ? 0 : -errno;
}

static bool has_same(const struct attributes *a, const struct attributes *b, const char *name)
{
	ssize_t length = lgetxattr(a->path, name, a->value, STAGE_VALUE_BYTES);

	return length >= 0 && b->is_there &&
	       lgetxattr(b->path, name, b->value, STAGE_VALUE_BYTES) == length &&
	       memcmp(a->value, b->value, (size_t)length) == 0;
}

/* Marks for what `a` has and `b` has not in the same way. */
static unsigned difference(const struct attributes *a, const struct attributes *b)
{
	const char *end = a->names + a->length;
	unsigned marks = 0;

	for (const char *name = a->names; name < end; name += strlen(name) + 1)
		if (!is_ignored(name) && !has_same(a, b, name))
			marks |= mark_of(name);
	return marks;
}

/* With "userxattr" the kernel neither makes nor follows these (Documentation, overlayfs.rst). */
static bool has_foreign_marks(const struct attributes *attributes)
{
	const char *end = attributes->names + attributes->length;

	for (const char *name = attributes->names; name < end; name += strlen(name) + 1)
		if (strcmp(name, OVERLAY_PREFIX "redirect") == 0 ||
		    strcmp(name, OVERLAY_PREFIX "metacopy") == 0)
			return true;
	return false;
}

int stage_compare_attributes(const struct stage_object *before, const struct stage_object *after,
			     char *buffer, unsigned *ret_marks)
{
	struct attributes old, new;
	int result = list_attributes(after, buffer, &new);

	if (result == 0)
		result = list_attributes(before, buffer + STAGE_ATTRIBUTE_BYTES / 2, &old);
	if (result < 0) {
		/* more names than there can be, or no right to see them: worth a look */
		*ret_marks = STAGE_MARK_ATTRIBUTE;
		return 0;
	}
	if (has_foreign_marks(&new))
		return -EUCLEAN;
	*ret_marks = difference(&new, &old);
	if (old.is_there && new.is_there)
		*ret_marks |= difference(&old, &new);
	return 0;
}

/* ---- words ---- */

const char *stage_kind_name(enum stage_kind kind)
{
	static const char *const names[STAGE_KIND_COUNT] = { "created",	 "modified", "removed",
							     "replaced", "mode",     "renamed",
							     "unread" };

	return names[kind];
}

const char *stage_type_name(enum stage_type type)
{
	static const char *const names[STAGE_TYPE_COUNT] = { "none",	  "file", "link",
							     "directory", "fifo", "socket",
							     "character", "block" };

	return names[type];
}

const char *stage_mark_name(unsigned index)
{
	static const char *const names[STAGE_MARK_COUNT] = {
		"executable", "executed-later", "set-id",     "file-capability", "acl",
		"attributes", "hard-linked",	"credential", "binary",		 "partly-read",
	};

	return names[index];
}
