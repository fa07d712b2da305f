#include "workspace/program_view.h"

#include "base/arena.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/path.h"
#include "policy/policy.h"
#include "policy/toolset.h"
#include "workspace/library.h"
#include "workspace/root.h"
#include "workspace/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* Where programs are looked for behind PATH: those of the administrator. */
#define MORE_PATH ":/usr/local/sbin:/usr/sbin:/sbin"

/* Of a listed directory; one of a language's modules has below a hundred. */
#define DIRECTORY_LIMIT_FILES 4096u

struct listing {
	struct arena *arena;
	struct policy *policy;
	struct error *error;
	struct library_set libraries;
	const char **programs; /* real paths of what is listed, without what it loads */
	size_t count;
	uint32_t rule;
};

static bool is_written_class(enum path_class class)
{
	return class == PATH_WRITE || class == PATH_CACHE || class == PATH_GIT ||
	       class == PATH_OBJECTS || class == PATH_STAGE;
}

/*
 * What the task could change by this path or another one. In the workspace an earlier task could
 * have, also where this one only reads.
 */
static bool is_written(const struct listing *listing, const char *real)
{
	const struct view *view = &listing->policy->view;

	if (path_is_under(real, listing->policy->workspace))
		return true;
	for (size_t i = 0; i < view->count; i++)
		if (is_written_class(view->paths[i].class) && view->paths[i].source[0] &&
		    path_is_under(real, view->paths[i].source))
			return true;
	return false;
}

/* Whether the box has the host's file at its own place, or would, were the directory shown. */
static bool is_shown(const struct listing *listing, const char *real)
{
	const struct view_path *row = view_lookup(&listing->policy->view, real);

	if (!row)
		return system_holds_programs(real);
	return (row->class == PATH_READ || row->class == PATH_PROGRAM) &&
	       strcmp(row->source, row->target) == 0;
}

static bool has_row(const struct listing *listing, const char *target)
{
	const struct view *view = &listing->policy->view;

	for (size_t i = 0; i < view->count; i++)
		if (strcmp(view->paths[i].target, target) == 0 &&
		    (view->paths[i].class == PATH_PROGRAM || view->paths[i].class == PATH_LINK))
			return true;
	return false;
}

static int add_row(struct listing *listing, struct view_path row)
{
	row.rule = listing->rule;
	if (!row.target || !row.source)
		return error_errno(listing->error, ENOMEM, "listing programs");
	if (!view_add(&listing->policy->view, listing->arena, row))
		return error_set(listing->error, E2BIG, "more than %u paths to show",
				 VIEW_LIMIT_PATHS);
	return 0;
}

static int add_program(struct listing *listing, const char *real)
{
	struct stat status;

	if (has_row(listing, real))
		return 0;
	if (lstat(real, &status) < 0 || (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)))
		return 0;
	return add_row(listing, (struct view_path){
					.class = PATH_PROGRAM,
					.kind = S_ISDIR(status.st_mode) ? PATH_KIND_DIRECTORY :
									  PATH_KIND_FILE,
					.source = real,
					.target = real,
					.device = status.st_dev,
					.inode = status.st_ino,
				});
}

/* A library where the task writes is none: who needs it does not start. */
static int add_library(void *context, const char *real)
{
	struct listing *listing = context;

	return is_shown(listing, real) && !is_written(listing, real) ? add_program(listing, real) :
								       0;
}

static bool is_word(const char *words, const char *word)
{
	size_t length;

	for (const char *at = words; *at; at += length + strspn(at + length, " ")) {
		length = strcspn(at, " ");
		if (strlen(word) == length && memcmp(at, word, length) == 0)
			return true;
	}
	return false;
}

/* Deny beats allow. */
static bool is_denied(const struct listing *listing, const char *given, const char *real)
{
	const struct policy *policy = listing->policy;
	const char *name = path_name(real);
	const char *slash = strrchr(given, '/'), *word = slash ? slash + 1 : given;

	for (size_t i = 0; i < policy->ruling_count; i++) {
		const struct ruling *row = &policy->rulings[i];
		const char *words = row->kind == RULING_EXEC_DENY ? row->text :
				    row->kind == RULING_EXEC_SET  ? toolset_programs(row->text) :
								    "";

		if (is_word(words, name) || is_word(words, word) || is_word(words, real))
			return true;
	}
	return false;
}

static int note_program(struct listing *listing, const char *real)
{
	const char **grown =
		arena_push(listing->arena, listing->programs, listing->count, sizeof(*grown));

	if (!grown)
		return error_errno(listing->error, ENOMEM, "listing programs");
	listing->programs = grown;
	grown[listing->count++] = real;
	return 0;
}

/* The name that was listed may be a link, in a directory of which nothing else is shown. */
static int add_alias(struct listing *listing, const char *path, const char *real)
{
	struct error ignored = ERROR_NONE;
	const char *slash = strrchr(path, '/'), *parent = NULL, *alias;
	char *directory = arena_copy_bytes(listing->arena, path, (size_t)(slash - path));

	if (!directory ||
	    root_resolve(directory[0] ? directory : "/", listing->arena, &parent, &ignored) < 0)
		return 0;
	alias = arena_format(listing->arena, "%s%s", parent[1] ? parent : "", slash);
	if (!alias || strcmp(alias, real) == 0 || !system_holds_programs(alias) ||
	    view_lookup(&listing->policy->view, alias) || has_row(listing, alias))
		return 0;
	return add_row(listing, (struct view_path){ .class = PATH_LINK,
						    .kind = PATH_KIND_FILE,
						    .source = real,
						    .target = alias });
}

static int add_needs(struct listing *listing, const char *real)
{
	int result = library_find(&listing->libraries, real, add_library, listing);

	return result == -ENOMEM ? error_errno(listing->error, ENOMEM, "listing programs") : result;
}

/* All that lies in it can be executed; what that loads is found for its own files alone. */
static int add_directory(struct listing *listing, const char *real)
{
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	unsigned count = 0;
	int result = add_program(listing, real);

	(void)directory_open(&directory, AT_FDCWD, real, 0);
	while (result == 0 && count++ < DIRECTORY_LIMIT_FILES &&
	       (name = directory_next(&directory))) {
		const char *path = arena_format(listing->arena, "%s/%s", real, name);

		if (path && is_denied(listing, path, path))
			result = error_set(listing->error, EPERM,
					   "exec.strict: %s, which exec.allow lists, holds %s, "
					   "which is denied; list its files instead",
					   real, name);
		else if (path)
			result = add_needs(listing, path);
	}
	return result;
}

/* 1: it is there. 0: it is not, or not for this box. */
static int try_path(struct listing *listing, const char *given, const char *path)
{
	struct error ignored = ERROR_NONE;
	bool is_path = strchr(given, '/') != NULL, is_directory;
	const char *real;
	struct stat status;
	int result;

	if (root_resolve(path, listing->arena, &real, &ignored) < 0 || lstat(real, &status) < 0)
		return 0;
	is_directory = is_path && S_ISDIR(status.st_mode);
	if (!is_directory && (!S_ISREG(status.st_mode) || !(status.st_mode & 0111)))
		return 0;
	if (is_denied(listing, given, real))
		return 1;
	if (is_written(listing, real))
		return is_path ? error_set(listing->error, EPERM,
					   "exec.strict: %s, which exec.allow lists, is %s, where "
					   "a task writes: it could be made to be any program",
					   given, real) :
				 0;
	if (!is_shown(listing, real))
		return 0;
	if (is_directory) {
		result = add_directory(listing, real);
		return result < 0 ? result : 1;
	}
	result = note_program(listing, real);
	if (result == 0)
		result = add_program(listing, real);
	if (result == 0)
		result = add_alias(listing, path, real);
	if (result == 0)
		result = add_needs(listing, real);
	return result < 0 ? result : 1;
}

static const char *search_path(const struct listing *listing)
{
	const struct policy *policy = listing->policy;

	for (size_t i = 0; i < policy->variable_count; i++)
		if (strcmp(policy->variables[i].name, "PATH") == 0)
			return arena_format(listing->arena, "%s" MORE_PATH,
					    policy->variables[i].value);
	return "/usr/local/bin:/usr/bin:/bin" MORE_PATH;
}

static int add_listed(struct listing *listing, const char *given)
{
	const char *at = search_path(listing);
	int result = 0;

	if (given[0] == '/')
		return try_path(listing, given, given);
	while (at && *at && result == 0) {
		size_t length = strcspn(at, ":");

		if (at[0] == '/')
			result = try_path(
				listing, given,
				arena_format(listing->arena, "%.*s/%s", (int)length, at, given));
		at += length;
		at += *at == ':';
	}
	return result;
}

static bool is_listed(const struct listing *listing, const char *path)
{
	struct error ignored = ERROR_NONE;
	const char *real;

	if (root_resolve(path, listing->arena, &real, &ignored) < 0)
		return false;
	for (size_t i = 0; i < listing->count; i++)
		if (strcmp(listing->programs[i], real) == 0)
			return true;
	return false;
}

/* An interpreter runs anything: it is shown where the policy says so, and not along with others. */
static int check_scripts(const struct listing *listing)
{
	for (size_t i = 0; i < listing->count; i++) {
		const char *interpreter = NULL;

		if (library_script(listing->programs[i], listing->arena, &interpreter) &&
		    !is_listed(listing, interpreter))
			return error_set(listing->error, EPERM,
					 "exec.strict: %s is a script of %s, which exec.allow does "
					 "not list; an interpreter that is listed runs whatever it "
					 "is given",
					 listing->programs[i], interpreter);
	}
	return 0;
}

static int check_options(const struct policy *policy, struct error *error)
{
	if (policy->flags & POLICY_NESTED_USERNS)
		return error_set(
			error, EPERM,
			"--nested-userns: exec.strict is true: in a namespace of its own a "
			"task mounts what it executes");
	if (policy->flags & POLICY_ALLOW_PTRACE)
		return error_set(error, EPERM,
				 "--allow-ptrace: exec.strict is true: who traces a listed program "
				 "makes another one of it");
	for (size_t i = 0; i < policy->ruling_count; i++)
		if (policy->rulings[i].kind == RULING_EXEC_ALLOW)
			return 0;
	return error_set(error, EINVAL,
			 "exec.strict executes what exec.allow lists, and that lists nothing");
}

int program_view(struct arena *arena, struct policy *policy, const char *also, struct error *error)
{
	struct listing listing = {
		.arena = arena, .policy = policy, .error = error, .libraries = { .arena = arena }
	};
	int result = check_options(policy, error);

	for (size_t i = 0; i < policy->ruling_count && result >= 0; i++) {
		if (policy->rulings[i].kind != RULING_EXEC_ALLOW)
			continue;
		listing.rule = policy->rulings[i].rule;
		result = add_listed(&listing, policy->rulings[i].text);
	}
	if (result >= 0 && also)
		result = add_needs(&listing, also);
	if (result >= 0)
		result = check_scripts(&listing);
	return result < 0 ? result : 0;
}
