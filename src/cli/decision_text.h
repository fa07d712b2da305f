/* A decision about a command (broker/decide.h) in words, for `bawn policy decide` and explain. */
#pragma once

struct buffer;
struct decision;
struct json;

/* "ask: fs.write x (built-in "command.fs.write": makes or changes a file)", then all of it. */
void decision_print(const struct decision *decision, struct buffer *buffer);

/* Members verdict, reason, rule, request, tier, segments, requests of an object that is open. */
void decision_json(const struct decision *decision, struct json *json);
