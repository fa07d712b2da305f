"""What the host's tools would run later: a run tells what changed, in words and in the result."""
import os
import subprocess

import pytest

from boxed import place

__all__ = ["place"]


@pytest.fixture
def repository(place):
    subprocess.run(["git", "init", "-q", place.work], check=True)
    subprocess.run(["git", "-C", place.work, "config", "user.name", "a"], check=True)
    subprocess.run(["git", "-C", place.work, "config", "user.email", "a@b"], check=True)
    return place


def changed(ran):
    return {(os.path.basename(c["path"]), c["kind"], c["state"]) for c in ran.result["changes"]}


def test_everyday_git_says_nothing(repository):
    ran = repository.sh("echo a > f && git add f && git commit -qm x && git checkout -q -b y && "
                        "git stash list && git gc -q && git checkout -q - && git branch -d y && "
                        "git config a.b c && git config --unset a.b && "
                        "git config --remove-section a; true", "--json")
    assert ran.status == 0, ran
    assert {c["state"] for c in ran.result["changes"]} == {"applied"}, ran.result["changes"]
    assert not any("reason" in c for c in ran.result["changes"]) and "bawn:" not in ran.err, ran


@pytest.mark.parametrize("script", [
    "git config core.fsmonitor /tmp/x",
    "printf '[core]\\n\\tpager = x\\n' >> .git/config",
    "touch .git/hooks/pre-commit",
    "echo ../elsewhere > .git/commondir",
    "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes",
    "! mv .git g",
    "cp .git/config c; echo x >> .git/config; mv c .git/config; chmod 600 .git/config; "
    "echo '[a]' >> .git/config",
])
def test_the_git_directory_is_covered(repository, script):
    ran = repository.sh(script, "--json")
    assert ran.status == 0, ran
    assert {one for one in changed(ran) if one[2] != "held"} <= {("c", "created", "applied")}, \
        ran.result["changes"]
    assert not (repository.work / ".git/hooks/pre-commit").exists()
    assert not (repository.work / ".git/commondir").exists()


@pytest.mark.parametrize("script, name, kind", [
    ("mkdir .vscode; echo {} > .vscode/tasks.json", ".vscode", "created"),
    ("mkdir .claude; echo {} > .claude/settings.json", ".claude", "created"),
    ("echo 'touch /tmp/x' > .envrc", ".envrc", "created"),
    # content changed, size and modification time kept: the change time tells
    ("cp -p .mcp.json /tmp/c; sed -i s/a/b/ .mcp.json; touch -r /tmp/c .mcp.json",
     ".mcp.json", "replaced"),
])
def test_planted_things_are_told(repository, script, name, kind):
    (repository.work / ".mcp.json").write_text("a\n")
    ran = repository.sh(script, "--json")
    assert ran.status == 0, ran
    assert (name, kind, "applied") in changed(ran), ran.result["changes"]
    assert name in ran.err and "look at it first" in ran.err


@pytest.mark.parametrize("before", ["seq 300 | xargs touch", "touch \u017f", "touch .ENVRC .Git2",
                                    "seq 254 | xargs touch", "chmod 300 ."])
def test_planted_in_any_top(place, before):
    subprocess.run(["sh", "-c", before], cwd=place.work, check=True)
    try:
        ran = place.sh("echo x > .envrc; mkdir .vscode", "--json")
        assert {(".envrc", "created", "applied"), (".vscode", "created", "applied")} <= changed(ran)
        assert place.sh("true", "--json").result["changes"] == []
        ran = place.sh("rm .envrc", "--json")
        assert changed(ran) == {(".envrc", "removed", "applied")}
    finally:
        place.work.chmod(0o755)


def test_quiet_keeps_it_in_the_result_alone(repository):
    ran = repository.sh("touch .envrc", "--json", "--quiet")
    assert changed(ran) == {(".envrc", "created", "applied")} and ran.err == ""


def test_hostile_names_do_not_hang(place):
    ran = place.sh("ln -s /etc .git; mkfifo .envrc; ln -s loop .claude; "
                   "mkdir .vscode; mkfifo $(seq -f .vscode/%g 600)", "--json")
    assert ran.status == 0, ran
    assert {name for name, _, _ in changed(ran)} >= {".git", ".envrc", ".vscode"}
