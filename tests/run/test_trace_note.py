"""`bawn trace note`: on record with a task that lives or has ended, or a word why it is not."""
import contextlib
import fcntl
import importlib.util
import io
import json
import os
import resource
import signal
import subprocess
import time

import pytest

from boxed import BAWN, LIMIT_S, ROOT, eventually, is_dead, place
from live import kill_later, live

__all__ = ["live", "place"]

LIMIT_BYTES = 65536


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def note(where, *words, data=None, environ=None, limit=LIMIT_S, **options):
    return subprocess.run([BAWN, "trace", "note", *where.options, *map(os.fsencode, words)],
                          input=data, stdin=subprocess.DEVNULL if data is None else None,
                          capture_output=True, timeout=limit, check=False,
                          env={**os.environ, **(environ or {})}, **options)


def trace(where, verb, *words):
    ran = subprocess.run([BAWN, "trace", verb, *where.options, *words], capture_output=True,
                         stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False, text=True)
    assert ran.returncode == 0, ran
    return ran.stdout


def noted(where, task, *words, **options):
    ran = note(where, task, *words, **options)
    assert (ran.returncode, ran.stderr) == (0, b""), ran
    assert ran.stdout == f"{task} has the note\n".encode()


def refused(ran, status, *words):
    assert (ran.returncode, ran.stdout) == (status, b""), ran
    assert ran.stderr.count(b"\n") == 1 and ran.stderr.startswith(b"bawn: "), ran
    for word in words:
        assert word in ran.stderr.decode(), ran


def in_chain(where, task):
    return [r for r in lines(where.state / f"trace/tasks/{task}.jsonl") if r["type"] == "note"]


def in_ledger(where, task):
    return [r for r in lines(where.state / "trace/ledger")
            if r["type"] == "note" and r["task"] == task]


def verify(where):
    """Both verifiers find nothing wrong."""
    trace(where, "verify")
    spec = importlib.util.spec_from_file_location("verify_trace", ROOT / "docs/verify-trace.py")
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["verify-trace.py", str(where.state / "trace")])
        assert other.main() == 0, out.getvalue()


def is_closed(live, task):
    """Nobody writes its chain any more."""
    chain = live.state / f"trace/tasks/{task}.jsonl"
    with contextlib.suppress(FileNotFoundError), chain.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def end(live, task):
    """The task, and its supervisor, which signs the ledger behind it."""
    assert live.verb("task", "end", task).status == 0
    assert eventually(lambda: is_closed(live, task))


def ended(live, *options):
    task = live.begin(*options)
    end(live, task)
    return task


def test_of_a_live_task_by_its_supervisor(live):
    task = live.begin()
    assert live.sh_in(task, "true").status == 0
    noted(live, task, "looks odd", "--meta", "by=reviewer", "--meta", "ticket=")
    assert live.sh_in(task, "true").status == 0
    chain = lines(live.state / f"trace/tasks/{task}.jsonl")
    (record,) = in_chain(live, task)
    assert record["layer"] == "execution" and record["action"] is None
    assert record["body"] == {"text": "looks odd", "meta": {"by": "reviewer", "ticket": ""},
                              "from": "client"}
    # where it was said: between the two actions
    types = [r["type"] for r in chain]
    assert types.index("note") > types.index("action.result")
    assert "action.intent" in types[types.index("note"):]
    assert in_ledger(live, task) == []
    assert live.verb("task", "end", task).status == 0
    verify(live)


def test_of_a_run_once_it_listens(place):
    run = place.start("--", "sleep", "60")
    # the first of a state directory makes the place of sockets when it listens
    assert eventually(lambda: (place.state / "run").exists())
    (task,) = os.listdir(place.state / "tasks")
    noted(place, task, "while it runs")
    assert [r["body"]["text"] for r in in_chain(place, task)] == ["while it runs"]
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=LIMIT_S)
    noted(place, task, "behind it")
    assert [r["body"]["text"] for r in in_ledger(place, task)] == ["behind it"]
    verify(place)


def test_of_a_run_without_a_socket(place):
    run = place.start("--", "sleep", "60")
    sockets = place.state / "run"
    assert eventually(lambda: sockets.exists() and os.listdir(sockets))
    (task,) = os.listdir(sockets)
    (sockets / task).unlink()
    refused(note(place, task, "x"), 1, task, "no control socket", "when it has ended")
    assert in_ledger(place, task) == in_chain(place, task) == []
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=LIMIT_S)


def test_of_a_task_that_has_ended_in_the_ledger(live):
    task = ended(live)
    before = (live.state / f"trace/tasks/{task}.jsonl").read_bytes()
    noted(live, task, "seen", "--meta", "by=me")
    (record,) = in_ledger(live, task)
    assert record["layer"] == "ledger" and record["body"] == {"text": "seen",
                                                              "meta": {"by": "me"}}
    assert (live.state / f"trace/tasks/{task}.jsonl").read_bytes() == before
    verify(live)


@pytest.mark.parametrize("is_live", [True, False])
def test_any_bytes_of_standard_input(live, is_live):
    task = live.begin() if is_live else ended(live)
    text = bytes(range(1, 256)) + "\u202e\n\n".encode()
    noted(live, task, "-", data=text)
    (record,) = in_chain(live, task) if is_live else in_ledger(live, task)
    # without the newline that ends the last line, and exact otherwise
    assert record["body"]["text"].encode(errors="surrogateescape") == text[:-1]
    if is_live:
        assert live.verb("task", "end", task).status == 0
    verify(live)


def test_words_and_options_in_any_order(live):
    task = ended(live)
    for words in ([task, "--meta", "a=b", "one"], ["--meta=a=b", task, "two"],
                  ["--", task, "--three"], [task, "--", "-"]):
        ran = note(live, *words, data=b"four\n")
        assert ran.returncode == 0, ran
    assert [(r["body"]["text"], r["body"]["meta"]) for r in in_ledger(live, task)] == [
        ("one", {"a": "b"}), ("two", {"a": "b"}), ("--three", {}), ("four", {})]


def test_the_longest_and_a_byte_more(live):
    task = live.begin()
    noted(live, task, "-", data=b"x" * LIMIT_BYTES + b"\n")
    noted(live, task, "-", data=b"\x01" * LIMIT_BYTES)
    assert [len(r["body"]["text"]) for r in in_chain(live, task)] == [LIMIT_BYTES] * 2
    for data in (b"x" * (LIMIT_BYTES + 1), b"x" * 1_000_000):
        refused(note(live, task, "-", data=data), 2, str(LIMIT_BYTES))
    assert len(in_chain(live, task)) == 2
    values = [word for i in range(20) for word in ("--meta", f"k{i}=" + "v" * 60_000)]
    refused(note(live, task, "text", *values), 2, "1048576")


@pytest.mark.parametrize("words, data, said", [
    (["TASK", ""], None, "empty"),
    (["TASK", "-"], b"", "empty"),
    (["TASK", "-"], b"a\0b", "NUL"),
    (["TASK"], None, "a task and one text"),
    (["TASK", "two", "words"], None, "a task and one text"),
    (["TASK", "x", "--meta", "nokey"], None, "KEY=VALUE"),
    (["TASK", "x", "--meta", "a=1", "--meta", "a=2"], None, "twice"),
    (["TASK", "x", "--meta", "k" * 65 + "=1"], None, "64"),
    (["t-../../x", "x"], None, "no id of a task"),
    (["", "x"], None, "no id of a task"),
    (["TASK", "x", "--bogus"], None, "unknown option --bogus"),
])
def test_wrong_use(live, words, data, said):
    task = ended(live)
    refused(note(live, *[task if w == "TASK" else w for w in words], data=data), 2, said)
    assert in_ledger(live, task) == []


def test_beginning_of_an_id(live):
    first, second = ended(live), live.begin()
    length = next(n for n in range(3, 24) if first[:n] != second[:n])
    ran = note(live, first[2:length], "short")
    assert ran.returncode == 0 and ran.stdout.startswith(first.encode()), ran
    # one that lives and one that has ended are two
    refused(note(live, "t-" if length == 3 else first[:length - 1], "x"), 2 if length == 3 else 1)
    refused(note(live, "t-" + "z" * 20, "x"), 1, "no task", "bawn trace ls")
    assert live.verb("task", "end", second).status == 0


def test_a_place_without_a_trace(live):
    refused(note(live, "t-abc", "x"), 1, "no task")


def test_a_task_without_a_record(live):
    task = live.begin("--no-trace")
    refused(note(live, task, "x"), 1, task, "--no-trace")
    assert live.verb("task", "end", task).status == 0
    refused(note(live, task, "x"), 1, "no task")
    assert not (live.state / "trace/ledger").exists()


def test_a_task_that_was_removed(live):
    task = ended(live)
    (live.state / f"trace/tasks/{task}.jsonl").rename(live.state / "kept")
    refused(note(live, task, "x"), 1, task, "not there")
    (live.state / "kept").rename(live.state / f"trace/tasks/{task}.jsonl")
    foreign = "t-" + "a" * 20
    (live.state / f"trace/tasks/{foreign}.jsonl").write_bytes(
        (live.state / f"trace/tasks/{task}.jsonl").read_bytes())
    refused(note(live, foreign, "x"), 1, "ledger does not know")
    (live.state / f"trace/tasks/{foreign}.jsonl").unlink()
    trace(live, "prune", "--keep-size", "1", "--yes")
    refused(note(live, task, "x"), 1, task, "was removed")
    assert in_ledger(live, task) == []


def test_secrets_are_not_written(live):
    first, second = live.begin(), ended(live)
    secret = "correct-horse-battery"
    for task in (first, second):
        noted(live, task, f"used {secret} and ghp_" + "a1B2" * 9, "--meta", f"key={secret}",
              environ={"DEPLOY_PASSWORD": secret})
    (body,) = [r["body"] for r in in_chain(live, first)]
    (other,) = [r["body"] for r in in_ledger(live, second)]
    for found in (body, other):
        assert found["text"].startswith("used [masked:env.DEPLOY_PASSWORD:"), found
        assert found["meta"]["key"].startswith("[masked:"), found
    for path in (live.state / "trace").rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert secret.encode() not in data and b"ghp_a1B2" not in data, path


def test_a_supervisor_that_was_killed(live):
    task = live.begin()
    supervisor = live.one()["pid"]
    os.kill(supervisor, signal.SIGKILL)
    assert eventually(lambda: is_dead(supervisor))
    noted(live, task, "it died")
    assert [r["body"]["text"] for r in in_ledger(live, task)] == ["it died"]
    # the next start marks the end of its chain, behind the note
    ended(live)
    assert [r["type"] for r in lines(live.state / "trace/ledger") if r["task"] == task] == [
        "task.start", "note", "task.lost"]
    verify(live)


def test_a_supervisor_that_does_not_answer(live):
    task = live.begin()
    pid = live.one()["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        refused(note(live, task, "x"), 1, task, "does not answer")
        assert time.monotonic() - begun < LIMIT_S
        assert in_ledger(live, task) == []
    finally:
        kill_later(pid)


def test_a_trace_that_takes_nothing(live):
    task = live.begin()
    pid = live.one()["pid"]
    chain = live.state / f"trace/tasks/{task}.jsonl"
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE,
                              (chain.stat().st_size, resource.RLIM_INFINITY))
    refused(note(live, task, "x"), 1, task, "could not be recorded")
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    noted(live, task, "y")
    assert [r["body"]["text"] for r in in_chain(live, task)] == ["y"]
    end(live, task)
    assert lines(chain)[-1]["body"]["lost_records"] == 1
    ledger = live.state / "trace/ledger"
    size = ledger.stat().st_size
    refused(note(live, task, "x", preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))), 1, "ledger cannot be written")
    assert ledger.stat().st_size == size
    verify(live)


def test_ends_while_notes_come(live):
    """Each is on record once its verb said so, in one place or the other."""
    for _ in range(3):
        task = live.begin()
        with contextlib.ExitStack() as stack:
            verbs = [stack.enter_context(subprocess.Popen(
                [BAWN, "trace", "note", *live.options, task, str(number)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)) for number in range(6)]
            assert live.verb("task", "end", task).status == 0
            said = {str(number) for number, verb in enumerate(verbs)
                    if verb.wait(timeout=LIMIT_S) == 0}
        found = [r["body"]["text"] for r in in_chain(live, task) + in_ledger(live, task)]
        assert said == {str(number) for number in range(6)} and sorted(found) == sorted(said)
    verify(live)


def test_show_and_query_tell_them(live):
    task = live.begin()
    noted(live, task, "while it lived\x1b[31m", "--meta", "by=a")
    assert live.verb("task", "end", task).status == 0
    noted(live, task, "when it was over", "--meta", "by=b")
    text = trace(live, "show", task)
    rows = [line.split(None, 1) for line in text.splitlines() if line]
    notes = [row[1] for row in rows if row[0] in ("note", "noted")]
    assert notes[0].startswith("while it lived\\x1b[31m {by=a}"), text
    assert notes[1].endswith("when it was over {by=b}"), text
    said = json.loads(trace(live, "show", "--json", task))
    assert [r["body"]["text"] for r in said["records"] if r["type"] == "note"] == [
        "while it lived\x1b[31m"]
    assert [r["body"]["meta"] for r in said["notes"]] == [{"by": "b"}]
    assert trace(live, "query", "--task", task).count(" note ") == 2


def test_refused_inside_of_a_box(live):
    task = live.begin("--read", BAWN)
    ran = live.verb("task", "exec", task, "--", BAWN, "trace", "note", task, "x")
    assert ran.status != 0 and "inside" in ran.err, ran
    assert in_chain(live, task) == []
