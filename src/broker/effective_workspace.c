/* The workspace: which it is, how it is shown, and what in it is to be kept from others. */
#include "broker/effective_internal.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/path.h"
#include "policy/danger.h"
#include "workspace/git_find.h"
#include "workspace/root.h"
#include "workspace/secret_find.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/*
 * The workspace and the directory to start in: that may lead up from the current one, and be a
 * descriptor of the caller's, which is no link that a task could have made.
 */
int maker_find_root(struct maker *maker)
{
	const struct request *request = maker->request;
	const char *cwd = request->cwd;
	char current[PATH_LIMIT_BYTES];
	int result = 0;

	if (cwd && path_is_absolute(cwd) && path_is_clean(cwd) && path_is_under(cwd, "/proc")) {
		result = root_resolve(cwd, maker->arena, &cwd, maker->error);
		if (result < 0)
			return error_context(maker->error, "--cwd");
	} else if (cwd && strncmp(cwd, "..", 2) == 0 && getcwd(current, sizeof(current)) &&
		   current[0] == '/') {
		const char *above = path_clean_up(maker->arena, current, cwd);

		cwd = above ? above : cwd;
	}
	result = root_find(&maker->effective->host, request->workspace, cwd, maker->arena,
			   &maker->root, maker->error);
	/* as it was written */
	return result < 0 && cwd && strncmp(maker->error->message, "--cwd ", 6) == 0 &&
			       strcmp(cwd, request->cwd) != 0 ?
		       error_context(maker->error, "--cwd %.200s", request->cwd) :
		       result;
}

static enum path_class workspace_class(uint32_t flags)
{
	return flags & POLICY_READ_ONLY ? PATH_READ :
	       flags & POLICY_LAYERED	? PATH_STAGE :
					  PATH_WRITE;
}

static uint32_t workspace_rule(struct maker *maker)
{
	if (maker->request->workspace_rule.id)
		return policy_rule(&maker->policy, maker->arena, maker->request->workspace_rule);
	if (maker->policy.flags & POLICY_READ_ONLY)
		return maker_flag_rule(maker, "--read-only", 0);
	if (maker->policy.flags & POLICY_STAGE)
		return maker_flag_rule(maker, "--stage", 0);
	if (maker->policy.flags & POLICY_EMPTY)
		return maker_flag_rule(maker, "--ephemeral=empty", 0);
	if (maker->policy.flags & POLICY_EPHEMERAL)
		return maker_flag_rule(maker, "--ephemeral", 0);
	if (maker->request->workspace)
		return maker_flag_rule(maker, "--workspace", 0);
	return policy_rule(&maker->policy, maker->arena, rule_builtin(RULE_WORKSPACE_WRITE));
}

int maker_add_workspace(struct maker *maker)
{
	const struct root root = maker->root;
	const struct state *state = &maker->effective->state;
	const char *danger;

	/* a task that could write there would write what later starts are made of */
	if (path_is_under(state->path, root.path))
		return maker_refuse_danger(
			maker, state->path,
			"bawn's own state (--state-dir) lies in the workspace, where "
			"the task could write; give a directory outside of it");
	danger = danger_of_path(root.path, PATH_WRITE, maker->effective->host.real_home,
				state->path);
	if (danger)
		return maker_refuse_danger(maker, root.path, danger);
	maker->policy.workspace = root.path;
	/* an empty one has no directories */
	maker->policy.cwd = maker->policy.flags & POLICY_EMPTY &&
					    path_is_under(root.cwd, root.path) ?
				    root.path :
				    root.cwd;
	return maker_add_row(maker,
			     (struct view_path){ .class = workspace_class(maker->policy.flags),
						 .kind = PATH_KIND_DIRECTORY,
						 .source = root.path,
						 .target = root.path,
						 .device = root.device,
						 .inode = root.inode,
						 .rule = workspace_rule(maker) });
}

/* In an empty workspace no path of the host's has a place; what is built in goes without. */
static int leave_empty(struct maker *maker)
{
	struct view *view = &maker->policy.view;
	size_t kept = 0;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];
		bool is_below = path_is_under(row->target, maker->policy.workspace) &&
				strcmp(row->target, maker->policy.workspace) != 0;

		if (is_below && maker->policy.rules[row->rule].file &&
		    (row->class == PATH_READ || row->class == PATH_WRITE))
			return error_set(maker->error, EINVAL,
					 "%s lies in the workspace, which is empty "
					 "(--ephemeral=empty); --input PATH shows it elsewhere",
					 row->target);
		if (!is_below)
			view->paths[kept++] = *row;
	}
	view->count = kept;
	return 0;
}

/* What the workspace has that the host's tools, or nobody else, is to be kept from. */
int maker_look_into_workspace(struct maker *maker)
{
	struct effective *effective = maker->effective;
	struct policy *policy = &maker->policy;
	int result;

	if (policy->flags & POLICY_EMPTY)
		return leave_empty(maker);
	result = git_find(&effective->host, effective->state.path, maker->arena, policy,
			  &effective->git, maker->error);
	return result < 0 || policy->flags & POLICY_SHOW_SECRETS ?
		       result :
		       secret_find(&effective->git, effective->state.fd, maker->arena, policy,
				   &effective->secrets, maker->error);
}
