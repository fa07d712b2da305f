"""Live tasks for the benches: started and ended by the verbs, asked by the control protocol."""
import contextlib
import fcntl
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

from measure import Failed

# src/ipc/control.h
VERSION = 3
EXEC, STARTED, RESULT = 2, 65, 66
# linux/fcntl.h
F_ADD_SEALS = 1033
SEALS = 1 | 2 | 4 | 8


def sealed(content):
    fd = os.memfd_create("request", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, content)
    fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
    return fd


def request(argv):
    """The blob of an EXEC: src/ipc/control.c, control_encode()."""
    def text(word):
        return struct.pack("<I", len(word)) + word.encode() + b"\0"

    return (struct.pack("<IIQIIII", VERSION, 0, 0, 0, 0, 0, 0) + text("") +
            struct.pack("<I", len(argv)) + b"".join(map(text, argv)) +
            struct.pack("<III", 0, 0, 0) + text(""))


class Task:
    """One box, of which the supervisor is another process."""

    def __init__(self, bench, options=()):
        self.bawn, self.state = bench.run[0], bench.run[3]
        self.environment = bench.environment
        self.prefix = list(getattr(bench, "prefix", ()))
        self.id = self.verb("task", "start", *options).strip()

    def verb(self, *words):
        """The output of a verb; `task start` says the id there."""
        place = 2 if words[0] == "task" else 1
        argv = [*self.prefix, self.bawn, *words[:place], "--state-dir", self.state, *words[place:]]
        ran = subprocess.run(argv, env=self.environment, stdin=subprocess.DEVNULL, timeout=60,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if ran.returncode != 0:
            raise Failed(f"{' '.join(words)}: status {ran.returncode}, {ran.stderr.strip()[:200]}")
        return ran.stdout

    def command(self, *words):
        return [self.bawn, "task", "exec", "--state-dir", self.state, self.id, "--", *words]

    def ask(self, argv, null):
        """Nanoseconds of an action from the request until its result, by a client that is there."""
        begin = time.perf_counter_ns()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(f"{self.state}/run/{self.id}")
            blob = sealed(request(argv))
            socket.send_fds(connection, [struct.pack("<II", EXEC, 0)], [blob, null, null])
            os.close(blob)
            kind = 0
            while kind != RESULT:
                message, fds, _, _ = socket.recv_fds(connection, 4096, 4)
                for fd in fds:
                    os.close(fd)
                if len(message) < 8:
                    raise Failed("the supervisor closed the connection")
                kind = struct.unpack_from("<I", message)[0]
                if kind not in (STARTED, RESULT):
                    raise Failed(f"the supervisor refused: {message[12:].decode()}")
        end = time.perf_counter_ns()
        if status := struct.unpack_from("<I", message, 8)[0]:
            raise Failed(f"{' '.join(argv)} in the live box: status {status}")
        return end - begin

    @property
    def supervisor(self):
        """Who has the lock of the task's directory: it is asked by its socket's peer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(f"{self.state}/run/{self.id}")
            return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET,
                                                             socket.SO_PEERCRED, 12))[0]

    def end(self):
        with contextlib.suppress(Failed, subprocess.SubprocessError):
            self.verb("kill", self.id)


@contextlib.contextmanager
def tasks(bench, count, options=()):
    """That many live tasks, ended with the block, whatever happens in it."""
    started = []
    try:
        for _ in range(count):
            started.append(Task(bench, options))
        yield started
    finally:
        # the alarm of the bench has rung, or not: the end has a time of its own
        signal.alarm(0)
        for task in started:
            task.end()


def processor_ns(pid):
    """Time on a processor, exact (schedstat: proc(5))."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0])


def share(pids, seconds):
    """Per cent of one processor that they take together."""
    begin, before = time.monotonic_ns(), sum(map(processor_ns, pids))
    time.sleep(seconds)
    used = sum(map(processor_ns, pids)) - before
    return 100 * used / (time.monotonic_ns() - begin)
