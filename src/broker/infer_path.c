#include "broker/infer_internal.h"

#include "policy/denial.h"
#include "policy/policy.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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

bool infer_path(const struct infer_search *search, const char *text, size_t length,
		struct infer_path *ret_path)
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

static void report(struct infer_search *search, enum denial_kind kind, struct rule_ref rule,
		   const char *object)
{
	denial_add(search->list, kind, rule, object, false);
}

/* Reports, with a remedy that names another path than the object. */
static void report_grant(struct infer_search *search, enum denial_kind kind, struct rule_ref rule,
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

size_t infer_parent_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash > path ? (size_t)(slash - path) : 1;
}

static struct rule_ref absent_rule(bool home)
{
	return rule_builtin(home ? RULE_HOME_PRIVATE : RULE_SYSTEM_ABSENT);
}

static void decide_absent(struct infer_search *search, const struct infer_path *path, unsigned says)
{
	const struct policy *policy = search->policy;
	bool home = path_is_under(path->text, policy->home);

	if (!path->absolute || !(says & (SAYS_ABSENT | SAYS_REFUSED | SAYS_READ_ONLY)) ||
	    (!home && is_private(path->text)) || is_above_shown(policy, path->text) ||
	    is_proverbial(path->text))
		return;
	if (says & (SAYS_READ_ONLY | SAYS_WRITING))
		/* what was to be made there is not, and an option shows what is */
		report_grant(search, DENIAL_FS_WRITE, absent_rule(home), path->text, path->text,
			     infer_parent_length(path->text));
	else
		report_grant(search, DENIAL_FS_READ, absent_rule(home), path->text, path->text,
			     git_directory_length(path->text));
}

/* What is there and could not be executed: in a box that executes listed programs alone. */
static void decide_strict(struct infer_search *search, const struct infer_path *path, unsigned says,
			  const struct view_path *row)
{
	const struct policy *policy = search->policy;
	bool is_there = row ? row->class != PATH_HIDE && row->class != PATH_PROGRAM :
			      is_private(path->text) || path_is_under(path->text, policy->home);

	if (!(policy->flags & POLICY_EXEC_STRICT) || !(says & SAYS_REFUSED) ||
	    (says & SAYS_WRITING) || !is_there)
		return;
	for (size_t i = 0; i < policy->ruling_count; i++)
		if (policy->rulings[i].kind == RULING_EXEC_ALLOW) {
			report(search, DENIAL_EXEC_STRICT, policy->rules[policy->rulings[i].rule],
			       path->text);
			return;
		}
}

void infer_decide(struct infer_search *search, const struct infer_path *path, unsigned says)
{
	const struct policy *policy = search->policy;
	const struct view_path *row = view_lookup(&policy->view, path->text);
	bool refused_write = (says & SAYS_REFUSED) && (says & SAYS_WRITING);
	const char *whole;

	decide_strict(search, path, says, row);
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
	case PATH_PROGRAM:
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

static bool looks_like_path(const struct infer_word *word)
{
	return infer_starts_path(word->start) || memchr(word->start, '/', word->length) ||
	       (word->start[0] == '.' && word->length > 1);
}

/* `Result::unwrap()` between two backticks is code. */
static bool is_code(const struct infer_word *word)
{
	return word->after[-1] == '`' &&
	       (memchr(word->start, '(', word->length) || !memchr(word->start, '.', word->length));
}

/*
 * Which words are taken for paths: those that look like one, are quoted, or stand right before the
 * refusal. The first word with a colon is the program (`/usr/bin/ld: ...`) or the source line that
 * speaks (`/src/a.c:3: ...`), unless it looks like a path and the refusal follows at once.
 */
static bool is_named_path(const char *line, const struct infer_word *word)
{
	bool direct = infer_refusal_follows(word->after), like = looks_like_path(word);

	if (!word->quoted && *word->after == ':' && !(direct && like)) {
		const char *first = line;

		while (infer_is_space(*first) && *first)
			first++;
		if (word->start == first)
			return false;
	}
	/* tar's `Cannot open: Read-only file system`: what could not be done, not to what */
	if (direct && word->start - line >= 7 && strncasecmp(word->start - 7, "cannot ", 7) == 0)
		direct = false;
	return like || direct || (word->quoted && !is_code(word));
}

/*
 * "../x" is meant from the file that includes it as often as from here: it counts where the command
 * line has it, and does not itself go to another directory.
 */
static bool is_given(const struct infer_search *search, const struct infer_word *word)
{
	for (size_t i = 0; i < INFER_LIMIT_OPERANDS && search->argv[0] && search->argv[i]; i++) {
		const char *operand = search->argv[i];

		if (memmem(operand, strlen(operand), word->start, word->length))
			return strlen(operand) == word->length ||
			       (!strstr(operand, "cd ") && !strstr(operand, "pushd ") &&
				!strstr(operand, "-C"));
	}
	return false;
}

void infer_search_paths(struct infer_search *search, const char *line, unsigned says)
{
	const char *at = line;
	struct infer_word word;
	bool named = false;

	while (search->words < INFER_LIMIT_WORDS && infer_next_word(&at, &word)) {
		struct infer_path path;
		unsigned here = says;

		search->words++;
		if (!is_named_path(line, &word))
			continue;
		named = true;
		if (strncmp(word.start, "..", 2) == 0 && !is_given(search, &word))
			continue;
		if ((says & SAYS_BESIDE) && (infer_says_at(word.after) & SAYS_BESIDE))
			here |= SAYS_ABSENT;
		if ((here & SAYS_PATH) && infer_path(search, word.start, word.length, &path))
			infer_decide(search, &path, here);
	}
	search->path_named |= named;
	if (says & SAYS_ERRNO)
		search->anonymous |= says & SAYS_PATH;
}
