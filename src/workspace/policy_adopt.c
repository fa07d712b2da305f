#include "workspace/policy_adopt.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "policy/outline.h"
#include "workspace/policy_layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A task may have made it a link, a FIFO or anything else. */
static int open_proposal(const char *workspace)
{
	int CLEANUP_FD fd = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno :
			fd_open_beneath(fd, ADOPT_NAME,
					O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

static const char *origin_name(const char *workspace, struct arena *arena)
{
	const char *name = policy_adopted_name(workspace, arena);

	return name ? arena_format(arena, "%.*s.origin", (int)(strlen(name) - strlen(".yaml")),
				   name) :
		      NULL;
}

/* Without what the box's paths cost: names of the store hold no link of a task's. */
static const char *below(const char *store, const char *name, struct arena *arena)
{
	return store && name ? arena_format(arena, "%s/%s", store, name) : NULL;
}

static bool hash_proposal(const char *workspace, char ret_hash[static SHA256_HEX_BYTES],
			  struct arena *arena)
{
	int CLEANUP_FD fd = open_proposal(workspace);
	struct stat status;
	char *text;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    status.st_size > (off_t)OUTLINE_LIMIT_BYTES)
		return false;
	text = arena_allocate(arena, (size_t)status.st_size + 1);
	if (!text || fd_read_all(fd, text, (size_t)status.st_size) != status.st_size)
		return false;
	sha256_text(text, (size_t)status.st_size, ret_hash);
	return true;
}

enum adopt_proposal adopt_look(const char *store, const char *workspace, struct arena *arena)
{
	const char *proposal = arena_format(arena, "%s/" ADOPT_NAME, workspace), *origin;
	char hash[SHA256_HEX_BYTES], adopted[SHA256_HEX_BYTES];
	int CLEANUP_FD fd = -1;
	struct stat status;

	if (!proposal || lstat(proposal, &status) < 0)
		return ADOPT_NONE;
	origin = below(store, origin_name(workspace, arena), arena);
	fd = origin ? open(origin, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
	if (!adopt_is_kept(store, workspace, arena))
		return ADOPT_NEW;
	if (fd < 0 ||
	    fd_read_all(fd, adopted, sizeof(adopted) - 1) != (ssize_t)sizeof(adopted) - 1 ||
	    !hash_proposal(workspace, hash, arena))
		return ADOPT_CHANGED;
	return memcmp(hash, adopted, sizeof(adopted) - 1) == 0 ? ADOPT_ADOPTED : ADOPT_CHANGED;
}

int adopt_read(const struct caller *host, const char *workspace, struct arena *arena,
	       struct policy_file *ret_file, struct document_faults *faults, struct error *error)
{
	const char *path = arena_format(arena, "%s/" ADOPT_NAME, workspace);
	int CLEANUP_FD fd = open_proposal(workspace);

	faults->count = 0;
	if (!path)
		return error_errno(error, ENOMEM, "the proposal");
	if (fd == -ENOENT)
		return error_set(error, ENOENT, "%s: there is no such file, so nothing is proposed",
				 path);
	if (fd == -ELOOP || fd == -EXDEV)
		return error_set(error, ELOOP, "%s is a link; a proposal is a file", path);
	if (fd < 0)
		return error_errno(error, fd, "the proposal %s", path);
	return policy_file_take(host, fd, path, -1, arena, ret_file, faults, error);
}

bool adopt_is_kept(const char *store, const char *workspace, struct arena *arena)
{
	const char *path = below(store, policy_adopted_name(workspace, arena), arena);
	struct stat status;

	return path && lstat(path, &status) == 0;
}

/* Makes what lacks of it: the store is made where somebody needs it first. */
static int make_store(const char *store, struct arena *arena, struct error *error)
{
	const char *projects = below(store, "projects", arena);
	const char *const paths[] = { path_parent(arena, store), store, projects };
	struct stat status;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (!paths[i] || (mkdir(paths[i], 0700) < 0 && errno != EEXIST))
			return error_errno(error, paths[i] ? errno : ENOMEM, "making %s",
					   paths[i] ? paths[i] : store);
	if (lstat(projects, &status) < 0)
		return error_errno(error, errno, "%s", projects);
	if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & S_IWOTH))
		return error_set(
			error, EPERM,
			"%s must be a directory of the caller's that nobody else can write",
			projects);
	return 0;
}

/* Nobody sees half of it, and it outlasts a power cut. */
static int write_file(const char *path, const void *bytes, size_t length, struct arena *arena,
		      struct error *error)
{
	const char *draft = arena_format(arena, "%s.%d", path, (int)getpid());
	const char *folder = path_parent(arena, path);
	int CLEANUP_FD folder_fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int CLEANUP_FD fd = -1;
	int result;

	if (!draft || folder_fd < 0)
		return error_errno(error, draft && folder ? errno : ENOMEM, "writing %s", path);
	(void)unlink(draft);
	fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_errno(error, errno, "writing %s", draft);
	result = fd_write_all(fd, bytes, length);
	if (result == 0 && (fsync(fd) < 0 || rename(draft, path) < 0 || fsync(folder_fd) < 0))
		result = -errno;
	if (result < 0)
		(void)unlink(draft);
	return result < 0 ? error_errno(error, result, "writing %s", path) : 0;
}

int adopt_keep(const char *store, const char *workspace, const struct policy_file *file,
	       struct arena *arena, struct error *error)
{
	const char *path = below(store, policy_adopted_name(workspace, arena), arena);
	const char *origin = below(store, origin_name(workspace, arena), arena), *text;
	char hash[SHA256_HEX_BYTES];
	int result;

	sha256_text(file->text, file->length, hash);
	text = arena_format(arena, "%s %s\n", hash, workspace);
	if (!path || !origin || !text)
		return error_errno(error, ENOMEM, "adopting the policy");
	result = make_store(store, arena, error);
	/* the policy first: one that is killed in between has changed, and was not adopted */
	if (result == 0)
		result = write_file(path, file->text, file->length, arena, error);
	if (result == 0)
		result = write_file(origin, text, strlen(text), arena, error);
	return result;
}

int adopt_drop(const char *store, const char *workspace, struct arena *arena, struct error *error)
{
	const char *path = below(store, policy_adopted_name(workspace, arena), arena);
	const char *origin = below(store, origin_name(workspace, arena), arena);

	if (!path || !origin)
		return error_errno(error, ENOMEM, "dropping the policy");
	if (unlink(path) < 0)
		return error_errno(error, errno, "dropping %s", path);
	if (unlink(origin) < 0 && errno != ENOENT)
		return error_errno(error, errno, "dropping %s", origin);
	return 0;
}
