"""A manager of systemd's that is the test's own, in a tree that looks like a host of cgroup v2.

It speaks D-Bus by hand, so that it can do so badly. What it takes apart is taken apart here, by
other code than ours.
"""
import os
import shutil
import socket
import struct
import tempfile
import threading
from pathlib import Path

UID = os.geteuid()
MANAGER = "org.freedesktop.systemd1.Manager"
PATH = "/org/freedesktop/systemd1"
JOB = PATH + "/job/7"


def padded(data, size):
    return data + b"\0" * (-len(data) % size)


def string(text):
    data = text.encode()
    return struct.pack("<I", len(data)) + data + b"\0"


def body(*values):
    """Numbers and strings one after the other."""
    made = b""
    for value in values:
        made = padded(made, 4)
        made += string(value) if isinstance(value, str) else struct.pack("<I", value)
    return made


def message(kind, serial, fields, signature="", data=b""):
    """fields: (code, type, value), in the order of the wire."""
    head = b""
    for code, form, value in [*fields, *([(8, "g", signature)] if signature else [])]:
        head = padded(head, 8) + bytes([code, 1]) + form.encode() + b"\0"
        if form == "g":
            head += bytes([len(value)]) + value.encode() + b"\0"
        else:
            head = padded(head, 4) + (string(value) if form in "so" else struct.pack("<I", value))
    fixed = struct.pack("<BBBBIII", ord("l"), kind, 1, 1, len(data), serial, len(head))
    return padded(fixed + head, 8) + data


def answer(serial=1, number=2):
    return message(2, number, [(5, "u", serial)], "o", body(JOB))


def error(name, text, serial=1):
    return message(3, 2, [(5, "u", serial), (4, "s", name)], "s", body(text))


def signal(member, signature, data, number=3):
    fields = [(1, "o", PATH), (2, "s", MANAGER), (3, "s", member)]
    return message(4, number, fields, signature, data)


def removed(unit, result="done", number=3):
    return signal("JobRemoved", "uoss", body(7, JOB, unit, result), number)


class Reader:
    """Takes a message apart (D-Bus Specification, "Marshaling")."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def align(self, size):
        while self.at % size:
            assert self.data[self.at] == 0, "padding"
            self.at += 1

    def take(self, count):
        taken = self.data[self.at:self.at + count]
        assert len(taken) == count, "cut"
        self.at += count
        return taken

    def u32(self):
        self.align(4)
        return struct.unpack("<I", self.take(4))[0]

    def text(self, length):
        taken = self.take(length + 1)
        assert taken[-1] == 0 and 0 not in taken[:-1], "a string's end"
        return taken[:-1].decode()

    def value(self, form):
        if form in "so":
            return self.text(self.u32())
        if form == "g":
            return self.text(self.take(1)[0])
        if form in "ub":
            return self.u32()
        if form == "v":
            return self.value(self.value("g"))
        if form.startswith("a"):
            length = self.u32()
            self.align(8 if form[1] == "(" else 4)
            end, found = self.at + length, []
            while self.at < end:
                found.append(self.value(form[1:]))
            assert self.at == end, "an array's length"
            return found
        assert form.startswith("(") and form.endswith(")"), form
        self.align(8)
        return tuple(self.value(one) for one in form[1:-1])


def take_header(data):
    """Serial, fields, and the reader at the body."""
    reader = Reader(data)
    assert reader.take(4) == b"l\1\0\1"
    length, serial = reader.u32(), reader.u32()
    fields = {}
    end = reader.u32() + 16
    while reader.at < end:
        reader.align(8)
        code = reader.take(1)[0]
        fields[code] = reader.value("v")
    reader.align(8)
    assert reader.at + length == len(data)
    return serial, fields, reader


def take_call(data):
    """The fields and values of a StartTransientUnit."""
    serial, fields, reader = take_header(data)
    assert fields.pop(8) == "ssa(sv)a(sa(sv))"
    unit, mode, properties = reader.value("s"), reader.value("s"), reader.value("a(sv)")
    assert reader.u32() == 0
    reader.align(8)
    assert reader.at == len(data)
    return serial, fields, unit, mode, dict(properties)


def take_stop(data):
    serial, fields, reader = take_header(data)
    assert fields.pop(8) == "ss"
    values = reader.value("s"), reader.value("s")
    assert reader.at == len(data)
    return serial, fields, *values


def take_message(connection):
    data = connection.recv(16, socket.MSG_WAITALL)
    if len(data) < 16:
        raise BrokenPipeError
    length, fields = struct.unpack("<I", data[4:8])[0], struct.unpack("<I", data[12:16])[0]
    return data + connection.recv(length + fields + (-fields % 8), socket.MSG_WAITALL)


class Tree:
    """What is "/" to the one who asks, and who listens there."""

    def __init__(self, task="t-abc"):
        self.root = Path(tempfile.mkdtemp(prefix="bawn-scope.", dir="/var/tmp"))
        self.unit = f"bawn-{task}.scope"
        user = f"user/{UID}" if UID else "."
        self.place = self.root / "run" / user / "systemd"
        self.group = f"/user.slice/user-{UID}.slice/user@{UID}.service" if UID else ""
        self.place.mkdir(parents=True)
        self.write("self/mountinfo", "30 22 0:26 / /cg rw,nosuid - cgroup2 cgroup2 rw\n")
        self.write("self/cgroup", "0::/user.slice/session-1.scope\n")
        self.controllers("cpu io memory pids\n")
        self.listener = socket.socket(socket.AF_UNIX)
        self.call, self.failure, self.thread, self.socket = None, None, None, None

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def controllers(self, text):
        self.write(f"cg{self.group}/cgroup.controllers", text)

    def move(self, pid, controllers="cpu io memory pids\n", others="", mode=0o755):
        """What the manager and the kernel do to the process."""
        path = f"{self.group}/app.slice/{self.unit}"
        for name, text in {"cgroup.controllers": controllers, "cgroup.subtree_control": "\n",
                           "cgroup.procs": f"{others}{pid}\n", "cgroup.type": "domain\n",
                           "bawn-supervisors/cgroup.procs": ""}.items():
            self.write(f"cg{path}/{name}", text)
        (self.root / f"cg{path}").chmod(mode)
        self.write("self/cgroup", f"0::{path}\n")

    def listen(self, script):
        """script(tree, connection, pid) is run for the first who comes."""
        self.listener.bind(str(self.place / "private"))
        self.listener.listen(1)
        self.thread = threading.Thread(target=self.serve, args=(script,), daemon=True)
        self.thread.start()

    def serve(self, script):
        try:
            self.socket, _ = self.listener.accept()
        except OSError:
            return
        try:
            peer = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            script(self, self.socket, struct.unpack("iII", peer)[0])
        except (BrokenPipeError, ConnectionResetError):
            pass
        except Exception as failure:  # pylint: disable=broad-except
            self.failure = failure

    def remove(self):
        try:
            # wakes who waits in accept(2)
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        if self.socket:
            try:
                self.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        if self.thread:
            self.thread.join(5)
        if self.socket:
            self.socket.close()
        shutil.rmtree(self.root)
        if self.failure:
            raise self.failure


def line(connection):
    data = b""
    while not data.endswith(b"\r\n"):
        byte = connection.recv(1)
        if not byte:
            raise BrokenPipeError
        data += byte
    return data


def greet(tree, connection):
    """As far as the call, which it keeps."""
    assert line(connection) == b"\0AUTH EXTERNAL " + str(UID).encode().hex().encode() + b"\r\n"
    connection.sendall(b"OK " + b"0123456789abcdef" * 2 + b"\r\n")
    assert line(connection) == b"BEGIN\r\n"
    tree.call = take_call(take_message(connection))
