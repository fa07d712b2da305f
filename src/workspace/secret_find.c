#include "workspace/secret_find.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "policy/policy.h"
#include "policy/secret.h"
#include "workspace/cache.h"
#include "workspace/git_file.h"
#include "workspace/git_find.h"
#include "workspace/git_index.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the state directory: what was found, by project. */
#define SECRET_KNOWN "secrets"
#define LIMIT_KNOWN_BYTES (SECRET_LIMIT_FILES * PATH_LIMIT_BYTES)
/* A tracked file that is larger is taken for one that differs. */
#define LIMIT_TRACKED_BYTES (1024u * 1024)

struct search {
	const struct git_found *git;
	struct arena *arena;  /* of what stays */
	struct arena scratch; /* indexes and contents */
	struct policy *policy;
	struct secret_found *found;
	int root_fd;
	uint32_t rule;
	size_t names, hidden;
	const char **folders; /* below the workspace; "" for itself; the arena's */
	size_t folder_count;
	struct buffer known;	  /* paths below the workspace, each NUL-ended; in the arena */
	struct git_text *indexes; /* of the git directories, where one was read */
	bool *has_index;
	struct buffer ignored; /* in the arena */
	bool no_memory;
	bool has_too_many; /* files to hide */
};

enum tracked { TRACKED_NOT, TRACKED_SAME, TRACKED_OTHER };

/* The repository whose work tree the path lies in; NULL: none that is known. */
static const struct git_directory *owner_of(const struct search *search, const char *path)
{
	const struct git_directory *best = NULL;

	for (size_t i = 0; i < search->git->count; i++) {
		const struct git_directory *item = &search->git->items[i];

		if (item->worktree && path_is_under(path, item->worktree) &&
		    (!best || strlen(item->worktree) > strlen(best->worktree)))
			best = item;
	}
	return best;
}

/*
 * True where the file lies in a repository deeper in the tree than git_find() looks. Of its owner,
 * or of the workspace where it has none, the `.git` is known.
 */
static bool is_foreign(const struct search *search, const struct git_directory *owner,
		       const char *below)
{
	const char *root = owner ? path_below(owner->worktree, search->policy->workspace) : "";
	char path[PATH_LIMIT_BYTES];

	for (const char *slash = strchr(below, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t length = (size_t)(slash - below);

		if (length <= strlen(root))
			continue;
		if (snprintf(path, sizeof(path), "%.*s/.git", (int)length, below) >=
			    (int)sizeof(path) ||
		    faccessat(search->root_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

static int read_index(struct search *search, const struct git_directory *owner,
		      struct git_text *ret_index)
{
	size_t number = (size_t)(owner - search->git->items);
	int CLEANUP_FD fd = -1;
	int result;

	if (search->has_index[number]) {
		*ret_index = search->indexes[number];
		return 0;
	}
	fd = open(owner->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	result = git_file_read(fd, "index", GIT_INDEX_LIMIT_BYTES, &search->scratch, ret_index,
			       NULL);
	if (result == 0) {
		search->indexes[number] = *ret_index;
		search->has_index[number] = true;
	}
	return result;
}

/* git's id of a file with this content: the hash with a head before it. */
static bool has_id(struct search *search, struct git_text content, const unsigned char *id,
		   size_t id_bytes)
{
	unsigned char digest[SHA256_BYTES];
	char *text = arena_allocate(&search->scratch, content.length + 32);
	size_t head;
	struct sha256 hash;

	if (!text)
		return false;
	head = (size_t)snprintf(text, 32, "blob %zu", content.length) + 1;
	memcpy(text + head, content.bytes, content.length);
	if (id_bytes == SHA1_BYTES) {
		sha1(text, head + content.length, digest);
	} else {
		sha256_begin(&hash);
		sha256_update(&hash, text, head + content.length);
		sha256_end(&hash, digest);
	}
	return memcmp(digest, id, id_bytes) == 0;
}

static enum tracked tracked_by(struct search *search, const struct git_directory *owner,
			       const char *path, const char *below)
{
	static const size_t sizes[] = { SHA1_BYTES, SHA256_BYTES };
	const unsigned char *id = NULL;
	struct git_text index, content;
	int result = read_index(search, owner, &index);

	if (result < 0)
		return result == -ENOENT ? TRACKED_NOT : TRACKED_OTHER;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		result = git_index_lookup(index.bytes, index.length, sizes[i],
					  path_below(path, owner->worktree), &id);
		if (result == 0)
			return TRACKED_NOT;
		if (result < 0)
			continue; /* ids of the other size, or damaged */
		if (git_file_read(search->root_fd, below, LIMIT_TRACKED_BYTES, &search->scratch,
				  &content, NULL) < 0)
			return TRACKED_OTHER;
		return has_id(search, content, id, sizes[i]) ? TRACKED_SAME : TRACKED_OTHER;
	}
	return TRACKED_OTHER;
}

/* A pattern of gitignore(5) for this one path. */
static void ignore(struct search *search, const struct git_directory *owner, const char *path)
{
	buffer_byte(&search->ignored, '/');
	for (const char *at = path_below(path, owner->worktree); *at; at++) {
		if (strchr("\\*?[ ", *at))
			buffer_byte(&search->ignored, '\\');
		buffer_byte(&search->ignored, *at);
	}
	buffer_byte(&search->ignored, '\n');
}

static void leave_tracked(struct search *search, const char *path)
{
	struct secret_found *found = search->found;
	const char **grown =
		arena_push(search->arena, found->tracked, found->tracked_count, sizeof(*grown));

	search->no_memory |= !grown;
	if (!grown)
		return;
	found->tracked = grown;
	grown[found->tracked_count++] = path;
}

static void hide(struct search *search, const char *path, const struct stat *status)
{
	const char *below = path_below(path, search->policy->workspace);
	const struct git_directory *owner = owner_of(search, path);
	enum tracked tracked = is_foreign(search, owner, below) ? TRACKED_OTHER :
			       owner ? tracked_by(search, owner, path, below) :
				       TRACKED_NOT;
	struct view_path row = { .class = PATH_HIDE,
				 .kind = tracked == TRACKED_NOT ? PATH_KIND_LINK : PATH_KIND_FILE,
				 .source = path,
				 .target = path,
				 .device = status->st_dev,
				 .inode = status->st_ino,
				 .rule = search->rule };

	if (tracked == TRACKED_SAME) {
		leave_tracked(search, path);
		return;
	}
	if (search->hidden == SECRET_LIMIT_FILES) {
		search->has_too_many = true;
		return;
	}
	search->hidden++;
	buffer_append(&search->known, below, strlen(below) + 1);
	search->no_memory |= !view_add(&search->policy->view, search->arena, row);
	if (tracked == TRACKED_NOT && owner && !strchr(below, '\n'))
		ignore(search, owner, path);
}

/* What no option speaks of, and is hidden by none. */
static bool is_default(const struct search *search, const char *path)
{
	const struct view_path *row = view_lookup(&search->policy->view, path);

	/* a hidden path is another row, and so is what an option shows */
	return row && row->class != PATH_HIDE &&
	       strcmp(row->target, search->policy->workspace) == 0;
}

/* What its content says where the name does not; what cannot be read is taken for one. */
static bool has_content(enum secret_content content, int fd)
{
	char bytes[SECRET_LIMIT_BYTES];
	ssize_t length;

	if (content == SECRET_ANY)
		return true;
	length = fd < 0 ? -1 : fd_read_all(fd, bytes, sizeof(bytes));
	return length < 0 || secret_is_in(content, bytes, (size_t)length);
}

/* Where a link of the workspace leads, if that is in the workspace too; else NULL. */
static const char *behind_link(const struct search *search, const char *below)
{
	int CLEANUP_FD fd = fd_open_resolved(search->root_fd, below, O_PATH, 0);
	char link[32], path[PATH_LIMIT_BYTES];
	ssize_t length;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = fd < 0 ? -1 : readlink(link, path, sizeof(path) - 1);
	if (length <= 0)
		return NULL;
	path[length] = '\0';
	return path_is_clean(path) && path_is_under(path, search->policy->workspace) ?
		       arena_copy(search->arena, path) :
		       NULL;
}

static char *join(const struct search *search, const char *folder, const char *name)
{
	return folder[0] ? arena_format(search->arena, "%s/%s", folder, name) :
			   arena_copy(search->arena, name);
}

static enum secret_content content_of(const char *below)
{
	const char *name = strrchr(below, '/'), *parent = name;
	char text[NAME_MAX + 1] = "";

	if (!name)
		return secret_of_name("", below);
	while (parent > below && parent[-1] != '/')
		parent--;
	(void)snprintf(text, sizeof(text), "%.*s", (int)(name - parent), parent);
	return secret_of_name(text, name + 1);
}

/* A path below the workspace; NULL is none. */
static void consider(struct search *search, const char *below)
{
	const char *workspace = search->policy->workspace;
	const char *path = below ? path_clean(search->arena, workspace, below) : NULL;
	enum secret_content content = path ? content_of(below) : SECRET_NONE;
	struct stat status;
	int CLEANUP_FD fd = -1;

	if (content == SECRET_NONE ||
	    fstatat(search->root_fd, below, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISLNK(status.st_mode)) {
		path = behind_link(search, below);
		if (!path || lstat(path, &status) < 0)
			return;
		below = path_below(path, workspace);
	}
	if (!S_ISREG(status.st_mode) || !status.st_size || !is_default(search, path))
		return;
	if (content != SECRET_ANY)
		fd = fd_open_beneath(search->root_fd, below, O_RDONLY | O_NONBLOCK);
	if (has_content(content, fd))
		hide(search, path, &status);
}

static void add_folder(struct search *search, const char *path)
{
	const char **grown = path ? arena_push(search->arena, search->folders, search->folder_count,
					       sizeof(*grown)) :
				    NULL;

	search->no_memory |= !grown;
	if (!grown)
		return;
	search->folders = grown;
	grown[search->folder_count++] = path;
}

static void enter(struct search *search, const char *folder, const char *name)
{
	if (secret_is_skipped(name))
		return;
	if (search->folder_count == SECRET_LIMIT_DIRECTORIES) {
		search->found->is_cut = true;
		return;
	}
	add_folder(search, join(search, folder, name));
}

/* Some file systems do not tell it with the name. */
static bool is_directory(const struct directory *directory, const char *name)
{
	struct stat status;

	if (directory->type != DT_UNKNOWN)
		return directory->type == DT_DIR;
	return fstatat(directory->fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(status.st_mode);
}

/* What its owner may not look into may hold anything, and the task could change the mode. */
static void hide_closed(struct search *search, const char *folder)
{
	const char *path = path_clean(search->arena, search->policy->workspace, folder);
	struct view_path row = { .class = PATH_HIDE,
				 .kind = PATH_KIND_DIRECTORY,
				 .source = path,
				 .target = path,
				 .rule = search->rule };
	struct stat status;

	if (!path || !is_default(search, path) || lstat(path, &status) < 0)
		return;
	if (search->hidden == SECRET_LIMIT_FILES) {
		search->has_too_many = true;
		return;
	}
	search->hidden++;
	row.device = status.st_dev;
	row.inode = status.st_ino;
	search->no_memory |= !view_add(&search->policy->view, search->arena, row);
}

static void look_into(struct search *search, const char *folder)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *slash = strrchr(folder, '/'), *parent = slash ? slash + 1 : folder, *name;
	int fd = fd_open_beneath(search->root_fd, folder[0] ? folder : ".", O_RDONLY | O_DIRECTORY);

	directory_begin(&directory, fd < 0 ? -1 : fd);
	if (fd == -EACCES && folder[0])
		hide_closed(search, folder);
	while ((name = directory_next(&directory))) {
		if (++search->names > SECRET_LIMIT_NAMES) {
			search->found->is_cut = true;
			return;
		}
		if (is_directory(&directory, name))
			enter(search, folder, name);
		else if (secret_of_name(parent, name) != SECRET_NONE)
			consider(search, join(search, folder, name));
	}
}

/* The excludes of the box's user (gitignore(5)), which is not the caller's own file. */
static void add_ignored(struct search *search)
{
	struct policy *policy = search->policy;
	const struct view_path *above;
	struct view_path row = { .class = PATH_FILE,
				 .kind = PATH_KIND_FILE,
				 .source = search->ignored.data,
				 .rule = search->rule };

	if (!search->ignored.length || !policy->home)
		return;
	row.target = path_clean(search->arena, policy->home, ".config/git/ignore");
	above = row.target ? view_lookup(&policy->view, row.target) : NULL;
	/* an option shows another */
	if (row.target && !(above && path_is_under(above->target, policy->home)))
		search->no_memory |= search->ignored.failed ||
				     !view_add(&policy->view, search->arena, row);
}

/*
 * What a start found is looked at by the next one whatever there is in the workspace by then: a
 * task could fill the tree, so that the search ends before it comes to what was hidden from it.
 */
static void look_at_known(struct search *search, struct git_text known)
{
	for (const char *at = known.bytes; at < known.bytes + known.length;) {
		const char *end = memchr(at, '\0', (size_t)(known.bytes + known.length - at));

		if (!end)
			return;
		consider(search, at);
		at = end + 1;
	}
}

/* Old or new as a whole; two starts at once find the same. */
static int keep_known(const struct search *search, int state_fd, const char *path)
{
	char name[sizeof(SECRET_KNOWN) + 32];

	if (mkdirat(state_fd, SECRET_KNOWN, 0700) < 0 && errno != EEXIST)
		return -errno;
	(void)snprintf(name, sizeof(name), SECRET_KNOWN "/.new-%d", (int)getpid());
	return fd_replace(state_fd, path, name, search->known.data, search->known.length);
}

static int find(struct search *search, int state_fd)
{
	char project[SHA256_HEX_BYTES], path[sizeof(SECRET_KNOWN) + SHA256_HEX_BYTES];
	struct git_text known = { 0 };
	size_t before;

	cache_project(search->policy->workspace, project);
	(void)snprintf(path, sizeof(path), SECRET_KNOWN "/%s", project);
	if (git_file_read(state_fd, path, LIMIT_KNOWN_BYTES, &search->scratch, &known, NULL) == 0)
		look_at_known(search, known);
	before = search->hidden;
	add_folder(search, "");
	for (size_t i = 0; i < search->folder_count && !search->no_memory && !search->has_too_many;
	     i++)
		look_into(search, search->folders[i]);
	if (search->no_memory || search->known.failed)
		return -ENOMEM;
	add_ignored(search);
	return search->hidden == before ? 0 : keep_known(search, state_fd, path);
}

int secret_find(const struct git_found *git, int state_fd, struct arena *arena,
		struct policy *policy, struct secret_found *ret_found, struct error *error)
{
	struct search search = { .git = git,
				 .arena = arena,
				 .policy = policy,
				 .found = ret_found,
				 .ignored = { .arena = arena },
				 .known = { .arena = arena } };
	int result;

	*ret_found = (struct secret_found){ 0 };
	search.root_fd = open(policy->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (search.root_fd < 0)
		return error_errno(error, errno, "opening %s", policy->workspace);
	search.rule = policy_rule(policy, arena, rule_builtin(RULE_WORKSPACE_SECRET));
	search.indexes = arena_array(arena, git->count + 1, sizeof(*search.indexes));
	search.has_index = arena_array(arena, git->count + 1, sizeof(bool));
	result = search.indexes && search.has_index ? find(&search, state_fd) : -ENOMEM;
	if (result == 0 && search.no_memory)
		result = -ENOMEM;
	fd_close(&search.root_fd);
	arena_free(&search.scratch);
	if (result == 0 && search.has_too_many)
		return error_set(error, E2BIG,
				 "more than 1,024 files in %.200s are named like secrets, which is "
				 "more than are hidden one by one; --hide GLOB hides what it "
				 "matches, --show-secrets leaves all of them visible",
				 policy->workspace);
	return result < 0 ?
		       error_errno(error, result, "looking for secrets in %s", policy->workspace) :
		       0;
}
