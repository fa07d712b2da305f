/*
 * Theory of operation: a row's options are one string (program.h), read anew for each word: most
 * commands have few options, and so nothing needs to be prepared or kept.
 */
#include "policy/classify_internal.h"
#include "policy/program.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

struct option {
	bool found, unclear;
	char kind;	     /* 0: no argument; ':' '?' '!' as in program.h */
	const char *letters; /* ended by ' ' or NUL */
};

/* Items and names are short: for a few bytes strcspn(3) is dear. */
static const char *next_item(const char *at)
{
	while (*at && *at != ' ')
		at++;
	while (*at == ' ')
		at++;
	return at;
}

static bool ends_names(char c)
{
	return !c || c == ':' || c == '?' || c == '!' || c == ' ';
}

static const char *names_end(const char *at)
{
	while (!ends_names(*at))
		at++;
	return at;
}

static size_t name_length(const char *name)
{
	size_t length = 0;

	while (!ends_names(name[length]) && name[length] != ',')
		length++;
	return length;
}

/* Settings stand before options. */
static bool has_setting(const struct program *program, const char *setting)
{
	size_t length = strlen(setting);

	for (const char *at = program->options; *at && *at != '-'; at = next_item(at))
		if (strncmp(at, setting, length) == 0 && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

/* The option that the item is, from where its names end. */
static struct option option_at(const char *end)
{
	bool plain = !*end || *end == ' ';

	return (struct option){
		.found = true,
		.kind = plain ? '\0' : *end,
		.letters = plain ? "" : end + 1,
	};
}

static bool has_effect(const struct option *option)
{
	return option->letters[0] && option->letters[0] != ' ';
}

/* Of two that a shortened name could mean: the same, or one that cannot be told. */
static void merge(struct option *option, const struct option *other)
{
	if (!option->found) {
		*option = *other;
		return;
	}
	if (option->kind != other->kind || has_effect(option) || has_effect(other))
		option->unclear = option->letters != other->letters;
}

/* dashes: how many a long name has. */
static struct option find_long(const struct program *program, const char *name, size_t length,
			       size_t dashes)
{
	struct option found = { 0 };

	for (const char *item = program->options; *item; item = next_item(item)) {
		const char *end = names_end(item);

		for (const char *at = item; *at == '-' && at < end;) {
			size_t n = name_length(at);
			size_t given = n > dashes ? n - dashes : 0;

			if (given >= length && (dashes == 1 || at[1] == '-') &&
			    memcmp(at + dashes, name, length) == 0) {
				struct option option = option_at(end);

				if (given == length)
					return option;
				merge(&found, &option);
			}
			at += n + (at[n] == ',');
		}
	}
	/* find and Go take no shortened names */
	if (dashes == 1)
		found = (struct option){ 0 };
	return found;
}

static struct option find_short(const struct program *program, char c)
{
	if (c == ',' || c == '-')
		return (struct option){ 0 };
	for (const char *item = program->options; *item; item = next_item(item)) {
		const char *end = names_end(item);

		/* "-?" and "-!" are no options of any program here */
		for (const char *at = item; *at == '-' && at < end;) {
			size_t n = name_length(at);

			if (at[1] != '-' && memchr(at + 1, c, n - 1))
				return option_at(end);
			at += n + (at[n] == ',');
		}
	}
	return (struct option){ 0 };
}

/* A part of a word as a word of its own. */
static struct classify_word part(const struct classify_word *word, const char *text)
{
	struct classify_word part = *word;

	part.text = text;
	return part;
}

static const char *next_argument(const char *letters)
{
	while (*letters && *letters != ' ' && *letters != ',')
		letters++;
	return *letters == ',' ? letters + 1 : NULL;
}

static void apply(struct command *command, const char *letters, const struct classify_word *word)
{
	for (; *letters && *letters != ' ' && *letters != ','; letters++)
		command_effect(command, *letters, word);
}

/*
 * The command up to ";" or "+" behind an option, as find's -exec; `more`: words come at run time.
 * Returns the index behind it.
 */
static size_t take_command(struct command *command, size_t i, bool more)
{
	size_t from = i;

	while (i < command->count && strcmp(command->words[i].text, ";") != 0 &&
	       !(strcmp(command->words[i].text, "+") == 0 && i > from &&
		 strcmp(command->words[i - 1].text, "{}") == 0))
		i++;
	command_inner(command, from, i, more);
	return i < command->count ? i + 1 : i;
}

/* True when no option of the program could do harm. */
static bool is_harmless(const struct program *program)
{
	if (!has_setting(program, "*"))
		return false;
	for (const char *at = program->options; *at; at = next_item(at)) {
		const char *end = names_end(at);

		for (const char *c = *at == '-' && *end && *end != ' ' ? end + 1 : "";
		     *c && *c != ' '; c++)
			if (!strchr("trRZ1,", *c))
				return false;
	}
	return true;
}

/* A word that becomes an option, or another, when its pattern or its unknown part is filled in. */
static bool may_be_option(const struct command *command, const struct classify_word *word)
{
	char c = word->text[0];

	if (c == '-' || (c == '+' && has_setting(command->program, "!plus")))
		return word->kind != CLASSIFY_LITERAL;
	switch (word->kind) {
	case CLASSIFY_LITERAL:
		return false;
	case CLASSIFY_GLOB:
		return (c == '*' || c == '?' || c == '[') && strncmp(word->text, "[!-]", 4) != 0;
	case CLASSIFY_ONE:
		return c == '$' || c == '`' || c == '\0';
	default:
		return true;
	}
}

/*
 * An argument without quotes may become several words: what follows the first are options, or
 * files to read.
 */
static void check_split(struct command *command, const struct classify_word *word, bool attached)
{
	bool several = word->kind == CLASSIFY_UNKNOWN;
	bool reads = strchr(command->program->operands, 'r') != NULL;

	if (word->kind == CLASSIFY_GLOB && !attached)
		several = may_be_option(command, word) && !is_harmless(command->program);
	if (several && (reads || !is_harmless(command->program)))
		classify_add(command->classify, WANTED_UNCLEAR, word,
			     "may become several words, and more than an argument");
}

/*
 * Arguments of the option words[i]: `attached` is what of the word itself is one (NULL: none).
 * Returns the index of the next word.
 */
static size_t take_arguments(struct command *command, size_t i, const struct option *option,
			     const char *attached)
{
	const struct classify_word *word = &command->words[i++];
	const char *letters = option->letters;

	if (option->unclear) {
		classify_add(command->classify, WANTED_UNCLEAR, word,
			     "a shortened option that may mean several");
		return i;
	}
	if (option->kind == '!' || !option->kind) {
		apply(command, letters, word);
		return i;
	}
	if (*letters == '>') {
		bool more = letters[1] == '+';

		if (attached)
			classify_add(command->classify, WANTED_UNCLEAR, word,
				     "a command that begins within the option");
		apply(command, letters + 1 + more, word);
		return take_command(command, i, more);
	}
	if (option->kind == '?') {
		struct classify_word argument = part(word, attached ? attached : "");

		check_split(command, word, true);
		/* without its argument it is still that option */
		if (attached || has_effect(option))
			apply(command, letters, attached ? &argument : word);
		return i;
	}
	for (; letters; letters = next_argument(letters)) {
		if (attached) {
			struct classify_word argument = part(word, attached);

			check_split(command, word, true);
			apply(command, letters, &argument);
			attached = NULL;
		} else if (i < command->count) {
			check_split(command, &command->words[i], false);
			apply(command, letters, &command->words[i++]);
		}
	}
	return i;
}

static void unknown_option(struct command *command, const struct classify_word *word)
{
	if (!has_setting(command->program, "*"))
		classify_add(command->classify, WANTED_UNCLEAR, word,
			     "an option that the tables do not know");
}

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

/* "--name", "--name=value", or "-name" where long names have one dash. */
static size_t take_long(struct command *command, size_t i, size_t dashes)
{
	const struct classify_word *word = &command->words[i];
	const char *name = word->text + dashes;
	size_t length = strcspn(name, "=");
	struct option option = find_long(command->program, name, length, dashes);

	if (!option.found) {
		unknown_option(command, word);
		return i + 1;
	}
	return take_arguments(command, i, &option, name[length] ? name + length + 1 : NULL);
}

/*
 * What follows an option that is not in the table may be its argument, or more options: both are
 * meant, and the next word stays an operand.
 */
static void take_behind_unknown(struct command *command, size_t i, const char *at)
{
	for (; *at; at++) {
		struct option option = find_short(command->program, *at);

		if (!option.found)
			continue;
		take_arguments(command, i, &option, option.kind && at[1] ? at + 1 : NULL);
		if (option.kind == ':' || option.kind == '?')
			return;
	}
}

/* "-abc", "-ofile". */
static size_t take_short(struct command *command, size_t i)
{
	const struct classify_word *word = &command->words[i];

	if (has_setting(command->program, "!number") && is_number(word->text + 1))
		return i + 1;
	for (const char *at = word->text + 1; *at; at++) {
		struct option option = find_short(command->program, *at);

		if (!option.found) {
			unknown_option(command, word);
			take_behind_unknown(command, i, at + 1);
			return i + 1;
		}
		if (option.kind == ':' || option.kind == '?')
			return take_arguments(command, i, &option, at[1] ? at + 1 : NULL);
		take_arguments(command, i, &option, NULL);
	}
	return i + 1;
}

/* "--name=$X": which option it is can be told. */
static bool names_its_option(const struct classify_word *word)
{
	const char *text = word->text;

	return word->kind != CLASSIFY_LITERAL && text[0] == '-' && text[1] == '-' &&
	       isalpha((unsigned char)text[2]) && text[strcspn(text, "=$`*?[{\"'\\")] == '=';
}

static void operand(struct command *command, size_t i)
{
	command->operands[command->operand_count++] = (uint32_t)i;
}

static bool is_option(const struct command *command, const struct classify_word *word)
{
	if (word->kind != CLASSIFY_LITERAL)
		return names_its_option(word);
	if (word->text[0] == '+')
		return word->text[1] && has_setting(command->program, "!plus");
	return word->text[0] == '-' && word->text[1];
}

static size_t take_option(struct command *command, size_t i)
{
	const struct classify_word *word = &command->words[i];

	if (word->text[0] == '+') {
		classify_add(command->classify, WANTED_UNCLEAR, word,
			     "a command in the form of an option");
		return i + 1;
	}
	if (word->text[1] == '-')
		return take_long(command, i, 2);
	if (has_setting(command->program, "!single"))
		return take_long(command, i, 1);
	return take_short(command, i);
}

/* "if=file" of dd, or the first word "xvf" of tar, as the option that it is. */
static size_t take_special(struct command *command, size_t i)
{
	const struct classify_word *word = &command->words[i];
	size_t next = i + 1;

	if (command->program->way == WAY_DD) {
		struct option option =
			find_long(command->program, word->text, strcspn(word->text, "="), 1);

		if (!option.found || !strchr(word->text, '=')) {
			unknown_option(command, word);
			return next;
		}
		return take_arguments(command, i, &option, strchr(word->text, '=') + 1);
	}
	/* each letter with an argument takes the next word, in order */
	for (const char *at = word->text; *at; at++) {
		struct option option = find_short(command->program, *at);

		if (!option.found)
			unknown_option(command, word);
		else if (option.kind == ':')
			next = take_arguments(command, next - 1, &option, NULL);
		else
			take_arguments(command, i, &option, NULL);
	}
	return next;
}

static bool is_special(const struct command *command, size_t i, size_t from)
{
	const struct classify_word *word = &command->words[i];

	return word->kind == CLASSIFY_LITERAL &&
	       (command->program->way == WAY_DD ||
		(command->program->way == WAY_TAR && i == from && word->text[0] != '-'));
}

/* What joins the tests of find. */
static bool is_connective(const struct classify_word *word)
{
	return word->kind == CLASSIFY_LITERAL && word->text[0] && !word->text[1] &&
	       strchr("()!,", word->text[0]);
}

/* What settings say of words wherever they stand. */
static void check_words(struct command *command, size_t from)
{
	bool response = has_setting(command->program, "!response");
	bool loads = has_setting(command->program, "!loads");

	for (size_t i = from; (response || loads) && i < command->count; i++) {
		const struct classify_word *word = &command->words[i];

		if (response && word->text[0] == '@')
			classify_add(command->classify, WANTED_UNCLEAR, word,
				     "options that are in a file");
		if (loads && word->kind == CLASSIFY_LITERAL)
			command_jq(command, word);
	}
}

/* Where branches and files stand alike, these can only be files. */
static bool is_file_for_sure(const struct classify_word *word)
{
	if (word->kind == CLASSIFY_GLOB)
		return true;
	return word->kind == CLASSIFY_LITERAL &&
	       (strcmp(word->text, ".") == 0 || strncmp(word->text, "./", 2) == 0 ||
		strncmp(word->text, "..", 2) == 0);
}

static void check_restored(struct command *command, bool is_split)
{
	for (size_t i = 0; i < command->operand_count; i++)
		if (is_split || is_file_for_sure(&command->words[command->operands[i]]))
			command->flags |= COMMAND_REMOVES;
}

void command_options(struct command *command, size_t from)
{
	bool stop = has_setting(command->program, "!stop"), is_split = false;
	bool expression = has_setting(command->program, "!expression");

	check_words(command, from);
	for (size_t i = from; i < command->count;) {
		const struct classify_word *word = &command->words[i];
		bool literal = word->kind == CLASSIFY_LITERAL;

		if (literal && strcmp(word->text, "--") == 0) {
			is_split = i + 1 < command->count;
			for (i++; i < command->count; i++)
				operand(command, i);
		} else if (is_option(command, word)) {
			i = take_option(command, i);
		} else if (expression && is_connective(word)) {
			i++;
		} else if (is_special(command, i, from)) {
			i = take_special(command, i);
		} else {
			if (may_be_option(command, word) && !is_harmless(command->program))
				classify_add(command->classify, WANTED_UNCLEAR, word,
					     "may become an option");
			operand(command, i++);
			for (; stop && i < command->count; i++)
				operand(command, i);
		}
	}
	if (has_setting(command->program, "!restores"))
		check_restored(command, is_split);
}
