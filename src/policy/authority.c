#include "policy/authority.h"

#include "base/arena.h"
#include "policy/compare.h"

#include <errno.h>
#include <string.h>

struct joining {
	struct document *joined;
	const struct document_statement *locks[DOCUMENT_KEY_COUNT];
	size_t singles[DOCUMENT_KEY_COUNT]; /* index of the value that counts, plus one */
};

const char *authority_name(enum authority authority)
{
	static const char *const names[AUTHORITY_COUNT] = { "managed", "user", "project",
							    "command line" };

	return names[authority];
}

static void note_locks(struct joining *joining, const struct document *document)
{
	for (enum document_key key = 0; key < DOCUMENT_KEY_COUNT; key++)
		if (!joining->locks[key])
			joining->locks[key] = document_lock(document, key);
}

/* An item of a list that an earlier document has, too: rules with fields are told apart by more. */
static bool is_repeated(const struct document *before, const struct document_statement *statement)
{
	enum document_shape shape = document_key(statement->key)->shape;

	if (shape <= DOCUMENT_SHAPE_LIMIT || shape >= DOCUMENT_SHAPE_SET)
		return false;
	for (size_t i = 0; i < before->count; i++)
		if (before->statements[i].key == statement->key &&
		    strcmp(before->statements[i].text, statement->text) == 0)
			return true;
	return false;
}

static void add(struct joining *joining, const struct document_statement *statement)
{
	struct document *joined = joining->joined;
	enum document_key key = statement->key;
	size_t *place = &joining->singles[key];
	const struct document_statement *before;

	if (document_key(key)->shape > DOCUMENT_SHAPE_LIMIT) {
		joined->statements[joined->count++] = *statement;
		return;
	}
	if (!*place) {
		joined->statements[joined->count++] = *statement;
		*place = joined->count;
		return;
	}
	before = &joined->statements[*place - 1];
	if (compare_is_narrower(key, statement, before))
		joined->statements[*place - 1] = *statement;
}

static int add_document(struct joining *joining, const struct document *document,
			struct authority_conflict *ret_conflict)
{
	/* a document is held against those before it, not against itself */
	const struct document before = *joining->joined;

	for (size_t i = 0; i < document->count; i++) {
		const struct document_statement *statement = &document->statements[i];
		const struct document_statement *lock = joining->locks[statement->key];

		if (lock && compare_widens(&before, statement)) {
			*ret_conflict = (struct authority_conflict){ statement, lock };
			return -EPERM;
		}
		if (!is_repeated(&before, statement))
			add(joining, statement);
	}
	note_locks(joining, document);
	return 0;
}

int authority_join(const struct document *const *documents, size_t count, struct arena *arena,
		   struct document *ret_document, struct authority_conflict *ret_conflict)
{
	struct document joined = { .file = count ? documents[count - 1]->file : "" };
	struct joining joining = { .joined = &joined };
	size_t total = 0;
	int result = 0;

	/* nobody to be held against */
	if (count == 1) {
		*ret_document = *documents[0];
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		total += documents[i]->count;
	joined.statements = arena_array(arena, total + 1, sizeof(*joined.statements));
	if (!joined.statements)
		return -ENOMEM;
	for (size_t i = 0; i < count && result == 0; i++)
		result = add_document(&joining, documents[i], ret_conflict);
	if (result == 0)
		*ret_document = joined;
	return result;
}
