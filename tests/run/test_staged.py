"""Staged workspaces: what a task changes is a stage, which is looked at and dropped; nothing of it
is on the host. As user and as root."""
import hashlib
import json
import os
import signal
import stat
import subprocess

import pytest

from boxed import BAWN, IS_ROOT, eventually, listing, place, select_ready
from live import Live, live
from test_git_box import EXPORT, LAYOUTS, git, plain

__all__ = ["live", "place"]

CHANGE = "echo new > created; echo more >> edited; rm removed; ln -s edited link; " \
         "chmod 755 made; mkdir -p deep/er; echo x > deep/er/f"


def contents(root, but=()):
    """What stands below root, with contents and modes; not below these names."""
    found = {}
    for path, (mode, _) in listing(root).items():
        if any(path == name or path.startswith(name + "/") for name in but):
            continue
        at = os.path.join(root, path)
        if stat.S_ISLNK(mode):
            found[path] = ("link", os.readlink(at))
        elif stat.S_ISREG(mode):
            with open(at, "rb") as file:
                found[path] = (stat.S_IMODE(mode), file.read())
        else:
            found[path] = (mode,)
    return found


def fill(work):
    for name in ("edited", "removed", "made"):
        (work / name).write_text(f"{name}\n")


def staged(live, script, *options, status=0):
    """Runs it in a staged workspace; the task that the result names, None where nothing is left."""
    ran = live.sh(f"set -e; {script}", "--stage", "--json", *options)
    assert ran.status == status, ran
    return ran.result.get("stage")


def rows(live, *words):
    ran = live.verb("diff", "--json", *words)
    assert ran.status == 0, ran
    return [json.loads(line) for line in ran.out.splitlines()]


def stages(live):
    ran = live.verb("diff", "--list", "--json")
    assert ran.status == 0, ran
    return [json.loads(line)["task"] for line in ran.out.splitlines()]


def test_nothing_is_on_the_host(live):
    fill(live.work)
    before = contents(live.work)
    ran = live.sh(f"{CHANGE}; cat edited", "--stage", "--json")
    task = ran.result["stage"]
    assert ran.out.startswith("edited\nmore\n"), "the task sees what it did"
    assert contents(live.work) == before
    changes = {os.path.relpath(change["path"], live.work): (change["kind"], change["state"])
               for change in ran.result["changes"]}
    assert changes == {"created": ("created", "staged"), "edited": ("modified", "staged"),
                       "removed": ("removed", "staged"), "link": ("created", "staged"),
                       "made": ("attributes", "staged"), "deep": ("created", "staged"),
                       "deep/er": ("created", "staged"), "deep/er/f": ("created", "staged")}
    edited, = (change for change in ran.result["changes"] if change["path"].endswith("/edited"))
    assert edited["before"]["sha256"] == hashlib.sha256(b"edited\n").hexdigest()
    assert edited["after"]["sha256"] == hashlib.sha256(b"edited\nmore\n").hexdigest()
    assert f"bawn diff {task}" in ran.err and "8 changes" in ran.err, ran
    assert {row["path"]: row["kind"] for row in rows(live, task)} == {
        "created": "created", "edited": "modified", "removed": "removed", "link": "created",
        "made": "mode", "deep": "created", "deep/er": "created", "deep/er/f": "created"}
    patch = live.verb("diff").out
    assert "+more\n" in patch and "-removed\n" in patch, patch
    assert "4 files" not in live.verb("diff", "--stat").out
    live.assert_nothing_left()


def test_without_a_change_there_is_no_stage(live):
    fill(live.work)
    assert staged(live, "cat edited; echo x > /tmp/x; ls -la") is None
    assert stages(live) == [] and not (live.state / "stages").exists()
    ran = live.verb("diff")
    assert ran.status == 1 and "nothing is staged" in ran.err, ran
    live.assert_nothing_left()


def test_one_is_dropped(live):
    fill(live.work)
    before = contents(live.work)
    tasks = [staged(live, CHANGE) for _ in range(2)]
    assert stages(live) == sorted(tasks)
    for verb in ("diff", "discard"):
        ran = live.verb(verb)
        assert ran.status == 1 and "name one" in ran.err, ran
    ran = live.verb("discard", tasks[0])
    assert ran.status == 2 and stages(live) == sorted(tasks), "nobody could be asked"
    ran = live.verb("discard", "--yes", tasks[0][:6])
    assert ran.status == 0 and tasks[0] in ran.out, ran
    assert stages(live) == [tasks[1]] and len(rows(live)) == 8
    assert live.verb("discard", "--yes").status == 0
    assert contents(live.work) == before and os.listdir(live.state / "stages") == []


@pytest.mark.parametrize("word", ["t-", "t-aaaaaaaaaaaaaaaaaaaa", "../../etc", "x", ""])
def test_words_that_are_no_task(live, word):
    fill(live.work)
    staged(live, CHANGE)
    for verb in ("diff", "discard"):
        ran = live.verb(verb, word)
        assert ran.status == 1 and ran.err.startswith("bawn: ") and ran.out == "", ran


def test_what_a_dead_supervisor_leaves_is_kept(live):
    fill(live.work)
    before = contents(live.work)
    child = live.start("--stage", "--", "sh", "-c", f"{CHANGE}; echo done; exec sleep 1000")
    assert select_ready(child) == b"done\n"
    child.kill()
    child.communicate()
    assert len(rows(live)) == 8
    assert contents(live.work) == before
    live.assert_nothing_left()


def test_a_live_task(live):
    fill(live.work)
    before = contents(live.work)
    task = live.begin("--stage")
    ran = live.sh_in(task, CHANGE, "--json")
    assert ran.status == 0 and ran.result["stage"] == task, ran
    assert live.sh_in(task, "cat created").out == "new\n"
    for verb in (("diff", task), ("discard", "--yes", task), ("apply", task), ("apply", "--resume",
                 task), ("apply", "--undo", task), ("apply", "--dry-run", task)):
        ran = live.verb(*verb)
        assert ran.status == 1 and "has not ended" in ran.err, ran
    assert contents(live.work) == before
    assert live.verb("task", "end", task).status == 0
    assert len(rows(live, task)) == 8 and contents(live.work) == before
    live.assert_nothing_left()


def test_hidden_names(live):
    (live.work / ".env").write_text("SECRET=1\n")
    (live.work / "sub").mkdir()
    (live.work / "sub/key").write_text("secret\n")
    before = contents(live.work)
    task = staged(live, "test ! -e .env; test ! -e sub/key; echo mine > .env; echo x > f; "
                  "rm -rf sub; mkdir sub; echo y > sub/g",
                  "--hide", ".env", "--hide", "sub/key")
    found = {row["path"]: row for row in rows(live, task)}
    assert set(found) == {".env", "f", "sub/g"}, "the host's is not removed, and not shown"
    assert found[".env"]["kind"] == "unread" and "hidden" in found[".env"]["unread"]
    assert "SECRET" not in live.verb("diff", task).out
    assert contents(live.work) == before


def test_a_tracked_secret_is_not_committed_away(live):
    plain(live)
    (live.work / ".env").write_text("A=1\n")
    git(live.work, "add", "-f", ".env")
    git(live.work, "commit", "-qm", "env")
    (live.work / ".env").write_text("SECRET=1\n")
    ran = live.sh(f"{EXPORT} cat .env; git commit -qam all; git ls-tree --name-only HEAD",
                  "--stage")
    assert "SECRET" not in ran.out and ".env" in ran.out.split(), ran
    assert (live.work / ".env").read_text() == "SECRET=1\n"


def test_what_git_would_run_is_writable_and_waits(live):
    """In a stage nothing need be read-only: it reaches nobody."""
    plain(live)
    (live.work / ".vscode").mkdir()
    (live.work / ".vscode/tasks.json").write_text("{}\n")
    before = contents(live.work)
    task = staged(live, f"{EXPORT} echo x > .vscode/tasks.json; "
                  "echo '#!/bin/sh' > .git/hooks/pre-push; git config core.fsmonitor ./x; "
                  "echo y > f; git commit -qam three; git status")
    assert contents(live.work) == before
    found = rows(live, task)
    assert {row["path"] for row in found if "path" in row and "git" not in row} == {
        ".vscode/tasks.json", "f"}
    wrote = {row["path"] for row in found if "git" in row}
    assert {"config", "hooks/pre-push", "refs/heads/main", "index"} <= wrote
    assert "bawn: git: written: " in live.verb("diff").out


@pytest.mark.parametrize("layout", LAYOUTS)
def test_git_works_inside(live, layout):
    directories = layout(live)
    before = [contents(at) for at in directories]
    work = contents(live.work, [os.path.relpath(at, live.work) for at in directories])
    script = "git log --oneline; git checkout -qb feature; echo x > f; git commit -qam x; " \
             "git checkout -q main; git merge -q --no-edit feature; git stash list; " \
             "git tag v1; git gc -q; git status --porcelain"
    if layout.__name__ == "linked":
        script = "git log --oneline; echo x > f; git commit -qam x; git status --porcelain"
    ran = live.sh(f"set -e; {EXPORT} {script}", "--stage")
    assert ran.status == 0, ran
    assert [contents(at) for at in directories] == before
    assert contents(live.work, [os.path.relpath(at, live.work) for at in directories]) == work


def test_a_damaged_stage(live):
    fill(live.work)
    task = staged(live, CHANGE)
    about = live.state / "stages" / task / "about"
    good = about.read_bytes()
    for bad in (good[:-3], b"", b"x" * 50, good + b"x"):
        about.write_bytes(bad)
        ran = live.verb("diff", task)
        assert ran.status == 1 and "damaged" in ran.err, ran
    assert live.verb("diff", "--list").out == f"{task}  (damaged)\n"
    assert live.verb("discard", "--yes", task).status == 0
    assert os.listdir(live.state / "stages") == []


CORRUPT = ["about", "stage", "stage/upper", "stage/upper/edited", "stage/upper/deep", "git",
           "git/covers", "git/git-snapshot", "git/start-0-0", "git/0", "git/0/upper",
           "git/0/upper/index", "git/0/upper/HEAD", "pending", "asked", "undo", "undo/log"]
HOW = {"gone": "rm -rf {}", "empty": "rm -rf {}; : > {}", "cut": "test -d {} || truncate -s -3 {}",
       "garbage": "rm -rf {}; head -c 5000 /dev/urandom > {}", "folder": "rm -rf {}; mkdir -p {}/x",
       "fifo": "rm -rf {}; mkfifo {}", "loop": "rm -rf {}; ln -s loop {}"}


@pytest.mark.parametrize("how", HOW)
def test_a_corrupt_stage(live, how):
    """Each file of it in turn: told or done without, in time, and every file is old or new."""
    plain(live)
    fill(live.work)
    git(live.work, "add", ".")
    git(live.work, "commit", "-qm", "filled")
    kept = live.base / "kept"
    # a part of it applied and taken back, so that all that an apply keeps is there
    task = staged(live, f"{EXPORT} {CHANGE}; git add -A; git commit -qm staged")
    assert live.verb("apply", task, "edited").status == 0
    stage = live.state / "stages" / task
    for name in ("pending", "asked"):
        (stage / name).write_bytes(b"\0" * 40)
    # the kernel's own directory in it has no mode at all
    subprocess.run(["chmod", "-R", "u+rwx", stage / "stage/work", stage / "git/0/work"],
                   check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["cp", "-a", live.work, kept], check=True)
    subprocess.run(["cp", "-a", stage, live.base / "stage"], check=True)
    old = contents(kept, [".git"])
    for name in CORRUPT if os.environ.get("BAWN_SOAK") else CORRUPT[IS_ROOT::2]:
        for place, copy in ((live.work, kept), (stage, live.base / "stage")):
            subprocess.run(f"chmod -R u+rwx {place} 2> /dev/null; rm -rf {place}; "
                           f"cp -a {copy} {place}", shell=True, check=True)
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(HOW[how].replace("{}", str(stage / name)), shell=True, check=False,
                       stderr=subprocess.DEVNULL)
        for words in (["diff"], ["apply", "--dry-run"], ["apply", "--resume"],
                      ["apply", "--overwrite"], ["apply", "--undo"], ["discard", "--yes"]):
            ran = live.verb(words[0], *words[1:], task)
            assert ran.status in (0, 1, 125), (name, words, ran)
            assert ran.status == 0 or ran.err or ran.out, (name, words, ran)
        git(live.work, "fsck")
        found = contents(live.work, [".git"])
        for path in {*old, *found} - {"edited"}:
            # what was removed, or was to be made, may be either; a file has one content or other
            assert found.get(path) in (old.get(path), WANTED.get(path)), (name, path, found)
        assert found["edited"][1] in (b"edited\n", b"edited\nmore\n"), (name, found)
        assert git(live.work, "log", "-1", "--format=%s").stdout in ("filled\n", "staged\n"), name
        live.assert_nothing_left()


WANTED = {"created": (0o644, b"new\n"), "made": (0o755, b"made\n"), "link": ("link", "edited"),
          "deep": (stat.S_IFDIR | 0o755,), "deep/er": (stat.S_IFDIR | 0o755,),
          "deep/er/f": (0o644, b"x\n")}


def test_the_workspace_is_another_one_by_now(live):
    fill(live.work)
    task = staged(live, CHANGE)
    live.work.rename(live.base / "other")
    live.work.mkdir()
    ran = live.verb("diff", task)
    assert ran.status == 1 and "another directory" in ran.err, ran
    live.work.rmdir()
    ran = live.verb("diff", task, cwd="/")
    assert ran.status == 1 and "No such file" in ran.err, ran


def test_read_only(live):
    plain(live)
    before = contents(live.work)
    ran = live.sh("cat f; git log --oneline | wc -l; echo x > f; echo x > new; rm g; "
                  "touch .git/x; git tag v1; exit 0", "--read-only")
    assert ran.status == 0 and ran.out == "two\n2\n", ran
    assert ran.err.count("Read-only file system") >= 4, ran
    assert contents(live.work) == before
    live.assert_nothing_left()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_git_reads_in_a_read_only_workspace(live, layout):
    directories = layout(live)
    before = [contents(at) for at in directories]
    ran = live.sh("git log --oneline && git status --porcelain && ! git tag v1", "--read-only")
    assert ran.status == 0 and ran.out.count("\n") >= 2, ran
    assert [contents(at) for at in directories] == before


def test_they_exclude_each_other(live):
    ran = live.run("--stage", "--read-only", "--", "true")
    assert ran.status == 125 and "exclude" in ran.err, ran


def test_a_box_has_none(live):
    fill(live.work)
    staged(live, CHANGE)
    ran = live.run("--read", BAWN, "--", BAWN, "diff", "--list")
    assert ran.status == 1 and "inside of a box" in ran.err, ran


def test_the_supervisor_is_killed_at_any_time(live):
    """What the task had done is there, or it is gone as if it had not been; never half a stage."""
    fill(live.work)
    before = contents(live.work)
    for delay in range(12):
        child = live.start("--stage", "--", "sh", "-c", f"{CHANGE}; echo done")
        try:
            child.wait(delay * 0.004)
        except Exception:  # pylint: disable=broad-exception-caught # it runs on
            child.send_signal(signal.SIGKILL)
        child.communicate()
        assert eventually(lambda: live.verb("ps").out.count("t-") == 0)
        for task in stages(live):
            assert len(rows(live, task)) <= 8
            assert live.verb("discard", "--yes", task).status == 0
    assert contents(live.work) == before
    live.assert_nothing_left()
