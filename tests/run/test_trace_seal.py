"""What is kept of an action's streams, what is masked in it, and how it is removed again.

Blobs by themselves are kept and read by bawn-seal-lab (tests/tools/seal-lab.c).
"""
import hashlib
import json
import os
import pty
import random
import select
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from boxed import BAWN, IS_ROOT, LIMIT_S, eventually, place  # noqa: F401  (a fixture)

HERE = Path(BAWN).parent
LAB = str(HERE / "bawn-seal-lab")
PACK = HERE / "bawn-pack"
# put together, so that nobody takes this file for a leak
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
TASK = "t-sealed"
NO_LIMIT = str(2**40)
# bytes that a frame has by its length: RFC 8878
MAGIC = b"\x28\xb5\x2f\xfd"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def lab(*words, prefix=(), lab=LAB, **options):
    return subprocess.run([*prefix, lab, *map(str, words)], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=LIMIT_S, check=False, **options)


def seal(place, data, **options):
    path = place.base / "bytes"
    path.write_bytes(data)
    ran = lab("seal", place.state, TASK, path, **options)
    assert ran.returncode == 0, ran
    return json.loads(ran.stdout)


def check(place, name, limit=NO_LIMIT, **options):
    return lab("check", place.state, TASK, name, limit, **options).stdout.decode().strip()


def read(place, name, limit=NO_LIMIT):
    ran = lab("read", place.state, TASK, name, limit)
    assert ran.returncode == 0, ran
    return ran.stdout


def blobs(place, task=TASK):
    return sorted((place.state / "trace/blobs" / task).iterdir())


def noise(length):
    return random.Random(length).randbytes(length)


def lines(length):
    return b"".join(b"line %d: nothing is wrong\n" % i for i in range(length // 20))[:length]


def trace(place, *words, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([BAWN, "trace", *map(str, words[:1]), "--state-dir", str(place.state),
                           *map(str, words[1:])], capture_output=True, timeout=LIMIT_S,
                          check=False, text=True, **options)


def done(place, *words, **options):
    ran = trace(place, *words, **options)
    assert ran.returncode == 0, ran
    return ran.stdout


def chains(place):
    return sorted((place.state / "trace/tasks").iterdir(), key=lambda path: path.stat().st_mtime_ns)


def records(path, kind=None):
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [record for record in found if kind in (None, record["type"])]


def ledger(place, kind=None):
    return records(place.state / "trace/ledger", kind)


# --- blobs ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 3, lines(65535), lines(65536),
                                  lines(3_000_000), noise(3_000_000)],
                         ids=["empty", "byte", "binary", "below", "at", "lines", "noise"])
def test_round_trip(place, data):
    kept = seal(place, data)
    assert kept["sha256"] == kept["name"] == sha256(data)
    assert kept["bytes"] == kept["kept"] == len(data) and kept["masked"] == 0
    assert read(place, kept["name"], len(data)) == data
    file, = blobs(place)
    assert file.stat().st_mode & 0o7777 == 0o600 and file.stat().st_size == kept["stored"]
    assert kept["packed"] == (file.suffix == ".zst")
    assert kept["packed"] == (len(data) >= 65536 and kept["stored"] < len(data))
    assert seal(place, data)["name"] == kept["name"] and blobs(place) == [file]


@pytest.mark.parametrize("size, frames", [(500_000, 1), (8 << 20, 1), ((8 << 20) + 1, 2),
                                          (9_000_000, 2)])
def test_a_stranger_reads_it(place, size, frames):
    data = lines(size)
    kept = seal(place, data)
    file, = blobs(place)
    packed = file.read_bytes()
    assert packed[:4] == MAGIC and packed.count(MAGIC) == frames
    file.unlink()
    assert seal(place, data) | {"ns": 0} == kept | {"ns": 0}
    assert file.read_bytes() == packed
    if shutil.which("zstd"):
        assert subprocess.run(["zstd", "-dc", file], capture_output=True, check=True).stdout == data


@pytest.mark.parametrize("at", [0, 65530, 131060, 262143, 262144 - 20, 300000])
def test_secrets_across_chunks(place, at):
    data = lines(400_000)
    data = data[:at] + b" " + TOKEN.encode() + b" " + data[at:]
    kept = seal(place, data)
    found = read(place, kept["name"], kept["kept"])
    assert kept["sha256"] == sha256(data) != kept["name"] == sha256(found)
    assert kept["masked"] == 1
    assert TOKEN.encode() not in found and found[:at + 1] == data[:at + 1]
    assert found[at + 1:].startswith(b"[masked:github:") and found.endswith(data[-1000:])


def test_changed_missing_and_foreign(place):
    packed, plain = seal(place, lines(200_000)), seal(place, b"small")
    assert check(place, packed["name"]) == check(place, plain["name"]) == "whole"
    for file in blobs(place):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    assert check(place, packed["name"]) == check(place, plain["name"]) == "changed"
    for file in blobs(place):
        file.unlink()
        os.symlink("/etc/passwd", file)
    assert check(place, packed["name"]) == check(place, plain["name"]) == "changed"
    for file in blobs(place):
        file.unlink()
        os.mkfifo(file)
    assert check(place, packed["name"]) == check(place, plain["name"]) == "changed"
    for file in blobs(place):
        file.unlink()
    assert check(place, packed["name"]) == check(place, plain["name"]) == "missing"


def bomb(gigabytes):
    """Run-length blocks of 128 KiB, four bytes each (RFC 8878, 3.1.1.2)."""
    blocks = gigabytes * 8192
    head = [(0x20000 << 3) | (1 << 1) | (i == blocks - 1) for i in range(blocks)]
    return MAGIC + b"\0\x58" + b"".join(struct.pack("<I", word)[:3] + b"\0" for word in head)


def test_bomb(place):
    seal(place, b"")
    name = "b" * 64
    file = place.state / "trace/blobs" / TASK / f"{name}.zst"
    file.write_bytes(bomb(16))
    begin = time.monotonic()
    assert check(place, name, limit=100_000) == "changed"
    assert time.monotonic() - begin < 5
    # the reader of a pipe has what its record says, and no more
    ran = lab("read", place.state, TASK, name, 100_000)
    assert ran.returncode == 1 and len(ran.stdout) <= 100_000
    # a frame that asks for a window of 2 GiB
    file.write_bytes(MAGIC + b"\0\xa8" + bomb(1)[6:])
    assert check(place, name) == "changed"


def alone(place):
    """A copy of the lab with no role beside it."""
    copy = place.base / "alone"
    copy.mkdir()
    shutil.copy(LAB, copy)
    return str(copy / Path(LAB).name)


def test_without_the_role(place):
    data = lines(300_000)
    kept = seal(place, data, lab=alone(place))
    assert not kept["packed"] and kept["unpacked"] < 0 and kept["stored"] == len(data)
    assert read(place, kept["name"]) == data
    packed = seal(place, data + b"more")
    assert packed["packed"]
    assert check(place, packed["name"], lab=str(place.base / "alone" / Path(LAB).name)) == \
        "unreadable"


def test_a_role_that_dies_or_stops(place):
    """Killed in the middle: the bytes are kept as they are."""
    data = lines(60_000_000)
    path = place.base / "bytes"
    path.write_bytes(data)
    with subprocess.Popen([LAB, "seal", str(place.state), TASK, str(path)],
                          stdout=subprocess.PIPE) as child:
        found = []

        def role():
            found[:] = [int(pid) for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children")
                        .read_text().split()] if child.poll() is None else []
            return found or child.poll() is not None
        assert eventually(role) and found, "no role was seen"
        os.kill(found[0], signal.SIGKILL)
        kept = json.loads(child.communicate(timeout=LIMIT_S)[0])
    assert kept["name"] == sha256(data) and not kept["packed"] and kept["unpacked"] < 0
    assert check(place, kept["name"]) == "whole"


def test_killed_while_sealing(place):
    data = noise(1_000_000) + lines(20_000_000)
    path = place.base / "bytes"
    path.write_bytes(data)
    chance = random.Random(4)
    ended = 0
    for _ in range(20):
        with subprocess.Popen([LAB, "seal", str(place.state), TASK, str(path)],
                              stdout=subprocess.DEVNULL) as child:
            time.sleep(chance.random() * 0.3)
            child.kill()
            ended += child.wait() == 0
        kept = blobs(place) if (place.state / "trace/blobs" / TASK).exists() else []
        for file in kept:
            assert file.stem == sha256(data) and check(place, file.stem) == "whole"
            file.unlink()
    assert ended < 20
    kept = seal(place, data)
    assert [file.stem for file in blobs(place)] == [kept["name"]]


NO_ROOM = """
mount -t tmpfs -o size=$2,mode=0700 none "$1" && shift 2 && "$@"; echo "status $?"
ls -A "$STATE/trace/blobs/t-sealed"
"""


@pytest.mark.parametrize("data", [lines(3_000_000), noise(3_000_000)], ids=["lines", "noise"])
def test_no_room(place, data):
    """A file system that is too small for it: the reason, and nothing of it."""
    path = place.base / "bytes"
    path.write_bytes(data)
    unshare = ["unshare", "-m", "--propagation", "private"] if IS_ROOT else ["unshare", "-Urm"]

    def sealed(size):
        return subprocess.run([*unshare, "bash", "-c", NO_ROOM, "bash", place.state, size, LAB,
                               "seal", place.state, TASK, path], capture_output=True, text=True,
                              env={**os.environ, "STATE": str(place.state)},
                              timeout=LIMIT_S, check=False)
    ran = sealed("40k")
    assert ran.stdout.splitlines() == ["status 1"], ran
    assert "No space left" in ran.stderr and "3000000 bytes" in ran.stderr, ran
    ran = sealed("8m")
    assert ran.stdout.splitlines()[1] == "status 0" and len(ran.stdout.splitlines()) == 3, ran


# --- executables ---------------------------------------------------------------------------------

def executable(place, path):
    return lab("executable", place.state, path).stdout.decode().splitlines()


def test_executables(place):
    wanted = sha256(Path("/bin/true").read_bytes())
    assert executable(place, "/bin/true") == [wanted, "computed"]
    assert executable(place, "/bin/true") == [wanted, "known"]
    fresh = place.base / "fresh"
    shutil.copy("/bin/true", fresh)
    # changed a moment ago: not remembered
    assert executable(place, fresh) == executable(place, fresh) == [wanted, "computed"]
    os.mkfifo(place.base / "fifo")
    assert executable(place, place.base / "fifo")[0] == "it is no regular file"
    with open(place.base / "giant", "wb") as file:
        file.truncate(2**40)
    assert executable(place, place.base / "giant")[0] == "it is too large"


# --- streams of actions --------------------------------------------------------------------------

def test_streams_of_a_run(place):
    ran = place.sh(f"seq 1 30000; echo {TOKEN} >&2; printf '\\377\\0\\n' >&2")
    assert ran.status == 0, ran
    chain, = chains(place)
    out, err = (next(r["body"] for r in records(chain, "stream") if r["body"]["stream"] == name)
                for name in ("stdout", "stderr"))
    directory = place.state / "trace/blobs" / chain.stem
    wanted = b"".join(b"%d\n" % i for i in range(1, 30001))
    assert out["sha256"] == out["blob"] == sha256(wanted) and out["bytes"] == len(wanted)
    assert (directory / f"{out['blob']}.zst").exists()
    assert err["masked"] == 1
    kept = (directory / err["blob"]).read_bytes()
    assert kept.startswith(b"[masked:github:") and kept.endswith(b"]\n\xff\0\n")
    assert sha256(kept) == err["blob"] and len(kept) == err["blob_bytes"]
    assert TOKEN.encode() not in b"".join(
        path.read_bytes() for path in (place.state / "trace").rglob("*") if path.is_file())
    done(place, "verify")


def test_a_secret_that_is_a_word_of_ours(place):
    ran = place.run("--", "echo", "the execution", env={**os.environ, "DB_PASSWORD": "execution"})
    assert ran.status == 0, ran
    chain, = chains(place)
    assert {record["layer"] for record in records(chain)} == {"policy", "execution", "result"}
    argv = records(chain, "action.intent")[0]["body"]["argv"]
    assert argv[1].startswith("the [masked:env.DB_PASSWORD:")
    done(place, "verify")


# --- removing ------------------------------------------------------------------------------------

def test_prune_by_name(place):
    for word in "abc":
        place.sh(f"echo {word}")
    first, second, third = (path.stem for path in chains(place))
    assert first in done(place, "prune", "--dry-run", first) and len(chains(place)) == 3
    ran = trace(place, "prune", first)
    assert ran.returncode == 2 and "--yes" in ran.stderr and len(chains(place)) == 3
    assert "1 task removed" in done(place, "prune", "--yes", "--reason", "a test", first)
    assert [path.stem for path in chains(place)] == [second, third]
    assert not (place.state / "trace/blobs" / first).exists()
    body = ledger(place, "task.removed")[0]["body"]
    ended = ledger(place, "task.end")[0]["body"]
    assert body == {"records": ended["records"], "last": ended["last"], "reason": "a test"}
    done(place, "verify")
    ran = trace(place, "prune", "--yes", first)
    assert ran.returncode == 1 and "removed already" in ran.stderr
    ran = trace(place, "prune", "--yes", "t-" + "z" * 20)
    assert ran.returncode == 1 and len(ledger(place, "task.removed")) == 1


def test_prune_by_age_and_size(place):
    for word in range(4):
        place.sh(f"head -c 40000 /dev/urandom; echo {word}")
    before = [path.stem for path in chains(place)]
    assert "0 tasks removed" in done(place, "prune", "--yes", "--older-than", "1h")
    assert [path.stem for path in chains(place)] == before
    done(place, "prune", "--yes", "--keep-size", "120K")
    assert [path.stem for path in chains(place)] == before[2:]
    assert len(list((place.state / "trace/policies").iterdir())) >= 1
    time.sleep(0.01)
    done(place, "prune", "--yes", "--older-than", "1ms")
    assert chains(place) == [] and list((place.state / "trace/policies").iterdir()) == []
    assert [record["task"] for record in ledger(place, "task.removed")] == before
    done(place, "verify")
    for words in ([], ["--older-than", "1h", before[0]], ["--older-than", "x"],
                  ["--keep-size", "much"]):
        assert trace(place, "prune", "--yes", *words).returncode == 2


def test_policies_that_are_in_use_stay(place):
    place.sh("true")
    place.run("--hide", "x", "--", "true")
    first, second = chains(place)
    kept = records(second, "task.start")[0]["body"]["policy_kept"]
    policies = place.state / "trace/policies"
    # one that an earlier prune was about to remove, when it died
    (policies / kept).rename(policies / f"{kept}.going")
    done(place, "prune", "--yes", first.stem)
    assert [path.name for path in policies.iterdir()] == [kept]
    # a chain that has just begun: nothing is known of its policy
    (place.state / "trace/tasks/t-begun.jsonl").touch()
    done(place, "prune", "--yes", second.stem)
    assert [path.name for path in policies.iterdir()] == [kept]


def test_a_live_task_stays(place):
    child = place.start("--", "bash", "-c", "echo up; read -r line")
    try:
        assert eventually(lambda: (place.state / "trace/tasks").exists() and chains(place))
        task = chains(place)[0].stem
        assert select.select([child.stdout], [], [], LIMIT_S)[0]
        ran = trace(place, "prune", "--yes", task)
        assert ran.returncode == 1 and "lives" in ran.stderr, ran
        done(place, "prune", "--yes", "--keep-size", "0")
        assert [path.stem for path in chains(place)] == [task]
    finally:
        child.kill()
        child.communicate()


def test_a_removal_that_was_cut_short_is_finished(place):
    place.sh("seq 1 40000")
    chain, = chains(place)
    copy = place.base / "copy"
    shutil.copytree(place.state / "trace", copy)
    done(place, "prune", "--yes", chain.stem)
    # as if it had died right after the ledger's record
    shutil.copy(copy / "tasks" / chain.name, chain)
    shutil.copytree(copy / "blobs" / chain.stem, place.state / "trace/blobs" / chain.stem)
    assert "1 task removed" in done(place, "prune", "--yes", "--older-than", "1d")
    assert not chain.exists() and not (place.state / "trace/blobs" / chain.stem).exists()
    assert len(ledger(place, "task.removed")) == 1


def test_redact(place):
    place.sh("seq 1 40000; echo private >&2")
    chain, = chains(place)
    action = records(chain, "stream")[0]["action"]
    streams = {r["body"]["stream"]: r["body"]["blob"] for r in records(chain, "stream")}
    ran = trace(place, "redact", "--yes", chain.stem, streams["stderr"])
    assert ran.returncode == 2 and "--reason" in ran.stderr
    done(place, "redact", "--yes", "--reason", "a name", chain.stem, streams["stderr"])
    assert ledger(place, "blob.removed")[0]["body"] == {"blob": streams["stderr"],
                                                        "reason": "a name"}
    done(place, "redact", "--yes", "--reason", "too", "--stream", "stdout", action)
    left = {path.stem for path in blobs(place, chain.stem)}
    assert not left & set(streams.values())
    assert "2 removed on record" in done(place, "verify")
    for words in ([chain.stem, streams["stderr"]], ["--stream", "stdin", action],
                  [chain.stem, "a" * 64], ["t-" + "z" * 20, "a" * 64]):
        ran = trace(place, "redact", "--yes", "--reason", "x", *words)
        assert ran.returncode == 1, (words, ran)
    for words in ([chain.stem], [chain.stem, "../../ledger"], ["--stream", "stdlog", action],
                  ["--stream", "stdout", chain.stem]):
        ran = trace(place, "redact", "--yes", "--reason", "x", *words)
        assert ran.returncode == 2, (words, ran)
    assert len(ledger(place, "blob.removed")) == 2


def test_the_ledger_comes_first(place):
    """Where the removal cannot be recorded nothing is removed."""
    place.sh("seq 1 40000")
    chain, = chains(place)
    before = sorted((place.state / "trace").rglob("*"))
    (place.state / "trace/ledger").rename(place.state / "trace/ledger.away")
    (place.state / "trace/ledger").write_bytes(
        (place.state / "trace/ledger.away").read_bytes()[:-1] + b"\n{no record\n")
    ran = trace(place, "prune", "--yes", "--older-than", "1ms")
    assert ran.returncode == 125 and "ledger" in ran.stderr, ran
    (place.state / "trace/ledger.away").rename(place.state / "trace/ledger")
    assert sorted((place.state / "trace").rglob("*")) == before and chain.exists()


@pytest.mark.parametrize("answer,left", [(b"y\n", 0), (b"\n", 1), (b"no\n", 1), (b"\x04", 1)])
def test_a_person_is_asked(place, answer, left):
    place.sh("true")
    chain, = chains(place)
    ours, theirs = pty.openpty()
    with subprocess.Popen([BAWN, "trace", "prune", "--state-dir", str(place.state), chain.stem],
                          stdin=theirs, stdout=theirs, stderr=theirs) as child:
        os.close(theirs)
        seen = b""
        while b"[y/N]" not in seen:
            assert select.select([ours], [], [], LIMIT_S)[0], seen
            seen += os.read(ours, 4096)
        os.write(ours, answer)
        status = child.wait(LIMIT_S)
    os.close(ours)
    assert (status, len(chains(place))) == (left, left)
