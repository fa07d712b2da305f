"""How actions come into a box that others are in: from its zygote, or with a copy of memory."""
import os
import signal

import pytest

from boxed import IS_ROOT, LIMIT_S, descendants, eventually, is_dead, nobody_left, reap
from live import kill_later, live

__all__ = ["live"]

# more than the zygote has room for, less than the kernel's limit for one argument
LONG = "x" * (96 * 1024)
WAYS = {"zygote": "x", "copy": LONG}
LOOK = """
# by the shell itself: while it makes a child its signals are blocked
while read -r key value; do case $key in Umask*|Uid*|Gid*|Groups*|SigBlk*|SigIgn*|SigCgt*|Cap*|\
NoNewPrivs*|Seccomp*|Specul*) printf '%s\t%s\n' "$key" "$value";; esac; done </proc/$$/status
cat /proc/$$/oom_score_adj /proc/$$/limits /proc/$$/cgroup
echo fds $(sleep 0.1; ls /proc/$$/fd) # the shell has closed its end of the pipe by then
echo "session $(($(cut -d' ' -f6 /proc/$$/stat) - $$))"
for kind in cgroup ipc mnt net pid user; do readlink /proc/$$/ns/$kind; done
pwd; env | sort; ls / /proc/self/root; echo probe > /proc/self/comm
cat /etc/shadow /sys/kernel/notes 2>&1 | head -c 200; mkdir /etc/here /here 2>&1
"""


def supervisor(live):
    return live.one()["pid"]


def zygote(live):
    """Its process: the child of the supervisor that is no process 1."""
    def is_init(pid):
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return "init" in file.read()

    found = [pid for pid in descendants(supervisor(live)) if not is_init(pid)]
    assert len(found) == 1, found
    return found[0]


def zygote_among(live):
    """The same where actions have left others running: it alone is in no box's pid namespace."""
    def is_outside(pid):
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return any(line.startswith("NSpid:") and len(line.split()) == 2 for line in file)

    found = [pid for pid in descendants(supervisor(live)) if is_outside(pid)]
    assert len(found) == 1, found
    return found[0]


def enter(live, task, script, argument="x"):
    return live.verb("task", "exec", task, "--", "sh", "-c", script, "sh", argument)


def test_every_way_has_the_same_layers(live):
    task = live.begin()
    # the first action of a box comes in with the supervisor's memory
    first = enter(live, task, LOOK)
    assert "NoNewPrivs:\t1" in first.out and "CapBnd:\t0000000000000000" in first.out
    for argument in WAYS.values():
        ran = enter(live, task, LOOK, argument)
        assert ran.status == first.status and ran.out == first.out


def test_actions_are_apart(live):
    """Each has a UTS namespace, a session and, where there is one, a Landlock domain of its own."""
    task = live.begin()
    enter(live, task, "true")
    one = enter(live, task, "readlink /proc/self/ns/uts; hostname; sleep 1234 >/dev/null 2>&1 &"
                            " echo $!")
    look = f"readlink /proc/self/ns/uts; hostname; kill -0 {one.out.split()[-1]} 2>&1"
    other = enter(live, task, look)
    copied = enter(live, task, look, LONG)
    # the first is still there, so that its number is not another's
    space = one.out.splitlines()[0]
    assert space not in (other.out.splitlines()[0], copied.out.splitlines()[0])
    assert other.status == copied.status and other.out.splitlines()[1:] == \
        copied.out.splitlines()[1:], (other, copied)


@pytest.mark.parametrize("options", [[], ["--pids", "64"]], ids=["signals", "group"])
def test_a_frozen_one_ends_with_its_supervisor(live, options):
    """It could not see its pair end; where a group can be made, its freezer holds it."""
    if options and not IS_ROOT:
        pytest.skip("only root makes control groups here")
    task = live.begin(*options)
    for _ in range(2):
        assert enter(live, task, "sleep 1234 >/dev/null 2>&1 &").status == 0
    mine, leader = zygote_among(live), supervisor(live)
    assert live.verb("freeze", task).status == 0
    os.kill(leader, signal.SIGKILL)
    assert eventually(lambda: is_dead(mine)), "frozen for good"
    assert eventually(nobody_left), descendants()


def test_it_is_not_seen_inside(live):
    task = live.begin()
    for _ in range(2):
        ran = enter(live, task, "ls /proc | grep -c '^[0-9]'; kill -0 -- -1; cat /proc/[0-9]*/comm")
        assert "bawn\n" not in ran.out, ran
    # process 1, the shell, ls and grep
    assert int(ran.out.splitlines()[0]) <= 4, ran
    assert zygote(live)


def test_it_holds_its_edge_alone(live):
    task = live.begin()
    enter(live, task, "true")
    enter(live, task, "true")
    pid = zygote(live)
    try:
        held = sorted(os.readlink(f"/proc/{pid}/fd/{name}").split(":")[0]
                      for name in os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        pytest.skip("it is not dumpable: root alone can look")
    assert [one for one in held if one != "/dev/null"] == ["anon_inode", "socket"], held


def test_one_that_was_killed_is_replaced(live):
    task = live.begin()
    enter(live, task, "true")
    enter(live, task, "true")
    before = zygote(live)
    os.kill(before, signal.SIGKILL)
    # what one that is still dying is asked is lost with it
    assert eventually(lambda: is_dead(before))
    ran = enter(live, task, "echo again")
    assert (ran.status, ran.out) == (0, "again\n"), ran
    assert zygote(live) != before
    assert live.verb("task", "end", task).status == 0
    live.assert_nothing_left()


def test_one_that_is_held_up_holds_up_no_other_action(live):
    task = live.begin()
    enter(live, task, "true")
    enter(live, task, "true")
    pid = zygote(live)
    os.kill(pid, signal.SIGSTOP)
    held = live.spawn("task", "exec", task, "--", "echo", "late")
    try:
        assert eventually(lambda: live.one()["actions"]) and held.poll() is None
        ran = enter(live, task, "echo meanwhile")
        assert (ran.status, ran.out) == (0, "meanwhile\n"), ran
    finally:
        os.kill(pid, signal.SIGCONT)
    out, err = held.communicate(timeout=20)
    assert (held.returncode, out, err) == (0, b"late\n", b"")
    assert zygote(live) == pid


def test_action_that_is_given_up_in_it_never_runs(live):
    task = live.begin()
    enter(live, task, "true")
    enter(live, task, "true")
    pid = zygote(live)
    os.kill(pid, signal.SIGSTOP)
    held = live.spawn("task", "exec", task, "--", "touch", "ran")
    try:
        assert eventually(lambda: live.one()["actions"])
    finally:
        held.kill()
        held.communicate()
    assert eventually(lambda: not live.one()["actions"])
    kill_later(pid)
    ran = enter(live, task, "ls ran 2>&1; echo next")
    assert ran.out.endswith("next\n") and "No such file" in ran.out, ran
    assert zygote(live) != pid
    assert live.verb("task", "end", task).status == 0
    live.assert_nothing_left()


def test_interrupt_before_it_began(live):
    """The supervisor knows that it has not, and ends its start."""
    task = live.begin()
    enter(live, task, "true")
    enter(live, task, "true")
    pid = zygote(live)
    os.kill(pid, signal.SIGSTOP)
    held = live.spawn("task", "exec", task, "--", "touch", "ran")
    try:
        assert eventually(lambda: live.one()["actions"])
        held.send_signal(signal.SIGINT)
        out, _ = held.communicate(timeout=LIMIT_S)
        assert (held.returncode, out) == (128 + signal.SIGINT, b"")
        assert not live.one()["actions"]
    finally:
        kill_later(pid)
    assert enter(live, task, "echo next; ls ran").out == "next\n"


def test_it_ends_with_its_supervisor(live):
    task = live.begin()
    enter(live, task, "true")
    enter(live, task, "true")
    pid, leader = zygote(live), supervisor(live)
    os.kill(leader, signal.SIGKILL)
    assert eventually(lambda: reap() or not os.path.exists(f"/proc/{pid}"))


def test_failed_commands_leave_it_alone(live):
    task = live.begin()
    enter(live, task, "true")
    assert live.verb("task", "exec", task, "--", "no-such-command").status == 127
    pid = zygote(live)
    assert live.verb("task", "exec", task, "--", "no-such-command").status == 127
    assert live.verb("task", "exec", task, "--", "/etc/passwd").status == 126
    assert live.verb("task", "exec", task, "--cwd", "none", "--", "true").status == 125
    assert enter(live, task, "echo on").out == "on\n"
    assert zygote(live) != pid
