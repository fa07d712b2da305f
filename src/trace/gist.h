/*
 * What a record says in one line, for a person: a command as a shell would take it, a denial with
 * its rule, a result with its cause. Nothing of a record reaches the text but what may be shown
 * (buffer_visible()): records hold what tasks said. Pure.
 */
#pragma once

#include "base/json_tree.h"

#include <stddef.h>
#include <stdint.h>

struct buffer;
struct trace_line;

/* An id in a line of a list: its first 10 characters, which name it (a unique prefix does). */
#define GIST_ID_BYTES 10

/* argv as one line that a shell would split alike; longer than `most` bytes: cut, with "...". */
void gist_command(const struct json_node *argv, size_t most, struct buffer *buffer);

/* Any text of a record, cut to about `most` bytes. */
void gist_text(const struct json_node *node, size_t most, struct buffer *buffer);

/* `built-in "home.private"`, `flag --read`, `"id" file:line`: as rule_print(). */
void gist_rule(const struct json_node *rule, struct buffer *buffer);

/* A denial as in a result: "fs.read /x (built-in ..., inferred); to allow: --read /x". */
void gist_denial(const struct json_node *denial, struct buffer *buffer);

/* "renamed /w/b from /w/a (applied)", each text cut to about so many bytes. */
void gist_change(const struct json_node *change, size_t limit_bytes, struct buffer *buffer);

/* "memory reached: 2G, seen 2.1G (polled)" */
void gist_limit(const struct json_node *limit, struct buffer *buffer);

/* A row of `network.targets`: "example.org:443 https x3 (flag --allow-host), 2K up, 1M down". */
void gist_target(const struct json_node *target, struct buffer *buffer);

/* How an action ended, from the body of its result: "exit 2", "signal 9", "timed out". */
void gist_end(const struct json_node *result, struct buffer *buffer);

/* "{agent=claude, turn=3}": nothing for an empty object. */
void gist_meta(const struct json_node *meta, struct buffer *buffer);

/* What the record's body says, by its type; types that are not known as their JSON, cut. */
void gist_body(const struct trace_line *line, const struct json_node *body, struct buffer *buffer);

/* The whole line, without its newline: time, ids, type, body. */
void gist_line(const struct trace_line *line, const struct json_node *body, struct buffer *buffer);

/* A raw string of a line (with its escapes), visible; "-" for null. */
void gist_view(struct json_view view, size_t most, struct buffer *buffer);
