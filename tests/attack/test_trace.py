"""The record, attacked from inside: rows HJ02, HJ03 and HJ05 of hostile.tsv.

What changes files of the record from outside is in tests/run/test_trace_verify.py, keys and heads
in test_trace_sign.py, full disks and deaths in test_trace_run.py.
"""
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "run"))

from boxed import BAWN, place  # noqa: E402
from live import live  # noqa: E402

from test_attack import case  # noqa: E402

__all__ = ["place", "live"]

HERE = Path(__file__).resolve().parent
EVIL = [b"new\nline", b'"}\n{"v":1,"seq":0', b"\xff\xfe\x80", b"\x1b]52;c;AAAA\x07", b"\r\x08\x08",
        "\u202egnp.exe".encode(), b"back\\slash \"quoted\"", b"\xed\xa0\x80 lone", b"\xc2\x85 nel"]
TOKEN = "ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3d"
PASSWORD = "correct-horse-battery"


def records(where):
    """Every line of every chain, each one JSON object of visible characters."""
    found = []
    for path in (where.state / "trace/tasks").iterdir():
        for line in path.read_bytes().split(b"\n")[:-1]:
            assert not any(byte < 0x20 or byte == 0x7f for byte in line), line
            found.append(json.loads(line))
    return found


def as_bytes(text):
    return text.encode("utf-8", "surrogateescape")


def verifies(where):
    ran = subprocess.run([BAWN, "trace", "verify", *where.options], capture_output=True, text=True,
                         timeout=30, check=False)
    return ran.returncode == 0


@pytest.mark.parametrize("evil", EVIL)
def test_HJ02_hostile_bytes(place, evil):
    """In arguments, variables, names of files, the directory and the output."""
    folder = os.fsencode(place.work) + b"/" + evil.replace(b"/", b"_")
    os.mkdir(folder)
    child = subprocess.run(
        [*map(os.fsencode, place.argv("--env")), b"EVIL=" + evil, b"--meta", b"goal=" + evil,
         b"--workspace", os.fsencode(place.work), b"--cwd", folder, b"--", b"sh", b"-c",
         b'printf %s "$1"; printf %s "$1" >&2; : >"./$2"; cat "/absent/$1"', b"sh", evil,
         evil.replace(b"/", b"_")],
        cwd=place.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
    found = records(place)
    intent = next(one for one in found if one["type"] == "action.intent")["body"]
    good = (child.stdout == evil and as_bytes(intent["argv"][4]) == evil and
            as_bytes(intent["cwd"]) == folder and as_bytes(intent["meta"]["goal"]) == evil and
            verifies(place))
    shown = subprocess.run([BAWN, "trace", "show", *place.options, found[0]["task"]],
                           capture_output=True, timeout=30, check=False).stdout
    raw = [byte for byte in shown if byte < 0x20 and byte != 0x0a or byte == 0x7f]
    case("HJ02", f"{evil!r:.30}", good and not raw and b"\x9b" not in shown,
         child.stderr.decode(errors="replace") or "on record", "trace")


def test_HJ03_from_inside(place):
    """The files of the record cannot be reached, filled up or locked by a task."""
    place.run("--", "true")
    trace = place.state / "trace"
    ran = place.sh(f"for f in {trace} {trace}/ledger {place.state}; do "
                   "ls -d $f; echo x >>$f; rm -rf $f; mkdir -p $f; flock -n $f true; done; "
                   "kill -STOP -1; kill -9 -1")
    after = place.run("--", "echo", "on")
    case("HJ03", "reach the record", after.out == "on\n" and verifies(place), ran.err, "trace")


def test_HJ05_secrets_leak_nowhere(place):
    """Values of secret variables, tokens and passwords of URLs: not in the record, nor in ps."""
    env = {**os.environ, "DEPLOY_PASSWORD": PASSWORD}
    url = f"https://me:{PASSWORD}x9@host.invalid/path"
    child = place.start("--env", "DEPLOY_PASSWORD", "--", "sh", "-c",
                        f"echo up; env; echo {TOKEN}; cat {url} {TOKEN}; sleep 0.5; exit 1",
                        env=env)
    assert child.stdout.readline() == b"up\n"
    told = b""
    for entry in os.listdir("/proc"):
        try:
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            continue
        if b"bawn" in command.split(b"\0")[0] and str(place.state).encode() in command:
            told += command
    child.communicate(timeout=30)
    kept = b"".join(path.read_bytes() for path in place.state.rglob("*") if path.is_file())
    leaks = [word for word in (PASSWORD, TOKEN) if word.encode() in kept]
    # what the caller typed stands in the caller's own command line, and nothing else does
    good = leaks == [] and b"DEPLOY_PASSWORD=" not in told and verifies(place)
    case("HJ05", "secrets in the record", good, leaks or "masked", "trace")


def test_HJ05_secrets_of_one_action(live):
    """A variable that only one action of a live task has: from then on it is masked everywhere."""
    task = live.begin()
    seen = [live.verb("task", "exec", "--env", f"DEPLOY_TOKEN={PASSWORD}", task, "--", "sh", "-c",
                      f"env; echo {PASSWORD}").out for _ in range(3)]
    live.verb("task", "end", task)
    kept = b"".join(path.read_bytes() for path in (live.state / "trace").rglob("*")
                    if path.is_file())
    good = all(PASSWORD in one for one in seen) and PASSWORD.encode() not in kept
    case("HJ05", "secrets of one action", good and verifies(live), "masked", "trace")


def test_every_row_of_group_j():
    with open(HERE / "hostile.tsv", newline="") as file:
        rows = [row["id"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
                if row["group"].startswith("J.")]
    text = Path(__file__).read_text()
    assert rows == ["HJ02", "HJ03", "HJ05"] and not [row for row in rows if f'"{row}"' not in text]
