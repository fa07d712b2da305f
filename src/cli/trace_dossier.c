#include "cli/trace_dossier.h"

#include "base/error.h"
#include "base/fd.h"
#include "trace/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(struct trace_dossier *dossier, const char *only)
{
	struct trace_place *place = dossier->place;
	struct trace_scan CLEANUP_SCAN scan = { .fd = -1 };
	struct scan_line found;
	struct trace_line line;
	int result;

	scan_begin(&scan, dossier->fd, NULL, 0, 1);
	while ((result = scan_next(&scan, &found)) > 0) {
		if (!trace_place_envelope(place, &found, &line))
			continue;
		if (!dossier_take(&dossier->dossier, &line, only)) {
			trace_complain("%s: more than can be told; `bawn trace query` prints its "
				       "records",
				       place->file.name);
			return 125;
		}
	}
	trace_place_told(place);
	if (result < 0)
		trace_complain("%s: %s", place->file.name, error_text(result));
	return result < 0 ? 125 : 0;
}

int trace_dossier_open(struct trace_dossier *ret, struct trace_place *place, const char *task,
		       const char *only)
{
	*ret = (struct trace_dossier){ .place = place, .fd = -1 };
	ret->dossier.arena = &place->arena;
	if (trace_place_chain(place, task, &ret->fd) < 0)
		return 1;
	return read_all(ret, only);
}

const struct json_node *trace_dossier_read(struct trace_dossier *from, struct dossier_place at)
{
	struct scan_line line = { .length = at.length, .offset = at.offset, .number = at.number };
	ssize_t count;

	from->body = NULL;
	if (!at.length)
		return NULL;
	if (at.length > from->capacity) {
		char *grown = realloc(from->bytes, at.length);

		if (!grown)
			return NULL;
		from->bytes = grown;
		from->capacity = at.length;
	}
	do
		count = pread(from->fd, from->bytes, at.length, (off_t)at.offset);
	while (count < 0 && errno == EINTR);
	line.bytes = from->bytes;
	/* shorter than it was: somebody changes what was recorded */
	if (count != (ssize_t)at.length ||
	    !trace_place_line(from->place, &line, &from->line, &from->body))
		from->body = NULL;
	return from->body;
}

void trace_dossier_close(struct trace_dossier *dossier)
{
	fd_close(&dossier->fd);
	free(dossier->bytes);
	dossier->bytes = NULL;
	dossier_free(&dossier->dossier);
}
