/*
 * What a person is told of a result, as the lines of standard error.
 */
#pragma once

struct buffer;
struct result;

/*
 * Appends "bawn: ..." lines: why bawn failed, the limit that was reached, each denial with its
 * remedy, and what changed of that which tools outside would run.
 */
void report_lines(const struct result *result, struct buffer *buffer);

/* Of these, what --quiet leaves: why bawn failed. */
void report_failure(const struct result *result, struct buffer *buffer);
