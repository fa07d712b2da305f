/*
 * What is applied leaves the stage. A directory that hides all of the host's ("opaque") would then
 * say that what was applied is removed; so it is made one that hides by name first, with a whiteout
 * for each of the host's names that it has not. What is done is never undone by a kill: whiteouts
 * come first, then the marks below, then its own goes.
 */
#include "workspace/stage_apply_internal.h"

#include "base/directory.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OPAQUE "user.overlay.opaque"

/* One name of the host's directory, below an opaque one. */
static int hide_by_name(int upper_fd, int lower_fd, const char *name)
{
	struct stage_object upper, lower;
	int CLEANUP_FD below = -1;
	int result = stage_object_at(upper_fd, name, &upper);

	if (result < 0)
		return result;
	result = stage_object_at(lower_fd, name, &lower);
	if (result < 0 || lower.side.type == STAGE_NONE)
		return result;
	if (upper.side.type == STAGE_NONE)
		return mknodat(upper_fd, name, S_IFCHR, makedev(0, 0)) < 0 ? -errno : 0;
	if (upper.side.type != STAGE_DIRECTORY || lower.side.type != STAGE_DIRECTORY)
		return 0;
	below = stage_open_beneath(upper_fd, name, O_RDONLY | O_DIRECTORY);
	if (below < 0)
		return below;
	return fsetxattr(below, OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
}

static int open_up(int upper_fd, int lower_fd)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	int result = 0;

	directory_begin(&directory, -1);
	if (lower_fd >= 0)
		result = directory_open(&directory, lower_fd, ".", 0);
	while (result == 0 && (name = directory_next(&directory)))
		result = hide_by_name(upper_fd, lower_fd, name);
	if (result == 0)
		result = directory.code;
	if (result == 0 && fremovexattr(upper_fd, OPAQUE) < 0)
		result = -errno;
	return result;
}

/*
 * Every directory on the way, from the top. None of the way before is opaque any more, so that
 * those which are on both are not looked at again: the cost of a deep tree would grow with its
 * depth cubed.
 */
static int open_up_way(struct stage_writer *writer, char *way)
{
	const struct stage_kept *kept = writer->kept;
	size_t length = strlen(way), at = 0;

	if (writer->has_opened)
		at = stage_common_length(writer->opened, way, length) + 1;
	for (; at <= length; at++) {
		int CLEANUP_FD upper = -1, CLEANUP_FD lower = -1;
		char saved = way[at];
		int result = 0;

		if (at && saved != '/' && saved != '\0')
			continue;
		way[at] = '\0';
		upper = stage_open_path(kept->upper_fd, way, O_RDONLY | O_DIRECTORY);
		if (upper >= 0 && stage_opaque(upper) == 'y') {
			lower = stage_open_path(kept->workspace_fd, way, O_RDONLY | O_DIRECTORY);
			result = lower == -ENOENT || lower == -ENOTDIR || lower >= 0 ?
					 open_up(upper, lower) :
					 lower;
		}
		way[at] = saved;
		if (upper < 0)
			return upper;
		if (result < 0)
			return result;
	}
	memcpy(writer->opened, way, length + 1);
	writer->has_opened = true;
	return 0;
}

void stage_prune(struct stage_writer *writer, const struct stage_item *item)
{
	struct stage_object object;
	const char *name;
	int CLEANUP_FD fd =
		stage_open_parent(writer->kept->upper_fd, item->path, writer->parent, &name);

	/* nothing of it is there where a directory above hides all */
	if (fd < 0 || open_up_way(writer, writer->parent) < 0 ||
	    stage_object_at(fd, name, &object) < 0)
		return;
	/* directories stay: they say nothing by themselves */
	if (object.side.type != STAGE_NONE && object.side.type != STAGE_DIRECTORY)
		(void)unlinkat(fd, name, 0);
}
