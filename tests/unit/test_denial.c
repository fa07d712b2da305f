#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/json.h"
#include "policy/denial.h"

static const char *const flags[] = {
	"--allow-host",	   "--workspace",    "--read",	      "--write", "--hide",
	"--protect",	   "--env",	     "--cwd",	      "--stdin", "--timeout",
	"--nested-userns", "--allow-ptrace", "--devices",     "--json",	 "--status-fd",
	"--quiet",	   "--state-dir",    "--hide-strict",
};

static const char *const layers[] = { "mounts", "network", "seccomp", "policy" };

static bool is_one_of(const char *text, size_t length, const char *const *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(all[i]) == length && strncmp(all[i], text, length) == 0)
			return true;
	return false;
}

#define IS_ONE_OF(text, length, all) is_one_of(text, length, all, sizeof(all) / sizeof((all)[0]))

static bool is_code(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyz.") == strlen(text) && strchr(text, '.') &&
	       text[0] != '.' && text[strlen(text) - 1] != '.';
}

/* A remedy is flags that exist, each with at most the object behind it, as it is or with "/tcp". */
static void check_remedy(const char *remedy)
{
	unsigned holes = 0;

	for (const char *at = remedy; *at;) {
		size_t length = strcspn(at, " ");

		if ((length == 2 && strncmp(at, "%s", 2) == 0) ||
		    (length == 6 && strncmp(at, "%s/tcp", 6) == 0)) {
			assert_true(at > remedy);
			holes++;
		} else if (!IS_ONE_OF(at, length, flags)) {
			fail_msg("'%s' names what is no flag", remedy);
		}
		at += length;
		at += *at == ' ';
	}
	assert_true(holes <= 1);
	assert_true(!strchr(remedy, '%') || holes == 1);
}

static void table(void **state)
{
	(void)state;
	for (int i = 0; i < DENIAL_KIND_COUNT; i++) {
		const struct denial_text *text = denial_text(i);

		assert_true(is_code(text->code) && is_code(text->verb));
		assert_true(IS_ONE_OF(text->layer, strlen(text->layer), layers));
		assert_true(text->message[0] && !strpbrk(text->message, "\n%;"));
		assert_true(text->message[strlen(text->message) - 1] != '.');
		check_remedy(text->remedy);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(text->code, denial_text(j)->code);
	}
}

static void assert_line(const struct denial *denial, const char *wanted)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };

	denial_print(denial, &buffer);
	assert_false(buffer.failed);
	assert_string_equal(buffer.data, wanted);
}

static void lines(void **state)
{
	static struct denial_list list;
	struct rule_ref flag = { .id = "flag.hide", .file = "--hide", .line = 3 };
	struct rule_ref file = { .id = "mine", .file = "/etc/bawn/a.yaml", .line = 7 };

	(void)state;
	memset(&list, 0, sizeof(list));
	denial_add(&list, DENIAL_FS_READ, rule_builtin(RULE_HOME_PRIVATE), "/home/u/.aws", false);
	denial_add(&list, DENIAL_FS_HIDDEN, flag, "/ws/.env", true);
	denial_add(&list, DENIAL_NET_RESOLVE, file, "", false);
	assert_line(
		&list.items[0],
		"denied: fs.read /home/u/.aws (built-in \"home.private\", inferred): this path is "
		"not visible in the box; to allow: --read /home/u/.aws");
	assert_line(&list.items[1],
		    "denied: fs.hidden /ws/.env (flag --hide, measured): this path is hidden by a "
		    "rule");
	assert_line(&list.items[2],
		    "denied: net.resolve (\"mine\" /etc/bawn/a.yaml:7, inferred): names are not "
		    "resolved: the box has no network but its own loopback; to allow: "
		    "--allow-host NAME:PORT");
}

/* The remedy of a connection is one that --allow-host takes. */
static void remedies_of_connections(void **state)
{
	static const struct {
		const char *object, *grant, *remedy;
	} rows[] = {
		{ "example.org", "", "--allow-host example.org" },
		{ "github.com", "github.com:22", "--allow-host github.com:22" },
		{ "1.2.3.4:8080", "", "--allow-host 1.2.3.4:8080" },
		{ "[2606:4700::1]:443", "", "--allow-host '[2606:4700::1]:443'" },
		{ "2606:4700::1111:443", "", "--allow-host NAME:PORT" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct denial_list list = { .count = 0 };
		struct buffer CLEANUP_BUFFER buffer = { 0 };

		denial_add(&list, DENIAL_NET_CONNECT, rule_builtin(RULE_NETWORK_LOOPBACK),
			   rows[i].object, false);
		(void)snprintf(list.items[0].grant, sizeof(list.items[0].grant), "%s",
			       rows[i].grant);
		denial_print(&list.items[0], &buffer);
		assert_non_null(strstr(buffer.data, rows[i].remedy));
		assert_string_equal(strstr(buffer.data, "--allow-host"), rows[i].remedy);
	}
}

/* A remedy is pasted into a shell; what a task named there is one word and nothing else. */
static void hostile_objects(void **state)
{
	static const struct {
		const char *object, *remedy;
	} rows[] = {
		{ "/a/b-c_d.e", "--read /a/b-c_d.e" },
		{ "/a b", "--read '/a b'" },
		{ "/a;reboot", "--read '/a;reboot'" },
		{ "/a$(reboot)", "--read '/a$(reboot)'" },
		{ "/a`reboot`", "--read '/a`reboot`'" },
		{ "/it's", "--read '/it'\\''s'" },
		{ "/'", "--read '/'\\'''" },
		{ "/''x", "--read '/'\\'''\\''x'" },
		{ "/%s%n", "--read /%s%n" },
		{ "/a\nb", "--read '/a\\x0ab'" },
		{ "/\x1b[2J", "--read '/\\x1b[2J'" },
		{ "/\xc3\xa9", "--read /\xc3\xa9" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buffer CLEANUP_BUFFER buffer = { 0 };
		static struct denial_list list;
		const char *remedy;

		memset(&list, 0, sizeof(list));
		denial_add(&list, DENIAL_FS_READ, rule_builtin(RULE_HOME_PRIVATE), rows[i].object,
			   false);
		denial_print(&list.items[0], &buffer);
		remedy = strstr(buffer.data, "; to allow: ");
		assert_non_null(remedy);
		assert_string_equal(remedy + strlen("; to allow: "), rows[i].remedy);
		assert_null(strpbrk(buffer.data, "\n\x1b"));
	}
}

static void adding(void **state)
{
	static struct denial_list list;
	char object[2 * DENIAL_OBJECT_BYTES];

	(void)state;
	memset(&list, 0, sizeof(list));
	assert_true(denial_add(&list, DENIAL_FS_READ, rule_builtin(0), "/a", false));
	assert_false(denial_add(&list, DENIAL_FS_READ, rule_builtin(0), "/a", false));
	assert_true(denial_add(&list, DENIAL_FS_WRITE, rule_builtin(0), "/a", false));
	assert_true(denial_add(&list, DENIAL_FS_READ, rule_builtin(0), "/ab", false));
	assert_int_equal(list.count, 3);
	assert_int_equal(list.items[0].count, 2);
	list.items[0].count = UINT32_MAX;
	assert_false(denial_add(&list, DENIAL_FS_READ, rule_builtin(0), "/a", false));
	assert_true(list.items[0].count == UINT32_MAX);

	memset(object, 'x', sizeof(object));
	object[sizeof(object) - 1] = '\0';
	assert_true(denial_add(&list, DENIAL_FS_READ, rule_builtin(0), object, false));
	assert_int_equal(strlen(list.items[3].object), DENIAL_OBJECT_BYTES - 1);
	assert_false(denial_add(&list, DENIAL_FS_READ, rule_builtin(0), object, false));

	for (unsigned i = list.count; i < DENIAL_LIMIT; i++) {
		(void)snprintf(object, sizeof(object), "/%u", i);
		assert_true(denial_add(&list, DENIAL_FS_READ, rule_builtin(0), object, false));
	}
	assert_false(denial_add(&list, DENIAL_FS_READ, rule_builtin(0), "/more", false));
	assert_false(denial_add(&list, DENIAL_FS_READ, rule_builtin(0), "/a", false));
	assert_int_equal(list.count, DENIAL_LIMIT);
	assert_int_equal(list.dropped, 1);
}

/* Another reader than ours: Python. */
static const char reader[] =
	"python3 -c \"\n"
	"import json, sys\n"
	"rows = json.loads(sys.stdin.buffer.read())\n"
	"assert len(rows) == int(sys.argv[1])\n"
	"for row in rows:\n"
	"    assert list(row) == ['code', 'layer', 'verb', 'object', 'rule', 'message', 'remedy',\n"
	"                         'evidence', 'count'], row\n"
	"    assert list(row['rule']) == ['id', 'file', 'line'] and row['rule']['id']\n"
	"    assert row['rule']['file'] is None and row['rule']['line'] == 0\n"
	"    assert row['object'] == '/a b' + chr(10) and row['count'] == 1\n"
	"    assert row['evidence'] == 'measured'\n"
	"    assert row['remedy'] is None or row['remedy'].startswith('--')\n"
	"    assert (row['code'] != 'fs.read' or row['remedy'] ==\n"
	"            '--read ' + chr(39) + '/a b' + chr(92) + 'x0a' + chr(39)), row\n"
	"\" ";

static void json_of_each_row(void **state)
{
	struct buffer CLEANUP_BUFFER buffer = { 0 };
	static struct denial_list list;
	char command[2048];
	struct json json;
	FILE *python;

	(void)state;
	memset(&list, 0, sizeof(list));
	json_begin(&json, &buffer);
	json_array(&json, NULL);
	for (int i = 0; i < DENIAL_KIND_COUNT; i++) {
		denial_add(&list, i, rule_builtin(RULE_HOME_PRIVATE), "/a b\n", true);
		denial_json(&list.items[i], &json);
	}
	json_array_end(&json);
	assert_false(buffer.failed);
	(void)snprintf(command, sizeof(command), "%s%d", reader, DENIAL_KIND_COUNT);
	python = popen(command, "w");
	assert_non_null(python);
	assert_int_equal(fwrite(buffer.data, 1, buffer.length, python), buffer.length);
	assert_int_equal(pclose(python), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),	   cmocka_unit_test(lines),
		cmocka_unit_test(hostile_objects), cmocka_unit_test(remedies_of_connections),
		cmocka_unit_test(adding),	   cmocka_unit_test(json_of_each_row),
	};

	return cmocka_run_group_tests_name("denial", tests, NULL, NULL);
}
