/*
 * The little languages of sed, awk, jq and yq: whether a script writes, reads other files or runs
 * something. Each reader knows the harmless part of its language; what is not in it cannot be told.
 */
#include "policy/classify_internal.h"

#include "base/arena.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

struct script {
	struct command *command;
	const struct classify_word *word;
	const char *at;
	bool unclear;
};

static void unclear(struct script *script)
{
	script->unclear = true;
}

/* The rest of the line as a path. */
static struct classify_word take_path(struct script *script)
{
	struct classify_word path = *script->word;
	size_t length;

	script->at += strspn(script->at, " \t");
	length = strcspn(script->at, "\n");
	path.text = arena_copy_bytes(script->command->classify->arena, script->at, length);
	if (!path.text) {
		script->command->classify->failed = true;
		path.text = "";
	}
	script->at += length;
	return path;
}

/*
 * "[...]" of a regular expression, with "[:class:]" in it. Some seds end the expression at a
 * delimiter inside of a set: they then find a set that is not closed, and run nothing.
 */
static void skip_set(struct script *script)
{
	const char *at = script->at + 1;

	at += *at == '^';
	at += *at == ']';
	while (*at && *at != ']' && *at != '\n') {
		char class[] = { at[1], ']', '\0' };
		const char *close = NULL;

		if (*at == '[' && at[1] && strchr(":.=", at[1]))
			close = strstr(at + 2, class);
		at = close ? close + 2 : at + 1;
	}
	if (*at == ']')
		at++;
	else
		unclear(script);
	script->at = at;
}

/* sed's text up to the delimiter, which is taken too; a set may hold it, a backslash hides it. */
static void skip_delimited(struct script *script, char delimiter, bool regular)
{
	while (*script->at && *script->at != delimiter) {
		if (*script->at == '\\' && script->at[1]) {
			/* "\cX" takes any character, a delimiter or a bracket too */
			if (regular && script->at[1] == 'c')
				unclear(script);
			script->at += 2;
		} else if (regular && *script->at == '[') {
			skip_set(script);
		} else {
			script->at++;
		}
	}
	if (*script->at)
		script->at++;
	else
		unclear(script);
}

static void skip_address(struct script *script)
{
	for (;;) {
		script->at += strspn(script->at, " \t0123456789$,~+!");
		if (*script->at == '/') {
			script->at++;
			skip_delimited(script, '/', true);
		} else if (*script->at == '\\' && script->at[1] && script->at[1] != '\n') {
			script->at += 2;
			skip_delimited(script, script->at[-1], true);
		} else {
			return;
		}
		script->at += strspn(script->at, "IM");
	}
}

static void sed_write(struct script *script)
{
	struct classify_word path = take_path(script);

	classify_write(script->command->classify, &path);
}

static void sed_substitute(struct script *script)
{
	char delimiter = *script->at;

	if (!delimiter || delimiter == '\n' || delimiter == '\\') {
		unclear(script);
		return;
	}
	script->at++;
	skip_delimited(script, delimiter, true);
	skip_delimited(script, delimiter, false);
	for (;; script->at++) {
		if (*script->at == 'e')
			classify_add(script->command->classify, WANTED_EXEC_CODE, script->word,
				     "sed runs what it made of a line");
		else if (*script->at == 'w') {
			script->at++;
			sed_write(script);
			return;
		} else if (!*script->at || !strchr("gpiImM0123456789", *script->at))
			return;
	}
}

/* The text of a, i and c: up to a newline that no backslash hides. */
static void skip_text(struct script *script)
{
	while (*script->at && *script->at != '\n')
		script->at += *script->at == '\\' && script->at[1] ? 2 : 1;
}

static void sed_read(struct script *script)
{
	struct classify_word path = take_path(script);

	classify_read(script->command->classify, &path);
}

/* One command behind its addresses. */
static void sed_command(struct script *script)
{
	char letter = *script->at++;

	if (strchr("{}=dDgGhHnNpPxzF", letter)) {
		return;
	} else if (strchr("lLqQ", letter)) {
		script->at += strspn(script->at, " \t0123456789");
	} else if (strchr("aic", letter)) {
		skip_text(script);
	} else if (strchr(":btT", letter)) {
		/* GNU's labels end at a blank, and the next command may follow */
		script->at += strspn(script->at, " \t");
		script->at += strcspn(script->at, "\n;} \t");
	} else if (strchr("rR", letter)) {
		sed_read(script);
	} else if (strchr("wW", letter)) {
		sed_write(script);
	} else if (letter == 's') {
		sed_substitute(script);
	} else if (letter == 'y') {
		char delimiter = *script->at;

		script->at += delimiter != '\0';
		skip_delimited(script, delimiter, false);
		skip_delimited(script, delimiter, false);
	} else if (letter == '#') {
		script->at += strcspn(script->at, "\n");
	} else if (letter == 'e') {
		struct classify_word text = take_path(script);

		if (text.text[0])
			command_text(script->command, &text);
		classify_add(script->command->classify, WANTED_EXEC_CODE, script->word,
			     "sed runs a command");
	} else {
		unclear(script);
	}
}

static struct script begin(struct command *command, const struct classify_word *word)
{
	return (struct script){ .command = command, .word = word, .at = word->text };
}

static void end(struct script *script)
{
	if (script->unclear)
		classify_add(script->command->classify, WANTED_UNCLEAR, script->word,
			     "a script that cannot be told");
}

static bool is_known(struct command *command, const struct classify_word *word)
{
	if (word->kind == CLASSIFY_LITERAL)
		return true;
	classify_add(command->classify, WANTED_UNCLEAR, word, "a script that is not known");
	return false;
}

void command_sed(struct command *command, const struct classify_word *word)
{
	struct script script = begin(command, word);

	if (!is_known(command, word))
		return;
	while (!script.unclear) {
		script.at += strspn(script.at, " \t\n;");
		skip_address(&script);
		if (!*script.at)
			break;
		sed_command(&script);
		/* what stands behind a command but a separator is another that was not seen */
		script.at += strspn(script.at, " \t");
		if (*script.at && !strchr("\n;}#", *script.at) && script.at[-1] != '{' &&
		    !strchr("{ \t", script.at[-1]))
			unclear(&script);
	}
	end(&script);
}

/* awk: where a '/' would begin a regular expression, and not divide. */
struct awk {
	struct script script;
	bool operand;  /* the token before was a value */
	bool doubtful; /* a '/' could be either */
	bool prints;   /* in a statement whose '>' writes */
	int depth;     /* of parentheses in it */
};

static void awk_string(struct awk *awk)
{
	struct script *script = &awk->script;

	script->at++;
	skip_delimited(script, '"', false);
	awk->operand = true;
}

static void awk_slash(struct awk *awk)
{
	struct script *script = &awk->script;

	script->at++;
	if (awk->operand) {
		awk->operand = false;
		return;
	}
	skip_delimited(script, '/', true);
	awk->operand = true;
}

static bool is_word(const char *word, size_t length, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == length && memcmp(list[i], word, length) == 0)
			return true;
	return false;
}

static void awk_name(struct awk *awk)
{
	static const char *const prints[] = { "print", "printf" };
	static const char *const keywords[] = { "return", "in",	    "if",    "while",
						"for",	  "else",   "do",    "case",
						"exit",	  "delete", "print", "printf" };
	static const char *const dangers[] = { "system",  "getline",   "ARGV",	   "ARGC",
					       "load",	  "include",   "PROCINFO", "SYMTAB",
					       "FUNCTAB", "extension", "ENVIRON" };
	struct script *script = &awk->script;
	const char *name = script->at;
	size_t length = 0;

	while (isalnum((unsigned char)name[length]) || name[length] == '_')
		length++;
	script->at += length;
	if (is_word(name, length, dangers, sizeof(dangers) / sizeof(dangers[0])))
		classify_add(script->command->classify, WANTED_EXEC_CODE, script->word,
			     "awk reaches beyond its input");
	if (is_word(name, length, prints, 2)) {
		awk->prints = true;
		awk->depth = 0;
	}
	/* "length / 2" and "length /x/": which it is depends on more than we look at */
	awk->doubtful |= length == 6 && memcmp(name, "length", 6) == 0;
	awk->operand = !is_word(name, length, keywords, sizeof(keywords) / sizeof(keywords[0]));
}

static void awk_redirection(struct awk *awk)
{
	struct script *script = &awk->script;
	struct classify_word path = *script->word;
	size_t length;

	script->at += 1 + (script->at[1] == '>');
	script->at += strspn(script->at, " \t");
	length = *script->at == '"' ? strcspn(script->at + 1, "\"\\") : 0;
	if (length && script->at[1 + length] == '"')
		path.text =
			arena_copy_bytes(script->command->classify->arena, script->at + 1, length);
	else
		path.kind = CLASSIFY_ONE;
	if (path.text)
		classify_write(script->command->classify, &path);
	else
		script->command->classify->failed = true;
}

static void awk_pipe(struct awk *awk)
{
	struct script *script = &awk->script;

	classify_add(script->command->classify, WANTED_EXEC_CODE, script->word,
		     "awk runs a command");
	script->at++;
}

static void awk_symbol(struct awk *awk)
{
	struct script *script = &awk->script;
	char c = *script->at;

	if (c == '|' && script->at[1] == '|') {
		script->at += 2;
	} else if (c == '|') {
		awk_pipe(awk);
	} else if (c == '>' && awk->prints && awk->depth <= 0) {
		awk_redirection(awk);
	} else if (c == '@') {
		unclear(script);
	} else {
		/* a line may go on behind a comma, so its end is not the statement's */
		if (strchr(";}{", c))
			awk->prints = false;
		awk->depth += (c == '(') - (c == ')');
		awk->doubtful |= (c == '+' || c == '-') && script->at[1] == c;
		script->at++;
	}
	awk->operand = c == ')' || c == ']' || c == '$';
}

void command_awk(struct command *command, const struct classify_word *word)
{
	struct awk awk = { .script = begin(command, word) };
	struct script *script = &awk.script;

	if (!is_known(command, word))
		return;
	while (*script->at && !script->unclear) {
		if (*script->at == ' ' || *script->at == '\t')
			script->at++;
		else if (*script->at == '#')
			script->at += strcspn(script->at, "\n");
		else if (*script->at == '\\' && script->at[1] == '\n')
			script->at += 2;
		else if (*script->at == '"')
			awk_string(&awk);
		else if (*script->at == '/' && awk.doubtful)
			unclear(script);
		else if (*script->at == '/')
			awk_slash(&awk);
		else if (isalnum((unsigned char)*script->at) || *script->at == '_')
			awk_name(&awk);
		else
			awk_symbol(&awk);
	}
	/* a word of danger in what we took for a string or an expression: rather ask */
	if (strstr(word->text, "system") || strstr(word->text, "getline"))
		classify_add(command->classify, WANTED_EXEC_CODE, word, "awk runs a command");
	end(script);
}

/* The name in jq's or yq's program, and not a field's, begins what reads files or makes code. */
static bool jq_reaches(const char *name, size_t length, const char *behind)
{
	static const char *const modules[] = { "import", "include" };
	static const char *const operators[] = { "load",       "load_str",    "load_xml",
						 "load_props", "load_base64", "loadstr",
						 "eval" };

	if (is_word(name, length, modules, sizeof(modules) / sizeof(modules[0])))
		return true;
	return behind[strspn(behind, " \t\n")] == '(' &&
	       is_word(name, length, operators, sizeof(operators) / sizeof(operators[0]));
}

static bool jq_shows_environment(const char *name, size_t length, char before)
{
	static const char *const names[] = { "env", "strenv", "envsubst" };

	return before != '$' && before != '.' && before != '"' &&
	       is_word(name, length, names, sizeof(names) / sizeof(names[0]));
}

/* "$ENV", with blanks between them too; what a comment between them hides is not looked for. */
static bool jq_names_environment(const char *at)
{
	if (*at != '$')
		return false;
	at += 1 + strspn(at + 1, " \t\r\n");
	return *at == '#' ||
	       (strncmp(at, "ENV", 3) == 0 && !isalnum((unsigned char)at[3]) && at[3] != '_');
}

void command_jq(struct command *command, const struct classify_word *word)
{
	const char *at = word->text;

	if (!is_known(command, word))
		return;
	while (*at) {
		char before = at > word->text ? at[-1] : ' ';
		size_t length = 0;

		while (isalnum((unsigned char)at[length]) || at[length] == '_')
			length++;
		if (jq_names_environment(at) || jq_shows_environment(at, length, before)) {
			classify_add(command->classify, WANTED_FS_SECRET, word, "the environment");
			return;
		}
		if (length && before != '.' && before != '"' && before != '$' &&
		    jq_reaches(at, length, at + length)) {
			classify_add(command->classify, WANTED_UNCLEAR, word,
				     "a program that reads other files");
			return;
		}
		at += length ? length : 1;
	}
}
