"""What git did in the box comes to the host: by `bawn run`, after each action of a live task, by
the next start where a supervisor was killed. What is not safe waits for `bawn review`.

Each layout of a checkout gets the same everyday operations twice, by plain git and in a box; both
repositories must then look the same to git.
"""
import json
import os
import stat
import subprocess
import tempfile

import pytest

from boxed import BAWN, IS_ROOT, LIMIT_S, eventually, listing, place, remove_tree, select_ready
from live import live
from test_git_box import (fill, git, gitfile_out, init, link_in, link_out, linked, plain,
                          submodule, superproject)
from test_run import validator

__all__ = ["live", "place"]

VARIABLES = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "C",
    "GIT_COMMITTER_EMAIL": "c@example.org", "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_DATE": "1700000000 +0000", "GIT_EDITOR": "true", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ALLOW_PROTOCOL": "file",
}
ENV = [word for name, value in VARIABLES.items() for word in ("--env", f"{name}={value}")]
SOAK = bool(os.environ.get("BAWN_SOAK"))
# of a run of all tests each user has a half of them
LAYOUTS = [plain, linked, superproject, gitfile_out, link_out, submodule, link_in]
TRAP = "set -eE; trap 'echo \"line: $BASH_COMMAND\" >&2' ERR\n"

# what people do all day; "$FAR" is a place that either run has for itself
OPERATIONS = """
echo new >n; git add n
git commit -qm three
echo more >>n; git commit -qam four; git commit -q --amend -m amended
git branch topic; git branch deep/er/one; git branch deep/er/two; git branch -D deep/er/two
git switch -q topic
echo topic >>g; git commit -qam topic
git switch -q -
git merge -q --no-edit topic
git checkout -q -b side HEAD~1
echo side >s; git add s; git commit -qm side
git rebase -q topic
git checkout -q -b picked HEAD~1
git cherry-pick side
git revert --no-edit HEAD
git merge -q --no-ff --no-edit side
echo dirty >>f; git stash -q; git stash pop -q; git restore f
echo kept >>f; git stash -q; echo kept too >>g; git stash -q; git stash drop -q
git tag light; git tag gone; git tag -d gone; git tag -a -m noted noted
git reset -q --soft HEAD~1; git commit -qm again
git rm -q n; git mv g h; git commit -qm moved
echo h >>h; git commit -qam h; git reset -q --hard HEAD~1
git branch -m topic renamed; git branch -c renamed copied
git clone -q --bare . "$FAR"; git fetch -q "$FAR" side:refs/remotes/far/side
git push -q "$FAR" HEAD:refs/heads/pushed; git pull -q --ff-only "$FAR" pushed
git remote add far https://example.org/far.git; git branch -q -u far/side side
git remote add away https://example.org/away.git
git remote rename away back; git remote remove back
git config user.name Somebody; git config some.key x; git config --unset some.key
git notes add -m note
git bisect start HEAD HEAD~2; git bisect reset
git checkout -q -b conflict HEAD~1; echo one side >f; git commit -qam one
git checkout -q -b other2 HEAD~1; echo other side >f; git commit -qam two
git merge -q conflict && exit 1; git merge --abort
git rebase -q conflict && exit 1; git rebase --abort
git merge -q conflict && exit 1; echo both >f; git add f; git commit -qm both
git worktree add -q tree -b in-tree; (cd tree; echo t >t; git add t; git commit -qm t)
git worktree add -q tree2; git worktree remove tree2
printf '*.o\\n' >>"$(git rev-parse --git-path info/exclude)"; touch x.o
git pack-refs --all; git branch -D deep/er/one; git branch packed
git switch -q --detach light; echo d >d; git add d; git commit -qm detached
git gc -q
echo staged >>f; git add f; echo unstaged >>f; touch untracked
"""
IN_SUBMODULE = """
cd libs/sub; git checkout -q -b work; echo s >s; git add s; git commit -qm s; git branch more
cd ../..; git add libs/sub; git commit -qm bump
"""


def variables(**more):
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C", **VARIABLES, **more}


LOOK = """
git fsck --no-dangling --no-progress 2>&1
git for-each-ref --format='%(refname) %(objectname) %(symref) %(upstream)'
git symbolic-ref -q HEAD; git rev-parse --verify -q HEAD
git status --porcelain=v2 --branch --untracked-files=all --ignored | grep -v '^! real/'
git status | head -20
git ls-files --stage -t; git diff HEAD
git config --local --list | sort
git reflog --all --format='%gD %H %gs' 2>&1 | sort
git stash list; git log --all --format='%H %s' | sort; git worktree list
git submodule status --recursive 2>&1
"""


def look(work):
    """The repository as git sees it."""
    done = subprocess.run(["bash", "-c", LOOK], cwd=work, text=True, capture_output=True,
                          env=variables(GIT_OPTIONAL_LOCKS="0"), timeout=LIMIT_S, check=False,
                          stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


def plainly(place, script, far):
    """By plain git, where the box would do it afterwards: what the host then looks like."""
    kept = f"{place.base}.kept"
    subprocess.run(["cp", "-aT", place.base, kept], check=True)
    try:
        done = subprocess.run(["bash", "-c", TRAP + script], cwd=place.work, text=True,
                              capture_output=True, env=variables(FAR=far), timeout=3 * LIMIT_S,
                              check=False, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, (done.stdout, done.stderr)
        wanted = [look(folder) for folder in looked_at(place)]
        for entry in place.base.iterdir():
            remove_tree(entry)
        subprocess.run(["cp", "-aT", kept, place.base], check=True)
    finally:
        remove_tree(kept)
        remove_tree(far)
    return wanted


def looked_at(place):
    return [folder for folder in (place.work, place.work / "libs/sub", place.work / "tree",
                                  place.base / "main", place.base / "super") if folder.exists()]


def held(result):
    return {change.get("key") or change["path"]: change for change in result["changes"]
            if change["state"] == "held"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("layout", LAYOUTS if SOAK else LAYOUTS[IS_ROOT::2])
def test_it_is_as_plain_git_does_it(place, layout):
    layout(place)
    script = OPERATIONS + (IN_SUBMODULE if layout is superproject else "")
    far = tempfile.mkdtemp(prefix="bawn-far.", dir="/tmp")
    os.rmdir(far)
    wanted = plainly(place, script, far)
    ran = place.sh(TRAP + script, *ENV, "--env", f"FAR={far}", "--json",
                   limit=3 * LIMIT_S)
    assert ran.status == 0, ran
    validator().validate(ran.result)
    for folder, expected in zip(looked_at(place), wanted):
        assert look(folder).splitlines() == expected.splitlines(), (folder, ran.err)
    assert held(ran.result) == {} and "held" not in ran.err, ran
    assert {change["state"] for change in ran.result["changes"]} == {"applied"}, ran
    assert not list(place.base.rglob("*.lock")) and not (place.state / "held").exists()
    place.assert_nothing_left()


# --- what is held ---------------------------------------------------------------------------------

HOOK = ("printf '#!/bin/sh\\ntouch {mark}\\n' >.git/hooks/post-checkout; "
        "chmod +x .git/hooks/post-checkout")
PLANTED = [
    (HOOK, ".git/hooks/post-checkout", None),
    ("git config core.fsmonitor 'touch {mark};false'", ".git/config", "core.fsmonitor"),
    ("git config alias.st '!touch {mark}'", ".git/config", "alias.st"),
    ("git config include.path /tmp/x", ".git/config", "include.path"),
    ("mkdir -p .git/info; echo '* filter=x' >.git/info/attributes", ".git/info/attributes", None),
    ("echo /tmp/evil >.git/commondir", ".git/commondir", None),
    ("mkdir .git/rebase-merge; echo 'exec touch {mark}' >.git/rebase-merge/git-rebase-todo",
     ".git/rebase-merge", None),
    ("ln -s /etc .git/link", ".git/link", None),
    ("mkfifo .git/pipe", ".git/pipe", None),
]


def review(place, *words, status=0):
    verb, *rest = words
    done = subprocess.run([BAWN, "review", verb, *place.options, *rest], text=True, cwd="/",
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S,
                          check=False)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stdout


def waiting(place):
    return json.loads(review(place, "ls", "--json"))["held"]


def names(place):
    """All names of a git directory but objects."""
    return {name: row[0] for name, row in listing(place.work / ".git").items()
            if not name.startswith("objects/")}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_planted_things_are_held(place):
    plain(place)
    mark = place.base / "mark"
    before, config = names(place), (place.work / ".git/config").read_bytes()
    # in the box it is as the task made it; commondir last, for no git works beside it
    script = "; ".join(row[0] for row in sorted(PLANTED, key=lambda row: "commondir" in row[1]))
    ran = place.sh("set -e; " + script.replace("{mark}", str(mark)), *ENV, "--json")
    assert ran.status == 0, ran
    validator().validate(ran.result)
    assert names(place) == before and (place.work / ".git/config").read_bytes() == config
    found = held(ran.result)
    listed = {item["id"]: item for item in waiting(place)}
    for _, path, key in PLANTED:
        name = key or next((name for name in found if name.startswith(str(place.work / path))), "")
        change = found.get(name)
        assert change and change["reason"], (path, key, found)
        item = listed.pop(change["review"])
        assert item["key"] == key and f"{item['directory']}/{item['path']}" == change["path"], item
        assert review(place, "show", change["review"]), change
        assert name in ran.err, ran
    assert not listed and "bawn review" in ran.err
    git(place.work, "checkout", "-q", "other")
    git(place.work, "status")
    assert not mark.exists()
    place.assert_nothing_left()


def test_what_is_held_is_accepted_and_rejected(place):
    plain(place)
    mark = place.base / "mark"
    ran = place.sh(f"{HOOK}; git config alias.st status; git config core.pager x; "
                   "git commit --allow-empty -qm mine".replace("{mark}", str(mark)), *ENV, "--json")
    found = held(ran.result)
    hook = str(place.work / ".git/hooks/post-checkout")
    assert set(found) == {hook, "alias.st", "core.pager"}, ran
    assert git(place.work, "log", "-1", "--format=%s").stdout == "mine\n"
    review(place, "reject", "--yes", found["core.pager"]["review"])
    review(place, "accept", "--yes", found["alias.st"]["review"])
    assert git(place.work, "config", "alias.st").stdout == "status\n"
    assert git(place.work, "config", "core.pager", check=False).stdout == ""
    review(place, "accept", "--yes", found[hook]["review"])
    git(place.work, "checkout", "-q", "other")
    assert mark.exists()
    assert waiting(place) == []
    # what a person took over is the host's: a later task has it, and holds nothing
    ran = place.sh("git st", *ENV, "--json")
    assert ran.status == 0 and not held(ran.result), ran


# --- live tasks -----------------------------------------------------------------------------------


def act(live, task, script, *options, status=0):
    ran = live.sh_in(task, "".join(f"export {name}='{value}'; "
                                   for name, value in VARIABLES.items()) + script,
                     "--json", *options)
    assert ran.status == status, ran
    return ran


def subject(work, name="HEAD"):
    return git(work, "log", "-1", "--format=%s", name).stdout.strip()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_each_action_lands_before_its_answer(live):
    plain(live)
    task = live.begin()
    for turn in range(3):
        ran = act(live, task, f"echo {turn} >>f; git commit -qam {turn}; git branch b{turn}")
        assert subject(live.work) == subject(live.work, f"b{turn}") == str(turn)
        assert git(live.work, "status", "--porcelain").stdout == ""
        validator().validate(ran.result)
        assert not held(ran.result), ran
    ran = act(live, task, "git config core.pager x")
    assert set(held(ran.result)) == {"core.pager"}, ran
    # what is held stays as it is in the box, is not told again, and not kept twice
    ran = act(live, task, "git config core.pager; git tag t")
    assert ran.out.splitlines()[0] == "x" and not held(ran.result), ran
    assert len(waiting(live)) == 1
    assert live.verb("task", "end", task).status == 0
    assert eventually(lambda: not os.listdir(live.state / "tasks"))
    git(live.work, "fsck")


def test_the_host_commits_between_two_actions(live):
    """What the task has not touched it sees; of what it has, both keep their own."""
    plain(live)
    task = live.begin()
    act(live, task, "git commit --allow-empty -qm first")
    git(live.work, "commit", "-q", "--allow-empty", "-m", "host")
    git(live.work, "branch", "-f", "other", "HEAD")
    ran = act(live, task, "git log -1 --format=%s other; git commit --allow-empty -qm second; "
                          "git branch new")
    assert ran.out.splitlines()[0] == "host", ran
    assert git(live.work, "log", "--format=%s", "-2").stdout == "host\nfirst\n"
    assert git(live.work, "log", "--format=%s", "-2", "new").stdout == "second\nfirst\n"
    main = held(ran.result)[str(live.work / ".git/refs/heads/main")]
    assert main["reason"] == "the host changed it meanwhile", ran
    assert git(live.work, "status", "--porcelain").stdout == ""
    assert live.verb("task", "end", task).status == 0
    assert eventually(lambda: not os.listdir(live.state / "tasks"))
    assert subject(live.work) == "host"


def test_something_runs_beside_it(live):
    """What writes meanwhile is held still, and goes on afterwards."""
    plain(live)
    task = live.begin()
    act(live, task, "(i=0; while :; do i=$((i + 1)); echo $i >noise; sleep 0.01; done) "
                    ">/dev/null 2>&1 </dev/null &")
    assert eventually((live.work / "noise").exists)
    for turn in range(3):
        rans = [act(live, task, f"git commit --allow-empty -qm {turn}")]
        # what gets no processor for a second cannot be made to stand still: it is told, and waits
        while len(rans) < 5 and "deferred" in [c["state"] for c in rans[-1].result["changes"]]:
            assert "(something of the task ran on); it comes with the next" in rans[-1].err, rans
            rans.append(act(live, task, "true"))
        assert subject(live.work) == str(turn), rans
        last = (live.work / "noise").read_text()
        assert eventually(lambda last=last: (live.work / "noise").read_text() not in ("", last))
    assert live.verb("task", "end", task).status == 0
    assert eventually(lambda: not os.listdir(live.state / "tasks"))
    assert git(live.work, "log", "--format=%s", "-3").stdout == "2\n1\n0\n"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_half_done_it_waits(live):
    plain(live)
    task = live.begin()
    ran = act(live, task, "git commit --allow-empty -qm done; touch .git/index.lock")
    assert [change["state"] for change in ran.result["changes"]] == ["deferred"], ran
    assert ran.result["changes"][0]["reason"] and subject(live.work) == "two"
    assert not (live.work / ".git/index.lock").exists()
    validator().validate(ran.result)
    act(live, task, "rm .git/index.lock")
    assert subject(live.work) == "done"
    # at the end nobody goes on with it: all else comes
    act(live, task, "git commit --allow-empty -qm last; touch .git/index.lock")
    assert subject(live.work) == "done"
    assert live.verb("task", "end", task).status == 0
    assert eventually(lambda: subject(live.work) == "last")
    assert eventually(lambda: not os.listdir(live.state / "tasks"))
    assert not (live.work / ".git/index.lock").exists()
    git(live.work, "fsck")


def test_one_of_two_repositories_waits(live):
    """The other goes on meanwhile, from what was taken over of it."""
    plain(live)
    vendor = live.work / "vendor"
    init(vendor)
    fill(vendor)
    task = live.begin()
    both = "git commit --allow-empty -qm {0}; git -C vendor commit --allow-empty -qm {0}; "
    ran = act(live, task, both.format("a") + "touch vendor/.git/index.lock")
    assert "deferred" in [change["state"] for change in ran.result["changes"]], ran
    assert (subject(live.work), subject(vendor)) == ("a", "two")
    ran = act(live, task, "rm vendor/.git/index.lock; " + both.format("b"))
    assert (subject(live.work), subject(vendor)) == ("b", "b") and not held(ran.result), ran
    assert live.verb("task", "end", task).status == 0
    assert eventually(lambda: not os.listdir(live.state / "tasks"))


def test_the_end_of_a_task_in_mid_action(live):
    plain(live)
    task = live.begin()
    child = live.spawn("task", "exec", task, "--", "sh", "-c",
                       "git -c user.name=a -c user.email=a@b commit --allow-empty -qm mid; "
                       "echo ready; sleep 1000")
    assert select_ready(child) == b"ready\n"
    assert subject(live.work) == "two"
    assert live.verb("task", "end", task).status == 0
    child.communicate(timeout=LIMIT_S)
    assert eventually(lambda: subject(live.work) == "mid")
    assert eventually(lambda: not os.listdir(live.state / "tasks"))


# --- supervisors that die -------------------------------------------------------------------------


def kill_in_mid_action(place, script, kept="git/covers"):
    child = place.start(*ENV, "--", "bash", "-c", script + "; echo ready; sleep 1000")
    assert select_ready(child) == b"ready\n"
    (task,) = (place.state / "tasks").iterdir()
    assert eventually((task / kept).exists)
    child.kill()
    child.communicate()


def test_the_next_start_brings_it_over(place):
    plain(place)
    kill_in_mid_action(place, "git commit --allow-empty -qm saved; git branch new; "
                              "git config core.pager x; echo kept >>f; git add f; "
                              "touch .git/HEAD.lock")
    assert subject(place.work) == "two"
    ran = place.sh("git log -1 --format=%s", *ENV)
    assert ran.status == 0 and ran.out == "saved\n", ran
    assert subject(place.work) == subject(place.work, "new") == "saved"
    assert git(place.work, "diff", "--cached", "--name-only").stdout == "f\n"
    found = waiting(place)
    assert "core.pager" in [item["key"] for item in found], found
    assert not list((place.work / ".git").rglob("*.lock"))
    place.assert_nothing_left()


def test_it_comes_over_beside_what_the_host_did(place):
    plain(place)
    kill_in_mid_action(place, "git commit --allow-empty -qm task; git branch new")
    git(place.work, "commit", "-q", "--allow-empty", "-m", "host")
    assert place.sh("true").status == 0
    assert subject(place.work) == "host" and subject(place.work, "new") == "task"
    (item,) = [item for item in waiting(place)
               if item["path"] == "refs/heads/main"]
    assert item["reason"], item
    # a person may decide for the task's; the host's is still to be found
    review(place, "accept", "--yes", item["id"])
    assert subject(place.work) == "task"
    assert "host" in git(place.work, "reflog", "--format=%s", "main").stdout.split()
    place.assert_nothing_left()


@pytest.mark.parametrize("how", ["replaced", "removed", "layer"])
def test_one_that_is_lost_takes_no_other_with_it(place, how):
    plain(place)
    for name in ("a", "b"):
        init(place.work / name)
        fill(place.work / name)
    kill_in_mid_action(place, "for d in . a b; do git -C $d commit -q --allow-empty -m task; "
                              "git -C $d branch in-$(basename $d); done")
    if how == "layer":
        (layer,) = [upper.parent for upper in (place.state / "tasks").glob("*/git/*/upper")
                    if (upper / "refs/heads/in-a").exists()]
        (layer / "upper").rename(layer / "gone")
    else:
        (place.work / "a/.git").rename(place.base / "old")
    if how == "replaced":
        init(place.work / "a")
    ran = place.sh("true")
    assert ran.status == 0 and str(place.work / "a/.git") in ran.err, ran
    assert "cannot come to the host" in ran.err and ran.err.count("\n") == 1, ran
    assert subject(place.work) == subject(place.work / "b") == "task"
    assert place.sh("true").err == ""
    place.assert_nothing_left()


LOCKED = {
    "listed": "mkdir .git/x; touch .git/x/f; chmod 444 .git/x",
    "whole": "chmod 000 .git",
    "references": "chmod 444 .git/refs/heads",
    "objects": "chmod 000 .git/objects",
    "files": "chmod 000 .git/refs/heads/main .git/index .git/logs/HEAD",
}


@pytest.mark.parametrize("name", LOCKED)
def test_modes_keep_nothing_back(place, name):
    plain(place)
    before = stat.S_IMODE((place.work / ".git").stat().st_mode)
    ran = place.sh("git commit --allow-empty -qm kept; " + LOCKED[name], *ENV)
    assert ran.status == 0, ran
    assert subject(place.work) == "kept"
    assert [item["path"] for item in waiting(place)] == ["x/f"] * (name == "listed")
    assert stat.S_IMODE((place.work / ".git").stat().st_mode) == before
    kill_in_mid_action(place, "git commit --allow-empty -qm killed; " + LOCKED[name])
    assert "yet" not in place.sh("true").err
    assert subject(place.work) == "killed"
    place.assert_nothing_left()


def test_another_git_directory_by_now(place):
    """It has no place any more, and that is said."""
    plain(place)
    kill_in_mid_action(place, "git commit --allow-empty -qm task")
    (place.work / ".git").rename(place.base / "old")
    init(place.work)
    ran = place.sh("true")
    assert ran.status == 0 and str(place.work / ".git") in ran.err, ran
    assert ran.err.count("\n") == 1, ran
    # nobody can tell who made what stands there now: it is the person's to say
    (item,) = waiting(place)
    assert item["path"] == ".git" and "1 thing(s)" in ran.err, (item, ran)
    review(place, "accept", "--yes", item["id"])
    assert place.sh("true").err == ""
    git(place.base / "old", "--git-dir=.", "fsck")
    place.assert_nothing_left()


def test_a_live_task_whose_supervisor_dies(live):
    plain(live)
    task = live.begin()
    act(live, task, "git commit --allow-empty -qm landed")
    child = live.spawn("task", "exec", task, "--", "sh", "-c",
                       "git -c user.name=a -c user.email=a@b commit --allow-empty -qm later; "
                       "echo ready; sleep 1000")
    assert select_ready(child) == b"ready\n"
    os.kill(live.one()["pid"], 9)
    child.communicate(timeout=LIMIT_S)
    assert subject(live.work) == "landed"
    assert live.run("--", "true").status == 0
    assert git(live.work, "log", "--format=%s", "-2").stdout == "later\nlanded\n"
    assert eventually(lambda: not os.listdir(live.state / "tasks"))


FULL = """
set -e
mount -t tmpfs -o size=24m,mode=700 tmpfs "$1"
set +e
"$2" run --no-trace --state-dir "$1" $3 -- bash -c 'git commit --allow-empty -qm full
    git config core.pager x; sleep 1; cat /dev/zero >.git/fill 2>/dev/null; exit 0'
echo "status $?"; ls "$1/tasks" | wc -l; git log -1 --format=%s; git fsck
"$2" run --no-trace --state-dir "$1" -- true; echo "status $?"
rm -f "$1"/tasks/*/git/0/upper/fill
"$2" run --no-trace --state-dir "$1" -- true; echo "status $?"
ls "$1/tasks" | wc -l; git log -1 --format=%s
"$2" review ls --state-dir "$1" | grep -c core.pager
"""


@pytest.mark.skipif(not IS_ROOT, reason="mounts a small file system")
def test_a_full_state_disk_loses_nothing(place):
    plain(place)
    done = subprocess.run(["unshare", "-m", "--propagation", "private", "bash", "-c", FULL, "full",
                           place.state, BAWN, " ".join(f"--env {name}" for name in VARIABLES)],
                          cwd=place.work, env={**os.environ, **VARIABLES}, text=True, check=False,
                          capture_output=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
    lines = done.stdout.splitlines()
    assert lines[:3] == ["status 125", "1", "two"], done
    assert "has not come to the host yet" in done.stderr and "No space left" in done.stderr, done
    assert lines[-4:] == ["status 0", "0", "full", "1"], done
    git(place.work, "fsck")


# --- a host that goes on, and odd repositories ----------------------------------------------------


def test_a_commit_of_the_host_meanwhile(place):
    plain(place)
    child = place.start(*ENV, "--json", "--", "bash", "-c",
                        "git tag both; echo ready; while ! test -e go; do sleep 0.01; done; "
                        "git commit --allow-empty -qm task; git branch new")
    assert select_ready(child) == b"ready\n"
    git(place.work, "commit", "-q", "--allow-empty", "-m", "host")
    git(place.work, "tag", "both")
    (place.work / "go").touch()
    out, err = child.communicate(timeout=LIMIT_S)
    result = json.loads(out.splitlines()[-1])
    assert child.returncode == 0, err
    assert subject(place.work, "both") == "host" and subject(place.work, "new") == "task"
    found = held(result)
    main = found.get(str(place.work / ".git/refs/heads/main"))
    assert main and main["reason"] and main["review"] and subject(place.work) == "host", found
    assert str(place.work / ".git/refs/tags/both") in found, found
    place.assert_nothing_left()


COMMIT = "echo n >n; git add n; git commit -qm task; git branch new; git tag t"


def test_no_repository(place):
    """One that the task makes is nobody's yet: it waits for a person, whole."""
    ran = place.sh("git init -q -b main; " + COMMIT, *ENV, "--json")
    (item,) = held(ran.result).values()
    assert ran.status == 0 and item["path"] == str(place.work / ".git"), ran
    assert not (place.work / ".git").exists()
    review(place, "accept", "--yes", item["review"])
    assert subject(place.work) == "task"
    assert not waiting(place)
    place.assert_nothing_left()


def test_an_unborn_branch(place):
    init(place.work)
    ran = place.sh(COMMIT, *ENV, "--json")
    assert ran.status == 0 and not held(ran.result), ran
    assert subject(place.work, "main") == subject(place.work, "new") == "task"
    assert git(place.work, "status", "--porcelain").stdout == ""


def test_a_detached_head(place):
    plain(place)
    git(place.work, "checkout", "-q", "--detach", "other")
    ran = place.sh(COMMIT + "; git checkout -q --detach HEAD~1", *ENV, "--json")
    assert ran.status == 0 and not held(ran.result), ran
    assert subject(place.work) == "one" and subject(place.work, "new") == "task"
    assert git(place.work, "symbolic-ref", "-q", "HEAD", check=False).returncode == 1


def test_packed_references_alone(place):
    plain(place)
    git(place.work, "pack-refs", "--all")
    ran = place.sh(COMMIT + "; git branch -D other", *ENV, "--json")
    assert ran.status == 0 and not held(ran.result), ran
    assert git(place.work, "for-each-ref", "--format=%(refname:short)").stdout.split() == [
        "main", "new", "t"]
    assert subject(place.work) == "task"


@pytest.mark.parametrize("name", ["", "bare.git"])
def test_a_bare_repository(place, name):
    init(place.base / "source")
    fill(place.base / "source")
    if not name:
        place.work.rmdir()
    bare = place.work / name
    git(place.base, "clone", "-q", "--bare", place.base / "source", bare)
    ran = place.sh(f"set -e; git clone -q {bare} /tmp/c; cd /tmp/c; {COMMIT}; "
                   f"git push -q origin HEAD:pushed HEAD:main; cd {bare}; git branch -D other; "
                   "git config core.pager x", *ENV, "--json")
    assert ran.status == 0 and set(held(ran.result)) == {"core.pager"}, ran
    assert git(bare, "for-each-ref", "--format=%(refname:short)").stdout.split() == [
        "main", "pushed"]
    assert subject(bare) == "task"
    git(bare, "fsck")
    place.assert_nothing_left()
