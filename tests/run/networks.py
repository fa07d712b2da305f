"""A network namespace of a test's own, as an ordinary user and as root: nothing leaves it."""
import ctypes
import functools
import os
import pickle
import subprocess
import traceback

# where ip lies is not in everybody's path
os.environ["PATH"] += ":/usr/sbin:/sbin"
NEW_USER, NEW_NET = 0x10000000, 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
LIMIT_S = 120


def ip(*words):
    subprocess.run(["ip", *words], check=True, timeout=LIMIT_S)


def enter(addresses):
    """Into a new one, with these addresses on its loopback: all the world that there is."""
    uid, gid = os.geteuid(), os.getegid()
    if LIBC.unshare(NEW_NET | (NEW_USER if uid else 0)) < 0:
        raise OSError(ctypes.get_errno(), "unshare")
    if uid:
        for name, line in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"),
                           ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(line)
    ip("link", "set", "lo", "up")
    for address in addresses:
        plain = ":" not in address
        ip("address", "add", address + ("/32" if plain else "/128"), "dev", "lo",
           *([] if plain else ["nodad"]))


def alone(*addresses):
    """A test that runs in a process with a network of its own."""
    def decorate(function):
        @functools.wraps(function)
        def run(*words, **named):
            read_fd, write_fd = os.pipe()
            pid = os.fork()
            if pid == 0:
                failure = None
                try:
                    os.close(read_fd)
                    enter(addresses)
                    function(*words, **named)
                except BaseException:  # pylint: disable=broad-except
                    failure = traceback.format_exc()
                os.write(write_fd, pickle.dumps(failure)[:60000])
                os._exit(failure is not None)
            os.close(write_fd)
            with os.fdopen(read_fd, "rb") as file:
                said = file.read()
            _, status = os.waitpid(pid, 0)
            failure = pickle.loads(said) if said else "it ended without a word"
            assert status == 0 and failure is None, failure
        return run
    return decorate
