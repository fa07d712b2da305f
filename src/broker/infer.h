/*
 * Denials of files and of the network, inferred from what the command itself said. Pure.
 *
 * When a command fails, its operands and the last bytes of its standard error are searched for
 * paths that the policy does not show, hides or protects, and for the texts with which programs
 * report a missing network. Only what the task named is ever told, and nothing is looked up on the
 * host: whether a hidden path exists is not betrayed. A path of which the error text does not
 * speak of a refusal (no such file, permission denied, read-only file system, ...) is not
 * reported.
 *
 * A wrong accusation is worse than a missed one. A path that the box lacks is reported only where
 * it is named in full (absolute, by ~, or by a ".." that the command line has) and lies outside of
 * the private areas; a relative one only where the view hides, protects or write-protects it; an
 * operand only where an error text names it, or names no path at all. "Permission denied" on a path
 * that is shown is ordinary ownership, unless the path is protected and was to be written.
 * "Read-only file system" means that something was to be written, and so do the words of creating
 * and removing.
 *
 * Objects: paths absolute and clean; hosts as named, with the port where one is written, never
 * with the user and password of a URL; "" where a missing network is told of without a host.
 */
#pragma once

#include <stddef.h>

struct denial;
struct denial_list;
struct policy;

#define INFER_TAIL_BYTES 4096

/*
 * argv is NULL-ended. tail is the end of standard error, at most INFER_TAIL_BYTES (hostile bytes,
 * maybe cut in the middle of a word). Relative paths are taken as below cwd. Adds to list.
 */
void infer_denials(const struct policy *policy, const char *const *argv, const char *cwd,
		   const char *tail, size_t tail_length, struct denial_list *list);

/*
 * Not pure: of what was to be written in a directory that the box shows, the remedy names what
 * there is, the path or the nearest directory above it, since an option for what is not there
 * fails. What the box does not show is not looked for.
 */
void infer_settle(const struct policy *policy, struct denial *denial);
