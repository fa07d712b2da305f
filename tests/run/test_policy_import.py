"""bawn policy import: settings of others as a policy, and what it cannot say; they are hostile."""
import json
import os
import subprocess
import tomllib

import pytest

from boxed import BAWN, place

__all__ = ["place"]


def imported(place, source, settings, name="settings.json"):
    path = place.base / name
    if not isinstance(settings, (str, bytes)):
        settings = json.dumps(settings, indent=1)
    path.write_bytes(settings.encode() if isinstance(settings, str) else settings)
    return subprocess.run([BAWN, "policy", "import", "--from", source, str(path)],
                          capture_output=True, text=True, cwd=place.work, timeout=60, check=False)


def checked(place, ran):
    """What is printed is a policy: the loader says so."""
    assert ran.returncode == 0, ran
    folder = place.base / "policies"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "made.yaml").write_text(ran.stdout)
    (folder / "made.yaml").chmod(0o600)
    check = subprocess.run([BAWN, "policy", "show", str(folder / "made.yaml")],
                           capture_output=True, text=True, cwd=place.work, timeout=60, check=False)
    assert check.returncode == 0, (ran.stdout, check)
    said = [line.partition("  [")[0] for line in check.stdout.splitlines()]
    return {line.partition(" (not built")[0] for line in said} - {"version: 1"}, \
        ran.stdout.partition("# Not taken over:\n")[2]


def test_claude(place):
    said, notes = checked(place, imported(place, "claude", {
        "model": "x",
        "permissions": {
            "allow": ["Bash(npm test:*)", "Read(~/.zshrc)", "Read(//opt/data/**)",
                      "WebFetch(domain:docs.example.org)", "Edit(src/**)", "mcp__github"],
            "ask": ["Bash(git push:*)"],
            "deny": ["Read(./.env)", "Read(./secrets/**)", "Read(**/*.pem)", "Bash(curl:*)",
                     "Bash(rm -rf:*)", "WebFetch(domain:*.com)", "Read(**)", "Edit(//etc/x)"],
            "additionalDirectories": ["../docs/", "/srv/notes"], "defaultMode": "plan",
            "somethingNew": True},
        "env": {"CI": "1", "OPENAI_API_KEY": "sk-secret"},
        "sandbox": {"enabled": True, "excludedCommands": ["docker"],
                    "network": {"allowedDomains": ["github.com", "*.npmjs.org"],
                                "allowUnixSockets": ["/run/docker.sock"]}},
    }))
    home = next(line for line in said if line.endswith("/.zshrc")).partition(": ")[2]
    assert said == {
        "workspace: read-only", f"filesystem.read: {home}", "filesystem.read: /opt/data",
        "filesystem.write: /srv/notes", "filesystem.hide: .env", "filesystem.hide: secrets",
        "filesystem.hide: **/*.pem", "filesystem.protect: /etc/x", "exec.deny: curl",
        "network.allow: docs.example.org", "network.deny: *.com",
        "network.allow: *.npmjs.org", "environment.set: CI=1"}
    # a denial of all of .com leaves nothing of github.com
    for word in ("git push", "rm -rf", "github.com", "../docs/", "mcp__github",
                 "sandbox.excludedCommands",
                 "OPENAI_API_KEY", "somethingNew", "sandbox.network.allowUnixSockets", "model"):
        assert word in notes, (word, notes)
    assert "sk-secret" not in notes


def test_srt(place):
    settings = {"network": {"allowedDomains": ["github.com"], "deniedDomains": ["bad.github.com"],
                            "allowLocalBinding": False},
                "filesystem": {"denyRead": ["~/.ssh", "/etc/x/"],
                               "allowWrite": [".", "src/", "/tmp", "/srv/out"],
                               "denyWrite": [".env"]}}
    said, notes = checked(place, imported(place, "srt", settings))
    assert {"network.allow: github.com", "network.deny: bad.github.com", "filesystem.hide: /etc/x",
            "filesystem.write: /srv/out", "filesystem.protect: **/.env"} <= said
    assert not any(line.startswith("workspace") for line in said)
    assert "src/" in notes and "/tmp" in notes
    # where the workspace is not among what may be written it is not
    settings["filesystem"]["allowWrite"] = []
    assert "workspace: read-only" in checked(place, imported(place, "srt", settings))[0]


def test_what_is_left_out_takes_nothing_with_it(place):
    """Attack on a copy: what the loader refuses may not be the reason that others are left out."""
    said, notes = checked(place, imported(place, "srt", {"network": {"allowedDomains": [
        "*.com", "github.com", "*.github.com", "api.github.com"]}}))
    assert {"network.allow: github.com", "network.allow: *.github.com"} <= said
    # and what is said of it names the other one, not a line of a text that nobody has
    assert "never decides anything: *.github.com allows all of it" in notes, notes
    assert "decides anything: line" not in notes, notes
    assert "other ports than 443" in notes


def test_a_name_is_denied_at_any_depth(place):
    """Claude's rules are read as gitignore's: what has no '/' is meant wherever it lies."""
    deny = ["Read(*.pem)", "Read(id_rsa)", "Read(secrets/)", "Read(./.env)", "Read(a/b)",
            "Read(/x)", "Edit(lock.json)", "Edit(a/b.json)", "Read(//etc/x)"]
    said, _ = checked(place, imported(place, "claude", {
        "permissions": {"deny": deny},
        "sandbox": {"filesystem": {"denyRead": ["//etc/y"], "denyWrite": [".env"]}}}))
    assert said == {f"filesystem.hide: {name}" for name in (
        "**/*.pem", "**/id_rsa", "**/secrets", ".env", "a/b", "x", "/etc/x", "/etc/y")} | {
            f"filesystem.protect: **/{name}" for name in ("lock.json", "a/b.json", ".env")}


def test_settings_with_comments(place):
    text = """{ // of the user's
      /* "tools": {"exclude": ["run_shell_command(ls)"]}, */
      "x": "//no \\" comment /*", "tools": {"exclude": ["run_shell_command(rm)",]}, // end
    }"""
    said, notes = checked(place, imported(place, "gemini", text))
    assert said == {"exec.deny: rm"} and "line 3: x" in notes, (said, notes)
    for text in ("/*", "//", '{"a": "/*', "{/**/}", "/*/", '"\\'):
        assert imported(place, "gemini", text).returncode in (0, 1)


def test_gemini(place):
    said, notes = checked(place, imported(place, "gemini", {
        "tools": {"exclude": ["run_shell_command(rm)", "run_shell_command(git push)", "write_file",
                              "web_fetch"],
                  "allowed": ["run_shell_command(git status)"], "sandbox": "docker"},
        "context": {"includeDirectories": ["/srv/lib"]}, "ui": {"theme": "dark"}}))
    assert said == {"exec.deny: rm", "workspace: read-only", "filesystem.write: /srv/lib"}
    for word in ("git push", "web_fetch", "git status", "tools.sandbox", "ui"):
        assert word in notes, (word, notes)


@pytest.mark.parametrize("evil", [
    "x\nkernel: {ptrace: true}\n", "x\"]\nkernel: {ptrace: true}", "x' # ", "\\", "*", "a: b",
    "\u2028\u202e", "\x7f", "- x", "!!tag", "&a", "{", "#", "~", "null", "a" * 5000, "/" * 3000, "",
])
def test_settings_put_nothing_else_into_the_policy(place, evil):
    """Attack: a repository's settings, whose strings would be other statements."""
    settings = {
        "permissions": {"deny": [f"Read({evil})", f"Edit({evil})", f"Bash({evil})",
                                 f"WebFetch(domain:{evil})", evil],
                        "allow": [f"Read(//{evil})", f"Edit(//{evil})", f"WebFetch(domain:{evil})"],
                        "additionalDirectories": [f"/{evil}", f"~/{evil}"], "defaultMode": evil},
        "env": {evil: evil, "A": evil}, "sandbox": {evil: evil}, evil: {evil: [evil]}}
    ran = imported(place, "claude", settings)
    if ran.returncode:
        assert ran.stdout == "" and ran.stderr.startswith("bawn: "), ran
        return
    said, _ = checked(place, ran)
    keys = {line.partition(": ")[0] for line in said}
    assert keys <= {"filesystem.read", "filesystem.write", "filesystem.hide", "filesystem.protect",
                    "exec.deny", "network.allow", "network.deny", "environment.set"}, said
    outside = ran.stdout.replace("\n", "")
    assert outside.isprintable() or evil in ("\x7f", "\u2028\u202e"), ran.stdout


def test_what_is_no_settings(place):
    for text in ("", "[", "[1]", "x", "\0", '{"a": 1} {"b": 2}', "{" * 1000, "&a [*a]",
                 '{"permissions": 5}', '{"permissions": {"deny": {"a": "b"}}}', "x" * (2 << 20)):
        ran = imported(place, "claude", text)
        assert ran.returncode in (0, 1) and len(ran.stdout) < 500, (text[:20], ran)
        if ran.returncode == 0:
            checked(place, ran)
    ran = subprocess.run([BAWN, "policy", "import", "--from", "other"], capture_output=True,
                         text=True, timeout=20, check=False)
    assert ran.returncode == 2 and "claude codex gemini srt" in ran.stderr, ran


def test_many_rules(place):
    """Each that the loader would not have becomes a comment, however many there are."""
    deny = [f"Read(dir{i}/*.x**)" for i in range(200)] + [f"Read(dir{i})" for i in range(500)]
    said, notes = checked(place, imported(place, "claude", {"permissions": {"deny": deny}}))
    assert len(said) == 500 and notes.count("\n") == 200


# ---- codex ----

def codex(place, text):
    return imported(place, "codex", text, name="config.toml")


def test_codex_modes(place):
    said, notes = checked(place, codex(place, """\
model = "gpt-5"
approval_policy = "never"
sandbox_mode = "workspace-write"

[sandbox_workspace_write]
writable_roots = ["/srv/cache", "build", "/tmp"]
network_access = true
exclude_slash_tmp = true

[shell_environment_policy]
inherit = "core"
exclude = ["AWS_*"]
include_only = ["LANG", "CI_*", "NPM_TOKEN"]
set = { CI = "1", API_KEY = "sk-secret" }

[projects."/home/u/x"]
trust_level = "trusted"
[mcp_servers.github]
command = "npx"
"""))
    assert said == {"workspace: direct", "approval: never", "filesystem.write: /srv/cache",
                    "environment.pass: LANG", "environment.set: CI=1"}
    for word in ("line 6: build", "/tmp: nothing is needed", "network_access", "exclude_slash_tmp",
                 "inherit", "line 12: exclude", "CI_*", "NPM_TOKEN", "API_KEY", "line 16: projects",
                 "mcp_servers", "line 1: model"):
        assert word in notes, (word, notes)
    assert "sk-secret" not in notes
    # what is not said is what is not allowed
    for text, workspace, approval in (
            ("", "read-only", None), ('sandbox_mode = "read-only"', "read-only", None),
            ('sandbox_mode = "danger-full-access"', "read-only", None),
            ('sandbox_mode = "new-mode"', "read-only", None),
            ("sandbox_mode = 5", "read-only", None), ("sandbox_mode = []", "read-only", None),
            ('approval_policy = "untrusted"', "read-only", "always"),
            ('approval_policy = "on-failure"', "read-only", None),
            ("approval_policy = { granular = { rules = true } }", "read-only", None)):
        text += '\n[sandbox_workspace_write]\nwritable_roots = ["/srv/cache"]\n'
        said, notes = checked(place, codex(place, text))
        wanted = {f"workspace: {workspace}"} | ({f"approval: {approval}"} if approval else set())
        assert said == wanted, (text, said)
        assert "sandbox_workspace_write" in notes, (text, notes)


def test_codex_profiles(place):
    text = """\
profile = "work"
sandbox_mode = "read-only"
approval_policy = "on-request"
[profiles.work]
sandbox_mode = "workspace-write"
model = "x"
[profiles.full]
sandbox_mode = "danger-full-access"
"""
    said, notes = checked(place, codex(place, text))
    assert said == {"workspace: direct", "approval: on-request"}
    assert "full: a profile that is not selected" in notes and "work: " not in notes
    said, notes = checked(place, codex(place, text.replace('"work"', '"gone"')))
    assert said == {"workspace: read-only", "approval: on-request"}
    assert "gone: a profile that is not there" in notes


PERMISSIONS = """\
default_permissions = "mine"
[permissions.mine]
extends = "base"
[permissions.mine.filesystem]
":root" = "read"
":minimal" = "read"
":tmpdir" = "write"
"~/.ssh/**" = "deny"
"/opt/data" = "read"
"/srv/out" = "write"
glob_scan_max_depth = 3
[permissions.mine.filesystem."/srv"]
"secret" = "none"
[permissions.mine.filesystem.":workspace_roots"]
"." = "write"
"**/*.env" = "none"
".github/**" = "read"
"src" = "write"
[permissions.mine.network]
enabled = true
domains = { "**.example.org" = "allow", "x.example.org" = "deny", "*" = "allow" }
unix_sockets = { "/run/docker.sock" = "allow" }
[permissions.mine.workspace_roots]
"/srv/other" = true
"/srv/off" = false
[permissions.base]
extends = ":read-only"
[permissions.base.filesystem]
"/opt/data" = "write"
"/opt/more" = "read"
[permissions.base.network]
enabled = false
[permissions.unused]
"""


def test_codex_permissions(place):
    said, notes = checked(place, codex(place, PERMISSIONS))
    home = next(line for line in said if line.endswith("/.ssh")).partition(": ")[2]
    assert said == {
        "workspace: direct", "filesystem.read: /opt/data", "filesystem.read: /opt/more",
        "filesystem.write: /srv/out", "filesystem.write: /srv/other", f"filesystem.hide: {home}",
        "filesystem.hide: /srv/secret", "filesystem.hide: **/*.env",
        "filesystem.protect: **/.github",
        "network.allow: example.org", "network.allow: *.example.org",
        "network.deny: x.example.org"}
    for word in (":root: the host as a whole", ":minimal", ":tmpdir", "glob_scan_max_depth",
                 "src: a part of the workspace", "network.allow *", "unix_sockets", "unused"):
        assert word in notes, (word, notes)


def test_codex_permissions_that_allow_less(place):
    """Attack: hosts of a network that is off, a profile that an older setting leaves out, loops."""
    hosts = {"network.allow: example.org", "network.allow: *.example.org"}
    for old, new, gone in (("enabled = true", "enabled = false", hosts),
                           ("enabled = true", 'enabled = true\nmode = "limited"', hosts),
                           ("enabled = true\n", "", hosts),
                           ('"." = "write"', '"." = "read"', {"workspace: direct"}),
                           ('"." = "write"\n', "", {"workspace: direct"}),
                           ("default_perm", 'sandbox_mode = "read-only"\ndefault_perm',
                            {"workspace: direct", "filesystem.write: /srv/out"}),
                           ('"mine"', '":read-only"', {"filesystem.write: /srv/out"}),
                           ('"mine"', '"other"', {"filesystem.write: /srv/out"})):
        assert old in PERMISSIONS
        said, _ = checked(place, codex(place, PERMISSIONS.replace(old, new, 1)))
        assert not said & gone, (new, said)
        assert "workspace: read-only" in said or "workspace: direct" not in gone, (new, said)
    said, notes = checked(place, codex(place, PERMISSIONS.replace('":read-only"', '"mine"')))
    assert "a profile that is not there" in notes


RULES = """# mine
prefix_rule(
    pattern = ["git", ["push", "fetch"]],  # both
    decision = "prompt",
    justification = "ask me",
    match = [["git", "push", "origin"], "git fetch"],
    not_match = ["git status"],
)
prefix_rule(pattern=["rm"], decision='prompt')
prefix_rule(pattern=["curl"], decision="forbidden", match=["curl -s x", ["curl"]],
            not_match=["wget x", "curl x"])
prefix_rule(pattern=[["nc", r"ncat"],], decision='''forbidden''')
prefix_rule(pattern=["git", "reset", "--hard"], decision="forbidden")
prefix_rule(pattern=["ls"])
prefix_rule(pattern=["make"], decision="prompt")
network_rule(host="api.example.org", protocol="https", decision="allow")
network_rule(host="*.evil.example", protocol="http", decision="deny")
network_rule(host="up.example.org", protocol="https", decision="prompt")
network_rule(host="*.com", protocol="https", decision="allow")
host_executable(name="git", paths=["/usr/bin/git"])
"""


def test_codex_rules(place):
    said, notes = checked(place, imported(place, "codex", RULES, "x.rules"))
    assert {line for line in said if not line.startswith("tests: ")} == {
        "exec.deny: curl, match curl -s x, match curl, not_match wget x", "exec.deny: nc",
        "exec.deny: ncat", "approvals.ask: external-writes",
        "approvals.ask: unknown-domains", "approvals.ask: destructive",
        "network.allow: api.example.org", "network.ask: up.example.org",
        "network.deny: *.evil.example"}
    for note in ("line 13: git reset --hard: ", "line 14: ls: nothing is needed",
                 "line 15: make: ", "*.com", "line 20: host_executable: "):
        assert note in notes, notes
    made = place.base / "policies" / "made.yaml"
    assert 'match: ["curl -s x", "curl"], not_match: ["wget x"]' in made.read_text()
    test = subprocess.run([BAWN, "policy", "test", str(made)], capture_output=True, text=True,
                          cwd=place.work, timeout=60, check=False)
    assert test.returncode == 0 and "4 of 4" in test.stdout, test


def test_codex_rules_beside_settings(place):
    rules = place.base / "rules"
    rules.mkdir()
    (rules / "b.rules").write_text('prefix_rule(pattern=["nc"], decision="forbidden")\n')
    (rules / "a.rules").write_text('prefix_rule(pattern=["git", "push"], decision="prompt", '
                                   'match=["git push"])\nx = 1\n')
    (rules / "c.rules").write_bytes(b"\xff")
    (rules / "old.txt").write_text('prefix_rule(pattern=["ls"], decision="forbidden")\n')
    (rules / "d.rules").mkdir()
    os.mkfifo(rules / "e.rules")
    said, notes = checked(place, codex(place, 'approval_policy = "never"\n'
                                       'sandbox_mode = "read-only"\n'))
    assert {"exec.deny: nc", "approvals.ask: external-writes", "workspace: read-only"} <= said
    assert "exec.deny: ls" not in said
    assert "verdict: deny}" in (place.base / "policies" / "made.yaml").read_text()
    for note in ("rules/a.rules line 2: ", "rules/c.rules:1:1: ", "rules/d.rules: no file",
                 "rules/e.rules: no file"):
        assert note in notes, notes


# Statements that are no call with all written out: told, and nothing of them is taken.
NO_RULES = [
    'x = ["nc"]', "if True:\n    DENY", "def f():\n\tDENY", " DENY", "DENY; DENY", "DENY DENY",
    "(DENY)", "[DENY for x in y]", 'prefix_rule(["nc"], "forbidden")',
    'prefix_rule(pattern=["nc"] + [], decision="forbidden")',
    'prefix_rule(pattern=["n" "c"], decision="forbidden")',
    'prefix_rule(pattern=["nc".strip()], decision="forbidden")',
    'prefix_rule(pattern=["%s" % x], decision="forbidden")',
    'prefix_rule(pattern=[f"nc"], decision="forbidden")',
    'prefix_rule(pattern=[b"nc"], decision="forbidden")',
    'prefix_rule(pattern=["nc\\q"], decision="forbidden")',
    'prefix_rule(pattern=["nc\\x00"], decision="forbidden")',
    'prefix_rule(pattern=("nc",), decision="forbidden")',
    'prefix_rule(pattern=[["nc"], []], decision="forbidden")',
    'prefix_rule(pattern=[], decision="forbidden")',
    'prefix_rule(pattern="nc", decision="forbidden")',
    'prefix_rule(pattern=[[[[["nc"]]]]], decision="forbidden")',
    'prefix_rule(pattern=["nc"], decision=forbidden)',
    'prefix_rule(pattern=["nc"], decision="deny")', 'prefix_rule(pattern=["nc"], decision=None)',
    'prefix_rule(decision="forbidden")', "prefix_rule(**x)",
    'prefix_rule(pattern=["nc"], decision="forbidden"',
    'prefix_rule(pattern=["nc", decision="forbidden")',
    'prefix_rule(pattern=["nc], decision="x")',
    'prefix_rule(pattern=["nc"] decision="forbidden")',
    'other_rule(pattern=["nc"], decision="forbidden")',
    '"""\nDENY\n"""', "'''\nDENY\n'''", 'x = """\nDENY\n"""', "x = (\nDENY\n)", "x = \\\nDENY",
    'x = "\\\nDENY"', "load('x', 'y')", "pass", "\u0440refix_rule(pattern=['nc'])",
]


def test_what_is_no_plain_rule_is_told(place):
    deny = 'prefix_rule(pattern=["nc"], decision="forbidden")'
    more = '\nprefix_rule(pattern=["wget"], decision="forbidden")\n'
    for text in NO_RULES:
        text = text.replace("DENY", deny)
        said, notes = checked(place, imported(place, "codex", text + more, "x.rules"))
        assert "exec.deny: nc" not in said and notes, text
        # what is not closed takes the next statement along
        if all(text.count(a) == text.count(b) for a, b in ("()", "[]")) and '["nc]' not in text:
            assert "exec.deny: wget" in said, (text, notes)


def test_hostile_rules(place):
    one = b'prefix_rule(pattern=["nc"], decision="forbidden")\n'
    inner = b"\\nfilesystem:\\n  write: [/etc]\\n"
    for text in (b"", b"\n", b"#", b"(" * 99999, b"[" * 99999, b'"' * 100001, b"'" * 99999,
                 b"a\n" * 20000, b"prefix_rule(" * 9000, b"prefix_rule(pattern=" + b"[" * 9000,
                 one * 3000, b"\\" * 9999,
                 b"prefix_rule(pattern=[" + b'["a","b"],' * 14 + b'], decision="prompt")',
                 b'prefix_rule(pattern=["' + inner + b'"], decision="forbidden")',
                 b'prefix_rule(pattern=["rm", "' + inner + b'"], decision="prompt")',
                 b'prefix_rule(pattern=["rm", "' + inner + b'"], decision="prompt", '
                 b'match=["rm \\"}, {verdict: allow", ["rm", "\\n- x"]])',
                 'prefix_rule(pattern=["rm", "\u202e"], decision="prompt")'.encode()):
        said, _ = checked(place, imported(place, "codex", text, "x.rules"))
        assert not any(line.startswith("filesystem") for line in said), text
    for text in (b"\0", b"\xff", b"\x1b", b"a\n" * 60000, b"#" * (256 * 1024 + 1)):
        ran = imported(place, "codex", text, "x.rules")
        assert ran.returncode == 1 and ".rules:" in ran.stderr, (text[:20], ran)


def accepts(text):
    try:
        tomllib.loads(text)
        return True
    except tomllib.TOMLDecodeError:
        return False


TOML = [
    "a = 1", "a = 1\na = 2", "a.b = 1\na.c = 2", "a.b = 1\na = 2", "a = 1\na.b = 2", "[a]\n[a]",
    "[a]\nb = 1\n[a.b]", "[a.b]\n[a]", "[a.b]\n[a]\nb.c = 1", "[a.b]\n[a]\nb = 1", "a.b = 1\n[a]",
    "a.b = 1\n[a.c]", "[[a]]\n[[a]]\n[a.b]\n[[a.c]]", "[a]\n[[a]]", "[[a]]\n[a]", "a = []\n[[a]]",
    "a = {}\n[a]", "a = {}\n[a.b]", "a = {b = 1}\na.c = 2", "a = {b = 1, b = 2}",
    "a = {b.c = 1, b.d = 2}", "a = {b.c = 1, b = 2}", "a = {b = 1,}", "a = [1, 2,]",
    "a = [\n1,\n# x\n2\n]", "a = {b = 1\n}",
    "a", "a =", "= 1", "[]", "[a", "[a]]", "[[a]", "a = 1 b = 2",
    "[a] b = 1", 'a = "x', "a = 'x", 'a = """x""', 'a = "\\q"', 'a = "\\u12"', 'a = "\\ud800"',
    'a = "\\U00110000"', "a = 01", "a = 1__0", "a = _1", "a = 0x_1", "a = 1.", "a = .1", "a = +0x1",
    "a = tru", "a = 1979-05-27T07:32:00Z", "a = 07:32:00", "a = 1979-13-01",
    "\"a b\" = 1", "'a' = 1",
    '"" = 1', "a . b = 1", "a..b = 1", ".a = 1", "a. = 1", "\u00e4 = 1", "# x",
    "\n\n", "a = 1\r\nb = 2",
    "[a.'b.c']\nx = 1\n[a.\"b.c\"]", "a = [[1], ['x', {b = [2]}]]",
    'a = """x"""""', 'a = """x""""""', "a = '''x'''''", "a = '''x''''''", "a = nan\nb = -inf",
]


@pytest.mark.parametrize("text", TOML)
def test_toml_is_as_strict_as_another_reader(place, text):
    ran = codex(place, text)
    assert (ran.returncode == 0) == accepts(text), ran
    if ran.returncode:
        line, column = ran.stderr.split(":")[2:4]
        assert ran.stdout == "" and ran.stderr.startswith("bawn: ") and \
            ran.stderr.count("\n") == 1, ran
        assert 1 <= int(line) <= text.count("\n") + 1 and int(column) >= 1, ran


@pytest.mark.parametrize("string", [
    '"/a b"', "'/a\\b'", '"""/a\nb"""', '"""\n/a"""', "'''/a\nb'''", "'''\n/it's'''",
    '"""/a\\\n   \n b"""', '"/\\t\\n\\r\\f\\b\\"\\\\"', '"/\\u00e4\\u20ac\\U0001F600"',
    '"""/a"" ""b"""', '"/\u00e4"', '"""/\r\n"""', '"/#"', '"/\\u007f"', '"/~"', '"/a=b"',
])
def test_strings_of_toml(place, string):
    """What a string says is what another reader takes it for."""
    text = f'sandbox_mode = "workspace-write"\n[sandbox_workspace_write]\n' \
           f"writable_roots = [\n{string}]\n"
    wanted = tomllib.loads(text.replace("\r\n", "\n"))["sandbox_workspace_write"]["writable_roots"]
    ran = codex(place, text)
    assert ran.returncode == 0, ran
    found = [line for line in ran.stdout.splitlines()
             if line.startswith('    - "') or "line 4" in line or "line 5" in line]
    told = [json.loads(line[6:]).replace("\r\n", "\n") for line in found
            if line.startswith("    - ")]
    # what is no path for a policy is told as it stands
    assert told == wanted or len(found) == 1 and "line" in found[0], (ran, wanted)


def test_hostile_toml(place):
    """Nothing of it takes long, or more memory than the role has, or is taken for another thing."""
    roots = 'sandbox_mode = "workspace-write"\n' \
            'sandbox_workspace_write = {{ writable_roots = [{}] }}'
    many = "".join(f"k{i} = {i}\n" for i in range(8000))
    for text, reason in (
            ("[" * 200000, "nested deeper"), ("a = " + "[" * 200000, "nested deeper"),
            ("a = " + "[" * 60, "not TOML"), ("a = [[[[[[[[[[[[[[1]]]]]]]]]]]]]]", None),
            ("a = [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]", "nested deeper"),
            ("a = [" + "'[[[', \"{{\", # [[[\n" * 100 + "]", None),
            ("a = " + "[" * 100000 + "]" * 100000, "nested deeper"),
            ("a = " + "{b = " * 40000 + "1" + "}" * 40000, "nested deeper"),
            (".".join("a" * 100000) + " = 1", "more parts"),
            ("[" + ".".join("a" * 100000) + "]", "more parts"),
            ("".join(f"[a{'.a' * i}]\n" for i in range(30)), ""),
            (many + many.replace("k", "l"), "more than 16384"), (many, None),
            ("k = 1\n" * 30000, "given before"), ("[[a]]\n" * 30000, "more than 16384"),
            ("a = \"" + "x" * 250000 + "\"", None), ("# " + "x" * 250000, None),
            ("a = \"" + "x" * 300000 + "\"", "larger than 256 KiB"),
            ("a = \"\"\"" + "\n" * 200000 + "\"\"\"", None), ("\n" * 250000, None),
            ("a = \"\"\"" + "\"" * 200001, "quotes"),
            ("a = " + "1" * 200000, None), ("a = [" + "1," * 8000 + "]", None),
            ("a = [" + "1," * 100000 + "]", "more than 16384"), ("\"" * 200001, "not TOML"),
            ("a = 1\0", "control"), ("\0", "control"), ("a = \"\\u0000\"", "NUL"),
            ("a = \"\x1b[2J\"", "control"), ("\ufeffa = 1", None), (b"a = '\xff'", "UTF-8"),
            (b"a = '\xc0\x80'", "UTF-8"), (b"\xed\xa0\x80 = 1", "UTF-8"), ("a = 1\rb = 2", ""),
            (roots.format('"x", "\\n  - \\"/etc\\"", "/etc", "/", "~", "/x\\u202e"'), None)):
        ran = codex(place, text)
        assert ran.returncode == (0 if reason is None else 1), (text[:40], ran)
        if reason is not None:
            assert ran.stdout == "" and reason in ran.stderr and len(ran.stderr) < 400, \
                (text[:40], ran)
        else:
            said, _ = checked(place, ran)
            assert all(line.partition(": ")[0] in ("workspace", "filesystem.write")
                       for line in said), said


@pytest.mark.parametrize("evil", ["x\nkernel: {ptrace: true}\n", "x\"]\nkernel: {ptrace: true}",
                                  "x' # ", "\\", "*", "a: b", "\u2028\u202e", "- x", "{", "#", "~",
                                  "a" * 5000, ""])
def test_codex_puts_nothing_else_into_the_policy(place, evil):
    quoted = json.dumps(evil, ensure_ascii=True)
    ran = codex(place, f"""\
default_permissions = {quoted}
approval_policy = {quoted}
profile = {quoted}
{quoted} = {quoted}
[shell_environment_policy]
include_only = [{quoted}]
set = {{ {quoted} = {quoted}, A = {quoted} }}
[permissions.{quoted}]
extends = {quoted}
filesystem = {{ {quoted} = "write", "~/{evil.encode('ascii', 'ignore').decode().replace(chr(34), '')
    .replace(chr(92), '').replace(chr(10), '')}" = {quoted}, ":cwd" = {{ {quoted} = "deny" }} }}
network = {{ enabled = true, domains = {{ {quoted} = "allow" }} }}
workspace_roots = {{ {quoted} = true }}
""")
    said, _ = checked(place, ran)
    keys = {line.partition(": ")[0] for line in said}
    assert keys <= {"workspace", "filesystem.read", "filesystem.hide", "filesystem.protect",
                    "network.allow", "network.deny", "environment.set", "environment.pass"}, said
