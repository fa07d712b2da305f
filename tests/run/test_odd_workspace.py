"""Workspaces that are not the usual directory of a quiet disk: behind a link, on a mount,
read-only, gone in the middle, without room; and repositories that are broken or larger than most.
Each is refused or handled with a clear word, and no file of the user's is lost. As user and as
root."""
import os
import shutil
import subprocess

import pytest

from boxed import BAWN, IS_ROOT, LIMIT_S, Ran, select_ready
from live import live
from test_git_box import EXPORT, IDENTITY, fill, git, init, plain, state_of
from test_staged import contents, stages

__all__ = ["live"]

MODES = ["direct", "staged"]
SOAK = bool(os.environ.get("BAWN_SOAK"))
SHELL = r"""
b() { verb=$1; shift; "$BAWN" "$verb" --state-dir "$STATE" "$@"; }
cd "$WORK"
"""


def option(mode):
    return ["--stage"] if mode == "staged" else []


def finish(live, mode, status=0):
    """What the mode leaves to do until it is on the host."""
    if mode == "staged":
        ran = live.verb("apply")
        assert ran.status == status, ran


def in_namespace(live, mode, set_up, script):
    """In a mount namespace of its own, which `set_up` made; `b` is bawn with our state."""
    options = [*option(mode), *(f"--env={name}" for name in IDENTITY)]
    environment = {**os.environ, **IDENTITY, "BAWN": BAWN, "STATE": str(live.state),
                   "WORK": str(live.work), "BASE": str(live.base), "STAGE": " ".join(option(mode)),
                   "OPTIONS": " ".join(options)}
    words = ["unshare", "-m" if IS_ROOT else "-Urm", "--propagation", "private", "sh", "-c",
             f"set -e\n{set_up}\nset +e\n{SHELL}{script}"]
    return subprocess.run(words, env=environment, cwd=live.base, text=True, capture_output=True,
                          timeout=2 * LIMIT_S, check=False, stdin=subprocess.DEVNULL)


# ---- where it lies ----


@pytest.mark.parametrize("mode", MODES)
def test_behind_a_link(live, mode):
    """It is the directory that the link leads to, whatever the path that one came by."""
    plain(live)
    link = live.base / "link"
    link.symlink_to("work")
    environment = {**os.environ, "PWD": str(link)}
    ran = live.sh(f"{EXPORT} pwd; echo x > f; git commit -qam linked", *option(mode), cwd=link,
                  env=environment)
    assert ran.status == 0 and ran.out == f"{live.work}\n", ran
    if mode == "staged":
        assert live.verb("apply", link / "f", cwd=link, env=environment).status == 0
        assert live.verb("apply", cwd=link).status == 0
    assert (live.work / "f").read_text() == "x\n"
    assert git(live.work, "log", "-1", "--format=%s").stdout == "linked\n"
    ran = live.run("--workspace", link, *option(mode), "--", "pwd", cwd="/")
    assert ran.status == 0 and ran.out == f"{live.work}\n", ran
    link.unlink()
    for target in ("nowhere", "link"):
        link.symlink_to(target)
        ran = live.run("--workspace", link, "--", "touch", "started", cwd="/")
        assert ran.status == 125 and str(link) in ran.err, ran
        link.unlink()
    live.assert_nothing_left()


MOUNTS = {
    "tmpfs": 'mount -t tmpfs -o mode=755 none "$WORK"',
    "bind": 'mkdir other; mount --bind other "$WORK"',
    "below": 'mkdir "$WORK/sub"; echo under > "$WORK/sub/under"; mount -t tmpfs none "$WORK/sub"; '
             'echo kept > "$WORK/sub/kept"',
    "overlay": 'mkdir l u w; mount -t overlay -o lowerdir=l,upperdir=u,workdir=w,userxattr none '
               '"$WORK"',
}
MOUNTED = r"""
git init -q -b main; echo one > f; git add f; git commit -qm one
b run $OPTIONS -- sh -c 'echo x > f; git commit -qam two; cat sub/* 2>/dev/null || :'
echo "run $?"
[ -z "$STAGE" ] || { b apply > /dev/null; echo "apply $?"; }
cat f; git log --format=%s -1; git status --porcelain
"""
COMES = {"direct": "run 0\nx\ntwo\n", "staged": "run 0\napply 0\nx\ntwo\n"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", MOUNTS)
def test_on_a_mount(live, kind, mode):
    done = in_namespace(live, mode, MOUNTS[kind], MOUNTED)
    if kind == "below" and mode == "staged":
        assert done.stdout.startswith("run 125\n"), done
        assert f"mounted in it, at {live.work}/sub" in done.stderr, done
    elif kind == "below":
        assert done.stdout == "kept\n" + COMES[mode] + "?? sub/\n", done
    elif kind == "overlay" and IS_ROOT and mode == "direct":
        assert done.stdout.startswith("run 125\n") and "cannot map ids" in done.stderr, done
    else:
        assert done.stdout == COMES[mode], done


READ_ONLY = r"""
git init -q -b main; echo one > f; git add f; git commit -qm one
mount -o remount,bind,ro "$WORK"; cd "$WORK"
b run $OPTIONS -- sh -c 'echo x > f; git commit -q --allow-empty -am two'; echo "run $?"
[ -z "$STAGE" ] || { b apply > /dev/null; echo "apply $?"; }
cat f; git --no-optional-locks log --format=%s -1
mount -o remount,bind,rw "$WORK"; cd "$WORK"
b run -- true; echo "run $?"
[ -z "$STAGE" ] || { b apply > /dev/null; echo "apply $?"; }
cat f; git log --format=%s -1; git status --porcelain; ls -A
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_read_only_file_system(live, mode):
    """What cannot come to the host waits until it can."""
    done = in_namespace(live, mode, MOUNTS["bind"], READ_ONLY)
    if mode == "direct":
        assert done.stdout == "run 125\none\none\nrun 0\none\ntwo\n.git\nf\n", done
        assert "has not come to the host yet; the next start of bawn tries again" in done.stderr
    else:
        assert done.stdout == "run 0\napply 125\none\none\nrun 0\napply 0\nx\ntwo\n.git\nf\n"
    assert done.stderr.count("Read-only file system") == (2 if mode == "direct" else 1), done


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_it_vanishes_in_the_middle(live, mode, how):
    """Moved away, it is worked in where it is by now; what stands in its place is another's."""
    plain(live)
    moved = live.base / "moved"
    child = live.start("--stdin", *option(mode), "--", "sh", "-c", f"{EXPORT} echo ready; read x; "
                       "echo mine > f; echo new > new; git commit -qam task; exit 0",
                       stdin=subprocess.PIPE)
    assert select_ready(child) == b"ready\n"
    if how == "removed":
        shutil.rmtree(live.work)
    else:
        live.work.rename(moved)
    live.work.mkdir()
    (live.work / "f").write_text("other\n")
    if how == "moved":
        shutil.rmtree(live.work)
    out, err = child.communicate(b"\n", timeout=LIMIT_S)
    ran = Ran(child.returncode, out, err)
    live.work.mkdir(exist_ok=True)
    assert ran.status == 0 and "not looked through" not in ran.err, ran
    assert contents(live.work) == ({} if how == "moved" else {"f": (0o644, b"other\n")}), ran
    for task in stages(live):
        for verb in ("diff", "apply"):
            ran = live.verb(verb, task)
            assert ran.status == 1 and "another directory stands there by now" in ran.err, ran
        if how != "removed":
            live.work.rename(live.base / "other")
            moved.rename(live.work)
            assert live.verb("apply", task).status == 0
            live.work.rename(moved)
    if how != "removed":
        assert (moved / "f").read_text() == "mine\n" and (moved / "new").read_text() == "new\n"
        assert git(moved, "log", "-1", "--format=%s", "main").stdout == "task\n"
    live.work.mkdir(exist_ok=True)
    assert live.run("--", "true").status == 0
    live.assert_nothing_left()


FULL = r"""
git init -q -b main; for n in 1 2 3 4; do echo $n > f$n; done; git add .; git commit -qm one
echo fill >> .git/info/exclude; head -c 1000000 /dev/zero > fill
b run $OPTIONS -- sh -c 'for n in 1 2 3; do head -c 300000 /dev/urandom > /tmp/$n; done
    cp /tmp/1 f1; git commit -qam two; cp /tmp/2 f2; git commit -qam three; cp /tmp/3 f3'
echo "run $?"
[ -z "$STAGE" ] || { b apply > /dev/null; echo "apply $?"; }
git log --format=%s -1; git fsck; stat -c %s f1 f2 f3 f4 | sort -u | tr '\n' ' '; ls -A | wc -l
rm fill
b run -- true; echo "run $?"
[ -z "$STAGE" ] || { b apply > /dev/null; echo "apply $?"; }
git log --format=%s -1; git fsck; stat -c %s f1 f2 f3 f4 | tr '\n' ' '; ls -A | wc -l
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_full_disk(live, mode):
    """No room for what git did, or for the files: old or new, and the rest comes when there is."""
    done = in_namespace(live, mode, 'mount -t tmpfs -o size=2m,mode=755 none "$WORK"', FULL)
    first, _, second = done.stdout.partition("run 0\n" if mode == "direct" else "apply 125\n")
    assert ("run 125" in first) == (mode == "direct") and "No space left" in done.stderr, done
    assert "missing" not in done.stdout and "broken" not in done.stdout, done
    # each file is the old one or the new one, and nothing of ours lies beside them
    assert "2 300000 6\n" in first + second, done
    assert second.endswith("three\n300000 300000 300000 2 5\n"), done


# ---- odd repositories ----


@pytest.mark.parametrize("mode", MODES)
def test_a_worktree_outside(live, mode):
    """In the box it looks gone, and git prunes it there: the host's stays, with its index."""
    plain(live)
    other = live.base / "other"
    git(live.work, "worktree", "add", "-q", other, "-b", "wt")
    (other / "f").write_text("dirty\n")
    git(other, "add", "f")
    ran = live.sh(f"{EXPORT} git worktree prune; git gc -q --prune=now; git branch -qD wt; "
                  "git commit -q --allow-empty -m three", *option(mode))
    assert ran.status == 0, ran
    finish(live, mode, 1)
    assert git(live.work, "log", "-1", "--format=%s").stdout == "three\n"
    assert git(other, "status", "--porcelain", "--branch").stdout == "## wt\nM  f\n"
    held = live.verb("review").out
    assert "worktrees/other" in held and "refs/heads/wt" in held, held


@pytest.mark.parametrize("mode", MODES)
def test_objects_elsewhere(live, mode):
    """A clone that shares its objects works where these are shown, and only there."""
    library = live.base / "library"
    init(library)
    fill(library)
    live.work.rmdir()
    git(live.base, "clone", "-qs", library, live.work)
    script = f"{EXPORT} git log --oneline && echo x > f && git commit -qam three"
    ran = live.sh(script, *option(mode))
    assert ran.status == 128 and str(library) in ran.err, ran
    assert git(live.work, "status", "--porcelain").stdout == ""
    before = state_of(library / ".git")
    ran = live.sh(script, *option(mode), "--read", library / ".git/objects")
    assert ran.status == 0, ran
    finish(live, mode)
    assert git(live.work, "log", "-1", "--format=%s").stdout == "three\n"
    git(live.work, "fsck")
    assert state_of(library / ".git") == before


MANY = 100_000


@pytest.mark.parametrize("mode", MODES)
def test_many_references(live, mode):
    plain(live)
    git(live.work, "gc", "-q")
    head = git(live.work, "rev-parse", "HEAD").stdout.strip()
    packed = live.work / ".git/packed-refs"
    lines = [f"{head} refs/heads/b{number:06}\n" for number in range(MANY)]
    packed.write_text("# pack-refs with: peeled fully-peeled sorted \n" + "".join(lines))
    # of processor time: git's own part is a tenth of that
    ran = live.sh(f"{EXPORT} git commit -q --allow-empty -m three; git branch -qD b000500 b050000; "
                  "git branch new; git update-ref refs/heads/b000001 HEAD", *option(mode),
                  "--json", limit=3 * LIMIT_S)
    assert ran.status == 0 and "held" not in ran.err, ran
    finish(live, mode)
    assert git(live.work, "log", "-1", "--format=%s").stdout == "three\n"
    text = packed.read_text()
    assert "b000500" not in text and "b050000" not in text and text.count("\n") == MANY - 1
    assert git(live.work, "rev-parse", "b000001", "new", "b000002").stdout.split()[2] == head
    assert len(list((live.work / ".git/refs/heads").iterdir())) < 6


@pytest.mark.parametrize("mode", MODES)
def test_references_that_are_no_files(live, mode):
    """A git that is newer than bawn's knowledge of it: what it keeps there is held."""
    plain(live)
    folder = live.work / ".git/reftable"
    folder.mkdir()
    (folder / "tables.list").write_text("0x1-0x1-aa.ref\n")
    git(live.work, "config", "core.repositoryformatversion", "1")
    git(live.work, "config", "extensions.refStorage", "reftable")
    before = state_of(live.work / ".git")
    ran = live.sh("cd .git; echo x > reftable/y; echo z >> reftable/tables.list; rm -rf refs; "
                  "echo ref: refs/heads/zz > HEAD; echo x > ../f", *option(mode))
    assert ran.status == 0, ran
    finish(live, mode, 1)
    assert state_of(live.work / ".git") == before and (live.work / "f").read_text() == "x\n"
    assert "reftable" in live.verb("review").out


def zero(path):
    path.write_bytes(b"")


def cut(path):
    path.write_bytes(path.read_bytes()[:-5])


def garbage(path):
    path.write_bytes(b"\0\xff[" * 100)


def gone(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def folder(path):
    gone(path)
    path.mkdir()


def a_file(path):
    gone(path)
    path.write_text("x")


def loop(path):
    gone(path)
    path.symlink_to(path.name)


BROKEN = [*((how, name) for how in (zero, cut, garbage, gone, folder, loop)
            for name in ("HEAD", "config", "index", "refs/heads/main", "packed-refs", "logs/HEAD")),
          *((how, name) for how in (gone, a_file, loop)
            for name in ("objects", "objects/pack", "refs", "refs/heads", "logs", "hooks", "info")),
          *((how, "commondir") for how in (zero, garbage, folder, loop)),
          *((how, f"worktrees/w/{name}") for how in (zero, garbage, gone, loop)
            for name in ("HEAD", "gitdir", "commondir")),
          *((how, f"modules/m/{name}") for how in (zero, garbage, gone, loop)
            for name in ("HEAD", "config"))]


def break_it(live, how, name):
    """One thing is broken, of a repository with a worktree, a module and packed references."""
    plain(live)
    git(live.work, "branch", "packed")
    git(live.work, "pack-refs", "--all")
    git(live.work, "commit", "-q", "--allow-empty", "-m", "three")
    git(live.work, "worktree", "add", "-q", live.base / "w", "-b", "wt")
    shutil.copytree(live.work / ".git", live.work / ".git/modules/m",
                    ignore=shutil.ignore_patterns("modules", "worktrees"))
    path = live.work / ".git" / name
    if name == "commondir":
        path.write_text(".\n")
    how(path)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how, name", BROKEN if SOAK else BROKEN[IS_ROOT::7],
                         ids=lambda word: getattr(word, "__name__", word))
def test_a_broken_repository(live, mode, how, name):
    """Handled or refused with one line; what stands there is as it was, the work is done."""
    break_it(live, how, name)
    before = state_of(live.work / ".git")
    ran = live.sh("echo x > f; git status > /dev/null 2>&1; exit 0", *option(mode))
    if ran.status == 125:
        assert ran.err.startswith("bawn: ") and ".git" in ran.err, ran
        assert (live.work / "f").read_text() == "two\n"
    else:
        assert ran.status == 0, ran
        finish(live, mode, 0 if "held" not in ran.err else 1)
        assert (live.work / "f").read_text() == "x\n"
    after = state_of(live.work / ".git")
    # a status that refreshed the index is none of a task's doing
    assert {path: what for path, what in after.items() if not path.endswith("index")} == \
        {path: what for path, what in before.items() if not path.endswith("index")}, ran
    ran = live.sh(f"{EXPORT} git commit -qam four; git branch more; exit 0", *option(mode))
    assert ran.status in (0, 125) and "Traceback" not in ran.err, ran
    if mode == "staged" and stages(live):
        assert live.verb("apply").status in (0, 1, 125)
    live.assert_nothing_left()
