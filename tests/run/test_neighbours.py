"""What the kernel counts of a user, beyond the box: a task that uses it up stops no other one."""
import resource

import pytest

from boxed import eventually, select_ready
from live import live

__all__ = ["live"]

# With the most descriptors that a task may have under way in sockets (unix(7), ETOOMANYREFS).
KEEP_UNDER_WAY = r"""
import array, errno, resource, socket, sys, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))]
kept, full = [], False
while not full:
    kept.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM))
    try:
        for _ in range(20):
            kept[-1][0].sendmsg([b"x"], rights)
    except OSError as error:
        full = error.errno == errno.ETOOMANYREFS
        assert full, error
print(hard, flush=True)
time.sleep(60)
"""


def test_descriptors_under_way(live):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < 16384 + 512:
        pytest.skip("the hard limit of open files is not above a task's")
    few = ["prlimit", f"--nofile=256:{hard}"]
    bomb = live.start("--", "python3", "-c", KEEP_UNDER_WAY)
    try:
        assert select_ready(bomb).strip() == b"16384"
        ran = live.run("--", "sh", "-c", "ulimit -Hn", prefix=few)
        assert (ran.status, ran.out) == (0, "16384\n"), ran
        task = live.verb("task", "start", prefix=few)
        assert task.status == 0, task
        ran = live.verb("task", "exec", task.out.strip(), "--", "echo", "on", prefix=few)
        assert (ran.status, ran.out) == (0, "on\n"), ran
        # a run has its socket when it is no longer young
        assert eventually(lambda: "unknown" not in live.verb("ps", prefix=few).out)
        ran = live.verb("ps", prefix=few)
        assert ran.status == 0 and "unknown" not in ran.out, ran
        assert bomb.poll() is None
    finally:
        bomb.terminate()
        bomb.communicate()
    assert live.verb("stop", "--all").status == 0
    live.assert_nothing_left()
