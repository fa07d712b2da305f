"""Live tasks: one box for many commands, each with its own result, and nothing that outlives it."""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from boxed import BAWN, LIMIT_S, catching, descendants, eventually, is_dead, nobody_left
from live import live
from screen import Screen

__all__ = ["live"]


def test_many_commands_share_a_box(live):
    task = live.begin()
    assert live.sh_in(task, "echo kept >/tmp/file; echo out; echo err >&2; exit 5").status == 5
    ran = live.sh_in(task, "cat /tmp/file")
    assert (ran.status, ran.out, ran.err) == (0, "kept\n", ""), ran
    ran = live.verb("task", "end", task)
    assert (ran.status, ran.out) == (0, f"{task} has ended\n"), ran
    live.assert_nothing_left()
    assert os.listdir(live.state / "run") == []


def test_result_is_of_the_command(live):
    task = live.begin()
    ran = live.sh_in(task, "printf hello", "--json")
    assert ran.bytes.startswith(b"hello"), ran
    result = json.loads(ran.bytes[5:])
    assert result["action"]["task"] == task and result["action"]["argv"][0] == "sh"
    assert result["end"] == {"kind": "exited", "code": 0}
    other = json.loads(live.sh_in(task, "kill -9 $$", "--json").out)
    assert other["end"]["kind"] == "signaled" and other["action"]["id"] != result["action"]["id"]


def test_nothing_of_an_action_is_the_next_one_s(live):
    """The memory of one is kept for the next: its denials, its output's end, its long result."""
    task = live.begin()
    first = live.sh_in(task, "seq 20000; unshare -Ur true; exit 1", "--json")
    assert first.status == 1 and b'"sys.namespace"' in first.bytes, first
    other = json.loads(live.sh_in(task, "exit 1", "--json").out)
    assert (other["denials"], other["changes"]) == ([], [])
    assert other["streams"]["stdout_bytes"] == other["streams"]["stderr_bytes"] == 0, other
    assert live.sh_in(task, "echo x").bytes == b"x\n"


@pytest.mark.parametrize("script, status", [("exit 0", 0), ("exit 124", 124), ("kill -9 $$", 137)])
def test_status(live, script, status):
    assert live.sh_in(live.begin(), script).status == status


def test_command_is_not_found(live):
    ran = live.verb("task", "exec", live.begin(), "--", "no-such-command")
    assert ran.status == 127 and "no-such-command" in ran.err, ran


def test_timeout_ends_the_command_alone(live):
    task = live.begin()
    ran = live.sh_in(task, "sleep 60", "--timeout", "300ms")
    assert ran.status == 124 and "the command and all that it started were ended" in ran.err, ran
    assert live.sh_in(task, "echo on").out == "on\n"


def test_bytes_of_input_and_output(live):
    data = os.urandom(300_000)
    ran = live.verb("task", "exec", "--stdin", live.begin(), "--", "cat", data=data)
    assert ran.status == 0 and ran.bytes == data


def test_no_input_without_the_option(live):
    task = live.begin()
    ran = live.verb("task", "exec", task, "--", "cat", data=b"secret")
    assert (ran.status, ran.out) == (0, ""), ran
    # in each of them: the first is entered by the supervisor, the others by the zygote
    for _ in range(2):
        ran = live.sh_in(task, "cat /dev/stdin && exec 3<>/dev/stdin")
        assert (ran.status, ran.err) == (0, ""), ran


def test_environment_and_directory(live):
    (live.work / "below").mkdir()
    task = live.begin("--env", "A=1", "--env", "B=1")
    ran = live.sh_in(task, "echo $A$B$C; pwd", "--env", "B=2", "--env", "C=3", "--cwd", "below")
    assert ran.out == f"123\n{live.work}/below\n", ran
    # of the one command only
    assert live.sh_in(task, "echo $A$B$C").out == "11\n"
    for _ in range(2):
        ran = live.sh_in(task, "true", "--cwd", "nope")
        assert ran.status == 125, ran
        assert ran.err == (f"bawn: entering the directory {live.work}/nope: "
                           "No such file or directory\n"), ran


def intents(live, task):
    lines = (live.state / f"trace/tasks/{task}.jsonl").read_bytes().splitlines()
    return [r["body"] for r in map(json.loads, lines) if r["type"] == "action.intent"]


def test_meta_of_each_command(live):
    task = live.begin("--meta", "agent=claude")
    live.sh_in(task, "true", "--meta", "turn=3", "--meta", "goal=a=b \udcff\n")
    live.sh_in(task, "true")
    screen = Screen(live.work, [BAWN, "shell", *live.options, "--task", task, "--meta", "by=me",
                                "--", "true"])
    assert screen.finish() == 0
    assert [body["meta"] for body in intents(live, task)] == [
        {"turn": "3", "goal": "a=b \udcff\n"}, {}, {"by": "me"}]


@pytest.mark.parametrize("given, said", [
    (["nokey"], "KEY=VALUE"), (["=x"], "KEY=VALUE"), (["k" * 65 + "=x"], "64"),
    (["a=1", "a=2"], "twice"), ([f"k{i}=x" for i in range(65)], "64")])
def test_meta_that_is_none(live, given, said):
    task = live.begin()
    ran = live.sh_in(task, "true", *[word for meta in given for word in ("--meta", meta)])
    assert ran.status == 125 and said in ran.err and len(ran.err.splitlines()) == 1, ran
    assert intents(live, task) == []


def test_beginning_of_an_id(live):
    task = live.begin()
    assert live.sh_in(task[:8], "echo yes").out == "yes\n"
    assert live.sh_in(task[2:8], "echo yes").out == "yes\n"


def test_background_process_ends_with_the_task(live):
    task = live.begin()
    before = len(descendants())
    ran = live.sh_in(task, "sleep 1234 >/dev/null 2>&1 & echo begun")
    assert (ran.status, ran.out) == (0, "begun\n"), ran
    # the shell does not wait for its child's exec
    assert eventually(lambda: any(process["command"] == "sleep"
                                  for process in live.one()["processes"]))
    assert len(descendants()) > before
    assert live.verb("task", "end", "--grace", "200ms", task).status == 0
    live.assert_nothing_left()


def test_signal_of_the_client_is_the_command_s(live):
    """However soon it comes: what the action prints may be read before the client knows of it."""
    task = live.begin()
    for _ in range(8):
        child = live.spawn("task", "exec", task, "--",
                           *catching("INT", "print qq(caught\\n); exit 3"))
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=LIMIT_S)
        assert (child.returncode, out, err) == (3, b"caught\n", b"")


def test_client_that_goes_away(live):
    task = live.begin()
    child = live.spawn("task", "exec", task, "--",
                       *catching("HUP", "open my $f, '>', 'hangup'; exit"))
    assert child.stdout.readline() == b"ready\n"
    child.kill()
    child.wait()
    assert eventually((live.work / "hangup").exists)
    assert live.sh_in(task, "echo on").out == "on\n"


def test_idle_task_ends(live):
    task = live.begin("--idle", "300ms")
    assert live.sh_in(task, "sleep 0.6; echo busy").out == "busy\n"
    assert eventually(lambda: live.tasks() == [])
    live.assert_nothing_left()


def test_lifetime_ends_a_busy_task(live):
    task = live.begin("--lifetime", "500ms")
    began = time.monotonic()
    assert live.sh_in(task, "sleep 60").status != 0
    assert time.monotonic() - began < 10
    assert eventually(lambda: live.tasks() == [])


def test_two_ends_at_once(live):
    task = live.begin()
    children = [live.spawn("task", "end", task) for _ in range(2)]
    for child in children:
        out, err = child.communicate(timeout=LIMIT_S)
        assert b"has ended" in out + err, (out, err)
        assert child.returncode in (0, 1)
    ran = live.verb("task", "end", task)
    assert ran.status == 1 and "has ended" in ran.err and "bawn ps" in ran.err, ran


def test_supervisor_is_killed(live):
    task = live.begin()
    child = live.spawn("task", "exec", task, "--", "sleep", "1234")
    assert eventually(lambda: live.one()["actions"])
    supervisor = live.one()["pid"]
    os.kill(supervisor, signal.SIGKILL)
    _, err = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 125 and b"the task has ended" in err, err
    # its connection may be closed before its locks are
    assert eventually(lambda: nobody_left() and is_dead(supervisor))
    assert live.tasks() == []
    # the next start takes away what it left
    live.verb("task", "end", live.begin())
    live.assert_nothing_left()


class Terminal:
    """A command of ours with a terminal, as a shell would start it."""

    def __init__(self, argv, cwd):
        self.seen = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", 33, 99, 0, 0))
        self.modes = termios.tcgetattr(self.master)

        def take_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        # pylint: disable-next=consider-using-with,subprocess-popen-preexec-fn # ended below
        self.child = subprocess.Popen(argv, cwd=cwd, stdin=slave, stdout=slave, stderr=slave,
                                      start_new_session=True, preexec_fn=take_terminal)
        os.close(slave)

    def type(self, data):
        os.write(self.master, data)

    def expect(self, data, seconds=LIMIT_S):
        end = time.monotonic() + seconds
        while data not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    break
        assert data in self.seen, self.seen

    def close(self):
        status = self.child.wait(timeout=LIMIT_S)
        os.close(self.master)
        return status


@pytest.mark.parametrize("verb", ["exec", "shell"])
def test_terminal(live, verb):
    task = live.begin()
    words = {"exec": ["task", *live.options, "exec", "--tty", task, "--", "sh"],
             "shell": ["shell", *live.options, "--task", task, "--", "sh"]}
    terminal = Terminal([BAWN, *words[verb]], live.work)
    # the quotes keep the echo of what is typed from being the answer
    terminal.type(b"tty; stty size; echo re''ady\n")
    terminal.expect(b"ready")
    assert b"/dev/pts/" in terminal.seen and b"33 99" in terminal.seen, terminal.seen
    # the client may know later than the terminal that the command runs
    assert eventually(lambda: not termios.tcgetattr(terminal.master)[3] & termios.ICANON)
    fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("4H", 44, 88, 0, 0))
    os.kill(terminal.child.pid, signal.SIGWINCH)
    terminal.type(b"sleep 0.3; stty size\n")
    terminal.expect(b"44 88")
    # the interrupt is the command's, not the client's
    terminal.type(b"sleep 1234; echo int''errupted\n")
    assert eventually(lambda: any(process["command"] == "sleep"
                                  for process in live.one()["processes"]), 5)
    terminal.type(b"\x03")
    terminal.type(b"echo st''ill\n")
    terminal.expect(b"still")
    terminal.type(b"exit 9\n")
    assert eventually(lambda: terminal.child.poll() is not None), terminal.seen
    assert termios.tcgetattr(terminal.master) == terminal.modes
    assert terminal.close() == 9


def test_terminal_is_set_back_when_the_task_dies(live):
    task = live.begin()
    terminal = Terminal([BAWN, "task", *live.options, "exec", "--tty", task, "--", "sh", "-c",
                         "echo re''ady; sleep 1234"], live.work)
    terminal.expect(b"ready")
    live.verb("kill", task)
    assert eventually(lambda: terminal.child.poll() is not None), terminal.seen
    assert termios.tcgetattr(terminal.master) == terminal.modes
    assert terminal.close() != 0


BAD = {
    "no word": ([], 2, "start, exec, end or list"),
    "another word": (["begin"], 2, "begin"),
    "start with a word": (["start", "x"], 125, "no more words"),
    "start with a time": (["start", "--timeout", "1s"], 125, "--timeout"),
    "start with no duration": (["start", "--idle", "0s"], 125, "--idle"),
    "start with a bare number": (["start", "--lifetime", "5"], 125, "--lifetime"),
    "exec without a task": (["exec"], 125, "takes a task"),
    "exec without a command": (["exec", "t-x"], 125, "no command"),
    "exec in no task": (["exec", "t-x", "--", "true"], 125, "no task t-x"),
    "exec that widens": (["exec", "--read", "/usr", "t-x", "--", "true"], 125, "--read"),
    "end without a task": (["end"], 2, "takes a task"),
    "end of no task": (["end", "t-x"], 1, "no task t-x", "bawn ps"),
    "end with a path": (["end", "../x"], 1, "no task ../x"),
    "list with a word": (["list", "x"], 2, "no more words"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(live, name):
    arguments, status, *words = BAD[name]
    ran = live.verb("task", *arguments)
    assert ran.status == status and ran.out == "", ran
    assert len(ran.err.splitlines()) == 1, ran
    for word in words:
        assert word in ran.err, ran
    live.assert_nothing_left()


def test_start_that_is_refused(live):
    ran = live.verb("task", "start", "--read", "/proc")
    assert ran.status == 126 and "fs.dangerous" in ran.err, ran
    ran = live.verb("task", "start", "--workspace", "/nonexistent/x")
    assert ran.status == 125 and "/nonexistent/x" in ran.err, ran
    live.assert_nothing_left()


def test_variable_that_the_caller_lacks(live):
    ran = live.sh_in(live.begin(), "true", "--env", "NO_SUCH_VARIABLE")
    assert ran.status == 125 and "NO_SUCH_VARIABLE" in ran.err, ran


def test_nothing_of_it_is_seen_inside(live):
    task = live.begin()
    for verb in (["ps"], ["stop", "--all"], ["logs", task], ["task", "end", task]):
        ran = live.sh_in(task, f"test -e {live.state}/run && echo seen; command -v bawn")
        assert "seen" not in ran.out, (verb, ran)
