"""bawn policy test: the examples in policies, held against what a start would decide."""
import json
import shutil
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

from boxed import BAWN, ROOT, listing, place

__all__ = ["place"]

SCHEMA = ROOT / "docs" / "schema" / "policy-test.schema.json"
RULES = """\
version: 1
approvals: {ask: [external-writes]}
exec: {deny: [{program: nc, id: no-nc}]}
filesystem: {hide: [{name: secret, id: no-secret}], read: [/usr/share]}
network:
  allow: [{host: example.org, id: ex}, {host: plain.example.org, ports: [80], protocol: http,
          paths: [/pub/**], id: plain}]
tests:
"""
GOOD = """\
  - {command: git status, verdict: allow}
  - {command: "make && git push", verdict: ask, rule: approvals.ask, reason: it leaves}
  - {command: "nc -l; true", verdict: deny, rule: no-nc}
  - {argv: [nc, -l], verdict: deny}
  - {argv: [env, nc, -l], verdict: deny, rule: no-nc}
  - {host: "example.org:443", verdict: allow, rule: ex}
  - {host: "example.org:22", verdict: deny}
  - {host: "169.254.169.254:80", verdict: deny, rule: egress.special}
  - {url: "https://example.org/x", verdict: allow}
  - {url: "http://plain.example.org/pub/x", verdict: allow, rule: plain}
  - {url: "http://plain.example.org/other", verdict: deny}
  - {path: ~/.ssh/id_rsa, verdict: deny, rule: home.private}
  - {path: /usr/share/x, verdict: allow}
  - {path: /usr/share/x, access: write, verdict: deny}
  - {path: secret, verdict: deny, rule: no-secret}
  - {path: new.c, access: write, verdict: allow, rule: workspace.write}
"""


def run(place, *arguments):
    return subprocess.run([BAWN, "policy", "test", *place.options, *map(str, arguments)],
                          capture_output=True, text=True, cwd=place.work, timeout=20, check=False)


def write(place, text, name="policy.yaml", folder=None):
    path = (folder or place.work) / name
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_examples_that_hold(place):
    """The file lies in the workspace: nothing is run by it."""
    (place.work / "secret").write_text("x")
    path = write(place, RULES + GOOD)
    before = listing(place.work)
    ran = run(place, path)
    count = GOOD.count("\n")
    assert ran.returncode == 0 and ran.stdout == f"{path}: {count} of {count} tests hold\n", ran
    assert listing(place.work) == before
    place.assert_nothing_left()


def test_each_example_can_fail(place):
    """Turned round, none holds, and each is told where it stands."""
    other = {"allow": "deny", "deny": "allow", "ask": "allow"}
    (place.work / "secret").write_text("x")
    lines = [line.replace(f"verdict: {word}", f"verdict: {other[word]}")
             for line in GOOD.splitlines() for word in other if f"verdict: {word}" in line]
    path = write(place, RULES + "\n".join(lines) + "\n")
    ran = run(place, path)
    assert ran.returncode == 1 and ran.stderr == "", ran
    told = ran.stdout.splitlines()
    assert told[-1] == f"{path}: 0 of {len(lines)} tests hold"
    first = RULES.count("\n") + 1
    for index, line in enumerate(told[:-1]):
        assert line.startswith(f"{path}:{first + index}:5: expected "), line
        assert ", got " in line and " by " in line


def test_a_rule_that_does_not_decide_is_told(place):
    path = write(place, RULES + '  - {argv: [nc], verdict: deny, rule: other}\n')
    ran = run(place, path)
    assert ran.returncode == 1
    assert f'expected deny by other, got deny by "no-nc" {path}:3: argv nc' in ran.stdout, ran


def test_json(place):
    path = write(place, RULES + GOOD + '  - {host: "127.1:80", verdict: deny}\n')
    ran = run(place, "--json", path)
    assert ran.returncode == 1, ran
    said = json.loads(ran.stdout)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(said)
    assert said["held"] == GOOD.count("\n") and said["failed"] == 1
    last = said["tests"][-1]
    # no host at all is no answer, and holds for nothing
    assert not last["holds"] and last["verdict"] is None and "127.1" in last["reason"]


def test_several_files_and_none(place):
    good = write(place, "version: 1\ntests: [{command: ls, verdict: allow}]\n", "good.yaml")
    empty = write(place, "version: 1\n", "empty.yaml")
    ran = run(place, good, empty, "review")
    assert ran.returncode == 0, ran
    assert ran.stdout.splitlines() == [f"{good}: 1 of 1 tests hold", f"{empty}: no tests",
                                       "review: no tests"]
    assert run(place).returncode == 0
    broken = write(place, "version: 1\ntests: [{command: ls}]\n", "broken.yaml")
    ran = run(place, good, broken)
    assert ran.returncode == 1 and f"{broken}:2:9: a rule of tests lacks" in ran.stderr, ran
    assert run(place, "absent.yaml").returncode != 0
    assert run(place, "--bogus").returncode == 2


def test_without_rules_about_requests_the_gate_looks_at_nothing(place):
    """As a run does: what is told here is what a start would do."""
    path = write(place, 'version: 1\ntests: [{command: "sudo ls", verdict: allow}]\n')
    assert run(place, path).returncode == 0


@pytest.mark.parametrize("verdict, status", [("deny", 0), ("allow", 1)])
def test_preset_that_the_file_goes_on_from(place, verdict, status):
    path = write(place, "version: 1\npreset: review\ntests:\n"
                        f"  - {{path: x, access: write, verdict: {verdict}}}\n")
    assert run(place, path).returncode == status


def test_examples_that_take_too_long(place, tmp_path):
    """Attack: texts that hold their parser up. What is behind the limit holds for nothing."""
    path = write(place, "version: 1\napprovals: {ask: [external-writes]}\ntests:\n" +
                 "".join(f"  - {{command: hang {i}, verdict: ask}}\n" for i in range(4)) +
                 "  - {argv: [ls], verdict: allow}\n")
    # what the file says is kept, so that the parser that hangs has the texts of shells alone
    assert "of 5 tests hold" in run(place, path).stdout
    programs = tmp_path / "programs"
    programs.mkdir()
    shutil.copy(BAWN, programs / "bawn")
    shutil.copy(Path(BAWN).with_name("bawn-lying-parse"), programs / "bawn-parse")
    begun = time.monotonic()
    ran = subprocess.run([programs / "bawn", "policy", "test", *place.options, str(path)],
                         capture_output=True, text=True, cwd=place.work, timeout=60, check=False)
    assert 5 < time.monotonic() - begun < 20, ran
    assert ran.returncode == 1 and ran.stdout.count("not tried: the time for all") == 4, ran
    assert "1 of 5 tests hold" in ran.stdout, ran
