"""
Everyday programs through a task's network, each against servers, mirrors and a resolver of the
test's own (hostnet.py): with a name that is allowed, and right behind it with one that is not. What
was denied is held against what the resolver and the servers saw: they know nothing of it.
"""
import base64
import contextlib
import hashlib
import io
import json
import os
import pwd
import shutil
import subprocess
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest

from boxed import BAWN
from hostnet import IS_ROOT, METADATA, OTHER, PRIVATE, PUBLIC, HostNet, is_possible
from test_egress import DIRECT, HAS_FLAG, place_of, policy_in, run
from test_trace_run import chains

pytestmark = pytest.mark.skipif(not HAS_FLAG or not is_possible(),
                                reason="no --allow-host in this build, or no unshare, ip, openssl")
TRUST = ("export SSL_CERT_FILE=$PWD/ca.pem CURL_CA_BUNDLE=$PWD/ca.pem GIT_SSL_CAINFO=$PWD/ca.pem "
         "NODE_EXTRA_CA_CERTS=$PWD/ca.pem PIP_CERT=$PWD/ca.pem REQUESTS_CA_BUNDLE=$PWD/ca.pem "
         "npm_config_cafile=$PWD/ca.pem HOME=/tmp GIT_TERMINAL_PROMPT=0; ")
WEB = ["pub.example:80", "pub.example:443"]
# Most of it is the program and what it maps of the rules; the rest does not grow with what passes.
PEAK_KB = 2048


# --- mirrors

def put(root, path, content):
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return content if isinstance(content, bytes) else content.encode()


def make_git(host):
    bare = host.mirror / "git/project.git"
    shutil.copytree(host.directory / "git/project.git", bare)
    subprocess.run(["git", "-C", bare, "-c", f"safe.directory={bare}", "update-server-info"],
                   check=True, capture_output=True)


def make_pip(root):
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w") as wheel:
        wheel.writestr("demo.py", "print('demo of pip')\n")
        wheel.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\n"
                       "Version: 1.0\n")
        wheel.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\n"
                       "Root-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\ndemo-1.0.dist-info/METADATA,,\n"
                       "demo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n")
    digest = hashlib.sha256(put(root, "pip/demo-1.0-py3-none-any.whl", room.getvalue()))
    put(root, "pip/simple/demo/index", '<a href="/pip/demo-1.0-py3-none-any.whl#sha256='
        f'{digest.hexdigest()}">demo-1.0-py3-none-any.whl</a>')


def make_npm(root):
    room = io.BytesIO()
    with tarfile.open(fileobj=room, mode="w:gz") as packed:
        for name, text in (("package.json", '{"name":"demo","version":"1.0.0"}'),
                           ("index.js", "console.log('demo of npm')\n")):
            entry = tarfile.TarInfo("package/" + name)
            entry.size = len(text)
            packed.addfile(entry, io.BytesIO(text.encode()))
    packed = put(root, "npm/files/demo-1.0.0.tgz", room.getvalue())
    whole = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    put(root, "npm/demo", json.dumps({
        "name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
            "name": "demo", "version": "1.0.0", "dist": {
                "tarball": "https://pub.example/npm/files/demo-1.0.0.tgz",
                "integrity": whole}}}}))


def make_apt(root):
    package = put(root, "apt/demo_1.0_all.deb", b"not unpacked by a download\n")
    put(root, "apt/Packages", "Package: demo\nVersion: 1.0\nArchitecture: all\n"
        "Maintainer: t <t@t>\nDescription: demo\nFilename: demo_1.0_all.deb\n"
        f"Size: {len(package)}\nSHA256: {hashlib.sha256(package).hexdigest()}\n\n")


@pytest.fixture(name="host", scope="module")
def _host(tmp_path_factory):
    made = HostNet(tmp_path_factory.mktemp("clients"))
    try:
        make_git(made)
        for make in (make_pip, make_npm, make_apt):
            make(made.mirror)
        yield made
    finally:
        made.close()


@pytest.fixture(name="place")
def _place(host):
    with place_of() as made:
        shutil.copy(host.directory / "cert.pem", made.work / "ca.pem")
        yield made


# --- clients

JAVA = """
import java.net.*; import java.net.http.*; import java.security.*; import java.security.cert.*;
import javax.net.ssl.*; import java.io.*;
public class Fetch { public static void main(String[] words) throws Exception {
  KeyStore keys = KeyStore.getInstance(KeyStore.getDefaultType()); keys.load(null, null);
  keys.setCertificateEntry("test", CertificateFactory.getInstance("X.509").generateCertificate(
    new FileInputStream("ca.pem")));
  TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX"); trust.init(keys);
  SSLContext tls = SSLContext.getInstance("TLS"); tls.init(null, trust.getTrustManagers(), null);
  HttpClient client = HttpClient.newBuilder().sslContext(tls).build();
  for (String url : words) try { System.out.println(client.send(HttpRequest.newBuilder(
    URI.create(url)).build(), HttpResponse.BodyHandlers.ofString()).body());
  } catch (IOException error) { System.out.println("failed " + error); }
} }
"""
PYTHON = """
from pip._vendor import requests, urllib3
import sys
print(urllib3.PoolManager(ca_certs="ca.pem").request("GET", "https://pub.example/u").data.decode())
s = requests.Session(); s.verify = "ca.pem"
print(s.get("https://pub.example/x", timeout=20).text)
try:
    print(s.get("https://other.example/x", timeout=20).text)
except requests.exceptions.RequestException as error:
    print("failed", type(error).__name__)
"""
NODE = """
const https = require('https');
const get = url => new Promise((done, fail) => https.get(url, answer => {
  let text = ''; answer.on('data', part => text += part); answer.on('end', () => done(text));
}).on('error', fail));
(async () => {
  console.log(await get('https://pub.example/x'));
  console.log(await (await fetch('https://pub.example/x')).text());
  for (const way of [get, fetch]) try { console.log(await way('https://other.example/')); }
  catch (error) { console.log('failed'); }
})();
"""
GO = """
package main
import ("crypto/tls"; "crypto/x509"; "fmt"; "io"; "net/http"; "os")
func main() {
  roots := x509.NewCertPool(); pem, _ := os.ReadFile("ca.pem"); roots.AppendCertsFromPEM(pem)
  client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
  for _, url := range []string{"https://pub.example/x", "https://other.example/"} {
    if answer, err := client.Get(url); err != nil { fmt.Println("failed", err) } else {
      text, _ := io.ReadAll(answer.Body); fmt.Println(string(text)) }
  }
}
"""


def apt(name, verb):
    return (f"mkdir -p a/lists/partial a/cache/archives/partial a/parts a/state; touch a/status; "
            f"echo 'deb [trusted=yes] http://{name}/apt/ /' >a/list; "
            "apt-get -q -o Dir::Etc::SourceList=$PWD/a/list -o Dir::Etc::SourceParts=$PWD/a/parts "
            "-o Dir::State=$PWD/a/state -o Dir::State::Lists=$PWD/a/lists "
            "-o Dir::State::status=$PWD/a/status -o Dir::Cache=$PWD/a/cache -o "
            "Acquire::Languages=none -o Acquire::Retries=0 -o APT::Sandbox::User= " + verb)


# program, files to write, script; the words that its output must have
CLIENTS = {
    "curl": ("curl", {}, "curl -sS -m 20 https://pub.example/x; "
             "curl -sS -m 9 https://other.example/ || echo failed", "GET /x "),
    "wget": ("wget", {}, "wget -q -T 20 --ca-certificate=ca.pem -O - https://pub.example/x; "
             "wget -q -t 1 -T 9 --ca-certificate=ca.pem -O - https://other.example/ "
             "|| echo failed", "GET /x "),
    "git": ("git", {}, "git clone -q https://pub.example/git/project.git /tmp/c && cat /tmp/c/file;"
            " git clone -q https://other.example/git/project.git /tmp/d || echo failed",
            "of the upstream"),
    "requests": ("python3", {"get.py": PYTHON}, "/usr/bin/python3 get.py", "GET /u "),
    "node": ("node", {"get.js": NODE}, "node get.js", "GET /x "),
    "java": ("java", {"Fetch.java": JAVA}, "java -XX:TieredStopAtLevel=1 -Xshare:auto Fetch.java "
             "https://pub.example/x https://other.example/", "GET /x "),
    "go": ("go", {"get.go": GO}, "GOFLAGS=-mod=mod GOCACHE=/tmp/g go run get.go", "GET /x "),
    "pip": ("pip", {}, "/usr/bin/python3 -m pip install -q --disable-pip-version-check --no-deps "
            "--no-cache-dir --retries 0 --index-url https://pub.example/pip/simple/ --target /tmp/p"
            " demo && python3 /tmp/p/demo.py; /usr/bin/python3 -m pip download -q --retries 0 "
            "--disable-pip-version-check --no-cache-dir --timeout 9 -d /tmp/q "
            "--index-url https://other.example/pip/simple/ demo || echo failed", "demo of pip"),
    "npm": ("npm", {}, "npm install --silent --no-audit --no-fund --prefix /tmp/n --registry "
            "https://pub.example/npm/ demo && node /tmp/n/node_modules/demo/index.js; npm install "
            "--silent --no-audit --no-fund --fetch-retries=0 --prefix /tmp/m --registry "
            "https://other.example/npm/ demo || echo failed", "demo of npm"),
    "apt": ("apt-get", {}, apt("pub.example", "update >/dev/null; ")
            + apt("pub.example", "download demo >/dev/null; cat demo_1.0_all.deb; rm -rf a; ")
            + apt("other.example", "update 2>&1 | grep -q -e ^E: -e ^W: && echo failed"),
            "not unpacked by a download"),
}


# Seconds each: an ordinary user's go one way, root's the other; both ways in `make soak`.
SLOW = {"git", "java", "go", "npm", "pip", "apt"}


@pytest.mark.parametrize("through", ["captured", "door"])
@pytest.mark.parametrize("client", CLIENTS)
def test_client(host, place, client, through):
    program, files, script, words = CLIENTS[client]
    if client in SLOW and (through == "door") != IS_ROOT and not os.environ.get("BAWN_SOAK"):
        pytest.skip("the other caller's way: BAWN_SOAK")
    if client == "java" and through == "door":
        pytest.skip("Java takes no proxy from variables")
    if not os.path.exists(f"/usr/bin/{program}"):
        pytest.skip(f"no {program} here: it comes with none of the set-up's packages")
    for name, text in files.items():
        (place.work / name).write_text(text)
    ran = run(host, place, WEB, (DIRECT if through == "captured" else "") + TRUST + script,
              limit=200)
    assert words in ran.out and "failed" in ran.out, ran
    assert ran.asked == {"pub.example"}, ran
    assert ran.connected and {one.rpartition(":")[0] for one in ran.connected} == {PUBLIC}, ran
    assert {words[1].partition(":")[0] for words in ran.denials} == {"other.example"}, ran


def test_no_proxy(host, place):
    """A program that takes no proxy where it is told not to is captured all the same."""
    ran = run(host, place, WEB, TRUST + "export no_proxy='*' NO_PROXY='*'; curl -sS -m 9 "
              "https://pub.example/x; curl -sS -m 9 https://other.example/; exit 3")
    assert "GET /x " in ran.out and ran.asked == {"pub.example"}, ran
    assert [words[1] for words in ran.denials] == ["other.example:443"], ran


def test_git_over_ssh(host, place):
    keys = host.directory / "ssh"
    if not keys.exists():
        pytest.skip("no dropbear here, which tools/setup installs")
    for name in ("known", "deploy"):
        shutil.copy(keys / name, place.work / name)
    me = pwd.getpwuid(os.geteuid()).pw_name
    script = ("export GIT_SSH_COMMAND=\"ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes "
              "-o UserKnownHostsFile=$PWD/known -i $PWD/deploy -o ConnectTimeout=9\"; "
              f"git clone -q ssh://{me}@{{}}:2222{host.directory}/git/project.git /tmp/c "
              "&& cat /tmp/c/file")
    ran = run(host, place, ["pub.example:2222"], DIRECT + script.format("pub.example"))
    assert (ran.status, ran.out) == (0, "of the upstream\n"), (ran, (keys / "log").read_text())
    ran = run(host, place, ["pub.example:2222"], DIRECT + script.format("other.example"))
    assert ran.status and ["net.host", "other.example:2222"] in ran.denials, ran
    assert "--allow-host other.example:2222" in ran.err and not ran.seen, ran


# --- what is sent, and what comes back

def test_redirect(host, place):
    """The proxy follows none; the program that does is judged anew."""
    ran = run(host, place, WEB, DIRECT + "curl -sS -m 9 -L http://pub.example/to/other.example; "
              f"curl -sS -m 9 -L http://pub.example/to/{METADATA}; "
              "curl -sS -m 9 -L http://pub.example/to/pub.example; exit 3")
    assert ran.status == 3 and "GET / HTTP" in ran.out, ran
    assert ran.asked == {"pub.example"} and ran.connected == {f"{PUBLIC}:80"}, ran
    assert [words[1] for words in ran.denials] == ["other.example:80", f"{METADATA}:80"], ran


@pytest.mark.parametrize("name, inner", [("rebind", PRIVATE), ("remeta", METADATA)])
def test_rebinding(host, place, name, inner):
    """A name that leads to the public network, and at the next look inside."""
    ran = run(host, place, [f"{name}.example:80"], DIRECT
              + f"for i in 1 2 3; do curl -sS -m 9 http://{name}.example/$i; done; exit 3")
    assert "GET /1 " in ran.out and f"upstream {inner}" not in ran.out, ran
    assert ran.connected == {f"{PUBLIC}:80"}, ran
    assert ["net.special", f"{name}.example:80"] in ran.denials, ran


def test_fronting(host, place):
    """Both names are allowed: still, what is said inside is not where it goes."""
    ran = run(host, place, [*WEB, "alias.example:443"], DIRECT + TRUST
              + "curl -sS -m 9 --connect-to alias.example:443:pub.example:443 "
              "https://alias.example/; curl -sS -m 9 -H 'Host: other.example' http://pub.example/;"
              " exit 3")
    assert ran.status == 3 and "upstream" not in ran.out and ran.payload == 0, ran
    assert ran.asked <= {"pub.example"}, ran


SMUGGLED = {
    "both": "Content-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n",
    "two-lengths": "Content-Length: 4\\r\\nContent-Length: 5\\r\\n",
    "odd-coding": "Transfer-Encoding: xchunked\\r\\n",
    "folded": "Transfer-Encoding:\\r\\n chunked\\r\\n",
    "bare-line": "X: 1\\nTransfer-Encoding: chunked\\r\\n",
}


def test_smuggling(host, place):
    script = "".join(
        "(exec 3<>/dev/tcp/pub.example/80; printf 'POST / HTTP/1.1\\r\\nHost: pub.example\\r\\n"
        + fields + "\\r\\n0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n'"
        " >&3; timeout 9 head -1 <&3); " for fields in SMUGGLED.values())
    ran = run(host, place, WEB, DIRECT + script + "exit 3")
    answers = [line.split()[1] for line in ran.out.splitlines() if line.startswith("HTTP/1.1 ")]
    assert len(answers) == len(SMUGGLED) and set(answers) <= {"400", "501"}, ran
    assert ran.payload == 0, ran


UNCLEAR = ("/a//b", "/a;v=1/b", "/a%2Fb", "/a%252e", "/a/../b", "/%c0%af")


@pytest.mark.parametrize("paths", ["", ", paths: [/**]"])
def test_paths_that_servers_differ_about(host, place, tmp_path, paths):
    """They go through as they are, but not where a rule looks at paths."""
    policy = policy_in(tmp_path)
    policy.write_text("version: 1\nnetwork:\n  allow:\n    - {host: pub.example, ports: [80], "
                      "protocol: http" + paths + "}\n")
    script = "".join(f"curl -sS -m 9 --path-as-is -w '%{{http_code}}\\n' -o /dev/null "
                     f"'http://pub.example{path}'; " for path in UNCLEAR)
    ran = run(host, place, [], DIRECT + script + "exit 3", "--policy", str(policy))
    lines = [each["line"].split()[1] for each in ran.seen if each["kind"] == "request"]
    assert ran.out.split() == len(UNCLEAR) * (["400"] if paths else ["200"]), ran
    assert lines == ([] if paths else list(UNCLEAR)), ran


WEBSOCKET = """
import base64, os, socket, ssl, sys
def talk(sock):
    sock.sendall(b"GET /ws HTTP/1.1\\r\\nHost: pub.example\\r\\nUpgrade: websocket\\r\\n"
                 b"Connection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: "
                 + base64.b64encode(os.urandom(16)) + b"\\r\\n\\r\\n")
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        more = sock.recv(1024)
        if not more:
            break
        head += more
    print(head.split(b"\\r\\n")[0].decode())
    if b" 101 " not in head:
        return
    for word in (b"one", b"two"):
        mask = os.urandom(4)
        sock.sendall(bytes([0x81, 0x80 | len(word)]) + mask
                     + bytes(byte ^ mask[i % 4] for i, byte in enumerate(word)))
        print(sock.recv(100)[2:].decode())
sock = socket.create_connection(("pub.example", int(sys.argv[1])), 20)
if sys.argv[1] == "443":
    sock = ssl.create_default_context(cafile="ca.pem").wrap_socket(
        sock, server_hostname="pub.example")
talk(sock)
"""
UPGRADE = """version: 1
network:
  allow:
    - host: pub.example
      ports: [80]
      protocol: http
      upgrade: true
"""


def test_websocket(host, place, tmp_path):
    (place.work / "ws.py").write_text(WEBSOCKET)
    # inside of TLS nobody sees it; in the clear it needs a rule
    ran = run(host, place, WEB, DIRECT + "python3 ws.py 443; python3 ws.py 80")
    assert ran.out.split("\n")[1:3] == ["one", "two"] and "HTTP/1.1 403" in ran.out, ran
    assert len(host.seen("request")) == 1, ran
    policy = policy_in(tmp_path)
    policy.write_text(UPGRADE)
    ran = run(host, place, [], DIRECT + "python3 ws.py 80", "--policy", str(policy))
    assert ran.out.split("\n")[1:3] == ["one", "two"] and " 101 " in ran.out, ran
    # both are on record as what they were, so that they can be decided again
    flows = [one["body"] for chain in chains(place).values() for one in chain
             if one["type"] == "net.flow" and one["body"]["method"]]
    assert {(one["phase"], one["verdict"], one["status"], one["upgrade"]) for one in flows} == {
        ("stopped", "deny", None, True), ("opened", "allow", None, True),
        ("closed", "allow", 101, True)}, flows
    said = subprocess.run([BAWN, "trace", "replay", "--state-dir", place.state, "--since", "1h",
                           "--json", "--preset", "develop"], capture_output=True, text=True,
                          timeout=60, check=False, cwd=place.work).stdout
    assert '"subject":"pub.example:80 GET /ws","before":"allow"' in said, said
    assert "not on record" not in said, said


def test_events(host, place):
    """Each event is there before the next is sent: the server waits for a word about it."""
    ran = run(host, place, WEB, DIRECT + "curl -sSN -m 60 http://pub.example/events | "
              "while read -r word number; do [ -n \"$word\" ] && echo $number && "
              "curl -sS -m 20 -o /tmp/ack http://pub.example/ack/$number; done")
    assert ran.out.split() == ["0", "1", "2"], ran


class Peaks(threading.Thread):
    """The most memory, in kB, that the roles of the network of a process's descendants had."""

    def __init__(self):
        super().__init__(daemon=True)
        self.kilobytes, self.over = {}, threading.Event()

    def look(self):
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                told = dict(line.split(":", 1) for line in
                            status.read_text("utf-8", "replace").splitlines() if ":" in line)
                name = told["Name"].strip()
                if name in ("bawn-proxy", "bawn-dialer") and is_below(int(told["PPid"])):
                    peak = int(told["VmHWM"].split()[0])
                    self.kilobytes[name] = max(peak, self.kilobytes.get(name, 0))

    def run(self):
        while not self.over.wait(0.05):
            self.look()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.join()


def is_below(pid):
    """Whether it is this process, or descends from it."""
    while pid > 1 and pid != os.getpid():
        told = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        pid = int(told.rpartition(")")[2].split()[1])
    return pid == os.getpid()


# Sent in one call, in packets above 64 KiB: those of version 6 have a header more.
LARGE = ("python3 -c 'import http.client; to = http.client.HTTPConnection(\"pub.example\"); "
         "to.request(\"PUT\", \"/sum\", open(\"body\", \"rb\").read()); "
         "print(to.getresponse().read().decode(), end=\"\")'")

# How a body is sent: with its length, in chunks, in TLS that is captured, and behind CONNECT.
UPLOADS = {
    "length": DIRECT + "curl -sS -m 500 -T body http://pub.example/sum",
    "chunked": DIRECT + "curl -sS -m 500 -T - http://pub.example/sum <body",
    "captured": DIRECT + TRUST + "curl -sS -m 500 -T body https://pub.example/sum",
    "connect": TRUST + "curl -sS -m 500 -T body https://pub.example/sum",
    "large": DIRECT + LARGE,
}


@pytest.mark.parametrize("way", UPLOADS)
def test_upload(host, place, way):
    """64 MiB, and with BAWN_SOAK 1 GiB, arrive byte for byte; the roles grow by none of it."""
    megabytes = 1024 if os.environ.get("BAWN_SOAK") else 64
    block, wanted = bytes(range(256)) * 4096, hashlib.sha256()
    with open(place.work / "body", "wb") as body:
        for _ in range(megabytes):
            body.write(block)
            wanted.update(block)
    with Peaks() as peaks:
        ran = run(host, place, WEB, UPLOADS[way], limit=600)
    assert ran.out == f"{megabytes << 20} {wanted.hexdigest()}\n", ran
    flow, = [one["body"] for chain in chains(place).values() for one in chain
             if one["type"] == "net.flow" and one["body"]["phase"] == "closed"]
    assert flow["bytes_up"] >= megabytes << 20, flow
    assert flow["door"] == ("connect" if way == "connect" else "captured"), flow
    assert peaks.kilobytes["bawn-proxy"] <= PEAK_KB, peaks.kilobytes
    assert peaks.kilobytes["bawn-dialer"] <= PEAK_KB, peaks.kilobytes
    print(f"{way}: {megabytes} MiB up, {peaks.kilobytes}")


def test_mixed_answers(host, place):
    ran = run(host, place, ["mixed.example:80", "inward.example:80"], DIRECT
              + "curl -sS -m 9 http://mixed.example/; curl -sS -m 9 http://inward.example/; exit 3")
    assert ran.status == 3 and not ran.connected, ran
    assert [words[0] for words in ran.denials] == ["net.special"] * 2, ran
    assert OTHER not in repr(ran.seen)
