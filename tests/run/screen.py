"""A terminal of the tests' own, in a session of its own, as an emulator starts a program."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import pytest

from boxed import LIMIT_S


class Screen:
    """A command line in the foreground of the terminal: what it writes, and keys for it."""

    def __init__(self, cwd, argv, rows=24, columns=100, **variables):
        self.bytes = b""  # everything so far
        self.is_over = False
        self.read_to = 0  # what wait_for() has gone past
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.environ.update({"TERM": "xterm", **variables})
            os.execvp(argv[0], [*map(str, argv)])
        self.resize(rows, columns)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def modes(self):
        """The local modes: c_lflag of termios(3)."""
        return termios.tcgetattr(self.fd)[3]

    def read(self):
        """False at the end of the session."""
        if not self.is_over and select.select([self.fd], [], [], 0.05)[0]:
            try:
                chunk = os.read(self.fd, 65536)
            except OSError:
                chunk = b""
            self.is_over = not chunk
            self.bytes += chunk
        return not self.is_over

    @property
    def text(self):
        """What has come since the last thing that was waited for."""
        return self.bytes[self.read_to:]

    def wait_until(self, condition, what):
        """Reads until the condition holds for everything so far."""
        end = time.monotonic() + LIMIT_S
        while not condition(self.bytes):
            assert time.monotonic() < end and self.read(), f"no {what} in {self.text[-2000:]!r}"

    def wait_for(self, text):
        """Reads until the text comes, and goes past it."""
        wanted = text.encode()
        self.wait_until(lambda got: got.find(wanted, self.read_to) >= 0, repr(text))
        self.read_to = self.bytes.index(wanted, self.read_to) + len(wanted)

    def finish(self):
        """The exit status, once everything is read."""
        end = time.monotonic() + LIMIT_S
        # what the command left running keeps the terminal open
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while select.select([self.fd], [], [], 0)[0] and self.read():
                    pass
                self.at_end()
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            if not self.read():
                time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        pytest.fail(f"no end; {self.text[-2000:]!r}")

    def at_end(self):
        """For more to look at while the terminal is still there."""
