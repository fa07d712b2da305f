"""bawn doctor: each diagnosis that can be forced here is forced; `run` refuses with its text."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from boxed import BAWN, IS_ROOT, ROOT, eventually, listing, place

__all__ = ["place"]

POSSIBLE = 'rung "full" is possible here'
USER = ["unshare", "-Ur"]
MOUNTS = ["unshare", "-Urm"]
# it has no id but the host's uid 0 to give, and is refused (tests/attack)
ordinary = pytest.mark.skipif(IS_ROOT, reason="in a user namespace of its own root is refused")


@pytest.fixture(name="deny", scope="module")
def _deny(tmp_path_factory):
    path = tmp_path_factory.mktemp("tools") / "deny"
    subprocess.run([shutil.which("cc") or "gcc", "-D_GNU_SOURCE", "-static", "-I", ROOT / "src",
                    "-o", path, ROOT / "tests/tools/deny.c"], check=True)
    return str(path)


def execute(place, verb, prefix=(), arguments=()):
    state = [] if verb == "doctor" else place.options
    return subprocess.run([*prefix, BAWN, verb, *state, *arguments], capture_output=True,
                          text=True, cwd=place.work, timeout=60, check=False,
                          stdin=subprocess.DEVNULL)


def last_line(place, prefix=()):
    ran = execute(place, "doctor", prefix)
    assert ran.stderr == "", ran
    line = ran.stdout.splitlines()[-1]
    assert ran.returncode == (0 if line == POSSIBLE else 1)
    return line


def assert_claims_nothing(place, prefix, line):
    """Those who tell of a run say the refusal first, and call no lacking layer exact."""
    lacking = {layer["layer"] for layer in json.loads(
        execute(place, "doctor", prefix, ["--json"]).stdout)["layers"]
        if layer["enforcement"] == "absent"}
    for verb in ("explain", "plan"):
        ran = execute(place, verb, prefix, ["--", "true"])
        if ran.returncode == 125:  # not even that far
            assert (ran.stdout, ran.stderr) == ("", f"bawn: {line}\n")
            continue
        assert ran.returncode == 1, ran
        assert ran.stdout.splitlines()[0] == line
        told = json.loads(execute(place, verb, prefix, ["--json", "--", "true"]).stdout)
        assert told["refusal"] == line
        if verb == "plan":
            continue
        assert lacking
        for answers in told.values():
            for answer in answers if isinstance(answers, list) else []:
                assert answer["layer"] not in lacking or answer["enforcement"] == "absent", answer
        ran = execute(place, verb, prefix, ["--path", "/usr"])
        assert (ran.returncode, ran.stderr) == (1, f"bawn: {line}\n")


def assert_refused_alike(place, prefix, *words):
    """The doctor's last line has the words, and run refuses with exactly that line."""
    line = last_line(place, prefix)
    for word in words:
        assert word in line, line
    ran = execute(place, "run", prefix, ["--", "touch", "started"])
    assert ran.returncode == 125, ran
    assert ran.stderr == f"bawn: {line}\n"
    assert not (place.work / "started").exists()
    assert_claims_nothing(place, prefix, line)
    place.assert_nothing_left()
    return line


def test_full_is_possible_here(place):
    assert last_line(place) == POSSIBLE


@ordinary
def test_a_user_namespace_of_ones_own(place):
    """As in a rootless container: what the doctor says of it, a run finds."""
    assert last_line(place, USER) == POSSIBLE
    ran = execute(place, "run", USER, ["--", "true"])
    assert ran.returncode == 0, ran


@pytest.mark.skipif(not IS_ROOT, reason="an ordinary user may do so")
def test_root_in_a_user_namespace_of_its_own(place):
    """The doctor says of the caller what run says."""
    assert_refused_alike(place, USER, "the host's root", "as an ordinary user")


@pytest.mark.parametrize("options", [[], ["--nested-userns"]])
def test_inside_of_a_box_it_is_not_possible(place, options):
    """Inside of a box the doctor ends with what run refuses with there."""
    (place.work / "bawn").write_bytes(Path(BAWN).read_bytes())
    (place.work / "bawn").chmod(0o755)
    doctor = place.run("--quiet", *options, "--", "./bawn", "doctor")
    run = place.run("--quiet", *options, "--", "./bawn", "run", "--", "true")
    assert doctor.status == 1 and run.status == 125, (doctor, run)
    assert f"bawn: {doctor.out.splitlines()[-1]}" == run.err.strip()


def test_json(place):
    ran = execute(place, "doctor", arguments=["--json"])
    report = json.loads(ran.stdout)
    assert ran.returncode == 0 and report["full"] and report["refusal"] is None
    assert report["host"]["host_root"] == IS_ROOT
    assert report["host"]["landlock_abi"] >= 1
    assert {layer["enforcement"] for layer in report["layers"]} == {"exact"}
    outcomes = {probe["name"]: probe["outcome"] for probe in report["probes"]}
    assert outcomes["idmapped mount of this directory"] == ("works" if IS_ROOT else "not tried")
    assert [name for name, outcome in outcomes.items() if outcome == "fails"] in (
        [], ["control groups"])


def test_what_it_says_is_what_a_run_finds(place):
    """The layers that the doctor calls exact are those that a run reads back as exact."""
    report = json.loads(execute(place, "doctor", arguments=["--json"]).stdout)
    said = {layer["layer"]: layer["enforcement"] for layer in report["layers"]}
    ran = place.run("--json", "--", "sleep", "0.1")
    for layer in ran.result["layers"]:
        assert said[layer["layer"]] == layer["enforcement"], layer


def test_gaps_of_the_build_are_told(place):
    text = execute(place, "doctor").stdout
    assert "taken out of it when an action is over" in " ".join(text.split())


def probes():
    """What our own user's probes have in /tmp."""
    found = set()
    for name in os.listdir("/tmp"):
        try:
            if name.startswith("bawn-probe.") and os.lstat(f"/tmp/{name}").st_uid == os.geteuid():
                found.add(name)
        except FileNotFoundError:
            pass
    return found


def test_nothing_is_left(place):
    before = listing(place.work)
    others = probes()
    execute(place, "doctor")
    assert listing(place.work) == before
    # another suite may probe at the same time, and be about to remove what it made
    assert eventually(lambda: not probes() - others)
    place.assert_nothing_left()


@pytest.mark.parametrize("arguments", [["--bogus"], ["argument"], ["--json=yes"]])
def test_wrong_use(place, arguments):
    ran = execute(place, "doctor", arguments=arguments)
    assert ran.returncode == 2 and ran.stdout == "" and ran.stderr.startswith("bawn: ")


# --- forced: settings

@ordinary
def test_no_user_namespaces(place):
    script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    prefix = [*USER, "sh", "-c", script, "sh"]
    assert_refused_alike(place, prefix, "user namespace", "user.max_user_namespaces is 0",
                         "sudo sysctl -w user.max_user_namespaces=15000")
    # many probes meet it; cause and remedy are told once, and again by the last line
    told = execute(place, "doctor", prefix).stdout
    assert told.count("user.max_user_namespaces is 0") == 2, told
    assert told.count("sudo sysctl") == 2 and "      pid namespace: No space left" in told


@ordinary
@pytest.mark.parametrize("kind", ["net", "ipc", "uts", "cgroup", "mnt", "pid"])
def test_no_namespaces_of_a_kind(place, kind):
    script = f'echo 0 > /proc/sys/user/max_{kind}_namespaces; exec "$@"'
    assert_refused_alike(place, [*USER, "sh", "-c", script, "sh"], "namespace", "user.max_")


@ordinary
def test_covered_proc(place):
    """As in a container: a part of /proc is covered, so that a new one would uncover it."""
    script = 'mount -t tmpfs none /proc/sys && exec "$@"'
    assert_refused_alike(place, [*MOUNTS, "sh", "-c", script, "sh"],
                         "proc of a new pid namespace", "parts of /proc are covered",
                         "systempaths=unconfined")


@ordinary
def test_no_proc(place):
    script = 'mount -t tmpfs none /proc && exec "$@"'
    assert_refused_alike(place, [*MOUNTS, "sh", "-c", script, "sh"], "/proc is not mounted",
                         "mount -t proc")


@pytest.mark.skipif(not IS_ROOT, reason="only a root caller's files are mapped")
def test_a_file_system_without_id_maps(place):
    """An overlay cannot map ids (mount_setattr(2)): no workspace for a root caller."""
    for name in ("lower", "upper", "workdir"):
        (place.base / name).mkdir()
    script = (f"mount -t overlay none -o lowerdir={place.base}/lower,upperdir={place.base}/upper,"
              f"workdir={place.base}/workdir {place.work} && cd {place.work} && exec \"$@\"")
    assert_refused_alike(place, ["unshare", "-m", "sh", "-c", script, "sh"],
                         "idmapped mount of this directory", "cannot map ids", "btrfs")


# --- forced: calls

DENIED = {
    "user namespaces as Docker": ("EPERM", "unshare:user,clone:user,clone3", "filter"),
    "no pidfd": ("EPERM", "clone:pidfd,clone3", "clone with a pidfd", "filter"),
    "no setns": ("EPERM", "setns", "setns by pidfd", "filter"),
    "no mount": ("EPERM", "mount", "private mounts", "filter"),
    "no fsopen": ("ENOSYS", "fsopen", "tmpfs", "filter"),
    "no mount_setattr": ("ENOSYS", "mount_setattr", "filter"),
    "no open_tree": ("EPERM", "open_tree", "filter"),
    "no move_mount": ("EPERM", "move_mount", "filter"),
    "no openat2": ("ENOSYS", "openat2", "openat2"),
    "no pivot_root": ("EPERM", "pivot_root", "pivot_root", "filter"),
    "no landlock": ("ENOSYS", "landlock_create_ruleset", "landlock"),
    "landlock off": ("EOPNOTSUPP", "landlock_create_ruleset", "landlock", "not started", "lsm="),
    "landlock cannot restrict": ("EPERM", "landlock_restrict_self", "landlock", "filter"),
    "no seccomp": ("ENOSYS", "seccomp", "seccomp", "filter"),
    "memfd not executable": ("EACCES", "execveat", "sealed memfd"),
    "no close_range": ("ENOSYS", "close_range", "close_range"),
}


@pytest.mark.parametrize("name", DENIED)
def test_denied_call(place, deny, name):
    number, calls, *words = DENIED[name]
    assert_refused_alike(place, [deny, number, calls], *words)


def test_a_failure_that_is_not_the_hosts_keeps_its_message(place):
    """The doctor has nothing to say: the message of the run itself stays."""
    ran = execute(place, "run", arguments=["--cwd", "nowhere", "--", "true"])
    assert ran.returncode == 125 and "nowhere" in ran.stderr and "rung" not in ran.stderr
