#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's sys/mount.h and linux/mount.h collide; these are the ABI's */
#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif

static int open_resolved(int directory_fd, const char *path, int flags, unsigned mode,
			 uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)flags | O_CLOEXEC,
		.mode = mode,
		.resolve = resolve,
	};
	long fd = syscall(SYS_openat2, directory_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int mount_open_in(int root_fd, const char *path, int flags)
{
	return open_resolved(root_fd, path, flags, 0,
			     RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

int mount_create_in(int root_fd, const char *path, unsigned mode)
{
	return open_resolved(root_fd, path, O_WRONLY | O_CREAT | O_EXCL, mode,
			     RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

static bool is_object(int fd, uint64_t device, uint64_t inode)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

int mount_source(const char *path, uint64_t device, uint64_t inode)
{
	int fd = open_resolved(AT_FDCWD, path, O_PATH, 0,
			       RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0 || (!device && !inode) || is_object(fd, device, inode))
		return fd;
	(void)close(fd);
	return -ESTALE;
}

static int clone_at(int directory_fd, const char *path, unsigned flags)
{
	int fd = open_tree(directory_fd, path,
			   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | flags);

	return fd < 0 ? -errno : fd;
}

int mount_clone(int source_fd, int *ret_tree_fd)
{
	int fd = clone_at(source_fd, "", AT_EMPTY_PATH);

	if (fd < 0)
		return fd;
	*ret_tree_fd = fd;
	return 0;
}

int mount_clone_path(int directory_fd, const char *path, uint64_t device, uint64_t inode,
		     int *ret_tree_fd)
{
	int fd = clone_at(directory_fd, path, AT_SYMLINK_NOFOLLOW);

	if (fd < 0)
		return fd;
	if ((device || inode) && !is_object(fd, device, inode)) {
		(void)close(fd);
		return -ESTALE;
	}
	*ret_tree_fd = fd;
	return 0;
}

static uint64_t attributes_of(unsigned flags)
{
	return MOUNT_ATTR_NOSUID | (flags & MOUNT_READ_ONLY ? MOUNT_ATTR_RDONLY : 0) |
	       (flags & MOUNT_NO_EXEC ? MOUNT_ATTR_NOEXEC : 0) |
	       (flags & MOUNT_DEVICES ? 0 : MOUNT_ATTR_NODEV);
}

int mount_restrict(int tree_fd, unsigned flags)
{
	struct mount_attr attributes = {
		.attr_set = attributes_of(flags),
		.propagation = MS_PRIVATE,
	};

	return mount_setattr(tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
			     sizeof(attributes)) < 0 ?
		       -errno :
		       0;
}

int mount_idmap(int tree_fd, int user_namespace_fd)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)user_namespace_fd,
	};

	return mount_setattr(tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
			     sizeof(attributes)) < 0 ?
		       -errno :
		       0;
}

int mount_look_anew(int fd)
{
	int context = fspick(fd, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC), result = 0;

	if (context < 0)
		return -errno;
	if (fsconfig(context, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
		result = -errno;
	(void)close(context);
	return result;
}

void mount_decode(char *text)
{
	char *out = text;

	for (; *text; out++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
		    text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
			*out = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + text[3] - '0');
			text += 4;
		} else {
			*out = *text++;
		}
	}
	*out = '\0';
}

/* The mount point of a line of mountinfo; NULL where there is none. */
static char *mount_point(char *line)
{
	char *field = NULL;

	for (size_t i = 0; i < 5 && line; i++)
		field = strsep(&line, " ");
	if (!line)
		return NULL;
	mount_decode(field);
	return field;
}

int mount_find_below(const char *path, char ret_path[static PATH_MAX])
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	size_t capacity = 0, length = strlen(path);
	char *line = NULL, *point;
	int found = 0;

	if (!file)
		return -errno;
	while (!found && getline(&line, &capacity, file) > 0) {
		point = mount_point(line);
		if (!point || strncmp(point, path, length) != 0 || point[length] != '/')
			continue;
		(void)snprintf(ret_path, PATH_MAX, "%s", point);
		found = 1;
	}
	if (!found && ferror(file))
		found = -EIO;
	free(line);
	(void)fclose(file);
	return found;
}

int mount_attach(int tree_fd, int target_fd)
{
	return move_mount(tree_fd, "", target_fd, "",
			  MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ?
		       -errno :
		       0;
}

int mount_attach_path(int tree_fd, int directory_fd, const char *path)
{
	return move_mount(tree_fd, "", directory_fd, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno :
											  0;
}

int mount_new(const char *type, const struct mount_option *options, unsigned flags,
	      int *ret_mount_fd)
{
	int context = fsopen(type, FSOPEN_CLOEXEC);
	int result = 0, mount_fd;

	if (context < 0)
		return -errno;
	for (; options->key && result == 0; options++)
		if (fsconfig(context, options->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
			     options->key, options->value, 0) < 0)
			result = -errno;
	if (result == 0 && fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		result = -errno;
	if (result == 0) {
		mount_fd = fsmount(context, FSMOUNT_CLOEXEC, (unsigned)attributes_of(flags));
		if (mount_fd < 0)
			result = -errno;
		else
			*ret_mount_fd = mount_fd;
	}
	(void)close(context);
	return result;
}
