"""
A host with a network of the test's own: a network and a mount namespace in which bawn runs, with
servers on public-looking, private, metadata and IPv6 addresses, and a resolver. All of it is on one
loopback; nothing leaves the machine. What the servers saw is on record, so that a denial can be
held against it.

    host = HostNet(directory)     starts it
    host.run(argv...)             runs a command there
    host.seen("dns")              what the resolver was asked, what servers got
"""
import json
import os
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
}
TLS_PORTS, PLAIN_PORTS = (443, 8443), (80, 8080)
BANNER_PORT = 22


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


def records(name, kind):
    """Answers of one name: (owner, type, data)."""
    found = ZONE.get(name)
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


class Web(socketserver.BaseRequestHandler):
    """Answers each request with what it was; what comes without a head is recorded, too."""

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

    @staticmethod
    def serve(sock, record, place):
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
            length = int(fields.get("content-length", 0))
            while len(held) < length:
                more = sock.recv(65536)
                if not more:
                    return
                held += more
            held = held[length:]
            record.put("request", place=place, line=lines[0], host=fields.get("host"))
            text = f"upstream {place} {lines[0]}\n".encode()
            if lines[0].startswith("HEAD "):
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text))
            else:
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                             b"Content-Length: %d\r\n\r\n" % len(text) + text)


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

    def __init__(self, address, port, handler, record, tls=None):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), handler)
        self.place, self.record, self.tls = f"{address}:{port}", record, tls
        threading.Thread(target=self.serve_forever, daemon=True).start()


def ip(*words):
    subprocess.run(["ip", *words], check=True)


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
        make_certificate(self.directory)
        make_repository(self.directory)
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
