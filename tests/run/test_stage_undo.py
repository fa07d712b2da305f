"""An apply that is taken back: the host has what it had, the stage has what the task made, whatever
the host did since and whatever kills the undo. As user and as root."""
import os
import random
import signal
import stat
import tempfile
from pathlib import Path

import pytest

import random_tree
from live import live
from random_tree import NAMES, make_tree
from test_faults import injector
from test_git_box import EXPORT, git, plain
from test_stage import describe
from test_stage_apply import (CHANGES, SAMPLE, WRITING, apply, check_each, inject, lay_out, names,
                              outcomes, sample)
from test_staged import CHANGE, contents, fill, rows, staged, stages

__all__ = ["injector", "live"]

SEEDS = 8


def undo(live, *words, status=0):
    return names(outcomes(live, "--undo", *words, status=status))


def kinds(live, *words):
    return {row["path"]: row["kind"] for row in rows(live, *words)}


def applied(live):
    place = live.state / "applied"
    return sorted(os.listdir(place)) if place.exists() else []


def test_all_of_it(live):
    fill(live.work)
    os.chmod(live.work / "edited", 0o4755)
    os.setxattr(live.work / "edited", "user.note", b"mine")
    os.link(live.work / "edited", live.base / "twin")
    before, inode = contents(live.work), os.stat(live.work / "edited").st_ino
    task = staged(live, CHANGE)
    was = kinds(live)
    apply(live)
    after = contents(live.work)
    assert stages(live) == [] and applied(live) == [task]
    assert set(undo(live, "--dry-run").values()) == {"ready"} and contents(live.work) == after
    assert stages(live) == [] and applied(live) == [task], "a dry run changes nothing"
    ran = apply(live, "--undo")
    assert "8 undone" in ran.out, ran
    assert contents(live.work) == before
    status = os.stat(live.work / "edited")
    assert (status.st_ino, status.st_nlink, stat.S_IMODE(status.st_mode)) == (inode, 2, 0o4755)
    assert os.getxattr(live.work / "edited", "user.note") == b"mine"
    # the stage has it again, and it can be applied in parts
    assert stages(live) == [task] and kinds(live) == was and applied(live) == []
    assert names(outcomes(live, task, "edited")) == {"edited": "applied"}
    assert undo(live, task) == {"edited": "undone"}
    apply(live)
    assert contents(live.work) == after and applied(live) == [task]
    undo(live)
    assert contents(live.work) == before
    live.verb("discard", "--yes")
    assert stages(live) == applied(live) == []
    ran = apply(live, "--undo", status=1)
    assert "nothing that could be taken back" in ran.err, ran
    live.assert_nothing_left()


def test_some_of_it(live):
    fill(live.work)
    (live.work / "gone").mkdir()
    for name in ("a", "b"):
        (live.work / "gone" / name).write_text(name)
    task = staged(live, f"{CHANGE}; rm -r gone")
    apply(live, task, "edited", "deep", "gone")
    apply(live, task, "created")
    assert undo(live, task, "deep/er", "gone/a") == {
        "deep/er/f": "undone", "deep/er": "undone", "gone": "undone", "gone/a": "undone"}
    found = contents(live.work)
    assert found["gone/a"] == (0o644, b"a") and "gone/b" not in found and "deep" in found
    assert "deep/er" not in found and found["edited"][1] == b"edited\nmore\n"
    assert set(undo(live, task)) == {"created", "edited", "deep", "gone/b"}
    assert kinds(live)["gone/b"] == "removed" and kinds(live)["edited"] == "modified"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_tree_comes_back(live, seed):
    """Random trees, random changes: apply and undo leave host and stage as they were."""
    make_tree(random.Random(seed), os.fsencode(live.work), NAMES, 40)
    view = live.base / "view"
    view.mkdir()
    tests = Path(random_tree.__file__).parent
    before = describe(live.work)
    ran = live.run("--stage", "--json", "--write", view, "--read", tests, "--", "/usr/bin/python3",
                   "-B", random_tree.__file__, "here", live.work, view, seed, "plain")
    assert ran.status == 0, ran
    if "stage" not in ran.result:
        return
    was = rows(live)
    apply(live)
    after = describe(live.work)
    apply(live, "--undo")
    assert describe(live.work) == before
    assert {row["path"]: row for row in rows(live)} == {row["path"]: row for row in was}
    apply(live)
    assert describe(live.work) == after


def test_what_the_host_did_since(live):
    for name in ("edited", "saved", "moved", "removed", "mode", "same"):
        (live.work / name).write_text(f"{name}\n")
    (live.work / "dir").mkdir()
    task = staged(live, "for name in edited saved moved same; do echo task >> $name; done; "
                  "rm removed; chmod 755 mode; mkdir new; echo x > new/x; echo x > mine; rmdir dir")
    apply(live)
    with open(live.work / "edited", "a", encoding="ascii") as file:
        file.write("host\n")
    (live.work / "aside").write_text("host\n")
    os.rename(live.work / "aside", live.work / "saved")
    os.rename(live.work / "moved", live.work / "elsewhere")
    (live.work / "removed").write_text("host\n")
    (live.work / "mode").chmod(0o700)
    (live.work / "new/host").write_text("host\n")
    (live.work / "mine").unlink()
    (live.work / "dir").mkdir()
    times = os.stat(live.work / "same")
    (live.work / "same").write_text("same\nhost\n")
    os.utime(live.work / "same", ns=(times.st_atime_ns, times.st_mtime_ns))
    hosts = contents(live.work)
    assert undo(live, status=1) == {
        "edited": "conflict", "saved": "conflict", "moved": "undone", "removed": "conflict",
        "mode": "conflict", "new": "conflict", "new/x": "undone", "same": "conflict"}
    found = contents(live.work)
    assert found.pop("moved") == (0o644, b"moved\n")
    assert hosts.pop("new/x") and found == hosts
    # moved out of the way, it comes back
    for name in ("edited", "removed", "saved"):
        os.rename(live.work / name, live.base / name)
    assert undo(live, task, "edited", "removed", "saved") == {
        "edited": "undone", "removed": "undone", "saved": "undone"}
    assert (live.work / "edited").read_text() == "edited\n"
    assert (live.work / "removed").read_text() == "removed\n"


def test_nothing_is_kept_where_nobody_wants_it(live):
    fill(live.work)
    staged(live, CHANGE)
    assert apply(live, "--undo", "--no-undo", status=2).out == ""
    assert apply(live, "--undo", "--overwrite", status=2).out == ""
    apply(live, "--no-undo")
    assert applied(live) == [] and apply(live, "--undo", status=1).out == ""


def test_what_was_applied_goes_with_time(live):
    """The last 32 can be taken back; and each can be dropped."""
    (live.work / "f").write_text("0\n")
    tasks = []
    for number in range(34):
        tasks.append(staged(live, f"echo {number} > f"))
        apply(live)
    assert applied(live) == sorted(tasks[2:])
    ran = apply(live, "--undo", status=1)
    assert "32 tasks were applied here; name one: t-" in ran.err, ran
    assert undo(live, tasks[5], status=1) == {"f": "conflict"}
    assert applied(live) == sorted(tasks[2:])
    ran = live.verb("discard", "--yes", tasks[5])
    assert ran.status == 0 and "undone no more" in ran.out, ran
    assert tasks[5] not in applied(live)
    assert undo(live, tasks[33]) == {"f": "undone"}
    assert (live.work / "f").read_text() == "32\n"


def test_what_git_did_stays(live):
    plain(live)
    staged(live, f"{EXPORT} echo x > f; git commit -qam staged")
    apply(live)
    assert undo(live) == {"f": "undone"}
    assert git(live.work, "log", "-1", "--format=%s").stdout == "staged\n"
    assert git(live.work, "status", "--porcelain").stdout == " M f\n"


@pytest.fixture(params=["here", "elsewhere"])
def place(request, live):
    """A workspace on the state's file system, or on another: copies are kept then."""
    if request.param == "here":
        yield live
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as state:
        live.state = Path(state)
        assert os.stat(state).st_dev != os.stat(live.work).st_dev
        yield live


def test_copies_are_as_good(place):
    before_and_after(place)


def before_and_after(live):
    lay_out(live.work)
    before = contents(live.work)
    task = staged(live, CHANGES)
    was = kinds(live)
    apply(live)
    after = contents(live.work)
    assert applied(live) == [task]
    apply(live, "--undo")
    assert contents(live.work) == before and kinds(live) == was
    apply(live)
    assert contents(live.work) == after
    apply(live, "--undo")
    return before, after


def undo_calls(live, injector):
    note = live.base / "calls"
    ran = live.verb("apply", "--undo", prefix=[injector, "list", note, "--"])
    assert ran.status == 0, ran
    calls = [tuple(map(int, line.split())) for line in note.read_text().splitlines()]
    found = [call for call in calls if call[2] in WRITING]
    assert len(found) > 60, calls
    return found


def inject_undo(live, injector, call, code):
    process, nth, number = call
    note = live.base / "hit"
    note.write_text("")
    words = map(str, ("fail", process, nth, number, code, note, "--"))
    ran = live.verb("apply", "--undo", prefix=[injector, *words])
    return ran, note.read_text().startswith("hit")


def check_undone(live, before, was, call):
    """A killed undo is gone on with, and host and stage are what they were."""
    left = [task for task in applied(live) + stages(live)]
    assert len(left) == 1, (call, left)
    ran = live.verb("apply", "--undo", *left)
    assert ran.status == 0 or "could be taken back" in ran.err, (call, ran)
    assert contents(live.work) == before, call
    assert kinds(live) == was, call


@pytest.mark.parametrize("code", [0, 28, 5], ids=["kill", "ENOSPC", "EIO"])
def test_any_call_ends_it(place, injector, code):
    live = place
    before, after = before_and_after(live)
    was = kinds(live)
    apply(live)
    hits = 0
    found = undo_calls(live, injector)
    part = sample(found, code)
    for call in part[::2] if not code else part[::6]:
        # what came back as the kill came may look like the host's
        apply(live, "--overwrite")
        assert contents(live.work) == after, call
        ran, was_hit = inject_undo(live, injector, call, code)
        check_each(live, before, after)
        hits += was_hit and (code != 0 or ran.status == 128 + signal.SIGKILL)
        check_undone(live, before, was, call)
    assert hits, "no call was met"


def test_a_killed_apply_is_taken_back(place, injector):
    """Also what it was in the middle of."""
    live = place
    before, after = before_and_after(live)
    was = kinds(live)
    note = live.base / "calls"
    ran = live.verb("apply", prefix=[injector, "list", note, "--"])
    calls = [tuple(map(int, line.split())) for line in note.read_text().splitlines()]
    found = [call for call in calls if call[2] in WRITING]
    apply(live, "--undo")
    for call in sample(found, 5)[::2]:
        ran, _ = inject(live, injector, call, 0, "--overwrite")
        check_each(live, before, after)
        assert ran.status in (0, 128 + signal.SIGKILL), ran
        check_undone(live, before, was, call)
