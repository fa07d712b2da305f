/*
 * Private to battery*.c: what is planted around the box, and the rows of what is tried in it.
 */
#pragma once

#include "broker/battery.h"
#include "broker/task_loop.h"

#include <sys/types.h>

struct result;

/* Of the box's own network namespace, where every port is free. */
#define BATTERY_LISTENER_PORT 47811u
#define BATTERY_TOKEN_BYTES 24

enum battery_answers {
	ANSWERS_NONE,
	ANSWERS_ABSENT,
	ANSWERS_CLOSED,
	ANSWERS_CALL,
	ANSWERS_NETWORK,
	ANSWERS_CAPTURED,
	ANSWERS_LANDLOCK,
	ANSWERS_EXECUTION
};

/* What is planted around the box. */
struct battery_decoys {
	char *token; /* random, in every name */
	char *directory, *file, *path_socket;
	int path_fd, abstract_fd, listener_fd, names_fd;
	unsigned port;
	uint16_t names_port;	 /* of the name server that lies; 0: the task has no network */
	struct task_watch names; /* it answers in the task's own loop */
	int shared_memory;	 /* id, or -1 */
	key_t key;
};

struct battery_maker {
	const struct effective *effective;
	struct battery_decoys *decoys;
	struct arena *arena;
	struct battery battery;
	bool quick;
	const char *area; /* a private one of the box; NULL: options show something else at each */
};

/* battery_decoy.c */

/* What was planted is to be taken away by battery_unplant() whether or not it succeeded. */
int battery_plant(const struct effective *effective, struct arena *arena,
		  struct battery_decoys *decoys, struct error *error);
void battery_unplant(struct battery_decoys *decoys);

/* battery_names.c */

/* At names_fd, which is -1 before. */
int battery_names_plant(struct battery_decoys *decoys);
/* The name that it leads to an address; NULL: no memory, or it is none. */
const char *battery_name_of(const char *text, struct arena *arena);

/* battery_list.c; where memory runs out arena_failed() tells */

enum battery_answers battery_answers(enum attempt attempt);
void battery_list(struct battery_maker *maker);

/* Rows of the layers as the supervisor read them back from outside. */
void battery_list_layers(struct battery_maker *maker, const struct result *result);
