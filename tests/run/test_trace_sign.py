"""bawn-sign: heads of the ledger are signed by a key that nothing else sees, and nothing else is.

The role is started as bawn starts it (ipc/role.h), and by bawn-sign-lab (tests/tools/sign-lab.c),
which uses the functions of `bawn trace head` and `verify`. What it answers is compared with a
second implementation of RFC 8032 and with openssl. Rows HJ03 and HJ05 of ../shared/attacks as far
as they concern the key.
"""
import base64
import concurrent.futures
import fcntl
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from boxed import BAWN, IS_ROOT, LIMIT_S, eventually, remove_tree

SIGN = str(Path(BAWN).parent / "bawn-sign")
LAB = str(Path(BAWN).parent / "bawn-sign-lab")
MADE, READY, HEAD, SIGNATURE, CLAIMS, VERDICTS, FAILED = range(1, 8)
INSTALLATION = "0123456789abcdef0123456789abcdef"
HASH = hashlib.sha256(b"a record").hexdigest()

# --- RFC 8032, section 5.1, as its section 6 has it: another implementation, slow and plain

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def point_add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def point_times(s, p):
    q = (0, 1, 1, 0)
    while s > 0:
        if s & 1:
            q = point_add(q, p)
        p = point_add(p, p)
        s >>= 1
    return q


def point_base():
    y = 4 * pow(5, P - 2, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P)
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x & 1:
        x = P - x
    return x, y, 1, x * y % P


def point_bytes(p):
    inverse = pow(p[2], P - 2, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return int.to_bytes(y | (x & 1) << 255, 32, "little")


def expand(seed):
    digest = hashlib.sha512(seed).digest()
    a = int.from_bytes(digest[:32], "little")
    return a & (1 << 254) - 8 | 1 << 254, digest[32:]


def public_of(seed):
    return point_bytes(point_times(expand(seed)[0], point_base()))


def signature_of(seed, text):
    a, prefix = expand(seed)
    r = int.from_bytes(hashlib.sha512(prefix + text).digest(), "little") % L
    start = point_bytes(point_times(r, point_base()))
    h = int.from_bytes(hashlib.sha512(start + public_of(seed) + text).digest(), "little") % L
    return start + int.to_bytes((r + h * a) % L, 32, "little")


# RFC 8032, section 7.1, tests 1 to 3: secret key, public key, message, signature
VECTORS = [
    ("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555"
     "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"),
    ("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
     "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"),
    ("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
     "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"),
]
SEEDS = [bytes.fromhex(vector[0]) for vector in VECTORS]

# --- the store


class Store:
    def __init__(self, base):
        self.base = Path(base)
        self.state = self.base / "state"
        self.state.mkdir(mode=0o700)
        self.trace = self.state / "trace"
        self.keys = self.trace / "key"
        self.key = self.keys / "sign"

    def lab(self, verb, *arguments, prefix=(), data=None):
        return subprocess.run([*prefix, LAB, verb, str(self.state), *map(str, arguments)],
                              input=data, capture_output=True, text=True, timeout=LIMIT_S,
                              check=False)

    def head(self, *arguments, **options):
        ran = self.lab("head", *arguments, **options)
        assert ran.returncode == 0 and ran.stderr == "", ran
        return [Head(line) for line in ran.stdout.splitlines()][-1]

    def refused(self, *words, **options):
        """Nothing is signed, the ledger is as before, and the text says why."""
        before = self.ledger()
        ran = self.lab("head", **options)
        assert ran.returncode == 1 and ran.stdout == "", ran
        for word in words:
            assert word in ran.stderr, (word, ran)
        assert [r for r in self.ledger() if r["type"] == "head"] == \
            [r for r in before if r["type"] == "head"]
        return ran

    def ledger(self):
        """The records, each checked against the one before."""
        path = self.trace / "ledger"
        records, prev = [], "0" * 64
        for line in path.read_bytes().splitlines() if path.exists() else []:
            record = json.loads(line)
            digest = hashlib.sha256(re.sub(rb',"hash":"[0-9a-f]*"}$', b"", line)).hexdigest()
            assert (record["prev"], record["hash"]) == (prev, digest)
            assert record["seq"] == len(records)
            records.append(record)
            prev = digest
        return records

    def put_key(self, text, mode=0o600):
        self.trace.mkdir(mode=0o700, exist_ok=True)
        self.keys.mkdir(mode=0o700, exist_ok=True)
        self.key.unlink(missing_ok=True)
        self.key.write_bytes(text)
        self.key.chmod(mode)

    def put_seed(self, seed):
        self.put_key(pem(seed))


class Head:
    """A head as it is kept elsewhere, taken apart by what docs/TRACE.md says of it."""

    def __init__(self, line):
        word, self.installation, seq, self.hash, public, signature = line.split(" ")
        assert word == "bawn-head-v1"
        self.line, self.seq = line, int(seq)
        self.public, self.signature = bytes.fromhex(public), bytes.fromhex(signature)

    @property
    def text(self):
        return f"bawn-head-v1\n{self.installation}\n{self.seq}\n{self.hash}\n".encode()


@pytest.fixture
def store():
    base = tempfile.mkdtemp(prefix="bawn-sign.", dir="/var/tmp")
    try:
        yield Store(base)
    finally:
        remove_tree(base)


def pem(seed):
    der = bytes.fromhex("302e020100300506032b657004220420") + seed
    return (b"-----BEGIN PRIVATE KEY-----\n" + base64.b64encode(der) +
            b"\n-----END PRIVATE KEY-----\n")


def seed_of(text):
    return base64.b64decode(text.split(b"\n")[1])[16:]


def check(*lines):
    ran = subprocess.run([LAB, "check"], input="".join(f"{line}\n" for line in lines),
                         capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ran.returncode == 0, ran
    return [word == "1" for word in ran.stdout.split()]


def openssl(*arguments, **options):
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False, **options)

# --- the role, as it is started


class Role:
    def __init__(self, kind, keys=None, extra=()):
        self.channel, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(LIMIT_S)
        config = os.memfd_create("config")
        os.write(config, kind)
        os.lseek(config, 0, os.SEEK_SET)
        given = [config, far.detach()]
        given += [os.open(keys, os.O_RDONLY | os.O_DIRECTORY)] if keys else []
        given += extra
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in given]
        null = os.open("/dev/null", os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, fd, 3 + i) for i, fd in enumerate(high)]
        self.pid = os.posix_spawn(SIGN, ["bawn-sign"], {}, file_actions=actions)
        for fd in {null, *given, *high} - set(extra):
            os.close(fd)

    def send(self, type_, payload=b"", fds=()):
        packet = struct.pack("=II", type_, len(payload)) + payload
        if fds:
            socket.send_fds(self.channel, [packet], fds)
        else:
            self.channel.send(packet)

    def receive(self):
        packet = self.channel.recv(8192)
        if not packet:
            return None, b""
        type_, length = struct.unpack("=II", packet[:8])
        assert length == len(packet) - 8
        return type_, packet[8:]

    def end(self):
        """Its exit status, negative for a signal."""
        self.channel.close()
        assert eventually(lambda: os.waitid(os.P_PID, self.pid,
                                            os.WEXITED | os.WNOHANG | os.WNOWAIT))
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def fields(installation=INSTALLATION, seq=7, hash_=HASH):
    return installation.encode() + struct.pack("=Q", seq) + hash_.encode()


def signed(installation=INSTALLATION, seq=7, hash_=HASH):
    return f"bawn-head-v1\n{installation}\n{seq}\n{hash_}\n".encode()


def memory(pid):
    """Every readable mapping: its flags and bytes."""
    found, flags = [], {}
    with open(f"/proc/{pid}/smaps", encoding="ascii") as file:
        for line in file:
            if match := re.match(r"([0-9a-f]+)-([0-9a-f]+) [rwxps-]{4} ", line):
                span = (int(match[1], 16), int(match[2], 16))
            elif line.startswith("VmFlags:"):
                flags[span] = line.split()[1:]
    with open(f"/proc/{pid}/mem", "rb", 0) as file:
        for (start, end), words in flags.items():
            try:
                file.seek(start)
                found.append((words, file.read(end - start)))
            except (OSError, ValueError, OverflowError):
                pass
    return found


# --- RFC 8032

@pytest.mark.parametrize("vector", VECTORS)
def test_the_second_implementation_is_that_of_the_rfc(vector):
    seed, public, message, signature = map(bytes.fromhex, vector)
    assert public_of(seed) == public and signature_of(seed, message) == signature


@pytest.mark.parametrize("seed", SEEDS)
def test_a_signature_is_that_of_the_rfc(store, seed):
    store.put_seed(seed)
    with Role(b"h", store.keys) as role:
        assert role.receive() == (READY, b"")
        role.send(HEAD, fields())
        assert role.receive() == (SIGNATURE, public_of(seed) + signature_of(seed, signed()))
        assert role.end() == 0


@pytest.mark.parametrize("seq", [0, 1, 2**32, 2**63, 2**64 - 1])
def test_any_number_is_signed_as_it_is_printed(store, seq):
    store.put_seed(SEEDS[0])
    with Role(b"h", store.keys) as role:
        assert role.receive()[0] == READY
        role.send(HEAD, fields(seq=seq))
        assert role.receive()[1][32:] == signature_of(SEEDS[0], signed(seq=seq))


def test_checks_many_in_one_process(store):
    claims, wanted = [], []
    for i in range(45):
        seed, bad = SEEDS[i % 3], i in (0, 7, 19, 20, 44)
        signature = signature_of(seed, signed(seq=i + bad))
        claims.append(public_of(seed) + fields(seq=i) + signature)
        wanted.append(0 if bad else 1)
    with Role(b"c") as role:
        verdicts = b""
        for i in range(0, len(claims), 17):
            role.send(CLAIMS, b"".join(claims[i:i + 17]))
            type_, answer = role.receive()
            assert type_ == VERDICTS
            verdicts += answer
        assert list(verdicts) == wanted
        assert role.end() == 0


def test_every_bit_of_a_claim_counts(store):
    seed = SEEDS[1]
    good = public_of(seed) + fields() + signature_of(seed, signed())
    with Role(b"c") as role:
        def verdict(claim):
            role.send(CLAIMS, claim)
            return role.receive()

        assert verdict(good) == (VERDICTS, b"\1")
        for at in range(len(good)):
            for bit in (0x01, 0x80):
                bad = bytearray(good)
                bad[at] ^= bit
                assert verdict(bytes(bad)) == (VERDICTS, b"\0"), (at, bit)
        # the same signature in another form: s + L (RFC 8032, 5.1.7)
        s = int.from_bytes(good[-32:], "little") + L
        assert verdict(good[:-32] + s.to_bytes(32, "little")) == (VERDICTS, b"\0")


# --- nothing but a head is signed, and each kind does its own

NO_HEADS = {
    "shorter": fields()[:-1],
    "longer": fields() + b"0",
    "empty": b"",
    "upper case": fields(hash_=HASH.upper()),
    "newline": fields(installation=INSTALLATION[:-1] + "\n"),
    "text": fields(hash_="bawn-head-v1".ljust(64)),
    "NUL": fields(hash_=HASH[:-1] + "\0"),
    "high bytes": b"\xff" * 104,
}


@pytest.mark.parametrize("name", NO_HEADS)
def test_nothing_but_a_head_is_signed(store, name):
    store.put_seed(SEEDS[0])
    with Role(b"h", store.keys) as role:
        assert role.receive()[0] == READY
        role.send(HEAD, NO_HEADS[name])
        type_, text = role.receive()
        assert (type_, text) == (FAILED, b"only a ledger's head is signed")
        assert role.receive()[0] is None, "it goes on"
        assert role.end() != 0


@pytest.mark.parametrize("kind,type_,payload", [
    (b"h", CLAIMS, public_of(SEEDS[0]) + fields() + bytes(64)),
    (b"h", SIGNATURE, fields()), (b"h", READY, b""), (b"h", 99, fields()),
    (b"c", HEAD, fields()), (b"c", CLAIMS, b""), (b"c", CLAIMS, bytes(199)),
    (b"c", CLAIMS, bytes(200 * 21)), (b"c", 99, bytes(200)),
])
def test_a_process_of_one_kind_does_nothing_of_another(store, kind, type_, payload):
    store.put_seed(SEEDS[0])
    with Role(kind, store.keys if kind == b"h" else None) as role:
        if kind == b"h":
            assert role.receive()[0] == READY
        role.send(type_, payload)
        answer = role.receive()[0]
        assert answer in (FAILED, None)
        assert role.end() > 0


def test_a_request_with_a_descriptor_is_none(store):
    store.put_seed(SEEDS[0])
    with Role(b"h", store.keys) as role:
        assert role.receive()[0] == READY
        role.send(HEAD, fields(), fds=[1])
        assert role.receive()[0] == FAILED


def test_it_signs_once(store):
    store.put_seed(SEEDS[0])
    with Role(b"h", store.keys) as role:
        assert role.receive()[0] == READY
        role.send(HEAD, fields())
        assert role.receive()[0] == SIGNATURE
        try:
            role.send(HEAD, fields(seq=8))
        except BrokenPipeError:
            pass
        try:
            assert role.receive()[0] is None
        except ConnectionResetError:
            pass  # it ended with the second request unread
        assert role.end() == 0


@pytest.mark.parametrize("kind", [b"", b"x", b"hh", b"h\0"])
def test_an_unknown_kind_ends(store, kind):
    store.put_seed(SEEDS[0])
    with Role(kind, store.keys) as role:
        assert role.receive()[0] is None
        assert role.end() > 0


def test_a_checker_has_no_key_though_it_is_given_one(store):
    """What was handed to it is closed, by the list of a root caller."""
    store.put_seed(SEEDS[0])
    with Role(b"c", store.keys) as role:
        role.send(CLAIMS, public_of(SEEDS[0]) + fields() + signature_of(SEEDS[0], signed()))
        assert role.receive() == (VERDICTS, b"\1")
        if IS_ROOT:
            assert sorted(map(int, os.listdir(f"/proc/{role.pid}/fd"))) == [0, 1, 2, 3, 4]
        else:
            with pytest.raises(PermissionError):
                os.listdir(f"/proc/{role.pid}/fd")


# --- what a process that has the key open is like

def test_the_jail(store):
    store.put_seed(SEEDS[0])
    leak = os.open("/etc/passwd", os.O_RDONLY)
    with Role(b"h", store.keys, extra=(leak,)) as role:
        assert role.receive()[0] == READY
        status = Path(f"/proc/{role.pid}/status").read_text(encoding="ascii")
        for line in ("Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000",
                     "CapPrm:\t0000000000000000"):
            assert line in status, status
        limits = Path(f"/proc/{role.pid}/limits").read_text(encoding="ascii")
        assert re.search(r"Max core file size +0 +0", limits), limits
        assert os.stat(f"/proc/{role.pid}/status").st_uid == 0, "it can be dumped"
        if not IS_ROOT:
            with pytest.raises(PermissionError):
                os.listdir(f"/proc/{role.pid}/fd")
            with pytest.raises(PermissionError):
                open(f"/proc/{role.pid}/mem", "rb").close()
            return
        links = {int(fd): os.readlink(f"/proc/{role.pid}/fd/{fd}")
                 for fd in os.listdir(f"/proc/{role.pid}/fd")}
        assert sorted(links) == [0, 1, 2, 3, 4, 5], links
        assert links[5] == str(store.key), "not the key alone"
    os.close(leak)


@pytest.mark.skipif(not IS_ROOT, reason="root alone can look into it, as the test before shows")
def test_the_key_is_in_locked_memory_alone(store):
    store.put_seed(SEEDS[2])
    with Role(b"h", store.keys) as role:
        assert role.receive()[0] == READY
        holders = [words for words, data in memory(role.pid) if SEEDS[2] in data]
        assert holders, "it was not found where it must be"
        for words in holders:
            assert "lo" in words and "dd" in words, words
        text = pem(SEEDS[2]).split(b"\n")[1][24:]
        assert not [words for words, data in memory(role.pid) if text in data], "not wiped"


def test_no_core_is_left(store):
    store.put_seed(SEEDS[0])
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    with Role(b"h", store.keys) as role:
        assert role.receive()[0] == READY
        os.kill(role.pid, signal.SIGABRT)
        _, status = os.waitpid(role.pid, 0)
        assert os.WIFSIGNALED(status) and not os.WCOREDUMP(status)


# --- heads

def test_a_head(store):
    head = store.head()
    records = store.ledger()
    assert [r["type"] for r in records] == ["ledger.start", "head"]
    assert head.installation == records[0]["body"]["installation"]
    assert (head.seq, head.hash) == (0, records[0]["hash"])
    assert records[1]["body"] == {
        "key": hashlib.sha256(head.public).hexdigest(), "public": head.public.hex(),
        "signed_seq": 0, "signed_hash": records[0]["hash"], "signature": head.signature.hex()}
    assert (store.trace / "head").read_text() == head.line + "\n"
    for path, mode in ((store.key, 0o600), (store.keys, 0o700), (store.trace / "head", 0o600)):
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert sorted(p.name for p in store.keys.iterdir()) == ["public", "sign"]
    assert check(head.line) == [True]
    # a second one is over all that was written meanwhile, the first head too
    second = store.head()
    assert (second.seq, second.hash, second.public) == (1, records[1]["hash"], head.public)


def test_openssl_agrees(store):
    head = store.head()
    text, signature = store.base / "text", store.base / "signature"
    text.write_bytes(head.text)
    signature.write_bytes(head.signature)
    verify = ["pkeyutl", "-verify", "-rawin", "-in", text, "-sigfile", signature]
    ran = openssl(*verify, "-pubin", "-inkey", store.keys / "public")
    assert ran.returncode == 0 and "Verified Successfully" in ran.stdout, ran
    # the key is one that openssl reads, and its public half is what we say it is
    ran = openssl("pkey", "-in", store.key, "-pubout")
    assert ran.stdout == (store.keys / "public").read_text()
    # a tampered text, and a wrong key
    text.write_bytes(head.text.replace(b"\n0\n", b"\n1\n"))
    assert openssl(*verify, "-pubin", "-inkey", store.keys / "public").returncode != 0
    text.write_bytes(head.text)
    other = store.base / "other"
    openssl("genpkey", "-algorithm", "ed25519", "-out", other)
    assert openssl(*verify, "-inkey", other).returncode != 0


def test_a_tampered_head_and_a_wrong_key_are_seen(store):
    head = store.head()
    words = head.line.split(" ")
    changed = [head.line]
    for i, digit in ((1, 0), (2, 0), (3, 63), (4, 0), (5, 127)):
        bad = list(words)
        other = "1" if bad[i][digit] != "1" else "2"
        bad[i] = bad[i][:digit] + other + bad[i][digit + 1:]
        changed.append(" ".join(bad))
    wrong = list(words)
    wrong[4] = public_of(SEEDS[0]).hex()
    changed.append(" ".join(wrong))
    assert check(*changed) == [True] + [False] * 6


def test_many_are_checked(store):
    lines = [h for _ in range(3) for h in store.lab("head", 15).stdout.splitlines()]
    assert len(set(lines)) == 45 and check(*lines) == [True] * 45


# --- the key's file

def make_key(store, *arguments):
    path = store.base / "made"
    ran = openssl("genpkey", *arguments, "-out", path)
    assert ran.returncode == 0, ran
    text = path.read_bytes()
    path.unlink()
    return text


def test_a_key_of_openssl_serves(store):
    store.put_key(make_key(store, "-algorithm", "ed25519"))
    head = store.head()
    assert head.public == public_of(seed_of(store.key.read_bytes()))
    ran = openssl("pkey", "-in", store.key, "-pubout")
    assert ran.stdout == (store.keys / "public").read_text()


OTHERS = {
    "x25519": ["-algorithm", "x25519"],
    "ed448": ["-algorithm", "ed448"],
    "ec": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "encrypted": ["-algorithm", "ed25519", "-aes-256-cbc", "-pass", "pass:word"],
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_key_of_another_kind_is_refused(store, name):
    store.head()
    text = make_key(store, *OTHERS[name])
    store.put_key(text)
    store.refused("trace/key/sign is no Ed25519 key")
    assert store.key.read_bytes() == text, "it was replaced"


GOOD = pem(SEEDS[0])
BROKEN = {
    "longer": GOOD + b"\n", "shorter": GOOD[:-1], "crlf": GOOD.replace(b"\n", b"\r\n"),
    "padding": GOOD.replace(GOOD.split(b"\n")[1][-2:], b"=="),
    "blank": GOOD.replace(b"\nM", b"\n "), "not base64": GOOD.replace(b"MC4", b"M-4"),
    "nul": GOOD.replace(b"MC4", b"M\0004"), "binary": bytes(range(119)),
    "public": b"-----BEGIN PUBLIC KEY-----\n" + b"A" * 60 + b"\n-----END PUBLIC KEY-----\n",
    "giant": b"\0" * 1000000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_key_is_refused(store, name):
    store.head()
    store.put_key(BROKEN[name])
    store.refused("trace/key/sign is no Ed25519 key")


def test_an_empty_key_is_refused(store):
    store.head()
    store.put_key(b"")
    store.refused("trace/key/sign is empty")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610, 0o666])
def test_a_key_that_is_open_to_others_is_refused(store, mode):
    store.put_key(GOOD, mode)
    store.refused("trace/key/sign is open to others")


def test_a_link_is_refused(store):
    store.head()
    real = store.base / "real"
    store.key.rename(real)
    store.key.symlink_to(real)
    store.refused("trace/key/sign is a link")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused(store, make):
    store.head()
    store.key.unlink()
    make(store.key, 0o600)
    store.refused("trace/key/sign is not a file")


@pytest.mark.skipif(IS_ROOT, reason="root reads it")
def test_an_unreadable_key_is_refused(store):
    store.head()
    store.key.chmod(0)
    store.refused("trace/key/sign: Permission denied")


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a file away")
def test_a_foreign_key_is_refused(store):
    store.head()
    os.chown(store.key, 65534, 65534)
    store.refused("trace/key/sign is another user's")


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o770])
def test_a_directory_that_is_open_to_others_is_refused(store, mode):
    store.head()
    store.keys.chmod(mode)
    store.refused("trace/key is not the caller's own, or open to others")


def test_a_linked_directory_is_refused(store):
    store.head()
    store.keys.rename(store.base / "keys")
    store.keys.symlink_to(store.base / "keys")
    store.refused("trace/key")


def test_rotation_is_on_record(store):
    first = store.head()
    old = store.key.read_bytes()
    store.key.unlink()
    second = store.head()
    assert second.public != first.public and store.key.read_bytes() != old
    heads = [r["body"] for r in store.ledger() if r["type"] == "head"]
    assert [h["public"] for h in heads] == [first.public.hex(), second.public.hex()]
    assert check(first.line, second.line) == [True, True]
    # the public half that lies there is that of the key that is used now
    ran = openssl("pkey", "-in", store.key, "-pubout")
    assert ran.stdout == (store.keys / "public").read_text()
    # neither key vouches for the other's head
    words = second.line.split(" ")
    words[4] = first.public.hex()
    assert check(" ".join(words)) == [False]


def test_the_public_half_is_repaired(store):
    head = store.head()
    (store.keys / "public").write_text("something else\n")
    again = store.head()
    assert again.public == head.public
    ran = openssl("pkey", "-in", store.key, "-pubout")
    assert ran.stdout == (store.keys / "public").read_text()


@pytest.mark.parametrize("left", ["file", "link", "open"])
def test_what_a_dead_maker_left_is_no_obstacle(store, left):
    assert store.lab("ledger").returncode == 0
    store.keys.mkdir(mode=0o700)
    new, target = store.keys / "sign.new", store.base / "target"
    target.write_bytes(b"precious")
    if left == "link":
        new.symlink_to(target)
    else:
        new.write_bytes(GOOD[:50])
        new.chmod(0o666 if left == "open" else 0o600)
    store.head()
    assert target.read_bytes() == b"precious"
    assert stat.S_IMODE(store.key.stat().st_mode) == 0o600 and not new.exists()


@pytest.mark.parametrize("mask", [0, 0o777])
def test_the_mode_is_not_the_umasks(store, mask):
    store.trace.mkdir(mode=0o700)
    store.keys.mkdir(mode=0o700)
    old = os.umask(mask)
    try:
        with Role(b"m", store.keys) as role:
            type_, public = role.receive()
            assert type_ == MADE
    finally:
        os.umask(old)
    made = store.keys / "sign.new"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert public_of(seed_of(made.read_bytes())) == public


def test_keys_differ(store):
    seen = set()
    for _ in range(5):
        store.key.unlink(missing_ok=True)
        seen.add(store.head().public)
    assert len(seen) == 5


# --- deaths, full disks, others

def start_hold(store):
    held = subprocess.Popen([LAB, "hold", str(store.state)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return held, int(held.stdout.readline())


def test_a_role_that_is_killed_signs_nothing(store):
    store.head()
    before = store.ledger()
    held, pid = start_hold(store)
    os.kill(pid, signal.SIGKILL)
    out, err = held.communicate("\n", timeout=LIMIT_S)
    assert held.returncode == 1 and out == "" and "bawn-sign" in err, (out, err)
    assert store.ledger() == before
    assert store.head().seq == len(before) - 1


def test_a_role_that_is_stopped_is_given_up(store):
    store.head()
    before = store.ledger()
    held, pid = start_hold(store)
    os.kill(pid, signal.SIGSTOP)
    # it may have said that it is ready already: then the ledger is locked while nothing comes
    out, err = held.communicate("\n", timeout=LIMIT_S)
    assert held.returncode == 1 and out == "" and "time is up" in err, (out, err)
    assert not os.path.exists(f"/proc/{pid}"), "it was left"
    assert store.ledger() == before
    store.head()


def test_the_supervisor_takes_it_along(store):
    store.head()
    held, pid = start_hold(store)
    held.kill()
    held.communicate()
    assert eventually(lambda: not os.path.exists(f"/proc/{pid}") or
                      "Z" in Path(f"/proc/{pid}/stat").read_text().split(")")[1])


def test_nothing_waits_while_it_starts(store):
    """Between the start of the role and the request the ledger is free."""
    store.head()
    held, _ = start_hold(store)
    second = store.head()
    out, _ = held.communicate("\n", timeout=LIMIT_S)
    assert held.returncode == 0 and Head(out.strip()).seq == second.seq + 1
    store.ledger()


def test_killed_at_any_time(store):
    """Of the first signature with its key: there is no key, or a whole one."""
    for i in range(40):
        child = subprocess.Popen([LAB, "head", str(store.state)], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(0.001 * i)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if store.key.exists():
            assert len(store.key.read_bytes()) == 119
            if i % 2:
                store.key.unlink()
    head = store.head()
    assert check(head.line) == [True]
    records = store.ledger()
    heads = [r["body"] for r in records if r["type"] == "head"]
    for body in heads:
        assert records[body["signed_seq"]]["hash"] == body["signed_hash"]


def test_many_at_once(store):
    """Of those that find no key one makes it; each signs what is there."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: store.lab("head", 3), range(8)))
    assert not [ran for ran in runs if ran.returncode or ran.stderr], runs
    heads = [Head(line) for ran in runs for line in ran.stdout.splitlines()]
    assert len(heads) == 24 and len({head.public for head in heads}) == 1
    assert sorted(head.seq for head in heads) == list(range(24))
    assert [r["type"] for r in store.ledger()] == ["ledger.start"] + ["head"] * 24
    assert check(*[head.line for head in heads]) == [True] * 24
    newest = max(heads, key=lambda head: head.seq)
    assert (store.trace / "head").read_text() == newest.line + "\n"


# a tmpfs of one page less than is needed, with what is there; then a larger one
FULL = r"""
mount -t tmpfs -o size=256k,mode=0700 none "$1" && "$0" ledger "$1" || exit 9
mkdir -m 700 "$1/trace/key"
head -c 1M /dev/zero >"$1/filler" 2>/dev/null
"$0" head "$1" && exit 8
ls "$1/trace/key"
rm "$1/filler"
"$0" head "$1" && stat -c %s "$1/trace/key/sign"
"""


def test_a_full_disk_leaves_no_key(store):
    ran = subprocess.run(["unshare", "-m" if IS_ROOT else "-Urm", "--propagation", "private", "sh",
                          "-c", FULL, LAB, str(store.state)], capture_output=True, text=True,
                         timeout=LIMIT_S, check=False)
    assert "No space left on device" in ran.stderr, ran
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0 and len(lines) == 2 and lines[1] == "119", ran
    assert lines[0].startswith("bawn-head-v1 "), "a key was left behind"


def test_memory_that_cannot_be_locked(store):
    """In a user namespace not even root has the right to lock more than the limit."""
    store.lab("ledger")
    prefix = ["unshare", "-Ur", "prlimit", "--memlock=0"]
    store.refused("memory for the key cannot be locked", "ulimit -l", prefix=prefix)
    assert not (store.keys / "sign.new").exists()
    store.head(prefix=["unshare", "-Ur", "prlimit", "--memlock=65536"])


def test_no_configuration_of_the_library_is_read(store):
    """A configuration file can load code (openssl.cnf, engines): the role starts without."""
    hostile = store.base / "openssl.cnf"
    hostile.write_text("openssl_conf = nonsense\n[nonsense]\nproviders = gone\n[gone]\n")
    environment = dict(os.environ, OPENSSL_CONF=str(hostile), LD_PRELOAD="/nonexistent.so",
                       OPENSSL_MODULES=str(store.base))
    ran = subprocess.run([LAB, "head", str(store.state)], env=environment, capture_output=True,
                         text=True, timeout=LIMIT_S, check=False)
    assert ran.returncode == 0, ran


# --- where the key is not

def test_the_key_is_in_no_other_file(store):
    store.head(3)
    seed = seed_of(store.key.read_bytes())
    forms = [seed, seed.hex().encode(), base64.b64encode(seed)[4:-4], pem(seed).split(b"\n")[1]]
    found = {path.name for path in store.state.rglob("*") if path.is_file()
             for form in forms if form in path.read_bytes()}
    assert found == {"sign"}


def test_the_key_is_not_in_the_supervisors_memory(store):
    """Neither before nor after the signature, which is there and shows that we look."""
    head = store.head()
    text = store.key.read_bytes()
    secrets = [seed_of(text), text[28:92], seed_of(text).hex().encode()]
    held, _ = start_hold(store)
    before = [data for _, data in memory(held.pid)]
    held.stdin.write("\n")
    held.stdin.flush()
    line = held.stdout.readline().strip()
    after = [data for _, data in memory(held.pid)]
    held.communicate("\n", timeout=LIMIT_S)
    assert Head(line).public == head.public
    assert [1 for data in after if Head(line).signature in data], "it is looked for in vain"
    assert not [1 for data in before + after for secret in secrets if secret in data]


# --- when it is due, and the hook

HOOK = """#!/bin/sh
cat >"$0.line"
env | sort >"$0.env"
pwd >"$0.pwd"
echo out; echo err >&2
"""


def put_hook(store, text, mode=0o700):
    store.lab("ledger")
    path = store.trace / "head-hook"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_head_is_due_after_a_minute(store):
    assert store.lab("due").returncode == 0
    path = store.trace / "head"
    first = path.read_text()
    assert store.lab("due").returncode == 0 and path.read_text() == first
    for seconds in (-59, -61, 3600):
        os.utime(path, (time.time() + seconds,) * 2)
        before = path.read_text()
        assert store.lab("due").returncode == 0
        # one of the future is due too: the clock was set back
        assert (path.read_text() == before) == (seconds == -59)


def test_the_hook_gets_the_line(store):
    hook = put_hook(store, HOOK)
    ran = store.lab("due", prefix=["env", "SECRET=hunter2", f"HOME={store.base}"])
    assert ran.returncode == 0 and ran.stdout == "" and ran.stderr == "", ran
    line = (store.trace / "head").read_text()
    assert Path(f"{hook}.line").read_text() == line
    assert Path(f"{hook}.pwd").read_text().strip() == str(store.trace)
    names = {entry.split("=")[0] for entry in Path(f"{hook}.env").read_text().splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {"HOME", "PATH"}


@pytest.mark.parametrize("text,mode,words", [
    ("#!/bin/sh\nexit 3\n", 0o700, "ended with status 3"),
    ("#!/bin/sh\nkill -9 $$\n", 0o700, "was killed by signal 9"),
    ("#!/bin/sh\nexit 0\n", 0o600, "cannot be executed"),
    ("#!/bin/sh\nexit 0\n", 0o720, "is not run"),
    ("#!/bin/sh\nexit 0\n", 0o702, "is not run"),
])
def test_a_bad_hook_is_told_and_the_head_stays(store, text, mode, words):
    put_hook(store, text, mode)
    ran = store.lab("due")
    assert ran.returncode == 1 and f"trace/head-hook {words}" in ran.stderr, ran
    assert check((store.trace / "head").read_text().strip()) == [True]


def test_a_linked_hook_is_not_run(store):
    real = store.base / "hook"
    real.write_text(f"#!/bin/sh\ntouch {store.base}/ran\n")
    real.chmod(0o700)
    store.lab("ledger")
    (store.trace / "head-hook").symlink_to(real)
    ran = store.lab("due")
    assert ran.returncode == 1 and "is not run" in ran.stderr, ran
    assert not (store.base / "ran").exists()


def test_a_slow_hook_is_killed_with_what_it_started(store):
    put_hook(store, f"#!/bin/sh\nsleep 1000 & echo $! >{store.base}/pid\nwait\n")
    start = time.monotonic()
    ran = store.lab("due")
    assert ran.returncode == 1 and "was killed: it took longer than 5 s" in ran.stderr, ran
    assert 4.5 < time.monotonic() - start < 15
    pid = int((store.base / "pid").read_text())
    assert eventually(lambda: not os.path.exists(f"/proc/{pid}") or
                      ") Z " in Path(f"/proc/{pid}/stat").read_text())


def test_a_hook_holds_nothing_of_ours(store):
    put_hook(store, f"#!/bin/sh\nls /proc/self/fd >{store.base}/fds; cat >/dev/null\n")
    assert store.lab("due").returncode == 0
    fds = {int(fd) for fd in (store.base / "fds").read_text().split()}
    assert fds <= {0, 1, 2, 3, 255}, "3 is the directory that ls reads, 255 the shell's script"


# --- bawn trace head, bawn trace key

def bawn(store, *arguments, **options):
    work = store.base / "work"
    work.mkdir(exist_ok=True)
    return subprocess.run([BAWN, *map(str, arguments)], cwd=work, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False, **options)


def trace(store, verb, *arguments, **options):
    return bawn(store, "trace", verb, "--state-dir", store.state, *arguments, **options)


def test_the_verb_signs_and_prints(store):
    ran = trace(store, "head")
    assert ran.returncode == 0 and ran.stderr == "", ran
    head = Head(ran.stdout.removesuffix("\n"))
    assert check(head.line) == [True]
    ran = trace(store, "head", "--json")
    found = json.loads(ran.stdout)
    second = Head(found.pop("line"))
    assert found == {"version": 1, "installation": head.installation, "signed_seq": 1,
                     "signed_hash": second.hash, "public": head.public.hex(),
                     "signature": second.signature.hex()}


def test_the_verb_prints_the_key(store):
    ran = trace(store, "key")
    assert ran.returncode == 1 and ran.stdout == "" and "bawn trace head" in ran.stderr, ran
    assert not store.trace.exists(), "looking left something behind"
    trace(store, "head")
    ran = trace(store, "key")
    assert ran.returncode == 0 and ran.stderr == "", ran
    assert ran.stdout == openssl("pkey", "-in", store.key, "-pubout").stdout


@pytest.mark.parametrize("verb", ["head", "key"])
def test_wrong_use(store, verb):
    for words in (["more"], ["--each", "x"], ["--state-dir", ""]):
        ran = trace(store, verb, *words)
        assert ran.returncode == 2 and ran.stdout == "", ran
        assert ran.stderr.startswith("bawn: ") and ran.stderr.count("\n") == 1, ran


def test_a_signature_that_fails_is_told(store):
    trace(store, "head")
    store.key.write_bytes(b"")
    ran = trace(store, "head")
    assert ran.returncode == 125 and ran.stdout == "", ran
    assert ran.stderr == "bawn: trace/key/sign is empty; moved away, a new one is made\n"


def test_the_verb_waits_for_the_hook(store):
    hook = put_hook(store, HOOK)
    ran = trace(store, "head")
    assert ran.returncode == 0 and ran.stderr == "out\nerr\n", ran
    assert Path(f"{hook}.line").read_text() == ran.stdout
    put_hook(store, "#!/bin/sh\nexit 7\n")
    ran = trace(store, "head")
    assert ran.returncode == 1 and check(ran.stdout.strip()) == [True], ran
    assert ran.stderr == "bawn: trace/head-hook ended with status 7\n"


def test_verify_takes_head_and_key(store):
    head, key = store.base / "head", store.base / "key"
    head.write_text(trace(store, "head").stdout)
    key.write_text(trace(store, "key").stdout)
    ran = trace(store, "verify", "--key", key, "--head", head)
    assert ran.returncode == 0, ran
    # the last record, of which the kept head says nothing, may go; the one that it signed may not
    ledger = store.trace / "ledger"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:-2]))
    ran = trace(store, "verify", "--key", key, "--head", head)
    assert ran.returncode == 1, ran


def test_verify_says_from_where_on_another_key_was_used(store):
    trace(store, "head")
    key = store.base / "key"
    key.write_text(trace(store, "key").stdout)
    trace(store, "head")
    assert trace(store, "verify", "--key", key).returncode == 0
    store.key.unlink()
    trace(store, "head")
    trace(store, "head")
    ran = trace(store, "verify", "--key", key)
    assert ran.returncode == 1, ran
    assert re.search(r"ledger:4\b.*key", ran.stdout + ran.stderr), ran


def test_a_history_that_is_signed_anew_with_the_real_key_does_not_fit_a_kept_head(store):
    """The owner has the key: only a head that left their hands shows it."""
    trace(store, "head")
    head, key = store.base / "head", store.base / "key"
    head.write_text(trace(store, "head").stdout)
    key.write_text(trace(store, "key").stdout)
    installation = store.ledger()[0]["body"]["installation"]
    (store.trace / "ledger").unlink()
    store.lab("ledger")
    text = (store.trace / "ledger").read_text()
    fresh = json.loads(text)["body"]["installation"]
    line = re.sub(r',"hash":"[0-9a-f]*"}$', "", text.strip().replace(fresh, installation))
    digest = hashlib.sha256(line.encode()).hexdigest()
    (store.trace / "ledger").write_text(f'{line},"hash":"{digest}"}}\n')
    trace(store, "head")
    trace(store, "head")
    assert trace(store, "verify", "--key", key).returncode == 0, "the forgery is none"
    ran = trace(store, "verify", "--key", key, "--head", head)
    assert ran.returncode == 1, ran


def test_a_box_sees_neither_key_nor_trace(store):
    trace(store, "head")
    script = (f"cat {store.key} {store.keys}/* {store.trace}/*; ls -la {store.state};"
              f" {BAWN} trace head --state-dir {store.state};"
              f" {Path(BAWN).parent}/bawn-sign; cat /proc/[0-9]*/maps")
    ran = bawn(store, "run", "--state-dir", store.state, "--read", Path(BAWN).parent, "--",
               "bash", "-c", script)
    text = store.key.read_text().split("\n")[1]
    assert text not in ran.stdout and "bawn-head-v1" not in ran.stdout, ran
    assert "No such file or directory" in ran.stderr, ran


if not shutil.which("openssl"):
    raise SystemExit("openssl is missing (tools/setup test)")
