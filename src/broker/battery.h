/*
 * The battery of `bawn verify`: attempts (battery.def) made inside of a real box under the options
 * of a run, each compared with what the plan claims.
 *
 * Around the box the battery plants what must not be reached from inside (a file, a socket with a
 * path, an abstract one, a listener, a segment of shared memory) and takes all of it away again.
 */
#pragma once

#include "broker/attempt.h"
#include "broker/effective.h"
#include "policy/layer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct action;
struct arena;
struct error;
struct request;

/* Where the probe's program is shown inside. */
#define BATTERY_PROGRAM "/run/bawn-probe"

/*
 * What is below this name is allowed in verify's own task (broker/egress_request.c), where the
 * policy gives a network, and never resolved by anybody's name server (RFC 6761, 6.4).
 */
#define BATTERY_NAMES "bawn-verify.invalid"
#define BATTERY_NAMES_PORT 80

#define BATTERY_TIME_NS (60ull * 1000 * 1000 * 1000)
#define BATTERY_QUICK_TIME_NS (10ull * 1000 * 1000 * 1000)

struct battery_row {
	enum attempt attempt; /* ATTEMPT_COUNT: a layer read back from outside */
	enum layer layer;     /* that answers, by the claim */
	const char **arguments;
	size_t argument_count;
	size_t shown;  /* that many arguments are worth showing */
	bool works;    /* the claim: it works, or is refused */
	bool answered; /* the probe told what became of it */
	int code;      /* 0: it worked; negative errno */
	uint64_t duration_us;
	bool passed;
	const char *outcome; /* in words */
};

struct battery {
	struct battery_row *rows;
	size_t count, failed;
};

/*
 * Adds to a request what the box needs for the battery: the program, the listeners, standard
 * input, the time. To be called once, before the policy is made.
 */
int battery_prepare(struct request *request, bool quick, struct arena *arena, struct error *error);

/*
 * Runs the battery. claimed says what is claimed, enforced what is set up; both are the same
 * policy's (and for `bawn verify` one object). Standard input of the caller is replaced.
 */
int battery_run(const struct effective *claimed, const struct effective *enforced,
		const struct action *action, struct arena *arena, struct battery *ret_battery,
		struct error *error);

const char *battery_name(const struct battery_row *row);
