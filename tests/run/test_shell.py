"""bawn shell as a person uses it: editors, pagers, job control, and the terminal afterwards."""
import os
import shutil
import signal
import termios
import time

import pytest

from boxed import BAWN, eventually, waits
from live import live
from screen import Screen

__all__ = ["live"]

NEEDED = termios.ICANON | termios.ECHO | termios.ISIG


class Session(Screen):
    """`bawn shell` in the foreground; at the end the terminal is as it was."""

    def __init__(self, live, *words):
        super().__init__(live.work, [BAWN, "shell", *live.options, *words], rows=30, columns=90,
                         PS1="$ ")

    def modes(self):
        return super().modes() & NEEDED

    def at_end(self):
        assert self.modes() == NEEDED, "the terminal is not as it was"


def needs(program):
    return pytest.mark.skipif(not shutil.which(program, path="/usr/bin:/bin"),
                              reason=f"{program} is not installed")


@pytest.fixture(params=["own box", "live task"])
def session(request, live):
    words = ["--task", live.begin()] if request.param == "live task" else []
    return Session(live, *words, "--", "bash", "--norc", "-i")


def test_keys_and_status(session):
    session.wait_for("$ ")
    session.type("sleep 100\r")
    session.wait_for("sleep 100")
    assert eventually(lambda: waits("sleep", "100"))
    session.type("\x1a")
    session.wait_for("Stopped")
    session.type("fg\r")
    session.wait_for("sleep 100")
    assert eventually(lambda: waits("sleep", "100"))
    session.type("\x1c")
    session.wait_for("Quit")
    session.type("sleep 101\r")
    session.wait_for("sleep 101")
    assert eventually(lambda: waits("sleep", "101"))
    session.type("\x03")
    session.wait_for("$ ")
    session.type("echo $?\r")
    session.wait_for("130\r\n")
    session.resize(22, 71)
    session.type('until [ "$(stty size)" = "22 71" ]; do sleep 0.1; done; stty size\r')
    session.wait_for("22 71\r\n")
    session.type("exit 9\r")
    assert session.finish() == 9


@needs("vim")
def test_vim(session, live):
    session.wait_for("$ ")
    session.type("vim -u NONE -N made.txt\r")
    session.wait_for("made.txt")
    session.type("ihello from vim\x1b")
    time.sleep(0.3)
    session.type(":wq\r")
    session.wait_for("written")
    session.wait_for("$ ")
    session.type("exit\r")
    assert session.finish() == 0
    assert (live.work / "made.txt").read_text() == "hello from vim\n"


@needs("less")
def test_less(session):
    session.wait_for("$ ")
    session.type("seq 1000 | less\r")
    session.wait_for("\r\n28")
    session.type("G")
    session.wait_for("1000")
    session.type("q")
    session.wait_for("$ ")
    session.type("exit 3\r")
    assert session.finish() == 3


@needs("tmux")
def test_tmux(session):
    session.wait_for("$ ")
    # keys that come close together on a busy host are still keys, and not what was pasted
    session.type("tmux -f /dev/null start-server ';' set -g assume-paste-time 0 ';' "
                 "new-session 'bash --norc -i'\r")
    session.wait_for("[0]")
    session.type("echo in-$((40+2))\r")
    session.wait_for("in-42")
    session.type("\x02\"")
    session.wait_for("$ ")
    session.type("echo split-$((40+3)); exit\r")
    session.wait_for("split-43")
    # drawn anew, with one pane
    session.wait_for("\x1b[H")
    session.type("exit\r")
    session.wait_for("[exited]")
    session.type("exit 4\r")
    assert session.finish() == 4


def test_an_end_by_signal_restores_the_terminal(session):
    session.wait_for("$ ")
    # the supervisor may write the first prompt before the client has come to its terminal
    assert eventually(lambda: session.modes() != NEEDED), "raw while the shell has it"
    os.kill(session.pid, signal.SIGTERM)
    time.sleep(0.2)
    os.kill(session.pid, signal.SIGTERM)
    assert session.finish() != 0
