#include "policy/verdict.h"

#include "base/arena.h"
#include "base/path.h"
#include "policy/document_internal.h"
#include "policy/glob.h"
#include "policy/policy.h"
#include "policy/program.h"
#include "policy/reach.h"
#include "policy/sensitive.h"
#include "policy/toolset.h"

#include <string.h>

#define BIT(verb) (UINT32_C(1) << WANTED_##verb)

/* What the words of approvals.ask are. */
static const struct {
	const char *word;
	uint32_t verbs;
} classes[] = {
	{ "destructive", BIT(FS_REMOVE) | BIT(FS_RUIN) | BIT(SYSTEM_CHANGE) },
	{ "package-installation", BIT(PACKAGE_INSTALL) },
	{ "external-writes", BIT(EXTERNAL_WRITE) },
	{ "sensitive-reads", BIT(FS_SECRET) | BIT(CREDENTIAL_USE) },
	{ "unknown-domains", BIT(NET_CONNECT) },
};

#define OF_FILES                                                                         \
	(BIT(FS_READ) | BIT(FS_SECRET) | BIT(FS_WRITE) | BIT(FS_REMOVE) | BIT(FS_RUIN) | \
	 BIT(FS_PERSIST))
#define OF_WRITES (BIT(FS_WRITE) | BIT(FS_REMOVE) | BIT(FS_RUIN) | BIT(FS_PERSIST))
#define OF_PROGRAMS (BIT(EXEC) | BIT(EXEC_UNKNOWN))

/* Words of one plain command: more are no exception's. */
#define WORDS_LIMIT 64

/* The exception that covers the action, and of which of its segments it is the command. */
struct excepted {
	const struct ruling *row;
	size_t segment;
	bool exact; /* no word of it is any word */
};

struct judging {
	const struct classify *classify;
	const struct verdict_facts *facts;
	const struct policy *policy;
	struct excepted valid, expired;
	bool is_lifting; /* the request that is judged is one that `valid` is for */
	bool is_lifted;	 /* and a rule was left out for it */
};

const char *verdict_word(enum wanted_judgement judgement)
{
	return judgement == WANTED_ALLOWS ? "allow" : judgement == WANTED_DENIES ? "deny" : "ask";
}

static const char *meaning(const struct wanted *wanted)
{
	return wanted->why[0] ? wanted->why : wanted_verb_meaning(wanted->verb);
}

static struct rule_ref rule_of(const struct judging *judging, const struct ruling *row)
{
	return judging->policy->rules[row->rule];
}

/* A file's exception is no answer to another file's rule. */
static bool lifts(const struct judging *judging, const struct rule_ref *rule)
{
	const struct rule_ref own = rule_of(judging, judging->valid.row);

	return !rule->file || strncmp(rule->file, "preset ", 7) == 0 ||
	       (own.file && strcmp(own.file, rule->file) == 0);
}

/*
 * The worst counts, and of equal ones the first. An exception leaves out the rules that it lifts,
 * one by one: others, of other files, count as if those had not been there.
 */
static void say(struct judging *judging, struct verdict *verdict, enum wanted_judgement judgement,
		struct rule_ref rule, const char *reason)
{
	if (judging->is_lifting && lifts(judging, &rule))
		judging->is_lifted = true;
	else if (judgement > verdict->judgement)
		*verdict = (struct verdict){ judgement, rule, reason ? reason : "" };
}

static const struct classify_word *first_word(const struct classify *classify, size_t segment,
					      size_t *ret_count)
{
	const struct classify_word *words = NULL;

	*ret_count = classify_segment(classify, segment, &words);
	return *ret_count ? words : NULL;
}

/* Exceptions */

static size_t split(struct arena *arena, const char *text, const char **words)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789 _@%+=:,./-";
	size_t count = 0, first = strcspn(text, " ");

	/* quotes, variables and operators would make it more than words; so does an assignment */
	if (text[strspn(text, plain)] || memchr(text, '=', first))
		return 0;
	for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
		size_t length = strcspn(at, " ");

		words[count] = count < WORDS_LIMIT ? arena_copy_bytes(arena, at, length) : NULL;
		if (!words[count++])
			return 0;
		at += length;
	}
	return count;
}

/* "sh -c TEXT" and nothing else: how agents run a command. */
static const char *text_of_shell(const struct classify_word *words, size_t count)
{
	static const char *const shells[] = {
		"sh",	     "bash",	  "dash",	   "/bin/sh",
		"/bin/bash", "/bin/dash", "/usr/bin/bash", "/usr/bin/sh"
	};

	for (size_t i = 0; count == 3 && i < sizeof(shells) / sizeof(shells[0]); i++)
		if (strcmp(words[0].text, shells[i]) == 0 &&
		    (strcmp(words[1].text, "-c") == 0 || strcmp(words[1].text, "-lc") == 0))
			return words[2].text;
	return NULL;
}

/* The whole action as the words of one command; 0 where it is not that plain. */
static size_t whole_words(const struct judging *judging, const char **words, size_t *ret_segment)
{
	const struct classify *classify = judging->classify;
	const struct classify_word *given;
	size_t count;
	const char *text = judging->facts->text;

	*ret_segment = 0;
	if (text)
		return classify->segment_count ? split(classify->arena, text, words) : 0;
	given = first_word(classify, 0, &count);
	text = given ? text_of_shell(given, count) : NULL;
	if (text) {
		*ret_segment = 1;
		return classify->segment_count > 1 ? split(classify->arena, text, words) : 0;
	}
	if (count > WORDS_LIMIT)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (given[i].kind != CLASSIFY_LITERAL)
			return 0;
		words[i] = given[i].text;
	}
	return count;
}

static bool has_any(const char *command)
{
	return strstr(command, " * ") ||
	       (strlen(command) > 1 && strcmp(command + strlen(command) - 2, " *") == 0);
}

static bool is_that_file(const struct judging *judging, const struct ruling *row, const char *word)
{
	const struct verdict_facts *facts = judging->facts;
	const char *digest = !row->digest  ? NULL :
			     facts->digest ? facts->digest(facts->context, word) :
					     NULL;

	return !row->digest || (digest && strcmp(digest, row->digest) == 0);
}

static void find_exceptions(struct judging *judging)
{
	const struct policy *policy = judging->policy;
	const char *words[WORDS_LIMIT + 1];
	size_t segment = 0, count = 0;
	bool is_split = false;

	for (size_t i = 0; i < policy->ruling_count; i++) {
		const struct ruling *row = &policy->rulings[i];
		struct excepted *place = row->until < judging->facts->day ? &judging->expired :
									    &judging->valid;

		if (row->kind != RULING_EXCEPTION || place->row)
			continue;
		if (!is_split)
			count = whole_words(judging, words, &segment);
		is_split = true;
		if (count && ruling_covers(row->text, words, count) &&
		    is_that_file(judging, row, words[0]))
			*place = (struct excepted){ row, segment, !has_any(row->text) };
	}
	/* one that goes on counts */
	if (judging->valid.row)
		judging->expired.row = NULL;
}

static bool is_about(const struct excepted *excepted, const struct wanted *wanted)
{
	return excepted->row && (wanted->segment == excepted->segment ||
				 (excepted->exact && wanted->segment > excepted->segment));
}

/* Places */

/* Whether the pattern, absolute or of the workspace, is the path or something above it. */
static bool covers_path(const struct judging *judging, const char *pattern, const char *path)
{
	const char *workspace = judging->policy->workspace, *below = path;

	if (pattern[0] == '/') {
		pattern++;
		below++;
	} else if (path_is_under(path, workspace)) {
		below = path_below(path, workspace);
	} else {
		return false;
	}
	return glob_covers(pattern, below);
}

/* The places that the target can be, one after the other; NULL at the end. */
static const char *place_at(const struct judging *judging, const struct wanted *wanted,
			    size_t index)
{
	const struct classify *classify = judging->classify;
	const struct classify_facts *facts = classify->facts;
	bool relative = wanted->target[0] != '/' && wanted->target[0] != '~';
	size_t count = relative && classify->cwd_count ? classify->cwd_count : 1;
	const char *folded;

	if (index >= count)
		return NULL;
	folded = sensitive_fold(classify->arena,
				classify->cwd_count ? classify->cwds[index] : facts->cwd,
				facts->home, wanted->target);
	return folded && path_is_clean(folded) ? folded : "";
}

/* "rm -rf *": of the pattern's names as many as the path has, if they stand before a wildcard. */
static bool is_above_by_pattern(const char *pattern, size_t names, const char *path)
{
	char front[PATH_LIMIT_BYTES];
	size_t length = 0;

	for (const char *slash = path; slash; slash = strchr(slash + 1, '/')) {
		length += length < names && pattern[length] == '/';
		length += strcspn(pattern + length, "/");
	}
	if (length > names || length >= sizeof(front))
		return false;
	memcpy(front, pattern, length);
	front[length] = '\0';
	return glob_match(path + (path[0] == '/'), front + (front[0] == '/'));
}

/*
 * What is removed is removed with all that lies in it: whether the pattern says, by the names that
 * stand before its first wildcard, that it is about something below the path.
 */
static bool is_above(const struct judging *judging, const char *pattern, const char *path)
{
	const char *workspace = judging->policy->workspace;
	size_t names = strcspn(pattern, "*?[\\"), length;

	if (pattern[0] != '/') {
		if (path_is_under(workspace, path))
			return true;
		if (!path_is_under(path, workspace))
			return false;
		path = path_below(path, workspace);
	}
	length = strlen(path);
	if (glob_is_pattern(path))
		return is_above_by_pattern(pattern, names, path);
	return length < names && memcmp(pattern, path, length) == 0 && pattern[length] == '/';
}

static bool is_at(const struct judging *judging, const struct wanted *wanted, const char *pattern)
{
	bool removes = wanted->verb == WANTED_FS_REMOVE || wanted->verb == WANTED_FS_RUIN;
	const char *place;

	for (size_t i = 0; wanted->exact && (place = place_at(judging, wanted, i)); i++)
		if (place[0] && (covers_path(judging, pattern, place) ||
				 (removes && is_above(judging, pattern, place))))
			return true;
	return false;
}

static bool is_private(const struct policy *policy, const char *place)
{
	static const char *const areas[] = { "/tmp", "/var/tmp", "/dev", "/proc", "/run/bawn" };

	for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++)
		if (path_is_under(place, areas[i]))
			return true;
	return path_is_under(place, policy->home);
}

static bool is_shown(const struct policy *policy, const char *place)
{
	const struct view_path *row = view_lookup(&policy->view, place);

	if (row)
		return row->class != PATH_HIDE;
	if (is_private(policy, place) || path_is_under(policy->home, place))
		return true;
	/* directories on the way to what is shown */
	for (size_t i = 0; i < policy->view.count; i++)
		if (path_is_under(policy->view.paths[i].target, place))
			return true;
	return false;
}

static bool is_in_view(const struct judging *judging, const struct wanted *wanted)
{
	const struct classify *classify = judging->classify;
	bool relative = wanted->target[0] != '/' && wanted->target[0] != '~';
	const char *place;

	if (!wanted->exact || (relative && (classify->cwd_unknown || !classify->cwd_count)))
		return false;
	for (size_t i = 0; (place = place_at(judging, wanted, i)); i++)
		if (!place[0] || !is_shown(judging->policy, place))
			return false;
	return true;
}

/* "host:port"; a loopback of the box's own is nobody else's. */
static const char *host_of(const struct judging *judging, const struct wanted *wanted)
{
	const char *target = wanted->target, *colon = strrchr(target, ':');
	size_t length = colon ? (size_t)(colon - target) : strlen(target);
	char *host = arena_copy_bytes(judging->classify->arena, target, length);

	for (char *at = host; at && *at; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at = (char)(*at - 'A' + 'a');
	return host ? host : "";
}

static bool is_own_loopback(const struct judging *judging, const struct wanted *wanted)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]", "::1" };
	const char *host = host_of(judging, wanted);

	for (size_t i = 0; wanted->exact && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(host, names[i]) == 0)
			return true;
	return false;
}

/* What the network's rules say; false: nothing, or it is not known where to. */
static bool ask_network(const struct judging *judging, const struct wanted *wanted,
			struct egress_answer *ret_answer)
{
	return wanted->verb == WANTED_NET_CONNECT && wanted->exact &&
	       !is_own_loopback(judging, wanted) &&
	       reach_decide(&judging->policy->egress, wanted->target,
			    judging->facts->day * REACH_DAY_S, ret_answer);
}

/* A name that network.allow lists is no unknown one. */
static bool is_listed(const struct judging *judging, const struct wanted *wanted)
{
	struct egress_answer answer;

	return ask_network(judging, wanted, &answer) && answer.verdict == EGRESS_ALLOW;
}

/* Programs */

static bool names_program(const struct judging *judging, const char *named, const char *word,
			  bool surely)
{
	const struct verdict_facts *facts = judging->facts;

	if (facts->is_program)
		return facts->is_program(facts->context, named, word, surely);
	return strcmp(named[0] == '/' ? named : program_name(named),
		      named[0] == '/' ? word : program_name(word)) == 0;
}

static bool is_in_set(const struct judging *judging, const char *set, const char *word)
{
	char name[64];
	size_t length;

	for (const char *at = toolset_programs(set); *at; at += length + strspn(at + length, " ")) {
		length = strcspn(at, " ");
		if (length >= sizeof(name))
			continue;
		memcpy(name, at, length);
		name[length] = '\0';
		if (names_program(judging, name, word, false))
			return true;
	}
	return false;
}

/* The word that an action begins with; of a shell's text each command's that stands there. */
static bool begins_action(const struct judging *judging, const struct wanted *wanted)
{
	const struct classify *classify = judging->classify;
	const struct program *program;
	size_t count;
	const struct classify_word *words = first_word(classify, wanted->segment, &count);

	if (!words || words[0].position != wanted->position ||
	    classify_segment_depth(classify, wanted->segment))
		return false;
	program = classify->in_shell ? program_find(wanted->target) : NULL;
	return !program || program->way != WAY_SHELL;
}

static void judge_program(struct judging *judging, const struct wanted *wanted,
			  struct verdict *verdict)
{
	const struct policy *policy = judging->policy;
	const struct ruling *list = NULL;
	bool is_listed = false;

	for (size_t i = 0; i < policy->ruling_count; i++) {
		const struct ruling *row = &policy->rulings[i];

		if (row->kind == RULING_EXEC_ALLOW) {
			list = list ? list : row;
			is_listed = is_listed ||
				    names_program(judging, row->text, wanted->target, true);
		} else if (row->kind == RULING_EXEC_DENY &&
			   names_program(judging, row->text, wanted->target, false)) {
			say(judging, verdict, WANTED_DENIES, rule_of(judging, row),
			    "the policy forbids this program");
		} else if (row->kind == RULING_EXEC_SET &&
			   is_in_set(judging, row->text, wanted->target)) {
			say(judging, verdict, WANTED_DENIES, rule_of(judging, row),
			    "the policy forbids this kind of programs");
		}
	}
	if (list && !is_listed && begins_action(judging, wanted))
		say(judging, verdict, WANTED_DENIES, rule_of(judging, list),
		    "not one of the programs that an action may start with");
}

/* Classes */

static bool is_http_program(const char *word)
{
	static const char *const names[] = { "curl",  "wget", "wget2", "http",
					     "https", "xh",   "xhs",   "curlie" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(program_name(word), names[i]) == 0)
			return true;
	return false;
}

/* A method that is not told is any of them. */
static bool is_method(const struct judging *judging, const struct wanted *wanted,
		      const char *method)
{
	static const char *const known[] = { "POST", "PUT", "PATCH", "DELETE" };
	size_t count;
	const struct classify_word *words = first_word(judging->classify, wanted->segment, &count);

	if (wanted->verb != WANTED_EXTERNAL_WRITE || !words || !is_http_program(words[0].text))
		return false;
	for (size_t i = 0; wanted->exact && i < sizeof(known) / sizeof(known[0]); i++)
		if (strcasecmp(wanted->target, known[i]) == 0)
			return strcasecmp(wanted->target, method) == 0;
	return true;
}

const char *verdict_class(enum wanted_verb verb)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (classes[i].verbs >> verb & 1)
			return classes[i].word;
	return NULL;
}

const char *verdict_class_at(size_t index)
{
	return index < sizeof(classes) / sizeof(classes[0]) ? classes[index].word : NULL;
}

static uint32_t verbs_of(const char *word)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (strcmp(classes[i].word, word) == 0)
			return classes[i].verbs;
	return 0;
}

static bool is_asked_for(const struct judging *judging, const struct ruling *row,
			 const struct wanted *wanted)
{
	switch (row->kind) {
	case RULING_ASK:
		return verbs_of(row->text) & (UINT32_C(1) << wanted->verb) &&
		       !(wanted->verb == WANTED_NET_CONNECT &&
			 (is_own_loopback(judging, wanted) || is_listed(judging, wanted)));
	case RULING_ASK_METHOD:
		return is_method(judging, wanted, row->text);
	case RULING_TARGET_HOST:
		return (wanted->verb == WANTED_NET_CONNECT ||
			wanted->verb == WANTED_EXTERNAL_WRITE) &&
		       document_host_covers(row->text, host_of(judging, wanted));
	case RULING_TARGET_PATH:
		return OF_FILES & (UINT32_C(1) << wanted->verb) &&
		       is_at(judging, wanted, row->text);
	default:
		return false;
	}
}

static const char *why_asked(const struct judging *judging, const struct ruling *row,
			     const struct wanted *wanted)
{
	return row->label ?
		       arena_format(judging->classify->arena, "labelled \"%s\": %s", row->label,
				    meaning(wanted)) :
		       arena_format(judging->classify->arena, "%s: %s", row->text, meaning(wanted));
}

/* All of it */

static void judge_rows(struct judging *judging, const struct wanted *wanted,
		       struct verdict *verdict)
{
	const struct policy *policy = judging->policy;
	uint32_t bit = UINT32_C(1) << wanted->verb;

	for (size_t i = 0; i < policy->ruling_count; i++) {
		const struct ruling *row = &policy->rulings[i];
		bool is_hidden = row->kind == RULING_HIDE && bit & OF_FILES;
		bool is_protected = row->kind == RULING_PROTECT && bit & OF_WRITES;

		if ((is_hidden || is_protected) && is_at(judging, wanted, row->text))
			say(judging, verdict, WANTED_DENIES, rule_of(judging, row),
			    is_hidden ? "hidden by the policy" : "protected by the policy");
		else if (is_asked_for(judging, row, wanted))
			say(judging, verdict, WANTED_ASKS, rule_of(judging, row),
			    why_asked(judging, row, wanted));
	}
}

static void judge_network(struct judging *judging, const struct wanted *wanted,
			  struct verdict *verdict)
{
	struct egress_answer answer;

	if (!ask_network(judging, wanted, &answer))
		return;
	if (answer.verdict != EGRESS_ALLOW)
		say(judging, verdict, answer.verdict == EGRESS_DENY ? WANTED_DENIES : WANTED_ASKS,
		    egress_answer_rule(&answer), reach_reason(&answer));
	else if (verdict->judgement == WANTED_ALLOWS)
		*verdict = (struct verdict){ WANTED_ALLOWS, egress_answer_rule(&answer),
					     reach_reason(&answer) };
}

/* What is never allowed, or only where the wall is made for it. */
static bool is_ruled_out(const struct judging *judging, const struct wanted *wanted)
{
	return wanted_judge(wanted) == WANTED_DENIES &&
	       !(wanted->verb == WANTED_WALL_LEAVE &&
		 judging->policy->flags & POLICY_NESTED_USERNS);
}

static void judge_always(struct judging *judging, const struct wanted *wanted, size_t index,
			 struct verdict *verdict)
{
	const struct policy *policy = judging->policy;
	/* what is read of names that are not known is in the view, or not there */
	bool asks = wanted->verb == WANTED_FS_READ ?
			    wanted->exact && !is_in_view(judging, wanted) :
			    classify_judge_request(judging->classify, index) != WANTED_ALLOWS;

	if (policy->approval == RULING_ALWAYS && asks)
		say(judging, verdict, WANTED_ASKS, policy->rules[policy->approval_rule],
		    wanted->verb == WANTED_FS_READ ? "reads what the view does not show" :
						     meaning(wanted));
}

static struct rule_ref workspace_rule(const struct policy *policy)
{
	const struct view_path *row = view_lookup(&policy->view, policy->workspace);

	return row ? policy->rules[row->rule] : rule_builtin(RULE_WORKSPACE_WRITE);
}

static struct verdict judge_by_rules(struct judging *judging, size_t index)
{
	const struct wanted *wanted = &judging->classify->wanted[index];
	struct verdict verdict = { .judgement = WANTED_ALLOWS };

	if (is_ruled_out(judging, wanted))
		say(judging, &verdict, WANTED_DENIES, wanted_rule(wanted->verb), meaning(wanted));
	if (OF_PROGRAMS & (UINT32_C(1) << wanted->verb))
		judge_program(judging, wanted, &verdict);
	judge_rows(judging, wanted, &verdict);
	if (judging->policy->flags & POLICY_READ_ONLY &&
	    OF_WRITES & (UINT32_C(1) << wanted->verb) &&
	    is_at(judging, wanted, judging->policy->workspace))
		say(judging, &verdict, WANTED_DENIES, workspace_rule(judging->policy),
		    "the workspace is read-only");
	if (wanted->verb == WANTED_UNCLEAR)
		say(judging, &verdict, WANTED_ASKS, wanted_rule(wanted->verb), meaning(wanted));
	judge_always(judging, wanted, index, &verdict);
	judge_network(judging, wanted, &verdict);
	if (!verdict.reason)
		verdict = (struct verdict){ WANTED_ALLOWS, rule_builtin(RULE_RUN_ALLOWED),
					    rule_builtin_text(RULE_RUN_ALLOWED) };
	return verdict;
}

static struct verdict judge_request(struct judging *judging, size_t index)
{
	const struct wanted *wanted = &judging->classify->wanted[index];
	struct verdict verdict;

	judging->is_lifting = is_about(&judging->valid, wanted) && !is_ruled_out(judging, wanted);
	judging->is_lifted = false;
	verdict = judge_by_rules(judging, index);
	if (is_about(&judging->expired, wanted))
		return (struct verdict){ WANTED_DENIES, rule_of(judging, judging->expired.row),
					 "the exception for this command has expired" };
	if (verdict.judgement == WANTED_ALLOWS && judging->is_lifted)
		return (struct verdict){ WANTED_ALLOWS, rule_of(judging, judging->valid.row),
					 "an exception is made for this command" };
	return verdict;
}

static struct verdict judge_without(const struct classify *classify, size_t index)
{
	const struct wanted *wanted = &classify->wanted[index];

	return (struct verdict){ classify_judge_request(classify, index), wanted_rule(wanted->verb),
				 meaning(wanted) };
}

static const struct verdict unclear = {
	.judgement = WANTED_ASKS,
	.reason = "more commands, words or nesting than are looked through",
};

/* The first of the worst ones decides. */
static void conclude(const struct classify *classify, struct verdict_list *list)
{
	bool is_whole = list->rows && !classify->failed && classify->segment_count &&
			classify->texts_read == classify->text_count;

	list->request = classify->wanted_count;
	list->unread = unclear;
	list->unread.rule = wanted_rule(WANTED_UNCLEAR);
	if (is_whole)
		list->unread.judgement = WANTED_ALLOWS;
	list->whole = list->unread;
	for (size_t i = 0; list->rows && i < classify->wanted_count; i++)
		if (list->rows[i].judgement > list->whole.judgement ||
		    (list->request == classify->wanted_count &&
		     list->rows[i].judgement == list->whole.judgement)) {
			list->whole = list->rows[i];
			list->request = i;
		}
}

/* Nobody is asked: what would be asked for is denied by the rule that asks. */
static void never(const struct classify *classify, struct verdict *verdict)
{
	const char *reason = arena_format(classify->arena, "%s (approval: never)", verdict->reason);

	if (verdict->judgement != WANTED_ASKS)
		return;
	verdict->judgement = WANTED_DENIES;
	verdict->reason = reason ? reason : verdict->reason;
}

void verdict_make(const struct classify *classify, const struct verdict_facts *facts,
		  struct verdict_list *ret_list)
{
	const struct policy *policy = facts->policy;
	struct judging judging = { .classify = classify, .facts = facts, .policy = policy };
	struct verdict_list list = { 0 };
	size_t count = classify->wanted_count;

	if (!policy || count * (policy->ruling_count + 1) <= VERDICT_LIMIT_STEPS)
		list.rows = arena_array(classify->arena, count + 1, sizeof(*list.rows));
	if (policy && list.rows)
		find_exceptions(&judging);
	for (size_t i = 0; list.rows && i < count; i++)
		list.rows[i] = policy ? judge_request(&judging, i) : judge_without(classify, i);
	conclude(classify, &list);
	if (policy && policy->approval == RULING_NEVER) {
		never(classify, &list.whole);
		for (size_t i = 0; list.rows && i < count; i++)
			never(classify, &list.rows[i]);
	}
	*ret_list = list;
}
