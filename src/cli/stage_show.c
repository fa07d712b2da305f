#include "cli/stage_show.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/page.h"
#include "workspace/stage_changes.h"
#include "workspace/stage_look.h"
#include "workspace/text_diff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bar of a summary, at most as wide. */
#define BAR_COLUMNS 40u

struct content {
	char *bytes; /* owned */
	size_t length;
	bool is_there;
	bool is_cut; /* too large, or it could not be read */
};

struct stat_row {
	const char *path; /* as it is shown */
	const char *note; /* instead of lines; NULL: none */
	size_t added, removed;
};

struct show {
	struct page *page;
	enum stage_format format;
	struct stage_totals totals;
	/* a directory that came or went; shown where nothing in it is */
	char *directory; /* owned; NULL: none */
	enum stage_kind directory_kind;
	/* the summary's rows so far */
	struct arena arena;
	struct stat_row *rows; /* in the arena */
	size_t row_count;
};

/* ---- names ---- */

static bool is_plain(const char *path)
{
	size_t left = strlen(path);

	while (left) {
		uint32_t point;
		size_t length = utf8_decode(path, left, &point);

		if (!length || !utf8_is_visible(point) || point == '"' || point == '\\')
			return false;
		path += length;
		left -= length;
	}
	return true;
}

static void quote_byte(struct buffer *text, unsigned char byte)
{
	static const char letters[] = "abtnvfr";

	if (byte >= '\a' && byte <= '\r')
		buffer_format(text, "\\%c", letters[byte - '\a']);
	else if (byte == '"' || byte == '\\')
		buffer_format(text, "\\%c", byte);
	else if (byte < ' ' || byte >= 0x7f)
		buffer_format(text, "\\%03o", byte);
	else
		buffer_byte(text, (char)byte);
}

/* As git quotes names (git-config(1), core.quotePath), visible characters left as they are. */
static void put_name(struct buffer *text, const char *prefix, const char *path)
{
	if (is_plain(path)) {
		buffer_text(text, prefix);
		buffer_text(text, path);
		return;
	}
	buffer_byte(text, '"');
	buffer_text(text, prefix);
	for (; *path; path++)
		quote_byte(text, (unsigned char)*path);
	buffer_byte(text, '"');
}

/* ---- contents ---- */

static void content_free(struct content *content)
{
	free(content->bytes);
}

#define CLEANUP_CONTENT __attribute__((cleanup(content_free)))

static void read_file(const struct stage_change *change, enum stage_which which,
		      struct content *content)
{
	int CLEANUP_FD fd = stage_open(change, which);
	ssize_t length;

	content->bytes = fd < 0 ? NULL : malloc(TEXT_DIFF_LIMIT_BYTES + 1);
	length = content->bytes ? fd_read_all(fd, content->bytes, TEXT_DIFF_LIMIT_BYTES + 1) : -1;
	content->is_cut = length < 0 || length > (ssize_t)TEXT_DIFF_LIMIT_BYTES;
	content->length = content->is_cut ? 0 : (size_t)length;
}

/* A link's content is its target. */
static void read_content(const struct stage_change *change, enum stage_which which,
			 struct content *content)
{
	const struct stage_side *side = which == STAGE_BEFORE ? &change->before : &change->after;
	int length;

	content->is_there = side->type == STAGE_FILE || side->type == STAGE_LINK;
	if (side->type == STAGE_FILE && side->size > TEXT_DIFF_LIMIT_BYTES)
		content->is_cut = true;
	else if (side->type == STAGE_FILE)
		read_file(change, which, content);
	if (side->type != STAGE_LINK)
		return;
	content->bytes = malloc(PATH_MAX);
	length = content->bytes ? stage_link(change, which, content->bytes) : -1;
	content->is_cut = length < 0;
	content->length = length < 0 ? 0 : (size_t)length;
}

static struct text text_of(const struct content *content)
{
	return (struct text){ content->bytes, content->length };
}

static void put_colour(struct show *show, enum page_colour colour)
{
	buffer_text(&show->page->text, page_colour(show->page, colour));
}

/* ---- rows of a summary ---- */

static unsigned digits(uint64_t number)
{
	unsigned count = 1;

	while (number /= 10)
		count++;
	return count;
}

static void put_bar(struct show *show, const struct stat_row *row, size_t largest)
{
	struct buffer *text = &show->page->text;
	size_t all = row->added + row->removed, columns = all, added = row->added;

	if (largest > BAR_COLUMNS) {
		columns = (all * BAR_COLUMNS + largest - 1) / largest;
		added = all ? (row->added * columns + all / 2) / all : 0;
	}
	put_colour(show, PAGE_GOOD);
	for (size_t i = 0; i < added; i++)
		buffer_byte(text, '+');
	put_colour(show, PAGE_BAD);
	for (size_t i = added; i < columns; i++)
		buffer_byte(text, '-');
	put_colour(show, PAGE_PLAIN);
}

/* Columns, as far as bytes that begin a character tell. */
static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static int put_rows(struct show *show)
{
	struct buffer *text = &show->page->text;
	size_t widest = 0, largest = 0;
	int result = 0;

	for (size_t i = 0; i < show->row_count; i++) {
		size_t width = width_of(show->rows[i].path);
		size_t all = show->rows[i].added + show->rows[i].removed;

		widest = width > widest && width <= 80 ? width : widest;
		largest = all > largest ? all : largest;
	}
	for (size_t i = 0; i < show->row_count && result == 0; i++) {
		const struct stat_row *row = &show->rows[i];
		size_t width = width_of(row->path);

		buffer_format(text, " %s%*s | ", row->path,
			      width < widest ? (int)(widest - width) : 0, "");
		if (row->note) {
			buffer_text(text, row->note);
		} else {
			buffer_format(text, "%*zu ", (int)digits(largest),
				      row->added + row->removed);
			put_bar(show, row, largest);
		}
		buffer_byte(text, '\n');
		result = page_put(show->page);
	}
	show->row_count = 0;
	show->rows = NULL;
	arena_reset(&show->arena);
	return result;
}

static int add_row(struct show *show, struct stat_row row)
{
	struct stat_row *rows = arena_push(&show->arena, show->rows, show->row_count, sizeof(row));

	if (!rows || !row.path || arena_failed(&show->arena))
		return -ENOMEM;
	show->rows = rows;
	show->rows[show->row_count++] = row;
	return show->row_count == STAGE_LIMIT_STAT_ROWS ? put_rows(show) : 0;
}

/* ---- notes: what a patch has no form for ---- */

static const char *mark_text(enum stage_mark mark)
{
	switch (mark) {
	case STAGE_MARK_SET_ID:
		return "set-id bits";
	case STAGE_MARK_CAPABILITY:
		return "file capabilities";
	case STAGE_MARK_ACL:
		return "another ACL";
	case STAGE_MARK_ATTRIBUTE:
		return "other attributes";
	case STAGE_MARK_LINKED:
		return "has more than one name";
	case STAGE_MARK_CREDENTIAL:
		return "credential-shaped content";
	case STAGE_MARK_PARTLY:
		return "too large to be looked through";
	default:
		return NULL; /* said by the patch, or in other words */
	}
}

static void put_note(struct show *show, bool *has_note, const char *text)
{
	buffer_text(&show->page->text, *has_note ? "; " : " ");
	buffer_text(&show->page->text, text);
	*has_note = true;
}

static mode_t git_mode(const struct stage_side *side)
{
	if (side->type == STAGE_LINK)
		return 0120000;
	return side->mode & 0100 ? 0100755 : 0100644;
}

static bool is_patched(const struct stage_side *side)
{
	return side->type == STAGE_FILE || side->type == STAGE_LINK;
}

static void put_mode_note(struct show *show, const struct stage_change *change, bool *has_note)
{
	const struct stage_side *before = &change->before, *after = &change->after;

	if (before->type != after->type || before->type == STAGE_LINK ||
	    before->mode == after->mode)
		return;
	if (before->type == STAGE_FILE && (before->mode ^ after->mode) == 0111)
		return; /* the patch says it */
	put_note(show, has_note, "mode ");
	buffer_format(&show->page->text, "%04o -> %04o", (unsigned)before->mode,
		      (unsigned)after->mode);
}

static void put_type_note(struct show *show, const struct stage_change *change, bool *has_note)
{
	const struct stage_side *before = &change->before, *after = &change->after;

	if ((before->type == STAGE_NONE || is_patched(before)) &&
	    (after->type == STAGE_NONE || is_patched(after)))
		return;
	put_note(show, has_note, stage_kind_name(change->kind));
	if (before->type != STAGE_NONE && before->type != after->type)
		buffer_format(&show->page->text, " %s", stage_type_name(before->type));
	if (before->type != STAGE_NONE && after->type != STAGE_NONE && before->type != after->type)
		buffer_text(&show->page->text, " by");
	if (after->type != STAGE_NONE)
		buffer_format(&show->page->text, " %s", stage_type_name(after->type));
}

/* "bawn: Makefile: executed later by make; credential-shaped content" */
static void put_notes(struct show *show, const struct stage_change *change, unsigned marks)
{
	struct buffer *text = &show->page->text;
	size_t begun = text->length, named;
	bool has_note = false;

	put_colour(show, PAGE_NOTICE);
	buffer_text(text, "bawn: ");
	put_name(text, "", change->path);
	buffer_byte(text, ':');
	named = text->length;
	put_type_note(show, change, &has_note);
	put_mode_note(show, change, &has_note);
	if (change->later) {
		put_note(show, &has_note, "executed later by ");
		buffer_text(text, change->later);
	}
	for (unsigned i = 0; i < STAGE_MARK_COUNT; i++)
		if ((marks & 1u << i) && mark_text((enum stage_mark)(1u << i)))
			put_note(show, &has_note, mark_text((enum stage_mark)(1u << i)));
	if (change->unread)
		put_note(show, &has_note, change->unread);
	if (text->failed)
		return;
	if (text->length == named) {
		text->length = begun;
		return;
	}
	put_colour(show, PAGE_PLAIN);
	buffer_byte(text, '\n');
}

/* The directory that was put off, where nothing in it was told. */
static int put_directory(struct show *show)
{
	struct buffer *text = &show->page->text;
	int result = 0;

	if (!show->directory)
		return 0;
	if (show->format == STAGE_STAT) {
		struct buffer name = { .arena = &show->arena };

		put_name(&name, "", show->directory);
		result = add_row(
			show, (struct stat_row){ .path = name.failed ? NULL : name.data,
						 .note = arena_format(
							 &show->arena, "%s directory",
							 stage_kind_name(show->directory_kind)) });
	} else {
		put_colour(show, PAGE_NOTICE);
		buffer_text(text, "bawn: ");
		put_name(text, "", show->directory);
		buffer_format(text, ": %s directory", stage_kind_name(show->directory_kind));
		put_colour(show, PAGE_PLAIN);
		buffer_byte(text, '\n');
	}
	free(show->directory);
	show->directory = NULL;
	return result;
}

/*
 * A directory that came or went is told by what is in it, if anything is: 1 where the row is
 * put off.
 */
static int put_off_directory(struct show *show, const struct stage_change *change)
{
	const struct stage_side *side = change->kind == STAGE_CREATED ? &change->after :
									&change->before;
	size_t length = show->directory ? strlen(show->directory) : 0;
	int result;

	if (length && strncmp(change->path, show->directory, length) == 0 &&
	    change->path[length] == '/') {
		free(show->directory);
		show->directory = NULL;
	}
	result = put_directory(show);
	if (result < 0)
		return result;
	if ((change->kind != STAGE_CREATED && change->kind != STAGE_REMOVED) ||
	    side->type != STAGE_DIRECTORY || change->marks || change->unread)
		return 0;
	show->directory = strdup(change->path);
	show->directory_kind = change->kind;
	return show->directory ? 1 : -ENOMEM;
}

/* ---- a patch ---- */

static int take_line(void *context, enum text_diff_line kind, const char *bytes, size_t length)
{
	static const struct look {
		char sign;
		enum page_colour colour;
	} looks[] = {
		[TEXT_DIFF_HUNK] = { '\0', PAGE_FAINT },
		[TEXT_DIFF_SAME] = { ' ', PAGE_PLAIN },
		[TEXT_DIFF_REMOVED] = { '-', PAGE_BAD },
		[TEXT_DIFF_ADDED] = { '+', PAGE_GOOD },
		[TEXT_DIFF_NO_NEWLINE] = { '\\', PAGE_FAINT },
	};
	struct show *show = context;
	struct buffer *text = &show->page->text;

	if (looks[kind].colour != PAGE_PLAIN)
		put_colour(show, looks[kind].colour);
	if (looks[kind].sign)
		buffer_byte(text, looks[kind].sign);
	while (show->page->is_terminal && length) {
		const char *tab = memchr(bytes, '\t', length);
		size_t part = tab ? (size_t)(tab - bytes) : length;

		buffer_visible_bytes(text, bytes, part);
		if (tab)
			buffer_byte(text, '\t');
		bytes += part + (tab != NULL);
		length -= part + (tab != NULL);
	}
	buffer_append(text, bytes, length);
	if (looks[kind].colour != PAGE_PLAIN)
		put_colour(show, PAGE_PLAIN);
	buffer_byte(text, '\n');
	return page_put(show->page);
}

static void put_file_line(struct show *show, const char *sign, const char *prefix, const char *path,
			  bool is_there)
{
	struct buffer *text = &show->page->text;

	put_colour(show, PAGE_STRONG);
	buffer_text(text, sign);
	if (is_there)
		put_name(text, prefix, path);
	else
		buffer_text(text, "/dev/null");
	/* what follows a name with a space in it must be told from it */
	if (is_there && is_plain(path) && strchr(path, ' '))
		buffer_byte(text, '\t');
	put_colour(show, PAGE_PLAIN);
	buffer_byte(text, '\n');
}

static void put_header(struct show *show, const struct stage_change *change)
{
	const struct stage_side *before = &change->before, *after = &change->after;
	const char *from = change->from ? change->from : change->path;
	struct buffer *text = &show->page->text;

	put_colour(show, PAGE_STRONG);
	buffer_text(text, "diff --git ");
	put_name(text, "a/", from);
	buffer_byte(text, ' ');
	put_name(text, "b/", change->path);
	buffer_byte(text, '\n');
	if (before->type == STAGE_NONE)
		buffer_format(text, "new file mode %o\n", (unsigned)git_mode(after));
	else if (after->type == STAGE_NONE)
		buffer_format(text, "deleted file mode %o\n", (unsigned)git_mode(before));
	else if (git_mode(before) != git_mode(after))
		buffer_format(text, "old mode %o\nnew mode %o\n", (unsigned)git_mode(before),
			      (unsigned)git_mode(after));
	if (change->from) {
		buffer_text(text, "similarity index 100%\nrename from ");
		put_name(text, "", from);
		buffer_text(text, "\nrename to ");
		put_name(text, "", change->path);
		buffer_byte(text, '\n');
	}
	put_colour(show, PAGE_PLAIN);
}

static bool is_text(const struct content *content)
{
	return !content->is_cut && !text_is_binary(text_of(content));
}

/* The file lines come with the first line that differs: two equal contents have none. */
struct body {
	struct show *show;
	const struct stage_change *change;
	bool has_begun;
};

static int take_body(void *context, enum text_diff_line kind, const char *bytes, size_t length)
{
	struct body *body = context;
	const struct stage_change *change = body->change;

	if (!body->has_begun) {
		put_file_line(body->show, "--- ", "a/", change->path,
			      change->before.type != STAGE_NONE);
		put_file_line(body->show, "+++ ", "b/", change->path,
			      change->after.type != STAGE_NONE);
		body->has_begun = true;
	}
	return take_line(body->show, kind, bytes, length);
}

static void put_binary(struct show *show, const struct stage_change *change)
{
	struct buffer *text = &show->page->text;

	buffer_text(text, "Binary files ");
	if (change->before.type == STAGE_NONE)
		buffer_text(text, "/dev/null");
	else
		put_name(text, "a/", change->path);
	buffer_text(text, " and ");
	if (change->after.type == STAGE_NONE)
		buffer_text(text, "/dev/null");
	else
		put_name(text, "b/", change->path);
	buffer_text(text, " differ\n");
}

/* One patch: both sides are of one type, or one of them is none. */
static int put_patch(struct show *show, const struct stage_change *change)
{
	struct content CLEANUP_CONTENT before = { 0 };
	struct content CLEANUP_CONTENT after = { 0 };
	struct body body = { show, change, false };
	struct text_diff diff = { .take = take_body, .context = &body };
	struct text_diff_count count = { 0 };
	int result;

	if (change->kind == STAGE_MODE && git_mode(&change->before) == git_mode(&change->after))
		return 0;
	put_header(show, change);
	if (change->kind == STAGE_RENAMED || change->kind == STAGE_MODE)
		return 0;
	read_content(change, STAGE_BEFORE, &before);
	read_content(change, STAGE_AFTER, &after);
	result = is_text(&before) && is_text(&after) ?
			 text_diff(text_of(&before), text_of(&after), &diff, &count) :
			 -EFBIG;
	if (result == -EFBIG) {
		put_binary(show, change);
		result = 0;
	}
	show->totals.added += count.added;
	show->totals.removed += count.removed;
	return result;
}

/* Of two types: what went, then what came. */
static int put_patches(struct show *show, const struct stage_change *change)
{
	const struct stage_side none = { .type = STAGE_NONE };
	struct stage_change gone = *change, come = *change;
	int result = 0;

	if (change->kind != STAGE_REPLACED)
		return is_patched(&change->before) || is_patched(&change->after) ?
			       put_patch(show, change) :
			       0;
	gone.kind = STAGE_REMOVED;
	gone.after = none;
	come.kind = STAGE_CREATED;
	come.before = none;
	if (is_patched(&change->before))
		result = put_patch(show, &gone);
	if (result == 0 && is_patched(&change->after))
		result = put_patch(show, &come);
	return result;
}

static int show_patch(struct show *show, const struct stage_change *change, unsigned marks)
{
	int result = 0;

	put_notes(show, change, marks);
	if (change->kind != STAGE_UNREAD)
		result = put_patches(show, change);
	return result;
}

/* ---- a summary: what its rows say ---- */

/* What has no lines to be counted says so in words; NULL where it has. */
static const char *stat_note(struct show *show, const struct stage_change *change,
			     struct stat_row *row)
{
	struct content CLEANUP_CONTENT before = { 0 };
	struct content CLEANUP_CONTENT after = { 0 };
	const struct text_diff diff = { 0 };
	struct text_diff_count count = { 0 };

	if (change->kind == STAGE_UNREAD)
		return change->unread;
	if ((change->before.type != STAGE_NONE && !is_patched(&change->before)) ||
	    (change->after.type != STAGE_NONE && !is_patched(&change->after)))
		return arena_format(&show->arena, "%s %s", stage_kind_name(change->kind),
				    stage_type_name(change->after.type != STAGE_NONE ?
							    change->after.type :
							    change->before.type));
	if (change->kind == STAGE_MODE)
		return change->unread ? change->unread : "mode or attributes";
	if (change->kind == STAGE_RENAMED)
		return "renamed";
	if (change->unread)
		return change->unread;
	read_content(change, STAGE_BEFORE, &before);
	read_content(change, STAGE_AFTER, &after);
	if (!is_text(&before) || !is_text(&after) ||
	    text_diff(text_of(&before), text_of(&after), &diff, &count) < 0)
		return arena_format(&show->arena, "Bin %llu -> %llu bytes",
				    (unsigned long long)change->before.size,
				    (unsigned long long)change->after.size);
	row->added = count.added;
	row->removed = count.removed;
	show->totals.added += count.added;
	show->totals.removed += count.removed;
	return NULL;
}

static const char *stat_name(struct show *show, const struct stage_change *change)
{
	struct buffer name = { .arena = &show->arena };

	if (change->from) {
		put_name(&name, "", change->from);
		buffer_text(&name, " => ");
	}
	put_name(&name, "", change->path);
	return name.failed ? NULL : name.data;
}

/* "git; credential-shaped content" behind a row */
static const char *stat_marks(struct show *show, const struct stage_change *change, unsigned marks,
			      const char *note)
{
	struct buffer text = { .arena = &show->arena };
	bool has_more = note;

	buffer_text(&text, note ? note : "");
	for (unsigned i = 0; i < STAGE_MARK_COUNT; i++) {
		const char *mark = mark_text((enum stage_mark)(1u << i));

		if (!(marks & 1u << i) || !mark)
			continue;
		buffer_format(&text, "%s%s", has_more ? ", " : "", mark);
		has_more = true;
	}
	if (change->later)
		buffer_format(&text, "%sexecuted later by %s", has_more ? ", " : "", change->later);
	return text.failed ? NULL : text.data;
}

static int show_stat(struct show *show, const struct stage_change *change, unsigned marks)
{
	struct stat_row row = { .path = stat_name(show, change) };

	row.note = stat_note(show, change, &row);
	if (!row.note && (change->later || (marks & STAGE_MARK_CREDENTIAL)))
		row.path = arena_format(&show->arena, "%s (%s)", row.path ? row.path : "",
					stat_marks(show, change, marks, NULL));
	else if (row.note)
		row.note = stat_marks(show, change, marks, row.note);
	return add_row(show, row);
}

static void put_sum(struct show *show)
{
	const struct stage_totals *totals = &show->totals;

	buffer_format(&show->page->text,
		      " %llu files changed, %llu insertions(+), %llu deletions(-)\n",
		      (unsigned long long)totals->files, (unsigned long long)totals->added,
		      (unsigned long long)totals->removed);
}

/* ---- JSON ---- */

static void json_side(struct json *json, const char *name, const struct stage_change *change,
		      enum stage_which which)
{
	const struct stage_side *side = which == STAGE_BEFORE ? &change->before : &change->after;
	char sha256[SHA256_HEX_BYTES], target[PATH_MAX], mode[8] = "";
	const char *reason;

	if (side->type == STAGE_NONE) {
		json_null(json, name);
		return;
	}
	json_object(json, name);
	json_string(json, "type", stage_type_name(side->type));
	(void)snprintf(mode, sizeof(mode), "%04o", (unsigned)side->mode & 07777);
	json_string(json, "mode", mode);
	if (side->type == STAGE_FILE) {
		reason = stage_hash(change, which, sha256);
		json_unsigned(json, "size", side->size);
		json_string(json, "sha256", reason ? NULL : sha256);
		if (reason)
			json_string(json, "unhashed", reason);
	}
	if (side->type == STAGE_LINK)
		json_string(json, "target", stage_link(change, which, target) < 0 ? NULL : target);
	json_object_end(json);
}

static void show_json(struct show *show, const struct stage_change *change, unsigned marks)
{
	struct json json;

	json_begin(&json, &show->page->text);
	json_object(&json, NULL);
	json_string(&json, "path", change->path);
	json_string(&json, "kind", stage_kind_name(change->kind));
	json_string(&json, "from", change->from);
	json_side(&json, "before", change, STAGE_BEFORE);
	json_side(&json, "after", change, STAGE_AFTER);
	json_array(&json, "marks");
	for (unsigned i = 0; i < STAGE_MARK_COUNT; i++)
		if (marks & 1u << i)
			json_string(&json, NULL, stage_mark_name(i));
	json_array_end(&json);
	json_string(&json, "executed_by", change->later);
	json_string(&json, "unread", change->unread);
	json_object_end(&json);
	buffer_byte(&show->page->text, '\n');
}

/* ---- all of it ---- */

static void add_totals(struct show *show, const struct stage_change *change, unsigned marks)
{
	struct stage_totals *totals = &show->totals;
	const struct stage_side *side = change->after.type != STAGE_NONE ? &change->after :
									   &change->before;

	totals->changes++;
	totals->files += side->type != STAGE_DIRECTORY && side->type != STAGE_NONE;
	totals->unread += change->unread != NULL;
	totals->marks |= marks;
}

static int take(void *context, const struct stage_change *change)
{
	struct show *show = context;
	unsigned marks = change->marks;
	int result = 0;

	if (change->kind != STAGE_MODE)
		marks |= stage_look(change);
	add_totals(show, change, marks);
	if (show->format == STAGE_JSON)
		show_json(show, change, marks);
	else
		result = put_off_directory(show, change);
	if (result == 0 && show->format != STAGE_JSON)
		result = show->format == STAGE_STAT ? show_stat(show, change, marks) :
						      show_patch(show, change, marks);
	return result < 0 ? result : page_put(show->page);
}

int stage_show(const struct stage *stage, enum stage_format format, struct page *page,
	       struct stage_totals *ret_totals, struct error *error)
{
	struct show show = { .page = page, .format = format };
	struct stage own = *stage;
	int result;

	own.take = take;
	own.context = &show;
	result = stage_changes(&own, error);
	if (result == 0)
		result = put_directory(&show);
	if (result == 0 && format == STAGE_STAT) {
		result = put_rows(&show);
		put_sum(&show);
	}
	if (result == 0)
		result = page_put(page);
	free(show.directory);
	arena_free(&show.arena);
	if (result == 0)
		*ret_totals = show.totals;
	return result;
}
