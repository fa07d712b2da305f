/*
 * Which paths, as a command spells them, are more than files (sensitive.def): secrets, places that
 * run later by themselves, what must not be removed. Text only: links are the kernel's, so a
 * caller who can resolve a path asks again with what it found. UX, not a boundary: what a box
 * does not show cannot be read however it is spelled. Pure.
 *
 * Paths are *folded*: absolute where the working directory is known, without "." and "..", at most
 * SENSITIVE_LIMIT_BYTES long. A '?', '*' or '[' in a path is taken for the shell's pattern, which
 * can stand for many names: one of them is enough.
 */
#pragma once

#include <stdbool.h>

struct arena;

/* As PATH_MAX; a longer path cannot be opened, and is sensitive since nobody can tell. */
#define SENSITIVE_LIMIT_BYTES 4096

/*
 * The path with "~", cwd and home put in front and "." and ".." folded away; relative where cwd is
 * NULL. "~name" stays as it is. NULL where it is too long or memory ran out.
 */
char *sensitive_fold(struct arena *arena, const char *cwd, const char *home, const char *path);

/* Another person's home is a secret as a whole; home and cwd may be NULL: not known. */
bool sensitive_is_secret(const char *folded, const char *home, const char *cwd);

/* Known places of secrets lie below it: "~/.config", "/etc/ssl". */
bool sensitive_holds_secrets(const char *folded, const char *home);

bool sensitive_is_persistent(const char *folded);

/* The removal of it would ruin more than one project: see RUIN, the home and all that holds it. */
bool sensitive_is_ruin(const char *folded, const char *home, const char *cwd);

/* True where path is `of`, or a directory above it; both folded, `of` may be NULL. */
bool sensitive_holds(const char *path, const char *of);

/* A variable that may be set for a program without asking: no code, path or secret in it. */
bool sensitive_is_harmless_variable(const char *name, unsigned long length);
