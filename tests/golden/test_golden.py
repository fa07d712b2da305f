"""Plans of fixed policies, word for word: a change of a plan is a change of a file here.

    BAWN_GOLDEN=write python3 -m pytest tests/golden     writes the files anew, for a diff to read
"""
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("BAWN_BUILD", HERE.parents[1] / "build"))
PROGRAM = BUILD / "tests" / "golden" / "golden-plans"


def text_of(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, check=True, text=True,
                          timeout=20).stdout


NAMES = text_of().split()


@pytest.mark.parametrize("name", NAMES)
def test_plan(name):
    file, text = HERE / f"plan-{name}.txt", text_of(name)
    if os.environ.get("BAWN_GOLDEN") == "write":
        file.write_text(text)
    assert text.splitlines() == file.read_text().splitlines()


def test_no_file_without_its_policy():
    assert {file.stem for file in HERE.glob("plan-*.txt")} == {f"plan-{name}" for name in NAMES}
