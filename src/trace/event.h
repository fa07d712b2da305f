/*
 * Events: everything that a task's record is made of, as typed values from one catalogue
 * (event.def). Whoever records is a sink; the null sink takes everything and keeps nothing.
 *
 * The intent of an action is emitted before it starts; when a sink cannot take it (negative
 * errno), nothing starts. Bodies are borrowed for the call.
 */
#pragma once

#include "base/error.h"
#include "policy/action.h"
#include "policy/denial.h"
#include "trace/change.h"
#include "trace/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy;

enum event_type {
#define EVENT(name, word, layer, body, urgency) EVENT_##name,
#include "trace/event.def"
#undef EVENT
	EVENT_TYPE_COUNT,
};

/* When it has to be on record: see event.def. */
enum event_urgency { EVENT_HELD, EVENT_WRITTEN, EVENT_DURABLE };

/* What all actions of the task stand on. */
struct event_task {
	const char *kind; /* "run", "live" */
	const char *workspace;
	const char *tier, *rung, *reason;
	const char *policy_hash; /* SHA-256 of the compiled policy, hex; NULL: refused before it */
	const struct policy *policy;
	const unsigned char *policy_blob; /* the same, compiled */
	size_t policy_bytes;
	const char *policy_kept; /* the recorder's: hash of the copy that it keeps */
	uint32_t uid, gid;
	bool host_root;
	const char *const *withheld; /* names of the caller's variables that were not passed */
	size_t withheld_count;
	const char *const *meta; /* "KEY=VALUE" of --meta, NULL-ended; NULL: none */
};

struct event_approval {
	const char *verb, *target, *shown, *answer, *by, *proof, *channel;
	const char *grant; /* what was granted; NULL: nothing */
	uint64_t expires_wall_ns, asked_ns;
	uint64_t repeated; /* how many alike this one stands for; 0: for itself */
};

/* Whether a variable's value is on record is the recorder's to decide, by its name. */
struct event_intent {
	const struct action *action;
	const char *const *meta;
};

/* The file that an action is, as it was found in the box. */
struct event_executable {
	const char *path;     /* in the box */
	const char *sha256;   /* NULL: not known, as unhashed says */
	const char *unhashed; /* "later": an event of its own follows; or why there is none */
	uint64_t bytes, device, inode;
	int64_t mtime_ns, ctime_ns;
};

struct event_start {
	int pid;	   /* in the supervisor's pid namespace */
	int executable_fd; /* O_PATH: the file that runs, as found in the box; -1: not known */
	const char *executable_path;		   /* of that, in the box */
	const struct event_executable *executable; /* of that: the recorder's */
	const struct result *measured;		   /* its layers and limits */
	const char *cgroup;			   /* NULL: none of its own */
};

/* What went through a stream of an action, and what of it is kept. */
struct event_stream {
	const char *name; /* "stdin", "stdout", "stderr" */
	uint64_t bytes;
	const char *sha256; /* of exactly these; NULL: not known */
	const char *blob;   /* the kept bytes; NULL: not kept, for the reason */
	const char *reason;
	uint64_t blob_bytes, masked, dropped;
	const char *index; /* blob of the time index; NULL: none */
};

/* A connection, request or lookup of a task, as its proxy tells (net/edge.h). Texts of ours. */
struct event_flow {
	const char *phase;    /* "opened", "closed", "stopped" */
	const char *door;     /* how it came in */
	const char *verdict;  /* "allow", "ask", "deny" */
	const char *protocol; /* NULL: not known */
	const char *outcome;  /* of the dial; NULL: there was none to tell */
	const char *target;   /* "host:port"; "" where what the task named was no host */
	const char *host;     /* NULL: it was none */
	const char *address;  /* connected to; NULL: none */
	const char *method, *path, *reason; /* NULL: none */
	struct rule_ref rule;
	uint16_t port, status; /* status 0: none seen */
	bool upgrade;	       /* the request asks for another protocol */
	uint64_t connection, request;
	uint64_t bytes_up, bytes_down, duration_ns;
	uint64_t repeated; /* how many alike this one stands for; 0: for itself */
	uint64_t left_out; /* how many others the record has no room for, before it */
};

/* What the dialer really did: its own word. */
struct event_dial {
	const char *target, *host, *outcome;
	uint16_t port;
	uint64_t address_count;	      /* that the name has */
	const char *const *addresses; /* that were tried, NULL-ended */
	uint64_t resolve_ns, connect_ns;
	uint64_t repeated; /* how many alike this one stands for; 0: for itself */
};

/* Something that only a fault or an attack can be. */
struct event_alarm {
	const char *role; /* of ours, which it is about */
	const char *what;
	const char *done; /* about it */
};

struct event_note {
	const char *text;
	const char *const *meta;
	const char *from;
};

struct event_end {
	uint64_t actions, lost; /* lost: events that could not be written */
	const char *cause;	/* "end"; "failed": the box could not be made or was lost */
};

struct event {
	enum event_type type;
	const char *task, *action, *parent; /* ids; action is "" for events of the task */
	uint64_t monotonic_ns, wall_ns;	    /* 0: the recorder's to fill in */
	union {
		struct event_task task_start;
		struct event_verdict verdict;
		struct event_approval approval;
		struct event_intent intent;
		struct event_start start;
		const struct event_executable *executable;
		const struct denial *denial;
		const struct change *change;
		const struct limit_hit *limit;
		struct event_flow flow;
		struct event_dial dial;
		struct event_alarm alarm;
		struct event_note note;
		const struct result *result;
		struct event_stream stream;
		struct event_end end;
	} body;
};

/* What went through a stream, to be kept. */
struct event_bytes {
	const char *action, *parent;
	const char *name; /* "stdin", "stdout", "stderr" */
	int fd;	      /* a file of exactly these bytes, borrowed; -1: not there, for the reason */
	int index_fd; /* when they came (broker/spool.h), borrowed; -1: not there */
	const char *reason;
	uint64_t bytes, dropped;
	const char *sha256; /* where it is known; else NULL */
};

struct event_sink {
	/* why the last event that was not taken was not: object, cause and remedy; code 0: none */
	struct error why;
	/* takes one event; 0 or a negative errno */
	int (*take)(struct event_sink *sink, const struct event *event);
	/* keeps the bytes, and takes the event of it; 0 or a negative errno */
	int (*keep)(struct event_sink *sink, const struct event_bytes *bytes);
	/* writes what is held; 0 or a negative errno */
	int (*flush)(struct event_sink *sink);
	/* does a little of what can wait; true as long as there is more of it */
	bool (*work)(struct event_sink *sink);
	/* the task has ended, and nothing follows; 0 or a negative errno with error set */
	int (*end)(struct event_sink *sink, const char *cause, struct error *error);
};

/* The sink that keeps nothing. */
extern struct event_sink event_null_sink;

/* Stamps the event with the monotonic clock, unless it has its time, and hands it to the sink. */
int event_emit(struct event_sink *sink, struct event *event) __attribute__((warn_unused_result));

/* After a failure: says why. Returns the negative code. */
int event_why(const struct event_sink *sink, int code, struct error *error);

int event_keep(struct event_sink *sink, const struct event_bytes *bytes)
	__attribute__((warn_unused_result));

/* After all that happened at once: see event.def. Costs nothing where nothing is held. */
int event_flush(struct event_sink *sink) __attribute__((warn_unused_result));

/* What can be done while nothing happens, some tenths of a millisecond of it; see event_sink. */
bool event_work(struct event_sink *sink);

int event_end(struct event_sink *sink, const char *cause, struct error *error)
	__attribute__((warn_unused_result));

const char *event_type_name(enum event_type type);
const char *event_type_layer(enum event_type type);
enum event_urgency event_type_urgency(enum event_type type);
