#include "workspace/git_value.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define LETTERS LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Of git's own transports. Any other scheme is the name of a program git-remote-<scheme>. */
static const char *const schemes[] = {
	"https", "http", "ssh", "git", "git+ssh", "ssh+git",
};

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
	return length >= strlen(end) && memcmp(text + length - strlen(end), end, strlen(end)) == 0;
}

static bool consists_of(const char *text, const char *bytes)
{
	return text[0] && text[strspn(text, bytes)] == '\0';
}

static bool has_control(const char *text, const char *but)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' || *text == 0x7f) && !strchr(but, *text))
			return true;
	return false;
}

static bool has_odd_start(const char *text)
{
	return text[0] == '!' || text[0] == '-' || text[0] == '~';
}

bool git_value_is_plain(const char *text)
{
	return !has_odd_start(text) && !has_control(text, "");
}

bool git_value_is_lines(const char *text)
{
	return !has_odd_start(text) && !has_control(text, "\n\t");
}

bool git_value_is_bool(const char *text)
{
	static const char *const words[] = {
		"", "true", "yes", "on", "false", "no", "off", "1", "0"
	};

	if (!text)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return false;
}

bool git_value_is_number(const char *text)
{
	size_t digits;

	text += *text == '-';
	digits = strspn(text, DIGITS);
	/* git refuses to run with a number that is too large: nine digits fit its smallest type */
	if (!digits || digits > 9)
		return false;
	return text[digits] == '\0' || (strchr("kKmMgG", text[digits]) && !text[digits + 1]);
}

bool git_value_is_color(const char *text)
{
	return consists_of(text, LETTERS DIGITS " #-");
}

bool git_value_is_sort(const char *text)
{
	return consists_of(text, LOWER "-:");
}

bool git_value_is_word(const char *text, const char *words)
{
	size_t length = strlen(text);

	for (;;) {
		size_t word = strcspn(words, "|");

		if (word == length && length && memcmp(words, text, length) == 0)
			return true;
		if (!words[word])
			return false;
		words += word + 1;
	}
}

/* No component is "." or "..", or empty. */
static bool is_clean(const char *path)
{
	for (;;) {
		size_t length = strcspn(path, "/");

		if (!length || (length == 1 && path[0] == '.') ||
		    (length == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[length])
			return true;
		path += length + 1;
	}
}

bool git_value_is_below(const char *text)
{
	return git_value_is_plain(text) && text[0] != '/' && text[0] != '%' && text[0] != ':' &&
	       is_clean(text);
}

/* With one '*', where a refspec may have one. */
static bool is_ref_pattern(const char *name, size_t stars)
{
	size_t length = strlen(name);

	if (!length || has_control(name, "") || strpbrk(name, " ~^:?[\\") || strstr(name, "..") ||
	    strstr(name, "@{") || strcmp(name, "@") == 0 || name[length - 1] == '.' ||
	    name[0] == '-')
		return false;
	for (const char *at = strchr(name, '*'); at; at = strchr(at + 1, '*'))
		if (stars-- == 0)
			return false;
	for (const char *at = name;;) {
		size_t part = strcspn(at, "/");

		if (!part || at[0] == '.' || ends_with(at, part, ".lock"))
			return false;
		if (!at[part])
			return true;
		at += part + 1;
	}
}

/*
 * git branch and git tag make none that looks like an option, or is taken for HEAD; scripts that
 * put a name into a command line run what a shell would.
 */
static bool is_misleading(const char *name)
{
	static const char *const folders[] = { "refs/heads/", "refs/tags/" };

	if (strpbrk(name, "$`;|&<>\"'"))
		return true;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *rest = name + strlen(folders[i]);

		if (starts_with(name, folders[i]) && (*rest == '-' || strcmp(rest, "HEAD") == 0))
			return true;
	}
	return false;
}

bool git_value_is_ref(const char *name)
{
	return is_ref_pattern(name, 0) && !is_misleading(name);
}

bool git_value_is_remote(const char *name)
{
	return consists_of(name, LETTERS DIGITS "._-") && is_ref_pattern(name, 0);
}

bool git_value_is_module(const char *name)
{
	return git_value_is_plain(name) && name[0] != '/' && !strpbrk(name, "\\:") &&
	       is_clean(name);
}

/* Copies a part of a refspec to where it is a text of its own; false when it is too long. */
static bool copy_part(const char *part, size_t length, char text[static 256])
{
	if (length >= 256)
		return false;
	(void)memcpy(text, part, length);
	text[length] = '\0';
	return true;
}

bool git_value_is_fetch(const char *refspec)
{
	const char *colon = strchr(refspec, ':');
	char source[256];

	if (refspec[0] == '^')
		return is_ref_pattern(refspec + 1, 1);
	refspec += refspec[0] == '+';
	if (!colon)
		return is_ref_pattern(refspec, 0);
	return copy_part(refspec, (size_t)(colon - refspec), source) && is_ref_pattern(source, 1) &&
	       starts_with(colon + 1, "refs/remotes/") && is_ref_pattern(colon + 1, 1) &&
	       !strchr(source, '*') == !strchr(colon + 1, '*');
}

bool git_value_is_push(const char *refspec)
{
	const char *colon = strchr(refspec, ':');
	char source[256];

	if (!colon)
		return is_ref_pattern(refspec, 0);
	return copy_part(refspec, (size_t)(colon - refspec), source) && is_ref_pattern(source, 0) &&
	       starts_with(colon + 1, "refs/") && is_ref_pattern(colon + 1, 0);
}

/* `[user[:password]@]host[:port]`, of bytes that neither ssh nor a decoder reads otherwise. */
static bool is_authority(const char *text, size_t length)
{
	const char *at = memchr(text, '@', length);
	size_t user = at ? (size_t)(at - text) : 0;

	if (at && (!user || text[0] == '-' || strspn(text, LETTERS DIGITS "._~+=-:") != user))
		return false;
	text += at ? user + 1 : 0;
	length -= at ? user + 1 : 0;
	if (length && text[0] == '[')
		return strspn(text + 1, DIGITS "abcdefABCDEF.:") + 1 < length &&
		       strspn(text, LETTERS DIGITS "[].:") >= length;
	return length && text[0] != '-' && text[0] != ':' &&
	       strspn(text, LETTERS DIGITS "._-:") >= length;
}

/* An encoded control byte ends a line in what some credential helper reads. */
static bool has_encoded_control(const char *url)
{
	for (; (url = strchr(url, '%')); url++)
		if (url[1] == '0' || url[1] == '1' || strncasecmp(url + 1, "7f", 2) == 0)
			return true;
	return false;
}

static bool is_scheme(const char *url, size_t length)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strlen(schemes[i]) == length && memcmp(schemes[i], url, length) == 0)
			return true;
	return false;
}

/* `user@host:path`, which git gives to ssh when the colon comes before any slash. */
static bool is_scp(const char *url, const char *colon)
{
	return is_authority(url, (size_t)(colon - url)) && colon[1] && colon[1] != ':' &&
	       colon[1] != '-';
}

enum git_url git_value_url(const char *url)
{
	const char *colon = strchr(url, ':'), *slash = strchr(url, '/'), *host;

	if (!url[0] || !git_value_is_plain(url) || has_encoded_control(url) ||
	    (colon && colon[1] == ':'))
		return GIT_URL_BAD;
	if (!colon || (slash && slash < colon))
		return GIT_URL_LOCAL;
	if (starts_with(url, "file:///"))
		return GIT_URL_LOCAL;
	if (!starts_with(colon, "://"))
		return is_scp(url, colon) ? GIT_URL_NETWORK : GIT_URL_BAD;
	host = colon + 3;
	return is_scheme(url, (size_t)(colon - url)) && is_authority(host, strcspn(host, "/?#")) ?
		       GIT_URL_NETWORK :
		       GIT_URL_BAD;
}
