"""A live task that waits costs nothing, and is watched again as soon as it works."""
import os
import socket
import struct
from pathlib import Path

from boxed import LIMIT_S, eventually
from live import live

__all__ = ["live"]


def supervisor(live, task):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        # sun_path is short: by way of the directory
        at = os.open(live.state / "run", os.O_PATH)
        connection.connect(f"/proc/self/fd/{at}/{task}")
        os.close(at)
        return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED,
                                                         12))[0]


def used_ns(pid):
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0])


def moves(pid, seconds):
    """Whether it computes within the time; it looks once a second, where it does."""
    before = used_ns(pid)
    return eventually(lambda: used_ns(pid) != before, seconds)


def at_rest(pid):
    return not moves(pid, 1.5)


def test_nothing_to_do_costs_nothing(live):
    task = live.begin()
    pid = supervisor(live, task)
    assert eventually(lambda: at_rest(pid)), "it looks at an empty box"
    assert live.sh_in(task, "true").status == 0
    assert eventually(lambda: at_rest(pid)), "it goes on to look at an empty box"


def test_what_an_action_leaves_running_is_watched(live):
    task = live.begin()
    assert live.sh_in(task, "sleep 60 >/dev/null 2>&1 &").status == 0
    pid = supervisor(live, task)
    for _ in range(3):
        assert moves(pid, LIMIT_S), "a process of the task is not looked at"


def test_limits_hold_after_a_rest(live):
    task = live.begin("--cpu-time", "500ms")
    pid = supervisor(live, task)
    assert eventually(lambda: at_rest(pid))
    ran = live.verb("task", "exec", "--json", task, "--", "sh", "-c", "while :; do :; done",
                    limit=3 * LIMIT_S)
    assert ran.result["cause"] == "limit", ran
