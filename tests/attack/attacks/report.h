/*
 * What every attack says, in one line on standard output: SUCCEEDED, or that it was refused and
 * with which error. "SUCCEEDED" means that the call reached its object; no attack changes the host.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

static inline int succeeded(const char *what)
{
	printf("SUCCEEDED: %s\n", what);
	return 0;
}

static inline int refused(int code)
{
	printf("refused: %s\n", code ? strerrorname_np(code) : "by its effect");
	return 1;
}

/* For calls that give a descriptor, 0 or -1. */
static inline int judge(long result, const char *what)
{
	return result < 0 ? refused(errno) : succeeded(what);
}
