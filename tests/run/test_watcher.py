"""A person's tools work in a repository all the time, in every way that git can be made to run a
program; a task plants each key, hook and file for that, while they work and at its end. Nothing
planted is ever executed, in place and staged, before and after an apply. Each would be where it is
planted without a box. As user and as root."""
import os
import subprocess
import threading

import pytest

from boxed import IS_ROOT, LIMIT_S, eventually
from live import live
from test_git_box import EXPORT, IDENTITY, git, plain
from test_staged import stages

__all__ = ["live"]

# name -> (what is appended to .git/config, or a script, what runs it); {run} leaves a mark
PROGRAM = "touch {mark}"
KEYS = {
    "fsmonitor": ("[core]\n fsmonitor = \"{run}; false\"", ["git status"]),
    "sshCommand": ("[core]\n sshCommand = \"{run}; false\"", ["git fetch ssh"]),
    "gitProxy": ("[core]\n gitProxy = {program}", ["git fetch old"]),
    "textconv": ("[diff \"x\"]\n textconv = \"{run}; cat\"", ["git diff HEAD~1"]),
    "diff command": ("[diff \"x\"]\n command = {program}", ["git diff HEAD~1"]),
    "external": ("[diff]\n external = {program}", ["git diff HEAD~1"]),
    "clean": ("[filter \"x\"]\n clean = \"{run}; cat\"", ["touch f; git status; git add f"]),
    "smudge": ("[filter \"x\"]\n smudge = \"{run}; cat\"", ["rm -f g; git checkout g"]),
    "process": ("[filter \"x\"]\n process = \"{run}; cat\"", ["touch f; git add f"]),
    "merge driver": ("[merge \"x\"]\n driver = \"{run}; false\"",
                     ["git merge -q --no-commit theirs; git merge --abort"]),
    "alias": ("[alias]\n st = \"!{run}\"", ["git st"]),
    "credential": ("[credential]\n helper = \"!{run};\"",
                   ["printf 'protocol=https\\nhost=x\\n\\n' | git credential fill"]),
    "askPass": ("[core]\n askPass = {program}",
                ["printf 'protocol=https\\nhost=x\\n\\n' | git credential fill"]),
    "gpg": ("[commit]\n gpgSign = true\n[gpg]\n program = {program}",
            ["git commit -q --allow-empty -m host"]),
    "editor": ("[core]\n editor = \"{run}; true\"", ["git commit --allow-empty"]),
    "sequence editor": ("[sequence]\n editor = \"{run}; true\"", ["git rebase -i HEAD~1"]),
    "pager": ("[core]\n pager = \"{run}; cat\"", ["script -qec 'git log -1' /dev/null"]),
    "pager of one": ("[pager]\n log = \"{run}; cat\"", ["script -qec 'git log -1' /dev/null"]),
    "include": ("[include]\n path = ../evil.cfg", ["git status"]),
    "includeIf": ("[includeIf \"gitdir:**\"]\n path = ../evil.cfg", ["git status"]),
    "hooksPath": ("[core]\n hooksPath = q", ["git commit -q --allow-empty -m host"]),
    "uploadpack": ("[remote \"local\"]\n uploadpack = \"{run}; git-upload-pack\"",
                   ["git fetch local"]),
    "receivepack": ("[remote \"local\"]\n receivepack = \"{run}; git-receive-pack\"",
                    ["git push local HEAD:refs/heads/pushed"]),
    "ext": ("[protocol \"ext\"]\n allow = always\n[remote \"local\"]\n url = \"ext::{program}\"\n"
            "[url \"ext::{program} \"]\n insteadOf = ../", ["git fetch local"]),
    "trailer": ("[trailer \"x\"]\n command = {run}", ["git interpret-trailers < /dev/null"]),
    "archive": ("[tar \"tar.gz\"]\n command = \"{run}; cat\"",
                ["git archive --format=tar.gz HEAD"]),
    "worktree config": ("[extensions]\n worktreeConfig = true", ["git status"]),
}
HOOKS = {
    "pre-commit": "git commit -q --allow-empty -m host", "post-commit": None, "commit-msg": None,
    "prepare-commit-msg": None, "reference-transaction": None,
    "post-checkout": "git checkout -q -f HEAD", "post-index-change": "touch f; git add f",
    "pre-push": "git push local HEAD:refs/heads/pushed", "pre-rebase": "git rebase -f HEAD~1",
    "post-rewrite": "git commit -q --amend --no-edit",
    "post-merge": "git merge -q theirs -X ours --no-edit; git reset -q --hard HEAD@{1}",
    "applypatch-msg": "git format-patch -q -1 -o /dev/null HEAD; "
                      "git diff HEAD~1 > /dev/null; git format-patch --stdout -1 ours | git am -q; "
                      "git am --abort",
}
# what stands in files that keys or hooks lead to, or that are read by themselves
FILES = "printf '[core]\\n fsmonitor = \"{run}; false\"\\n' > evil.cfg; " \
        "cp evil.cfg .git/config.worktree; mkdir -p q; " \
        "printf '#!/bin/sh\\n{run}\\n' > q/pre-commit; chmod +x q/pre-commit"


class Host:
    """A repository with remotes, attributes of its user's own and branches to merge."""

    def __init__(self, base, work):
        self.base, self.work, self.marks = base, work, base / "marks"
        self.home = base / "home"
        self.rounds, self.stop = 0, threading.Event()

    def lay_out(self, place):
        self.home.mkdir(exist_ok=True)
        self.marks.mkdir(exist_ok=True)
        plain(place)
        (self.work / ".gitattributes").write_text("f diff=x merge=x filter=x\ng filter=x\n")
        git(self.work, "add", ".gitattributes")
        git(self.work, "commit", "-qm", "attributes")
        for branch, text in (("theirs", "theirs\n"), ("ours", "ours\n")):
            git(self.work, "checkout", "-q", "-b", branch, "main")
            (self.work / "f").write_text(text)
            git(self.work, "commit", "-qam", branch)
        git(self.work, "checkout", "-q", "main")
        (self.work / "f").write_text("three\n")
        git(self.work, "commit", "-qam", "three")
        git(self.base, "clone", "-q", "--bare", self.work, self.base / "far.git")
        for name, url in (("local", "../far.git"), ("ssh", "ssh://127.0.0.1:9/x"),
                          ("old", "git://127.0.0.1:9/x")):
            git(self.work, "remote", "add", name, url)

    def program(self, name):
        """Of the host's, with the mark of this name; a task cannot see it."""
        path = self.base / "programs" / name.replace(" ", "-")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n: > '{self.mark(name)}'\n")
        path.chmod(0o755)
        return path

    def mark(self, name):
        return self.marks / name.replace(" ", "-")

    def text(self, template, name):
        program = self.program(name)
        return template.replace("{run}", str(program)).replace("{program}", str(program))

    def do(self, script):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), **IDENTITY,
                       "EDITOR": "true", "TERM": "dumb", "GIT_TERMINAL_PROMPT": "0",
                       "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["timeout", "-s", "KILL", str(LIMIT_S), "bash", "-c", script],
                       cwd=self.work, env=environment, check=False, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def watch(self):
        while not self.stop.is_set():
            for script in dict.fromkeys(ALL):
                if self.stop.is_set():
                    break
                self.do(script)
            self.rounds += 1

    def see(self):
        """A whole round from now on."""
        before = self.rounds
        assert eventually(lambda: self.rounds >= before + 2, 10 * LIMIT_S)

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


ALL = [*(script for _, scripts in KEYS.values() for script in scripts),
       *(script for script in HOOKS.values() if script), "git rebase --continue",
       "git rebase --abort", "git status --porcelain; git log -1; git stash list",
       "git submodule status; git ls-files -o --exclude-standard"]


SOAK = bool(os.environ.get("BAWN_SOAK"))
SOME = [*KEYS, *HOOKS] if SOAK else [*KEYS, *HOOKS][IS_ROOT::6]


@pytest.fixture
def host(live):
    made = Host(live.base, live.work)
    made.lay_out(live)
    return made


def plant_key(host, name):
    return f"cat >> .git/config <<'END'\n{host.text(KEYS[name][0], name)}\nEND\n" + \
        (host.text(FILES, name) + "\n" if name in ("include", "includeIf", "hooksPath",
                                                   "worktree config") else "")


def plant_hook(host, name):
    return f"mkdir -p .git/hooks; printf '#!/bin/sh\\n{host.program(name)}\\n' > " \
        f".git/hooks/{name}; chmod +x .git/hooks/{name}\n"


@pytest.mark.parametrize("name", SOME)
def test_it_would_be_without_a_box(host, name):
    is_key = name in KEYS
    host.do(plant_key(host, name) if is_key else plant_hook(host, name))
    for script in KEYS[name][1] if is_key else [HOOKS[name] or HOOKS["pre-commit"]]:
        host.do(script)
    assert host.mark(name).exists()


PLANTS = {
    "keys": lambda host: "".join(plant_key(host, name) for name in KEYS),
    "hooks": lambda host: "".join(plant_hook(host, name) for name in HOOKS),
}


TOGETHER = [("keys", "direct"), ("hooks", "direct"), ("hooks", "staged"), ("keys", "staged")]


# of a run of all tests each user has a half of them
@pytest.mark.parametrize("plants, mode", TOGETHER if SOAK else TOGETHER[IS_ROOT::2])
def test_nothing_planted_is_executed(live, host, plants, mode):
    """All of a kind at once: planted, looked at, planted again; then an apply, and a look."""
    plant = f"({PLANTS[plants](host)}) 2> /dev/null; "
    options = ["--stage"] if mode == "staged" else []
    with host:
        child = live.start("--stdin", *options, "--", "bash", "-c", f"{EXPORT} {plant} "
                           f"echo planted; read -r x; {plant} echo x > ordinary",
                           stdin=subprocess.PIPE)
        assert child.stdout.readline() == b"planted\n"
        host.see()
        child.communicate(b"\n", timeout=3 * LIMIT_S)
        if stages(live):
            assert live.verb("apply", limit=3 * LIMIT_S).status in (0, 1)
        host.see()
    assert sorted(path.name for path in host.marks.iterdir()) == []
    review = live.verb("review").out
    assert ("core.fsmonitor" if plants == "keys" else "hooks/pre-commit") in review, review
