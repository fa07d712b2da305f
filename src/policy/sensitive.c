/*
 * Theory of operation: a component of a path may itself be a pattern of the shell's, so a pattern
 * of the table *meets* a component where some text would match both. The table's pattern is run as
 * an automaton of at most 63 states, one bit each, over the component's characters.
 */
#include "policy/sensitive.h"

#include "base/arena.h"
#include "base/bytes.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const char *const secrets[] = {
#define SECRET(pattern) pattern,
#define PERSIST(pattern)
#define RUIN(path)
#include "policy/sensitive.def"
#undef SECRET
#undef PERSIST
#undef RUIN
};

static const char *const persistent[] = {
#define SECRET(pattern)
#define PERSIST(pattern) pattern,
#define RUIN(path)
#include "policy/sensitive.def"
#undef SECRET
#undef PERSIST
#undef RUIN
};

static const char *const ruins[] = {
#define SECRET(pattern)
#define PERSIST(pattern)
#define RUIN(path) path,
#include "policy/sensitive.def"
#undef SECRET
#undef PERSIST
#undef RUIN
};

static const char *const harmless[] = {
	"LANG",	       "LANGUAGE",	     "TZ",
	"TERM",	       "COLORTERM",	     "COLUMNS",
	"LINES",       "NO_COLOR",	     "FORCE_COLOR",
	"CLICOLOR",    "CLICOLOR_FORCE",     "CI",
	"LC_ALL",      "LC_CTYPE",	     "LC_COLLATE",
	"LC_MESSAGES", "LC_NUMERIC",	     "LC_TIME",
	"BLOCKSIZE",   "POSIXLY_CORRECT",    "RUST_BACKTRACE",
	"NODE_ENV",    "PYTHONUNBUFFERED",   "PYTHONIOENCODING",
	"PYTHONUTF8",  "GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FOLDED(c) ((c) >= 'A' && (c) <= 'Z' ? (c) + ('a' - 'A') : (c))
/* What a component begins with that meets the pattern; with room to be read in sixteens. */
#define START(pattern) FOLDED((pattern)[(pattern)[0] == '/'])
#define STARTS(array) (COUNT(array) + sizeof(bytes16) - 1)

static const char secret_starts[STARTS(secrets)] = {
#define SECRET(pattern) START(pattern),
#define PERSIST(pattern)
#define RUIN(path)
#include "policy/sensitive.def"
#undef SECRET
#undef PERSIST
#undef RUIN
};

static const char persistent_starts[STARTS(persistent)] = {
#define SECRET(pattern)
#define PERSIST(pattern) START(pattern),
#define RUIN(path)
#include "policy/sensitive.def"
#undef SECRET
#undef PERSIST
#undef RUIN
};

struct table {
	const char *const *patterns;
	const char *starts;
	size_t count;
};

static const struct table secret_table = { secrets, secret_starts, COUNT(secrets) };
static const struct table persistent_table = { persistent, persistent_starts, COUNT(persistent) };

static unsigned char folded_byte(char c)
{
	return (unsigned char)FOLDED(c);
}

/* The state, and where it stands on '*' the one behind it too. */
static uint64_t reach(const char *pattern, size_t length, size_t state)
{
	uint64_t states = UINT64_C(1) << state;

	for (; state < length && pattern[state] == '*'; state++)
		states |= UINT64_C(2) << state;
	return states;
}

/* One character of the path, or any (0). */
static uint64_t step(const char *pattern, size_t length, uint64_t states, char c)
{
	uint64_t next = 0;

	for (states &= (UINT64_C(1) << length) - 1; states; states &= states - 1) {
		size_t i = (size_t)__builtin_ctzll(states);

		if (pattern[i] == '*')
			next |= reach(pattern, length, i);
		else if (!c || pattern[i] == '?' || folded_byte(pattern[i]) == folded_byte(c))
			next |= reach(pattern, length, i + 1);
	}
	return next;
}

/* Every state from the lowest on: what any run of characters can lead to. */
static uint64_t spread(uint64_t states, size_t length)
{
	uint64_t lowest = states & -states;

	return lowest ? ~(lowest - 1) & ((UINT64_C(2) << length) - 1) : 0;
}

/* What a set of the shell's, "[...]", takes of the text; 1 where it is not closed. */
static size_t set_length(const char *text, size_t length)
{
	for (size_t i = 2; i < length; i++)
		if (text[i] == ']')
			return i + 1;
	return 1;
}

static bool meets(const char *pattern, size_t pattern_length, const char *text, size_t length)
{
	uint64_t states;

	if (pattern_length > 62)
		return true;
	/* The shell's patterns leave out names with a dot in front. */
	if (length && strchr("*?[", text[0]) && pattern[0] == '.')
		return false;
	states = reach(pattern, pattern_length, 0);
	for (size_t i = 0; i < length && states;) {
		if (text[i] == '*') {
			states = spread(states, pattern_length);
			i++;
		} else if (text[i] == '?' || text[i] == '[') {
			states = step(pattern, pattern_length, states, 0);
			i += text[i] == '[' ? set_length(text + i, length - i) : 1;
		} else {
			states = step(pattern, pattern_length, states, text[i]);
			i++;
		}
	}
	return states >> pattern_length & 1;
}

/* Components are short: for a few bytes strcspn(3) is dear. */
static size_t component(const char *path)
{
	size_t length = 0;

	while (path[length] && path[length] != '/')
		length++;
	return length;
}

/* The components of the pattern meet those of the path at its front. */
static bool meets_here(const char *pattern, const char *path)
{
	for (;;) {
		size_t a = component(pattern), b = component(path);

		/* Most differ in the first character already. */
		if (!meets(pattern, a, path, b))
			return false;
		if (!pattern[a])
			return true;
		if (!path[b])
			return false;
		pattern += a + 1;
		path += b + 1;
	}
}

static bool begins(const char *text, const char *with, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!text[i] || folded_byte(text[i]) != folded_byte(with[i]))
			return false;
	return true;
}

/*
 * "foo*" and "*test*": only the last '*' of the path's name could stand for the ending that the
 * table's name is known by. "x.p*" begins to say ".pem", and "*e*" has a part of it.
 */
static bool is_open_ended(const char *ending, const char *path, size_t length)
{
	size_t from = length;

	if (!length || path[length - 1] != '*')
		return false;
	length--;
	for (from = length; from && !strchr("*?[]", path[from - 1]);)
		from--;
	if (from && (path[from - 1] != '*' || from == length))
		return false;
	/* the dot alone says nothing */
	for (size_t n = 2; n <= length - from; n++)
		if (begins(ending, path + length - n, n))
			return false;
	for (const char *at = ending; from && *at; at++)
		if (begins(at, path + from, length - from))
			return false;
	return true;
}

/* "*_rsa" and "*secret*": the text between the wildcards is half of the table's name. */
static bool is_named_by(const char *pattern, const char *path)
{
	size_t length;

	path += strspn(path, "*?");
	length = strcspn(path, "*?[");
	if (path[0] == '.' || length * 2 < strlen(pattern))
		return false;
	for (; *pattern; pattern++)
		if (begins(pattern, path, length))
			return true;
	return false;
}

/*
 * A component (of `length` bytes) like "*.json" can stand for a name of the table, as for any
 * other: it counts only where both say the same ending, else every "wc -l *" would be a question.
 */
static bool is_broad(const char *pattern, const char *path, size_t length)
{
	/* any name but an option */
	if (strncmp(path, "[!-]*", 5) == 0) {
		path += 4;
		length -= 4;
	}
	if ((pattern[0] != '*' && path[0] != '*') || strchr(pattern, '/'))
		return false;
	if (pattern[0] == '*' && is_open_ended(pattern + 1, path, length))
		return true;
	if (path[0] != '*')
		return false;
	return pattern[0] != '*' ? !is_named_by(pattern, path) : path[strspn(path, "*?.")] == '\0';
}

/*
 * A pattern of several components, met by wildcards alone: below another directory than the root
 * any directory and any name would be such a place.
 */
static bool is_any_place(const char *pattern, const char *path)
{
	if (!strchr(pattern, '/') || path[strspn(path, "*")] != '/')
		return false;
	while (path[0] == '*' && pattern[component(pattern)] && path[component(path)]) {
		pattern += component(pattern) + 1;
		path += component(path) + 1;
	}
	return path[0] == '*';
}

/* A bit for each of the sixteen patterns from `first` on that the component could meet. */
static unsigned could_start(const struct table *table, size_t first, char c)
{
	bytes16 starts = bytes16_load(table->starts + first);

	if (strchr("*?[", c))
		return bytes16_mask(starts != 0);
	return bytes16_mask((starts == (signed char)folded_byte(c)) | (starts == '*') |
			    (starts == '?'));
}

static bool meets_table(const struct table *table, const char *at, bool at_root)
{
	size_t length = component(at);

	for (size_t first = 0; first < table->count; first += sizeof(bytes16)) {
		unsigned found = could_start(table, first, at[0]);

		for (; found; found &= found - 1) {
			const char *pattern = table->patterns[first + __builtin_ctz(found)];
			bool anchored = pattern[0] == '/';

			if ((!anchored || at_root) && !is_broad(pattern, at, length) &&
			    (at_root || !is_any_place(pattern, at)) &&
			    meets_here(pattern + anchored, at))
				return true;
		}
	}
	return false;
}

/* By the table a secret, and what projects publish to tell what such a file looks like. */
static bool is_example(const char *last)
{
	static const char *const examples[] = {
		".env.example",
		".env.sample",
		".env.template",
		".env.dist",
	};

	for (size_t i = 0; i < COUNT(examples); i++)
		if (strcmp(last, examples[i]) == 0)
			return true;
	return false;
}

static bool in_table(const struct table *table, const char *path)
{
	bool at_root = path[0] == '/';

	for (const char *at = path + at_root; *at; at_root = false) {
		if (at[0] == '.' && is_example(at))
			return false;
		if (meets_table(table, at, at_root))
			return true;
		at += component(at);
		at += *at == '/';
	}
	return false;
}

static bool is_tilde_of_other(const char *path)
{
	return path[0] == '~' && path[1] && path[1] != '/';
}

bool sensitive_holds(const char *path, const char *of)
{
	size_t length = strlen(path);

	if (!of || strncmp(path, of, length) != 0)
		return false;
	return length == 1 || !of[length] || of[length] == '/';
}

/* Another user's home: whatever is in it is not ours to read unasked. */
static bool is_foreign_home(const char *path, const char *home, const char *cwd)
{
	if (is_tilde_of_other(path))
		return true;
	if (!home || (cwd && sensitive_holds(cwd, path)) || sensitive_holds(home, path))
		return false;
	return sensitive_holds("/root", path) || (strncmp(path, "/home/", 6) == 0 && path[6]);
}

/* /dev/fd and its kin but for the three streams that every program has. */
static bool is_stream(const char *path)
{
	static const char *const streams[] = {
		"/dev/fd/0",	   "/dev/fd/1",	      "/dev/fd/2",
		"/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2",
	};

	for (size_t i = 0; i < COUNT(streams); i++)
		if (strcmp(path, streams[i]) == 0)
			return true;
	return false;
}

bool sensitive_is_secret(const char *folded, const char *home, const char *cwd)
{
	return !is_stream(folded) &&
	       (is_foreign_home(folded, home, cwd) || in_table(&secret_table, folded));
}

/* "~/.config" holds ".config/gh": whether the path is a place of the table's, cut short. */
static bool is_cut_short(const char *pattern, const char *path)
{
	size_t length = strlen(path);

	return begins(pattern, path, length) && pattern[length] == '/';
}

bool sensitive_holds_secrets(const char *folded, const char *home)
{
	const char *below = home && sensitive_holds(home, folded) ? folded + strlen(home) : "";

	below += *below == '/';
	for (size_t i = 0; i < COUNT(secrets); i++)
		if ((*below && is_cut_short(secrets[i], below)) ||
		    (folded[0] == '/' && is_cut_short(secrets[i], folded + 1)))
			return true;
	return false;
}

bool sensitive_is_persistent(const char *folded)
{
	return in_table(&persistent_table, folded);
}

/* All that is in "/home" is as bad as "/home": cut what stands for everything in a directory. */
static size_t without_all(const char *path)
{
	size_t length = strlen(path);

	while (length > 1 && strchr("*?.!", path[length - 1]))
		length--;
	if (!path[length] || path[length - 1] != '/')
		return strlen(path);
	return length > 1 ? length - 1 : 1;
}

bool sensitive_is_ruin(const char *folded, const char *home, const char *cwd)
{
	char path[SENSITIVE_LIMIT_BYTES + 1];
	size_t length = without_all(folded);
	bool whole = !folded[length];

	if (length > SENSITIVE_LIMIT_BYTES)
		return true;
	memcpy(path, folded, length);
	path[length] = '\0';
	if (strcmp(path, "~") == 0 || is_tilde_of_other(path) || strncmp(path, "..", 2) == 0)
		return true;
	for (size_t i = 0; i < COUNT(ruins); i++)
		if (strcmp(path, ruins[i]) == 0)
			return true;
	if (path[0] != '/')
		return false;
	/* The working directory itself, or all in it, may be what is to be cleared. */
	return sensitive_holds(path, home) ||
	       (whole && sensitive_holds(path, cwd) && strcmp(path, cwd) != 0);
}

bool sensitive_is_harmless_variable(const char *name, unsigned long length)
{
	for (size_t i = 0; i < COUNT(harmless); i++)
		if (strlen(harmless[i]) == length && memcmp(name, harmless[i], length) == 0)
			return true;
	return false;
}

/* Appends the components of text to the folded path of *length bytes; false where it is full. */
static bool fold(char *path, size_t *length, const char *text)
{
	bool absolute = path[0] == '/';

	while (*text) {
		size_t n = strcspn(text, "/");
		size_t last = *length;

		while (last && path[last - 1] != '/')
			last--;
		if (n == 2 && memcmp(text, "..", 2) == 0 && *length > absolute &&
		    strcmp(path + last, "..") != 0) {
			*length = last > absolute ? last - 1 : absolute;
		} else if (n == 2 && memcmp(text, "..", 2) == 0 && absolute) {
			*length = 1;
		} else if (n && !(n == 1 && *text == '.')) {
			if (*length + n + 1 > SENSITIVE_LIMIT_BYTES)
				return false;
			if (*length && path[*length - 1] != '/')
				path[(*length)++] = '/';
			memcpy(path + *length, text, n);
			*length += n;
		}
		path[*length] = '\0';
		text += n;
		text += *text == '/';
	}
	return true;
}

char *sensitive_fold(struct arena *arena, const char *cwd, const char *home, const char *path)
{
	char folded[SENSITIVE_LIMIT_BYTES + 1];
	size_t length = 0;
	const char *base = cwd;

	folded[0] = '\0';
	if (path[0] == '~' && (!path[1] || path[1] == '/') && home) {
		base = home;
		path++;
		path += *path == '/';
	} else if (path[0] == '/' || path[0] == '~') {
		base = path[0] == '/' ? "/" : NULL;
	}
	if (base) {
		folded[length++] = '/';
		folded[length] = '\0';
		if (!fold(folded, &length, base))
			return NULL;
	}
	if (!fold(folded, &length, path))
		return NULL;
	return arena_copy_bytes(arena, folded, length);
}
