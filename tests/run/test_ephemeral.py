"""Ephemeral workspaces: the task works in a layer of its own, which is gone with it, however it
ends; nothing comes to the host, and nothing waits to be applied. As user and as root."""
import hashlib
import itertools
import os

import pytest

from boxed import eventually, place, select_ready
from live import live
from test_git_box import EXPORT, LAYOUTS, git, plain
from test_staged import CHANGE, contents, fill, stages

__all__ = ["live", "place"]

COMMIT = f"{EXPORT} echo x > f; git add -A; git commit -qm planted; git tag planted"


def assert_none_is_kept(live):
    """Neither a stage nor a layer with something in it."""
    def layers():
        # a verb that buries what a dead supervisor left
        assert stages(live) == [] and not (live.state / "stages").exists()
        return [(at, files) for name in ("tasks", "spares")
                for at, _, files in os.walk(live.state / name) if "upper" in at and files]

    assert eventually(lambda: not layers()), layers()
    live.assert_nothing_left()


def task_of(live):
    """The id of the only task on record."""
    found, = (live.state / "trace/tasks").iterdir()
    return found.name.split(".")[0]


def test_nothing_is_left(live):
    fill(live.work)
    before = contents(live.work)
    ran = live.sh(f"set -e; {CHANGE}; cat edited created; test ! -e removed", "--ephemeral",
                  "--json")
    assert ran.status == 0 and ran.out.startswith("edited\nmore\nnew\n"), ran
    assert ran.result["ephemeral"] is True and "stage" not in ran.result, ran.result
    changes = {os.path.relpath(change["path"], live.work): change
               for change in ran.result["changes"]}
    assert changes["edited"]["kind"] == "modified" and len(changes) == 8
    assert {change["state"] for change in changes.values()} == {"dropped"}
    assert changes["edited"]["before"]["sha256"] == hashlib.sha256(b"edited\n").hexdigest()
    assert changes["edited"]["after"]["sha256"] == hashlib.sha256(b"edited\nmore\n").hexdigest()
    assert ran.err.count("bawn: ephemeral: ") == 1 and "bawn diff" not in ran.err, ran
    assert contents(live.work) == before
    assert_none_is_kept(live)
    for words in (("diff",), ("apply",), ("discard", "--yes")):
        said = live.verb(*words, task_of(live))
        assert said.status == 1 and "is ephemeral" in said.err and said.out == "", said
        assert said.err.count("\n") == 1, said


def test_without_a_change_nothing_is_said(live):
    ran = live.sh("ls -la; echo x > /tmp/x", "--ephemeral", "--json")
    assert ran.result["ephemeral"] is True and "ephemeral" not in ran.err, ran
    assert "ephemeral" not in live.sh("true", "--json").result


def test_what_is_not_on_record_is_not_known(live):
    assert live.sh("echo x > f", "--ephemeral").status == 0
    task = task_of(live)
    for path in (live.state / "trace/policies").iterdir():
        path.write_bytes(path.read_bytes() + b"x")
    for word in (task, task[:-1], "t-" + "a" * 300):
        said = live.verb("diff", word)
        assert said.status == 1 and "has no stage" in said.err, said


def test_directories_that_nobody_may_enter_go_too(live):
    ran = live.sh("mkdir -p a/b/c; echo x > a/b/c/f; mkfifo a/p; chmod 000 a/b/c a/b a",
                  "--ephemeral")
    assert ran.status == 0, ran
    assert os.listdir(live.work) == []
    assert_none_is_kept(live)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_git_works_inside_and_nothing_lands(live, layout):
    directories = layout(live)
    before = [contents(at) for at in directories]
    ran = live.sh(f"set -e; {COMMIT}; git log --format=%s -1; git gc -q; git status --porcelain",
                  "--ephemeral")
    assert ran.status == 0 and ran.out == "planted\n", ran
    assert "bawn: ephemeral: " in ran.err, ran
    assert [contents(at) for at in directories] == before
    assert not (live.state / "held").exists() or os.listdir(live.state / "held") == []
    assert_none_is_kept(live)


def test_a_dead_supervisor_leaves_nothing(live):
    """Neither its files nor its commits come, by whoever buries it."""
    plain(live)
    before = contents(live.work)
    # the supervisor has nothing to do meanwhile: then it keeps what its burier would go on with
    child = live.start("--ephemeral", "--", "sh", "-c",
                       f"{COMMIT}; echo '#!/bin/sh' > .git/hooks/pre-push; sleep 0.3; echo done; "
                       "exec sleep 1000")
    assert select_ready(child) == b"done\n"
    child.kill()
    child.communicate()
    assert live.sh("true").status == 0, "a start, which buries"
    assert contents(live.work) == before
    assert git(live.work, "tag").stdout == ""
    assert live.verb("review", "ls").out == ""
    assert_none_is_kept(live)


def test_a_live_task(live):
    plain(live)
    before = contents(live.work)
    task = live.begin("--ephemeral")
    ran = live.sh_in(task, f"{COMMIT}; echo new > created", "--json")
    assert ran.status == 0 and ran.result["ephemeral"] is True, ran
    assert contents(live.work) == before
    ran = live.sh_in(task, "git log --format=%s -1; cat created")
    assert ran.out == "planted\nnew\n", ran
    ran = live.verb("diff", task)
    assert ran.status == 1 and "is ephemeral" in ran.err, ran
    assert live.verb("task", "end", task).status == 0
    assert contents(live.work) == before
    assert_none_is_kept(live)


def test_the_host_goes_on_meanwhile(live):
    plain(live)
    ran = live.start("--ephemeral", "--", "sh", "-c",
                     f"{COMMIT}; echo done; exec sleep 1000")
    assert select_ready(ran) == b"done\n"
    git(live.work, "commit", "-q", "--allow-empty", "-m", "host")
    ran.terminate()
    ran.communicate()
    assert git(live.work, "log", "--format=%s", "-1").stdout == "host\n"
    assert git(live.work, "status", "--porcelain").stdout == ""
    assert_none_is_kept(live)


@pytest.mark.parametrize("options", itertools.combinations(
    ["--stage", "--ephemeral", "--read-only"], 2))
def test_they_exclude_each_other(live, options):
    for verb in ("run", "explain", "task start"):
        words = [*options, "--", "true"] if verb == "run" else options
        first, *rest = verb.split()
        ran = live.verb(first, *rest, *words)
        assert ran.status in (2, 125) and "exclude each other" in ran.err, ran
        assert ran.err.count("\n") == 1, ran


def test_what_is_said_is_so(live):
    ran = live.verb("verify", "--quick", "--ephemeral")
    assert ran.status == 0 and ", 0 failed" in ran.out, ran
    assert "gone when the task ends" in " ".join(live.verb("explain", "--ephemeral").out.split())
    assert live.verb("plan", "--ephemeral").status == 0
    ran = live.sh("cat /run/bawn/policy.txt /run/bawn/*.txt 2>/dev/null", "--ephemeral")
    assert "what you change is gone when the task ends" in ran.out, ran


def test_an_empty_one(live):
    """Nothing of the host's is in it, and nothing of it is on the host, also of names it has."""
    plain(live)
    (live.work / "sub").mkdir()
    (live.work / ".env").write_text("SECRET=1\n")
    before = contents(live.work)
    ran = live.sh("pwd; ls -A; git init -q; echo x > f; mkdir -p .git/hooks sub; echo y > sub/y; "
                  "echo x > .git/hooks/pre-commit; cat .env", "--ephemeral=empty", "--json",
                  cwd=live.work / "sub")
    assert ran.out.startswith(f"{live.work}\n{{"), ran
    changes = {os.path.relpath(change["path"], live.work): (change["kind"], change["state"])
               for change in ran.result["changes"]}
    assert changes["f"] == changes["sub"] == changes["sub/y"] == ("created", "dropped")
    assert contents(live.work) == before
    assert_none_is_kept(live)


def test_an_empty_one_of_a_live_task(live):
    fill(live.work)
    before = contents(live.work)
    task = live.begin("--ephemeral=empty")
    assert live.sh_in(task, "ls -A; echo mine > edited").out == ""
    assert live.sh_in(task, "ls -A; cat edited").out == "edited\nmine\n"
    assert live.verb("task", "end", task).status == 0
    assert contents(live.work) == before
    assert_none_is_kept(live)


def test_artifacts_of_an_empty_one(live):
    fill(live.work)
    out = live.base / "out"
    ran = live.sh("mkdir d; echo made > d/made; ln -s /etc/passwd link", "--ephemeral=empty",
                  "--artifact", "**", "--artifact-dir", out)
    assert ran.status == 0, ran
    assert [os.path.join(base, name) for base, _, names in os.walk(out) for name in names] == [
        str(out / "d/made")]
    # a start that failed has made nothing: neither is what lies on the host
    ran = live.run("--ephemeral=empty", "--artifact", "**", "--artifact-dir", live.base / "none",
                   "--cwd", "/nowhere", "--", "true")
    assert ran.status == 125 and not (live.base / "none").exists(), ran


def test_what_has_no_place_in_an_empty_one(live):
    fill(live.work)
    for option in ("--read", "--write"):
        ran = live.run("--ephemeral=empty", option, live.work / "edited", "--", "true")
        assert ran.status == 125 and "is empty" in ran.err and "--input" in ran.err, ran
    ran = live.sh("cat /run/bawn/input/edited; ls -A", "--ephemeral=empty", "--input",
                  live.work / "edited", "--protect", "edited")
    assert ran.status == 0 and ran.out == "edited\n", ran


def test_a_policy_has_an_empty_one(live):
    fill(live.work)
    for word, option, status in (("empty", (), 0), ("empty", ("--ephemeral=empty",), 0),
                                 ("empty", ("--read-only",), 126), ("empty", ("--ephemeral",), 126),
                                 ("read-only", ("--ephemeral=empty",), 0),
                                 ("staged", ("--ephemeral=empty",), 0)):
        policy = live.base / "policy.yaml"
        policy.write_text(f"version: 1\nworkspace: {word}\n")
        ran = live.sh("ls -A", "--policy", policy, *option)
        assert (ran.status, ran.out) == (status, ""), (word, option, ran)
