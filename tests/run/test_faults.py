"""Each system call of a start fails once, with each of four errors: never a weaker run.

tests/tools/inject.c numbers the calls of a good run up to the exec of the command, in the
supervisor, the builder, process 1 and the entering processes, and then fails one of them. The
outcome is a refusal with a message, nothing started and nothing left, or a run with every layer
on, which the command itself looks at. A good run follows, in the same state directory.
"""
import errno
import os
import platform
import pwd
import random
import shutil
import subprocess
import time

import pytest

from boxed import (BAWN, IS_ROOT, ROOT, descendants, eventually, listing, nobody_left, place,
                   remove_tree)

__all__ = ["place"]

ERRORS = [errno.ENOSYS, errno.EPERM, errno.ENOMEM, errno.EINTR]
SOAK = bool(os.environ.get("BAWN_SOAK"))
# for a call that is made or not, as one process is faster or slower than another
TRIES = 3
# of each kind of start
SAMPLE = int(os.environ.get("BAWN_FAULTS", "24"))
# root's are others
SEED = int(os.environ.get("BAWN_SEED", "20240229")) + IS_ROOT
# "2/4": the second of four parts of a complete run, which may run side by side
PART, PARTS = map(int, os.environ.get("BAWN_PART", "1/1").split("/"))
LIMIT_S = 30

NUMBERS = {"brk": 12, "exit": 60, "exit_group": 231, "rt_sigreturn": 15, "fcntl": 72, "execve": 59,
           "execveat": 322, "umask": 95, "clock_gettime": 228}
# These cannot fail in a way that a program could see.
INFALLIBLE = {NUMBERS[name] for name in ("brk", "exit", "exit_group", "rt_sigreturn", "umask",
                                                "clock_gettime")}

LOOK = r"""
: >started
while read -r key value; do case $key in Seccomp:|NoNewPrivs:|Cap*|SigBlk:|SigIgn:)
	echo "$key $value";; esac; done </proc/self/status
for n in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$n; done >namespaces
awk '{ for (i = 7; $i != "-"; i++); print "mount", $5, $6, $(i + 1) }' /proc/self/mountinfo
echo fds /proc/self/fd/* $(readlink /proc/self/fd/0)
echo core $(ulimit -Hc) host $(hostname) user $(id -u) $(id -g) cwd $(pwd -P) mask $(umask)
for f in %s /run/bawn/canary /proc/1/environ secret hidden/a.key; do
	cat $f 2>/dev/null && echo readable $f; done
for f in kept /usr/x /proc/sys/kernel/hostname; do
	(echo x >>$f) 2>/dev/null && echo writable $f; done
read -r _ _ _ _ group session _ </proc/self/stat; [ $session = $$ ] && echo session
"""


@pytest.fixture(scope="module")
def injector(tmp_path_factory):
    if platform.machine() != "x86_64":
        pytest.skip("the injector knows only x86_64")
    path = tmp_path_factory.mktemp("inject") / "inject"
    subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-o", path,
                    ROOT / "tests/tools/inject.c"], check=True)
    yield path
    shutil.rmtree(path.parent)


class Lab:
    def __init__(self, place, injector, is_cold):
        self.place, self.injector, self.is_cold = place, injector, is_cold
        self.note = place.base / "note"
        self.home = pwd.getpwuid(os.geteuid()).pw_dir
        canary = place.base / "canary"
        canary.write_text("of the host\n")
        (place.work / "secret").write_text("secret\n")
        (place.work / "hidden").mkdir()
        (place.work / "hidden" / "a.key").write_text("secret\n")
        (place.work / "kept").write_text("kept\n")
        self.options = ["--hide", "secret", "--hide", "**/*.key", "--protect", "kept"]
        self.action = ["--", "bash", "-c", LOOK % canary]
        self.own = {os.readlink(f"/proc/self/ns/{name}")
                    for name in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")}
        self.before = listing(place.work)
        self.reset()
        self.good = self.run().stdout
        if not is_cold:
            return
        self.reset()

    def reset(self):
        if self.is_cold:
            remove_tree(self.place.state)
            self.place.state.mkdir(mode=0o700)

    def run(self, *prefix):
        for name in ("started", "namespaces"):
            (self.place.work / name).unlink(missing_ok=True)
        return self.execute(*prefix, *self.place.argv(*self.options, *self.action))

    def execute(self, *argv):
        child = subprocess.Popen([*map(str, argv)], cwd=self.place.work,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        try:
            out, err = child.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            for pid in descendants():
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
            out, err = child.communicate()
            return subprocess.CompletedProcess(child.args, "no end", out, err)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def under(self, *arguments):
        """What stands before a command whose calls are listed or failed."""
        return [self.injector, *arguments, self.note, "--"]

    def all_calls(self):
        """(process, nth, call) of a good run, in the order of the calls."""
        assert self.run(*self.under("list")).returncode == 0
        return [tuple(map(int, line.split())) for line in self.note.read_text().splitlines()]

    def calls(self):
        """Those that can fail, without what comes before main()."""
        found = self.all_calls()
        main = found.index((0, 0, NUMBERS["fcntl"]))
        return [one for at, one in enumerate(found)
                if one[2] not in INFALLIBLE and (one[0] or at >= main)]

    def fail(self, process, nth, call, code):
        """Whether the call was met, and the run. A start makes some calls every other time only."""
        for _ in range(3):
            self.reset()
            ran = self.run(*self.under("fail", process, nth, call, code))
            if self.note.read_text() == "hit\n":
                return True, ran
        return False, ran

    def complaint(self, ran, call):
        """What is wrong with an outcome; None where nothing is."""
        started = (self.place.work / "started").exists()
        if ran.returncode == 0:
            return self.weaker(ran.stdout) if started else "status 0, and nothing was started"
        statuses = (125, 126) if call in (NUMBERS["execve"], NUMBERS["execveat"]) else (125,)
        if ran.returncode not in statuses:
            return f"status {ran.returncode}"
        if started:
            return "refused, and yet the command was started"
        if ran.stdout or not ran.stderr.startswith("bawn: ") or len(ran.stderr) < 30:
            return "no message that names the step"
        return None

    def narrower(self, line, seen):
        """
        A toolchain or cache of the caller's home that could not be looked at is left out: less is
        shown. What lies within another one that is shown is none of those, but covers something.
        """
        if not line.startswith(f"mount {self.home}/"):
            return False
        point = line.split()[1]
        others = [other.split()[1] for other in seen if other.startswith("mount ")]
        return not any(point.startswith(f"{other}/") for other in others
                       if other not in ("/", self.home))

    def weaker(self, out):
        """What the command saw that it does not see in a good run."""
        seen, good = set(out.splitlines()), set(self.good.splitlines())
        more = seen - good
        less = {line for line in good - seen if not self.narrower(line, seen)}
        if more or less:
            return f"another box: more {sorted(more)}, less {sorted(less)}"
        names = (self.place.work / "namespaces").read_text().split()
        if len(names) != 7 or self.own & set(names):
            return f"not its own namespaces: {names}"
        return None

    def left(self):
        tasks = self.place.state / "tasks"
        names = os.listdir(tasks) if tasks.exists() else []
        if names:
            return f"left task directories {names}"
        if not eventually(nobody_left, LIMIT_S):
            return f"left processes {descendants()}"
        after = {name: kind for name, kind in listing(self.place.work).items()
                 if name not in ("started", "namespaces")}
        return None if after == self.before else "left something in the workspace"

    def clear(self):
        """After a complaint: the next case is not to inherit it."""
        self.place.assert_nothing_left()


def check_good(lab):
    assert "Seccomp: 2" in lab.good and "NoNewPrivs: 1" in lab.good, lab.good
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert f"{name}: 0000000000000000" in lab.good
    assert "readable" not in lab.good and "writable" not in lab.good, lab.good
    assert "core 0 " in lab.good and lab.good.rstrip().endswith("session")
    assert lab.weaker(lab.run().stdout) is None


def chosen(lab):
    """(process, nth, call, error) to try, in this order, and how many there are."""
    cases = [(*call, code) for call in lab.calls() for code in ERRORS]
    total = len(cases)
    cases = cases[PART - 1::PARTS]
    if not SOAK:
        random.Random(SEED).shuffle(cases)
    return cases, total


def check_faults(lab, what, sample=SAMPLE):
    cases, total = chosen(lab)
    complaints, met, missed, refused = [], 0, 0, 0
    began = time.monotonic()
    for process, nth, call, code in cases:
        if not SOAK and met == sample:
            break
        # some calls a run makes or does not, as it is faster or slower than another process
        for _ in range(TRIES):
            hit, ran = lab.fail(process, nth, call, code)
            wrong = lab.complaint(ran, call) or lab.left()
            if hit or wrong:
                break
        met, missed = met + hit, missed + (not hit)
        refused += ran.returncode != 0
        after = lab.run()
        wrong = wrong or (after.returncode and f"the next run fails: {after.stderr}") or \
            (lab.weaker(after.stdout) and f"the next run: {lab.weaker(after.stdout)}")
        if wrong:
            complaints.append(f"process {process} call {call}/{nth} {errno.errorcode[code]}: "
                              f"{wrong}\n    status {ran.returncode}, {ran.stderr.strip()[:300]!r}")
            print(complaints[-1], flush=True)  # as it is found: a complete run is long
            lab.clear()
    print(f"{met} of {total} faults ({what}, as {'root' if IS_ROOT else 'user'}): "
          f"{refused} refused, {met + missed - refused} harmless, {missed} others not met, "
          f"{time.monotonic() - began:.0f} s")
    assert not complaints, f"{len(complaints)} of {met}:\n" + "\n".join(complaints)
    assert missed <= max(3, met // 10), f"{missed} faults were not met beside {met}"
    assert refused > met // 4, "hardly any fault was felt: the injector does not work"


@pytest.mark.parametrize("start", ["first", "later"])
def test_every_call_may_fail(place, injector, start):
    lab = Lab(place, injector, start == "first")
    check_good(lab)
    lab.reset()
    check_faults(lab, f"{start} start")


def test_the_injector_injects(place, injector):
    """It is seen to fail a call that is known to matter, and to leave the others alone."""
    lab = Lab(place, injector, False)
    calls = lab.calls()
    assert len({process for process, _, _ in calls}) >= 3 and len(calls) > 200
    filters = [found for found in calls if found[0] > 0 and found[2] == 317]  # seccomp(2)
    assert len(filters) == 2, "process 1's and the command's"
    # the command's is the younger process; which of the two is filtered first is a race
    process, nth, call = max(filters)
    # each time: the word of process 1, which is not awaited any more, is nobody's end
    for _ in range(8):
        hit, ran = lab.fail(process, nth, call, errno.EPERM)
        assert hit and ran.returncode == 125 and "not permitted" in ran.stderr, ran
        assert not (place.work / "started").exists() and BAWN in ran.args
    hit, ran = lab.fail(process, nth + 1000, call, errno.EPERM)
    assert not hit and ran.returncode == 0, ran


def test_a_command_that_process_1_took_along_never_began(place, injector):
    """Process 1 fails as the action's process waits for its word: killed with it, or told of it."""
    lab = Lab(place, injector, False)
    calls = lab.calls()
    begins = next(at for at, (process, _, call) in enumerate(calls)
                  if process and call == NUMBERS["execveat"])
    own = [found for found in calls[begins + 1:] if found[0] == calls[begins][0]]
    assert len(own) >= 5, own
    for process, nth, call in own[:5]:
        for _ in range(6):
            hit, ran = lab.fail(process, nth, call, errno.ENOSYS)
            wrong = lab.complaint(ran, call) or lab.left()
            assert hit and ran.returncode == 125 and not wrong, (call, wrong, ran)
