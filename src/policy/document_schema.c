/* The JSON schema of policy files, from the same tables as the loader. */
#include "policy/document_internal.h"

#include "base/arena.h"
#include "base/json.h"

#include <string.h>

static void put_type(struct json *json, const char *type)
{
	json_string(json, "type", type);
}

static void put_words(struct json *json, const char *words)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	size_t count;
	const char *const *list = document_split(&arena, words, &count);

	json_array(json, "enum");
	for (size_t i = 0; i < count; i++)
		json_string(json, NULL, list[i]);
	json_array_end(json);
}

static void put_lockable(struct json *json)
{
	struct arena CLEANUP_ARENA arena = { 0 };

	put_words(json, document_lockable(&arena));
}

/* A number without quotes is one for the loader too, where digits alone are a value. */
static void put_text_or_number(struct json *json)
{
	json_array(json, "type");
	json_string(json, NULL, "string");
	json_string(json, NULL, "number");
	json_array_end(json);
}

static void put_value(struct json *json, enum document_value value, const char *words)
{
	switch (value) {
	case VALUE_WORD:
		put_words(json, words);
		break;
	case VALUE_LOCK:
		put_lockable(json);
		break;
	case VALUE_BOOL:
		put_type(json, "boolean");
		break;
	case VALUE_COUNT:
	case VALUE_SIZE:
	case VALUE_PORT:
		put_text_or_number(json);
		break;
	case VALUE_DURATION:
		put_type(json, "string");
		json_string(json, "pattern", "^[1-9][0-9]*(ms|s|m|h|d)$");
		break;
	case VALUE_DATE:
		put_type(json, "string");
		json_string(json, "format", "date");
		break;
	case VALUE_ID:
		put_type(json, "string");
		json_string(json, "pattern", "^[a-z0-9.-]{1,64}$");
		break;
	default:
		put_type(json, "string");
		json_unsigned(json, "minLength", 1);
	}
}

static void put_list(struct json *json, enum document_value value, const char *words)
{
	put_type(json, "array");
	json_object(json, "items");
	put_value(json, value, words);
	json_object_end(json);
}

static void put_rule(struct json *json, const struct document_fields *fields)
{
	put_type(json, "object");
	json_bool(json, "additionalProperties", false);
	json_array(json, "required");
	for (size_t i = 0; i < fields->count; i++)
		if (fields->rows[i].needed)
			json_string(json, NULL, fields->rows[i].name);
	json_array_end(json);
	json_object(json, "properties");
	for (size_t i = 0; i < fields->count; i++) {
		const struct document_field *field = &fields->rows[i];

		json_object(json, field->name);
		json_string(json, "description", field->help);
		if (field->many)
			put_list(json, field->value, field->words);
		else
			put_value(json, field->value, field->words);
		json_object_end(json);
	}
	json_object_end(json);
}

static void put_rules(struct json *json, enum document_shape shape)
{
	const struct document_fields *fields = document_fields(shape);

	put_type(json, "array");
	json_object(json, "items");
	if (fields->has_short_form) {
		json_array(json, "anyOf");
		json_object(json, NULL);
		put_value(json, document_item(shape), "");
		json_object_end(json);
		json_object(json, NULL);
	}
	put_rule(json, fields);
	if (fields->has_short_form) {
		json_object_end(json);
		json_array_end(json);
	}
	json_object_end(json);
}

static void put_single(struct json *json, const struct document_key_text *text)
{
	switch (text->shape) {
	case DOCUMENT_SHAPE_WORD:
		put_value(json, VALUE_WORD, text->words);
		break;
	case DOCUMENT_SHAPE_BOOL:
		put_value(json, VALUE_BOOL, "");
		break;
	case DOCUMENT_SHAPE_COUNT:
		json_unsigned(json, "const", DOCUMENT_FORM);
		break;
	case DOCUMENT_SHAPE_DURATION:
		put_value(json, VALUE_DURATION, "");
		break;
	case DOCUMENT_SHAPE_LIMIT:
		put_text_or_number(json);
		break;
	default:
		put_value(json, VALUE_TEXT, "");
	}
}

static void put_key(struct json *json, const struct document_key_text *text, const char *name)
{
	json_object(json, name);
	json_string(json, "description", text->help);
	if (text->shape <= DOCUMENT_SHAPE_LIMIT) {
		put_single(json, text);
	} else if (text->shape == DOCUMENT_SHAPE_SET) {
		put_type(json, "object");
		json_object(json, "additionalProperties");
		put_type(json, "string");
		json_object_end(json);
	} else if (document_fields(text->shape)->count) {
		put_rules(json, text->shape);
	} else {
		put_list(json, document_item(text->shape), text->words);
	}
	json_object_end(json);
}

/* Keys of one section stand together in document.def. */
static void put_keys(struct json *json)
{
	char section[64] = "";

	for (enum document_key key = 0; key < DOCUMENT_KEY_COUNT; key++) {
		const struct document_key_text *text = document_key(key);
		const char *dot = strchr(text->path, '.');
		size_t length = dot ? (size_t)(dot - text->path) : 0;
		bool is_same = strlen(section) == length &&
			       strncmp(section, text->path, length) == 0;

		if (!is_same && section[0]) {
			json_object_end(json);
			json_object_end(json);
		}
		if (!is_same) {
			memcpy(section, text->path, length);
			section[length] = '\0';
		}
		if (!is_same && section[0]) {
			json_object(json, section);
			put_type(json, "object");
			json_bool(json, "additionalProperties", false);
			json_object(json, "properties");
		}
		put_key(json, text, dot ? dot + 1 : text->path);
	}
	if (section[0]) {
		json_object_end(json);
		json_object_end(json);
	}
}

void document_schema(struct json *json)
{
	json_object(json, NULL);
	json_string(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_string(json, "title", "A policy of bawn, version 1");
	put_type(json, "object");
	json_bool(json, "additionalProperties", false);
	json_array(json, "required");
	json_string(json, NULL, "version");
	json_array_end(json);
	json_object(json, "properties");
	put_keys(json);
	json_object_end(json);
	json_object_end(json);
}
