/*
 * Where the verbs that print much print it: standard output, in pieces, through a pager where that
 * is a terminal. Who reads no further (`| head`, q in the pager) ends the verb quietly: page_put()
 * says -EPIPE, and the verb ends as if all had been read.
 *
 * Text that comes from a task goes through buffer_visible() before it gets here; the only control
 * sequences are the colours of page_colour(). PAGER and NO_COLOR are the only variables that bawn
 * takes from the environment, and for these verbs alone.
 */
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <sys/types.h>

enum page_colour { PAGE_PLAIN, PAGE_STRONG, PAGE_FAINT, PAGE_BAD, PAGE_GOOD, PAGE_NOTICE };

struct page {
	int fd;		  /* owned where there is a pager */
	pid_t pager;	  /* 0: none */
	bool is_terminal; /* standard output is one */
	bool has_colour;
	struct buffer text; /* what is not written yet */
};

#define PAGE_NONE ((struct page){ .fd = 1 })

/*
 * with_pager: for what ends by itself; not for what follows events. Ignores SIGPIPE from here on.
 */
void page_open(struct page *page, bool with_pager);

/* The sequence that begins the colour ("" without colours); PAGE_PLAIN ends it. */
const char *page_colour(const struct page *page, enum page_colour colour);

/* Writes page->text once it is long enough to be worth it. 0, or a negative errno. */
int page_put(struct page *page) __attribute__((warn_unused_result));

/* Writes all of it. */
int page_flush(struct page *page) __attribute__((warn_unused_result));

/*
 * Writes the rest, waits for the pager. result: the verb's own so far (0 or a negative errno).
 * Returns 0 where all was well or nobody reads any more, else the negative errno.
 */
int page_close(struct page *page, int result);
