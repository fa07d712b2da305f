#include "cli/review_tree.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
	const char *path; /* below the thing; "" for itself */
	struct stat status;
	struct git_text text; /* of a small file, or where a link leads; bytes NULL: not shown */
};

struct content {
	struct entry *entries;
	size_t count;
	bool is_cut; /* there are more names */
};

static int add(struct content *content, struct arena *arena, const char *path,
	       const struct stat *status)
{
	struct entry *entries;

	if (content->count == REVIEW_TREE_LIMIT_NAMES) {
		content->is_cut = true;
		return 0;
	}
	entries = arena_push(arena, content->entries, content->count, sizeof(*entries));
	if (!entries || !path)
		return -ENOMEM;
	content->entries = entries;
	entries[content->count++] = (struct entry){ .path = path, .status = *status };
	return 0;
}

/* Objects of a repository are many, and say nothing to a person. */
static bool is_store(const struct walk *walk)
{
	return walk->depth <= 1 && strcmp(walk->name, "objects") == 0;
}

static int list_directory(int fd, struct arena *arena, struct content *content)
{
	struct walk CLEANUP_WALK walk;
	enum walk_event event;
	int result = 0;

	walk_begin(&walk, fd, 0);
	while (result == 0 && !content->is_cut && (event = walk_next(&walk)) != WALK_END) {
		struct stat status;

		if (event != WALK_NAME ||
		    fstatat(walk.fd, walk.name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		result = add(content, arena, walk_path(&walk, walk.name, PATH_MAX, arena), &status);
		if (S_ISDIR(status.st_mode) && !is_store(&walk))
			walk_descend(&walk, 0);
	}
	return result;
}

static int by_path(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	return strcmp(left->path, right->path);
}

static int read_file(int fd, const char *path, struct arena *arena, struct entry *entry)
{
	int CLEANUP_FD file = fd_open_beneath(fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	size_t room = (size_t)entry->status.st_size;
	char *bytes = arena_allocate(arena, room + 1);
	ssize_t length = file < 0 || !bytes ? -1 : fd_read_all(file, bytes, room);

	if (!bytes)
		return -ENOMEM;
	if (length >= 0)
		entry->text = (struct git_text){ bytes, (size_t)length };
	return 0;
}

static int read_link(int fd, const char *path, struct arena *arena, struct entry *entry)
{
	int CLEANUP_FD link = fd_open_beneath(fd, path, O_PATH | O_NOFOLLOW);
	char text[PATH_MAX];
	ssize_t length = link < 0 ? -1 : readlinkat(link, "", text, sizeof(text));

	if (length < 0)
		return 0;
	entry->text.bytes = arena_copy_bytes(arena, text, (size_t)length);
	entry->text.length = (size_t)length;
	return entry->text.bytes ? 0 : -ENOMEM;
}

static bool is_sample(const char *path)
{
	size_t length = strlen(path);

	return length > 7 && strcmp(path + length - 7, ".sample") == 0;
}

/* In the order of names, as long as there is room. */
static int read_contents(int store_fd, const char *id, struct arena *arena, struct content *content)
{
	size_t used = 0;
	int result = 0;

	for (size_t i = 0; i < content->count && result == 0; i++) {
		struct entry *entry = &content->entries[i];
		const char *path = entry->path[0] ? arena_format(arena, "%s/%s", id, entry->path) :
						    id;
		uint64_t size = (uint64_t)entry->status.st_size;

		if (!path)
			return -ENOMEM;
		if (S_ISLNK(entry->status.st_mode)) {
			result = read_link(store_fd, path, arena, entry);
		} else if (S_ISREG(entry->status.st_mode) && !is_sample(entry->path) &&
			   size <= REVIEW_TREE_LIMIT_FILE_BYTES &&
			   used + size <= REVIEW_TREE_LIMIT_BYTES) {
			used += size;
			result = read_file(store_fd, path, arena, entry);
		}
	}
	return result;
}

static int gather(int state_fd, const struct git_held_tree *held, struct arena *arena,
		  struct content *content, struct error *error)
{
	int CLEANUP_FD store = git_held_tree_open(state_fd, held->task, false);
	struct stat status;
	int result = 0;

	if (store < 0)
		return error_errno(error, store, "what is held of %s", held->task);
	if (fstatat(store, held->id, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return error_errno(error, errno, "%s", held->id);
	if (S_ISDIR(status.st_mode))
		result = list_directory(
			fd_open_beneath(store, held->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
			arena, content);
	else
		result = add(content, arena, "", &status);
	if (result == 0 && content->count)
		qsort(content->entries, content->count, sizeof(*content->entries), by_path);
	if (result == 0)
		result = read_contents(store, held->id, arena, content);
	return result < 0 ? error_errno(error, result, "%s", held->id) : 0;
}

static const char *kind_of(const struct stat *status)
{
	return S_ISREG(status->st_mode) ? "file" :
	       S_ISDIR(status->st_mode) ? "directory" :
	       S_ISLNK(status->st_mode) ? "link" :
					  "other";
}

static bool is_text(struct git_text text)
{
	return text.bytes && !memchr(text.bytes, '\0', text.length);
}

static void entry_text(const struct entry *entry, struct buffer *text)
{
	const struct stat *status = &entry->status;
	bool is_file = S_ISREG(status->st_mode);

	buffer_visible(text, entry->path[0] ? entry->path : ".");
	if (S_ISDIR(status->st_mode))
		buffer_byte(text, '/');
	if (is_file && status->st_mode & 0111)
		buffer_text(text, "  executable");
	if (S_ISLNK(status->st_mode) && entry->text.bytes) {
		buffer_text(text, " -> ");
		buffer_visible_bytes(text, entry->text.bytes, entry->text.length);
	}
	if (is_file && is_text(entry->text)) {
		review_content(text, "", '+', entry->text);
		return;
	}
	if (is_file)
		buffer_format(text, "  %lld bytes, not shown", (long long)status->st_size);
	else if (!S_ISDIR(status->st_mode) && !S_ISLNK(status->st_mode))
		buffer_text(text, "  neither a file, a directory nor a link");
	buffer_byte(text, '\n');
}

int review_tree_text(int state_fd, const struct git_held_tree *held, struct arena *arena,
		     struct buffer *text, struct error *error)
{
	struct content content = { 0 };
	int result = gather(state_fd, held, arena, &content, error);

	if (result < 0)
		return result;
	for (size_t i = 0; i < content.count; i++)
		entry_text(&content.entries[i], text);
	if (content.is_cut)
		buffer_text(text, "and more names\n");
	return 0;
}

static void entry_json(const struct entry *entry, struct json *json)
{
	json_object(json, NULL);
	json_string(json, "path", entry->path);
	json_string(json, "kind", kind_of(&entry->status));
	json_unsigned(json, "mode", entry->status.st_mode & 07777);
	json_unsigned(json, "bytes", (uint64_t)entry->status.st_size);
	if (entry->text.bytes)
		json_bytes(json, "content", entry->text.bytes, entry->text.length);
	else
		json_null(json, "content");
	json_object_end(json);
}

int review_tree_json(int state_fd, const struct git_held_tree *held, struct arena *arena,
		     struct json *json, struct error *error)
{
	struct content content = { 0 };
	int result = gather(state_fd, held, arena, &content, error);

	if (result < 0)
		return result;
	json_array(json, "entries");
	for (size_t i = 0; i < content.count; i++)
		entry_json(&content.entries[i], json);
	json_array_end(json);
	json_bool(json, "entries_cut", content.is_cut);
	return 0;
}
