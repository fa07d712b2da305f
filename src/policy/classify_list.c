/*
 * Theory of operation: "find . -name '*.c' | xargs grep x" reads what "grep -r x ." could read.
 * So where the words come from a command that prints names (listing.def), the words
 * of the one that gets them are taken for a pattern, with all that a pattern may be: an option,
 * where the names may begin with a dash. Anything that is not in the table is no such command.
 */
#include "policy/classify_internal.h"

#include "base/path.h"
#include "policy/program.h"
#include "policy/sensitive.h"

#include <string.h>

struct listing {
	const char *name, *has, *nul, *options, *names;
};

struct passing {
	const char *name, *options;
	size_t operands;
};

static const struct listing listings[] = {
#define LISTING(name, has, nul, options, names) { name, has, nul, options, names },
#define PASSING(name, options, operands)
#include "policy/listing.def"
#undef LISTING
#undef PASSING
};

static const struct passing passings[] = {
#define LISTING(name, has, nul, options, names)
#define PASSING(name, options, operands) { name, options, operands },
#include "policy/listing.def"
#undef LISTING
#undef PASSING
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum listed { LISTED_NOT, LISTED_ALONE, LISTED_WITH_ARGUMENT };

static bool is_cluster(const char *item, size_t length, const char *word)
{
	const char *letters = item + 2;
	size_t count = length - 3;

	if (word[0] != '-' || !word[1])
		return false;
	for (const char *at = word + 1; *at; at++)
		if (!memchr(letters, *at, count))
			return false;
	return true;
}

/* What the table's options say of the word. */
static enum listed option_of(const char *options, const char *word)
{
	size_t name = strcspn(word, "=");

	for (const char *item = options; *item; item += strspn(item, " ")) {
		size_t length = strcspn(item, " ");

		if (item[1] == '[' ? is_cluster(item, length, word) :
				     strlen(word) == length && memcmp(item, word, length) == 0)
			return LISTED_ALONE;
		if (item[length - 1] == '=' && name == length - 1 && memcmp(item, word, name) == 0)
			return word[name] ? LISTED_ALONE : LISTED_WITH_ARGUMENT;
		item += length;
	}
	return LISTED_NOT;
}

/* A place below where we are, by its spelling and by what it leads to. */
static bool is_below_here(const struct classify *classify, const char *text)
{
	const struct classify_facts *facts = classify->facts;
	const char *folded, *real;

	if (text[0] == '/' || text[0] == '~' || strstr(text, "..") || classify->moved ||
	    classify->cwd_unknown)
		return false;
	folded = sensitive_fold(classify->arena, facts->cwd, facts->home, text);
	real = folded && facts->resolve && !strpbrk(text, "*?[") ?
		       facts->resolve(facts->context, folded) :
		       NULL;
	return folded && (!real || !facts->cwd || sensitive_holds(facts->cwd, real));
}

static bool is_secret(const struct classify *classify, const char *text)
{
	const struct classify_facts *facts = classify->facts;
	const char *folded = sensitive_fold(classify->arena, facts->cwd, facts->home, text);

	return !folded || sensitive_is_secret(folded, facts->home, facts->cwd);
}

/* Where secrets may lie below, the files that are found there are not taken for harmless. */
static bool holds_secrets(const struct classify *classify, const char *text)
{
	const struct classify_facts *facts = classify->facts;
	const char *folded = sensitive_fold(classify->arena, facts->cwd, facts->home, text);

	return !folded || sensitive_holds_secrets(folded, facts->home) ||
	       sensitive_is_ruin(folded, facts->home, facts->cwd);
}

/* Not what joins tests, as it stands: with more behind it "!" begins a name. */
static bool is_place(const char *text)
{
	return !text[0] || text[1] || !strchr("!()", text[0]);
}

/* "git ls-files" is two words; returns how many of them the name takes, 0 where they are others. */
static size_t takes_name(const char *name, const struct classify_word *words, size_t count)
{
	const char *blank = strchr(name, ' ');
	size_t length = blank ? (size_t)(blank - name) : strlen(name);

	if (!count || strlen(words[0].text) != length || memcmp(words[0].text, name, length) != 0)
		return 0;
	if (!blank)
		return 1;
	return count > 1 && strcmp(words[1].text, blank + 1) == 0 ? 2 : 0;
}

static bool has_letter(const char *word, const char *option)
{
	return strcmp(word, option) == 0 ||
	       (option[1] != '-' && word[0] == '-' && word[1] != '-' && strchr(word, option[1]));
}

static bool is_such(const struct classify *classify, const struct listing *row,
		    const struct classify_word *words, size_t count, bool *nul)
{
	size_t at = takes_name(row->name, words, count);
	bool has = !row->has[0], named = false; /* all places: others take a pattern */

	if (!at)
		return false;
	for (; at < count; at++) {
		const char *text = words[at].text;
		enum listed listed = LISTED_ALONE;
		bool is_option;

		/* what begins a name is its place: "find *" has names of any kind */
		if (words[at].kind != CLASSIFY_LITERAL &&
		    (words[at].kind != CLASSIFY_GLOB || strchr("*?[", text[0])))
			return false;
		if (text[0] == '-' && text[1]) {
			listed = option_of(row->options, text);
			has |= row->has[0] && has_letter(text, row->has);
			*nul |= row->nul[0] && strcmp(text, row->nul) == 0;
		} else if (is_place(text)) {
			/* ":/" is git's word for the top of the repository */
			if (text[0] == ':' || !is_below_here(classify, text) ||
			    holds_secrets(classify, text))
				return false;
			named = strcmp(row->name, "find") == 0;
		}
		is_option = text[0] == '-';
		if (listed == LISTED_NOT ||
		    is_secret(classify, is_option ? text + strcspn(text, "=") : text))
			return false;
		if (listed == LISTED_WITH_ARGUMENT &&
		    (++at == count || words[at].kind != CLASSIFY_LITERAL ||
		     is_secret(classify, words[at].text)))
			return false;
	}
	return has && (named || !holds_secrets(classify, "."));
}

const char *classify_names(const struct classify *classify, const struct classify_word *words,
			   size_t count, bool *ret_nul)
{
	for (size_t i = 0; i < COUNT(listings); i++) {
		*ret_nul = false;
		if (is_such(classify, &listings[i], words, count, ret_nul))
			return listings[i].names;
	}
	return NULL;
}

/* Of xargs: where words come from and how they are split is nobody's to choose but these. */
static bool has_known_argument(const char *text, const char *next, bool *ret_takes_next)
{
	const char *value = text[1] && text[2] ? text + 2 : next;
	size_t name = strcspn(text, "=");

	*ret_takes_next = value == next;
	if (text[1] == 'I')
		return value && strcmp(value, "{}") == 0;
	if (text[1] == '-') {
		*ret_takes_next = !text[name];
		value = text[name] ? text + name + 1 : next;
		if (!(name == 10 && memcmp(text, "--max-args", name) == 0) &&
		    !(name == 11 && memcmp(text, "--max-procs", name) == 0))
			return false;
	} else if (!text[1] || !strchr("nPL", text[1])) {
		return false;
	}
	return value && value[0] && value[strspn(value, "0123456789")] == '\0';
}

bool classify_takes_names(const struct classify_word *words, size_t count, bool *ret_nul)
{
	bool takes_next = false;

	if (words[0].kind != CLASSIFY_LITERAL || strcmp(words[0].text, "xargs") != 0)
		return false;
	for (size_t i = 1; i < count && words[i].text[0] == '-'; i++) {
		const char *text = words[i].text;
		bool null = strcmp(text, "--null") == 0;
		bool plain = text[1] && text[strspn(text + 1, "0rt") + 1] == '\0';

		if (words[i].kind != CLASSIFY_LITERAL)
			return false;
		*ret_nul |= null || (plain && strchr(text, '0'));
		if (null || plain || strcmp(text, "--no-run-if-empty") == 0)
			continue;
		if (!has_known_argument(text, i + 1 < count ? words[i + 1].text : NULL,
					&takes_next))
			return false;
		i += takes_next;
	}
	return true;
}

bool classify_passes(const struct classify_word *words, size_t count)
{
	for (size_t i = 0; i < COUNT(passings); i++) {
		size_t operands = 0;
		bool passes = takes_name(passings[i].name, words, count) == 1;

		for (size_t at = 1; passes && at < count; at++) {
			const char *text = words[at].text;
			bool is_option = text[0] == '-' && text[1];

			/* "-n 20" */
			if (!is_option && text[strspn(text, "0123456789")] == '\0' &&
			    !passings[i].operands)
				continue;
			operands += !is_option;
			passes = words[at].kind == CLASSIFY_LITERAL &&
				 (!is_option ||
				  option_of(passings[i].options, text) == LISTED_ALONE);
		}
		if (passes && operands == passings[i].operands)
			return true;
	}
	return false;
}
