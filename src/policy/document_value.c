/* Single values of a policy file: what each kind takes, and how it says no. */
#include "policy/document_internal.h"

#include "base/arena.h"
#include "base/path.h"
#include "base/quantity.h"
#include "policy/danger.h"
#include "policy/environment.h"
#include "policy/glob.h"
#include "policy/suffix.h"

#include <string.h>

/* A reason or a purpose is a sentence. */
#define TEXT_LIMIT_BYTES 1024
#define ID_LIMIT_BYTES 64
#define HOST_LIMIT_BYTES 253

#define DIGITS "0123456789"
#define LOWER "abcdefghijklmnopqrstuvwxyz"

/* What other readers of YAML take for something else than text. */
static const char *other_type(const struct outline_node *node)
{
	static const char *const words[] = { "true", "false", "yes", "no", "on",   "off",
					     "True", "False", "Yes", "No", "TRUE", "FALSE" };
	const char *text = node->text;

	if (!node->is_plain)
		return NULL;
	if (!text[0] || strcmp(text, "~") == 0 || strcmp(text, "null") == 0)
		return "nothing";
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i]) == 0)
			return "true or false";
	if (strspn(text, DIGITS "+-._eE") == strlen(text) && strpbrk(text, DIGITS))
		return "a number";
	return NULL;
}

static const char *take_text(struct document_reading *reading, const struct outline_node *node,
			     const char *key)
{
	const char *type = other_type(node);

	if (type)
		document_fault_at(reading, node, "%s takes text, and this is %s; put it in quotes",
				  key, type);
	else if (!node->text[0])
		document_fault_at(reading, node, "%s is empty", key);
	else if (strlen(node->text) > TEXT_LIMIT_BYTES)
		document_fault_at(reading, node, "%s is longer than %d bytes", key,
				  TEXT_LIMIT_BYTES);
	else
		return node->text;
	return NULL;
}

static const char *take_word(struct document_reading *reading, const struct outline_node *node,
			     const char *words, const char *key)
{
	size_t count;
	const char *const *list = document_split(reading->arena, words, &count);

	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i], node->text) == 0)
			return list[i];
	document_fault_at(reading, node, "%s: \"%.40s\" is none of: %s%s", key, node->text, words,
			  document_hint(reading, node->text, list, count));
	return NULL;
}

static const char *take_bool(struct document_reading *reading, const struct outline_node *node,
			     const char *key, uint64_t *ret_number)
{
	static const char *const yes[] = { "yes", "on", "Yes", "On", "True", "TRUE", "y", "1" };

	if (node->is_plain && strcmp(node->text, "true") == 0) {
		*ret_number = 1;
		return "true";
	}
	if (node->is_plain && strcmp(node->text, "false") == 0) {
		*ret_number = 0;
		return "false";
	}
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (strcmp(node->text, yes[i]) == 0) {
			document_fault_at(reading, node,
					  "%s takes true or false; the nearest is \"true\"", key);
			return NULL;
		}
	document_fault_at(reading, node, "%s takes true or false, without quotes", key);
	return NULL;
}

static const char *take_quantity(struct document_reading *reading, const struct outline_node *node,
				 enum document_value value, const char *key, uint64_t *ret_number)
{
	static const struct {
		enum document_value value;
		int (*parse)(const char *text, uint64_t *ret_value);
		const char *form;
	} kinds[] = {
		{ VALUE_COUNT, quantity_count, "a count; digits alone, as in 64" },
		{ VALUE_DURATION, quantity_duration,
		  "a duration; a number with ms, s, m, h or d, as in 30s" },
		{ VALUE_SIZE, quantity_size,
		  "a size; bytes, or a number with K, M, G or T, as in 512M" },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].value != value)
			continue;
		if (kinds[i].parse(node->text, ret_number) == 0)
			return node->text;
		document_fault_at(reading, node, "%s %.40s: not %s", key, node->text,
				  kinds[i].form);
	}
	return NULL;
}

static const char *take_date(struct document_reading *reading, const struct outline_node *node,
			     const char *key)
{
	static const unsigned char days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	const char *text = node->text;
	bool has_form = strlen(text) == 10 && text[4] == '-' && text[7] == '-' &&
			strspn(text, DIGITS) == 4 && strspn(text + 5, DIGITS) == 2 &&
			strspn(text + 8, DIGITS) == 2;
	unsigned month = has_form ? (unsigned)((text[5] - '0') * 10 + text[6] - '0') : 0;
	unsigned day = has_form ? (unsigned)((text[8] - '0') * 10 + text[9] - '0') : 0;

	if (month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1])
		return text;
	document_fault_at(reading, node, "%s %.40s: not a day, as in 2026-12-31", key, text);
	return NULL;
}

static const char *take_id(struct document_reading *reading, const struct outline_node *node)
{
	const char *text = node->text;

	if (!text[0] || strlen(text) > ID_LIMIT_BYTES ||
	    strspn(text, LOWER DIGITS ".-") != strlen(text))
		document_fault_at(reading, node,
				  "id \"%.64s\": at most %d letters a to z, digits, '.' and '-'",
				  text, ID_LIMIT_BYTES);
	else if (strncmp(text, "flag.", 5) == 0)
		document_fault_at(reading, node, "id \"%s\": those of flags begin so", text);
	else {
		for (enum rule_builtin rule = 0; rule < RULE_BUILTIN_COUNT; rule++)
			if (strcmp(rule_builtin(rule).id, text) == 0) {
				document_fault_at(reading, node,
						  "id \"%s\" is that of a built-in rule", text);
				return NULL;
			}
		return text;
	}
	return NULL;
}

static const char *take_name(struct document_reading *reading, const struct outline_node *node,
			     const char *key)
{
	if (!environment_is_name(node->text))
		document_fault_at(
			reading, node, "%s: \"%.64s\" is not a variable's name%s", key, node->text,
			strpbrk(node->text, "*?[") ? "; each is named in full, without wildcards" :
						     "");
	else if (environment_is_own(node->text))
		document_fault_at(reading, node, "%s: the box sets %s itself", key, node->text);
	else
		return node->text;
	return NULL;
}

/* "~" and "~/x" filled in; others as they stand. NULL with a fault. */
static const char *fill_home(struct document_reading *reading, const struct outline_node *node,
			     const char *key)
{
	const char *text = node->text;

	if (!text[0]) {
		document_fault_at(reading, node, "%s is empty", key);
		return NULL;
	}
	if (text[0] != '~')
		return text;
	if (text[1] && text[1] != '/') {
		document_fault_at(reading, node,
				  "%s %.200s: a \"~\" stands for the caller's home alone; write "
				  "~/ or the whole path",
				  key, text);
		return NULL;
	}
	if (!reading->facts->home) {
		document_fault_at(reading, node, "%s %.200s: the caller has no home", key, text);
		return NULL;
	}
	return arena_format(reading->arena, "%s%s", reading->facts->home, text + 1);
}

static const char *take_path(struct document_reading *reading, const struct outline_node *node,
			     const char *key)
{
	const char *text = fill_home(reading, node, key), *clean;

	if (!text)
		return NULL;
	if (glob_is_pattern(text)) {
		document_fault_at(reading, node,
				  "%s %.200s: over-broad: what is shown is named in full, without "
				  "wildcards",
				  key, node->text);
		return NULL;
	}
	if (!path_is_absolute(text)) {
		document_fault_at(reading, node,
				  "%s %.200s: a path begins with / or ~/: a policy may be used "
				  "from anywhere",
				  key, node->text);
		return NULL;
	}
	clean = path_clean(reading->arena, "/", text);
	if (!clean)
		document_fault_at(reading, node,
				  "%s %.200s: not a usable path (\"..\" or too long)", key,
				  node->text);
	return clean;
}

/* Nothing but wildcards: it would take in whatever there is. */
static bool is_everything(const char *pattern)
{
	return pattern[strspn(pattern, "*?/")] == '\0';
}

static const char *take_pattern(struct document_reading *reading, const struct outline_node *node,
				const char *key)
{
	const char *text = fill_home(reading, node, key), *clean;

	if (!text)
		return NULL;
	if (is_everything(text)) {
		document_fault_at(reading, node,
				  "%s %.200s: over-broad: it takes in everything there is; name "
				  "what is meant",
				  key, node->text);
		return NULL;
	}
	if (glob_is_pattern(text)) {
		if (glob_check(text + (text[0] == '/')) == 0)
			return text;
		document_fault_at(reading, node,
				  "%s %.200s: not a pattern: a set that is not closed, \"..\", or "
				  "\"**\" beside other characters",
				  key, node->text);
		return NULL;
	}
	clean = path_clean(reading->arena, "/", text);
	if (!clean)
		document_fault_at(reading, node,
				  "%s %.200s: not a usable path (\"..\" or too long)", key,
				  node->text);
	else if (text[0] != '/')
		return clean + 1;
	return clean;
}

static const char *take_device(struct document_reading *reading, const struct outline_node *node,
			       const char *key)
{
	const char *path = take_path(reading, node, key);
	const char *danger = path ? danger_of_path(path, PATH_DEVICE, NULL, NULL) : NULL;

	if (danger)
		document_fault_at(reading, node, "%s %.200s: %s", key, node->text, danger);
	return danger ? NULL : path;
}

static const char *take_program(struct document_reading *reading, const struct outline_node *node,
				const char *key)
{
	const char *text = take_text(reading, node, key);

	if (!text)
		return NULL;
	if (text[0] == '/' || text[0] == '~')
		return take_path(reading, node, key);
	if (!strpbrk(text, "/*?[ \t"))
		return text;
	document_fault_at(reading, node,
			  "%s %.200s: a program is a name without wildcards, or a path from / on",
			  key, text);
	return NULL;
}

/* Dotted labels of letters, digits and hyphens, or an IPv4 address as it is usually written. */
static bool is_host_name(const char *name)
{
	size_t labels = 0, numeric = 0;
	const char *last = name;

	for (const char *at = name;; labels++) {
		size_t length = strcspn(at, ".");

		if (!length || length > 63 || at[0] == '-' || at[length - 1] == '-' ||
		    strspn(at, LOWER DIGITS "-") < length)
			return false;
		numeric += strspn(at, DIGITS) == length && length <= 3 &&
			   (length == 1 || at[0] != '0');
		last = at;
		if (!at[length]) {
			labels++;
			break;
		}
		at += length + 1;
	}
	/* 127.1 and 0x7f000001 are addresses for some, names for nobody */
	if (last[0] >= '0' && last[0] <= '9')
		return labels == 4 && numeric == 4;
	return true;
}

static const char *take_host(struct document_reading *reading, const struct outline_node *node,
			     const char *key, enum document_value value)
{
	const char *text = node->text;
	const char *name = strncmp(text, "*.", 2) == 0 ? text + 2 : text;
	const char *why = NULL, *type = other_type(node);

	if (type && strpbrk(text, DIGITS) == NULL) {
		document_fault_at(reading, node,
				  "%s takes a host, and this is %s; put it in quotes", key, type);
		return NULL;
	}
	/* egress_compile() says which of these are addresses and networks, and what is too broad */
	if (value == VALUE_NETWORK &&
	    (strcmp(text, "*") == 0 || (strspn(text, DIGITS "abcdef:./") == strlen(text) &&
					strpbrk(text, ":/") && !strstr(text, "//"))))
		return text;
	if (strstr(text, "://") || strchr(text, '/'))
		why = "a host's name alone; protocol and path have keys of their own";
	else if (strcmp(text, "*") == 0)
		why = "over-broad: it takes in every host there is";
	else if (strchr(name, '*'))
		why = "a \"*\" stands at the front alone, as in *.example.org";
	else if (strchr(text, ':'))
		why = "a host's name alone; ports have a key of their own";
	else if (strpbrk(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
		why = "a host is written in lower case";
	else if (strlen(text) > HOST_LIMIT_BYTES || !is_host_name(name))
		why = "not a host's name: labels of a to z, digits and '-'; other scripts as xn--, "
		      "an address as four numbers";
	else if (name != text && name[0] >= '0' && name[0] <= '9')
		why = "an address: nothing is below it";
	else if (name != text && value == VALUE_HOST && suffix_is_public(name))
		why = "over-broad: names below it belong to many";
	if (why)
		document_fault_at(reading, node, "%s %.200s: %s", key, text, why);
	return why ? NULL : text;
}

static const char *take_port(struct document_reading *reading, const struct outline_node *node,
			     const char *key)
{
	const char *dash = strchr(node->text, '-');
	const char *first =
		dash ? arena_copy_bytes(reading->arena, node->text, (size_t)(dash - node->text)) :
		       node->text;
	uint64_t from = 0, to = 0;

	if (first && quantity_count(first, &from) == 0 &&
	    quantity_count(dash ? dash + 1 : first, &to) == 0 && from >= 1 && from <= to &&
	    to <= 65535)
		return node->text;
	document_fault_at(reading, node,
			  "%s %.40s: a port from 1 to 65535, or a range, as in "
			  "8000-8010",
			  key, node->text);
	return NULL;
}

static const char *take_url_path(struct document_reading *reading, const struct outline_node *node,
				 const char *key)
{
	const char *text = node->text;

	if (text[0] == '/' && !strpbrk(text, "?# \t%\\") && !strstr(text, "//") &&
	    !strstr(text, "/../") && strlen(text) <= TEXT_LIMIT_BYTES)
		return text;
	document_fault_at(reading, node,
			  "%s %.200s: a path from / on, without query, escapes or \"..\"; a \"*\" "
			  "stands for a run without '/', \"**\" for any components",
			  key, text);
	return NULL;
}

const char *document_take(struct document_reading *reading, const struct outline_node *node,
			  enum document_value value, const char *words, const char *key,
			  uint64_t *ret_number)
{
	uint64_t ignored = 0;
	uint64_t *number = ret_number ? ret_number : &ignored;

	if (node->kind != OUTLINE_TEXT) {
		document_fault_at(reading, node, "%s takes one value, and this is a %s", key,
				  node->kind == OUTLINE_MAP ? "map" : "list");
		return NULL;
	}
	switch (value) {
	case VALUE_TEXT:
		return take_text(reading, node, key);
	case VALUE_WORD:
		return take_word(reading, node, words, key);
	case VALUE_LOCK:
		return take_word(reading, node, document_lockable(reading->arena), key);
	case VALUE_BOOL:
		return take_bool(reading, node, key, number);
	case VALUE_COUNT:
	case VALUE_DURATION:
	case VALUE_SIZE:
		return take_quantity(reading, node, value, key, number);
	case VALUE_DATE:
		return take_date(reading, node, key);
	case VALUE_ID:
		return take_id(reading, node);
	case VALUE_NAME:
		return take_name(reading, node, key);
	case VALUE_PATH:
		return take_path(reading, node, key);
	case VALUE_PATTERN:
		return take_pattern(reading, node, key);
	case VALUE_DEVICE:
		return take_device(reading, node, key);
	case VALUE_PROGRAM:
		return take_program(reading, node, key);
	case VALUE_HOST:
	case VALUE_NETWORK:
		return take_host(reading, node, key, value);
	case VALUE_PORT:
		return take_port(reading, node, key);
	default:
		return take_url_path(reading, node, key);
	}
}
