"""The commit engine on real repositories: everyday git in an overlay, then its changes on the host.

tests/tools/commit-lab.c is the engine without a box. Each operation is done twice: by plain git in
a copy, and by git on an overlay in namespaces of its own, after which the engine takes the changes
over. Both repositories must then look the same to git.
"""
import errno
import json
import os
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest

from boxed import BAWN, remove_tree
from test_faults import injector

__all__ = ["injector"]

LAB = str(Path(BAWN).parent / "bawn-commit-lab")
LIMIT_S = 60
ENVIRONMENT = {
    "PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "C",
    "GIT_COMMITTER_EMAIL": "c@example.org", "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_DATE": "1700000000 +0000", "GIT_EDITOR": "true", "GIT_PAGER": "cat",
    "GIT_ALLOW_PROTOCOL": "file", "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "init.defaultBranch", "GIT_CONFIG_VALUE_0": "main",
    "GIT_CONFIG_KEY_1": "protocol.file.allow", "GIT_CONFIG_VALUE_1": "always",
    "GIT_CONFIG_KEY_2": "advice.detachedHead", "GIT_CONFIG_VALUE_2": "false",
}
OVERLAY = """
set -e
gitdir=$1 upper=$2 work=$3
shift 3
mount -t overlay overlay -o "lowerdir=$gitdir,upperdir=$upper,workdir=$work,userxattr" "$gitdir"
exec "$@"
"""


def sh(script, cwd, check=True):
    done = subprocess.run(["bash", "-ec", script], cwd=cwd, env=ENVIRONMENT, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S)
    assert not check or done.returncode == 0, (script, done.stdout, done.stderr)
    return done


class Lab:
    """A workspace with a repository, and what the engine needs beside it."""

    def __init__(self, base, name="ws", gitdir=".git"):
        self.base = base
        self.work = base / name
        self.gitdir = (self.work / gitdir).resolve()
        self.plain = base / "plain"
        for folder in ("upper", "over", "state", "t-1"):
            (base / folder).mkdir(exist_ok=True)
        self.upper, self.state, self.task = base / "upper", base / "state", base / "t-1"

    def places(self):
        return [self.work, self.task, self.state, self.gitdir, self.upper]

    def lab(self, *words, check=True):
        done = subprocess.run([LAB, *map(str, words)], text=True, capture_output=True,
                              env=ENVIRONMENT, timeout=LIMIT_S, errors="surrogateescape")
        assert not check or done.returncode == 0, done.stderr
        return done

    def outcomes(self, done):
        rows = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
        return [tuple(row) for row in rows]

    def overlaid(self, script):
        return ["unshare", "-Urm", "--propagation", "private", "bash", "-c", OVERLAY, "overlay",
                *map(str, [self.gitdir, self.upper, self.base / "over"]),
                "bash", "-ec", f"cd '{self.work}'\n{script}"]

    def snapshot(self):
        self.lab("snapshot", self.task, self.gitdir)

    def do(self, script):
        """In the overlay, without the engine."""
        done = subprocess.run(self.overlaid(script), text=True, capture_output=True,
                              env=ENVIRONMENT, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, (script, done.stdout, done.stderr)

    def commit(self, word="commit", check=True):
        return self.lab(word, *self.places(), check=check)

    def run(self, script):
        """Snapshot, the script in the overlay, the engine; gives its outcomes."""
        done = self.lab("run", *self.places(), "--", *self.overlaid(script))
        return self.outcomes(done)

    def held(self):
        return self.outcomes(self.lab("held", self.state))

    def close(self):
        for root, folders, _ in os.walk(self.base / "over"):
            for folder in folders:
                os.chmod(os.path.join(root, folder), 0o700)


@pytest.fixture
def base(tmp_path):
    # names of the test are long, and git writes paths into its files
    path = Path("/tmp") / f"bawn-git-{os.getpid()}-{os.urandom(3).hex()}"
    path.mkdir(mode=0o755)
    yield path
    remove_tree(path)


SETUP = """
git init -q --bare "$PWD/../remote.git"
git init -q .
printf 'one\\n' >a; printf 'two\\n' >b; mkdir d; printf 'three\\n' >d/c
git add .; git commit -qm first
printf 'more\\n' >>a; git commit -qam second
git tag v1
git branch topic; git branch old
git remote add origin ../remote.git; git push -q origin main topic
git checkout -q topic; printf 'x\\n' >t; git add t; git commit -qm topic
git checkout -q main
git config user.name A
"""

CONFLICT = ("git checkout -q topic; echo z >>a; git commit -qam z; git checkout -q main;"
            "echo y >>a; git commit -qam y")

# name -> (what is done before, in both; the operation)
OPERATIONS = {
    "add": ("", "echo n >n; git add n"),
    "commit": ("", "echo n >n; git add n; git commit -qm n"),
    "commit-all": ("", "echo n >>a; git commit -qam n"),
    "amend": ("", "git commit -q --amend -m other"),
    "rm": ("", "git rm -q b; git commit -qm rm"),
    "mv": ("", "git mv b c; git commit -qm mv"),
    "reset-mixed": ("", "git reset -q HEAD~1"),
    "reset-hard": ("", "git reset -q --hard HEAD~1"),
    "restore": ("echo y >>a", "git restore a"),
    "branch": ("", "git branch new"),
    "branch-deep": ("", "git branch feature/deep/new; git branch feature/other"),
    "checkout-b": ("", "git checkout -q -b new; echo n >n; git add n; git commit -qm n"),
    "checkout-track": ("git fetch -q; git branch -q -D topic",
                       "git checkout -q --track origin/topic"),
    "switch": ("", "git switch -q topic"),
    "detach": ("", "git checkout -q --detach v1"),
    "branch-rename": ("git checkout -q topic", "git branch -m topic renamed"),
    "branch-copy": ("", "git branch -c topic copied"),
    "branch-delete": ("", "git branch -D old"),
    "branch-delete-packed": ("git pack-refs --all", "git branch -D old topic"),
    "branch-to-directory": ("", "git branch -D old; git branch old/inner"),
    "tag": ("", "git tag light; git tag -a -m annotated heavy"),
    "tag-delete": ("git pack-refs --all", "git tag -d v1"),
    "merge-ff": ("", "git merge -q topic"),
    "merge": ("", "echo n >n; git add n; git commit -qm n; git merge -q --no-edit topic"),
    "merge-conflict": (CONFLICT, "git merge topic || true"),
    "merge-abort": (CONFLICT + "; git merge topic || true", "git merge --abort"),
    "rebase": ("echo n >n; git add n; git commit -qm n", "git rebase -q topic"),
    "rebase-conflict": (CONFLICT, "git rebase topic || true"),
    "rebase-continue": (CONFLICT + "; git rebase topic || true",
                        "echo both >a; git add a; git rebase --continue"),
    "rebase-abort": (CONFLICT + "; git rebase topic || true",
                     "git rebase --abort"),
    "cherry-pick": ("", "git cherry-pick topic"),
    "cherry-pick-conflict": ("git checkout -q topic; echo z >>a; git commit -qam z; echo w >>a;"
                             "git commit -qam w; git checkout -q main; echo y >>a;"
                             "git commit -qam y", "git cherry-pick topic~1 topic || true"),
    "revert": ("", "git revert --no-edit HEAD"),
    "am": ("git format-patch -q -1 topic -o ../mails", "git am -q ../mails/*"),
    "stash": ("echo y >>a", "git stash -q"),
    "stash-pop": ("echo y >>a; git stash -q", "git stash pop -q"),
    "stash-drop": ("echo y >>a; git stash -q; echo w >>a; git stash -q", "git stash drop -q"),
    "fetch": ("git clone -q ../remote.git ../other; cd ../other; git checkout -q main; echo r >r;"
              "git add r; git commit -qm r; git push -q origin main:main main:more",
              "git fetch -q"),
    "pull": ("git clone -q ../remote.git ../other; cd ../other; git checkout -q main; echo r >r;"
             "git add r; git commit -qm r; git push -q", "git pull -q origin main"),
    "push-u": ("", "git push -q -u origin topic"),
    "remote-add": ("", "git remote add more https://example.org/r.git"),
    "remote-rename": ("git fetch -q", "git remote rename origin upstream"),
    "remote-remove": ("git fetch -q", "git remote remove origin"),
    "remote-head": ("git fetch -q", "git remote set-head origin topic"),
    "config": ("", "git config user.email n@example.org; git config --unset user.name"),
    "gc": ("", "git gc -q"),
    "pack-refs": ("", "git pack-refs --all; echo n >n; git add n; git commit -qm n"),
    "reflog-expire": ("", "git reflog expire --expire=now --all"),
    "worktree-add": ("", "git worktree add -q wt topic; cd wt; echo w >w; git add w;"
                         "git commit -qm w"),
    "worktree-remove": ("git worktree add -q wt topic", "git worktree remove wt"),
    "worktree-move": ("git worktree add -q wt topic", "git worktree move wt wt2"),
    "worktree-commit": ("git worktree add -q wt topic", "cd wt; echo w >w; git add w;"
                                                        "git commit -qm w"),
    "submodule-add": ("git init -q ../lib; cd ../lib; echo l >l; git add l; git commit -qm l",
                      "git submodule add -q $PWD/../lib libs/m; git commit -qm m"),
    "submodule-update": ("git init -q ../lib; cd ../lib; echo l >l; git add l; git commit -qm l;"
                         "cd ../ws; git submodule add -q $PWD/../lib m; git commit -qm m;"
                         "cd ../lib; echo k >>l; git commit -qam k",
                         "git submodule update -q --remote"),
    "exclude": ("", "echo '*.o' >>.git/info/exclude; touch x.o"),
    "sparse": ("", "git sparse-checkout set d"),
    "bisect": ("", "git bisect start; git bisect bad; git bisect good HEAD~1"),
    "notes": ("", "git notes add -m note HEAD"),
    "replace": ("", "git replace HEAD HEAD~1"),
    "init-again": ("", "git init -q"),
}

# what is held on purpose, and the host looks otherwise for it
DIFFERENT = {
    "sparse": {("config", "extensions.worktreeconfig")},
    # a path as URL: pushing there would run the hooks of whoever made it
    "submodule-add": {("modules/libs/m/config", "remote.origin.url"),
                      ("modules/libs/m/config", "remote.origin.fetch"),
                      ("modules/libs/m/config", "branch.main.remote")},
    "replace": {("refs/replace/4c2b30abb8e2f2ff889e34edb7e847c23d4b80a1", "")},
}


def look(work):
    """The repository as git sees it, with nothing of where it lies."""
    said = sh("""
        git fsck --no-dangling 2>&1
        git for-each-ref --format='%(refname) %(objectname) %(symref)'
        cat .git/HEAD; git rev-parse --verify -q HEAD
        git status --porcelain=v2 --branch --untracked-files=all --ignored
        git status | head -20
        git ls-files --stage -t; git diff HEAD | cat
        git config --local --list | sort | grep -v '^core.bare'
        git reflog --all --format='%gD %H %gs' 2>&1 | sort
        git stash list; git log --all --format='%H %s' | sort; git worktree list | sed 's/^[^ ]*//'
        git submodule status 2>&1; ls .git/worktrees .git/modules 2>/dev/null || true
    """, work, check=False)
    return said.stdout.replace(str(work.parent), "BASE") + said.stderr


def files(gitdir):
    """Names below a git directory: those that git cannot do without, or would trip over."""
    return sorted(str(path.relative_to(gitdir)) for path in gitdir.rglob("*")
                  if not path.is_dir() and "objects" not in path.parts)


@pytest.fixture(scope="module")
def template():
    """The repository of SETUP, made once: each test begins with a copy at the same path."""
    path = Path("/tmp") / f"bawn-git-{os.getpid()}-template"
    (path / "ws").mkdir(parents=True)
    sh(SETUP, path / "ws")
    yield path
    remove_tree(path)


def begin(base, source, setup=""):
    """The repository at base, whatever was there before, with an index that knows its files."""
    for entry in base.iterdir():
        remove_tree(entry)
    subprocess.run(["cp", "-aT", source, base], check=True)
    sh("git update-index -q --refresh || true; git -C wt update-index -q --refresh || true",
       base / "ws")
    sh(setup, base / "ws")


SOAK = bool(os.environ.get("BAWN_SOAK"))
# of a run of all tests each user has a third of them
NAMES = list(OPERATIONS) if SOAK else list(OPERATIONS)[::3]


@pytest.mark.parametrize("name", NAMES)
def test_operation_is_as_plain_git_does_it(base, template, name):
    setup, operation = OPERATIONS[name]
    begin(base, template, setup)
    kept = Path(f"{base}.kept")
    subprocess.run(["cp", "-aT", base, kept], check=True)
    try:
        sh(operation, base / "ws")
        wanted = look(base / "ws")
        wanted_files = files(base / "ws/.git")
        begin(base, kept)
    finally:
        remove_tree(kept)
    lab = Lab(base)
    outcomes = lab.run(operation)
    lab.close()
    assert {row[1:3] for row in outcomes if row[0] != "applied"} == DIFFERENT.get(name, set())
    if name not in DIFFERENT:
        assert look(base / "ws") == wanted, outcomes
    assert not [path for path in files(base / "ws/.git") if path.endswith(".lock")]
    extra = set(files(base / "ws/.git")) - set(wanted_files)
    # references that plain git packed are loose here
    assert not [path for path in extra if "refs/" not in path], extra
    assert not list(lab.task.glob("git-commit"))


def put(path, text="", mode=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if mode is not None:
        path.chmod(mode)


def whiteout(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(path, stat.S_IFCHR, 0)


@pytest.fixture
def lab(base, template):
    begin(base, template)
    lab = Lab(base)
    lab.snapshot()
    yield lab
    lab.close()


def tree(gitdir):
    """All that stands in a git directory, but objects: path to mode, link and content."""
    found = {}
    for path in gitdir.rglob("*"):
        status = path.lstat()
        content = b""
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        elif path.is_symlink():
            content = os.readlink(path)
        if "objects" not in path.relative_to(gitdir).parts:
            found[str(path.relative_to(gitdir))] = (status.st_mode, content)
    return found


SCRIPT = "#!/bin/sh\ntouch /tmp/executed\n"
ID = "4c2b30abb8e2f2ff889e34edb7e847c23d4b80a1"

# name -> what lies in the upper directory; content None: whiteout, ("link", x): a link, 0: FIFO
ATTACKS = {
    "hook": {"hooks/pre-commit": SCRIPT},
    "hook-removed": {"hooks/commit-msg": None},
    "hooks-replaced": {"hooks": ("link", "/tmp")},
    "hook-of-other-case": {"Hooks/pre-commit": SCRIPT},
    "commondir": {"commondir": "/tmp/evil\n"},
    "commondir-canonical": {"commondir": "../..\n"},
    "gitdir": {"gitdir": "/tmp/evil/.git\n"},
    "worktree-commondir": {"worktrees/x/commondir": "/tmp/evil\n", "worktrees/x/HEAD": ID + "\n",
                           "worktrees/x/gitdir": "WORK/x/.git\n"},
    "worktree-outside": {"worktrees/x/commondir": "../..\n", "worktrees/x/HEAD": ID + "\n",
                         "worktrees/x/gitdir": "/tmp/x/.git\n"},
    "worktree-up": {"worktrees/x/commondir": "../..\n", "worktrees/x/HEAD": ID + "\n",
                    "worktrees/x/gitdir": "WORK/../x/.git\n"},
    "worktree-link": {"worktrees/x": ("link", "/tmp")},
    "worktree-config-alone": {"worktrees/x/config.worktree": "[core]\n\tfsmonitor = evil\n"},
    "module-without-head": {"modules/m/hooks/post-checkout": SCRIPT},
    "todo-exec": {"rebase-merge/git-rebase-todo": "exec touch /tmp/executed\n",
                  "rebase-merge/head-name": "refs/heads/main\n"},
    "todo-x": {"rebase-merge/git-rebase-todo": "pick " + ID + " a\n \tx  touch /tmp/x\n"},
    "todo-unknown-file": {"rebase-merge/git-rebase-todo": "noop\n", "rebase-merge/evil": "x"},
    "strategy": {"rebase-merge/strategy": "../../evil\n"},
    "gpg": {"rebase-merge/gpg_sign_opt": "-Sx\n"},
    "am-options": {"rebase-apply/apply-opt": "'--unsafe-paths'\n"},
    "author": {"rebase-apply/author-script": "GIT_AUTHOR_NAME='x'; touch /tmp/executed\n"},
    "sequencer-options": {"sequencer/opts": "[options]\n\tgpg-sign = x\n"},
    "bisect-log": {"BISECT_LOG": "git bisect run touch; touch x\n"},
    "attributes": {"info/attributes": "* filter=lfs\n"},
    "grafts": {"info/grafts": ID + "\n"},
    "alternates": {"objects/info/alternates": "/tmp/evil\n"},
    "replace": {"refs/replace/" + ID: ID + "\n"},
    "packed-replace": {"packed-refs": "# pack-refs with: sorted\n" + ID + " refs/replace/" + ID +
                       "\n"},
    "remotes": {"remotes/origin": "URL: ext::touch x\n"},
    "branches": {"branches/evil": "ext::touch x\n"},
    "head-outside": {"HEAD": "ref: ../../evil\n"},
    "head-link": {"HEAD": ("link", "/etc/passwd")},
    "head-text": {"HEAD": "ref: refs/heads/main\n[core]\n"},
    "head-gone": {"HEAD": None},
    "config-gone": {"config": None},
    "config-link": {"config": ("link", "/tmp/evil")},
    "index-gone": {"index": None},
    "index-text": {"index": "DIRC evil"},
    "ref-text": {"refs/heads/evil": "evil\n"},
    "ref-symbolic": {"refs/heads/evil": "ref: refs/heads/main\n"},
    "ref-link": {"refs/heads/evil": ("link", "/etc/passwd")},
    "ref-fifo": {"refs/heads/evil": 0},
    "ref-name": {"refs/heads/ev\nil": ID + "\n"},
    "ref-of-checked-out": {"refs/heads/main": None},
    "fetch-head": {"FETCH_HEAD": "evil\n"},
    "log": {"logs/refs/heads/topic": "evil\n"},
    "split-index": {"sharedindex." + ID: "DIRC"},
    "reftable": {"reftable/tables.list": "x\n"},
    "socket-of-monitor": {"fsmonitor--daemon.ipc": 0},
    "lfs": {"lfs/hooks/x": SCRIPT},
    "newline": {"a\nb": "x"},
    "rerere": {"rr-cache/x/postimage": "x"},
}


def plant(lab, rows):
    for name, content in rows.items():
        path = lab.upper / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            whiteout(path)
        elif content == 0:
            os.mkfifo(path)
        elif isinstance(content, tuple):
            os.symlink(content[1], path)
        else:
            put(path, content.replace("WORK", str(lab.work)), 0o6755 if "#!" in content else None)


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_planted_is_held_and_stands_nowhere(lab, name):
    rows = ATTACKS[name]
    put(lab.gitdir / "hooks/commit-msg", "#!/bin/sh\nexit 0\n", 0o755)
    before = tree(lab.gitdir)
    lab.snapshot()
    plant(lab, rows)
    outcomes = lab.outcomes(lab.commit())
    assert outcomes and {row[0] for row in outcomes} == {"held"}, outcomes
    assert tree(lab.gitdir) == before
    assert len(lab.held()) == len(outcomes)
    # once more: the same, and nothing twice
    assert lab.outcomes(lab.commit()) == outcomes
    assert len(lab.held()) == len(outcomes)


def test_one_refused_thing_does_not_sink_the_rest(lab):
    lab.do("git config core.sshCommand 'touch /tmp/executed'; git config user.email x@example.org;"
           "echo x >.git/hooks/post-commit; chmod +x .git/hooks/post-commit; echo n >n; git add n;"
           "git -c core.hooksPath=/nonexistent commit -qm n")
    outcomes = lab.outcomes(lab.commit())
    assert {row[1:3] for row in outcomes if row[0] == "held"} == {
        ("config", "core.sshcommand"), ("hooks/post-commit", "")}
    assert sh("git config user.email; git log -1 --format=%s; git status --porcelain",
              lab.work).stdout == "x@example.org\nn\n"


def test_an_index_into_the_git_directory_is_held(lab):
    hook = sh("echo '#!/bin/sh' | git hash-object -w --stdin", lab.work).stdout.strip()
    index = bytes((lab.gitdir / "index").read_bytes())
    lab.do(f"git update-index --add --cacheinfo 100755,{hook},dgit/hooks/post-checkout")
    text = (lab.upper / "index").read_bytes()
    assert b"dgit/hooks" in text
    # a checksum of zeros is none (index.skipHash)
    put(lab.upper / "index", text[:-20].replace(b"dgit/hooks", b".git/hooks") + bytes(20))
    outcomes = lab.outcomes(lab.commit())
    assert [row[:2] for row in outcomes] == [("held", "index")]
    assert "git directory" in outcomes[0][3]
    assert (lab.gitdir / "index").read_bytes() == index


def test_giants_and_depths(lab):
    with open(lab.upper / "COMMIT_EDITMSG", "wb") as file:
        file.truncate(1 << 40)
    deep = lab.upper / "refs/heads"
    deep.mkdir(parents=True)
    at = os.open(deep, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    (lab.upper / "closed").mkdir()
    put(lab.upper / "closed/x")
    (lab.upper / "closed").chmod(0)
    before = tree(lab.gitdir)
    outcomes = lab.outcomes(lab.commit())
    (lab.upper / "closed").chmod(0o700)
    shutil.rmtree(lab.upper / "closed")
    subprocess.run(["rm", "-rf", lab.upper / "refs"], check=True)
    assert {row[0] for row in outcomes} == {"held"}
    assert {"COMMIT_EDITMSG"} < {row[1] for row in outcomes}
    assert tree(lab.gitdir) == before


# what the host does meanwhile -> what is held then; all else is applied, and nothing is lost
MEANWHILE = {
    "commit": ("echo h >h; git add h; git commit -qm host",
               {"refs/heads/main", "logs/refs/heads/main", "logs/HEAD", "index"}),
    "status": ("touch a; git status", set()),
    "other-branch": ("git branch -f old HEAD; git branch host", set()),
    "config": ("git config user.email h@example.org", set()),
    "pack-refs": ("git pack-refs --all", set()),
    "gc": ("git gc -q", set()),
    "checkout": ("git checkout -q topic", {"index"}),
    "add": ("echo h >h; git add h", {"index"}),
    "lock": ("touch .git/refs/heads/main.lock", {"refs/heads/main", "logs/refs/heads/main",
                                                  "logs/HEAD", "index"}),
    "index-lock": ("touch .git/index.lock", {"index"}),
    "config-lock": ("touch .git/config.lock", {"config"}),
    "delete": ("git checkout -q --detach; git branch -D main",
               {"refs/heads/main", "logs/refs/heads/main", "index"}),
}


@pytest.mark.parametrize("name", MEANWHILE)
def test_what_the_host_does_meanwhile_is_not_lost(base, template, name):
    script, wanted = MEANWHILE[name]
    begin(base, template)
    lab = Lab(base)
    done = "echo n >n; git add n; git commit -qm task; git config user.name T; git branch task"
    # the host's part in the middle, out of sight of the overlay
    words = ["bash", "-ec", '"$0" "${@:2}"; cd "$1"; ' + script,
             lab.overlaid(done)[0], str(lab.work), *lab.overlaid(done)[1:]]
    outcomes = lab.outcomes(lab.lab("run", *lab.places(), "--", *words))
    lab.close()
    for lock in lab.gitdir.rglob("*.lock"):
        lock.unlink()
    held = {row[1] for row in outcomes if row[0] == "held"}
    assert held == wanted, outcomes
    said = sh("git fsck --no-dangling; git for-each-ref; git log --all --format=%s;"
              "git config user.name; git config user.email || true", lab.work).stdout
    assert "task" in said
    if name == "commit":
        assert "host" in sh("git log --format=%s main", lab.work).stdout
    if name == "config":
        assert said.endswith("T\nh@example.org\n")


def test_no_index_of_a_tree_that_was_not_looked_through(lab):
    """It may name a repository in there, which `git status` would go into."""
    lab.do("git init -q n; git -C n commit -q --allow-empty -m n; git add n 2>&1; "
           "git commit -qm n")
    outcomes = lab.outcomes(lab.commit("unlooked"))
    assert ["held", "index", "", "the work tree was not looked through"] in \
        [list(row) for row in outcomes], outcomes
    assert "n" not in sh("git ls-files", lab.work).stdout.split()
    assert sh("git log -1 --format=%s", lab.work).stdout == "n\n"


def test_a_git_in_the_middle_of_something_is_waited_for(lab):
    lab.do("git branch new; touch .git/index.lock")
    before = tree(lab.gitdir)
    outcomes = lab.outcomes(lab.commit("live"))
    assert [row[0] for row in outcomes] == ["deferred"]
    assert tree(lab.gitdir) == before
    # nobody goes on with it any more: what is whole is taken
    outcomes = lab.outcomes(lab.commit())
    assert [row[:2] for row in outcomes] == [("unfinished", "index.lock"),
                                            ("applied", "refs/heads/new")]
    assert not (lab.gitdir / "index.lock").exists()


def live(lab, script):
    """One action of a box that lives on: its overlay stays, as it was left."""
    lab.do(script)
    return lab.outcomes(lab.commit("live"))


def test_actions_of_a_live_box(lab):
    """The overlay of a live box stays; here it is mounted anew each time, with the same upper."""
    outcomes = live(lab, "echo 1 >1; git add 1; git commit -qm one; git branch -D old")
    assert {row[0] for row in outcomes} == {"applied"}
    # nothing new: nothing to do
    assert lab.outcomes(lab.commit("live")) == []
    outcomes = live(lab, "echo 2 >2; git add 2; git commit -qm two; git config user.name T")
    assert {row[0] for row in outcomes} == {"applied"}, outcomes
    assert sh("git log --format=%s -2; git status --porcelain", lab.work).stdout == "two\none\n"
    # the host goes on in between, which the task does not see
    sh("git commit -q --allow-empty -m host; git branch old; git config user.name H", lab.work)
    assert lab.outcomes(lab.commit("live")) == []
    outcomes = live(lab, "echo 3 >3; git add 3; git commit -qm three; git branch task")
    held = {row[1] for row in outcomes if row[0] == "held"}
    assert {"refs/heads/main", "logs/HEAD"} <= held, outcomes
    assert ("applied", "refs/heads/task", "", "") in outcomes
    said = sh("git log -1 --format=%s main; git log -1 --format=%s task; git config user.name;"
              "git rev-parse -q --verify old >/dev/null && echo old", lab.work).stdout
    assert said == "host\nthree\nH\nold\n"
    # what was held stays so, and is not held again
    assert lab.outcomes(lab.commit("live")) == []


def test_held_things_stay_held_in_a_live_box(lab):
    outcomes = live(lab, "git config remote.evil.url /tmp/evil; echo x >.git/hooks/x")
    assert {row[0] for row in outcomes} == {"held"}
    for row in lab.held():
        lab.lab("reject", lab.state, row[0])
    # a path that the user's configuration has may be repeated: the task's own is none of that
    outcomes = live(lab, "git config remote.more.url /tmp/evil")
    assert {row[0] for row in outcomes} == {"held"}, outcomes
    assert "/tmp/evil" not in (lab.gitdir / "config").read_text()
    assert not (lab.gitdir / "hooks/x").exists()


def review(state, verb, *words, status=0):
    done = subprocess.run([BAWN, "review", verb, "--state-dir", str(state), *words], text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture
def quick_base():
    """In memory, where that is: for names by the hundred thousand."""
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"
    path = Path(folder) / f"bawn-git-{os.getpid()}-{os.urandom(3).hex()}"
    path.mkdir(mode=0o755)
    yield path
    remove_tree(path)


@pytest.mark.parametrize("folder, count", [("/".join(["d" * 200] * 6), 45000),
                                           ("objects/ff", 200000)], ids=["memory", "limit"])
def test_more_than_is_looked_through_is_held_whole(quick_base, folder, count):
    """It would be too much at each attempt: a person can look into it, and drop it."""
    lab = Lab(quick_base)
    lab.work.mkdir()
    lab.state.chmod(0o700)
    sh("git init -q .; git commit -q --allow-empty -m one", lab.work)
    lab.snapshot()
    many = lab.upper / folder
    many.mkdir(parents=True)
    (lab.upper / "COMMIT_EDITMSG").write_text("lost\n")
    for i in range(count):
        os.mknod(many / f"{i:038x}", 0o600)
    failed = lab.commit("live", check=False)
    assert failed.returncode == 1 and lab.upper.is_dir(), failed.stderr
    (outcome,) = lab.outcomes(lab.commit())
    assert "more changes" in " ".join(outcome), outcome
    assert not lab.upper.exists()
    items = json.loads(review(lab.state, "ls", "--json"))["held"]
    (item,) = [item for item in items if "more changes" in item["reason"]]
    assert item["kind"] == "directory" and item["directory"] == str(lab.gitdir), item
    assert "cannot be accepted" in review(lab.state, "ls")
    assert "+lost" in review(lab.state, "show", item["id"])
    review(lab.state, "accept", "--yes", item["id"], status=1)
    review(lab.state, "reject", "--yes", *(item["id"] for item in items))
    assert not json.loads(review(lab.state, "ls", "--json"))["held"]


def test_a_rebase_over_several_actions(base, template):
    begin(base, template, CONFLICT)
    lab = Lab(base)
    settle()
    lab.snapshot()
    assert {row[0] for row in live(lab, "git rebase topic || true")} == {"applied"}
    assert "rebase" in sh("git status", lab.work).stdout
    assert {row[0] for row in live(lab, "git config x.y z || true; git status")} <= {"held"}
    outcomes = live(lab, "echo both >a; git add a; git rebase --continue")
    lab.close()
    assert {row[0] for row in outcomes} == {"applied"}, outcomes
    assert sh("git log --format=%s -2; git status --porcelain", lab.work).stdout == "y\nz\n"
    assert not (lab.gitdir / "rebase-merge").exists()


def test_held_things_are_accepted_and_rejected(lab):
    lab.do("git config core.fsmonitor evil; git config --add remote.origin.url ../more;"
           "git config --unset user.name; mkdir -p .git/hooks; printf '#!/bin/sh\\n' >.git/hooks/x;"
           "chmod +x .git/hooks/x; ln -s /tmp .git/link; echo n >n; git add n;"
           "git -c core.fsmonitor= commit -qm task")
    sh("git commit -q --allow-empty -m host", lab.work)
    lab.commit()
    rows = {row[3] or row[2]: row for row in lab.held()}
    assert {"core.fsmonitor", "remote.origin.url", "hooks/x", "link"} < set(rows)
    for name in ("core.fsmonitor", "remote.origin.url", "hooks/x"):
        lab.lab("accept", lab.state, rows[name][0])
    assert sh("git config core.fsmonitor; git config --get-all remote.origin.url",
              lab.work).stdout == "evil\n../remote.git\n../more\n"
    assert os.access(lab.gitdir / "hooks/x", os.X_OK)
    refused = lab.lab("accept", lab.state, rows["link"][0], check=False)
    assert refused.returncode == 1 and not os.path.lexists(lab.gitdir / "link")
    lab.lab("accept", lab.state, rows["refs/heads/main"][0])
    assert sh("git log -1 --format=%s main", lab.work).stdout == "task\n"
    # what the host has changed since is not overwritten
    put(lab.gitdir / "hooks/x", "mine")
    assert lab.lab("accept", lab.state, rows["hooks/x"][0], check=False).returncode == 1
    assert (lab.gitdir / "hooks/x").read_text() == "mine"
    for row in rows.values():
        lab.lab("reject", lab.state, row[0])
    assert len(lab.held()) == 0 or all(row[0] not in {r[0] for r in rows.values()}
                                       for row in lab.held())


CLOCK_REALTIME_COARSE = 5
# write, rename, mkdir, link, unlink, fchmod, ftruncate, copy_file_range and their kin on x86_64
WRITING = {1, 18, 83, 86, 258, 265, 326}
CHANGING = WRITING | {77, 82, 84, 87, 91, 257, 263, 264, 316, 437}

DO_MUCH = ("git checkout -q -b new; echo n >n; git add n; git commit -qm n; git branch -D old;"
           "git tag -d v1; git config user.email x@example.org; git worktree add -q wt topic;"
           "git stash list; git config core.fsmonitor x; git update-ref refs/heads/zz/y HEAD")


def settle():
    """Files made so far are older than what the kernel's coarse clock says now."""
    begun = time.clock_gettime(CLOCK_REALTIME_COARSE)
    while time.clock_gettime(CLOCK_REALTIME_COARSE) <= begun + 0.02:
        time.sleep(0.004)


class Interrupted:
    """One task's changes, and the host as it was, to be committed again and again."""

    def __init__(self, base, template, injector):
        self.base, self.injector = base, injector
        begin(base, template, "git pack-refs --all; git branch z")
        self.lab = Lab(base)
        self.lab.do(DO_MUCH)
        self.lab.close()
        self.begun = Path(f"{base}.begun")
        self.note = Path(f"{base}.note")
        subprocess.run(["cp", "-aT", base, self.begun], check=True)
        self.again()
        self.lab.commit()
        self.wanted, self.held = look(self.lab.work), self.lab.held()

    def again(self):
        for entry in self.base.iterdir():
            remove_tree(entry)
        subprocess.run(["cp", "-aT", self.begun, self.base], check=True)
        settle()
        self.lab.snapshot()

    def under(self, *words):
        return subprocess.run([self.injector, *map(str, words), self.note, "--", LAB, "commit",
                               *map(str, self.lab.places())], env=ENVIRONMENT, text=True,
                              capture_output=True, timeout=LIMIT_S)

    def calls(self):
        """(nth, call) of all that change something."""
        self.again()
        assert self.under("list").returncode == 0
        found = [tuple(map(int, line.split())) for line in self.note.read_text().splitlines()]
        return [row[1:] for row in found if row[2] in CHANGING]

    def whole(self):
        """At each instant git finds a repository, and every file is one of the two."""
        sh("git fsck --no-dangling; git rev-parse -q --verify HEAD;"
           "git --no-optional-locks status", self.lab.work)

    def ends_well(self):
        said = self.lab.commit().stdout
        assert look(self.lab.work) == self.wanted, said
        assert self.lab.held() == self.held
        assert not list(self.lab.gitdir.rglob("*.lock"))
        assert not list(self.lab.gitdir.glob("bawn-*")) and not list(self.lab.task.glob("git-c*"))

    def close(self):
        remove_tree(self.begun)
        self.note.unlink(missing_ok=True)


@pytest.fixture
def interrupted(base, template, injector):
    work = Interrupted(base, template, injector)
    yield work
    work.close()


def sample(calls):
    return calls if SOAK else calls[::14]


def test_killed_at_each_call_it_ends_the_same(interrupted):
    calls = interrupted.calls()
    assert len(calls) > 100
    for nth, call in sample(calls):
        interrupted.again()
        assert interrupted.under("fail", 0, nth, call, 0).returncode == 128 + 9, (nth, call)
        interrupted.whole()
        interrupted.ends_well()


def test_a_full_disk_loses_nothing(interrupted):
    calls = [row for row in interrupted.calls() if row[1] in WRITING]
    assert len(calls) > 30
    for nth, call in sample(calls):
        interrupted.again()
        done = interrupted.under("fail", 0, nth, call, errno.ENOSPC)
        # what could not be tidied up, or was only for a moment, is no failure
        assert done.returncode in (0, 1) and (done.returncode == 0 or "No space" in done.stderr)
        interrupted.whole()
        assert not list(interrupted.lab.gitdir.rglob("*.lock")), (nth, call)
        interrupted.ends_well()


def test_what_it_costs(base, template):
    """At most 10 ms for one commit; what a busy host adds is not counted."""
    taken = []
    for _ in range(5):
        begin(base, template)
        lab = Lab(base)
        done = lab.lab("run", *lab.places(), "--",
                       *lab.overlaid("echo n >n; git add n; git commit -qm n"))
        lab.close()
        taken.append(int(done.stdout.splitlines()[-1].split()[1]))
        shutil.rmtree(lab.upper)
    assert min(taken) < 10000, taken
    times = sorted(map(int, lab.lab("time", lab.gitdir, 50).stdout.split()))
    assert times[0] < 1000, times
