"""run --no-spool: the output is passed on exactly, and nothing of it stays."""
import hashlib
import os

from boxed import LIMIT_S, eventually, select_ready
from live import live

__all__ = ["live"]

PRINTS = ("import sys\n"
          "for i in range(640):\n"
          "    sys.stdout.buffer.write(bytes([i % 251]) * 65536)\n"
          "sys.stdout.buffer.write(b'end\\n')\n")


def test_every_byte_arrives_and_none_is_kept(live):
    child = live.start("--no-spool", "--", "python3", "-c", PRINTS + "sys.stdout.flush()\n"
                       "import os, time\n"
                       "while not os.path.exists('go'): time.sleep(0.02)")
    told = hashlib.sha256()
    total = 640 * 65536 + 4
    while total:
        chunk = os.read(child.stdout.fileno(), min(total, 1 << 16))
        assert chunk, "the output ended early"
        told.update(chunk)
        total -= len(chunk)
    expected = hashlib.sha256(b"".join(bytes([i % 251]) * 65536 for i in range(640)) + b"end\n")
    assert told.digest() == expected.digest()
    task = os.listdir(live.state / "tasks")[0]
    kept = [name for _, _, files in os.walk(live.state / "tasks" / task) for name in files
            if name in ("out", "err", "index")]
    assert kept == []
    ran = live.verb("logs", task)
    assert ran.status == 1 and ran.out == "" and "--no-spool" in ran.err, ran
    (live.work / "go").touch()
    child.communicate(timeout=LIMIT_S)
    assert child.returncode == 0


def test_the_cap_holds_without_a_spool(live):
    ran = live.run("--no-spool", "--output-cap", "1M", "--json", "--", "python3", "-c", PRINTS)
    assert len(ran.bytes.split(b"\n{")[0]) == 1 << 20
    assert ran.result["cause"] == "limit", ran.result


def test_denials_are_still_inferred_from_the_last_words(live):
    ran = live.run("--no-spool", "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x >&2; "
                   "echo >&2; touch /usr/lib/x")
    assert ran.status != 0 and "denied: fs.write /usr/lib/x" in ran.err[-2000:], ran


def test_attach_still_sees_it(live):
    child = live.start("--no-spool", "--", "sh", "-c",
                       "until test -e go; do echo tick; sleep 0.1; done; echo later")
    select_ready(child)
    assert eventually(lambda: live.one()["state"] == "running")
    task = os.listdir(live.state / "tasks")[0]
    with live.spawn("attach", "--no-stdin", task) as other:
        assert other.stdout.readline() == b"tick\n"
        (live.work / "go").touch()
        out, _ = other.communicate(timeout=LIMIT_S)
    assert out.endswith(b"later\n"), out
    child.communicate(timeout=LIMIT_S)
    assert child.returncode == 0
