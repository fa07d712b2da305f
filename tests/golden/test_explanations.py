"""Explanations of fixed policies, word for word: a change of the words is a change of a file here.

    BAWN_GOLDEN=write python3 -m pytest tests/golden     writes the files anew, for a diff to read
"""
import json
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("BAWN_BUILD", HERE.parents[1] / "build"))
PROGRAM = BUILD / "tests" / "golden" / "golden-explanations"
WORDS = {"exact", "polled", "inferred", "absent"}


def text_of(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, check=True, text=True,
                          timeout=20).stdout


NAMES = text_of().split()


@pytest.mark.parametrize("name", NAMES)
def test_explanation(name):
    file, text = HERE / f"explain-{name}.txt", text_of(name)
    if os.environ.get("BAWN_GOLDEN") == "write":
        file.write_text(text)
    assert text.splitlines() == file.read_text().splitlines()
    assert "\033" not in text, "a control character of argv reached the terminal"
    assert "hunter2" not in text, "the value of a variable was printed"
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("name", NAMES)
def test_json_says_the_same(name):
    answers = json.loads(text_of(name, "--json"))
    words = " ".join(text_of(name).split())
    assert list(answers) == ["command", "read", "write", "connect", "identity", "record",
                             "resources", "layers"]
    for question, lines in answers.items():
        assert lines, question
        for line in lines:
            assert line["enforcement"] in WORDS
            assert line["text"] in words, line
            assert line["rule"] is None or line["rule"]["id"]
            assert ("limit" in line) == (question == "resources")
            if "limit" in line:
                assert line["text"].startswith(line["limit"]["text"])
                assert line["limit"]["enforcement"] == line["enforcement"]


def test_gaps_are_told_everywhere():
    """What this build does not hold is said of every policy, in the word for it."""
    for name in NAMES:
        absent = [line["text"] for lines in json.loads(text_of(name, "--json")).values()
                  for line in lines if line["enforcement"] == "absent"]
        assert any("io rate: none" in text for text in absent), name
        # in a layer of the task's own nothing lies on the host meanwhile
        waits = any("wait for `bawn review`" in text for text in absent)
        assert waits == (name not in ("stage", "ephemeral")), name


def test_a_gpu_is_spoken_of_where_there_is_one():
    assert [name for name in NAMES if "gpu share: none, absent" in text_of(name)] == ["devices"]


def test_no_file_without_its_policy():
    assert {f.stem for f in HERE.glob("explain-*.txt")} == {f"explain-{name}" for name in NAMES}
