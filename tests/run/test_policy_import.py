"""bawn policy import: settings of others as a policy, and what it cannot say; they are hostile."""
import json
import subprocess

import pytest

from boxed import BAWN, place

__all__ = ["place"]


def imported(place, source, settings, name="settings.json"):
    path = place.base / name
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings, indent=1))
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
            "filesystem.write: /srv/out", "filesystem.protect: .env"} <= said
    assert not any(line.startswith("workspace") for line in said)
    assert "src/" in notes and "/tmp" in notes
    # where the workspace is not among what may be written it is not
    settings["filesystem"]["allowWrite"] = []
    assert "workspace: read-only" in checked(place, imported(place, "srt", settings))[0]


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
    assert ran.returncode == 2 and "claude gemini srt" in ran.stderr, ran


def test_many_rules(place):
    """Each that the loader would not have becomes a comment, however many there are."""
    deny = [f"Read(dir{i}/*.x**)" for i in range(200)] + [f"Read(dir{i})" for i in range(500)]
    said, notes = checked(place, imported(place, "claude", {"permissions": {"deny": deny}}))
    assert len(said) == 500 and notes.count("\n") == 200
