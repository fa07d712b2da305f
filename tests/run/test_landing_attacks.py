"""What a task, or bad luck, can do to a landing: the host's repository stays usable, and whole."""
import subprocess

import pytest

from boxed import IS_ROOT, place
from live import live
from test_git_box import EXPORT, git, plain

__all__ = ["live", "place"]

NOWHERE = "1" * 40


def head(place, name="main"):
    return git(place.work, "log", "-1", "--format=%s", name).stdout.strip()


def assert_usable(place):
    git(place.work, "status")
    git(place.work, "commit", "--allow-empty", "-qm", "host")
    git(place.work, "for-each-ref")
    git(place.work, "fsck", "--connectivity-only")


def test_what_waited_for_a_lock_lands_later(live):
    """An action that ends while a git holds a lock; the next one takes both to the host."""
    plain(live)
    task = live.begin()
    ran = live.sh_in(task, EXPORT + "git commit -q --allow-empty -m first; touch .git/packed.lock"
                     " .git/refs/heads/other.lock")
    assert ran.status == 0 and head(live) == "two", ran
    assert f"not at the host yet: {live.work}/.git (" in ran.err, ran
    ran = live.sh_in(task, EXPORT + "git commit -q --allow-empty -m second;"
                     "rm .git/packed.lock .git/refs/heads/other.lock")
    assert ran.status == 0 and "held" not in ran.err, ran
    assert head(live) == "second"
    ran = live.sh_in(task, EXPORT + "git commit -q --allow-empty -m third")
    assert ran.status == 0 and ran.err == "" and head(live) == "third", ran
    assert live.verb("task", "end", task).status == 0
    assert_usable(live)


def test_a_host_commit_meanwhile_is_kept_while_it_waits(live):
    plain(live)
    task = live.begin()
    live.sh_in(task, EXPORT + "git commit -q --allow-empty -m task; touch .git/index.lock")
    git(live.work, "commit", "-q", "--allow-empty", "-m", "host")
    ran = live.sh_in(task, "rm .git/index.lock")
    assert "refs/heads/main (the host changed it meanwhile)" in ran.err, ran
    assert head(live) == "host"
    assert live.verb("task", "end", task).status == 0


@pytest.mark.skipif(not IS_ROOT, reason="mounts a small file system")
def test_a_full_disk_loses_no_commit(place):
    """No room for the landing: what git did stays in the task's directory, for the next start."""
    plain(place)
    small = place.base / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "none", small], check=True)
    try:
        state = small / "state"
        state.mkdir(mode=0o700)
        ran = place.run("--state-dir", state, "--", "bash", "-c",
                        EXPORT + "git commit -q --allow-empty -m full; sleep 0.3;"
                        "head -c 3000000 /dev/urandom >.git/BIG")
        assert ran.status != 0 and "the next start of bawn tries again" in ran.err, ran
        assert head(place) == "two"
        # no room for the next one either: it says so, and takes nothing away
        ran = place.run("--state-dir", state, "--", "true")
        assert ran.status is not None and ran.status >= 0, ran
        assert head(place) == "two" and any((state / "tasks").iterdir())
        subprocess.run(["mount", "-o", "remount,size=16m", small], check=True)
        ran = place.run("--state-dir", state, "--", "true")
        assert ran.status == 0 and head(place) == "full", ran
        assert_usable(place)
    finally:
        subprocess.run(["umount", "-l", small], check=True)


@pytest.mark.parametrize("path, content", [
    ("refs/heads/x", NOWHERE),
    ("refs/tags/x", NOWHERE),
    ("refs/stash", NOWHERE),
    ("HEAD", NOWHERE),
    ("MERGE_HEAD", NOWHERE),
    ("CHERRY_PICK_HEAD", NOWHERE),
    ("packed-refs", NOWHERE + " refs/heads/x"),
])
def test_an_object_that_is_not_there_is_named_by_nothing(place, path, content):
    plain(place)
    git(place.work, "gc", "-q")
    ran = place.sh(f"echo '{content}' > .git/{path}")
    assert ran.status == 0 and "the object that it names is missing" in ran.err, ran
    assert_usable(place)
    place.assert_nothing_left()


def test_objects_are_found_loose_and_packed(place):
    plain(place)
    git(place.work, "gc", "-q")
    ran = place.sh(EXPORT + "git branch old HEAD~1; git commit -q --allow-empty -m new;"
                   "git branch new; git gc -q; git checkout -q --detach new")
    assert ran.status == 0 and "held" not in ran.err, ran
    assert head(place, "old") == "one" and head(place, "new") == "new"
    assert_usable(place)


def test_commits_that_another_task_pruned_are_still_there(place):
    """gc --prune=now in a box does not see what another box has committed, and takes nothing."""
    plain(place)
    one = place.start("--stdin", "--", "bash", "-c",
                      EXPORT + "git checkout -q -b topic; git commit -q --allow-empty -m topic;"
                      "echo ready; read -r answer; exit 0", stdin=subprocess.PIPE)
    assert one.stdout.readline() == b"ready\n"
    ran = place.sh("git gc -q --prune=now")
    assert ran.status == 0, ran
    _, err = one.communicate(b"go\n", timeout=20)
    assert one.returncode == 0 and not err, err
    assert head(place, "topic") == "topic"
    assert_usable(place)


MISLEADING = ["refs/heads/HEAD", "refs/tags/HEAD", "refs/heads/--exec=x", "refs/tags/-d",
              "refs/heads/$(x)", "refs/heads/a`x`", "refs/heads/a;x"]


@pytest.mark.parametrize("name", MISLEADING)
def test_a_name_that_git_would_not_give_is_held(place, name):
    plain(place)
    ran = place.sh(f"cp .git/refs/heads/main '.git/{name}'")
    assert ran.status == 0 and name in ran.err, ran
    assert not (place.work / ".git" / name).exists()
    assert_usable(place)


@pytest.mark.parametrize("name", MISLEADING[2:5])
def test_no_head_names_such_a_branch(place, name):
    """Nor is there one of it: `git push origin $(git symbolic-ref --short HEAD)` takes the name."""
    plain(place)
    ran = place.sh(f"for f in HEAD ORIG_HEAD MERGE_HEAD refs/remotes/o/HEAD; do "
                   f"mkdir -p .git/refs/remotes/o; echo 'ref: {name}' > .git/$f; done")
    assert ran.status == 0, ran
    for at in ("HEAD", "ORIG_HEAD", "MERGE_HEAD", "refs/remotes/o/HEAD"):
        assert f".git/{at} (" in ran.err, ran
    assert (place.work / ".git/HEAD").read_text() == "ref: refs/heads/main\n"
    for at in ("ORIG_HEAD", "MERGE_HEAD", "refs/remotes/o/HEAD"):
        path = place.work / ".git" / at
        assert not path.exists() or name not in path.read_text()
    assert_usable(place)


def test_a_thousand_held_things_are_one_short_line(place):
    plain(place)
    ran = place.sh("for i in $(seq 1000); do echo x >.git/hooks/h$i; done")
    assert ran.status == 0 and ", and 984 more; `bawn review`" in ran.err, ran
    assert len(ran.err) < 4000, ran
