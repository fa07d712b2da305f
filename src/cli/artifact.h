/* `--artifact` and `--artifact-dir`, which run and task exec have. */
#pragma once

#include "workspace/collect.h"

struct arena;
struct error;
struct option;

struct artifact_options {
	const char **patterns; /* the arena's */
	size_t count;
	const char *path; /* as given; NULL: the default */
};

/* Of each command: the texts of the two options. */
#define ARTIFACT_HELP                                                                              \
	"afterwards copy out the regular files below the workspace that this matches, with their " \
	"SHA-256 in the result"

int artifact_add(struct artifact_options *options, struct arena *arena, const char *value,
		 struct error *error);
int artifact_set_path(struct artifact_options *options, const struct option *option,
		      const char *value, struct error *error);

/* The real path of the place that was given, NULL where none was. */
int artifact_find_path(const struct artifact_options *options, struct arena *arena,
		       const char **ret_path, struct error *error);
