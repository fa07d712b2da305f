/*
 * What a stage changed, for a person or a program, onto a page (cli/page.h): as a patch that `git
 * apply` and patch(1) take, as a summary with a row for each file, or as JSON, one object a line.
 *
 * What a patch has no form for (special files, empty directories, modes beyond "executable",
 * attributes) and what deserves a look (names that the host executes, credentials) stands in lines
 * of their own that begin with "bawn:", between the patches, where both programs pass over them.
 *
 * Contents are hostile: on a terminal what is not visible is escaped; into a pipe or a file they go
 * byte for byte. Names are quoted as git does.
 */
#pragma once

#include "workspace/stage.h"

struct page;

enum stage_format { STAGE_PATCH, STAGE_STAT, STAGE_JSON };

/* Rows of a summary that are lined up together. */
#define STAGE_LIMIT_STAT_ROWS 2048u

struct stage_totals {
	uint64_t changes;	 /* rows; a directory that holds others counts too */
	uint64_t files;		 /* files, links and special files among them */
	uint64_t added, removed; /* lines; not counted for JSON */
	uint64_t unread;
	unsigned marks; /* all that were seen */
};

/*
 * stage: its descriptors; the rest is set here. 0, or a negative errno; without a message where the
 * page could not be written (-EPIPE: nobody reads any more).
 */
int stage_show(const struct stage *stage, enum stage_format format, struct page *page,
	       struct stage_totals *ret_totals, struct error *error)
	__attribute__((warn_unused_result));
