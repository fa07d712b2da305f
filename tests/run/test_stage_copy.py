"""A staged or ephemeral workspace where overlays are refused: the task works in a copy of it, and
what it changed is shown, applied and dropped as if it had a layer. As user and as root.

The kernel's overlay file system is taken away by tests/tools/inject.c (`refuse overlay`), from the
starts of tasks alone; the last test has file systems that are refused by themselves.
"""
import json
import os
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time

import pytest

from boxed import BAWN, IS_ROOT, descendants, eventually, place, select_ready
from live import Live
from test_ephemeral import (assert_none_is_kept, test_git_works_inside_and_nothing_lands,
                            test_nothing_is_left)
from test_faults import injector
from test_git_box import plain
from test_stage_apply import (names, outcomes, test_all_of_it, test_conflicts,
                              test_hidden_names_stay, test_links_are_never_followed,
                              test_set_id_bits_do_not_come, test_special_files,
                              test_the_host_commits_meanwhile, test_the_host_has_the_tasks_view,
                              test_what_git_did)
from test_staged import (CHANGE, contents, fill, rows, staged, stages,
                         test_a_live_task, test_a_tracked_secret_is_not_committed_away,
                         test_git_works_inside, test_hidden_names, test_nothing_is_on_the_host,
                         test_what_git_would_run_is_writable_and_waits,
                         test_without_a_change_there_is_no_stage)

# the same tests, in a place where nothing has a layer
__all__ = ["injector", "place",
           "test_a_live_task", "test_a_tracked_secret_is_not_committed_away", "test_all_of_it",
           "test_conflicts", "test_git_works_inside", "test_git_works_inside_and_nothing_lands",
           "test_hidden_names", "test_hidden_names_stay", "test_links_are_never_followed",
           "test_nothing_is_left", "test_nothing_is_on_the_host", "test_set_id_bits_do_not_come",
           "test_special_files", "test_the_host_commits_meanwhile",
           "test_the_host_has_the_tasks_view", "test_what_git_did",
           "test_what_git_would_run_is_writable_and_waits",
           "test_without_a_change_there_is_no_stage"]


class Copied(Live):
    """Where a task that would have a layer finds no overlays."""

    refuses = ()

    def argv(self, *arguments):
        has_layer = any(str(word) in ("--stage", "--ephemeral") for word in arguments)
        return [*(self.refuses if has_layer else ()), *super().argv(*arguments)]

    def begin(self, *options):
        ran = self.verb("task", "start", *options, prefix=self.refuses)
        assert ran.status == 0 and ran.out.startswith("t-"), ran
        return ran.out.strip()


@pytest.fixture
def live(injector):
    made = Copied(tempfile.mkdtemp(prefix="bawn-copied.", dir="/var/tmp"))
    made.refuses = (str(injector), "refuse", "overlay", str(made.base / "note"), "--")
    try:
        yield made
    finally:
        made.remove()


def supervisor_of(child):
    """The bawn below the injector, which is the only one to be killed."""
    def found():
        for pid in descendants(child.pid):
            try:
                if os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(BAWN):
                    return pid
            except OSError:
                pass
        return None

    assert eventually(found)
    return min(pid for pid in descendants(child.pid)
               if os.path.exists(f"/proc/{pid}/exe") and
               os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(BAWN))


def copy_of(live):
    """The copy, while a task works in it."""
    found = [live.state / "tasks" / name / "stage/copy" for name in
             os.listdir(live.state / "tasks")]
    path, = [path for path in found if path.exists()]
    return path


def test_it_is_said_and_recorded(live):
    fill(live.work)
    ran = live.sh(CHANGE, "--stage", "--json")
    assert ran.status == 0 and "hit" in (live.base / "note").read_text(), ran
    said, = [line for line in ran.err.splitlines() if "was a copy" in line]
    assert "3 objects" in said and "mounting an overlay" in said, ran
    copied = ran.result["copied"]
    assert copied["objects"] == 3 and copied["left_out"] == [], copied
    assert "No such device" in copied["reason"]
    record = (live.state / "trace/tasks" / f"{ran.result['stage']}.jsonl").read_text()
    kept = [json.loads(line)["body"] for line in record.splitlines()]
    assert [body["copied"] for body in kept if "copied" in body] == [copied]
    for options in ((), ("--read-only",)):
        assert "copied" not in live.sh("true", "--json", *options).result


def test_a_dead_supervisor(live):
    fill(live.work)
    before = contents(live.work)
    child = live.start("--stage", "--", "sh", "-c", f"{CHANGE}; echo done; exec sleep 1000")
    assert select_ready(child) == b"done\n"
    os.kill(supervisor_of(child), signal.SIGKILL)
    child.communicate()
    assert len(rows(live)) == 8
    assert contents(live.work) == before
    assert not (live.state / "stages" / stages(live)[0] / "stage/copy").exists()
    found = outcomes(live)
    assert set(names(found).values()) == {"applied"}, found
    live.assert_nothing_left()


def test_it_is_killed_while_it_copies(live):
    for at in range(3000):
        (live.work / f"f{at}").write_text("x")
    before = contents(live.work)
    for delay in range(12):
        child = live.start("--stage", "--", "sh", "-c", "echo y > f1; echo done")
        time.sleep(delay * 0.03)
        for pid in descendants(child.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        child.communicate()
        assert eventually(lambda: live.verb("ps").out.count("t-") == 0)
        for task in stages(live):
            assert [row["path"] for row in rows(live, task)] == ["f1"]
            assert live.verb("discard", "--yes", task).status == 0
    assert contents(live.work) == before
    live.assert_nothing_left()


def test_actions_of_a_live_task_are_told_apart(live):
    fill(live.work)
    task = live.begin("--stage")

    def changed(script):
        ran = live.sh_in(task, script, "--json")
        assert ran.status == 0 and ran.result["copied"]["objects"] == 3, ran
        return {os.path.relpath(one["path"], live.work): one["kind"]
                for one in ran.result["changes"]}

    assert changed("echo a > a; mkdir d; echo x > d/x; rm removed") == {
        "a": "created", "d": "created", "d/x": "created", "removed": "removed"}
    assert changed("echo more >> edited; echo y > d/y") == {"edited": "modified", "d": "created",
                                                            "d/y": "created"}
    assert changed("cat edited") == {}
    # what an earlier one made, and what it removed, are no changes any more
    assert changed("rm a; rm -r d; echo removed > removed; mv edited e; mv e edited") == {
        "edited": "modified"}
    assert changed("mkdir e; chmod 700 e") == {"e": "created"}
    assert live.verb("task", "end", task).status == 0
    assert {row["path"]: row["kind"] for row in rows(live, task)} == {
        "edited": "modified", "e": "created"}
    live.assert_nothing_left()


def test_what_is_hidden_is_not_copied(live):
    secret = "TOKEN=a-secret-of-the-host"
    (live.work / "sub/private").mkdir(parents=True)
    (live.work / "sub/.env").write_text("tracked\n")
    plain(live)
    for name in (".env", "sub/.env", "sub/.env.local", "sub/private/key", "sub/id_rsa"):
        (live.work / name).write_text(secret)
    child = live.start("--stage", "--hide", "sub/private", "--hide", "**/*_rsa", "--", "sh", "-c",
                       "ls -aR; echo; exec sleep 1000")
    assert select_ready(child)
    copy = copy_of(live)
    for base, _, files in os.walk(live.state):
        for name in files:
            path = os.path.join(base, name)
            # in place of the tracked one stands an empty file that nobody may read
            if stat.S_ISREG(os.lstat(path).st_mode) and os.path.getsize(path):
                with open(path, "rb") as file:
                    assert secret.encode() not in file.read(), path
    assert (copy / "sub").is_dir() and not (copy / "sub/private").exists()
    os.kill(supervisor_of(child), signal.SIGTERM)
    child.communicate()
    live.assert_nothing_left()


def test_what_is_protected_stays(live):
    plain(live)
    (live.work / "kept").mkdir()
    (live.work / "kept/f").write_text("f")
    ran = live.sh("(echo x > kept/f) 2>/dev/null; (mv kept k) 2>/dev/null; "
                  "(rm -rf .git) 2>/dev/null; (mv .git g) 2>/dev/null; cat kept/f; ls -d .git",
                  "--stage", "--protect", "kept")
    assert ran.out == "f.git\n", ran


def nested(root, depth):
    """A directory in a directory, so often; paths end somewhere."""
    here = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("deep", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


SEE = r"""
import os, stat
for name in sorted(os.listdir(b".")):
    s = os.lstat(name)
    print(name, stat.filemode(s.st_mode), s.st_nlink if stat.S_ISREG(s.st_mode) else "", s.st_size
          if stat.S_ISREG(s.st_mode) else "", int(s.st_mtime))
here, depth = os.open("deep", os.O_RDONLY), 0
while True:
    try:
        below = os.open("d", os.O_RDONLY, dir_fd=here)
    except FileNotFoundError:
        break
    os.close(here)
    here, depth = below, depth + 1
print("depth", depth, os.listdir(here))
os.close(os.open("mine", os.O_CREAT | os.O_WRONLY, dir_fd=here))
with open("sparse", "rb") as file:
    file.seek(1 << 39)
    print("data", file.read(5))
"""


def test_a_hostile_tree(live):
    """Whatever lies in it, the copy ends soon, is small, and nothing outside is in it."""
    work = live.work
    outside = live.base / "outside"
    outside.mkdir()
    (outside / "secret").write_text("of the host\n")
    os.symlink(outside, work / "way-out")
    os.symlink(outside / "secret", work / "file-out")
    os.mkfifo(work / "fifo")
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(work / "socket"))
    (work / "program").write_text("#!/bin/sh\n")
    os.chmod(work / "program", 0o6755)
    (work / "one").write_text("linked\n")
    os.link(work / "one", work / "two")
    for name in (b"new\nline", b"\xff\xfe", b"\x1b[31m", b"-rf"):
        with open(os.path.join(os.fsencode(work), name), "wb") as file:
            file.write(name)
    with open(work / "sparse", "wb") as file:
        file.truncate(1 << 40)
        file.seek(1 << 39)
        file.write(b"data\n")
    (work / "closed").mkdir()
    (work / "closed/f").write_text("f")
    os.chmod(work / "closed", 0)
    (work / "unreadable").write_text("f")
    os.chmod(work / "unreadable", 0)
    (work / "deep").mkdir()
    nested(work / "deep", 5000)
    os.utime(work / "one", (1000, 1000))
    try:
        look_at_hostile(live, ["socket"] if IS_ROOT else ["socket", "unreadable"])
    finally:
        door.close()
        os.chmod(work / "closed", 0o700)
        subprocess.run(["rm", "-rf", str(work / "deep")], check=True)
    live.assert_nothing_left()


def look_at_hostile(live, left):
    begun = time.monotonic()
    ran = live.run("--stage", "--json", "--", "python3", "-c", SEE)
    took = time.monotonic() - begun
    out = ran.out
    assert ran.status == 0 and took < 45, ran
    assert sorted(ran.result["copied"]["left_out"]) == left, ran
    assert "b'fifo' p" in out and "b'way-out' l" in out and "b'socket'" not in out, ran
    assert "b'program' -rwxr-xr-x 1" in out and "b'one' -rw-r--r-- 2 7 1000" in out, ran
    assert f"b'sparse' -rw-r--r-- 1 {1 << 40}" in out and "data b'data\\n'" in out, ran
    assert "depth 5000 ['deep']" in out and "b'new\\nline'" in out and "b'\\xff\\xfe'" in out, ran
    assert ran.result["copied"]["bytes"] < 1 << 20, "holes are not read"
    assert [row["kind"] for row in rows(live)] == ["created"], "one file, far down"
    assert live.verb("discard", "--yes").status == 0


def test_what_was_not_copied_is_not_removed(live):
    """What a task has where something was left out is not brought over it."""
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(live.work / "socket"))
    staged(live, "echo mine > socket; echo x > f")
    assert {row["path"]: row["kind"] for row in rows(live)} == {"socket": "unread",
                                                                "f": "created"}
    found = names(outcomes(live, status=1))
    assert found == {"socket": "refused", "f": "applied"}, found
    assert stat.S_ISSOCK(os.lstat(live.work / "socket").st_mode)
    door.close()


def test_a_tree_that_is_too_large(live):
    (live.work / "f0").write_text("x")
    for folder in range(101):
        (live.work / f"d{folder}").mkdir()
        for at in range(1000):
            os.link(live.work / f"f{folder // 60}", live.work / f"d{folder}/f{at}")
        if folder == 59:
            (live.work / "f1").write_text("y")
    for option in ("--stage", "--ephemeral"):
        before = time.monotonic()
        ran = live.sh("echo ran", option)
        assert ran.status == 125 and ran.out == "", ran
        assert time.monotonic() - before < 5, "before it copies any of them"
        for words in ("cannot have a layer", "more than 100,000 files", "--state-dir",
                      "without --stage or --ephemeral"):
            assert words in ran.err, ran
        assert "was a copy" not in ran.err, ran
    assert live.sh("echo ran").out == "ran\n", "in place it goes on"
    live.assert_nothing_left()


LINKED = r"""
set -e
mount -t tmpfs -o mode=700 none "$1"; cd "$1"; shift; echo x > f
python3 -c 'import os; [os.link("f", f"l{at}") for at in range(65100)]'
exec "$@"
"""


@pytest.mark.skipif(not os.environ.get("BAWN_SOAK"), reason="65,100 links: for make soak")
def test_more_links_than_the_copy_can_have(live):
    """ext4 takes 65,000 of a file, tmpfs as many as you like."""
    prefix = ["unshare", "-m" if IS_ROOT else "-Urm", "--propagation", "private", "sh", "-c",
              LINKED, "sh", live.work, *live.refuses]
    ran = subprocess.run([*prefix, BAWN, "run", *live.options, "--ephemeral", "--", "sh", "-c",
                          "cat f l0 l65099 | sort | uniq -c; ls | wc -l"],
                         check=False, timeout=120, capture_output=True, text=True)
    assert ran.returncode == 0, ran
    same, count = ran.stdout.split("\n")[:-1]
    assert same.split() == ["3", "x"] and count == "65101", ran
    live.assert_nothing_left()


def test_a_file_that_is_too_large(live):
    with open(live.work / "large", "wb") as file:
        for _ in range(1025):
            file.write(bytes(range(256)) * 4096)
    ran = live.sh("echo ran", "--stage", limit=120)
    shared = ran.status == 0 and "1 files that share" in ran.err
    assert shared or (ran.status == 125 and "more than 1 GiB" in ran.err), ran
    live.assert_nothing_left()


def exchange(work, outside, until):
    """A directory and a link to outside take turns under one name."""
    while time.monotonic() < until:
        os.rename(work / "turn", work / "away")
        os.symlink(outside, work / "turn")
        os.unlink(work / "turn")
        os.rename(work / "away", work / "turn")
        os.rename(work / "file", work / "file2")
        os.symlink(outside / "secret", work / "file")
        os.unlink(work / "file")
        os.rename(work / "file2", work / "file")


def test_links_that_come_and_go_while_it_is_copied(live):
    """Nothing of outside is ever in a copy; a start may be refused."""
    outside = live.base / "outside"
    outside.mkdir()
    (outside / "secret").write_text("of the host\n")
    (live.work / "turn").mkdir()
    for at in range(300):
        (live.work / "turn" / f"f{at}").write_text("mine\n")
    (live.work / "file").write_text("mine\n")
    changer = threading.Thread(target=exchange, args=(live.work, outside,
                                                      time.monotonic() + 8))
    changer.start()
    runs = 0
    while changer.is_alive():
        ran = live.sh("find . -type f -exec cat {} + ; find -L turn 2>/dev/null", "--ephemeral")
        assert "of the host" not in ran.out and "secret" not in ran.out, ran
        runs += ran.status == 0
    changer.join()
    assert runs > 3
    assert_none_is_kept(live)


def test_artifacts_are_the_tasks(live):
    (live.work / "kept.txt").write_text("host\n")
    out = live.base / "out"
    ran = live.sh("echo made > made.txt; rm kept.txt", "--ephemeral", "--artifact", "*.txt",
                  "--artifact-dir", out, "--json")
    assert ran.status == 0, ran
    assert os.listdir(out) == ["made.txt"] and (out / "made.txt").read_text() == "made\n"


NESTED = r"""
set -e
cd "$1"; mkdir low up1 wk1 mid up2 wk2 ws
for f in edited removed made; do echo $f > low/$f; done
mount -t overlay overlay -o userxattr,lowerdir=low,upperdir=up1,workdir=wk1 mid
mount -t overlay overlay -o userxattr,lowerdir=mid,upperdir=up2,workdir=wk2 ws
cd ws; shift
"$@" run --state-dir "$STATE" --stage --json -- sh -c "$SCRIPT"
"$@" diff --state-dir "$STATE" --json
"$@" apply --state-dir "$STATE" >/dev/null
ls
"""


def test_a_file_system_that_is_refused(live):
    """Overlays may be stacked twice; a third one over them is refused by any kernel."""
    base = live.base / "nested"
    base.mkdir()
    ran = subprocess.run(["unshare", "-m" if IS_ROOT else "-Urm", "--propagation", "private",
                          "sh", "-c", NESTED, "sh", base, BAWN], check=False, timeout=60,
                         capture_output=True, text=True,
                         env={**os.environ, "STATE": str(live.state), "SCRIPT": CHANGE})
    if "Operation not permitted" in ran.stderr and not ran.stdout:
        pytest.skip("no overlays may be mounted here")
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, ran
    reason = json.loads(lines[0])["copied"]["reason"]
    assert ("cannot map ids" if IS_ROOT else "mounting an overlay") in reason
    found = [json.loads(line) for line in lines[1:9]]
    assert {row["path"]: row["kind"] for row in found} == {
        "created": "created", "edited": "modified", "removed": "removed", "link": "created",
        "made": "mode", "deep": "created", "deep/er": "created", "deep/er/f": "created"}
    assert lines[9:] == ["created", "deep", "edited", "link", "made"], ran
