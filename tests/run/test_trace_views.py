"""`bawn trace ls|show|query|stats|tail|export` over traces made without bawn (traces.py)."""
import json
import os
import pty
import resource
import select
import signal
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

import traces
from boxed import BAWN, IS_ROOT, LIMIT_S, place  # noqa: F401  (a fixture)

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
# What no text for people may hold: controls but tab and newline, bidi controls, invalid UTF-8.
FORBIDDEN = {chr(c) for c in range(32) if chr(c) not in "\t\n"} | set("\x7f\u202e\u2066\u200b")
HOSTILE = [b"\x1b]0;owned\x07", "\u202egnp.exe", b"\xff\xfe", "line\nbreak", b"nul\x00byte",
           "\u200b", "'; rm -rf /", "a" * 5000, "\x9b31m", "\U000e0041"]


def trace(state, *words, limit=LIMIT_S, **options):
    ran = subprocess.run([BAWN, "trace", *map(str, words), "--state-dir", str(state)]
                         if "export" not in words and "show" not in words else
                         [BAWN, "trace", words[0], "--state-dir", str(state), *map(str, words[1:])],
                         stdin=subprocess.DEVNULL, capture_output=True, timeout=limit,
                         check=False, **options)
    ran.out, ran.err = ran.stdout.decode("utf-8"), ran.stderr.decode("utf-8")
    return ran


def good(state, *words, **options):
    ran = trace(state, *words, **options)
    assert ran.returncode == 0, ran
    assert ran.err == "", ran
    return ran.out


def complaint(ran, status, *words):
    assert ran.returncode == status, ran
    assert ran.out == "", ran
    assert len(ran.err.splitlines()) == 1 and ran.err.startswith("bawn: "), ran
    for word in words:
        assert word in ran.err, (word, ran.err)


class Sample:
    """Tasks in every state."""

    def __init__(self, state):
        self.state = state
        store = self.store = traces.Store(state)
        task = self.task = store.task(meta={"agent": "claude", "turn": "3"})
        task.verdict()
        task.approval()
        self.build = task.run(
            ["make", "-j8", "all tests"], out=b"hello\n\x1b[31mred\xff\n", err=b"oops\n", code=2,
            denials=[traces.denial(), traces.denial("net.connect", "example.com:443", 3),
                     traces.denial(thing="/etc/shadow", where=traces.rule("system.absent"))],
            hits=[traces.limit_hit()], changes=[traces.change()])
        self.child = task.run(["cat", "notes"], parent=self.build,
                              chunks=[(0.5, 0, b"a\xc3"), (1.25, 0, b"\xa9\n"), (2, 1, b"b\xff")])
        self.slow = task.run(["sleep", "100"], cause="limit", status=124, duration_us=60_000_000,
                             end={"kind": "timed-out", "signal": 15, "core_dumped": False},
                             compress=True, out=b"x" * 1000)
        task.note("looks odd", {"by": "reviewer"})
        task.end()
        self.lost = store.task()
        self.stopped, _ = self.lost.intent(["cargo", "build"])
        self.lost.add("execution", "denial", traces.denial(count=2), self.stopped)
        self.lost.lose()
        self.removed = store.task()
        self.removed.run(["true"])
        self.removed.end()
        store.remove(self.removed)
        self.missing = store.task()
        self.missing.end()
        self.missing.chain.path.unlink()
        self.open = store.task(kind="live")
        action, _ = self.open.intent(["npm", "test"])
        self.open.add("execution", "denial", traces.denial(count=4), action)
        self.open.flush()


@pytest.fixture
def sample(place):  # noqa: F811
    return Sample(place.state)


def test_the_generator_is_true_to_the_format(sample):
    ledger = traces.check(sample.store.root / "ledger", traces.NO_HASH)
    first = {r["task"]: r["hash"] for r in ledger if r["type"] == "task.start"}
    for task in (sample.task, sample.lost, sample.open):
        found = traces.check(task.chain.path, first[task.id])
        assert [r["task"] for r in found] == [task.id] * len(found)


# --- golden files: REGENERATE=1 writes them anew, to be looked at

def golden(name, text):
    """Ages differ from day to day; everything else is from a seed."""
    path = GOLDEN / name
    if os.environ.get("REGENERATE"):
        path.write_text(text)
    assert path.read_text() == text


def without_ages(text):
    lines = []
    for line in text.splitlines():
        head, ago, rest = line.partition(" ago  ")
        lines.append(head.rsplit("  ", 1)[0] + "  AGE" + ago + rest if ago else line)
    return "\n".join(lines) + "\n"


def test_ls_golden(sample):
    golden("trace-ls.txt", without_ages(good(sample.state, "ls")))


def test_show_golden(sample):
    golden("trace-show.txt", good(sample.state, "show", sample.task.id))


def test_stats_golden(sample):
    golden("trace-stats.txt", good(sample.state, "stats"))


def test_query_golden(sample):
    golden("trace-query.txt", good(sample.state, "query"))


def test_ocsf_golden(sample):
    golden("trace-ocsf.jsonl", good(sample.state, "export", "--format", "ocsf", sample.task.id))


# --- ls

def test_ls_tells_the_states_apart(sample):
    listed = json.loads(good(sample.state, "ls", "--json"))
    states = {task["task"]: task["state"] for task in listed["tasks"]}
    assert states == {sample.task.id: "ended", sample.lost.id: "lost",
                      sample.removed.id: "removed", sample.missing.id: "missing",
                      sample.open.id: "unfinished"}
    assert [task["task"] for task in listed["tasks"]][-1] == sample.task.id
    actions = {a["action"]: a for t in listed["tasks"] for a in t["actions"]}
    built = actions[sample.build]
    assert (built["status"], built["denials"], built["network_denials"], built["changes"],
            built["limit"]) == (2, 5, 3, 1, "memory")
    assert actions[sample.child]["parent"] == sample.build
    assert actions[sample.slow]["end"] == "timed-out" and actions[sample.slow]["cause"] == "limit"
    assert actions[sample.stopped]["end"] is None and actions[sample.stopped]["denials"] == 2


def test_a_held_task_is_live(sample):
    import fcntl
    folder = sample.state / "tasks" / sample.open.id
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        listed = json.loads(good(sample.state, "ls", "--json", "--state", "live"))
        assert [task["task"] for task in listed["tasks"]] == [sample.open.id]
    finally:
        os.close(fd)
    assert "runs" not in good(sample.state, "ls")


@pytest.mark.parametrize("words,expected", [
    (["--state", "removed"], ["removed"]), (["--failed"], ["task"]),
    (["--denied"], ["open", "lost", "task"]), (["--since", "2026-12-01"], None),
    (["--until", "2026-11-30T12:00:00.004Z"], ["task"]),
])
def test_ls_filters(sample, words, expected):
    ran = trace(sample.state, "ls", "--json", *words)
    assert ran.returncode == (0 if expected else 1), ran
    assert [t["task"] for t in json.loads(ran.out)["tasks"]] == \
        [getattr(sample, name).id for name in expected or []]


def test_ls_shows_the_newest_and_says_of_the_rest(place):  # noqa: F811
    store = traces.Store(place.state)
    made = [store.task().end() for _ in range(40)]
    listed = json.loads(good(place.state, "ls", "--json"))
    assert [t["task"] for t in listed["tasks"]] == [t.id for t in made[:9:-1]]
    assert listed["left_out"] == 10
    assert "10 more tasks; --all" in good(place.state, "ls")
    assert len(json.loads(good(place.state, "ls", "--json", "--all"))["tasks"]) == 40


def test_no_trace_is_no_fault(place):  # noqa: F811
    complaint(trace(place.state, "ls"), 1, "no task in the trace")
    complaint(trace(place.state, "tail"), 1, "no trace yet")
    assert trace(place.state, "query").returncode == 1
    # looking makes nothing
    assert not (place.state / "trace").exists()


# --- show

def test_show_of_an_action_is_of_it_alone(sample):
    told = good(sample.state, "show", sample.child)
    assert sample.child in told and "cat notes" in told and "make" not in told
    assert told.startswith(f"task {sample.task.id}")


def test_show_prints_output_without_its_control_sequences(sample):
    told = good(sample.state, "show", "--output", sample.build)
    assert "    | hello\n    | \\x1b[31mred\\xff\n" in told
    assert "    | oops\n" in told


def test_show_of_what_became_of_blobs(place):  # noqa: F811
    store = traces.Store(place.state)
    task = store.task()
    task.run(["a"], out=b"kept\n", err=b"secret\n")
    task.run(["b"], out=b"gone\n", err=b"changed\n")
    task.run(["c"], keep=False, out=b"not kept\n")
    task.end()
    store.remove_blob(task, traces.sha256(b"secret\n"))
    (store.root / "blobs" / task.id / traces.sha256(b"gone\n")).unlink()
    (store.root / "blobs" / task.id / traces.sha256(b"changed\n")).write_bytes(b"CHANGED\n")
    told = good(place.state, "show", "--output", task.id)
    for text in ("kept\n    | kept", "removed, on record", "missing", "not kept: --no-spool",
                 "! the blob was changed"):
        assert text in told, text
    assert "not all of it can be reconstructed" in told
    shown = json.loads(good(place.state, "show", "--json", task.id))
    states = [s["state"] for a in shown["actions"] for s in a["streams"]]
    assert states[:4] == ["kept", "removed, on record", "missing", "kept"]
    assert shown["reach"]["is_reconstructible"] is False


def test_a_blob_s_name_leads_nowhere_else(place):  # noqa: F811
    store = traces.Store(place.state)
    task = store.task()
    action, shape = task.intent(["a"])
    task.result(shape)
    (place.state / "outside").write_bytes(b"OUTSIDE\n")
    for name in ("../../../outside", "/etc/passwd", "a" * 64):
        task.add("result", "stream", {
            "stream": "stdout", "bytes": 8, "sha256": "0" * 64, "blob": name, "blob_bytes": 8,
            "masked": 0, "dropped": 0, "index": name}, action)
    task.end()
    os.mkdir(store.root / "blobs" / task.id)
    os.symlink("/etc/passwd", store.root / "blobs" / task.id / ("a" * 64))
    told = good(place.state, "show", "--output", task.id)
    assert "OUTSIDE" not in told and "root:" not in told
    complaint(trace(place.state, "export", "--format", "asciinema", task.id), 1)


def test_show_reads_the_kept_policy(place):  # noqa: F811
    """The policy of a real run: what explain would say of it."""
    ran = place.run("--json", "--quiet", "--", "true")
    name = ran.result["policy"]
    kept = place.state / "trace" / "policies" / name
    if not kept.exists():
        pytest.skip("this build's runs keep no policy")
    task_id = ran.result["action"]["task"]
    told = good(place.state, "show", task_id)
    assert f"  write      {os.path.realpath(place.work)}" in told
    assert 'built-in "workspace.write"' in told and 'built-in "system.read-only"' in told
    assert "nothing beyond the box's own loopback" in told
    kept.chmod(0o600)
    kept.write_bytes(kept.read_bytes() + b"x")
    assert "its policy was changed" in good(place.state, "show", task_id)


def test_ids_by_their_beginning(sample):
    task = sample.task.id
    assert good(sample.state, "show", task[2:10]) == good(sample.state, "show", task)
    complaint(trace(sample.state, "show", "t-zzzzzzz"), 1, "t-zzzzzzz", "bawn trace ls")
    complaint(trace(sample.state, "show", "../x"), 2, "../x")
    complaint(trace(sample.state, "show", "t-"), 2)
    complaint(trace(sample.state, "show", sample.removed.id), 1, "was removed")
    complaint(trace(sample.state, "show", sample.missing.id), 1, "is not there")
    # an action's letters may be those of its task: then the task is meant
    store = traces.Store(sample.state / "same")
    twin = store.task(name="t-samesame")
    action, shape = twin.intent(["true"], name="a-samesame")
    twin.result(shape)
    twin.end()
    assert good(sample.state / "same", "show", "same").startswith("task t-samesame")
    store = traces.Store(sample.state / "two")
    for name in ("t-aaaabbbbcccc", "t-aaaaddddeeee"):
        store.task(name=name).end()
    complaint(trace(sample.state / "two", "show", "aaaa"), 1, "several", "t-aaaaddddeeee")


# --- query

def types(out):
    return [json.loads(line)["type"] for line in out.splitlines()]


@pytest.mark.parametrize("words,count", [
    (["--rule", "system.absent"], 1), (["--rule", "home.private"], 3),
    (["--host", "example.com"], 1), (["--host", "EXAMPLE.com"], 1), (["--host", ".com"], 1),
    (["--host", "ample.com"], 0), (["--path", "/etc"], 1), (["--path", "/etc/shad"], 0),
    (["--path", "/home/user/project/.git"], 1), (["--path", "/usr/bin/make"], 1),
    (["--limit", "memory"], 1), (["--limit", "any"], 1), (["--limit", "disk"], 0),
    (["--exit", "2"], 1), (["--exit", "failed"], 2), (["--exit", "timed-out"], 1),
    (["--exit", "failed", "--rule", "system.absent"], 1), (["--type", "approval"], 1),
    (["--verdict", "deny"], 5), (["--verdict", "allow"], 4), (["--text", "looks odd"], 1),
    (["--text", "all tests"], 2), (["--type", "task.removed"], 1),
    (["--until", "2026-11-30T12:00:00.003Z", "--type", "task.start"], 1),
    (["--since", "2026-11-30T12:00:00.003Z", "--type", "task.start"], 7),
    (["--since", "2026-12-01"], 0),
])
def test_query(sample, words, count):
    ran = trace(sample.state, "query", "--json", *words)
    assert ran.err == "" and ran.returncode == (0 if count else 1), ran
    assert len(ran.out.splitlines()) == count, ran.out
    # what is printed is what is on record
    on_record = [line for path in [sample.store.root / "ledger",
                                   *(sample.store.root / "tasks").iterdir()]
                 for line in path.read_text().splitlines()]
    assert all(line in on_record for line in ran.out.splitlines())
    counted = trace(sample.state, "query", "--count", *words)
    assert counted.out == f"{count}\n" and counted.returncode == (0 if count else 1)


def test_query_of_a_task_and_an_action(sample):
    found = good(sample.state, "query", "--json", "--action", sample.child[:9])
    assert {json.loads(line)["action"] for line in found.splitlines()} == {sample.child}
    found = good(sample.state, "query", "--json", "--task", sample.lost.id[2:9])
    assert types(found) == ["task.start", "task.lost", "task.start", "action.intent", "denial",
                            "task.lost"]
    assert len(good(sample.state, "query", "--most", "3").splitlines()) == 3


@pytest.mark.parametrize("words", [
    ["--since", "yesterday"], ["--exit", "256"], ["--exit", "maybe"], ["--most", "0"],
    ["--text", ""], ["--nothing"], ["word"], ["--since", "2026-02-30"], ["--task", "x y"],
    ["--since", "99999d"]])
def test_wrong_use_is_one_line(sample, words):
    complaint(trace(sample.state, "query", *words), 2)


def test_text_is_found_as_it_was_said(place):  # noqa: F811
    store = traces.Store(place.state)
    task = store.task()
    for text in HOSTILE:
        task.note(text)
    task.end()
    for text in HOSTILE:
        wanted = text if isinstance(text, bytes) else text.encode()
        if b"\x00" in wanted:
            continue
        ran = trace(place.state, "query", "--json", "--text", os.fsdecode(wanted))
        assert len(ran.out.splitlines()) == 1, text
        said = json.loads(ran.out)["body"]["text"]
        assert said.encode("utf-8", "surrogateescape") == wanted


# --- what a task says never reaches a terminal as it is

def test_hostile_contents_are_escaped_everywhere(place):  # noqa: F811
    store = traces.Store(place.state)
    task = store.task(workspace="/w\x1b[2J", meta={"m\u202e": "\x1b[31m"}, tier_reason="\x9b")
    for text in HOSTILE:
        action = task.run([text, text], out=traces.text_of(text).encode("utf-8", "surrogateescape"),
                          cwd=b"/" + (text if isinstance(text, bytes) else text.encode()),
                          code=1, message=text, denials=[traces.denial(thing=text)],
                          changes=[traces.change(b"/x" + (text if isinstance(text, bytes)
                                                         else text.encode()))])
        task.verdict(target=text, reason=text, where=traces.rule(traces.text_of(text), "f\x1b", 1),
                     action=action)
        task.approval(target=text)
        task.note(text, {traces.text_of(text): text})
    task.end()
    outs = [good(place.state, *words) for words in (
        ["ls"], ["show", task.id], ["show", "--output", "--all", task.id], ["query"], ["stats"],
        ["tail", "--lines", "1000"], ["ls", "--json"], ["show", "--json", task.id],
        ["query", "--json"], ["stats", "--json"],
        ["export", "--format", "ocsf", task.id])]
    for out in outs:
        assert not FORBIDDEN & set(out), sorted(FORBIDDEN & set(out))
    for out in outs[-1].splitlines():
        json.loads(out).__str__().encode("utf-8")


def foreign(store, data):
    """A chain whose lines are whatever, beside a good one."""
    task = store.task()
    task.run(["true"])
    task.end()
    lines = task.chain.path.read_bytes().splitlines(keepends=True)
    task.chain.path.write_bytes(lines[0] + data + b"".join(lines[1:]))
    return task


BAD = {
    "garbage": b"\x00\xff garbage\n", "empty": b"\n", "deep": b"[" * 100_000 + b"\n",
    "deep object": b'{"a":' * 50_000 + b"\n", "other": b'{"v":2}\n', "json": b'{"a":1}\n',
    "escape": b"\x1b]0;owned\x07\n", "long": b"x" * (17 << 20) + b"\n",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_line_is_named_and_the_rest_is_read(place, kind):  # noqa: F811
    store = traces.Store(place.state)
    task = foreign(store, BAD[kind])
    for words in (["query", "--task", task.id], ["show", task.id]):
        ran = trace(place.state, *words)
        assert ran.returncode == 0, ran
        assert f"trace/tasks/{task.id}.jsonl:2: " in ran.err, ran.err
        assert len(ran.err.splitlines()) == 1 and not FORBIDDEN & set(ran.err)
        assert "exit 0" in ran.out
    # a list looks into no more lines than it needs
    assert "exit 0" in trace(place.state, "ls").out


def test_many_bad_lines_are_counted(place):  # noqa: F811
    task = foreign(traces.Store(place.state), b"bad\n" * 1000)
    ran = trace(place.state, "show", task.id)
    assert ran.returncode == 0 and "995 more bad lines" in ran.err
    assert len(ran.err.splitlines()) == 6


def test_files_that_are_no_chains(place):  # noqa: F811
    store = traces.Store(place.state)
    good_one = store.task()
    good_one.run(["true"])
    good_one.end()
    tasks = store.root / "tasks"
    os.mkfifo(tasks / "t-fifo.jsonl")
    os.symlink("/etc/passwd", tasks / "t-link.jsonl")
    (tasks / "t-folder.jsonl").mkdir()
    (tasks / "t-empty.jsonl").write_bytes(b"")
    (tasks / "README").write_text("no chain")
    for words in (["ls"], ["query"], ["stats"], ["tail"]):
        ran = trace(place.state, *words)
        assert ran.returncode == 0 and "root:" not in ran.out, (words, ran)
    assert "true" in trace(place.state, "ls").out


def test_a_line_of_a_gigabyte_takes_no_memory(place):  # noqa: F811
    store = traces.Store(place.state)
    task = store.task()
    task.end()
    with open(task.chain.path, "ab") as file:
        file.truncate(task.chain.path.stat().st_size + (1 << 30))

    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (128 << 20, 128 << 20))
    assert "task.end" in trace(place.state, "query", preexec_fn=bound, limit=60).out


def test_a_store_of_others_is_refused(place):  # noqa: F811
    store = traces.Store(place.state)
    store.task().end()
    store.root.chmod(0o777)
    complaint(trace(place.state, "ls"), 1, "trace/")
    store.root.chmod(0o700)
    os.rename(store.root, place.state / "elsewhere")
    os.symlink("elsewhere", store.root)
    assert trace(place.state, "ls").returncode in (1, 125)


# --- a million records

@pytest.fixture(scope="module")
def million(tmp_path_factory):
    state = tmp_path_factory.mktemp("million")
    state.chmod(0o700)
    traces.many(traces.Store(state), 200_000, 4)
    return state


def test_many_records_in_little_memory(million):
    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (96 << 20, 96 << 20))
    found = trace(million, "query", "--path", "/srv/needle/77000", preexec_fn=bound)
    assert len(found.out.splitlines()) == 1 and found.err == ""
    assert trace(million, "query", "--count", "--verdict", "deny", preexec_fn=bound,
                 limit=60).out == "199976\n"
    for words in (["ls"], ["stats"], ["tail"]):
        assert trace(million, *words, preexec_fn=bound, limit=60).returncode == 0
    task = json.loads(trace(million, "ls", "--json").out)["tasks"][0]["task"]
    assert trace(million, "show", task, preexec_fn=bound, limit=60).returncode == 0


def test_a_reader_that_goes_ends_it_quietly(million):
    child = subprocess.Popen([BAWN, "trace", "query", "--state-dir", str(million)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.readline()
    child.stdout.close()
    assert child.wait(LIMIT_S) == 0
    assert child.stderr.read() == b""
    child.stderr.close()


# --- tail

class Tail:
    def __init__(self, state, *words, prefix=()):
        self.child = subprocess.Popen(
            [*prefix, BAWN, "trace", "tail", "-f", *words, "--state-dir", str(state)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)

    def line(self):
        assert select.select([self.child.stdout], [], [], LIMIT_S)[0], "no line"
        return self.child.stdout.readline().decode()

    def end(self, number=signal.SIGINT):
        self.child.send_signal(number)
        out, err = self.child.communicate(timeout=LIMIT_S)
        assert err == b"", err
        return self.child.returncode


WITHOUT_INOTIFY = ["unshare", "-Ur", "sh", "-c",
                   'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"', "sh"]


@pytest.mark.parametrize("prefix", [[], WITHOUT_INOTIFY], ids=["inotify", "polling"])
def test_tail_follows_all_tasks(place, prefix):  # noqa: F811
    # bawn refuses the host's root in a namespace that maps no other id
    if prefix and (IS_ROOT or subprocess.run([*prefix, "true"], check=False,
                                             stderr=subprocess.DEVNULL).returncode):
        pytest.skip("inotify is only to be had not by an ordinary user with a namespace")
    store = traces.Store(place.state)
    task = store.task().flush()
    tail = Tail(place.state, "--lines", "1", prefix=prefix)
    assert "task.start" in tail.line()
    task.note("first")
    task.flush()
    assert "first" in tail.line()
    other = store.task()
    other.note("of another")
    other.flush()
    seen = [tail.line() for _ in range(3)]
    assert "of another" in seen[-1] and other.id[:10] in seen[-1]
    # a line comes when it is whole
    task.note("torn")
    line = task.chain.lines.pop()
    with open(task.chain.path, "ab") as file:
        file.write(line[:100])
    other.note("meanwhile")
    other.flush()
    assert "meanwhile" in tail.line()
    with open(task.chain.path, "ab") as file:
        file.write(line[100:])
    assert "torn" in tail.line()
    assert tail.end() == 0


def test_tail_ends_with_its_reader(place):  # noqa: F811
    store = traces.Store(place.state)
    store.task().flush()
    tail = Tail(place.state)
    tail.line()
    tail.child.stdout.close()
    assert tail.child.wait(LIMIT_S) == 0
    assert tail.child.stderr.read() == b""
    tail.child.stderr.close()


def test_tail_gives_the_last_records_in_order(sample):
    times = [line.split()[0] for line in good(sample.state, "tail").splitlines()]
    assert len(times) == 10 and times == sorted(times)
    assert len(good(sample.state, "tail", "--lines", "3").splitlines()) == 3


# --- export

def test_lines_are_exported_as_they_are(sample):
    assert good(sample.state, "export", sample.task.id) == sample.task.chain.path.read_text()
    lines = good(sample.state, "export", "--format", "jsonl", sample.child)
    assert {json.loads(line)["action"] for line in lines.splitlines()} == {sample.child}


def test_events_keep_to_the_schema(sample):
    schema = json.loads((HERE / "ocsf.schema.json").read_text())
    out = good(sample.state, "export", "--format", "ocsf", sample.task.id)
    events = [json.loads(line) for line in out.splitlines()]
    for event in events:
        jsonschema.validate(event, schema)
        assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
    assert {event["class_uid"] for event in events} == {1007, 4001, 6003}
    refused = [e for e in events if e["class_uid"] == 4001]
    assert [(e["dst_endpoint"], e["activity_id"]) for e in refused] == \
        [({"hostname": "example.com", "port": 443}, 5)]
    broken = dict(events[0])
    del broken["metadata"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


def test_a_recording_has_times_and_whole_characters(sample):
    out = good(sample.state, "export", "--format", "asciinema", sample.child)
    head, *events = [json.loads(line) for line in out.splitlines()]
    assert head["version"] == 2 and head["title"] == "cat notes"
    # the index begins 0.127 s behind the intent
    assert events == [[0.627, "o", "a"], [1.377, "o", "é\r\n"], [2.127, "o", "b\ufffd"]]
    complaint(trace(sample.state, "export", "--format", "asciinema", sample.task.id), 1,
              "3 actions")
    # all of it at once
    out = good(sample.state, "export", "--format", "asciinema", sample.build)
    head, *events = [json.loads(line) for line in out.splitlines()]
    assert events and all(event[0] == 0 for event in events)
    complaint(trace(sample.state, "export", "--format", "pdf", sample.build), 2, "pdf")


@pytest.mark.parametrize("data", [b"", b"BAWNSPL\x02" + bytes(24), b"x" * 1000,
                                  b"BAWNSPL\x01" + bytes(24) + b"\xff" * 4096],
                         ids=["empty", "version", "foreign", "kinds"])
def test_a_foreign_index(place, data):  # noqa: F811
    store = traces.Store(place.state)
    task = store.task()
    action, shape = task.intent(["a"])
    task.result(shape)
    name, _ = task.blob(data)
    task.stream(action, "stdout", b"output\n", index=name)
    task.end()
    ran = trace(place.state, "export", "--format", "asciinema", task.id)
    if data.startswith(b"BAWNSPL\x01"):
        assert ran.returncode == 0 and "output" in ran.out
    else:
        assert ran.returncode == 1 and "changed" in ran.err


# --- terminals

def at_terminal(state, *words, status=0, **environment):
    """What a terminal of 100 columns is shown."""
    parent, child = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "PAGER": "", **environment}
    env = {name: value for name, value in env.items() if value is not None}
    ran = subprocess.Popen([BAWN, "trace", *words, "--state-dir", str(state)], stdin=child,
                           stdout=child, stderr=child, env=env)
    os.close(child)
    seen = b""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        try:
            data = os.read(parent, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(parent)
    assert ran.wait(LIMIT_S) == status
    return seen.decode()


def test_colours_only_where_they_are_wanted(sample):
    assert "\x1b[31m" in at_terminal(sample.state, "ls", NO_COLOR=None)
    assert "\x1b" not in at_terminal(sample.state, "ls", NO_COLOR="1")
    assert "\x1b" not in at_terminal(sample.state, "ls", TERM="dumb", NO_COLOR=None)
    assert "\x1b" not in good(sample.state, "ls")


def test_the_pager_is_the_user_s(sample):
    shown = at_terminal(sample.state, "ls", PAGER="sed s/^/paged:/", NO_COLOR="1")
    assert all(line.startswith("paged:") for line in shown.splitlines())
    assert "paged:" not in good(sample.state, "ls", env={**os.environ, "PAGER": "sed s/^/paged:/"})
    # one that reads nothing ends it well
    assert at_terminal(sample.state, "query", PAGER="true") == ""


def test_a_pager_that_is_not_there_loses_nothing(sample):
    """Neither a word that names no program, nor what only the shell finds out."""
    plain = at_terminal(sample.state, "ls", NO_COLOR="1")
    for pager in ("nonexistent", "/nonexistent/pager -x"):
        shown = at_terminal(sample.state, "ls", PAGER=pager, NO_COLOR="1")
        told, _, rest = shown.partition("\n")
        assert "PAGER" in told and len(rest.splitlines()) == len(plain.splitlines()), shown
    shown = at_terminal(sample.state, "ls", PAGER="true && nonexistent", NO_COLOR="1", status=125)
    assert "could not be printed" in shown


def test_options_may_stand_behind_the_words(sample):
    task = sample.task.id
    for words in (["show", "--output", task], ["export", "--format", "jsonl", task]):
        ran = [subprocess.run([BAWN, "trace", words[0], *order, "--state-dir", str(sample.state)],
                              capture_output=True, check=False, timeout=LIMIT_S)
               for order in (words[1:], [words[-1], *words[1:-1]])]
        assert ran[0].returncode == 0 and ran[0].stdout == ran[1].stdout, ran
    assert task in good(sample.state, "prune", task, "--dry-run")
    assert sample.store.root.joinpath("tasks", task + ".jsonl").exists()
    # a text that begins with a dash stands behind "--"
    ran = subprocess.run([BAWN, "trace", "note", task, "--state-dir", str(sample.state), "--",
                          "--dry-run"], capture_output=True, check=False, timeout=LIMIT_S)
    assert ran.returncode == 0, ran
    assert "--dry-run" in good(sample.state, "query", "--type", "note", "--task", task)


@pytest.mark.parametrize("words, told", [
    (["--verdict", "no"], "allow, ask, deny"), (["--verdict", "dny"], "deny?"),
    (["--type", "bogus"], "task.start, verdict"), (["--type", "denia"], "denial?"),
    (["--limit", "bogus"], "memory"), (["--limit", "memry"], "memory?"),
    (["--exit", "fail"], "failed?"),
])
def test_a_wrong_word_is_refused_with_the_right_one(sample, words, told):
    complaint(trace(sample.state, "query", *words), 2, *words, told)


def test_what_no_record_is_about_is_told(sample):
    complaint(trace(sample.state, "query", "--rule", "nonsense"), 1, "nonsense")
    complaint(trace(sample.state, "query", "--rule", "home.privat"), 1, "home.private?")
    complaint(trace(sample.state, "query", "--path", "gone", cwd="/usr"), 1, "/usr/gone")


def test_a_path_is_below_the_current_directory(place):  # noqa: F811
    inner = place.work / "inner"
    inner.mkdir()
    place.run("--", "touch", "inner/made")
    found = good(place.state, "query", "--path", str(inner / "made"))
    assert str(inner / "made") in found
    for where, path in ((place.work, "inner/made"), (inner, "made"), (inner, "./made"),
                        (inner, "../inner"), (inner, ".")):
        assert good(place.state, "query", "--path", path, cwd=where) == found


def test_who_reached_limits(place):  # noqa: F811
    place.run("--meta", "agent=codex", "--output-cap", "1000", "--", "sh", "-c", "yes")
    for _ in range(2):
        place.run("--output-cap", "1000", "--", "sh", "-c", "yes")
    rows = json.loads(good(place.state, "stats", "--json"))["limits_by"]["rows"]
    assert [(row["name"], row["count"]) for row in rows] == [
        (f"output  uid {os.getuid()} in {place.work}", 2), (f"output  codex in {place.work}", 1)]


def test_what_is_masked_has_no_digest_to_show(place):  # noqa: F811
    place.run("--", "sh", "-c", "echo token: ghp_" + "aB3d" * 9)
    task = next((place.state / "trace/tasks").iterdir()).stem
    shown = good(place.state, "show", task)
    assert "without 1 secret\n" in shown and "sha256 ," not in shown, shown


def test_a_terminal_is_not_given_foreign_bytes_as_json(place):  # noqa: F811
    store = traces.Store(place.state)
    task = store.task()
    task.add("execution", "note", b'{"text":"\xe2\x80\xae","meta":{},"from":"client"}')
    task.end()
    shown = at_terminal(place.state, "query", "--json", "--type", "note", NO_COLOR="1")
    assert "\u202e" not in shown
