"""Each system call that starts a live task, or an action in one, fails once: as in test_faults.py.

Three programs are looked at: `task start` with the supervisor that it makes, up to its greeting;
the supervisor of a task that lives, while an action is started in it; and the client of that
action. After each fault the task lives as before, or it is gone with all that was its own, and
somebody was told.
"""
import os
import signal
import subprocess

import pytest

from boxed import BAWN, IS_ROOT, descendants, eventually, is_dead, reap
from live import live
from test_faults import INFALLIBLE, LIMIT_S, SAMPLE, Lab, check_faults, check_good, injector

__all__ = ["live", "injector"]

WRITE = 1
RENAMEAT = 264
# each costs less than a whole start does
STARTS, ACTIONS, CLIENTS = SAMPLE // 4, SAMPLE // 2, SAMPLE // 4


class StartLab(Lab):
    """`task start` under the injector; then a look from inside and the end, without it."""

    def run(self, *prefix):
        for name in ("started", "namespaces"):
            (self.place.work / name).unlink(missing_ok=True)
        began = self.execute(*prefix, BAWN, "task", "start", *self.place.options, *self.options)
        if began.returncode:
            # the one refusal after which there is a task, as it says
            if "`bawn ps` tells it" in began.stderr:
                self.execute(BAWN, "stop", "--all", *self.place.options)
            return began
        task = began.stdout.strip()
        looked = self.execute(BAWN, "task", "exec", *self.place.options, task, *self.action)
        ended = self.execute(BAWN, "task", "end", *self.place.options, task)
        status = 0
        if looked.returncode or ended.returncode:
            status = f"started, and then exec {looked.returncode}, end {ended.returncode}"
        return subprocess.CompletedProcess(began.args, status, looked.stdout,
                                           began.stderr + looked.stderr + ended.stderr)

    def calls(self):
        """The supervisor's up to its greeting: then its start is over."""
        found = super().calls()
        last = max(at for at, (process, _, call) in enumerate(found)
                   if process == 1 and call == WRITE)
        return [one for at, one in enumerate(found) if one[0] != 1 or at <= last]


class ActionLab(Lab):
    """An action in a task that lives: the supervisor's calls are failed."""

    def __init__(self, live, injector):
        self.task = self.pid = None
        self.idle_fds = self.gone = None
        self.idle_processes = set()
        super().__init__(live, injector, False)

    def begin(self):
        self.task = self.place.begin(*self.options)
        # the first action of a box has a way of its own, that of `bawn run`
        self.execute(BAWN, "task", "exec", *self.place.options, self.task, "true")
        self.pid = self.place.one()["pid"]
        self.idle_processes = descendants()
        # the connection of the look at it has to be closed first
        assert eventually(lambda: sum("socket" in one for one in self.fds()) == 2), self.fds()
        self.idle_fds = self.fds()

    def fds(self):
        """What the supervisor has open, less the files of the watchdog's look at the box."""
        found = []
        try:
            names = os.listdir(f"/proc/{self.pid}/fd")
        except PermissionError:
            # an ordinary user may not look at what a fault left not dumpable, which is stricter
            return self.idle_fds
        for name in names:
            try:
                found.append(os.readlink(f"/proc/{self.pid}/fd/{name}"))
            except OSError:
                pass
        # what the record opens when it first needs it, and keeps
        return sorted(one for one in found if not one.startswith("/proc") and
                      "/trace/blobs/" not in one and not one.endswith("/trace/executables"))

    def zygotes(self):
        return descendants() - self.idle_processes

    def open_fds(self):
        """The same less the edge to the zygote, where there is one."""
        found = self.fds()
        edges = [one for one in found if "socket" in one and one not in self.idle_fds]
        return [one for one in found if one not in edges[:len(self.zygotes())]]

    def under(self, *arguments):
        if not self.task:
            self.begin()
        return [self.injector, "of", self.pid, *arguments, self.note, "--"]

    def run(self, *prefix):
        for name in ("started", "namespaces"):
            (self.place.work / name).unlink(missing_ok=True)
        if not self.task:
            self.begin()
        # one that is made anew is made under the injector
        ended = self.zygotes()
        for pid in ended:
            os.kill(pid, signal.SIGKILL)
        # one that is still dying would be asked, and take the action with it
        assert eventually(lambda: all(map(is_dead, ended)))
        ran = self.execute(*prefix, BAWN, "task", "exec", *self.place.options, self.task,
                           *self.action)
        self.gone = False
        if ran.returncode:
            reap()
            self.gone = not self.lives()
        if self.gone:
            self.task = None
        return ran

    def lives(self):
        """Whether it answers that it has nothing to do. One that ends is waited for."""
        def is_settled():
            reap()
            found[:] = [task["state"] for task in self.place.tasks()]
            return found in ([], ["idle"])

        found = []
        assert eventually(is_settled, LIMIT_S), f"the task is {found}, and stays so"
        return found == ["idle"]

    def all_calls(self):
        """Those of three runs: what happens after the exec depends on who is faster."""
        runs = [super(ActionLab, self).all_calls() for _ in range(3)]
        return [one for one in runs[0] if one in runs[1] and one in runs[2]]

    def calls(self):
        return [one for one in self.all_calls() if one[2] not in INFALLIBLE]

    def complaint(self, ran, call):
        said = super().complaint(ran, call)
        # a task that ends takes with it what it has begun
        return None if said and "yet the command" in said and self.gone else said

    def left(self):
        if not self.task:
            return super().left()
        if not eventually(lambda: reap() or len(self.zygotes()) <= 1 and
                          self.idle_processes <= descendants(), LIMIT_S):
            return f"left processes {descendants()}"
        if not eventually(lambda: self.open_fds() == self.idle_fds, LIMIT_S):
            return f"the supervisor has {self.fds()} open, and had {self.idle_fds}"
        return None

    def clear(self):
        self.execute(BAWN, "kill", "--all", *self.place.options)
        self.task = None
        self.place.assert_nothing_left()


class ClientLab(ActionLab):
    """The client of an action: what it began may run when it fails, and ends without it."""

    def under(self, *arguments):
        return [self.injector, *arguments, self.note, "--"]

    def calls(self):
        return Lab.calls(self)

    def complaint(self, ran, call):
        said = super().complaint(ran, call)
        return None if said and ("yet the command" in said) else said


def test_start_of_a_task(live, injector):
    lab = StartLab(live, injector, False)
    check_good(lab)
    check_faults(lab, "start of a task", STARTS)


@pytest.mark.parametrize("kind, what, sample", [(ActionLab, "action of a task", ACTIONS),
                                                (ClientLab, "client of a task", CLIENTS)])
def test_action_in_a_task(live, injector, kind, what, sample):
    lab = kind(live, injector)
    check_good(lab)
    check_faults(lab, what, sample)
    assert IS_ROOT or lab.task
    lab.clear()


@pytest.mark.parametrize("verb", [["task", "end"], ["stop"], ["kill"]], ids=" ".join)
def test_what_has_ended_has_left_nothing(live, injector, verb):
    """Who waits for an end does not see it before the task's directory is gone."""
    note = live.base / "note"
    task = live.begin()
    # the look is the command's: the injector holds the supervisor up, and with it itself
    ran = subprocess.run([injector, "of", str(live.one()["pid"]), "slow", str(RENAMEAT), note, "--",
                          "/bin/sh", "-c", '"$@" >&2; echo $?; ls "$0"', live.state / "tasks", BAWN,
                          *verb, *live.options, task], check=False, timeout=LIMIT_S,
                         capture_output=True, text=True)
    assert ran.stdout == "0\n", ran
    assert "hit" in note.read_text(), "nothing was held up"
    live.assert_nothing_left()
