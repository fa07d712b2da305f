/* What the probes share (probe.c, probe_landlock.c). Not for others. */
#pragma once

#include "isolate/probe.h"

/* One probe in its own process. */
struct trial {
	const struct probe_subject *subject;
	int directory_fd; /* an empty directory of ours, or -1 */
	char evidence[PROBE_EVIDENCE_BYTES];
};

/* 0, or a negative errno; evidence says what was seen in both cases, "" for the usual. */
typedef int probe_function(struct trial *trial);

#define PROBE(name, word, layer, need, function) probe_function function;
#include "isolate/probe.def"
#undef PROBE
