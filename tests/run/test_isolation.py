"""The tier of a task by its policy and by facts: what is chosen, told and refused."""
import json
import os
import subprocess

import pytest

from boxed import BAWN, IS_ROOT, eventually, place, policy_file, refused
from hostnet import HostNet, is_possible
from live import live

__all__ = ["place", "live"]


def verb(place, *arguments):
    first, *rest = arguments
    return subprocess.run([BAWN, *first.split(), *place.options, *map(str, rest)],
                          capture_output=True, text=True, cwd=place.work, timeout=40, check=False,
                          stdin=subprocess.DEVNULL)


def on_change(place, value):
    return policy_file(place, f"isolation: {{on-change: {value}}}\n", f"{value}.yaml")


def records(place, kind):
    found = []
    for path in sorted((place.state / "trace/tasks").iterdir(), key=os.path.getmtime):
        found += [json.loads(line) for line in path.read_bytes().splitlines()]
    return [row["body"] for row in found if row["type"] == kind]


# --- a floor that is not built


@pytest.mark.parametrize("tier", ["container", "gvisor", "microvm", "wasi"])
@pytest.mark.parametrize("name", ["run", "plan", "explain", "verify", "task start",
                                  "policy decide"])
def test_a_floor_that_is_not_built(place, tier, name):
    path = policy_file(place, f"isolation: {{floor: {tier}}}\n")
    words = ["--", "touch", "started"] if name in ("run", "policy decide") else []
    ran = verb(place, name, "--policy", path, *words)
    assert ran.returncode == 125 and ran.stdout == "", ran
    assert f"isolation.floor: {tier} needs the {tier} tier, which this build lacks" in ran.stderr
    assert not (place.work / "started").exists()


def test_a_floor_that_is_built(place):
    path = policy_file(place, "isolation: {floor: os}\n")
    ran = place.run("--json", "--policy", path, "--", "true")
    assert ran.status == 0
    assert (ran.result["tier"], ran.result["tier_reason"]) == ("os", "the floor of the policy")


# --- where the choice is told


def test_every_view_tells_it(place):
    """Facts that raise nothing are told all the same, in the same words."""
    reason = ("no policy asks for more; facts would call for the container tier: more of the "
              "kernel is open (kernel)")
    ran = verb(place, "plan", "--allow-ptrace")
    assert ran.stdout.splitlines()[-1] == f"tier os, rung full: {reason}"
    told = json.loads(verb(place, "plan", "--json", "--allow-ptrace").stdout)["tier"]
    assert told == {"name": "os", "rung": "full", "built": True, "called_for": "container",
                    "on_change": "keep", "reason": reason, "facts": ["kernel"],
                    "rule": {"id": "tier.default", "file": None, "line": 0}}
    rows = json.loads(verb(place, "explain", "--json", "--allow-ptrace").stdout)["command"]
    assert f"in the os tier, rung full: {reason}" in [row["text"] for row in rows]
    ran = place.run("--json", "--allow-ptrace", "--", "cat", "/run/bawn/policy.txt",
                    "/run/bawn/policy.json")
    assert f"isolation: os ({reason})" in ran.out
    assert json.loads(ran.out.splitlines()[-2])["isolation"] == told
    assert (ran.result["tier"], ran.result["tier_reason"]) == ("os", reason)
    start, = records(place, "task.start")
    assert (start["tier"], start["rung"], start["tier_reason"]) == ("os", "full", reason)
    verdict, = records(place, "verdict")
    assert (verdict["tier"], verdict["tier_reason"]) == ("os", reason)


def test_decide_tells_it(place):
    path = on_change(place, "raise")
    ran = verb(place, "policy decide", "--json", "--policy", path, "--", "npm", "install", "x")
    told = json.loads(ran.stdout)
    assert ran.returncode == 1 and told["verdict"] == "deny"
    assert told["rule"]["id"] == "isolation.on-change" and told["rule"]["file"] == path
    assert told["tier"]["name"] == "gvisor" and "packages" in told["tier"]["facts"]
    assert told["tier"]["built"] is False and told["tier"]["on_change"] == "raise"
    ran = verb(place, "policy decide", "--policy", path, "--", "ls")
    assert ran.returncode == 0 and "tier os: no policy asks for more" in ran.stdout
    # without a policy there is no box, and no tier
    assert json.loads(verb(place, "policy decide", "--json", "--", "ls").stdout)["tier"] is None
    # an ask is one
    ran = verb(place, "policy decide", "--policy", on_change(place, "ask"), "--", "npm", "install")
    assert ran.returncode == 1 and ran.stdout.startswith("ask:"), ran


# --- what facts do


@pytest.mark.parametrize("value, code, word", [
    ("raise", "isolation.tier", "which this build lacks"),
    ("ask", "isolation.asked", "nobody allowed"),
    ("stop", "isolation.tier", "then it stops"),
])
def test_facts_that_call_for_more(place, value, code, word):
    path = on_change(place, value)
    ran = place.run("--policy", path, "--allow-ptrace", "--", "touch", "started")
    refused(ran, place, 126, "the container tier", word)
    assert f"bawn: denied: {code} container (\"isolation.on-change\" {path}:2" in ran.err
    ran = place.run("--json", "--policy", path, "--allow-ptrace", "--", "true")
    result = ran.result
    assert result["tier"] == "container" and result["end"]["kind"] == "denied"
    assert [row["code"] for row in result["denials"]] == [code]
    assert [row["verb"] for row in result["verdicts"]][:2] == ["process.exec", "task.isolate"]
    assert "task.isolate" in [row["verb"] for row in records(place, "verdict")
                              if row["verdict"] == "deny"]
    assert bool(records(place, "approval")) == (value == "ask")
    # what calls for nothing runs
    assert place.run("--policy", path, "--", "true").status == 0


FACTS = {
    "kernel": (["--nested-userns"], ["true"]),
    "packages": ([], ["npm", "install", "x"]),
    "packages in a shell": ([], ["sh", "-c", "cd . && pip install x"]),
    "a way out and an unknown program": (["--allow-host", "example.org"], ["frobnicate"]),
    "a way out and a secret": (["--allow-host", "example.org", "--show-secrets"], ["true"]),
    "a way out and a variable": (["--allow-host", "example.org", "--env", "X=1"], ["true"]),
}


@pytest.mark.parametrize("name", FACTS)
def test_each_kind_of_fact(place, name):
    options, command = FACTS[name]
    path = on_change(place, "stop")
    ran = place.run("--policy", path, *options, "--", *command)
    assert ran.status == 126 and "isolation.tier" in ran.err, ran
    # it is the facts, and not the command
    assert "isolation" not in place.run(*options, "--", *command).err


def test_a_workspace_where_others_write(place):
    path = on_change(place, "raise")
    assert place.run("--policy", path, "--", "true").status == 0
    place.work.chmod(0o777)
    refused(place.run("--policy", path, "--", "true"), place, 126, "the gvisor tier",
            "shared-workspace")


def test_a_project_that_nobody_adopted(place):
    path = on_change(place, "stop")
    (place.work / ".bawn.yaml").write_text("version: 1\n")
    refused(place.run("--quiet", "--policy", path, "--", "true"), place, 126, "the container tier",
            "unreviewed-project")


def test_quarantine_stops(place):
    ran = place.run("--preset", "quarantine", "--", "npm", "install", "x")
    assert ran.status == 126 and "isolation.tier gvisor" in ran.err, ran
    assert place.run("--preset", "quarantine", "--", "true").status == 0


def test_a_stronger_layer_counts(place):
    """Of two values the one that allows less: a preset's raise, and stop of the file."""
    path = policy_file(place, "preset: quarantine\nisolation: {on-change: stop}\n")
    assert "then it stops" in place.run("--policy", path, "--", "npm", "install").err


# --- live tasks


@pytest.mark.parametrize("value", ["raise", "ask", "stop"])
def test_a_live_task_whose_facts_change(live, value):
    task = live.begin("--policy", on_change(live, value))
    assert live.sh_in(task, "echo one").out == "one\n"
    ran = live.verb("task", "exec", task, "--", "npm", "install", "x")
    assert ran.status == 126 and "isolation" in ran.err, ran
    if value == "stop":
        assert eventually(lambda: live.tasks() == [])
        return
    # refused before its next action, and no more than that
    assert live.sh_in(task, "echo two").out == "two\n"
    assert live.verb("task", "end", task).status == 0


def test_a_live_task_that_may_not_start(live):
    ran = live.verb("task", "start", "--policy", on_change(live, "stop"), "--allow-ptrace")
    assert ran.status == 126 and "isolation.tier container" in ran.err, ran
    assert live.tasks() == []


@pytest.mark.skipif(not IS_ROOT or not is_possible(), reason="no unshare, ip, openssl; or, in a "
                    "user namespace of the caller's, a policy file that is below nobody's root")
def test_facts_add_up(live, tmp_path):
    """Code runs until something came in from the network: then it may be what came in."""
    path = policy_file(live, "isolation: {on-change: raise}\nnetwork: {allow: ["
                        "{host: pub.example, ports: [80], protocol: http}]}\n")
    host = HostNet(tmp_path)
    # it goes elsewhere by itself
    prefix = [*host.prefix[:-1], f"--wdns={live.work}"]
    try:
        started = live.verb("task", "start", "--policy", path, prefix=prefix)
        assert started.status == 0, started
        task = started.out.strip()

        def run(*argv):
            return live.verb("task", "exec", task, "--", *argv, prefix=prefix)

        code = ["/usr/bin/python3", "-c", "print('ran')"]
        assert run(*code).out == "ran\n"
        # what was refused has brought nothing
        assert run("./frobnicate").status == 126
        assert run(*code).out == "ran\n"
        ran = run("curl", "-sS", "-o", "page", "http://pub.example/")
        assert ran.status == 0, ran
        assert run("cat", "page").status == 0
        ran = run(*code)
        assert ran.status == 126 and "isolation.tier gvisor" in ran.err, ran
        assert "(network, received, code)" in ran.err, ran
        # and no more than that is refused
        assert run("cat", "page").status == 0
        assert live.verb("task", "end", task, prefix=prefix).status == 0
    finally:
        host.close()


@pytest.mark.skipif(not IS_ROOT or not is_possible(), reason="as above")
def test_what_came_in_behind_an_action_counts(live, tmp_path):
    """Its command has ended, or still runs: the bytes are in the task."""
    path = policy_file(live, "isolation: {on-change: raise}\nnetwork: {allow: ["
                        "{host: pub.example, ports: [80], protocol: http}]}\n")
    host = HostNet(tmp_path)
    # it goes elsewhere by itself
    prefix = [*host.prefix[:-1], f"--wdns={live.work}"]
    try:
        task = live.verb("task", "start", "--policy", path, prefix=prefix).out.strip()

        def run(*argv):
            return live.verb("task", "exec", task, "--", *argv, prefix=prefix)

        assert run("bash", "-c", "(sleep 0.3; curl -sS -o page http://pub.example/) "
                                 ">/dev/null 2>&1 & echo begun").out == "begun\n"
        assert eventually(lambda: run("test", "-s", "page").status == 0)
        ran = run("/usr/bin/python3", "-c", "print('ran')")
        assert ran.status == 126 and "(network, received, code)" in ran.err, ran
        assert live.verb("task", "end", task, prefix=prefix).status == 0
    finally:
        host.close()


def test_a_secret_that_is_shown_counts(place):
    """Shown by its path as well as by --show-secrets."""
    (place.work / ".env").write_text("TOKEN=x\n")
    path = policy_file(place, "isolation: {on-change: raise}\nnetwork: {allow: [pub.example]}\n")
    plain = place.run("--policy", path, "--", "python3", "-c", "print('ran')")
    assert plain.out == "ran\n", plain
    for option in (("--read", place.work / ".env"), ("--show-secrets",)):
        ran = place.run("--policy", path, *option, "--", "python3", "-c", "print('ran')")
        assert ran.status == 126 and "(network, secrets, code)" in ran.err, ran


def test_replay_decides_by_facts(place):
    assert place.run("--allow-ptrace", "--", "true").status == 0
    task = records(place, "task.start") and next((place.state / "trace/tasks").iterdir()).stem
    ran = verb(place, "trace replay", task, "--policy", on_change(place, "stop"))
    # flags of the task's own start are left out: the command alone calls for nothing
    assert ran.returncode == 0, ran
