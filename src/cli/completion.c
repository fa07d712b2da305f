/*
 * Completion scripts for shells, printed from the tables of verbs and options. What stands behind
 * "--" is completed as a command of its own.
 */
#include "cli/verbs.h"

#include "base/buffer.h"
#include "base/error.h"

#include <string.h>

/* How the argument of an option is completed, by the word that the tables use for it. */
enum { NOTHING, DIRECTORIES, FILES, VARIABLES, TASKS };

static int kind_of(const struct option *option)
{
	static const struct {
		const char *argument;
		int kind;
	} kinds[] = { { "DIR", DIRECTORIES },
		      { "PATH", FILES },
		      { "FILE", FILES },
		      { "NAME", FILES },
		      { "NAME[=VALUE]", VARIABLES },
		      { "TASK", TASKS } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (option->argument && strcmp(option->argument, kinds[i].argument) == 0)
			return kinds[i].kind;
	return NOTHING;
}

/* Text for single quotes of a shell; the characters in `special` get a backslash as well. */
static void quote(const char *text, const char *special, struct buffer *buffer)
{
	for (; *text; text++) {
		if (*text == '\'')
			buffer_text(buffer, "'\\''");
		else
			buffer_format(buffer, "%s%c", strchr(special, *text) ? "\\" : "", *text);
	}
}

/* A name that stands in two verbs' tables has one meaning: the first row is enough. */
static bool is_first(size_t verb, size_t option)
{
	const char *name = verb_at(verb)->options[option].name;

	for (size_t i = 0; i <= verb; i++)
		for (size_t j = 0; j < (i < verb ? verb_at(i)->option_count : option); j++)
			if (strcmp(verb_at(i)->options[j].name, name) == 0)
				return false;
	return true;
}

static void verb_names(struct buffer *buffer)
{
	for (size_t i = 0; i < verb_count; i++)
		buffer_format(buffer, "%s%s", i ? " " : "", verbs[i]->name);
}

static void sub_words(const struct verb *verb, struct buffer *buffer)
{
	for (size_t i = 0; i < verb->sub_count; i++)
		buffer_format(buffer, "%s%s", i ? " " : "", verb_word(verb->subs[i]));
}

/* The words that may stand behind the options; none where that is a command. */
static void operands(const struct verb *verb, struct buffer *buffer)
{
	if (verb == &verb_completion)
		buffer_text(buffer, "bash zsh fish");
	else if (verb == &verb_help)
		verb_names(buffer);
	else if (verb == &verb_task)
		buffer_text(buffer, "start exec end list");
}

static bool takes_task(const struct verb *verb)
{
	return strncmp(verb->synopsis, "TASK", 4) == 0;
}

/* Live tasks as `bawn ps` lists them, with the state directory of the line; starts nothing. */
static void task_ids(const char *program, const char *state, struct buffer *buffer)
{
	buffer_format(buffer,
		      "%s ps --json %s 2>/dev/null | "
		      "grep -o '\"task\":\"t-[a-z0-9]*\"' | cut -d '\"' -f 4",
		      program, state);
}

static void bash_tasks(struct buffer *buffer)
{
	buffer_text(buffer, "\t[[ $cur == -* ]] || case ${COMP_WORDS[1]},${COMP_WORDS[2]} in\n"
			    "\ttask,exec | task,end");
	for (size_t i = 0; i < verb_count; i++)
		if (takes_task(verbs[i]))
			buffer_format(buffer, " | %s,*", verbs[i]->name);
	buffer_text(buffer, ") words=$(_bawn_tasks) ;;\n\tesac\n");
}

static void bash_arguments(int kind, const char *action, struct buffer *buffer)
{
	const char *separator = "\t";
	const struct verb *verb;

	for (size_t i = 0; (verb = verb_at(i)) != NULL; i++)
		for (size_t j = 0; j < verb->option_count; j++) {
			const struct option *option = &verb->options[j];

			if (!option->argument || kind_of(option) != kind || !is_first(i, j))
				continue;
			buffer_format(buffer, "%s%s", separator, option->name);
			separator = " | ";
		}
	if (separator[0] != '\t')
		buffer_format(buffer, ")\n\t\t%s\n\t\treturn\n\t\t;;\n", action);
}

static void bash_words(const struct verb *verb, struct buffer *buffer)
{
	buffer_text(buffer, " words='");
	operands(verb, buffer);
	for (size_t j = 0; j < verb->option_count; j++)
		buffer_format(buffer, " %s", verb->options[j].name);
	buffer_text(buffer, "' ;;\n");
}

static void bash_subs(const struct verb *verb, struct buffer *buffer)
{
	buffer_format(buffer, "\t%s,2) words='", verb->name);
	sub_words(verb, buffer);
	buffer_format(buffer, "' ;;\n\t%s,*)\n\t\tcase ${COMP_WORDS[2]} in\n", verb->name);
	for (size_t i = 0; i < verb->sub_count; i++) {
		buffer_format(buffer, "\t\t%s)", verb_word(verb->subs[i]));
		bash_words(verb->subs[i], buffer);
	}
	buffer_text(buffer, "\t\tesac\n\t\t;;\n");
}

static void print_bash(struct buffer *buffer)
{
	buffer_text(buffer, "# bash completion of bawn: source <(bawn completion bash)\n"
			    "_bawn_tasks() {\n"
			    "\tlocal i state=()\n"
			    "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
			    "\t\t[[ ${COMP_WORDS[i - 1]} != --state-dir ]] || {\n"
			    "\t\t\t[[ ${COMP_WORDS[i]} != = ]] || ((++i))\n"
			    "\t\t\tstate=(--state-dir \"${COMP_WORDS[i]}\")\n"
			    "\t\t}\n"
			    "\tdone\n\t");
	task_ids("\"${COMP_WORDS[0]}\"", "\"${state[@]}\"", buffer);
	buffer_text(
		buffer,
		"\n}\n"
		"_bawn() {\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words i\n"
		"\tCOMPREPLY=()\n"
		"\t# an option, \"=\" and its value are three words\n"
		"\t[[ $prev != = ]] || prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
		"\t[[ $cur != = ]] || cur=\n"
		"\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
		"\t\t[[ ${COMP_WORDS[i]} == -- ]] || continue\n"
		"\t\tif declare -F _command_offset >/dev/null; then\n"
		"\t\t\t_command_offset $((i + 1))\n"
		"\t\telse\n"
		"\t\t\tlocal kinds=(-f)\n"
		"\t\t\t((i + 1 < COMP_CWORD)) || kinds+=(-c)\n"
		"\t\t\tmapfile -t COMPREPLY < <(compgen \"${kinds[@]}\" -- \"$cur\")\n"
		"\t\tfi\n"
		"\t\treturn\n"
		"\tdone\n"
		"\tcase $prev in\n");
	bash_arguments(DIRECTORIES,
		       "compopt -o filenames\n\t\tmapfile -t COMPREPLY < <(compgen -d -- \"$cur\")",
		       buffer);
	bash_arguments(FILES,
		       "compopt -o filenames\n\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")",
		       buffer);
	bash_arguments(TASKS, "mapfile -t COMPREPLY < <(compgen -W \"$(_bawn_tasks)\" -- \"$cur\")",
		       buffer);
	bash_arguments(VARIABLES, "mapfile -t COMPREPLY < <(compgen -e -- \"$cur\")", buffer);
	bash_arguments(NOTHING, "# a value that only the user knows", buffer);
	buffer_text(buffer, "\tesac\n\tcase ${COMP_WORDS[1]},$COMP_CWORD in\n\t*,1) words='");
	verb_names(buffer);
	buffer_text(buffer, "' ;;\n");
	for (size_t i = 0; i < verb_count; i++) {
		if (verbs[i]->sub_count) {
			bash_subs(verbs[i], buffer);
			continue;
		}
		buffer_format(buffer, "\t%s,*)", verbs[i]->name);
		bash_words(verbs[i], buffer);
	}
	buffer_text(buffer, "\tesac\n");
	bash_tasks(buffer);
	buffer_text(buffer, "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
			    "}\n"
			    "complete -F _bawn bawn\n");
}

static void zsh_option(const struct option *option, struct buffer *buffer)
{
	static const char *const actions[] = { [NOTHING] = " ",
					       [DIRECTORIES] = "_path_files -/",
					       [FILES] = "_files",
					       [VARIABLES] = "_parameters -g \"*export*\"",
					       [TASKS] = "_bawn_tasks" };

	/* "=": the value may stand behind one too */
	buffer_format(buffer, " \\\n\t\t\t'%s%s%s[", option->many ? "*" : "", option->name,
		      option->argument && option->name[1] == '-' ? "=" : "");
	quote(option->help, "[]\\", buffer);
	buffer_text(buffer, "]");
	if (option->argument) {
		buffer_text(buffer, ":");
		quote(option->argument, ":[]\\", buffer);
		buffer_format(buffer, ":%s", actions[kind_of(option)]);
	}
	buffer_text(buffer, "'");
}

static void zsh_verb(const struct verb *verb, struct buffer *buffer)
{
	buffer_format(buffer, "\t\t%s) _arguments -S", verb_word(verb));
	for (size_t j = 0; j < verb->option_count; j++)
		zsh_option(&verb->options[j], buffer);
	if (verb == &verb_task) {
		buffer_text(buffer, " '1: :(");
		operands(verb, buffer);
		buffer_text(buffer, ")' '2:task:_bawn_task_of' '*:: :_bawn_command'");
	} else if (takes_task(verb)) {
		buffer_text(buffer, " '*:task:_bawn_tasks'");
	} else if (strstr(verb->synopsis, "COMMAND")) {
		buffer_text(buffer, " '*:: :_bawn_command'");
	} else if (strstr(verb->synopsis, "FILE")) {
		buffer_text(buffer, " '*:file:_files'");
	} else if (verb->synopsis[0]) {
		buffer_text(buffer, " '1: :(");
		operands(verb, buffer);
		buffer_text(buffer, ")'");
	}
	buffer_text(buffer, " ;;\n");
}

static void zsh_subs(const struct verb *verb, struct buffer *buffer)
{
	buffer_format(buffer, "\t\t%s)\n\t\t\t_arguments -C '1: :(", verb->name);
	sub_words(verb, buffer);
	buffer_text(buffer, ")' '*:: :->sub'\n"
			    "\t\t\t[[ $state == sub ]] || return\n"
			    "\t\t\tcase $words[1] in\n");
	for (size_t i = 0; i < verb->sub_count; i++)
		zsh_verb(verb->subs[i], buffer);
	buffer_text(buffer, "\t\t\tesac\n\t\t\t;;\n");
}

static void print_zsh(struct buffer *buffer)
{
	buffer_text(buffer,
		    "#compdef bawn\n"
		    "# zsh completion of bawn: bawn completion zsh >DIRECTORY_OF_FPATH/_bawn,\n"
		    "# or, behind compinit: source <(bawn completion zsh)\n"
		    "_bawn_tasks() {\n"
		    "\tlocal i\n"
		    "\tlocal -a state ids\n"
		    "\tfor ((i = 1; i < CURRENT; i++)); do\n"
		    "\t\tcase $words[i] in\n"
		    "\t\t--state-dir) state=(--state-dir \"${(Q)words[i + 1]}\") ;;\n"
		    "\t\t--state-dir=*) state=(\"${(Q)words[i]}\") ;;\n"
		    "\t\tesac\n"
		    "\tdone\n"
		    "\tids=(${(f)\"$(");
	task_ids("bawn", "$state", buffer);
	buffer_text(buffer, ")\"})\n"
			    "\tcompadd -a ids\n"
			    "}\n"
			    "_bawn_command() {\n"
			    "\t((CURRENT == 1)) && [[ $PREFIX == -* ]] || _normal\n"
			    "}\n"
			    "_bawn_task_of() {\n"
			    "\t[[ -z ${words[(r)(exec|end)]} ]] || _bawn_tasks\n"
			    "}\n"
			    "_bawn() {\n"
			    "\tlocal curcontext=$curcontext state line at=${words[(i)--]}\n"
			    "\tlocal -a verbs\n"
			    "\tif ((at < CURRENT)); then\n"
			    "\t\tshift $at words\n"
			    "\t\t((CURRENT -= at))\n"
			    "\t\t_normal\n"
			    "\t\treturn\n"
			    "\tfi\n"
			    "\tverbs=(");
	for (size_t i = 0; i < verb_count; i++) {
		buffer_format(buffer, "\n\t\t'%s:", verbs[i]->name);
		quote(verbs[i]->summary, "\\", buffer);
		buffer_text(buffer, "'");
	}
	buffer_text(buffer, "\n\t)\n"
			    "\t_arguments -C '1: :->verb' '*:: :->rest'\n"
			    "\tcase $state in\n"
			    "\tverb) _describe verb verbs ;;\n"
			    "\trest)\n"
			    "\t\tcase $words[1] in\n");
	for (size_t i = 0; i < verb_count; i++) {
		if (verbs[i]->sub_count)
			zsh_subs(verbs[i], buffer);
		else
			zsh_verb(verbs[i], buffer);
	}
	/* loaded for its first use, or sourced */
	buffer_text(buffer, "\t\tesac\n\t\t;;\n\tesac\n}\n"
			    "if [[ ${funcstack[1]} == _bawn ]]; then\n"
			    "\t_bawn \"$@\"\n"
			    "else\n"
			    "\tcompdef _bawn bawn\n"
			    "fi\n");
}

/* When a verb's words are completed: at the place of its name, and not behind "--". */
static void fish_condition(const struct verb *verb, struct buffer *buffer)
{
	buffer_text(buffer, " -n '__bawn_at ");
	for (size_t i = 0; i < verb_count; i++)
		for (size_t j = 0; j < verbs[i]->sub_count; j++)
			if (verbs[i]->subs[j] == verb)
				buffer_format(buffer, "%s ", verbs[i]->name);
	buffer_format(buffer, "%s'", verb_word(verb));
}

static void fish_option(const struct verb *verb, const struct option *option, struct buffer *buffer)
{
	static const char *const actions[] = { [NOTHING] = " -x",
					       [DIRECTORIES] =
						       " -x -a '(__fish_complete_directories)'",
					       [FILES] = " -r -F",
					       [VARIABLES] = " -x -a '(set -nx)'",
					       [TASKS] = " -x -a '(__bawn_tasks)'" };
	bool is_long = option->name[1] == '-';

	buffer_text(buffer, "complete -c bawn");
	fish_condition(verb, buffer);
	buffer_format(buffer, " -%c %s%s -d '", is_long ? 'l' : 's', option->name + 1 + is_long,
		      option->argument ? actions[kind_of(option)] : "");
	quote(option->help, "\\", buffer);
	buffer_text(buffer, "'\n");
}

/* A word that may follow: a verb where `verb` is NULL. */
static void fish_word(const struct verb *verb, const char *word, const char *help,
		      struct buffer *buffer)
{
	buffer_format(buffer, "complete -c bawn -n '__bawn_follows%s%s' -a %s -d '",
		      verb ? " " : "", verb ? verb->name : "", word);
	quote(help, "\\", buffer);
	buffer_text(buffer, "'\n");
}

static void fish_functions(struct buffer *buffer)
{
	buffer_text(buffer, "function __bawn_words\n"
			    "\tset -l words (commandline -opc)\n"
			    "\tcontains -- -- $words; or printf '%s\\n' $words\n"
			    "end\n"
			    "function __bawn_follows\n"
			    "\tset -l words (__bawn_words)\n"
			    "\ttest (count $words) -eq (math 1 + (count $argv)); or return\n"
			    "\ttest (count $argv) -eq 0; or test \"$words[2]\" = $argv[1]\n"
			    "end\n"
			    "function __bawn_at\n"
			    "\tset -l words (__bawn_words)\n"
			    "\ttest \"$words[2]\" = $argv[1]; or return\n"
			    "\ttest (count $argv) -eq 1; or test \"$words[3]\" = $argv[2]\n"
			    "end\n"
			    "function __bawn_command\n"
			    "\tset -l words (commandline -opc)\n"
			    "\tset -l at (contains -i -- -- $words); or return\n"
			    "\tset -e words[1..$at]\n"
			    "\tcomplete -C (string join -- ' ' (string escape -- $words) "
			    "(commandline -ct))\n"
			    "end\n"
			    "function __bawn_tasks\n"
			    "\tset -l words (commandline -opc)\n"
			    "\tset -l state\n"
			    "\tfor i in (seq (count $words))\n"
			    "\t\tswitch $words[$i]\n"
			    "\t\t\tcase --state-dir\n"
			    "\t\t\t\tset state --state-dir $words[(math $i + 1)]\n"
			    "\t\t\tcase '--state-dir=*'\n"
			    "\t\t\t\tset state $words[$i]\n"
			    "\t\tend\n"
			    "\tend\n\t");
	task_ids("bawn", "$state", buffer);
	buffer_text(buffer, "\nend\n");
}

static void fish_verb(const struct verb *verb, struct buffer *buffer)
{
	fish_word(NULL, verb->name, verb->summary, buffer);
	for (size_t i = 0; i < verb->sub_count; i++)
		fish_word(verb, verb_word(verb->subs[i]), verb->subs[i]->summary, buffer);
	if (verb == &verb_completion || verb == &verb_help) {
		buffer_format(buffer, "complete -c bawn -n '__bawn_follows %s' -a '", verb->name);
		operands(verb, buffer);
		buffer_text(buffer, "'\n");
	}
	if (takes_task(verb))
		buffer_format(buffer, "complete -c bawn -n '__bawn_at %s' -a '(__bawn_tasks)'\n",
			      verb->name);
}

static void print_fish(struct buffer *buffer)
{
	const struct verb *verb;

	buffer_text(buffer, "# fish completion of bawn: bawn completion fish | source\n"
			    "complete -c bawn -f\n");
	fish_functions(buffer);
	for (size_t i = 0; i < verb_count; i++)
		fish_verb(verbs[i], buffer);
	for (size_t i = 0; (verb = verb_at(i)) != NULL; i++)
		for (size_t j = 0; j < verb->option_count; j++)
			fish_option(verb, &verb->options[j], buffer);
	buffer_text(buffer, "complete -c bawn -n '__bawn_at task; and not "
			    "__fish_seen_subcommand_from start exec end list' -a '");
	operands(&verb_task, buffer);
	buffer_text(buffer, "'\n"
			    "complete -c bawn -n '__bawn_at task; and "
			    "__fish_seen_subcommand_from exec end' -a '(__bawn_tasks)'\n"
			    "complete -c bawn -n 'contains -- -- (commandline -opc)' "
			    "-a '(__bawn_command)'\n");
}

static const struct {
	const char *name;
	void (*print)(struct buffer *buffer);
} shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

static int completion_verb(int argc, char **argv)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct error error = ERROR_NONE;
	int first = options_parse(&verb_completion, argc, argv, NULL, NULL, &error);

	if (first < 0 || first + 1 != argc) {
		complain(first < 0 ? error.message :
				     "bawn completion takes one shell: bash, zsh or fish");
		return 2;
	}
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(argv[first], shells[i].name) != 0)
			continue;
		shells[i].print(&text);
		print_buffer(&text);
		return text.failed ? 125 : 0;
	}
	complain("no completion for that shell; bash, zsh or fish");
	return 2;
}

const struct verb verb_completion = {
	.name = "completion",
	.synopsis = "bash|zsh|fish",
	.summary = "Print a completion script for a shell.",
	.exit_status = "0 printed; 2 no such shell; 125 bawn itself failed",
	.run = completion_verb,
};
