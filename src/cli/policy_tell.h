/* Differences of policies in words, for the verbs that show them. */
#pragma once

struct buffer;
struct differences;

/* "NAME newly allows:" and its lines, then "NAME newly denies:"; nothing where there are none. */
void policy_tell(const struct differences *differences, const char *name, struct buffer *buffer);
