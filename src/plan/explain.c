#include "plan/explain.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/path.h"
#include "plan/explainer.h"
#include "policy/egress_text.h"
#include "policy/held.h"
#include "policy/policy.h"

#include <errno.h>
#include <string.h>

#define TEXT_COLUMNS 100u
#define TEXT_INDENT 12u

static const struct {
	const char *word, *title;
} questions[EXPLAIN_QUESTION_COUNT] = {
	[EXPLAIN_COMMAND] = { "command", "what runs?" },
	[EXPLAIN_READ] = { "read", "what can it read?" },
	[EXPLAIN_WRITE] = { "write", "what can it write?" },
	[EXPLAIN_CONNECT] = { "connect", "what can it connect to?" },
	[EXPLAIN_IDENTITY] = { "identity", "with whose identity does it act?" },
	[EXPLAIN_RECORD] = { "record", "can the whole be reconstructed and taken over?" },
	[EXPLAIN_RESOURCES] = { "resources", "what can it use up?" },
	[EXPLAIN_LAYERS] = { "layers", "which layers hold it?" },
};

struct explain_answer *explainer_answer(struct maker *maker, enum explain_question question,
					enum enforcement enforcement, enum layer layer,
					struct rule_ref rule)
{
	static struct explain_answer nowhere;
	struct explanation *explanation = &maker->explanation;
	struct explain_answer *grown =
		arena_push(maker->arena, explanation->answers, explanation->count, sizeof(*grown));

	if (!grown) {
		nowhere = (struct explain_answer){ 0 };
		return &nowhere;
	}
	explanation->answers = grown;
	grown += explanation->count++;
	*grown = (struct explain_answer){
		.question = question, .enforcement = enforcement, .layer = layer, .rule = rule
	};
	return grown;
}

static void say(struct maker *maker, enum explain_question question, enum enforcement enforcement,
		enum layer layer, enum rule_builtin rule, const char *text)
{
	explainer_answer(maker, question, enforcement, layer, rule_builtin(rule))->text = text;
}

/* A gap of this build, or what no rule was asked for. */
static void say_absent(struct maker *maker, enum explain_question question, enum layer layer,
		       const char *text)
{
	struct rule_ref none = { .id = "" };

	explainer_answer(maker, question, ENFORCEMENT_ABSENT, layer, none)->text = text;
}

void explain_item(struct maker *maker, struct explain_answer *to, const char *item)
{
	const char **grown = arena_push(maker->arena, to->items, to->item_count, sizeof(*grown));

	if (!grown)
		return;
	to->items = grown;
	grown[to->item_count++] = item;
}

static const struct plan_op *find(const struct plan *plan, enum plan_kind kind)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].kind == kind)
			return &plan->ops[i];
	return NULL;
}

static bool has_layer(const struct plan *plan, enum layer layer)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].layer == layer)
			return true;
	return false;
}

/* How a row of the view is in force: by the operation that speaks of its target. */
static const struct plan_op *op_of_row(const struct maker *maker, const struct view_path *row,
				       enum plan_kind kind)
{
	const struct plan *plan = maker->plan;

	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].kind == kind && plan->ops[i].target &&
		    strcmp(plan->ops[i].target, row->target) == 0)
			return &plan->ops[i];
	return NULL;
}

/* The deepest shown row above a hidden or protected name. */
static const struct view_path *row_above(const struct view *view, const char *path)
{
	const struct view_path *best = NULL;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];
		bool shows = row->class == PATH_READ || row->class == PATH_WRITE ||
			     row->class == PATH_CACHE || row->class == PATH_COPY ||
			     row->class == PATH_GIT || row->class == PATH_STAGE;

		/* a git directory lies in something else */
		if (row->class == PATH_GIT && strcmp(row->target, path) == 0)
			continue;
		if (shows && path_is_under(path, row->target) &&
		    (!best || strlen(row->target) >= strlen(best->target)))
			best = row;
	}
	return best;
}

static enum row_state state_of_row(const struct maker *maker, const struct view_path *row)
{
	const struct view_path *above = row_above(&maker->policy->view, row->target);

	if (!above || above->class != PATH_WRITE || strcmp(above->target, row->target) == 0)
		return ROW_EXACT;
	if (row->class == PATH_HIDE)
		return op_of_row(maker, row, PLAN_MASK) ? ROW_MASK : ROW_LATER;
	return row->class == PATH_PROTECT || row->class == PATH_GIT ? ROW_MASK : ROW_EXACT;
}

/* What is to be copied is bound where the plan says so. */
static enum path_class class_of_row(const struct maker *maker, const struct view_path *row)
{
	return row->class == PATH_COPY && !op_of_row(maker, row, PLAN_COPY) ? PATH_READ :
									      row->class;
}

/* Deny beats allow: what lies in a hidden path is not shown, whatever else names it. */
static bool is_taken_away(const struct maker *maker, const struct view_path *row)
{
	const struct view_path *deciding = view_lookup(&maker->policy->view, row->target);

	return row->class != PATH_HIDE && deciding && deciding->class == PATH_HIDE;
}

static bool is_secret(const struct maker *maker, const struct view_path *row)
{
	return row->class == PATH_HIDE &&
	       rule_is(&maker->policy->rules[row->rule], RULE_WORKSPACE_SECRET);
}

void explain_rows(struct maker *maker, enum explain_question question, enum path_class class,
		  enum row_state state, enum enforcement enforcement, enum layer layer,
		  const char *text)
{
	const struct view *view = &maker->policy->view;
	size_t before = maker->explanation.count;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_path *row = &view->paths[i];
		struct rule_ref rule = maker->policy->rules[row->rule];
		struct explain_answer *at = NULL;

		if (class_of_row(maker, row) != class || state_of_row(maker, row) != state ||
		    is_taken_away(maker, row) || view_is_input(row) || is_secret(maker, row))
			continue;
		for (size_t j = before; j < maker->explanation.count && !at; j++)
			if (rule_is_same(&maker->explanation.answers[j].rule, &rule))
				at = &maker->explanation.answers[j];
		if (!at) {
			at = explainer_answer(maker, question, enforcement, layer, rule);
			at->text = text;
		}
		explain_item(maker, at, row->target);
	}
}

static void explain_command(struct maker *maker)
{
	const char *const *argv = maker->facts->argv;
	const struct policy *policy = maker->policy;
	const char *name = argv ? argv[0] : NULL;
	const struct view_path *row;
	struct explain_answer *line;
	struct rule_ref rule = rule_builtin(RULE_RUN_ALLOWED);

	if (!name) {
		say(maker, EXPLAIN_COMMAND, ENFORCEMENT_EXACT, LAYER_ENVIRONMENT, RULE_RUN_ALLOWED,
		    "any command: the answers below hold for all of them");
		return;
	}
	line = explainer_answer(maker, EXPLAIN_COMMAND, ENFORCEMENT_INFERRED, LAYER_MOUNT, rule);
	for (size_t i = 0; argv[i]; i++)
		explain_item(maker, line, argv[i]);
	if (!strchr(name, '/')) {
		const char *search = "/usr/local/bin:/usr/bin:/bin";

		for (size_t i = 0; i < policy->variable_count; i++)
			if (strcmp(policy->variables[i].name, "PATH") == 0)
				search = policy->variables[i].value;
		line->text = arena_format(maker->arena,
					  "argv as given; its first word is searched inside of the "
					  "box, at the start, in %s",
					  search);
	} else if (name[0] != '/') {
		line->text = arena_format(maker->arena,
					  "argv as given; its first word is a path below %s",
					  policy->cwd);
	} else {
		row = path_is_clean(name) ? view_lookup(&policy->view, name) : NULL;
		if (row)
			line->rule = policy->rules[row->rule];
		line->text =
			!row ? "argv as given; no rule shows its first word, so it is found "
			       "only if a link or a private area leads there" :
			row->class == PATH_HIDE ?
			       "argv as given; its first word is hidden: the run ends with 127" :
			       "argv as given; its first word is a path that this rule shows";
	}
	line = explainer_answer(maker, EXPLAIN_COMMAND, ENFORCEMENT_EXACT, LAYER_MOUNT,
				rule_builtin(RULE_WORKSPACE_WRITE));
	line->text = "it starts in";
	explain_item(maker, line, policy->cwd);
}

static void explain_tier(struct maker *maker)
{
	const struct tier_choice *choice = maker->facts->tier;
	bool runs = choice->verdict == TIER_RUNS;

	explainer_answer(maker, EXPLAIN_COMMAND, runs ? ENFORCEMENT_EXACT : ENFORCEMENT_ABSENT,
			 LAYER_USER_NAMESPACE, tier_rule(maker->policy, choice))
		->text = arena_format(maker->arena,
				      runs ? "in the %s tier, rung " TIER_RUNG ": %s" :
					     "in no tier: its facts call for %s, and it does not "
					     "start: %s",
				      tier_name(choice->tier), maker->facts->tier_reason);
}

static void explain_terminal(struct maker *maker)
{
	struct rule_ref rule = { .id = "flag.tty", .file = "--tty" };
	struct explain_answer *line;

	if (!(maker->policy->flags & POLICY_TTY))
		return;
	line = explainer_answer(maker, EXPLAIN_COMMAND, ENFORCEMENT_EXACT, LAYER_SESSION, rule);
	line->text = "it gets a terminal as standard input, output and error, and as its "
		     "controlling one: bawn's own, not the caller's";
}

/* Their places are not those of the host: both are told. */
static void explain_inputs(struct maker *maker)
{
	const struct policy *policy = maker->policy;
	struct explain_answer *line = NULL;

	for (size_t i = 0; i < policy->view.count; i++) {
		const struct view_path *row = &policy->view.paths[i];

		if (!view_is_input(row) || is_taken_away(maker, row))
			continue;
		if (!line) {
			line = explainer_answer(maker, EXPLAIN_READ, ENFORCEMENT_EXACT, LAYER_MOUNT,
						policy->rules[row->rule]);
			line->text = "inputs, read-only, each with what it is on the host";
		}
		explain_item(maker, line,
			     arena_format(maker->arena, "%s = %s", row->target, row->source));
	}
}

#define SECRETS                                                                                    \
	"not the files of the workspace that are named like secrets (.env, private keys, tokens) " \
	"at the start, "
#define SECRETS_WHERE                                                                              \
	"Looked for level by level, not where dependencies are; --read shows one, --show-secrets " \
	"all"

static void explain_secrets(struct maker *maker)
{
	const struct explain_facts *facts = maker->facts;
	const struct view *view = &maker->policy->view;
	const struct rule_ref rule = rule_builtin(RULE_WORKSPACE_SECRET);
	bool in_place = !(maker->policy->flags & POLICY_WORKSPACE);
	struct explain_answer *line;

	if (maker->policy->flags & POLICY_SHOW_SECRETS) {
		say_absent(maker, EXPLAIN_READ, LAYER_HIDE,
			   "files of the workspace that are named like secrets are not hidden: "
			   "--show-secrets");
		return;
	}
	line = explainer_answer(maker, EXPLAIN_READ,
				in_place ? ENFORCEMENT_POLLED : ENFORCEMENT_EXACT, LAYER_HIDE,
				rule);
	line->text = in_place ? SECRETS "covered by a mask; when the host replaces one, it can be "
					"read until it is covered again. " SECRETS_WHERE :
				SECRETS "absent by name. " SECRETS_WHERE;
	for (size_t i = 0; i < view->count; i++)
		if (is_secret(maker, &view->paths[i]))
			explain_item(maker, line, view->paths[i].target);
	if (facts->secrets_are_cut)
		explainer_answer(maker, EXPLAIN_READ, ENFORCEMENT_ABSENT, LAYER_HIDE, rule)->text =
			"the workspace is larger than a start looks through: such files deeper in "
			"it can be read, which each start says; --hide GLOB looks everywhere";
	if (!facts->tracked_count)
		return;
	line = explainer_answer(maker, EXPLAIN_READ, ENFORCEMENT_ABSENT, LAYER_HIDE, rule);
	line->text = "named like secrets, and shown: git has their content as it is, for everybody "
		     "who reads the repository";
	for (size_t i = 0; i < facts->tracked_count; i++)
		explain_item(maker, line, facts->tracked[i]);
}

static void explain_read(struct maker *maker)
{
	const enum explain_question read = EXPLAIN_READ;

	explain_rows(maker, read, PATH_READ, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_MOUNT,
		     "the host's, read-only");
	explain_rows(maker, read, PATH_COPY, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_MOUNT,
		     "copies of the host's, read-only, as these are at the start");
	explain_inputs(maker);
	explain_rows(maker, read, PATH_WRITE, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_MOUNT,
		     "the host's, in place");
	explain_rows(maker, read, PATH_STAGE, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_MOUNT,
		     "the host's below, the task's own layer above");
	explain_rows(maker, read, PATH_CACHE, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_MOUNT,
		     "package caches: the host's below, the project's own above");
	explain_rows(maker, read, PATH_GIT, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_PROTECT,
		     "git directories: the host's below, the task's own layer above");
	explain_rows(maker, read, PATH_GIT, ROW_MASK, ENFORCEMENT_POLLED, LAYER_PROTECT,
		     "git directories: the host's below, the task's own layer above");
	explain_rows(maker, read, PATH_DEVICE, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_MOUNT,
		     "these devices and no other");
	explain_rows(maker, read, PATH_FILE, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_MOUNT,
		     "small files made for the box, not the host's");
	explain_rows(maker, read, PATH_HIDE, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_HIDE,
		     "not these: absent by name, whatever the host puts there later");
	explain_rows(
		maker, read, PATH_HIDE, ROW_MASK, ENFORCEMENT_POLLED, LAYER_HIDE,
		"not these: covered by a mask in a directory that is written in place. When the "
		"host renames another file over such a name, that file can be read until it is "
		"covered again; --hide-strict refuses to start instead");
	explain_rows(
		maker, read, PATH_HIDE, ROW_LATER, ENFORCEMENT_POLLED, LAYER_HIDE,
		"no such name now, in a directory that is written in place: if it appears, it is "
		"covered, and can be read until then; --hide-strict refuses to start instead");
	explain_secrets(maker);
	say(maker, read, ENFORCEMENT_EXACT, LAYER_MOUNT, RULE_HOME_PRIVATE,
	    "of the caller's home nothing but what is listed here: it is an empty private "
	    "directory");
	say(maker, read, ENFORCEMENT_EXACT, LAYER_MOUNT, RULE_SYSTEM_ABSENT,
	    "nothing else of the host's files: they are not refused, they are not there");
	say(maker, read, ENFORCEMENT_EXACT, LAYER_PID, RULE_SYSTEM_ABSENT,
	    "no process outside of the box: its /proc shows the box's own processes");
	say(maker, read, ENFORCEMENT_ABSENT, LAYER_PROC, RULE_SYSTEM_ABSENT,
	    "general facts about the machine in /proc (kernel version, processors, memory, load, "
	    "up time) are not held back");
}

/* A layer in the workspace's place has nothing that lies on the host meanwhile. */
static void say_what_waits(struct maker *maker)
{
	const struct policy *policy = maker->policy;
	const struct view_path *row = view_lookup(&policy->view, policy->workspace);

	if (!row || row->class != PATH_WRITE)
		return;
	say_absent(
		maker, EXPLAIN_WRITE, LAYER_MOUNT,
		"gap: new files in the workspace that a program of the host runs or obeys "
		"(another repository, its hooks and configuration, editor tasks, agents' "
		"settings, direnv) lie there while a command runs. When it is over they are "
		"taken out and wait for `bawn review`; --stage and --ephemeral leave no such time");
}

static void explain_write(struct maker *maker)
{
	const enum explain_question write = EXPLAIN_WRITE;
	struct explain_answer *line;

	explain_rows(maker, write, PATH_WRITE, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_MOUNT,
		     "the host's, in place: what it does there is done");
	explain_rows(
		maker, write, PATH_STAGE, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_MOUNT,
		maker->policy->flags & POLICY_EMPTY ?
			"the task's own, empty at the start and gone when the task ends: nothing "
			"of the host's is in it, and nothing of it is ever on the host" :
		maker->policy->flags & POLICY_EPHEMERAL ?
			"the task's own layer, gone when the task ends: nothing of it is ever on "
			"the host, nor what its git does" :
			"the task's own layer, a stage that stays when the task has ended: "
			"nothing of it is on the host before `bawn apply`");
	explain_rows(
		maker, write, PATH_CACHE, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_MOUNT,
		"the project's own layer of these caches, never the host's; while another run of "
		"the project holds one, a private layer that is gone at the end");
	explain_rows(
		maker, write, PATH_GIT, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_PROTECT,
		"the task's own layer of these git directories: refs, index, configuration and "
		"hooks of the host's stay as they are while it runs");
	explain_rows(
		maker, write, PATH_GIT, ROW_MASK, ENFORCEMENT_POLLED, LAYER_PROTECT,
		"the task's own layer of these git directories: refs, index, configuration and "
		"hooks of the host's stay as they are while it runs. When the host puts another "
		"directory in the place of one, that can be changed until it is made read-only");
	explain_rows(
		maker, write, PATH_OBJECTS, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_PROTECT,
		maker->policy->flags & POLICY_LAYERED ?
			"git's objects, in that layer: what the host has stays as it is, and what "
			"the task adds is in the layer alone; large packs are read-only" :
			"git's objects, in that layer: what the host has stays as it is, and what "
			"the task adds comes to it at the end, looked through; large packs are "
			"read-only");
	line = explainer_answer(maker, write, ENFORCEMENT_EXACT, LAYER_MOUNT,
				rule_builtin(RULE_PRIVATE_AREA));
	line->text = "private, in memory, gone at the end";
	explain_item(maker, line, maker->policy->home);
	for (size_t i = 0; i < maker->plan->count; i++)
		if (maker->plan->ops[i].kind == PLAN_AREA &&
		    !(maker->plan->ops[i].flags & PLAN_READ_ONLY) &&
		    strcmp(maker->plan->ops[i].target, maker->policy->home) != 0)
			explain_item(maker, line, maker->plan->ops[i].target);
	explain_rows(
		maker, write, PATH_PROTECT, ROW_EXACT, ENFORCEMENT_EXACT, LAYER_PROTECT,
		"not these: visible and not changeable, nor the directories that lead to them");
	explain_rows(
		maker, write, PATH_PROTECT, ROW_MASK, ENFORCEMENT_POLLED, LAYER_PROTECT,
		"not these: visible and not changeable, nor the directories that lead to them. "
		"When the host replaces one, it can be changed until it is read-only again");
	say(maker, write, ENFORCEMENT_EXACT, LAYER_MOUNT, RULE_SYSTEM_READ_ONLY,
	    "nothing else: all other paths are read-only mounts or absent");
	say(maker, write, ENFORCEMENT_EXACT, LAYER_SECCOMP, RULE_SYSCALL_ALLOWLIST,
	    "no set-id bits, no device nodes, no extended flags of files");
	say_what_waits(maker);
}

/* What may be connected to, by whose word; denials stand among the rest, as in the file. */
static void explain_egress(struct maker *maker)
{
	static const char *const words[EGRESS_VERDICT_COUNT] = {
		[EGRESS_DENY] = "never", [EGRESS_ASK] = "after a question", [EGRESS_ALLOW] = ""
	};
	const struct egress_policy *egress = &maker->policy->egress;

	say(maker, EXPLAIN_CONNECT, ENFORCEMENT_EXACT, LAYER_NETWORK, RULE_EGRESS_DEFAULT,
	    "the box's own loopback; every other connection ends at a proxy of bawn's, which makes "
	    "those that rules allow, and nothing else: no interface leads outside");
	say(maker, EXPLAIN_CONNECT, ENFORCEMENT_EXACT, LAYER_NETWORK, RULE_EGRESS_SPECIAL,
	    "not the host, private networks, metadata services and other special addresses, unless "
	    "a rule names them; whatever a name resolves to");
	say(maker, EXPLAIN_CONNECT, ENFORCEMENT_EXACT, LAYER_NETWORK, RULE_EGRESS_DEFAULT,
	    maker->policy->flags & POLICY_CAPTURE_ALL ?
		    "network.capture is all: no start on a kernel that cannot capture every port" :
		    "on a kernel without nft's tproxy the ports that rules name are captured; "
		    "connections to others are refused by the kernel, unrecorded "
		    "(network.capture: all refuses to start instead)");
	for (size_t i = 0; i < egress->rule_count; i++) {
		struct explain_answer *line = explainer_answer(maker, EXPLAIN_CONNECT,
							       ENFORCEMENT_EXACT, LAYER_NETWORK,
							       egress->rules[i].ref);
		struct buffer text = { .arena = maker->arena };

		buffer_text(&text, words[egress->rules[i].verdict]);
		buffer_text(&text, words[egress->rules[i].verdict][0] ? ": " : "");
		egress_rule_print(&egress->rules[i], &text);
		line->text = text.failed ? "" : text.data;
	}
}

static void explain_connect(struct maker *maker)
{
	const enum explain_question connect = EXPLAIN_CONNECT;
	struct explain_answer *line;

	if (maker->policy->egress.mode == EGRESS_NONE)
		say(maker, connect, ENFORCEMENT_EXACT, LAYER_NETWORK, RULE_NETWORK_LOOPBACK,
		    "the box's own loopback (127.0.0.1, ::1) and nothing else: no address outside, "
		    "no port of the host's loopback, no names");
	else
		explain_egress(maker);
	say(maker, connect, ENFORCEMENT_EXACT, LAYER_MOUNT, RULE_SYSTEM_ABSENT,
	    "sockets with a path (docker.sock, ssh-agent, D-Bus, X11) are absent with their "
	    "directories; one that lies inside of a shown path can be reached");
	say(maker, connect, ENFORCEMENT_EXACT, LAYER_NETWORK, RULE_NETWORK_LOOPBACK,
	    "the host's abstract sockets are another network namespace's");
	say(maker, connect, ENFORCEMENT_EXACT, LAYER_SECCOMP, RULE_SYSCALL_ALLOWLIST,
	    "socket families: unix, IPv4, IPv6 (TCP and UDP) and route netlink; no vsock, packet, "
	    "AF_ALG, MPTCP or io_uring");
	if (!maker->policy->listener_count)
		return;
	line = explainer_answer(maker, connect, ENFORCEMENT_EXACT, LAYER_NETWORK,
				rule_builtin(RULE_NETWORK_LOOPBACK));
	line->text = "listeners on the box's loopback that the supervisor holds";
	for (size_t i = 0; i < maker->policy->listener_count; i++)
		explain_item(maker, line,
			     arena_format(maker->arena, "port %u",
					  (unsigned)maker->policy->listeners[i].port));
}

static void explain_variables(struct maker *maker)
{
	const struct policy *policy = maker->policy;
	size_t before = maker->explanation.count;
	struct explain_answer *line;

	for (size_t i = 0; i < policy->variable_count; i++) {
		struct rule_ref rule = policy->rules[policy->variables[i].rule];
		struct explain_answer *at = NULL;

		for (size_t j = before; j < maker->explanation.count && !at; j++)
			if (rule_is_same(&maker->explanation.answers[j].rule, &rule))
				at = &maker->explanation.answers[j];
		if (!at) {
			at = explainer_answer(maker, EXPLAIN_IDENTITY, ENFORCEMENT_EXACT,
					      LAYER_ENVIRONMENT, rule);
			at->text = rule.file ? "variables that were asked for; a secret among them "
					       "is the task's to use" :
					       "variables";
		}
		explain_item(maker, at, policy->variables[i].name);
	}
	if (!maker->facts->withheld_count)
		return;
	line = explainer_answer(maker, EXPLAIN_IDENTITY, ENFORCEMENT_EXACT, LAYER_ENVIRONMENT,
				rule_builtin(RULE_ENVIRONMENT_ALLOWLIST));
	line->text = "not passed: the caller's";
	for (size_t i = 0; i < maker->facts->withheld_count; i++)
		explain_item(maker, line, maker->facts->withheld[i]);
}

static void explain_identity(struct maker *maker)
{
	const struct policy *policy = maker->policy;
	const enum explain_question identity = EXPLAIN_IDENTITY;
	bool nested = policy->flags & POLICY_NESTED_USERNS;

	explainer_answer(maker, identity, ENFORCEMENT_EXACT, LAYER_USER_NAMESPACE,
			 rule_builtin(RULE_HOME_PRIVATE))
		->text = arena_format(
		maker->arena,
		maker->facts->host_root ?
			"user %s, uid %u, gid %u inside; outside an id that is nobody's, never the "
			"host's root" :
			"user %s, uid %u, gid %u, inside and outside: files that it makes are the "
			"caller's",
		policy->user, policy->uid, policy->gid);
	say(maker, identity, ENFORCEMENT_EXACT, LAYER_CAPABILITIES, RULE_SYSCALL_ALLOWLIST,
	    "no capability, and none to be had: the bounding set is empty and no_new_privs is set");
	say(maker, identity, ENFORCEMENT_EXACT, LAYER_MOUNT, RULE_HOME_PRIVATE,
	    "no key, token or agent of the caller's home; of the git configuration only settings "
	    "that run nothing, and the author's name and address");
	explain_variables(maker);
	if (nested)
		say(maker, identity, ENFORCEMENT_ABSENT, LAYER_SECCOMP, RULE_SYSCALL_NAMESPACE,
		    "--nested-userns: it may make user namespaces, in which it has all "
		    "capabilities over what belongs to them");
	if (policy->flags & POLICY_ALLOW_PTRACE)
		say(maker, identity, ENFORCEMENT_ABSENT, LAYER_SECCOMP, RULE_SYSCALL_PTRACE,
		    "--allow-ptrace: its processes may trace each other");
	if (!maker->facts->host_root)
		say_absent(maker, identity, LAYER_USER_NAMESPACE,
			   "gap: the caller's supplementary groups stay (an ordinary user cannot "
			   "give them up). Inside of what is shown they count as they do outside");
}

static void explain_record(struct maker *maker)
{
	const enum explain_question record = EXPLAIN_RECORD;
	struct explain_answer *line;

	line = explainer_answer(maker, record, ENFORCEMENT_EXACT, LAYER_ENVIRONMENT,
				rule_builtin(RULE_RUN_ALLOWED));
	line->text = "the compiled policy has this hash, which the result (--json, --status-fd) "
		     "repeats beside exit, usage, denials and layers";
	explain_item(maker, line, maker->facts->hash);
	if (maker->facts->is_unrecorded)
		say_absent(maker, record, LAYER_ENVIRONMENT,
			   "--no-trace: nothing is recorded; only what --json or --status-fd gives "
			   "remains");
	else
		say(maker, record, ENFORCEMENT_EXACT, LAYER_ENVIRONMENT, RULE_RUN_ALLOWED,
		    "what is about to run is on record before it starts, then what was enforced, "
		    "refused, changed and put out, each line with the hash of the one before "
		    "(bawn trace). The caller, who owns the record, could write all of it anew: a "
		    "head that is kept elsewhere tells (bawn trace head)");
	say(maker, record, ENFORCEMENT_EXACT, LAYER_SECCOMP, RULE_SYSCALL_ALLOWLIST,
	    maker->policy->flags & POLICY_NESTED_USERNS ?
		    "system calls that are refused are not reported under --nested-userns" :
		    "refused system calls of the report class are reported as they happen");
	say(maker, record, ENFORCEMENT_INFERRED, LAYER_MOUNT, RULE_SYSTEM_ABSENT,
	    "refused files and hosts are inferred from the arguments and the last of standard "
	    "error");
	say(maker, record, ENFORCEMENT_EXACT, LAYER_PID, RULE_RUN_ALLOWED,
	    "whoever started it can end all of it: a signal to bawn, or its death, ends every "
	    "process of the box");
	say(maker, record, ENFORCEMENT_EXACT, LAYER_PID, RULE_RUN_ALLOWED,
	    "from another terminal the same user lists it, follows its output, attaches, stops and "
	    "kills it (bawn ps, logs, attach, stop, kill), without its help");
	say(maker, record, ENFORCEMENT_POLLED, LAYER_PID, RULE_RUN_ALLOWED,
	    "bawn freeze and thaw: by a control group where the task has one, else by SIGSTOP, "
	    "again and again until nothing runs");
}

/* Each limit with what holds it; one that is none, with the option that would set it. */
static void explain_limit(struct maker *maker, const struct held *held)
{
	const struct limit_text *row = limit_text(held->limit);
	struct buffer CLEANUP_BUFFER words = { 0 };
	bool is_none = held->value == LIMIT_NONE;
	/* --timeout is an action's, and the task's limit follows it */
	bool is_flag = !is_none && (held->asked || held->limit == LIMIT_WALL_CLOCK);
	/* derived ones follow the option of another (limits_settle()) */
	enum limit source = held->limit == LIMIT_AREA_SIZE   ? LIMIT_DISK :
			    held->limit == LIMIT_AREA_INODES ? LIMIT_INODES :
							       held->limit;
	const char *option = limit_text(source)->option;
	uint32_t by_policy = is_flag ? maker->policy->limit_rules[source] : 0;
	struct rule_ref rule = rule_builtin(RULE_LIMIT_DEFAULT);
	struct explain_answer *line;

	held_print(held, &words);
	if (is_none && row->option)
		buffer_format(&words, "; %s sets one", row->option);
	if (by_policy)
		rule = maker->policy->rules[by_policy];
	else if (is_flag && option)
		rule = (struct rule_ref){
			.id = arena_format(maker->arena, "flag.%s", option + 2),
			.file = option,
		};
	line = explainer_answer(maker, EXPLAIN_RESOURCES,
				is_none ? ENFORCEMENT_ABSENT : held->means.grade, LAYER_LIMITS,
				rule);
	line->held = held;
	line->text = words.failed ? "" : arena_copy(maker->arena, words.data);
	maker->failed |= words.failed;
}

static void explain_resources(struct maker *maker)
{
	struct held *rows = arena_array(maker->arena, LIMIT_COUNT, sizeof(*rows));

	if (!rows)
		return;
	held_fill(&maker->policy->limits, maker->facts->limits, rows);
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++)
		if (held_concerns(limit, &maker->policy->view))
			explain_limit(maker, &rows[limit]);
}

/* What an older Landlock lacks, and who covers it. */
static const char *landlock_text(struct maker *maker, const struct plan_op *op,
				 enum enforcement *ret)
{
	unsigned abi = (unsigned)op->number;
	const char *lacks =
		abi >= 6 ? "" :
		abi >= 5 ? "; without scopes: abstract sockets and signals are held by "
			   "the network and pid namespaces" :
		abi >= 3 ? "; without scopes and device ioctls: held by the namespaces "
			   "and the mount view" :
			   "; without scopes, device ioctls and truncation: held by the "
			   "namespaces and read-only mounts";

	*ret = ENFORCEMENT_EXACT;
	if (!(op->flags & PLAN_OPTIONAL))
		return arena_format(maker->arena, "ABI %u, shown by a canary before each start%s",
				    abi, lacks);
	*ret = abi >= 6 ? ENFORCEMENT_EXACT : ENFORCEMENT_ABSENT;
	return abi >= 6 ? "scopes only (abstract sockets, signals): file rules would forbid the "
			  "mounts of a nested sandbox" :
			  "file rules would forbid the mounts of a nested sandbox, and this kernel "
			  "has no scopes";
}

/* Exact, unless a name of it is watched in a directory that the host writes too. */
static enum enforcement by_names(const struct maker *maker, enum path_class class)
{
	const struct view *view = &maker->policy->view;

	for (size_t i = 0; i < view->count; i++)
		if ((view->paths[i].class == class ||
		     (class == PATH_PROTECT && view->paths[i].class == PATH_GIT)) &&
		    state_of_row(maker, &view->paths[i]) != ROW_EXACT)
			return ENFORCEMENT_POLLED;
	return ENFORCEMENT_EXACT;
}

static void explain_layers(struct maker *maker)
{
	const struct plan_op *landlock = find(maker->plan, PLAN_LANDLOCK);
	struct rule_ref none = { .id = "" };

	for (unsigned layer = 0; layer < LAYER_COUNT; layer++) {
		bool planned = has_layer(maker->plan, layer);
		struct explain_answer *line;

		if (!planned && (layer == LAYER_HIDE || layer == LAYER_PROTECT))
			/* nothing was asked of it */
			continue;
		line = explainer_answer(maker, EXPLAIN_LAYERS,
					planned ? ENFORCEMENT_EXACT : ENFORCEMENT_ABSENT, layer,
					none);
		line->text = layer_keeps(layer);
		if (layer == LAYER_PROC && maker->policy->flags & POLICY_NESTED_USERNS) {
			/* a nested sandbox mounts its own only where ours is wholly visible */
			line->enforcement = ENFORCEMENT_INFERRED;
			line->text = "not masked and not read-only, since it may nest sandboxes: "
				     "the kernel's owners of its files alone hold it";
		}
		if (layer == LAYER_HIDE || layer == LAYER_PROTECT)
			line->enforcement =
				by_names(maker, layer == LAYER_HIDE ? PATH_HIDE : PATH_PROTECT);
		if (planned && layer == LAYER_LANDLOCK && landlock)
			line->text = landlock_text(maker, landlock, &line->enforcement);
	}
}

enum enforcement explain_row(const struct policy *policy, const struct plan *plan,
			     const struct view_path *row)
{
	const struct maker maker = { .policy = policy, .plan = plan };

	return state_of_row(&maker, row) == ROW_EXACT ? ENFORCEMENT_EXACT : ENFORCEMENT_POLLED;
}

/* Nothing is in force by a layer that the host lacks, whatever the plan has. */
static void withdraw_absent(struct maker *maker)
{
	for (size_t i = 0; i < maker->explanation.count; i++) {
		struct explain_answer *line = &maker->explanation.answers[i];

		if (maker->facts->absent_layers >> line->layer & 1)
			line->enforcement = ENFORCEMENT_ABSENT;
	}
}

int explain_build(const struct policy *policy, const struct plan *plan,
		  const struct explain_facts *facts, struct arena *arena,
		  struct explanation *ret_explanation, struct error *error)
{
	struct maker maker = { .policy = policy, .plan = plan, .facts = facts, .arena = arena };

	explain_command(&maker);
	explain_tier(&maker);
	explainer_strict(&maker);
	explain_terminal(&maker);
	explain_read(&maker);
	explain_write(&maker);
	explain_connect(&maker);
	explain_identity(&maker);
	explain_record(&maker);
	explain_resources(&maker);
	explain_layers(&maker);
	withdraw_absent(&maker);
	if (arena_failed(arena) || maker.failed)
		return error_errno(error, ENOMEM, "explaining");
	*ret_explanation = maker.explanation;
	return 0;
}

/* Words of the text, wrapped; returns the column behind them. */
static size_t print_wrapped(struct buffer *buffer, const char *text, size_t column)
{
	while (*text) {
		size_t length = strcspn(text, " "), before;
		char word[TEXT_COLUMNS];

		if (length >= sizeof(word))
			length = sizeof(word) - 1;
		if (column > TEXT_INDENT && column + 1 + length > TEXT_COLUMNS) {
			buffer_format(buffer, "\n%*s", (int)TEXT_INDENT, "");
			column = TEXT_INDENT;
		} else if (column > TEXT_INDENT) {
			buffer_text(buffer, " ");
			column++;
		}
		memcpy(word, text, length);
		word[length] = '\0';
		before = buffer->length;
		buffer_visible(buffer, word);
		column += buffer->length - before;
		text += length;
		text += *text == ' ';
	}
	return column;
}

static void print_item(struct buffer *buffer, const char *item, bool last, size_t *column)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	buffer_visible(&text, item);
	if (!last)
		buffer_text(&text, ",");
	if (*column + 1 + text.length > TEXT_COLUMNS && *column > TEXT_INDENT) {
		buffer_format(buffer, "\n%*s", (int)TEXT_INDENT, "");
		*column = TEXT_INDENT;
	} else if (*column > TEXT_INDENT) {
		buffer_text(buffer, " ");
		++*column;
	}
	*column += text.length;
	buffer_append(buffer, text.data ? text.data : "", text.length);
	buffer->failed |= text.failed;
}

static void print_answer(const struct explain_answer *line, struct buffer *buffer)
{
	struct buffer CLEANUP_BUFFER rule = { 0 };
	size_t column = TEXT_INDENT;

	buffer_format(buffer, "  %-*s", (int)TEXT_INDENT - 2, enforcement_name(line->enforcement));
	if (line->question == EXPLAIN_LAYERS) {
		column = print_wrapped(buffer, layer_name(line->layer), column);
		buffer_text(buffer, ":");
		column++;
	}
	column = print_wrapped(buffer, line->text, column);
	if (line->item_count) {
		buffer_text(buffer, ":");
		column++;
	}
	for (size_t i = 0; i < line->item_count; i++)
		print_item(buffer, line->items[i],
			   i + 1 == line->item_count || line->question == EXPLAIN_COMMAND, &column);
	if (line->rule.id[0]) {
		buffer_text(&rule, "[");
		rule_print(&line->rule, &rule);
		buffer_text(&rule, "]");
		if (rule.data)
			(void)print_wrapped(buffer, rule.data, column);
		buffer->failed |= rule.failed;
	}
	buffer_text(buffer, "\n");
}

void explain_print(const struct explanation *explanation, struct buffer *buffer)
{
	for (unsigned question = 0; question < EXPLAIN_QUESTION_COUNT; question++) {
		buffer_format(buffer, "%s%s\n", question ? "\n" : "", questions[question].title);
		for (size_t i = 0; i < explanation->count; i++)
			if (explanation->answers[i].question == question)
				print_answer(&explanation->answers[i], buffer);
	}
}

static void json_rule(const struct rule_ref *rule, struct json *json)
{
	if (!rule->id[0]) {
		json_null(json, "rule");
		return;
	}
	json_object(json, "rule");
	json_string(json, "id", rule->id);
	json_string(json, "file", rule->file);
	json_unsigned(json, "line", rule->line);
	json_object_end(json);
}

void explain_json(const struct explanation *explanation, struct json *json)
{
	for (unsigned question = 0; question < EXPLAIN_QUESTION_COUNT; question++) {
		json_array(json, questions[question].word);
		for (size_t i = 0; i < explanation->count; i++) {
			const struct explain_answer *line = &explanation->answers[i];

			if (line->question != question)
				continue;
			json_object(json, NULL);
			json_string(json, "enforcement", enforcement_name(line->enforcement));
			json_string(json, "layer", layer_name(line->layer));
			json_string(json, "text", line->text);
			json_array(json, "items");
			for (size_t j = 0; j < line->item_count; j++)
				json_string(json, NULL, line->items[j]);
			json_array_end(json);
			json_rule(&line->rule, json);
			if (line->held)
				held_json(line->held, "limit", json);
			json_object_end(json);
		}
		json_array_end(json);
	}
}
