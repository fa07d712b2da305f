/*
 * Noise made one row: a directory in which much changed is told once, with how many changes there
 * are in it. First those that came or went as a whole; then, as long as there are too many rows,
 * any other, with ever fewer changes.
 */
#include "workspace/tree_internal.h"

#include <stdlib.h>
#include <string.h>

/* So many rows are told; what a landing and the sweep tell needs some, too. */
#define ENOUGH (CHANGE_LIMIT * 3 / 4)
#define LEAST_BELOW 4u

/* The end, then '/', then all other bytes. */
static unsigned place_of(char byte)
{
	return byte == '\0' ? 0 : byte == '/' ? 1 : (unsigned char)byte + 1u;
}

/* What lies in a directory follows it at once. */
static int by_path(const void *a, const void *b)
{
	const char *left = ((const struct tree_row *)a)->path;
	const char *right = ((const struct tree_row *)b)->path;
	unsigned first, second;

	while (*left && *left == *right) {
		left++;
		right++;
	}
	first = place_of(*left);
	second = place_of(*right);
	return first < second ? -1 : first > second;
}

static bool is_below(const struct tree_row *row, const char *path, size_t length)
{
	return strncmp(row->path, path, length) == 0 && row->path[length] == '/';
}

/* Where the rows end that lie in the directory. */
static size_t end_of(const struct tree_rows *rows, size_t at, const char *path, size_t length)
{
	size_t low = at, high = rows->count;

	for (size_t step = 1; low + step < rows->count; step *= 2) {
		if (!is_below(&rows->items[low + step], path, length)) {
			high = low + step;
			break;
		}
		low += step;
	}
	while (low + 1 < high) {
		size_t middle = low + (high - low) / 2;

		if (is_below(&rows->items[middle], path, length))
			low = middle;
		else
			high = middle;
	}
	return low + 1;
}

static uint64_t weight(const struct tree_rows *rows, size_t at, size_t end)
{
	uint64_t all = 0;

	for (; at < end; at++)
		all += 1 + rows->items[at].change.below;
	return all;
}

static bool is_whole(const struct tree_row *row)
{
	return row->change.kind == CHANGE_CREATED || row->change.kind == CHANGE_REMOVED;
}

/* The rows are one from here on: the directory's own, or the first of them in its place. */
static void make_one(struct tree_rows *rows, size_t at, size_t end, size_t length)
{
	bool has_own = at && strlen(rows->items[at - 1].path) == length &&
		       strncmp(rows->items[at - 1].path, rows->items[at].path, length) == 0;
	struct tree_row *row = &rows->items[has_own ? at - 1 : at];
	uint64_t below = weight(rows, at, end);
	char *path;

	if (!has_own) {
		path = arena_copy_bytes(rows->arena, row->path, length);
		if (!path)
			return;
		*row = (struct tree_row){ .path = path,
					  .change = { .kind = CHANGE_MODIFIED },
					  .before = TREE_NONE,
					  .after = TREE_NONE };
	}
	row->change.below += below;
	for (size_t i = has_own ? at : at + 1; i < end; i++)
		rows->items[i].is_done = true;
}

/* The first directory on the row's way that is to be one. Returns where the next row is. */
static size_t group_at(struct tree_rows *rows, size_t at, uint64_t limit, bool only_whole)
{
	const char *path = rows->items[at].path;

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t length = (size_t)(slash - path), end;

		/* it was looked at with the first row in it */
		if (at && is_below(&rows->items[at - 1], path, length))
			continue;
		if (only_whole && !(at && strlen(rows->items[at - 1].path) == length &&
				    strncmp(rows->items[at - 1].path, path, length) == 0 &&
				    is_whole(&rows->items[at - 1])))
			continue;
		end = end_of(rows, at, path, length);
		if (weight(rows, at, end) <= limit)
			continue;
		make_one(rows, at, end, length);
		return end;
	}
	return at + 1;
}

static void drop_done(struct tree_rows *rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++)
		if (!rows->items[i].is_done)
			rows->items[kept++] = rows->items[i];
	rows->count = kept;
}

static void pass(struct tree_rows *rows, uint64_t limit, bool only_whole)
{
	for (size_t at = 0; at < rows->count;)
		at = group_at(rows, at, limit, only_whole);
	drop_done(rows);
}

void tree_group(struct tree_rows *rows)
{
	drop_done(rows);
	if (rows->count)
		qsort(rows->items, rows->count, sizeof(*rows->items), by_path);
	pass(rows, TREE_LIMIT_BELOW, true);
	for (uint64_t limit = TREE_LIMIT_BELOW; rows->count > ENOUGH && limit >= LEAST_BELOW;
	     limit /= 4)
		pass(rows, limit, false);
}
