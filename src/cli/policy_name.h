/* A policy as the verbs take it: the name of a preset, or a file. */
#pragma once

#include "workspace/policy_file.h"

struct arena;
struct error;

/* A word that is a preset's name is one; a file of that name is written ./NAME. */
bool policy_name_is_preset(const char *word);

/*
 * Loads it with what it goes on from. Faults are told on standard output as `bawn policy check`
 * does, other errors are complained of. Returns 0, or the exit status: 1 it is no policy to be
 * used, 125.
 */
int policy_name_load(const char *word, struct arena *arena, struct policy_stack *ret_stack);
