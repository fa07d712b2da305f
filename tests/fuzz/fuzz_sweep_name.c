/*
 * Names against what git itself takes for ".git" on HFS+ and NTFS, written down again in the
 * obvious way (the rules of is_hfs_dotgit() and is_ntfs_dotgit()), and against laws of their own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "workspace/sweep_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool is_ignored(uint32_t point)
{
	return (point >= 0x200c && point <= 0x200f) || (point >= 0x202a && point <= 0x202e) ||
	       (point >= 0x206a && point <= 0x206f) || point == 0xfeff;
}

/* What is no UTF-8 ends the name. */
static bool is_hfs_git(const char *name)
{
	static const char word[] = ".git";
	size_t at = 0, left = strlen(name);

	while (left) {
		uint32_t point;
		size_t length = utf8_decode(name, left, &point);

		if (length == 0)
			break;
		name += length;
		left -= length;
		if (is_ignored(point))
			continue;
		if (at == 4 || point >= 0x80 || (point | 0x20) != ((uint32_t)word[at] | 0x20) ||
		    (at == 0 && point != '.'))
			return false;
		at++;
	}
	return at == 4;
}

static bool is_ntfs_git(const char *name)
{
	if (strncasecmp(name, ".git", 4) == 0)
		name += 4;
	else if (strncasecmp(name, "git~1", 5) == 0)
		name += 5;
	else
		return false;
	name += strspn(name, ". ");
	return *name == '\0' || *name == ':' || *name == '\\';
}

static void check_places(const char *name)
{
	for (unsigned place = SWEEP_IN_TREE; place < SWEEP_IN_ALL; place <<= 1) {
		bool is_exact = false, again = false;
		const struct sweep_name *row =
			sweep_name_find((enum sweep_place)place, name, &is_exact);

		if (!row)
			continue;
		require(row->places & place);
		require(is_exact == (strcmp(row->name, name) == 0));
		/* by its own name it is itself */
		require(sweep_name_find((enum sweep_place)place, row->name, &again) == row);
		require(again);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = strndup((const char *)data, size);
	const struct sweep_name *row;
	bool is_exact;

	require(name != NULL);
	row = sweep_name_find(SWEEP_IN_TREE, name, &is_exact);
	if (!strchr(name, '/') && (is_hfs_git(name) || is_ntfs_git(name)))
		require(row && row->class == SWEEP_GIT);
	check_places(name);
	free(name);
	return 0;
}
