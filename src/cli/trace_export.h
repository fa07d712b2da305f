/* What the formats of `bawn trace export` have in common. */
#pragma once

#include "cli/page.h"
#include "cli/trace_dossier.h"
#include "cli/trace_place.h"
#include "trace/ocsf.h"

#include <stddef.h>

struct export
{
	const char *state_path;
	size_t format;
	struct trace_place place;
	struct trace_found found;
	struct page page;
	struct trace_dossier from; /* for OCSF */
	struct ocsf_context context;
	char action[ACTION_ID_BYTES]; /* that the context is of */
	char *command, *path;	      /* owned; the context's */
};

/*
 * What an action wrote, with its times, as an asciicast of version 2 (docs.asciinema.org). 0, a
 * negative errno of the output, or the exit status 1 after a complaint.
 */
int export_recording(struct export *export);
