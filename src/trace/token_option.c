/* Passwords that programs take by an option. */
#include "trace/token_internal.h"

#include <string.h>

/*
 * Options of programs whose value is a password in clear, by their manuals. A program's name is how
 * its word begins: mysqldump takes what mysql does.
 */
enum {
	HAS_USER = 1,  /* name:SECRET */
	IS_JOINED = 2, /* -pSECRET, --user=name:SECRET */
	IS_APART = 4,  /* -p SECRET */
};

static const struct secret_option {
	const char *program, *option;
	unsigned form;
} secret_options[] = {
	{ "curl", "-u", HAS_USER | IS_JOINED | IS_APART },
	{ "curl", "-U", HAS_USER | IS_JOINED | IS_APART },
	{ "curl", "--user", HAS_USER | IS_JOINED | IS_APART },
	{ "curl", "--proxy-user", HAS_USER | IS_JOINED | IS_APART },
	{ "mysql", "-p", IS_JOINED },
	{ "mariadb", "-p", IS_JOINED },
	{ "sshpass", "-p", IS_JOINED | IS_APART },
	{ "mongo", "-p", IS_JOINED | IS_APART },
	{ "redis-cli", "-a", IS_APART },
	{ "ldap", "-w", IS_JOINED | IS_APART },
};

/* How they stand in a text, and in an argument of a record. */
const char *const token_option_triggers[] = {
	" -u", "\"-u", " -U", "\"-U", "--u", "--p", " -p", "\"-p", " -a", "\"-a", " -w", "\"-w",
};

const size_t token_option_trigger_count =
	sizeof(token_option_triggers) / sizeof(token_option_triggers[0]);

/* ---- options of programs ---- */

/* A command ends there, in a shell's text: what stands before it is another one. */
static bool ends_command(const struct token_text *text, size_t at)
{
	return byte_at(text, at) == ';' || byte_at(text, at) == '\n' || says(text, at, "\\n") ||
	       says(text, at, "| ") || says(text, at, "&& ");
}

/* The word of a program stands before `at`, and the same command goes on from there. */
static bool is_command_of(const struct token_text *text, size_t at, const char *program)
{
	size_t limit = at > TOKEN_REACH_BACK ? at - TOKEN_REACH_BACK : 0;

	/* most are of other programs */
	if (!memmem(text->bytes + limit, at - limit, program, strlen(program)))
		return false;
	while (at-- > limit) {
		if (ends_command(text, at))
			return false;
		if (says(text, at, program) && token_begins_word(text, at, DASHED))
			return true;
	}
	return false;
}

/* The secret in what stands from `at` to `end`; of name:SECRET the name stays to be read. */
static bool take_secret(const struct token_text *text, size_t at, size_t end, unsigned form,
			struct token_hit *ret_hit)
{
	while ((form & HAS_USER) && at < end && text->bytes[at] != ':')
		at++;
	at += (form & HAS_USER) != 0;
	return end > at + 2 && !token_is_placeholder(text, at, end) &&
	       hit(ret_hit, at, end, token_kinds[KIND_PASSWORD]);
}

/* Where the value of an option begins that ends at `at`; 0: none, or none of that form. */
static size_t option_value(const struct token_text *text, size_t at,
			   const struct secret_option *option, bool *ret_is_whole)
{
	bool is_long = option->option[1] == '-';

	*ret_is_whole = text->is_json && says(text, at, "\",\"");
	if (*ret_is_whole)
		return option->form & IS_APART ? at + 3 : 0;
	if (byte_at(text, at) == ' ')
		return option->form & IS_APART ? token_skip(text, at, " ", 4) : 0;
	if (!(option->form & IS_JOINED) || (is_long && byte_at(text, at) != '='))
		return 0;
	return at + (byte_at(text, at) == '=');
}

/* Behind the quote before a word, which may be quoted itself; ret_quote: it, or 0. */
static size_t unquote(const struct token_text *text, size_t at, uint32_t *ret_quote)
{
	uint32_t value = 0;
	size_t step = token_unit(text, at, &value);

	*ret_quote = 0;
	if (step && value == '\\') {
		at += step;
		step = token_unit(text, at, &value);
	}
	if (!step || !is_quote(value))
		return at;
	*ret_quote = value;
	return at + step;
}

bool token_match_option(const struct token_text *text, size_t at, struct token_hit *ret_hit)
{
	bool is_argument = text->is_json && at && byte_at(text, at - 1) == '"' &&
			   (at < 2 || byte_at(text, at - 2) != '\\');

	for (size_t i = 0; i < sizeof(secret_options) / sizeof(secret_options[0]); i++) {
		const struct secret_option *option = &secret_options[i];
		uint32_t quote = '\n';
		bool is_whole;
		size_t from;

		if (!says(text, at, option->option) || !is_command_of(text, at, option->program))
			continue;
		from = option_value(text, at + strlen(option->option), option, &is_whole);
		if (!from)
			continue;
		/* an argument of a record is the value whole; in a shell's text it is a word */
		if (!is_whole && !is_argument)
			from = unquote(text, from, &quote);
		if (take_secret(text, from, token_value_end(text, from, quote), option->form,
				ret_hit))
			return true;
	}
	return false;
}
