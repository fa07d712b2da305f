"""Taking over: from another terminal a person sees, freezes, follows, stops and kills tasks."""
import json
import os
import signal
import stat
import subprocess
import time

import pytest

from boxed import BAWN, IS_ROOT, LIMIT_S, catching, eventually, nobody_left
from live import kill_later, live

__all__ = ["live"]

LOOP = "i=0; while :; do i=$((i + 1)); echo line $i; sleep 0.1; done"


def test_ps_of_nothing(live):
    assert live.verb("ps").out == ""
    assert json.loads(live.verb("ps", "--json").out) == {"version": 1, "tasks": []}


def test_ps_of_a_run(live):
    child = live.start("--", "sh", "-c", LOOP)
    task = live.one()
    assert task["mode"] == "run" and task["state"] == "running" and task["pid"] == child.pid
    assert task["workspace"] == str(live.work)
    assert [action["argv"][0] for action in task["actions"]] == ["sh"]
    assert any(process["command"] == "sh" for process in task["processes"])
    text = live.verb("ps").out
    assert task["task"] in text and "running" in text, text
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=LIMIT_S)


def test_ps_is_made_for_terminals(live):
    """What a task calls itself moves no cursor."""
    task = live.begin()
    child = live.spawn("task", "exec", task, "--", "sh", "-c", "sleep 60", "\033[2J\nname")
    assert eventually(lambda: live.one()["actions"])
    ran = live.verb("ps")
    assert "\033" not in ran.out and len(ran.out.splitlines()) == 3, ran
    child.kill()
    child.wait()


def test_logs(live):
    child = live.start("--", "sh", "-c", "echo first; echo second >&2; exec sleep 60")
    task = live.one()["task"]
    seen = []

    def logged():
        seen[:] = [live.verb("logs", task)]
        return seen[0].status == 0 and seen[0].out and seen[0].err

    assert eventually(logged), seen
    assert (seen[0].out, seen[0].err) == ("first\n", "second\n"), seen
    ran = live.verb("logs", "--times", task)
    assert ran.out.endswith(" first\n") and ran.out[2] == ran.out[5] == ":", ran
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=LIMIT_S)


def test_logs_follow_to_the_end(live):
    task = live.begin()
    child = live.spawn("task", "exec", task, "--", "sh", "-c",
                       "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.2; done")
    assert eventually(lambda: live.verb("logs", task).status == 0)
    ran = live.verb("logs", "-f", task)
    assert ran.out.split() == list("12345678"), ran
    child.communicate(timeout=LIMIT_S)
    assert child.returncode == 0


def test_freeze_and_thaw(live):
    child = live.start("--", "sh", "-c", LOOP)
    task = live.one()["task"]
    ran = live.verb("freeze", task)
    assert (ran.status, ran.out) == (0, f"{task} is frozen\n"), ran
    assert live.one()["state"] == "frozen" and live.one()["frozen_by"] in ("cgroup", "signals")
    before = live.verb("logs", task).out
    time.sleep(0.5)
    assert len(live.verb("logs", task).out) - len(before) <= len("line 1000\n")
    assert live.verb("thaw", task).status == 0
    assert eventually(lambda: len(live.verb("logs", task).out) > len(before) + 30)
    assert live.verb("kill", task).status == 0
    child.communicate(timeout=LIMIT_S)


# a process that waits for a disk cannot be frozen, nor told that it should be
STUCK = """
set -e
truncate -s 8M "$1/disk"; mkfs.ext4 -q "$1/disk"
mount -o loop "$1/disk" "$1/work" 2>/dev/null || exit 77
cd "$1/work"
beat() { stat -c %s beat; }
within() { for _ in $(seq 2000); do "$@" && return; sleep 0.01; done; echo "never: $*"; exit 1; }
task=$("$2" task start --state-dir "$3" --pids 50)
"$2" task exec --state-dir "$3" "$task" -- sh -c \
    'while :; do echo >>beat; sleep 0.01; done >/dev/null 2>&1 </dev/null &'
goes_on() { test "$(beat)" -gt "$size"; }
size=0; within goes_on
stuck() { cat /proc/[0-9]*/stat 2>/dev/null | grep -q ' (sh) D '; }
fsfreeze -f .; trap 'fsfreeze -u . || true' EXIT
within stuck
"$2" freeze --state-dir "$3" "$task" && exit 78
fsfreeze -u .; trap - EXIT
size=$(beat); within goes_on
"$2" freeze --state-dir "$3" "$task"
"$2" kill --state-dir "$3" "$task"
"""


@pytest.mark.skipif(not IS_ROOT, reason="mounts a small file system")
def test_a_freeze_that_failed_leaves_nothing_frozen(live):
    if not os.path.exists("/sys/fs/cgroup/freezer"):
        pytest.skip("only the freezer of control groups of version 1 waits for who cannot stop")
    ran = subprocess.run(["unshare", "-m", "--propagation", "private", "bash", "-c", STUCK, "stuck",
                          live.base, BAWN, live.state], stdin=subprocess.DEVNULL, check=False,
                         text=True, capture_output=True, timeout=3 * LIMIT_S)
    if ran.returncode == 77:
        pytest.skip("this host has no loop device")
    assert ran.returncode == 0, ran
    assert "freezing" in ran.stderr and "is frozen" in ran.stdout, ran


def test_stop_is_polite_and_kill_is_not(live):
    words = catching("TERM", "print qq(polite\\n); exit 7")
    for verb, word in ("stop", b"polite\n"), ("kill", b""):
        child = live.start("--", *words)
        assert child.stdout.readline() == b"ready\n"
        task = live.one()["task"]
        ran = live.verb(verb, task)
        assert (ran.status, ran.out) == (0, f"{task} has ended\n"), ran
        out, _ = child.communicate(timeout=LIMIT_S)
        assert out == word and child.returncode == (7 if verb == "stop" else 137)
        live.assert_nothing_left()


def test_grace_of_a_stop(live):
    child = live.start("--", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done")
    assert child.stdout.readline() == b"up\n"
    began = time.monotonic()
    assert live.verb("stop", "--grace", "500ms", live.one()["task"]).status == 0
    # the task's own is 5 s
    assert 0.4 < time.monotonic() - began < 4.9
    child.communicate(timeout=LIMIT_S)


def test_all(live):
    children = [live.start("--", "sleep", "1234") for _ in range(3)]
    live.begin()
    # the youngest have no socket yet
    children.append(live.start("--", "sleep", "1234"))
    eventually(lambda: len(os.listdir(live.state / "tasks")) == 5)
    ran = live.verb("stop", "--all")
    assert ran.status == 0 and ran.out.count("has ended") == 5, ran
    for child in children:
        child.communicate(timeout=LIMIT_S)
    live.assert_nothing_left()
    assert live.verb("stop", "--all").status == 0


@pytest.mark.parametrize("verb", ["stop", "kill"])
def test_all_where_a_supervisor_hangs(live, verb):
    hung = live.begin()
    live.sh_in(hung, "sleep 1234 >/dev/null 2>&1 &")
    other = live.begin()
    pid = next(task["pid"] for task in live.tasks() if task["task"] == hung)
    os.kill(pid, signal.SIGSTOP)
    try:
        # each takes as long as it waits for an answer
        asked = [live.spawn(*words) for words in (["ps", "--json"], ["ps"], ["stop", hung])]
        (ps, _), (text, _), (_, err) = [child.communicate(timeout=LIMIT_S) for child in asked]
        found = {task["task"]: task for task in json.loads(ps)["tasks"]}
        assert found[hung]["state"] == "unknown" and found[hung]["pid"] == pid, found
        assert "answer" in found[hung]["trouble"]
        assert found[other]["state"] == "idle"
        assert b"does not answer" in text
        assert asked[2].returncode == 1 and b"does not answer" in err, err
        ran = live.verb(verb, "--all")
        assert ran.status == 0 and ran.out.count("has ended") == 2, ran
        assert eventually(nobody_left)
    finally:
        kill_later(pid)
    live.verb("task", "end", live.begin())
    live.assert_nothing_left()


def test_attach(live):
    child = live.start("--", "sh", "-c", "echo up; " + LOOP)
    assert child.stdout.readline() == b"up\n"
    task = live.one()["task"]
    watcher = live.spawn("attach", "--no-stdin", task)
    lines = [watcher.stdout.readline() for _ in range(3)]
    if not lines[0] and b"cannot be attached" in watcher.stderr.read():
        live.verb("kill", task)
        pytest.skip("this build's supervisor lets nobody attach")
    assert all(line.startswith(b"line ") for line in lines), lines
    # who only watches is no master of it
    watcher.send_signal(signal.SIGTERM)
    watcher.communicate(timeout=LIMIT_S)
    assert live.one()["state"] == "running"
    joined = live.spawn("attach", task, stdin=subprocess.PIPE)
    assert joined.stdout.readline().startswith(b"line ")
    joined.stdin.write(b"\x10\x11")
    joined.stdin.flush()
    _, err = joined.communicate(timeout=LIMIT_S)
    assert joined.returncode == 0 and b"detached" in err, err
    assert live.one()["state"] == "running"
    live.verb("kill", task)
    child.communicate(timeout=LIMIT_S)


@pytest.mark.parametrize("verb", ["stop", "kill", "freeze", "thaw", "logs", "attach"])
def test_no_such_task(live, verb):
    ran = live.verb(verb, "t-nosuchtask")
    assert ran.status == 1 and "no task t-nosuchtask" in ran.err and "bawn ps" in ran.err, ran


@pytest.mark.parametrize("verb", ["stop", "kill", "freeze", "thaw"])
def test_wrong_use(live, verb):
    for arguments in ([], ["--all", "t-x"], ["--bogus"]):
        ran = live.verb(verb, *arguments)
        assert ran.status == 2 and ran.err.startswith("bawn: "), ran


def test_beginning_of_several_ids(live):
    for _ in range(2):
        live.begin()
    ran = live.verb("stop", "t-")
    assert ran.status == 1, ran
    assert len(live.tasks()) == 2


def test_runtime_directory_that_is_not_ours(live):
    run = live.state / "run"
    run.mkdir(mode=0o700)
    run.chmod(0o777)
    for verb in (["ps"], ["task", "start"]):
        ran = live.verb(*verb)
        assert ran.status in (1, 125) and str(run) in ran.err and "chmod 700" in ran.err, ran
    run.rmdir()
    run.symlink_to("/var/tmp")
    ran = live.verb("task", "start")
    assert ran.status == 125 and "link" in ran.err, ran
    run.unlink()
    if IS_ROOT:
        run.mkdir(mode=0o700)
        os.chown(run, 12345, 12345)
        ran = live.verb("task", "start")
        assert ran.status == 125 and "another user" in ran.err, ran
        os.chown(run, 0, 0)
    live.assert_nothing_left()


def test_socket_is_private_and_goes(live):
    task = live.begin()
    path = live.state / "run" / task
    status = path.lstat()
    assert stat.S_ISSOCK(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
    live.verb("kill", task)
    assert not path.exists()


def test_leftover_socket_is_removed(live):
    task = live.begin()
    os.kill(live.one()["pid"], signal.SIGKILL)
    # a look while it still dies removes nothing, the next one does
    assert eventually(lambda: live.tasks() == [] and not (live.state / "run" / task).exists())


def test_process_of_another_namespace_is_refused(live):
    """What a box would be, if it ever saw the socket."""
    if IS_ROOT:
        pytest.skip("the host's root in a namespace like that is refused before")
    task = live.begin()
    ran = live.verb("freeze", task, prefix=["unshare", "-Ur"])
    if ran.err.startswith("unshare"):
        pytest.skip("no user namespace here")
    assert ran.status == 1 and "namespaces" in ran.err, ran
    assert live.one()["state"] == "idle"
