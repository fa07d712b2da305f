#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "workspace/git_config.h"

#define CORE "[core]\n\tbare = false\n"
#define ORIGIN                                                                                \
	"[remote \"origin\"]\n\turl = https://h/a.git\n\tfetch = +refs/heads/*:refs/remotes/" \
	"origin/*\n"
#define MAIN "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
#define EVIL "[remote \"evil\"]\n\turl = https://evil/a.git\n"

struct row {
	const char *before, *after, *now; /* now NULL: as before */
	const char *text;		  /* NULL: nothing to write */
	const char *held; /* "key=value?reason " for each; "-" for an absent value */
};

static const char *const reasons[] = { "key", "value", "redirect", "dependent", "conflict" };

static struct git_text text_of(const char *text)
{
	return (struct git_text){ text, strlen(text) };
}

static int merge(struct arena *arena, const char *before, const char *after, const char *now,
		 struct git_config_merge *ret, struct error *error)
{
	*error = ERROR_NONE;
	*ret = (struct git_config_merge){ 0 };
	return git_config_merge(arena, text_of(before), text_of(after), text_of(now), ret, error);
}

static void check(const struct row *row)
{
	struct buffer CLEANUP_BUFFER held = { 0 };
	struct arena CLEANUP_ARENA arena = { 0 };
	struct git_config_merge result;
	struct error error;

	if (merge(&arena, row->before, row->after, row->now ? row->now : row->before, &result,
		  &error) < 0)
		fail_msg("%s: %s", row->after, error.message);
	for (size_t i = 0; i < result.held_count; i++)
		buffer_format(&held, "%s=%s?%s ", result.held[i].key,
			      result.held[i].after ? result.held[i].after : "-",
			      reasons[result.held[i].reason]);
	assert_string_equal(held.data ? held.data : "", row->held ? row->held : "");
	if (!row->text)
		assert_null(result.text);
	else if (!result.text)
		fail_msg("nothing to write for %s", row->after);
	else
		assert_string_equal(result.text, row->text);
}

static void check_all(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(&rows[i]);
}

#define CHECK(rows) check_all(rows, sizeof(rows) / sizeof((rows)[0]))

static void everyday_changes_are_applied(void **state)
{
	static const struct row rows[] = {
		{ CORE, CORE, NULL, NULL, NULL },
		{ "", "", NULL, NULL, NULL },
		{ CORE, CORE "[user]\n\tname = A B\n", NULL, CORE "[user]\n\tname = A B\n", NULL },
		{ "", "[user]\nname=x\n", NULL, "[user]\n\tname = x\n", NULL },
		{ CORE ORIGIN, CORE ORIGIN MAIN, NULL, CORE ORIGIN MAIN, NULL },
		/* git branch -m */
		{ ORIGIN MAIN,
		  ORIGIN "[branch \"trunk\"]\nremote = origin\nmerge = refs/heads/main\n", NULL,
		  ORIGIN "[branch \"trunk\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
		  NULL },
		/* git remote rename */
		{ ORIGIN MAIN,
		  "[remote \"up\"]\n\turl = https://h/a.git\n\tfetch = "
		  "+refs/heads/*:refs/remotes/up/*\n"
		  "[branch \"main\"]\n\tremote = up\n\tmerge = refs/heads/main\n",
		  NULL,
		  "[branch \"main\"]\n\tremote = up\n\tmerge = refs/heads/main\n"
		  "[remote \"up\"]\n\turl = https://h/a.git\n"
		  "\tfetch = +refs/heads/*:refs/remotes/up/*\n",
		  NULL },
		/* git remote remove, with what nobody may set */
		{ CORE ORIGIN "\tproxy = x\n" MAIN, CORE, NULL, CORE, NULL },
		/* several values, and what is in between stays */
		{ ORIGIN, ORIGIN "\tfetch = +refs/heads/a:refs/remotes/origin/a\n\tprune\n",
		  ORIGIN "# mine\n",
		  ORIGIN "\tfetch = +refs/heads/a:refs/remotes/origin/a\n\tprune\n# mine\n", NULL },
		{ "[branch \"a\"]\n\tdescription = x\n",
		  "[branch \"a\"]\n\tdescription = \"l;\\n\\tm\\\\\"\n", NULL,
		  "[branch \"a\"]\n\tdescription = \"l;\\n\\tm\\\\\"\n", NULL },
		{ "[branch \"a\"]\n\tdescription = x\n", "", NULL, "", NULL },
		/* names with what a header has to escape; upper case stays apart */
		{ "", "[submodule \"a\\\"b\"]\n\tactive = true\n", NULL,
		  "[submodule \"a\\\"b\"]\n\tactive = true\n", NULL },
		{ "[branch \"A\"]\n\trebase = true\n",
		  "[branch \"A\"]\n\trebase = true\n[branch \"a\"]\n\tRebase\n", NULL,
		  "[branch \"A\"]\n\trebase = true\n[branch \"a\"]\n\tRebase\n", NULL },
	};

	(void)state;
	CHECK(rows);
}

static void the_rest_stays_byte_for_byte(void **state)
{
	static const struct row rows[] = {
		{ "[user]\n\tname = a\n", "[user]\n\tname = b\n",
		  "# top\n\n[Core]\n\tx = 1 ; c\n[uSer]\n  NAME=a   # who\n\n; end\n",
		  "# top\n\n[Core]\n\tx = 1 ; c\n[uSer]\n  NAME = b   # who\n\n; end\n", NULL },
		{ "[user]\nname = a\nemail = e\n", "[user]\nemail = e\n",
		  "[user]\nname = a # gone\nemail = e # stays\n", "[user]\nemail = e # stays\n",
		  NULL },
		/* sections that are emptied, as git does it */
		{ CORE "[user]\n\tname = a\n[gc]\n\tauto = 0\n", CORE "[gc]\n\tauto = 0\n", NULL,
		  CORE "[gc]\n\tauto = 0\n", NULL },
		{ CORE "\n\n[user]\n\tname = a\n\n[gc]\n\tauto = 0\n", CORE "[gc]\n\tauto = 0\n",
		  NULL, CORE "[gc]\n\tauto = 0\n", NULL },
		{ CORE "# c\n[user]\n\tname = a\n", CORE, NULL, CORE "# c\n[user]\n", NULL },
		{ CORE "[user]\n\tname = a\n# c\n", CORE, NULL, CORE "[user]\n# c\n", NULL },
		{ CORE "[user] # c\n\tname = a\n", CORE, NULL, CORE "[user] # c\n", NULL },
		{ CORE "[user] name = a\n", CORE, NULL, CORE, NULL },
		{ CORE "# c\n[user] name = a\n", CORE, NULL, CORE "# c\n[user]\n", NULL },
		{ "[user]\n\tname = a\n[gc]\n\tauto = 0\n", "", NULL, "", NULL },
		/* an end without a line end, in a value that would go on */
		{ "", "[user]\n\tname = a\n", "[core]\n\tx = y",
		  "[core]\n\tx = y\n[user]\n\tname = a\n", NULL },
		{ "", "[user]\n\tname = a\n", "[core]\n\tx = y\\",
		  "[core]\n\tx = y\\\n\n[user]\n\tname = a\n", NULL },
		{ "", "[user]\n\tname = a\n", "[core]\n\tx = y\\\n",
		  "[core]\n\tx = y\\\n\n[user]\n\tname = a\n", NULL },
		{ "", "[user]\n\tname = a\n", "[core]\n# c", "[core]\n# c\n[user]\n\tname = a\n",
		  NULL },
		{ "", "[user]\n\tname = a\n", "[user]", "[user]\n\tname = a\n", NULL },
		{ "[user]\n\tname = x\\", "[user]\n\tname = y\n\temail = e\n", NULL,
		  "[user]\n\tname = y\n\n\temail = e\n", NULL },
		{ "[branch \"a\"] rebase", "[branch \"a\"] rebase = false\n", NULL,
		  "[branch \"a\"] rebase = false", NULL },
		{ "[branch \"a\"] rebase",
		  "[branch \"a\"] rebase = false\nrebase\ndescription = d\n", NULL,
		  "[branch \"a\"] rebase = false\n\trebase\n\tdescription = d\n", NULL },
		/* headers that share a line */
		{ "", "[user]\n\tname = a\n", "[user] [gc]auto=1\n",
		  "[user]\n\tname = a\n [gc]auto=1\n", NULL },
		{ "", "[user]\n\tname = a\n", "[user] # c\n[gc]\n",
		  "[user] # c\n\tname = a\n[gc]\n", NULL },
		/* the last of several blocks; CR LF; a byte order mark; an old header */
		{ "", "[user]\n\tname = a\n", "[user]\n[gc]\n[user]\n\temail = e\n",
		  "[user]\n[gc]\n[user]\n\temail = e\n\tname = a\n", NULL },
		{ "", "[user]\n\tname = a\n", "\xef\xbb\xbf[gc]\r\n\tauto = 1\r\n",
		  "\xef\xbb\xbf[gc]\r\n\tauto = 1\r\n[user]\r\n\tname = a\r\n", NULL },
		{ "[user]\r\nname = a\r\nemail = e\r\n", "[user]\nname = b\n", NULL,
		  "[user]\r\nname = b\r\n", NULL },
		{ "", "[branch \"a\"]\n\trebase\n", "[branch.A]\n", "[branch.A]\n\trebase\n",
		  NULL },
		/* of several values, one that goes first, in the middle and last */
		{ "[user]\nname = 1\nname = 2\nname = 3\n", "[user]\nname = 2\nname = 3\n",
		  "[user]\nname = 1 # a\nname = 2 # b\nname = 3\n",
		  "[user]\nname = 2 # b\nname = 3\n", NULL },
		{ "[user]\nname = 1\nname = 2\nname = 3\n", "[user]\nname = 1\nname = 3\n",
		  "[user]\nname = 1\n[gc]\nauto = 1\n[user]\nname = 2\nname = 3\n",
		  "[user]\nname = 1\n[gc]\nauto = 1\n[user]\nname = 3\n", NULL },
		{ "[user]\nname = 2\n", "[user]\nname = 1\nname = 2\n", NULL,
		  "[user]\nname = 1\n\tname = 2\n", NULL },
	};

	(void)state;
	CHECK(rows);
}

static void what_the_host_did_meanwhile_is_kept(void **state)
{
	static const struct row rows[] = {
		{ CORE, CORE "[user]\n\tname = a\n", CORE "[gc]\n\tauto = 1\n",
		  CORE "[gc]\n\tauto = 1\n[user]\n\tname = a\n", NULL },
		{ "[user]\n\tname = a\n", "[user]\n\tname = b\n", "[user]\n\tname = c\n", NULL,
		  "user.name=b?conflict " },
		{ "[user]\n\tname = a\n", "", "[user]\n\tname = c\n", NULL,
		  "user.name=-?conflict " },
		{ "[user]\n\tname = a\n", "[user]\n\tname = b\n", "", NULL,
		  "user.name=b?conflict " },
		{ "[user]\n\tname = a\n", "[user]\n\tname = b\n", "[user]\n\tname = b\n", NULL,
		  NULL },
		{ "[user]\n\tname = a\n", "[user]\n\tname = a\n", "", NULL, NULL },
		/* what is refused anyhow is told as that */
		{ "", "[core]\n\tpager = a\n", "[core]\n\tpager = b\n", NULL, "core.pager=a?key " },
		/* a remote in use by a branch of the host's */
		{ ORIGIN, "", ORIGIN MAIN, "[remote \"origin\"]\n\turl = https://h/a.git\n" MAIN,
		  "remote.origin.url=-?dependent " },
	};

	(void)state;
	CHECK(rows);
}

static void one_refusal_does_not_sink_the_rest(void **state)
{
	static const struct row rows[] = {
		{ CORE,
		  "[core]\n\tbare = true\n\tfsmonitor = /x\n\tfilemode = false\n"
		  "[user]\n\tname = a\n",
		  NULL, "[core]\n\tbare = false\n\tfilemode = false\n[user]\n\tname = a\n",
		  "core.bare=true?key core.fsmonitor=/x?key " },
		{ "[core]\n\tfsmonitor = false\n", "[user]\n\tname = a\n", NULL,
		  "[core]\n\tfsmonitor = false\n[user]\n\tname = a\n", "core.fsmonitor=-?key " },
	};

	(void)state;
	CHECK(rows);
}

/* `[section]` or `[section "sub"]`, key, value: each is held, and nothing is written. */
static void dangerous_keys_are_held(void **state)
{
	static const char *const texts[] = {
		"[core]\nfsmonitor = x\n",
		"[core]\nfsmonitor\n",
		"[CORE]\nHooksPath = .husky\n",
		"[core]\nsshCommand = x\n",
		"[core]\neditor = x\n",
		"[core]\npager = x\n",
		"[core]\nworktree = /\n",
		"[core]\nbare = true\n",
		"[core]\ngitProxy = x\n",
		"[core]\naskPass = x\n",
		"[core]\nattributesFile = x\n",
		"[core]\nexcludesFile = x\n",
		"[core]\nalternateRefsCommand = x\n",
		"[core]\ncommentChar = x\n",
		"[core]\nprotectNTFS = false\n",
		"[core]\ntrustctime = false\n",
		"[core]\nsharedRepository = 0666\n",
		"[core \"x\"]\neol = lf\n",
		"[core]\neol = x\n",
		"[core]\nautocrlf = maybe\n",
		"[core]\nrepositoryformatversion = 2\n",
		"[core]\nabbrev = 99999999999\n",
		"[alias]\nst = status\n",
		"[alias \"x\"]\ncommand = !x\n",
		"[pager]\nlog = x\n",
		"[filter \"x\"]\nclean = x\n",
		"[filter.x]\nsmudge = x\n",
		"[diff]\nexternal = x\n",
		"[diff \"x\"]\ntextconv = x\n",
		"[diff \"x\"]\nalgorithm = x\n",
		"[diff]\norderFile = x\n",
		"[merge]\ntool = x\n",
		"[merge \"x\"]\ndriver = x\n",
		"[mergetool \"x\"]\ncmd = x\n",
		"[difftool \"x\"]\ncmd = x\n",
		"[credential]\nhelper = x\n",
		"[credential \"https://h\"]\nhelper = x\n",
		"[gpg]\nprogram = x\n",
		"[user]\nsigningKey = x\n",
		"[commit]\ngpgSign = true\n",
		"[commit]\ntemplate = x\n",
		"[include]\npath = x\n",
		"[includeIf \"gitdir:/\"]\npath = x\n",
		"[include.x]\npath = x\n",
		"[url \"x\"]\ninsteadOf = y\n",
		"[http]\nproxy = x\n",
		"[http \"https://h\"]\nsslVerify = false\n",
		"[protocol]\nallow = always\n",
		"[sendemail]\nsmtpServer = x\n",
		"[trailer \"x\"]\ncommand = x\n",
		"[uploadpack]\npackObjectsHook = x\n",
		"[receive]\ndenyCurrentBranch = ignore\n",
		"[man \"x\"]\ncmd = x\n",
		"[browser \"x\"]\ncmd = x\n",
		"[web]\nbrowser = x\n",
		"[instaweb]\nhttpd = x\n",
		"[sequence]\neditor = x\n",
		"[interactive]\ndiffFilter = x\n",
		"[tar \"x\"]\ncommand = x\n",
		"[extensions]\nworktreeConfig = true\n",
		"[extensions]\nobjectFormat = sha256\n",
		"[extensions]\npartialClone = origin\n",
		"[safe]\ndirectory = *\n",
		"[init]\ntemplateDir = x\n",
		"[gc]\npruneExpire = now\n",
		"[gc]\nrecentObjectsHook = x\n",
		"[gc]\nauto = 1x\n",
		"[fetch]\npruneTags = true\n",
		"[rebase]\ninstructionFormat = %nexec x\n",
		"[pull]\ntwohead = x\n",
		"[push]\ndefault = matching\n",
		"[push]\nrecurseSubmodules = on-demand\n",
		"[remote]\npushDefault = x\n",
		"[status]\nshowUntrackedFiles = no\n",
		"[submodule \"a\"]\nupdate = !x\n",
		"[submodule \"a\"]\nignore = all\n",
		"[submodule \"../a\"]\nactive = true\n",
		"[submodule \"-a\"]\nactive = true\n",
		"[submodule \"a\"]\nurl = ext::sh\n",
		"[submodule \"a\"]\nurl = -x\n",
		"[lfs]\nurl = x\n",
		"[lfs \"x\"]\nurl = x\n",
		"[lfs \"customtransfer.x\"]\npath = x\n",
		"[lfs \"extension.x\"]\nclean = x\n",
		"[format]\nto = x\n",
		"[blame]\nignoreRevsFile = ../x\n",
		"[blame]\nignoreRevsFile = /dev/zero\n",
		"[user]\nname = !x\n",
		"[user]\nname = -x\n",
		"[user]\nname\n",
		"[user]\nname = a\\nb\n",
		"[user]\nname = \"a\x1b[m\"\n",
		"[user \"x\"]\nname = x\n",
		"[color \"diff\"]\nmeta = !x\n",
		"[branch \"a\"]\nmergeOptions = --strategy=x\n",
		"[branch \"a\"]\nmerge = main\n",
		"[branch \"a\"]\nmerge = refs/heads/../x\n",
		"[branch \"../a\"]\nrebase = true\n",
		"[branch \"a\"]\nremote = https://h/x\n",
		"[branch \"a\"]\nremote = ../x\n",
		"[branch \"a\"]\nremote = evil\n",
		"[branch \"a\"]\nremote = .\nremote = .\n",
		"[branch \"a\"]\ndescription = !x\n",
		"[remote \"a\"]\nurl = ext::sh -c x\n",
		"[remote \"a\"]\nurl = fd::1\n",
		"[remote \"a\"]\nurl = x::y\n",
		"[remote \"a\"]\nurl = foo://h/x\n",
		"[remote \"a\"]\nurl = -oProxyCommand=x\n",
		"[remote \"a\"]\nurl = ssh://-oProxyCommand=x/y\n",
		"[remote \"a\"]\nurl = ssh://%2doProxyCommand=x/y\n",
		"[remote \"a\"]\nurl = ssh://a@-x/y\n",
		"[remote \"a\"]\nurl = -x@h:y\n",
		"[remote \"a\"]\nurl = h:-y\n",
		"[remote \"a\"]\nurl = https://h/%0ahost=x\n",
		"[remote \"a\"]\nurl = \"https://h/\\n\"\n",
		"[remote \"a\"]\nurl = /srv/a.git\n",
		"[remote \"a\"]\nurl = ../a.git\n",
		"[remote \"a\"]\nurl = ./a:b\n",
		"[remote \"a\"]\nurl = file:///srv/a.git\n",
		"[remote \"a\"]\nurl = file://h/a.git\n",
		"[remote \"a\"]\nurl = ~/a.git\n",
		"[remote \"a\"]\nurl =\n",
		"[remote \"a\"]\nurl\n",
		"[remote \"-a\"]\nurl = https://h/x\n",
		"[remote \"..\"]\nurl = https://h/x\n",
		"[remote \"a/b\"]\nurl = https://h/x\n",
		"[remote \"https://h/x\"]\nurl = https://e/x\n",
		"[remote \"a\"]\nfetch = refs/heads/a:refs/remotes/a/a\n",
		"[remote \"a\"]\nvcs = x\n",
		"[remote \"a\"]\nuploadpack = x\n",
		"[remote \"a\"]\nreceivepack = x\n",
		"[remote \"a\"]\nproxy = x\n",
		"[remote \"a\"]\nmirror = true\n",
		"[remote \"a\"]\npromisor = true\n",
		"[a]\nb = c\n",
		"[]\n",
		"b = c\n",
	};
	struct arena CLEANUP_ARENA arena = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct git_config_merge result;
		struct error error;
		int code = merge(&arena, "[x]\ny = z\n", texts[i], "[x]\ny = z\n", &result, &error);

		if (strcmp(texts[i], "[]\n") == 0)
			assert_int_equal(code, -EBADMSG);
		else if (code < 0 || result.text || result.held_count < 2)
			fail_msg("%s: %d %s", texts[i], code, result.text ? result.text : "");
	}
}

static void urls_of_the_network_pass(void **state)
{
	static const char *const urls[] = {
		"https://h/a.git",	"http://h:8080/a",
		"https://u:p@h/a?b#c",	"ssh://git@h:22/a",
		"ssh://[::1]:22/a",	"git://h/a",
		"git@h:a/b.git",	"h:a",
		"git+ssh://git@h/~u/a", "https://h/%7Eu/",
	};
	struct arena CLEANUP_ARENA arena = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		char *text = arena_format(&arena, "[remote \"a\"]\n\turl = \"%s\"\n", urls[i]);
		struct git_config_merge result;
		struct error error;

		assert_int_equal(merge(&arena, "", text, "", &result, &error), 0);
		if (!result.text || result.held_count)
			fail_msg("%s", urls[i]);
	}
}

static void nothing_is_led_elsewhere(void **state)
{
	static const struct row rows[] = {
		{ ORIGIN,
		  "[remote \"origin\"]\n\turl = https://evil/a.git\n\tfetch = "
		  "+refs/heads/*:refs/remotes/origin/*\n",
		  NULL, NULL, "remote.origin.url=https://evil/a.git?redirect " },
		{ ORIGIN, ORIGIN "\turl = https://evil/a.git\n", NULL, NULL,
		  "remote.origin.url=https://evil/a.git?redirect " },
		{ ORIGIN, ORIGIN "\tpushurl = https://evil/a.git\n", NULL, NULL,
		  "remote.origin.pushurl=https://evil/a.git?redirect " },
		{ ORIGIN, ORIGIN "\tpush = refs/heads/a:refs/heads/b\n", NULL, NULL,
		  "remote.origin.push=refs/heads/a:refs/heads/b?redirect " },
		/* a push that the user keeps from going anywhere */
		{ ORIGIN "\tpushurl = DISABLED\n", ORIGIN, NULL, NULL,
		  "remote.origin.pushurl=-?redirect " },
		{ ORIGIN "\tpushurl = DISABLED\n",
		  "[remote \"up\"]\n\turl = https://h/a.git\n\tpushurl = DISABLED\n", NULL,
		  "[remote \"up\"]\n\turl = https://h/a.git\n\tpushurl = DISABLED\n", NULL },
		/* a branch led to a new remote, which itself passes */
		{ ORIGIN MAIN,
		  ORIGIN "[branch \"main\"]\n\tremote = evil\n\tmerge = refs/heads/main\n" EVIL,
		  NULL, ORIGIN MAIN EVIL, "branch.main.remote=evil?redirect " },
		{ ORIGIN MAIN, ORIGIN MAIN "\tpushRemote = evil\n" EVIL, NULL, ORIGIN MAIN EVIL,
		  "branch.main.pushremote=evil?redirect " },
		{ ORIGIN, ORIGIN "[branch \"b\"]\n\tremote = evil\n" EVIL, NULL,
		  ORIGIN "[branch \"b\"]\n\tremote = evil\n" EVIL, NULL },
		/* in one task, a new remote of the same name is the old one changed */
		{ ORIGIN MAIN,
		  "[remote \"old\"]\n\turl = https://h/a.git\n[remote \"origin\"]\n\turl = "
		  "https://evil/a.git\n" MAIN,
		  NULL,
		  "[remote \"origin\"]\n\turl = https://h/a.git\n" MAIN
		  "[remote \"old\"]\n\turl = https://h/a.git\n",
		  "remote.origin.url=https://evil/a.git?redirect " },
		/* without a URL, origin is the directory of that name */
		{ ORIGIN MAIN, MAIN, NULL, "[remote \"origin\"]\n\turl = https://h/a.git\n" MAIN,
		  "remote.origin.url=-?dependent " },
		{ ORIGIN MAIN, "[branch \"main\"]\n\tremote = evil\n" EVIL, NULL,
		  "[remote \"origin\"]\n\turl = https://h/a.git\n"
		  "[branch \"main\"]\n\tremote = origin\n" EVIL,
		  "branch.main.remote=evil?redirect remote.origin.url=-?dependent " },
		{ "", "[remote \"a\"]\n\tfetch = refs/heads/a:refs/remotes/a/a\n\turl = /a\n", NULL,
		  NULL,
		  "remote.a.fetch=refs/heads/a:refs/remotes/a/a?dependent remote.a.url=/a?value " },
		/* a path that the user has already */
		{ "[remote \"o\"]\n\turl = /a\n[branch \"m\"]\n\tremote = o\n",
		  "[remote \"p\"]\n\turl = /a\n[branch \"m\"]\n\tremote = p\n", NULL,
		  "[branch \"m\"]\n\tremote = p\n[remote \"p\"]\n\turl = /a\n", NULL },
		/* a fetch over the user's branches */
		{ ORIGIN, ORIGIN "\tfetch = +refs/heads/*:refs/heads/*\n", NULL, NULL,
		  "remote.origin.fetch=+refs/heads/*:refs/heads/*?value " },
		{ "[submodule \"a\"]\n\turl = https://h/a\n",
		  "[submodule \"a\"]\n\turl = https://evil/a\n", NULL, NULL,
		  "submodule.a.url=https://evil/a?redirect " },
		{ "", "[submodule \"a\"]\n\turl = /srv/a\n", NULL,
		  "[submodule \"a\"]\n\turl = /srv/a\n", NULL },
		{ ORIGIN MAIN "\tpushremote = .\n", ORIGIN MAIN, NULL, NULL,
		  "branch.main.pushremote=-?redirect " },
	};

	(void)state;
	CHECK(rows);
}

static void bad_texts_are_held_whole(void **state)
{
	static const char *const bad[] = {
		"[a",	     "[a]\nb = \\q\n", "[a]\nb = \"x\n", "[a]\n1 = x\n",
		"[a \"b]\n", "\xef\xbb",       "[a]\nb # c\n",	 "[a]\n\v\n",
	};
	struct arena CLEANUP_ARENA arena = { 0 };
	struct git_config_merge result;
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(merge(&arena, CORE, bad[i], CORE, &result, &error), -EBADMSG);
		assert_non_null(strstr(error.message, "of the task: git could not read line"));
		assert_int_equal(merge(&arena, bad[i], CORE, CORE, &result, &error), -EBADMSG);
		assert_int_equal(merge(&arena, CORE, CORE, bad[i], &result, &error), -EBADMSG);
		assert_non_null(strstr(error.message, "of the host"));
		assert_null(result.text);
	}
	assert_int_equal(git_config_merge(&arena, text_of(CORE),
					  (struct git_text){ "[user]\nname = a\0b\n", 18 },
					  text_of(CORE), &result, &error),
			 -EBADMSG);
}

static void limits_hold(void **state)
{
	struct arena CLEANUP_ARENA arena = { 0 };
	char *text = malloc(GIT_CONFIG_LIMIT_BYTES + 1);
	struct git_config_merge result;
	struct error error;
	size_t length;

	(void)state;
	memset(text, '#', GIT_CONFIG_LIMIT_BYTES + 1);
	assert_int_equal(git_config_merge(&arena, (struct git_text){ 0 },
					  (struct git_text){ text, GIT_CONFIG_LIMIT_BYTES },
					  (struct git_text){ 0 }, &result, &error),
			 0);
	assert_int_equal(git_config_merge(&arena, (struct git_text){ 0 },
					  (struct git_text){ text, GIT_CONFIG_LIMIT_BYTES + 1 },
					  (struct git_text){ 0 }, &result, &error),
			 -EFBIG);
	memcpy(text, "[a]\n", 4);
	for (length = 4; length < 4 + 2 * (GIT_CONFIG_LIMIT_ENTRIES + 1); length += 2)
		memcpy(text + length, "b\n", 2);
	assert_int_equal(git_config_merge(&arena, (struct git_text){ 0 },
					  (struct git_text){ text, length - 2 },
					  (struct git_text){ 0 }, &result, &error),
			 0);
	assert_int_equal(result.held_count, GIT_CONFIG_LIMIT_ENTRIES);
	assert_int_equal(git_config_merge(&arena, (struct git_text){ 0 },
					  (struct git_text){ text, length }, (struct git_text){ 0 },
					  &result, &error),
			 -EFBIG);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everyday_changes_are_applied),
		cmocka_unit_test(the_rest_stays_byte_for_byte),
		cmocka_unit_test(what_the_host_did_meanwhile_is_kept),
		cmocka_unit_test(one_refusal_does_not_sink_the_rest),
		cmocka_unit_test(dangerous_keys_are_held),
		cmocka_unit_test(urls_of_the_network_pass),
		cmocka_unit_test(nothing_is_led_elsewhere),
		cmocka_unit_test(bad_texts_are_held_whole),
		cmocka_unit_test(limits_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
