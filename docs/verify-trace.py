#!/usr/bin/python3
"""Verifies a trace of bawn without bawn: Python, openssl(1) for signatures, zstd(1) for packed blobs.

usage: verify-trace.py [--key FILE] [--head LINE] DIR | [LEDGER] [TASK.jsonl...]

DIR is a copy of a whole trace. Prints the first bad line of each file as FILE:LINE: KIND, in the
words of `bawn trace verify`, and ends with 1 when there is one; with 2 when it cannot be asked so,
or not be read. What "good" does not show is printed before it. docs/TRACE.md has the format.
"""
import argparse, hashlib, json, os, re, stat, subprocess, sys, tempfile
from pathlib import Path

LIMIT, DEPTH, HEX, DER = 16 << 20, 31, "[0-9a-f]{64}", bytes.fromhex("302a300506032b6570032100")
NUMBER, TEXT = r"(?:0|[1-9]\d{0,18})", r'"(?:[^"\\]|\\.)*"'
TIME, HASH, NAME = r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z"', f'"{HEX}"', f"(?:{TEXT}|null)"
LINE = re.compile((r"\{" + ",".join(f'"{name}":{form}' for name, form in {
    "v": "1", "seq": NUMBER, "time": TIME, "mono_ns": NUMBER, "boot": TEXT, "host": TEXT,
    "task": NAME, "action": NAME, "parent": NAME, "layer": TEXT, "type": TEXT,
    "body": r"\{.*\}", "prev": HASH, "hash": HASH}.items()) + r"\}").encode(), re.S | re.A)
LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # all surrogates but those that stand for a byte
HEAD = re.compile(rf"bawn-head-v1 ([0-9a-f]{{32}}) (\d+) ({HEX}) ({HEX}) ({HEX}{HEX})\s*")


class Bad(Exception):
    """A line (0: the file as a whole), the kind of its fault, and what could not be opened."""


def need(condition, line, kind):
    if not condition:
        raise Bad(line, kind)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def opened(path):
    """Only what lies there itself, and has an end: a link could lead anywhere, a FIFO waits."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise Bad(0, "foreign", f"{path}: no regular file")
    return open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def sound(value, depth=-1):
    if isinstance(value, str):
        return not LONE.search(value)
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    return not isinstance(inner, list) or depth < DEPTH and all(sound(v, depth + 1) for v in inner)


def parse(raw):
    """The record of a line, or what is wrong with it."""
    if not raw.endswith(b"\n"):
        return "long" if len(raw) >= LIMIT else "torn"
    if not raw.startswith(b'{"v":') or len(raw) < 7:
        return "foreign"
    if re.match(rb'\{"v":(?!1\D)(0|[1-9]\d*)', raw):
        return "version"
    try:
        record = json.loads(raw[:-1] if LINE.fullmatch(raw[:-1]) else b"", parse_float=str,
                            parse_constant=int, parse_int=lambda text: int(text[:30]))
    except (ValueError, RecursionError):
        return "form"
    return {**record, "own": sha256(raw[:-76])} if sound(record) else "form"


def lines(path):
    with opened(path) as file:
        while raw := file.readline(LIMIT):
            yield parse(raw)


def first(path):
    record = next(lines(path), None)
    return record if isinstance(record, dict) else {"task": None, "layer": None}


def follow(path, prev, count=None, last=None):
    """(number, record) as long as each goes on from the one before. count, last: the ledger's."""
    hashes, rest = [], lines(path)
    for number, record in enumerate(rest, 1):
        if count == number - 1:
            need(not hashes or last in (None, prev), count, "rewritten")
            raise Bad(number, "inserted")
        need(isinstance(record, dict), number, record)
        need(record["own"] == record["hash"], number, "changed")
        seq, due = record["seq"], len(hashes)
        if seq > due:
            later = any(isinstance(r, dict) and r["seq"] == due and r["own"] == r["hash"]
                        and prev in ("", r["prev"]) for r in rest)
            raise Bad(number, "reordered" if later else "removed")
        if seq < due:
            need(hashes[seq] != record["hash"], number, "duplicated")
            fork = record["prev"] == (hashes[seq - 1] if seq else "")
            raise Bad(seq + 1 if fork else number, "inserted")
        if prev not in ("", record["prev"]):  # this line or the one before: what goes on from it?
            after = next(rest, None)
            apart = number == 1 or isinstance(after, dict) and after["prev"] != record["hash"]
            raise Bad(number if apart else number - 1, "rewritten")
        prev = record["hash"]
        hashes.append(prev)
        yield number, record
    need(count is None or len(hashes) >= count, len(hashes) + 1, "truncated")
    need(count is None or not hashes or last in (None, prev), count, "rewritten")


def read_key(data):
    """The 32 bytes of a public key: in hex, or as openssl knows it."""
    text = data.strip()
    return bytes.fromhex(text.decode()) if re.fullmatch(HEX.encode(), text) else subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "DER"], input=data, check=True,
        stdout=subprocess.PIPE).stdout[-32:]


class Trace:
    def __init__(self, key):
        self.key, self.pins, self.tasks, self.removed, self.open = key, [], {}, set(), set()
        self.good, self.bad, self.installation, self.heads = False, False, None, 0

    def judge(self, path, check, *arguments):
        """Runs a check and prints what is bad, which is also returned."""
        try:
            check(*arguments)
        except Bad as bad:
            self.bad, (line, kind, *_) = True, bad.args
            print(f"{path}:{line}: {kind}" if line else f"{path}: {kind}")
            return line, kind
        return None

    def signed(self, line, public, fields, signature):
        """The signature is good, and our key's; the first key that is seen is ours."""
        with tempfile.TemporaryDirectory() as folder:
            for name, data in (("k", DER + public), ("s", signature),
                               ("t", "\n".join(["bawn-head-v1", *fields, ""]).encode())):
                Path(folder, name).write_bytes(data)
            command = "openssl pkeyutl -verify -pubin -keyform DER -inkey k -rawin -in t -sigfile s"
            done = subprocess.run(command.split(), cwd=folder, capture_output=True, check=False)
        need(public == (self.key or public), line, "key")
        need(done.returncode == 0, line, "signature")
        self.key = public

    def pin(self, text):
        match = HEAD.fullmatch(text)
        need(match, 0, "form")
        self.signed(0, bytes.fromhex(match[4]), match.groups()[:3], bytes.fromhex(match[5]))
        self.pins.append((match[1], int(match[2]), match[3]))

    def ledger(self, path):
        number = 0
        for number, record in follow(path, "0" * 64):
            self.ledger_record(number, record, record["body"], record["type"], record["task"])
        need(number, 1, "empty")
        need(all(seq < number for _, seq, _ in self.pins), number + 1, "truncated")
        self.good = True

    def ledger_record(self, number, record, body, kind, task):
        row = self.tasks.get(task)
        need(record["layer"] == "ledger", number, "misplaced")
        need(all(pin[1] != record["seq"] or pin[2] == record["hash"] for pin in self.pins), number,
             "rewritten")
        need((number == 1) == (kind == "ledger.start"), number, "misplaced")
        if kind == "ledger.start":
            self.installation = body["installation"]
            need(all(pin[0] == self.installation for pin in self.pins), number, "foreign")
        elif kind == "head":
            public, at = bytes.fromhex(body["public"]), (body["signed_seq"], body["signed_hash"])
            need(at == (record["seq"] - 1, record["prev"]) and body["key"] == sha256(public), number,
                 "misplaced")
            self.heads += 1
            self.signed(number, public, (self.installation, str(at[0]), at[1]),
                        bytes.fromhex(body["signature"]))
        elif kind == "task.start":
            need(task and "/" not in task and not row, number, "misplaced")
            self.tasks[task] = {"line": number, "begin": record["hash"], "end": None, "gone": False}
        elif kind in ("task.end", "task.lost", "task.removed"):
            gone = kind == "task.removed"
            need(row and not row["gone"] and (gone or not row["end"]), number, "misplaced")
            row.update(end=(body["records"], body["last"]), gone=gone)
        elif kind == "blob.removed":
            self.removed.add((task, body["blob"][:64]))
        elif kind == "decision" and task:
            self.open.add((task, record["hash"]))
        elif kind == "decision.end" and task:
            need((task, body["intent"]) in self.open, number, "misplaced")
            self.open.remove((task, body["intent"]))

    def chain(self, path, task, root=None):
        task = task or first(path)["task"]  # a renamed file: its first record says whose it is
        row, ended, number = self.tasks.get(task), False, 0
        try:
            for number, record in follow(path, "", *(row and row["end"] or ())):
                need(number > 1 or row or not self.good, 1, "unknown")
                need(number > 1 or not row or record["prev"] == row["begin"], 1, "rewritten")
                need(record["layer"] != "ledger" and record["task"] == task and not ended and
                     (record["type"] == "task.start") == (number == 1), number, "misplaced")
                ended = record["type"] in ("task.end", "task.lost")
                self.blobs(number, record, root)
            need(number or row or self.good, 1, "empty")
        except Bad as bad:  # a task that lives may be writing a line
            if bad.args[1] != "torn" or not (self.good and row and not row["end"]):
                raise
        if not ended and not (row and row["end"]):
            print(f"unfinished: {task}")

    def blobs(self, number, record, root):
        names = {"task.start": ["policy_kept"], "stream": ["blob", "index"]}.get(record["type"], [])
        for name in [record["body"][name] for name in names if root and record["body"][name]]:
            folder = root / ("blobs" if "blob" in names else "policies")
            linked = folder.is_symlink()  # what is behind a link is none of the copy
            if "blob" in names:
                folder = folder / record["task"]
                linked = linked or folder.is_symlink()
            found = [p for p in (folder / name[:64], folder / (name[:64] + ".zst"))
                     if os.path.lexists(p) and not linked]
            if not found:
                need((record["task"], name[:64]) in self.removed, number, "blob-missing")
            elif self.content(found[0]) != name[:64]:
                raise Bad(number, "blob-changed")

    @staticmethod
    def content(path):
        digest = hashlib.sha256()
        try:
            with opened(path) as file, subprocess.Popen(
                    ["zstd", "-dcq"] if path.suffix else ["cat"], stdin=file,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as unpack:
                while piece := unpack.stdout.read(1 << 20):
                    digest.update(piece)
        except Bad:
            return None
        return digest.hexdigest() if unpack.returncode == 0 else None

    def directory(self, root):
        if os.path.lexists(root / "head"):
            with opened(root / "head") as file:
                self.judge(root / "head", self.pin, file.read(4096).decode(errors="replace"))
        self.judge(root / "ledger", self.ledger, root / "ledger")
        there = {path.stem: path for path in sorted((root / "tasks").glob("*.jsonl"))}
        for task in [t for t in self.tasks if t in there] + [t for t in there if t not in self.tasks]:
            if self.judge(there[task], self.chain, there[task], task, root) == (0, "foreign"):
                del there[task]
        for task, row in self.tasks.items():
            if task not in there and not row["gone"] and row["end"] and row["end"][0] != 0:
                self.judge(root / "ledger", need, False, row["line"], "missing")


def check(given):
    trace = Trace(given.key and read_key(Path(given.key).read_bytes()))
    root = given.files[0] if given.files[0].is_dir() else None
    if given.head:
        is_line = given.head.startswith("bawn-head-")
        trace.judge("--head", trace.pin, given.head if is_line else Path(given.head).read_text())
    if root and not trace.key and os.path.lexists(root / "key/public"):
        with opened(root / "key/public") as file:
            trace.key = read_key(file.read(4096))
    if root:
        trace.directory(root)
    else:
        ledgers = [path for path in given.files if opened(path).close() or path.name == "ledger" or
                   path.suffix != ".jsonl" and first(path)["layer"] == "ledger"]
        for path in ledgers:
            trace.judge(path, trace.ledger, path)
        for path in [path for path in given.files if path not in ledgers]:
            named = re.fullmatch(r"(t-.{20})\.jsonl", path.name)
            trace.judge(path, trace.chain, path, named and named[1])
    ledger = trace.installation is not None
    for holds, text in (  # what a verdict of "good" leaves open, and what would show it
            (not ledger, "no ledger was given: that a chain is whole, and whose it is"),
            (ledger and not trace.heads, "no signed head: who can write the files can write all anew"),
            (ledger and not given.head, "no head was pinned (--head): a tail that the key's owner "
             "cut off or wrote anew"),
            (trace.heads and not given.key, "no key was given (--key): who changed the key, too"),
            (not root, "blobs were not looked at: give the directory of the trace"),
            (not root and ledger and len(trace.tasks) > len(given.files) - 1,
             "not all tasks of the ledger were given")):
        if holds:
            print(f"not shown: {text}")
    print("bad" if trace.bad else "good")
    return 1 if trace.bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--key", help="the public key, kept elsewhere: a file")
    parser.add_argument("--head", help="a pinned head: the line, or a file that has it")
    parser.add_argument("files", nargs="+", type=Path)
    given = parser.parse_args()
    if len(given.files) > 1 and any(path.is_dir() for path in given.files):
        parser.error("a directory is given alone; a key by --key FILE, a head by --head")
    try:
        return check(given)
    except (Bad, OSError, ValueError, subprocess.CalledProcessError) as error:
        what = error.args[-1] if isinstance(error, Bad) else error
        print(f"verify-trace: {what}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
