"""What a workspace adds, in processor time: the layer on its git directory, the engine that brings
a commit over, the looks through its tree."""
import json
import os
import shutil
import subprocess
from pathlib import Path

LOOKED_AT, PER_DIRECTORY = 20_000, 100
# The commit, in a copy of the repository; what it left there is what a layer would have.
COMMIT = "echo more >> f; git commit -qam more"


def repository(root, environment):
    """A repository of one commit with some files."""
    environment = {**environment, **{f"GIT_{who}_{what}": "b@localhost"
                                     for who in ("AUTHOR", "COMMITTER")
                                     for what in ("NAME", "EMAIL")}}
    root.mkdir()
    for name in ("f", "g", "h"):
        (root / name).write_text(f"{name}\n", encoding="ascii")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=root, env=environment, check=True, timeout=60)
    return environment


def layer_of(gitdir, changed, upper):
    """What differs from the host's: the upper directory of an overlay."""
    for path in changed.rglob("*"):
        below = path.relative_to(changed)
        if path.is_dir() or ((gitdir / below).exists() and
                             (gitdir / below).read_bytes() == path.read_bytes()):
            continue
        (upper / below).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, upper / below)


def land_once(lab, place, environment):
    """Milliseconds of the engine for one commit, by the clock of the laboratory."""
    base = place / "landed"
    work, copy, upper = base / "work", base / "copy", base / "upper"
    for path in (base, base / "t-1", base / "state", upper):
        path.mkdir(mode=0o700)
    environment = repository(work, environment)
    subprocess.run([lab, "snapshot", base / "t-1", work / ".git"], check=True)
    shutil.copytree(work, copy, symlinks=True)
    subprocess.run(["sh", "-ec", COMMIT], cwd=copy, env=environment, check=True, timeout=60)
    layer_of(work / ".git", copy / ".git", upper)
    said = subprocess.run([lab, "commit", work, base / "t-1", base / "state", work / ".git", upper],
                          check=True, capture_output=True, text=True).stdout
    log = subprocess.run(["git", "log", "-1", "--format=%s"], cwd=work, env=environment, check=True,
                         capture_output=True, text=True).stdout
    assert log == "more\n" and "held" not in said, said
    shutil.rmtree(base)
    return int(said.splitlines()[-1].split()[1]) / 1e3


def many_files(root, count, per_directory):
    for number in range(count):
        directory = root / f"d{number // per_directory:04}"
        if number % per_directory == 0:
            directory.mkdir(parents=True)
        (directory / f"file{number}").touch()


def used_ns(pid):
    """Of the processor, by the scheduler's own count."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def look_once(lab, place, root):
    """Milliseconds of processor time of one look through a tree."""
    state = place / "looked"
    state.mkdir(mode=0o700)
    with subprocess.Popen([lab, "sweep", root, state, "t-1"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as child:
        child.stdout.readline()
        before = used_ns(child.pid)
        child.stdin.write("\n")
        child.stdin.flush()
        said = json.loads(child.stdout.readline())
        after = used_ns(child.pid)
        child.stdin.close()
    shutil.rmtree(state)
    assert said["unfinished"] is None and said["names"] >= LOOKED_AT, said
    return (after - before) / 1e6


def touched(root):
    """A task that changes some files of the tree, all over it."""
    return ["/bin/sh", "-c", f"for d in {root}/d*1; do echo x > $d/new; done"]


def remove_new(root):
    for path in root.glob("d*1/new"):
        os.unlink(path)
