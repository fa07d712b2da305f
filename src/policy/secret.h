/*
 * Which files hold secrets, by their names and where these do not tell by what is in them
 * (secret.def). For the workspace, where people keep them beside their work; the caller's home is
 * not shown at all. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum secret_content {
	SECRET_NONE,	    /* it is none, by its name */
	SECRET_ANY,	    /* whatever is in it */
	SECRET_PRIVATE_KEY, /* a private key in a text form */
	SECRET_REGISTRY,    /* of a package manager's settings: a token that stands there itself */
	SECRET_ACCOUNT,	    /* a key, secret or token of an account, in JSON */
};

/* As far as a file is looked through: such files are short. */
#define SECRET_LIMIT_BYTES 16384u

/* parent: the name of the directory that it lies in; "" for the workspace itself. */
enum secret_content secret_of_name(const char *parent, const char *name);

/* True where the file has in it what makes it one. */
bool secret_is_in(enum secret_content content, const char *bytes, size_t length);

/* A directory in which nobody keeps secrets, and which is large. */
bool secret_is_skipped(const char *directory);
