/*
 * Events as records: what the body of each type is made of (docs/TRACE.md). Pure.
 */
#pragma once

struct event;
struct json;

/* Writes the members of the event's body; the object is the caller's. */
void record_body(const struct event *event, struct json *json);

/* The member `meta`, of "KEY=VALUE", NULL-ended or NULL. */
void record_meta(const char *const *meta, struct json *json);
