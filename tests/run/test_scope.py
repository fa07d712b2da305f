"""Asking systemd for a control group: well, badly, and by the real manager where there is one."""
import array
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

import manager
from boxed import BAWN, IS_ROOT, eventually, place
from manager import UID, Tree, answer, error, greet, message, removed

__all__ = ["place"]

LAB = os.path.join(os.path.dirname(BAWN), "bawn-scope-lab")
PLACE = f"/run/user/{UID}/systemd/private" if UID else "/run/systemd/private"
TASK = "t-abc"
LIMIT_S = 20


@pytest.fixture
def tree():
    made = Tree(TASK)
    try:
        yield made
    finally:
        made.remove()


def start(tree, *needs):
    return subprocess.Popen([LAB, str(tree.root), str(tree.root / "self"), TASK,
                             *(needs or ["memory"])], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)


def ask(tree, *needs):
    child = start(tree, *needs)
    out, err = child.communicate(timeout=LIMIT_S)
    return child.returncode, out, err


def well(tree, connection, pid, **options):
    greet(tree, connection)
    connection.sendall(answer())
    tree.move(pid, **options)
    connection.sendall(removed(tree.unit))


def test_a_scope_is_asked_for_and_used(tree):
    tree.listen(well)
    status, out, err = ask(tree, "memory", "pids")
    assert (status, err) == (0, "")
    assert out == ("offered: memory pids cpu io\n"
                   "joined: memory pids cpu io account freeze kill\n"
                   f"made: bawn-{TASK}\n")
    assert tree.call == (1, {1: manager.PATH, 2: manager.MANAGER, 3: "StartTransientUnit",
                             6: "org.freedesktop.systemd1"},
                         f"bawn-{TASK}.scope", "fail",
                         {"PIDs": [0], "Delegate": 1, "Description": f"bawn task {TASK}",
                          "CollectMode": "inactive-or-failed"})
    scope = tree.root / f"cg{tree.group}/app.slice/{tree.unit}"
    assert (scope / "bawn-supervisors/cgroup.procs").read_text() == "0"
    assert (scope / f"bawn-{TASK}").is_dir()
    # "+memory", and over it "+pids": a plain file keeps the rest
    assert (scope / "cgroup.subtree_control").read_text() == "+pidsry"


def slowly(tree, connection, pid):
    greet(tree, connection)
    tree.move(pid)
    for byte in answer() + removed(tree.unit):
        connection.sendall(bytes([byte]))


def early(tree, connection, pid):
    """The job has ended before the call is answered."""
    greet(tree, connection)
    tree.move(pid)
    connection.sendall(removed(tree.unit) + answer())


def chatty(tree, connection, pid):
    """What a manager says besides: signals of others, a call, a field that nobody knows."""
    greet(tree, connection)
    tree.move(pid)
    connection.sendall(
        manager.signal("JobNew", "uos", manager.body(7, manager.JOB, tree.unit)) +
        removed("other.scope", "failed") + removed(tree.unit[:-1] + "x", "failed") +
        message(4, 4, [(1, "o", "/a"), (2, "s", "x.y"), (3, "s", "JobRemoved")]) +
        message(1, 5, [(1, "o", "/a"), (3, "s", "Ping"), (200, "s", "later")]) +
        manager.signal("UnitNew", "so", b"x" * 60000) + answer() + removed(tree.unit))


def with_descriptors(tree, connection, pid):
    greet(tree, connection)
    tree.move(pid)
    sent = array.array("i", [0, 1])
    connection.sendmsg([answer() + removed(tree.unit)],
                       [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])


@pytest.mark.parametrize("script", [slowly, early, chatty, with_descriptors],
                         ids=lambda script: script.__name__)
def test_what_is_an_answer_all_the_same(tree, script):
    tree.listen(script)
    status, out, err = ask(tree)
    assert (status, err) == (0, "") and "made:" in out


def says(*parts):
    """After the call: these bytes, and then nothing more."""
    def script(tree, connection, _):
        greet(tree, connection)
        for part in parts:
            connection.sendall(part(tree) if callable(part) else part)
        connection.recv(1)
    return script


def closes(*parts):
    def script(tree, connection, _):
        greet(tree, connection)
        connection.sendall(b"".join(parts))
        connection.shutdown(socket.SHUT_RDWR)
    return script


def greets(data, close=False):
    def script(_, connection, __):
        manager.line(connection)
        connection.sendall(data)
        if close:
            connection.shutdown(socket.SHUT_RDWR)
        connection.recv(4096)
        connection.recv(4096)
    return script


def flood(tree, connection, _):
    greet(tree, connection)
    other = removed("other.scope") * 100
    while True:
        connection.sendall(other)


GARBLED = "gave no answer that can be read"
LATE = "did not answer in time"
BAD = {
    "rejected": (greets(b"REJECTED EXTERNAL\r\n"), "refused it (REJECTED EXTERNAL)"),
    "a line without an end": (greets(b"O" * 5000), GARBLED),
    "more than a line": (greets(b"OK 00\r\nOK 00\r\n"), GARBLED),
    "a line that only seems one": (greets(b"O\rK 00\r\n"), GARBLED),
    "hangs up at once": (greets(b"", close=True), "hung up"),
    "hangs up behind half a line": (greets(b"OK 00", close=True), "hung up"),
    "hangs up instead of an answer": (closes(), "hung up"),
    "hangs up within a header": (closes(answer()[:9]), "hung up"),
    "hangs up within a body": (closes(answer()[:-3]), "hung up"),
    "hangs up before the job's end": (closes(answer()), "hung up"),
    "an error": (says(error("org.freedesktop.DBus.Error.AccessDenied", "Permission denied")),
                 "refused it (org.freedesktop.DBus.Error.AccessDenied: Permission denied)"),
    "an error with a terminal's codes": (says(error("a.b", "\x1b[2Jä\n" + "x" * 1000)),
                                         "refused it (a.b: ?[2J???xxx"),
    "an error without a text": (says(message(3, 2, [(5, "u", 1), (4, "s", "a.b")])),
                                "refused it (a.b)"),
    "a job that fails": (says(answer(), lambda tree: removed(tree.unit, "failed")),
                         "could not make it (failed)"),
    "a job that fails first": (says(lambda tree: removed(tree.unit, "timeout")),
                               "could not make it (timeout)"),
    "garbage": (says(bytes(range(200, 256)) * 50), GARBLED),
    "zeros": (says(b"\0" * 4096), GARBLED),
    "text": (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), GARBLED),
    "the other byte order": (says(b"B" + answer()[1:]), GARBLED),
    "a header that is too long": (says(b"l\2\1\1" + b"\0\0\0\0\2\0\0\0\xff\xff\xff\x7f"), GARBLED),
    "a body that is too long": (says(b"l\2\1\1" + b"\xff\xff\xff\xff\2\0\0\0\0\0\0\0"), GARBLED),
    "an answer to nothing": (says(answer(serial=2)), GARBLED + " (an answer to nothing)"),
    "an error of nothing": (says(error("a.b", "c", serial=9)), GARBLED),
    "two answers": (says(answer(), answer()), GARBLED),
    "a serial of 0": (says(answer(number=0)), GARBLED),
    "a signal of another form": (says(manager.signal("JobRemoved", "us", manager.body(7, "x"))),
                                 GARBLED + " (JobRemoved)"),
    "a signal that is cut": (says(manager.signal("JobRemoved", "uoss", manager.body(7, "/x"))),
                             GARBLED),
    "a text longer than its message": (
        says(manager.signal("JobRemoved", "uoss", b"\7\0\0\0\xff\xff\xff\x7f" + b"x" * 20)),
        GARBLED),
}


def assert_refused(child, words):
    out, err = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 1 and out == "offered: memory pids cpu io\n", err
    assert err.startswith(f"scope-lab: systemd ({PLACE}) was asked for a control group and "
                          f"{words}"), err
    assert "leave the option out" in err and "systemctl" in err and err.isprintable() is False
    assert err.rstrip("\n").isprintable() and err.count("\n") == 1


@pytest.mark.parametrize("name", BAD)
def test_a_bad_manager_is_a_refusal(tree, name):
    script, words = BAD[name]
    tree.listen(script)
    assert_refused(start(tree), words)


def late(tree, connection, _):
    greet(tree, connection)
    tree.call = manager.take_stop(manager.take_message(connection))


def test_a_manager_that_does_not_answer_in_time_is_a_refusal():
    """And a scope that comes afterwards is stopped. All at once: each takes the whole time."""
    scripts = [greets(b""), says(answer()), late, flood]
    trees = [Tree(TASK) for _ in scripts]
    try:
        for made, script in zip(trees, scripts):
            made.listen(script)
        *children, flooded = [start(made) for made in trees]
        for child in children:
            assert_refused(child, LATE)
        assert eventually(lambda: trees[2].call[2:] == (trees[2].unit, "replace"))
        # its role may be ended by its own limits before
        _, err = flooded.communicate(timeout=LIMIT_S)
        assert flooded.returncode == 1 and "control group" in err, err
    finally:
        for made in trees:
            made.remove()


def not_moved(tree, connection, _):
    greet(tree, connection)
    connection.sendall(answer() + removed(tree.unit))


def moved(**options):
    return lambda tree, connection, pid: well(tree, connection, pid, **options)


def moved_elsewhere(tree, connection, pid):
    greet(tree, connection)
    tree.move(pid)
    tree.write("self/cgroup", f"0::{tree.group}/app.slice/{tree.unit}/below\n")
    connection.sendall(answer() + removed(tree.unit))


LIES = {
    "not moved": (not_moved, "says that bawn is in", "the kernel that it is not"),
    "moved elsewhere": (moved_elsewhere, "the kernel that it is not"),
    "no controller": (moved(controllers="\n"), "no controller is delegated to this control group"),
    "another controller": (moved(controllers="pids\n"), "lacks the controller"),
    "with others": (moved(others="1\n"), "other processes are in this control group"),
    "open to all": (moved(mode=0o777), "its control group is not the caller's own"),
}


@pytest.mark.parametrize("name", LIES)
def test_only_the_kernel_is_believed(tree, name):
    script, *words = LIES[name]
    tree.listen(script)
    status, out, err = ask(tree)
    assert status == 1 and "joined" not in out
    for word in [PLACE, "leave the option out", *words]:
        assert word in err, err


# --- where the manager is not

def no_socket(tree):
    os.unlink(tree.place / "private")


def a_file(tree):
    os.unlink(tree.place / "private")
    (tree.place / "private").write_text("")


def a_link(tree):
    os.rename(tree.place / "private", tree.place / "other")
    (tree.place / "private").symlink_to("other")


def a_linked_directory(tree):
    os.rename(tree.place, tree.place.parent / "other")
    tree.place.symlink_to("other")


def open_to_all(tree):
    tree.place.chmod(0o777)


def open_above(tree):
    tree.place.parent.chmod(0o775)


@pytest.mark.parametrize("change, word", [
    (no_socket, "No such file"), (a_file, "not a socket|non-socket"),
    (a_link, "not a socket|non-socket"),
    (a_linked_directory, "Not a directory|symbolic links"), (open_to_all, "not permitted"),
    (open_above, "not permitted")], ids=lambda one: getattr(one, "__name__", None))
def test_a_place_that_is_not_the_callers_is_not_asked(tree, change, word):
    tree.listen(well)
    change(tree)
    status, out, err = ask(tree)
    assert status == 1 and out == "offered:\n"
    assert f"systemd ({PLACE}) cannot be asked" in err and re.search(word, err, re.I), err
    assert tree.call is None
    tree.place.parent.chmod(0o755)


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a socket away")
def test_a_socket_of_another_is_not_asked(tree):
    tree.listen(well)
    os.chown(tree.place / "private", 12345, 12345)
    status, out, err = ask(tree)
    assert status == 1 and out == "offered:\n" and "not permitted" in err
    assert tree.call is None


@pytest.mark.skipif(not IS_ROOT, reason="only root can become another")
def test_a_listener_of_another_is_not_asked(tree):
    """The socket is the caller's; who listens is not."""
    tree.listener.bind(str(tree.place / "private"))
    ready = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(12345)
        tree.listener.listen(1)
        os.write(ready[1], b"x")
        signal.pause()
    try:
        os.read(ready[0], 1)
        status, _, err = ask(tree)
        assert status == 1 and "cannot be asked" in err and "not permitted" in err
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready[0])
        os.close(ready[1])


def test_nobody_listens(tree):
    tree.listener.bind(str(tree.place / "private"))
    status, out, err = ask(tree)
    assert status == 1 and out == "offered: memory pids cpu io\n"
    assert "refused" in err and PLACE in err


def test_a_full_queue_is_not_waited_for(tree):
    tree.listener.bind(str(tree.place / "private"))
    tree.listener.listen(0)
    waiting = []
    for _ in range(3):
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        try:
            client.connect(str(tree.place / "private"))
        except BlockingIOError:
            pass
        waiting.append(client)
    began = time.monotonic()
    status, _, err = ask(tree)
    assert status == 1 and "cannot be asked" in err and "unavailable" in err, err
    assert time.monotonic() - began < LIMIT_S
    for client in waiting:
        client.close()


def test_a_manager_without_controllers_offers_none(tree):
    tree.controllers("\n")
    tree.listen(well)
    assert ask(tree)[1].startswith("offered:\n")


# --- the role

def hangs(tree, connection, _):
    greet(tree, connection)
    connection.recv(1)


def role_of(child):
    for name in os.listdir("/proc"):
        try:
            if not name.isdigit():
                continue
            if f"\nPPid:\t{child.pid}\n" in Path(f"/proc/{name}/status").read_text():
                return int(name)
        except OSError:
            pass
    return None


def await_role(tree, child):
    assert eventually(lambda: tree.call is not None), "no call"
    role = role_of(child)
    assert role
    return role


def test_what_the_role_holds(tree):
    tree.listen(hangs)
    child = start(tree)
    role = await_role(tree, child)
    status = Path(f"/proc/{role}/status").read_text()
    for row in ("Name:\tbawn-scope", "Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000",
                "CapPrm:\t0000000000000000"):
        assert row in status
    if IS_ROOT:
        table = f"/proc/{role}/fd"
        fds = {int(fd): os.readlink(f"{table}/{fd}") for fd in os.listdir(table)}
        assert {fds.pop(fd) for fd in (0, 1, 2)} == {"/dev/null"}
        assert fds.pop(3).startswith("/memfd:bawn-config")
        assert sorted(fds) == [4, 5] and all(fd.startswith("socket:") for fd in fds.values())
        assert Path(f"/proc/{role}/environ").read_bytes() == b""
    else:
        with pytest.raises(PermissionError):
            os.listdir(f"/proc/{role}/fd")
    child.kill()
    child.communicate()


def is_gone(pid):
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def stops(tree, connection, pid):
    """Makes the scope only when the one who asked has been killed, and is told to stop it."""
    greet(tree, connection)
    assert eventually(lambda: is_gone(pid))
    connection.sendall(answer() + removed(tree.unit))
    tree.call = manager.take_stop(manager.take_message(connection))
    connection.sendall(answer(serial=2))


def test_the_scope_of_one_who_was_killed_is_stopped(tree):
    tree.listen(stops)
    child = start(tree)
    role = await_role(tree, child)
    # a signal to the whole group does not reach it
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    assert eventually(lambda: is_gone(role))
    assert tree.call == (2, {1: manager.PATH, 2: manager.MANAGER, 3: "StopUnit",
                             6: "org.freedesktop.systemd1"}, tree.unit, "replace")


def test_the_role_ends_though_the_manager_hangs(tree):
    tree.listen(hangs)
    child = start(tree)
    role = await_role(tree, child)
    child.kill()
    child.communicate()
    assert eventually(lambda: is_gone(role))


def test_a_role_that_dies_is_a_refusal(tree):
    tree.listen(hangs)
    child = start(tree)
    os.kill(await_role(tree, child), signal.SIGKILL)
    _, err = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 1
    assert f"asking systemd ({PLACE}) for a control group: bawn-scope gave no good answer" in err


# --- the real one

MOUNTS = Path("/proc/self/mountinfo").read_text().splitlines()
UNIFIED = next((Path(row.split()[4]) for row in MOUNTS
                if " - cgroup2 " in row and row.split()[3] == "/"), None)
SYSTEMD = "/lib/systemd/systemd"

# A manager of root's, which is the system's one to whoever looks at /run/systemd/private. A host
# without controllers of v2 is given the look of one that has them.
WORLD = r"""
mount -t tmpfs -o mode=755 none /run && mkdir -p /run/systemd/system /run/state || exit 99
printf 'cpu io memory pids\n' >/run/state/controllers
mount --bind /run/state/controllers $U/cgroup.controllers || exit 99
mkdir $BASE $BASE/manager $BASE/session
end() {
    echo 0 >$U/cgroup.procs
    { [ -z "${systemd-}" ] || kill -9 $systemd; wait; } 2>/dev/null
    for _ in $(seq 100); do
        find $BASE -depth -type d -exec rmdir {} + 2>/dev/null
        [ -d $BASE ] || break
        sleep 0.05
    done
}
trap end EXIT
"""
MANAGER = WORLD + r"""
(echo 0 >$BASE/manager/cgroup.procs; exec env -i PATH=$PATH HOME=/root XDG_RUNTIME_DIR=/run \
    SYSTEMD_LOG_TARGET=null $SYSTEMD --user --unit=basic.target) >/dev/null 2>&1 </dev/null &
systemd=$!
for _ in $(seq 200); do [ -S /run/systemd/private ] && break; sleep 0.05; done
[ -S /run/systemd/private ] || exit 98
sleep 0.3
"""


def world(script, place=None, limit=60):
    base = UNIFIED / f"scope-test-{os.getpid()}"
    environment = {**os.environ, "U": str(UNIFIED), "BASE": str(base), "LAB": LAB, "BAWN": BAWN,
                   "SYSTEMD": SYSTEMD, "STATE": str(place.state if place else ""),
                   "LC_ALL": "C.UTF-8"}
    ran = subprocess.run(["unshare", "-m", "--propagation", "private", "bash", "-c", script],
                         capture_output=True, text=True, timeout=limit, check=False,
                         env=environment, stdin=subprocess.DEVNULL,
                         cwd=place.work if place else "/")
    assert not base.exists(), f"{base} is left\n{ran.stderr}"
    return ran


has_world = pytest.mark.skipif(
    not IS_ROOT or not UNIFIED or not os.access(UNIFIED, os.W_OK),
    reason="needs root and cgroup v2")
has_systemd = pytest.mark.skipif(not os.path.exists(SYSTEMD), reason="systemd is not installed")


@has_world
@has_systemd
def test_the_real_manager_gives_a_scope_and_takes_it_back():
    ran = world(MANAGER + r"""
        coproc lab { echo 0 >$BASE/session/cgroup.procs; exec $LAB / /proc/self t-real freeze; }
        read -r offered <&${lab[0]}; read -r joined <&${lab[0]}; read -r made <&${lab[0]}
        echo "$offered; $joined; $made"
        grep ^0:: /proc/$lab_PID/cgroup
        find $BASE -name '*bawn-t-real*' | wc -l
        pid=$lab_PID
        exec {lab[1]}>&-
        wait $pid; echo status $?
        for _ in $(seq 100); do find $BASE -name '*bawn*' | grep -q . || break; sleep 0.05; done
        find $BASE -name '*bawn*'
    """)
    assert ran.returncode == 0, ran
    lines = ran.stdout.splitlines()
    assert lines[0] == ("offered: memory pids cpu io; joined: account freeze kill; "
                        "made: bawn-t-real"), ran
    assert lines[1].endswith("/app.slice/bawn-t-real.scope"), ran
    assert lines[2:] == ["2", "status 0"], ran


@has_world
@has_systemd
def test_the_real_manager_when_the_asker_is_killed():
    """At any moment: nothing is left but what the manager had before."""
    ran = world(MANAGER + r"""
        for i in $(seq 1 40); do
            sh -c "echo 0 >$BASE/session/cgroup.procs; exec $LAB / /proc/self t-$i freeze" \
                </dev/zero >/dev/null 2>&1 & pid=$!
            sleep 0.0$(printf %02d $((i * 37 % 60)))
            kill -9 $pid
            wait $pid
        done 2>/dev/null
        for _ in $(seq 100); do find $BASE -name '*bawn*' | grep -q . || break; sleep 0.05; done
        find $BASE -name '*bawn*'
        echo "groups: $(find $BASE -name '*bawn*' | wc -l)"
        for status in $(grep -sl '^Name:.bawn-scope' /proc/[0-9]*/status); do
            grep -q '^State:.Z' $status || cat $status
        done
        env XDG_RUNTIME_DIR=/run systemctl --user list-units --all --plain --no-legend 'bawn*'
        kill -0 $systemd && echo alive
    """)
    assert ran.returncode == 0, ran
    assert ran.stdout == "groups: 0\nalive\n", ran


@has_world
@has_systemd
def test_bawn_asks_the_real_manager_and_says_so(place):
    """This kernel has no v2 controllers to give: what was asked for is refused after all."""
    ran = world(MANAGER + r"""
        echo 0 >$BASE/session/cgroup.procs
        $BAWN doctor | grep "io rate"
        $BAWN explain --state-dir $STATE --io 1M/s | grep "io rate"
        $BAWN run --state-dir $STATE --io 1M/s -- touch started
        echo status $?; ls
        for _ in $(seq 100); do find $BASE -name '*bawn*' | grep -q . || break; sleep 0.05; done
        find $BASE -name '*bawn*'
    """, place)
    held = "exact (cgroup v2 io.max, in a scope asked of systemd)"
    assert ran.stdout.count(held) == 2, ran
    assert ran.stdout.endswith("status 125\n"), ran
    assert ran.stderr.count("\n") == 1, ran
    assert "bawn: limit io rate (--io) cannot be held here: systemd (/run/systemd/private) gave " \
        in ran.stderr and "no controller is delegated" in ran.stderr, ran


COUNTER = r"""
python3 -c '
import os, socket
at = socket.socket(socket.AF_UNIX)
at.bind("/run/systemd/private")
at.listen(8)
while True:
    came, _ = at.accept()
    os.write(1, b"asked\n")
    came.close()
' >/run/asked & counter=$!
for _ in $(seq 200); do [ -S /run/systemd/private ] && break; sleep 0.02; done
"""


@has_world
def test_who_needs_no_group_asks_nobody(place):
    ran = world(WORLD + COUNTER + r"""
        echo 0 >$BASE/session/cgroup.procs
        for options in "" "--timeout 9s" "--pids 100" "--cpu-time 9s" "--disk 1G" "--files 100"; do
            $BAWN run --state-dir $STATE $options -- true || echo "$options: $?"
        done
        $BAWN doctor >/dev/null
        $BAWN explain --state-dir $STATE --io 1M/s >/dev/null
        $BAWN plan --state-dir $STATE --io 1M/s >/dev/null
        echo "before: $(wc -l </run/asked)"
        $BAWN run --state-dir $STATE --io 1M/s -- true 2>/run/refusal
        echo "$? after: $(wc -l </run/asked)"
        grep -c "hung up" /run/refusal
        kill -9 $counter
    """, place)
    assert ran.stdout == "before: 0\n125 after: 1\n1\n", ran


@has_world
def test_a_task_in_a_scope_makes_no_cgroup_namespace(place):
    """The scope's group is the caller's to write: whoever owns such a namespace mounts cgroupfs."""
    shutil.copy2(BAWN, place.base / "bawn")
    for path in (place.base, place.work, place.state):
        os.chown(path, 1, 1)
    ran = world(WORLD + r"""
        G=$U/user.slice/user-1.slice M=$U/user.slice/user-1.slice/user@1.service
        mkdir -p $M /run/user/1/systemd; trap 'rmdir $M $G $U/user.slice; end' EXIT
        mount --bind /run/state/controllers $M/cgroup.controllers
        python3 -c 'import os, socket; os.chdir("/run/user/1/systemd")
socket.socket(socket.AF_UNIX).bind("private")'
        chown -R 1:1 /run/user/1; chmod 700 /run/user/1
        echo 0 >$BASE/session/cgroup.procs
        for options in "" "--io 1M/s" "--memory 1G"; do
            setpriv --reuid 1 --regid 1 --clear-groups $STATE/../bawn plan --state-dir $STATE \
                --nested-userns $options >/run/plan || echo "$options: $?"
            grep -c no-cgroup-namespaces /run/plan
        done
    """, place)
    assert ran.stdout == "0\n1\n1\n", ran


if shutil.which("unshare") is None:
    has_world = pytest.mark.skip(reason="unshare is missing")
