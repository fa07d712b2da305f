/*
 * Why rung full is or is not possible on a host, and what to do: words for a probe report. Pure.
 *
 * A refusal names the first probe that a start would meet, its cause as far as settings and signs
 * of the surroundings tell one, and the remedy. `bawn doctor` ends with exactly this text where
 * `bawn run` would refuse with it.
 */
#pragma once

#include "isolate/probe.h"

struct error;

#define DIAGNOSIS_BYTES 384

/* The cause of a failed probe and what to do about it; a sentence each, without full stop. */
struct diagnosis {
	char reason[DIAGNOSIS_BYTES];  /* the probe, what it met, and the cause */
	char met[DIAGNOSIS_BYTES / 3]; /* without the cause */
	const char *cause;
	const char *remedy; /* "" where there is none but another host */
};

void diagnosis_make(const struct probe_report *report, enum probe probe,
		    struct diagnosis *ret_diagnosis);

/* How well a layer would be in force in a run here, by its probes. */
enum enforcement diagnosis_layer(const struct probe_report *report, enum layer layer);

/* The first probe that makes rung full impossible; PROBE_COUNT: none. */
enum probe diagnosis_first(const struct probe_report *report);

/* 0 when rung full is possible; otherwise a negative errno and the refusal. */
int diagnosis_refusal(const struct probe_report *report, struct error *error);

/*
 * After a start that failed: tries the host out, and when it is to blame the refusal takes the
 * place of the error's message: a run's words are doctor's. Not pure.
 */
void diagnosis_explain(const struct probe_subject *subject, struct error *error);
