"""Every attack of hostile.tsv that concerns the OS tier.

A layer counts when its attack succeeds in a reduced plan without it, fails in that plan plus the
layer alone, and fails in `bawn run`. The attacks themselves are the programs in attacks/; what
runs reduced plans is lab.c.
"""
import csv
import ctypes
import os
import pty
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest
from table import ATTACKS, LACKS, PARTLY, PENDING, SHORT, Attack

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("BAWN_BUILD", ROOT / "build"))
BAWN = BUILD / "bawn"
LAB = BUILD / "bawn-lab"
IS_ROOT = os.geteuid() == 0
SOAK = os.environ.get("BAWN_SOAK") == "1"
RACE_S = 10 if SOAK else 1.5
LIMIT_S = 30
# how a task's workspace is written: in place, in a layer that is kept, in one that goes
MODES = {"direct": [], "staged": ["--stage"], "ephemeral": ["--ephemeral"]}
in_each_mode = pytest.mark.parametrize("mode", MODES)
rows = []


def load_table():
    with open(HERE / "hostile.tsv", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file, delimiter="\t",
                                                         quoting=csv.QUOTE_NONE)}


HOSTILE = load_table()


def record(id_, what, layer, without, with_it, full, verdict):
    severity = HOSTILE[id_]["severity"] if id_ in HOSTILE else "-"
    rows.append((id_, severity, what, layer, without, with_it, full, verdict))


def table():
    """The table of what was seen, written to build/log too."""
    if not rows:
        return []
    head = ("id", "sev", "attack", "layer", "without", "layer alone", "bawn run", "verdict")
    widths = [max(len(str(r[i])) for r in [head, *rows]) for i in range(len(head) - 1)]
    widths = [min(w, 56) for w in widths]
    lines = ["  ".join([*(str(c)[:w].ljust(w) for c, w in zip(r, widths)), str(r[-1])])
             for r in [head, *sorted(rows, key=lambda r: (not r[0].startswith("H"), r[0]))]]
    lines += ["", *(f"{i} pending: {why}" for i, why in sorted(PENDING.items())),
              *(f"{i} in part: {why}" for i, why in sorted(PARTLY.items()))]
    try:
        log = ROOT / "build" / "log"
        log.mkdir(parents=True, exist_ok=True)
        (log / f"attack-{'root' if IS_ROOT else 'user'}.txt").write_text("\n".join(lines) + "\n")
    except OSError as error:
        lines.append(f"build/log: {error}")
    return lines


# The host outside of the box: what the attacks are aimed at.

class World:
    def __init__(self, top):
        self.top = top
        self.ws, self.out, self.state, self.shown = (top / n for n in ("ws", "out", "state",
                                                                       "shown"))
        for path in (self.ws, self.out, self.shown):
            path.mkdir(mode=0o755)
        self.state.mkdir(mode=0o700)
        (self.out / "secret").write_text("outside\n")
        (self.out / "secret").chmod(0o600)
        self.fill()
        flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-pthread"]
        for name in ("calls", "host", "objects"):
            where = self.out if name == "objects" else self.ws
            subprocess.run(["gcc", *flags, "-o", where / name, HERE / "attacks" / f"{name}.c"],
                           check=True, timeout=120)
        self.program = top / "program"
        shutil.copy2(BAWN, self.program)
        self.setid = self.make_setid()
        self.memfd = self.ws / "memfd.py"
        self.memfd.write_text(
            "import os, sys\n"
            "fd = os.memfd_create('x', 0)\n"
            "os.write(fd, open(sys.argv[1], 'rb').read())\n"
            "os.execve(fd, sys.argv[1:], os.environ)\n")
        self.objects = subprocess.Popen(
            [self.out / "objects", self.out], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, cwd=self.out, env={**os.environ, "BAWN_DECOY": "decoy-value"})
        words = self.objects.stdout.readline().split()
        names = ("pid", "fd", "port", "abstract", "key", "queue", "shm")
        self.words = dict(zip(names, words))
        self.words |= {
            "ws": self.ws, "out": self.out, "state": self.state, "shown": self.shown,
            "program": self.program, "setid": self.setid, "hostname": os.uname().nodename,
            "memfd": self.memfd, "devpts": os.stat("/dev/pts").st_dev,
        }

    def fill(self):
        """The workspace as each attack finds it."""
        for name in ("hidden", "dir", "kept", "vendor", ".git/objects/info", ".git/refs"):
            (self.ws / name).mkdir(parents=True, exist_ok=True)
        (self.ws / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (self.ws / "vendor/.git").write_text("gitdir: ../.git\n")
        for name in ("hidden/key", "dir/inner", "kept/file", "plain"):
            (self.ws / name).write_text("inside\n")
        (self.shown / "key").write_text("shown\n")
        (self.shown / "other").write_text("shown\n")

    def refill(self):
        for name in ("soft", "hard", "moved"):
            (self.ws / name).unlink(missing_ok=True)
        for name in ("aside", "dir2", "kept2"):
            shutil.rmtree(self.ws / name, ignore_errors=True)
        if not (self.ws / ".git").is_dir() or (self.ws / ".git/inner").exists():
            shutil.rmtree(self.ws / "dir", ignore_errors=True)
            shutil.rmtree(self.ws / ".git", ignore_errors=True)
        (self.out / "made").unlink(missing_ok=True)
        if (self.out / "secret").stat().st_size != 8:
            (self.out / "secret").write_text("outside\n")
        self.fill()
        if IS_ROOT:
            os.chown(self.ws / "plain", 0, 0)

    def make_setid(self):
        if not IS_ROOT:
            return Path("/usr/bin/su")
        program = self.ws / "setid-sleep"
        shutil.copy2("/usr/bin/sleep", program)
        os.chown(program, 65534, 65534)
        program.chmod(0o4755)
        return program

    def close(self):
        self.objects.stdin.close()
        self.objects.wait(10)
        # the kernel's scratch directories of overlays have mode 0
        subprocess.run(["chmod", "-R", "u+rwX", self.top], check=False, timeout=60)
        subprocess.run(["rm", "-rf", self.top], check=True, timeout=60)


@pytest.fixture(scope="module", name="world")
def make_world():
    assert BAWN.exists() and LAB.exists(), f"{BUILD}: build the project first"
    # not pytest's, which each other pytest of the user's shuts again
    top = Path(tempfile.mkdtemp(prefix="bawn-test-attack.", dir="/var/tmp"))
    top.chmod(0o755)
    world = World(top)
    yield world
    world.close()


def execute(argv, cwd, attack=None, env=None, timeout=LIMIT_S):
    """Runs argv; returns (status, standard output, standard error)."""
    keep, stdin, master = (), subprocess.DEVNULL, None
    setup = None
    if attack and attack.terminal:
        master, slave = pty.openpty()
        stdin = slave
        name = os.ttyname(slave)
        argv = [str(a).replace("{pts}", name) for a in argv]

        def setup():
            os.setsid()
            os.close(os.open(name, os.O_RDWR))
    if attack and attack.leak:
        leak = os.open(cwd.parent / "out", os.O_RDONLY | os.O_DIRECTORY)
        keep = (leak,)
        argv = [str(a).replace("{leak}", str(leak)) for a in argv]
    child = subprocess.Popen(
        [str(a) for a in argv], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", cwd=cwd, pass_fds=keep, preexec_fn=setup,
        env={**os.environ, "BAWN_DECOY": "decoy-value", **(env or {})})
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
        err += f"\ntimed out after {timeout} s"
    finally:
        if keep:
            os.close(leak)
        if master is not None:
            os.close(slave)
            os.close(master)
    return child.returncode, out, err


def fill_in(world, words):
    text = [str(w) for w in words]
    for key, value in world.words.items():
        text = [w.replace("{" + key + "}", str(value)) for w in text]
    return text


def command(world, attack):
    words = fill_in(world, attack.argv.split())
    return [*fill_in(world, attack.prefix.split()), world.ws / words[0], *words[1:]]


def outcome(status, out, err):
    """"SUCCEEDED", the name of the error, or what went wrong instead."""
    for line in out.splitlines():
        if line.startswith("SUCCEEDED"):
            return "SUCCEEDED"
        if line.startswith("refused: "):
            return line[len("refused: "):]
    return f"BROKEN: status {status}: {(err or out).strip()[-300:]}"


def in_lab(world, attack, layers, more=()):
    world.refill()
    names = ",".join(layers) or "none"
    return outcome(*execute(
        [LAB, "--layers", names, *more, "--state-dir", world.state, "--workspace", world.ws,
         *fill_in(world, attack.options), "--", *command(world, attack)], world.ws, attack))


def bawn(world, *words, options=(), **more):
    return execute([BAWN, "run", "--state-dir", world.state, "--workspace", world.ws, *options,
                    "--", *words], world.ws, **more)


def in_full(world, attack):
    world.refill()
    return outcome(*bawn(world, *command(world, attack),
                         options=fill_in(world, attack.options), attack=attack))


def is_refusal(text):
    return text != "SUCCEEDED" and not text.startswith("BROKEN")


def chosen():
    return [a for a in ATTACKS if a.who in ("both", "root" if IS_ROOT else "user")]


@pytest.mark.parametrize("attack", chosen(), ids=lambda a: a.name)
def test_layer(world, attack):
    base, whole = attack.plans(IS_ROOT)
    without = in_lab(world, attack, base)
    alone = in_lab(world, attack, whole)
    full = in_full(world, attack)
    shown = without == "SUCCEEDED" or (attack.unless and is_refusal(without))
    good = shown and is_refusal(alone) and is_refusal(full) and full not in attack.never
    note = f" (not shown here: {attack.unless})" if shown and without != "SUCCEEDED" else ""
    record(attack.id, attack.argv + (" via " + attack.prefix.split("/")[-1].split()[0]
                                     if attack.prefix else ""),
           SHORT[attack.layer], without, alone, full, ("ok" if good else "FAILED") + note)
    assert without == "SUCCEEDED" or attack.unless, f"in {base}: {without}"
    assert is_refusal(without) or without == "SUCCEEDED", without
    assert is_refusal(alone), f"in {whole}: {alone}"
    assert is_refusal(full) and full not in attack.never, f"in bawn run: {full}"


def whole_attacks():
    """Each attack once, by what it does."""
    seen = {}
    for attack in chosen():
        seen.setdefault((attack.argv, attack.options, attack.prefix), attack)
    return [] if IS_ROOT else [a for a in seen.values() if "setid_program" not in a.argv]


@pytest.mark.skipif(not IS_ROOT, reason="the host's root alone")
def test_HF07_root_in_a_user_namespace_of_its_own(world):
    """It has no id but the host's uid 0 to give to a task, whatever it is called there: refused."""
    for names in ([], ["--map-user=1000"], ["--map-user=65534"]):
        for flag in ([], ["--nested-userns"]):
            state = world.top / "state-root-ur"
            state.mkdir(mode=0o700, exist_ok=True)
            status, out, err = execute(
                ["unshare", *(names or ["-r"]), "-U", BAWN, "run", "--state-dir", state,
                 "--workspace", world.ws, *flag, "--", world.ws / "host", "write",
                 "/proc/sys/kernel/core_pattern"], world.ws)
            case("HF07", f"root by unshare -U {' '.join([*names, *flag])}", status == 125 and
                 "SUCCEEDED" not in out and "host's root" in err, (out, err), "user namespace")


@pytest.mark.skipif(IS_ROOT, reason="root is refused there: "
                                    "test_HF07_root_in_a_user_namespace_of_its_own")
@pytest.mark.parametrize("attack", whole_attacks(), ids=lambda a: a.name.split("-by-")[0])
def test_as_root_of_a_user_namespace(world, attack):
    """`unshare -Ur bawn run`, as in many containers: the same answers."""
    world.refill()
    state = world.top / "state-ur"
    state.mkdir(mode=0o700, exist_ok=True)
    seen = outcome(*execute(
        ["unshare", "-Ur", BAWN, "run", "--state-dir", state, "--workspace", world.ws,
         *fill_in(world, attack.options), "--", *command(world, attack)], world.ws, attack))
    assert is_refusal(seen) and seen not in attack.never, seen


def landlock_abi():
    return ctypes.CDLL(None, use_errno=True).syscall(444, None, ctypes.c_size_t(0),
                                                     ctypes.c_uint(1))


@pytest.mark.parametrize("abi", range(1, max(1, landlock_abi()) + 1))
@pytest.mark.parametrize("lack", LACKS, ids=lambda a: f"{a[0].split()[1]}-{SHORT[a[2]]}")
def test_landlock_abi(world, lack, abi):
    """Each ABI forced: what it lacks is answered by the named layer, in a plan with both."""
    argv, since, layer = lack
    base = "KF" if "tiocsti" in argv else "K"
    attack = Attack("HM01", argv, layer, base, terminal="tiocsti" in argv)
    without_layer, with_layer = attack.plans(IS_ROOT)
    forced = ("--landlock-abi", abi)
    alone = in_lab(world, attack, without_layer, forced)
    both = in_lab(world, attack, with_layer, forced)
    full = in_lab(world, attack, list(SHORT.values()), forced)
    good = is_refusal(both) and is_refusal(full) and (
        is_refusal(alone) if abi >= since else alone == "SUCCEEDED")
    record("HM01", f"{argv} (Landlock ABI {abi})", SHORT[layer], alone, both, full,
           "ok" if good else "FAILED")
    assert is_refusal(both) and is_refusal(full), f"{both}; {full}"
    assert is_refusal(alone) if abi >= since else alone == "SUCCEEDED", alone


# Rows that are about the start, or that no single layer answers.

def case(id_, what, good, seen, layer="set-up"):
    record(id_, what, layer, "-", "-", str(seen).strip().splitlines()[-1][:60] if str(seen).strip()
           else "", "ok" if good else "FAILED")
    assert good, f"{what}: {seen}"


def is_alive(world):
    return world.objects.poll() is None


def test_HA04_cwd_by_descriptor(world):
    for cwd in ("/proc/self/fd/7", "/proc/1/cwd", f"{world.ws}/../out", "dir/../../out",
                world.out):
        status, out, err = bawn(world, "/bin/sh", "-c", "echo ran in $PWD", options=["--cwd", cwd])
        case("HA04", f"--cwd {cwd}".replace(str(world.top), "..."),
             status == 125 and "ran" not in out, err)


def test_HA04_link_as_cwd(world):
    link = world.ws / "elsewhere"
    link.symlink_to(world.out)
    try:
        status, out, err = bawn(world, "/bin/pwd", options=["--cwd", link])
        case("HA04", "--cwd LINK to outside", status == 125, (out, err))
    finally:
        link.unlink()


def test_HA03_output_to_a_terminal(world):
    """What a task prints to the caller's terminal cannot steer it; colours pass."""
    steer = r"\033]52;c;ZXZpbA==\007\033]0;t\007\033[5n\033P+q\033\\\233c\r\b\016"
    script = f"printf '{steer}\\033[31mred\\033[0m'"
    master, slave = pty.openpty()
    try:
        for stream in ("out", "err"):
            child = subprocess.Popen(
                [BAWN, "run", "--state-dir", world.state, "--workspace", world.ws, "--", "/bin/sh",
                 "-c", script + (" >&2" if stream == "err" else "")], cwd=world.ws,
                stdin=subprocess.DEVNULL, **{"stdout": subprocess.DEVNULL,
                                             "stderr": subprocess.DEVNULL,
                                             f"std{stream}": slave})
            child.wait(LIMIT_S)
            seen = os.read(master, 4096)
            rest = seen.replace(b"\033[31m", b"").replace(b"\033[0m", b"")
            case("HA03", f"control sequences on std{stream}", b"red" in seen and not any(
                b in rest for b in (b"\033", b"\007", b"\x9b", b"\b", b"\016")), seen, "streams")
    finally:
        os.close(master)
        os.close(slave)


def test_HA04_own_descriptors(world):
    """What bawn itself was given, such as --status-fd, is not the task's."""
    with open(world.out / "status", "w") as status:
        child = subprocess.run(
            [BAWN, "run", "--state-dir", world.state, "--workspace", world.ws, "--status-fd",
             str(status.fileno()), "--stdin", "--", world.ws / "host", "fds"], cwd=world.ws,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False,
            pass_fds=[status.fileno()])
    seen = outcome(child.returncode, child.stdout, child.stderr)
    (world.out / "status").unlink()
    case("HA04", "with --status-fd and --stdin", is_refusal(seen), seen, "streams")


def test_HA09_image_of_process_1(world):
    for path in ("/proc/1/exe", "/proc/1/mem", "/proc/1/root/etc/passwd"):
        seen = outcome(*bawn(world, world.ws / "host", "write", path))
        case("HA09", f"write {path}", is_refusal(seen) and seen != "ETXTBSY", seen, "init")


def test_HA11_kill_everything(world):
    for words in ("kill -9 -1; echo still", "kill -9 0; echo still", "kill -9 $PPID; echo still",
                  "kill -9 1; echo still", "kill -STOP 1; kill -TERM 1; echo still"):
        status, out, err = bawn(world, "/bin/sh", "-c", words)
        case("HA11", words, is_alive(world) and status in (0, 137) and "BROKEN" not in err,
             f"status {status} {out}", "pid namespace")


def test_HA13_exit_status(world):
    for words in ("kill -9 1; exit 3", "kill -CHLD 1; exit 3", "(setsid sleep 60 &); exit 3",
                  "exec 0<&- 1<&- 2<&-; exit 3"):
        begin = time.monotonic()
        status, out, err = bawn(world, "/bin/sh", "-c", words)
        in_time = time.monotonic() - begin < 20
        case("HA13", words, status == 3 and in_time, f"{status} {err}", "init")
    seen = outcome(*bawn(world, world.ws / "host", "ptrace", "1",
                         options=["--allow-ptrace"]))
    case("HA13", "ptrace 1 with --allow-ptrace", is_refusal(seen), seen, "init")


def test_HB01_mask_sources(world):
    """Masks are made of objects of the box's own, whatever lies in the workspace."""
    fake = world.ws / "dev"
    fake.mkdir(exist_ok=True)
    (fake / "null").symlink_to(world.out / "secret")
    try:
        for target in ("hidden/key", "dir"):
            status, out, err = bawn(
                world, "/bin/sh", "-c",
                f"echo x > {world.ws}/{target}; cat {world.ws}/{target}; ls {world.ws}/{target}/; "
                "stat -c %t:%T /dev/null", options=["--hide", world.ws / target])
            case("HB01", f"--hide {target} beside a false dev/null",
                 "inside" not in out and "inner" not in out and out.endswith("1:3\n") and
                 (world.out / "secret").read_text() == "outside\n", (out, err), "hide")
    finally:
        shutil.rmtree(fake)


def test_HB01_mask_raced(world):
    """The host swaps the hidden name for a link to a file outside while boxes start."""
    stop, key = threading.Event(), world.ws / "hidden" / "key"

    def swap():
        while not stop.is_set():
            link = world.ws / "hidden" / "link"
            link.unlink(missing_ok=True)
            link.symlink_to(world.out / "secret")
            os.replace(link, key)
            plain = world.ws / "hidden" / "plain"
            plain.write_text("inside\n")
            os.replace(plain, key)

    thread = threading.Thread(target=swap)
    thread.start()
    hits, starts, refusals = [], 0, 0
    try:
        end = time.monotonic() + RACE_S
        while time.monotonic() < end:
            status, out, err = bawn(world, "/bin/cat", key, options=["--hide", key])
            starts += 1
            refusals += status == 125
            if "outside" in out:
                hits.append(out)
    finally:
        stop.set()
        thread.join()
        world.refill()
    # what the host puts there afterwards may be read for a moment (a mask on a directory that is
    # written in place); the host's other files may not
    case("HB01", f"{starts} starts, {refusals} refused", not hits and starts > 3, hits or "0 hits",
         "hide")


def test_HB02_devpts(world):
    (world.ws / "dev" / "pts").mkdir(parents=True, exist_ok=True)
    try:
        status, out, err = bawn(world, "/bin/sh", "-c",
                                "stat -f -c %T /dev/pts; ls /dev/pts; ls /dev/console 2>&1; "
                                "stat -c %F /dev/ptmx; ls /dev")
        names = out.splitlines()
        case("HB02", "own devpts, no console",
             names[0] == "devpts" and "ptmx" in names[1] and
             "cannot access" in out and not {"mem", "kmsg", "sda", "vda", "kvm"} & set(names), out,
             "session")
    finally:
        shutil.rmtree(world.ws / "dev")


def test_HB05_state_directory(world):
    """A state directory that another made, or that is a link, holds nothing of ours."""
    top = world.top / "states"
    top.mkdir()
    (top / "real").mkdir(mode=0o700)
    (top / "link").symlink_to(top / "real")
    (top / "open").mkdir()
    (top / "open").chmod(0o777)
    (top / "inner").mkdir(mode=0o700)
    (top / "inner" / "tasks").symlink_to(world.out)
    (top / "file").write_text("")
    for name in ("link", "open", "inner", "file", "real/../link"):
        status, out, err = execute([BAWN, "run", "--state-dir", top / name, "--", "/bin/echo",
                                    "ran"], world.ws)
        case("HB05", f"--state-dir {name}", status == 125 and "ran" not in out, err)
    assert sorted(p.name for p in world.out.iterdir()) == ["objects", "secret", "socket"]
    if IS_ROOT:
        os.chown(top / "real", 65534, 65534)
        status, out, err = execute([BAWN, "run", "--state-dir", top / "real", "--", "/bin/echo",
                                    "ran"], world.ws)
        case("HB05", "--state-dir of another user", status == 125 and "ran" not in out, err)


def test_HB07_no_shared_names(world):
    """Nothing of ours appears in a directory that everybody can write."""
    shared = [Path(p) for p in ("/tmp", "/var/tmp", "/dev/shm", "/run/lock") if Path(p).is_dir()]
    before = {str(p) for d in shared for p in d.iterdir()}
    child = subprocess.Popen([BAWN, "run", "--state-dir", world.state, "--workspace", world.ws,
                              "--stdin", "--", "/bin/sh", "-c",
                              "echo up; touch /tmp/attack-mark; cat"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=world.ws)
    try:
        child.stdout.readline()
        during = {str(p) for d in shared for p in d.iterdir()
                  if p.lstat().st_uid == os.geteuid()}
    finally:
        child.communicate(timeout=30)
    # what other tests make meanwhile is theirs
    new = [n for n in during - before if Path(n).name == "attack-mark" or
           ("bawn" in n and not Path(n).name.startswith(("bawn-test", "bawn-bench")))]
    case("HB07", "no fixed name in a shared directory", not new, new or "none")


def test_HB10_task_names(world):
    child = subprocess.Popen([BAWN, "run", "--state-dir", world.state, "--workspace", world.ws,
                              "--stdin", "--", "/bin/sh", "-c", "echo up; cat"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=world.ws)
    try:
        child.stdout.readline()
        names = [p.name for p in (world.state / "tasks").iterdir()]
    finally:
        child.communicate(timeout=30)
    case("HB10", "a task's id is bawn's own", names and all(
        len(n) == 22 and n.startswith("t-") and n.isascii() and n.replace("-", "").isalnum()
        for n in names), names)
    for path in ("relative", f"{world.state}/../x", f"{world.state}/a\nb/c", "/" + "x" * 5000, ""):
        status, out, err = execute([BAWN, "run", "--state-dir", path, "--", "/bin/echo", "ran"],
                                   world.ws)
        case("HB10", f"--state-dir {path[-20:]!r}".replace(str(world.top), "..."),
             status in (125, 126) and "ran" not in out and err.startswith("bawn: "), err)


def test_HB12_no_set_id_program(world):
    modes = {p.name: p.stat().st_mode for p in BUILD.iterdir() if p.name.startswith("bawn")}
    case("HB12", "no program is set-id", modes and not any(m & 0o6000 for m in modes.values()),
         ", ".join(modes))
    if not IS_ROOT:
        return
    os.chown(world.program, 65534, 65534)
    world.program.chmod(0o4755)
    try:
        status, out, err = execute([world.program, "run", "--state-dir", world.state, "--",
                                    "/bin/echo", "ran"], world.ws)
        case("HB12", "a set-id copy refuses", status == 125 and "ran" not in out, err)
    finally:
        world.program.chmod(0o755)
        os.chown(world.program, 0, 0)


def test_HB09_identity(world):
    status, out, err = bawn(world, "/bin/sh", "-c", "id -u; grep ^Cap /proc/self/status; "
                                                   "cat /proc/self/uid_map /proc/self/gid_map")
    lines = out.splitlines()
    zero = [line.split()[1] for line in lines if line.startswith("Cap")]
    case("HB09", "capability sets", len(zero) == 5 and set(zero) == {"0000000000000000"}, zero,
         "capabilities")
    case("HB09", "never uid 0 of the host", lines[0] != "0" and
         all(len(m.split()) == 3 and m.split()[2] == "1" for m in lines[6:]), lines[-2:],
         "user namespace")


@in_each_mode
def test_HC04_links_out_of_the_workspace(world, mode):
    """What bawn itself reads of the workspace follows no link out of it."""
    trap = world.ws / "trap"
    trap.symlink_to(world.out)
    (world.ws / "loop").symlink_to("loop")
    try:
        for flag in ("--hide", "--protect"):
            status, out, err = bawn(world, "/bin/cat", world.ws / "plain",
                                    options=[*MODES[mode], flag, f"{world.ws}/**/key"])
            case("HC04", f"{mode}: {flag} **/key with a link to outside", "inside" in out,
                 (status, out, err))
        status, out, err = bawn(world, "/bin/sh", "-c", "cat trap/secret loop",
                                options=[*MODES[mode], "--hide", f"{world.ws}/**/key"])
        case("HC04", f"{mode}: a link to outside, from inside", "outside" not in out, err,
             "mount view")
    finally:
        trap.unlink()
        (world.ws / "loop").unlink()


@in_each_mode
def test_HC04_git_link(world, mode):
    """A .git that leads elsewhere does not widen what is shown."""
    link_ws = world.top / "link-ws"
    link_ws.mkdir()
    git = link_ws / ".git"
    try:
        for make in (lambda: git.symlink_to(world.out),
                     lambda: git.write_text(f"gitdir: {world.out}\n")):
            make()
            status, out, err = execute([BAWN, "run", "--state-dir", world.state, *MODES[mode], "--",
                                        "/bin/cat", world.out / "secret"], link_ws)
            case("HC04", f"{mode}: .git leads outside", "outside" not in out, (out, err),
                 "mount view")
            git.unlink()
    finally:
        git.unlink(missing_ok=True)
        link_ws.rmdir()


@in_each_mode
def test_HC04_evil_trees(world, mode):
    """FIFOs where files are expected, deep trees and evil names neither hang nor fool the start."""
    evil = world.top / "evil-ws"
    evil.mkdir()
    for name in (".git", ".bawn.yaml", "package.json", ".gitmodules", "fifo", ".envrc"):
        os.mkfifo(evil / name)
    for name in ("\033]0;x\007", "new\nline", "-rf", "--", "$(id)", " ", "\u202e", "key"):
        (evil / name).write_text("x")
    os.mkdir(bytes(evil) + b"/\xff\xfe")
    (evil / "shut").mkdir(mode=0)
    deep = evil
    script = ("import os\nfor i in range(1500):\n    os.mkdir('d'); os.chdir('d')\n"
              "open('key', 'w').write('deep')\n")
    subprocess.run(["/usr/bin/python3", "-c", script], cwd=deep, check=True, timeout=30)
    try:
        for options in ([], ["--hide", f"{evil}/**/key"], ["--protect", f"{evil}/*"],
                        ["--hide", f"{evil}/fifo"], ["--hide", f"{evil}/.git"],
                        ["--cwd", f"{evil}/fifo"], ["--read", f"{evil}/fifo"]):
            begin = time.monotonic()
            status, out, err = execute(
                [BAWN, "run", "--state-dir", world.state, "--workspace", evil, *MODES[mode],
                 *options, "--", "/bin/cat", "key"], evil)
            took = time.monotonic() - begin
            case("HC04", f"{mode}: an evil tree, {' '.join(options)}".replace(str(evil), "WS"),
                 took < 10 and "\033" not in err and not ("x" in out and "key" in str(options)) and
                 (status == 125 or options[:1] in ([], ["--protect"], ["--hide"])),
                 f"status {status}, {took:.1f} s, {err[:120]!r}")
    finally:
        (evil / "shut").chmod(0o700)
        subprocess.run(["rm", "-rf", evil], check=True, timeout=60)


@in_each_mode
def test_HC05_hard_links_that_were_there(world, mode):
    """A second name is refused at the start, but where it is another file once it is written."""
    other = world.ws / "second"
    os.link(world.ws / "hidden" / "key", other)
    try:
        for flag in ("--hide", "--protect"):
            status, out, err = bawn(world, "/bin/cat", other,
                                    options=[*MODES[mode], flag, world.ws / "hidden" / "key"])
            case("HC05", f"{mode}: {flag} FILE that has a second hard link",
                 (status == 125 and not out) or (mode != "direct" and flag == "--protect"), err,
                 "hide, protect")
    finally:
        other.unlink()


@in_each_mode
def test_HC10_race_of_the_start(world, mode):
    """Directories of the workspace and links to outside change places while boxes start."""
    stop, hits, starts = threading.Event(), [], 0
    real, link = world.ws / "race", world.ws / "race.link"
    real.mkdir()
    (real / "secret").write_text("inside\n")
    link.symlink_to(world.out)
    libc = ctypes.CDLL(None)

    def exchange():
        while not stop.is_set():
            libc.renameat2(-100, str(real).encode(), -100, str(link).encode(), 2)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        end = time.monotonic() + RACE_S
        choices = (["--cwd", real], ["--hide", real / "secret"], ["--protect", real / "secret"],
                   ["--read", real], ["--write", real])
        while time.monotonic() < end:
            options = choices[starts % len(choices)]
            status, out, err = bawn(world, "/bin/sh", "-c",
                                    f"cat {world.out}/secret; ls -i {world.out}; "
                                    f"echo changed > {world.out}/secret",
                                    options=[*MODES[mode], *options])
            starts += 1
            if "outside" in out:
                hits.append((options, out))
            if "changed" in (world.out / "secret").read_text():
                hits.append((options, "written"))
                (world.out / "secret").write_text("outside\n")
    finally:
        stop.set()
        thread.join()
        for path in (real, link):
            shutil.rmtree(path) if not path.is_symlink() else path.unlink()
    case("HC10", f"{mode}: {starts} starts in a race", not hits and starts > 3, hits or "0 hits")


@in_each_mode
def test_HC10_race_inside(world, mode):
    """The task itself exchanges names and links; the view leads nowhere else."""
    script = ("import os, sys, time, ctypes\n"
              "libc = ctypes.CDLL(None)\n"
              "os.makedirs('r', exist_ok=True)\n"
              f"os.symlink('{world.out}', 'l')\n"
              "pid = os.fork()\n"
              f"end = time.time() + {RACE_S}\n"
              "hits = 0\n"
              "while time.time() < end:\n"
              "    if pid == 0:\n"
              "        libc.renameat2(-100, b'r', -100, b'l', 2)\n"
              "        continue\n"
              "    for name in ('r/secret', 'l/secret', '../out/secret'):\n"
              "        try:\n"
              "            hits += open(name).read() == 'outside\\n'\n"
              "        except OSError:\n"
              "            pass\n"
              "if pid:\n"
              "    os.waitpid(pid, 0)\n"
              "    for n in ('r', 'l'):\n"
              "        os.unlink(n) if os.path.islink(n) else os.rmdir(n)\n"
              "    print('hits', hits)\n")
    status, out, err = bawn(world, "/usr/bin/python3", "-c", script, options=MODES[mode])
    case("HC10", f"{mode}: race inside of the box", out == "hits 0\n", out or err, "mount view")


def dangerous():
    home = os.path.expanduser("~")
    paths = ["/", home, "/proc", "/sys", "/dev", "/run", "/var/run/docker.sock", "/home", "/root",
             "/boot", "/var", "/etc/../", "//", "/./", "/proc/1/root", "/proc/self/root",
             "/sys/fs/cgroup", f"{home}/", f"{home}/.", f"{home}/../{Path(home).name}"]
    return [p for p in paths if os.path.exists(p)]


@in_each_mode
def test_HC11_link_that_a_task_made(world, mode):
    """A flag whose path is a link in the workspace does not show where the link leads."""
    (world.ws / "way").symlink_to(world.out)
    try:
        for flag in ("--read", "--write"):
            for path in ("way", "./way/secret", world.ws / "way", f"{world.ws}//way/./secret"):
                status, out, err = bawn(world, "/bin/cat", world.out / "secret",
                                        options=[*MODES[mode], flag, path])
                what = f"{mode}: {flag} {path} (a link to outside)"
                case("HC11", what.replace(str(world.top), "..."),
                     status == 126 and "outside" not in out, err)
    finally:
        (world.ws / "way").unlink()


@in_each_mode
@pytest.mark.parametrize("flag", ["--read", "--write", "--workspace"])
def test_HC11_dangerous_paths(world, flag, mode):
    link = world.out / "link"
    for path in dangerous():
        for spelling in (path, link):
            if spelling == link:
                link.unlink(missing_ok=True)
                link.symlink_to(path)
            status, out, err = execute([BAWN, "run", "--state-dir", world.state, *MODES[mode], flag,
                                        spelling, "--", "/bin/echo", "ran"], world.ws)
            case("HC11", f"{mode}: {flag} {path}{' by a link' if spelling == link else ''}",
                 status in (125, 126) and "ran" not in out, err)
    link.unlink()


def test_HC11_devices(world):
    for path in ("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev", "/etc/passwd",
                 "/dev/pts"):
        if not os.path.exists(path):
            continue
        status, out, err = execute([BAWN, "run", "--state-dir", world.state, "--devices", path,
                                    "--", "/bin/echo", "ran"], world.ws)
        case("HC11", f"--devices {path}", status in (125, 126) and "ran" not in out, err)


def put_back(path, aside):
    """Ends the replacement of a directory by a link, which bawn may have ended already."""
    if path.is_symlink():
        path.unlink()
        aside.rename(path)
        return
    for top, names, _ in os.walk(aside):
        for name in names:
            (Path(top) / name).chmod(0o700)
    shutil.rmtree(aside)


def test_HC16_replaced_cache(world):
    """Directories of the state that were replaced by links between two runs are not followed."""
    bawn(world, "/bin/true")
    replaced = 0
    paths = sorted(p for p in world.state.rglob("*") if p.is_dir() and not p.is_symlink())
    # deep ones are many, and much the same: some of them, but all in `make soak`
    deep = [p for p in paths if len(p.relative_to(world.state).parts) > 3]
    left_out = [] if os.environ.get("BAWN_SOAK") else \
        random.Random(len(deep) // 100).sample(deep, max(0, len(deep) - 16))
    for path in sorted(set(paths) - set(left_out)):
        # the kernel's own scratch directory of an overlay is made anew by each mount
        if "work/work" in str(path) or not path.exists() or path.is_symlink():
            continue
        aside = world.top / "aside"
        path.rename(aside)
        before = sorted(str(p) for p in world.out.rglob("*"))
        path.symlink_to(world.out)
        try:
            status, out, err = bawn(world, "/bin/sh", "-c",
                                    "mkdir -p ~/.cache/pip ~/.npm; touch ~/.cache/pip/x ~/.npm/x; "
                                    "echo ran")
            untouched = sorted(str(p) for p in world.out.rglob("*")) == before
        finally:
            put_back(path, aside)
        replaced += 1
        case("HC16", f"state/{path.relative_to(world.state)} replaced by a link", untouched and
             (status == 125 or "ran" in out), err or out)
    assert replaced


@in_each_mode
def test_HC17_link_as_target(world, mode):
    """A mount's target that is a link lands nowhere outside, and nothing outside is changed."""
    (world.ws / "way").symlink_to(world.out)
    try:
        for flag in ("--hide", "--protect"):
            for name in ("way", "way/secret", "way/missing"):
                status, out, err = bawn(world, "/bin/sh", "-c", "cat way/secret; echo x >way/made",
                                        options=[*MODES[mode], flag, world.ws / name])
                case("HC17", f"{mode}: {flag} {name} (a link to outside)", "outside" not in out and
                     not (world.out / "made").exists(), err, "mount view")
        assert (world.out / "secret").read_text() == "outside\n"
    finally:
        (world.ws / "way").unlink()


def test_HF02_socket_in_the_workspace(world):
    """A limit, stated: what a host's process listens on inside of a shown path can be reached.

    Neither a namespace nor Landlock (ABI 7) looks at path sockets; the view is what keeps them
    away, and it shows the workspace.
    """
    path = world.ws / "socket"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(8)
    try:
        inside = outcome(*bawn(world, world.ws / "host", "unix", path))
        hidden = outcome(*bawn(world, world.ws / "host", "unix", path, options=["--hide", path]))
        shown = bawn(world, "/bin/true", options=["--read", world.out / "socket"])
    finally:
        server.close()
        path.unlink()
    case("HF02", "a host's socket in the workspace: reached (stated limit)", inside == "SUCCEEDED",
         inside, "mount view")
    case("HF02", "the same, hidden", is_refusal(hidden), hidden, "hide")
    case("HF02", "--read SOCKET", shown[0] in (125, 126), shown[2])


def test_HF02_sockets_of_services(world):
    """The usual places of the host's sockets are not there."""
    places = ["/run/docker.sock", "/var/run/docker.sock", "/run/containerd", "/run/podman",
              "/run/dbus/system_bus_socket", "/run/systemd", "/run/snapd.socket", "/tmp/.X11-unix",
              "/run/user/0", "/run/user/1000/podman", f"/run/user/{os.geteuid()}/bus",
              f"/run/user/{os.geteuid()}/gnupg", f"/run/user/{os.geteuid()}/keyring",
              "/var/run/nscd/socket", "/dev/log"]
    names = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "VSCODE_IPC_HOOK_CLI",
             "WAYLAND_DISPLAY", "DISPLAY", "GPG_AGENT_INFO", "TMUX")
    status, out, err = bawn(world, "/bin/sh", "-c", f"ls -d {' '.join(places)} 2>/dev/null; env",
                            env={name: f"{world.out}/socket" for name in names})
    left = [line for line in out.splitlines() if line.startswith(("/", *names))]
    case("HF02", "sockets of services, and variables that name them", not left, left or "none",
         "mount view, environment")


def test_home_is_private(world):
    """Nothing of the caller's home but toolchains and caches."""
    home = Path.home()
    names = [p for p in (".profile", ".bashrc", ".bash_history", ".ssh", ".aws", ".gnupg",
                         ".netrc", ".git-credentials", ".docker/config.json", ".kube/config",
                         ".config/gh/hosts.yml", ".npmrc", ".pypirc", ".cargo/credentials.toml")]
    status, out, err = bawn(world, "/bin/sh", "-c",
                            "for f; do test -e \"$f\" && echo \"$f\"; done; true", "sh",
                            *(home / n for n in names))
    case("HF08", "the caller's home", status == 0 and not out, out or "none", "mount view")


def test_nested_user_namespaces(world):
    """--nested-userns: root of a namespace of its own lifts no mask and no read-only mount."""
    world.refill()
    options = ["--nested-userns", "--hide", world.ws / "hidden/key", "--hide", world.ws / "dir",
               "--protect", world.ws / "kept/file"]
    for words in (f"unmount {world.ws}/hidden/key 1", f"unmount {world.ws}/dir 1",
                  f"unmount {world.ws}/kept/file 1", "remount /usr 1", "remount / 1",
                  f"remount {world.ws}/kept/file 1", "unmount /proc 1", "remount /run/bawn 1",
                  f"read {world.ws}/hidden/key", f"read {world.ws}/dir/inner",
                  f"bind_around {world.ws} hidden/key", f"bind_around {world.ws} dir/inner",
                  f"write {world.ws}/kept/file", "map_others", "lo_down",
                  "write /proc/sys/kernel/core_pattern", f"read {world.out}/secret"):
        seen = outcome(*bawn(world, world.ws / "host", *words.split(), options=options))
        case("HC13", f"--nested-userns: {words}".replace(str(world.ws), "WS"), is_refusal(seen),
             seen, "mount view, hide")


@pytest.mark.parametrize("flags", [["--nested-userns"], ["--nested-userns", "--allow-ptrace"],
                                   ["--allow-ptrace"]], ids="".join)
def test_other_filters(world, flags):
    """The filters that options choose refuse what has nothing to do with the option."""
    calls = ["io_uring", "int80", "alg", "vsock", "packet_old", "netlink_generic", "mptcp",
             "keyctl_session", "add_key", "request_key", "userfaultfd", "perf", "bpf",
             "by_handle", "clock_settime", "settimeofday", "adjtimex", "round_robin",
             "io_realtime", "setflags plain", "fssetxattr plain", "setid_directory",
             *(f"setid {n}" for n in range(13))]
    for call in calls:
        seen = outcome(*bawn(world, world.ws / "calls", *call.split(), options=flags))
        case("HE06", f"{' '.join(flags)}: {call}", is_refusal(seen), seen, "seccomp")


def test_HF08_host_paths(world):
    status, out, err = bawn(world, "/bin/cat", "/proc/self/mountinfo", "/proc/self/cgroup")
    # the root is a directory of the state: its name, and nothing else of the state, is seen
    leaks = [line for line in out.splitlines() if str(world.state) in line and
             f"{world.state}/skeletons/" not in line]
    case("HF08", "paths of the host in mountinfo", out and not leaks, leaks or "none", "mount view")
    status, out, err = bawn(world, "/bin/sh", "-c",
                            "cat /etc/machine-id /var/lib/dbus/machine-id /sys/class/dmi/id/* "
                            "/sys/class/net/*/address; tail -qn +2 /proc/net/arp /proc/net/route")
    case("HF08", "machine-id, DMI, addresses, neighbours", not out, out or "none", "mount view")
    homes = [p for p in Path("/home").iterdir() if p.name not in str(world.ws) and p != Path.home()]
    status, out, err = bawn(world, "/bin/ls", "-d", *(homes or ["/home/nobody-else"]))
    case("HF08", "other users' homes", not out, out or "none", "mount view")


def test_HF10_owners(world):
    status, out, err = bawn(world, "/bin/sh", "-c", "touch made; mkdir d; ln -s x l; stat -c %u .")
    names = [world.ws / n for n in ("made", "d", "l")]
    owners = {p.lstat().st_uid for p in names}
    for path in names:
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    case("HF10", "what the task made is the caller's", owners == {os.geteuid()}, owners,
         "user namespace")


def test_HF11_two_boxes(world):
    """One box lives while another looks for it."""
    child = subprocess.Popen(
        [BAWN, "run", "--state-dir", world.state, "--workspace", world.ws, "--stdin", "--",
         "/usr/bin/python3", "-uc",
         "import socket, sys\n"
         "for d in ('/tmp', '/var/tmp', '/dev/shm'): open(d + '/first', 'w').write('x')\n"
         "s = socket.create_server(('127.0.0.1', 47123)); "
         "a = socket.socket(socket.AF_UNIX); a.bind('\\0bawn-first'); a.listen()\n"
         "print('up'); sys.stdin.read()\n"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=world.ws)
    try:
        assert child.stdout.readline() == b"up\n"
        for words in ("tcp 127.0.0.1 47123", "abstract bawn-first", "read /tmp/first",
                      "stat /var/tmp/first", "stat /dev/shm/first", f"list {world.state}"):
            seen = outcome(*bawn(world, world.ws / "host", *words.split()))
            case("HF11", f"{words} of another box".replace(str(world.state), "STATE"),
                 is_refusal(seen), seen, "mount view, network")
        status, out, err = bawn(world, "/bin/sh", "-c", "ls -d /proc/[0-9]*")
        case("HF11", "processes of another box", len(out.split()) <= 3, out, "pid namespace")
    finally:
        child.communicate(timeout=30)


@pytest.mark.parametrize("kind", ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"])
def test_HM02_namespace_missing(world, kind):
    """A host that gives no namespace of one kind: refused, and the command did not run."""
    mark = world.ws / "ran"
    state = world.top / f"state-{kind}"
    state.mkdir(mode=0o700)
    script = (f"echo 0 > /proc/sys/user/max_{kind}_namespaces && exec \"$@\"")
    status, out, err = execute(
        ["unshare", "-Ur", "/bin/sh", "-c", script, "sh", BAWN, "run", "--state-dir", state,
         "--workspace", world.ws, "--", "/bin/touch", mark], world.ws)
    case("HM01" if kind == "user" else "HM02", f"no {kind} namespace", status == 125 and
         not mark.exists() and "bawn:" in err and err.count("\n") == 1, err)
    if kind == "user" and not IS_ROOT:
        case("HM05", "no user namespace: the remedy is named",
             "remedy: sudo sysctl -w user.max_user_namespaces" in err, err)


def test_HM02_inside_a_user_namespace(world):
    """Root of a user namespace gets the same box as everybody."""
    state = world.top / "state-nested"
    state.mkdir(mode=0o700)
    status, out, err = execute(
        ["unshare", "-Ur", BAWN, "run", "--state-dir", state, "--workspace", world.ws, "--",
         world.ws / "host", "capabilities"], world.ws)
    case("HM02", "uid 0 of a user namespace", status == 125 if IS_ROOT else
         is_refusal(outcome(status, out, err)), (out, err), "capabilities")


def test_HM04_hostile_environment(world):
    """Nothing in the caller's variables makes bawn run or read something else."""
    evil = world.top / "evil"
    evil.mkdir()
    mark = evil / "mark"
    for name in ("getent", "git", "sh", "bawn-parse", "newuidmap", "systemd-run", "true"):
        (evil / name).write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
        (evil / name).chmod(0o755)
    source = evil / "evil.c"
    source.write_text("#include <fcntl.h>\n#include <unistd.h>\n__attribute__((constructor)) "
                      "static void f(void) { close(creat(\"%s\", 0644)); }\n" % mark)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", evil / "evil.so", source], check=True)
    env = {"LD_PRELOAD": evil / "evil.so", "LD_AUDIT": evil / "evil.so", "LD_LIBRARY_PATH": evil,
           "GCONV_PATH": evil, "PATH": f"{evil}:/usr/bin:/bin", "TMPDIR": evil, "HOME": evil,
           "XDG_STATE_HOME": evil, "XDG_CONFIG_HOME": evil, "XDG_RUNTIME_DIR": evil, "IFS": "/",
           "LC_ALL": "../../evil", "TZ": f":{evil}/x", "MALLOC_CHECK_": "3", "LANG": "%n%s",
           "BASH_ENV": evil / "sh", "ENV": evil / "sh", "GIT_EXEC_PATH": evil, "LOCPATH": evil,
           "GIT_CONFIG_GLOBAL": evil / "sh", "GLIBC_TUNABLES": "glibc.malloc.check=3"}
    status, out, err = execute(
        [BAWN, "run", "--state-dir", world.state, "--workspace", world.ws, "--", "/bin/sh", "-c",
         "env; echo ran"], world.ws, env={k: str(v) for k, v in env.items()})
    leaked = [line for line in out.splitlines() if str(evil) in line and
              not line.startswith(("PATH=", "TZ="))]
    case("HM04", "hostile variables", status == 0 and "ran" in out and not mark.exists() and
         not leaked and sorted(p.name for p in evil.iterdir() if p.is_dir()) == [],
         (status, leaked, err), "environment")


def test_HM01_landlock_missing(world):
    """landlock_create_ruleset(2) answers ENOSYS, as where it is off: refused."""
    mark = world.ws / "ran"
    status, out, err = execute(
        ["/usr/bin/strace", "-f", "-o", "/dev/null", "-e", "inject=landlock_create_ruleset:"
         "error=ENOSYS", BAWN, "run", "--state-dir", world.state, "--workspace", world.ws, "--",
         "/bin/touch", mark], world.ws)
    case("HM01", "no Landlock", status == 125 and not mark.exists() and "landlock" in err.lower(),
         err)


@pytest.mark.parametrize("call", ["seccomp", "prctl", "setsid", "prlimit64", "pivot_root", "setns",
                                  "mount_setattr", "open_tree", "move_mount", "sethostname",
                                  "landlock_restrict_self", "close_range"])
def test_HM02_call_missing(world, call):
    """Each step of the set-up that fails ends the start (more of it: the fault injection)."""
    mark = world.ws / "ran"
    mark.unlink(missing_ok=True)
    status, out, err = execute(
        ["/usr/bin/strace", "-f", "-o", "/dev/null", "-e", f"inject={call}:error=EPERM", BAWN,
         "run", "--state-dir", world.state, "--workspace", world.ws, "--", "/bin/touch", mark],
        world.ws)
    case("HM02", f"{call} fails", status == 125 and not mark.exists(), err)


def test_inside_only_narrows(world):
    """bawn inside of a box: widening is refused, and the evidence is no variable."""
    shutil.copy2(BAWN, world.ws / "bawn")
    for options in (["--read", "/etc"], ["--write", "/usr"], ["--allow-ptrace"],
                    ["--nested-userns"], ["--env", "X=1"], ["--devices", "/dev/null"]):
        status, out, err = bawn(world, world.ws / "bawn", "run", "--state-dir", "/tmp/s", *options,
                                "--", "/bin/echo", "ran")
        case("HC11", f"inside: {options[0]}", status in (125, 126) and "ran" not in out, err)
    (world.ws / "bawn").unlink()


# What git, editors and agents of the host run later: tests/run/test_sweeping.py has more of them.

HOOK = "#!/bin/sh\\ntouch {mark}\\n"


class Repository:
    """A workspace with a commit, and the host's git, which leaves a mark where it runs a hook."""

    def __init__(self, world):
        self.world, self.ws = world, world.top / "git-ws"
        self.mark = world.top / "ran-on-host"
        self.ws.mkdir()
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.ws,
                       check=False, capture_output=True, timeout=LIMIT_S,
                       env={"PATH": os.environ["PATH"], "HOME": str(self.world.top)})

    def task(self, script, mode="direct"):
        """In a box, all of what it leaves applied; or (None) as any other process."""
        text = f"hook() {{ printf '{HOOK}' > $1; chmod 755 $1; }}; ".replace("{mark}",
                                                                           str(self.mark))
        if mode is None:
            return execute(["/bin/sh", "-c", text + script], self.ws)
        before = self.names()
        state = ["--state-dir", self.world.state]
        status, out, err = execute([BAWN, "run", *state, *MODES[mode], "--", "/bin/sh", "-c",
                                    text + script], self.ws)
        if mode != "direct":
            assert self.names() == before, "nothing is on the host"
        if mode == "staged":
            _, told, more = execute([BAWN, "apply", *state], self.ws)
            execute([BAWN, "discard", *state, "--yes"], self.ws)
            err += told + more
        return status, out, err

    def names(self):
        return sorted(str(path) for path in self.ws.rglob("*"))

    def runs(self):
        self.mark.unlink(missing_ok=True)
        self.git("commit", "-q", "--allow-empty", "-m", "y")
        return self.mark.exists()

    def close(self):
        self.mark.unlink(missing_ok=True)
        shutil.rmtree(self.ws)


@pytest.fixture(name="repository")
def make_repository(world):
    made = Repository(world)
    yield made
    made.close()


HOOKS = {
    "HC01": ["mv .git .gitX; mkdir -p .git/hooks; cp -r .gitX/. .git; hook .git/hooks/pre-commit",
             "mv .git .gitX; cp -r .gitX .git; hook .git/hooks/pre-commit",
             "hook h; mkdir q; mv h q/pre-commit; git config core.hooksPath q"],
    "HC07": ["hook .git/x; mv -f .git/x .git/hooks/pre-commit",
             "hook .git/x; ln -f .git/x .git/hooks/pre-commit",
             "hook x; mv -f x .git/hooks/pre-commit",
             "mkdir .git/y; hook .git/y/pre-commit; mv .git/hooks .git/z; mv .git/y .git/hooks"],
}


@in_each_mode
@pytest.mark.parametrize("id_, script", [(i, s) for i, each in HOOKS.items() for s in each])
def test_HC01_HC07_hooks(repository, id_, script, mode):
    """Ran on the host by whoever may write there; not where a box wrote it."""
    status, out, err = repository.task(script, mode)
    ran = repository.runs()
    case(id_, f"{mode}: {script[:46]}", not ran and
         not (repository.ws / ".git/hooks/pre-commit").exists(),
         err or "the hook is not on the host", "git overlay")
    status, out, err = repository.task(script, None)
    assert repository.runs(), ("without a box the attack works", status, out, err)


MISSING = [".claude/settings.json", ".vscode/tasks.json", ".envrc", ".mcp.json", "sub/.git/config",
           "a/b/.idea/workspace.xml", ".git/config.worktree", ".git/commondir"]


def is_told(mode, err):
    """What does not come is named; of what goes with the task nobody needs to know."""
    return "held" in err or mode == "ephemeral"


@in_each_mode
@pytest.mark.parametrize("name", MISSING)
def test_HC03_names_that_are_missing(repository, name, mode):
    """Made inside, they are not on the host afterwards, and nothing stands in for them."""
    script = f'mkdir -p "$(dirname {name})"; echo x > {name}'
    status, _, err = repository.task(script, mode)
    # directories of work files that led there stay, and are empty
    made = [path for path in repository.ws.rglob("*") if ".git" not in path.parts[-2:]
            and repository.ws / ".git" not in path.parents]
    case("HC03", f"{mode}: {name}", status == 0 and is_told(mode, err) and
         not os.path.lexists(repository.ws / name) and
         all(path.is_dir() and path.name in ("sub", "a", "b") for path in made), err, "sweep")
    repository.task(script, None)
    assert (repository.ws / name).exists(), "without a box it is there"


@in_each_mode
@pytest.mark.parametrize("name", [
    ".GIT/HOOKS/pre-commit", ".Git", "sub/.gIT/config", ".Claude/settings.json", ".ENVRC",
    ".VSCODE/tasks.json", ".g\u200cit/config", "git~1/config", ".git ./config", ".mcp.jſon"])
def test_HC09_other_spellings(repository, name, mode):
    """Where a directory folds case, or a file system drops characters, they are the names."""
    script = f"""mkdir -p "$(dirname '{name}')"; echo x > '{name}'"""
    status, _, err = repository.task(script, mode)
    first = "sub/.gIT" if name.startswith("sub") else name.split("/")[0]
    case("HC09", f"{mode}: {name}", status == 0 and is_told(mode, err) and
         not os.path.lexists(repository.ws / first), err, "sweep")


@pytest.mark.parametrize("id_", sorted(PENDING))
def test_pending(id_):
    record(id_, HOSTILE[id_]["does"][:60], "-", "-", "-", "-", "pending")
    pytest.skip(f"{id_} pending: {PENDING[id_]}")


def test_every_row_has_its_attack():
    """No row of the table is left out silently."""
    text = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    done = {a.id for a in ATTACKS} | set(PENDING)
    missing = [i for i in HOSTILE if i not in done and f'"{i}"' not in text]
    assert not missing
    assert {a.layer for a in ATTACKS} == set(SHORT), "a layer without an attack does not count"
