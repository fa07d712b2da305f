/* What a box shows at a path, by policy and plan: each way once, and which of two counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../golden/policies.h"

#include "plan/access.h"

struct row {
	const char *path, *word, *rule;
	bool read, write;
};

static void hold(const struct policy *policy, struct arena *arena, const struct row *rows,
		 size_t count)
{
	struct error error = ERROR_NONE;
	struct plan plan;

	assert_int_equal(sample_plan(policy, false, arena, &plan, &error), 0);
	for (size_t i = 0; i < count; i++) {
		struct access access = access_find(policy, &plan, rows[i].path);

		if (strcmp(access_word(access.way), rows[i].word) != 0 ||
		    strcmp(access.rule.id, rows[i].rule) != 0 ||
		    access_reads(access.way) != rows[i].read ||
		    access_writes(access.way) != rows[i].write)
			fail_msg("%s: %s by %s", rows[i].path, access_word(access.way),
				 access.rule.id);
	}
}

#define HOLD(policy, arena, rows) hold(policy, arena, rows, sizeof(rows) / sizeof((rows)[0]))

static void the_default_shows_what_its_rows_say(void **state)
{
	static const struct row rows[] = {
		{ "/usr", "read-only", "system.read-only", true, false },
		{ "/usr/bin/sh", "read-only", "system.read-only", true, false },
		{ "/usrx", "absent", "system.absent", false, false },
		{ "/bin", "link", "system.read-only", true, false },
		{ "/etc/passwd", "made", "system.read-only", true, false },
		{ "/etc/services", "copy", "system.read-only", true, false },
		{ "/etc/set/deep", "copy", "system.read-only", true, false },
		{ "/etc", "directory", "system.absent", true, false },
		{ "/etc/shadow", "absent", "system.absent", false, false },
		{ "/dev/null", "device", "devices.none", true, true },
		{ "/dev/sda", "absent", "system.absent", false, false },
		{ "/dev/pts/0", "terminals", "private.area", true, true },
		{ "/dev/shm/x", "private", "private.area", false, true },
		{ WORK, "in-place", "workspace.write", true, true },
		{ WORK "/src/x", "in-place", "workspace.write", true, true },
		{ HOME, "private", "home.private", false, true },
		{ HOME "/.ssh/id_rsa", "private", "home.private", false, true },
		{ "/home", "directory", "system.absent", true, false },
		{ "/home/other", "absent", "system.absent", false, false },
		{ "/tmp/x", "private", "private.area", false, true },
		{ "/run/bawn/policy.txt", "evidence", "private.area", true, false },
		{ "/proc/self/comm", "proc", "system.absent", true, false },
		{ "/proc/1", "proc", "system.absent", true, false },
		{ "/proc/1/comm", "proc", "system.absent", true, false },
		{ "/proc/1/environ", "proc-init", "system.absent", false, false },
		{ "/proc/1/task/1/fd/0", "proc-init", "system.absent", false, false },
		{ "/proc/10/environ", "proc", "system.absent", true, false },
		{ "/run/bawn/canary", "sealed", "private.area", false, false },
		{ "/run/bawn/mask-file", "sealed", "private.area", false, false },
		{ "/proc/modules", "proc-empty", "system.absent", true, false },
		{ "/", "directory", "system.absent", true, false },
	};
	struct arena CLEANUP_ARENA arena = { 0 };
	struct policy policy;

	(void)state;
	fill_default(&policy, &arena);
	HOLD(&policy, &arena, rows);
}

static void what_is_hidden_or_deeper_counts(void **state)
{
	static const struct row rows[] = {
		{ WORK "/secret", "hidden", "flag.hide", false, false },
		{ WORK "/secret/below", "hidden", "flag.hide", false, false },
		{ WORK "/kept", "protected", "flag.protect", true, false },
		{ HOME "/data", "read-only", "flag.read", true, false },
		{ HOME "/data/x", "read-only", "flag.read", true, false },
		/* the area of the runtime directory lies deeper than what shows /run */
		{ "/run/other", "read-only", "flag.read", true, false },
		{ "/run/user/1000/x", "private", "private.area", false, true },
	};
	struct arena CLEANUP_ARENA arena = { 0 };
	struct policy policy;

	(void)state;
	fill_default(&policy, &arena);
	directory(&policy, &arena, PATH_HIDE, WORK "/secret", "--hide");
	file(&policy, &arena, PATH_PROTECT, WORK "/kept", "--protect");
	directory(&policy, &arena, PATH_READ, HOME "/data", "--read");
	directory(&policy, &arena, PATH_READ, "/run", "--read");
	HOLD(&policy, &arena, rows);
}

static void a_layer_leaves_hidden_names_free(void **state)
{
	static const struct row staged[] = {
		{ WORK "/src/x", "staged", "workspace.write", true, true },
		{ WORK "/secret", "hidden-own", "flag.hide", false, true },
	};
	static const struct row ephemeral[] = {
		{ WORK "/src/x", "ephemeral", "workspace.write", true, true },
		{ "/usr/doc", "hidden", "flag.hide", false, false },
	};
	struct arena CLEANUP_ARENA arena = { 0 };
	struct policy policy;

	(void)state;
	fill_default(&policy, &arena);
	policy.flags |= POLICY_STAGE;
	policy.view.paths[policy.view.count - 1].class = PATH_STAGE;
	file(&policy, &arena, PATH_HIDE, WORK "/secret", "--hide");
	HOLD(&policy, &arena, staged);
	policy.flags = POLICY_EPHEMERAL;
	directory(&policy, &arena, PATH_HIDE, "/usr/doc", "--hide");
	HOLD(&policy, &arena, ephemeral);
}

static void a_box_that_nests_has_an_open_proc(void **state)
{
	static const struct row rows[] = {
		{ "/proc/self/comm", "proc-open", "system.absent", true, true },
		{ "/proc/modules", "proc-open", "system.absent", true, true },
	};
	struct arena CLEANUP_ARENA arena = { 0 };
	struct policy policy;

	(void)state;
	fill_default(&policy, &arena);
	policy.flags |= POLICY_NESTED_USERNS;
	HOLD(&policy, &arena, rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_shows_what_its_rows_say),
		cmocka_unit_test(what_is_hidden_or_deeper_counts),
		cmocka_unit_test(a_layer_leaves_hidden_names_free),
		cmocka_unit_test(a_box_that_nests_has_an_open_proc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
