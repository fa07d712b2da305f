#include "workspace/stage_copy_links.h"

#include "workspace/stage_copy.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A power of two, at most two thirds full. */
#define PLACES 32768u

_Static_assert(STAGE_COPY_LIMIT_LINKS * 3 / 2 <= PLACES, "places for links");

static struct stage_copy_link *place_of(const struct stage_copy_links *links, uint64_t device,
					uint64_t inode)
{
	size_t at = (size_t)((inode * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (PLACES - 1);

	while (links->items[at].path &&
	       (links->items[at].inode != inode || links->items[at].device != device))
		at = (at + 1) & (PLACES - 1);
	return &links->items[at];
}

const char *stage_copy_links_find(const struct stage_copy_links *links, uint64_t device,
				  uint64_t inode)
{
	return links->items ? place_of(links, device, inode)->path : NULL;
}

int stage_copy_links_add(struct stage_copy_links *links, uint64_t device, uint64_t inode,
			 const char *path)
{
	struct stage_copy_link *place;
	char *copy;

	if (!path)
		return -ENOMEM;
	if (strlen(path) >= PATH_MAX || links->count == STAGE_COPY_LIMIT_LINKS ||
	    links->bytes + strlen(path) > STAGE_COPY_LIMIT_LINK_BYTES)
		return 0;
	if (!links->items)
		links->items = calloc(PLACES, sizeof(*links->items));
	if (!links->items)
		return -ENOMEM;
	place = place_of(links, device, inode);
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	if (place->path) {
		links->count--;
		links->bytes -= strlen(place->path);
		free(place->path);
	}
	place->path = copy;
	place->device = device;
	place->inode = inode;
	links->count++;
	links->bytes += strlen(path);
	return 0;
}

void stage_copy_links_free(struct stage_copy_links *links)
{
	for (size_t i = 0; links->items && i < PLACES; i++)
		free(links->items[i].path);
	free(links->items);
	*links = (struct stage_copy_links){ 0 };
}
