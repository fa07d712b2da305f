#include "broker/connector.h"

#include "base/directory.h"
#include "isolate/box.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "socket:[" and a number */
#define LINK_BYTES 40

struct search {
	const struct box *box;
	uint64_t network; /* the box's namespace */
	char wanted[LINK_BYTES];
	struct connector found;
	unsigned holders;
	unsigned looks; /* that are left */
	bool is_unclear;
};

/* Takes one look of those that are left. */
static bool may_look(struct search *search)
{
	if (!search->looks)
		return false;
	search->looks--;
	return true;
}

static uint64_t inode_of(const struct box *box, long pid, const char *name)
{
	char path[48];
	struct stat status;

	(void)snprintf(path, sizeof(path), "%ld/ns/%s", pid, name);
	return fstatat(box->proc_fd, path, &status, 0) < 0 ? 0 : status.st_ino;
}

static bool holds(struct search *search, long pid)
{
	struct directory CLEANUP_DIRECTORY directory;
	char path[32];
	const char *name;

	(void)snprintf(path, sizeof(path), "%ld/fd", pid);
	(void)directory_open(&directory, search->box->proc_fd, path, 0);
	while (may_look(search) && (name = directory_next(&directory))) {
		char text[LINK_BYTES];
		ssize_t length = readlinkat(directory.fd, name, text, sizeof(text) - 1);

		if (length <= 0)
			continue;
		text[length] = '\0';
		if (strcmp(text, search->wanted) == 0)
			return true;
	}
	return false;
}

/* A program that another takes the place of meanwhile is not the one that connected. */
static void look_at(struct search *search, long pid)
{
	struct connector one = { 0 };
	struct stat status;
	char path[32];

	if (inode_of(search->box, pid, "net") != search->network || !holds(search, pid))
		return;
	(void)snprintf(path, sizeof(path), "%ld/exe", pid);
	if (fstatat(search->box->proc_fd, path, &status, 0) < 0 || !holds(search, pid)) {
		search->is_unclear = true;
		return;
	}
	one.device = status.st_dev;
	one.inode = status.st_ino;
	one.family = inode_of(search->box, pid, "uts");
	if (search->holders++ && memcmp(&one, &search->found, sizeof(one)) != 0)
		search->is_unclear = true;
	search->found = one;
}

int connector_find(const struct box *box, const struct sockets_end *here,
		   const struct sockets_end *there, struct connector *ret_connector)
{
	struct directory CLEANUP_DIRECTORY directory;
	struct search search = { .box = box, .looks = CONNECTOR_LOOKS };
	uint64_t inode = 0;
	const char *name;
	int result = sockets_find(box->capture.diag, here, there, &inode);

	if (result < 0)
		return result;
	search.network = inode_of(box, box->init.pid, "net");
	(void)snprintf(search.wanted, sizeof(search.wanted), "socket:[%llu]",
		       (unsigned long long)inode);
	(void)directory_open(&directory, box->proc_fd, ".", 0);
	while (search.network && may_look(&search) && (name = directory_next(&directory))) {
		char *end;
		long pid = strtol(name, &end, 10);

		if (pid > 0 && !*end)
			look_at(&search, pid);
	}
	if (!search.looks)
		return -E2BIG;
	if (!search.holders || search.is_unclear || directory.code < 0)
		return -ENOENT;
	*ret_connector = search.found;
	return 0;
}
