#include "workspace/sweep_name.h"

#include "base/utf8.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Longer than every name of the table. */
#define FOLDED_BYTES 32u
/* What one character folds to. */
#define FOLD_BYTES 3u
/* Stands for a character that folds to no ASCII: in no name of the table. */
#define NO_ASCII '\x7f'
/* With which the names of the table begin. */
#define FIRST_LETTERS "._abcghilmorsw"

static const struct sweep_name rows[] = {
#define SWEEP(place, name, class, what) { place, name, class, what },
#include "workspace/sweep_name.def"
#undef SWEEP
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Characters that fold to ASCII (Unicode's CaseFolding.txt and its canonical decompositions). */
static const struct {
	uint32_t point;
	const char *text;
} folds[] = {
	{ 0xdf, "ss" },	   { 0x17f, "s" },   { 0x37e, ";" },   { 0x1e9e, "ss" }, { 0x1fef, "`" },
	{ 0x212a, "k" },   { 0xfb00, "ff" }, { 0xfb01, "fi" }, { 0xfb02, "fl" }, { 0xfb03, "ffi" },
	{ 0xfb04, "ffl" }, { 0xfb05, "st" }, { 0xfb06, "st" },
};

static const char *fold_of(uint32_t point)
{
	for (size_t i = 0; i < sizeof(folds) / sizeof(folds[0]); i++)
		if (folds[i].point == point)
			return folds[i].text;
	return NULL;
}

static char lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

/*
 * The name without what is ignored; what is no UTF-8 ends it, as git has it. Cut before a character
 * that is in none of ours, of which a trace stays; and where it is longer than all of ours: behind
 * one of ours there can be dots and spaces only, in any number, or what does not count.
 */
static void fold(const char *name, char ret_folded[static FOLDED_BYTES])
{
	size_t left = strlen(name), used = 0;

	while (left && used + FOLD_BYTES < FOLDED_BYTES) {
		uint32_t point;
		size_t length = utf8_decode(name, left, &point);
		const char *text = length > 1 ? fold_of(point) : NULL;

		if (length == 0)
			break;
		if (length == 1)
			ret_folded[used++] = *name;
		while (text && *text)
			ret_folded[used++] = *text++;
		if (length > 1 && !fold_of(point) && utf8_is_visible(point)) {
			ret_folded[used++] = NO_ASCII;
			break;
		}
		name += length;
		left -= length;
	}
	ret_folded[used] = '\0';
}

/* What NTFS and vfat do not count. */
static bool is_tail(const char *text)
{
	text += strspn(text, ". ");
	return *text == '\0' || *text == ':' || *text == '\\';
}

static bool is_text_of(const char *name, const char *text)
{
	size_t length = 0;

	while (name[length] && lower(name[length]) == lower(text[length]))
		length++;
	return !name[length] && is_tail(text + length);
}

static bool is_ascii(const char *name)
{
	while (*name && (unsigned char)*name < 0x80)
		name++;
	return !*name;
}

/* Most names begin as none of ours does. */
static bool may_be_one(const char *name)
{
	return (unsigned char)name[0] >= 0x80 || (name[0] && strchr(FIRST_LETTERS, lower(name[0])));
}

/* Those rows come first. */
static const struct sweep_name *find_by_end(const char *name, bool *ret_is_exact)
{
	for (const char *end = strchr(name, '.'); end; end = strchr(end + 1, '.')) {
		char folded[FOLDED_BYTES];
		const char *text = end;

		if (!is_ascii(end)) {
			fold(end, folded);
			text = folded;
		}
		for (size_t i = 0; rows[i].name[0] == '*'; i++) {
			if (!is_text_of(rows[i].name + 1, text))
				continue;
			*ret_is_exact = strcmp(rows[i].name + 1, end) == 0;
			return &rows[i];
		}
	}
	return NULL;
}

const struct sweep_name *sweep_name_row(size_t index)
{
	return index < ROWS ? &rows[index] : NULL;
}

const struct sweep_name *sweep_name_find(enum sweep_place place, const char *name,
					 bool *ret_is_exact)
{
	char folded[FOLDED_BYTES];
	const char *text = name;
	unsigned places = place;
	const struct sweep_name *by_end = sweep_is_tree(place) ? find_by_end(name, ret_is_exact) :
								 NULL;

	if (by_end || !may_be_one(name))
		return by_end;
	if (place == SWEEP_IN_FORGE || place == SWEEP_IN_NEW_FORGE)
		places = SWEEP_IN_FORGE | SWEEP_IN_TREE;
	if (!is_ascii(name)) {
		fold(name, folded);
		text = folded;
	}
	for (size_t i = 0; i < ROWS; i++) {
		if (!(rows[i].places & places) || !is_text_of(rows[i].name, text))
			continue;
		*ret_is_exact = strcmp(rows[i].name, name) == 0;
		return &rows[i];
	}
	return NULL;
}

const struct sweep_name *sweep_name_of_path(const char *path)
{
	const char *slash = strrchr(path, '/'), *begin = slash;
	enum sweep_place place = SWEEP_IN_TREE;
	char parent[NAME_MAX + 1];
	bool is_exact;

	while (begin && begin > path && begin[-1] != '/')
		begin--;
	if (begin && (size_t)(slash - begin) < sizeof(parent)) {
		memcpy(parent, begin, (size_t)(slash - begin));
		parent[slash - begin] = '\0';
		place = sweep_place_below(sweep_name_find(SWEEP_IN_TREE, parent, &is_exact));
	}
	return sweep_name_find(place, slash ? slash + 1 : path, &is_exact);
}
