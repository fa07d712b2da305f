/*
 * `bawn review`: what was kept back from the host's git directories (workspace/git_held.h) and
 * taken out of workspaces (workspace/git_held_tree.h): listed, shown, put in place after all, or
 * dropped. What is shown is a task's: nothing of it reaches the terminal that this would obey.
 */
#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "broker/state.h"
#include "cli/confirm.h"
#include "cli/page.h"
#include "cli/review_record.h"
#include "cli/review_tree.h"
#include "cli/verbs.h"
#include "workspace/git_held.h"
#include "workspace/git_held_tree.h"
#include "workspace/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Beginnings of ids that are shorter say nothing. */
#define LIMIT_WORD 4
/* Of a content, for people; --json has all of it. */
#define SHOWN_BYTES 16384

enum { OPTION_JSON, OPTION_YES, OPTION_STATE_DIR };

#define STATE_DIR_ROW                                                                            \
	{                                                                                        \
		"--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", \
			false, false, OPTION_STATE_DIR                                           \
	}

static const struct option look_options[] = {
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
	STATE_DIR_ROW,
};

static const struct option answer_options[] = {
	{ "--yes", NULL, "do not ask", false, false, OPTION_YES },
	STATE_DIR_ROW,
};

/* One thing of either store. */
struct item {
	const char *id, *task, *directory, *path, *reason;
	const struct git_held *git;	  /* NULL: of a workspace */
	const struct git_held_tree *tree; /* NULL: of a git directory */
};

struct review {
	const char *state_path;
	bool has_json, is_yes;
	struct arena arena;
	struct arena contents; /* of one thing */
	struct caller host;
	struct state state;
	struct item *items;
	size_t count, bad;
	bool *is_chosen; /* one for each item */
	size_t chosen;
};

#define REVIEW_NONE ((struct review){ .state = STATE_NONE })

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct review *review = context;

	switch (option->id) {
	case OPTION_JSON:
		review->has_json = true;
		return 0;
	case OPTION_YES:
		review->is_yes = true;
		return 0;
	default:
		if (!value[0])
			return error_set(error, EINVAL, "option %s has an empty value",
					 option->name);
		review->state_path = value;
		return 0;
	}
}

static void say(const char *word, const char *what)
{
	char text[ERROR_MESSAGE_BYTES];

	(void)snprintf(text, sizeof(text), "%.40s %s", word, what);
	complain(text);
}

static const char *path_of(const struct git_held_tree *tree)
{
	if (!tree->path)
		return "(a path that is too long)";
	return *tree->path ? tree->path : "(all that the task did there)";
}

static int list_stores(struct review *review, struct error *error)
{
	struct git_held *git;
	struct git_held_tree *trees;
	size_t git_count, tree_count, git_bad, tree_bad;
	int result =
		git_held_list(review->state.fd, &review->arena, &git, &git_count, &git_bad, error);

	if (result == 0)
		result = git_held_tree_list(review->state.fd, &review->arena, &trees, &tree_count,
					    &tree_bad, error);
	if (result < 0)
		return result;
	review->bad = git_bad + tree_bad;
	review->items =
		arena_array(&review->arena, git_count + tree_count + 1, sizeof(struct item));
	review->is_chosen = arena_array(&review->arena, git_count + tree_count + 1, sizeof(bool));
	if (!review->items || !review->is_chosen)
		return error_errno(error, ENOMEM, "what is held");
	for (size_t i = 0; i < git_count; i++)
		review->items[review->count++] = (struct item){ .id = git[i].id,
								.task = git[i].task,
								.directory = git[i].directory,
								.path = git[i].path,
								.reason = git[i].reason,
								.git = &git[i] };
	for (size_t i = 0; i < tree_count; i++)
		review->items[review->count++] = (struct item){ .id = trees[i].id,
								.task = trees[i].task,
								.directory = trees[i].directory,
								.path = path_of(&trees[i]),
								.reason = trees[i].reason,
								.tree = &trees[i] };
	return 0;
}

static int gather(struct review *review, struct error *error)
{
	int result = host_gather(&review->arena, &review->host, error);

	if (result == 0 && review->host.inside)
		result =
			error_set(error, EPERM,
				  "inside of a box nothing is reviewed; use this verb on the host");
	if (result == 0)
		result = state_open(&review->host, review->state_path, &review->arena,
				    &review->state, error);
	if (result < 0)
		return result;
	state_unmake(&review->state);
	return list_stores(review, error);
}

/* 0, or the exit status after a complaint. The first word behind the options: ret_first. */
static int begin(const struct verb *verb, int argc, char **argv, struct review *review,
		 int *ret_first)
{
	struct error error = ERROR_NONE;
	int result;

	*review = REVIEW_NONE;
	options_first(verb, argc, argv);
	*ret_first = options_parse(verb, argc, argv, take, review, &error);
	if (*ret_first < 0) {
		complain(error.message);
		return 2;
	}
	result = gather(review, &error);
	if (result < 0)
		complain(error.message);
	if (result == 0 && review->bad)
		complain("some files below held/ in the state directory cannot be read; they are "
			 "passed over");
	return result == 0 ? 0 : result == -EPERM ? 1 : 125;
}

static void end(struct review *review)
{
	state_close(&review->state);
	arena_free(&review->contents);
	arena_free(&review->arena);
}

static bool begins(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

/* A word is the beginning of one id, or a task: all of it. */
static int choose_word(struct review *review, const char *word)
{
	size_t ids = 0, last = 0, tasks = 0;

	if (strlen(word) < LIMIT_WORD) {
		say(word, "is too short for an id; `bawn review` lists them");
		return 1;
	}
	for (size_t i = 0; i < review->count; i++) {
		if (strcmp(review->items[i].task, word) == 0) {
			review->is_chosen[i] = true;
			tasks++;
		} else if (begins(review->items[i].id, word)) {
			last = i;
			ids++;
		}
	}
	if (tasks)
		return 0;
	if (ids != 1) {
		say(word, ids ? "is the beginning of more than one id; type more of it" :
				"is nothing that is held; `bawn review` lists what is");
		return 1;
	}
	review->is_chosen[last] = true;
	return 0;
}

static int choose(struct review *review, const char *verb, char **words)
{
	int status = 0;

	if (!*words) {
		say(verb, "takes ids, or tasks; `bawn review` lists them");
		return 2;
	}
	for (; *words && status == 0; words++)
		status = choose_word(review, *words);
	for (size_t i = 0; i < review->count; i++)
		review->chosen += review->is_chosen[i];
	return status;
}

static const char *what_it_does(const struct item *item)
{
	if (item->tree)
		return item->tree->path && *item->tree->path ? "" : "  (cannot be accepted)";
	return item->git->is_cut		 ? "  (too large to be kept)" :
	       item->git->kind == GIT_HELD_OTHER ? "  (cannot be accepted)" :
						   "";
}

static void line_of(const struct item *item, struct buffer *text)
{
	buffer_text(text, item->id);
	buffer_text(text, "  ");
	buffer_visible(text, item->path);
	if (item->git && item->git->key) {
		buffer_text(text, ": ");
		buffer_visible(text, item->git->key);
	}
	buffer_text(text, "  ");
	buffer_visible(text, item->reason);
	buffer_text(text, what_it_does(item));
	buffer_byte(text, '\n');
}

/* With a line for each task and git directory. */
static void list(const struct review *review, bool only_chosen, struct buffer *text)
{
	const struct item *last = NULL;

	for (size_t i = 0; i < review->count; i++) {
		const struct item *item = &review->items[i];

		if (only_chosen && !review->is_chosen[i])
			continue;
		if (!last || strcmp(last->task, item->task) != 0 ||
		    strcmp(last->directory, item->directory) != 0) {
			buffer_visible(text, item->task);
			buffer_text(text, "  ");
			buffer_visible(text, item->directory);
			buffer_byte(text, '\n');
		}
		buffer_text(text, "  ");
		line_of(item, text);
		last = item;
	}
}

/* "place" says which of the stores: kinds of both are called "file". */
static void members(const struct item *item, struct json *json)
{
	const struct git_held *git = item->git;
	const struct git_held_tree *tree = item->tree;

	json_string(json, "id", item->id);
	json_string(json, "task", item->task);
	json_string(json, "place", git ? "git" : "workspace");
	json_string(json, "directory", item->directory);
	json_string(json, "path", item->path);
	json_string(json, "key", git ? git->key : NULL);
	json_string(json, "kind",
		    git ? git_held_kind_name(git->kind) : git_held_tree_kind_name(tree->kind));
	json_string(json, "reason", item->reason);
	json_bool(json, "executable",
		  git ? git->is_executable :
			tree->kind == GIT_HELD_TREE_FILE && (tree->mode & 0111));
	json_bool(json, "cut", git && git->is_cut);
	json_unsigned(json, "wall_ns", git ? git->wall_ns : tree->wall_ns);
}

static void list_json(const struct review *review, struct buffer *text)
{
	struct json json;

	json_begin(&json, text);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_array(&json, "held");
	for (size_t i = 0; i < review->count; i++) {
		json_object(&json, NULL);
		members(&review->items[i], &json);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	buffer_byte(text, '\n');
}

static int print(struct page *page)
{
	int result = page->text.failed ? -ENOMEM : page_flush(page);

	result = page_close(page, result);
	if (result < 0)
		complain("what is held could not be printed");
	return result < 0 ? 125 : 0;
}

static int ls_verb(int argc, char **argv)
{
	struct page page = PAGE_NONE;
	struct review review;
	int first, status = begin(&verb_review_ls, argc, argv, &review, &first);

	if (status == 0 && first < argc) {
		complain("bawn review ls takes no arguments");
		status = 2;
	}
	if (status == 0) {
		page_open(&page, !review.has_json);
		if (review.has_json)
			list_json(&review, &page.text);
		else
			list(&review, false, &page.text);
		status = print(&page);
	}
	end(&review);
	return status;
}

/* Line by line with a mark, as in a comparison. */
void review_content(struct buffer *text, const char *name, char mark, struct git_text bytes)
{
	size_t length = bytes.length < SHOWN_BYTES ? bytes.length : SHOWN_BYTES;

	if (!bytes.bytes) {
		buffer_format(text, "%s: nothing\n", name);
		return;
	}
	buffer_format(text, "%s: %zu bytes\n", name, bytes.length);
	for (size_t at = 0; at < length;) {
		const char *newline = memchr(bytes.bytes + at, '\n', length - at);
		size_t size = newline ? (size_t)(newline - bytes.bytes) - at : length - at;

		buffer_byte(text, mark);
		for (size_t i = at; i < at + size;) {
			/* a NUL ends what buffer_visible() takes */
			size_t part = strnlen(bytes.bytes + i, at + size - i);
			char piece[256];

			part = part < sizeof(piece) - 1 ? part : sizeof(piece) - 1;
			memcpy(piece, bytes.bytes + i, part);
			piece[part] = '\0';
			buffer_visible(text, piece);
			i += part;
			if (i < at + size && !bytes.bytes[i]) {
				buffer_text(text, "\\x00");
				i++;
			}
		}
		buffer_byte(text, '\n');
		at += size + 1;
	}
	if (length < bytes.length)
		buffer_text(text, "and more; --json has all of it\n");
}

static void show_text(const struct item *item, struct buffer *text)
{
	const struct git_held *git = item->git;

	buffer_visible(text, item->task);
	buffer_text(text, "  ");
	buffer_visible(text, item->directory);
	buffer_byte(text, '\n');
	line_of(item, text);
	if (!git)
		return;
	if (git->is_executable)
		buffer_text(text, "executable\n");
	if (git->kind == GIT_HELD_OTHER || git->is_cut)
		return;
	review_content(text, "on the host", '-', git->before);
	review_content(text, "of the task", '+', git->after);
}

static void put_bytes(struct json *json, const char *name, struct git_text bytes)
{
	if (bytes.bytes)
		json_bytes(json, name, bytes.bytes, bytes.length);
	else
		json_null(json, name);
}

static int show_json(const struct review *review, const struct item *item, struct arena *arena,
		     struct buffer *text, struct error *error)
{
	struct json json;
	int result = 0;

	json_begin(&json, text);
	json_object(&json, NULL);
	members(item, &json);
	if (item->git) {
		put_bytes(&json, "before", item->git->before);
		put_bytes(&json, "after", item->git->after);
	} else {
		result = review_tree_json(review->state.fd, item->tree, arena, &json, error);
	}
	json_object_end(&json);
	buffer_byte(text, '\n');
	return result;
}

static int show_one(struct review *review, const struct item *listed, struct buffer *text,
		    struct error *error)
{
	struct arena *arena = &review->contents;
	struct item item = *listed;
	struct git_held git;
	int result = 0;

	arena_reset(arena);
	if (item.git) {
		result = git_held_read(review->state.fd, item.git, arena, &git, error);
		item.git = &git;
	}
	if (result < 0)
		return result;
	if (review->has_json)
		return show_json(review, &item, arena, text, error);
	show_text(&item, text);
	return item.tree ? review_tree_text(review->state.fd, item.tree, arena, text, error) : 0;
}

static int show_chosen(struct review *review, struct page *page)
{
	struct error error = ERROR_NONE;
	int result = 0;

	for (size_t i = 0; i < review->count && result == 0; i++) {
		if (!review->is_chosen[i])
			continue;
		if (show_one(review, &review->items[i], &page->text, &error) < 0) {
			complain(error.message);
			return 125;
		}
		result = page->text.failed ? -ENOMEM : page_put(page);
	}
	return 0;
}

static int show_verb(int argc, char **argv)
{
	struct page page = PAGE_NONE;
	struct review review;
	int first, status = begin(&verb_review_show, argc, argv, &review, &first);

	if (status == 0)
		status = choose(&review, "review show", argv + first);
	if (status == 0) {
		page_open(&page, !review.has_json);
		status = show_chosen(&review, &page);
		if (status == 0)
			status = print(&page);
		else
			(void)page_close(&page, 0);
	}
	end(&review);
	return status;
}

typedef int answer_one(struct review *review, const struct item *item, struct error *error);

static int accept(struct review *review, const struct item *listed, struct error *error)
{
	struct git_held item;
	int result;

	if (listed->tree)
		return git_held_tree_accept(review->state.fd, listed->tree, error);
	arena_reset(&review->contents);
	result = git_held_read(review->state.fd, listed->git, &review->contents, &item, error);
	if (result == 0)
		result = git_held_accept(&item, &review->contents, error);
	return result < 0 ? result : git_held_remove(review->state.fd, listed->git, error);
}

static int reject(struct review *review, const struct item *listed, struct error *error)
{
	return listed->tree ? git_held_tree_reject(review->state.fd, listed->tree, error) :
			      git_held_remove(review->state.fd, listed->git, error);
}

/* Of the task, and chosen. */
static bool is_of(const struct review *review, size_t number, const char *task)
{
	return review->is_chosen[number] && strcmp(review->items[number].task, task) == 0;
}

static int plan_task(struct review *review, const char *task, struct decision_list *list)
{
	int result = 0;

	for (size_t i = 0; i < review->count && result == 0; i++)
		if (is_of(review, i, task))
			result = review_record_add(list, review->state.fd, review->items[i].git,
						   review->items[i].tree, &review->arena,
						   &review->contents);
	return result;
}

/* Each by itself: one that cannot be does not keep the others. */
static int answer_each(struct review *review, const char *task, answer_one *answer,
		       const char *done, struct decision_list *list)
{
	size_t number = 0;
	int status = 0;

	memset(list->tallies, 0, sizeof(list->tallies));
	for (size_t i = 0; i < review->count; i++) {
		struct buffer CLEANUP_BUFFER text = { 0 };
		struct error error = ERROR_NONE;

		if (!is_of(review, i, task))
			continue;
		if (answer(review, &review->items[i], &error) < 0) {
			complain(error.message);
			status = 1;
			review_record_outcome(list, number++, "failed",
					      arena_copy(&review->arena, error.message));
			continue;
		}
		review_record_outcome(list, number++, done, NULL);
		buffer_format(&text, "%s: ", done);
		line_of(&review->items[i], &text);
		print_buffer(&text);
	}
	return status;
}

/* One decision, on record before and after: nothing is done where it cannot be written down. */
static int answer_task(struct review *review, const char *verb, const char *task,
		       answer_one *answer, const char *done)
{
	const struct decision_asked asked = { .task = task, .verb = verb };
	struct decision CLEANUP_DECISION decision = DECISION_NONE;
	struct decision_list list = { 0 };
	struct error error = ERROR_NONE;
	int result = plan_task(review, task, &list), status = 0;

	if (result < 0)
		error_errno(&error, result, "what is held of %s", task);
	else
		result = decision_open(review->state.fd, &asked, &decision, &error);
	if (result == 0)
		result = decision_intend(&decision, &list, &error);
	if (result == 0) {
		status = answer_each(review, task, answer, done, &list);
		result = decision_settle(&decision, &list, NULL, &error);
	}
	if (result == 0)
		return status;
	if (decision.intent[0])
		complain("it was done, but its end is not on record:");
	complain(error.message);
	return 125;
}

static int answer_chosen(struct review *review, const char *verb, answer_one *answer,
			 const char *done)
{
	int status = 0, worst = 0;

	for (size_t i = 0; i < review->count && worst != 125; i++) {
		const char *task = review->items[i].task;

		if (!review->is_chosen[i])
			continue;
		status = answer_task(review, verb, task, answer, done);
		worst = status > worst ? status : worst;
		for (size_t k = i; k < review->count; k++)
			if (is_of(review, k, task))
				review->is_chosen[k] = false;
	}
	return worst;
}

static int answer_verb(const struct verb *verb, int argc, char **argv, answer_one *answer,
		       const char *question, const char *done)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct review review;
	char asked[128];
	int first, status = begin(verb, argc, argv, &review, &first);

	if (status == 0)
		status = choose(&review, verb->name, argv + first);
	if (status == 0) {
		if (!review.is_yes) {
			list(&review, true, &text);
			print_buffer(&text);
		}
		(void)snprintf(asked, sizeof(asked), "%s %zu thing%s?", question, review.chosen,
			       review.chosen == 1 ? "" : "s");
		if (confirm(asked, review.is_yes, &status))
			status = answer_chosen(&review, verb->name, answer, done);
	}
	end(&review);
	return status;
}

static int accept_verb(int argc, char **argv)
{
	return answer_verb(&verb_review_accept, argc, argv, accept, "Put in place on the host",
			   "accepted");
}

static int reject_verb(int argc, char **argv)
{
	return answer_verb(&verb_review_reject, argc, argv, reject, "Drop for good", "rejected");
}

/* Alone it lists. */
static int review_verb(int argc, char **argv)
{
	if (argc == 1 || argv[1][0] == '-')
		return ls_verb(argc, argv);
	return verb_run_sub(&verb_review, argc, argv);
}

const struct verb verb_review_ls = {
	.name = "review ls",
	.synopsis = "",
	.summary = "List what was kept back from git directories and workspaces.",
	.options = look_options,
	.option_count = sizeof(look_options) / sizeof(look_options[0]),
	.exit_status = "0 printed; 1 inside of a box; 2 wrong use; 125 bawn itself failed",
	.run = ls_verb,
};

const struct verb verb_review_show = {
	.name = "review show",
	.synopsis = "ID... | TASK...",
	.summary = "Show what the host has and what the task made of it.",
	.options = look_options,
	.option_count = sizeof(look_options) / sizeof(look_options[0]),
	.exit_status = "0 printed; 1 nothing is held so; 2 wrong use; 125 bawn itself failed",
	.run = show_verb,
};

const struct verb verb_review_accept = {
	.name = "review accept",
	.synopsis = "ID... | TASK...",
	.summary = "Put what was kept back in its place on the host.",
	.options = answer_options,
	.option_count = sizeof(answer_options) / sizeof(answer_options[0]),
	.exit_status = "0 done; 1 nothing is held so, the host has something else there by now, it "
		       "is none that can be written, or the answer was no; 2 wrong use, or nobody "
		       "to ask; 125 bawn itself failed",
	.run = accept_verb,
};

const struct verb verb_review_reject = {
	.name = "review reject",
	.synopsis = "ID... | TASK...",
	.summary = "Drop what was kept back.",
	.options = answer_options,
	.option_count = sizeof(answer_options) / sizeof(answer_options[0]),
	.exit_status = "0 done; 1 nothing is held so, or the answer was no; 2 wrong use, or nobody "
		       "to ask; 125 bawn itself failed",
	.run = reject_verb,
};

static const struct verb *const subs[] = {
	&verb_review_ls,
	&verb_review_show,
	&verb_review_accept,
	&verb_review_reject,
};

const struct verb verb_review = {
	.name = "review",
	.synopsis = "[VERB] [options] ...",
	.summary = "Look at what was kept back from the host, accept or reject it.",
	.subs = subs,
	.sub_count = sizeof(subs) / sizeof(subs[0]),
	.exit_status =
		"of each verb, as `bawn help review VERB` tells; alone it lists; 2 no such verb",
	.run = review_verb,
};
