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
LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


class Bad(Exception):
    """A line (0: the file as a whole), and the kind of its fault."""


def need(condition, line, kind):
    if not condition:
        raise Bad(line, kind)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Odd(OSError):
    """What lies there is no file of a trace."""


def opened(path):
    """Only what lies there itself, and has an end: a link could lead anywhere, a FIFO waits."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise Odd(f"{path}: no regular file")
    return open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def sound(value, depth=-1):
    """No surrogate stands alone but those that stand for a byte; nothing is too deep."""
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


class Trace:
    def __init__(self, key):
        self.key, self.given, self.pins, self.tasks = key, key, [], {}
        self.removed, self.open, self.odd = set(), set(), set()
        self.good, self.bad, self.installation, self.heads = False, 0, None, 0

    def tell(self, path, line, kind):
        self.bad += 1
        print(f"{path}:{line}: {kind}" if line else f"{path}: {kind}")

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

    def pin(self, text, name):
        match = re.fullmatch(rf"bawn-head-v1 ([0-9a-f]{{32}}) (\d+) ({HEX}) ({HEX}) ({HEX}{HEX})\s*",
                             text)
        try:
            need(match, 0, "form")
            self.signed(0, bytes.fromhex(match[4]), match.groups()[:3], bytes.fromhex(match[5]))
            self.pins.append((match[1], int(match[2]), match[3]))
        except Bad as bad:
            self.tell(name, *bad.args)

    def ledger(self, path):
        number = 0
        try:
            for number, record in follow(path, "0" * 64):
                self.ledger_record(number, record)
            need(number, 1, "empty")
            need(all(seq < number for _, seq, _ in self.pins), number + 1, "truncated")
            self.good = True
        except Odd:
            self.tell(path, 0, "foreign")
        except Bad as bad:
            self.tell(path, *bad.args)

    def ledger_record(self, number, record):
        kind, body, task = record["type"], record["body"], record["task"]
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
        if task is None:  # a renamed file: its first record says whose it is
            task = next((r["task"] for r in lines(path) if isinstance(r, dict)), None)
        row, ended, number = self.tasks.get(task), False, 0
        open_end = self.good and row and not row["end"]
        try:
            for number, record in follow(path, "", *(row and row["end"] or ())):
                need(number > 1 or row or not self.good, 1, "unknown")
                need(number > 1 or not row or record["prev"] == row["begin"], 1, "rewritten")
                need(record["layer"] != "ledger" and record["task"] == task and not ended and
                     (record["type"] == "task.start") == (number == 1), number, "misplaced")
                ended = record["type"] in ("task.end", "task.lost")
                for folder, name in self.blobs_of(record, root) if root else ():
                    self.blob(number, task, folder, name)
            need(number or row or self.good, 1, "empty")
            if not ended and not (row and row["end"]):
                print(f"unfinished: {task}")
        except Odd:
            self.tell(path, 0, "foreign")
            self.odd.add(task)
        except Bad as bad:
            if bad.args[1] == "torn" and open_end:
                print(f"unfinished: {task}")
            else:
                self.tell(path, *bad.args)

    def blobs_of(self, record, root):
        names = {"task.start": ["policy_kept"], "stream": ["blob", "index"]}.get(record["type"], ())
        folder = root / ("policies" if "policy_kept" in names else f"blobs/{record['task']}")
        return [(folder, record["body"][name]) for name in names if record["body"][name]]

    def blob(self, number, task, folder, name):
        path = next((folder / (name[:64] + end) for end in ("", ".zst")
                     if os.path.lexists(folder / (name[:64] + end))), None)
        # a linked folder is none of the copy
        if not path or folder.is_symlink() or folder.parent.name == "blobs" and \
                folder.parent.is_symlink():
            need((task, name[:64]) in self.removed, number, "blob-missing")
            return
        digest, failed = hashlib.sha256(), True
        try:
            with opened(path) as file:
                unpack = subprocess.Popen(["zstd", "-dcq"] if path.suffix else ["cat"], stdin=file,
                                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                while piece := unpack.stdout.read(1 << 20):
                    digest.update(piece)
                failed = unpack.wait() != 0
        except Odd:
            pass
        need(not failed and digest.hexdigest() == name[:64], number, "blob-changed")

    def directory(self, root):
        if os.path.lexists(root / "head"):
            with opened(root / "head") as file:
                self.pin(file.read(4096).decode(errors="replace"), root / "head")
        self.ledger(root / "ledger")
        there = {path.stem: path for path in sorted((root / "tasks").glob("*.jsonl"))}
        for task in [t for t in self.tasks if t in there] + [t for t in there if t not in self.tasks]:
            self.chain(there[task], task, root)
        for task, row in self.tasks.items():
            lacks = task not in there or task in self.odd
            if lacks and not row["gone"] and row["end"] and row["end"][0] != 0:
                self.tell(root / "ledger", row["line"], "missing")


def read_key(data):
    """The 32 bytes of a public key: in hex, or as openssl knows it."""
    text = data.strip()
    return bytes.fromhex(text.decode()) if re.fullmatch(HEX.encode(), text) else subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "DER"], input=data, check=True,
        stdout=subprocess.PIPE).stdout[-32:]


def is_ledger(path):
    first = None if path.suffix == ".jsonl" else next(lines(path), None)
    return path.name == "ledger" or isinstance(first, dict) and first["layer"] == "ledger"


def caveats(trace, root, pinned, files):
    """What a verdict of "good" leaves open, and what would show it."""
    ledger = trace.installation is not None
    for holds, text in (
            (not ledger, "no ledger was given: that a chain is whole, and whose it is"),
            (ledger and not trace.heads, "no signed head: who can write the files can write all anew"),
            (ledger and not pinned, "no head was pinned (--head): a tail that the key's owner cut "
             "off or wrote anew"),
            (trace.heads and not trace.given, "no key was given (--key): who changed the key, too"),
            (not root, "blobs were not looked at: give the directory of the trace"),
            (not root and ledger and len(trace.tasks) > len(files) - 1,
             "not all tasks of the ledger were given")):
        if holds:
            print(f"not shown: {text}")


def check(given):
    trace = Trace(given.key and read_key(Path(given.key).read_bytes()))
    root = given.files[0].is_dir()
    if given.head:
        trace.pin(given.head if given.head.startswith("bawn-head-")
                  else Path(given.head).read_text(), "--head")
    if root:
        key = given.files[0] / "key/public"
        if not trace.key and os.path.lexists(key):
            with opened(key) as file:
                trace.key = read_key(file.read(4096))
        trace.directory(given.files[0])
    else:
        for path in given.files:
            opened(path).close()
        for path in sorted(given.files, key=lambda path: not is_ledger(path)):
            named = re.fullmatch(r"(t-.{20})\.jsonl", path.name)
            if is_ledger(path):
                trace.ledger(path)
            else:
                trace.chain(path, named and named[1])
    caveats(trace, root, given.head, given.files)
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
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"verify-trace: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
