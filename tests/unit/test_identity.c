#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "home.h"

#include "base/error.h"
#include "workspace/identity.h"

struct row {
	const char *text, *result;
};

/* Syntax as git-config(1) and git itself have it; what git refuses gives nothing. */
static const struct row syntax[] = {
	{ "", "" },
	{ "[user]\nname = A B\n", "[user]\n\tname = \"A B\"\n" },
	{ "[user]\n\tname=A B", "[user]\n\tname = \"A B\"\n" },
	{ "[user] name = x", "[user]\n\tname = \"x\"\n" },
	{ "[USER]\nNaMe = x\n", "[user]\n\tname = \"x\"\n" },
	{ "[user]\nname = x # c\nemail = y ; d\n", "[user]\n\tname = \"x\"\n\temail = \"y\"\n" },
	{ "[user]\nname = \"x # c\"\n", "[user]\n\tname = \"x # c\"\n" },
	{ "[user]\nname =  x  \n", "[user]\n\tname = \"x\"\n" },
	{ "[user]\nname = \" x \"\n", "[user]\n\tname = \" x \"\n" },
	{ "[user]\nname = a\"b  \"c  \n", "[user]\n\tname = \"ab  c\"\n" },
	{ "[user]\nname = a \\\n b\n", "[user]\n\tname = \"a  b\"\n" },
	{ "[user]\r\nname = a\r\n", "[user]\n\tname = \"a\"\n" },
	{ "[user]\nname = \"\\\"q\\\\\"\n", "[user]\n\tname = \"\\\"q\\\\\"\n" },
	{ "\xef\xbb\xbf[user]\nname = x\n", "[user]\n\tname = \"x\"\n" },
	{ "[user]\nname = J\xc3\xbcrgen\n", "[user]\n\tname = \"J\xc3\xbcrgen\"\n" },
	{ "# c\n; d\n[user]\n# e\nname = x\n", "[user]\n\tname = \"x\"\n" },
	{ "[rerere]\nenabled\n", "[rerere]\n\tenabled\n" },
	{ "[user]\nname =\n", "[user]\n\tname = \"\"\n" },
	{ "[color \"diff\"]\nmeta = red\n", "[color \"diff\"]\n\tmeta = \"red\"\n" },
	{ "[color.diff]\nmeta = red\n", "[color \"diff\"]\n\tmeta = \"red\"\n" },
	{ "[user]\nname=a\n[x]\ny=z\n[user]\nemail=b\n",
	  "[user]\n\tname = \"a\"\n\temail = \"b\"\n" },
	/* a value with control bytes goes alone */
	{ "[user]\nname = a\\nb\nemail = c\n", "[user]\n\temail = \"c\"\n" },
	{ "[user]\nname = \"a\tb\"\nemail = c\n", "[user]\n\temail = \"c\"\n" },
	{ "[user]\nname = a\tb\n", "[user]\n\tname = \"a b\"\n" },
	{ "[user]\nname = a\x1b[31m\n", "" },
	/* all of what git would refuse */
	{ "[rerere]\nenabled # c\n", "" },
	{ "[user]\nname = x\n\v\n", "" },
	{ "[user\nname = x\n", "" },
	/* no section: a name that is on no list */
	{ "name = x\n[user]\nname = y\n", "[user]\n\tname = \"y\"\n" },
	{ "[user]\nname = x\n[core", "" },
	{ "[user]\nname = \"x\n", "" },
	{ "[user]\nname = \\q\n", "" },
	{ "[user]\nname = x\n1a = y\n", "" },
	{ "[user]\nname = x\n-x\n", "" },
	{ "[user]\nname = x\n[a \"b]\n", "" },
	{ "[user]\nname = x\nna me = y\n", "" },
};

static void syntax_is_gits(void **state)
{
	struct arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(syntax) / sizeof(syntax[0]); i++)
		assert_string_equal(identity_filter(&arena, syntax[i].text), syntax[i].result);
	arena_free(&arena);
}

static void dangerous_keys_are_dropped(void **state)
{
	static const char *const texts[] = {
		"[core]\neditor = x\npager = x\nfsmonitor = x\nhooksPath = x\nsshCommand = x\n"
		"askPass = x\nattributesFile = x\nexcludesFile = x\ngitProxy = x\nworktree = x\n"
		"alternateRefsCommand = x\n",
		"[alias]\nst = !sh\n",
		"[include]\npath = x\n[includeIf \"gitdir:/\"]\npath = x\n",
		"[includeIf.x]\npath = x\n",
		"[credential]\nhelper = x\n[credential \"https://a\"]\nusername = x\n",
		"[url \"a\"]\ninsteadOf = b\n[http]\nproxy = x\nextraHeader = x\n",
		"[user]\nsigningKey = x\n[gpg]\nprogram = x\n",
		"[commit]\ngpgSign = true\ntemplate = x\n",
		"[filter \"x\"]\nclean = x\nsmudge = x\nprocess = x\n",
		"[diff]\nexternal = x\n[diff \"x\"]\ncommand = x\ntextconv = x\n",
		"[merge \"x\"]\ndriver = x\n[merge]\ntool = x\n[mergetool \"x\"]\ncmd = x\n",
		"[pager]\nlog = x\n[sequence]\neditor = x\n[init]\ntemplateDir = x\n",
		"[push]\nrecurseSubmodules = x\n[fetch]\nparallel = x\n[help]\nbrowser = x\n",
		"[user \"x\"]\nname = x\n[core \"x\"]\neol = lf\n[color \"x\"]\ny = z\n",
		"[color \"diff\\\"]\"]\nx = y\n[userx]\nname = x\n[use]\nrname = x\n",
		"[safe]\ndirectory = *\n[protocol]\nallow = always\n",
		"[uploadpack]\npackObjectsHook = x\n",
	};
	struct arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_string_equal(identity_filter(&arena, texts[i]), "");
	arena_free(&arena);
}

static void over_long_names_do_not_match(void **state)
{
	char text[1024] = "[user]\n";
	struct arena arena = { 0 };

	(void)state;
	strcat(text, "name");
	for (int i = 0; i < 100; i++)
		strcat(text, "x");
	strcat(text, " = y\nemail = z\n");
	assert_string_equal(identity_filter(&arena, text), "[user]\n\temail = \"z\"\n");
	arena_free(&arena);
}

static char program[4096]; /* where the role is looked for: beside this test */

static int copy_role(void **state)
{
	char from[sizeof(program) + 32], bytes[65536];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 32);
	int source, copy;

	(void)state;
	if (length < 0)
		return -1;
	program[length] = '\0';
	*strrchr(program, '/') = '\0';
	snprintf(from, sizeof(from), "%s/../../bawn-parse", program);
	strcat(program, "/bawn-parse");
	(void)unlink(program);
	source = open(from, O_RDONLY | O_CLOEXEC);
	copy = open(program, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	while ((length = read(source, bytes, sizeof(bytes))) > 0)
		if (write(copy, bytes, (size_t)length) != length)
			return -1;
	close(source);
	close(copy);
	return length < 0 ? -1 : chmod(program, 0755);
}

static int remove_role(void **state)
{
	(void)state;
	return unlink(program);
}

static int set_up(void **state)
{
	*state = fixture_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)chmod(program, 0755);
	fixture_free(*state);
	return 0;
}

static int load(struct fixture *fixture, char **ret_text, struct error *error)
{
	*error = ERROR_NONE;
	*ret_text = NULL;
	return identity_load(&fixture->host, fixture->state_fd, &fixture->arena, ret_text, error);
}

static void assert_load(struct fixture *fixture, const char *expected)
{
	struct error error;
	char *text;

	if (load(fixture, &text, &error) != 0)
		fail_msg("%s", error.message);
	assert_string_equal(text, expected);
}

static void no_configuration_is_empty(void **state)
{
	struct fixture *fixture = *state;

	/* nor is a role looked for */
	assert_int_equal(chmod(program, 0777), 0);
	assert_load(fixture, "");
	fixture->host.home = NULL;
	assert_load(fixture, "");
}

static void both_files_the_later_wins(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "home/.config/git/config", "[user]\nname = first\n[core]\neditor = x\n");
	assert_load(fixture, "[user]\n\tname = \"first\"\n");
	make(fixture, "home/.gitconfig", "[user]\nname = second\n");
	assert_load(fixture, "[user]\n\tname = \"first\"\n[user]\n\tname = \"second\"\n");
}

/* Without its program the role cannot be asked: an answer can only be the kept one. */
static void answer_is_kept_until_the_file_changes(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	char *text;

	make(fixture, "home/.gitconfig", "[user]\nname = one\n");
	assert_load(fixture, "[user]\n\tname = \"one\"\n");
	assert_int_equal(chmod(program, 0777), 0);
	assert_load(fixture, "[user]\n\tname = \"one\"\n");
	make(fixture, "home/.gitconfig", "[user]\nname = three\n");
	assert_int_equal(load(fixture, &text, &error), -EPERM);
	assert_non_null(strstr(error.message, "bawn-parse"));
	assert_int_equal(chmod(program, 0755), 0);
	assert_load(fixture, "[user]\n\tname = \"three\"\n");
}

static void links_are_followed(void **state)
{
	struct fixture *fixture = *state;

	make(fixture, "dotfiles/git", "[user]\nname = x\n");
	make_link(fixture, "home/.gitconfig", "../dotfiles/git");
	assert_load(fixture, "[user]\n\tname = \"x\"\n");
	make_link(fixture, "home/.gitconfig", "nowhere");
	assert_load(fixture, "");
}

static void odd_files_are_refused(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	char path[128], *text, *large = malloc(IDENTITY_LIMIT_BYTES + 2);

	snprintf(path, sizeof(path), "%s/.gitconfig", fixture->home);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_int_equal(load(fixture, &text, &error), -EPERM);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(load(fixture, &text, &error), -EPERM);
	assert_int_equal(rmdir(path), 0);
	make_link(fixture, "home/.gitconfig", "/dev/zero");
	assert_int_equal(load(fixture, &text, &error), -EPERM);
	assert_int_equal(unlink(path), 0);
	memset(large, '#', IDENTITY_LIMIT_BYTES + 1);
	large[IDENTITY_LIMIT_BYTES + 1] = '\0';
	make(fixture, "home/.gitconfig", large);
	assert_int_equal(load(fixture, &text, &error), -EFBIG);
	large[IDENTITY_LIMIT_BYTES] = '\0';
	make(fixture, "home/.gitconfig", large);
	assert_load(fixture, "");
	free(large);
}

static void text_with_nul_is_refused_by_the_role(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	char path[128], *text;
	int fd;

	snprintf(path, sizeof(path), "%s/.gitconfig", fixture->home);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, "[user]\0name = x\n", 16), 16);
	close(fd);
	assert_int_equal(load(fixture, &text, &error), -EBADMSG);
	assert_non_null(strstr(error.message, "step"));
}

/* Directories, links and foreign files where the answer is kept. */
static void planted_answers_are_not_taken(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	char path[128], *text;

	make(fixture, "home/.gitconfig", "[user]\nname = x\n");
	make(fixture, "elsewhere/x", "");
	snprintf(path, sizeof(path), "%s/elsewhere", fixture->root);
	make_link(fixture, "state/identity", path);
	assert_int_equal(load(fixture, &text, &error), -ENOTDIR);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syntax_is_gits),
		cmocka_unit_test(dangerous_keys_are_dropped),
		cmocka_unit_test(over_long_names_do_not_match),
		CASE(no_configuration_is_empty),
		CASE(both_files_the_later_wins),
		CASE(answer_is_kept_until_the_file_changes),
		CASE(links_are_followed),
		CASE(odd_files_are_refused),
		CASE(text_with_nul_is_refused_by_the_role),
		CASE(planted_answers_are_not_taken),
	};

	return cmocka_run_group_tests(tests, copy_role, remove_role);
}
