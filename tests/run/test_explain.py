"""bawn explain: the six questions, from the plan, in words; it starts and leaves nothing."""
import json
import os
import subprocess

import pytest

from boxed import BAWN, IS_ROOT, listing, place

__all__ = ["place"]

QUESTIONS = ["what runs?", "what can it read?", "what can it write?", "what can it connect to?",
             "with whose identity does it act?", "can the whole be reconstructed and taken over?",
             "what can it use up?", "which layers hold it?"]


def verb(place, *arguments, env=None):
    return subprocess.run([BAWN, "explain", *place.options, *arguments], capture_output=True,
                          text=True, cwd=place.work, timeout=20, check=False,
                          env={**os.environ, **(env or {})})


def answers(place, *arguments, env=None):
    ran = verb(place, "--json", *arguments, env=env)
    assert ran.returncode == 0, ran
    return json.loads(ran.stdout)


def holds(lines, enforcement, text, item=None):
    return any(line["enforcement"] == enforcement and text in line["text"] and
               (item is None or item in line["items"]) for line in lines)


def test_text(place):
    ran = verb(place, "--", "make", "test")
    assert ran.returncode == 0 and ran.stderr == ""
    titles = [line for line in ran.stdout.splitlines() if line and line[0] != " "]
    assert titles == QUESTIONS
    assert str(place.work) in ran.stdout
    assert '[built-in "workspace.write"]' in " ".join(ran.stdout.split())


def test_options_are_in_the_answers(place):
    (place.work / "secret").write_text("x")
    (place.work / "kept").write_text("x")
    work = str(place.work)
    found = answers(place, "--read", "/var/log", "--hide", "secret", "--hide", "later",
                    "--hide", "/usr/share/doc", "--protect", "kept", "--timeout", "90s",
                    "--env", "TOKEN=hunter2")
    assert holds(found["read"], "exact", "read-only", "/var/log")
    assert holds(found["read"], "polled", "mask", f"{work}/secret")
    assert holds(found["read"], "polled", "no such name now", f"{work}/later")
    assert holds(found["read"], "exact", "absent by name", "/usr/share/doc")
    assert holds(found["write"], "polled", "not changeable", f"{work}/kept")
    assert holds(found["resources"], "exact", "wall clock: 90s")
    assert holds(found["identity"], "exact", "asked for", "TOKEN")
    assert "hunter2" not in json.dumps(found)
    flag = next(line for line in found["read"] if "/var/log" in line["items"])["rule"]
    assert flag["file"] == "--read" and flag["line"] == 1


def test_gaps_are_told(place):
    found = answers(place)
    assert holds(found["write"], "absent", "taken out and wait for `bawn review`")
    assert holds(found["record"], "exact", "on record before it starts")
    assert holds(answers(place, "--no-trace")["record"], "absent", "nothing is recorded")
    assert holds(found["resources"], "absent", "wall clock: none; --timeout sets one")
    assert holds(found["identity"], "absent", "supplementary groups") == (not IS_ROOT)
    found = answers(place, "--nested-userns", "--allow-ptrace")
    assert holds(found["identity"], "absent", "--nested-userns")
    assert holds(found["identity"], "absent", "--allow-ptrace")
    landlock = next(line for line in found["layers"] if line["layer"] == "landlock")
    assert "file rules" in landlock["text"]


def test_the_command(place):
    assert holds(answers(place, "--", "/usr/bin/env")["command"], "inferred", "this rule shows")
    assert holds(answers(place, "--", "/root/x")["command"], "inferred", "no rule shows")
    assert holds(answers(place, "--", "env")["command"], "inferred", "searched inside")
    assert holds(answers(place, "--", "./x")["command"], "inferred", f"below {place.work}")
    hidden = answers(place, "--hide", "/usr/bin/env", "--", "/usr/bin/env")
    assert holds(hidden["command"], "inferred", "hidden")


def test_variables_that_are_not_passed_are_named(place):
    found = answers(place, env={"AWS_SECRET_ACCESS_KEY": "hunter2"})
    assert holds(found["identity"], "exact", "not passed", "AWS_SECRET_ACCESS_KEY")
    assert "hunter2" not in json.dumps(found)


def test_it_is_the_policy_of_the_run(place):
    ran = place.run("--json", "--", "true")
    assert ran.status == 0, ran
    assert answers(place)["policy"] == ran.result["policy"]


@pytest.mark.parametrize("arguments, status, word", [
    (["--bogus"], 2, "--bogus"), (["--timeout", "soon"], 2, "soon"),
    (["--workspace", "/"], 125, "--workspace"), (["--read", "/proc"], 1, "/proc"),
])
def test_wrong_use(place, arguments, status, word):
    ran = verb(place, *arguments)
    assert ran.returncode == status and ran.stdout == ""
    assert ran.stderr.startswith("bawn: ") and word in ran.stderr


def test_nothing_is_started_or_left(place):
    before = listing(place.work)
    assert verb(place, "--", "touch", "started").returncode == 0
    assert listing(place.work) == before
    place.assert_nothing_left()
