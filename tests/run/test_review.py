"""bawn review: what the commit engine kept back is listed, shown, accepted and rejected.

The store is made by the engine (tests/tools/commit-lab.c) out of what lies in an upper directory.
"""
import json
import os
import subprocess
from pathlib import Path

import pytest

from boxed import BAWN, place

__all__ = ["place"]

LAB = str(Path(BAWN).parent / "bawn-commit-lab")
ESC = "\x1b]0;x\a"


class Review:
    def __init__(self, place):
        self.place, self.gitdir = place, place.work / ".git"
        git = ["git", "-C", place.work, "-c", "user.name=a", "-c", "user.email=a"]
        subprocess.run(["git", "init", "-q", place.work], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
        upper, self.task = place.base / "upper", place.base / "t-0001"
        (upper / "hooks").mkdir(parents=True)
        self.task.mkdir()
        (upper / "hooks/pre-commit").write_bytes(b"#!/bin/sh\n" + ESC.encode() + b"\0\xff\n")
        (upper / "hooks/pre-commit").chmod(0o755)
        (upper / "config").write_text((self.gitdir / "config").read_text() +
                                      "[core]\n\tfsmonitor = touch x\n")
        os.symlink("/etc", upper / "li\nnk")
        subprocess.run([LAB, "snapshot", self.task, self.gitdir], check=True)
        subprocess.run([LAB, "commit", place.work, self.task, place.state, self.gitdir, upper],
                       check=True, stdout=subprocess.DEVNULL)

    def run(self, *words, status=0):
        done = subprocess.run([BAWN, "review", *words, "--state-dir", self.place.state],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              cwd="/", timeout=20)
        assert done.returncode == status, (done.stdout, done.stderr)
        return done

    def items(self):
        held = json.loads(self.run("ls", "--json").stdout)["held"]
        return {item["key"] or item["path"]: item for item in held}


@pytest.fixture
def review(place):
    return Review(place)


def options_first(verb, review, *words, status=0):
    """Options stand before the words."""
    done = subprocess.run([BAWN, "review", verb, "--state-dir", review.place.state, *words],
                          capture_output=True, text=True, errors="surrogateescape",
                          stdin=subprocess.DEVNULL, cwd="/", timeout=20)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def test_alone_it_lists(review):
    text = review.run().stdout
    assert text == review.run("ls").stdout
    lines = text.splitlines()
    assert lines[0] == f"t-0001  {review.gitdir}" and len(lines) == 4
    assert "core.fsmonitor" in text and "hooks/pre-commit  git runs it" in text
    assert "li\\x0ank" in text and "cannot be accepted" in text


def test_nothing_obeys_what_is_shown(review):
    item = review.items()["hooks/pre-commit"]
    text = options_first("show", review, item["id"][:6]).stdout
    assert "\x1b" not in text and "+#!/bin/sh" in text and "\\x00" in text and "executable" in text
    assert "on the host: nothing" in text
    told = json.loads(options_first("show", review, "--json", item["id"]).stdout)
    assert json.loads(review.run("show", item["id"], "--json").stdout) == told
    assert told["after"].encode("utf-8", "surrogateescape") == \
        b"#!/bin/sh\n" + ESC.encode() + b"\0\xff\n"


def test_accepted_it_stands_on_the_host(review):
    items = review.items()
    done = options_first("accept", review, "--yes", items["hooks/pre-commit"]["id"],
                         items["core.fsmonitor"]["id"])
    assert done.stdout.count("accepted: ") == 2
    assert os.access(review.gitdir / "hooks/pre-commit", os.X_OK)
    config = subprocess.run(["git", "config", "-f", review.gitdir / "config", "core.fsmonitor"],
                            capture_output=True, text=True, check=True)
    assert config.stdout == "touch x\n"
    assert set(review.items()) == {"li\nnk"}
    # a link is none that bawn makes; it stays listed
    options_first("accept", review, "--yes", items["li\nnk"]["id"], status=1)
    assert set(review.items()) == {"li\nnk"} and not os.path.lexists(review.gitdir / "li\nnk")


def test_what_the_host_has_by_now_is_kept(review):
    (review.gitdir / "hooks").mkdir(exist_ok=True)
    (review.gitdir / "hooks/pre-commit").write_text("mine\n")
    done = options_first("accept", review, "--yes", review.items()["hooks/pre-commit"]["id"],
                         status=1)
    assert "something else" in done.stderr
    assert (review.gitdir / "hooks/pre-commit").read_text() == "mine\n"


def test_a_task_is_rejected_whole(review):
    before = (review.gitdir / "config").read_bytes()
    done = options_first("reject", review, "--yes", "t-0001")
    assert done.stdout.count("rejected: ") == 3
    assert review.run().stdout == "" and (review.gitdir / "config").read_bytes() == before
    assert not (review.place.state / "held").exists()


def test_nobody_is_asked_in_vain(review):
    done = options_first("accept", review, "t-0001", status=2)
    assert "--yes" in done.stderr and len(review.items()) == 3


def test_wrong_words(review):
    options_first("accept", review, status=2)
    options_first("show", review, "abc", status=1)
    options_first("show", review, "zzzzzz", status=1)
    review.run("nonsense", status=2)
    review.run("ls", "--nonsense", status=2)


def test_what_is_broken_is_passed_over(review):
    (review.place.state / "held/t-0001/000000000000").write_text("{")
    done = review.run()
    assert "cannot be read" in done.stderr and len(done.stdout.splitlines()) == 4


def test_a_task_is_accepted_whole(review):
    """A task's id stands for all that is held of it; what cannot be accepted keeps no other."""
    task = review.items()["hooks/pre-commit"]["task"]
    ran = review.run("accept", "--yes", task, status=1)
    assert ran.stdout.count("accepted: ") == 2 and "li" in ran.stderr, ran
    assert (review.gitdir / "hooks/pre-commit").exists()
    assert "fsmonitor" in (review.gitdir / "config").read_text()
    assert list(review.items()) == ["li\nnk"]


def test_a_layer_that_is_held_whole(place):
    """Too much to be looked through: where it lies, and what to do with it, is said."""
    gitdir, upper, task = place.work / ".git", place.base / "upper", place.base / "t-0001"
    subprocess.run(["git", "init", "-q", place.work], check=True)
    upper.mkdir()
    task.mkdir()
    for folder in range(4):
        (upper / f"d{folder}").mkdir()
        first = upper / f"d{folder}/f"
        first.write_text("x")
        for at in range(50001):
            os.link(first, upper / f"d{folder}/f{at}")
    (upper / "hooks").mkdir()
    (upper / "hooks/pre-commit").write_text("#!/bin/sh\n")
    subprocess.run([LAB, "snapshot", task, gitdir], check=True)
    subprocess.run([LAB, "commit", place.work, task, place.state, gitdir, upper], check=True,
                   stdout=subprocess.DEVNULL)
    assert not (gitdir / "hooks/pre-commit").exists() and not (gitdir / "d0").exists()

    def run(*words, status=0):
        done = subprocess.run([BAWN, "review", *words, "--state-dir", place.state],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd="/",
                              timeout=60)
        assert done.returncode == status, (done.stdout, done.stderr)
        return done

    item, = json.loads(run("ls", "--json").stdout)["held"]
    assert "cannot be accepted" in run("ls").stdout
    assert "all that the task did there" in run("show", item["id"]).stdout
    said = run("accept", "--yes", item["id"], status=1).stderr
    assert "take what you want from" in said and f"review reject {item['id']}" in said, said
    path, = [word for word in said.split() if word.endswith("/" + item["id"])]
    assert (Path(path) / "hooks/pre-commit").read_text() == "#!/bin/sh\n"
    run("reject", "--yes", item["id"])
    assert not Path(path).exists() and run("ls").stdout == ""
