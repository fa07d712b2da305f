/*
 * golden-explanations: prints the names of the fixed policies, or the explanation of one of them,
 * as text or (with --json) as JSON.
 */
#include "policies.h"

#include "base/buffer.h"
#include "base/json.h"
#include "plan/explain.h"

#include <stdio.h>

static void print(const struct explanation *explanation, bool as_json, struct buffer *text)
{
	struct json json;

	if (!as_json) {
		explain_print(explanation, text);
		return;
	}
	json_begin(&json, text);
	json_object(&json, NULL);
	explain_json(explanation, &json);
	json_object_end(&json);
	buffer_text(text, "\n");
}

/* The root's sample has limits by flags, of each grade. */
static int ask(struct policy *policy, struct error *error)
{
	static const char *const asked[][2] = { { "--memory", "512M" },
						{ "--cpus", "1.5" },
						{ "--cpu-time", "90s" },
						{ "--disk", "100M" } };
	int result = 0;

	policy->timeout_ns = policy->limits.values[LIMIT_WALL_CLOCK] = 90500000000u;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]) && result == 0; i++)
		result = limits_take(&policy->limits, asked[i][0], asked[i][1], error);
	limits_settle(&policy->limits);
	return result;
}

static int explain_sample(const struct sample *sample, bool as_json)
{
	static const char *const argv[] = { "/usr/bin/make", "all the\033[1m things", NULL };
	static const char *const withheld[] = { "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK" };
	const struct limit_facts limits = { .cgroup = { [LIMIT_MEMORY] = 2, [LIMIT_CPUS] = 2 },
					    .rlimit_processes = true,
					    .sized_areas = true,
					    .watchdog_grain_ns = LIMIT_SECOND,
					    .workspace_grain_ns = LIMIT_SECOND };
	struct explain_facts facts = { .host_root = sample->host_root,
				       .hash = "0123456789abcdef",
				       .argv = argv,
				       .withheld = withheld,
				       .withheld_count = 2,
				       .limits = &limits,
				       .tier_reason = "no policy asks for more" };
	struct tier_choice tier;
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct error error = ERROR_NONE;
	struct explanation explanation;
	struct policy policy;
	struct plan plan;

	sample->fill(&policy, &arena);
	(void)policy_variable(&policy, &arena, "PATH", "/usr/bin",
			      builtin(&policy, &arena, RULE_ENVIRONMENT_ALLOWLIST));
	(void)policy_variable(&policy, &arena, "TOKEN", "hunter2",
			      flag(&policy, &arena, "--env", 0));
	if (sample->host_root && ask(&policy, &error) < 0)
		return 1;
	tier = tier_choose(&policy.tier, 0);
	facts.tier = &tier;
	if (sample_plan(&policy, sample->host_root, &arena, &plan, &error) < 0 ||
	    explain_build(&policy, &plan, &facts, &arena, &explanation, &error) < 0) {
		(void)fprintf(stderr, "%s: %s\n", sample->name, error.message);
		return 1;
	}
	print(&explanation, as_json, &text);
	return fwrite(text.data, 1, text.length, stdout) == text.length && !text.failed ? 0 : 1;
}

int main(int argc, char **argv)
{
	bool as_json = argc == 3 && strcmp(argv[2], "--json") == 0;

	for (size_t i = 0; i < SAMPLE_COUNT; i++) {
		if (argc == 1)
			(void)puts(samples[i].name);
		else if (strcmp(samples[i].name, argv[1]) == 0)
			return explain_sample(&samples[i], as_json);
	}
	return argc == 1 ? 0 : 2;
}
