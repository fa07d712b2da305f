"""What the functional tests share: a place to work in, runs of bawn, and what a run may leave.

A `Place` is a temporary workspace with a state directory beside it. Everything that a run starts
becomes a descendant of the test (it is a subreaper), so that what is left is seen by name.
"""
import ctypes
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BAWN = os.environ.get("BAWN", str(ROOT / "build" / "bawn"))
IS_ROOT = os.geteuid() == 0
LIMIT_S = 20
PR_SET_CHILD_SUBREAPER = 36

ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Ran:
    """What one run gave."""

    def __init__(self, status, out, err):
        self.status, self.bytes, self.error_bytes = status, out, err

    @property
    def out(self):
        return self.bytes.decode(errors="replace")

    @property
    def err(self):
        return self.error_bytes.decode(errors="replace")

    @property
    def result(self):
        """The structured result of a run with --json."""
        return json.loads(self.bytes.splitlines()[-1])

    def __repr__(self):
        return f"status {self.status}\n--- out\n{self.out[-2000:]}\n--- err\n{self.err[-4000:]}"


def parents():
    """pid -> parent's pid, of every process that has not been waited for."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                found[int(entry)] = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            pass
    return found


def descendants(root=None):
    table = parents()
    found, last = set(), {root or os.getpid()}
    while last:
        last = {pid for pid, parent in table.items() if parent in last and pid not in found}
        found |= last
    return found


def is_dead(pid):
    """True also for one that has not been waited for: it has nothing open any more."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


def waits(*argv):
    """Whether a process of ours executes these words, and sleeps: it is where signals reach it."""
    wanted = b"".join(word.encode() + b"\0" for word in argv)
    for pid in descendants():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read()
            with open(f"/proc/{pid}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if words == wanted and state == b"S":
            return True
    return False


def reap():
    """Waits for what became ours and has ended already."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def eventually(condition, seconds=LIMIT_S):
    """True as soon as the condition is; False when it is not within the time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def nobody_left():
    reap()
    return not descendants()


def listing(root):
    """Every name below root with its kind, mode and size, no link followed."""
    found = {}
    for base, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(base, name)
            status = os.lstat(path)
            size = status.st_size if stat.S_ISREG(status.st_mode) else 0
            found[os.path.relpath(path, root)] = (status.st_mode, size)
    return found


def remove_tree(root):
    """Removes also what an overlay's work directory leaves without any mode bits."""
    for base, folders, _ in os.walk(root):
        for name in folders:
            path = os.path.join(base, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(root, ignore_errors=True)


class Place:
    def __init__(self, base):
        self.base = Path(base)
        self.work = self.base / "work"
        self.state = self.base / "state"
        self.work.mkdir()
        self.state.mkdir(mode=0o700)

    @property
    def options(self):
        return ["--state-dir", str(self.state)]

    def argv(self, *arguments):
        """bawn run, with our state directory unless the arguments name one."""
        state = [] if "--state-dir" in arguments else self.options
        return [BAWN, "run", *state, *map(str, arguments)]

    def start(self, *arguments, prefix=(), **options):
        options.setdefault("cwd", self.work)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([*prefix, *self.argv(*arguments)], **options)

    def run(self, *arguments, data=None, limit=LIMIT_S, **options):
        """Runs to the end; a run that does not end is killed and fails the test."""
        if data is not None:
            options["stdin"] = subprocess.PIPE
        child = self.start(*arguments, **options)
        try:
            out, err = child.communicate(data, timeout=limit)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            seen = Ran(None, out or b"", err or b"")
            pytest.fail(f"no end within {limit} s: {arguments}\n{seen}")
        return Ran(child.returncode, out or b"", err or b"")

    def sh(self, script, *options, **keywords):
        return self.run(*options, "--", "bash", "-c", script, **keywords)

    def leftovers(self):
        """Names of what a run left behind; empty where all is well."""
        tasks = self.state / "tasks"
        left = [f"task directory {name}" for name in (os.listdir(tasks) if tasks.exists() else [])]
        if not eventually(nobody_left, 10):
            left += [f"process {pid}" for pid in descendants()]
        return left

    def assert_nothing_left(self):
        assert self.leftovers() == []

    def remove(self):
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        eventually(nobody_left, 2)
        remove_tree(self.base)


def policy_file(place, text, name="policy.yaml"):
    """A policy file where no task of the place can write; its path."""
    folder = place.base / "policies"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / name
    path.write_text("version: 1\n" + text)
    path.chmod(0o600)
    return str(path)


def catching(name, body, before=""):
    """
    The words of a command that says `ready` and then runs `body` (perl) at a signal. Not a shell:
    bash loses an INT that comes as its child has just ended, dash any that comes as it makes one.
    """
    return ["perl", "-e", f"$| = 1; $SIG{{{name}}} = sub {{ {body} }}; {before}; "
                          "print qq(ready\\n); select undef, undef, undef, 0.05 while 1"]


def select_ready(child):
    """The first line that a started run prints."""
    assert select.select([child.stdout], [], [], LIMIT_S)[0], "no word"
    return child.stdout.readline()


@pytest.fixture
def place():
    made = Place(tempfile.mkdtemp(prefix="bawn-run.", dir="/var/tmp"))
    try:
        yield made
    finally:
        made.remove()


def refused(ran, place, status, *words):
    """One line that names the object, nothing started, nothing left."""
    assert ran.status == status, ran
    assert ran.out == "", ran
    lines = [line for line in ran.err.splitlines() if not line.startswith("bawn: denied: ")]
    assert len(lines) == 1 and lines[0].startswith("bawn: "), ran
    for word in words:
        assert word in ran.err, (word, ran)
    assert not (place.work / "started").exists(), "the command was started"
    place.assert_nothing_left()


if not os.access(BAWN, os.X_OK):
    sys.exit(f"{BAWN} is not built")
