#include "workspace/git_way.h"

#include "base/arena.h"
#include "base/path.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
	struct arena *arena;
	struct git_way way;
	const char *at;	  /* clean, without links, a directory */
	const char *rest; /* what is to be walked yet */
	struct stat status;
};

static bool note_link(struct walk *walk, const char *link)
{
	const char **links =
		arena_push(walk->arena, walk->way.links, walk->way.link_count, sizeof(*links));

	if (!links)
		return false;
	walk->way.links = links;
	links[walk->way.link_count++] = link;
	return true;
}

/* The text of a link comes before what is left. */
static int follow(struct walk *walk, const char *link)
{
	char text[PATH_LIMIT_BYTES];
	ssize_t length = readlink(link, text, sizeof(text));

	if (length < 0)
		return -errno;
	if ((size_t)length + strlen(walk->rest) + 2 > PATH_LIMIT_BYTES)
		return -ENAMETOOLONG;
	if (walk->way.link_count == GIT_WAY_LIMIT_LINKS)
		return -ELOOP;
	walk->rest = arena_format(walk->arena, "%.*s/%s", (int)length, text, walk->rest);
	if (!walk->rest || !note_link(walk, link))
		return -ENOMEM;
	if (text[0] == '/')
		walk->at = "/";
	return 0;
}

/* One name of the rest; its length is given. */
static int step(struct walk *walk, size_t length)
{
	const char *name = walk->rest, *next;
	bool is_last;

	walk->rest += length;
	is_last = walk->rest[strspn(walk->rest, "/")] == '\0';
	if (length == 1 && name[0] == '.')
		return 0;
	if (length == 2 && name[0] == '.' && name[1] == '.') {
		walk->at = path_parent(walk->arena, walk->at);
		return walk->at ? 0 : -ENOMEM;
	}
	next = arena_format(walk->arena, "%s/%.*s", walk->at[1] ? walk->at : "", (int)length, name);
	if (!next)
		return -ENOMEM;
	if (strlen(next) >= PATH_LIMIT_BYTES)
		return -ENAMETOOLONG;
	if (lstat(next, &walk->status) < 0) {
		if (errno == ENOENT)
			walk->way.real = next;
		return -errno;
	}
	if (S_ISLNK(walk->status.st_mode))
		return follow(walk, next);
	if (!is_last && !S_ISDIR(walk->status.st_mode))
		return -ENOTDIR;
	walk->at = next;
	return 0;
}

int git_way_find(struct arena *arena, const char *from, const char *text, struct git_way *ret_way,
		 struct stat *ret_status)
{
	struct walk walk = { .arena = arena, .at = text[0] == '/' ? "/" : from, .rest = text };
	int result = text[0] ? 0 : -ENOENT;

	while (result == 0 && *walk.rest) {
		size_t length = strspn(walk.rest, "/");

		walk.rest += length;
		length = strcspn(walk.rest, "/");
		if (length)
			result = step(&walk, length);
	}
	if (result == 0) {
		walk.way.real = walk.at;
		/* the last step may have been ".." */
		result = lstat(walk.at, ret_status) < 0 ? -errno : 0;
	}
	*ret_way = walk.way;
	return result;
}
