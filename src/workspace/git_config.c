#include "workspace/git_config.h"

#include "base/arena.h"
#include "base/error.h"
#include "workspace/git_config_edit.h"
#include "workspace/git_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A remote has one URL, seldom a few; each is looked at whenever something leads to the remote. */
#define URLS_LIMIT 16u

enum { BEFORE, AFTER, NOW, DOCUMENTS };

enum subsection { SUB_NONE, SUB_BRANCH, SUB_REMOTE, SUB_MODULE, SUB_COLOR, SUB_ADDRESS };

enum check {
	/* of the value alone */
	CHECK_BOOL,
	CHECK_NUMBER,
	CHECK_NUMBER_OR, /* a number or one of the words */
	CHECK_WORD,
	CHECK_PLAIN,
	CHECK_LINES,
	CHECK_COLOR,
	CHECK_SORT,
	CHECK_BELOW,
	CHECK_REF,
	CHECK_REF_OR_DOT,
	CHECK_FULL_REF,
	CHECK_FETCH,
	/* of what else the texts have */
	CHECK_PUSH,
	CHECK_URL,
	CHECK_PUSH_URL,
	CHECK_MODULE_URL,
	CHECK_UPSTREAM,
	CHECK_PUSH_UPSTREAM,
};

struct rule {
	const char *section;
	enum subsection subsection;
	const char *key;
	enum check check;
	const char *words;
};

static const struct rule rules[] = {
#define GIT_KEY(section, subsection, key, check, words) \
	{ section, SUB_##subsection, key, CHECK_##check, words },
#include "workspace/git_key.def"
#undef GIT_KEY
};

enum state {
	SAME, /* nothing to do */
	APPLY,
	HELD,
};

/* What the three texts have of one key. */
struct key {
	const char *section, *name;
	struct git_values values[DOCUMENTS];
	const struct rule *rule; /* NULL: none allows it */
	enum state state;
	enum git_config_reason reason; /* of HELD */
};

struct merge {
	struct arena *arena;
	struct git_document documents[DOCUMENTS];
	struct git_index index;
	struct key *keys;
	size_t count;
	struct git_config_held *held;
	size_t held_count;
};

/* The subsection of "branch.main", or NULL. */
static const char *subsection_of(const char *section)
{
	const char *dot = strchr(section, '.');

	return dot ? dot + 1 : NULL;
}

static bool is_in(const char *section, const char *name)
{
	size_t length = strlen(name);

	return strncmp(section, name, length) == 0 &&
	       (section[length] == '\0' || section[length] == '.');
}

static const struct rule *find_rule(const char *section, const char *key)
{
	bool has_subsection = subsection_of(section);

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if ((rules[i].subsection != SUB_NONE) == has_subsection &&
		    is_in(section, rules[i].section) &&
		    (rules[i].key[0] == '*' || strcmp(rules[i].key, key) == 0))
			return &rules[i];
	return NULL;
}

static bool is_safe_subsection(enum subsection kind, const char *name)
{
	switch (kind) {
	case SUB_NONE:
		return true;
	case SUB_BRANCH:
		return git_value_is_ref(name);
	case SUB_REMOTE:
		return git_value_is_remote(name);
	case SUB_MODULE:
		return git_value_is_module(name);
	case SUB_COLOR:
	case SUB_ADDRESS:
		return git_value_is_plain(name);
	}
	return false;
}

static bool is_safe_value(const struct rule *rule, const char *value)
{
	if (rule->check == CHECK_BOOL)
		return git_value_is_bool(value) || git_value_is_word(value, rule->words);
	if (!value)
		return false;
	switch (rule->check) {
	case CHECK_NUMBER:
		return git_value_is_number(value);
	case CHECK_NUMBER_OR:
		return git_value_is_number(value) || git_value_is_word(value, rule->words);
	case CHECK_WORD:
		return git_value_is_word(value, rule->words);
	case CHECK_PLAIN:
		return git_value_is_plain(value);
	case CHECK_LINES:
		return git_value_is_lines(value);
	case CHECK_COLOR:
		return git_value_is_color(value);
	case CHECK_SORT:
		return git_value_is_sort(value);
	case CHECK_BELOW:
		return git_value_is_below(value);
	case CHECK_REF:
		return git_value_is_ref(value);
	case CHECK_REF_OR_DOT:
		return git_value_is_ref(value) || strcmp(value, ".") == 0;
	case CHECK_FULL_REF:
		return git_value_is_ref(value) && strncmp(value, "refs/", 5) == 0;
	case CHECK_FETCH:
		return git_value_is_fetch(value);
	case CHECK_PUSH:
		return git_value_is_push(value);
	case CHECK_URL:
	case CHECK_PUSH_URL:
		return git_value_url(value) == GIT_URL_NETWORK;
	case CHECK_MODULE_URL:
		/* git itself fetches submodules from paths only if its user said so */
		return git_value_url(value) != GIT_URL_BAD;
	case CHECK_UPSTREAM:
	case CHECK_PUSH_UPSTREAM:
		return git_value_is_remote(value) || strcmp(value, ".") == 0;
	case CHECK_BOOL:
		break;
	}
	return false;
}

/* A URL of some remote that the user's configuration has: its new name may have it, too. */
static bool is_known_url(const struct merge *merge, const char *value)
{
	const struct git_document *before = &merge->documents[BEFORE];

	for (size_t i = 0; value && i < before->count; i++) {
		const struct git_entry *entry = &before->entries[i];

		if (is_in(entry->section, "remote") && entry->value &&
		    (strcmp(entry->key, "url") == 0 || strcmp(entry->key, "pushurl") == 0) &&
		    strcmp(entry->value, value) == 0)
			return git_value_is_plain(value) && !strstr(value, "::");
	}
	return false;
}

static bool are_safe_values(const struct merge *merge, const struct key *key)
{
	struct git_values after = key->values[AFTER];
	struct git_difference difference = git_values_differ(key->values[BEFORE], after);
	bool is_url = key->rule->check == CHECK_URL || key->rule->check == CHECK_PUSH_URL;

	if (is_url && after.count > URLS_LIMIT)
		return false;
	for (size_t i = 0; i < difference.right; i++) {
		const char *value = after.items[difference.first + i]->value;

		if (!is_safe_value(key->rule, value) && !(is_url && is_known_url(merge, value)))
			return false;
	}
	return true;
}

static struct git_values find(const struct merge *merge, const char *section, const char *key,
			      uint32_t document)
{
	return git_index_find(&merge->index, section, key, document);
}

static const char *last_value(struct git_values values)
{
	return values.count ? values.items[values.count - 1]->value : NULL;
}

/* NULL when memory ran out: latched in the arena, and looked at once at the end. */
static const char *section_of_remote(const struct merge *merge, const char *remote)
{
	return arena_format(merge->arena, "remote.%s", remote);
}

static struct key key_of(const struct merge *merge, const char *section, const char *name)
{
	struct key key = { .section = section, .name = name, .rule = find_rule(section, name) };

	for (uint32_t i = 0; i < DOCUMENTS; i++)
		key.values[i] = find(merge, section, name, i);
	return key;
}

static void decide(const struct merge *merge, struct key *key);

/* The remote will have a URL when all is done. */
static bool will_have_url(const struct merge *merge, const char *section)
{
	struct key url;

	if (!section)
		return false;
	url = key_of(merge, section, "url");
	if (url.values[AFTER].count == 0)
		return false;
	if (url.values[NOW].count)
		return true;
	decide(merge, &url);
	return url.state == APPLY;
}

/* Another name for the same: a remote that was renamed. */
static bool is_same_remote(const struct merge *merge, const char *before, const char *after)
{
	const char *section = section_of_remote(merge, before);
	const char *section_after = section_of_remote(merge, after);
	struct git_values urls;

	if (!section || !section_after)
		return false;
	urls = find(merge, section, "url", BEFORE);
	return urls.count && git_values_are_equal(urls, find(merge, section_after, "url", AFTER)) &&
	       git_values_are_equal(find(merge, section, "pushurl", BEFORE),
				    find(merge, section_after, "pushurl", AFTER));
}

/* The remote that a branch was pushed to, as far as its own section says. */
static const char *old_upstream(const struct merge *merge, const struct key *key)
{
	const char *value = last_value(key->values[BEFORE]);

	if (!value && key->rule->check == CHECK_PUSH_UPSTREAM)
		value = last_value(find(merge, "remote", "pushdefault", BEFORE));
	if (!value && key->rule->check == CHECK_PUSH_UPSTREAM)
		value = last_value(find(merge, key->section, "remote", BEFORE));
	return value && strcmp(value, ".") != 0 ? value : NULL;
}

static enum state hold(struct key *key, enum git_config_reason reason)
{
	key->reason = reason;
	return HELD;
}

static enum state decide_upstream(const struct merge *merge, struct key *key)
{
	const char *old = old_upstream(merge, key), *value = last_value(key->values[AFTER]);

	/* git takes the last; more than one is not its own doing */
	if (key->values[AFTER].count != 1)
		return hold(key, GIT_CONFIG_VALUE);
	if (strcmp(value, ".") == 0)
		return old && key->rule->check == CHECK_PUSH_UPSTREAM ?
			       hold(key, GIT_CONFIG_REDIRECT) :
			       APPLY;
	if (!will_have_url(merge, section_of_remote(merge, value)))
		return hold(key, GIT_CONFIG_DEPENDENT);
	if (old && strcmp(old, value) != 0 && !is_same_remote(merge, old, value))
		return hold(key, GIT_CONFIG_REDIRECT);
	return APPLY;
}

static enum state decide_remote(const struct merge *merge, struct key *key)
{
	enum check check = key->rule->check;
	bool was_there = find(merge, key->section, "url", BEFORE).count;
	bool adds = git_values_differ(key->values[BEFORE], key->values[AFTER]).right;

	if (check == CHECK_URL)
		return was_there && adds ? hold(key, GIT_CONFIG_REDIRECT) : APPLY;
	if ((check == CHECK_PUSH_URL || check == CHECK_PUSH) && was_there)
		return hold(key, GIT_CONFIG_REDIRECT);
	return will_have_url(merge, key->section) ? APPLY : hold(key, GIT_CONFIG_DEPENDENT);
}

/* A section of its own that is gone as a whole, with keys that nobody may set. */
static bool is_gone(const struct merge *merge, const char *section)
{
	const struct git_document *after = &merge->documents[AFTER];

	if (!subsection_of(section) ||
	    !(is_in(section, "branch") || is_in(section, "remote") || is_in(section, "submodule")))
		return false;
	for (size_t i = 1; i < after->block_count; i++)
		if (after->blocks[i].count && strcmp(after->blocks[i].section, section) == 0)
			return false;
	return true;
}

static enum state decide_removal(const struct merge *merge, struct key *key)
{
	const char *remote;

	if (!key->rule)
		return is_gone(merge, key->section) ? APPLY : hold(key, GIT_CONFIG_KEY);
	switch (key->rule->check) {
	case CHECK_PUSH_URL:
	case CHECK_PUSH:
		/* what kept a push from the URL, or said what to push */
		return find(merge, key->section, "url", AFTER).count ?
			       hold(key, GIT_CONFIG_REDIRECT) :
			       APPLY;
	case CHECK_PUSH_UPSTREAM:
		remote = last_value(find(merge, key->section, "remote", AFTER));
		return remote && !git_value_is_equal(remote, last_value(key->values[BEFORE])) ?
			       hold(key, GIT_CONFIG_REDIRECT) :
			       APPLY;
	default: /* the URL of a remote is decided about when all else is: hold_used() */
		return APPLY;
	}
}

static enum state decide_change(const struct merge *merge, struct key *key)
{
	if (key->values[AFTER].count == 0)
		return decide_removal(merge, key);
	if (!key->rule)
		return hold(key, GIT_CONFIG_KEY);
	if (!are_safe_values(merge, key) ||
	    !is_safe_subsection(key->rule->subsection, subsection_of(key->section)))
		return hold(key, GIT_CONFIG_VALUE);
	if (key->rule->check == CHECK_UPSTREAM || key->rule->check == CHECK_PUSH_UPSTREAM)
		return decide_upstream(merge, key);
	if (key->rule->subsection == SUB_REMOTE)
		return decide_remote(merge, key);
	if (key->rule->check == CHECK_MODULE_URL && key->values[BEFORE].count)
		return hold(key, GIT_CONFIG_REDIRECT);
	return APPLY;
}

static void decide(const struct merge *merge, struct key *key)
{
	const struct git_values *values = key->values;

	if (git_values_are_equal(values[BEFORE], values[AFTER]) ||
	    git_values_are_equal(values[NOW], values[AFTER]))
		key->state = SAME;
	else
		key->state = decide_change(merge, key);
	if (key->state == APPLY && !git_values_are_equal(values[BEFORE], values[NOW]))
		key->state = hold(key, GIT_CONFIG_CONFLICT);
}

static int collect_keys(struct merge *merge)
{
	for (size_t at = 0; at < merge->index.count;) {
		const struct git_entry *first = merge->index.entries[at];
		struct key key = {
			.section = first->section,
			.name = first->key,
			.rule = find_rule(first->section, first->key),
		};

		while (at < merge->index.count &&
		       merge->index.entries[at]->section_id == first->section_id &&
		       strcmp(merge->index.entries[at]->key, first->key) == 0) {
			struct git_values values = git_index_next(&merge->index, at);

			key.values[values.items[0]->document] = values;
			at += values.count;
		}
		merge->keys =
			arena_push(merge->arena, merge->keys, merge->count, sizeof(*merge->keys));
		if (!merge->keys)
			return -ENOMEM;
		merge->keys[merge->count++] = key;
	}
	return 0;
}

/* What the new text will have of a key. */
static struct git_values result_of(const struct key *key)
{
	return key->values[key->state == APPLY ? AFTER : NOW];
}

static bool names_remote(const struct key *key)
{
	if (strcmp(key->section, "remote") == 0)
		return strcmp(key->name, "pushdefault") == 0;
	return is_in(key->section, "branch") && subsection_of(key->section) &&
	       (strcmp(key->name, "remote") == 0 || strcmp(key->name, "pushremote") == 0);
}

/* The remote has other keys, or something leads to it: without a URL its name would be a path. */
static bool is_used(const struct merge *merge, const struct key *url)
{
	for (size_t i = 0; i < merge->count; i++) {
		const struct key *key = &merge->keys[i];
		struct git_values values = result_of(key);

		if (key == url || !values.count)
			continue;
		if (strcmp(key->section, url->section) == 0)
			return true;
		for (size_t j = 0; names_remote(key) && j < values.count; j++)
			if (git_value_is_equal(values.items[j]->value, subsection_of(url->section)))
				return true;
	}
	return false;
}

static void hold_used(struct merge *merge)
{
	for (size_t i = 0; i < merge->count; i++) {
		struct key *key = &merge->keys[i];

		if (key->state == APPLY && key->rule && key->rule->check == CHECK_URL &&
		    key->values[AFTER].count == 0 && is_used(merge, key))
			key->state = hold(key, GIT_CONFIG_DEPENDENT);
	}
}

static const char *shown(struct git_values values, size_t first, size_t count, size_t i)
{
	const char *value;

	if (i >= count)
		return NULL;
	value = values.items[first + i]->value;
	return value ? value : "true";
}

static int add_held(struct merge *merge, const struct key *key)
{
	struct git_difference difference =
		git_values_differ(key->values[BEFORE], key->values[AFTER]);
	const char *name = key->section[0] ?
				   arena_format(merge->arena, "%s.%s", key->section, key->name) :
				   key->name;

	for (size_t i = 0; i < difference.left || i < difference.right; i++) {
		merge->held = arena_push(merge->arena, merge->held, merge->held_count,
					 sizeof(*merge->held));
		if (!merge->held || !name)
			return -ENOMEM;
		merge->held[merge->held_count++] = (struct git_config_held){
			.key = name,
			.before = shown(key->values[BEFORE], difference.first, difference.left, i),
			.after = shown(key->values[AFTER], difference.first, difference.right, i),
			.reason = key->reason,
		};
	}
	return 0;
}

/* The new text has, as it is read, what was decided and nothing else: else it is not given. */
static int verify(const struct merge *merge, struct git_text text, struct error *error)
{
	struct git_document document;
	struct git_index index;
	size_t at = 0;
	int result = git_document_read(merge->arena, text, 0, "the merged configuration", &document,
				       error);

	if (result < 0)
		return result;
	if (git_index_make(merge->arena, &document, 1, &index) < 0)
		return error_errno(error, ENOMEM, "the merged configuration");
	for (size_t i = 0; i < merge->count; i++) {
		const struct key *key = &merge->keys[i];
		struct git_values wanted = result_of(key), found = git_index_next(&index, at);

		if (!wanted.count)
			continue;
		if (!git_values_are_equal(wanted, found) ||
		    strcmp(found.items[0]->section, key->section) != 0 ||
		    strcmp(found.items[0]->key, key->name) != 0)
			return error_set(error, EBADMSG,
					 "the configuration cannot be changed at %s.%s",
					 key->section, key->name);
		at += found.count;
	}
	if (at != index.count)
		return error_set(error, EBADMSG, "the configuration cannot be changed");
	return 0;
}

static int read_all(struct merge *merge, const struct git_text texts[static DOCUMENTS],
		    struct error *error)
{
	static const char *const names[DOCUMENTS] = {
		"the configuration at the start",
		"the configuration of the task",
		"the configuration of the host",
	};

	for (uint32_t i = 0; i < DOCUMENTS; i++) {
		int result = git_document_read(merge->arena, texts[i], i, names[i],
					       &merge->documents[i], error);

		if (result < 0)
			return result;
	}
	return 0;
}

static int decide_all(struct merge *merge)
{
	if (git_index_make(merge->arena, merge->documents, DOCUMENTS, &merge->index) < 0 ||
	    collect_keys(merge) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < merge->count; i++)
		decide(merge, &merge->keys[i]);
	hold_used(merge);
	for (size_t i = 0; i < merge->count; i++)
		if (merge->keys[i].state == HELD && add_held(merge, &merge->keys[i]) < 0)
			return -ENOMEM;
	return arena_failed(merge->arena) ? -ENOMEM : 0;
}

/* As they stand in the task's text; what is removed comes first. */
static int compare_keys(const void *left, const void *right)
{
	struct git_values a = (*(const struct key *const *)left)->values[AFTER];
	struct git_values b = (*(const struct key *const *)right)->values[AFTER];

	if (!a.count || !b.count)
		return (a.count > 0) - (b.count > 0);
	return a.items[0]->order < b.items[0]->order ? -1 : a.items[0]->order > b.items[0]->order;
}

/* A text without bytes where nothing is to be applied. */
static int edit_all(struct merge *merge, struct git_text *ret)
{
	const struct key **keys = arena_array(merge->arena, merge->count + 1, sizeof(*keys));
	struct git_edit edit;
	size_t count = 0;

	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < merge->count; i++)
		if (merge->keys[i].state == APPLY)
			keys[count++] = &merge->keys[i];
	*ret = (struct git_text){ 0 };
	if (!count)
		return 0;
	qsort(keys, count, sizeof(*keys), compare_keys);
	git_edit_begin(&edit, merge->arena, &merge->documents[NOW]);
	for (size_t i = 0; i < count; i++)
		git_edit_set(&edit, keys[i]->values[NOW], keys[i]->values[AFTER]);
	return git_edit_end(&edit, ret);
}

int git_config_merge(struct arena *arena, struct git_text before, struct git_text after,
		     struct git_text now, struct git_config_merge *ret, struct error *error)
{
	struct merge merge = { .arena = arena };
	struct git_text text;
	int result = read_all(&merge, (struct git_text[DOCUMENTS]){ before, after, now }, error);

	if (result < 0)
		return result;
	if (decide_all(&merge) < 0 || edit_all(&merge, &text) < 0)
		return error_errno(error, ENOMEM, "merging git configuration");
	if (text.bytes) {
		result = verify(&merge, text, error);
		if (result < 0)
			return result;
	}
	*ret = (struct git_config_merge){
		.text = text.bytes,
		.length = text.length,
		.held = merge.held,
		.held_count = merge.held_count,
	};
	return 0;
}

const char *git_config_reason_text(enum git_config_reason reason)
{
	static const char *const texts[] = {
		[GIT_CONFIG_KEY] = "a key that is not known to be harmless",
		[GIT_CONFIG_VALUE] = "a value that is not known to be harmless",
		[GIT_CONFIG_REDIRECT] = "leads a push or fetch elsewhere",
		[GIT_CONFIG_DEPENDENT] = "leads to a remote that has no URL",
		[GIT_CONFIG_CONFLICT] = "changed on the host meanwhile",
	};

	return texts[reason];
}

bool git_config_allows(const char *section, const char *key)
{
	return find_rule(section, key);
}
