"""Git directories are covered: a task's git works, and nothing that it writes reaches the host's
while it runs, but objects. Each layout of a checkout, as user and as root."""
import hashlib
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from boxed import IS_ROOT, LIMIT_S, eventually, listing, place, refused, select_ready
from live import live

__all__ = ["live", "place"]

IDENTITY = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
EXPORT = "".join(f"export {name}={value}; " for name, value in IDENTITY.items())
FILE = ("-c", "protocol.file.allow=always")


def git(directory, *arguments, **options):
    """The host's git, with nothing of the host's own configuration."""
    environment = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": "/dev/null",
                   "GIT_CONFIG_NOSYSTEM": "1"}
    options.setdefault("check", True)
    return subprocess.run(["git", "-C", directory, *arguments], env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=LIMIT_S, **options)


def fill(directory):
    """Two commits on main, another branch beside it."""
    (directory / "f").write_text("one\n")
    (directory / "g").write_text("g\n")
    git(directory, "add", ".")
    git(directory, "commit", "-qm", "one")
    git(directory, "branch", "other")
    (directory / "f").write_text("two\n")
    git(directory, "commit", "-qam", "two")


def init(directory, *options):
    directory.mkdir(exist_ok=True)
    git(directory, "init", "-q", "-b", "main", *options)


def plain(place):
    init(place.work)
    fill(place.work)
    return [place.work / ".git"]


def gitfile_out(place):
    init(place.work, "--separate-git-dir", place.base / "store")
    fill(place.work)
    return [place.base / "store"]


def gitfile_in(place):
    (place.work / "deep").mkdir()
    init(place.work, "--separate-git-dir", place.work / "deep" / "store")
    with open(place.work / "deep/store/info/exclude", "a", encoding="utf-8") as exclude:
        exclude.write("/deep/\n")
    fill(place.work)
    return [place.work / "deep/store"]


def link_out(place):
    plain(place)
    (place.work / ".git").rename(place.base / "real")
    (place.work / ".git").symlink_to(place.base / "real")
    return [place.base / "real"]


def link_in(place):
    plain(place)
    (place.work / ".git").rename(place.work / "real")
    (place.work / ".git").symlink_to("real")
    with open(place.work / "real/info/exclude", "a", encoding="utf-8") as exclude:
        exclude.write("/real/\n/.git\n")
    return [place.work / "real"]


def linked(place):
    """The workspace is a linked worktree."""
    main = place.base / "main"
    init(main)
    fill(main)
    place.work.rmdir()
    git(main, "worktree", "add", "-q", place.work, "-b", "linked")
    return [main / ".git"]


def library(place):
    init(place.base / "library")
    fill(place.base / "library")
    return place.base / "library"


def superproject(place):
    source = library(place)
    found = plain(place)
    git(place.work, *FILE, "submodule", "--quiet", "add", source, "libs/sub")
    git(place.work, "commit", "-qm", "sub")
    return found


def submodule(place):
    """The workspace is a submodule of something that the box does not show."""
    source = library(place)
    init(place.base / "super")
    fill(place.base / "super")
    git(place.base / "super", *FILE, "submodule", "--quiet", "add", source, "sub")
    place.work.rmdir()
    place.work = place.base / "super/sub"
    return [place.base / "super/.git/modules/sub"]


LAYOUTS = [plain, gitfile_out, gitfile_in, link_out, link_in, linked, superproject, submodule]
# every other one, root the rest; all of both in `make soak`
SAMPLED = LAYOUTS if os.environ.get("BAWN_SOAK") else LAYOUTS[IS_ROOT::2]


def state_of(root):
    """All of a git directory but its objects: kinds, modes, content."""
    found = {}
    for base, folders, files in os.walk(root):
        if os.path.basename(base) == "objects":
            folders[:] = [name for name in folders if name == "info"]
        for name in folders + files:
            path = os.path.join(base, name)
            status = os.lstat(path)
            digest = ""
            if stat.S_ISREG(status.st_mode):
                digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            found[os.path.relpath(path, root)] = (status.st_mode, digest)
    return found


class Held:
    """A run that has done its script and waits, so that the host can be looked at meanwhile."""

    def __init__(self, place, script, *options):
        self.place = place
        self.child = place.start("--stdin", *options, "--", "bash", "-c",
                                 EXPORT + script + "\necho ready; read -r answer; exit 0",
                                 stdin=subprocess.PIPE)

    def __enter__(self):
        line = select_ready(self.child)
        while line and line != b"ready\n":
            line = select_ready(self.child)
        if line != b"ready\n":
            out, err = self.child.communicate(timeout=LIMIT_S)
            pytest.fail(f"{self.child.returncode}\n{out.decode()}\n{err.decode()}")
        return self

    def __exit__(self, *_):
        self.out, self.err = self.child.communicate(b"\n", timeout=LIMIT_S)


EVERYDAY = (Path(__file__).parent / "everyday_git.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize("layout", SAMPLED)
def test_everyday_git(place, layout):
    found = layout(place)
    before = [state_of(root) for root in found]
    head = git(place.work, "rev-parse", "HEAD").stdout
    with Held(place, EVERYDAY.replace("set -e", "set -eE; trap 'echo line: $BASH_COMMAND >&2' ERR"),
              "--env", f"WORK={place.work}") as held:
        for root, was in zip(found, before):
            now = state_of(root)
            assert now == was, {name for name in {*now, *was} if now.get(name) != was.get(name)}
        assert git(place.work, "rev-parse", "HEAD").stdout == head
    assert held.child.returncode == 0, held.err
    for root in found:
        git(root, "--git-dir", root, "fsck")
    place.assert_nothing_left()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_action_of_a_live_task(live, layout):
    found = layout(live)
    task = live.begin()
    ran = live.sh_in(task, EXPORT + "echo a > live; git add live; git commit -qm live")
    assert ran.status == 0, ran
    # what an action did is on the host with its answer
    assert "live" in git(live.work, "log", "-1", "--oneline").stdout
    before = [state_of(root) for root in found]
    ran = live.sh_in(task, "git log --oneline; git config core.pager c")
    assert ran.status == 0 and "live" in ran.out, ran
    assert "held: core.pager" in ran.err, ran
    assert [state_of(root) for root in found] == before
    upper = live.state / "tasks" / task / "git/0/upper"
    assert (upper / "config").exists() or list(upper.glob("worktrees/*")), listing(upper)
    live.verb("task", "end", task)
    assert eventually(lambda: not os.listdir(live.state / "tasks"))


MARK = "touch {mark}"
PLANTED = {
    "hook": ("d=$(git rev-parse --git-path hooks); mkdir -p $d; "
             "printf '#!/bin/sh\\n{run}\\n' > $d/post-checkout; chmod +x $d/post-checkout"),
    "fsmonitor": "git config core.fsmonitor '{run};false'",
    "append": "printf '[core]\\n\\tfsmonitor = \"{run};false\"\\n' >> "
              "$(git rev-parse --git-path config)",
    "commondir": "cp -r $(git rev-parse --git-common-dir) evil; "
                 "git --git-dir=evil config core.fsmonitor '{run};false'; "
                 "echo $PWD/evil > $(git rev-parse --git-dir)/commondir",
    "filter": "git config filter.x.clean '{run};cat'; "
              "echo '* filter=x' > $(git rev-parse --git-path info/attributes); touch f",
    "moved": "g=$(git rev-parse --git-dir); cp -r $g/. evil; "
             "git --git-dir=evil config core.fsmonitor '{run};false'; "
             "mv .git old; mv evil .git; true",
    "removed": "cp -r $(git rev-parse --git-common-dir)/. evil; "
               "git --git-dir=evil config core.fsmonitor '{run};false'; "
               "rm -f .git; rm -f .git/config .git/HEAD; cp -r evil/. .git/; true",
    "exchanged": "cp -r $(git rev-parse --git-common-dir)/. evil; "
                 "git --git-dir=evil config core.fsmonitor '{run};false'; "
                 "python3 -c \"import ctypes;ctypes.CDLL(None).renameat2(-100,b'.git',-100,"
                 "b'evil',2)\"; true",
    "overwritten": "cp -r $(git rev-parse --git-common-dir)/. evil; "
                   "git --git-dir=evil config core.fsmonitor '{run};false'; "
                   "test -f .git && echo gitdir: $PWD/evil > .git; true",
}


def provoke(place):
    """What a person does beside a task."""
    git(place.work, "status", check=False)
    git(place.work, "checkout", "-q", "other", check=False)
    git(place.work, "diff", "--stat", check=False)


@pytest.mark.parametrize("layout", [plain, gitfile_out, link_in, linked, submodule])
@pytest.mark.parametrize("name", PLANTED)
def test_planted_things_do_not_reach_the_host(place, layout, name):
    mark = place.base / "mark"
    found = layout(place)
    before = [state_of(root) for root in found]
    script = PLANTED[name].replace("{run}", MARK.format(mark=mark))
    with Held(place, script):
        assert [state_of(root) for root in found] == before
        provoke(place)
        assert not mark.exists(), name
    place.assert_nothing_left()


@pytest.mark.parametrize("name", PLANTED)
def test_they_would_without_a_box(place, name):
    mark = place.base / "mark"
    (gitfile_out if name == "overwritten" else plain)(place)
    script = PLANTED[name].replace("{run}", MARK.format(mark=mark))
    subprocess.run(["bash", "-c", EXPORT + script], cwd=place.work, check=True, timeout=LIMIT_S,
                   stderr=subprocess.DEVNULL)
    provoke(place)
    assert mark.exists(), name


@pytest.mark.parametrize("script", [
    "cd libs/sub && git config core.fsmonitor 'touch {mark};false'",
    "printf '#!/bin/sh\\ntouch {mark}\\n' > .git/modules/libs/sub/hooks/post-checkout; "
    "chmod +x .git/modules/libs/sub/hooks/post-checkout",
    "cp -r .git/modules/libs/sub evil; git --git-dir=evil config core.fsmonitor "
    "'touch {mark};false'; echo gitdir: $PWD/evil > libs/sub/.git",
    "cp -r .git/modules/libs/sub evil; git --git-dir=evil config core.fsmonitor "
    "'touch {mark};false'; rm -f libs/sub/.git; mv evil libs/sub/.git",
    "cp -r libs libs2; git --git-dir=libs2/sub/.git config --file=$PWD/e core.worktree x; "
    "rm libs2/sub/.git; cp -r .git/modules/libs/sub libs2/sub/.git; "
    "git --git-dir=libs2/sub/.git config core.fsmonitor 'touch {mark};false'; "
    "git --git-dir=libs2/sub/.git config --unset core.worktree; mv libs old; mv libs2 libs",
])
def test_submodules_are_covered(place, script):
    mark = place.base / "mark"
    superproject(place)
    before = state_of(place.work / ".git")
    with Held(place, f"({script.replace('{mark}', str(mark))}) 2>/dev/null; true"):
        assert state_of(place.work / ".git") == before
        provoke(place)
        git(place.work / "libs/sub", "status", check=False)
        git(place.work / "libs/sub", "checkout", "-q", "other", check=False)
        assert not mark.exists()


def test_what_lies_in_the_object_store(place):
    plain(place)
    store = place.work / ".git/objects"
    ran = place.sh("echo /tmp > .git/objects/info/alternates; echo x > .git/objects/info/packs; "
                   "cat .git/objects/info/alternates; rm -rf .git/objects/info; "
                   "mv .git/objects .git/o; mv .git/objects/info .git/objects/i; "
                   "ln .git/config c; ls .git/objects")
    assert "/tmp\n" in ran.out, ran
    assert os.listdir(store / "info") == []
    assert (store / "pack").is_dir() and not (place.work / "c").exists()
    # a repository that lost it is none the worse
    (store / "info").rmdir()
    assert place.sh("mkdir .git/objects/info; echo x > .git/objects/info/packs").status == 0
    assert not (store / "info").exists()


@pytest.mark.parametrize("parent", ["", "below"])
def test_a_repository_right_below(place, parent):
    inner = place.work / "vendor"
    init(inner)
    fill(inner)
    if parent:
        init(place.work)
    before = state_of(inner / ".git")
    mark = place.base / "mark"
    with Held(place, f"cd vendor && git config core.fsmonitor 'touch {mark};false'; "
                     "cd ..; cp -r vendor evil; mv vendor old; mv evil vendor; true"):
        assert state_of(inner / ".git") == before
        git(inner, "status", check=False)
        assert not mark.exists()


@pytest.mark.parametrize("name", ["", "bare.git"])
def test_bare_repositories(place, name):
    bare = place.work / name
    init(place.base / "source")
    fill(place.base / "source")
    if not name:
        place.work.rmdir()
    git(place.base, "clone", "-q", "--bare", place.base / "source", bare)
    before = state_of(bare)
    with Held(place, f"cd {bare} && git branch new && git config a.b c && git branch -D other && "
                     f"git clone -q . /tmp/c && cd /tmp/c && echo a > a && git add a && "
                     f"git commit -qm a && git push -q origin HEAD:pushed"):
        assert state_of(bare) == before


@pytest.mark.parametrize("target", ["directory", "file", "outside-file"])
@pytest.mark.parametrize("how", ["hooksPath", "include", "link"])
def test_what_the_callers_configuration_leads_to(place, how, target):
    plain(place)
    (place.work / "tools/hooks").mkdir(parents=True)
    hook = place.work / "tools/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    extra = place.work / "tools/extra.cfg"
    extra.write_text("[alias]\n\tx = status\n")
    if how == "hooksPath":
        value = {"directory": "tools/hooks", "file": place.work / "tools/hooks",
                 "outside-file": "./tools/../tools/hooks"}[target]
        git(place.work, "config", "core.hooksPath", value)
        changed = hook
    elif how == "include":
        value = {"directory": "../tools/extra.cfg", "file": extra,
                 "outside-file": place.base / "outside.cfg"}[target]
        if target == "outside-file":
            (place.base / "outside.cfg").write_text(f"[include]\n\tpath = {extra}\n")
        git(place.work, "config", "include.path", value)
        changed = extra
    else:
        hooks = place.work / ".git/hooks"
        if target == "directory":
            shutil.rmtree(hooks)
            hooks.symlink_to("../tools/hooks")
        else:
            (hooks / "pre-commit").symlink_to("../../tools/hooks/pre-commit")
        changed = hook
    was = changed.read_bytes()
    ran = place.sh(f"echo evil >> {changed}; rm -f {changed}; mv {changed} {changed}.old; "
                   "mv tools tools2; mv tools/hooks tools/h2; true")
    assert ran.status == 0 and changed.read_bytes() == was, ran


def test_husky(place):
    plain(place)
    (place.work / ".husky/_").mkdir(parents=True)
    (place.work / ".husky/pre-commit").write_text("true\n")
    git(place.work, "config", "core.hooksPath", ".husky/_")
    ran = place.sh("echo evil > .husky/pre-commit; echo evil > .husky/_/pre-commit; true")
    assert ran.status == 0
    assert (place.work / ".husky/pre-commit").read_text() == "true\n"
    assert not list((place.work / ".husky/_").iterdir())


@pytest.mark.parametrize("name", [".vscode", ".idea", ".cursor", ".claude", ".codex", ".gemini",
                                  ".devcontainer", ".helix", ".kiro", ".github/hooks"])
def test_settings_are_read_only(place, name):
    (place.work / name).mkdir(parents=True)
    (place.work / name / "settings").write_text("kept\n")
    ran = place.sh(f"cat {name}/settings; echo evil > {name}/settings; touch {name}/new; "
                   f"mv {name} old; rm -rf {name}; true")
    assert ran.out == "kept\n"
    assert {p.name: p.read_text() for p in (place.work / name).iterdir()} == {"settings": "kept\n"}
    ran = place.sh(f"echo mine > {name}/settings", "--write", name)
    assert ran.status == 0 and (place.work / name / "settings").read_text() == "mine\n"


def test_hard_links(place):
    plain(place)
    os.link(place.work / ".git/config", place.work / "config")
    refused(place.sh("touch started"), place, 125, ".git/config", "hard links")
    assert place.sh("true", "--protect", ".git").status == 0
    (place.work / "config").unlink()
    assert place.sh("true").status == 0


def hostile(place, text):
    (place.work / ".git").write_text(text)


@pytest.mark.parametrize("text, word", [
    ("gitdir: /\n", "/"), ("gitdir: /etc\n", "/etc"), ("gitdir: ..\n", None),
    ("gitdir: .\n", "lies in it"), ("gitdir: {home}/.ssh\n", None), ("gitdir: {base}\n", None),
    ("gitdir: {base}/checkout/.git\n", "another checkout"), ("gitdir: sub\n", "no git directory"),
    ("gitdir: loop\n", "cannot be followed"), ("nonsense", "neither"),
    ("gitdir: /proc/1/root\n", None), ("gitdir: {other}\n", "another user"),
    ("gitdir: " + "a/" * 3000, "neither"), ("gitdir: a\0b\n", "neither"), ("x" * 100000, "neither"),
])
def test_hostile_git_files(place, text, word):
    init(place.base / "checkout")
    (place.work / "sub").mkdir()
    (place.work / "loop").symlink_to("loop")
    other = place.base / "other"
    init(other)
    if IS_ROOT:
        subprocess.run(["chown", "-R", "12345", other], check=True)
    elif "{other}" in text:
        pytest.skip("an ordinary user gives no files away")
    home = Path.home()
    made = not (home / ".ssh").exists() and "{home}" in text
    if made:
        (home / ".ssh").mkdir(mode=0o700)
    try:
        hostile(place, text.format(home=home, base=place.base, other=other / ".git"))
        refused(place.sh("touch started"), place, 125, "--protect", *[word] if word else [])
        ran = place.sh("cat .git > /dev/null; ls -a", "--protect", ".git")
        assert ran.status == 0, ran
    finally:
        if made:
            (home / ".ssh").rmdir()


def test_hostile_objects_do_not_hang(place):
    os.mkfifo(place.work / ".git")
    assert place.sh("true").status == 0
    (place.work / ".git").unlink()
    plain(place)
    for name in ("config", "commondir", "HEAD"):
        path = place.work / ".git" / name
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    os.mkfifo(place.work / ".git/hooks/pre-commit")
    assert place.sh("true").status == 0
    (place.work / ".git/config").unlink()
    (place.work / ".git/config").symlink_to("config")
    assert place.sh("true").status == 0
    (place.work / ".git/config").unlink()
    with open(place.work / ".git/config", "wb") as config:
        config.truncate(1 << 40)
    refused(place.sh("touch started"), place, 125, ".git/config", "larger")


def test_half_a_repository_is_covered(place):
    """A task could complete what git does not take for one yet."""
    (place.work / ".git").mkdir()
    with Held(place, "git init -q && git config core.fsmonitor x"):
        assert listing(place.work / ".git") == {}


def test_an_option_has_the_last_word(place):
    found = plain(place)
    before = state_of(found[0])
    ran = place.sh("git log --oneline && ! git config a.b c", "--protect", ".git")
    assert ran.status == 0, ran
    ran = place.sh("ls -a .git; ! git log", "--hide", ".git")
    assert ran.status == 0, ran
    assert state_of(found[0]) == before
    ran = place.sh("git config a.b c", "--write", ".git")
    assert ran.status == 0 and git(place.work, "config", "a.b").stdout == "c\n"
    ran = place.sh("cat .git/config; touch .git/HEAD; git status", "--hide", ".git/config")
    assert "No such file" in ran.err, ran


def test_what_a_task_leaves_in_its_layer_goes(place):
    plain(place)
    ran = place.sh("cd .git; for i in $(seq 300); do mkdir d && cd d || exit 1; done; touch f; "
                   "chmod 0 . ; cd ..; chmod 500 .; mkdir /tmp/x; cd $OLDPWD 2>/dev/null; cd; "
                   "ln -s / $OLDPWD/l; true")
    assert ran.status == 0, ran
    ran = place.sh("cd .git; mkdir -p a/b/c; chmod 0 a/b/c a/b a; mkfifo p; ln -s /etc l; "
                   "touch $'n\\n\\033' ; true")
    assert ran.status == 0, ran
    place.assert_nothing_left()
    assert_spares_are_empty(place)


MADE_BY_THE_KERNEL = {f"git/0/work/work{below}" for below in (
    "", "/incompat", "/incompat/volatile", "/incompat/volatile/dirty")}
KEPT = {"git", "git/0", "git/0/upper", "git/0/work", "git/covers", "git/git-snapshot", "sweep"}


def spares(place):
    """By their names; what a task's overlay left in `work` is there only where the name says so."""
    found = {spare.name: {str(path) for path in listing(spare)}
             for spare in (place.state / "spares").iterdir()}
    assert all(len(name) == 1 or (len(name) == 2 and name[1] == "~") for name in found), found
    return found


def assert_spares_are_empty(place):
    """Layers without content are kept for a later task, with the files that each writes anew."""
    for name, paths in spares(place).items():
        assert paths <= (KEPT | MADE_BY_THE_KERNEL if name[1:] else KEPT), (name, paths)


def test_what_the_kernel_left_goes_beside_the_next_action(place):
    plain(place)
    assert place.sh("true").status == 0
    only, = spares(place)
    assert only[1:] == "~" and MADE_BY_THE_KERNEL & spares(place)[only]
    child = place.start("--", "bash", "-c", "echo ready; sleep 1000")
    assert select_ready(child) == b"ready\n"
    assert eventually(lambda: os.listdir(place.state / "spares") == [only[0]]), spares(place)
    assert_spares_are_empty(place)
    child.kill()
    child.communicate()
    assert place.sh("true").status == 0
    assert_spares_are_empty(place)
    place.assert_nothing_left()


def test_no_more_than_so_many_wait(place):
    """Where every action is too short, starts take what lies there."""
    plain(place)
    for _ in range(3):
        assert place.sh("true").status == 0
    for letter in "abcdefghijklmnopqrstuvwxyz234567":
        layers = place.state / "spares" / f"{letter}~/git/0"
        if not layers.exists():
            for below in ("upper", "work/work/incompat/volatile"):
                (layers / below).mkdir(parents=True)
            (layers / "work/work/incompat/volatile/dirty").touch()
    for name in [name for name in spares(place) if not name[1:]]:
        shutil.rmtree(place.state / "spares" / name)
    # all names are taken: what cannot be kept is removed
    assert len(spares(place)) == 32
    assert place.sh("git status").status == 0
    assert len(spares(place)) <= 64
    assert_spares_are_empty(place)
    place.assert_nothing_left()


def replace(path, kind, outside):
    """What lies at the path goes, and a link, a named pipe or a file comes."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    {"link": lambda: path.symlink_to(outside), "pipe": lambda: os.mkfifo(path),
     "file": lambda: path.write_text("of nobody\n")}[kind]()


@pytest.mark.parametrize("kind, is_tidied", [("link", True), ("pipe", True), ("file", True),
                                             ("link", False)])
@pytest.mark.parametrize("mode", [[], ["--ephemeral"]], ids=["direct", "ephemeral"])
def test_what_was_replaced_is_made_anew(place, kind, is_tidied, mode):
    """A kept directory whose layers somebody replaced stops no start, and nothing goes through."""
    plain(place)
    outside = place.base / "outside"
    for below in ("0/upper", "0/work", "upper", "work", "work/work"):
        (outside / below).mkdir(parents=True)
        (outside / below / "x").write_text("x\n")
    before = listing(outside)
    names = left = None
    while names is None or left:
        assert place.sh("true", *mode).status == 0
        spare, = (place.state / "spares").iterdir()
        if is_tidied:
            for work in spare.glob("**/work/work"):
                shutil.rmtree(work)
            spare = spare.rename(spare.parent / spare.name[0])
        if names is None:
            left = names = sorted(str(path) for path in listing(spare))
            assert len(names) >= 5, names
        name = left.pop()
        if os.path.lexists(spare / name):
            replace(spare / name, kind, outside)
        # the first one tidies, beside its action, what the second one takes
        for wait_s in ([] if is_tidied else ["0.05"]) + ["0"]:
            ran = place.sh(f"sleep {wait_s}; git config a.b c && git log --oneline && echo ran",
                           *mode)
            assert ran.status == 0 and "ran" in ran.out, (name, ran)
        assert listing(outside) == before, name
        assert not is_tidied or not [path for path in (place.state / "spares").rglob("*")
                                     if path.is_symlink() or path.is_fifo()], name
        shutil.rmtree(place.state / "spares")
    place.assert_nothing_left()


def test_what_dead_supervisors_leave_goes(place):
    plain(place)
    child = place.start("--", "bash", "-c", "cd .git; mkdir -p a/b; chmod 0 a/b a; echo ready; "
                        "sleep 1000")
    assert select_ready(child) == b"ready\n"
    assert listing(place.state / "tasks")
    child.kill()
    child.wait()
    assert place.sh("true").status == 0
    place.assert_nothing_left()


def test_the_host_replaces_the_directory(place):
    """What takes its place is read-only from then on; nothing of it was covered."""
    plain(place)
    script = ("read -r line < <(while ! test -e go; do sleep 0.01; done; echo); "
              "for i in $(seq 500); do touch .git/probe 2>/dev/null || break; rm -f .git/probe; "
              "sleep 0.01; done; touch .git/probe; echo $? ")
    child = place.start("--", "bash", "-c", "echo ready; " + script)
    assert select_ready(child) == b"ready\n"
    (place.work / ".git").rename(place.base / "old")
    init(place.work)
    (place.work / "go").touch()
    out, err = child.communicate(timeout=LIMIT_S)
    assert out == b"1\n", (out, err)


def test_the_host_goes_on_meanwhile(place):
    plain(place)
    with Held(place, "echo mine > mine; git add mine; git commit -qm mine"):
        (place.work / "f").write_text("host\n")
        git(place.work, "config", "host.key", "kept")
        git(place.work, "gc", "-q")
        git(place.work, "commit", "-qm", "host", "f")
    assert git(place.work, "config", "host.key").stdout == "kept\n"
    git(place.work, "fsck")


def test_what_lies_in_a_layer_counts(place):
    """The layer is the task's to fill, as the workspace is."""
    plain(place)
    ran = place.sh("head -c 80M /dev/urandom > .git/big; sync .git/big; sleep 20", "--json",
                   "--disk", "20M")
    assert ran.result["cause"] == "limit", ran
    place.assert_nothing_left()


MOUNTED = r"""
set -e
mount -t tmpfs none .git/hooks
echo mounted > .git/hooks/mounted
"$@"
"""


def test_a_mount_in_a_git_directory(place):
    """A layer would show what lies below it, which the caller does not see."""
    plain(place)
    (place.work / ".git/hooks").mkdir(exist_ok=True)
    (place.work / ".git/hooks/below").write_text("covered\n")
    own = ["unshare", "-m" if IS_ROOT else "-Urm", "--propagation", "private", "sh", "-c",
           MOUNTED, "sh"]
    script = "cat .git/hooks/below; cat .git/hooks/mounted; echo ran"
    ran = place.sh(script, prefix=own)
    if "Operation not permitted" in ran.err and "mount:" in ran.err:
        pytest.skip("nothing may be mounted here")
    assert ran.status == 125 and ran.out == "", ran
    assert "something is mounted in it" in ran.err and "--protect" in ran.err, ran
    ran = place.sh(script, "--protect", ".git", prefix=own)
    assert ran.status == 0 and ran.out == "mounted\nran\n", ran
    ran = place.sh(script)
    assert ran.out == "covered\nran\n", "without the mount it is there"
    place.assert_nothing_left()
