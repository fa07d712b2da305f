/* A task's dossier from its chain, and the records that it points to: for show and the exports. */
#pragma once

#include "cli/trace_place.h"
#include "trace/blob.h"
#include "trace/dossier.h"

#include <stdbool.h>

struct trace_dossier {
	struct trace_place *place; /* borrowed */
	int fd;			   /* owned: the chain */
	char *bytes;		   /* owned: of the record that was read last */
	size_t capacity;
	struct dossier dossier;
	struct trace_line line;	      /* the record that was read last */
	const struct json_node *body; /* in the place's scratch arena */
};

/* Reads the chain; only: an action's id, or NULL. 0, or the exit status after a complaint. */
int trace_dossier_open(struct trace_dossier *ret, struct trace_place *place, const char *task,
		       const char *only);

/*
 * Reads the record at a place into line and body, which hold until the next. NULL where there is
 * none, or after a complaint.
 */
const struct json_node *trace_dossier_read(struct trace_dossier *from, struct dossier_place at);

void trace_dossier_close(struct trace_dossier *dossier);

#define CLEANUP_TRACE_DOSSIER __attribute__((cleanup(trace_dossier_close)))

/* A stream's or index's bytes, by the name of the blob. */
enum trace_blob_state {
	TRACE_BLOB_KEPT,
	TRACE_BLOB_REMOVED, /* on record in the ledger */
	TRACE_BLOB_MISSING,
};

enum trace_blob_state trace_blob_find(struct trace_place *place, const char *task,
				      const char *name);
const char *trace_blob_state_name(enum trace_blob_state state);

/* Its plain bytes, to read by blob_read(). Negative errno with a message. */
int trace_blob_open(struct trace_place *place, const char *task, const char *name,
		    struct blob_reader *ret_reader, struct error *error);
