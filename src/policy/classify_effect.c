#include "policy/classify_internal.h"

#include "base/arena.h"
#include "policy/program.h"
#include "policy/sensitive.h"

#include <ctype.h>
#include <string.h>

/* Letters that only name a verb. Small ones have the word as their target, capitals the program. */
static const struct {
	char letter;
	enum wanted_verb verb;
	const char *why;
} plain_effects[] = {
	{ 'p', WANTED_EXEC_UNKNOWN, "runs a program that is named here" },
	{ 'q', WANTED_EXEC_CODE, "runs this code" },
	{ 'c', WANTED_PROCESS_CONTROL, "" },
	{ 'i', WANTED_PACKAGE_INSTALL, "" },
	{ 'e', WANTED_EXTERNAL_WRITE, "" },
	{ 's', WANTED_FS_PERSIST, "" },
	{ 'y', WANTED_SYSTEM_CHANGE, "" },
	{ 'l', WANTED_WALL_LEAVE, "" },
	{ 'a', WANTED_UNCLEAR, "what it does depends on more than the words" },
	{ 'h', WANTED_NET_LISTEN, "" },
	{ 'X', WANTED_EXEC_CODE, "runs code that is not in the words" },
	{ 'N', WANTED_NET_CONNECT, "" },
	{ 'I', WANTED_PACKAGE_INSTALL, "" },
	{ 'E', WANTED_EXTERNAL_WRITE, "" },
	{ 'K', WANTED_CREDENTIAL_USE, "" },
	{ 'P', WANTED_FS_PERSIST, "" },
	{ 'Y', WANTED_SYSTEM_CHANGE, "" },
	{ 'L', WANTED_WALL_LEAVE, "" },
	{ 'C', WANTED_PROCESS_CONTROL, "" },
	{ 'U', WANTED_UNCLEAR, "what it does depends on more than the words" },
	{ 'T', WANTED_IDENTITY_READ, "" },
	{ 'B', WANTED_EXEC_WRAPPED, "" },
	{ 'H', WANTED_NET_LISTEN, "" },
};

static const struct {
	char letter;
	uint32_t flag;
} flag_effects[] = {
	{ 'D', COMMAND_REMOVES },  { 'W', COMMAND_WRITES },   { 'R', COMMAND_RECURSES },
	{ 'Q', COMMAND_IS_QUIET }, { 'Z', COMMAND_HAS_TEXT }, { '0', COMMAND_IS_LISTED },
	{ '2', COMMAND_CHECKS },
};

struct classify_word command_word(const struct classify_word *like, const char *text)
{
	struct classify_word word = *like;

	word.text = text;
	return word;
}

void command_wants(struct command *command, enum wanted_verb verb, const char *why)
{
	struct classify_word word = command_word(&command->words[0], command->program->name);

	classify_add(command->classify, verb, &word, why);
}

/* Where the file system leads to from cwd, if that is known and another place. */
static const char *resolve(struct classify *classify, const struct classify_word *word,
			   const char *cwd, const char *folded)
{
	const struct classify_facts *facts = classify->facts;
	const char *text = word->text, *path = folded;

	if (word->kind == CLASSIFY_GLOB || !facts->resolve)
		return NULL;
	/* "link/.." is not where the link is: only the kernel can tell */
	if (strstr(text, "..") && text[0] != '~' && (text[0] == '/' || cwd))
		path = text[0] == '/' ? text : arena_format(classify->arena, "%s/%s", cwd, text);
	return path ? facts->resolve(facts->context, path) : NULL;
}

/* What a place is asked for: each answer takes a table. */
enum question {
	ASK_SECRET = 1u << 0,
	ASK_PERSISTENT = 1u << 1,
	ASK_BELOW = 1u << 2, /* ruin, holds_secrets */
	ASK_RUIN = 1u << 3,
};

/* What is known of the files that a word can name. */
struct place {
	uint32_t questions; /* enum question */
	bool unknown, secret, persistent, ruin, holds_secrets;
};

static void judge_path(struct classify *classify, const char *folded, const char *cwd,
		       struct place *place)
{
	const struct classify_facts *facts = classify->facts;

	if (place->questions & ASK_SECRET)
		place->secret |= sensitive_is_secret(folded, facts->home, facts->cwd);
	if (place->questions & ASK_PERSISTENT)
		place->persistent |= sensitive_is_persistent(folded);
	if (place->questions & ASK_BELOW)
		place->holds_secrets |= sensitive_holds_secrets(folded, facts->home);
	if (place->questions & (ASK_BELOW | ASK_RUIN))
		place->ruin |= sensitive_is_ruin(folded, facts->home, cwd);
}

/* As it is spelled and as it is meant: a secret is one by either. */
static void judge_from(struct classify *classify, const struct classify_word *word, const char *cwd,
		       struct place *place)
{
	const char *folded =
		sensitive_fold(classify->arena, cwd, classify->facts->home, word->text);
	const char *resolved = folded ? resolve(classify, word, cwd, folded) : NULL;

	if (folded)
		judge_path(classify, folded, cwd, place);
	else
		place->unknown = true;
	if (resolved && strcmp(resolved, folded) != 0)
		judge_path(classify, resolved, cwd, place);
}

static struct place judge(struct classify *classify, const struct classify_word *word,
			  uint32_t questions)
{
	bool relative = word->text[0] != '/' && word->text[0] != '~';
	struct place place = { .questions = questions };

	if (word->kind != CLASSIFY_LITERAL && word->kind != CLASSIFY_GLOB) {
		place.unknown = true;
		return place;
	}
	place.unknown = relative && classify->cwd_unknown;
	for (size_t i = 0; i < classify->cwd_count; i++) {
		judge_from(classify, word, classify->cwds[i], &place);
		if (!relative)
			break;
	}
	if (!classify->cwd_count)
		judge_from(classify, word, NULL, &place);
	return place;
}

static void read_path(struct classify *classify, const struct classify_word *word, bool all_below)
{
	struct place place = judge(classify, word, ASK_SECRET | (all_below ? ASK_BELOW : 0));
	struct classify_word unknown = *word;

	if (place.secret) {
		classify_add(classify, WANTED_FS_SECRET, word, "");
	} else if (place.unknown) {
		unknown.kind = CLASSIFY_UNKNOWN;
		classify_add(classify, WANTED_FS_READ, &unknown, "which file is not known");
	} else if (all_below && (place.ruin || place.holds_secrets)) {
		classify_add(classify, WANTED_FS_SECRET, word, "secrets lie below it");
	} else {
		classify_add(classify, WANTED_FS_READ, word, "");
	}
}

void classify_read(struct classify *classify, const struct classify_word *word)
{
	if (strcmp(word->text, "-") != 0 || word->kind != CLASSIFY_LITERAL)
		read_path(classify, word, false);
}

/* What is written there goes nowhere, or where the command's output goes anyway. */
static bool is_sink(const char *path)
{
	static const char *const sinks[] = {
		"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2",
	};

	for (size_t i = 0; i < sizeof(sinks) / sizeof(sinks[0]); i++)
		if (strcmp(path, sinks[i]) == 0)
			return true;
	return false;
}

static void write_path(struct classify *classify, const struct classify_word *word,
		       enum wanted_verb verb)
{
	struct place place;

	if (word->kind == CLASSIFY_LITERAL && is_sink(word->text))
		return;
	place = judge(classify, word, ASK_PERSISTENT | ASK_RUIN);
	if (place.persistent)
		classify_add(classify, WANTED_FS_PERSIST, word, "");
	if (verb == WANTED_FS_REMOVE && (place.ruin || word->text[0] == '~'))
		verb = WANTED_FS_RUIN;
	classify_add(classify, verb, word, place.unknown ? "which file is not known" : "");
}

void classify_write(struct classify *classify, const struct classify_word *word)
{
	write_path(classify, word, WANTED_FS_WRITE);
}

/* Locales, zones and terminals become paths: "..", and what begins like one, leads away. */
static bool is_harmless_value(const struct classify_word *word, size_t length)
{
	const char *value = word->text + length;

	return word->kind == CLASSIFY_LITERAL && !strstr(value, "..") && !strstr(value, "=/") &&
	       !strstr(value, "=:");
}

static bool is_plain_pager(const struct classify_word *word)
{
	static const char *const plain[] = { "PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat",
					     "SYSTEMD_PAGER=cat" };

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (word->kind == CLASSIFY_LITERAL && strcmp(word->text, plain[i]) == 0)
			return true;
	return false;
}

void classify_variable(struct classify *classify, const struct classify_word *word)
{
	size_t length = strcspn(word->text, "=+[");

	if (sensitive_is_harmless_variable(word->text, length) ? is_harmless_value(word, length) :
								 is_plain_pager(word))
		return;
	classify_add(classify, WANTED_ENV_SET, word, "");
}

/*
 * Names in small letters are a script's own, but for what programs take a proxy from; those in
 * capitals may be the environment's. A subscript is evaluated, and can run commands.
 */
void classify_shell_variable(struct classify *classify, const struct classify_word *word)
{
	size_t length = strcspn(word->text, "=+");
	bool named = word->kind == CLASSIFY_LITERAL ||
		     (!memchr(word->text, '$', length) && !memchr(word->text, '`', length));

	if (memchr(word->text, '[', length) || word->kind == CLASSIFY_UNKNOWN || !named) {
		classify_add(classify, WANTED_UNCLEAR, word, "a name that is evaluated");
		return;
	}
	for (size_t i = 0; i < length; i++)
		if (isupper((unsigned char)word->text[i])) {
			classify_variable(classify, word);
			return;
		}
	if (length > 6 && memcmp(word->text + length - 6, "_proxy", 6) == 0)
		classify_variable(classify, word);
}

static const struct {
	const char *scheme, *port;
} ports[] = {
	{ "http", "80" },    { "https", "443" },  { "ftp", "21" },	  { "ftps", "990" },
	{ "ssh", "22" },     { "git", "9418" },	  { "git+ssh", "22" },	  { "sftp", "22" },
	{ "ws", "80" },	     { "wss", "443" },	  { "ldap", "389" },	  { "ldaps", "636" },
	{ "smtp", "25" },    { "rsync", "873" },  { "postgres", "5432" }, { "postgresql", "5432" },
	{ "mysql", "3306" }, { "redis", "6379" }, { "mongodb", "27017" },
};

static const char *port_of(const char *scheme, size_t length)
{
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
		if (strlen(ports[i].scheme) == length &&
		    strncasecmp(ports[i].scheme, scheme, length) == 0)
			return ports[i].port;
	return NULL;
}

/* host:port of a URL's authority, or of "user@host:path". */
static void connect_to(struct classify *classify, const struct classify_word *word,
		       const char *host, size_t length, const char *port)
{
	const char *at = memrchr(host, '@', length);
	struct classify_word target = *word;
	bool has_port;

	if (at) {
		if (memchr(host, ':', (size_t)(at - host)))
			classify_add(classify, WANTED_CREDENTIAL_USE, word, "a password in a URL");
		length -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	has_port = length && memchr(host, ':', length) && host[0] != '[';
	target.text = arena_format(classify->arena, "%.*s%s%s", (int)length, host,
				   port && !has_port ? ":" : "", port && !has_port ? port : "");
	if (!target.text)
		classify->failed = true;
	else
		classify_add(classify, WANTED_NET_CONNECT, &target, "");
}

static void connect_url(struct command *command, const struct classify_word *word)
{
	struct classify *classify = command->classify;
	const char *text = word->text, *scheme = strstr(text, "://");
	const char *helper = strstr(text, "::");

	if (word->kind != CLASSIFY_LITERAL) {
		classify_add(classify, WANTED_NET_CONNECT, word, "where to is not known");
		return;
	}
	if (helper && helper[-(helper > text)] != '[' && !scheme) {
		classify_add(classify, WANTED_EXEC_CODE, word, "a transport that runs a program");
		return;
	}
	if (strncasecmp(text, "file:", 5) == 0) {
		struct classify_word path = *word;

		path.text = text + 5 + strspn(text + 5, "/");
		path.text -= path.text > text + 5;
		read_path(classify, &path, false);
		classify_add(classify, WANTED_UNCLEAR, word, "a file in the form of a URL");
		return;
	}
	if (scheme)
		connect_to(classify, word, scheme + 3, strcspn(scheme + 3, "/?#"),
			   port_of(text, (size_t)(scheme - text)));
	else
		connect_to(classify, word, text, strcspn(text, "/?#"), NULL);
}

/* scp's and rsync's operands: a path, or host:path. */
static bool is_remote(const struct classify_word *word)
{
	size_t length = strcspn(word->text, ":/");

	return word->text[length] == ':' && length;
}

static void copy_end(struct command *command, const struct classify_word *word, bool written)
{
	struct classify *classify = command->classify;

	if (!is_remote(word)) {
		if (written)
			classify_write(classify, word);
		else
			read_path(classify, word, true);
		return;
	}
	if (strstr(word->text, "://"))
		connect_url(command, word);
	else
		connect_to(classify, word, word->text, strcspn(word->text, ":"), "22");
	if (written)
		classify_add(classify, WANTED_EXTERNAL_WRITE, word, "");
}

static bool is_below(const char *cwd, const char *path)
{
	return cwd ? sensitive_holds(cwd, path) : path[0] != '/' && strncmp(path, "..", 2) != 0;
}

/* A directory whose own configuration can name programs: harmless only below where we are. */
static void configured_by(struct command *command, const struct classify_word *word)
{
	struct classify *classify = command->classify;
	const char *cwd = classify->facts->cwd, *folded = NULL, *resolved = NULL;

	if (word->kind == CLASSIFY_LITERAL && !classify->moved && !classify->cwd_unknown)
		folded = sensitive_fold(classify->arena, cwd, classify->facts->home, word->text);
	if (folded)
		resolved = resolve(classify, word, cwd, folded);
	if (folded && is_below(cwd, folded) && (!resolved || is_below(cwd, resolved)))
		classify_read(classify, word);
	else
		classify_add(classify, WANTED_EXEC_CODE, word,
			     "the configuration of another place can run programs");
}

/* Settings of git that change only how output looks. */
static void git_setting(struct command *command, const struct classify_word *word)
{
	static const char *const harmless[] = {
		"color.",
		"core.quotepath=",
		"core.abbrev=",
		"advice.",
		"log.date=",
		"log.decorate=",
		"column.",
		"grep.linenumber=",
		"status.",
		"diff.renames=",
		"core.precomposeunicode=",
		"diff.renamelimit=",
		"diff.context=",
		"diff.noprefix=",
		"core.pager=cat",
	};

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		size_t length = strlen(harmless[i]);

		if (word->kind == CLASSIFY_LITERAL &&
		    strncasecmp(word->text, harmless[i], length) == 0 &&
		    (strcmp(harmless[i], "core.pager=cat") != 0 || !word->text[length]))
			return;
	}
	classify_add(command->classify, WANTED_EXEC_CODE, word, "a setting that can run programs");
}

/* "git config KEY", "get KEY" and "list" ask; any other word sets something, or edits. */
static void git_key(struct command *command, const struct classify_word *word)
{
	bool first = word == &command->words[command->operands[0]];

	if (command->flags & COMMAND_IS_QUIET)
		return;
	if (first && word->kind == CLASSIFY_LITERAL &&
	    (strcmp(word->text, "get") == 0 || strcmp(word->text, "list") == 0))
		command->flags |= COMMAND_IS_QUIET;
	else if (!first || word->kind != CLASSIFY_LITERAL || !strchr(word->text, '.'))
		classify_add(command->classify, WANTED_FS_PERSIST, word,
			     "settings of git can run programs");
}

/* "%G?", "%+GK" and "%(signature)" run the program that verifies, which settings can name. */
static void git_format(struct command *command, const struct classify_word *word)
{
	bool verifies = word->kind != CLASSIFY_LITERAL || strstr(word->text, "signature");

	for (const char *at = word->text; !verifies && (at = strchr(at, '%')); at++)
		verifies = at[1 + strspn(at + 1, "+- ")] == 'G';
	if (verifies)
		classify_add(command->classify, WANTED_EXEC_CODE, word,
			     "what verifies signatures is a setting");
}

/* "ps auxe" prints what /proc has as "environ". */
static void ps_options(struct command *command, const struct classify_word *word)
{
	bool letters = word->text[strspn(word->text, "abcdefghijklmnopqrstuvwxyz")] == '\0';

	if (word->kind != CLASSIFY_LITERAL || (letters && strchr(word->text, 'e')))
		classify_add(command->classify, WANTED_FS_SECRET, word,
			     "environments of processes");
}

static void http_method(struct command *command, const struct classify_word *word)
{
	if (strcmp(word->text, "GET") != 0 && strcmp(word->text, "HEAD") != 0 &&
	    strcmp(word->text, "OPTIONS") != 0)
		classify_add(command->classify, WANTED_EXTERNAL_WRITE, word,
			     "a method that writes");
}

/* "@file" of curl and its kin. */
static void text_or_file(struct command *command, const struct classify_word *word)
{
	const char *at = strchr(word->text, '@');
	struct classify_word path = *word;

	if (word->kind != CLASSIFY_LITERAL || !at)
		return;
	path.text = at + 1;
	read_path(command->classify, &path, false);
}

static void read_operand(struct command *command, const struct classify_word *word)
{
	struct classify *classify = command->classify;

	if (command->flags & COMMAND_REMOVES)
		write_path(classify, word, WANTED_FS_REMOVE);
	else if (command->flags & COMMAND_WRITES)
		classify_write(classify, word);
	else if (strstr(word->text, "://")) /* parsers of XML take URLs for files */
		connect_url(command, word);
	else if (strcmp(word->text, "-") != 0)
		read_path(classify, word, command->flags & COMMAND_RECURSES);
}

/* Of man: a page has no '/' in its name, and anything else is a file that is shown. */
static void page_or_file(struct command *command, const struct classify_word *word)
{
	if (word->kind != CLASSIFY_LITERAL || strchr(word->text, '/'))
		read_operand(command, word);
}

/* "HEAD:.env" and ".env" tell the same; what is no secret may as well be a branch. */
static void revision(struct command *command, const struct classify_word *word)
{
	const char *colon = strrchr(word->text, ':');
	struct classify_word path = *word;

	if (colon && colon[1])
		path.text = colon + 1;
	if (judge(command->classify, word, ASK_SECRET).secret ||
	    judge(command->classify, &path, ASK_SECRET).secret)
		classify_add(command->classify, WANTED_FS_SECRET, word, "");
}

static void clock_format(struct command *command, const struct classify_word *word)
{
	if (word->text[0] != '+')
		classify_add(command->classify, WANTED_SYSTEM_CHANGE, word, "sets the clock");
}

/* "set -o keyword" makes variables of any word that has a '=': only what changes no meaning. */
static void shell_option(struct command *command, const struct classify_word *word)
{
	static const char *const harmless[] = {
		"errexit", "errtrace", "functrace", "noclobber", "noexec",   "noglob",
		"nolog",   "notify",   "nounset",   "physical",	 "pipefail", "verbose",
		"xtrace",  "globstar", "nullglob",  "failglob", /* of shopt's */
	};

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (word->kind == CLASSIFY_LITERAL && strcmp(word->text, harmless[i]) == 0)
			return;
	classify_add(command->classify, WANTED_UNCLEAR, word,
		     "an option of the shell's that changes what words mean");
}

/* What xargs puts its input in place of: any other mark could be a part of a word, or a name. */
static void replaced_mark(struct command *command, const struct classify_word *word)
{
	bool is_default = strcmp(word->text, "-i") == 0 || strcmp(word->text, "--replace") == 0;

	if (!is_default && (word->kind != CLASSIFY_LITERAL || strcmp(word->text, "{}") != 0))
		classify_add(command->classify, WANTED_UNCLEAR, word,
			     "words of the command are replaced");
}

/* "declare -a 'x=($(y))'" reads the value as the shell does its text; an unknown one may be so. */
static void check_value(struct command *command, const struct classify_word *word)
{
	const char *value = strchr(word->text, '=');

	if (value && (value[1] == '(' ||
		      (word->kind != CLASSIFY_LITERAL && (!value[1] || strchr("$`<>", value[1])))))
		classify_add(command->classify, WANTED_UNCLEAR, word,
			     "a value that may be evaluated");
}

static void shell_variable(struct command *command, const struct classify_word *word)
{
	/* "declare -p PATH" prints it */
	if (command->flags & COMMAND_IS_QUIET && word->kind == CLASSIFY_LITERAL &&
	    !strpbrk(word->text, "=["))
		return;
	check_value(command, word);
	classify_shell_variable(command->classify, word);
}

static void variable(struct command *command, const struct classify_word *word)
{
	if (command->program->way == WAY_SHELL)
		check_value(command, word);
	classify_variable(command->classify, word);
}

/* "%n" of printf's sets the variable that its operand names. */
static void print_format(struct command *command, const struct classify_word *word)
{
	for (const char *at = word->text; (at = strchr(at, '%')); at++) {
		at += 1 + strspn(at + 1, "#0- +'*.123456789hjlLtz");
		if (*at == 'n')
			classify_add(command->classify, WANTED_UNCLEAR, word,
				     "a format that sets a variable");
		if (!*at)
			return;
	}
}

/* "kernel.hostname" asks, "kernel.hostname=x" sets. */
static void kernel_setting(struct command *command, const struct classify_word *word)
{
	if (word->kind != CLASSIFY_LITERAL || strchr(word->text, '='))
		classify_add(command->classify, WANTED_SYSTEM_CHANGE, word, "");
}

static void credential(struct command *command, const struct classify_word *word)
{
	classify_add(command->classify, WANTED_CREDENTIAL_USE, word, "");
}

static bool plain_effect(struct command *command, char letter, const struct classify_word *word)
{
	for (size_t i = 0; i < sizeof(flag_effects) / sizeof(flag_effects[0]); i++)
		if (flag_effects[i].letter == letter) {
			command->flags |= flag_effects[i].flag;
			return true;
		}
	for (size_t i = 0; i < sizeof(plain_effects) / sizeof(plain_effects[0]); i++) {
		if (plain_effects[i].letter != letter)
			continue;
		if (letter == 'q')
			command->flags |= COMMAND_HAS_CODE;
		if (islower((unsigned char)letter))
			classify_add(command->classify, plain_effects[i].verb, word,
				     plain_effects[i].why);
		else
			command_wants(command, plain_effects[i].verb, plain_effects[i].why);
		return true;
	}
	return false;
}

static void write_here(struct command *command)
{
	struct classify_word here = command_word(&command->words[0], ".");

	classify_add(command->classify, WANTED_FS_WRITE, &here, command->program->name);
}

/* Letters whose object decides what it is. */
static bool judged_effect(struct command *command, char letter, const struct classify_word *word)
{
	static const struct {
		char letter;
		void (*judge)(struct command *command, const struct classify_word *word);
	} judges[] = {
		{ 'r', read_operand }, { 'u', connect_url },	{ 'x', command_text },
		{ 'k', credential },   { 'g', configured_by },	{ 'f', git_setting },
		{ '@', text_or_file }, { 'm', http_method },	{ 'S', command_sed },
		{ 'A', command_awk },  { 'b', shell_variable }, { 'j', clock_format },
		{ 'o', revision },     { 'G', shell_option },	{ 'V', replaced_mark },
		{ 'J', command_jq },   { 'F', git_key },	{ 'M', ps_options },
		{ '%', git_format },   { '/', page_or_file },	{ 'v', variable },
		{ '#', print_format }, { '^', kernel_setting },
	};

	for (size_t i = 0; i < sizeof(judges) / sizeof(judges[0]); i++)
		if (judges[i].letter == letter) {
			judges[i].judge(command, word);
			return true;
		}
	return false;
}

void command_effect(struct command *command, char letter, const struct classify_word *word)
{
	if (plain_effect(command, letter, word) || judged_effect(command, letter, word))
		return;
	switch (letter) {
	case 't': /* names of the program's own, which it may remove or change all the same */
		if (command->flags & COMMAND_REMOVES)
			write_path(command->classify, word, WANTED_FS_REMOVE);
		else if (command->flags & COMMAND_WRITES)
			classify_write(command->classify, word);
		break;
	case '1':
		command->skipped = 1;
		break;
	case 'w':
		classify_write(command->classify, word);
		break;
	case 'd':
		write_path(command->classify, word, WANTED_FS_REMOVE);
		break;
	case 'n':
		copy_end(command, word, false);
		break;
	case 'z':
		copy_end(command, word, true);
		break;
	case 'O':
		write_here(command);
		break;
	default: /* a letter that program.h does not have */
		command->classify->failed = true;
	}
}

static bool is_assignment(const struct classify_word *word)
{
	const char *text = word->text;
	size_t length = 0;

	while (isalnum((unsigned char)text[length]) || text[length] == '_')
		length++;
	return length && text[length] == '=';
}

/* The letter that a role is, seen together with what the options said. */
static void role(struct command *command, char letter, size_t index)
{
	const struct classify_word *word = &command->words[command->operands[index]];

	if (letter == 'q' && index == 0 && command->flags & COMMAND_HAS_TEXT)
		letter = 'x';
	else if (letter == 'q' && index == 0 && command->flags & COMMAND_CHECKS)
		letter = 'r';
	/* without quotes it may become several words, and those behind the first are files */
	if (letter == 't' && strchr(command->program->operands, 'r') &&
	    (word->kind == CLASSIFY_UNKNOWN || word->kind == CLASSIFY_GLOB))
		read_operand(command, word);
	command_effect(command, letter, word);
}

/*
 * A pattern, or text without quotes, may become several words: those behind the first have the
 * roles that follow, each of them.
 */
static void role_of_several(struct command *command, const char *at, size_t index)
{
	const struct classify_word *word = &command->words[command->operands[index]];

	role(command, *at, index);
	for (const char *next = at + 1; *next; next++) {
		if (*next == '>' || *next == '$') {
			classify_add(command->classify, WANTED_UNCLEAR, word,
				     "may become several words, and the command among them");
			return;
		}
		if (*next != '*' && *next != '=' && !memchr(at, *next, (size_t)(next - at)))
			command_effect(command, *next, word);
	}
}

/* An interpreter that was given nothing to run reads it from its standard input. */
static void without_operands(struct command *command)
{
	if (command->program->operands[0] == 'q' && !(command->flags & COMMAND_IS_QUIET) &&
	    !(command->flags & COMMAND_HAS_CODE) && !command->skipped)
		command_wants(command, WANTED_EXEC_CODE, "reads its code from its input");
	if (command->flags & COMMAND_REMOVES) {
		struct classify_word here = command_word(&command->words[0], ".");

		classify_add(command->classify, WANTED_FS_REMOVE, &here, "");
	}
}

/* A search that is given no place is one of all that is below where we are. */
static void search_here(struct command *command)
{
	struct classify *classify = command->classify;
	struct classify_word here = command_word(&command->words[0], ".");
	size_t texts = command->program->operands[0] == 't' && !command->skipped;
	struct place place;

	if (!(command->flags & COMMAND_RECURSES) || command->operand_count > texts)
		return;
	here.kind = CLASSIFY_LITERAL;
	place = judge(classify, &here, ASK_SECRET | ASK_BELOW);
	if (place.secret || place.unknown || place.ruin || place.holds_secrets)
		read_path(classify, &here, true);
}

/* Operands that stand in a file are not known; who is given others, too, refuses them all. */
static void check_list(struct command *command)
{
	bool refuses = command->operand_count &&
		       command->words[command->operands[0]].kind != CLASSIFY_UNKNOWN;

	if (command->flags & COMMAND_IS_LISTED && !refuses)
		command_wants(command, WANTED_UNCLEAR, "which files it reads is in a file");
}

void command_operands(struct command *command)
{
	const char *at = command->program->operands;
	size_t count = command->operand_count, i = 0;

	if (!count)
		without_operands(command);
	search_here(command);
	check_list(command);
	if (command->skipped && *at && at[1] != '*')
		at++;
	while (i < count) {
		size_t word = command->operands[i];

		if (!*at) {
			classify_add(command->classify, WANTED_UNCLEAR, &command->words[word],
				     "more operands than the tables know");
			return;
		} else if (*at == '=') {
			bool assigns = is_assignment(&command->words[word]);

			if (assigns)
				classify_variable(command->classify, &command->words[word]);
			i += assigns;
			at += !assigns;
		} else if ((*at == '>' || *at == '$') && command->flags & COMMAND_IS_QUIET) {
			return;
		} else if (*at == '>') {
			command_inner(command, word, command->count, at[1] == '+');
			return;
		} else if (*at == '$') {
			command_joined(command, word);
			return;
		} else if (at[1] == '*') {
			if (count - i > strlen(at + 2))
				role(command, *at, i++);
			else
				at += 2;
		} else if (command->words[word].kind == CLASSIFY_GLOB ||
			   command->words[word].kind == CLASSIFY_UNKNOWN) {
			role_of_several(command, at++, i++);
		} else {
			role(command, *at++, i++);
		}
	}
}
