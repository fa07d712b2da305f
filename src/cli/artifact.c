#include "cli/artifact.h"

#include "base/arena.h"
#include "base/error.h"
#include "cli/options.h"

#include <errno.h>

int artifact_add(struct artifact_options *options, struct arena *arena, const char *value,
		 struct error *error)
{
	const char **grown;

	if (options->count >= COLLECT_LIMIT_PATTERNS)
		return error_set(error, E2BIG, "more than %u patterns by --artifact",
				 COLLECT_LIMIT_PATTERNS);
	grown = arena_push(arena, options->patterns, options->count, sizeof(*grown));
	if (!grown)
		return error_errno(error, ENOMEM, "option --artifact");
	options->patterns = grown;
	grown[options->count++] = value;
	return 0;
}

int artifact_set_path(struct artifact_options *options, const struct option *option,
		      const char *value, struct error *error)
{
	if (!value[0])
		return error_set(error, EINVAL, "option %s has an empty value", option->name);
	options->path = value;
	return 0;
}

int artifact_find_path(const struct artifact_options *options, struct arena *arena,
		       const char **ret_path, struct error *error)
{
	*ret_path = NULL;
	if (!options->path)
		return 0;
	return options->count ?
		       collect_directory(options->path, arena, ret_path, error) :
		       error_set(error, EINVAL, "--artifact-dir is for what --artifact names");
}
