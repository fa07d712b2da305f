/*
 * What was refused before there was a task is on record too: as a task of its own, with what was
 * asked for, the verdict of each rule that said no, and a result. Best effort: a record that cannot
 * be written changes nothing about the refusal.
 */
#pragma once

#include <stdbool.h>

struct arena;
struct denial_list;
struct effective;
struct request;
struct result;

/* argv NULL: a live task was to be made. result: of the refusal; its message says why. */
void refusal_record(const struct effective *effective, const struct request *request,
		    const char *const *argv, const struct denial_list *denials,
		    const struct result *result, struct arena *arena);
