"""
A task's network end to end: programs in a box, the proxy, the dialer, and a host with a network of
the test's own (hostnet.py). What is denied is also held against what the host's resolver and
servers saw: by name, port or address no question and no packet; by content not one byte.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from boxed import BAWN, ROOT, Place, eventually, remove_tree
from hostnet import IS_ROOT, METADATA, OTHER, PRIVATE, PUBLIC, HostNet, is_possible
from test_trace_run import chains

LIMIT_S = 60
HAS_FLAG = b"--allow-host" in subprocess.run([BAWN, "run", "--help"], capture_output=True,
                                             check=False).stdout
pytestmark = pytest.mark.skipif(not HAS_FLAG or not is_possible(),
                                reason="no --allow-host in this build, or no unshare, ip, openssl")


@pytest.fixture(name="host", scope="module")
def _host(tmp_path_factory):
    made = HostNet(tmp_path_factory.mktemp("host"))
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def place_of():
    """Without what boxed.place does at its end: it kills all that is ours, and the host is."""
    made = Place(tempfile.mkdtemp(prefix="bawn-run.", dir="/var/tmp"))
    try:
        yield made
    finally:
        remove_tree(made.base)


@pytest.fixture(name="place")
def _place():
    with place_of() as made:
        yield made


class Ran:
    def __init__(self, child, host):
        self.status, self.out, self.err = child.returncode, child.stdout, child.stderr
        self.seen = host.seen()

    @property
    def denials(self):
        return [line.split()[2:4] for line in self.err.splitlines()
                if line.startswith("bawn: denied: ")]

    @property
    def asked(self):
        return {one["name"] for one in self.seen if one["kind"] == "dns"}

    @property
    def connected(self):
        return {one["place"] for one in self.seen if one["kind"] == "connect"}

    @property
    def payload(self):
        return sum(one["count"] for one in self.seen if one["kind"] == "bytes")

    def __repr__(self):
        return f"status {self.status}\n{self.out[-1500:]}\n{self.err[-2500:]}\n{self.seen[-20:]}"


def run(host, where, allow, script, *options, prefix=(), limit=LIMIT_S):
    host.forget()
    words = [word for name in allow for word in ("--allow-host", name)]
    child = subprocess.run([*host.prefix[:-1], f"--wdns={where.work}", *prefix, BAWN, "run",
                            *where.options,
                            *words, *options, "--", "bash", "-c", script],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=limit, check=False)
    return Ran(child, host)


DIRECT = "unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY; "
GIT = "export GIT_TERMINAL_PROMPT=0; git -c http.sslVerify=false "
CLIENTS = {
    "curl": ("pub.example:80", "curl -sS -m 20 http://pub.example/x"),
    "curl-tls": ("pub.example:443", "curl -sSk -m 20 https://pub.example/x"),
    "curl-six": ("six.example:80", "curl -sS -m 20 http://six.example/x"),
    "curl-both": ("both.example:8080", "curl -sS -m 20 http://both.example:8080/x"),
    "curl-alias": ("alias.example:80", "curl -sS -m 20 http://alias.example/x"),
    "curl-socks": ("pub.example:443",
                   "curl -sSk -m 20 -x socks5h://198.18.255.253:3128 https://pub.example/x"),
    "curl-socks-own-lookup": ("pub.example:443",
                              "curl -sSk -m 20 -x socks5://198.18.255.253:3128 "
                              "https://pub.example/x"),
    "connect-own-lookup": (
        "pub.example:80", "python3 -c 'import http.client as h, socket;"
        "c=h.HTTPConnection(\"198.18.255.253\",3128,timeout=20);"
        "c.set_tunnel(socket.gethostbyname(\"pub.example\"),80);"
        "c.request(\"GET\",\"/x\",headers={\"Host\":\"pub.example\"});"
        "print(c.getresponse().read().decode())'"),
    "python": ("pub.example:80", "python3 -c 'import urllib.request as u;"
               "print(u.urlopen(\"http://pub.example/x\",timeout=20).read().decode())'"),
    "wget": ("pub.example:80", "wget -q -T 20 -O - http://pub.example/x"),
    "node": ("pub.example:80", "node -e 'fetch(\"http://pub.example/x\").then(r=>r.text())"
             ".then(t=>console.log(t))'"),
    "bash": ("pub.example:80", "exec 3<>/dev/tcp/pub.example/80; printf "
             "'GET /x HTTP/1.0\\r\\nHost: pub.example\\r\\n\\r\\n' >&3; cat <&3"),
}


@pytest.mark.parametrize("through", ["captured", "door"])
@pytest.mark.parametrize("client", CLIENTS)
def test_allowed(host, place, client, through):
    allow, script = CLIENTS[client]
    if not shutil.which(script.split()[0]) and client != "bash":
        pytest.skip(f"no {script.split()[0]} here")
    ran = run(host, place, [allow], (DIRECT if through == "captured" else "") + script)
    assert ran.status == 0 and "GET /x HTTP/1." in ran.out, ran
    assert ran.asked <= {allow.split(":")[0]}, ran
    assert len(ran.connected) == 1 and not ran.denials, ran


# Programs of protocols that nobody looks at, of which in some the server speaks first.
BYTES = {
    "git": (9418, GIT + "clone -q git://pub.example/project.git /tmp/c && cat /tmp/c/file",
            "of the upstream\n"),
    "server-first": (22, "exec 3<>/dev/tcp/pub.example/22; timeout 2 head -1 <&3",
                     "SSH-2.0-Test_1.0\n"),
}


@pytest.mark.parametrize("case", BYTES)
def test_remedies_can_be_taken_word_for_word(host, place, case):
    """Each denial says what would allow it; whoever does that is there after two of them."""
    port, script, out = BYTES[case]
    allow = ["other.example"]
    for code in ("net.host", "net.bytes"):
        ran = run(host, place, allow, DIRECT + script)
        assert ran.status and [words[1] for words in ran.denials] == [f"pub.example:{port}"], ran
        assert not ran.payload, ran
        allow = [ran.err.partition("; to allow: --allow-host ")[2].split()[0]]
        assert allow[0].startswith(f"pub.example:{port}"), ran
        if ran.denials[0][0] == "net.bytes":
            break
        assert ran.denials[0][0] == code, ran
    assert allow == [f"pub.example:{port}/tcp"]
    ran = run(host, place, allow, DIRECT + script)
    assert (ran.status, ran.out) == (0, out) and not ran.denials, ran


def test_no_remedy_opens_the_ports_of_the_web_to_any_bytes(host, place):
    ran = run(host, place, ["pub.example:80"], DIRECT + "exec 3<>/dev/tcp/pub.example/80; printf "
              "'get / HTTP/1.1\\r\\nHost: pub.example\\r\\n\\r\\n' >&3; cat <&3; exit 3")
    assert [words[0] for words in ran.denials] == ["net.content"] and not ran.payload, ran
    assert "to allow" not in ran.err, ran


def test_what_a_rule_lacks_is_said(host, place, tmp_path):
    """A host that a rule allows, and something of it that none does."""
    policy = policy_in(tmp_path)
    policy.write_text("version: 1\nnetwork:\n  allow:\n"
                      "    - {host: pub.example, ports: [80], protocol: http, methods: [GET]}\n"
                      "    - {host: pub.example, ports: [443], protocol: https}\n")
    ran = run(host, place, [], DIRECT + "curl -s -m 9 -d x http://pub.example/; "
              "curl -s -m 9 -H 'Connection: Upgrade' -H 'Upgrade: websocket' http://pub.example/;"
              "curl -s -m 9 http://pub.example:443/; curl -s -m 9 http://pub.example:81/; exit 3",
              "--policy", str(policy))
    said = [json.loads(line) for line in ran.out.splitlines()]
    assert [one["reason"] for one in said] == [
        "no rule allows this method or path there",
        "no rule allows to change the protocol there (upgrade)",
        "no rule allows this protocol there", "no rule allows it"], ran
    assert ["--allow-host" in one["remedy"] for one in said] == [False, False, False, True], ran
    assert not ran.payload, ran


def test_other_words_at_the_door_are_of_no_private_address(host, place):
    ran = run(host, place, ["pub.example"], "for x in socks4 socks4a; do curl -s -m 9 -x "
              "$x://198.18.255.253:3128 http://pub.example/; done; exit 3")
    assert [words[0] for words in ran.denials] == ["net.content"] and not ran.seen, ran


def test_ssh(host, place):
    script = ("ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=10 -F none "
              "a@pub.example; true")
    ran = run(host, place, ["pub.example:22"], script)
    assert any(one["kind"] == "banner" and one["text"].startswith("SSH-2.0-") for one in ran.seen)
    ran = run(host, place, ["other.example:22"], script)
    assert ["net.host", "pub.example:22"] in ran.denials, ran
    assert not ran.seen, ran


# What is tried, with pub.example:80 and :443 allowed: the object of its denial, or None.
DENIED = {
    "name": ("curl -s -m 9 http://other.example/", "other.example:80"),
    "name-tls": ("curl -sk -m 9 https://other.example/", "other.example:443"),
    "below": ("curl -s -m 9 http://secret.other.example/", "secret.other.example:80"),
    "port": ("curl -s -m 9 http://pub.example:8080/", "pub.example:8080"),
    "literal": (f"curl -s -m 9 http://{PUBLIC}/", f"{PUBLIC}:80"),
    "literal-other": (f"curl -s -m 9 http://{OTHER}/", f"{OTHER}:80"),
    "private": (f"curl -s -m 9 http://{PRIVATE}/", f"{PRIVATE}:80"),
    "metadata": (f"curl -s -m 9 http://{METADATA}/latest/", f"{METADATA}:80"),
    "metadata-name": ("curl -s -m 9 http://metadata.google.internal/",
                      "metadata.google.internal:80"),
    "number": ("curl -s -m 9 http://1572395042/; python3 -c 'import socket;socket.create_connection"
               "((\"1572395042\",80),9).recv(9)'", None),
    "six": ("curl -s -m 9 'http://[2606:2800:220:1::1]/'", "[2606:2800:220:1::1]:80"),
    "mapped": (f"curl -s -m 9 'http://[::ffff:{PRIVATE}]/'", None),
    "unmapped": ("curl -s -m 9 http://198.19.77.77/", None),
    "connect": ("curl -s -m 9 -p http://other.example/", "other.example:80"),
    "socks": ("curl -s -m 9 -x socks5h://198.18.255.253:3128 http://other.example/",
              "other.example:80"),
    "socks-address": (f"curl -s -m 9 -x socks5://198.18.255.253:3128 http://{OTHER}/",
                      f"{OTHER}:80"),
    "dns": ("python3 -c 'import socket\ns=socket.socket(2,2);s.settimeout(5)\n"
            "s.sendto(bytes.fromhex(\"123401000001000000000000056f74686572076578616d706c65"
            "0000010001\"),(\"8.8.8.8\",53))\ns.recv(512)'", None),
    "udp": ("python3 -c 'import socket\ns=socket.socket(2,2);s.connect((\"93.184.216.34\",443))\n"
            "s.send(b\"x\");s.settimeout(2);s.recv(9)'", None),
}


@pytest.mark.parametrize("through", ["captured", "door"])
@pytest.mark.parametrize("case", DENIED)
def test_denied(host, place, case, through):
    script, target = DENIED[case]
    ran = run(host, place, ["pub.example:80", "pub.example:443"],
              (DIRECT if through == "captured" else "") + script + "; exit 3")
    assert "upstream" not in ran.out and ran.status == 3, ran
    assert not ran.asked and not ran.connected, ran
    if target:
        assert target in [words[1] for words in ran.denials], ran


# An allowed name whose addresses, or whose content, are not what the rule is for.
CONTENT = {
    "private": ("private.example:80", "curl -s -m 9 http://private.example/"),
    "inward": ("inward.example:80", "curl -s -m 9 http://inward.example/"),
    "mixed": ("mixed.example:80", "curl -s -m 9 http://mixed.example/"),
    "metadata": ("meta.example:80", "curl -s -m 9 http://meta.example/"),
    "loopback": ("loop.example:80", "curl -s -m 9 http://loop.example/"),
    "fronting": ("pub.example:443", "curl -sk -m 9 --connect-to other.example:443:pub.example:443 "
                 "https://other.example/"),
    "host": ("pub.example:80", "curl -s -m 9 -H 'Host: other.example' http://pub.example/"),
    "no-sni": ("pub.example:443", "openssl s_client -noservername -connect pub.example:443 "
               "</dev/null"),
    "smuggling": ("pub.example:80", "exec 3<>/dev/tcp/pub.example/80; printf 'POST / HTTP/1.1\\r\\n"
                  "Host: pub.example\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n"
                  "\\r\\n0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3"),
}


@pytest.mark.parametrize("case", CONTENT)
def test_content(host, place, case):
    allow, script = CONTENT[case]
    ran = run(host, place, [allow], DIRECT + script + "; exit 3")
    assert "upstream" not in ran.out and ran.status == 3, ran
    assert not ran.payload, ran
    if case in ("private", "inward", "mixed", "metadata", "loopback"):
        assert not ran.connected, ran
        assert [words[0] for words in ran.denials] == ["net.special"], ran
    else:
        assert {words[0] for words in ran.denials} == {"net.content"}, ran


def test_own_servers(host, place):
    """The box's own loopback is nobody's business."""
    ran = run(host, place, ["pub.example:80"], "cd /tmp; echo mine >f; "
              "python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & "
              "for i in $(seq 100); do curl -sf http://localhost:8000/f && exit 0; sleep 0.1; done;"
              "exit 9")
    assert (ran.status, ran.out) == (0, "mine\n"), ran
    assert not ran.seen and not ran.denials, ran


def test_record(host, place):
    ran = run(host, place, ["pub.example:80"], "curl -s http://pub.example/x; "
              "curl -s http://other.example/; exit 3", "--json")
    result = json.loads(ran.out.splitlines()[-1])
    rows = {(row["host"], row["verdict"]): row for row in result["network"]["targets"]}
    allowed = rows["pub.example", "allow"]
    assert allowed["count"] == 1 and allowed["bytes_down"] > 0 and allowed["protocol"] == "http"
    assert rows["other.example", "deny"]["rule"]["id"] == "egress.default"
    chain, = chains(place).values()
    flows = [one["body"] for one in chain if one["type"] == "net.flow"]
    assert {"opened", "closed", "stopped"} == {flow["phase"] for flow in flows}
    dial, = [one["body"] for one in chain if one["type"] == "net.dial"]
    assert (dial["target"], dial["outcome"], dial["tried"]) == ("pub.example:80", "done", [PUBLIC])
    shown = subprocess.run([BAWN, "trace", "show", *place.options, chain[0]["task"]], text=True,
                           capture_output=True, check=False, timeout=30).stdout
    assert "connected  pub.example:80 http (flag --allow-host)" in shown, shown
    assert "connect    pub.example, port" in shown, shown


# Each of many descriptors is looked at to find out who connects; then something else, and the end.
BUSY = """
import os, resource, socket
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
slow = [socket.socket() for _ in range(60)]
last = socket.socket()
places = [socket.getaddrinfo(name, 80, socket.AF_INET)[0][4] for name in ("pub.example",
                                                                         "other.example")]
try:
    for _ in range(16000):
        os.dup(0)
except OSError:
    pass
for end in slow:
    end.connect(places[0])
    end.sendall(b"GET / HTTP/1.0\\r\\nHost: pub.example\\r\\n\\r\\n")
last.connect(places[1])
last.sendall(b"POST / HTTP/1.0\\r\\nHost: other.example\\r\\nContent-Length: 50000\\r\\n\\r\\n" +
             bytes(50000))
last.recv(100)
os._exit(0)
"""


def test_what_was_said_before_the_end_is_heard(host, place, tmp_path):
    """However long a search takes that stands before it."""
    policy = policy_in(tmp_path)
    policy.write_text("version: 1\nnetwork:\n  allow:\n    - {host: pub.example, ports: [80], "
                      "protocol: http, tool: /usr/bin/curl}\n    - {host: other.example, "
                      "ports: [80], protocol: http}\n")
    (place.work / "busy.py").write_text(BUSY)
    ran = run(host, place, [], DIRECT + "exec python3 busy.py", "--json", "--policy", str(policy))
    assert ran.status == 0, ran
    rows = {row["host"]: row for row in json.loads(ran.out.splitlines()[-1])["network"]["targets"]
            if row["verdict"] == "allow"}
    assert rows["other.example"]["bytes_up"] > 50000, (rows, ran)
    chain, = chains(place).values()
    phases = [one["body"]["phase"] for one in chain if one["type"] == "net.flow" and
              one["body"]["host"] == "other.example"]
    assert phases == ["opened", "closed"], phases


# Names that nothing allows take the places for what was refused; then a chunk that is none.
SPOILED = """
import socket
for i in range(80):
    try:
        socket.getaddrinfo(f"n{i}.invalid.example", 80)
    except OSError:
        pass
    socket.create_connection((f"n{i}.invalid.example", 80)).close()
end = socket.create_connection(("pub.example", 80))
end.sendall(b"POST /x HTTP/1.1\\r\\nHost: pub.example\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
for _ in range(10):
    end.sendall(b"2710\\r\\n" + bytes(10000) + b"\\r\\n")
end.sendall(b"zz\\r\\n")
while end.recv(4096):
    pass
"""


def test_what_was_sent_is_told_however_it_ends(host, place):
    """What opened a connection has its bytes, and not the fault that the task ended it with."""
    (place.work / "spoil.py").write_text(SPOILED)
    ran = run(host, place, ["pub.example:80"], DIRECT + "python3 spoil.py", "--json")
    rows = json.loads(ran.out.splitlines()[-1])["network"]["targets"]
    mine = {row["verdict"]: row for row in rows if row["host"] == "pub.example"}
    assert mine["allow"]["bytes_up"] > 10000 and mine["allow"]["count"] == 1, mine
    assert mine.get("deny", {"bytes_up": 0})["bytes_up"] == 0, mine
    chain, = chains(place).values()
    flows = [one["body"] for one in chain if one["type"] == "net.flow"]
    told = sum(flow["bytes_up"] for flow in flows if flow["host"] == "pub.example")
    assert told == mine["allow"]["bytes_up"], flows


# An upload whose answer has no end, so that the connection has none but the task's.
LEFT_OPEN = """
import os, socket, time
end = socket.create_connection(("pub.example", 80))
end.sendall(b"POST /events HTTP/1.1\\r\\nHost: pub.example\\r\\n"
            b"Content-Length: 3000000\\r\\n\\r\\n" + bytes(3000000))
time.sleep(0.5)
for _ in range(20):
    try:
        socket.create_connection(("93.184.216.99", 80)).recv(1)
    except OSError:
        pass
os._exit(0)
"""


def test_what_is_open_at_the_end_is_told(host, place):
    """Its bytes are in the record and in the result, and each refusal of the last moment counts."""
    (place.work / "left.py").write_text(LEFT_OPEN)
    ran = run(host, place, ["pub.example:80"], DIRECT + "exec python3 left.py", "--json")
    assert ran.status == 0, ran
    rows = {(row["host"], row["verdict"]): row
            for row in json.loads(ran.out.splitlines()[-1])["network"]["targets"]}
    mine = rows["pub.example", "allow"]
    assert mine["count"] == 1 and mine["bytes_up"] > 3000000, rows
    assert rows["93.184.216.99", "deny"]["count"] == 20, rows
    chain, = chains(place).values()
    flows = [one["body"] for one in chain if one["type"] == "net.flow"]
    assert [(flow["phase"], flow["bytes_up"]) for flow in flows if flow["host"] == "pub.example"] \
        == [("opened", 0), ("closed", mine["bytes_up"])], flows
    assert sum(flow["repeated"] or 1 for flow in flows if flow["host"] == "93.184.216.99") == 20


@pytest.fixture(scope="module")
def without_rules(tmp_path_factory):
    """What begins a command for whom the kernel has no rules of nft."""
    deny = tmp_path_factory.mktemp("tools") / "deny"
    subprocess.run([shutil.which("cc") or "gcc", "-D_GNU_SOURCE", "-static", "-I", ROOT / "src",
                    "-o", deny, ROOT / "tests/tools/deny.c"], check=True)
    deny.parent.chmod(0o755)
    return [str(deny), "EPROTONOSUPPORT", "socket:netfilter"]


def test_a_kernel_without_rules(host, place, without_rules):
    """Listeners on the ports that rules name take the place of the rules, and that is said."""
    script = (DIRECT + "curl -sS -m 20 http://pub.example/x; curl -s -m 9 http://other.example/; "
              "curl -s -m 9 http://pub.example:8080/x; curl -s -m 9 http://93.184.216.99/; true")
    ran = run(host, place, ["pub.example:80"], script, prefix=without_rules)
    assert ran.status == 0 and "GET /x HTTP/1." in ran.out, ran
    assert len(ran.connected) == 1 and ran.asked == {"pub.example"}, ran
    assert ["net.host", "other.example:80"] in ran.denials, ran
    assert "has no rules that capture every connection" in ran.err, ran
    ran = run(host, place, ["pub.example:80"], DIRECT + "curl -sS -m 20 http://pub.example/x")
    assert "no rules that capture" not in ran.err, ran


@pytest.mark.parametrize("kernel, word, starts", [
    ("without", "all", False), ("without", "ports", True), ("with", "all", True)])
def test_a_policy_that_wants_all_captured(host, place, tmp_path, without_rules, kernel, word,
                                          starts):
    """network.capture: all starts nothing where only ports that rules name could be captured."""
    policy = policy_in(tmp_path)
    policy.write_text(f"version: 1\nnetwork: {{allow: [{{host: pub.example, ports: [80]}}], "
                      f"capture: {word}}}\n")
    ran = run(host, place, [], DIRECT + "touch started; curl -sS -m 20 http://pub.example/x",
              "--policy", policy, prefix=without_rules if kernel == "without" else ())
    assert (place.work / "started").exists() == starts, ran
    if starts:
        assert ran.status == 0 and "GET /x HTTP/1." in ran.out, ran
        return
    assert ran.status == 125, ran
    for part in ("network.capture is all", "nft_tproxy", "network.capture: ports"):
        assert part in ran.err, (part, ran)
    assert not ran.asked and not ran.connected, ran


def policy_in(directory):
    if not IS_ROOT:
        pytest.skip("the directories above a policy are root's, who is not seen in a user's "
                    "namespaces")
    directory.chmod(0o755)
    return directory / "policy.yaml"


NESTED = """
PATH=$PATH:/usr/sbin:/sbin
curl -sS -m 9 http://pub.example/outer
unshare -Ur sh -c 'ip route flush table local; ip link set lo down; nft flush ruleset
    ip addr flush dev lo; sysctl -w net.ipv4.ip_forward=1
    curl -sS -m 9 http://pub.example/inner; curl -s -m 9 http://other.example/
    curl -s -m 9 http://169.254.169.254/'
unshare -Urn sh -c 'ip link set lo up; curl -sS -m 5 http://pub.example/apart
    curl -sS -m 5 http://93.184.216.34/apart'
curl -sS -m 9 http://pub.example/after
exit 3
"""


def test_nested_namespaces(host, place):
    """Who may make namespaces is root of what has no way out, and of nothing of ours."""
    ran = run(host, place, ["pub.example:80"], DIRECT + NESTED, "--nested-userns")
    assert ran.status == 3, ran
    for word, is_there in (("outer", True), ("inner", True), ("after", True), ("apart", False)):
        assert (f"GET /{word} " in ran.out) == is_there, (word, ran)
    assert ran.asked == {"pub.example"} and ran.connected == {f"{PUBLIC}:80"}, ran
    denied = [words[1] for words in ran.denials]
    assert "other.example:80" in denied and "169.254.169.254:80" in denied, ran


def test_rules_in_words(host, place):
    """The plan, the box's own summary and a decision say the same rules."""
    allow = ["pub.example:443", "*.other.example:8000-8010"]
    ran = run(host, place, allow, "cat /run/bawn/policy.txt; echo; cat /run/bawn/policy.json")
    assert "allow  pub.example, ports 443, " in ran.out, ran
    rules = json.loads(ran.out.splitlines()[-1])["network_rules"]
    assert [rule["verdict"] for rule in rules] == ["allow", "allow"]
    assert rules[1]["text"].startswith("*.other.example, ports 8000-8010"), rules
    words = [word for name in allow for word in ("--allow-host", name)]

    def verb(*arguments):
        return subprocess.run([BAWN, *arguments], cwd=place.work, text=True, check=False,
                              capture_output=True, timeout=LIMIT_S)
    shown = verb("plan", *place.options, *words).stdout
    assert "proxy  allow pub.example, ports 443" in shown, shown
    shown = json.loads(verb("plan", *place.options, *words, "--json").stdout)
    assert shown["network_rules"] == rules


def test_a_closed_way_is_not_resolved(host, place, tmp_path):
    """Where denials leave nothing of what is allowed, no name is asked for and nothing dialled."""
    policy = policy_in(tmp_path)
    policy.write_text("version: 1\nnetwork:\n  allow:\n    - {host: pub.example, ports: [80], "
                      "protocol: http}\n  deny:\n    - {host: pub.example, protocol: http}\n")
    ran = run(host, place, [], "curl -s -m 9 http://pub.example/; exit 3", "--policy", str(policy))
    assert ran.status == 3 and not ran.seen, ran
    assert ["net.rule", "pub.example:80"] in ran.denials, ran


def test_a_person_is_asked_about_the_request(host, place, tmp_path):
    """With its path as it came, which a rule does not take for what it may be."""
    policy = policy_in(tmp_path)
    policy.write_text("version: 1\nnetwork:\n  ask:\n    - {host: pub.example, ports: [80], "
                      "protocol: http}\n")
    paths = ["/a?q=1", "/a/../b", "/%2e/\\x1b%0a", "/" + 600 * "a"]
    ran = run(host, place, [], DIRECT + "".join(
        f"curl -s -m 9 --path-as-is 'http://pub.example{path}' -o /dev/null; " for path in paths),
        "--policy", str(policy))
    chain, = chains(place).values()
    asked = [one["body"] for one in chain if one["type"] == "approval"
             and one["body"]["verb"] == "net.connect"]
    assert [(one["target"], one["shown"]) for one in asked] == [
        ("pub.example:80", f"GET http://pub.example:80{path[:511]}" + "..." * (len(path) > 511))
        for path in paths], ran
    assert not ran.connected and {one["answer"] for one in asked} == {"deny"}, ran


# Has left before anybody can look for it.
GONE = """python3 -c 'import socket
for port in range(1000, 1004):
    socket.create_connection(("1.2.3.4", port)).close()'; exit 3"""


def test_two_actions_of_a_live_task(host, place):
    """Each has what is its own; what cannot be told apart is shown to both, and said to be so."""
    def argv(*words):
        return [*host.prefix[:-1], f"--wdns={place.work}", BAWN, "task", words[0], *place.options,
                *words[1:]]

    def verb(*words):
        return subprocess.run(argv(*words), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)

    task = verb("start", "--allow-host", "pub.example:80").stdout.strip()
    # pylint: disable-next=consider-using-with # ends with its task
    beside = subprocess.Popen(argv("exec", task, "--json", "--", "bash", "-c",
                                   "echo up; until [ -e over ]; do sleep 0.1; done"),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert beside.stdout.readline() == "up\n"
    ran = verb("exec", "--json", task, "--", "bash", "-c", DIRECT +
               "curl -s -m 9 http://other.example/; "
               "(exec 3<>/dev/tcp/pub.example/80; printf 'GET /mine HTTP/1.0\\r\\n\\r\\n' >&3; "
               "sleep 0.5; cat <&3); (exec 3<>/dev/tcp/1.2.3.4/99; cat <&3) 2>/dev/null; " + GONE)
    (place.work / "over").touch()
    others = json.loads(beside.stdout.read().splitlines()[-1])
    beside.wait(LIMIT_S)
    verb("end", task)
    mine = json.loads(ran.stdout.splitlines()[-1])

    def denials(result):
        return {(one["object"], one["evidence"]) for one in result["denials"]}
    alone = {("other.example:80", "measured"), ("1.2.3.4:99", "measured")}
    assert alone <= denials(mine) and not alone & denials(others), (ran, others)
    doubtful = {one for one in denials(mine) if one[1] == "inferred"}
    assert doubtful and doubtful == denials(others), (ran, others)
    assert "perhaps not this one" in ran.stderr, ran
    rows = {(row["host"], row["verdict"]): row for row in mine["network"]["targets"]}
    assert rows["pub.example", "allow"]["bytes_down"] > 0, ran
    assert ("other.example", "deny") in rows and "network" not in others, (ran, others)
    chain, = chains(place).values()
    opened, = [one for one in chain
               if one["type"] == "net.flow" and one["body"]["phase"] == "opened"]
    assert opened["action"] == mine["action"]["id"], chain


def process_of(place, name):
    """A role of the task that a supervisor keeps in this state directory, or (bawn) that itself."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            pid = int(comm.parent.name)
            if comm.read_text("utf-8") != f"{name}\n":
                continue
            told = (comm.parent / "stat").read_text("utf-8")
            above = pid if name == "bawn" else told.rpartition(")")[2].split()[1]
            if str(place.state).encode() in Path(f"/proc/{above}/cmdline").read_bytes():
                return pid
    return None


def test_the_only_connection_may_be_the_last_deed(host, place):
    """The supervisor hears of it and of the command's end at once, and has no proxy yet."""
    argv = [*host.prefix[:-1], f"--wdns={place.work}", BAWN, "run", *place.options, "--json",
            "--allow-host", "pub.example:80", "--", "bash", "-c",
            "echo up; until [ -e go ]; do sleep 0.01; done; echo >went; "
            "exec 3<>/dev/tcp/1.2.3.4/99"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True) as child:
        assert child.stdout.readline() == "up\n"
        supervisor = process_of(place, "bawn")
        os.kill(supervisor, signal.SIGSTOP)
        (place.work / "go").touch()
        assert eventually((place.work / "went").exists)
        time.sleep(0.2)
        os.kill(supervisor, signal.SIGCONT)
        result = json.loads(child.communicate(timeout=LIMIT_S)[0].splitlines()[-1])
    assert [one["object"] for one in result["denials"]] == ["1.2.3.4:99"], result


def test_the_last_deeds_of_an_action_are_in_its_result(host, place):
    """The proxy sees them after the action has ended; the first one's it is started for."""
    def verb(*words):
        return subprocess.run([*host.prefix[:-1], f"--wdns={place.work}", BAWN, "task", words[0],
                               *place.options, *words[1:]], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)

    task = verb("start", "--allow-host", "pub.example:80").stdout.strip()
    try:
        for port in range(2000, 2006):
            proxy = process_of(place, "bawn-proxy")
            if proxy:
                os.kill(proxy, signal.SIGSTOP)
                threading.Timer(0.2, os.kill, (proxy, signal.SIGCONT)).start()
            ran = verb("exec", "--json", task, "--", "bash", "-c",
                       f"exec 3<>/dev/tcp/1.2.3.4/{port} 4<>/dev/tcp/5.6.7.8/{port}; exit 3")
            result = json.loads(ran.stdout.splitlines()[-1])
            assert sorted(one["object"] for one in result["denials"]) == [
                f"1.2.3.4:{port}", f"5.6.7.8:{port}"], (port, proxy, ran)
            assert proxy or port == 2000
        # a proxy that does not answer holds a result up for half a second
        proxy = process_of(place, "bawn-proxy")
        os.kill(proxy, signal.SIGSTOP)
        before = time.monotonic()
        ran = verb("exec", "--json", task, "--", "true")
        assert ran.returncode == 0 and 0.5 <= time.monotonic() - before < 5, ran
        # and none but the first
        before = time.monotonic()
        assert verb("exec", "--json", task, "--", "true").returncode == 0
        assert time.monotonic() - before < 0.5
        os.kill(proxy, signal.SIGCONT)
        time.sleep(0.2)
        ran = verb("exec", "--json", task, "--", "bash", "-c", "exec 3<>/dev/tcp/1.2.3.4/2100")
        assert "1.2.3.4:2100" in ran.stdout, ran
        assert verb("exec", "--json", task, "--", "true").returncode == 0
    finally:
        verb("end", task)


POST = "curl -s -m 9 -X POST http://private.example/admin; "
# What allows the name, what opens its address, and what is in neither.
BEYOND = [
    ("host: '*.example', dangerous: true, protocol: http, methods: [GET, POST]",
     "host: private.example, protocol: http, private: true, methods: [GET], paths: [/ok]",
     "curl -s -m 9 http://private.example/ok; " + POST, "GET /ok"),
    ("host: private.example, protocol: http, methods: [GET, POST]",
     "host: 10.1.2.3, protocol: http, methods: [GET], paths: [/ok]",
     "curl -s -m 9 http://private.example/ok; " + POST, "GET /ok"),
    ("host: private.example", "host: 10.1.2.3, protocol: ssh", POST, None),
    ("host: private.example", "host: 10.1.2.3, protocol: http, max-bytes: 100000", POST, None),
    ("host: '*.example', dangerous: true, protocols: [tcp]",
     "host: private.example, protocols: [tcp], private: true, tool: /usr/bin/curl",
     "curl -s -m 9 http://private.example/ok; python3 -c 'import urllib.request as u;"
     "u.urlopen(\"http://private.example/no\", timeout=9)' 2>/dev/null; ", "GET /ok"),
]


@pytest.mark.parametrize("wide, narrow, script, may", BEYOND)
def test_what_opens_a_private_service_opens_no_more(host, place, tmp_path, wide, narrow, script,
                                                    may):
    policy = policy_in(tmp_path)
    policy.write_text("version: 1\nnetwork:\n  allow:\n" + "".join(
        f"    - {{{rule}, ports: [80]}}\n" for rule in (wide, narrow)))
    ran = run(host, place, [], DIRECT + script + "exit 3", "--policy", str(policy))
    lines = [one["line"] for one in ran.seen if one["kind"] == "request"]
    assert ran.status == 3 and lines == ([f"{may} HTTP/1.1"] if may else []), ran
    assert bool(ran.payload) == bool(may), ran
    assert ["net.special", "private.example:80"] in ran.denials, ran


def test_no_network_by_default(host, place):
    ran = run(host, place, [], "curl -s -m 5 http://pub.example/; env | grep -i _proxy; exit 3")
    assert ran.status == 3 and ran.out == "" and not ran.seen, ran


def test_verify(host, place):
    """All of it is refused inside, or asked of nobody: the host's name server has no question."""
    host.forget()
    done = subprocess.run([*host.prefix[:-1], f"--wdns={place.work}", BAWN, "verify",
                           *place.options, "--allow-host", "pub.example:443"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
                          check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    for row in ("name that leads to 169.254.169.254", "name server is ours, by TCP 8.8.8.8",
                "look up and connect kubernetes.default.svc 443"):
        assert row in done.stdout, (row, done.stdout)
    assert not Ran(done, host).seen, Ran(done, host)
