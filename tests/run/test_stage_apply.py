"""What a stage becomes on the host: all of it or some, whatever the host did meanwhile, and what
kills the apply. As user and as root."""
import fcntl
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

import random_tree
from boxed import BAWN, IS_ROOT, LIMIT_S, descendants, eventually
from live import live
from random_tree import NAMES, RICH, enrich, make_tree
from test_faults import injector
from test_git_box import EXPORT, LAYOUTS, git, plain
from test_stage import describe
from test_staged import CHANGE, contents, fill, rows, staged, stages

__all__ = ["injector", "live"]

SEEDS = 14


def apply(live, *words, status=0, **options):
    ran = live.verb("apply", *words, **options)
    assert ran.status == status, ran
    return ran


def outcomes(live, *words, status=0):
    ran = apply(live, "--json", *words, status=status)
    return {row["path"]: (row["outcome"], row["reason"])
            for row in map(json.loads, ran.out.splitlines()) if "outcome" in row}


def names(found):
    return {path: outcome for path, (outcome, _) in found.items()}


def test_all_of_it(live):
    fill(live.work)
    staged(live, CHANGE)
    ran = apply(live)
    assert "8 applied" in ran.out, ran
    assert contents(live.work) == {
        "created": (0o644, b"new\n"), "edited": (0o644, b"edited\nmore\n"),
        "made": (0o755, b"made\n"), "link": ("link", "edited"), "deep": (stat.S_IFDIR | 0o755,),
        "deep/er": (stat.S_IFDIR | 0o755,), "deep/er/f": (0o644, b"x\n")}
    assert stages(live) == [], "nothing is left of it"
    assert apply(live, status=1).err.startswith("bawn: nothing is staged")
    live.assert_nothing_left()


def test_a_dry_run_does_nothing(live):
    fill(live.work)
    before = contents(live.work)
    staged(live, CHANGE)
    ran = apply(live, "--dry-run")
    assert "ready    edited\n" in ran.out and "8 would be applied" in ran.out, ran
    assert contents(live.work) == before and len(rows(live)) == 8


def beside(root):
    """Attributes and ACL of each file below root, and which others are the same file."""
    found, names = {}, {}
    for here, _, files in os.walk(os.fsencode(root)):
        for name in files:
            path = os.path.join(here, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                below = os.fsdecode(os.path.relpath(path, os.fsencode(root)))
                status = os.lstat(path)
                names.setdefault((status.st_dev, status.st_ino), []).append(below)
                found[below] = {key: os.getxattr(path, key) for key in os.listxattr(path)
                                if key.startswith(("user.", "system.posix_acl"))}
    return {path: (found[path], sorted(same)) for same in names.values() for path in same}


@pytest.mark.parametrize("seed", range(100, 100 + SEEDS))
def test_what_does_not_come_is_told(live, seed):
    """Holes, long and odd names, renames over something; attributes, ACLs and hard links: either
    the host has what the task's view has, or the apply says that it has not. What stood on the host
    and was not the task's to take away is there."""
    draw = random.Random(seed)
    make_tree(draw, os.fsencode(live.work), NAMES, 40)
    for _ in range(20):
        enrich(draw, os.fsencode(live.work), draw.choice(RICH))
    was = beside(live.work)
    view = live.base / "view"
    view.mkdir()
    tests = Path(random_tree.__file__).parent
    ran = live.run("--stage", "--json", "--write", view, "--read", tests, "--", "/usr/bin/python3",
                   "-B", random_tree.__file__, "here", live.work, view, seed, "rich", limit=60)
    assert ran.status == 0, ran
    found = {row["path"]: row for row in map(
        json.loads, live.verb("apply", "--json", limit=60).out.splitlines())}
    come = {path for path, row in found.items() if row["outcome"] == "applied"}
    work, seen = describe(live.work), describe(view)
    assert {path: work.get(path) for path in come} == {path: seen.get(path) for path in come}
    after, wanted = beside(live.work), beside(view)
    for path in come & after.keys() & wanted.keys():
        told = found[path]["reason"]
        assert after[path] == wanted[path] or told, (path, after[path], wanted[path])
        if path in was and found[path]["kind"] in ("modified", "mode"):
            kept = set(was[path][0]) - set(after[path][0])
            assert not kept, (path, kept)
    for path in come & after.keys():
        # what the kernel has in memory counts as data in large pieces
        status, shown = (os.lstat(os.path.join(os.fsencode(root), os.fsencode(path)))
                         for root in (live.work, view))
        assert status.st_blocks <= shown.st_blocks + 4096, path


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_host_has_the_tasks_view(live, seed):
    """Random trees, random changes: after apply(stage) both are the same, byte, mode and link."""
    make_tree(random.Random(seed), os.fsencode(live.work), NAMES, 40)
    view = live.base / "view"
    view.mkdir()
    words = ["plain"] if seed % 2 else []
    tests = Path(random_tree.__file__).parent
    ran = live.run("--stage", "--json", "--write", view, "--read", tests, "--", "/usr/bin/python3",
                   "-B", random_tree.__file__, "here", live.work, view, seed, *words)
    assert ran.status == 0, ran
    if "stage" not in ran.result:
        assert describe(live.work) == describe(view)
        return
    ran = live.verb("apply", "--json")
    assert ran.status in (0, 1) and ran.err == "", ran
    found = {row["path"]: row for row in map(json.loads, ran.out.splitlines())}
    short = {path: row for path, row in found.items() if row["outcome"] != "applied"}
    assert all(row["outcome"] in ("refused", "conflict") for row in short.values()), short
    if words:
        assert not short, short
    same = [path for path in {**describe(live.work), **describe(view)}
            if not any(path == other or path.startswith(other + "/") or
                       other.startswith(path + "/") for other in short)]
    work, seen = describe(live.work), describe(view)
    assert {path: work.get(path) for path in same} == {path: seen.get(path) for path in same}
    if not short:
        assert stages(live) == []
    assert not [name for name in os.listdir(live.work) if name.startswith(".bawn")]


def test_some_paths(live):
    fill(live.work)
    task = staged(live, CHANGE)
    assert names(outcomes(live, task, "edited", "deep/er/f")) == {
        "edited": "applied", "deep": "applied", "deep/er": "applied", "deep/er/f": "applied"}
    assert (live.work / "edited").read_text() == "edited\nmore\n"
    assert not (live.work / "created").exists()
    assert {row["path"] for row in rows(live)} == {"created", "removed", "link", "made"}
    # what is applied is the host's: what it does with it is no change of the task's
    (live.work / "edited").write_text("the host's\n")
    (live.work / "deep/er/f").unlink()
    assert {row["path"] for row in rows(live)} == {"created", "removed", "link", "made"}
    apply(live, live.work / "created", "er", cwd=live.work / "deep")
    assert (live.work / "created").read_text() == "new\n"
    ran = apply(live, "../outside", status=2)
    assert "no path in the workspace" in ran.err
    apply(live, ".")
    assert stages(live) == [] and (live.work / "edited").read_text() == "the host's\n"


def test_what_replaced_a_directory_leaves_in_parts(live):
    """An opaque directory hides all of the host's: what is applied of it must not look removed."""
    (live.work / "d/sub").mkdir(parents=True)
    for name in ("d/a", "d/b", "d/sub/x", "d/sub/y"):
        (live.work / name).write_text(f"{name}\n")
    staged(live, "rm -rf d; mkdir -p d/sub; echo new > d/a; echo new > d/sub/x; echo new > d/c")
    assert names(outcomes(live, "d/a", "d/sub/x", "d/b")) == {
        "d/a": "applied", "d/sub/x": "applied", "d/b": "applied"}
    assert {row["path"]: row["kind"] for row in rows(live)} == {
        "d/c": "created", "d/sub/y": "removed"}
    (live.work / "d/host").write_text("host\n")
    apply(live)
    assert {path: what[-1] for path, what in contents(live.work).items() if len(what) == 2} == {
        "d/a": b"new\n", "d/sub/x": b"new\n", "d/c": b"new\n", "d/host": b"host\n"}
    assert stages(live) == []


# ---- what the host did meanwhile ----


def test_conflicts(live):
    for name in ("edited", "removed", "gone", "moved", "same", "kept"):
        (live.work / name).write_text(f"{name}\n")
    (live.work / "dir").mkdir()
    (live.work / "dir/f").write_text("f\n")
    staged(live, "for name in edited gone moved same kept; do echo task >> $name; done; "
           "rm removed; rm -r dir; echo task > new; mkdir newdir; echo x > newdir/f")
    (live.work / "edited").write_text("host\n")
    (live.work / "removed").write_text("host\n")
    (live.work / "gone").unlink()
    (live.work / "other").write_text("host\n")
    os.rename(live.work / "other", live.work / "moved")
    (live.work / "same").write_text("same\ntask\n")
    (live.work / "dir/host").write_text("host\n")
    (live.work / "new").write_text("host\n")
    (live.work / "newdir").write_text("host\n")
    before = contents(live.work)
    for _ in range(2):
        found = outcomes(live, "--dry-run", status=1)
        assert contents(live.work) == before
    assert names(found)["kept"] == "ready"
    found = outcomes(live, status=1)
    after = contents(live.work)
    assert names(found) == {"edited": "conflict", "removed": "conflict", "gone": "conflict",
                            "moved": "conflict", "kept": "applied", "dir/f": "applied",
                            "dir": "conflict", "new": "conflict", "newdir": "conflict",
                            "newdir/f": "conflict", "dir/host": "conflict"}
    assert {**before, "kept": after["kept"]} == {**after, "dir/f": before["dir/f"]}
    assert after["kept"][1] == b"kept\ntask\n" and "removed it" in found["gone"][1]
    ran = apply(live, status=1)
    assert "conflict" in ran.out and "--overwrite" in ran.out
    apply(live, "--overwrite")
    after = contents(live.work)
    for name in ("edited", "gone", "moved"):
        assert after[name][1] == f"{name}\ntask\n".encode()
    assert after["new"][1] == b"task\n" and after["newdir/f"][1] == b"x\n"
    assert "removed" not in after and "dir" not in after


def test_the_host_is_quicker(live):
    """An editor that saves by rename, all the while: what it wrote last is there, or in the task's
    place; never neither."""
    (live.work / "f").write_text("0\n")
    stop = threading.Event()
    wrote = [0]

    def save():
        while not stop.is_set():
            wrote[0] += 1
            temporary = live.work / "f.tmp"
            temporary.write_text(f"{wrote[0]}\n")
            os.rename(temporary, live.work / "f")

    for _ in range(6):
        staged(live, "echo task > f")
        thread = threading.Thread(target=save)
        stop.clear()
        thread.start()
        try:
            ran = live.verb("apply", "--overwrite")
        finally:
            stop.set()
            thread.join()
        assert (live.work / "f").read_text() in (f"{wrote[0]}\n", "task\n"), ran
        assert not [name for name in os.listdir(live.work) if name.startswith(".bawn")], ran
        live.verb("discard", "--yes")
        (live.work / "f").write_text("0\n")


def test_links_are_never_followed(live):
    """The host's directory is exchanged for a link out of the workspace, all the while."""
    outside = live.base / "outside"
    outside.mkdir()
    (live.work / "d").mkdir()
    for number in range(60):
        (live.work / f"d/{number}").write_text("old\n")
    (live.work / "link").symlink_to(outside)
    staged(live, "for name in d/*; do echo new > $name; done; for n in $(seq 60); do "
           "echo x > d/new$n; done")
    stop = threading.Event()

    def exchange():
        while not stop.is_set():
            for one, other in (("d", "aside"), ("link", "d"), ("d", "link"), ("aside", "d")):
                os.rename(live.work / one, live.work / other)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        live.verb("apply")
    finally:
        stop.set()
        thread.join()
    assert os.listdir(outside) == []
    if stages(live):
        apply(live, "--overwrite")
    assert len(os.listdir(live.work / "d")) == 120 and os.listdir(outside) == []


# ---- what does not come ----


HELD = [".envrc", ".vscode/tasks.json", "sub/.claude/settings.json", "sub/.git/config",
        ".GIT/hooks/x", ".github/hooks/x.json", "sub/a.code-workspace", ".husky/pre-commit",
        "bare/HEAD", "bare/refs/heads/x", "bare/objects/x"]


def test_a_link_to_hooks_is_held(live):
    fill(live.work)
    task = staged(live, "mkdir -p gh/hooks; echo x > gh/hooks/x.json; ln -s gh .github")
    found = names(outcomes(live, task, status=1))
    assert found[".github"] == "held" and found["gh/hooks/x.json"] == "applied", found
    assert not os.path.lexists(live.work / ".github")


def test_what_the_hosts_tools_run_is_held(live):
    fill(live.work)
    task = staged(live, "".join(f"mkdir -p $(dirname {path}); echo x > {path}; " for path in HELD) +
                  "echo x > bare/config; echo x > package.json; echo x > Makefile")
    found = outcomes(live, task, status=1)
    for path in HELD:
        assert found[path][0] == "held", (path, found)
    assert found["package.json"][0] == found["Makefile"][0] == "applied"
    assert not any((live.work / path).exists() for path in HELD)
    assert names(outcomes(live, task, "sub", status=1))["sub/.claude"] == "held"
    assert set(names(outcomes(live, task, ".vscode", "sub/.claude/settings.json")).values()) == {
        "applied"}
    assert (live.work / ".vscode/tasks.json").exists()
    assert (live.work / "sub/.claude/settings.json").exists()
    assert not (live.work / "sub/.git").exists() and not (live.work / "bare/HEAD").exists()
    apply(live, task, "bare")
    assert (live.work / "bare/HEAD").exists()


def test_what_the_users_git_runs_is_held(live):
    plain(live)
    git(live.work, "config", "core.hooksPath", "tools/hooks")
    (live.work / "tools/hooks").mkdir(parents=True)
    (live.work / "tools/hooks/pre-commit").write_text("#!/bin/sh\n")
    staged(live, "echo evil >> tools/hooks/pre-commit; echo x > tools/other")
    found = outcomes(live, status=1)
    assert found["tools/hooks/pre-commit"] == ("held", "the host's tools run or obey it here")
    assert found["tools/other"][0] == "applied"
    live.verb("discard", "--yes")
    staged(live, "mv tools was; mkdir evil; ln -s evil tools")
    assert outcomes(live, status=1)["tools"][0] == "held"


def test_special_files(live):
    fill(live.work)
    staged(live, "mkfifo fifo; rm edited; mkfifo edited; mkdir d; mkfifo d/fifo; echo x > d/f; "
           "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'; "
           "truncate -s 1T sparse; echo end >> sparse; chmod 0 d/f")
    found = outcomes(live, status=1)
    assert {path: found[path][0] for path in ("fifo", "edited", "d/fifo", "socket", "d/f", "d",
                                              "sparse")} == {
        "fifo": "refused", "edited": "refused", "d/fifo": "refused", "socket": "refused",
        "d/f": "applied", "d": "applied", "sparse": "applied"}
    assert stat.S_IMODE(os.lstat(live.work / "d/f").st_mode) == 0
    status = os.stat(live.work / "sparse")
    assert status.st_size == 1 << 40 | 4 and status.st_blocks < 100
    assert (live.work / "edited").read_text() == "edited\n"


def test_set_id_bits_do_not_come(live):
    fill(live.work)
    task = staged(live, "echo x > f; echo x > g; mkdir d; echo x > d/x")
    upper = live.state / "stages" / task / "stage/upper"
    os.chmod(upper / "f", 0o6755)
    os.chmod(upper / "d", 0o7755)
    os.setxattr(upper / "g", "user.note", b"x")
    ran = apply(live)
    for name in ("f", "g"):
        assert f"applied  {name}: but not what the task set of set-id bits" in ran.out, ran
    assert stat.S_IMODE(os.stat(live.work / "f").st_mode) == 0o755
    assert stat.S_IMODE(os.stat(live.work / "d").st_mode) == 0o1755
    assert os.listxattr(live.work / "g") == []


def test_attributes_of_the_hosts_stay(live):
    """An edited file has what the host gave it, but a capability, which was for another content."""
    (live.work / "f").write_text("old\n")
    os.setxattr(live.work / "f", "user.note", b"kept")
    os.setxattr(live.work / "f", "system.posix_acl_access", random_tree.acl())
    if IS_ROOT:
        os.setxattr(live.work / "f", "security.capability",
                    bytes.fromhex("0100000200040000000000000000000000000000"))
    staged(live, "echo new > f; chmod 640 f")
    apply(live)
    assert (live.work / "f").read_text() == "new\n"
    assert os.getxattr(live.work / "f", "user.note") == b"kept"
    assert os.getxattr(live.work / "f", "system.posix_acl_access") == random_tree.acl()[:-6] + \
        b"\0\0" + random_tree.acl()[-4:]
    assert "security.capability" not in os.listxattr(live.work / "f")
    apply(live, "--undo")
    assert (live.work / "f").read_text() == "old\n"
    assert ("security.capability" in os.listxattr(live.work / "f")) == IS_ROOT


def test_other_names_of_a_file_are_told(live):
    (live.work / "one").write_text("old\n")
    os.link(live.work / "one", live.work / "two")
    staged(live, "echo new > one; echo x > made; ln made again")
    ran = apply(live)
    assert "applied  one: as a file of its own; its other names here keep what was there" in ran.out
    for name in ("made", "again"):
        assert f"applied  {name}: as a file of its own; the task's has other names" in ran.out, ran
    assert (live.work / "two").read_text() == "old\n"


def test_hidden_names_stay(live):
    (live.work / ".env").write_text("SECRET\n")
    (live.work / "sub").mkdir()
    (live.work / "sub/key").write_text("secret\n")
    (live.work / "sub/f").write_text("f\n")
    staged(live, "echo mine > .env; rm -rf sub; echo x > new", "--hide", ".env",
           "--hide", "sub/key")
    found = outcomes(live, status=1)
    assert names(found) == {".env": "refused", "new": "applied", "sub": "conflict",
                            "sub/f": "applied"}
    assert (live.work / ".env").read_text() == "SECRET\n"
    assert (live.work / "sub/key").read_text() == "secret\n"


# ---- git ----


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_git_did(live, layout):
    layout(live)
    head = git(live.work, "rev-parse", "HEAD").stdout
    staged(live, f"{EXPORT} echo x > f; git commit -qam staged; git tag v9; "
           "git config core.fsmonitor ./evil")
    assert git(live.work, "rev-parse", "HEAD").stdout == head
    assert git(live.work, "tag").stdout == ""
    ran = apply(live, status=1)
    assert "core.fsmonitor" in ran.out and "bawn review" in ran.out, ran
    assert git(live.work, "log", "-1", "--format=%s").stdout == "staged\n"
    assert git(live.work, "tag").stdout == "v9\n"
    assert git(live.work, "status", "--porcelain").stdout == ""
    git(live.work, "fsck", "--strict")
    assert git(live.work, "config", "core.fsmonitor", check=False).returncode == 1
    assert stages(live) == []
    assert "core.fsmonitor" in live.verb("review").out


def test_the_host_commits_meanwhile(live):
    plain(live)
    staged(live, f"{EXPORT} echo x > f; git commit -qam staged; git branch mine")
    (live.work / "g").write_text("host\n")
    git(live.work, "commit", "-qam", "host")
    ran = apply(live, status=1)
    assert "refs/heads/main" in ran.out, ran
    assert git(live.work, "log", "-1", "--format=%s").stdout == "host\n"
    assert git(live.work, "log", "-1", "--format=%s", "mine").stdout == "staged\n"
    assert (live.work / "f").read_text() == "x\n"


def test_git_alone(live):
    """A commit of what the host has already is no change of the work tree."""
    plain(live)
    (live.work / "f").write_text("host\n")
    task = staged(live, f"{EXPORT} git commit -qam staged")
    assert [row for row in rows(live, task) if "git" not in row] == []
    apply(live)
    assert git(live.work, "log", "-1", "--format=%s").stdout == "staged\n"
    assert stages(live) == []


def test_some_paths_leave_git(live):
    plain(live)
    staged(live, f"{EXPORT} echo x > f; git commit -qam staged; echo y > new")
    apply(live, "new")
    assert git(live.work, "log", "-1", "--format=%s").stdout == "two\n"
    apply(live, ".git")
    assert git(live.work, "log", "-1", "--format=%s").stdout == "staged\n"
    assert (live.work / "f").read_text() == "two\n"
    apply(live)
    assert git(live.work, "status", "--porcelain").stdout == "?? new\n" and stages(live) == []


# ---- kills and full disks ----


def lay_out(work):
    """Something of each kind of change, after CHANGES."""
    for name in os.listdir(work):
        path = work / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    for path in ("edited", "removed", "made", "file", "dir/f", "gone/a/b", "again/a", "again/b"):
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(f"{path}\n")
    (work / "link").symlink_to("edited")


CHANGES = "echo task >> edited; rm removed; chmod 700 made; rm file; mkdir file; " \
          "echo x > file/x; rm -r dir; echo x > dir; rm -r gone; rm -r again; " \
          "mkdir -m 755 again; echo x > again/a; " \
          "rm link; ln -s removed link; mkdir -m 750 new; echo x > new/x; ln -s x new/link"


def old_and_new(live):
    lay_out(live.work)
    before = contents(live.work)
    staged(live, CHANGES)
    apply(live)
    after = contents(live.work)
    assert stages(live) == []
    lay_out(live.work)
    return before, after


def check_each(live, before, after):
    """Every file and link is the old one or the new one, and nothing else is there for long."""
    for path, what in contents(live.work).items():
        if path.startswith(".bawn-apply-"):
            continue
        if len(what) == 2:
            assert what in (before.get(path), after.get(path)), (path, what)
    here = contents(live.work)
    for path, what in before.items():
        if len(what) == 2 and what == after.get(path):
            assert here[path] == what, path
        elif len(what) == 2 and path in after and len(after[path]) == 2:
            assert path in here, "it was there and will be: it is there"


# What writes, by number (x86-64): write, rename and its kin, unlink, mkdir, mknod, symlink, chmod
WRITING = {1, 18, 77, 82, 83, 84, 87, 88, 90, 91, 199, 257, 258, 259, 263, 264, 266, 268, 280, 316}

SAMPLE = int(os.environ.get("BAWN_FAULTS", "24"))


def calls_of(live, injector):
    """The writing calls of an apply, from where it begins to work."""
    note = live.base / "calls"
    staged(live, CHANGES)
    ran = live.verb("apply", prefix=[injector, "list", note, "--"])
    assert ran.status == 0, ran
    calls = [tuple(map(int, line.split())) for line in note.read_text().splitlines()]
    found = [call for call in calls if call[2] in WRITING]
    assert len(found) > 60, calls
    return found


def sample(found, seed):
    draw = random.Random(seed)
    return sorted(draw.sample(found, min(SAMPLE, len(found))))


def inject(live, injector, call, code, *more):
    process, nth, number = call
    note = live.base / "hit"
    note.write_text("")
    words = map(str, ("fail", process, nth, number, code, note, "--"))
    ran = live.verb("apply", *more, prefix=[injector, *words])
    return ran, note.read_text().startswith("hit")


def test_it_is_killed_at_any_call(live, injector):
    before, after = old_and_new(live)
    found, killed = calls_of(live, injector), 0
    for call in sample(found, 1):
        lay_out(live.work)
        task = staged(live, CHANGES)
        ran, was_hit = inject(live, injector, call, 0)
        check_each(live, before, after)
        killed += was_hit and ran.status == 128 + signal.SIGKILL
        if stages(live):
            resumed = live.verb("apply", "--resume", task)
            if resumed.status == 1 and "interrupted" in resumed.err:
                resumed = live.verb("apply", task)
            assert resumed.status == 0, (call, ran, resumed)
        assert contents(live.work) == after, call
        assert stages(live) == []
    assert killed > min(SAMPLE, len(found)) // 2, "hardly any kill was met"


@pytest.mark.parametrize("code", [28, 5], ids=["ENOSPC", "EIO"])
def test_any_call_fails(live, injector, code):
    """What fails is told; what is left waits in the stage, and comes with the next apply."""
    before, after = old_and_new(live)
    for call in sample(calls_of(live, injector), code)[::3]:
        lay_out(live.work)
        task = staged(live, CHANGES)
        ran, _ = inject(live, injector, call, code)
        check_each(live, before, after)
        if ran.status == 0:
            assert contents(live.work) == after, (call, ran)
        if task in stages(live):
            again = live.verb("apply", task)
            assert again.status == 0, (call, ran, again)
        assert contents(live.work) == after, (call, ran)
        assert not [name for name in os.listdir(live.work) if name.startswith(".bawn")]


def test_what_was_asked_for_is_gone_on_with(live, injector):
    lay_out(live.work)
    staged(live, CHANGES)
    (live.work / "edited").write_text("host\n")
    note = live.base / "calls"
    words = ["--overwrite", "edited", "dir", "again/a"]
    # the first exchange
    ran = live.verb("apply", *words,
                    prefix=[injector, "fail", "0", "0", "316", "0", note, "--"])
    assert ran.status == 128 + signal.SIGKILL, ran
    assert (live.work / "edited").read_text() == "host\n"
    assert apply(live, "--resume", "edited", status=2).out == ""
    assert apply(live, "--resume").status == 0
    assert (live.work / "edited").read_text() == "edited\ntask\n"
    assert (live.work / "dir").read_text() == "x\n"
    assert (live.work / "removed").exists(), "nobody asked for that"
    ran = apply(live, "--resume", status=1)
    assert "interrupted" in ran.err


def test_two_at_once(live):
    """One of them has it; the other is told."""
    fill(live.work)
    task = staged(live, CHANGE)
    held = os.open(live.state / "stages" / task, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        for verb in (["apply"], ["diff"], ["discard", "--yes"]):
            ran = live.verb(*verb)
            assert ran.status == 1 and "another process" in ran.err, ran
    finally:
        os.close(held)
    apply(live)


def test_two_in_earnest(live):
    """Started together, again and again: all of it is applied once, and nobody is left behind."""
    for number in range(6):
        staged(live, f"mkdir d{number}; for n in $(seq 200); do echo x > d{number}/$n; done; "
               f"git init -q n{number}")
        both = [live.spawn("apply") for _ in range(3)]
        ends = [(child.communicate(timeout=LIMIT_S), child.returncode) for child in both]
        for (out, err), status in ends:
            assert status == 1 and (b"held" in out or b"another process" in err or
                                    b"nothing is staged" in err), ends
        assert len(list((live.work / f"d{number}").iterdir())) == 200
        assert not [name for name in os.listdir(live.work) if name.startswith(".bawn")], ends
        live.verb("discard", "--yes")


def test_a_workspace_that_cannot_be_written(live):
    fill(live.work)
    staged(live, "echo new > d; echo x >> edited")
    (live.work).chmod(0o555)
    try:
        ran = live.verb("apply")
    finally:
        live.work.chmod(0o755)
    if IS_ROOT:
        assert ran.status == 0, ran
    else:
        assert ran.status == 125 and "Permission denied" in ran.err, ran
        apply(live)
    assert (live.work / "d").read_text() == "new\n"


def test_one_directory_that_cannot_be_written(live):
    if IS_ROOT:
        pytest.skip("root may write everywhere")
    (live.work / "d").mkdir()
    (live.work / "d/f").write_text("f\n")
    staged(live, "echo x >> d/f; echo y > g")
    (live.work / "d").chmod(0o555)
    found = names(outcomes(live, status=1))
    (live.work / "d").chmod(0o755)
    # the mode that the host changed is no matter of the task's file
    found.pop("d", None)
    assert found == {"d/f": "failed", "g": "applied"}
    assert (live.work / "d/f").read_text() == "f\n"
    apply(live)
    assert (live.work / "d/f").read_text() == "f\nx\n"


# ---- merging ----

LINES = "".join(f"line {number}\n" for number in range(30))


def test_both_changed_it(live):
    """Merged only where a person says so, git has what both began with, and no line is both's."""
    for name in ("both", "same", "binary", "mode"):
        (live.work / name).write_text(LINES)
    plain(live)
    # what is not committed is both's already
    (live.work / "both").write_text(LINES.replace("line 15\n", "line 15\nnot committed\n"))
    (live.work / "untracked").write_text(LINES)
    eventually(lambda: time.time_ns() // 10**9 > os.stat(live.work / "untracked").st_mtime + 2)
    staged(live, "for name in both same untracked mode; do sed -i 's/^line 3$/task/' $name; done; "
           "printf 'a\\0b' > binary; chmod 755 mode")
    for name, line in (("both", "line 25"), ("same", "line 3"), ("untracked", "line 25"),
                       ("binary", "line 25"), ("mode", "line 25")):
        text = (live.work / name).read_text()
        (live.work / name).write_text(text.replace(f"{line}\n", "host\n"))
    git(live.work, "commit", "-qam", "the host's")
    before = contents(live.work, [".git"])
    assert set(names(outcomes(live, status=1)).values()) == {"conflict"}
    found = outcomes(live, "--merge", "--dry-run", status=1)
    assert contents(live.work, [".git"]) == before
    assert found["both"] == ("ready", "merged with what the host changed")
    found = outcomes(live, "--merge", status=1)
    assert names(found) == {"both": "applied", "mode": "applied", "same": "conflict",
                            "untracked": "conflict", "binary": "conflict"}, found
    assert "same lines" in found["same"][1] and "no version" in found["untracked"][1], found
    after = contents(live.work, [".git"])
    assert after["both"][1].decode() == LINES.replace("line 15\n", "line 15\nnot committed\n") \
        .replace("line 3\n", "task\n").replace("line 25\n", "host\n")
    assert after["mode"][0] == 0o755
    for name in ("same", "untracked", "binary"):
        assert after[name] == before[name], "no conflict marker is ever written"
    assert names(outcomes(live, "--undo")) == {"both": "undone", "mode": "undone"}
    assert contents(live.work, [".git"]) == before
    assert apply(live, "--merge", "--overwrite", status=2).out == ""


def test_merging_executes_nothing(live):
    """Whatever stands in the repository's configuration and attributes."""
    mark = live.base / "mark"
    (live.work / "f").write_text(LINES)
    plain(live)
    (live.work / "both").write_text(LINES)
    git(live.work, "add", "both")
    git(live.work, "commit", "-qm", "both")
    eventually(lambda: time.time_ns() // 10**9 > os.stat(live.work / "both").st_mtime + 2)
    staged(live, "sed -i 's/^line 3$/task/' both")
    (live.work / "both").write_text(LINES.replace("line 25\n", "host\n"))
    run = f"touch {mark};"
    for key in ("core.fsmonitor", "core.pager", "merge.x.driver", "filter.x.smudge", "core.editor",
                "filter.x.clean", "diff.external", "diff.x.textconv", "core.sshCommand",
                "alias.cat-file", "alias.merge-file"):
        git(live.work, "config", key, f"!{run}" if key.startswith("alias") else f"{run} cat")
    git(live.work, "config", "remote.x.url", f"ext::{run}")
    git(live.work, "config", "remote.x.promisor", "true")
    git(live.work, "config", "extensions.partialClone", "x")
    git(live.work, "config", "core.repositoryFormatVersion", "1")
    git(live.work, "config", "protocol.ext.allow", "always")
    (live.work / ".git/info/attributes").write_text("* merge=x filter=x diff=x\n")
    assert names(outcomes(live, "--merge")) == {"both": "applied"}
    assert "task\n" in (live.work / "both").read_text() and not mark.exists()
    # one that git would fetch is none
    staged(live, "sed -i 's/^line 4$/task/' both")
    for pack in (live.work / ".git/objects").glob("??/*"):
        pack.unlink()
    (live.work / "both").write_text(LINES)
    assert names(outcomes(live, "--merge", status=1)) == {"both": "conflict"}
    assert not mark.exists()


def test_git_that_does_not_come_to_an_end(live):
    """What git would wait for, or print without end, costs seconds and no disk, and is told."""
    for name in ("large", "one", "two"):
        (live.work / name).write_text(LINES)
    with open(live.work / "large", "w", encoding="utf-8") as file:
        file.truncate(64 << 20)
    plain(live)
    eventually(lambda: time.time_ns() // 10**9 > os.stat(live.work / "large").st_mtime + 2)
    staged(live, "for name in large one two; do echo task > $name; done")
    for name in ("large", "one", "two"):
        (live.work / name).write_text("host\n")
    found = outcomes(live, "--merge", "large", status=1)
    assert found["large"] == ("conflict", "the host changed it, and it is too large to be merged")
    os.mkfifo(live.work / ".git/packed-refs")
    began = time.monotonic()
    found = outcomes(live, "--merge", "one", "two", status=1)
    assert time.monotonic() - began < LIMIT_S / 2, "it is asked once"
    assert all("took too long" in reason for _, reason in found.values()), found
    assert not descendants(), "git was waited for"


def test_git_without_a_log_is_no_witness(live):
    """Asked for what was there before it says what is there now: that would be overwritten."""
    (live.work / "both").write_text(LINES)
    plain(live)
    eventually(lambda: time.time_ns() // 10**9 > os.stat(live.work / "both").st_mtime + 2)
    staged(live, "sed -i 's/^line 3$/task/' both")
    (live.work / "both").write_text(LINES.replace("line 25\n", "host\n"))
    git(live.work, "commit", "-qam", "the host's")
    log = live.work / ".git/logs/HEAD"
    kept = log.read_bytes()
    for text in (None, b"", kept.splitlines(True)[-1]):
        log.unlink(missing_ok=True)
        if text is not None:
            log.write_bytes(text)
        found = outcomes(live, "--merge", status=1)
        assert found["both"] == ("conflict",
                                 "the host changed it, and git has no version to merge by"), text
        assert "host\n" in (live.work / "both").read_text()
    log.write_bytes(kept)
    assert names(outcomes(live, "--merge")) == {"both": "applied"}
    text = (live.work / "both").read_text()
    assert "host\n" in text and "task\n" in text
