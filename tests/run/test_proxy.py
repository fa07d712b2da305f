"""bawn-proxy by itself: every door, every refusal, and what reaches the upstream (and what not)."""
import contextlib
import json
import os
import resource
import signal
import socket
import ssl
import struct
import threading
import time

import pytest

from network import (ALLOW, ASK, BUSY, CLOSED, DENIED, DENY, DOOR, MARK, MAY, NAMESERVER, NO_NAME,
                     OPENED, REFUSED, SPECIAL, TIMEOUT, WHO, Origin, Proxy, dial_name, in_network,
                     look_up, read_all, read_answer, until)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
REQUEST = b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n"


def web(end):
    """Answers each request head with OK, and keeps the connection."""
    waiting = b""
    while True:
        piece = end.recv(65536)
        if not piece:
            return
        waiting += piece
        while b"\r\n\r\n" in waiting:
            head, waiting = waiting.split(b"\r\n\r\n", 1)
            heads.append(head)
            end.sendall(OK)


heads = []


def door():
    return socket.create_connection(DOOR, timeout=10)


def exchange(end, request):
    end.sendall(request)
    return read_all(end)


def reset_of(address):
    with pytest.raises(ConnectionResetError):
        end = socket.create_connection(address, timeout=10)
        end.sendall(b"x")
        if not end.recv(1):
            end.sendall(b"y")
            raise AssertionError("closed, not reset")


def raise_files(least):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    assert hard >= least, "too few descriptors for this test"


# ---- captured connections

@in_network
def test_request_by_name():
    with Proxy("allow,good.example,port=80", dial=Origin(web)) as proxy:
        end = dial_name("GOOD.Example", 80)
        end.sendall(b"GET /a?b=c HTTP/1.1\r\nhost:   Good.Example.  \r\nConnection: x-hop\r\n"
                    b"X-Hop: 1\r\nX-End: 2\r\nProxy-Authorization: secret\r\n\r\n")
        assert end.recv(4096) == OK
        end.close()
        assert proxy.dials == [("good.example", 80)]
        lines = heads[-1].split(b"\r\n")
        assert lines[0] == b"GET /a?b=c HTTP/1.1"
        assert b"Host: good.example" in lines and b"X-End: 2" in lines
        assert not any(line.lower().startswith((b"x-hop", b"proxy-")) for line in lines)
        opened, closed = until(lambda: proxy.flows[1:] and proxy.flows[:2])
        assert (opened.phase, closed.phase) == (OPENED, CLOSED)
        assert (closed.status, closed.method, closed.path) == (200, b"GET", b"/a?b=c")
        assert closed.bytes_down == len(OK) and closed.verdict == ALLOW
        assert str(closed.address) == "93.184.216.34"


@in_network
def test_both_families_and_kept_connections():
    with Proxy("allow,good.example,port=80", dial=Origin(web)) as proxy:
        for kind in (1, 28):
            with dial_name("good.example", 80, kind) as end:
                for _ in range(3):
                    end.sendall(REQUEST)
                    assert end.recv(4096) == OK
        assert len(proxy.dials) == 2
        until(lambda: len(proxy.flows) == 12)
        assert [f.request for f in proxy.flows if f.phase == CLOSED] == [0, 1, 2] * 2


@in_network
def test_denied_name_is_told_in_http():
    with Proxy("allow,good.example", dial=Origin(web)) as proxy:
        answer = exchange(dial_name("evil.example", 80),
                          b"GET /leak HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        head, body = answer.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 403 ") and b"Connection: close" in head
        told = json.loads(body)
        assert told["error"] == "denied" and told["target"] == "evil.example:80"
        assert told["rule"]["id"].startswith("egress.")
        assert not proxy.dials
        flow = until(lambda: [f for f in proxy.stopped("evil.example") if f.door == 0])[0]
        assert flow.verdict == DENY and flow.path == b"/leak"


@in_network
def test_denied_literal_and_free_addresses_are_reset():
    with Proxy("allow,good.example", "allow,198.51.100.7/32,port=80", dial=Origin(web)) as proxy:
        for address in (("192.0.2.1", 443), ("198.51.100.7", 81), ("169.254.169.254", 80),
                        ("198.18.77.77", 80), ("198.18.255.252", 80), ("198.18.255.253", 80),
                        ("2001:db8::1", 443), ("fd77::1:2:3", 80), ("10.0.0.1", 22)):
            reset_of(address)
        assert not proxy.dials
        with socket.create_connection(("198.51.100.7", 80), timeout=10) as end:
            end.sendall(b"GET / HTTP/1.1\r\nHost: 198.51.100.7\r\n\r\n")
            assert end.recv(4096) == OK
        assert proxy.dials == [("198.51.100.7", 80)]


@in_network
def test_silence_where_nothing_is_allowed():
    with Proxy("allow,good.example", dial=Origin(web)) as proxy:
        end = dial_name("evil.example", 22)
        began = time.monotonic()
        with pytest.raises(ConnectionResetError):
            end.recv(1)
        assert time.monotonic() - began < 3
        assert not proxy.dials


@in_network
def test_server_first():
    def greet(end):
        end.sendall(b"220 hello\r\n")
        assert end.recv(100) == b"QUIT\r\n"
        end.sendall(b"221 bye\r\n")

    with Proxy("allow,mail.example,port=25,protocol=tcp", dial=Origin(greet)):
        with dial_name("mail.example", 25) as end:
            assert end.recv(100) == b"220 hello\r\n"
            end.sendall(b"QUIT\r\n")
            assert read_all(end) == b"221 bye\r\n"


@in_network
def test_other_bytes_need_a_rule():
    with Proxy("allow,good.example", dial=Origin(web)) as proxy:
        for first in (b"\x00\x01\x02\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"EHLO x\r\n"):
            end = dial_name("good.example", 443)
            end.sendall(first)
            try:
                assert b"200" not in read_all(end)
            except ConnectionResetError:
                pass
        until(lambda: len(proxy.stopped("good.example")) == 3)
        assert all(f.verdict == DENY for f in proxy.stopped())
    assert not heads or heads[-1][:3] not in (b"\x00\x01\x02", b"PRI", b"EHL")


def echo_of(received):
    def serve(end):
        while True:
            piece = end.recv(65536)
            if not piece:
                return
            received.append(piece)
            end.sendall(b"got " + piece)
    return serve


UPGRADE = (b"GET /ws HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade\r\nUpgrade: websocket"
           b"\r\n\r\n")
BARE = b"GET / HTTP/1.1\nHost: good.example\n\n"


@in_network
def test_any_bytes_are_not_looked_at():
    """Where a rule takes tcp all of it goes through as it is, unless another rule has to look."""
    tcp, received = "allow,good.example,port=80,protocol=tcp", []
    odd = [UPGRADE, BARE, b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
           hello("good.example"), hello("another.example"), hello(None)]
    with Proxy(tcp, "deny,evil.example", dial=Origin(echo_of(received))) as proxy:
        for bytes_ in odd:
            with dial_name("good.example", 80) as end:
                end.sendall(bytes_)
                assert end.recv(65536) == b"got " + bytes_, bytes_
        assert received == odd
        # a denial of the name that it gives away holds all the same
        assert alert_of(dial_name("good.example", 80), hello("evil.example")) == 49
        assert len(received) == len(odd)
        assert {flow.method for flow in proxy.flows} == {b""}
    received.clear()
    with Proxy(tcp, "deny,good.example,port=80,protocol=http,method=POST",
               dial=Origin(echo_of(received))):
        assert b" 400 " in exchange(dial_name("good.example", 80), BARE)
        assert status_of(dial_name("good.example", 80), b"POST /") == 403
        reset_of_bytes(dial_name("good.example", 80), b"\x00POST / HTTP/1.1\r\n\r\n")
        assert not received
        with dial_name("good.example", 80) as end:
            end.sendall(UPGRADE)
            until(lambda: received)
        assert b"pgrade" not in received[0]
    received.clear()
    # nor does the rule that opens its address see less of it
    with Proxy(tcp, "allow,good.example,port=80,protocol=http,private,method=GET,path=/ok",
               dial=Origin(echo_of(received)), address="10.1.2.3"):
        assert status_of(dial_name("good.example", 80), b"POST /ok") == 403
        reset_of_bytes(dial_name("good.example", 80), b"\x00GET /ok HTTP/1.1\r\n\r\n")
        assert not received


def reset_of_bytes(end, bytes_):
    end.sendall(bytes_)
    with pytest.raises(ConnectionResetError):
        assert not end.recv(1)
        raise AssertionError("closed, not reset")


@in_network
def test_ssh_by_name():
    def server(end):
        assert end.recv(100) == b"SSH-2.0-client\r\n"
        end.sendall(b"SSH-2.0-server\r\n")

    with Proxy("allow,git.example,port=22,protocol=ssh", dial=Origin(server)):
        with dial_name("git.example", 22) as end:
            end.sendall(b"SSH-2.0-client\r\n")
            assert read_all(end) == b"SSH-2.0-server\r\n"


# ---- TLS

def hello(name, alpn=None):
    context = ssl.create_default_context()
    context.check_hostname = False
    if alpn:
        context.set_alpn_protocols(alpn)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def alert_of(end, bytes_):
    end.sendall(bytes_)
    answer = read_all(end)
    assert answer[:3] == b"\x15\x03\x03" or answer[:2] == b"\x15\x03", answer
    return answer[-1]


@in_network
def test_tls_passes_byte_for_byte():
    got = []

    def server(end):
        got.append(end.recv(65536))
        end.sendall(b"server-bytes")

    with Proxy("allow,good.example,port=443", dial=Origin(server)) as proxy:
        for first in (hello("good.example"), hello("GOOD.example", ["h2"]),
                      hello("good.example", ["http/1.1"])):
            with dial_name("good.example", 443) as end:
                for i in range(len(first)):  # every byte by itself
                    end.sendall(first[i:i + 1])
                end.shutdown(socket.SHUT_WR)
                assert read_all(end) == b"server-bytes"
            assert got[-1][:3] == first[:3]
        assert len(proxy.dials) == 3


@in_network
def test_tls_with_another_name():
    got = []

    def server(end):
        got.append(end.recv(65536))

    with Proxy("allow,good.example", "allow,*.cdn.example", dial=Origin(server)) as proxy:
        for name in ("evil.example", None, "a.cdn.example"):
            assert alert_of(dial_name("good.example", 443), hello(name)) == 49
        assert alert_of(dial_name("evil.example", 443), hello("evil.example")) == 49
        assert {f.verdict for f in proxy.stopped("good.example")} == {DENY}
        # by a door it is the same
        end = door()
        end.sendall(b"CONNECT good.example:443 HTTP/1.1\r\nHost: good.example:443\r\n\r\n")
        assert b" 200 " in end.recv(4096)
        assert alert_of(end, hello("evil.example")) == 49
    time.sleep(0.1)
    assert not any(got), "not one byte may reach the upstream"


# ---- the door

@in_network
def test_connect():
    with Proxy("allow,good.example", dial=Origin(web)) as proxy:
        with door() as end:
            end.sendall(b"CONNECT good.example:80 HTTP/1.1\r\nHost: good.example:80\r\n\r\n")
            assert end.recv(4096).startswith(b"HTTP/1.1 200 ")
            end.sendall(REQUEST)
            assert end.recv(4096) == OK
        answer = exchange(door(), b"CONNECT evil.example:443 HTTP/1.1\r\n"
                                  b"Host: evil.example:443\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 ") and b"Proxy-Status: bawn" in answer
        assert proxy.dials == [("good.example", 80)]
        # what is inside has to name the same host
        with door() as end:
            end.sendall(b"CONNECT good.example:80 HTTP/1.1\r\nHost: good.example:80\r\n\r\n")
            end.recv(4096)
            assert b" 403 " in exchange(end, b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")


HOSTILE_HEADS = [
    b"CONNECT good.example@evil.example:443 HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"CONNECT evil.example\\@good.example:443 HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"CONNECT good.example:443\0 HTTP/1.1\r\nHost: good.example:443\r\n\r\n",
    b"CONNECT good.example:0x1bb HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"CONNECT good.example HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"CONNECT 2130706433:80 HTTP/1.1\r\nHost: 2130706433:80\r\n\r\n",
    b"CONNECT 0x7f.1:80 HTTP/1.1\r\nHost: 0x7f.1:80\r\n\r\n",
    b"CONNECT 127.1:80 HTTP/1.1\r\nHost: 127.1:80\r\n\r\n",
    b"CONNECT [::1%lo]:80 HTTP/1.1\r\nHost: [::1%lo]:80\r\n\r\n",
    b"CONNECT 127.0.0.1:3128 HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n",
    b"CONNECT 198.18.255.253:3128 HTTP/1.1\r\nHost: 198.18.255.253:3128\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"GET http://good.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"GET ftp://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nContent-Length: 3\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nContent-Length: 3\r\n"
    b"Content-Length: 4\r\n\r\nabcd",
    b"GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nHost: evil.example\r\n\r\n",
    b"GET http://good.example/ HTTP/1.1\nHost: good.example\n\n",
    b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00",
    b"\x05\x01\x00" + b"\x05\x02\x00\x03\x0cgood.example\x00\x50",
    b"\x05\x01\x00" + b"\x05\x03\x00\x03\x0cgood.example\x00\x50",
    b"\x05\x01\x00" + b"\x05\x01\x00\x03\x15evil.example\0.example\x00\x50",
    b"\x05\x01\x00" + b"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50",
    b"A" * 70000 + b"\r\n\r\n",
]


@in_network
def test_hostile_words_at_the_door():
    # what a path means is asked where a rule goes by it
    with Proxy("allow,good.example,path=/**", dial=Origin(web)) as proxy:
        for request in HOSTILE_HEADS:
            end = door()
            try:
                answer = exchange(end, request)
            except (ConnectionResetError, BrokenPipeError):
                answer = b""
            assert b" 200 " not in answer and answer[2:4] != b"\x05\x00", request
            assert proxy.process.poll() is None
        assert not proxy.dials, proxy.dials
        assert not [f for f in proxy.flows if f.phase == OPENED]


@in_network
def test_absolute_targets_and_socks():
    with Proxy("allow,good.example", "allow,fine.example", dial=Origin(web)) as proxy:
        with door() as end:
            for host in (b"good.example", b"good.example", b"fine.example", b"good.example"):
                end.sendall(b"GET http://" + host + b"/x HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
                assert end.recv(4096) == OK
                assert heads[-1].startswith(b"GET /x HTTP/1.1\r\n")
        assert [host for host, _ in proxy.dials] == ["good.example", "fine.example", "good.example"]
        with door() as end:
            end.sendall(b"\x05\x02\x00\x02")
            assert end.recv(2) == b"\x05\x00"
            end.sendall(b"\x05\x01\x00\x03\x0cgood.example\x00\x50")
            assert end.recv(10)[:2] == b"\x05\x00"
            end.sendall(REQUEST)
            assert end.recv(4096) == OK
        with door() as end:
            end.sendall(b"\x05\x01\x00")
            assert end.recv(2) == b"\x05\x00"
            end.sendall(b"\x05\x01\x00\x03\x0cevil.example\x00\x50")
            assert end.recv(10)[:2] == b"\x05\x02"


# ---- requests on one connection

@in_network
def test_each_request_is_judged():
    with Proxy("allow,good.example,port=80", dial=Origin(web)) as proxy:
        end = dial_name("good.example", 80)
        end.sendall(REQUEST + b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n" + REQUEST)
        answer = read_all(end)
        assert answer.startswith(OK) and answer.count(b"HTTP/1.1 ") == 2 and b" 403 " in answer
        assert sum(b"evil" in head for head in heads) == 0 and len(heads) == 1
        assert len(proxy.dials) == 1


@in_network
def test_an_early_answer_leaves_no_way_in():
    """What waits of a body is never overtaken by the next head, which would be read as its end."""
    got = []

    def server(end):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = b""
        while b"\r\n\r\n" not in head:
            head += end.recv(200)
        end.sendall(OK)  # and the body is not read yet
        time.sleep(0.4)
        pieces = [head]
        end.settimeout(1)
        try:
            while pieces[-1]:
                pieces.append(end.recv(65536))
        except OSError:
            pass
        got.append(b"".join(pieces))

    hidden = b"DELETE /secret HTTP/1.1\r\nHost: good.example\r\n\r\n"
    with Proxy("allow,good.example,port=80,protocol=http,method=POST,method=GET",
               dial=Origin(server)):
        # more than the server's socket takes, and less than that and a pipe
        for size in range(240 * 1024, 520 * 1024, 40 * 1024):
            got.clear()
            end = dial_name("good.example", 80)
            body = b"x" * (size - len(hidden)) + hidden
            end.sendall(b"POST /a HTTP/1.1\r\nHost: good.example\r\n"
                        b"Content-Length: %d\r\n\r\n" % size + body)
            assert end.recv(4096).startswith(b"HTTP/1.1 200")
            try:
                end.sendall(REQUEST)
                end.settimeout(3)
                end.recv(4096)
            except OSError:
                pass
            end.close()
            first = until(lambda: [one for one in got if one[:4] == b"POST"])[0]
            sent = first.split(b"\r\n\r\n", 1)[1]
            # as much as came of it is its beginning: nothing else came in between
            assert body.startswith(sent[:size]), (size, sent[-200:])


@in_network
def test_quota_of_bytes_holds_for_requests():
    with Proxy("allow,good.example,port=80,up=1000", dial=Origin(web)) as proxy:
        for _ in range(20):
            exchange(dial_name("good.example", 80), b"GET /" + b"a" * 200 +
                     b" HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n\r\n")
        assert sum(map(len, heads)) <= 1000
        assert proxy.stopped()[-1].reason == b"the quota of bytes is used up"
    # bytes that came with the head, and all of them at once, are counted before they go on
    for body in (b"Content-Length: 5000\r\n\r\n" + bytes(5000),
                 b"Transfer-Encoding: chunked\r\n\r\n" + 50 * (b"64\r\n" + bytes(100) + b"\r\n")
                 + b"0\r\n\r\n"):
        got = []

        def swallow(end, got=got):
            with contextlib.suppress(OSError):
                while data := end.recv(65536):
                    got.append(data)
            got.append(None)

        with Proxy("allow,good.example,port=80,up=1000", dial=Origin(swallow)):
            exchange(dial_name("good.example", 80),
                     b"POST / HTTP/1.1\r\nHost: good.example\r\n" + body)
            until(lambda got=got: None in got)
            assert sum(map(len, got[:-1])) <= 1000, got

    def generous(end):
        end.recv(4096)
        end.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + 50 * (b"64\r\n" + bytes(100) + b"\r\n") + b"0\r\n\r\n")

    with Proxy("allow,good.example,port=80,down=1000", dial=Origin(generous)):
        end, got = dial_name("good.example", 80), b""
        end.sendall(REQUEST)
        with contextlib.suppress(ConnectionResetError):
            while data := end.recv(65536):
                got += data
        assert len(got) <= 1000, len(got)
    with Proxy("allow,good.example,port=80,pace=20000", dial=Origin(web)):
        end = dial_name("good.example", 80)
        began = time.monotonic()
        end.sendall(b"POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 60000\r\n\r\n" +
                    bytes(60000))
        assert end.recv(4096)
        until(lambda: time.monotonic() - began > 0.1)


@in_network
def test_methods_and_paths():
    with Proxy("allow,good.example,port=80,protocol=http,method=GET,path=/api/**",
               dial=Origin(web)) as proxy:
        for line, status in ((b"GET /api/x", b" 200 "), (b"POST /api/x", b" 403 "),
                             (b"GET /other", b" 403 "), (b"GET /api/%2e%2e/other", b" 400 "),
                             (b"GET /api//x", b" 400 "), (b"GET /apix", b" 403 ")):
            end = dial_name("good.example", 80)
            body = b"Content-Length: 0\r\n" if line.startswith(b"POST") else b""
            end.sendall(line + b" HTTP/1.1\r\nHost: good.example\r\n" + body +
                        b"Connection: close\r\n\r\n")
            assert status in read_all(end), line
        # nor is there a way by where a copy goes
        end = dial_name("good.example", 80)
        end.sendall(b"GET /api/x HTTP/1.1\r\nHost: good.example\r\nDestination: /other\r\n\r\n")
        assert b" 403 " in read_all(end)
        assert [head.split(b" HTTP")[0] for head in heads] == [b"GET /api/x"]
        # TLS hides what the rule has to see
        assert alert_of(dial_name("good.example", 80), hello("good.example")) == 49
        assert proxy.process.poll() is None


SPECIAL_WHY = b"an address of this name is not of the public network, or a rule denies it"
WIDE = "allow,*.example,port=80,protocol=http,method=GET,method=POST"


def status_of(end, line):
    body = b"Content-Length: 0\r\n" if line.startswith(b"POST") else b""
    end.sendall(line + b" HTTP/1.1\r\nHost: good.example\r\n" + body + b"\r\n")
    return int(end.recv(4096).split()[1])


@pytest.mark.parametrize("narrow", ["allow,good.example,private", "allow,10.1.2.3/32"])
@in_network
def test_a_private_service_is_open_as_far_as_its_rule_goes(narrow):
    """What a wider rule allows of its name does not reach it, on a kept connection either."""
    with Proxy(WIDE, narrow + ",port=80,protocol=http,method=GET,path=/ok", dial=Origin(web),
               address="10.1.2.3") as proxy:
        for first in (b"POST /admin", b"GET /other"):
            assert status_of(dial_name("good.example", 80), first) == 403
        assert not heads
        end = dial_name("good.example", 80)
        assert [status_of(end, line) for line in (b"GET /ok", b"GET /ok", b"POST /admin")] == [
            200, 200, 403]
        assert [head.split(b" HTTP")[0] for head in heads] == 2 * [b"GET /ok"]
        # at the door for proxies no less
        heads.clear()
        for line in (b"GET", b"POST"):
            assert b" 403 " in exchange(door(), line + b" http://good.example/admin HTTP/1.1\r\n"
                                        b"Host: good.example\r\nContent-Length: 0\r\n\r\n")
        assert not heads
        for flow in until(lambda: proxy.stopped()[4:] and proxy.stopped()):
            assert (flow.outcome, flow.reason, flow.verdict) == (SPECIAL, SPECIAL_WHY, DENY)
    # another protocol than that of its rule
    with Proxy("allow,good.example,port=80", narrow + ",port=80,protocol=ssh", dial=Origin(web),
               address="10.1.2.3"):
        assert status_of(dial_name("good.example", 80), b"GET /") == 403 and not heads


@in_network
def test_a_wider_rule_takes_nothing_from_a_narrow_one():
    tool = {"yes": 1, "action": 7, "tool_device": 8, "tool_inode": 9}
    wide = "allow,*.example,port=80,protocol=tcp"
    narrow = "allow,good.example,port=80,protocol=tcp,private,tool=8:9"
    for who, status in ((tool, 200), ({"yes": 0}, 403), ({**tool, "tool_inode": 1}, 403)):
        with Proxy(wide, narrow, dial=Origin(web), who=who, address="10.1.2.3") as proxy:
            assert status_of(dial_name("good.example", 80), b"GET /") == status
            assert [question.kind for question in proxy.questions] == [WHO]
        assert bool(heads) == (status == 200), who
        heads.clear()
    # the rule that opens it is the one that is used up
    with Proxy(WIDE, "allow,good.example,port=80,protocol=http,private,requests=2,connections=1",
               dial=Origin(web), address="10.1.2.3") as proxy:
        end = dial_name("good.example", 80)
        assert [status_of(end, b"GET /") for _ in range(3)] == [200, 200, 429]
        assert status_of(dial_name("good.example", 80), b"GET /") == 403
        assert {flow.rule for flow in proxy.flows if flow.phase == OPENED} == {1}
    # once: for the action that was first
    with Proxy(WIDE, "allow,good.example,port=80,protocol=http,private,once",
               dial=Origin(web), address="10.1.2.3") as proxy:
        for count, action in enumerate([7, 8, 7]):
            end = dial_name("good.example", 80)
            end.sendall(REQUEST)
            until(lambda: len(proxy.questions) == count + 1)
            proxy.reply(proxy.questions[-1], yes=1, action=action, tool_device=1, tool_inode=1)
            assert (b" 200 " if action == 7 else b" 403 ") in end.recv(4096)


@in_network
def test_bodies_both_ways():
    size = 24 * 1024 * 1024
    pattern = os.urandom(65536)
    content = pattern * (size // len(pattern))
    got = {}

    def server(end):
        waiting = b""
        while b"\r\n\r\n" not in waiting:
            waiting += end.recv(65536)
        head, body = waiting.split(b"\r\n\r\n", 1)
        body = bytearray(body)
        while len(body) < size and b"chunked" not in head:
            body += end.recv(1 << 20)
        if b"chunked" in head:
            while not body.endswith(b"0\r\n\r\n"):
                body += end.recv(1 << 20)
        got["head"], got["body"] = head, bytes(body)
        end.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, size, 1 << 20):
            end.sendall(b"%x;ext=1\r\n" % (1 << 20) + content[at:at + (1 << 20)] + b"\r\n")
        end.sendall(b"0\r\nX-Sum: 1\r\n\r\n")

    def unchunk(bytes_):
        out, at = [], 0
        while True:
            line = bytes_.index(b"\r\n", at)
            length = int(bytes_[at:line], 16)
            if length == 0:
                return b"".join(out), bytes_[line + 2:]
            out.append(bytes_[line + 2:line + 2 + length])
            at = line + 4 + length

    with Proxy("allow,good.example,port=80", dial=Origin(server)) as proxy:
        for framing in (b"Content-Length: %d" % size, b"Transfer-Encoding: chunked"):
            end = dial_name("good.example", 80, timeout=60)
            end.sendall(b"POST /up HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n" +
                        framing + b"\r\n\r\n")
            if b"chunked" in framing:
                for at in range(0, size, 1 << 20):
                    end.sendall(b"%X\r\n" % (1 << 20) + content[at:at + (1 << 20)] + b"\r\n")
                end.sendall(b"0\r\n\r\n")
            else:
                end.sendall(content)
            answer = read_all(end, 2 * size)
            head, body = answer.split(b"\r\n\r\n", 1)
            body, trailers = unchunk(body)
            assert body == content and b"ext" not in head and b"X-Sum: 1" in trailers
            sent = got["body"]
            assert (unchunk(sent)[0] if b"chunked" in framing else sent) == content
        flow = until(lambda: [f for f in proxy.flows if f.phase == CLOSED][1:])[0]
        assert flow.bytes_up >= size and flow.bytes_down >= size


@in_network
def test_tunnel_moves_much_and_halves_close():
    size = 40 * 1024 * 1024

    def server(end):
        total = 0
        while True:
            piece = end.recv(1 << 20)
            if not piece:
                break
            total += len(piece)
        for _ in range(size >> 20):
            end.sendall(bytes(1 << 20))
        end.sendall(b"%d" % total)

    with Proxy("allow,good.example,protocol=tcp", dial=Origin(server)):
        end = dial_name("good.example", 9000, timeout=60)
        for _ in range(size >> 20):
            end.sendall(b"\1" * (1 << 20))
        end.shutdown(socket.SHUT_WR)
        answer = read_all(end, 2 * size)
        assert len(answer) == size + len(str(size)) and answer.endswith(b"%d" % size)


@in_network
def test_urgent_bytes_are_bytes():
    """They come, and where they stood."""
    def server(end):
        received = b""
        while len(received) < 6:
            received += end.recv(64)
        end.send(received)

    with Proxy("allow,good.example,port=80,protocol=tcp", dial=Origin(server)):
        with dial_name("good.example", 80) as end:
            end.send(b"ab")
            end.send(b"!", socket.MSG_OOB)
            end.send(b"cd!", socket.MSG_OOB)
            received = b""
            while len(received) < 6:
                received += end.recv(64)
            assert received == b"ab!cd!"


@in_network
def test_events_are_not_held_back():
    gate = threading.Event()

    def server(end):
        end.recv(65536)
        end.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        end.sendall(b"data: 1\n\n")
        assert gate.wait(10)
        end.sendall(b"data: 2\n\n")

    with Proxy("allow,good.example,port=80", dial=Origin(server)):
        end = dial_name("good.example", 80)
        end.sendall(REQUEST)
        seen = b""
        while b"data: 1\n\n" not in seen:
            seen += end.recv(4096)
        gate.set()
        assert read_all(end).endswith(b"data: 2\n\n")


@in_network
def test_interim_responses_and_upgrades():
    def server(end):
        head = end.recv(65536)
        if b"Expect: 100-continue" in head:
            end.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            assert end.recv(100) == b"body"
            end.sendall(OK)
        else:
            end.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                        b"Upgrade: websocket\r\n\r\n")
            end.sendall(b"frame")
            end.recv(100)

    upgrade = (b"GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
               b"Sec-WebSocket-Key: x\r\n\r\n")
    with Proxy("allow,good.example,port=80", "allow,ws.example,port=80,upgrade",
               dial=Origin(server)):
        end = dial_name("good.example", 80)
        end.sendall(b"POST / HTTP/1.1\r\nHost: good.example\r\nExpect: 100-continue\r\n"
                    b"Content-Length: 4\r\nConnection: close\r\n\r\n")
        assert end.recv(4096).startswith(b"HTTP/1.1 100 ")
        end.sendall(b"body")
        assert read_all(end).endswith(b"ok")
        assert b" 101 " not in exchange(dial_name("good.example", 80), upgrade % b"good.example")
        with dial_name("ws.example", 80) as end:
            end.sendall(upgrade % b"ws.example")
            seen = b""
            while b"frame" not in seen:
                seen += end.recv(4096)
            assert seen.startswith(b"HTTP/1.1 101 ")


@in_network
def test_cut_and_malformed_answers():
    answers = {
        "cut.example": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        "two.example": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "none.example": b"",
        "junk.example": b"\x00\x01\x02 no http\r\n\r\n",
    }

    def dial(host, port):
        def server(end):
            end.recv(65536)
            end.sendall(answers[host])
        return Origin(server)(host, port)

    with Proxy(*[f"allow,{name}" for name in answers], dial=dial) as proxy:
        for name in answers:
            end = dial_name(name, 80)
            end.sendall(REQUEST.replace(b"good.example", name.encode()))
            try:
                answer = read_all(end)
                assert name != "cut.example", "a cut body must not look complete"
                assert answer.startswith(b"HTTP/1.1 502 "), (name, answer)
            except ConnectionResetError:
                assert name == "cut.example"
        assert proxy.process.poll() is None


# ---- the dialer's answers

@in_network
def test_outcomes_of_dials():
    outcomes = {"a.example": (DENIED, 403, 2), "b.example": (SPECIAL, 403, 2),
                "c.example": (NO_NAME, 502, 4), "d.example": (REFUSED, 502, 5),
                "e.example": (TIMEOUT, 504, 4), "f.example": (BUSY, 503, 1)}
    with Proxy("allow,*.example", dial=lambda host, port: outcomes[host][0]) as proxy:
        for name, (_, status, code) in outcomes.items():
            answer = exchange(dial_name(name, 80),
                              REQUEST.replace(b"good.example", name.encode()))
            assert answer.startswith(b"HTTP/1.1 %d " % status), (name, answer)
            answer = exchange(door(), f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n"
                              .encode())
            assert answer.startswith(b"HTTP/1.1 %d " % status), (name, answer)
            with door() as end:
                end.sendall(b"\x05\x01\x00")
                end.recv(2)
                end.sendall(b"\x05\x01\x00\x03\x09" + name.encode() + b"\x01\xbb")
                assert end.recv(10)[1] == code, name
        until(lambda: len(proxy.stopped("d.example")) == 3)
        assert {f.verdict for f in proxy.stopped("d.example")} == {ALLOW}
        assert {f.verdict for f in proxy.stopped("b.example")} == {DENY}


@in_network
def test_who_waits_no_more_is_forgotten():
    with Proxy("allow,good.example", answer=False) as proxy:
        with door() as end:
            end.sendall(b"CONNECT good.example:443 HTTP/1.1\r\nHost: good.example:443\r\n\r\n")
            until(lambda: proxy.dials)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert proxy.process.poll() is None


# ---- questions

@in_network
def test_ask_and_who():
    yes, no = {"yes": 1}, {"yes": 0}
    with Proxy("ask,good.example,port=80", dial=Origin(web), may=yes) as proxy:
        with dial_name("good.example", 80) as end:
            end.sendall(REQUEST)
            assert end.recv(4096) == OK
        assert [q.kind for q in proxy.questions] == [MAY]
        assert proxy.questions[0].path == b"/"
    with Proxy("ask,good.example,port=80", dial=Origin(web), may=no) as proxy:
        assert b" 403 " in exchange(dial_name("good.example", 80), REQUEST)
        assert not proxy.dials
    tool = {"yes": 1, "action": 7, "tool_device": 8, "tool_inode": 9}
    for who, status in ((tool, b" 200 "), (no, b" 403 "), ({**tool, "tool_inode": 1}, b" 403 ")):
        with Proxy("allow,good.example,port=80,tool=8:9", dial=Origin(web), who=who) as proxy:
            with dial_name("good.example", 80) as end:
                end.sendall(REQUEST)
                assert status in end.recv(4096), who
            assert [q.kind for q in proxy.questions] == [WHO]
            assert bool(proxy.dials) == (status == b" 200 ")


def ask(name):
    end = dial_name(name, 80)
    end.sendall(REQUEST.replace(b"good", name.split(".")[0].encode()))
    return end


@in_network
def test_held_connections_have_a_limit():
    """Those beyond it are refused in words, and nobody else notices."""
    raise_files(4096)
    with Proxy("ask,asked.example,port=80", "allow,good.example,port=80",
               dial=Origin(web)) as proxy:
        held = [ask("asked.example") for _ in range(256)]
        until(lambda: len(proxy.questions) == 256)
        answer = read_all(ask("asked.example"))
        assert b" 403 " in answer and b"too many connections wait" in answer, answer
        assert len(proxy.questions) == 256
        with ask("good.example") as end:
            assert end.recv(4096) == OK
        # an answer makes room
        proxy.reply(proxy.questions[0], yes=1)
        assert held[0].recv(4096) == OK
        held[0].close()
        held.append(ask("asked.example"))
        until(lambda: len(proxy.questions) == 257)
        proxy.reply(proxy.questions[-1], yes=1)
        assert held[-1].recv(4096) == OK


@in_network
def test_who_left_is_not_held():
    """A reset is seen at once; who only closed makes room for the next that is there."""
    raise_files(4096)
    with Proxy("ask,asked.example,port=80", dial=Origin(web)) as proxy:
        for number in range(20):
            end = ask("asked.example")
            until(lambda count=number: len(proxy.questions) == count + 1)
            leave(end, True)
        lost = b"its client left before the answer"
        until(lambda: proxy.stopped("asked.example"))
        for number in range(300):
            leave(ask("asked.example"), False)
            until(lambda count=number: len(proxy.questions) == count + 21)
        last = ask("asked.example")
        until(lambda: len(proxy.questions) == 321)
        proxy.reply(proxy.questions[-1], yes=1)
        assert last.recv(4096) == OK
        assert proxy.finish() == 0
        reasons = {}
        for flow in proxy.stopped("asked.example"):
            reasons[flow.reason] = reasons.get(flow.reason, 0) + (flow.repeated or 1)
        assert reasons[lost] == 20, reasons
        assert reasons[b"its client may have left, and others wait"] == 300 - 255, reasons


@in_network
def test_once_is_for_one_action():
    actions = [7, 7, 8, 7]
    with Proxy("allow,good.example,port=80,once", dial=Origin(web)) as proxy:
        for count, action in enumerate(actions):
            end = dial_name("good.example", 80)
            until(lambda: len(proxy.questions) == count + 1)
            proxy.reply(proxy.questions[-1], yes=1, action=action, tool_device=1, tool_inode=1)
            end.sendall(REQUEST)
            assert (b" 200 " if action == 7 else b" 403 ") in end.recv(4096)


# ---- quotas

@in_network
def test_quotas():
    def echo(end):
        while True:
            piece = end.recv(65536)
            if not piece:
                return
            end.sendall(piece)

    with Proxy("allow,good.example,protocol=tcp,up=100000", dial=Origin(echo)) as proxy:
        end = dial_name("good.example", 9000)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            for _ in range(100):
                end.sendall(bytes(10000))
                time.sleep(0.005)
        flow = until(lambda: [f for f in proxy.flows if f.phase == CLOSED])[0]
        assert flow.bytes_up <= 100000 and b"quota" in flow.reason
    with Proxy("allow,good.example,port=80,requests=2,connections=3", dial=Origin(web)):
        with dial_name("good.example", 80) as end:
            for status in (b" 200 ", b" 200 ", b" 429 "):
                end.sendall(REQUEST)
                assert status in end.recv(4096)
        for status in (b" 429 ", b" 429 ", b" 403 "):
            assert status in exchange(dial_name("good.example", 80), REQUEST)


@in_network
def test_a_quota_that_is_just_enough_is_enough():
    """The last byte that may be sent has its answer, and no end by a denial."""
    def answer(end):
        got = b""
        while len(got) < 100000:
            got += end.recv(65536)
        end.sendall(b"thanks")
        end.recv(1)

    with Proxy("allow,good.example,protocol=tcp,up=100000", dial=Origin(answer)) as proxy:
        with dial_name("good.example", 9000) as end:
            end.sendall(bytes(100000))
            end.settimeout(10)
            assert end.recv(100) == b"thanks"
        closed = until(lambda: [f for f in proxy.flows if f.phase == CLOSED])[0]
        assert closed.verdict != DENY and closed.bytes_up == 100000, closed


@in_network
def test_a_quota_used_up_ends_what_has_come_already():
    """All that there is to send was read with the hello: no event would ever tell of it."""
    first, big = hello("good.example"), hello("good.example") + bytes(4000)
    with Proxy("allow,good.example,port=443,up=1000", dial=Origin(read_all)) as proxy:
        for sent in (big, first):
            with dial_name("good.example", 443) as end:
                end.sendall(sent)
                end.settimeout(10)
                with pytest.raises(ConnectionResetError):
                    while True:
                        assert not end.recv(100)
                        time.sleep(0.005)
        closed = until(lambda: [f for f in proxy.flows if f.phase == CLOSED][1:])[0]
        assert closed.bytes_up == 0 and b"quota" in closed.reason
        # it was allowed, and is denied now: who started the task is told so
        assert {f.verdict for f in proxy.flows if f.phase == CLOSED} == {DENY}


@in_network
def test_dates_end_what_is_open():
    """At the second: tunnels, an upgrade, a body, and what is kept open for the next request."""
    began, ended = time.time(), {}

    def server(end):
        head = end.recv(65536)
        if b"GET /ws" in head:
            end.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                        b"Upgrade: websocket\r\n\r\n")
        elif b"GET /slow" in head:
            end.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
        elif b"GET /kept" in head:
            end.sendall(OK)
        else:
            end.sendall(b"hello")
        with contextlib.suppress(OSError):
            while end.recv(100):
                pass
        ended[head.split(b" HTTP")[0][:12]] = time.time()

    until_s = int(began) + 2
    rules = [f"allow,ending.example,protocol=tcp,until={until_s}",
             f"allow,web.example,port=80,upgrade,until={until_s}",
             "allow,begun.example,protocol=tcp", f"deny,begun.example,from={until_s}",
             "allow,asked.example,protocol=tcp", f"ask,asked.example,protocol=tcp,from={until_s}",
             f"allow,other.example,protocol=tcp,until={until_s}",
             "allow,other.example,protocol=tcp",
             f"allow,wider.example,protocol=tcp,until={until_s + 3600}"]
    with Proxy(*rules, dial=Origin(server)) as proxy:
        ends = {name: dial_name(f"{name}.example", 9000, timeout=10)
                for name in ("ending", "begun", "asked", "other", "wider")}
        for name, end in ends.items():
            end.sendall(name.encode())
            assert end.recv(100) == b"hello"
        for path in ("ws", "slow", "kept"):
            ends[path] = dial_name("web.example", 80, timeout=10)
            ends[path].sendall(f"GET /{path} HTTP/1.1\r\nHost: web.example\r\n".encode() + (
                b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" if path == "ws" else
                b"\r\n"))
            assert b"HTTP/1.1 " in ends[path].recv(4096)
        assert time.time() < until_s, "the machine was too slow for this test"
        until(lambda: len(ended) >= 6)
        assert set(ended) == {b"ending", b"begun", b"asked", b"GET /ws", b"GET /slow",
                              b"GET /kept"}
        # not before, and soon
        assert all(until_s <= at < until_s + 1 for at in ended.values()), (until_s, ended)
        closed = until(lambda: [f for f in proxy.flows if f.phase == CLOSED and f.reason][4:]
                       and {(f.host, f.path): f for f in proxy.flows
                            if f.phase == CLOSED and f.reason})
        assert {f.verdict for f in closed.values()} == {DENY}
        over = b"the time of the rule that allowed it is over"
        for key, rule, reason in (
                ((b"ending.example", b""), 0, over), ((b"web.example", b"/ws"), 1, over),
                ((b"web.example", b"/slow"), 1, over),
                ((b"begun.example", b""), 3, b"the time of a rule that denies it has begun"),
                ((b"asked.example", b""), 4, b"the time of a rule that asks about it has begun")):
            assert (closed[key].rule, closed[key].reason) == (rule, reason), closed
        assert closed[b"web.example", b"/ws"].upgrade == 1
        # what another rule allows goes on; the kept client is told no by its next request
        for name in ("other", "wider"):
            ends[name].sendall(b"x")
        ends["kept"].sendall(b"GET /next HTTP/1.1\r\nHost: web.example\r\n\r\n")
        assert b" 403 " in ends["kept"].recv(4096)
        assert set(ended) == {b"ending", b"begun", b"asked", b"GET /ws", b"GET /slow",
                              b"GET /kept"}
        # nothing new begins
        with dial_name("ending.example", 9000, timeout=10) as end, \
                pytest.raises(ConnectionResetError):
            end.sendall(b"x")
            end.recv(100)
        for end in ends.values():
            end.close()


def leave(end, is_reset):
    if is_reset:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()


@pytest.mark.parametrize("is_reset", [True, pytest.param(False, marks=pytest.mark.skipif(
    not os.environ.get("BAWN_SOAK"), reason="takes a minute: BAWN_SOAK"))])
@in_network
def test_a_client_that_left_holds_no_server(is_reset):
    asked, ended = threading.Event(), threading.Event()

    def think(end):
        assert end.recv(4096)
        asked.set()
        while end.recv(4096):
            pass
        ended.set()

    with Proxy("allow,good.example,port=80", dial=Origin(think)) as proxy:
        end = dial_name("good.example", 80)
        end.sendall(REQUEST)
        assert asked.wait(10)
        assert not ended.is_set()
        leave(end, is_reset)
        assert ended.wait(10 if is_reset else 70)
        closed = until(lambda: [f for f in proxy.flows if f.phase == CLOSED])[0]
        assert closed.reason == (b"the client was lost" if is_reset else
                                 b"the server did not answer in time")


@in_network
def test_pace():
    def send(end):
        end.recv(1)
        end.sendall(bytes(60000))

    with Proxy("allow,good.example,protocol=tcp,pace=20000", dial=Origin(send)):
        end = dial_name("good.example", 9000)
        began = time.monotonic()
        end.sendall(b"x")
        assert len(read_all(end)) == 60000
        assert time.monotonic() - began > 1.5


# ---- names

@in_network
def test_names():
    with Proxy("allow,good.example", "allow,*.deep.example") as proxy:
        first = look_up("good.example")
        assert first == look_up("GOOD.example") == look_up("good.example", server=("8.8.8.8", 53))
        assert first[0][0].startswith("198.18.")
        assert look_up("good.example", 28)[0][0].startswith("fd77::")
        for kind in (65, 16, 15, 33, 5):
            assert look_up("good.example", kind) == ([], 0)
        assert look_up("c2VjcmV0.evil.example", 16) == ([], 0)
        for name in ("2130706433", "0x7f.1", "a b", "x" * 63 + ".example" * 0):
            addresses, code = look_up(name) if len(name) < 60 else ([], 3)
            assert not addresses and code != 0, name
        assert not proxy.dials
        flow = until(lambda: proxy.stopped("c2vjcmv0.evil.example"))[0]
        assert flow.door == 4
        assert not proxy.stopped("good.example")


def ask_for(names):
    """The codes of the answers, and how many there were of each."""
    codes = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.connect(NAMESERVER)
        for name in names:
            labels = b"".join(bytes([len(part)]) + part for part in name.encode().split(b"."))
            client.send(struct.pack("!HHHHHH", 4711, 0x100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1")
            code = client.recv(4096)[3] & 15
            codes[code] = codes.get(code, 0) + 1
    return codes


@in_network
def test_closed_names_leave_room_for_open_ones():
    """More names than the table has are asked for; what the rules open has an address all the same,
    and that there was no room is on record."""
    count, closed, room = 17_000, 4096, 16_384
    with Proxy("allow,good.example,port=80", "allow,*.many.example", dial=Origin(web)) as proxy:
        codes = ask_for(f"n{i}.evil.example" for i in range(count))
        assert codes == {0: closed, 5: count - closed}
        with dial_name("good.example", 80) as end:
            end.sendall(REQUEST)
            assert end.recv(4096) == OK
        assert look_up("n7.evil.example")[0]
        assert ask_for(f"n{i}.many.example" for i in range(room)) == {
            0: room - closed - 1, 5: closed + 1}
        assert look_up("good.example")[0]
        assert proxy.finish() == 0
        told = {}
        for flow in proxy.stopped():
            key = flow.host.endswith(b"many.example") and b"many" or flow.host[:1], flow.reason
            told[key] = told.get(key, 0) + (flow.repeated or 1)
        assert told == {
            (b"n", b"asked for a name that no rule opens"): closed,
            (b"", b"asked for more names that no rule opens than get an address"):
                count - closed,
            (b"many", b"the task has asked for more names than get an address"): closed + 1}


@in_network
def test_names_over_tcp_and_hostile_packets():
    with Proxy("allow,good.example") as proxy:
        query = struct.pack("!HHHHHH", 4711, 0x100, 1, 0, 0, 0) + b"\4good\7example\0\0\1\0\1"
        with socket.create_connection(("9.9.9.9", 53), timeout=10) as end:
            for _ in range(3):
                end.sendall(struct.pack("!H", len(query)) + query)
                length = struct.unpack("!H", end.recv(2))[0]
                assert read_answer(end.recv(length))[0]
        for packet in (b"", b"\0" * 11, query[:-3], query + b"x", query[:12] + b"\xc0\x0c\0\1\0\1",
                       query[:12] + b"\3abc" * 70 + b"\0\0\1\0\1", os.urandom(400)):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.sendto(packet, NAMESERVER)
            with socket.create_connection(NAMESERVER, timeout=10) as end:
                end.sendall(struct.pack("!H", len(packet)) + packet)
                end.shutdown(socket.SHUT_WR)
                read_all(end)
        assert look_up("good.example")[0]
        assert proxy.process.poll() is None


# ---- floods, limits, ends

@in_network
def test_floods_are_one_record():
    with Proxy("allow,good.example") as proxy:
        look_up("evil.example")
        for _ in range(50):
            exchange(dial_name("evil.example", 80), REQUEST.replace(b"good", b"evil"))
        told = [f for f in until(lambda: [f for f in proxy.stopped("evil.example") if f.repeated]
                                 and proxy.stopped("evil.example")) if f.door == 0]
        assert len(told) <= 8 and sum(1 + f.repeated if not f.repeated else f.repeated
                                      for f in told) == 50


@in_network
def test_many_idle_and_slow():
    with Proxy("allow,good.example", dial=Origin(web)) as proxy:
        idle = [dial_name("good.example", 80) for _ in range(300)]
        for end in idle[:100]:
            end.sendall(b"GET /")
        for _ in range(5):
            with dial_name("good.example", 80) as end:
                end.sendall(REQUEST)
                assert end.recv(4096) == OK
        assert proxy.process.poll() is None


@in_network
def test_idle_tunnels_hold_no_memory():
    tunnels = []

    def dial(_host, _port):
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        tunnels.append(ours)
        return theirs

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    assert hard >= 4096, "too few descriptors for this test"
    with Proxy("allow,good.example", dial=dial) as proxy:
        for _ in range(1100):  # more than there are chunks
            end = door()
            end.sendall(b"CONNECT good.example:443 HTTP/1.1\r\nHost: good.example:443\r\n\r\n")
            assert end.recv(4096).startswith(b"HTTP/1.1 200 ")
            tunnels.append(end)
        with open(f"/proc/{proxy.process.pid}/smaps_rollup", encoding="ascii") as file:
            pss = [int(line.split()[1]) for line in file if line.startswith("Pss:")][0]
        assert pss < 1700, f"{pss} kB"


@in_network
def test_descriptors_run_out():
    with Proxy("allow,good.example", dial=Origin(web), limits=(640, 640)) as proxy:
        ends = []
        refused = 0
        address = (look_up("good.example")[0][0], 80)
        for _ in range(400):
            try:
                ends.append(socket.create_connection(address, timeout=10))
            except ConnectionResetError:
                refused += 1
        for end in ends:
            try:
                end.sendall(REQUEST)
                refused += end.recv(4096) != OK
            except ConnectionResetError:
                refused += 1
        assert 0 < refused < 400
        assert proxy.process.poll() is None
        for end in ends:
            end.close()

        def works():
            try:
                with dial_name("good.example", 80) as end:
                    end.sendall(REQUEST)
                    return end.recv(4096) == OK
            except ConnectionResetError:
                return False
        until(works)


@in_network
def test_slow_heads_hurt_nobody():
    """More unfinished ones than the proxy has memory for: the oldest of them end, and no other."""
    raise_files(4096)
    got = []

    def server(end):
        head = end.recv(65536)
        if not head.startswith(b"POST"):
            end.sendall(OK)
            return web(end)
        body = head.split(b"\r\n\r\n", 1)[1]
        while len(body) < 400_000:
            body += end.recv(65536)
        got.append(len(body))
        return end.sendall(OK)

    with Proxy("allow,good.example", dial=Origin(server)) as proxy:
        kept, upload = dial_name("good.example", 80), dial_name("good.example", 80)
        kept.sendall(REQUEST)
        assert kept.recv(4096) == OK
        upload.sendall(REQUEST.replace(b"GET", b"POST").replace(
            b"\r\n\r\n", b"\r\nContent-Length: 400000\r\n\r\n") + bytes(200_000))
        address = (look_up("good.example")[0][0], 80)
        slow = []
        for _ in range(1100):
            slow.append(socket.create_connection(address, timeout=10))
            slow[-1].sendall(b"GET /slow HTTP/1.1\r\n")
        for _ in range(3):
            with dial_name("good.example", 80) as end:
                end.sendall(REQUEST)
                assert end.recv(4096) == OK
        kept.sendall(REQUEST)
        assert kept.recv(4096) == OK
        upload.sendall(bytes(200_000))
        assert upload.recv(4096) == OK and got == [400_000]
        slow[-1].sendall(b"Host: good.example\r\n\r\n")
        assert slow[-1].recv(4096) == OK
        assert proxy.finish() == 0
        reasons = {}
        for flow in proxy.stopped():
            reasons[flow.reason] = reasons.get(flow.reason, 0) + (flow.repeated or 1)
        oldest = b"too many requests are unfinished at once, and it is the oldest"
        assert reasons[oldest] >= 1100 - 512 - 1, reasons
        assert sum(reasons.values()) == 1099, reasons


@in_network
def test_who_finds_no_memory_waits_for_it():
    """Requests that wait for their dials hold it; those behind them get theirs, and no reset."""
    raise_files(4096)
    count, goes_on = 1100, threading.Event()
    origin = Origin(web)

    def dial(host, port):
        assert goes_on.wait(60)
        return origin(host, port)

    with Proxy("allow,good.example", dial=dial) as proxy:
        address = (look_up("good.example")[0][0], 80)
        ends = []
        for _ in range(count):
            ends.append(socket.create_connection(address, timeout=20))
            ends[-1].sendall(REQUEST)
        until(lambda: len(proxy.dials) == count)
        time.sleep(0.5)
        goes_on.set()
        for end in ends:
            assert end.recv(4096) == OK
        assert not proxy.stopped()


# ---- the end of the task

def silent(end):
    """Takes all that comes, and neither answers nor closes."""
    while end.recv(65536):
        pass
    threading.Event().wait(60)


@in_network
def test_the_end_of_the_task_is_told():
    """Of a tunnel, of requests with and without an answer, and of what was not decided."""
    def server(end):
        waiting = b""
        while b"\r\n\r\n" not in waiting:
            waiting += end.recv(65536)
        if b"/half" in waiting:
            end.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + bytes(100))
        silent(end)

    def origin(host, port):
        return Origin(silent if host == "tunnel.example" else server)(host, port)

    with Proxy("allow,tunnel.example,port=9000,protocol=tcp", "allow,good.example,port=80",
               "ask,asked.example,port=80", dial=origin) as proxy:
        tunnel = dial_name("tunnel.example", 9000)
        tunnel.sendall(bytes(3_000_000))
        tunnel.close()
        half, none, idle, part, asked = [dial_name(name + ".example", 80)
                                         for name in ["good"] * 4 + ["asked"]]
        half.sendall(REQUEST.replace(b"/ ", b"/half "))
        assert b" 200 " in half.recv(4096)
        none.sendall(REQUEST.replace(b"/ ", b"/none "))
        part.sendall(b"GET /part HTTP/1.1\r\n")
        asked.sendall(REQUEST.replace(b"good", b"asked"))
        until(lambda: proxy.questions and
              len([f for f in proxy.flows if f.phase == OPENED]) == 3)
        began = time.monotonic()
        assert proxy.finish() == 0
        assert time.monotonic() - began < 3
        closed = {(f.host, f.path): f for f in proxy.flows if f.phase == CLOSED}
        assert len(closed) == 3, proxy.flows
        assert closed[b"tunnel.example", b""].bytes_up == 3_000_000
        assert closed[b"good.example", b"/half"].status == 200
        assert closed[b"good.example", b"/half"].bytes_down >= 100
        assert closed[b"good.example", b"/none"].bytes_up > 0
        assert {f.reason for f in closed.values()} == {b"its task has ended"}
        assert [f.verdict for f in proxy.stopped("asked.example")] == [DENY]
        assert {f.verdict for f in proxy.stopped("good.example")} == {ALLOW}
        idle.close()


@in_network
def test_what_is_on_its_way_at_the_end_arrives():
    got = []

    def slow(end):
        time.sleep(0.3)
        while True:
            piece = end.recv(65536)
            if not piece:
                return
            got.append(len(piece))

    with Proxy("allow,good.example,port=9000,protocol=tcp", dial=Origin(slow)) as proxy:
        end = dial_name("good.example", 9000)
        end.sendall(bytes(500_000))
        until(lambda: [f for f in proxy.flows if f.phase == OPENED])
        end.close()
        time.sleep(0.25)
        assert proxy.finish() == 0
        until(lambda: sum(got) == 500_000)
        assert [f.bytes_up for f in proxy.flows if f.phase == CLOSED] == [500_000]


@in_network
def test_an_upstream_that_takes_nothing_does_not_hold_the_end():
    stuck = threading.Event()
    with Proxy("allow,good.example,port=9000,protocol=tcp",
               dial=Origin(lambda end: stuck.wait(60))) as proxy:
        end = dial_name("good.example", 9000)
        end.settimeout(1)
        with pytest.raises(TimeoutError):
            end.sendall(bytes(20_000_000))
        end.close()
        began = time.monotonic()
        assert proxy.finish() == 0
        assert time.monotonic() - began < 1
        closed, = [f for f in proxy.flows if f.phase == CLOSED]
        assert 0 < closed.bytes_up < 20_000_000
        stuck.set()


@in_network
def test_refusals_of_the_last_moment_are_told():
    """Those of one kind, and those beyond the limit of connections."""
    with Proxy("allow,good.example", limits=(640, 640)) as proxy:
        address = (look_up("good.example")[0][0], 80)
        for _ in range(100):
            reset_of(("9.9.9.9", 443))
        ends, refused = [], 0
        for _ in range(400):
            try:
                end = socket.create_connection(address, timeout=10)
                end.setblocking(False)
                ends.append(end)
            except ConnectionResetError:
                refused += 1
        for end in ends:
            try:
                end.recv(1)
            except BlockingIOError:
                pass
            except ConnectionResetError:
                refused += 1
        assert proxy.finish() == 0
        told = {host: sum(f.repeated or 1 for f in proxy.stopped(host))
                for host in ("9.9.9.9", "", "good.example")}
        assert told["9.9.9.9"] == 100, proxy.flows
        assert told[""] >= refused > 0, proxy.flows
        assert told[""] + told["good.example"] == 400, proxy.flows


@contextlib.contextmanager
def stopped(proxy):
    """It sees nothing of what happens meanwhile until it is over."""
    os.kill(proxy.process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, proxy.process.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        yield
    finally:
        os.kill(proxy.process.pid, signal.SIGCONT)


@in_network
def test_what_was_there_is_told_before_the_mark():
    """An action's last deeds, which its result is to have; and nothing is told twice."""
    with Proxy("allow,good.example,port=80", dial=Origin(web)) as proxy:
        with dial_name("good.example", 80) as kept:
            for number in (1, 2, 3):
                before = len(proxy.flows)
                with stopped(proxy):
                    for port in range(1, 401):
                        socket.create_connection(("9.9.9.9", port % 8 + 1), timeout=10).close()
                    kept.sendall(REQUEST)
                    proxy.send(proxy.channel, MARK, struct.pack("I", number))
                marked, count = until(lambda: proxy.marks[number - 1:])[0]
                told = [f for f in proxy.flows[before:count] if f.host == b"9.9.9.9"]
                assert marked == number and sum(f.repeated or 1 for f in told) == 400, proxy.flows
                assert kept.recv(4096) == OK
        # of several the last one is answered
        with stopped(proxy):
            for number in (4, 5, 6):
                proxy.send(proxy.channel, MARK, struct.pack("I", number))
        until(lambda: proxy.marks[3:])
        time.sleep(0.1)
        assert [number for number, _ in proxy.marks[3:]] == [6]
        assert proxy.finish() == 0


def pour(end, over):
    while not over.is_set():
        end.sendall(bytes(65536))
    end.close()


@in_network
def test_marks_are_answered_beside_a_busy_neighbour():
    """Whoever goes on sending does not put them off."""
    with Proxy("allow,good.example,port=9000,protocol=tcp", dial=Origin(silent)) as proxy:
        over = threading.Event()
        senders = [threading.Thread(target=pour, args=(dial_name("good.example", 9000), over))
                   for _ in range(4)]
        for sender in senders:
            sender.start()
        took = []
        for number in range(1, 21):
            before = time.monotonic()
            proxy.send(proxy.channel, MARK, struct.pack("I", number))
            until(lambda: len(proxy.marks) == number)
            took.append(time.monotonic() - before)
        over.set()
        for sender in senders:
            sender.join()
        assert sorted(took)[10] < 0.2, took


@pytest.mark.parametrize("body", [b"", bytes(4), bytes(8), b"\1\0\0"])
@in_network
def test_a_mark_that_is_none(body):
    with Proxy("allow,good.example") as proxy:
        proxy.send(proxy.channel, MARK, body)
        assert proxy.process.wait(timeout=10) != 0


@in_network
def test_no_end_is_lost_where_nobody_listens():
    """The supervisor takes nothing for a while: each end is told later, with its bytes."""
    count = 300
    with Proxy("allow,good.example,port=9000,protocol=tcp", dial=Origin(silent)) as proxy:
        ends = []
        for _ in range(count):
            ends.append(dial_name("good.example", 9000))
            ends[-1].sendall(bytes(1000))
        until(lambda: len([f for f in proxy.flows if f.phase == OPENED]) == count)
        with proxy.deaf():
            for end in ends:
                leave(end, True)
            with socket.create_connection(("9.9.9.9", 443), timeout=10) as last:
                last.settimeout(1)
                with pytest.raises(TimeoutError):
                    last.recv(1)  # nothing new is begun meanwhile
        until(lambda: len([f for f in proxy.flows if f.phase == CLOSED]) == count)
        assert {f.bytes_up for f in proxy.flows if f.phase == CLOSED} == {1000}
        assert {f.host for f in proxy.flows if f.phase == CLOSED} == {b"good.example"}
        assert until(lambda: proxy.stopped("9.9.9.9"))
        assert proxy.finish() == 0


@in_network
def test_it_ends_with_its_peers():
    for name in ("channel", "peer"):
        with Proxy("allow,good.example") as proxy:
            getattr(proxy, name).shutdown(socket.SHUT_RDWR)
            assert proxy.process.wait(timeout=10) == 0


@in_network
def test_broken_protocol_ends_it():
    for kind, body, end in ((99, b"", "channel"), (2, bytes(300), "channel"),
                            (8, bytes(3), "channel"), (4, bytes(4), "peer"),
                            (4, bytes(8) + bytes(48), "peer")):
        with Proxy("allow,good.example") as proxy:
            getattr(proxy, end).sendall(struct.pack("II", kind, len(body)) + body)
            assert proxy.process.wait(timeout=10) not in (0, None), kind


@in_network
def test_killed_in_the_middle_of_a_body():
    def server(end):
        end.recv(65536)
        end.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + bytes(5000))
        end.recv(1)

    for number in (signal.SIGKILL, signal.SIGSEGV):
        with Proxy("allow,good.example", dial=Origin(server)) as proxy:
            end = dial_name("good.example", 80)
            end.sendall(REQUEST)
            got = b""
            while len(got) < 5000:
                got += end.recv(65536)
            os.kill(proxy.process.pid, number)
            proxy.process.wait(timeout=10)
            try:
                got += read_all(end)
            except ConnectionResetError:
                pass
            assert len(got) < 100000
