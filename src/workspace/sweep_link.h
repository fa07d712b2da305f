/*
 * New git files that git itself makes: of linked worktrees (`git worktree add`) and of submodules
 * (`git submodule update`). Such a file says "gitdir: PATH", and PATH leads to worktrees/<name> or
 * modules/<name> of a git directory that lies under an overlay: all that stands there on the host
 * was there before, or was looked through by the commit engine. The object stores, which are
 * written in place, are no such place.
 *
 * It is left only where that directory names this very place as its work tree, and where git is not
 * configured to run or read something in there (core.hooksPath relative to a work tree).
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct sweeper;

/* True where the name that the walk is at may be one. */
bool sweep_is_link(const struct sweeper *sweeper, const struct stat *status);

/* Adds it to the result; its path may be NULL where memory ran out. */
int sweep_add_link(struct sweeper *sweeper, const char *path);
