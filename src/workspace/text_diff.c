/*
 * Theory of operation. Equal lines of both texts get one number (a *class*). Lines whose class the
 * other text lacks are changed for sure and left out; what remains is searched for the shortest
 * script: a box of the edit graph is split at a point that a shortest path leads through, which
 * searches from both of its corners find where they meet, and its two parts are boxes again. All
 * that comes out is a flag for each line, changed or not, from which the hunks are read.
 */
#include "workspace/text_diff.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The smaller part of a box is done first, so few are waiting: a binary logarithm of lines. */
#define BOXES 64u

struct side {
	struct text text;
	uint32_t *starts;  /* of each line, and of the end behind the last one */
	uint32_t *classes; /* of each line */
	bool *changed;	   /* of each line */
	uint32_t count;
	/* the lines that may be equal to one of the other text */
	uint32_t *order; /* their classes */
	uint32_t *lines; /* which they are */
	uint32_t kept;
};

struct box {
	int32_t left, right; /* of the lines before */
	int32_t top, bottom; /* of the lines after */
};

struct diff {
	struct side before, after;
	int32_t *forward, *backward; /* furthest places on each diagonal, by its number */
	int32_t *forward_base, *backward_base;
	uint64_t work;
	bool is_coarse;
};

bool text_is_binary(struct text text)
{
	return text.length && memchr(text.bytes, 0, text.length);
}

/* ---- lines and their classes ---- */

static uint32_t count_lines(struct text text)
{
	uint32_t count = 0;

	for (size_t at = 0; at < text.length; count++) {
		const char *newline = memchr(text.bytes + at, '\n', text.length - at);

		at = newline ? (size_t)(newline - text.bytes) + 1 : text.length;
	}
	return count;
}

static int read_lines(struct side *side)
{
	struct text text = side->text;
	size_t at = 0;

	if (text.length > TEXT_DIFF_LIMIT_BYTES)
		return -EFBIG;
	side->count = count_lines(text);
	if (side->count > TEXT_DIFF_LIMIT_LINES)
		return -EFBIG;
	side->starts = calloc(side->count + 1, sizeof(*side->starts));
	side->classes = calloc(side->count + 1, sizeof(*side->classes));
	side->changed = calloc(side->count + 1, sizeof(*side->changed));
	side->order = calloc(side->count + 1, sizeof(*side->order));
	side->lines = calloc(side->count + 1, sizeof(*side->lines));
	if (!side->starts || !side->classes || !side->changed || !side->order || !side->lines)
		return -ENOMEM;
	for (uint32_t i = 0; i < side->count; i++) {
		const char *newline = memchr(text.bytes + at, '\n', text.length - at);

		side->starts[i] = (uint32_t)at;
		at = newline ? (size_t)(newline - text.bytes) + 1 : text.length;
	}
	side->starts[side->count] = (uint32_t)at;
	return 0;
}

/* The line with its newline, if it has one. */
static struct text line_of(const struct side *side, uint32_t line)
{
	return (struct text){ side->text.bytes + side->starts[line],
			      side->starts[line + 1] - side->starts[line] };
}

/* A line of either text. */
struct entry {
	const char *bytes;
	uint32_t length;
	uint32_t line; /* its number, doubled; odd: of the text after */
};

static int by_bytes(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;
	uint32_t length = left->length < right->length ? left->length : right->length;
	int order = memcmp(left->bytes, right->bytes, length);

	return order ? order : (left->length > right->length) - (left->length < right->length);
}

static void add_entries(const struct side *side, uint32_t odd, struct entry *entries)
{
	for (uint32_t i = 0; i < side->count; i++) {
		struct text line = line_of(side, i);

		entries[i] = (struct entry){ .bytes = line.bytes,
					     .length = (uint32_t)line.length,
					     .line = i * 2 + odd };
	}
}

/* By sorting: foreign lines could be chosen to make any table of hashes slow. */
static int classify(struct diff *diff)
{
	size_t count = (size_t)diff->before.count + diff->after.count, begin = 0;
	struct entry *entries = calloc(count + 1, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	add_entries(&diff->before, 0, entries);
	add_entries(&diff->after, 1, entries + diff->before.count);
	qsort(entries, count, sizeof(*entries), by_bytes);
	for (size_t i = 0; i < count; i++) {
		struct side *side = entries[i].line & 1 ? &diff->after : &diff->before;

		if (by_bytes(&entries[begin], &entries[i]) != 0)
			begin = i;
		side->classes[entries[i].line / 2] = (uint32_t)begin;
	}
	free(entries);
	return 0;
}

/* Leaves out what the other text has not. in_other: a flag for each class. */
static void keep(struct side *side, const bool *in_other)
{
	for (uint32_t i = 0; i < side->count; i++) {
		side->changed[i] = !in_other[side->classes[i]];
		if (side->changed[i])
			continue;
		side->order[side->kept] = side->classes[i];
		side->lines[side->kept++] = i;
	}
}

static int leave_out(struct diff *diff)
{
	size_t count = (size_t)diff->before.count + diff->after.count;
	bool *in_before = calloc(count + 1, sizeof(*in_before));
	bool *in_after = calloc(count + 1, sizeof(*in_after));

	if (in_before && in_after) {
		for (uint32_t i = 0; i < diff->before.count; i++)
			in_before[diff->before.classes[i]] = true;
		for (uint32_t i = 0; i < diff->after.count; i++)
			in_after[diff->after.classes[i]] = true;
		keep(&diff->before, in_after);
		keep(&diff->after, in_before);
	}
	count = in_before && in_after;
	free(in_before);
	free(in_after);
	return count ? 0 : -ENOMEM;
}

/* ---- the shortest script ---- */

static bool is_equal(const struct diff *diff, int32_t x, int32_t y)
{
	return diff->before.order[x] == diff->after.order[y];
}

struct point {
	int32_t x, y;
};

/*
 * A search from one corner: the furthest x on every second of the diagonals first..last, where
 * diagonal d has the points with x - y = d. A place outside of the box never counts.
 */
struct search {
	int32_t *furthest;
	int32_t first, last;
};

/* Takes one more diagonal on each side, or one less where the box ends. */
static void widen(struct search *search, int32_t lowest, int32_t highest, int32_t outside)
{
	if (search->first > lowest)
		search->furthest[--search->first - 1] = outside;
	else
		search->first++;
	if (search->last < highest)
		search->furthest[++search->last + 1] = outside;
	else
		search->last--;
}

static bool reaches(const struct search *search, int32_t diagonal)
{
	return diagonal >= search->first && diagonal <= search->last;
}

/* One more line changed, from the upper left corner. True where the other search is met. */
static bool advance(struct diff *diff, const struct box *box, struct search *search,
		    const struct search *other, bool may_meet, struct point *ret_point)
{
	for (int32_t d = search->last; d >= search->first; d -= 2) {
		int32_t removed = search->furthest[d - 1] + 1, added = search->furthest[d + 1];
		int32_t x = removed > added ? removed : added, y = x - d;

		diff->work++;
		for (; x < box->right && y < box->bottom && is_equal(diff, x, y); x++, y++)
			diff->work++;
		search->furthest[d] = x;
		if (may_meet && reaches(other, d) && other->furthest[d] <= x) {
			*ret_point = (struct point){ x, y };
			return true;
		}
	}
	return false;
}

/* The same from the lower right one. */
static bool retreat(struct diff *diff, const struct box *box, struct search *search,
		    const struct search *other, bool may_meet, struct point *ret_point)
{
	for (int32_t d = search->last; d >= search->first; d -= 2) {
		int32_t added = search->furthest[d - 1], removed = search->furthest[d + 1] - 1;
		int32_t x = added < removed ? added : removed, y = x - d;

		diff->work++;
		for (; x > box->left && y > box->top && is_equal(diff, x - 1, y - 1); x--, y--)
			diff->work++;
		search->furthest[d] = x;
		if (may_meet && reaches(other, d) && other->furthest[d] >= x) {
			*ret_point = (struct point){ x, y };
			return true;
		}
	}
	return false;
}

/* The place in the box that the first search has come furthest to. */
static struct point best(const struct box *box, const struct search *search)
{
	struct point best = { box->left, box->top };

	for (int32_t d = search->last; d >= search->first; d -= 2) {
		struct point here = { search->furthest[d], search->furthest[d] - d };

		if (here.x <= box->right && here.y <= box->bottom &&
		    here.x + here.y > best.x + best.y)
			best = here;
	}
	return best;
}

/* A point to split the box at; false where the work is used up or leads nowhere. */
static bool find_split(struct diff *diff, const struct box *box, uint64_t limit,
		       struct point *ret_point)
{
	int32_t lowest = box->left - box->bottom, highest = box->right - box->top;
	int32_t begin = box->left - box->top, end = box->right - box->bottom;
	struct search forward = { diff->forward, begin, begin };
	struct search backward = { diff->backward, end, end };
	bool is_odd = (begin - end) & 1;

	forward.furthest[begin] = box->left;
	backward.furthest[end] = box->right;
	for (unsigned cost = 0; cost < TEXT_DIFF_LIMIT_COST; cost++) {
		if (diff->work > limit)
			return false;
		widen(&forward, lowest, highest, -1);
		if (advance(diff, box, &forward, &backward, is_odd, ret_point))
			return true;
		widen(&backward, lowest, highest, INT32_MAX);
		if (retreat(diff, box, &backward, &forward, !is_odd, ret_point))
			return true;
	}
	*ret_point = best(box, &forward);
	return ret_point->x + ret_point->y > box->left + box->top &&
	       ret_point->x + ret_point->y < box->right + box->bottom;
}

static void trim(const struct diff *diff, struct box *box)
{
	while (box->left < box->right && box->top < box->bottom &&
	       is_equal(diff, box->left, box->top)) {
		box->left++;
		box->top++;
	}
	while (box->left < box->right && box->top < box->bottom &&
	       is_equal(diff, box->right - 1, box->bottom - 1)) {
		box->right--;
		box->bottom--;
	}
}

static void change_all(struct diff *diff, const struct box *box)
{
	for (int32_t x = box->left; x < box->right; x++)
		diff->before.changed[diff->before.lines[x]] = true;
	for (int32_t y = box->top; y < box->bottom; y++)
		diff->after.changed[diff->after.lines[y]] = true;
}

static int64_t size_of(const struct box *box)
{
	return (int64_t)(box->right - box->left) + (box->bottom - box->top);
}

static void compare(struct diff *diff, uint64_t limit)
{
	struct box boxes[BOXES] = { { 0, (int32_t)diff->before.kept, 0,
				      (int32_t)diff->after.kept } };
	unsigned count = 1;

	while (count) {
		struct box box = boxes[--count], first, second;
		struct point point;

		trim(diff, &box);
		if (box.left == box.right || box.top == box.bottom) {
			change_all(diff, &box);
			continue;
		}
		if (count + 2 > BOXES || !find_split(diff, &box, limit, &point)) {
			diff->is_coarse = true;
			change_all(diff, &box);
			continue;
		}
		first = (struct box){ box.left, point.x, box.top, point.y };
		second = (struct box){ point.x, box.right, point.y, box.bottom };
		boxes[count++] = size_of(&first) > size_of(&second) ? first : second;
		boxes[count++] = size_of(&first) > size_of(&second) ? second : first;
	}
}

/* Room for diagonals from -(lines after) - 1 to (lines before) + 1. */
static int make_searches(struct diff *diff)
{
	size_t count = (size_t)diff->before.kept + diff->after.kept + 3;

	diff->forward_base = calloc(count, sizeof(*diff->forward_base));
	diff->backward_base = calloc(count, sizeof(*diff->backward_base));
	if (!diff->forward_base || !diff->backward_base)
		return -ENOMEM;
	diff->forward = diff->forward_base + diff->after.kept + 1;
	diff->backward = diff->backward_base + diff->after.kept + 1;
	return 0;
}

/* ---- hunks ---- */

struct hunks {
	const struct diff *diff;
	const struct text_diff *out;
	uint32_t x, y; /* the next line of each */
};

static bool is_changed(const struct side *side, uint32_t line)
{
	return line < side->count && side->changed[line];
}

static int put(struct hunks *hunks, enum text_diff_line kind, const char *bytes, size_t length)
{
	return hunks->out->take ? hunks->out->take(hunks->out->context, kind, bytes, length) : 0;
}

static int put_line(struct hunks *hunks, enum text_diff_line kind, const struct side *side,
		    uint32_t number)
{
	static const char none[] = " No newline at end of file";
	struct text line = line_of(side, number);
	bool has_newline = line.length && line.bytes[line.length - 1] == '\n';
	int result = put(hunks, kind, line.bytes, line.length - has_newline);

	if (result == 0 && !has_newline)
		result = put(hunks, TEXT_DIFF_NO_NEWLINE, none, sizeof(none) - 1);
	return result;
}

/* "3,4": a range that is empty is named by the line before it. */
static int range(char *text, size_t room, uint32_t begin, uint32_t end)
{
	uint32_t count = end - begin;

	if (count == 1)
		return snprintf(text, room, "%u", begin + 1);
	return snprintf(text, room, "%u,%u", count ? begin + 1 : begin, count);
}

static int put_header(struct hunks *hunks, const struct hunks *end)
{
	char before[32], after[32], header[80];
	int length;

	(void)range(before, sizeof(before), hunks->x, end->x);
	(void)range(after, sizeof(after), hunks->y, end->y);
	length = snprintf(header, sizeof(header), "@@ -%s +%s @@", before, after);
	return put(hunks, TEXT_DIFF_HUNK, header, (size_t)length);
}

/* Goes over changed lines, then over the unchanged ones, but those at most `limit`. */
static uint32_t skip(struct hunks *at, uint32_t limit)
{
	const struct side *before = &at->diff->before, *after = &at->diff->after;
	uint32_t same = 0;

	while (is_changed(before, at->x))
		at->x++;
	while (is_changed(after, at->y))
		at->y++;
	while (same < limit && at->x < before->count && !is_changed(before, at->x) &&
	       !is_changed(after, at->y)) {
		at->x++;
		at->y++;
		same++;
	}
	return same;
}

/* Where the hunk that begins here ends: behind the context of its last change. */
static struct hunks end_of(const struct hunks *hunks)
{
	const struct side *before = &hunks->diff->before, *after = &hunks->diff->after;
	struct hunks at = *hunks;
	uint32_t same;

	/* its first context */
	while (at.x < before->count && !is_changed(before, at.x) && !is_changed(after, at.y)) {
		at.x++;
		at.y++;
	}
	do
		same = skip(&at, 2 * TEXT_DIFF_CONTEXT);
	while (is_changed(before, at.x) || is_changed(after, at.y));
	if (same > TEXT_DIFF_CONTEXT) {
		at.x -= same - TEXT_DIFF_CONTEXT;
		at.y -= same - TEXT_DIFF_CONTEXT;
	}
	return at;
}

static int put_hunk(struct hunks *hunks)
{
	const struct side *before = &hunks->diff->before, *after = &hunks->diff->after;
	struct hunks end = end_of(hunks);
	int result = put_header(hunks, &end);

	while (result == 0 && (hunks->x < end.x || hunks->y < end.y)) {
		if (is_changed(before, hunks->x))
			result = put_line(hunks, TEXT_DIFF_REMOVED, before, hunks->x++);
		else if (is_changed(after, hunks->y))
			result = put_line(hunks, TEXT_DIFF_ADDED, after, hunks->y++);
		else {
			result = put_line(hunks, TEXT_DIFF_SAME, before, hunks->x++);
			hunks->y++;
		}
	}
	return result;
}

static int put_hunks(const struct diff *diff, const struct text_diff *out)
{
	struct hunks hunks = { .diff = diff, .out = out };
	int result = 0;

	while (result == 0) {
		uint32_t begun = hunks.x, same;

		while (hunks.x < diff->before.count && !is_changed(&diff->before, hunks.x) &&
		       !is_changed(&diff->after, hunks.y)) {
			hunks.x++;
			hunks.y++;
		}
		if (!is_changed(&diff->before, hunks.x) && !is_changed(&diff->after, hunks.y))
			break;
		same = hunks.x - begun;
		same = same > TEXT_DIFF_CONTEXT ? TEXT_DIFF_CONTEXT : same;
		hunks.x -= same;
		hunks.y -= same;
		result = put_hunk(&hunks);
	}
	return result;
}

/* ---- all of it ---- */

static void count(const struct diff *diff, struct text_diff_count *ret_count)
{
	*ret_count = (struct text_diff_count){ .is_coarse = diff->is_coarse };
	for (uint32_t i = 0; i < diff->before.count; i++)
		ret_count->removed += diff->before.changed[i];
	for (uint32_t i = 0; i < diff->after.count; i++)
		ret_count->added += diff->after.changed[i];
}

static void free_side(struct side *side)
{
	free(side->starts);
	free(side->classes);
	free(side->changed);
	free(side->order);
	free(side->lines);
}

int text_diff(struct text before, struct text after, const struct text_diff *diff,
	      struct text_diff_count *ret_count)
{
	struct diff own = { .before.text = before, .after.text = after };
	int result = read_lines(&own.before);

	if (result == 0)
		result = read_lines(&own.after);
	if (result == 0)
		result = classify(&own);
	if (result == 0)
		result = leave_out(&own);
	if (result == 0)
		result = make_searches(&own);
	if (result == 0) {
		compare(&own, diff->work ? diff->work : TEXT_DIFF_LIMIT_WORK);
		result = put_hunks(&own, diff);
	}
	if (result == 0)
		count(&own, ret_count);
	free_side(&own.before);
	free_side(&own.after);
	free(own.forward_base);
	free(own.backward_base);
	return result;
}
