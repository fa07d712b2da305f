/*
 * What is secret to whoever writes to the trace (docs/TRACE.md, "Secrets"): the mask of this
 * installation's key with the values of an environment whose names say so.
 */
#pragma once

#include "trace/mask.h"

struct error;
struct trace_store;

/*
 * Begins the mask; the key is made by whoever comes first. environment: NAME=VALUE, NULL-ended, or
 * NULL. The mask must be MASK_NONE before; it is the caller's to end in any case.
 */
int secrets_begin(const struct trace_store *store, char *const *environment, struct mask *mask,
		  struct error *error) __attribute__((warn_unused_result));

/*
 * Adds the value where the variable's name says that it is secret; once, however often it comes. 0,
 * -ENOMEM, or -E2BIG where there are more than can be looked for: nothing may be written then.
 */
int secrets_add(struct mask *mask, const char *name, const char *value)
	__attribute__((warn_unused_result));

/* All of an environment (NAME=VALUE, NULL-ended, or NULL). */
int secrets_add_all(struct mask *mask, const char *const *environment)
	__attribute__((warn_unused_result));
