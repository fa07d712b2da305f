#include "workspace/held_file.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/fd.h"
#include "base/json_read.h"
#include "base/json_tree.h"
#include "workspace/git_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int held_file_folder(int parent_fd, const char *name, bool makes)
{
	int fd = fd_open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);

	if (fd != -ENOENT || !makes)
		return fd;
	if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	return fd_open_beneath(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

int held_file_write(int folder_fd, const char *name, const struct buffer *buffer)
{
	char beside[NAME_MAX + 1];

	if (buffer->failed)
		return -ENOMEM;
	if (snprintf(beside, sizeof(beside), ".%s", name) >= (int)sizeof(beside))
		return -ENAMETOOLONG;
	return fd_replace(folder_fd, name, beside, buffer->data, buffer->length);
}

int held_file_read(int folder_fd, const char *name, size_t limit_bytes, struct arena *arena,
		   const struct json_node **ret_root)
{
	struct git_text text = { 0 };
	enum json_fault fault;
	size_t end;
	int result = git_file_read(folder_fd, name, limit_bytes, arena, &text, NULL);

	if (result == -EINVAL || result == -EFBIG)
		return -EBADMSG;
	return result < 0 ? result :
			    json_tree_read(text.bytes, text.length, JSON_READ_DEPTH, arena,
					   ret_root, &end, &fault);
}
