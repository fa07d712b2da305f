/*
 * Theory of operation: commands wait in a queue of segments. One that is looked at is named, found
 * in the tables, split into options and operands by its row (classify_option.c), and each of these
 * has its effects (classify_effect.c): requests, or a command inside of it, which goes to the end
 * of the queue with one more in depth. So nothing calls itself on what the words say.
 */
#include "policy/classify.h"

#include "base/arena.h"
#include "base/utf8.h"
#include "policy/classify_internal.h"
#include "policy/program.h"
#include "policy/sensitive.h"

#include <string.h>

/* "kubectl rollout status" is the longest; what is longer is not in the tables. */
#define NAME_LIMIT_BYTES 64
/* Of subcommands: "docker image ls", "aws s3 ls", "gcloud compute instances list". */
#define COMMANDS_LIMIT_DEPTH 4

void classify_add(struct classify *classify, enum wanted_verb verb,
		  const struct classify_word *word, const char *why)
{
	struct wanted *grown;

	if (classify->wanted_count == CLASSIFY_LIMIT_WANTED) {
		classify->failed = true;
		return;
	}
	grown = arena_push(classify->arena, classify->wanted, classify->wanted_count,
			   sizeof(*grown));
	if (!grown) {
		classify->failed = true;
		return;
	}
	classify->wanted = grown;
	grown[classify->wanted_count++] = (struct wanted){
		.verb = verb,
		.target = word->text,
		.why = why,
		.segment = classify->segment,
		.position = word->position,
		.exact = word->kind == CLASSIFY_LITERAL || word->kind == CLASSIFY_GLOB,
	};
}

uint32_t classify_segment_depth(const struct classify *classify, size_t index)
{
	return index < classify->segment_count ? classify->segments[index].depth : 0;
}

/* Nothing else is done, but for the shell that agents hand their commands to. */
static bool stands_alone(const struct classify *classify, uint32_t segment)
{
	if (segment == 0)
		return classify->segment_count == 1 && !classify->text_count;
	return segment == 1 && classify->segment_count == 2 && classify->text_count == 1 &&
	       classify->segments[0].count == 3;
}

enum wanted_judgement classify_judge_request(const struct classify *classify, size_t index)
{
	const struct wanted *wanted = &classify->wanted[index];

	if (wanted->verb == WANTED_IDENTITY_READ && stands_alone(classify, wanted->segment))
		return WANTED_ALLOWS;
	return wanted_judge(wanted);
}

enum wanted_judgement classify_judge(const struct classify *classify)
{
	enum wanted_judgement worst = WANTED_ALLOWS;

	if (classify->failed || classify->texts_read < classify->text_count ||
	    !classify->segment_count)
		worst = WANTED_ASKS;
	for (size_t i = 0; i < classify->wanted_count; i++) {
		enum wanted_judgement judgement = classify_judge_request(classify, i);

		worst = judgement > worst ? judgement : worst;
	}
	return worst;
}

static void push(struct classify *classify, const struct classify_word *words, size_t count,
		 uint32_t depth)
{
	struct classify_segment *grown;

	if (classify->segment_count == CLASSIFY_LIMIT_SEGMENTS || depth > CLASSIFY_LIMIT_DEPTH) {
		classify->failed = true;
		return;
	}
	grown = arena_push(classify->arena, classify->segments, classify->segment_count,
			   sizeof(*grown));
	if (!grown) {
		classify->failed = true;
		return;
	}
	classify->segments = grown;
	grown[classify->segment_count++] = (struct classify_segment){ words, count, depth };
}

/* What stands for the words that come at run time: of xargs by its input, of find by its tests. */
static const char *names_for(const struct command *command, size_t from, bool more)
{
	const struct classify *classify = command->classify;
	bool nul = false;

	/* split anywhere else a name with a blank in it is several words, each maybe an option */
	if (strcmp(command->program->name, "xargs") == 0)
		return classify->names_for != classify->segment || !classify->names ||
				       !classify_takes_names(command->words, command->count, &nul) ?
			       NULL :
		       nul ? classify->names :
			     "*";
	return from && !more && strcmp(command->program->name, "find") == 0 ?
		       classify_names(classify, command->words, from - 1, &nul) :
		       NULL;
}

void command_inner(struct command *command, size_t from, size_t to, bool more)
{
	const char *names = names_for(command, from, more);
	struct classify *classify = command->classify;
	size_t count = to > from ? to - from : 0;
	struct classify_word *words;

	command_wants(command, WANTED_EXEC_WRAPPED, "runs the command in its operands");
	words = arena_array(classify->arena, count + 1, sizeof(*words));
	if (!words) {
		classify->failed = true;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		words[i] = command->words[from + i];
		if (names && strcmp(words[i].text, "{}") == 0)
			words[i] =
				(struct classify_word){ names, CLASSIFY_GLOB, words[i].position };
		else if (strstr(words[i].text, "{}"))
			words[i].kind = CLASSIFY_ONE;
	}
	if (more)
		words[count] = (struct classify_word){
			names ? names : "(words read later)",
			names ? CLASSIFY_GLOB : CLASSIFY_UNKNOWN,
			command->words[0].position,
		};
	if (count)
		push(classify, words, count + more, classify->depth + 1);
}

void command_text(struct command *command, const struct classify_word *word)
{
	struct classify *classify = command->classify;
	struct classify_text *grown;

	command_wants(command, WANTED_EXEC_WRAPPED, "hands text to a shell");
	if (word->kind != CLASSIFY_LITERAL) {
		classify_add(classify, WANTED_UNCLEAR, word, "text for a shell is not known");
		return;
	}
	if (classify->depth == CLASSIFY_LIMIT_DEPTH ||
	    classify->text_count == CLASSIFY_LIMIT_SEGMENTS) {
		classify->failed = true;
		return;
	}
	grown = arena_push(classify->arena, classify->texts, classify->text_count, sizeof(*grown));
	if (!grown) {
		classify->failed = true;
		return;
	}
	classify->texts = grown;
	grown[classify->text_count++] = (struct classify_text){
		.text = word->text,
		.segment = classify->segment,
		.position = word->position,
		.depth = classify->depth + 1,
	};
}

void command_joined(struct command *command, size_t from)
{
	struct classify *classify = command->classify;
	struct classify_word joined = command->words[from];
	size_t bytes = 0, at = 0;
	char *text;

	for (size_t i = from; i < command->count; i++) {
		bytes += strlen(command->words[i].text) + 1;
		if (command->words[i].kind > joined.kind)
			joined.kind = command->words[i].kind;
	}
	text = arena_allocate(classify->arena, bytes);
	if (!text) {
		classify->failed = true;
		return;
	}
	for (size_t i = from; i < command->count; i++) {
		size_t length = strlen(command->words[i].text);

		memcpy(text + at, command->words[i].text, length);
		at += length;
		text[at++] = i + 1 < command->count ? ' ' : '\0';
	}
	joined.text = text;
	command_text(command, &joined);
}

/* Characters that a person would not see, or not as they are. A newline or a tab is data. */
static bool is_visible(const char *text)
{
	size_t left = strlen(text);

	while (left) {
		uint32_t point;
		size_t length = 1;

		if ((unsigned char)*text < 0x80) {
			if ((*text < ' ' && *text != '\n' && *text != '\t') || *text == 0x7f)
				return false;
		} else {
			length = utf8_decode(text, left, &point);
			if (!length || !utf8_is_visible(point))
				return false;
		}
		text += length;
		left -= length;
	}
	return true;
}

static bool is_ascii(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
			return false;
	return true;
}

static void check_characters(struct classify *classify, const struct classify_word *words,
			     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *text = words[i].text;

		if (!is_visible(text))
			classify_add(classify, WANTED_UNCLEAR, &words[i],
				     "has characters that are not shown as they are");
		else if ((i == 0 && !is_ascii(text, strlen(text))) ||
			 (text[0] == '-' && words[i].kind == CLASSIFY_LITERAL &&
			  !is_ascii(text, strcspn(text, "= "))))
			classify_add(classify, WANTED_UNCLEAR, &words[i],
				     "a name with characters that look like others");
	}
}

/* Places whose programs are the system's. */
static bool is_system_place(const char *path, size_t length)
{
	static const char *const places[] = {
		"/bin",
		"/sbin",
		"/usr/bin",
		"/usr/sbin",
		"/usr/local/bin",
		"/lib",
		"/lib64",
		"/usr/local/sbin",
		"/usr/lib",
		"/usr/lib64",
		"/usr/games",
		"/usr/lib/x86_64-linux-gnu",
		"/lib/x86_64-linux-gnu",
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strlen(places[i]) == length && memcmp(places[i], path, length) == 0)
			return true;
	return false;
}

/*
 * The name that the tables know the program by. A path to anything but the system's programs is a
 * program that nobody knows, whatever it is called.
 */
static const char *name_of(struct classify *classify, const struct classify_word *word)
{
	const char *slash = strrchr(word->text, '/');
	char *folded;

	if (!slash)
		return word->text;
	folded = sensitive_fold(classify->arena, "/", NULL, word->text);
	if (!folded || word->text[0] != '/' ||
	    !is_system_place(folded, (size_t)(strrchr(folded, '/') - folded)))
		classify_add(classify, WANTED_EXEC_UNKNOWN, word,
			     "a program from a place of its own");
	else if (strcmp(folded, word->text) != 0)
		classify_add(classify, WANTED_UNCLEAR, word, "a path spelled in a roundabout way");
	if (folded && strrchr(folded, '/'))
		slash = strrchr(folded, '/');
	return slash + 1;
}

/* "python3.11", "gcc-12", "pip3": the row of the name without its version. */
static const struct program *find_versioned(const char *name)
{
	size_t length = strlen(name);
	const struct program *program = program_find_bytes(name, length);

	if (program)
		return program;
	while (length && strchr("0123456789.-", name[length - 1]))
		length--;
	if (length && name[length])
		program = program_find_bytes(name, length);
	if (!program && (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-musl-", 8) == 0))
		program = program_find("ld.so");
	return program;
}

static const struct program *find(const struct classify *classify, const char *name)
{
	const struct program *program = find_versioned(name);

	if (program && program->way == WAY_ALIAS)
		program = program_find(program->base);
	if (program && program->way == WAY_SHELL && !classify->in_shell)
		return NULL;
	return program;
}

/* One more word of the program's name: "git" + "log". NULL where there is no such row. */
static const struct program *find_command(const struct program *program, const char *word)
{
	char name[NAME_LIMIT_BYTES];
	size_t a = strlen(program->name), b = strlen(word);

	if (a + 1 + b >= sizeof(name))
		return NULL;
	memcpy(name, program->name, a);
	name[a] = ' ';
	memcpy(name + a + 1, word, b);
	program = program_find_bytes(name, a + 1 + b);
	if (program && program->way == WAY_ALIAS)
		program = program_find(program->base);
	return program;
}

/* "git log --help": of a subcommand that the tables know. */
static bool asks_for_help(const struct command *command)
{
	const struct classify_word *words = command->words;

	return command->count == 3 && command->program->way == WAY_COMMANDS &&
	       words[1].kind == CLASSIFY_LITERAL && strcmp(words[2].text, "--help") == 0 &&
	       find_command(command->program, words[1].text);
}

/* A lone "--version" or "--help" of a known program. */
static bool is_plain_question(const struct command *command)
{
	const char *text = command->count == 2 || asks_for_help(command) ?
				   command->words[command->count - 1].text :
				   "";

	return command->words[command->count - 1].kind == CLASSIFY_LITERAL &&
	       command->program->way != WAY_SHELL && !strstr(command->program->options, "!code") &&
	       (strcmp(text, "--version") == 0 || strcmp(text, "--help") == 0 ||
		(strcmp(text, "-v") == 0 && strstr(command->program->options, "!version")));
}

static void apply_base(struct command *command)
{
	if (command->flags & COMMAND_IS_QUIET)
		return;
	if (!command->operand_count && strstr(command->program->options, "!operands"))
		return;
	for (const char *at = command->program->base; *at; at++)
		command_effect(command, *at, &command->words[0]);
}

/* Follows subcommands as far as the tables have them; false where one is not known. */
static bool find_commands(struct command *command, size_t *from)
{
	for (int i = 0; i < COMMANDS_LIMIT_DEPTH && command->program->way == WAY_COMMANDS; i++) {
		const struct program *program;
		const struct classify_word *word;

		command->operand_count = 0;
		command_options(command, *from);
		if (!command->operand_count)
			return true;
		word = &command->words[command->operands[0]];
		program = word->kind == CLASSIFY_LITERAL ?
				  find_command(command->program, word->text) :
				  NULL;
		if (!program) {
			classify_add(command->classify, WANTED_EXEC_UNKNOWN, word,
				     "a subcommand that the tables do not know");
			return false;
		}
		*from = command->operands[0] + 1;
		command->program = program;
		command->flags = 0;
	}
	return true;
}

/* Where a shell may stand behind a "cd": the places before it are kept, since it may fail. */
static void change_directory(struct command *command)
{
	struct classify *classify = command->classify;
	const struct classify_facts *facts = classify->facts;
	const struct classify_word *word =
		command->operand_count ? &command->words[command->operands[0]] : NULL;
	const char *text = word ? word->text : facts->home;
	const char *cwd = NULL;

	if (text && strcmp(text, "-") != 0 && (!word || word->kind == CLASSIFY_LITERAL) &&
	    classify->cwd_count)
		cwd = sensitive_fold(classify->arena, classify->cwds[classify->cwd_count - 1],
				     facts->home, text);
	if (!cwd || classify->cwd_count == CLASSIFY_LIMIT_CWDS) {
		classify->cwd_unknown = true;
		classify->moved = true;
		return;
	}
	classify->moved |= !sensitive_holds(classify->cwds[0], cwd);
	for (size_t i = 0; i < classify->cwd_count; i++)
		if (strcmp(classify->cwds[i], cwd) == 0)
			return;
	classify->cwds[classify->cwd_count++] = cwd;
}

static bool is_directory_change(const struct command *command)
{
	return strcmp(command->program->name, "cd") == 0 ||
	       strcmp(command->program->name, "pushd") == 0;
}

static void look(struct command *command)
{
	size_t from = 1;

	if (is_plain_question(command) || !find_commands(command, &from))
		return;
	if (command->program->way != WAY_COMMANDS) {
		command->operand_count = 0;
		command_options(command, from);
	}
	apply_base(command);
	command_operands(command);
	if (is_directory_change(command))
		change_directory(command);
}

static void look_at_segment(struct classify *classify, const struct classify_segment *segment)
{
	const struct classify_word *word = &segment->words[0];
	struct command command = {
		.classify = classify,
		.words = segment->words,
		.count = segment->count,
	};

	classify->depth = segment->depth;
	check_characters(classify, segment->words, segment->count);
	if (word->kind != CLASSIFY_LITERAL) {
		classify_add(classify, WANTED_UNCLEAR, word, "which program runs is not known");
		return;
	}
	command.program = find(classify, name_of(classify, word));
	if (!command.program) {
		classify_add(classify, WANTED_EXEC_UNKNOWN, word, "");
		return;
	}
	classify_add(classify, WANTED_EXEC, word, "");
	if (classify->moved && strstr(command.program->options, "!here"))
		classify_add(classify, WANTED_EXEC_CODE, word,
			     "the configuration of another place can run programs");
	command.operands = arena_array(classify->arena, segment->count, sizeof(*command.operands));
	if (!command.operands) {
		classify->failed = true;
		return;
	}
	look(&command);
}

static void drain(struct classify *classify)
{
	while (classify->segments_done < classify->segment_count && !classify->failed) {
		/* the array may move while it is looked at */
		struct classify_segment segment = classify->segments[classify->segments_done];

		classify->segment = (uint32_t)classify->segments_done++;
		look_at_segment(classify, &segment);
	}
}

void classify_words(struct classify *classify, const struct classify_word *words, size_t count)
{
	uint32_t depth = classify->depth;

	if (!count)
		return;
	if (!classify->cwd_count && classify->facts->cwd)
		classify->cwds[classify->cwd_count++] = classify->facts->cwd;
	push(classify, words, count, depth);
	drain(classify);
	classify->depth = depth;
}

void classify_argv(struct classify *classify, const char *const *argv, size_t argc)
{
	struct classify_word *words = arena_array(classify->arena, argc, sizeof(*words));

	if (!words) {
		classify->failed = true;
		return;
	}
	for (size_t i = 0; i < argc; i++)
		words[i] = (struct classify_word){ argv[i], CLASSIFY_LITERAL, (uint32_t)i };
	classify_words(classify, words, argc);
}

size_t classify_segment(const struct classify *classify, size_t index,
			const struct classify_word **ret_words)
{
	if (index >= classify->segment_count)
		return 0;
	*ret_words = classify->segments[index].words;
	return classify->segments[index].count;
}
