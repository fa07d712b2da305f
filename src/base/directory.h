/*
 * Reading a directory by descriptor, without the allocation that opendir(3) makes: getdents64(2)
 * into a buffer of the caller's own. Most of a start's directories have fewer than a dozen names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIRECTORY_BUFFER_BYTES 2048

struct directory {
	int fd;		    /* owned; -1 = none */
	int code;	    /* negative errno of the read that ended it, 0 = its end was reached */
	unsigned char type; /* DT_* of the last name */
	int64_t offset;	    /* where the name behind the last one stands, for directory_seek() */
	size_t at, end;
	_Alignas(8) char bytes[DIRECTORY_BUFFER_BYTES];
};

#define CLEANUP_DIRECTORY __attribute__((cleanup(directory_end)))

/*
 * Opens `name` below parent_fd (AT_FDCWD for a path) with O_RDONLY | O_DIRECTORY and more flags.
 * Returns 0 or a negative errno; reading a directory that could not be opened gives no names.
 */
int directory_open(struct directory *directory, int parent_fd, const char *name, int flags);

/* Takes an open directory over; a negative fd is one without names. */
void directory_begin(struct directory *directory, int fd);

/* The next name but "." and "..", good until the next call; NULL at the end or on an error. */
const char *directory_next(struct directory *directory);

/* Begins again with the first name. */
void directory_rewind(struct directory *directory);

/* Goes on from an offset, 0 = the first name; good in a directory that was opened anew, too. */
void directory_seek(struct directory *directory, int64_t offset);

void directory_end(struct directory *directory);

/* Gives a directory, and nothing that a link leads to, mode 0700. False where there is none. */
bool directory_let_enter(int parent_fd, const char *name);

/* Directories that are open at once. What lies deeper is lifted to the top of the tree. */
#define DIRECTORY_REMOVE_DEPTH 16

/*
 * Removes what is below the directory and then the name itself, by descriptor, as far as it can.
 * The tree may be one that a task made: of any depth, with directories that nobody may enter (their
 * modes are changed), and with links, which are removed and not followed. Nobody else changes it
 * meanwhile.
 */
void directory_remove_tree(int parent_fd, const char *name);

/* The same, but for the name itself; its mode may be another one afterwards. */
void directory_remove_content(int parent_fd, const char *name);
