/*
 * golden-plans: prints the names of the fixed policies, or the plan of one of them.
 */
#include "policies.h"

#include "base/buffer.h"

#include <stdio.h>

static int print_plan(const struct sample *sample)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct error error = ERROR_NONE;
	struct policy policy;
	struct plan plan;

	sample->fill(&policy, &arena);
	if (sample_plan(&policy, sample->host_root, &arena, &plan, &error) < 0) {
		(void)fprintf(stderr, "%s: %s\n", sample->name, error.message);
		return 1;
	}
	plan_print(&plan, &policy, &text);
	return fwrite(text.data, 1, text.length, stdout) == text.length ? 0 : 1;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < SAMPLE_COUNT; i++) {
		if (argc == 1)
			(void)puts(samples[i].name);
		else if (strcmp(samples[i].name, argv[1]) == 0)
			return print_plan(&samples[i]);
	}
	return argc == 1 ? 0 : 2;
}
