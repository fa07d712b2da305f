#include "workspace/git_commit_ref.h"

#include "workspace/git_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int add(struct git_run *run, struct git_ref_changes *changes, struct ref_change change)
{
	struct ref_change *items =
		arena_push(run->arena, changes->changes, changes->count, sizeof(*items));

	if (!items || !change.name)
		return -ENOMEM;
	changes->changes = items;
	items[changes->count++] = change;
	return 0;
}

bool git_run_is_head(const char *name)
{
	size_t length = strlen(name);

	return length > 5 && strcmp(name + length - 5, "/HEAD") == 0;
}

static int add_value(struct git_run *run, struct git_area *area, struct git_piece *item,
		     struct git_ref_changes *changes)
{
	struct git_text text;
	const char *value;
	int result = git_run_read(run, area, item, GIT_REF_LIMIT_BYTES, &text);

	if (result < 0)
		return git_run_failed(run, area, item, result);
	value = git_ref_value(run->arena, text.bytes, text.length, git_run_is_head(item->path));
	if (!value || !git_ref_is_name(item->path, strlen(item->path)) ||
	    (strncmp(value, "ref: ", 5) == 0 && !git_value_is_ref(value + 5)))
		return git_run_hold(run, area, item, "it is no reference");
	return add(
		run, changes,
		(struct ref_change){
			.name = item->path, .loose = LOOSE_VALUE, .value = value, .item = item });
}

/* A reference of the start, or all below a directory, that the task does not see any more. */
static int add_gone(struct git_run *run, struct git_area *area, struct git_piece *item,
		    struct git_ref_changes *changes)
{
	const char *path = arena_format(run->arena, "%s%s", area->prefix, item->path);
	size_t length = path ? strlen(path) : 0, skip = strlen(area->prefix);
	int result = path ? 0 : -ENOMEM;

	for (size_t i = path ? git_snapshot_first(run->before, path) : 0;
	     result == 0 && i < run->before->count && !area->is_new; i++) {
		const char *found = run->before->states[i].path;
		const struct git_upper_entry *entry;

		if (strncmp(found, path, length) != 0)
			break;
		if (found[length] != '/' && found[length])
			continue;
		/* what the task made anew in the place of the directory speaks for itself */
		entry = item->entry->kind == GIT_UPPER_OPAQUE ? git_upper_find(&run->upper, found) :
								NULL;
		if (entry && entry != item->entry)
			continue;
		result = add(run, changes,
			     (struct ref_change){
				     .name = found + skip, .loose = LOOSE_GONE, .item = item });
	}
	return result;
}

static int collect(struct git_run *run, struct git_area *area, struct git_ref_changes *changes)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < area->count; i++) {
		struct git_piece *item = &area->items[i];

		if (item->class != GIT_REF || item->is_done)
			continue;
		item->is_done = true;
		if (item->entry->kind == GIT_UPPER_FILE)
			result = add_value(run, area, item, changes);
		else
			result = add_gone(run, area, item, changes);
	}
	return result;
}

/*
 * Without the descriptor of the start: where the task had changed it before and has not since, what
 * it left; otherwise the host's, if that is still the same.
 */
static int read_kept(struct git_run *run, struct git_area *area, const struct git_state *state,
		     struct git_text *ret_text)
{
	struct git_piece *item = git_run_item(area, "packed-refs");
	struct stat status;
	int result;

	if (item && item->entry->kind == GIT_UPPER_FILE &&
	    git_snapshot_saw(run->before, item->entry))
		return git_file_read(run->cover->upper_fd, item->entry->path,
				     GIT_PACKED_LIMIT_BYTES, run->arena, ret_text, NULL);
	result = git_file_read(area->target.fd, "packed-refs", GIT_PACKED_LIMIT_BYTES, run->arena,
			       ret_text, &status);
	return result == 0 && !git_state_is(state, &status) ? -ESTALE : result;
}

static int read_start(struct git_run *run, struct git_area *area, struct git_text *ret_text)
{
	const struct git_state *state = git_run_state(run, area, "packed-refs");
	char *bytes;
	ssize_t length;

	*ret_text = (struct git_text){ 0 };
	if (!state)
		return 0;
	if (state->size > GIT_PACKED_LIMIT_BYTES)
		return -EFBIG;
	if (state->fd < 0)
		return read_kept(run, area, state, ret_text);
	bytes = arena_allocate(run->arena, state->size + 1);
	length = bytes ? pread(state->fd, bytes, state->size, 0) : -1;
	if (length < 0)
		return bytes ? -errno : -ENOMEM;
	*ret_text = (struct git_text){ .bytes = bytes, .length = (size_t)length };
	return 0;
}

/* What was packed at the start; unknown where the supervisor died and the host packed anew. */
static int parse_start(struct git_run *run, struct git_area *area, struct git_ref_changes *changes)
{
	struct git_text text;
	int result = read_start(run, area, &text);

	if (result == 0)
		result = git_packed_parse(run->arena, text.bytes, text.length, &changes->start);
	changes->is_start_known = result == 0;
	return result == -ENOMEM ? result : 0;
}

static int parse_task(struct git_run *run, struct git_area *area, struct git_ref_changes *changes)
{
	struct git_piece *item = git_run_item(area, "packed-refs");
	struct git_text text = { 0 };
	int result = 0;

	changes->task = changes->start;
	if (!item || item->is_done)
		return 0;
	item->is_done = true;
	if (item->entry->kind == GIT_UPPER_FILE)
		result = git_file_read(run->cover->upper_fd, item->entry->path,
				       GIT_PACKED_LIMIT_BYTES, run->arena, &text, NULL);
	if (result == 0)
		result = git_packed_parse(run->arena, text.bytes, text.length, &changes->task);
	if (result == -EBADMSG)
		return git_run_hold(run, area, item, "it is no list of references");
	if (result < 0)
		return git_run_failed(run, area, item, result);
	changes->has_packed_item = true;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct ref_change *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static bool is_listed(const struct ref_change *changes, size_t count, const char *name)
{
	struct ref_change key = { .name = name };

	return count && bsearch(&key, changes, count, sizeof(key), by_name);
}

/* What is packed in one and not, or otherwise, in the other. */
static int add_packed(struct git_run *run, struct git_ref_changes *changes,
		      const struct git_packed *from, const struct git_packed *other, size_t listed)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < from->count; i++) {
		const struct git_packed_ref *ref = &from->refs[i];
		const struct git_packed_ref *found = git_packed_find(other, ref->name);

		if (found && found->id_length == ref->id_length &&
		    memcmp(found->id, ref->id, ref->id_length) == 0)
			continue;
		/* what differs is added by the first of the two passes */
		if ((found && other == &changes->task) ||
		    is_listed(changes->changes, listed, ref->name))
			continue;
		result = add(run, changes, (struct ref_change){ .name = ref->name });
	}
	return result;
}

static void evaluate(struct git_run *run, struct git_area *area, struct git_ref_changes *changes,
		     struct ref_change *change)
{
	const char *loose = git_run_state_value(run, git_run_state(run, area, change->name));
	const char *packed = git_run_packed_value(run, &changes->task, change->name);

	change->old = loose ? loose : git_run_packed_value(run, &changes->start, change->name);
	switch (change->loose) {
	case LOOSE_VALUE:
		change->new = change->value;
		break;
	case LOOSE_GONE:
		change->new = packed;
		break;
	default:
		change->new = loose ? loose : packed;
	}
	change->is_over = git_run_is_same_value(change->old, change->new);
}

/* A reference that was not loose at the start, or a new packed-refs, asks what was packed then. */
static bool needs_start(const struct git_run *run, const struct git_area *area,
			const struct git_ref_changes *changes)
{
	if (git_run_item(area, "packed-refs"))
		return true;
	for (size_t i = 0; i < changes->count; i++)
		if (changes->changes[i].loose == LOOSE_GONE ||
		    !git_run_state(run, area, changes->changes[i].name))
			return true;
	return false;
}

int git_run_collect_refs(struct git_run *run, struct git_area *area,
			 struct git_ref_changes *changes)
{
	int result = collect(run, area, changes);
	size_t listed;

	if (result == 0 && needs_start(run, area, changes)) {
		result = parse_start(run, area, changes);
		if (result == 0)
			result = parse_task(run, area, changes);
	}
	if (result < 0)
		return result;
	listed = changes->count;
	if (listed)
		qsort(changes->changes, listed, sizeof(changes->changes[0]), by_name);
	if (changes->has_packed_item)
		result = add_packed(run, changes, &changes->task, &changes->start, listed);
	if (result == 0 && changes->has_packed_item)
		result = add_packed(run, changes, &changes->start, &changes->task, listed);
	for (size_t i = 0; result == 0 && i < changes->count; i++)
		evaluate(run, area, changes, &changes->changes[i]);
	return result;
}
