/* Paths of a request: what may be shown, and names that are hidden or protected. */
#include "broker/effective_internal.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "policy/danger.h"
#include "policy/glob.h"
#include "policy/input.h"
#include "workspace/hide.h"
#include "workspace/root.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/*
 * The real path of what a flag names. What lies in the workspace may be a link that a task made: it
 * is not the caller's word for the place outside that it leads to (ret_led_out). Goes by each step
 * of the path as it was written, since with ".." in it the text alone does not tell which names
 * lie in the workspace; and what was judged is what is returned, since names change meanwhile.
 */
static int resolve_given(const struct maker *maker, const char *written, const char **ret_real,
			 bool *ret_led_out)
{
	const char *workspace = maker->policy.workspace, *real, *at = "/";
	int result = path_is_absolute(written) ? 0 :
						 root_resolve(".", maker->arena, &at, maker->error);

	*ret_led_out = false;
	for (size_t length; *written && result == 0; written += length) {
		char *step;

		length = strspn(written, "/");
		if (length)
			continue;
		length = strcspn(written, "/");
		step = arena_format(maker->arena, "%s/%.*s", at[1] ? at : "", (int)length, written);
		if (!step)
			return error_errno(maker->error, ENOMEM, "resolving a path");
		result = root_resolve(step, maker->arena, &real, maker->error);
		if (result < 0)
			break;
		*ret_led_out |= path_is_clean(step) && path_is_under(step, workspace) &&
				!path_is_under(real, workspace);
		at = real;
	}
	*ret_real = at;
	return result;
}

/* Asked for by name, though nobody needs to. */
static bool in_every_box(const char *path)
{
	static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
					       "/dev/urandom" };

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (strcmp(path, devices[i]) == 0)
			return true;
	return false;
}

static uint32_t path_rule(struct maker *maker, const struct request_path *given)
{
	return given->rule.id ? policy_rule(&maker->policy, maker->arena, given->rule) :
				maker_flag_rule(maker, given->flag, given->position);
}

/* The caller's own path by flag: real path, what it is, whether it may be shown at all. */
static int show_path(struct maker *maker, const struct request_path *given)
{
	struct error *error = maker->error;
	const char *real = NULL, *danger, *home = maker->effective->host.real_home;
	struct view_path row = { .class = given->class };
	struct stat status;
	char *clean;
	bool led_out;
	int result = resolve_given(maker, given->path, &real, &led_out);

	if (result < 0 || !real)
		return error_context(error, "%s %.200s", given->flag, given->path);
	danger = danger_of_path(real, given->class, home, maker->effective->state.path);
	if (danger)
		return maker_refuse_danger(maker, real, danger);
	if (led_out)
		return maker_ask(maker, DENIAL_FS_DANGEROUS, RULE_DANGEROUS_PATH, real,
				 "a link in the workspace leads there; give the path itself");
	if (lstat(real, &status) < 0)
		return error_errno(error, errno, "%s %s", given->flag, real);
	if (S_ISSOCK(status.st_mode))
		return maker_ask(maker, DENIAL_FS_DANGEROUS, RULE_DANGEROUS_PATH, real,
				 "it is a socket, which reaches a process outside of the box");
	if (given->class == PATH_DEVICE ? !S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode) :
					  !S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
		return error_set(error, EINVAL, "%s %s: %s", given->flag, real,
				 given->class == PATH_DEVICE ? "no device" :
							       "neither a file nor a directory");
	if (given->class == PATH_DEVICE && in_every_box(real))
		return 0;
	if (given->class == PATH_DEVICE && (S_ISBLK(status.st_mode) || major(status.st_rdev) == 1))
		/* block devices, and the memory devices of major 1 (mem(4)) */
		return maker_ask(maker, DENIAL_FS_DANGEROUS, RULE_DANGEROUS_PATH, real,
				 "it reaches the host's disks or memory");
	row.kind = S_ISDIR(status.st_mode) ? PATH_KIND_DIRECTORY : PATH_KIND_FILE;
	row.source = row.target = real;
	row.device = status.st_dev;
	row.inode = status.st_ino;
	row.rule = path_rule(maker, given);
	if (given->name)
		result = input_place(&maker->policy.view, real, given->name, maker->arena,
				     &row.target, error);
	if (result == 0)
		result = maker_add_row(maker, row);
	clean = path_is_absolute(given->path) && !given->name ?
			path_clean(maker->arena, "/", given->path) :
			NULL;
	if (result == 0 && clean && strcmp(clean, real) != 0)
		/* the path as it was written leads there too */
		result = maker_add_row(maker, (struct view_path){ .class = PATH_LINK,
								  .kind = PATH_KIND_FILE,
								  .source = real,
								  .target = clean,
								  .rule = row.rule });
	return result;
}

/* Where the box has something of its own, of which nothing is the host's; it cannot do without. */
static bool is_made_anew(const char *path)
{
	static const char *const places[] = { "/etc", "/dev", "/proc", "/run", PLAN_EVIDENCE };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strcmp(path, places[i]) == 0)
			return true;
	return false;
}

/* Names are meant from the workspace, and may lead up from it. */
static int cover_names(struct maker *maker, const struct request_path *given)
{
	const char *workspace = maker->policy.workspace;
	const char *path = path_clean_up(maker->arena, workspace, given->path);

	if (path && given->class == PATH_HIDE && is_made_anew(path))
		return error_set(maker->error, EINVAL,
				 "%s %s: the box has its own there, and of the host's only what it "
				 "shows; hide names in it",
				 given->flag, given->path);
	if (!path || path_is_absolute(given->path) || strncmp(given->path, "..", 2) != 0)
		path = given->path;
	return hide_view(given->class, path, path_rule(maker, given), maker->arena, &maker->policy,
			 maker->error);
}

int maker_add_flag_paths(struct maker *maker, bool names)
{
	int result = 0;

	for (size_t i = 0; i < maker->request->path_count && result == 0; i++) {
		const struct request_path *given = &maker->request->paths[i];
		bool is_name = given->class == PATH_HIDE || given->class == PATH_PROTECT;

		if (is_name != names)
			continue;
		result = names ? cover_names(maker, given) : show_path(maker, given);
		/* a policy is for many workspaces, and its glob for what there is in each */
		if (result == -ENOENT && names && given->rule.id && glob_is_pattern(given->path))
			result = 0;
		/* the rest names the place already */
		if (result < 0 && names && given->rule.id)
			(void)error_context(maker->error, "%s", given->flag);
	}
	return result;
}

/* --hide-strict: refuse where hiding is a mask that the host can lift by a rename. */
int maker_check_strict(struct maker *maker)
{
	const struct view *view = &maker->policy.view;

	if (!(maker->request->flags & POLICY_HIDE_STRICT))
		return 0;
	for (size_t i = 0; i < view->count; i++) {
		/* what no option asked for may be hidden as well as can be */
		if (view->paths[i].class != PATH_HIDE ||
		    !maker->policy.rules[view->paths[i].rule].file)
			continue;
		for (size_t j = 0; j < view->count; j++)
			if (view->paths[j].class == PATH_WRITE &&
			    path_is_under(view->paths[i].target, view->paths[j].target))
				return error_set(
					maker->error, ENOTSUP,
					"--hide-strict: %s lies in %s, which is written in "
					"place; hiding there is a mask that a rename on the "
					"host lifts for a moment",
					view->paths[i].target, view->paths[j].target);
	}
	return 0;
}
