"""What a task, or a tree that an earlier task prepared, may try against the supervisor."""
import fcntl
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

from boxed import BAWN, IS_ROOT, LIMIT_S, eventually, place, select_ready

__all__ = ["place"]


def test_input_does_not_stay_nonblocking(place):
    """O_NONBLOCK belongs to the open file, which the caller's shell goes on using."""
    ours, theirs = pty.openpty()
    before = fcntl.fcntl(theirs, fcntl.F_GETFL)
    child = subprocess.run([BAWN, "run", *place.options, "--stdin", "--", "true"], stdin=theirs,
                           stdout=theirs, stderr=theirs, cwd=place.work, timeout=LIMIT_S,
                           check=False)
    after = fcntl.fcntl(theirs, fcntl.F_GETFL)
    os.close(ours)
    os.close(theirs)
    assert child.returncode == 0
    assert before == after


FILL = r"""
import os, time
inlet = os.open("/proc/self/fd/0", os.O_WRONLY | os.O_NONBLOCK)
print("filling", flush=True)
while True:
    try:
        os.write(inlet, b"x" * 4096)
    except BlockingIOError:
        os.read(0, 4096)
"""


def test_a_task_fills_its_own_input(place):
    """The supervisor writes there too, and keeps the time all the same."""
    child = place.start("--stdin", "--timeout", "3s", "--", "python3", "-c", FILL,
                        stdin=subprocess.PIPE)
    assert select_ready(child) == b"filling\n"
    end = time.monotonic() + LIMIT_S
    try:
        while child.poll() is None and time.monotonic() < end:
            os.write(child.stdin.fileno(), b"y" * 65536)
    except BrokenPipeError:
        pass
    assert child.wait(timeout=LIMIT_S) == 124
    child.communicate()
    place.assert_nothing_left()


def test_supervision_does_not_stop(place):
    """What stops a program in the background would leave the box without limits."""
    child = place.start("--timeout", "1s", "--", "sh", "-c", "echo ready; sleep 60")
    assert select_ready(child) == b"ready\n"
    for number in (signal.SIGTTIN, signal.SIGTTOU):
        os.kill(child.pid, number)
    assert child.wait(timeout=LIMIT_S) == 124
    child.communicate()


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_stop_and_continue(place):
    """Ctrl-Z stops the terminal's group; the box is none of it, and is stopped before us."""
    beat = place.work / "beat"
    child = place.start("--", "sh", "-c", "trap '' TSTP; (setsid sh -c 'while :; do echo >>beat; "
                                          "sleep 0.02; done' &); echo ready; sleep 60")
    assert select_ready(child) == b"ready\n"
    assert eventually(lambda: beat.exists() and beat.stat().st_size > 3)
    os.kill(child.pid, signal.SIGTSTP)
    assert eventually(lambda: state_of(child.pid) == "T")
    size = beat.stat().st_size
    time.sleep(0.3)
    assert beat.stat().st_size == size, "the box goes on while nobody watches it"
    os.kill(child.pid, signal.SIGCONT)
    assert eventually(lambda: beat.stat().st_size > size)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=LIMIT_S) == 128 + signal.SIGINT
    child.communicate()
    place.assert_nothing_left()


def test_no_stop_while_names_are_covered_in_place(place):
    """Nobody would cover them again, and signals do not hold a task that wakes itself."""
    (place.work / "key").write_text("secret")
    child = place.start("--hide", "key", "--timeout", "1s", "--", "sh", "-c",
                        "echo ready; sleep 60")
    assert select_ready(child) == b"ready\n"
    os.kill(child.pid, signal.SIGTSTP)
    assert not eventually(lambda: state_of(child.pid) == "T", 0.5)
    assert child.wait(timeout=LIMIT_S) == 124
    child.communicate()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_the_caller_ignores_is_ignored(place, number):
    """nohup, and the background of a shell without job control."""
    script = "echo ready; while ! test -e go; do sleep 0.02; done; echo on"
    child = place.start("--", "sh", "-c", script,
                        preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    assert select_ready(child) == b"ready\n"
    os.kill(child.pid, number)
    (place.work / "go").touch()
    out, err = child.communicate(timeout=LIMIT_S)
    assert (child.returncode, out, err) == (0, b"on\n", b"")


def test_dots_before_a_link_in_the_workspace(place):
    """A task of an earlier run made the link; with ".." in the path it is one all the same."""
    outside = place.base / "outside"
    outside.mkdir()
    (outside / "key").write_text("secret")
    (place.work / "sub").mkdir()
    (place.work / "data").symlink_to(outside)
    for written in ("../data", "../data/key", "./../sub/../data", f"{place.work}/sub/../data"):
        ran = place.run("--workspace", place.work, "--read", written, "--", "true",
                        cwd=place.work / "sub")
        assert ran.status == 126 and "a link in the workspace leads there" in ran.err, ran
    ran = place.run("--workspace", place.work, "--read", "../../outside", "--", "cat",
                    outside / "key", cwd=place.work / "sub")
    assert ran.out == "secret", ran


@pytest.mark.parametrize("home", ["link/u", "home"])
def test_a_home_behind_a_link_is_no_workspace(place, home):
    """/home is a link to /var/home here and there; the current directory is always the real one."""
    real = place.base / "real" / "u"
    real.mkdir(parents=True)
    (real / "key").write_text("secret")
    (place.base / "link").symlink_to("real")
    (place.base / "home").symlink_to("real/u")
    accounts = place.base / "passwd"
    accounts.write_text(f"root:x:0:0:root:{place.base / home}:/bin/sh\n")
    script = f'mount --bind {accounts} /etc/passwd && exec "$@"'
    prefix = ["unshare", "-m" if IS_ROOT else "-Urm", "sh", "-c", script, "sh"]
    for options in ([], ["--workspace", real], ["--read", real]):
        cwd = place.work if "--read" in options else real
        ran = place.run(*options, "--", "cat", real / "key", prefix=prefix, cwd=cwd)
        assert ran.status in (125, 126) and "it holds the caller's home" in ran.err, ran


def test_a_place_of_keys_is_no_workspace(place):
    """A task left a link in a project, and the caller follows it."""
    home = place.base / "home"
    accounts = place.base / "passwd"
    accounts.write_text(f"root:x:0:0:root:{home}:/bin/sh\n")
    prefix = ["unshare", "-m" if IS_ROOT else "-Urm", "sh", "-c",
              f'mount --bind {accounts} /etc/passwd && exec "$@"', "sh"]
    for keys in (".ssh", ".config/gh", ".config", ".local/share", ".gnupg/private-keys-v1.d"):
        (home / keys).mkdir(parents=True, exist_ok=True)
        link = place.work / "link"
        link.unlink(missing_ok=True)
        link.symlink_to(home / keys)
        for options, cwd in (([], link), (["--workspace", link], place.work)):
            ran = place.run(*options, "--", "true", prefix=prefix, cwd=cwd)
            assert ran.status == 125 and "keep the caller's keys" in ran.err, ran


HOMES = {"vartmp": "{base}/home", "link": "{base}/link", "above": "{base}",
         "tmp": "/tmp/bawn-no/home",
         "shm": "/dev/shm/bawn-no", "tmp itself": "/tmp"}


@pytest.mark.parametrize("name", HOMES)
def test_a_home_in_a_private_area(place, name):
    """It is one itself, and empty; what it lies in is another."""
    (place.base / "home").mkdir()
    (place.base / "link").symlink_to("home")
    (place.base / "home/key").write_text("secret")
    home = HOMES[name].format(base=place.base)
    accounts = place.base / "passwd"
    accounts.write_text(f"root:x:0:0:root:{home}:/bin/sh\n")
    prefix = ["unshare", "-m" if IS_ROOT else "-Urm", "sh", "-c",
              f'mount --bind {accounts} /etc/passwd && mkdir -p "{home}" && exec "$@"', "sh"]
    ran = place.sh("cd && test ! -e key && echo x > new && cat new && "
                   "stat -c %a /tmp /dev/shm . && echo y > $OLDPWD/made", prefix=prefix)
    assert ran.status == 0, ran
    modes = ran.out.split()
    assert modes[0] == "x" and modes[1:3] == ["1777", "1777"], ran
    assert modes[3] == ("1777" if name == "tmp itself" else "700"), ran
    assert (place.work / "made").read_text() == "y\n" and not (place.base / "home/new").exists()
    for path in ("/tmp/bawn-no/home", "/tmp/bawn-no", "/dev/shm/bawn-no"):
        if os.path.isdir(path):
            os.rmdir(path)


NESTED = r"""
cat .env; echo ready; while ! test -e go; do sleep 0.02; done; sleep 2; cat .env; echo survived
"""


def test_nested_namespaces_keep_no_name_open(place):
    """A mount namespace of the task's own has its own mounts: what was replaced ends the task."""
    (place.work / ".env").write_text("first secret\n")
    child = place.start("--nested-userns", "--hide", ".env", "--", "unshare", "-Urm", "sh", "-c",
                        NESTED)
    assert select_ready(child) == b"ready\n"
    (place.work / "new").write_text("second secret\n")
    os.rename(place.work / "new", place.work / ".env")
    (place.work / "go").touch()
    out, err = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 128 + 9
    assert b"secret" not in out and b"survived" not in out
    assert b"--nested-userns" in err and b".env" in err
    place.assert_nothing_left()


CGROUPS = Path("/sys/fs/cgroup/unified")
if not CGROUPS.exists():
    CGROUPS = CGROUPS.parent


@pytest.fixture
def own_cgroup():
    """A group of the ordinary user's, as systemd delegates them."""
    made = CGROUPS / f"bawn-test-{os.getpid()}"
    made.mkdir()
    try:
        for path in (made, *made.iterdir()):
            os.chown(path, 12345, 12345)
        yield made
    finally:
        eventually(lambda: not (made / "cgroup.procs").read_text(), 5)
        made.rmdir()


@pytest.mark.skipif(not IS_ROOT or not (CGROUPS / "cgroup.procs").exists(),
                    reason="only root gives a group away")
def test_nested_namespaces_reach_no_cgroup(place, own_cgroup):
    """Whoever owns a cgroup namespace mounts cgroupfs; its files may be the caller's own."""
    for path in (place.base, place.work, place.state):
        os.chown(path, 12345, 12345)
    script = """unshare -C true && echo namespace
                for type in cgroup2 cgroup; do mount -t $type none /tmp && echo $type; done
                mount -t tmpfs none /tmp && echo mounts work"""

    def run(flags):
        join = f'echo 0 > {own_cgroup}/cgroup.procs; exec setpriv --reuid 12345 ' \
               '--regid 12345 --clear-groups "$@"'
        child = place.start("--nested-userns", "--", "unshare", flags, "sh", "-c", script,
                            prefix=["sh", "-c", join, "sh"])
        return child.communicate(timeout=LIMIT_S)

    assert run("-Urm")[0] == b"mounts work\n"
    out, err = run("-UrmC")
    assert out == b"" and b"No space left" in err


def test_nested_namespaces_with_a_cgroup_of_root(place):
    """bwrap --unshare-all makes all namespaces; harmless where the groups are not the caller's."""
    plan = subprocess.run([BAWN, "plan", *place.options, "--nested-userns", "--", "true"],
                          cwd=place.work, capture_output=True, text=True, timeout=LIMIT_S,
                          check=True).stdout
    forbidden = "no-cgroup-namespaces" in plan
    ran = place.run("--nested-userns", "--", "unshare", "-UrC", "echo", "made")
    assert ran.out == ("" if forbidden else "made\n"), ran


@pytest.mark.skipif(not IS_ROOT, reason="only root makes a .git of another user's")
def test_a_foreign_git_directory_chooses_no_workspace(place):
    """In /tmp anybody can make a .git above the caller's directory."""
    inner = place.work / "inner"
    inner.mkdir()
    (place.work / ".git").mkdir()
    os.chown(place.work / ".git", 1, 1)
    place.run("--", "touch", "here", "../there", cwd=inner)
    assert (inner / "here").exists() and not (place.work / "there").exists()
    os.chown(place.work / ".git", 0, 0)
    assert place.run("--", "touch", "../there", cwd=inner).status == 0
