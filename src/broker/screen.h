/*
 * What a task with a terminal of its own (--tty) may do to the caller's terminal. Pure state
 * machine over a stream of bytes, for a UTF-8 terminal of the xterm family.
 *
 * The user asked for a terminal, so editors and pagers must work: text, movement, colours, modes,
 * titles, and the queries whose answers consist of numbers pass byte for byte. A terminal is also a
 * program of the user outside of the box, with powers that no task has. Dropped, whole:
 *
 *   - what makes it *type* text that the task chose: reports of titles and icons (CSI 20/21 t),
 *     status strings and terminfo (DCS), the answerback (ENQ), macros and user-defined keys (DCS);
 *     typed after the task's end they would be the shell's input
 *   - the clipboard (OSC 52, 5522): reading is a read outside of the view, writing plants commands
 *   - checksums and reports of what stands on the screen (DECRQCRA, DECRQPSR): maybe others'
 *   - files, programs and the printer: OSC 1337, 777, 9, 50, 7, APC (kitty reads and deletes files
 *     by name), media copy (CSI i), tmux's pass-through (DCS tmux; ESC k)
 *   - moves and sizes of the window (CSI 1-10 t), self tests, other encodings (ESC %, ESC SP)
 *
 * OSC and DCS are lists of what passes (no DCS does, so no sixel pictures); what passes is emitted
 * in one canonical form, printable and ended by us, so that no emulator can see another end of it
 * than we do. C1 controls, as code points or stray bytes, become their ESC form.
 *
 * What remains, and a user who gives a task his terminal should know: it can draw anything, a
 * false prompt included; it can set the title; an answer of numbers can arrive after its end and be
 * typed to the shell, without a newline. Modes that a task leaves on (mouse, paste, alternate
 * screen, keyboard protocols, colours) are undone by screen_filter_end(), whatever ended the task.
 *
 * All zero at the start of a stream. State is carried over chunk borders: the output does not
 * depend on where the stream is cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A longer control sequence than any program's (SGR with two true colours and all attributes). */
#define SCREEN_SEQUENCE_BYTES 128
/* A longer title or link is cut there. */
#define SCREEN_STRING_BYTES 2048
/* One byte in becomes at most 4 out, and held-back bytes come out with it. */
#define SCREEN_GROWTH 4
#define SCREEN_END_BYTES 512

enum screen_state {
	SCREEN_GROUND,
	SCREEN_ESCAPE,	     /* ESC seen */
	SCREEN_INTERMEDIATE, /* ESC and 0x20-0x2f */
	SCREEN_CONTROL,	     /* CSI */
	SCREEN_CONTROL_DROP, /* a CSI that does not pass, up to its final byte */
	SCREEN_NUMBER,	     /* OSC, before its first ; */
	SCREEN_STRING,	     /* an OSC that passes */
	SCREEN_STRING_ESCAPE,
	SCREEN_DROP, /* a string that does not pass */
	SCREEN_DROP_ESCAPE,
	SCREEN_SKIP, /* bytes of a Linux console palette */
};

struct screen_filter {
	enum screen_state state;
	unsigned char held[SCREEN_SEQUENCE_BYTES]; /* of a sequence */
	size_t held_length;
	unsigned char point[4]; /* of a code point */
	size_t point_length;
	size_t string_length;
	bool is_osc;	/* a dropped string ends at BEL too */
	uint64_t modes; /* bit i: row i of the table of modes was left changed */
	/* kitty keyboard flags, of the main screen and of the alternate one */
	unsigned pushed[2];
	bool has_flags[2]; /* set below the first that was pushed */
	bool is_touched;   /* any sequence passed */
	bool is_linked;	   /* OSC 8 */
	bool is_coloured;  /* OSC 4, 10-19: the palette */
	bool has_region;   /* DECSTBM */
	bool has_keypad;   /* ESC = */
	bool has_modified; /* modifyOtherKeys */
	uint64_t dropped;  /* sequences that did not pass */
};

/* Returns the bytes written to out: at most SCREEN_GROWTH * (length + SCREEN_SEQUENCE_BYTES). */
size_t screen_filter(struct screen_filter *filter, const void *bytes, size_t length, char *out);

/*
 * The end of the stream: a sequence that is not whole is dropped, what was left on is undone.
 * Nothing for a stream without sequences. Room: SCREEN_END_BYTES.
 */
size_t screen_filter_end(struct screen_filter *filter, char *out);
