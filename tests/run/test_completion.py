"""Completion of the ids of live tasks, which asks `bawn ps` and starts nothing."""
import os
import subprocess

import pytest

from boxed import BAWN, LIMIT_S, eventually, nobody_left
from live import live

__all__ = ["live"]

SCRIPT = """source <("$1" completion bash)
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_bawn
[[ ${#COMPREPLY[@]} = 0 ]] || printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(live, *words):
    """What bash offers for the last of the words."""
    ran = subprocess.run(["bash", "-c", SCRIPT, "bash", BAWN, BAWN, *words], cwd=live.work,
                         check=True, timeout=LIMIT_S, stdout=subprocess.PIPE, text=True)
    return set(ran.stdout.split())


@pytest.mark.parametrize("words", [
    ["logs"], ["attach"], ["freeze"], ["thaw"], ["stop"], ["kill"], ["task", "exec"],
    ["task", "end"], ["shell", "--task"]], ids=" ".join)
def test_live_tasks(live, words):
    tasks = {live.begin(), live.begin()}
    before = set(os.listdir(live.state / "tasks"))
    first, *rest = words
    place = [first, *rest[:-1], *live.options, *rest[-1:]] if first == "shell" else \
        [*words, *live.options]
    assert complete(live, *place, "") == tasks
    one = sorted(tasks)[0]
    assert complete(live, *place, one[:-1]) == {one}
    assert complete(live, *place, "t-no") == set()
    assert set(os.listdir(live.state / "tasks")) == before
    assert live.verb("kill", "--all").status == 0
    assert complete(live, *place, "t-") == set()
    assert eventually(nobody_left)


def test_where_no_task_stands(live):
    task = live.begin()
    assert task not in complete(live, "run", *live.options, "")
    assert complete(live, "task", "") >= {"start", "exec", "end", "list"}
    assert complete(live, "logs", *live.options, "--tim") == {"--times"}
    # a directory with what a shell would expand
    other = live.base / "a $(touch made) *"
    other.mkdir(mode=0o700)
    assert complete(live, "logs", "--state-dir", str(other), "") == set()
    assert not (live.work / "made").exists()
