/*
 * Errors as values.
 *
 * A function that can fail returns 0 or positive for success and a negative errno for failure.
 * Where the caller needs more than the number it passes a `struct error`, which lives on the
 * caller's stack: no heap, so it can be filled after clone() and travel inside a message.
 *
 * The origin sets it once, with the object and the errno's text; module boundaries add context
 * in front. A policy's "no" is a verdict, never an error.
 */
#pragma once

#include <stdarg.h>

/* Room for a path of usual length, an errno's text and two contexts; longer texts are cut. */
#define ERROR_MESSAGE_BYTES 512

struct error {
	int code; /* negative errno, 0 when unset */
	char message[ERROR_MESSAGE_BYTES];
};

#define ERROR_NONE ((struct error){ 0 })

/* Sets code (the sign does not matter) and message; returns the negative code. */
int error_set(struct error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* As error_set, and appends ": " and the errno's text. */
int error_errno(struct error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the message; returns the code that is already there. */
int error_context(struct error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Appends text to the message; returns the code that is already there. */
int error_append(struct error *error, const char *text);

/* Text of an errno without locale, allocation or shared state; "unknown error" if it has none. */
const char *error_text(int code);
