/*
 * Landlock (landlock(7), Linux 5.13): thin wrappers over the raw calls. The caller says which ABI
 * to use at the most, so that tests can force old ones. Needs no_new_privs. Negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum landlock_access {
	LANDLOCK_LIST,	     /* READ_DIR */
	LANDLOCK_READ,	     /* READ_FILE, READ_DIR, EXECUTE */
	LANDLOCK_WRITE,	     /* all that the ABI handles */
	LANDLOCK_READ_DATA,  /* READ_FILE, READ_DIR */
	LANDLOCK_WRITE_DATA, /* all but EXECUTE */
	LANDLOCK_DEVICE,     /* READ_FILE, WRITE_FILE, READ_DIR, IOCTL_DEV */
};

/* The kernel's ABI (1 and up), 0 where it has none or it is off. */
uint32_t landlock_abi(void);

/*
 * A ruleset that handles every file access of the ABI (with `files`) and, from ABI 6, scopes
 * abstract sockets and signals. -EOPNOTSUPP when nothing would be handled.
 */
int landlock_create(uint32_t abi, bool files, int *ret_ruleset_fd);

/* Allows access beneath (or to) the object of an O_PATH descriptor; is_directory as fstat says. */
int landlock_allow(int ruleset_fd, uint32_t abi, int object_fd, bool is_directory,
		   enum landlock_access access);

/* Restricts the calling thread and its future children. */
int landlock_restrict(int ruleset_fd);
