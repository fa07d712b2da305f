#include "broker/connector.h"

#include "base/directory.h"
#include "base/fd.h"
#include "isolate/box.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* "socket:[" and a number */
#define LINK_BYTES 40
/* PID/task/TID */
#define TASK_BYTES 48

struct search {
	const struct box *box;
	uint64_t network; /* the box's namespace */
	uint64_t outside; /* our own */
	char wanted[LINK_BYTES];
	struct connector found;
	unsigned holders;
	unsigned looks;		    /* that are left */
	bool is_unclear, is_hidden; /* as a process is that does not let itself be looked at */
};

/* An action is hidden until its exec: that long it is waited for, and so often. */
#define HIDDEN_NS (2L * 1000 * 1000)
#define HIDDEN_TRIES 3

/* Takes one look of those that are left. */
static bool may_look(struct search *search)
{
	if (!search->looks)
		return false;
	search->looks--;
	return true;
}

static uint64_t inode_of(const struct box *box, const char *task, const char *name)
{
	char path[TASK_BYTES + 16];
	struct stat status;

	(void)snprintf(path, sizeof(path), "%s/ns/%s", task, name);
	return fstatat(box->proc_fd, path, &status, 0) < 0 ? 0 : status.st_ino;
}

/* Whether it has ended, or is a zombie: then it has nothing open. proc(5), stat */
static bool is_over(const struct box *box, const char *task)
{
	char path[TASK_BYTES + 8], text[256];
	const char *state;
	ssize_t length;
	int CLEANUP_FD fd = -1;

	(void)snprintf(path, sizeof(path), "%s/stat", task);
	fd = openat(box->proc_fd, path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (length < 0)
		return true;
	text[length] = '\0';
	state = strrchr(text, ')');
	return state && (state[2] == 'Z' || state[2] == 'X');
}

/* What lets nobody look at it may have it: a program can want that (prctl(2), DUMPABLE). */
static bool holds(struct search *search, const char *task)
{
	struct directory CLEANUP_DIRECTORY directory;
	char path[TASK_BYTES + 8];
	const char *name;

	int opened;

	(void)snprintf(path, sizeof(path), "%s/fd", task);
	opened = directory_open(&directory, search->box->proc_fd, path, 0);
	while (may_look(search) && (name = directory_next(&directory))) {
		char text[LINK_BYTES];
		ssize_t length = readlinkat(directory.fd, name, text, sizeof(text) - 1);

		if (length <= 0) {
			search->is_hidden |= errno == EACCES;
			continue;
		}
		text[length] = '\0';
		if (strcmp(text, search->wanted) == 0)
			return true;
	}
	if ((opened < 0 || directory.code < 0) && !is_over(search->box, task))
		search->is_hidden = true;
	return false;
}

/* A program that another takes the place of meanwhile is not the one that connected. */
static void look_at(struct search *search, const char *task)
{
	struct connector one = { 0 };
	struct stat status;
	char path[TASK_BYTES + 8];

	if (inode_of(search->box, task, "net") != search->network || !holds(search, task))
		return;
	(void)snprintf(path, sizeof(path), "%s/exe", task);
	if (fstatat(search->box->proc_fd, path, &status, 0) < 0 || !holds(search, task)) {
		search->is_unclear = true;
		return;
	}
	one.device = status.st_dev;
	one.inode = status.st_ino;
	one.family = inode_of(search->box, task, "uts");
	if (!search->holders++) {
		search->found = one;
		return;
	}
	if (one.device != search->found.device || one.inode != search->found.inode)
		search->found.device = search->found.inode = 0;
	search->is_unclear |= one.family != search->found.family;
}

/*
 * Others are in our own network, or somebody else's; a leader that has ended is in none. Process 1
 * and the zygote are ours, and let nobody look at them.
 */
static bool may_be_inside(const struct search *search, long pid)
{
	char process[TASK_BYTES];
	uint64_t network;

	if (pid == search->box->init.pid || pid == search->box->zygote.process.pid)
		return false;
	(void)snprintf(process, sizeof(process), "%ld", pid);
	network = inode_of(search->box, process, "net");
	return network ? network != search->outside : errno != EACCES;
}

/* A thread can have a table of descriptors of its own (unshare(2), CLONE_FILES). */
static void look_at_threads(struct search *search, long pid)
{
	struct directory CLEANUP_DIRECTORY directory;
	char path[TASK_BYTES];
	const char *name;
	long first = 0;

	(void)snprintf(path, sizeof(path), "%ld/task", pid);
	(void)directory_open(&directory, search->box->proc_fd, path, 0);
	while (may_look(search) && (name = directory_next(&directory))) {
		long thread = strtol(name, NULL, 10);

		if (first && syscall(SYS_kcmp, first, thread, KCMP_FILES, 0, 0) == 0)
			continue;
		first = first ? first : thread;
		(void)snprintf(path, sizeof(path), "%ld/task/%ld", pid, thread);
		look_at(search, path);
	}
}

static int look_through(struct search *search)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;

	search->holders = 0;
	search->is_unclear = search->is_hidden = false;
	(void)directory_open(&directory, search->box->proc_fd, ".", 0);
	while (search->network && may_look(search) && (name = directory_next(&directory))) {
		char *end;
		long pid = strtol(name, &end, 10);

		if (pid > 0 && !*end && may_be_inside(search, pid))
			look_at_threads(search, pid);
	}
	if (!search->looks)
		return -E2BIG;
	return search->holders && !search->is_unclear && directory.code == 0 ? 0 : -ENOENT;
}

int connector_find(const struct box *box, const struct sockets_end *here,
		   const struct sockets_end *there, struct connector *ret_connector)
{
	const struct timespec moment = { .tv_nsec = HIDDEN_NS };
	struct search search = { .box = box, .looks = CONNECTOR_LOOKS };
	char task[TASK_BYTES];
	uint64_t inode = 0;
	int result = sockets_find(box->capture.diag, here, there, &inode);

	if (result < 0)
		return result;
	(void)snprintf(task, sizeof(task), "%ld", (long)box->init.pid);
	search.network = inode_of(box, task, "net");
	search.outside = inode_of(box, "self", "net");
	(void)snprintf(search.wanted, sizeof(search.wanted), "socket:[%llu]",
		       (unsigned long long)inode);
	result = look_through(&search);
	for (int i = 1; result == 0 && search.is_hidden && i < HIDDEN_TRIES; i++) {
		(void)nanosleep(&moment, NULL);
		result = look_through(&search);
	}
	if (result < 0 || search.is_hidden)
		return result < 0 ? result : -ENOENT;
	*ret_connector = search.found;
	return 0;
}
