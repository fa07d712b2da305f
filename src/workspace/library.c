#include "workspace/library.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/elf.h"
#include "workspace/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE "/etc/ld.so.cache"
#define CACHE_LIMIT_BYTES ((size_t)8 * 1024 * 1024)
#define WINDOW_BYTES 4096

/* Of glibc's dl-cache.h: the head, then entries of 24 bytes; texts are placed from the head on. */
static const char cache_magic[] = "glibc-ld.so.cache1.1";
#define CACHE_HEAD_BYTES 48u
#define CACHE_ENTRY_BYTES 24u

/* Where libraries lie that no cache knows (ld.so(8), musl's default path). */
static const char *const directories[] = { "/lib", "/usr/lib", "/usr/local/lib", "/lib64",
					   "/usr/lib64" };

/* What the C library loads by itself: pthread_exit(3) and pthread_cancel(3) end without it. */
static const struct {
	const char *library, *loads;
} implied[] = { { "libc.so.6", "libgcc_s.so.1" } };

struct library_file {
	const char *path;
	struct elf_needs needs;
	unsigned round; /* in which it was visited last */
};

/* Of one file; reads are near each other. */
struct window {
	int fd;
	uint64_t offset;
	size_t length;
	unsigned char bytes[WINDOW_BYTES];
};

struct search {
	struct library_set *set;
	library_visit *visit;
	void *context;
	const char **queue; /* real paths */
	size_t queued;
	const char **ways; /* directories that files of this program named */
	size_t way_count;
	uint16_t machine;
	uint8_t width;
};

static int read_window(void *context, uint64_t offset, void *bytes, size_t length)
{
	struct window *window = context;
	ssize_t count;

	if (length > sizeof(window->bytes) || offset > INT64_MAX - sizeof(window->bytes))
		return -EBADMSG;
	if (offset < window->offset || offset - window->offset + length > window->length) {
		count = pread(window->fd, window->bytes, sizeof(window->bytes), (off_t)offset);
		window->offset = offset;
		window->length = count < 0 ? 0 : (size_t)count;
		if (window->length < length)
			return -EBADMSG;
	}
	memcpy(bytes, window->bytes + (offset - window->offset), length);
	return 0;
}

static int open_file(const char *path)
{
	int CLEANUP_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	return fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ? -1 : TAKE_FD(fd);
}

/* By its real path; NULL: no program, or a broken one (or no memory, which is latched). */
static struct library_file *file_at(struct library_set *set, const char *path)
{
	struct window window = { .fd = -1 };
	const struct elf_source source = { read_window, &window };
	struct library_file file = { .path = path }, *grown;
	int result, CLEANUP_FD fd = -1;

	for (size_t i = 0; i < set->count; i++)
		if (strcmp(set->files[i].path, path) == 0)
			return &set->files[i];
	window.fd = fd = open_file(path);
	result = fd < 0 ? -ENOENT : elf_read(&source, set->arena, &file.needs);
	grown = result < 0 ? NULL : arena_push(set->arena, set->files, set->count, sizeof(*grown));
	if (!grown)
		return NULL;
	set->files = grown;
	grown[set->count] = file;
	return &grown[set->count++];
}

/* Queues what is there, of the program's own kind and not queued yet. */
static void queue(struct search *search, const char *path)
{
	struct library_set *set = search->set;
	struct error ignored = ERROR_NONE;
	struct library_file *file = NULL;
	const char *real, **grown;

	if (path && access(path, F_OK) == 0 && root_resolve(path, set->arena, &real, &ignored) == 0)
		file = file_at(set, real);
	if (!file || file->round == set->round || file->needs.machine != search->machine ||
	    file->needs.width != search->width || search->queued == LIBRARY_LIMIT_FILES)
		return;
	file->round = set->round;
	grown = arena_push(set->arena, search->queue, search->queued, sizeof(*grown));
	if (!grown)
		return;
	search->queue = grown;
	grown[search->queued++] = file->path;
}

static uint32_t number(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static void read_cache(struct library_set *set)
{
	int CLEANUP_FD fd = set->has_cache ? -1 : open_file(CACHE);
	struct stat status;
	unsigned char *bytes;
	ssize_t length;

	set->has_cache = true;
	if (fd < 0 || fstat(fd, &status) < 0 || (size_t)status.st_size > CACHE_LIMIT_BYTES)
		return;
	bytes = arena_allocate(set->arena, (size_t)status.st_size + 1);
	length = bytes ? fd_read_all(fd, bytes, (size_t)status.st_size) : -1;
	if (length < (ssize_t)CACHE_HEAD_BYTES ||
	    memcmp(bytes, cache_magic, sizeof(cache_magic) - 1) != 0)
		return;
	/* the byte behind is NUL: every text ends */
	set->cache = bytes;
	set->cache_bytes = (size_t)length;
}

static const char *cache_text(const struct library_set *set, const unsigned char *field)
{
	uint32_t offset = number(field);

	return offset < set->cache_bytes ? (const char *)set->cache + offset : "";
}

static bool queue_cached(struct search *search, const char *name)
{
	const struct library_set *set = search->set;
	size_t count, before = search->queued;

	read_cache(search->set);
	if (!set->cache)
		return false;
	count = number(set->cache + sizeof(cache_magic) - 1);
	if (count > (set->cache_bytes - CACHE_HEAD_BYTES) / CACHE_ENTRY_BYTES)
		count = (set->cache_bytes - CACHE_HEAD_BYTES) / CACHE_ENTRY_BYTES;
	for (size_t i = 0; i < count; i++) {
		const unsigned char *entry = set->cache + CACHE_HEAD_BYTES + i * CACHE_ENTRY_BYTES;

		if (strcmp(cache_text(set, entry + 4), name) == 0)
			queue(search, cache_text(set, entry + 8));
	}
	return search->queued > before;
}

static void queue_in(struct search *search, const char *directory, const char *name)
{
	queue(search, arena_format(search->set->arena, "%s/%s", directory, name));
}

static void queue_name(struct search *search, const char *name)
{
	if (strchr(name, '/')) {
		queue(search, name[0] == '/' ? name : NULL);
		return;
	}
	for (size_t i = 0; i < search->way_count; i++)
		queue_in(search, search->ways[i], name);
	if (queue_cached(search, name))
		return;
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		queue_in(search, directories[i], name);
}

/* ld.so(8), "Dynamic string tokens": $ORIGIN is the file's own directory; others are not known. */
static void add_way(struct search *search, const char *path, const char *text, size_t length)
{
	static const char *const tokens[] = { "$ORIGIN", "${ORIGIN}" };
	struct arena *arena = search->set->arena;
	const char *way = arena_copy_bytes(arena, text, length), **grown;

	for (size_t i = 0; way && i < sizeof(tokens) / sizeof(tokens[0]); i++)
		if (strncmp(way, tokens[i], strlen(tokens[i])) == 0)
			way = arena_format(arena, "%s%s", path_parent(arena, path),
					   way + strlen(tokens[i]));
	if (!way || way[0] != '/' || strchr(way, '$'))
		return;
	for (size_t i = 0; i < search->way_count; i++)
		if (strcmp(search->ways[i], way) == 0)
			return;
	grown = arena_push(arena, search->ways, search->way_count, sizeof(*grown));
	if (!grown)
		return;
	search->ways = grown;
	grown[search->way_count++] = way;
}

static void add_ways(struct search *search, const char *path, const char *text)
{
	while (text && *text) {
		size_t length = strcspn(text, ":");

		add_way(search, path, text, length);
		text += length;
		text += *text == ':';
	}
}

static void queue_needs(struct search *search, const struct library_file *file)
{
	/* by value: the files move when others are read */
	const struct elf_needs needs = file->needs;

	add_ways(search, file->path, needs.rpath);
	add_ways(search, file->path, needs.runpath);
	if (needs.interpreter)
		queue(search, needs.interpreter);
	for (size_t i = 0; i < needs.count; i++) {
		queue_name(search, needs.names[i]);
		for (size_t j = 0; j < sizeof(implied) / sizeof(implied[0]); j++)
			if (strcmp(needs.names[i], implied[j].library) == 0)
				queue_name(search, implied[j].loads);
	}
}

int library_find(struct library_set *set, const char *path, library_visit *visit, void *context)
{
	struct search search = { .set = set, .visit = visit, .context = context };
	struct library_file *file = file_at(set, path);
	int result = 0;

	if (file) {
		set->round++;
		search.machine = file->needs.machine;
		search.width = file->needs.width;
		file->round = set->round;
		queue_needs(&search, file);
	}
	for (size_t i = 0; i < search.queued && result == 0; i++) {
		result = visit(context, search.queue[i]);
		file = result == 0 ? file_at(set, search.queue[i]) : NULL;
		if (file)
			queue_needs(&search, file);
	}
	return result == 0 && arena_failed(set->arena) ? -ENOMEM : result;
}

bool library_script(const char *path, struct arena *arena, const char **ret_interpreter)
{
	/* what the kernel looks at (BINPRM_BUF_SIZE) */
	char line[256];
	int CLEANUP_FD fd = open_file(path);
	ssize_t length = fd < 0 ? -1 : pread(fd, line, sizeof(line) - 1, 0);
	const char *at = line + 2;

	if (length < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	at += strspn(at, " \t");
	*ret_interpreter = arena_copy_bytes(arena, at, strcspn(at, " \t"));
	return *ret_interpreter && (*ret_interpreter)[0];
}
