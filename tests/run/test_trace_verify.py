"""`bawn trace verify` and docs/verify-trace.py: every way to change a trace is named by both alike.

Traces are made without bawn (traces.py), changed in one way each with a fixed seed, and read by
both verifiers; what they must name is computed from the change. HJ03 of ../shared/attacks.
"""
import contextlib
import importlib.util
import io
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import traces
from boxed import BAWN, IS_ROOT, ROOT

SEEDS = range(int(os.environ.get("BAWN_SEEDS", "4")))
LIMIT_S = 60


def load_other():
    spec = importlib.util.spec_from_file_location("verify_trace", ROOT / "docs/verify-trace.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OTHER = load_other()


class Verdict:
    """What a verifier said: exit status, and (file, line, kind) of each finding."""

    def __init__(self, status, findings, text):
        self.status, self.findings, self.text = status, findings, text

    def __repr__(self):
        return f"{self.status} {self.findings}\n{self.text}"


def ours(*arguments):
    done = subprocess.run([BAWN, "trace", "verify", "--json", *map(str, arguments)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    assert done.stdout, done.stderr
    said = json.loads(done.stdout)
    found = [(f["file"], f["line"], f["kind"]) for f in said["findings"]]
    assert (said["verdict"] == "good") == (done.returncode == 0)
    return Verdict(done.returncode, found, done.stdout + done.stderr)


def theirs(*arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["verify-trace.py", *map(str, arguments)])
        status = OTHER.main()
    found = []
    for line in out.getvalue().splitlines():
        if match := re.fullmatch(r"(.+?)(?::(\d+))?: ([a-z-]+)", line):
            if match[1] != "unfinished":
                found.append((match[1], int(match[2] or 0), match[3]))
    return Verdict(status, found, out.getvalue())


def verify(*arguments):
    """Both verifiers' one verdict."""
    one, other = ours(*arguments), theirs(*arguments)
    assert (one.status, one.findings) == (other.status, other.findings), f"{one}\n{other}"
    return one


class Lab:
    """A whole trace in a directory, its files as lists of lines, and a way to change them."""

    def __init__(self, root):
        self.root = root
        self.store = traces.Store(root / "state", seed=7)
        policy = self.store.policy(b"a compiled policy")
        self.tasks = []
        for number in range(3):
            task = self.store.task(policy=policy)
            task.box()
            for action in range(2 + number):
                task.run(["make", f"-j{action}", b"\xff\"}\n{"], out=b"out %d\n" % action * 900,
                         err=b"", compress=action == 1)
            task.end()
            self.tasks.append(task)
            if number != 1:
                self.head = self.store.head()
        self.store.note("note", self.tasks[0].id, {"text": "seen", "meta": {}})
        self.trace = self.store.root
        self.key = self.trace / "key/public"

    def path(self, which):
        name = "ledger" if which == "ledger" else f"tasks/{self.tasks[which].id}.jsonl"
        return self.trace / name

    def lines(self, which):
        return self.path(which).read_bytes().splitlines(keepends=True)

    def copy(self, to):
        shutil.copytree(self.trace, to, symlinks=True)
        return to

    def head_seq(self):
        return int(self.head.split()[2])


@pytest.fixture(scope="module", name="lab")
def make_lab():
    with tempfile.TemporaryDirectory(prefix="bawn-verify.") as root:
        yield Lab(Path(root))


@pytest.fixture(name="copy")
def make_copy(lab, tmp_path):
    return lab.copy(tmp_path / "trace")


def sealed(line, prev=None, **changes):
    """The line with other members, and the hash that belongs to it."""
    body = line.rstrip(b"\n")[:-75]
    record = json.loads(line)
    for name, value in changes.items():
        old = f'"{name}":{traces.to_json(record[name])}'.encode()
        assert old in body
        body = body.replace(old, f'"{name}":{traces.to_json(value)}'.encode(), 1)
    if prev is not None:
        body = body[:-len(record["prev"]) - 1] + prev.encode() + b'"'
    return body + f',"hash":"{traces.sha256(body)}"}}\n'.encode()


def hash_of(line):
    return json.loads(line)["hash"]


def relink(lines, start, prev=None):
    """Makes the chain whole again from a line on; heads are not signed anew."""
    for at in range(start, len(lines)):
        before = prev if at == start and prev else hash_of(lines[at - 1])
        lines[at] = sealed(lines[at], before, seq=at)
    return lines


def put(folder, lab, which, lines):
    (folder / lab.path(which).relative_to(lab.trace)).write_bytes(b"".join(lines))


CHAINS = [0, 2, "ledger"]


def expect(lab, folder, which, line, kinds, *options):
    """Both name this line of this file as the first, and of one of these kinds."""
    file = folder / lab.path(which).relative_to(lab.trace)
    verdict = verify(*options, folder)
    assert verdict.status == 1, verdict
    assert (str(file), line) == verdict.findings[0][:2], (line, verdict)
    assert verdict.findings[0][2] in kinds, verdict
    return verdict


def test_good(lab, copy):
    assert verify(copy).status == 0
    assert verify("--key", lab.key, "--head", lab.head, copy).status == 0
    files = [copy / "ledger", *(copy / "tasks").iterdir()]
    assert verify("--key", lab.key, "--head", lab.head, *files).status == 0
    assert verify(*files[1:]).status == 0
    assert verify(files[0]).status == 0


@pytest.mark.parametrize("which", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
def test_changed_byte(lab, copy, which, seed):
    rng = random.Random(f"byte {which} {seed}")
    lines = lab.lines(which)
    at = rng.randrange(len(lines))
    line = bytearray(lines[at])
    place = rng.randrange(len(line) - 1)
    line[place] ^= rng.choice([1, 2, 4, 8, 16, 32, 64, 128, 255])
    lines[at] = bytes(line)
    put(copy, lab, which, lines)
    expect(lab, copy, which, at + 1, {"changed", "form", "foreign", "version"})


def test_each_byte(lab, copy):
    """No byte of a line is left out."""
    lines = lab.lines(0)[:1]
    path = copy / "one.jsonl"
    for place in range(len(lines[0]) - 1):
        line = bytearray(lines[0])
        line[place] ^= 1
        path.write_bytes(bytes(line))
        found = theirs(path)
        assert [f[1] for f in found.findings] == [1], (place, found)
        if place % 7 == 0:
            assert ours(path).findings == found.findings, place


@pytest.mark.parametrize("which", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
def test_removed(lab, copy, which, seed):
    rng = random.Random(f"removed {which} {seed}")
    lines = lab.lines(which)
    count = rng.choice([1, 1, 3])
    at = 0 if seed == 0 else rng.randrange(len(lines) - count)
    del lines[at:at + count]
    put(copy, lab, which, lines)
    expect(lab, copy, which, at + 1, {"removed"})


@pytest.mark.parametrize("which", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
def test_inserted_foreign(lab, copy, which, seed):
    """A line of another chain."""
    rng = random.Random(f"foreign {which} {seed}")
    lines, others = lab.lines(which), lab.lines(0 if which == "ledger" else 1)
    at = rng.randrange(1, len(lines))
    lines.insert(at, rng.choice(others))
    put(copy, lab, which, lines)
    expect(lab, copy, which, at + 1, {"inserted", "removed", "reordered", "rewritten"})


@pytest.mark.parametrize("which", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
def test_inserted_fitting(lab, copy, which, seed):
    """A line that is made to follow, with its own hash right."""
    rng = random.Random(f"fitting {which} {seed}")
    lines = lab.lines(which)
    at = rng.randrange(1, len(lines) - 1)
    made = sealed(lines[at], hash_of(lines[at - 1]), mono_ns=rng.randrange(10**12))
    lines.insert(at, made)
    put(copy, lab, which, lines)
    # of a ledger, what it says may be against what came before, and the newest head tells of it
    kinds = {"inserted", "misplaced", "rewritten"} if which == "ledger" else {"inserted"}
    expect(lab, copy, which, at + 1, kinds)


@pytest.mark.parametrize("which", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
def test_reordered(lab, copy, which, seed):
    rng = random.Random(f"reordered {which} {seed}")
    lines = lab.lines(which)
    first, second = sorted(rng.sample(range(len(lines)), 2))
    lines[first], lines[second] = lines[second], lines[first]
    put(copy, lab, which, lines)
    expect(lab, copy, which, first + 1, {"reordered"})


@pytest.mark.parametrize("which", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
def test_duplicated(lab, copy, which, seed):
    rng = random.Random(f"duplicated {which} {seed}")
    lines = lab.lines(which)
    at = rng.randrange(len(lines) - 1)
    to = at + 1 if seed % 2 else rng.randrange(at + 1, len(lines))
    lines.insert(to, lines[at])
    put(copy, lab, which, lines)
    expect(lab, copy, which, to + 1, {"duplicated"})


@pytest.mark.parametrize("seed", SEEDS)
def test_truncated(lab, copy, seed):
    rng = random.Random(f"truncated {seed}")
    lines = lab.lines(0)
    left = 0 if seed == 0 else len(lines) - 1 if seed == 1 else rng.randrange(1, len(lines))
    put(copy, lab, 0, lines[:left])
    expect(lab, copy, 0, left + 1, {"truncated"})


@pytest.mark.parametrize("which", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
def test_torn(lab, copy, which, seed):
    rng = random.Random(f"torn {which} {seed}")
    lines = lab.lines(which)
    at = rng.randrange(len(lines))
    left = len(lines[at]) - 1 if seed == 0 else rng.randrange(1, len(lines[at]))
    put(copy, lab, which, [*lines[:at], lines[at][:left]])
    expect(lab, copy, which, at + 1, {"torn"})


@pytest.mark.parametrize("seed", SEEDS)
def test_ledger_cut(lab, copy, seed):
    """Only a head from elsewhere shows that a ledger was longer; without, nothing can."""
    lines = lab.lines("ledger")
    left = random.Random(f"cut {seed}").randrange(1, lab.head_seq() + 1)
    put(copy, lab, "ledger", lines[:left])
    (copy / "head").unlink()
    assert str(copy / "ledger") not in [f[0] for f in verify(copy).findings]
    expect(lab, copy, "ledger", left + 1, {"truncated"}, "--head", lab.head)
    verdict = verify("--head", lab.head, "--key", lab.key, copy / "ledger")
    assert verdict.findings == [(str(copy / "ledger"), left + 1, "truncated")]


def test_own_head(lab, copy):
    """The newest head beside the ledger must agree with it, too."""
    put(copy, lab, "ledger", lab.lines("ledger")[:3])
    expect(lab, copy, "ledger", 4, {"truncated"})
    (copy / "head").write_text("none of ours\n")
    assert (str(copy / "head"), 0, "form") in verify(copy).findings


@pytest.mark.parametrize("which", CHAINS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rewritten_line(lab, copy, which, seed):
    """One line with another content and its hash made right; the lines behind it as they were."""
    rng = random.Random(f"rewritten {which} {seed}")
    lines = lab.lines(which)
    at = rng.randrange(len(lines) - 1)
    lines[at] = sealed(lines[at], host="elsewhere")
    put(copy, lab, which, lines)
    expect(lab, copy, which, at + 1, {"rewritten"})


@pytest.mark.parametrize("seed", SEEDS)
def test_rewritten_chain_tail(lab, copy, seed):
    """All lines from one on, whole in themselves: the ledger has the last one's hash."""
    lines = lab.lines(0)
    at = random.Random(f"tail {seed}").randrange(1, len(lines))
    lines[at] = sealed(lines[at], host="elsewhere")
    put(copy, lab, 0, relink(lines, at))
    expect(lab, copy, 0, len(lines), {"rewritten"})
    # with more records, and with fewer
    longer = relink([*lines, lines[-1]], at)
    put(copy, lab, 0, longer)
    expect(lab, copy, 0, len(lines), {"rewritten"})
    put(copy, lab, 0, relink(lines, at)[:-1])
    expect(lab, copy, 0, len(lines), {"truncated"})


def test_appended(lab, copy):
    """What stands behind the end that the ledger has, whatever it is."""
    lines = lab.lines(0)
    for extra in (sealed(lines[-1], hash_of(lines[-1]), seq=len(lines)), b"x", b"\0" * 100):
        put(copy, lab, 0, [*lines, extra])
        expect(lab, copy, 0, len(lines) + 1, {"inserted"})


def rewrite_ledger(lab, lines, at, key=None):
    """From a line on with another host; the heads signed anew with the key, if there is one."""
    lines = list(lines)
    for i in range(at, len(lines)):
        record = json.loads(lines[i])
        changes = {"host": "elsewhere"} if i == at else {}
        prev = hash_of(lines[i - 1])
        if record["type"] == "head" and i > at:
            body = {**record["body"], "signed_hash": prev}
            if key:
                text = f"bawn-head-v1\n{lab.store.installation}\n{body['signed_seq']}\n{prev}\n"
                public = subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-outform",
                                         "DER"], check=True, capture_output=True).stdout[-32:]
                body.update(signature=lab.store.sign(text.encode(), key).hex(),
                            public=public.hex(), key=traces.sha256(public))
            changes["body"] = body
        lines[i] = sealed(lines[i], prev, **changes)
    return lines


@pytest.mark.parametrize("seed", SEEDS)
def test_rewritten_ledger(lab, copy, tmp_path, seed):
    """Without the key no head fits; with it, only one that was kept elsewhere shows it."""
    lines = lab.lines("ledger")
    heads = [i for i, line in enumerate(lines) if b'"type":"head"' in line]
    at = random.Random(f"ledger {seed}").randrange(1, heads[-1] - 1)
    (copy / "head").unlink()
    first = next(i for i in heads if i > at)
    put(copy, lab, "ledger", rewrite_ledger(lab, lines, at))
    expect(lab, copy, "ledger", first + 1, {"signature"})

    other = tmp_path / "other"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", other], check=True,
                   capture_output=True)
    put(copy, lab, "ledger", rewrite_ledger(lab, lines, at, other))
    expect(lab, copy, "ledger", first + 1, {"key"}, "--key", lab.key)

    put(copy, lab, "ledger", rewrite_ledger(lab, lines, at, lab.trace / "key/sign"))
    ledger = copy / "ledger"
    assert verify("--key", lab.key, ledger).status == 0
    verdict = verify("--key", lab.key, "--head", lab.head, ledger)
    assert verdict.findings == [(str(ledger), lab.head_seq() + 1, "rewritten")]


def test_head_of_another(lab, copy, tmp_path):
    other = traces.Store(tmp_path / "other", seed=8)
    other.task().end()
    line = other.head()
    ledger = copy / "ledger"
    assert verify("--head", line, ledger).findings == [(str(ledger), 1, "foreign")]
    assert ("--head", 0, "key") in verify("--key", lab.key, "--head", line,
                                          copy / "ledger").findings
    fields = lab.head.split(" ")
    forged = " ".join([*fields[:2], str(int(fields[2]) - 1), *fields[3:]])
    assert ("--head", 0, "signature") in verify("--head", forged, copy / "ledger").findings


def test_wrong_key(lab, copy, tmp_path):
    lines = lab.lines("ledger")
    first = next(i for i, line in enumerate(lines) if b'"type":"head"' in line)
    (copy / "head").unlink()
    key = tmp_path / "key"
    key.write_text("17" * 32 + "\n")
    expect(lab, copy, "ledger", first + 1, {"key"}, "--key", key)
    key.write_text(subprocess.run(
        ["openssl", "pkey", "-pubin", "-in", lab.key, "-outform", "DER"], check=True,
        capture_output=True).stdout[-32:].hex())
    assert verify("--key", key, copy).status == 0


def test_removed_task(lab, copy):
    task = lab.tasks[1]
    (copy / "tasks" / f"{task.id}.jsonl").unlink()
    line = next(i for i, text in enumerate(lab.lines("ledger"), 1)
                if b'"type":"task.start"' in text and task.id.encode() in text)
    expect(lab, copy, "ledger", line, {"missing"})


def test_foreign_chain(lab, copy, tmp_path):
    other = traces.Store(tmp_path / "other", seed=9)
    task = other.task().end()
    shutil.copy(task.chain.path, copy / "tasks")
    verdict = verify(copy)
    assert verdict.findings == [(str(copy / "tasks" / task.chain.path.name), 1, "unknown")]
    renamed = copy / "renamed"
    shutil.copy(task.chain.path, renamed)
    assert verify(copy / "ledger", renamed).findings == [(str(renamed), 1, "unknown")]
    assert verify(renamed).status == 0
    # under the name of a task that there is
    shutil.copy(task.chain.path, copy / "tasks" / f"{lab.tasks[0].id}.jsonl")
    (copy / "tasks" / task.chain.path.name).unlink()
    expect(lab, copy, 0, 1, {"rewritten", "misplaced"})


@pytest.mark.parametrize("which", CHAINS)
def test_wrong_version(lab, copy, which):
    lines = lab.lines(which)
    lines[2] = sealed(lines[2].replace(b'{"v":1,', b'{"v":2,', 1))
    put(copy, lab, which, lines)
    expect(lab, copy, which, 3, {"version"})


def test_blobs(lab, copy):
    task = lab.tasks[0]
    streams = [(number, json.loads(line)["body"]) for number, line in enumerate(lab.lines(0), 1)
               if b'"type":"stream"' in line]
    folder = copy / "blobs" / task.id
    first = {body["blob"]: number for number, body in reversed(streams)}
    assert len(first) > 2
    for name, number in first.items():
        path, *others = folder.glob(f"{name}*")  # as it is, and packed
        for other in others:
            other.unlink()
        whole = path.read_bytes()
        path.unlink()
        expect(lab, copy, 0, number, {"blob-missing"})
        path.write_bytes(whole[:-1] + b"?" if whole else b"?")
        expect(lab, copy, 0, number, {"blob-changed"})
        path.unlink()
        path.symlink_to("/etc/passwd")
        assert ours(copy).findings[0][1:] == (number, "blob-changed")
        path.unlink()
        path.write_bytes(whole)
    policy = next((copy / "policies").iterdir())
    policy.write_bytes(b"another policy")
    expect(lab, copy, 0, 1, {"blob-changed"})
    policy.unlink()
    expect(lab, copy, 0, 1, {"blob-missing"})


def test_removed_on_record(tmp_path):
    """What was removed as it should be is no finding: a task, and a blob."""
    store = traces.Store(tmp_path / "state", seed=10)
    task, other = store.task(policy=store.policy(b"p")), store.task(policy=store.policy(b"p"))
    task.run(["true"], out=b"a secret")
    store.remove_blob(task.end(), traces.sha256(b"a secret"))
    store.remove(other.end())
    assert verify(store.root).status == 0


def test_unfinished(tmp_path):
    """A task that lives, or whose supervisor died: told, and no tampering."""
    store = traces.Store(tmp_path / "state", seed=11)
    policy = store.policy(b"p")
    task = store.task(policy=policy)
    task.run(["true"])
    task.flush()
    store.task(policy=policy)
    assert verify(store.root).status == 0
    said = json.loads(ours(store.root).text)
    assert [u["records"] for u in said["unfinished"]] == [task.chain.seq, 0]
    with open(task.chain.path, "ab") as file:
        file.write(b'{"v":1,"seq":')
    assert verify(store.root).status == 0
    assert json.loads(ours(store.root).text)["unfinished"][0]["torn_bytes"] == 13
    # what was written before is held to all the same
    lines = task.chain.path.read_bytes().splitlines(keepends=True)
    task.chain.path.write_bytes(b"".join([lines[0], *lines[2:]]))
    assert verify(store.root).findings == [(str(task.chain.path), 2, "removed")]


def test_lost(tmp_path):
    store = traces.Store(tmp_path / "state", seed=12)
    policy = store.policy(b"p")
    task = store.task(policy=policy)
    task.run(["true"])
    task.lose()
    never = store.identity("t")
    store.note("task.start", never, {})
    store.note("task.lost", never, {"records": 0, "last": None, "cause": "end"})
    assert verify(store.root).status == 0


LEDGER_LIES = {
    "end without a start": lambda s, t: s.note("task.end", "t-" + "a" * 20, {
        "records": 1, "last": "0" * 64, "cause": "end"}),
    "a second start": lambda s, t: s.note("task.start", t.id, {}),
    "a second end": lambda s, t: s.note("task.lost", t.id, {"records": 0, "last": None}),
    "a second ledger": lambda s, t: s.note("ledger.start", None, {"installation": "0" * 32}),
    "a way out": lambda s, t: s.note("task.start", "../../../etc/passwd", {}),
    "the end of no decision": lambda s, t: s.note("decision.end", t.id, {
        "verb": "apply", "intent": "0" * 64}),
    "a head of another record": lambda s, t: s.note("head", None, {
        "key": "0" * 64, "public": "0" * 64, "signed_seq": 0, "signed_hash": "0" * 64,
        "signature": "0" * 128}),
}


def test_a_decision_ends_once_and_is_of_one_task(tmp_path):
    store = traces.Store(tmp_path / "state", seed=14)
    task = store.task(policy=store.policy(b"p")).end()
    intent = store.decide(task)
    assert verify(store.root).status == 0
    store.note("decision.end", task.id, {"verb": "apply", "intent": intent})
    assert verify(store.root).findings == [(str(store.root / "ledger"), 6, "misplaced")]
    store = traces.Store(tmp_path / "other", seed=15)
    task = store.task(policy=store.policy(b"p")).end()
    intent = store.decide(task, outcome=None)
    store.note("decision.end", store.identity("t"), {"verb": "apply", "intent": intent})
    assert verify(store.root).findings == [(str(store.root / "ledger"), 5, "misplaced")]


@pytest.mark.parametrize("lie", LEDGER_LIES)
def test_ledger_lies(tmp_path, lie):
    """Records that are whole and contradict those before them."""
    store = traces.Store(tmp_path / "state", seed=13)
    task = store.task(policy=store.policy(b"p")).end()
    LEDGER_LIES[lie](store, task)
    assert verify(store.root).findings == [(str(store.root / "ledger"), 4, "misplaced")]


def test_bad_ledger_condemns_no_chain(lab, copy):
    """What the ledger has behind its first bad line proves nothing, and accuses nobody."""
    lines = lab.lines("ledger")
    lines[1] = lines[1].replace(b'"host"', b'"h0st"', 1)
    put(copy, lab, "ledger", lines)
    assert [f[1:] for f in verify(copy).findings] == [(2, "form")]


# files that are none of a trace

def refused(*arguments):
    """Not read at all: exit status and message."""
    done = subprocess.run([BAWN, "trace", "verify", *map(str, arguments)], capture_output=True,
                          stdin=subprocess.DEVNULL, text=True, timeout=LIMIT_S, check=False)
    assert done.stderr.startswith("bawn: ") and done.stderr.count("\n") == 1, done
    return done.returncode, done.stderr


OTHER_FILES = [
    ("empty", b"", "empty"),
    ("text", b"hello\n", "foreign"),
    ("no-newline", b"hello", "torn"),
    ("nuls", bytes(100000), "torn"),
    ("nul-lines", b"\0\n" * 1000, "foreign"),
    ("elf", b"\x7fELF\x02\x01\x01\n\0\0\n", "foreign"),
    ("json", b'{"a":1}\n', "foreign"),
    ("array", b"[]\n", "foreign"),
    ("newline", b"\n", "foreign"),
    ("version", b'{"v":99,"other":true}\n', "version"),
    ("no-version", b'{"v":null}\n', "form"),
    ("deep", b'{"v":1,"seq":0,"body":' + b"[" * 100000 + b"\n", "form"),
    ("only-the-begin", b'{"v":\n', "foreign"),
]


@pytest.mark.parametrize("case", OTHER_FILES, ids=[case[0] for case in OTHER_FILES])
def test_other_files(tmp_path, case):
    name, content, kind = case
    for suffix in ("", ".jsonl"):
        path = tmp_path / (name + suffix)
        path.write_bytes(content)
        assert verify(path).findings == [(str(path), 1, kind)]


def test_deep(lab, copy):
    """A record may be nested 31 deep and no deeper, with its hash right."""
    for depth, line in ((31, None), (32, 2), (5000, 2), (200000, 2)):
        lines = lab.lines(0)[:2]
        body = b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
        record = json.loads(lines[1])
        text = lines[1].replace(traces.to_json(record["body"]).encode(), body)
        lines[1] = sealed(text) if depth < 32 else sealed_raw(text)
        path = copy / "deep.jsonl"
        path.write_bytes(b"".join(lines))
        assert [f[1:] for f in verify(path).findings] == ([(line, "form")] if line else [])


def sealed_raw(line):
    body = line.rstrip(b"\n")[:-75]
    return body + f',"hash":"{traces.sha256(body)}"}}\n'.encode()


def test_gigantic(tmp_path):
    """A line of 1 GiB (a hole) costs neither time nor memory."""
    path = tmp_path / "giant.jsonl"
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    done = subprocess.run(
        ["bash", "-c", 'ulimit -v 65536; exec "$0" trace verify "$1"', BAWN, path],
        capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 1 and f"{path}:1: long: " in done.stdout, done


def test_no_files(tmp_path):
    fifo, link, empty = tmp_path / "fifo", tmp_path / "link", tmp_path / "folder"
    os.mkfifo(fifo)
    link.symlink_to("/etc/passwd")
    empty.mkdir()
    for path, word in ((fifo, "regular file"), ("/dev/zero", "regular file"),
                       (link, "symbolic link"), (tmp_path / "absent.jsonl", "No such file"),
                       (empty, "no ledger")):
        status, said = refused(path)
        assert status in (2, 125) and word in said and str(path) in said
    assert refused(link, empty)[0] in (2, 125)


def other_refuses(*arguments):
    """As a person runs it: no verdict, one line that says why, and no traceback."""
    done = subprocess.run(["/usr/bin/python3", ROOT / "docs/verify-trace.py", *map(str, arguments)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done
    assert "good" not in done.stdout and "bad" not in done.stdout, done
    return done.stderr


def test_the_other_has_no_verdict_on_what_it_cannot_read(lab, copy, tmp_path):
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(copy / "ledger")
    # a key without its option, or anything else beside a whole trace
    assert "--key" in other_refuses(copy, lab.key)
    assert "--key" in other_refuses(copy, "/etc/passwd")
    assert "--key" in other_refuses(copy / "ledger", copy)
    for path in (fifo, link, "/dev/zero", tmp_path / "absent", tmp_path / "absent.jsonl"):
        assert str(path) in other_refuses(path)
    assert "absent" in other_refuses("--key", tmp_path / "absent", copy)
    assert "absent" in other_refuses("--head", tmp_path / "absent", copy)
    other_refuses("--key", "/etc/passwd", copy)
    (copy / "ledger").unlink()
    assert "ledger" in other_refuses(copy)


def named_blob(lab):
    """A blob that a record of the first task names, and that is there."""
    names = (record["body"].get("blob") for record in map(json.loads, lab.lines(0)))
    return next(name for name in names if name and (lab.trace / "blobs" / lab.tasks[0].id / name)
                .exists())


@pytest.mark.parametrize("odd", ["fifo", "link"])
@pytest.mark.parametrize("which", ["chain", "blob", "policy", "blobs", "head", "key"])
def test_odd_things_in_a_copy(lab, copy, tmp_path, odd, which):
    """A link leads anywhere, and a FIFO waits: neither is a part of the copy, for both."""
    folder = copy / "blobs" / lab.tasks[0].id
    path = {"chain": copy / "tasks" / f"{lab.tasks[0].id}.jsonl", "blobs": folder,
            "blob": folder / named_blob(lab), "policy": next((copy / "policies").iterdir(), None),
            "head": copy / "head", "key": copy / "key/public"}[which]
    if path is None or (which in ("head", "key") and not path.exists()):
        pytest.skip("this trace has none")
    path.rename(tmp_path / "away")
    path.symlink_to(tmp_path / "away") if odd == "link" else os.mkfifo(path)
    if which in ("head", "key"):
        assert str(path) in other_refuses(copy)
        return
    verdict = verify(copy)
    assert verdict.status == 1, verdict


def test_the_other_says_what_good_does_not_show(lab, copy):
    def notes(*arguments):
        verdict = theirs(*arguments)
        assert verdict.status == 0, verdict
        return [line for line in verdict.text.splitlines() if line.startswith("not shown: ")]
    assert notes("--key", lab.key, "--head", lab.head, copy) == []
    assert ["--key" in line or "--head" in line for line in notes(copy)] == [True, True]
    chains = list((copy / "tasks").iterdir())
    assert any("no ledger" in line for line in notes(*chains))
    assert any("not all tasks" in line for line in notes(copy / "ledger"))
    assert any("blobs" in line for line in notes(copy / "ledger", *chains))


@pytest.mark.skipif(IS_ROOT, reason="root reads everything")
def test_unreadable(lab, copy):
    path = copy / "tasks" / f"{lab.tasks[0].id}.jsonl"
    path.chmod(0)
    status, said = refused(copy)
    assert status == 125 and "Permission denied" in said and path.name in said


def test_wrong_use(lab, tmp_path):
    ledger = lab.trace / "ledger"
    nothing = tmp_path / "nothing"
    nothing.write_text("none\n")
    for arguments, word in ((("--key", nothing, ledger), "no public key"),
                            (("--key", tmp_path / "absent", ledger), "No such file"),
                            (("--head", "bawn-head-v1 x", ledger), "--head"),
                            (("--head", nothing, ledger), "--head"),
                            (("--head", "", ledger), "empty"),
                            ((ledger, shutil.copy(ledger, tmp_path)), "one ledger"),
                            (("--json", "--json", ledger), "twice"),
                            (("--other", ledger), "unknown option")):
        status, said = refused(*arguments)
        assert status in (2, 125) and word in said, said


# the installation's own

def test_own(lab):
    done = ours("--state-dir", lab.store.state)
    assert done.status == 0
    task = lab.tasks[1].id
    some = ours("--state-dir", lab.store.state, task, lab.tasks[0].id[:12])
    assert some.status == 0 and json.loads(some.text)["chains"]["count"] == 2


def test_nothing_yet(tmp_path):
    done = subprocess.run([BAWN, "trace", "verify", "--state-dir", tmp_path / "absent"],
                          capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (0, "nothing was recorded yet\n"), done
    assert not (tmp_path / "absent").exists()


def test_state_directories(lab, tmp_path):
    """Linked, open to others, read-only, or not as it was made."""
    state = tmp_path / "state"
    shutil.copytree(lab.store.state, state, symlinks=True)
    link = tmp_path / "link"
    link.symlink_to(state)
    assert refused("--state-dir", link)[0] in (1, 125)
    state.chmod(0o777)
    assert refused("--state-dir", state)[0] in (1, 125)
    state.chmod(0o700)
    (state / "trace").chmod(0o777)
    assert refused("--state-dir", state)[0] in (1, 125)
    for path in (state, *state.rglob("*")):
        path.chmod(path.stat().st_mode & 0o500)
    try:
        assert ours("--state-dir", state).status == 0
    finally:
        for path in (state, *(p for p in state.rglob("*") if p.is_dir())):
            path.chmod(0o700)
    chain = state / "trace/tasks" / f"{lab.tasks[0].id}.jsonl"
    chain.rename(tmp_path / "away")
    chain.symlink_to(tmp_path / "away")
    found = ours("--state-dir", state)
    assert (f"trace/tasks/{chain.name}", 0, "foreign") in found.findings
    chain.unlink()
    os.mkfifo(chain)
    assert (f"trace/tasks/{chain.name}", 0, "foreign") in ours("--state-dir", state).findings
    chain.unlink()
    (state / "trace/ledger").unlink()
    assert ("trace/ledger", 0, "foreign") in ours("--state-dir", state).findings


def test_golden(lab, copy):
    """What a person reads, good and bad."""
    def text(*arguments):
        done = subprocess.run([BAWN, "trace", "verify", *map(str, arguments)], capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)
        said = done.stdout.replace(str(copy), "DIR").replace(str(lab.trace), "TRACE")
        return re.sub(r"key [0-9a-f]{16}", "key KEY", said)

    lines = lab.lines(0)
    parts = ["$ bawn trace verify --key KEY --head HEAD DIR\n",
             text("--key", lab.key, "--head", lab.head, copy),
             "\n$ bawn trace verify DIR    # the key beside it, no head\n", text(copy),
             "\n$ bawn trace verify DIR/tasks/*    # chains alone\n",
             text(copy / "tasks" / f"{lab.tasks[0].id}.jsonl"),
             "\n$ bawn trace verify DIR    # a byte, a line, a task\n"]
    put(copy, lab, 0, [lines[0], lines[1].replace(b"example", b"Example"), *lines[2:]])
    put(copy, lab, 2, lab.lines(2)[:5] + lab.lines(2)[6:])
    (copy / "tasks" / f"{lab.tasks[1].id}.jsonl").unlink()
    parts.append(text(copy))
    golden = ROOT / "tests/golden/trace-verify.txt"
    if os.environ.get("BAWN_GOLDEN") == "write":
        golden.write_text("".join(parts))
    assert "".join(parts) == golden.read_text()
