#include "workspace/policy_way.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "workspace/host.h"
#include "workspace/root.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Whom the kernel shows for users that the user namespace does not have (user_namespaces(7)). */
#define OVERFLOW_ID 65534u

/* In a namespace with a few users the host's root is shown as nobody is. */
static bool is_trusted(const struct caller *host, uint32_t uid, bool above)
{
	return uid == host->uid || uid == 0 ||
	       (above && uid == OVERFLOW_ID && host->uid == 0 && !host->root);
}

/* A directory; `above`: one that holds the policy's directory and not the policy. */
static int check_directory(const struct caller *host, const char *path, const char *directory,
			   bool above, struct error *error)
{
	struct stat status;

	if (lstat(directory, &status) < 0)
		return error_errno(error, errno, "the policy %s: %s", path, directory);
	if (!is_trusted(host, status.st_uid, above))
		return error_set(error, EPERM,
				 "the policy %s lies in a directory of another user (%s, uid %u), "
				 "who could put another one there",
				 path, directory, status.st_uid);
	/* in a directory like /tmp nobody can replace what is another's */
	if (status.st_mode & S_ISVTX)
		return 0;
	if (status.st_mode & S_IWOTH)
		return error_set(error, EPERM,
				 "the policy %s lies in a directory that everybody can write; "
				 "chmod o-w %s",
				 path, directory);
	if ((status.st_mode & S_IWGRP) && status.st_gid != host->gid &&
	    !(status.st_uid == 0 && status.st_gid == 0))
		return error_set(error, EPERM,
				 "the policy %s lies in a directory that another group (gid %u) "
				 "can write; chmod g-w %s",
				 path, status.st_gid, directory);
	return 0;
}

/* All directories from the one that holds `place` up to the root. */
static int check_above(const struct caller *host, const char *path, const char *place,
		       struct arena *arena, struct error *error)
{
	const char *at = path_parent(arena, place);
	bool above = false;

	for (; at; at = path_parent(arena, at), above = true) {
		int result = check_directory(host, path, at, above, error);

		if (result < 0 || !at[1])
			return result;
	}
	return error_errno(error, ENOMEM, "the policy %s", path);
}

static int check_link(const struct caller *host, const char *path, const char *link,
		      struct arena *arena, struct error *error)
{
	struct stat status;

	if (lstat(link, &status) < 0)
		return error_errno(error, errno, "the policy %s: %s", path, link);
	if (!is_trusted(host, status.st_uid, true))
		return error_set(error, EPERM,
				 "the policy %s is reached by a link of another user (%s, uid %u), "
				 "who could lead it elsewhere",
				 path, link, status.st_uid);
	return check_above(host, path, link, arena, error);
}

int policy_way_find(const struct caller *host, const char *path, struct arena *arena,
		    struct git_way *ret_way, struct error *error)
{
	const char *here = "/";
	struct stat status;
	int result = path_is_absolute(path) ? 0 : root_resolve(".", arena, &here, error);

	if (result < 0)
		return error_context(error, "the policy file");
	result = git_way_find(arena, here, path, ret_way, &status);
	for (size_t i = 0; i < ret_way->link_count; i++) {
		int checked = check_link(host, path, ret_way->links[i], arena, error);

		if (checked < 0)
			return checked;
	}
	if (result < 0)
		return error_errno(error, result, "the policy file %s", path);
	return check_above(host, path, ret_way->real, arena, error);
}

const char *policy_way_lies_in(const char *real, const char *const *links, size_t count,
			       const char *directory)
{
	if (path_is_under(real, directory))
		return real;
	for (size_t i = 0; i < count; i++)
		if (path_is_under(links[i], directory))
			return links[i];
	return NULL;
}
