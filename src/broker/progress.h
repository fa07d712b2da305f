/*
 * The status line of a person who waits: "running 12s, cpu 8.1s, memory 310M of 2G, 14 processes",
 * the last line of the caller's terminal while an action is at work and silent. It belongs to
 * nobody's output: it is wiped before anything else is written there, and at the end.
 *
 * Where: a terminal in whose foreground we are, or the client that we work for, of which we get a
 * description of our own (/proc/self/fd; the caller's stays as it is), so that nothing here waits,
 * not for ^S either. A terminal that is another session's, or another user's, or TERM=dumb, has no
 * line. Without colour, so NO_COLOR has nothing to forbid.
 *
 * How: the cursor and the colours are saved, and put back behind the text (DECSC, DECRC), so that
 * the line can be erased from its beginning, wherever a window that became narrower broke it, and
 * what the action left on goes on. The text is always shorter than the window is wide: what does
 * not fit is left out from the right.
 *
 * When it may be shown is the caller's knowledge: nothing that the action began stands on the line.
 * Nothing fails: a terminal that takes nothing has no line.
 */
#pragma once

#include "policy/limit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* An action that ends sooner has none; then anew at most that often. */
#define PROGRESS_AFTER_NS (2ull * 1000 * 1000 * 1000)
#define PROGRESS_INTERVAL_NS (1000ull * 1000 * 1000)
/* A wider line says no more. */
#define PROGRESS_TEXT_BYTES 192

struct progress_facts {
	const char *state; /* "running" */
	uint64_t elapsed_ns;
	bool is_measured; /* the next three are known */
	uint64_t cpu_ns, memory_bytes, processes;
	/* LIMIT_NONE: not told */
	uint64_t elapsed_limit_ns, cpu_limit_ns, memory_limit_bytes, process_limit;
};

struct progress {
	int fd;		 /* owned; -1: no line */
	pid_t client;	 /* who is to be in the foreground; 0: ourselves */
	unsigned length; /* characters that are shown; 0: nothing */
};

#define PROGRESS_NONE ((struct progress){ .fd = -1 })

/*
 * The line in at most `columns` characters, ASCII, NUL-ended; 0 (and "") where not even its
 * beginning fits. Pure.
 */
size_t progress_format(const struct progress_facts *facts, unsigned columns,
		       char ret_text[static PROGRESS_TEXT_BYTES]);

/*
 * terminal: the caller's descriptor, borrowed for the call. term: its type, NULL where unknown.
 * client: the process whose terminal it must be; 0: it is ours.
 */
void progress_begin(struct progress *progress, int terminal, const char *term, pid_t client);

/* Draws it in the place of the last one. The window is asked for its width each time. */
void progress_show(struct progress *progress, const struct progress_facts *facts);

/* Wipes it, if it is there. Before any byte that anybody writes to this terminal. */
void progress_wipe(struct progress *progress);

void progress_end(struct progress *progress);
