"""What runs and live tasks write into the trace, and what they do where they cannot."""
import hashlib
import json
import os
import random
import signal
import subprocess

import time

import jsonschema
import pytest

from boxed import BAWN, IS_ROOT, ROOT, eventually, place, refused
from live import live

__all__ = ["place", "live"]

TOKEN = "ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3d"
SCHEMAS = {name: json.loads((ROOT / f"docs/schema/{name}.schema.json").read_text())
           for name in ("action", "result", "trace")}

def lines(path):
    text = path.read_bytes()
    assert text.endswith(b"\n") or not text, path
    return [json.loads(line) for line in text.splitlines()]

def ledger(where):
    return lines(where.state / "trace/ledger")

def chains(where):
    """Of each task its records, checked one by one."""
    resolver = jsonschema.RefResolver.from_schema(
        SCHEMAS["trace"], store={one["$id"]: one for one in SCHEMAS.values()})
    schema = jsonschema.Draft202012Validator(SCHEMAS["trace"], resolver=resolver)
    found = {}
    for path in (where.state / "trace/tasks").iterdir():
        found[path.stem] = lines(path)
        for record in found[path.stem]:
            schema.validate(record)
    return found

def only_chain(where):
    found = chains(where)
    assert len(found) == 1, found.keys()
    return next(iter(found.values()))

def types(records):
    return [record["type"] for record in records]

def of_type(records, wanted):
    return [record for record in records if record["type"] == wanted]

def body(records, wanted):
    found = of_type(records, wanted)
    assert len(found) == 1, (wanted, types(records))
    return found[0]["body"]

def verify(where, status=0):
    ran = subprocess.run([BAWN, "trace", "verify", *where.options], capture_output=True, text=True,
                         timeout=60, check=False)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr

def everything_below(where):
    return b"".join(path.read_bytes() for path in where.state.rglob("*") if path.is_file())

def test_records_of_a_run(place):
    ran = place.run("--meta", "agent=claude", "--meta", "goal=see", "--", "sh", "-c",
                    "echo out; echo err >&2; exit 3")
    assert ran.status == 3, ran
    records = only_chain(place)
    assert types(records) == ["task.start", "verdict", "action.intent", "action.start",
                              "action.result", "stream", "stream", "task.end"] or \
        types(records) == ["task.start", "verdict", "action.intent", "action.start",
                           "executable", "action.result", "stream", "stream", "task.end"] or \
        types(records)[-2:] == ["executable", "task.end"], types(records)
    start = body(records, "task.start")
    assert start["meta"] == {"agent": "claude", "goal": "see"}
    assert start["workspace"] == str(place.work)
    assert start["user"]["uid"] == os.geteuid()
    policy = place.state / "trace/policies" / start["policy_kept"]
    assert hashlib.sha256(policy.read_bytes()).hexdigest() == start["policy_kept"]
    intent = body(records, "action.intent")
    assert intent["argv"] == ["sh", "-c", "echo out; echo err >&2; exit 3"]
    assert intent["cwd"] == str(place.work)
    running = body(records, "action.start")
    assert {row["layer"] for row in running["layers"]} >= {"seccomp", "landlock", "pid namespace"}
    assert all(row["enforcement"] == "exact" for row in running["layers"]), running["layers"]
    assert [row for row in running["limits"] if row["limit"] == "processes"]
    result = body(records, "action.result")
    assert (result["end"], result["cause"], result["status"]) == (
        {"kind": "exited", "code": 3}, "command", 3)
    assert body(records, "task.end") == {"actions": 1, "cause": "end", "lost_records": 0}
    assert "good" in verify(place)

def executable_of(records):
    """What the record says of the file, now or later."""
    known = of_type(records, "executable") or of_type(records, "action.start")
    return known[-1]["body"].get("executable", known[-1]["body"])

def test_the_executable_and_its_digest(place):
    script = place.work / "tool"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    for _ in range(2):
        assert place.run("--", "./tool").out == "hello\n"
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    for records in chains(place).values():
        found = executable_of(records)
        assert (found["path"], found["sha256"]) == (str(script), digest)
        assert found["inode"] == script.stat().st_ino

def test_a_changed_executable_has_another_digest(place):
    tool = place.work / "tool"
    seen = set()
    for text in "one", "two":
        tool.write_text(f"#!/bin/sh\necho {text}\n")
        tool.chmod(0o755)
        assert place.run("--", "./tool").out == text + "\n"
    for records in chains(place).values():
        seen.add(executable_of(records)["sha256"])
    assert len(seen) == 2

def blob(where, task, name):
    plain = where.state / "trace/blobs" / task / name
    return plain.read_bytes()

def test_streams_and_their_digests(place):
    data = bytes(range(256)) * 40
    ran = place.run("--stdin", "--", "sh", "-c", "cat; printf 'x\\377\\000y' >&2", data=data)
    assert ran.bytes == data
    records = only_chain(place)
    task = records[0]["task"]
    streams = {one["body"]["stream"]: one["body"] for one in of_type(records, "stream")}
    assert set(streams) == {"stdin", "stdout", "stderr"}
    digest = hashlib.sha256(data).hexdigest()
    assert streams["stdin"]["sha256"] == digest == streams["stdout"]["sha256"]
    assert streams["stdout"]["bytes"] == len(data) == streams["stdin"]["bytes"]
    assert blob(place, task, streams["stdout"]["blob"]) == data
    assert blob(place, task, streams["stderr"]["blob"]) == b"x\xff\0y"


def test_the_times_of_a_stream(place):
    place.sh("for i in 1 2 3 4; do echo out; sleep 0.02; echo err >&2; sleep 0.02; done")
    records = only_chain(place)
    for stream in of_type(records, "stream"):
        index = blob(place, records[0]["task"], stream["body"]["index"])
        assert index[:7] == b"BAWNSPL" and len(index) > 8 * 16

def played(place):
    """The events of the recording of the only action: (seconds, text)."""
    task, = chains(place)
    ran = subprocess.run([BAWN, "trace", "export", "--format", "asciinema", *place.options, task],
                         capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran
    return [(event[0], event[2]) for event in map(json.loads, ran.stdout.splitlines()[1:])]

@pytest.mark.parametrize("script, pieces", [
    ("echo 1; sleep .3; echo r; sleep .2; echo end", ["1\r\n", "r\r\n", "end\r\n"]),
    ("echo 1; sleep .2; echo 2", ["1\r\n", "2\r\n"]),
    ("echo 1; sleep .2; echo 2 >&2", ["1\r\n", "2\r\n"]),
])
def test_the_times_of_a_short_action(place, script, pieces):
    """Each piece has its own moment, the first one too."""
    place.sh("sleep .2; " + script)
    events = played(place)
    assert [text for _, text in events] == pieces
    times = [0.0] + [at for at, _ in events]
    assert all(later - sooner > 0.15 for sooner, later in zip(times, times[1:])), times

@pytest.mark.parametrize("script, text", [("echo all", "all\r\n"), ("true", "")])
def test_what_came_at_once_is_played_at_once(place, script, text):
    place.sh(script)
    assert "".join(piece for _, piece in played(place)) == text
    assert all(one["body"]["index"] is None for one in of_type(only_chain(place), "stream"))

def test_a_recording_of_what_is_not_kept(place):
    place.run("--no-spool", "--", "echo", "all")
    task, = chains(place)
    ran = subprocess.run([BAWN, "trace", "export", "--format", "asciinema", *place.options, task],
                         capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1 and "--no-spool" in ran.stderr, ran

@pytest.mark.parametrize("argument", [
    b"plain", b"new\nline", b"\xff\xfe not utf-8 \x80", b'"}\n{"v":1', b"\x1b[31m\x07\\u0041",
    "bidi \u202e and \U0001f600".encode(), b"\xed\xb2\x80 a surrogate", b"x" * 100_000])
def test_bytes_of_arguments_come_back(place, argument):
    child = subprocess.run([*map(os.fsencode, place.argv("--", "true")), argument], cwd=place.work,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    assert child.returncode == 0, child
    raw = (place.state / "trace/tasks").iterdir().__next__().read_bytes()
    # nothing breaks a line or a terminal
    assert not any(byte < 0x20 and byte != 0x0a for byte in raw)
    intent = body(only_chain(place), "action.intent")
    assert os.fsencode(intent["argv"][1]) == argument or \
        intent["argv"][1].encode("utf-8", "surrogateescape") == argument
    verify(place)

def test_the_longest_arguments(place):
    ran = place.run("--", "true", *["\x01" * 100_000] * 12)
    assert ran.status == 0, ran.err[:300]
    assert len(body(only_chain(place), "action.intent")["argv"]) == 13
    verify(place)

def test_secrets_are_masked_wherever_they_turn_up(place):
    secret, given = "correct-horse-battery-staple", "another-secret-of-ours"
    env = {**os.environ, "DEPLOY_PASSWORD": secret}
    ran = place.run("--env", f"SERVICE_TOKEN={given}", "--", "sh", "-c",
                    f"echo {secret}; echo {TOKEN} >&2; echo $SERVICE_TOKEN", env=env)
    assert ran.out == f"{secret}\n{given}\n", ran
    kept = everything_below(place)
    for value in secret, given, TOKEN:
        assert value.encode() not in kept
    assert kept.count(b"[masked:env.DEPLOY_PASSWORD:") >= 2
    records = only_chain(place)
    assert body(records, "action.intent")["environment"]["SERVICE_TOKEN"] is None
    start = body(records, "task.start")
    assert start["policy"] != start["policy_kept"]
    for stream in of_type(records, "stream"):
        assert stream["body"]["masked"] and stream["body"]["sha256"] is None
    verify(place)

def test_equal_secrets_are_seen_to_be_equal(place):
    env = {**os.environ, "DEPLOY_PASSWORD": "correct-horse"}
    for _ in range(2):
        place.run("--", "true", "correct-horse", env=env)
    place.run("--", "true", "correct-house", env={**env, "DEPLOY_PASSWORD": "correct-house"})
    marks = [body(records, "action.intent")["argv"][1] for records in chains(place).values()]
    assert len(marks) == 3 and len(set(marks)) == 2, marks

def test_a_refusal_is_on_record(place):
    ran = place.run("--write", "/etc", "--", "make", "install")
    assert ran.status == 126
    records = only_chain(place)
    assert body(records, "action.intent")["argv"] == ["make", "install"]
    verdict = body(records, "verdict")
    assert (verdict["verdict"], verdict["target"]) == ("deny", "/etc")
    assert (body(records, "approval")["answer"], body(records, "approval")["by"]) == ("deny", None)
    assert body(records, "action.result")["end"] == {"kind": "denied"}
    assert body(records, "task.end")["cause"] == "refused"
    verify(place)

def test_a_refusal_tells_what_is_known_and_no_more(place):
    """Before there is a policy no id inside is known; a row that nothing is known of is none."""
    inner = place.work / "inner"
    inner.mkdir()
    assert place.run("--write", "/usr", "--cwd", "inner", "--", "true").status == 126
    records = only_chain(place)
    start = body(records, "task.start")
    assert start["workspace"] == str(place.work)
    assert body(records, "action.intent")["cwd"] == str(inner)
    assert (start["user"]["inside_uid"], start["user"]["inside_gid"]) == (None, None)
    assert start["policy"] is None and start["rung"] is None
    task = records[0]["task"]
    shown = subprocess.run([BAWN, "trace", "show", *place.options, task], capture_output=True,
                           text=True, timeout=60, check=False).stdout
    for wrong in ("inside uid", "by ()", "not all of it", "rung", "\n  policy", " ()",
                  "after 0.0s"):
        assert wrong not in shown, shown
    for right in (f"where      {place.work} (run)", f"in         {inner}",
                  "nobody was there to ask"):
        assert right in shown, shown
    assert all(line == line.rstrip() for line in shown.splitlines()), shown
    listed = subprocess.run([BAWN, "trace", "ls", *place.options], capture_output=True, text=True,
                            timeout=60, check=False).stdout
    assert f"run  {place.work}\n" in listed

def test_a_refusal_by_the_gate_has_the_policy(place):
    policy = place.base / "p.yaml"
    policy.write_text("version: 1\nexec:\n  deny: [{program: \"true\"}]\n")
    policy.chmod(0o600)
    assert place.run("--policy", str(policy), "--", "true").status == 126
    start = body(only_chain(place), "task.start")
    assert start["policy"] and start["policy_kept"]
    assert start["user"]["inside_uid"] == (1000 if IS_ROOT else os.getuid())

def test_denials_and_limits_are_on_record(place):
    place.sh("unshare -U true; exit 1")
    place.run("--timeout", "200ms", "--", "sleep", "9")
    place.run("--output-cap", "1000", "--", "sh", "-c", "yes")
    denials, limits = [], []
    for records in chains(place).values():
        denials += [one["body"]["code"] for one in of_type(records, "denial")]
        limits += [one["body"]["limit"] for one in of_type(records, "limit")]
    assert "sys.namespace" in denials
    assert "output" in limits
    verify(place)

def test_no_trace(place):
    assert place.run("--no-trace", "--", "echo", "hi").out == "hi\n"
    assert not (place.state / "trace").exists()

def test_the_box_does_not_see_the_trace(place):
    place.run("--", "true")
    trace = place.state / "trace"
    ran = place.sh(f"ls -d {place.state} {trace} {trace}/ledger /proc/*/root{trace} 2>/dev/null")
    assert ran.out == "", ran

@pytest.mark.parametrize("spoil, word", [
    (lambda trace: trace.mkdir() or trace.chmod(0o777), "Operation not permitted"),
    (lambda trace: trace.symlink_to("/tmp"), "Not a directory"),
    (lambda trace: trace.write_text(""), "Not a directory"),
    (lambda trace: (trace.mkdir(), (trace / "ledger").mkdir()), "ledger"),
    (lambda trace: (trace.mkdir(), os.mkfifo(trace / "ledger")), "ledger"),
    (lambda trace: (trace.mkdir(), (trace / "ledger").symlink_to("/etc/passwd")), "ledger"),
    (lambda trace: (trace.mkdir(), (trace / "ledger").write_text("no record\n")), "ledger"),
    (lambda trace: (trace.mkdir(), (trace / "ledger").write_bytes(b"\0" * 5_000_000 + b"\n")),
     "ledger"),
])
def test_without_a_trace_nothing_starts(place, spoil, word):
    spoil(place.state / "trace")
    ran = place.run("--", "sh", "-c", "echo yes > started")
    refused(ran, place, 125, "so nothing was started", word)

def test_a_read_only_trace(place):
    if IS_ROOT:
        pytest.skip("root writes everywhere")
    place.run("--", "true")
    (place.state / "trace/tasks").chmod(0o500)
    refused(place.run("--", "touch", "started"), place, 125, "Permission denied")
    (place.state / "trace/tasks").chmod(0o700)

@pytest.mark.parametrize("verb", [("run", "--env", "A=4", "--", "touch", "started"),
                                  ("task", "start", "--env", "A=4")])
def test_a_start_that_failed_is_an_honest_record(live, verb):
    """The policy's copy cannot be kept: nothing starts, and the chain says so and is none the
    worse for it."""
    live.run("--", "true")
    policies = live.state / "trace/policies"
    policies.rename(live.base / "aside")
    policies.write_text("")
    ran = live.verb(*verb)
    assert ran.status == 125 and not (live.work / "started").exists(), ran
    for word in ("so nothing was started", str(live.state), "trace/policies/", "Not a directory"):
        assert word in ran.err, ran
    policies.unlink()
    (live.base / "aside").rename(policies)
    assert "good" in verify(live)
    failed, = [one for one in chains(live).values() if not of_type(one, "action.start")]
    start = body(failed, "task.start")
    assert start["policy"] and start["policy_kept"] is None
    if verb[0] == "run":
        assert body(failed, "action.result")["end"]["kind"] == "failed"
    assert types(failed)[-1] == "task.end" and body(failed, "task.end")["cause"] == "failed"

def test_a_remedy_is_named(place):
    if IS_ROOT:
        pytest.skip("root writes everywhere")
    place.run("--", "true")
    (place.state / "trace/policies").chmod(0o500)
    refused(place.run("--env", "A=4", "--", "touch", "started"), place, 125, "trace/policies/",
            "Permission denied", "make it writable", "--state-dir")
    (place.state / "trace/policies").chmod(0o700)

@pytest.mark.skipif(not IS_ROOT, reason="mounts a small file system")
@pytest.mark.parametrize("size", ["8k", "12k", "16k", "20k", "24k", "28k", "1m,nr_inodes=13",
                                  "1m,nr_inodes=15", "1m,nr_inodes=17", "1m,nr_inodes=19"])
def test_no_room_for_the_first_record(place, size):
    run = f"{BAWN} run --state-dir {place.state}"
    ran = small_state(place, size, f"""
        {run} -- touch started && exit 9
        # as after a kill: the next start looks at what such a task left
        for chain in {place.state}/trace/tasks/*.jsonl; do
            mkdir -p {place.state}/tasks/$(basename $chain .jsonl)
        done
        mount -o remount,size=10m,nr_inodes=1000 {place.state}
        {run} -- true && {BAWN} trace verify --state-dir {place.state} &&
        python3 {ROOT}/docs/verify-trace.py {place.state}/trace""")
    assert ran.returncode == 0 and "make room" in ran.stderr, ran
    assert "No space left on device" in ran.stderr, ran
    assert not (place.work / "started").exists()

def test_a_changed_last_record_of_the_ledger_stops_all(place):
    place.run("--", "true")
    path = place.state / "trace/ledger"
    text = path.read_bytes()
    path.write_bytes(text[:-100] + b"x" + text[-99:])
    refused(place.run("--", "touch", "started"), place, 125, "ledger", "bawn trace verify")
    path.write_bytes(text)
    assert place.run("--", "true").status == 0

@pytest.mark.parametrize("torn", [b"{", b'{"v":1,"seq":3', b"x" * 10_000, b"\0" * 100])
def test_a_torn_ledger_goes_on(place, torn):
    place.run("--", "true")
    with open(place.state / "trace/ledger", "ab") as file:
        file.write(torn)
    assert place.run("--", "true").status == 0
    mark = [one for one in ledger(place) if one["type"] == "resumed"]
    assert len(mark) == 1 and mark[0]["body"] == {
        "torn_bytes": len(torn), "torn_sha256": hashlib.sha256(torn).hexdigest()}
    verify(place)

def test_who_holds_the_ledger_is_named(place):
    place.run("--", "true")
    holder = subprocess.Popen(["flock", place.state / "trace/ledger", "sleep", "60"])
    try:
        assert eventually(lambda: subprocess.run(
            ["flock", "-n", place.state / "trace/ledger", "true"], check=False).returncode)
        ran = place.run("--", "touch", "started", limit=30)
        assert ran.status == 125 and "locked by process" in ran.err, ran
        assert not (place.work / "started").exists()
    finally:
        subprocess.run(["pkill", "-P", str(holder.pid)], check=False)
        holder.kill()
        holder.wait()

def test_a_stopped_supervisor_does_not_stop_others(place):
    child = place.start("--", "sh", "-c", "echo up; sleep 60")
    try:
        assert child.stdout.readline() == b"up\n"
        child.send_signal(signal.SIGSTOP)
        assert place.run("--", "echo", "hi").out == "hi\n"
    finally:
        child.send_signal(signal.SIGCONT)
        child.terminate()
        child.wait()
    verify(place)

def test_many_writers_one_ledger(place):
    children = [place.start("--", "true") for _ in range(24)]
    for child in children:
        assert child.wait(30) == 0, child.stderr.read()
        child.stdout.close()
        child.stderr.close()
    assert types(ledger(place)).count("task.end") == 24
    assert "24 tasks" in verify(place)

def test_a_clock_set_back(place):
    """The wall clock is not what orders records."""
    if not IS_ROOT:
        pytest.skip("the test's own time namespace has no wall clock; only root could set it")
    pytest.skip("setting the host's clock would disturb it; docs/TRACE.md: mono_ns and seq order")

def killed_at(where, delay_s):
    """A run whose supervisor is killed at some moment."""
    child = where.start("--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo $i; done; sleep 9",
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay_s)
    child.kill()
    child.wait()

KILLS = int(os.environ.get("TRACE_KILLS", "12"))

def test_killed_at_any_moment(place):
    chance = random.Random(4)
    place.run("--", "true")
    for _ in range(KILLS):
        killed_at(place, chance.random() * 0.06)
        # not yet told from one that lives by those who only read
        verify(place)
    place.run("--", "true")
    ended = types(ledger(place))
    assert ended.count("task.start") <= ended.count("task.end") + ended.count("task.lost") + 2
    verify(place)
    for records in chains(place).values():
        if records and records[-1]["type"] == "task.lost":
            assert records[0]["type"] == "task.start"

def test_a_dead_task_is_marked_by_the_next_start(place):
    child = place.start("--", "sh", "-c", "echo up; sleep 60")
    assert child.stdout.readline() == b"up\n"
    child.kill()
    child.wait()
    task = next(iter(chains(place)))
    with open(place.state / f"trace/tasks/{task}.jsonl", "ab") as file:
        file.write(b'{"v":1,"torn')
    assert place.run("--", "true").status == 0
    records = chains(place)[task]
    assert types(records)[-2:] == ["resumed", "task.lost"]
    assert records[-2]["body"]["torn_bytes"] == 12
    lost = [one for one in ledger(place) if one["type"] == "task.lost"]
    assert [(one["task"], one["body"]) for one in lost] == [
        (task, {"records": len(records), "last": records[-1]["hash"]})]
    verify(place)

def small_state(place, size, script):
    """A state directory on a file system of that size, in a mount namespace of its own."""
    return subprocess.run(
        ["unshare", "-m", "--propagation", "private", "sh", "-c",
         f"mount -t tmpfs -o size={size},mode=700 none {place.state} && {script}"],
        cwd=place.work, capture_output=True, text=True, timeout=60, check=False)

@pytest.mark.skipif(not IS_ROOT, reason="mounts a small file system")
def test_a_full_disk(place):
    run = f"{BAWN} run --state-dir {place.state}"
    # grows until the record has no room: nothing starts then, and the ledger stays whole
    ran = small_state(place, "300k", f"""
        i=0
        while {run} -- sh -c 'echo yes' >/dev/null 2>err; do
            i=$((i + 1)); [ $i -lt 200 ] || exit 9
        done
        cat err; {run} -- touch started 2>/dev/null
        head -c 60000 {place.state}/trace/tasks/* >/dev/null
        {BAWN} trace verify --state-dir {place.state}""")
    assert "No space left on device" in ran.stdout, ran
    assert not (place.work / "started").exists()
    assert ran.returncode in (0, 1) and "changed" not in ran.stdout, ran

@pytest.mark.skipif(not IS_ROOT, reason="mounts a small file system")
def test_a_disk_that_is_full_in_mid_task(place):
    run = f"{BAWN} run --state-dir {place.state}"
    ran = small_state(place, "2m", f"""
        {run} -- true
        {run} -- sh -c 'echo up; sleep 1; echo end' &
        sleep 0.5
        head -c 3000000 /dev/zero > {place.state}/filler 2>/dev/null
        wait; rm {place.state}/filler
        {run} -- true; {BAWN} trace verify --state-dir {place.state}""")
    assert "good" in ran.stdout, ran

def test_live_task(live):
    task = live.begin("--meta", "agent=codex")
    assert live.sh_in(task, "echo one").out == "one\n"
    assert live.sh_in(task, "head -c 3000000 /dev/zero | tr '\\0' x", limit=30).status == 0
    assert live.sh_in(task, "exit 4").status == 4
    assert live.verb("task", "end", task).status == 0
    assert eventually(lambda: types(chains(live)[task])[-1] == "task.end")
    records = chains(live)[task]
    assert body(records, "task.start")["kind"] == "live"
    assert body(records, "task.start")["meta"] == {"agent": "codex"}
    assert len(of_type(records, "action.intent")) == 3
    assert [one["body"]["status"] for one in of_type(records, "action.result")] == [0, 0, 4]
    large = [one["body"] for one in of_type(records, "stream") if one["body"]["bytes"] > 100_000]
    assert large[0]["sha256"] == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert body(records, "task.end")["actions"] == 3
    verify(live)

def test_a_live_task_is_unfinished_and_no_fault(live):
    task = live.begin()
    live.sh_in(task, "true")
    assert "1 unfinished" in verify(live)
    live.verb("task", "end", task)
    assert eventually(lambda: "0 unfinished" in verify(live))

def test_a_trace_in_the_workspace_is_refused(place):
    inside = place.work / "state"
    inside.mkdir(mode=0o700)
    ran = place.run("--state-dir", str(inside), "--workspace", str(place.work), "--", "touch",
                    "started")
    assert ran.status in (125, 126), ran
    assert not (place.work / "started").exists()

def test_verbs_without_a_trace(place):
    for verb in ("ls", "stats", "verify"):
        ran = subprocess.run([BAWN, "trace", verb, *place.options], capture_output=True, text=True,
                             timeout=20, check=False)
        assert ran.returncode in (0, 1) and "Traceback" not in ran.stderr, ran

