"""bawn-dialer alone: what it dials, with resolvers that lie and upstreams that do not answer.

Each denial is asserted on the other side, too: no question at the resolver, no connection.
"""
import array
import os
import re
import select
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from boxed import BAWN
from networks import alone

HERE = os.path.dirname(BAWN)
DIALER, LAB = os.path.join(HERE, "bawn-dialer"), os.path.join(HERE, "bawn-dialer-lab")
LIMIT_S = 30
READY, DIAL, CANCEL, DIALED, TRIED = 1, 2, 3, 4, 5
(DONE, DENIED, SPECIAL, NO_NAME, NO_RESOLVER, REFUSED, UNREACHABLE, TIMEOUT, BUSY,
 CANCELLED) = range(10)
# Of the public network for the rules, and nobody's but the test's.
ONE, OTHER, SIX = "93.184.216.34", "93.184.216.35", "2606:2800:220:1::1"
A, CNAME, AAAA = 1, 5, 28


def name_of(text):
    return b"".join(bytes([len(part)]) + part for part in text.encode().split(b".")) + b"\0"


def record(kind, data, name=b"\xc0\x0c"):
    return name + struct.pack(">HHIH", kind, 1, 60, len(data)) + data


def four(address):
    return record(A, socket.inet_aton(address))


def six(address):
    return record(AAAA, socket.inet_pton(socket.AF_INET6, address))


class Resolver:
    """Answers by `zone`: {name: {type: [records] or a function (id, question, tcp) -> packet}}."""

    def __init__(self, zone, address="127.0.0.1", port=5353):
        self.zone, self.asked, self.streams = zone, [], 0
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((address, port))
        self.tcp = socket.socket()
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.tcp.bind((address, port))
        self.tcp.listen(16)
        for work in (self.datagrams, self.connections):
            threading.Thread(target=work, daemon=True).start()

    def answer(self, query, over_tcp):
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        kind, = struct.unpack(">H", query[at + 1:at + 3])
        name, question = ".".join(labels), query[12:at + 5]
        self.asked.append((name, kind))
        found = self.zone.get(name)
        if found is None:
            return query[:2] + struct.pack(">HHHHH", 0x8183, 1, 0, 0, 0) + question
        records = found.get(kind, [])
        if callable(records):
            return records(query[:2], question, over_tcp)
        return query[:2] + struct.pack(">HHHHH", 0x8180, 1, len(records), 0, 0) + question + \
            b"".join(records)

    def datagrams(self):
        while True:
            query, sender = self.udp.recvfrom(4096)
            packets = self.answer(query, False)
            for packet in packets if isinstance(packets, list) else [packets]:
                if packet:
                    self.udp.sendto(packet, sender)

    def connections(self):
        while True:
            stream, _ = self.tcp.accept()
            self.streams += 1
            with stream:
                length, = struct.unpack(">H", stream.recv(2, socket.MSG_WAITALL))
                packet = self.answer(stream.recv(length, socket.MSG_WAITALL), True)
                # in pieces
                frame = struct.pack(">H", len(packet)) + packet
                stream.sendall(frame[:3])
                time.sleep(0.01)
                stream.sendall(frame[3:])
                stream.recv(1)


class Upstream:
    alive = []

    def __init__(self, *addresses, port=443):
        self.sockets = []
        # listens as long as the process lives, whether it is looked at or not
        self.alive.append(self)
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listener = socket.socket(family)
            listener.bind((address, port))
            listener.listen(512)
            listener.setblocking(False)
            self.sockets.append(listener)

    def count(self):
        found = 0
        for listener in self.sockets:
            while True:
                try:
                    listener.accept()[0].close()
                    found += 1
                except BlockingIOError:
                    break
        return found


def order(*rules, v6=False, resolvers=("127.0.0.1,5353",)):
    words = [LAB, "order"] + (["-6"] if v6 else [])
    for resolver in resolvers:
        words += ["-r", resolver]
    return subprocess.run(words + ["--", *rules], stdout=subprocess.PIPE, check=True,
                          timeout=LIMIT_S).stdout


def read_address(raw):
    family, data = raw[0], raw[1:17]
    if family == 0:
        return None
    return socket.inet_ntop(*((socket.AF_INET, data[:4]) if family == 1 else
                              (socket.AF_INET6, data)))


class Dialer:
    def __init__(self, config, wait=True):
        memfd = os.memfd_create("config")
        os.write(memfd, config)
        os.lseek(memfd, 0, os.SEEK_SET)
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.peer, their_peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        null = os.open("/dev/null", os.O_RDWR)
        high = [os.dup2(fd, 100 + i) for i, fd in
                enumerate([memfd, theirs.fileno(), their_peer.fileno()])]

        def places():
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)

        self.process = subprocess.Popen([DIALER], stdin=null, stdout=null, preexec_fn=places,
                                        pass_fds=(3, 4, 5), env={})
        for fd in (*high, null, memfd):
            os.close(fd)
        theirs.close()
        their_peer.close()
        self.channel.settimeout(LIMIT_S)
        self.peer.settimeout(LIMIT_S)
        if wait:
            assert self.channel.recv(4096) == struct.pack("II", READY, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(LIMIT_S)
        self.peer.close()
        self.channel.close()

    def ask(self, host, port=443, number=1):
        raw = host.encode()
        body = struct.pack("IHHI256s", number, port, 0, len(raw), raw)
        self.peer.send(struct.pack("II", DIAL, len(body)) + body)

    def cancel(self, number):
        self.peer.send(struct.pack("III", CANCEL, 4, number))

    def answer(self):
        """(id, outcome, address, socket)"""
        data, rights, flags, _ = self.peer.recvmsg(4096, socket.CMSG_SPACE(16))
        assert not flags & socket.MSG_CTRUNC
        kind, length = struct.unpack_from("II", data)
        assert kind == DIALED and length == len(data) - 8
        number, outcome = struct.unpack_from("II", data, 8)
        fds = array.array("i")
        for _, _, raw in rights:
            fds.frombytes(raw)
        assert len(fds) == (outcome == DONE)
        return number, outcome, read_address(data[16:33]), \
            socket.socket(fileno=fds[0]) if fds else None

    def tried(self):
        """(id, outcome, port, addresses that the name has, how many were tried, host)"""
        data = self.channel.recv(4096)
        kind, length = struct.unpack_from("II", data)
        assert kind == TRIED and length == len(data) - 8
        number, outcome, port, count, tried = struct.unpack_from("IIHHI", data, 8)
        addresses = [read_address(data[24 + 17 * i:41 + 17 * i]) for i in range(count)]
        return number, outcome, port, addresses, tried, data[-256:].rstrip(b"\0").decode()

    def dial(self, host, port=443):
        self.ask(host, port)
        number, outcome, address, connected = self.answer()
        assert number == 1
        told = self.tried()
        assert told[1] == outcome and told[2] == port and told[5] == host
        if connected:
            connected.close()
        return outcome, address, told[3], told[4]

    def ends(self):
        return self.process.wait(LIMIT_S)


@alone(ONE)
def test_a_name_is_dialled():
    resolver, upstream = Resolver({"a.example": {A: [four(ONE)]}}), Upstream(ONE)
    with Dialer(order("allow,a.example,443")) as dialer:
        dialer.ask("a.example", number=7)
        number, outcome, address, connected = dialer.answer()
        assert (number, outcome, address) == (7, DONE, ONE)
        assert not os.get_blocking(connected.fileno())
        assert connected.getpeername() == (ONE, 443)
        assert dialer.tried() == (7, DONE, 443, [ONE], 1, "a.example")
        assert upstream.count() == 1
        assert resolver.asked == [("a.example", A)]
        # it keeps no end of it
        connected.close()
        time.sleep(0.05)
        fds = {os.readlink(f"/proc/{dialer.process.pid}/fd/{fd}")
               for fd in os.listdir(f"/proc/{dialer.process.pid}/fd")} \
            if os.geteuid() == 0 else set()
        assert len([fd for fd in fds if fd.startswith("socket:")]) in (0, 2)


def spent_ns(process):
    with open(f"/proc/{process.pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


@alone(ONE, OTHER)
def test_what_was_handed_over_wakes_nobody():
    """The proxy holds the connection, which stays writable: the dialer must not hear of that."""
    upstreams = [Upstream(ONE), Upstream(OTHER)]
    with Dialer(order(f"allow,{ONE},443", f"allow,{OTHER},443")) as dialer:
        held = []
        for number in range(1, 9):
            dialer.ask((ONE, OTHER)[number % 2], number=number)
            held.append(dialer.answer()[3])
            assert held[-1]
        before, end = spent_ns(dialer.process), time.monotonic() + 0.3
        while time.monotonic() < end:
            time.sleep(0.02)
            assert spent_ns(dialer.process) - before < 20e6
        assert sum(upstream.count() for upstream in upstreams) == 8


@alone(ONE)
def test_what_answers_later_wakes_nobody_either():
    """The same where the connection was waited for: a full backlog drops the first packet."""
    listener = socket.create_server((ONE, 443), backlog=0)
    ahead = socket.create_connection((ONE, 443))
    with Dialer(order(f"allow,{ONE},443")) as dialer:
        dialer.ask(ONE)
        assert not select.select([dialer.peer], [], [], 0.1)[0]
        listener.accept()[0].close()
        ahead.close()
        number, outcome, _, held = dialer.answer()
        assert (number, outcome) == (1, DONE) and held
        before, end = spent_ns(dialer.process), time.monotonic() + 0.3
        while time.monotonic() < end:
            time.sleep(0.02)
            assert spent_ns(dialer.process) - before < 20e6


@alone(ONE)
def test_what_is_denied_is_not_asked_for():
    resolver, upstream = Resolver({"b.example": {A: [four(ONE)]}}), Upstream(ONE)
    with Dialer(order("allow,a.example,443", "deny,c.example,443",
                      "allow,c.example,443")) as dialer:
        for host, port in (("b.example", 443), ("a.example", 22), ("c.example", 443),
                           (ONE, 443), ("localhost", 443), ("metadata.google.internal", 443),
                           ("169.254.169.254", 443), ("127.0.0.1", 5353)):
            assert dialer.dial(host, port) == (DENIED, None, [], 0)
    assert not resolver.asked and not upstream.count()


@alone(ONE, "10.0.0.1")
def test_addresses_that_no_rule_names_are_not_dialled():
    special = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "100.100.100.200", "192.168.1.1",
               "172.16.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "198.18.0.1"]
    zone = {f"n{i}.example": {A: [four(address)]} for i, address in enumerate(special)}
    zone["mixed.example"] = {A: [four(ONE), four("10.0.0.1")]}
    zone["alias.example"] = {A: [record(CNAME, name_of("in.example")),
                                 record(A, socket.inet_aton("10.0.0.1"), name_of("in.example"))]}
    for i, address in enumerate(["::1", "fd00:ec2::254", "::ffff:10.0.0.1", "64:ff9b::a00:1"]):
        zone[f"s{i}.example"] = {A: [four(ONE)], AAAA: [six(address)]}
    Resolver(zone)
    upstream = Upstream(ONE, "10.0.0.1")
    with Dialer(order(*(f"allow,{name},443" for name in list(zone)[:8]), v6=True)) as dialer:
        for name in list(zone)[:8]:
            outcome, address, addresses, tried = dialer.dial(name)
            assert outcome == SPECIAL and address in addresses and tried == 0
    with Dialer(order(*(f"allow,{name},443" for name in list(zone)[8:]), v6=True)) as dialer:
        for name in list(zone)[8:]:
            outcome, address, addresses, tried = dialer.dial(name)
            assert outcome == SPECIAL and address in addresses and tried == 0
    assert not upstream.count()


@alone("10.0.0.1")
def test_a_rule_can_open_a_private_service():
    Resolver({"a.example": {A: [four("10.0.0.1")]}})
    upstream = Upstream("10.0.0.1")
    with Dialer(order("allow,a.example,443,private", "allow,10.0.0.1,443")) as dialer:
        assert dialer.dial("a.example") == (DONE, "10.0.0.1", ["10.0.0.1"], 1)
        assert dialer.dial("10.0.0.1") == (DONE, "10.0.0.1", ["10.0.0.1"], 1)
        assert dialer.dial("10.0.0.1", 80)[0] == DENIED
    assert upstream.count() == 2


def other_id(identity, question, _):
    return bytes(2 * [identity[0] ^ 1]) + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0) + question + \
        four("93.184.216.99")


@alone(ONE)
def test_lies_are_passed_over():
    """A forged answer before the right one, one for another name, another type; then the truth."""
    def lies(identity, question, _):
        right = identity + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0) + question + four(ONE)
        other = name_of("b.example") + question[-4:]
        return [other_id(identity, question, False), b"", b"x", question,
                identity + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0) + other + four("10.0.0.1"),
                identity + struct.pack(">HHHHH", 0x0180, 1, 1, 0, 0) + question, right]

    Resolver({"a.example": {A: lies}})
    Upstream(ONE)
    with Dialer(order("allow,a.example,443")) as dialer:
        assert dialer.dial("a.example") == (DONE, ONE, [ONE], 1)


@alone(ONE)
def test_answers_that_make_no_sense():
    """Malformed ones, loops and failures: asked again, and then no resolver."""
    head = struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0)
    zone = {
        "loop.example": {A: lambda i, q, _: i + head + q + b"\xc0" + bytes([12 + len(q)]) + b"x"},
        "cut.example": {A: lambda i, q, _: i + head + q + four(ONE)[:-1]},
        "long.example": {A: lambda i, q, _: i + head + q + four(ONE) + b"x"},
        "fail.example": {A: lambda i, q, _: i + struct.pack(">HHHHH", 0x8182, 1, 0, 0, 0) + q},
        "no.example": {A: lambda i, q, _: i + struct.pack(">HHHHH", 0x8185, 1, 0, 0, 0) + q},
        "ring.example": {A: [record(CNAME, b"\xc0\x0c")]},
    }
    resolver = Resolver(zone)
    with Dialer(order(*(f"allow,{name},443" for name in zone))) as dialer:
        for name in zone:
            assert dialer.dial(name) == (NO_RESOLVER, None, [], 0)
            assert resolver.asked.count((name, A)) == 2


@alone(ONE)
def test_names_that_are_not_there():
    resolver = Resolver({"empty.example": {}, "half.example": {A: [four(ONE)]}})
    Upstream(ONE)
    with Dialer(order("allow,none.example,443", "allow,empty.example,443",
                      "allow,half.example,443", v6=True)) as dialer:
        assert dialer.dial("none.example")[0] == NO_NAME
        assert dialer.dial("empty.example")[0] == NO_NAME
        assert dialer.dial("half.example") == (DONE, ONE, [ONE], 1)
        assert set(resolver.asked[-2:]) == {("half.example", A), ("half.example", AAAA)}


@alone(ONE)
def test_no_such_name_of_one_type_is_no_word_on_the_other():
    """As of load balancers that know nothing of version 6 (RFC 4074, section 4.2)."""
    def none(identity, question, _):
        return identity + struct.pack(">HHHHH", 0x8183, 1, 0, 0, 0) + question

    Resolver({"a.example": {A: [four(ONE)], AAAA: none}, "b.example": {A: none, AAAA: none}})
    Upstream(ONE)
    with Dialer(order("allow,a.example,443", "allow,b.example,443", v6=True)) as dialer:
        for _ in range(5):
            assert dialer.dial("a.example") == (DONE, ONE, [ONE], 1)
        assert dialer.dial("b.example")[0] == NO_NAME


@alone(ONE)
def test_a_cut_answer_is_asked_for_over_tcp():
    many = [four(f"93.184.216.{i}") for i in range(30)]

    def cut(identity, question, over_tcp):
        if over_tcp:
            return identity + struct.pack(">HHHHH", 0x8180, 1, 31, 0, 0) + question + \
                four(ONE) + b"".join(many)
        return identity + struct.pack(">HHHHH", 0x8380, 1, 0, 0, 0) + question

    resolver = Resolver({"a.example": {A: cut}})
    Upstream(ONE)
    with Dialer(order("allow,a.example,443")) as dialer:
        outcome, address, addresses, _ = dialer.dial("a.example")
        assert (outcome, address, len(addresses), resolver.streams) == (DONE, ONE, 31, 1)


@alone(ONE)
def test_more_addresses_than_are_looked_at():
    Resolver({"a.example": {A: [four(f"93.184.216.{i}") for i in range(33)]}})
    upstream = Upstream(ONE)
    with Dialer(order("allow,a.example,443")) as dialer:
        assert dialer.dial("a.example")[0] == NO_NAME
    assert not upstream.count()


@alone(ONE)
def test_resolvers_that_are_silent_or_gone():
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 5353))
    Upstream(ONE)
    with Dialer(order("allow,a.example,443")) as dialer:
        begun = time.monotonic()
        assert dialer.dial("a.example")[0] == NO_RESOLVER
        assert 4 < time.monotonic() - begun < 8
    # two questions, with two ids from two ports
    questions = [silent.recvfrom(4096, socket.MSG_DONTWAIT) for _ in range(2)]
    assert questions[0][0][:2] != questions[1][0][:2]
    assert questions[0][1] != questions[1][1]
    # nobody listens at the first: the second answers at once
    Resolver({"a.example": {A: [four(ONE)]}}, port=5355)
    with Dialer(order("allow,a.example,443",
                      resolvers=("127.0.0.1,5354", "127.0.0.1,5355"))) as dialer:
        begun = time.monotonic()
        assert dialer.dial("a.example")[0] == DONE
        assert time.monotonic() - begun < 2
    with Dialer(order("allow,a.example,443", resolvers=())) as dialer:
        assert dialer.dial("a.example")[0] == NO_RESOLVER


@alone(ONE, OTHER, SIX)
def test_the_next_address_is_tried():
    Resolver({"a.example": {A: [four(OTHER), four(ONE)], AAAA: [six(SIX)]}})
    Upstream(ONE)
    with Dialer(order("allow,a.example,443", v6=True)) as dialer:
        # nobody listens at the first two
        assert dialer.dial("a.example") == (DONE, ONE, [SIX, OTHER, ONE], 3)
    with Dialer(order("allow,a.example,80", v6=True)) as dialer:
        assert dialer.dial("a.example", 80)[0] == REFUSED
    with Dialer(order("allow,93.184.216.99,443")) as dialer:
        # no route there
        assert dialer.dial("93.184.216.99")[0] == UNREACHABLE


@alone(ONE, OTHER)
def test_one_that_does_not_answer_holds_nobody_up():
    """A listener with a full queue drops what comes; the next is tried after 250 ms."""
    full = socket.socket()
    full.bind((OTHER, 443))
    full.listen(0)
    filling = [socket.socket() for _ in range(4)]
    for one in filling:
        one.setblocking(False)
        one.connect_ex((OTHER, 443))
    Resolver({"a.example": {A: [four(OTHER), four(ONE)]}, "b.example": {A: [four(OTHER)]}})
    Upstream(ONE)
    with Dialer(order("allow,a.example,443", "allow,b.example,443")) as dialer:
        begun = time.monotonic()
        assert dialer.dial("a.example") == (DONE, ONE, [OTHER, ONE], 2)
        assert 0.2 < time.monotonic() - begun < 3
        # a dial that is cancelled is told, and not answered
        dialer.ask("b.example", number=1)
        while select.select([dialer.channel], [], [], 0.3)[0]:
            dialer.tried()
        dialer.cancel(1)
        assert dialer.tried()[:2] == (1, CANCELLED)
        assert not select.select([dialer.peer], [], [], 0.1)[0]
        dialer.cancel(1)
        begun = time.monotonic()
        assert dialer.dial("b.example")[0] == TIMEOUT
        assert 9 < time.monotonic() - begun < 15


@alone(ONE)
def test_dials_at_once_are_counted():
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 5353))
    with Dialer(order("allow,a.example,443")) as dialer:
        for number in range(257):
            dialer.ask("a.example", number=number)
        assert dialer.answer()[:2] == (256, BUSY)
        dialer.cancel(5)
        assert dialer.tried()[:2] == (5, CANCELLED)
        dialer.ask("a.example", number=300)
        assert not select.select([dialer.peer], [], [], 0.2)[0]


def message(kind, body):
    return struct.pack("II", kind, len(body)) + body


def dial_body(host=b"a.example", length=None, port=443, reserved=0):
    return struct.pack("IHHI256s", 9, port, reserved, len(host) if length is None else length, host)


@pytest.mark.parametrize("packet", [
    b"x", message(DIAL, b""), message(DIAL, dial_body() + b"x"), message(DIALED, b"\0" * 56),
    message(77, b""), message(READY, b""), message(CANCEL, b"123"),
    message(DIAL, dial_body(port=0)), message(DIAL, dial_body(reserved=1)),
    message(DIAL, dial_body(length=0)), message(DIAL, dial_body(length=8)),
    message(DIAL, dial_body(length=300)), message(DIAL, dial_body(b"A.example")),
    message(DIAL, dial_body(b"a.example.")), message(DIAL, dial_body(b"a\0b", 3)),
    message(DIAL, dial_body(b"[::1]")), message(DIAL, dial_body(b"2130706433")),
])
def test_a_message_that_is_none_ends_it(packet):
    with Dialer(order("allow,a.example,443")) as dialer:
        dialer.peer.send(packet)
        assert dialer.ends() > 0


def test_edges_that_close_end_it():
    for name in ("peer", "channel"):
        with Dialer(order("allow,a.example,443")) as dialer:
            getattr(dialer, name).close()
            assert dialer.ends() == 0
    # the supervisor has nothing to say, and a proxy no descriptors
    with Dialer(order("allow,a.example,443")) as dialer:
        dialer.channel.send(message(READY, b""))
        assert dialer.ends() == 0
    with Dialer(order("allow,a.example,443")) as dialer:
        socket.send_fds(dialer.peer, [message(DIAL, dial_body())], [0])
        assert dialer.ends() > 0


def test_orders_that_are_none():
    good = order("allow,a.example,443")
    for config in (b"", good[:20], good[:-1], good + b"x", b"\2" + good[1:],
                   good[:4] + b"\xff" + good[5:], good[:8] + b"\4" + good[9:],
                   good[:76] + b"\xff" * 8 + good[84:]):
        with Dialer(config, wait=False) as dialer:
            assert dialer.ends() > 0


# What each role is refused without a signal, and what it is there for.
REFUSED_TO = {"dialer": {"path", "limits"}, "proxy": set()}
ALLOWED_TO = {"dialer": {"connect", "socket", "datagrams"}, "proxy": set()}


@pytest.mark.parametrize("role", ["dialer", "proxy"])
def test_one_that_was_taken_over_reaches_nothing(role):
    """What is tried by a role that does what it wants, in the jail of the real one."""
    def act(name):
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with pair[0], pair[1]:
            os.dup2(pair[0].fileno(), 105)

            def places():
                os.dup2(105, 5)

            result = subprocess.run([LAB, "try", role, name], timeout=LIMIT_S,
                                    preexec_fn=places, pass_fds=(5,), check=False).returncode
            os.close(105)
            return result

    acts = subprocess.run([LAB, "acts"], capture_output=True, text=True, check=True,
                          timeout=LIMIT_S).stdout.split()
    assert len(acts) > 40
    for name in acts:
        # hosts the dialer reaches: its own rules are all that keeps it from any (net/dialer.h)
        expected = 0 if name in ALLOWED_TO[role] else 1 if name in REFUSED_TO[role] else \
            -signal.SIGSYS
        assert act(name) == expected, (role, name)


@alone(ONE)
def test_it_is_small_and_quick():
    Resolver({"a.example": {A: [four(ONE)]}})
    Upstream(ONE)
    with Dialer(order("allow,a.example,443", f"allow,{ONE},443")) as dialer:
        for _ in range(50):
            dialer.dial(ONE)
        ticks = 0
        with open(f"/proc/{dialer.process.pid}/stat", encoding="ascii") as file:
            ticks = sum(int(word) for word in file.read().rsplit(")", 1)[1].split()[11:13])
        assert ticks < 20
        if os.geteuid() == 0:
            with open(f"/proc/{dialer.process.pid}/smaps_rollup", encoding="ascii") as file:
                pss = int(re.search(r"^Pss:\s+(\d+) kB", file.read(), re.M).group(1))
            print(f"PSS of a dialer: {pss} kB")
            assert pss < 1024
