"""
A host with a network of the test's own: a network and a mount namespace in which bawn runs, with
servers on public-looking, private, metadata and IPv6 addresses, and a resolver. All of it is on one
loopback; nothing leaves the machine. What the servers saw is on record, so that a denial can be
held against it.

    host = HostNet(directory)     starts it
    host.run(argv...)             runs a command there
    host.seen("dns")              what the resolver was asked, what servers got
"""
import base64
import hashlib
import json
import os
import pwd
import shutil
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

# where ip lies is not in everybody's path
os.environ["PATH"] += ":/usr/sbin:/sbin"
IS_ROOT = os.geteuid() == 0
PUBLIC, OTHER, PRIVATE, METADATA = "93.184.216.34", "93.184.216.99", "10.1.2.3", "169.254.169.254"
PUBLIC6 = "2606:2800:220:1::1"
ADDRESSES = (PUBLIC, OTHER, PRIVATE, METADATA, PUBLIC6)
ZONE = {
    "pub.example": [PUBLIC], "other.example": [OTHER], "six.example": [PUBLIC6],
    "both.example": [PUBLIC, PUBLIC6], "private.example": [PRIVATE], "meta.example": [METADATA],
    "loop.example": ["127.0.0.1"], "mixed.example": [PUBLIC, PRIVATE],
    "alias.example": "pub.example", "inward.example": "private.example",
    "secret.other.example": [OTHER],
    # each question is answered by the next of these, and all others by the last
    "rebind.example": ([PUBLIC], [PRIVATE]), "remeta.example": ([PUBLIC], [METADATA]),
}
TLS_PORTS, PLAIN_PORTS = (443, 8443), (80, 8080)
BANNER_PORT, SSH_PORT = 22, 2222
# paths of files that a test puts below HostNet.mirror
MIRRORS = ("/git/", "/pip/", "/npm/", "/apt/")


# --- the inside: servers

class Record:
    def __init__(self, path):
        # pylint: disable=consider-using-with # as long as the process
        self.file = open(path, "a", encoding="utf-8", buffering=1)
        self.lock = threading.Lock()

    def put(self, kind, **fields):
        with self.lock:
            self.file.write(json.dumps({"kind": kind, **fields}) + "\n")


def name_of(query, at=12):
    labels = []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    return ".".join(labels).lower(), at + 1


asked = {}


def records(name, kind):
    """Answers of one name: (owner, type, data)."""
    found = ZONE.get(name)
    if isinstance(found, tuple):
        count = asked[name, kind] = asked.get((name, kind), 0) + 1
        found = found[min(count, len(found)) - 1]
    if isinstance(found, str):
        alias = b"".join(bytes([len(label)]) + label.encode() for label in found.split(".")) + b"\0"
        return [(name, 5, alias)] + records(found, kind)
    packed = []
    for address in found or []:
        six = ":" in address
        if kind == (28 if six else 1):
            packed.append((name, kind, socket.inet_pton(
                socket.AF_INET6 if six else socket.AF_INET, address)))
    return packed


def wire_name(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def answer(query, record):
    name, end = name_of(query)
    kind, = struct.unpack("!H", query[end:end + 2])
    record.put("dns", name=name, type=kind)
    if name not in ZONE:
        return query[:2] + b"\x81\x83" + query[4:6] + b"\0\0\0\0\0\0" + query[12:end + 4]
    rows = records(name, kind)
    body = b"".join(wire_name(owner) + struct.pack("!HHIH", each, 1, 5, len(data)) + data
                    for owner, each, data in rows)
    return (query[:2] + b"\x81\x80" + query[4:6] + struct.pack("!HHH", len(rows), 0, 0)
            + query[12:end + 4] + body)


def serve_dns(record):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    while True:
        query, peer = server.recvfrom(4096)
        try:
            server.sendto(answer(query, record), peer)
        except (IndexError, struct.error):
            record.put("dns", name="?malformed", type=0)


def websocket(sock, fields, held):
    """Takes frames of a client, and sends each back as it came, without its mask."""
    key = fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                 b"Connection: Upgrade\r\nSec-WebSocket-Accept: "
                 + base64.b64encode(hashlib.sha1(key.encode()).digest()) + b"\r\n\r\n")
    while True:
        while len(held) < 6 or len(held) < 6 + (held[1] & 0x7f):
            more = sock.recv(65536)
            if not more:
                return
            held += more
        size = held[1] & 0x7f
        mask, body, held = held[2:6], held[6:6 + size], held[6 + size:]
        sock.sendall(bytes([0x81, size])
                     + bytes(byte ^ mask[i % 4] for i, byte in enumerate(body)))


class Chunks:
    """The pieces of a chunked body without trailers; `held` is what came with it, and behind it."""

    def __init__(self, sock, held):
        self.sock, self.held = sock, held

    def more(self):
        piece = self.sock.recv(1 << 17)
        if not piece:
            raise OSError("the body is cut")
        self.held += piece

    def line(self):
        while b"\r\n" not in self.held:
            self.more()
        line, _, self.held = self.held.partition(b"\r\n")
        return line

    def __iter__(self):
        while left := int(self.line(), 16):
            while left:
                if not self.held:
                    self.more()
                yield self.held[:left]
                used = min(left, len(self.held))
                self.held, left = self.held[used:], left - used
            if self.line():
                raise OSError("a chunk is longer than it says")
        if self.line():
            raise OSError("the body has trailers")


def events(sock, acknowledged):
    """Server-sent events, each of which has to be through before the next one is sent."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\n")
    for number in range(3):
        text = f"data: {number}\n\n".encode()
        sock.sendall(b"%x\r\n" % len(text) + text + b"\r\n")
        if not acknowledged[number].wait(20):
            return
    sock.sendall(b"0\r\n\r\n")


class Web(socketserver.BaseRequestHandler):
    """
    Answers each request with what it was, unless it is for a file of the mirrors or one of the
    special paths; what comes without a head is recorded, too.
    """

    def handle(self):
        record, place = self.server.record, self.server.place
        record.put("connect", place=place)
        sock = self.request
        try:
            if self.server.tls:
                sock = self.server.tls.wrap_socket(sock, server_side=True)
            self.serve(sock, record, place)
        except (OSError, ssl.SSLError) as error:
            record.put("broken", place=place, why=str(error))
        finally:
            sock.close()

    def serve(self, sock, record, place):
        held = b""
        while True:
            while b"\r\n\r\n" not in held:
                more = sock.recv(65536)
                if not more:
                    return
                record.put("bytes", place=place, count=len(more))
                held += more
            head, _, held = held.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            fields = {key.lower(): value.strip() for key, _, value in
                      (line.partition(":") for line in lines[1:])}
            length, digest = int(fields.get("content-length", 0)), hashlib.sha256()
            if fields.get("expect"):
                sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            if fields.get("transfer-encoding") == "chunked":
                pieces = Chunks(sock, held)
                for piece in pieces:
                    digest.update(piece)
                    length += len(piece)
                held = pieces.held
            left = 0 if "transfer-encoding" in fields else length
            while left:
                if not held:
                    held = sock.recv(1 << 20)
                if not held:
                    return
                digest.update(held[:left])
                used = min(left, len(held))
                held, left = held[used:], left - used
            record.put("request", place=place, line=lines[0], host=fields.get("host"))
            path = lines[0].split()[1].partition("?")[0]
            if path == "/ws" and fields.get("upgrade") == "websocket":
                websocket(sock, fields, held)
                return
            if path == "/events":
                events(sock, self.server.acknowledged)
                continue
            if path.startswith("/ack/"):
                self.server.acknowledged[int(path[5:])].set()
            if path.startswith("/to/"):
                sock.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://%s/\r\nContent-Length: 0"
                             b"\r\n\r\n" % path[4:].encode())
                continue
            text = self.server.file(path)
            if text is None and path == "/sum":
                text = f"{length} {digest.hexdigest()}\n".encode()
            elif text is None and path.startswith(MIRRORS):
                sock.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            if text is None:
                text = f"upstream {place} {lines[0]}\n".encode()
            if lines[0].startswith("HEAD "):
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text))
            else:
                kind = b"text/html" if path.endswith("/") else b"text/plain"
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n"
                             b"Content-Length: %d\r\n\r\n" % (kind, len(text)) + text)


class Banner(socketserver.BaseRequestHandler):
    def handle(self):
        self.server.record.put("connect", place=self.server.place)
        self.request.sendall(b"SSH-2.0-Test_1.0\r\n")
        try:
            line = self.request.recv(256)
        except OSError:
            return
        self.server.record.put("bytes", place=self.server.place, count=len(line))
        self.server.record.put("banner", place=self.server.place, text=line.decode("latin-1"))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    files = None
    acknowledged = [threading.Event() for _ in range(3)]

    def __init__(self, address, port, handler, record, tls=None):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), handler)
        self.place, self.record, self.tls = f"{address}:{port}", record, tls
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def file(self, path):
        """The bytes of a mirror's file; None: there is none."""
        if not path.startswith(MIRRORS):
            return None
        place = self.files / path.lstrip("/")
        place = place / "index" if path.endswith("/") or place.is_dir() else place
        return place.read_bytes() if place.is_file() else None


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def serve_ssh(place):
    """A server of ssh for ourselves, with a home of its own."""
    script = ('mount --bind "$1/home" "$2" && exec dropbear -F -E -s -p "$3" -P "$1/pid" '
              '-r "$1/host"')
    # pylint: disable=consider-using-with # ends with the namespace's process
    subprocess.Popen(["unshare", "--mount", "sh", "-c", script, "sh", place,
                      pwd.getpwuid(os.geteuid()).pw_dir, f"{PUBLIC}:{SSH_PORT}"],
                     stdout=subprocess.DEVNULL, stderr=open(place / "log", "wb"))


def inside(directory):
    directory = Path(directory)
    record = Record(directory / "seen")
    ip("link", "set", "lo", "up")
    for address in ADDRESSES:
        ip("addr", "add", address, "dev", "lo", *(["nodad"] if ":" in address else []))
    (directory / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    real = os.path.realpath("/etc/resolv.conf")
    subprocess.run(["mount", "--bind", directory / "resolv.conf", real], check=True)
    threading.Thread(target=serve_dns, args=(record,), daemon=True).start()
    Server.files = directory / "mirror"
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    for address in (*ADDRESSES, "127.0.0.1"):
        for port in PLAIN_PORTS:
            Server(address, port, Web, record)
        for port in TLS_PORTS:
            Server(address, port, Web, record, tls)
        Server(address, BANNER_PORT, Banner, record)
    git = directory / "git"
    if git.exists():
        # pylint: disable=consider-using-with # ends with the namespace's process
        subprocess.Popen(["git", "daemon", "--reuseaddr", "--export-all", f"--base-path={git}",
                          f"--listen={PUBLIC}", str(git)], stderr=subprocess.DEVNULL)
    if (directory / "ssh").exists():
        serve_ssh(directory / "ssh")
    print("ready", flush=True)
    sys.stdin.read()
    os.killpg(0, 9)


# --- the outside

def make_certificate(directory):
    names = ",".join(f"DNS:{name}" for name in ZONE)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=test", "-addext", f"subjectAltName={names}", "-keyout",
                    directory / "key.pem", "-out", directory / "cert.pem"],
                   check=True, capture_output=True)


def make_ssh(directory):
    """Keys of a server and of its only user, and what a client has to know of it."""
    place = directory / "ssh"
    (place / "home/.ssh").mkdir(parents=True)
    subprocess.run(["dropbearkey", "-t", "ed25519", "-f", place / "host"], check=True,
                   capture_output=True)
    told = subprocess.run(["dropbearkey", "-y", "-f", place / "host"], check=True, text=True,
                          capture_output=True).stdout
    line = next(line for line in told.splitlines() if line.startswith("ssh-"))
    (place / "known").write_text(f"[pub.example]:{SSH_PORT} {line}\n")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / "deploy"],
                   check=True)
    (place / "home/.ssh/authorized_keys").write_bytes((place / "deploy.pub").read_bytes())
    for path in (place / "home", place / "home/.ssh", place / "home/.ssh/authorized_keys"):
        path.chmod(0o700)


def make_repository(directory):
    work, bare = directory / "source", directory / "git/project.git"
    environment = {**os.environ, "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words, where=work):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=where,
                       check=True, capture_output=True, env=environment)
    work.mkdir()
    (work / "file").write_text("of the upstream\n")
    git("init", "-q", "-b", "main")
    git("add", "file")
    git("commit", "-qm", "first")
    bare.parent.mkdir()
    git("clone", "-q", "--bare", str(work), str(bare), where=directory)


class HostNet:
    def __init__(self, directory):
        self.directory = Path(directory)
        self.mirror = self.directory / "mirror"
        make_certificate(self.directory)
        make_repository(self.directory)
        if all(map(shutil.which, ("dropbear", "dropbearkey", "ssh-keygen"))):
            make_ssh(self.directory)
        mapping = [] if IS_ROOT else ["--user", "--map-current-user", "--keep-caps"]
        # pylint: disable=consider-using-with # ended by close()
        self.process = subprocess.Popen(
            ["unshare", *mapping, "--net", "--mount", "--propagation", "private",
             sys.executable, "-B", __file__, str(self.directory)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("the host's network did not come up")

    @property
    def prefix(self):
        user = [] if IS_ROOT else ["--user", "--preserve-credentials"]
        return ["nsenter", "--target", str(self.process.pid), *user, "--net", "--mount",
                f"--wdns={os.getcwd()}"]

    def seen(self, kind=None, **fields):
        found = [json.loads(line) for line in (self.directory / "seen").read_text().splitlines()]
        return [one for one in found if (kind is None or one["kind"] == kind)
                and all(one.get(key) == value for key, value in fields.items())]

    def forget(self):
        time.sleep(0)
        (self.directory / "seen").write_text("")

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


def is_possible():
    return all(map(shutil.which, ("unshare", "nsenter", "ip", "openssl", "git")))


if __name__ == "__main__":
    inside(sys.argv[1])
