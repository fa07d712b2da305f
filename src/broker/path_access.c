#include "broker/path_access.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "broker/effective.h"
#include "plan/plan.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As the kernel's limit of links on one way (path_resolution(7)). */
#define LINKS_LIMIT 40

struct walk {
	const struct effective *effective;
	struct arena *arena;
	struct path_access *found;
	const char *rest; /* components that are still to come; never begins with '/' */
};

const char *path_presence_word(enum path_presence presence)
{
	static const char *const words[] = { [PATH_NOT_THERE] = "not there",
					     [PATH_THERE] = "there",
					     [PATH_NOT_KNOWN] = "not known" };

	return words[presence];
}

/* What stands behind "/proc/PID", or behind that of a thread; NULL: the path is none of these. */
static const char *below_process(const char *path)
{
	static const char proc[] = "/proc/", task[] = "/task/";
	const char *name = path + sizeof(proc) - 1;

	/* process 1 of a box lets nobody follow its links */
	if (strncmp(path, proc, sizeof(proc) - 1) != 0 || strncmp(name, "1/", 2) == 0)
		return NULL;
	name += strcspn(name, "/");
	/* those of a thread */
	if (strncmp(name, task, sizeof(task) - 1) == 0) {
		name += sizeof(task) - 1;
		name += strcspn(name, "/");
	}
	return name;
}

const char *path_process_link(const char *path, const char *cwd)
{
	const char *name = below_process(path);

	if (name && strcmp(name, "/root") == 0)
		return "/";
	return name && strcmp(name, "/cwd") == 0 ? cwd : NULL;
}

/* Links to what a process has open, has mapped, or is: no policy says where they lead. */
static bool is_link_of_its_own(const char *path)
{
	static const char *const folders[] = { "/fd/", "/map_files/", "/ns/" };
	const char *name = below_process(path);

	for (size_t i = 0; name && i < sizeof(folders) / sizeof(folders[0]); i++)
		if (strncmp(name, folders[i], strlen(folders[i])) == 0)
			return true;
	return name && strcmp(name, "/exe") == 0;
}

static const char *kind_of(mode_t mode)
{
	return S_ISREG(mode)  ? "file" :
	       S_ISDIR(mode)  ? "directory" :
	       S_ISLNK(mode)  ? "link" :
	       S_ISFIFO(mode) ? "fifo" :
	       S_ISSOCK(mode) ? "socket" :
				"device";
}

/* Where the row's path lies on the host; NULL: it is not the host's. */
static const char *source_of(struct walk *walk, const struct access *access, const char *path)
{
	const struct view_path *row = access->row;
	const char *below;

	if (!row || row->class == PATH_HIDE || row->class == PATH_LINK || row->class == PATH_FILE ||
	    !row->source[0] || access->way == ACCESS_EMPTY)
		return NULL;
	below = path_below(path, row->target);
	return below[0] ? arena_format(walk->arena, "%s/%s", row->source[1] ? row->source : "",
				       below) :
			  row->source;
}

/* Presence and kind; the descriptor where there is one, or -1. */
static int look(struct walk *walk, const char *source, struct stat *ret_status)
{
	struct path_access *found = walk->found;
	int CLEANUP_FD fd =
		fd_open_resolved(AT_FDCWD, source, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);

	if (fd < 0 || fstat(fd, ret_status) < 0) {
		/* the own layer of a cache may have what the host has not */
		bool may_be = (fd < 0 && fd != -ENOENT && fd != -ENOTDIR) ||
			      found->access.way == ACCESS_CACHE;

		found->presence = may_be ? PATH_NOT_KNOWN : PATH_NOT_THERE;
		return -1;
	}
	found->presence = PATH_THERE;
	found->kind = kind_of(ret_status->st_mode);
	return TAKE_FD(fd);
}

/* Whether the caller's files appear as the task's there, as a root caller's plan may have it. */
static bool is_mapped(const struct walk *walk, const struct view_path *row)
{
	const struct plan *plan = &walk->effective->plan;

	for (size_t i = 0; i < plan->count; i++)
		if ((plan->ops[i].kind == PLAN_BIND || plan->ops[i].kind == PLAN_OVERLAY) &&
		    plan->ops[i].flags & PLAN_IDMAP &&
		    strcmp(plan->ops[i].target, row->target) == 0)
			return true;
	return false;
}

/* An ordinary caller's task has the caller's id; a root caller's one that owns nothing else. */
static bool modes_let(const struct walk *walk, int fd, int what)
{
	const struct caller *host = &walk->effective->host;
	struct stat status;
	unsigned bits;

	/* whether the host's file system is read-only is not the question */
	if (!host->root)
		return faccessat(fd, "", what, AT_EACCESS | AT_EMPTY_PATH) == 0 || errno != EACCES;
	if (fstat(fd, &status) < 0)
		return true;
	bits = status.st_mode & 07;
	if (is_mapped(walk, walk->found->access.row)) {
		if (status.st_uid == host->uid)
			bits = status.st_mode >> 6 & 07;
		else if (status.st_gid == host->gid)
			bits = status.st_mode >> 3 & 07;
	}
	return bits & (what == R_OK ? 04u : 02u);
}

static void ask_modes(struct walk *walk, int fd)
{
	struct path_access *found = walk->found;
	bool reads, writes;

	if (fd < 0 || !found->access.row || found->access.row->class == PATH_COPY ||
	    found->access.row->class == PATH_DEVICE)
		return;
	/* what is not there yet has no mode to be read by */
	reads = found->presence == PATH_NOT_THERE || modes_let(walk, fd, R_OK);
	writes = modes_let(walk, fd, W_OK);
	if ((found->reads && !reads) || (found->writes && !writes))
		found->refusal = found->reads && !reads ? found->writes && !writes ?
							  "reading and writing" :
							  "reading" :
							  "writing";
	found->reads = found->reads && reads;
	found->writes = found->writes && writes;
}

static int refuse(struct walk *walk, int code, const char *why, struct error *error)
{
	return error_set(error, -code, "the path %.200s: %s", walk->found->asked, why);
}

/* Goes on at what the link says. */
static int follow(struct walk *walk, const char *text, struct error *error)
{
	struct path_access *found = walk->found;
	const char **grown =
		arena_push(walk->arena, found->links, found->link_count, sizeof(*grown));
	const char *line = arena_format(walk->arena, "%s -> %s", found->path, text);

	if (!grown || !line)
		return error_errno(error, ENOMEM, "following a link");
	found->links = grown;
	grown[found->link_count++] = line;
	if (found->link_count > LINKS_LIMIT)
		return refuse(walk, -ELOOP, "links lead to links", error);
	found->path = text[0] == '/' ? "/" : path_parent(walk->arena, found->path);
	walk->rest = walk->rest[0] ? arena_format(walk->arena, "%s/%s", text, walk->rest) : text;
	walk->rest = walk->rest ? walk->rest + strspn(walk->rest, "/") : NULL;
	if (!walk->rest || !found->path)
		return error_errno(error, ENOMEM, "following a link");
	return strlen(walk->rest) < PATH_LIMIT_BYTES ?
		       0 :
		       refuse(walk, -ENAMETOOLONG, "longer than a path can be", error);
}

/* What stands at found->path. 1: a link was followed. */
static int look_here(struct walk *walk, struct error *error)
{
	struct path_access *found = walk->found;
	const struct policy *policy = &walk->effective->policy;
	const char *link = path_process_link(found->path, policy->cwd);
	char target[PATH_LIMIT_BYTES];
	struct stat status;
	ssize_t length;
	int CLEANUP_FD fd = -1;

	if (link)
		return follow(walk, link, error) < 0 ? error->code : 1;
	if (is_link_of_its_own(found->path))
		return refuse(walk, -EINVAL,
			      "it leads to what a process has open or is, which no policy says; "
			      "ask for the path of that",
			      error);
	found->access = access_find(policy, &walk->effective->plan, found->path);
	found->reads = access_reads(found->access.way);
	found->writes = access_writes(found->access.way);
	found->kind = found->source = found->refusal = NULL;
	if (found->access.way == ACCESS_LINK)
		return follow(walk, found->access.row->source, error) < 0 ? error->code : 1;
	found->source = source_of(walk, &found->access, found->path);
	if (!found->source) {
		bool is_made = found->access.way == ACCESS_MADE ||
			       found->access.way == ACCESS_SEALED ||
			       found->access.way == ACCESS_DIRECTORY;

		/* an area is empty, but for what leads on to other rows */
		found->presence = is_made ? PATH_THERE :
				  found->access.way == ACCESS_ABSENT ||
						  found->access.way == ACCESS_HIDDEN ||
						  found->access.way == ACCESS_HIDDEN_OWN ?
					    PATH_NOT_THERE :
					    PATH_NOT_KNOWN;
		found->kind = found->access.way == ACCESS_DIRECTORY ? "directory" :
			      found->access.way == ACCESS_MADE	    ? "file" :
								      NULL;
		return 0;
	}
	fd = look(walk, found->source, &status);
	if (fd >= 0 && S_ISLNK(status.st_mode)) {
		length = readlinkat(fd, "", target, sizeof(target));
		if (length <= 0 || length == sizeof(target))
			return refuse(walk, -EINVAL, "a link that cannot be read", error);
		target[length] = '\0';
		return follow(walk, arena_copy(walk->arena, target), error) < 0 ? error->code : 1;
	}
	/* what is made is made in its directory */
	if (fd < 0 && found->presence == PATH_NOT_THERE) {
		const char *above = path_parent(walk->arena, found->source);

		fd = above ? fd_open_resolved(AT_FDCWD, above, O_PATH | O_NOFOLLOW,
					      RESOLVE_NO_SYMLINKS) :
			     -1;
	}
	ask_modes(walk, fd);
	return 0;
}

/* Below what is there and is no directory there is nothing, and nothing can be made. */
static void end_at_file(struct walk *walk)
{
	struct path_access *found = walk->found;

	if (found->presence != PATH_THERE || !found->kind || strcmp(found->kind, "directory") == 0)
		return;
	found->presence = PATH_NOT_THERE;
	found->kind = found->refusal = NULL;
	found->reads = found->writes = false;
	walk->rest = "";
}

/* Takes the next component; ".." leads up from where the links before it have led to. */
static int step(struct walk *walk, struct error *error)
{
	struct path_access *found = walk->found;
	size_t length = strcspn(walk->rest, "/");
	const char *name = arena_copy_bytes(walk->arena, walk->rest, length);
	bool is_directory = walk->rest[length] == '/';
	int result;

	walk->rest += length;
	walk->rest += strspn(walk->rest, "/");
	if (!name)
		return error_errno(error, ENOMEM, "looking at a path");
	if (!length || strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0)
		found->path = path_parent(walk->arena, found->path);
	else
		found->path =
			arena_format(walk->arena, "%s/%s", found->path[1] ? found->path : "", name);
	if (!found->path)
		return error_errno(error, ENOMEM, "looking at a path");
	if (strlen(found->path) >= PATH_LIMIT_BYTES)
		return refuse(walk, -ENAMETOOLONG, "longer than a path can be", error);
	result = look_here(walk, error);
	if (result == 0 && is_directory)
		end_at_file(walk);
	return result;
}

int path_access_find(const struct effective *effective, const char *asked, struct arena *arena,
		     struct path_access *ret, struct error *error)
{
	const struct policy *policy = &effective->policy;
	struct path_access found = { .asked = asked, .path = "/" };
	struct walk walk = { .effective = effective, .arena = arena, .found = &found };
	const char *whole = asked;
	int result = 0;

	if (!asked[0] || strlen(asked) >= PATH_LIMIT_BYTES)
		return refuse(&walk, -EINVAL, asked[0] ? "longer than a path can be" : "is empty",
			      error);
	if (asked[0] == '~' && (!asked[1] || asked[1] == '/'))
		whole = arena_format(arena, "%s%s", policy->home, asked + 1);
	else if (asked[0] != '/')
		whole = arena_format(arena, "%s/%s", policy->cwd, asked);
	if (!whole)
		return error_errno(error, ENOMEM, "looking at a path");
	walk.rest = whole + strspn(whole, "/");
	result = look_here(&walk, error);
	while (result >= 0 && walk.rest && walk.rest[0]) {
		/* what stands below a name that is nothing is nothing, but where the view has it */
		result = step(&walk, error);
	}
	if (result < 0)
		return result;
	/* links have led on from there */
	if (whole[strlen(whole) - 1] == '/')
		end_at_file(&walk);
	*ret = found;
	return 0;
}
