#include "broker/infer_internal.h"

#include <string.h>
#include <strings.h>

struct text {
	const char *text;
	unsigned says;
};

/* Compared without regard to case. */
static const struct text texts[] = {
	{ "no such file", SAYS_ABSENT | SAYS_ERRNO },
	{ "enoent", SAYS_ABSENT | SAYS_ERRNO },
	{ "permission denied", SAYS_REFUSED | SAYS_ERRNO },
	{ "operation not permitted", SAYS_REFUSED | SAYS_ERRNO },
	{ "not a git repository", SAYS_ABSENT },
	{ "eacces", SAYS_REFUSED | SAYS_ERRNO },
	{ "eperm:", SAYS_REFUSED | SAYS_ERRNO },
	{ "read-only file system", SAYS_READ_ONLY | SAYS_ERRNO },
	{ "erofs", SAYS_READ_ONLY | SAYS_ERRNO },
	{ "device or resource busy", SAYS_BUSY },
	{ "resource busy or locked", SAYS_BUSY },
	{ "directory nonexistent", SAYS_ABSENT },
	{ ": not found", SAYS_BESIDE },
	{ " file not found", SAYS_BESIDE },
	{ " does not exist", SAYS_BESIDE },
	{ " doesn't exist", SAYS_BESIDE },
	{ "not accessible", SAYS_ABSENT },
	{ "unable to access", SAYS_ABSENT },
	{ "cannot access", SAYS_ABSENT },
	{ "cannot open", SAYS_ABSENT },
	{ "can't open", SAYS_ABSENT },
	{ "could not open", SAYS_ABSENT },
	{ "couldn't open", SAYS_ABSENT },
	{ "unable to open", SAYS_ABSENT },
	{ "failed to open", SAYS_ABSENT },
	{ "can't read", SAYS_ABSENT },
	{ "couldn't read", SAYS_ABSENT },
	{ "cannot find module", SAYS_ABSENT },
	{ "no rule to make target", SAYS_ABSENT },
	{ "nosuchfileexception", SAYS_ABSENT },
	{ "accessdeniedexception", SAYS_REFUSED },
	{ "cannot create", SAYS_WRITING },
	{ "cannot touch", SAYS_WRITING },
	{ "cannot remove", SAYS_WRITING },
	{ "cannot move", SAYS_WRITING },
	{ "cannot mkdir", SAYS_WRITING },
	{ "cannot write", SAYS_WRITING },
	{ "could not write", SAYS_WRITING },
	{ "could not create", SAYS_WRITING },
	{ "failed to create", SAYS_WRITING },
	{ "failed to write", SAYS_WRITING },
	{ "for writing", SAYS_WRITING },
	{ "output file", SAYS_WRITING },
	{ "changing permissions", SAYS_WRITING },
	{ "unlink", SAYS_WRITING },
	{ "rename", SAYS_WRITING },
	{ "mkdir", SAYS_WRITING },
	{ "could not resolve host", SAYS_UNRESOLVED },
	{ "could not resolve proxy", SAYS_UNRESOLVED },
	{ "failure in name resolution", SAYS_UNRESOLVED },
	{ "temporary failure resolving", SAYS_UNRESOLVED },
	{ "name or service not known", SAYS_UNRESOLVED },
	{ "unable to resolve host", SAYS_UNRESOLVED },
	{ "failed to lookup address", SAYS_UNRESOLVED },
	{ "no such host", SAYS_UNRESOLVED },
	{ "unknownhostexception", SAYS_UNRESOLVED },
	{ "eai_again", SAYS_UNRESOLVED },
	{ "enotfound", SAYS_UNRESOLVED },
	{ "socket.gaierror", SAYS_UNRESOLVED },
	{ "network is unreachable", SAYS_UNREACHABLE },
	{ "enetunreach", SAYS_UNREACHABLE },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool infer_is_space(char c)
{
	return (unsigned char)c <= ' ' || c == 0x7f;
}

bool infer_is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (unsigned char)c >= 0x80;
}

/* True when the text stands in the line and does not begin inside of a word. */
static bool line_has(const char *line, const char *text)
{
	for (const char *at = strcasestr(line, text); at; at = strcasestr(at + 1, text))
		if (at == line || !infer_is_alnum(at[-1]) || !infer_is_alnum(*text))
			return true;
	return false;
}

unsigned infer_line_says(const char *line)
{
	unsigned says = 0;

	for (size_t i = 0; i < COUNT(texts); i++)
		if ((says & texts[i].says) != texts[i].says && line_has(line, texts[i].text))
			says |= texts[i].says;
	return says;
}

unsigned infer_says_at(const char *at)
{
	for (size_t i = 0; i < COUNT(texts); i++)
		if (strncasecmp(at, texts[i].text, strlen(texts[i].text)) == 0)
			return texts[i].says;
	return 0;
}

/* Bytes of a typographic quote (U+2018, U+2019, U+201C, U+201D) at this place; else 0. */
static size_t curly_quote(const char *at)
{
	static const char *const quotes[] = { "\xe2\x80\x98", "\xe2\x80\x99", "\xe2\x80\x9c",
					      "\xe2\x80\x9d" };

	for (size_t i = 0; i < COUNT(quotes); i++)
		if (strncmp(at, quotes[i], 3) == 0)
			return 3;
	return 0;
}

size_t infer_quote(const char *at)
{
	return *at == '\'' || *at == '"' || *at == '`' ? 1 : curly_quote(at);
}

/* True when the quote at `end` closes the one at `open`. */
static bool closes(const char *open, const char *end)
{
	if (*open == '`')
		return *end == '`' || *end == '\'';
	if (*open == '\'' || *open == '"')
		return *end == *open;
	return curly_quote(end) && end[2] == open[2] + 1;
}

bool infer_starts_path(const char *at)
{
	return *at == '/' ||
	       (at[0] == '~' && (at[1] == '/' || infer_is_space(at[1]) || infer_quote(at + 1))) ||
	       strncmp(at, "./", 2) == 0 || strncmp(at, "file://", 7) == 0;
}

/* The quoted word that opens there; false where the quote is only a mark between words. */
static bool quoted_word(const char *open, struct infer_word *ret_word)
{
	size_t width = infer_quote(open);
	const char *start = open + width, *end = start;
	bool spaces = false;

	for (; *end; end++) {
		size_t closing = infer_quote(end);

		if (closing && closes(open, end) && !infer_is_alnum(end[closing]) &&
		    end[closing] != '\\')
			break;
		if (end[0] == ':' && infer_is_space(end[1]))
			return false;
		spaces |= *end == ' ';
		if (infer_is_space(*end) && *end != ' ')
			return false;
	}
	if (!*end || end == start || (spaces && !infer_starts_path(start)))
		return false;
	*ret_word = (struct infer_word){ .start = start,
					 .length = (size_t)(end - start),
					 .quoted = true,
					 .after = end + infer_quote(end) };
	return true;
}

static bool ends_word(const char *start, const char *at)
{
	if (infer_is_space(*at) || strchr("()[]{}<>,;\"`", *at) || curly_quote(at))
		return true;
	switch (*at) {
	case '\'':
		return at == start || !infer_is_alnum(at[-1]) || !infer_is_alnum(at[1]);
	case ':':
		return infer_is_space(at[1]) || infer_quote(at + 1) ||
		       (at[1] >= '0' && at[1] <= '9') || at[1] == ':' ||
		       (at[1] == '/' && at[2] != '/');
	case '=':
		return infer_starts_path(at + 1) || infer_quote(at + 1);
	default:
		return false;
	}
}

bool infer_next_word(const char **at, struct infer_word *ret_word)
{
	const char *start = *at, *end;

	for (;; start++) {
		if (!*start)
			return false;
		if (infer_quote(start)) {
			if (quoted_word(start, ret_word)) {
				*at = ret_word->after;
				return true;
			}
			start += infer_quote(start) - 1;
		} else if (!ends_word(start, start) && *start != '=' && *start != ':') {
			break;
		}
	}
	for (end = start; *end && !ends_word(start, end); end++)
		;
	*at = end;
	while (end > start + 1 && strchr(".,;:!?", end[-1]))
		end--;
	*ret_word = (struct infer_word){ .start = start,
					 .length = (size_t)(end - start),
					 .after = end };
	return true;
}

bool infer_refusal_follows(const char *after)
{
	const char *end;

	if (strncmp(after, ": ", 2) != 0 && strncmp(after, " (", 2) != 0)
		return false;
	after += 2;
	if (strncasecmp(after, "cannot ", 7) == 0) {
		end = after + 7 + strcspn(after + 7, " :");
		if (strncmp(end, ": ", 2) == 0)
			after = end + 2;
	}
	/* python and others put the number first */
	if (*after == '[' && (end = strstr(after, "] ")))
		after = end + 2;
	return infer_says_at(after) & (SAYS_ERRNO | SAYS_BUSY);
}
