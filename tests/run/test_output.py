"""What was asked for and could not be written does not look like success."""
import os
import subprocess

import pytest

from boxed import BAWN, LIMIT_S, Ran, place
from live import live

__all__ = ["place", "live"]


def into_full(where, *words, out="/dev/full", passed=()):
    """A verb whose standard output has no room; `passed`: descriptors that it gets as well."""
    with open(out, "wb", buffering=0) as full:
        ran = subprocess.run([BAWN, *map(str, words)], stdin=subprocess.DEVNULL, stdout=full,
                             stderr=subprocess.PIPE, cwd=where.work, timeout=LIMIT_S, check=False,
                             pass_fds=passed)
    return Ran(ran.returncode, b"", ran.stderr)


def lost(ran):
    assert ran.status == 125 and ran.err.startswith("bawn: "), ran


def test_the_result_of_a_run(place):
    words = ("run", *place.options, "--json", "--", "sh", "-c")
    lost(into_full(place, *words, "exit 0"))
    # the command's own failure stands, with the complaint
    ran = into_full(place, *words, "exit 3")
    assert ran.status == 3 and "could not be written" in ran.err, ran


@pytest.mark.parametrize("mode", ["run", "exec"])
def test_input_that_cannot_be_read(live, mode):
    """Its end by an error is no end: what reads it would take a part for the whole."""
    words = ("run", *live.options) if mode == "run" else ("task", "exec", *live.options,
                                                          live.begin())
    fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    for command, status in (("cat", 125), ("cat; exit 3", 3)):
        ran = subprocess.run([BAWN, *map(str, words), "--stdin", "--", "sh", "-c", command],
                             stdin=fd, capture_output=True, cwd=live.work, timeout=LIMIT_S,
                             check=False)
        assert ran.returncode == status, ran
        assert b"standard input could not be read: Is a directory" in ran.stderr, ran
    os.close(fd)


def test_the_result_for_a_descriptor(live):
    task = live.begin()
    for words in (("run", *live.options), ("task", "exec", *live.options, task)):
        full = os.open("/dev/full", os.O_WRONLY)
        lost(into_full(live, *words, "--status-fd", full, "--", "true", out="/dev/null",
                       passed=[full]))
        os.close(full)
        assert into_full(live, *words, "--", "true").status == 0


def test_the_result_of_an_action_in_a_live_task(live):
    task = live.begin()
    words = ("task", "exec", *live.options, task, "--json", "--", "sh", "-c")
    lost(into_full(live, *words, "exit 0"))
    assert into_full(live, *words, "exit 3").status == 3


@pytest.mark.parametrize("words", [
    "--version", "help", "help run", "completion bash", "completion fish", "plan STATE -- true",
    "explain STATE -- true", "doctor", "doctor --json", "policy schema",
    "policy show develop", "policy decide STATE -- true",
    "policy test STATE", "policy exceptions STATE", "policy diff develop review",
    "trace ls STATE", "trace ls STATE --json", "trace show STATE TASK", "trace query STATE",
    "trace query STATE --count", "trace stats STATE", "trace tail STATE", "trace export STATE TASK",
    "trace verify STATE", "trace head STATE", "trace key STATE", "trace note STATE TASK x",
    "trace replay STATE --preset develop TASK", "trace prune STATE --dry-run TASK",
    "trace prune STATE --yes TASK", "trace prune STATE --older-than 30d --yes",
    "cache ls STATE --json", "ps STATE --json", "review ls STATE --json", "task list STATE --json",
])
def test_what_a_verb_prints(place, words):
    assert place.run("--", "sh", "-c", "echo one").status == 0
    task = next((place.state / "trace/tasks").iterdir()).stem
    argv = []
    for word in words.split():
        argv += place.options if word == "STATE" else [word.replace("TASK", task)]
    with_room = subprocess.run([BAWN, *argv], stdin=subprocess.DEVNULL, capture_output=True,
                               cwd=place.work, timeout=LIMIT_S, check=False)
    if words.startswith("trace prune"):
        place.run("--", "true")
        task = next((place.state / "trace/tasks").iterdir()).stem
        argv = [task if word.startswith("t-") else word for word in argv]
    assert with_room.stdout, with_room
    lost(into_full(place, *argv))
