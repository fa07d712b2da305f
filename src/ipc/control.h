/*
 * The control protocol: how a person's verbs (ps, exec, attach, freeze, stop ...) speak with the
 * supervisor of a task, over a SOCK_SEQPACKET socket in the runtime directory (broker/runtime.h),
 * in frames of ipc/message.h. Both ends are ours and of the same user; a box reaches neither.
 *
 * A connection begins in state NEW. There the client may ask:
 *
 *   STATUS                    REPLY with a sealed memfd (ipc/info.h); the state stays NEW
 *   FREEZE, THAW              REPLY; the state stays NEW
 *   NOTE                      sealed memfd of the note; REPLY when it is on record; stays NEW
 *   STOP, KILL, END           REPLY when it has begun; the connection then stays open until the
 *                             supervisor has gone. STOP and END carry struct control_stop
 *   EXEC                      sealed memfd of the request, out, err and, with CONTROL_INPUT, in
 *   ATTACH                    struct control_attach; out, err and, with CONTROL_INPUT, in
 *
 * EXEC and ATTACH are answered by STARTED, or by REPLY with a negative code and the end of the
 * connection. From then on the client may send SIGNAL, WINDOW and, before it stops, PAUSE: PAUSED
 * says that nothing of the supervisor's is left on its terminal. The supervisor ends it by RESULT
 * and closes. A client that goes away in mid-action: its action gets SIGHUP, the grace, the kill;
 * one that was attached is only detached. Every other message, a wrong length or number of
 * descriptors closes the connection.
 *
 * Fixed parts are structs of this header, as both ends are one build: CONTROL_VERSION stands in
 * each EXEC, NOTE and STATUS, since a supervisor may be older than the client.
 *
 * The request of an EXEC is a blob of counted, NUL-ended strings (control_encode()), as it is
 * longer than a message; a NOTE is one too (control_encode_note()). Decoding believes nothing: all
 * lengths are checked against the blob and the named limits; the blob must be used up exactly.
 * Errors: -EBADMSG (malformed), -EPROTONOSUPPORT (another version), -E2BIG (a named limit),
 * -ENOMEM.
 */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

struct error;
struct buffer;

#define CONTROL_VERSION 3u

/* What execve(2) takes at the most for usual stacks is 2 MiB; the rest is counts and lengths. */
#define CONTROL_LIMIT_REQUEST_BYTES (4u * 1024 * 1024)
/* One string of execve(2): MAX_ARG_STRLEN, with its NUL. */
#define CONTROL_LIMIT_STRING_BYTES (128u * 1024)
#define CONTROL_LIMIT_ARGUMENTS 65536u
/* As many as `bawn run --env` takes. */
#define CONTROL_LIMIT_VARIABLES 1024u
/* What an agent says of itself (--meta); a prompt is referred to, not repeated. */
#define CONTROL_LIMIT_META 64u
#define CONTROL_LIMIT_META_KEY_BYTES 64u
#define CONTROL_LIMIT_META_BYTES 65536u
/* Patterns of artifacts, as many as `bawn run --artifact` takes. */
#define CONTROL_LIMIT_ARTIFACTS 64u
/* A note of `bawn trace note` is read by people; with its meta it fits a line of the trace. */
#define CONTROL_LIMIT_NOTE_BYTES 65536u
#define CONTROL_LIMIT_NOTE_BLOB_BYTES (1024u * 1024)
/* A line for a person; longer texts are cut. */
#define CONTROL_LIMIT_TEXT_BYTES 1024u
/* JSON and lines of a result, or a status. */
#define CONTROL_LIMIT_BLOB_BYTES (64u * 1024 * 1024)
/* "a-" and 20 letters, with room (ACTION_ID_BYTES of policy/action.h). */
#define CONTROL_ID_BYTES 24

enum control_type {
	/* client to supervisor */
	CONTROL_STATUS = 1,
	CONTROL_EXEC,
	CONTROL_ATTACH,
	CONTROL_SIGNAL,
	CONTROL_WINDOW,
	CONTROL_FREEZE,
	CONTROL_THAW,
	CONTROL_STOP,
	CONTROL_KILL,
	CONTROL_END,
	CONTROL_NOTE,
	CONTROL_PAUSE,
	/* supervisor to client */
	CONTROL_REPLY = 64,
	CONTROL_STARTED,
	CONTROL_RESULT,
	CONTROL_PAUSED,
};

enum control_flag {
	CONTROL_INPUT = 1 << 0,	   /* there is an input; without it /dev/null */
	CONTROL_TTY = 1 << 1,	   /* a terminal of its own; window holds its size */
	CONTROL_EVIDENCE = 1 << 2, /* the result with the layers read back (--json, --status-fd) */
	CONTROL_PROGRESS = 1 << 3, /* err is the client's own terminal: a status line is welcome */
};
#define CONTROL_FLAGS (CONTROL_INPUT | CONTROL_TTY | CONTROL_EVIDENCE | CONTROL_PROGRESS)

/* In a message both are 0-ended and padded with 0. */
struct control_attach {
	char action[CONTROL_ID_BYTES]; /* "": the newest that runs */
	uint32_t flags;		       /* CONTROL_INPUT */
};

struct control_signal {
	int32_t number;
};

struct control_window {
	uint16_t rows, columns, x_pixels, y_pixels;
};

struct control_stop {
	uint64_t grace_ns; /* 0: the task's own */
};

/* Behind it: the text, without a NUL, at most CONTROL_LIMIT_TEXT_BYTES. */
struct control_reply {
	int32_t code; /* 0 or a negative errno */
};

struct control_started {
	char action[CONTROL_ID_BYTES];
	uint32_t flags; /* CONTROL_TTY: the client sets its terminal to raw */
};

/* With a sealed memfd: json_bytes of JSON, then text_bytes of lines for standard error. */
struct control_result {
	uint32_t exit_status;
	uint32_t reserved; /* 0 */
	uint64_t json_bytes, text_bytes;
};

/* A decoded EXEC. */
struct control_request {
	const char *const *argv; /* NULL-ended, argc > 0 */
	size_t argc;
	const char *cwd;	      /* "": the task's */
	const char *const *variables; /* NAME=VALUE, over the task's environment */
	size_t variable_count;
	const char *const *meta; /* KEY=VALUE, each key once; for the record */
	size_t meta_count;
	const char *const *artifacts; /* patterns of files that are copied out afterwards */
	size_t artifact_count;
	const char *artifact_path; /* where to; clean, or "": the default */
	uint64_t timeout_ns;	   /* 0 = none */
	uint32_t flags;		   /* enum control_flag */
	struct winsize window;
};

/* Appends the blob. A limit is refused here already, with a message for the person. */
int control_encode(const struct control_request *request, struct buffer *buffer,
		   struct error *error);

/* The arena owns the result, which points into nothing else. */
int control_decode(const void *bytes, size_t length, struct arena *arena,
		   struct control_request *ret_request);

/* A decoded NOTE. */
struct control_note {
	const char *text;	 /* any bytes but NUL, not empty */
	const char *const *meta; /* as of a request; NULL-ended */
	size_t meta_count;
};

/* The same for a note. */
int control_encode_note(const struct control_note *note, struct buffer *buffer,
			struct error *error);
int control_decode_note(const void *bytes, size_t length, struct arena *arena,
			struct control_note *ret_note);

/*
 * Reads a whole memfd into the arena (NUL-ended behind its end): it must be sealed against every
 * change and not longer than limit_bytes. -EBADMSG, -E2BIG, -ENOMEM or the kernel's errno.
 */
int control_read_sealed(int fd, size_t limit_bytes, struct arena *arena, const char **ret_bytes,
			size_t *ret_length);

/* An id of a task or an action: "t-" or "a-", then letters and digits, shorter than its room. */
bool control_is_id(const char *text, char kind);
