"""kill -9 at each system call that changes something while what git did comes to the host: at the
next start after a killed supervisor, and in `bawn apply`. After each kill git finds a whole
repository, the next try ends as if nothing had been, and nothing of ours is left. The engine alone
(test_git_commit.py), files of a stage (test_stage_apply.py) and an undo (test_stage_undo.py) have
their own. As user and as root; `make test` takes a sample of fixed seed, `make soak` all."""
import os
import random
import signal
import subprocess

import pytest

from boxed import BAWN, IS_ROOT, LIMIT_S, eventually, nobody_left, remove_tree, select_ready
from live import live
from test_faults import injector
from test_git_box import EXPORT, git, plain
from test_git_commit import CHANGING, settle
from test_landing import waiting
from test_stage_apply import WRITING
from test_staged import contents, staged, stages

__all__ = ["injector", "live"]

SOAK = bool(os.environ.get("BAWN_SOAK"))
SAMPLE = 4
# a commit, branches made and removed, packed and loose; a key that comes, one that is held; a hook
WORK = EXPORT + """
export GIT_COMMITTER_DATE='1700000000 +0000' GIT_AUTHOR_DATE='1700000000 +0000'
echo x > f; echo n > n; rm g; git add -A; git commit -qm task; git branch new; git tag t
git branch -qD other; git config user.name T; git config core.fsmonitor x
echo '#!/bin/sh' > .git/hooks/pre-push; git update-ref refs/heads/a/b/c HEAD~1"""


class Killed:
    """The host as it was, again and again in the same workspace."""

    def __init__(self, live):
        self.live, self.begun = live, live.base / "begun"
        self.note = live.base / "note"
        plain(live)
        git(live.work, "pack-refs", "--all")
        subprocess.run(["cp", "-aT", live.work, self.begun], check=True)

    def again(self):
        """A workspace keeps its inode; what is in it is new."""
        for entry in self.live.work.iterdir():
            remove_tree(entry)
            if entry.exists() or entry.is_symlink():
                entry.unlink()
        subprocess.run(["cp", "-aT", self.begun, self.live.work], check=True)
        git(self.live.work, "update-index", "-q", "--refresh")
        for name in ("held", "stages", "applied"):
            remove_tree(self.live.state / name)
        settle()

    def look(self):
        files = contents(self.live.work, [".git"])
        said = [git(self.live.work, *words).stdout for words in (
            ("for-each-ref",), ("status", "--porcelain", "--branch"), ("fsck",),
            ("config", "--local", "--list"), ("log", "--all", "--format=%H %s"),
            ("reflog", "--all", "--format=%H %gs"))]
        held = sorted((item["path"], item["key"] or "") for item in waiting(self.live))
        return files, said, held

    def whole(self):
        """At the instant of the kill: a repository, and files that are old or new."""
        git(self.live.work, "fsck")
        git(self.live.work, "rev-parse", "-q", "--verify", "HEAD")
        git(self.live.work, "--no-optional-locks", "status")

    def listed(self, *argv):
        """(process, nth, call) of each that changes something."""
        subprocess.run([self.live.injector, "list", self.note, "--", *map(str, argv)], check=False,
                       cwd=self.live.work, stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=LIMIT_S)
        rows = [tuple(map(int, line.split())) for line in self.note.read_text().splitlines()]
        found = [row for row in rows if row[2] in CHANGING | WRITING]
        if SOAK:
            return found
        return sorted(random.Random(IS_ROOT).sample(found, SAMPLE))

    def kill(self, call, *argv):
        """Whether the call was met."""
        words = map(str, ("fail", *call, 0, self.note, "--", *argv))
        self.note.write_text("")
        done = subprocess.run([self.live.injector, *words], cwd=self.live.work, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S)
        assert done.returncode in (0, 1, 125, 128 + signal.SIGKILL), done
        assert eventually(nobody_left)
        return self.note.read_text().startswith("hit")

    def is_tidy(self):
        assert not list((self.live.work / ".git").rglob("*.lock"))
        assert not list((self.live.work / ".git").glob("bawn-*"))
        assert not [name for name in os.listdir(self.live.work) if name.startswith(".bawn")]


@pytest.fixture
def killed(live, injector):
    live.injector = injector
    return Killed(live)


def test_the_next_start_is_killed(live, killed):
    """Each time a supervisor was killed before; what it had is brought over by whoever is next."""
    start = [BAWN, "run", *live.options, "--no-trace", "--", "true"]

    def a_killed_task():
        killed.again()
        child = live.start("--", "bash", "-c", WORK + "; echo ready; sleep 1000")
        assert select_ready(child) == b"ready\n"
        # the supervisor writes down what a later start needs in its first idle moment
        task, = os.listdir(live.state / "tasks")
        covers = live.state / "tasks" / task / "git/covers"
        assert eventually(lambda: covers.exists() and
                          covers.read_bytes().endswith(task.encode() + b"\0"))
        child.kill()
        child.communicate()
        # what dies with it holds its directory until then, and nobody takes that over
        assert eventually(nobody_left)

    a_killed_task()
    found = killed.listed(*start)
    wanted = killed.look()
    assert "refs/heads/new" in wanted[1][0] and "refs/heads/other" not in wanted[1][0], wanted
    hits = 0
    for call in found:
        a_killed_task()
        hits += killed.kill(call, *start)
        killed.whole()
        ran = live.run("--", "true")
        assert ran.status == 0, (call, ran)
        assert killed.look() == wanted, (call, ran)
        killed.is_tidy()
        live.assert_nothing_left()
    assert hits > len(found) // 2, "hardly any kill was met"


def test_an_apply_is_killed(live, killed):
    apply = [BAWN, "apply", *live.options]

    def a_stage():
        killed.again()
        return staged(live, WORK)

    a_stage()
    found = killed.listed(*apply)
    wanted = killed.look()
    assert "refs/heads/new" in wanted[1][0] and wanted[0]["f"][1] == b"x\n", wanted
    hits = 0
    for call in found:
        task = a_stage()
        hits += killed.kill(call, *apply)
        killed.whole()
        ran = "it was over"
        if stages(live):
            ran = live.verb("apply", "--resume", task)
            if "interrupted" in ran.err:
                ran = live.verb("apply", task)
            assert ran.status in (0, 1), (call, ran)
        assert killed.look() == wanted, (call, ran)
        assert stages(live) == [], (call, ran)
        killed.is_tidy()
    assert hits > len(found) // 2, "hardly any kill was met"
