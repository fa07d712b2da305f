#include "policy/document.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/quantity.h"
#include "policy/document_internal.h"
#include "policy/egress_compile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FAULT_BYTES 480

static const struct document_key_text keys[DOCUMENT_KEY_COUNT] = {
#define KEY(id, path, shape, words, missing, help) \
	[DOCUMENT_##id] = { path, words, missing, help, DOCUMENT_SHAPE_##shape },
#include "policy/document.def"
#undef KEY
};

const struct document_key_text *document_key(enum document_key key)
{
	return &keys[key];
}

enum limit document_limit(enum document_key key)
{
	return limit_of_option(keys[key].words);
}

bool document_goes_on(const struct document_reading *reading)
{
	return reading->faults->count < DOCUMENT_LIMIT_FAULTS && !arena_failed(reading->arena);
}

__attribute__((format(printf, 4, 0))) static void add_fault(struct document_reading *reading,
							    uint32_t line, uint32_t column,
							    const char *format, va_list arguments)
{
	struct document_faults *faults = reading->faults;
	char text[FAULT_BYTES];
	size_t at = faults->count;

	(void)vsnprintf(text, sizeof(text), format, arguments);
	faults->count++;
	if (at >= DOCUMENT_LIMIT_FAULTS)
		return;
	/* in the order of the file: rules are held against each other after all was read */
	while (at > 0 &&
	       (faults->rows[at - 1].line > line ||
		(faults->rows[at - 1].line == line && faults->rows[at - 1].column > column))) {
		faults->rows[at] = faults->rows[at - 1];
		at--;
	}
	faults->rows[at] = (struct document_fault){ .line = line,
						    .column = column,
						    .text = arena_copy(reading->arena, text) };
}

void document_fault(struct document_reading *reading, uint32_t line, uint32_t column,
		    const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_fault(reading, line, column, format, arguments);
	va_end(arguments);
}

void document_fault_at(struct document_reading *reading, const struct outline_node *node,
		       const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_fault(reading, node->line, node->column, format, arguments);
	va_end(arguments);
}

const char *const *document_split(struct arena *arena, const char *words, size_t *ret_count)
{
	const char **list = NULL;
	size_t count = 0;

	while (*words) {
		size_t length = strcspn(words, " ");
		const char **grown = arena_push(arena, list, count, sizeof(*grown));
		char *word = arena_copy_bytes(arena, words, length);

		if (!grown || !word)
			break;
		list = grown;
		list[count++] = word;
		words += length + (words[length] == ' ');
	}
	*ret_count = count;
	return list;
}

struct document_statement *document_add(struct document_reading *reading, enum document_key key,
					const struct outline_node *node, const char *text)
{
	struct document *document = reading->document;
	struct document_statement *grown;

	if (document->count >= DOCUMENT_LIMIT_STATEMENTS) {
		document_fault_at(reading, node, "more than %u rules", DOCUMENT_LIMIT_STATEMENTS);
		return NULL;
	}
	grown = arena_push(reading->arena, document->statements, document->count, sizeof(*grown));
	if (!grown)
		return NULL;
	document->statements = grown;
	grown += document->count++;
	*grown = (struct document_statement){
		.key = key,
		.text = text,
		.rule = { .id = keys[key].path, .file = document->file, .line = node->line },
		.column = node->column,
	};
	return grown;
}

static void read_limit(struct document_reading *reading, enum document_key key,
		       const struct outline_node *node)
{
	static const char option[] = "option --";
	struct error error = ERROR_NONE;
	struct document_statement *statement;
	uint64_t value = 0;

	if (limit_parse(document_limit(key), node->text, &value, &error) < 0) {
		const char *said = error.message;

		if (strncmp(said, option, sizeof(option) - 1) == 0)
			said += sizeof(option) - 1;
		document_fault_at(reading, node, "limits.%s", said);
		return;
	}
	statement = document_add(reading, key, node, node->text);
	if (statement)
		statement->value = value;
}

static void read_single(struct document_reading *reading, enum document_key key,
			const struct outline_node *node)
{
	static const enum document_value values[] = {
		[DOCUMENT_SHAPE_TEXT] = VALUE_TEXT,	    [DOCUMENT_SHAPE_WORD] = VALUE_WORD,
		[DOCUMENT_SHAPE_BOOL] = VALUE_BOOL,	    [DOCUMENT_SHAPE_COUNT] = VALUE_COUNT,
		[DOCUMENT_SHAPE_DURATION] = VALUE_DURATION,
	};
	const struct document_key_text *text = &keys[key];
	struct document_statement *statement;
	uint64_t number = 0;
	const char *taken;

	if (text->shape == DOCUMENT_SHAPE_LIMIT && node->kind == OUTLINE_TEXT) {
		read_limit(reading, key, node);
		return;
	}
	taken = document_take(reading, node,
			      text->shape == DOCUMENT_SHAPE_LIMIT ? VALUE_TEXT :
								    values[text->shape],
			      text->words, text->path, &number);
	statement = taken ? document_add(reading, key, node, taken) : NULL;
	if (statement)
		statement->value = number;
}

/* The key that the map has twice; a map of the outline is short, or full of faults. */
static bool is_repeated(struct document_reading *reading, const struct outline_node *map,
			const struct outline_node *key)
{
	const struct outline *outline = reading->outline;

	for (const struct outline_node *other = outline_first(outline, map); other != key;
	     other = outline_next(outline, map, outline_next(outline, map, other)))
		if (strcmp(other->text, key->text) == 0) {
			document_fault_at(reading, key, "\"%.64s\" stands twice, first in line %u",
					  key->text, other->line);
			return true;
		}
	return false;
}

/* Each one costs a start a comparison with all before. */
#define SET_LIMIT 512

static void read_set(struct document_reading *reading, enum document_key key,
		     const struct outline_node *map)
{
	const struct outline *outline = reading->outline;
	const struct outline_node *node = outline_first(outline, map);
	size_t count = 0;

	for (; node && document_goes_on(reading);) {
		const struct outline_node *value = outline_next(outline, map, node);
		const char *name, *text = NULL;

		if (++count > SET_LIMIT) {
			document_fault_at(reading, node, "%s: more than %d variables",
					  keys[key].path, SET_LIMIT);
			return;
		}
		name = is_repeated(reading, map, node) ?
			       NULL :
			       document_take(reading, node, VALUE_NAME, "", keys[key].path, NULL);
		/* an empty value is one */
		if (name)
			text = value->kind == OUTLINE_TEXT && !value->text[0] && !value->is_plain ?
				       "" :
				       document_take(reading, value, VALUE_TEXT, "", name, NULL);
		if (text) {
			struct document_statement *statement =
				document_add(reading, key, node, text);

			if (statement)
				statement->name = name;
		}
		node = outline_next(outline, map, value);
	}
}

static void read_value(struct document_reading *reading, enum document_key key,
		       const struct outline_node *node)
{
	enum document_shape shape = keys[key].shape;

	if (shape <= DOCUMENT_SHAPE_LIMIT)
		read_single(reading, key, node);
	else if (shape == DOCUMENT_SHAPE_SET && node->kind == OUTLINE_MAP)
		read_set(reading, key, node);
	else if (shape == DOCUMENT_SHAPE_SET)
		document_fault_at(reading, node, "%s takes a map: {NAME: value}", keys[key].path);
	else if (node->kind == OUTLINE_LIST)
		document_read_list(reading, key, node);
	else
		document_fault_at(reading, node,
				  "%s takes a list: [...], or lines that begin with "
				  "\"- \"",
				  keys[key].path);
}

/* The key, or where path names a section the first key below it; DOCUMENT_KEY_COUNT. */
static enum document_key find_key(const char *path, bool *ret_is_section)
{
	size_t length = strlen(path);

	for (enum document_key key = 0; key < DOCUMENT_KEY_COUNT; key++) {
		if (strncmp(keys[key].path, path, length) != 0)
			continue;
		*ret_is_section = keys[key].path[length] == '.';
		if (*ret_is_section || !keys[key].path[length])
			return key;
	}
	return DOCUMENT_KEY_COUNT;
}

/* A key that stands in another section, or else the nearest one of this. */
static void refuse_key(struct document_reading *reading, const struct outline_node *node,
		       const char *section)
{
	const char *words[DOCUMENT_KEY_COUNT];
	size_t count = 0, length = strlen(section);

	for (enum document_key key = 0; key < DOCUMENT_KEY_COUNT; key++) {
		const char *path = keys[key].path, *dot = strrchr(path, '.');
		const char *below = path + length + (length > 0);

		if (dot && strcmp(dot + 1, node->text) == 0) {
			document_fault_at(reading, node, "unknown key \"%.64s\"; it is %s",
					  node->text, path);
			return;
		}
		if (strncmp(path, section, length) != 0 || (length && path[length] != '.'))
			continue;
		words[count] = arena_copy_bytes(reading->arena, below, strcspn(below, "."));
		if (words[count])
			count++;
	}
	document_fault_at(reading, node, "unknown key \"%.64s\"%s%s%s", node->text,
			  length ? " in " : "", section,
			  document_hint(reading, node->text, words, count));
}

static void read_map(struct document_reading *reading, const struct outline_node *map,
		     const char *section)
{
	const struct outline *outline = reading->outline;
	const struct outline_node *node = outline_first(outline, map);

	while (node && document_goes_on(reading)) {
		const struct outline_node *value = outline_next(outline, map, node);
		const char *path =
			section[0] ? arena_format(reading->arena, "%s.%.64s", section, node->text) :
				     node->text;
		bool is_section = false;
		enum document_key key = path && path[0] ? find_key(path, &is_section) :
							  DOCUMENT_KEY_COUNT;

		if (is_repeated(reading, map, node))
			;
		else if (key == DOCUMENT_KEY_COUNT || (is_section && section[0]))
			refuse_key(reading, node, section);
		else if (!is_section)
			read_value(reading, key, value);
		else if (value->kind == OUTLINE_MAP)
			/* sections have no sections: one level deep */
			read_map(reading, value, path);
		else
			document_fault_at(reading, value,
					  "%s is a section: its keys stand below "
					  "it, indented",
					  path);
		node = outline_next(outline, map, value);
	}
}

static void check_version(struct document_reading *reading, const struct outline_node *whole)
{
	const struct document_statement *version =
		document_find(reading->document, DOCUMENT_VERSION);

	if (!outline_find(reading->outline, whole, "version"))
		document_fault_at(reading, whole,
				  "no version; a policy begins with \"version: 1\"");
	else if (version && version->value != DOCUMENT_FORM)
		document_fault(reading, version->rule.line, version->column,
			       "version %s: this build reads version %u", version->text,
			       DOCUMENT_FORM);
}

int document_read(const struct outline *outline, const struct document_facts *facts,
		  struct arena *arena, struct document *ret_document,
		  struct document_faults *faults)
{
	struct document document = { .file = facts->file };
	struct document_reading reading = {
		.outline = outline,
		.facts = facts,
		.arena = arena,
		.document = &document,
		.faults = faults,
	};

	faults->count = 0;
	if (!outline->count)
		document_fault(&reading, outline->fault.line, outline->fault.column, "%s",
			       outline->fault.text);
	else if (outline->nodes[0].kind != OUTLINE_MAP)
		document_fault_at(&reading, outline->nodes,
				  "not a policy: it is lines of \"key: value\"");
	else {
		read_map(&reading, outline->nodes, "");
		check_version(&reading, outline->nodes);
		document_check_rules(&reading);
	}
	if (arena_failed(arena))
		return -ENOMEM;
	if (faults->count)
		return -EINVAL;
	*ret_document = document;
	return 0;
}

static bool is_lockable(enum document_key key)
{
	static const enum document_key not [] = { DOCUMENT_VERSION, DOCUMENT_NAME, DOCUMENT_PRESET,
						  DOCUMENT_LOCK, DOCUMENT_TESTS };

	for (size_t i = 0; i < sizeof(not ) / sizeof(not [0]); i++)
		if (not [i] == key)
			return false;
	return true;
}

const char *document_lockable(struct arena *arena)
{
	struct buffer words = { .arena = arena };
	size_t section = 0;

	for (enum document_key key = 0; key < DOCUMENT_KEY_COUNT; key++) {
		const char *path = keys[key].path;
		size_t length = strcspn(path, ".");

		if (!is_lockable(key))
			continue;
		if (words.length)
			buffer_byte(&words, ' ');
		/* keys of one section stand together */
		if (path[length] &&
		    (length != section || strncmp(keys[key - 1].path, path, length) != 0)) {
			buffer_append(&words, path, length);
			buffer_byte(&words, ' ');
		}
		section = path[length] ? length : 0;
		buffer_text(&words, path);
	}
	return words.failed ? "" : words.data;
}

const struct document_statement *document_lock(const struct document *document,
					       enum document_key key)
{
	const char *path = keys[key].path;

	for (size_t i = 0; i < document->count; i++) {
		const struct document_statement *statement = &document->statements[i];
		size_t length = statement->key == DOCUMENT_LOCK ? strlen(statement->text) : 0;

		if (length && strncmp(path, statement->text, length) == 0 &&
		    (!path[length] || path[length] == '.'))
			return statement;
	}
	return NULL;
}

/* A single value counts as the last document has it. */
static bool is_replaced(const struct document *const *later, size_t count,
			const struct document_statement *statement)
{
	if (keys[statement->key].shape > DOCUMENT_SHAPE_LIMIT)
		return false;
	for (size_t i = 0; i < count; i++)
		if (document_find(later[i], statement->key))
			return true;
	return false;
}

int document_join(const struct document *const *documents, size_t count, struct arena *arena,
		  struct document *ret_document)
{
	struct document joined = { .file = count ? documents[count - 1]->file : "" };
	size_t total = 0;

	/* statements are not changed once they are made */
	if (count == 1) {
		*ret_document = *documents[0];
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		total += documents[i]->count;
	joined.statements = arena_array(arena, total + 1, sizeof(*joined.statements));
	if (!joined.statements)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < documents[i]->count; j++) {
			const struct document_statement *statement = &documents[i]->statements[j];

			if (!is_replaced(documents + i + 1, count - i - 1, statement))
				joined.statements[joined.count++] = *statement;
		}
	*ret_document = joined;
	return 0;
}

const struct document_statement *document_find(const struct document *document,
					       enum document_key key)
{
	for (size_t i = document->count; i-- > 0;)
		if (document->statements[i].key == key)
			return &document->statements[i];
	return NULL;
}

const char *document_detail(const struct document_statement *statement, const char *field)
{
	for (size_t i = 0; i < statement->detail_count; i++)
		if (strcmp(statement->details[i].field, field) == 0)
			return statement->details[i].text;
	return NULL;
}

const char *document_missing(const struct document_statement *statement, struct arena *arena)
{
	const struct document_key_text *key = &keys[statement->key];
	const char *at = key->missing;

	if (!at[0])
		return NULL;
	if (key->shape == DOCUMENT_SHAPE_BOOL)
		return statement->value ? at : NULL;
	if (key->shape != DOCUMENT_SHAPE_WORD)
		return at;
	while (*at) {
		size_t word = strcspn(at, "="), length = strcspn(at, ";");

		if (strlen(statement->text) == word && strncmp(at, statement->text, word) == 0)
			return arena_copy_bytes(arena, at + word + 1, length - word - 1);
		at += length + (at[length] == ';');
	}
	return NULL;
}

const char *document_unbuilt(const struct document_statement *statement, struct arena *arena)
{
	const char *text = document_missing(statement, arena);

	if (text)
		return arena_format(arena, "needs %s", text);
	text = egress_compile_missing(statement, arena);
	return text ? arena_format(arena, "%.200s %s", statement->text, text) : NULL;
}

void document_print_faults(const struct document_faults *faults, const char *file,
			   struct buffer *buffer)
{
	size_t shown = faults->count < DOCUMENT_LIMIT_FAULTS ? faults->count :
							       DOCUMENT_LIMIT_FAULTS;

	for (size_t i = 0; i < shown; i++) {
		const struct document_fault *fault = &faults->rows[i];

		buffer_visible(buffer, file);
		buffer_format(buffer, ":%u:%u: ", fault->line, fault->column);
		buffer_visible(buffer, fault->text ? fault->text : "out of memory");
		buffer_text(buffer, "\n");
	}
	if (faults->count >= DOCUMENT_LIMIT_FAULTS)
		buffer_text(buffer, "more is wrong; the rest was not read\n");
}
