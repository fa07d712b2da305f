#include "kernel/capability.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Higher than any capability of any kernel so far; the loop ends at the kernel's own last one. */
#define CAPABILITY_LIMIT 128

int capability_drop_held(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int capability_drop_future(void)
{
	for (int capability = 0; capability < CAPABILITY_LIMIT; capability++) {
		if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0)
			continue;
		/* EINVAL: the first number that this kernel does not know */
		if (errno != EINVAL || capability == 0)
			return -errno;
		break;
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	if (prctl(PR_SET_SECUREBITS,
		  SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			  SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			  SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
		  0, 0, 0) < 0)
		return -errno;
	return 0;
}

int capability_drop_all(void)
{
	int result = capability_drop_future();

	return result < 0 ? result : capability_drop_held();
}
