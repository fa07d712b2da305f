"""Staged workspaces: a tree of 100,000 files, of which a task changes 100."""
import subprocess

FILES, PER_DIRECTORY, CHANGED = 100_000, 1000, 100


def many_files(root):
    for number in range(FILES):
        directory = root / f"d{number // PER_DIRECTORY:03}"
        if number % PER_DIRECTORY == 0:
            directory.mkdir(parents=True)
        (directory / f"file{number}").write_text(f"line {number}\n", encoding="ascii")


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
