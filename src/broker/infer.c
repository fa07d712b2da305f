#include "broker/infer.h"

#include "base/path.h"
#include "policy/denial.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/*
 * Theory of operation. The tail is copied, cut into lines, and each line is asked what it *says*:
 * the texts of errno in many languages. Only in a line that speaks of a refusal are words taken
 * for paths, and a path is reported only where the view agrees. A wrong accusation costs an agent
 * more than a missed one: it would ask a person for a path that has nothing to do with its fault.
 */

/* What a tail and a command line are searched for at most: hostile ones cost no more than this. */
#define WORD_LIMIT 512
#define OPERAND_LIMIT 512
#define HOST_LIMIT_BYTES 253 /* RFC 1035, section 2.3.4 */

enum says {
	SAYS_ABSENT = 1u << 0,
	SAYS_REFUSED = 1u << 1,
	SAYS_READ_ONLY = 1u << 2,
	SAYS_BUSY = 1u << 3,
	SAYS_ERRNO = 1u << 4, /* an errno's text: certain even where no path is named */
	SAYS_WRITING = 1u << 5,
	SAYS_UNRESOLVED = 1u << 6,
	SAYS_UNREACHABLE = 1u << 7,
	SAYS_BESIDE = 1u << 8, /* absence, of the word right before it alone */
	SAYS_PATH = SAYS_ABSENT | SAYS_REFUSED | SAYS_READ_ONLY | SAYS_BUSY,
	SAYS_NETWORK = SAYS_UNRESOLVED | SAYS_UNREACHABLE,
};

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

static bool is_space(char c)
{
	return (unsigned char)c <= ' ' || c == 0x7f;
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (unsigned char)c >= 0x80;
}

/* True when the text stands in the line and does not begin inside of a word. */
static bool line_has(const char *line, const char *text)
{
	for (const char *at = strcasestr(line, text); at; at = strcasestr(at + 1, text))
		if (at == line || !is_alnum(at[-1]) || !is_alnum(*text))
			return true;
	return false;
}

static unsigned line_says(const char *line)
{
	unsigned says = 0;

	for (size_t i = 0; i < COUNT(texts); i++)
		if ((says & texts[i].says) != texts[i].says && line_has(line, texts[i].text))
			says |= texts[i].says;
	return says;
}

/* What is said right at this place. */
static unsigned says_at(const char *at)
{
	for (size_t i = 0; i < COUNT(texts); i++)
		if (strncasecmp(at, texts[i].text, strlen(texts[i].text)) == 0)
			return texts[i].says;
	return 0;
}

struct search {
	const struct policy *policy;
	const char *cwd;
	struct denial_list *list;
	size_t words;	    /* looked at so far */
	unsigned anonymous; /* what lines said that named no object */
	unsigned named;	    /* what network lines said that named a host */
	bool path_named;    /* some line said which path it means */
};

/* --- words of a line --- */

struct word {
	const char *start;
	size_t length;
	bool quoted;
	const char *after; /* behind the word and its closing quote */
};

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

static size_t quote(const char *at)
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

static bool starts_path(const char *at)
{
	return *at == '/' || (at[0] == '~' && (at[1] == '/' || is_space(at[1]) || quote(at + 1))) ||
	       strncmp(at, "./", 2) == 0 || strncmp(at, "file://", 7) == 0;
}

/* The quoted word that opens at `open`; false where the quote is only a mark between words. */
static bool quoted_word(const char *open, struct word *ret_word)
{
	size_t width = quote(open);
	const char *start = open + width, *end = start;
	bool spaces = false;

	for (; *end; end++) {
		size_t closing = quote(end);

		if (closing && closes(open, end) && !is_alnum(end[closing]) && end[closing] != '\\')
			break;
		if (end[0] == ':' && is_space(end[1]))
			return false;
		spaces |= *end == ' ';
		if (is_space(*end) && *end != ' ')
			return false;
	}
	if (!*end || end == start || (spaces && !starts_path(start)))
		return false;
	*ret_word = (struct word){ .start = start,
				   .length = (size_t)(end - start),
				   .quoted = true,
				   .after = end + quote(end) };
	return true;
}

static bool ends_word(const char *start, const char *at)
{
	if (is_space(*at) || strchr("()[]{}<>,;\"`", *at) || curly_quote(at))
		return true;
	switch (*at) {
	case '\'':
		return at == start || !is_alnum(at[-1]) || !is_alnum(at[1]);
	case ':':
		return is_space(at[1]) || quote(at + 1) || (at[1] >= '0' && at[1] <= '9') ||
		       at[1] == ':' || (at[1] == '/' && at[2] != '/');
	case '=':
		return starts_path(at + 1) || quote(at + 1);
	default:
		return false;
	}
}

/* The next word at or behind `at`, which is moved behind it; false at the end of the line. */
static bool next_word(const char **at, struct word *ret_word)
{
	const char *start = *at, *end;

	for (;; start++) {
		if (!*start)
			return false;
		if (quote(start)) {
			if (quoted_word(start, ret_word)) {
				*at = ret_word->after;
				return true;
			}
			start += quote(start) - 1;
		} else if (!ends_word(start, start) && *start != '=' && *start != ':') {
			break;
		}
	}
	for (end = start; *end && !ends_word(start, end); end++)
		;
	*at = end;
	while (end > start + 1 && strchr(".,;:!?", end[-1]))
		end--;
	*ret_word = (struct word){ .start = start, .length = (size_t)(end - start), .after = end };
	return true;
}

/* `: No such file`, `: Cannot open: No such file` or ` (No such file` behind a word. */
static bool refusal_follows(const char *after)
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
	return says_at(after) & (SAYS_ERRNO | SAYS_BUSY);
}

/* --- paths --- */

/* Appends the cleaned components of `text`; false for "..", or when it does not fit. */
static bool append_clean(char path[PATH_LIMIT_BYTES], size_t *length, const char *text,
			 size_t text_length)
{
	size_t at = 0;

	while (at < text_length) {
		const char *component = text + at;
		const char *slash = memchr(component, '/', text_length - at);
		size_t n = slash ? (size_t)(slash - component) : text_length - at;

		at += n + 1;
		if (n == 0 || (n == 1 && component[0] == '.'))
			continue;
		if (n == 2 && component[0] == '.' && component[1] == '.')
			return false;
		if (*length + n + 2 > PATH_LIMIT_BYTES)
			return false;
		path[(*length)++] = '/';
		memcpy(path + *length, component, n);
		*length += n;
	}
	path[*length] = '\0';
	return true;
}

/* Takes the leading ".." of a relative path off `length` bytes of a clean path. */
static void climb(const char *path, size_t *length, const char **text, size_t *text_length)
{
	while (*text_length >= 2 && strncmp(*text, "..", 2) == 0 &&
	       (*text_length == 2 || (*text)[2] == '/')) {
		size_t taken = *text_length == 2 ? 2 : 3;

		while (*length && path[*length - 1] != '/')
			--*length;
		*length -= *length > 0;
		*text += taken;
		*text_length -= taken;
	}
}

struct path {
	char text[PATH_LIMIT_BYTES];
	bool absolute; /* named as such, or by "~" or ".." */
};

static bool path_of(const struct search *search, const char *text, size_t length,
		    struct path *ret_path)
{
	const char *base = NULL;
	size_t used = 0;

	if (length >= 7 && strncmp(text, "file://", 7) == 0) {
		text += 7;
		length -= 7;
		if (!length || *text != '/')
			return false;
	}
	if (!length || length >= PATH_LIMIT_BYTES || memmem(text, length, "://", 3))
		return false;
	ret_path->absolute = true;
	if (text[0] == '~' && (length == 1 || text[1] == '/')) {
		base = search->policy->home;
		text++;
		length--;
	} else if (text[0] != '/') {
		base = search->cwd;
		ret_path->absolute = false;
	}
	if (base && !append_clean(ret_path->text, &used, base, strlen(base)))
		return false;
	if (base && !ret_path->absolute && text[0] == '.') {
		const char *relative = text;

		climb(ret_path->text, &used, &text, &length);
		ret_path->absolute = text != relative;
	}
	if (!append_clean(ret_path->text, &used, text, length))
		return false;
	if (!used) {
		ret_path->text[0] = '/';
		ret_path->text[1] = '\0';
	}
	return true;
}

/* Private to the box: whatever is missing there never was the host's to show. */
static bool is_private(const char *path)
{
	static const char *const areas[] = { "/tmp",  "/var/tmp",  "/dev",
					     "/proc", "/run/user", "/run/bawn" };

	for (size_t i = 0; i < COUNT(areas); i++)
		if (path_is_under(path, areas[i]))
			return true;
	return false;
}

/* The home, the root and the directories above what is shown are there, if empty. */
static bool is_above_shown(const struct policy *policy, const char *path)
{
	if (path_is_under(policy->home, path))
		return true;
	for (size_t i = 0; i < policy->view.count; i++)
		if (path_is_under(policy->view.paths[i].target, path))
			return true;
	return false;
}

/* Names that tests and manuals give to what exists nowhere. */
static bool is_proverbial(const char *path)
{
	static const char *const names[] = { "nonexist",    "non-exist",      "non_exist",
					     "no-such",	    "/no/such",	      "no_such",
					     "/path/to",    "does-not-exist", "does_not_exist",
					     "doesnotexist" };

	for (size_t i = 0; i < COUNT(names); i++)
		if (strcasestr(path, names[i]))
			return true;
	return false;
}

static void report(struct search *search, enum denial_kind kind, struct rule_ref rule,
		   const char *object)
{
	denial_add(search->list, kind, rule, object, false);
}

/* Reports, with a remedy that names another path than the object. */
static void report_grant(struct search *search, enum denial_kind kind, struct rule_ref rule,
			 const char *object, const char *grant, size_t length)
{
	struct denial *denial;

	if (!denial_add(search->list, kind, rule, object, false) || length >= DENIAL_OBJECT_BYTES)
		return;
	denial = &search->list->items[search->list->count - 1];
	memcpy(denial->grant, grant, length);
	denial->grant[length] = '\0';
}

/* A linked worktree or a submodule needs the whole .git that it is a part of; 0 where none is. */
static size_t git_directory_length(const char *path)
{
	static const char *const parts[] = { "/.git/worktrees/", "/.git/modules/" };

	for (size_t i = 0; i < COUNT(parts); i++) {
		const char *at = strstr(path, parts[i]);

		if (at)
			return (size_t)(at - path) + strlen("/.git");
	}
	return 0;
}

static void decide_absent(struct search *search, const struct path *path, unsigned says)
{
	const struct policy *policy = search->policy;
	bool home = path_is_under(path->text, policy->home);

	if (!path->absolute || !(says & (SAYS_ABSENT | SAYS_REFUSED | SAYS_READ_ONLY)) ||
	    (!home && is_private(path->text)) || is_above_shown(policy, path->text) ||
	    is_proverbial(path->text))
		return;
	report_grant(search, DENIAL_FS_READ,
		     rule_builtin(home ? RULE_HOME_PRIVATE : RULE_SYSTEM_ABSENT), path->text,
		     path->text, git_directory_length(path->text));
}

static void decide(struct search *search, const struct path *path, unsigned says)
{
	const struct policy *policy = search->policy;
	const struct view_path *row = view_lookup(&policy->view, path->text);
	bool refused_write = (says & SAYS_REFUSED) && (says & SAYS_WRITING);
	const char *whole;

	if (!row) {
		decide_absent(search, path, says);
		return;
	}
	if (row->rule >= policy->rule_count)
		return;
	whole = view_is_input(row) ? row->source : row->target;
	switch (row->class) {
	case PATH_HIDE:
		report(search,
		       rule_is(&policy->rules[row->rule], RULE_WORKSPACE_SECRET) ?
			       DENIAL_FS_SECRET :
			       DENIAL_FS_HIDDEN,
		       policy->rules[row->rule], path->text);
		break;
	case PATH_PROTECT:
		if ((says & (SAYS_READ_ONLY | SAYS_BUSY)) || refused_write)
			report(search, DENIAL_FS_PROTECTED, policy->rules[row->rule], path->text);
		break;
	case PATH_READ:
	case PATH_COPY:
	case PATH_FILE:
	case PATH_LINK:
		/*
		 * "Permission denied" on what is shown is the host's ordinary ownership. What was
		 * shown by a flag is made writable as a whole: a new file in it cannot be named.
		 */
		if (says & SAYS_READ_ONLY)
			report_grant(search, DENIAL_FS_WRITE, policy->rules[row->rule], path->text,
				     whole, policy->rules[row->rule].file ? strlen(whole) : 0);
		break;
	default:
		break;
	}
}

static bool looks_like_path(const struct word *word)
{
	return starts_path(word->start) || memchr(word->start, '/', word->length) ||
	       (word->start[0] == '.' && word->length > 1);
}

/* `Result::unwrap()` between two backticks is code. */
static bool is_code(const struct word *word)
{
	return word->after[-1] == '`' &&
	       (memchr(word->start, '(', word->length) || !memchr(word->start, '.', word->length));
}

/*
 * Which words are taken for paths: those that look like one, are quoted, or stand right before the
 * refusal. The first word with a colon is the program (`/usr/bin/ld: ...`) or the source line that
 * speaks (`/src/a.c:3: ...`), unless it looks like a path and the refusal follows at once.
 */
static bool is_named_path(const char *line, const struct word *word)
{
	bool direct = refusal_follows(word->after), like = looks_like_path(word);

	if (!word->quoted && *word->after == ':' && !(direct && like)) {
		const char *first = line;

		while (is_space(*first) && *first)
			first++;
		if (word->start == first)
			return false;
	}
	/* tar's `Cannot open: Read-only file system`: what could not be done, not to what */
	if (direct && word->start - line >= 7 && strncasecmp(word->start - 7, "cannot ", 7) == 0)
		direct = false;
	return like || direct || (word->quoted && !is_code(word));
}

static void search_paths(struct search *search, const char *line, unsigned says)
{
	const char *at = line;
	struct word word;
	bool named = false;

	while (search->words < WORD_LIMIT && next_word(&at, &word)) {
		struct path path;
		unsigned here = says;

		search->words++;
		if (!is_named_path(line, &word))
			continue;
		named = true;
		/* "../x" is meant from the file that includes it as often as from here */
		if (strncmp(word.start, "..", 2) == 0)
			continue;
		if ((says & SAYS_BESIDE) && (says_at(word.after) & SAYS_BESIDE))
			here |= SAYS_ABSENT;
		if ((here & SAYS_PATH) && path_of(search, word.start, word.length, &path))
			decide(search, &path, here);
	}
	search->path_named |= named;
	if (says & SAYS_ERRNO)
		search->anonymous |= says & SAYS_PATH;
}

/* --- hosts --- */

/* Texts behind which the host stands; `plain` ones may be followed by a name without a dot. */
static const struct {
	const char *text;
	bool plain;
	char port_mark; /* between host and port, where it is not a colon */
} anchors[] = {
	{ "could not resolve host: ", true, ':' },
	{ "could not resolve hostname ", true, ':' },
	{ "unable to resolve host address ", true, ':' },
	{ "getaddrinfo eai_again ", true, ':' },
	{ "getaddrinfo enotfound ", true, ':' },
	{ "unknownhostexception: ", true, ':' },
	{ "temporary failure resolving ", true, ':' },
	{ "failed to resolve ", false, ':' },
	{ "lookup ", false, ':' },
	{ "resolving ", false, ':' },
	{ "connect enetunreach ", false, ':' },
	{ "connecting to ", false, ':' },
	{ "connect to host ", false, ':' },
	{ "connect to address ", false, ':' },
	{ "connect to ", false, ':' },
	{ "dial tcp ", false, ':' },
	{ "dial udp ", false, ':' },
	{ "/dev/tcp/", false, '/' },
	{ "/dev/udp/", false, '/' },
	{ "host=", false, ':' },
};

struct caller {
	char text[HOST_LIMIT_BYTES + sizeof("[]:65535")];
	bool plain; /* no dot, no colon */
};

static bool is_host_byte(char c)
{
	return c && (unsigned char)c < 0x80 && (is_alnum(c) || c == '.' || c == '-' || c == '_');
}

static size_t digits(const char *at)
{
	return strspn(at, "0123456789");
}

/* Length of the name or address at this place, 0 for none; sets whether it is a plain word. */
static size_t host_length(const char *at, bool *ret_plain)
{
	size_t length = strspn(at + (*at == '['), "0123456789abcdefABCDEF:");

	*ret_plain = false;
	if (*at == '[')
		return length > 2 && at[1 + length] == ']' ? length + 2 : 0;
	if (length > 2 && memchr(at, ':', length) &&
	    memchr(at, ':', length) != memrchr(at, ':', length) && !is_host_byte(at[length])) {
		while (length && at[length - 1] == ':' && at[length - 2] != ':')
			length--;
		return length;
	}
	for (length = 0; is_host_byte(at[length]); length++)
		;
	while (length && !is_alnum(at[length - 1]))
		length--;
	*ret_plain = !length || !memchr(at, '.', length);
	return length && is_alnum(*at) ? length : 0;
}

/* The host at this place, with its port where one is written behind it. */
static bool host_at(const char *at, char port_mark, struct caller *ret_host)
{
	size_t length, port = 0;
	const char *behind;

	while (quote(at))
		at += quote(at);
	length = host_length(at, &ret_host->plain);
	if (!length || length > HOST_LIMIT_BYTES)
		return false;
	behind = at + length;
	if (*behind == port_mark)
		behind++;
	else if (strncmp(behind, " port ", 6) == 0)
		behind += 6;
	if (behind > at + length)
		port = digits(behind);
	if (port > 5 || (port && is_alnum(behind[port])))
		port = 0;
	(void)snprintf(ret_host->text, sizeof(ret_host->text), "%.*s%s%.*s", (int)length, at,
		       port ? ":" : "", (int)port, port ? behind : "");
	return true;
}

static bool anchored_host(const char *line, struct caller *ret_host)
{
	for (size_t i = 0; i < COUNT(anchors); i++) {
		const char *at = line;

		while ((at = strcasestr(at, anchors[i].text))) {
			at += strlen(anchors[i].text);
			if (host_at(at, anchors[i].port_mark, ret_host) &&
			    (anchors[i].plain || !ret_host->plain))
				return true;
		}
	}
	return false;
}

/* The host of the first URL that goes out; user and password before an "@" are never repeated. */
static bool url_host(const char *text, struct caller *ret_host)
{
	for (const char *at = strstr(text, "://"); at; at = strstr(at + 3, "://")) {
		const char *host = at + 3;
		size_t authority = strcspn(host, "/?# '\"`<>()");
		const char *user = memrchr(host, '@', authority);

		if (at - text >= 4 && strncmp(at - 4, "file", 4) == 0)
			continue;
		if (host_at(user ? user + 1 : host, ':', ret_host))
			return true;
	}
	return false;
}

/* `line 1: example.org: Temporary failure in name resolution` */
static bool leading_host(const char *line, struct caller *ret_host)
{
	const char *at = strcasestr(line, ": temporary failure in name resolution");
	const char *end = at;

	if (!at)
		at = end = strcasestr(line, ": name or service not known");
	if (!at)
		return false;
	while (at > line && is_host_byte(at[-1]))
		at--;
	if ((at > line && at[-1] != ' ') || end == at || end[-1] < 'a' || end[-1] > 'z')
		return false;
	return host_at(at, ':', ret_host) && !ret_host->plain;
}

static bool is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strncasecmp(host, "localhost", 9) == 0 ||
	       strncmp(host, "::1", 3) == 0 || strncmp(host, "[::1]", 5) == 0;
}

static void report_host(struct search *search, unsigned says, const char *host)
{
	enum denial_kind kind;

	/* there the proxy tells, and exactly */
	if (search->policy->egress.mode == EGRESS_POLICY)
		return;
	kind = says & SAYS_UNRESOLVED ? DENIAL_NET_RESOLVE : DENIAL_NET_CONNECT;

	report(search, kind, rule_builtin(RULE_NETWORK_LOOPBACK), host);
}

static void search_hosts(struct search *search, const char *line, unsigned says)
{
	struct caller host;

	if (!anchored_host(line, &host) && !url_host(line, &host) && !leading_host(line, &host)) {
		search->anonymous |= says & SAYS_NETWORK;
		return;
	}
	search->named |= says & SAYS_NETWORK;
	if (!is_loopback(host.text))
		report_host(search, says, host.text);
}

/* curl says nothing more exact of an unreachable address: `to HOST port N after 0 ms: ...` */
static void search_curl(struct search *search, const char *line)
{
	static const char text[] = "Failed to connect to ";
	const char *at = strstr(line, text);
	struct caller host;

	if (at && strstr(at, "Couldn't connect to server") &&
	    host_at(at + strlen(text), ':', &host) && strchr(host.text, ':') &&
	    !is_loopback(host.text))
		report_host(search, SAYS_UNREACHABLE, host.text);
}

/* An operand that can only be a host: a URL, USER@HOST or an address. */
static bool operand_host(const char *operand, struct caller *ret_host)
{
	const char *user = strchr(operand, '@');
	size_t address = strspn(operand, "0123456789.");

	if (url_host(operand, ret_host))
		return true;
	if (user && !strpbrk(operand, " \t\n=/") && host_at(user + 1, ':', ret_host))
		return !ret_host->plain;
	return address >= 7 && (!operand[address] || operand[address] == ':') &&
	       host_at(operand, ':', ret_host) && !ret_host->plain;
}

/* A line that named no host: the command line may, and if not the network as a whole is meant. */
static void search_anonymous(struct search *search, const char *const *argv)
{
	unsigned says = search->policy->egress.mode == EGRESS_POLICY ?
				0 :
				search->anonymous & SAYS_NETWORK & ~search->named;
	struct caller host = { .text = "" };

	if (!says)
		return;
	for (size_t i = 1; i < OPERAND_LIMIT && argv[0] && argv[i]; i++)
		if (operand_host(argv[i], &host))
			break;
		else
			host.text[0] = '\0';
	if (is_loopback(host.text))
		return;
	if (says & SAYS_UNRESOLVED)
		report_host(search, SAYS_UNRESOLVED, host.text);
	if (says & SAYS_UNREACHABLE)
		report_host(search, SAYS_UNREACHABLE, host.text);
}

/* --- the tail and the command line --- */

/*
 * Copies the tail: what a terminal would swallow (colours) and NUL become marks between words. A
 * full tail may begin inside of a word, so that its first line is left out.
 */
static void copy_tail(const char *tail, size_t length, char copy[INFER_TAIL_BYTES + 1])
{
	size_t skip = 0, used = 0;

	if (length > INFER_TAIL_BYTES) {
		tail += length - INFER_TAIL_BYTES;
		length = INFER_TAIL_BYTES;
	}
	if (length == INFER_TAIL_BYTES) {
		const char *newline = memchr(tail, '\n', length);

		skip = newline ? (size_t)(newline - tail) + 1 : length;
	}
	for (size_t i = skip; i < length; i++) {
		if (tail[i] == '\x1b' && i + 1 < length && tail[i + 1] == '[') {
			for (i += 2; i < length && (tail[i] < '@' || tail[i] > '~') &&
				     (unsigned char)tail[i] >= ' ';
			     i++)
				;
			copy[used++] = '\x01';
			/* a sequence that another byte broke off does not swallow it */
			if (i < length && (unsigned char)tail[i] < ' ')
				i--;
		} else {
			copy[used++] = tail[i] ? tail[i] : '\x01';
		}
	}
	copy[used] = '\0';
}

/* The part of an operand that can be a path: itself, or what follows `--opt=`, `name=`, `-I`. */
static const char *operand_path(const char *operand)
{
	const char *value = strchr(operand, '=');

	if (value && starts_path(value + 1))
		return value + 1;
	if (operand[0] != '-')
		return operand;
	if (operand[1] && operand[1] != '-' && starts_path(operand + 2))
		return operand + 2;
	return NULL;
}

static bool is_reported(const struct denial_list *list, const char *object)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (strncmp(list->items[i].object, object, DENIAL_OBJECT_BYTES - 1) == 0)
			return true;
	return false;
}

/* True when the line holds the text as a whole word. */
static bool line_names(const char *line, const char *text)
{
	size_t length = strlen(text);

	for (const char *at = strstr(line, text); at; at = strstr(at + 1, text)) {
		const char *end = at + length;

		if (at > line && (is_alnum(at[-1]) || strchr("/._-~", at[-1])))
			continue;
		end += strspn(end, ".-_");
		if (!is_alnum(*end) && *end != '/')
			return true;
	}
	return false;
}

/*
 * An operand is told of when an error text names it, or when an error named nothing: `cannot open:
 * No such file or directory` can only mean what it was given.
 */
static void search_operand(struct search *search, const char *operand, char *const *lines,
			   size_t line_count)
{
	const char *text = operand_path(operand);
	unsigned says = search->path_named ? 0 : search->anonymous & SAYS_PATH;
	struct path path;

	if (!text || !*text || !path_of(search, text, strlen(text), &path) ||
	    is_reported(search->list, path.text))
		return;
	for (size_t i = 0; i < line_count; i++)
		if (line_names(lines[i], text))
			says |= line_says(lines[i]) & (SAYS_PATH | SAYS_WRITING);
	/* whether an operand was to be written only the text beside it can tell */
	if (says & (SAYS_ABSENT | SAYS_REFUSED))
		decide(search, &path, says & (SAYS_ABSENT | SAYS_REFUSED));
}

/* Lines of one tail that speak of a path and are compared with the operands. */
#define LINE_LIMIT 16

void infer_denials(const struct policy *policy, const char *const *argv, const char *cwd,
		   const char *tail, size_t tail_length, struct denial_list *list)
{
	struct search search = { .policy = policy, .cwd = cwd, .list = list };
	char copy[INFER_TAIL_BYTES + 1];
	char *lines[LINE_LIMIT], *line, *rest = copy;
	size_t line_count = 0;

	copy_tail(tail, tail_length, copy);
	while ((line = strsep(&rest, "\n"))) {
		unsigned says = line_says(line);

		if (says & SAYS_NETWORK) {
			search_hosts(&search, line, says);
			continue;
		}
		search_curl(&search, line);
		if (!(says & (SAYS_PATH | SAYS_BESIDE)))
			continue;
		search_paths(&search, line, says);
		if (line_count < LINE_LIMIT)
			lines[line_count++] = line;
	}
	search_anonymous(&search, argv);
	for (size_t i = 1; line_count && i < OPERAND_LIMIT && argv[0] && argv[i]; i++)
		search_operand(&search, argv[i], lines, line_count);
}
