/*
 * A shell's text and its tree on the edge supervisor-parse (ipc/parse.h): pieces that messages
 * bring become the whole, and the whole is cut into messages. Either side takes the other's for
 * foreign: lengths are checked before anything is kept, and what does not fit is the end of the
 * talk. Pure.
 */
#pragma once

#include "ipc/parse.h"
#include "policy/shell.h"

#include <stddef.h>
#include <stdint.h>

struct arena;

/* The most of a message's bytes that is used; message.h has the same limit. */
#define SHELL_WIRE_LIMIT_BYTES 4096u

/* A text that comes piece by piece. Zeroed before the first one, and again before the next text. */
struct shell_text {
	char bytes[SHELL_LIMIT_BYTES];
	size_t length, expected;
	bool begun;
};

/* 1: the text is whole; 0: more is to come; -EBADMSG: not what may come now. */
int shell_text_take(struct shell_text *text, uint32_t type, const void *bytes, size_t length);

/* A tree that comes piece by piece; its nodes are the arena's. Zeroed before the first one. */
struct shell_answer {
	struct shell_node *nodes;
	size_t count, expected;
	enum parse_code code;
	bool begun;
};

/* As shell_text_take(); -ENOMEM where the arena is full. What nodes say is not looked at. */
int shell_answer_take(struct shell_answer *answer, struct arena *arena, uint32_t type,
		      const void *bytes, size_t length);

/*
 * Writes the message that begins at the offset (bytes of the text, or nodes), 0 for the first one.
 * Returns the offset of the next; the last one leads to the length, or count. Even an empty text
 * or tree has a first message.
 */
size_t shell_text_put(const char *text, size_t length, size_t offset,
		      unsigned char message[static SHELL_WIRE_LIMIT_BYTES], uint32_t *ret_type,
		      size_t *ret_length);
size_t shell_answer_put(const struct shell_answer *answer, size_t offset,
			unsigned char message[static SHELL_WIRE_LIMIT_BYTES], uint32_t *ret_type,
			size_t *ret_length);
