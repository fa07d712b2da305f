"""bawn run by hand: bad input, streams, status, signals, and that nothing is ever left."""
import hashlib
import json
import os
import pty
import pwd
import re
import resource
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

from boxed import (BAWN, IS_ROOT, LIMIT_S, ROOT, catching, descendants, eventually, listing,
                   nobody_left, place, refused, select_ready)

__all__ = ["place"]

MARK = ("--", "touch", "started")
LONG = "a/" * 3000
SCHEMA = ROOT / "docs" / "schema"


def new_mounts(script):
    """Runs a script where it may mount: as root, or in a user namespace of its own."""
    return ["unshare", "-m" if IS_ROOT else "-Urm", "sh", "-c", script, "sh"]


# --- bad input -----------------------------------------------------------------------------------

BAD = {
    "unknown option": (["--bogus"], 125, "--bogus", "bawn help run"),
    "option like another": (["--rea", "/usr"], 125, "--rea"),
    "option without its value": (["--read"], 125, "--read"),
    "switch with a value": (["--json=yes"], 125, "--json", "takes no value"),
    "option given twice": (["--cwd", ".", "--cwd", "."], 125, "--cwd", "twice"),
    "missing workspace": (["--workspace", "/nonexistent/x"], 125, "/nonexistent/x"),
    "workspace is a file": (["--workspace", "file"], 125, "file", "not a directory"),
    "workspace is /": (["--workspace", "/"], 125, "--workspace DIR"),
    "workspace is empty": (["--workspace", ""], 125, "--workspace"),
    "workspace of another": (["--workspace", "/proc/self/fd"], 125, "--workspace"),
    "over-long workspace": (["--workspace", LONG], 125, "longer than"),
    "cwd outside": (["--cwd", "/usr"], 125, "/usr", "outside of the workspace"),
    "cwd by ..": (["--cwd", "../work/.."], 125, "--cwd"),
    "cwd missing": (["--cwd", "nowhere"], 125, "--cwd nowhere"),
    "cwd is a file": (["--cwd", "file"], 125, "--cwd file"),
    "cwd is a link": (["--cwd", "link"], 125, "--cwd link", "give the directory itself"),
    "cwd over a link": (["--cwd", "link/below"], 125, "--cwd link/below"),
    "cwd by descriptor": (["--cwd", "/proc/self/fd/0"], 125, "/proc/self/fd/0"),
    "over-long cwd": (["--cwd", LONG], 125, "--cwd"),
    "read of nothing": (["--read", "/nonexistent/x"], 125, "--read", "/nonexistent/x"),
    "read of a literal ~": (["--read", "~"], 125, "--read", "~"),
    "over-long read": (["--read", LONG], 125, "--read", "longer than"),
    "empty read": (["--read", ""], 125, "--read", "empty"),
    "read of /proc": (["--read", "/proc"], 126, "fs.dangerous"),
    "write of /": (["--write", "/"], 126, "fs.dangerous"),
    "read of /": (["--read", "/"], 126, "fs.dangerous"),
    "write of /etc": (["--write", "/etc"], 126, "fs.dangerous"),
    "a file as a device": (["--devices", "/etc/passwd"], 126, "/etc/passwd"),
    "a device outside of /dev": (["--devices", "/proc/self/fd"], 126, "fs.dangerous"),
    "timeout without a unit": (["--timeout", "5"], 125, "--timeout 5", "30s"),
    "timeout in a wrong unit": (["--timeout", "5 parsecs"], 125, "--timeout", "30s"),
    "timeout below zero": (["--timeout", "-1s"], 125, "--timeout", "30s"),
    "timeout beyond time": (["--timeout", "99999999999999999999d"], 125, "--timeout"),
    "variable without a name": (["--env", "=x"], 125, "--env"),
    "variable that is not there": (["--env", "NOT_THERE_AT_ALL"], 125, "NOT_THERE_AT_ALL"),
    "status to a closed descriptor": (["--status-fd", "77"], 125, "--status-fd 77"),
    "status to a word": (["--status-fd", "x"], 125, "--status-fd x"),
    "status to standard output": (["--status-fd", "1"], 125, "--status-fd 1"),
    "state in the workspace": (["--state-dir", "state"], 126, "bawn's own state"),
    "missing parents of the state": (["--state-dir", "/nonexistent/a/b"], 125, "/nonexistent/a/b"),
    "state directory in a file": (["--state-dir", "/etc/passwd"], 125, "/etc/passwd"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(place, case):
    options, status, *words = BAD[case]
    (place.work / "file").write_text("x")
    (place.work / "below").mkdir()
    (place.work / "link").symlink_to("below")
    before = listing(place.work)
    if case == "option without its value":
        ran = place.run(*options)
    else:
        ran = place.run(*options, *MARK)
    refused(ran, place, status, *words)
    assert listing(place.work) == before


@pytest.mark.parametrize("tail", [[], ["--"]])
def test_no_command(place, tail):
    refused(place.run(*tail), place, 125, "no command", "bawn run [options] -- COMMAND")


def test_home_is_no_workspace(place):
    home = pwd.getpwuid(os.geteuid()).pw_dir
    ran = place.run("--workspace", home, *MARK)
    refused(ran, place, 125, home, "--workspace DIR")
    refused(place.run("--workspace", os.path.dirname(home) or "/", *MARK), place, 125)
    refused(place.run("--read", home, *MARK), place, 126, "fs.dangerous", home)


def test_workspace_of_another_user(place):
    if IS_ROOT:
        os.chown(place.work, 1, 1)
        where = place.work
    else:
        where = next(p for p in map(Path, ("/srv", "/mnt", "/media", "/var/cache"))
                     if p.is_dir() and p.stat().st_uid != os.geteuid())
    refused(place.run("--workspace", where, *MARK), place, 125, str(where), "another user")


def test_unreadable_workspace(place):
    if IS_ROOT:
        pytest.skip("root reads everything")
    inner = place.work / "closed" / "inner"
    inner.mkdir(parents=True)
    inner.parent.chmod(0)
    try:
        refused(place.run("--workspace", inner, *MARK), place, 125, str(inner))
    finally:
        inner.parent.chmod(0o700)
    for mode in (0, 0o111, 0o333):
        inner.chmod(mode)
        refused(place.run("--workspace", inner, *MARK), place, 125, str(inner), "chmod u+rx")
    inner.chmod(0o500)
    assert place.run("--workspace", inner, "--", "ls").status == 0
    inner.chmod(0o700)


def test_a_directory_that_all_share_is_no_workspace(place):
    """What others make in it meanwhile is not the task's."""
    place.work.chmod(0o1777)
    refused(place.run(*MARK), place, 125, str(place.work), "others work in it")
    place.work.chmod(0o777)
    assert place.run("--", "true").status == 0


def test_current_directory_is_gone(place):
    gone = place.work / "gone"
    gone.mkdir()
    ran = place.run(*MARK, prefix=["sh", "-c", 'cd gone && rmdir ../gone && exec "$@"', "sh"])
    refused(ran, place, 125, "current directory", "--workspace")


def test_state_directory_open_to_others(place):
    place.state.chmod(0o755)
    refused(place.run(*MARK), place, 125, str(place.state), "chmod 700")


def test_relative_state_directory(place):
    ran = place.run("--state-dir", "state", "--workspace", "work", "--", "pwd", cwd=place.base)
    assert (ran.status, ran.out) == (0, f"{place.work}\n"), ran
    assert (place.state / "tasks").exists()


def test_state_directory_is_a_link(place):
    link = place.base / "link"
    link.symlink_to(place.state)
    refused(place.run("--state-dir", link, *MARK), place, 125, str(link))


def test_command_not_found(place):
    ran = place.run("--", "no-such-command")
    assert ran.status == 127 and "no-such-command" in ran.err and "not found" in ran.err, ran
    ran = place.run("--json", "--", "./nowhere/x")
    assert (ran.status, ran.result["end"]["kind"]) == (127, "not-found"), ran
    assert place.run("--", "").status == 127
    script = place.work / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    ran = place.run("--", "./script")
    assert ran.status == 127 and "interpreter" in ran.err, ran
    assert "is there" in ran.err, ran
    # what is no matter of showing is not said to be one
    ran = place.run("--", "./no-such-script")
    assert ran.status == 127 and "no such file" in ran.err and "--read" not in ran.err, ran
    place.assert_nothing_left()


def test_command_not_executable(place):
    (place.work / "text").write_text("x")
    for name in ("./text", ".", "/etc/hosts"):
        ran = place.run("--json", "--", name)
        assert (ran.status, ran.result["end"]["kind"]) == (126, "not-executable"), ran
        assert name in ran.err and len(ran.err.splitlines()) == 1, ran
    place.assert_nothing_left()


def test_script_without_interpreter_line(place):
    (place.work / "plain").write_text("echo plain $1; exit 5\n")
    (place.work / "plain").chmod(0o755)
    ran = place.run("--", "./plain", "yes")
    assert (ran.status, ran.out) == (5, "plain yes\n"), ran


CLOSED = [(0,), (1,), (2,), (0, 1, 2)]


@pytest.mark.parametrize("closed", CLOSED)
def test_closed_descriptors(place, closed):
    script = "for f in 0 1 2; do readlink /proc/self/fd/$f; done >fds; exit 9"
    shut = " ".join(f"{fd}>&-" for fd in closed)
    ran = place.sh(script, prefix=["sh", "-c", f'exec "$@" {shut}', "sh"])
    assert ran.status == 9, ran
    zero, one, two = (place.work / "fds").read_text().split("\n")[:3]
    assert zero == "/dev/null" and one == str(place.work / "fds"), (zero, one, two)
    assert two.startswith("pipe:")
    place.assert_nothing_left()


@pytest.mark.parametrize("inodes", [1, 2])
def test_full_disk(place, inodes):
    ran = place.run(*MARK, prefix=new_mounts(
        f"mount -t tmpfs -o mode=0700,nr_inodes={inodes} none {place.state} && exec \"$@\""))
    refused(ran, place, 125, "No space left on device", str(place.state))


def test_full_disk_later(place):
    """No room for a byte: what the run writes there is refused or is not needed."""
    ran = place.run(*MARK, prefix=new_mounts(
        f"mount -t tmpfs -o mode=0700,size=4k none {place.state} && "
        f"head -c 4096 /dev/zero >{place.state}/fill; exec \"$@\""))
    if ran.status == 0:
        assert (place.work / "started").exists() and ran.err == ""
    else:
        refused(ran, place, 125, "No space left on device")
    place.assert_nothing_left()


def test_no_proc(place):
    ran = place.run("--workspace", place.work, *MARK,
                    prefix=new_mounts('mount -t tmpfs none /proc && exec "$@"'))
    refused(ran, place, 125, "/proc")


@pytest.mark.parametrize("what,values", [
    ("as", [1_800_000, 1_900_000, 2_000_000, 2_200_000, 2_600_000, 4_000_000, 1 << 26,
            *range(2_900_000, 3_300_000, 40_000)]),
    ("nofile", [3, 4, 5, 6, 8, 10, 12, 16, 20, 32]),
    ("fsize", [0, 1, 4096]),
    ("stack", [16384, 65536, 262144]),
    ("memlock", [0]),
    ("data", [0, 65536, 262144]),
])
def test_no_resources(place, what, values):
    """It starts whole, or is refused with a word; what the exec itself kills was never us."""
    for value in values:
        (place.work / "started").unlink(missing_ok=True)
        ran = place.run(*MARK, prefix=["prlimit", f"--{what}={value}"])
        place.assert_nothing_left()
        # nor is the output that of getent(1)
        assert not ran.out, (value, ran)
        if ran.status == 125:
            # the loader of getent(1), which we ask for the caller's name, may have its word first
            *before, last = ran.err.splitlines()
            assert last.startswith("bawn: ") and all("getent: " in line for line in before), \
                (value, ran)
            assert not (place.work / "started").exists(), (value, ran)
        elif ran.status == 0:
            assert (place.work / "started").exists(), (value, ran)
        else:
            # the kernel could not load bawn, or the loader of the command said why
            assert ran.status < 0 or ran.err, (value, ran)


def test_no_processes(place):
    if IS_ROOT:
        pytest.skip("no limit of processes holds for root")
    ran = place.run(*MARK, prefix=["prlimit", "--nproc=1"])
    refused(ran, place, 125, "Resource temporarily unavailable")
    assert "ulimit -u" in ran.err, ran


# --- status --------------------------------------------------------------------------------------

CODES = range(256) if os.environ.get("BAWN_SOAK") else \
    [0, 1, 2, 3, 42, 99, 123, 124, 125, 126, 127, 128, 129, 130, 137, 143, 192, 254, 255]


@pytest.mark.parametrize("code", CODES)
def test_exit_code(place, code):
    ran = place.run("--json", "--", "sh", "-c", f"exit {code}")
    assert ran.status == code, ran
    assert ran.result["end"] == {"kind": "exited", "code": code}
    assert ran.result["cause"] == "command" and ran.result["status"] == code


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "ABRT", "KILL", "SEGV", "TERM", "USR1"])
def test_death_by_signal(place, name):
    number = getattr(signal, f"SIG{name}").value
    ran = place.run("--json", "--", "sh", "-c", f"kill -{name} $$; sleep 5")
    assert ran.status == 128 + number, ran
    assert ran.result["end"] == {"kind": "signaled", "signal": number, "core_dumped": False}
    assert [p.name for p in place.work.iterdir()] == [], "a core file"


def test_timeout(place):
    start = time.monotonic()
    ran = place.sh("trap '' TERM INT; sleep 60 & wait; sleep 60", "--timeout", "300ms", "--json")
    assert ran.status == 124 and time.monotonic() - start < 10, ran
    assert ran.result["end"]["kind"] == "timed-out" and ran.result["cause"] == "limit"
    assert "--timeout" in ran.err
    place.assert_nothing_left()


def test_timeout_not_reached(place):
    assert place.run("--timeout", "1h", "--", "true").status == 0


# --- signals to the supervisor -------------------------------------------------------------------

def ready(place, script, *options):
    """Starts a script, or words, that says `ready`; returns the process when it has."""
    words = ["bash", "-c", script] if isinstance(script, str) else script
    child = place.start(*options, "--", *words)
    assert select.select([child.stdout], [], [], LIMIT_S)[0], "no word"
    line = child.stdout.readline()
    assert line == b"ready\n", (line, child.stderr.read())
    return child


def finish(child, limit=LIMIT_S):
    try:
        return child.wait(limit)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        pytest.fail(f"no end within {limit} s")
    finally:
        child.stdout.close()
        child.stderr.close()


WAIT = "echo ready; while :; do sleep 0.05; done"


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT"])
def test_signal_reaches_the_traps(place, name):
    """Of a command and of its child, as from a terminal."""
    child = ready(place, catching(
        name, "exit 5 unless $child; 1 until wait == $child && $? == 5 << 8; "
        "open my $note, '>', 'note'; print $note qq(trapped\n); close $note; exit 7",
        "if (!($child = fork)) { select undef, undef, undef, 0.05 while 1 }"))
    child.send_signal(getattr(signal, f"SIG{name}"))
    assert finish(child) == 7
    assert (place.work / "note").read_text() == "trapped\n"
    place.assert_nothing_left()


def test_signal_without_a_trap(place):
    child = ready(place, "echo ready; exec sleep 60", "--json")
    child.send_signal(signal.SIGTERM)
    out = child.stdout.read()
    assert finish(child) == 128 + signal.SIGTERM
    result = json.loads(out.splitlines()[-1])
    assert result["end"]["kind"] == "signaled" and result["cause"] == "operator"
    place.assert_nothing_left()


def test_second_interrupt_ends(place):
    child = ready(place, catching("INT", "print qq(caught\\n)"))
    child.send_signal(signal.SIGINT)
    assert select_ready(child) == b"caught\n"
    # two that come close together are one
    time.sleep(0.2)
    assert child.poll() is None, "the command went on after the first, and must not be ended"
    child.send_signal(signal.SIGINT)
    assert finish(child) == 128 + signal.SIGKILL
    place.assert_nothing_left()


def test_term_ends_after_the_grace(place):
    child = ready(place, f"trap '' INT TERM HUP; {WAIT}", "--grace", "1s")
    child.send_signal(signal.SIGTERM)
    assert finish(child) == 128 + signal.SIGKILL
    place.assert_nothing_left()


def test_killed_supervisor(place):
    beat = place.work / "beat"
    child = ready(place, "setsid sh -c 'while :; do echo >>beat; sleep 0.02; done' & "
                         "echo ready; sleep 60")
    assert eventually(beat.exists)
    child.kill()
    child.wait()
    child.stdout.close()
    child.stderr.close()
    assert eventually(nobody_left, 5), f"alive after 5 s: {descendants()}"
    size = beat.stat().st_size
    time.sleep(0.1)
    assert beat.stat().st_size == size, "something still writes"
    assert len(os.listdir(place.state / "tasks")) == 1
    assert place.run("--", "true").status == 0
    place.assert_nothing_left()


def test_daemon_holds_nobody(place):
    start = time.monotonic()
    ran = place.sh("setsid sh -c 'setsid sh -c \"while :; do echo x | tee beat; done\" &' & "
                   "until [ -s beat ]; do sleep 0.01; done; echo done; exit 4")
    assert ran.status == 4 and "done" in ran.out and time.monotonic() - start < 10, ran
    place.assert_nothing_left()


# --- streams -------------------------------------------------------------------------------------

FLOOD = """
import os, sys, threading, hashlib
def flood(fd, seed):
    block = b''.join(hashlib.sha256(b'%d %d' % (seed, i)).digest() for i in range(32768))
    for n in range(100):
        view = memoryview(bytes([n]) + block[1:])
        while view:
            view = view[os.write(fd, view):]
t = threading.Thread(target=flood, args=(1, 1)); t.start(); flood(2, 2); t.join()
"""


def test_hundred_megabytes_both_ways(place):
    ran = place.run("--", "python3", "-c", FLOOD, limit=60)
    assert ran.status == 0, ran.err[-300:]
    for data, seed in ((ran.bytes, 1), (ran.error_bytes, 2)):
        block = b"".join(hashlib.sha256(b"%d %d" % (seed, i)).digest() for i in range(32768))
        wanted = hashlib.sha256()
        for n in range(100):
            wanted.update(bytes([n]) + block[1:])
        assert len(data) == 100 << 20
        assert hashlib.sha256(data).digest() == wanted.digest()


def test_binary_bytes_and_the_last_line(place):
    (place.work / "every").write_bytes(bytes(range(256)) * 3 + b"\xc3")
    ran = place.run("--", "sh", "-c", "cat every; cat every >&2")
    assert ran.bytes == bytes(range(256)) * 3 + b"\xc3" and ran.error_bytes == ran.bytes
    ran = place.run("--", "printf", "no newline")
    assert ran.bytes == b"no newline"


def test_input_is_null(place):
    reading, writing = os.pipe()
    try:
        ran = place.sh("readlink /proc/self/fd/0; cat; echo end", stdin=reading)
        assert ran.out == "/dev/null\nend\n", ran
    finally:
        os.close(reading)
        os.close(writing)


def test_input_by_pipe_and_file(place):
    data = os.urandom(3_000_000)
    ran = place.run("--stdin", "--", "cat", data=data)
    assert ran.bytes == data and ran.status == 0, ran.err
    (place.base / "data").write_bytes(data)
    with open(place.base / "data", "rb") as file:
        assert place.run("--stdin", "--", "cat", stdin=file).bytes == data
    assert place.run("--stdin", "--", "cat").bytes == b""
    place.assert_nothing_left()


def test_input_that_nobody_reads(place):
    reading, writing = os.pipe()
    try:
        ran = place.run("--stdin", "--", "true", stdin=reading)
        assert ran.status == 0, ran
        ran = place.run("--stdin", "--", "head", "-c1", data=b"x" * 1_000_000)
        assert ran.bytes == b"x", ran
    finally:
        os.close(reading)
        os.close(writing)


def test_input_closed(place):
    ran = place.sh("wc -c", "--stdin", prefix=["sh", "-c", 'exec "$@" <&-', "sh"])
    assert (ran.status, ran.out) == (0, "0\n"), ran


def blocked_and_ignored():
    for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGALRM, signal.SIGCHLD])


def test_dispositions_are_default(place):
    ran = place.run("--", "grep", "^Sig[BI]", "/proc/self/status", preexec_fn=blocked_and_ignored)
    assert ran.status == 0, ran
    assert re.fullmatch(r"SigBlk:\t0+\nSigIgn:\t0+\n", ran.out), ran
    place.assert_nothing_left()


def test_broken_pipe_inside(place):
    ran = place.sh("yes | head -n 1; echo ${PIPESTATUS[0]}", restore_signals=False)
    assert ran.out == "y\n141\n", ran


def test_reader_goes_away(place):
    child = place.start("--", "yes")
    assert child.stdout.read(10)
    child.stdout.close()
    assert child.wait(LIMIT_S) == 128 + signal.SIGPIPE
    child.stderr.close()
    place.assert_nothing_left()


def on_terminal(place, *arguments, stderr=None):
    master, slave = pty.openpty()
    child = place.start(*arguments, stdout=slave, stderr=stderr or slave)
    os.close(slave)
    out = b""
    while True:
        if not select.select([master], [], [], LIMIT_S)[0]:
            child.kill()
            break
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(master)
    return child.wait(), out


def test_terminal_shows_escapes(place):
    status, out = on_terminal(
        place, "--", "printf", r"a\033[31mred\033[0m \033]0;evil\007 \033[2J \033[6n b\n")
    assert status == 0
    assert b"a\x1b[31mred\x1b[0m " in out, out
    assert rb"\x1b]0;evil\x07 \x1b[2J \x1b[6n b" in out, out
    assert re.sub(rb"\x1b\[[0-9;]*m", b"", out).count(b"\x1b") == 0, out


def test_terminal_is_not_the_tasks(place):
    _, out = on_terminal(place, "--", "sh", "-c", "test -t 1 && echo tty; cat /dev/tty; true")
    assert b"tty\r\n" not in out.replace(b"/dev/tty", b""), out


# --- the structured result -----------------------------------------------------------------------

def validator():
    action = json.loads((SCHEMA / "action.schema.json").read_text())
    result = json.loads((SCHEMA / "result.schema.json").read_text())
    for schema in (action, result):
        jsonschema.Draft202012Validator.check_schema(schema)
    resolver = jsonschema.RefResolver.from_schema(result, store={
        action["$id"]: action, "action.schema.json": action})
    return jsonschema.Draft202012Validator(result, resolver=resolver)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("arguments", [
    ["--", "true"],
    ["--", "sh", "-c", "kill -9 $$"],
    ["--timeout", "100ms", "--", "sleep", "9"],
    ["--", "no-such"],
    ["--", "/etc/hosts"],
    ["--write", "/", "--", "true"],
    ["--cwd", "/usr", "--", "true"],
    ["--stdin", "--", "unshare", "-Ur", "true"],
    ["--env", "A=b", "--", "cat", "/nonexistent/x"],
    ["--ephemeral", "--", "touch", "x"],
])
def test_result_follows_the_schema(place, arguments):
    ran = place.run("--json", *arguments)
    validator().validate(ran.result)
    assert ran.result["status"] == ran.status
    reading, writing = os.pipe()
    other = place.run("--status-fd", writing, *arguments, pass_fds=[writing])
    os.close(writing)
    with open(reading, "rb") as file:
        by_fd = json.loads(file.read())
    validator().validate(by_fd)
    assert by_fd["end"] == ran.result["end"] and other.bytes == b"", other
    assert by_fd["denials"] == ran.result["denials"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_schema_refuses_what_is_not_a_result(place):
    result = place.run("--json", "--", "true").result
    for change in ({"surprise": 1}, {"status": 256}, {"cause": "weather"}, {"end": {"kind": "x"}},
                   {"denials": [{"code": "fs.read"}]}, {"action": {}}):
        with pytest.raises(jsonschema.ValidationError):
            validator().validate({**result, **change})


def words_of(path, pattern):
    return set(re.findall(pattern, (ROOT / path).read_text(), re.M))


def test_schema_names_what_the_source_names():
    schema = json.loads((SCHEMA / "result.schema.json").read_text())
    denial = schema["$defs"]["denial"]["properties"]
    row = r'^DENIAL\(\w+, "([^"]+)", "([^"]+)", "([^"]+)"'
    rows = words_of("src/policy/denial.def", row)
    assert set(denial["code"]["enum"]) == {code for code, _, _ in rows} and rows
    assert set(denial["layer"]["enum"]) == {layer for _, layer, _ in rows}
    assert set(denial["verb"]["enum"]) == {verb for _, _, verb in rows}
    layers = words_of("src/policy/layer.def", r'^LAYER\(\w+, "([^"]+)"')
    assert set(schema["$defs"]["layer"]["properties"]["layer"]["enum"]) == layers and layers
    text = (ROOT / "src/trace/result.c").read_text()
    for name, field in (("ends", schema["$defs"]["end"]["properties"]["kind"]),
                        ("causes", schema["properties"]["cause"])):
        table = re.search(rf"\b{name}\[\w+\] = {{(.*?)}};", text, re.S)[1]
        assert set(field["enum"]) == set(re.findall(r'"([^"]+)"', table))


def test_json_follows_the_output(place):
    ran = place.run("--json", "--", "echo", "words")
    first, second = ran.out.splitlines()
    assert first == "words" and json.loads(second)["streams"]["stdout_bytes"] == 6


def test_usage_is_measured(place):
    script = "x = bytearray(60_000_000)\nfor i in range(2_000_000): pass"
    usage = place.run("--json", "--", "python3", "-c", script).result["usage"]
    assert usage["peak_memory_bytes"] > 60_000_000 and usage["user_us"] > 10_000
    assert usage["duration_us"] >= usage["user_us"] * 0.5


def test_denials(place):
    ran = place.run("--json", "--", "unshare", "-Ur", "true")
    lines = [line for line in ran.err.splitlines() if line.startswith("bawn: denied: ")]
    assert len(lines) == 1 and "--nested-userns" in lines[0], ran
    denial, = ran.result["denials"]
    assert (denial["code"], denial["evidence"]) == ("sys.namespace", "measured")
    assert ran.result["cause"] == "policy"
    quiet = place.run("--quiet", "--", "unshare", "-Ur", "true")
    assert "bawn" not in quiet.err and quiet.status == ran.status, quiet


# --- paths of options, and a low limit of open files ----------------------------------------------

def test_paths_lead_up_alike(place):
    """What --read and --workspace take the others take, too."""
    inner = place.work / "sub" / "deep"
    inner.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)
    (place.base / "beside").write_text("x")
    for options, directory in ((["--cwd", ".."], place.work / "sub"),
                               (["--cwd", "../../sub"], place.work / "sub"),
                               (["--hide", "../beside"], inner),
                               (["--hide", "../bes*"], inner),
                               (["--protect", "../work/sub"], inner)):
        ran = place.run(*options, "--", "pwd", cwd=inner)
        assert (ran.status, ran.out) == (0, f"{directory}\n"), ran
    ran = place.run("--read", place.base / "beside", "--hide", "../beside", "--", "cat",
                    place.base / "beside")
    assert ran.status == 1 and "flag --hide" in ran.err, ran
    for option in ("--cwd", "--workspace"):
        fd = os.open(inner, os.O_RDONLY | os.O_DIRECTORY)
        ran = place.run(option, f"/proc/self/fd/{fd}", "--", "pwd", cwd=inner, pass_fds=[fd])
        os.close(fd)
        assert (ran.status, ran.out) == (0, f"{inner}\n"), ran


def test_paths_that_lead_wrong(place):
    (place.work / "sub").mkdir()
    (place.work / "link").symlink_to("/tmp")
    for options, words in ((["--cwd", "../.."], "outside of the workspace"),
                           (["--cwd", "/proc/self/root"], "outside of the workspace"),
                           (["--cwd", "sub/../sub"], "--cwd sub/../sub"),
                           (["--hide", "link/../x"], '".."'),
                           (["--cwd", "/proc/self/fd/900"], "--cwd: /proc/self/fd/900"),
                           (["--hide", "/etc"], "--hide /etc: the box has its own there"),
                           (["--hide", "/proc/"], "--hide /proc/: the box has its own there")):
        ran = place.run(*options, *MARK)
        assert ran.status == 125 and words in ran.err and len(ran.err.splitlines()) == 1, ran
        assert not (place.work / "started").exists()


def test_a_state_directory_may_be_relative(place):
    def run(state):
        return subprocess.run([BAWN, "run", "--state-dir", state, *MARK], capture_output=True,
                              text=True, cwd=place.work, check=False, timeout=20)
    ran = run("mine")
    assert ran.returncode == 126 and not (place.work / "started").exists()
    line = ran.stderr.splitlines()[0]
    assert line.startswith(f"bawn: {place.work}/mine: bawn's own state (--state-dir) lies in")
    assert not (place.work / "mine").exists()
    assert run("../mine").returncode == 0 and (place.base / "mine" / "trace").exists()


@pytest.mark.parametrize("option", ["--timeout", "--read", "--env", "--cwd"])
def test_an_option_without_its_value(place, option):
    ran = place.run(option, *MARK)
    assert ran.status == 125 and f"option {option} needs a value: {option} " in ran.err, ran


@pytest.mark.parametrize("files", [12, 24, 40, 63])
def test_a_low_limit_of_open_files_is_named(place, files):
    said = set()
    for verb in ("run", "explain", "plan", "doctor"):
        options = place.options if verb != "doctor" else []
        limited = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", BAWN, verb, *options]
        ran = subprocess.run([*limited, *(MARK if verb != "doctor" else [])], capture_output=True,
                             text=True, cwd=place.work, check=False, timeout=20)
        assert ran.returncode == (1 if verb == "doctor" else 125), ran
        said.add((ran.stderr or "bawn: " + ran.stdout.splitlines()[-1]).strip())
    assert len(said) == 1 and f"open files is {files} " in min(said) and "ulimit -n" in min(said)
    assert not (place.work / "started").exists()
    place.assert_nothing_left()


def test_a_step_that_meets_the_limit_of_open_files_names_it(place):
    """What the caller has open counts, too."""
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(30)]
    ran = place.run(*MARK, pass_fds=held, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, (70, 70)))
    for fd in held:
        os.close(fd)
    assert ran.status == 125 and not (place.work / "started").exists(), ran
    assert "open files is 70 (ulimit -n)" in ran.err and "ulimit -n 1024" in ran.err, ran
    assert "No file descriptors available" in ran.err and len(ran.err.splitlines()) == 1
    place.assert_nothing_left()


@pytest.mark.parametrize("script, code, thing, remedy", [
    ("echo >/etc/foo", "fs.write", "/etc/foo", None),
    ("mkdir /opt/bawn-none", "fs.write", "/opt/bawn-none", "--write /opt"),
    ("touch /srv/bawn-none", "fs.write", "/srv/bawn-none", "--write /srv"),
    ("mkdir s && chmod g+s s", "sys.setid", "WORK/s", None),
])
def test_a_denial_has_the_right_verb_and_a_remedy_that_works(place, script, code, thing, remedy):
    ran = place.run("--json", "--", "sh", "-c", script)
    denial, = ran.result["denials"]
    thing = thing.replace("WORK", str(place.work))
    assert (denial["code"], denial["object"], denial["remedy"]) == (code, thing, remedy), ran
    if remedy:
        again = place.run(*remedy.split(), "--", "true")
        assert again.status == 0, again


def test_pip_without_a_network_is_a_denial(place):
    """Its retries are off, and with them all that it says of connections."""
    ran = place.run("--json", "--", "/usr/bin/python3", "-m", "pip", "download", "bawn-none")
    assert "No matching distribution" in ran.err, ran
    denial, = ran.result["denials"]
    assert (denial["code"], denial["object"]) == ("net.resolve", "pypi.org")
    assert "--allow-host pypi.org" in ran.err


def test_denials_beyond_the_limit_are_counted(place):
    script = "for i in $(seq 80); do echo /a$i: No such file >&2; done; exit 1"
    ran = place.run("--json", "--", "sh", "-c", script)
    lines = [line for line in ran.err.splitlines() if line.startswith("bawn: ")]
    assert len(lines) == 65 and ran.result["denials_dropped"] == 16
    assert lines[-1] == "bawn: 16 more denials are not listed, since there are more than 64"


# --- inside --------------------------------------------------------------------------------------

def test_widening_inside_is_refused(place):
    shutil.copy(BAWN, place.work / "bawn")
    for option in (["--read", "/usr"], ["--write", "/tmp"], ["--env", "A=b"], ["--nested-userns"],
                   ["--allow-ptrace"], ["--devices", "/dev/null"], ["--workspace", "/tmp"]):
        ran = place.run("--", "./bawn", "run", *option, *MARK)
        assert ran.status == 126 and "box.widening" in ran.err and option[0] in ran.err, ran
        assert not (place.work / "started").exists()
    place.assert_nothing_left()


def test_second_box_inside_is_refused_by_name(place):
    shutil.copy(BAWN, place.work / "bawn")
    for options in ([], ["--nested-userns"]):
        ran = place.run(*options, "--", "./bawn", "run", *MARK)
        assert ran.status == 125 and "inside of a box" in ran.err, ran
        assert not (place.work / "started").exists()


def test_environment_is_an_allowlist(place):
    caller = {**os.environ, "MY_TOKEN": "secret", "AWS_SECRET_ACCESS_KEY": "secret",
              "LANG": "C.UTF-8", "LD_PRELOAD": "", "SSH_AUTH_SOCK": "/x", "GOOD": "good"}
    ran = place.run("--json", "--env", "GOOD", "--env", "SET=a=b", "--env", "EMPTY=", "--", "env",
                    env=caller)
    inside = dict(line.split("=", 1) for line in ran.out.splitlines()[:-1])
    assert "secret" not in str(inside) and "SSH_AUTH_SOCK" not in inside, inside
    assert (inside["GOOD"], inside["SET"], inside["EMPTY"]) == ("good", "a=b", "")
    assert inside["LANG"] == "C.UTF-8" and inside["PWD"] == str(place.work)
    assert "MY_TOKEN" in ran.result["withheld_environment"]
    assert "GOOD" not in ran.result["withheld_environment"]
    assert "secret" not in ran.out.splitlines()[-1]


def test_hide_in_the_workspace(place):
    (place.work / "secret").write_text("s3cret")
    (place.work / "dir" / "deep").mkdir(parents=True)
    (place.work / "dir" / "deep" / "key").write_text("s3cret")
    (place.work / "dir" / "b.pem").write_text("s3cret")
    (place.work / "a.pem").write_text("s3cret")
    (place.work / "open").write_text("open")
    before = listing(place.work)
    ran = place.sh("cat open; cat secret a.pem dir/b.pem dir/deep/key; ls dir/deep; "
                   "echo x >secret; true",
                   "--hide", "secret", "--hide", "dir/deep", "--hide", "**/*.pem")
    assert "open" in ran.out and "s3cret" not in ran.out + ran.err, ran
    assert listing(place.work) == before
    assert (place.work / "secret").read_text() == "s3cret"


def test_hide_in_a_read_only_view(place):
    shown = place.base / "shown"
    (shown / "sub").mkdir(parents=True)
    for name in ("open", "secret", "x.pem", "sub/y.pem", "sub/z"):
        (shown / name).write_text(f"in {name}\n")
    before = listing(shown)
    ran = place.sh(f"cd {shown}; find . | sort; cat secret x.pem sub/y.pem sub/z open; "
                   "echo >new; true", "--read", shown, "--hide", f"{shown}/secret",
                   "--hide", f"{shown}/**/*.pem")
    names = [line for line in ran.out.splitlines() if line.startswith(".")]
    assert names == [".", "./open", "./sub", "./sub/z"], ran
    assert "in sub/z" in ran.out and "in open" in ran.out
    assert "in secret" not in ran.out and "pem\n" not in ran.out, ran
    assert listing(shown) == before


def test_hide_strict(place):
    (place.work / "secret").write_text("s")
    ran = place.run("--hide-strict", "--hide", "secret", *MARK)
    refused(ran, place, 125, "--hide-strict", "secret")


def test_protect(place):
    (place.work / "ci").mkdir()
    (place.work / "ci" / "job").write_text("job")
    (place.work / "Makefile").write_text("all:")
    before = listing(place.work)
    ran = place.sh("cat Makefile ci/job; echo x >>Makefile; echo x >ci/job; echo x >ci/new; "
                   "rm -f Makefile; mv ci other; rm -rf ci; mv Makefile M; ln -f Makefile L; true",
                   "--protect", "Makefile", "--protect", "ci")
    assert ran.out == "all:job" and ran.status == 0, ran
    after = listing(place.work)
    after.pop("L", None)
    assert after == before and (place.work / "Makefile").read_text() == "all:", ran
    assert (place.work / "ci" / "job").read_text() == "job"


def test_nothing_of_the_host(place):
    other = place.base / "other"
    other.mkdir()
    (other / "file").write_text("x")
    ran = place.sh(f"cat {other}/file; ls {place.base}; ls ~ /home; ls /root 2>&1; id -un; "
                   "cat /proc/1/environ; hostname; ls /proc | grep -c '^[0-9]'")
    assert "x\n" not in ran.out and "state" not in ran.out and "other" not in ran.out, ran


def test_nothing_is_left(place):
    (place.work / ".git").mkdir()
    (place.work / "sub").mkdir()
    before = listing(place.work)
    with open("/proc/self/mountinfo") as file:
        mounts = file.read()
    for _ in range(3):
        assert place.run("--", "true").status == 0
        assert place.run("--cwd", "sub", "--hide", "no-such", "--", "true").status == 0
    assert listing(place.work) == before
    with open("/proc/self/mountinfo") as file:
        assert file.read() == mounts
    place.assert_nothing_left()


def test_cwd_within_the_workspace(place):
    (place.work / ".git").mkdir()
    (place.work / "a" / "b").mkdir(parents=True)
    assert place.run("--", "pwd", cwd=place.work / "a").out == f"{place.work}/a\n"
    assert place.run("--cwd", "b", "--", "pwd", cwd=place.work / "a").out == f"{place.work}/a/b\n"
    ran = place.sh("touch ../../x && pwd", "--cwd", place.work / "a" / "b")
    assert ran.out == f"{place.work}/a/b\n" and (place.work / "x").exists(), ran


def test_fifty_at_once(place):
    before = listing(place.work)
    children = [place.start("--", "sh", "-c", f"echo {i}; exit {i}") for i in range(50)]
    for i, child in enumerate(children):
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out, err) == (i, f"{i}\n".encode(), b"")
    assert listing(place.work) == before
    place.assert_nothing_left()


def test_devices(place):
    assert place.run("--", "ls", "/dev/fuse").status != 0
    found = [p for p in ("/dev/fuse", "/dev/net/tun", "/dev/loop-control", "/dev/ptmx")
             if Path(p).is_char_device() and not Path(p).is_symlink()]
    if not found:
        pytest.skip("this host has no device to show")
    ran = place.run("--devices", found[0], "--", "test", "-c", found[0])
    assert ran.status == 0, ran
    disks = [p for p in Path("/dev").iterdir() if p.is_block_device()]
    if disks:
        refused(place.run("--devices", disks[0], *MARK), place, 126, str(disks[0]))


def test_terminal_size_of_help():
    for verb in ("run", "plan", "help"):
        text = subprocess.run([BAWN, "help", verb], capture_output=True, text=True, check=True)
        assert f"usage: bawn {verb}" in text.stdout and text.stderr == ""


# --- installed -----------------------------------------------------------------------------------

def test_installed(place):
    if not (ROOT / "build" / "meson-private").exists():
        pytest.skip("this copy of the tree has only the programs; the run in the tree shows it")
    if ROOT.stat().st_uid != os.geteuid():
        pytest.skip("the tree is another user's; his own run shows it")
    prefix = "/usr/local"
    for option in json.loads(subprocess.run(
            ["/usr/bin/meson", "introspect", "--buildoptions", str(ROOT / "build")],
            capture_output=True, check=True).stdout):
        if option["name"] == "prefix":
            prefix = option["value"]
    made = subprocess.run(["make", "-C", str(ROOT), "install", f"DESTDIR={place.base}/dest",
                           f"PREFIX={prefix}"], capture_output=True, text=True, timeout=300,
                          check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    dest = place.base / "dest" / prefix.lstrip("/")
    assert (dest / "bin" / "bawn").exists() and (dest / "libexec" / "bawn" / "bawn-parse").exists()
    # the caller's git identity comes through a role program: one of the installed ones
    home = place.base / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = In Stalled\n")
    script = (f"mount --bind {home} /root && mount --bind {dest} {prefix} && "
              f"exec {prefix}/bin/bawn run --state-dir {place.state} "
              "-- sh -c 'git config user.name; exit 6'")
    ran = subprocess.run(new_mounts(script), cwd=place.work, capture_output=True, text=True,
                         timeout=30, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (6, "In Stalled\n", ""), ran
    place.assert_nothing_left()


def test_the_result_has_a_line_of_its_own(place):
    ran = place.run("--json", "--", "printf", "no newline")
    assert ran.bytes.startswith(b"no newline\n{") and ran.result["streams"]["stdout_bytes"] == 10
    assert place.run("--json", "--", "echo", "x").bytes.startswith(b"x\n{")
    assert place.run("--json", "--", "true").bytes.startswith(b"{")


def test_a_reader_that_does_not_read_does_not_hold_the_limit(place):
    child = place.start("--timeout", "300ms", "--", "yes")
    begun = time.monotonic()
    assert child.wait(timeout=LIMIT_S) == 124
    assert time.monotonic() - begun < 10
    child.stdout.close()
    child.stderr.close()
    place.assert_nothing_left()


def test_tools_do_not_wait_for_a_network(place):
    ran = place.sh("env", "--json")
    assert "npm_config_fetch_retries=0\n" in ran.out and "PIP_RETRIES=0\n" in ran.out
    assert "HOME" not in ran.result["withheld_environment"]
