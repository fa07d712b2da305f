/*
 * The view of a policy that executes listed programs alone (exec.strict): which files of the host
 * those are, and what they load before they run (library.h).
 *
 * Rows of PATH_PROGRAM are the only ones of a strict policy that are mounted so that they can be
 * executed or mapped as code: whatever else the view shows, from the loader's point of view, too,
 * is data. So a file that counts as a program must be one that the task cannot write, by any path.
 */
#pragma once

struct arena;
struct error;
struct policy;

/*
 * Adds the rows, for a policy whose rulings, PATH and other rows are there. A listed program that
 * this host lacks, or that is denied, is left out; one that lies where the task writes, and a
 * script whose interpreter is not listed, are refused: -EPERM. also: a program that is shown by a
 * row of its own, whose libraries are shown, too; NULL: none.
 */
int program_view(struct arena *arena, struct policy *policy, const char *also, struct error *error);
