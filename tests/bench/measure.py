"""How the benches measure: children timed from spawn to reaped, interleaved with their peer.

Every child has /dev/null as its input and output and must end with status 0. Whatever a bench
starts is killed when its time limit has passed.
"""
import contextlib
import json
import os
import signal
import statistics
import subprocess
import time

NULL = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]

alive = set()


class Failed(Exception):
    """A measured command failed or took too long; there is no number then."""


@contextlib.contextmanager
def limit(seconds):
    """Ends what the body started, and the body, when the time has passed."""
    def over(_signal, _frame):
        raise Failed(f"took longer than {seconds} s")

    signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        for pid in list(alive):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            alive.discard(pid)


def spawn(argv, environment):
    pid = os.posix_spawn(argv[0], argv, environment, file_actions=NULL, setsigmask=(),
                         setsigdef=(signal.SIGPIPE,))
    alive.add(pid)
    return pid


def reap(pid=-1):
    """Waits for a child; returns its pid and exit status (negative: the signal)."""
    pid, status = os.waitpid(pid, 0)
    alive.discard(pid)
    return pid, os.waitstatus_to_exitcode(status)


def once(argv, environment):
    """Nanoseconds from the spawn of argv until it has been waited for."""
    begin = time.perf_counter_ns()
    pid = spawn(argv, environment)
    _, status = reap(pid)
    end = time.perf_counter_ns()
    if status != 0:
        raise Failed(f"{' '.join(argv)}: status {status}")
    return end - begin


def interleaved(count, *measures, warm=3):
    """Calls the measures in turn, count rounds; each round begins with another one."""
    samples = [[] for _ in measures]
    for number in range(-warm, count):
        for offset in range(len(measures)):
            index = (number + offset) % len(measures)
            value = measures[index]()
            if number >= 0:
                samples[index].append(value)
    return samples


def flight(argv, environment, count, width):
    """Starts argv count times, width at a time; returns seconds and the statuses that are not 0."""
    begin = time.perf_counter_ns()
    started, failures = 0, []
    while started < count or alive:
        while started < count and len(alive) < width:
            spawn(argv, environment)
            started += 1
        _, status = reap()
        if status != 0:
            failures.append(status)
    return (time.perf_counter_ns() - begin) / 1e9, failures


def rate(argv, environment, count, width):
    """Starts of argv in a second, width at a time. xargs starts them: it costs less than we do."""
    command = ["/usr/bin/xargs", "-P", str(width), "-I", "{}", *argv]
    lines = "x\n" * count
    begin = time.perf_counter_ns()
    status = subprocess.run(command, env=environment, input=lines.encode(), timeout=60,
                            stdout=subprocess.DEVNULL).returncode
    seconds = (time.perf_counter_ns() - begin) / 1e9
    if status != 0:
        raise Failed(f"{' '.join(argv)}: not all of {count} starts succeeded")
    return count / seconds


def median_ratio(ours, theirs):
    """The median of the ratios of what was measured side by side."""
    return statistics.median(our / their for our, their in zip(ours, theirs))


def quartiles(values):
    first, _, third = statistics.quantiles(values, n=4)
    return first, third


class Worker:
    """inside.py in a process of its own: bare, or in a box that is started once."""

    def __init__(self, prefix, script, jobs, environment):
        self.child = subprocess.Popen(
            [*prefix, "/usr/bin/python3", "-I", "-S", script, json.dumps(jobs)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0)
        alive.add(self.child.pid)

    def measure(self, name):
        """Nanoseconds that the job of this name took, and those of processor time."""
        self.child.stdin.write(name.encode() + b"\n")
        answer = self.child.stdout.readline().decode(errors="replace").strip()
        numbers = answer.split()
        if len(numbers) != 2 or not answer.replace(" ", "").isdigit():
            raise Failed(f"{name}: {answer or 'the worker ended'}")
        return int(numbers[0]), int(numbers[1])

    def close(self):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()
        alive.discard(self.child.pid)
