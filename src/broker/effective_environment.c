/* The variables of the box: its own, those that pass from the caller, the policy's, and by flag. */
#include "broker/effective_internal.h"

#include "base/arena.h"
#include "base/error.h"
#include "policy/environment.h"
#include "policy/place.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool set_variable(struct maker *maker, const char *name, const char *value, uint32_t rule)
{
	return policy_variable(&maker->policy, maker->arena, name, value, rule);
}

static void withhold(struct maker *maker, const char *name)
{
	struct effective *effective = maker->effective;
	const char **grown = arena_push(maker->arena, effective->withheld,
					effective->withheld_count, sizeof(*grown));

	if (!grown)
		return;
	effective->withheld = grown;
	grown[effective->withheld_count++] = name;
}

static void pass_caller_variables(struct maker *maker, uint32_t rule)
{
	for (char **at = environ; at && *at; at++) {
		const char *equals = strchr(*at, '=');
		char *name = equals ? arena_copy_bytes(maker->arena, *at, (size_t)(equals - *at)) :
				      NULL;

		if (!name || !name[0])
			continue;
		if (environment_is_passed(name))
			(void)set_variable(maker, name, equals + 1, rule);
		else if (!environment_is_own(name))
			withhold(maker, name);
	}
}

static void unwithhold(struct effective *effective, const char *name)
{
	for (size_t i = 0; i < effective->withheld_count; i++)
		if (strcmp(effective->withheld[i], name) == 0)
			effective->withheld[i] = effective->withheld[--effective->withheld_count];
}

static int add_policy_variables(struct maker *maker)
{
	const struct request *request = maker->request;

	for (size_t i = 0; i < request->variable_count; i++) {
		const struct request_variable *variable = &request->variables[i];
		uint32_t rule = policy_rule(&maker->policy, maker->arena, variable->rule);

		unwithhold(maker->effective, variable->name);
		if (!set_variable(maker, variable->name, variable->value, rule))
			return error_set(maker->error, E2BIG, "too many variables");
	}
	return 0;
}

/* --env NAME passes the caller's value, --env NAME=VALUE sets one. */
static int add_flag_variable(struct maker *maker, const char *given)
{
	size_t length = strcspn(given, "=");
	char *name = arena_copy_bytes(maker->arena, given, length);
	uint32_t rule = maker_flag_rule(maker, "--env", 0);
	const char *value = given[length] ? given + length + 1 : NULL;

	if (!name || !environment_is_name(name))
		return error_set(maker->error, EINVAL,
				 "--env %.100s: not a variable's name; --env NAME or NAME=VALUE",
				 name ? name : "");
	for (char **at = environ; !value && at && *at; at++)
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
			value = *at + length + 1;
	if (!value)
		return error_set(maker->error, EINVAL, "--env %s: the caller has no such variable",
				 name);
	unwithhold(maker->effective, name);
	return set_variable(maker, name, value, rule) ?
		       0 :
		       error_set(maker->error, E2BIG, "too many variables");
}

/* Tools that try again and again for what this network will never give, for a minute or more. */
static void set_offline(struct maker *maker)
{
	static const char *const variables[][2] = { { "npm_config_fetch_retries", "0" },
						    { "npm_config_update_notifier", "false" },
						    { "PIP_RETRIES", "0" },
						    { "PIP_DISABLE_PIP_VERSION_CHECK", "1" },
						    { "CARGO_NET_RETRY", "0" } };
	uint32_t rule =
		policy_rule(&maker->policy, maker->arena, rule_builtin(RULE_NETWORK_LOOPBACK));

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		(void)set_variable(maker, variables[i][0], variables[i][1], rule);
}

/*
 * For programs that like a proxy: the door in the box. Any other needs none of this. As HTTP for
 * all schemes, since several clients fail at once at a kind of proxy for which they lack a module.
 */
static void set_online(struct maker *maker)
{
	static const char *const names[] = { "http_proxy",  "HTTP_PROXY", "https_proxy",
					     "HTTPS_PROXY", "all_proxy",  "ALL_PROXY" };
	uint32_t rule =
		policy_rule(&maker->policy, maker->arena, rule_builtin(RULE_NETWORK_LOOPBACK));

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)set_variable(maker, names[i], PLACE_DOOR_URL, rule);
	(void)set_variable(maker, "no_proxy", PLACE_NO_PROXY, rule);
	(void)set_variable(maker, "NO_PROXY", PLACE_NO_PROXY, rule);
}

int maker_add_environment(struct maker *maker)
{
	struct policy *policy = &maker->policy;
	uint32_t rule = policy_rule(policy, maker->arena, rule_builtin(RULE_ENVIRONMENT_ALLOWLIST));
	int result = 0;

	(void)set_variable(maker, "PATH", "/usr/local/bin:/usr/bin:/bin", rule);
	if (policy->egress.mode == EGRESS_POLICY)
		set_online(maker);
	else
		set_offline(maker);
	pass_caller_variables(maker, rule);
	(void)set_variable(maker, "HOME", policy->home, rule);
	(void)set_variable(maker, "USER", policy->user, rule);
	(void)set_variable(maker, "LOGNAME", policy->user, rule);
	(void)set_variable(maker, "SHELL", policy->shell, rule);
	(void)set_variable(maker, "TMPDIR", "/tmp", rule);
	(void)set_variable(maker, "PWD", policy->cwd, rule);
	(void)set_variable(maker, "XDG_RUNTIME_DIR",
			   arena_format(maker->arena, "/run/user/%u", policy->uid), rule);
	result = add_policy_variables(maker);
	for (size_t i = 0; i < maker->request->environment_count && result == 0; i++)
		result = add_flag_variable(maker, maker->request->environment[i]);
	return result;
}
