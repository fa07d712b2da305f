#include "workspace/policy_layers.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "workspace/host.h"
#include "workspace/policy_way.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STORE "/.config/bawn"
/*
 * What managed policies say is kept where root alone writes: from their own state directory those
 * whom they bind could have a start believe anything.
 */
#define MANAGED_CACHE "/var/cache/bawn"
#define USER "policy.yaml"

struct loader {
	const struct caller *host;
	int state_fd, managed_fd; /* where what was read is kept; -1: nowhere */
	struct arena *arena;
	struct policy_layers *layers;
	struct document_faults *faults;
	struct error *error;
};

int policy_layers_add(struct policy_layers *layers, enum authority authority,
		      const struct policy_stack *stack, struct arena *arena, struct error *error)
{
	struct policy_layer *grown =
		arena_push(arena, layers->rows, layers->count, sizeof(*layers->rows));
	size_t at = layers->count;

	if (!grown)
		return error_errno(error, ENOMEM, "the layers of policy");
	layers->rows = grown;
	layers->count++;
	for (; at > 0 && grown[at - 1].authority > authority; at--)
		grown[at] = grown[at - 1];
	grown[at] = (struct policy_layer){ authority, *stack };
	return 0;
}

static int cache_for(const struct loader *loader, enum authority authority)
{
	return authority == AUTHORITY_MANAGED ? loader->managed_fd : loader->state_fd;
}

/* With the preset that it goes on from, which is not to be believed from elsewhere either. */
static int add_file(struct loader *loader, enum authority authority, const struct policy_file *file)
{
	struct policy_stack stack;
	int result = policy_stack_make(loader->host, file, NULL, cache_for(loader, authority),
				       loader->arena, &stack, loader->error);

	return result == 0 ? policy_layers_add(loader->layers, authority, &stack, loader->arena,
					       loader->error) :
			     result;
}

/* Root's, and written by nobody else. */
static int check_managed(const struct stat *status, const char *path, struct error *error)
{
	if (status->st_uid != 0)
		return error_set(error, EPERM,
				 "%s belongs to uid %u and not to root, so it binds nobody and "
				 "nothing starts; chown root it",
				 path, status->st_uid);
	if ((status->st_mode & S_IWOTH) || ((status->st_mode & S_IWGRP) && status->st_gid != 0))
		return error_set(error, EPERM,
				 "%s can be written by others than root, so nothing starts; "
				 "chmod go-w it",
				 path);
	return 0;
}

static int load_managed_file(struct loader *loader, int folder_fd, const char *name)
{
	const char *path = arena_format(loader->arena, POLICY_MANAGED "/%s", name);
	int CLEANUP_FD fd = fd_open_beneath(folder_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct policy_file file;
	struct stat status;
	int result;

	if (!path)
		return error_errno(loader->error, ENOMEM, "the managed policies");
	if (fd == -ELOOP)
		return error_set(loader->error, ELOOP,
				 "the managed policy %s is a link; a file itself must be there",
				 path);
	if (fd < 0 || fstat(fd, &status) < 0)
		return error_errno(loader->error, fd < 0 ? fd : errno, "the managed policy %s",
				   path);
	result = check_managed(&status, path, loader->error);
	if (result == 0)
		result = policy_file_take(loader->host, fd, path, loader->managed_fd, loader->arena,
					  &file, loader->faults, loader->error);
	if (result == 0)
		result = add_file(loader, AUTHORITY_MANAGED, &file);
	return result < 0 ? error_context(loader->error, "managed policy, without which nothing "
							 "starts") :
			    0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool ends_in(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);

	return length > tail && strcmp(name + length - tail, end) == 0;
}

/* Names beginning with a dot, and what editors and packages leave beside a file, are none. */
static int list_managed(struct loader *loader, int folder_fd, const char **names, size_t *ret_count)
{
	struct directory CLEANUP_DIRECTORY directory;
	size_t count = 0;
	const char *name;

	(void)directory_open(&directory, folder_fd, ".", 0);
	while ((name = directory_next(&directory))) {
		if (name[0] != '.' && ends_in(name, ".yml"))
			return error_set(loader->error, EINVAL,
					 "%s/%s: managed policies end in .yaml; rename it, or it "
					 "would bind nobody",
					 POLICY_MANAGED, name);
		if (name[0] == '.' || !ends_in(name, ".yaml"))
			continue;
		if (count == POLICY_LIMIT_MANAGED)
			return error_set(loader->error, E2BIG,
					 "%s holds more than %u policies, so nothing starts",
					 POLICY_MANAGED, POLICY_LIMIT_MANAGED);
		names[count] = arena_copy(loader->arena, name);
		if (!names[count++])
			return error_errno(loader->error, ENOMEM, "the managed policies");
	}
	if (directory.code < 0)
		return error_errno(loader->error, directory.code, "reading %s", POLICY_MANAGED);
	qsort(names, count, sizeof(*names), compare_names);
	*ret_count = count;
	return 0;
}

static bool is_roots_alone(int fd, const char *path)
{
	struct stat status;

	return (path[0] ? fstatat(fd, path, &status, 0) : fstat(fd, &status)) == 0 &&
	       status.st_uid == 0 && !(status.st_mode & S_IWOTH) &&
	       (!(status.st_mode & S_IWGRP) || status.st_gid == 0);
}

/* Made by root's own starts; -1 where it is not there, or not root's alone. */
static int open_managed_cache(const struct caller *host)
{
	int CLEANUP_FD fd = -1;

	if (host->root && mkdir(MANAGED_CACHE, 0700) == 0)
		(void)chmod(MANAGED_CACHE, 0755);
	fd = fd_open_resolved(AT_FDCWD, MANAGED_CACHE, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (fd < 0 || !is_roots_alone(fd, "") || !is_roots_alone(fd, ".."))
		return -1;
	return TAKE_FD(fd);
}

static int load_managed(struct loader *loader)
{
	int CLEANUP_FD fd = fd_open_resolved(AT_FDCWD, POLICY_MANAGED, O_RDONLY | O_DIRECTORY,
					     RESOLVE_NO_SYMLINKS);
	int CLEANUP_FD cache_fd = -1;
	const char *names[POLICY_LIMIT_MANAGED];
	struct stat status, above;
	size_t count = 0;
	int result;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return error_errno(loader->error, fd,
				   "the managed policies of this host in %s cannot be read, so "
				   "nothing starts",
				   POLICY_MANAGED);
	if (fstat(fd, &status) < 0 || fstatat(fd, "..", &above, 0) < 0)
		return error_errno(loader->error, errno, "looking at %s", POLICY_MANAGED);
	result = check_managed(&above, "/etc/bawn", loader->error);
	if (result == 0)
		result = check_managed(&status, POLICY_MANAGED, loader->error);
	if (result == 0)
		result = list_managed(loader, fd, names, &count);
	cache_fd = result == 0 && count ? open_managed_cache(loader->host) : -1;
	loader->managed_fd = cache_fd;
	for (size_t i = 0; i < count && result == 0; i++)
		result = load_managed_file(loader, fd, names[i]);
	return result;
}

const char *policy_adopted_name(const char *workspace, struct arena *arena)
{
	unsigned char digest[SHA256_BYTES];
	char hash[SHA256_HEX_BYTES];
	struct sha256 state;

	sha256_begin(&state);
	sha256_update(&state, workspace, strlen(workspace));
	sha256_end(&state, digest);
	sha256_hex(digest, hash);
	return arena_format(arena, "projects/%s.yaml", hash);
}

static int load_stored(struct loader *loader, int store_fd, const char *name,
		       enum authority authority)
{
	const char *path = arena_format(loader->arena, "%s/%s", loader->layers->store, name);
	struct policy_file file;
	struct stat status;
	int result;

	if (!path)
		return error_errno(loader->error, ENOMEM, "the user's policies");
	if (fstatat(store_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : error_errno(loader->error, errno, "%s", path);
	result = policy_file_load(loader->host, path, loader->state_fd, loader->arena, &file,
				  loader->faults, loader->error);
	return result == 0 ? add_file(loader, authority, &file) : result;
}

/* Where a store leads to that is reached by links, or where it would be made. */
static int follow_store(struct loader *loader, const char *store)
{
	struct policy_layers *layers = loader->layers;
	const char *above = path_parent(loader->arena, store);
	struct git_way way;
	struct stat status;
	bool is_there = lstat(store, &status) == 0 || errno != ENOENT;
	int result;

	if (!above)
		return error_errno(loader->error, ENOMEM, "the user's policies");
	/* a link to nowhere fails: a task could make what it leads to */
	result = policy_way_find(loader->host, is_there ? store : above, loader->arena, &way,
				 loader->error);
	if (result < 0)
		return error_context(loader->error, "the user's policies");
	layers->store = is_there ? way.real : arena_format(loader->arena, "%s/bawn", way.real);
	layers->store_links = way.links;
	layers->store_link_count = way.link_count;
	return layers->store ? 0 : error_errno(loader->error, ENOMEM, "the user's policies");
}

/*
 * A home that is somebody else's and closed to the caller has no policy of the caller's: so it is
 * for root of a user namespace of one's own, whose home by the database is the host's root's.
 */
static bool is_of_another(const struct loader *loader, const char *home)
{
	struct stat status;

	return lstat(home, &status) == 0 && status.st_uid != loader->host->uid &&
	       faccessat(AT_FDCWD, home, X_OK, AT_EACCESS) < 0 && errno == EACCES;
}

/*
 * The store's real place: what a task could put there would be read by the next start, also where
 * there is no store yet.
 */
static int find_store(struct loader *loader, int *ret_fd)
{
	const char *home = loader->host->real_home, *store;
	int fd;

	if (!home)
		return 0;
	store = arena_format(loader->arena, "%s" STORE, home);
	if (!store)
		return error_errno(loader->error, ENOMEM, "the user's policies");
	loader->layers->store = store;
	fd = fd_open_resolved(AT_FDCWD, store, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (fd == -ELOOP) {
		int result = follow_store(loader, store);

		if (result < 0)
			return result;
		fd = fd_open_resolved(AT_FDCWD, loader->layers->store, O_RDONLY | O_DIRECTORY,
				      RESOLVE_NO_SYMLINKS);
	}
	if (fd == -EACCES && is_of_another(loader, home))
		return 0;
	if (fd < 0 && fd != -ENOENT)
		return error_errno(loader->error, fd, "the user's policies in %s",
				   loader->layers->store);
	*ret_fd = fd < 0 ? -1 : fd;
	return 0;
}

static int load_store(struct loader *loader, const char *workspace)
{
	int CLEANUP_FD fd = -1;
	const char *name;
	int result = find_store(loader, &fd);

	if (result < 0 || fd < 0)
		return result;
	result = load_stored(loader, fd, USER, AUTHORITY_USER);
	name = workspace ? policy_adopted_name(workspace, loader->arena) : NULL;
	if (result == 0 && name)
		result = load_stored(loader, fd, name, AUTHORITY_PROJECT);
	return result;
}

static int load_named(struct loader *loader, const struct policy_asked *asked)
{
	struct policy_stack stack;
	int result;

	if (!asked->path && !asked->preset)
		return 0;
	result = policy_stack_load(loader->host, asked->path, asked->preset, loader->state_fd,
				   loader->arena, &stack, loader->faults, loader->error);
	return result == 0 ? policy_layers_add(loader->layers, AUTHORITY_CALLER, &stack,
					       loader->arena, loader->error) :
			     result;
}

int policy_layers_join(struct policy_layers *layers, struct arena *arena, struct error *error)
{
	const struct document *documents[POLICY_LIMIT_MANAGED + AUTHORITY_COUNT];
	struct authority_conflict conflict;
	const struct document_statement *wide;
	int result;

	for (size_t i = 0; i < layers->count; i++)
		documents[i] = &layers->rows[i].stack.document;
	result = authority_join(documents, layers->count, arena, &layers->document, &conflict);
	if (result != -EPERM)
		return result < 0 ? error_errno(error, result, "the layers of policy") : 0;
	wide = conflict.statement;
	return error_set(error, EPERM,
			 "%s:%u:%u: %s%s%s allows more than \"%s\" may here: it is locked by "
			 "%s:%u",
			 wide->rule.file, wide->rule.line, wide->column,
			 document_key(wide->key)->path, wide->text[0] ? " " : "", wide->text,
			 conflict.lock->text, conflict.lock->rule.file, conflict.lock->rule.line);
}

int policy_layers_load(const struct caller *host, const struct policy_asked *asked, int state_fd,
		       struct arena *arena, struct policy_layers *ret_layers,
		       struct document_faults *faults, struct error *error)
{
	struct policy_layers layers = { 0 };
	struct loader loader = { host, state_fd, -1, arena, &layers, faults, error };
	int result;

	faults->count = 0;
	result = load_managed(&loader);
	if (result == 0)
		result = load_store(&loader, asked->workspace);
	if (result == 0)
		result = load_named(&loader, asked);
	if (result == 0)
		result = policy_layers_join(&layers, arena, error);
	if (result == 0)
		*ret_layers = layers;
	return result;
}

enum authority policy_layers_of(const struct policy_layers *layers, const char *file)
{
	for (size_t i = 0; file && i < layers->count; i++) {
		const struct policy_stack *stack = &layers->rows[i].stack;

		for (size_t j = 0; j < stack->count; j++)
			if (strcmp(stack->files[j].document.file, file) == 0)
				return layers->rows[i].authority;
	}
	return AUTHORITY_COUNT;
}
