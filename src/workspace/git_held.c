#include "workspace/git_held.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "base/path.h"
#include "base/sha256.h"
#include "workspace/git_config_edit.h"
#include "workspace/git_file.h"
#include "workspace/git_ref.h"
#include "workspace/held_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two contents, each byte of which may take six, and the paths. */
#define FILE_LIMIT_BYTES (13u * GIT_HELD_LIMIT_BYTES)
/* All that is held by all tasks, in memory at once. */
#define LIST_LIMIT_ITEMS 10000u

static const char *const kind_names[GIT_HELD_KIND_COUNT] = {
	[GIT_HELD_REF] = "ref",
	[GIT_HELD_CONFIG] = "config",
	[GIT_HELD_FILE] = "file",
	[GIT_HELD_OTHER] = "other",
};

const char *git_held_kind_name(enum git_held_kind kind)
{
	return kind_names[kind];
}

static void add_part(struct sha256 *hash, const char *text)
{
	if (text)
		sha256_update(hash, text, strlen(text) + 1);
}

void git_held_name(const struct git_held *held, char ret_id[static GIT_HELD_ID_BYTES])
{
	unsigned char digest[SHA256_BYTES];
	char text[SHA256_HEX_BYTES];
	struct sha256 hash;

	sha256_begin(&hash);
	add_part(&hash, held->task);
	add_part(&hash, held->directory);
	add_part(&hash, held->path);
	/* a key may have several values, each held by itself */
	add_part(&hash, held->key);
	if (held->key) {
		add_part(&hash, held->before.bytes);
		add_part(&hash, "");
		add_part(&hash, held->after.bytes);
	}
	sha256_end(&hash, digest);
	sha256_hex(digest, text);
	(void)snprintf(ret_id, GIT_HELD_ID_BYTES, "%.12s", text);
}

static int open_task(int state_fd, const char *task, bool makes)
{
	int CLEANUP_FD folder = held_file_folder(state_fd, HELD_FILE_FOLDER, makes);

	return folder < 0 ? folder : held_file_folder(folder, task, makes);
}

/* A text that is absent is null. */
static void put_text(struct json *json, const char *name, struct git_text text)
{
	if (text.bytes)
		json_bytes(json, name, text.bytes, text.length);
	else
		json_null(json, name);
}

static void write_item(const struct git_held *held, struct buffer *buffer)
{
	struct json json;

	json_begin(&json, buffer);
	json_object(&json, NULL);
	json_string(&json, "task", held->task);
	json_string(&json, "directory", held->directory);
	json_string(&json, "path", held->path);
	json_string(&json, "key", held->key);
	json_string(&json, "kind", kind_names[held->kind]);
	json_string(&json, "reason", held->reason);
	put_text(&json, "before", held->before);
	put_text(&json, "after", held->after);
	json_bool(&json, "cut", held->is_cut);
	json_bool(&json, "executable", held->is_executable);
	json_unsigned(&json, "wall_ns", held->wall_ns ? held->wall_ns : clock_wall_ns());
	json_object_end(&json);
	buffer_byte(buffer, '\n');
}

int git_held_put(int state_fd, const struct git_held *held, struct error *error)
{
	int CLEANUP_FD fd = open_task(state_fd, held->task, true);
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	char id[GIT_HELD_ID_BYTES];
	int result = fd < 0 ? fd : 0;

	git_held_name(held, id);
	write_item(held, &buffer);
	if (result == 0)
		result = held_file_write(fd, id, &buffer);
	return result < 0 ? error_errno(error, result, "what is held of %s", held->task) : 0;
}

static struct git_text get_text(const struct json_node *root, const char *name)
{
	const struct json_node *node = json_tree_get(root, name);

	if (!node || node->type != JSON_STRING)
		return (struct git_text){ 0 };
	return (struct git_text){ .bytes = node->text, .length = node->length };
}

static bool is_true(const struct json_node *root, const char *name)
{
	const struct json_node *node = json_tree_get(root, name);

	return node && node->type == JSON_BOOL && node->is_true;
}

/* -EBADMSG for what is none, and for one that says to be another's. */
static int take_item(const struct json_node *root, const char *task, const char *id,
		     struct git_held *ret_held)
{
	const char *kind = json_tree_text(root, "kind");
	struct git_held held = {
		.task = json_tree_text(root, "task"),
		.directory = json_tree_text(root, "directory"),
		.path = json_tree_text(root, "path"),
		.key = json_tree_text(root, "key"),
		.kind = GIT_HELD_KIND_COUNT,
		.reason = json_tree_text(root, "reason"),
		.before = get_text(root, "before"),
		.after = get_text(root, "after"),
		.is_cut = is_true(root, "cut"),
		.is_executable = is_true(root, "executable"),
		.wall_ns = json_tree_unsigned(root, "wall_ns", 0),
	};

	for (int i = 0; kind && i < GIT_HELD_KIND_COUNT; i++)
		if (strcmp(kind, kind_names[i]) == 0)
			held.kind = (enum git_held_kind)i;
	if (!held.task || !held.directory || !held.path || !held.reason ||
	    held.kind == GIT_HELD_KIND_COUNT ||
	    (held.kind == GIT_HELD_CONFIG) != (held.key != NULL) ||
	    !path_is_clean(held.directory) || strcmp(held.task, task) != 0)
		return -EBADMSG;
	git_held_name(&held, held.id);
	if (strcmp(held.id, id) != 0)
		return -EBADMSG;
	*ret_held = held;
	return 0;
}

static int read_item(int fd, const char *task, const char *id, struct arena *arena,
		     struct git_held *ret_held)
{
	const struct json_node *root = NULL;
	int result = held_file_read(fd, id, FILE_LIMIT_BYTES, arena, &root);

	return result < 0 ? result : take_item(root, task, id, ret_held);
}

struct list {
	struct arena *arena, scratch;
	struct git_held *items;
	size_t count, bad;
};

/* All but the contents, out of the scratch memory. */
static int add_item(struct list *list, const struct git_held *found)
{
	struct arena *arena = list->arena;
	struct git_held *items = arena_push(arena, list->items, list->count, sizeof(*items));
	struct git_held *item;

	if (!items)
		return -ENOMEM;
	list->items = items;
	item = &items[list->count++];
	*item = *found;
	item->task = arena_copy(arena, found->task);
	item->directory = arena_copy(arena, found->directory);
	item->path = arena_copy(arena, found->path);
	item->key = found->key ? arena_copy(arena, found->key) : NULL;
	item->reason = arena_copy(arena, found->reason);
	item->before = item->after = (struct git_text){ 0 };
	return arena_failed(arena) ? -ENOMEM : 0;
}

static int list_task(struct list *list, int folder_fd, const char *name)
{
	const char *task = arena_copy(list->arena, name);
	struct directory CLEANUP_DIRECTORY directory;
	int result = task ? 0 : -ENOMEM;

	directory_begin(&directory, held_file_folder(folder_fd, name, false));
	while (result == 0 && (name = directory_next(&directory)) &&
	       list->count < LIST_LIMIT_ITEMS) {
		struct git_held item;

		if (name[0] == '.')
			continue;
		arena_reset(&list->scratch);
		if (read_item(directory.fd, task, name, &list->scratch, &item) == 0)
			result = add_item(list, &item);
		else
			list->bad++;
	}
	return result;
}

static int by_time(const void *a, const void *b)
{
	const struct git_held *left = a, *right = b;

	if (left->wall_ns != right->wall_ns)
		return left->wall_ns < right->wall_ns ? -1 : 1;
	return strcmp(left->id, right->id);
}

int git_held_list(int state_fd, struct arena *arena, struct git_held **ret_items, size_t *ret_count,
		  size_t *ret_bad, struct error *error)
{
	struct list list = { .arena = arena };
	struct directory CLEANUP_DIRECTORY directory;
	const char *name;
	int result = 0, fd = held_file_folder(state_fd, HELD_FILE_FOLDER, false);

	if (fd < 0 && fd != -ENOENT)
		return error_errno(error, fd, HELD_FILE_FOLDER "/");
	directory_begin(&directory, fd);
	while (result == 0 && (name = directory_next(&directory)))
		if (name[0] != '.')
			result = list_task(&list, directory.fd, name);
	arena_free(&list.scratch);
	if (result < 0)
		return error_errno(error, result, HELD_FILE_FOLDER "/");
	if (list.count)
		qsort(list.items, list.count, sizeof(list.items[0]), by_time);
	*ret_items = list.items;
	*ret_count = list.count;
	*ret_bad = list.bad;
	return 0;
}

int git_held_read(int state_fd, const struct git_held *listed, struct arena *arena,
		  struct git_held *ret_held, struct error *error)
{
	int CLEANUP_FD fd = open_task(state_fd, listed->task, false);
	int result = fd < 0 ? fd : read_item(fd, listed->task, listed->id, arena, ret_held);

	return result < 0 ? error_errno(error, result, "%s", listed->id) : 0;
}

int git_held_remove(int state_fd, const struct git_held *held, struct error *error)
{
	int CLEANUP_FD folder = held_file_folder(state_fd, HELD_FILE_FOLDER, false);
	int CLEANUP_FD fd = folder < 0 ? folder : held_file_folder(folder, held->task, false);

	if (fd < 0 || unlinkat(fd, held->id, 0) < 0)
		return error_errno(error, fd < 0 ? fd : errno, "%s", held->id);
	/* with its last */
	(void)unlinkat(folder, held->task, AT_REMOVEDIR);
	(void)unlinkat(state_fd, HELD_FILE_FOLDER, AT_REMOVEDIR);
	return 0;
}

static bool is_same(struct git_text a, struct git_text b)
{
	return !a.bytes == !b.bytes && a.length == b.length &&
	       (!a.length || memcmp(a.bytes, b.bytes, a.length) == 0);
}

static int changed(struct error *error, const struct git_held *held)
{
	return error_set(error, ESTALE, "%s: the host has something else there by now", held->path);
}

/* Under the lock: what the host has must be what it had when this was held. */
static int accept_file(const struct git_held *held, int directory_fd, struct git_lock *lock,
		       struct arena *arena, struct error *error)
{
	struct git_text now = { 0 };
	int result =
		git_file_read(directory_fd, held->path, GIT_HELD_LIMIT_BYTES, arena, &now, NULL);

	if (result < 0 && result != -ENOENT)
		return error_errno(error, result, "%s", held->path);
	if (is_same(now, held->after))
		return 0;
	if (!is_same(now, held->before))
		return changed(error, held);
	if (!held->after.bytes) {
		result = git_lock_remove(lock);
	} else {
		result = git_lock_write(lock, held->after.bytes, held->after.length);
		if (result == 0 && held->is_executable && fchmod(lock->fd, 0755) < 0)
			result = -errno;
		if (result == 0)
			result = git_lock_commit(lock);
	}
	return result < 0 ? error_errno(error, result, "%s", held->path) : 0;
}

/* The value of a reference, packed or not. */
static int ref_now(const struct git_held *held, int directory_fd, struct arena *arena,
		   const char **ret_value)
{
	struct git_packed packed = { 0 };
	const struct git_packed_ref *ref;
	struct git_text text;
	int result =
		git_file_read(directory_fd, held->path, GIT_REF_LIMIT_BYTES, arena, &text, NULL);

	*ret_value = NULL;
	if (result == 0)
		*ret_value = git_ref_value(arena, text.bytes, text.length, true);
	if (result != -ENOENT)
		return result == 0 && !*ret_value ? -EBADMSG : result;
	result = git_file_read(directory_fd, "packed-refs", GIT_PACKED_LIMIT_BYTES, arena, &text,
			       NULL);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	result = git_packed_parse(arena, text.bytes, text.length, &packed);
	ref = result == 0 ? git_packed_find(&packed, held->path) : NULL;
	if (ref)
		*ret_value = arena_copy_bytes(arena, ref->id, ref->id_length);
	return result;
}

static int accept_ref(const struct git_held *held, int directory_fd, struct git_lock *lock,
		      struct arena *arena, struct error *error)
{
	const char *now;
	int result = ref_now(held, directory_fd, arena, &now);
	struct git_text text = { now, result == 0 && now ? strlen(now) : 0 };

	if (result < 0)
		return error_errno(error, result, "%s", held->path);
	if (is_same(text, held->after))
		return 0;
	if (!is_same(text, held->before))
		return changed(error, held);
	if (!held->after.bytes)
		return error_set(error, EOPNOTSUPP, "%s: remove it with `git update-ref -d`",
				 held->path);
	if (!git_ref_value(arena, held->after.bytes, held->after.length, true))
		return error_set(error, EBADMSG, "%s: it is no reference", held->path);
	result = git_lock_write(lock, held->after.bytes, held->after.length);
	if (result == 0)
		result = git_lock_write(lock, "\n", 1);
	if (result == 0)
		result = git_lock_commit(lock);
	return result < 0 ? error_errno(error, result, "%s", held->path) : 0;
}

static void quote(struct buffer *buffer, const char *bytes, size_t length)
{
	buffer_byte(buffer, '"');
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] == '"' || bytes[i] == '\\')
			buffer_byte(buffer, '\\');
		if (bytes[i] == '\n')
			buffer_text(buffer, "\\n");
		else
			buffer_byte(buffer, bytes[i]);
	}
	buffer_byte(buffer, '"');
}

static void write_value(struct buffer *buffer, const char *name, struct git_text value)
{
	buffer_format(buffer, "\t%s = ", name);
	quote(buffer, value.bytes, value.length);
	buffer_byte(buffer, '\n');
}

static bool is_value(const struct git_entry *entry, struct git_text text)
{
	const char *value = entry->value ? entry->value : "true";

	return text.bytes && strlen(value) == text.length &&
	       memcmp(value, text.bytes, text.length) == 0;
}

/* The values of the key as they are to be: one of them changed, gone, or a new one behind. */
static int wanted_text(const struct git_held *held, const char *section, const char *name,
		       struct git_values now, struct buffer *buffer)
{
	const char *dot = strchr(section, '.');
	bool is_found = !held->before.bytes;

	buffer_format(buffer, "[%.*s", (int)(dot ? dot - section : (long)strlen(section)), section);
	if (dot) {
		buffer_byte(buffer, ' ');
		quote(buffer, dot + 1, strlen(dot + 1));
	}
	buffer_text(buffer, "]\n");
	for (size_t i = 0; i < now.count; i++) {
		const struct git_entry *entry = now.items[i];
		const char *value = entry->value ? entry->value : "true";

		if (is_found || !is_value(entry, held->before)) {
			write_value(buffer, name, (struct git_text){ value, strlen(value) });
			continue;
		}
		is_found = true;
		if (held->after.bytes)
			write_value(buffer, name, held->after);
	}
	if (!held->before.bytes && held->after.bytes)
		write_value(buffer, name, held->after);
	return is_found ? 0 : -ESTALE;
}

static int edit_config(const struct git_held *held, struct git_text now, struct arena *arena,
		       struct git_text *ret_text, struct error *error)
{
	struct buffer text = { .arena = arena };
	char *section = arena_copy(arena, held->key), *name;
	struct git_document documents[2];
	struct git_index index;
	struct git_edit edit;
	struct git_values values;
	int result = section ? git_document_read(arena, now, 0, held->path, &documents[0], error) :
			       -ENOMEM;

	name = section ? strrchr(section, '.') : NULL;
	if (result < 0 || !name)
		return result < 0 ? result : -EBADMSG;
	*name++ = '\0';
	if (git_index_make(arena, documents, 1, &index) < 0)
		return -ENOMEM;
	values = git_index_find(&index, section, name, 0);
	result = wanted_text(held, section, name, values, &text);
	if (result == -ESTALE)
		return changed(error, held);
	result = text.failed ? -ENOMEM :
			       git_document_read(arena, (struct git_text){ text.data, text.length },
						 1, held->key, &documents[1], error);
	if (result == 0)
		result = git_index_make(arena, documents, 2, &index);
	if (result < 0)
		return result;
	git_edit_begin(&edit, arena, &documents[0]);
	git_edit_set(&edit, git_index_find(&index, section, name, 0),
		     git_index_find(&index, section, name, 1));
	return git_edit_end(&edit, ret_text);
}

static int accept_config(const struct git_held *held, int directory_fd, struct git_lock *lock,
			 struct arena *arena, struct error *error)
{
	struct git_text now = { 0 }, text = { 0 };
	int result =
		git_file_read(directory_fd, held->path, GIT_CONFIG_LIMIT_BYTES, arena, &now, NULL);

	if (result == 0 || result == -ENOENT)
		result = edit_config(held, now, arena, &text, error);
	if (result == 0)
		result = git_lock_write(lock, text.bytes, text.length);
	if (result == 0)
		result = git_lock_commit(lock);
	if (result < 0 && !error->code)
		return error_errno(error, result, "%s", held->path);
	return result;
}

typedef int accept_kind(const struct git_held *held, int directory_fd, struct git_lock *lock,
			struct arena *arena, struct error *error);

static accept_kind *const accepts[GIT_HELD_KIND_COUNT] = {
	[GIT_HELD_REF] = accept_ref,
	[GIT_HELD_CONFIG] = accept_config,
	[GIT_HELD_FILE] = accept_file,
};

/* The directory is a git directory still, reached by no link. */
static int open_directory(const char *path)
{
	int CLEANUP_FD fd =
		fd_open_resolved(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	struct stat status;

	if (fd < 0)
		return fd;
	return git_file_status(fd, "HEAD", &status) < 0 ? -ENOENT : TAKE_FD(fd);
}

int git_held_accept(const struct git_held *held, struct arena *arena, struct error *error)
{
	struct git_lock CLEANUP_GIT_LOCK lock = GIT_LOCK_NONE;
	int CLEANUP_FD fd = -1;
	struct git_target target = { .journal_fd = -1, .prefix = "" };
	int result;

	if (!accepts[held->kind] || held->is_cut)
		return error_set(error, EOPNOTSUPP, "%s: %s, which bawn does not make", held->path,
				 held->is_cut ? "too large to be kept" : "no plain file");
	fd = open_directory(held->directory);
	if (fd < 0)
		return error_errno(error, fd, "%s", held->directory);
	target.fd = fd;
	result = git_file_lock(&target, held->path, true, &lock);
	if (result < 0)
		return error_errno(error, result, "%s", held->path);
	return accepts[held->kind](held, fd, &lock, arena, error);
}
