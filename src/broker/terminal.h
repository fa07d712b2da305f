/*
 * What a task prints to a person's terminal without a pty of its own. Pure state machine over a
 * stream of bytes: text (valid UTF-8 without bidi and other format characters), CR, LF, TAB,
 * and SGR colours (ESC [ digits and semicolons m) pass; every other control sequence is shown
 * with its control bytes escaped (\x1b...) and the rest as the text it then is; invalid UTF-8 is
 * escaped byte by byte. State is carried over chunk borders: the output does not depend on where
 * the stream is cut. At most TERMINAL_SEQUENCE_BYTES are held back; a longer colour is no colour.
 * A filter is all zero at the start of its stream. Colours may be left on at the end: the caller
 * resets them.
 */
#pragma once

#include <stddef.h>

#define TERMINAL_SEQUENCE_BYTES 64
/* One byte in becomes at most 4 bytes out ("\xNN"), and held-back bytes may come out with it. */
#define TERMINAL_GROWTH 4

struct terminal_filter {
	unsigned char held[TERMINAL_SEQUENCE_BYTES];
	size_t held_length;
};

/*
 * Filters `length` bytes into out, which has room for
 * TERMINAL_GROWTH * (length + TERMINAL_SEQUENCE_BYTES). Returns the number of bytes written.
 */
size_t terminal_filter(struct terminal_filter *filter, const void *bytes, size_t length, char *out);

/* End of the stream: what is held back comes out, escaped. Room: TERMINAL_GROWTH * SEQUENCE. */
size_t terminal_filter_end(struct terminal_filter *filter, char *out);
