"""A network of a test's own, and bawn-proxy in it, with the supervisor and the dialer played.

`in_network` runs a test's function in a child that has a network namespace to itself: every address
is local there, as in a box, and what comes for one of the world is handed to the proxy's listener.
Nothing leaves the machine.
"""
import contextlib
import ctypes
import functools
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time
import traceback

from boxed import BAWN

# where ip and nft lie is not in everybody's path
os.environ["PATH"] += ":/usr/sbin:/sbin"
LAB = os.path.join(os.path.dirname(BAWN), "bawn-egress-lab")
PROXY = os.path.join(os.path.dirname(BAWN), "bawn-proxy")
DOOR = ("198.18.255.253", 3128)
NAMESERVER = ("198.18.255.252", 53)
ROOM = 4096 + 8

READY, DIAL, CANCEL, DIALED, TRIED, FLOW, QUESTION, REPLY, _, MARK, MARKED = range(1, 12)
DONE, DENIED, SPECIAL, NO_NAME, NO_RESOLVER, REFUSED, UNREACHABLE, TIMEOUT, BUSY = range(9)
OPENED, CLOSED, STOPPED = range(3)
WHO, MAY = range(2)
DENY, ASK, ALLOW = range(3)

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
RULES = """
table inet capture {
  chain prerouting {
    type filter hook prerouting priority mangle; policy accept;
    ip daddr 127.0.0.0/8 accept
    ip6 daddr ::1 accept
    ip daddr 198.18.255.254 accept
    ip6 daddr fd77::2 accept
    meta l4proto tcp tproxy to :1
  }
}
"""


class Address(ctypes.Structure):
    _fields_ = [("family", ctypes.c_uint8), ("bytes", ctypes.c_uint8 * 16)]

    @classmethod
    def of(cls, text):
        if ":" in text:
            return cls(2, (ctypes.c_uint8 * 16)(*socket.inet_pton(socket.AF_INET6, text)))
        packed = socket.inet_pton(socket.AF_INET, text) + bytes(12)
        return cls(1, (ctypes.c_uint8 * 16)(*packed))

    def __str__(self):
        if self.family == 0:
            return ""
        if self.family == 1:
            return socket.inet_ntop(socket.AF_INET, bytes(self.bytes)[:4])
        return socket.inet_ntop(socket.AF_INET6, bytes(self.bytes))


class Dial(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("port", ctypes.c_uint16), ("reserved", ctypes.c_uint16),
                ("host_bytes", ctypes.c_uint32), ("host", ctypes.c_char * 256)]


class Dialed(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("outcome", ctypes.c_uint32), ("address", Address),
                ("reserved", ctypes.c_uint8 * 3), ("resolve_ns", ctypes.c_uint64),
                ("connect_ns", ctypes.c_uint64)]


class Flow(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in
                ("id", "request", "phase", "door", "verdict", "rule", "protocol", "outcome")] + [
        (name, ctypes.c_uint16) for name in ("port", "status", "peer_port", "local_port")] + [
        ("peer", Address), ("local", Address), ("address", Address),
        ("opened_verdict", ctypes.c_uint8), ("upgrade", ctypes.c_uint8),
        ("padding", ctypes.c_uint8 * 3),
        ("opened_rule", ctypes.c_uint32), ("unused", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64) for name in
        ("bytes_up", "bytes_down", "duration_ns", "repeated")] + [
        ("host", ctypes.c_char * 256), ("method", ctypes.c_char * 32),
        ("path", ctypes.c_char * 512), ("reason", ctypes.c_char * 128)]

    def __repr__(self):
        return (f"<{['opened', 'closed', 'stopped'][self.phase]} {self.host.decode()}:{self.port} "
                f"verdict {self.verdict} {self.method.decode()} {self.path.decode()} "
                f"status {self.status} up {self.bytes_up} down {self.bytes_down} "
                f"repeated {self.repeated} {self.reason.decode()!r}>")


class Question(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("id", "kind", "rule", "protocol")] + [
        ("port", ctypes.c_uint16), ("peer_port", ctypes.c_uint16), ("peer", Address),
        ("local", Address), ("local_port", ctypes.c_uint16), ("host", ctypes.c_char * 256),
        ("method", ctypes.c_char * 32), ("path", ctypes.c_char * 512)]


class Reply(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("id", "kind", "yes", "action")] + [
        ("tool_device", ctypes.c_uint64), ("tool_inode", ctypes.c_uint64)]


def enter_network():
    """This process gets a network namespace of its own, in which it is root."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWNET if uid == 0 else CLONE_NEWUSER | CLONE_NEWNET
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    if uid != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"),
                           ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    for words in ("link set lo up", "addr add 198.18.255.254/32 dev lo",
                  "-6 addr add fd77::2/128 dev lo nodad",
                  "route add local default dev lo src 198.18.255.254",
                  "-6 route add local default dev lo src fd77::2"):
        subprocess.run(["ip"] + words.split(), check=True, timeout=10)
    subprocess.run(["nft", "-f", "-"], input=RULES, text=True, check=True, timeout=10)


def in_network(test):
    """Runs the test in a child in a network of its own; what it raises is raised here."""
    @functools.wraps(test)
    def run(*arguments, **words):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            status = 1
            try:
                signal.alarm(120)
                enter_network()
                test(*arguments, **words)
                status = 0
            except BaseException:
                os.write(writer, traceback.format_exc().encode()[-60000:])
            os._exit(status)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            report = pipe.read().decode(errors="replace")
        status = os.waitpid(pid, 0)[1]
        assert status == 0, report or f"the child ended with status {status}"
    return run


def until(condition, seconds=10, what="it"):
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not happen in {seconds} s"
        time.sleep(0.005)


def listener():
    """All captured connections of both families come here, whatever their address and port."""
    server = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.setsockopt(socket.IPPROTO_IP, 19, 1)  # IP_TRANSPARENT
    server.setsockopt(socket.IPPROTO_IPV6, 75, 1)  # IPV6_TRANSPARENT
    server.bind(("::", 1))
    server.listen(512)
    return server


def name_socket():
    server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.setsockopt(socket.IPPROTO_IPV6, 49, 1)  # IPV6_RECVPKTINFO
    server.setsockopt(socket.IPPROTO_IPV6, 78, 1)  # IPV6_FREEBIND
    server.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND
    server.bind(("::", 53))
    return server


def sealed(content):
    fd = os.memfd_create("order", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, content)
    return fd


class Proxy:
    """bawn-proxy with these rules. Its dials are answered by `dial(host, port)`: a socket for the
    proxy, or an outcome; its questions by `who` and `may`, dictionaries of a reply's fields.
    All names lead to one address."""

    def __init__(self, *rules, dial=None, who=None, may=None, answer=True, limits=None,
                 address="93.184.216.34"):
        self.address = address
        self.flows, self.dials, self.questions, self.cancels = [], [], [], []
        self.marks = []  # with how much had been told before
        self.dial_with, self.who, self.may, self.answer = dial, who, may, answer
        self.is_ready, self.ears = False, threading.Event()
        self.ears.set()
        order = subprocess.run([LAB, *rules], stdout=subprocess.PIPE, check=True, timeout=10).stdout
        pair = functools.partial(socket.socketpair, socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel, channel = pair()
        self.peer, peer = pair()
        tcp, udp = listener(), name_socket()
        config = sealed(order)
        fds = [config, channel.fileno(), peer.fileno(), tcp.fileno(), udp.fileno()]
        copies = [os.dup(fd) for fd in fds]
        high = [os.dup2(fd, 200 + i, inheritable=True) for i, fd in enumerate(copies)]

        def place():
            if limits:
                import resource
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i, inheritable=True)

        self.process = subprocess.Popen([PROXY], stdin=subprocess.DEVNULL, preexec_fn=place,
                                        pass_fds=tuple(range(3, 3 + len(high))), env={})
        for fd in copies + high + [config]:
            os.close(fd)
        for end in (channel, peer, tcp, udp):
            end.close()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        until(lambda: self.is_ready or self.process.poll() is not None, what="the proxy's start")
        assert self.is_ready, f"the proxy ended with {self.process.returncode}"

    def serve(self):
        ends = [self.channel, self.peer]
        while ends:
            for end in select.select(ends, [], [])[0]:
                self.ears.wait()
                try:
                    bytes_, _, flags, _ = end.recvmsg(ROOM)
                except OSError:
                    # it ended with an answer unread; what it said on the other one is still there
                    bytes_ = b""
                if not bytes_:
                    ends.remove(end)
                    continue
                assert not flags & socket.MSG_TRUNC
                kind, length = struct.unpack_from("II", bytes_)
                assert length == len(bytes_) - 8
                self.take(kind, bytes_[8:])

    def take(self, kind, body):
        if kind == READY:
            self.is_ready = True
        elif kind == FLOW:
            assert body and len(body) % ctypes.sizeof(Flow) == 0
            self.flows += [Flow.from_buffer_copy(body, at)
                           for at in range(0, len(body), ctypes.sizeof(Flow))]
        elif kind == DIAL:
            dial = Dial.from_buffer_copy(body)
            self.dials.append((dial.host.decode(), dial.port))
            if self.answer:
                threading.Thread(target=self.answer_dial, args=(dial,), daemon=True).start()
        elif kind == CANCEL:
            self.cancels.append(struct.unpack("I", body)[0])
        elif kind == QUESTION:
            question = Question.from_buffer_copy(body)
            self.questions.append(question)
            fields = self.who if question.kind == WHO else self.may
            if fields is not None:
                self.reply(question, **fields)
        elif kind == MARKED:
            self.marks.append((struct.unpack("I", body)[0], len(self.flows)))
        else:
            raise AssertionError(f"message {kind}")

    def reply(self, question, **fields):
        self.send(self.channel, REPLY, Reply(id=question.id, kind=question.kind, **fields))

    def answer_dial(self, dial):
        found = self.dial_with(dial.host.decode(), dial.port) if self.dial_with else REFUSED
        if isinstance(found, int):
            self.send(self.peer, DIALED, Dialed(id=dial.id, outcome=found))
            return
        self.send(self.peer, DIALED,
                  Dialed(id=dial.id, outcome=DONE, address=Address.of(self.address)), [found])
        found.close()

    @staticmethod
    def send(end, kind, body, ends=()):
        bytes_ = bytes(body)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                   struct.pack(f"{len(ends)}i", *[e.fileno() for e in ends]))] if ends else []
        end.sendmsg([struct.pack("II", kind, len(bytes_)), bytes_], rights)

    def stopped(self, host=None):
        return [f for f in self.flows if f.phase == STOPPED and
                (host is None or f.host.decode() == host)]

    @contextlib.contextmanager
    def deaf(self):
        """Nothing that it says is heard meanwhile, but for one word more."""
        self.ears.clear()
        try:
            yield
        finally:
            self.ears.set()

    def finish(self):
        """The end of the task: what it still had to say has been heard then."""
        self.channel.shutdown(socket.SHUT_WR)
        self.thread.join(10)
        return self.process.wait(timeout=10)

    def close(self):
        self.channel.shutdown(socket.SHUT_RDWR)
        status = self.process.wait(timeout=10)
        self.channel.close()
        self.peer.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=10)


class Origin:
    """The servers that dials lead to: each connection is given to `serve(socket)` in a thread."""

    def __init__(self, serve):
        self.serve, self.received = serve, []

    def __call__(self, host, port):
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        threading.Thread(target=self.run, args=(ours,), daemon=True).start()
        return theirs

    def run(self, end):
        try:
            self.serve(end)
        except OSError:
            pass
        finally:
            end.close()


def look_up(name, kind=1, server=NAMESERVER):
    """The answer's addresses and its code, over UDP."""
    query = struct.pack("!HHHHHH", 4711, 0x100, 1, 0, 0, 0)
    query += b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    query += b"\0" + struct.pack("!HH", kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.connect(server)
        client.send(query)
        return read_answer(client.recv(4096))


def read_answer(packet):
    ident, flags, questions, answers, _, _ = struct.unpack_from("!HHHHHH", packet)
    assert ident == 4711 and flags & 0x8000
    at, addresses = 12, []
    for _ in range(questions):
        while packet[at]:
            at += packet[at] + 1
        at += 5
    for _ in range(answers):
        at += 2
        kind, _, _, length = struct.unpack_from("!HHIH", packet, at)
        at += 10
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        if family:
            addresses.append(socket.inet_ntop(family, packet[at:at + length]))
        at += length
    return addresses, flags & 15


def dial_name(name, port, kind=1, timeout=10):
    addresses, code = look_up(name, kind)
    assert code == 0 and len(addresses) == 1, (name, addresses, code)
    return socket.create_connection((addresses[0], port), timeout=timeout)


def read_all(end, limit=1 << 20):
    pieces = []
    while True:
        piece = end.recv(65536)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        assert sum(map(len, pieces)) <= limit
