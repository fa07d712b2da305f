#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/policy.h"

/* Offsets of the blob's header, as policy.c describes it. */
enum {
	AT_VERSION = 8,
	AT_LENGTH = 12,
	AT_FLAGS = 16,
	AT_ASKED = 28,
	AT_LIMITS = 40,
	AT_LIMIT_RULES = AT_LIMITS + 8 * LIMIT_COUNT,
	AT_USER = AT_LIMIT_RULES + 4 * LIMIT_COUNT,
	AT_HOME = AT_USER + 4,
	AT_APPROVAL = AT_USER + 20,
	AT_TIER = AT_USER + 28,
	AT_RULE_COUNT = AT_USER + 44,
	AT_PATH_COUNT = AT_USER + 52,
	AT_PATH_OFFSET = AT_USER + 56,
	AT_RULING_COUNT = AT_USER + 76,
	AT_RULING_OFFSET = AT_USER + 80,
	AT_EGRESS_LENGTH = AT_USER + 84,
	AT_EGRESS_OFFSET = AT_USER + 88,
	HEADER = AT_USER + 92,
};

static struct policy sample(struct arena *arena)
{
	static struct policy_listener listeners[] = {
		{ .family = AF_INET, .type = SOCK_STREAM, .port = 0 },
		{ .family = AF_INET6, .type = SOCK_DGRAM, .port = 65535 },
	};
	static struct egress_ports ports[] = { { 443, 443 } };
	static struct egress_rule egress[] = {
		{ .ref = { .id = "npm", .file = "/p.yaml", .line = 7 },
		  .verdict = EGRESS_ALLOW,
		  .name = "registry.npmjs.org",
		  .ports = ports,
		  .port_count = 1,
		  .protocols = EGRESS_HTTPS,
		  .tool = "",
		  .purpose = "" },
	};
	static struct ruling rulings[] = {
		{ .kind = RULING_EXEC_DENY, .text = "curl" },
		{ .kind = RULING_TARGET_HOST, .text = "*.example.org", .label = "production" },
		{ .kind = RULING_EXCEPTION,
		  .text = "rm -rf build",
		  .label = "anna",
		  .note = "why",
		  .digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		  .until = 20000 },
	};
	struct policy policy = {
		.approval = RULING_ALWAYS,
		.rulings = rulings,
		.ruling_count = 3,
		.flags = POLICY_ALLOW_PTRACE,
		.egress = { EGRESS_POLICY, "release", egress, 1 },
		.uid = 1000,
		.gid = 100,
		.timeout_ns = 0x123456789abcdefull,
		.user = "u",
		.home = "/home/u",
		.shell = "/bin/sh",
		.workspace = "/home/u/ws",
		.cwd = "/home/u/ws/sub",
		.listeners = listeners,
		.listener_count = 2,
	};
	uint32_t system = policy_rule(&policy, arena, rule_builtin(RULE_SYSTEM_READ_ONLY));
	uint32_t flag =
		policy_rule(&policy, arena,
			    (struct rule_ref){ .id = "flag.hide", .file = "--hide", .line = 3 });

	assert_true(view_add(&policy.view, arena,
			     (struct view_path){ .class = PATH_READ,
						 .source = "/usr",
						 .target = "/usr",
						 .device = UINT64_MAX,
						 .inode = 2,
						 .rule = system }));
	assert_true(view_add(&policy.view, arena,
			     (struct view_path){ .class = PATH_LINK,
						 .source = "usr/bin",
						 .target = "/bin",
						 .rule = system }));
	assert_true(view_add(&policy.view, arena,
			     (struct view_path){ .class = PATH_CACHE,
						 .source = "",
						 .target = "/home/u/.npm",
						 .upper = "/state/npm",
						 .rule = system }));
	assert_true(view_add(&policy.view, arena,
			     (struct view_path){ .class = PATH_HIDE,
						 .kind = PATH_KIND_MISSING,
						 .source = "/home/u/ws/.env",
						 .target = "/home/u/ws/.env",
						 .rule = flag }));
	assert_true(view_add(&policy.view, arena,
			     (struct view_path){ .class = PATH_COPY,
						 .kind = PATH_KIND_FILE,
						 .source = "/etc/services",
						 .target = "/etc/services",
						 .state = UINT64_MAX - 1,
						 .rule = system }));
	assert_true(view_add(&policy.view, arena,
			     (struct view_path){ .class = PATH_GIT,
						 .source = "/home/u/ws/.git",
						 .target = "/home/u/ws/.git",
						 .device = 8,
						 .inode = 9,
						 .rule = system }));
	assert_true(view_add(&policy.view, arena,
			     (struct view_path){ .class = PATH_OBJECTS,
						 .source = "/home/u/ws/.git/objects",
						 .target = "/home/u/ws/.git/objects",
						 .rule = system }));
	assert_true(view_add(&policy.view, arena,
			     (struct view_path){ .class = PATH_PROTECT,
						 .kind = PATH_KIND_LINK,
						 .source = "/home/u/ws/link",
						 .target = "/home/u/ws/link",
						 .rule = flag }));
	policy.tier = (struct tier_policy){ .change = TIER_RAISE, .change_rule = flag };
	policy.approval_rule = rulings[0].rule = rulings[1].rule = rulings[2].rule = flag;
	limits_init(&(struct limit_facts){ 0 }, &policy.limits);
	policy.limits.values[LIMIT_PIDS] = 77;
	policy.limits.asked = UINT32_C(1) << LIMIT_PIDS;
	policy.limit_rules[LIMIT_PIDS] = flag;
	assert_true(policy_variable(&policy, arena, "PATH", "/usr/bin", system));
	assert_true(policy_variable(&policy, arena, "EMPTY", "", flag));
	return policy;
}

static void assert_text(const char *a, const char *b)
{
	assert_int_equal(a == NULL, b == NULL);
	if (a)
		assert_string_equal(a, b);
}

static void assert_policy(const struct policy *a, const struct policy *b)
{
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->uid, b->uid);
	assert_int_equal(a->gid, b->gid);
	assert_true(a->timeout_ns == b->timeout_ns);
	assert_int_equal(a->limits.asked, b->limits.asked);
	for (unsigned i = 0; i < LIMIT_COUNT; i++)
		assert_true(a->limits.values[i] == b->limits.values[i] &&
			    a->limit_rules[i] == b->limit_rules[i]);
	assert_text(a->user, b->user);
	assert_text(a->home, b->home);
	assert_text(a->shell, b->shell);
	assert_text(a->workspace, b->workspace);
	assert_text(a->cwd, b->cwd);
	assert_int_equal(a->rule_count, b->rule_count);
	for (size_t i = 0; i < a->rule_count; i++) {
		assert_text(a->rules[i].id, b->rules[i].id);
		assert_text(a->rules[i].file, b->rules[i].file);
		assert_int_equal(a->rules[i].line, b->rules[i].line);
	}
	assert_int_equal(a->view.count, b->view.count);
	for (size_t i = 0; i < a->view.count; i++) {
		const struct view_path *x = &a->view.paths[i], *y = &b->view.paths[i];

		assert_int_equal(x->class, y->class);
		assert_int_equal(x->kind, y->kind);
		assert_text(x->source, y->source);
		assert_text(x->target, y->target);
		assert_text(x->upper, y->upper);
		assert_true(x->device == y->device && x->inode == y->inode);
		assert_true(x->state == y->state);
		assert_int_equal(x->rule, y->rule);
	}
	assert_int_equal(a->variable_count, b->variable_count);
	for (size_t i = 0; i < a->variable_count; i++) {
		assert_text(a->variables[i].name, b->variables[i].name);
		assert_text(a->variables[i].value, b->variables[i].value);
		assert_int_equal(a->variables[i].rule, b->variables[i].rule);
	}
	assert_int_equal(a->listener_count, b->listener_count);
	for (size_t i = 0; i < a->listener_count; i++) {
		assert_int_equal(a->listeners[i].family, b->listeners[i].family);
		assert_int_equal(a->listeners[i].type, b->listeners[i].type);
		assert_int_equal(a->listeners[i].port, b->listeners[i].port);
	}
	assert_int_equal(a->approval, b->approval);
	assert_int_equal(a->approval_rule, b->approval_rule);
	assert_memory_equal(&a->tier, &b->tier, sizeof(a->tier));
	assert_int_equal(a->ruling_count, b->ruling_count);
	for (size_t i = 0; i < a->ruling_count; i++) {
		const struct ruling *x = &a->rulings[i], *y = &b->rulings[i];

		assert_int_equal(x->kind, y->kind);
		assert_text(x->text, y->text);
		assert_text(x->label, y->label);
		assert_text(x->note, y->note);
		assert_text(x->digest, y->digest);
		assert_int_equal(x->rule, y->rule);
		assert_true(x->until == y->until);
	}
	assert_int_equal(a->egress.mode, b->egress.mode);
	assert_string_equal(a->egress.purpose, b->egress.purpose);
	assert_int_equal(a->egress.rule_count, b->egress.rule_count);
	for (size_t i = 0; i < a->egress.rule_count; i++)
		assert_string_equal(a->egress.rules[i].name, b->egress.rules[i].name);
}

/* A copy of exactly its length, so that a read beyond it is seen by ASan. */
static unsigned char *encoded(struct arena *arena, const struct policy *policy, size_t *ret_length)
{
	const unsigned char *blob;
	unsigned char *copy;

	assert_int_equal(policy_encode(policy, arena, &blob, ret_length), 0);
	copy = malloc(*ret_length);
	assert_non_null(copy);
	memcpy(copy, blob, *ret_length);
	return copy;
}

static int decode(const unsigned char *blob, size_t length)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct error error = ERROR_NONE;
	struct policy policy;
	int r = policy_decode(blob, length, &arena, &policy, &error);

	if (r < 0) {
		assert_int_equal(r, -EBADMSG);
		assert_int_equal(error.code, -EBADMSG);
		assert_non_null(strstr(error.message, "the compiled policy "));
	}
	return r;
}

static void round_trip(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct policy policy = sample(&arena), empty = policy, back;
	struct error error = ERROR_NONE;
	size_t length, again_length;
	unsigned char *blob = encoded(&arena, &policy, &length), *again;

	(void)state;
	assert_int_equal(policy_decode(blob, length, &arena, &back, &error), 0);
	assert_policy(&policy, &back);
	again = encoded(&arena, &back, &again_length);
	assert_int_equal(length, again_length);
	assert_memory_equal(blob, again, length);
	free(again);
	free(blob);

	empty.rule_count = empty.view.count = empty.variable_count = empty.listener_count = 0;
	empty.ruling_count = empty.approval_rule = 0;
	empty.tier = (struct tier_policy){ 0 };
	empty.approval = RULING_ON_REQUEST;
	memset(empty.limit_rules, 0, sizeof(empty.limit_rules));
	blob = encoded(&arena, &empty, &length);
	assert_int_equal(policy_decode(blob, length, &arena, &back, &error), 0);
	assert_policy(&empty, &back);
	free(blob);
}

static void cut_short(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct policy policy = sample(&arena);
	size_t length;
	unsigned char *blob = encoded(&arena, &policy, &length);

	(void)state;
	for (size_t n = 0; n < length; n++) {
		unsigned char *cut = malloc(n + 1);

		assert_non_null(cut);
		cut = realloc(cut, n ? n : 1);
		memcpy(cut, blob, n);
		assert_int_equal(decode(cut, n), -EBADMSG);
		/* nor when the length that it says is made to fit */
		if (n >= HEADER) {
			cut[AT_LENGTH] = (unsigned char)n;
			cut[AT_LENGTH + 1] = (unsigned char)(n >> 8);
			assert_int_equal(decode(cut, n), -EBADMSG);
		}
		free(cut);
	}
	free(blob);
}

/* One policy has one encoding: what is accepted of a changed blob encodes to that very blob. */
static void flipped_bytes(void **state)
{
	static const unsigned char masks[] = {
		0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff
	};
	CLEANUP_ARENA struct arena outer = { 0 };
	struct policy policy = sample(&outer);
	size_t length, refused = 0, accepted = 0;
	unsigned char *blob = encoded(&outer, &policy, &length);

	(void)state;
	for (size_t i = 0; i < length * sizeof(masks); i++) {
		CLEANUP_ARENA struct arena arena = { 0 };
		unsigned char *byte = &blob[i / sizeof(masks)], mask = masks[i % sizeof(masks)];
		struct error error = ERROR_NONE;
		struct policy back;

		*byte ^= mask;
		if (policy_decode(blob, length, &arena, &back, &error) == 0) {
			size_t again_length;
			unsigned char *again = encoded(&arena, &back, &again_length);

			assert_int_equal(length, again_length);
			assert_memory_equal(blob, again, length);
			free(again);
			accepted++;
		} else {
			assert_int_equal(error.code, -EBADMSG);
			refused++;
		}
		*byte ^= mask;
	}
	free(blob);
	assert_true(refused > accepted / 4 && accepted > 0);
}

static void set32(unsigned char *at, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> (8 * i));
}

static uint32_t at32(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static void wrong_fields(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct policy policy = sample(&arena);
	size_t length;
	unsigned char *blob = encoded(&arena, &policy, &length);
	uint32_t paths = at32(blob + AT_PATH_OFFSET);
	uint32_t rulings = at32(blob + AT_RULING_OFFSET);
	const struct {
		uint32_t at, value;
	} rows[] = {
		{ 0, 0 },
		{ AT_VERSION, POLICY_VERSION + 1 },
		{ AT_LENGTH, (uint32_t)length - 1 },
		{ AT_LENGTH, (uint32_t)length + 1 },
		{ AT_FLAGS, POLICY_FLAGS_ALL + 1 },
		{ AT_FLAGS, UINT32_MAX },
		{ AT_ASKED, UINT32_C(1) << LIMIT_COUNT },
		{ AT_LIMITS + 8 * LIMIT_PIDS, 0 },
		{ AT_LIMITS + 8 * LIMIT_CORE, 1 },
		{ AT_LIMITS + 8 * LIMIT_GPU, 1 }, /* nothing could hold it */
		{ AT_LIMIT_RULES, 1000 },	  /* more than there are */
		{ AT_USER, 0 },
		{ AT_USER, UINT32_MAX },
		{ AT_USER, (uint32_t)length },
		{ AT_USER, HEADER - 1 },
		{ AT_HOME, at32(blob + AT_USER) }, /* a string that was named before */
		{ AT_APPROVAL, RULING_APPROVAL_COUNT },
		{ AT_APPROVAL + 4, 1000 },
		{ AT_APPROVAL + 4, 0 }, /* nobody says "always" */
		{ AT_TIER, TIER_COUNT },
		{ AT_TIER, TIER_MICROVM }, /* nobody says so */
		{ AT_TIER + 4, TIER_CHANGE_COUNT },
		{ AT_TIER + 4, TIER_KEEP }, /* with a rule */
		{ AT_TIER + 8, 1000 },
		{ AT_TIER + 12, 0 },
		{ AT_RULING_COUNT, RULING_LIMIT + 1 },
		{ AT_RULING_COUNT, 2 },
		{ rulings, RULING_KIND_COUNT },
		{ rulings, RULING_ASK }, /* "curl" is no class */
		{ rulings, RULING_EXCEPTION },
		{ rulings + 4, 0 },
		{ rulings + 20, 1000 },
		{ rulings + 24, 1 }, /* a last day where none belongs */
		{ rulings + 32 + 8, 0 },
		{ rulings + 64 + 24, 0 },
		{ AT_RULE_COUNT, 0 },
		{ AT_RULE_COUNT, UINT32_MAX },
		{ AT_RULE_COUNT, POLICY_LIMIT_RULES + 1 },
		{ AT_PATH_COUNT, VIEW_LIMIT_PATHS + 1 },
		{ AT_PATH_COUNT, 0x10000000 }, /* times 48 is more than 32 bits */
		{ AT_PATH_OFFSET, HEADER },
		{ AT_EGRESS_LENGTH, 0 },
		{ AT_EGRESS_LENGTH, EGRESS_LIMIT_BYTES + 1 },
		{ AT_EGRESS_LENGTH, at32(blob + AT_EGRESS_LENGTH) - 1 },
		{ AT_EGRESS_OFFSET, HEADER },
		{ at32(blob + AT_EGRESS_OFFSET), 0 },
		{ paths, PATH_CLASS_COUNT },
		{ paths, PATH_PROGRAM }, /* where not all else is held back */
		{ paths + 4, PATH_KIND_COUNT },
		{ paths + 8, 0 },
		{ paths + 16, at32(blob + paths + 8) }, /* an upper layer on PATH_READ */
		{ paths + 20, 2 },			/* one behind the last rule */
		{ paths + 40, 1 },			/* a state on PATH_READ */
	};

	(void)state;
	assert_int_equal(decode(blob, length), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t old = at32(blob + rows[i].at);

		set32(blob + rows[i].at, rows[i].value);
		if (decode(blob, length) == 0)
			fail_msg("row %zu is accepted", i);
		set32(blob + rows[i].at, old);
	}
	assert_int_equal(decode(blob, length), 0);
	free(blob);
}

/* Strings are told apart from garbage behind them, and the last one has an end. */
static void strings(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct policy policy = sample(&arena);
	size_t length;
	unsigned char *blob = encoded(&arena, &policy, &length), *longer = calloc(1, length + 2);

	(void)state;
	assert_non_null(longer);
	memcpy(longer, blob, length);
	set32(longer + AT_LENGTH, (uint32_t)length + 2);
	longer[length] = 'x';
	assert_int_equal(decode(longer, length + 2), -EBADMSG);
	blob[length - 1] = 'x';
	assert_int_equal(decode(blob, length), -EBADMSG);
	free(longer);
	free(blob);
}

static void refused_values(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct view_path path = { .class = PATH_READ, .source = "/a", .target = "/a" };
	struct policy_variable variable = { .name = "A", .value = "" };
	struct policy_listener listener = { .family = AF_INET, .type = SOCK_STREAM };
	struct policy base = sample(&arena);
	size_t length;
	unsigned char *blob;

	(void)state;
#define REFUSED(change)                                                 \
	do {                                                            \
		struct policy policy = base;                            \
		struct view_path p = path;                              \
		struct policy_variable v = variable;                    \
		struct policy_listener l = listener;                    \
		policy.view = (struct view){ .paths = &p, .count = 1 }; \
		policy.variables = &v, policy.variable_count = 1;       \
		policy.listeners = &l, policy.listener_count = 1;       \
		blob = encoded(&arena, &policy, &length);               \
		assert_int_equal(decode(blob, length), 0);              \
		free(blob);                                             \
		change;                                                 \
		blob = encoded(&arena, &policy, &length);               \
		assert_int_equal(decode(blob, length), -EBADMSG);       \
		free(blob);                                             \
	} while (0)
	REFUSED(policy.user = NULL);
	REFUSED(policy.home = "");
	REFUSED(policy.home = "home");
	REFUSED(policy.shell = "/bin/../sh");
	REFUSED(policy.workspace = "/a//b");
	REFUSED(policy.cwd = "/a/");
	REFUSED(policy.flags = 1u << 31);
	REFUSED(policy.rule_count = 0);
	REFUSED(p.target = "a");
	REFUSED(p.target = "/a/./b");
	REFUSED(p.source = "a");
	REFUSED(p.source = "");
	REFUSED(p.source = NULL);
	REFUSED(p.upper = "/u");
	REFUSED(p.class = PATH_CACHE);
	REFUSED((p.class = PATH_CACHE, p.upper = "u"));
	REFUSED(p.class = PATH_COPY);
	REFUSED(p.state = 1);
	REFUSED((p.class = PATH_COPY, p.state = 1, p.source = ""));
	REFUSED((p.class = PATH_GIT, p.target = "/b"));
	REFUSED((p.class = PATH_GIT, p.kind = PATH_KIND_FILE));
	REFUSED((p.class = PATH_OBJECTS, p.kind = PATH_KIND_MISSING));
	REFUSED((p.class = PATH_OBJECTS, p.source = "/b"));
	REFUSED((p.class = PATH_GIT, p.upper = "/u"));
	REFUSED(p.kind = PATH_KIND_LINK);
	REFUSED(p.class = PATH_CLASS_COUNT);
	REFUSED(p.kind = PATH_KIND_COUNT);
	REFUSED(p.rule = 2);
	REFUSED(v.name = "");
	REFUSED(v.name = "A=B");
	REFUSED(v.value = NULL);
	REFUSED(v.rule = 2);
	REFUSED(l.family = AF_UNIX);
	REFUSED(l.type = SOCK_RAW);
	REFUSED(l.port = 65536);
	REFUSED(policy.egress.mode = EGRESS_MODE_COUNT);
	REFUSED(policy.egress.purpose = "two words");
#undef REFUSED
}

static void limits(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	const unsigned char *blob;
	struct policy policy = sample(&arena), large;
	char *text = calloc(1, POLICY_LIMIT_BYTES + 1);
	size_t length;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', POLICY_LIMIT_BYTES);
	large = policy;
	large.user = text;
	assert_int_equal(policy_encode(&large, &arena, &blob, &length), -E2BIG);
	free(text);

	large = policy;
	large.rule_count = POLICY_LIMIT_RULES + 1;
	large.rules = calloc(large.rule_count, sizeof(*large.rules));
	assert_non_null(large.rules);
	for (size_t i = 0; i < large.rule_count; i++)
		large.rules[i].id = "r";
	assert_int_equal(policy_encode(&large, &arena, &blob, &length), -E2BIG);
	large.rule_count--;
	assert_int_equal(policy_encode(&large, &arena, &blob, &length), 0);
	assert_int_equal(decode(blob, length), 0);
	free(large.rules);

	large = policy;
	large.listener_count = POLICY_LIMIT_LISTENERS + 1;
	large.listeners = calloc(large.listener_count, sizeof(*large.listeners));
	assert_non_null(large.listeners);
	assert_int_equal(policy_encode(&large, &arena, &blob, &length), -E2BIG);
	free(large.listeners);
}

static void rules_and_variables(void **state)
{
	CLEANUP_ARENA struct arena arena = { 0 };
	struct policy policy = { 0 };
	struct rule_ref flag = { .id = "flag.read", .file = "--read", .line = 3 };

	(void)state;
	assert_int_equal(policy_rule(&policy, &arena, rule_builtin(RULE_HOME_PRIVATE)), 0);
	assert_int_equal(policy_rule(&policy, &arena, flag), 1);
	assert_int_equal(policy_rule(&policy, &arena, rule_builtin(RULE_HOME_PRIVATE)), 0);
	assert_int_equal(policy_rule(&policy, &arena, flag), 1);
	flag.line = 5;
	assert_int_equal(policy_rule(&policy, &arena, flag), 2);
	flag.file = NULL;
	assert_int_equal(policy_rule(&policy, &arena, flag), 3);

	assert_true(policy_variable(&policy, &arena, "A", "1", 0));
	assert_true(policy_variable(&policy, &arena, "B", "2", 0));
	assert_true(policy_variable(&policy, &arena, "A", "3", 1));
	assert_int_equal(policy.variable_count, 2);
	assert_string_equal(policy.variables[0].value, "3");
	assert_int_equal(policy.variables[0].rule, 1);
	for (unsigned i = 2; i < POLICY_LIMIT_VARIABLES; i++)
		assert_true(
			policy_variable(&policy, &arena, arena_format(&arena, "V%u", i), "", 0));
	assert_false(policy_variable(&policy, &arena, "ONE_TOO_MANY", "", 0));
	assert_true(policy_variable(&policy, &arena, "B", "replaced", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),	 cmocka_unit_test(cut_short),
		cmocka_unit_test(flipped_bytes), cmocka_unit_test(wrong_fields),
		cmocka_unit_test(strings),	 cmocka_unit_test(refused_values),
		cmocka_unit_test(limits),	 cmocka_unit_test(rules_and_variables),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
