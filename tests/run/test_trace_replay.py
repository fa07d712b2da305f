"""bawn trace replay: recorded requests decided again under another policy; nothing runs."""
import json
import resource
import subprocess

import jsonschema
import pytest

import traces
from boxed import BAWN, ROOT, listing, place

__all__ = ["place"]

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((ROOT / "docs" / "schema" / "replay.schema.json").read_text()))
RULES = """\
version: 1
approvals: {ask: [external-writes]}
exec: {deny: [{program: wc, id: no-wc}]}
network:
  allow:
    - {host: example.org, id: ex}
    - {host: plain.example.org, ports: [80], protocol: http, methods: [GET], id: plain}
    - {host: quota.example.org, max-bytes: 1M}
    - {host: tool.example.org, tool: git}
    - {host: paths.example.org, ports: [80], protocol: http, paths: [/open/**]}
"""


def write(place, text, name="policy.yaml"):
    path = place.base / name
    path.write_text(text)
    path.chmod(0o600)
    return path


def replay(place, *arguments):
    return subprocess.run([BAWN, "trace", "replay", *place.options, *map(str, arguments)],
                          capture_output=True, text=True, cwd=place.work, timeout=30, check=False)


def rows(place, *arguments):
    """What is told of requests, and the counts."""
    ran = replay(place, "--json", *arguments)
    assert ran.returncode in (0, 1), ran
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    for one in told:
        SCHEMA.validate(one)
    counts = told.pop()
    assert ran.returncode == (counts["changes"] + counts["undecided"] + counts["tasks_gone"] > 0)
    return told, counts


def test_commands_of_real_tasks(place):
    rules = write(place, RULES)
    for text in ("true", "git push", "ls | wc -l"):
        place.run("--", "sh", "-c", text)
    assert place.run("--policy", rules, "--", "wc", "x").status == 126
    before = listing(place.work)
    told, counts = rows(place, "--since", "1h", "--policy", rules)
    assert (counts["requests"], counts["changes"], counts["undecided"]) == (4, 2, 0), told
    assert [(row["subject"], row["before"], row["after"]) for row in told] == [
        ("sh -c git push", "allow", "ask"), ("sh -c ls | wc -l", "allow", "deny")]
    assert told[1]["rule"] == {"id": "no-wc", "file": str(rules), "line": 3}
    # under its own policy nothing changes; without rules the one that was refused would run
    told, counts = rows(place, "--since", "1h", "--preset", "develop")
    assert [(row["before"], row["after"]) for row in told] == [("deny", "allow")]
    assert told[0]["before_rule"] == "no-wc"
    task = told[0]["task"]
    ran = replay(place, task, "--policy", rules)
    assert ran.returncode == 0 and ran.stdout == "0 of 1 requests would change\n", ran
    ran = replay(place, task, "--preset", "develop")
    assert ran.returncode == 1 and "deny -> allow  wc x" in ran.stdout, ran
    assert rows(place, "--since", "2100-01-01", "--policy", rules)[1]["requests"] == 0
    assert listing(place.work) == before


def flow(task, target, verdict="deny", **body):
    """A member that is ... is left out."""
    host, _, port = target.rpartition(":")
    task.add("execution", "net.flow", {name: value for name, value in {
        "phase": "stopped", "door": "captured", "verdict": verdict, "verb": "net.connect",
        "target": target, "host": host, "port": int(port), "address": None,
        "protocol": "https", "outcome": None, "method": None, "path": None,
        "upgrade": None, "status": None,
        "reason": None, "rule": {"id": "egress.default", "file": None, "line": 0},
        "connection": 1, "request": 0, "bytes_up": 0, "bytes_down": 0, "duration_us": 1,
        "repeated": 0, "left_out": 0, **body}.items() if value is not ...}, "a-1")


def test_connections(place):
    store = traces.Store(place.state)
    task = store.task(workspace=str(place.work))
    web = {"protocol": "http", "method": "GET", "path": "/x", "upgrade": False}
    flow(task, "example.org:443")
    flow(task, "other.example.org:443")
    flow(task, "example.org:443", "allow", phase="opened")
    flow(task, "example.org:443", "allow", phase="closed")
    flow(task, "plain.example.org:80", **web)
    flow(task, "plain.example.org:80", **{**web, "method": "POST"})
    flow(task, "gone.example.org:443", "allow", phase="opened")
    # what the record does not hold is no ground to guess from
    flow(task, "quota.example.org:443")
    flow(task, "tool.example.org:443")
    flow(task, "plain.example.org:80", protocol=None)
    flow(task, "plain.example.org:80", **{**web, "path": "/[masked:token:0123456789abcdef]"})
    flow(task, "example.org:443", outcome="special")
    flow(task, "example.org:443", door="lookup")
    flow(task, "example.org:443", host=None)
    task.end()
    told, counts = rows(place, task.id, "--policy", write(place, RULES))
    decided = [(row["subject"], row["before"], row["after"]) for row in told if row["after"]]
    assert decided == [("example.org:443", "deny", "allow"),
                       ("plain.example.org:80 GET /x", "deny", "allow"),
                       ("gone.example.org:443", "allow", "deny")], told
    assert (counts["requests"], counts["changes"], counts["undecided"]) == (13, 3, 7)
    why = [row["reason"] for row in told if not row["after"]]
    for reason, word in zip(why, ("counts", "program", "spoken", "masked", "resolved", "lookup",
                                  "no host"), strict=True):
        assert word in reason


def test_paths_as_they_came(place):
    """Held against rules as the proxy does it: without the query, or as what no rule allows."""
    store = traces.Store(place.state)
    task = store.task(workspace=str(place.work))
    for path in ("/open/a?q=/x", "/open/./a", "/%6fpen/a", "/open/../x", "/open//a", "/x?/open/a",
                 "/open/" + 505 * "a"):
        flow(task, "paths.example.org:80", protocol="http", method="GET", path=path,
             upgrade=False)
    task.end()
    told, counts = rows(place, task.id, "--policy", write(place, RULES))
    decided = [row["subject"].split()[-1] for row in told if row["after"]]
    assert decided == ["/open/a?q=/x", "/open/./a", "/%6fpen/a"], told
    assert (counts["requests"], counts["changes"], counts["undecided"]) == (7, 3, 1)


UPGRADES = """version: 1
network:
  allow:
    - {host: plain.example.org, ports: [80], protocol: http}
    - {host: ws.example.org, ports: [80], protocol: http, upgrade: true}
"""


def test_upgrades(place):
    """A request for another protocol is one that not every rule allows, and on record as such."""
    store = traces.Store(place.state)
    task = store.task(workspace=str(place.work))
    web = {"protocol": "http", "method": "GET", "path": "/x"}
    for host in ("plain", "ws"):
        for upgrade in (False, True):
            flow(task, f"{host}.example.org:80", "ask", **web, upgrade=upgrade)
    task.end()
    told, _ = rows(place, task.id, "--policy", write(place, UPGRADES))
    assert [row["after"] for row in told] == ["allow", "deny", "allow", "allow"], told
    # an older record does not say: only where it makes no difference is it decided
    task = store.task(workspace=str(place.work))
    for host in ("plain", "ws"):
        flow(task, f"{host}.example.org:80", "ask", **web, upgrade=...)
    task.end()
    told, _ = rows(place, task.id, "--policy", write(place, UPGRADES))
    assert [row["after"] for row in told] == [None, "allow"], told
    assert "another protocol" in told[0]["reason"], told


def start(task, argv, before="allow", rule=None, **body):
    action = f"a-{len(argv)}{task.actions}"
    task.actions += 1
    if before:
        task.add("policy", "verdict", {"verdict": before, "verb": "process.exec",
                                       "target": "x", "reason": "", "rule": rule or traces.rule()},
                 action)
    task.add("execution", "action.intent", {
        "argv": argv, "cwd": "/w", "environment": {"PATH": "/usr/bin:/bin"}, "input": "null",
        "timeout_ms": 0, "meta": {}, **body}, action)


def test_what_cannot_be_decided_again(place):
    store = traces.Store(place.state)
    task = store.task(workspace=str(place.work))
    start(task, ["curl", "-H", "[masked:token:0123456789abcdef]", "https://x.example"])
    start(task, [])
    start(task, ["ls"], before=None)
    start(task, ["ls"], cwd="[masked:token:0123456789abcdef]")
    start(task, ["ls"], environment={"PATH": "[masked:token:0123456789abcdef]:/usr/bin"})
    start(task, ["ls"], environment={})
    start(task, ["ls"], before="deny", rule=traces.rule() | {"id": "flag.read-only"})
    task.end()
    gone = store.task(workspace=str(place.base / "gone"))
    start(gone, ["ls"])
    gone.end()
    removed = store.task(workspace=str(place.work))
    removed.end()
    store.remove(removed)
    rules = write(place, RULES)
    told, counts = rows(place, "--since", "2000-01-01", "--policy", rules)
    assert (counts["changes"], counts["undecided"], counts["tasks_gone"]) == (0, 8, 1), told
    why = [row["reason"] for row in told]
    for reason, word in zip(why, ("masked", "not on record", "refused before", "where it began",
                                  "PATH", "PATH", "a flag", "gone"), strict=True):
        assert word in reason, why


def test_wrong_use(place):
    rules = write(place, RULES)
    for arguments in ([], ["--since", "1h"], ["--policy", rules], ["t-x", "--policy", rules],
                      ["--since", "1h", "--policy", rules, "--preset", "ci"],
                      ["--since", "soon", "--policy", rules],
                      ["--since", "1h", "--policy", write(place, "version: 2\n", "no.yaml")]):
        assert replay(place, *arguments).returncode == 2, arguments


@pytest.mark.parametrize("count", [20000])
def test_memory_does_not_grow_with_the_trace(place, count):
    store = traces.Store(place.state)
    task = store.task(workspace=str(place.work))
    for _ in range(count):
        start(task, ["ls", "x" * 200])
    task.end()

    def bound():
        resource.setrlimit(resource.RLIMIT_DATA, (48 << 20, 48 << 20))

    ran = subprocess.run([BAWN, "trace", "replay", *place.options, task.id, "--policy",
                          str(write(place, RULES))], capture_output=True, text=True,
                         cwd=place.work, timeout=120, check=False, preexec_fn=bound)
    assert ran.returncode == 0 and ran.stdout == f"0 of {count} requests would change\n", ran
