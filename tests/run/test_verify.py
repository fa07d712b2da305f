"""bawn verify: all as claimed in a real box, and a difference where a layer is really missing."""
import json
import os
import socket
import subprocess
import tempfile

import pytest

from boxed import BAWN, IS_ROOT, listing, place

__all__ = ["place"]

LAB = os.path.join(os.path.dirname(BAWN), "bawn-verify-lab")
LIMIT_S = 70


def verb(place, *arguments, **options):
    return subprocess.run([BAWN, "verify", *place.options, *arguments], capture_output=True,
                          text=True, cwd=place.work, timeout=LIMIT_S, check=False,
                          stdin=subprocess.DEVNULL, **options)


def attempts(place, *arguments, **options):
    ran = verb(place, "--json", *arguments, **options)
    assert ran.stderr == ""
    table = json.loads(ran.stdout)
    rows = table["attempts"]
    assert table["failed"] == sum(not row["passed"] for row in rows)
    assert ran.returncode == (1 if table["failed"] else 0)
    return rows


def find(rows, attempt, argument=None):
    return next(row for row in rows if row["attempt"] == attempt and
                (argument is None or argument in row["arguments"]))


OPTIONS = {
    "default": [],
    "ptrace": ["--allow-ptrace"],
    "nested": ["--nested-userns"],
    "nested and ptrace": ["--nested-userns", "--allow-ptrace"],
    "paths": ["--read", "/var/log", "--hide", "secret", "--hide", "/usr/share/doc", "--protect",
              "kept", "--protect", "folder"],
    "environment": ["--env", "TOKEN=x"],
    "quick": ["--quick"],
    "terminal": ["--tty"],
    "time": ["--timeout", "1ms", "--cpu-time", "1ms"],
    "output": ["--output-cap", "1"],
    "limits": ["--pids", "8", "--files", "32", "--disk", "1M", "--inodes", "256"],
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_box_is_what_explain_claims(place, name):
    for file in ("secret", "kept"):
        (place.work / file).write_text("x")
    (place.work / "folder").mkdir()
    before = listing(place.work)
    rows = attempts(place, *OPTIONS[name])
    assert [row for row in rows if not row["passed"]] == []
    assert len(rows) > 100
    assert listing(place.work) == before
    assert [n for n in os.listdir(place.state) if n.startswith("bawn")] == []
    place.assert_nothing_left()


def test_what_an_option_shows_is_no_private_area(place):
    """--read of /tmp: it is not in memory, and no file can be made in it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as state:
        ran = subprocess.run([BAWN, "verify", "--json", "--state-dir", state, "--read", "/tmp"],
                             capture_output=True, text=True, cwd=place.work, timeout=LIMIT_S,
                             check=False, stdin=subprocess.DEVNULL)
    rows = json.loads(ran.stdout)["attempts"]
    assert [row for row in rows if not row["passed"]] == [] and ran.returncode == 0
    assert "/tmp" not in [path for row in rows if row["attempt"] == "private directory"
                          for path in row["arguments"]]
    assert find(rows, "private directory", "/dev/shm") and find(rows, "set-id bit")


def test_limits_are_gone_to_the_end_of(place):
    rows = attempts(place, "--pids", "40", "--files", "300", "--disk", "64M", "--inodes", "1000")
    assert find(rows, "processes end", "40")["layer"] == "limits"
    assert find(rows, "open files end", "300")
    assert find(rows, "private area ends", "/tmp")["arguments"] == ["/tmp", str(64 << 20), "1000"]


def test_what_is_tried(place):
    """Refused by the layer that is there for it, at once."""
    rows = attempts(place)
    assert find(rows, "read", "/etc/shadow")["outcome"] == "No such file or directory"
    assert find(rows, "canary")["layer"] == "landlock"
    assert find(rows, "write read-only", "/usr")["layer"] == "mount view"
    assert find(rows, "new user namespace")["claim"] == "refused"
    for row in rows:
        if row["attempt"] == "connect":
            assert row["claim"] == "refused" and row["duration_us"] < 2_000_000
    assert len([r for r in rows if r["attempt"] == "supervisor's listener"]) == 2
    assert find(rows, "user and group")["arguments"][0] == ("1000" if IS_ROOT else
                                                            str(os.getuid()))


def test_the_claim_follows_the_options(place):
    assert find(attempts(place, "--allow-ptrace"), "ptrace")["claim"] == "works"
    rows = attempts(place, "--nested-userns")
    assert find(rows, "mount")["claim"] == find(rows, "canary")["claim"] == "works"
    assert find(rows, "ptrace")["claim"] == "refused"


def test_text(place):
    ran = verb(place, "--quick")
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, ran.stdout
    assert lines[-1].endswith(" passed, 0 failed")
    assert int(lines[-1].split()[0]) == sum(line.startswith("PASS") for line in lines)


def test_decoys_of_the_home_are_named(place):
    """Names of the caller's own home that no rule shows are looked for inside."""
    rows = attempts(place)
    decoy = next(row for row in rows if row["attempt"] == "read" and
                 row["arguments"][0].startswith(str(place.state)))
    assert decoy["errno"] == 2 and not os.path.exists(decoy["arguments"][0])


@pytest.mark.parametrize("arguments, status, word", [
    (["--bogus"], 2, "--bogus"), (["--", "true"], 2, "no command"), (["--timeout", "x"], 2, "x"),
    (["--workspace", "/"], 125, "--workspace"), (["--read", "/proc"], 1, "/proc"),
])
def test_wrong_use(place, arguments, status, word):
    ran = verb(place, *arguments)
    assert ran.returncode == status, ran
    assert ran.stdout == "" and ran.stderr.startswith("bawn: ") and word in ran.stderr
    place.assert_nothing_left()


# --- against boxes that lack something: what must be among the differences

REDUCED = {
    "nothing": None,
    "view": ("mount view", "read /var/log"),
    "read-only": ("mount view", "write read-only /usr"),
    "environment": ("environment", "only known variables"),
    "proc": ("pid namespace", "other namespace pid"),
    "hide": ("hide", "read hidden"),
    "protect": ("protect", "change protected"),
    "network namespace": ("network namespace", "connect 127.0.0.1"),
    "ipc namespace": ("ipc namespace", "shared memory"),
    "uts namespace": ("uts namespace", "host name bawn"),
    "cgroup namespace": ("cgroup namespace", "other namespace cgroup"),
    "session": ("session", "own session"),
    "limits": ("limits", "core limit 1"),
    "areas": ("limits", "private area ends /tmp"),
    "capabilities": ("capabilities", "no capability"),
    "landlock": ("landlock", "canary"),
    "seccomp": ("seccomp", "Seccomp 2"),
    "probe": ("seccomp", "io_uring"),
}


# Without the network layer the probe's connections would really leave: not from this machine.
UP = ["sh", "-c", 'ip link set lo up && exec setpriv --inh-caps=-all --ambient-caps=-all "$@"',
      "sh"]
ALONE = {"network namespace": ["unshare", "--net", *UP] if IS_ROOT else
         ["unshare", "--net", "--map-current-user", "--keep-caps", *UP]}
ALONE["addresses"] = ALONE["network namespace"]


def lab(place, without, *policy, **variables):
    for name in ("hidden", "protected"):
        (place.work / name).write_text("x")
    ran = subprocess.run([*ALONE.get(without, []), LAB, without, str(place.state),
                          *map(str, policy)],
                         capture_output=True, text=True, cwd=place.work, timeout=LIMIT_S,
                         check=False, stdin=subprocess.DEVNULL,
                         env={**os.environ, "BAWN_TEST_VARIABLE": "x", **variables})
    assert ran.stderr == "", ran
    return ran.returncode, [line.split("\t") for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("without", REDUCED)
def test_a_missing_layer_is_seen(place, without):
    expected = REDUCED[without]
    status, differences = lab(place, without)
    if not expected:
        assert (status, differences) == (0, [])
        return
    assert status == 1
    layer, attempt = expected
    assert any(line[0] == layer and line[1].startswith(attempt) for line in differences), \
        differences
    place.assert_nothing_left()


def test_sockets_of_engines_are_tried(place):
    """Where they usually lie, in the home too, and where the caller's variables say."""
    engine = place.base / "engine"
    engine.mkdir()
    path = engine / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        variables = {"DOCKER_HOST": f"unix://{path}", "ENGINE": str(engine)}
        rows = [row for row in attempts(place, env={**os.environ, **variables})
                if row["attempt"] == "connect to socket"]
        tried = [row["arguments"][0] for row in rows]
        for end in (str(path), "/.docker/run/docker.sock", f"/run/user/{os.getuid()}/docker.sock",
                    "/run/podman/podman.sock", "/run/containerd/containerd.sock"):
            assert any(one.endswith(end) for one in tried), (end, tried)
        assert all(row["passed"] for row in rows)
        _, differences = lab(place, "engine", **variables)
        assert ["mount view", f"connect to socket {path}", "it worked"] in differences, differences


@pytest.mark.skipif(not IS_ROOT, reason="the directories above a policy are root's, who is not "
                    "seen in a user's namespaces")
@pytest.mark.parametrize("without", ["nothing", "addresses"])
def test_names_that_lead_to_special_addresses(place, tmp_path, without):
    """Each of them is refused, and where one is not it is seen."""
    tmp_path.chmod(0o755)
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nnetwork: {allow: [example.org]}\n")
    _, differences = lab(place, without, policy)
    wanted = ["127.0.0.1", "169.254.169.254", "10.0.0.1", "192.168.0.1", "::1", "fd00:ec2::254",
              "::ffff:169.254.169.254"]
    seen = [line[1:] for line in differences if line[1].startswith("name that leads to")]
    assert seen == ([[f"name that leads to {one}", "does not hold"] for one in wanted]
                    if without == "addresses" else []), differences
    # such rules open the addresses themselves, too
    rest = {line[1].split(" 1")[0].split(" f")[0] for line in differences} - {
        "name that leads to", "name that leads to ::1", "name that leads to ::ffff:169.254.169.254"}
    assert rest <= ({"connection ends", "ask the door"} if seen else set()), differences


def test_each_limit_is_seen(place):
    _, differences = lab(place, "limits")
    seen = {line[1] for line in differences if line[0] == "limits"}
    assert {word for line in seen for word in ("open files", "processes", "core")
            if line.startswith(word)} == {"open files", "processes", "core"}, differences


def test_each_seccomp_attempt_needs_the_filter(place):
    """Those that this kernel would permit by itself get through without the filter."""
    _, differences = lab(place, "seccomp")
    seen = {line[1] for line in differences if line[0] == "seccomp"}
    assert {"new user namespace", "set-id bit", "x32 call", "clone3", "openat2",
            "device node"} & seen >= {"new user namespace", "set-id bit", "clone3", "openat2"}
