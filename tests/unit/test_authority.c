#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "policy/authority.h"
#include "policy/compare.h"
#include "policy/document_internal.h"
#include "policy/outline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS 3

struct fixture {
	struct arena arena;
	struct document documents[LAYERS];
	struct document joined;
	struct authority_conflict conflict;
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
	free(fixture);
	return 0;
}

static void read_document(struct fixture *fixture, const char *says, size_t index)
{
	static const char *const names[LAYERS] = { "first", "second", "third" };
	const struct document_facts facts = { .file = names[index], .home = "/home/user" };
	struct buffer text = { .arena = &fixture->arena }, bytes = { .arena = &fixture->arena };
	struct document_faults faults;
	struct outline outline;

	buffer_text(&text, "version: 1\n");
	buffer_text(&text, says);
	assert_int_equal(outline_parse(text.data, text.length, &bytes), 0);
	assert_int_equal(outline_read(bytes.data, bytes.length, &fixture->arena, &outline), 0);
	assert_int_equal(document_read(&outline, &facts, &fixture->arena,
				       &fixture->documents[index], &faults),
			 0);
}

/* Two layers as one; "" says nothing. */
static int join(struct fixture *fixture, const char *first, const char *second)
{
	const struct document *documents[] = { &fixture->documents[0], &fixture->documents[1] };

	read_document(fixture, first, 0);
	read_document(fixture, second, 1);
	return authority_join(documents, 2, &fixture->arena, &fixture->joined, &fixture->conflict);
}

static void test_none_and_one(void **state)
{
	struct fixture *fixture = *state;
	const struct document *documents[] = { &fixture->documents[0] };

	assert_int_equal(
		authority_join(NULL, 0, &fixture->arena, &fixture->joined, &fixture->conflict), 0);
	assert_int_equal(fixture->joined.count, 0);
	read_document(fixture, "lock: [kernel]\nkernel: {ptrace: true}\n", 0);
	assert_int_equal(
		authority_join(documents, 1, &fixture->arena, &fixture->joined, &fixture->conflict),
		0);
	assert_int_equal(fixture->joined.count, 3);
}

/* Whatever the order of the layers. */
static void test_the_narrower_value_counts(void **state)
{
	static const struct {
		enum document_key key;
		const char *wide, *narrow, *value;
	} rows[] = {
		{ DOCUMENT_WORKSPACE, "workspace: direct\n", "workspace: ephemeral\n",
		  "ephemeral" },
		{ DOCUMENT_APPROVAL, "approval: on-request\n", "approval: always\n", "always" },
		{ DOCUMENT_FLOOR, "isolation: {floor: os}\n", "isolation: {floor: microvm}\n",
		  "microvm" },
		{ DOCUMENT_MEMORY, "limits: {memory: 2G}\n", "limits: {memory: 512M}\n", "512M" },
		{ DOCUMENT_TASKS_IDLE, "tasks: {idle: 1h}\n", "tasks: {idle: 59m}\n", "59m" },
		{ DOCUMENT_RECORD, "trace: {record: false}\n", "trace: {record: true}\n", "true" },
		{ DOCUMENT_TTY, "tty: {allowed: true}\n", "tty: {allowed: false}\n", "false" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int turned = 0; turned < 2; turned++) {
			const struct document_statement *found;

			assert_int_equal(join(*state, turned ? rows[i].narrow : rows[i].wide,
					      turned ? rows[i].wide : rows[i].narrow),
					 0);
			found = document_find(&((struct fixture *)*state)->joined, rows[i].key);
			assert_non_null(found);
			assert_string_equal(found->text, rows[i].value);
			assert_string_equal(found->rule.file, turned ? "first" : "second");
		}
}

static void test_a_lock_lets_nothing_wider_through(void **state)
{
	static const struct {
		const char *first, *second;
		bool refused;
	} rows[] = {
		{ "lock: [workspace]\n", "workspace: direct\n", false },
		{ "lock: [workspace]\nworkspace: staged\n", "workspace: direct\n", true },
		{ "lock: [workspace]\nworkspace: staged\n", "workspace: read-only\n", false },
		{ "lock: [limits]\n", "limits: {pids: 1024}\n", false },
		{ "lock: [limits]\n", "limits: {pids: 1025}\n", true },
		{ "lock: [limits.pids]\n", "limits: {output-cap: 900G}\n", false },
		{ "lock: [filesystem]\nfilesystem: {read: [/opt]}\n",
		  "filesystem: {read: [/opt/x]}\n", false },
		{ "lock: [filesystem]\nfilesystem: {read: [/opt]}\n",
		  "filesystem: {write: [/opt/x]}\n", true },
		{ "lock: [filesystem]\n", "filesystem: {hide: [x], protect: [y]}\n", false },
		{ "lock: [exec]\n", "exec: {allow: [git]}\n", false },
		{ "lock: [exec]\nexec: {allow: [git]}\n", "exec: {allow: [git, curl]}\n", true },
		{ "lock: [exec]\n", "exec: {deny: [curl]}\n", false },
		{ "lock: [environment.set]\nenvironment: {set: {A: b}}\n",
		  "environment: {set: {A: b}}\n", false },
		{ "lock: [environment.set]\nenvironment: {set: {A: b}}\n",
		  "environment: {set: {A: c}}\n", true },
		{ "lock: [exceptions]\n",
		  "exceptions: [{command: x, owner: a, reason: b, expires: 2026-12-31}]\n", true },
		{ "lock: [trace]\n", "trace: {record: false}\n", true },
		{ "lock: [isolation]\nisolation: {floor: microvm}\n", "isolation: {floor: os}\n",
		  true },
		{ "", "kernel: {ptrace: true}\n", false },
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int result = join(fixture, rows[i].first, rows[i].second);

		assert_int_equal(result, rows[i].refused ? -EPERM : 0);
		if (rows[i].refused) {
			assert_string_equal(fixture->conflict.statement->rule.file, "second");
			assert_string_equal(fixture->conflict.lock->rule.file, "first");
		}
	}
}

/* A later layer's lock is not for those before it, and a lock in between is. */
static void test_locks_look_behind_themselves_alone(void **state)
{
	struct fixture *fixture = *state;
	const struct document *documents[] = { &fixture->documents[0], &fixture->documents[1],
					       &fixture->documents[2] };

	read_document(fixture, "kernel: {ptrace: true}\n", 0);
	read_document(fixture, "lock: [kernel]\nkernel: {nested-userns: true}\n", 1);
	read_document(fixture, "kernel: {ptrace: true, nested-userns: true}\n", 2);
	assert_int_equal(
		authority_join(documents, 3, &fixture->arena, &fixture->joined, &fixture->conflict),
		0);
	read_document(fixture, "", 0);
	assert_int_equal(
		authority_join(documents, 3, &fixture->arena, &fixture->joined, &fixture->conflict),
		-EPERM);
	assert_string_equal(fixture->conflict.lock->rule.file, "second");
	assert_int_equal(fixture->conflict.statement->key, DOCUMENT_PTRACE);
}

static void test_lists_are_put_together_once(void **state)
{
	struct fixture *fixture = *state;
	size_t hidden = 0;

	assert_int_equal(join(fixture, "filesystem: {hide: [a, b]}\n",
			      "filesystem: {hide: [b, c]}\nenvironment: {set: {A: b}}\n"),
			 0);
	for (size_t i = 0; i < fixture->joined.count; i++)
		hidden += fixture->joined.statements[i].key == DOCUMENT_HIDE;
	assert_int_equal(hidden, 3);
}

/* Every key that says what is allowed can be locked, and so can its section. */
static void test_what_can_be_locked(void **state)
{
	struct fixture *fixture = *state;
	size_t count;
	const char *const *words =
		document_split(&fixture->arena, document_lockable(&fixture->arena), &count);

	for (enum document_key key = 0; key < DOCUMENT_KEY_COUNT; key++) {
		bool found = false, meant = key != DOCUMENT_VERSION && key != DOCUMENT_NAME &&
					    key != DOCUMENT_PRESET && key != DOCUMENT_LOCK &&
					    key != DOCUMENT_TESTS;

		for (size_t i = 0; i < count; i++)
			found |= strcmp(words[i], document_key(key)->path) == 0;
		assert_int_equal(found, meant);
	}
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(words[i], words[j]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(test_none_and_one),
		TEST(test_the_narrower_value_counts),
		TEST(test_a_lock_lets_nothing_wider_through),
		TEST(test_locks_look_behind_themselves_alone),
		TEST(test_lists_are_put_together_once),
		TEST(test_what_can_be_locked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
