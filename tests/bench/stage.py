"""Staged workspaces: a tree of 100,000 files, 100 of them changed; and everyday work with git."""
import os
import subprocess

FILES, PER_DIRECTORY, CHANGED = 100_000, 1000, 100
# The state before everyday_git.sh, from whatever it left.
AGAIN = """
set -e
cd "$WORK"
exec > /dev/null 2>&1
git bisect reset || :
git checkout -q -f main
git reset -q --hard start
git clean -ffdxq
git for-each-ref --format='%(refname)' refs/heads refs/notes refs/remotes |
    grep -v '^refs/heads/main$' | while read -r ref; do git update-ref -d "$ref"; done
git tag | grep -v '^start$' | xargs -r git tag -d
rm -rf "$(git rev-parse --git-dir)/modules" "$(git rev-parse --git-path hooks/pre-commit)"
git config --remove-section submodule.added || :
git config --remove-section remote.away || :
rm -rf /tmp/bare.git /tmp/lib
"""


def many_files(root):
    for number in range(FILES):
        directory = root / f"d{number // PER_DIRECTORY:03}"
        if number % PER_DIRECTORY == 0:
            directory.mkdir(parents=True)
        (directory / f"file{number}").write_text(f"line {number}\n", encoding="ascii")


# A third overlay over two is refused by any kernel: there a stage is a copy.
COPIED_FILES, COPIED_BYTES = 1_000, 1024
STACKED = """
set -e
PATH=/usr/bin:/bin:/usr/sbin
cd "$1"; shift
mount -t overlay overlay -o userxattr,lowerdir=low,upperdir=up1,workdir=wk1 mid
mount -t overlay overlay -o userxattr,lowerdir=mid,upperdir=up2,workdir=wk2 ws
cd ws
exec "$@" 2>/dev/null
"""


def stacked(base):
    """A tree that is copied, and the words that run a command in it."""
    for name in ("low", "up1", "wk1", "mid", "up2", "wk2", "ws"):
        (base / name).mkdir(parents=True)
    for number in range(COPIED_FILES):
        directory = base / "low" / f"d{number // 100:03}"
        if number % 100 == 0:
            directory.mkdir()
        (directory / f"file{number}").write_bytes(b"x" * COPIED_BYTES)
    return ["/usr/bin/unshare", "-Urm", "--propagation", "private", "/bin/sh", "-c", STACKED,
            "sh", str(base)]


def change(bench, root):
    """A task that changes some files all over the tree."""
    step = FILES // CHANGED
    files = " ".join(f"d{number // PER_DIRECTORY:03}/file{number}"
                     for number in range(0, FILES, step))
    subprocess.run([*bench.run[:-1], "--stage", "--", "/bin/sh", "-c",
                    f"for f in {files}; do echo more >> $f; done"], env=bench.environment,
                   cwd=root, check=True, stderr=subprocess.DEVNULL, timeout=120)


def verb(bench, *words):
    return [bench.run[0], words[0], *bench.run[2:-1], *words[1:]]


def git_repository(root, environment, everyday):
    """A repository of two commits, and the scripts that work in it."""
    identity = {f"GIT_{who}_{what}": "b@localhost" for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")}
    environment = {**environment, **identity, "WORK": str(root), "GIT_CONFIG_COUNT": "1",
                   "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"}
    root.mkdir()

    def git(*words):
        subprocess.run(["git", *words], cwd=root, env=environment, check=True, timeout=60)

    git("init", "-q", "-b", "main")
    for text in ("one", "two"):
        (root / "f").write_text(f"{text}\n", encoding="ascii")
        (root / "g").write_text("g\n", encoding="ascii")
        git("add", ".")
        git("commit", "-qm", text)
    git("branch", "other")
    git("tag", "start")
    again, work = root.parent / "again.sh", root.parent / "everyday.sh"
    again.write_text(AGAIN, encoding="ascii")
    # the caller's own configuration is not to change
    text = everyday.read_text(encoding="utf-8")
    work.write_text(text.replace("git config --global protocol.file.allow always\n",
                                 "exec > /dev/null 2>&1\n"), encoding="utf-8")
    for path in (again, work):
        os.chmod(path, 0o755)
    return environment, ["/bin/bash", str(again)], ["/bin/bash", str(work)]
