#include "kernel/landlock.h"

#include "kernel/compat.h"

#include <errno.h>
#include <unistd.h>

static const uint64_t access_abi1 = (1ULL << 13) - 1; /* EXECUTE .. MAKE_SYM */
static const uint64_t access_of_files = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
					LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
					LANDLOCK_ACCESS_FS_IOCTL_DEV;

static uint64_t handled(uint32_t abi)
{
	uint64_t access = access_abi1;

	if (abi >= 2)
		access |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		access |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= 5)
		access |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	return access;
}

uint32_t landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (uint32_t)abi;
}

int landlock_create(uint32_t abi, bool files, int *ret_ruleset_fd)
{
	struct compat_landlock_ruleset attributes = {
		.handled_access_fs = files ? handled(abi) : 0,
		.scoped = abi >= 6 ? COMPAT_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET |
					     COMPAT_LANDLOCK_SCOPE_SIGNAL :
				     0,
	};
	/* older kernels refuse a size beyond what they know with E2BIG where it is not zero */
	size_t size = abi >= 6 ? sizeof(attributes) : sizeof(uint64_t);
	long fd;

	if (!attributes.handled_access_fs && !attributes.scoped)
		return -EOPNOTSUPP;
	fd = syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
	if (fd < 0)
		return -errno;
	*ret_ruleset_fd = (int)fd;
	return 0;
}

int landlock_allow(int ruleset_fd, uint32_t abi, int object_fd, bool is_directory,
		   enum landlock_access access)
{
	static const uint64_t sets[] = {
		[LANDLOCK_LIST] = LANDLOCK_ACCESS_FS_READ_DIR,
		[LANDLOCK_READ] = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
				  LANDLOCK_ACCESS_FS_EXECUTE,
		[LANDLOCK_WRITE] = ~0ULL,
		[LANDLOCK_READ_DATA] = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
		[LANDLOCK_WRITE_DATA] = ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE,
		[LANDLOCK_DEVICE] = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				    LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_IOCTL_DEV |
				    LANDLOCK_ACCESS_FS_TRUNCATE,
	};
	struct landlock_path_beneath_attr rule = {
		.allowed_access = sets[access] & handled(abi),
		.parent_fd = object_fd,
	};

	if (!is_directory)
		rule.allowed_access &= access_of_files;
	if (syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

int landlock_restrict(int ruleset_fd)
{
	return syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0 ? -errno : 0;
}
