#include "policy/compare.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/path.h"

#include <errno.h>
#include <string.h>

enum sense {
	SENSE_NONE,   /* says nothing about what a task can do */
	SENSE_ALLOWS, /* more of it allows more */
	SENSE_DENIES, /* more of it denies more */
};

/*
 * says: what the key is about; of lists "%s" is the item. ranks: of words, the one that allows most
 * first. usual: what counts where nothing is said; of limits the limit's own.
 */
static const struct meaning {
	enum sense sense;
	const char *says, *ranks, *usual;
} meanings[DOCUMENT_KEY_COUNT] = {
	[DOCUMENT_LOCK] = { SENSE_DENIES, "layers and flags that widen %s", "", "" },
	[DOCUMENT_WORKSPACE] = { SENSE_ALLOWS, "a workspace that is",
				 "direct staged ephemeral read-only", "direct" },
	[DOCUMENT_CONFINEMENT] = { SENSE_ALLOWS, "confinement that is", "unrestricted enforced",
				   "enforced" },
	[DOCUMENT_APPROVAL] = { SENSE_ALLOWS, "approval", "on-request never always", "on-request" },
	[DOCUMENT_READ] = { SENSE_ALLOWS, "reading %s", "", "" },
	[DOCUMENT_WRITE] = { SENSE_ALLOWS, "writing %s", "", "" },
	[DOCUMENT_HIDE] = { SENSE_DENIES, "any look at %s", "", "" },
	[DOCUMENT_PROTECT] = { SENSE_DENIES, "changing %s", "", "" },
	[DOCUMENT_HIDE_STRICT] = { SENSE_DENIES, "hiding where a rename lifts the mask", "",
				   "false" },
	[DOCUMENT_EXEC_ALLOW] = { SENSE_ALLOWS, "starting %s", "", "" },
	[DOCUMENT_EXEC_DENY] = { SENSE_DENIES, "starting %s", "", "" },
	[DOCUMENT_EXEC_SETS] = { SENSE_DENIES, "starting the programs of %s", "", "" },
	[DOCUMENT_EXEC_STRICT] = { SENSE_DENIES, "programs that are not listed", "", "false" },
	[DOCUMENT_NET_ALLOW] = { SENSE_ALLOWS, "connecting to %s", "", "" },
	[DOCUMENT_NET_ASK] = { SENSE_ALLOWS, "connecting to %s, after a question", "", "" },
	[DOCUMENT_NET_DENY] = { SENSE_DENIES, "connecting to %s", "", "" },
	[DOCUMENT_NET_CAPTURE] = { SENSE_ALLOWS, "network.capture", "ports all", "ports" },
	[DOCUMENT_MIRRORS] = { SENSE_ALLOWS, "packages from %s", "", "" },
	[DOCUMENT_CREDENTIALS] = { SENSE_ALLOWS, "using the credential %s", "", "" },
	[DOCUMENT_TARGETS] = { SENSE_DENIES, "what is labelled %s, unasked", "", "" },
	[DOCUMENT_ASK] = { SENSE_DENIES, "%s, unasked", "", "" },
	[DOCUMENT_ASK_METHODS] = { SENSE_DENIES, "%s, unasked", "", "" },
	[DOCUMENT_TTY] = { SENSE_ALLOWS, "a terminal of an action's own", "", "true" },
	[DOCUMENT_TASKS_LIVE] = { SENSE_ALLOWS, "a task that outlives its first action", "",
				  "true" },
	[DOCUMENT_TASKS_IDLE] = { SENSE_ALLOWS, "tasks.idle", "", "" },
	[DOCUMENT_TASKS_LIFETIME] = { SENSE_ALLOWS, "tasks.lifetime", "", "" },
	[DOCUMENT_FLOOR] = { SENSE_ALLOWS, "an isolation of", "os container gvisor microvm wasi",
			     "os" },
	[DOCUMENT_ON_CHANGE] = { SENSE_ALLOWS, "isolation.on-change", "raise ask stop", "" },
	[DOCUMENT_PASS] = { SENSE_ALLOWS, "the caller's variable %s", "", "" },
	[DOCUMENT_SET] = { SENSE_ALLOWS, "the variable %s", "", "" },
	[DOCUMENT_DEVICES] = { SENSE_ALLOWS, "the device %s", "", "" },
	[DOCUMENT_USERNS] = { SENSE_ALLOWS, "sandboxes of an action's own", "", "false" },
	[DOCUMENT_PTRACE] = { SENSE_ALLOWS, "tracing of its own processes", "", "false" },
	[DOCUMENT_RECORD] = { SENSE_DENIES, "going unrecorded", "", "true" },
	[DOCUMENT_RECORD_READS] = { SENSE_DENIES, "reading files unrecorded", "", "false" },
	[DOCUMENT_EXCEPTIONS] = { SENSE_ALLOWS, "the exception for %s", "", "" },
};

struct comparing {
	const struct document *before, *after;
	struct arena *arena;
	struct differences *differences;
};

static void add(struct comparing *comparing, bool allows, const char *text,
		const struct document_statement *by)
{
	struct differences *differences = comparing->differences;
	struct difference *grown =
		arena_push(comparing->arena, differences->rows, differences->count, sizeof(*grown));

	if (!grown)
		return;
	differences->rows = grown;
	grown[differences->count++] = (struct difference){
		.allows = allows,
		.text = text,
		.rule = by ? by->rule : (struct rule_ref){ 0 },
	};
}

static bool is_read_or_write(enum document_key key)
{
	return key == DOCUMENT_READ || key == DOCUMENT_WRITE;
}

static bool has_same_details(const struct document_statement *a, const struct document_statement *b)
{
	if (document_key(a->key)->shape < DOCUMENT_SHAPE_NETWORK)
		return true;
	if (a->detail_count != b->detail_count)
		return false;
	for (size_t i = 0; i < a->detail_count; i++)
		if (strcmp(a->details[i].field, b->details[i].field) != 0 ||
		    strcmp(a->details[i].text, b->details[i].text) != 0)
			return false;
	return true;
}

/* Whether what `item` says is said by `other` too. */
static bool covers(const struct document_statement *other, const struct document_statement *item)
{
	if (is_read_or_write(item->key))
		return (other->key == item->key || other->key == DOCUMENT_WRITE) &&
		       is_read_or_write(other->key) && path_is_under(item->text, other->text);
	if (other->key != item->key || strcmp(other->text, item->text) != 0)
		return false;
	if (item->name && strcmp(other->name, item->name) != 0)
		return false;
	return has_same_details(other, item);
}

static bool is_said(const struct document *document, const struct document_statement *item)
{
	for (size_t i = 0; i < document->count; i++)
		if (covers(&document->statements[i], item))
			return true;
	return false;
}

/* "connecting to example.org (ports 443, methods GET)" */
static const char *tell_item(struct comparing *comparing, const struct document_statement *item)
{
	const char *says = meanings[item->key].says, *hole = strstr(says, "%s");
	struct buffer text = { .arena = comparing->arena };

	buffer_append(&text, says, (size_t)(hole - says));
	buffer_text(&text, item->name ? item->name : item->text);
	if (item->name)
		buffer_format(&text, "=%s", item->text);
	buffer_text(&text, hole + 2);
	if (document_key(item->key)->shape >= DOCUMENT_SHAPE_NETWORK)
		for (size_t i = 0; i < item->detail_count; i++)
			buffer_format(&text, "%s%s %s", i ? ", " : " (", item->details[i].field,
				      item->details[i].text);
	if (document_key(item->key)->shape >= DOCUMENT_SHAPE_NETWORK && item->detail_count)
		buffer_text(&text, ")");
	return text.failed ? NULL : text.data;
}

static void compare_lists(struct comparing *comparing, enum document_key key)
{
	bool allows = meanings[key].sense == SENSE_ALLOWS;

	for (size_t i = 0; i < comparing->after->count; i++) {
		const struct document_statement *item = &comparing->after->statements[i];

		if (item->key == key && !is_said(comparing->before, item))
			add(comparing, allows, tell_item(comparing, item), item);
	}
	for (size_t i = 0; i < comparing->before->count; i++) {
		const struct document_statement *item = &comparing->before->statements[i];

		if (item->key == key && !is_said(comparing->after, item))
			add(comparing, !allows, tell_item(comparing, item), NULL);
	}
}

/* How much the value allows, as a number; words by their rank. */
static uint64_t weight(enum document_key key, const struct document_statement *statement)
{
	const struct meaning *meaning = &meanings[key];
	enum document_shape shape = document_key(key)->shape;
	const char *text = statement ? statement->text : meaning->usual;
	uint64_t rank = 0;

	if (shape == DOCUMENT_SHAPE_LIMIT)
		return statement ? statement->value : limit_text(document_limit(key))->value;
	if (shape == DOCUMENT_SHAPE_DURATION)
		return statement ? statement->value : LIMIT_NONE;
	if (shape == DOCUMENT_SHAPE_BOOL)
		return strcmp(text, "true") == 0;
	for (const char *at = meaning->ranks; *at && *text; rank++) {
		size_t length = strcspn(at, " ");

		if (strlen(text) == length && strncmp(at, text, length) == 0)
			break;
		at += length + (at[length] == ' ');
	}
	return LIMIT_NONE - rank;
}

bool compare_is_narrower(enum document_key key, const struct document_statement *one,
			 const struct document_statement *than)
{
	bool is_limit = document_key(key)->shape == DOCUMENT_SHAPE_LIMIT;

	/* a name and the like say nothing about what a task can do */
	if (meanings[key].sense == SENSE_NONE && !is_limit)
		return false;
	if (meanings[key].sense == SENSE_DENIES)
		return weight(key, one) > weight(key, than);
	return weight(key, one) < weight(key, than);
}

static const char *tell_value(struct comparing *comparing, enum document_key key,
			      const struct document_statement *statement)
{
	struct buffer text = { .arena = comparing->arena };

	if (statement)
		return statement->text;
	if (document_key(key)->shape != DOCUMENT_SHAPE_LIMIT)
		return meanings[key].usual[0] ? meanings[key].usual : "none";
	limit_print(document_limit(key), limit_text(document_limit(key))->value, &text);
	buffer_text(&text, " (built in)");
	return text.failed ? NULL : text.data;
}

static void compare_values(struct comparing *comparing, enum document_key key)
{
	const struct document_statement *before = document_find(comparing->before, key);
	const struct document_statement *after = document_find(comparing->after, key);
	enum document_shape shape = document_key(key)->shape;
	bool is_limit = shape == DOCUMENT_SHAPE_LIMIT;
	const char *says = is_limit ? document_key(key)->path : meanings[key].says, *text;
	bool more = compare_is_narrower(key, before, after);

	if (weight(key, before) == weight(key, after))
		return;
	if (shape == DOCUMENT_SHAPE_BOOL)
		text = says;
	else
		text = arena_format(comparing->arena, "%s %s, before %s", says,
				    tell_value(comparing, key, after),
				    tell_value(comparing, key, before));
	add(comparing, more, text, after);
}

bool compare_widens(const struct document *document, const struct document_statement *statement)
{
	enum document_key key = statement->key;

	if (document_key(key)->shape <= DOCUMENT_SHAPE_LIMIT)
		return compare_is_narrower(key, document_find(document, key), statement);
	if (meanings[key].sense != SENSE_ALLOWS || is_said(document, statement))
		return false;
	/* where there is no list of programs all may start: the first list narrows */
	return key != DOCUMENT_EXEC_ALLOW || document_find(document, key);
}

int compare_documents(const struct document *before, const struct document *after,
		      struct arena *arena, struct differences *ret_differences)
{
	struct differences differences = { 0 };
	struct comparing comparing = { before, after, arena, &differences };

	for (enum document_key key = 0; key < DOCUMENT_KEY_COUNT; key++) {
		enum document_shape shape = document_key(key)->shape;

		if (shape != DOCUMENT_SHAPE_LIMIT && meanings[key].sense == SENSE_NONE)
			continue;
		if (shape <= DOCUMENT_SHAPE_LIMIT)
			compare_values(&comparing, key);
		else
			compare_lists(&comparing, key);
	}
	if (arena_failed(arena))
		return -ENOMEM;
	*ret_differences = differences;
	return 0;
}
