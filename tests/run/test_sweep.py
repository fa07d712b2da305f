"""The look through a work tree: what the host's git runs before it, and not after."""
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from boxed import BAWN, IS_ROOT, LIMIT_S

CLOCK_REALTIME_COARSE = 5
LAB = str(Path(BAWN).parent / "bawn-sweep-lab")
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1",
       "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@b"}


class Lab:
    """A workspace that is a repository with a commit, and a look begun in it."""

    def __init__(self, root):
        self.root, self.work, self.state = root, root / "work", root / "state"
        self.mark = root / "executed"
        self.home = root / "home"
        for path in (self.work, self.state, self.home):
            path.mkdir()
        self.process = None
        self.git("init", "-q")
        (self.work / "file").write_text("x\n")
        self.git("add", "file")
        self.git("commit", "-qm", "x")

    def git(self, *arguments, cwd=None, check=True):
        return subprocess.run(["git", *arguments], cwd=cwd or self.work, check=check, text=True,
                              env={**ENV, "HOME": str(self.home)}, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, capture_output=True)

    def sh(self, script):
        subprocess.run(["sh", "-ec", script], cwd=self.work, check=True, timeout=LIMIT_S,
                       env={**ENV, "HOME": str(self.home), "MARK": str(self.mark)})

    def begin(self, *words):
        # what was prepared is older than the start, by the clock that stamps files
        tick = time.clock_gettime_ns(CLOCK_REALTIME_COARSE)
        while time.clock_gettime_ns(CLOCK_REALTIME_COARSE) == tick:
            pass
        covered = ["covered", str(self.work / ".git")]
        self.process = subprocess.Popen(
            [LAB, "sweep", str(self.work), str(self.state), "t1", *covered, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        result = json.loads(self.process.stdout.readline())
        self.close()
        return {os.path.relpath(item["path"], self.work): item for item in result["items"]}, result

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(LIMIT_S)
            self.process.stdout.close()
            self.process = None

    def review(self, *words):
        return subprocess.run([LAB, words[0], str(self.state), *words[1:]], text=True,
                              capture_output=True, timeout=LIMIT_S)

    def runs(self, act):
        """True when the planted program ran while the host did this."""
        self.mark.unlink(missing_ok=True)
        act(self)
        return self.mark.exists()


@pytest.fixture
def lab():
    root = Path(tempfile.mkdtemp(prefix="bawn-sweep."))
    made = Lab(root)
    yield made
    made.close()
    shutil.rmtree(root)


# What executes it leaves a mark; fsmonitor asks it about changes, and takes no answer.
PROGRAM = """printf '#!/bin/sh\\ntouch "%s"\\n' "$MARK" >prog; chmod +x prog; P=$PWD/prog; """


def status(*at):
    return lambda lab: lab.git("-C", os.path.join(lab.work, *at), "status", check=False)


def commit(*at):
    def act(lab):
        where = ("-C", os.path.join(lab.work, *at))
        lab.git(*where, "commit", "--allow-empty", "-qm", "y", check=False)
    return act


ATTACKS = {
    "nested": ("git init -q a/b; git -C a/b config core.fsmonitor $P", "a/b/.git",
               status("a", "b")),
    "nested hook": ("git init -q a/b; cp prog a/b/.git/hooks/pre-commit", "a/b/.git",
                    commit("a", "b")),
    "nested, other spelling": ("git init -q a/b; git -C a/b config core.fsmonitor $P; "
                               "mv a/b/.git a/b/x; cp -r a/b/x a/b/.git; rm -r a/b/x", "a/b/.git",
                               status("a", "b")),
    "gitlink, status of the parent": (
        "git init -q sub; git -C sub commit -q --allow-empty -m y; git add sub 2>/dev/null; "
        "git -C sub config core.fsmonitor $P", "sub/.git", status()),
    "git file": ("git init -q --bare real; git --git-dir real config core.bare false; "
                 "git --git-dir real config core.fsmonitor $P; mkdir c; "
                 "echo gitdir: ../real > c/.git",
                 "c/.git", status("c")),
    "link": ("git init -q a; git -C a config core.fsmonitor $P; mv a/.git a/real; "
             "ln -s real a/.git", "a/.git", status("a")),
    "bare": ("git init -q --bare d/e; git --git-dir d/e config core.bare false; "
             "git --git-dir d/e config core.worktree ..; "
             "git --git-dir d/e config core.fsmonitor $P", "d/e/HEAD", status("d", "e")),
    "bare by commondir": (
        "git init -q --bare d/e; git --git-dir d/e config core.editor $P; "
        "mkdir w; cp d/e/HEAD w; echo ../d/e > w/commondir; rm d/e/HEAD", "w/HEAD",
        lambda lab: lab.git("-C", "w", "config", "--edit", check=False)),
    "bare, HEAD is a link": (
        "git init -q --bare d/e; git --git-dir d/e config core.bare false; "
        "git --git-dir d/e config core.worktree ..; git --git-dir d/e config core.fsmonitor $P; "
        "rm d/e/HEAD; ln -s refs/heads/main d/e/HEAD", "d/e/HEAD", status("d", "e")),
    "given its name": ("mv sleeping/dotgit sleeping/.git; "
                       "git -C sleeping config core.fsmonitor $P", "sleeping/.git",
                       status("sleeping")),
    "completed": ("mkdir half/refs; git --git-dir half config core.fsmonitor $P", "half/HEAD",
                  status("half")),
    "old, its config": ("git -C deep/old config core.fsmonitor $P", "deep/old/.git/config",
                        status("deep", "old")),
    "old, its hook": ("cp prog deep/old/.git/hooks/pre-commit", "deep/old/.git/hooks",
                      commit("deep", "old")),
    "configured hooks": ("mkdir .hooks; cp prog .hooks/pre-commit", ".hooks", commit()),
    "configured hooks by a link": ("mkdir x; cp prog x/pre-commit; ln -s x .hooks", ".hooks",
                                   commit()),
    "configured include": ('printf "[core]\\n\\tfsmonitor = %s\\n" $P > extra.cfg', "extra.cfg",
                           status()),
}


def prepare(lab):
    lab.sh("git init -q deep/old; git init -q sleeping; mv sleeping/.git sleeping/dotgit; "
           "git init -q --bare half; git --git-dir half config core.bare false; "
           "git --git-dir half config core.worktree ..; rm -r half/refs; "
           "git config core.hooksPath .hooks; git config include.path ../extra.cfg")


def absent(lab):
    return ["absent", str(lab.work / ".hooks"), "absent", str(lab.work / "extra.cfg")]


@pytest.mark.parametrize("name", ATTACKS)
def test_git_runs_it_before_and_not_after(lab, name):
    script, path, act = ATTACKS[name]
    prepare(lab)
    lab.begin(*absent(lab))
    lab.sh(PROGRAM + script)
    assert lab.runs(act), "the attack does not work"
    items, result = lab.end()
    assert path in items and items[path]["fate"] == "held", result
    assert items[path]["state"] == "held" and result["unfinished"] is None
    assert not lab.runs(act)
    # a person who wants it gets it as it was
    for item in items.values():
        assert lab.review("accept", item["id"]).returncode == 0
    assert lab.runs(act)


def test_rejected_is_gone(lab):
    lab.begin()
    lab.sh(PROGRAM + "git init -q a; git -C a config core.fsmonitor $P; mkdir .vscode")
    items, _ = lab.end()
    assert set(items) == {"a/.git", ".vscode"}
    assert len(lab.review("list").stdout.splitlines()) == 2
    for item in items.values():
        assert lab.review("reject", item["id"]).returncode == 0
    assert lab.review("list").stdout == "" and os.listdir(lab.state) == []
    assert not (lab.work / "a/.git").exists() and not (lab.work / ".vscode").exists()
    assert not lab.runs(status("a"))


def test_work_in_an_old_deep_repository_goes_on(lab):
    prepare(lab)
    (lab.work / "deep/old/file").write_text("x\n")
    lab.begin()
    lab.sh("cd deep/old; echo y >> file; git add file; git commit -qm y; git tag t; git gc -q")
    items, _ = lab.end()
    # what may have been moved there, as far as one look tells
    assert set(items) <= {"deep/old/.git", "deep/old/.git/info", "deep/old/.git/hooks"}, items


def test_a_known_deep_repository_is_never_held(lab):
    prepare(lab)
    lab.begin("clock", "other")
    lab.sh("cd deep/old; touch new file; git add file; git commit -qm y; git tag t; git gc -q")
    items, _ = lab.end()
    assert not items


@pytest.mark.skipif(not IS_ROOT, reason="mounts a file system")
def test_held_from_another_file_system(lab):
    script = f"""
mount -t tmpfs none {lab.work}; cd {lab.work}; mkfifo {lab.root}/in
{LAB} sweep {lab.work} {lab.state} t1 <{lab.root}/in >{lab.root}/out & exec 9>{lab.root}/in
until grep -q ready {lab.root}/out; do sleep 0.01; done
git init -q a; mkdir -p b/.vscode/sub; chmod 500 b/.vscode/sub; ln -s /etc b/.vscode/link
mkdir c; truncate -s 1T c/.envrc; mkfifo b/.vscode/fifo; git init -q d
dd if=/dev/zero of=d/.git/large bs=1M count=300 status=none
echo >&9; exec 9>&-; wait
ls -A a b c d > {lab.root}/names; ls d/*/ >> {lab.root}/names
id=$({LAB} list {lab.state} | sed -n 's/.*"id":"\\([0-9a-f]*\\)".*"path":"a.*/\\1/p')
{LAB} accept {lab.state} $id; git -C a status >> {lab.root}/names
"""
    subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-ec", script], check=True,
                   env={**ENV, "HOME": str(lab.home)}, timeout=60)
    out = (lab.root / "out").read_text().splitlines()
    items = {os.path.relpath(i["path"], lab.work): i for i in json.loads(out[1])["items"]}
    assert {k: v["fate"] for k, v in items.items()} == {
        "a/.git": "held", "b/.vscode": "held", "c/.envrc": "held", "d/.git": "disarmed"}, items
    names = (lab.root / "names").read_text()
    assert "No commits yet" in names
    assert ".envrc" not in names and ".vscode" not in names
    assert "bawn-held-HEAD-0" in names.split("d:")[1]


def test_others_exchange_names_meanwhile(lab):
    """What others rename while it is looked at leads nowhere outside."""
    outside = lab.root / "outside"
    (outside / ".git").mkdir(parents=True)
    (outside / ".vscode").mkdir()
    exchanger = subprocess.Popen(["python3", "-c", f"""
import os
os.chdir({str(lab.work)!r}); os.mkdir('x'); os.mkdir('y')
while True:
    try:
        os.rename('x', 'z'); os.symlink({str(outside)!r}, 'x'); os.unlink('x'); os.rename('z', 'x')
        os.mkdir('x/.git'); os.symlink({str(outside)!r}, 'y/.git'); os.rmdir('x/.git')
        os.unlink('y/.git')
    except OSError:
        for name in ('x', 'y'):
            try:
                os.mkdir(name)
            except OSError:
                pass
"""])
    try:
        for _ in range(30):
            lab.begin()
            _, result = lab.end()
            assert result["left"] == 0
    finally:
        exchanger.kill()
        exchanger.wait()
    assert sorted(os.listdir(outside)) == [".git", ".vscode"]
