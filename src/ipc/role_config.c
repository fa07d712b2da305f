/* What roles themselves need of ipc/role.h. */
#include "ipc/role.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int role_config(const void *bytes, size_t length)
{
	int CLEANUP_FD fd = memfd_create("bawn-config", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int result;

	if (fd < 0)
		return -errno;
	result = fd_write_all(fd, bytes, length);
	if (result < 0)
		return result;
	if (lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return TAKE_FD(fd);
}
