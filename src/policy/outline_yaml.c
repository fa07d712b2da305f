/*
 * The outline of a YAML text, by libyaml's events. Linked into bawn-parse alone, and into tests:
 * nothing else calls it.
 */
#include "policy/outline.h"

#include "base/buffer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define FAULT_BYTES 160

struct reading {
	const char *text;
	size_t length;
	yaml_parser_t parser;
	struct outline_node *rows; /* texts are owned */
	size_t count, capacity;
	uint32_t open[OUTLINE_LIMIT_DEPTH];
	bool wants_key[OUTLINE_LIMIT_DEPTH];
	size_t depth, documents;
	char fault[FAULT_BYTES];
	uint32_t line, column;
	bool no_memory;
};

static bool complain(struct reading *reading, yaml_mark_t at, const char *text)
{
	if (reading->line)
		return false;
	(void)snprintf(reading->fault, sizeof(reading->fault), "%s", text);
	reading->line = (uint32_t)at.line + 1;
	reading->column = (uint32_t)at.column + 1;
	return false;
}

/* libyaml says where a byte that is no UTF-8 stands by its offset alone. */
static yaml_mark_t mark_at(const struct reading *reading, size_t offset)
{
	yaml_mark_t mark = { 0 };

	for (size_t i = 0; i < offset && i < reading->length; i++) {
		if (reading->text[i] == '\n') {
			mark.line++;
			mark.column = 0;
		} else if (((unsigned char)reading->text[i] & 0xc0) != 0x80) {
			mark.column++;
		}
	}
	return mark;
}

static bool refuse_syntax(struct reading *reading)
{
	const yaml_parser_t *parser = &reading->parser;
	char text[FAULT_BYTES];

	if (parser->error == YAML_MEMORY_ERROR) {
		reading->no_memory = true;
		return false;
	}
	if (parser->error == YAML_READER_ERROR) {
		(void)snprintf(text, sizeof(text), "not text in UTF-8: %s",
			       parser->problem ? parser->problem : "unreadable");
		return complain(reading, mark_at(reading, parser->problem_offset), text);
	}
	(void)snprintf(text, sizeof(text), "not YAML: %s%s%s",
		       parser->problem ? parser->problem : "unreadable",
		       parser->context ? ", " : "", parser->context ? parser->context : "");
	return complain(reading, parser->problem_mark, text);
}

static bool may_grow(struct reading *reading, yaml_mark_t at)
{
	struct outline_node *grown;

	if (reading->count == OUTLINE_LIMIT_NODES)
		return complain(reading, at, "more than 65536 keys and values");
	if (reading->count < reading->capacity)
		return true;
	reading->capacity = reading->capacity ? 2 * reading->capacity : 256;
	grown = realloc(reading->rows, reading->capacity * sizeof(*grown));
	if (!grown) {
		reading->no_memory = true;
		return false;
	}
	reading->rows = grown;
	return true;
}

/* What stands in a map: a key, or the value of the one before. False where it cannot be a key. */
static bool take_turn(struct reading *reading, enum outline_kind kind, yaml_mark_t at)
{
	bool *wants_key;

	if (!reading->depth)
		return true;
	wants_key = &reading->wants_key[reading->depth - 1];
	if (reading->rows[reading->open[reading->depth - 1]].kind != OUTLINE_MAP)
		return true;
	if (*wants_key && kind != OUTLINE_TEXT)
		return complain(reading, at, "a key is a word, not a map or a list");
	*wants_key = !*wants_key;
	return true;
}

static struct outline_node *add_row(struct reading *reading, enum outline_kind kind,
				    const yaml_char_t *anchor, const yaml_char_t *tag,
				    yaml_mark_t at)
{
	struct outline_node *row;

	if (anchor)
		(void)complain(reading, at,
			       "an anchor (&): every value is written where it is used");
	else if (tag)
		(void)complain(reading, at, "a tag (!): the key says of which type a value is");
	if (reading->line || !may_grow(reading, at) || !take_turn(reading, kind, at))
		return NULL;
	row = &reading->rows[reading->count++];
	*row = (struct outline_node){ .kind = kind,
				      .line = (uint32_t)at.line + 1,
				      .column = (uint32_t)at.column + 1,
				      .end = (uint32_t)reading->count };
	return row;
}

static bool add_text(struct reading *reading, const yaml_event_t *event)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	/* "!" alone only says that it is text */
	struct outline_node *row = add_row(reading, OUTLINE_TEXT, event->data.scalar.anchor,
					   event->data.scalar.tag, event->start_mark);

	if (!row)
		return false;
	if (memchr(value, '\0', length))
		return complain(reading, event->start_mark, "a NUL byte in a value");
	row->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	row->text = strdup(value);
	reading->no_memory |= !row->text;
	return row->text != NULL;
}

static bool open_row(struct reading *reading, enum outline_kind kind, const yaml_char_t *anchor,
		     const yaml_char_t *tag, yaml_mark_t at)
{
	if (reading->depth == OUTLINE_LIMIT_DEPTH)
		return complain(reading, at, "nested deeper than any key of a policy");
	if (!add_row(reading, kind, anchor, tag, at))
		return false;
	reading->open[reading->depth] = (uint32_t)reading->count - 1;
	reading->wants_key[reading->depth++] = true;
	return true;
}

static bool begin_document(struct reading *reading, const yaml_event_t *event)
{
	if (event->data.document_start.version_directive ||
	    event->data.document_start.tag_directives.start !=
		    event->data.document_start.tag_directives.end)
		return complain(reading, event->start_mark, "a directive (%): a policy has none");
	if (reading->documents++)
		return complain(reading, event->start_mark,
				"a second document (---): a file holds one policy");
	return true;
}

/* True while there is more to read. */
static bool take_event(struct reading *reading, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return begin_document(reading, event);
	case YAML_ALIAS_EVENT:
		return complain(reading, event->start_mark,
				"an alias (*): every value is written where it is used");
	case YAML_SCALAR_EVENT:
		return add_text(reading, event);
	case YAML_SEQUENCE_START_EVENT:
		return open_row(reading, OUTLINE_LIST, event->data.sequence_start.anchor,
				event->data.sequence_start.tag, event->start_mark);
	case YAML_MAPPING_START_EVENT:
		return open_row(reading, OUTLINE_MAP, event->data.mapping_start.anchor,
				event->data.mapping_start.tag, event->start_mark);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		reading->rows[reading->open[--reading->depth]].end = (uint32_t)reading->count;
		return true;
	case YAML_STREAM_END_EVENT:
		return false;
	default:
		return true;
	}
}

static void read_events(struct reading *reading)
{
	bool more = true;

	while (more) {
		yaml_event_t event;

		if (!yaml_parser_parse(&reading->parser, &event)) {
			(void)refuse_syntax(reading);
			return;
		}
		more = take_event(reading, &event);
		yaml_event_delete(&event);
	}
	if (!reading->count)
		(void)complain(reading, (yaml_mark_t){ 0 },
			       "an empty file; a policy begins with \"version: 1\"");
}

static int write_rows(const struct reading *reading, struct buffer *buffer)
{
	const struct outline outline = {
		.nodes = reading->rows,
		.count = reading->count,
		.fault = { reading->line, reading->column, reading->fault },
	};

	return outline_write(&outline, buffer);
}

int outline_parse(const char *text, size_t length, struct buffer *buffer)
{
	struct reading reading = { .text = text, .length = length };
	int result = -ENOMEM;

	if (length > OUTLINE_LIMIT_BYTES)
		(void)complain(&reading, (yaml_mark_t){ 0 }, "larger than 1 MiB");
	else if (!yaml_parser_initialize(&reading.parser))
		return -ENOMEM;
	else {
		/* UTF-16 is text too, for libyaml */
		yaml_parser_set_encoding(&reading.parser, YAML_UTF8_ENCODING);
		yaml_parser_set_input_string(&reading.parser, (const unsigned char *)text, length);
		read_events(&reading);
		yaml_parser_delete(&reading.parser);
	}
	if (!reading.no_memory)
		result = write_rows(&reading, buffer);
	for (size_t i = 0; i < reading.count; i++)
		free((void *)(uintptr_t)reading.rows[i].text);
	free(reading.rows);
	return result;
}
