/*
 * The changes of a stage with renames: a file that was removed under one name and created under
 * another, with the same content. An overlay knows no renames of the host's directories; who moves
 * one leaves as many of these as there are files in it.
 *
 * Memory and work are bounded: beyond the limits a rename is a removal and a creation.
 */
#pragma once

#include "workspace/stage.h"

/* Files that could be one end of a rename, of each kind. */
#define STAGE_LIMIT_RENAMES 16384u
/* Their paths together, of each kind. */
#define STAGE_LIMIT_RENAME_PATHS_BYTES (4u * 1024 * 1024)
/* What is read to find them: half a second of work. */
#define STAGE_LIMIT_RENAME_BYTES (512ull * 1024 * 1024)

/*
 * As stage_walk(), with rows RENAMED in the place of the created file; the removed one has none.
 * Empty files are no renames.
 */
int stage_changes(const struct stage *stage, struct error *error)
	__attribute__((warn_unused_result));
