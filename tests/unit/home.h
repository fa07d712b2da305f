/*
 * Temporary trees for tests: made below the system's temporary directory, removed whole, hostile
 * modes and depths included.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "policy/policy.h"
#include "workspace/host.h"

struct fixture {
	char root[64]; /* has home/, work/ and state/ */
	char home[80], work[80], state[80];
	int state_fd;
	struct arena arena;
	struct caller host;
	struct policy policy;
};

/* Gives the full path, and makes the directories that lead to it. */
static inline void make_way(const struct fixture *fixture, const char *path, char name[static 4096])
{
	snprintf(name, 4096, "%s/%s", fixture->root, path);
	for (char *slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(name, 0755);
		*slash = '/';
	}
}

/* A file with this text, or a directory where it is NULL. */
static inline void make(const struct fixture *fixture, const char *path, const char *text)
{
	char name[4096];
	int fd;

	make_way(fixture, path, name);
	if (!text) {
		if (mkdir(name, 0755) < 0 && errno != EEXIST)
			abort();
		return;
	}
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	close(fd);
}

static inline void make_link(const struct fixture *fixture, const char *path, const char *text)
{
	char name[4096];

	make_way(fixture, path, name);
	(void)unlink(name);
	if (symlink(text, name) < 0)
		abort();
}

static inline struct fixture *fixture_new(void)
{
	static char text[] = "/tmp/bawn-test-XXXXXX";
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	char path[sizeof(text)];
	char real[64];

	memcpy(path, text, sizeof(text));
	if (!fixture || !mkdtemp(path))
		abort();
	snprintf(real, sizeof(real), "%s", path);
	memcpy(fixture->root, real, sizeof(real));
	snprintf(fixture->home, sizeof(fixture->home), "%s/home", fixture->root);
	snprintf(fixture->work, sizeof(fixture->work), "%s/work", fixture->root);
	snprintf(fixture->state, sizeof(fixture->state), "%s/state", fixture->root);
	make(fixture, "home", NULL);
	make(fixture, "work", NULL);
	make(fixture, "state", NULL);
	fixture->state_fd = open(fixture->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fixture->host = (struct caller){ .uid = geteuid(),
					 .gid = getegid(),
					 .user = "user",
					 .home = fixture->home,
					 .shell = "/bin/sh",
					 .known = true };
	fixture->policy = (struct policy){ .home = fixture->home, .workspace = fixture->work };
	return fixture;
}

static inline int fixture_remove_one(const char *path, const struct stat *status, int type,
				     struct FTW *place)
{
	(void)status, (void)type, (void)place;
	return remove(path);
}

static inline int fixture_open_one(const char *path, const struct stat *status, int type,
				   struct FTW *place)
{
	(void)place;
	if (type == FTW_D || type == FTW_DNR)
		(void)chmod(path, 0700);
	(void)status;
	return 0;
}

static inline void fixture_free(struct fixture *fixture)
{
	close(fixture->state_fd);
	arena_free(&fixture->arena);
	(void)nftw(fixture->root, fixture_open_one, 32, FTW_PHYS);
	if (nftw(fixture->root, fixture_remove_one, 32, FTW_DEPTH | FTW_PHYS) != 0)
		abort();
	free(fixture);
}

/* The row of a class at a path below the fixture's root; NULL for none. */
static inline const struct view_path *row_at(const struct fixture *fixture, enum path_class class,
					     const char *path)
{
	const struct view *view = &fixture->policy.view;
	char name[4096];

	snprintf(name, sizeof(name), "%s/%s", fixture->root, path);
	for (size_t i = 0; i < view->count; i++)
		if (view->paths[i].class == class && strcmp(view->paths[i].target, name) == 0)
			return &view->paths[i];
	return NULL;
}
