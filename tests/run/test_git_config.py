"""git's configuration as it is read and merged, held against git itself as the oracle.

Texts and changes are random with a fixed seed; bawn-git-lab is tests/tools/git-lab.c. The order of
keys is not compared, that of the values of one key is.
"""
import os
import random
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from boxed import BAWN, LIMIT_S

LAB = str(Path(BAWN).parent / "bawn-git-lab")
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": "/nonexistent",
               "GIT_CONFIG_NOSYSTEM": "1"}
TEXTS = 200
MERGES = 60

PIECES = [b"[a]", b"[A.b]", b'[a "b"]', b'[a "B\\"c\\\\d"]', b'[ "x"]', b"[a.]", b"[a-1\t \"\"]",
          b"[", b"]", b'"', b"\\", b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\t", b" ", b"=", b" = ",
          b"key", b"K-2", b"x y", b"#", b";", b"\\n", b"\\t", b"\\\\", b'\\"', b"\\\n", b"\\\r\n",
          b"\\q", b"\xc3\xa9", b"\v", b"\f", b"0", b".", b"-", b"\xef\xbb\xbf", b"\x01"]
LINES = [b"[user]\n", b"\tname = A B\n", b"\temail=a@b # c\n", b'[branch "Main"]\n',
         b"  remote = origin\n",
         b'\tdescription = "x\\ny"\n', b"[gc]auto=0\n", b"# comment\n", b"\n", b"\tflag\n",
         b"long = a \\\n  b\n", b"[core] ; c\r\n", b"\teol = lf\r\n", b'[a "b c"] k = "x # y" z\n']


def run(*argv, data=None):
    ran = subprocess.run(argv, input=data, capture_output=True, timeout=LIMIT_S, env=ENVIRONMENT)
    return ran.returncode, ran.stdout, ran.stderr


def git(path, *arguments):
    return run("git", "config", "-f", str(path), *arguments)


def listed(path):
    status, out, _ = git(path, "--list", "-z")
    return (out.split(b"\0")[:-1] if status == 0 else None)


def values(path):
    """{key: [values in order]}; a key without '=' has None."""
    result = defaultdict(list)
    for item in listed(path):
        key, found, value = item.partition(b"\n")
        result[key].append(value if found else None)
    return result


def random_text(random_):
    if random_.random() < 0.5:
        return b"".join(random_.choices(PIECES, k=random_.randrange(1, 25)))
    text = bytearray(b"[x]\n" + b"".join(random_.choices(LINES, k=random_.randrange(1, 12))))
    for _ in range(random_.choice([0, 0, 1, 2])):
        at = random_.randrange(len(text) + 1)
        text[at:at + random_.randrange(3)] = random_.choice(PIECES)
    return bytes(text)


def test_reads_what_git_reads(tmp_path):
    random_ = random.Random(1)
    path, good = tmp_path / "config", 0
    for number in range(TEXTS):
        text = random_text(random_)
        path.write_bytes(text)
        wanted = listed(path)
        status, out, _ = run(LAB, "list", str(path))
        got = out.split(b"\0")[:-1] if status == 0 else None
        assert got == wanted, (number, text)
        good += wanted is not None
    assert TEXTS / 5 < good < TEXTS * 4 / 5


SAFE = ["user.name", "user.email", "gc.auto", "branch.main.description", "branch.Main.rebase",
        "branch.a.b.description", "submodule.x y.active", "color.ui", "advice.x", "pull.ff"]
UNSAFE = ["core.pager", "alias.st", "core.fsmonitor", "filter.x.clean", "branch.main.mergeoptions"]
GOOD = {"gc.auto": ["0", "100", "1k"], "branch.Main.rebase": ["true", "false"], "pull.ff": ["only"],
        "submodule.x y.active": ["true", "0"], "color.ui": ["auto", "never"], "advice.x": ["no"]}
TEXT_VALUES = ["A B", "x;y", "a # b", 'q"uo"te', "back\\slash", " edge ", "\u00e9", "x"]


def edit(path, random_, count):
    """Some changes by git itself, and some by hand as a person makes them."""
    for _ in range(count):
        key = random_.choice(SAFE + UNSAFE)
        value = random_.choice(GOOD.get(key, TEXT_VALUES))
        what = random_.randrange(8)
        if what < 3:
            git(path, "--replace-all", key, value)
        elif what == 3:
            git(path, "--add", key, value)
        elif what == 4:
            git(path, "--unset-all", key)
        elif what == 5:
            git(path, "--remove-section", key.rpartition(".")[0])
        elif what == 6:
            git(path, "--rename-section", "branch.main", "branch.a.b")
        else:
            append = random_.choice([b"# mine\n", b"\n", b"[user]\n\temail = z # c\n",
                                     b"[x] y = z\\\n",
                                     b"[gc]\r\n\tauto = 7\r\n", b"[branch \"Main\"] rebase"])
            before = path.read_bytes()
            path.write_bytes(before + append)
            if listed(path) is None:
                path.write_bytes(before)


def is_allowed(key, wanted, sections):
    """All values made here pass their checks, but a missing one; of a branch, all may go."""
    name = key.decode()
    section = name.rpartition(".")[0]
    if name.startswith("branch.") and section not in sections:
        return True
    if name not in SAFE and not (name.startswith("branch.") and
                                 name.endswith((".description", ".rebase"))):
        return False
    return None not in wanted or name.endswith(".rebase")


def test_merges_as_by_git(tmp_path):
    random_ = random.Random(2)
    before, after, now, new = (tmp_path / name for name in ("before", "after", "now", "new"))
    applied = refused = conflicts = 0
    for number in range(MERGES):
        before.write_bytes(b"".join(random_.choices(LINES[:2] + LINES[5:9], k=4))
                           if random_.random() < 0.2 else b"# top\n[core]\n\tbare = false\n")
        if listed(before) is None:
            continue
        edit(before, random_, random_.randrange(8))
        for path in (after, now):
            path.write_bytes(before.read_bytes())
        edit(after, random_, random_.randrange(1, 6))
        edit(now, random_, random_.randrange(3))
        status, text, held = run(LAB, "merge", before, after, now)
        assert status == 0, (number, held)
        new.write_bytes(text)
        b, a, n, got = (values(path) for path in (before, after, now, new))
        held = set(held.splitlines())
        sections = {key.rpartition(b".")[0].decode() for key in a}
        for key in {*b, *a, *n, *got}:
            if a[key] in (b[key], n[key]):
                wanted, is_held = n[key], False
            else:
                allowed = is_allowed(key, a[key], sections)
                is_held = not allowed or n[key] != b[key]
                wanted = n[key] if is_held else a[key]
                applied += not is_held
                refused += not allowed
                conflicts += n[key] != b[key]
            assert got[key] == wanted, (number, key)
            assert (key in held) == is_held, (number, key, held)
        lines = now.read_bytes().splitlines()
        assert [line for line in text.splitlines() if line.lstrip().startswith(b"#")] == [
            line for line in lines if line.lstrip().startswith(b"#")], number
    assert min(applied, refused) > 20 and conflicts > 1, (applied, refused, conflicts)


@pytest.fixture
def repository(tmp_path):
    """A clone of a bare repository by its path, as tests and people have it."""
    def run_git(*arguments, cwd=tmp_path / "work"):
        status, out, err = run("git", "-C", str(cwd), *arguments)
        assert status == 0, (arguments, err)
        return out

    run_git("init", "-q", "--bare", "origin.git", cwd=tmp_path)
    run_git("clone", "-q", "origin.git", "work", cwd=tmp_path)
    run_git("config", "user.name", "a")
    run_git("config", "user.email", "a@b")
    run_git("commit", "-q", "--allow-empty", "-m", "x")
    run_git("branch", "-M", "main")
    run_git("push", "-q", "-u", "origin", "main")
    return tmp_path / "work", run_git


@pytest.mark.parametrize("commands", [
    "checkout -q -b topic --track origin/main",
    "checkout -q -b topic; push -q -u origin topic",
    "branch -m main trunk",
    "branch -c main copy",
    "branch --unset-upstream",
    "branch --set-upstream-to=origin/main main",
    "remote add fork https://h/fork.git",
    "remote add -t a -t b fork ../origin.git; remote remove fork",
    "remote rename origin upstream",
    "remote remove origin",
    "remote set-branches --add origin topic",
    "remote add --tags fork git@h:fork.git; checkout -q -b t; config branch.t.remote fork; "
    "config branch.t.merge refs/heads/t",
    "config user.name other; config pull.rebase true; config --add color.diff.meta 'bold red'",
    "checkout -q -b t --track main; branch -D -q main",
    "maintenance run --auto; sparse-checkout init --no-cone; gc -q",
])
def test_everyday_git_is_applied_as_a_whole(repository, tmp_path, commands):
    work, run_git = repository
    config = work / ".git/config"
    before, new = tmp_path / "before", tmp_path / "new"
    before.write_bytes(config.read_bytes())
    for command in commands.split("; "):
        words = command.replace("'bold red'", "bold\0red").split(" ")
        run_git(*(word.replace("\0", " ") for word in words))
    status, text, held = run(LAB, "merge", before, config, before)
    assert status == 0, held
    new.write_bytes(text)
    held = set(held.splitlines())
    # what makes another file count (see git_key.def)
    assert held <= {b"extensions.worktreeconfig"}
    wanted = values(config)
    for key in held:
        del wanted[key]
    assert values(new) == wanted
