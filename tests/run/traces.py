"""Traces made without bawn: chains, a ledger and blobs exactly as docs/TRACE.md says.

    store = traces.Store(state)              a state directory with an empty trace
    task = store.task()                      its chain begins, the ledger says so
    action = task.run(["make"], out=b"...")  all records of one action
    task.end()                               and its end, here and in the ledger

Everything is made from a seed and a clock of its own, so that the same calls give the same bytes.
`many()` writes a million records in some seconds. Text may be str, or bytes where it is not UTF-8.
"""
import datetime
import hashlib
import json
import random
import re
import subprocess
import tempfile
from pathlib import Path

NO_HASH = "0" * 64
BOOT = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
# 2026-11-30T12:00:00Z
START_NS = 1796040000 * 10**9
LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
# what the writer never puts into a line as it is: utf8_is_visible() in src/base/utf8.c, surrogates
HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def text_of(value):
    """Bytes as the text that stands for them: invalid UTF-8 as lone surrogates."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "surrogateescape")
    if isinstance(value, dict):
        return {text_of(k): text_of(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [text_of(v) for v in value]
    return value


def escaped(match):
    point = ord(match[0])
    if point > 0xffff:
        point -= 0x10000
        return f"\\u{0xd800 + (point >> 10):04x}\\u{0xdc00 + (point & 0x3ff):04x}"
    return f"\\u{point:04x}"


def to_json(value):
    return HIDDEN.sub(escaped, json.dumps(text_of(value), ensure_ascii=False,
                                          separators=(",", ":")))


def stamp(ns):
    second = datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc)
    return second.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ns % 10**9:09d}Z"


class Chain:
    """One file of records; written at once where it is closed, or by flush()."""

    def __init__(self, path, prev, clock, host):
        self.path, self.prev, self.clock, self.host = Path(path), prev, clock, host
        self.seq, self.lines = 0, []

    def add(self, layer, kind, body, task=None, action=None, parent=None):
        """Appends a record; gives its hash. body may be JSON text already (bytes)."""
        wall, mono = self.clock.tick()
        body = body if isinstance(body, bytes) else to_json(body).encode()
        line = (f'{{"v":1,"seq":{self.seq},"time":"{stamp(wall)}","mono_ns":{mono},'
                f'"boot":"{BOOT}","host":{to_json(self.host)},"task":{to_json(task)},'
                f'"action":{to_json(action)},"parent":{to_json(parent)},"layer":"{layer}",'
                f'"type":"{kind}","body":').encode() + body + f',"prev":"{self.prev}"'.encode()
        self.prev = sha256(line)
        self.lines.append(line + b',"hash":"' + self.prev.encode() + b'"}\n')
        self.seq += 1
        return self.prev

    def flush(self):
        with open(self.path, "ab") as file:
            file.writelines(self.lines)
        self.path.chmod(0o600)
        self.lines = []


class Clock:
    """Wall and monotonic time that go on by a step with each record."""

    def __init__(self, wall=START_NS, mono=5000 * 10**9, step=1_000_001):
        self.wall, self.mono, self.step = wall, mono, step

    def tick(self):
        self.sleep(self.step)
        return self.wall, self.mono

    def sleep(self, ns):
        self.wall += ns
        self.mono += ns


class Store:
    def __init__(self, state, seed=1, host="example", step=1_000_001):
        self.state = Path(state)
        self.root = self.state / "trace"
        self.random = random.Random(seed)
        self.clock = Clock(step=step)
        self.host = host
        for path in (self.state, self.root, self.root / "tasks", self.root / "blobs",
                     self.root / "policies", self.root / "key"):
            path.mkdir(mode=0o700, exist_ok=True)
        self.installation = f"{self.random.getrandbits(128):032x}"
        self.ledger = Chain(self.root / "ledger", NO_HASH, self.clock, host)
        self.note("ledger.start", None, {"installation": self.installation, "bawn": "0.1.0"})

    def note(self, kind, task, body):
        """A record of the ledger, written at once."""
        found = self.ledger.add("ledger", kind, body, task)
        self.ledger.flush()
        return found

    def identity(self, kind):
        return f"{kind}-" + "".join(self.random.choice(LETTERS) for _ in range(20))

    def task(self, **keywords):
        return Task(self, **keywords)

    def policy(self, blob):
        """Keeps a compiled policy; gives its hash."""
        path = self.root / "policies" / sha256(blob)
        path.write_bytes(blob)
        path.chmod(0o600)
        return path.name

    def remove(self, task, reason="retention: older than 30d"):
        """Removes a task as prune does; the ledger still tells of it."""
        for path in (self.root / "blobs" / task.id).glob("*"):
            path.unlink()
        task.chain.path.unlink()
        self.note("task.removed", task.id,
                  {"records": task.chain.seq, "last": task.chain.prev, "reason": reason})

    def decide(self, task, verb="apply", outcome="applied", **body):
        """Both records of a decision about the task's change; gives the hash of the first."""
        by = {"uid": 0, "user": "root", "login_uid": None, "login_user": None}
        item = {"path": "/w/a", "key": None, "kind": "created", "outcome": "ready", "reason": None,
                "review": None, "before": None, "after": sha256(b"a")}
        rest = {"outcomes": {"ready": 1}, "items": [item], "unlisted": 0}
        intent = self.note("decision", task.id, {
            "verb": verb, "by": by, "workspace": "/w", "overwrite": False, "resumed": False,
            "asked": [], "asked_unlisted": 0, **rest})
        if outcome:
            self.note("decision.end", task.id, {
                "verb": verb, "by": by, "intent": intent, "failure": None,
                "outcomes": {outcome: 1}, "items": [{**item, "outcome": outcome}], "unlisted": 0,
                **body})
        return intent

    def remove_blob(self, task, name, reason="redacted"):
        for path in (self.root / "blobs" / task.id).glob(f"{name}*"):
            path.unlink()
        self.note("blob.removed", task.id, {"blob": name, "reason": reason})

    # signatures: Ed25519 by openssl(1)

    def make_key(self):
        """The installation's signing key, as bawn-sign would make it; gives the public bytes."""
        key = self.root / "key" / "sign"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True,
                       stderr=subprocess.DEVNULL)
        key.chmod(0o600)
        public = subprocess.run(["openssl", "pkey", "-in", key, "-pubout"], check=True,
                                stdout=subprocess.PIPE).stdout
        (self.root / "key" / "public").write_bytes(public)
        return self.public()

    def public(self):
        der = subprocess.run(
            ["openssl", "pkey", "-pubin", "-in", self.root / "key" / "public", "-outform", "DER"],
            check=True, stdout=subprocess.PIPE).stdout
        return der[-32:]

    def sign(self, data, key=None):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return subprocess.run(
                ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey",
                 key or self.root / "key" / "sign", "-in", file.name],
                check=True, stdout=subprocess.PIPE).stdout

    def head(self):
        """Signs where the ledger is, on record; gives the line for keeping elsewhere."""
        if not (self.root / "key" / "sign").exists():
            self.make_key()
        seq, last = self.ledger.seq - 1, self.ledger.prev
        signature = self.sign(
            f"bawn-head-v1\n{self.installation}\n{seq}\n{last}\n".encode()).hex()
        public = self.public()
        self.note("head", None, {"key": sha256(public), "public": public.hex(),
                                 "signed_seq": seq, "signed_hash": last, "signature": signature})
        line = f"bawn-head-v1 {self.installation} {seq} {last} {public.hex()} {signature}"
        path = self.root / "head"
        path.write_text(line + "\n")
        path.chmod(0o600)
        return line


def rule(name="home.private", file=None, line=0):
    return {"id": name, "file": file, "line": line}


def denial(code="fs.read", thing="/home/agent/.aws/credentials", count=1, where=None,
           measured=False):
    """A denial as the result has it."""
    known = {
        "fs.read": ("mounts", "fs.read", "this path is not visible in the box", "--read {}"),
        "fs.hidden": ("mounts", "fs.read", "this path is hidden by a rule", None),
        "fs.write": ("mounts", "fs.write", "this path is not writable in the box", "--write {}"),
        "fs.protected": ("mounts", "fs.write", "this path is protected by a rule", None),
        "net.connect": ("network", "net.connect",
                        "the box has no network but its own loopback", "--allow-host {}"),
        "sys.ptrace": ("seccomp", "sys.ptrace", "tracing or reading other processes is refused",
                       "--allow-ptrace"),
    }
    layer, verb, message, remedy = known[code]
    rules = {"net.connect": "network.loopback", "fs.write": "system.read-only",
             "sys.ptrace": "syscall.ptrace"}
    return {"code": code, "layer": layer, "verb": verb, "object": text_of(thing),
            "rule": where or rule(rules.get(code, "home.private")), "message": message,
            "remedy": remedy and remedy.replace("{}", text_of(thing)),
            "evidence": "measured" if measured else "inferred", "count": count}


def limit_hit(limit="memory", value=2 << 30, usage=(2 << 30) + 4096, enforcement="polled",
              grain_ms=500):
    return {"limit": limit, "value": value, "usage": usage, "enforcement": enforcement,
            "grain_ms": grain_ms}


def change(path="/home/user/project/.git/hooks/pre-commit", kind="created", state="applied",
           window_us=0):
    return {"path": text_of(path), "kind": kind, "state": state, "window_us": window_us}


LAYERS = [
    {"layer": "user namespace", "enforcement": "exact", "evidence": "planned"},
    {"layer": "mount view", "enforcement": "exact", "evidence": "planned"},
    {"layer": "pid namespace", "enforcement": "exact", "evidence": "NSpid"},
    {"layer": "network namespace", "enforcement": "exact", "evidence": "planned"},
    {"layer": "capabilities", "enforcement": "exact", "evidence": "CapEff 0000000000000000"},
    {"layer": "no_new_privs", "enforcement": "exact", "evidence": "NoNewPrivs 1"},
    {"layer": "landlock", "enforcement": "exact", "evidence": "canary EACCES"},
    {"layer": "seccomp", "enforcement": "exact", "evidence": "Seccomp 2"},
]
LIMITS = [
    {"limit": "wall clock", "value": None, "text": "wall clock: none", "enforcement": "absent",
     "grain_ms": 0, "mechanism": None},
    {"limit": "memory", "value": 2 << 30,
     "text": "memory: 2G, polled (500ms; watchdog over the task's processes)",
     "enforcement": "polled", "grain_ms": 500, "mechanism": "watchdog over the task's processes"},
    {"limit": "processes", "value": 1024, "text": "processes: 1024, exact (RLIMIT_NPROC)",
     "enforcement": "exact", "grain_ms": 0, "mechanism": "RLIMIT_NPROC"},
]


class Task:
    """One task: `run()` for whole actions, `add()` for single records."""

    def __init__(self, store, kind="run", workspace="/home/user/project", meta=None, uid=1000,
                 policy=None, name=None, tier="os", tier_reason="the default of this host"):
        self.store = store
        self.id = name or store.identity("t")
        self.actions = 0
        first = store.note("task.start", self.id, {})
        self.chain = Chain(store.root / "tasks" / f"{self.id}.jsonl", first, store.clock,
                           store.host)
        self.policy = policy or sha256(b"a policy that is not kept")
        self.add("policy", "task.start", {
            "bawn": "0.1.0", "kind": kind,
            "user": {"uid": uid, "gid": uid, "host_root": uid == 0}, "workspace": workspace,
            "tier": tier, "rung": "full", "tier_reason": tier_reason, "policy": self.policy,
            "policy_kept": self.policy, "withheld_environment": ["AWS_PROFILE", "SSH_AUTH_SOCK"],
            "meta": meta or {}})

    def add(self, layer, kind, body, action=None, parent=None):
        return self.chain.add(layer, kind, body, self.id, action, parent)

    def blob(self, data, compress=False):
        """Keeps the bytes; gives the blob's name and its size on disk."""
        folder = self.store.root / "blobs" / self.id
        folder.mkdir(mode=0o700, exist_ok=True)
        name = sha256(data)
        path = folder / (name + (".zst" if compress else ""))
        kept = subprocess.run(["zstd", "-q", "-c"], input=data, check=True,
                              stdout=subprocess.PIPE).stdout if compress else data
        path.write_bytes(kept)
        path.chmod(0o600)
        return name, len(kept)

    def box(self):
        self.add("execution", "box.start", {
            "init_pid": 4711, "namespaces": {"user": 4026532501, "mnt": 4026532502,
                                             "pid": 4026532503, "net": 4026532504},
            "uid_map": "1000 1000 1", "gid_map": "1000 1000 1", "cgroup": None})

    def verdict(self, verdict="allow", verb="exec", target="make", reason="a command may run",
                where=None, action=None):
        self.add("policy", "verdict", {"verdict": verdict, "verb": verb, "target": target,
                                       "reason": reason, "rule": where or rule("run.allowed")},
                 action)

    def approval(self, answer="yes", asked_ms=8200, target="/home/user/.cache", action=None):
        self.add("policy", "approval", {
            "verb": "fs.write", "target": target, "shown": f"write {text_of(target)}?",
            "answer": answer, "by": "user", "proof": "same-uid", "channel": "terminal",
            "grant": "task" if answer == "yes" else None,
            "expires": None, "asked_ms": asked_ms}, action)

    def intent(self, argv, cwd="/home/user/project", parent=None, meta=None, timeout_ms=0,
               environment=None, name=None):
        """The record that an action is about to start; gives the action's id and its shape."""
        name = name or self.store.identity("a")
        self.actions += 1
        shape = {"task": self.id, "id": name, "parent": parent, "argv": text_of(argv),
                 "cwd": text_of(cwd), "environment": environment or
                 {"HOME": "/home/agent", "PATH": "/usr/bin:/bin", "API_MODE": None},
                 "input": "null", "timeout_ms": timeout_ms}
        self.add("execution", "action.intent", {**shape, "meta": meta or {}}, name, parent)
        return name, shape

    def start(self, action, path="/usr/bin/make", parent=None, hashed=True):
        executable = {"path": text_of(path),
                      "sha256": sha256(b"executable " + to_json(path).encode()),
                      "bytes": 240000, "device": 2049, "inode": 131000,
                      "mtime_ns": START_NS - 10**15, "ctime_ns": START_NS - 10**15}
        later = dict(executable)
        if not hashed:
            executable.update(sha256=None, unhashed="being computed")
        self.add("execution", "action.start", {
            "pid": 4713, "executable": executable, "layers": LAYERS, "limits": LIMITS},
            action, parent)
        if not hashed:
            self.add("execution", "executable", later, action, parent)

    def result(self, shape, code=0, cause="command", end=None, denials=(), changes=(), hits=(),
               out_bytes=0, err_bytes=0, duration_us=125000, message=None, status=None):
        end = end or {"kind": "exited", "code": code}
        status = status if status is not None else code
        self.add("result", "action.result", {
            "version": 1,
            "action": {**shape, "environment": list(shape["environment"])},
            "policy": self.policy, "end": end, "cause": cause, "status": status,
            "message": message, "started_unix_ns": self.store.clock.wall - duration_us * 1000,
            "usage": {"duration_us": duration_us, "user_us": duration_us // 2,
                      "system_us": duration_us // 10, "peak_memory_bytes": 8 << 20},
            "streams": {"stdout_bytes": out_bytes, "stderr_bytes": err_bytes},
            "layers": LAYERS, "limits": LIMITS, "limits_reached": list(hits),
            "denials": list(denials), "denials_dropped": 0, "changes": list(changes),
            "withheld_environment": ["AWS_PROFILE", "SSH_AUTH_SOCK"]},
            shape["id"], shape["parent"])

    def stream(self, action, stream, data, keep=True, compress=False, index=None, dropped=0,
               masked=0):
        name, size = self.blob(data, compress) if keep else (None, 0)
        body = {"stream": stream, "bytes": len(data), "sha256": sha256(data), "blob": name,
                "blob_bytes": len(data) if keep else 0, "masked": masked, "dropped": dropped,
                "index": index}
        if not keep:
            body["reason"] = "--no-spool"
        self.add("result", "stream", body, action)

    def run(self, argv, out=b"", err=b"", code=0, denials=(), changes=(), hits=(), parent=None,
            compress=False, keep=True, duration_us=125000, chunks=None, **keywords):
        """One action from its intent to its streams; gives its id.

        chunks: [(seconds, stream 0 or 1, bytes)] instead of out and err, with a time index.
        """
        ending = {key: keywords.pop(key) for key in ("cause", "end", "message", "status")
                  if key in keywords}
        executable = keywords.pop("path", None) or \
            "/usr/bin/" + text_of(argv[0]).rpartition("/")[2]
        action, shape = self.intent(argv, parent=parent, **keywords)
        self.verdict(target=text_of(argv[0]), action=action)
        self.start(action, executable, parent)
        self.store.clock.sleep(duration_us * 1000)
        index = None
        if chunks is not None:
            out = b"".join(c[2] for c in chunks if c[1] == 0)
            err = b"".join(c[2] for c in chunks if c[1] == 1)
            index, _ = self.blob(spool_index(chunks, self.store.clock.wall), compress)
        for each in denials:
            self.add("execution", "denial", each, action, parent)
        for each in hits:
            self.add("execution", "limit", each, action, parent)
        for each in changes:
            self.add("result", "change", each, action, parent)
        self.result(shape, code, denials=denials, changes=changes, hits=hits, out_bytes=len(out),
                    err_bytes=len(err), duration_us=duration_us, **ending)
        self.stream(action, "stdout", out, keep, compress, index)
        self.stream(action, "stderr", err, keep, compress, index)
        return action

    def note(self, text, meta=None, action=None):
        self.add("execution", "note", {"text": text, "meta": meta or {}, "from": "client"}, action)

    def end(self, cause="command", lost_records=0):
        self.add("result", "task.end", {"actions": self.actions, "cause": cause,
                                        "lost_records": lost_records})
        self.chain.flush()
        self.store.note("task.end", self.id, {"records": self.chain.seq, "last": self.chain.prev,
                                              "cause": "end"})
        return self

    def flush(self):
        """Writes what there is of a task that has not ended."""
        self.chain.flush()
        return self

    def lose(self):
        """The supervisor died, and the next start said so."""
        self.add("result", "task.lost", {"cause": "the supervisor died"})
        self.chain.flush()
        self.store.note("task.lost", self.id, {"records": self.chain.seq, "last": self.chain.prev,
                                               "cause": "end"})
        return self


def spool_index(chunks, wall_ns):
    """The index of src/broker/spool.h: [(seconds, stream, bytes)], both streams ended."""
    out = b"BAWNSPL\x01" + wall_ns.to_bytes(8, "little") + (0).to_bytes(8, "little") + bytes(8)
    last = 0
    for seconds, stream, data in chunks:
        last = int(seconds * 10**9)
        out += last.to_bytes(8, "little")
        out += (1 << 60 | stream << 56 | len(data)).to_bytes(8, "little")
    for stream in (0, 1):
        out += last.to_bytes(8, "little") + (3 << 60 | stream << 56).to_bytes(8, "little")
    return out


def many(store, records=1_000_000, tasks=10):
    """Tasks with altogether this many records, most of them denials; some seconds for a million.

    Every 1000th denial is about /srv/needle/<number>; gives the tasks.
    """
    made = []
    for number in range(tasks):
        task = store.task()
        action, shape = task.intent(["make", "-j8", f"part-{number}"])
        task.start(action)
        task.flush()
        count = records // tasks - 6
        fast_denials(task, action, count, number * count)
        task.result(shape)
        task.stream(action, "stdout", b"", keep=False)
        made.append(task.end())
    return made


def fast_denials(task, action, count, first):
    chain, clock, batch = task.chain, task.store.clock, []
    plain = to_json(denial(thing="@", count=1)).split("@")
    middle = (f'"boot":"{BOOT}","host":{to_json(chain.host)},"task":"{task.id}",'
              f'"action":"{action}","parent":null,"layer":"execution","type":"denial","body":')
    prev, seq, sha = chain.prev, chain.seq, hashlib.sha256
    second, shown = -1, ""
    with open(chain.path, "ab") as file:
        for i in range(first, first + count):
            wall, mono = clock.tick()
            if wall // 10**9 != second:
                second = wall // 10**9
                shown = stamp(wall)[:20]
            thing = f"/srv/needle/{i}" if i % 1000 == 0 else f"/home/agent/.config/item-{i}"
            line = (f'{{"v":1,"seq":{seq},"time":"{shown}{wall % 10**9:09d}Z","mono_ns":{mono},'
                    f'{middle}{thing.join(plain)},"prev":"{prev}"').encode()
            prev = sha(line).hexdigest()
            batch.append(line + f',"hash":"{prev}"}}\n'.encode())
            seq += 1
            if len(batch) == 10000:
                file.writelines(batch)
                batch = []
        file.writelines(batch)
    chain.prev, chain.seq = prev, seq


def check(path, prev=None):
    """Reads a chain back as docs/TRACE.md says; gives its records. For the generator's own test."""
    found = []
    for number, raw in enumerate(Path(path).read_bytes().splitlines(keepends=True), 1):
        assert raw.endswith(b'"}\n'), f"{path}:{number}: torn"
        body, _, tail = raw.rpartition(b',"hash":"')
        assert sha256(body).encode() == tail[:64], f"{path}:{number}: hash"
        record = json.loads(raw)
        assert record["seq"] == number - 1 and (prev is None or record["prev"] == prev), number
        prev = record["hash"]
        found.append(record)
    return found
