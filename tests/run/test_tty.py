"""A terminal of bawn's own between the command and the caller's: job control, size, bytes, ends."""
import os
import signal
import termios

from boxed import catching, eventually, nobody_left, place, waits
from screen import Screen

__all__ = ["place"]

RAW = termios.ICANON | termios.ECHO | termios.ISIG


def tty(place, *words):
    return Screen(place.work, [*place.argv("--tty", "--"), *words], rows=33, columns=101)


def test_it_is_a_terminal(place):
    screen = tty(place, "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty; stty size; cat")
    screen.wait_for("/dev/pts/0\r\n")
    screen.wait_for("33 101\r\n")
    screen.type("hello\r")
    screen.wait_for("hello\r\nhello\r\n")
    screen.type("\x04")
    assert screen.finish() == 0
    place.assert_nothing_left()


def test_window_size(place):
    screen = tty(place, *catching("WINCH", "system 'stty size'; exit 4"))
    screen.wait_for("ready")
    screen.resize(20, 50)
    screen.wait_for("20 50")
    assert screen.finish() == 4


def test_job_control(place):
    screen = tty(place, "bash", "--norc", "-i")
    screen.wait_for("$ ")
    screen.type("sleep 100\r")
    assert eventually(lambda: waits("sleep", "100"))
    screen.type("\x1a")
    screen.wait_for("Stopped")
    screen.type("fg\r")
    screen.wait_for("sleep 100\r\n")
    assert eventually(lambda: waits("sleep", "100"))
    screen.type("\x03")
    screen.wait_for("$ ")
    screen.type("echo $?; exit 7\r")
    screen.wait_for("130")
    assert screen.finish() == 7
    place.assert_nothing_left()


def test_interrupt_ends_the_command(place):
    screen = tty(place, "sh", "-c", "echo ready; exec sleep 100")
    screen.wait_for("ready")
    screen.type("\x03")
    assert screen.finish() == 128 + signal.SIGINT
    place.assert_nothing_left()


def test_the_callers_terminal_is_restored(place):
    screen = tty(place, "sh", "-c", "stty raw -echo; echo ready; exec sleep 100")
    before = RAW
    screen.wait_for("ready")
    assert not screen.modes() & before, "raw while the command has the terminal"
    os.kill(screen.pid, signal.SIGTERM)
    assert eventually(lambda: not screen.read() or screen.modes() & before == before)
    screen.finish()
    place.assert_nothing_left()


def test_a_terminal_that_disappears(place):
    screen = tty(place, "sh", "-c", "echo ready; exec sleep 100")
    screen.wait_for("ready")
    os.close(screen.fd)
    assert eventually(nobody_left), "the terminal has gone, and something still runs"


def test_what_makes_a_terminal_type_is_dropped(place):
    screen = tty(place, "printf", r"a\033[21tb\033]52;c;ZWNobw==\007c\033[31md\033]0;title\007e")
    screen.wait_for("ab")
    screen.wait_for("c\x1b[31md")
    assert screen.finish() == 0
    assert b"52;" not in screen.text
