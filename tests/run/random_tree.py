"""Random trees and random changes to them, for tests/run/test_stage.py.

As a program: changes an overlay of a namespace of the caller's, and leaves a copy of what it shows;
or ("here") changes a tree in place, and leaves a copy.
"""
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
from pathlib import Path

NAMES = [b"a", b"b", b"c.txt", b"dir", b"Makefile", b"with space", b"new\nline", b"\x1b[31m",
         b"\xff\xfe", b'quo"te', b"back\\slash", "é".encode(), b"-rf", b"x" * 200]
PLAIN = [b"a", b"b", b"c.txt", b"dir", b"Makefile", b"with space", b"tab\there", b'quo"te',
         "é".encode(), b"\xff\xfe", b"\x1b[31m"]


def some_text(draw):
    lines = [draw.choice([b"one", b"two", b"three", b"", b"\tfour", b"five \x1b[1m"])
             for _ in range(draw.randrange(20))]
    return b"\n".join(lines) + draw.choice([b"", b"\n"])


RICH = ["attribute", "attribute", "acl", "sparse", "over", "long", "twin", "empty"]


def acl():
    """user::rw-, user:(the caller):r--, group::r--, mask::r--, other::r--"""
    none = 0xffffffff
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in (
        (1, 6, none), (2, 4, os.getuid()), (4, 4, none), (16, 4, none), (32, 4, none)))


def enrich(draw, root, what):
    """What a plain copy of a tree forgets."""
    files = places(root, "f")
    path = draw.choice(files) if files else None
    parent = draw.choice([root, *places(root, "d")])
    new = os.path.join(parent, draw.choice([b"n", b"\xfe\x80 n", b"y" * 255]))
    if what == "attribute" and path:
        os.setxattr(path, "user.note", draw.choice([b"one", b"two"]))
    elif what == "acl" and path:
        os.setxattr(path, "system.posix_acl_access", acl())
    elif what == "sparse" and not os.path.lexists(new):
        with open(new, "wb") as file:
            file.truncate(draw.randrange(1 << 25))
            file.seek(draw.randrange(1 << 20))
            file.write(b"data")
    elif what == "over" and path:
        other = draw.choice(files)
        os.rename(path, other)
    elif what == "long" and not os.path.lexists(new):
        write(draw, new)
    elif what == "twin" and path and not os.path.lexists(new):
        os.link(path, new)
    elif what == "empty" and not os.path.lexists(new):
        os.mkdir(new)


def some_name(draw, names):
    return draw.choice(names)


def places(root, kinds):
    """Existing paths of these kinds below root, sorted."""
    found = []
    for here, directories, files in os.walk(root):
        for name in directories + files:
            path = os.path.join(here, name)
            mode = os.lstat(path).st_mode
            if ("d" in kinds and stat.S_ISDIR(mode)) or ("f" in kinds and stat.S_ISREG(mode)) or \
                    ("l" in kinds and stat.S_ISLNK(mode)):
                found.append(path)
    return sorted(found)


def new_path(draw, root, names):
    """A path in an existing directory; something may be there."""
    parent = draw.choice([root, *places(root, "d")])
    return os.path.join(parent, some_name(draw, names))


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def write(draw, path):
    if os.path.isdir(path) or os.path.islink(path):
        return
    with open(path, "wb") as file:
        file.write(some_text(draw))


def make_tree(draw, root, names, count, links=True):
    for _ in range(count):
        path = new_path(draw, root, names)
        if os.path.lexists(path):
            continue
        kind = draw.choice("fffdl" if links else "fffd")
        if kind == "f":
            write(draw, path)
        elif kind == "d":
            os.mkdir(path)
        else:
            os.symlink(draw.choice([b"a", b"../x", b"/etc/passwd"]), path)


def change_one(draw, root, names, special, links):
    """One random change below root, where it is possible."""
    everything = places(root, "dfl")
    files = places(root, "f")
    path = draw.choice(everything) if everything else None
    new = new_path(draw, root, names)
    what = draw.choice(["write", "write", "edit", "edit", "touch", "same", "remove", "remove",
                        "again", "mode", "mode", "link", "rename", "move", "mkdir", "replace",
                        "twin", "fifo"])
    if what == "write":
        write(draw, new)
    elif what == "edit" and files:
        path = draw.choice(files)
        data = Path(os.fsdecode(path)).read_bytes().splitlines(True)
        if data:
            data[draw.randrange(len(data))] = some_text(draw)
        Path(os.fsdecode(path)).write_bytes(b"".join(data))
    elif what == "touch" and path:
        os.utime(path, (1, 1), follow_symlinks=False)
    elif what == "same" and files:
        path = draw.choice(files)
        data = Path(os.fsdecode(path)).read_bytes()
        os.unlink(path)
        Path(os.fsdecode(path)).write_bytes(data)
    elif what == "remove" and path:
        remove(path)
    elif what == "again" and places(root, "d"):
        path = draw.choice(places(root, "d"))
        kept = sorted(os.listdir(path))
        shutil.rmtree(path)
        os.mkdir(path)
        for name in kept[:2]:
            write(draw, os.path.join(path, name))
    elif what == "mode" and (files if not special else path):
        path = draw.choice(files) if not special else path
        if not os.path.islink(path):
            os.chmod(path, draw.choice([0o755, 0o644, 0o700] if special else [0o755, 0o644]))
    elif what == "link" and links:
        remove(new)
        os.symlink(draw.choice([b"b", b"../y", b"nowhere"]), new)
    elif what == "rename" and files:
        path = draw.choice(files)
        remove(new)
        if os.path.lexists(path) and os.path.isdir(os.path.dirname(new)):
            os.rename(path, new)
    elif what == "move" and places(root, "d"):
        path = draw.choice(places(root, "d"))
        if not os.path.lexists(new) and not new.startswith(path):
            subprocess.run(["mv", "--", path, new], check=True)
    elif what == "mkdir" and not os.path.lexists(new):
        os.mkdir(new)
    elif what == "replace" and path and links:
        remove(path)
        draw.choice([os.mkdir, lambda at: os.symlink(b"z", at), lambda at: write(draw, at)])(path)
    elif what == "twin" and special and files:
        path = draw.choice(files)
        if not os.path.lexists(new):
            os.link(path, new)
    elif what == "fifo" and special and not os.path.lexists(new):
        os.mkfifo(new)


def change(root, seed, words):
    draw = random.Random(seed)
    for _ in range(draw.randrange(5, 40)):
        if "rich" in words and draw.randrange(3) == 0:
            enrich(draw, os.fsencode(root), draw.choice(RICH))
            continue
        change_one(draw, os.fsencode(root), PLAIN if "plain" in words else NAMES,
                   "plain" not in words, "no-links" not in words)


def inside(lower, upper, work, merged, view, seed, words):
    """In the namespace: changes an overlay, and leaves a copy of what it shows."""
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                    f"userxattr,lowerdir={lower},upperdir={upper},workdir={work}", merged],
                   check=True)
    change(merged, seed, words)
    subprocess.run(["cp", "-a", f"{merged}/.", view], check=True)


if __name__ == "__main__":
    if sys.argv[1] == "here":
        change(sys.argv[2], int(sys.argv[4]), sys.argv[5:])
        subprocess.run(["cp", "-a", f"{sys.argv[2]}/.", sys.argv[3]], check=True)
        sys.exit()
    inside(*sys.argv[1:6], int(sys.argv[6]), sys.argv[7:])
