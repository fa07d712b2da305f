#include "broker/infer.h"

#include "broker/infer_internal.h"
#include "policy/denial.h"
#include "policy/policy.h"

#include <string.h>

/*
 * Theory of operation. The tail is copied, cut into lines, and each line is asked what it *says*:
 * the texts of errno in many languages. Only in a line that speaks of a refusal are words taken
 * for paths, and a path is reported only where the view agrees. A wrong accusation costs an agent
 * more than a missed one: it would ask a person for a path that has nothing to do with its fault.
 */

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

	if (value && infer_starts_path(value + 1))
		return value + 1;
	if (operand[0] != '-')
		return operand;
	if (operand[1] && operand[1] != '-' && infer_starts_path(operand + 2))
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

		if (at > line && (infer_is_alnum(at[-1]) || strchr("/._-~", at[-1])))
			continue;
		end += strspn(end, ".-_");
		if (!infer_is_alnum(*end) && *end != '/')
			return true;
	}
	return false;
}

/*
 * An operand is told of when an error text names it, or when an error named nothing: `cannot open:
 * No such file or directory` can only mean what it was given.
 */
static void search_operand(struct infer_search *search, const char *operand, char *const *lines,
			   size_t line_count)
{
	const char *text = operand_path(operand);
	unsigned says = search->path_named ? 0 : search->anonymous & SAYS_PATH;
	struct infer_path path;

	if (!text || !*text || !infer_path(search, text, strlen(text), &path) ||
	    is_reported(search->list, path.text))
		return;
	for (size_t i = 0; i < line_count; i++)
		if (line_names(lines[i], text))
			says |= infer_line_says(lines[i]) & (SAYS_PATH | SAYS_WRITING);
	/* whether an operand was to be written only the text beside it can tell */
	if (says & (SAYS_ABSENT | SAYS_REFUSED))
		infer_decide(search, &path, says & (SAYS_ABSENT | SAYS_REFUSED));
}

/* Lines of one tail that speak of a path and are compared with the operands. */
#define LINE_LIMIT 16

void infer_denials(const struct policy *policy, const char *const *argv, const char *cwd,
		   const char *tail, size_t tail_length, struct denial_list *list)
{
	struct infer_search search = { .policy = policy, .cwd = cwd, .argv = argv, .list = list };
	char copy[INFER_TAIL_BYTES + 1];
	char *lines[LINE_LIMIT], *line, *rest = copy;
	size_t line_count = 0;

	copy_tail(tail, tail_length, copy);
	while ((line = strsep(&rest, "\n"))) {
		unsigned says = infer_line_says(line);

		if (says & SAYS_NETWORK) {
			infer_search_hosts(&search, line, says);
			continue;
		}
		infer_search_curl(&search, line);
		infer_search_pip(&search, line);
		infer_search_set_id(&search, line, says);
		if (!(says & (SAYS_PATH | SAYS_BESIDE)))
			continue;
		infer_search_paths(&search, line, says);
		if (line_count < LINE_LIMIT)
			lines[line_count++] = line;
	}
	infer_search_anonymous(&search);
	for (size_t i = 1; line_count && i < INFER_LIMIT_OPERANDS && argv[0] && argv[i]; i++)
		search_operand(&search, argv[i], lines, line_count);
}
