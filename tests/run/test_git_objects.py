"""Git's objects: a task cannot damage, hide or replace one that the host has, and what it adds
comes to the host only where its content has its name.

The reader of packs is held against git's own; the rest goes through a box."""
import hashlib
import os
import random
import shutil
import struct
import subprocess
import zlib

import pytest

from boxed import eventually, place
from live import live
from test_git_box import EXPORT, Held, fill, git, init, plain
from test_git_commit import LAB

__all__ = ["live", "place"]


def store_of(objects):
    """All files of a store: path to a hash of the content."""
    found = {}
    for base, _, files in os.walk(objects):
        for name in files:
            path = os.path.join(base, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, objects)] = hashlib.sha256(file.read()).hexdigest()
    return found


def fsck(directory):
    done = git(directory, "fsck", "--strict", "--no-dangling", "--no-progress", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def packed(place):
    """One large pack, a small one, and loose objects."""
    plain(place)
    (place.work / "big").write_bytes(random.Random(1).randbytes(1 << 21))
    git(place.work, "add", "big")
    git(place.work, "commit", "-qm", "big")
    git(place.work, "gc", "-q")
    (place.work / "f").write_text("three\n")
    git(place.work, "commit", "-qam", "three")
    git(place.work, "repack", "-q")
    git(place.work, "prune-packed", "-q")
    (place.work / "f").write_text("four\n")
    git(place.work, "commit", "-qam", "four")
    return place.work / ".git/objects"


DESTROYED = {
    "removed": "rm -rf .git",
    "store": "rm -rf .git/objects; mkdir .git/objects",
    "moved": "mv .git/objects /tmp/o; mkdir .git/objects",
    "truncated": "for f in $(find .git/objects -type f); do chmod u+w $f; : > $f; done",
    "overwritten": "for f in $(find .git/objects -type f); do chmod u+w $f; "
                   "printf evil | dd of=$f conv=notrunc seek=12 bs=1; done",
    "replaced": "for f in $(find .git/objects -type f); do echo evil >/tmp/f; mv -f /tmp/f $f; "
                "done",
    "exchanged": "cd .git/objects/pack; for f in *.pack; do cp $f /tmp/$f; done; set -- *.pack; "
                 "cp -f /tmp/$1 $2; cp -f /tmp/$2 $1",
    "gc": "git reflog expire --expire=now --all; git update-ref -d HEAD; git gc -q --prune=now",
    "modes": "chmod -R 0 .git/objects",
}


@pytest.mark.parametrize("name", DESTROYED)
def test_what_the_host_has_stays(place, name):
    objects = packed(place)
    before = store_of(objects)
    ran = place.sh(f"({DESTROYED[name]}) >/dev/null 2>&1; true")
    assert ran.status == 0, ran
    after = store_of(objects)
    assert {path: after.get(path) for path in before} == before
    assert set(after) - set(before) <= {"info/packs", "info/commit-graph"}, set(after) - set(before)
    assert git(place.work, "log", "--format=%s").stdout.split() == "four three big two one".split()
    fsck(place.work)
    place.assert_nothing_left()


@pytest.mark.parametrize("name", ["removed", "truncated", "replaced"])
def test_it_would_not_without_the_layer(place, name):
    packed(place)
    ran = place.sh(f"({DESTROYED[name]}) >/dev/null 2>&1; true", "--write", ".git")
    assert ran.status == 0, ran
    assert git(place.work, "log", check=False).returncode != 0


PLANTED = {
    "alternates": ("info/alternates", "/tmp/evil\n"),
    "http-alternates": ("info/http-alternates", "http://example.org/\n"),
    "graph": ("info/commit-graph", "CGPH"),
    "graphs": ("info/commit-graphs/commit-graph-chain", "0" * 40),
    "packs": ("info/packs", "P evil\n"),
    "index": ("pack/multi-pack-index", "MIDX"),
    "keep": ("pack/pack-" + "1" * 40 + ".keep", ""),
    "bitmap": ("pack/pack-" + "1" * 40 + ".bitmap", "BITM"),
    "reverse": ("pack/pack-" + "1" * 40 + ".rev", "RIDX"),
    "times": ("pack/pack-" + "1" * 40 + ".mtimes", "MTME"),
    "promisor": ("pack/pack-" + "1" * 40 + ".promisor", ""),
    "idx": ("pack/pack-" + "1" * 40 + ".idx", "\377tOc"),
    "pack": ("pack/pack-" + "1" * 40 + ".pack", "PACK"),
    "half": ("pack/tmp_pack_x", "PACK"),
    "name": ("12/evil", "x"),
    "deep": ("12/34/" + "5" * 36, "x"),
    "upper-case": ("AB/" + "C" * 38, "x"),
    "text": ("12/" + "3" * 38, "x"),
    "empty": ("12/" + "4" * 38, ""),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_in_the_store_does_not_come(place, name):
    plain(place)
    objects = place.work / ".git/objects"
    before = store_of(objects)
    path, content = PLANTED[name]
    (place.work / "content").write_bytes(content.encode("latin-1"))
    ran = place.sh(f"mkdir -p $(dirname .git/objects/{path}); cp content .git/objects/{path}")
    assert ran.status == 0, ran
    assert store_of(objects) == before, ran
    assert ("held" in ran.err) == (name in ("alternates", "http-alternates", "name", "deep",
                                            "upper-case", "text", "empty")), ran
    fsck(place.work)


def loose(kind, content, level=-1):
    """The bytes of a loose object, and its name."""
    whole = f"{kind} {len(content)}\0".encode() + content
    return zlib.compress(whole, level), hashlib.sha1(whole).hexdigest()


def put(place, name, data):
    """A loose object of that name, as a task writes it."""
    (place.work / "object").write_bytes(data)
    folder = f".git/objects/{name[:2]}"
    return place.sh(f"mkdir -p {folder}; cp object {folder}/{name[2:]}; rm -f object")


def wrong_objects():
    data, name = loose("blob", b"good\n")
    evil = loose("blob", b"evil\n")[0]
    whole = b"blob 5\0good\n"
    return {
        "other": (evil, name), "cut": (data[:-1], name), "longer": (data + b"x", name),
        "twice": (data + data, name), "raw": (whole, name), "no-checksum": (data[:-4], name),
        "size": (zlib.compress(b"blob 6\0good\n"), hashlib.sha1(b"blob 6\0good\n").hexdigest()),
        "more": (zlib.compress(b"blob 4\0good\n"), hashlib.sha1(b"blob 4\0good\n").hexdigest()),
        "type": (zlib.compress(b"blab 5\0good\n"), hashlib.sha1(b"blab 5\0good\n").hexdigest()),
        "zeros": (zlib.compress(b"blob 05\0good\n"), hashlib.sha1(b"blob 05\0good\n").hexdigest()),
        "no-header": (zlib.compress(b"good\n" * 20), hashlib.sha1(b"good\n" * 20).hexdigest()),
    }


@pytest.mark.parametrize("name", wrong_objects())
def test_content_that_has_another_name_is_held(place, name):
    plain(place)
    data, wanted = wrong_objects()[name]
    ran = put(place, wanted, data)
    assert ran.status == 0 and "content is not what its name says" in ran.err, ran
    assert not (place.work / ".git/objects" / wanted[:2] / wanted[2:]).exists()
    fsck(place.work)


@pytest.mark.parametrize("level", [0, 1, 9])
@pytest.mark.parametrize("size", [0, 5, 70000, 3 << 20])
def test_content_that_has_its_name_comes(place, level, size):
    plain(place)
    content = (b"line of text\n" * (size // 13 + 1))[:size // 2]
    content += random.Random(size).randbytes(size - len(content))
    data, name = loose("blob", content, level)
    ran = put(place, name, data)
    assert ran.status == 0 and not ran.err, ran
    path = place.work / ".git/objects" / name[:2] / name[2:]
    assert path.read_bytes() == data and path.stat().st_mode & 0o777 == 0o444
    assert path.stat().st_uid == (place.work / ".git/objects").stat().st_uid
    fsck(place.work)


# ---- packs ----


def lab(*words):
    return subprocess.run([LAB, *map(str, words)], capture_output=True, check=False, timeout=60)


def library(directory, seed=5, commits=30):
    """A repository with deltas of many kinds."""
    random_ = random.Random(seed)
    init(directory)
    lines = [f"line {random_.random()}\n" for _ in range(400)]
    for number in range(commits):
        for _ in range(3):
            lines[random_.randrange(len(lines))] = f"line {random_.random()}\n"
        if number % 5 == 0:
            lines[random_.randrange(300):][:0] = [f"new {random_.random()}\n"] * 3
        (directory / "text").write_text("".join(lines))
        (directory / f"file{number % 7}").write_bytes(random_.randbytes(random_.randrange(3000)))
        git(directory, "add", ".")
        git(directory, "commit", "-qm", f"commit {number}")
    git(directory, "tag", "-am", "a tag", "annotated")


@pytest.fixture(scope="module", name="packs")
def make_packs(tmp_path_factory):
    """Packs as git makes them, each kind of delta among them: the repository, its (pack, index)."""
    root = tmp_path_factory.mktemp("packs")
    work = root / "work"
    library(work)
    made = []
    for name, options in {"offsets": ["--delta-base-offset"], "ids": [], "deep": ["--depth=200"],
                          "plain": ["--window=0"], "low": ["--compression=0"]}.items():
        revisions = git(work, "rev-list", "--objects", "--all").stdout
        done = subprocess.run(["git", "-C", work, "pack-objects", "-q", "--no-reuse-delta",
                               *options, root / name], input=revisions, text=True, check=True,
                              capture_output=True)
        stem = f"{root / name}-{done.stdout.strip()}"
        made.append((stem + ".pack", stem + ".idx"))
    return work, made


def test_packs_of_git_are_what_they_say(packs):
    for pack, index in packs[1]:
        done = lab("pack", pack, index)
        assert done.returncode == 0, (pack, done.stderr)


def test_each_object_of_a_pack_is_written_as_it_is(packs):
    work, made = packs
    for pack, index in made[:2]:
        with open(index, "rb") as file:
            content = file.read()
        count = struct.unpack(">I", content[8 + 255 * 4:8 + 256 * 4])[0]
        for at in random.Random(2).sample(range(count), 12):
            name = content[8 + 1024 + 20 * at:][:20].hex()
            done = lab("pack", pack, index, at)
            assert done.returncode == 0, done.stderr
            whole = zlib.decompress(done.stdout)
            assert hashlib.sha1(whole).hexdigest() == name
            kind = git(work, "cat-file", "-t", name).stdout.strip()
            assert whole.startswith(kind.encode() + b" ")


def test_packs_that_were_changed_are_none(packs, tmp_path):
    """One bit anywhere, or a cut."""
    pack, index = packs[1][0]
    with open(pack, "rb") as file:
        whole = file.read()
    random_ = random.Random(9)
    changed = tmp_path / "changed.pack"
    for _ in range(60):
        at, data = random_.randrange(len(whole)), bytearray(whole)
        data[at] ^= 1 << random_.randrange(8)
        changed.write_bytes(data)
        assert lab("pack", changed, index).returncode == 1, at
    for length in (0, 11, 12, 31, len(whole) - 21, len(whole) - 1):
        changed.write_bytes(whole[:length])
        assert lab("pack", changed, index).returncode == 1, length


def test_indexes_that_were_changed_are_none(packs, tmp_path):
    """With a checksum that holds."""
    pack, index = packs[1][0]
    with open(index, "rb") as file:
        whole = file.read()
    count = struct.unpack(">I", whole[8 + 1020:8 + 1024])[0]
    ids, offsets = 8 + 1024, 8 + 1024 + 24 * count
    changed = tmp_path / "changed.idx"
    random_ = random.Random(10)
    for _ in range(60):
        data = bytearray(whole[:-20])
        place = random_.choice([random_.randrange(ids, ids + 20 * count),
                                random_.randrange(8, ids),
                                random_.randrange(offsets, offsets + 4 * count)])
        data[place] ^= 1 << random_.randrange(8)
        changed.write_bytes(data + hashlib.sha1(data).digest())
        assert lab("pack", pack, changed).returncode == 1, place
    for length in (0, 8, 1031, 1032, 1100, len(whole) - 21):
        data = whole[:length]
        changed.write_bytes(data + hashlib.sha1(data).digest())
        assert lab("pack", pack, changed).returncode == 1, length


def rename(index, pack, old, new):
    """The index says that the one object is another one."""
    data = bytearray(index.read_bytes()[:-20])
    count = struct.unpack(">I", data[8 + 1020:8 + 1024])[0]
    at, crcs = 8 + 1024, 8 + 1024 + 20 * count
    offsets = crcs + 4 * count
    rows = [(bytes(data[at + 20 * i:][:20]), bytes(data[crcs + 4 * i:][:4]),
             bytes(data[offsets + 4 * i:][:4])) for i in range(count)]
    rows = sorted((bytes.fromhex(new) if row[0].hex() == old else row[0], *row[1:])
                  for row in rows)
    sums = [sum(1 for row in rows if row[0][0] <= first) for first in range(256)]
    made = bytes(data[:8]) + b"".join(struct.pack(">I", n) for n in sums)
    for column in range(3):
        made += b"".join(row[column] for row in rows)
    made += pack.read_bytes()[-20:]
    index.write_bytes(made + hashlib.sha1(made).digest())


@pytest.mark.parametrize("is_known", [True, False])
def test_a_pack_with_other_content_under_a_name_is_held(place, is_known):
    plain(place)
    known = git(place.work, "rev-parse", "HEAD:f").stdout.strip() if is_known else "12" * 20
    (place.work / "evil").write_text("evil\n")
    evil = git(place.base, "hash-object", place.work / "evil").stdout.strip()
    script = (f"cd /tmp; git init -q r; cd r; git hash-object -w {place.work}/evil; echo {evil} | "
              f"git pack-objects -q p; cp p-*.pack {place.work}/p.pack; "
              f"cp p-*.idx {place.work}/p.idx; chmod u+w {place.work}/p.*")
    ran = place.sh(script)
    assert ran.status == 0, ran
    rename(place.work / "p.idx", place.work / "p.pack", evil, known)
    stem = ".git/objects/pack/pack-" + "a" * 40
    before = store_of(place.work / ".git/objects")
    ran = place.sh(f"cp p.pack {stem}.pack; cp p.idx {stem}.idx; git cat-file -p {known}")
    # the task itself believes it
    assert "evil" in ran.out or is_known, ran
    assert ("is not what its name says" in ran.err) == (not is_known), ran
    assert store_of(place.work / ".git/objects") == before
    assert git(place.work, "cat-file", "-p", "HEAD:f").stdout == "two\n"
    fsck(place.work)


def test_a_fetch_comes_as_a_pack(place):
    plain(place)
    library(place.work / "library")
    count = len(list((place.work / ".git/objects/pack").iterdir()))
    ran = place.sh("git fetch -q ./library main:refs/heads/fetched annotated:refs/tags/annotated")
    assert ran.status == 0 and "held" not in ran.err, ran
    shutil.rmtree(place.work / "library")
    assert git(place.work, "log", "--oneline", "fetched").stdout.count("\n") == 30
    assert len(list((place.work / ".git/objects/pack").iterdir())) == count + 2
    fsck(place.work)


def test_what_a_gc_packs_comes_one_by_one(place):
    plain(place)
    library(place.work)
    git(place.work, "gc", "-q")
    before = store_of(place.work / ".git/objects")
    ran = place.sh(EXPORT + "echo new >new; git add new; git commit -qm new; git gc -q; git fsck")
    assert ran.status == 0 and not ran.err, ran
    after = store_of(place.work / ".git/objects")
    assert {path: after.get(path) for path in before} == before
    # blob, tree, commit
    assert len(set(after) - set(before)) == 3, set(after) - set(before)
    assert git(place.work, "log", "-1", "--format=%s").stdout == "new\n"
    fsck(place.work)
    # and again with nothing new
    ran = place.sh("git gc -q; git repack -adfq")
    assert ran.status == 0 and store_of(place.work / ".git/objects") == after, ran


def test_git_does_not_copy_a_large_pack(place):
    """It touches the times of the pack that has an object which it would write."""
    objects = packed(place)
    with Held(place, "git hash-object -w big f; git add -A; git stash -q || true"):
        upper = next((place.state / "tasks").glob("*/git/0/upper"))
        big = [path.name for path in (objects / "pack").glob("*.pack")
               if path.stat().st_size > 1 << 20]
        assert len(big) == 1
        assert not (upper / "objects/pack" / big[0]).exists()
    fsck(place.work)


def test_objects_of_each_action_of_a_live_task(live):
    plain(live)
    task = live.begin()
    for number in range(3):
        ran = live.sh_in(task, EXPORT + f"echo {number} >n; git add n; git commit -qm n{number}; "
                                        "test $(git count-objects | cut -d' ' -f1) -gt 0; "
                                        "git gc -q")
        assert ran.status == 0, ran
        assert git(live.work, "log", "-1", "--format=%s").stdout == f"n{number}\n"
        fsck(live.work)
    ran = live.sh_in(task, "rm -rf .git/objects")
    fsck(live.work)
    live.verb("task", "end", task)
    assert eventually(lambda: not os.listdir(live.state / "tasks"), 5)
    fsck(live.work)


def test_a_live_task_sees_what_the_host_did(live):
    """Between its actions: new objects, new references, and its own work goes on from there."""
    plain(live)
    task = live.begin()
    ran = live.sh_in(task, EXPORT + "for i in $(seq 40); do echo $i >n; git add n; "
                                    "git commit -qm $i; done; git gc -q; git branch mine")
    assert ran.status == 0 and not ran.err, ran
    for number in range(20):
        (live.work / "h").write_text(f"host {number}\n")
        git(live.work, "add", "h")
        git(live.work, "commit", "-qm", f"host {number}")
    git(live.work, "branch", "theirs")
    ran = live.sh_in(task, EXPORT + "git fsck --no-dangling && git log --format=%s -2 theirs && "
                                    "git update-ref refs/heads/theirs "
                                    "$(git commit-tree -m on-theirs -p theirs theirs^{tree})")
    assert ran.status == 0 and "held" not in ran.err, ran
    assert ran.out == "host 19\nhost 18\n", ran
    assert git(live.work, "log", "--format=%s", "-2", "theirs").stdout == "on-theirs\nhost 19\n"
    fsck(live.work)
    live.verb("task", "end", task)


def test_what_a_gc_of_the_host_takes_away_comes_again(place):
    """A task builds on what no reference of the host names: it lands whole."""
    plain(place)
    lost = git(place.work, "commit-tree", "-m", "lost", "HEAD^{tree}").stdout.strip()
    with Held(place, f"git checkout -q {lost}; git commit -q --allow-empty -m more; "
                     "git branch more; git gc -q"):
        git(place.work, "gc", "-q", "--prune=now")
        assert git(place.work, "cat-file", "-e", lost, check=False).returncode != 0
    assert git(place.work, "log", "--format=%s", "more").stdout.split()[:2] == ["more", "lost"]
    fsck(place.work)


@pytest.mark.parametrize("is_right", [True, False])
def test_large_files_of_lfs(place, is_right):
    plain(place)
    (place.work / ".git/lfs/objects").mkdir(parents=True)
    name = hashlib.sha256(b"large\n").hexdigest()
    path = f".git/lfs/objects/{name[:2]}/{name[2:4]}/{name}"
    ran = place.sh(f"mkdir -p $(dirname {path}); echo {'large' if is_right else 'evil'} >{path}")
    assert ran.status == 0 and ("held" in ran.err) != is_right, ran
    assert (place.work / path).exists() == is_right
    if is_right:
        place.sh(f"rm -rf .git/lfs; mkdir -p $(dirname {path}); echo evil >{path}")
        assert (place.work / path).read_bytes() == b"large\n"


def test_many_new_objects(place):
    """As many as a first `git add` makes."""
    plain(place)
    ran = place.sh(EXPORT + "mkdir many; for i in $(seq 2000); do echo $i >many/$i; done; "
                            "git add many; git commit -qm many")
    assert ran.status == 0 and not ran.err, ran
    assert git(place.work, "ls-tree", "HEAD:many").stdout.count("\n") == 2000
    fsck(place.work)


def test_a_repository_of_sha256(place):
    init(place.work, "--object-format=sha256")
    fill(place.work)
    ran = place.sh(EXPORT + "for i in $(seq 5); do echo $i >>f; git commit -qam $i; done; "
                            "git gc -q; echo 6 >>f; git commit -qam 6")
    assert ran.status == 0 and not ran.err, ran
    assert git(place.work, "log", "-1", "--format=%s").stdout == "6\n"
    fsck(place.work)


# ---- the index ----


def status_of(directory):
    return git(directory, "status", "--porcelain").stdout


@pytest.mark.parametrize("is_there", [True, False])
def test_an_index_whose_objects_are_missing_is_held(place, is_there):
    plain(place)
    (place.work / "content").write_text("content\n")
    add = "git add" if is_there else "git update-index --add --cacheinfo 100644,$(git hash-object"
    ran = place.sh(f"{add} content{'' if is_there else '),content'}")
    assert ran.status == 0 and ("that it names is missing" in ran.err) != is_there, ran
    assert status_of(place.work) == ("A  content\n" if is_there else "?? content\n")
    git(place.work, "add", "content")
    git(place.work, "commit", "-qm", "content")
    fsck(place.work)


def test_an_index_with_what_needs_no_object_comes(place):
    """An empty file, one that is announced alone, and a repository of its own."""
    plain(place)
    (place.work / "empty").touch()
    (place.work / "later").write_text("later\n")
    init(place.work / "inner")
    fill(place.work / "inner")
    ran = place.sh("git add empty; git add -N later; git add inner 2>/dev/null")
    assert ran.status == 0 and "index" not in ran.err, ran
    assert status_of(place.work) == "A  empty\nA  inner\n A later\n"


@pytest.mark.parametrize("is_detached", [True, False])
def test_an_index_whose_commit_is_held_is_held(place, is_detached):
    """The host's git would take what the task committed for staged by its user."""
    plain(place)
    if is_detached:
        git(place.work, "checkout", "-q", "--detach")
    with Held(place, "echo new >new; git add new; git commit -qm new") as held:
        git(place.work, "commit", "-q", "--allow-empty", "-m", "host")
    assert b"the commit that it goes with is held" in held.err, held.err
    assert status_of(place.work) == "?? new\n"
    assert git(place.work, "log", "-1", "--format=%s").stdout == "host\n"
    fsck(place.work)


def test_a_partial_clone_has_its_objects_elsewhere(place):
    init(place.base / "far")
    fill(place.base / "far")
    git(place.base / "far", "config", "uploadpack.allowFilter", "true")
    git(place.base, "clone", "-q", "--filter=blob:none", "--no-checkout",
        f"file://{place.base}/far", place.base / "near")
    for entry in (place.base / "near").iterdir():
        entry.rename(place.work / entry.name)
    ran = place.sh("git read-tree HEAD")
    assert ran.status == 0 and "held" not in ran.err, ran
    assert git(place.work, "ls-files").stdout == "f\ng\n"
