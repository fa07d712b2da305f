#include "broker/infer_internal.h"

#include "policy/denial.h"
#include "policy/policy.h"

#include <string.h>

/*
 * Set-id bits, which the filter refuses by EPERM, as a file that is another's is refused: only a
 * command line that asks for such a bit tells them apart.
 */

/* "u+s", "g=rxs": the bit is given; or digits of which the first of four has it: 2755, 04755. */
static bool is_set_id_mode(const char *word, size_t length)
{
	size_t who = strspn(word, "ugoa"), digits = strspn(word, "01234567");

	if (digits == length && length >= 4 && length <= 5)
		return strchr("234567", word[length - 4]) != NULL;
	return who < length && (word[who] == '+' || word[who] == '=') &&
	       strspn(word + who + 1, "rwxXst") == length - who - 1 &&
	       memchr(word + who + 1, 's', length - who - 1);
}

static bool asks_set_id(const char *const *argv)
{
	for (size_t i = 1; i < INFER_LIMIT_OPERANDS && argv[0] && argv[i]; i++)
		for (const char *at = argv[i]; *at;) {
			size_t length = strcspn(at, " ,;&|\"'\n\t");

			if (is_set_id_mode(at, length))
				return true;
			at += length + (at[length] != '\0');
		}
	return false;
}

void infer_search_set_id(struct infer_search *search, const char *line, unsigned says)
{
	static const char chmod[] = "changing permissions of ";
	const char *at = strstr(line, chmod);
	struct infer_word word;
	struct infer_path path;

	if (!at || !(says & SAYS_REFUSED) || !asks_set_id(search->argv))
		return;
	at += strlen(chmod);
	if (infer_next_word(&at, &word) && infer_path(search, word.start, word.length, &path))
		(void)denial_add(search->list, DENIAL_SYS_SET_ID,
				 rule_builtin(RULE_SYSCALL_ALLOWLIST), path.text, false);
}
