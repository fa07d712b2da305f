/* What the text and the JSON of `bawn trace show` have in common. */
#pragma once

#include "cli/page.h"
#include "cli/trace_dossier.h"
#include "cli/trace_place.h"
#include "cli/trace_reach.h"

/* Reasons why it cannot all be reconstructed; more are counted. */
#define SHOW_LIMIT_GAPS 12

struct show {
	const char *state_path, *state;
	bool json, with_output, all;
	struct trace_place place;
	struct trace_found found;
	struct trace_dossier from;
	struct page page;
	const char *identity, *policy_kept; /* of the task's first record; the place's arena */
	const char *gaps[SHOW_LIMIT_GAPS];  /* likewise */
	size_t gap_count;
	bool was_refused; /* before there was a policy: nothing could be done */
};

/* Texts in the place's arena, visible but for the blob's names. */
struct show_stream {
	const char *task;
	const char *name, *sha256;
	const char *blob; /* NULL: not kept */
	const char *told; /* what became of it */
	uint64_t bytes, dropped;
	bool is_kept; /* it can be read */
};

/* Notes what cannot be reconstructed: "what", or "what: object". */
void show_missing(struct show *show, const char *what, const char *object);

/* Keeps of the task's first record what the questions are answered from. */
void show_keep_start(struct show *show, const struct json_node *body);

/* What became of a stream: notes where it is not whole. */
void show_stream_read(struct show *show, const struct dossier_action *action,
		      const struct json_node *body, struct show_stream *ret_stream);

/* Prints its bytes, visible, each line behind a bar. */
void show_stream_output(struct show *show, const struct show_stream *stream);

typedef void show_late_each(struct show *show, const struct trace_line *line,
			    const struct json_node *body, void *context);

/*
 * Calls back for each record of the type, or of one below it, that was added to the task after its
 * end: the ledger has them. Line and body are the call's.
 */
void show_late(struct show *show, const char *type, show_late_each *each, void *context);

/* A decision about the task's change that has no outcome on record. */
struct show_open_decision {
	char hash[SHA256_HEX_BYTES]; /* "": it has one */
	const char *told;	     /* for people; the place's arena */
};

/* The decisions of the task; those that are open are noted as a gap when all were seen. */
struct show_decisions {
	struct show_open_decision *open; /* the place's arena */
	size_t count;
};

/* Takes a "decision" or its outcome into account. */
void show_decision_take(struct show *show, struct show_decisions *decisions,
			const struct trace_line *line, const struct json_node *body);

void show_decisions_end(struct show *show, const struct show_decisions *decisions);

/* Everything as one JSON value. 0 or a negative errno. */
int show_json(struct show *show);
