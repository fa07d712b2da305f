#include "trace/identify.h"

#include "base/fd.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND_NS 1000000000

struct identify_pending {
	struct identify_pending *next;
	struct executable executable;
	struct identity identity;
	char action[ACTION_ID_BYTES], parent[ACTION_ID_BYTES];
};

/* The kernel's own name of it, links resolved; in the box, since our root does not hold it. */
void identify_path(int fd, char ret_path[static PATH_MAX])
{
	char name[32];
	ssize_t length;

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, ret_path, PATH_MAX - 1);
	ret_path[length > 0 ? length : 0] = '\0';
}

static int64_t nanoseconds(const struct timespec *time)
{
	return (int64_t)time->tv_sec * SECOND_NS + time->tv_nsec;
}

static void describe(struct identity *identity, const struct stat *status)
{
	identity->event = (struct event_executable){ .path = identity->path,
						     .bytes = (uint64_t)status->st_size,
						     .device = status->st_dev,
						     .inode = status->st_ino,
						     .mtime_ns = nanoseconds(&status->st_mtim),
						     .ctime_ns = nanoseconds(&status->st_ctim) };
}

static void begin(struct identify *identify, int fd, const struct event *event,
		  struct identity *identity)
{
	struct identify_pending *pending = calloc(1, sizeof(*pending));

	identity->event.unhashed = "later";
	if (!pending) {
		identity->event.unhashed = "out of memory";
		return;
	}
	pending->identity = *identity;
	pending->identity.event.path = pending->identity.path;
	(void)snprintf(pending->action, sizeof(pending->action), "%s", event->action);
	(void)snprintf(pending->parent, sizeof(pending->parent), "%s",
		       event->parent ? event->parent : "");
	executable_begin(fd, &pending->executable);
	pending->next = identify->pending;
	identify->pending = pending;
}

bool identify(struct identify *identify, const struct trace_store *store, const struct event *event,
	      struct identity *ret_identity)
{
	int fd = event->body.start.executable_fd;
	const char *path = event->body.start.executable_path;
	struct stat status;

	if (fd < 0 || !path || !path[0] || fstat(fd, &status) < 0)
		return false;
	(void)snprintf(ret_identity->path, sizeof(ret_identity->path), "%s", path);
	describe(ret_identity, &status);
	if (!identify->is_open) {
		executable_cache_open(store, &identify->cache);
		identify->is_open = true;
	}
	if (executable_lookup(&identify->cache, &status, ret_identity->sha256))
		ret_identity->event.sha256 = ret_identity->sha256;
	else
		begin(identify, fd, event, ret_identity);
	return true;
}

bool identify_step(struct identify *identify, struct identity *ret_identity,
		   char ret_action[static ACTION_ID_BYTES], char ret_parent[static ACTION_ID_BYTES])
{
	struct identify_pending *pending = identify->pending;

	if (!pending || executable_step(&pending->executable, IDENTIFY_STEP_BYTES, &identify->cache,
					pending->identity.sha256))
		return false;
	identify->pending = pending->next;
	*ret_identity = pending->identity;
	ret_identity->event.path = ret_identity->path;
	ret_identity->event.unhashed = pending->executable.unhashed;
	ret_identity->event.sha256 = pending->executable.unhashed ? NULL : ret_identity->sha256;
	(void)snprintf(ret_action, ACTION_ID_BYTES, "%s", pending->action);
	(void)snprintf(ret_parent, ACTION_ID_BYTES, "%s", pending->parent);
	executable_end(&pending->executable);
	free(pending);
	return true;
}

void identify_end(struct identify *identify)
{
	while (identify->pending) {
		struct identify_pending *pending = identify->pending;

		identify->pending = pending->next;
		executable_end(&pending->executable);
		free(pending);
	}
	executable_cache_close(&identify->cache);
}
