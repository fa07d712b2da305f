#include "workspace/cache.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "workspace/host.h"
#include "workspace/place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In a project's directory: which workspace it is of. */
#define WORKSPACE_FILE ".workspace"

/* What in a workspace tells that a project will use a cache, although the host has none yet. */
enum user { USER_NONE, USER_NPM, USER_PIP, USER_CARGO, USER_GO, USER_COUNT };

static const struct {
	enum user user;
	const char *name;
} marks[] = {
	{ USER_NPM, "package.json" },	  { USER_PIP, "pyproject.toml" }, { USER_PIP, "setup.py" },
	{ USER_PIP, "requirements.txt" }, { USER_CARGO, "Cargo.toml" },	  { USER_GO, "go.mod" },
};

/*
 * Only directories that hold packages and what was compiled, never the tool's configuration
 * beside them: ~/.npm also has the host's logs, ~/.m2 and ~/.gradle have passwords.
 */
static const struct {
	const char *name, *path;
	enum user user;
} caches[] = {
	{ "npm", ".npm/_cacache", USER_NPM },
	{ "yarn", ".cache/yarn", USER_NONE },
	{ "pnpm", ".local/share/pnpm/store", USER_NONE },
	{ "bun", ".bun/install/cache", USER_NONE },
	{ "deno", ".cache/deno", USER_NONE },
	{ "pip", ".cache/pip", USER_PIP },
	{ "uv", ".cache/uv", USER_NONE },
	{ "poetry", ".cache/pypoetry", USER_NONE },
	{ "cargo-registry", ".cargo/registry", USER_CARGO },
	{ "cargo-git", ".cargo/git", USER_NONE },
	{ "go-mod", "go/pkg/mod", USER_GO },
	{ "go-build", ".cache/go-build", USER_GO },
	{ "maven", ".m2/repository", USER_NONE },
	{ "gradle", ".gradle/caches", USER_NONE },
	{ "gradle-wrapper", ".gradle/wrapper", USER_NONE },
	{ "ccache", ".cache/ccache", USER_NONE },
	{ "ccache-old", ".ccache", USER_NONE },
};

struct gather {
	const struct caller *host;
	struct home home;
	struct arena *arena;
	struct policy *policy;
	const char *state_path;
	int state_fd, project_fd; /* the latter is opened with the first cache */
	char project[SHA256_HEX_BYTES];
	bool uses[USER_COUNT];
	uint32_t rule;
};

/*
 * The path alone names the project: a device number may change with each boot, and the project
 * would lose its caches and leave the old ones behind.
 */
void cache_project(const char *workspace, char ret_project[static SHA256_HEX_BYTES])
{
	unsigned char digest[SHA256_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_update(&hash, workspace, strlen(workspace));
	sha256_end(&hash, digest);
	sha256_hex(digest, ret_project);
	ret_project[CACHE_PROJECT_DIGITS] = '\0';
}

const char *cache_workspace(int project_fd, const char *project, struct arena *arena)
{
	int CLEANUP_FD fd = fd_open_beneath(project_fd, WORKSPACE_FILE, O_RDONLY | O_NONBLOCK);
	char path[PATH_LIMIT_BYTES], name[SHA256_HEX_BYTES];
	ssize_t length = fd < 0 ? -1 : fd_read_all(fd, path, sizeof(path) - 1);

	if (length <= 0)
		return NULL;
	path[length] = '\0';
	cache_project(path, name);
	return strcmp(name, project) == 0 ? arena_copy(arena, path) : NULL;
}

/* For people, once: without it the caches are as good. */
static void note_workspace(const struct gather *gather)
{
	const char *path = gather->policy->workspace;
	int CLEANUP_FD fd = -1;

	if (faccessat(gather->project_fd, WORKSPACE_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	fd = openat(gather->project_fd, WORKSPACE_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		    0600);
	if (fd >= 0)
		(void)fd_write_all(fd, path, strlen(path));
}

static void look_at_workspace(struct gather *gather)
{
	int CLEANUP_FD fd = open(gather->policy->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (!gather->uses[marks[i].user] &&
		    faccessat(fd, marks[i].name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			gather->uses[marks[i].user] = true;
}

/* a task may have changed its layer's mode: O_PATH needs none */
#define OWN_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/*
 * Opens a directory of ours, made if need be: no link, and nobody else's. For the host's root a
 * cache's own directories belong to the task's id, as which the overlay is mounted.
 */
static int open_own(const struct gather *gather, int parent_fd, const char *name, bool of_task)
{
	uint32_t owner = of_task && gather->host->root ? PLAN_ROOT_HOST_ID : gather->host->uid;
	int CLEANUP_FD fd = openat(parent_fd, name, OWN_FLAGS);
	struct stat status;

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(parent_fd, name, OWN_FLAGS);
	}
	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	/* new, or left so by a start that was killed just here */
	if (status.st_uid != owner && status.st_uid == gather->host->uid) {
		if (fchownat(fd, "", owner, owner, AT_EMPTY_PATH) < 0)
			return -errno;
		status.st_uid = owner;
	}
	return status.st_uid == owner ? TAKE_FD(fd) : -EPERM;
}

static int open_project(struct gather *gather)
{
	int CLEANUP_FD caches_fd = open_own(gather, gather->state_fd, "caches", false);

	if (caches_fd < 0)
		return caches_fd;
	gather->project_fd = open_own(gather, caches_fd, gather->project, false);
	if (gather->project_fd < 0)
		return gather->project_fd;
	note_workspace(gather);
	return 0;
}

static int make_layers(struct gather *gather, const char *name)
{
	static const char *const layers[] = { "upper", "work" };
	int CLEANUP_FD cache_fd = -1;

	if (gather->project_fd < 0) {
		int result = open_project(gather);

		if (result < 0)
			return result;
	}
	cache_fd = open_own(gather, gather->project_fd, name, true);
	if (cache_fd < 0)
		return cache_fd;
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		int CLEANUP_FD layer_fd = open_own(gather, cache_fd, layers[i], true);

		if (layer_fd < 0)
			return layer_fd;
	}
	return 0;
}

static int add_cache(struct gather *gather, size_t index, struct error *error)
{
	struct view_path row = {
		.class = PATH_CACHE, .kind = PATH_KIND_DIRECTORY, .source = "", .rule = gather->rule
	};
	struct place place;
	int result = place_find(&gather->home, caches[index].path, gather->arena, &place);

	if (result == 0 && place.kind == PATH_KIND_DIRECTORY) {
		row.source = place.path;
		row.device = place.device;
		row.inode = place.inode;
	} else if (!gather->uses[caches[index].user]) {
		return 0;
	}
	result = make_layers(gather, caches[index].name);
	if (result < 0)
		return error_errno(error, result, "making the cache %s/caches/%s/%s",
				   gather->state_path, gather->project, caches[index].name);
	row.target = path_clean(gather->arena, gather->policy->home, caches[index].path);
	row.upper = arena_format(gather->arena, "%s/caches/%s/%s", gather->state_path,
				 gather->project, caches[index].name);
	if (!row.target || !row.upper || !view_add(&gather->policy->view, gather->arena, row))
		return error_errno(error, ENOMEM, "gathering the caches");
	return 0;
}

int cache_view(const struct caller *host, int state_fd, const char *state_path, struct arena *arena,
	       struct policy *policy, struct error *error)
{
	struct gather gather = { .host = host,
				 .arena = arena,
				 .policy = policy,
				 .state_path = state_path,
				 .state_fd = state_fd,
				 .project_fd = -1 };
	int CLEANUP_FD home_fd = -1;
	int result = place_home(host, policy->workspace, arena, &gather.home, error);

	home_fd = result < 0 ? -1 : gather.home.fd;
	if (home_fd < 0 || !policy->home)
		return result;
	gather.rule = policy_rule(policy, arena, rule_builtin(RULE_CACHE_OVERLAY));
	cache_project(policy->workspace, gather.project);
	look_at_workspace(&gather);
	for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]) && result == 0; i++)
		result = add_cache(&gather, i, error);
	fd_close(&gather.project_fd);
	return result;
}
