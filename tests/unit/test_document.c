#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "policy/document_internal.h"
#include "policy/document_pack.h"
#include "policy/outline.h"
#include "policy/preset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
	struct arena arena;
	struct buffer bytes;
	struct outline outline;
	struct document document;
	struct document_faults faults;
};

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	arena_free(&fixture->arena);
	buffer_free(&fixture->bytes);
	free(fixture);
	return 0;
}

static int outline_of(struct fixture *fixture, const char *text)
{
	fixture->bytes.length = 0;
	assert_int_equal(outline_parse(text, strlen(text), &fixture->bytes), 0);
	return outline_read(fixture->bytes.data, fixture->bytes.length, &fixture->arena,
			    &fixture->outline);
}

static int document_of(struct fixture *fixture, const char *text)
{
	static const struct document_facts facts = { .file = "/p.yaml", .home = "/home/user" };

	assert_int_equal(outline_of(fixture, text), 0);
	return document_read(&fixture->outline, &facts, &fixture->arena, &fixture->document,
			     &fixture->faults);
}

static void test_outline_has_places_and_kinds(void **state)
{
	struct fixture *fixture = *state;
	const struct outline_node *value, *item;

	assert_int_equal(outline_of(fixture, "a: 1\nb:\n  - \"x\"\n  - {c: d}\n"), 0);
	assert_int_equal(fixture->outline.count, 9);
	assert_int_equal(fixture->outline.nodes[0].kind, OUTLINE_MAP);
	assert_int_equal(fixture->outline.nodes[0].end, 9);
	value = outline_find(&fixture->outline, fixture->outline.nodes, "b");
	assert_non_null(value);
	assert_int_equal(value->kind, OUTLINE_LIST);
	assert_int_equal(value->line, 3);
	item = outline_first(&fixture->outline, value);
	assert_string_equal(item->text, "x");
	assert_false(item->is_plain);
	item = outline_next(&fixture->outline, value, item);
	assert_int_equal(item->line, 4);
	assert_int_equal(item->column, 5);
	assert_string_equal(outline_find(&fixture->outline, item, "c")->text, "d");
	assert_null(outline_next(&fixture->outline, value, item));
	assert_null(outline_find(&fixture->outline, fixture->outline.nodes, "c"));
}

/* Each byte changed and each length cut: never more than a no, and no read beyond the end. */
static void test_bytes_of_an_outline_are_not_believed(void **state)
{
	struct fixture *fixture = *state;
	unsigned char *copy;
	size_t length;

	assert_int_equal(outline_of(fixture, "version: 1\na: [b, {c: d}]\n"), 0);
	length = fixture->bytes.length;
	for (size_t cut = 0; cut < length; cut++) {
		copy = malloc(cut + 1);
		assert_non_null(copy);
		memcpy(copy, fixture->bytes.data, cut);
		assert_int_equal(outline_read(copy, cut, &fixture->arena, &fixture->outline),
				 -EBADMSG);
		free(copy);
	}
	for (size_t at = 0; at < length; at++)
		for (unsigned change = 1; change < 256; change += 31) {
			struct outline outline = { 0 };

			copy = malloc(length);
			assert_non_null(copy);
			memcpy(copy, fixture->bytes.data, length);
			copy[at] = (unsigned char)(copy[at] + change);
			if (outline_read(copy, length, &fixture->arena, &outline) == 0)
				for (size_t i = 0; i < outline.count; i++)
					assert_in_range(outline.nodes[i].end, i + 1, outline.count);
			free(copy);
		}
}

static void test_statements_are_what_the_file_says(void **state)
{
	struct fixture *fixture = *state;
	const struct document_statement *statement;

	assert_int_equal(document_of(fixture, "version: 1\n"
					      "filesystem:\n"
					      "  read: [~/x/, {path: /opt//y, id: mine}]\n"
					      "limits: {memory: 2G}\n"
					      "environment: {set: {A: b}}\n"),
			 0);
	assert_int_equal(fixture->document.count, 5);
	statement = &fixture->document.statements[1];
	assert_int_equal(statement->key, DOCUMENT_READ);
	assert_string_equal(statement->text, "/home/user/x");
	assert_string_equal(statement->rule.id, "filesystem.read");
	assert_string_equal(statement->rule.file, "/p.yaml");
	assert_int_equal(statement->rule.line, 3);
	assert_int_equal(statement->column, 10);
	statement = document_find(&fixture->document, DOCUMENT_READ);
	assert_string_equal(statement->text, "/opt/y");
	assert_string_equal(statement->rule.id, "mine");
	statement = document_find(&fixture->document, DOCUMENT_MEMORY);
	assert_int_equal(statement->value, LIMIT_GIB * 2);
	statement = document_find(&fixture->document, DOCUMENT_SET);
	assert_string_equal(statement->name, "A");
	assert_null(document_find(&fixture->document, DOCUMENT_HIDE));
}

static void assert_same(const struct document *a, const struct document *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		const struct document_statement *one = &a->statements[i];
		const struct document_statement *other = &b->statements[i];

		assert_int_equal(one->key, other->key);
		assert_string_equal(one->text, other->text);
		assert_int_equal(!one->name, !other->name);
		if (one->name)
			assert_string_equal(one->name, other->name);
		assert_int_equal(one->value, other->value);
		assert_true(rule_is_same(&one->rule, &other->rule));
		assert_int_equal(one->column, other->column);
		assert_int_equal(one->detail_count, other->detail_count);
		for (size_t j = 0; j < one->detail_count; j++) {
			assert_string_equal(one->details[j].field, other->details[j].field);
			assert_string_equal(one->details[j].text, other->details[j].text);
		}
	}
}

static const char packed_text[] = "version: 1\n"
				  "filesystem: {hide: [a, {name: b, id: own, reason: c}]}\n"
				  "environment: {set: {A: b, C: \"\"}}\n"
				  "limits: {memory: 2G}\n"
				  "network: {allow: [{host: example.org, ports: [443, 80]}]}\n";

static void test_a_document_is_packed_and_read_back(void **state)
{
	struct fixture *fixture = *state;
	struct buffer packed = { .arena = &fixture->arena };
	struct document back;

	assert_int_equal(document_of(fixture, packed_text), 0);
	assert_int_equal(document_pack(&fixture->document, &packed), 0);
	assert_int_equal(document_unpack(packed.data, packed.length, fixture->document.file,
					 &fixture->arena, &back),
			 0);
	assert_same(&fixture->document, &back);
}

static void touch(const struct document *document)
{
	struct buffer CLEANUP_BUFFER text = { 0 };

	for (size_t i = 0; i < document->count; i++) {
		const struct document_statement *statement = &document->statements[i];

		assert_in_range(statement->key, 0, DOCUMENT_KEY_COUNT - 1);
		assert_int_equal(!statement->name,
				 document_key(statement->key)->shape != DOCUMENT_SHAPE_SET);
		buffer_text(&text, statement->text);
		buffer_text(&text, statement->rule.id);
		buffer_text(&text, statement->name ? statement->name : "");
		for (size_t j = 0; j < statement->detail_count; j++) {
			buffer_text(&text, statement->details[j].field);
			buffer_text(&text, statement->details[j].text);
		}
	}
}

/* Each byte changed and each length cut: a no, or a document that can be read to its end. */
static void test_bytes_of_a_document_do_no_harm(void **state)
{
	struct fixture *fixture = *state;
	struct buffer packed = { .arena = &fixture->arena };

	assert_int_equal(document_of(fixture, packed_text), 0);
	assert_int_equal(document_pack(&fixture->document, &packed), 0);
	for (size_t cut = 0; cut < packed.length; cut++) {
		struct arena CLEANUP_ARENA arena = { 0 };
		struct document back;
		char *copy = malloc(cut + 1);

		assert_non_null(copy);
		memcpy(copy, packed.data, cut);
		assert_int_equal(document_unpack(copy, cut, "x", &arena, &back), -EBADMSG);
		free(copy);
	}
	for (size_t at = 0; at < packed.length; at++)
		for (unsigned change = 1; change < 256; change += 63) {
			struct arena CLEANUP_ARENA arena = { 0 };
			struct document back;
			char *copy = malloc(packed.length);

			assert_non_null(copy);
			memcpy(copy, packed.data, packed.length);
			copy[at] = (char)(copy[at] + (char)change);
			if (document_unpack(copy, packed.length, "x", &arena, &back) == 0)
				touch(&back);
			free(copy);
		}
}

static void test_missing_mechanisms_are_named(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(document_of(fixture, "version: 1\n"
					      "confinement: unrestricted\n"
					      "isolation: {floor: gvisor}\n"
					      "exec: {strict: false, deny: [curl]}\n"),
			 0);
	assert_string_equal(document_missing(document_find(&fixture->document, DOCUMENT_FLOOR),
					     &fixture->arena),
			    "the gvisor tier");
	assert_non_null(document_missing(document_find(&fixture->document, DOCUMENT_CONFINEMENT),
					 &fixture->arena));
	assert_null(document_missing(document_find(&fixture->document, DOCUMENT_EXEC_DENY),
				     &fixture->arena));
	assert_null(document_missing(document_find(&fixture->document, DOCUMENT_EXEC_STRICT),
				     &fixture->arena));
	assert_null(document_missing(&fixture->document.statements[0], &fixture->arena));
}

/* What a flag can limit, a policy can; and nothing names a limit that is none. */
static void test_each_limit_has_its_key(void **state)
{
	bool has[LIMIT_COUNT] = { false };

	(void)state;
	for (enum document_key key = 0; key < DOCUMENT_KEY_COUNT; key++)
		if (document_key(key)->shape == DOCUMENT_SHAPE_LIMIT) {
			assert_in_range(document_limit(key), 0, LIMIT_COUNT - 1);
			has[document_limit(key)] = true;
		}
	for (enum limit limit = 0; limit < LIMIT_COUNT; limit++)
		assert_int_equal(has[limit], limit_text(limit)->option != NULL);
}

static void test_hosts(void **state)
{
	(void)state;
	assert_true(document_host_covers("a.example.org", "a.example.org"));
	assert_true(document_host_covers("*.example.org", "a.example.org"));
	assert_true(document_host_covers("*.example.org", "a.b.example.org"));
	assert_true(document_host_covers("*.example.org", "*.b.example.org"));
	assert_false(document_host_covers("*.example.org", "example.org"));
	assert_false(document_host_covers("*.example.org", "badexample.org"));
	assert_false(document_host_covers("*.b.example.org", "*.example.org"));
	assert_false(document_host_covers("a.example.org", "*.example.org"));
}

/* The index of rules finds what a comparison of all with all would. */
static void test_what_denials_beat(void **state)
{
	static const char *const hosts[] = {
		"a.example",  "*.a.example",	     "b.a.example",   "*.b.a.example",
		"aa.example", "a.example.a.example", "c.b.a.example", "*.aa.example",
	};
	struct fixture *fixture = *state;
	char text[512];

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		for (size_t j = 0; j < sizeof(hosts) / sizeof(hosts[0]); j++) {
			bool beaten = document_host_covers(hosts[i], hosts[j]);

			(void)snprintf(text, sizeof(text),
				       "version: 1\nnetwork:\n  allow: [z.test, \"%s\", y.test]\n"
				       "  deny: [x.test, \"%s\"]\n",
				       hosts[j], hosts[i]);
			fixture->faults.count = 0;
			assert_int_equal(document_of(fixture, text), beaten ? -EINVAL : 0);
			assert_int_equal(fixture->faults.count, beaten);
		}
}

static void test_what_is_said_twice(void **state)
{
	static const struct {
		const char *text;
		size_t faults;
	} cases[] = {
		{ "filesystem: {read: [/opt/a, /opt/b, /opt/c]}", 0 },
		{ "filesystem: {read: [/opt/a, /opt/b, /opt/a, /opt/a]}", 2 },
		{ "filesystem: {read: [/opt/a], protect: [/opt/a]}", 0 },
		{ "environment: {set: {A: x, B: x}}", 0 },
		{ "network: {allow: [{host: a.test, ports: [443]}, {host: a.test, ports: [80]}]}",
		  0 },
		{ "network: {allow: [{host: a.test, ports: [80]}, {host: a.test, ports: [80]}]}",
		  1 },
		{ "filesystem: {read: [{path: /opt/a, id: x}, {path: /opt/b, id: y}]}", 0 },
		{ "filesystem: {read: [{path: /opt/a, id: x}, {path: /opt/b, id: x}]}", 1 },
	};
	struct fixture *fixture = *state;
	char text[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(text, sizeof(text), "version: 1\n%s\n", cases[i].text);
		fixture->faults.count = 0;
		(void)document_of(fixture, text);
		assert_int_equal(fixture->faults.count, cases[i].faults);
	}
}

static void test_presets_are_sound(void **state)
{
	static const char *const names[] = { "review", "develop", "ci", "browse", "quarantine" };
	struct fixture *fixture = *state;
	struct preset preset;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(preset_find(names[i], &preset));
		assert_int_equal(document_of(fixture, arena_copy_bytes(&fixture->arena, preset.text,
								       preset.length)),
				 0);
		assert_string_equal(document_find(&fixture->document, DOCUMENT_NAME)->text,
				    names[i]);
	}
	assert_false(preset_find("devel", &preset));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_outline_has_places_and_kinds),
		TEST(test_bytes_of_an_outline_are_not_believed),
		TEST(test_statements_are_what_the_file_says),
		TEST(test_a_document_is_packed_and_read_back),
		TEST(test_bytes_of_a_document_do_no_harm),
		TEST(test_missing_mechanisms_are_named),
		TEST(test_each_limit_has_its_key),
		TEST(test_hosts),
		TEST(test_what_denials_beat),
		TEST(test_what_is_said_twice),
		TEST(test_presets_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
