"""What the host's tools would run later is taken out of the workspace and waits for `bawn review`:
after `bawn run`, after each action of a live task, at its end, by the next start where a supervisor
was killed. tests/run/test_sweep.py shows for each attack that git runs it before the look.
"""
import hashlib
import os
import re
import resource
import stat
import struct
import subprocess
import threading

import pytest

from boxed import IS_ROOT, LIMIT_S, eventually, place
from live import live
from test_git_box import fill, git, init, plain
from test_landing import ENV, SOAK, act, kill_in_mid_action, review, waiting
from test_run import validator

__all__ = ["live", "place"]

# what executes it leaves a mark; fsmonitor asks it about changes, and takes no answer
PROGRAM = """printf '#!/bin/sh\\ntouch "{mark}"\\n' >prog; chmod +x prog; P=$PWD/prog; """
EVIL = "core.fsmonitor $P"


def held(result):
    return {change["path"]: change for change in result["changes"]
            if change["state"] == "held" and "key" not in change}


def below(place, result):
    """Paths in the workspace of what was taken out of it."""
    return {os.path.relpath(path, place.work): change for path, change in held(result).items()}


def changed(ran):
    return {(os.path.basename(c["path"]), c["kind"], c["state"]) for c in ran.result["changes"]}


def host(place, *words, cwd="."):
    """What a person's git does, which tells in the mark whether it ran anything."""
    subprocess.run(["git", "-C", place.work / cwd, "-c", "user.name=a", "-c", "user.email=a@b",
                    *words], check=False, capture_output=True, stdin=subprocess.DEVNULL,
                   timeout=LIMIT_S, env={"PATH": os.environ["PATH"], "LC_ALL": "C",
                                         "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(place.base),
                                         # as editors do: a lock of the host's is one in the box
                                         "GIT_OPTIONAL_LOCKS": "0"})


# --- names -------------------------------------------------------------------------------------


def test_everyday_git_says_nothing(place):
    plain(place)
    ran = place.sh("echo a > f && git add f && git commit -qm x && git checkout -q -b y && "
                   "git stash list && git gc -q && git checkout -q - && git branch -d y && "
                   "git config user.name c && git config --unset user.name; true", *ENV, "--json")
    assert ran.status == 0, ran
    assert {c["state"] for c in ran.result["changes"]} == {"applied"}, ran.result["changes"]
    assert not any("reason" in c for c in ran.result["changes"]) and "bawn:" not in ran.err, ran


@pytest.mark.parametrize("script, name", [
    ("mkdir -p a/b/.vscode; echo {} > a/b/.vscode/tasks.json", "a/b/.vscode"),
    ("mkdir .bsp; echo {} > .bsp/x.json", ".bsp"),
    ("echo 'source x' > .envrc.local", ".envrc.local"),
    ("mkdir .claude; echo {} > .claude/settings.json", ".claude"),
    ("mkdir x; echo {} > x/settings.json; mv x .claude", ".claude"),
    ("echo 'touch /tmp/x' > .envrc", ".envrc"),
    ("echo {} > a.code-workspace", "a.code-workspace"),
    ("mkdir -p .github/workflows; touch .github/workflows/ci.yml; mkdir .github/hooks; "
     "echo {} > .github/hooks/x.json", ".github/hooks"),
    ("mkdir -p a/.GitHub; echo {} > a/.GitHub/HOOKS", "a/.GitHub/HOOKS"),
    ("mkdir -p gh/hooks; echo {} > gh/hooks/x.json; ln -s gh .github", ".github"),
    ("mkdir -p a/x/hooks; echo {} > a/x/hooks/x.json; mv a/x a/.github", "a/.github/hooks"),
    ("mkdir -p .github/.vscode; touch .github/.vscode/x", ".github/.vscode"),
    ("echo x > plain; mv plain .envrc", ".envrc"),
    ("echo x > plain; ln plain .envrc", ".envrc"),
    ("ln -s /etc .Codex", ".Codex"),
    ("mkfifo .envrc", ".envrc"),
    ("mkdir .hg; echo '[hooks]' > .hg/hgrc", ".hg"),
    ("touch .exrc; mkdir .husky; touch .husky/pre-commit", ".husky"),
    # content changed, size and modification time kept: the change time tells
    ("cp -p .mcp.json /tmp/c; sed -i s/a/b/ .mcp.json; touch -r /tmp/c .mcp.json", ".mcp.json"),
    ("printf b | dd of=.mcp.json conv=notrunc status=none", ".mcp.json"),
])
def test_what_is_planted_is_taken_out(place, script, name):
    (place.work / ".mcp.json").write_text("a\n")
    (place.work / ".mcp.json").chmod(0o640)
    ran = place.sh(script, "--json")
    assert ran.status == 0, ran
    item = below(place, ran.result)[name]
    assert item["reason"] and name in ran.err and "bawn review" in ran.err
    validator().validate(ran.result)
    listed = {one["id"]: one for one in waiting(place)}
    assert listed[item["review"]]["path"] == name
    assert listed[item["review"]]["directory"] == str(place.work)
    # what was there at the start is there again
    status = (place.work / ".mcp.json").stat()
    assert (place.work / ".mcp.json").read_text() == "a\n"
    assert stat.S_IMODE(status.st_mode) == 0o640
    assert name == ".mcp.json" or not os.path.lexists(place.work / name)
    # and a task that goes on from there finds nothing to hold
    assert place.sh("true", "--json").result["changes"] == []
    place.assert_nothing_left()


def test_what_moves_into_a_forges_directory(place):
    """Content of an earlier task's, which is old by all of its stamps."""
    assert place.sh("mkdir -p x/hooks; echo {} > x/hooks/p.json").status == 0
    ran = place.sh("mv x .github", "--json")
    assert set(below(place, ran.result)) == {".github/hooks"}, ran
    assert os.listdir(place.work / ".github") == []


@pytest.mark.parametrize("is_link", [False, True])
def test_work_beside_hooks_of_a_forge(place, is_link):
    """What was there stays as it is, and nothing else in the directory is held."""
    directory = place.work / ("gh" if is_link else ".github")
    (directory / "hooks").mkdir(parents=True)
    (directory / "hooks/mine.json").write_text("{}\n")
    if is_link:
        (place.work / ".github").symlink_to("gh")
    ran = place.sh("mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; "
                   "echo evil > .github/hooks/mine.json; touch .github/hooks/new; true", "--json")
    assert ran.status == 0 and not below(place, ran.result), ran
    assert (directory / "workflows/ci.yml").read_text() == "x\n"
    assert (directory / "hooks/mine.json").read_text() == "{}\n"
    assert os.listdir(directory / "hooks") == ["mine.json"]



@pytest.mark.parametrize("before", ["seq 300 | xargs touch", "touch \u017f", "touch .ENVRC .Git2",
                                    "seq 254 | xargs touch"])
def test_in_any_top(place, before):
    subprocess.run(["sh", "-c", before], cwd=place.work, check=True)
    try:
        ran = place.sh("echo x > .envrc; mkdir .vscode", "--json")
        assert {(".envrc", "created", "held"), (".vscode", "created", "held")} <= changed(ran), ran
        assert place.sh("true", "--json").result["changes"] == []
    finally:
        place.work.chmod(0o755)


def test_quiet_keeps_it_in_the_result_alone(place):
    ran = place.sh("touch .envrc", "--json", "--quiet")
    assert changed(ran) == {(".envrc", "created", "held")} and ran.err == ""


def test_an_option_lifts_it(place):
    (place.work / ".vscode").mkdir()
    ran = place.sh("echo x > .vscode/tasks.json", "--json", "--write", ".vscode")
    assert ran.status == 0 and not held(ran.result), ran
    assert (place.work / ".vscode/tasks.json").read_text() == "x\n"


@pytest.mark.parametrize("options", [["--write", "src"], ["--read-only", "--write", "src"],
                                     ["--stage", "--write", "src"]])
def test_what_is_shown_to_be_written_is_looked_through(place, options):
    (place.work / "src").mkdir()
    ran = place.sh("mkdir -p src/a/.vscode; git init -q src/n", "--json", *options)
    assert ran.status == 0 and set(below(place, ran.result)) == {"src/a/.vscode", "src/n/.git"}, ran
    assert not (place.work / "src/n/.git").exists()


def test_hostile_trees(place):
    ran = place.sh("ln -s /etc .git; mkfifo .envrc; ln -s loop .claude; mkdir .vscode; "
                   "mkfifo $(seq -f .vscode/%g 600); mkdir -m 0 shut; mkdir -p lock/.idea; "
                   "chmod 500 lock/.idea lock; mkdir $'n\\n\\033'; touch $'n\\n\\033/.exrc'; "
                   "truncate -s 1T big; mkdir big.d; truncate -s 1T big.d/.envrc; "
                   "mkdir -p $(printf 'd/%.0s' $(seq 300)).zed", "--json")
    assert ran.status == 0, ran
    deep = "d/" * 300 + ".zed"
    assert set(below(place, ran.result)) == {".git", ".envrc", ".claude", ".vscode", "lock/.idea",
                                             "n\n\033/.exrc", "big.d/.envrc", deep}
    assert "\033" not in ran.err
    assert not (place.work / "d" / deep[2:]).exists() and (place.work / "lock").stat()
    assert stat.S_IMODE((place.work / "lock").stat().st_mode) == 0o500
    for item in waiting(place):
        review(place, "reject", "--yes", item["id"])
    assert not (place.state / "held").exists()
    (place.work / "lock").chmod(0o700)
    (place.work / "shut").chmod(0o700)
    place.assert_nothing_left()


# --- repositories ------------------------------------------------------------------------------

ATTACKS = {
    # what the index on the host names is entered by `git status` of the one above
    "nested, in the index": (f"git init -q n; git -C n commit -q --allow-empty -m x; "
                             f"git add n; git -C n config {EVIL}; git commit -qm n",
                             {"n/.git"}, ["status"], "."),
    "submodule that is not checked out": (f"cd gone; git init -q; git commit -q --allow-empty "
                                          f"-m x; git config {EVIL}", {"gone/.git"},
                                          ["status"], "."),
    "the same by a git file into objects": (
        f"git init -q --bare .git/objects/evil; git --git-dir .git/objects/evil config core.bare "
        f"false; git --git-dir .git/objects/evil config {EVIL}; "
        "echo gitdir: ../.git/objects/evil > gone/.git", {"gone/.git"}, ["status"], "gone"),
    "a git file to a module's objects": (
        f"M=.git/modules/mod; git init -q --bare $M/objects/evil; git --git-dir $M/objects/evil "
        f"config core.bare false; git --git-dir $M/objects/evil config {EVIL}; "
        "echo gitdir: ../$M/objects/evil > gone/.git", {"gone/.git"}, ["status"], "gone"),
    "another place for a module": ("mkdir two; echo gitdir: ../.git/modules/mod > two/.git",
                                   {"two/.git"}, ["status"], "two"),
    "a git file to the repository itself": (
        "mkdir -p two/.tools; cp prog two/.tools/pre-commit; echo gitdir: ../.git > two/.git",
        {"two/.git"}, ["commit", "--allow-empty", "-qm", "x"], "two"),
    # core.hooksPath is relative to each work tree
    "hooks of a new worktree": (
        "git worktree add -q two -b two 2>/dev/null; mkdir two/.tools; "
        "cp prog two/.tools/pre-commit",
        {"two/.git"}, ["commit", "--allow-empty", "-qm", "x"], "two"),
    "bare": (f"git init -q --bare d/e; git --git-dir d/e config core.bare false; "
             f"git --git-dir d/e config core.worktree ..; git --git-dir d/e config {EVIL}",
             {"d/e/HEAD"}, ["status"], "d/e"),
    "deep, its config": (f"git -C deep/old config {EVIL}", {"deep/old/.git/config"}, ["status"],
                         "deep/old"),
    "configured hooks that were absent": ("mkdir .tools; cp prog .tools/pre-commit", {".tools"},
                                          ["commit", "--allow-empty", "-qm", "x"], "."),
    "what it is called elsewhere": (f"git init -q n; git -C n config {EVIL}; mv n/.git n/.GIT",
                                    {"n/.GIT"}, ["--git-dir", ".GIT", "--work-tree", ".",
                                                 "status"], "n"),
}


def prepare(place):
    """A repository with one deep in it, a checked out submodule, and one that is not."""
    plain(place)
    init(place.base / "lib")
    fill(place.base / "lib")
    git(place.work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
        place.base / "lib", "mod")
    head = git(place.base / "lib", "rev-parse", "HEAD").stdout.strip()
    (place.work / "gone").mkdir()
    git(place.work, "update-index", "--add", "--cacheinfo", f"160000,{head},gone")
    git(place.work, "commit", "-qm", "submodules")
    (place.work / "deep/old").mkdir(parents=True)
    init(place.work / "deep/old")
    git(place.work, "config", "core.hooksPath", ".tools")


@pytest.mark.parametrize("name", ATTACKS)
def test_repositories_are_taken_out(place, name):
    script, paths, words, cwd = ATTACKS[name]
    prepare(place)
    mark = place.base / "mark"
    ran = place.sh("set -e; " + PROGRAM.replace("{mark}", str(mark)) + script, *ENV, "--json")
    assert ran.status == 0, ran
    assert paths <= set(below(place, ran.result)), ran.result["changes"]
    host(place, *words, cwd=cwd)
    host(place, "status")
    host(place, "add", "-A")
    assert not mark.exists()
    place.assert_nothing_left()


def test_a_person_may_want_it(place):
    """The attack is one: accepted, it runs."""
    prepare(place)
    mark = place.base / "mark"
    ran = place.sh("set -e; " + PROGRAM.replace("{mark}", str(mark)) +
                   ATTACKS["submodule that is not checked out"][0], *ENV, "--json")
    (item,) = [one for one in waiting(place) if one["path"] == "gone/.git"]
    assert item["place"] == "workspace" and item["kind"] == "directory", ran
    text = review(place, "show", item["id"])
    assert "fsmonitor" in text and "hooks/" in text, text
    assert item["id"] in review(place, "ls")
    review(place, "accept", "--yes", item["id"][:6])
    host(place, "status")
    assert mark.exists()
    mark.unlink()
    # what a person took over is the host's
    assert not held(place.sh("true", "--json").result)
    place.assert_nothing_left()


def test_work_trees_that_git_makes_stay(place):
    """Their git files lead to what came to the host by the commit engine."""
    prepare(place)
    git(place.work, "config", "--unset", "core.hooksPath")
    git(place.base / "lib", "branch", "more")
    ran = place.sh("set -e; git worktree add -q tree -b tree; cd tree; echo t > t; git add t; "
                   "git commit -qm t; cd ..; cp -r mod /tmp/lib; mkdir in; "
                   "git -C mod worktree add -q ../in/mod -b side", *ENV, "--json")
    assert ran.status == 0 and not held(ran.result), ran
    assert git(place.work / "tree", "log", "-1", "--format=%s").stdout == "t\n"
    assert git(place.work / "in/mod", "symbolic-ref", "HEAD").stdout == "refs/heads/side\n"
    assert git(place.work / "tree", "status", "--porcelain").stdout == ""
    # the next task works in them
    ran = place.sh("cd tree; echo u > t; git commit -qam u", *ENV, "--json")
    assert ran.status == 0 and not held(ran.result), ran
    assert git(place.work, "log", "-1", "--format=%s", "refs/heads/tree").stdout == \
        "u\n"
    place.assert_nothing_left()


def test_a_submodule_that_a_task_adds_stays(place):
    plain(place)
    ran = place.sh("set -e; git init -q /tmp/lib; cd /tmp/lib; echo l > l; git add l; "
                   "git commit -qm l; cd ~-; git -c protocol.file.allow=always submodule "
                   "--quiet add /tmp/lib libs/sub; git commit -qm sub", *ENV, "--json")
    assert ran.status == 0 and not held(ran.result), ran
    assert git(place.work / "libs/sub", "log", "-1", "--format=%s").stdout == "l\n"
    assert git(place.work, "submodule", "status").stdout.startswith(" ")


def test_a_git_file_whose_directory_is_held_is_held(place):
    """The engine does not take the worktree over: nothing is left that leads to it."""
    plain(place)
    ran = place.sh("set -e; git worktree add -q tree -b tree; "
                   "echo ../../../elsewhere > .git/worktrees/tree/commondir", *ENV, "--json")
    assert ran.status == 0 and "tree/.git" in below(place, ran.result), ran
    assert not (place.work / "tree/.git").exists()


@pytest.mark.skipif(not SOAK, reason="minutes: make soak has it; test_git_commit.py has the index")
def test_a_look_that_does_not_end(place):
    """Said, and no success; what names a repository in the tree does not come to the host."""
    plain(place)
    script = "import os\nfor i in range(70000):\n os.mkdir('d'); os.chdir('d')\nos.mkdir('.zed')"
    subprocess.run(["python3", "-c", script], cwd=place.work, check=True, timeout=30 * LIMIT_S)
    try:
        ran = place.sh("git init -q n; git -C n commit -q --allow-empty -m x; git add n", *ENV,
                       "--json", limit=6 * LIMIT_S)
        assert ran.status == 125 and "not looked through to its end" in ran.err, ran
        assert ran.result["end"] == "failed"
        assert git(place.work, "diff", "--cached", "--name-only").stdout == ""
        index = str(place.work / ".git/index")
        assert "not looked through" in held(ran.result)[index]["reason"]
    finally:
        # rm(1) has no trouble with it
        subprocess.run(["rm", "-rf", place.work / "d"], check=True, timeout=30 * LIMIT_S)


# --- live tasks --------------------------------------------------------------------------------


def test_after_each_action(live):
    plain(live)
    task = live.begin()
    for turn in range(2):
        ran = act(live, task, "mkdir .vscode; touch .vscode/x; git init -q n")
        assert set(below(live, ran.result)) == {".vscode", "n/.git"}, (turn, ran)
        assert not (live.work / ".vscode").exists() and "bawn review" in ran.err
    # one of each: the newer one took the place of the older
    assert {item["path"] for item in waiting(live)} == {".vscode", "n/.git"}
    # what a person takes over between two actions, or makes, is the host's
    for item in waiting(live):
        review(live, "accept", "--yes", item["id"])
    (live.work / ".envrc").write_text("mine\n")
    assert not held(act(live, task, "true").result)
    ran = act(live, task, "touch .vscode/y")
    assert set(below(live, ran.result)) == {".vscode/y"}, ran
    assert (live.work / ".vscode/x").exists() and (live.work / ".envrc").exists()
    assert live.verb("task", "end", task).status == 0
    assert eventually(lambda: not os.listdir(live.state / "tasks"), 5)
    assert (live.work / "n/.git").exists()


def test_a_look_that_failed_is_made_again(live):
    """What it did not see is no work of the host's between two actions."""
    plain(live)
    deep = live.work / "/".join(["d"] * 62)
    deep.mkdir(parents=True)
    task = live.begin()
    supervisor = live.one()["pid"]
    act(live, task, "true")
    with live.spawn("task", "exec", task, "--", "sh", "-c", f"mkdir {deep}/.zed {deep}/n; "
                    f"git init -q {deep}/n; touch planted; until test -e go; do sleep 0.01; done",
                    cwd=live.work) as running:
        assert eventually((live.work / "planted").exists)
        # an ordinary user may not look at what is not dumpable
        taken = set(map(int, os.listdir(f"/proc/{supervisor}/fd"))) if IS_ROOT else range(30)
        least = [fd for fd in range(1000) if fd not in taken][20]
        before = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
        resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (least, before[1]))
        (live.work / "go").touch()
        _, err = running.communicate(timeout=LIMIT_S)
        resource.prlimit(supervisor, resource.RLIMIT_NOFILE, before)
    assert b"not looked through to its end" in err and running.returncode == 125, err
    assert (deep / ".zed").exists() and (deep / "n/.git").exists()
    ran = act(live, task, "true")
    assert {os.path.relpath(path, deep) for path in held(ran.result)} == {".zed", "n/.git"}, ran
    assert not (deep / ".zed").exists() and not (deep / "n/.git").exists()
    assert not held(act(live, task, "true").result)


def test_what_runs_on_plants_later(live):
    """At the end of a later action, and of the task."""
    plain(live)
    task = live.begin()
    act(live, task, "(while ! test -e go; do sleep 0.01; done; mkdir -p a/.idea; touch planted; "
                    "while ! test -e again; do sleep 0.01; done; mkdir -p b/.zed; touch replanted; "
                    "exec sleep 1000) > /dev/null 2>&1 < /dev/null &")
    (live.work / "go").touch()
    assert eventually((live.work / "planted").exists)
    assert (live.work / "a/.idea").exists()
    ran = act(live, task, "true")
    assert set(below(live, ran.result)) == {"a/.idea"}, ran
    (live.work / "again").touch()
    assert eventually((live.work / "replanted").exists)
    assert live.verb("task", "end", task).status == 0
    assert eventually(lambda: not os.listdir(live.state / "tasks"))
    assert {item["path"] for item in waiting(live)} == {"a/.idea", "b/.zed"}
    assert not (live.work / "b/.zed").exists()


def test_a_worktree_in_the_middle_of_a_task(live):
    """Its git file waits with the git directory that is not over yet."""
    plain(live)
    task = live.begin()
    ran = act(live, task, "git worktree add -q tree -b tree; touch .git/index.lock")
    assert not held(ran.result) and (live.work / "tree/.git").exists(), ran
    act(live, task, "rm .git/index.lock; cd tree; git commit -q --allow-empty -m t")
    assert git(live.work / "tree", "log", "-1", "--format=%s").stdout == "t\n"
    assert live.verb("task", "end", task).status == 0
    assert eventually(lambda: not os.listdir(live.state / "tasks"))
    assert (live.work / "tree/.git").exists() and not waiting(live)


# --- supervisors that die ----------------------------------------------------------------------


def test_the_next_start_looks_through_it(place):
    plain(place)
    (place.work / ".mcp.json").write_text("a\n")
    kill_in_mid_action(place, "git init -q n; mkdir .vscode; echo b > .mcp.json; "
                              "git worktree add -q tree -b tree; git commit -q --allow-empty -m t")
    assert (place.work / "n/.git").exists()
    ran = place.sh("test ! -e n/.git -a ! -e .vscode && cat .mcp.json", *ENV)
    assert ran.status == 0 and ran.out == "a\n", ran
    assert "3 thing(s)" in ran.err and "bawn review" in ran.err and ran.err.count("\n") == 1, ran
    assert {item["path"] for item in waiting(place)} == {"n/.git", ".vscode", ".mcp.json"}
    assert git(place.work / "tree", "log", "-1", "--format=%s").stdout == "two\n"
    assert git(place.work, "log", "-1", "--format=%s").stdout == "t\n"
    # once: what is made from now on is the caller's
    (place.work / ".vscode").mkdir()
    assert place.sh("true").err == "" and (place.work / ".vscode").exists()
    place.assert_nothing_left()


def test_without_a_repository_too(place):
    kill_in_mid_action(place, "mkdir .vscode", kept="sweep")
    assert place.sh("test ! -e .vscode").status == 0
    assert [item["path"] for item in waiting(place)] == [".vscode"]
    place.assert_nothing_left()


def test_one_that_dies_while_it_takes_things_out(place):
    """The next start finishes: each is held, and none is lost or there still."""
    child = place.start("--", "sh", "-c", "for i in $(seq 150); do mkdir -p d$i/.zed; "
                                          "echo $i > d$i/.zed/x; done")
    assert eventually(lambda: any(place.state.glob("held/*/.tree/*.json")))
    child.kill()
    child.communicate()
    assert place.sh("true").status == 0
    assert not list(place.work.glob("d*/.zed"))
    assert {item["path"] for item in waiting(place)} == {f"d{i}/.zed" for i in range(1, 151)}
    assert {path.read_text() for path in place.state.glob("held/*/.tree/*/x")} == {
        f"{i}\n" for i in range(1, 151)}
    place.assert_nothing_left()


def rewrite(place, change):
    """What is kept of the start, with its digest, by another hand."""
    (task,) = (place.state / "tasks").iterdir()
    data = (task / "sweep").read_bytes()
    (length,) = struct.unpack_from("Q", data)
    body = change(data[40:40 + length])
    (task / "sweep").write_bytes(struct.pack("Q", len(body)) + hashlib.sha256(body).digest() + body)


def of_an_earlier_boot(body):
    """Begun at the beginning of time, before the kernel that runs now."""
    found = re.search(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\0", body)
    begin = found.end() + 4
    return body[:found.start()] + b"0" * 8 + body[found.start() + 8:begin] + bytes(8) + \
        body[begin + 8:]


def test_after_a_boot_it_is_the_callers(place):
    kill_in_mid_action(place, "mkdir .vscode", kept="sweep")
    rewrite(place, of_an_earlier_boot)
    assert place.sh("test -e .vscode").status == 0
    assert waiting(place) == []
    place.assert_nothing_left()


@pytest.mark.parametrize("torn", [lambda data: data[:-1] + bytes([data[-1] ^ 1]),
                                  lambda data: data[:-1], lambda data: b"\0"],
                         ids=["changed", "cut", "full disk"])
def test_one_that_was_not_written_whole(place, torn):
    kill_in_mid_action(place, "mkdir .vscode", kept="sweep")
    (task,) = (place.state / "tasks").iterdir()
    (task / "sweep").write_bytes(torn((task / "sweep").read_bytes()))
    ran = place.sh("true")
    assert ran.status == 0 and "not looked through" in ran.err, ran
    place.assert_nothing_left()


# --- a host that looks all the time ------------------------------------------------------------


class Watcher:
    """An editor's view of a repository: git in every directory of it, over and over."""

    def __init__(self, place, folders):
        self.place, self.folders, self.rounds = place, folders, 0
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ends.is_set():
            for folder in self.folders:
                if (self.place.work / folder).is_dir():
                    host(self.place, "status", cwd=folder)
            self.rounds += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()

    def see(self):
        """Two whole rounds from now on."""
        before = self.rounds
        assert eventually(lambda: self.rounds >= before + 2, 3 * LIMIT_S)


def test_a_watcher_runs_nothing_of_an_action_that_is_over(place):
    prepare(place)
    mark = place.base / "mark"
    names = ["nested, in the index", "submodule that is not checked out", "deep, its config",
             "bare"]
    with Watcher(place, [".", "n", "gone", "deep/old", "d/e"]) as watcher:
        for name in names:
            ran = place.sh("set -e; " + PROGRAM.replace("{mark}", str(mark)) + ATTACKS[name][0],
                           *ENV, "--json")
            assert ran.status == 0 and ATTACKS[name][1] <= set(below(place, ran.result)), ran
            watcher.see()
            mark.unlink(missing_ok=True)
            watcher.see()
            assert not mark.exists(), name


def test_a_watcher_of_the_top_runs_nothing_at_all(place):
    """What an index on the host does not name is not entered, and it comes there last."""
    plain(place)
    mark = place.base / "mark"
    with Watcher(place, ["."]) as watcher:
        for turn in range(3):
            script = ATTACKS["nested, in the index"][0].replace(" n", f" n{turn}")
            ran = place.sh("set -e; " + PROGRAM.replace("{mark}", str(mark)) + script +
                           "; sleep 0.2", *ENV, "--json")
            assert ran.status == 0 and f"n{turn}/.git" in below(place, ran.result), ran
            watcher.see()
        assert not mark.exists()
