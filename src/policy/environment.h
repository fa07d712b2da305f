/*
 * Which of the caller's variables a task gets. Pure.
 */
#pragma once

#include <stdbool.h>

/* True for names on the built-in allowlist: locale, terminal, search paths of toolchains. */
bool environment_is_passed(const char *name);

/* True for names whose value the box sets itself, whatever the caller's is. */
bool environment_is_own(const char *name);

/* A name that can be a variable at all: letters, digits and '_', no digit first, <= 256 bytes. */
bool environment_is_name(const char *name);
