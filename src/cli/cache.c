/*
 * `bawn cache`: the projects' own layers of package caches (workspace/cache_store.h), listed, and
 * emptied where they take room or a task may have poisoned them. The host's caches below them are
 * not touched.
 */
#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/quantity.h"
#include "broker/state.h"
#include "cli/confirm.h"
#include "cli/page.h"
#include "cli/verbs.h"
#include "trace/when.h"
#include "workspace/cache_store.h"
#include "workspace/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Beginnings of a project's digits that are shorter say nothing. */
#define LIMIT_WORD 4

enum { OPTION_JSON, OPTION_ALL, OPTION_YES, OPTION_STATE_DIR };

#define STATE_DIR_ROW                                                                            \
	{                                                                                        \
		"--state-dir", "DIR", "where bawn keeps its state; default ~/.local/state/bawn", \
			false, false, OPTION_STATE_DIR                                           \
	}

static const struct option ls_options[] = {
	{ "--json", NULL, "print JSON", false, false, OPTION_JSON },
	STATE_DIR_ROW,
};

static const struct option rm_options[] = {
	{ "--all", NULL, "the caches of all projects", false, false, OPTION_ALL },
	{ "--yes", NULL, "do not ask", false, false, OPTION_YES },
	STATE_DIR_ROW,
};

struct caches {
	const char *state_path;
	bool has_json, is_all, is_yes;
	struct arena arena;
	struct caller host;
	struct state state;
	struct cache_entry *entries;
	size_t count;
	bool *is_chosen; /* one for each */
	size_t chosen;
};

#define CACHES_NONE ((struct caches){ .state = STATE_NONE })

static int take(void *context, const struct option *option, const char *value, struct error *error)
{
	struct caches *caches = context;

	switch (option->id) {
	case OPTION_JSON:
		caches->has_json = true;
		return 0;
	case OPTION_ALL:
		caches->is_all = true;
		return 0;
	case OPTION_YES:
		caches->is_yes = true;
		return 0;
	default:
		if (!value[0])
			return error_set(error, EINVAL, "option %s has an empty value",
					 option->name);
		caches->state_path = value;
		return 0;
	}
}

static int gather(struct caches *caches, struct error *error)
{
	int result = host_gather(&caches->arena, &caches->host, error);

	if (result == 0 && caches->host.inside)
		result =
			error_set(error, EPERM,
				  "inside of a box there are no caches of bawn's; use this verb on "
				  "the host");
	if (result == 0)
		result = state_open(&caches->host, caches->state_path, &caches->arena,
				    &caches->state, error);
	if (result < 0)
		return result;
	state_unmake(&caches->state);
	result = cache_list(caches->state.fd, &caches->arena, &caches->entries, &caches->count,
			    error);
	if (result < 0)
		return result;
	caches->is_chosen = arena_array(&caches->arena, caches->count + 1, sizeof(bool));
	return caches->is_chosen ? 0 : error_errno(error, ENOMEM, "the caches");
}

/* 0, or the exit status after a complaint. The first word behind the options: ret_first. */
static int begin(const struct verb *verb, int argc, char **argv, struct caches *caches,
		 int *ret_first)
{
	struct error error = ERROR_NONE;
	int result;

	*caches = CACHES_NONE;
	*ret_first = options_parse(verb, argc, argv, take, caches, &error);
	if (*ret_first < 0) {
		complain(error.message);
		return 2;
	}
	result = gather(caches, &error);
	if (result < 0)
		complain(error.message);
	return result == 0 ? 0 : result == -EPERM ? 1 : 125;
}

static void end(struct caches *caches)
{
	state_close(&caches->state);
	arena_free(&caches->arena);
}

/* "3f2a90cc01d2e4f5/npm  310M  12402 files  2026-11-30 12:00:00Z  in use" */
static void line_of(const struct cache_entry *entry, struct buffer *text)
{
	char size[QUANTITY_TEXT_BYTES], when[WHEN_TEXT_BYTES];

	quantity_tell_size(size, entry->bytes);
	when_tell(entry->used_wall_ns, when);
	buffer_format(text, "%s/%s  %s%s  %llu files  %s", entry->project, entry->name, size,
		      entry->is_cut ? " at least" : "", (unsigned long long)entry->files, when);
	buffer_text(text, entry->is_used ? "  in use\n" : "\n");
}

/* With a line for each project. */
static void list(const struct caches *caches, bool only_chosen, struct buffer *text)
{
	const struct cache_entry *last = NULL;

	for (size_t i = 0; i < caches->count; i++) {
		const struct cache_entry *entry = &caches->entries[i];

		if (only_chosen && !caches->is_chosen[i])
			continue;
		if (!last || strcmp(last->project, entry->project) != 0) {
			buffer_visible(text, entry->workspace ? entry->workspace :
								"(workspace not on record)");
			buffer_byte(text, '\n');
		}
		buffer_text(text, "  ");
		line_of(entry, text);
		last = entry;
	}
}

static void list_json(const struct caches *caches, struct buffer *text)
{
	struct json json;

	json_begin(&json, text);
	json_object(&json, NULL);
	json_unsigned(&json, "version", 1);
	json_array(&json, "caches");
	for (size_t i = 0; i < caches->count; i++) {
		const struct cache_entry *entry = &caches->entries[i];

		json_object(&json, NULL);
		json_string(&json, "project", entry->project);
		json_string(&json, "workspace", entry->workspace);
		json_string(&json, "name", entry->name);
		json_unsigned(&json, "bytes", entry->bytes);
		json_unsigned(&json, "files", entry->files);
		json_bool(&json, "cut", entry->is_cut);
		json_unsigned(&json, "used_unix_ns", entry->used_wall_ns);
		json_bool(&json, "in_use", entry->is_used);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	buffer_byte(text, '\n');
}

static int ls_verb(int argc, char **argv)
{
	struct page page = PAGE_NONE;
	struct caches caches;
	int first, status = begin(&verb_cache_ls, argc, argv, &caches, &first);

	if (status == 0 && first < argc) {
		complain("bawn cache ls takes no arguments");
		status = 2;
	}
	if (status == 0) {
		page_open(&page, !caches.has_json);
		if (caches.has_json)
			list_json(&caches, &page.text);
		else
			list(&caches, false, &page.text);
		status = page_close(&page, page.text.failed ? -ENOMEM : page_flush(&page));
		if (status < 0)
			complain("the caches could not be printed");
		status = status < 0 ? 125 : 0;
	}
	end(&caches);
	return status;
}

/* A word: PROJECT/NAME, PROJECT (the beginning will do in both), or the path of a workspace. */
static bool is_meant(const struct cache_entry *entry, const char *word)
{
	const char *slash = strchr(word, '/');
	size_t length = slash ? (size_t)(slash - word) : strlen(word);

	if (word[0] == '/')
		return entry->workspace && strcmp(entry->workspace, word) == 0;
	return length >= LIMIT_WORD && strncmp(entry->project, word, length) == 0 &&
	       (!slash || strcmp(entry->name, slash + 1) == 0);
}

static int choose_word(struct caches *caches, const char *word)
{
	const struct cache_entry *last = NULL;
	char text[ERROR_MESSAGE_BYTES];
	const char *fault = NULL;

	for (size_t i = 0; i < caches->count && !fault; i++) {
		const struct cache_entry *entry = &caches->entries[i];

		if (!is_meant(entry, word))
			continue;
		if (last && strcmp(last->project, entry->project) != 0)
			fault = "is the beginning of more than one project; type more of it";
		caches->is_chosen[i] = true;
		last = entry;
	}
	if (!last)
		fault = "is no cache that there is; `bawn cache ls` lists them";
	if (!fault)
		return 0;
	(void)snprintf(text, sizeof(text), "%.200s %s", word, fault);
	complain(text);
	return 1;
}

static int choose(struct caches *caches, char **words)
{
	int status = 0;

	if (!*words == !caches->is_all) {
		complain("bawn cache rm takes PROJECT/NAME, PROJECT, the path of a workspace, or "
			 "--all; `bawn cache ls` lists them");
		return 2;
	}
	for (; *words && status == 0; words++)
		status = choose_word(caches, *words);
	for (size_t i = 0; i < caches->count; i++) {
		caches->is_chosen[i] |= caches->is_all;
		caches->chosen += caches->is_chosen[i];
	}
	return status;
}

/* Each by itself: one that is in use does not keep the others. */
static int discard_chosen(struct caches *caches)
{
	int status = 0;

	for (size_t i = 0; i < caches->count; i++) {
		struct buffer CLEANUP_BUFFER text = { 0 };
		struct error error = ERROR_NONE;
		int result;

		if (!caches->is_chosen[i])
			continue;
		result =
			cache_discard(&caches->host, caches->state.fd, &caches->entries[i], &error);
		if (result < 0) {
			complain(error.message);
			status = result == -EBUSY && status != 125 ? 1 : 125;
			continue;
		}
		buffer_text(&text, "removed: ");
		line_of(&caches->entries[i], &text);
		print_buffer(&text);
	}
	return status;
}

static int rm_verb(int argc, char **argv)
{
	struct buffer CLEANUP_BUFFER text = { 0 };
	struct caches caches;
	char question[128];
	int first, status = begin(&verb_cache_rm, argc, argv, &caches, &first);

	if (status == 0)
		status = choose(&caches, argv + first);
	if (status == 0 && caches.chosen) {
		if (!caches.is_yes) {
			list(&caches, true, &text);
			print_buffer(&text);
		}
		(void)snprintf(question, sizeof(question), "Remove %zu cache%s for good?",
			       caches.chosen, caches.chosen == 1 ? "" : "s");
		if (confirm(question, caches.is_yes, &status))
			status = discard_chosen(&caches);
	}
	end(&caches);
	return status;
}

/* Alone it lists. */
static int cache_verb(int argc, char **argv)
{
	if (argc == 1 || argv[1][0] == '-')
		return ls_verb(argc, argv);
	return verb_run_sub(&verb_cache, argc, argv);
}

const struct verb verb_cache_ls = {
	.name = "cache ls",
	.synopsis = "",
	.summary = "List the projects' own package caches: size, files, last use.",
	.options = ls_options,
	.option_count = sizeof(ls_options) / sizeof(ls_options[0]),
	.exit_status = "0 printed; 1 inside of a box; 2 wrong use; 125 bawn itself failed",
	.run = ls_verb,
};

const struct verb verb_cache_rm = {
	.name = "cache rm",
	.synopsis = "PROJECT[/NAME]... | WORKSPACE...",
	.summary = "Empty projects' own package caches; the host's are not touched.",
	.options = rm_options,
	.option_count = sizeof(rm_options) / sizeof(rm_options[0]),
	.exit_status = "0 done; 1 there is no such cache, a task uses it, or the answer was no; "
		       "2 wrong use, or nobody to ask; 125 bawn itself failed",
	.run = rm_verb,
};

static const struct verb *const subs[] = { &verb_cache_ls, &verb_cache_rm };

const struct verb verb_cache = {
	.name = "cache",
	.synopsis = "[VERB] [options] ...",
	.summary = "List the projects' own package caches, or empty them.",
	.subs = subs,
	.sub_count = sizeof(subs) / sizeof(subs[0]),
	.exit_status = "of each verb, as `bawn help cache VERB` tells; alone it lists; 2 no such "
		       "verb",
	.run = cache_verb,
};
