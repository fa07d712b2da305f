"""Lines that agents run all day, and lines that only look like them.

The hostile ones that can do their harm here are watched doing it in Bash, so that a row is an
attack and no misspelling; the verdict on each must be another than allow.
"""
import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from boxed import BAWN, ROOT, place
from test_decide_corpus import become_nobody, open_place, prepared

__all__ = ["open_place", "place"]

LAB = Path(BAWN).with_name("bawn-decide-lab")
# As many rows of each file as must be there.
EVERYDAY, HOSTILE = 1200, 2100
# What the lab takes at once.
LAB_LINES = 1000


def rows(name):
    lines = (ROOT / "tests" / "run" / name).read_text().splitlines()
    return [line for line in lines if line and line[:2] != "# "]


def verdicts(lines, cwd):
    if len(lines) > LAB_LINES:
        return verdicts(lines[:LAB_LINES], cwd) + verdicts(lines[LAB_LINES:], cwd)
    ran = subprocess.run([LAB, "verdicts"], input="\n".join(lines) + "\n", capture_output=True,
                         text=True, cwd=cwd, timeout=120, check=True)
    said = ran.stdout.split()
    assert len(said) == len(lines), ran
    return said


@pytest.fixture
def work(place):
    for name in ("a", "b", "file", "foo", "list"):
        (place.work / name).write_text("x\n")
    for name in ("src", "sub"):
        (place.work / name).mkdir()
    return place.work


def test_everyday_lines_are_not_asked_for(work):
    lines = rows("lines_everyday.txt")
    asked = [line for line, said in zip(lines, verdicts(lines, work)) if said != "allow"]
    assert len(lines) >= EVERYDAY and not asked, "\n".join(asked)


def test_lines_that_only_look_like_them_are(work):
    lines = rows("lines_hostile.txt")
    allowed = [line for line, said in zip(lines, verdicts(lines, work)) if said == "allow"]
    assert len(lines) >= HOSTILE and not allowed, "\n".join(allowed)


# Names of all that lies below, and what reads them: no less than "grep -r" there.
NAMES = ("find . -type f -exec cat {} +", "find . -type f | xargs cat", "cat $(find . -type f)",
         "find -type f | xargs cat", "cat $(rg --files)", "git ls-files | xargs cat",
         "fd -e c | xargs cat", "rg -l x | xargs cat")


def test_names_are_no_less_where_secrets_lie_below(work):
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert verdicts(NAMES, work) == ["allow"] * len(NAMES)
    for cwd in ("/", "/home", home):
        if os.path.isdir(cwd):
            assert verdicts(NAMES, cwd) == ["ask"] * len(NAMES), cwd


# What needs more than a directory, or a terminal.
ELSEWHERE = ("git", "docker", "systemd", "screen", "tmux", "entr", "sudo", "vim", "less", "xdg")


def run(line, work):
    child = subprocess.Popen(
        ["/bin/bash", "-c", line], cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, preexec_fn=become_nobody, start_new_session=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(work), "LC_ALL": "C.UTF-8"})
    try:
        child.wait(20)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(child.pid, 9)
    except ProcessLookupError:
        pass
    child.wait()


def test_the_hostile_lines_are_attacks(open_place):
    """Of those that are to make the file p most make it, as they stand."""
    lines = [line for line in rows("lines_hostile.txt")
             if "touch p" in line and not any(word in line for word in ELSEWHERE)]
    lines = lines if os.environ.get("BAWN_SOAK") else lines[::6]
    made = 0
    for index, line in enumerate(lines):
        work = prepared(open_place / str(index))
        for name in ("file", "list"):
            shutil.copy2(work / "a", work / name)
        run(line.replace("¶", "\n"), work)
        made += (work / "p").exists()
    assert len(lines) > 40 and made > len(lines) * 0.6, (made, len(lines))
