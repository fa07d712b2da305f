"""Git in a staged workspace, in each layout of a checkout: everyday work goes on inside, the host
sees nothing of it, and what a task plants executes nowhere, before, beside and after an apply. As
user and as root."""
import os
import subprocess
import threading

import pytest

from boxed import LIMIT_S
from live import live
from test_git_box import (EVERYDAY, EXPORT, IDENTITY, LAYOUTS, MARK, PLANTED, SAMPLED, git, plain,
                          state_of)
from test_staged import contents, staged, stages

__all__ = ["live"]

STRICT = EVERYDAY.replace("set -e", "set -eE; trap 'echo line: $BASH_COMMAND >&2' ERR")


def tree_of(live, found):
    return contents(live.work, [os.path.relpath(at, live.work) for at in found])


@pytest.mark.parametrize("layout", SAMPLED)
def test_everyday_git(live, layout):
    found = layout(live)
    before, tree = [state_of(root) for root in found], tree_of(live, found)
    ran = live.sh(EXPORT + STRICT + "git rev-parse HEAD\n", "--stage",
                  "--env", f"WORK={live.work}", limit=10 * LIMIT_S)
    assert ran.status == 0, ran
    head = ran.out.split()[-1]
    assert [state_of(root) for root in found] == before and tree_of(live, found) == tree
    ran = live.verb("apply")
    # hooks are held, and what a module of the task's needs waits with them
    assert ran.status in (0, 1) and "Traceback" not in ran.err, ran
    assert git(live.work, "cat-file", "-t", head).stdout == "commit\n", ran
    assert git(live.work, "rev-parse", "HEAD").stdout.strip() == head, ran
    for root in found:
        git(root, "--git-dir", root, "fsck")
    live.assert_nothing_left()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_directory_is_renamed(live, layout):
    """One that the host has: overlayfs says EXDEV, and mv copies."""
    found = layout(live)
    (live.work / "old").mkdir()
    for name in ("a", "b"):
        (live.work / "old" / name).write_text(f"{name}\n")
    git(live.work, "add", "old")
    git(live.work, "commit", "-qm", "old")
    tree = tree_of(live, found)
    ran = live.sh(f"set -e; {EXPORT} mv old new; git add -A old new; git commit -qm renamed; "
                  "git status --porcelain", "--stage")
    assert ran.status == 0 and ran.out == "", ran
    assert tree_of(live, found) == tree
    ran = live.verb("apply")
    assert ran.status == 0, ran
    assert sorted(os.listdir(live.work / "new")) == ["a", "b"]
    assert not (live.work / "old").exists()
    assert git(live.work, "status", "--porcelain").stdout == ""


class Watcher:
    """A person's tools, all the time: an editor's status, commits, rebases that go on."""

    WORDS = [("status", "--porcelain"), ("diff", "--stat"), ("log", "-1"),
             ("-c", "commit.gpgsign=false", "commit", "-q", "--allow-empty", "-m", "host"),
             ("rebase", "--continue"), ("stash", "list"), ("submodule", "status"),
             ("ls-files", "-o", "--exclude-standard"), ("checkout", "-q", "-f", "HEAD")]

    def __init__(self, work):
        self.work, self.stop, self.rounds = work, threading.Event(), 0
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        environment = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": "/dev/null",
                       "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}
        while not self.stop.is_set():
            for place in (self.work, self.work / "sub", self.work / "evil"):
                for words in self.WORDS:
                    if place == self.work or (place.is_dir() and words[0] == "status"):
                        subprocess.run(["git", "-C", place, *words], env=environment, check=False,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, timeout=60)
            self.rounds += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


# What only a whole work tree can hold, beside what git directories can.
MORE = {
    "nested": "git init -q sub; git -C sub config core.fsmonitor '{run};false'; "
              "git add -f sub 2> /dev/null; true",
    "gitlink": "git init -q sub; touch sub/x; git -C sub add x; git -C sub commit -qm x; "
               "git add sub; git -C sub config core.fsmonitor '{run};false'; git commit -qm link",
    "rebase": "d=$(git rev-parse --git-dir); mkdir -p $d/rebase-merge; cd $d/rebase-merge; "
              "echo 'exec {run}' > git-rebase-todo; echo refs/heads/main > head-name; "
              "git rev-parse HEAD | tee onto orig-head; echo 1 > msgnum; echo 1 > end; "
              "touch interactive done",
    "attributes": "git config filter.x.clean '{run};cat'; echo '* filter=x' > .gitattributes; "
                  "touch f; git add -A",
    "hooks in the tree": "mkdir hooks; printf '#!/bin/sh\\n{run}\\n' > hooks/pre-commit; "
                         "chmod +x hooks/pre-commit; git config core.hooksPath hooks",
    "include": "printf '[core]\\n\\tfsmonitor = \"{run};false\"\\n' > evil; "
               "git config include.path ../evil",
}


def planted(name, mark):
    return {**PLANTED, **MORE}[name].replace("{run}", MARK.format(mark=mark))


@pytest.mark.parametrize("name", [*PLANTED, *MORE])
def test_planted_things(live, name):
    """The task plants, the watcher works, a person applies all of it: nothing is executed."""
    mark = live.base / "mark"
    plain(live)
    with Watcher(live.work) as watcher:
        before = watcher.rounds
        staged(live, f"{EXPORT} ({planted(name, mark)}) > /dev/null 2>&1 || true; "
               "echo x > ordinary; while [ ! -e /tmp/go ]; do touch /tmp/go; sleep .2; done")
        if stages(live):
            ran = live.verb("apply")
            assert ran.status in (0, 1), ran
        applied = watcher.rounds
        while watcher.rounds < applied + 2:
            watcher.stop.wait(.02)
        assert watcher.rounds > before
    assert not mark.exists(), name
    assert (live.work / "ordinary").exists()


@pytest.mark.parametrize("name", MORE)
def test_they_would_without_a_box(live, name):
    mark = live.base / "mark"
    plain(live)
    with Watcher(live.work) as watcher:
        subprocess.run(["bash", "-c", EXPORT + planted(name, mark)], cwd=live.work, check=False,
                       timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = watcher.rounds
        while watcher.rounds < done + 2:
            watcher.stop.wait(.02)
    assert mark.exists(), name


def test_a_look_of_the_host_in_between_is_no_conflict(live):
    """`git status` writes the index anew, and gc the packed references; both are as they were."""
    plain(live)
    staged(live, f"{EXPORT} echo x > f; echo x > made; git add made; git commit -qam staged; "
           "git branch topic")
    os.utime(live.work / "f", (1, 1))
    before = (live.work / ".git/index").stat().st_ino
    git(live.work, "status")
    assert (live.work / ".git/index").stat().st_ino != before, "git wrote it anew"
    git(live.work, "gc", "-q")
    ran = live.verb("apply", "--overwrite")
    assert ran.status == 0 and "held" not in ran.out, ran
    assert git(live.work, "log", "-1", "--format=%s", "topic").stdout == "staged\n"
    assert git(live.work, "status", "--porcelain").stdout == ""


def test_a_host_that_added_something_keeps_its_index(live):
    plain(live)
    staged(live, f"{EXPORT} echo x > made; git add made; git commit -qm staged")
    (live.work / "own").write_text("own\n")
    git(live.work, "add", "own")
    ran = live.verb("apply")
    assert ran.status == 1 and "index: the host changed it meanwhile" in ran.out, ran
    assert "own" in git(live.work, "ls-files").stdout
